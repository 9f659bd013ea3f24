//! The B+tree: ordered records, found from the root by optimistic lock coupling.
//!
//! - BTREE-1: a page holds exactly the keys from its lower fence up to, not including, its upper fence; the fences of
//!   the children of an inner page are its separators. A leaf that covers a key is the one leaf for that key.
//! - BTREE-2: the root's page number never changes: it splits by moving its content down and collapses by taking it up.
//! - BTREE-3: leaves are not linked; a scan goes on by looking up the fence it came to.
//! - BTREE-4: latches are taken from the root down; a split or merge holds parent and children and nothing else.
//!
//! Sources: Leis, Scheibner, Kemper, Neumann, "The ART of Practical Synchronization" (2016) for optimistic lock
//! coupling; Graefe, "Modern B-Tree Techniques" (2011) for fences and truncation.

mod leaf_hint;
mod merge;
mod sample;
mod split;
mod verify;

use std::cmp::Ordering;

use crate::access::hash::HASH_BYTES;
use crate::access::overflow;
use crate::buffer::{ChangeGuard, Pool, ReadGuard};
use crate::error::{Error, Result};
use crate::options::AccessMethod;
use crate::page::{Page, PageId, PageKind, compare_keys};

pub use leaf_hint::{LeafHint, LeafHints};
pub use merge::is_sparse;
pub use sample::LeafSample;
#[cfg(any(test, feature = "fuzzing"))]
pub use split::try_split;

/// Deeper than any tree can be: a walk that comes here goes round in a circle.
const DEEPEST: usize = 64;

/// A tree: its number, its root, and what its keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The number, also written in every page.
    pub id: u32,
    /// The root page, the same for life (BTREE-2).
    pub root: PageId,
    /// How its records are found: whether its keys begin with hash values.
    pub method: AccessMethod,
}

/// Where the leaf after the last one probably is: which child of which page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neighbour {
    /// No page has the number zero.
    parent: PageId,
    at: usize,
}

fn astray(leaf: PageId) -> Error {
    Error::page(leaf, "the leaf is not the one for the keys that led to it")
}

impl Tree {
    /// A new, empty tree; `versioned` says whether its records carry version words.
    pub fn create(
        pool: &Pool,
        pass: &ChangeGuard,
        id: u32,
        method: AccessMethod,
        versioned: bool,
    ) -> Result<Tree> {
        let guard = pool.new_page(pass, PageKind::Leaf, id, 0)?;
        guard.page().set_versioned(versioned);
        guard.page().set_hashed(!method.is_ordered());
        guard.page().set_fences(b"", None);
        Ok(Tree { id, root: guard.id, method })
    }

    /// Bytes before each key that are not part of what the user calls the key (HASH-1).
    #[inline]
    pub fn key_start(&self) -> usize {
        match self.method {
            AccessMethod::BTree => 0,
            AccessMethod::Hash | AccessMethod::HashPrefix => HASH_BYTES,
        }
    }

    /// The page at `level` on the way to `key`, and its parent (`None` for the root). Both were unchanged when the
    /// page was reached.
    fn walk<'p>(
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
            return Err(Error::page(self.root, "the tree goes round in a circle"));
        }
    }

    /// The leaf for `key`.
    pub fn leaf<'p>(&self, pool: &'p Pool, key: &[u8]) -> Result<ReadGuard<'p>> {
        self.walk(pool, 0, |node| node.page.child_for(key)).map(|(_, leaf)| leaf)
    }

    /// The leaf for `key`, and whether it begins with that key. Looks first where the leaf after the last one probably is.
    pub fn leaf_after<'p>(
        &self,
        pool: &'p Pool,
        key: &[u8],
        neighbour: &mut Neighbour,
    ) -> Result<(ReadGuard<'p>, bool)> {
        if neighbour.parent != 0
            && let Some(parent) = pool.read_resident(neighbour.parent)
            && let Some(guard) = self.child_with(pool, parent.page, neighbour.at, key)
        {
            neighbour.at += 1;
            return Ok((guard, true));
        }
        let child_of = |node: &ReadGuard<'_>| match key {
            [] => node.page.child_at(0),
            _ => node.page.child_for(key),
        };
        let (parent, leaf) = self.walk(pool, 0, child_of)?;
        *neighbour = parent.map_or(Neighbour::default(), |parent| Neighbour {
            parent: parent.id,
            at: match key {
                [] => 1,
                _ => parent.page.search(key).map_or_else(|at| at, |at| at + 1) + 1,
            },
        });
        let starts = leaf.page.starts_with_key(key);
        Ok((leaf, starts))
    }

    /// That child of a page, if it is a leaf of this tree that begins with `key` (BTREE-1): then it does not matter what the page is.
    fn child_with<'p>(
        &self,
        pool: &'p Pool,
        parent: Page<'_>,
        at: usize,
        key: &[u8],
    ) -> Option<ReadGuard<'p>> {
        if at > parent.count() {
            return None;
        }
        let guard = pool.read_resident(parent.child_at(at))?;
        let page = guard.page;
        page.fetch_slots();
        let is_it = page.is_leaf() && page.tree() == self.id && page.starts_with_key(key);
        (is_it && guard.validate()).then_some(guard)
    }

    /// Makes sure that the fence of the leaf that a scan came to from `from`, behind which it goes on, is further on.
    /// So no scan goes round in a circle, whatever the leaves and their parents say of each other.
    #[inline]
    pub fn check_onward(&self, leaf: PageId, from: &[u8], fence: &[u8]) -> Result<()> {
        if compare_keys(fence, from).is_gt() { Ok(()) } else { Err(astray(leaf)) }
    }

    /// As [`check_onward`](Self::check_onward).
    pub fn onward(&self, leaf: PageId, from: &[u8], fence: Vec<u8>) -> Result<Vec<u8>> {
        self.check_onward(leaf, from, &fence).map(|()| fence)
    }

    /// Makes sure that a scan has got further: the key found compares to the one it came from in that way.
    #[inline]
    pub fn advanced(&self, leaf: PageId, found: &[u8], way: Ordering, from: &[u8]) -> Result<()> {
        if found.cmp(from) == way { Ok(()) } else { Err(astray(leaf)) }
    }

    /// As [`check_onward`](Self::check_onward) for a scan that goes back; `from` is the key it came from, and whether that key
    /// itself was wanted: then it may be the fence. From nowhere is from the end of the tree.
    pub fn check_backward(
        &self,
        leaf: PageId,
        from: Option<(&[u8], bool)>,
        fence: &[u8],
    ) -> Result<()> {
        let back = |(from, itself): (&[u8], bool)| fence < from || (itself && fence == from);
        if from.is_none_or(back) { Ok(()) } else { Err(astray(leaf)) }
    }

    /// The leaf that holds keys less than `key`, down to but not including it; the last leaf for no key.
    pub fn leaf_before<'p>(&self, pool: &'p Pool, key: Option<&[u8]>) -> Result<ReadGuard<'p>> {
        self.walk(pool, 0, |node| node.page.child_before(key)).map(|(_, leaf)| leaf)
    }

    /// The leaf for `key` and where in it the key is, or would be. Looks first where the finger points.
    #[inline(always)]
    pub fn locate<'p>(
        &self,
        pool: &'p Pool,
        key: &[u8],
        leaf_hint: &mut LeafHint,
    ) -> Result<(ReadGuard<'p>, std::result::Result<usize, usize>)> {
        if leaf_hint.tree == self.id
            && let Some(guard) = self.resident(pool, leaf_hint.leaf)
            && let Some(found) = self.near(&guard, key, leaf_hint.hint)
        {
            leaf_hint.hint = found.unwrap_or_else(|at| at) + 1;
            return Ok((guard, found));
        }
        self.locate_from_root(pool, key, leaf_hint)
    }

    /// The leaf that the finger points to, if it is in memory. In a hash tree it is probably none that was looked at of late: all that a
    /// search needs of it, slots and fences, is fetched at once.
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
            // Asked once, and behind all that was read: what changes nothing comes and goes without a trace.
            if !guard.validate() {
                continue;
            }
            let found = found.ok_or_else(|| astray(guard.id))?;
            let hint = found.unwrap_or_else(|at| at) + 1;
            *leaf_hint = LeafHint { tree: self.id, leaf: guard.id, hint };
            return Ok((guard, found));
        }
    }

    /// Where `key` is in that leaf, looking first where it probably is.
    #[inline(always)]
    fn search(&self, page: Page<'_>, key: &[u8], hint: usize) -> std::result::Result<usize, usize> {
        match self.method {
            AccessMethod::BTree => page.search_near(key, hint),
            AccessMethod::Hash | AccessMethod::HashPrefix => page.search_spread(key),
        }
    }

    /// Where `key` is in that leaf, if it is the leaf for it and has not changed meanwhile.
    #[inline(always)]
    fn near(
        &self,
        guard: &ReadGuard<'_>,
        key: &[u8],
        hint: usize,
    ) -> Option<std::result::Result<usize, usize>> {
        self.find(guard.page, key, hint).filter(|_| guard.validate())
    }

    /// Where `key` is in that page, if it is the leaf for it (BTREE-1).
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

    /// Frees one page of a tree that nobody uses any more: the last one that has no children. Returns whether
    /// the tree is gone. The tree is whole, only smaller, between two calls and in every checkpoint, so that
    /// freeing can go on after a crash.
    ///
    /// `unlinked` runs in the pass that frees the page. It gets the first pages of the overflow chains that only
    /// the freed page pointed to, and whether that page was the root. The caller frees the chains.
    pub fn free_last(
        &self,
        pool: &Pool,
        lane: usize,
        unlinked: impl FnOnce(&[PageId], bool),
    ) -> Result<bool> {
        let mut parent = None;
        let mut page = self.root;
        for _ in 0..DEEPEST {
            match self.last_child(pool, page)? {
                0 => {
                    self.free_childless(pool, lane, parent, page, unlinked)?;
                    return Ok(parent.is_none());
                }
                child => (parent, page) = (Some(page), child),
            }
        }
        Err(Error::page(self.root, "the tree goes round in a circle"))
    }

    /// The last child of a page, 0 if it has none.
    fn last_child(&self, pool: &Pool, page: PageId) -> Result<PageId> {
        let guard = pool.latch(page)?;
        let content = guard.page();
        if content.tree() != self.id {
            return Err(Error::page(page, format!("not a page of tree {}", self.id)));
        }
        Ok(if content.is_leaf() { 0 } else { content.child_at(content.count()) })
    }

    /// Frees a page without children and takes it out of its parent. Both are latched while their content is
    /// read: without a latch a page may be evicted, and its frame show another page.
    fn free_childless(
        &self,
        pool: &Pool,
        lane: usize,
        parent: Option<PageId>,
        page: PageId,
        unlinked: impl FnOnce(&[PageId], bool),
    ) -> Result<()> {
        let pass = pool.enter(lane);
        let above = parent.map(|parent| pool.latch(parent)).transpose()?;
        let above_content = above.as_ref().map(|guard| guard.write(&pass)).transpose()?;
        let guard = pool.latch(page)?;
        let content = guard.page();
        let chains = if content.is_leaf() { overflow::chains_of(content) } else { Vec::new() };
        pool.free_page(&pass, guard)?;
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
