//! The files of the simulated VFS: applies a call to the disk wholly, partly or not at all.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use quickbeam::vfs::{File, MappedFile};

use super::core::{Core, gone};
use super::{Partial, SimVfs, nothing};
use crate::vfs::faults::CallKind;
use quickbeam_testing::Random;

/// An open file.
pub struct SimulatedFile {
    pub vfs: SimVfs,
    pub path: PathBuf,
    pub inode: usize,
    /// Every write is durable when it returns.
    pub through: bool,
    /// It holds the file's lock.
    pub locks: AtomicBool,
}

impl SimulatedFile {
    fn call<T>(
        &self,
        kind: CallKind,
        values: &[u64],
        partial: Partial<'_>,
        work: impl FnOnce(&mut Core) -> io::Result<T>,
    ) -> io::Result<T> {
        self.vfs.call(kind, &self.path, values, partial, work)
    }

    fn flush(&self, length: bool) -> io::Result<()> {
        let what = if length { 1 } else { 0 };
        let failed = |core: &mut Core, random: &mut Random| {
            let (medium, forgotten) = (core.disk.medium, random.chance(40));
            core.disk.inode(self.inode).fail_flush(random, medium, forgotten);
        };
        let nothing = |_: &mut Core, _: &mut Random| {};
        let met = self.vfs.core().met;
        let done = self.call(CallKind::Flush, &[what], &nothing, |core| {
            core.disk.flush(self.inode, length);
            Ok(())
        });
        let mut core = self.vfs.core();
        if done.is_err() && core.met > met && !core.is_cut_off() {
            let mut random = core.random.clone();
            failed(&mut core, &mut random);
            core.random.next();
            let name = self.path.to_string_lossy();
            if name.ends_with(".quickbeam") || name.ends_with(".log") {
                core.flush_failed = true;
                core.flush_failed_by = Some(core.scheduler.current());
            }
        }
        done
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        if self.locks.load(Ordering::Relaxed) {
            self.vfs.core().disk.unlock(self.inode);
        }
    }
}

impl File for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let length = buffer.len() as u64;
        self.call(CallKind::Read, &[offset, length], &nothing, |core| {
            let content = &core.disk.inode(self.inode).seen;
            if offset + length > content.length() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            content.read(buffer, offset);
            core.trace.add_bytes(buffer);
            Ok(())
        })
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        let length = buffer.len();
        let aligned = |number: usize| number.is_multiple_of(4096);
        if self.through
            && !(aligned(length) && aligned(offset as usize) && aligned(buffer.as_ptr() as usize))
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let through = self.through;
        let inode = self.inode;
        // An interrupted or failed write may have written its first sectors; with write-through,
        // any of them.
        let partial = |core: &mut Core, random: &mut Random| {
            let grain = core.disk.medium.grain;
            if through {
                for (at, part) in buffer.chunks(grain).enumerate() {
                    if random.chance(50) {
                        let at = offset + (at * grain) as u64;
                        core.disk.inode(inode).write_through(part, at);
                    }
                }
            } else {
                let part = random.below(length / grain + 2) * grain;
                core.disk.inode(inode).write(&buffer[..part.min(length)], offset);
            }
        };
        self.call(CallKind::Write, &[offset, length as u64], &partial, |core| {
            core.trace.add_bytes(buffer);
            let more = if core.disk.limit == u64::MAX && core.full.is_none() {
                0
            } else {
                core.disk.inode(inode).seen.more_room(offset, length)
            };
            if !core.has_room(more, true) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            if through {
                core.disk.inode(inode).write_through(buffer, offset);
            } else {
                core.disk.inode(inode).write(buffer, offset);
            }
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.flush(false)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.flush(true)
    }

    fn length(&self) -> io::Result<u64> {
        let mut core = self.vfs.core();
        if core.cut_off {
            return Err(gone());
        }
        Ok(core.disk.inode(self.inode).seen.length())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let inode = self.inode;
        let partial = |core: &mut Core, _: &mut Random| core.disk.inode(inode).set_length(length);
        self.call(CallKind::Length, &[length], &partial, |core| {
            core.disk.inode(inode).set_length(length);
            Ok(())
        })
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let inode = self.inode;
        let partial = |core: &mut Core, _: &mut Random| core.disk.inode(inode).allocate(length / 2);
        self.call(CallKind::Length, &[length, 1], &partial, |core| {
            let more = core.disk.inode(inode).seen.more_room(0, length as usize);
            if !core.has_room(more, true) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            core.disk.inode(inode).allocate(length);
            Ok(())
        })
    }

    fn map(&self, length: u64) -> io::Result<Option<Box<dyn MappedFile>>> {
        let inode = self.inode;
        if !self.vfs.core().disk.medium.mapped {
            return Ok(None);
        }
        let is_long_enough = self.call(CallKind::Length, &[length, 2], &nothing, |core| {
            if core.disk.inode(inode).seen.length() < length {
                return Ok(false);
            }
            // As in the operating system's VFS: holes get space.
            let more = core.disk.inode(inode).seen.more_room(0, length as usize);
            if !core.has_room(more, true) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            core.disk.inode(inode).allocate(length);
            Ok(true)
        })?;
        let mapping =
            SimulatedMapping { vfs: self.vfs.clone(), path: self.path.clone(), inode, length };
        Ok(is_long_enough.then(|| Box::new(mapping) as Box<dyn MappedFile>))
    }

    fn try_lock(&self) -> io::Result<bool> {
        let locked = self.vfs.core().disk.lock(self.inode);
        self.locks.store(locked, Ordering::Relaxed);
        Ok(locked)
    }
}

thread_local! {
    /// The thread has stored into a mapped file after the cut, or was interrupted in a store.
    static IN_VAIN: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Returns whether the calling thread has stored bytes since the last call that the cut discarded.
/// A store cannot fail, but the simulated process that made it is dead.
pub fn stored_in_vain() -> bool {
    IN_VAIN.replace(false)
}

/// The mapping of a file.
struct SimulatedMapping {
    vfs: SimVfs,
    path: PathBuf,
    inode: usize,
    length: u64,
}

impl MappedFile for SimulatedMapping {
    fn store(&self, bytes: &[u8], offset: u64) -> bool {
        let whole = offset.is_multiple_of(8) && bytes.len().is_multiple_of(8);
        let inside = offset.checked_add(bytes.len() as u64).is_some_and(|end| end <= self.length);
        if whole && inside {
            self.store_words(bytes, offset);
        }
        whole && inside
    }
}

impl SimulatedMapping {
    /// Stores bytes within the mapping, in whole words.
    fn store_words(&self, bytes: &[u8], offset: u64) {
        self.vfs.give_way(true);
        let mut guard = self.vfs.core();
        let core = &mut *guard;
        if core.cut_off {
            IN_VAIN.set(true);
            return;
        }
        core.note_progress();
        let thread = core.scheduler.current() as u64;
        core.trace.add(&[3, thread, offset, bytes.len() as u64]);
        core.trace.add_bytes(bytes);
        core.changes += 1;
        core.probe("stores");
        let mut random = core.random.clone();
        core.random.next();
        let mut there = bytes.len();
        if core.is_cut_here() {
            there = random.below(bytes.len() / 8 + 1) * 8;
            IN_VAIN.set(true);
            core.cut_now();
        }
        core.disk.inode(self.inode).write(&bytes[..there], offset);
        let (name, now) = (core.scheduler.name().to_owned(), core.scheduler.now / 1000);
        core.trace.say(|| {
            format!("{now:>9} {name:<22} Store {} [{offset}, {there}]", self.path.display())
        });
    }
}
