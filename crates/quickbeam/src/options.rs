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
    /// Log written and flushed to the device, together with other commits then waiting. Survives power loss.
    Sync,
    /// Log written to the operating system. Survives a crash of the process.
    WriteNoSync,
    /// Log left in the log buffer; written in the background. A crash may lose the last moments.
    NoSync,
    /// No log. A crash goes back to the last checkpoint, whole.
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

/// How the records of a database are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AccessMethod {
    /// A B+tree: records in the order of their keys, cursors from any key on.
    #[default]
    BTree,
    /// By the hash value of the whole key, faster than the B+tree for single records. A cursor goes through all records,
    /// in no order that means anything; there are no ranges.
    Hash,
    /// By the hash value of the first part of the key, which is a *group* for all keys that begin with it: the length of that part in two bytes,
    /// the highest first, then the part itself; what else the key has follows. The records of a group lie next to each other,
    /// in the order of what follows, and [`Scan::restart_group`](crate::Scan::restart_group) reads them. Otherwise as `Hash`. In a key that
    /// is shorter than its first bytes say, all of it is the group.
    HashPrefix,
}

impl AccessMethod {
    /// Whether records lie in the order of their keys.
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

/// What a transaction may see of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// As if transactions ran one after the other, in commit order.
    Serializable,
    /// One snapshot from begin to end; two transactions may each miss the other's write (write skew).
    Snapshot,
    /// Each call sees what was committed when it was made.
    ReadCommitted,
}

/// Settings of an environment or data store.
///
/// ```
/// # let directory = tempfile::tempdir().unwrap();
/// use quickbeam::{Durability, Environment, Options};
/// use std::time::Duration;
///
/// let options = Options {
///     cache_size: 512 << 20,
///     durability: Durability::WriteNoSync,
///     checkpoint_interval: Duration::from_secs(300),
///     ..Options::default()
/// };
/// let environment = Environment::open(directory.path(), options)?;
/// # Ok::<(), quickbeam::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for pages, in bytes. Default 64 MiB.
    pub cache_size: usize,
    /// Bytes in a page: a power of two from 4,096 to 65,536; counts when the environment is created. Default 8,192.
    pub page_size: usize,
    /// Bytes of log that may wait in memory. Default 8 MiB.
    pub log_buffer: usize,
    /// Bytes in a log segment file; counts when the environment is created. Default 16 MiB.
    pub log_segment_size: u64,
    /// Durability of transactions that name none. Default `Sync`.
    pub durability: Durability,
    /// Isolation of transactions that name none. Default `Serializable`.
    pub isolation: Isolation,
    /// How long a transaction waits for a record that another one changed. Default 10 s.
    pub lock_timeout: Duration,
    /// How long [`Environment::transact`](crate::Environment::transact) begins again after conflicts. Default 30 s.
    pub retry_timeout: Duration,
    /// Log bytes after which a checkpoint starts. Default 256 MiB.
    pub checkpoint_bytes: u64,
    /// Time after which a checkpoint starts when anything changed. Default 60 s.
    pub checkpoint_interval: Duration,
    /// Longest recovery wanted: checkpoints start early enough to keep to it. Default none.
    pub recovery_target: Option<Duration>,
    /// How long a `NoSync` commit may stay in the log buffer. Default 100 ms.
    pub log_write_interval: Duration,
    /// Create the environment when the directory holds none. Default true.
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
            checkpoint_bytes: 256 << 20,
            checkpoint_interval: Duration::from_secs(60),
            recovery_target: None,
            log_write_interval: Duration::from_millis(100),
            create: true,
        }
    }
}

/// Fewest pages a cache may hold: a split of the deepest tree keeps this many at once, with room to spare.
pub(crate) const SMALLEST_CACHE_PAGES: usize = 64;

/// Whether a log segment can be that long.
pub(crate) fn is_log_segment_size(bytes: u64) -> bool {
    bytes.is_multiple_of(4096) && (256 << 10..=1 << 30).contains(&bytes)
}

impl Options {
    /// Refuses what the engine could not work with.
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

/// Settings of one transaction. `None` means the setting of the environment.
///
/// ```
/// # let environment = quickbeam::Environment::memory(Default::default())?;
/// use quickbeam::TransactionOptions;
/// use std::time::Duration;
///
/// let options = TransactionOptions {
///     lock_timeout: Some(Duration::from_secs(1)),
///     ..TransactionOptions::default()
/// };
/// let transaction = environment.begin_with(options)?;
/// # Ok::<(), quickbeam::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct TransactionOptions {
    /// What the transaction may see of others.
    pub isolation: Option<Isolation>,
    /// What its commit waits for.
    pub durability: Option<Durability>,
    /// How long it waits for a record that another transaction changed.
    pub lock_timeout: Option<Duration>,
    /// Reads one snapshot; never waits, never aborts, may not write.
    pub read_only: bool,
}
