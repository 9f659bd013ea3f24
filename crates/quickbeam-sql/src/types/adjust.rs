//! Rounding of times to a precision, and of intervals to fields.
//!
//! - PRECISE-1: `adjust` of an adjusted value changes nothing.

use quickbeam::invariant;

use super::datetime::{SECOND, is_timestamp};
use super::interval::{IntervalUnit, interval_out_of_range};
use super::precise::PreciseType;
use super::{Interval, Value};
use crate::error::{Result, SqlError, SqlState};

/// Microseconds from 1970-01-01 to 2000-01-01, from where PostgreSQL counts and rounds.
const EPOCH: i64 = 946_684_800 * SECOND;

impl PreciseType {
    /// Rounds a value to the digits of the type and drops what is smaller than its last field.
    pub fn adjust(self, value: Value) -> Result<Value> {
        let adjusted = self.adjusted(value)?;
        let is_same = |again: Value| again == adjusted;
        let again = || self.adjusted(adjusted.clone());
        invariant!(PRECISE_1, again().is_ok_and(is_same), "{adjusted:?} of {self}");
        Ok(adjusted)
    }

    fn adjusted(self, value: Value) -> Result<Value> {
        Ok(match value {
            Value::Time(micros) => Value::Time(self.rounded(micros).unwrap_or(micros)),
            Value::Timestamp(micros) => Value::Timestamp(self.rounded_moment(micros)?),
            Value::TimestampTz(micros) => Value::TimestampTz(self.rounded_moment(micros)?),
            Value::Interval(interval) => Value::Interval(self.fitted(interval)?),
            other => other,
        })
    }

    /// Rounds half away from zero.
    fn rounded(self, micros: i64) -> Option<i64> {
        rounded_to(micros, self.digits().unwrap_or(PreciseType::MAX_DIGITS))
    }

    fn rounded_moment(self, micros: i64) -> Result<i64> {
        if self.digits().is_none() || !is_timestamp(micros) {
            return Ok(micros);
        }
        let away = micros.checked_sub(EPOCH).and_then(|micros| self.rounded(micros));
        let rounded = away.and_then(|micros| micros.checked_add(EPOCH));
        rounded
            .filter(|micros| is_timestamp(*micros))
            .ok_or_else(|| SqlError::new(SqlState::DatetimeFieldOverflow, "timestamp out of range"))
    }

    fn fitted(self, interval: Interval) -> Result<Interval> {
        let micros = match self.fields().last_unit() {
            IntervalUnit::Months(count) => {
                let months = interval.months / count * count;
                return Ok(Interval { months, ..Interval::default() });
            }
            IntervalUnit::Days(_) => 0,
            IntervalUnit::Micros(SECOND) => {
                self.rounded(interval.micros).ok_or_else(interval_out_of_range)?
            }
            IntervalUnit::Micros(count) => interval.micros / count * count,
        };
        Ok(Interval { micros, ..interval })
    }
}

/// Rounds microseconds to digits after the point of a second, half away from zero.
pub(crate) fn rounded_to(micros: i64, digits: u8) -> Option<i64> {
    let step = 10_i64.pow(u32::from(PreciseType::MAX_DIGITS.saturating_sub(digits)));
    let half = if micros < 0 { -(step / 2) } else { step / 2 };
    Some(micros.checked_add(half)? / step * step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{DataType, IntervalFields, TimeKind};

    #[test]
    fn adjusted_value_stays_as_it_is() {
        let times = [0, 1, 499_999, 500_000, -500_000, -500_001, EPOCH - 500_000, 86_399_999_999];
        for kind in [TimeKind::Timestamp, TimeKind::TimestampTz] {
            for digits in 0..=PreciseType::MAX_DIGITS {
                let precise = PreciseType::new(kind, digits);
                for micros in times {
                    let once = precise.adjust(Value::Timestamp(micros)).unwrap();
                    assert_eq!(precise.adjust(once.clone()).unwrap(), once, "{precise}: {micros}");
                }
            }
        }
        let interval = Interval { months: 14, days: -3, micros: 3_723_987_654 };
        for fields in IntervalFields::ALL {
            for digits in [None, Some(0), Some(2)] {
                let DataType::Precise(precise) = PreciseType::interval(fields, digits) else {
                    continue;
                };
                let once = precise.adjust(Value::Interval(interval)).unwrap();
                assert_eq!(precise.adjust(once.clone()).unwrap(), once, "{precise}");
            }
        }
    }
}
