//! Aggregate calls: resolves names and argument types.

use sqlparser::ast::{Expr as Ast, FunctionArg, FunctionArgExpr, ObjectName};

use super::levels::grouping_error;
use super::{
    Aggregate, AggregateKind, Binder, Level, Scope, ScopeColumn, SlotShape, Source, Typed,
    object_name,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::{DataType, Value};

/// Group columns from this number on are aggregates without an assigned position.
pub(super) const AGGREGATES: usize = 1 << 20;

/// Returns the aggregate of that name.
pub(super) fn aggregate_of(name: &str) -> Option<AggregateKind> {
    Some(match name {
        "count" => AggregateKind::Count,
        "sum" => AggregateKind::Sum,
        "avg" => AggregateKind::Average,
        "min" => AggregateKind::Minimum,
        "max" => AggregateKind::Maximum,
        "bool_and" | "every" => AggregateKind::All,
        "bool_or" => AggregateKind::Any,
        _ => return None,
    })
}

const NOT_ALLOWED: &str = "aggregate functions are not allowed here";

/// Returns whether the argument or the FILTER of an aggregate contains an aggregate of the level.
fn has_aggregate(level: &Level, argument: &Option<Expr>, filter: &Option<Expr>) -> bool {
    let mut found = false;
    for expr in argument.iter().chain(filter) {
        expr.each_column(&mut |column| {
            found |= Some(column.slot) == level.group_slot && column.column >= AGGREGATES;
        });
    }
    found
}

impl Binder<'_> {
    /// Binds an aggregate call. It belongs to the innermost query whose columns it reads, which may
    /// enclose the query that contains it.
    pub(super) fn aggregate(
        &mut self,
        kind: AggregateKind,
        list: &[FunctionArg],
        distinct: bool,
        filter: Option<&Ast>,
        position: u32,
        scope: &Scope,
    ) -> Result<Typed> {
        let (nested, subqueries) = match self.levels.last_mut() {
            Some(level) => {
                (std::mem::replace(&mut level.in_aggregate, true), level.subqueries.len())
            }
            None => return Err(grouping_error(NOT_ALLOWED, position)),
        };
        let bound =
            self.aggregate_argument(kind, distinct, list, position, scope).and_then(|argument| {
                let filter = filter.map(|filter| self.condition(filter, scope)).transpose()?;
                Ok((argument, filter))
            });
        if let Some(level) = self.levels.last_mut() {
            level.in_aggregate = nested;
        }
        let ((argument, data_type), filter) = bound?;
        let number = self.level_of_aggregate(argument.as_ref(), filter.as_ref());
        match self.levels.get(number) {
            Some(level) if level.in_aggregate || has_aggregate(level, &argument, &filter) => {
                return Err(grouping_error("aggregate function calls cannot be nested", position));
            }
            Some(level) if level.allows_aggregates => {}
            _ => return Err(grouping_error(NOT_ALLOWED, position)),
        }
        self.move_subqueries(subqueries, number);
        // DISTINCT does not change an extreme.
        let distinct = distinct && !matches!(kind, AggregateKind::Minimum | AggregateKind::Maximum);
        let aggregate = Aggregate { kind, argument, distinct, filter, data_type };
        let slot = self.group_slot_of(number);
        let Some(level) = self.levels.get_mut(number) else {
            return Err(SqlError::internal("an aggregate outside a query"));
        };
        let known = level.aggregates.iter().position(|other| *other == aggregate);
        let number = known.unwrap_or_else(|| {
            level.aggregates.push(aggregate);
            level.aggregates.len() - 1
        });
        Ok(Typed::new(Expr::column(slot, AGGREGATES + number), data_type, position))
    }

    /// Returns a NOT NULL column of the table: it is NULL exactly where a join found no row.
    fn whole_row(&self, name: &ObjectName, scope: &Scope) -> Result<Expr> {
        let position = self.position(name) as usize;
        let folded = object_name(name).map_err(|error| error.at(position))?;
        let relation = scope.relation(&folded).ok_or_else(|| {
            let message = format!("missing FROM-clause entry for table \"{folded}\"");
            SqlError::new(SqlState::UndefinedTable, message).at(position)
        })?;
        let never_null = |column: &&ScopeColumn| match self.slots.get(column.at.slot) {
            Some(SlotShape { source: Source::Table(table), .. }) => {
                table.columns.get(column.at.column).is_some_and(|known| known.not_null)
            }
            _ => false,
        };
        let column = relation.columns.iter().find(never_null).ok_or_else(|| {
            let what = "count of the rows of what has no column that is NOT NULL";
            SqlError::unsupported(what).at(position)
        })?;
        Ok(Expr::Column(column.at))
    }

    pub(super) fn aggregate_argument(
        &mut self,
        kind: AggregateKind,
        distinct: bool,
        list: &[FunctionArg],
        position: u32,
        scope: &Scope,
    ) -> Result<(Option<Expr>, DataType)> {
        let argument = match list {
            [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if kind == AggregateKind::Count => {
                return Ok((None, DataType::BigInt));
            }
            [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name))]
                if kind == AggregateKind::Count && !distinct =>
            {
                return Ok((Some(self.whole_row(name, scope)?), DataType::BigInt));
            }
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))] => self.expression(expr, scope)?,
            _ => {
                let message = "an aggregate function takes one argument";
                return Err(
                    SqlError::new(SqlState::UndefinedFunction, message).at(position as usize)
                );
            }
        };
        let argument = match (kind, argument.data_type) {
            (AggregateKind::All | AggregateKind::Any, None) => {
                Typed::new(self.coerce(argument, DataType::Boolean)?, DataType::Boolean, position)
            }
            _ => self.settle(argument)?,
        };
        let given = argument.data_type.unwrap_or(DataType::Text);
        let result = match (kind, given) {
            (AggregateKind::Count, _) => {
                if let Expr::Constant(value) = &argument.expr
                    && *value != Value::Null
                    && !distinct
                {
                    return Ok((None, DataType::BigInt));
                }
                DataType::BigInt
            }
            (AggregateKind::Sum, DataType::SmallInt | DataType::Integer) => DataType::BigInt,
            (AggregateKind::Sum, DataType::BigInt | DataType::Numeric(_)) => {
                DataType::Numeric(None)
            }
            (AggregateKind::Sum, DataType::Real) => DataType::Real,
            (AggregateKind::Sum | AggregateKind::Average, DataType::Double) => DataType::Double,
            (AggregateKind::Average, DataType::Real) => DataType::Double,
            (AggregateKind::Average, given) if given.is_numeric() => DataType::Numeric(None),
            (AggregateKind::Minimum | AggregateKind::Maximum, given)
                if given != DataType::Boolean =>
            {
                match given {
                    DataType::Numeric(_) => DataType::Numeric(None),
                    other => other,
                }
            }
            (AggregateKind::All | AggregateKind::Any, DataType::Boolean) => DataType::Boolean,
            (kind, given) => {
                let name = format!("{kind:?}").to_lowercase();
                let message = format!("there is no aggregate function {name} of type {given}");
                return Err(
                    SqlError::new(SqlState::UndefinedFunction, message).at(position as usize)
                );
            }
        };
        Ok((Some(argument.expr), result))
    }
}
