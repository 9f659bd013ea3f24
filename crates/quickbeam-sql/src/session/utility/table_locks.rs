//! LOCK TABLE.
//!
//! Above: session commands. Below: the engine's locks of databases against the writes of other
//! transactions. A table is locked by the tree of its rows, which every change of a row writes to.

use std::time::Duration;

use quickbeam::Transaction;
use quickbeam::query_layer::{DatabaseExt, TransactionExt, WriteLock};

use super::What;
use crate::catalog::{CatalogSnapshot, ObjectId, Relation};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::{TableLock, TableLockMode};
use crate::schema::Privileges;
use crate::session::Session;

use TableLockMode::{AccessShare, RowExclusive, RowShare, Share};

/// Returns the privileges of which a role needs one for the mode.
fn needed(mode: TableLockMode) -> Privileges {
    let changes = Privileges::UPDATE.and(Privileges::DELETE).and(Privileges::TRUNCATE);
    match mode {
        AccessShare => Privileges::SELECT,
        RowExclusive => changes.and(Privileges::INSERT),
        _ => changes,
    }
}

/// Refuses relations that have no rows of their own to be locked.
pub(super) fn check_lockable(relation: &Relation, name: &str) -> Result<()> {
    let kind = match relation {
        Relation::Table(_) | Relation::View(_) => return Ok(()),
        Relation::Sequence(_) => "sequences",
        Relation::Index(..) => "indexes",
    };
    let message = format!("cannot lock relation \"{name}\"");
    let detail = format!("This operation is not supported for {kind}.");
    Err(SqlError::new(SqlState::WrongObjectType, message).with_detail(detail))
}

/// Returns the lock that the engine takes for the mode. The weakest three exclude no writes: what
/// they exclude in PostgreSQL are changes of the definition.
fn write_lock(mode: TableLockMode) -> Option<WriteLock> {
    match mode {
        AccessShare | RowShare | RowExclusive => None,
        Share => Some(WriteLock::Shared),
        _ => Some(WriteLock::Exclusive),
    }
}

impl Session {
    pub(super) fn lock_tables(&self, lock: &TableLock) -> Result<()> {
        let has_only_locked = self.open.borrow().as_ref().map(|open| open.has_only_locked.get());
        let Some(has_only_locked) = has_only_locked else {
            let message = "LOCK TABLE can only be used in transaction blocks";
            return Err(SqlError::new(SqlState::NoActiveSqlTransaction, message));
        };
        let locked = self.check_relations(&lock.names, What::Lock(needed(lock.mode)))?;
        if let Some(mode) = write_lock(lock.mode) {
            for ((_, name), id) in lock.names.iter().zip(locked) {
                self.lock_relation_named(name, id, mode, lock.waits)?;
            }
            if has_only_locked {
                // What others have committed while this one waited is to be seen.
                self.begun()?.renew_snapshot();
            }
        }
        if let Some(open) = &*self.open.borrow() {
            open.has_only_locked.set(has_only_locked);
        }
        Ok(())
    }

    fn lock_relation_named(
        &self,
        name: &str,
        id: ObjectId,
        mode: WriteLock,
        waits: bool,
    ) -> Result<()> {
        let transaction = &*self.begun()?;
        let snapshot = self.database.catalog.snapshot(transaction)?;
        transaction.interrupt_on(&self.limits.cancelled);
        if waits {
            return lock_relation(transaction, &snapshot, id, mode);
        }
        let timeout = transaction.set_lock_timeout(Duration::ZERO);
        let locked = lock_relation(transaction, &snapshot, id, mode);
        transaction.set_lock_timeout(timeout);
        locked.map_err(|error| match error.state() {
            SqlState::LockNotAvailable => {
                let message = format!("could not obtain lock on relation \"{name}\"");
                SqlError::new(SqlState::LockNotAvailable, message)
            }
            _ => error,
        })
    }
}

/// Locks a table, or the tables that a view reads.
fn lock_relation(
    transaction: &Transaction,
    snapshot: &CatalogSnapshot,
    id: ObjectId,
    mode: WriteLock,
) -> Result<()> {
    match snapshot.relation_by_id(id) {
        Some(Relation::Table(_)) => {
            let handle = snapshot.handle(transaction, id)?;
            Ok(handle.database().lock_writes(transaction, mode)?)
        }
        Some(Relation::View(view)) => view
            .depends_on
            .iter()
            .filter(|other| **other != id)
            .try_for_each(|other| lock_relation(transaction, snapshot, *other, mode)),
        _ => Ok(()),
    }
}
