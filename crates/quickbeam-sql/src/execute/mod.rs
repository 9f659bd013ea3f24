//! Execution of plans.

mod row;
mod vector;

pub use row::{
    Context, InsertExec, MemoryBudget, OperatorBuilder, QueryProgram, Returned, StatementLimits,
    TableHandles, UpdateExec, constant_range,
};
pub use vector::can_batch;
