//! The memory budget of a statement (DIRECT-3).
//!
//! - BUDGET-1: an operator charges what it keeps, and releases the charge when it starts a new run.
//!   A subquery may run any number of times.
//! - BUDGET-2: an operator that can spill asks with [`MemoryCharge::fits`]. It spills once it keeps
//!   a sixteenth of the limit, so it does not spill row by row if others use up the budget.
//! - BUDGET-3: operators that can spill do so at seven eighths of the limit, so that those above
//!   them which cannot have the rest.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use quickbeam::invariant;
use quickbeam::query_layer::{EnvironmentExt, TemporaryFile};

use super::Context;
use crate::error::{Result, SqlError, SqlState};
use crate::types::Value;

/// The part of the limit, as its divisor, that operators which can spill leave to the others.
const RESERVED: usize = 8;
/// The least that an operator keeps before it spills, in bytes.
const LEAST: usize = 32 << 10;

/// The memory charged by one execution of a statement, and its temporary files (SPILL-1).
#[derive(Debug, Default)]
pub struct MemoryBudget {
    used: Cell<usize>,
    execution: u64,
    /// The temporary files; `None` before the first one, which short statements never have.
    files: RefCell<Option<Box<KeptFiles>>>,
}

/// The temporary files of a statement.
#[derive(Debug, Default)]
struct KeptFiles(Vec<Arc<TemporaryFile>>);

impl MemoryBudget {
    /// Makes an empty budget. Executions of one prepared statement are numbered from one.
    #[inline]
    pub fn new(execution: u64) -> MemoryBudget {
        MemoryBudget { used: Cell::new(0), execution, files: RefCell::default() }
    }

    /// Keeps a temporary file until the statement ends.
    pub(in crate::execute) fn keep_file(&self, file: Arc<TemporaryFile>) {
        self.files.borrow_mut().get_or_insert_default().0.push(file);
    }

    /// Removes a temporary file.
    pub(in crate::execute) fn drop_file(&self, file: &Weak<TemporaryFile>) {
        if let Some(files) = &mut *self.files.borrow_mut() {
            files.0.retain(|kept| Arc::as_ptr(kept) != file.as_ptr());
        }
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

    /// Returns the bytes that each of several threads may keep, so that all of it, and what is
    /// merged from it, is within the limit.
    pub(in crate::execute) fn memory_of_each(&self, threads: usize) -> usize {
        let limit = self.limits.memory.get();
        let free = (limit - limit / RESERVED).saturating_sub(self.budget.used.get());
        free / 2 / threads.max(1)
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
    /// Reports that a statement needs more memory than it may keep.
    pub(in crate::execute) fn out_of_memory(&self) -> SqlError {
        out_of_memory(self.memory.get())
    }

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
        let MemoryBudget { used, execution, .. } = context.budget;
        if self.execution == *execution {
            invariant!(BUDGET_1, used.get() >= self.kept, "{} of {}", self.kept, used.get());
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

    /// As [`keep_most`](Self::keep_most), for an operator that can spill. Returns false if it must
    /// spill what it keeps. Fails if there are no temporary files (SPILL-2).
    #[inline]
    pub fn fits(&mut self, bytes: usize, context: &Context<'_>) -> Result<bool> {
        let growth = bytes.saturating_sub(self.kept);
        let used = context.budget.used.get().saturating_add(growth);
        let limit = context.limits.memory.get();
        let spills_at = limit - limit / RESERVED;
        if used > spills_at && !may_exceed(bytes, used, context)? {
            invariant!(BUDGET_2, bytes > limit / 16, "{bytes} of {limit} bytes");
            return Ok(false);
        }
        let is_small = bytes <= LEAST.max(limit / 16);
        let leaves_room = used <= spills_at || is_small;
        let has_files = || context.catalog.environment().has_temporary_files();
        invariant!(BUDGET_3, leaves_room || !has_files(), "{used} of {limit} bytes");
        self.kept += growth;
        context.budget.used.set(used);
        Ok(true)
    }

    /// Returns the bytes charged.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Changes the charge to what is kept after spilling, whether or not it fits.
    pub fn set(&mut self, bytes: usize, context: &Context<'_>) {
        self.clear(context);
        self.kept = bytes;
        let used = &context.budget.used;
        used.set(used.get().saturating_add(bytes));
    }
}

/// Whether an operator goes on without spilling although the budget is used up (BUDGET-2).
#[cold]
fn may_exceed(bytes: usize, used: usize, context: &Context<'_>) -> Result<bool> {
    let limit = context.limits.memory.get();
    if !context.catalog.environment().has_temporary_files() {
        return if used > limit { Err(out_of_memory(limit)) } else { Ok(true) };
    }
    Ok(bytes <= LEAST.max(limit / 16))
}
