//! Pages: fixed arrays of words that readers may read while a writer changes them.
//!
//! Above: the buffer pool, which owns the memory, and the access methods, which store records in
//! pages.
//!
//! A page is a slice of atomic words, read and written with relaxed ordering. A reader that races a
//! writer may read inconsistent values, but this is never undefined behavior; the latch version in
//! the pool makes the reader retry. Therefore:
//!
//! - PAGE-1: no function here panics or loops without end on any content: only `words.rs` accesses
//!   the words, and it checks every offset. (by type)
//! - PAGE-2: every change of a page's content gives its latch a greater version. Values read from a
//!   page may be *used* only after that version was validated.
//! - PAGE-3: only the holder of the exclusive latch writes.
//!
//! Byte layout: see `docs/format.md`. Sources: slotted pages with key heads, fence keys and prefix
//! truncation as in Graefe, "Modern B-Tree Techniques" (2011), and LeanStore.

mod batch;
mod build;
mod header;
mod image;
mod record;
mod search;
mod words;

pub use batch::RecordBatch;
pub use build::shortest_separator;
pub use header::{HEADER_BYTES, PageKind, common_prefix, compare_keys};
pub use image::{
    defect_of, image_checksum, read_image, read_known_image, write_image, write_image_settled,
};
pub use record::{RecordRef, fits_in_leaf, key_limit};
pub use words::{Page, Scratch};

/// Number of a page, which never changes wherever the page is stored. Zero means no page.
pub type PageId = u64;

/// Bytes of the hash value at the start of each key in a hashed leaf.
pub const HASH_BYTES: usize = 4;
/// Slot flag: the record's value is a pointer to an overflow chain.
pub const OVERFLOW: u8 = 1;
/// Slot flag: the record is deleted. It stays while a snapshot may need an older version.
pub const TOMBSTONE: u8 = 2;
