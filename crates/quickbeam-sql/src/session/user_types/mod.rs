//! Statements about domains, enumerated types and composite types.

mod aggregates;
mod collations;
mod composites;
mod dependants;
mod enums;
mod labels;

pub(in crate::session) use collations::made_collation;

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use self::dependants::drop_type_users;
use super::Session;
use super::access::check_create_in;
use super::definition::{RowSlot, new_owner};
use super::events::NoticeLevel;
use crate::bind::{Binder, Names, kept_domain_check};
use crate::catalog::rights::not_owner;
use crate::catalog::{
    CatalogSnapshot, Column, CompositeType, Domain, DomainCheck, DomainUse, DropBehavior, EnumType,
    ObjectAccess, ObjectId, Table, lookup_name, shown_name,
};
use crate::compile::CompileContext;
use crate::ddl::{CatalogEdit, domain_constraint_name, no_type, type_exists};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::parse::{
    CreateDomain, DropTypes, Name, TextAt, TypeChange, TypeStatement, WrittenCheck,
};
use crate::table::StoredRow;

#[cold]
fn no_constraint(domain: &Domain, name: &str) -> SqlError {
    let message = format!("constraint \"{name}\" of domain \"{}\" does not exist", domain.name);
    SqlError::new(SqlState::UndefinedObject, message)
}

impl Session {
    /// Executes a statement about types.
    pub(in crate::session) fn change_type(
        &self,
        statement: &TypeStatement,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        match statement {
            TypeStatement::CreateDomain(create) => create_domain(create, look),
            TypeStatement::CreateEnum(name, labels) => enums::create_enum(name, labels, look),
            TypeStatement::CreateComposite(name, attributes) => {
                composites::create_composite(name, attributes, look)
            }
            TypeStatement::Alter(_, name, change) => match own_type(statement, name, look)? {
                UserType::Domain(domain) => self.alter_domain(&domain, change, look),
                UserType::Enum(known) => self.alter_enum(&known, change, look),
                UserType::Composite(known) => self.alter_composite(&known, change, look),
            },
            TypeStatement::Drop(drop) => self.drop_types(statement, drop, look),
        }
    }

    fn alter_domain(
        &self,
        domain: &Arc<Domain>,
        change: &TypeChange,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let mut new = (**domain).clone();
        match change {
            TypeChange::Default(default) => {
                new.default =
                    default.as_ref().map(|text| new_default(text, &new, look)).transpose()?;
            }
            TypeChange::NotNull(not_null) => {
                if *not_null {
                    check_not_null(domain.id, look)?;
                }
                new.not_null = *not_null;
            }
            TypeChange::AddCheck(check) => {
                let added = new_check(check, &new, look)?;
                if !added.not_valid {
                    check_rows(domain, &added, look)?;
                }
                new.checks.push(added);
            }
            TypeChange::DropCheck(name, if_exists) => {
                if new.check(name).is_none() {
                    if !*if_exists {
                        return Err(no_constraint(domain, name));
                    }
                    self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, || {
                        let domain = &domain.name;
                        format!(
                            "constraint \"{name}\" of domain \"{domain}\" does not exist, skipping"
                        )
                    });
                }
                new.checks.retain(|check| check.name != *name);
            }
            TypeChange::RenameCheck(from, to) => {
                domain_constraint_name(&new, Some(to))?;
                let found = new.checks.iter_mut().find(|check| check.name == *from);
                found.ok_or_else(|| no_constraint(domain, from))?.name = to.clone();
            }
            TypeChange::Validate(name) => {
                let found = new.checks.iter_mut().find(|check| check.name == *name);
                let check = found.ok_or_else(|| no_constraint(domain, name))?;
                if check.not_valid {
                    check_rows(domain, check, look)?;
                }
                check.not_valid = false;
            }
            TypeChange::Rename(to) => {
                refuse_named(look.snapshot, domain.id, &domain.name, "renaming")?;
                new.name = to.clone();
            }
            TypeChange::Schema(schema) => {
                refuse_named(look.snapshot, domain.id, &domain.name, "moving")?;
                new.schema = target_schema(Some(schema), look)?;
            }
            TypeChange::Owner(name) => return set_owner(domain.id, name, look),
            TypeChange::Attributes(_) | TypeChange::RenameAttribute(..) => {
                let message = format!("relation \"{}\" does not exist", domain.name);
                return Err(SqlError::new(SqlState::UndefinedTable, message));
            }
            TypeChange::AddValue(..) | TypeChange::RenameValue(..) => {
                let message = format!("\"{}\" is not an enum", domain.name);
                return Err(SqlError::new(SqlState::WrongObjectType, message));
            }
        }
        new.checks.sort_by(|a, b| a.name.cmp(&b.name));
        look.catalog.alter_domain(look.transaction, new)
    }

    fn drop_types(
        &self,
        statement: &TypeStatement,
        drop: &DropTypes,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let behavior = DropBehavior::from(drop.cascade);
        let (mut domains, mut enums, mut composites) = (Vec::new(), Vec::new(), Vec::new());
        for name in &drop.names {
            let found = own_type(statement, name, look);
            let missing =
                |error: &SqlError| drop.if_exists && error.state() == SqlState::UndefinedObject;
            match found {
                Err(error) if missing(&error) => {
                    let shown = shown(name);
                    self.notice(NoticeLevel::Notice, SqlState::SuccessfulCompletion, || {
                        format!("type \"{shown}\" does not exist, skipping")
                    });
                }
                found => match found? {
                    UserType::Domain(domain) => {
                        drop_type_users(domain.id, &domain.name, behavior, look)?;
                        domains.push(domain);
                    }
                    UserType::Enum(known) => {
                        drop_type_users(known.id, &known.name, behavior, look)?;
                        enums.push(known);
                    }
                    UserType::Composite(known) => {
                        drop_type_users(known.id, &known.name, behavior, look)?;
                        composites.push(known);
                    }
                },
            }
        }
        if !composites.is_empty() {
            look.catalog.drop_composites(look.transaction, &composites, behavior)?;
        }
        if !domains.is_empty() {
            look.catalog.drop_domains(look.transaction, &domains, behavior)?;
        }
        match enums.is_empty() {
            true => Ok(()),
            false => look.catalog.drop_enums(look.transaction, &enums, behavior),
        }
    }
}

fn shown(name: &Name) -> String {
    match &name.0 {
        Some(schema) => format!("{schema}.{}", name.1),
        None => name.1.to_string(),
    }
}

/// A type of a user.
enum UserType {
    Domain(Arc<Domain>),
    Enum(Arc<EnumType>),
    Composite(Arc<CompositeType>),
}

/// Returns the type that a statement changes, which its role has to own.
fn own_type(statement: &TypeStatement, name: &Name, look: &CompileContext<'_>) -> Result<UserType> {
    let (kind, drops) = match statement {
        TypeStatement::Alter(kind, ..) => (*kind, false),
        TypeStatement::Drop(drop) => (drop.kind, true),
        TypeStatement::CreateDomain(_)
        | TypeStatement::CreateEnum(..)
        | TypeStatement::CreateComposite(..) => ("DOMAIN", false),
    };
    let not_a_domain = |name: &str| {
        SqlError::new(SqlState::WrongObjectType, format!("\"{name}\" is not a domain"))
    };
    let binder = Binder::new(look, "");
    let Some((id, snapshot)) = binder.type_named(name.0.as_deref(), &name.1)? else {
        return Err(match built_in(name).filter(|_| drops) {
            Some(known) if kind == "DOMAIN" => not_a_domain(&format!("pg_catalog.{known}")),
            Some(known) => {
                let message = format!(
                    "cannot drop type {known} because it is required by the database system"
                );
                SqlError::new(SqlState::DependentObjectsStillExist, message)
            }
            None => no_type(&shown(name)),
        });
    };
    let (found, schema, own) = if let Some(domain) = snapshot.domain(id) {
        (UserType::Domain(domain.clone()), &domain.schema, &domain.name)
    } else if let Some(known) = snapshot.enums.get(&id) {
        (UserType::Enum(known.clone()), &known.schema, &known.name)
    } else if let Some(known) = snapshot.composites.get(&id) {
        (UserType::Composite(known.clone()), &known.schema, &known.name)
    } else {
        return Err(no_type(&shown(name)));
    };
    if kind == "DOMAIN" && !matches!(found, UserType::Domain(_)) {
        if drops {
            return Err(not_a_domain(own));
        }
        let message = format!("{own} is not a domain");
        return Err(SqlError::new(SqlState::WrongObjectType, message));
    }
    if let Some(role) = look.role
        && !look.snapshot.owns(role, id)
        && !look.snapshot.owns(role, look.snapshot.schema_id(schema))
    {
        return Err(not_owner("type", own));
    }
    Ok(found)
}

/// Returns the schema of a type to be made, in which the role may make it.
fn check_creation(
    schema: Option<&SmolStr>,
    name: &str,
    look: &CompileContext<'_>,
) -> Result<SmolStr> {
    let schema = target_schema(schema, look)?;
    match look.snapshot.type_names.contains_key(&lookup_name(&schema, name)) {
        true => Err(type_exists(name)),
        false => Ok(schema),
    }
}

/// Returns the schema that is named, or the first of the path, if the role may create in it.
fn target_schema(schema: Option<&SmolStr>, look: &CompileContext<'_>) -> Result<SmolStr> {
    let schema = Binder::new(look, "").routine_schema(schema)?;
    if let Some(role) = look.role {
        check_create_in(look.snapshot, role, &schema)?;
    }
    Ok(schema)
}

/// Returns the name in `pg_type` of a type that is built in.
fn built_in((schema, name): &Name) -> Option<&'static str> {
    if schema.as_deref().is_some_and(|schema| schema != "pg_catalog") {
        return None;
    }
    let types = crate::parse::data_types(name).ok()?;
    Some(crate::bind::data_type(types.first()?).ok()?.catalog_name())
}

impl Session {
    /// Refuses the name of a type that there is not.
    pub(in crate::session) fn check_type(
        &self,
        name: &Name,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let binder = Binder::new(look, "");
        let known = binder.type_named(name.0.as_deref(), &name.1)?;
        if known.is_some() || built_in(name).is_some() {
            Ok(())
        } else {
            Err(no_type(&shown(name)))
        }
    }
}

fn create_domain(create: &CreateDomain, look: &CompileContext<'_>) -> Result<()> {
    let binder = Binder::new(look, "");
    let (schema, name) = &create.name;
    let schema = check_creation(schema.as_ref(), name, look)?;
    let types = crate::parse::data_types(&create.data_type);
    let types = types.map_err(|error| error.shifted(create.type_at))?;
    let [written] = &types[..] else {
        let message = format!("invalid type name \"{}\"", create.data_type);
        return Err(SqlError::new(SqlState::SyntaxError, message).at(create.type_at));
    };
    let declared = binder.declared_type(written);
    let declared = declared.map_err(|error| error.without_place().at(create.type_at))?;
    if let Some(DomainUse::Elements(_)) = declared.domain {
        let what = format!("the type {written} as the base type of a domain");
        return Err(SqlError::unsupported(what));
    }
    let mut domain = Domain {
        id: ObjectId(0),
        schema,
        name: name.clone(),
        data_type: declared.data_type,
        parent: declared.domain.and_then(DomainUse::of_value),
        default: None,
        not_null: create.not_null == Some(true),
        checks: Vec::new(),
    };
    if let Some(text) = &create.default {
        domain.default = Some(new_default(text, &domain, look)?);
    }
    for check in &create.checks {
        let check = new_check(check, &domain, look)?;
        domain.checks.push(check);
    }
    domain.checks.sort_by(|a, b| a.name.cmp(&b.name));
    look.catalog.create_domain(look.transaction, domain)
}

fn new_default(text: &TextAt, domain: &Domain, look: &CompileContext<'_>) -> Result<Arc<str>> {
    let (text, at) = text;
    let binder = Binder::new(look, text);
    let bound = binder.new_domain_default(text, domain.data_type, &domain.name);
    bound.map_err(|error| error.shifted(*at))
}

fn new_check(
    check: &WrittenCheck,
    domain: &Domain,
    look: &CompileContext<'_>,
) -> Result<DomainCheck> {
    let (text, at) = &check.condition;
    let name = domain_constraint_name(domain, check.name.as_ref())?;
    let binder = Binder::new(look, text);
    let bound = binder.new_domain_check(text, domain.data_type);
    let expression = bound.map_err(|error| error.shifted(*at))?;
    Ok(DomainCheck { name, expression, not_valid: check.not_valid })
}

/// Calls `check` with each value in the columns of a domain.
fn each_value(
    domain: ObjectId,
    look: &CompileContext<'_>,
    check: &mut dyn FnMut(&Table, &str, usize, StoredRow<'_>) -> Result<()>,
) -> Result<()> {
    let edit = CatalogEdit::begin(look.catalog, look.transaction)?;
    let snapshot = look.catalog.snapshot(look.transaction)?;
    let name = || snapshot.domain(domain).map_or_else(String::new, |it| it.name.to_string());
    let is_array = |column: &Column| matches!(column.domain, Some(DomainUse::Elements(_)));
    if let Some((table, column)) = snapshot.columns_of_domain(domain).find(|it| is_array(it.1)) {
        // PostgreSQL does not look into arrays, either.
        let (table, column) = (&table.name, &column.name);
        let message =
            format!("cannot alter type \"{}\" because column \"{table}.{column}\" uses it", name());
        return Err(SqlError::new(SqlState::FeatureNotSupported, message));
    }
    for (table, column) in snapshot.columns_of_domain(domain) {
        let Some(position) = table.position_of(column.id) else { continue };
        let handle = edit.handle(table.id)?;
        edit.for_each_row(&handle, |_, row| check(table, &column.name, position, row))?;
    }
    Ok(())
}

/// Checks that no column of a domain has a NULL.
fn check_not_null(domain: ObjectId, look: &CompileContext<'_>) -> Result<()> {
    each_value(domain, look, &mut |table, column, position, row| {
        if !row.get(position)?.is_null() {
            return Ok(());
        }
        let message =
            format!("column \"{column}\" of table \"{}\" contains null values", table.name);
        Err(SqlError::new(SqlState::NotNullViolation, message))
    })
}

/// Checks the values in the columns of a domain against a constraint.
fn check_rows(domain: &Domain, check: &DomainCheck, look: &CompileContext<'_>) -> Result<()> {
    let names = look as &dyn Names;
    let condition = kept_domain_check(names, &check.expression, domain.data_type)?;
    let mut current: Option<(ObjectId, usize, Expr, RowSlot<'_>)> = None;
    each_value(domain.id, look, &mut |table, column, position, row| {
        if !matches!(&current, Some((id, at, ..)) if *id == table.id && *at == position) {
            let mut condition = condition.clone();
            replace_column(&mut condition, position);
            let slot = RowSlot::new(Arc::new(table.clone()), Some(look.clock));
            current = Some((table.id, position, condition, slot));
        }
        let Some((_, _, condition, slot)) = &mut current else { return Ok(()) };
        if condition.truth(&slot.frame(row))? != Some(false) {
            return Ok(());
        }
        let message = format!(
            "column \"{column}\" of table \"{}\" contains values that violate the new constraint",
            table.name
        );
        Err(SqlError::new(SqlState::CheckViolation, message))
    })
}

/// Makes a condition over VALUE, which is column 0, one over another column.
fn replace_column(expr: &mut Expr, position: usize) {
    if let Expr::Column(column) = expr {
        column.column = position;
    }
    expr.each_child_mut(&mut |child| replace_column(child, position));
}

fn set_owner(id: ObjectId, name: &str, look: &CompileContext<'_>) -> Result<()> {
    let role = new_owner(name, look)?;
    let edit = CatalogEdit::begin(look.catalog, look.transaction)?;
    let access = ObjectAccess { owner: role.0, ..edit.latest_access(id)? };
    edit.put_access(id, Some(access))
}

/// Returns whether a text casts to a type of that name.
fn casts_to(text: &str, name: &SmolStr) -> bool {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize().unwrap_or_default();
    let tokens: Vec<&Token> =
        tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let is_named = |token: &Token| {
        matches!(token, Token::Word(word) if match word.quote_style {
            Some(_) => word.value == *name,
            None => word.value.to_lowercase() == *name,
        })
    };
    (0..tokens.len()).filter(|at| is_named(tokens[*at])).any(|at| {
        let mut before = at;
        if before >= 2 && *tokens[before - 1] == Token::Period {
            before -= 2;
        }
        let last = before.checked_sub(1).map(|at| tokens[at]);
        let is_cast = match last {
            Some(Token::DoubleColon) => true,
            Some(Token::Word(word)) if word.quote_style.is_none() => {
                word.value.eq_ignore_ascii_case("AS") && tokens.get(at + 1) == Some(&&Token::RParen)
            }
            _ => false,
        };
        is_cast || matches!(tokens.get(at + 1), Some(Token::SingleQuotedString(_)))
    })
}

/// Refuses a change of the name of a type that a stored text casts to: the text is bound again by
/// each statement.
fn refuse_named(
    snapshot: &CatalogSnapshot,
    id: ObjectId,
    name: &SmolStr,
    doing: &str,
) -> Result<()> {
    let casts = |text: &Arc<str>| casts_to(text, name);
    let refused = |by: String| {
        Err(SqlError::unsupported(format!("{doing} the type {name} while {by} names it")))
    };
    if let Some(view) = snapshot.views.values().find(|it| casts(&it.query)) {
        return refused(format!("the view {}", view.name));
    }
    for table in snapshot.tables() {
        let defaults = table.columns.iter().filter_map(|column| column.default.as_ref());
        if defaults.chain(table.checks.iter().map(|it| &it.expression)).any(casts) {
            return refused(format!("an expression of the table {}", table.name));
        }
    }
    for other in snapshot.domains().filter(|it| it.id != id) {
        if other.checks.iter().map(|it| &it.expression).chain(&other.default).any(casts) {
            return refused(format!("an expression of the type {}", shown_name(&other.name)));
        }
    }
    Ok(())
}
