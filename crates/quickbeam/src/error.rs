//! Errors, one variant for each reaction of the caller.
//!
//! Above: every public function. Retry the transaction: [`Error::is_retryable`]. Free space:
//! [`Error::DiskFull`]. Reopen or restore: [`Error::Corruption`], [`Error::Failed`], [`Error::Io`].
//! The other variants report a mistake in the call, which changed nothing.

use std::fmt;
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
    #[error(
        "corruption in {file} at {place}: {detail}; restore from a backup, or salvage what is readable"
    )]
    Corruption {
        /// The file's name.
        file: String,
        /// Page, block or log position.
        place: DamagedPlace,
        /// What was expected and what was found.
        detail: String,
        /// The two values that should be equal, if the damage is a difference of two numbers.
        mismatch: Option<Box<Mismatch>>,
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
    #[error(
        "environment {path} is open in {}; {}",
        .holder.as_deref().unwrap_or("another process or handle"),
        how_to_go_on(.socket.as_deref())
    )]
    Locked {
        /// The environment's directory.
        path: PathBuf,
        /// The process that has it open for writing, with its number and its program, as it wrote
        /// them into the lock file.
        holder: Option<String>,
        /// The socket in the directory on which a server of that process answers.
        socket: Option<PathBuf>,
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

/// The place of damaged bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DamagedPlace {
    /// A page of the data file.
    Page(u64),
    /// The image of a page in a block of the data file.
    Image {
        /// The page number.
        page: u64,
        /// The block number.
        block: u64,
    },
    /// The two meta pages of the data file.
    MetaPages,
    /// A position in the log (LSN).
    LogPosition(u64),
    /// The header of a log segment.
    SegmentHeader,
    /// The end of a log segment.
    SegmentEnd,
}

impl DamagedPlace {
    /// Returns the page number, if the place is a page.
    #[must_use]
    pub fn page(&self) -> Option<u64> {
        match *self {
            DamagedPlace::Page(page) | DamagedPlace::Image { page, .. } => Some(page),
            _ => None,
        }
    }

    /// Returns the log position, if the place is one.
    #[must_use]
    pub fn log_position(&self) -> Option<u64> {
        match *self {
            DamagedPlace::LogPosition(position) => Some(position),
            _ => None,
        }
    }
}

impl fmt::Display for DamagedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DamagedPlace::Page(page) => write!(f, "page {page}"),
            DamagedPlace::Image { page, block } => write!(f, "page {page} in block {block}"),
            DamagedPlace::MetaPages => f.write_str("meta pages"),
            DamagedPlace::LogPosition(position) => write!(f, "log position {position}"),
            DamagedPlace::SegmentHeader => f.write_str("segment header"),
            DamagedPlace::SegmentEnd => f.write_str("end of the segment"),
        }
    }
}

/// Two numbers that should be equal: checksums, page numbers, lengths or log positions. The detail
/// of the error says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The number that intact bytes would have.
    pub expected: u64,
    /// The number that was found.
    pub found: u64,
}

/// Damage of bytes that were read, whose place the caller knows.
#[derive(Debug)]
pub(crate) struct Damage {
    detail: String,
    mismatch: Option<Mismatch>,
}

impl Damage {
    /// Returns damage that consists in a difference of two numbers.
    pub(crate) fn mismatch(expected: u64, found: u64, detail: impl Into<String>) -> Damage {
        Damage { detail: detail.into(), mismatch: Some(Mismatch { expected, found }) }
    }

    /// Returns the error for damage at `place` of `file`.
    #[cold]
    pub(crate) fn at(self, file: impl Into<String>, place: DamagedPlace) -> Error {
        let Damage { detail, mismatch } = self;
        Error::Corruption { file: file.into(), place, detail, mismatch: mismatch.map(Box::new) }
    }

    /// Returns the description of the damage.
    pub(crate) fn into_detail(self) -> String {
        self.detail
    }
}

impl From<String> for Damage {
    fn from(detail: String) -> Damage {
        Damage { detail, mismatch: None }
    }
}

impl From<&str> for Damage {
    fn from(detail: &str) -> Damage {
        Damage::from(detail.to_owned())
    }
}

/// Returns what the caller can do while another process has an environment open.
fn how_to_go_on(socket: Option<&Path>) -> String {
    let Some(directory) = socket.and_then(Path::parent) else {
        return "close it there first".to_owned();
    };
    let shown = directory.display();
    format!("it is served there: connect by `quickbeam sql {shown}` or `psql -h {shown}`")
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
                Error::DiskFull { action: action.into() }
            }
            _ if source.get_ref().is_some_and(|inner| inner.is::<OverlayFull>()) => {
                Error::Limit { what: source.to_string() }
            }
            _ => Error::Io { action: action.into(), source },
        }
    }

    /// Converts an operating system error for the file at `path`.
    #[cold]
    pub(crate) fn on_file(action: &str, path: &Path, source: io::Error) -> Error {
        Error::io(format!("{action} {}", path.display()), source)
    }

    #[cold]
    pub(crate) fn misuse(what: impl Into<String>) -> Error {
        Error::Misuse { what: what.into() }
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
        let Error::Corruption { place, mismatch, .. } = error else { panic!("{error}") };
        assert_eq!((place.page(), place.log_position()), (Some(7), None));
        assert_eq!(mismatch.as_deref(), Some(&Mismatch { expected: 1, found: 2 }));
        let place = DamagedPlace::LogPosition(5);
        assert_eq!((place.page(), place.log_position()), (None, Some(5)));
        assert_eq!(place.to_string(), "log position 5");
    }
}
