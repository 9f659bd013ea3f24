//! Page guards: reading a page optimistically, or holding its latch to change it.

use std::cell::Cell;

use super::page_entry::{PageEntry, content_of};
use super::{ChangeGuard, Pool};
use crate::error::Result;
use crate::failpoints::{Canary, planted};
use crate::invariant::CHECKS_INVARIANTS;
use crate::page::{Page, PageId};

/// A page that is read without its latch. Values read from it may be used only after
/// [`validate`](Self::validate) returned true (PAGE-2).
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

    /// Returns whether the page is unchanged since the guard was created.
    #[inline]
    pub fn validate(&self) -> bool {
        self.entry.is_version(self.version) || planted(Canary::ReadNotValidated)
    }

    /// Returns the version noted when the guard was created. While it is current, records keep
    /// their positions.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the content version as of the guard's creation. Eviction and reloading keep it,
    /// although a reloaded page may lack its dead records: positions may differ.
    #[inline]
    pub fn content_version(&self) -> u64 {
        content_of(self.version)
    }

    /// Takes the latch. Returns `None` if the page has changed since the guard was created.
    #[inline]
    pub fn upgrade(self) -> Option<WriteGuard<'a>> {
        if !self.pool.take_latch(self.entry, self.version) {
            return None;
        }
        Some(WriteGuard::new(self.pool, self.entry, self.page, self.id))
    }
}

/// Number of optimistic tries before a reader takes the latch.
const OPTIMISTIC_TRIES: usize = 4;

/// Counts the tries of one read. A reader whose page changes during every try finally takes the
/// latch, so writers cannot starve it.
#[derive(Default)]
pub struct Tries(usize);

impl Tries {
    /// Begins a try on the page: first without the latch, later with it. Returns `None` if the
    /// latch was not free or the page has changed; the caller must search for the page again.
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

/// One try at reading a page. It may hold the latch, so the caller must not wait for anything.
pub struct Try<'a> {
    entry: &'a PageEntry,
    version: u64,
    latched: bool,
}

impl Try<'_> {
    /// Ends the try. Returns whether the values read belong to one state of the page (PAGE-2).
    #[inline(always)]
    pub fn validate(self) -> bool {
        invariant!(
            READ_1,
            !self.latched || self.entry.version().is_none(),
            "a read without its latch would not be validated"
        );
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

/// A latched page. Dropping the guard releases the latch.
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

    /// Returns the content for reading.
    #[inline]
    pub fn page(&self) -> Page<'a> {
        self.page
    }

    /// Returns the content for changing it. A running checkpoint already has its image of the page
    /// (POOL-2).
    #[inline]
    pub fn write(&self, _pass: &ChangeGuard) -> Result<Page<'a>> {
        invariant!(PAGE_3, self.entry.version().is_none(), "page {} has no latch", self.id);
        self.pool.prepare(self.id, self.entry, self.page)?;
        self.changed.set(true);
        Ok(self.page)
    }

    /// Releases the latch of a changed page and returns its new content version.
    #[inline]
    pub fn release_changed(self) -> u64 {
        let version = self.release_with_new_version();
        std::mem::forget(self);
        version
    }

    #[inline]
    fn release_with_new_version(&self) -> u64 {
        let before = if CHECKS_INVARIANTS { self.entry.content_version() } else { 0 };
        let version = self.entry.release_changed();
        invariant!(PAGE_2, version > before, "page {} has version {version} again", self.id);
        version
    }
}

impl Drop for WriteGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.changed.get() {
            self.release_with_new_version();
        } else {
            self.entry.release_unchanged();
        }
    }
}
