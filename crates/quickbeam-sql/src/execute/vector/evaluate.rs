//! Vectorized expressions.
//!
//! - BATCH-1: a vectorized expression gives the same result for each row as the expression that it
//!   was compiled from. An expression that cannot be compiled leaves its step to row execution.
//! - BATCH-2: an expression that may fail is evaluated only for rows for which row execution would
//!   evaluate it. Earlier conditions have removed the others, and it is not part of OR or CASE.

use std::sync::Arc;

use arrow_arith::boolean::{is_not_null, is_null, not};
use arrow_array::{Array, BooleanArray, Datum, Decimal128Array, Int64Array, Scalar, StringArray};
use arrow_ord::cmp;
use arrow_schema::ArrowError;
use arrow_select::filter::prep_null_mask_filter;
use arrow_select::zip::zip;
use quickbeam::invariant;

use super::super::row::Context;
use super::column::{Vector, VectorType, kind_of};
use super::connectives::connected;
use super::operations::calls::VectorCall;
use super::operations::{decimal, integers};
use crate::error::{Result, SqlError};
use crate::expression::{
    Arithmetic, ColumnRef, Comparison, Connective, Expr, NumberKind, Pattern, TextPosition,
};
use crate::types::{
    DataType, MAX_PRECISION, Numeric, Value, ValueRef, decimal_power, without_blanks,
};

/// An expression on columns.
#[derive(Clone, Debug)]
pub struct VectorExpr {
    step: Step,
    /// The type of its values.
    pub data_type: DataType,
}

#[derive(Clone, Debug)]
enum Step {
    Column(usize),
    /// The same value for all rows, evaluated when a run starts.
    Given(Expr, Option<Scalar<arrow_array::ArrayRef>>),
    Compare(Comparison, Box<[VectorExpr; 2]>),
    Arithmetic(Arithmetic, NumberKind, Box<[VectorExpr; 2]>, TextPosition),
    And(Vec<VectorExpr>),
    Or(Vec<VectorExpr>),
    Not(Box<VectorExpr>),
    IsNull(Box<VectorExpr>, bool),
    InSet(Box<VectorExpr>, Arc<Vec<i64>>, bool),
    /// Whether a text is among others.
    InTexts(Box<VectorExpr>, Vec<String>, bool),
    Like(Box<VectorExpr>, Arc<Pattern>, bool),
    Call(VectorCall, Vec<VectorExpr>, TextPosition),
    /// A text without the blanks at its end.
    Trimmed(Box<VectorExpr>),
    /// NUMERIC of one scale, or of any if they are multiplied.
    Decimal(Arithmetic, Box<[VectorExpr; 2]>),
    /// A NUMERIC with as many digits more after the point.
    Rescaled(Box<VectorExpr>, u8),
    /// A wider integer type, an integer as a NUMERIC, or a longer text type.
    Widened(Box<VectorExpr>),
    /// Conditions with their results in turn, and the ELSE result last.
    Case(Vec<VectorExpr>),
}

/// The available columns, and the slots of their rows.
pub struct InputColumns<'k> {
    pub columns: &'k [(ColumnRef, DataType)],
    pub slots: crate::expression::Slots,
    pub parameters: &'k [DataType],
}

impl InputColumns<'_> {
    /// Compiles an expression. Returns `None` if it cannot be vectorized (BATCH-1).
    pub fn formula(&self, expr: &Expr) -> Option<VectorExpr> {
        if expr.is_volatile() {
            return None;
        }
        if !expr.slots().meets(&self.slots) {
            let data_type = match expr {
                Expr::Constant(Value::Numeric(number)) if !number.is_finite() => return None,
                Expr::Constant(Value::Numeric(number)) => type_of_decimal(*number),
                Expr::Constant(value) => value.data_type()?,
                Expr::Parameter(number) => *self.parameters.get(*number)?,
                _ => return None,
            };
            kind_of(data_type)?;
            return Some(VectorExpr { step: Step::Given(expr.clone(), None), data_type });
        }
        let made = |step, data_type| Some(VectorExpr { step, data_type });
        match expr {
            Expr::Column(at) => {
                let nth = self.columns.iter().position(|(column, _)| column == at)?;
                made(Step::Column(nth), self.columns.get(nth)?.1)
            }
            Expr::Compare(comparison, pair) => self.comparison(*comparison, pair),
            Expr::Arithmetic(operator, kind, pair, place) => {
                self.arithmetic(*operator, *kind, pair, *place)
            }
            Expr::And(list) => made(Step::And(self.safe_list(list)?), DataType::Boolean),
            Expr::Or(list) => made(Step::Or(self.safe_list(list)?), DataType::Boolean),
            Expr::Not(inner) => made(Step::Not(self.boxed(inner)?), DataType::Boolean),
            Expr::IsNull(inner, negated) => {
                made(Step::IsNull(self.boxed(inner)?, *negated), DataType::Boolean)
            }
            Expr::InSet(inner, set, negated) => {
                let inner = self.boxed(inner)?;
                if inner.data_type.is_text() {
                    let text = |value: &Value| match value.as_ref() {
                        ValueRef::Text(text) => Some(text.to_owned()),
                        _ => None,
                    };
                    let texts = set.iter().map(text).collect::<Option<Vec<String>>>()?;
                    return made(Step::InTexts(inner, texts, *negated), DataType::Boolean);
                }
                let numbers: Option<Vec<i64>> =
                    set.iter().map(|value| value.as_ref().as_i64()).collect();
                inner.data_type.is_integer().then_some(())?;
                let mut numbers = numbers?;
                numbers.sort_unstable();
                made(Step::InSet(inner, Arc::new(numbers), *negated), DataType::Boolean)
            }
            Expr::InList(inner, list, negated) => {
                let inner = self.boxed(inner)?;
                inner.data_type.is_text().then_some(())?;
                let text = |member: &Expr| match member.as_constant()?.as_ref() {
                    ValueRef::Text(text) => Some(text.to_owned()),
                    _ => None,
                };
                let texts = list.iter().map(text).collect::<Option<Vec<String>>>()?;
                made(Step::InTexts(inner, texts, *negated), DataType::Boolean)
            }
            Expr::Call(function, list, place) => {
                let call = VectorCall::new(*function, list)?;
                let list = list.iter().map(|part| self.formula(part)).collect::<Option<_>>()?;
                made(Step::Call(call, list, *place), call.data_type)
            }
            Expr::Like(inner, pattern, negated) => {
                let inner = self.boxed(inner)?;
                inner.data_type.is_text().then_some(())?;
                made(Step::Like(inner, pattern.clone(), *negated), DataType::Boolean)
            }
            Expr::Trimmed(inner) => {
                let inner = self.boxed(inner)?;
                inner.data_type.is_text().then_some(())?;
                made(Step::Trimmed(inner), DataType::Text)
            }
            Expr::Cast(inner, to, _) => self.cast(inner, *to),
            Expr::Case(branches, otherwise) => self.case(branches, otherwise),
            _ => None,
        }
    }

    fn comparison(&self, comparison: Comparison, pair: &[Expr; 2]) -> Option<VectorExpr> {
        let mut pair = *self.pair(pair)?;
        if pair.iter().any(|side| scale_of(side.data_type).is_some()) {
            pair = aligned(decimals(pair)?)?;
        } else {
            comparable(pair[0].data_type, pair[1].data_type).then_some(())?;
        }
        let step = Step::Compare(comparison, Box::new(pair));
        Some(VectorExpr { step, data_type: DataType::Boolean })
    }

    fn arithmetic(
        &self,
        operator: Arithmetic,
        kind: NumberKind,
        pair: &[Expr; 2],
        place: TextPosition,
    ) -> Option<VectorExpr> {
        let mut pair = *self.pair(pair)?;
        if kind == NumberKind::Numeric {
            pair = decimals(pair)?;
            if operator != Arithmetic::Multiply {
                pair = aligned(pair)?;
            }
            let (left, right) = (pair[0].data_type, pair[1].data_type);
            let data_type = decimal::result_type(operator, left, right)?;
            return Some(VectorExpr { step: Step::Decimal(operator, Box::new(pair)), data_type });
        }
        let is_plain = matches!(
            (operator, kind),
            (
                Arithmetic::Add | Arithmetic::Subtract | Arithmetic::Multiply,
                NumberKind::Small | NumberKind::Integer | NumberKind::Big
            )
        );
        let are_numbers = pair.iter().all(|side| side.data_type.is_integer());
        (is_plain && are_numbers).then_some(())?;
        let step = Step::Arithmetic(operator, kind, Box::new(pair), place);
        Some(VectorExpr { step, data_type: kind.data_type() })
    }

    fn cast(&self, inner: &Expr, to: DataType) -> Option<VectorExpr> {
        let inner = self.boxed(inner)?;
        if to == DataType::Numeric(None) {
            return inner.into_decimal();
        }
        let is_wider = matches!(
            (inner.data_type, to),
            (DataType::SmallInt, DataType::SmallInt | DataType::Integer | DataType::BigInt)
                | (DataType::Integer, DataType::Integer | DataType::BigInt)
                | (DataType::BigInt, DataType::BigInt)
                | (
                    DataType::Text | DataType::Varchar(_) | DataType::Char(_),
                    DataType::Text | DataType::Varchar(None)
                )
        );
        is_wider.then_some(VectorExpr { step: Step::Widened(inner), data_type: to })
    }

    /// Compiles the part number `nth` of several. Only the first may fail: row execution evaluates
    /// no part after one that is false or NULL (BATCH-2).
    pub fn formula_of_part(&self, nth: usize, expr: &Expr) -> Option<VectorExpr> {
        self.formula(expr).filter(|formula| nth == 0 || !formula.may_fail())
    }

    /// Compiles CASE, none of whose parts may fail: all are evaluated for each row (BATCH-2).
    fn case(&self, branches: &[(Expr, Expr)], otherwise: &Expr) -> Option<VectorExpr> {
        let mut data_type = None;
        for expr in results_of(branches, otherwise).filter(|expr| !is_null_constant(expr)) {
            let next = self.formula(expr)?.data_type;
            data_type = Some(match data_type {
                None => next,
                Some(known) => common_type(known, next)?,
            });
        }
        self.case_of_type(branches, otherwise, data_type?)
    }

    /// Compiles CASE with results of that type, or NUMERIC of at most its scale.
    fn case_of_type(
        &self,
        branches: &[(Expr, Expr)],
        otherwise: &Expr,
        data_type: DataType,
    ) -> Option<VectorExpr> {
        let result = |expr: &Expr| match (is_null_constant(expr), scale_of(data_type)) {
            (true, _) => Some(VectorExpr { step: Step::Given(expr.clone(), None), data_type }),
            (false, Some(scale)) => self.formula(expr)?.rescaled(scale),
            (false, None) => self.formula(expr),
        };
        let mut parts = Vec::with_capacity(branches.len() * 2 + 1);
        for (condition, value) in branches {
            parts.push(self.formula(condition).filter(|f| f.data_type == DataType::Boolean)?);
            parts.push(result(value)?);
        }
        parts.push(result(otherwise)?);
        let is_safe = parts.iter().all(|part| !part.may_fail());
        is_safe.then_some(VectorExpr { step: Step::Case(parts), data_type })
    }

    /// Compiles CASE whose results are NUMERIC of several scales: its values at the largest scale,
    /// and the scale of each.
    pub fn case_of_scales(&self, expr: &Expr) -> Option<[VectorExpr; 2]> {
        let Expr::Case(branches, otherwise) = expr else { return None };
        let (mut digits, mut scale) = (0, 0);
        for result in results_of(branches, otherwise).filter(|result| !is_null_constant(result)) {
            let DataType::Numeric(Some((precision, own))) = self.formula(result)?.data_type else {
                return None;
            };
            (digits, scale) = (digits.max(precision - own.min(precision)), scale.max(own));
        }
        let precision = digits.checked_add(scale).filter(|sum| *sum <= MAX_PRECISION)?;
        let data_type = DataType::Numeric(Some((precision, scale)));
        let own_scale = |result: &Expr| {
            let own = match is_null_constant(result) {
                true => Value::Null,
                false => Value::Integer(scale_of(self.formula(result)?.data_type)?.into()),
            };
            Some(Expr::Constant(own))
        };
        let scales: Option<Vec<(Expr, Expr)>> = branches
            .iter()
            .map(|(condition, result)| Some((condition.clone(), own_scale(result)?)))
            .collect();
        Some([
            self.case_of_type(branches, otherwise, data_type)?,
            self.case(&scales?, &own_scale(otherwise)?)?,
        ])
    }

    fn boxed(&self, expr: &Expr) -> Option<Box<VectorExpr>> {
        self.formula(expr).map(Box::new)
    }

    fn pair(&self, pair: &[Expr; 2]) -> Option<Box<[VectorExpr; 2]>> {
        Some(Box::new([self.formula(&pair[0])?, self.formula(&pair[1])?]))
    }

    /// Compiles parts that may not fail, because each is evaluated for all rows (BATCH-2).
    fn safe_list(&self, list: &[Expr]) -> Option<Vec<VectorExpr>> {
        let formulas: Vec<VectorExpr> =
            list.iter().map(|part| self.formula(part)).collect::<Option<_>>()?;
        formulas.iter().all(|formula| !formula.may_fail()).then_some(formulas)
    }
}

fn results_of<'e>(
    branches: &'e [(Expr, Expr)],
    otherwise: &'e Expr,
) -> impl Iterator<Item = &'e Expr> {
    branches.iter().map(|(_, result)| result).chain([otherwise])
}

fn is_null_constant(expr: &Expr) -> bool {
    expr.as_constant().is_some_and(Value::is_null)
}

/// Returns the scale of a NUMERIC whose scale is known.
fn scale_of(data_type: DataType) -> Option<u8> {
    match data_type {
        DataType::Numeric(Some((_, scale))) => Some(scale),
        _ => None,
    }
}

/// Returns the type that holds a NUMERIC constant.
fn type_of_decimal(number: Numeric) -> DataType {
    let digits = (1..MAX_PRECISION).find(|digits| number.mantissa().abs() < decimal_power(*digits));
    DataType::Numeric(Some((digits.unwrap_or(MAX_PRECISION), number.scale())))
}

/// Returns the type of the results of CASE. NUMERIC of different scales are written differently, so
/// they stay in rows.
fn common_type(known: DataType, next: DataType) -> Option<DataType> {
    match (known, next) {
        (DataType::Numeric(Some((p, scale))), DataType::Numeric(Some((q, other)))) => {
            (scale == other).then_some(DataType::Numeric(Some((p.max(q), scale))))
        }
        _ => (known == next).then_some(known),
    }
}

/// Makes both sides NUMERIC.
fn decimals(pair: [VectorExpr; 2]) -> Option<[VectorExpr; 2]> {
    let [left, right] = pair;
    Some([left.into_decimal()?, right.into_decimal()?])
}

/// Gives both sides the larger of their scales.
fn aligned(pair: [VectorExpr; 2]) -> Option<[VectorExpr; 2]> {
    let scale = scale_of(pair[0].data_type)?.max(scale_of(pair[1].data_type)?);
    let [left, right] = pair;
    Some([left.rescaled(scale)?, right.rescaled(scale)?])
}

/// Whether columns compare as the values in them do.
fn comparable(left: DataType, right: DataType) -> bool {
    (left.is_integer() && right.is_integer())
        || (left.is_text() && right.is_text())
        || (left == right && kind_of(left) == Some(VectorType::Numbers))
}

pub fn failed(error: &ArrowError) -> SqlError {
    SqlError::internal(format!("a kernel failed: {error}"))
}

impl VectorExpr {
    /// Returns an integer or a NUMERIC as a NUMERIC.
    fn into_decimal(self) -> Option<VectorExpr> {
        if let Step::Given(Expr::Constant(value), _) = &self.step
            && let Some(number) = value.as_ref().as_i64()
        {
            let number = Numeric::from(number);
            let step = Step::Given(Expr::Constant(Value::Numeric(number)), None);
            return Some(VectorExpr { step, data_type: type_of_decimal(number) });
        }
        let digits = match self.data_type {
            DataType::Numeric(Some(_)) => return Some(self),
            DataType::SmallInt => 5,
            DataType::Integer => 10,
            DataType::BigInt => 19,
            _ => return None,
        };
        let data_type = DataType::Numeric(Some((digits, 0)));
        Some(VectorExpr { step: Step::Widened(Box::new(self)), data_type })
    }

    /// Returns the NUMERIC at a scale that is not smaller.
    fn rescaled(self, scale: u8) -> Option<VectorExpr> {
        let DataType::Numeric(Some((precision, own))) = self.data_type else { return None };
        let more = scale.checked_sub(own)?;
        if more == 0 {
            return Some(self);
        }
        if let Step::Given(Expr::Constant(Value::Numeric(number)), _) = &self.step {
            let number = number.round(scale.into()).ok()?;
            let step = Step::Given(Expr::Constant(Value::Numeric(number)), None);
            return Some(VectorExpr { step, data_type: type_of_decimal(number) });
        }
        let precision = precision.checked_add(more).filter(|sum| *sum <= MAX_PRECISION)?;
        let data_type = DataType::Numeric(Some((precision, scale)));
        Some(VectorExpr { step: Step::Rescaled(Box::new(self), more), data_type })
    }

    fn parts(&mut self) -> Vec<&mut VectorExpr> {
        match &mut self.step {
            Step::Column(_) | Step::Given(..) => Vec::new(),
            Step::Compare(_, pair) | Step::Arithmetic(_, _, pair, _) | Step::Decimal(_, pair) => {
                pair.iter_mut().collect()
            }
            Step::And(list) | Step::Or(list) | Step::Case(list) | Step::Call(_, list, _) => {
                list.iter_mut().collect()
            }
            Step::Not(inner)
            | Step::IsNull(inner, _)
            | Step::InSet(inner, ..)
            | Step::InTexts(inner, ..)
            | Step::Like(inner, ..)
            | Step::Trimmed(inner)
            | Step::Rescaled(inner, _)
            | Step::Widened(inner) => vec![inner],
        }
    }

    fn inner_parts(&self) -> Vec<&VectorExpr> {
        match &self.step {
            Step::Column(_) | Step::Given(..) => Vec::new(),
            Step::Compare(_, pair) | Step::Arithmetic(_, _, pair, _) | Step::Decimal(_, pair) => {
                pair.iter().collect()
            }
            Step::And(list) | Step::Or(list) | Step::Case(list) | Step::Call(_, list, _) => {
                list.iter().collect()
            }
            Step::Not(inner)
            | Step::IsNull(inner, _)
            | Step::InSet(inner, ..)
            | Step::InTexts(inner, ..)
            | Step::Like(inner, ..)
            | Step::Trimmed(inner)
            | Step::Rescaled(inner, _)
            | Step::Widened(inner) => vec![inner],
        }
    }

    pub fn may_fail(&self) -> bool {
        let fails_itself = match &self.step {
            Step::Arithmetic(..) => true,
            Step::Call(call, ..) => call.may_fail,
            // A result beyond 38 digits sends the step to row execution, whether or not row
            // execution would evaluate it (DECIMAL-1).
            _ => false,
        };
        fails_itself || self.inner_parts().into_iter().any(VectorExpr::may_fail)
    }

    /// Whether it reads texts.
    pub fn reads_texts(&self) -> bool {
        self.data_type.is_text() || self.inner_parts().into_iter().any(VectorExpr::reads_texts)
    }

    /// Evaluates the parts that are the same for all rows.
    pub fn begin(&mut self, context: &Context<'_>) -> Result<()> {
        let data_type = self.data_type;
        if let Step::Given(expr, given) = &mut self.step {
            let value: Value = context.value(expr)?;
            let kind = kind_of(data_type).ok_or_else(|| SqlError::internal("no such column"))?;
            *given = Some(Scalar::new(Vector::once(&value, kind)?.to_array()));
        }
        self.parts().into_iter().try_for_each(|part| part.begin(context))
    }

    /// Its values, one for each row, in a column of the kind of its type.
    pub fn column(&self, columns: &[Vector], rows: usize) -> Result<Vector> {
        let column = match (self.narrow_column(columns, rows)?, kind_of(self.data_type)) {
            (Vector::Numbers(numbers), Some(VectorType::WideDecimals(_))) => {
                Vector::Wide(decimal::widened(&numbers))
            }
            (vector, _) => vector,
        };
        invariant!(
            BATCH_1,
            column.array().len() == rows
                && kind_of(self.data_type).is_some_and(|kind| column.is_of(kind)),
            "a column of {} for {rows} rows",
            self.data_type
        );
        Ok(column)
    }

    /// Its values, one for each row. Those of a long NUMERIC have 64 bits if these suffice.
    pub fn narrow_column(&self, columns: &[Vector], rows: usize) -> Result<Vector> {
        let result = self.evaluate(columns)?;
        match result {
            VectorValues::Column(vector) => Ok(vector),
            VectorValues::Given(scalar) => {
                let nothing: Int64Array = std::iter::repeat_n(Some(0i64), rows).collect();
                let array = arrow_select::take::take(scalar.get().0, &nothing, None);
                Vector::of(&*array.map_err(|error| failed(&error))?)
            }
        }
    }

    /// Whether it holds, for each row.
    pub fn truths(&self, columns: &[Vector], rows: usize) -> Result<BooleanArray> {
        match self.column(columns, rows)? {
            Vector::Truths(truths) => Ok(truths),
            _ => Err(SqlError::internal("a condition is not a truth value")),
        }
    }

    fn evaluate(&self, columns: &[Vector]) -> Result<VectorValues> {
        let truths = |array: std::result::Result<BooleanArray, ArrowError>| {
            array.map(|array| VectorValues::Column(Vector::Truths(array))).map_err(|e| failed(&e))
        };
        match &self.step {
            Step::Column(nth) => {
                let column = columns.get(*nth).cloned();
                column.map(VectorValues::Column).ok_or_else(|| SqlError::internal("no such column"))
            }
            Step::Given(_, given) => {
                let given = given.clone().map(VectorValues::Given);
                given.ok_or_else(|| SqlError::internal("a run did not begin"))
            }
            Step::Compare(comparison @ (Comparison::Equal | Comparison::NotEqual), pair)
                if pair[0].data_type.is_text() && pair[1].given_text().is_some() =>
            {
                let (text, is_equal) = (pair[1].given_text(), *comparison == Comparison::Equal);
                let text = text.unwrap_or_default();
                pair[0].each_text(columns, |other| (other == text) == is_equal)
            }
            Step::Compare(comparison, pair) => {
                let (left, right) = (pair[0].evaluate(columns)?, pair[1].evaluate(columns)?);
                let (left, right) = decimal::of_one_width(left, right)?;
                let (left, right): (&dyn Datum, &dyn Datum) = (&left, &right);
                truths(match comparison {
                    Comparison::Equal => cmp::eq(left, right),
                    Comparison::NotEqual => cmp::neq(left, right),
                    Comparison::Less => cmp::lt(left, right),
                    Comparison::LessOrEqual => cmp::lt_eq(left, right),
                    Comparison::Greater => cmp::gt(left, right),
                    Comparison::GreaterOrEqual => cmp::gt_eq(left, right),
                })
            }
            Step::Arithmetic(operator, kind, pair, place) => {
                let (left, right) = (pair[0].numbers(columns)?, pair[1].numbers(columns)?);
                integers::calculate(*operator, *kind, &left, &right)
                    .map_err(|error| error.at(place.0 as usize))
            }
            Step::Decimal(operator, pair) => {
                let (left, right) = (pair[0].evaluate(columns)?, pair[1].evaluate(columns)?);
                decimal::calculate(*operator, left, right, row_count(columns))
            }
            Step::Rescaled(inner, more) => {
                let factor = Decimal128Array::from_value(decimal_power(*more), 1);
                let factor = VectorValues::Given(Scalar::new(Arc::new(factor)));
                let rows = row_count(columns);
                decimal::calculate(Arithmetic::Multiply, inner.evaluate(columns)?, factor, rows)
            }
            Step::And(list) => truths(Ok(connected(Connective::And, list, columns)?)),
            Step::Or(list) => truths(Ok(connected(Connective::Or, list, columns)?)),
            Step::Not(inner) => truths(not(&inner.condition(columns)?)),
            Step::IsNull(inner, negated) => {
                let inner = inner.evaluate(columns)?;
                let array = Datum::get(&inner).0;
                truths(if *negated { is_not_null(array) } else { is_null(array) })
            }
            Step::InSet(inner, set, negated) => {
                let numbers = inner.numbers(columns)?;
                let is_in = |number: i64| set.binary_search(&number).is_ok() != *negated;
                let found = BooleanArray::from_unary(&numbers, is_in);
                Ok(VectorValues::Column(Vector::Truths(found)))
            }
            Step::InTexts(inner, list, negated) => {
                let is_in = |text: &str| list.iter().any(|known| known == text) != *negated;
                inner.each_text(columns, is_in)
            }
            Step::Call(call, list, place) => {
                let argument = |part: &VectorExpr| Ok((part.evaluate(columns)?, part.data_type));
                let arguments = list.iter().map(argument).collect::<Result<Vec<_>>>()?;
                let result = call.call(&arguments, row_count(columns));
                result.map_err(|error| error.at(place.0 as usize))
            }
            Step::Like(inner, pattern, negated) => {
                inner.each_text(columns, |text| pattern.matches(text) != *negated)
            }
            Step::Trimmed(inner) => {
                let texts = inner.texts(columns)?;
                let trimmed: StringArray =
                    texts.iter().map(|text| text.map(without_blanks)).collect();
                Ok(VectorValues::Column(Vector::Texts(trimmed)))
            }
            Step::Widened(inner) => inner.evaluate(columns),
            Step::Case(parts) => choose(parts, columns),
        }
    }

    /// Returns the text that it has for all rows, if it is one that is not NULL.
    fn given_text(&self) -> Option<&str> {
        let Step::Given(_, Some(given)) = &self.step else { return None };
        let texts = given.get().0.as_any().downcast_ref::<StringArray>()?;
        (!texts.is_empty() && texts.is_valid(0)).then(|| texts.value(0))
    }

    /// Returns whether a predicate holds for each text; NULL for a NULL. Texts are not copied to
    /// be trimmed.
    fn each_text(&self, columns: &[Vector], holds: impl Fn(&str) -> bool) -> Result<VectorValues> {
        let (mut inner, mut is_trimmed) = (self, false);
        loop {
            inner = match &inner.step {
                Step::Trimmed(text) => {
                    is_trimmed = true;
                    text
                }
                Step::Widened(text) if text.data_type.is_text() => text,
                _ => break,
            };
        }
        let texts = inner.texts(columns)?;
        let found = BooleanArray::from_unary(&texts, |text| {
            holds(if is_trimmed { without_blanks(text) } else { text })
        });
        Ok(VectorValues::Column(Vector::Truths(found)))
    }

    fn condition(&self, columns: &[Vector]) -> Result<BooleanArray> {
        self.truths(columns, row_count(columns))
    }

    fn numbers(&self, columns: &[Vector]) -> Result<Int64Array> {
        let rows = row_count(columns);
        match self.column(columns, rows)? {
            Vector::Numbers(numbers) => Ok(numbers),
            _ => Err(SqlError::internal("an operand is no number")),
        }
    }

    fn texts(&self, columns: &[Vector]) -> Result<StringArray> {
        let rows = row_count(columns);
        match self.column(columns, rows)? {
            Vector::Texts(texts) => Ok(texts),
            _ => Err(SqlError::internal("an operand is no text")),
        }
    }
}

pub fn row_count(columns: &[Vector]) -> usize {
    columns.first().map_or(0, |column| column.array().len())
}

/// Values of a formula: one for each row, or one for all.
pub enum VectorValues {
    Column(Vector),
    Given(Scalar<arrow_array::ArrayRef>),
}

impl VectorValues {
    /// Returns integers with 128 bits.
    pub fn widened(self) -> Result<VectorValues> {
        Ok(match Vector::of(self.get().0)? {
            Vector::Numbers(numbers) => {
                let wide = decimal::widened(&numbers);
                match self {
                    VectorValues::Given(_) => VectorValues::Given(Scalar::new(Arc::new(wide))),
                    VectorValues::Column(_) => VectorValues::Column(Vector::Wide(wide)),
                }
            }
            _ => self,
        })
    }
}

impl Datum for VectorValues {
    fn get(&self) -> (&dyn Array, bool) {
        match self {
            VectorValues::Column(vector) => (vector.array(), false),
            VectorValues::Given(scalar) => scalar.get(),
        }
    }
}

/// Returns for each row the result of the first condition that holds.
fn choose(parts: &[VectorExpr], columns: &[Vector]) -> Result<VectorValues> {
    let Some((otherwise, branches)) = parts.split_last() else {
        return Err(SqlError::internal("a choice of nothing"));
    };
    invariant!(BATCH_2, !parts.iter().any(VectorExpr::may_fail), "a part of CASE may fail");
    let mut chosen = otherwise.evaluate(columns)?;
    for branch in branches.as_chunks::<2>().0.iter().rev() {
        let [condition, result] = branch;
        let truths = condition.condition(columns)?;
        // NULL counts as false.
        let holds = match truths.null_count() {
            0 => truths,
            _ => prep_null_mask_filter(&truths),
        };
        let (result, others) = decimal::of_one_width(result.evaluate(columns)?, chosen)?;
        let array = zip(&holds, &result, &others);
        chosen = VectorValues::Column(Vector::of(&*array.map_err(|error| failed(&error))?)?);
    }
    Ok(chosen)
}

/// Returns the rows of columns for which a condition is true.
pub fn keep(columns: &[Vector], truths: &BooleanArray) -> Result<(Vec<Vector>, usize)> {
    let kept: Result<Vec<Vector>> = columns.iter().map(|column| column.filtered(truths)).collect();
    Ok((kept?, truths.true_count()))
}
