//! CREATE, ALTER and DROP COLLATION.

use smol_str::SmolStr;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::token_cursor::{Name, TokenCursor};
use crate::error::Result;
use crate::parse::positions::{is_any_word, mentions};

/// A statement about collations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollationStatement {
    /// CREATE COLLATION; true: IF NOT EXISTS.
    Create(Name, bool, WrittenCollation),
    /// ALTER COLLATION.
    Alter(Name, CollationChange),
    /// DROP COLLATION: the names, IF EXISTS, CASCADE.
    Drop(Vec<Name>, bool, bool),
}

/// What CREATE COLLATION makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrittenCollation {
    /// FROM another one.
    From(Name),
    /// Options: their names, values and places.
    Options(Vec<(SmolStr, String, usize)>),
}

/// What ALTER COLLATION changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CollationChange {
    /// RENAME TO.
    Rename(SmolStr),
    /// SET SCHEMA.
    Schema(SmolStr),
    /// OWNER TO.
    Owner(SmolStr),
    /// REFRESH VERSION.
    Refresh,
}

/// Returns whether a text may be such a statement, so that its tokens are worth a look.
pub(super) fn may_begin(first: &str, text: &str) -> bool {
    let is_definition =
        ["CREATE", "ALTER", "DROP"].iter().any(|word| first.eq_ignore_ascii_case(word));
    is_definition && mentions(text, &["collation"])
}

/// Returns whether a statement with these tokens is about collations.
pub(super) fn is_collation(tokens: &[TokenWithSpan]) -> bool {
    let is = |at: usize, words: &[&str]| is_any_word(tokens.get(at).map(|it| &it.token), words);
    is(0, &["CREATE", "ALTER", "DROP"]) && is(1, &["COLLATION"])
}

impl TokenCursor<'_> {
    /// Reads a statement about collations that began with `word`.
    pub(super) fn collation(&mut self, word: &str) -> Result<CollationStatement> {
        self.expect("COLLATION")?;
        match word {
            "CREATE" => self.new_collation(),
            "ALTER" => self.collation_change(),
            _ => {
                let if_exists = self.if_exists()?;
                let mut names = vec![self.qualified()?];
                while self.takes_token(&Token::Comma) {
                    names.push(self.qualified()?);
                }
                let cascade = self.takes("CASCADE");
                if !cascade {
                    self.takes("RESTRICT");
                }
                Ok(CollationStatement::Drop(names, if_exists, cascade))
            }
        }
    }

    fn new_collation(&mut self) -> Result<CollationStatement> {
        let if_not_exists = self.takes("IF");
        if if_not_exists {
            self.expect("NOT")?;
            self.expect("EXISTS")?;
        }
        let name = self.qualified()?;
        if self.takes("FROM") {
            let from = WrittenCollation::From(self.qualified()?);
            return Ok(CollationStatement::Create(name, if_not_exists, from));
        }
        if !self.takes_token(&Token::LParen) {
            return Err(self.error());
        }
        let mut options = Vec::new();
        loop {
            let place = self.offset();
            let option = self.any_word()?;
            if !self.takes_token(&Token::Eq) {
                return Err(self.error());
            }
            let value = match self.peek() {
                Some(Token::SingleQuotedString(_)) => self.text_literal()?,
                Some(Token::Number(..)) => self.number()?.unwrap_or_default().to_string(),
                _ => self.any_word()?.to_string(),
            };
            options.push((option, value, place));
            if !self.takes_token(&Token::Comma) {
                break;
            }
        }
        if !self.takes_token(&Token::RParen) {
            return Err(self.error());
        }
        let options = WrittenCollation::Options(options);
        Ok(CollationStatement::Create(name, if_not_exists, options))
    }

    fn collation_change(&mut self) -> Result<CollationStatement> {
        let name = self.qualified()?;
        let change = if self.takes("RENAME") {
            self.expect("TO")?;
            CollationChange::Rename(self.name()?)
        } else if self.takes("SET") {
            self.expect("SCHEMA")?;
            CollationChange::Schema(self.name()?)
        } else if self.takes("OWNER") {
            self.expect("TO")?;
            CollationChange::Owner(self.role_word()?)
        } else {
            self.expect("REFRESH")?;
            self.expect("VERSION")?;
            CollationChange::Refresh
        };
        Ok(CollationStatement::Alter(name, change))
    }
}
