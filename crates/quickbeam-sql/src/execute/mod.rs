//! Execution of plans.

mod batch;
mod direct;

pub use batch::can_batch;
pub use direct::{
    Budget, Builder, Change, Context, Handles, Insert, Limits, QueryProgram, Returned,
    constant_range,
};
