//! Pattern operators with ANY and ALL of an array, as in `name LIKE ANY ('{a%,b%}')`.
//!
//! A condition with ANY is true if the operator is true for one element; with ALL, if it is true
//! for each. NULL elements leave the result unknown, unless another element decides it.

use super::regular::{WantedAnswer, operator};
use crate::error::Result;
use crate::expression::builtin::{Builtin, Implementation, OfValues, mismatch, text};
use crate::expression::{LetterCase, Pattern};
use crate::types::{DataType, ElementType, Value, ValueRef};
use DataType::{Boolean, Text};

const TEXTS: DataType = DataType::Array(ElementType::TEXT);

/// Declares an operator of a text and an array of patterns. Its name is the operator's symbol and
/// the word ANY or ALL, so that no function call reaches it.
const fn of(name: &'static str, run: OfValues) -> Builtin {
    Builtin::new(name, &[Text, TEXTS], Boolean, Implementation::NullTolerant(run))
}

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    of("~~ any", |v| any(v, like)),
    of("~~ all", |v| all(v, like)),
    of("!~~ any", |v| any(v, |pair| like(pair).map(negated))),
    of("!~~ all", |v| all(v, |pair| like(pair).map(negated))),
    of("~~* any", |v| any(v, like_in_any_case)),
    of("~~* all", |v| all(v, like_in_any_case)),
    of("!~~* any", |v| any(v, |pair| like_in_any_case(pair).map(negated))),
    of("!~~* all", |v| all(v, |pair| like_in_any_case(pair).map(negated))),
    of("~ any", |v| any(v, |pair| operator(pair, LetterCase::Kept, WantedAnswer::Match))),
    of("~ all", |v| all(v, |pair| operator(pair, LetterCase::Kept, WantedAnswer::Match))),
    of("!~ any", |v| any(v, |pair| operator(pair, LetterCase::Kept, WantedAnswer::NoMatch))),
    of("!~ all", |v| all(v, |pair| operator(pair, LetterCase::Kept, WantedAnswer::NoMatch))),
    of("~* any", |v| any(v, |pair| operator(pair, LetterCase::Ignored, WantedAnswer::Match))),
    of("~* all", |v| all(v, |pair| operator(pair, LetterCase::Ignored, WantedAnswer::Match))),
    of("!~* any", |v| any(v, |pair| operator(pair, LetterCase::Ignored, WantedAnswer::NoMatch))),
    of("!~* all", |v| all(v, |pair| operator(pair, LetterCase::Ignored, WantedAnswer::NoMatch))),
];

fn matches(pair: &[ValueRef<'_>], case: LetterCase) -> Result<Value> {
    let pattern = Pattern::new(text(pair, 1)?, Some('\\'), case);
    pattern.try_matches(text(pair, 0)?).map(Value::Boolean)
}

fn like(pair: &[ValueRef<'_>]) -> Result<Value> {
    matches(pair, LetterCase::Kept)
}

fn like_in_any_case(pair: &[ValueRef<'_>]) -> Result<Value> {
    matches(pair, LetterCase::Ignored)
}

fn negated(value: Value) -> Value {
    match value {
        Value::Boolean(truth) => Value::Boolean(!truth),
        other => other,
    }
}

fn any(arguments: &[ValueRef<'_>], test: OfValues) -> Result<Value> {
    decided_by(Value::Boolean(true), arguments, test)
}

fn all(arguments: &[ValueRef<'_>], test: OfValues) -> Result<Value> {
    decided_by(Value::Boolean(false), arguments, test)
}

/// Tests each element until one has the result `deciding`. Without one the result is the opposite,
/// or NULL if a test was of a NULL.
fn decided_by(deciding: Value, arguments: &[ValueRef<'_>], test: OfValues) -> Result<Value> {
    let [value, array] = arguments else { return Err(mismatch()) };
    let array = match array {
        ValueRef::Null => return Ok(Value::Null),
        ValueRef::Array(array) => array,
        _ => return Err(mismatch()),
    };
    let mut has_null = false;
    for element in array.iter() {
        if value.is_null() || element.is_null() {
            has_null = true;
        } else if test(&[*value, element])? == deciding {
            return Ok(deciding);
        }
    }
    Ok(if has_null { Value::Null } else { negated(deciding) })
}
