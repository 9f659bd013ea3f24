//! Holding a page: to read without a latch, or to change with it.

use std::cell::Cell;

use super::page_entry::{PageEntry, content_of};
use super::{ChangeGuard, Pool};
use crate::error::Result;
use crate::failpoints::{Canary, planted};
use crate::page::{Page, PageId};

/// A page being read without a latch. What was read counts only once [`validate`](Self::validate) said so (PAGE-2).
#[derive(Clone, Copy)]
pub struct ReadGuard<'a> {
    pool: &'a Pool,
    entry: &'a PageEntry,
    version: u64,
    /// The content, which may change or be replaced at any time.
    pub page: Page<'a>,
    /// The page's number.
    pub id: PageId,
}

impl<'a> ReadGuard<'a> {
    #[inline]
    pub(super) fn new(
        pool: &'a Pool,
        entry: &'a PageEntry,
        version: u64,
        page: Page<'a>,
        id: PageId,
    ) -> Self {
        ReadGuard { pool, entry, version, page, id }
    }

    /// Whether nothing changed since the guard was made.
    #[inline]
    pub fn validate(&self) -> bool {
        self.entry.is_version(self.version) || planted(Canary::ReadNotValidated)
    }

    /// The version noted when the guard was made. While it lasts, records keep their positions.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The version that the content had when the guard was made. Eviction and reloading keep it,
    /// though a page can come back without its dead records: positions may differ.
    #[inline]
    pub fn content_version(&self) -> u64 {
        content_of(self.version)
    }

    /// Takes the latch, if nothing changed since the guard was made.
    #[inline]
    pub fn upgrade(self) -> Option<WriteGuard<'a>> {
        if !self.pool.take_latch(self.entry, self.version) {
            return None;
        }
        Some(WriteGuard::new(self.pool, self.entry, self.page, self.id))
    }
}

/// Optimistic tries after which a reader takes the latch.
const OPTIMISTIC_TRIES: usize = 4;

/// The tries of one read. A reader whose page changes every time it looks takes the latch in the
/// end, so writers cannot lock it out.
#[derive(Default)]
pub struct Tries(usize);

impl Tries {
    /// Begins a try on the page that was found: without the latch at first, later with it. `None`
    /// if the latch was not free or the page has changed: the page has to be found again.
    #[inline(always)]
    pub fn begin<'a>(&mut self, guard: ReadGuard<'a>) -> Option<Try<'a>> {
        self.0 += 1;
        let latched = self.0 > OPTIMISTIC_TRIES;
        if latched && !guard.pool.take_latch(guard.entry, guard.version) {
            return None;
        }
        Some(Try { entry: guard.entry, version: guard.version, latched })
    }
}

/// One try at reading a page. While it exists the latch may be held: nothing may be waited for.
pub struct Try<'a> {
    entry: &'a PageEntry,
    version: u64,
    latched: bool,
}

impl Try<'_> {
    /// Ends the try: whether what was read is one state of the page (PAGE-2).
    #[inline(always)]
    pub fn validate(self) -> bool {
        self.latched || self.entry.is_version(self.version)
    }
}

impl Drop for Try<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.latched {
            self.entry.release_unchanged();
        }
    }
}

/// A latched page. Dropping it releases the latch.
pub struct WriteGuard<'a> {
    pool: &'a Pool,
    pub(super) entry: &'a PageEntry,
    page: Page<'a>,
    /// The page's number.
    pub id: PageId,
    pub(super) changed: Cell<bool>,
}

impl<'a> WriteGuard<'a> {
    #[inline]
    pub(super) fn new(pool: &'a Pool, entry: &'a PageEntry, page: Page<'a>, id: PageId) -> Self {
        WriteGuard { pool, entry, page, id, changed: Cell::new(false) }
    }

    /// The content, to look at.
    #[inline]
    pub fn page(&self) -> Page<'a> {
        self.page
    }

    /// The content, to change: a running checkpoint has had its image when this returns (POOL-2).
    #[inline]
    pub fn write(&self, _pass: &ChangeGuard) -> Result<Page<'a>> {
        self.pool.prepare(self.id, self.entry, self.page)?;
        self.changed.set(true);
        Ok(self.page)
    }

    /// Releases the latch of a page that was changed; the content version that it has now.
    #[inline]
    pub fn release_changed(self) -> u64 {
        let version = self.entry.release_changed();
        std::mem::forget(self);
        version
    }
}

impl Drop for WriteGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.changed.get() {
            self.entry.release_changed();
        } else {
            self.entry.release_unchanged();
        }
    }
}
