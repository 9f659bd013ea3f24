//! Values of PostgreSQL's settings: which are supported.

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
    /// PostgreSQL does not take it either.
    Invalid,
}

/// Checks `client_encoding`: texts go in and out in UTF-8.
pub(crate) fn encoding(value: &str) -> Is {
    let name: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    match &name[..] {
        "utf8" | "unicode" => Is::Supported(Some("UTF8".to_owned())),
        "sqlascii" => Is::Another,
        name if ENCODINGS.contains(&name) || MORE_ENCODINGS.contains(&name) => Is::Another,
        _ => Is::Invalid,
    }
}

/// Checks `DateStyle`: dates are shown in ISO form. The order of day and month only matters for
/// texts that are not read.
pub(crate) fn date_style(value: &str) -> Is {
    let mut order = "MDY";
    for word in value.split(',').map(str::trim) {
        match word {
            "iso" | "default" => {}
            "mdy" | "us" | "noneuropean" | "noneuro" => order = "MDY",
            "dmy" | "european" | "euro" => order = "DMY",
            "ymd" => order = "YMD",
            "sql" | "postgres" | "german" => return Is::Another,
            _ => return Is::Invalid,
        }
    }
    Is::Supported(Some(format!("ISO, {order}")))
}

/// Checks `extra_float_digits`: numbers are shown with the shortest digits that read back.
pub(crate) fn float_digits(value: &str) -> Is {
    match value.trim().parse::<i32>() {
        Ok(number @ 1..=3) => Is::Supported(Some(number.to_string())),
        Ok(-15..=0) => Is::Another,
        _ => Is::Invalid,
    }
}

/// Checks `TimeZone`: time stamps are shown in UTC.
pub(crate) fn time_zone(value: &str) -> Is {
    match value.trim() {
        "utc" | "etc/utc" | "zulu" | "universal" | "default" | "local" | "0" | "+00" | "+00:00" => {
            Is::Supported(Some("UTC".to_owned()))
        }
        "gmt" | "etc/gmt" => Is::Supported(Some("GMT".to_owned())),
        name if jiff::tz::TimeZone::get(name).is_ok() || name.parse::<f64>().is_ok() => Is::Another,
        _ => Is::Invalid,
    }
}
