//! Clauses of queries that the parser does not know.
//!
//! `TABLE name` as a query becomes `SELECT * FROM name`. FOR NO KEY UPDATE and FOR KEY SHARE become
//! FOR UPDATE and FOR SHARE: a row has one lock, whatever of it is to change.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

/// Words that a query may follow.
const BEFORE: [Keyword; 7] = [
    Keyword::UNION,
    Keyword::ALL,
    Keyword::DISTINCT,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
    Keyword::AS,
    Keyword::EXPLAIN,
];

/// Returns the tokens of a text, with `TABLE name` as a SELECT where a query may stand.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let tokens = with_plain_locks(tokens);
    let is_table = |token: &TokenWithSpan| {
        matches!(&token.token, Token::Word(word)
            if word.quote_style.is_none() && word.keyword == Keyword::TABLE)
    };
    let mut begins = true;
    let mut places = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if begins && is_table(token) {
            places.push(at);
        }
        begins = match &token.token {
            Token::Whitespace(_) => begins,
            Token::SemiColon | Token::LParen => true,
            Token::Word(word) => word.quote_style.is_none() && BEFORE.contains(&word.keyword),
            _ => false,
        };
    }
    if places.is_empty() {
        return tokens;
    }
    let mut out = Vec::with_capacity(tokens.len() + places.len() * 4);
    for (at, token) in tokens.into_iter().enumerate() {
        if !places.contains(&at) {
            out.push(token);
            continue;
        }
        let blank = || Token::Whitespace(Whitespace::Space);
        let made = [
            word("SELECT", Keyword::SELECT),
            blank(),
            Token::Mul,
            blank(),
            word("FROM", Keyword::FROM),
        ];
        out.extend(made.map(|made| TokenWithSpan::new(made, token.span)));
    }
    out
}

/// Removes the words NO KEY and KEY from row locks.
fn with_plain_locks(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_key = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::KEY);
    if !tokens.iter().any(is_key) {
        return tokens;
    }
    let words: Vec<(usize, Keyword)> = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)))
        .map(|(at, token)| match &token.token {
            Token::Word(word) if word.quote_style.is_none() => (at, word.keyword),
            _ => (at, Keyword::NoKeyword),
        })
        .collect();
    use Keyword::{FOR, KEY, NO, SHARE, UPDATE};
    let keywords = |from: usize, count: usize| words.get(from..from + count).unwrap_or_default();
    let mut gone: Vec<usize> = Vec::new();
    for from in 0..words.len() {
        match keywords(from, 4) {
            [(_, FOR), (no, NO), (key, KEY), (_, UPDATE)] => gone.extend([*no, *key]),
            [(_, FOR), (key, KEY), (_, SHARE), ..] => gone.push(*key),
            _ => {
                if let [(_, FOR), (key, KEY), (_, SHARE)] = keywords(from, 3) {
                    gone.push(*key);
                }
            }
        }
    }
    let mut at = 0;
    tokens.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
    tokens
}

fn word(value: &str, keyword: Keyword) -> Token {
    Token::Word(Word { value: value.to_owned(), quote_style: None, keyword })
}
