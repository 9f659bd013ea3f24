//! Definitions of sequences, in the parser's form.
//!
//! PostgreSQL takes a sequence's options in any order, the parser in one only, so they are sorted.
//! The parser does not know ALTER SEQUENCE … RESTART; it becomes a procedure call.

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

/// The procedure that restarts a sequence: its name, and the first value if given.
pub const RESTART: &str = "restart_sequence";

/// The tokens of a text, with the options of sequences in the parser's order.
pub fn adapted(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let about_sequences = |token: &TokenWithSpan| {
        matches!(keyword(&token.token), Some(Keyword::SEQUENCE | Keyword::IDENTITY))
    };
    if !tokens.iter().any(about_sequences) {
        return tokens;
    }
    tokens = with_restarts(tokens);
    for at in 0..tokens.len() {
        if let Some(range) = options_at(&tokens, at) {
            sort(&mut tokens, range);
        }
    }
    tokens
}

fn keyword(token: &Token) -> Option<Keyword> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// The words of the tokens from there on, without blanks: each with its place.
fn words(tokens: &[TokenWithSpan], from: usize) -> impl Iterator<Item = (usize, &Token)> {
    let rest = tokens.iter().enumerate().skip(from);
    let shown = rest.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    shown.map(|(at, token)| (at, &token.token))
}

/// Returns the options of the keyword at that token: SEQUENCE after CREATE, or IDENTITY.
fn options_at(tokens: &[TokenWithSpan], at: usize) -> Option<Range<usize>> {
    match keyword(&tokens.get(at)?.token)? {
        Keyword::SEQUENCE => {
            let earlier = tokens.get(..at)?.iter().rev();
            let before =
                earlier.map(|token| &token.token).find(|t| !matches!(t, Token::Whitespace(_)));
            let creates = [Keyword::CREATE, Keyword::TEMP, Keyword::TEMPORARY];
            if !before.and_then(keyword).is_some_and(|word| creates.contains(&word)) {
                return None;
            }
            // The name comes first, even if it is a keyword.
            let skipped = [Some(Keyword::IF), Some(Keyword::NOT), Some(Keyword::EXISTS)];
            let mut name = words(tokens, at + 1).skip_while(|(_, t)| skipped.contains(&keyword(t)));
            let start = name.next()?.0 + 1;
            let end = words(tokens, start)
                .find(|(_, token)| matches!(token, Token::SemiColon | Token::EOF));
            Some(start..end.map_or(tokens.len(), |(at, _)| at))
        }
        Keyword::IDENTITY => {
            let (open, token) = words(tokens, at + 1).next()?;
            if *token != Token::LParen {
                return None;
            }
            let close = words(tokens, open).find(|(_, token)| **token == Token::RParen)?;
            Some(open + 1..close.0)
        }
        _ => None,
    }
}

/// The place of an option in the parser's order.
fn rank(word: Keyword) -> Option<u8> {
    Some(match word {
        Keyword::AS => 1,
        Keyword::INCREMENT => 2,
        Keyword::MINVALUE => 3,
        Keyword::MAXVALUE => 4,
        Keyword::START => 5,
        Keyword::CACHE => 6,
        Keyword::CYCLE => 7,
        Keyword::OWNED => 8,
        _ => return None,
    })
}

fn sort(tokens: &mut [TokenWithSpan], range: Range<usize>) {
    let Some(part) = tokens.get_mut(range) else { return };
    let mut options: Vec<(u8, Vec<TokenWithSpan>)> = vec![(0, Vec::new())];
    let mut follows_no = false;
    for at in 0..part.len() {
        let Some(token) = part.get(at) else { break };
        let word = keyword(&token.token);
        let begins = match word {
            Some(Keyword::NO) => {
                words(part, at + 1).next().and_then(|(_, next)| rank(keyword(next)?))
            }
            Some(word) if !follows_no => rank(word),
            _ => None,
        };
        if !matches!(token.token, Token::Whitespace(_)) {
            follows_no = word == Some(Keyword::NO);
        }
        match (begins, options.last_mut()) {
            (None, Some((_, last))) => last.push(token.clone()),
            (begins, _) => options.push((begins.unwrap_or(0), vec![token.clone()])),
        }
    }
    options.sort_by_key(|(rank, _)| *rank);
    let sorted = options.into_iter().flat_map(|(_, tokens)| tokens);
    part.iter_mut().zip(sorted).for_each(|(place, token)| *place = token);
}

/// `ALTER SEQUENCE name RESTART [[WITH] value]` as `CALL restart_sequence(name [, value])`.
fn with_restarts(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match restart_at(&tokens, at) {
            Some((name, value, end)) => {
                let span = token.span;
                let word = |value: &str, keyword| {
                    Token::Word(Word { value: value.to_owned(), quote_style: None, keyword })
                };
                let blank = sqlparser::tokenizer::Whitespace::Space;
                let begin = [
                    word("CALL", Keyword::CALL),
                    Token::Whitespace(blank),
                    word(RESTART, Keyword::NoKeyword),
                    Token::LParen,
                ];
                out.extend(begin.map(|token| TokenWithSpan::new(token, span)));
                out.extend_from_slice(tokens.get(name).unwrap_or_default());
                if !value.is_empty() {
                    out.push(TokenWithSpan::new(Token::Comma, span));
                    out.extend_from_slice(tokens.get(value).unwrap_or_default());
                }
                out.push(TokenWithSpan::new(Token::RParen, Span::empty()));
                at = end;
            }
            None => {
                out.push(token.clone());
                at += 1;
            }
        }
    }
    out
}

/// Returns the tokens of the name and the value of ALTER SEQUENCE … RESTART, and its end, if it
/// begins here.
fn restart_at(tokens: &[TokenWithSpan], at: usize) -> Option<(Range<usize>, Range<usize>, usize)> {
    let mut rest = words(tokens, at).peekable();
    for expected in [Keyword::ALTER, Keyword::SEQUENCE] {
        rest.next().filter(|(_, token)| keyword(token) == Some(expected))?;
    }
    let name = rest.peek()?.0;
    let restart = rest.find(|(_, token)| {
        keyword(token) == Some(Keyword::RESTART) || matches!(token, Token::SemiColon | Token::EOF)
    })?;
    if keyword(restart.1) != Some(Keyword::RESTART) {
        return None;
    }
    rest.next_if(|(_, token)| keyword(token) == Some(Keyword::WITH));
    let is_end = |token: &Token| matches!(token, Token::SemiColon | Token::EOF);
    let value = rest.peek().map_or(tokens.len(), |(at, _)| *at);
    let end = rest.find(|(_, token)| is_end(token)).map_or(tokens.len(), |(at, _)| at);
    Some((name..restart.0, value.min(end)..end, end))
}
