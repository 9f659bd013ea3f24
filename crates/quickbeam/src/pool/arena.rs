//! The frames' memory: one large anonymous mapping, advised for huge pages.
//!
//! This is the engine's one unsafe place: it looks at the mapping as atomic words. Memory that no page has used yet
//! costs nothing: the operating system hands it out when it is first touched.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicU64;

use memmap2::{MmapOptions, MmapRaw};

use crate::error::{Error, Result};
use crate::page::Page;

/// Frames of one page each.
pub struct Arena {
    /// Owns the memory; only `words` below looks at it.
    mapping: MmapRaw,
    page_words: usize,
}

impl Arena {
    /// Memory for `frames` pages.
    pub fn new(frames: usize, page_size: usize) -> Result<Arena> {
        let bytes =
            frames.checked_mul(page_size).ok_or_else(|| Error::misuse("cache_size overflows"))?;
        let mapping = MmapOptions::new()
            .len(bytes)
            .map_anon()
            .map_err(|error| Error::io("reserving memory for the cache", error))?;
        // Huge pages are an optimization: a system that refuses them works as well, only slower. Miri does not know them.
        #[cfg(all(target_os = "linux", not(miri)))]
        let _refused = mapping.advise(memmap2::Advice::HugePage).err();
        Ok(Arena { mapping: mapping.into(), page_words: page_size / 8 })
    }

    fn words(&self) -> &[AtomicU64] {
        let length = self.mapping.len() / 8;
        // SAFETY: the mapping is page-aligned, readable, writable, zero-initialized and lives as long as `self`;
        // any bit pattern is a valid AtomicU64; `mapping` is private and never handed out as bytes, so all
        // access is through these atomics. Exercised by `tests::frames_do_not_overlap` and every engine test.
        unsafe { std::slice::from_raw_parts(self.mapping.as_mut_ptr().cast::<AtomicU64>(), length) }
    }

    /// The page in frame number `frame`; an empty page past the last frame.
    #[inline]
    pub fn page(&self, frame: u32) -> Page<'_> {
        let start = frame as usize * self.page_words;
        Page::new(self.words().get(start..start + self.page_words).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_do_not_overlap() {
        let arena = Arena::new(8, 4096).unwrap();
        for frame in 0..8 {
            for word in 0..512 {
                assert_eq!(arena.page(frame).word(word), 0);
                arena.page(frame).set_word(word, u64::from(frame) << 32 | word as u64);
            }
        }
        for frame in 0..8 {
            for word in 0..512 {
                assert_eq!(arena.page(frame).word(word), u64::from(frame) << 32 | word as u64);
            }
        }
        assert_eq!(arena.page(8).size(), 0);
    }
}
