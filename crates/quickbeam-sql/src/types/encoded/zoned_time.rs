//! TIME WITH TIME ZONE.
//!
//! The bytes are the time in UTC in microseconds, which may lie in the day before or after, and the
//! seconds west of Greenwich. Both are big-endian with the sign bit turned over.

use super::EncodedKind;
use crate::error::{Result, SqlError, SqlState};
use crate::types::datetime::parse_timetz;
use crate::types::output::{OffsetMinutes, format_time, write_offset};
use crate::types::text_settings::TextSettings;
use crate::types::{DAY, SECOND, Value};

/// A time of day with its distance from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonedTime {
    /// Microseconds since midnight, local time.
    pub micros: i64,
    /// Seconds east of Greenwich.
    pub east: i32,
}

impl ZonedTime {
    /// Returns the value with these bytes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<ZonedTime> {
        let (utc, rest) = bytes.split_first_chunk::<8>()?;
        let west = i32::from_be_bytes(rest.try_into().ok()?) ^ i32::MIN;
        let east = west.checked_neg()?;
        let utc = i64::from_be_bytes(*utc) ^ i64::MIN;
        let micros = utc.checked_add(i64::from(east) * SECOND)?;
        (0..=DAY).contains(&micros).then_some(ZonedTime { micros, east })
    }

    /// Returns the time as a value.
    #[must_use]
    pub fn value(self) -> Value {
        let utc = self.micros - i64::from(self.east) * SECOND;
        let mut bytes = Vec::with_capacity(12);
        bytes.extend_from_slice(&(utc ^ i64::MIN).to_be_bytes());
        bytes.extend_from_slice(&(-self.east ^ i32::MIN).to_be_bytes());
        Value::encoded(EncodedKind::TimeTz, &bytes)
    }

    /// Returns the time in another zone, `east` seconds east of Greenwich.
    #[must_use]
    pub fn moved_to(self, east: i32) -> ZonedTime {
        let micros = self.micros + (i64::from(east) - i64::from(self.east)) * SECOND;
        ZonedTime { micros: micros.rem_euclid(DAY), east }
    }

    pub(super) fn format(self, out: &mut String) {
        format_time(out, self.micros);
        write_offset(out, self.east, OffsetMinutes::IfAny);
    }
}

/// Returns the time of a moment in UTC, as one with a zone.
#[must_use]
pub fn in_zone(moment: i64, east: i32) -> ZonedTime {
    let local = moment.saturating_add(i64::from(east) * SECOND);
    ZonedTime { micros: local.rem_euclid(DAY), east }
}

/// Reads a time. One without a zone is in that of the settings.
pub(super) fn parse(text: &str, settings: &TextSettings) -> Result<ZonedTime> {
    let (micros, east) = parse_timetz(text, settings)?;
    let east = i32::try_from(east).map_err(|_| {
        let message = format!("time zone displacement out of range: \"{text}\"");
        SqlError::new(SqlState::InvalidTimeZoneDisplacement, message)
    })?;
    Ok(ZonedTime { micros, east })
}
