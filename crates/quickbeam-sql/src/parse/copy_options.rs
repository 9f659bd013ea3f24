//! Options of COPY that are on or off: `ON`, `1` and their like become TRUE and FALSE, the only
//! forms that the parser takes.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::positions::is_word;

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
    for token in &mut tokens {
        match &token.token {
            Token::Whitespace(_) => {}
            value if follows_option => {
                follows_option = false;
                if let Some(is_on) = boolean(value) {
                    token.token = word_of(is_on);
                }
            }
            other => follows_option = is_word(other, "freeze") || is_word(other, "header"),
        }
    }
    tokens
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
    let (value, keyword) = if is_on { ("TRUE", Keyword::TRUE) } else { ("FALSE", Keyword::FALSE) };
    Token::Word(Word { value: value.to_owned(), quote_style: None, keyword })
}
