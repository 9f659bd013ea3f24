//! The details of errors: texts and structures that an [`Error`] keeps in a box (ERROR-1).

use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use super::Error;

/// A text in one word, as errors keep it.
#[derive(Clone, PartialEq, Eq)]
pub struct ErrorText(Box<Box<str>>);

impl Deref for ErrorText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl From<String> for ErrorText {
    fn from(text: String) -> ErrorText {
        ErrorText(Box::new(text.into_boxed_str()))
    }
}

impl From<&str> for ErrorText {
    fn from(text: &str) -> ErrorText {
        ErrorText(Box::new(text.into()))
    }
}

impl PartialEq<str> for ErrorText {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for ErrorText {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

/// Stored bytes that differ from the bytes written.
#[derive(Debug, thiserror::Error)]
#[error(
    "corruption in {file} at {place}: {detail}; restore from a backup, or salvage what is readable"
)]
#[non_exhaustive]
pub struct Corruption {
    /// The file's name.
    pub file: String,
    /// Page, block or log position.
    pub place: DamagedPlace,
    /// What was expected and what was found.
    pub detail: String,
    /// The two values that should be equal, if the damage is a difference of two numbers.
    pub mismatch: Option<Mismatch>,
}

/// An error of the operating system.
#[derive(Debug, thiserror::Error)]
#[error("input/output error while {action}: {source}")]
#[non_exhaustive]
pub struct IoFailure {
    /// What the engine was doing.
    pub action: String,
    /// What the operating system said.
    pub source: io::Error,
}

/// A directory that another process or handle has open.
#[derive(Debug, thiserror::Error)]
#[error(
    "environment {path} is open in {}; {}",
    .holder.as_deref().unwrap_or("another process or handle"),
    how_to_go_on(.socket.as_deref())
)]
#[non_exhaustive]
pub struct LockedDirectory {
    /// The environment's directory.
    pub path: PathBuf,
    /// The process that has it open for writing, with its number and its program, as it wrote them
    /// into the lock file.
    pub holder: Option<String>,
    /// The socket in the directory on which a server of that process answers.
    pub socket: Option<PathBuf>,
}

/// A directory without an environment.
#[derive(Debug, thiserror::Error)]
#[error("{path} is not a Quickbeam environment ({detail})")]
#[non_exhaustive]
pub struct NoEnvironment {
    /// The directory.
    pub path: PathBuf,
    /// Which file is missing or has the wrong content.
    pub detail: String,
}

/// A file of a format version that this release does not read.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path} has file format version {found}, this release reads version {supported}; open it with a release that reads {found}, dump it there and load it here"
)]
#[non_exhaustive]
pub struct ForeignFormat {
    /// The file.
    pub path: PathBuf,
    /// The file's format version.
    pub found: u32,
    /// The newest version that this release reads.
    pub supported: u32,
}

/// A key or value that is longer than its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The length in bytes.
    pub length: usize,
    /// The limit in bytes.
    pub limit: usize,
}

/// Returns what the caller can do while another process has an environment open.
fn how_to_go_on(socket: Option<&Path>) -> String {
    let Some(directory) = socket.and_then(Path::parent) else {
        return "close it there first".to_owned();
    };
    let shown = directory.display();
    format!("it is served there: connect by `quickbeam sql {shown}` or `psql -h {shown}`")
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
        let file = file.into();
        Error::Corruption(Box::new(Corruption { file, place, detail, mismatch }))
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
