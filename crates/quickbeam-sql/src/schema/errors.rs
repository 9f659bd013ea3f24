//! What may be wrong with a name in a definition.
//!
//! It is said in the same words by the binder, which knows where the name stands, and by the
//! catalog, which decides.

use std::fmt;

use super::encoding::inverted::has_element_keys;
use super::indexes::OperatorClass;
use super::names::{shown_name, split_lookup_name};
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType;

/// A change in a transaction that makes none; `what` would make one.
#[cold]
pub(crate) fn read_only(what: &str) -> SqlError {
    let message = format!("cannot execute {what} in a read-only transaction");
    SqlError::new(SqlState::ReadOnlySqlTransaction, message)
}

/// Returns the operator class of an inverted index of values of a type: the one given, or that of
/// the type.
pub(crate) fn inverted_class(
    given: Option<OperatorClass>,
    data_type: DataType,
) -> Result<OperatorClass> {
    match given.or_else(|| OperatorClass::of_type(data_type)) {
        None => {
            let message = format!(
                "data type {data_type} has no default operator class for access method \"gin\""
            );
            Err(SqlError::new(SqlState::UndefinedObject, message).with_hint(
                "You must specify an operator class for the index or define a default operator \
                 class for the data type.",
            ))
        }
        Some(class) if !class.accepts(data_type) => {
            let message = format!(
                "operator class \"{}\" does not accept data type {data_type}",
                class.name()
            );
            Err(SqlError::new(SqlState::DatatypeMismatch, message))
        }
        Some(OperatorClass::Array) if !has_element_keys(data_type) => {
            let element = data_type.element().map_or(data_type, |element| element.data_type());
            let message = format!("could not identify a comparison function for type {element}");
            Err(SqlError::new(SqlState::UndefinedFunction, message))
        }
        Some(class) => Ok(class),
    }
}

/// There is nothing of that name.
#[cold]
pub(crate) fn no_relation(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UndefinedTable,
        format!("relation \"{}\" does not exist", shown_name(name)),
    )
}

/// The error for a statement about row security.
#[cold]
pub(crate) fn no_row_security(statement: impl fmt::Display) -> SqlError {
    let hint = "There are no row security policies; a view with security_barrier hides rows.";
    SqlError::unsupported(statement).with_hint(hint)
}

/// There is no relation of that kind, such as a table, to be dropped.
#[cold]
pub(crate) fn no_object(kind: &str, name: &str) -> SqlError {
    let message = format!("{kind} \"{}\" does not exist", shown_name(name));
    SqlError::new(SqlState::UndefinedTable, message)
}

#[cold]
pub(crate) fn no_view(name: &str) -> SqlError {
    SqlError::new(SqlState::UndefinedTable, format!("view \"{}\" does not exist", shown_name(name)))
}

#[cold]
pub(crate) fn no_materialized_view(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UndefinedTable,
        format!("materialized view \"{}\" does not exist", shown_name(name)),
    )
}

#[cold]
pub(crate) fn no_index(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UndefinedObject,
        format!("index \"{}\" does not exist", shown_name(name)),
    )
}

#[cold]
pub(crate) fn no_schema(name: &str) -> SqlError {
    SqlError::new(SqlState::InvalidSchemaName, format!("schema \"{name}\" does not exist"))
}

#[cold]
pub(crate) fn schema_exists(name: &str) -> SqlError {
    SqlError::new(SqlState::DuplicateSchema, format!("schema \"{name}\" already exists"))
}

#[cold]
pub(crate) fn no_column(relation: &str, name: &str) -> SqlError {
    let message = format!("column \"{name}\" of relation \"{relation}\" does not exist");
    SqlError::new(SqlState::UndefinedColumn, message)
}

#[cold]
pub(crate) fn no_constraint(relation: &str, name: &str) -> SqlError {
    let message = format!("constraint \"{name}\" of relation \"{relation}\" does not exist");
    SqlError::new(SqlState::UndefinedObject, message)
}

/// Something of that name is there, but not `what`, as in "a view".
#[cold]
pub(crate) fn is_not(name: &str, what: &str) -> SqlError {
    SqlError::new(
        SqlState::WrongObjectType,
        format!("\"{}\" is not {what}", split_lookup_name(name).1),
    )
}

/// What has that name can be read and changed as a table is, but not defined as one.
#[cold]
pub(crate) fn no_definition(name: &str) -> SqlError {
    let message = format!("\"{name}\" is a key/value database, not a table");
    SqlError::new(SqlState::WrongObjectType, message)
        .with_hint("Its records can be read and changed; the database itself is made and removed through the key/value interface.")
}

#[cold]
pub(crate) fn relation_exists(name: &str) -> SqlError {
    SqlError::new(
        SqlState::DuplicateTable,
        format!("relation \"{}\" already exists", split_lookup_name(name).1),
    )
}

#[cold]
pub(crate) fn column_exists(relation: &str, name: &str) -> SqlError {
    let message = format!("column \"{name}\" of relation \"{relation}\" already exists");
    SqlError::new(SqlState::DuplicateColumn, message)
}

#[cold]
pub(crate) fn system_column_exists(name: &str) -> SqlError {
    let message = format!("column name \"{name}\" conflicts with a system column name");
    SqlError::new(SqlState::DuplicateColumn, message)
}

#[cold]
pub(crate) fn constraint_exists(relation: &str, name: &str) -> SqlError {
    let message = format!("constraint \"{name}\" for relation \"{relation}\" already exists");
    SqlError::new(SqlState::DuplicateObject, message)
}

/// A list names a column a second time.
#[cold]
pub(crate) fn named_twice(name: &str) -> SqlError {
    let message = format!("column \"{name}\" specified more than once");
    SqlError::new(SqlState::DuplicateColumn, message)
}

/// A table gets a second primary key.
#[cold]
pub(crate) fn many_primary_keys(relation: &str) -> SqlError {
    let message = format!("multiple primary keys for table \"{relation}\" are not allowed");
    SqlError::new(SqlState::InvalidTableDefinition, message)
}
