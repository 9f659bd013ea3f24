//! Statements about collations.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::{set_owner, shown, target_schema};
use crate::bind::{Binder, no_collation};
use crate::catalog::rights::not_owner;
use crate::catalog::{CatalogSnapshot, DropBehavior, MadeCollation, ObjectId, lookup_name};
use crate::compile::CompileContext;
use crate::ddl::collation_exists;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{CollationChange, CollationStatement, Name, WrittenCollation};
use crate::session::Session;
use crate::session::events::NoticeLevel;
use crate::types::collation::{LIBRARY_VERSION, check_locale};

/// The error for a collation of the database system that a statement would change.
#[cold]
fn is_predefined(name: &str) -> SqlError {
    let message =
        format!("cannot drop collation {name} because it is required by the database system");
    SqlError::new(SqlState::DependentObjectsStillExist, message)
}

/// Returns a collation that a statement made.
pub(in crate::session) fn made_collation(
    name: &Name,
    look: &CompileContext<'_>,
) -> Result<Arc<MadeCollation>> {
    let binder = Binder::new(look, "");
    let found = binder.collation_in(name.0.as_deref(), &name.1)?;
    let found = found.ok_or_else(|| no_collation(&shown(name)))?;
    let id = found.definition().object;
    let made = id.and_then(|id| look.snapshot.collations.get(&ObjectId(id)));
    made.cloned().ok_or_else(|| is_predefined(&shown(name)))
}

/// Returns a collation that the role of the statement owns.
fn own_collation(name: &Name, look: &CompileContext<'_>) -> Result<Arc<MadeCollation>> {
    let made = made_collation(name, look)?;
    match look.role {
        Some(role)
            if !look.snapshot.owns(role, made.id)
                && !look.snapshot.owns(role, look.snapshot.schema_id(&made.schema)) =>
        {
            Err(not_owner("collation", &made.name))
        }
        _ => Ok(made),
    }
}

impl Session {
    /// Executes a statement about collations.
    pub(in crate::session) fn change_collation(
        &self,
        statement: &CollationStatement,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        match statement {
            CollationStatement::Create(name, if_not_exists, written) => {
                self.create_collation(name, *if_not_exists, written, look)
            }
            CollationStatement::Alter(name, change) => self.alter_collation(name, change, look),
            CollationStatement::Drop(names, if_exists, cascade) => {
                let mut found = Vec::with_capacity(names.len());
                for name in names {
                    match own_collation(name, look) {
                        Err(error) if *if_exists && error.state() == SqlState::UndefinedObject => {
                            let shown = shown(name);
                            let completed = SqlState::SuccessfulCompletion;
                            self.notice(NoticeLevel::Notice, completed, || {
                                format!("collation \"{shown}\" does not exist, skipping")
                            });
                        }
                        made => {
                            let made = made?;
                            refuse_named(look.snapshot, &made.name, "dropping")?;
                            found.push(made);
                        }
                    }
                }
                let behavior = DropBehavior::from(*cascade);
                look.catalog.drop_collations(look.transaction, &found, behavior)
            }
        }
    }

    fn create_collation(
        &self,
        name: &Name,
        if_not_exists: bool,
        written: &WrittenCollation,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let schema = target_schema(name.0.as_ref(), look)?;
        let mut made = match written {
            WrittenCollation::Options(options) => of_options(options)?,
            WrittenCollation::From(other) => copy_of(other, look)?,
        };
        if look.snapshot.collation_named(&lookup_name(&schema, &name.1)).is_some() {
            if !if_not_exists {
                return Err(collation_exists(&name.1));
            }
            self.notice(NoticeLevel::Notice, SqlState::DuplicateObject, || {
                format!("collation \"{}\" already exists, skipping", name.1)
            });
            return Ok(());
        }
        (made.schema, made.name) = (schema, name.1.clone());
        look.catalog.create_collation(look.transaction, made)
    }

    fn alter_collation(
        &self,
        name: &Name,
        change: &CollationChange,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let made = own_collation(name, look)?;
        let mut new = (*made).clone();
        match change {
            CollationChange::Rename(to) => {
                refuse_named(look.snapshot, &made.name, "renaming")?;
                new.name = to.clone();
            }
            CollationChange::Schema(schema) => {
                refuse_named(look.snapshot, &made.name, "moving")?;
                new.schema = target_schema(Some(schema), look)?;
            }
            CollationChange::Owner(role) => return set_owner(made.id, role, look),
            CollationChange::Refresh => {
                self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, || {
                    "version has not changed".to_owned()
                });
                return Ok(());
            }
        }
        look.catalog.alter_collation(look.transaction, new)
    }
}

/// Returns the collation that options describe, without its name.
fn of_options(options: &[(SmolStr, String, usize)]) -> Result<MadeCollation> {
    let wrong = |message: String| SqlError::new(SqlState::InvalidObjectDefinition, message);
    let mut given: [Option<&str>; 6] = [None; 6];
    const NAMES: [&str; 6] =
        ["locale", "lc_collate", "lc_ctype", "provider", "deterministic", "version"];
    for (option, value, place) in options {
        let Some(at) = NAMES.iter().position(|known| known == option) else {
            let message = format!("collation attribute \"{option}\" not recognized");
            return Err(SqlError::new(SqlState::SyntaxError, message).at(*place));
        };
        if given[at].is_some() {
            let message = "conflicting or redundant options";
            return Err(SqlError::new(SqlState::SyntaxError, message).at(*place));
        }
        given[at] = Some(value);
    }
    let [locale, collate, ctype, provider, deterministic, version] = given;
    if locale.is_some() && (collate.is_some() || ctype.is_some()) {
        let message = "conflicting or redundant options";
        let detail = "LOCALE cannot be specified together with LC_COLLATE or LC_CTYPE.";
        return Err(SqlError::new(SqlState::SyntaxError, message).with_detail(detail));
    }
    let nondeterministic = match deterministic.map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "on" | "1") => false,
        Some("false" | "off" | "0") => true,
        Some(_) => {
            let message = "deterministic requires a Boolean value";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
    };
    let is_icu = match provider.map(str::to_ascii_lowercase).as_deref() {
        None | Some("libc") => false,
        Some("icu") => true,
        Some(other) => return Err(wrong(format!("unrecognized collation provider: {other}"))),
    };
    let made = |locale: Option<SmolStr>| MadeCollation {
        id: ObjectId(0),
        schema: SmolStr::default(),
        name: SmolStr::default(),
        version: locale.is_some().then(|| version.unwrap_or(LIBRARY_VERSION).into()),
        locale,
        nondeterministic,
    };
    let missing = |name: &str| Err(wrong(format!("parameter \"{name}\" must be specified")));
    if is_icu {
        let Some(locale) = locale else { return missing("locale") };
        check_locale(locale)?;
        return Ok(made(Some(locale.into())));
    }
    let (collate, ctype) = match (locale, collate, ctype) {
        (Some(locale), ..) => (locale, locale),
        (None, None, _) => return missing("lc_collate"),
        (None, Some(_), None) => return missing("lc_ctype"),
        (None, Some(collate), Some(ctype)) => (collate, ctype),
    };
    if nondeterministic {
        let message = "nondeterministic collations not supported with this provider";
        return Err(SqlError::new(SqlState::FeatureNotSupported, message));
    }
    let is_known = |name: &str| matches!(name, "C" | "POSIX" | "C.utf8" | "C.UTF-8" | "");
    for name in [collate, ctype] {
        if !is_known(name) {
            let message = format!("could not create locale \"{name}\": No such file or directory");
            let detail = format!(
                "The operating system could not find any locale data for the locale name \"{name}\"."
            );
            let error = SqlError::new(SqlState::InvalidParameterValue, message);
            return Err(error.with_detail(detail));
        }
    }
    Ok(made(None))
}

/// Returns a copy of a collation, without its name.
fn copy_of(name: &Name, look: &CompileContext<'_>) -> Result<MadeCollation> {
    let found = Binder::new(look, "").collation_in(name.0.as_deref(), &name.1)?;
    let found = found.ok_or_else(|| no_collation(&shown(name)))?;
    if found.is_default() {
        let message = "collation \"default\" cannot be copied";
        return Err(SqlError::new(SqlState::InvalidObjectDefinition, message));
    }
    let definition = found.definition();
    Ok(MadeCollation {
        id: ObjectId(0),
        schema: SmolStr::default(),
        name: SmolStr::default(),
        locale: definition.locale.clone(),
        nondeterministic: !definition.is_deterministic,
        version: definition.locale.is_some().then(|| LIBRARY_VERSION.into()),
    })
}

/// Refuses to change the name of a collation that a stored text names.
fn refuse_named(snapshot: &CatalogSnapshot, name: &SmolStr, doing: &str) -> Result<()> {
    let refused = |by: String| {
        let what = format!("{doing} the collation {name} while {by} names it");
        Err(SqlError::unsupported(what))
    };
    if let Some(view) = snapshot.views.values().find(|it| names(&it.query, name)) {
        return refused(format!("the view {}", view.name));
    }
    for table in snapshot.tables() {
        let defaults = table.columns.iter().filter_map(|column| column.default.as_ref());
        let checks = table.checks.iter().map(|it| &it.expression);
        let computed = table.indexes.iter().flat_map(|index| {
            let expressions = index.expressions.iter().map(|it| &it.text);
            expressions.chain(index.predicate.iter().map(|it| &it.text))
        });
        if defaults.chain(checks).chain(computed).any(|text| names(text, name)) {
            return refused(format!("an expression of the table {}", table.name));
        }
        if table.materialized.as_ref().is_some_and(|it| names(&it.query, name)) {
            return refused(format!("the materialized view {}", table.name));
        }
    }
    for domain in snapshot.domains() {
        let mut texts = domain.checks.iter().map(|it| &it.expression).chain(&domain.default);
        if texts.any(|text| names(text, name)) {
            return refused(format!("an expression of the domain {}", domain.name));
        }
    }
    Ok(())
}

/// Returns whether a text has COLLATE with a name.
fn names(text: &str, name: &SmolStr) -> bool {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize().unwrap_or_default();
    let words = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_)));
    let mut follows = 0;
    for token in words {
        match token {
            Token::Word(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("collate") =>
            {
                follows = 3;
            }
            Token::Word(word) if follows > 0 => {
                let is_it = match word.quote_style {
                    Some(_) => word.value == *name,
                    None => word.value.to_lowercase() == *name,
                };
                if is_it {
                    return true;
                }
                follows -= 1;
            }
            Token::Period => {}
            _ => follows = 0,
        }
    }
    false
}
