//! What can go wrong, told apart by what the caller can do about it.
//!
//! Above: every public function. Retry: [`Error::is_retryable`]. Free space: [`Error::DiskFull`]. Reopen or restore:
//! [`Error::Corruption`], [`Error::Failed`], [`Error::Io`]. Everything else is a mistake in the call, and changed nothing.

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
    /// Waiting would never end: this transaction was chosen to give way.
    #[error(
        "deadlock: transactions wait for each other and this one was chosen to give way; abort and retry"
    )]
    Deadlock,
    /// Another transaction kept a record for longer than the lock timeout.
    #[error(
        "lock timeout: a record stayed locked by another transaction for {waited_ms} ms; abort and retry"
    )]
    LockTimeout {
        /// How long this transaction waited, in milliseconds.
        waited_ms: u64,
    },
    /// The flag that the transaction was given was raised while it waited for another one.
    #[error(
        "interrupted while waiting for another transaction; go on or abort, as whoever raised the flag wants"
    )]
    Interrupted,
    /// Committing would not be serializable: something read was changed by a transaction that committed since.
    #[error(
        "serialization failure: what this transaction read was changed by one that committed since; abort and retry"
    )]
    SerializationFailure,
    /// Stored bytes are not what was written.
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
    /// No room on the device. The operation changed nothing; the environment goes on once there is room.
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
    /// A flush failed earlier: writes are refused until the environment is opened again.
    #[error(
        "the environment stopped accepting writes after a failure ({reason}); close it and open it again to recover"
    )]
    Failed {
        /// The first failure.
        reason: String,
    },
    /// The directory is in use.
    #[error("environment {path} is open in another process or handle; close it there first")]
    Locked {
        /// The environment's directory.
        path: PathBuf,
    },
    /// The directory holds no environment.
    #[error("{path} is not a Quickbeam environment ({detail})")]
    NotAnEnvironment {
        /// The directory.
        path: PathBuf,
        /// What is missing or strange.
        detail: String,
    },
    /// Written by a version of the format that this release does not read.
    #[error(
        "{path} has file format version {found}, this release reads version {supported}; open it with a release that reads {found}, dump it there and load it here"
    )]
    FormatVersion {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version of this release.
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
    /// A change in a transaction that was begun to read.
    #[error("the transaction is read-only; begin one that is not")]
    ReadOnly,
    /// A change of an environment or data store that was opened to be read only.
    #[error("the directory is open for reading only; open it for writing to change it")]
    ReadOnlyEnvironment,
    /// A limit of the engine was reached.
    #[error("limit reached: {what}")]
    Limit {
        /// Which, and how to raise it.
        what: String,
    },
    /// A record's key or value is no encoding of the type it was read as.
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
    /// Returns whether the same transaction, begun again, may succeed.
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
        )
    }

    /// An operating system error with what was being done; a full disk gets its own kind.
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

    /// An operating system error on a named file.
    pub(crate) fn on_file(action: &str, path: &Path, source: io::Error) -> Error {
        Error::io(format!("{action} {}", path.display()), source)
    }

    pub(crate) fn misuse(what: impl Into<String>) -> Error {
        Error::Misuse { what: what.into() }
    }

    /// Corruption of a page.
    pub(crate) fn page(page: u64, detail: impl Into<String>) -> Error {
        Error::Corruption {
            file: crate::blocks::DATA_FILE.into(),
            place: format!("page {page}"),
            detail: detail.into(),
        }
    }
}
