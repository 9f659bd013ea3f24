//! Texts of statements without the passwords in them, for logs and statistics.

use std::borrow::Cow;

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::parse::offset_of;
use crate::parse::positions::is_word;

/// Returns the text of statements with `***` in place of each password.
///
/// A text with the word PASSWORD that cannot be read is not shown from that word on, and neither is
/// a literal with the word in it, nor the literals after that one: they may be parts of a statement
/// that is put together. The body of a function is read as a text of statements.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    if !has_word(text) {
        return Cow::Borrowed(text);
    }
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location() else {
        return Cow::Owned(format!("{}password ***", before_word(text)));
    };
    let mut shown = String::with_capacity(text.len());
    let (mut from, mut is_after, mut is_suspect) = (0, false, false);
    for token in tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))) {
        let is_text = matches!(
            token.token,
            Token::SingleQuotedString(_)
                | Token::EscapedStringLiteral(_)
                | Token::UnicodeStringLiteral(_)
                | Token::NationalStringLiteral(_)
                | Token::DollarQuotedString(_)
        );
        let is_password = std::mem::replace(&mut is_after, is_word(&token.token, "PASSWORD"));
        if !is_text {
            continue;
        }
        let (start, end) = (offset_of(text, token.span.start), offset_of(text, token.span.end));
        let literal = text.get(start..end).unwrap_or_default();
        let masked = match &token.token {
            _ if is_password || is_suspect => "'***'".to_owned(),
            _ if !has_word(literal) => continue,
            Token::DollarQuotedString(_) => masked_body(literal),
            _ => {
                is_suspect = true;
                format!("{}password ***'", before_word(literal))
            }
        };
        shown.push_str(text.get(from..start).unwrap_or_default());
        shown.push_str(&masked);
        from = end;
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(shown)
}

const WORD: &str = "password";

fn has_word(text: &str) -> bool {
    text.as_bytes().windows(WORD.len()).any(|it| it.eq_ignore_ascii_case(WORD.as_bytes()))
}

/// Returns what stands before the word.
fn before_word(text: &str) -> &str {
    let end = text.to_ascii_lowercase().find(WORD).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Masks a literal between `$$` or `$tag$`.
fn masked_body(literal: &str) -> String {
    let tag = literal.get(1..).and_then(|rest| rest.find('$')).map_or(0, |at| at + 2);
    let (open, rest) = literal.split_at_checked(tag).unwrap_or_default();
    match rest.strip_suffix(open) {
        Some(body) => format!("{open}{}{open}", without_passwords(body)),
        None => "'***'".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_passwords;

    #[test]
    fn passwords_are_not_shown() {
        for (text, shown) in [
            ("SELECT 1", "SELECT 1"),
            ("CREATE ROLE a PASSWORD 'geheim' LOGIN", "CREATE ROLE a PASSWORD '***' LOGIN"),
            (
                "alter user a password\n E'ge''heim'; SELECT 1",
                "alter user a password\n '***'; SELECT 1",
            ),
            ("ALTER ROLE a PASSWORD 'geheim", "ALTER ROLE a password ***"),
            ("SELECT password FROM t WHERE a = 'b'", "SELECT password FROM t WHERE a = 'b'"),
            (
                "DO $a$ BEGIN ALTER ROLE a PASSWORD 'geheim'; SELECT 'b'; END $a$",
                "DO $a$ BEGIN ALTER ROLE a PASSWORD '***'; SELECT 'b'; END $a$",
            ),
            (
                "DO $$BEGIN EXECUTE 'ALTER ROLE a PASSWORD ''geheim'''; END$$",
                "DO $$BEGIN EXECUTE 'ALTER ROLE a password ***'; END$$",
            ),
            (
                "SELECT 'x', format('ROLE a PASSWORD %L', 'geheim')",
                "SELECT 'x', format('ROLE a password ***', '***')",
            ),
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }
}
