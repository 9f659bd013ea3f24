//! Dates, times and timestamps as text, in the style of DateStyle and the zone of TimeZone.

use std::fmt::Write;

use crate::types::ValueRef;
use crate::types::datetime::{DATE_INFINITY, DAY, SECOND, TIMESTAMP_INFINITY, date_of};
use crate::types::text_settings::{DateOrder, DateStyle, TextSettings};

/// Whether a distance from UTC of whole hours is written with minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetMinutes {
    /// `+02`
    IfAny,
    /// `+02:00`
    Always,
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/// Returns whether a moment is `infinity` or `-infinity`.
fn is_infinite(moment: i64) -> bool {
    matches!(moment, TIMESTAMP_INFINITY | i64::MIN)
}

/// Returns the time of day of a local time.
fn time_of(local: i64) -> i64 {
    local.rem_euclid(DAY)
}

/// Appends a date without its era. Returns whether it is before Christ.
fn write_date(out: &mut String, days: i64, settings: &TextSettings) -> bool {
    let (year, month, day) = date_of(days);
    let shown = if year > 0 { year } else { 1 - year };
    let is_day_first = settings.order == DateOrder::Dmy;
    // Writing to a String does not fail.
    let _ = match (settings.dates, is_day_first) {
        (DateStyle::Iso, _) => write!(out, "{shown:04}-{month:02}-{day:02}"),
        (DateStyle::Sql, true) => write!(out, "{day:02}/{month:02}/{shown:04}"),
        (DateStyle::Sql, false) => write!(out, "{month:02}/{day:02}/{shown:04}"),
        (DateStyle::German, _) => write!(out, "{day:02}.{month:02}.{shown:04}"),
        (DateStyle::Postgres, true) => write!(out, "{day:02}-{month:02}-{shown:04}"),
        (DateStyle::Postgres, false) => write!(out, "{month:02}-{day:02}-{shown:04}"),
    };
    year <= 0
}

/// Appends a DATE as text.
pub fn format_date(out: &mut String, days: i32, settings: &TextSettings) {
    match days {
        DATE_INFINITY => out.push_str("infinity"),
        i32::MIN => out.push_str("-infinity"),
        _ => {
            if write_date(out, days.into(), settings) {
                out.push_str(" BC");
            }
        }
    }
}

/// Appends a TIME as text.
pub fn format_time(out: &mut String, micros: i64) {
    let seconds = micros / SECOND;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let _ = write!(out, "{hours:02}:{minutes:02}:{:02}", seconds % 60);
    let fraction = micros % SECOND;
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        out.push('.');
        out.push_str(digits.trim_end_matches('0'));
    }
}

/// Appends a distance from UTC.
pub fn write_offset(out: &mut String, east: i32, minutes: OffsetMinutes) {
    let away = east.unsigned_abs();
    let sign = if east < 0 { '-' } else { '+' };
    let _ = write!(out, "{sign}{:02}", away / 3600);
    if minutes == OffsetMinutes::Always || !away.is_multiple_of(3600) {
        let _ = write!(out, ":{:02}", away / 60 % 60);
    }
    if !away.is_multiple_of(60) {
        let _ = write!(out, ":{:02}", away % 60);
    }
}

/// Appends a finite local time, and the zone of that moment if there is one.
fn write_moment(out: &mut String, local: i64, zoned: Option<i64>, settings: &TextSettings) {
    let days = local.div_euclid(DAY);
    let mut is_before_christ = false;
    if settings.dates == DateStyle::Postgres {
        let (year, month, day) = date_of(days);
        let weekday = DAYS.get((days + 4).rem_euclid(7) as usize).copied().unwrap_or_default();
        let month = MONTHS.get(month as usize - 1).copied().unwrap_or_default();
        let _ = match settings.order {
            DateOrder::Dmy => write!(out, "{weekday} {day:02} {month} "),
            DateOrder::Mdy | DateOrder::Ymd => write!(out, "{weekday} {month} {day:02} "),
        };
        format_time(out, time_of(local));
        is_before_christ |= year <= 0;
        let _ = write!(out, " {:04}", if year > 0 { year } else { 1 - year });
    } else {
        is_before_christ |= write_date(out, days, settings);
        out.push(' ');
        format_time(out, time_of(local));
    }
    if let Some(moment) = zoned {
        write_zone(out, moment, settings);
    }
    if is_before_christ {
        out.push_str(" BC");
    }
}

fn write_zone(out: &mut String, moment: i64, settings: &TextSettings) {
    let zone = settings.zone;
    if settings.dates == DateStyle::Iso {
        return write_offset(out, zone.offset_at(moment), OffsetMinutes::IfAny);
    }
    out.push(' ');
    let name = zone.abbreviation_at(moment);
    if name.is_empty() {
        return write_offset(out, zone.offset_at(moment), OffsetMinutes::IfAny);
    }
    out.push_str(&name);
}

fn write_infinity(out: &mut String, moment: i64) {
    out.push_str(if moment == TIMESTAMP_INFINITY { "infinity" } else { "-infinity" });
}

/// Appends a TIMESTAMP as text.
pub fn format_timestamp(out: &mut String, moment: i64, settings: &TextSettings) {
    if is_infinite(moment) {
        return write_infinity(out, moment);
    }
    write_moment(out, moment, None, settings);
}

/// Appends a TIMESTAMP WITH TIME ZONE as text, in the zone of the settings.
pub fn format_timestamptz(out: &mut String, moment: i64, settings: &TextSettings) {
    if is_infinite(moment) {
        return write_infinity(out, moment);
    }
    // The local time of the first and last moments is beyond the range of TIMESTAMP.
    let east = i64::from(settings.zone.offset_at(moment));
    write_moment(out, moment.saturating_add(east * SECOND), Some(moment), settings);
}

/// Appends a date or timestamp in the form of XML Schema, which JSON has. Returns whether the value
/// is one.
pub fn write_xsd(out: &mut String, value: ValueRef<'_>, settings: &TextSettings) -> bool {
    let iso = TextSettings { dates: DateStyle::Iso, ..*settings };
    let (moment, east) = match value {
        ValueRef::Date(days) => {
            format_date(out, days, &iso);
            return true;
        }
        ValueRef::Timestamp(moment) => (moment, None),
        ValueRef::TimestampTz(moment) => (moment, Some(settings.zone.offset_at(moment))),
        _ => return false,
    };
    if is_infinite(moment) {
        write_infinity(out, moment);
        return true;
    }
    let local = moment.saturating_add(i64::from(east.unwrap_or(0)) * SECOND);
    let is_before_christ = write_date(out, local.div_euclid(DAY), &iso);
    out.push('T');
    format_time(out, time_of(local));
    if let Some(east) = east {
        write_offset(out, east, OffsetMinutes::Always);
    }
    if is_before_christ {
        out.push_str(" BC");
    }
    true
}
