//! The evaluation context of an expression: the current rows of a statement, and its parameters.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use quickbeam::Transaction;
use quickbeam::query_layer::ScanBatch;
use smol_str::SmolStr;

use crate::catalog::describe::Described;
use crate::catalog::{
    CatalogSnapshot, ConcreteTypes, DomainUse, ObjectId, Table, TransitionSide, View, Volatility,
};
use crate::ddl::SequenceState;
use crate::error::{Result, SqlError};
use crate::table::StoredRow;
use crate::types::{DataType, TextSettings, Value, ValueRef, current_moment};

/// The current row of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Current {
    /// No row: every column is NULL, as on the missing side of an outer join.
    #[default]
    Nothing,
    /// A record of the scan batch.
    Record(usize),
    /// A byte range of the encoded rows.
    Bytes(usize, usize),
    /// The computed values.
    Values,
}

/// A row slot: holds one current row, encoded as stored or as computed values.
#[derive(Debug, Default)]
pub struct Slot {
    /// The table of encoded rows.
    pub table: Option<Arc<Table>>,
    /// Rows of a scan.
    pub batch: ScanBatch,
    /// Encoded rows in memory.
    pub bytes: Vec<u8>,
    /// A computed row.
    pub values: Vec<Value>,
    /// The current row.
    pub current: Current,
}

impl Slot {
    /// Makes a slot whose current row is a stored row of a table.
    pub fn of_row(table: &Table, row: StoredRow<'_>) -> Slot {
        let mut slot = Slot::new(Some(Arc::new(table.clone())));
        slot.bytes.extend_from_slice(row.bytes());
        slot.current = Current::Bytes(0, slot.bytes.len());
        slot
    }

    /// Returns a slot for rows of that table, or for computed rows.
    pub fn new(table: Option<Arc<Table>>) -> Slot {
        Slot { table, ..Slot::default() }
    }

    /// Returns the encoded current row; empty if there is none.
    #[inline]
    pub fn row(&self) -> &[u8] {
        match self.current {
            Current::Record(record) => self.batch.value(record),
            Current::Bytes(start, end) => self.bytes.get(start..end).unwrap_or_default(),
            Current::Nothing | Current::Values => &[],
        }
    }

    /// Returns the integer in a column of the current row, if the row's layout allows a direct
    /// load.
    #[inline]
    pub fn number(&self, column: usize) -> Option<i64> {
        self.table.as_ref()?.number_in(self.row(), column)
    }

    /// Returns a column of the current row.
    #[inline]
    pub fn column(&self, column: usize) -> Result<ValueRef<'_>> {
        let row = match self.current {
            Current::Record(record) => self.batch.value(record),
            Current::Bytes(start, end) => self.bytes.get(start..end).unwrap_or_default(),
            Current::Nothing => return Ok(ValueRef::Null),
            Current::Values => {
                return Ok(self.values.get(column).map_or(ValueRef::Null, Value::as_ref));
            }
        };
        match &self.table {
            Some(table) => StoredRow::new(table, row)?.get(column),
            None => Ok(ValueRef::Null),
        }
    }
}

/// What a session's functions read besides rows: the start time of the transaction, taken from the
/// clock on first use, the settings of the texts of values, and the state of `random`.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    time: Cell<Option<i64>>,
    settings: Cell<TextSettings>,
    random: Cell<Option<Generator>>,
    /// The number of the transaction, if something has asked for it.
    transaction: Cell<Option<u64>>,
}

impl Clock {
    /// Forgets the time when another transaction begins.
    #[inline]
    pub fn reset(&self) {
        self.time.set(None);
        self.transaction.set(None);
    }

    /// Returns the number of the transaction, if it has one.
    pub fn transaction_number(&self) -> Option<u64> {
        self.transaction.get()
    }

    /// Returns the settings of the texts of values.
    pub fn settings(&self) -> TextSettings {
        self.settings.get()
    }

    /// Changes the settings of the texts of values. Returns whether they are others.
    pub fn set_settings(&self, settings: TextSettings) -> bool {
        self.settings.replace(settings) != settings
    }

    /// Returns the transaction's start time in microseconds since 1970 UTC.
    pub(super) fn now(&self) -> i64 {
        let time = self.time.get().unwrap_or_else(current_moment);
        self.time.set(Some(time));
        time
    }
}

/// The generator of `random`: xoroshiro128**, with the seeds that PostgreSQL derives.
#[derive(Clone, Copy, Debug)]
struct Generator(u64, u64);

impl Generator {
    /// Returns the generator with a seed, which splitmix64 expands.
    fn new(seed: u64) -> Generator {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        Generator(next(), next())
    }

    /// Returns a generator with an unpredictable seed.
    fn unpredictable() -> Generator {
        use std::hash::{BuildHasher, RandomState};
        Generator::new(RandomState::new().hash_one(0))
    }

    fn next(&mut self) -> u64 {
        let (first, mixed) = (self.0, self.0 ^ self.1);
        let value = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        self.0 = first.rotate_left(24) ^ mixed ^ (mixed << 16);
        self.1 = mixed.rotate_left(37);
        value
    }
}

/// The sequence values that a session has taken.
#[derive(Debug, Default)]
pub struct Given {
    values: RefCell<HashMap<u32, i64>>,
    newest: Cell<Option<u32>>,
}

impl Given {
    /// Records a value that the session took from the sequence.
    pub fn note(&self, sequence: u32, value: i64) {
        self.values.borrow_mut().insert(sequence, value);
        self.newest.set(Some(sequence));
    }

    /// Forgets all values.
    pub fn clear(&self) {
        self.values.borrow_mut().clear();
        self.newest.set(None);
    }

    /// Returns the last value taken from the sequence, or from any sequence without a number.
    pub fn value(&self, sequence: Option<u32>) -> Option<i64> {
        let sequence = sequence.or(self.newest.get())?;
        self.values.borrow().get(&sequence).copied()
    }
}

/// An advisory lock: one number, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdvisoryKey {
    /// A BIGINT.
    One(i64),
    /// Two INTEGERs.
    Two(i32, i32),
}

/// A request for an advisory lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvisoryRequest {
    /// The lock.
    pub key: AdvisoryKey,
    /// Whether other sessions may share it.
    pub is_shared: bool,
    /// Whether the request waits for the lock.
    pub waits: bool,
    /// Whether the lock is released when the transaction ends.
    pub in_transaction: bool,
}

/// A session and what it does. Moments are microseconds since 1970-01-01 UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionActivity {
    /// The number of the session: what `pg_backend_pid()` returns there.
    pub number: i32,
    /// The user.
    pub user: String,
    /// The setting `application_name`.
    pub application_name: String,
    /// The client's address; `None` for a UNIX socket.
    pub address: Option<String>,
    /// When the session began.
    pub began: i64,
    /// When its open transaction began.
    pub transaction_began: Option<i64>,
    /// When its last statement began.
    pub statement_began: Option<i64>,
    /// When the state changed last.
    pub changed: i64,
    /// `active`, `idle`, `idle in transaction` or `idle in transaction (aborted)`.
    pub state: &'static str,
    /// The text of the last statement.
    pub statement: Arc<str>,
}

/// What one session asks of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionSignal {
    /// To cancel its statement.
    Cancel,
    /// To roll back and end.
    Terminate,
}

/// The sessions of a program's server, which `pg_stat_activity` shows and `pg_terminate_backend`
/// ends.
pub trait SessionDirectory: Send + Sync {
    /// Returns what the sessions do.
    fn activities(&self) -> Vec<SessionActivity>;

    /// Signals the session of that number, and returns whether there is one.
    fn signal(&self, number: i32, signal: SessionSignal) -> bool;

    /// Returns what was counted for each statement, if anything was.
    fn statements(&self) -> Vec<StatementStatistics> {
        Vec::new()
    }
}

/// What a server has counted of the executions of one statement by one user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementStatistics {
    /// A number that is the same for the same statement of the same user.
    pub id: i64,
    /// The user.
    pub user: Arc<str>,
    /// The text, with parameters in place of constants.
    pub text: Arc<str>,
    /// The executions, with those that failed.
    pub calls: u64,
    /// The executions that failed.
    pub failures: u64,
    /// The rows returned or changed.
    pub rows: u64,
    /// The duration of all executions.
    pub total: Duration,
    /// That of the fastest.
    pub fastest: Duration,
    /// That of the slowest.
    pub slowest: Duration,
    /// When the first began, in microseconds since 1970-01-01 UTC.
    pub first: i64,
    /// When the last began.
    pub last: i64,
}

/// An advisory lock that a session holds or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLock {
    /// The session.
    pub session: i32,
    /// The lock.
    pub key: AdvisoryKey,
    /// Whether other sessions may share it.
    pub is_shared: bool,
    /// Whether the session holds it; it waits otherwise.
    pub is_held: bool,
    /// When the wait began, in microseconds since 1970-01-01 UTC.
    pub waits_since: Option<i64>,
}

/// What `pg_prepared_statements` shows of a prepared statement.
#[derive(Clone, Debug)]
pub struct ShownStatement {
    /// The text of PREPARE, or of the statement that a client of the protocol has prepared.
    pub statement: Arc<str>,
    /// When it was prepared.
    pub prepared: i64,
    /// The types of its parameters.
    pub parameters: Arc<[DataType]>,
    /// The parameters of domains, by their numbers.
    pub domains: Arc<[(usize, DomainUse)]>,
    /// Whether PREPARE made it.
    pub from_sql: bool,
}

/// What `pg_cursors` shows of a cursor.
#[derive(Clone, Debug, Default)]
pub struct ShownCursor {
    /// The text of DECLARE, or of the query of OPEN.
    pub statement: Arc<str>,
    /// WITH HOLD.
    pub holds: bool,
    /// BINARY.
    pub is_binary: bool,
    /// Whether it moves backward.
    pub scrolls: bool,
    /// When it was declared.
    pub created: i64,
}

/// A function of the catalog, as an expression calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoutineCall {
    /// Its number.
    pub id: ObjectId,
    /// Whether the result is NULL if an argument is.
    pub is_strict: bool,
    /// Whether its value changes.
    pub volatility: Volatility,
    /// Whether it returns rows.
    pub returns_set: bool,
    /// The types that the call decides.
    pub types: Option<&'static ConcreteTypes>,
}

/// The session that a statement runs in.
pub trait SessionState {
    /// Returns the value of a setting as SHOW does; `None` if there is no such setting.
    fn setting(&self, name: &str) -> Result<Option<String>>;

    /// Returns each setting: its name, its value as SHOW has it, and its description.
    fn settings(&self) -> Result<Vec<[String; 3]>>;

    /// Changes a setting, as SET or SET LOCAL does, and returns the value as SHOW does.
    fn set_setting(&self, name: &str, value: &str, is_local: bool) -> Result<String>;

    /// Returns the session's number.
    fn process_id(&self) -> i32;

    /// Returns how many triggers are under way, one within another.
    fn trigger_depth(&self) -> i32;

    /// Returns the position after the last record of the log.
    fn log_position(&self) -> u64;

    /// Returns when the database was opened for SQL, in microseconds since 1970-01-01 UTC.
    fn opened(&self) -> i64;

    /// Returns a number that no other transaction has or had.
    fn new_transaction_number(&self) -> u64;

    /// Returns whether the transaction may have changed something.
    fn has_changed(&self) -> bool;

    /// Returns the role that executes the statement.
    fn role(&self) -> ObjectId;

    /// Returns the schema of the session's temporary objects.
    fn temporary_schema(&self) -> Option<SmolStr> {
        None
    }

    /// Sends a notification when the transaction commits.
    fn notify(&self, channel: &str, payload: &str) -> Result<()>;

    /// Backs the environment up into the folder of that name. Returns the bytes copied.
    fn backup(&self, name: &str) -> Result<u64>;

    /// Runs a command of the program that made the connection, and returns its answer.
    fn control(&self, command: &str, argument: &str) -> Result<String>;

    /// Returns what the sessions of the program's server do.
    fn activities(&self) -> Vec<SessionActivity>;

    /// Returns what the program's server has counted for each statement.
    fn statement_statistics(&self) -> Vec<StatementStatistics> {
        Vec::new()
    }

    /// Signals a session of the program's server, and returns whether there is one.
    fn signal(&self, number: i32, signal: SessionSignal) -> bool;

    /// Waits that long, or until the statement is canceled.
    fn sleep(&self, time: Duration) -> Result<()>;

    /// Leaves a warning for the client.
    fn warn(&self, message: &str);

    /// Returns the advisory locks that sessions hold or wait for.
    fn advisory_locks(&self) -> Vec<SessionLock>;

    /// Returns the session's prepared statements, by name.
    fn shown_statements(&self) -> Vec<(SmolStr, ShownStatement)> {
        Vec::new()
    }

    /// Returns the session's cursors, by name.
    fn shown_cursors(&self) -> Vec<(SmolStr, ShownCursor)> {
        Vec::new()
    }

    /// Takes an advisory lock and returns whether it did.
    fn lock_advisory(&self, request: AdvisoryRequest) -> Result<bool>;

    /// Releases an advisory lock of the session and returns whether it held the lock.
    fn unlock_advisory(&self, key: AdvisoryKey, is_shared: bool) -> bool;

    /// Releases all advisory locks of the session but those of the transaction.
    fn unlock_all_advisory(&self);

    /// Returns the key of the row of a table that is the current one of a cursor.
    fn current_row(&self, cursor: &str, _table: &Table) -> Result<Option<Vec<u8>>> {
        Err(SqlError::unsupported(format!("the cursor {cursor} here")))
    }

    /// Returns the rows of a transition table of the trigger that runs.
    fn transition_rows(&self, _side: TransitionSide) -> Result<Vec<Vec<Value>>> {
        Err(SqlError::unsupported("a transition table here"))
    }

    /// Calls a function of the catalog and returns its rows.
    fn call_routine(
        &self,
        _transaction: &Transaction,
        _call: &RoutineCall,
        _arguments: Vec<Value>,
    ) -> Result<Vec<Vec<Value>>> {
        Err(SqlError::unsupported("a function of the catalog here"))
    }

    /// Runs a query that reads only, in the transaction of the statement that calls a function.
    fn run_query(&self, _transaction: &Transaction, _text: &str) -> Result<QueryRows> {
        Err(SqlError::unsupported("a query of a function here"))
    }
}

/// The rows of a query that a function runs.
pub struct QueryRows {
    /// The types of the columns.
    pub types: Vec<DataType>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

/// What functions read and change besides rows: sequences, the session and the catalog.
pub trait Host {
    /// Returns the session.
    fn session(&self) -> &dyn SessionState;

    /// Returns the catalog that the statement sees.
    fn snapshot(&self) -> &CatalogSnapshot;

    /// Returns about how many bytes the rows of a table or the entries of an index have.
    fn estimated_size(&self, relation: Described<'_>) -> Result<i64>;

    /// Returns the sessions that keep a session waiting.
    fn blockers(&self, session: i32) -> Vec<i32>;

    /// Returns the changes that a view allows, as bits by PostgreSQL's numbers of commands, and for
    /// each of its columns whether it can be changed.
    fn updatability(&self, view: &View) -> (i32, Vec<bool>);

    /// Takes the next value of the sequence with that number.
    fn next_value(&self, sequence: u32) -> Result<i64>;

    /// Returns the session's last value of the sequence, or of any sequence without a number.
    fn current_value(&self, sequence: Option<u32>) -> Result<i64>;

    /// Returns what a query of the sequence with that number shows.
    fn sequence_state(&self, sequence: u32) -> Result<SequenceState>;

    /// Calls a function of the catalog that returns a value.
    fn call_routine(&self, _call: &RoutineCall, _arguments: Vec<Value>) -> Result<Value> {
        Err(SqlError::unsupported("a function of the catalog here"))
    }

    /// Runs a query that reads only.
    fn run_query(&self, text: &str) -> Result<QueryRows>;

    /// Sets the sequence's value. If `is_called` is false, the next call returns `value` itself.
    fn set_value(&self, sequence: u32, value: i64, is_called: bool) -> Result<()>;
}

/// Returns the bytes of a random UUID, of version 4.
#[must_use]
pub fn random_uuid() -> [u8; 16] {
    let half = || Generator::unpredictable().next().to_be_bytes();
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&half());
    bytes[8..].copy_from_slice(&half());
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// The inputs of an evaluation.
#[derive(Clone, Copy)]
pub struct Frame<'a> {
    /// The row slots.
    pub slots: &'a [Slot],
    /// The parameter values.
    pub parameters: &'a [Value],
    /// The transaction's start time, if there is a transaction.
    pub clock: Option<&'a Clock>,
    /// The sequences, the session and the catalog, where an expression may use them.
    pub host: Option<&'a dyn Host>,
}

impl<'a> Frame<'a> {
    /// Returns a frame without rows.
    pub fn of_parameters(parameters: &'a [Value]) -> Frame<'a> {
        Frame { slots: &[], parameters, clock: None, host: None }
    }

    /// Returns the sequences, the session and the catalog.
    pub fn host(&self) -> Result<&'a dyn Host> {
        self.host.ok_or_else(|| SqlError::unsupported("a function of the session here"))
    }

    /// Returns the settings of the texts of values: those of the session, or the defaults where the
    /// result must not depend on the session.
    pub fn settings(&self) -> TextSettings {
        self.clock.map_or(TextSettings::DEFAULT, Clock::settings)
    }

    /// Returns the frame with the default settings of texts, for expressions whose values are
    /// stored with their row.
    #[must_use]
    pub fn without_session(self) -> Frame<'a> {
        Frame { clock: None, ..self }
    }

    /// Returns the transaction's start time in microseconds since 1970 UTC.
    pub fn now(&self) -> i64 {
        self.clock.map_or_else(current_moment, Clock::now)
    }

    /// Returns the current time in microseconds since 1970 UTC. It advances within a transaction,
    /// and is never before the transaction's start time.
    pub fn clock_time(&self) -> i64 {
        let start = self.now();
        current_moment().max(start)
    }

    /// Returns the number of the transaction, and gives it one if it has none.
    pub fn transaction_number(&self) -> Result<u64> {
        let known = self.clock.and_then(Clock::transaction_number);
        if let Some(known) = known {
            return Ok(known);
        }
        let number = self.host()?.session().new_transaction_number();
        if let Some(clock) = self.clock {
            clock.transaction.set(Some(number));
        }
        Ok(number)
    }

    /// Returns the next number of `random`, from 0 up to, and without, 1.
    pub fn random(&self) -> f64 {
        let known = self.clock.and_then(|clock| clock.random.get());
        let mut generator = known.unwrap_or_else(Generator::unpredictable);
        let bits = generator.next();
        if let Some(clock) = self.clock {
            clock.random.set(Some(generator));
        }
        (bits >> 12) as f64 / (1_u64 << 52) as f64
    }

    /// Sets the seed of `random`, a number from -1 to 1.
    pub fn set_random_seed(&self, seed: f64) {
        let scaled = ((1_u64 << 52) - 1) as f64 * seed;
        if let Some(clock) = self.clock {
            clock.random.set(Some(Generator::new(scaled as i64 as u64)));
        }
    }
}
