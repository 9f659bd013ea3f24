//! A VFS whose files are in memory, with the operating system's clock and threads.
//!
//! Above: an [`Environment`](crate::Environment) or [`DataStore`](crate::DataStore) without a
//! directory. Below: [`OsVfs`] for clock, threads and randomness. A file is a list of fixed-size
//! chunks, so growing it copies nothing.
// The lints that forbid bypassing the VFS refer to this module.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::sync::locks::{Mutex, RwLock};

use super::{Event, File, OpenMode, OsVfs, Task, Vfs};

const CHUNK: usize = 1 << 20;

/// A VFS whose files disappear when it is dropped.
pub struct MemoryVfs {
    real: OsVfs,
    files: Mutex<HashMap<PathBuf, Arc<MemoryFile>>>,
}

impl MemoryVfs {
    /// Creates an empty VFS.
    #[must_use]
    pub fn new() -> Self {
        MemoryVfs { real: OsVfs::new(), files: Mutex::new(HashMap::new()) }
    }
}

impl Default for MemoryVfs {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Default)]
struct Content {
    chunks: Vec<Option<Box<[u8]>>>,
    length: u64,
}

struct MemoryFile {
    content: RwLock<Content>,
}

/// Splits a range of bytes at chunk boundaries: (chunk, offset in chunk, offset in range, length).
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = usize::try_from(offset).ok()?.checked_add(done)?;
        let inside = at % CHUNK;
        let take = (CHUNK - inside).min(length - done);
        let piece = (at / CHUNK, inside, done, take);
        done += take;
        Some(piece)
    })
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let content = self.content.read();
        if offset + buffer.len() as u64 > content.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (chunk, inside, at, take) in pieces(offset, buffer.len()) {
            match content.chunks.get(chunk) {
                Some(Some(bytes)) => {
                    buffer[at..at + take].copy_from_slice(&bytes[inside..inside + take]);
                }
                _ => buffer[at..at + take].fill(0),
            }
        }
        Ok(())
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let mut content = self.content.write();
        for (chunk, inside, at, take) in pieces(offset, buffer.len()) {
            if content.chunks.len() <= chunk {
                content.chunks.resize_with(chunk + 1, || None);
            }
            let bytes = content.chunks[chunk].get_or_insert_with(|| vec![0; CHUNK].into());
            bytes[inside..inside + take].copy_from_slice(&buffer[at..at + take]);
        }
        content.length = content.length.max(offset + buffer.len() as u64);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.content.read().length)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut content = self.content.write();
        if length < content.length {
            let keep = usize::try_from(length.div_ceil(CHUNK as u64)).unwrap_or(usize::MAX);
            content.chunks.truncate(keep);
            let inside = usize::try_from(length % CHUNK as u64).unwrap_or(0);
            if inside > 0
                && let Some(Some(last)) = content.chunks.get_mut(keep - 1)
            {
                last[inside..].fill(0);
            }
        }
        content.length = length;
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}

impl Vfs for MemoryVfs {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        if let Some(file) = files.get(path) {
            return Ok(file.clone());
        }
        if mode != OpenMode::Create {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = Arc::new(MemoryFile { content: RwLock::default() });
        files.insert(path.to_owned(), file.clone());
        Ok(file)
    }

    fn exists(&self, path: &Path) -> bool {
        self.files.lock().contains_key(path)
    }

    fn create_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list_directory(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.files.lock();
        Ok(files.keys().filter(|name| name.parent() == Some(path)).cloned().collect())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.files.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = self.files.lock().remove(path);
        removed.map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn now(&self) -> Duration {
        self.real.now()
    }

    fn random(&self) -> u64 {
        self.real.random()
    }

    fn yield_now(&self) {
        self.real.yield_now();
    }

    fn event(&self) -> Arc<dyn Event> {
        self.real.event()
    }

    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>> {
        self.real.spawn(name, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_was_written_across_chunks() {
        let vfs = MemoryVfs::new();
        let file = vfs.open(Path::new("a"), OpenMode::Create).unwrap();
        let data = (0..251).collect::<Vec<u8>>().repeat(3 * CHUNK / 251);
        file.write_at(&data, 5).unwrap();
        let mut back = vec![0; data.len()];
        file.read_at(&mut back, 5).unwrap();
        assert!(back == data);
        assert!(file.read_at(&mut back, 6).is_err(), "a read past the end is an error");
        file.set_length(10).unwrap();
        file.set_length(100).unwrap();
        file.read_at(&mut back[..100], 0).unwrap();
        assert!(back[10..100].iter().all(|&b| b == 0), "what a cut removed reads as zeros");
    }
}
