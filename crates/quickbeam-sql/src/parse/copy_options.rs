//! Options of COPY in the forms that the parser takes. `ON`, `1` and their like become TRUE and
//! FALSE, `HEADER MATCH` an encoding that no statement names, and `FORCE_QUOTE *` a list of one
//! name.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

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
