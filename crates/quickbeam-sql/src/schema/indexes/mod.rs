//! What indexes are made of besides columns.

mod index_expressions;
mod operator_class;

pub use index_expressions::{EXPRESSIONS, IndexExpression, IndexPredicate};
pub use operator_class::{InvertedOperator, OperatorClass, OperatorClasses};
