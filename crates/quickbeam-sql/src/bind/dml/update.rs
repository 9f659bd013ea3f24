//! UPDATE and DELETE.

use sqlparser::ast::{
    self, AssignmentTarget, FromTable, TableFactor, TableWithJoins, UpdateTableFromKind,
};

use super::insert::is_default;
use super::target::{ChangeKind, ChangeTarget, ViewColumns};
use crate::bind::records::row_values::row_of;
use crate::bind::{
    Binder, BoundStatement, Change, From, JoinKind, MergeStatement, Returning, Scope, Typed, fold,
    object_name,
};
use crate::catalog::Table;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::schema::errors::no_column;
use crate::types::Value;

/// Refuses RETURNING of other rows than those of the view that INSTEAD OF triggers change.
fn refuse_others(returning: Option<&Returning>, own: usize) -> Result<()> {
    let mut is_own = true;
    for output in returning.iter().flat_map(|returning| &returning.outputs) {
        output.each_column(&mut |column| is_own &= column.slot == own);
    }
    if is_own {
        return Ok(());
    }
    Err(SqlError::unsupported("RETURNING of FROM or USING for a view with INSTEAD OF triggers"))
}

impl Binder<'_> {
    /// UPDATE.
    pub fn update(&mut self, update: &ast::Update) -> Result<Change> {
        if update.or.is_some()
            || !update.order_by.is_empty()
            || update.limit.is_some()
            || update.output.is_some()
        {
            return Err(SqlError::unsupported("this form of UPDATE"));
        }
        let others = match &update.from {
            None => &[][..],
            Some(UpdateTableFromKind::BeforeSet(list) | UpdateTableFromKind::AfterSet(list)) => {
                list
            }
        };
        let returning = update.returning.as_deref();
        self.change(
            &update.table,
            others,
            update.selection.as_ref(),
            Some(&update.assignments),
            returning,
        )
    }

    /// DELETE.
    pub fn delete(&mut self, delete: &ast::Delete) -> Result<Change> {
        if !delete.tables.is_empty()
            || !delete.order_by.is_empty()
            || delete.limit.is_some()
            || delete.output.is_some()
        {
            return Err(SqlError::unsupported("this form of DELETE"));
        }
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [table] = &from[..] else {
            return Err(SqlError::unsupported("DELETE from several tables"));
        };
        let others = delete.using.as_deref().unwrap_or_default();
        self.change(table, others, delete.selection.as_ref(), None, delete.returning.as_deref())
    }

    /// A statement whose WITH changes rows, or UPDATE, DELETE or MERGE after WITH. Returns `None`
    /// for any other query.
    pub fn query_or_change(&mut self, query: &ast::Query) -> Result<Option<BoundStatement>> {
        if let Some(with) = self.changing_with(query)? {
            return Ok(Some(BoundStatement::ChangingWith(with)));
        }
        let known = self.ctes.len();
        let tables = match (&*query.body, &query.with) {
            (
                ast::SetExpr::Update(_) | ast::SetExpr::Delete(_) | ast::SetExpr::Merge(_),
                Some(with),
            ) => self.common_tables(with, None)?,
            _ => return Ok(None),
        };
        if let ast::SetExpr::Merge(ast::Statement::Merge(merge)) = &*query.body {
            let merge = self.merge(merge);
            self.ctes.truncate(known);
            return Ok(Some(BoundStatement::Merge(MergeStatement { with: tables, ..merge? })));
        }
        let change = match &*query.body {
            ast::SetExpr::Update(ast::Statement::Update(update)) => self.update(update),
            ast::SetExpr::Delete(ast::Statement::Delete(delete)) => self.delete(delete),
            other => Err(SqlError::unsupported(format!("{other} after WITH"))),
        };
        self.ctes.truncate(known);
        Ok(Some(BoundStatement::Change(Change { with: tables, ..change? })))
    }

    fn change(
        &mut self,
        target: &TableWithJoins,
        others: &[TableWithJoins],
        filter: Option<&ast::Expr>,
        assignments: Option<&[ast::Assignment]>,
        returning: Option<&[ast::SelectItem]>,
    ) -> Result<Change> {
        let TableFactor::Table { name, alias, args: None, .. } = &target.relation else {
            return Err(SqlError::unsupported("changing what is no table"));
        };
        self.check_factor(&target.relation)?;
        if !target.joins.is_empty() {
            return Err(SqlError::unsupported("a join as the target of a change"));
        }
        let kind = if assignments.is_some() { ChangeKind::Update } else { ChangeKind::Delete };
        let target = self.change_target(name, kind)?;
        let (parts, level) = self.level(|binder| {
            let mut scope = Scope::default();
            let (slot, view, mut from) =
                binder.changed_rows(&target, alias.as_ref(), &mut scope)?;
            if let Some(right) = binder.from(others, &mut scope)? {
                let (left, right) = (Box::new(from), Box::new(right));
                from = From::Join { kind: JoinKind::Inner, left, right, on: Vec::new() };
            }
            let filter = match filter {
                Some(condition) => binder.conjuncts(condition, &scope)?,
                None => Vec::new(),
            };
            let assignments = match assignments {
                Some(list) => Some(binder.assignments(&target, list, &scope)?),
                None => None,
            };
            Ok(((slot, view), from, filter, assignments, scope))
        })?;
        let ((slot, view), from, filter, assignments, scope) = parts;
        let returning = returning.map(|items| self.returning(items, &scope)).transpose()?;
        if target.instead.is_some() {
            refuse_others(returning.as_ref(), slot)?;
        }
        let mut change = Change {
            with: Vec::new(),
            table: target.table.clone(),
            slot,
            from,
            filter,
            subqueries: level.subqueries,
            assignments,
            view_checks: Vec::new(),
            returning,
        };
        if kind == ChangeKind::Update {
            change.view_checks = self.view_checks(&target, slot)?;
        }
        if let Some(view) = view {
            target.expand_change(&mut change, &[view])?;
        }
        Ok(change)
    }

    /// Adds the rows that a statement changes to its scope. Returns their slot, and what stands for
    /// the columns of a view.
    fn changed_rows(
        &mut self,
        target: &ChangeTarget,
        alias: Option<&ast::TableAlias>,
        scope: &mut Scope,
    ) -> Result<(usize, Option<ViewColumns>, From)> {
        if let Some(view) = &target.instead {
            let (slot, from) = self.rows_of_view(view, alias, scope)?;
            return Ok((slot, None, from));
        }
        let Some(slot) = target.slot() else {
            let slot = self.stored(target.table.clone(), alias, scope)?;
            self.restrict_table(&target.table, slot);
            return Ok((slot, None, From::Table(slot)));
        };
        let name = alias.map_or_else(|| target.name().clone(), |alias| fold(&alias.name));
        let (mut row, view) = self.target_row(target, slot, name);
        self.restrict_target(target, &row);
        let given = alias.map_or(&[][..], |alias| &alias.columns);
        for (column, given) in row.columns.iter_mut().zip(given) {
            column.name = fold(&given.name);
        }
        scope.add(row)?;
        Ok((slot, view, From::Table(slot)))
    }

    /// SET: positions of columns and their new values.
    pub(in crate::bind) fn assignments(
        &mut self,
        changed: &ChangeTarget,
        list: &[ast::Assignment],
        scope: &Scope,
    ) -> Result<Vec<(usize, Expr)>> {
        let table = &*changed.table;
        let mut assignments: Vec<(usize, Expr)> = Vec::with_capacity(list.len());
        for assignment in list {
            if let (AssignmentTarget::Tuple(names), ast::Expr::Subquery(query)) =
                (&assignment.target, &assignment.value)
            {
                self.row_assignment(changed, names, query, &mut assignments, scope)?;
                continue;
            }
            let pairs: Vec<(&ast::ObjectName, &ast::Expr)> =
                match (&assignment.target, &assignment.value) {
                    (AssignmentTarget::ColumnName(name), value) => vec![(name, value)],
                    (AssignmentTarget::Tuple(names), ast::Expr::Tuple(values))
                        if names.len() == values.len() =>
                    {
                        names.iter().zip(values).collect()
                    }
                    (AssignmentTarget::Tuple(names), value) => match row_of(value) {
                        Some(values) if values.len() == names.len() => {
                            names.iter().zip(values).collect()
                        }
                        Some(_) => {
                            let message = "number of columns does not match number of values";
                            let position = names.first().map_or(0, |name| self.position(name));
                            let error = SqlError::new(SqlState::SyntaxError, message);
                            return Err(error.at(position as usize));
                        }
                        None => return Err(SqlError::unsupported("this form of SET")),
                    },
                };
            for (name, value) in pairs {
                if let Some(path) = self.field_path(changed, name) {
                    let row = (&path[..], value);
                    self.field_assignment(changed, name, row, (&mut assignments, scope))?;
                    continue;
                }
                let target = self.target(changed, name, &assignments)?;
                let column = &table.columns[target];
                if is_default(value) {
                    // DEFAULT is that of what the statement names.
                    let default = match changed.view {
                        Some(_) => {
                            let default = self.default_of_view(changed, target)?;
                            default.unwrap_or(Expr::Constant(Value::Null))
                        }
                        None => self.default_of(changed, target)?,
                    };
                    if changed.view.is_some() {
                        self.check_generated(table, target, name)?;
                    }
                    assignments.push((target, default));
                    continue;
                }
                self.check_generated(table, target, name)?;
                let bound: Typed = self.expression(value, scope)?;
                assignments.push((target, self.assign(bound, column.data_type, &column.name)?));
            }
        }
        Ok(assignments)
    }

    /// Returns the position of a column to be set, which must not be set already.
    fn target(
        &mut self,
        changed: &ChangeTarget,
        name: &ast::ObjectName,
        assignments: &[(usize, Expr)],
    ) -> Result<usize> {
        let position = self.position(name) as usize;
        let folded = object_name(name)?;
        let own = changed.own_position(&folded);
        let own = own.ok_or_else(|| no_column(changed.name(), &folded).at(position))?;
        let target = changed.place(own)?;
        self.check_target_columns(changed, &[own], ChangeKind::Update)
            .map_err(|error| error.at(position))?;
        if assignments.iter().any(|(known, _)| *known == target) {
            let message = format!("multiple assignments to same column \"{folded}\"");
            return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
        }
        Ok(target)
    }

    /// Refuses a value for a column GENERATED ALWAYS.
    pub(super) fn check_generated(
        &self,
        table: &Table,
        target: usize,
        name: &ast::ObjectName,
    ) -> Result<()> {
        let column = &table.columns[target];
        let is_generated = column.generated.is_some();
        if is_generated || column.identity.is_some_and(|identity| identity.always) {
            let message = format!("column \"{}\" can only be updated to DEFAULT", column.name);
            let error = SqlError::new(SqlState::GeneratedAlways, message);
            return Err(error.at(self.position(name) as usize));
        }
        Ok(())
    }

    /// Binds SET `(columns) = (SELECT …)`.
    fn row_assignment(
        &mut self,
        changed: &ChangeTarget,
        names: &[ast::ObjectName],
        query: &ast::Query,
        assignments: &mut Vec<(usize, Expr)>,
        scope: &Scope,
    ) -> Result<()> {
        let position = names.first().map_or(0, |name| self.position(name));
        let values = self.row_subquery(query, names.len(), position, scope)?;
        for (name, value) in names.iter().zip(values) {
            let table = &*changed.table;
            let target = self.target(changed, name, assignments)?;
            self.check_generated(table, target, name)?;
            let column = &table.columns[target];
            assignments.push((target, self.assign(value, column.data_type, &column.name)?));
        }
        Ok(())
    }
}
