//! Functions that return composite rows in the select list.
//!
//! Such a function becomes a LATERAL item of FROM, whose row is the value of the call.

use std::borrow::Cow;

use sqlparser::ast::{
    self, AccessExpr, Expr as Ast, FunctionArguments, Ident, SelectItem, TableAlias, TableFactor,
    TableWithJoins,
};

use super::implied_names::implied_name;
use crate::bind::records::whole_rows::row_of_star;
use crate::bind::{Binder, From, Scope, function_name};
use crate::error::{Result, SqlError};
use crate::expression::{RowFunction, row_function};

/// The item of FROM that holds the rows of the function.
const ROWS: &str = "*rows*";

/// Returns the function of a call that returns several columns.
fn composite(call: &ast::Function) -> Option<&'static RowFunction> {
    let name = function_name(&call.name).ok()?;
    let FunctionArguments::List(list) = &call.args else { return None };
    row_function(&name, list.args.len()).filter(|function| function.columns.len() > 1)
}

/// Returns the call in parentheses.
fn call_in(mut expr: &Ast) -> Option<&ast::Function> {
    while let Ast::Nested(within) = expr {
        expr = within;
    }
    match expr {
        Ast::Function(call) => Some(call),
        _ => None,
    }
}

/// Returns the expression that reads a field of the function's rows.
fn read(field: &str) -> Ast {
    Ast::CompoundIdentifier(vec![Ident::with_quote('"', ROWS), Ident::with_quote('"', field)])
}

impl Binder<'_> {
    /// Binds FROM, with an item for the function that returns composite rows in the select list,
    /// and returns it with the list.
    pub(in crate::bind) fn items_and_from<'s>(
        &mut self,
        select: &'s ast::Select,
        scope: &mut Scope,
    ) -> Result<(Option<From>, Cow<'s, [SelectItem]>)> {
        let from = self.from(&select.from, scope)?;
        let mut flattened = Flattened::default();
        for item in &select.projection {
            flattened.item(item);
        }
        let Some(call) = flattened.call else {
            return Ok((from, Cow::Borrowed(&select.projection)));
        };
        let is_grouped = select.having.is_some()
            || !matches!(&select.group_by, ast::GroupByExpr::Expressions(list, _) if list.is_empty());
        let has_window = select.projection.iter().any(|item| item.to_string().contains(" OVER "));
        if flattened.has_others || is_grouped || has_window {
            let what = "a function that returns composite rows beside another function that \
                        returns rows, GROUP BY or a window function";
            return Err(SqlError::unsupported(what));
        }
        let from = self.and_rows_of(from, &[rows_of(&call)], scope)?;
        Ok((from, Cow::Owned(flattened.items)))
    }
}

/// A select list without functions that return composite rows.
#[derive(Default)]
struct Flattened {
    items: Vec<SelectItem>,
    /// The function. Equal calls share their rows.
    call: Option<ast::Function>,
    /// Whether there are other functions that return rows.
    has_others: bool,
}

impl Flattened {
    fn item(&mut self, item: &SelectItem) {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => {
                (expr, Ident::with_quote('"', implied_name(expr).as_str()))
            }
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias.clone()),
            _ => {
                self.items.push(item.clone());
                return;
            }
        };
        if let Ast::Function(call) = expr
            && composite(call).is_some()
        {
            self.add(call);
            let expr = Ast::Identifier(Ident::with_quote('"', ROWS));
            self.items.push(SelectItem::ExprWithAlias { expr, alias: name });
            return;
        }
        if let Some(row) = row_of_star(expr)
            && let Some(call) = call_in(&row)
            && let Some(function) = composite(call)
        {
            self.add(call);
            for (field, _) in function.columns {
                let alias = Ident::with_quote('"', *field);
                self.items.push(SelectItem::ExprWithAlias { expr: read(field), alias });
            }
            return;
        }
        let mut changed = expr.clone();
        self.replace(&mut changed);
        self.items.push(if changed == *expr {
            item.clone()
        } else {
            SelectItem::ExprWithAlias { expr: changed, alias: name }
        });
    }

    /// Replaces a field of a call by the column that holds it.
    fn replace(&mut self, expr: &mut Ast) {
        match expr {
            Ast::CompoundFieldAccess { root, access_chain } => {
                let mut inner: &Ast = root;
                while let Ast::Nested(within) = inner {
                    inner = within;
                }
                match (inner, &access_chain[..]) {
                    (Ast::Function(call), [AccessExpr::Dot(Ast::Identifier(field))])
                        if composite(call).is_some() =>
                    {
                        self.add(call);
                        *expr = read(&crate::bind::fold(field));
                    }
                    _ => self.replace(root),
                }
            }
            Ast::Function(call) => {
                let count = match &call.args {
                    FunctionArguments::List(list) => list.args.len(),
                    _ => 0,
                };
                let name = function_name(&call.name).unwrap_or_default();
                self.has_others |= Binder::is_row_function(&name, count);
            }
            Ast::Nested(inner)
            | Ast::Cast { expr: inner, .. }
            | Ast::UnaryOp { expr: inner, .. } => self.replace(inner),
            Ast::BinaryOp { left, right, .. } => {
                self.replace(left);
                self.replace(right);
            }
            _ => {}
        }
    }

    fn add(&mut self, call: &ast::Function) {
        self.has_others |= self.call.as_ref().is_some_and(|known| known != call);
        self.call.get_or_insert_with(|| call.clone());
    }
}

/// Returns the item of FROM that a call becomes.
fn rows_of(call: &ast::Function) -> TableWithJoins {
    let args = match &call.args {
        FunctionArguments::List(list) => list.args.clone(),
        _ => Vec::new(),
    };
    let name = Ident::with_quote('"', ROWS);
    let alias = TableAlias { explicit: true, name, columns: Vec::new(), at: None };
    let relation = TableFactor::Function {
        lateral: true,
        name: call.name.clone(),
        args,
        with_ordinality: false,
        alias: Some(alias),
    };
    TableWithJoins { relation, joins: Vec::new() }
}
