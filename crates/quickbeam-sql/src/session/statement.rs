//! Prepared statements.

use std::sync::Arc;

use super::Connection;
use super::connection::Session;
use super::control::Control;
use super::prepare::{Look, Prepared, Work};
use super::rows::Rows;
use crate::bind::OutputColumn;
use crate::catalog::CatalogSnapshot;
use crate::error::Result;
use crate::plan::Way;
use crate::types::{DataType, Value};

/// A prepared statement. It can be used with any connection to its database, by one thread at a time.
pub struct Statement {
    pub(super) text: Arc<str>,
    pub(super) prepared: Option<Prepared>,
    /// The version of the catalog that it was prepared for.
    pub(super) version: u64,
    /// What the session wanted of the planner then.
    pub(super) way: Way,
    /// What it steers; the outer `None`: nobody has looked yet.
    pub(super) control: Option<Option<Control>>,
}

impl Statement {
    pub(super) fn new(text: &str) -> Statement {
        Statement { text: text.into(), prepared: None, version: 0, way: Way::Auto, control: None }
    }

    /// Whether it is a COPY, which is not tried again by itself (COPY-2).
    pub(super) fn is_copy(&self) -> bool {
        let work = self.prepared.as_ref().map(|prepared| &prepared.work);
        matches!(work, Some(Work::CopyFrom(_) | Work::CopyTo(..)))
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names and types of the answer's columns; none if it has no answer.
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        self.prepared.as_ref().map_or(&[], |prepared| &prepared.columns)
    }

    /// Types of the parameters.
    #[must_use]
    pub fn parameters(&self) -> &[DataType] {
        self.prepared.as_ref().map_or(&[], |prepared| &prepared.parameters)
    }

    /// Executes it: how many rows it inserted, changed, removed or, being a query, delivered.
    pub fn execute(&mut self, connection: &mut Connection, parameters: &[Value]) -> Result<u64> {
        connection.session.execute(self, parameters)
    }

    /// Executes it and delivers its rows.
    pub fn query<'c>(
        &'c mut self,
        connection: &'c mut Connection,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        connection.session.query(self, parameters)
    }

    /// As [`execute`](Self::execute), as part of a transaction of the engine, which the caller commits. The transaction may be used for key/value
    /// calls before and after; what this statement did commits and rolls back with it.
    pub fn execute_in(
        &mut self,
        connection: &mut Connection,
        transaction: &quickbeam::Transaction,
        parameters: &[Value],
    ) -> Result<u64> {
        connection.session.execute_in(self, transaction, parameters)
    }

    /// As [`query`](Self::query), in a transaction of the engine.
    pub fn query_in<'c>(
        &'c mut self,
        connection: &'c mut Connection,
        transaction: &'c quickbeam::Transaction,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        connection.session.query_in(self, transaction, parameters)
    }
}

impl Session {
    /// Makes sure that a statement is prepared for what the transaction sees (SESSION-2).
    #[inline]
    pub(super) fn prepare_for<'s>(
        &self,
        statement: &'s mut Statement,
        transaction: &quickbeam::Transaction,
    ) -> Result<&'s mut Prepared> {
        let version = self.database.catalog.version(transaction)?;
        let is_kept = statement.version == version && statement.way == self.way();
        if !is_kept || !self.still_fits(statement.prepared.as_mut(), transaction) {
            self.prepare_anew(statement, transaction)?;
        }
        statement.prepared.as_mut().ok_or_else(|| crate::error::SqlError::internal("not prepared"))
    }

    /// Whether it is prepared, for about as much as there is.
    #[inline]
    fn still_fits(
        &self,
        prepared: Option<&mut Prepared>,
        transaction: &quickbeam::Transaction,
    ) -> bool {
        let Some(prepared) = prepared else { return false };
        // EXPLAIN says how the statement would be planned now, and counts anew.
        if matches!(prepared.work, Work::Explain(..)) {
            return false;
        }
        let (Some(planned), Some(snapshot)) = (&mut prepared.planned_for, &prepared.snapshot)
        else {
            return true;
        };
        !planned.is_due() || !self.look(transaction, snapshot).is_outgrown(planned)
    }

    /// What the binder and the planner ask about the database, as the transaction sees it.
    pub(super) fn look<'l>(
        &'l self,
        transaction: &'l quickbeam::Transaction,
        snapshot: &'l Arc<CatalogSnapshot>,
    ) -> Look<'l> {
        Look { database: &self.database, transaction, snapshot, way: self.way() }
    }

    #[cold]
    fn prepare_anew(
        &self,
        statement: &mut Statement,
        transaction: &quickbeam::Transaction,
    ) -> Result<()> {
        let snapshot = self.database.catalog.snapshot(transaction)?;
        statement.prepared = None;
        statement.prepared = Some(self.look(transaction, &snapshot).prepare(&statement.text)?);
        statement.version = snapshot.version();
        statement.way = self.way();
        Ok(())
    }
}
