//! Queries that are bound as other queries, and parts of the syntax tree for them. These parts have
//! no position in a text.

pub(in crate::bind) mod outer_clauses;
pub(in crate::bind) mod traversals;

use sqlparser::ast::{
    self, Expr as Ast, Ident, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins,
};

use crate::error::Result;

/// Returns a quoted name.
fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// Returns a column of an item of FROM.
fn column_of(relation: &str, column: &str) -> Ast {
    Ast::CompoundIdentifier(vec![quoted(relation), quoted(column)])
}

/// Returns an item of a select list with a name.
fn named_item(expr: Ast, name: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: quoted(name) }
}

/// Whether a derived table sees the items to its left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sight {
    Lateral,
    Closed,
}

/// Returns an item of FROM that is a query with these column names.
fn derived_table(query: ast::Query, name: &str, columns: &[&str], sight: Sight) -> TableWithJoins {
    let columns =
        columns.iter().map(|column| TableAliasColumnDef { name: quoted(column), data_type: None });
    let alias =
        TableAlias { explicit: true, name: quoted(name), columns: columns.collect(), at: None };
    let relation = TableFactor::Derived {
        lateral: sight == Sight::Lateral,
        subquery: Box::new(query),
        alias: Some(alias),
        sample: None,
    };
    TableWithJoins { relation, joins: Vec::new() }
}

/// Returns a query that has only a body.
pub(super) fn query_of(body: SetExpr) -> ast::Query {
    ast::Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// Returns a SELECT of these items.
fn select_of(projection: Vec<SelectItem>, from: Vec<TableWithJoins>) -> Result<SetExpr> {
    let mut body = *crate::parse::query("SELECT 1")?.body;
    if let SetExpr::Select(select) = &mut body {
        (select.projection, select.from) = (projection, from);
        select.select_token = ast::helpers::attached_token::AttachedToken::empty();
    }
    Ok(body)
}
