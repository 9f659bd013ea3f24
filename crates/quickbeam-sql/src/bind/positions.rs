//! Positions in the statement's text (BIND-2).
//!
//! The parser's tree has most of them. Types, operators and keywords have no positions there and
//! are found among the tokens.

use sqlparser::ast::{self, BinaryOperator, Expr as Ast, Ident, IndexColumn, Spanned};
use sqlparser::tokenizer::{Location, Span, Token};

use super::Binder;
use super::ddl::ConstraintPlace;
use crate::catalog::DeclaredType;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{first_from, is_word, last_before};

impl Binder<'_> {
    /// Returns the position of a part of the tree.
    pub(super) fn position(&self, part: &impl Spanned) -> u32 {
        self.text.position_of(part.span())
    }

    /// Returns the position of a token.
    pub(super) fn span_start(&self, span: Span) -> u32 {
        self.text.position_of(span)
    }

    /// Returns the position of a name.
    pub(super) fn place_of(&self, name: &Ident) -> usize {
        self.text.offset_of(name.span.start)
    }

    /// Binds the target type of a cast. The type follows the value, or precedes it in a typed
    /// literal.
    pub(super) fn data_type(&self, written: &ast::DataType, cast: &Ast) -> Result<DeclaredType> {
        let declared = self.declared_type(written);
        let declared = declared.or_else(|error| self.row_type_named(written, error));
        declared.map_err(|error| {
            error.at(match cast {
                Ast::Cast { expr, .. } => self.place_of_type(written, expr.span().end),
                _ => self.position(cast) as usize,
            })
        })
    }

    /// Returns the position of a type that is written after `behind`.
    pub(super) fn place_of_type(&self, written: &ast::DataType, behind: Location) -> usize {
        if let ast::DataType::Custom(name, _) = written {
            return self.position(name) as usize;
        }
        let written = written.to_string();
        let first = written.split([' ', '(', '[']).next().unwrap_or_default();
        let found = first_from(self.text.as_str(), behind, |token| is_word(token, first));
        found.unwrap_or_else(|| self.text.offset_of(behind))
    }

    /// Returns the error for chained comparisons, which are a syntax error for all types.
    #[cold]
    pub(super) fn in_a_row(&self, op: &BinaryOperator, right: &Ast) -> SqlError {
        let written = op.to_string();
        let position = last_before(self.text.as_str(), right.span().start, |token| {
            !matches!(token, Token::Whitespace(_)) && token.to_string() == written
        });
        let message = format!("syntax error at or near \"{op}\"");
        let position = position.unwrap_or_else(|| self.position(right) as usize);
        SqlError::new(SqlState::SyntaxError, message).at(position)
    }

    /// Returns the position of the words PRIMARY KEY.
    pub(super) fn place_of_key(&self, columns: &[IndexColumn], place: ConstraintPlace) -> usize {
        let span = columns.first().map_or_else(Span::empty, Spanned::span);
        let is_key = |token: &Token| is_word(token, "PRIMARY");
        let found = match place {
            ConstraintPlace::Column => first_from(self.text.as_str(), span.end, is_key),
            ConstraintPlace::Table => last_before(self.text.as_str(), span.start, is_key),
        };
        found.unwrap_or_else(|| self.span_start(span) as usize)
    }
}
