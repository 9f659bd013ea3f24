//! What an SQL engine must offer to be measured.
//!
//! An adapter translates; it never changes the work. The harness decides statements, parameters,
//! their order and where transactions begin and end, and gives every engine the same texts.
//! Parameters are written `$1`, `$2`, … in the order in which they first occur. What differs is
//! what the engines have no common words for: how a transaction is begun, how many rows are loaded
//! before the timer starts, and the few places in which [`Dialect`] fills a text.

pub mod answers;
pub mod engines;
pub mod plan;
pub mod query_list;
pub mod retry;
pub mod subjects;
pub mod trace;

use std::fmt;
use std::path::PathBuf;

use crate::engine::{Mode, OpResult, Support};

/// A parameter or a column of a loaded row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'v> {
    /// For a column of type INTEGER.
    Integer(i32),
    /// For a column of type BIGINT.
    Bigint(i64),
    /// For CHAR and VARCHAR.
    Text(&'v str),
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => write!(f, "{number}"),
            Value::Bigint(number) => write!(f, "{number}"),
            Value::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        }
    }
}

/// Names a prepared statement of the connection that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared(pub usize);

/// What a transaction is begun for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads only.
    Read,
    /// It may write: engines with one writer make it queue at its beginning.
    Write,
}

/// The current row of a query. Columns count from zero.
pub trait SqlRow {
    /// A whole number; nothing for NULL.
    fn integer(&self, column: usize) -> Option<i64>;
    /// The bytes of a text; nothing for NULL.
    fn text(&self, column: usize) -> Option<&[u8]>;
    /// A value of any type as text, to be compared with that of another engine; nothing for NULL.
    fn shown(&self, column: usize) -> Option<String> {
        self.text(column).map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// What is done with each row of an answer.
pub type VisitRow<'v> = dyn FnMut(&dyn SqlRow) + 'v;

/// Rows to load: each is handed to the function given.
pub type Rows<'r> =
    dyn FnMut(&mut dyn FnMut(&[Value<'_>]) -> anyhow::Result<()>) -> anyhow::Result<()> + 'r;

/// One thread's way into an open database.
pub trait SqlConnection {
    /// Runs one statement without parameters, not prepared: definitions and settings.
    fn run(&mut self, sql: &str) -> anyhow::Result<()>;
    /// Prepares a statement that will be used many times.
    fn prepare(&mut self, sql: &str) -> anyhow::Result<Prepared>;
    /// Runs a prepared statement that has no answer; returns how many rows it changed. Outside a
    /// transaction it is one of its own.
    fn execute(&mut self, statement: Prepared, parameters: &[Value<'_>]) -> OpResult<u64>;
    /// Runs a prepared query and hands over each row of its answer.
    fn query(
        &mut self,
        statement: Prepared,
        parameters: &[Value<'_>],
        visit: &mut VisitRow<'_>,
    ) -> OpResult;
    /// Begins a transaction.
    fn begin(&mut self, access: Access) -> OpResult;
    /// Commits it with the durability of the mode.
    fn commit(&mut self) -> OpResult;
    /// Undoes it. Also called after an operation or a commit that has failed, when the engine
    /// may have undone it already.
    fn rollback(&mut self);
    /// Fills an empty table, in the fastest way the engine has: nothing here is timed.
    fn load(&mut self, table: &str, columns: usize, rows: &mut Rows<'_>) -> anyhow::Result<()> {
        let places: Vec<String> = (1..=columns).map(|column| format!("${column}")).collect();
        let insert = format!("INSERT INTO {table} VALUES ({})", places.join(", "));
        let insert = self.prepare(&insert)?;
        retry::settled(self.begin(Access::Write))?;
        rows(&mut |row| retry::settled(self.execute(insert, row)).map(|_| ()))?;
        retry::settled(self.commit())
    }
}

/// How to open a database.
#[derive(Clone, Debug)]
pub struct SqlSetup {
    /// An existing directory.
    pub directory: PathBuf,
    /// Durability class.
    pub mode: Mode,
    /// Cache size where the engine has a cache of its own.
    pub cache_bytes: u64,
    /// How many connections will be used at the same time.
    pub threads: usize,
    /// Rows of the largest table: an engine that works on many at a time takes no more threads
    /// than that is worth.
    pub rows: u64,
    /// Where a server listens already, for an engine that has one.
    pub url: Option<String>,
}

/// Where the texts of statements differ between engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dialect {
    /// Written after `PRIMARY KEY (…)` for a hash index.
    pub hash_key: Option<&'static str>,
    /// Written after the definition of a table that is read by its primary key.
    pub keyed_table: &'static str,
    /// How a table comes to be stored in the order of its key.
    pub clustering: Clustering,
    /// Whether stored procedures can be written in PL/pgSQL.
    pub procedures: bool,
    /// Whether `TRUNCATE` empties a table.
    pub truncate: bool,
    /// Whether dates are texts, computed with by SQLite's functions.
    pub date_functions: bool,
    /// What is written before and after a query so that all its outputs are texts, where
    /// [`SqlRow::shown`] needs that.
    pub as_texts: Option<(&'static str, &'static str)>,
    /// The statement after which a query uses one thread, where it would use several.
    pub one_thread: Option<&'static str>,
}

/// How a table comes to be stored in the order of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clustering {
    /// A table with a primary key is.
    #[default]
    PrimaryKey,
    /// A unique index is made and then `CLUSTER table USING index`.
    Command,
    /// It is in that order when it was loaded in that order; the index is beside it.
    Loading,
}

/// An open database.
pub trait SqlInstance: Sync {
    /// The settings in force, for the report.
    fn settings(&self) -> String;
    /// Where its texts differ.
    fn dialect(&self) -> Dialect;
    /// A connection for the calling thread.
    fn connect(&self) -> anyhow::Result<Box<dyn SqlConnection + '_>>;
    /// Brings everything committed so far into the database file, and statistics up to date,
    /// after loading.
    fn settle(&self) -> anyhow::Result<()>;
    /// Closes cleanly.
    fn close(self: Box<Self>) -> anyhow::Result<()>;
}

/// An SQL engine that can be measured.
pub trait SqlEngine: Sync {
    /// The name used on the command line and in reports.
    fn name(&self) -> &'static str;
    /// The version in use; an error that names the missing package when it cannot be had.
    fn version(&self) -> anyhow::Result<String>;
    /// Whether it can be measured in this mode with this many threads.
    fn supports(&self, mode: Mode, threads: usize) -> Support;
    /// Opens the database in `setup.directory`, creating it when the directory is empty.
    fn open(&self, setup: &SqlSetup) -> anyhow::Result<Box<dyn SqlInstance>>;
}
