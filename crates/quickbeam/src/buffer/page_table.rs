//! The page table: maps a page number to its entry with two array accesses and no hashing.
//!
//! Chunks double in size and never move, so entries are found without a lock while the table grows.

use std::sync::OnceLock;

use super::page_entry::PageEntry;
use crate::page::PageId;

const FIRST_CHUNK_BITS: u32 = 10;
const CHUNKS: usize = 30;

/// The entries of all pages.
pub struct PageTable {
    chunks: [OnceLock<Box<[PageEntry]>>; CHUNKS],
}

#[inline]
fn place(page: PageId) -> (usize, usize) {
    let shifted = page + (1 << FIRST_CHUNK_BITS);
    let top = 63 - shifted.leading_zeros();
    ((top - FIRST_CHUNK_BITS) as usize, (shifted - (1 << top)) as usize)
}

impl PageTable {
    pub fn new() -> PageTable {
        PageTable { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// Returns the page's entry, or `None` for a number that was never used.
    #[inline]
    pub fn get(&self, page: PageId) -> Option<&PageEntry> {
        if page >= 1 << 39 {
            return None;
        }
        let (chunk, index) = place(page);
        self.chunks.get(chunk)?.get()?.get(index)
    }

    /// Returns the page's entry, creating it if needed. Returns `None` past the largest possible
    /// number.
    pub fn get_or_create(&self, page: PageId) -> Option<&PageEntry> {
        if page >= 1 << 39 {
            return None;
        }
        let (chunk, index) = place(page);
        let size = 1usize << (chunk as u32 + FIRST_CHUNK_BITS);
        let entries = self
            .chunks
            .get(chunk)?
            .get_or_init(|| std::iter::repeat_with(PageEntry::new).take(size).collect());
        entries.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_table_entries_are_distinct() {
        let mut expected = (0, 0);
        for page in 0..if cfg!(miri) { 5_000 } else { 100_000 } {
            assert_eq!(place(page), expected);
            expected.1 += 1;
            if expected.1 == 1 << (expected.0 + 10) {
                expected = (expected.0 + 1, 0);
            }
        }
        let table = PageTable::new();
        assert!(
            table.get(5).is_none() && table.get_or_create(5).is_some() && table.get(5).is_some()
        );
        assert!(table.get(u64::MAX).is_none() && table.get_or_create(u64::MAX).is_none());
    }
}
