//! Select lists without items, which the parser knows before FROM alone: a query without FROM gets
//! one of a row without a name.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace, Word};

/// What may follow an empty select list besides FROM.
const FOLLOWING: [Keyword; 12] = [
    Keyword::WHERE,
    Keyword::UNION,
    Keyword::INTERSECT,
    Keyword::EXCEPT,
    Keyword::LIMIT,
    Keyword::ORDER,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::FETCH,
    Keyword::OFFSET,
    Keyword::FOR,
    Keyword::WINDOW,
];

fn ends_list(token: Option<&Token>) -> bool {
    match token {
        None | Some(Token::SemiColon | Token::EOF | Token::RParen) => true,
        Some(Token::Word(word)) => word.quote_style.is_none() && FOLLOWING.contains(&word.keyword),
        Some(_) => false,
    }
}

/// Returns the tokens of a text in which each query has a select list or FROM.
pub fn adapted(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut empty: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_select = matches!(&token.token, Token::Word(word)
            if word.keyword == Keyword::SELECT && word.quote_style.is_none());
        if is_select {
            let mut rest = tokens.iter().skip(at + 1).map(|next| &next.token);
            if ends_list(rest.find(|next| !matches!(next, Token::Whitespace(_)))) {
                empty.push(at);
            }
        }
    }
    for at in empty.into_iter().rev() {
        let span = tokens[at].span;
        let word = |value: &str, keyword, quote_style| {
            Token::Word(Word { value: value.to_owned(), quote_style, keyword })
        };
        let blank = || Token::Whitespace(Whitespace::Space);
        let made = [
            blank(),
            word("FROM", Keyword::FROM, None),
            blank(),
            Token::LParen,
            word("VALUES", Keyword::VALUES, None),
            Token::LParen,
            Token::Number("0".to_owned(), false),
            Token::RParen,
            Token::RParen,
            blank(),
            word("AS", Keyword::AS, None),
            blank(),
            word("?row?", Keyword::NoKeyword, Some('"')),
        ];
        let made = made.map(|token| TokenWithSpan::new(token, span));
        tokens.splice(at + 1..at + 1, made);
    }
    tokens
}
