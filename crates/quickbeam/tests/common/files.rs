//! Files of an environment, as a process would find them that came after a crash.

use std::io;
use std::path::Path;

use quickbeam::LOCK_FILE;

/// Copies what the files of an open environment hold, without the lock file, to a place where
/// nothing is. Checkpoints must not be made meanwhile.
pub fn copy_environment(from: &Path, to: &Path) -> io::Result<()> {
    // A segment that is made ready beside this changes its name.
    loop {
        match copy_directory(from, to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && from.exists() => {
                std::fs::remove_dir_all(to)?;
            }
            copied => return copied,
        }
    }
}

fn copy_directory(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &target)?;
        } else if entry.file_name() != LOCK_FILE {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
