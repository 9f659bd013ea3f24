//! Records as a whole in the statements of a body, written as their fields: `new.*` becomes
//! `new."a", new."b"`, and `new IS DISTINCT FROM old` a comparison of two rows.

use std::fmt::Write;

use smol_str::SmolStr;

use super::lexer::{Lexeme, LexemeKind, lexemes};
use crate::error::Result;

/// Returns the names of the fields of the record that a name means.
pub type FieldLookup<'l> = dyn Fn(&[SmolStr]) -> Option<Vec<SmolStr>> + 'l;

/// Functions that make JSON of a record, and those that make it of names and values.
const JSON: [(&str, &str); 3] = [
    ("to_json", "json_build_object"),
    ("row_to_json", "json_build_object"),
    ("to_jsonb", "jsonb_build_object"),
];

/// A name of a record in a text.
struct RecordName {
    /// The number of the first token, and of the one after the last.
    first: usize,
    end: usize,
    fields: Vec<SmolStr>,
}

struct Scanner<'s> {
    text: &'s str,
    tokens: Vec<Lexeme>,
}

impl Scanner<'_> {
    fn kind(&self, at: usize) -> &LexemeKind {
        let last = self.tokens.len() - 1;
        &self.tokens[at.min(last)].kind
    }

    fn is_symbol(&self, at: usize, symbol: &str) -> bool {
        matches!(self.kind(at), LexemeKind::Symbol(found) if *found == symbol)
    }

    fn is_word(&self, at: usize, word: &str) -> bool {
        matches!(self.kind(at), LexemeKind::Word(found) if found == word)
    }

    fn is_star(&self, at: usize) -> bool {
        let token = &self.tokens[at.min(self.tokens.len() - 1)];
        self.text.get(token.start..token.end) == Some("*")
    }

    fn name(&self, at: usize) -> Option<SmolStr> {
        match self.kind(at) {
            LexemeKind::Word(name) | LexemeKind::Quoted(name) => Some(name.clone()),
            _ => None,
        }
    }

    /// Whether a row is compared, or asked for NULL, at these tokens.
    fn is_compared(&self, first: usize, end: usize) -> bool {
        let is_after = first >= 2 && self.is_word(first - 1, "from") && {
            self.is_word(first - 2, "distinct")
        };
        let is_equal = |at: usize| self.is_symbol(at, "=");
        is_after || self.is_word(end, "is") || is_equal(end) || first >= 1 && is_equal(first - 1)
    }

    /// Returns the record whose name begins at a token; true: with `.*`.
    fn record(&self, first: usize, fields: &FieldLookup<'_>) -> Option<(RecordName, bool)> {
        if first > 0 && self.is_symbol(first - 1, ".") {
            return None;
        }
        let mut names = vec![self.name(first)?];
        let mut end = first + 1;
        while self.is_symbol(end, ".") {
            if self.is_star(end + 1) {
                let fields = fields(&names)?;
                return Some((RecordName { first, end: end + 2, fields }, true));
            }
            names.push(self.name(end + 1)?);
            end += 2;
        }
        if self.is_symbol(end, "(") {
            return None;
        }
        Some((RecordName { first, end, fields: fields(&names)? }, false))
    }

    /// Returns the tokens of a call that makes JSON of the record alone, and its text.
    fn json_call(&self, record: &RecordName, name: &str) -> Option<(usize, usize, String)> {
        let at = record.first.checked_sub(2)?;
        let (LexemeKind::Word(function), true, true) =
            (self.kind(at), self.is_symbol(at + 1, "("), self.is_symbol(record.end, ")"))
        else {
            return None;
        };
        let made = JSON.iter().find(|(known, _)| known == function)?.1;
        let list = field_list(name, &record.fields);
        let mut text = format!("CASE WHEN ROW({list}) IS NULL THEN NULL ELSE {made}(");
        for (number, field) in record.fields.iter().enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            let key = field.replace('\'', "''");
            // Writing to a string does not fail.
            let _ = write!(text, "{comma}'{key}', {name}.{}", quoted(field));
        }
        text.push_str(") END");
        Some((at, record.end + 1, text))
    }
}

fn field_list(name: &str, fields: &[SmolStr]) -> String {
    let fields: Vec<String> = fields.iter().map(|it| format!("{name}.{}", quoted(it))).collect();
    fields.join(", ")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Writes the records of a statement as their fields. Returns `None` if there are none.
///
/// # Errors
/// A string or a name that does not end.
pub fn with_fields(text: &str, fields: &FieldLookup<'_>) -> Result<Option<String>> {
    let scanner = Scanner { text, tokens: lexemes(text)? };
    let mut made: Vec<(usize, usize, String)> = Vec::new();
    let mut at = 0;
    while at < scanner.tokens.len() {
        let Some((record, is_star)) = scanner.record(at, fields) else {
            at += 1;
            continue;
        };
        let last = if is_star { record.end - 2 } else { record.end };
        let (start, stop) = (scanner.tokens[record.first].start, scanner.tokens[last - 1].end);
        let name = text.get(start..stop).unwrap_or_default();
        let list = field_list(name, &record.fields);
        at = record.end;
        if scanner.is_compared(record.first, record.end) {
            made.push((record.first, record.end, format!("ROW({list})")));
        } else if is_star && scanner.is_symbol(record.end, "::") {
            made.push((record.first, record.end, name.to_owned()));
        } else if is_star {
            made.push((record.first, record.end, list));
        } else if let Some(call) = scanner.json_call(&record, name) {
            at = call.1;
            made.push(call);
        }
    }
    if made.is_empty() {
        return Ok(None);
    }
    let mut written = text.to_owned();
    for (first, end, fields) in made.into_iter().rev() {
        let place = scanner.tokens[first].start..scanner.tokens[end - 1].end;
        written.replace_range(place, &fields);
    }
    Ok(Some(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_their_fields() {
        let fields = |names: &[SmolStr]| match names {
            [name] if name == "new" || name == "old" => Some(vec!["a".into(), "b".into()]),
            _ => None,
        };
        for (text, expected) in [
            ("SELECT 'x', NEW.*, now()", Some("SELECT 'x', NEW.\"a\", NEW.\"b\", now()")),
            (
                "SELECT old.* IS DISTINCT FROM new.*",
                Some("SELECT ROW(old.\"a\", old.\"b\") IS DISTINCT FROM ROW(new.\"a\", new.\"b\")"),
            ),
            ("SELECT NEW IS NULL", Some("SELECT ROW(NEW.\"a\", NEW.\"b\") IS NULL")),
            (
                "SELECT to_jsonb(new)",
                Some(
                    "SELECT CASE WHEN ROW(new.\"a\", new.\"b\") IS NULL THEN NULL ELSE \
                     jsonb_build_object('a', new.\"a\", 'b', new.\"b\") END",
                ),
            ),
            ("SELECT new.a, t.*, 'new.*' FROM t", None),
            ("SELECT new", None),
        ] {
            assert_eq!(with_fields(text, &fields).unwrap().as_deref(), expected, "{text}");
        }
    }
}
