//! INSERT.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{self, ConflictTarget, OnConflictAction, OnInsert, SetExpr, TableObject};

use super::conflict_target::{check_arbiters, key_of_constraint};
use super::field_assignments::{InsertTarget, TargetPath, known_part};
use super::target::{ChangeKind, ChangeTarget, ViewColumns};
use crate::bind::query::row_calls::{RowFunctions, RowsRefused};
use crate::bind::query::{check_values, rows_with_subqueries};
use crate::bind::{
    Binder, Body, From, Insert, InsertSource, OnConflict, OutputColumn, Query, Scope,
    ScopeRelation, Select, Source, Subquery, Typed, column_default, fold, object_name,
};
use crate::catalog::{Column, Table};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Expr};
use crate::parse::{Overriding, overriding_of};
use crate::schema::errors::{named_twice, no_column};
use crate::types::Value;

#[cold]
fn assigned_again(target: &ChangeTarget, place: usize) -> SqlError {
    let column = target.table.columns.get(place).map_or("", |column| column.name.as_str());
    let message = format!("multiple assignments to same column \"{column}\"");
    SqlError::new(SqlState::SyntaxError, message)
}

/// Returns the columns of a table as those of a query.
fn columns_of(table: &Table) -> Vec<OutputColumn> {
    let columns = table.columns.iter();
    columns.map(|column| OutputColumn::new(column.name.clone(), column.data_type)).collect()
}

impl Binder<'_> {
    /// INSERT.
    pub fn insert(&mut self, insert: &ast::Insert) -> Result<Insert> {
        let plain = insert.or.is_none()
            && !insert.ignore
            && !insert.overwrite
            && !insert.replace_into
            && insert.assignments.is_empty()
            && insert.partitioned.is_none()
            && insert.into
            && insert.after_columns.is_empty()
            && !insert.has_table_keyword
            && insert.output.is_none()
            && insert.priority.is_none()
            && insert.insert_alias.is_none()
            && insert.settings.is_none()
            && insert.format_clause.is_none()
            && insert.multi_table_insert_type.is_none();
        if !plain {
            return Err(SqlError::unsupported("this form of INSERT"));
        }
        let TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::unsupported("INSERT into what is no table"));
        };
        let target = self.change_target(name, ChangeKind::Insert)?;
        let table = target.table.clone();
        let (columns, overriding) = overriding_of(&insert.columns);
        let targets = self.targets(&target, columns)?;
        let alias = insert
            .table_alias
            .as_ref()
            .map_or_else(|| target.name().clone(), |alias| fold(&alias.alias));
        let new_slot = self.add_slot("excluded".into(), Source::Table(table.clone()));
        let old_slot = self.add_slot(alias.clone(), Source::Table(table.clone()));
        let source =
            self.insert_source(&target, (&targets, overriding), columns, insert.source.as_deref())?;
        let (old, old_view) = self.target_row(&target, old_slot, alias.clone());
        let (new, new_view) = self.target_row(&target, new_slot, "excluded".into());
        let views: Vec<ViewColumns> = old_view.into_iter().chain(new_view).collect();
        self.restrict_target(&target, &old);
        let conflict = match &insert.on {
            None => None,
            Some(OnInsert::OnConflict(conflict)) => {
                let rows = (old, new.clone());
                Some(self.conflict(&target, conflict, old_slot, rows, &views)?)
            }
            Some(_) => return Err(SqlError::unsupported("ON DUPLICATE KEY UPDATE")),
        };
        if self.reads_row_ids
            && let Some(conflict) = &conflict
        {
            refuse_row_ids(conflict, ColumnRef { slot: old_slot, column: table.columns.len() })?;
        }
        self.restrict_target(&target, &new);
        self.returned_row = Some(new_slot);
        let returning = match &insert.returning {
            None => None,
            Some(items) => {
                let new = ScopeRelation { name: alias, ..new };
                Some(self.returning(items, &Scope::of(vec![new]))?)
            }
        };
        self.returned_row = None;
        let mut insert = Insert {
            xmax_slot: self.xmax_slot.take(),
            table,
            new_slot,
            old_slot,
            source,
            conflict,
            view_checks: Vec::new(),
            returning,
        };
        insert.view_checks = self.view_checks(&target, new_slot)?;
        target.expand_insert(&mut insert, &views)?;
        Ok(insert)
    }

    /// Returns the positions of the target columns in the table. Without a list, the columns of a
    /// view are meant up to the first that cannot be changed.
    pub(in crate::bind) fn targets(
        &mut self,
        target: &ChangeTarget,
        columns: &[ast::ObjectName],
    ) -> Result<Vec<InsertTarget>> {
        let kind = ChangeKind::Insert;
        let whole = |place| InsertTarget { place, steps: Vec::new(), position: 0 };
        if columns.is_empty() {
            let places = (0..target.width()).map_while(|own| target.place(own).ok());
            let places: Vec<InsertTarget> = places.map(whole).collect();
            let own: Vec<usize> = (0..places.len()).collect();
            self.check_target_columns(target, &own, kind)?;
            return Ok(places);
        }
        let mut targets: Vec<InsertTarget> = Vec::with_capacity(columns.len());
        let mut all: Vec<(usize, bool)> = Vec::with_capacity(columns.len());
        for name in columns {
            let position = self.position(name);
            let TargetPath { column, steps } = TargetPath::new(name)?;
            let own = target.own_position(&column);
            let missing = || no_column(target.name(), &column).at(position as usize);
            let own = own.ok_or_else(missing)?;
            let is_part = !steps.is_empty();
            if all.iter().any(|(known, parts)| *known == own && !(is_part && *parts)) {
                return Err(named_twice(&column).at(position as usize));
            }
            let place = target.place(own)?;
            if targets.iter().any(|it| it.place == place && (!is_part || it.steps.is_empty())) {
                return Err(assigned_again(target, place));
            }
            all.push((own, is_part));
            targets.push(InsertTarget { place, steps, position });
        }
        let all: Vec<usize> = all.into_iter().map(|(own, _)| own).collect();
        self.check_target_columns(target, &all, kind)?;
        Ok(targets)
    }

    /// Returns the value of a column without a given value.
    pub(in crate::bind) fn default_of(
        &mut self,
        target: &ChangeTarget,
        column: usize,
    ) -> Result<Expr> {
        let table = &*target.table;
        if let Some(default) = self.default_of_views(target, column)? {
            return Ok(default);
        }
        let text = std::mem::take(&mut self.text);
        let bound = column_default(self.names, table, column);
        self.text = text;
        Ok(bound?.unwrap_or(Expr::Constant(Value::Null)))
    }

    fn insert_source(
        &mut self,
        target: &ChangeTarget,
        (targets, overriding): (&[InsertTarget], Option<Overriding>),
        names: &[ast::ObjectName],
        source: Option<&ast::Query>,
    ) -> Result<InsertSource> {
        let table = &*target.table;
        let mut defaults = Vec::with_capacity(table.columns.len());
        for column in 0..table.columns.len() {
            defaults.push(self.default_of(target, column)?);
        }
        let Some(query) = source else {
            return Ok(InsertSource::Rows(vec![defaults]));
        };
        let simple = query.with.is_none()
            && query.order_by.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && query.locks.is_empty();
        if let (SetExpr::Values(values), true) = (&*query.body, simple) {
            check_values(values)?;
            let mut rows = Vec::with_capacity(values.rows.len());
            let mut asked = Vec::new();
            let allowed = match values.rows.len() {
                1 => RowFunctions::Allowed,
                _ => RowFunctions::Refused(RowsRefused::Values),
            };
            let width = values.rows.first().map_or(0, |row| row.content.len());
            for row in &values.rows {
                let place = |number: usize| {
                    let value = row.content.get(number).or(row.content.first());
                    value.map_or(0, |value| self.position(value) as usize)
                };
                if row.content.len() != width {
                    let message = "VALUES lists must all be the same length";
                    return Err(SqlError::new(SqlState::SyntaxError, message).at(place(0)));
                }
                self.check_count(target, width, targets, names, place)?;
                let (row, level) = self.level(|binder| {
                    let scope = Scope::default();
                    let targets = (targets, overriding);
                    binder.with_row_functions(allowed, |binder| {
                        binder.insert_row(table, targets, &defaults, &row.content, &scope)
                    })
                })?;
                if let Some(from) = self.with_rows_of(None, level.row_calls) {
                    return Ok(self.insert_rows_of(table, from, (row, level.subqueries)));
                }
                rows.push(row);
                asked.push(level.subqueries);
            }
            if asked.iter().all(Vec::is_empty) {
                return Ok(InsertSource::Rows(rows));
            }
            return Ok(self.insert_computed(table, rows, asked));
        }
        self.unknown.clear();
        let body = &query.body;
        self.defers = true;
        let mut query = self.query(query, None)?;
        let unknown = std::mem::take(&mut self.unknown);
        let place = |number| self.place_of_output(body, number);
        self.check_count(target, query.columns.len(), targets, names, place)?;
        let slot = self.add_slot("source".into(), Source::Computed);
        let mut values = defaults;
        for (number, (target, column)) in targets.iter().zip(&mut query.columns).enumerate() {
            let to = &table.columns[target.place];
            check_identity(to, overriding)?;
            let mut data_type = (unknown.get(number) != Some(&true)).then_some(column.data_type);
            // An untyped parameter takes the column's type.
            if let (None, Body::Select(select)) = (data_type, &query.body)
                && let Some(Expr::Parameter(parameter)) = select.outputs.get(number)
                && let Some(known) = self.parameters.get_mut(*parameter)
            {
                column.data_type = *known.get_or_insert(to.data_type.unconstrained());
                data_type = Some(column.data_type);
            }
            let typed = Typed { expr: Expr::column(slot, number), data_type, position: 0 };
            let value = if target.steps.is_empty() {
                self.assign(typed, to.data_type, &to.name)?
            } else {
                let earlier = targets.iter().take(number);
                let known = known_part(target, earlier, &values);
                self.part_of(target, to, (known, typed), &Scope::default())?
            };
            if !is_overridden(to, overriding) {
                values[target.place] = value;
            }
        }
        Ok(InsertSource::Query { query: Arc::new(query), slot, values })
    }

    /// Makes the values of a row with functions that return rows a query of these rows.
    fn insert_rows_of(
        &mut self,
        table: &Table,
        from: From,
        (row, subqueries): (Vec<Expr>, Vec<Subquery>),
    ) -> InsertSource {
        let select = Select::plain(Some(from), row, subqueries);
        self.insert_query(table, Body::Select(Box::new(select)))
    }

    /// Makes rows whose values ask subqueries the rows of a query.
    fn insert_computed(
        &mut self,
        table: &Table,
        rows: Vec<Vec<Expr>>,
        asked: Vec<Vec<Subquery>>,
    ) -> InsertSource {
        let columns = columns_of(table);
        let result = self.add_slot("values".into(), Source::Computed);
        let body = rows_with_subqueries(rows, asked, &columns, result);
        self.insert_query(table, body)
    }

    /// Inserts the rows of a query that has the columns of the table.
    fn insert_query(&mut self, table: &Table, body: Body) -> InsertSource {
        let query = Query::plain(body, columns_of(table));
        let slot = self.add_slot("source".into(), Source::Computed);
        let values = (0..table.columns.len()).map(|column| Expr::column(slot, column)).collect();
        InsertSource::Query { query: Arc::new(query), slot, values }
    }

    /// Checks that there are as many values as targets. Fewer are allowed if the targets are not
    /// named.
    pub(in crate::bind) fn check_count(
        &self,
        target: &ChangeTarget,
        given: usize,
        targets: &[InsertTarget],
        names: &[ast::ObjectName],
        place: impl Fn(usize) -> usize,
    ) -> Result<()> {
        let (message, place) = if given > targets.len() {
            if names.is_empty() {
                // It is an error if that column of a view cannot be changed.
                let next = Some(targets.len()).filter(|next| *next < target.width());
                next.map(|next| target.place(next)).transpose()?;
            }
            ("INSERT has more expressions than target columns", place(targets.len()))
        } else if let Some(excess) = names.get(given) {
            let place = self.position(excess) as usize;
            ("INSERT has more target columns than expressions", place)
        } else {
            // A view may have a column of its table twice.
            let given = targets.iter().take(given).enumerate();
            let mut again = given.filter(|(at, it)| {
                it.steps.is_empty() && targets.iter().take(*at).any(|known| known.place == it.place)
            });
            return again.next().map_or(Ok(()), |(_, it)| Err(assigned_again(target, it.place)));
        };
        Err(SqlError::new(SqlState::SyntaxError, message).at(place))
    }

    /// Returns the values of a row of VALUES, one for each column of the table.
    pub(in crate::bind) fn insert_row(
        &mut self,
        table: &Table,
        (targets, overriding): (&[InsertTarget], Option<Overriding>),
        defaults: &[Expr],
        row: &[ast::Expr],
        scope: &Scope,
    ) -> Result<Vec<Expr>> {
        let mut values = defaults.to_vec();
        for (number, (target, value)) in targets.iter().zip(row).enumerate() {
            let column = &table.columns[target.place];
            if is_default(value) {
                if !target.steps.is_empty() {
                    let (column, steps) = (column.name.clone(), target.steps.clone());
                    return Err(TargetPath { column, steps }.no_default());
                }
                continue;
            }
            check_identity(column, overriding)?;
            let bound = self.expression(value, scope)?;
            let value = if target.steps.is_empty() {
                self.assign(bound, column.data_type, &column.name)?
            } else {
                let known = known_part(target, targets.iter().take(number), &values);
                self.part_of(target, column, (known, bound), scope)?
            };
            if !is_overridden(column, overriding) {
                values[target.place] = value;
            }
        }
        Ok(values)
    }

    fn conflict(
        &mut self,
        changed: &ChangeTarget,
        conflict: &ast::OnConflict,
        old_slot: usize,
        (old, new): (ScopeRelation, ScopeRelation),
        views: &[ViewColumns],
    ) -> Result<OnConflict> {
        let table = &*changed.table;
        let target = match &conflict.conflict_target {
            None => None,
            Some(ConflictTarget::Columns(names)) => {
                Some(self.inferred_keys(changed, names, (old.clone(), old_slot), views)?)
            }
            Some(ConflictTarget::OnConstraint(name)) => {
                Some(vec![key_of_constraint(table, &object_name(name)?)?])
            }
        };
        match &target {
            None => check_arbiters(table, table.indexes.iter())?,
            Some(keys) => {
                let indexes = keys.iter().flatten().filter_map(|&at| table.indexes.get(at));
                check_arbiters(table, indexes)?;
            }
        }
        let OnConflictAction::DoUpdate(update) = &conflict.action else {
            let (assignments, filter, subqueries) = (None, None, Vec::new());
            return Ok(OnConflict { target, assignments, filter, subqueries });
        };
        if target.is_none() {
            let message =
                "ON CONFLICT DO UPDATE requires inference specification or constraint name";
            return Err(SqlError::new(SqlState::SyntaxError, message)
                .with_hint("For example, ON CONFLICT (column_name)."));
        }
        self.check_target(changed, ChangeKind::Update)?;
        let scope = Scope::of(vec![old, new]);
        let (bound, level) = self.level(|binder| {
            let assignments = binder.assignments(changed, &update.assignments, &scope)?;
            let filter = update
                .selection
                .as_ref()
                .map(|filter| binder.condition(filter, "WHERE", &scope))
                .transpose()?;
            Ok((assignments, filter))
        })?;
        if !level.subqueries.is_empty() && self.reads_row_ids && self.reads_system_columns {
            return Err(SqlError::unsupported("a subquery in ON CONFLICT beside ctid"));
        }
        let (assignments, filter) = bound;
        let subqueries = level.subqueries;
        Ok(OnConflict { target, assignments: Some(assignments), filter, subqueries })
    }

    /// CREATE TABLE … AS, SELECT … INTO: the columns that the answer needs.
    pub fn columns_for(&self, query: &Query, names: &[SmolStr]) -> Vec<OutputColumn> {
        let columns = query.columns.iter().enumerate();
        let named = columns.map(|(number, column)| OutputColumn {
            name: names.get(number).unwrap_or(&column.name).clone(),
            ..column.clone()
        });
        named.collect()
    }
}

/// Returns whether OVERRIDING USER VALUE gives a column the value of its sequence.
fn is_overridden(column: &Column, overriding: Option<Overriding>) -> bool {
    overriding == Some(Overriding::User) && column.identity.is_some()
}

/// Refuses a value for a column GENERATED ALWAYS.
fn check_identity(column: &Column, overriding: Option<Overriding>) -> Result<()> {
    let is_generated = column.generated.is_some();
    let is_always = column.identity.is_some_and(|identity| identity.always);
    if is_generated || (is_always && overriding.is_none()) {
        let message = format!("cannot insert a non-DEFAULT value into column \"{}\"", column.name);
        let kind = if is_generated { "a generated" } else { "an identity" };
        let (name, suffix) =
            (&column.name, if is_generated { "" } else { " defined as GENERATED ALWAYS" });
        let error = SqlError::new(SqlState::GeneratedAlways, message)
            .with_detail(format!("Column \"{name}\" is {kind} column{suffix}."));
        return Err(match is_generated {
            true => error,
            false => error.with_hint("Use OVERRIDING SYSTEM VALUE to override."),
        });
    }
    Ok(())
}

/// Refuses DO UPDATE that reads the row id of the present row.
fn refuse_row_ids(conflict: &OnConflict, id: ColumnRef) -> Result<()> {
    let assigned = conflict.assignments.iter().flatten().map(|(_, value)| value);
    let mut reads = false;
    for expr in assigned.chain(&conflict.filter) {
        expr.each_column(&mut |at| reads |= at == id);
    }
    if reads { Err(SqlError::unsupported("ctid in ON CONFLICT DO UPDATE")) } else { Ok(()) }
}

/// Whether a value is the word DEFAULT.
pub(in crate::bind) fn is_default(value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}
