//! Splits: a full page becomes two, and their parent gets the separator between them.

use super::{LeafHint, NewRecord, Tree};
use crate::buffer::{ChangeGuard, Pool, ReadGuard, WriteGuard};
use crate::error::{Error, Result};
use crate::page::{Page, PageId, PageKind, Scratch};

/// The separator of the two halves of a page, which are in scratch memory.
struct SplitPoint {
    separator: Vec<u8>,
}

impl Tree {
    /// Makes space for a new record in the leaf of the hint, which covers it and is full: moves
    /// records to a neighbor, or splits the leaf as [`split`](Self::split) does.
    pub fn make_space(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        record: NewRecord<'_>,
        leaf_hint: &mut LeafHint,
    ) -> Result<()> {
        if self.shift(pool, change_guard, record, leaf_hint.leaf)? {
            return Ok(());
        }
        self.split(pool, change_guard, record.key, leaf_hint)
    }

    /// Splits the leaf of the hint, which covers `key` and has no space for a value that grows: the
    /// values of its neighbors will grow as well. If another leaf covers `key` by now, changes
    /// nothing and resets the hint, so that the next search begins at the root.
    pub fn split(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        key: &[u8],
        leaf_hint: &mut LeafHint,
    ) -> Result<()> {
        if !self.split_level(pool, change_guard, 0, key, Some(leaf_hint.leaf))? {
            *leaf_hint = LeafHint::default();
        }
        Ok(())
    }

    /// Splits the page for `key` at `level`. Returns false, changing nothing, if that page is not
    /// `full`.
    fn split_level(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        level: u8,
        key: &[u8],
        full: Option<PageId>,
    ) -> Result<bool> {
        loop {
            let (parent, node) = self.descend(pool, level, |node| node.page.child_for(key))?;
            if full.is_some_and(|full| full != node.id) {
                return Ok(false);
            }
            let Some(parent) = parent else {
                self.grow_root(pool, change_guard, node)?;
                continue;
            };
            let Some(parent) = parent.upgrade() else { continue };
            let Some(node) = node.upgrade() else { continue };
            let split = Scratch::with(pool.page_size, |left| {
                Scratch::with(pool.page_size, |right| {
                    let cut = split_page(node.page(), key, left, right)?;
                    // The leaf was emptied since it was full. With at most one record, nothing
                    // would move to the left half and two separators would be equal; but the leaf
                    // has free space now.
                    if node.page().is_leaf() && cut.separator <= node.page().lower_fence_bytes() {
                        return Ok(true);
                    }
                    let need = parent.page().inner_need(cut.separator.len());
                    if parent.page().free_bytes() < need {
                        return Ok(false);
                    }
                    install_halves(pool, change_guard, &parent, &node, &cut, left, right)?;
                    Ok(true)
                })
            })?;
            if split {
                return Ok(true);
            }
            drop((node, parent));
            self.split_level(pool, change_guard, level + 1, key, None)?;
        }
    }

    /// Splits the tree's last leaf after all of its records, at a separator greater than each of
    /// them, for future records. Returns false, changing nothing, if that needs more than a leaf
    /// and space in its parent.
    pub fn split_after_last(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        separator: &[u8],
    ) -> Result<bool> {
        let (parent, node) = self.descend(pool, 0, |node| node.page.child_for(separator))?;
        let Some(parent) = parent.and_then(ReadGuard::upgrade) else { return Ok(false) };
        let Some(node) = node.upgrade() else { return Ok(false) };
        let page = node.page();
        let count = page.count();
        let is_after_last = count > 0 && page.key(count - 1)[..] < *separator;
        if !is_after_last
            || !page.is_open_end()
            || parent.page().free_bytes() < parent.page().inner_need(separator.len())
        {
            return Ok(false);
        }
        Scratch::with(pool.page_size, |left| {
            Scratch::with(pool.page_size, |right| {
                if !try_split_at(page, count, separator, left, right) {
                    return Ok(false);
                }
                let cut = SplitPoint { separator: separator.to_vec() };
                install_halves(pool, change_guard, &parent, &node, &cut, left, right)?;
                Ok(true)
            })
        })
    }

    /// Moves the root's content into a new child (BTREE-2).
    fn grow_root(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        root: ReadGuard<'_>,
    ) -> Result<()> {
        let Some(root) = root.upgrade() else { return Ok(()) };
        let page = root.write(change_guard)?;
        let (kind, level) = (page.kind().unwrap_or(PageKind::Empty), page.level());
        let child = pool.new_page(change_guard, kind, self.id, level)?;
        let child_id = child.id;
        child.page().copy_content_from(page);
        child.page().set_page_id(child_id);
        page.initialize(root.id, PageKind::Inner, self.id, level + 1);
        page.set_inner_fences(Some(b""), Some(None));
        page.set_link(child_id);
        invariant!(BTREE_2, page.page_id() == self.root, "the root of tree {} moved", self.id);
        Ok(())
    }
}

/// Splits `node` into `left` and `right`. If a half does not fit, because keys became fences, takes
/// the nearest split point that fits. So of records that arrive in order all but the last few stay
/// in the left page.
fn split_page(node: Page<'_>, key: &[u8], left: Page<'_>, right: Page<'_>) -> Result<SplitPoint> {
    let position = node.search(key).unwrap_or_else(|at| at);
    let first = if node.is_leaf() {
        node.leaf_split_point(position, key)
    } else {
        node.inner_split_point(position)
    };
    if try_split_at(node, first.0, &first.1, left, right) {
        return Ok(SplitPoint { separator: first.1 });
    }
    let mut others: Vec<usize> = (1..node.count()).collect();
    others.sort_by_key(|at| at.abs_diff(first.0));
    for at in others {
        let separator = node.separator_at(at);
        if try_split_at(node, at, &separator, left, right) {
            return Ok(SplitPoint { separator });
        }
    }
    Err(Error::page(node.page_id(), "the page cannot be split"))
}

/// Tries the split that an insertion of `key` would make.
#[cfg(any(test, feature = "fuzzing"))]
pub fn try_split(node: Page<'_>, key: &[u8], left: Page<'_>, right: Page<'_>) -> bool {
    split_page(node, key, left, right).is_ok()
}

fn try_split_at(
    node: Page<'_>,
    at: usize,
    separator: &[u8],
    left: Page<'_>,
    right: Page<'_>,
) -> bool {
    let kind = node.kind().unwrap_or(PageKind::Empty);
    let count = node.count();
    for half in [left, right] {
        half.initialize(node.page_id(), kind, node.tree(), node.level());
    }
    if node.is_leaf() {
        let lower = node.lower_fence_bytes();
        let upper = node.upper_fence_bytes();
        for half in [left, right] {
            half.set_versioned(node.is_versioned());
            half.set_hashed(node.is_hashed());
        }
        let longest = node.size() - crate::page::HEADER_BYTES;
        if lower.len() + separator.len() + 16 > longest {
            return false;
        }
        left.set_fences(&lower, Some(separator));
        right.set_fences(separator, upper.as_deref());
        left.append_range(node, 0..at) && right.append_range(node, at..count)
    } else {
        let fenced = node.is_fenced();
        let lower = fenced.then(|| node.lower_fence_bytes());
        let upper = fenced.then(|| node.upper_fence_bytes());
        left.set_inner_fences(lower.as_deref(), Some(Some(separator)));
        right.set_inner_fences(Some(separator), upper.as_ref().map(|upper| upper.as_deref()));
        left.set_link(node.link());
        right.set_link(node.child_at(at + 1));
        left.append_range(node, 0..at) && right.append_range(node, at + 1..count)
    }
}

/// Returns whether the separator lies between the fences of a leaf.
fn is_inside(leaf: Page<'_>, separator: &[u8]) -> bool {
    let upper = leaf.upper_fence_bytes();
    leaf.lower_fence_bytes()[..] < *separator && upper.is_none_or(|upper| *separator < upper[..])
}

/// Stores the halves. Changes nothing before all latched pages are prepared, and cannot fail after
/// the new page exists.
fn install_halves(
    pool: &Pool,
    change_guard: &ChangeGuard,
    parent: &WriteGuard<'_>,
    node: &WriteGuard<'_>,
    cut: &SplitPoint,
    left: Page<'_>,
    right: Page<'_>,
) -> Result<()> {
    // A damaged page may hold other keys than its parent leads to it for.
    let at = match parent.page().search(&cut.separator) {
        Err(at) if parent.page().child_at(at) == node.id => at,
        _ => return Err(Error::page(node.id, "its keys are not those that its parent leads to")),
    };
    let parent_page = parent.write(change_guard)?;
    let node_page = node.write(change_guard)?;
    let kind = node_page.kind().unwrap_or(PageKind::Empty);
    invariant!(
        BTREE_1,
        !node_page.is_leaf() || is_inside(node_page, &cut.separator),
        "leaf {} is split outside its fences",
        node.id
    );
    invariant!(
        BTREE_3,
        !node_page.is_leaf() || (left.link() == 0 && right.link() == 0),
        "leaf {} is linked to another",
        node.id
    );
    invariant!(
        BTREE_4,
        parent_page.index_of_child(node.id).is_some(),
        "page {} is latched with page {}, which is not its parent",
        node.id,
        parent.id
    );
    let sibling = pool.new_page(change_guard, kind, node_page.tree(), node_page.level())?;
    sibling.page().copy_content_from(right);
    sibling.page().set_page_id(sibling.id);
    node_page.copy_content_from(left);
    if parent_page.insert_separator(at, &cut.separator, sibling.id) {
        Ok(())
    } else {
        Err(Error::page(parent.id, "no room for a separator where there was room"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::limits::fits_inline;
    use crate::page::key_limit;
    use proptest::prelude::*;

    const PAGE_SIZE: usize = 4096;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(Vec<u8>, usize),
        Remove(Vec<u8>),
        /// Empties the leaf that covers the key.
        Empty(Vec<u8>),
    }

    /// Keys that share long prefixes, and short keys between them.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let limit = key_limit(PAGE_SIZE);
        prop_oneof![
            3 => (1u8..4, 0u8..12).prop_map(move |(byte, last)| {
                let mut key = vec![byte; limit - 1];
                key.push(last);
                key
            }),
            1 => (1u8..4, 0..limit).prop_map(|(byte, length)| vec![byte; length]),
            3 => prop::collection::vec(0u8..5, 0..4),
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (key(), 0..PAGE_SIZE / 2).prop_map(|(key, length)| Step::Insert(key, length)),
            2 => key().prop_map(|key| {
                let length = longest_value(&key);
                Step::Insert(key, length)
            }),
            1 => key().prop_map(Step::Remove),
            1 => key().prop_map(Step::Empty),
        ]
    }

    fn longest_value(key: &[u8]) -> usize {
        let fits = |length: &usize| fits_inline(PAGE_SIZE, key, *length);
        (0..PAGE_SIZE / 2).rev().find(fits).unwrap()
    }

    fn empty_leaf(is_versioned: bool, lower: &[u8], upper: Option<&[u8]>) -> Scratch {
        let leaf = Scratch::new(PAGE_SIZE);
        leaf.page().initialize(1, PageKind::Leaf, 1, 0);
        leaf.page().set_versioned(is_versioned);
        leaf.page().set_fences(lower, upper);
        leaf
    }

    fn covering<'a>(leaves: &'a [Scratch], key: &[u8]) -> Page<'a> {
        leaves.iter().map(Scratch::page).find(|page| page.covers(key)).unwrap()
    }

    fn insert(leaves: &mut Vec<Scratch>, key: &[u8], value: &[u8]) {
        for _ in 0..16 {
            let at = leaves.iter().position(|leaf| leaf.page().covers(key)).unwrap();
            let page = leaves[at].page();
            let done = match page.search(key) {
                Ok(position) => page.replace_record(position, 7, 0, value),
                Err(position) => page.insert_record(position, key, 7, 0, value),
            };
            if done {
                return;
            }
            let (left, right) = (Scratch::new(PAGE_SIZE), Scratch::new(PAGE_SIZE));
            split_page(page, key, left.page(), right.page()).unwrap();
            leaves.splice(at..=at, [left, right]);
        }
        panic!("no space for a key of {} and a value of {} bytes", key.len(), value.len());
    }

    #[test]
    fn long_record_replaces_a_short_one_between_long_fences() {
        let limit = key_limit(PAGE_SIZE);
        let key = [1, 2];
        let value = vec![3; longest_value(&key)];
        let mut leaves = vec![empty_leaf(true, &vec![1; limit], Some(&vec![2; limit]))];
        insert(&mut leaves, &key, &value[..16]);
        assert!(!leaves[0].page().can_replace(0, value.len()));
        insert(&mut leaves, &key, &value);
        assert_eq!(leaves[1].page().record(0).value_length, value.len());
    }

    proptest! {
        /// Leaves without merges keep the long fences of removed records.
        #[test]
        fn splits_make_space_for_every_record(
            steps in prop::collection::vec(step(), 1..150),
            is_versioned in any::<bool>(),
        ) {
            let mut leaves = vec![empty_leaf(is_versioned, b"", None)];
            let mut expected = std::collections::BTreeMap::new();
            for step in steps {
                match step {
                    Step::Insert(key, length) if fits_inline(PAGE_SIZE, &key, length) => {
                        insert(&mut leaves, &key, &vec![1; length]);
                        expected.insert(key, length);
                    }
                    Step::Insert(..) => {}
                    Step::Remove(key) => {
                        if let Ok(position) = covering(&leaves, &key).search(&key) {
                            covering(&leaves, &key).remove(position);
                        }
                        expected.remove(&key);
                    }
                    Step::Empty(key) => {
                        let page = covering(&leaves, &key);
                        (0..page.count()).rev().for_each(|position| page.remove(position));
                        expected.retain(|key, _| !page.covers(key));
                    }
                }
            }
            let mut found = Vec::new();
            for page in leaves.iter().map(Scratch::page) {
                prop_assert_eq!(page.first_disorder(), None);
                let records = 0..page.count();
                found.extend(records.map(|at| (page.key(at), page.record(at).value_length)));
            }
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
