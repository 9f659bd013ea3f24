//! Intervals as text, in the style of IntervalStyle.

use std::fmt::Write;

use crate::types::Interval;
use crate::types::datetime::SECOND;
use crate::types::text_settings::{IntervalStyle, TextSettings};

/// The fields of an interval, those of the time with one sign.
struct IntervalParts {
    years: i32,
    months: i32,
    days: i32,
    hours: i64,
    minutes: i64,
    /// Seconds and their fraction in microseconds.
    micros: i64,
}

impl IntervalParts {
    fn of(interval: Interval) -> IntervalParts {
        let seconds = interval.micros / SECOND;
        IntervalParts {
            years: interval.months / 12,
            months: interval.months % 12,
            days: interval.days,
            hours: seconds / 3600,
            minutes: seconds / 60 % 60,
            micros: interval.micros % (60 * SECOND),
        }
    }
}

/// Appends seconds without their sign, filled up to a width.
fn write_seconds(out: &mut String, micros: i64, width: usize) {
    let micros = micros.unsigned_abs();
    let (seconds, fraction) = (micros / SECOND as u64, micros % SECOND as u64);
    // Writing to a String does not fail.
    let _ = write!(out, "{seconds:0width$}");
    if fraction != 0 {
        let digits = format!("{fraction:06}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
}

/// Appends an interval as text.
pub fn format_interval(out: &mut String, interval: Interval, settings: &TextSettings) {
    match settings.intervals {
        IntervalStyle::Postgres => write_postgres(out, interval),
        IntervalStyle::Verbose => write_verbose(out, &IntervalParts::of(interval)),
        IntervalStyle::SqlStandard => write_standard(out, interval),
        IntervalStyle::Iso8601 => write_iso(out, &IntervalParts::of(interval)),
    }
}

fn write_postgres(out: &mut String, interval: Interval) {
    let (mut is_empty, mut is_before) = (true, false);
    let fields =
        [(interval.months / 12, "year"), (interval.months % 12, "mon"), (interval.days, "day")];
    for (number, name) in fields {
        if number == 0 {
            continue;
        }
        let blank = if is_empty { "" } else { " " };
        let sign = if is_before && number > 0 { "+" } else { "" };
        let plural = if number == 1 { "" } else { "s" };
        let _ = write!(out, "{blank}{sign}{number} {name}{plural}");
        (is_empty, is_before) = (false, number < 0);
    }
    if !is_empty && interval.micros == 0 {
        return;
    }
    let blank = if is_empty { "" } else { " " };
    let sign = match interval.micros < 0 {
        true => "-",
        false if is_before => "+",
        false => "",
    };
    let IntervalParts { hours, minutes, micros, .. } = IntervalParts::of(interval);
    let _ = write!(out, "{blank}{sign}{:02}:{:02}:", hours.unsigned_abs(), minutes.unsigned_abs());
    write_seconds(out, micros, 2);
}

/// Writes the words of each field; the sign of the first is `ago`, and turns the others over.
fn write_verbose(out: &mut String, fields: &IntervalParts) {
    let (mut is_empty, mut is_before) = (true, false);
    out.push('@');
    let units = [
        (fields.years.into(), "year"),
        (fields.months.into(), "mon"),
        (fields.days.into(), "day"),
        (fields.hours, "hour"),
        (fields.minutes, "min"),
    ];
    for (number, name) in units {
        if number == 0 {
            continue;
        }
        if is_empty {
            (is_empty, is_before) = (false, number < 0);
        }
        let number = if is_before { -number } else { number };
        let plural = if number == 1 { "" } else { "s" };
        let _ = write!(out, " {number} {name}{plural}");
    }
    if fields.micros != 0 {
        if is_empty {
            (is_empty, is_before) = (false, fields.micros < 0);
        }
        out.push_str(if (fields.micros < 0) == is_before { " " } else { " -" });
        write_seconds(out, fields.micros, 1);
        let is_one = fields.micros.unsigned_abs() == SECOND as u64;
        out.push_str(if is_one { " sec" } else { " secs" });
    }
    out.push_str(if is_empty { " 0" } else { "" });
    out.push_str(if is_before { " ago" } else { "" });
}

fn write_standard(out: &mut String, interval: Interval) {
    let IntervalParts { years, months, days, hours, minutes, micros } = IntervalParts::of(interval);
    let signs = [
        i64::from(interval.months).signum(),
        i64::from(interval.days).signum(),
        interval.micros.signum(),
    ];
    let (has_negative, has_positive) = (signs.contains(&-1), signs.contains(&1));
    let has_months = interval.months != 0;
    let has_time = interval.days != 0 || interval.micros != 0;
    let (years, months) = (years.unsigned_abs(), months.unsigned_abs());
    let (days_shown, hours, minutes) =
        (days.unsigned_abs(), hours.unsigned_abs(), minutes.unsigned_abs());
    if !has_negative && !has_positive {
        return out.push('0');
    }
    if has_negative && has_positive || has_months && has_time {
        let sign = |is: i64| if is < 0 { '-' } else { '+' };
        let [of_months, of_days, of_time] = signs.map(sign);
        let _ = write!(
            out,
            "{of_months}{years}-{months} {of_days}{days_shown} {of_time}{hours}:{minutes:02}:"
        );
        return write_seconds(out, micros, 2);
    }
    out.push_str(if has_negative { "-" } else { "" });
    if has_months {
        let _ = write!(out, "{years}-{months}");
        return;
    }
    if days != 0 {
        let _ = write!(out, "{days_shown} ");
    }
    let _ = write!(out, "{hours}:{minutes:02}:");
    write_seconds(out, micros, 2);
}

fn write_iso(out: &mut String, fields: &IntervalParts) {
    let start = out.len();
    out.push('P');
    let dates = [(fields.years, 'Y'), (fields.months, 'M'), (fields.days, 'D')];
    for (number, unit) in dates.into_iter().filter(|(number, _)| *number != 0) {
        let _ = write!(out, "{number}{unit}");
    }
    let has_time = fields.hours != 0 || fields.minutes != 0 || fields.micros != 0;
    if has_time {
        out.push('T');
    }
    let times = [(fields.hours, 'H'), (fields.minutes, 'M')];
    for (number, unit) in times.into_iter().filter(|(number, _)| *number != 0) {
        let _ = write!(out, "{number}{unit}");
    }
    if fields.micros != 0 {
        out.push_str(if fields.micros < 0 { "-" } else { "" });
        write_seconds(out, fields.micros, 1);
        out.push('S');
    }
    if out.len() == start + 1 {
        out.push_str("T0S");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_style_has_a_form_for_every_sign() {
        use IntervalStyle::{Iso8601, Postgres, SqlStandard, Verbose};
        let of = |months, days, micros| Interval { months, days, micros };
        let time = 4 * 3600 * SECOND + 5 * 60 * SECOND + 6 * SECOND;
        for (interval, texts) in [
            (
                of(-14, 3, -time),
                [
                    "-1 years -2 mons +3 days -04:05:06",
                    "@ 1 year 2 mons -3 days 4 hours 5 mins 6 secs ago",
                    "-1-2 +3 -4:05:06",
                    "P-1Y-2M3DT-4H-5M-6S",
                ],
            ),
            (of(0, 0, 0), ["00:00:00", "@ 0", "0", "PT0S"]),
            (
                of(14, 3, -SECOND),
                [
                    "1 year 2 mons 3 days -00:00:01",
                    "@ 1 year 2 mons 3 days -1 sec",
                    "+1-2 +3 -0:00:01",
                    "P1Y2M3DT-1S",
                ],
            ),
            (of(0, -1, 0), ["-1 days", "@ 1 day ago", "-1 0:00:00", "P-1D"]),
        ] {
            let styles = [Postgres, Verbose, SqlStandard, Iso8601];
            for (intervals, expected) in styles.into_iter().zip(texts) {
                let settings = TextSettings { intervals, ..TextSettings::DEFAULT };
                let mut text = String::new();
                format_interval(&mut text, interval, &settings);
                assert_eq!(text, expected, "{interval:?}");
            }
        }
    }
}
