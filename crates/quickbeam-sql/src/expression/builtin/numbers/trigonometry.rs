//! Trigonometric and hyperbolic functions, in radians and in degrees.

use super::double::overflow;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, double, strict};
use crate::types::{DataType, Value, ValueRef};
use DataType::Double;

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("sin", &[Double], Double, |v| finite(v, f64::sin)),
    strict("cos", &[Double], Double, |v| finite(v, f64::cos)),
    strict("tan", &[Double], Double, |v| finite(v, f64::tan)),
    strict("cot", &[Double], Double, |v| finite(v, |x| 1.0 / x.tan())),
    strict("asin", &[Double], Double, |v| unit(v, f64::asin)),
    strict("acos", &[Double], Double, |v| unit(v, f64::acos)),
    strict("atan", &[Double], Double, |v| any(v, f64::atan)),
    strict("atan2", &[Double, Double], Double, |v| {
        Ok(Value::Double(double(v, 0)?.atan2(double(v, 1)?)))
    }),
    strict("sinh", &[Double], Double, |v| infinite(v, f64::sinh)),
    strict("cosh", &[Double], Double, |v| infinite(v, f64::cosh)),
    strict("tanh", &[Double], Double, |v| any(v, f64::tanh)),
    strict("asinh", &[Double], Double, |v| any(v, f64::asinh)),
    strict("acosh", &[Double], Double, |v| {
        let number = double(v, 0)?;
        if number < 1.0 { Err(out_of_domain()) } else { Ok(Value::Double(number.acosh())) }
    }),
    strict("atanh", &[Double], Double, |v| unit(v, f64::atanh)),
    strict("sind", &[Double], Double, |v| degrees(v, sine)),
    strict("cosd", &[Double], Double, |v| degrees(v, cosine)),
    strict("tand", &[Double], Double, |v| degrees(v, |x| signless(sine(x) / cosine(x)))),
    strict("cotd", &[Double], Double, |v| degrees(v, |x| signless(cosine(x) / sine(x)))),
    strict("asind", &[Double], Double, |v| unit(v, inverse_sine)),
    strict("acosd", &[Double], Double, |v| unit(v, |x| 90.0 - inverse_sine(x))),
    strict("atand", &[Double], Double, |v| any(v, inverse_tangent)),
    strict("atan2d", &[Double, Double], Double, |v| {
        let angle = double(v, 0)?.atan2(double(v, 1)?);
        Ok(Value::Double(angle / 1.0_f64.atan() * 45.0))
    }),
];

#[cold]
fn out_of_domain() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "input is out of range")
}

fn any(arguments: &[ValueRef<'_>], function: fn(f64) -> f64) -> Result<Value> {
    let number = double(arguments, 0)?;
    let result = function(number);
    if result.is_infinite() && number.is_finite() {
        return Err(overflow());
    }
    Ok(Value::Double(result))
}

/// Applies a function whose result may be too large for a number, and is infinite then.
fn infinite(arguments: &[ValueRef<'_>], function: fn(f64) -> f64) -> Result<Value> {
    Ok(Value::Double(function(double(arguments, 0)?)))
}

/// Applies a function that is defined for finite numbers only.
fn finite(arguments: &[ValueRef<'_>], function: fn(f64) -> f64) -> Result<Value> {
    let number = double(arguments, 0)?;
    if number.is_infinite() {
        return Err(out_of_domain());
    }
    Ok(Value::Double(function(number)))
}

/// Applies a function that is defined from -1 to 1.
fn unit(arguments: &[ValueRef<'_>], function: fn(f64) -> f64) -> Result<Value> {
    let number = double(arguments, 0)?;
    if !number.is_nan() && !(-1.0..=1.0).contains(&number) {
        return Err(out_of_domain());
    }
    Ok(Value::Double(function(number)))
}

/// Applies a function of degrees, with the angle reduced below a full turn.
fn degrees(arguments: &[ValueRef<'_>], function: fn(f64) -> f64) -> Result<Value> {
    finite(arguments, |_| 0.0)?;
    Ok(Value::Double(function(double(arguments, 0)? % 360.0)))
}

/// Returns zero for a negative zero.
fn signless(number: f64) -> f64 {
    if number == 0.0 { 0.0 } else { number }
}

/// Returns the sine of an angle from 0 to 90 degrees, exact at 0, 30 and 90 degrees.
fn first_quadrant_sine(angle: f64) -> f64 {
    if angle <= 30.0 {
        angle.to_radians().sin() / 30.0_f64.to_radians().sin() / 2.0
    } else {
        small_cosine(90.0 - angle)
    }
}

/// Returns the cosine of an angle from 0 to 60 degrees, exact at 0 and 60 degrees.
fn small_cosine(angle: f64) -> f64 {
    let complement = |angle: f64| 1.0 - angle.to_radians().cos();
    1.0 - complement(angle) / complement(60.0) / 2.0
}

fn sine(angle: f64) -> f64 {
    let (mut sign, mut angle) = (1.0, angle);
    if angle < 0.0 {
        (sign, angle) = (-1.0, -angle);
    }
    if angle > 180.0 {
        (sign, angle) = (-sign, 360.0 - angle);
    }
    if angle > 90.0 {
        angle = 180.0 - angle;
    }
    sign * first_quadrant_sine(angle)
}

fn cosine(angle: f64) -> f64 {
    let (mut sign, mut angle) = (1.0, angle.abs());
    if angle > 180.0 {
        angle = 360.0 - angle;
    }
    if angle > 90.0 {
        (sign, angle) = (-1.0, 180.0 - angle);
    }
    let result =
        if angle <= 60.0 { small_cosine(angle) } else { first_quadrant_sine(90.0 - angle) };
    sign * result
}

/// Returns the inverse sine in degrees, exact at 0, 1/2 and 1.
fn inverse_sine(number: f64) -> f64 {
    let positive = |x: f64| {
        if x <= 0.5 {
            x.asin() / 0.5_f64.asin() * 30.0
        } else {
            90.0 - x.acos() / 0.5_f64.acos() * 60.0
        }
    };
    if number < 0.0 { -positive(-number) } else { positive(number) }
}

/// Returns the inverse tangent in degrees, exact at 0 and 1.
fn inverse_tangent(number: f64) -> f64 {
    number.atan() / 1.0_f64.atan() * 45.0
}
