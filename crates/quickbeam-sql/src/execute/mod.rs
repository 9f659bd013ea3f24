//! Execution of plans.

mod dml;
mod hash;
mod row;
mod spill;
mod system_rows;
mod vector;

pub use row::{
    ChangingWithExec, Context, InsertExec, InsteadExec, KeptKeys, KeptRow, MemoryBudget, MergeExec,
    OperatorBuilder, QueryProgram, Returned, RowCounts, StatementLimits, TableHandles, UpdateExec,
    constant_range, values_memory,
};
pub use vector::{can_batch, shared_scan};
