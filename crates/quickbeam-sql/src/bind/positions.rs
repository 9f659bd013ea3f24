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

    /// Moves the error of an operator that does not fit its operands, or of a cast, from the first
    /// operand to the operator.
    #[cold]
    pub(super) fn at_operator(&self, ast: &Ast, error: SqlError) -> SqlError {
        let messages =
            ["operator ", "op ANY/ALL", "unequal number", "cannot cast type", "subquery has too"];
        if !messages.iter().any(|start| error.message().starts_with(start)) {
            return error;
        }
        let text = self.text.as_str();
        if let Ast::Cast { expr, kind, .. } = ast {
            return match kind {
                _ if error.position() != Some(self.position(&**expr) as usize) => error,
                ast::CastKind::DoubleColon => moved(error, {
                    first_from(text, expr.span().end, |token| *token == Token::DoubleColon)
                }),
                _ => moved(error, {
                    last_before(text, expr.span().start, |token| is_word(token, "CAST"))
                }),
            };
        }
        let (left, right, written): (&Ast, Span, String) = match ast {
            Ast::BinaryOp { left, op, right } => (left, right.span(), op.to_string()),
            Ast::UnaryOp { op, expr } => (expr, expr.span(), op.to_string()),
            Ast::AnyOp { left, compare_op, right, .. } | Ast::AllOp { left, compare_op, right } => {
                (left, right.span(), compare_op.to_string())
            }
            Ast::IsDistinctFrom(left, right) | Ast::IsNotDistinctFrom(left, right) => {
                (left, right.span(), "IS".to_owned())
            }
            Ast::Between { expr, low, .. } => (expr, low.span(), "BETWEEN".to_owned()),
            Ast::InList { expr, list, .. } => {
                let first = list.first().map_or_else(Span::empty, Spanned::span);
                (expr, first, "IN".to_owned())
            }
            Ast::InSubquery { expr, subquery, .. } => (expr, subquery.span(), "IN".to_owned()),
            Ast::Like { expr, pattern, .. } => (expr, pattern.span(), "LIKE".to_owned()),
            Ast::ILike { expr, pattern, .. } => (expr, pattern.span(), "ILIKE".to_owned()),
            Ast::SimilarTo { expr, pattern, .. } => (expr, pattern.span(), "SIMILAR".to_owned()),
            _ => return error,
        };
        if error.position() != Some(self.position(left) as usize) {
            return error;
        }
        let is_written = |token: &Token| is_word(token, &written) || token.to_string() == written;
        let found = last_before(text, right.start, is_written).map(|place| {
            // NOT belongs to an operator that is a word.
            let before = text.get(..place).unwrap_or_default().trim_end();
            let start = before.len().saturating_sub(3);
            let is_not = before.get(start..).is_some_and(|word| word.eq_ignore_ascii_case("NOT"));
            let is_of_letters = written.starts_with(char::is_alphabetic);
            if is_not && is_of_letters { start } else { place }
        });
        moved(error, found)
    }

    /// Returns that functions of a kind are not allowed in the clause that is bound.
    pub(super) fn not_allowed(&self, what: &str) -> String {
        match self.levels.last().map_or("", |level| level.clause) {
            "" => format!("{what} are not allowed here"),
            "JOIN/ON" => format!("{what} are not allowed in JOIN conditions"),
            clause => format!("{what} are not allowed in {clause}"),
        }
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

/// Returns an error with another place, if there is one.
fn moved(error: SqlError, place: Option<usize>) -> SqlError {
    match place {
        Some(place) => error.without_place().at(place),
        None => error,
    }
}
