//! From leaf to leaf: the neighbors of a leaf, found through its parent.
//!
//! Above: scans and cursors. Below: descents from the root.
//!
//! Leaves are not linked (BTREE-3). A scan remembers the parent of its leaf and the leaf's index
//! there. The child beside it is the next leaf if it begins, or ends, with the fence that the scan
//! reached (BTREE-1); then it does not matter which page the parent is. Otherwise the scan descends
//! from the root.

use super::Tree;
use crate::access::Direction;
use crate::buffer::{Pool, ReadGuard};
use crate::error::Result;
use crate::page::{Page, PageId};

/// The likely position of a leaf: its parent and its index among the children.
#[derive(Clone, Copy, Debug, Default)]
pub struct SiblingHint {
    /// Zero means unknown.
    parent: PageId,
    at: usize,
}

impl SiblingHint {
    /// Returns the index of the child on that side of the leaf, if there can be one.
    #[inline]
    fn beside(self, direction: Direction) -> Option<usize> {
        match direction {
            _ if self.parent == 0 => None,
            Direction::Forward => Some(self.at + 1),
            Direction::Backward => self.at.checked_sub(1),
        }
    }
}

/// A slot of a leaf, and the leaf's version when it was read.
#[derive(Clone, Copy, Debug)]
pub struct LeafSlot {
    leaf: PageId,
    version: u64,
    pub slot: usize,
}

impl LeafSlot {
    /// Returns a slot of the leaf as it is now.
    #[inline]
    pub fn of(leaf: &ReadGuard<'_>, slot: usize) -> LeafSlot {
        LeafSlot { leaf: leaf.id, version: leaf.version(), slot }
    }

    /// Returns the leaf and the slot if the leaf has not changed since.
    #[inline]
    pub fn unchanged<'p>(&self, pool: &'p Pool, tree: Tree) -> Option<(ReadGuard<'p>, usize)> {
        let guard = pool.read(self.leaf).ok()?;
        let is_same = guard.version() == self.version && guard.page.tree() == tree.id;
        is_same.then_some((guard, self.slot))
    }
}

impl Tree {
    /// Returns the leaf for `key`, and whether the leaf begins with that key. First examines the
    /// leaf after that of the hint, which is then moved.
    pub fn leaf_after<'p>(
        &self,
        pool: &'p Pool,
        key: &[u8],
        hint: &mut SiblingHint,
    ) -> Result<(ReadGuard<'p>, bool)> {
        let begins = |page: Page<'_>| page.starts_with_key(key);
        if let Some(guard) = self.sibling(pool, hint, Direction::Forward, begins) {
            return Ok((guard, true));
        }
        let child_of = |node: &ReadGuard<'_>| match key {
            [] => node.page.child_at(0),
            _ => node.page.child_for(key),
        };
        let (parent, leaf) = self.descend(pool, 0, child_of)?;
        *hint = parent.map_or(SiblingHint::default(), |parent| SiblingHint {
            parent: parent.id,
            at: match key {
                [] => 0,
                _ => parent.page.search(key).map_or_else(|at| at, |at| at + 1),
            },
        });
        let starts = leaf.page.starts_with_key(key);
        Ok((leaf, starts))
    }

    /// Returns the leaf that holds the keys just below `key`, or the last leaf if `key` is `None`.
    /// First examines the leaf before that of the hint, which is then moved.
    pub fn leaf_before<'p>(
        &self,
        pool: &'p Pool,
        key: Option<&[u8]>,
        hint: &mut SiblingHint,
    ) -> Result<ReadGuard<'p>> {
        let ends = |page: Page<'_>| key.is_some_and(|key| page.ends_with_key(key));
        if let Some(guard) = self.sibling(pool, hint, Direction::Backward, ends) {
            return Ok(guard);
        }
        let (parent, leaf) = self.descend(pool, 0, |node| node.page.child_before(key))?;
        *hint = parent.map_or(SiblingHint::default(), |parent| SiblingHint {
            parent: parent.id,
            at: match key {
                None => parent.page.count(),
                Some(key) => parent.page.search(key).unwrap_or_else(|at| at),
            },
        });
        Ok(leaf)
    }

    /// Asks the processor to fetch the fences, header and slots of the leaf where a scan probably
    /// goes on, so that they arrive while the scan reads its present leaf, of `slots` records. Also
    /// asks for the page table's entry of the leaf after that one: the next call needs it.
    #[inline]
    pub fn prefetch_sibling(
        &self,
        pool: &Pool,
        hint: &SiblingHint,
        direction: Direction,
        slots: usize,
    ) {
        let Some(parent) = pool.read_resident(hint.parent) else { return };
        let child = |at: usize| (at <= parent.page.count()).then(|| parent.page.child_at(at));
        let next = hint.beside(direction);
        let after_next = next.and_then(|at| SiblingHint { at, ..*hint }.beside(direction));
        after_next.and_then(child).into_iter().for_each(|page| pool.prefetch_entry(page));
        if let Some(leaf) = next.and_then(child).and_then(|page| pool.read_resident(page)) {
            leaf.page.prefetch_slots(slots);
        }
    }

    /// Returns the leaf beside that of the hint, if it is a leaf of this tree with the wanted
    /// fence. Then moves the hint there.
    #[inline]
    fn sibling<'p>(
        &self,
        pool: &'p Pool,
        hint: &mut SiblingHint,
        direction: Direction,
        has_fence: impl Fn(Page<'_>) -> bool,
    ) -> Option<ReadGuard<'p>> {
        let at = hint.beside(direction)?;
        let parent = pool.read_resident(hint.parent)?;
        if at > parent.page.count() {
            return None;
        }
        let guard = pool.read_resident(parent.page.child_at(at))?;
        let page = guard.page;
        page.fetch_slots();
        let is_it = page.is_leaf() && page.tree() == self.id && has_fence(page);
        if !is_it || !guard.validate() {
            return None;
        }
        hint.at = at;
        Some(guard)
    }
}
