//! UPDATE and DELETE.

use sqlparser::ast::{
    self, AssignmentTarget, FromTable, TableFactor, TableWithJoins, UpdateTableFromKind,
};

use super::field_assignments::TargetPath;
use super::insert::is_default;
use super::target::{ChangeKind, ChangeTarget, ViewColumns};
use crate::bind::records::row_values::row_of;
use crate::bind::{
    Binder, BoundStatement, Change, From, JoinKind, MergeStatement, Returning, Scope, Typed, fold,
};
use crate::catalog::Table;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::parse::current_of;
use crate::schema::errors::no_column;
use crate::types::{DataType, Value};

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

/// The columns that SET has set so far.
struct SetColumns {
    list: Vec<(usize, Expr)>,
    /// Those of which it set a part.
    parts: Vec<usize>,
}

/// A new value in SET.
enum SetValue<'v> {
    Written(&'v ast::Expr),
    Bound(Typed),
}

/// Returns whether an expression is `ROW(…)` with a `*` among its arguments.
fn is_row_with_star(value: &ast::Expr) -> bool {
    let ast::Expr::Function(call) = value else { return false };
    let ast::FunctionArguments::List(list) = &call.args else { return false };
    let is_star = |argument: &ast::FunctionArg| {
        use ast::FunctionArgExpr::{QualifiedWildcard, Wildcard};
        matches!(argument, ast::FunctionArg::Unnamed(QualifiedWildcard(..) | Wildcard))
    };
    call.name.to_string().eq_ignore_ascii_case("row") && list.args.iter().any(is_star)
}

fn check_number_of_values(columns: usize, values: usize, place: usize) -> Result<()> {
    if columns == values {
        return Ok(());
    }
    let message = "number of columns does not match number of values";
    Err(SqlError::new(SqlState::SyntaxError, message).at(place))
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
            let cursor = filter.and_then(current_of);
            let filter = match filter.filter(|_| cursor.is_none()) {
                Some(condition) => binder.conjuncts(condition, "WHERE", &scope)?,
                None => Vec::new(),
            };
            let assignments = match assignments {
                Some(list) => Some(binder.assignments(&target, list, &scope)?),
                None => None,
            };
            Ok(((slot, view), from, filter, assignments, scope))
        })?;
        let ((slot, view), mut from, bound_filter, assignments, scope) = parts;
        let cursor = match filter.and_then(current_of) {
            Some(name) => Some(self.cursor_of_change(name, &target, !others.is_empty())?),
            None => None,
        };
        let returning = returning.map(|items| self.returning(items, &scope)).transpose()?;
        self.mark_rows(&mut from);
        if target.instead.is_some() {
            refuse_others(returning.as_ref(), slot)?;
        }
        let mut change = Change {
            with: Vec::new(),
            table: target.table.clone(),
            slot,
            from,
            filter: bound_filter,
            cursor,
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

    /// Returns the name of the cursor of WHERE CURRENT OF. In a function it may be that in a
    /// variable.
    fn cursor_of_change(
        &mut self,
        name: &ast::Ident,
        target: &ChangeTarget,
        has_others: bool,
    ) -> Result<Expr> {
        if target.view.is_some() || target.instead.is_some() {
            let message = "WHERE CURRENT OF on a view is not implemented";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        if has_others {
            return Err(SqlError::unsupported("WHERE CURRENT OF with FROM or USING"));
        }
        let name = fold(name);
        let is_column = false;
        let variable = self.variable(std::slice::from_ref(&name), is_column, 0)?;
        Ok(match variable {
            Some(variable) if variable.data_type.is_some_and(DataType::is_text) => variable.expr,
            _ => Expr::Constant(Value::text(name)),
        })
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
        let mut set = SetColumns { list: Vec::with_capacity(list.len()), parts: Vec::new() };
        for assignment in list {
            let names = match &assignment.target {
                AssignmentTarget::ColumnName(name) => {
                    let value = SetValue::Written(&assignment.value);
                    self.set_target(changed, name, value, (&mut set, scope))?;
                    continue;
                }
                AssignmentTarget::Tuple(names) => names,
            };
            if let ast::Expr::Subquery(query) = &assignment.value {
                self.row_assignment(changed, names, query, (&mut set, scope))?;
                continue;
            }
            let place = self.position(&assignment.value) as usize;
            if is_row_with_star(&assignment.value) {
                let row = self.expression(&assignment.value, scope)?;
                let fields = self.fields_of(&row).unwrap_or_default();
                check_number_of_values(names.len(), fields.len(), place)?;
                for (name, (_, value)) in names.iter().zip(fields) {
                    self.set_target(changed, name, SetValue::Bound(value), (&mut set, scope))?;
                }
                continue;
            }
            let values = match &assignment.value {
                ast::Expr::Tuple(values) => values.iter().collect(),
                value => row_of(value).ok_or_else(|| {
                    let message = "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression";
                    SqlError::new(SqlState::FeatureNotSupported, message).at(place)
                })?,
            };
            check_number_of_values(names.len(), values.len(), place)?;
            for (name, value) in names.iter().zip(values) {
                self.set_target(changed, name, SetValue::Written(value), (&mut set, scope))?;
            }
        }
        Ok(set.list)
    }

    /// Binds an assignment to a column, or to a part of it.
    fn set_target(
        &mut self,
        changed: &ChangeTarget,
        name: &ast::ObjectName,
        value: SetValue<'_>,
        (set, scope): (&mut SetColumns, &Scope),
    ) -> Result<()> {
        let position = self.position(name);
        let at = |error: SqlError| error.at(position as usize);
        let path = TargetPath::new(name)?;
        let own = changed.own_position(&path.column);
        let own = own.ok_or_else(|| at(no_column(changed.name(), &path.column)))?;
        let target = changed.place(own)?;
        self.check_target_columns(changed, &[own], ChangeKind::Update).map_err(at)?;
        let known = set.list.iter().position(|(known, _)| *known == target);
        let is_part = !path.steps.is_empty();
        if known.is_some() && !(is_part && set.parts.contains(&target)) {
            let message = format!("multiple assignments to same column \"{}\"", path.column);
            return Err(at(SqlError::new(SqlState::SyntaxError, message)));
        }
        let table = &*changed.table;
        let column = &table.columns[target];
        if let SetValue::Written(value) = value
            && is_default(value)
        {
            if is_part {
                return Err(path.no_default());
            }
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
            set.list.push((target, default));
            return Ok(());
        }
        self.check_generated(table, target, name)?;
        let value: Typed = match value {
            SetValue::Written(value) => self.expression(value, scope)?,
            SetValue::Bound(value) => value,
        };
        if !is_part {
            set.list.push((target, self.assign(value, column.data_type, &column.name)?));
            return Ok(());
        }
        let current = match known {
            Some(known) => set.list.remove(known).1,
            None => {
                let first = scope.relations.first().and_then(|it| it.columns.get(own));
                Expr::Column(first.ok_or_else(|| at(SqlError::unsupported("this SET")))?.at)
            }
        };
        let whole = Typed::new(current, column.data_type, position);
        let made = self.with_part(whole, &path.column, (&path.steps, value), scope)?;
        set.list.push((target, made.expr));
        set.parts.push(target);
        Ok(())
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
            let what = match is_generated {
                true => "a generated column",
                false => "an identity column defined as GENERATED ALWAYS",
            };
            let error = SqlError::new(SqlState::GeneratedAlways, message)
                .with_detail(format!("Column \"{}\" is {what}.", column.name));
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
        (set, scope): (&mut SetColumns, &Scope),
    ) -> Result<()> {
        let position = names.first().map_or(0, |name| self.position(name));
        let values = self.row_subquery(query, names.len(), position, scope)?;
        for (name, value) in names.iter().zip(values) {
            self.set_target(changed, name, SetValue::Bound(value), (set, scope))?;
        }
        Ok(())
    }
}
