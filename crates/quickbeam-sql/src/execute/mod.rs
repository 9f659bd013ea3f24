//! Execution of plans.

mod row;
mod vector;

pub use row::{
    Context, Handles, InsertExec, Limits, MemoryBudget, OperatorBuilder, QueryProgram, Returned,
    UpdateExec, constant_range,
};
pub use vector::can_batch;
