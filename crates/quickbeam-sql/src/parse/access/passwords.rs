//! Texts of statements without the passwords in them, for logs and statistics.

use std::borrow::Cow;

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::parse::offset_of;
use crate::parse::positions::is_word;

/// Returns the text of statements with `***` in place of each password.
///
/// A text with the word PASSWORD that cannot be read is not shown from that word on.
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    let has =
        |word: &[u8]| text.as_bytes().windows(word.len()).any(|it| it.eq_ignore_ascii_case(word));
    if !has(b"password") {
        return Cow::Borrowed(text);
    }
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location() else {
        let lower = text.to_ascii_lowercase();
        let end = lower.find("password").unwrap_or(text.len());
        return Cow::Owned(format!("{}password ***", &text[..end]));
    };
    let mut shown = String::with_capacity(text.len());
    let (mut from, mut is_after) = (0, false);
    for token in &tokens {
        let is_text = matches!(
            token.token,
            Token::SingleQuotedString(_)
                | Token::EscapedStringLiteral(_)
                | Token::UnicodeStringLiteral(_)
                | Token::NationalStringLiteral(_)
                | Token::DollarQuotedString(_)
        );
        match &token.token {
            Token::Whitespace(_) => continue,
            _ if is_after && is_text => {
                let start = offset_of(text, token.span.start);
                shown.push_str(text.get(from..start).unwrap_or_default());
                shown.push_str("'***'");
                from = offset_of(text, token.span.end);
            }
            _ => {}
        }
        is_after = is_word(&token.token, "PASSWORD");
    }
    shown.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(shown)
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
        ] {
            assert_eq!(without_passwords(text), shown);
        }
    }
}
