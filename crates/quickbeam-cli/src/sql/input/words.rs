//! A keyword scanner, for the few properties of a statement that the shell itself needs.
//!
//! Above: the shell and its commands. The scanner skips quotes, parentheses and comments.

/// Iterates over the words of a text, each with its end position.
pub fn words(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let (mut at, mut depth) = (0, 0_usize);
    std::iter::from_fn(move || {
        loop {
            let rest = &text[at..];
            let first = rest.chars().next()?;
            let length = match first {
                '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
                '/' if rest.starts_with("/*") => comment(rest),
                '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
                c if is_word(c) => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            at += length;
            match first {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                c if is_word(c) && depth == 0 => return Some((&rest[..length], at)),
                _ => {}
            }
        }
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the length of the block comment at the start of the text, nested comments included.
pub fn comment(text: &str) -> usize {
    let (mut at, mut depth) = (2, 1);
    while depth > 0 {
        let rest = &text[at..];
        let Some(next) = rest.find(['*', '/']) else { return text.len() };
        let (step, more) = match &rest.as_bytes()[next..] {
            [b'/', b'*', ..] => (2, 1),
            [b'*', b'/', ..] => (2, -1),
            _ => (1, 0),
        };
        at += next + step;
        depth += more;
    }
    at
}

/// Returns the length of the literal at the start of the text. A doubled quote does not end it.
pub fn literal(text: &str, quote: char) -> usize {
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

/// The outcome of a statement.
pub enum Done {
    /// Its result was written; the number of rows.
    Answered(u64),
    Changed(u64),
}

/// Returns PostgreSQL's command tag of a statement; `None` for a query.
pub fn tag(text: &str, done: &Done) -> Option<String> {
    let mut words = words(text).map(|(word, _)| word.to_uppercase());
    let first = words.next()?;
    let count = match done {
        Done::Answered(count) | Done::Changed(count) => *count,
    };
    Some(match (first.as_str(), done) {
        ("INSERT", _) => format!("INSERT 0 {count}"),
        // Standard output holds the rows, which another program may read.
        ("COPY", _) if copies(text, "to", "stdout") => return None,
        ("UPDATE" | "DELETE" | "COPY", _) => format!("{first} {count}"),
        (_, Done::Answered(_)) => return None,
        ("START", _) => "BEGIN".to_owned(),
        ("END", _) => "COMMIT".to_owned(),
        ("ABORT", _) => "ROLLBACK".to_owned(),
        ("TRUNCATE", _) => "TRUNCATE TABLE".to_owned(),
        ("CREATE" | "DROP" | "ALTER", _) => {
            let kinds = ["TABLE", "INDEX", "VIEW", "SEQUENCE"];
            let kind = words.find(|word| kinds.contains(&word.as_str()));
            kind.map_or(first.clone(), |kind| format!("{first} {kind}"))
        }
        _ => first,
    })
}

/// Finds the FROM or TO in the text after COPY. Returns it with its end position.
pub fn direction(text: &str) -> Option<(&str, usize)> {
    let is_one = |word: &str| word.eq_ignore_ascii_case("from") || word.eq_ignore_ascii_case("to");
    // The first word is the table's name even if it is FROM or TO.
    words(text).find(|(word, end)| is_one(word) && *end > word.len())
}

/// Returns true for COPY … FROM STDIN, also if the rest of the statement is malformed.
pub fn copies_input(text: &str) -> bool {
    copies(text, "from", "stdin")
}

/// Returns true for a COPY with that direction and endpoint.
fn copies(text: &str, direction_word: &str, place: &str) -> bool {
    let Some((first, end)) = words(text).next() else { return false };
    let rest = text[end..].trim_start();
    let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
    is(first, "copy")
        && direction(rest).is_some_and(|(word, end)| {
            let next = words(&rest[end..]).next();
            is(word, direction_word) && next.is_some_and(|(word, _)| is(word, place))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_postgresqls() {
        let cases = [
            ("insert into t values (1)", Done::Changed(1), Some("INSERT 0 1")),
            ("-- a comment\n/* and */ delete from t", Done::Changed(3), Some("DELETE 3")),
            ("CREATE UNIQUE INDEX i ON t (a)", Done::Changed(0), Some("CREATE INDEX")),
            ("CREATE /* TABLE */ VIEW \"index\" AS", Done::Changed(0), Some("CREATE VIEW")),
            ("start transaction", Done::Changed(0), Some("BEGIN")),
            ("UPDATE t SET a = 1 RETURNING a", Done::Answered(2), Some("UPDATE 2")),
            ("SELECT 1", Done::Answered(1), None),
            ("COPY t TO '/tmp/stdout'", Done::Changed(2), Some("COPY 2")),
            ("COPY t FROM STDIN", Done::Changed(2), Some("COPY 2")),
            ("copy (select 1) to stdout csv", Done::Changed(2), None),
            ("", Done::Changed(0), None),
        ];
        for (text, done, expected) in cases {
            assert_eq!(tag(text, &done).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn words_are_outside_quotes_parentheses_and_comments() {
        let text = "a 'b''c' \"d\"\"e\" (f (g) h) i--j\nk/* l /* m */ n */ö_1 / - * 'o";
        let found: Vec<&str> = words(text).map(|(word, _)| word).collect();
        assert_eq!(found, ["a", "i", "k", "ö_1"]);
        for open in ["(", "'", "\"", "/*", "/* /* */", "--", "/", "-", "ä/*ä*", ")a"] {
            assert!(words(open).count() <= 1, "{open}");
        }
    }

    #[test]
    fn a_copy_of_rows_behind_it_is_known_even_if_it_is_wrong() {
        for text in [
            "COPY t FROM STDIN",
            "\n-- rows\ncopy nosuch(a,b)from stdin csv",
            "COPY t (\"to\") FROM /* these */ STDIN WITH (nonsense",
            "COPY from FROM STDIN",
        ] {
            assert!(copies_input(text), "{text}");
        }
        for text in [
            "COPY t FROM 'a stdin'",
            "COPY t TO STDOUT",
            "COPY (SELECT a FROM stdin) TO 'x'",
            "SELECT copy FROM stdin",
            "COPY t",
            "COPY",
            "",
        ] {
            assert!(!copies_input(text), "{text}");
        }
    }
}
