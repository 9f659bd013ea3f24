//! The block allocator of the data file: tracks the blocks in use and allocates one for each page
//! image.
//!
//! Above: the buffer pool and the checkpoint. Below: the data file. A block has a number and the
//! size of a page. The first blocks hold the meta pages and are never allocated.
//!
//! - BLOCK-1: a block that the last completed checkpoint refers to is not allocated again before a
//!   later checkpoint has completed without it.
//!
//! The free set is not stored: after opening, every block that the page map does not refer to is
//! free.

use crate::sync::locks::Mutex;

/// Number of a block: its offset in the data file divided by the page size.
pub type Block = u64;

/// Bytes at the file's start that are reserved for the meta pages.
pub const RESERVED_BYTES: u64 = 64 << 10;

/// Location of a page image: block number in the low 40 bits, 24 bits of the image's checksum
/// above. Zero means no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Location(pub u64);

impl Location {
    /// No image.
    pub const NONE: Location = Location(0);

    /// Creates the location of an image with that checksum.
    pub fn new(block: Block, checksum: u32) -> Location {
        Location(block | u64::from(checksum & 0xff_ffff) << 40)
    }

    /// Returns the block.
    pub fn block(self) -> Block {
        self.0 & ((1 << 40) - 1)
    }

    /// Returns whether an image with that checksum belongs to this location.
    pub fn matches(self, checksum: u32) -> bool {
        self.0 >> 40 == u64::from(checksum & 0xff_ffff)
    }
}

struct Free {
    /// A set bit marks a block in use.
    used: Vec<u64>,
    /// No word before this one has a clear bit.
    hint: usize,
    in_use: u64,
}

/// Allocates and releases blocks.
pub struct BlockAllocator {
    free: Mutex<Free>,
    first: Block,
}

impl BlockAllocator {
    /// Creates an allocator in which only the reserved blocks are in use.
    pub fn new(page_size: usize) -> BlockAllocator {
        let first = RESERVED_BYTES / page_size as u64;
        let free = Free { used: Vec::new(), hint: 0, in_use: 0 };
        let allocator = BlockAllocator { free: Mutex::new(free), first };
        for block in 0..first {
            allocator.mark(block);
        }
        allocator
    }

    /// Marks a block as in use. Returns false if it already was.
    pub fn mark(&self, block: Block) -> bool {
        let mut free = self.free.lock();
        let (word, bit) = (block as usize / 64, block % 64);
        if free.used.len() <= word {
            free.used.resize(word + 1, 0);
        }
        let new = free.used[word] & (1 << bit) == 0;
        if new {
            free.used[word] |= 1 << bit;
            free.in_use += 1;
        }
        new
    }

    /// Returns whether the block is in use.
    pub fn is_used(&self, block: Block) -> bool {
        let word = self.free.lock().used.get(block as usize / 64).copied();
        word.is_some_and(|bits| bits & 1 << (block % 64) != 0)
    }

    /// Allocates the lowest free block.
    pub fn allocate(&self) -> Block {
        let mut free = self.free.lock();
        let mut word = free.hint;
        while free.used.get(word).is_some_and(|&bits| bits == u64::MAX) {
            word += 1;
        }
        free.hint = word;
        if free.used.len() <= word {
            free.used.push(0);
        }
        let bit = u64::from(free.used[word].trailing_ones());
        free.used[word] |= 1 << bit;
        free.in_use += 1;
        word as u64 * 64 + bit
    }

    /// Releases a block.
    pub fn release(&self, block: Block) {
        invariant!(BLOCK_1, block >= self.first, "block {block} of the meta pages was released");
        let mut free = self.free.lock();
        let (word, bit) = (block as usize / 64, block % 64);
        let Some(bits) = free.used.get_mut(word) else { return };
        invariant!(BLOCK_1, *bits & (1 << bit) != 0, "block {block} was released twice");
        *bits &= !(1 << bit);
        free.in_use -= 1;
        free.hint = free.hint.min(word);
    }

    /// Returns the number of blocks in use, the reserved ones included.
    pub fn in_use(&self) -> u64 {
        self.free.lock().in_use
    }

    /// Returns the number of blocks in use without the reserved ones.
    pub fn in_use_for_images(&self) -> u64 {
        self.in_use() - self.first
    }

    /// Calls `work` with one more than the last block in use; no block is allocated meanwhile.
    pub fn at_used_end<T>(&self, work: impl FnOnce(Block) -> T) -> T {
        let mut free = self.free.lock();
        while free.used.last() == Some(&0) {
            free.used.pop();
        }
        let words = free.used.len() as u64;
        let end = free.used.last().map_or(0, |bits| words * 64 - u64::from(bits.leading_zeros()));
        free.hint = free.hint.min(free.used.len());
        work(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocator_returns_the_lowest_free_block_once() {
        let blocks = BlockAllocator::new(4096);
        let got: Vec<Block> = (0..200).map(|_| blocks.allocate()).collect();
        assert_eq!(got, (16..216).collect::<Vec<_>>());
        blocks.release(20);
        blocks.release(18);
        assert_eq!([blocks.allocate(), blocks.allocate(), blocks.allocate()], [18, 20, 216]);
        blocks.release(216);
        assert_eq!(blocks.at_used_end(|end| end), 216);
        assert_eq!(blocks.allocate(), 216);
    }

    #[test]
    fn location_keeps_block_and_checksum() {
        let location = Location::new(123_456_789, 0xdead_beef);
        assert_eq!(location.block(), 123_456_789);
        assert!(location.matches(0xdead_beef) && !location.matches(0xdead_bee0));
    }
}
