//! Statements about how PostgreSQL stores a relation: `ALTER TABLE … SET STATISTICS`,
//! `… SET STORAGE`, `… CLUSTER ON`, `ALTER INDEX … SET (…)`; and CLUSTER.
//!
//! Quickbeam has no such choices. It checks the names and changes nothing, so that definitions
//! written for PostgreSQL run.

use smol_str::SmolStr;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::Command;
use super::token_cursor::{Name, TokenCursor};
use crate::error::Result;
use crate::parse::positions::{is_any_word, mentions};

/// A statement about the storage of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageHint {
    /// `TABLE` or `INDEX`.
    pub kind: &'static str,
    /// The relation.
    pub name: Name,
    /// IF EXISTS.
    pub if_exists: bool,
    /// The columns that it names.
    pub columns: Vec<SmolStr>,
    /// The indexes that it names.
    pub indexes: Vec<SmolStr>,
}

/// Returns whether a statement with these tokens is about the storage of a relation.
pub(super) fn begins(token: &dyn Fn(usize) -> Option<Token>) -> bool {
    let one_of = |at: usize, words: &[&str]| is_any_word(token(at).as_ref(), words);
    if !one_of(0, &["ALTER"]) || !one_of(1, &["TABLE", "INDEX"]) {
        return false;
    }
    let is_index = one_of(1, &["INDEX"]);
    let mut at = if one_of(2, &["IF"]) { 4 } else { 2 };
    at += usize::from(one_of(at, &["ONLY"])) + 1;
    while token(at) == Some(Token::Period) {
        at += 2;
    }
    if one_of(at, &["ALTER"]) {
        at += if one_of(at + 1, &["COLUMN"]) { 3 } else { 2 };
        let is_set = one_of(at, &["SET"]);
        let has_parameters = token(at + 1) == Some(Token::LParen);
        return is_set
            && (one_of(at + 1, &["STATISTICS", "STORAGE", "COMPRESSION"]) || has_parameters)
            || one_of(at, &["RESET"]);
    }
    match () {
        () if one_of(at, &["CLUSTER"]) => one_of(at + 1, &["ON"]),
        () if one_of(at, &["RESET"]) => true,
        () if one_of(at, &["SET"]) => {
            one_of(at + 1, &["WITHOUT", "TABLESPACE", "ACCESS"])
                || is_index && token(at + 1) == Some(Token::LParen)
        }
        () => false,
    }
}

/// Returns whether a text may be such a statement, so that its tokens are worth a look.
pub(super) fn may_begin(first: &str, text: &str) -> bool {
    first.eq_ignore_ascii_case("ALTER") && mentions(text, &["set", "cluster"])
}

/// As [`begins`], of the tokens of a text.
pub(super) fn is_hint(tokens: &[TokenWithSpan]) -> bool {
    begins(&|at| tokens.get(at).map(|one| one.token.clone()))
}

impl TokenCursor<'_> {
    /// Reads a statement about storage, after ALTER.
    pub(super) fn storage_hint(&mut self) -> Result<StorageHint> {
        let kind = if self.takes("TABLE") { "TABLE" } else { "INDEX" };
        if kind == "INDEX" {
            self.expect("INDEX")?;
        }
        let if_exists = self.if_exists()?;
        self.takes("ONLY");
        let name = self.qualified()?;
        self.takes_token(&Token::Mul);
        let (columns, indexes) = (Vec::new(), Vec::new());
        let mut hint = StorageHint { kind, name, if_exists, columns, indexes };
        loop {
            self.storage_action(&mut hint)?;
            if !self.takes_token(&Token::Comma) {
                return Ok(hint);
            }
        }
    }

    /// CLUSTER: with an index it is a hint of storage, without one there is nothing but the table.
    pub(super) fn cluster(&mut self) -> Result<Command> {
        if self.parentheses()?.is_none() {
            self.takes("VERBOSE");
        }
        if self.peek().is_none_or(|token| *token == Token::SemiColon) {
            return Ok(Command::Maintain("CLUSTER", Vec::new()));
        }
        let first = self.qualified()?;
        let (name, index) = if self.takes("USING") {
            (first, self.name()?)
        } else if first.0.is_none() && self.takes("ON") {
            // The form of PostgreSQL before 8.3.
            (self.qualified()?, first.1)
        } else {
            return Ok(Command::Maintain("CLUSTER", vec![first]));
        };
        let (columns, indexes) = (Vec::new(), vec![index]);
        let hint = StorageHint { kind: "TABLE", name, if_exists: false, columns, indexes };
        Ok(Command::StorageHint(hint))
    }

    fn storage_action(&mut self, hint: &mut StorageHint) -> Result<()> {
        if self.takes("CLUSTER") {
            self.expect("ON")?;
            hint.indexes.push(self.name()?);
            return Ok(());
        }
        let is_column = self.takes("ALTER");
        if is_column {
            self.takes("COLUMN");
            if self.number()?.is_none() {
                hint.columns.push(self.name()?);
            }
        }
        let resets = self.takes("RESET");
        if !resets {
            self.expect("SET")?;
        }
        if self.parentheses()?.is_some() {
            return Ok(());
        }
        match () {
            () if resets => Err(self.error()),
            () if is_column && self.takes("STATISTICS") => {
                self.number()?.map(drop).ok_or_else(|| self.error())
            }
            () if is_column && (self.takes("STORAGE") || self.takes("COMPRESSION")) => {
                self.any_word().map(drop)
            }
            () if !is_column && self.takes("WITHOUT") => match self.takes("OIDS") {
                true => Ok(()),
                false => self.expect("CLUSTER"),
            },
            () if !is_column && self.takes("TABLESPACE") => self.name().map(drop),
            () if !is_column && self.takes("ACCESS") => {
                self.expect("METHOD")?;
                self.name().map(drop)
            }
            () => Err(self.error()),
        }
    }
}
