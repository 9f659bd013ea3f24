//! RETURNING with subqueries.
//!
//! `INSERT … RETURNING a, (SELECT …)` becomes `WITH rows AS (INSERT … RETURNING *) SELECT a,
//! (SELECT …) FROM rows`. The queries of both read what was there before the statement.
//!
//! With FROM or USING the change returns the row of each item as a value: `WITH rows AS (UPDATE t …
//! FROM u RETURNING t AS t, u AS u) SELECT … FROM rows, LATERAL (SELECT (rows.t).*) AS t, …`.

use sqlparser::ast::{
    self, FromTable, Ident, ObjectName, SelectItem, SetExpr, Statement as Ast, TableFactor,
    TableWithJoins, UpdateTableFromKind,
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
        Ast::Update(update) => {
            let name = target_name(&update.table)?;
            Some((&mut update.returning, name))
        }
        Ast::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
            let [target] = &from[..] else { return None };
            let name = target_name(target)?;
            Some((&mut delete.returning, name))
        }
        _ => None,
    }
}

/// Returns the names of the items of FROM or USING; `None` if one has no name.
fn other_names(change: &Ast) -> Option<Vec<Ident>> {
    let others = match change {
        Ast::Update(update) => match &update.from {
            Some(
                UpdateTableFromKind::BeforeSet(others) | UpdateTableFromKind::AfterSet(others),
            ) => &others[..],
            None => &[],
        },
        Ast::Delete(delete) => delete.using.as_deref().unwrap_or_default(),
        _ => &[],
    };
    let mut names = Vec::new();
    for item in others {
        let joined = item.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&item.relation).chain(joined) {
            names.push(match factor {
                TableFactor::Table { alias: Some(alias), .. }
                | TableFactor::Derived { alias: Some(alias), .. }
                | TableFactor::TableFunction { alias: Some(alias), .. }
                | TableFactor::Function { alias: Some(alias), .. }
                | TableFactor::UNNEST { alias: Some(alias), .. } => alias.name.clone(),
                TableFactor::Table { name, .. } => last_part(name)?,
                _ => return None,
            });
        }
    }
    Some(names)
}

/// Returns `"returned rows" AS rows, LATERAL (SELECT (rows.t).*) AS t, …` for these items.
fn rows_of(names: &[Ident]) -> Result<Vec<TableWithJoins>> {
    let fields = names
        .iter()
        .enumerate()
        .map(|(number, name)| format!(", LATERAL (SELECT (\"{ROWS}\".\"{number}\").*) AS {name}"));
    let text = format!("SELECT 1 FROM \"{ROWS}\"{}", fields.collect::<String>());
    match *crate::parse::query(&text)?.body {
        SetExpr::Select(select) => Ok(select.from),
        _ => Ok(Vec::new()),
    }
}

/// Returns the items of RETURNING, where `*` is all columns of these items of FROM.
fn with_stars(items: Vec<SelectItem>, names: &[Ident]) -> Vec<SelectItem> {
    let all_of = |name: &Ident| {
        SelectItem::QualifiedWildcard(
            ast::SelectItemQualifiedWildcardKind::ObjectName(vec![name.clone()].into()),
            ast::WildcardAdditionalOptions::default(),
        )
    };
    let expand = |item| match item {
        SelectItem::Wildcard(_) => names.iter().map(all_of).collect(),
        item => vec![item],
    };
    items.into_iter().flat_map(expand).collect()
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
    let Some(others) = other_names(&change) else { return Ok(None) };
    let Some((returning, name)) = returning_of(&mut change) else { return Ok(None) };
    let mut names = others;
    if !names.is_empty() {
        names.insert(0, name.clone());
    }
    let rows = names.iter().enumerate().map(|(number, name)| SelectItem::ExprWithAlias {
        expr: ast::Expr::Identifier(name.clone()),
        alias: Ident::with_quote('"', number.to_string()),
    });
    let rows: Vec<SelectItem> = match names.is_empty() {
        true => vec![SelectItem::Wildcard(Default::default())],
        false => rows.collect(),
    };
    let items = returning.replace(rows);
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
        let items = items.unwrap_or_default();
        if !names.is_empty() {
            select.from = rows_of(&names)?;
            select.projection = with_stars(items, &names);
            return Ok(Some(Ast::Query(query)));
        }
        select.projection = items;
        for item in &mut select.from {
            if let TableFactor::Table { alias: Some(alias), .. } = &mut item.relation {
                alias.name = name.clone();
            }
        }
    }
    Ok(Some(Ast::Query(query)))
}
