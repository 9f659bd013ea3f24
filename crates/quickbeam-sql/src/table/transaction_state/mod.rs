//! The state that the statements of a transaction share: deferred checks, and the rows that
//! statements have moved to other keys.
//!
//! Above: the session, which keeps both. Below: the catalog's definitions, types.

pub(super) mod deferred_checks;
mod moved_rows;

pub use deferred_checks::{
    ConstraintKey, ConstraintModes, DeferredChecks, DeferredMark, DeferredTrigger,
};
pub use moved_rows::MovedRows;
