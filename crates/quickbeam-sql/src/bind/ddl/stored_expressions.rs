//! Stored expressions: DEFAULT and CHECK.
//!
//! They are stored as text. The definition binds the expression in place, so that errors have a
//! position. The stored text is bound at definition and again by each statement that needs it.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast;

use super::super::{Binder, Level, Names, Scope, Typed};
use super::table_outline::{ConstraintKind, Outline};
use crate::bind::scope::relation_of;
use crate::catalog::{DomainUse, NewCheck, Table};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::{DataType, Value};

/// Returns a column's DEFAULT, or the `nextval` of its sequence.
pub fn column_default(names: &dyn Names, table: &Table, column: usize) -> Result<Option<Expr>> {
    let Some(column) = table.columns.get(column) else { return Ok(None) };
    if column.generated.is_some() {
        return Ok(None);
    }
    if let Some(identity) = column.identity {
        return Ok(Some(Expr::NextValue(identity.sequence.0, column.data_type)));
    }
    match &column.default {
        None => inherited_default(names, column.domain, column.data_type, &column.name),
        Some(text) => kept_default(names, text, column.data_type, &column.name).map(Some),
    }
}

/// Returns the DEFAULT that a column without one has from its domain.
pub(super) fn inherited_default(
    names: &dyn Names,
    domain: Option<DomainUse>,
    data_type: DataType,
    column: &str,
) -> Result<Option<Expr>> {
    let domain = domain.and_then(DomainUse::of_value);
    let text = domain.and_then(|id| names.snapshot()?.domain_default(id));
    text.map(|text| kept_default(names, text, data_type, column)).transpose()
}

/// Returns the DEFAULT of a column of a view, as a value for a column of a table.
pub fn view_default(
    names: &dyn Names,
    text: &str,
    data_type: DataType,
    column: &str,
) -> Result<Expr> {
    kept_default(names, text, data_type, column)
}

/// Returns the text of a DEFAULT. `nextval` of a sequence has the form that PostgreSQL shows.
fn text_of_default(written: &ast::Expr) -> String {
    let name_in = |argument: &ast::FunctionArg| {
        let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)) = argument else {
            return None;
        };
        let value = match value {
            ast::Expr::Cast { expr, data_type: ast::DataType::Regclass, .. } => expr,
            value => value,
        };
        match value {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::SingleQuotedString(_) => Some(value.to_string()),
                _ => None,
            },
            _ => None,
        }
    };
    if let ast::Expr::Function(call) = written
        && call.name.to_string().eq_ignore_ascii_case("nextval")
        && let ast::FunctionArguments::List(list) = &call.args
        && let [argument] = &list.args[..]
        && let Some(name) = name_in(argument)
    {
        return format!("nextval({name}::regclass)");
    }
    written.to_string()
}

/// Binds the text of a DEFAULT as it is kept.
fn kept_default(names: &dyn Names, text: &str, data_type: DataType, column: &str) -> Result<Expr> {
    let parsed = crate::parse::expression(text)?;
    default_in(Binder::of_stored(names), &parsed, data_type, column)
}

fn default_in(
    mut binder: Binder<'_>,
    parsed: &ast::Expr,
    data_type: DataType,
    column: &str,
) -> Result<Expr> {
    let (value, level) = binder.level(|binder| {
        let bound: Typed = binder.expression(parsed, &Scope::default()).map_err(of_columns)?;
        binder.assign(bound, data_type, column)
    })?;
    binder.stands_alone(parsed, &level, "DEFAULT")?;
    Ok(value)
}

/// A table's CHECK as an expression over a row in that slot.
pub fn check_of(names: &dyn Names, table: &Table, text: &str, slot: usize) -> Result<Expr> {
    let relations = vec![relation_of(table, slot, table.name.clone())];
    kept_condition(names, text, &Scope::of(relations))
}

/// Binds the text of a condition as it is kept.
pub(in crate::bind) fn kept_condition(
    names: &dyn Names,
    text: &str,
    scope: &Scope,
) -> Result<Expr> {
    check_in(Binder::of_stored(names), &crate::parse::expression(text)?, scope)
}

/// Binds a condition of a statement.
pub(in crate::bind) fn new_condition(
    names: &dyn Names,
    parsed: &ast::Expr,
    scope: &Scope,
) -> Result<Expr> {
    check_in(Binder::new(names, ""), parsed, scope)
}

fn check_in(mut binder: Binder<'_>, parsed: &ast::Expr, scope: &Scope) -> Result<Expr> {
    let (value, level) = binder.level(|binder| binder.condition(parsed, "CHECK", scope))?;
    binder.stands_alone(parsed, &level, "CHECK")?;
    Ok(value)
}

/// Returns the expression, over a row in slot 0, that converts a column to another type: the one of
/// USING, or the column itself.
pub fn conversion_of(
    names: &dyn Names,
    table: &Table,
    position: usize,
    data_type: DataType,
    using: Option<&str>,
) -> Result<Expr> {
    let Some(column) = table.columns.get(position) else {
        return Err(SqlError::internal("a column that the table does not have"));
    };
    let mut binder = Binder { settings: names.settings(), ..Binder::of_stored(names) };
    let scope = Scope::of(vec![relation_of(table, 0, table.name.clone())]);
    let parsed = match using {
        Some(text) => crate::parse::expression(text)?,
        None => ast::Expr::Identifier(ast::Ident::with_quote('"', column.name.as_str())),
    };
    let (value, level) = binder.level(|binder| {
        let bound: Typed = binder.expression(&parsed, &scope)?;
        binder.assign(bound, data_type, &column.name).map_err(|error| {
            if error.state() != SqlState::DatatypeMismatch {
                return error;
            }
            let what = match using {
                Some(_) => format!("result of USING clause for column \"{}\"", column.name),
                None => format!("column \"{}\"", column.name),
            };
            let message = format!("{what} cannot be cast automatically to type {data_type}");
            let hint = format!("You might need to specify \"USING {}::{data_type}\".", column.name);
            SqlError::new(SqlState::DatatypeMismatch, message).with_hint(hint)
        })
    })?;
    binder.stands_alone(&parsed, &level, "transform expression")?;
    if let Some(default) = column.default.as_ref().filter(|_| column.generated.is_none()) {
        let old = Typed {
            expr: kept_default(names, default, column.data_type, &column.name)?,
            data_type: Some(column.data_type),
            position: 0,
        };
        Binder::of_stored(names).assign(old, data_type, &column.name).map_err(|_| {
            let message = format!(
                "default for column \"{}\" cannot be cast automatically to type {data_type}",
                column.name
            );
            SqlError::new(SqlState::DatatypeMismatch, message)
        })?;
    }
    Ok(value)
}

/// Returns the error for a DEFAULT that names a column, existing or not.
#[cold]
fn of_columns(error: SqlError) -> SqlError {
    if error.state() != SqlState::UndefinedColumn {
        return error;
    }
    let refused = SqlError::unsupported("a column in a DEFAULT");
    match error.position() {
        Some(position) => refused.at(position),
        None => refused,
    }
}

/// Returns the names of the columns that an expression over a table's row reads.
pub(super) fn read_columns(expr: &Expr, outline: &Outline) -> Vec<SmolStr> {
    let mut read: Vec<usize> = Vec::new();
    expr.each_column(&mut |column| read.push(column.column));
    read.sort_unstable();
    read.dedup();
    let names = read.into_iter().filter_map(|column| outline.columns.get(column));
    names.map(|(name, ..)| name.clone()).collect()
}

/// Adds the numbers of the sequences that an expression uses.
fn sequences(expr: &Expr, found: &mut Vec<u32>) {
    match expr {
        Expr::NextValue(number, _) | Expr::SetValue(number, ..) => found.push(*number),
        Expr::CurrentValue(number) => found.extend(*number),
        _ => {}
    }
    expr.each_child(&mut |child| sequences(child, found));
}

impl Binder<'_> {
    /// Checks that a stored expression has no subqueries, parameters or aggregates.
    pub(super) fn stands_alone(&self, parsed: &ast::Expr, level: &Level, what: &str) -> Result<()> {
        self.check_literals().map_err(|error| error.at(self.position(parsed) as usize))?;
        let error = if !level.subqueries.is_empty() {
            SqlError::unsupported(format!("a subquery in a {what}"))
        } else if self.reads_system_columns {
            let message = format!("system columns cannot be used in a {what}");
            SqlError::new(SqlState::InvalidColumnReference, message)
        } else if !self.parameters.is_empty() {
            let message = format!("there are no parameters in a {what}");
            SqlError::new(SqlState::UndefinedParameter, message)
        } else {
            return Ok(());
        };
        Err(error.at(self.position(parsed) as usize))
    }

    /// Checks that a default takes the values of the same sequences when its text is bound again,
    /// without the search path (SCHEMA-NAME-2).
    fn check_sequences(&self, written: &Expr, kept: Result<Expr>) -> Result<()> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        sequences(written, &mut before);
        let kept = match kept {
            Ok(kept) => kept,
            Err(error) if self.path.is_none() || before.is_empty() => return Err(error),
            Err(_) => Expr::Constant(Value::Null),
        };
        sequences(&kept, &mut after);
        if before == after {
            return Ok(());
        }
        let what = "a DEFAULT with a sequence of another schema than public that is not qualified";
        Err(SqlError::unsupported(what).with_hint("Write the schema before the sequence's name."))
    }

    /// Binds a DEFAULT of this statement. Returns its text and its expression.
    pub(in crate::bind) fn new_default(
        &self,
        written: &ast::Expr,
        data_type: DataType,
        column: &str,
    ) -> Result<(Arc<str>, Expr)> {
        let binder = Binder::new(self.names, self.text.as_str());
        let value = default_in(binder, written, data_type, column)?;
        let text = text_of_default(written);
        let kept = kept_default(self.names, &text, data_type, column);
        self.check_sequences(&value, kept)?;
        Ok((text.into(), value))
    }

    /// A CHECK of this statement: its text, and the names of the columns that it reads.
    pub(super) fn new_check(
        &self,
        check: &ast::CheckConstraint,
        outline: &mut Outline,
    ) -> Result<NewCheck> {
        if check.enforced == Some(false) {
            return Err(SqlError::unsupported("a CHECK that is NOT ENFORCED"));
        }
        let name = self.take_constraint(outline, check.name.as_ref(), ConstraintKind::Rule)?;
        let scope = outline.scope();
        check_in(Binder::new(self.names, self.text.as_str()), &check.expr, &scope)?;
        let text = check.expr.to_string();
        let condition = kept_condition(self.names, &text, &scope)?;
        let columns = read_columns(&condition, outline);
        let no_inherit = check.no_inherit;
        Ok(NewCheck { name, expression: text.into(), columns, not_valid: false, no_inherit })
    }
}
