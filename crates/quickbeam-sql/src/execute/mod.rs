//! Execution of plans.

mod batch;
mod direct;

pub use batch::can_batch;
pub use direct::{
    Builder, Change, Context, Handles, Insert, Limits, QueryProgram, Returned, constant_range,
};
