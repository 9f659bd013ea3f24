//! Statements about enumerated types.

use std::sync::Arc;

use smol_str::SmolStr;

use super::labels::refuse_label;
use super::{check_creation, refuse_named, set_owner, target_schema};
use crate::catalog::{EnumType, ObjectId};
use crate::compile::CompileContext;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{Name, Neighbour, TypeChange};
use crate::session::Session;
use crate::session::events::NoticeLevel;

/// Maximum bytes of a label.
const LABEL_LIMIT: usize = 63;

#[cold]
fn no_label(label: &str) -> SqlError {
    let message = format!("\"{label}\" is not an existing enum label");
    SqlError::new(SqlState::InvalidParameterValue, message)
}

#[cold]
fn label_exists(label: &str) -> SqlError {
    let message = format!("enum label \"{label}\" already exists");
    SqlError::new(SqlState::DuplicateObject, message)
}

fn check_label(label: &str) -> Result<()> {
    if label.is_empty() || label.len() > LABEL_LIMIT || label.contains('\0') {
        let message = format!("invalid enum label \"{label}\"");
        let detail = format!("Labels must be {LABEL_LIMIT} bytes or less.");
        return Err(SqlError::new(SqlState::InvalidName, message).with_detail(detail));
    }
    Ok(())
}

/// CREATE TYPE … AS ENUM.
pub(super) fn create_enum(
    (schema, name): &Name,
    labels: &[SmolStr],
    look: &CompileContext<'_>,
) -> Result<()> {
    let schema = check_creation(schema.as_ref(), name, look)?;
    let mut known = EnumType { id: ObjectId(0), schema, name: name.clone(), labels: Vec::new() };
    for label in labels {
        check_label(label)?;
        if known.position(label).is_some() {
            let message =
                "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
            return Err(SqlError::new(SqlState::UniqueViolation, message)
                .with_detail(format!("The label \"{label}\" is written twice.")));
        }
        known.insert(known.labels.len(), label.clone());
    }
    look.catalog.create_enum(look.transaction, known)
}

impl Session {
    /// ALTER TYPE of an enumerated type.
    pub(super) fn alter_enum(
        &self,
        known: &Arc<EnumType>,
        change: &TypeChange,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let mut new = (**known).clone();
        match change {
            TypeChange::AddValue(label, if_not_exists, neighbour) => {
                check_label(label)?;
                if known.position(label).is_some() {
                    if !*if_not_exists {
                        return Err(label_exists(label));
                    }
                    self.notice(NoticeLevel::Notice, SqlState::DuplicateObject, || {
                        format!("enum label \"{label}\" already exists, skipping")
                    });
                    return Ok(());
                }
                let position = |label: &str| known.position(label).ok_or_else(|| no_label(label));
                let at = match neighbour {
                    None => known.labels.len(),
                    Some(Neighbour::Before(label)) => position(label)?,
                    Some(Neighbour::After(label)) => position(label)? + 1,
                };
                if !new.insert(at, label.clone()) {
                    let what = "another label between two that were added one after the other";
                    return Err(SqlError::unsupported(what).with_hint(
                        "Make a type with all labels, and give the columns that type.",
                    ));
                }
            }
            TypeChange::RenameValue(from, to) => {
                check_label(to)?;
                let at = known.position(from).ok_or_else(|| no_label(from))?;
                if known.position(to).is_some() {
                    return Err(label_exists(to));
                }
                refuse_label(look.snapshot, known, from)?;
                new.labels[at].label = to.clone();
                return look.catalog.rename_label(look.transaction, new, from, to);
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
            _ => {
                let message = format!("\"{}\" is not a domain", known.name);
                return Err(SqlError::new(SqlState::WrongObjectType, message));
            }
        }
        look.catalog.alter_enum(look.transaction, new)
    }
}
