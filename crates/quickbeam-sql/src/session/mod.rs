//! Sessions: databases, connections, prepared statements, rows.
//!
//! Above: applications. Below: parser, binder, planner, execution. A [`Connection`] serves one
//! thread: it holds the open transaction, settings, and a cache of prepared statements by text. A
//! [`Statement`] is prepared once and keeps its operators and buffers; it is recompiled when the
//! catalog version differs from the one that it was compiled for.
//!
//! - SESSION-1: a statement that fails leaves nothing of itself. Outside a transaction its own
//!   transaction is aborted; inside one it is undone, and the transaction can go on.
//! - SESSION-2: a plan is used only under the catalog version it was made for, in the transaction
//!   that uses it.

pub(crate) mod access;
pub(crate) mod advisory;
mod autocommit;
pub(crate) mod copy;
pub(crate) mod database;
mod definition;
pub(crate) mod events;
pub(crate) mod executor;
pub(crate) mod named;
pub(crate) mod prepared_statement;
pub(crate) mod routine;
pub(crate) mod rows;
pub(crate) mod settings;
pub(crate) mod statement_cache;
pub(crate) mod temporary;
pub(crate) mod transaction;
mod user_types;
mod utility;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quickbeam::Durability;
use quickbeam::query_layer::EnvironmentExt;
use smol_str::SmolStr;

use self::copy::CopyAccess;
use self::database::SqlDatabase;
use self::events::{Event, Events, NoticeLevel};
use self::named::{Cursors, NamedStatements, no_cursor};
use self::routine::Routines;
use self::rows::OpenQueries;
use self::settings::variables::Variables;
use self::temporary::TemporaryObjects;
use self::transaction::{AloneChecks, Open};
use crate::bind::SearchPath;
use crate::catalog::{ObjectId, Table, TransitionSide};
use crate::compile::Parallelism;
use crate::compile::session_command::Settings;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::StatementLimits;
use crate::expression::{
    AdvisoryKey, AdvisoryRequest, Clock, Given, QueryRows, RoutineCall, SessionActivity,
    SessionLock, SessionSignal, SessionState, ShownCursor, ShownStatement, StatementStatistics,
};
use crate::plan::{ExecutionMode, TurnedOff};
use crate::session::settings::variables::{Saved, SettingScope};
use crate::table::MovedRows;
use crate::types::Value;

/// Bytes that a statement may keep, unless it is set otherwise.
pub(crate) const MEMORY: usize = 256 << 20;

/// Runs a command with its argument.
pub(crate) type ControlFunction = dyn Fn(&str, &str) -> Result<String> + Send;

/// What a connection has beside its cache.
pub(crate) struct Session {
    pub database: SqlDatabase,
    pub open: RefCell<Option<Open>>,
    /// What the statement outside a transaction block has deferred.
    pub alone: AloneChecks,
    pub reading: OpenQueries,
    pub settings: Cell<Settings>,
    pub variables: RefCell<Variables>,
    /// What RESET goes back to: the settings that the session began with.
    pub defaults: RefCell<Saved>,
    /// Counts changes of settings.
    pub settings_version: Cell<u64>,
    pub statement_timeout: Cell<Option<Duration>>,
    /// The durability that `synchronous_commit` asks for; `None` if it was never set.
    pub commit_durability: Cell<Option<Durability>>,
    /// The search path; `None`: the default one.
    pub search_path: RefCell<SearchPath>,
    /// The temporary objects.
    pub temporary: TemporaryObjects,
    /// The number of the search path and the roles; 0 is that of the default ones.
    pub path_number: Cell<u64>,
    /// The role that the session was opened for.
    pub login_role: Cell<ObjectId>,
    /// The role of SET SESSION AUTHORIZATION, and that of SET ROLE, by default the same.
    pub session_user: Cell<ObjectId>,
    pub role: Cell<ObjectId>,
    /// The owner of the SECURITY DEFINER function that runs, if its rights are those of now.
    pub definer: Cell<Option<ObjectId>>,
    /// The numbers of the roles that settings have named.
    pub known_roles: RefCell<HashMap<SmolStr, ObjectId>>,
    /// The plan steps that are turned off.
    pub turned_off: Cell<TurnedOff>,
    /// The workers that are allowed.
    pub parallelism: Cell<Parallelism>,
    /// Identifies the settings that plans depend on: execution mode, plan steps turned off,
    /// search path and roles. 0 stands for the defaults.
    pub plan_key: Cell<u64>,
    pub named: NamedStatements,
    pub cursors: Cursors,
    /// The rows that were moved or removed while there were cursors.
    pub moved: MovedRows,
    /// The session's number in its database.
    pub number: i32,
    /// Whether the session took advisory locks, and whether its transaction did.
    pub has_locks: Cell<[bool; 2]>,
    pub limits: StatementLimits,
    pub clock: Clock,
    pub given: Given,
    pub copy_access: Mutex<Option<Box<dyn CopyAccess>>>,
    /// What `quickbeam_control` runs.
    pub control: Mutex<Option<Box<ControlFunction>>>,
    pub events: Events,
    /// The functions that the session has compiled.
    pub routines: Routines,
    /// A procedure has ended the transaction in which it began.
    pub ended_in_procedure: Cell<bool>,
    /// The transaction under way may have changed something.
    pub has_changed: Cell<bool>,
    /// `session_replication_role` is `replica`: no foreign keys, and other triggers.
    pub is_replica: Cell<bool>,
}

impl Session {
    /// Begins the limits of a statement: it was not cancelled yet, and its time starts now.
    #[inline]
    pub fn begin_limits(&self) {
        self.limits.cancelled.store(false, Ordering::Relaxed);
        let timeout = self.statement_timeout.get();
        self.limits.deadline.set(timeout.and_then(|timeout| Instant::now().checked_add(timeout)));
    }

    /// Releases the advisory locks of the transaction, or those of the session.
    #[inline]
    pub fn release_locks(&self, in_transaction: bool) {
        if self.has_locks.get()[usize::from(in_transaction)] {
            self.release_held_locks(in_transaction);
        }
    }

    #[cold]
    fn release_held_locks(&self, in_transaction: bool) {
        let mut has_locks = self.has_locks.get();
        has_locks[usize::from(in_transaction)] = false;
        self.has_locks.set(has_locks);
        self.database.shared.locks.release(self.number, in_transaction);
    }

    /// What the session wants of the planner.
    pub fn way(&self) -> ExecutionMode {
        self.settings.get().way.unwrap_or_default()
    }
}

impl SessionState for Session {
    fn setting(&self, name: &str) -> Result<Option<String>> {
        self.show(name)
    }

    fn settings(&self) -> Result<Vec<[String; 3]>> {
        self.show_all()
    }

    fn set_setting(&self, name: &str, value: &str, is_local: bool) -> Result<String> {
        let shown = self.assign(name, Some(value), SettingScope::from(is_local))?;
        Ok(shown.unwrap_or_default())
    }

    fn log_position(&self) -> u64 {
        self.database.environment.log_position()
    }

    fn process_id(&self) -> i32 {
        self.number
    }

    fn trigger_depth(&self) -> i32 {
        self.routines.trigger_depth()
    }

    fn opened(&self) -> i64 {
        self.database.shared.opened.0
    }

    fn new_transaction_number(&self) -> u64 {
        let opening = u64::from(self.database.environment.incarnation());
        opening << 32 | self.database.shared.new_transaction()
    }

    fn has_changed(&self) -> bool {
        self.in_transaction() && self.has_changed.get()
    }

    fn role(&self) -> ObjectId {
        self.role.get()
    }

    fn temporary_schema(&self) -> Option<SmolStr> {
        Some(self.temporary.name.clone())
    }

    fn notify(&self, channel: &str, payload: &str) -> Result<()> {
        self.event(Event::Notify(channel.into(), payload.into()))
    }

    fn backup(&self, name: &str) -> Result<u64> {
        self.database.backup_by_name(name)
    }

    fn control(&self, command: &str, argument: &str) -> Result<String> {
        match &*self.control.lock() {
            Some(control) => control(command, argument),
            None => Err(SqlError::new(
                SqlState::InsufficientPrivilege,
                "only sessions on the socket in the environment's directory may call it",
            )),
        }
    }

    fn activities(&self) -> Vec<SessionActivity> {
        let directory = self.database.shared.server_sessions.directory();
        directory.map_or_else(Vec::new, |directory| directory.activities())
    }

    fn statement_statistics(&self) -> Vec<StatementStatistics> {
        let directory = self.database.shared.server_sessions.directory();
        directory.map_or_else(Vec::new, |directory| directory.statements())
    }

    fn signal(&self, number: i32, signal: SessionSignal) -> bool {
        let directory = self.database.shared.server_sessions.directory();
        directory.is_some_and(|directory| directory.signal(number, signal))
    }

    fn sleep(&self, time: Duration) -> Result<()> {
        const SLICE: Duration = Duration::from_millis(10);
        let began = Instant::now();
        loop {
            self.limits.check()?;
            match time.saturating_sub(began.elapsed()) {
                Duration::ZERO => return Ok(()),
                rest => std::thread::sleep(rest.min(SLICE)),
            }
        }
    }

    fn warn(&self, message: &str) {
        self.notice(NoticeLevel::Warning, SqlState::Warning, || message.to_owned());
    }

    fn advisory_locks(&self) -> Vec<SessionLock> {
        self.database.shared.locks.all()
    }

    fn shown_statements(&self) -> Vec<(SmolStr, ShownStatement)> {
        self.shown_statements()
    }

    fn shown_cursors(&self) -> Vec<(SmolStr, ShownCursor)> {
        self.shown_cursors()
    }

    fn lock_advisory(&self, request: AdvisoryRequest) -> Result<bool> {
        let mut has_locks = self.has_locks.get();
        has_locks[usize::from(request.in_transaction)] = true;
        self.has_locks.set(has_locks);
        self.database.shared.locks.lock(self.number, request, || self.limits.check())
    }

    fn unlock_advisory(&self, key: AdvisoryKey, is_shared: bool) -> bool {
        self.database.shared.locks.unlock(self.number, key, is_shared)
    }

    fn unlock_all_advisory(&self) {
        self.release_locks(false);
    }

    fn current_row(&self, cursor: &str, table: &Table) -> Result<Option<Vec<u8>>> {
        let cursors = self.cursors.borrow();
        let found = cursors.get(cursor).ok_or_else(|| no_cursor(cursor))?;
        let key = found.current_row(cursor, table)?;
        Ok(self.moved.follow(table.id, key, found.opened))
    }

    fn transition_rows(&self, side: TransitionSide) -> Result<Vec<Vec<Value>>> {
        self.routines.transition_rows(side)
    }

    fn call_routine(
        &self,
        transaction: &quickbeam::Transaction,
        call: &RoutineCall,
        arguments: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>> {
        self.call_in(transaction, call, arguments)
    }

    fn run_query(&self, transaction: &quickbeam::Transaction, text: &str) -> Result<QueryRows> {
        self.rows_for_function(transaction, text)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.leave_temporary();
        self.release_locks(true);
        self.release_locks(false);
        self.leave_channels();
    }
}
