//! Merges: a nearly empty page is merged with its neighbor, and the parent loses the separator.

use super::Tree;
use crate::buffer::{ChangeGuard, Pool, ReadGuard, WriteGuard};
use crate::error::{Error, Result};
use crate::page::{HEADER_BYTES, Page, PageId, PageKind, Scratch};

/// A page that is filled to less than one part in `SPARSE` is merged with its neighbor.
const SPARSE: usize = 4;

/// Returns whether the page should be merged with a neighbor.
pub fn is_sparse(page: Page<'_>) -> bool {
    page.used_bytes() < page.size() / SPARSE
}

impl Tree {
    /// Merges the leaf for `key` with a neighbor, if it is sparse and both fit in one page; then
    /// its ancestors.
    pub fn merge(&self, pool: &Pool, change_guard: &ChangeGuard, key: &[u8]) -> Result<()> {
        self.merge_from(pool, change_guard, 0, key)
    }

    /// Like [`merge`](Self::merge), beginning with the page at `level`.
    pub(super) fn merge_from(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        mut level: u8,
        key: &[u8],
    ) -> Result<()> {
        while self.merge_level(pool, change_guard, level, key)? {
            level += 1;
        }
        Ok(())
    }

    /// Merges one level. Returns true if the parent lost a child and should be examined next.
    fn merge_level(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        level: u8,
        key: &[u8],
    ) -> Result<bool> {
        loop {
            let (parent, node) = self.descend(pool, level, |node| node.page.child_for(key))?;
            let Some(parent) = parent else {
                return self.collapse_root(pool, change_guard, node).map(|()| false);
            };
            if !is_sparse(node.page) {
                return Ok(false);
            }
            let node_id = node.id;
            let Some(parent) = parent.upgrade() else { continue };
            let Some(index) = parent.page().index_of_child(node_id) else { continue };
            if parent.page().count() == 0 {
                return Ok(true);
            }
            // The pair to merge is (index, index + 1), or the pair before it for the last child.
            let first = index.min(parent.page().count() - 1);
            let (left, right) = (parent.page().child_at(first), parent.page().child_at(first + 1));
            check_distinct(parent.id, left, right)?;
            let left = pool.latch(left)?;
            let right = pool.latch(right)?;
            if !is_sparse(left.page()) && !is_sparse(right.page()) {
                return Ok(false);
            }
            let spare = spare(left.page(), right.page());
            return self.join(pool, change_guard, &parent, first, [left, right], spare);
        }
    }

    /// Merges the children `first` and `first + 1` of `parent`, if `spare` bytes stay free.
    pub(super) fn join(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        parent: &WriteGuard<'_>,
        first: usize,
        [left, right]: [WriteGuard<'_>; 2],
        spare: usize,
    ) -> Result<bool> {
        invariant!(
            BTREE_4,
            [left.id, right.id].iter().all(|id| parent.page().index_of_child(*id).is_some()),
            "pages {} and {} are latched with page {}, which is not their parent",
            left.id,
            right.id,
            parent.id
        );
        if !may_fit(left.page(), right.page(), spare) {
            return Ok(false);
        }
        let joined = Scratch::with(pool.page_size, |both| {
            if !fill(both, left.page(), right.page(), parent.page(), first)
                || both.free_bytes() < spare
            {
                return Ok(false);
            }
            let parent_page = parent.write(change_guard)?;
            let page = left.write(change_guard)?;
            right.write(change_guard)?;
            page.copy_content_from(both);
            parent_page.remove(first);
            Ok(true)
        })?;
        if joined {
            pool.free_page(change_guard, right)?;
        }
        Ok(joined)
    }

    /// Moves the content of the root's only child into the root (BTREE-2).
    fn collapse_root(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        root: ReadGuard<'_>,
    ) -> Result<()> {
        let Some(root) = root.upgrade() else { return Ok(()) };
        if root.page().is_leaf() || root.page().count() > 0 {
            return Ok(());
        }
        check_distinct(root.id, root.page().link(), 0)?;
        let child = pool.latch(root.page().link())?;
        let page = root.write(change_guard)?;
        child.write(change_guard)?;
        page.copy_content_from(child.page());
        page.set_page_id(root.id);
        invariant!(BTREE_2, root.id == self.root, "the root of tree {} moved", self.id);
        pool.free_page(change_guard, child)
    }
}

/// Fails if two of the pages are the same, because latching a page twice would deadlock.
pub(super) fn check_distinct(parent: PageId, left: PageId, right: PageId) -> Result<()> {
    if parent == left || parent == right || left == right {
        return Err(Error::page(parent, "a page is its own child, or a child of its twice"));
    }
    Ok(())
}

/// Returns the bytes that must stay free in a merged page: none if one of the two is empty. But an
/// empty last page of the tree is kept if the page before it is nearly full. Otherwise insertions
/// and deletions at the tree's end would merge and split the two repeatedly.
fn spare(left: Page<'_>, right: Page<'_>) -> usize {
    let one_is_empty = left.count() == 0 || (right.count() == 0 && !right.is_open_end());
    if one_is_empty { 0 } else { left.size() / SPARSE }
}

/// Returns false if two neighbors certainly do not fit in one page. The merged page has wider
/// fences and so no longer prefix: its records take no less space.
fn may_fit(left: Page<'_>, right: Page<'_>, spare: usize) -> bool {
    left.used_bytes() + right.used_bytes() + spare <= left.size() - HEADER_BYTES
}

/// Fills `both` with the content of two neighbors. Returns false if it does not fit.
fn fill(both: Page<'_>, left: Page<'_>, right: Page<'_>, parent: Page<'_>, first: usize) -> bool {
    let kind = left.kind().unwrap_or(PageKind::Empty);
    both.initialize(left.page_id(), kind, left.tree(), left.level());
    if left.is_leaf() {
        both.set_versioned(left.is_versioned());
        both.set_hashed(left.is_hashed());
        both.set_fences(&left.lower_fence_bytes(), right.upper_fence_bytes().as_deref());
        both.append_range(left, 0..left.count()) && both.append_range(right, 0..right.count())
    } else {
        let fenced = left.is_fenced() && right.is_fenced();
        let lower = fenced.then(|| left.lower_fence_bytes());
        let upper = fenced.then(|| right.upper_fence_bytes());
        both.set_inner_fences(lower.as_deref(), upper.as_ref().map(|upper| upper.as_deref()));
        both.set_link(left.link());
        both.append_range(left, 0..left.count())
            && both.insert_separator(both.count(), &parent.key(first), right.link())
            && both.append_range(right, 0..right.count())
    }
}
