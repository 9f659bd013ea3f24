//! Checkpoints: make the state at one commit timestamp durable without stopping other threads.
//!
//! Above: environment and data store, which decide when. Below: buffer pool (page images), blocks,
//! log.
//!
//! 1. *Epoch begin*: under the closed quiesce latch and the commit lock, fixes timestamp, log
//!    position and unfinished transactions; the previous epoch ends.
//! 2. *Images*: every page changed in the previous epoch gets an image as of its end. The
//!    checkpoint, the first writer of the page, or its eviction writes it
//!    ([`Pool::checkpoint_page`]).
//! 3. *Page map*: the changed chunks of the page map, then the directory, are written to free
//!    blocks.
//! 4. The data file is flushed, then the meta page is written and flushed. Only then are the blocks
//!    of the previous checkpoint free.
//!
//! - CKPT-1: no block that the last durable root refers to is overwritten (BLOCK-1), so a crash at
//!   any point leaves that checkpoint whole.
//! - CKPT-2: a root is written only after every page it refers to, and the log up to its position,
//!   is durable.
//! - CKPT-3: a failed checkpoint leaves the images it wrote to the next one, and the page map
//!   unchanged.
//! - CKPT-4: after a failed flush there is no further checkpoint, because the state of the flushed
//!   data is unknown.
//!
//! Sources: WiredTiger's no-overwrite checkpoints; shadow paging (Lorie 1977).

mod meta_page;
pub mod page_map;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::locks::Mutex;

use crate::access::btree::Tree;
use crate::blocks::{Block, Location};
use crate::buffer::{CheckpointEpoch, Pool};
use crate::error::{Error, IoFailure, Result};
use crate::failpoints::{Canary, Probe, planted, probe};
use crate::mvcc::{ActiveTransactions, Timestamp};
use crate::page::PageId;
use crate::wal::{Log, Lsn, UnusedSegments};

pub use meta_page::{FoundMetaPage, INCARNATION_LIMIT, Identity, MetaPages, Root, StoreKind};
pub use page_map::{PageMap, load_directory};

/// The state that the owner fixes when an epoch begins.
pub struct EpochStart {
    /// Commits up to this timestamp are in the checkpoint.
    pub timestamp: Timestamp,
    /// The log from this position on is not in the checkpoint.
    pub log_position: Lsn,
    /// Recovery must read from this position: fragments of unfinished transactions.
    pub log_start: Lsn,
    /// All trees.
    pub trees: Vec<Tree>,
    /// Overflow chains that no record in the checkpoint points to.
    pub dead_chains: Vec<PageId>,
    /// Unfinished transactions, for [`CheckpointEpoch`].
    pub active: ActiveTransactions,
}

/// The circumstances of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointKind {
    /// Commits may follow.
    Online,
    /// Commits follow at a high rate: log segments are kept for reuse.
    Busy,
    /// No record is appended to the log before the next opening.
    Final,
}

/// Counters for statistics.
#[derive(Default)]
pub struct CheckpointCounters {
    /// Completed checkpoints.
    pub completed: AtomicU64,
    /// A checkpoint is running.
    pub running: AtomicBool,
    /// Pages of the running or last checkpoint, and those that are processed.
    pub pages: AtomicU64,
    /// See `pages`.
    pub pages_done: AtomicU64,
    /// Duration of the last checkpoint in microseconds.
    pub last_us: AtomicU64,
    /// Log position of the last checkpoint.
    pub log_position: AtomicU64,
}

/// The locations that a checkpoint refers to.
pub struct Locations<'a> {
    /// The data file's properties.
    pub identity: &'a Identity,
    /// The checkpoint's root.
    pub root: &'a Root,
    /// Location of each page.
    pub mapping: &'a [Location],
    /// Locations of the page map's own pages, and of the directory's.
    pub chunks: &'a [Location],
    /// See `chunks`.
    pub directory: &'a [Location],
    /// Images kept for the next checkpoint; `None` after a failed flush, when more blocks are in
    /// use than are listed.
    pub carried: Option<&'a Vec<(PageId, Location)>>,
}

struct CheckpointState {
    identity: Identity,
    slots: MetaPages,
    root: Root,
    /// Location of each page in the last durable checkpoint.
    mapping: Vec<Location>,
    /// Locations of the page map's own pages, and of the directory's.
    chunks: Vec<Location>,
    directory: Vec<Location>,
    /// Images of a failed checkpoint.
    carried: Vec<(PageId, Location)>,
    /// Why no checkpoint is possible any more: a flush failed, and the state of the flushed data is
    /// unknown (CKPT-4).
    failure: Option<String>,
}

/// Makes checkpoints of one data file.
pub struct Checkpointer {
    state: Mutex<CheckpointState>,
    /// The next checkpoint moves the parts of the page map in blocks from this number on.
    move_map_from: AtomicU64,
    /// Counters for statistics.
    pub counters: CheckpointCounters,
}

/// Begins an epoch, with page changes quiesced. Returns it, the pages that changed before, and
/// what `fix` found.
fn begin_epoch(
    pool: &Pool,
    fix: impl FnOnce() -> EpochStart,
) -> Result<(Arc<CheckpointEpoch>, Vec<PageId>, EpochStart)> {
    let mut fixed = None;
    let (checkpoint, changed) = pool.close_for(|| {
        let mut start = fix();
        let active = std::mem::take(&mut start.active);
        fixed = Some(start);
        pool.begin_epoch(|number| CheckpointEpoch {
            number,
            active,
            pending: Mutex::default(),
            cancelled: Mutex::default(),
        })
    });
    let Some(fixed) = fixed else {
        return Err(Error::misuse(
            "internal error: the checkpoint epoch began without its state (CKPT-1)",
        ));
    };
    Ok((checkpoint, changed, fixed))
}

impl Checkpointer {
    /// Continues from the checkpoint found when the data file was opened.
    pub fn new(identity: Identity, slots: MetaPages, root: Root, loaded: PageMap) -> Checkpointer {
        let counters = CheckpointCounters::default();
        counters.log_position.store(root.log_position, Ordering::Relaxed);
        let PageMap { mapping, chunks, pages, .. } = loaded;
        let (carried, failure) = (Vec::new(), None);
        let state = CheckpointState {
            identity,
            slots,
            root,
            mapping,
            chunks,
            directory: pages,
            carried,
            failure,
        };
        Checkpointer { state: Mutex::new(state), move_map_from: AtomicU64::new(u64::MAX), counters }
    }

    /// Makes a checkpoint. `fix` runs while page changes are quiesced and holds the commit lock
    /// meanwhile.
    pub fn run(
        &self,
        pool: &Pool,
        log: Option<&Log>,
        incarnation: u32,
        kind: CheckpointKind,
        fix: impl FnOnce() -> EpochStart,
    ) -> Result<()> {
        let mut state = self.state.lock();
        // An earlier checkpoint may have failed while this thread waited for the lock.
        if let Some(reason) = &state.failure {
            return Err(Error::Failed { reason: reason.as_str().into() });
        }
        let started = pool.vfs.now();
        let (checkpoint, changed, fixed) = begin_epoch(pool, fix)?;
        self.counters.running.store(true, Ordering::Relaxed);
        probe(Probe::CheckpointBegins);
        let imaged = self.write_images(pool, &checkpoint, &changed);
        pool.end_epoch(if imaged.is_err() { &changed } else { &[] });
        let mut pending = std::mem::take(&mut state.carried);
        pending.append(&mut checkpoint.pending.lock());
        let root = Root {
            sequence: state.root.sequence + 1,
            timestamp: fixed.timestamp,
            log_position: fixed.log_position,
            log_start: fixed.log_start,
            incarnation,
            clean: kind == CheckpointKind::Final,
            segment_exists: false,
            directory: Location::NONE,
        };
        let result = match imaged {
            Ok(()) => {
                let move_from = self.move_map_from.swap(u64::MAX, Ordering::Relaxed);
                state.install(pool, log, root, &fixed, pending, move_from)
            }
            Err(error) => {
                state.carried = pending;
                Err(error)
            }
        };
        self.counters.running.store(false, Ordering::Relaxed);
        probe(Probe::CheckpointEnds);
        result?;
        let took = pool.vfs.now().saturating_sub(started);
        self.counters.last_us.store(took.as_micros() as u64, Ordering::Relaxed);
        self.counters.log_position.store(fixed.log_position, Ordering::Relaxed);
        self.counters.completed.fetch_add(1, Ordering::Relaxed);
        if let Some(log) = log {
            let segments = match kind {
                CheckpointKind::Busy => UnusedSegments::Keep,
                CheckpointKind::Online | CheckpointKind::Final => UnusedSegments::Remove,
            };
            log.discard_before(fixed.log_start, segments)?;
        }
        pool.shrink_file()
    }

    /// Writes the images of the pages that changed before the epoch began.
    fn write_images(
        &self,
        pool: &Pool,
        checkpoint: &CheckpointEpoch,
        changed: &[PageId],
    ) -> Result<()> {
        self.counters.pages.store(changed.len() as u64, Ordering::Relaxed);
        self.counters.pages_done.store(0, Ordering::Relaxed);
        changed.iter().try_for_each(|&page| {
            self.counters.pages_done.fetch_add(1, Ordering::Relaxed);
            pool.checkpoint_page(checkpoint, page)
        })?;
        checkpoint.cancelled.lock().take().map_or(Ok(()), Err)
    }

    /// Lets the next checkpoint move the parts of the page map in blocks from number `from` on.
    pub fn move_page_map_from(&self, from: Block) {
        self.move_map_from.store(from, Ordering::Relaxed);
    }

    /// Returns whether the last durable root says that the log has no later records.
    pub fn is_clean(&self) -> bool {
        self.state.lock().root.clean
    }

    /// Calls `look` with the locations of the last checkpoint. No checkpoint runs meanwhile, so
    /// `look` may quiesce page changes.
    pub fn inspect<T>(&self, look: impl FnOnce(&Locations<'_>) -> T) -> T {
        let state = self.state.lock();
        look(&Locations {
            identity: &state.identity,
            root: &state.root,
            mapping: &state.mapping,
            chunks: &state.chunks,
            directory: &state.directory,
            carried: state.failure.is_none().then_some(&state.carried),
        })
    }
}

impl CheckpointState {
    /// Steps 3 and 4. On failure, restores the page map and keeps the images (CKPT-3).
    fn install(
        &mut self,
        pool: &Pool,
        log: Option<&Log>,
        root: Root,
        fixed: &EpochStart,
        pending: Vec<(PageId, Location)>,
        move_from: Block,
    ) -> Result<()> {
        let replaced = self.update_page_map(&pending);
        match self.write_meta_page(pool, log, root, fixed, self.touched(pool, &pending, move_from))
        {
            Ok(retired) => {
                let old = replaced.iter().map(|(_, location)| *location);
                for location in old.chain(retired).filter(|location| *location != Location::NONE) {
                    pool.blocks.release(location.block());
                }
                invariant!(
                    CKPT_1,
                    self.has_blocks_of(pool, &pending),
                    "a block of checkpoint {} was released",
                    self.root.sequence
                );
                Ok(())
            }
            Err(error) => {
                for (page, location) in replaced.into_iter().rev() {
                    self.mapping[page as usize] = location;
                }
                self.carried = pending;
                invariant!(
                    CKPT_3,
                    self.carried.iter().all(|(_, image)| {
                        *image == Location::NONE || pool.blocks.is_used(image.block())
                    }),
                    "a failed checkpoint released an image"
                );
                Err(error)
            }
        }
    }

    /// Returns whether the blocks of those pages in the page map are in use.
    fn has_blocks_of(&self, pool: &Pool, pages: &[(PageId, Location)]) -> bool {
        let mut locations = pages.iter().filter_map(|(page, _)| self.mapping.get(*page as usize));
        locations.all(|at| *at == Location::NONE || pool.blocks.is_used(at.block()))
    }

    /// Updates the page map. Returns the replaced entries, in order.
    fn update_page_map(&mut self, pending: &[(PageId, Location)]) -> Vec<(PageId, Location)> {
        let mut replaced = Vec::with_capacity(pending.len());
        for &(page, location) in pending {
            let at = page as usize;
            if self.mapping.len() <= at {
                self.mapping.resize(at + 1, Location::NONE);
            }
            let old = self.mapping[at];
            // A failed checkpoint and the next one may name the same image, which must not be
            // freed.
            if old != location {
                replaced.push((page, old));
                self.mapping[at] = location;
            }
        }
        replaced
    }

    /// Returns the numbers of the page map's parts that the checkpoint writes.
    fn touched(&self, pool: &Pool, pending: &[(PageId, Location)], from: Block) -> BTreeSet<usize> {
        let per_chunk = page_map::entries_per_page(pool.page_size);
        let changed = pending.iter().map(|(page, _)| *page as usize / per_chunk);
        let is_behind = |at: &Location| *at != Location::NONE && at.block() >= from;
        let chunks = self.chunks.iter().enumerate();
        changed.chain(chunks.filter(|(_, at)| is_behind(at)).map(|(chunk, _)| chunk)).collect()
    }

    fn write_meta_page(
        &mut self,
        pool: &Pool,
        log: Option<&Log>,
        mut root: Root,
        fixed: &EpochStart,
        touched: BTreeSet<usize>,
    ) -> Result<Vec<Location>> {
        let mut written = Vec::new();
        let result = self.write_pages(pool, log, &mut root, fixed, &touched, &mut written);
        match result {
            Ok((chunks, directory)) => {
                invariant!(
                    CKPT_2,
                    log.is_none_or(|log| log.written() >= root.log_position),
                    "the log before position {} is not written",
                    root.log_position
                );
                // If this fails, the next opening may or may not find the root: the blocks it
                // refers to stay in use.
                if let Err(error) = self.sync_and_write_meta_page(pool, &root) {
                    self.failure = Some(error.to_string());
                    if let Some(log) = log {
                        log.fail(&error);
                    }
                    return Err(error);
                }
                let mut retired = std::mem::replace(&mut self.directory, directory);
                let old = std::mem::replace(&mut self.chunks, chunks);
                retired.extend(touched.iter().filter_map(|&at| old.get(at).copied()));
                self.root = root;
                Ok(retired)
            }
            Err(error) => {
                for location in written {
                    pool.blocks.release(location.block());
                }
                Err(error)
            }
        }
    }

    fn write_pages(
        &self,
        pool: &Pool,
        log: Option<&Log>,
        root: &mut Root,
        fixed: &EpochStart,
        touched: &BTreeSet<usize>,
        written: &mut Vec<Location>,
    ) -> Result<(Vec<Location>, Vec<Location>)> {
        let mut chunks = self.chunks.clone();
        for &chunk in touched {
            let location = page_map::write_chunk(pool, &self.mapping, chunk)?;
            written.push(location);
            if chunks.len() <= chunk {
                chunks.resize(chunk + 1, Location::NONE);
            }
            chunks[chunk] = location;
        }
        let pages =
            page_map::write_directory(pool, &chunks, &fixed.trees, &fixed.dead_chains, written)?;
        root.directory = pages.first().copied().unwrap_or(Location::NONE);
        if let Some(log) = log {
            if fixed.log_start < fixed.log_position {
                // Fragments of open transactions: recovery reads them with the records after the
                // epoch's beginning.
                log.flush_to(fixed.log_position)?;
            } else {
                // The images contain all earlier commits. Only the segment in which recovery begins
                // must exist.
                log.write_to(fixed.log_position)?;
            }
            root.segment_exists = log.ensure_segment(fixed.log_start)?;
        }
        Ok((chunks, pages))
    }

    /// Makes the written pages durable, then the root that refers to them. After a failure no
    /// commit may be acknowledged.
    fn sync_and_write_meta_page(&self, pool: &Pool, root: &Root) -> Result<()> {
        invariant!(CKPT_4, self.failure.is_none(), "a checkpoint follows a failed flush");
        invariant!(
            ROOT_1,
            root.sequence == self.root.sequence + 1,
            "checkpoint {} follows checkpoint {}",
            root.sequence,
            self.root.sequence
        );
        // Never `DiskFull`: the data to be flushed is lost, and a retry would not restore it.
        let failed = |action: &str| {
            let action = action.to_owned();
            move |source| Error::Io(Box::new(IoFailure { action, source }))
        };
        let synced = if planted(Canary::DataNotFlushed) {
            Ok(())
        } else if pool.file_reserve.take_grown() {
            pool.file.sync_all()
        } else {
            pool.file.sync_data()
        };
        synced.map_err(failed("flushing the data file"))?;
        let written = self.slots.write(&*pool.file, &self.identity, root);
        written.map_err(failed("writing the meta page"))
    }
}
