//! OVERRIDING SYSTEM VALUE and OVERRIDING USER VALUE, which the parser does not know, as a marker
//! at the end of INSERT's columns.
//!
//! A marker is a quoted name that begins with the character 0, which no name contains.

use sqlparser::ast::ObjectName;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

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

fn is_word(token: Option<&TokenWithSpan>, wanted: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(word))
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// Returns the tokens of a text with OVERRIDING in the parser's form.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| is_word(Some(token), "OVERRIDING")) {
        return tokens;
    }
    let shown: Vec<usize> =
        (0..tokens.len()).filter(|&at| !matches!(tokens[at].token, Token::Whitespace(_))).collect();
    let token = |place: usize| shown.get(place).and_then(|&at| tokens.get(at));
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4);
    let mut next = 0;
    for place in 1..shown.len() {
        let marker = match () {
            () if !is_word(token(place), "OVERRIDING") || !is_word(token(place + 2), "VALUE") => {
                continue;
            }
            () if is_word(token(place + 1), "SYSTEM") => SYSTEM,
            () if is_word(token(place + 1), "USER") => USER,
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
