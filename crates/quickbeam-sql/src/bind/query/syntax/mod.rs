//! Queries that are bound as other queries, and parts of the syntax tree for them. These parts have
//! no position in a text.

pub(in crate::bind) mod outer_clauses;
pub(in crate::bind) mod traversals;

use sqlparser::ast::{
    self, Expr as Ast, Ident, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins,
};

use crate::bind::query::subqueries::Quantifier;
use crate::error::{Result, SqlError};

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

/// The item of FROM with the elements of an array, or the rows of a subquery.
const ELEMENTS: &str = "*elements*";

/// Returns `value operator ANY (operand)` or ALL in terms of the subquery
/// `TRUE = ANY (SELECT value operator element FROM operand)`.
pub(super) fn quantified_test(
    value: &Ast,
    symbol: &str,
    operand: &Ast,
    quantifier: Quantifier,
) -> Result<Ast> {
    let mut operand = operand;
    while let Ast::Nested(inner) = operand {
        operand = inner;
    }
    let word = if quantifier == Quantifier::Any { "ANY" } else { "ALL" };
    let (rows, null) = match operand {
        Ast::Subquery(_) => ("(SELECT 1)", "FALSE"),
        _ => ("unnest(NULL)", "NULL IS NULL"),
    };
    let text = format!(
        "CASE WHEN {null} THEN NULL ELSE TRUE = {word} (SELECT NULL {symbol} \"{ELEMENTS}\".e \
         FROM {rows} AS \"{ELEMENTS}\" (e)) END"
    );
    let mut made = crate::parse::expression(&text)?;
    let missing = || SqlError::internal("no place for the operands of a quantified operator");
    let Ast::Case { conditions, else_result: Some(test), .. } = &mut made else {
        return Err(missing());
    };
    if let [ast::CaseWhen { condition: Ast::IsNull(tested), .. }] = &mut conditions[..] {
        **tested = operand.clone();
    }
    let (Ast::AnyOp { right, .. } | Ast::AllOp { right, .. }) = &mut **test else {
        return Err(missing());
    };
    let Ast::Subquery(query) = &mut **right else { return Err(missing()) };
    let SetExpr::Select(select) = &mut *query.body else { return Err(missing()) };
    match &mut select.projection[..] {
        [SelectItem::UnnamedExpr(Ast::BinaryOp { left, .. })] => **left = value.clone(),
        _ => return Err(missing()),
    }
    match (select.from.first_mut().map(|from| &mut from.relation), operand) {
        (Some(TableFactor::Derived { subquery, .. }), Ast::Subquery(query)) => {
            *subquery = query.clone();
        }
        (Some(TableFactor::UNNEST { array_exprs, .. }), array) => {
            *array_exprs = vec![array.clone()];
        }
        _ => return Err(missing()),
    }
    Ok(made)
}
