//! Subscripts of the columns that INSERT, UPDATE and MERGE set, as markers.
//!
//! `SET a[1].f = 2` becomes `SET a."\0[1]".f = 2`: the parser takes the marker for one more name.

use sqlparser::ast::{AccessExpr, Expr, Ident};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use crate::error::{Result, SqlError, SqlState};
use crate::parse::positions::{is_any_word, is_word};

const SUBSCRIPTS: &str = "\0[";

/// Lines and columns before a subscript that are kept for the positions in it.
const FARTHEST: u64 = 100_000;

/// Returns the subscripts that a name stands for.
pub fn subscripts_of(name: &Ident) -> Result<Option<Vec<AccessExpr>>> {
    let Some(text) = name.value.strip_prefix(SUBSCRIPTS) else { return Ok(None) };
    // Blanks move the subscripts to their place in the statement.
    let Location { line, column } = name.span.start;
    let lines = "\n".repeat(line.saturating_sub(1).min(FARTHEST) as usize);
    let blanks = " ".repeat(column.saturating_sub(2).min(FARTHEST) as usize);
    match crate::parse::expression(&format!("{lines}{blanks}a[{text}"))? {
        Expr::CompoundFieldAccess { access_chain, .. } => Ok(Some(access_chain)),
        _ => Err(SqlError::new(SqlState::SyntaxError, "syntax error in a subscript")),
    }
}

/// A list of columns that a statement sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TargetList {
    /// After SET: a target begins after SET, after a comma, and in parentheses there.
    Set,
    /// The columns of INSERT.
    Columns,
}

/// Finds the tokens at which targets of assignments begin.
struct TargetFinder<'t> {
    tokens: &'t [TokenWithSpan],
    /// The tokens that are no blanks.
    shown: Vec<usize>,
}

impl TargetFinder<'_> {
    fn token(&self, place: usize) -> Option<&Token> {
        self.shown.get(place).map(|&at| &self.tokens[at].token)
    }

    fn is_name(&self, place: usize) -> bool {
        matches!(self.token(place), Some(Token::Word(_)))
    }

    /// Returns the place after the name of a table and its alias, after INSERT INTO.
    fn behind_table(&self, mut place: usize) -> usize {
        while self.is_name(place) && self.token(place + 1) == Some(&Token::Period) {
            place += 2;
        }
        place += 1;
        if self.token(place).is_some_and(|token| is_word(token, "AS")) {
            place += 2;
        }
        place
    }

    /// Returns the list that begins at a place, and its first place.
    fn list_at(&self, place: usize) -> Option<(TargetList, usize)> {
        let is = |place: usize, word: &str| self.token(place).is_some_and(|it| is_word(it, word));
        let open = match () {
            () if is(place, "SET") => return Some((TargetList::Set, place + 1)),
            () if is(place, "INSERT") && is(place + 1, "INTO") => self.behind_table(place + 2),
            () if is(place, "INSERT") => place + 1,
            () => return None,
        };
        let is_query = is_any_word(self.token(open + 1), &["SELECT", "WITH", "VALUES", "TABLE"]);
        let is_list = self.token(open) == Some(&Token::LParen) && !is_query;
        is_list.then_some((TargetList::Columns, open + 1))
    }

    /// Returns the places at which the targets of a list begin.
    fn targets(&self, list: TargetList, first: usize) -> Vec<usize> {
        let mut starts = Vec::new();
        let (mut depth, mut place, mut expects, mut is_tuple) = (0_usize, first, true, false);
        let ends = ["FROM", "WHERE", "RETURNING", "WHEN", "SELECT"];
        while let Some(token) = self.token(place) {
            match token {
                Token::EOF | Token::SemiColon => break,
                _ if depth == 0 && is_any_word(Some(token), &ends) => break,
                Token::LParen if depth == 0 && expects && list == TargetList::Set => {
                    (depth, is_tuple) = (1, true);
                }
                Token::LParen | Token::LBracket => {
                    (depth, expects) = (depth + 1, false);
                }
                Token::RParen | Token::RBracket if depth == 0 => break,
                Token::RParen | Token::RBracket => {
                    depth -= 1;
                    (is_tuple, expects) = (is_tuple && depth > 0, false);
                }
                Token::Comma => expects = depth == 0 || is_tuple && depth == 1,
                Token::Word(_) if expects => {
                    starts.push(place);
                    expects = false;
                }
                _ => expects = false,
            }
            place += 1;
        }
        starts
    }

    /// Returns the subscripts of a target, as the first and last token of each row of them.
    fn subscripts(&self, start: usize) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut place = start + 1;
        loop {
            while self.token(place) == Some(&Token::Period) && self.is_name(place + 1) {
                place += 2;
            }
            let first = place;
            while self.token(place) == Some(&Token::LBracket) {
                let mut depth = 0_usize;
                loop {
                    match self.token(place) {
                        Some(Token::LBracket | Token::LParen) => depth += 1,
                        Some(Token::RBracket | Token::RParen) => depth = depth.saturating_sub(1),
                        Some(Token::EOF | Token::SemiColon) | None => return found,
                        _ => {}
                    }
                    place += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            if place == first {
                return found;
            }
            found.push((self.shown[first], self.shown[place - 1]));
        }
    }
}

/// Returns the tokens of a text with subscripts of targets as markers.
pub(super) fn with_parts(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_start = |token: &TokenWithSpan| is_any_word(Some(&token.token), &["SET", "INSERT"]);
    let has_brackets = tokens.iter().any(|token| token.token == Token::LBracket);
    if !has_brackets || !tokens.iter().any(is_start) {
        return tokens;
    }
    let is_shown = |&at: &usize| !matches!(tokens[at].token, Token::Whitespace(_));
    let shown = (0..tokens.len()).filter(is_shown).collect();
    let finder = TargetFinder { tokens: &tokens, shown };
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for place in 0..finder.shown.len() {
        let Some((list, first)) = finder.list_at(place) else { continue };
        for start in finder.targets(list, first) {
            parts.extend(finder.subscripts(start));
        }
    }
    parts.sort_unstable();
    parts.dedup();
    let mut out = Vec::with_capacity(tokens.len());
    let mut next = 0;
    for (first, last) in parts {
        if first < next {
            continue;
        }
        out.extend_from_slice(&tokens[next..first]);
        let inside = tokens[first + 1..=last].iter().map(|token| token.token.to_string());
        let value = format!("{SUBSCRIPTS}{}", inside.collect::<String>());
        let span = tokens[first].span;
        let marker = Word { value, quote_style: Some('"'), keyword: Keyword::NoKeyword };
        out.push(TokenWithSpan::new(Token::Period, span));
        out.push(TokenWithSpan::new(Token::Word(marker), span));
        next = last + 1;
    }
    out.extend_from_slice(&tokens[next..]);
    out
}
