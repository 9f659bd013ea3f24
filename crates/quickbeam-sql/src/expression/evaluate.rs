//! Evaluation of expressions.

use std::cmp::Ordering;

use quickbeam::invariant;

use super::arithmetic::{Arithmetic, NumberKind, calculate, calculate_long, negate};
use super::datum::{Datum, compare};
use super::{Clock, Expr, Frame, TextPosition, Truth, functions};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::LetterCase;
use crate::types::CastContext;
use crate::types::encoded::RowShape;
use crate::types::{
    self, DataType, TextSettings, Value, ValueRef, without_blanks, without_clock_words,
};

#[cold]
fn no_parameter(number: usize) -> SqlError {
    let message = format!("there is no value for parameter ${}", number + 1);
    SqlError::new(SqlState::UndefinedParameter, message)
}

#[cold]
fn no_row() -> SqlError {
    SqlError::internal("an expression reads a row that is not there")
}

/// Computes again, with any number of digits, what [`calculate`] refused.
#[cold]
fn long_result<'a>(
    (operator, kind): (Arithmetic, NumberKind),
    left: ValueRef<'_>,
    right: ValueRef<'_>,
    error: SqlError,
) -> Result<Datum<'a>> {
    match kind {
        NumberKind::Numeric => calculate_long(operator, left, right).map(Datum::Own),
        _ => Err(error),
    }
}

/// Applies an arithmetic operator to the values of two expressions.
#[inline]
fn arithmetic<'a>(
    (operator, kind): (Arithmetic, NumberKind),
    [left, right]: &'a [Expr; 2],
    position: TextPosition,
    frame: &Frame<'a>,
) -> Result<Datum<'a>> {
    let placed = |error: SqlError| error.at(position.0 as usize);
    let result = match (left.borrow(frame), right.borrow(frame)) {
        (Some(left), Some(right)) => {
            let (left, right) = (left?, right?);
            match calculate(operator, kind, left, right) {
                Ok(result) => result,
                Err(error) => {
                    return long_result((operator, kind), left, right, error).map_err(placed);
                }
            }
        }
        _ => {
            let (left, right) = (left.evaluate(frame)?, right.evaluate(frame)?);
            let (left, right) = (left.as_ref(), right.as_ref());
            match calculate(operator, kind, left, right) {
                Ok(result) => result,
                Err(error) => {
                    return long_result((operator, kind), left, right, error).map_err(placed);
                }
            }
        }
    };
    let is_of_kind = result.data_type().is_none_or(|own| own == kind.data_type());
    invariant!(EXPR_1, is_of_kind, "{result:?} is no {}", kind.data_type());
    Ok(Datum::Ref(result))
}

impl Expr {
    /// Evaluates the expression.
    #[inline]
    pub fn evaluate<'a>(&'a self, frame: &Frame<'a>) -> Result<Datum<'a>> {
        match self.borrow(frame) {
            Some(value) => value.map(Datum::Ref),
            None => self.compute(frame),
        }
    }

    /// Returns the value of a column, constant or parameter; `None` for an expression that is
    /// computed. See [`given`](Self::given).
    #[inline(always)]
    pub fn borrow<'a>(&'a self, frame: &Frame<'a>) -> Option<Result<ValueRef<'a>>> {
        match self {
            Expr::Column(at) => Some(match frame.slots.get(at.slot) {
                Some(slot) => slot.column(at.column),
                None => Err(no_row()),
            }),
            _ => self.given(frame.parameters).map(|value| Ok(value.as_ref())),
        }
    }

    /// Evaluates an expression that is not borrowed.
    fn compute<'a>(&'a self, frame: &Frame<'a>) -> Result<Datum<'a>> {
        Ok(match self {
            Expr::Constant(_) | Expr::Column(_) => {
                return self.borrow(frame).unwrap_or(Ok(ValueRef::Null)).map(Datum::Ref);
            }
            // A parameter with a value was borrowed.
            Expr::Parameter(number) => return Err(no_parameter(*number)),
            Expr::Arithmetic(operator, kind, pair, position) => {
                return arithmetic((*operator, *kind), pair, *position, frame);
            }
            Expr::Negate(inner, position) => {
                let value = inner.evaluate(frame)?;
                match (negate(value.as_ref()), value.as_ref()) {
                    (Ok(negated), _) => Datum::Ref(negated),
                    (_, ValueRef::LongNumeric(number)) => {
                        Datum::Own(number.decimal().negate().into())
                    }
                    (Err(error), _) => return Err(error.at(position.0 as usize)),
                }
            }
            Expr::Cast(inner, data_type, site) => {
                let value = inner.evaluate(frame)?;
                cast(value, *data_type, CastContext::Explicit, frame.clock)
                    .map_err(|error| error.at(site.position.0 as usize))?
            }
            Expr::Assign(inner, data_type, site) => {
                let value = inner.evaluate(frame)?;
                cast(value, *data_type, CastContext::Assignment, frame.clock)
                    .map_err(|error| error.at(site.position.0 as usize))?
            }
            Expr::Trimmed(inner) => match inner.evaluate(frame)? {
                Datum::Ref(ValueRef::Text(text)) => {
                    Datum::Ref(ValueRef::Text(without_blanks(text)))
                }
                Datum::Own(Value::Text(text)) => {
                    Datum::Own(Value::text(without_blanks(text.as_str())))
                }
                other if matches!(other.as_ref(), ValueRef::Array(_)) => {
                    Datum::Own(super::array_ops::trimmed(other.as_ref())?)
                }
                other => other,
            },
            Expr::Collate(inner, step) => {
                let value = inner.evaluate(frame)?;
                match step.apply(value.as_ref())? {
                    Some(made) => Datum::Own(made),
                    None => value,
                }
            }
            Expr::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    if condition.truth(frame)? == Some(true) {
                        return result.evaluate(frame);
                    }
                }
                otherwise.evaluate(frame)?
            }
            Expr::NextValue(sequence, data_type) => {
                let sequences =
                    frame.host.ok_or_else(|| SqlError::unsupported("a sequence here"))?;
                let value = Datum::Ref(ValueRef::BigInt(sequences.next_value(*sequence)?));
                cast(value, *data_type, CastContext::Assignment, None)?
            }
            Expr::CurrentValue(sequence) => {
                let sequences =
                    frame.host.ok_or_else(|| SqlError::unsupported("a sequence here"))?;
                Datum::Ref(ValueRef::BigInt(sequences.current_value(*sequence)?))
            }
            Expr::SetValue(sequence, arguments) => {
                let sequences =
                    frame.host.ok_or_else(|| SqlError::unsupported("a sequence here"))?;
                let [value, is_called] = &**arguments;
                let value = value.evaluate(frame)?;
                match (value.as_ref().as_i64(), is_called.truth(frame)?) {
                    (Some(value), Some(is_called)) => {
                        sequences.set_value(*sequence, value, is_called)?;
                        Datum::Ref(ValueRef::BigInt(value))
                    }
                    _ => Datum::Ref(ValueRef::Null),
                }
            }
            Expr::Call(function, arguments, position) => {
                let result = functions::call(*function, arguments, frame);
                match function.is_assignment() {
                    true => result?,
                    false => result.map_err(|error| error.at(position.0 as usize))?,
                }
            }
            Expr::Domain(inner, domain) => {
                let value = inner.evaluate(frame)?;
                domain.check(value.as_ref(), frame)?;
                value
            }
            Expr::Fold(rows, fold) => Datum::Own(fold.value_of(rows, frame)?),
            Expr::Row(shape, fields) => Datum::Own(row_of(shape, fields, frame)?),
            Expr::Array(element, list, position) => {
                let array = super::array_ops::construct(*element, list, frame);
                Datum::Own(array.map_err(|error| error.at(position.0 as usize))?)
            }
            Expr::Compare(..)
            | Expr::CompareElements(..)
            | Expr::Distinct(..)
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull(..)
            | Expr::IsTruth(..)
            | Expr::InList(..)
            | Expr::InSet(..)
            | Expr::Like(..)
            | Expr::LikeAny(..) => Datum::boolean(self.truth(frame)?),
        })
    }

    /// Evaluates a condition; `None` is NULL (EXPR-2).
    pub fn truth<'a>(&'a self, frame: &Frame<'a>) -> Result<Option<bool>> {
        Ok(match self {
            Expr::Compare(comparison, pair) => {
                let [left, right] = &**pair;
                let (left, right) = (left.evaluate(frame)?, right.evaluate(frame)?);
                compare(left.as_ref(), right.as_ref())?.map(|order| comparison.holds(order))
            }
            Expr::And(list) => {
                let mut result = Some(true);
                for part in list {
                    match part.truth(frame)? {
                        Some(true) => {}
                        Some(false) => return Ok(Some(false)),
                        None => result = None,
                    }
                }
                result
            }
            Expr::Or(list) => {
                let mut result = Some(false);
                for part in list {
                    match part.truth(frame)? {
                        Some(false) => {}
                        Some(true) => return Ok(Some(true)),
                        None => result = None,
                    }
                }
                result
            }
            Expr::Not(inner) => inner.truth(frame)?.map(|truth| !truth),
            Expr::IsNull(inner, negated) => Some(inner.evaluate(frame)?.is_null() != *negated),
            Expr::IsTruth(inner, truth, negated) => {
                let is = match (inner.truth(frame)?, truth) {
                    (Some(value), Truth::True) => value,
                    (Some(value), Truth::False) => !value,
                    (value, Truth::Unknown) => value.is_none(),
                    (None, _) => false,
                };
                Some(is != *negated)
            }
            Expr::Distinct(pair, negated) => {
                let [left, right] = &**pair;
                let (left, right) = (left.evaluate(frame)?, right.evaluate(frame)?);
                let (left, right) = (left.as_ref(), right.as_ref());
                let distinct = match (left.is_null(), right.is_null()) {
                    (false, false) => compare(left, right)? != Some(Ordering::Equal),
                    (left, right) => left != right,
                };
                Some(distinct != *negated)
            }
            Expr::InList(inner, list, negated) => {
                in_list(inner, list, frame)?.map(|is| is != *negated)
            }
            Expr::InSet(inner, set, negated) => {
                let value = inner.evaluate(frame)?;
                let value = value.as_ref();
                if value.is_null() {
                    return Ok(None);
                }
                let found = set.binary_search_by(|member| member.as_ref().order(value)).is_ok();
                Some(found != *negated)
            }
            Expr::Like(inner, pattern, negated) => match inner.evaluate(frame)?.as_ref() {
                ValueRef::Text(text) => Some(pattern.matches(text) != *negated),
                _ => None,
            },
            Expr::LikeAny(pair, escape, insensitive, negated) => {
                let [text, pattern] = &**pair;
                let (text, pattern) = (text.evaluate(frame)?, pattern.evaluate(frame)?);
                match (text.as_ref(), pattern.as_ref()) {
                    (ValueRef::Text(text), ValueRef::Text(pattern)) => {
                        let pattern =
                            super::Pattern::new(pattern, *escape, LetterCase::from(*insensitive));
                        Some(pattern.try_matches(text)? != *negated)
                    }
                    _ => None,
                }
            }
            Expr::CompareElements(comparison, pair, is_any) => {
                super::array_ops::compare_elements(*comparison, pair, *is_any, frame)?
            }
            other => match other.evaluate(frame)?.as_ref() {
                ValueRef::Boolean(value) => Some(value),
                ValueRef::Null => None,
                _ => return Err(SqlError::internal("a condition is not a truth value")),
            },
        })
    }

    /// Returns whether the condition is true, neither false nor NULL. The first condition of an AND
    /// that is not true ends the evaluation, as in PostgreSQL's filters: others raise no error.
    #[inline]
    pub fn is_true<'a>(&'a self, frame: &Frame<'a>) -> Result<bool> {
        // A column compared with an integer is the most frequent filter: this path allocates no
        // datums.
        if let Expr::Compare(comparison, pair) = self
            && let [Expr::Column(at), Expr::Constant(Value::Integer(right))] = &**pair
            && let Some(slot) = frame.slots.get(at.slot)
            && let ValueRef::Integer(left) = slot.column(at.column)?
        {
            return Ok(comparison.holds(left.cmp(right)));
        }
        if let Expr::And(list) = self {
            for part in list {
                if !part.is_true(frame)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        Ok(self.truth(frame)? == Some(true))
    }
}

/// Returns the row of these fields, or NULL if the marker after them is NULL.
fn row_of<'a>(shape: &RowShape, fields: &'a [Expr], frame: &Frame<'a>) -> Result<Value> {
    let (fields, marker) = fields.split_at(shape.width().min(fields.len()));
    if let [marker] = marker
        && marker.evaluate(frame)?.as_ref().is_null()
    {
        return Ok(Value::Null);
    }
    let mut row = shape.begin();
    for field in fields {
        row.push(field.evaluate(frame)?.as_ref())?;
    }
    row.finish()
}

fn in_list<'a>(inner: &'a Expr, list: &'a [Expr], frame: &Frame<'a>) -> Result<Option<bool>> {
    let value = inner.evaluate(frame)?;
    let value = value.as_ref();
    if value.is_null() && !list.is_empty() {
        return Ok(None);
    }
    let mut result = Some(false);
    for member in list {
        match compare(value, member.evaluate(frame)?.as_ref())? {
            Some(Ordering::Equal) => return Ok(Some(true)),
            Some(_) => {}
            None => result = None,
        }
    }
    Ok(result)
}

/// Casts the value to that type, explicitly or for assignment to a column, with the settings of the
/// session that the clock has.
pub fn cast<'v>(
    value: Datum<'v>,
    data_type: DataType,
    context: CastContext,
    clock: Option<&Clock>,
) -> Result<Datum<'v>> {
    let explicit = context == CastContext::Explicit;
    let fits = match (value.as_ref(), data_type) {
        (ValueRef::Null, _) => true,
        (ValueRef::Integer(_), DataType::Integer)
        | (ValueRef::BigInt(_), DataType::BigInt)
        | (ValueRef::SmallInt(_), DataType::SmallInt)
        | (ValueRef::Double(_), DataType::Double)
        | (ValueRef::Boolean(_), DataType::Boolean)
        | (ValueRef::Text(_), DataType::Text | DataType::Varchar(None)) => true,
        (ValueRef::Text(text), DataType::Varchar(Some(most))) => text.len() <= most as usize,
        (ValueRef::Text(text), DataType::Char(length)) => {
            length == 0 || text.len() == length as usize && text.is_ascii()
        }
        _ => false,
    };
    if fits {
        return Ok(value);
    }
    if let (ValueRef::SmallInt(_) | ValueRef::Integer(_), DataType::BigInt) =
        (value.as_ref(), data_type)
        && let Some(number) = value.as_ref().as_i64()
    {
        return Ok(Datum::Ref(ValueRef::BigInt(number)));
    }
    // The binder removed the trailing blanks of a CHAR where they are not significant.
    let settings = clock.map_or(TextSettings::DEFAULT, Clock::settings);
    let cast = if explicit {
        types::cast(value.as_ref(), data_type, &settings)
    } else {
        types::assign(value.as_ref(), data_type, &settings)
    };
    match (cast, value.as_ref(), clock) {
        (Ok(made), ..) => Ok(Datum::Own(made)),
        (Err(error), ValueRef::Text(text), Some(clock)) => {
            match without_clock_words(text, data_type, clock.now(), &settings) {
                None => Err(error),
                Some(text) => {
                    types::cast(ValueRef::Text(&text), data_type, &settings).map(Datum::Own)
                }
            }
        }
        (Err(error), ..) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth_of(expression: &Expr) -> Option<bool> {
        expression.truth(&Frame::of_parameters(&[])).unwrap()
    }

    fn constant(truth: Option<bool>) -> Expr {
        Expr::Constant(truth.map_or(Value::Null, Value::Boolean))
    }

    #[test]
    fn truth_has_three_values() {
        let (t, f, n) = (Some(true), Some(false), None);
        let table =
            [(t, t, t, t), (t, f, f, t), (t, n, n, t), (f, f, f, f), (f, n, f, n), (n, n, n, n)];
        for (a, b, and, or) in table {
            for (a, b) in [(a, b), (b, a)] {
                assert_eq!(
                    truth_of(&Expr::And(vec![constant(a), constant(b)])),
                    and,
                    "{a:?} AND {b:?}"
                );
                assert_eq!(
                    truth_of(&Expr::Or(vec![constant(a), constant(b)])),
                    or,
                    "{a:?} OR {b:?}"
                );
            }
        }
        assert_eq!(truth_of(&Expr::Not(Box::new(constant(n)))), n);
        assert_eq!(truth_of(&Expr::IsTruth(Box::new(constant(n)), Truth::False, true)), t);
    }

    #[test]
    fn null_in_a_list_is_unknown_unless_the_value_is_found() {
        let integer = |value: i32| Expr::Constant(Value::Integer(value));
        let list = vec![integer(1), Expr::Constant(Value::Null)];
        assert_eq!(truth_of(&Expr::InList(Box::new(integer(1)), list.clone(), false)), Some(true));
        assert_eq!(truth_of(&Expr::InList(Box::new(integer(2)), list.clone(), true)), None);
        assert_eq!(
            truth_of(&Expr::InList(Box::new(Expr::Constant(Value::Null)), list, false)),
            None
        );
    }
}
