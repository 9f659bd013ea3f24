//! Definitions as SQL text: the statements that make the objects of a catalog again.
//!
//! Above: programs that move tables, such as `quickbeam dump`. Below: the catalog's objects.
//! Sequences come first, then tables, indexes, foreign keys and views; rows belong between the
//! tables and the indexes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use super::CatalogSnapshot;
use crate::schema::names::{PUBLIC, is_temporary_schema};
use crate::schema::{
    Column, ForeignKey, ForeignKeyAction, Index, KeyColumn, Method, ObjectId, Relation, Sequence,
    Table, View,
};
use crate::types::Collation;

/// Whose statements they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Quickbeam's, with all that it knows of.
    Quickbeam,
    /// Those that PostgreSQL reads, too: of hash keys and hash indexes that it does not have,
    /// ordered ones.
    Portable,
}

/// A name in quotes, as a statement has it.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The name of a relation in quotes, with its schema unless that is `public`.
#[must_use]
pub fn quoted_relation(schema: &str, name: &str) -> String {
    if schema == PUBLIC {
        return quoted(name);
    }
    format!("{}.{}", quoted(schema), quoted(name))
}

/// CREATE SCHEMA of each schema.
pub fn create_schemas(catalog: &CatalogSnapshot) -> impl Iterator<Item = String> + '_ {
    let permanent = catalog.schemas().filter(|schema| !is_temporary_schema(&schema.name));
    permanent.map(|schema| format!("CREATE SCHEMA {}", quoted(&schema.name)))
}

fn quoted_table(table: &Table) -> String {
    quoted_relation(&table.schema, &table.name)
}

/// A text as a literal.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn quoted_columns<'c>(table: &Table, positions: impl Iterator<Item = &'c usize>) -> String {
    let columns = positions.filter_map(|position| table.columns.get(*position));
    columns.map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
}

/// What CREATE SEQUENCE and an identity column say, but for the type.
fn sequence_options(sequence: &Sequence) -> String {
    format!(
        "INCREMENT BY {} MINVALUE {} MAXVALUE {} START WITH {} {}",
        sequence.increment,
        sequence.minimum,
        sequence.maximum,
        sequence.start,
        if sequence.cycle { "CYCLE" } else { "NO CYCLE" }
    )
}

/// CREATE SEQUENCE.
#[must_use]
pub fn create_sequence(sequence: &Sequence) -> String {
    let name = quoted_relation(&sequence.schema, &sequence.name);
    let options = sequence_options(sequence);
    format!("CREATE SEQUENCE {name} AS {} {options}", sequence.data_type)
}

/// The call of `setval` that makes `next` the next value; none: the sequence has come to its end.
#[must_use]
pub fn set_sequence(catalog: &CatalogSnapshot, sequence: &Sequence, next: Option<i64>) -> String {
    let name = match catalog.identity_of(sequence) {
        // The name that the sequence of an identity column will have depends on which names are
        // taken by then.
        Some((table, column)) => format!(
            "pg_get_serial_sequence({}, {})",
            literal(&quoted_table(table)),
            literal(&column.name)
        ),
        None => literal(&quoted_relation(&sequence.schema, &sequence.name)),
    };
    let last = if sequence.increment > 0 { sequence.maximum } else { sequence.minimum };
    format!("SELECT setval({name}, {}, {})", next.unwrap_or(last), next.is_none())
}

fn quoted_collation(collation: Collation) -> String {
    let definition = collation.definition();
    match definition.object {
        Some(_) => quoted_relation(&definition.schema, &definition.name),
        None => quoted(&definition.name),
    }
}

fn column_text(catalog: &CatalogSnapshot, column: &Column) -> String {
    let mut text = format!("{} {}", quoted(&column.name), catalog.column_type(column));
    if let Some(own) = column.collation {
        let _ = write!(text, " COLLATE {}", quoted_collation(own));
    }
    if column.not_null {
        text.push_str(" NOT NULL");
    }
    if let Some(identity) = column.identity {
        let kind = if identity.always { "ALWAYS" } else { "BY DEFAULT" };
        let options =
            catalog.sequence(identity.sequence).map(|sequence| sequence_options(sequence));
        // Writing to a string does not fail.
        let _ = write!(
            text,
            " GENERATED {kind} AS IDENTITY ({})",
            options.as_deref().unwrap_or_default()
        );
    } else if let (Some(_), Some(expression)) = (&column.generated, &column.default) {
        let _ = write!(text, " GENERATED ALWAYS AS ({expression}) STORED");
    } else if let Some(default) = &column.default {
        let _ = write!(text, " DEFAULT {default}");
    }
    text
}

fn key_text(name: &str, kind: &str, columns: &str, method: Method, wording: Wording) -> String {
    let hash =
        if method == Method::Hash && wording == Wording::Quickbeam { " USING HASH" } else { "" };
    format!("CONSTRAINT {} {kind} ({columns}){hash}", quoted(name))
}

/// The clause INCLUDE.
fn include_text(table: &Table, index: &Index) -> String {
    match &index.include[..] {
        [] => String::new(),
        include => format!(" INCLUDE ({})", quoted_columns(table, include.iter())),
    }
}

/// CREATE TABLE, with all constraints but foreign keys and those that are NOT VALID.
#[must_use]
pub fn create_table(catalog: &CatalogSnapshot, table: &Table, wording: Wording) -> String {
    let mut parts: Vec<String> =
        table.columns.iter().map(|column| column_text(catalog, column)).collect();
    if let Some(key) = &table.primary_key {
        let columns = quoted_columns(table, key.columns.iter());
        parts.push(key_text(&key.name, "PRIMARY KEY", &columns, key.method, wording));
    }
    for index in table.indexes.iter().filter(|index| index.is_constraint) {
        let columns = quoted_columns(table, index.columns.iter().map(|column| &column.position));
        let kind = match index.nulls_not_distinct {
            _ if index.is_primary => "PRIMARY KEY",
            true => "UNIQUE NULLS NOT DISTINCT",
            false => "UNIQUE",
        };
        let key = key_text(&index.name, kind, &columns, index.method, wording);
        parts.push(format!("{key}{}{}", include_text(table, index), index.timing.clauses()));
    }
    for check in table.checks.iter().filter(|check| !check.not_valid) {
        let no_inherit = if check.no_inherit { " NO INHERIT" } else { "" };
        let (name, condition) = (quoted(&check.name), &check.expression);
        parts.push(format!("CONSTRAINT {name} CHECK ({condition}){no_inherit}"));
    }
    format!("CREATE TABLE {} ({})", quoted_table(table), parts.join(", "))
}

/// CREATE INDEX of each index that is no constraint.
pub fn create_indexes(table: &Table, wording: Wording) -> impl Iterator<Item = String> + '_ {
    let indexes = table.indexes.iter().filter(|index| !index.is_constraint);
    indexes.map(move |index| create_index(table, index, wording))
}

fn create_index(table: &Table, index: &Index, wording: Wording) -> String {
    let unique = if index.unique { "UNIQUE " } else { "" };
    // PostgreSQL has hash indexes of one column, which are not unique.
    let is_hash = index.method == Method::Hash
        && (wording == Wording::Quickbeam || (!index.unique && index.columns.len() == 1));
    let using = match index.inverted() {
        Some(_) => " USING gin",
        None if is_hash => " USING HASH",
        None => "",
    };
    let column = |(number, key): (usize, &KeyColumn)| {
        let name = match index.expression(key.position) {
            Some(expression) => format!("({})", expression.text),
            None => quoted(&table.columns.get(key.position)?.name),
        };
        if let Some(class) = index.inverted_key(number) {
            return Some(match class.is_default() {
                true => name,
                false => format!("{name} {}", class.name()),
            });
        }
        let collation = match index.other_collation(table, key) {
            None => String::new(),
            Some(other) => {
                format!(" COLLATE {}", other.map_or("\"C\"".into(), quoted_collation))
            }
        };
        let direction = if key.descending { " DESC" } else { "" };
        let nulls = match (key.descending, key.nulls_first) {
            (false, true) => " NULLS FIRST",
            (true, false) => " NULLS LAST",
            _ => "",
        };
        Some(match is_hash {
            true => format!("{name}{collation}"),
            false => format!("{name}{collation}{direction}{nulls}"),
        })
    };
    let columns: Vec<String> = index.columns.iter().enumerate().filter_map(column).collect();
    let (name, on) = (quoted(&index.name), quoted_table(table));
    let include = include_text(table, index);
    let nulls = if index.nulls_not_distinct { " NULLS NOT DISTINCT" } else { "" };
    let columns = columns.join(", ");
    let only = match &index.predicate {
        Some(predicate) => format!(" WHERE {}", predicate.text),
        None => String::new(),
    };
    format!("CREATE {unique}INDEX {name} ON {on}{using} ({columns}){include}{nulls}{only}")
}

/// ALTER TABLE … ADD CONSTRAINT of each foreign key, and of each CHECK that is NOT VALID.
pub fn add_foreign_keys<'t>(
    catalog: &'t CatalogSnapshot,
    table: &'t Table,
) -> impl Iterator<Item = String> + 't {
    let checks = table.checks.iter().filter(|check| check.not_valid).map(|check| {
        format!(
            "ALTER TABLE {} ADD CONSTRAINT {} CHECK ({}){} NOT VALID",
            quoted_table(table),
            quoted(&check.name),
            check.expression,
            if check.no_inherit { " NO INHERIT" } else { "" }
        )
    });
    let keys = table.foreign_keys.iter();
    checks.chain(keys.filter_map(|key| add_foreign_key(catalog, table, key)))
}

fn add_foreign_key(catalog: &CatalogSnapshot, table: &Table, key: &ForeignKey) -> Option<String> {
    let parent = catalog.table(key.parent)?;
    let positions: Option<Vec<usize>> =
        key.parent_columns.iter().map(|id| parent.position_of(*id)).collect();
    let mut text = format!(
        "ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({})",
        quoted_table(table),
        quoted(&key.name),
        quoted_columns(table, key.columns.iter()),
        quoted_table(parent),
        quoted_columns(parent, positions?.iter())
    );
    if key.is_full {
        text.push_str(" MATCH FULL");
    }
    for (on, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
        let action = match action {
            ForeignKeyAction::NoAction => continue,
            ForeignKeyAction::Restrict => "RESTRICT",
            ForeignKeyAction::Cascade => "CASCADE",
            ForeignKeyAction::SetNull => "SET NULL",
            ForeignKeyAction::SetDefault => "SET DEFAULT",
        };
        let _ = write!(text, " ON {on} {action}");
        if on == "DELETE" && !key.delete_columns.is_empty() {
            let set = key.delete_columns.iter().filter_map(|id| table.position_of(*id));
            let set: Vec<usize> = set.collect();
            let _ = write!(text, " ({})", quoted_columns(table, set.iter()));
        }
    }
    text.push_str(key.timing.clauses());
    if key.not_valid {
        text.push_str(" NOT VALID");
    }
    Some(text)
}

/// CREATE VIEW.
#[must_use]
pub fn create_view(view: &View) -> String {
    let columns: Vec<String> = view.columns.iter().map(|name| quoted(name)).collect();
    let options: Vec<String> =
        view.options.pairs().map(|(name, value)| format!("{name}={}", literal(value))).collect();
    let options = match options.is_empty() {
        true => String::new(),
        false => format!(" WITH ({})", options.join(", ")),
    };
    format!(
        "CREATE VIEW {} ({}){options} AS {}",
        quoted_relation(&view.schema, &view.name),
        columns.join(", "),
        view.query
    )
}

/// ALTER VIEW … SET DEFAULT of each column of a view that has one.
pub fn view_defaults(view: &View) -> impl Iterator<Item = String> + '_ {
    view.defaults.iter().filter_map(|(position, text)| {
        let column = view.columns.get(usize::from(*position))?;
        let name = quoted_relation(&view.schema, &view.name);
        Some(format!("ALTER VIEW {name} ALTER COLUMN {} SET DEFAULT {text}", quoted(column)))
    })
}

impl CatalogSnapshot {
    /// Sequences that belong to no identity column, in the order in which they were made.
    pub fn free_sequences(&self) -> impl Iterator<Item = &Sequence> {
        let all = self.sequences.values().map(|sequence| &**sequence);
        all.filter(|sequence| self.identity_of(sequence).is_none())
    }

    /// ALTER SEQUENCE … OWNED BY of the sequences that a column owns, without being an identity
    /// column.
    pub fn own_sequences(&self) -> impl Iterator<Item = String> + '_ {
        self.free_sequences().filter_map(|sequence| {
            let (table, number) = sequence.owned_by?;
            let table = self.table(table).filter(|it| !is_temporary_schema(&it.schema))?;
            let column = table.columns.get(table.position_of(number)?)?;
            let name = quoted_relation(&sequence.schema, &sequence.name);
            let owner = format!("{}.{}", quoted_table(table), quoted(&column.name));
            Some(format!("ALTER SEQUENCE {name} OWNED BY {owner}"))
        })
    }

    /// All sequences, in the order in which they were made.
    pub fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        self.sequences.values().map(|sequence| &**sequence)
    }

    /// Whether a view has that number.
    #[must_use]
    pub fn is_view(&self, id: ObjectId) -> bool {
        self.views.contains_key(&id)
    }

    /// Returns a materialized view, by its lookup name, as a view.
    #[must_use]
    pub fn materialized(&self, name: &str) -> Option<Arc<View>> {
        match self.relation(name)? {
            Relation::Table(table) => table.materialized_view().map(Arc::new),
            _ => None,
        }
    }

    /// Returns all views, and materialized views as views, in no order.
    pub(crate) fn all_views(&self) -> impl Iterator<Item = Cow<'_, View>> {
        let views = self.views.values().map(|view| Cow::Borrowed(&**view));
        let tables = self.tables.values();
        views.chain(tables.filter_map(|table| table.materialized_view().map(Cow::Owned)))
    }

    /// Returns all views.
    pub fn views(&self) -> impl Iterator<Item = &View> {
        self.views.values().map(|view| &**view)
    }

    /// Returns all views, and materialized views as views, each after those that it reads.
    #[must_use]
    pub fn views_in_order(&self) -> Vec<Cow<'_, View>> {
        let mut left: Vec<Cow<'_, View>> = self.all_views().collect();
        left.sort_by_key(|view| view.id);
        let mut waiting: BTreeSet<ObjectId> = left.iter().map(|view| view.id).collect();
        let mut ordered = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let waits = |view: &Cow<'_, View>| {
                view.depends_on.iter().any(|id| *id != view.id && waiting.contains(id))
            };
            let (later, now): (Vec<_>, Vec<_>) = left.into_iter().partition(waits);
            if now.is_empty() {
                // Views that read each other: no order of them is right.
                ordered.extend(later);
                break;
            }
            now.iter().for_each(|view| {
                waiting.remove(&view.id);
            });
            ordered.extend(now);
            left = later;
        }
        ordered
    }
}

/// CREATE MATERIALIZED VIEW, without data.
#[must_use]
pub fn create_materialized_view(view: &View) -> String {
    let columns: Vec<String> = view.columns.iter().map(|name| quoted(name)).collect();
    format!(
        "CREATE MATERIALIZED VIEW {} ({}) AS {} WITH NO DATA",
        quoted_relation(&view.schema, &view.name),
        columns.join(", "),
        view.query
    )
}

/// REFRESH MATERIALIZED VIEW.
#[must_use]
pub fn refresh_materialized_view(view: &View) -> String {
    format!("REFRESH MATERIALIZED VIEW {}", quoted_relation(&view.schema, &view.name))
}
