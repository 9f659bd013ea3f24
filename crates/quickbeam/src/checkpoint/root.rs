//! Root slots: two places at the data file's start, written in turn, each saying where a checkpoint is.

use std::path::Path;

use crate::blocks::Location;
use crate::error::{Error, Result};
use crate::options::is_log_segment_size;
use crate::world::File;
use crate::world::hooks::{Canary, planted};

/// Version of the file format that this release writes.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest version that it reads. Nothing has to be changed in what is of an older one: it only lacks what is new.
pub const OLDEST_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"QUICKBM\0";
/// Offsets of the two slots.
const SLOTS: [u64; 2] = [0, 8192];
/// Bytes of a slot.
const LENGTH: usize = 128;

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
    /// The directory's first page.
    pub directory: Location,
}

/// No environment is opened this often; nor does it come to this many roots, commits or bytes of log. A slot that says so
/// is not valid, and nothing that counts on from what a slot says overflows.
pub const INCARNATION_LIMIT: u32 = u32::MAX - (1 << 20);
const COUNT_LIMIT: u64 = 1 << 60;

/// The two slots.
#[derive(Clone, Copy, Debug, Default)]
pub struct RootSlots;

fn encode(identity: &Identity, root: &Root) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&identity.page_size.to_le_bytes());
    bytes[16..24].copy_from_slice(&identity.environment.to_le_bytes());
    bytes[24..32].copy_from_slice(&identity.log_segment_size.to_le_bytes());
    bytes[32] = identity.kind as u8;
    bytes[33] = u8::from(root.clean);
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

/// What a slot's bytes say: nothing, another version, or a root.
enum Slot {
    Nothing,
    Version(u32),
    Valid(Identity, Root),
}

fn decode(bytes: &[u8; LENGTH]) -> Slot {
    if !bytes.starts_with(MAGIC) {
        return Slot::Nothing;
    }
    if u32_at(bytes, LENGTH - 4) != crc32c::crc32c(&bytes[..LENGTH - 4]) {
        return Slot::Nothing;
    }
    if !(OLDEST_VERSION..=FORMAT_VERSION).contains(&u32_at(bytes, 8)) {
        return Slot::Version(u32_at(bytes, 8));
    }
    let page_size = u32_at(bytes, 12);
    let kind = match bytes[32] {
        1 => StoreKind::Transactional,
        2 => StoreKind::Plain,
        _ => return Slot::Nothing,
    };
    if !page_size.is_power_of_two() || !(4096..=65536).contains(&page_size) {
        return Slot::Nothing;
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
        clean: bytes[33] != 0,
        directory: Location(u64_at(bytes, 72)),
    };
    let counts = [root.sequence, root.timestamp, root.log_position, root.log_start];
    if counts.iter().any(|&count| count >= COUNT_LIMIT)
        || root.incarnation > INCARNATION_LIMIT
        || !is_log_segment_size(identity.log_segment_size)
    {
        return Slot::Nothing;
    }
    Slot::Valid(identity, root)
}

impl RootSlots {
    /// Writes the root into the slot whose turn it is, and flushes.
    pub fn write(self, file: &dyn File, identity: &Identity, root: &Root) -> std::io::Result<()> {
        let slot = SLOTS[(root.sequence % 2) as usize];
        file.write_at(&encode(identity, root), slot)?;
        file.sync_data()
    }

    /// Every valid root, the newest first; none where nothing can be read.
    pub fn readable(self, file: &dyn File) -> Vec<(Identity, Root)> {
        let mut roots = Vec::new();
        for slot in SLOTS {
            let mut bytes = [0; LENGTH];
            if file.read_at(&mut bytes, slot).is_ok()
                && let Slot::Valid(identity, root) = decode(&bytes)
            {
                roots.push((identity, root));
            }
        }
        roots.sort_by_key(|(_, root)| std::cmp::Reverse(root.sequence));
        let other_may_be_newer = roots.len() < SLOTS.len();
        for (_, root) in roots.iter_mut().filter(|_| other_may_be_newer) {
            root.clean = false;
        }
        roots
    }

    /// Makes the root that was read durable, with the file's length. What was read may have been in the memory of the
    /// operating system alone, if the process before ended, or a flush of it failed, after the root was written.
    /// Nothing that the root before refers to may be overwritten until then.
    pub fn confirm(self, file: &dyn File, identity: &Identity, root: &Root) -> std::io::Result<()> {
        let slot = SLOTS[(root.sequence % 2) as usize];
        file.write_at(&encode(identity, root), slot)?;
        file.sync_all()
    }

    /// The newest valid root of the data file at `path`.
    pub fn read(self, file: &dyn File, path: &Path) -> Result<(Identity, Root)> {
        let length = file.length().map_err(|error| Error::on_file("reading", path, error))?;
        let mut best: Option<(Identity, Root)> = None;
        let mut version = None;
        let mut valid = 0;
        for slot in SLOTS {
            let mut bytes = [0; LENGTH];
            if slot + LENGTH as u64 > length {
                continue;
            }
            file.read_at(&mut bytes, slot).map_err(|e| Error::on_file("reading", path, e))?;
            match decode(&bytes) {
                Slot::Nothing => {}
                Slot::Version(found) => version = Some(found),
                Slot::Valid(identity, root) => {
                    valid += 1;
                    let newer =
                        |best: &Root| (best.sequence < root.sequence) != planted(Canary::RootStale);
                    if best.as_ref().is_none_or(|(_, best)| newer(best)) {
                        best = Some((identity, root));
                    }
                }
            }
        }
        match (best, version) {
            (Some((identity, mut root)), _) => {
                // The other slot may have held the newer root: what is behind this one has to be looked for.
                root.clean &= valid == SLOTS.len();
                Ok((identity, root))
            }
            (None, Some(found)) => {
                Err(Error::FormatVersion { path: path.into(), found, supported: FORMAT_VERSION })
            }
            (None, None) => Err(Error::Corruption {
                file: path.display().to_string(),
                place: "root slots".into(),
                detail: "neither slot holds a valid root".into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::{MemoryWorld, OpenMode, World};

    #[test]
    fn the_newest_valid_slot_counts_and_damage_falls_back() {
        let world = MemoryWorld::new();
        let path = Path::new("data");
        let file = world.open(path, OpenMode::Create).unwrap();
        file.set_length(65536).unwrap();
        let identity = Identity {
            environment: 9,
            page_size: 8192,
            kind: StoreKind::Transactional,
            log_segment_size: 1 << 20,
        };
        for sequence in 1..4 {
            let root = Root { sequence, timestamp: sequence * 10, ..Root::default() };
            RootSlots.write(&*file, &identity, &root).unwrap();
        }
        assert_eq!(RootSlots.read(&*file, path).unwrap().1.sequence, 3);
        file.write_at(&[1], 8192 + 50).unwrap();
        assert_eq!(RootSlots.read(&*file, path).unwrap().1.sequence, 2);
        file.write_at(&[1], 50).unwrap();
        assert!(matches!(RootSlots.read(&*file, path), Err(Error::Corruption { .. })));
    }
}
