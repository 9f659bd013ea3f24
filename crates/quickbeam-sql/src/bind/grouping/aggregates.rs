//! Aggregate calls: resolves names and argument types.

use sqlparser::ast::{Expr as Ast, FunctionArg, FunctionArgExpr, ObjectName, OrderByExpr};

use super::levels::grouping_error;
use crate::bind::collations::keys::{key_of, of_type};
use crate::bind::collations::may_have_collation;
use crate::bind::expression::system_types::name_fields;
use crate::bind::query::row_calls::{RowFunctions, RowsRefused};
use crate::bind::types::undefined::{no_function, refuse_unequal, refuse_unordered};
use crate::bind::{
    Aggregate, AggregateKind, AggregateOrder, Binder, Derivation, Level, Scope, ScopeColumn,
    SlotShape, Source, Typed, object_name,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::{DataType, ElementType, EncodedKind, SystemType, Value};

/// Group columns from this number on are aggregates without an assigned position.
pub(in crate::bind) const AGGREGATES: usize = 1 << 20;

/// An aggregate call as it is written.
pub(in crate::bind) struct AggregateCall<'a> {
    pub kind: AggregateKind,
    pub arguments: &'a [FunctionArg],
    pub distinct: bool,
    /// ORDER BY within the call, or WITHIN GROUP.
    pub order: &'a [OrderByExpr],
    pub filter: Option<&'a Ast>,
    pub position: u32,
}

/// Returns whether an expression of the aggregate contains an aggregate of the level.
fn has_aggregate(level: &Level, aggregate: &Aggregate) -> bool {
    let mut found = false;
    for expr in aggregate.expressions() {
        expr.each_column(&mut |column| {
            found |= Some(column.slot) == level.group_slot && column.column >= AGGREGATES;
        });
    }
    found
}

/// Returns whether the order of the rows can change the result.
fn depends_on_order(kind: AggregateKind) -> bool {
    !matches!(
        kind,
        AggregateKind::Count
            | AggregateKind::Minimum
            | AggregateKind::Maximum
            | AggregateKind::All
            | AggregateKind::Any
            | AggregateKind::BitAnd
            | AggregateKind::BitOr
            | AggregateKind::BitXor
            | AggregateKind::RangeUnion
            | AggregateKind::RangeIntersection
            | AggregateKind::RegressionCount
    )
}

impl Binder<'_> {
    /// Binds an aggregate call. It belongs to the innermost query whose columns it reads, which may
    /// enclose the query that contains it.
    pub(in crate::bind) fn aggregate(
        &mut self,
        call: &AggregateCall<'_>,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = call.position;
        let (nested, subqueries) = match self.levels.last_mut() {
            Some(level) => {
                (std::mem::replace(&mut level.in_aggregate, true), level.subqueries.len())
            }
            None => {
                return Err(grouping_error("aggregate functions are not allowed here", position));
            }
        };
        let refused = RowFunctions::Refused(RowsRefused::Aggregate);
        let equal = (call.distinct && !call.order.is_empty()).then(Vec::new);
        let level = self.levels.last_mut();
        let outer = level.and_then(|level| std::mem::replace(&mut level.of_aggregate, equal));
        let bound = self.with_row_functions(refused, |binder| binder.aggregate_parts(call, scope));
        if let Some(level) = self.levels.last_mut() {
            level.in_aggregate = nested;
            level.of_aggregate = outer;
        }
        let aggregate = bound?;
        let data_type = aggregate.data_type;
        let collation = self.aggregate_collation(&aggregate)?;
        let number = self.level_of_aggregate(&aggregate);
        match self.levels.get(number) {
            Some(level) if level.in_aggregate || has_aggregate(level, &aggregate) => {
                return Err(grouping_error("aggregate function calls cannot be nested", position));
            }
            Some(level) if level.allows_aggregates => {}
            _ => return Err(grouping_error(&self.not_allowed("aggregate functions"), position)),
        }
        self.move_subqueries(subqueries, number);
        let slot = self.group_slot_of(number);
        let Some(level) = self.levels.get_mut(number) else {
            return Err(SqlError::internal("an aggregate outside a query"));
        };
        let known = level.aggregates.iter().position(|other| *other == aggregate);
        let number = known.unwrap_or_else(|| {
            level.aggregates.push(aggregate);
            level.aggregates.len() - 1
        });
        let column = Expr::column(slot, AGGREGATES + number);
        Ok(self.computed(column, data_type, collation, position))
    }

    /// Returns the collation of the result of an aggregate.
    pub(super) fn aggregate_collation(&self, aggregate: &Aggregate) -> Result<Derivation> {
        let mut common = Derivation::Default;
        for argument in aggregate.argument.iter().chain(&aggregate.second) {
            let value = Typed { expr: argument.clone(), data_type: None, position: 0 };
            let own = self.common_collation([&value])?;
            if common == Derivation::Default {
                common = own;
            }
        }
        Ok(if may_have_collation(aggregate.data_type) || is_key(aggregate.data_type) {
            common
        } else {
            Derivation::Default
        })
    }

    pub(in crate::bind) fn aggregate_parts(
        &mut self,
        call: &AggregateCall<'_>,
        scope: &Scope,
    ) -> Result<Aggregate> {
        let kind = call.kind;
        let mut aggregate = if kind.is_ordered_set() {
            self.ordered_set(call, scope)?
        } else {
            self.plain_aggregate(call, scope)?
        };
        aggregate.filter =
            call.filter.map(|filter| self.condition(filter, "FILTER", scope)).transpose()?;
        // DISTINCT does not change an extreme.
        let is_extreme = matches!(kind, AggregateKind::Minimum | AggregateKind::Maximum);
        aggregate.distinct = call.distinct && !is_extreme;
        if !aggregate.distinct {
            return Ok(aggregate);
        }
        let is_argument = |key: &AggregateOrder| {
            let value = key.expr.without_sort_key();
            Some(value) == aggregate.argument.as_ref() || Some(value) == aggregate.second.as_ref()
        };
        if !aggregate.order.iter().all(is_argument) {
            let message =
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            let error = SqlError::new(SqlState::InvalidColumnReference, message);
            return Err(error.at(call.position as usize));
        }
        self.order_by_arguments(&mut aggregate)?;
        Ok(aggregate)
    }

    /// Orders the rows of an aggregate with DISTINCT by its arguments, after its ORDER BY.
    /// PostgreSQL sorts to find equal values, and so concatenates them in order.
    fn order_by_arguments(&mut self, aggregate: &mut Aggregate) -> Result<()> {
        let kind = aggregate.kind;
        let is_list = kind == AggregateKind::Concatenation || kind.keeps_nulls();
        if !is_list && !kind.is_regression() {
            return Ok(());
        }
        let padded = match aggregate.data_type {
            DataType::Array(element) => of_type(element.data_type()),
            _ => None,
        };
        for argument in aggregate.argument.iter().chain(&aggregate.second) {
            let is_key = |key: &AggregateOrder| key.expr.without_sort_key() == argument;
            if argument.is_constant() || aggregate.order.iter().any(is_key) {
                continue;
            }
            let expr = match self.derivation(argument)?.of_keys() {
                Some(own) => key_of(argument.clone(), own)?,
                None => match padded.filter(|_| Some(argument) == aggregate.argument.as_ref()) {
                    Some(own) => key_of(argument.clone(), own)?,
                    None => argument.clone(),
                },
            };
            aggregate.order.push(AggregateOrder { expr, descending: false, nulls_first: false });
        }
        Ok(())
    }

    fn plain_aggregate(&mut self, call: &AggregateCall<'_>, scope: &Scope) -> Result<Aggregate> {
        let kind = call.kind;
        let (argument, second, data_type) = match kind {
            AggregateKind::Concatenation => self.concatenation(call, scope)?,
            AggregateKind::JsonMembers(is_binary) => {
                let [key, value] = self.aggregate_values(call, scope)?;
                let (key, value) = (self.settle(key)?.expr, self.settle(value)?.expr);
                (Some(key), Some(value), json_type(is_binary))
            }
            kind if kind.is_regression() => {
                let [y, x] = self.aggregate_values(call, scope)?;
                let y = self.number(y, call)?;
                let x = self.number(x, call)?;
                let data_type = match kind {
                    AggregateKind::RegressionCount => DataType::BigInt,
                    _ => DataType::Double,
                };
                (Some(y), Some(x), data_type)
            }
            _ => {
                let (argument, data_type) = self.aggregate_argument(call, scope)?;
                (argument, None, data_type)
            }
        };
        let mut order = self.aggregate_order(call.order, scope)?;
        if !depends_on_order(kind) && !call.distinct {
            order.clear();
        }
        let order = order.into_iter().map(|(key, _)| key).collect();
        // The settings are part of what the plan was made for.
        let settings = self.names.settings();
        let (distinct, filter) = (false, None);
        Ok(Aggregate { kind, argument, second, order, distinct, filter, data_type, settings })
    }

    pub(super) fn aggregate_order(
        &mut self,
        order: &[OrderByExpr],
        scope: &Scope,
    ) -> Result<Vec<(AggregateOrder, DataType)>> {
        let mut keys = Vec::with_capacity(order.len());
        for item in order {
            let descending = self.is_descending(item)?;
            let nulls_first = item.options.nulls_first.unwrap_or(descending);
            let value = self.expression(&item.expr, scope)?;
            let value = self.settle(value)?;
            refuse_unordered(value.data_type, value.position as usize)?;
            let data_type = value.data_type.unwrap_or(DataType::Text).unconstrained();
            let place = value.position;
            let expr = self.ordered(value, place)?;
            keys.push((AggregateOrder { expr, descending, nulls_first }, data_type));
        }
        Ok(keys)
    }

    /// Binds the arguments of a call that takes exactly `COUNT` values.
    pub(super) fn aggregate_values<const COUNT: usize>(
        &mut self,
        call: &AggregateCall<'_>,
        scope: &Scope,
    ) -> Result<[Typed; COUNT]> {
        let mut values = Vec::with_capacity(COUNT);
        for argument in call.arguments {
            let bound = self.argument(argument, scope)?;
            values.push(bound.ok_or_else(|| no_aggregate(call, &[]))?);
        }
        let types: Vec<Option<DataType>> = values.iter().map(|value| value.data_type).collect();
        for value in values.iter().filter(|_| call.distinct) {
            refuse_unequal(value.data_type, value.position as usize)?;
        }
        <[Typed; COUNT]>::try_from(values).map_err(|_| no_aggregate(call, &types))
    }

    /// Casts an argument to double precision.
    pub(super) fn number(&mut self, value: Typed, call: &AggregateCall<'_>) -> Result<Expr> {
        match value.data_type {
            Some(known) if !known.is_numeric() => Err(no_aggregate(call, &[Some(known)])),
            _ => self.coerce(value, DataType::Double),
        }
    }

    /// Binds the arguments of `string_agg`: texts, or BYTEA values.
    fn concatenation(
        &mut self,
        call: &AggregateCall<'_>,
        scope: &Scope,
    ) -> Result<(Option<Expr>, Option<Expr>, DataType)> {
        let [value, delimiter] = self.aggregate_values(call, scope)?;
        let types = [value.data_type, delimiter.data_type];
        let is_bytes = types.contains(&Some(DataType::Bytea));
        let data_type = if is_bytes { DataType::Bytea } else { DataType::Text };
        let fits =
            |known: DataType| if is_bytes { known == DataType::Bytea } else { known.is_text() };
        if !types.iter().all(|known| known.is_none_or(fits)) {
            return Err(no_aggregate(call, &types));
        }
        let value = Typed::new(self.coerce(value, data_type)?, data_type, call.position);
        let (value, _) = self.aggregated(call.kind, call.distinct, value, data_type)?;
        let delimiter = self.coerce(delimiter, data_type)?;
        Ok((Some(value), Some(delimiter), data_type))
    }

    /// Returns a NOT NULL column of the table: it is NULL exactly where a join found no row.
    fn never_null_of(&self, name: &ObjectName, scope: &Scope) -> Result<Option<Expr>> {
        let position = self.position(name) as usize;
        let folded = object_name(name).map_err(|error| error.at(position))?;
        let relation = scope.relation(&folded).ok_or_else(|| {
            let message = format!("missing FROM-clause entry for table \"{folded}\"");
            SqlError::new(SqlState::UndefinedTable, message).at(position)
        })?;
        let read = self.check_read(relation.columns.iter().map(|column| column.at));
        read.map_err(|error| error.at(position))?;
        let never_null = |column: &&ScopeColumn| match self.slots.get(column.at.slot) {
            Some(SlotShape { source: Source::Table(table), .. }) => {
                table.columns.get(column.at.column).is_some_and(|known| known.not_null)
            }
            _ => false,
        };
        Ok(relation.columns.iter().find(never_null).map(|column| Expr::Column(column.at)))
    }

    pub(in crate::bind) fn aggregate_argument(
        &mut self,
        call: &AggregateCall<'_>,
        scope: &Scope,
    ) -> Result<(Option<Expr>, DataType)> {
        let kind = call.kind;
        match call.arguments {
            [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if kind == AggregateKind::Count => {
                if call.distinct {
                    let error = SqlError::new(SqlState::SyntaxError, "syntax error: DISTINCT of *");
                    return Err(error.at(call.position as usize));
                }
                return Ok((None, DataType::BigInt));
            }
            [FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name))]
                if kind == AggregateKind::Count && !call.distinct =>
            {
                if let Some(column) = self.never_null_of(name, scope)? {
                    return Ok((Some(column), DataType::BigInt));
                }
            }
            _ => {}
        }
        let [mut argument] = self.aggregate_values(call, scope)?;
        let position = argument.position;
        if matches!(kind, AggregateKind::JsonElements(_)) {
            name_fields(&mut argument.expr);
            if argument.data_type.is_some_and(|known| known.reference().is_some()) {
                argument = self.through_name(argument, DataType::Text)?;
            }
        }
        if let (AggregateKind::JsonElements(_), None) = (kind, argument.data_type) {
            let message = "could not determine polymorphic type because input has type unknown";
            let error = SqlError::new(SqlState::DatatypeMismatch, message);
            return Err(error.at(position as usize));
        }
        if (kind, argument.data_type) == (AggregateKind::Elements, None) {
            let message = format!("function {}(unknown) is not unique", kind.name());
            let error = SqlError::new(SqlState::AmbiguousFunction, message);
            return Err(error.at(position as usize));
        }
        let argument = match (kind, argument.data_type) {
            (AggregateKind::All | AggregateKind::Any, None) => {
                Typed::new(self.coerce(argument, DataType::Boolean)?, DataType::Boolean, position)
            }
            (AggregateKind::Sum | AggregateKind::Average, Some(DataType::Time)) => {
                argument.time_as_interval()
            }
            _ => self.settle(argument)?,
        };
        let given = argument.data_type.unwrap_or(DataType::Text);
        if let (AggregateKind::Count, Expr::Constant(value), false) =
            (kind, &argument.expr, call.distinct)
            && *value != Value::Null
        {
            return Ok((None, DataType::BigInt));
        }
        let result = result_type(kind, given).ok_or_else(|| no_aggregate(call, &[Some(given)]))?;
        let is_floating = matches!(given, DataType::Real | DataType::Double);
        let (expr, result) = match kind {
            // Variances of exact numbers are computed in NUMERIC.
            _ if !is_variance(kind) || is_floating => {
                self.aggregated(kind, call.distinct, argument, result)?
            }
            _ => (self.coerce(argument, DataType::Numeric(None))?, result),
        };
        Ok((Some(expr), result))
    }
}

fn is_key(data_type: DataType) -> bool {
    data_type.encoded() == Some(EncodedKind::Collated)
}

fn json_type(is_binary: bool) -> DataType {
    if is_binary { DataType::Jsonb } else { DataType::Json }
}

fn is_variance(kind: AggregateKind) -> bool {
    matches!(
        kind,
        AggregateKind::SampleVariance
            | AggregateKind::PopulationVariance
            | AggregateKind::SampleDeviation
            | AggregateKind::PopulationDeviation
    )
}

/// Returns the type of an aggregate of one argument, or `None` if it does not exist for that type.
fn result_type(kind: AggregateKind, given: DataType) -> Option<DataType> {
    let given = match given {
        DataType::WideNumeric(_) => given.unconstrained(),
        _ => given,
    };
    Some(match (kind, given) {
        (AggregateKind::Count, _) => DataType::BigInt,
        (AggregateKind::JsonElements(is_binary), _) => json_type(is_binary),
        (AggregateKind::Elements, DataType::Array(_)) => given,
        (AggregateKind::Elements, given) => {
            DataType::Array(ElementType::new(given.unconstrained())?)
        }
        (AggregateKind::Sum, DataType::SmallInt | DataType::Integer) => DataType::BigInt,
        (AggregateKind::Sum, DataType::BigInt | DataType::Numeric(_)) => DataType::Numeric(None),
        (AggregateKind::Sum, DataType::Real) => DataType::Real,
        (AggregateKind::Sum | AggregateKind::Average, DataType::Double) => DataType::Double,
        (AggregateKind::Sum | AggregateKind::Average, DataType::Interval) => DataType::Interval,
        (AggregateKind::Average, DataType::Real) => DataType::Double,
        (AggregateKind::Average, given) if given.is_numeric() => DataType::Numeric(None),
        (AggregateKind::Minimum | AggregateKind::Maximum, DataType::Numeric(_)) => {
            DataType::Numeric(None)
        }
        (
            AggregateKind::Minimum | AggregateKind::Maximum,
            DataType::Boolean | DataType::Json | DataType::Jsonb,
        ) => return None,
        (AggregateKind::Minimum | AggregateKind::Maximum, given) if given.record().is_some() => {
            return None;
        }
        (AggregateKind::Minimum | AggregateKind::Maximum, DataType::Encoded(encoded))
            if matches!(encoded.kind(), EncodedKind::TsVector | EncodedKind::TsQuery) =>
        {
            return None;
        }
        // These have the functions of TEXT.
        (
            AggregateKind::Minimum | AggregateKind::Maximum,
            DataType::Varchar(_) | DataType::System(SystemType::Name),
        ) => DataType::Text,
        (AggregateKind::Minimum | AggregateKind::Maximum, given) => given,
        (AggregateKind::All | AggregateKind::Any, DataType::Boolean) => DataType::Boolean,
        (AggregateKind::BitAnd | AggregateKind::BitOr | AggregateKind::BitXor, given)
            if given.is_integer() =>
        {
            given
        }
        (kind, DataType::Encoded(encoded))
            if let Some(result) = combined_type(kind, encoded.kind()) =>
        {
            result
        }
        (kind, DataType::Real | DataType::Double) if is_variance(kind) => DataType::Double,
        (kind, given) if is_variance(kind) && given.is_numeric() => DataType::Numeric(None),
        _ => return None,
    })
}

/// Returns the type of an aggregate of bit strings or ranges; `None` if there is no such aggregate.
fn combined_type(kind: AggregateKind, given: EncodedKind) -> Option<DataType> {
    use AggregateKind::{BitAnd, BitOr, BitXor, RangeIntersection, RangeUnion};
    let is_range = given.subtype().is_some();
    match (kind, given) {
        (BitAnd | BitOr | BitXor, EncodedKind::Bit | EncodedKind::Varbit) => {
            Some(EncodedKind::Bit.data_type())
        }
        (RangeUnion, given) if given.is_multirange() => Some(given.data_type()),
        (RangeUnion, given) if is_range => Some(given.multirange().data_type()),
        (RangeIntersection, given) if is_range => Some(given.data_type()),
        _ => None,
    }
}

#[cold]
pub(super) fn no_aggregate(call: &AggregateCall<'_>, types: &[Option<DataType>]) -> SqlError {
    if types.is_empty() && call.kind == AggregateKind::Count {
        let message = "count(*) must be used to call a parameterless aggregate function";
        let error = SqlError::new(SqlState::WrongObjectType, message);
        return error.at(call.position as usize);
    }
    no_function(call.kind.name(), types.iter().copied(), call.position)
}
