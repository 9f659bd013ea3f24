//! The buffer pool: finds pages by number, loads them on demand and evicts them when memory is
//! needed.
//!
//! Above: access methods, the checkpoint. Below: blocks, the data file, page images; and the
//! transaction table, because a checkpoint's page image must not contain uncommitted changes.
//!
//! - POOL-1: a page's content, frame and status change only under its latch. Its content changes
//!   only with a [`ChangeGuard`].
//! - POOL-2: the first change to a page in a checkpoint epoch first writes the page's image as of
//!   the epoch's beginning ([`Pool::prepare`]). So the checkpoint needs no other copy, and
//!   structure changes need no special case.
//! - POOL-3: no block that a checkpoint refers to is written again (BLOCK-1).
//! - POOL-4: an image serves as the page's whole content only if every version word in the page is
//!   visible to all.
//! - POOL-5: a changed page that was evicted keeps its block until a checkpoint has the page
//!   elsewhere, and later evictions write to the same block. The file has some blocks more than are
//!   in use. So on a full device some page can always be evicted, and changes can be undone
//!   (`file_growth`).

mod checkpoint_image;
mod eviction;
mod file_growth;
mod frames;
mod guard;
mod page_entry;
mod page_table;
mod quiesce;
mod relocation;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::sync::locks::{Mutex, RwLock};
use crossbeam_utils::CachePadded;

use crate::blocks::{BlockAllocator, Location};
use crate::error::{Damage, DamagedPlace, Error, Result};
use crate::failpoints::{Canary, Probe, planted, probe};
use crate::mvcc::{ActiveTransactions, TransactionTable};
use crate::page::{Page, PageId, PageKind, image_checksum, read_image, read_known_image};
use crate::vfs::mapping::prefetch;
use crate::vfs::{Event, File, Vfs};

use file_growth::FileReserve;
use frames::Arena;
pub use guard::{ReadGuard, Tries, WriteGuard};
pub use page_entry::{NO_FRAME, PageEntry, status};
use page_table::PageTable;
use quiesce::Quiesce;
pub use quiesce::{ChangeGuard, SHARED_STRIPE};

/// Whether several threads use a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Threads latch pages.
    Shared,
    /// One owner: latches are plain stores.
    Exclusive,
}

/// The state of a running checkpoint, fixed when its epoch began.
pub struct CheckpointEpoch {
    /// The checkpoint covers pages changed in this epoch or before it.
    pub number: u32,
    /// Transactions that were unfinished when the epoch began: their changes are not in the
    /// checkpoint.
    pub active: ActiveTransactions,
    /// The checkpoint's location of each page that changed since the previous checkpoint.
    pub pending: Mutex<Vec<(PageId, Location)>>,
    /// Why the checkpoint cannot complete, if an image could not be written.
    pub cancelled: Mutex<Option<Error>>,
}

/// Counters for statistics.
#[derive(Default)]
pub struct PoolCounters {
    /// Page accesses, spread over cache lines by thread.
    pub accesses: [CachePadded<AtomicU64>; 16],
    /// Pages read from the data file.
    pub loads: AtomicU64,
    /// Evicted pages.
    pub evictions: AtomicU64,
    /// Page images written to the data file.
    pub writes: AtomicU64,
}

/// Decodes an image of the page with that number; the error describes the damage.
type ReadImage = fn(&[u8], PageId, Page<'_>) -> std::result::Result<(), Damage>;

/// The buffer pool of an environment.
pub struct Pool {
    /// Bytes in a page.
    pub page_size: usize,
    /// Free and used blocks of the data file.
    pub blocks: BlockAllocator,
    /// The transaction table.
    pub transactions: Arc<TransactionTable>,
    /// The VFS.
    pub vfs: Arc<dyn Vfs>,
    /// The data file.
    pub file: Arc<dyn File>,
    /// Counters for statistics.
    pub counters: PoolCounters,
    /// Wakes the background thread when free frames run low.
    pub frames_wanted: Arc<dyn Event>,
    /// The length of the data file, and its reserve.
    pub file_reserve: FileReserve,
    /// False if the environment has a single owner: latches then need no atomic exchange.
    shared: bool,
    table: PageTable,
    arena: Arena,
    frame_pages: Box<[AtomicU64]>,
    free_frames: Mutex<Vec<u32>>,
    /// Bytes at the start of the arena that are populated or were accessed.
    ready: AtomicUsize,
    frames_touched: AtomicU32,
    hand: AtomicUsize,
    quiesce: Quiesce,
    epoch: AtomicU32,
    changed: Mutex<Vec<PageId>>,
    running_checkpoint: RwLock<Option<Arc<CheckpointEpoch>>>,
    next_page: AtomicU64,
    free_pages: Mutex<Vec<PageId>>,
    sequence: AtomicU64,
}

thread_local! {
    static IMAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` with a thread-local buffer of `length` bytes.
pub fn with_buffer<T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut buffer = IMAGE.take();
    buffer.resize(length, 0);
    let result = work(&mut buffer);
    IMAGE.set(buffer);
    result
}

impl Pool {
    /// Creates a pool of `cache_size` bytes over `file`. `sharing` says whether several threads
    /// will use it.
    pub fn new(
        vfs: Arc<dyn Vfs>,
        file: Arc<dyn File>,
        transactions: Arc<TransactionTable>,
        page_size: usize,
        cache_size: usize,
        sharing: Sharing,
    ) -> Result<Pool> {
        let frames = cache_size / page_size;
        let file_end = file.length().map_err(|e| Error::io("reading the data file's length", e))?;
        Ok(Pool {
            page_size,
            blocks: BlockAllocator::new(page_size),
            transactions,
            counters: PoolCounters::default(),
            frames_wanted: vfs.event(),
            file_reserve: FileReserve::new(file_end, page_size),
            shared: sharing == Sharing::Shared,
            table: PageTable::new(),
            arena: Arena::new(frames, page_size)?,
            frame_pages: std::iter::repeat_with(AtomicU64::default).take(frames).collect(),
            free_frames: Mutex::default(),
            ready: AtomicUsize::new(0),
            frames_touched: AtomicU32::new(0),
            hand: AtomicUsize::new(0),
            quiesce: Quiesce::new(vfs.clone()),
            epoch: AtomicU32::new(1),
            changed: Mutex::default(),
            running_checkpoint: RwLock::new(None),
            next_page: AtomicU64::new(1),
            free_pages: Mutex::default(),
            sequence: AtomicU64::new(1),
            vfs,
            file,
        })
    }

    /// Returns permission to change pages, held for one operation. Waits while the pool is
    /// quiesced; see `quiesce`.
    #[inline]
    pub fn enter(&self, stripe: usize) -> ChangeGuard<'_> {
        if self.shared { self.quiesce.enter(stripe) } else { ChangeGuard::unshared() }
    }

    /// Runs `work` while no page change is in progress.
    pub fn close_for<T>(&self, work: impl FnOnce() -> T) -> T {
        self.quiesce.close_for(work)
    }

    /// Registers a page that the page map names. Called when an environment is opened.
    pub fn adopt(&self, page: PageId, location: Location) -> Result<()> {
        let entry = self.table.get_or_create(page).ok_or_else(|| {
            Error::page(page, "the mapping names a page past the largest number there can be")
        })?;
        if !self.blocks.mark(location.block()) {
            return Err(Error::page(page, format!("block {} is claimed twice", location.block())));
        }
        entry.set_location(location);
        entry.set(status::ALLOCATED | status::OWNED | status::UNCHECKED);
        self.next_page.fetch_max(page + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the unused page numbers below the highest one available. Called once, after the last
    /// [`adopt`](Self::adopt).
    pub fn collect_free_pages(&self) {
        let next = self.next_page.load(Ordering::Relaxed);
        let is_free =
            |page: &PageId| self.table.get(*page).is_none_or(|e| !e.has(status::ALLOCATED));
        *self.free_pages.lock() = (1..next).rev().filter(is_free).collect();
    }

    /// Returns one more than the highest page number ever used.
    pub fn page_count(&self) -> PageId {
        self.next_page.load(Ordering::Relaxed)
    }

    /// Returns the location of the page's newest image.
    pub fn location(&self, page: PageId) -> Location {
        self.table.get(page).map_or(Location::NONE, PageEntry::location)
    }

    /// Describes a difference between the last checkpoint's image of a page and the page's state,
    /// unless the page has changed since.
    pub fn unlike_checkpoint(&self, page: PageId, image: Location) -> Option<&'static str> {
        let entry = self.table.get(page).filter(|entry| !entry.has(status::CHANGED))?;
        match (entry.has(status::ALLOCATED), image == Location::NONE) {
            (true, true) => Some("has not changed and is in no checkpoint"),
            (false, false) => Some("is free and still in the checkpoint"),
            (true, false) if entry.has(status::OWNED) && entry.location() != image => {
                Some("has another image than the checkpoint's")
            }
            _ => None,
        }
    }

    /// Returns whether the page exists.
    pub fn is_allocated(&self, page: PageId) -> bool {
        self.table.get(page).is_some_and(|entry| entry.has(status::ALLOCATED))
    }

    #[inline]
    fn entry(&self, page: PageId) -> Result<&PageEntry> {
        self.table.get(page).ok_or_else(|| Error::page(page, "there is no such page"))
    }

    /// Asks the processor to fetch a page's entry, without waiting.
    #[inline]
    pub fn prefetch_entry(&self, page: PageId) {
        self.table.get(page).into_iter().for_each(prefetch);
    }

    /// Returns a page for optimistic reading, loading it if it is not in memory.
    #[inline]
    pub fn read(&self, page: PageId) -> Result<ReadGuard<'_>> {
        match self.read_resident(page) {
            Some(guard) => Ok(guard),
            None => self.read_when_free(page),
        }
    }

    /// Returns a page for optimistic reading, if it is in memory and not latched.
    #[inline(always)]
    pub fn read_resident(&self, page: PageId) -> Option<ReadGuard<'_>> {
        let entry = self.table.get(page)?;
        let version = entry.version()?;
        let frame = entry.frame.load(Ordering::Relaxed);
        if frame == NO_FRAME {
            return None;
        }
        entry.touch();
        // From here on the page may change at any time, until the reader validates (PAGE-2).
        probe(Probe::Between);
        Some(ReadGuard::new(self, entry, version, self.arena.page(frame), page))
    }

    /// Like [`read`](Self::read), but waits for the latch and loads the page.
    #[cold]
    fn read_when_free(&self, page: PageId) -> Result<ReadGuard<'_>> {
        let entry = self.entry(page)?;
        loop {
            match entry.version() {
                None => self.wait_for_latch(entry),
                Some(version) if entry.frame.load(Ordering::Relaxed) == NO_FRAME => {
                    self.load(page, entry, version)?;
                }
                Some(_) => {
                    if let Some(guard) = self.read_resident(page) {
                        return Ok(guard);
                    }
                }
            }
        }
    }

    /// Returns the page, latched.
    pub fn latch(&self, page: PageId) -> Result<WriteGuard<'_>> {
        loop {
            if let Some(guard) = self.read(page)?.upgrade() {
                return Ok(guard);
            }
        }
    }

    /// Returns whether no content change was completed since the page had content version
    /// `version`. A change may be in progress by the thread that holds the latch.
    #[inline]
    pub fn has_content(&self, page: PageId, version: u64) -> bool {
        self.table.get(page).is_some_and(|entry| entry.content_version() == version)
    }

    #[inline]
    fn take_latch(&self, entry: &PageEntry, version: u64) -> bool {
        probe(Probe::Between);
        if self.shared {
            entry.try_latch(version)
        } else {
            entry.latch_unshared(version);
            true
        }
    }

    #[cold]
    fn wait_for_latch(&self, entry: &PageEntry) {
        for _ in 0..64 {
            if entry.version().is_some() {
                return;
            }
            std::hint::spin_loop();
        }
        self.vfs.yield_now();
    }

    /// Loads a page into memory. Returns without loading it if another thread changed its entry
    /// first.
    #[cold]
    fn load(&self, page: PageId, entry: &PageEntry, version: u64) -> Result<()> {
        if !self.take_latch(entry, version) {
            return Ok(());
        }
        if entry.frame.load(Ordering::Relaxed) != NO_FRAME {
            entry.release_unchanged();
            return Ok(());
        }
        let loaded = self.load_latched(page, entry);
        match loaded {
            Ok(()) => entry.release_moved(),
            Err(_) => entry.release_unchanged(),
        }
        loaded
    }

    fn load_latched(&self, page: PageId, entry: &PageEntry) -> Result<()> {
        if !entry.has(status::ALLOCATED) || entry.location() == Location::NONE {
            return Err(Error::page(page, "there is no such page"));
        }
        let frame = self.allocate_frame()?;
        let read = match entry.has(status::UNCHECKED) {
            true => self.read_block(page, entry.location(), frame, read_image),
            false => self.read_block(page, entry.location(), frame, read_known_image),
        };
        if let Err(error) = read {
            self.free_frames.lock().push(frame);
            return Err(error);
        }
        entry.clear(status::UNCHECKED);
        self.counters.loads.fetch_add(1, Ordering::Relaxed);
        entry.referenced.store(0, Ordering::Relaxed);
        self.attach(page, entry, frame);
        Ok(())
    }

    fn attach(&self, page: PageId, entry: &PageEntry, frame: u32) {
        self.frame_pages[frame as usize].store(page, Ordering::Relaxed);
        entry.frame.store(frame, Ordering::Relaxed);
    }

    fn read_block(
        &self,
        page: PageId,
        location: Location,
        frame: u32,
        read_image: ReadImage,
    ) -> Result<()> {
        let content = self.arena.page(frame);
        self.read_location_with(page, location, content, read_image)?;
        match content.kind() {
            Some(PageKind::Leaf | PageKind::Inner | PageKind::Overflow) => Ok(()),
            // Such an image is not checked as one of a tree is.
            kind => Err(Error::page(page, format!("a page of a tree has the kind {kind:?}"))),
        }
    }

    /// Reads the image of page number `page` at `location` into `content`.
    pub fn read_location(&self, page: PageId, location: Location, content: Page<'_>) -> Result<()> {
        self.read_location_with(page, location, content, read_image)
    }

    fn read_location_with(
        &self,
        page: PageId,
        location: Location,
        content: Page<'_>,
        read_image: ReadImage,
    ) -> Result<()> {
        let place = DamagedPlace::Image { page, block: location.block() };
        let corrupt = |damage: Damage| damage.at(crate::files::DATA_FILE, place);
        with_buffer(self.page_size, |image| {
            let offset = location.block() * self.page_size as u64;
            match self.file.read_at(image, offset) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    return Err(corrupt(format!("the file ends before offset {offset}").into()));
                }
                Err(error) => return Err(Error::io(format!("reading {place}"), error)),
            }
            if !location.matches(image_checksum(image)) {
                return Err(corrupt("another image is where this one was written".into()));
            }
            read_image(image, page, content).map_err(corrupt)
        })
    }

    /// Returns a new page, latched and empty.
    pub fn new_page(
        &self,
        _pass: &ChangeGuard,
        kind: PageKind,
        tree: u32,
        level: u8,
    ) -> Result<WriteGuard<'_>> {
        let reused = self.free_pages.lock().pop();
        let page = match reused {
            Some(page) => page,
            None => self.next_page.fetch_add(1, Ordering::Relaxed),
        };
        let made = self.make_page(page, kind, tree, level);
        if made.is_err() {
            self.free_pages.lock().push(page);
        }
        made
    }

    fn make_page(
        &self,
        page: PageId,
        kind: PageKind,
        tree: u32,
        level: u8,
    ) -> Result<WriteGuard<'_>> {
        let entry = self.table.get_or_create(page).ok_or_else(|| Error::Limit {
            what: "the environment has as many pages as there can be".into(),
        })?;
        let frame = self.allocate_frame()?;
        loop {
            match entry.version() {
                Some(version) if self.take_latch(entry, version) => break,
                _ => self.wait_for_latch(entry),
            }
        }
        let guard = WriteGuard::new(self, entry, self.arena.page(frame), page);
        // The running checkpoint first records that this page number was unused (POOL-2).
        if let Err(error) = self.prepare(page, entry, guard.page()) {
            self.free_frames.lock().push(frame);
            return Err(error);
        }
        self.attach(page, entry, frame);
        entry.set(status::ALLOCATED);
        entry.touch();
        guard.changed.set(true);
        guard.page().initialize(page, kind, tree, level);
        Ok(guard)
    }

    /// Frees a page and discards its content.
    pub fn free_page(&self, _pass: &ChangeGuard, guard: WriteGuard<'_>) -> Result<()> {
        let (page, entry) = (guard.id, guard.entry);
        let epoch = self.epoch.load(Ordering::Relaxed);
        self.prepare_slow(page, entry, Some(guard.page()), epoch)?;
        guard.changed.set(true);
        let frame = entry.frame.load(Ordering::Relaxed);
        self.frame_pages[frame as usize].store(0, Ordering::Relaxed);
        entry.frame.store(NO_FRAME, Ordering::Relaxed);
        self.forget_location(entry);
        entry.clear(status::ALLOCATED | status::DIRTY);
        drop(guard);
        self.free_frames.lock().push(frame);
        self.free_pages.lock().push(page);
        Ok(())
    }

    /// Frees an overflow page, whether or not it is in memory. Its content is not read, so this
    /// works on a full device.
    pub fn discard(&self, _pass: &ChangeGuard, page: PageId) -> Result<()> {
        let entry = self.entry(page)?;
        loop {
            match entry.version() {
                Some(version) if self.take_latch(entry, version) => break,
                _ => self.wait_for_latch(entry),
            }
        }
        if !entry.has(status::ALLOCATED) {
            entry.release_unchanged();
            return Err(Error::page(page, "a page to be freed is free already"));
        }
        let frame = entry.frame.load(Ordering::Relaxed);
        let content = (frame != NO_FRAME).then(|| self.arena.page(frame));
        let epoch = self.epoch.load(Ordering::Relaxed);
        if let Err(error) = self.prepare_slow(page, entry, content, epoch) {
            entry.release_unchanged();
            return Err(error);
        }
        self.forget_location(entry);
        entry.clear(status::ALLOCATED | status::DIRTY);
        if frame != NO_FRAME {
            self.frame_pages[frame as usize].store(0, Ordering::Relaxed);
            entry.frame.store(NO_FRAME, Ordering::Relaxed);
        }
        entry.release_changed();
        if frame != NO_FRAME {
            self.free_frames.lock().push(frame);
        }
        self.free_pages.lock().push(page);
        Ok(())
    }

    /// Prepares a latched page for a content change (POOL-2). Cheap if the page has already changed
    /// in this epoch.
    #[inline]
    fn prepare(&self, page: PageId, entry: &PageEntry, content: Page<'_>) -> Result<()> {
        invariant!(POOL_1, entry.version().is_none(), "page {page} changes without its latch");
        let epoch = self.epoch.load(Ordering::Relaxed);
        if entry.epoch.load(Ordering::Relaxed) == epoch
            && entry.has(status::CHANGED | status::DIRTY)
        {
            return Ok(());
        }
        if !entry.has(status::DIRTY)
            && (entry.location() == Location::NONE || entry.has(status::OWNED))
        {
            self.check_room()?;
        }
        self.prepare_slow(page, entry, Some(content), epoch)
    }

    /// Like [`prepare`](Self::prepare), for a page that needs no block because it is freed.
    #[cold]
    fn prepare_slow(
        &self,
        page: PageId,
        entry: &PageEntry,
        content: Option<Page<'_>>,
        epoch: u32,
    ) -> Result<()> {
        if entry.epoch.load(Ordering::Relaxed) < epoch && entry.has(status::CHANGED) {
            self.write_checkpoint_image(page, entry, content)?;
        }
        if entry.epoch.load(Ordering::Relaxed) != epoch || !entry.has(status::CHANGED) {
            self.register_changed(page, entry, epoch);
        }
        if !entry.has(status::DIRTY) {
            if entry.has(status::OWNED) && !planted(Canary::BlockReusedEarly) {
                entry.set_location(Location::NONE);
            }
            entry.clear(status::OWNED | status::SWAPPED);
            entry.set(status::DIRTY);
        }
        invariant!(
            POOL_2,
            entry.epoch.load(Ordering::Relaxed) == epoch && entry.has(status::CHANGED),
            "page {page} changes in epoch {epoch} without being registered"
        );
        Ok(())
    }

    fn register_changed(&self, page: PageId, entry: &PageEntry, epoch: u32) {
        entry.epoch.store(epoch, Ordering::Relaxed);
        entry.set(status::CHANGED);
        self.changed.lock().push(page);
    }

    /// Clears the location of a page whose image is replaced or obsolete. Releases its block unless
    /// a checkpoint owns it.
    fn forget_location(&self, entry: &PageEntry) {
        let old = entry.location();
        if old != Location::NONE && !entry.has(status::OWNED) {
            self.blocks.release(old.block());
        }
        entry.set_location(Location::NONE);
        entry.clear(status::OWNED | status::SWAPPED);
    }

    /// Counts page accesses for statistics.
    #[inline]
    pub fn count_accesses(&self, count: usize) {
        thread_local! {
            static STRIPE: usize = {
                static NEXT: AtomicUsize = AtomicUsize::new(0);
                NEXT.fetch_add(1, Ordering::Relaxed) % 16
            };
        }
        // Two threads on one stripe may lose a count; statistics tolerate that.
        let counter = &self.counters.accesses[STRIPE.with(|stripe| *stripe)];
        counter.store(counter.load(Ordering::Relaxed) + count as u64, Ordering::Relaxed);
    }

    /// Returns the bytes of frames in use.
    pub fn resident_bytes(&self) -> usize {
        let free = self.free_frames.lock().len();
        (self.frames_touched.load(Ordering::Relaxed) as usize).saturating_sub(free) * self.page_size
    }

    /// Returns the number of pages changed since the last epoch began.
    pub fn changed_pages(&self) -> usize {
        self.changed.lock().len()
    }

    /// Returns the length of the data file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.file_reserve.file_end()
    }

    /// Returns an upper bound of the pages and blocks that a data file of this length ever had. A
    /// larger number means damage.
    pub fn block_limit(&self) -> u64 {
        self.file_bytes() / self.page_size as u64 * 8 + (1 << 20)
    }
}
