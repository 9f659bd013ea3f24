//! Joins.

mod buffered_rows;
mod hash_join;
mod join_keys;
mod nested_loop;

use super::Context;
use crate::error::Result;
use crate::expression::Current;

pub use hash_join::RowHashJoin;
pub use nested_loop::NestedLoop;

/// Sets the slots to NULL rows, for an outer row without a match.
fn set_nothing(context: &mut Context<'_>, slots: &[usize]) -> Result<()> {
    for &slot in slots {
        context.slot(slot)?.current = Current::Nothing;
    }
    Ok(())
}
