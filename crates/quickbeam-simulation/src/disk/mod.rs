//! The simulated disk. Its fault model:
//!
//! 1. A write that returned may be lost until the file was flushed: any subset of the unflushed writes survives a loss of
//!    power, in any order with others, and of each write any subset of its sectors of 512 bytes or 4 KiB (torn writes).
//! 2. A write that makes a file longer, and every change of its length, needs a flush of data *and* length: in the
//!    strict model a flush of data alone leaves the length open, and what lies behind the length that survives is gone.
//!    In the ext4-like model a flush of data brings the length along.
//! 3. Names (made, renamed, removed) need a flush of their folder, each name on its own: in the strict model any subset
//!    survives. In the ext4-like model names survive in the order in which they changed, and any flush brings
//!    all names before it along. A rename is whole or not at all.
//! 4. A flush that fails leaves any part of what was to be flushed on the medium, and the rest is gone: no later flush
//!    brings it back. Programs go on seeing it, or not. Names whose flush failed are durable up to some
//!    point; the others wait for another flush.
//! 5. A write-through write is durable when it returns; one that was cut off may be there in any part.
//! 6. A read, write, flush or change of names can fail with an error; a failing write may have written a part (a short write).
//! 7. The disk has limited room, at any time; room can come back.
//! 8. Bits turn over in what is durable.
//! 9. The device may be slow: every call then takes ten or forty times as long, while clocks and timeouts go on as ever.
//! 10. A store into a mapped file is a write that cannot fail; one that was cut off has stored a first part, in words of eight bytes.
//! 11. The death of the process loses nothing that the calls before it did, and makes nothing of it durable: a loss of power
//!     after a restart takes what was not flushed before it.
//!
//! Which calls fail, and when the power goes, is decided above ([`crate::vfs`]).

mod content;
mod inode;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use crate::random::Random;
pub use content::Content;
pub use inode::Inode;

/// What the medium is like.
#[derive(Clone, Copy, Debug)]
pub struct Medium {
    /// Bytes that are written as a whole.
    pub grain: usize,
    /// Lengths and names need flushes of their own.
    pub strict: bool,
    /// Writing through is possible.
    pub write_through: bool,
    /// Files can be mapped into memory.
    pub mapped: bool,
}

impl Default for Medium {
    fn default() -> Self {
        Medium { grain: 512, strict: true, write_through: true, mapped: false }
    }
}

/// What a loss of power does to changes that were not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// None survives.
    Everything,
    /// All survive.
    Nothing,
    /// Any part of any of them.
    Any,
    /// Each as a whole, or not.
    Whole,
    /// Those behind some point are lost, and the one there is torn.
    Tail,
    /// One is lost.
    AllButOne,
    /// One survives.
    OnlyOne,
}

impl Loss {
    /// Every one.
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

/// Files, folders and their names. Cloning shares what neither copy changes.
#[derive(Clone, Debug)]
pub struct Disk {
    /// What it is like.
    pub medium: Medium,
    /// Bytes of room.
    pub limit: u64,
    inodes: BTreeMap<usize, Inode>,
    next: usize,
    names: Names,
    durable: Names,
    pending: Vec<NameChange>,
    locked: BTreeSet<usize>,
}

impl Disk {
    /// An empty disk.
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

    /// The file of that name.
    pub fn find(&self, path: &Path) -> Option<usize> {
        self.names.files.get(path).copied()
    }

    /// Whether there is a file or folder of that name.
    pub fn exists(&self, path: &Path) -> bool {
        self.names.files.contains_key(path) || self.names.folders.contains(path)
    }

    fn has_folder(&self, path: &Path) -> io::Result<()> {
        let there = path.parent().is_none_or(|up| up == Path::new("/") || self.exists(up));
        if there { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// A new empty file.
    pub fn create(&mut self, path: &Path) -> io::Result<usize> {
        self.has_folder(path)?;
        let inode = self.next;
        self.next += 1;
        self.inodes.insert(inode, Inode::default());
        self.change(NameChange::Link { path: path.to_owned(), inode });
        Ok(inode)
    }

    /// A folder and those above it.
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

    /// The names in a folder.
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

    /// Makes the names in a folder durable; in the ext4-like model, all names.
    pub fn flush_folder(&mut self, path: &Path) {
        let strict = self.medium.strict;
        let (now, later) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|change: &NameChange| !strict || change.folder() == path);
        self.pending = later;
        let now: Vec<NameChange> = now;
        now.iter().for_each(|change| self.durable.apply(change));
    }

    /// A flush of a folder that fails: its names are durable up to some point, the others wait for another flush.
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

    /// The file.
    pub fn inode(&mut self, inode: usize) -> &mut Inode {
        self.inodes.entry(inode).or_default()
    }

    /// Flushes a file; `length` says whether its length as well.
    pub fn flush(&mut self, inode: usize, length: bool) {
        let strict = self.medium.strict;
        self.inode(inode).flush(length || !strict);
        if !strict {
            self.flush_folder(Path::new("/"));
        }
    }

    /// Bytes of room taken.
    pub fn used(&self) -> u64 {
        let named: BTreeSet<usize> = self.names.files.values().copied().collect();
        named.iter().filter_map(|inode| self.inodes.get(inode)).map(|i| i.seen.room()).sum()
    }

    /// Takes the file's lock; false when it is taken.
    pub fn lock(&mut self, inode: usize) -> bool {
        self.locked.insert(inode)
    }

    /// Gives the lock back.
    pub fn unlock(&mut self, inode: usize) {
        self.locked.remove(&inode);
    }

    /// The process is gone, with its locks.
    pub fn lose_process(&mut self) {
        self.locked.clear();
    }

    /// The power is gone, and comes back.
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

    /// Turns a bit over in a file, for good.
    pub fn rot(&mut self, path: &Path, offset: u64, bit: u8) {
        let Some(inode) = self.find(path) else { return };
        let inode = self.inode(inode);
        inode.seen.flip(offset, bit);
        inode.durable.flip(offset, bit);
    }

    /// What programs read of a file at that place.
    #[must_use]
    pub fn peek(&self, path: &Path, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        if let Some(inode) = self.find(path).and_then(|inode| self.inodes.get(&inode)) {
            inode.seen.read(&mut bytes, offset);
        }
        bytes
    }

    /// The names and lengths of all files.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let length = |inode| self.inodes.get(inode).map_or(0, |inode| inode.seen.length());
        self.names.files.iter().map(|(path, inode)| (path.clone(), length(inode))).collect()
    }
}
