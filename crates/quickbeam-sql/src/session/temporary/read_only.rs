//! Changes in read-only transactions: those of temporary tables.
//!
//! A transaction of a session with temporary objects is one of the engine that may change
//! something, and refuses to: see [`TransactionExt::set_change_access`]. It is allowed while a
//! statement changes temporary tables alone.

use std::cell::Cell;

use quickbeam::Transaction;
use quickbeam::query_layer::{ChangeAccess, TransactionExt};

use crate::catalog::is_temporary_schema;
use crate::compile::Program;
use crate::error::Result;
use crate::schema::errors::read_only;
use crate::session::Session;

/// What a statement may change, until it is dropped.
pub(in crate::session) struct StatementAccess<'s> {
    transaction: &'s Transaction,
    access: ChangeAccess,
    is_changing: &'s Cell<bool>,
    was_changing: bool,
}

impl Drop for StatementAccess<'_> {
    fn drop(&mut self) {
        self.transaction.set_change_access(self.access);
        self.is_changing.set(self.was_changing);
    }
}

impl Session {
    /// Whether a read-only transaction has to be able to change something.
    pub(in crate::session) fn may_change_temporary(&self) -> bool {
        self.temporary.is_used.get()
    }

    /// Allows the changes of a read-only transaction, unless the engine has it as such.
    pub(in crate::session) fn allow_temporary<'s>(
        &'s self,
        transaction: &'s Transaction,
    ) -> StatementAccess<'s> {
        self.statement_access(transaction, ChangeAccess::Allowed)
    }

    fn statement_access<'s>(
        &'s self,
        transaction: &'s Transaction,
        access: ChangeAccess,
    ) -> StatementAccess<'s> {
        let is_changing = &self.temporary.is_changing;
        StatementAccess {
            transaction,
            access: transaction.set_change_access(access),
            is_changing,
            was_changing: is_changing.replace(true),
        }
    }

    /// Refuses a change in a read-only transaction, but one of temporary tables alone.
    #[cold]
    pub(in crate::session) fn access_in_read_only<'s>(
        &'s self,
        work: &Program,
        transaction: &'s Transaction,
    ) -> Result<StatementAccess<'s>> {
        let is_temporary =
            work.changed_table().is_some_and(|table| is_temporary_schema(&table.schema));
        if is_temporary && self.may_change_temporary() {
            return Ok(self.allow_temporary(transaction));
        }
        match work.changes() {
            Some(what) => Err(read_only(what)),
            None => Ok(self.statement_access(transaction, ChangeAccess::Refused)),
        }
    }
}
