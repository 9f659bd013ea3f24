//! The settings of a session that the text forms of values depend on: TimeZone, DateStyle,
//! IntervalStyle, `extra_float_digits` and `bytea_output`.

mod abbreviations;
mod zone;

pub use zone::{SessionZone, zones_at};

/// How dates and timestamps are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateStyle {
    /// `2004-10-19 10:23:54+02`
    Iso,
    /// `10/19/2004 10:23:54 CEST`
    Sql,
    /// `Tue Oct 19 10:23:54 2004 CEST`
    Postgres,
    /// `19.10.2004 10:23:54 CEST`
    German,
}

/// The order of the numbers of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    /// Month, day, year.
    Mdy,
    /// Day, month, year.
    Dmy,
    /// Year, month, day.
    Ymd,
}

/// How intervals are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalStyle {
    /// `1 year 2 mons 3 days 04:05:06`
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`
    Verbose,
    /// `+1-2 +3 +4:05:06`
    SqlStandard,
    /// `P1Y2M3DT4H5M6S`
    Iso8601,
}

/// How BYTEA is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteaOutput {
    /// `\x5c41`
    Hex,
    /// `\\A`
    Escape,
}

/// What the text forms of values depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextSettings {
    /// TimeZone
    pub zone: SessionZone,
    /// The first part of DateStyle
    pub dates: DateStyle,
    /// The second part of DateStyle
    pub order: DateOrder,
    /// IntervalStyle
    pub intervals: IntervalStyle,
    /// `extra_float_digits`: more than 0 for the shortest digits that read back, otherwise the
    /// difference to 15 digits, of REAL to 6.
    pub float_digits: i8,
    /// `bytea_output`
    pub bytea: ByteaOutput,
}

impl TextSettings {
    /// The settings of a new session. Expressions of indexes and generated columns always have
    /// these.
    pub const DEFAULT: TextSettings = TextSettings {
        zone: SessionZone::Utc,
        dates: DateStyle::Iso,
        order: DateOrder::Mdy,
        intervals: IntervalStyle::Postgres,
        float_digits: 1,
        bytea: ByteaOutput::Hex,
    };

    /// The names of the settings, in lower case.
    pub const NAMES: [&str; 5] =
        ["timezone", "datestyle", "intervalstyle", "extra_float_digits", "bytea_output"];

    /// Returns the settings with another value of the one of that name, as SHOW writes it. Any
    /// other name or value changes nothing.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> TextSettings {
        match &name.to_ascii_lowercase()[..] {
            "timezone" => self.zone = SessionZone::read(value).map_or(self.zone, |it| it.0),
            "datestyle" => {
                for word in value.split(',').map(|word| word.trim().to_ascii_lowercase()) {
                    match &word[..] {
                        "iso" => self.dates = DateStyle::Iso,
                        "sql" => self.dates = DateStyle::Sql,
                        "postgres" => self.dates = DateStyle::Postgres,
                        "german" => self.dates = DateStyle::German,
                        "mdy" => self.order = DateOrder::Mdy,
                        "dmy" => self.order = DateOrder::Dmy,
                        "ymd" => self.order = DateOrder::Ymd,
                        _ => {}
                    }
                }
            }
            "intervalstyle" => {
                self.intervals = match value {
                    "postgres_verbose" => IntervalStyle::Verbose,
                    "sql_standard" => IntervalStyle::SqlStandard,
                    "iso_8601" => IntervalStyle::Iso8601,
                    _ => IntervalStyle::Postgres,
                }
            }
            "extra_float_digits" => {
                self.float_digits = value.trim().parse().unwrap_or(self.float_digits);
            }
            "bytea_output" => {
                self.bytea = if value == "escape" { ByteaOutput::Escape } else { ByteaOutput::Hex };
            }
            _ => {}
        }
        self
    }
}

impl Default for TextSettings {
    fn default() -> TextSettings {
        TextSettings::DEFAULT
    }
}
