//! Which transaction a statement runs in: the one under way, one of its own, which is tried again
//! when it gets into the way of others, or one of the engine.

use std::sync::Arc;

use quickbeam::query_layer::TransactionExt;
use quickbeam::{ReadTransaction, Transaction, TransactionOptions, invariant};

use super::executor::{Done, ResultRows, TransactionUse};
use super::rows::{QueryTransaction, Rows};
use super::utility::CommandCall;
use crate::compile::Prepared;
use crate::compile::session_command::{Control, Settings, control_of};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::Command;
use crate::session::Session;
use crate::session::prepared_statement::PreparedStatement;
use crate::session::statement_cache::Lease;
use crate::types::Value;

/// Times that a statement outside a transaction is tried when it gets into the way of others.
const ATTEMPTS: usize = 20;

impl Session {
    pub fn prepare(&self, statement: &mut PreparedStatement) -> Result<()> {
        // What steers needs no plan, and comes before a transaction's first statement.
        if let Some(control) = self.control_of(statement)? {
            if let Control::Command(command) = control {
                let command = command.clone();
                statement.columns = self.command_columns(&command);
                statement.command_parameters = self.command_parameters(&command, statement)?;
            }
            return Ok(());
        }
        if self.in_transaction() {
            self.make_begun()?;
            let transaction = self.begun()?;
            return self.ensure_compiled(statement, &transaction).map(|_| ());
        }
        let reader = self.database.environment.begin_read()?;
        self.ensure_compiled(statement, reader.as_transaction()).map(|_| ())
    }

    /// Executes a statement for the number of rows that it changes.
    pub fn execute(
        &self,
        statement: &mut PreparedStatement,
        parameters: &[Value],
        result: ResultRows,
    ) -> Result<u64> {
        self.begin_limits();
        if self.in_transaction() {
            if let Some(control) = self.control_of(statement)? {
                let control = control.clone();
                return self.execute_control(&control, statement, parameters, result);
            }
            self.make_begun()?;
            let transaction = self.begun()?;
            return Ok(self.run(statement, &transaction, parameters, result)?.count);
        }
        self.execute_with_retries(statement, parameters, result)
    }

    /// Executes a statement of control.
    #[cold]
    fn execute_control(
        &self,
        control: &Control,
        statement: &PreparedStatement,
        parameters: &[Value],
        result: ResultRows,
    ) -> Result<u64> {
        match control {
            Control::Command(command) => {
                self.execute_command(command, &CommandCall::of(statement, parameters), result)
            }
            control => self.control(control).map(|()| 0),
        }
    }

    /// Executes a statement in a transaction of its own, again after a conflict.
    #[inline(never)]
    fn execute_with_retries(
        &self,
        statement: &mut PreparedStatement,
        parameters: &[Value],
        result: ResultRows,
    ) -> Result<u64> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            invariant!(COPY_2, attempt == 1 || !statement.is_copy(), "{}", statement.text);
            match self.execute_alone(statement, parameters, result) {
                Err(error) if attempt < ATTEMPTS && is_tried_again(&error, statement) => {}
                Ok(done) => return Ok(done.count),
                Err(error) => return Err(error),
            }
        }
    }

    /// Executes a statement in a transaction of its own.
    pub(crate) fn execute_alone(
        &self,
        statement: &mut PreparedStatement,
        parameters: &[Value],
        result: ResultRows,
    ) -> Result<Done> {
        if let Some(control) = self.control_of(statement)? {
            let control = control.clone();
            let count = self.execute_control(&control, statement, parameters, result)?;
            return Ok(Done { count, ..Done::default() });
        }
        self.reset_clock();
        let reads_only = statement.prepared.as_ref().is_some_and(Prepared::only_reads);
        let transaction = if reads_only {
            let options = TransactionOptions::new().read_only(true);
            self.database.environment.begin_with(options)?
        } else {
            self.begin_transaction(Settings::default())?
        };
        transaction.begin_statement();
        let prepared = self.ensure_compiled(statement, &transaction)?;
        if reads_only && !prepared.only_reads() {
            // What was prepared before only read. Now it is known that it does more.
            return self.execute_alone(statement, parameters, result);
        }
        result.check(prepared)?;
        // Dropped without a commit, the transaction is aborted.
        self.begin_alone(&transaction);
        let done = self.run_prepared(prepared, &transaction, parameters, TransactionUse::Own);
        let done = self.end_alone(&transaction, done);
        let done = done.and_then(|done| {
            self.end_temporary(&transaction)?;
            self.check_events()?;
            transaction.commit()?;
            Ok(done)
        });
        self.release_locks(true);
        self.finish_events(done.is_ok());
        done
    }

    /// Returns what the statement controls, if it is a statement of control. Its text is read once.
    #[inline]
    pub(crate) fn control_of<'s>(
        &self,
        statement: &'s mut PreparedStatement,
    ) -> Result<Option<&'s Control>> {
        if statement.control.is_none() {
            read_control(statement)?;
        }
        Ok(statement.control.as_ref().and_then(Option::as_ref))
    }

    /// Executes a query.
    pub fn query<'c>(&'c self, mut lease: Lease<'c>, parameters: &[Value]) -> Result<Rows<'c>> {
        let statement = lease.statement()?;
        self.begin_limits();
        if let Some(control) = self.control_of(statement)? {
            if let Control::Command(command) = control.clone() {
                return self.query_command(&command, &CommandCall::of(statement, parameters));
            }
            self.execute(statement, parameters, ResultRows::Kept)?;
            return Ok(Rows::none());
        }
        if self.in_transaction() {
            self.make_begun()?;
            return self.stream(lease, QueryTransaction::Session(self.begun()?), parameters);
        }
        let mut attempt = 0;
        loop {
            let reads_only =
                statement.prepared.as_ref().is_some_and(|prepared| prepared.reads_only);
            if reads_only || attempt == 0 {
                // A first look, to know what it is.
                self.reset_clock();
                let reader = self.database.environment.begin_read()?;
                if self.ensure_compiled(statement, reader.as_transaction())?.reads_only {
                    return self.stream_compiled(lease, QueryTransaction::Own(reader), parameters);
                }
            }
            attempt += 1;
            invariant!(COPY_2, attempt == 1 || !statement.is_copy(), "{}", statement.text);
            match self.execute_alone(statement, parameters, ResultRows::Kept) {
                Err(error) if attempt < ATTEMPTS && is_tried_again(&error, statement) => {}
                Err(error) => return Err(error),
                Ok(done) => {
                    let columns =
                        statement.prepared.as_ref().map(|prepared| prepared.columns.clone());
                    return Ok(Rows::of(columns.unwrap_or_else(|| Arc::new([])), done.returned));
                }
            }
        }
    }

    /// Prepares a statement for a transaction of the engine.
    pub fn prepare_in(
        &self,
        statement: &mut PreparedStatement,
        transaction: &Transaction,
    ) -> Result<()> {
        self.check_foreign(statement)?;
        self.ensure_compiled(statement, transaction).map(|_| ())
    }

    /// Executes a statement in a transaction of the engine.
    pub fn execute_in(
        &self,
        statement: &mut PreparedStatement,
        transaction: &Transaction,
        parameters: &[Value],
    ) -> Result<u64> {
        self.check_foreign(statement)?;
        self.begin_limits();
        self.reset_clock();
        Ok(self.run(statement, transaction, parameters, ResultRows::Refused)?.count)
    }

    /// Executes a query in a transaction of the engine.
    pub fn query_in<'c>(
        &'c self,
        mut lease: Lease<'c>,
        transaction: &'c Transaction,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        self.check_foreign(lease.statement()?)?;
        self.begin_limits();
        self.reset_clock();
        self.stream(lease, QueryTransaction::Lent(transaction), parameters)
    }

    /// A transaction of the engine is begun and ended by who has it.
    fn check_foreign(&self, statement: &mut PreparedStatement) -> Result<()> {
        match self.control_of(statement)? {
            None => Ok(()),
            Some(_) => {
                let message =
                    "a transaction of the engine is steered through the engine, not by SQL";
                Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message))
            }
        }
    }
}

/// Reads from its text what a statement controls.
#[inline(never)]
fn read_control(statement: &mut PreparedStatement) -> Result<()> {
    let (control, parsed) = match crate::parse::command(&statement.text)? {
        // It changes the catalog, in the transaction of a statement.
        Some(
            Command::Access(_)
            | Command::Routine(_)
            | Command::Type(_)
            | Command::Collation(_)
            | Command::Comment(_)
            | Command::Relation(_)
            | Command::Schema(_)
            | Command::Refresh(_),
        ) => (None, None),
        Some(command) => (Some(Control::Command(Arc::new(command))), None),
        None => {
            let parsed = crate::parse::statement(&statement.text)?;
            (parsed.as_ref().map(control_of).transpose()?.flatten(), parsed)
        }
    };
    statement.parsed = parsed.filter(|_| control.is_none()).map(Box::new);
    statement.control = Some(control);
    Ok(())
}

/// Whether a statement that failed may succeed if it is begun again.
fn is_tried_again(error: &SqlError, statement: &PreparedStatement) -> bool {
    error.is_retryable() && error.state() != SqlState::LockNotAvailable && !statement.is_copy()
}
