//! ALTER … RENAME and ALTER … SET SCHEMA of tables, views, sequences and indexes.
//!
//! Views, defaults and checks are kept as texts, which are written again: a view keeps the names
//! under which it knows a table and its columns by an alias.

use std::collections::BTreeMap;
use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::Session;
use super::comments::relation_name;
use crate::bind::{Binder, NameChange, Names, renamed_query};
use crate::catalog::describe::{name_parts, quoted_if_needed};
use crate::catalog::rights::not_owner;
use crate::catalog::text::{literal, quoted};
use crate::catalog::{ObjectId, PUBLIC, Relation, Table, is_temporary_schema, lookup_name};
use crate::compile::CompileContext;
use crate::ddl::StoredTexts;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{Name, RelationChange, RelationStatement};
use crate::schema::errors::{column_exists, is_not, no_definition, no_relation};
use crate::session::access::check_create_in;
use crate::session::events::NoticeLevel;

impl Session {
    /// Executes RENAME or SET SCHEMA of a relation.
    pub(in crate::session) fn change_relation(
        &self,
        statement: &RelationStatement,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        if let (RelationChange::Rename(to), Some(table)) =
            (&statement.change, table_of_key(statement, look))
        {
            if look.role.is_some_and(|role| !look.snapshot.owns(role, table.id)) {
                return Err(not_owner("index", &statement.name.1));
            }
            let (from, table) = (&statement.name.1, table.lookup_name());
            return look.catalog.rename_constraint(look.transaction, &table, from, to);
        }
        let Some(relation) = self.altered_relation(statement, look)? else { return Ok(()) };
        match &statement.change {
            RelationChange::Rename(to) => {
                let schema = schema_of(&relation);
                if let Some(role) = look.role.filter(|_| !is_temporary_schema(schema)) {
                    check_create_in(look.snapshot, role, schema)?;
                }
                rename(&relation, schema, to, look)
            }
            RelationChange::Schema(schema) => set_schema(&relation, schema, look),
            RelationChange::RenameColumn(from, to) => rename_column(&relation, from, to, look),
            RelationChange::Constraint(name, timing) => match &relation {
                Relation::Table(table) => {
                    let table = table.lookup_name();
                    look.catalog.alter_constraint(look.transaction, &table, name, *timing)
                }
                _ => Err(is_not(relation_name(&relation), "a table")),
            },
        }
    }

    /// Returns the relation of a statement, which its role has to own; `None` if there is none
    /// under IF EXISTS.
    fn altered_relation(
        &self,
        statement: &RelationStatement,
        look: &CompileContext<'_>,
    ) -> Result<Option<Relation>> {
        let (schema, name) = &statement.name;
        let lookup = Binder::new(look, "").lookup(schema.as_deref(), name)?;
        let relation = match look.relation(&lookup)? {
            Some(Relation::Table(table)) if table.is_database() => return Err(no_definition(name)),
            Some(relation) => relation,
            None if statement.if_exists => {
                self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, || {
                    format!("relation \"{name}\" does not exist, skipping")
                });
                return Ok(None);
            }
            None => return Err(no_relation(&lookup)),
        };
        let renames = matches!(statement.change, RelationChange::Rename(_));
        let word = relation.word();
        match statement.kind {
            "table" => {}
            "index" if renames => {}
            kind if kind == word => {}
            "index" => return Err(is_not(name, "an index")),
            kind => return Err(is_not(name, &format!("a {kind}"))),
        }
        match look.role {
            Some(role) if !look.snapshot.owns(role, relation.protected().0) => {
                Err(not_owner(word, name))
            }
            _ => Ok(Some(relation)),
        }
    }
}

/// Returns the table whose primary key, which is no relation of its own, a statement names.
fn table_of_key<'l>(
    statement: &RelationStatement,
    look: &'l CompileContext<'_>,
) -> Option<&'l Arc<Table>> {
    let may_name_key = matches!(statement.kind, "index" | "table");
    may_name_key.then(|| key_of_name(&statement.name, look)).flatten()
}

/// Returns the table whose primary key has that name, unless a relation has it.
pub(super) fn key_of_name<'l>(
    (schema, name): &Name,
    look: &'l CompileContext<'_>,
) -> Option<&'l Arc<Table>> {
    let found = Binder::new(look, "").lookup(schema.as_deref(), name).ok()?;
    if look.snapshot.relation(&found).is_some() {
        return None;
    }
    let path = look.path.as_deref().map_or_else(|| vec![PUBLIC], <[SmolStr]>::to_vec);
    let schemas = schema.as_ref().map_or(path, |schema| vec![schema.clone()]);
    schemas.iter().find_map(|schema| {
        look.snapshot.tables().find(|table| {
            let key = table.primary_key.as_ref();
            table.schema == *schema && key.is_some_and(|key| key.name == *name)
        })
    })
}

fn schema_of(relation: &Relation) -> &SmolStr {
    match relation {
        Relation::Table(table) | Relation::Index(table, _) => &table.schema,
        Relation::View(view) => &view.schema,
        Relation::Sequence(sequence) => &sequence.schema,
    }
}

fn id_of(relation: &Relation) -> ObjectId {
    match relation {
        Relation::Table(table) => table.id,
        Relation::View(view) => view.id,
        Relation::Sequence(sequence) => sequence.id,
        Relation::Index(_, index) => index.id,
    }
}

/// Gives a relation another schema or name.
fn rename(
    relation: &Relation,
    schema: &SmolStr,
    to: &SmolStr,
    look: &CompileContext<'_>,
) -> Result<()> {
    let (old, old_schema) = (relation_name(relation), schema_of(relation));
    let mut moved = vec![(old_schema.clone(), SmolStr::new(old), to.clone())];
    if let (Relation::Table(table), true) = (relation, schema != old_schema) {
        let owned = look
            .snapshot
            .sequences()
            .filter(|sequence| sequence.owned_by.is_some_and(|(owner, _)| owner == table.id));
        moved.extend(owned.map(|it| (it.schema.clone(), it.name.clone(), it.name.clone())));
    }
    let literals = |text: &str| with_literals(text, &moved, schema);
    let queries = rewritten(relation, NameChange::Relation(schema, to), look)?;
    let texts = StoredTexts { queries, literals: &literals };
    let lookup = lookup_name(schema, to);
    look.catalog.rename_relation(look.transaction, relation, &lookup, &texts)?;
    check_rewritten(relation, &texts, look)
}

fn set_schema(relation: &Relation, schema: &SmolStr, look: &CompileContext<'_>) -> Result<()> {
    let name = SmolStr::new(relation_name(relation));
    let old = schema_of(relation);
    if let Relation::Index(..) = relation {
        let message = format!("cannot change schema of index \"{name}\"");
        let error = SqlError::new(SqlState::WrongObjectType, message);
        return Err(error.with_hint("Change the schema of the table instead."));
    }
    if let Relation::Sequence(sequence) = relation
        && let Some((table, _)) = sequence.owned_by
    {
        let message = "cannot move an owned sequence into another schema";
        let table = look.snapshot.table(table).map(|it| it.name.clone()).unwrap_or_default();
        let detail = format!("Sequence \"{name}\" is linked to table \"{table}\".");
        return Err(SqlError::new(SqlState::FeatureNotSupported, message).with_detail(detail));
    }
    let schema = &target_schema(schema, look)?;
    if is_temporary_schema(schema) || is_temporary_schema(old) {
        let message = "cannot move objects into or out of temporary schemas";
        return Err(SqlError::new(SqlState::FeatureNotSupported, message));
    }
    if schema == old {
        return Ok(());
    }
    rename(relation, schema, &name, look)
}

/// Returns a schema in which the role may make objects.
pub(in crate::session) fn target_schema(
    schema: &SmolStr,
    look: &CompileContext<'_>,
) -> Result<SmolStr> {
    let schema = Binder::new(look, "").routine_schema(Some(schema))?;
    if crate::catalog::is_system_schema(&schema) {
        return Err(crate::catalog::rights::denied("schema", &schema));
    }
    if let Some(role) = look.role {
        check_create_in(look.snapshot, role, &schema)?;
    }
    Ok(schema)
}

fn rename_column(
    relation: &Relation,
    from: &SmolStr,
    to: &SmolStr,
    look: &CompileContext<'_>,
) -> Result<()> {
    let name = relation_name(relation);
    let missing = || {
        let message = format!("column \"{from}\" does not exist");
        SqlError::new(SqlState::UndefinedColumn, message)
    };
    let columns: Vec<&SmolStr> = match relation {
        Relation::Table(table) => table.columns.iter().map(|column| &column.name).collect(),
        Relation::View(view) => view.columns.iter().collect(),
        Relation::Sequence(_) | Relation::Index(..) => {
            let message = format!("cannot rename columns of relation \"{name}\"");
            let kind = if relation.word() == "index" { "indexes" } else { "sequences" };
            let detail = format!("This operation is not supported for {kind}.");
            return Err(SqlError::new(SqlState::WrongObjectType, message).with_detail(detail));
        }
    };
    let position = columns.iter().position(|known| *known == from).ok_or_else(missing)?;
    if columns.contains(&to) {
        return Err(column_exists(name, to));
    }
    let queries = rewritten(relation, NameChange::Column(position), look)?;
    let texts = StoredTexts { queries, literals: &|_| None };
    let (catalog, transaction) = (look.catalog, look.transaction);
    match relation {
        Relation::View(view) => {
            catalog.rename_view_column(transaction, view, (from, to), &texts)?;
        }
        Relation::Table(table) => {
            let rewrite = |text: &str| renamed(text, from, to);
            let lookup = table.lookup_name();
            catalog.rename_column(transaction, &lookup, (from, to), &rewrite, &texts)?;
        }
        Relation::Sequence(_) | Relation::Index(..) => {}
    }
    check_rewritten(relation, &texts, look)
}

/// Returns the queries of the views that name a relation, with its new names.
fn rewritten(
    relation: &Relation,
    change: NameChange<'_>,
    look: &CompileContext<'_>,
) -> Result<BTreeMap<ObjectId, Arc<str>>> {
    let look = CompileContext { path: None, role: None, ..*look };
    let mut queries = BTreeMap::new();
    let id = id_of(relation);
    for view in look.snapshot.all_views().filter(|view| view.depends_on.contains(&id)) {
        let query = renamed_query(&look, &view.query, relation, change)?;
        if query != *view.query {
            queries.insert(view.id, query.into());
        }
    }
    Ok(queries)
}

/// Refuses a change of names after which a view would not have the columns that it had.
fn check_rewritten(
    relation: &Relation,
    texts: &StoredTexts<'_>,
    look: &CompileContext<'_>,
) -> Result<()> {
    if texts.queries.is_empty() {
        return Ok(());
    }
    let types = |look: &CompileContext<'_>, query: &str| -> Result<Vec<_>> {
        let parsed = crate::parse::query(query)?;
        let bound = Binder::of_stored(look).query_statement(&parsed)?;
        Ok(bound.columns.iter().map(|column| column.data_type).collect())
    };
    let before = CompileContext { path: None, role: None, ..*look };
    let snapshot = look.catalog.snapshot(look.transaction)?;
    let after = CompileContext { snapshot: &snapshot, path: None, role: None, ..*look };
    for view in before.snapshot.all_views() {
        let Some(query) = texts.queries.get(&view.id) else { continue };
        let known = types(&before, &view.query)?;
        if types(&after, query).ok().as_ref() != Some(&known) {
            let (word, name) = (relation.word(), relation_name(relation));
            let what = format!("a new name in {word} {name} while the view {} reads it", view.name);
            return Err(SqlError::unsupported(what).with_hint("Drop the view and make it again."));
        }
    }
    Ok(())
}

/// Returns a text in which literals that name one of these relations have the new names, or `None`
/// if there are no such literals. Each relation has its old schema and name, and the new name.
fn with_literals(
    text: &str,
    moved: &[(SmolStr, SmolStr, SmolStr)],
    schema: &SmolStr,
) -> Option<String> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().ok()?;
    let shown: Vec<usize> =
        (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let token = |place: usize| shown.get(place).and_then(|at| tokens.get(*at)).map(|it| &it.token);
    let mut changes: BTreeMap<usize, String> = BTreeMap::new();
    for (place, &at) in shown.iter().enumerate() {
        let Some(Token::SingleQuotedString(name)) = token(place) else { continue };
        if !names_relation(&token, place) {
            continue;
        }
        let parts = name_parts(name).unwrap_or_default();
        let (old_schema, own) = match &parts[..] {
            [own] => (PUBLIC, own),
            [schema, own] => (SmolStr::new(schema), own),
            _ => continue,
        };
        let found = moved.iter().find(|(in_schema, it, _)| *in_schema == old_schema && it == own);
        if let Some((_, _, to)) = found {
            let to = quoted_if_needed(to);
            let is_short = parts.len() == 1 && *schema == PUBLIC;
            let new = if is_short { to } else { format!("{}.{to}", quoted_if_needed(schema)) };
            changes.insert(at, literal(&new));
        }
    }
    if changes.is_empty() {
        return None;
    }
    let written = |(at, token): (usize, &TokenWithSpan)| {
        changes.get(&at).cloned().unwrap_or_else(|| token.token.to_string())
    };
    Some(tokens.iter().enumerate().map(written).collect())
}

/// Returns whether the literal at a place names a relation: it is cast to `regclass` or is the
/// argument of a function of sequences.
fn names_relation<'t>(token: &impl Fn(usize) -> Option<&'t Token>, place: usize) -> bool {
    let is_word = |place: usize, words: &[&str]| {
        matches!(token(place), Some(Token::Word(word))
        if words.iter().any(|it| word.value.eq_ignore_ascii_case(it)))
    };
    let before = |by: usize| place.checked_sub(by);
    let is_argument = before(1).is_some_and(|at| token(at) == Some(&Token::LParen))
        && before(2).is_some_and(|at| is_word(at, &["nextval", "currval", "setval"]));
    let is_cast =
        token(place + 1) == Some(&Token::DoubleColon) && is_word(place + 2, &["regclass"]);
    let is_as = is_word(place + 1, &["AS"]) && is_word(place + 2, &["regclass"]);
    is_argument || is_cast || is_as || before(1).is_some_and(|at| is_word(at, &["regclass"]))
}

/// The text of a CHECK with a column's new name in the place of the old one.
fn renamed(text: &str, from: &str, to: &str) -> Result<String> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize();
    let tokens = tokens
        .map_err(|error| SqlError::internal(format!("a check that cannot be read: {error}")))?;
    let mut rewritten = String::with_capacity(text.len());
    for token in tokens {
        let is_name = matches!(&token, Token::Word(word) if match word.quote_style {
            Some(_) => word.value == from,
            None => word.value.to_lowercase() == from,
        });
        if is_name {
            // A keyword is a name in quotes alone.
            let word = Token::make_word(to, None);
            match &word {
                Token::Word(word) if word.keyword == Keyword::NoKeyword => {
                    rewritten.push_str(&quoted_if_needed(to));
                }
                _ => rewritten.push_str(&quoted(to)),
            }
        } else {
            rewritten.push_str(&token.to_string());
        }
    }
    Ok(rewritten)
}
