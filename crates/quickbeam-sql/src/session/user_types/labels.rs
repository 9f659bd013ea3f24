//! What ALTER TYPE … RENAME VALUE cannot follow: stored texts with the label.

use smol_str::SmolStr;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::catalog::{CatalogSnapshot, Column, EnumType, Table};
use crate::ddl::relabelled_default;
use crate::error::{Result, SqlError};
use crate::types::DataType;

/// Returns whether a text has a literal that may be a label, or an array with it.
fn has_label(text: &str, label: &str) -> bool {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize().unwrap_or_default();
    tokens.iter().any(|token| match token {
        Token::SingleQuotedString(literal) | Token::EscapedStringLiteral(literal) => {
            literal == label || literal.starts_with(['{', '(']) && literal.contains(label)
        }
        _ => false,
    })
}

/// Refuses another label where a stored text may have it, or a row in a column.
pub(super) fn refuse_label(
    snapshot: &CatalogSnapshot,
    known: &EnumType,
    label: &SmolStr,
) -> Result<()> {
    let refused = |by: String| {
        let what =
            format!("renaming the value {label} of the type {} while {by} has it", known.name);
        Err(SqlError::unsupported(what))
    };
    let has = |text: &str| has_label(text, label);
    if let Some(view) = snapshot.views.values().find(|it| has(&it.query)) {
        return refused(format!("the view {}", view.name));
    }
    for table in snapshot.tables() {
        let is_kept = |column: &&Column| !is_relabelled(snapshot, known, column, label);
        let defaults = table.columns.iter().filter(is_kept);
        let defaults = defaults.filter_map(|column| column.default.as_ref());
        let checks = table.checks.iter().map(|it| &it.expression);
        let computed = table.indexes.iter().flat_map(|index| {
            let expressions = index.expressions.iter().map(|it| &it.text);
            expressions.chain(index.predicate.iter().map(|it| &it.text))
        });
        let conditions = table.triggers.iter().filter_map(|it| it.condition.as_ref());
        if defaults.chain(checks).chain(computed).chain(conditions).any(|text| has(text)) {
            return refused(format!("an expression of the table {}", table.name));
        }
        if table.materialized.as_ref().is_some_and(|it| has(&it.query)) {
            return refused(format!("the materialized view {}", table.name));
        }
        if let Some(column) = column_of_rows(snapshot, known, table) {
            return refused(format!("the row in column {} of table {}", column.name, table.name));
        }
    }
    for domain in snapshot.domains() {
        let mut texts = domain.checks.iter().map(|it| &it.expression).chain(&domain.default);
        if texts.any(|text| has(text)) {
            return refused(format!("an expression of the domain {}", domain.name));
        }
    }
    Ok(())
}

/// Returns whether the DEFAULT of a column follows the label.
fn is_relabelled(
    snapshot: &CatalogSnapshot,
    known: &EnumType,
    column: &Column,
    label: &str,
) -> bool {
    snapshot.is_enum(column.data_type, known.id) && relabelled_default(column, label, "").is_some()
}

/// Returns a column with rows that have a field of the type.
fn column_of_rows<'t>(
    snapshot: &CatalogSnapshot,
    known: &EnumType,
    table: &'t Table,
) -> Option<&'t Column> {
    fn has_field(data_type: DataType, is_it: &dyn Fn(DataType) -> bool) -> bool {
        let row_type = data_type.element_or_self().record().and_then(|it| it.row_type());
        row_type.is_some_and(|it| {
            it.fields.iter().any(|(_, field)| is_it(*field) || has_field(*field, is_it))
        })
    }
    let is_it = |data_type| snapshot.is_enum(data_type, known.id);
    table.columns.iter().find(|column| has_field(column.data_type, &is_it))
}
