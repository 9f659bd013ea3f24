//! Texts and names with Unicode escapes: `U&'d\0061ta'`, `U&"d!0061ta" UESCAPE '!'`.
//!
//! The tokenizer reads texts with backslashes only, and takes the `U&` of a name for an operator.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, TokenizerError, Word};

use super::literals::Cursor;
use super::offset_of;
use super::positions::is_word;
use crate::error::{Result, SqlError, SqlState};

/// Returns the tokens of a text. The tokenizer fails at escapes that it cannot read, so it gets
/// them without their backslashes: [`adapted`] reads them again.
pub(super) fn tokens_of(
    dialect: &PostgreSqlDialect,
    text: &str,
) -> std::result::Result<Vec<TokenWithSpan>, TokenizerError> {
    let mut found = Tokenizer::new(dialect, text).tokenize_with_location();
    let mut plain = text.to_owned();
    while let Err(error) = &found
        && hide_escapes(&mut plain, offset_of(text, error.location))
    {
        found = Tokenizer::new(dialect, &plain).tokenize_with_location();
    }
    found
}

/// Replaces the backslashes in the text with escapes around a place. Returns whether there are any.
fn hide_escapes(text: &mut String, place: usize) -> bool {
    if text.get(place..).is_some_and(|rest| rest.starts_with("E'") || rest.starts_with("e'")) {
        return hide_bytes(text, place + 2);
    }
    let before = text.get(..place).unwrap_or_default();
    let start = before.rfind("U&'").max(before.rfind("u&'"));
    let Some(start) = start.map(|start| start + "U&'".len()) else { return false };
    let rest = &text[start..];
    let end = start + rest.find('\'').unwrap_or(rest.len());
    let hidden = text[start..end].replace('\\', "|");
    let is_changed = text[start..end] != hidden;
    text.replace_range(start..end, &hidden);
    is_changed
}

/// Replaces the backslashes in the text of `E'…'` that begins at a place, but those before quotes
/// and backslashes. Returns whether there are any.
fn hide_bytes(text: &mut String, start: usize) -> bool {
    let mut hidden = Vec::new();
    let mut rest = text.get(start..).unwrap_or_default().char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        match (character, rest.peek()) {
            ('\\', Some((_, '\'' | '\\'))) | ('\'', Some((_, '\''))) => drop(rest.next()),
            ('\\', _) => hidden.push(start + at),
            ('\'', _) => break,
            _ => {}
        }
    }
    for at in &hidden {
        text.replace_range(*at..at + 1, "|");
    }
    !hidden.is_empty()
}

/// Returns the tokens of a text with plain texts and names in the place of those with escapes.
pub(super) fn adapted(text: &str, tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    if !text.contains("U&") && !text.contains("u&") {
        return Ok(tokens);
    }
    let mut cursor = Cursor::new(text);
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        let start = cursor.move_to(token.span.start);
        let quote = match &token.token {
            Token::UnicodeStringLiteral(_) => '\'',
            Token::Word(word) if word.quote_style == Some('"') && has_prefix(&out) => '"',
            _ => {
                out.push(token);
                continue;
            }
        };
        let written = cursor.text_from(start);
        let content = written.split_once(quote).map_or("", |(_, content)| content);
        let content = quoted(content, quote);
        let escape = escape_of(&mut rest, &mut cursor)?.unwrap_or('\\');
        let unescaped = unescaped(&content, escape).map_err(|error| error.at(start))?;
        let made = match quote {
            '"' => {
                out.truncate(out.len() - 2);
                let keyword = Keyword::NoKeyword;
                Token::Word(Word { value: unescaped, quote_style: Some('"'), keyword })
            }
            _ => Token::SingleQuotedString(unescaped),
        };
        out.push(TokenWithSpan::new(made, token.span));
    }
    Ok(out)
}

/// Returns whether `U&` stands at the end, without a blank in it.
fn has_prefix(before: &[TokenWithSpan]) -> bool {
    let [.., name, operator] = before else { return false };
    operator.token == Token::Ampersand
        && is_word(&name.token, "U")
        && name.span.end == operator.span.start
}

/// Returns the content of a quoted text up to the quote that ends it.
fn quoted(text: &str, quote: char) -> String {
    let mut content = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c == quote && rest.next_if_eq(&quote).is_none() {
            break;
        }
        content.push(c);
    }
    content
}

/// Takes `UESCAPE 'c'`, if it follows.
fn escape_of(
    rest: &mut std::iter::Peekable<std::vec::IntoIter<TokenWithSpan>>,
    cursor: &mut Cursor<'_>,
) -> Result<Option<char>> {
    let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    let mut ahead = rest.clone();
    while ahead.next_if(is_blank).is_some() {}
    if ahead.next_if(|token| is_word(&token.token, "UESCAPE")).is_none() {
        return Ok(None);
    }
    while ahead.next_if(is_blank).is_some() {}
    let given = ahead.next();
    *rest = ahead;
    let place = given.as_ref().map_or(0, |token| cursor.move_to(token.span.start));
    let refuse = |message: &str| Err(SqlError::new(SqlState::SyntaxError, message).at(place));
    let Some(Token::SingleQuotedString(escape)) = given.map(|token| token.token) else {
        return refuse("UESCAPE must be followed by a simple string literal");
    };
    let mut characters = escape.chars();
    match (characters.next(), characters.next()) {
        (Some(c), None) if !c.is_ascii_hexdigit() && !"+'\"".contains(c) && !c.is_whitespace() => {
            Ok(Some(c))
        }
        _ => refuse("invalid Unicode escape character"),
    }
}

/// Reads the escapes of a text.
fn unescaped(content: &str, escape: char) -> Result<String> {
    let invalid = |message: &str| SqlError::new(SqlState::SyntaxError, message);
    let form = || {
        invalid("invalid Unicode escape").with_hint("Unicode escapes must be \\XXXX or \\+XXXXXX.")
    };
    let mut made = String::with_capacity(content.len());
    let mut high: Option<u32> = None;
    let mut rest = content;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let is_escape = c == escape && !rest.starts_with(escape);
        if !is_escape {
            if high.is_some() {
                return Err(invalid("invalid Unicode surrogate pair"));
            }
            rest = if c == escape { &rest[escape.len_utf8()..] } else { rest };
            made.push(c);
            continue;
        }
        let (skipped, count) = if rest.starts_with('+') { (1, 6) } else { (0, 4) };
        let digits = rest.get(skipped..skipped + count).ok_or_else(form)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(form());
        }
        rest = &rest[skipped + count..];
        let code = u32::from_str_radix(digits, 16).map_err(|_| form())?;
        let code = match (high.take(), code) {
            (None, 0xd800..0xdc00) => {
                high = Some(code);
                continue;
            }
            (Some(high), 0xdc00..0xe000) => 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00),
            (Some(_), _) | (None, 0xdc00..0xe000) => {
                return Err(invalid("invalid Unicode surrogate pair"));
            }
            (None, code) => code,
        };
        let known = char::from_u32(code).filter(|c| *c != '\0');
        made.push(known.ok_or_else(|| invalid("invalid Unicode escape value"))?);
    }
    if high.is_some() {
        return Err(invalid("invalid Unicode surrogate pair"));
    }
    Ok(made)
}
