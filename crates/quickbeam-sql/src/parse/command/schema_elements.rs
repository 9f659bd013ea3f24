//! CREATE SCHEMA with elements, CREATE TABLE … AS EXECUTE and EXPLAIN EXECUTE: statements made of
//! others.

use std::ops::Range;

use smol_str::SmolStr;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::token_cursor::TokenCursor;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::positions::{is_any_word, mentions};

/// CREATE SCHEMA with statements that make what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaStatement {
    /// The text of CREATE SCHEMA alone.
    pub create: Range<usize>,
    /// The schema.
    pub name: SmolStr,
    /// AUTHORIZATION.
    pub owner: Option<SmolStr>,
    /// The texts of the elements, in the order in which PostgreSQL makes them.
    pub elements: Vec<Range<usize>>,
    /// The whole statement.
    pub text: std::sync::Arc<str>,
}

/// CREATE TABLE … AS EXECUTE, or EXPLAIN EXECUTE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementOfExecute {
    /// What comes before EXECUTE.
    pub head: Range<usize>,
    /// The prepared statement.
    pub name: SmolStr,
    /// The text of the arguments in parentheses.
    pub arguments: Option<Range<usize>>,
    /// What comes after it.
    pub tail: Range<usize>,
}

type TokenAt<'t> = dyn Fn(usize) -> Option<Token> + 't;

fn is_at(token: &TokenAt<'_>, at: usize, words: &[&str]) -> bool {
    is_any_word(token(at).as_ref(), words)
}

/// Returns the place of EXECUTE of an EXPLAIN EXECUTE with these tokens.
fn explained_place(token: &TokenAt<'_>) -> Option<usize> {
    let mut at = 1;
    if token(at)? == Token::LParen {
        let is_end = |at: &usize| matches!(token(*at), None | Some(Token::RParen | Token::EOF));
        at = (at..).find(is_end)? + 1;
    }
    while is_at(token, at, &["ANALYZE", "ANALYSE", "VERBOSE"]) {
        at += 1;
    }
    is_at(token, at, &["EXECUTE"]).then_some(at)
}

/// Returns the place of EXECUTE of a CREATE TABLE … AS EXECUTE, or an EXPLAIN EXECUTE, with these
/// tokens.
fn execute_place(token: &TokenAt<'_>) -> Option<usize> {
    if is_at(token, 0, &["EXPLAIN"]) {
        return explained_place(token);
    }
    let kinds = ["TEMP", "TEMPORARY", "LOCAL", "GLOBAL", "UNLOGGED"];
    let table = (1..4).find(|at| !is_at(token, *at, &kinds))?;
    if !is_at(token, 0, &["CREATE"]) || !is_at(token, table, &["TABLE"]) {
        return None;
    }
    let (mut at, mut depth) = (table + 1, 0_usize);
    loop {
        match token(at)? {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::SemiColon | Token::EOF => return None,
            _ if depth == 0 && is_at(token, at, &["AS"]) => {
                return is_at(token, at + 1, &["EXECUTE"]).then_some(at + 1);
            }
            _ => {}
        }
        at += 1;
    }
}

/// Returns the place of the first element of a CREATE SCHEMA with these tokens.
fn element_place(token: &TokenAt<'_>) -> Option<usize> {
    if !is_at(token, 0, &["CREATE"]) || !is_at(token, 1, &["SCHEMA"]) {
        return None;
    }
    let mut at = 2;
    loop {
        match token(at)? {
            Token::SemiColon | Token::EOF => return None,
            _ if is_at(token, at, &["CREATE", "GRANT"]) && at > 2 => return Some(at),
            _ => at += 1,
        }
    }
}

/// Returns whether a statement with these tokens is one of these.
pub(super) fn begins(token: &TokenAt<'_>) -> bool {
    execute_place(token).is_some() || element_place(token).is_some()
}

/// Returns whether a text may be such a statement, so that its tokens are worth a look.
pub(super) fn may_begin(first: &str, text: &str) -> bool {
    first.eq_ignore_ascii_case("CREATE") && mentions(text, &["schema", "execute"])
        || first.eq_ignore_ascii_case("EXPLAIN") && mentions(text, &["execute"])
}

/// Returns whether the tokens of a text are CREATE TABLE … AS EXECUTE or EXPLAIN EXECUTE.
pub(super) fn is_of_execute(tokens: &[TokenWithSpan]) -> bool {
    execute_place(&|at| tokens.get(at).map(|one| one.token.clone())).is_some()
}

/// Returns whether the tokens of a text are CREATE SCHEMA with elements.
pub(super) fn has_elements(tokens: &[TokenWithSpan]) -> bool {
    element_place(&|at| tokens.get(at).map(|one| one.token.clone())).is_some()
}

/// The kinds of elements in the order in which they are made.
fn rank(token: &dyn Fn(usize) -> Option<Token>) -> usize {
    if is_at(token, 0, &["GRANT"]) {
        return 5;
    }
    let known = ["SEQUENCE", "TABLE", "VIEW", "INDEX", "TRIGGER"];
    (1..5).find_map(|at| known.iter().position(|word| is_at(token, at, &[word]))).unwrap_or(4)
}

impl TokenCursor<'_> {
    /// Returns whether the next token begins an element, not WITH GRANT OPTION.
    fn begins_element(&self) -> bool {
        let is_option = is_any_word(self.token(self.at + 1), &["OPTION"]);
        is_any_word(self.peek(), &["CREATE"]) || is_any_word(self.peek(), &["GRANT"]) && !is_option
    }

    /// Refuses an element that names another schema.
    fn check_schema_of_element(&self, schema: &str) -> Result<()> {
        let is = |at: usize, words: &[&str]| is_any_word(self.token(at), words);
        let kind = (self.at + 1..self.at + 5).find(|at| is(*at, &["TABLE", "VIEW", "SEQUENCE"]));
        let Some(kind) = kind else { return Ok(()) };
        let name = if is(kind + 1, &["IF"]) { kind + 4 } else { kind + 1 };
        let Some(Token::Word(found)) = self.token(name) else { return Ok(()) };
        let found = match found.quote_style {
            Some(_) => found.value.clone(),
            None => found.value.to_lowercase(),
        };
        if self.token(name + 1) != Some(&Token::Period) || found == schema {
            return Ok(());
        }
        let message = format!(
            "CREATE specifies a schema ({found}) different from the one being created ({schema})"
        );
        Err(SqlError::new(SqlState::InvalidSchemaDefinition, message))
    }

    /// Reads CREATE TABLE … AS EXECUTE, after CREATE, or EXPLAIN EXECUTE, after EXPLAIN.
    pub(super) fn statement_of_execute(&mut self) -> Result<StatementOfExecute> {
        let place = execute_place(&|at| self.token(at).cloned()).ok_or_else(|| self.error())?;
        self.at = place;
        let head = 0..self.offset();
        self.at += 1;
        let name = self.name()?;
        let arguments = self.parentheses()?;
        Ok(StatementOfExecute { head, name, arguments, tail: self.skip_rest() })
    }

    /// Reads CREATE SCHEMA with elements, after CREATE.
    pub(super) fn schema_elements(&mut self) -> Result<SchemaStatement> {
        let first = element_place(&|at| self.token(at).cloned()).ok_or_else(|| self.error())?;
        self.expect("SCHEMA")?;
        if self.takes("IF") {
            self.at = first;
            let message = "CREATE SCHEMA IF NOT EXISTS cannot include schema elements";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message).at(self.offset()));
        }
        let is_named = !is_any_word(self.peek(), &["AUTHORIZATION"]);
        let name = if is_named { Some(self.name()?) } else { None };
        let owner = if self.takes("AUTHORIZATION") { Some(self.role_word()?) } else { None };
        let name = name.or_else(|| owner.clone()).ok_or_else(|| self.error())?;
        if self.at != first {
            return Err(self.error());
        }
        let create = 0..self.offset();
        let mut elements: Vec<(usize, Range<usize>)> = Vec::new();
        while self.peek().is_some_and(|token| *token != Token::SemiColon) {
            let (start, place) = (self.offset(), self.at);
            let kind = rank(&|at| self.token(place + at).cloned());
            self.check_schema_of_element(&name)?;
            self.at += 1;
            while !self.begins_element()
                && self.peek().is_some_and(|token| *token != Token::SemiColon)
            {
                self.at += 1;
            }
            elements.push((kind, start..self.offset()));
        }
        elements.sort_by_key(|(kind, _)| *kind);
        let elements = elements.into_iter().map(|(_, text)| text).collect();
        Ok(SchemaStatement { create, name, owner, elements, text: self.text.into() })
    }
}
