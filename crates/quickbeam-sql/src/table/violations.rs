//! The errors of rows that violate a constraint of their table.

use crate::error::{SqlError, SqlState};
use crate::schema::Table;
use crate::schema::encoding::StoredRow;
use crate::types::{TextSettings, format_value};

/// Bytes of a value in the detail of an error. What is longer is cut.
const SHOWN_BYTES: usize = 64;

/// Returns the values of a row as the detail of an error has them.
pub(crate) fn shown_row(table: &Table, row: StoredRow<'_>) -> String {
    let show = |position: usize| {
        let mut text = String::new();
        match row.get(position) {
            Ok(value) if value.is_null() => text.push_str("null"),
            Ok(value) => format_value(&mut text, value, &TextSettings::DEFAULT),
            Err(_) => text.push('?'),
        }
        if text.len() > SHOWN_BYTES {
            text.truncate(text.floor_char_boundary(SHOWN_BYTES));
            text.push_str("...");
        }
        text
    };
    let values: Vec<String> = (0..table.columns.len()).map(show).collect();
    format!("Failing row contains ({}).", values.join(", "))
}

/// Returns the error of a NULL in a column that is NOT NULL.
#[cold]
pub(super) fn null_violation(table: &Table, position: usize, row: StoredRow<'_>) -> SqlError {
    let column = table.columns.get(position).map_or("", |column| column.name.as_str());
    let relation = &table.name;
    let message = format!(
        "null value in column \"{column}\" of relation \"{relation}\" violates not-null constraint"
    );
    SqlError::new(SqlState::NotNullViolation, message)
        .with_detail(shown_row(table, row))
        .of_table(&table.schema, relation)
        .of_column(column)
}

/// Returns the error of a row that fails the CHECK of that number.
#[cold]
pub(crate) fn check_violation(table: &Table, number: usize, row: StoredRow<'_>) -> SqlError {
    let name = table.checks.get(number).map_or("", |check| check.name.as_str());
    let message =
        format!("new row for relation \"{}\" violates check constraint \"{name}\"", table.name);
    SqlError::new(SqlState::CheckViolation, message)
        .with_detail(shown_row(table, row))
        .of_table(&table.schema, &table.name)
        .of_constraint(name)
}
