//! UPDATE and DELETE.

use sqlparser::ast::{
    self, AssignmentTarget, FromTable, TableFactor, TableWithJoins, UpdateTableFromKind,
};

use super::insert::is_default;
use crate::bind::records::row_values::row_of;
use crate::bind::rights::Right;
use crate::bind::{
    Binder, BoundStatement, Change, From, JoinKind, MergeStatement, Scope, Typed, object_name,
};
use crate::catalog::{Privileges, Table};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::schema::errors::no_column;

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
        let right = match assignments {
            Some(_) => Right::Has(Privileges::UPDATE),
            None => Right::Whole(Privileges::DELETE),
        };
        let table = self.table(name, right)?;
        let (parts, level) = self.level(|binder| {
            let mut scope = Scope::default();
            let slot = binder.stored(table.clone(), alias.as_ref(), &mut scope)?;
            binder.restrict_table(&table, slot);
            let mut from = From::Table(slot);
            if let Some(right) = binder.from(others, &mut scope)? {
                let (left, right) = (Box::new(from), Box::new(right));
                from = From::Join { kind: JoinKind::Inner, left, right, on: Vec::new() };
            }
            let filter = match filter {
                Some(condition) => binder.conjuncts(condition, &scope)?,
                None => Vec::new(),
            };
            let assignments = match assignments {
                Some(list) => Some(binder.assignments(&table, list, &scope)?),
                None => None,
            };
            Ok((slot, from, filter, assignments, scope))
        })?;
        let (slot, from, filter, assignments, scope) = parts;
        let returning = returning.map(|items| self.returning(items, &scope)).transpose()?;
        Ok(Change {
            with: Vec::new(),
            table,
            slot,
            from,
            filter,
            subqueries: level.subqueries,
            assignments,
            returning,
        })
    }

    /// SET: positions of columns and their new values.
    pub(in crate::bind) fn assignments(
        &mut self,
        table: &Table,
        list: &[ast::Assignment],
        scope: &Scope,
    ) -> Result<Vec<(usize, Expr)>> {
        let mut assignments: Vec<(usize, Expr)> = Vec::with_capacity(list.len());
        for assignment in list {
            if let (AssignmentTarget::Tuple(names), ast::Expr::Subquery(query)) =
                (&assignment.target, &assignment.value)
            {
                self.row_assignment(table, names, query, &mut assignments, scope)?;
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
                let target = self.target(table, name, &assignments)?;
                let column = &table.columns[target];
                if is_default(value) {
                    let default = self.default_of(table, target)?;
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
        &self,
        table: &Table,
        name: &ast::ObjectName,
        assignments: &[(usize, Expr)],
    ) -> Result<usize> {
        let position = self.position(name) as usize;
        let folded = object_name(name)?;
        let target =
            table.column(&folded).ok_or_else(|| no_column(&table.name, &folded).at(position))?;
        self.check_columns(table, [target].into_iter(), Privileges::UPDATE)
            .map_err(|error| error.at(position))?;
        if assignments.iter().any(|(known, _)| *known == target) {
            let message = format!("multiple assignments to same column \"{folded}\"");
            return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
        }
        Ok(target)
    }

    /// Refuses a value for a column GENERATED ALWAYS.
    fn check_generated(&self, table: &Table, target: usize, name: &ast::ObjectName) -> Result<()> {
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
        table: &Table,
        names: &[ast::ObjectName],
        query: &ast::Query,
        assignments: &mut Vec<(usize, Expr)>,
        scope: &Scope,
    ) -> Result<()> {
        let position = names.first().map_or(0, |name| self.position(name));
        let values = self.row_subquery(query, names.len(), position, scope)?;
        for (name, value) in names.iter().zip(values) {
            let target = self.target(table, name, assignments)?;
            self.check_generated(table, target, name)?;
            let column = &table.columns[target];
            assignments.push((target, self.assign(value, column.data_type, &column.name)?));
        }
        Ok(())
    }
}
