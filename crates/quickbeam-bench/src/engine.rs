//! What a storage engine must offer to be measured.
//!
//! An adapter translates; it never changes the work. The harness decides keys, values, order and
//! transaction boundaries, and hands every engine the same closures: [`Session::read`] and
//! [`Session::write`] each run one closure inside one transaction. Closures rather than separate
//! `begin` and `commit` calls, because some engines tie a table handle to the transaction that
//! opened it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};

/// What a commit promises, and where the database lives: the configurations of the white paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// Data Store: one owner, no transactions, no log.
    Ds,
    /// Every commit is flushed to the device.
    Sync,
    /// As `Sync`, with database and log on a memory file system.
    Ramdisk,
    /// Every commit is handed to the operating system, none is flushed.
    Wns,
    /// Commits stay in the process until a buffer fills.
    Ns,
    /// The log, where there is one, never leaves memory.
    InMem,
}

impl Mode {
    /// Every mode, in the order of the paper's tables.
    pub const ALL: [Mode; 6] =
        [Mode::Ds, Mode::Sync, Mode::Ramdisk, Mode::Wns, Mode::Ns, Mode::InMem];

    /// The name used on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Ds => "ds",
            Mode::Sync => "sync",
            Mode::Ramdisk => "ramdisk",
            Mode::Wns => "wns",
            Mode::Ns => "ns",
            Mode::InMem => "inmem",
        }
    }

    /// Whether each commit waits for a flush of the device (or of the memory file system).
    pub fn flushes(self) -> bool {
        matches!(self, Mode::Sync | Mode::Ramdisk)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Mode {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Mode::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(|| {
            anyhow!("unknown mode `{text}`; one of ds, sync, ramdisk, wns, ns, inmem")
        })
    }
}

/// Why an operation did not succeed.
#[derive(Debug)]
pub enum OpError {
    /// The engine gave this transaction up (deadlock, conflict); run it again.
    Retry,
    /// Anything else: the run has failed.
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for OpError {
    fn from(error: E) -> Self {
        OpError::Failed(error.into())
    }
}

/// The outcome of one operation or one transaction.
pub type OpResult<T = ()> = Result<T, OpError>;

/// The operations inside a read-only transaction.
pub trait Reader {
    /// Copies the value of `key` into `value` (cleared first); `false` when there is none.
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool>;
    /// Visits up to `span.count` neighbouring records, beginning at `span.from`.
    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult;
}

/// What a range read visits.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// The first record is the one with this key, or else the next one in the direction.
    pub from: &'a [u8],
    /// In descending order.
    pub backward: bool,
    /// How many records at most.
    pub count: usize,
}

/// Is handed the key and the value of a record.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) + 'v;

/// The operations inside an updating transaction. `insert` is called only for keys that are absent
/// and `update` and `delete` only for keys that are present, so that each engine can use the verb
/// that is natural to it.
pub trait Writer {
    /// Adds a record.
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult;
    /// Replaces the value of a record.
    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult;
    /// Removes a record.
    fn delete(&mut self, key: &[u8]) -> OpResult;
}

/// The body of a read-only transaction.
pub type ReadWork<'w> = dyn FnMut(&mut dyn Reader) -> OpResult + 'w;
/// The body of an updating transaction; run again from its beginning after [`OpError::Retry`].
pub type WriteWork<'w> = dyn FnMut(&mut dyn Writer) -> OpResult + 'w;

/// One thread's way into an open database.
pub trait Session {
    /// Runs `work` in one read-only transaction.
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult;
    /// Runs `work` in one updating transaction and commits it with the durability of the mode.
    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult;
    /// Visits every record in key order: the harness checks the content with it.
    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> anyhow::Result<()>;
}

/// How to open a database.
#[derive(Clone, Debug)]
pub struct Setup {
    /// An existing directory that holds nothing else.
    pub directory: PathBuf,
    /// Durability class.
    pub mode: Mode,
    /// Cache size where the engine has a cache of its own.
    pub cache_bytes: u64,
    /// Size of the log buffer where the engine has one.
    pub log_buffer_bytes: u64,
    /// How many threads will use the database at the same time.
    pub threads: usize,
    /// How many records the database will hold.
    pub records: u64,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
    /// Whether the engine may start checkpoints by itself.
    pub automatic_checkpoints: bool,
}

/// An open database.
pub trait Instance: Sync {
    /// The settings in force, for the report.
    fn settings(&self) -> String;
    /// A handle for the calling thread.
    fn session(&self) -> anyhow::Result<Box<dyn Session + '_>>;
    /// Brings everything committed so far into the database file and truncates the log as far as
    /// the engine does.
    fn checkpoint(&self) -> anyhow::Result<()>;
    /// Closes cleanly.
    fn close(self: Box<Self>) -> anyhow::Result<()>;
}

/// Whether an engine has a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It can be measured.
    Yes,
    /// It cannot, for the reason given.
    No(&'static str),
}

/// An engine that can be measured.
pub trait Engine: Sync {
    /// The name used on the command line and in reports.
    fn name(&self) -> &'static str;
    /// The version in use; an error that names the missing package when it cannot be had.
    fn version(&self) -> anyhow::Result<String>;
    /// Whether it can be measured in this mode with this many threads.
    fn supports(&self, mode: Mode, threads: usize) -> Support;
    /// Whether a log grows until a checkpoint and is replayed when the database is opened after a
    /// crash, so that there is something to recover.
    fn replays_log(&self) -> bool {
        false
    }
    /// Opens the database in `setup.directory`, creating it when the directory is empty.
    fn open(&self, setup: &Setup) -> anyhow::Result<Box<dyn Instance>>;
}
