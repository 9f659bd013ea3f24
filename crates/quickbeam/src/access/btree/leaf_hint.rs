//! Leaf hints: the position of the last key found, where the next search begins.

use super::Tree;
use crate::page::PageId;

/// Position of the last key found in a tree. The next key is often next to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafHint {
    pub(super) tree: u32,
    pub(super) leaf: PageId,
    /// The position after the one found.
    pub hint: usize,
}

/// Leaf hints for a few trees, so that a transaction that alternates between a table and its
/// indexes finds its position in each.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafHints([LeafHint; 4]);

impl LeafHints {
    /// Returns the hint for a tree. It may point into another tree.
    #[inline]
    pub fn of(&mut self, tree: Tree) -> &mut LeafHint {
        &mut self.0[tree.id as usize % 4]
    }
}

impl LeafHint {
    /// Creates a hint that points to a leaf, which need not exist.
    pub fn at(tree: Tree, leaf: PageId) -> LeafHint {
        LeafHint { tree: tree.id, leaf, hint: 0 }
    }

    /// Returns the leaf of the hint.
    pub fn leaf(&self) -> PageId {
        self.leaf
    }

    /// Returns whether the hint points to a leaf of that tree.
    #[inline]
    pub fn is_in(&self, tree: Tree) -> bool {
        self.tree == tree.id
    }
}
