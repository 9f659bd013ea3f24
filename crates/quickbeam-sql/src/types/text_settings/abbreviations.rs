//! Abbreviations of time zones, `abbreviations.tsv`: those of PostgreSQL's default set.
//!
//! An abbreviation is an offset from UTC in minutes, or a zone of the IANA database where its
//! offset was another one in earlier years.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Meaning of an abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneAbbreviation {
    /// Seconds east of Greenwich.
    Offset(i32),
    /// The zone whose rules have the abbreviation.
    Zone(&'static str),
}

static ABBREVIATIONS: LazyLock<HashMap<&'static str, ZoneAbbreviation>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let (name, meaning) = line.split_once('\t')?;
        let offset = meaning.parse::<i32>().ok().map(|minutes| minutes * 60);
        Some((name, offset.map_or(ZoneAbbreviation::Zone(meaning), ZoneAbbreviation::Offset)))
    };
    include_str!("abbreviations.tsv").lines().filter_map(row).collect()
});

/// Returns the meaning of an abbreviation in lower case.
#[must_use]
pub fn zone_abbreviation(word: &str) -> Option<ZoneAbbreviation> {
    ABBREVIATIONS.get(word).copied()
}
