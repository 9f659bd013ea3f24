//! States of the statistical aggregates: variances of one variable, regressions of two.
//!
//! The formulas, and so the last digits of results, are PostgreSQL's: exact sums of NUMERIC values,
//! and the Youngs-Cramer updates of floating-point ones.

use crate::bind::AggregateKind;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DataType, Decimal, Numeric, Value, ValueRef};

#[cold]
fn overflow() -> SqlError {
    SqlError::new(SqlState::NumericValueOutOfRange, "value out of range: overflow")
}

#[cold]
fn not_a_number() -> SqlError {
    SqlError::internal("a statistical aggregate of what is not a number")
}

/// Returns whether the aggregate divides by the count less one, not by the count.
fn is_of_sample(kind: AggregateKind) -> bool {
    matches!(
        kind,
        AggregateKind::SampleVariance
            | AggregateKind::SampleDeviation
            | AggregateKind::SampleCovariance
    )
}

fn is_deviation(kind: AggregateKind) -> bool {
    matches!(kind, AggregateKind::SampleDeviation | AggregateKind::PopulationDeviation)
}

/// The state of a variance or standard deviation.
#[derive(Clone, Debug)]
pub enum Moments {
    /// Count, sum and sum of squares.
    Exact(i64, Decimal, Decimal),
    /// Count, sum and sum of squared differences from the mean.
    Floating(f64, f64, f64),
}

impl Moments {
    pub fn new(data_type: DataType) -> Moments {
        match data_type {
            DataType::Double => Moments::Floating(0.0, 0.0, 0.0),
            _ => Moments::Exact(0, Numeric::ZERO.into(), Numeric::ZERO.into()),
        }
    }

    pub fn add(&mut self, value: ValueRef<'_>) -> Result<()> {
        match self {
            Moments::Exact(count, sum, squares) => {
                let number = value.as_decimal().ok_or_else(not_a_number)?;
                *count += 1;
                *sum = sum.checked_add(&number)?;
                *squares = squares.checked_add(&number.checked_mul(&number)?)?;
            }
            Moments::Floating(count, sum, differences) => {
                let number = value.as_f64().ok_or_else(not_a_number)?;
                let was_infinite = sum.is_infinite();
                *count += 1.0;
                *sum += number;
                if *count > 1.0 {
                    let difference = number * *count - *sum;
                    *differences += difference * difference / (*count * (*count - 1.0));
                } else if !number.is_finite() {
                    *differences = f64::NAN;
                }
                if *count > 1.0 && (sum.is_infinite() || differences.is_infinite()) {
                    if !was_infinite && !number.is_infinite() {
                        return Err(overflow());
                    }
                    *differences = f64::NAN;
                }
            }
        }
        Ok(())
    }

    pub fn finish(&self, kind: AggregateKind) -> Result<Value> {
        let sample = is_of_sample(kind);
        match self {
            Moments::Exact(count, ..) if *count == 0 || sample && *count == 1 => Ok(Value::Null),
            // The sum of squares is NaN or infinite, if any value is.
            Moments::Exact(.., squares) if !squares.is_finite() => Ok(Value::Numeric(Numeric::NAN)),
            Moments::Exact(count, sum, squares) => {
                let number = Decimal::from(*count);
                let difference =
                    number.checked_mul(squares)?.checked_sub(&sum.checked_mul(sum)?)?;
                if difference.signum() <= 0 {
                    return Ok(Value::Numeric(Numeric::ZERO));
                }
                let less = Decimal::from(if sample { count - 1 } else { *count });
                let variance = difference.checked_div(&number.checked_mul(&less)?)?;
                Ok(Value::from(match is_deviation(kind) {
                    true => variance.square_root_of_scale()?,
                    false => variance,
                }))
            }
            Moments::Floating(count, ..) if *count == 0.0 || sample && *count == 1.0 => {
                Ok(Value::Null)
            }
            Moments::Floating(count, _, differences) => {
                let variance = differences / if sample { count - 1.0 } else { *count };
                Ok(Value::Double(if is_deviation(kind) { variance.sqrt() } else { variance }))
            }
        }
    }
}

/// The state of a covariance, correlation or regression of `y` by `x`.
#[derive(Clone, Debug, Default)]
pub struct Regression {
    count: f64,
    sum_x: f64,
    squares_x: f64,
    sum_y: f64,
    squares_y: f64,
    products: f64,
}

impl Regression {
    pub fn add(&mut self, y: ValueRef<'_>, x: ValueRef<'_>) -> Result<()> {
        let y = y.as_f64().ok_or_else(not_a_number)?;
        let x = x.as_f64().ok_or_else(not_a_number)?;
        // An infinite value, now or before, makes what follows NaN: only finite ones overflow.
        let is_finite_x = !self.sum_x.is_infinite() && !x.is_infinite();
        let is_finite_y = !self.sum_y.is_infinite() && !y.is_infinite();
        self.count += 1.0;
        self.sum_x += x;
        self.sum_y += y;
        if self.count > 1.0 {
            let from_x = x * self.count - self.sum_x;
            let from_y = y * self.count - self.sum_y;
            let scale = 1.0 / (self.count * (self.count - 1.0));
            self.squares_x += from_x * from_x * scale;
            self.squares_y += from_y * from_y * scale;
            self.products += from_x * from_y * scale;
        } else {
            for (value, squares) in [(x, &mut self.squares_x), (y, &mut self.squares_y)] {
                if !value.is_finite() {
                    (*squares, self.products) = (f64::NAN, f64::NAN);
                }
            }
        }
        if self.count > 1.0 {
            let overflows_x = self.sum_x.is_infinite() || self.squares_x.is_infinite();
            let overflows_y = self.sum_y.is_infinite() || self.squares_y.is_infinite();
            if overflows_x && is_finite_x
                || overflows_y && is_finite_y
                || self.products.is_infinite() && is_finite_x && is_finite_y
            {
                return Err(overflow());
            }
            for sum in [&mut self.squares_x, &mut self.squares_y, &mut self.products] {
                if sum.is_infinite() {
                    *sum = f64::NAN;
                }
            }
        }
        Ok(())
    }

    pub fn finish(&self, kind: AggregateKind) -> Value {
        let Regression { count, sum_x, squares_x, sum_y, squares_y, products } = *self;
        if kind == AggregateKind::RegressionCount {
            return Value::BigInt(count as i64);
        }
        if count < 1.0 || is_of_sample(kind) && count < 2.0 {
            return Value::Null;
        }
        let value = match kind {
            AggregateKind::RegressionSxx => Some(squares_x),
            AggregateKind::RegressionSyy => Some(squares_y),
            AggregateKind::RegressionSxy => Some(products),
            AggregateKind::RegressionAverageX => Some(sum_x / count),
            AggregateKind::RegressionAverageY => Some(sum_y / count),
            AggregateKind::PopulationCovariance => Some(products / count),
            AggregateKind::SampleCovariance => Some(products / (count - 1.0)),
            AggregateKind::Correlation => (squares_x != 0.0 && squares_y != 0.0)
                .then(|| products / (squares_x * squares_y).sqrt()),
            _ if squares_x == 0.0 => None,
            AggregateKind::RegressionR2 if squares_y == 0.0 => Some(1.0),
            AggregateKind::RegressionR2 => Some(products * products / (squares_x * squares_y)),
            AggregateKind::RegressionSlope => Some(products / squares_x),
            AggregateKind::RegressionIntercept => {
                Some((sum_y - sum_x * products / squares_x) / count)
            }
            _ => None,
        };
        value.map_or(Value::Null, Value::Double)
    }
}
