//! ALTER … RENAME and ALTER … SET SCHEMA of tables, views, sequences and indexes, and ALTER
//! CONSTRAINT.
//!
//! PostgreSQL takes them apart from other changes of a table, and ALTER TABLE takes every kind of
//! relation.

use smol_str::SmolStr;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::token_cursor::{Name, TokenCursor};
use crate::catalog::ConstraintTiming;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::positions::{is_any_word, mentions};

/// A relation gets another name or schema, or one of its columns another name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationStatement {
    /// The kind of relation that the statement names, as messages have it.
    pub kind: &'static str,
    /// The relation.
    pub name: Name,
    /// IF EXISTS.
    pub if_exists: bool,
    /// What changes.
    pub change: RelationChange,
}

/// What changes of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelationChange {
    /// SET SCHEMA.
    Schema(SmolStr),
    /// RENAME TO.
    Rename(SmolStr),
    /// RENAME COLUMN … TO.
    RenameColumn(SmolStr, SmolStr),
    /// ALTER CONSTRAINT.
    Constraint(SmolStr, ConstraintTiming),
}

/// Returns whether a statement with these tokens is one of these.
pub(super) fn begins(token: &dyn Fn(usize) -> Option<Token>) -> bool {
    let one_of = |at: usize, words: &[&str]| is_any_word(token(at).as_ref(), words);
    if !one_of(0, &["ALTER"]) {
        return false;
    }
    // A view reaches the parser as a table of another kind.
    let is_pair = one_of(1, &["MATERIALIZED"]) && one_of(2, &["VIEW"])
        || one_of(1, &["ICEBERG"]) && one_of(2, &["TABLE"]);
    if !is_pair && !one_of(1, &["TABLE", "VIEW", "SEQUENCE", "INDEX"]) {
        return false;
    }
    let mut at = 2 + usize::from(is_pair);
    at += if one_of(at, &["IF"]) { 2 } else { 0 };
    at += usize::from(one_of(at, &["ONLY"])) + 1;
    while token(at) == Some(Token::Period) {
        at += 2;
    }
    at += usize::from(token(at) == Some(Token::Mul));
    one_of(at, &["SET"]) && one_of(at + 1, &["SCHEMA"])
        || one_of(at, &["RENAME"]) && !one_of(at + 1, &["CONSTRAINT"])
        || one_of(at, &["ALTER"]) && one_of(at + 1, &["CONSTRAINT"]) && one_of(1, &["TABLE"])
}

/// Returns whether a text may be such a statement, so that its tokens are worth a look.
pub(super) fn may_begin(first: &str, text: &str) -> bool {
    first.eq_ignore_ascii_case("ALTER") && mentions(text, &["schema", "rename", "constraint"])
}

/// As [`begins`], of the tokens of a text.
pub(super) fn is_relation(tokens: &[TokenWithSpan]) -> bool {
    begins(&|at| tokens.get(at).map(|one| one.token.clone()))
}

impl TokenCursor<'_> {
    /// Reads such a statement, after ALTER.
    pub(super) fn relation_statement(&mut self) -> Result<RelationStatement> {
        let is_materialized = self.takes("MATERIALIZED");
        let kind = ["table", "view", "sequence", "index"].into_iter().find(|it| self.takes(it));
        let kind = kind.ok_or_else(|| self.error())?;
        let kind = if is_materialized { "materialized view" } else { kind };
        let if_exists = self.if_exists()?;
        self.takes("ONLY");
        let name = self.qualified()?;
        self.takes_token(&Token::Mul);
        let change = if kind != "index" && self.takes("SET") {
            self.expect("SCHEMA")?;
            RelationChange::Schema(self.name()?)
        } else if kind == "table" && self.takes("ALTER") {
            self.expect("CONSTRAINT")?;
            RelationChange::Constraint(self.name()?, self.timing()?)
        } else {
            self.expect("RENAME")?;
            match self.takes("TO") {
                true => RelationChange::Rename(self.name()?),
                false => self.renamed_column()?,
            }
        };
        Ok(RelationStatement { kind, name, if_exists, change })
    }

    /// Reads when a constraint is checked.
    fn timing(&mut self) -> Result<ConstraintTiming> {
        let (mut deferrable, mut is_deferred) = (None, None);
        loop {
            let place = self.offset();
            let is_not = self.takes("NOT");
            if is_not || self.takes("DEFERRABLE") {
                if is_not {
                    self.expect("DEFERRABLE")?;
                }
                deferrable = Some(!is_not);
            } else if self.takes("INITIALLY") {
                let is_late = self.takes("DEFERRED");
                if !is_late {
                    self.expect("IMMEDIATE")?;
                }
                is_deferred = Some(is_late);
            } else {
                return Ok(match (deferrable, is_deferred) {
                    (_, Some(true)) => ConstraintTiming::Deferred,
                    (Some(true), _) => ConstraintTiming::Immediate,
                    _ => ConstraintTiming::NotDeferrable,
                });
            }
            if deferrable == Some(false) && is_deferred == Some(true) {
                let message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE";
                return Err(SqlError::new(SqlState::SyntaxError, message).at(place));
            }
        }
    }

    fn renamed_column(&mut self) -> Result<RelationChange> {
        self.takes("COLUMN");
        let from = self.name()?;
        self.expect("TO")?;
        Ok(RelationChange::RenameColumn(from, self.name()?))
    }
}
