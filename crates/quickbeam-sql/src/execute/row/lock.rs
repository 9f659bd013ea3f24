//! SELECT … FOR UPDATE.

use std::sync::Arc;
use std::time::Duration;

use quickbeam::Transaction;

use super::{Context, Operator};
use crate::bind::LockWait;
use crate::catalog::ObjectId;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Current, Expr};
use crate::schema::append_row_id;
use crate::table::TableHandle;

/// Keeps rows from others until the transaction ends.
#[derive(Debug)]
pub struct Lock {
    pub input: Operator,
    tables: Vec<LockedTable>,
    recheck: Option<Expr>,
    wait: LockWait,
    key: Vec<u8>,
}

/// A table whose rows are locked.
#[derive(Debug)]
pub struct LockedTable {
    /// The slot of its rows.
    pub slot: usize,
    /// The table.
    pub handle: Arc<TableHandle>,
    /// Whether its rows have their row ids (ROW-3).
    pub row_ids: bool,
}

impl Lock {
    pub fn new(
        input: Operator,
        tables: Vec<LockedTable>,
        recheck: Option<Expr>,
        wait: LockWait,
    ) -> Lock {
        Lock { input, tables, recheck, wait, key: Vec::new() }
    }

    /// Returns the slots and the tables of the rows that it locks.
    pub fn tables(&self) -> impl Iterator<Item = (usize, ObjectId)> {
        self.tables.iter().map(|locked| (locked.slot, locked.handle.table().id))
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        while self.input.next(context)? {
            if self.try_lock(context)? && context.holds(self.recheck.as_ref())? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Locks the current rows, waiting as the lock's wait option says. Returns false if a row is
    /// gone or skipped.
    fn try_lock(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if self.wait == LockWait::Wait {
            return self.lock(context);
        }
        let before = context.transaction.set_lock_timeout(Duration::ZERO);
        let locked = self.lock(context);
        context.transaction.set_lock_timeout(before);
        match locked {
            Err(error) if error.state() == SqlState::LockNotAvailable => match self.wait {
                LockWait::Skip => Ok(false),
                _ => {
                    let message = "could not obtain lock on row";
                    Err(SqlError::new(SqlState::LockNotAvailable, message))
                }
            },
            locked => locked,
        }
    }

    /// Locks the current rows and makes their newest versions current. Returns false if a row is
    /// gone.
    fn lock(&mut self, context: &mut Context<'_>) -> Result<bool> {
        for LockedTable { slot, handle, row_ids } in &self.tables {
            let Some(key) = self.input.row_key(*slot, context) else { continue };
            self.key.clear();
            self.key.extend_from_slice(key);
            let mut row = Vec::new();
            if !claim(handle, context.transaction, &self.key, &mut row)? {
                return Ok(false);
            }
            if *row_ids {
                append_row_id(&self.key, &mut row)?;
            }
            let place = context.slot(*slot)?;
            // A slot of many rows stores them; for one row, or a batch, the bytes are free.
            let many = matches!(place.current, Current::Bytes(start, end) if (start, end) != (0, place.bytes.len()));
            if !many {
                place.bytes.clear();
            }
            let start = place.bytes.len();
            place.bytes.extend_from_slice(&row);
            place.current = Current::Bytes(start, place.bytes.len());
        }
        Ok(true)
    }
}

/// Locks a row and reads its newest version into `row`. Returns false if the row is gone.
pub fn claim(
    handle: &TableHandle,
    transaction: &Transaction,
    key: &[u8],
    row: &mut Vec<u8>,
) -> Result<bool> {
    let found = handle.database().get_for_update(transaction, key, row)?;
    if found && handle.table().is_database() {
        return handle.get(transaction, key, row);
    }
    Ok(found)
}
