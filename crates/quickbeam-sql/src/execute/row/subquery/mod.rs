//! Answers of subqueries in expressions, which later rows use again.
//!
//! Above: query operators. Below: hash tables of keys.

mod hashed_rows;
mod hashed_subquery;
mod last_answer;

pub use hashed_rows::HashedRows;
pub use hashed_subquery::HashedSubquery;
pub use last_answer::LastAnswer;
