//! LOCK TABLE.

use sqlparser::tokenizer::Token;

use super::Command;
use super::token_cursor::{Name, TokenCursor};
use crate::error::Result;

/// LOCK TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLock {
    /// Tables and views.
    pub names: Vec<Name>,
    /// The mode.
    pub mode: TableLockMode,
    /// False with NOWAIT.
    pub waits: bool,
}

/// A mode of LOCK TABLE, by its name in PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TableLockMode {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

impl TableLockMode {
    const NAMES: [(&'static str, TableLockMode); 8] = [
        ("ACCESS SHARE", TableLockMode::AccessShare),
        ("ROW SHARE", TableLockMode::RowShare),
        ("ROW EXCLUSIVE", TableLockMode::RowExclusive),
        ("SHARE UPDATE EXCLUSIVE", TableLockMode::ShareUpdateExclusive),
        ("SHARE", TableLockMode::Share),
        ("SHARE ROW EXCLUSIVE", TableLockMode::ShareRowExclusive),
        ("EXCLUSIVE", TableLockMode::Exclusive),
        ("ACCESS EXCLUSIVE", TableLockMode::AccessExclusive),
    ];
}

impl TokenCursor<'_> {
    pub(super) fn lock(&mut self) -> Result<Command> {
        self.takes("TABLE");
        let mut names = Vec::new();
        loop {
            self.takes("ONLY");
            names.push(self.qualified()?);
            self.takes_token(&Token::Mul);
            if !self.takes_token(&Token::Comma) {
                break;
            }
        }
        let mode =
            if self.takes("IN") { self.lock_mode()? } else { TableLockMode::AccessExclusive };
        let waits = !self.takes("NOWAIT");
        Ok(Command::Lock(TableLock { names, mode, waits }))
    }

    fn lock_mode(&mut self) -> Result<TableLockMode> {
        let start = self.at;
        while !self.takes("MODE") {
            self.any_word()?;
        }
        let words: Vec<String> = self
            .tokens
            .get(start..self.at - 1)
            .unwrap_or_default()
            .iter()
            .map(|one| one.token.to_string().to_uppercase())
            .collect();
        let words = words.join(" ");
        let mode = TableLockMode::NAMES.iter().find(|(name, _)| *name == words);
        mode.map(|(_, mode)| *mode).ok_or_else(|| {
            self.at = start;
            self.error()
        })
    }
}
