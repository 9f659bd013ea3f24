//! Where a key was found last, to look there first.

use super::Tree;
use crate::page::PageId;

/// Where the last key was found: the next one is often beside it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafHint {
    pub(super) tree: u32,
    pub(super) leaf: PageId,
    /// The position after the one found.
    pub hint: usize,
}

/// Fingers in a few trees: who goes from a table to its indexes and back finds its place again.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafHints([LeafHint; 4]);

impl LeafHints {
    /// The finger for a tree. It may point into another one.
    #[inline]
    pub fn of(&mut self, tree: Tree) -> &mut LeafHint {
        &mut self.0[tree.id as usize % 4]
    }
}

impl LeafHint {
    /// One that points to a leaf, which need not be there.
    pub fn at(tree: Tree, leaf: PageId) -> LeafHint {
        LeafHint { tree: tree.id, leaf, hint: 0 }
    }

    /// The leaf that it points to.
    pub fn leaf(&self) -> PageId {
        self.leaf
    }

    /// Whether it points to a leaf of that tree.
    #[inline]
    pub fn is_in(&self, tree: Tree) -> bool {
        self.tree == tree.id
    }
}
