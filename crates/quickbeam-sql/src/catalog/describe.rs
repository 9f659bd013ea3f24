//! Definitions in the words of PostgreSQL's functions: `pg_get_indexdef()`,
//! `pg_get_constraintdef()`.

use std::sync::Arc;

use smol_str::SmolStr;

use super::CatalogSnapshot;
use super::system::{
    check_oid, constraint_oid, domain_check_oid, foreign_key_oid, object_oid, primary_key_oid,
    system_table,
};
use crate::keywords::{KeywordCategory, keyword_category};
use crate::schema::names::PUBLIC;
use crate::schema::{
    Column, ForeignKey, ForeignKeyAction, Index, KeyColumn, Method, Sequence, Table, View,
};
use crate::types::Collation;

/// Returns a name as PostgreSQL writes it: in quotes if it needs them.
#[must_use]
pub fn quoted_if_needed(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let is_word = || !matches!(keyword_category(name), None | Some(KeywordCategory::Unreserved));
    if begins && name.chars().all(is_plain) && !is_word() {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Splits a qualified name in a text; unquoted parts fold to lower case. Returns `None` if the text
/// is no name.
#[must_use]
pub fn name_parts(name: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut rest = name.trim();
    loop {
        let (part, behind) = match rest.strip_prefix('"') {
            Some(quoted) => {
                // A doubled quote within quotes is one quote.
                let mut part = String::new();
                let mut left = quoted;
                loop {
                    let (text, behind) = left.split_once('"')?;
                    part.push_str(text);
                    match behind.strip_prefix('"') {
                        Some(more) => left = more,
                        None => break (part, behind),
                    }
                    part.push('"');
                }
            }
            None => {
                let (part, behind) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
                (part.to_lowercase(), behind)
            }
        };
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        if behind.is_empty() {
            return Some(parts);
        }
        rest = behind.strip_prefix('.')?;
    }
}

/// An object of the catalogs that has an OID.
#[derive(Clone, Copy, Debug)]
pub enum Described<'s> {
    /// A table.
    Table(&'s Arc<Table>),
    /// A view.
    View(&'s Arc<View>),
    /// A sequence.
    Sequence(&'s Arc<Sequence>),
    /// A secondary index.
    Index(&'s Arc<Table>, &'s Arc<Index>),
    /// The index of a primary key.
    PrimaryKey(&'s Arc<Table>),
}

impl<'s> Described<'s> {
    /// Returns the object's OID.
    #[must_use]
    pub fn oid(self) -> i64 {
        match self {
            Described::Table(table) => object_oid(table.id),
            Described::View(view) => object_oid(view.id),
            Described::Sequence(sequence) => object_oid(sequence.id),
            Described::Index(_, index) => object_oid(index.id),
            Described::PrimaryKey(table) => primary_key_oid(table),
        }
    }

    /// Returns the name of the object's schema.
    #[must_use]
    pub fn schema(self) -> &'s SmolStr {
        match self {
            Described::Table(table) | Described::Index(table, _) | Described::PrimaryKey(table) => {
                &table.schema
            }
            Described::View(view) => &view.schema,
            Described::Sequence(sequence) => &sequence.schema,
        }
    }

    /// Returns the object's name.
    #[must_use]
    pub fn name(self) -> &'s str {
        match self {
            Described::Table(table) => &table.name,
            Described::View(view) => &view.name,
            Described::Sequence(sequence) => &sequence.name,
            Described::Index(_, index) => &index.name,
            Described::PrimaryKey(table) => table.primary_key.as_ref().map_or("", |key| &key.name),
        }
    }
}

impl CatalogSnapshot {
    /// Returns all relations, those of `pg_class`.
    #[must_use]
    pub fn described(&self) -> Vec<Described<'_>> {
        let mut all = Vec::new();
        for table in self.tables.values() {
            all.push(Described::Table(table));
            if table.primary_key.is_some() {
                all.push(Described::PrimaryKey(table));
            }
            all.extend(table.indexes.iter().map(|index| Described::Index(table, index)));
        }
        all.extend(self.views.values().map(Described::View));
        all.extend(self.sequences.values().map(Described::Sequence));
        all
    }

    /// Returns the OID of the relation that a text names; without a schema, the first one in the
    /// path.
    #[must_use]
    pub fn oid_named(&self, text: &str, path: &[SmolStr]) -> Option<i64> {
        let parts = name_parts(text)?;
        let (schema, name) = match &parts[..] {
            [name] => (None, name),
            [schema, name] => (Some(&schema[..]), name),
            _ => return None,
        };
        if schema.is_none()
            && let Some(table) = system_table(None, name)
        {
            return Some(table.oid);
        }
        let named: Vec<_> =
            self.described().into_iter().filter(|found| found.name() == name).collect();
        let found = match schema {
            Some(schema) => named.iter().find(|found| found.schema() == schema),
            None => path.iter().find_map(|schema| named.iter().find(|it| it.schema() == schema)),
        };
        match found {
            Some(found) => Some(found.oid()),
            None => system_table(schema, name).map(|table| table.oid),
        }
    }

    /// Returns the relation of an OID.
    #[must_use]
    pub fn relation_of(&self, oid: i64) -> Option<Described<'_>> {
        self.described().into_iter().find(|found| found.oid() == oid)
    }

    /// Returns the definition of the constraint of an OID.
    #[must_use]
    pub fn constraint_definition(&self, oid: i64, parentheses: Parentheses) -> Option<String> {
        for table in self.tables.values() {
            if let Some(key) = &table.primary_key
                && constraint_oid(table.id) == oid
            {
                return Some(format!("PRIMARY KEY ({})", names(table, key.columns.iter())));
            }
            let unique =
                |index: &&Arc<Index>| index.is_constraint && constraint_oid(index.id) == oid;
            if let Some(index) = table.indexes.iter().find(unique) {
                let columns = index.columns.iter().map(|column| &column.position);
                let kind = match index.nulls_not_distinct {
                    _ if index.is_primary => "PRIMARY KEY",
                    true => "UNIQUE NULLS NOT DISTINCT",
                    false => "UNIQUE",
                };
                let (columns, include) = (names(table, columns), included(table, index));
                return Some(format!("{kind} ({columns}){include}{}", index.timing.clauses()));
            }
            if let Some(check) = table.checks.iter().find(|it| check_oid(table, &it.name) == oid) {
                let not_valid = if check.not_valid { " NOT VALID" } else { "" };
                let no_inherit = if check.no_inherit { " NO INHERIT" } else { "" };
                let condition = written_condition(&check.expression, parentheses);
                return Some(format!("CHECK ({condition}){no_inherit}{not_valid}"));
            }
            let same = |key: &&ForeignKey| foreign_key_oid(table, &key.name) == oid;
            if let Some(key) = table.foreign_keys.iter().find(same) {
                return self.foreign_key_definition(table, key);
            }
        }
        let mut checks = self.domains().flat_map(|domain| {
            domain.checks.iter().map(move |check| (domain_check_oid(domain.id, &check.name), check))
        });
        let (_, check) = checks.find(|(own, _)| *own == oid)?;
        let not_valid = if check.not_valid { " NOT VALID" } else { "" };
        let condition = written_condition(&check.expression, parentheses);
        Some(format!("CHECK ({condition}){not_valid}"))
    }

    fn foreign_key_definition(&self, table: &Table, key: &ForeignKey) -> Option<String> {
        let parent = self.table(key.parent)?;
        let positions: Vec<usize> =
            key.parent_columns.iter().filter_map(|id| parent.position_of(*id)).collect();
        let mut text = format!(
            "FOREIGN KEY ({}) REFERENCES {}({})",
            names(table, key.columns.iter()),
            written_relation(parent),
            names(parent, positions.iter())
        );
        if key.is_full {
            text.push_str(" MATCH FULL");
        }
        for (when, action) in [("UPDATE", key.on_update), ("DELETE", key.on_delete)] {
            let action = match action {
                ForeignKeyAction::NoAction => continue,
                ForeignKeyAction::Restrict => "RESTRICT",
                ForeignKeyAction::Cascade => "CASCADE",
                ForeignKeyAction::SetNull => "SET NULL",
                ForeignKeyAction::SetDefault => "SET DEFAULT",
            };
            text.push_str(&format!(" ON {when} {action}"));
            if when == "DELETE" && !key.delete_columns.is_empty() {
                let set = key.delete_columns.iter().filter_map(|id| table.position_of(*id));
                let set: Vec<usize> = set.collect();
                text.push_str(&format!(" ({})", names(table, set.iter())));
            }
        }
        text.push_str(key.timing.clauses());
        if key.not_valid {
            text.push_str(" NOT VALID");
        }
        Some(text)
    }
}

/// Returns a table's name, with its schema unless that is `public`.
fn written_relation(table: &Table) -> String {
    let name = quoted_if_needed(&table.name);
    if table.schema == PUBLIC {
        return name;
    }
    format!("{}.{name}", quoted_if_needed(&table.schema))
}

/// Returns the names of columns with commas between them.
fn names<'c>(table: &Table, positions: impl Iterator<Item = &'c usize>) -> String {
    let columns = positions.filter_map(|position| table.columns.get(*position));
    let names: Vec<String> = columns.map(|column| quoted_if_needed(&column.name)).collect();
    names.join(", ")
}

/// Returns the clause INCLUDE of an index.
fn included(table: &Table, index: &Index) -> String {
    match &index.include[..] {
        [] => String::new(),
        include => format!(" INCLUDE ({})", names(table, include.iter())),
    }
}

/// Returns the name of a collation, with its schema if that is not on the usual path.
#[must_use]
pub fn shown_collation(collation: Collation) -> String {
    let definition = collation.definition();
    let name = quoted_if_needed(&definition.name);
    match definition.schema.as_str() {
        "public" | "pg_catalog" => name,
        schema => format!("{}.{name}", quoted_if_needed(schema)),
    }
}

/// Returns the key columns of an index.
#[must_use]
pub fn key_columns(index: Described<'_>) -> Vec<KeyColumn> {
    match index {
        Described::Index(_, index) => index.columns.clone(),
        Described::PrimaryKey(table) => {
            let positions = table.primary_key.iter().flat_map(|key| &key.columns);
            let column = |position: &usize| KeyColumn {
                position: *position,
                descending: false,
                nulls_first: false,
                collation: None,
            };
            positions.map(column).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the definition of an index, or of one of its columns.
#[must_use]
pub fn index_definition(
    index: Described<'_>,
    column: usize,
    parentheses: Parentheses,
) -> Option<String> {
    let (table, unique, method) = match index {
        Described::Index(table, index) => (table, index.is_unique(), index.method),
        Described::PrimaryKey(table) => (table, true, table.primary_key.as_ref()?.method),
        _ => return None,
    };
    let keys = key_columns(index);
    let name = |key: &KeyColumn| {
        if let Described::Index(_, index) = index
            && let Some(expression) = index.expression(key.position)
        {
            return written_expression(&expression.text, parentheses);
        }
        let column: Option<&Column> = table.columns.get(key.position);
        column.map_or_else(String::new, |column| quoted_if_needed(&column.name))
    };
    if let Some(at) = column.checked_sub(1) {
        return Some(keys.get(at).map_or_else(String::new, name));
    }
    let part = |(number, key): (usize, &KeyColumn)| {
        let order = match (key.descending, key.nulls_first) {
            (false, false) => "",
            (false, true) => " NULLS FIRST",
            (true, true) => " DESC",
            (true, false) => " DESC NULLS LAST",
        };
        let class = match index {
            Described::Index(_, index) => index.inverted_key(number),
            _ => None,
        };
        let class = class.filter(|class| !class.is_default());
        let class = class.map_or_else(String::new, |class| format!(" {}", class.name()));
        let collation = match index {
            Described::Index(table, index) => {
                let other = index.other_collation(table, key);
                let name = |own: Option<Collation>| own.map_or("\"C\"".into(), shown_collation);
                other.map_or_else(String::new, |own| format!(" COLLATE {}", name(own)))
            }
            _ => String::new(),
        };
        format!("{}{collation}{class}{order}", name(key))
    };
    let parts: Vec<String> = keys.iter().enumerate().map(part).collect();
    let rest = match index {
        Described::Index(table, index) => {
            let nulls = if index.nulls_not_distinct { " NULLS NOT DISTINCT" } else { "" };
            let only = index.predicate.iter();
            let only: String = only
                .map(|it| format!(" WHERE {}", written_condition(&it.text, parentheses)))
                .collect();
            format!("{}{nulls}{only}", included(table, index))
        }
        _ => String::new(),
    };
    Some(format!(
        "CREATE {}INDEX {} ON {}.{} USING {} ({}){rest}",
        if unique { "UNIQUE " } else { "" },
        quoted_if_needed(index.name()),
        quoted_if_needed(&table.schema),
        quoted_if_needed(&table.name),
        method_name(method),
        parts.join(", ")
    ))
}

/// Which parentheses a definition has, as the last argument of PostgreSQL's functions says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parentheses {
    /// Those of each operation.
    All,
    /// Only those that are needed.
    Needed,
}

/// Returns whether a text is a call and nothing else.
fn is_call(text: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let Some((name, rest)) = text.split_once('(') else { return false };
    let mut depth = 1_usize;
    let mut ends = rest.char_indices().filter_map(|(at, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at)
    });
    !name.is_empty() && name.chars().all(is_name) && ends.next() == Some(rest.len() - 1)
}

/// Returns an expression of an index as its definition has it: a call alone, anything else in
/// parentheses, with those of its own.
#[must_use]
pub fn written_expression(text: &str, parentheses: Parentheses) -> String {
    match (text.split_once('('), parentheses) {
        (Some((name, rest)), _) if is_call(text) => format!("{}({rest}", name.to_lowercase()),
        (_, Parentheses::Needed) => format!("({text})"),
        (_, Parentheses::All) => format!("(({text}))"),
    }
}

/// Returns a condition as a definition has it: anything but a name or a call in parentheses.
#[must_use]
pub fn written_condition(text: &str, parentheses: Parentheses) -> String {
    let is_name = text.chars().all(|c| c.is_alphanumeric() || c == '_');
    match parentheses {
        Parentheses::All if !is_name && !is_call(text) => format!("({text})"),
        _ => text.to_owned(),
    }
}

/// Returns the access method's name.
#[must_use]
pub fn method_name(method: Method) -> &'static str {
    match method {
        Method::Range => "btree",
        Method::Hash => "hash",
        Method::Inverted(_) => "gin",
    }
}
