//! Function calls: the special forms, and the functions of the [catalog](super::builtin).

use quickbeam::invariant;

use super::builtin::{Builtin, Implementation, OfValues, Special};
use super::datum::{Datum, compare};
use super::{Expr, Frame};
use crate::catalog::Volatility;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DAY, DataType, Value, ValueRef};

/// Arguments that are evaluated without an allocation.
const FEW: usize = 4;

/// A function: one pointer, so that calls do not enlarge [`Expr`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Function(pub &'static Builtin);

macro_rules! special_functions {
    ($($(#[$note:meta])* $constant:ident = $special:ident, $name:literal;)*) => {
        impl Function {
            $($(#[$note])* pub const $constant: Function = {
                static BUILTIN: Builtin = Builtin::special($name, Special::$special);
                Function(&BUILTIN)
            };)*
        }
    };
}

special_functions! {
    /// `coalesce`
    COALESCE = Coalesce, "coalesce";
    /// `nullif`
    NULL_IF = NullIf, "nullif";
    /// `greatest`
    GREATEST = Greatest, "greatest";
    /// `least`
    LEAST = Least, "least";
    /// Rounding to a number of fractional digits of the second
    ROUND_SECOND = RoundSecond, "round_second";
    /// `now`
    NOW = Now, "now";
    /// A subscript or slice of an array
    SUBSCRIPTS = Subscripts, "subscripts";
    /// An array with another element or slice
    ASSIGN_SUBSCRIPTS = AssignSubscripts, "assign_subscripts";
    /// A JSONB value with another member
    ASSIGN_MEMBER = AssignMember, "assign_member";
    /// `current_date`, in the session's time zone
    CURRENT_DATE = CurrentDate, "current_date";
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

impl Function {
    /// Returns whether it makes the value of a column with another part, for an assignment.
    pub fn is_assignment(self) -> bool {
        use Special::{AssignMember, AssignSubscripts};
        matches!(self.0.implementation, Implementation::Special(AssignMember | AssignSubscripts))
    }

    /// Returns whether each call may return another value.
    pub fn is_volatile(self) -> bool {
        match self.0.implementation {
            Implementation::Volatile(_) => true,
            Implementation::Registered(function) => function.is_volatile(),
            Implementation::Routine(call) => call.volatility == Volatility::Volatile,
            _ => false,
        }
    }

    /// Returns whether a call may change the database.
    pub fn may_change(self) -> bool {
        match self.0.implementation {
            Implementation::Routine(call) => call.volatility == Volatility::Volatile,
            Implementation::Volatile(_) => matches!(self.0.name, "nextval" | "setval"),
            _ => false,
        }
    }

    /// Returns whether it makes a text of a text.
    pub fn is_of_text(self) -> bool {
        let is_special = matches!(self.0.implementation, Implementation::Special(_));
        let is_text = self.0.arguments.first() == Some(&DataType::Text);
        !is_special && is_text && self.0.result == DataType::Text
    }

    /// Returns the implementation, if it depends on the arguments alone and is strict.
    pub fn of_values(self) -> Option<OfValues> {
        match self.0.implementation {
            Implementation::Strict(evaluate) => Some(evaluate),
            _ => None,
        }
    }

    /// Returns the type of the results, if they are numbers of the same type for all arguments.
    pub fn number_type(self) -> Option<DataType> {
        let is_number = matches!(
            self.0.result,
            DataType::Integer | DataType::BigInt | DataType::Double | DataType::Numeric(None)
        );
        let is_plain = matches!(self.0.implementation, Implementation::Strict(_));
        (is_number && is_plain).then_some(self.0.result)
    }

    /// Returns whether the result is NULL if an argument is.
    pub fn is_strict(self) -> bool {
        match self.0.implementation {
            Implementation::Special(special) => {
                matches!(special, Special::RoundSecond | Special::Now | Special::CurrentDate)
            }
            Implementation::NullTolerant(_) | Implementation::StableNullTolerant(_) => false,
            Implementation::Registered(function) => !function.is_called_with_nulls(),
            Implementation::Routine(call) => call.is_strict,
            _ => true,
        }
    }

    /// Returns whether the program has registered it, or it is one of the catalog.
    pub fn is_of_program(self) -> bool {
        matches!(self.0.implementation, Implementation::Registered(_) | Implementation::Routine(_))
    }

    /// Returns whether the result depends on the transaction.
    pub fn is_of_session(self) -> bool {
        matches!(
            self.0.implementation,
            Implementation::Stable(_)
                | Implementation::StableNullTolerant(_)
                | Implementation::Routine(_)
                | Implementation::Special(Special::Now | Special::CurrentDate)
        )
    }
}

#[cold]
fn mismatch() -> SqlError {
    SqlError::internal("an argument has another type than its function expects")
}

/// Evaluates a function call.
pub fn call<'a>(function: Function, arguments: &'a [Expr], frame: &Frame<'a>) -> Result<Datum<'a>> {
    let builtin = function.0;
    match builtin.implementation {
        Implementation::Special(special) => special_form(special, arguments, frame),
        _ if arguments.len() <= FEW => few(builtin, arguments, frame),
        _ => many(builtin, arguments, frame),
    }
}

fn special_form<'a>(
    special: Special,
    arguments: &'a [Expr],
    frame: &Frame<'a>,
) -> Result<Datum<'a>> {
    match special {
        Special::Coalesce => {
            for argument in arguments {
                let value = argument.evaluate(frame)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Ok(Datum::NULL)
        }
        Special::Greatest | Special::Least => extreme(special, arguments, frame),
        Special::Now => Ok(Datum::Own(Value::TimestampTz(frame.now()))),
        Special::CurrentDate => {
            let now = frame.now();
            let today = frame.settings().zone.to_local(now).unwrap_or(now);
            let day = i32::try_from(today.div_euclid(DAY))
                .map_err(|_| SqlError::new(SqlState::DatetimeFieldOverflow, "date out of range"))?;
            Ok(Datum::Own(Value::Date(day)))
        }
        Special::Subscripts => super::array_ops::subscripts(arguments, frame),
        Special::AssignSubscripts => super::array_ops::assign_subscripts(arguments, frame),
        Special::AssignMember => super::builtin::assign_member(arguments, frame),
        Special::NullIf | Special::RoundSecond => {
            let [first, second] = arguments else { return Err(mismatch()) };
            let (first, second) = (first.evaluate(frame)?, second.evaluate(frame)?);
            if special == Special::NullIf {
                let order = compare(first.as_ref(), second.as_ref())?;
                return Ok(if order.is_some_and(|o| o.is_eq()) { Datum::NULL } else { first });
            }
            if first.is_null() || second.is_null() {
                return Ok(Datum::NULL);
            }
            let digits = second.as_ref().as_i64().unwrap_or_default();
            Ok(Datum::Own(super::dates::round_second(first.as_ref(), digits)?))
        }
    }
}

/// Calls a function of few arguments, which are kept on the stack.
fn few<'a>(
    builtin: &'static Builtin,
    arguments: &'a [Expr],
    frame: &Frame<'a>,
) -> Result<Datum<'a>> {
    let is_strict = Function(builtin).is_strict();
    let mut held: [Datum<'a>; FEW] = [const { Datum::NULL }; FEW];
    for (place, argument) in held.iter_mut().zip(arguments) {
        *place = argument.evaluate(frame)?;
        if is_strict && place.is_null() {
            return Ok(Datum::NULL);
        }
    }
    let mut values = [ValueRef::Null; FEW];
    for (value, datum) in values.iter_mut().zip(&held) {
        *value = datum.as_ref();
    }
    run(builtin, values.get(..arguments.len()).unwrap_or_default(), frame)
}

fn many<'a>(
    builtin: &'static Builtin,
    arguments: &'a [Expr],
    frame: &Frame<'a>,
) -> Result<Datum<'a>> {
    let is_strict = Function(builtin).is_strict();
    let mut held = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let datum = argument.evaluate(frame)?;
        if is_strict && datum.is_null() {
            return Ok(Datum::NULL);
        }
        held.push(datum);
    }
    let values: Vec<ValueRef<'_>> = held.iter().map(Datum::as_ref).collect();
    run(builtin, &values, frame)
}

fn run<'a>(
    builtin: &'static Builtin,
    values: &[ValueRef<'_>],
    frame: &Frame<'_>,
) -> Result<Datum<'a>> {
    let value = match builtin.implementation {
        Implementation::Strict(run) | Implementation::NullTolerant(run) => run(values)?,
        Implementation::Stable(run)
        | Implementation::StableNullTolerant(run)
        | Implementation::Volatile(run) => run(frame, values)?,
        Implementation::Registered(function) => {
            let value = function.call(values)?;
            invariant!(FUNCTION_1, value.is_of(builtin.result), "{value:?} of {}", function.name());
            value
        }
        Implementation::Routine(call) => {
            let values = values.iter().map(|value| value.to_value()).collect();
            frame.host()?.call_routine(call, values)?
        }
        Implementation::Special(_) => return Err(mismatch()),
    };
    Ok(Datum::Own(value))
}

fn extreme<'a>(special: Special, arguments: &'a [Expr], frame: &Frame<'a>) -> Result<Datum<'a>> {
    let mut best = Datum::NULL;
    for argument in arguments {
        let value = argument.evaluate(frame)?;
        let order = compare(value.as_ref(), best.as_ref())?;
        let better = match order {
            Some(order) if special == Special::Greatest => order.is_gt(),
            Some(order) => order.is_lt(),
            None => best.is_null(),
        };
        if better {
            best = value;
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_of(function: Function, arguments: &[Value]) -> Result<Value> {
        let arguments: Vec<Expr> = arguments.iter().cloned().map(Expr::Constant).collect();
        call(function, &arguments, &Frame::of_parameters(&[])).map(Datum::into_value)
    }

    #[test]
    fn special_forms_handle_null_arguments() {
        let i = Value::Integer;
        for (function, arguments, expected) in [
            (Function::NULL_IF, vec![i(1), i(1)], Value::Null),
            (Function::NULL_IF, vec![i(1), Value::Null], i(1)),
            (Function::COALESCE, vec![Value::Null, i(2)], i(2)),
            (Function::GREATEST, vec![Value::Null, i(2), i(3)], i(3)),
            (Function::LEAST, vec![Value::Null, i(2), i(3)], i(2)),
        ] {
            assert_eq!(value_of(function, &arguments).unwrap(), expected, "{function:?}");
        }
    }

    #[test]
    fn strict_functions_skip_null_arguments() {
        for builtin in super::super::builtin::overloads("repeat") {
            let function = Function(builtin);
            assert!(function.is_strict());
            let arguments = [Value::Null, Value::Integer(i32::MAX)];
            assert_eq!(value_of(function, &arguments).unwrap(), Value::Null);
        }
    }
}
