//! Statements about composite types.

use std::sync::Arc;

use smol_str::SmolStr;

use super::{check_creation, refuse_named, set_owner, target_schema};
use crate::bind::Binder;
use crate::catalog::{Attribute, CompositeType, ObjectId};
use crate::compile::CompileContext;
use crate::ddl::attribute_exists;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{AttributeChange, Name, TypeChange, WrittenAttribute};
use crate::session::Session;
use crate::session::events::NoticeLevel;
use crate::types::DataType;
use crate::types::encoded::MAX_FIELDS;

#[cold]
fn no_attribute(name: &str, of: &str) -> SqlError {
    let message = format!("column \"{name}\" of relation \"{of}\" does not exist");
    SqlError::new(SqlState::UndefinedColumn, message)
}

/// Returns the type of an attribute.
fn attribute_type(written: &WrittenAttribute, look: &CompileContext<'_>) -> Result<DataType> {
    let (text, at) = &written.data_type;
    let types = crate::parse::data_types(text).map_err(|error| error.shifted(*at))?;
    let [only] = &types[..] else {
        let message = format!("invalid type name \"{text}\"");
        return Err(SqlError::new(SqlState::SyntaxError, message).at(*at));
    };
    let lower = text.to_lowercase();
    if ["record", "record[]"].contains(&&lower[..]) {
        let message = format!("column \"{}\" has pseudo-type {lower}", written.name);
        return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
    }
    let declared = Binder::new(look, "").declared_type(only);
    let declared = declared.map_err(|error| error.without_place().at(*at))?;
    let row = declared.data_type.row_object();
    let is_table = row.is_some_and(|id| !look.snapshot.composites.contains_key(&ObjectId(id)));
    match declared.domain.is_some() || is_table {
        true => Err(SqlError::unsupported(format!("an attribute of the type {text}")).at(*at)),
        false => Ok(declared.data_type),
    }
}

fn new_attribute(
    written: &WrittenAttribute,
    known: &CompositeType,
    look: &CompileContext<'_>,
) -> Result<Attribute> {
    let name = written.name.clone();
    let data_type = attribute_type(written, look)?;
    if known.id.0 > 0 && data_type.has_rows_of(known.id.0) {
        let message = format!("composite type {} cannot be made a member of itself", known.name);
        return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
    }
    if known.attributes.len() >= MAX_FIELDS {
        let message = format!("tables can have at most {MAX_FIELDS} columns");
        return Err(SqlError::new(SqlState::TooManyColumns, message));
    }
    Ok(Attribute { name, data_type })
}

/// CREATE TYPE … AS (…).
pub(super) fn create_composite(
    (schema, name): &Name,
    attributes: &[WrittenAttribute],
    look: &CompileContext<'_>,
) -> Result<()> {
    let schema = check_creation(schema.as_ref(), name, look)?;
    let (id, name) = (ObjectId(0), name.clone());
    let mut known = CompositeType { id, schema, name, attributes: Vec::new() };
    for attribute in attributes {
        if known.position(&attribute.name).is_some() {
            let message = format!("column \"{}\" specified more than once", attribute.name);
            return Err(SqlError::new(SqlState::DuplicateColumn, message));
        }
        let attribute = new_attribute(attribute, &known, look)?;
        known.attributes.push(attribute);
    }
    look.catalog.create_composite(look.transaction, known)
}

/// Refuses a change of the type of an attribute while a column has values of it.
fn check_unused(known: &CompositeType, look: &CompileContext<'_>) -> Result<()> {
    let mut tables = look.snapshot.tables();
    let used = tables.find_map(|table| {
        let column = table.columns.iter().find(|it| it.data_type.has_rows_of(known.id.0))?;
        Some((table, column))
    });
    let Some((table, column)) = used else { return Ok(()) };
    let message = format!(
        "cannot alter type \"{}\" because column \"{}.{}\" uses it",
        known.name, table.name, column.name
    );
    Err(SqlError::new(SqlState::FeatureNotSupported, message))
}

impl Session {
    /// ALTER TYPE of a composite type.
    pub(super) fn alter_composite(
        &self,
        known: &Arc<CompositeType>,
        change: &TypeChange,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let mut new = (**known).clone();
        let mut fields: Option<Vec<Option<usize>>> = None;
        let kept = || (0..known.attributes.len()).map(Some).collect::<Vec<_>>();
        match change {
            TypeChange::Attributes(changes) => {
                refuse_named(look.snapshot, known.id, &known.name, "altering")?;
                let mut all = kept();
                for change in changes {
                    self.change_attribute(change, (&mut new, &mut all), look)?;
                }
                fields = Some(all);
            }
            TypeChange::RenameAttribute(from, to) => {
                refuse_named(look.snapshot, known.id, &known.name, "altering")?;
                let at = known.position(from).ok_or_else(|| no_attribute(from, &known.name))?;
                if known.position(to).is_some() {
                    return Err(attribute_exists(to, &known.name));
                }
                new.attributes[at].name = to.clone();
                fields = Some(kept());
            }
            TypeChange::Rename(to) => {
                refuse_named(look.snapshot, known.id, &known.name, "renaming")?;
                new.name = to.clone();
            }
            TypeChange::Schema(schema) => {
                refuse_named(look.snapshot, known.id, &known.name, "moving")?;
                new.schema = target_schema(Some(schema), look)?;
            }
            TypeChange::Owner(name) => return set_owner(known.id, name, look),
            TypeChange::AddValue(..) | TypeChange::RenameValue(..) => {
                let message = format!("\"{}\" is not an enum", known.name);
                return Err(SqlError::new(SqlState::WrongObjectType, message));
            }
            _ => {
                let message = format!("\"{}\" is not a domain", known.name);
                return Err(SqlError::new(SqlState::WrongObjectType, message));
            }
        }
        look.catalog.alter_composite(look.transaction, new, fields.as_deref())
    }

    fn change_attribute(
        &self,
        change: &AttributeChange,
        (new, fields): (&mut CompositeType, &mut Vec<Option<usize>>),
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let missing = |name: &SmolStr| no_attribute(name, &new.name);
        match change {
            AttributeChange::Add(written) => {
                if new.position(&written.name).is_some() {
                    return Err(attribute_exists(&written.name, &new.name));
                }
                let attribute = new_attribute(written, new, look)?;
                new.attributes.push(attribute);
                fields.push(None);
            }
            AttributeChange::Drop(name, if_exists) => {
                let Some(at) = new.position(name) else {
                    if !*if_exists {
                        return Err(missing(name));
                    }
                    let of = new.name.clone();
                    self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, || {
                        format!("column \"{name}\" of relation \"{of}\" does not exist, skipping")
                    });
                    return Ok(());
                };
                new.attributes.remove(at);
                fields.remove(at);
            }
            AttributeChange::Type(written) => {
                let at = new.position(&written.name).ok_or_else(|| missing(&written.name))?;
                check_unused(new, look)?;
                new.attributes[at] = new_attribute(written, new, look)?;
            }
        }
        Ok(())
    }
}
