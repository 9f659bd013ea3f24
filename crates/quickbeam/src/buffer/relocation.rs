//! Relocation: a page's image is copied to a lower block, so that the data file can be cut.
//!
//! Above: compaction. Below: blocks and the data file.
//!
//! - MOVE-1: a relocated page keeps its content; the block that the last checkpoint has it in stays
//!   in use until another checkpoint has it elsewhere (BLOCK-1).
//!
//! A relocated page is like one that was evicted after a change: the next checkpoint adopts its new
//! block, and until then a crash finds the old one.

use std::sync::atomic::Ordering;

use super::page_entry::{NO_FRAME, PageEntry, status};
use super::{ChangeGuard, Pool};
use crate::blocks::{Block, Location};
use crate::error::Result;
use crate::failpoints::{Canary, planted};
use crate::page::{PageId, Scratch};

impl Pool {
    /// Returns the pages whose images are in blocks from number `from` on, in order of blocks.
    pub fn pages_behind(&self, from: Block) -> Vec<(Block, PageId)> {
        let behind = |page| {
            let entry = self.table.get(page).filter(|entry| is_behind(entry, from))?;
            Some((entry.location().block(), page))
        };
        let mut pages: Vec<(Block, PageId)> = (1..self.page_count()).filter_map(behind).collect();
        pages.sort_unstable();
        pages
    }

    /// Moves the image of a page in a block from number `from` on to a lower block. Returns whether
    /// it was moved. A page that changed since its image was written is left alone: its next image
    /// is written elsewhere anyway.
    pub fn relocate(&self, _pass: &ChangeGuard, page: PageId, from: Block) -> Result<bool> {
        let entry = self.entry(page)?;
        if !is_behind(entry, from) {
            return Ok(false);
        }
        loop {
            match entry.version() {
                Some(version) if self.take_latch(entry, version) => break,
                _ => self.wait_for_latch(entry),
            }
        }
        let moved = self.relocate_latched(page, entry, from);
        entry.release_unchanged();
        moved
    }

    fn relocate_latched(&self, page: PageId, entry: &PageEntry, from: Block) -> Result<bool> {
        let epoch = self.epoch.load(Ordering::Relaxed);
        let frame = entry.frame.load(Ordering::Relaxed);
        if !is_behind(entry, from) || (frame == NO_FRAME && entry.has(status::SWAPPED)) {
            return Ok(false);
        }
        if entry.epoch.load(Ordering::Relaxed) < epoch && entry.has(status::CHANGED) {
            let content = (frame != NO_FRAME).then(|| self.arena.page(frame));
            self.write_checkpoint_image(page, entry, content)?;
            if !is_behind(entry, from) {
                return Ok(false);
            }
        }
        let old = entry.location();
        let block = self.blocks.allocate();
        let is_lower = block < old.block();
        let written = Scratch::with(self.page_size, |image| match is_lower {
            true => {
                self.read_location(page, old, image)?;
                self.write_block_at(image, block).map(Some)
            }
            false => Ok(None),
        });
        let Ok(Some(new)) = written else {
            self.blocks.release(block);
            return written.map(|_| false);
        };
        if planted(Canary::MovedBlockFreedEarly) {
            entry.clear(status::OWNED);
        }
        let is_swapped = entry.has(status::SWAPPED);
        self.forget_location(entry);
        entry.set_location(new);
        if is_swapped {
            entry.set(status::SWAPPED);
        }
        if entry.epoch.load(Ordering::Relaxed) != epoch || !entry.has(status::CHANGED) {
            self.register_changed(page, entry, epoch);
        }
        invariant!(
            MOVE_1,
            entry.location() != Location::NONE && !entry.has(status::OWNED),
            "page {page} was relocated and could be lost"
        );
        Ok(true)
    }
}

/// Returns whether the page is unchanged since its image was written to a block from number `from`
/// on.
fn is_behind(entry: &PageEntry, from: Block) -> bool {
    let location = entry.location();
    entry.has(status::ALLOCATED)
        && !entry.has(status::DIRTY)
        && location != Location::NONE
        && location.block() >= from
}
