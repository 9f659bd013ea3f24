//! Modes of transactions that the parser does not know.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parse::positions::{is_any_word, is_word, is_word_at};
use crate::parse::token_edits::{TokenEdits, marker};

/// Returns the tokens of a text with `SET LOCAL SESSION AUTHORIZATION` as an assignment.
pub(in crate::parse) fn with_authorization(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_wanted = |token: &TokenWithSpan| is_word(&token.token, "AUTHORIZATION");
    if !tokens.iter().any(is_wanted) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    for place in 0..edits.len() {
        let words = [Keyword::SET, Keyword::LOCAL, Keyword::SESSION, Keyword::AUTHORIZATION];
        if edits.has_keywords(place, &words) {
            edits.replace(place + 2, vec![marker("session_authorization")]);
            edits.replace(place + 3, vec![Token::Eq]);
        }
    }
    edits.finish()
}

/// Returns the tokens of a text without DEFERRABLE and NOT DEFERRABLE after BEGIN, START and SET
/// TRANSACTION, which have no effect: a transaction that only reads waits for none.
pub(in crate::parse) fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_mode = |token: &TokenWithSpan| is_word(&token.token, "DEFERRABLE");
    if !tokens.iter().any(is_mode) {
        return tokens;
    }
    let mut out: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let (mut begins, mut is_begin, mut is_set) = (true, false, false);
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            out.push(token);
            continue;
        }
        if std::mem::take(&mut begins) {
            is_begin = is_any_word(Some(&token.token), &["BEGIN", "START"]);
            is_set = is_word(&token.token, "SET");
        } else if std::mem::take(&mut is_set) {
            is_begin = is_any_word(Some(&token.token), &["TRANSACTION", "SESSION"]);
        }
        begins = token.token == Token::SemiColon;
        if !is_begin || !is_mode(&token) {
            out.push(token);
            continue;
        }
        let is_blank = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
        for word in ["NOT", ","] {
            while out.last().is_some_and(is_blank) {
                out.pop();
            }
            let is_comma = out.last().is_some_and(|last| last.token == Token::Comma);
            if is_word_at(out.last(), word) || word == "," && is_comma {
                out.pop();
            }
        }
    }
    out
}
