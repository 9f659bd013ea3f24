//! The tokens of a PL/pgSQL body.

use smol_str::SmolStr;

use crate::error::{Result, SqlError, SqlState};

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LexemeKind {
    /// A word in lower case.
    Word(SmolStr),
    /// A name in quotation marks.
    Quoted(SmolStr),
    /// A string, without its quotes.
    Text(String),
    /// A number.
    Number,
    /// Any other characters.
    Symbol(&'static str),
    /// The end of the text.
    End,
}

/// A token and the bytes of the text that it takes.
#[derive(Clone, Debug)]
pub struct Lexeme {
    /// What it is.
    pub kind: LexemeKind,
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// Symbols of several characters that the block language needs as one.
const LONG: [&str; 5] = [":=", "..", "<<", ">>", "::"];

/// Symbols of one character.
const SHORT: [&str; 14] = ["(", ")", "[", "]", ",", ";", "=", ".", "<", ">", "%", ":", "#", "$"];

fn unterminated(what: &str, at: usize) -> SqlError {
    SqlError::new(SqlState::SyntaxError, format!("unterminated {what}")).at(at)
}

/// Whether a backslash in a quoted text escapes the next character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backslash {
    Escapes,
    Plain,
}

/// Returns the end of a quoted text that begins at `start`, and the text.
fn quoted(text: &str, start: usize, quote: char, backslash: Backslash) -> Option<(usize, String)> {
    let mut found = String::new();
    let mut rest = text.get(start..)?.char_indices().skip(1).peekable();
    while let Some((at, c)) = rest.next() {
        if c == quote {
            match rest.peek() {
                Some((_, next)) if *next == quote => {
                    found.push(c);
                    rest.next();
                }
                _ => return Some((start + at + 1, found)),
            }
        } else if c == '\\' && backslash == Backslash::Escapes {
            let (_, next) = rest.next()?;
            found.push(match next {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            });
        } else {
            found.push(c);
        }
    }
    None
}

/// Returns the tag of a dollar quote at the start of a text, with both signs.
fn dollar_tag(rest: &str) -> Option<&str> {
    let inner = rest.strip_prefix('$')?;
    let end = inner.find('$')?;
    let tag = inner.get(..end)?;
    let is_name = tag.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !tag.starts_with(|c: char| c.is_ascii_digit());
    is_name.then(|| rest.get(..end + 2)).flatten()
}

/// Returns the end of a block comment, which may hold others.
fn comment_end(text: &str, start: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, start);
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next()?.len_utf8();
        }
    }
}

/// Returns the token at a place that is no blank.
fn lexeme(text: &str, start: usize, first: char) -> Result<Lexeme> {
    let rest = text.get(start..).unwrap_or_default();
    let made = |kind, end| Ok(Lexeme { kind, start, end });
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    if (first == 'e' || first == 'E') && rest.get(1..).is_some_and(|it| it.starts_with('\'')) {
        let (end, found) = quoted(text, start + 1, '\'', Backslash::Escapes)
            .ok_or_else(|| unterminated("quoted string", start))?;
        return made(LexemeKind::Text(found), end);
    }
    if first.is_alphabetic() || first == '_' {
        let end = rest.find(|c| !is_part(c)).map_or(text.len(), |length| start + length);
        return made(LexemeKind::Word(SmolStr::new(text[start..end].to_lowercase())), end);
    }
    if first.is_ascii_digit() {
        let mut end = start;
        let bytes = text.as_bytes();
        while let Some(&byte) = bytes.get(end) {
            let is_fraction = byte == b'.' && bytes.get(end + 1) != Some(&b'.');
            let is_sign = matches!(byte, b'+' | b'-')
                && matches!(bytes.get(end.wrapping_sub(1)), Some(b'e' | b'E'));
            if !byte.is_ascii_alphanumeric() && !is_fraction && !is_sign {
                break;
            }
            end += 1;
        }
        return made(LexemeKind::Number, end);
    }
    match first {
        '\'' => {
            let (end, found) = quoted(text, start, '\'', Backslash::Plain)
                .ok_or_else(|| unterminated("quoted string", start))?;
            made(LexemeKind::Text(found), end)
        }
        '"' => {
            let (end, found) = quoted(text, start, '"', Backslash::Plain)
                .ok_or_else(|| unterminated("quoted identifier", start))?;
            made(LexemeKind::Quoted(found.into()), end)
        }
        '$' if let Some(tag) = dollar_tag(rest) => {
            let inner = rest.get(tag.len()..).unwrap_or_default();
            let length =
                inner.find(tag).ok_or_else(|| unterminated("dollar-quoted string", start))?;
            let found = inner.get(..length).unwrap_or_default().to_owned();
            made(LexemeKind::Text(found), start + 2 * tag.len() + length)
        }
        _ => {
            if let Some(symbol) = LONG.into_iter().find(|symbol| rest.starts_with(symbol)) {
                return made(LexemeKind::Symbol(symbol), start + symbol.len());
            }
            let symbol = SHORT.into_iter().find(|symbol| rest.starts_with(symbol)).unwrap_or("?");
            made(LexemeKind::Symbol(symbol), start + first.len_utf8())
        }
    }
}

/// Returns the tokens of a text; the last one is the end.
pub fn lexemes(text: &str) -> Result<Vec<Lexeme>> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(first) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(at..).unwrap_or_default();
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("--") {
            at = rest.find('\n').map_or(text.len(), |length| at + length);
        } else if rest.starts_with("/*") {
            at = comment_end(text, at).ok_or_else(|| unterminated("comment", at))?;
        } else {
            let found = lexeme(text, at, first)?;
            at = found.end;
            all.push(found);
        }
    }
    all.push(Lexeme { kind: LexemeKind::End, start: text.len(), end: text.len() });
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_strings_and_comments_are_tokens() {
        let kinds = |text| lexemes(text).unwrap().into_iter().map(|it| it.kind).collect::<Vec<_>>();
        assert_eq!(
            kinds("1..10"),
            [LexemeKind::Number, LexemeKind::Symbol(".."), LexemeKind::Number, LexemeKind::End]
        );
        let text = "A := 'it''s' /* a /* b */ */ || $x$a;$$b$x$ -- c";
        let found = kinds(text);
        assert_eq!(found[0], LexemeKind::Word("a".into()));
        assert_eq!(found[1], LexemeKind::Symbol(":="));
        assert_eq!(found[2], LexemeKind::Text("it's".into()));
        assert_eq!(found[5], LexemeKind::Text("a;$$b".into()));
        assert_eq!(found.len(), 7);
        assert!(lexemes("'a").is_err() && lexemes("/* a").is_err());
    }
}
