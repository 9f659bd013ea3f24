//! What evaluates expressions of its own within an expression: the constraints of domains, and the
//! steps of aggregates that statements have made.

mod domains;
mod folds;

pub use domains::DomainConstraints;
pub use folds::{Fold, FoldedRows};
