//! Lists within lists that the parser does not know: the column definition lists of ROWS FROM,
//! GROUPING SETS within GROUPING SETS, and keys that begin with parentheses.
//!
//! - In `ROWS FROM (f(x) AS (a int))` the list becomes a further argument of ROWS FROM: the call of
//!   a function without a name that could be written. Its argument is the text of the list.
//! - GROUPING SETS within GROUPING SETS becomes a call of such a function, and `()` in it a name.
//! - A key of ROLLUP, CUBE or GROUPING SETS such as `(a)::int` or `(SELECT 1)` gets parentheses, as
//!   the parser takes its own for those of a list.

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, Ident, SetExpr, TableAlias, TableFactor};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::clauses::arguments_of;
use crate::error::{Result, SqlError};
use crate::parse::token_edits::{TokenEdits, keyword_of, marker};

/// The function that a column definition list in ROWS FROM becomes.
const COLUMNS: &str = "\0columns";

/// The function that GROUPING SETS within GROUPING SETS becomes.
pub const NESTED_SETS: &str = "\0grouping sets";

/// The name that an empty grouping set becomes there.
const NO_KEYS: &str = "\0no keys";

/// Returns the tokens of a text with nested lists in the parser's form.
pub fn adapted(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_such = |token: &TokenWithSpan| {
        let keyword = keyword_of(&token.token);
        matches!(keyword, Keyword::ROWS | Keyword::SETS | Keyword::ROLLUP | Keyword::CUBE)
    };
    if !tokens.iter().any(is_such) {
        return tokens;
    }
    let mut edits = TokenEdits::new(tokens);
    let mut place = 0;
    while place < edits.len() {
        let pair = (edits.keyword(place), edits.keyword(place + 1));
        let end = edits.closing(place + 2).filter(|_| edits.is(place + 2, &Token::LParen));
        if matches!(pair.0, Keyword::ROLLUP | Keyword::CUBE) {
            enclose_keys(&mut edits, place + 1);
        }
        match (pair, end) {
            ((Keyword::ROWS, Keyword::FROM), Some(end)) => {
                column_lists(&mut edits, place + 3, end);
            }
            ((Keyword::GROUPING, Keyword::SETS), Some(end)) => {
                nested_sets(&mut edits, place + 3, end);
                for place in place + 1..end {
                    let keyword = edits.keyword(place);
                    if matches!(keyword, Keyword::SETS | Keyword::ROLLUP | Keyword::CUBE) {
                        enclose_keys(&mut edits, place + 1);
                    }
                }
                place = end;
            }
            _ => {}
        }
        place += 1;
    }
    edits.finish()
}

/// Puts keys of the list that opens at that place into parentheses if they begin with some and go
/// on after them, or are queries.
fn enclose_keys(edits: &mut TokenEdits, open: usize) {
    if !edits.is(open, &Token::LParen) {
        return;
    }
    let Some(end) = edits.closing(open) else { return };
    let mut first = open + 1;
    while first < end {
        let mut last = first;
        while last + 1 < end && !edits.is(last, &Token::Comma) {
            let closing = edits.closing(last).filter(|_| edits.is(last, &Token::LParen));
            last = closing.unwrap_or(last);
            if edits.is(last + 1, &Token::Comma) || last + 1 == end {
                break;
            }
            last += 1;
        }
        let is_query =
            matches!(edits.keyword(first + 1), Keyword::SELECT | Keyword::WITH | Keyword::VALUES);
        if edits.is(first, &Token::LParen) && (is_query || edits.closing(first) != Some(last)) {
            edits.replace(first, vec![Token::LParen; 2]);
            let close = edits.token(last).cloned().into_iter().chain([Token::RParen]);
            edits.replace(last, close.collect());
        }
        first = last + 2;
    }
}

fn column_lists(edits: &mut TokenEdits, mut place: usize, end: usize) {
    while place < end {
        if edits.is(place, &Token::LParen) {
            let Some(closing) = edits.closing(place) else { return };
            place = closing;
        } else if edits.keyword(place) == Keyword::AS
            && edits.is(place + 1, &Token::LParen)
            && let Some(closing) = edits.closing(place + 1)
        {
            let tokens = (place + 2..closing).filter_map(|at| edits.token(at));
            let list: Vec<String> = tokens.map(Token::to_string).collect();
            let text = Token::SingleQuotedString(list.join(" "));
            edits.replace(place, vec![Token::Comma, marker(COLUMNS), Token::LParen, text]);
            edits.cut(place + 1, closing - 1);
            place = closing;
        }
        place += 1;
    }
}

fn nested_sets(edits: &mut TokenEdits, first: usize, end: usize) {
    let mut inner = 0..0;
    for place in first..end {
        if edits.keyword(place) == Keyword::GROUPING
            && edits.keyword(place + 1) == Keyword::SETS
            && edits.is(place + 2, &Token::LParen)
            && let Some(closing) = edits.closing(place + 2)
        {
            edits.replace(place, vec![marker(NESTED_SETS)]);
            edits.remove(place + 1);
            inner = inner.start.max(place)..inner.end.max(closing);
        } else if inner.contains(&place)
            && edits.is(place, &Token::LParen)
            && edits.is(place + 1, &Token::RParen)
        {
            edits.replace(place, vec![marker(NO_KEYS)]);
            edits.remove(place + 1);
        }
    }
}

/// Whether a key stands for an empty grouping set.
pub fn is_no_keys(key: &Expr) -> bool {
    matches!(key, Expr::Identifier(Ident { value, .. }) if value == NO_KEYS)
}

/// Returns the alias with the column definition list that an argument of ROWS FROM stands for.
pub fn listed_columns(argument: &FunctionArg) -> Option<Result<TableAlias>> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(function))) = argument else {
        return None;
    };
    let name = function.name.0.first().and_then(|part| part.as_ident())?;
    let [Expr::Value(value)] = arguments_of(function).filter(|_| name.value == COLUMNS)?[..] else {
        return None;
    };
    let list = value.value.clone().into_string()?;
    Some(alias_of(&list))
}

fn alias_of(list: &str) -> Result<TableAlias> {
    let query = crate::parse::query(&format!("SELECT FROM f() AS f({list})"))?;
    let SetExpr::Select(select) = *query.body else { return Err(unreadable()) };
    match select.from.into_iter().next().map(|item| item.relation) {
        Some(TableFactor::Table { alias: Some(alias), .. }) => Ok(alias),
        _ => Err(unreadable()),
    }
}

#[cold]
fn unreadable() -> SqlError {
    SqlError::unsupported("this form of a column definition list")
}
