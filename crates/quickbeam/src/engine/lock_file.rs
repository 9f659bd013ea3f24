//! The lock file of a directory, and what it says of the process that holds the lock.
//!
//! Above: opening and salvage. Below: files. The operating system releases the lock when the
//! process ends, so the content outlives it; it is read only while a writer holds the lock.

use std::path::Path;
use std::sync::Arc;

use super::Access;
use crate::error::{Error, LockedDirectory, Result};
use crate::files::{LOCK_FILE, SOCKET_FILE};
use crate::vfs::{File, OpenMode, Vfs};

/// The most bytes of the lock file that are shown.
const MAX_SHOWN: u64 = 200;

/// Locks the directory. A reader needs no lock file: a copy of an environment may lack one.
pub fn take(vfs: &dyn Vfs, path: &Path, access: Access) -> Result<Option<Arc<dyn File>>> {
    let lock_path = path.join(LOCK_FILE);
    let on = |error| Error::on_file("opening the lock file", &lock_path, error);
    let (lock, is_free) = match access {
        Access::Write => {
            let lock = vfs.open(&lock_path, OpenMode::Create).map_err(on)?;
            let is_free = lock.try_lock().map_err(on)?;
            (lock, is_free)
        }
        Access::Read if !vfs.exists(&lock_path) => return Ok(None),
        Access::Read => {
            let lock = vfs.open(&lock_path, OpenMode::Read).map_err(on)?;
            let is_free = lock.try_lock_shared().map_err(on)?;
            (lock, is_free)
        }
    };
    if !is_free {
        return Err(locked(vfs, path, &*lock));
    }
    if access == Access::Write {
        sign(vfs, &*lock);
    }
    Ok(Some(lock))
}

/// Writes into the lock file who holds the lock.
fn sign(vfs: &dyn Vfs, lock: &dyn File) {
    let Some(text) = vfs.process() else { return };
    // Errors are ignored: the text is for people, and a full device must not keep the environment
    // closed. A text that is cut short is shown as it is.
    let _ = lock.set_length(0).and_then(|()| lock.write_at(text.as_bytes(), 0));
}

/// Returns the error for a lock that another opener holds.
pub fn locked(vfs: &dyn Vfs, path: &Path, lock: &dyn File) -> Error {
    // Where a shared lock can be had, the holders are readers, and the text is that of a writer
    // which has gone. The lock is released when the caller closes the file.
    let is_written = !lock.try_lock_shared().unwrap_or(false);
    let holder = if is_written { holder(lock) } else { None };
    let socket = Some(path.join(SOCKET_FILE)).filter(|socket| is_written && vfs.exists(socket));
    Error::Locked(Box::new(LockedDirectory { path: path.into(), holder, socket }))
}

fn holder(lock: &dyn File) -> Option<String> {
    let length = lock.length().ok()?.min(MAX_SHOWN);
    let mut bytes = vec![0; length as usize];
    lock.read_at(&mut bytes, 0).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let is_shown = !text.is_empty() && !text.contains(char::is_control);
    is_shown.then_some(text)
}
