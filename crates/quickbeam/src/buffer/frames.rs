//! The memory of all frames: one large anonymous mapping, advised for huge pages.
//!
//! Memory that no page has used costs nothing: the operating system allocates it at the first
//! access.

use crate::error::{Error, Result};
use crate::page::Page;
use crate::vfs::mapping::Mapping;

/// The frames, each of one page.
pub struct Arena {
    memory: Mapping,
    page_words: usize,
}

impl Arena {
    /// Reserves memory for `frames` pages.
    pub fn new(frames: usize, page_size: usize) -> Result<Arena> {
        let bytes =
            frames.checked_mul(page_size).ok_or_else(|| Error::misuse("cache_size overflows"))?;
        let memory = Mapping::anonymous(bytes)
            .map_err(|error| Error::io("reserving memory for the cache", error))?;
        // Huge pages are an optimization, so a refusal is ignored. Miri does not support the call.
        #[cfg(all(target_os = "linux", not(miri)))]
        let _refused = memory.advise(memmap2::Advice::HugePage).err();
        Ok(Arena { memory, page_words: page_size / 8 })
    }

    /// Populates `bytes` of memory from the byte `from` on. A failure is ignored: that memory is
    /// then allocated at the first access.
    pub fn populate(&self, from: usize, bytes: usize) {
        let _refused = self.memory.populate(from, bytes).err();
    }

    /// Returns the page in frame number `frame`, or an empty page past the last frame.
    #[inline]
    pub fn page(&self, frame: u32) -> Page<'_> {
        let start = frame as usize * self.page_words;
        Page::new(self.memory.words().get(start..start + self.page_words).unwrap_or_default())
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
