//! Errors, one variant for each reaction of the caller.
//!
//! Above: every public function. Retry the transaction: [`Error::is_retryable`]. Free space:
//! [`Error::DiskFull`]. Reopen or restore: [`Error::Corruption`], [`Error::Failed`], [`Error::Io`].
//! The other variants report a mistake in the call, which changed nothing.

use std::io;
use std::path::{Path, PathBuf};

use crate::vfs::overlay::OverlayFull;

/// The result of every fallible call.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, where, and how to go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another transaction committed a change to the same record after this transaction's snapshot.
    #[error(
        "write conflict: the record was changed by a transaction that committed after this one began; abort and retry"
    )]
    WriteConflict,
    /// Transactions wait for each other in a cycle, and this one is the victim.
    #[error(
        "deadlock: transactions wait for each other and this one was chosen to give way; abort and retry"
    )]
    Deadlock,
    /// Another transaction held a record for longer than the lock timeout.
    #[error(
        "lock timeout: a record stayed locked by another transaction for {waited_ms} ms; abort and retry"
    )]
    LockTimeout {
        /// How long this transaction waited, in milliseconds.
        waited_ms: u64,
    },
    /// The flag of [`Transaction::interrupt_on`](crate::Transaction::interrupt_on) was set while
    /// the transaction waited for another one.
    #[error(
        "interrupted while waiting for another transaction; go on or abort, as whoever raised the flag wants"
    )]
    Interrupted,
    /// The commit would not be serializable: a transaction that committed after this one's snapshot
    /// changed a record that this one read.
    #[error(
        "serialization failure: what this transaction read was changed by one that committed since; abort and retry"
    )]
    SerializationFailure,
    /// The transaction's snapshot expired, because it was older than
    /// [`Options::reader_max_age`](crate::Options::reader_max_age) or because of
    /// [`Options::undo_limit`](crate::Options::undo_limit).
    #[error(
        "snapshot too old: the versions that this transaction reads were removed to keep the limits on old snapshots; abort and retry, or raise undo_limit or reader_max_age"
    )]
    SnapshotTooOld,
    /// The undo entries kept for old snapshots stayed above
    /// [`Options::undo_limit`](crate::Options::undo_limit) for longer than the lock timeout.
    #[error(
        "undo limit: versions kept for old snapshots stayed above undo_limit for {waited_ms} ms; end old transactions or raise the limit, then retry"
    )]
    UndoLimit {
        /// How long this transaction waited, in milliseconds.
        waited_ms: u64,
    },
    /// Stored bytes differ from the bytes written.
    #[error(
        "corruption in {file} at {place}: {detail}; restore from a backup, or salvage what is readable"
    )]
    Corruption {
        /// The file's name.
        file: String,
        /// Page, block or log position.
        place: String,
        /// What was expected and what was found.
        detail: String,
    },
    /// The device is full. The operation changed nothing; the environment stays usable once there
    /// is space.
    #[error(
        "no space left while {action}; free space and try again (nothing acknowledged is lost)"
    )]
    DiskFull {
        /// What the engine was doing.
        action: String,
    },
    /// The operating system reported an error.
    #[error("input/output error while {action}: {source}")]
    Io {
        /// What the engine was doing.
        action: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// An earlier write or flush failed: the environment refuses writes until it is reopened.
    #[error(
        "the environment stopped accepting writes after a failure ({reason}); close it and open it again to recover"
    )]
    Failed {
        /// The first failure.
        reason: String,
    },
    /// Another process or handle has the directory open.
    #[error("environment {path} is open in another process or handle; close it there first")]
    Locked {
        /// The environment's directory.
        path: PathBuf,
    },
    /// The directory has no environment.
    #[error("{path} is not a Quickbeam environment ({detail})")]
    NotAnEnvironment {
        /// The directory.
        path: PathBuf,
        /// Which file is missing or has the wrong content.
        detail: String,
    },
    /// The file has a format version that this release does not read.
    #[error(
        "{path} has file format version {found}, this release reads version {supported}; open it with a release that reads {found}, dump it there and load it here"
    )]
    FormatVersion {
        /// The file.
        path: PathBuf,
        /// The file's format version.
        found: u32,
        /// The newest version that this release reads.
        supported: u32,
    },
    /// A key is longer than the page size allows.
    #[error(
        "key of {length} bytes is longer than the limit of {limit} bytes (a quarter of the page size)"
    )]
    KeyTooLong {
        /// The key's length in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A value is longer than the engine stores.
    #[error("value of {length} bytes is longer than the limit of {limit} bytes")]
    ValueTooLong {
        /// The value's length in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// No database has that name.
    #[error("there is no database named {name:?}; create it first")]
    NoSuchDatabase {
        /// The name.
        name: String,
    },
    /// A database has that name already.
    #[error("a database named {name:?} exists already")]
    DatabaseExists {
        /// The name.
        name: String,
    },
    /// The call writes in a read-only transaction.
    #[error("the transaction is read-only; begin one that is not")]
    ReadOnly,
    /// The call writes to an environment or data store that is open for reading only.
    #[error("the directory is open for reading only; open it for writing to change it")]
    ReadOnlyEnvironment,
    /// A limit of the engine was reached.
    #[error("limit reached: {what}")]
    Limit {
        /// Which limit, and how to raise it.
        what: String,
    },
    /// A record's key or value is not a valid encoding of the type that the caller reads.
    #[error("a record holds no {what}; read it with the types that it was written with")]
    Decode {
        /// The type.
        what: &'static str,
    },
    /// The call cannot be made in this state or with these arguments.
    #[error("{what}")]
    Misuse {
        /// What was wrong and what to do.
        what: String,
    },
}

impl Error {
    /// Returns whether the transaction may succeed if it is retried.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// use quickbeam::Error;
    ///
    /// let first = environment.begin()?;
    /// let second = environment.begin()?;
    /// fruit.put(&first, b"apple", b"red")?;
    /// first.commit()?;
    /// let conflict = fruit.put(&second, b"apple", b"green").unwrap_err();
    /// assert!(matches!(conflict, Error::WriteConflict));
    /// assert!(conflict.is_retryable());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Error::WriteConflict
                | Error::Deadlock
                | Error::LockTimeout { .. }
                | Error::SerializationFailure
                | Error::SnapshotTooOld
                | Error::UndoLimit { .. }
        )
    }

    /// Converts an operating system error. A full device becomes [`Error::DiskFull`].
    pub(crate) fn io(action: impl Into<String>, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::DiskFull { action: action.into() }
            }
            _ if source.get_ref().is_some_and(|inner| inner.is::<OverlayFull>()) => {
                Error::Limit { what: source.to_string() }
            }
            _ => Error::Io { action: action.into(), source },
        }
    }

    /// Converts an operating system error for the file at `path`.
    pub(crate) fn on_file(action: &str, path: &Path, source: io::Error) -> Error {
        Error::io(format!("{action} {}", path.display()), source)
    }

    pub(crate) fn misuse(what: impl Into<String>) -> Error {
        Error::Misuse { what: what.into() }
    }

    /// Returns a [`Error::Corruption`] for a page of the data file.
    pub(crate) fn page(page: u64, detail: impl Into<String>) -> Error {
        Error::Corruption {
            file: crate::files::DATA_FILE.into(),
            place: format!("page {page}"),
            detail: detail.into(),
        }
    }
}
