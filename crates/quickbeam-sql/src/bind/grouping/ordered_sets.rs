//! Aggregates with WITHIN GROUP: percentiles, the mode, and the place of a hypothetical row.

use super::aggregates::{AggregateCall, no_aggregate};
use crate::bind::collations::keys::key_of;
use crate::bind::{Aggregate, AggregateKind, AggregateOrder, Binder, Scope, Typed, WindowKind};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::{CollateStep, DataType, ElementType, TextSettings};

impl Aggregate {
    /// Returns the number of keys that are not direct arguments.
    fn own_keys(&self) -> usize {
        match self.kind {
            AggregateKind::Hypothetical(_) => self.order.len() / 2,
            _ => self.order.len(),
        }
    }

    /// Returns the direct arguments of an aggregate with WITHIN GROUP, which are the same for all
    /// rows of a group.
    pub fn direct_arguments(&self) -> impl Iterator<Item = &Expr> {
        let fraction = self.second.iter().filter(|_| self.kind.is_ordered_set());
        fraction.chain(self.order.iter().skip(self.own_keys()).map(|key| &key.expr))
    }

    /// Returns the direct arguments, mutably.
    pub fn direct_arguments_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let (own, is_ordered_set) = (self.own_keys(), self.kind.is_ordered_set());
        let fraction = self.second.iter_mut().filter(move |_| is_ordered_set);
        fraction.chain(self.order.iter_mut().skip(own).map(|key| &mut key.expr))
    }
}

impl Binder<'_> {
    /// Binds an aggregate with WITHIN GROUP.
    pub(super) fn ordered_set(
        &mut self,
        call: &AggregateCall<'_>,
        scope: &Scope,
    ) -> Result<Aggregate> {
        if call.distinct {
            let message = "cannot use DISTINCT with WITHIN GROUP";
            let error = SqlError::new(SqlState::SyntaxError, message);
            return Err(error.at(call.position as usize));
        }
        let order = self.aggregate_order(call.order, scope)?;
        match call.kind {
            AggregateKind::Hypothetical(place) => self.hypothetical(call, place, order, scope),
            AggregateKind::Mode => {
                let [] = self.aggregate_values(call, scope)?;
                let [(key, data_type)] = only_key(call, order)?;
                let data_type = type_of_key(&key).unwrap_or(data_type);
                Ok(of_keys(call.kind, None, vec![key], data_type))
            }
            _ => self.percentile(call, order, scope),
        }
    }

    /// Binds a percentile, or an array of percentiles.
    fn percentile(
        &mut self,
        call: &AggregateCall<'_>,
        order: Vec<(AggregateOrder, DataType)>,
        scope: &Scope,
    ) -> Result<Aggregate> {
        let [fraction] = self.aggregate_values(call, scope)?;
        let is_list = matches!(fraction.data_type, Some(DataType::Array(_)));
        let fraction = match ElementType::new(DataType::Double).filter(|_| is_list) {
            Some(element) => self.coerce(fraction, DataType::Array(element))?,
            None => self.number(fraction, call)?,
        };
        let [(mut key, mut data_type)] = only_key(call, order)?;
        let is_continuous = call.kind == AggregateKind::ContinuousPercentile;
        if is_continuous && data_type != DataType::Interval {
            let value = Typed::new(key.expr, data_type, call.position);
            key.expr = self.number(value, call)?;
            data_type = DataType::Double;
        }
        if let Some(of_key) = type_of_key(&key) {
            if is_list {
                let what = "percentiles of texts under a collation";
                return Err(SqlError::unsupported(what).at(call.position as usize));
            }
            data_type = of_key;
        }
        if is_list {
            let element = ElementType::new(data_type);
            data_type = DataType::Array(element.ok_or_else(|| no_aggregate(call, &[]))?);
        }
        Ok(of_keys(call.kind, Some(fraction), vec![key], data_type))
    }

    /// Binds the place that a row of the direct arguments would have. The values of that row are
    /// further keys after those of the order.
    fn hypothetical(
        &mut self,
        call: &AggregateCall<'_>,
        place: WindowKind,
        order: Vec<(AggregateOrder, DataType)>,
        scope: &Scope,
    ) -> Result<Aggregate> {
        let mut row = Vec::with_capacity(call.arguments.len());
        for argument in call.arguments {
            let value = self.argument(argument, scope)?;
            row.push(value.ok_or_else(|| no_aggregate(call, &[]))?);
        }
        if row.len() != order.len() {
            let types = row.iter().map(|value| value.data_type);
            let types: Vec<_> = types.chain(order.iter().map(|(_, known)| Some(*known))).collect();
            let hint = format!(
                "To use the hypothetical-set aggregate {}, the number of hypothetical direct arguments (here {}) must match the number of ordering columns (here {}).",
                call.kind.name(),
                row.len(),
                order.len()
            );
            return Err(no_aggregate(call, &types).with_hint(hint));
        }
        let (mut keys, mut values) = (Vec::with_capacity(order.len() * 2), Vec::new());
        for (value, (mut key, data_type)) in row.into_iter().zip(order) {
            let (own, collation) = match key.expr {
                Expr::Collate(text, CollateStep::Key(own)) => (*text, Some(own)),
                other => (other, None),
            };
            let own = Typed::new(own, data_type, call.position);
            let (pair, _) = self.unify(vec![value, own], "WITHIN GROUP")?;
            let Ok([mut value, mut own]) = <[Expr; 2]>::try_from(pair) else {
                return Err(SqlError::internal("two values are not two"));
            };
            if let Some(collation) = collation {
                (value, own) = (key_of(value, collation)?, key_of(own, collation)?);
            }
            key.expr = own;
            values.push(AggregateOrder { expr: value, ..key });
            keys.push(key);
        }
        keys.append(&mut values);
        let data_type = match place {
            WindowKind::PercentRank | WindowKind::CumeDist => DataType::Double,
            _ => DataType::BigInt,
        };
        Ok(of_keys(call.kind, None, keys, data_type))
    }
}

/// Returns the type of the sort keys that texts under a collation are ordered by.
fn type_of_key(key: &AggregateOrder) -> Option<DataType> {
    key.expr.as_sort_key().map(|(_, own)| DataType::Encoded(own.key_type()))
}

fn only_key(
    call: &AggregateCall<'_>,
    order: Vec<(AggregateOrder, DataType)>,
) -> Result<[(AggregateOrder, DataType); 1]> {
    order.try_into().map_err(|_| no_aggregate(call, &[]))
}

/// Returns the aggregate of the first key.
fn of_keys(
    kind: AggregateKind,
    second: Option<Expr>,
    order: Vec<AggregateOrder>,
    data_type: DataType,
) -> Aggregate {
    Aggregate {
        kind,
        argument: order.first().map(|key| key.expr.clone()),
        second,
        order,
        distinct: false,
        filter: None,
        data_type,
        settings: TextSettings::DEFAULT,
    }
}
