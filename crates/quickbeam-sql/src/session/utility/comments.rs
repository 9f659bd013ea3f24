//! COMMENT ON.

use super::accepted::{PLPGSQL, no_extension};
use crate::bind::{Binder, Names};
use crate::catalog::rights::not_owner;
use crate::catalog::{CatalogSnapshot, DATABASE_ID, ObjectId, Relation, is_system_schema};
use crate::compile::CompileContext;
use crate::ddl::{CommentTarget, no_trigger, no_type};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{CommentStatement, CommentedObject, Name};
use crate::schema::errors::{is_not, no_column, no_definition, no_relation, no_schema};
use crate::session::Session;
use crate::session::events::NoticeLevel;
use crate::session::user_types::made_collation;

#[cold]
fn no_constraint(table: &str, name: &str) -> SqlError {
    let message = format!("constraint \"{name}\" for table \"{table}\" does not exist");
    SqlError::new(SqlState::UndefinedObject, message)
}

impl Session {
    /// Executes COMMENT ON.
    pub(in crate::session) fn change_comment(
        &self,
        statement: &CommentStatement,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let Some(target) = self.comment_target(&statement.object, look)? else { return Ok(()) };
        look.catalog.set_comment(look.transaction, target, statement.text.clone())
    }

    /// Returns what a comment is on, or `None` if it is not kept.
    fn comment_target(
        &self,
        object: &CommentedObject,
        look: &CompileContext<'_>,
    ) -> Result<Option<CommentTarget>> {
        let owned = OwnedTargets { look };
        Ok(Some(match object {
            CommentedObject::Relation(kind, name) => owned.relation(kind, name)?,
            CommentedObject::Column(name, column) => owned.column(name, column)?,
            CommentedObject::Constraint(name, table) => owned.constraint(name, table)?,
            CommentedObject::Trigger(name, relation) => {
                let relation = owned.named(relation)?;
                let (id, _) = relation.protected();
                let found = look.snapshot.trigger_named(id, name);
                let trigger = found.ok_or_else(|| no_trigger(relation_name(&relation), name))?;
                owned.check(id, relation.word(), relation_name(&relation))?;
                CommentTarget::Object(trigger.id, 0)
            }
            CommentedObject::Schema(name) => {
                if !look.snapshot.has_schema(name) || is_system_schema(name) {
                    return Err(no_schema(name));
                }
                let id = look.snapshot.schema_id(name);
                owned.check(id, "schema", name)?;
                CommentTarget::Object(id, 0)
            }
            CommentedObject::Database(name) => {
                if name != "quickbeam" && name != "postgres" {
                    let message = format!("database \"{name}\" does not exist");
                    return Err(SqlError::new(SqlState::InvalidCatalogName, message));
                }
                owned.check(DATABASE_ID, "database", name)?;
                CommentTarget::Object(DATABASE_ID, 0)
            }
            CommentedObject::Role(name) => {
                let role = look.snapshot.known_role(name)?;
                owned.check_role(role)?;
                CommentTarget::Object(role, 0)
            }
            CommentedObject::Type(kind, name) => owned.user_type(kind, name)?,
            CommentedObject::Routine(kind, name, types) => {
                let routine = self.known_routine(kind, name, types.as_deref(), look)?;
                owned.check(routine.id, routine.word(), &routine.name)?;
                CommentTarget::Object(routine.id, 0)
            }
            CommentedObject::Collation(name) => {
                let made = made_collation(name, look)?;
                owned.check(made.id, "collation", &made.name)?;
                CommentTarget::Object(made.id, 0)
            }
            CommentedObject::Extension(name) => {
                if name != PLPGSQL {
                    return Err(no_extension(name));
                }
                self.notice(NoticeLevel::Warning, SqlState::FeatureNotSupported, || {
                    format!("the comment on extension \"{name}\" is not kept")
                });
                return Ok(None);
            }
        }))
    }
}

/// Returns the own name of a relation.
pub(super) fn relation_name(relation: &Relation) -> &str {
    match relation {
        Relation::Table(table) => &table.name,
        Relation::View(view) => &view.name,
        Relation::Sequence(sequence) => &sequence.name,
        Relation::Index(_, index) => &index.name,
    }
}

/// Finds objects that the user owns.
struct OwnedTargets<'c> {
    look: &'c CompileContext<'c>,
}

impl OwnedTargets<'_> {
    fn snapshot(&self) -> &CatalogSnapshot {
        self.look.snapshot
    }

    fn check(&self, id: ObjectId, word: &str, name: &str) -> Result<()> {
        match self.look.role {
            Some(role) if !self.snapshot().owns(role, id) => Err(not_owner(word, name)),
            _ => Ok(()),
        }
    }

    /// Only a superuser, or one who may make roles, comments on a role.
    fn check_role(&self, role: ObjectId) -> Result<()> {
        let Some(user) = self.look.role else { return Ok(()) };
        let may_create = self.snapshot().role(user).is_some_and(|user| user.create_role);
        let is_superuser = self.snapshot().is_superuser(role);
        match may_create && !is_superuser {
            true => Ok(()),
            false if is_superuser => {
                let message = "must be superuser";
                Err(SqlError::new(SqlState::InsufficientPrivilege, message))
            }
            false => {
                let message = "must have CREATEROLE privilege";
                Err(SqlError::new(SqlState::InsufficientPrivilege, message))
            }
        }
    }

    fn named(&self, (schema, name): &Name) -> Result<Relation> {
        let lookup = Binder::new(self.look, "").lookup(schema.as_deref(), name)?;
        match self.look.relation(&lookup)? {
            Some(Relation::Table(table)) if table.is_database() => Err(no_definition(name)),
            Some(relation) => Ok(relation),
            None => Err(no_relation(&lookup)),
        }
    }

    fn relation(&self, kind: &'static str, name: &Name) -> Result<CommentTarget> {
        let relation = self.named(name)?;
        if relation.word() != kind {
            let article = if kind == "index" { "an" } else { "a" };
            return Err(is_not(&name.1, &format!("{article} {kind}")));
        }
        self.check(relation.protected().0, relation.word(), &name.1)?;
        Ok(match relation {
            Relation::Table(table) => CommentTarget::Table(table.id, 0),
            Relation::View(view) => CommentTarget::Object(view.id, 0),
            Relation::Sequence(sequence) => CommentTarget::Object(sequence.id, 0),
            Relation::Index(_, index) => CommentTarget::Object(index.id, 0),
        })
    }

    fn column(&self, name: &Name, column: &str) -> Result<CommentTarget> {
        let relation = self.named(name)?;
        self.check(relation.protected().0, relation.word(), &name.1)?;
        match relation {
            Relation::Table(table) => {
                let found = table.columns.iter().find(|known| known.name == column);
                let found = found.ok_or_else(|| no_column(&table.name, column))?;
                Ok(CommentTarget::Table(table.id, found.id))
            }
            Relation::View(view) => {
                let found = view.columns.iter().position(|known| known == column);
                let number = found.and_then(|at| u16::try_from(at + 1).ok());
                let number = number.ok_or_else(|| no_column(&view.name, column))?;
                Ok(CommentTarget::Object(view.id, number))
            }
            Relation::Sequence(_) | Relation::Index(..) => {
                let message = format!(
                    "relation \"{}\" is not a table, view, materialized view, composite type, or foreign table",
                    name.1
                );
                Err(SqlError::new(SqlState::WrongObjectType, message))
            }
        }
    }

    fn user_type(&self, kind: &str, name: &Name) -> Result<CommentTarget> {
        let shown = || match &name.0 {
            Some(schema) => format!("{schema}.{}", name.1),
            None => name.1.to_string(),
        };
        let binder = Binder::new(self.look, "");
        let found = binder.type_named(name.0.as_deref(), &name.1)?;
        let (id, snapshot) = found.ok_or_else(|| no_type(&shown()))?;
        if kind == "DOMAIN" && snapshot.domain(id).is_none() {
            let message = format!("\"{}\" is not a domain", name.1);
            return Err(SqlError::new(SqlState::WrongObjectType, message));
        }
        self.check(id, "type", &name.1)?;
        Ok(CommentTarget::Object(id, 0))
    }

    fn constraint(&self, name: &str, table: &Name) -> Result<CommentTarget> {
        let Relation::Table(found) = self.named(table)? else {
            return Err(is_not(&table.1, "a table"));
        };
        self.check(found.id, "table", &found.name)?;
        if !found.has_constraint(name) {
            return Err(no_constraint(&found.name, name));
        }
        Ok(CommentTarget::Constraint(found.id, name.into()))
    }
}
