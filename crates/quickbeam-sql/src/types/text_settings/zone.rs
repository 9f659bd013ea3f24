//! Time zones: that of a session, of a text, and of AT TIME ZONE.
//!
//! A zone is a `Copy`: the process keeps the named ones, each once. There are as many as the IANA
//! database has, and a limited number of rules of POSIX.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use jiff::Timestamp as Instant;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use smol_str::SmolStr;

use super::abbreviations::{ZoneAbbreviation, zone_abbreviation};
use crate::error::{Result, SqlError, SqlState};

/// Seconds of an hour.
const HOUR: i64 = 3600;

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

/// Rules of POSIX with daylight saving that a process keeps.
const POSIX_RULES: usize = 1000;

/// Bytes of an abbreviation of a fixed zone.
const NAME: usize = 10;

/// A zone with a name, a rule of POSIX, or an abbreviation that a zone has.
#[derive(Debug)]
pub struct NamedZone {
    name: SmolStr,
    zone: TimeZone,
    /// Of an abbreviation: the moments from which the zone has it, in order, with the offsets in
    /// seconds east of Greenwich.
    uses: Vec<(i64, i32)>,
}

impl NamedZone {
    /// Returns the offset that the abbreviation has at a moment: that of its last use before, or
    /// of its first one. Returns `None` if this is no abbreviation, or one that the zone never had.
    fn offset_of_abbreviation(&self, moment: i64) -> Option<i32> {
        let after = self.uses.partition_point(|(since, _)| *since <= moment);
        self.uses.get(after.saturating_sub(1)).map(|(_, east)| *east)
    }
}

/// Returns the moments from which a zone has an abbreviation, and its offsets there.
fn uses_of(zone: &TimeZone, abbreviation: &str) -> Vec<(i64, i32)> {
    /// Rules without end repeat themselves after the year 2037.
    const LAST: i64 = 2_145_916_800 * SECOND;
    zone.following(Instant::MIN)
        .map(|change| (change.timestamp().as_microsecond(), change))
        .take_while(|(moment, _)| *moment < LAST)
        .filter(|(_, change)| change.abbreviation().eq_ignore_ascii_case(abbreviation))
        .map(|(moment, change)| (moment, change.offset().seconds()))
        .collect()
}

impl PartialEq for NamedZone {
    fn eq(&self, other: &NamedZone) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for NamedZone {}

/// The abbreviation of a zone with one offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedName([u8; NAME]);

impl FixedName {
    fn new(name: &str) -> FixedName {
        let mut bytes = [0; NAME];
        for (place, byte) in bytes.iter_mut().zip(name.bytes()) {
            *place = byte;
        }
        FixedName(bytes)
    }

    fn text(&self) -> SmolStr {
        self.0.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect()
    }
}

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionZone {
    /// UTC
    Utc,
    /// A zone with one offset: seconds east of Greenwich, and its abbreviation.
    Fixed(i32, FixedName),
    /// A zone of the IANA database, or a rule of POSIX.
    Named(&'static NamedZone),
}

/// Where a zone comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ZoneSource {
    /// The IANA database.
    Database,
    /// An abbreviation of a zone there.
    Abbreviation,
    /// A rule of POSIX.
    Rule,
}

/// Returns the zone that the process keeps under a name.
fn kept(name: SmolStr, zone: TimeZone, source: ZoneSource) -> Option<&'static NamedZone> {
    type ZoneMap = HashMap<SmolStr, &'static NamedZone>;
    static KEPT: LazyLock<Mutex<(ZoneMap, usize)>> = LazyLock::new(Mutex::default);
    // A panic leaves the map as it was.
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.0.get(&name) {
        return Some(known);
    }
    if source == ZoneSource::Rule {
        if kept.1 == POSIX_RULES {
            return None;
        }
        kept.1 += 1;
    }
    let uses = match source {
        ZoneSource::Abbreviation => uses_of(&zone, &name),
        ZoneSource::Database | ZoneSource::Rule => Vec::new(),
    };
    let made = NamedZone { name: name.clone(), zone, uses };
    let made: &'static NamedZone = Box::leak(Box::new(made));
    kept.0.insert(name, made);
    Some(made)
}

impl SessionZone {
    /// Reads the value of the setting TimeZone: hours, or a name. Returns the zone and its name.
    #[must_use]
    pub fn read(text: &str) -> Option<(SessionZone, SmolStr)> {
        let text = text.trim();
        match text.parse::<f64>() {
            Ok(hours) if hours.abs() < 168.0 => {
                Some(SessionZone::of_offset((hours * HOUR as f64) as i32))
            }
            Ok(_) => None,
            Err(_) => SessionZone::named(text),
        }
    }

    /// Returns the zone at a distance from UTC, positive to the east, and its name.
    #[must_use]
    pub fn of_offset(east: i32) -> (SessionZone, SmolStr) {
        let (sign, opposite) = if east < 0 { ('-', '+') } else { ('+', '-') };
        let away = east.unsigned_abs();
        let mut digits = format!("{:02}", away / 3600);
        for (part, rest) in [(away / 60 % 60, away % 3600), (away % 60, away % 60)] {
            if rest != 0 {
                digits.push_str(&format!(":{part:02}"));
            }
        }
        let name = FixedName::new(&format!("{sign}{digits}"));
        (SessionZone::Fixed(east, name), format!("<{sign}{digits}>{opposite}{digits}").into())
    }

    /// Returns the zone of the IANA database, or of a rule of POSIX, and its name.
    #[must_use]
    pub fn named(text: &str) -> Option<(SessionZone, SmolStr)> {
        SessionZone::of_database(text).or_else(|| of_posix(text))
    }

    /// Returns the zone of the IANA database of a name in any case, and its name there.
    #[must_use]
    pub fn of_database(text: &str) -> Option<(SessionZone, SmolStr)> {
        let found = TimeZoneDatabase::bundled().get(text).ok()?;
        let name = SmolStr::new(found.iana_name()?);
        if name == "UTC" {
            return Some((SessionZone::Utc, name));
        }
        Some((SessionZone::Named(kept(name.clone(), found, ZoneSource::Database)?), name))
    }

    /// Returns the zone of AT TIME ZONE: an abbreviation, or a name.
    #[must_use]
    pub fn of_text(text: &str) -> Option<SessionZone> {
        let text = text.trim();
        SessionZone::of_abbreviation(&text.to_ascii_lowercase())
            .or_else(|| SessionZone::named(text).map(|(zone, _)| zone))
    }

    /// Returns the zone of an abbreviation in lower case.
    #[must_use]
    pub fn of_abbreviation(word: &str) -> Option<SessionZone> {
        match zone_abbreviation(word)? {
            ZoneAbbreviation::Offset(east) => {
                Some(SessionZone::Fixed(east, FixedName::new(&word.to_uppercase())))
            }
            ZoneAbbreviation::Zone(name) => {
                let zone = TimeZoneDatabase::bundled().get(name).ok()?;
                // Names of the database are not in lower case.
                kept(word.into(), zone, ZoneSource::Abbreviation).map(SessionZone::Named)
            }
        }
    }

    /// Returns the zone of `make_timestamptz`: an offset with a sign, positive to the east, or an
    /// abbreviation or name.
    pub fn of_function(text: &str) -> Result<SessionZone> {
        let invalid = |message: String| SqlError::new(SqlState::InvalidParameterValue, message);
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            let message = format!("invalid input syntax for type numeric time zone: \"{text}\"");
            return Err(invalid(message)
                .with_hint("Numeric time zones must have \"-\" or \"+\" as first character."));
        }
        match signed_distance(text) {
            Some(Some(east)) => Ok(SessionZone::of_offset(east).0),
            Some(None) => Err(invalid(format!("numeric time zone \"{text}\" out of range"))),
            None => SessionZone::of_text(text)
                .ok_or_else(|| invalid(format!("time zone \"{text}\" not recognized"))),
        }
    }

    /// Returns the offset at a moment, in seconds east of Greenwich.
    #[must_use]
    pub fn offset_at(self, moment: i64) -> i32 {
        match self {
            SessionZone::Utc => 0,
            SessionZone::Fixed(east, _) => east,
            SessionZone::Named(named) => named
                .offset_of_abbreviation(moment)
                .unwrap_or_else(|| named.zone.to_offset(instant(moment)).seconds()),
        }
    }

    /// Returns the offset at a local time, in seconds east of Greenwich. A time that a transition
    /// skips has the offset before it, a repeated one that after it.
    #[must_use]
    pub fn offset_of_local(self, local: i64) -> i32 {
        let named = match self {
            SessionZone::Utc => return 0,
            SessionZone::Fixed(east, _) => return east,
            SessionZone::Named(named) => named,
        };
        let civil = Offset::UTC.to_datetime(instant(local));
        let east = match named.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        }
        .seconds();
        let moment = local.saturating_sub(i64::from(east) * SECOND);
        named.offset_of_abbreviation(moment).unwrap_or(east)
    }

    /// Returns the local time of a moment. Infinity stays, and the result may be outside the range
    /// of TIMESTAMP.
    #[must_use]
    pub fn to_local(self, moment: i64) -> Option<i64> {
        match self {
            SessionZone::Utc => Some(moment),
            zone => shifted(moment, zone.offset_at(moment).into()),
        }
    }

    /// Returns the moment of a local time. Infinity stays, and the result may be outside the range
    /// of TIMESTAMP.
    #[must_use]
    pub fn to_moment(self, local: i64) -> Option<i64> {
        match self {
            SessionZone::Utc => Some(local),
            zone => shifted(local, -i64::from(zone.offset_of_local(local))),
        }
    }

    /// Returns the abbreviation at a moment, which may be an offset with a sign; empty if there is
    /// none.
    #[must_use]
    pub fn abbreviation_at(self, moment: i64) -> SmolStr {
        match self {
            SessionZone::Utc => SmolStr::new_static("UTC"),
            SessionZone::Fixed(_, name) => name.text(),
            SessionZone::Named(named) => {
                named.zone.to_offset_info(instant(moment)).abbreviation().into()
            }
        }
    }
}

/// A zone of the IANA database at a moment.
#[derive(Debug)]
pub struct ZoneState {
    /// Its name.
    pub name: SmolStr,
    /// Its abbreviation, which may be an offset with a sign.
    pub abbreviation: SmolStr,
    /// Its offset, in seconds east of Greenwich.
    pub east: i32,
    /// Whether daylight saving time is in effect.
    pub is_summer: bool,
}

/// Returns all zones of the IANA database at a moment.
pub fn zones_at(moment: i64) -> Vec<ZoneState> {
    let database = TimeZoneDatabase::bundled();
    let state = |name: &str| {
        let zone = database.get(name).ok()?;
        let info = zone.to_offset_info(instant(moment));
        Some(ZoneState {
            name: name.into(),
            abbreviation: info.abbreviation().into(),
            east: info.offset().seconds(),
            is_summer: info.dst().is_dst(),
        })
    };
    database.available().filter_map(|name| state(name.as_str())).collect()
}

impl std::fmt::Display for SessionZone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SessionZone::Utc => f.write_str("UTC"),
            SessionZone::Fixed(east, _) => f.write_str(&SessionZone::of_offset(*east).1),
            SessionZone::Named(named) => f.write_str(&named.name),
        }
    }
}

/// Moves a moment by seconds; infinity stays.
fn shifted(moment: i64, seconds: i64) -> Option<i64> {
    match moment {
        i64::MAX | i64::MIN => Some(moment),
        moment => moment.checked_add(seconds * SECOND),
    }
}

/// Returns the moment that the time zone database covers next to one.
fn instant(moment: i64) -> Instant {
    let limit = if moment < 0 { Instant::MIN } else { Instant::MAX };
    Instant::from_microsecond(moment).unwrap_or(limit)
}

/// Reads a rule of POSIX: an abbreviation and its distance from UTC, positive to the west, and the
/// rule of daylight saving.
fn of_posix(text: &str) -> Option<(SessionZone, SmolStr)> {
    let shown = SmolStr::new(text.to_ascii_uppercase());
    let (name, rest) = match text.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?,
        None => {
            let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
            text.split_at(end)
        }
    };
    if name.len() > NAME || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let end = rest.find(|c: char| !matches!(c, '+' | '-' | ':') && !c.is_ascii_digit());
    let (distance, rule) = rest.split_at(end.unwrap_or(rest.len()));
    let west = distance_west(distance)?;
    if !rule.is_empty() {
        // A rule without dates has those of the United States.
        let dates = if rule.contains(',') { "" } else { ",M3.2.0,M11.1.0" };
        let zone = TimeZone::posix(&format!("{shown}{dates}")).ok()?;
        return Some((SessionZone::Named(kept(shown.clone(), zone, ZoneSource::Rule)?), shown));
    }
    let name = FixedName::new(&name.to_ascii_uppercase());
    Some((SessionZone::Fixed(-west, name), shown))
}

/// Reads an offset of hours, minutes and seconds that begins with a sign, positive to the east.
/// Returns `None` for a text in another form, and `Some(None)` if a number is out of range.
fn signed_distance(text: &str) -> Option<Option<i32>> {
    let digits = text.strip_prefix(['+', '-'])?;
    let mut rest = digits;
    let mut number = || {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (own, after) = rest.split_at(end);
        rest = after;
        let has_more = rest.strip_prefix(':').inspect(|after| rest = after).is_some();
        (if own.is_empty() { 0 } else { own.parse().unwrap_or(i32::MAX) }, has_more)
    };
    let (mut hours, mut goes_on) = number();
    let (mut minutes, mut seconds) = (0, 0);
    if goes_on {
        (minutes, goes_on) = number();
        if goes_on {
            (seconds, goes_on) = number();
        }
    } else if digits.len() > 2 {
        (hours, minutes) = (hours / 100, hours % 100);
    }
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Some(None);
    }
    let east = (hours * 60 + minutes) * 60 + seconds;
    let is_whole = rest.is_empty() && !goes_on;
    is_whole.then_some(Some(if text.starts_with('-') { -east } else { east }))
}

/// Reads hours, minutes and seconds with a sign.
fn distance_west(text: &str) -> Option<i32> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut total = 0;
    let mut parts = digits.split(':');
    for (unit, most) in [(3600, 167), (60, 59), (1, 59)] {
        let Some(part) = parts.next() else { break };
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let number = part.parse::<i32>().ok().filter(|it| is_number && *it <= most)?;
        total += number * unit;
    }
    parts.next().is_none().then_some(sign * total)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_read_and_shown_as_in_postgresql() {
        for (text, shown) in [
            ("europe/berlin", Some("Europe/Berlin")),
            ("utc", Some("UTC")),
            ("gmt", Some("GMT")),
            ("2", Some("<+02>-02")),
            ("-3.5", Some("<-03:30>+03:30")),
            ("0", Some("<+00>-00")),
            ("+02:00", Some("+02:00")),
            ("foo+3", Some("FOO+3")),
            ("<+02>-02", Some("<+02>-02")),
            ("EST5EDT,M3.2.0,M11.1.0", Some("EST5EDT,M3.2.0,M11.1.0")),
            ("nowhere", None),
            ("pst", None),
            ("z", None),
            ("", None),
            ("170", None),
        ] {
            let found = SessionZone::read(text).map(|(_, name)| name);
            assert_eq!(found.as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn an_offset_has_the_sign_of_its_form() {
        let east = |text: &str| SessionZone::read(text).unwrap().0.offset_at(0);
        assert_eq!([east("2"), east("+02:00"), east("UTC+3")], [7200, -7200, -10_800]);
    }

    #[test]
    fn a_skipped_or_repeated_time_has_the_offset_of_postgresql() {
        let (zone, _) = SessionZone::read("Europe/Berlin").unwrap();
        let local = |days: i64| (days * 24 + 2) * 3_600_000_000 + 1_800_000_000;
        // 2020-03-29 and 2020-10-25 at 02:30.
        assert_eq!(zone.offset_of_local(local(18_350)), 3600);
        assert_eq!(zone.offset_of_local(local(18_560)), 3600);
        assert_eq!(zone.offset_of_local(local(18_500)), 7200);
    }
}
