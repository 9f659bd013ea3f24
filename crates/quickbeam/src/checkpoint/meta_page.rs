//! Root slots: two places at the data file's start, written in turn, each saying where a checkpoint is.
//!
//! A slot holds its root twice, in two sectors. A write that is cut off leaves at least one of the copies whole: the new
//! one, or the one before. So a slot without any whole copy is damage, and not a write that was cut off.
//!
//! - ROOT-1: a root counts only in the slot of its sequence, and beside a root of a neighbouring sequence.

use std::path::Path;

use crate::blocks::Location;
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::options::is_log_segment_size;
use crate::vfs::File;

/// Version of the file format that this release writes.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest version that it reads. Nothing has to be changed in what is of an older one: it only lacks what is new.
pub const OLDEST_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"QUICKBM\0";
/// Offsets of the two slots.
const SLOTS: [u64; 2] = [0, 8192];
/// Bytes of a root.
const LENGTH: usize = 128;
/// Where in a slot the second copy of its root is.
const SECOND_COPY: usize = 4096;
/// Bytes of a slot that are written.
const SLOT: usize = SECOND_COPY + LENGTH;
/// Bits of the byte that describes a root.
const CLEAN: u8 = 1;
const SEGMENT_EXISTS: u8 = 2;

/// Which product made the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Transactional Data Store.
    Transactional = 1,
    /// Data Store.
    Plain = 2,
}

/// What never changes about a data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Random; log segments carry it.
    pub environment: u64,
    /// Bytes in a page.
    pub page_size: u32,
    /// Which product made it.
    pub kind: StoreKind,
    /// Bytes in a log segment.
    pub log_segment_size: u64,
}

/// Where a checkpoint is.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Root {
    /// Grows by one with each; the highest valid one counts.
    pub sequence: u64,
    /// The newest commit in the checkpoint.
    pub timestamp: u64,
    /// Log records from here on are not in the checkpoint.
    pub log_position: u64,
    /// Where recovery starts to read.
    pub log_start: u64,
    /// Grows with each opening.
    pub incarnation: u32,
    /// The environment was closed after this checkpoint: the log holds nothing behind it.
    pub clean: bool,
    /// The log segment in which recovery starts was there, durably, before the root: if it is missing, it was lost.
    pub segment_exists: bool,
    /// The directory's first page.
    pub directory: Location,
}

/// No environment is opened this often; nor does it come to this many roots, commits or bytes of log. A slot that says so
/// is not valid, and nothing that counts on from what a slot says overflows.
pub const INCARNATION_LIMIT: u32 = u32::MAX - (1 << 20);
const COUNT_LIMIT: u64 = 1 << 60;

/// The two slots.
#[derive(Clone, Copy, Debug, Default)]
pub struct MetaPages;

fn encode(identity: &Identity, root: &Root) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&identity.page_size.to_le_bytes());
    bytes[16..24].copy_from_slice(&identity.environment.to_le_bytes());
    bytes[24..32].copy_from_slice(&identity.log_segment_size.to_le_bytes());
    bytes[32] = identity.kind as u8;
    bytes[33] = if root.clean { CLEAN } else { 0 };
    bytes[33] |= if root.segment_exists { SEGMENT_EXISTS } else { 0 };
    bytes[36..40].copy_from_slice(&root.incarnation.to_le_bytes());
    bytes[40..48].copy_from_slice(&root.sequence.to_le_bytes());
    bytes[48..56].copy_from_slice(&root.timestamp.to_le_bytes());
    bytes[56..64].copy_from_slice(&root.log_position.to_le_bytes());
    bytes[64..72].copy_from_slice(&root.log_start.to_le_bytes());
    bytes[72..80].copy_from_slice(&root.directory.0.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..LENGTH - 4]);
    bytes[LENGTH - 4..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
}

/// What the bytes of a copy, or of a slot, say: nothing, another version, or a root.
enum MetaSlot {
    Nothing,
    Version(u32),
    Valid(Identity, Root),
}

fn decode(bytes: &[u8; LENGTH]) -> MetaSlot {
    if !bytes.starts_with(MAGIC) {
        return MetaSlot::Nothing;
    }
    if u32_at(bytes, LENGTH - 4) != crc32c::crc32c(&bytes[..LENGTH - 4]) {
        return MetaSlot::Nothing;
    }
    if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&u32_at(bytes, 8)) {
        return MetaSlot::Version(u32_at(bytes, 8));
    }
    let page_size = u32_at(bytes, 12);
    let kind = match bytes[32] {
        1 => StoreKind::Transactional,
        2 => StoreKind::Plain,
        _ => return MetaSlot::Nothing,
    };
    if !page_size.is_power_of_two() || !(4096..=65536).contains(&page_size) {
        return MetaSlot::Nothing;
    }
    let identity = Identity {
        environment: u64_at(bytes, 16),
        page_size,
        kind,
        log_segment_size: u64_at(bytes, 24),
    };
    let root = Root {
        sequence: u64_at(bytes, 40),
        timestamp: u64_at(bytes, 48),
        log_position: u64_at(bytes, 56),
        log_start: u64_at(bytes, 64),
        incarnation: u32_at(bytes, 36),
        clean: bytes[33] & CLEAN != 0,
        segment_exists: bytes[33] & SEGMENT_EXISTS != 0,
        directory: Location(u64_at(bytes, 72)),
    };
    let counts = [root.sequence, root.timestamp, root.log_position, root.log_start];
    if counts.iter().any(|&count| count >= COUNT_LIMIT)
        || root.incarnation > INCARNATION_LIMIT
        || !is_log_segment_size(identity.log_segment_size)
    {
        return MetaSlot::Nothing;
    }
    MetaSlot::Valid(identity, root)
}

/// What was read of the slot at `place`.
struct ReadSlot {
    slot: MetaSlot,
    /// It holds no root, and a write that was cut off does not explain that.
    is_damaged: bool,
}

/// Reads the slot whose place that is. A file that ends before it, or within it, holds zeros there.
fn read_slot(file: &dyn File, place: usize) -> std::io::Result<ReadSlot> {
    let mut bytes = vec![0; SLOT];
    let there = file.length()?.saturating_sub(SLOTS[place]).min(SLOT as u64) as usize;
    if there > 0 {
        file.read_at(&mut bytes[..there], SLOTS[place])?;
    }
    let copies = [bytes.first_chunk(), bytes.last_chunk()];
    let mut slot = MetaSlot::Nothing;
    for copy in copies.into_iter().flatten() {
        match (decode(copy), &slot) {
            // A later version wrote here, perhaps without coming to the other copy.
            (_, MetaSlot::Version(_)) => {}
            (MetaSlot::Version(version), _) => slot = MetaSlot::Version(version),
            (MetaSlot::Valid(_, root), _) if root.sequence % 2 != place as u64 => {}
            (MetaSlot::Valid(_, root), MetaSlot::Valid(_, best))
                if root.sequence <= best.sequence => {}
            (MetaSlot::Valid(identity, root), _) => slot = MetaSlot::Valid(identity, root),
            (MetaSlot::Nothing, _) => {}
        }
    }
    let is_blank = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    // Releases before this one wrote the first copy only: there, a write that was cut off leaves none.
    let may_be_torn = !is_blank(&bytes[..LENGTH]) && is_blank(&bytes[SECOND_COPY..]);
    Ok(ReadSlot { is_damaged: matches!(slot, MetaSlot::Nothing) && !may_be_torn, slot })
}

/// The root that counts.
pub struct FoundRoot {
    /// What the data file is.
    pub identity: Identity,
    /// The newest valid root. Its clean mark does not count if there may have been a newer one.
    pub root: Root,
    /// There may have been a newer one.
    pub is_doubtful: bool,
    /// For certain the other slot is damaged, so that a newer root may be lost.
    pub is_other_damaged: bool,
}

impl MetaPages {
    /// Writes the root into the slot whose turn it is, and flushes.
    pub fn write(self, file: &dyn File, identity: &Identity, root: &Root) -> std::io::Result<()> {
        self.put(file, identity, root)?;
        file.sync_data()
    }

    /// Makes the root that was read durable, with the file's length. What was read may have been in the memory of the
    /// operating system alone, if the process before ended, or a flush of it failed, after the root was written.
    /// Nothing that the root before refers to may be overwritten until then.
    pub fn confirm(self, file: &dyn File, identity: &Identity, root: &Root) -> std::io::Result<()> {
        self.put(file, identity, root)?;
        file.sync_all()
    }

    fn put(self, file: &dyn File, identity: &Identity, root: &Root) -> std::io::Result<()> {
        let mut bytes = [0; SLOT];
        let copy = encode(identity, root);
        bytes[..LENGTH].copy_from_slice(&copy);
        bytes[SECOND_COPY..].copy_from_slice(&copy);
        file.write_at(&bytes, SLOTS[(root.sequence % 2) as usize])
    }

    /// Every valid root, the newest first; none where nothing can be read.
    pub fn readable(self, file: &dyn File) -> Vec<(Identity, Root)> {
        let mut roots = Vec::new();
        for place in 0..SLOTS.len() {
            if let Ok(ReadSlot { slot: MetaSlot::Valid(identity, root), .. }) =
                read_slot(file, place)
            {
                roots.push((identity, root));
            }
        }
        roots.sort_by_key(|(_, root)| std::cmp::Reverse(root.sequence));
        let may_be_newer = match &roots[..] {
            [(_, newest), (_, other)] => newest.sequence != other.sequence + 1,
            _ => true,
        };
        for (_, root) in roots.iter_mut().filter(|_| may_be_newer) {
            root.clean = false;
        }
        roots
    }

    /// The newest valid root of the data file at `path`.
    pub fn read(self, file: &dyn File, path: &Path) -> Result<FoundRoot> {
        let read =
            |place| read_slot(file, place).map_err(|error| Error::on_file("reading", path, error));
        let damage = |detail: &str| Error::Corruption {
            file: path.display().to_string(),
            place: "root slots".into(),
            detail: detail.into(),
        };
        let [even, odd] = [read(0)?, read(1)?];
        let other_damaged = even.is_damaged || odd.is_damaged;
        let (identity, mut root, is_alone, is_other_damaged) = match (even.slot, odd.slot) {
            (MetaSlot::Valid(identity, root), MetaSlot::Valid(other_identity, other)) => {
                if identity != other_identity {
                    return Err(damage("the two slots are of different data files"));
                }
                let newer = (root.sequence > other.sequence) != planted(Canary::RootStale);
                let is_apart = root.sequence.abs_diff(other.sequence) != 1;
                (identity, if newer { root } else { other }, is_apart, is_apart)
            }
            (MetaSlot::Version(found), _) | (_, MetaSlot::Version(found)) => {
                let (path, supported) = (path.into(), FORMAT_VERSION);
                return Err(Error::FormatVersion { path, found, supported });
            }
            (MetaSlot::Valid(identity, root), _) | (_, MetaSlot::Valid(identity, root)) => {
                // The first root of a new file has none beside it yet.
                let is_first = root.sequence == 1;
                (identity, root, true, other_damaged && !is_first)
            }
            (MetaSlot::Nothing, MetaSlot::Nothing) => {
                return Err(damage("neither slot holds a valid root"));
            }
        };
        // The other slot may have held the newer root: what is behind this one has to be looked for.
        root.clean &= !is_alone;
        Ok(FoundRoot { identity, root, is_doubtful: is_alone, is_other_damaged })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::{MemoryVfs, OpenMode, Vfs};

    #[test]
    fn the_newest_valid_slot_counts_and_damage_falls_back() {
        let vfs = MemoryVfs::new();
        let path = Path::new("data");
        let file = vfs.open(path, OpenMode::Create).unwrap();
        file.set_length(65536).unwrap();
        let identity = Identity {
            environment: 9,
            page_size: 8192,
            kind: StoreKind::Transactional,
            log_segment_size: 1 << 20,
        };
        for sequence in 1..4 {
            let root = Root { sequence, timestamp: sequence * 10, ..Root::default() };
            MetaPages.write(&*file, &identity, &root).unwrap();
        }
        let read = || MetaPages.read(&*file, path);
        let found = read().unwrap();
        assert_eq!((found.root.sequence, found.is_doubtful), (3, false));
        // One copy makes up for the other.
        file.write_at(&[1], 8192 + 50).unwrap();
        let found = read().unwrap();
        assert_eq!((found.root.sequence, found.is_doubtful), (3, false));
        file.write_at(&[1], 8192 + 4096 + 50).unwrap();
        let found = read().unwrap();
        assert_eq!((found.root.sequence, found.is_other_damaged), (2, true));
        file.write_at(&[1], 50).unwrap();
        assert_eq!(read().unwrap().root.sequence, 2);
        file.write_at(&[1], 4096 + 50).unwrap();
        assert!(matches!(read(), Err(Error::Corruption { .. })));
    }

    /// Every prefix of a root's write, over the root two before it or over nothing.
    #[test]
    fn a_write_that_is_cut_off_is_no_damage() {
        let vfs = MemoryVfs::new();
        let path = Path::new("data");
        let file = vfs.open(path, OpenMode::Create).unwrap();
        file.set_length(65536).unwrap();
        let identity = Identity {
            environment: 9,
            page_size: 8192,
            kind: StoreKind::Plain,
            log_segment_size: 1 << 20,
        };
        let root = |sequence| Root { sequence, timestamp: sequence * 10, ..Root::default() };
        let bytes = |from: u64| {
            let mut bytes = vec![0; SLOT];
            file.read_at(&mut bytes, from).unwrap();
            bytes
        };
        for (number, slot) in [(2, 0), (3, 8192), (4, 0)] {
            if number == 2 {
                MetaPages.write(&*file, &identity, &root(1)).unwrap();
            }
            let before = bytes(slot);
            MetaPages.write(&*file, &identity, &root(number)).unwrap();
            let after = bytes(slot);
            for cut in (0..=LENGTH + 1).chain(SECOND_COPY..=SLOT) {
                let torn = [&after[..cut], &before[cut..]].concat();
                file.write_at(&torn, slot).unwrap();
                let found = MetaPages.read(&*file, path).unwrap();
                assert!([number - 1, number].contains(&found.root.sequence), "{number}, {cut}");
                assert!(!found.is_other_damaged, "{number}, cut at {cut}");
            }
        }
    }

    #[test]
    fn a_root_counts_only_in_its_own_slot() {
        let vfs = MemoryVfs::new();
        let path = Path::new("data");
        let file = vfs.open(path, OpenMode::Create).unwrap();
        file.set_length(65536).unwrap();
        let identity = Identity {
            environment: 9,
            page_size: 8192,
            kind: StoreKind::Transactional,
            log_segment_size: 1 << 20,
        };
        let root = |sequence| Root { sequence, clean: true, ..Root::default() };
        for sequence in [4, 5] {
            MetaPages.write(&*file, &identity, &root(sequence)).unwrap();
        }
        assert!(MetaPages.read(&*file, path).unwrap().root.clean);
        // The even root stands in the odd slot, too.
        let mut slot = vec![0; SLOT];
        file.read_at(&mut slot, 0).unwrap();
        file.write_at(&slot, 8192).unwrap();
        let found = MetaPages.read(&*file, path).unwrap();
        assert_eq!(
            (found.root.sequence, found.root.clean, found.is_other_damaged),
            (4, false, true)
        );
        // A slot that kept the root of some time ago.
        MetaPages.write(&*file, &identity, &root(1)).unwrap();
        let found = MetaPages.read(&*file, path).unwrap();
        assert_eq!(
            (found.root.sequence, found.root.clean, found.is_other_damaged),
            (4, false, true)
        );
        // A slot of another data file.
        MetaPages.write(&*file, &Identity { environment: 8, ..identity }, &root(5)).unwrap();
        assert!(matches!(MetaPages.read(&*file, path), Err(Error::Corruption { .. })));
    }
}
