//! Rows and keys as bytes, and access to tables.
//!
//! Above: the executor. Below: the catalog's definitions, types, the engine.

mod audit;
mod bulk_append;
mod change_record;
mod foreign_keys;
mod recorded;
mod single_row;
mod table_writer;
mod transaction_state;
mod trigger_queue;
mod triggers;
mod unique_keys;
mod violations;

pub use crate::handle::{IndexHandle, TableHandle};
pub use crate::schema::encoding::{
    KeyBound, KeyPart, KeyRange, KeySpec, NumberAt, NumberCell, Origin, Splice, StoredRow,
    prefix_end,
};
pub(crate) use audit::Audit;
pub use bulk_append::{RowBatch, RowFailure};
pub(crate) use foreign_keys::can_refer;
pub(crate) use table_writer::check_not_null;
pub use table_writer::{Expressions, KeyConflict, TableWriter};
pub use transaction_state::{
    ConstraintKey, ConstraintModes, DeferredChecks, DeferredMark, DeferredTrigger, MovedRows,
};
pub use trigger_queue::{RowDecision, Transitions, TriggerCall, TriggerCaller};
pub(crate) use violations::{check_violation, shown_row};
