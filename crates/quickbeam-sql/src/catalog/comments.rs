//! The comments on all objects, as the catalogs and the statements of a dump list them.

use std::sync::Arc;

use super::CatalogSnapshot;
use super::describe::quoted_if_needed;
use super::system::{
    CLASS_OF_CLASS, check_oid, constraint_oid, foreign_key_oid, object_oid, role_oid, row_type_oid,
};
use super::text::{literal, quoted, quoted_relation};
use crate::schema::names::is_temporary_schema;
use crate::schema::{DATABASE_ID, Index, ObjectId, PUBLIC_SCHEMA_ID, Relation, Table};

/// OIDs of the catalogs whose objects have comments.
const CLASS_OF_TYPES: i64 = 1247;
const CLASS_OF_ROUTINES: i64 = 1255;
const CLASS_OF_ROLES: i64 = 1260;
const CLASS_OF_DATABASES: i64 = 1262;
const CLASS_OF_CONSTRAINTS: i64 = 2606;
const CLASS_OF_SCHEMAS: i64 = 2615;
const CLASS_OF_TRIGGERS: i64 = 2620;
const CLASS_OF_COLLATIONS: i64 = 3456;
/// The OID of the only database.
const DATABASE_OID: i64 = 5;

/// A comment.
#[derive(Clone, Debug)]
pub struct Comment<'s> {
    /// The OID of the object.
    pub oid: i64,
    /// The OID of the catalog that lists the object.
    pub class: i64,
    /// The number of the column, or 0.
    pub number: u16,
    /// The comment.
    pub text: &'s str,
    /// Whether the object belongs to all databases: `pg_shdescription` lists the comment.
    pub is_shared: bool,
    owner: CommentOwner<'s>,
}

/// The object that has a comment.
#[derive(Clone, Copy, Debug)]
enum CommentOwner<'s> {
    /// A table, or its column of the comment's number.
    Table(&'s Table),
    /// A constraint of a table, by its name.
    Constraint(&'s Table, &'s str),
    /// Any other object.
    Object(ObjectId),
}

/// Returns the OID of the constraint of that name.
fn named_constraint(table: &Table, name: &str) -> Option<i64> {
    if table.primary_key.as_ref().is_some_and(|key| key.name == name) {
        return Some(constraint_oid(table.id));
    }
    let is_named = |index: &&Arc<Index>| index.is_constraint && index.name == name;
    if let Some(index) = table.indexes.iter().find(is_named) {
        return Some(constraint_oid(index.id));
    }
    if table.checks.iter().any(|check| check.name == name) {
        return Some(check_oid(table, name));
    }
    let is_foreign_key = table.foreign_keys.iter().any(|key| key.name == name);
    is_foreign_key.then(|| foreign_key_oid(table, name))
}

impl CatalogSnapshot {
    /// Returns the comments on all objects.
    #[must_use]
    pub fn all_comments(&self) -> Vec<Comment<'_>> {
        let mut all: Vec<Comment<'_>> = Vec::new();
        self.tables.values().for_each(|table| table_comments(table, &mut all));
        for (&id, comments) in &self.comments {
            for (&number, text) in &comments.0 {
                if let Some(comment) = self.object_comment(id, number, text) {
                    all.push(comment);
                }
            }
        }
        all
    }

    /// Returns the COMMENT ON statement, or `None` for an object that a dump leaves out.
    #[must_use]
    pub fn comment_statement(&self, comment: &Comment<'_>) -> Option<String> {
        let (object, is_temporary) = match comment.owner {
            CommentOwner::Table(table) => {
                let name = quoted_relation(&table.schema, &table.name);
                let column = table.position_of(comment.number).and_then(|at| table.columns.get(at));
                let object = match column {
                    Some(column) => format!("COLUMN {name}.{}", quoted(&column.name)),
                    None => format!("{} {name}", table.word().to_uppercase()),
                };
                (object, is_temporary_schema(&table.schema))
            }
            CommentOwner::Constraint(table, name) => {
                let of = quoted_relation(&table.schema, &table.name);
                let object = format!("CONSTRAINT {} ON {of}", quoted_if_needed(name));
                (object, is_temporary_schema(&table.schema))
            }
            CommentOwner::Object(id) => {
                (self.named_object(id, comment.number)?, self.is_temporary(id))
            }
        };
        (!is_temporary).then(|| format!("COMMENT ON {object} IS {}", literal(comment.text)))
    }

    /// Returns the comment on an object that is no table. Returns `None` if the object is gone.
    fn object_comment<'s>(
        &'s self,
        id: ObjectId,
        number: u16,
        text: &'s str,
    ) -> Option<Comment<'s>> {
        let is_shared = id == DATABASE_ID || self.roles.contains_key(&id);
        let is_type = self.domains.contains_key(&id) || self.enums.contains_key(&id);
        let (oid, class) = if id == DATABASE_ID {
            (DATABASE_OID, CLASS_OF_DATABASES)
        } else if self.roles.contains_key(&id) {
            (role_oid(id), CLASS_OF_ROLES)
        } else if id == PUBLIC_SCHEMA_ID {
            (self.schema_oid("public"), CLASS_OF_SCHEMAS)
        } else if self.schemas.values().any(|schema| schema.id == id) {
            (object_oid(id), CLASS_OF_SCHEMAS)
        } else if self.routines.contains_key(&id) {
            (object_oid(id), CLASS_OF_ROUTINES)
        } else if self.triggers.contains_key(&id) {
            (object_oid(id), CLASS_OF_TRIGGERS)
        } else if self.collations.contains_key(&id) {
            (object_oid(id), CLASS_OF_COLLATIONS)
        } else if is_type {
            (object_oid(id), CLASS_OF_TYPES)
        } else if self.composites.contains_key(&id) {
            (row_type_oid(id), CLASS_OF_TYPES)
        } else {
            self.relation_by_id(id)?;
            (object_oid(id), CLASS_OF_CLASS)
        };
        let owner = CommentOwner::Object(id);
        Some(Comment { oid, class, number, text, is_shared, owner })
    }

    /// Returns an object that is no table as COMMENT ON names it, or `None` for one that a dump
    /// leaves out.
    pub(super) fn named_object(&self, id: ObjectId, number: u16) -> Option<String> {
        if id == PUBLIC_SCHEMA_ID {
            return Some("SCHEMA public".to_owned());
        }
        if let Some(schema) = self.schemas.values().find(|schema| schema.id == id) {
            return Some(format!("SCHEMA {}", quoted(&schema.name)));
        }
        if let Some(routine) = self.routines.get(&id) {
            let name = quoted_relation(&routine.schema, &routine.name);
            let types: Vec<String> = routine.signature_names();
            let word = routine.word().to_uppercase();
            return Some(format!("{word} {name}({})", types.join(", ")));
        }
        if let Some(trigger) = self.triggers.get(&id) {
            let name = self.relation_name(trigger.relation)?;
            return Some(format!("TRIGGER {} ON {name}", quoted(&trigger.name)));
        }
        if let Some(domain) = self.domains.get(&id) {
            return Some(format!("DOMAIN {}", quoted_relation(&domain.schema, &domain.name)));
        }
        if let Some(made) = self.collations.get(&id) {
            return Some(format!("COLLATION {}", quoted_relation(&made.schema, &made.name)));
        }
        let of_enum = self.enums.get(&id).map(|known| (&known.schema, &known.name));
        let composite = self.composites.get(&id).map(|known| (&known.schema, &known.name));
        if let Some((schema, name)) = of_enum.or(composite) {
            return Some(format!("TYPE {}", quoted_relation(schema, name)));
        }
        self.relation_object(id, number)
    }

    /// Returns whether a view, sequence or index, or the relation of a trigger, is temporary.
    fn is_temporary(&self, id: ObjectId) -> bool {
        let relation = self.triggers.get(&id).map_or(id, |trigger| trigger.relation);
        let schema = self.relation_by_id(relation).map(|relation| match relation {
            Relation::Table(table) | Relation::Index(table, _) => table.schema.clone(),
            Relation::View(view) => view.schema.clone(),
            Relation::Sequence(sequence) => sequence.schema.clone(),
        });
        schema.is_some_and(|schema| is_temporary_schema(&schema))
    }

    /// Returns the quoted name of a table or view.
    fn relation_name(&self, id: ObjectId) -> Option<String> {
        if let Some(table) = self.tables.get(&id) {
            return Some(quoted_relation(&table.schema, &table.name));
        }
        let view = self.views.get(&id)?;
        Some(quoted_relation(&view.schema, &view.name))
    }

    /// Returns a view, its column, a sequence or an index as COMMENT ON names it.
    fn relation_object(&self, id: ObjectId, number: u16) -> Option<String> {
        if let Some(view) = self.views.get(&id) {
            let name = quoted_relation(&view.schema, &view.name);
            let Some(at) = usize::from(number).checked_sub(1) else {
                return Some(format!("VIEW {name}"));
            };
            return Some(format!("COLUMN {name}.{}", quoted(view.columns.get(at)?)));
        }
        if let Some(sequence) = self.sequences.get(&id) {
            let name = quoted_relation(&sequence.schema, &sequence.name);
            return Some(format!("SEQUENCE {name}"));
        }
        let mut indexes = self
            .tables
            .values()
            .flat_map(|table| table.indexes.iter().map(move |index| (&table.schema, index)));
        let (schema, index) = indexes.find(|(_, index)| index.id == id)?;
        Some(format!("INDEX {}", quoted_relation(schema, &index.name)))
    }
}

/// Adds the comments on a table, its columns and its constraints.
fn table_comments<'s>(table: &'s Table, all: &mut Vec<Comment<'s>>) {
    let is_shared = false;
    for (&number, text) in &table.comments {
        if number == 0 || table.position_of(number).is_some() {
            let (oid, class) = (object_oid(table.id), CLASS_OF_CLASS);
            let owner = CommentOwner::Table(table);
            all.push(Comment { oid, class, number, text, is_shared, owner });
        }
    }
    for (constraint, text) in &table.constraint_comments {
        if let Some(oid) = named_constraint(table, constraint) {
            let (class, owner) =
                (CLASS_OF_CONSTRAINTS, CommentOwner::Constraint(table, constraint));
            all.push(Comment { oid, class, number: 0, text, is_shared, owner });
        }
    }
}
