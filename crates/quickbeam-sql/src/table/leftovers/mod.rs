//! What statements leave for the rest of their transaction: deferred checks, and the rows that they
//! have moved.
//!
//! Above: the session, which keeps both. Below: the catalog's definitions, types.

pub(super) mod deferred;
mod moved_rows;

pub use deferred::{ConstraintKey, ConstraintModes, DeferredChecks, DeferredMark, DeferredTrigger};
pub use moved_rows::MovedRows;
