//! The simulated disk and its fault model.
//!
//! Above: [`crate::vfs`], which decides which calls fail and when power is lost. Below: nothing.
//! The fault model:
//!
//! 1. A write that returned may be lost until the file is flushed. Any subset of the unflushed
//!    writes survives a power loss, in any order with others. Of each write, any subset of its
//!    sectors of 512 bytes or 4 KiB survives (torn writes).
//! 2. A write that extends a file, and every change of its length, needs a flush of data *and*
//!    length. In the strict model a flush of data alone does not make the length durable, and data
//!    past the surviving length is lost. In the ext4-like model a flush of data includes the
//!    length.
//! 3. Names (created, renamed, removed) need a flush of their directory, each name individually: in
//!    the strict model any subset survives. In the ext4-like model names survive in the order in
//!    which they changed, and any flush includes all earlier name changes. A rename is atomic.
//! 4. A failed flush leaves any part of the data to be flushed on the medium, and the rest is lost:
//!    no later flush writes it. Programs may or may not still see it. Names whose flush failed are
//!    durable up to some point; the others wait for another flush.
//! 5. A write-through write is durable when it returns; any part of an interrupted one may survive.
//! 6. A read, write, flush or name change can fail with an error; a failing write may have written
//!    a part (a short write).
//! 7. The disk can run out of space at any time, and space can become free again.
//! 8. Bits of durable data can flip.
//! 9. The device may be slow: every call then takes ten or forty times as long, while clocks and
//!    timeouts run normally.
//! 10. A store to a mapped file is a write that cannot fail. An interrupted store has stored a
//!     prefix, in words of eight bytes.
//! 11. The death of the process loses no completed call, and makes none durable: a power loss after
//!     a restart can lose data that was not flushed before it.

mod content;
mod inode;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

pub use content::Content;
pub use inode::Inode;
use quickbeam_testing::Random;

/// The properties of the medium.
#[derive(Clone, Copy, Debug)]
pub struct Medium {
    /// Bytes that are written atomically.
    pub grain: usize,
    /// Lengths and names need separate flushes.
    pub strict: bool,
    /// Write-through is supported.
    pub write_through: bool,
    /// Files can be mapped into memory.
    pub mapped: bool,
}

impl Default for Medium {
    fn default() -> Self {
        Medium { grain: 512, strict: true, write_through: true, mapped: false }
    }
}

/// The effect of a power loss on unflushed changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// None survives.
    Everything,
    /// All survive.
    Nothing,
    /// Any part of any of them survives.
    Any,
    /// Each survives as a whole, or not at all.
    Whole,
    /// Changes after some point are lost, and the one at that point is torn.
    Tail,
    /// One is lost.
    AllButOne,
    /// One survives.
    OnlyOne,
}

impl Loss {
    /// All kinds of power losses.
    pub const ALL: [Loss; 7] = [
        Loss::Everything,
        Loss::Nothing,
        Loss::Any,
        Loss::Whole,
        Loss::Tail,
        Loss::AllButOne,
        Loss::OnlyOne,
    ];
}

#[derive(Clone, Debug)]
enum NameChange {
    Link { path: PathBuf, inode: usize },
    Unlink { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf, inode: usize },
    Folder { path: PathBuf },
}

impl NameChange {
    fn folder(&self) -> &Path {
        let path = match self {
            NameChange::Link { path, .. }
            | NameChange::Unlink { path }
            | NameChange::Folder { path }
            | NameChange::Rename { from: path, .. } => path,
        };
        path.parent().unwrap_or(Path::new(""))
    }
}

#[derive(Clone, Default, Debug)]
struct Names {
    files: BTreeMap<PathBuf, usize>,
    folders: BTreeSet<PathBuf>,
}

impl Names {
    fn apply(&mut self, change: &NameChange) {
        match change {
            NameChange::Link { path, inode } => drop(self.files.insert(path.clone(), *inode)),
            NameChange::Unlink { path } => drop(self.files.remove(path)),
            NameChange::Rename { from, to, inode } => {
                self.files.remove(from);
                self.files.insert(to.clone(), *inode);
            }
            NameChange::Folder { path } => drop(self.folders.insert(path.clone())),
        }
    }
}

/// Files, directories and their names. Cloning shares unchanged content.
#[derive(Clone, Debug)]
pub struct Disk {
    /// The properties of the medium.
    pub medium: Medium,
    /// Bytes of space.
    pub limit: u64,
    inodes: BTreeMap<usize, Inode>,
    next: usize,
    names: Names,
    durable: Names,
    pending: Vec<NameChange>,
    locked: BTreeSet<usize>,
}

impl Disk {
    /// Creates an empty disk.
    #[must_use]
    pub fn new(medium: Medium) -> Disk {
        Disk {
            medium,
            limit: u64::MAX,
            inodes: BTreeMap::new(),
            next: 1,
            names: Names::default(),
            durable: Names::default(),
            pending: Vec::new(),
            locked: BTreeSet::new(),
        }
    }

    fn change(&mut self, change: NameChange) {
        self.names.apply(&change);
        self.pending.push(change);
    }

    /// Returns the file of that name.
    pub fn find(&self, path: &Path) -> Option<usize> {
        self.names.files.get(path).copied()
    }

    /// Returns whether a file or directory of that name exists.
    pub fn exists(&self, path: &Path) -> bool {
        self.names.files.contains_key(path) || self.names.folders.contains(path)
    }

    fn has_folder(&self, path: &Path) -> io::Result<()> {
        let there = path.parent().is_none_or(|up| up == Path::new("/") || self.exists(up));
        if there { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Creates an empty file.
    pub fn create(&mut self, path: &Path) -> io::Result<usize> {
        self.has_folder(path)?;
        let inode = self.next;
        self.next += 1;
        self.inodes.insert(inode, Inode::default());
        self.change(NameChange::Link { path: path.to_owned(), inode });
        Ok(inode)
    }

    /// Creates a directory and its ancestors.
    pub fn create_folder(&mut self, path: &Path) {
        let missing: Vec<PathBuf> = path
            .ancestors()
            .filter(|up| up.parent().is_some() && !self.exists(up))
            .map(Path::to_owned)
            .collect();
        for path in missing.into_iter().rev() {
            self.change(NameChange::Folder { path });
        }
    }

    /// Returns the names in a directory.
    pub fn list(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        if !self.names.folders.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inside = |name: &&PathBuf| name.parent() == Some(path);
        let names = self.names.files.keys().chain(&self.names.folders);
        Ok(names.filter(inside).cloned().collect())
    }

    /// Renames a file.
    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let inode = self.find(from).ok_or(io::ErrorKind::NotFound)?;
        self.change(NameChange::Rename { from: from.to_owned(), to: to.to_owned(), inode });
        Ok(())
    }

    /// Removes a name.
    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.find(path).ok_or(io::ErrorKind::NotFound)?;
        self.change(NameChange::Unlink { path: path.to_owned() });
        Ok(())
    }

    /// Makes the names in a directory durable; in the ext4-like model, all names.
    pub fn flush_folder(&mut self, path: &Path) {
        let strict = self.medium.strict;
        let (now, later) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|change: &NameChange| !strict || change.folder() == path);
        self.pending = later;
        let now: Vec<NameChange> = now;
        now.iter().for_each(|change| self.durable.apply(change));
    }

    /// Fails a flush of a directory: its names are durable up to some point, the others wait for
    /// another flush.
    pub fn fail_flush_folder(&mut self, random: &mut Random, path: &Path) {
        let strict = self.medium.strict;
        let mut left = random.below(self.pending.len() + 1);
        let durable = &mut self.durable;
        self.pending.retain(|change| {
            if left == 0 || (strict && change.folder() != path) {
                return true;
            }
            left -= 1;
            durable.apply(change);
            false
        });
    }

    /// Returns the file.
    pub fn inode(&mut self, inode: usize) -> &mut Inode {
        self.inodes.entry(inode).or_default()
    }

    /// Flushes a file, including its length if `length` is set.
    pub fn flush(&mut self, inode: usize, length: bool) {
        let strict = self.medium.strict;
        self.inode(inode).flush(length || !strict);
        if !strict {
            self.flush_folder(Path::new("/"));
        }
    }

    /// Returns the bytes of space in use.
    pub fn used(&self) -> u64 {
        let named: BTreeSet<usize> = self.names.files.values().copied().collect();
        named.iter().filter_map(|inode| self.inodes.get(inode)).map(|i| i.seen.room()).sum()
    }

    /// Takes the file's lock. Returns false if it is taken.
    pub fn lock(&mut self, inode: usize) -> bool {
        self.locked.insert(inode)
    }

    /// Releases the file's lock.
    pub fn unlock(&mut self, inode: usize) {
        self.locked.remove(&inode);
    }

    /// Ends the process, which releases its locks.
    pub fn lose_process(&mut self) {
        self.locked.clear();
    }

    /// Loses power and restores it.
    pub fn lose_power(&mut self, random: &mut Random, loss: Loss) {
        self.locked.clear();
        let pending = std::mem::take(&mut self.pending);
        let single = random.below(pending.len());
        let cut = random.below(pending.len() + 1);
        for (at, change) in pending.iter().enumerate() {
            let kept = match loss {
                Loss::Everything => false,
                Loss::Nothing => true,
                _ if !self.medium.strict => at < cut,
                Loss::Any | Loss::Whole => random.chance(50),
                Loss::Tail => at < cut,
                Loss::AllButOne => at != single,
                Loss::OnlyOne => at == single,
            };
            if kept {
                self.durable.apply(change);
            }
        }
        let folders = &self.durable.folders;
        let has_folder = |path: &PathBuf| {
            path.ancestors().skip(1).all(|up| up.parent().is_none() || folders.contains(up))
        };
        let mut files = std::mem::take(&mut self.durable.files);
        files.retain(|path, _| has_folder(path));
        let folders = folders.iter().filter(|path| has_folder(path)).cloned().collect();
        self.durable = Names { files, folders };
        self.names = self.durable.clone();
        let named: BTreeSet<usize> = self.names.files.values().copied().collect();
        self.inodes.retain(|inode, _| named.contains(inode));
        let medium = self.medium;
        for inode in self.inodes.values_mut() {
            inode.lose_power(random, loss, medium);
        }
    }

    /// Flips a bit of a file permanently.
    pub fn rot(&mut self, path: &Path, offset: u64, bit: u8) {
        let Some(inode) = self.find(path) else { return };
        let inode = self.inode(inode);
        inode.seen.flip(offset, bit);
        inode.durable.flip(offset, bit);
    }

    /// Returns bytes of a file as programs read them.
    #[must_use]
    pub fn peek(&self, path: &Path, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        if let Some(inode) = self.find(path).and_then(|inode| self.inodes.get(&inode)) {
            inode.seen.read(&mut bytes, offset);
        }
        bytes
    }

    /// Returns the names and lengths of all files.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let length = |inode| self.inodes.get(inode).map_or(0, |inode| inode.seen.length());
        self.names.files.iter().map(|(path, inode)| (path.clone(), length(inode))).collect()
    }
}
