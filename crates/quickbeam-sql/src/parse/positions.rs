//! Words among the tokens of a text, and the positions of types, operators and keywords, which the
//! parser's tree does not have. Comments and quoted texts do not match.

use std::ops::Range;

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use smol_str::SmolStr;

use super::offset_of;
use crate::error::{Result, SqlError, SqlState};

/// The character between a marked word and its place. No text means anything by it.
pub(super) const MARK: char = '\u{fdd0}';

/// Returns whether the text of a word, perhaps with a mark, is this word in any case.
pub(super) fn is_text_of(value: &str, wanted: &str) -> bool {
    value.split_at_checked(wanted.len()).is_some_and(|(word, rest)| {
        word.eq_ignore_ascii_case(wanted) && (rest.is_empty() || rest.starts_with(MARK))
    })
}

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

/// Returns the columns after ON DELETE SET NULL or SET DEFAULT of the foreign key whose table ends
/// at a location. The parser does not know them: see [`without_set_columns`].
pub fn set_columns(text: &str, from: Location) -> Result<Vec<SmolStr>> {
    let is_shown = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let rest: Vec<TokenWithSpan> =
        tokens(text).filter(|token| token.span.start >= from && is_shown(token)).collect();
    let mut depth = 0_usize;
    for (at, token) in rest.iter().enumerate() {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth > 0 => depth -= 1,
            Token::RParen | Token::Comma | Token::SemiColon if depth == 0 => break,
            _ => {}
        }
        if depth != 1 || token.token != Token::LParen {
            continue;
        }
        let Some(end) = set_columns_end(&rest, at) else { continue };
        if is_word_at(rest.get(at.wrapping_sub(3)), "UPDATE") {
            let message = "a column list with SET NULL is only supported for ON DELETE actions";
            let message = match is_word_at(rest.get(at - 1), "DEFAULT") {
                true => message.replace("NULL", "DEFAULT"),
                false => message.to_owned(),
            };
            let error = SqlError::new(SqlState::FeatureNotSupported, message);
            return Err(error.at(offset_of(text, token.span.start)));
        }
        let names = rest[at + 1..end].iter().filter_map(|token| match &token.token {
            Token::Word(word) if word.quote_style.is_some() => Some(SmolStr::new(&word.value)),
            Token::Word(word) => Some(SmolStr::new(word.value.to_lowercase())),
            _ => None,
        });
        return Ok(names.collect());
    }
    Ok(Vec::new())
}

/// Returns the place of the parenthesis that closes the column list of SET NULL or SET DEFAULT, if
/// one opens at `open`. The tokens are without blanks.
fn set_columns_end(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let before = |by: usize| tokens.get(open.checked_sub(by)?);
    let is_set = (is_word_at(before(1), "NULL") || is_word_at(before(1), "DEFAULT"))
        && is_word_at(before(2), "SET")
        && (is_word_at(before(3), "DELETE") || is_word_at(before(3), "UPDATE"))
        && is_word_at(before(4), "ON");
    let rest = tokens.get(open..)?.iter();
    let end = rest.clone().position(|token| token.token == Token::RParen)?;
    is_set.then_some(open + end)
}

/// Removes the columns after ON DELETE SET NULL and SET DEFAULT.
pub fn without_set_columns(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let has = |word: &str| tokens.iter().any(|token| is_word_at(Some(token), word));
    if !has("SET") || !has("REFERENCES") {
        return tokens;
    }
    let shown: Vec<usize> =
        (0..tokens.len()).filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_))).collect();
    let plain: Vec<TokenWithSpan> = shown.iter().map(|&at| tokens[at].clone()).collect();
    let mut gone: Vec<usize> = Vec::new();
    for (place, token) in plain.iter().enumerate() {
        if token.token == Token::LParen
            && let Some(end) = set_columns_end(&plain, place)
        {
            gone.extend(shown.get(place..=end).unwrap_or_default());
        }
    }
    let kept = tokens.into_iter().enumerate().filter(|(at, _)| !gone.contains(at));
    kept.map(|(_, token)| token).collect()
}

/// Words that may follow an item of FROM.
const AFTER_ITEM: [&str; 19] = [
    "JOIN",
    "NATURAL",
    "LEFT",
    "RIGHT",
    "FULL",
    "INNER",
    "CROSS",
    "WHERE",
    "GROUP",
    "HAVING",
    "WINDOW",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "FOR",
    "UNION",
    "INTERSECT",
    "EXCEPT",
];

/// Returns the places of the word NATURAL and of the end of the join whose right item begins at a
/// location.
pub fn natural_join(text: &str, right: Location) -> Option<(Range<usize>, usize)> {
    let is_shown = |token: &TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let tokens: Vec<TokenWithSpan> = tokens(text).filter(is_shown).collect();
    let is_before = |token: &TokenWithSpan| token.span.start < right;
    let natural = tokens.iter().take_while(|token| is_before(token)).enumerate();
    let natural = natural.filter(|(_, token)| is_word(&token.token, "NATURAL")).last()?.0;
    let rest = tokens.get(natural + 1..)?;
    let first = rest.iter().position(|token| is_word(&token.token, "JOIN"))? + 1;
    let (mut depth, mut end) = (0_usize, None);
    for token in rest.get(first..)? {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth > 0 => depth -= 1,
            Token::RParen | Token::Comma | Token::SemiColon if depth == 0 => break,
            word if depth == 0 && is_any_word(Some(word), &AFTER_ITEM) => break,
            _ => {}
        }
        end = Some(token.span.end);
    }
    let place = |location| offset_of(text, location);
    let word = place(tokens.get(natural)?.span.start)..place(rest.first()?.span.start);
    Some((word, place(end?)))
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
    matches!(token, Token::Word(word) if word.quote_style.is_none() && is_text_of(&word.value, wanted))
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
