//! Pages: fixed runs of words that readers may look at while a writer changes them.
//!
//! Above: the buffer pool (which owns the memory) and the access methods (which keep records in it).
//!
//! A page is a slice of atomic words, read and written with relaxed ordering. A reader that races a writer reads
//! nonsense but never undefined behaviour; the latch version in the pool tells it to try again. Therefore:
//!
//! - PAGE-1: no function here panics or loops without end on any content: offsets are checked on every load.
//! - PAGE-2: what was read from a page may be *used* only after its latch version was validated.
//! - PAGE-3: only the holder of the exclusive latch writes.
//!
//! Byte layout: see `docs/format.md`. Sources: slotted pages with key heads, fence keys and prefix truncation as in
//! Graefe, "Modern B-Tree Techniques" (2011), and LeanStore.

mod build;
mod header;
mod image;
mod record;
mod search;
mod words;

pub use build::shortest_separator;
pub use header::{HEADER_BYTES, PageKind, common_prefix, compare_keys};
pub use image::{image_checksum, read_image, write_image};
pub use record::{RecordRef, inline_limit, key_limit};
pub use words::{Page, Scratch};

/// IntField of a page: its name for life, wherever it is stored. Zero is no page.
pub type PageId = u64;

/// Bytes of the hash value that each key of a hashed leaf begins with.
pub const HASH_BYTES: usize = 4;
/// Bits of a slot: the record's value is a pointer to overflow pages.
pub const OVERFLOW: u8 = 1;
/// Bits of a slot: the record is deleted; it stays while a snapshot may still see what it was.
pub const TOMBSTONE: u8 = 2;
