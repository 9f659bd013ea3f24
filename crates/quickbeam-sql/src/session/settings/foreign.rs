//! Values of PostgreSQL's settings: which are supported.

use super::setting_table::boolean;
use crate::expression::text_search::configuration_named;
use crate::types::SessionZone;

/// The encodings of clients that PostgreSQL knows besides UTF8, as they are looked up.
const ENCODINGS: [&str; 42] = [
    "big5",
    "euccn",
    "eucjis2004",
    "eucjp",
    "euckr",
    "euctw",
    "gb18030",
    "gbk",
    "iso88595",
    "iso88596",
    "iso88597",
    "iso88598",
    "johab",
    "koi8r",
    "koi8",
    "koi8u",
    "latin1",
    "latin2",
    "latin3",
    "latin4",
    "latin5",
    "latin6",
    "latin7",
    "latin8",
    "latin9",
    "latin10",
    "muleinternal",
    "shiftjis2004",
    "sjis",
    "mskanji",
    "shiftjis",
    "windows949",
    "uhc",
    "win",
    "win866",
    "alt",
    "win874",
    "windows1250",
    "windows1251",
    "windows1252",
    "windows1253",
    "windows1254",
];

/// More of them, with the short names of those of Windows.
const MORE_ENCODINGS: [&str; 13] = [
    "windows1255",
    "windows1256",
    "windows1257",
    "windows1258",
    "win1250",
    "win1251",
    "win1252",
    "win1253",
    "win1254",
    "win1255",
    "win1256",
    "win1257",
    "win1258",
];

/// Whether a value is supported.
pub(crate) enum Is {
    /// It is, and is shown so; `None`: as it was given.
    Supported(Option<String>),
    /// PostgreSQL takes it.
    Another,
    /// PostgreSQL does not take it either; the detail of the error.
    Invalid(Option<String>),
}

/// Checks `synchronous_commit`: a Boolean, or a word that asks for a flush.
pub(crate) fn synchronous_commit(value: &str, _: &str) -> Is {
    match (value, boolean(value)) {
        ("local" | "remote_write" | "remote_apply", _) => Is::Supported(None),
        (_, Some(on)) => Is::Supported(Some(if on { "on" } else { "off" }.to_owned())),
        _ => Is::Invalid(None),
    }
}

/// Checks `default_text_search_config`: the name of a configuration.
pub(crate) fn text_search_configuration(value: &str, _: &str) -> Is {
    match configuration_named(value) {
        Some(known) => Is::Supported(Some(format!("pg_catalog.{}", known.name()))),
        None if MORE_CONFIGURATIONS.contains(&value.trim_start_matches("pg_catalog.")) => {
            Is::Another
        }
        None => Is::Invalid(None),
    }
}

/// The configurations of PostgreSQL whose stemmers are not in the program.
const MORE_CONFIGURATIONS: [&str; 12] = [
    "arabic",
    "armenian",
    "basque",
    "catalan",
    "french",
    "hindi",
    "indonesian",
    "irish",
    "lithuanian",
    "nepali",
    "serbian",
    "yiddish",
];

/// Checks `client_encoding`: texts go in and out in UTF-8.
pub(crate) fn encoding(value: &str, _: &str) -> Is {
    let name: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    match &name[..] {
        "utf8" | "unicode" => Is::Supported(Some("UTF8".to_owned())),
        "sqlascii" => Is::Another,
        name if ENCODINGS.contains(&name) || MORE_ENCODINGS.contains(&name) => Is::Another,
        _ => Is::Invalid(None),
    }
}

/// Checks `DateStyle`: a style, and an order of day, month and year. What is not named stays as it
/// is, but GERMAN alone means DMY.
pub(crate) fn date_style(value: &str, current: &str) -> Is {
    let (style_now, order_now) = current.split_once(", ").unwrap_or(("ISO", "MDY"));
    let (mut style, mut order): (Option<&str>, Option<&str>) = (None, None);
    let (mut is_german, mut by_default) = (false, false);
    for word in value.split(',').map(str::trim) {
        let (found, place) = match word {
            "iso" => ("ISO", &mut style),
            "sql" => ("SQL", &mut style),
            "postgres" => ("Postgres", &mut style),
            "german" => {
                is_german = true;
                ("German", &mut style)
            }
            "mdy" | "us" | "noneuropean" | "noneuro" => ("MDY", &mut order),
            "dmy" | "european" | "euro" => ("DMY", &mut order),
            "ymd" => ("YMD", &mut order),
            "default" => {
                by_default = true;
                continue;
            }
            _ => return Is::Invalid(Some(format!("Unrecognized key word: \"{word}\"."))),
        };
        if place.replace(found).is_some_and(|before| before != found) {
            let detail = "Conflicting \"datestyle\" specifications.";
            return Is::Invalid(Some(detail.to_owned()));
        }
    }
    if is_german && order.is_none() {
        order = Some("DMY");
    }
    let style = style.unwrap_or(if by_default { "ISO" } else { style_now });
    let order = order.unwrap_or(if by_default { "MDY" } else { order_now });
    Is::Supported(Some(format!("{style}, {order}")))
}

/// Checks `TimeZone`: a name of the IANA database, hours, or a rule of POSIX.
pub(crate) fn time_zone(value: &str, _: &str) -> Is {
    match SessionZone::read(value) {
        Some((_, name)) => Is::Supported(Some(name.to_string())),
        None if value.trim().parse::<f64>().is_ok() => {
            Is::Invalid(Some("UTC timezone offset is out of range.".to_owned()))
        }
        None => Is::Invalid(None),
    }
}
