//! GENERATED ALWAYS AS (…) STORED: the expressions of generated columns.
//!
//! The text of the expression is kept where other columns keep their DEFAULT. It reads columns of
//! its row that are not generated themselves, so generated columns are computed in any order.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast;

use super::super::{Binder, Names, Scope};
use super::stored_expressions::read_columns;
use super::table_outline::Outline;
use crate::bind::scope::relation_of;
use crate::catalog::{NewGenerated, Table};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::DataType;

const WHAT: &str = "column generation expression";

/// Returns the generated columns of a table that a change of these columns changes, or all of
/// them, each with its expression over a row in that slot.
pub fn generated_columns(
    names: &dyn Names,
    table: &Table,
    slot: usize,
    changed: Option<&[usize]>,
) -> Result<Vec<(usize, Expr)>> {
    let mut found = Vec::new();
    for (position, column) in table.columns.iter().enumerate() {
        let (Some(reads), Some(text)) = (&column.generated, &column.default) else { continue };
        let is_touched = |changed: &[usize]| {
            changed.contains(&position)
                || changed
                    .iter()
                    .any(|at| table.columns.get(*at).is_some_and(|it| reads.contains(&it.id)))
        };
        if !changed.is_none_or(is_touched) {
            continue;
        }
        let scope = Scope::of(vec![relation_of(table, slot, table.name.clone())]);
        let parsed = crate::parse::expression(text)?;
        let mut binder = Binder::of_stored(names);
        found.push((
            position,
            generation(&mut binder, &parsed, &scope, column.data_type, &column.name)?,
        ));
    }
    Ok(found)
}

/// Refuses an expression that may have another value at another time.
pub(super) fn check_immutable(expr: &Expr, message: &str) -> Result<()> {
    match expr.is_immutable() {
        true => Ok(()),
        false => Err(SqlError::new(SqlState::InvalidObjectDefinition, message)),
    }
}

fn generation(
    binder: &mut Binder<'_>,
    parsed: &ast::Expr,
    scope: &Scope,
    data_type: DataType,
    column: &str,
) -> Result<Expr> {
    let (value, level) = binder.level(|binder| {
        let bound = binder.expression(parsed, scope)?;
        binder.assign(bound, data_type, column)
    })?;
    binder.stands_alone(parsed, &level, WHAT)?;
    if !binder.is_stored {
        check_immutable(&value, "generation expression is not immutable")?;
    }
    Ok(value)
}

impl Binder<'_> {
    /// Binds the expression of a new generated column of a table whose columns are all known.
    pub(super) fn new_generated(
        &self,
        written: &ast::Expr,
        (column, data_type): (&str, DataType),
        outline: &Outline,
    ) -> Result<NewGenerated> {
        let scope = outline.scope();
        let place = || self.position(written) as usize;
        let mut binder = Binder::new(self.names, self.text.as_str());
        generation(&mut binder, written, &scope, data_type, column)
            .map_err(|error| error.at(place()))?;
        let text = written.to_string();
        let parsed = crate::parse::expression(&text)?;
        let kept =
            generation(&mut Binder::of_stored(self.names), &parsed, &scope, data_type, column)?;
        let columns: Vec<SmolStr> = read_columns(&kept, outline);
        if let Some(read) = columns.iter().find(|read| outline.generated.contains(read)) {
            let message =
                format!("cannot use generated column \"{read}\" in column generation expression");
            let error = SqlError::new(SqlState::InvalidObjectDefinition, message);
            return Err(error
                .with_detail("A generated column cannot reference another generated column.")
                .at(place()));
        }
        let expression: Arc<str> = text.into();
        Ok(NewGenerated { expression, columns })
    }
}
