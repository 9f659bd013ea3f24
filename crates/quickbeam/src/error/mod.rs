//! Errors, one variant for each reaction of the caller.
//!
//! Above: every public function. Retry the transaction: [`Error::is_retryable`]. Free space:
//! [`Error::DiskFull`]. Reopen or restore: [`Error::Corruption`], [`Error::Failed`], [`Error::Io`].
//! The other variants report a mistake in the call, which changed nothing.
//!
//! Invariants:
//! - ERROR-1: an error has at most 16 bytes, so that the results of calls are small. (by type)

mod details;

use std::io;
use std::path::Path;

pub(crate) use self::details::Damage;
pub use self::details::{
    Corruption, DamagedPlace, ErrorText, ForeignFormat, IoFailure, LockedDirectory, Mismatch,
    NoEnvironment, TooLong,
};
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
    /// The flag of [`interrupt_on`](crate::query_layer::TransactionExt::interrupt_on) was set while
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
    #[error(transparent)]
    Corruption(Box<Corruption>),
    /// The device is full. The operation changed nothing; the environment stays usable once there
    /// is space.
    #[error(
        "no space left while {action}; free space and try again (nothing acknowledged is lost)"
    )]
    DiskFull {
        /// What the engine was doing.
        action: ErrorText,
    },
    /// The operating system reported an error.
    #[error(transparent)]
    Io(Box<IoFailure>),
    /// An earlier write or flush failed: the environment refuses writes until it is reopened.
    #[error(
        "the environment stopped accepting writes after a failure ({reason}); close it and open it again to recover"
    )]
    Failed {
        /// The first failure.
        reason: ErrorText,
    },
    /// Another process or handle has the directory open.
    #[error(transparent)]
    Locked(Box<LockedDirectory>),
    /// The directory has no environment.
    #[error(transparent)]
    NotAnEnvironment(Box<NoEnvironment>),
    /// The file has a format version that this release does not read.
    #[error(transparent)]
    FormatVersion(Box<ForeignFormat>),
    /// A key is longer than the page size allows.
    #[error(
        "key of {} bytes is longer than the limit of {} bytes (a quarter of the page size)",
        .0.length, .0.limit
    )]
    KeyTooLong(Box<TooLong>),
    /// A value is longer than the engine stores.
    #[error("value of {} bytes is longer than the limit of {} bytes", .0.length, .0.limit)]
    ValueTooLong(Box<TooLong>),
    /// No database has that name.
    #[error("there is no database named {name:?}; create it first")]
    NoSuchDatabase {
        /// The name.
        name: ErrorText,
    },
    /// A database has that name already.
    #[error("a database named {name:?} exists already")]
    DatabaseExists {
        /// The name.
        name: ErrorText,
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
        what: ErrorText,
    },
    /// A record's key or value is not a valid encoding of the type that the caller reads.
    #[error("a record holds no {what}; read it with the types that it was written with")]
    Decode {
        /// The type.
        what: ErrorText,
    },
    /// The call cannot be made in this state or with these arguments.
    #[error("{what}")]
    Misuse {
        /// What was wrong and what to do.
        what: ErrorText,
    },
}

impl Error {
    /// Returns whether the transaction may succeed if it is retried.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
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
    #[cold]
    pub(crate) fn io(action: impl Into<String>, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Error::DiskFull { action: action.into().into() }
            }
            _ if source.get_ref().is_some_and(|inner| inner.is::<OverlayFull>()) => {
                Error::Limit { what: source.to_string().into() }
            }
            _ => Error::Io(Box::new(IoFailure { action: action.into(), source })),
        }
    }

    /// Converts an operating system error for the file at `path`.
    #[cold]
    pub(crate) fn on_file(action: &str, path: &Path, source: io::Error) -> Error {
        Error::io(format!("{action} {}", path.display()), source)
    }

    #[cold]
    pub(crate) fn misuse(what: impl Into<String>) -> Error {
        Error::Misuse { what: what.into().into() }
    }

    /// Returns a [`Error::Corruption`] for a page of the data file.
    #[cold]
    pub(crate) fn page(page: u64, detail: impl Into<String>) -> Error {
        Damage::from(detail.into()).at(crate::files::DATA_FILE, DamagedPlace::Page(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corruption_names_its_place_in_numbers_and_in_words() {
        let place = DamagedPlace::Image { page: 7, block: 9 };
        let error = Damage::mismatch(1, 2, "checksum is 00000002").at("data", place);
        let words = "corruption in data at page 7 in block 9: checksum is 00000002; \
                     restore from a backup, or salvage what is readable";
        assert_eq!(error.to_string(), words);
        let Error::Corruption(damage) = error else { panic!("{error}") };
        assert_eq!((damage.place.page(), damage.place.log_position()), (Some(7), None));
        assert_eq!(damage.mismatch, Some(Mismatch { expected: 1, found: 2 }));
        let place = DamagedPlace::LogPosition(5);
        assert_eq!((place.page(), place.log_position()), (None, Some(5)));
        assert_eq!(place.to_string(), "log position 5");
    }

    #[test]
    fn results_fit_into_two_registers() {
        assert_eq!(size_of::<Error>(), 16);
        assert_eq!(size_of::<Result<()>>(), 16);
        assert_eq!(size_of::<Result<bool>>(), 16);
    }
}
