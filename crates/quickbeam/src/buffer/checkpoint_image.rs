//! Checkpoint images: the content of a page as of the beginning of the checkpoint's epoch, without
//! the changes that were uncommitted then.
//!
//! Above: the checkpoint, and page changes and evictions that precede it. Below: undo entries,
//! blocks and the data file.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::page_entry::{NO_FRAME, PageEntry, status};
use super::{CheckpointEpoch, Pool};
use crate::blocks::Location;
use crate::error::{Error, Result};
use crate::mvcc::{Resolved, writer_of};
use crate::page::{Page, PageId, Scratch, TOMBSTONE};

/// How an image relates to the page that it was taken from.
struct Imaged {
    location: Location,
    /// The image omits uncommitted changes: the next checkpoint must take the page again.
    partial: bool,
    /// Some version word in the page may still matter to a snapshot (POOL-4).
    versions_matter: bool,
}

impl Pool {
    /// Begins a new epoch and fixes the state of its checkpoint. The caller has quiesced page
    /// changes, and no commit is in progress.
    pub fn begin_epoch(
        &self,
        make: impl FnOnce(u32) -> CheckpointEpoch,
    ) -> (Arc<CheckpointEpoch>, Vec<PageId>) {
        let epoch = self.epoch.load(Ordering::SeqCst);
        let checkpoint = Arc::new(make(epoch));
        // Evictions continue meanwhile. A thread that sees the new epoch must find this state, and
        // the pages that it registers belong to the next checkpoint.
        *self.running_checkpoint.write() = Some(checkpoint.clone());
        let changed = std::mem::take(&mut *self.changed.lock());
        self.epoch.store(epoch + 1, Ordering::SeqCst);
        (checkpoint, changed)
    }

    /// Ends the checkpoint. The pages in `left`, which it did not process, belong to the next one.
    pub fn end_epoch(&self, left: &[PageId]) {
        *self.running_checkpoint.write() = None;
        self.changed.lock().extend_from_slice(left);
    }

    /// Writes the checkpoint image of a page that changed before the epoch began, unless a writer
    /// or an eviction has written it.
    pub fn checkpoint_page(&self, checkpoint: &CheckpointEpoch, page: PageId) -> Result<()> {
        let entry = self.entry(page)?;
        loop {
            let Some(version) = entry.version() else {
                self.wait_for_latch(entry);
                continue;
            };
            let swapped_out = entry.frame.load(Ordering::Relaxed) == NO_FRAME
                && entry.has(status::ALLOCATED | status::SWAPPED);
            if swapped_out {
                self.load(page, entry, version)?;
                continue;
            }
            if !self.take_latch(entry, version) {
                continue;
            }
            let mine = entry.has(status::CHANGED)
                && entry.epoch.load(Ordering::Relaxed) <= checkpoint.number;
            let frame = entry.frame.load(Ordering::Relaxed);
            if mine && frame == NO_FRAME && entry.has(status::ALLOCATED | status::SWAPPED) {
                entry.release_unchanged();
                continue;
            }
            let content = (frame != NO_FRAME).then(|| self.arena.page(frame));
            let done =
                if mine { self.write_checkpoint_image(page, entry, content) } else { Ok(()) };
            entry.release_unchanged();
            return done;
        }
    }

    /// Records where the running checkpoint finds a latched page. Writes an image unless the page's
    /// image on disk can be used.
    pub(super) fn write_checkpoint_image(
        &self,
        page: PageId,
        entry: &PageEntry,
        content: Option<Page<'_>>,
    ) -> Result<()> {
        let Some(checkpoint) = self.running_checkpoint.read().clone() else {
            // The checkpoint failed: the page belongs to the next one.
            let epoch = self.epoch.load(Ordering::Relaxed);
            self.register_changed(page, entry, epoch);
            return Ok(());
        };
        let epoch = checkpoint.number + 1;
        if !entry.has(status::ALLOCATED) {
            checkpoint.pending.lock().push((page, Location::NONE));
            entry.epoch.store(epoch, Ordering::Relaxed);
            entry.clear(status::CHANGED);
            return Ok(());
        }
        let location = entry.location();
        if !entry.has(status::DIRTY) && !entry.has(status::SWAPPED) && location != Location::NONE {
            checkpoint.pending.lock().push((page, location));
            entry.set(status::OWNED);
            entry.epoch.store(epoch, Ordering::Relaxed);
            entry.clear(status::CHANGED);
            return Ok(());
        }
        let content = content.ok_or_else(|| {
            Error::page(page, "an allocated page has neither a frame nor a swapped copy")
        })?;
        let written = Scratch::with(self.page_size, |copy| {
            copy.copy_from(content);
            self.write_as_of(&checkpoint, copy)
        });
        let imaged = match written {
            Ok(imaged) => imaged,
            Err(error) => {
                // The checkpoint fails with this error. The page change continues: it may be part
                // of work that must not stop halfway, such as rolling back or freeing a tree.
                *checkpoint.cancelled.lock() = Some(error);
                *self.running_checkpoint.write() = None;
                self.register_changed(page, entry, epoch);
                return Ok(());
            }
        };
        checkpoint.pending.lock().push((page, imaged.location));
        entry.epoch.store(epoch, Ordering::Relaxed);
        if imaged.partial {
            self.register_changed(page, entry, epoch);
        } else {
            entry.clear(status::CHANGED);
            if !imaged.versions_matter {
                invariant!(
                    POOL_4,
                    self.is_all_visible(content),
                    "the image of page {page} hides versions"
                );
                self.forget_location(entry);
                entry.set_location(imaged.location);
                entry.set(status::OWNED);
                entry.clear(status::DIRTY);
            }
        }
        Ok(())
    }

    /// Reverts the copy of a page to its content as of the epoch's beginning, and writes it.
    fn write_as_of(&self, checkpoint: &CheckpointEpoch, copy: Page<'_>) -> Result<Imaged> {
        let mut partial = false;
        let mut versions_matter = false;
        if copy.is_leaf() && copy.is_versioned() {
            let mut value = Vec::new();
            for position in (0..copy.count()).rev() {
                let record = copy.record(position);
                if record.version == 0 {
                    continue;
                }
                versions_matter |= !self.transactions.is_visible_to_all(record.version);
                value.clear();
                let resolved =
                    self.transactions.resolve_with(record.version, 0, &mut value, |_, id| {
                        checkpoint.active.get(&id).cloned()
                    })?;
                partial |= resolved != Resolved::InPage;
                self.set_resolved(copy, position, resolved, &value)?;
            }
        }
        Ok(Imaged { location: self.write_block(copy)?, partial, versions_matter })
    }

    /// Returns whether every version word in the page is visible to all.
    fn is_all_visible(&self, page: Page<'_>) -> bool {
        let versions = (0..page.count()).map(|position| page.record(position).version);
        !page.is_leaf()
            || !page.is_versioned()
            || versions.into_iter().all(|version| self.transactions.is_visible_to_all(version))
    }

    fn set_resolved(
        &self,
        copy: Page<'_>,
        position: usize,
        resolved: Resolved,
        value: &[u8],
    ) -> Result<()> {
        let flags = copy.record(position).flags;
        match resolved {
            Resolved::InPage if flags & TOMBSTONE != 0 => copy.remove(position),
            Resolved::InPage => copy.set_version(position, 0),
            Resolved::Absent => copy.remove(position),
            Resolved::Older { flags } if flags & TOMBSTONE != 0 => copy.remove(position),
            Resolved::Older { flags } => {
                if !copy.replace_record(position, 0, flags, value) {
                    return Err(Error::page(
                        copy.page_id(),
                        "no room for what a record was before",
                    ));
                }
            }
            Resolved::Hidden { .. } | Resolved::Again => {
                let id = writer_of(copy.record(position).version);
                return Err(Error::page(copy.page_id(), format!("writer {id} lost an undo entry")));
            }
        }
        Ok(())
    }
}
