//! Keys of GROUP BY and ORDER BY.

use std::sync::Arc;

use sqlparser::ast::{self, Expr as Ast};

use super::row_calls::RowFunctions;
use super::select::Selected;
use crate::bind::grouping::aggregates::AGGREGATES;
use crate::bind::types::undefined::{refuse_unequal, refuse_unordered};
use crate::bind::{
    Binder, Level, OrderKey, OutputColumn, Scope, ScopeColumn, ScopeRelation, Typed, fold,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Expr};

impl Binder<'_> {
    /// Binds one key of GROUP BY. Returns also the number of the output that it is.
    pub(in crate::bind) fn group_key(
        &mut self,
        item: &Ast,
        select: &ast::Select,
        selected: &[Selected],
        scope: &Scope,
    ) -> Result<(Expr, Option<usize>)> {
        let position = self.position(item) as usize;
        let named = self.output_named(item, "GROUP BY", selected, scope)?;
        // A key written like an output is that output, so that both share a subquery.
        let written = || written_at(item, &select.projection);
        let output = named.or_else(written);
        let key = match output {
            Some(output) => selected[output].value.clone(),
            None => {
                let value = self
                    .with_row_functions(RowFunctions::Allowed, |it| it.expression(item, scope))?;
                self.settle(value)?
            }
        };
        refuse_unequal(key.data_type, position)?;
        let key = self.grouped(key)?;
        let groups = self.levels.last().and_then(|level| level.group_slot);
        let windows = self.levels.last().and_then(|level| level.windows.as_ref());
        let windows = windows.map(|windows| windows.slot);
        let (mut aggregate, mut window) = (false, false);
        key.each_column(&mut |column| {
            aggregate |= Some(column.slot) == groups && column.column >= AGGREGATES;
            window |= Some(column.slot) == windows;
        });
        if window {
            let message = "window functions are not allowed in GROUP BY";
            return Err(SqlError::new(SqlState::WindowingError, message).at(position));
        }
        if aggregate {
            let message = "aggregate functions are not allowed in GROUP BY";
            return Err(SqlError::new(SqlState::GroupingError, message).at(position));
        }
        let equal = || selected.iter().position(|one| one.value.expr == key);
        let output = output.or_else(equal);
        Ok((key, output))
    }

    /// Notes the text of GROUP BY if it may have subqueries.
    pub(in crate::bind) fn note_group_text(&mut self, group_by: &ast::GroupByExpr) {
        let ast::GroupByExpr::Expressions(list, _) = group_by else { return };
        let is_plain = |item: &Ast| {
            matches!(item, Ast::Identifier(_) | Ast::CompoundIdentifier(_) | Ast::Value(_))
        };
        if list.iter().all(is_plain) {
            return;
        }
        let text = group_by.to_string();
        if let Some(level) = self.levels.last_mut()
            && text.contains("SELECT")
        {
            level.group_text = Some(text);
        }
    }

    /// Returns whether a subquery outside of aggregates is written like one in GROUP BY, or one is
    /// in an aggregate with DISTINCT and ORDER BY.
    pub(in crate::bind) fn is_of_key(&self, ast: &Ast) -> bool {
        let Some(level) = self.levels.last() else { return false };
        if level.in_aggregate {
            return level.of_aggregate.is_some() && is_subquery(ast);
        }
        let Some(text) = &level.group_text else { return false };
        is_subquery(ast) && text.contains(&ast.to_string())
    }

    /// Binds a subquery that is written like one in GROUP BY, or in an aggregate with DISTINCT and
    /// ORDER BY. All such subqueries are one, so that the expressions with them are equal.
    pub(in crate::bind) fn subquery_of_key(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed> {
        let level = self.levels.last_mut();
        let known = level.and_then(Level::equal_subqueries);
        let known = known.and_then(|known| known.iter().find(|(written, _)| written == ast));
        if let Some((_, bound)) = known {
            return Ok(bound.clone());
        }
        let bound = self.step_alone(ast, scope)?;
        if let Some(known) = self.levels.last_mut().and_then(Level::equal_subqueries) {
            known.push((ast.clone(), bound.clone()));
        }
        Ok(bound)
    }

    /// Binds DISTINCT ON. Its expressions must be those that ORDER BY begins with, in any order.
    pub(in crate::bind) fn distinct_on(
        &mut self,
        list: &[Ast],
        order: &[OrderKey],
        selected: &[Selected],
        scope: &Scope,
    ) -> Result<Vec<Expr>> {
        let items: Vec<ast::OrderByExpr> = list
            .iter()
            .map(|expr| ast::OrderByExpr {
                expr: expr.clone(),
                options: ast::OrderByOptions::default(),
                with_fill: None,
            })
            .collect();
        let keys = self.order(&items, selected, Some(scope))?;
        let keys: Vec<Expr> = keys.into_iter().map(|key| key.expr).collect();
        let mut open: Vec<&Expr> = keys.iter().collect();
        for key in order {
            if open.is_empty() {
                break;
            }
            if !keys.contains(&key.expr) {
                let message =
                    "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
                let position = list.first().map_or(0, |first| self.position(first));
                let error = SqlError::new(SqlState::InvalidColumnReference, message);
                return Err(error.at(position as usize));
            }
            open.retain(|expr| **expr != key.expr);
        }
        Ok(keys)
    }

    /// Returns the output that a key of ORDER BY or GROUP BY names, by position, or by a name that
    /// is not a column's.
    fn output_named(
        &self,
        item: &Ast,
        clause: &str,
        selected: &[Selected],
        scope: &Scope,
    ) -> Result<Option<usize>> {
        match item {
            Ast::Value(value) => match &value.value {
                ast::Value::Number(digits, _) if digits.parse::<i32>().is_err() => {
                    Err(no_position(self.position(item) as usize))
                }
                ast::Value::Number(digits, _) => {
                    let number =
                        digits.parse::<usize>().ok().filter(|n| (1..=selected.len()).contains(n));
                    let position = self.position(item) as usize;
                    number.map(|number| Some(number - 1)).ok_or_else(|| {
                        let message = format!("{clause} position {digits} is not in select list");
                        SqlError::new(SqlState::InvalidColumnReference, message).at(position)
                    })
                }
                ast::Value::Placeholder(_) => Ok(None),
                _ => Err(no_position(self.position(item) as usize)),
            },
            // A number with a sign is a position, too, and no output's.
            Ast::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match &**expr {
                Ast::Value(value) if matches!(value.value, ast::Value::Number(..)) => {
                    self.output_named(expr, clause, &[], scope)
                }
                _ => Ok(None),
            },
            Ast::Identifier(ident) => {
                let name = fold(ident);
                if scope.resolve(None, &name).is_ok() {
                    return Ok(None);
                }
                self.only_output(&name, selected, ident, "GROUP BY")
            }
            _ => Ok(None),
        }
    }

    /// Returns the output of that name. Several outputs of one name must be the same value.
    fn only_output(
        &self,
        name: &str,
        selected: &[Selected],
        ident: &ast::Ident,
        clause: &str,
    ) -> Result<Option<usize>> {
        let mut named = selected.iter().enumerate().filter(|(_, one)| one.name == name);
        let Some((first, known)) = named.next() else { return Ok(None) };
        if named.any(|(_, other)| other.value.expr != known.value.expr) {
            let error = SqlError::new(
                SqlState::AmbiguousColumn,
                format!("{clause} \"{name}\" is ambiguous"),
            );
            return Err(error.at(self.place_of(ident)));
        }
        Ok(Some(first))
    }

    /// Returns the direction of a sort key. `USING <` is ASC and `USING >` is DESC.
    pub(in crate::bind) fn is_descending(&self, key: &ast::OrderByExpr) -> Result<bool> {
        let Some(ast::OrderBySort::Using(operator)) = &key.options.sort else {
            return Ok(matches!(key.options.sort, Some(ast::OrderBySort::Desc)));
        };
        let symbol = operator.0.last().map(ToString::to_string).unwrap_or_default();
        match symbol.as_str() {
            "<" => Ok(false),
            ">" => Ok(true),
            _ => {
                let message = format!("operator {symbol} is not a valid ordering operator");
                let error = SqlError::new(SqlState::WrongObjectType, message);
                Err(error.at(self.position(&key.expr) as usize))
            }
        }
    }

    pub(in crate::bind) fn order(
        &mut self,
        order: &[ast::OrderByExpr],
        selected: &[Selected],
        scope: Option<&Scope>,
    ) -> Result<Vec<OrderKey>> {
        let nowhere = Scope::default();
        let mut keys = Vec::with_capacity(order.len());
        for item in order {
            let descending = self.is_descending(item)?;
            let nulls_first = item.options.nulls_first.unwrap_or(descending);
            // Other than in GROUP BY, the name of an output counts before that of a column.
            let output = match &item.expr {
                Ast::Identifier(ident) => {
                    self.only_output(&fold(ident), selected, ident, "ORDER BY")?
                }
                other => {
                    self.output_named(other, "ORDER BY", selected, scope.unwrap_or(&nowhere))?
                }
            };
            let value = match (output, scope) {
                (Some(output), _) => selected[output].value.clone(),
                (None, Some(scope)) => {
                    let allowed = RowFunctions::Allowed;
                    let value = self.with_row_functions(allowed, |binder| {
                        binder.expression(&item.expr, scope)
                    })?;
                    self.settle(value)?
                }
                (None, None) => {
                    let position = self.position(&item.expr) as usize;
                    let error = match &item.expr {
                        Ast::Identifier(name) => {
                            let message = format!("column \"{}\" does not exist", fold(name));
                            SqlError::new(SqlState::UndefinedColumn, message)
                        }
                        _ => invalid_order_of_sets(),
                    };
                    return Err(error.at(position));
                }
            };
            refuse_unordered(value.data_type, self.position(&item.expr) as usize)?;
            let output =
                output.or_else(|| selected.iter().position(|it| it.value.expr == value.expr));
            let expr = self.ordered(value, self.position(&item.expr))?;
            // The output is the text, not its sort key.
            let output = output.filter(|_| expr.text_of_sort_key().is_none());
            keys.push(OrderKey { expr, output, descending, nulls_first });
        }
        Ok(keys)
    }

    /// Binds ORDER BY of VALUES, whose rows are in `slot`.
    pub(in crate::bind) fn order_of_values(
        &mut self,
        order: &[ast::OrderByExpr],
        columns: &[OutputColumn],
        slot: usize,
        outer: Option<Arc<Scope>>,
    ) -> Result<Vec<OrderKey>> {
        let column = |(column, output): (usize, &OutputColumn)| ScopeColumn {
            name: output.name.clone(),
            data_type: output.data_type,
            at: ColumnRef { slot, column },
            collation: output.collation,
            stored: None,
        };
        let relation = ScopeRelation {
            name: "*VALUES*".into(),
            columns: columns.iter().enumerate().map(column).collect(),
            ..ScopeRelation::default()
        };
        self.set_collations(slot, columns);
        let scope = Scope { outer, ..Scope::of(vec![relation]) };
        let selected = selected_outputs(columns, slot);
        let (keys, level) = self.level(|binder| binder.order(order, &selected, Some(&scope)))?;
        if !level.subqueries.is_empty() || !level.row_calls.steps.is_empty() {
            let what = "a subquery or a set-returning function in ORDER BY of VALUES";
            return Err(SqlError::unsupported(what));
        }
        Ok(keys)
    }

    /// Binds ORDER BY of a query that can only name its output columns, which have these values.
    pub(in crate::bind) fn order_of_values_in(
        &mut self,
        order: &[ast::OrderByExpr],
        columns: &[OutputColumn],
        values: &[Expr],
    ) -> Result<Vec<OrderKey>> {
        let outputs = columns.iter().zip(values).map(|(output, value)| Selected {
            name: output.name.clone(),
            value: Typed::new(value.clone(), output.data_type, 0),
            is_unknown: false,
        });
        let outputs: Vec<Selected> = outputs.collect();
        self.order(order, &outputs, None)
    }

    /// Binds ORDER BY of a set operation, which can only name output columns. `slot` is the slot of
    /// the result rows.
    pub(in crate::bind) fn order_of_outputs(
        &mut self,
        order: &[ast::OrderByExpr],
        columns: &[OutputColumn],
        slot: usize,
    ) -> Result<Vec<OrderKey>> {
        self.set_collations(slot, columns);
        self.order(order, &selected_outputs(columns, slot), None)
    }
}

/// Returns the output that is written like the key, if the select list has no `*`.
fn written_at(key: &Ast, projection: &[ast::SelectItem]) -> Option<usize> {
    use ast::SelectItem as Item;
    let mut found = None;
    for (number, item) in projection.iter().enumerate() {
        let (Item::UnnamedExpr(expr) | Item::ExprWithAlias { expr, .. }) = item else {
            return None;
        };
        found = found.or((expr == key).then_some(number));
    }
    found
}

impl Level {
    /// Returns the subqueries that are one wherever they are written.
    fn equal_subqueries(&mut self) -> Option<&mut Vec<(Ast, Typed)>> {
        if self.in_aggregate { self.of_aggregate.as_mut() } else { Some(&mut self.of_keys) }
    }
}

fn is_subquery(ast: &Ast) -> bool {
    match ast {
        Ast::Subquery(_) | Ast::Exists { .. } | Ast::InSubquery { .. } => true,
        Ast::Function(call) => matches!(call.args, ast::FunctionArguments::Subquery(_)),
        _ => false,
    }
}

/// Returns the columns of a slot as outputs of a select list.
fn selected_outputs(columns: &[OutputColumn], slot: usize) -> Vec<Selected> {
    columns
        .iter()
        .enumerate()
        .map(|(column, output)| Selected {
            name: output.name.clone(),
            value: Typed::new(Expr::column(slot, column), output.data_type, 0),
            is_unknown: false,
        })
        .collect()
}

/// A set operation is ordered by its outputs alone.
#[cold]
fn invalid_order_of_sets() -> SqlError {
    let message = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
    SqlError::new(SqlState::FeatureNotSupported, message)
        .with_detail("Only result column names can be used, not expressions or functions.")
        .with_hint(
            "Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
        )
}

/// A constant as a sort or group key must be the position of an output.
#[cold]
fn no_position(position: usize) -> SqlError {
    let message = "syntax error: a constant as a key must be the number of an output";
    SqlError::new(SqlState::SyntaxError, message).at(position)
}
