//! The transaction of a connection: BEGIN to COMMIT or ROLLBACK, its settings and savepoints, and
//! the statements that steer it.

use std::cell::{Cell, Ref, RefCell, RefMut};

use quickbeam::query_layer::{ChangeAccess, TransactionExt};
use quickbeam::{
    CHECKS_INVARIANTS, Durability, Isolation, ReadTransaction, Savepoint, Transaction,
    TransactionOptions, invariant,
};
use smol_str::SmolStr;

use crate::catalog::PUBLIC;
use crate::compile::cascades::Cascades;
use crate::compile::session_command::{Control, Settings};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::Name;
use crate::session::Session;
use crate::session::events::NoticeLevel;
use crate::session::settings::variables::Saved;
use crate::session::settings::variables::SettingScope;
use crate::table::{
    ConstraintKey, ConstraintModes, DeferredChecks, DeferredMark, TableWriter, TriggerCaller,
};

/// A transaction under way.
pub(crate) struct Open {
    pub settings: Settings,
    /// Begun with the first statement, so that SET TRANSACTION can still say how.
    pub transaction: Option<Transaction>,
    savepoints: RefCell<Vec<OpenSavepoint>>,
    /// What is checked at the end.
    pub deferred: DeferredChecks,
    /// The settings to come back to, once the transaction has changed any.
    outcome: RefCell<Option<Box<Outcome>>>,
    /// Up to now the transaction has only locked tables.
    pub has_only_locked: Cell<bool>,
    /// What SET TRANSACTION said after the first statement.
    pub read_only: Cell<Option<bool>>,
}

impl Open {
    /// Makes the transaction read-only, or what it was begun as.
    fn set_read_only(&self, transaction: &Transaction, read_only: Option<bool>) {
        if self.read_only.replace(read_only) != read_only {
            transaction.set_change_access(match read_only {
                Some(true) => ChangeAccess::Refused,
                _ => ChangeAccess::Allowed,
            });
        }
    }
}

/// The settings after a transaction, by how it ends.
#[derive(Clone)]
pub(crate) struct Outcome {
    /// After a commit.
    pub committed: Saved,
    /// After a rollback.
    rolled_back: Saved,
}

/// A savepoint, with the settings to come back to.
struct OpenSavepoint {
    name: SmolStr,
    savepoint: Savepoint,
    settings: Saved,
    outcome: Option<Box<Outcome>>,
    /// How many events had happened.
    events: usize,
    /// What SET CONSTRAINTS had said.
    modes: ConstraintModes,
    /// What was deferred.
    deferred: DeferredMark,
    /// Which rows had moved.
    moved: u64,
    /// Whether the transaction was read-only.
    read_only: Option<bool>,
}

/// A moment of a transaction, for a rollback of what the session keeps of it.
#[derive(Clone, Copy)]
pub(crate) struct KeptMark {
    deferred: DeferredMark,
    moved: u64,
}

/// What the statement that runs outside a transaction block has deferred to its end.
#[derive(Default)]
pub(crate) struct AloneChecks {
    /// The address of its transaction, while it runs.
    transaction: Cell<usize>,
    deferred: DeferredChecks,
}

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TransactionOutcome {
    Committed,
    RolledBack,
}

impl Session {
    pub fn options(&self, settings: Settings) -> TransactionOptions {
        let settings = settings.or(self.settings.get());
        TransactionOptions::new()
            .isolation(settings.isolation)
            .durability(settings.durability.or(self.commit_durability.get()))
            .lock_timeout(settings.lock_timeout)
            .read_only(settings.read_only == Some(true) && !self.may_change_temporary())
    }

    /// Begins a transaction of the engine.
    pub fn begin_transaction(&self, settings: Settings) -> Result<Transaction> {
        let transaction = self.database.environment.begin_with(self.options(settings))?;
        if self.may_change_temporary() && settings.or(self.settings.get()).read_only == Some(true) {
            transaction.set_change_access(ChangeAccess::Refused);
        }
        Ok(transaction)
    }

    /// Begins the transaction under way, if that was not done yet.
    #[inline]
    pub fn make_begun(&self) -> Result<()> {
        let is_due = |open: &Option<Open>| {
            open.as_ref().is_some_and(|open| {
                open.has_only_locked.set(false);
                open.transaction.is_none()
            })
        };
        if is_due(&self.open.borrow()) { self.begin_now() } else { Ok(()) }
    }

    #[inline(never)]
    fn begin_now(&self) -> Result<()> {
        if let Some(open) = &mut *self.open_mut()? {
            open.transaction = Some(self.begin_transaction(open.settings)?);
        }
        Ok(())
    }

    /// The transaction under way, to be changed or ended: an error while rows are read in it.
    fn open_mut(&self) -> Result<RefMut<'_, Option<Open>>> {
        self.open.try_borrow_mut().map_err(|_| rows_are_read())
    }

    /// Refuses what would pull away what a query of the transaction is reading.
    pub fn check_no_rows_read(&self) -> Result<()> {
        if self.reading.in_transaction.get() > 0 { Err(rows_are_read()) } else { Ok(()) }
    }

    /// Forgets the time of the last transaction, unless rows computed with it are being read.
    #[inline]
    pub fn reset_clock(&self) {
        if self.reading.queries.get() == 0 {
            self.clock.reset();
        }
    }

    /// The transaction under way, which was begun.
    #[inline]
    pub fn begun(&self) -> Result<Ref<'_, Transaction>> {
        Ref::filter_map(self.open.borrow(), |open| open.as_ref()?.transaction.as_ref())
            .map_err(|_| SqlError::internal("a transaction that was not begun"))
    }

    /// Whether a transaction was begun that takes in the next statement.
    #[inline]
    pub fn in_transaction(&self) -> bool {
        self.open.borrow().is_some()
    }

    pub fn begin(&self, settings: Settings) -> Result<()> {
        if self.in_transaction() {
            let message = "there is already a transaction in progress";
            return Err(SqlError::new(SqlState::ActiveSqlTransaction, message));
        }
        invariant!(EVENTS_1, self.events.pending() == 0, "{} events", self.events.pending());
        self.reset_clock();
        self.has_changed.set(false);
        *self.open_mut()? = Some(Open {
            settings,
            transaction: None,
            savepoints: RefCell::default(),
            deferred: DeferredChecks::default(),
            outcome: RefCell::default(),
            has_only_locked: Cell::new(true),
            read_only: Cell::new(None),
        });
        Ok(())
    }

    /// Changes the settings of the session, and with `change` those after a commit of the
    /// transaction under way. Keeps those after a rollback first.
    pub fn change_settings<T>(&self, change: impl FnOnce(Option<&mut Saved>) -> T) -> T {
        self.note_change();
        match &*self.open.borrow() {
            None => change(None),
            Some(open) => {
                let mut outcome = open.outcome.borrow_mut();
                let outcome = outcome.get_or_insert_with(|| {
                    let saved = self.saved();
                    Box::new(Outcome { committed: saved.clone(), rolled_back: saved })
                });
                change(Some(&mut outcome.committed))
            }
        }
    }

    /// Takes the transaction to end it.
    fn take_open(&self) -> Result<Open> {
        self.open_mut()?.take().ok_or_else(|| {
            let message = "there is no transaction in progress";
            SqlError::new(SqlState::NoActiveSqlTransaction, message)
        })
    }

    /// Restores the settings after a transaction (SETTING-1), closes its cursors and releases its
    /// advisory locks.
    fn ended(&self, outcome: Option<Box<Outcome>>, end: TransactionOutcome) {
        let is_committed = end == TransactionOutcome::Committed;
        if let Some(outcome) = outcome {
            let settings = if is_committed { outcome.committed } else { outcome.rolled_back };
            let expected = CHECKS_INVARIANTS.then(|| settings.clone());
            self.restore(settings);
            invariant!(SETTING_1, expected == Some(self.saved()), "{expected:?}");
        }
        if !self.cursors.borrow().is_empty() {
            self.end_cursors(is_committed);
        }
        self.release_locks(true);
        self.finish_events(is_committed);
    }

    pub fn commit(&self) -> Result<()> {
        let fired = self.end_deferred();
        let Open { transaction, outcome, deferred, settings, .. } = self.take_open()?;
        let commit = |transaction: Transaction| {
            fired?;
            invariant!(
                DEFER_1,
                transaction.isolation() == Isolation::ReadCommitted
                    || !self.check_deferred(&transaction, &deferred, None).is_err_and(|error| {
                        let state = error.state();
                        let unique = SqlState::UniqueViolation;
                        state == SqlState::ForeignKeyViolation || state == unique
                    }),
                "a constraint is violated"
            );
            self.end_temporary(&transaction)?;
            self.check_events()?;
            // `synchronous_commit` may have changed since the transaction began.
            if let Some(durability) = self.commit_durability.get()
                && settings.or(self.settings.get()).durability.is_none()
            {
                transaction.set_durability(durability)?;
            }
            Ok(transaction.commit()?)
        };
        let result = transaction.map_or_else(|| self.check_events(), commit);
        let is_committed = result.is_ok();
        let end = if is_committed {
            TransactionOutcome::Committed
        } else {
            TransactionOutcome::RolledBack
        };
        self.ended(outcome.into_inner(), end);
        result
    }

    /// Returns where a transaction defers checks. One of the engine does not: its statements end
    /// with all constraints satisfied.
    pub fn deferred_of<'o>(
        &'o self,
        open: Option<&'o Open>,
        transaction: &Transaction,
    ) -> Option<&'o DeferredChecks> {
        if self.alone.transaction.get() == address_of(transaction) {
            return Some(&self.alone.deferred);
        }
        let open = open?;
        let is_own = open.transaction.as_ref().is_some_and(|own| std::ptr::eq(own, transaction));
        is_own.then_some(&open.deferred)
    }

    /// Begins a statement outside a transaction block, in its own transaction.
    #[inline]
    pub fn begin_alone(&self, transaction: &Transaction) {
        self.alone.transaction.set(address_of(transaction));
    }

    /// Fires and checks what the statement has deferred, unless it failed.
    #[inline]
    pub fn end_alone<T>(&self, transaction: &Transaction, result: Result<T>) -> Result<T> {
        let deferred = &self.alone.deferred;
        let result = match result {
            Ok(done) if !deferred.is_empty() => {
                self.finish_deferred(transaction, deferred, None).map(|()| done)
            }
            result => result,
        };
        self.alone.transaction.set(0);
        deferred.clear();
        result
    }

    /// Fires the deferred triggers of the transaction under way, and checks its deferred
    /// constraints. What the triggers change may be deferred, too, and is part of both.
    #[inline]
    fn end_deferred(&self) -> Result<()> {
        match &*self.open.borrow() {
            Some(Open { transaction: Some(transaction), deferred, .. }) if !deferred.is_empty() => {
                self.finish_deferred(transaction, deferred, None)
            }
            _ => Ok(()),
        }
    }

    /// Fires deferred triggers and checks deferred constraints: these, or all.
    #[cold]
    fn finish_deferred(
        &self,
        transaction: &Transaction,
        deferred: &DeferredChecks,
        constraints: Option<&[ConstraintKey]>,
    ) -> Result<()> {
        self.fire_deferred(transaction, deferred, constraints)?;
        self.check_deferred(transaction, deferred, constraints)
    }

    /// Checks deferred constraints: these, or all (DEFER-1).
    fn check_deferred(
        &self,
        transaction: &Transaction,
        deferred: &DeferredChecks,
        constraints: Option<&[ConstraintKey]>,
    ) -> Result<()> {
        if deferred.is_empty() {
            return Ok(());
        }
        transaction.begin_statement();
        let catalog = &self.database.catalog;
        let check = || {
            let snapshot = catalog.snapshot(transaction)?;
            let look = || self.look(transaction, &snapshot);
            let cascades = Cascades { look: &look };
            let mut writer = TableWriter::new(catalog, transaction, &snapshot, &cascades);
            writer.check_deferred(deferred, constraints)
        };
        let checked = check();
        transaction.end_statement();
        checked
    }

    /// Fires deferred constraint triggers, these or all, also those that the triggers defer.
    fn fire_deferred(
        &self,
        transaction: &Transaction,
        deferred: &DeferredChecks,
        constraints: Option<&[ConstraintKey]>,
    ) -> Result<()> {
        while let Some(fired) = deferred.next_trigger(constraints) {
            transaction.begin_statement();
            let called = self.call_trigger(&fired.call(transaction));
            transaction.end_statement();
            called?;
        }
        Ok(())
    }

    /// Returns what the session keeps of the transaction under way: what was deferred, and which
    /// rows have moved.
    pub fn kept_mark(&self) -> KeptMark {
        let open = self.open.borrow();
        let deferred = open.as_ref().map_or(&self.alone.deferred, |open| &open.deferred);
        KeptMark { deferred: deferred.mark(), moved: self.moved.mark() }
    }

    /// Restores what the session had kept, after a rollback to that moment.
    pub fn restore_kept(&self, mark: KeptMark) {
        let open = self.open.borrow();
        let deferred = open.as_ref().map_or(&self.alone.deferred, |open| &open.deferred);
        deferred.rollback_to(mark.deferred);
        self.rollback_moves(mark.moved);
    }

    /// SET CONSTRAINTS of these constraints, or ALL. Without a transaction it checks the names.
    pub fn set_constraints(&self, names: Option<&[Name]>, is_deferred: bool) -> Result<()> {
        if !self.in_transaction() {
            self.notice(NoticeLevel::Warning, SqlState::NoActiveSqlTransaction, || {
                "SET CONSTRAINTS can only be used in transaction blocks".to_owned()
            });
            if let Some(names) = names {
                let reader = self.database.environment.begin_read()?;
                self.named_constraints(reader.as_transaction(), names)?;
            }
            return Ok(());
        }
        self.make_begun()?;
        let open = self.open.borrow();
        let Some(Open { transaction: Some(transaction), deferred, .. }) = &*open else {
            return Ok(());
        };
        let keys = names.map(|names| self.named_constraints(transaction, names)).transpose()?;
        if !is_deferred {
            let (mark, before) = (self.kept_mark(), transaction.savepoint()?);
            let checked = self.finish_deferred(transaction, deferred, keys.as_deref());
            if checked.is_err() {
                transaction.rollback_to(before)?;
                self.restore_kept(mark);
            }
            transaction.release_savepoint(before);
            checked?;
            deferred.done(keys.as_deref());
        }
        deferred.set_constraints(keys.as_deref(), is_deferred);
        Ok(())
    }

    /// The deferrable constraints of these names: without a schema, those of the first schema of
    /// the search path that has any.
    fn named_constraints(
        &self,
        transaction: &Transaction,
        names: &[Name],
    ) -> Result<Vec<ConstraintKey>> {
        let snapshot = self.database.catalog.snapshot(transaction)?;
        let path = self.search_path.borrow().clone();
        let mut keys = Vec::new();
        for (schema, name) in names {
            let schemas = match schema {
                Some(schema) => vec![schema.clone()],
                None => path.as_deref().map_or_else(|| vec![PUBLIC], <[SmolStr]>::to_vec),
            };
            let has_name = |schema: &SmolStr| {
                let mut tables = snapshot.tables();
                tables.any(|table| table.schema == *schema && table.known_timing(name).is_some())
            };
            let Some(schema) = schemas.iter().find(|schema| has_name(schema)) else {
                let message = format!("constraint \"{name}\" does not exist");
                return Err(SqlError::new(SqlState::UndefinedObject, message));
            };
            for table in snapshot.tables().filter(|table| table.schema == *schema) {
                let Some(timing) = table.known_timing(name) else { continue };
                if !timing.is_deferrable() {
                    let message = format!("constraint \"{name}\" is not deferrable");
                    return Err(SqlError::new(SqlState::WrongObjectType, message));
                }
                keys.push((table.id, name.clone()));
            }
        }
        Ok(keys)
    }

    pub fn rollback(&self) -> Result<()> {
        let Open { transaction, outcome, .. } = self.take_open()?;
        let result = transaction.map_or(Ok(()), |transaction| Ok(transaction.abort()?));
        self.ended(outcome.into_inner(), TransactionOutcome::RolledBack);
        result
    }

    /// Ends the transaction, then begins another one with the same characteristics.
    fn chained(&self, what: &str, end: impl FnOnce(&Session) -> Result<()>) -> Result<()> {
        let settings = self.open.borrow().as_ref().map(|open| open.settings);
        let Some(settings) = settings else {
            let message = format!("{what} can only be used in transaction blocks");
            return Err(SqlError::new(SqlState::NoActiveSqlTransaction, message));
        };
        end(self)?;
        self.begin(settings)
    }

    pub fn control(&self, control: &Control) -> Result<()> {
        match control {
            Control::Begin(settings) => self.begin(*settings),
            Control::Commit(false) => self.commit(),
            Control::Rollback(false) => self.rollback(),
            Control::Commit(true) => self.chained("COMMIT AND CHAIN", Session::commit),
            Control::Rollback(true) => self.chained("ROLLBACK AND CHAIN", Session::rollback),
            Control::Assign(name, value, is_local) => {
                self.assign(name, value.as_deref(), SettingScope::from(*is_local)).map(|_| ())
            }
            Control::Command(_) => Err(SqlError::internal("a command without its text")),
            Control::Set(settings, local) => {
                self.check_durability(settings)?;
                if *local && !self.in_transaction() {
                    let message = "SET LOCAL can only be used in transaction blocks";
                    return Err(SqlError::new(SqlState::NoActiveSqlTransaction, message));
                }
                if *local {
                    if let Some(memory) = settings.memory {
                        self.change_settings(|_| self.limits.memory.set(memory));
                    }
                    return self.set_transaction(*settings);
                }
                self.change_settings(|committed| {
                    self.settings.set(settings.or(self.settings.get()));
                    self.note_plan_key();
                    if let Some(memory) = settings.memory {
                        self.limits.memory.set(memory);
                    }
                    if let Some(committed) = committed {
                        committed.settings = settings.or(committed.settings);
                        committed.memory = settings.memory.unwrap_or(committed.memory);
                    }
                });
                Ok(())
            }
            Control::Transaction(settings) => self.set_transaction(*settings),
            Control::Savepoint(name) => self.with_savepoints(|transaction, open| {
                let savepoint = OpenSavepoint {
                    name: name.clone(),
                    savepoint: transaction.savepoint()?,
                    settings: self.saved(),
                    outcome: open.outcome.borrow().clone(),
                    events: self.events.pending(),
                    modes: open.deferred.modes().clone(),
                    deferred: open.deferred.mark(),
                    moved: self.moved.mark(),
                    read_only: open.read_only.get(),
                };
                open.savepoints.borrow_mut().push(savepoint);
                Ok(())
            }),
            Control::RollbackTo(name) => self.with_savepoints(|transaction, open| {
                self.check_no_rows_read()?;
                let mut savepoints = open.savepoints.borrow_mut();
                let at = find(&savepoints, name)?;
                savepoints.truncate(at + 1);
                if let Some(found) = savepoints.get(at) {
                    transaction.rollback_to(found.savepoint)?;
                    open.set_read_only(transaction, found.read_only);
                    self.events.truncate(found.events);
                    open.deferred.set_modes(found.modes.clone());
                    open.deferred.rollback_to(found.deferred);
                    self.rollback_moves(found.moved);
                    if open.outcome.borrow().is_some() {
                        self.restore(found.settings.clone());
                        open.outcome.replace(found.outcome.clone());
                    }
                }
                Ok(())
            }),
            Control::Release(name) => self.with_savepoints(|transaction, open| {
                let mut savepoints = open.savepoints.borrow_mut();
                let at = find(&savepoints, name)?;
                if let Some(found) = savepoints.get(at) {
                    transaction.release_savepoint(found.savepoint);
                    open.set_read_only(transaction, found.read_only);
                }
                savepoints.truncate(at);
                Ok(())
            }),
        }
    }

    /// Without a log every transaction is in memory, with one none is.
    pub(in crate::session) fn check_durability(&self, settings: &Settings) -> Result<()> {
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

    /// Returns whether SET TRANSACTION after the first statement says what is so, or READ ONLY.
    fn takes_late(&self, open: &Open, settings: Settings) -> Result<bool> {
        let Some(transaction) = &open.transaction else { return Ok(false) };
        let is_known = settings.isolation.is_none_or(|it| it == transaction.isolation())
            && settings.durability.is_none()
            && settings.lock_timeout.is_none();
        match settings.read_only {
            Some(false) if transaction.is_read_only() => {
                let message = "transaction read-write mode must be set before any query";
                return Err(SqlError::new(SqlState::ActiveSqlTransaction, message));
            }
            Some(true) if is_known && !transaction.is_read_only() => {
                open.set_read_only(transaction, Some(true));
            }
            _ => {}
        }
        Ok(is_known)
    }

    fn set_transaction(&self, settings: Settings) -> Result<()> {
        let asks = settings.isolation.is_some()
            || settings.durability.is_some()
            || settings.lock_timeout.is_some()
            || settings.read_only.is_some();
        match &mut *self.open_mut()? {
            None => {
                let message = "SET TRANSACTION can only be used in transaction blocks";
                Err(SqlError::new(SqlState::NoActiveSqlTransaction, message))
            }
            Some(open) if asks && self.takes_late(open, settings)? => Ok(()),
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

    fn with_savepoints(&self, work: impl FnOnce(&Transaction, &Open) -> Result<()>) -> Result<()> {
        self.make_begun()?;
        match &*self.open.borrow() {
            Some(open @ Open { transaction: Some(transaction), .. }) => work(transaction, open),
            _ => {
                let message = "SAVEPOINT can only be used in transaction blocks";
                Err(SqlError::new(SqlState::NoActiveSqlTransaction, message))
            }
        }
    }
}

/// Returns what tells a transaction from others, while it stays in its place.
fn address_of(transaction: &Transaction) -> usize {
    std::ptr::from_ref(transaction).addr()
}

#[cold]
fn rows_are_read() -> SqlError {
    let message = "the transaction cannot change this while rows of its queries are being read";
    SqlError::new(SqlState::ObjectInUse, message)
        .with_hint("Drop the rows, or collect them, first.")
}

fn find(savepoints: &[OpenSavepoint], name: &str) -> Result<usize> {
    savepoints.iter().rposition(|known| known.name == name).ok_or_else(|| {
        SqlError::new(
            SqlState::InvalidSavepointSpecification,
            format!("savepoint \"{name}\" does not exist"),
        )
    })
}
