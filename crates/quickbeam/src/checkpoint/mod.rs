//! Checkpoints: making the state at one commit timestamp durable without stopping anybody.
//!
//! Above: environment and data store, which decide when. Below: pool (page images), blocks, log.
//!
//! 1. *Flip*: behind the closed gate and the commit lock, fix timestamp, log position, unfinished writers; one epoch ends.
//! 2. *Images*: every page changed in that epoch gets an image as of the flip — from here, from whoever changes the
//!    page first, or from its eviction ([`Pool::checkpoint_page`]).
//! 3. *Mapping*: changed parts of the page-to-block mapping, then the directory, go to free blocks.
//! 4. Flush of the data file; root slot; flush. Only then are the blocks of the checkpoint before free.
//!
//! - CKPT-1: nothing that the last durable root refers to is overwritten (BLOCK-1), so a crash at any point leaves it whole.
//! - CKPT-2: a root is written only after everything it refers to, and the log up to its position, is durable.
//! - CKPT-3: a failed checkpoint leaves the images it wrote to the next one, and the mapping as it was.
//! - CKPT-4: after a flush failed there is no next one: nothing that it was to make durable can be relied on.
//!
//! Sources: WiredTiger's no-overwrite checkpoints; shadow paging (Lorie 1977).

mod meta_page;
pub mod page_map;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::locks::Mutex;

use crate::access::btree::Tree;
use crate::blocks::Location;
use crate::buffer::{Flip, Pool};
use crate::error::{Error, Result};
use crate::failpoints::{Canary, Probe, planted, probe};
use crate::mvcc::Timestamp;
use crate::page::PageId;
use crate::wal::{Log, Lsn};

pub use meta_page::{FoundRoot, INCARNATION_LIMIT, Identity, MetaPages, Root, StoreKind};
pub use page_map::{PageMap, load_directory};

/// What the owner fixes at the flip.
pub struct FlipState {
    /// Commits up to here are in the checkpoint.
    pub timestamp: Timestamp,
    /// The log from here on is not in it.
    pub log_position: Lsn,
    /// Recovery has to read from here: pieces of unfinished transactions.
    pub log_start: Lsn,
    /// Every tree.
    pub trees: Vec<Tree>,
    /// Overflow chains that nothing in the checkpoint points to.
    pub dead_chains: Vec<PageId>,
    /// Unfinished writers, for [`Flip`].
    pub flip: FlipWriters,
}

/// Unfinished writers by id.
pub type FlipWriters =
    std::collections::HashMap<u64, (std::sync::Arc<crate::mvcc::TransactionRecord>, usize)>;

/// Numbers for statistics.
#[derive(Default)]
pub struct CheckpointCounters {
    /// Checkpoints completed.
    pub completed: AtomicU64,
    /// One is running.
    pub running: AtomicBool,
    /// Pages that the running or last one has, and has seen to.
    pub pages: AtomicU64,
    /// See `pages`.
    pub pages_done: AtomicU64,
    /// How long the last one took, in microseconds.
    pub last_us: AtomicU64,
    /// Log position of the last one.
    pub log_position: AtomicU64,
}

/// What a checkpoint refers to.
pub struct Locations<'a> {
    /// Location of each page.
    pub mapping: &'a [Location],
    /// Locations of the mapping's own pages, and of the directory's.
    pub chunks: &'a [Location],
    /// See `chunks`.
    pub directory: &'a [Location],
    /// Images that wait for the next checkpoint; `None` after a failed flush, when more blocks are kept than are told.
    pub carried: Option<&'a Vec<(PageId, Location)>>,
}

struct CheckpointState {
    identity: Identity,
    slots: MetaPages,
    root: Root,
    /// Location of each page in the last durable checkpoint.
    mapping: Vec<Location>,
    /// Locations of the mapping's own pages, and of the directory's.
    chunks: Vec<Location>,
    directory: Vec<Location>,
    /// Images of a checkpoint that failed.
    carried: Vec<(PageId, Location)>,
    /// Why no checkpoint can be made any more: a flush failed, and what it was to make durable is lost (CKPT-4).
    failure: Option<String>,
}

/// Makes checkpoints of one data file.
pub struct Checkpointer {
    state: Mutex<CheckpointState>,
    /// Numbers for statistics.
    pub counters: CheckpointCounters,
}

impl Checkpointer {
    /// Goes on from what was found when the data file was opened.
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
        Checkpointer { state: Mutex::new(state), counters }
    }

    /// Makes a checkpoint. `fix` is called with the gate closed and holds the commit lock for its time. `clean` says
    /// that nothing will be appended to the log before the next opening. `busy` is passed on to the log.
    pub fn run(
        &self,
        pool: &Pool,
        log: Option<&Log>,
        incarnation: u32,
        clean: bool,
        busy: bool,
        fix: impl FnOnce() -> FlipState,
    ) -> Result<()> {
        let mut state = self.state.lock();
        // Whoever waited for the lock has not heard of a failure meanwhile.
        if let Some(reason) = &state.failure {
            return Err(Error::Failed { reason: reason.clone() });
        }
        let started = pool.vfs.now();
        let mut fixed = None;
        let (flip, changed) = pool.close_for(|| {
            let mut at_flip = fix();
            let active = std::mem::take(&mut at_flip.flip);
            fixed = Some(at_flip);
            pool.flip(|epoch| Flip {
                epoch,
                active,
                pending: Mutex::default(),
                cancelled: Mutex::default(),
            })
        });
        let Some(fixed) = fixed else { return Err(Error::misuse("a flip fixed nothing")) };
        self.counters.running.store(true, Ordering::Relaxed);
        probe(Probe::CheckpointBegins);
        self.counters.pages.store(changed.len() as u64, Ordering::Relaxed);
        self.counters.pages_done.store(0, Ordering::Relaxed);
        let imaged = changed.iter().try_for_each(|&page| {
            self.counters.pages_done.fetch_add(1, Ordering::Relaxed);
            pool.checkpoint_page(&flip, page)
        });
        let imaged = imaged.and_then(|()| flip.cancelled.lock().take().map_or(Ok(()), Err));
        pool.end_flip(if imaged.is_err() { &changed } else { &[] });
        let mut pending = std::mem::take(&mut state.carried);
        pending.append(&mut flip.pending.lock());
        let root = Root {
            sequence: state.root.sequence + 1,
            timestamp: fixed.timestamp,
            log_position: fixed.log_position,
            log_start: fixed.log_start,
            incarnation,
            clean,
            segment_exists: false,
            directory: Location::NONE,
        };
        let result = match imaged {
            Ok(()) => state.publish(pool, log, root, &fixed, pending),
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
            log.discard_before(fixed.log_start, busy)?;
        }
        pool.shrink_file()
    }

    /// Whether the last durable root says that nothing follows it in the log.
    pub fn is_clean(&self) -> bool {
        self.state.lock().root.clean
    }

    /// Calls `look` with what the last checkpoint refers to; no checkpoint runs meanwhile, so `look` may close the gate.
    pub fn inspect<T>(&self, look: impl FnOnce(&Locations<'_>) -> T) -> T {
        let state = self.state.lock();
        look(&Locations {
            mapping: &state.mapping,
            chunks: &state.chunks,
            directory: &state.directory,
            carried: state.failure.is_none().then_some(&state.carried),
        })
    }
}

impl CheckpointState {
    /// Steps 3 and 4. On failure mapping and images are as if the checkpoint had not come this far (CKPT-3).
    fn publish(
        &mut self,
        pool: &Pool,
        log: Option<&Log>,
        root: Root,
        fixed: &FlipState,
        pending: Vec<(PageId, Location)>,
    ) -> Result<()> {
        let replaced = self.apply(&pending);
        match self.write_root(pool, log, root, fixed, &pending) {
            Ok(retired) => {
                let old = replaced.iter().map(|(_, location)| *location);
                for location in old.chain(retired).filter(|location| *location != Location::NONE) {
                    pool.blocks.release(location.block());
                }
                Ok(())
            }
            Err(error) => {
                for (page, location) in replaced.into_iter().rev() {
                    self.mapping[page as usize] = location;
                }
                self.carried = pending;
                Err(error)
            }
        }
    }

    /// Brings the mapping up to date; what it said before, in order.
    fn apply(&mut self, pending: &[(PageId, Location)]) -> Vec<(PageId, Location)> {
        let mut replaced = Vec::with_capacity(pending.len());
        for &(page, location) in pending {
            let at = page as usize;
            if self.mapping.len() <= at {
                self.mapping.resize(at + 1, Location::NONE);
            }
            let old = self.mapping[at];
            // The same image named twice, by a failed checkpoint and the one after, is not to be freed.
            if old != location {
                replaced.push((page, old));
                self.mapping[at] = location;
            }
        }
        replaced
    }

    fn write_root(
        &mut self,
        pool: &Pool,
        log: Option<&Log>,
        mut root: Root,
        fixed: &FlipState,
        pending: &[(PageId, Location)],
    ) -> Result<Vec<Location>> {
        let per_chunk = page_map::entries_per_page(pool.page_size);
        let touched: BTreeSet<usize> =
            pending.iter().map(|(page, _)| *page as usize / per_chunk).collect();
        let mut written = Vec::new();
        let result = self.write_pages(pool, log, &mut root, fixed, &touched, &mut written);
        match result {
            Ok((chunks, directory)) => {
                // If this fails, the root may count or not at the next opening: what it refers to stays in use.
                if let Err(error) = self.settle(pool, &root) {
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
        fixed: &FlipState,
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
                // Pieces of transactions that are still open: recovery reads them with what comes after the flip.
                log.flush_to(fixed.log_position)?;
            } else {
                // What came before the flip is in the images. Only the segment that recovery begins in must be there.
                log.write_to(fixed.log_position)?;
            }
            root.segment_exists = log.ensure_segment(fixed.log_start)?;
        }
        Ok((chunks, pages))
    }

    /// Makes what was written durable, then the root that refers to it. After a failure nothing may be acknowledged.
    fn settle(&self, pool: &Pool, root: &Root) -> Result<()> {
        // Never `DiskFull`, whatever the reason: what was to be flushed is lost, and trying again would not bring it back.
        let failed = |action: &str| {
            let action = action.to_owned();
            move |source| Error::Io { action, source }
        };
        let synced = if planted(Canary::DataNotFlushed) {
            Ok(())
        } else if pool.room.take_grown() {
            pool.file.sync_all()
        } else {
            pool.file.sync_data()
        };
        synced.map_err(failed("flushing the data file"))?;
        let written = self.slots.write(&*pool.file, &self.identity, root);
        written.map_err(failed("writing the root slot"))
    }
}
