//! Targets that read a single item: a page, a log segment, the meta pages, a dump.

use std::path::Path;
use std::sync::Arc;

use quickbeam::fuzzing::{
    page_number, read_log, read_page, read_roots, seal_page, seal_record, seal_root, seal_segment,
};
use quickbeam::vfs::{MemoryVfs, OpenMode, Vfs};
use quickbeam::{Error, Result};

use crate::dump_format::Reader;

/// Bytes of a segment.
pub const SEGMENT: u64 = 256 << 10;
/// Used bytes of a segment's header, and its full size.
pub const HEADER: usize = 44;
const HEADER_ROOM: usize = 4096;

/// Derives a number from the input, for choices that the input does not contain.
fn number_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Checks that an error names its place.
pub fn assert_names_its_place(error: &Error) {
    match error {
        Error::Corruption(damage) => {
            let place = damage.place.to_string();
            assert!(!damage.file.is_empty() && !place.is_empty() && !damage.detail.is_empty());
        }
        Error::NotAnEnvironment(missing) => {
            assert!(!missing.path.as_os_str().is_empty() && !missing.detail.is_empty());
        }
        other => assert!(other.to_string().len() > 10, "{other:?}"),
    }
}

/// Reads a page image, padded with zeros to the next valid page size.
pub fn page(bytes: &[u8]) {
    let size = bytes.len().clamp(4096, 65_536).next_power_of_two();
    let mut image = bytes[..bytes.len().min(size)].to_vec();
    image.resize(size, 0);
    let choice = number_of(bytes);
    match read_page(&image, page_number(&image), choice) {
        Ok(read) => assert!(read == image, "a page was read as another one"),
        Err(detail) => assert!(!detail.is_empty()),
    }
    seal_page(&mut image);
    if let Err(detail) = read_page(&image, page_number(&image), choice) {
        assert!(!detail.is_empty());
    }
}

/// Reads a log segment: the used part of its header, and its records.
pub fn log(bytes: &[u8]) {
    let (header, records) = bytes.split_at(bytes.len().min(HEADER));
    let mut segment = header.to_vec();
    segment.resize(HEADER_ROOM, 0);
    segment.extend_from_slice(&records[..records.len().min(SEGMENT as usize - HEADER_ROOM)]);
    read_segment(&segment);
    seal_segment(&mut segment);
    let mut at = HEADER_ROOM;
    while let Some(length) = segment.get(at + 8..).and_then(|rest| rest.first_chunk()) {
        let length = u32::from_le_bytes(*length) as usize;
        seal_record(&mut segment[at..]);
        at = at.saturating_add(48).saturating_add(length).next_multiple_of(8);
    }
    read_segment(&segment);
}

fn read_segment(segment: &[u8]) {
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    let path = Path::new("log").join("000000000001.log");
    vfs.open(&path, OpenMode::Create).unwrap().write_at(segment, 0).unwrap();
    let owner = segment[16..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let start = SEGMENT + HEADER_ROOM as u64;
    let (records, end) = read_log(&vfs, owner, SEGMENT, start);
    assert!(records.is_sorted_by(|(one, _), (next, _)| one < next), "positions go back");
    if let Err(error) = end {
        assert_names_its_place(&error);
    }
}

/// Used bytes of a meta page.
pub const SLOT: usize = 128;

/// Reads the two meta pages, one after the other.
pub fn roots(bytes: &[u8]) {
    let mut slots = bytes[..bytes.len().min(2 * SLOT)].to_vec();
    slots.resize(2 * SLOT, 0);
    let read = |slots: &[u8]| -> Result<u64> {
        let mut file = vec![0; 16_384];
        file[..SLOT].copy_from_slice(&slots[..SLOT]);
        file[8192..8192 + SLOT].copy_from_slice(&slots[SLOT..]);
        read_roots(&file).inspect_err(assert_names_its_place)
    };
    let before = read(&slots).ok();
    // First one slot is sealed, then both.
    seal_root(&mut slots[SLOT..]);
    let with_one = read(&slots).ok();
    seal_root(&mut slots[..SLOT]);
    let with_both = read(&slots).ok();
    // Another valid slot can only yield a newer root, or reveal that the two belong to different
    // environments.
    if let (Some(before), Some(after)) = (before, with_one) {
        assert!(after >= before, "root {after} came before root {before}");
    }
    if let (Some(before), Some(after)) = (with_one, with_both) {
        assert!(after >= before, "root {after} came before root {before}");
    }
}

/// Reads a dump as `quickbeam load` does.
pub fn dump(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    let mut read = || -> std::result::Result<u64, String> {
        let told = |error: anyhow::Error| format!("{error:#}");
        let (mut key, mut value, mut items) = (Vec::new(), Vec::new(), 0);
        while let Some(header) = reader.header().map_err(told)? {
            while reader.pair(header.format, &mut key, &mut value).map_err(told)? {
                items += 2;
                assert!(key.len() <= bytes.len() && value.len() <= bytes.len());
            }
        }
        Ok(items)
    };
    match read() {
        Ok(items) => assert!(items <= reader.line(), "more records than lines"),
        Err(told) => assert!(told.contains("line "), "no line is named: {told}"),
    }
}
