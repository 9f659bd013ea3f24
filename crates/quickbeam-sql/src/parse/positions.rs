//! Words among the tokens of a text, and the positions of types, operators and keywords, which the
//! parser's tree does not have. Comments and quoted texts do not match.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::offset_of;

/// The tokens of a text that was parsed before.
fn tokens(text: &str) -> impl DoubleEndedIterator<Item = TokenWithSpan> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location();
    tokens.unwrap_or_default().into_iter()
}

/// Returns the byte position of the first matching token from a location on.
pub fn first_from(text: &str, from: Location, is_such: impl Fn(&Token) -> bool) -> Option<usize> {
    let mut found = tokens(text).filter(|token| token.span.start >= from);
    found.find(|token| is_such(&token.token)).map(|token| offset_of(text, token.span.start))
}

/// Returns the byte position of the last matching token before a location.
pub fn last_before(
    text: &str,
    before: Location,
    is_such: impl Fn(&Token) -> bool,
) -> Option<usize> {
    let mut found = tokens(text).rev().filter(|token| token.span.start < before);
    found.find(|token| is_such(&token.token)).map(|token| offset_of(text, token.span.start))
}

/// Counts the names in a text that may be references to a table: those that a comma, FROM, JOIN or
/// a similar word precedes, and no point follows.
pub fn count_table_names(text: &str, name: &str) -> usize {
    let tokens = tokens(text).map(|token| token.token);
    let tokens: Vec<Token> =
        tokens.filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let starts = ["FROM", "JOIN", "TABLE", "USING", "ONLY"];
    let is_reference = |before: &Token, token: &Token, after: Option<&Token>| {
        let Token::Word(word) = token else { return false };
        let is_name = match word.quote_style {
            Some(_) => word.value == name,
            None => word.value.to_lowercase() == name,
        };
        let may_follow = matches!(before, Token::Comma | Token::LParen)
            || starts.iter().any(|start| is_word(before, start));
        is_name && may_follow && !matches!(after, Some(Token::Period))
    };
    (1..tokens.len())
        .filter(|at| is_reference(&tokens[at - 1], &tokens[*at], tokens.get(at + 1)))
        .count()
}

/// Whether a token is that word, and not a name in quotes.
pub fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// Returns whether there is a token and it is that word, without quotes.
pub fn is_word_at(token: Option<&TokenWithSpan>, wanted: &str) -> bool {
    token.is_some_and(|token| is_word(&token.token, wanted))
}

/// Returns whether a token is one of these words, without quotes.
pub fn is_any_word(token: Option<&Token>, words: &[&str]) -> bool {
    token.is_some_and(|token| words.iter().any(|word| is_word(token, word)))
}

/// Returns whether a text has one of these words, in any case, perhaps as a part of a longer one.
pub fn mentions(text: &str, words: &[&str]) -> bool {
    let has = |word: &&str| {
        let mut windows = text.as_bytes().windows(word.len());
        windows.any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
    };
    words.iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_and_what_only_looks_like_them_is_not() {
        let text = "a 'key' /* key */\n \"key\" Key key";
        let start = Location::new(1, 1);
        let is_key = |token: &Token| is_word(token, "KEY");
        assert_eq!(first_from(text, start, is_key), Some(25));
        assert_eq!(last_before(text, Location::new(9, 1), is_key), Some(29));
        assert_eq!(last_before(text, Location::new(2, 9), is_key), Some(25));
        assert_eq!(last_before(text, Location::new(2, 1), is_key), None);
        assert_eq!(first_from(text, Location::new(2, 13), is_key), None);
    }
}
