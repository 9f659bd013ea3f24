//! CREATE TABLE … AS and SELECT … INTO: a table of a query's columns, and the INSERT that fills it
//! with the query's rows.

use smol_str::SmolStr;
use sqlparser::ast::{self, Statement as Ast};

use super::{CompileContext, Program};
use crate::bind::{
    Binder, CatalogChange, DerivedKind, OnExisting, Persistence, check_derived, fold, on_commit_of,
    refuse_records, table_for,
};
use crate::catalog::text::quoted_relation;
use crate::catalog::{NewTable, OnCommit, split_lookup_name};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::RefreshStatement;
use crate::types::DataType;

/// CREATE TABLE … AS, SELECT … INTO.
pub(crate) struct CreateAs {
    /// The table.
    pub change: CatalogChange,
    /// The INSERT that fills it; none: it stays empty.
    pub insert: Option<Ast>,
    /// The types of its parameters.
    pub parameters: Vec<DataType>,
    /// The text in which its query stands.
    pub text: String,
    /// The lookup name of the materialized view that it makes or refreshes.
    pub materialized: Option<SmolStr>,
}

/// The name by which the INSERT that populates a materialized view reads its query: no relation can
/// have a name of more than 63 bytes.
pub(crate) const REFRESHED: &str =
    "the query of the materialized view that is to be populated by a statement";

/// What CREATE TABLE … AS says of its table.
pub(crate) struct CreateAsTarget<'t> {
    pub name: &'t ast::ObjectName,
    /// The names of its columns; for the rest the query's names stand.
    pub columns: Vec<SmolStr>,
    pub existing: OnExisting,
    /// WITH DATA.
    pub with_data: bool,
    pub persistence: Persistence,
    pub on_commit: OnCommit,
}

impl<'t> CreateAsTarget<'t> {
    /// The table of CREATE TABLE … AS.
    pub fn of_table(create: &'t ast::CreateTable) -> Result<CreateAsTarget<'t>> {
        Ok(CreateAsTarget {
            name: &create.name,
            columns: create.columns.iter().map(|column| fold(&column.name)).collect(),
            existing: OnExisting::from(create.if_not_exists),
            with_data: create.with_data.is_none_or(|with| with.data),
            persistence: Persistence::from(create.temporary),
            on_commit: on_commit_of(create)?,
        })
    }

    /// The table of SELECT … INTO.
    pub fn of_into(name: &'t ast::ObjectName, persistence: Persistence) -> CreateAsTarget<'t> {
        let (existing, on_commit) = (OnExisting::Fail, OnCommit::Preserve);
        let columns = Vec::new();
        CreateAsTarget { name, columns, existing, with_data: true, persistence, on_commit }
    }
}

impl CompileContext<'_> {
    /// Prepares the table and the INSERT; nothing but a notice if IF NOT EXISTS finds a table.
    pub(super) fn create_as(
        &self,
        target: &CreateAsTarget<'_>,
        query: &ast::Query,
        text: &str,
    ) -> Result<Program> {
        let CreateAsTarget { name, existing, persistence, on_commit, .. } = *target;
        let mut binder = Binder::new(self, text);
        let (table, is_there) = binder.new_relation_of(persistence, name, existing)?;
        if is_there {
            // IF NOT EXISTS leaves a notice.
            let table = Box::new(NewTable { name: table, ..NewTable::default() });
            return Ok(Program::Catalog(CatalogChange::CreateTable(table, true)));
        }
        binder.parameters = self.types.into();
        let bound = binder.query_statement(query)?;
        refuse_records(&bound.columns)?;
        let mut columns = bound.columns.clone();
        if target.columns.len() > columns.len() {
            let message = "too many column names were specified";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        for (column, name) in columns.iter_mut().zip(&target.columns) {
            column.name = name.clone();
        }
        check_derived(&columns, DerivedKind::Table)?;
        let change = table_for(table.clone(), &columns, existing, on_commit);
        let (schema, own) = split_lookup_name(&table);
        let written = quoted_relation(&schema, own);
        let insert = target.with_data.then(|| insert_of(&written, query)).transpose()?;
        Ok(Program::CreateAs(Box::new(CreateAs {
            change,
            insert,
            parameters: binder.parameter_types(),
            text: text.to_owned(),
            materialized: None,
        })))
    }
}

impl CompileContext<'_> {
    /// Prepares CREATE MATERIALIZED VIEW.
    pub(super) fn create_materialized(
        &self,
        create: &ast::CreateView,
        text: &str,
    ) -> Result<Program> {
        let change = Binder::new(self, text).create_materialized(create)?;
        let CatalogChange::CreateTable(table, _) = &change else {
            return Err(SqlError::internal("a materialized view that is no table"));
        };
        match &table.materialized {
            // IF NOT EXISTS has found something of the name.
            None => Ok(Program::Catalog(change)),
            Some(new) => {
                let (name, is_populated) = (table.name.clone(), new.is_populated);
                populate(change, name, is_populated)
            }
        }
    }

    /// Prepares REFRESH MATERIALIZED VIEW.
    pub(super) fn refresh(&self, statement: &RefreshStatement) -> Result<Program> {
        let name = Binder::new(self, "").refreshed(statement)?;
        let change = CatalogChange::Refresh(name.clone(), statement.with_data);
        populate(change, name, statement.with_data)
    }
}

/// Returns what makes a change, and populates the materialized view.
fn populate(change: CatalogChange, name: SmolStr, is_populated: bool) -> Result<Program> {
    let (schema, own) = split_lookup_name(&name);
    let written = quoted_relation(&schema, own);
    let text = format!("INSERT INTO {written} SELECT * FROM \"{REFRESHED}\"");
    let parsed = is_populated.then(|| crate::parse::statement(&text)).transpose()?;
    let (insert, materialized) = (parsed.flatten(), Some(name));
    let parameters = Vec::new();
    Ok(Program::CreateAs(Box::new(CreateAs { change, insert, parameters, text, materialized })))
}

/// The INSERT of a query's rows into a table. The query stays as it was written, with its places.
fn insert_of(name: &str, query: &ast::Query) -> Result<Ast> {
    let mut parsed = crate::parse::statement(&format!("INSERT INTO {name} DEFAULT VALUES"))?;
    match &mut parsed {
        Some(Ast::Insert(insert)) => insert.source = Some(Box::new(query.clone())),
        _ => return Err(SqlError::internal("an INSERT that is none")),
    }
    parsed.ok_or_else(|| SqlError::internal("an INSERT of nothing"))
}

/// The table that SELECT … INTO makes, and the query without it.
pub(crate) fn into_target(
    query: &ast::Query,
) -> Result<Option<(ast::ObjectName, Persistence, ast::Query)>> {
    let ast::SetExpr::Select(select) = &*query.body else { return Ok(None) };
    let Some(into) = &select.into else { return Ok(None) };
    let name = match &into.targets[..] {
        [ast::Expr::Identifier(ident)] => ast::ObjectName::from(vec![ident.clone()]),
        [ast::Expr::CompoundIdentifier(idents)] => ast::ObjectName::from(idents.clone()),
        _ => return Err(SqlError::unsupported("this form of SELECT INTO")),
    };
    let persistence = Persistence::from(into.temporary);
    let mut without = query.clone();
    if let ast::SetExpr::Select(select) = &mut *without.body {
        select.into = None;
    }
    Ok(Some((name, persistence, without)))
}
