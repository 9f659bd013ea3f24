//! Texts of statements with parameters in place of their constants, so that statistics count
//! statements that differ in constants as one.

use std::borrow::Cow;

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use super::passwords::without_passwords;
use crate::parse::offset_of;

/// Returns the text of a statement with `$1`, `$2` and so on in place of each number and each text,
/// after the parameters that it has. Comments go, and so do passwords.
///
/// A text that cannot be read stays as it is, but for passwords.
pub fn without_constants(text: &str) -> Cow<'_, str> {
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location() else {
        return without_passwords(text);
    };
    let parameter = |token: &Token| match token {
        Token::Placeholder(name) => name.strip_prefix('$')?.parse::<u32>().ok(),
        _ => None,
    };
    let mut newest = tokens.iter().filter_map(|it| parameter(&it.token)).max().unwrap_or(0);
    let mut shown = String::with_capacity(text.len());
    for token in &tokens {
        match &token.token {
            Token::Whitespace(_) => {
                if !shown.is_empty() && !shown.ends_with(' ') {
                    shown.push(' ');
                }
            }
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::HexStringLiteral(_) => {
                newest += 1;
                shown.push('$');
                shown.push_str(&newest.to_string());
            }
            _ => {
                let place = offset_of(text, token.span.start)..offset_of(text, token.span.end);
                shown.push_str(text.get(place).unwrap_or_default());
            }
        }
    }
    shown.truncate(shown.trim_end().len());
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::without_constants;

    #[test]
    fn constants_become_parameters_after_those_that_are_there() {
        for (text, shown) in [
            ("SELECT 1", "SELECT $1"),
            ("SELECT  a,\n 'x' -- why\nFROM t WHERE b=$1 ", "SELECT a, $2 FROM t WHERE b=$1"),
            ("INSERT INTO t VALUES (1, E'a''b', $$c$$)", "INSERT INTO t VALUES ($1, $2, $3)"),
            ("CREATE ROLE a PASSWORD 'geheim'", "CREATE ROLE a PASSWORD $1"),
            ("ALTER ROLE a PASSWORD 'geheim", "ALTER ROLE a password ***"),
            ("SELECT \"7\" FROM t7", "SELECT \"7\" FROM t7"),
        ] {
            assert_eq!(without_constants(text), shown);
        }
    }
}
