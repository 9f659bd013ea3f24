//! `TABLE name` as a query, which becomes `SELECT * FROM name`.

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

fn word(value: &str, keyword: Keyword) -> Token {
    Token::Word(Word { value: value.to_owned(), quote_style: None, keyword })
}
