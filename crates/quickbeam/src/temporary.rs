//! Temporary files of an environment, for data that does not fit into memory.
//!
//! Above: undo entries that exceed their memory, and the user, such as an external sort. Below: the
//! VFS.
//!
//! - TEMPORARY-1: a temporary file is removed when its handle is dropped. One that a crash left is
//!   removed when the environment is opened for writing. No page, log record or checkpoint refers
//!   to one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::vfs::{File, OpenMode, Vfs};

/// How the names of temporary files begin.
const PREFIX: &str = "temporary-";

/// A file for data that does not fit into memory. It is removed when the handle is dropped.
///
/// ```
/// use quickbeam::query_layer::EnvironmentExt;
///
/// # let directory = tempfile::tempdir().unwrap();
/// # let environment = quickbeam::Environment::open(directory.path(), Default::default())?;
/// let file = environment.create_temporary_file()?.expect("the environment has a directory");
/// file.write_at(b"apple", 0)?;
/// let mut read = [0; 5];
/// file.read_at(&mut read, 0)?;
/// assert_eq!(&read, b"apple");
/// # Ok::<(), quickbeam::Error>(())
/// ```
pub struct TemporaryFile {
    file: Arc<dyn File>,
    path: PathBuf,
    vfs: Arc<dyn Vfs>,
}

impl TemporaryFile {
    /// Writes all of `bytes` at `offset`. Fails with [`Error::DiskFull`] if there is no space.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let on = |error| Error::on_file("writing", &self.path, error);
        self.file.write_at(bytes, offset).map_err(on)
    }

    /// Fills `buffer` with the bytes at `offset`.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let on = |error| Error::on_file("reading", &self.path, error);
        self.file.read_at(buffer, offset).map_err(on)
    }
}

impl std::fmt::Debug for TemporaryFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemporaryFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A file that cannot be removed now is removed at the next opening (TEMPORARY-1).
        self.vfs.remove(&self.path).ok();
    }
}

/// Creates the temporary files of an environment.
pub struct TemporaryFiles {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    /// The number of the next file.
    next: AtomicU64,
}

impl TemporaryFiles {
    /// Creates files in `directory`, from which [`remove_left`] has removed those of earlier
    /// openings.
    pub fn new(vfs: Arc<dyn Vfs>, directory: &Path) -> TemporaryFiles {
        TemporaryFiles { vfs, directory: directory.to_owned(), next: AtomicU64::new(0) }
    }

    /// Creates a file.
    pub fn create(&self) -> Result<TemporaryFile> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.join(format!("{PREFIX}{number}"));
        invariant!(TEMPORARY_1, !self.vfs.exists(&path), "{} was left", path.display());
        let file = self.vfs.open(&path, OpenMode::Create);
        let file = file.map_err(|error| Error::on_file("creating", &path, error))?;
        Ok(TemporaryFile { file, path, vfs: self.vfs.clone() })
    }
}

/// Removes the temporary files that a crash left in a directory.
pub fn remove_left(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    let names = vfs.list_directory(directory);
    for path in names.map_err(|error| Error::on_file("listing", directory, error))? {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.strip_prefix(PREFIX).is_some_and(|number| number.parse::<u64>().is_ok()) {
            vfs.remove(&path).map_err(|error| Error::on_file("removing", &path, error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::options::Options;
    use crate::vfs::MemoryVfs;

    #[test]
    fn temporary_files_are_removed_at_drop_and_at_opening() -> Result<()> {
        let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
        let directory = Path::new("/environment");
        let left = [directory.join("temporary-7"), directory.join("temporary-notes")];
        let environment = Environment::open_in(vfs.clone(), Some(directory), Options::new())?;
        let file = environment.create_temporary_file()?.unwrap();
        let path = file.path.clone();
        assert!(vfs.exists(&path));
        drop(file);
        assert!(!vfs.exists(&path));
        environment.close()?;
        for path in &left {
            vfs.open(path, OpenMode::Create).unwrap();
        }
        let environment = Environment::open_read_only_in(vfs.clone(), directory, Options::new())?;
        assert!(!environment.has_temporary_files());
        assert!(environment.create_temporary_file()?.is_none());
        drop(environment);
        assert_eq!([true, true], [0, 1].map(|n: usize| vfs.exists(&left[n])));
        drop(Environment::open_in(vfs.clone(), Some(directory), Options::new())?);
        assert_eq!([false, true], [0, 1].map(|n: usize| vfs.exists(&left[n])));
        let memory = Environment::open_in_memory(Options::new())?;
        assert!(!memory.has_temporary_files() && memory.create_temporary_file()?.is_none());
        Ok(())
    }
}
