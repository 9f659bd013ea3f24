//! CREATE TABLE … AS and SELECT … INTO: a table of a query's columns, and the INSERT that fills it
//! with the query's rows.

use sqlparser::ast::{self, Statement as Ast};

use super::{CompileContext, Program};
use crate::bind::OnExisting;
use crate::bind::{Binder, CatalogChange, table_for};
use crate::error::{Result, SqlError};

/// CREATE TABLE … AS, SELECT … INTO.
pub(crate) struct CreateAs {
    /// The table.
    pub change: CatalogChange,
    /// The INSERT that fills it; none: it stays empty.
    pub insert: Option<Ast>,
    /// The text in which its query stands.
    pub text: String,
}

/// The clauses of CREATE TABLE … AS.
#[derive(Clone, Copy, Debug)]
pub(super) struct CreateAsClauses {
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// WITH DATA, the default.
    pub with_data: bool,
}

impl CompileContext<'_> {
    /// Prepares the table and the INSERT; [`Program::Nothing`] if IF NOT EXISTS finds a table.
    pub(super) fn create_as(
        &self,
        name: &ast::ObjectName,
        query: &ast::Query,
        clauses: CreateAsClauses,
        text: &str,
    ) -> Result<Program> {
        let CreateAsClauses { if_not_exists, with_data } = clauses;
        let mut binder = Binder::new(self, text);
        let (table, is_there) = binder.new_relation(name, OnExisting::from(if_not_exists))?;
        if is_there {
            return Ok(Program::Nothing);
        }
        let bound = binder.query_statement(query)?;
        if !binder.parameters.is_empty() {
            return Err(SqlError::unsupported("a parameter in CREATE TABLE … AS"));
        }
        let change = table_for(table, &bound.columns, if_not_exists);
        let insert = with_data.then(|| insert_of(name, query)).transpose()?;
        Ok(Program::CreateAs(Box::new(CreateAs { change, insert, text: text.to_owned() })))
    }
}

/// The INSERT of a query's rows into a table. The query stays as it was written, with its places.
fn insert_of(name: &ast::ObjectName, query: &ast::Query) -> Result<Ast> {
    let mut parsed = crate::parse::statement(&format!("INSERT INTO {name} DEFAULT VALUES"))?;
    match &mut parsed {
        Some(Ast::Insert(insert)) => insert.source = Some(Box::new(query.clone())),
        _ => return Err(SqlError::internal("an INSERT that is none")),
    }
    parsed.ok_or_else(|| SqlError::internal("an INSERT of nothing"))
}

/// The table that SELECT … INTO makes, and the query without it.
pub(crate) fn into_target(query: &ast::Query) -> Result<Option<(ast::ObjectName, ast::Query)>> {
    let ast::SetExpr::Select(select) = &*query.body else { return Ok(None) };
    let Some(into) = &select.into else { return Ok(None) };
    let name = match &into.targets[..] {
        [ast::Expr::Identifier(ident)] => ast::ObjectName::from(vec![ident.clone()]),
        [ast::Expr::CompoundIdentifier(idents)] => ast::ObjectName::from(idents.clone()),
        _ => return Err(SqlError::unsupported("this form of SELECT INTO")),
    };
    if into.temporary {
        return Err(SqlError::unsupported("a temporary table"));
    }
    let mut without = query.clone();
    if let ast::SetExpr::Select(select) = &mut *without.body {
        select.into = None;
    }
    Ok(Some((name, without)))
}
