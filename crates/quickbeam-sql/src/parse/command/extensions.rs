//! CREATE EXTENSION, ALTER EXTENSION and DROP EXTENSION.

use smol_str::SmolStr;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::token_cursor::TokenCursor;
use crate::error::Result;
use crate::parse::positions::{is_any_word, mentions};

/// A statement about extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionStatement {
    /// CREATE EXTENSION; true: IF NOT EXISTS.
    Create(SmolStr, bool),
    /// ALTER EXTENSION.
    Alter(SmolStr),
    /// DROP EXTENSION; true: IF EXISTS.
    Drop(Vec<SmolStr>, bool),
}

/// Returns whether a statement with these tokens is about extensions.
pub(super) fn begins(token: &dyn Fn(usize) -> Option<Token>) -> bool {
    let one_of = |at: usize, words: &[&str]| is_any_word(token(at).as_ref(), words);
    one_of(0, &["CREATE", "ALTER", "DROP"]) && one_of(1, &["EXTENSION"])
}

/// Returns whether a text may be such a statement, so that its tokens are worth a look.
pub(super) fn may_begin(first: &str, text: &str) -> bool {
    let is_definition =
        ["CREATE", "ALTER", "DROP"].iter().any(|word| first.eq_ignore_ascii_case(word));
    is_definition && mentions(text, &["extension"])
}

/// As [`begins`], of the tokens of a text.
pub(super) fn is_extension(tokens: &[TokenWithSpan]) -> bool {
    begins(&|at| tokens.get(at).map(|one| one.token.clone()))
}

impl TokenCursor<'_> {
    /// Reads a statement about extensions that began with `word`.
    pub(super) fn extension(&mut self, word: &str) -> Result<ExtensionStatement> {
        self.expect("EXTENSION")?;
        Ok(match word {
            "CREATE" => {
                let if_not_exists = self.takes("IF");
                if if_not_exists {
                    self.expect("NOT")?;
                    self.expect("EXISTS")?;
                }
                let name = self.name()?;
                self.skip_rest();
                ExtensionStatement::Create(name, if_not_exists)
            }
            "ALTER" => {
                let name = self.name()?;
                self.skip_rest();
                ExtensionStatement::Alter(name)
            }
            _ => {
                let if_exists = self.if_exists()?;
                let mut names = vec![self.name()?];
                while self.takes_token(&Token::Comma) {
                    names.push(self.name()?);
                }
                if !self.takes("CASCADE") {
                    self.takes("RESTRICT");
                }
                ExtensionStatement::Drop(names, if_exists)
            }
        })
    }
}
