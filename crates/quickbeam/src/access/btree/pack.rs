//! Packing: sparse leaves are merged, or filled with records of their right neighbors.
//!
//! Above: compaction. Below: merges, shifts and the buffer pool.
//!
//! Only children of one parent are packed with each other. One call holds one change guard and the
//! latches of three pages, so readers, writers and checkpoints wait no longer than for a split.

use super::Tree;
use super::merge::check_distinct;
use super::shift::{Cut, Neighbors};
use crate::buffer::{ChangeGuard, Pool, WriteGuard};
use crate::error::Result;
use crate::page::HEADER_BYTES;

/// A leaf with less than one part in `SPACIOUS` free is not packed.
const SPACIOUS: usize = 4;

/// Packing leaves one part in `SPARE` of a leaf free, so that the next insertion does not split it.
/// It leaves nothing free if the records are longer than that.
const SPARE: usize = 12;

/// How far compaction packs the leaves of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Merges neighbors that fit in one leaf. The result has room, so that insertions at random
    /// places do not split it again.
    Merge,
    /// Also moves records of the right neighbor to the left one.
    Fill,
}

/// What [`Tree::pack_leaf`] did.
#[derive(Debug, PartialEq, Eq)]
pub struct Packed {
    /// A key of the leaf to pack next; `None` after the last one.
    pub next: Option<Vec<u8>>,
    /// Pages freed.
    pub merged: usize,
    /// Pages changed.
    pub changed: usize,
}

impl Packed {
    fn unchanged(next: Option<Vec<u8>>) -> Packed {
        Packed { next, merged: 0, changed: 0 }
    }
}

impl Tree {
    /// Packs the leaf for `key` with its right neighbor, if the leaf has much free space.
    pub fn pack_leaf(
        &self,
        pool: &Pool,
        stripe: usize,
        key: &[u8],
        packing: Packing,
    ) -> Result<Packed> {
        let change_guard = pool.enter(stripe);
        loop {
            let (parent, leaf) = self.descend(pool, 0, |node| node.page.child_for(key))?;
            let is_packed = leaf.page.used_bytes() + leaf.page.size() / SPACIOUS > leaf.page.size();
            let next = leaf.page.upper_fence_bytes();
            let leaf_id = leaf.id;
            if !leaf.validate() {
                continue;
            }
            let Some(parent) = parent.filter(|_| !is_packed && next.is_some()) else {
                return Ok(Packed::unchanged(next));
            };
            let Some(parent) = parent.upgrade() else { continue };
            let Some(index) = parent.page().index_of_child(leaf_id) else { continue };
            if index == parent.page().count() {
                return Ok(Packed::unchanged(next));
            }
            let right = parent.page().child_at(index + 1);
            check_distinct(parent.id, leaf_id, right)?;
            let pair = [pool.latch(leaf_id)?, pool.latch(right)?];
            return self.pack_pair(pool, &change_guard, parent, index, pair, packing);
        }
    }

    /// Packs the children `index` and `index + 1` of a parent.
    fn pack_pair(
        &self,
        pool: &Pool,
        change_guard: &ChangeGuard,
        parent: WriteGuard<'_>,
        index: usize,
        [left, right]: [WriteGuard<'_>; 2],
        packing: Packing,
    ) -> Result<Packed> {
        for leaf in [&left, &right] {
            if leaf.page().has_tombstones() {
                let is_dead = |version| pool.transactions.is_visible_to_all(version);
                leaf.write(change_guard)?.remove_dead(is_dead);
            }
        }
        let key = left.page().lower_fence_bytes();
        let next = left.page().upper_fence_bytes();
        let spare = left.page().space_to_keep(SPARE);
        // Leaves of a hash tree cover rounded ranges of hash values, which its directory relies on
        // for speed.
        if packing == Packing::Fill && self.method.is_ordered() {
            let room =
                (pool.page_size - HEADER_BYTES - spare).saturating_sub(left.page().used_bytes());
            if right.page().used_bytes() > room {
                let neighbors =
                    Neighbors { parent: &parent, separator_at: index, left: &left, right: &right };
                let moved = move_records(pool, change_guard, &neighbors, room)?;
                return Ok(Packed { next, merged: 0, changed: if moved { 3 } else { 0 } });
            }
        }
        if !self.join(pool, change_guard, &parent, index, [left, right], spare)? {
            return Ok(Packed::unchanged(next));
        }
        drop(parent);
        self.merge_from(pool, change_guard, 1, &key)?;
        Ok(Packed { next: Some(key), merged: 1, changed: 3 })
    }
}

/// Moves the first records of the right leaf, at most `room` bytes of them, to the end of the left
/// one. Returns false, changing nothing, if none fits or the parent has no space for the new
/// separator.
fn move_records(
    pool: &Pool,
    change_guard: &ChangeGuard,
    neighbors: &Neighbors<'_>,
    room: usize,
) -> Result<bool> {
    let source = neighbors.right.page();
    let mut bytes = 0;
    let fits = |position: &usize| {
        bytes += source.record_bytes(*position) + 8;
        bytes <= room
    };
    let mut count = (0..source.count().saturating_sub(1)).take_while(fits).count();
    // The separator may be longer than the old one, and the prefix shorter: try fewer records.
    while count > 0 {
        if neighbors.divide(pool, change_guard, Cut::InRight(count), None)? {
            return Ok(true);
        }
        count = count * 3 / 4;
    }
    Ok(false)
}
