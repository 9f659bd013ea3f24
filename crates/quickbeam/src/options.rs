//! Settings of an environment and of a transaction, with their defaults.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, Result};

/// What a commit waits for.
///
/// ```
/// use quickbeam::Durability;
///
/// assert_eq!("write_nosync".parse::<Durability>()?, Durability::WriteNoSync);
/// assert_eq!(Durability::Sync.to_string(), "sync");
/// # Ok::<(), quickbeam::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// Commit writes and flushes the log, in one group with other waiting commits. Survives power
    /// loss.
    Sync,
    /// Commit writes the log to the operating system. Survives a crash of the process.
    WriteNoSync,
    /// Commit leaves the log in the log buffer; a background thread writes it. A crash may lose the
    /// newest commits.
    NoSync,
    /// There is no log. After a crash the state is that of the last checkpoint.
    InMemory,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Durability::Sync => "sync",
            Durability::WriteNoSync => "write_nosync",
            Durability::NoSync => "nosync",
            Durability::InMemory => "inmemory",
        })
    }
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "sync" => Ok(Durability::Sync),
            "write_nosync" => Ok(Durability::WriteNoSync),
            "nosync" => Ok(Durability::NoSync),
            "inmemory" => Ok(Durability::InMemory),
            _ => Err(Error::misuse(format!(
                "unknown durability {text:?}; one of sync, write_nosync, nosync, inmemory"
            ))),
        }
    }
}

/// How a database finds its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccessMethod {
    /// A B+tree: records in key order, with cursors and ranges from any key.
    #[default]
    BTree,
    /// A hash of the whole key, faster than the B+tree for single records. A cursor visits all
    /// records in an arbitrary order; there are no ranges.
    Hash,
    /// A hash of the key's bucket prefix, which identifies a *group* of records. A key is the
    /// prefix's length in two bytes (big-endian), the prefix, and the rest of the key.
    ///
    /// The records of a group are adjacent, ordered by the rest of the key;
    /// [`restart_hash_prefix`](crate::query_layer::Scan::restart_hash_prefix) reads them. If a key
    /// is shorter than its length bytes say, the whole key is the prefix. Otherwise as `Hash`.
    HashPrefix,
}

impl AccessMethod {
    /// Returns whether records are in key order.
    #[must_use]
    #[inline]
    pub fn is_ordered(self) -> bool {
        self == AccessMethod::BTree
    }
}

impl fmt::Display for AccessMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessMethod::BTree => "btree",
            AccessMethod::Hash => "hash",
            AccessMethod::HashPrefix => "hash_prefix",
        })
    }
}

/// Which changes of other transactions a transaction reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Transactions behave as if they ran one at a time, in commit order.
    Serializable,
    /// All calls read one snapshot. Two transactions may each miss the other's write (write skew).
    Snapshot,
    /// Each call reads a snapshot of its own, taken when the call starts.
    ReadCommitted,
}

/// What happens when undo entries kept for old snapshots exceed [`Options::undo_limit`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UndoPolicy {
    /// Transactions wait before their first change until there is less undo, but no longer than
    /// their lock timeout; then the change fails with
    /// [`Error::UndoLimit`](crate::Error::UndoLimit).
    #[default]
    DelayWriters,
    /// The oldest snapshots expire. Their transactions fail with
    /// [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld). A transaction with changes keeps
    /// its snapshot.
    ExpireReaders,
}

/// Defines builder methods, each of which sets the field of its name.
macro_rules! setters {
    ($($field:ident: $type:ty),* $(,)?) => {
        $(
            #[doc = concat!("Sets [`", stringify!($field), "`](#structfield.", stringify!($field), ").")]
            #[must_use]
            pub fn $field(mut self, $field: $type) -> Self {
                self.$field = $field.into();
                self
            }
        )*
    };
}

/// Settings of an environment or data store.
///
/// Later versions may add settings, so other crates build options with the methods.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// use quickbeam::{Durability, Environment, Options};
/// use std::time::Duration;
///
/// let options = Options::new()
///     .cache_size(512 << 20)
///     .durability(Durability::WriteNoSync)
///     .checkpoint_interval(Duration::from_secs(300));
/// let environment = Environment::open(directory.path(), options)?;
/// # Ok::<(), quickbeam::Error>(())
/// ```
///
/// A struct expression does not compile outside this crate:
///
/// ```compile_fail,E0639
/// let options = quickbeam::Options { create: false, ..Default::default() };
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Memory for pages, in bytes. Default 64 MiB.
    pub cache_size: usize,
    /// Bytes in a page: a power of two from 4,096 to 65,536. Used only when the environment is
    /// created. Default 8,192.
    pub page_size: usize,
    /// Size of the log buffer in bytes. Default 8 MiB.
    pub log_buffer: usize,
    /// Bytes in a log segment file. Used only when the environment is created. Default 16 MiB.
    pub log_segment_size: u64,
    /// Durability of transactions that do not set their own. Default `Sync`.
    pub durability: Durability,
    /// Isolation of transactions that do not set their own. Default `Serializable`.
    pub isolation: Isolation,
    /// How long a transaction waits for a record that another one changed. Default 10 s.
    pub lock_timeout: Duration,
    /// How long [`Environment::transact`](crate::Environment::transact) retries after conflicts.
    /// Default 30 s.
    pub retry_timeout: Duration,
    /// Bytes of undo entries that stay in memory: the older versions of changed records, for
    /// rollback and for old snapshots. More go to temporary files, which are removed when they are
    /// not needed. An environment in memory keeps all of them. Default 256 MiB.
    pub undo_memory: u64,
    /// Bytes of undo entries of committed transactions that old snapshots may hold, in memory and
    /// in temporary files. Default none.
    pub undo_limit: Option<u64>,
    /// What happens when there are more. Default [`UndoPolicy::DelayWriters`].
    pub undo_policy: UndoPolicy,
    /// Age at which the snapshot of a transaction without changes expires. Calls of that
    /// transaction then fail with [`Error::SnapshotTooOld`](crate::Error::SnapshotTooOld). Default
    /// none.
    pub reader_max_age: Option<Duration>,
    /// Log bytes since the last checkpoint that start a checkpoint. Default 256 MiB.
    pub checkpoint_bytes: u64,
    /// Time after which a checkpoint starts if anything changed. Default 60 s.
    pub checkpoint_interval: Duration,
    /// Longest recovery time wanted: checkpoints start early enough to meet it. Default none.
    pub recovery_target: Option<Duration>,
    /// Longest time that a `NoSync` commit stays in the log buffer. Default 100 ms.
    pub log_write_interval: Duration,
    /// Bytes of pages a second that background compaction may examine and write. It merges sparse
    /// leaves and moves pages from the end of the data file, when the leaves are less than half
    /// full or an eighth of the file is free. Default none: no background compaction.
    pub compaction_rate: Option<u64>,
    /// Creates the environment if the directory has none. Default true.
    pub create: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            cache_size: 64 << 20,
            page_size: 8192,
            log_buffer: 8 << 20,
            log_segment_size: 16 << 20,
            durability: Durability::Sync,
            isolation: Isolation::Serializable,
            lock_timeout: Duration::from_secs(10),
            retry_timeout: Duration::from_secs(30),
            undo_memory: 256 << 20,
            undo_limit: None,
            undo_policy: UndoPolicy::default(),
            reader_max_age: None,
            checkpoint_bytes: 256 << 20,
            checkpoint_interval: Duration::from_secs(60),
            recovery_target: None,
            log_write_interval: Duration::from_millis(100),
            compaction_rate: None,
            create: true,
        }
    }
}

/// Minimum number of pages in a cache. A split of the deepest tree latches fewer pages at once.
pub(crate) const SMALLEST_CACHE_PAGES: usize = 64;

/// Returns whether `bytes` is a valid size of a log segment.
pub(crate) fn is_log_segment_size(bytes: u64) -> bool {
    bytes.is_multiple_of(4096) && (256 << 10..=1 << 30).contains(&bytes)
}

impl Options {
    /// Returns the defaults.
    #[must_use]
    pub fn new() -> Options {
        Options::default()
    }

    setters! {
        cache_size: usize,
        page_size: usize,
        log_buffer: usize,
        log_segment_size: u64,
        durability: Durability,
        isolation: Isolation,
        lock_timeout: Duration,
        retry_timeout: Duration,
        undo_memory: u64,
        undo_limit: impl Into<Option<u64>>,
        undo_policy: UndoPolicy,
        reader_max_age: impl Into<Option<Duration>>,
        checkpoint_bytes: u64,
        checkpoint_interval: Duration,
        recovery_target: impl Into<Option<Duration>>,
        log_write_interval: Duration,
        compaction_rate: impl Into<Option<u64>>,
        create: bool,
    }

    /// Returns an error if a setting is out of its range.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.page_size.is_power_of_two() || !(4096..=65536).contains(&self.page_size) {
            return Err(Error::misuse(format!(
                "page_size {} is not a power of two from 4096 to 65536",
                self.page_size
            )));
        }
        if self.cache_size / self.page_size < SMALLEST_CACHE_PAGES {
            return Err(Error::misuse(format!(
                "cache_size {} holds fewer than {SMALLEST_CACHE_PAGES} pages of {} bytes",
                self.cache_size, self.page_size
            )));
        }
        if self.log_buffer < 64 << 10 {
            return Err(Error::misuse("log_buffer is smaller than 64 KiB"));
        }
        if !is_log_segment_size(self.log_segment_size) {
            return Err(Error::misuse(
                "log_segment_size is not a multiple of 4096 from 256 KiB to 1 GiB",
            ));
        }
        Ok(())
    }
}

/// Settings of one transaction. `None` uses the environment's setting.
///
/// ```
/// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
/// use quickbeam::TransactionOptions;
/// use std::time::Duration;
///
/// let options = TransactionOptions::new().lock_timeout(Duration::from_secs(1));
/// let transaction = environment.begin_with(options)?;
/// # Ok::<(), quickbeam::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TransactionOptions {
    /// Isolation of the transaction.
    pub isolation: Option<Isolation>,
    /// What the commit waits for.
    pub durability: Option<Durability>,
    /// How long the transaction waits for a record that another one changed.
    pub lock_timeout: Option<Duration>,
    /// The transaction reads one snapshot, never waits or fails with a conflict, and cannot write.
    pub read_only: bool,
    /// The snapshot never expires, whatever [`Options::reader_max_age`] and
    /// [`Options::undo_policy`] say. Meant for backups.
    pub never_expires: bool,
}

impl TransactionOptions {
    /// Returns the environment's settings, for a transaction that reads and writes.
    #[must_use]
    pub fn new() -> TransactionOptions {
        TransactionOptions::default()
    }

    setters! {
        isolation: impl Into<Option<Isolation>>,
        durability: impl Into<Option<Durability>>,
        lock_timeout: impl Into<Option<Duration>>,
        read_only: bool,
        never_expires: bool,
    }
}
