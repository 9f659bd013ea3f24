//! Clauses of INSERT that the parser does not know, as markers.
//!
//! OVERRIDING SYSTEM VALUE and OVERRIDING USER VALUE are a marker at the end of the columns. A
//! conflict target with expressions or a WHERE is a marker in the place of its columns. A marker is
//! a quoted name that begins with the character 0, which no name contains.

mod assigned_parts;
mod merge_clauses;

use sqlparser::ast::{CreateIndex, Ident, ObjectName, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

pub use assigned_parts::subscripts_of;

use super::positions::{is_any_word, is_word_at};
use crate::error::{Result, SqlError, SqlState};

/// Whose values identity columns get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overriding {
    /// SYSTEM VALUE: the given ones, also of columns GENERATED ALWAYS.
    System,
    /// USER VALUE: those of the sequences.
    User,
}

const SYSTEM: &str = "\0overriding system value";
const USER: &str = "\0overriding user value";

/// Splits the marker from the columns of an INSERT.
pub fn overriding_of(columns: &[ObjectName]) -> (&[ObjectName], Option<Overriding>) {
    let marker = columns.last().and_then(|name| name.0.first()).and_then(|part| part.as_ident());
    let overriding = match marker.map(|marker| &marker.value[..]) {
        Some(SYSTEM) => Some(Overriding::System),
        Some(USER) => Some(Overriding::User),
        _ => return (columns, None),
    };
    (columns.get(..columns.len() - 1).unwrap_or_default(), overriding)
}

const TARGET: &str = "\0conflict target ";

/// Returns the conflict target that a marker has the text of, as columns and predicate of an index.
pub fn conflict_target(columns: &[Ident]) -> Result<Option<CreateIndex>> {
    let [marker] = columns else { return Ok(None) };
    let Some(text) = marker.value.strip_prefix(TARGET) else { return Ok(None) };
    match super::statement(&format!("CREATE UNIQUE INDEX ON t {text}"))? {
        Some(Statement::CreateIndex(index)) => Ok(Some(index)),
        _ => Err(SqlError::new(SqlState::SyntaxError, "syntax error in a conflict target")),
    }
}

/// Returns whether the tokens between parentheses are names with commas between them.
fn are_names(inside: &[&TokenWithSpan]) -> bool {
    inside.iter().enumerate().all(|(at, token)| match &token.token {
        Token::Word(_) => at % 2 == 0,
        Token::Comma => at % 2 == 1,
        _ => false,
    })
}

/// Returns the tokens of a text with conflict targets in the parser's form.
fn with_targets(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_conflict = |token: &TokenWithSpan| is_word_at(Some(token), "CONFLICT");
    if !tokens.iter().any(is_conflict) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if is_word_at(Some(token), "ON") && follows_select_list(&tokens, at) {
            out.extend(always(token));
        }
        out.push(token.clone());
        at += 1;
        if !is_conflict(token) {
            continue;
        }
        let Some((end, text)) = target_at(&tokens[at..]) else { continue };
        let span = token.span;
        let value = format!("{TARGET}{text}");
        let marker =
            Token::Word(Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword });
        let blank = || Token::Whitespace(Whitespace::Space);
        let made = [blank(), Token::LParen, marker, Token::RParen, blank()];
        out.extend(made.map(|token| TokenWithSpan::new(token, span)));
        at += end;
    }
    out
}

/// Returns whether ON CONFLICT follows the list of a SELECT without FROM, where the parser
/// takes ON for the name of a column.
fn follows_select_list(tokens: &[TokenWithSpan], on: usize) -> bool {
    let is_shown = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let next = tokens.iter().skip(on + 1).find(is_shown);
    if !is_word_at(next, "CONFLICT") {
        return false;
    }
    let mut depth = 0_usize;
    for token in tokens.iter().take(on).rev() {
        match &token.token {
            Token::RParen => depth += 1,
            Token::LParen => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            Token::SemiColon => return false,
            other if depth == 0 => {
                if is_any_word(Some(other), &["SELECT"]) {
                    return true;
                }
                let clauses = ["FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "VALUES"];
                if is_any_word(Some(other), &clauses) {
                    return false;
                }
            }
            _ => {}
        }
    }
    false
}

/// Returns the tokens of `WHERE TRUE`.
fn always(place: &TokenWithSpan) -> [TokenWithSpan; 4] {
    let word = |value: &str, keyword| {
        Token::Word(Word { value: value.to_owned(), quote_style: None, keyword })
    };
    let blank = || Token::Whitespace(Whitespace::Space);
    let made = [word("WHERE", Keyword::WHERE), blank(), word("TRUE", Keyword::TRUE), blank()];
    made.map(|token| TokenWithSpan::new(token, place.span))
}

/// Returns the number of tokens of a conflict target that the parser does not know, and its text.
fn target_at(tokens: &[TokenWithSpan]) -> Option<(usize, String)> {
    let is_shown = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let first = tokens.iter().position(|token| is_shown(&token))?;
    if tokens.get(first)?.token != Token::LParen {
        return None;
    }
    let (mut depth, mut close, mut end) = (0_usize, None, None);
    for (at, token) in tokens.iter().enumerate().skip(first) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.checked_sub(1)?;
                close = close.or((depth == 0).then_some(at));
            }
            _ if depth == 0 && is_word_at(Some(token), "DO") => {
                end = Some(at);
                break;
            }
            Token::SemiColon | Token::EOF => return None,
            _ => {}
        }
    }
    let (close, end) = (close?, end?);
    let inside: Vec<&TokenWithSpan> = tokens[first + 1..close].iter().filter(is_shown).collect();
    if are_names(&inside) && !tokens[close + 1..end].iter().any(|token| is_shown(&token)) {
        return None;
    }
    Some((end, tokens[first..end].iter().map(|token| token.token.to_string()).collect()))
}

/// Returns the tokens of a text with the clauses in the parser's form.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let tokens = merge_clauses::adapted(with_targets(assigned_parts::with_parts(tokens)));
    if !tokens.iter().any(|token| is_word_at(Some(token), "OVERRIDING")) {
        return tokens;
    }
    let shown: Vec<usize> =
        (0..tokens.len()).filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_))).collect();
    let token = |place: usize| shown.get(place).and_then(|&at| tokens.get(at));
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4);
    let mut next = 0;
    for place in 1..shown.len() {
        let marker = match () {
            () if !is_word_at(token(place), "OVERRIDING")
                || !is_word_at(token(place + 2), "VALUE") =>
            {
                continue;
            }
            () if is_word_at(token(place + 1), "SYSTEM") => SYSTEM,
            () if is_word_at(token(place + 1), "USER") => USER,
            () => continue,
        };
        let (Some(&before), Some(&start), Some(&end)) =
            (shown.get(place - 1), shown.get(place), shown.get(place + 2))
        else {
            continue;
        };
        let span = tokens[start].span;
        let marker = Token::Word(Word {
            value: marker.to_owned(),
            quote_style: Some('"'),
            keyword: Keyword::NoKeyword,
        });
        let blank = Token::Whitespace(Whitespace::Space);
        // Within the parentheses of the columns, or in parentheses of its own.
        let (kept, made) = match tokens[before].token {
            Token::RParen => (before, [Token::Comma, blank, marker, Token::RParen]),
            _ => (before + 1, [blank, Token::LParen, marker, Token::RParen]),
        };
        out.extend_from_slice(tokens.get(next..kept).unwrap_or_default());
        out.extend(made.map(|token| TokenWithSpan::new(token, span)));
        next = end + 1;
    }
    out.extend_from_slice(tokens.get(next..).unwrap_or_default());
    out
}
