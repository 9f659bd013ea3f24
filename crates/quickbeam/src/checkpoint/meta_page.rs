//! Meta pages: two slots at the data file's start, written alternately. Each names a checkpoint by
//! its root.
//!
//! Above: the checkpoint, recovery and salvage. Below: the data file.
//!
//! A slot holds its root twice, in two sectors. A torn write leaves at least one copy whole: the
//! new root or the previous one. So a slot without a whole copy is damaged, not torn.
//!
//! - ROOT-1: a root counts only in the slot of its sequence, and next to a root of a neighboring
//!   sequence.

use std::path::Path;

use crate::blocks::Location;
use crate::error::{Damage, DamagedPlace, Error, ForeignFormat, Result};
use crate::failpoints::{Canary, planted};
use crate::options::is_log_segment_size;
use crate::vfs::File;

/// Version of the file format that this release writes.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest version that it reads. Files of older versions need no conversion: they only lack
/// newer features.
pub const OLDEST_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"QUICKBM\0";
/// Offsets of the two slots.
const SLOTS: [u64; 2] = [0, 8192];
/// Bytes of a root.
const LENGTH: usize = 128;
/// Offset of the root's second copy in a slot.
const SECOND_COPY: usize = 4096;
/// Bytes of a slot that are written.
const SLOT: usize = SECOND_COPY + LENGTH;
/// Flags of a root.
const CLEAN: u8 = 1;
const SEGMENT_EXISTS: u8 = 2;

/// The product that created the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// Transactional Data Store.
    Transactional = 1,
    /// Data Store.
    Plain = 2,
}

/// The properties of a data file that never change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// A random identifier, which the log segments repeat.
    pub environment: u64,
    /// Bytes in a page.
    pub page_size: u32,
    /// The product that created the file.
    pub kind: StoreKind,
    /// Bytes in a log segment.
    pub log_segment_size: u64,
}

/// The root of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Root {
    /// Grows by one with each checkpoint; the highest valid root counts.
    pub sequence: u64,
    /// The newest commit in the checkpoint.
    pub timestamp: u64,
    /// Log records from this position on are not in the checkpoint.
    pub log_position: u64,
    /// Recovery begins to read here.
    pub log_start: u64,
    /// Grows with each opening.
    pub incarnation: u32,
    /// The environment was closed after this checkpoint: the log has no later records.
    pub clean: bool,
    /// The log segment in which recovery starts existed durably before the root: if it is missing,
    /// it was lost.
    pub segment_exists: bool,
    /// The first page of the page map's directory.
    pub directory: Location,
}

/// Larger incarnations, sequences, timestamps and log positions never occur in practice. A slot
/// that contains one is invalid, so values computed from a valid slot cannot overflow.
pub const INCARNATION_LIMIT: u32 = u32::MAX - (1 << 20);
const COUNT_LIMIT: u64 = 1 << 60;

/// The two meta pages.
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

/// The decoded content of a copy or of a slot: nothing valid, another version, or a root.
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

/// The content of one slot.
struct ReadSlot {
    slot: MetaSlot,
    /// The slot holds no root, and a torn write does not explain that.
    is_damaged: bool,
    /// Nothing was ever written to it.
    is_blank: bool,
}

/// Reads slot `place`. Bytes after the end of the file count as zeros.
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
            // A later version wrote this slot, perhaps only one of the copies.
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
    // Earlier releases wrote the first copy only: there, a torn write leaves no whole copy.
    let may_be_torn = !is_blank(&bytes[..LENGTH]) && is_blank(&bytes[SECOND_COPY..]);
    let is_damaged = matches!(slot, MetaSlot::Nothing) && !may_be_torn;
    Ok(ReadSlot { slot, is_damaged, is_blank: is_blank(&bytes) })
}

/// The root that counts.
pub struct FoundMetaPage {
    /// The properties of the data file.
    pub identity: Identity,
    /// The newest valid root. Its clean flag is cleared if there may have been a newer root.
    pub root: Root,
    /// There may have been a newer root.
    pub is_doubtful: bool,
    /// The other slot is certainly damaged, so a newer root may be lost.
    pub is_other_damaged: bool,
}

impl MetaPages {
    /// Writes the root to the slot of its sequence, and flushes.
    pub fn write(self, file: &dyn File, identity: &Identity, root: &Root) -> std::io::Result<()> {
        self.put(file, identity, root)?;
        file.sync_data()
    }

    /// Makes the root that was read durable, with the file's length. The root may be in the
    /// operating system's memory only: the previous process may have ended, or a flush failed,
    /// after the root was written. Until then no block of the previous root may be overwritten.
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

    /// Returns every valid root, the newest first. Unreadable slots are skipped.
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

    /// Returns the newest valid root of the data file at `path`.
    pub fn read(self, file: &dyn File, path: &Path) -> Result<FoundMetaPage> {
        let read =
            |place| read_slot(file, place).map_err(|error| Error::on_file("reading", path, error));
        let damage = |detail: &str| {
            Damage::from(detail).at(path.display().to_string(), DamagedPlace::MetaPages)
        };
        let [even, odd] = [read(0)?, read(1)?];
        let other_damaged = even.is_damaged || odd.is_damaged;
        let other_blank = even.is_blank || odd.is_blank;
        let (identity, mut root, is_alone, is_other_damaged) = match (even.slot, odd.slot) {
            (MetaSlot::Valid(identity, root), MetaSlot::Valid(other_identity, other)) => {
                if identity != other_identity {
                    return Err(damage("the two meta pages are of different data files"));
                }
                let newer = (root.sequence > other.sequence) != planted(Canary::RootStale);
                let is_apart = root.sequence.abs_diff(other.sequence) != 1;
                (identity, if newer { root } else { other }, is_apart, is_apart)
            }
            (MetaSlot::Version(found), _) | (_, MetaSlot::Version(found)) => {
                let (path, supported) = (path.into(), FORMAT_VERSION);
                return Err(Error::FormatVersion(Box::new(ForeignFormat {
                    path,
                    found,
                    supported,
                })));
            }
            (MetaSlot::Valid(identity, root), _) | (_, MetaSlot::Valid(identity, root)) => {
                // The first root of a new file has no root next to it.
                let is_new = root.sequence == 1 && other_blank;
                (identity, root, true, other_damaged && !is_new)
            }
            (MetaSlot::Nothing, MetaSlot::Nothing) => {
                return Err(damage("neither of them is valid"));
            }
        };
        // The other slot may have held the newer root, so the log after this root must be searched.
        root.clean &= !is_alone;
        Ok(FoundMetaPage { identity, root, is_doubtful: is_alone, is_other_damaged })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::vfs::{File, MemoryVfs, OpenMode, Vfs};

    /// Creates a data file without a root.
    fn new_file(path: &Path, kind: StoreKind) -> (Arc<dyn File>, Identity) {
        let file = MemoryVfs::new().open(path, OpenMode::Create).unwrap();
        file.set_length(65536).unwrap();
        (file, Identity { environment: 9, page_size: 8192, kind, log_segment_size: 1 << 20 })
    }

    #[test]
    fn newest_valid_meta_page_wins() {
        let path = Path::new("data");
        let (file, identity) = new_file(path, StoreKind::Transactional);
        for sequence in 1..4 {
            let root = Root { sequence, timestamp: sequence * 10, ..Root::default() };
            MetaPages.write(&*file, &identity, &root).unwrap();
        }
        let read = || MetaPages.read(&*file, path);
        let found = read().unwrap();
        assert_eq!((found.root.sequence, found.is_doubtful), (3, false));
        // One copy replaces the other.
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

    /// Every prefix of a root's write, over an older root or over zeros.
    #[test]
    fn incomplete_meta_page_write_is_no_damage() {
        let path = Path::new("data");
        let (file, identity) = new_file(path, StoreKind::Plain);
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
    fn root_in_the_wrong_meta_page_is_ignored() {
        let path = Path::new("data");
        let (file, identity) = new_file(path, StoreKind::Transactional);
        let root = |sequence| Root { sequence, clean: true, ..Root::default() };
        for sequence in [4, 5] {
            MetaPages.write(&*file, &identity, &root(sequence)).unwrap();
        }
        assert!(MetaPages.read(&*file, path).unwrap().root.clean);
        // The even root is in the odd slot, too.
        let mut slot = vec![0; SLOT];
        file.read_at(&mut slot, 0).unwrap();
        file.write_at(&slot, 8192).unwrap();
        let found = MetaPages.read(&*file, path).unwrap();
        assert_eq!(
            (found.root.sequence, found.root.clean, found.is_other_damaged),
            (4, false, true)
        );
        // A slot that kept an older root.
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
