//! Expressions that are kept: DEFAULT and CHECK.
//!
//! They are kept as text. They are bound here once when they are defined, so that mistakes show then, and again whenever a
//! statement needs them.

use smol_str::SmolStr;
use sqlparser::ast;

use super::super::insert::relation_of;
use super::super::{Binder, Names, Scope, ScopeColumn, ScopeRelation, Typed};
use crate::catalog::{NewCheck, NewColumn, Table};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Expr};
use crate::types::DataType;

/// A column's DEFAULT, or what counts it up.
pub fn column_default(names: &dyn Names, table: &Table, column: usize) -> Result<Option<Expr>> {
    let Some(column) = table.columns.get(column) else { return Ok(None) };
    if let Some(identity) = column.identity {
        return Ok(Some(Expr::NextValue(identity.sequence.0, column.data_type)));
    }
    match &column.default {
        None => Ok(None),
        Some(text) => default_value(names, text, column.data_type, &column.name).map(Some),
    }
}

pub(super) fn default_value(
    names: &dyn Names,
    text: &str,
    data_type: DataType,
    column: &str,
) -> Result<Expr> {
    let parsed = crate::parse::expression(text)?;
    let mut binder = Binder::new(names, "");
    let (value, level) = binder.level(|binder| {
        let bound: Typed = binder.expression(&parsed, &Scope::default())?;
        binder.assign(bound, data_type, column)
    })?;
    if !level.subqueries.is_empty() || !binder.parameters.is_empty() {
        let message = "a DEFAULT may use neither subqueries nor parameters";
        return Err(SqlError::new(SqlState::InvalidColumnDefinition, message));
    }
    Ok(value)
}

/// A table's CHECK as an expression over a row in that slot.
pub fn check_of(names: &dyn Names, table: &Table, text: &str, slot: usize) -> Result<Expr> {
    let parsed = crate::parse::expression(text)?;
    let relations = vec![relation_of(table, slot, table.name.clone())];
    check_over(names, &parsed, &Scope::of(relations))
}

fn check_over(names: &dyn Names, parsed: &ast::Expr, scope: &Scope) -> Result<Expr> {
    let mut binder = Binder::new(names, "");
    let (value, level) = binder.level(|binder| binder.condition(parsed, scope))?;
    if !level.subqueries.is_empty() || !binder.parameters.is_empty() {
        let message = "a CHECK may use neither subqueries nor parameters";
        return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
    }
    Ok(value)
}

/// A CHECK; which columns it reads is found when it is bound.
pub(super) fn new_check(name: Option<SmolStr>, expr: &ast::Expr) -> NewCheck {
    NewCheck { name, expression: expr.to_string().into(), columns: Vec::new() }
}

/// The names of the columns that a CHECK reads.
pub(super) fn columns_read(condition: &Expr, names: &[SmolStr]) -> Vec<SmolStr> {
    let mut columns: Vec<usize> = Vec::new();
    condition.each_column(&mut |column| columns.push(column.column));
    columns.sort_unstable();
    columns.dedup();
    columns.into_iter().filter_map(|column| names.get(column).cloned()).collect()
}

impl Binder<'_> {
    /// Binds checks of a table that is not there yet.
    pub(super) fn bind_checks(
        &self,
        table: &SmolStr,
        columns: &[NewColumn],
        checks: &mut [NewCheck],
    ) -> Result<()> {
        let names: Vec<SmolStr> = columns.iter().map(|column| column.name.clone()).collect();
        let columns = columns.iter().enumerate().map(|(column, new)| ScopeColumn {
            name: new.name.clone(),
            data_type: new.data_type,
            at: ColumnRef { slot: 0, column },
        });
        let relation = ScopeRelation { name: table.clone(), columns: columns.collect() };
        let scope = Scope::of(vec![relation]);
        for check in checks {
            let parsed = crate::parse::expression(&check.expression)?;
            check.columns = columns_read(&check_over(self.names, &parsed, &scope)?, &names);
        }
        Ok(())
    }
}
