//! Shifts: one of two neighboring leaves gives records to the other.
//!
//! Above: splits, which first try a shift, and packing. Below: the buffer pool.
//!
//! - SHIFT-1: a shift changes no record, and the common fence of the two leaves stays between the
//!   records of the left one and those of the right one.
//! - SHIFT-2: a shift that makes space for a record leaves that space in the leaf that covers the
//!   record's key. So two full leaves never give each other the same records in turn.
//!
//! Leaves of a tree that grows by splits alone are 69 % full on average if keys arrive in random
//! order (Yao, "On random 2-3 trees", 1978). A B*-tree first shares records with a neighbor (Knuth,
//! "The Art of Computer Programming", volume 3, 6.2.4). This fills leaves better, so more of the
//! tree fits in memory. A shift copies two leaves and gains less space than a split, so insertions
//! shift records only after the cache was full once: before that, fuller leaves save no reads and
//! no writes of evicted pages.

use super::Tree;
use super::merge::check_distinct;
use crate::access::Direction;
use crate::buffer::{ChangeGuard, Pool, WriteGuard};
use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::page::{Page, PageId, PageKind, Scratch};

/// A full leaf gives records to a neighbor that is less full by at least one part in
/// `LEAST_SURPLUS` of a page, so that the leaf then has space for several records.
const LEAST_SURPLUS: usize = 4;

/// After a shift each of the two leaves has at least one part in `LEAST_SPACE` of a page free, if
/// its records are not longer than that.
const LEAST_SPACE: usize = 16;

/// A record for which a shift makes space.
#[derive(Clone, Copy)]
pub struct NewRecord<'a> {
    /// The record's key.
    pub key: &'a [u8],
    /// The bytes of its stored value.
    pub value_length: usize,
}

impl NewRecord<'_> {
    /// Returns whether the leaf covers the record and has space for it.
    fn fits_in(&self, leaf: Page<'_>) -> bool {
        leaf.covers(self.key)
            && leaf.free_bytes() >= leaf.leaf_need(self.key.len(), self.value_length)
    }
}

/// Two neighboring leaves, latched with their parent.
pub(super) struct Neighbors<'a> {
    pub parent: &'a WriteGuard<'a>,
    /// The position of the separator between the two.
    pub separator_at: usize,
    pub left: &'a WriteGuard<'a>,
    pub right: &'a WriteGuard<'a>,
}

/// Where two neighbors are divided: at the first record of the right one.
#[derive(Clone, Copy)]
pub(super) enum Cut {
    /// The record at this position of the left leaf, which gives it and all after it.
    InLeft(usize),
    /// The record at this position of the right leaf, which gives all before it.
    InRight(usize),
}

impl Tree {
    /// Moves records of the full leaf that covers `record` to the leaf before or after it, if the
    /// cache was full once. That leaf must have the same parent, be in memory and have enough free
    /// space. Returns false if nothing was moved. Returns true if the leaf that covers `record` now
    /// has space for it (SHIFT-2).
    pub(super) fn shift(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        record: NewRecord<'_>,
        full: PageId,
    ) -> Result<bool> {
        if !pool.has_been_full() {
            return Ok(false);
        }
        let (parent, leaf) = self.descend(pool, 0, |node| node.page.child_for(record.key))?;
        let page = leaf.page;
        // Leaves of a hash tree cover hash values in powers of two, and the tree's last leaf is
        // split so that records in order fill it.
        if leaf.id != full || page.is_hashed() || page.is_open_end() || page.count() < 2 {
            return Ok(false);
        }
        let Some(parent) = parent.and_then(|parent| parent.upgrade()) else { return Ok(false) };
        let Some(leaf) = leaf.upgrade() else { return Ok(false) };
        let Some(index) = parent.page().index_of_child(full) else { return Ok(false) };
        for direction in [Direction::Forward, Direction::Backward] {
            let beside = match direction {
                Direction::Forward => index + 1,
                Direction::Backward => index.wrapping_sub(1),
            };
            if beside > parent.page().count() {
                continue;
            }
            let neighbor = parent.page().child_at(beside);
            check_distinct(parent.id, full, neighbor)?;
            let Some(neighbor) = pool.read_resident(neighbor).and_then(|page| page.upgrade())
            else {
                continue;
            };
            let need = leaf.page().leaf_need(record.key.len(), record.value_length);
            let Some(moved) = surplus(leaf.page(), need, neighbor.page(), direction) else {
                continue;
            };
            let (separator_at, left, right, cut) = match direction {
                Direction::Forward => {
                    (index, &leaf, &neighbor, Cut::InLeft(leaf.page().count() - moved))
                }
                Direction::Backward => (index - 1, &neighbor, &leaf, Cut::InRight(moved)),
            };
            let neighbors = Neighbors { parent: &parent, separator_at, left, right };
            if neighbors.divide(pool, change_guard, cut, Some(record))? {
                invariant!(
                    SHIFT_2,
                    [left, right].iter().any(|leaf| record.fits_in(leaf.page())),
                    "leaves {} and {} have no space for the record after a shift",
                    left.id,
                    right.id
                );
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Neighbors<'_> {
    /// Divides the records of the two at `cut`. Returns false, changing nothing, if they do not fit
    /// under their new fences, the parent has no space for the new separator, or `new` would have
    /// no space.
    pub(super) fn divide(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        cut: Cut,
        new: Option<NewRecord<'_>>,
    ) -> Result<bool> {
        let separator = match cut {
            Cut::InLeft(at) => self.left.page().separator_at(at),
            Cut::InRight(at) => self.right.page().separator_at(at),
        };
        let parent = self.parent.page();
        if parent.free_bytes() < parent.inner_need(separator.len()) {
            return Ok(false);
        }
        Scratch::with(pool.page_size, |left| {
            Scratch::with(pool.page_size, |right| {
                if !self.fill(left, right, cut, &separator)
                    || new.is_some_and(|record| !have_space([left, right], record))
                {
                    return Ok(false);
                }
                self.install(change_guard, [left, right], &separator)?;
                Ok(true)
            })
        })
    }

    /// Fills two scratch pages with the records as divided. Returns false if they do not fit.
    fn fill(&self, left: Page<'_>, right: Page<'_>, cut: Cut, separator: &[u8]) -> bool {
        let (old_left, old_right) = (self.left.page(), self.right.page());
        let start = |page: Page<'_>, like: Page<'_>, lower: &[u8], upper: Option<&[u8]>| {
            page.initialize(like.page_id(), PageKind::Leaf, like.tree(), like.level());
            page.set_versioned(like.is_versioned());
            page.set_hashed(like.is_hashed());
            page.set_fences(lower, upper);
        };
        start(left, old_left, &old_left.lower_fence_bytes(), Some(separator));
        start(right, old_right, separator, old_right.upper_fence_bytes().as_deref());
        match cut {
            Cut::InLeft(at) => {
                left.append_range(old_left, 0..at)
                    && right.append_range(old_left, at..old_left.count())
                    && right.append_range(old_right, 0..old_right.count())
            }
            Cut::InRight(at) => {
                left.append_range(old_left, 0..old_left.count())
                    && left.append_range(old_right, 0..at)
                    && right.append_range(old_right, at..old_right.count())
            }
        }
    }

    /// Stores the divided leaves and the separator between them.
    fn install(
        &self,
        change_guard: &ChangeGuard,
        [left, right]: [Page<'_>; 2],
        separator: &[u8],
    ) -> Result<()> {
        let parent_page = self.parent.write(change_guard)?;
        let left_page = self.left.write(change_guard)?;
        let right_page = self.right.write(change_guard)?;
        invariant!(
            SHIFT_1,
            left.count() + right.count() == left_page.count() + right_page.count()
                && left.key(left.count() - 1)[..] < *separator
                && *separator <= right.key(0)[..],
            "records of leaves {} and {} are divided wrongly",
            self.left.id,
            self.right.id
        );
        left_page.copy_content_from(left);
        right_page.copy_content_from(right);
        if planted(Canary::SeparatorNotMoved) {
            return Ok(());
        }
        parent_page.remove(self.separator_at);
        if parent_page.insert_separator(self.separator_at, separator, self.right.id) {
            Ok(())
        } else {
            Err(Error::page(self.parent.id, "no room for a separator where there was room"))
        }
    }
}

/// Returns whether the one of two divided leaves that covers `record` has space for it, and both
/// have some for other records. Their prefixes differ from those before, so their records have
/// other sizes.
fn have_space(leaves: [Page<'_>; 2], record: NewRecord<'_>) -> bool {
    if planted(Canary::ShiftWithoutSpace) {
        return true;
    }
    leaves.iter().any(|leaf| record.fits_in(*leaf))
        && leaves.iter().all(|leaf| leaf.free_bytes() >= leaf.space_to_keep(LEAST_SPACE))
}

/// Returns how many records of `full`, from its end on the neighbor's side, make the two equally
/// full when they move and `full` gets a record of `need` bytes. Returns `None` if the neighbor has
/// too little free space.
fn surplus(full: Page<'_>, need: usize, neighbor: Page<'_>, direction: Direction) -> Option<usize> {
    let more = full.used_bytes().checked_sub(neighbor.used_bytes())?;
    if more < full.size() / LEAST_SURPLUS {
        return None;
    }
    let count = full.count();
    let mut left = (more + need) / 2;
    let mut moved = 0;
    while moved + 1 < count {
        let position = match direction {
            Direction::Forward => count - 1 - moved,
            Direction::Backward => moved,
        };
        let Some(rest) = left.checked_sub(full.record_bytes(position) + 8) else { break };
        (left, moved) = (rest, moved + 1);
    }
    (moved > 0).then_some(moved)
}
