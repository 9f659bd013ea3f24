//! Eviction: a clock hand visits the frames and evicts pages that were not accessed since its last
//! visit.
//!
//! Above: page loads and the background thread. Below: blocks and the data file.
//!
//! A loaded page gets its reference mark at its second access, so one long scan does not evict
//! frequently used pages. Blocks written here belong to no checkpoint: they are swap space until a
//! checkpoint adopts them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::page_entry::{NO_FRAME, PageEntry, status};
use super::{Pool, with_buffer};
use crate::blocks::{Block, Location};
use crate::error::{Error, Result};
use crate::mvcc::writer_of;
use crate::page::{Page, PageId, defect_of, write_image, write_image_settled};

/// The background thread keeps one frame in `FREE_SHARE` free.
const FREE_SHARE: usize = 64;

/// Bytes of the cache that the background thread populates at a time: one huge page. Otherwise the
/// first thread that accesses it waits two milliseconds.
const READY_STEP: usize = 2 << 20;

/// Bytes that are populated ahead of the frames in use.
const READY_AHEAD: usize = 2 * READY_STEP;

/// Smaller caches are not populated ahead.
const LEAST_CACHE: usize = 16 * READY_AHEAD;

/// How long a thread waits for a frame while all pages are latched.
const FRAME_TIMEOUT: Duration = Duration::from_secs(10);

impl Pool {
    /// Returns a frame that holds no page.
    pub(super) fn allocate_frame(&self) -> Result<u32> {
        let free = {
            let mut frames = self.free_frames.lock();
            let frame = frames.pop();
            if frames.len() < self.frame_pages.len() / FREE_SHARE / 2 && self.has_been_full() {
                self.frames_wanted.notify();
            }
            frame
        };
        if let Some(frame) = free {
            return Ok(frame);
        }
        if !self.has_been_full() {
            let frame = self.frames_touched.fetch_add(1, Ordering::Relaxed);
            if (frame as usize) < self.frame_pages.len() {
                if self.wants_ready(frame as usize) {
                    self.frames_wanted.notify();
                }
                return Ok(frame);
            }
            self.frames_touched.store(self.frame_pages.len() as u32, Ordering::Relaxed);
        }
        self.wait_for_frame()
    }

    /// Evicts a page, waiting while other threads have all pages latched. They latch pages for
    /// single operations, so a page becomes free soon unless the cache is too small for the
    /// threads.
    #[cold]
    fn wait_for_frame(&self) -> Result<u32> {
        let mut waiting_since = None;
        loop {
            if let Some(frame) = self.evict_one()? {
                return Ok(frame);
            }
            if let Some(frame) = self.free_frames.lock().pop() {
                return Ok(frame);
            }
            let now = self.vfs.now();
            if now.saturating_sub(*waiting_since.get_or_insert(now)) > FRAME_TIMEOUT {
                return Err(Error::Limit {
                    what: "every page in the cache is in use; make cache_size larger".into(),
                });
            }
            self.vfs.yield_now();
        }
    }

    /// Returns whether every frame of the cache has held a page since the pool was opened. From
    /// then on a new page evicts another one.
    pub fn has_been_full(&self) -> bool {
        self.frames_touched.load(Ordering::Relaxed) as usize >= self.frame_pages.len()
    }

    /// Returns whether frame number `frame` uses half of the memory that was populated ahead.
    fn wants_ready(&self, frame: usize) -> bool {
        let used = (frame + 1) * self.page_size;
        let cache = self.frame_pages.len() * self.page_size;
        let ready = self.ready.load(Ordering::Relaxed);
        cache >= LEAST_CACHE
            && ready < cache
            && used + READY_AHEAD / 2 >= ready
            && used % READY_STEP < self.page_size
    }

    /// Populates the memory of the next frames. Called by the background thread.
    pub fn make_ready(&self) {
        let touched = self.frames_touched.load(Ordering::Relaxed) as usize * self.page_size;
        let cache = self.frame_pages.len() * self.page_size;
        let end = (touched + READY_AHEAD).min(cache);
        let mut ready = self.ready.load(Ordering::Relaxed).max(touched / READY_STEP * READY_STEP);
        while cache >= LEAST_CACHE && ready + READY_STEP <= end {
            self.arena.populate(ready, READY_STEP);
            ready += READY_STEP;
        }
        self.ready.store(ready, Ordering::Relaxed);
    }

    /// Evicts pages until enough frames are free. Called by the background thread.
    pub fn fill_free_frames(&self) -> Result<()> {
        let wanted = (self.frame_pages.len() / FREE_SHARE).max(1);
        while self.has_been_full() && self.free_frames.lock().len() < wanted {
            match self.evict_one()? {
                Some(frame) => self.free_frames.lock().push(frame),
                None => break,
            }
        }
        Ok(())
    }

    /// Evicts one page and returns its frame. Returns `None` if three rounds found no page that can
    /// be evicted.
    fn evict_one(&self) -> Result<Option<u32>> {
        let frames = self.frame_pages.len();
        let mut full = None;
        for step in 0..frames * 3 {
            let at = self.hand.fetch_add(1, Ordering::Relaxed) % frames;
            let page = self.frame_pages[at].load(Ordering::Relaxed);
            let Some(entry) = self.table.get(page).filter(|_| page != 0) else { continue };
            if entry.referenced.load(Ordering::Relaxed) != 0 {
                entry.referenced.store(0, Ordering::Relaxed);
                continue;
            }
            match self.try_evict(page, entry, at as u32) {
                Ok(Some(frame)) => return Ok(Some(frame)),
                Ok(None) => {}
                // No space for a changed page: an unchanged page can still be evicted.
                Err(error @ Error::DiskFull { .. }) => full = Some(error),
                Err(error) => return Err(error),
            }
            if step % frames == frames - 1 {
                self.vfs.yield_now();
            }
        }
        full.map_or(Ok(None), Err)
    }

    fn try_evict(&self, page: PageId, entry: &PageEntry, frame: u32) -> Result<Option<u32>> {
        let Some(version) = entry.version() else { return Ok(None) };
        if !self.take_latch(entry, version) {
            return Ok(None);
        }
        if entry.frame.load(Ordering::Relaxed) != frame {
            entry.release_unchanged();
            return Ok(None);
        }
        if let Err(error) = self.clean(page, entry, self.arena.page(frame)) {
            entry.release_unchanged();
            return Err(error);
        }
        self.frame_pages[frame as usize].store(0, Ordering::Relaxed);
        entry.frame.store(NO_FRAME, Ordering::Relaxed);
        entry.release_moved();
        self.counters.evictions.fetch_add(1, Ordering::Relaxed);
        Ok(Some(frame))
    }

    /// Writes a latched page, so that it can leave memory.
    fn clean(&self, page: PageId, entry: &PageEntry, content: Page<'_>) -> Result<()> {
        // In this order: a version that is visible to all at this horizon was committed before any
        // epoch that begins after this point.
        let horizon = self.transactions.horizon();
        let epoch = self.epoch.load(Ordering::SeqCst);
        if entry.has(status::CHANGED) && entry.epoch.load(Ordering::Relaxed) < epoch {
            self.write_checkpoint_image(page, entry, Some(content))?;
        }
        if !entry.has(status::DIRTY) {
            return Ok(());
        }
        let old = entry.location();
        // No checkpoint refers to the block of the page's last eviction (POOL-5).
        let reused = (old != Location::NONE && !entry.has(status::OWNED)).then(|| old.block());
        invariant!(
            POOL_3,
            reused.is_none_or(|block| self.blocks.is_used(block)),
            "page {page} is evicted to block {}, which is free",
            old.block()
        );
        let block = reused.unwrap_or_else(|| self.blocks.allocate());
        let mut swapped = false;
        let written = self.write_image_at(content, block, |sequence, image| {
            if !content.is_leaf() || !content.is_versioned() {
                return write_image(content, sequence, image);
            }
            let is_settled = |version| writer_of(version) < horizon;
            let (checksum, is_any_left) = write_image_settled(content, sequence, image, is_settled);
            swapped = is_any_left;
            checksum
        });
        if written.is_err() && reused.is_none() {
            self.blocks.release(block);
        }
        let location = written?;
        invariant!(
            POOL_5,
            entry.has(status::OWNED)
                || entry.location() == Location::NONE
                || entry.location().block() == location.block(),
            "page {page} is evicted to block {}, and has block {}",
            location.block(),
            entry.location().block()
        );
        entry.set_location(location);
        entry.clear(status::DIRTY | status::OWNED | status::SWAPPED);
        if swapped {
            entry.set(status::SWAPPED);
        }
        Ok(())
    }

    /// Writes a page's image to a free block.
    pub fn write_block(&self, page: Page<'_>) -> Result<Location> {
        let block = self.blocks.allocate();
        let written = self.write_block_at(page, block);
        if written.is_err() {
            self.blocks.release(block);
        }
        written
    }

    pub(super) fn write_block_at(&self, page: Page<'_>, block: Block) -> Result<Location> {
        self.write_image_at(page, block, |sequence, image| write_image(page, sequence, image))
    }

    /// Writes the image of a page that `encode` makes with a sequence number; `encode` returns its
    /// checksum.
    fn write_image_at(
        &self,
        page: Page<'_>,
        block: Block,
        encode: impl FnOnce(u64, &mut [u8]) -> u32,
    ) -> Result<Location> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let offset = block * self.page_size as u64;
        self.make_room_for(offset + self.page_size as u64)?;
        self.counters.writes.fetch_add(1, Ordering::Relaxed);
        invariant!(
            IMAGE_1,
            defect_of(page).is_none(),
            "the image of page {} could not be read: {:?}",
            page.page_id(),
            defect_of(page)
        );
        with_buffer(self.page_size, |image| {
            let checksum = encode(sequence, image);
            let written = self.file.write_at(image, offset);
            written.map_err(|error| Error::io("writing to the data file", error))?;
            Ok(Location::new(block, checksum))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, Options};

    /// Every frame is latched; another thread that needs a frame waits until a latch is released.
    #[test]
    fn reader_waits_while_every_cached_page_is_latched() {
        let options = Options { page_size: 4096, cache_size: 64 * 4096, ..Options::default() };
        let environment = Environment::open_in_memory(options).unwrap();
        let database = environment.create_database("records").unwrap();
        for n in 0..3000u32 {
            let put = |t: &crate::Transaction| database.put(t, &n.to_be_bytes(), &[1; 400]);
            environment.transact(put).unwrap();
        }
        let pool = &environment.engine().pool;
        let frames = pool.frame_pages.len();
        let pages = (1..pool.page_count()).filter(|page| pool.is_allocated(*page));
        let pages: Vec<_> = pages.take(frames + 1).collect();
        let (last, latched) = pages.split_last().unwrap();
        let guards: Vec<_> = latched.iter().map(|page| pool.latch(*page).unwrap()).collect();
        assert_eq!(guards.len(), frames);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| pool.read(*last).map(|guard| guard.id));
            // More steps than a single search for a victim makes.
            let start = pool.hand.load(Ordering::Relaxed);
            while pool.hand.load(Ordering::Relaxed) < start + 5 * frames && !reader.is_finished() {
                std::thread::yield_now();
            }
            drop(guards);
            assert_eq!(reader.join().unwrap().unwrap(), *last);
        });
    }
}
