//! Execution of plans.

mod direct;

pub use direct::{Builder, Change, Context, Handles, Insert, Limits, QueryProgram, Returned};
