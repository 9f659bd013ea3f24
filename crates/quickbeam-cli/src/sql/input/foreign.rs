//! Statements of other programs' dumps: `pg_dump` and the `.dump` of `sqlite3`.
//!
//! Above: the shell, with `--lenient`. A statement without a counterpart that changes no rows is
//! skipped. Words and literals with a counterpart are replaced outside quotes and comments.

use super::words::{comment, words};

/// What becomes of a statement of a foreign dump.
#[derive(Debug, PartialEq, Eq)]
pub enum Foreign {
    Execute(String),
    Skip,
}

/// Statements that are skipped, by their first words.
const SKIPPED: [&[&str]; 15] = [
    &["pragma"],
    &["comment", "on"],
    &["grant"],
    &["revoke"],
    &["create", "extension"],
    &["create", "schema"],
    &["create", "function"],
    &["create", "trigger"],
    &["alter", "default", "privileges"],
    &["alter", "schema"],
    &["select", "pg_catalog", "set_config"],
    &["delete", "from", "sqlite_sequence"],
    &["insert", "into", "sqlite_sequence"],
    &["lock", "table"],
    &["vacuum"],
];

/// Words of `sqlite3` and their counterparts; an empty counterpart removes the word.
const REPLACED: [(&str, &str); 6] = [
    ("autoincrement", ""),
    ("blob", "BYTEA"),
    ("datetime", "TIMESTAMP"),
    ("mediumint", "INTEGER"),
    ("tinyint", "SMALLINT"),
    ("strict", ""),
];

/// Translates a statement. `is_sqlite` is set once a PRAGMA shows that `sqlite3` wrote the dump.
pub fn translate(text: &str, is_sqlite: &mut bool) -> Foreign {
    let first: Vec<String> = words(text).take(12).map(|(word, _)| word.to_lowercase()).collect();
    let begins =
        |head: &[&str]| first.iter().map(String::as_str).take(head.len()).eq(head.iter().copied());
    *is_sqlite |= begins(&["pragma"]);
    let is_setting = begins(&["set"])
        && !matches!(first.get(1).map(String::as_str), Some("transaction" | "session" | "local"));
    let changes_owner = begins(&["alter"]) && first.windows(2).any(|pair| pair == ["owner", "to"]);
    if is_setting || changes_owner || SKIPPED.iter().any(|head| begins(head)) {
        return Foreign::Skip;
    }
    let is_table = begins(&["create", "table"]);
    Foreign::Execute(replace(text, *is_sqlite && is_table, *is_sqlite && !is_table))
}

/// Replaces words and literals outside quotes and comments.
fn replace(text: &str, is_sqlite_table: bool, is_sqlite_query: bool) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment(rest),
            '\'' | '"' => literal(rest, first),
            c if is_word(c) => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        at += length;
        let small = word.to_ascii_lowercase();
        if small == "x" && after.starts_with('\'') {
            // X'0102' is the byte string '\x0102'.
            let length = literal(after, '\'');
            out.push_str("'\\x");
            out.push_str(&after[1..length]);
            at += length;
        } else if small == "pg_catalog" && after.starts_with('.') {
            at += 1;
        } else if is_sqlite_query
            && small == "char"
            && let Some((call, ours)) = character(after)
        {
            out.push_str(ours);
            at += call.len();
        } else if is_sqlite_table && let Some(word) = sqlite_word(&small) {
            out.push_str(word);
        } else {
            out.push_str(word);
        }
    }
    out
}

/// Returns the arguments of a call of `char` and the line break that `sqlite3` means by it.
fn character(after: &str) -> Option<(&'static str, &'static str)> {
    let calls = [("(10)", "E'\\n'"), ("(13)", "E'\\r'")];
    calls.into_iter().find(|(call, _)| after.starts_with(call))
}

/// Returns the length of the literal at the start of the text. A doubled quote does not end it.
fn literal(text: &str, quote: char) -> usize {
    let mut at = 1;
    while let Some(end) = text[at..].find(quote) {
        at += end + 1;
        if !text[at..].starts_with(quote) {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// Returns the counterpart of a word in a table's definition. SQLite's integers have 64 bits, and
/// its REAL is a double.
fn sqlite_word(small: &str) -> Option<&'static str> {
    match small {
        "integer" | "int" => Some("BIGINT"),
        "real" => Some("DOUBLE PRECISION"),
        _ => REPLACED.iter().find(|(word, _)| *word == small).map(|(_, ours)| *ours),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_statements_are_skipped_or_translated() {
        let mut is_sqlite = false;
        for text in [
            "SET statement_timeout = 0",
            "SELECT pg_catalog.set_config('search_path', '', false)",
            "ALTER TABLE public.t OWNER TO postgres",
            "-- a comment\nCOMMENT ON TABLE t IS 'x'",
            "PRAGMA foreign_keys=OFF",
            "DELETE FROM sqlite_sequence",
        ] {
            assert_eq!(translate(text, &mut is_sqlite), Foreign::Skip, "{text}");
        }
        assert!(is_sqlite);
        let cases = [
            (
                "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, \"blob\" BLOB, r REAL)",
                "CREATE TABLE t (id BIGINT PRIMARY KEY , \"blob\" BYTEA, r DOUBLE PRECISION)",
            ),
            (
                "INSERT INTO t VALUES(1,X'00ff','X''00')",
                "INSERT INTO t VALUES(1,'\\x00ff','X''00')",
            ),
            ("INSERT INTO t VALUES(char(10),char(65))", "INSERT INTO t VALUES(E'\\n',char(65))"),
            ("SELECT pg_catalog.setval('s', 3, true)", "SELECT setval('s', 3, true)"),
            ("SET TRANSACTION READ ONLY", "SET TRANSACTION READ ONLY"),
            ("INSERT INTO t (int, blob) VALUES (1, 2)", "INSERT INTO t (int, blob) VALUES (1, 2)"),
        ];
        for (text, expected) in cases {
            let found = translate(text, &mut is_sqlite);
            assert_eq!(found, Foreign::Execute(expected.to_owned()), "{text}");
        }
    }
}
