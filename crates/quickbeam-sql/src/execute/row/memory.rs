//! The memory budget of a statement (DIRECT-3).
//!
//! - BUDGET-1: an operator charges what it keeps, and releases the charge when it starts a new run.
//!   A subquery may run any number of times.

use std::cell::Cell;

use super::Context;
use crate::error::{Result, SqlError, SqlState};
use crate::types::Value;

/// The memory charged by one execution of a statement.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    used: Cell<usize>,
    execution: u64,
}

impl MemoryBudget {
    /// Makes an empty budget. Executions of one prepared statement are numbered from one.
    pub fn new(execution: u64) -> MemoryBudget {
        MemoryBudget { used: Cell::new(0), execution }
    }
}

impl Context<'_> {
    /// Charges bytes until the statement ends.
    #[inline]
    pub fn keep(&self, bytes: usize) -> Result<()> {
        let used = self.budget.used.get().saturating_add(bytes);
        self.budget.used.set(used);
        if used > self.limits.memory.get() {
            return Err(out_of_memory(self.limits.memory.get()));
        }
        Ok(())
    }

    /// As [`keep`](Self::keep), of values.
    pub fn keep_values(&self, values: &[Value]) -> Result<()> {
        self.keep(bytes_of(values))
    }
}

#[cold]
fn out_of_memory(limit: usize) -> SqlError {
    let message = format!("the statement needs more memory than its budget of {limit} bytes");
    SqlError::new(SqlState::OutOfMemory, message)
}

impl super::StatementLimits {
    /// Refuses more bytes than a statement may keep.
    pub fn check_memory(&self, bytes: usize) -> Result<()> {
        let limit = self.memory.get();
        if bytes > limit { Err(out_of_memory(limit)) } else { Ok(()) }
    }
}

/// Returns the memory that values take.
pub fn bytes_of(values: &[Value]) -> usize {
    values.iter().map(Value::memory).sum()
}

/// The memory charged by one operator.
#[derive(Debug, Default)]
pub struct MemoryCharge {
    execution: u64,
    kept: usize,
}

impl MemoryCharge {
    /// Releases the charge.
    pub fn clear(&mut self, context: &Context<'_>) {
        let MemoryBudget { used, execution } = &context.budget;
        if self.execution == *execution {
            used.set(used.get().saturating_sub(self.kept));
        }
        *self = MemoryCharge { execution: *execution, kept: 0 };
    }

    /// Charges bytes.
    #[inline]
    pub fn keep(&mut self, bytes: usize, context: &Context<'_>) -> Result<()> {
        self.kept += bytes;
        context.keep(bytes)
    }

    /// As [`keep`](Self::keep), of values.
    pub fn keep_values(&mut self, values: &[Value], context: &Context<'_>) -> Result<()> {
        self.keep(bytes_of(values), context)
    }

    /// Charges the high-water mark of a structure that grows and shrinks. `bytes` is its present
    /// size.
    pub fn keep_most(&mut self, bytes: usize, context: &Context<'_>) -> Result<()> {
        self.keep(bytes.saturating_sub(self.kept), context)
    }
}
