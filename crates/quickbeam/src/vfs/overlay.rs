//! A read-only file with an overlay: writes stay in memory, and reads see them.
//!
//! Above: opening a directory for reading. Recovery's changes pass through the buffer pool and the
//! checkpoint as usual, but never reach a device. Below: the file that is read.
//!
//! - OVERLAY-1: no call writes, truncates, grows or flushes the file below: [`ReadOnlyFile`] has no
//!   such call. (by type)

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;

use super::File;
use crate::sync::locks::RwLock;
use read_only::ReadOnlyFile;

/// The file below, without its calls that change it (OVERLAY-1).
mod read_only {
    use std::io;
    use std::sync::Arc;

    use crate::vfs::File;

    pub struct ReadOnlyFile(Arc<dyn File>);

    impl ReadOnlyFile {
        pub fn new(file: Arc<dyn File>) -> ReadOnlyFile {
            ReadOnlyFile(file)
        }

        pub fn length(&self) -> io::Result<u64> {
            self.0.length()
        }

        pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            self.0.read_at(buffer, offset)
        }

        pub fn try_lock(&self) -> io::Result<bool> {
            self.0.try_lock()
        }
    }
}

/// Bytes in one part of the overlay.
const PART: u64 = 4096;

/// The overlay's memory limit is reached.
#[derive(Debug, thiserror::Error)]
#[error(
    "recovery changes more than {limit} bytes, which stay in memory where nothing is written; \
     raise cache_size, or open the environment where it can be written"
)]
pub struct OverlayFull {
    limit: u64,
}

struct Written {
    /// The written parts, by number.
    parts: HashMap<u64, Box<[u8]>>,
    length: u64,
}

/// An overlay over the file below.
pub struct OverlayFile {
    below: ReadOnlyFile,
    written: RwLock<Written>,
    limit: u64,
}

impl OverlayFile {
    /// Creates an overlay over `below` that keeps up to `limit` written bytes.
    pub fn new(below: Arc<dyn File>, limit: u64) -> io::Result<OverlayFile> {
        let below = ReadOnlyFile::new(below);
        let length = below.length()?;
        let written = RwLock::new(Written { parts: HashMap::new(), length });
        Ok(OverlayFile { below, written, limit })
    }

    /// Reads the file below; bytes past its end are zeros.
    fn read_below(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let there = self.below.length()?.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let (inside, behind) = buffer.split_at_mut(there);
        behind.fill(0);
        if inside.is_empty() { Ok(()) } else { self.below.read_at(inside, offset) }
    }
}

/// Splits a range of bytes into parts: number, offset in the part, and the range within the bytes.
fn parts_of(
    offset: u64,
    length: usize,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let inside = (at % PART) as usize;
        let take = (PART as usize - inside).min(length - done);
        let part = (at / PART, inside, done..done + take);
        done += take;
        (take > 0).then_some(part)
    })
}

impl File for OverlayFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let written = self.written.read();
        if offset + buffer.len() as u64 > written.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read_below(buffer, offset)?;
        if written.parts.is_empty() {
            return Ok(());
        }
        for (number, inside, range) in parts_of(offset, buffer.len()) {
            if let Some(part) = written.parts.get(&number) {
                buffer[range.clone()].copy_from_slice(&part[inside..inside + range.len()]);
            }
        }
        Ok(())
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let mut written = self.written.write();
        for (number, inside, range) in parts_of(offset, buffer.len()) {
            let kept = written.parts.len() as u64 * PART;
            let part = match written.parts.entry(number) {
                Entry::Occupied(part) => part.into_mut(),
                Entry::Vacant(_) if kept + PART > self.limit => {
                    return Err(io::Error::other(OverlayFull { limit: self.limit }));
                }
                Entry::Vacant(place) => {
                    let mut part = vec![0; PART as usize];
                    self.read_below(&mut part, number * PART)?;
                    place.insert(part.into())
                }
            };
            part[inside..inside + range.len()].copy_from_slice(&buffer[range]);
        }
        written.length = written.length.max(offset + buffer.len() as u64);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.written.read().length)
    }

    /// The engine treats bytes that a file grows by as free space with undefined content, so they
    /// need no memory.
    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut written = self.written.write();
        written.parts.retain(|number, _| number * PART < length);
        written.length = length;
        Ok(())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut written = self.written.write();
        written.length = written.length.max(length);
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.below.try_lock()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::vfs::{MemoryVfs, OpenMode, Vfs};

    #[test]
    fn overlay_reads_its_writes_and_leaves_the_file_below() {
        let vfs = MemoryVfs::new();
        let below = vfs.open(Path::new("a"), OpenMode::Create).unwrap();
        let content: Vec<u8> = (0..10_000u32).map(|n| n as u8).collect();
        below.write_at(&content, 0).unwrap();
        let file = OverlayFile::new(below.clone(), 5 * PART).unwrap();
        let mut expected = content.clone();
        for (offset, length) in [(10, 20), (4090, 12), (9_990, 30), (13_000, 1)] {
            let bytes = vec![offset as u8 ^ 0xff; length];
            file.write_at(&bytes, offset as u64).unwrap();
            expected.resize(expected.len().max(offset + length), 0);
            expected[offset..offset + length].copy_from_slice(&bytes);
        }
        let mut found = vec![1; expected.len()];
        file.read_at(&mut found, 0).unwrap();
        assert!(found == expected);
        assert!(file.read_at(&mut found, 1).is_err(), "a read past the end is an error");
        file.allocate(100_000).unwrap();
        file.write_at(&[1], 40_000).unwrap();
        let full = file.write_at(&[1], 80_000).unwrap_err();
        assert!(full.to_string().contains("cache_size"), "{full}");
        let mut found = vec![0; content.len()];
        below.read_at(&mut found, 0).unwrap();
        assert!(found == content && below.length().unwrap() == 10_000);
    }
}
