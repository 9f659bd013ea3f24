//! Connections: transactions, settings, and a cache of statements.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use quickbeam::{Durability, Isolation, Savepoint, Transaction, TransactionOptions};
use smol_str::SmolStr;

use super::control::{Control, Settings};
use super::copy::CopyAccess;
use super::database::{Cancel, Database};
use super::rows::{Held, Rows};
use super::statement::Statement;
use crate::catalog::CatalogSnapshot;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::Limits;
use crate::expression::{Clock, Given};
use crate::plan::Way;
use crate::types::Value;

/// Statements kept by text.
const CACHED: usize = 256;

/// Bytes that a statement may keep, unless it is set otherwise.
const MEMORY: usize = 256 << 20;

/// Times that a statement outside a transaction is tried when it gets into the way of others.
const ATTEMPTS: usize = 20;

/// A connection to a database: one thread's place to execute statements.
pub struct Connection {
    pub(super) session: Session,
    cache: HashMap<Box<str>, Statement>,
}

/// What a connection has beside its cache.
pub(super) struct Session {
    pub database: Database,
    pub open: Option<Open>,
    pub settings: Settings,
    pub limits: Limits,
    pub clock: Clock,
    pub given: Given,
    pub copy_access: Mutex<Option<Box<dyn CopyAccess>>>,
}

/// A transaction under way.
pub(super) struct Open {
    settings: Settings,
    /// Begun with the first statement, so that SET TRANSACTION can still say how.
    transaction: Option<Transaction>,
    savepoints: Vec<(SmolStr, Savepoint)>,
    /// Settings of the session to come back at the end.
    before: Settings,
    memory_before: usize,
}

impl Connection {
    pub(super) fn new(database: Database) -> Connection {
        let limits = Limits { cancelled: Arc::new(AtomicBool::new(false)), memory: MEMORY };
        let (settings, clock) = (Settings::default(), Clock::default());
        let copy_access = Mutex::new(None);
        let session = Session {
            database,
            open: None,
            settings,
            limits,
            clock,
            given: Given::default(),
            copy_access,
        };
        Connection { session, cache: HashMap::new() }
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.session.database
    }

    /// Cancels from another thread what this connection does.
    #[must_use]
    pub fn cancel_handle(&self) -> Cancel {
        Cancel(self.session.limits.cancelled.clone())
    }

    /// Whether a transaction was begun and has not ended.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.session.open.is_some()
    }

    /// Prepares a statement.
    pub fn prepare(&mut self, text: &str) -> Result<Statement> {
        let mut statement = Statement::new(text);
        self.session.prepare(&mut statement)?;
        Ok(statement)
    }

    /// Executes a statement: how many rows it inserted, changed, removed or, being a query, delivered. The statement stays prepared,
    /// to be found by its text the next time.
    pub fn execute(&mut self, text: &str, parameters: &[Value]) -> Result<u64> {
        let statement = cached(&mut self.cache, text)?;
        self.session.execute(statement, parameters)
    }

    /// Executes a query and delivers its rows.
    pub fn query(&mut self, text: &str, parameters: &[Value]) -> Result<Rows<'_>> {
        let statement = cached(&mut self.cache, text)?;
        self.session.query(statement, parameters)
    }

    /// Executes several statements, one after the other. Each is on its own, unless there is a BEGIN among them. An error's place counts from
    /// the start of the whole text.
    pub fn execute_script(&mut self, text: &str) -> Result<()> {
        for piece in crate::parse::pieces(text)? {
            let start = piece.start;
            let mut statement = Statement::new(text.get(piece).unwrap_or_default());
            self.session.execute(&mut statement, &[]).map_err(|error| error.shifted(start))?;
        }
        Ok(())
    }

    /// What there is, as the next statement would see it.
    pub fn catalog_snapshot(&self) -> Result<Arc<CatalogSnapshot>> {
        let database = &self.session.database;
        match self.session.open.as_ref().and_then(|open| open.transaction.as_ref()) {
            Some(transaction) => database.catalog.snapshot(transaction),
            None => database.catalog.snapshot(&database.environment.begin_read()?),
        }
    }

    /// BEGIN.
    pub fn begin(&mut self) -> Result<()> {
        self.session.begin(Settings::default())
    }

    /// COMMIT.
    pub fn commit(&mut self) -> Result<()> {
        self.session.commit()
    }

    /// ROLLBACK.
    pub fn rollback(&mut self) -> Result<()> {
        self.session.rollback()
    }

    /// Isolation of transactions begun from now on.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.session.settings.isolation = Some(isolation);
    }

    /// Durability of transactions begun from now on.
    pub fn set_durability(&mut self, durability: Durability) {
        self.session.settings.durability = Some(durability);
    }

    /// What COPY may read and write from now on. A connection that was given nothing cannot use COPY.
    pub fn set_copy_access(&mut self, access: impl CopyAccess + 'static) {
        *self.session.copy_access.get_mut() = Some(Box::new(access));
    }

    /// Bytes that a statement may keep in memory, for sorts and joins for example.
    pub fn set_memory_limit(&mut self, bytes: usize) {
        self.session.limits.memory = bytes;
    }
}

/// The statement of that text.
fn cached<'c>(
    cache: &'c mut HashMap<Box<str>, Statement>,
    text: &str,
) -> Result<&'c mut Statement> {
    if !cache.contains_key(text) {
        if cache.len() >= CACHED {
            cache.clear();
        }
        cache.insert(text.into(), Statement::new(text));
    }
    cache.get_mut(text).ok_or_else(|| SqlError::internal("a statement is not where it was put"))
}

impl Session {
    /// What the session wants of the planner.
    pub fn way(&self) -> Way {
        self.settings.way.unwrap_or_default()
    }

    pub fn options(&self, settings: Settings) -> TransactionOptions {
        let settings = settings.or(self.settings);
        TransactionOptions {
            isolation: settings.isolation,
            durability: settings.durability,
            lock_timeout: settings.lock_timeout,
            read_only: settings.read_only.unwrap_or(false),
        }
    }

    fn prepare(&mut self, statement: &mut Statement) -> Result<()> {
        // What steers needs no plan, and comes before a transaction's first statement.
        if self.control_of(statement)?.is_some() {
            return Ok(());
        }
        if self.open.is_some() {
            self.make_begun()?;
            return self.prepare_for(statement, self.begun()?).map(|_| ());
        }
        let reader = self.database.environment.begin_read()?;
        self.prepare_for(statement, &reader).map(|_| ())
    }

    /// Begins the transaction under way, if that was not done yet.
    #[inline]
    fn make_begun(&mut self) -> Result<()> {
        if self.open.as_ref().is_some_and(|open| open.transaction.is_none()) {
            self.begin_now()?;
        }
        Ok(())
    }

    #[inline(never)]
    fn begin_now(&mut self) -> Result<()> {
        let Some(settings) = self.open.as_ref().map(|open| open.settings) else { return Ok(()) };
        let transaction = self.database.environment.begin_with(self.options(settings))?;
        if let Some(open) = &mut self.open {
            open.transaction = Some(transaction);
        }
        Ok(())
    }

    /// The transaction under way, which was begun.
    #[inline]
    fn begun(&self) -> Result<&Transaction> {
        let transaction = self.open.as_ref().and_then(|open| open.transaction.as_ref());
        transaction.ok_or_else(|| SqlError::internal("a transaction that was not begun"))
    }

    /// Executes a statement.
    pub fn execute(&mut self, statement: &mut Statement, parameters: &[Value]) -> Result<u64> {
        self.limits.cancelled.store(false, Ordering::Relaxed);
        if self.open.is_some() {
            if let Some(control) = self.control_of(statement)? {
                let control = control.clone();
                return self.control(&control).map(|()| 0);
            }
            self.make_begun()?;
            let done = self.run(statement, self.begun()?, parameters)?;
            return Ok(done.count);
        }
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.execute_alone(statement, parameters) {
                Err(error)
                    if error.is_retryable()
                        && error.state() != SqlState::LockNotAvailable
                        && attempt < ATTEMPTS
                        && !statement.is_copy() => {}
                Ok(done) => return Ok(done.count),
                Err(error) => return Err(error),
            }
        }
    }

    /// Executes a statement in a transaction of its own.
    pub(super) fn execute_alone(
        &mut self,
        statement: &mut Statement,
        parameters: &[Value],
    ) -> Result<super::run::Done> {
        if let Some(control) = self.control_of(statement)? {
            let control = control.clone();
            self.control(&control)?;
            return Ok(super::run::Done::default());
        }
        self.clock.reset();
        let reads_only = statement.prepared.as_ref().is_some_and(|prepared| prepared.reads_only);
        let transaction = if reads_only {
            self.database.environment.begin_read()?
        } else {
            self.database.environment.begin_with(self.options(Settings::default()))?
        };
        transaction.begin_statement();
        let prepared = self.prepare_for(statement, &transaction)?;
        if reads_only && !prepared.reads_only {
            // What was prepared before only read. Now it is known that it does more.
            return self.execute_alone(statement, parameters);
        }
        // Dropped without a commit, the transaction is aborted.
        let done = self.run_prepared(prepared, &transaction, parameters, true)?;
        transaction.commit()?;
        Ok(done)
    }

    /// The steering that a statement does. Its text is looked at once.
    #[inline]
    fn control_of<'s>(&self, statement: &'s mut Statement) -> Result<Option<&'s Control>> {
        if statement.control.is_none() {
            let control = match crate::parse::statement(&statement.text)? {
                Some(parsed) => super::control::control_of(&parsed)?,
                None => None,
            };
            statement.control = Some(control);
        }
        Ok(statement.control.as_ref().and_then(Option::as_ref))
    }

    /// Executes a query.
    pub fn query<'c>(
        &'c mut self,
        statement: &'c mut Statement,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        self.limits.cancelled.store(false, Ordering::Relaxed);
        if self.control_of(statement)?.is_some() {
            self.execute(statement, parameters)?;
            return Ok(Rows::none());
        }
        if self.open.is_some() {
            self.make_begun()?;
            let session = &*self;
            return session.stream(statement, Held::Lent(session.begun()?), parameters);
        }
        let mut attempt = 0;
        loop {
            let reads_only =
                statement.prepared.as_ref().is_some_and(|prepared| prepared.reads_only);
            if reads_only || attempt == 0 {
                // A first look, to know what it is.
                self.clock.reset();
                let reader = self.database.environment.begin_read()?;
                if self.prepare_for(statement, &reader)?.reads_only {
                    let session = &*self;
                    return session.stream(statement, Held::Own(reader), parameters);
                }
            }
            attempt += 1;
            match self.execute_alone(statement, parameters) {
                Err(error)
                    if error.is_retryable()
                        && error.state() != SqlState::LockNotAvailable
                        && attempt < ATTEMPTS
                        && !statement.is_copy() => {}
                Err(error) => return Err(error),
                Ok(done) => {
                    let columns =
                        statement.prepared.as_ref().map(|prepared| prepared.columns.clone());
                    return Ok(Rows::of(columns.unwrap_or_else(|| Arc::new([])), done.returned));
                }
            }
        }
    }

    /// Executes a statement in a transaction of the engine.
    pub fn execute_in(
        &mut self,
        statement: &mut Statement,
        transaction: &Transaction,
        parameters: &[Value],
    ) -> Result<u64> {
        self.check_foreign(statement)?;
        self.limits.cancelled.store(false, Ordering::Relaxed);
        self.clock.reset();
        Ok(self.run(statement, transaction, parameters)?.count)
    }

    /// Executes a query in a transaction of the engine.
    pub fn query_in<'c>(
        &'c mut self,
        statement: &'c mut Statement,
        transaction: &'c Transaction,
        parameters: &[Value],
    ) -> Result<Rows<'c>> {
        self.check_foreign(statement)?;
        self.limits.cancelled.store(false, Ordering::Relaxed);
        self.clock.reset();
        let session = &*self;
        session.stream(statement, Held::Lent(transaction), parameters)
    }

    /// A transaction of the engine is begun and ended by who has it.
    fn check_foreign(&self, statement: &mut Statement) -> Result<()> {
        match self.control_of(statement)? {
            None => Ok(()),
            Some(_) => {
                let message =
                    "a transaction of the engine is steered through the engine, not by SQL";
                Err(SqlError::new(SqlState::ObjectNotInPrerequisiteState, message))
            }
        }
    }

    pub fn begin(&mut self, settings: Settings) -> Result<()> {
        if self.open.is_some() {
            let message = "there is already a transaction in progress";
            return Err(SqlError::new(SqlState::ActiveSqlTransaction, message));
        }
        self.clock.reset();
        self.open = Some(Open {
            settings,
            transaction: None,
            savepoints: Vec::new(),
            before: self.settings,
            memory_before: self.limits.memory,
        });
        Ok(())
    }

    fn take_open(&mut self) -> Result<Open> {
        let open = self.open.take().ok_or_else(|| {
            let message = "there is no transaction in progress";
            SqlError::new(SqlState::NoActiveSqlTransaction, message)
        })?;
        self.settings = open.before;
        self.limits.memory = open.memory_before;
        Ok(open)
    }

    pub fn commit(&mut self) -> Result<()> {
        match self.take_open()?.transaction {
            Some(transaction) => Ok(transaction.commit()?),
            None => Ok(()),
        }
    }

    pub fn rollback(&mut self) -> Result<()> {
        match self.take_open()?.transaction {
            Some(transaction) => Ok(transaction.abort()?),
            None => Ok(()),
        }
    }

    fn control(&mut self, control: &Control) -> Result<()> {
        match control {
            Control::Begin(settings) => self.begin(*settings),
            Control::Commit => self.commit(),
            Control::Rollback => self.rollback(),
            Control::Ignored => Ok(()),
            Control::Set(settings, local) => {
                self.check_durability(settings)?;
                if *local && self.open.is_none() {
                    let message = "SET LOCAL can only be used in transaction blocks";
                    return Err(SqlError::new(SqlState::NoActiveSqlTransaction, message));
                }
                if let Some(memory) = settings.memory {
                    self.limits.memory = memory;
                }
                if *local {
                    return self.set_transaction(*settings);
                }
                self.settings = settings.or(self.settings);
                if let Some(open) = &mut self.open {
                    open.before = settings.or(open.before);
                    open.memory_before = self.limits.memory;
                }
                Ok(())
            }
            Control::Transaction(settings) => self.set_transaction(*settings),
            Control::Savepoint(name) => self.with_savepoints(|transaction, savepoints| {
                savepoints.push((name.clone(), transaction.savepoint()?));
                Ok(())
            }),
            Control::RollbackTo(name) => self.with_savepoints(|transaction, savepoints| {
                let at = find(savepoints, name)?;
                savepoints.truncate(at + 1);
                let savepoint = savepoints.get(at).map(|(_, savepoint)| *savepoint);
                Ok(savepoint.map_or(Ok(()), |savepoint| transaction.rollback_to(savepoint))?)
            }),
            Control::Release(name) => self.with_savepoints(|transaction, savepoints| {
                let at = find(savepoints, name)?;
                if let Some((_, savepoint)) = savepoints.get(at) {
                    transaction.release(*savepoint);
                }
                savepoints.truncate(at);
                Ok(())
            }),
        }
    }

    /// Without a log every transaction is in memory, with one none is.
    fn check_durability(&self, settings: &Settings) -> Result<()> {
        let environment = self.database.environment.durability();
        let is_without = |durability| durability == Durability::InMemory;
        match settings.durability {
            Some(asked) if is_without(asked) != is_without(environment) => {
                let message = format!(
                    "invalid value for parameter \"durability\": \"{asked}\" in an environment of durability {environment}"
                );
                Err(SqlError::new(SqlState::InvalidParameterValue, message).with_hint(
                    "Without a log everything stays in memory, with one everything is logged.",
                ))
            }
            _ => Ok(()),
        }
    }

    fn set_transaction(&mut self, settings: Settings) -> Result<()> {
        let asks = settings.isolation.is_some()
            || settings.durability.is_some()
            || settings.lock_timeout.is_some()
            || settings.read_only.is_some();
        match &mut self.open {
            None => {
                let message = "SET TRANSACTION can only be used in transaction blocks";
                Err(SqlError::new(SqlState::NoActiveSqlTransaction, message))
            }
            Some(open) if open.transaction.is_some() && asks => {
                let message =
                    "the settings of a transaction must be set before any of its statements";
                Err(SqlError::new(SqlState::ActiveSqlTransaction, message))
            }
            Some(open) => {
                open.settings = settings.or(open.settings);
                Ok(())
            }
        }
    }

    fn with_savepoints(
        &mut self,
        work: impl FnOnce(&Transaction, &mut Vec<(SmolStr, Savepoint)>) -> Result<()>,
    ) -> Result<()> {
        self.make_begun()?;
        match &mut self.open {
            Some(Open { transaction: Some(transaction), savepoints, .. }) => {
                work(transaction, savepoints)
            }
            _ => {
                let message = "SAVEPOINT can only be used in transaction blocks";
                Err(SqlError::new(SqlState::NoActiveSqlTransaction, message))
            }
        }
    }
}

fn find(savepoints: &[(SmolStr, Savepoint)], name: &str) -> Result<usize> {
    savepoints.iter().rposition(|(known, _)| known == name).ok_or_else(|| {
        SqlError::new(
            SqlState::InvalidSavepointSpecification,
            format!("savepoint \"{name}\" does not exist"),
        )
    })
}
