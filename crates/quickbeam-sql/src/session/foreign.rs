//! Settings of PostgreSQL that programs make, and that have one value here.
//!
//! SET of that value is done; SET of another one that PostgreSQL takes is refused (`0A000`), and of
//! what PostgreSQL does not take, too (`22023`). Nothing is accepted without effect but the name of
//! the program, which changes no answer.

use crate::error::{Result, SqlError, SqlState};

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

/// What a value of a setting is here.
enum Is {
    TheOnlyOne,
    /// PostgreSQL takes it.
    Another,
    Invalid,
}

/// Checks the SET of a setting that is not one of Quickbeam's. The value is in small letters.
pub(super) fn check(name: &str, value: &str) -> Result<()> {
    let is = match name {
        "application_name" => Is::TheOnlyOne,
        _ if value == "default" => Is::TheOnlyOne,
        "client_encoding" => encoding(value),
        "search_path" => search_path(value),
        "datestyle" => date_style(value),
        "extra_float_digits" => match value.parse::<i32>() {
            Ok(1..=3) => Is::TheOnlyOne,
            Ok(-15..=0) => Is::Another,
            _ => Is::Invalid,
        },
        _ => {
            let message = format!("unrecognized configuration parameter \"{name}\"");
            return Err(SqlError::new(SqlState::UndefinedObject, message));
        }
    };
    match is {
        Is::TheOnlyOne => Ok(()),
        Is::Another => Err(SqlError::unsupported(format!("{name} \"{value}\""))),
        Is::Invalid => {
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
            Err(SqlError::new(SqlState::InvalidParameterValue, message))
        }
    }
}

/// Texts go in and out in UTF-8.
fn encoding(value: &str) -> Is {
    let name: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    match &name[..] {
        "utf8" | "unicode" => Is::TheOnlyOne,
        "sqlascii" => Is::Another,
        name if ENCODINGS.contains(&name) || MORE_ENCODINGS.contains(&name) => Is::Another,
        _ => Is::Invalid,
    }
}

/// There is the schema `public` only: a path with it finds what there is, wherever it stands.
fn search_path(value: &str) -> Is {
    let mut names = value.split(',').map(|name| name.trim().trim_matches('"'));
    if names.any(|name| name == "public") { Is::TheOnlyOne } else { Is::Another }
}

/// Dates are in ISO form. The order of day and month says how texts are read that are not read here.
fn date_style(value: &str) -> Is {
    let mut is = Is::TheOnlyOne;
    for word in value.split(',').map(str::trim) {
        match word {
            "iso" | "mdy" | "us" | "noneuropean" | "noneuro" | "dmy" | "european" | "euro"
            | "ymd" => {}
            "sql" | "postgres" | "german" => is = Is::Another,
            _ => return Is::Invalid,
        }
    }
    is
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn only_the_value_that_holds_is_accepted() {
        for (name, value, expected) in [
            ("client_encoding", "utf-8", None),
            ("client_encoding", "latin1", Some("0A000")),
            ("client_encoding", "nosuch", Some("22023")),
            ("search_path", "public", None),
            ("search_path", "\"$user\", public", None),
            ("search_path", "nosuch", Some("0A000")),
            ("datestyle", "iso, dmy", None),
            ("datestyle", "german", Some("0A000")),
            ("datestyle", "nosuch", Some("22023")),
            ("extra_float_digits", "3", None),
            ("extra_float_digits", "0", Some("0A000")),
            ("extra_float_digits", "4", Some("22023")),
            ("application_name", "anything", None),
            ("datestyle", "default", None),
            ("nosuch", "1", Some("42704")),
        ] {
            let code = check(name, value).err().map(|error| error.code());
            assert_eq!(code, expected, "{name} = {value}");
        }
    }
}
