//! Statements of other programs' dumps: `pg_dump` and the `.dump` of `sqlite3`.
//!
//! Above: the shell, with `--lenient`. A statement that changes no rows is attempted, and skipped
//! if it has no counterpart. [`super::sqlite_tables`] translates table definitions of `sqlite3`.

use std::collections::HashMap;

use super::sqlite_tables::{self, quoted, without_collations};
use super::words::{comment, literal, words};

/// What becomes of a statement of a foreign dump.
#[derive(Debug, PartialEq, Eq)]
pub enum Foreign {
    Execute(String),
    /// Executed, and skipped if it fails: it changes no rows.
    Attempt(String),
    Skip,
}

/// Statements that are attempted, by their first words.
const ATTEMPTED: [&[&str]; 19] = [
    &["comment", "on"],
    &["grant"],
    &["revoke"],
    &["create", "extension"],
    &["create", "schema"],
    &["create", "function"],
    &["create", "procedure"],
    &["create", "aggregate"],
    &["create", "trigger"],
    &["create", "policy"],
    &["create", "rule"],
    &["create", "materialized", "view"],
    &["refresh", "materialized", "view"],
    &["alter", "default", "privileges"],
    &["alter", "schema"],
    &["select", "pg_catalog", "set_config"],
    &["lock", "table"],
    &["vacuum"],
    &["analyze"],
];

/// Forms of ALTER that are attempted: they change no rows and no constraint.
const ATTEMPTED_ALTERS: [&[&str]; 6] = [
    &["owner", "to"],
    &["owned", "by"],
    &["cluster", "on"],
    &["row", "level", "security"],
    &["attach", "partition"],
    &["replica", "identity"],
];

/// Statements of `sqlite3` that are skipped, by their first words.
const SKIPPED: [&[&str]; 4] = [
    &["pragma"],
    &["delete", "from", "sqlite_sequence"],
    &["insert", "into", "sqlite_schema"],
    &["insert", "into", "sqlite_master"],
];

/// Translates the statements of one dump in order.
#[derive(Default)]
pub struct Translator {
    /// A PRAGMA showed that `sqlite3` wrote the dump.
    is_sqlite: bool,
    /// The body of a trigger of `sqlite3` has not ended.
    is_in_trigger: bool,
    /// The AUTOINCREMENT column of each table that has one.
    identities: HashMap<String, String>,
}

impl Translator {
    /// Translates the next statement.
    pub fn translate(&mut self, text: &str) -> Foreign {
        let first: Vec<String> =
            words(text).take(14).map(|(word, _)| word.to_lowercase()).collect();
        let begins = |head: &[&str]| {
            first.iter().map(String::as_str).take(head.len()).eq(head.iter().copied())
        };
        if self.is_in_trigger {
            self.is_in_trigger = first != ["end"];
            return Foreign::Skip;
        }
        self.is_sqlite |= begins(&["pragma"]);
        if self.is_sqlite && first.first().is_some_and(|word| word == "create") {
            if first.iter().take(3).any(|word| word == "trigger") {
                self.is_in_trigger = true;
                return Foreign::Skip;
            }
            if begins(&["create", "virtual"]) {
                return Foreign::Skip;
            }
        }
        if SKIPPED.iter().any(|head| begins(head)) {
            return Foreign::Skip;
        }
        if self.is_sqlite && begins(&["insert", "into", "sqlite_sequence"]) {
            return self.set_sequence(text);
        }
        let is_setting = begins(&["set"])
            && !matches!(first.get(1).map(String::as_str), Some("transaction" | "session"));
        let has = |form: &&[&str]| first.windows(form.len()).any(|part| part == *form);
        let is_attempted_alter = begins(&["alter"]) && ATTEMPTED_ALTERS.iter().any(has);
        let is_attempted = ATTEMPTED.iter().any(|head| begins(head))
            || begins(&["create", "or"]) && first.get(3).is_some_and(|word| word != "view");
        if is_setting || is_attempted_alter || is_attempted {
            return Foreign::Attempt(text.to_owned());
        }
        Foreign::Execute(self.rewrite(text, &first))
    }

    /// Rewrites a statement that defines or inserts.
    fn rewrite(&mut self, text: &str, first: &[String]) -> String {
        let is_definition = first.first().is_some_and(|word| word == "create");
        let is_table = is_definition && first.iter().take(3).any(|word| word == "table");
        match self.is_sqlite {
            true if is_table => {
                let table = sqlite_tables::translate(text);
                self.identities.extend(table.identity);
                table.text
            }
            true if is_definition => without_collations(text),
            is_sqlite => replace(text, is_sqlite),
        }
    }

    /// Translates the row of `sqlite_sequence` that holds the last number of a table.
    fn set_sequence(&self, text: &str) -> Foreign {
        let Some((_, row)) = text.split_once("VALUES(") else { return Foreign::Skip };
        let Some((table, last)) = row.trim_end().trim_end_matches(')').rsplit_once(',') else {
            return Foreign::Skip;
        };
        let name = table.trim().trim_matches('\'').replace("''", "'");
        let Some(column) = self.identities.get(&name) else { return Foreign::Skip };
        let table = quoted(&name).replace('\'', "''");
        let column = column.replace('\'', "''");
        Foreign::Execute(format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), {last})"
        ))
    }
}

/// Replaces literals and calls outside quotes and comments.
fn replace(text: &str, is_sqlite: bool) -> String {
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
        if word.eq_ignore_ascii_case("x") && after.starts_with('\'') {
            // X'0102' is the byte string '\x0102'.
            let length = literal(after, '\'');
            out.push_str("'\\x");
            out.push_str(&after[1..length]);
            at += length;
        } else if is_sqlite
            && word.eq_ignore_ascii_case("char")
            && let Some((call, ours)) = character(after)
        {
            out.push_str(ours);
            at += call.len();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_without_rows_are_attempted() {
        let mut translator = Translator::default();
        for text in [
            "SET statement_timeout = 0",
            "SELECT pg_catalog.set_config('search_path', '', false)",
            "ALTER TABLE public.t OWNER TO postgres",
            "-- a comment\nCOMMENT ON TABLE t IS 'x'",
            "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1 $$",
            "ALTER SEQUENCE public.s OWNED BY public.t.id",
        ] {
            assert_eq!(translator.translate(text), Foreign::Attempt(text.to_owned()));
        }
        for text in ["CREATE TRIGGER t BEFORE INSERT ON t EXECUTE FUNCTION f()", "GRANT ALL ON t"] {
            assert_eq!(translator.translate(text), Foreign::Attempt(text.to_owned()));
        }
        for text in [
            "SET TRANSACTION READ ONLY",
            "CREATE OR REPLACE VIEW v AS SELECT 1",
            "ALTER TABLE ONLY public.t ADD CONSTRAINT t_pkey PRIMARY KEY (id)",
            "SELECT pg_catalog.setval('s', 3, true)",
        ] {
            assert_eq!(translator.translate(text), Foreign::Execute(text.to_owned()));
        }
    }

    #[test]
    fn statements_of_sqlite3_are_translated() {
        let mut translator = Translator::default();
        for text in ["PRAGMA foreign_keys=OFF", "DELETE FROM sqlite_sequence"] {
            assert_eq!(translator.translate(text), Foreign::Skip, "{text}");
        }
        let cases = [
            (
                "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)",
                "CREATE TABLE t (id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY )",
            ),
            (
                "INSERT INTO t VALUES(1,X'00ff','X''00')",
                "INSERT INTO t VALUES(1,'\\x00ff','X''00')",
            ),
            ("INSERT INTO t VALUES(char(10),char(65))", "INSERT INTO t VALUES(E'\\n',char(65))"),
            ("INSERT INTO t (int, blob) VALUES (1, 2)", "INSERT INTO t (int, blob) VALUES (1, 2)"),
            (
                "INSERT INTO sqlite_sequence VALUES('t',7)",
                "SELECT setval(pg_get_serial_sequence('\"t\"', 'id'), 7)",
            ),
            ("CREATE INDEX i ON t(a COLLATE NOCASE, b)", "CREATE INDEX i ON t(a , b)"),
        ];
        for (text, expected) in cases {
            let found = translator.translate(text);
            assert_eq!(found, Foreign::Execute(expected.to_owned()), "{text}");
        }
        assert_eq!(
            translator.translate("INSERT INTO sqlite_sequence VALUES('u',7)"),
            Foreign::Skip
        );
    }

    #[test]
    fn body_of_a_trigger_of_sqlite3_is_skipped_whole() {
        let mut translator = Translator::default();
        translator.translate("PRAGMA foreign_keys=OFF");
        for text in
            ["CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM u", "DELETE FROM w", "end"]
        {
            assert_eq!(translator.translate(text), Foreign::Skip, "{text}");
        }
        let text = "DELETE FROM w";
        assert_eq!(translator.translate(text), Foreign::Execute(text.to_owned()));
    }
}
