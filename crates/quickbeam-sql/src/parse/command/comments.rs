//! COMMENT ON, which the parser crate knows for few kinds of objects.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::tokenizer::Token;

use super::token_cursor::{Name, TokenCursor};
use crate::error::{Result, SqlError, SqlState};

/// COMMENT ON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentStatement {
    /// The object.
    pub object: CommentedObject,
    /// The comment; `None` removes it.
    pub text: Option<Arc<str>>,
}

/// An object with a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommentedObject {
    /// A table, view, sequence or index: its kind and name.
    Relation(&'static str, Name),
    /// A column of a table or view.
    Column(Name, SmolStr),
    /// A constraint of a table.
    Constraint(SmolStr, Name),
    /// A trigger of a table or view.
    Trigger(SmolStr, Name),
    /// A schema.
    Schema(SmolStr),
    /// The database.
    Database(SmolStr),
    /// A role.
    Role(SmolStr),
    /// A type or domain: the word of the statement and the name.
    Type(&'static str, Name),
    /// A function or procedure: the word of the statement, the name, the texts of its types.
    Routine(&'static str, Name, Option<Vec<String>>),
    /// An extension.
    Extension(SmolStr),
    /// A collation.
    Collation(Name),
}

impl TokenCursor<'_> {
    /// Reads COMMENT ON after its first word.
    pub(super) fn comment(&mut self) -> Result<CommentStatement> {
        self.expect("ON")?;
        let object = self.commented()?;
        self.expect("IS")?;
        let text = if self.takes("NULL") { None } else { Some(self.text_literal()?) };
        // An empty comment removes the comment, as in PostgreSQL.
        let text = text.filter(|text| !text.is_empty()).map(Into::into);
        Ok(CommentStatement { object, text })
    }

    fn commented(&mut self) -> Result<CommentedObject> {
        let start = self.offset();
        if self.takes("MATERIALIZED") {
            self.expect("VIEW")?;
            return Ok(CommentedObject::Relation("materialized view", self.qualified()?));
        }
        for kind in ["table", "view", "sequence", "index"] {
            if self.takes(kind) {
                return Ok(CommentedObject::Relation(kind, self.qualified()?));
            }
        }
        for kind in ["TYPE", "DOMAIN"] {
            if self.takes(kind) {
                return Ok(CommentedObject::Type(kind, self.qualified()?));
            }
        }
        if self.takes("COLLATION") {
            return Ok(CommentedObject::Collation(self.qualified()?));
        }
        for kind in ["FUNCTION", "PROCEDURE", "ROUTINE", "AGGREGATE"] {
            if self.takes(kind) {
                let name = self.qualified()?;
                return Ok(CommentedObject::Routine(kind, name, self.signature(kind)?));
            }
        }
        let word = ["COLUMN", "CONSTRAINT", "TRIGGER", "SCHEMA", "DATABASE", "ROLE", "EXTENSION"]
            .into_iter()
            .find(|word| self.takes(word));
        Ok(match word {
            Some("COLUMN") => self.column()?,
            Some(word @ ("CONSTRAINT" | "TRIGGER")) => {
                let name = self.name()?;
                self.expect("ON")?;
                if word == "CONSTRAINT" && self.takes("DOMAIN") {
                    return Err(SqlError::unsupported("COMMENT ON CONSTRAINT of a domain"));
                }
                let relation = self.qualified()?;
                match word {
                    "TRIGGER" => CommentedObject::Trigger(name, relation),
                    _ => CommentedObject::Constraint(name, relation),
                }
            }
            Some("SCHEMA") => CommentedObject::Schema(self.name()?),
            Some("DATABASE") => CommentedObject::Database(self.name()?),
            Some("ROLE") => CommentedObject::Role(self.role_word()?),
            Some(_) => CommentedObject::Extension(self.name()?),
            None => {
                let kind = match self.peek() {
                    Some(Token::Word(word)) => word.value.to_uppercase(),
                    _ => return Err(self.error()),
                };
                return Err(SqlError::unsupported(format!("COMMENT ON {kind}")).at(start));
            }
        })
    }

    /// Reads the name of a column, after that of its relation.
    fn column(&mut self) -> Result<CommentedObject> {
        let first = self.name()?;
        if !self.takes_token(&Token::Period) {
            let message = "column name must be qualified";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        let second = self.any_word()?;
        if self.takes_token(&Token::Period) {
            return Ok(CommentedObject::Column((Some(first), second), self.any_word()?));
        }
        Ok(CommentedObject::Column((None, first), second))
    }
}
