//! Sort keys in the place of texts (BIND-COLL-1).

use quickbeam::invariant;
use smol_str::SmolStr;
use sqlparser::ast;

use super::Derivation::{self, Conflict};
use super::{implicit_mismatch, indeterminate, not_under};
use crate::bind::query::row_calls::RowCalls;
use crate::bind::{
    AggregateKind, Binder, Body, Combine, From, OrderKey, OutputColumn, Query, Select, Source,
    Typed, Values,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, Function, TextPosition};
use crate::types::{CollateStep, Collation, DataType, Value};

/// Returns the expression in COLLATE clauses.
pub(in crate::bind) fn unmarked(expr: Expr) -> Expr {
    match expr {
        Expr::Collate(inner, CollateStep::Named(_)) => unmarked(*inner),
        other => other,
    }
}

/// Returns the sort key of an expression.
pub(in crate::bind) fn key_of(expr: Expr, collation: Collation) -> Result<Expr> {
    let step = CollateStep::Key(collation);
    match unmarked(expr) {
        Expr::Constant(value) => {
            let made = step.apply(value.as_ref())?;
            Ok(Expr::Constant(made.unwrap_or(value)))
        }
        // The key of the text of a key.
        Expr::Collate(inner, CollateStep::Text) if inner.as_sort_key().is_some() => Ok(*inner),
        other => Ok(Expr::Collate(Box::new(other), step)),
    }
}

/// Returns the text of an expression that is a sort key.
pub(in crate::bind) fn text_in(expr: Expr) -> Expr {
    Expr::Collate(Box::new(expr), CollateStep::Text)
}

/// Returns the collations under which the columns of a set operation are compared as sort keys;
/// `None` if no column is.
pub(in crate::bind) fn collations_of_keys(
    columns: &[OutputColumn],
) -> Result<Option<Vec<Option<Collation>>>> {
    let mut all = Vec::with_capacity(columns.len());
    for column in columns {
        let own = column.collation.of_keys().filter(needs_equal_keys);
        match own.or_else(|| of_type(column.data_type)) {
            Some(own) if !column.data_type.is_text() => {
                return Err(not_under("a set operation of rows or arrays", own));
            }
            own => all.push(own),
        }
    }
    Ok(all.iter().any(Option::is_some).then_some(all))
}

/// Returns the collation under which values of a type are equal whose texts differ.
pub(in crate::bind) fn of_type(data_type: DataType) -> Option<Collation> {
    if data_type == DataType::BPCHAR { Collation::of_blanks() } else { None }
}

fn needs_equal_keys(collation: &Collation) -> bool {
    !collation.is_deterministic()
}

impl Binder<'_> {
    /// Casts two values to comparable types, and makes them sort keys if their collation asks for
    /// it.
    pub(in crate::bind) fn comparable(
        &mut self,
        left: Typed,
        right: Typed,
        operator: &str,
        position: u32,
    ) -> Result<[Expr; 2]> {
        if !self.has_collations {
            return self.comparable_types(left, right, operator, position);
        }
        let collation = self.common_collation([&left, &right])?;
        let types = [left.data_type, right.data_type];
        let [a, b] = self.comparable_types(left, right, operator, position)?;
        let is_equality = matches!(operator, "=" | "<>" | "IS DISTINCT FROM");
        let is_of_texts = types.iter().flatten().all(|known| known.is_text());
        if let Conflict(_, own) = collation {
            return Err(match is_of_texts {
                true => indeterminate("string comparison"),
                false => not_under("a comparison of rows or arrays", own),
            });
        }
        match collation.of_keys().filter(|it| !is_equality || needs_equal_keys(it)) {
            None => Ok([unmarked(a), unmarked(b)]),
            Some(own) if !is_of_texts => Err(not_under("a comparison of rows or arrays", own)),
            Some(own) => {
                let pair = [key_of(a, own)?, key_of(b, own)?];
                let is_text = |side: &Expr| matches!(side, Expr::Constant(Value::Text(_)));
                invariant!(BIND_COLL_1, !pair.iter().any(is_text), "a text under {own:?}");
                Ok(pair)
            }
        }
    }

    /// Gives a value the common collation of the members that it is compared with.
    pub(in crate::bind) fn under_common(
        &self,
        value: Typed,
        members: &mut [Typed],
    ) -> Result<Typed> {
        let common = self.common_collation([&value].into_iter().chain(&*members))?;
        if common == Derivation::Default {
            return Ok(value);
        }
        let (Derivation::Explicit(own) | Derivation::Implicit(own)) = common else {
            return Err(indeterminate("string comparison"));
        };
        if value.data_type.is_some_and(|known| !known.is_text()) {
            return Ok(value);
        }
        for member in members {
            let taken = std::mem::replace(&mut member.expr, Expr::Constant(Value::Null));
            member.expr = unmarked(taken);
        }
        let expr = Expr::Collate(Box::new(unmarked(value.expr)), CollateStep::Named(own));
        Ok(Typed { expr, ..value })
    }

    /// Returns what a value is ordered by.
    pub(in crate::bind) fn ordered(&self, value: Typed, position: u32) -> Result<Expr> {
        if !self.has_collations && value.data_type != Some(DataType::BPCHAR) {
            return Ok(value.expr);
        }
        let collation = self.collation_of(&value)?;
        if let Conflict(one, other) = collation {
            return Err(match value.expr {
                Expr::Column(_) => indeterminate("string comparison"),
                _ => implicit_mismatch((one, other)).at(position as usize),
            });
        }
        let own = collation.of_keys().or_else(|| value.data_type.and_then(of_type));
        self.keyed(value, own, "an order of rows or arrays")
    }

    /// Returns what a value is grouped by.
    pub(in crate::bind) fn grouped(&self, value: Typed) -> Result<Expr> {
        if !self.has_collations && value.data_type != Some(DataType::BPCHAR) {
            return Ok(value.expr);
        }
        let collation = self.collation_of(&value)?;
        self.grouped_under(value, collation)
    }

    fn grouped_under(&self, value: Typed, collation: Derivation) -> Result<Expr> {
        if let Conflict(..) = collation {
            return Err(indeterminate("string hashing"));
        }
        let collation = collation.of_keys().filter(needs_equal_keys);
        let collation = collation.or_else(|| value.data_type.and_then(of_type));
        self.keyed(value, collation, "groups of rows or arrays")
    }

    fn keyed(&self, value: Typed, collation: Option<Collation>, what: &str) -> Result<Expr> {
        match collation {
            None => Ok(unmarked(value.expr)),
            Some(own) if value.data_type.is_some_and(|known| !known.is_text()) => {
                Err(not_under(what, own))
            }
            Some(own) => key_of(value.expr, own),
        }
    }

    /// Returns the collation under which values have sort keys; an error if they have several.
    pub(in crate::bind) fn key_collation<'t>(
        &self,
        values: impl IntoIterator<Item = &'t Typed>,
        what: &str,
    ) -> Result<Option<Collation>> {
        match self.common_collation(values)? {
            Conflict(..) => Err(indeterminate(what)),
            other => Ok(other.of_keys()),
        }
    }

    /// Binds `greatest`, `least` and `nullif` of texts under a collation. Returns `None` if they
    /// are compared by their bytes.
    pub(in crate::bind) fn collated_choice(
        &mut self,
        function: Function,
        arguments: &[Typed],
        position: u32,
    ) -> Result<Option<Typed>> {
        let is_char = |value: &Typed| matches!(value.data_type, Some(DataType::Char(_)));
        let is_volatile = || arguments.iter().any(|value| value.expr.is_volatile());
        if function == Function::NULL_IF && arguments.iter().any(is_char) && !is_volatile() {
            return self.null_if(arguments, position);
        }
        if !self.has_collations || function == Function::COALESCE {
            return Ok(None);
        }
        let Some(own) = self.key_collation(arguments, "string comparison")? else {
            return Ok(None);
        };
        if arguments.iter().any(|it| it.data_type.is_some_and(|known| !known.is_text())) {
            return Err(not_under(&format!("{function:?} of rows or arrays"), own));
        }
        if function == Function::NULL_IF {
            if own.is_deterministic() {
                return Ok(None);
            }
            return self.null_if(arguments, position);
        }
        let (list, data_type) = self.unify(arguments.to_vec(), &format!("{function:?}"))?;
        let keys: Result<Vec<Expr>> = list.into_iter().map(|it| key_of(it, own)).collect();
        let call = Expr::Call(function, keys?, TextPosition(position));
        Ok(Some(Typed::new(text_in(call), data_type, position)))
    }

    /// Binds `nullif` of values that may be equal though their representations differ.
    pub(in crate::bind) fn null_if(
        &mut self,
        arguments: &[Typed],
        position: u32,
    ) -> Result<Option<Typed>> {
        let [value, other] = arguments else { return Ok(None) };
        if value.expr.is_volatile() {
            return Err(SqlError::unsupported("nullif of a volatile text"));
        }
        let value = match (value.data_type, other.data_type) {
            (Some(DataType::Char(_)), Some(DataType::Text)) => {
                &self.cast(value.clone(), DataType::Text)?
            }
            _ => value,
        };
        let same = self.comparable(value.clone(), other.clone(), "=", position)?;
        let same = Expr::Compare(crate::expression::Comparison::Equal, Box::new(same));
        let value = self.settle(value.clone())?;
        let data_type = value.data_type.unwrap_or(DataType::Text);
        let null = Expr::Constant(Value::Null);
        let expr = Expr::Case(vec![(same, null)], Box::new(value.expr));
        Ok(Some(Typed::new(expr, data_type, position)))
    }

    /// Returns the collation of a column of a set operation. `is_by_append`: no rows are compared.
    pub(in crate::bind) fn met_collation(
        &self,
        one: Derivation,
        other: Derivation,
        is_by_append: bool,
        position: usize,
    ) -> Result<Derivation> {
        let both = one.join(other).map_err(implicit_mismatch)?;
        match both {
            Conflict(one, other) if !is_by_append => {
                Err(implicit_mismatch((one, other)).at(position))
            }
            both => Ok(both),
        }
    }

    /// Makes a set operation compare sort keys. `collations` are those of the columns that have
    /// them.
    pub(in crate::bind) fn combined_by_keys(
        &mut self,
        mut combine: Combine,
        columns: Vec<OutputColumn>,
        collations: &[Option<Collation>],
        order: &[ast::OrderByExpr],
    ) -> Result<Query> {
        let mut keys = columns.clone();
        for (column, own) in keys.iter_mut().zip(collations) {
            if let Some(own) = own {
                column.data_type = DataType::Encoded(own.key_type());
            }
        }
        let mut sides = Vec::with_capacity(combine.sides.len());
        for side in std::mem::take(&mut combine.sides) {
            let source = Source::Query(side.columns.clone().into());
            let slot = self.add_slot(SmolStr::new_static("side"), source);
            let key = |(at, own): (usize, &Option<Collation>)| match own {
                Some(own) => key_of(Expr::column(slot, at), *own),
                None => Ok(Expr::column(slot, at)),
            };
            let outputs = collations.iter().enumerate().map(key).collect::<Result<_>>()?;
            let select = Select::plain(Some(From::query(slot, side.into())), outputs, Vec::new());
            sides.push(Query::plain(Body::Select(Box::new(select)), keys.clone()));
        }
        combine.sides = sides;
        let source = Source::Query(keys.clone().into());
        let inner = Query::plain(Body::Combine(Box::new(combine)), keys);
        let slot = self.add_slot(SmolStr::new_static("combined"), source);
        let text = |(at, own): (usize, &Option<Collation>)| match own {
            Some(_) => text_in(Expr::column(slot, at)),
            None => Expr::column(slot, at),
        };
        let outputs: Vec<Expr> = collations.iter().enumerate().map(text).collect();
        let order = self.order_of_values_in(order, &columns, &outputs)?;
        let around = Select::plain(Some(From::query(slot, inner.into())), outputs, Vec::new());
        Ok(Query { order, ..Query::plain(Body::Select(Box::new(around)), columns) })
    }

    /// Checks the collations of the two terms of a recursive query.
    pub(in crate::bind) fn check_recursive_collations(
        &self,
        name: &str,
        base: &[OutputColumn],
        step: &[OutputColumn],
        is_all: bool,
    ) -> Result<()> {
        for (number, (a, b)) in base.iter().zip(step).enumerate() {
            let met = self.met_collation(a.collation, b.collation, is_all, 0)?;
            if let Some(own) = met.of_keys().filter(|it| !is_all && needs_equal_keys(it)) {
                return Err(not_under("UNION of a recursive query", own));
            }
            if met == a.collation {
                continue;
            }
            let shown = |of: Derivation| match of {
                Derivation::Explicit(own) | Derivation::Implicit(own) => own.name(),
                _ => "default",
            };
            let (a, b) = (shown(a.collation), shown(met));
            let message = format!(
                "recursive query \"{name}\" column {} has collation \"{a}\" in non-recursive term but collation \"{b}\" overall",
                number + 1
            );
            let hint = "Use the COLLATE clause to set the collation of the non-recursive term.";
            let error = SqlError::new(SqlState::CollationMismatch, message);
            return Err(error.with_hint(hint));
        }
        Ok(())
    }

    /// Returns a computed column as a value: a sort key as its text.
    pub(in crate::bind) fn computed(
        &mut self,
        column: Expr,
        data_type: DataType,
        collation: Derivation,
        position: u32,
    ) -> Typed {
        if let Expr::Column(at) = column {
            self.set_collation(at, collation);
        }
        match data_type {
            DataType::Encoded(encoded) if Collation::of_key_type(encoded).is_some() => {
                Typed::new(text_in(column), DataType::Text, position)
            }
            _ => Typed::new(column, data_type, position),
        }
    }

    /// Returns the argument of an aggregate, and the type of the result, as sort keys if the
    /// aggregate compares texts under a collation.
    pub(in crate::bind) fn aggregated(
        &self,
        kind: AggregateKind,
        is_distinct: bool,
        value: Typed,
        result: DataType,
    ) -> Result<(Expr, DataType)> {
        let is_extreme = matches!(kind, AggregateKind::Minimum | AggregateKind::Maximum);
        let is_counted = kind == AggregateKind::Count;
        let is_padded = value.data_type == Some(DataType::BPCHAR) && is_distinct && is_counted;
        if !(self.has_collations && (is_extreme || is_distinct) || is_padded) {
            return Ok((unmarked(value.expr), result));
        }
        let own = self
            .key_collation([&value], "string comparison")?
            .filter(|own| needs_equal_keys(own) || !is_padded);
        let Some(own) = own.or_else(|| if is_padded { Collation::of_blanks() } else { None })
        else {
            return Ok((unmarked(value.expr), result));
        };
        if is_counted && own.is_deterministic() {
            return Ok((unmarked(value.expr), result));
        }
        let is_text = value.data_type.is_some_and(DataType::is_text);
        // A list is distinguished by the sort keys that it is ordered by.
        if is_text && (kind == AggregateKind::Concatenation || kind.keeps_nulls()) {
            return Ok((unmarked(value.expr), result));
        }
        if !is_text || !(is_counted || is_extreme) {
            let name = kind.name();
            return Err(not_under(&format!("DISTINCT, or an order, in the function {name}"), own));
        }
        let key = key_of(value.expr, own)?;
        let result = if is_extreme { DataType::Encoded(own.key_type()) } else { result };
        Ok((key, result))
    }

    /// Returns what the rows of SELECT DISTINCT are distinguished by, if that is not the rows
    /// themselves.
    pub(in crate::bind) fn distinct_keys(
        &self,
        outputs: &[Expr],
        columns: &[OutputColumn],
    ) -> Result<Option<Vec<Expr>>> {
        let mut has_keys = false;
        let mut keys = Vec::with_capacity(outputs.len());
        for (output, column) in outputs.iter().zip(columns) {
            let value = Typed::new(output.clone(), column.data_type, 0);
            let key = self.grouped_under(value, column.collation)?;
            has_keys |= key.text_of_sort_key().is_some();
            keys.push(key);
        }
        Ok(has_keys.then_some(keys))
    }

    /// Returns whether sort keys distinguish or order the rows of a SELECT DISTINCT.
    pub(in crate::bind) fn is_distinct_by_keys(
        &self,
        select: &Select,
        columns: &[OutputColumn],
        order: &[OrderKey],
    ) -> Result<bool> {
        let is_padded = || columns.iter().any(|column| column.data_type == DataType::BPCHAR);
        if !select.distinct || !(self.has_collations || is_padded()) {
            return Ok(false);
        }
        let has_keys = order.iter().any(|key| key.expr.text_of_sort_key().is_some());
        Ok(has_keys || self.distinct_keys(&select.outputs, columns)?.is_some())
    }

    /// Makes a SELECT DISTINCT whose rows sort keys distinguish or order. `calls` are functions
    /// that return rows.
    pub(in crate::bind) fn distinct_by_keys(
        &mut self,
        mut query: Query,
        calls: Option<&RowCalls>,
    ) -> Result<Query> {
        if calls.is_some() {
            return Err(SqlError::unsupported("DISTINCT of rows of functions in a collation"));
        }
        let placeholder = Body::Values(Values { rows: Vec::new(), slot: 0 });
        match std::mem::replace(&mut query.body, placeholder) {
            Body::Select(select) => self.ordered_outside(query, *select),
            _ => Err(SqlError::internal("a SELECT DISTINCT that is none")),
        }
    }

    /// Orders the rows of a SELECT DISTINCT in a query around it, if it has sort keys.
    pub(in crate::bind) fn ordered_outside(
        &mut self,
        mut query: Query,
        mut select: Select,
    ) -> Result<Query> {
        let mut order = Vec::with_capacity(query.order.len());
        let slot = self.slots.len();
        for key in std::mem::take(&mut query.order) {
            let text = key.expr.text_of_sort_key();
            let listed = |text: &Expr| select.outputs.iter().position(|output| output == text);
            let output = match (key.output, text) {
                (Some(output), _) => output,
                (None, Some(text)) => listed(text).ok_or_else(unlisted)?,
                (None, None) if key.expr.is_constant() => continue,
                (None, None) => return Err(unlisted()),
            };
            let column = Expr::column(slot, output);
            let expr = match key.expr {
                Expr::Collate(_, step @ CollateStep::Key(_)) => {
                    Expr::Collate(Box::new(column), step)
                }
                _ => column,
            };
            order.push(OrderKey { expr, output: None, ..key });
        }
        if let Some(keys) = self.distinct_keys(&select.outputs, &query.columns)? {
            select.distinct = false;
            select.distinct_on = keys;
        }
        let columns = query.columns.clone();
        query.body = Body::Select(Box::new(select));
        let source = Source::Query(columns.clone().into());
        let slot = self.add_slot(SmolStr::new_static("distinct"), source);
        let outputs = (0..columns.len()).map(|column| Expr::column(slot, column)).collect();
        let around = Select::plain(Some(From::query(slot, query.into())), outputs, Vec::new());
        Ok(Query { order, ..Query::plain(Body::Select(Box::new(around)), columns) })
    }
}

#[cold]
fn unlisted() -> SqlError {
    let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
    SqlError::new(SqlState::InvalidColumnReference, message)
}
