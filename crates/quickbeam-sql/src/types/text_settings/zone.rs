//! Time zones: that of a session, of a text, and of AT TIME ZONE.
//!
//! A zone is a `Copy`: the process keeps the named ones, each once. There are as many as the IANA
//! database has, and a limited number of rules of POSIX.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use jiff::Timestamp as Instant;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use smol_str::SmolStr;

/// Seconds of an hour.
const HOUR: i64 = 3600;

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

/// Rules of POSIX with daylight saving that a process keeps.
const POSIX_RULES: usize = 1000;

/// Bytes of an abbreviation of a fixed zone.
const NAME: usize = 10;

/// A zone with a name, or a rule of POSIX.
#[derive(Debug)]
pub struct NamedZone {
    name: SmolStr,
    zone: TimeZone,
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

/// Abbreviations with a fixed offset from UTC, in minutes.
const ABBREVIATIONS: &[(&str, i32)] = &[
    ("akdt", -480),
    ("akst", -540),
    ("bst", 60),
    ("cdt", -300),
    ("cest", 120),
    ("cet", 60),
    ("cst", -360),
    ("edt", -240),
    ("eest", 180),
    ("eet", 120),
    ("est", -300),
    ("gmt", 0),
    ("hst", -600),
    ("jst", 540),
    ("kst", 540),
    ("mdt", -360),
    ("met", 60),
    ("msk", 180),
    ("mst", -420),
    ("nzdt", 780),
    ("nzst", 720),
    ("pdt", -420),
    ("pst", -480),
    ("ut", 0),
    ("utc", 0),
    ("wet", 0),
    ("z", 0),
    ("zulu", 0),
];

/// Returns the offset of an abbreviation in lower case, in seconds east of Greenwich.
#[must_use]
pub fn zone_abbreviation(word: &str) -> Option<i32> {
    ABBREVIATIONS.iter().find(|(known, _)| *known == word).map(|(_, minutes)| minutes * 60)
}

/// Where a zone comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ZoneSource {
    /// The IANA database.
    Database,
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
    let made: &'static NamedZone = Box::leak(Box::new(NamedZone { name: name.clone(), zone }));
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
        match zone_abbreviation(&text.to_ascii_lowercase()) {
            Some(east) => Some(SessionZone::Fixed(east, FixedName::new(&text.to_uppercase()))),
            None => SessionZone::named(text).map(|(zone, _)| zone),
        }
    }

    /// Returns the offset at a moment, in seconds east of Greenwich.
    #[must_use]
    pub fn offset_at(self, moment: i64) -> i32 {
        match self {
            SessionZone::Utc => 0,
            SessionZone::Fixed(east, _) => east,
            SessionZone::Named(named) => named.zone.to_offset(instant(moment)).seconds(),
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
        match named.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset,
            AmbiguousOffset::Gap { before, .. } => before,
            AmbiguousOffset::Fold { after, .. } => after,
        }
        .seconds()
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
        let zone = TimeZone::posix(&shown).ok()?;
        return Some((SessionZone::Named(kept(shown.clone(), zone, ZoneSource::Rule)?), shown));
    }
    let name = FixedName::new(&name.to_ascii_uppercase());
    Some((SessionZone::Fixed(-west, name), shown))
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
