//! Copies the log between two positions into another directory, for a backup.
//!
//! Above: the engine's backup. Below: segment files, through the VFS.
//!
//! A copied segment has its full length and space, as recovery and the log require. Its bytes from
//! the end position on are zeros, so recovery of the copy ends there.

use std::path::Path;

use super::segment::path_of;
use super::{Log, Lsn, SEGMENT_HEADER};
use crate::error::{Error, Result};
use crate::vfs::{OpenMode, Vfs};

/// Bytes of a segment that are read at a time.
const PART: u64 = 1 << 20;

/// The copied part of the log.
pub struct CopiedLog {
    /// Its end.
    pub end: Lsn,
    /// Number of bytes copied.
    pub bytes: u64,
}

impl Log {
    /// Writes every record that was appended so far, and copies the log from `from` to its end into
    /// `directory` of `target`. No checkpoint may complete meanwhile, because it could release the
    /// segments.
    pub fn copy_into(&self, from: Lsn, target: &dyn Vfs, directory: &Path) -> Result<CopiedLog> {
        self.check()?;
        let end = self.lock().end;
        self.write_to(end)?;
        let size = self.settings.segment_size;
        let mut copied = 0;
        for number in from / size..=end.saturating_sub(1) / size {
            let used = (end - number * size).min(size);
            let source = path_of(&self.settings.directory, number);
            if used <= SEGMENT_HEADER && !self.vfs.exists(&source) {
                // The segment is prepared when its first record is appended.
                break;
            }
            let used = used.max(SEGMENT_HEADER);
            self.copy_segment(&source, used, target, &path_of(directory, number))?;
            copied += used;
        }
        let on = |error| Error::on_file("flushing the folder", directory, error);
        target.sync_directory(directory).map_err(on)?;
        Ok(CopiedLog { bytes: copied, end })
    }

    fn copy_segment(&self, from: &Path, used: u64, target: &dyn Vfs, to: &Path) -> Result<()> {
        let reading = |error| Error::on_file("reading", from, error);
        let writing = |error| Error::on_file("writing", to, error);
        let source = self.vfs.open(from, OpenMode::Read).map_err(reading)?;
        let copy = target.open(to, OpenMode::Create).map_err(writing)?;
        copy.allocate(self.settings.segment_size).map_err(writing)?;
        let mut part = vec![0; PART.min(used) as usize];
        let mut at = 0;
        while at < used {
            let part = &mut part[..(used - at).min(PART) as usize];
            source.read_at(part, at).map_err(reading)?;
            copy.write_at(part, at).map_err(writing)?;
            at += part.len() as u64;
        }
        copy.sync_all().map_err(writing)
    }
}
