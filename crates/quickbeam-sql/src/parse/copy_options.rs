//! Options of COPY in the forms that the parser takes. `ON`, `1` and their like become TRUE and
//! FALSE, `HEADER MATCH` an encoding that no statement names, and `FORCE_QUOTE *` a list of one
//! name. WHERE goes: it is read apart.

use std::ops::Range;

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace, Word};

use super::offset_of;
use super::positions::is_word;

/// The encoding that stands for HEADER MATCH.
pub const HEADER_MATCH: &str = "\0match";

/// The name that stands for all columns.
pub const ALL_COLUMNS: &str = "\0*";

/// Returns the tokens of a text with TRUE and FALSE for the values of COPY's options.
pub fn adapted(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_first_copy = tokens
        .iter()
        .find(|token| !matches!(token.token, Token::Whitespace(_)))
        .is_some_and(|token| is_word(&token.token, "copy"));
    if !is_first_copy {
        return tokens;
    }
    if let Some(at) = condition_place(&tokens) {
        let is_end = |token: &TokenWithSpan| matches!(token.token, Token::SemiColon | Token::EOF);
        let count = tokens[at..].iter().position(is_end).unwrap_or(tokens.len() - at);
        tokens.drain(at..at + count);
    }
    move_binary(&mut tokens);
    list_older_options(&mut tokens);
    let mut follows_option = false;
    let mut made: Vec<(usize, Vec<Token>)> = Vec::new();
    let mut forces = false;
    for (at, token) in tokens.iter_mut().enumerate() {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::Mul if std::mem::take(&mut forces) => {
                made.push((at, vec![Token::LParen, quoted(ALL_COLUMNS), Token::RParen]));
            }
            value if follows_option && is_word(value, "match") => {
                follows_option = false;
                let text = Token::SingleQuotedString(HEADER_MATCH.to_owned());
                let encoding = word("ENCODING", Keyword::ENCODING);
                let blank = Token::Whitespace(Whitespace::Space);
                made.push((at, vec![word_of(true), Token::Comma, encoding, blank, text]));
            }
            value if follows_option => {
                follows_option = false;
                if let Some(is_on) = boolean(value) {
                    token.token = word_of(is_on);
                }
            }
            other => {
                forces = is_word(other, "force_quote") || is_word(other, "quote") && forces;
                forces |= is_word(other, "force");
                follows_option = is_word(other, "freeze") || is_word(other, "header");
            }
        }
    }
    for (at, with) in made.into_iter().rev() {
        let span = tokens[at].span;
        let with = with.into_iter().map(|token| TokenWithSpan::new(token, span));
        tokens.splice(at..=at, with);
    }
    tokens
}

/// Moves the word of `COPY BINARY t …` to the options.
fn move_binary(tokens: &mut Vec<TokenWithSpan>) {
    let shown = |from: usize| {
        let rest = tokens.iter().enumerate().skip(from);
        rest.into_iter().find(|(_, token)| !matches!(token.token, Token::Whitespace(_)))
    };
    let Some((copy, _)) = shown(0) else { return };
    let Some((at, _)) = shown(copy + 1).filter(|(_, it)| is_word(&it.token, "binary")) else {
        return;
    };
    let is_name = |token: &Token| {
        matches!(token, Token::Word(_)) && !is_word(token, "from") && !is_word(token, "to")
    };
    if !shown(at + 1).is_some_and(|(_, token)| is_name(&token.token)) {
        return;
    }
    let binary = tokens.remove(at);
    let is_end = |token: &TokenWithSpan| matches!(token.token, Token::SemiColon | Token::EOF);
    let end = tokens.iter().position(is_end).unwrap_or(tokens.len());
    let blank = TokenWithSpan::new(Token::Whitespace(Whitespace::Space), binary.span);
    tokens.splice(end..end, [blank, binary]);
}

/// Writes options without parentheses as those in parentheses.
fn list_older_options(tokens: &mut Vec<TokenWithSpan>) {
    let is_shown = |at: &usize| !matches!(tokens[*at].token, Token::Whitespace(_));
    let shown: Vec<usize> = (0..tokens.len()).filter(is_shown).collect();
    let token = |place: usize| shown.get(place).map(|&at| &tokens[at].token);
    let mut depth = 0_usize;
    let target = (0..shown.len()).find(|&place| match token(place) {
        Some(Token::LParen) => {
            depth += 1;
            false
        }
        Some(Token::RParen) => {
            depth = depth.saturating_sub(1);
            false
        }
        Some(word) => depth == 0 && (is_word(word, "from") || is_word(word, "to")),
        None => false,
    });
    let Some(first) = target.map(|place| place + 2) else { return };
    let Some(options) = older_options_listed(&token, first) else { return };
    let (Some(&from), Some(&last)) = (shown.get(first), shown.last()) else { return };
    let is_end = |token: &Token| matches!(token, Token::SemiColon | Token::EOF);
    let end = shown.iter().copied().filter(|&at| at >= from);
    let end = end.into_iter().find(|&at| is_end(&tokens[at].token)).unwrap_or(last + 1);
    let span = tokens[from].span;
    let made = options.into_iter().map(|token| TokenWithSpan::new(token, span));
    tokens.splice(from..end, made.collect::<Vec<_>>());
}

/// Returns the options that begin at a place, with WITH and in parentheses; `None` if there are
/// none, or if one of them is none of COPY's.
fn older_options_listed<'t>(
    token: &impl Fn(usize) -> Option<&'t Token>,
    start: usize,
) -> Option<Vec<Token>> {
    let is = |place: usize, wanted: &str| token(place).is_some_and(|it| is_word(it, wanted));
    let blank = || Token::Whitespace(Whitespace::Space);
    let named = |name: &str| Token::make_word(name, None);
    let mut out = vec![word("WITH", Keyword::WITH), blank(), Token::LParen];
    let empty = out.len();
    let mut place = start;
    while !matches!(token(place), None | Some(Token::SemiColon | Token::EOF)) {
        if is(place, "with") {
            place += 1;
            continue;
        }
        if out.len() > empty {
            out.push(Token::Comma);
        }
        place += usize::from(is(place, "using") && is(place + 1, "delimiters"));
        let Some(Token::Word(option)) = token(place) else { return None };
        place += 1;
        let name = option.value.to_ascii_uppercase();
        match name.as_str() {
            "CSV" | "BINARY" => {
                out.extend([named("FORMAT"), blank(), named(&name)]);
                continue;
            }
            "HEADER" | "FREEZE" => {
                out.extend([named(&name), blank(), word_of(true)]);
                continue;
            }
            "FORCE" => {
                let rest = place + usize::from(is(place, "not"));
                let name = if is(place, "quote") {
                    "FORCE_QUOTE"
                } else if !is(rest, "null") {
                    return None;
                } else if rest > place {
                    "FORCE_NOT_NULL"
                } else {
                    "FORCE_NULL"
                };
                place = rest + 1;
                out.extend([named(name), blank()]);
                if token(place) == Some(&Token::Mul) {
                    out.push(Token::Mul);
                    place += 1;
                    continue;
                }
                out.push(Token::LParen);
                out.push(token(place)?.clone());
                place += 1;
                while token(place) == Some(&Token::Comma) {
                    out.extend([Token::Comma, token(place + 1)?.clone()]);
                    place += 2;
                }
                out.push(Token::RParen);
                continue;
            }
            "DELIMITER" | "NULL" | "QUOTE" | "ESCAPE" => place += usize::from(is(place, "as")),
            "DELIMITERS" | "ENCODING" => {}
            _ => return None,
        }
        out.extend([named(name.trim_end_matches('S')), blank(), token(place)?.clone()]);
        place += 1;
    }
    let has_options = out.len() > empty;
    out.push(Token::RParen);
    has_options.then_some(out)
}

/// Returns the place of WHERE in a COPY.
fn condition_place(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::SemiColon => return None,
            other if depth == 0 && is_word(other, "where") => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns where WHERE of a COPY begins, and the place of its condition.
pub fn copy_condition(text: &str) -> Option<(usize, Range<usize>)> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().ok()?;
    let at = condition_place(&tokens)?;
    let place = |token: Option<&TokenWithSpan>| {
        token.map_or(text.len(), |token| offset_of(text, token.span.start))
    };
    let rest = &tokens[at + 1..];
    let end = rest.iter().find(|token| matches!(token.token, Token::SemiColon | Token::EOF));
    let first = rest.iter().find(|token| !matches!(token.token, Token::Whitespace(_)));
    let (first, end) = (place(first), end.map_or(text.len(), |end| place(Some(end))));
    Some((place(tokens.get(at)), first.min(end)..end))
}

/// Returns the place of an option of COPY that was given before.
pub fn repeated_option(text: &str) -> Option<usize> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().ok()?;
    let shown = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let mut given = Vec::new();
    for (name, token) in given_options(&shown.collect::<Vec<_>>()) {
        if given.contains(&name) {
            return Some(offset_of(text, token.span.start));
        }
        given.push(name);
    }
    None
}

/// Returns the options of a COPY, each with its first token.
fn given_options<'t>(tokens: &[&'t TokenWithSpan]) -> Vec<(String, &'t TokenWithSpan)> {
    let mut depth = 0_usize;
    let target = tokens.iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (is_word(&token.token, "from") || is_word(&token.token, "to"))
    });
    // A word and the file or stream.
    let Some(rest) = target.and_then(|at| tokens.get(at + 2..)) else { return Vec::new() };
    let with = rest.first().filter(|token| is_word(&token.token, "with"));
    let rest = rest.get(usize::from(with.is_some())..).unwrap_or_default();
    if rest.first().is_none_or(|token| token.token != Token::LParen) {
        return older_options(rest);
    }
    let mut options = Vec::new();
    let mut depth = 0_usize;
    for pair in rest.windows(2) {
        let [before, token] = pair else { continue };
        match before.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        let begins = depth == 1 && matches!(before.token, Token::LParen | Token::Comma);
        if let (true, Token::Word(word)) = (begins, &token.token) {
            options.push((word.value.to_ascii_lowercase(), *token));
        }
    }
    options
}

/// Returns the options of a COPY in the form without parentheses.
fn older_options<'t>(tokens: &[&'t TokenWithSpan]) -> Vec<(String, &'t TokenWithSpan)> {
    let mut options = Vec::new();
    let mut rest = tokens.iter();
    while let Some(token) = rest.next() {
        let Token::Word(word) = &token.token else { continue };
        let mut name = word.value.to_ascii_lowercase();
        match name.as_str() {
            "csv" | "binary" => name = "format".to_owned(),
            "delimiter" | "null" | "header" | "quote" | "escape" | "freeze" | "encoding" => {}
            "force" => {
                for part in ["not", "null", "quote"] {
                    let next = rest.as_slice().first();
                    if next.is_some_and(|next| is_word(&next.token, part)) {
                        name = format!("{name} {part}");
                        rest.next();
                        if part != "not" {
                            break;
                        }
                    }
                }
                // The columns.
                rest.next();
                while rest.as_slice().first().is_some_and(|next| next.token == Token::Comma) {
                    rest.nth(1);
                }
            }
            "where" => break,
            _ => continue,
        }
        options.push((name, *token));
    }
    options
}

fn word(value: &str, keyword: Keyword) -> Token {
    Token::Word(Word { value: value.to_owned(), quote_style: None, keyword })
}

fn quoted(name: &str) -> Token {
    let keyword = Keyword::NoKeyword;
    Token::Word(Word { value: name.to_owned(), quote_style: Some('"'), keyword })
}

fn boolean(token: &Token) -> Option<bool> {
    let text = match token {
        Token::Word(word) => word.value.as_str(),
        Token::SingleQuotedString(text) | Token::Number(text, _) => text.as_str(),
        _ => return None,
    };
    match text.to_ascii_lowercase().as_str() {
        "on" | "1" | "true" => Some(true),
        "off" | "0" | "false" => Some(false),
        _ => None,
    }
}

fn word_of(is_on: bool) -> Token {
    if is_on { word("TRUE", Keyword::TRUE) } else { word("FALSE", Keyword::FALSE) }
}
