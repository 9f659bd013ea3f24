//! CREATE TABLE of `sqlite3` in PostgreSQL's types.
//!
//! SQLite's types are hints: its integers have 64 bits, its REAL is a double, a column may have no
//! type, and a type's name is free. A column without a known type becomes TEXT, which accepts every
//! value. Options without a counterpart (AUTOINCREMENT aside) are removed.

use super::words::{comment, literal};

/// A translated table definition.
pub struct TableDefinition {
    pub text: String,
    /// The names of the table and of its AUTOINCREMENT column.
    pub identity: Option<(String, String)>,
}

/// Words that end the type of a column.
const AFTER_TYPE: [&str; 11] = [
    "constraint",
    "primary",
    "not",
    "null",
    "unique",
    "check",
    "default",
    "collate",
    "references",
    "generated",
    "as",
];
/// Words that begin a constraint of the table.
const CONSTRAINTS: [&str; 5] = ["constraint", "primary", "unique", "check", "foreign"];
/// Types that keep their names. They accept what SQLite writes for them.
const KEPT: [&str; 11] = [
    "numeric",
    "decimal",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
    "json",
    "jsonb",
    "varchar",
    "interval",
];

/// Translates CREATE TABLE.
pub fn translate(text: &str) -> TableDefinition {
    let tokens: Vec<&str> = tokens(text).collect();
    let Some(open) = tokens.iter().position(|token| *token == "(") else {
        return TableDefinition { text: text.to_owned(), identity: None };
    };
    let close = tokens.iter().rposition(|token| *token == ")").unwrap_or(tokens.len());
    let name = tokens[..open].iter().rev().find(|token| !is_blank(token));
    let (mut out, mut identity) = (joined(&tokens[..=open]), None);
    let items = split(&tokens[(open + 1).min(close)..close]);
    for (number, item) in items.iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        let (item, is_identity) = item_text(item);
        if is_identity && identity.is_none() {
            let column = items[number].iter().find(|token| !is_blank(token));
            identity = name.zip(column).map(|(table, column)| (plain(table), plain(column)));
        }
        out.push_str(comma);
        out.push_str(&item);
    }
    // WITHOUT ROWID and STRICT follow the last parenthesis.
    out.push(')');
    TableDefinition { text: out, identity }
}

/// Removes COLLATE with its name, from an index or a view.
pub fn without_collations(text: &str) -> String {
    let tokens: Vec<&str> = tokens(text).collect();
    without_options(&tokens)
}

/// Returns a name in double quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Splits a text into words, quoted texts, comments, runs of blanks and single characters.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        let length = match rest.chars().next()? {
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment(rest),
            quote @ ('\'' | '"' | '`') => literal(rest, quote),
            '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
            c if is_word(c) => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
            c if c.is_whitespace() => rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        at += length;
        Some(&rest[..length])
    })
}

fn is_blank(token: &str) -> bool {
    token.trim_start().is_empty() || token.starts_with("--") || token.starts_with("/*")
}

/// Returns a name without its quotes.
fn plain(token: &str) -> String {
    match token.chars().next() {
        Some(quote @ ('"' | '`' | '\'')) => {
            let inner = &token[1..token.len() - 1];
            inner.replace(&format!("{quote}{quote}"), &quote.to_string())
        }
        Some('[') => token.trim_matches(['[', ']']).to_owned(),
        _ => token.to_owned(),
    }
}

/// Returns the tokens as one text, with PostgreSQL's quotes around names in SQLite's other quotes.
fn joined(tokens: &[&str]) -> String {
    let ours = |token: &&str| match token.starts_with(['`', '[']) {
        true => quoted(&plain(token)),
        false => (*token).to_owned(),
    };
    tokens.iter().map(ours).collect()
}

/// Splits the tokens between the parentheses of the table at the commas outside inner ones.
fn split<'s, 't>(tokens: &'s [&'t str]) -> Vec<&'s [&'t str]> {
    let mut depth = 0_i32;
    let is_comma = |token: &&str| {
        depth += match *token {
            "(" => 1,
            ")" => -1,
            _ => 0,
        };
        *token == "," && depth == 0
    };
    tokens.split(is_comma).collect()
}

/// Translates a column or a constraint. Returns true with a column that counts by itself.
fn item_text(tokens: &[&str]) -> (String, bool) {
    let start = tokens.iter().position(|token| !is_blank(token)).unwrap_or(0);
    let Some(first) = tokens.get(start) else { return (String::new(), false) };
    if CONSTRAINTS.iter().any(|word| first.eq_ignore_ascii_case(word)) {
        return (without_options(tokens), false);
    }
    let rest = &tokens[start + 1..];
    let ends = |token: &&str| AFTER_TYPE.iter().any(|word| token.eq_ignore_ascii_case(word));
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    let type_end = rest[..end].iter().rposition(|token| !is_blank(token)).map_or(0, |at| at + 1);
    let is_identity = rest[end..].iter().any(|t| t.eq_ignore_ascii_case("autoincrement"));
    let name = joined(&[first]);
    let data_type = column_type(rest[..type_end].concat().trim());
    let identity = if is_identity { " GENERATED BY DEFAULT AS IDENTITY" } else { "" };
    let head = tokens[..start].concat();
    let options = without_options(&rest[type_end..]);
    (format!("{head}{name} {data_type}{identity}{options}"), is_identity)
}

/// Returns the counterpart of a type by SQLite's rules of affinity.
fn column_type(declared: &str) -> String {
    let small = declared.to_lowercase();
    let word = small.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if KEPT.contains(&word) {
        return declared.to_owned();
    }
    let has = |part: &str| small.contains(part);
    let ours = match word {
        "datetime" => "TIMESTAMP",
        // SQLite writes 0 and 1.
        "bool" | "boolean" => "SMALLINT",
        _ if has("int") => "BIGINT",
        _ if has("char") || has("clob") || has("text") => "TEXT",
        _ if has("blob") => "BYTEA",
        _ if has("real") || has("floa") || has("doub") => "DOUBLE PRECISION",
        _ => "TEXT",
    };
    ours.to_owned()
}

/// Returns the tokens without COLLATE, ON CONFLICT and AUTOINCREMENT, and with PostgreSQL's current
/// time in place of `datetime('now')`.
fn without_options(tokens: &[&str]) -> String {
    let words: Vec<usize> = (0..tokens.len()).filter(|at| !is_blank(tokens[*at])).collect();
    let word = |number: usize| words.get(number).map_or("", |at| tokens[*at]);
    let is = |number: usize, expected: &str| word(number).eq_ignore_ascii_case(expected);
    let (mut out, mut number, mut written) = (String::new(), 0, 0);
    while number < words.len() {
        let (removed, ours) = if is(number, "collate") {
            (2, "")
        } else if is(number, "on") && is(number + 1, "conflict") {
            (3, "")
        } else if is(number, "autoincrement") {
            (1, "")
        } else if is(number, "datetime") && is(number + 1, "(") && is(number + 2, "'now'") {
            (4, "LOCALTIMESTAMP")
        } else if is(number, "date") && is(number + 1, "(") && is(number + 2, "'now'") {
            (4, "CURRENT_DATE")
        } else {
            (0, "")
        };
        if removed > 0 {
            out.push_str(&joined(&tokens[written..words[number]]));
            out.push_str(ours);
            written = words.get(number + removed - 1).map_or(tokens.len(), |at| at + 1);
        }
        number += removed.max(1);
    }
    out + &joined(&tokens[written..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_sqlite3_are_translated() {
        let cases = [
            (
                "CREATE TABLE t (\"blob\" BLOB, r REAL, b bool, d datetime DEFAULT current_timestamp)",
                "CREATE TABLE t (\"blob\" BYTEA, r DOUBLE PRECISION, b SMALLINT, d TIMESTAMP \
                 DEFAULT current_timestamp)",
            ),
            ("CREATE TABLE t(a,b NOT NULL)", "CREATE TABLE t(a TEXT,b TEXT NOT NULL)"),
            (
                "CREATE TABLE t(k text COLLATE nocase PRIMARY KEY ON CONFLICT REPLACE) WITHOUT ROWID",
                "CREATE TABLE t(k TEXT  PRIMARY KEY )",
            ),
            (
                "CREATE TABLE [a b]([c d] NVARCHAR(10), x numeric(5, 2), PRIMARY KEY([c d], x)) strict",
                "CREATE TABLE \"a b\"(\"c d\" TEXT, x numeric(5, 2), PRIMARY KEY(\"c d\", x))",
            ),
            (
                "CREATE TABLE t(a UNSIGNED BIG INT CHECK (a > 0), at TEXT DEFAULT (datetime('now')))",
                "CREATE TABLE t(a BIGINT CHECK (a > 0), at TEXT DEFAULT (LOCALTIMESTAMP))",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(translate(text).text, expected);
        }
    }

    #[test]
    fn column_that_counts_by_itself_is_named() {
        let table = translate("CREATE TABLE \"o d\"(n text, id INTEGER PRIMARY KEY AUTOINCREMENT)");
        assert_eq!(table.identity, Some(("o d".to_owned(), "id".to_owned())));
        assert_eq!(translate("CREATE TABLE t(id INTEGER PRIMARY KEY)").identity, None);
    }
}
