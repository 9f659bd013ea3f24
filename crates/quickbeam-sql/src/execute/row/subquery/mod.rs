//! Answers of subqueries in expressions, which later rows use again.
//!
//! Above: query operators. Below: hash tables of keys.

mod hashed_rows;
mod hashed_subquery;
mod last_answer;

use hashed_rows::HashedRows;
use hashed_subquery::HashedSubquery;
pub use last_answer::LastAnswer;

use super::Context;
use super::query::QueryProgram;
use crate::bind::SubqueryKind;
use crate::error::Result;
use crate::plan::SubqueryHash;
use crate::types::Value;

/// The hashed rows of a subquery.
#[derive(Debug)]
pub enum HashedAnswers {
    /// Those of a subquery that a value is compared with, or that has correlated keys.
    Values(Box<HashedSubquery>),
    /// Those that a row is compared with.
    Rows(Box<HashedRows>),
}

impl HashedAnswers {
    pub fn new(hash: SubqueryHash) -> HashedAnswers {
        match hash.compares_rows {
            true => HashedAnswers::Rows(Box::new(HashedRows::new(hash.keys))),
            false => HashedAnswers::Values(Box::new(HashedSubquery::new(hash))),
        }
    }

    /// Discards the rows, so that the next answer reads the subquery again.
    pub fn rewind(&mut self) {
        match self {
            HashedAnswers::Values(values) => values.rewind(),
            HashedAnswers::Rows(rows) => rows.rewind(),
        }
    }

    /// Returns the answer for the current outer row.
    pub fn answer(
        &mut self,
        kind: &SubqueryKind,
        query: &mut QueryProgram,
        context: &mut Context<'_>,
    ) -> Result<Value> {
        match self {
            HashedAnswers::Values(values) => values.answer(kind, query, context),
            HashedAnswers::Rows(rows) => rows.answer(query, context),
        }
    }
}
