//! Entry points for bytes from outside the process: page images, log segments, meta pages. Not part
//! of the public interface. Used by the fuzz targets of the crate quickbeam-fuzz and by this
//! module's mutation tests.
//!
//! Each entry point decodes the bytes as the engine does and then performs every operation on the
//! accepted content. The bytes may be sealed: they then have valid checksums over invalid content.
//! The properties that must hold: no panic, no endless loop, and accepted content that was not
//! sealed is unchanged.

#[cfg(test)]
mod mutations;

use std::path::Path;
use std::sync::Arc;

use crate::access::btree::try_split;
use crate::access::overflow::{chains_of, decode_pointer};
use crate::checkpoint::MetaPages;
use crate::error::{Damage, Result};
use crate::page::{OVERFLOW, Page, PageKind, Scratch, TOMBSTONE, read_image, write_image};
use crate::vfs::{MemoryVfs, OpenMode, Vfs};
pub use crate::wal::seal_record;
use crate::wal::{LogReader, RecordKind, decode_operations};

/// Reads an image as page number `page`, and performs every operation on it if it is accepted.
/// Returns the bytes of the accepted page, or the description of the damage.
pub fn read_page(image: &[u8], page: u64, choice: u64) -> std::result::Result<Vec<u8>, String> {
    let size = image.len();
    if !size.is_power_of_two() || !(4096..=65536).contains(&size) {
        return Err("not the size of a page".into());
    }
    Scratch::with(size, |scratch| {
        read_image(image, page, scratch).map_err(Damage::into_detail)?;
        let mut bytes = vec![0; size];
        write_image(scratch, scratch.sequence(), &mut bytes);
        if matches!(scratch.kind(), Some(PageKind::Leaf | PageKind::Inner)) {
            read_all(scratch, choice);
            for turn in 0..4 {
                Scratch::with(size, |copy| {
                    copy.copy_from(scratch);
                    change(copy, choice.rotate_left(turn * 16), turn);
                });
            }
        }
        Ok(bytes)
    })
}

/// Reads every record, and searches for every key.
fn read_all(page: Page<'_>, choice: u64) {
    let mut key = Vec::new();
    let mut value = Vec::new();
    for position in 0..page.count() {
        key.clear();
        value.clear();
        page.append_key(position, &mut key);
        // An accepted page is ordered: every key is found at its position.
        assert_eq!(page.search(&key), Ok(position), "a key is not found where it stands");
        assert_eq!(page.search_near(&key, choice as usize % 300), Ok(position));
        assert_eq!(page.search_spread(&key), Ok(position));
        if page.is_leaf() {
            let record = page.record(position);
            page.append_to(record.value_offset, record.value_length, &mut value);
            if record.flags & OVERFLOW != 0 {
                decode_pointer(&value);
            }
        } else {
            page.child_for(&key);
            page.child_before(Some(&key));
        }
    }
    page.child_before(None);
    page.covers(&choice.to_be_bytes());
    page.has_prefix_of(&choice.to_le_bytes());
    page.first_disorder();
    if page.is_leaf() {
        chains_of(page);
    }
}

/// Changes a page in one of the ways in which the engine does.
fn change(page: Page<'_>, choice: u64, way: u32) {
    let count = page.count();
    let at = choice as usize % count.max(1);
    let key = [&page.lower_fence_bytes()[..], &choice.to_be_bytes()].concat();
    let key = &key[..key.len().min(page.size() / 4)];
    let position = page.search(key).unwrap_or_else(|at| at);
    match way {
        0 if page.is_leaf() => {
            let value = vec![7; choice as usize % 900];
            while page.insert_record(position, key, choice, 0, &value) && choice.is_multiple_of(3) {
            }
            if page.count() > 0 {
                page.replace_record(at % page.count(), 0, TOMBSTONE, &value);
            }
        }
        0 => {
            while page.insert_separator(position, key, choice >> 20) && choice.is_multiple_of(3) {}
        }
        1 if count > 0 => {
            page.remove(at);
            page.purge(|version| version.is_multiple_of(2));
            page.remove_dead(|_| true);
        }
        2 if count > 0 => Scratch::with(page.size(), |left| {
            Scratch::with(page.size(), |right| {
                try_split(page, key, left, right);
            });
        }),
        _ => {
            page.used_bytes();
            page.free_bytes();
            page.index_of_child(choice);
        }
    }
}

/// Sets the checksum of a page image.
pub fn seal_page(image: &mut [u8]) {
    if let Some((checksum, rest)) = image.split_first_chunk_mut::<4>() {
        *checksum = crc32c::crc32c(rest).to_le_bytes();
    }
}

/// Returns the page number in an image.
pub fn page_number(image: &[u8]) -> u64 {
    image
        .get(8..)
        .and_then(|bytes| bytes.first_chunk())
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Reads the meta pages at the start of a data file. Returns the sequence of the newest root.
pub fn read_roots(file: &[u8]) -> Result<u64> {
    let vfs = MemoryVfs::new();
    let path = Path::new("data");
    let opened = vfs.open(path, OpenMode::Create);
    let written = opened.and_then(|file_of| file_of.write_at(file, 0).map(|()| file_of));
    let file = written.map_err(|error| crate::Error::io("making a file in memory", error))?;
    MetaPages.read(&*file, path).map(|found| found.root.sequence)
}

/// Sets the checksum of a copy of a root, 128 bytes.
pub fn seal_root(slot: &mut [u8]) {
    if let Some((content, checksum)) = slot.split_last_chunk_mut::<4>() {
        *checksum = crc32c::crc32c(content).to_le_bytes();
    }
}

/// Sets the checksum of a log segment's header.
pub fn seal_segment(segment: &mut [u8]) {
    if let Some((content, rest)) = segment.split_first_chunk_mut::<40>()
        && let Some(checksum) = rest.first_chunk_mut::<4>()
    {
        *checksum = crc32c::crc32c(content).to_le_bytes();
    }
}

/// The records of one log segment: position and payload.
pub type Records = Vec<(u64, Vec<u8>)>;

/// Reads the log in the directory `log` of `vfs` from `start` on. Returns the records up to its
/// end, or up to the first damage.
pub fn read_log(
    vfs: &Arc<dyn Vfs>,
    environment: u64,
    segment_size: u64,
    start: u64,
) -> (Records, Result<()>) {
    let directory = Path::new("log").to_owned();
    let mut reader = LogReader::new(vfs.clone(), directory, environment, segment_size, start, 0);
    let mut records = Records::new();
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                if record.kind == RecordKind::Commit {
                    // Undecodable bytes are an error, never a panic.
                    let _told = decode_operations(&record.payload, |_| Ok::<_, ()>(()));
                }
                records.push((record.lsn, record.payload));
            }
            Ok(None) => return (records, Ok(())),
            Err(error) => return (records, Err(error)),
        }
    }
}
