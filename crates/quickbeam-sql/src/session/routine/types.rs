//! The types that definitions and declarations name.

use std::sync::Arc;

use smol_str::SmolStr;

use crate::bind::{Binder, Derivation, Names};
use crate::catalog::describe::name_parts;
use crate::catalog::{DeclaredType, ObjectId, PseudoType, Relation, Table};
use crate::compile::CompileContext;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::plpgsql::{RecordFields, VariableKind};
use crate::types::DataType;

/// What the text of a type means.
pub(in crate::session) enum WrittenType {
    Value(DeclaredType),
    /// The rows of a table or composite type, by the number of the object.
    Row(ObjectId, DataType),
    /// A polymorphic type.
    Pseudo(PseudoType),
    /// `record`
    Record,
    /// `void`
    Void,
    /// `trigger`
    Trigger,
}

fn table_named(look: &CompileContext<'_>, parts: &[SmolStr]) -> Result<Option<Arc<Table>>> {
    let (schema, name) = match parts {
        [name] => (None, name),
        [schema, name] => (Some(&**schema), name),
        _ => return Ok(None),
    };
    let lookup = Binder::new(look, "").lookup(schema, name)?;
    Ok(match look.relation(&lookup)? {
        Some(Relation::Table(table)) => Some(table),
        _ => None,
    })
}

fn parts_of(text: &str) -> Option<Vec<SmolStr>> {
    Some(name_parts(text.trim())?.into_iter().map(SmolStr::from).collect())
}

#[cold]
fn no_relation(text: &str) -> SqlError {
    SqlError::new(SqlState::UndefinedTable, format!("relation \"{text}\" does not exist"))
}

#[cold]
fn invalid_type(text: &str) -> SqlError {
    SqlError::new(SqlState::SyntaxError, format!("invalid type name \"{text}\""))
}

/// Looks a type up.
pub(in crate::session) fn written_type(
    look: &CompileContext<'_>,
    text: &str,
) -> Result<WrittenType> {
    let text = text.trim();
    let lower = text.to_lowercase();
    match &lower[..] {
        "record" => return Ok(WrittenType::Record),
        "void" => return Ok(WrittenType::Void),
        "trigger" => return Ok(WrittenType::Trigger),
        _ => {}
    }
    if let Some(pseudo) = PseudoType::named(&lower) {
        return Ok(WrittenType::Pseudo(pseudo));
    }
    if let Some(name) = lower.strip_suffix("%rowtype") {
        let name = &text[..name.len()];
        return match written_type(look, name) {
            Ok(row @ WrittenType::Row(..)) => Ok(row),
            Ok(_) => Err(no_relation(name.trim())),
            Err(error) if error.state() == SqlState::UndefinedObject => {
                Err(no_relation(name.trim()))
            }
            Err(error) => Err(error),
        };
    }
    if let Some(name) = lower.strip_suffix("%type") {
        let name = &text[..name.len()];
        return Ok(WrittenType::Value(type_of_column(look, name)?.0));
    }
    let found = crate::parse::data_types(text).and_then(|types| match &types[..] {
        [only] => Binder::new(look, "").declared_type(only),
        _ => Err(invalid_type(text)),
    });
    match found {
        Ok(declared) => Ok(match (declared.data_type.record(), declared.data_type.row_object()) {
            (Some(_), Some(_)) if declared.domain.is_some() => {
                let what = format!("the domain {text} over a composite type in a routine");
                return Err(SqlError::unsupported(what));
            }
            (Some(_), Some(id)) => WrittenType::Row(ObjectId(id), declared.data_type),
            _ => WrittenType::Value(declared),
        }),
        Err(error) => {
            let table = parts_of(text).map(|parts| table_named(look, &parts)).transpose()?;
            let row = table.flatten().map(|it| WrittenType::Row(it.id, it.row_data_type()));
            row.ok_or_else(|| match error.state() {
                // Its place would be one in the type's text.
                SqlState::SyntaxError => invalid_type(text),
                _ => error.without_place(),
            })
        }
    }
}

/// Returns the type and the collation of a column that `%TYPE` names.
fn type_of_column(look: &CompileContext<'_>, name: &str) -> Result<(DeclaredType, Derivation)> {
    let parts = parts_of(name).unwrap_or_default();
    let Some((column, of)) = parts.split_last() else { return Err(no_relation(name)) };
    let table = table_named(look, of)?.ok_or_else(|| no_relation(&of.join(".")))?;
    let column = &table.columns[table.known_column(column)?];
    let declared = DeclaredType { data_type: column.data_type, domain: column.domain };
    Ok((declared, Derivation::of_column(column.collation)))
}

/// Returns the columns of a table's rows.
pub(super) fn row_shape(table: &Table) -> RecordFields {
    let columns = table.columns.iter();
    RecordFields::new(
        columns.map(|it| (it.name.clone(), it.data_type, Derivation::of_column(it.collation))),
    )
}

/// Returns the columns of the rows of a table or of a composite type.
pub(super) fn row_columns(
    look: &CompileContext<'_>,
    id: ObjectId,
    data_type: DataType,
) -> RecordFields {
    match look.snapshot.table(id) {
        Some(table) => row_shape(table),
        None => data_type.row_fields().to_vec().into(),
    }
}

/// Looks up the type of a variable.
pub(super) fn variable_kind(look: &CompileContext<'_>, text: &str) -> Result<VariableKind> {
    if let Some(name) = text.to_lowercase().strip_suffix("%type")
        && let Some(name) = text.get(..name.len())
        && let (declared, collation @ (Derivation::Implicit(_) | Derivation::Explicit(_))) =
            type_of_column(look, name)?
    {
        return Ok(VariableKind::Collated(declared.data_type, collation));
    }
    Ok(match written_type(look, text)? {
        WrittenType::Value(DeclaredType { data_type, domain: None }) => {
            VariableKind::Scalar(data_type)
        }
        WrittenType::Value(DeclaredType { data_type, domain: Some(domain) }) => {
            VariableKind::Domain(data_type, domain)
        }
        WrittenType::Row(id, data_type) => VariableKind::Record(row_columns(look, id, data_type)),
        WrittenType::Record => VariableKind::Record(RecordFields::default()),
        WrittenType::Void | WrittenType::Trigger | WrittenType::Pseudo(_) => {
            let message = format!("variable cannot have the pseudo-type {}", text.trim());
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
    })
}
