//! Calls in FROM that the parser knows as expressions only: `FROM current_date`, `FROM CAST(1 AS
//! text)`. Each becomes the argument of a function without a name that could be written.

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::parse::token_edits::{TokenEdits, is_marker, keyword_of, marker};

/// The function that such a call becomes the argument of.
pub(super) const VALUE: &str = "\0value";

/// Returns the call that a function in FROM stands for.
pub fn value_in_from<'a>(name: &ObjectName, args: &'a [FunctionArg]) -> Option<&'a Expr> {
    match args {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] if is_marker(name, VALUE) => {
            Some(value)
        }
        _ => None,
    }
}

/// Returns whether a word stands for a call without parentheses.
fn is_value(word: Keyword) -> bool {
    use Keyword::{
        CURRENT_CATALOG, CURRENT_DATE, CURRENT_ROLE, CURRENT_SCHEMA, CURRENT_TIME,
        CURRENT_TIMESTAMP, CURRENT_USER, LOCALTIME, LOCALTIMESTAMP, SESSION_USER, USER,
    };
    matches!(
        word,
        CURRENT_CATALOG
            | CURRENT_DATE
            | CURRENT_ROLE
            | CURRENT_SCHEMA
            | CURRENT_TIME
            | CURRENT_TIMESTAMP
            | CURRENT_USER
            | LOCALTIME
            | LOCALTIMESTAMP
            | SESSION_USER
            | USER
    )
}

/// Returns whether a call of a word has a syntax of its own.
fn has_own_syntax(word: Keyword) -> bool {
    use Keyword::{CAST, EXTRACT, OVERLAY, POSITION, SUBSTRING, TRIM};
    matches!(word, CAST | EXTRACT | OVERLAY | POSITION | SUBSTRING | TRIM)
}

/// Where a token is: in which part of the innermost query in parentheses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClausePlace {
    Elsewhere,
    /// After SELECT.
    List,
    /// After FROM.
    From,
}

/// Returns the tokens of a text with these calls in the parser's form.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_such = |token: &TokenWithSpan| {
        let word = keyword_of(&token.token);
        is_value(word) || has_own_syntax(word)
    };
    if !tokens.iter().any(is_such) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    let mut places = vec![ClausePlace::Elsewhere];
    let mut starts_item = false;
    for at in 0..edits.len() {
        let starts = std::mem::take(&mut starts_item);
        let word = edits.keyword(at);
        let Some(place) = places.last_mut() else { break };
        match (edits.token(at), word) {
            (Some(Token::LParen), _) if starts => {
                // A join in parentheses, unless SELECT follows.
                places.push(ClausePlace::From);
                starts_item = true;
            }
            (Some(Token::LParen | Token::LBracket), _) => places.push(ClausePlace::Elsewhere),
            (Some(Token::RParen | Token::RBracket), _) => {
                places.pop();
            }
            (Some(Token::SemiColon), _) => *place = ClausePlace::Elsewhere,
            (Some(Token::Comma), _) => starts_item = *place == ClausePlace::From,
            (_, Keyword::SELECT | Keyword::SET) => *place = ClausePlace::List,
            (_, Keyword::FROM)
                if *place == ClausePlace::List
                    && edits.keyword(at.wrapping_sub(1)) != Keyword::DISTINCT =>
            {
                (*place, starts_item) = (ClausePlace::From, true);
            }
            (_, Keyword::JOIN | Keyword::LATERAL) => starts_item = *place == ClausePlace::From,
            (_, word) if ends_from(word) => *place = ClausePlace::Elsewhere,
            (_, word) if starts => wrap(&mut edits, at, word),
            _ => {}
        }
    }
    edits.finish()
}

/// Returns whether a word begins a clause after FROM.
fn ends_from(word: Keyword) -> bool {
    use Keyword::{
        EXCEPT, FETCH, FOR, GROUP, HAVING, INTERSECT, LIMIT, OFFSET, ORDER, RETURNING, UNION,
        WHERE, WINDOW,
    };
    matches!(
        word,
        EXCEPT
            | FETCH
            | FOR
            | GROUP
            | HAVING
            | INTERSECT
            | LIMIT
            | OFFSET
            | ORDER
            | RETURNING
            | UNION
            | WHERE
            | WINDOW
    )
}

/// Makes the call at a place the argument of the function.
fn wrap(edits: &mut TokenEdits, at: usize, word: Keyword) {
    let Some(own) = edits.token(at).cloned() else { return };
    let end = edits.closing(at + 1).filter(|_| edits.is(at + 1, &Token::LParen));
    if edits.is(at + 1, &Token::Period)
        || !is_value(word) && (!has_own_syntax(word) || end.is_none())
    {
        return;
    }
    match end {
        Some(end) => {
            edits.replace(at, vec![marker(VALUE), Token::LParen, own]);
            edits.replace(end, vec![Token::RParen, Token::RParen]);
        }
        None => edits.replace(at, vec![marker(VALUE), Token::LParen, own, Token::RParen]),
    }
}
