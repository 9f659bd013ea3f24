//! The B+tree: ordered records, found from the root by optimistic lock coupling.
//!
//! Above: transactions and the data store. Below: the buffer pool.
//!
//! - BTREE-1: a page holds exactly the keys from its lower fence up to, but not including, its
//!   upper fence. The fences of an inner page's children are its separators. So exactly one leaf
//!   covers a key.
//! - BTREE-2: the root's page number never changes: the root splits by moving its content to a new
//!   child, and collapses by taking over its only child's content.
//! - BTREE-3: leaves are not linked; a scan continues by searching for the fence that it reached.
//! - BTREE-4: latches are taken from the root down; a split, merge or shift holds the latches of a
//!   parent and its children only.
//!
//! Sources: Leis, Scheibner, Kemper, Neumann, "The ART of Practical Synchronization" (2016) for
//! optimistic lock coupling; Graefe, "Modern B-Tree Techniques" (2011) for fences and truncation.

mod leaf_hint;
mod lookups;
mod merge;
mod pack;
mod purge;
mod sample;
mod shift;
mod siblings;
mod split;
mod verify;

use std::cmp::Ordering;

use crate::access::hash::HASH_BYTES;
use crate::access::overflow;
use crate::buffer::{ChangeGuard, Pool, ReadGuard};
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::invariant::CHECKS_INVARIANTS;
use crate::options::AccessMethod;
use crate::page::{Page, PageId, PageKind, compare_keys};

pub use leaf_hint::{LeafHint, LeafHints};
pub use lookups::LOOKUP_GROUP;
pub use merge::is_sparse;
pub use pack::{Packed, Packing};
pub use purge::purge_leaf;
pub use sample::LeafSample;
pub use shift::NewRecord;
pub use siblings::{LeafSlot, SiblingHint};
#[cfg(any(test, feature = "fuzzing"))]
pub use split::try_split;

/// Maximum depth of a tree: a descent that exceeds it follows a cycle.
const DEEPEST: usize = 64;

/// A tree: its number, its root and its access method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The number, which is also stored in every page.
    pub id: u32,
    /// The root page, which never changes (BTREE-2).
    pub root: PageId,
    /// The access method: whether the tree's keys begin with hash values.
    pub method: AccessMethod,
}

/// Whether the records of a tree carry version words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versioning {
    Versioned,
    Unversioned,
}

fn wrong_leaf(leaf: PageId) -> Error {
    Error::page(leaf, "the leaf is not the one for the keys that led to it")
}

impl Tree {
    /// Creates an empty tree.
    pub fn create(
        pool: &Pool,
        change_guard: &ChangeGuard,
        id: u32,
        method: AccessMethod,
        versioning: Versioning,
    ) -> Result<Tree> {
        let guard = pool.new_page(change_guard, PageKind::Leaf, id, 0)?;
        guard.page().set_versioned(versioning == Versioning::Versioned);
        guard.page().set_hashed(!method.is_ordered());
        guard.page().set_fences(b"", None);
        Ok(Tree { id, root: guard.id, method })
    }

    /// Returns the bytes before each key that are not part of the user's key (HASH-1).
    #[inline]
    pub fn key_start(&self) -> usize {
        match self.method {
            AccessMethod::BTree => 0,
            AccessMethod::Hash | AccessMethod::HashPrefix => HASH_BYTES,
        }
    }

    /// Descends to the page at `level` that `child_of` selects. Returns it and its parent (`None`
    /// for the root). Both were unchanged when the page was reached.
    fn descend<'p>(
        &self,
        pool: &'p Pool,
        level: u8,
        child_of: impl Fn(&ReadGuard<'p>) -> PageId,
    ) -> Result<(Option<ReadGuard<'p>>, ReadGuard<'p>)> {
        'restart: loop {
            let mut parent = None;
            let mut node = pool.read(self.root)?;
            for _ in 0..DEEPEST {
                if node.page.level() <= level {
                    if !node.validate() {
                        continue 'restart;
                    }
                    pool.count_accesses(1 + usize::from(node.page.level()));
                    return Ok((parent, node));
                }
                let child = child_of(&node);
                if !node.validate() {
                    continue 'restart;
                }
                let next = pool.read(child);
                if let Ok(next) = &next
                    && node.page.level() == 1
                {
                    next.page.fetch_slots();
                }
                if !node.validate() {
                    continue 'restart;
                }
                parent = Some(node);
                node = next?;
            }
            return Err(Error::page(self.root, "a descent from the root follows a cycle of pages"));
        }
    }

    /// Returns the leaf for `key`.
    pub fn leaf<'p>(&self, pool: &'p Pool, key: &[u8]) -> Result<ReadGuard<'p>> {
        self.descend(pool, 0, |node| node.page.child_for(key)).map(|(_, leaf)| leaf)
    }

    /// Fails unless the fence that a scan reached is greater than `from`, where it started. So no
    /// scan loops, even if damaged pages contradict each other.
    #[inline]
    pub fn check_forward(&self, leaf: PageId, from: &[u8], fence: &[u8]) -> Result<()> {
        if compare_keys(fence, from).is_gt() { Ok(()) } else { Err(wrong_leaf(leaf)) }
    }

    /// Like [`check_forward`](Self::check_forward), but returns the fence.
    pub fn advance_to_fence(&self, leaf: PageId, from: &[u8], fence: Vec<u8>) -> Result<Vec<u8>> {
        self.check_forward(leaf, from, &fence).map(|()| fence)
    }

    /// Fails unless the key that a scan found compares to `from` as `order`, so that the scan
    /// advanced.
    #[inline]
    pub fn check_progress(
        &self,
        leaf: PageId,
        found: &[u8],
        order: Ordering,
        from: &[u8],
    ) -> Result<()> {
        if found.cmp(from) == order { Ok(()) } else { Err(wrong_leaf(leaf)) }
    }

    /// Like [`check_forward`](Self::check_forward) for a backward scan. `from` is the key that it
    /// came from, and whether that key itself was wanted: then the fence may equal it. `None` means
    /// the end of the tree.
    pub fn check_backward(
        &self,
        leaf: PageId,
        from: Option<(&[u8], bool)>,
        fence: &[u8],
    ) -> Result<()> {
        let back = |(from, itself): (&[u8], bool)| fence < from || (itself && fence == from);
        if from.is_none_or(back) { Ok(()) } else { Err(wrong_leaf(leaf)) }
    }

    /// Returns the leaf for `key` and the key's position in it, or the position for inserting it.
    /// First examines the leaf hint.
    #[inline(always)]
    pub fn locate<'p>(
        &self,
        pool: &'p Pool,
        key: &[u8],
        leaf_hint: &mut LeafHint,
    ) -> Result<(ReadGuard<'p>, std::result::Result<usize, usize>)> {
        if leaf_hint.tree == self.id
            && let Some(guard) = self.resident(pool, leaf_hint.leaf)
            && let Some(found) = self.find_validated(&guard, key, leaf_hint.hint)
        {
            leaf_hint.hint = found.unwrap_or_else(|at| at) + 1;
            return Ok((guard, found));
        }
        self.locate_from_root(pool, key, leaf_hint)
    }

    /// Returns the leaf of the hint, if it is in memory. In a hash tree that leaf is rarely in the
    /// processor's cache, so the cache lines of its slots and fences are loaded at once.
    #[inline(always)]
    fn resident<'p>(&self, pool: &'p Pool, leaf: PageId) -> Option<ReadGuard<'p>> {
        let guard = pool.read_resident(leaf)?;
        if !self.method.is_ordered() {
            guard.page.fetch_slots();
            std::hint::black_box(guard.page.word(pool.page_size / 8 - 1));
        }
        Some(guard)
    }

    #[inline(never)]
    fn locate_from_root<'p>(
        &self,
        pool: &'p Pool,
        key: &[u8],
        leaf_hint: &mut LeafHint,
    ) -> Result<(ReadGuard<'p>, std::result::Result<usize, usize>)> {
        loop {
            let guard = self.leaf(pool, key)?;
            let found = self.find(guard.page, key, usize::MAX);
            // One validation after all reads: an error that a concurrent change caused disappears
            // with the retry.
            if !guard.validate() {
                continue;
            }
            let found = found.ok_or_else(|| wrong_leaf(guard.id))?;
            let hint = found.unwrap_or_else(|at| at) + 1;
            *leaf_hint = LeafHint { tree: self.id, leaf: guard.id, hint };
            return Ok((guard, found));
        }
    }

    /// Searches for `key` in the page, beginning at its likely position.
    #[inline(always)]
    fn search(&self, page: Page<'_>, key: &[u8], hint: usize) -> std::result::Result<usize, usize> {
        match self.method {
            AccessMethod::BTree => page.search_near(key, hint),
            AccessMethod::Hash | AccessMethod::HashPrefix => page.search_spread(key),
        }
    }

    /// Returns the position of `key` in the leaf, if the leaf covers it and has not changed
    /// meanwhile.
    #[inline(always)]
    fn find_validated(
        &self,
        guard: &ReadGuard<'_>,
        key: &[u8],
        hint: usize,
    ) -> Option<std::result::Result<usize, usize>> {
        let found = self.find(guard.page, key, hint)?;
        let is_covered = !CHECKS_INVARIANTS || guard.page.covers(key);
        if !guard.validate() {
            return None;
        }
        invariant!(
            HASH_2,
            is_covered || planted(Canary::ReadNotValidated),
            "a hint leads a key to leaf {}, which does not cover it",
            guard.id
        );
        Some(found)
    }

    /// Returns the position of `key` in the page, if the page is the leaf that covers it (BTREE-1).
    #[inline(always)]
    fn find(
        &self,
        page: Page<'_>,
        key: &[u8],
        hint: usize,
    ) -> Option<std::result::Result<usize, usize>> {
        if !page.is_leaf() || page.tree() != self.id || !page.has_prefix_of(key) {
            return None;
        }
        let found = self.search(page, key, hint);
        let inside = match found {
            Ok(_) => true,
            Err(at) => (at > 0 && at < page.count()) || page.covers(key),
        };
        inside.then_some(found)
    }

    /// Frees the last childless page of a tree that is no longer used. Returns whether the whole
    /// tree is freed. Between two calls and in every checkpoint the tree is valid, only smaller, so
    /// that freeing can continue after a crash.
    ///
    /// `unlinked` runs under the guard that frees the page. It gets the first pages of the overflow
    /// chains that only the freed page pointed to, and whether that page was the root. The caller
    /// frees the chains.
    pub fn free_last(
        &self,
        pool: &Pool,
        stripe: usize,
        unlinked: impl FnOnce(&[PageId], bool),
    ) -> Result<bool> {
        let mut parent = None;
        let mut page = self.root;
        for _ in 0..DEEPEST {
            match self.last_child(pool, page)? {
                0 => {
                    self.free_childless(pool, stripe, parent, page, unlinked)?;
                    return Ok(parent.is_none());
                }
                child => (parent, page) = (Some(page), child),
            }
        }
        Err(Error::page(self.root, "a descent from the root follows a cycle of pages"))
    }

    /// Returns the last child of a page, or 0 if it has none.
    fn last_child(&self, pool: &Pool, page: PageId) -> Result<PageId> {
        let guard = pool.latch(page)?;
        let content = guard.page();
        if content.tree() != self.id {
            return Err(Error::page(page, format!("not a page of tree {}", self.id)));
        }
        Ok(if content.is_leaf() { 0 } else { content.child_at(content.count()) })
    }

    /// Frees a page without children and removes it from its parent. Both are latched while they
    /// are read: without a latch a page may be evicted, and its frame may show another page.
    fn free_childless(
        &self,
        pool: &Pool,
        stripe: usize,
        parent: Option<PageId>,
        page: PageId,
        unlinked: impl FnOnce(&[PageId], bool),
    ) -> Result<()> {
        let change_guard = pool.enter(stripe);
        let above = parent.map(|parent| pool.latch(parent)).transpose()?;
        let above_content = above.as_ref().map(|guard| guard.write(&change_guard)).transpose()?;
        let guard = pool.latch(page)?;
        let content = guard.page();
        let chains = if content.is_leaf() { overflow::chains_of(content) } else { Vec::new() };
        pool.free_page(&change_guard, guard)?;
        if let Some(content) = above_content {
            match content.count() {
                0 => content.set_link(0),
                count => content.remove(count - 1),
            }
        }
        unlinked(&chains, parent.is_none());
        Ok(())
    }
}
