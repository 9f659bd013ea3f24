//! Page images: the bytes of a page on disk. They are little-endian words with a CRC32C over all
//! bytes except the first four.
//!
//! - IMAGE-1: an image is accepted only if its checksum, page number and structure are valid.
//!   Searching and reading an accepted page uses no offset outside the page, and its keys are
//!   ordered and within its fences. The structure of an image that this process has written or
//!   accepted before needs no second check.

use super::header::SEQUENCE_OFFSET;
use super::words::Page;
use super::{HASH_BYTES, HEADER_BYTES, PageId, PageKind};
use crate::error::Damage;

/// Bytes of the largest page.
const LARGEST_PAGE: usize = 64 << 10;

/// Encodes the page as an image with that sequence number into `out`, which has the page's length.
/// Returns the checksum.
pub fn write_image(page: Page<'_>, sequence: u64, out: &mut [u8]) -> u32 {
    page.copy_to(0, out);
    seal_image(sequence, out)
}

/// Like [`write_image`], for a versioned leaf. Version words for which `is_settled` returns true
/// are zero in the image. Also returns whether any other version word is left.
pub fn write_image_settled(
    leaf: Page<'_>,
    sequence: u64,
    out: &mut [u8],
    is_settled: impl Fn(u64) -> bool,
) -> (u32, bool) {
    leaf.copy_to(0, out);
    let mut is_any_left = false;
    for position in 0..leaf.count() {
        let offset = leaf.slot(position).offset();
        match leaf.record(position).version {
            0 => {}
            version if is_settled(version) => {
                if let Some(word) = out.get_mut(offset..offset + 8) {
                    word.fill(0);
                }
            }
            _ => is_any_left = true,
        }
    }
    (seal_image(sequence, out), is_any_left)
}

/// Stores sequence number and checksum in the bytes of a page. Returns the checksum.
fn seal_image(sequence: u64, image: &mut [u8]) -> u32 {
    if let Some(word) = image.get_mut(SEQUENCE_OFFSET..SEQUENCE_OFFSET + 8) {
        word.copy_from_slice(&sequence.to_le_bytes());
    }
    let checksum = crc32c::crc32c(image.get(4..).unwrap_or_default());
    if let Some(word) = image.first_chunk_mut::<4>() {
        *word = checksum.to_le_bytes();
    }
    checksum
}

/// Returns the checksum stored in an image.
pub fn image_checksum(image: &[u8]) -> u32 {
    image.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Validates an image and copies it into `page`. The error describes the damage.
pub fn read_image(image: &[u8], expected: PageId, page: Page<'_>) -> Result<(), Damage> {
    read_known_image(image, expected, page)?;
    Ok(validate(page)?)
}

/// Like [`read_image`], for an image whose structure is known to be valid: checks its checksum and
/// page number.
pub fn read_known_image(image: &[u8], expected: PageId, page: Page<'_>) -> Result<(), Damage> {
    let found = image_checksum(image);
    let computed = crc32c::crc32c(image.get(4..).unwrap_or_default());
    if found != computed {
        let detail = format!("checksum is {computed:08x}, the page says {found:08x}");
        return Err(Damage::mismatch(found.into(), computed.into(), detail));
    }
    page.store_bytes(0, image);
    if page.page_id() != expected {
        let detail = format!("the page says it is page {}", page.page_id());
        return Err(Damage::mismatch(expected, page.page_id(), detail));
    }
    Ok(())
}

/// Returns why the image of this page would be refused when it is read (IMAGE-1), if it would.
pub fn defect_of(page: Page<'_>) -> Option<String> {
    validate(page).err()
}

/// Marks the words from `start` to `end` as taken. Returns whether none of them was.
fn claim(taken: &mut [u64], start: usize, end: usize) -> bool {
    let mut free = true;
    let mut at = start;
    while at < end {
        let length = (64 - at % 64).min(end - at);
        let mask = (u64::MAX >> (64 - length)) << (at % 64);
        let Some(marks) = taken.get_mut(at / 64) else { return false };
        free &= *marks & mask == 0;
        *marks |= mask;
        at += length;
    }
    free
}

/// Checks that every offset of the page stays within it (IMAGE-1).
fn validate(page: Page<'_>) -> Result<(), String> {
    match page.kind() {
        Some(PageKind::Leaf | PageKind::Inner) => {}
        Some(PageKind::Overflow) => {
            return if page.payload_length() <= page.size() - HEADER_BYTES {
                Ok(())
            } else {
                Err("an overflow page holds more than a page".into())
            };
        }
        Some(_) => return Ok(()),
        None => return Err("unknown page kind".into()),
    }
    let records_end = page.fence_start();
    if page.is_fenced() {
        let (lower, lower_length) = page.lower_fence();
        let (upper, upper_length) = page.upper_fence();
        // The fences must end at the page's end, so that a page with few records has space for
        // others.
        let ordered = lower >= HEADER_BYTES
            && lower + lower_length.next_multiple_of(8) == upper
            && upper + upper_length.next_multiple_of(8) == page.size()
            && page.prefix_length() <= lower_length
            && (page.is_open_end()
                || page.lower_fence_bytes() < page.upper_fence_bytes().unwrap_or_default());
        if !ordered {
            return Err("the fence keys do not lie within the page".into());
        }
    } else if page.is_leaf() || page.prefix_length() != 0 {
        return Err("a page without fence keys has a prefix or is a leaf".into());
    }
    let heap = page.heap_start();
    if HEADER_BYTES + page.count() * 8 > heap || heap > records_end {
        return Err("slots and records overlap".into());
    }
    let mut live = 0;
    let mut taken = [0u64; LARGEST_PAGE / 8 / 64];
    for position in 0..page.count() {
        let at = page.slot(position).offset();
        let bytes = page.record_bytes(position);
        if at < heap
            || !at.is_multiple_of(8)
            || at + bytes > records_end
            || page.value_overruns(position)
        {
            return Err(format!("record {position} does not lie within the page"));
        }
        // A copy of a leaf's records writes over parts of each: none may have bytes of another.
        if !claim(&mut taken, at / 8, (at + bytes).div_ceil(8)) {
            return Err(format!("record {position} overlaps another one"));
        }
        live += bytes;
    }
    if live != page.live_bytes() {
        return Err(format!("records take {live} bytes, the header says {}", page.live_bytes()));
    }
    let length_at = |position| page.prefix_length() + page.slot(position).suffix_length();
    if page.is_hashed() && (0..page.count()).any(|position| length_at(position) < HASH_BYTES) {
        return Err("a key is too short to begin with a hash value".into());
    }
    if !page.is_ordered() {
        return Err("keys are out of order or outside the fences".into());
    }
    Ok(())
}
