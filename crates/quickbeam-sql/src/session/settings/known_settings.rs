//! All settings, and PostgreSQL's settings that only tune its planner, its memory and its reports.
//! These take every valid value and have no effect.

use std::sync::LazyLock;

use super::setting_table::{Kind, SETTINGS, Setting, Unit};

/// The settings that tune PostgreSQL, in the order of their names.
static TUNING: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let text: &'static str = include_str!("tuning.tsv");
    text.lines().filter_map(setting_of).collect()
});

/// Returns the setting of that name, in any case.
pub(crate) fn setting(name: &str) -> Option<&'static Setting> {
    let is_named = |setting: &&Setting| setting.name.eq_ignore_ascii_case(name);
    SETTINGS.iter().find(is_named).or_else(|| TUNING.iter().find(is_named))
}

/// Returns all settings, in the order of SHOW ALL.
pub(crate) fn settings() -> Vec<&'static Setting> {
    let mut all: Vec<&'static Setting> = SETTINGS.iter().chain(TUNING.iter()).collect();
    all.sort_by_key(|setting| setting.name.to_lowercase());
    all
}

/// Returns the setting of a line.
fn setting_of(line: &'static str) -> Option<Setting> {
    let fields: Vec<&'static str> = line.split('\t').collect();
    let [name, context, kind, default, unit, least, most, description] = fields[..] else {
        return None;
    };
    let unit = match unit {
        "ms" => Unit::Millisecond,
        "kB" => Unit::Kilobyte,
        "8kB" => Unit::Block,
        _ => Unit::One,
    };
    let mut default = default;
    let kind = match kind {
        "bool" => Kind::Boolean,
        "int" => {
            default = Box::leak(unit.format(default.parse().ok()?).into_boxed_str());
            Kind::Integer(least.parse().ok()?, most.parse().ok()?, unit)
        }
        "real" => Kind::Real(least.parse().ok()?, most.parse().ok()?),
        _ => Kind::Word(Box::leak(least.split(' ').collect())),
    };
    let is_of_superusers = context == "superuser";
    Some(Setting { name, default, kind, description, is_of_superusers })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_setting_with_a_valid_default() {
        assert_eq!(TUNING.len(), include_str!("tuning.tsv").lines().count());
        for setting in TUNING.iter() {
            assert!(setting.checked(setting.default, "").is_ok(), "{}", setting.name);
        }
    }
}
