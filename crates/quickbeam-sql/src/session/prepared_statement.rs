//! Statements compiled once and executed many times.

use std::sync::Arc;

use quickbeam::invariant;
use sqlparser::ast::Statement as Ast;

use super::Session;
use crate::bind::OutputColumn;
use crate::catalog::{BOOTSTRAP, CatalogSnapshot, ObjectId};
use crate::compile::session_command::Control;
use crate::compile::{CompileContext, Prepared, Program};
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType;

/// A prepared statement that works with any connection to its database.
/// [`Statement`](crate::Statement) is the same with a connection.
pub struct PreparedStatement {
    pub(crate) text: Arc<str>,
    pub(crate) prepared: Option<Prepared>,
    /// The version of the catalog that it was prepared for.
    pub(crate) version: u64,
    /// The session's [`plan_key`](Session::plan_key) then.
    pub(crate) plan_key: u64,
    /// The role that it was prepared for.
    pub(crate) role: ObjectId,
    /// The session command that it is; the outer `None` before the text is parsed.
    pub(crate) control: Option<Option<Control>>,
    /// The syntax tree, from parsing the text until compiling it.
    pub(crate) parsed: Option<Box<Ast>>,
    /// The types of its first parameters, if they were declared.
    pub(crate) types: Arc<[Option<DataType>]>,
    /// The columns that executions must keep, if they were promised.
    pub(crate) kept_columns: Option<Arc<[OutputColumn]>>,
    /// The columns of a command's result.
    pub(crate) columns: Arc<[OutputColumn]>,
    /// The types of a command's parameters: those of the query of DECLARE.
    pub(crate) command_parameters: Arc<[DataType]>,
    /// Whether it is the query of a cursor.
    pub(crate) is_of_cursor: bool,
    /// Whether its rows go to a routine, which reads numbers of objects, not their names.
    pub(crate) keeps_numbers: bool,
}

impl PreparedStatement {
    pub(crate) fn new(text: &str) -> PreparedStatement {
        PreparedStatement {
            text: text.into(),
            prepared: None,
            version: 0,
            plan_key: 0,
            role: BOOTSTRAP,
            control: None,
            parsed: None,
            types: Arc::new([]),
            kept_columns: None,
            columns: Arc::new([]),
            command_parameters: Arc::new([]),
            is_of_cursor: false,
            keeps_numbers: false,
        }
    }

    /// Declares the types of the first parameters.
    pub(crate) fn with_types(self, types: Arc<[Option<DataType>]>) -> PreparedStatement {
        PreparedStatement { types, ..self }
    }

    /// Says that it is the query of a cursor.
    pub(crate) fn of_cursor(self) -> PreparedStatement {
        PreparedStatement { is_of_cursor: true, ..self }
    }

    /// Makes a later execution fail (0A000) if the columns of the result are not the same any more.
    pub fn keep_columns(&mut self) {
        if let Some(prepared) = &self.prepared {
            self.kept_columns = Some(prepared.columns.clone());
        }
    }

    /// Returns what the text was compiled to.
    #[inline]
    pub(crate) fn compiled(&mut self) -> Result<&mut Prepared> {
        self.prepared.as_mut().ok_or_else(|| SqlError::internal("not prepared"))
    }

    /// Refuses new columns where the old ones have been promised.
    pub(crate) fn check_columns(&self) -> Result<()> {
        let (Some(kept), Some(prepared)) = (&self.kept_columns, &self.prepared) else {
            return Ok(());
        };
        let is_same = kept.len() == prepared.columns.len()
            && kept
                .iter()
                .zip(prepared.columns.iter())
                .all(|(one, other)| one.name == other.name && one.data_type == other.data_type);
        if is_same {
            return Ok(());
        }
        let message = "cached plan must not change result type";
        Err(SqlError::new(SqlState::FeatureNotSupported, message))
    }

    /// Whether it is a COPY, which is not tried again by itself (COPY-2).
    pub(crate) fn is_copy(&self) -> bool {
        let work = self.prepared.as_ref().map(|prepared| &prepared.work);
        matches!(work, Some(Program::CopyFrom(_) | Program::CopyTo(..)))
    }

    /// Returns the text of the statement.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names and types of the result columns; empty without a result.
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        self.prepared.as_ref().map_or(&self.columns, |prepared| &prepared.columns)
    }

    /// Returns the types of the parameters.
    #[must_use]
    pub fn parameters(&self) -> &[DataType] {
        let of_command = &self.command_parameters;
        self.prepared.as_ref().map_or(of_command, |prepared| &prepared.parameters)
    }
}

impl Session {
    /// Makes sure that a statement is prepared for what the transaction sees (SESSION-2).
    #[inline]
    pub(crate) fn ensure_compiled<'s>(
        &self,
        statement: &'s mut PreparedStatement,
        transaction: &quickbeam::Transaction,
    ) -> Result<&'s mut Prepared> {
        let version = self.database.catalog.version(transaction)?;
        let is_kept = statement.version == version && statement.plan_key == self.plan_key.get();
        let is_own = !is_kept || statement.role == self.role.get();
        invariant!(ACCESS_2, is_own, "role {:?} has a plan of {:?}", self.role, statement.role);
        if !is_kept || !self.is_current(statement.prepared.as_mut(), transaction) {
            self.recompile(statement, transaction)?;
        }
        statement.compiled()
    }

    /// Whether it is prepared, for about as much as there is.
    #[inline]
    pub(crate) fn is_current(
        &self,
        prepared: Option<&mut Prepared>,
        transaction: &quickbeam::Transaction,
    ) -> bool {
        let Some(prepared) = prepared else { return false };
        // EXPLAIN shows the plan that the statement would get now, with fresh row counts.
        if matches!(prepared.work, Program::Explain(..)) {
            return false;
        }
        let (Some(planned), Some(snapshot)) = (&mut prepared.planned_for, &prepared.snapshot)
        else {
            return true;
        };
        !planned.is_due() || !self.look(transaction, snapshot).plan_is_stale(planned)
    }

    /// The database as the transaction sees it, for the binder and the planner.
    pub(crate) fn look<'l>(
        &'l self,
        transaction: &'l quickbeam::Transaction,
        snapshot: &'l Arc<CatalogSnapshot>,
    ) -> CompileContext<'l> {
        let (way, turned_off, parallelism) =
            (self.way(), self.turned_off.get(), self.parallelism.get());
        let path = self.search_path.borrow().clone();
        let catalog = &self.database.catalog;
        let functions = &self.database.shared.functions;
        let user = self.role.get();
        CompileContext {
            catalog,
            transaction,
            snapshot,
            way,
            user,
            session_user: self.session_user.get(),
            role: (!snapshot.is_superuser(user)).then_some(user),
            path,
            temporary: Some(&self.temporary.name),
            turned_off,
            parallelism,
            functions,
            clock: &self.clock,
            variables: None,
            types: &[],
            refreshed: None,
            keeps_keys: false,
            keeps_numbers: false,
            noted: None,
        }
    }

    #[cold]
    fn recompile(
        &self,
        statement: &mut PreparedStatement,
        transaction: &quickbeam::Transaction,
    ) -> Result<()> {
        let snapshot = self.database.catalog.snapshot(transaction)?;
        statement.prepared = None;
        let parsed = statement.parsed.take();
        let look = CompileContext {
            types: &statement.types,
            keeps_keys: statement.is_of_cursor,
            keeps_numbers: statement.keeps_numbers,
            ..self.look(transaction, &snapshot)
        };
        statement.prepared = Some(look.prepare(&statement.text, parsed)?);
        statement.version = snapshot.version();
        statement.plan_key = self.plan_key.get();
        statement.role = self.role.get();
        statement.check_columns().inspect_err(|_| statement.prepared = None)
    }
}

/// Declared types of parameters, each known.
pub(crate) fn known_types(types: &[DataType]) -> Arc<[Option<DataType>]> {
    types.iter().copied().map(Some).collect()
}
