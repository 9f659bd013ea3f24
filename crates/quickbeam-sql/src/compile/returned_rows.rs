//! RETURNING with subqueries.
//!
//! `INSERT … RETURNING a, (SELECT …)` becomes `WITH rows AS (INSERT … RETURNING *) SELECT a,
//! (SELECT …) FROM rows`. The queries of both read what was there before the statement.

use sqlparser::ast::{
    self, FromTable, Ident, ObjectName, SelectItem, SetExpr, Statement as Ast, TableFactor,
    TableWithJoins,
};

use crate::bind::may_have_subquery;
use crate::error::Result;

/// The name of the common table expression.
const ROWS: &str = "returned rows";

/// Returns whether an item of RETURNING has a subquery.
fn has_subquery(item: &SelectItem) -> bool {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            may_have_subquery(expr)
        }
        _ => false,
    }
}

fn last_part(name: &ObjectName) -> Option<Ident> {
    name.0.last()?.as_ident().cloned()
}

/// Returns the name by which expressions mean the rows of the target.
fn target_name(target: &TableWithJoins) -> Option<Ident> {
    match &target.relation {
        TableFactor::Table { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, .. } => last_part(name),
        _ => None,
    }
}

/// Returns RETURNING, and the name of the target, of a change of one table.
fn returning_of(change: &mut Ast) -> Option<(&mut Option<Vec<SelectItem>>, Ident)> {
    match change {
        Ast::Insert(insert) => {
            let ast::TableObject::TableName(name) = &insert.table else { return None };
            let alias = insert.table_alias.as_ref().map(|alias| alias.alias.clone());
            let name = alias.or_else(|| last_part(name))?;
            Some((&mut insert.returning, name))
        }
        Ast::Update(update) if update.from.is_none() => {
            let name = target_name(&update.table)?;
            Some((&mut update.returning, name))
        }
        Ast::Delete(delete) if delete.using.is_none() => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            let [target] = &from[..] else { return None };
            let name = target_name(target)?;
            Some((&mut delete.returning, name))
        }
        _ => None,
    }
}

/// Returns the query for a change whose RETURNING has a subquery; `None` for other statements.
pub fn with_returned_rows(parsed: &Ast) -> Result<Option<Ast>> {
    let (with, change) = match parsed {
        Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) => (None, parsed),
        Ast::Query(query) => match &*query.body {
            SetExpr::Insert(change) | SetExpr::Update(change) | SetExpr::Delete(change) => {
                (query.with.as_ref(), change)
            }
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let returning = match change {
        Ast::Insert(insert) => insert.returning.as_deref(),
        Ast::Update(update) => update.returning.as_deref(),
        Ast::Delete(delete) => delete.returning.as_deref(),
        _ => None,
    };
    if !returning.unwrap_or_default().iter().any(has_subquery) {
        return Ok(None);
    }
    let mut change = change.clone();
    let Some((returning, name)) = returning_of(&mut change) else { return Ok(None) };
    let items = returning.replace(vec![SelectItem::Wildcard(Default::default())]);
    let text = format!("WITH \"{ROWS}\" AS (SELECT 1) SELECT 1 FROM \"{ROWS}\" AS rows");
    let mut query = crate::parse::query(&text)?;
    if let Some(own) = &mut query.with {
        for common in &mut own.cte_tables {
            *common.query.body = match change {
                Ast::Insert(_) => SetExpr::Insert(change.clone()),
                Ast::Update(_) => SetExpr::Update(change.clone()),
                _ => SetExpr::Delete(change.clone()),
            };
        }
        if let Some(with) = with {
            own.recursive = with.recursive;
            own.cte_tables.splice(0..0, with.cte_tables.iter().cloned());
        }
    }
    if let SetExpr::Select(select) = &mut *query.body {
        select.projection = items.unwrap_or_default();
        for item in &mut select.from {
            if let TableFactor::Table { alias: Some(alias), .. } = &mut item.relation {
                alias.name = name.clone();
            }
        }
    }
    Ok(Some(Ast::Query(query)))
}
