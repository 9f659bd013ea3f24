//! Serializable: was everything that the transaction read still so when it committed?
//!
//! Reads are remembered twice: as leaves with the latch version seen, and as keys and ranges. If every leaf still has
//! its version nothing in it changed, and no key has to be looked at; for the transaction's own changes the version is taken
//! anew. Otherwise keys and ranges are looked up again.
//! That is done outside the critical section; inside it only the leaves' versions are compared once more, and that no
//! transaction that had changed something read, without having finished, has committed meanwhile.

use std::sync::Arc;

use super::{State, Transaction};
use crate::access::btree::{Finger, Tree};
use crate::error::{Error, Result};
use crate::page::{Page, PageId, compare_keys};
use crate::pool::Pool;
use crate::versions::{Writer, WriterState, entry_of, writer_of};
use crate::world::hooks::{Canary, planted};

/// Times that a commit looks its reads up again before it gives way.
const ATTEMPTS: usize = 16;

/// A change looks for its leaf among so many that were read last; transactions change what they have just read. Where more were
/// read, it is noted besides.
const RECENT_LEAVES: usize = 16;

/// Ranges whose memory is kept.
const SPARE_RANGES: usize = 4;

/// What a transaction read.
#[derive(Default)]
pub struct ReadSet {
    /// Leaves and the versions they had.
    leaves: Vec<(PageId, u64)>,
    /// Changes by the transaction itself, of leaves that may have been read.
    own: Vec<Own>,
    points: Vec<(Tree, usize, usize)>,
    ranges: Vec<Range>,
    /// Memory of ranges before.
    spare: Vec<Range>,
    keys: Vec<u8>,
    /// Some record read had a newer version, or one whose writer had not finished, or a change of it was rolled
    /// back: leaf versions do not tell enough.
    pub contested: bool,
}

/// A leaf that the transaction changed, and that nobody else changed between these two versions.
struct Own {
    leaf: PageId,
    before: u64,
    after: u64,
    /// Leaves that had been read then.
    read: usize,
}

struct Range {
    tree: Tree,
    low: Vec<u8>,
    high: High,
}

/// Where a range ends. Its memory is kept while it is not needed.
#[derive(Default)]
struct High {
    key: Vec<u8>,
    /// There is none: to the end of the tree.
    is_open: bool,
}

impl High {
    fn key(&self) -> Option<&[u8]> {
        if self.is_open { None } else { Some(&self.key) }
    }

    fn set(&mut self, key: Option<&[u8]>) {
        self.is_open = key.is_none();
        if let Some(key) = key {
            key.clone_into(&mut self.key);
        }
    }
}

/// The outcome of looking reads up again: what must still hold in the critical section.
#[derive(Default)]
pub struct Validated {
    leaves: Vec<(PageId, u64)>,
    unfinished: Vec<Arc<Writer>>,
}

impl ReadSet {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.ranges.is_empty()
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.leaves.clear();
        self.own.clear();
        self.points.clear();
        let room = SPARE_RANGES.saturating_sub(self.spare.len());
        self.spare.extend(self.ranges.drain(..).take(room));
        self.keys.clear();
        self.contested = false;
    }

    /// Bytes of memory kept.
    pub fn capacity(&self) -> usize {
        self.leaves.capacity() * size_of::<(PageId, u64)>()
            + self.own.capacity() * size_of::<Own>()
            + self.points.capacity() * size_of::<(Tree, usize, usize)>()
            + self.ranges.capacity() * size_of::<Range>()
            + self.keys.capacity()
    }

    /// Takes the memory of a validation back that has been passed.
    pub fn reuse(&mut self, validated: Validated) {
        if self.leaves.capacity() < validated.leaves.capacity() {
            self.leaves = validated.leaves;
        }
    }

    /// Notes that `key` was looked up in that leaf.
    #[inline]
    pub fn point(&mut self, tree: Tree, key: &[u8], leaf: PageId, version: u64) {
        self.leaf(leaf, version);
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.points.push((tree, start, key.len()));
    }

    /// Notes that it was told whether there is a record of `key`, by a change that was then rolled back.
    pub fn undone(&mut self, tree: Tree, key: &[u8]) {
        self.contested = true;
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        self.points.push((tree, start, key.len()));
    }

    #[inline]
    fn leaf(&mut self, leaf: PageId, version: u64) {
        if self.leaves.last() != Some(&(leaf, version)) {
            self.leaves.push((leaf, version));
        }
    }

    /// Notes that the transaction itself changed that leaf, which no one else had changed since it had the version `before`: if it was
    /// read then, it still is as it was read, but for that change.
    #[inline]
    pub fn changed(&mut self, leaf: PageId, before: u64, after: u64) {
        for seen in self.leaves.iter_mut().rev().take(RECENT_LEAVES) {
            if *seen == (leaf, before) {
                seen.1 = after;
            }
        }
        let read = self.leaves.len();
        if read <= RECENT_LEAVES {
            return;
        }
        match self.own.last_mut() {
            // No version between the two was noted.
            Some(last) if last.leaf == leaf && last.after == before && last.read == read => {
                last.after = after;
            }
            _ => self.own.push(Own { leaf, before, after, read }),
        }
    }

    /// Whether every leaf is as it was read, but for the transaction's own changes; their versions are then those of now.
    fn is_unchanged(&mut self, pool: &Pool) -> bool {
        // In the order in which they were made, for each leaf.
        self.own.sort_by_key(|own| own.leaf);
        let own = &self.own;
        self.leaves.iter_mut().all(|(leaf, version)| {
            if pool.has_content(*leaf, *version) {
                return true;
            }
            let first = own.partition_point(|own| own.leaf < *leaf);
            for change in own.iter().skip(first).take_while(|own| own.leaf == *leaf) {
                if change.before == *version {
                    *version = change.after;
                }
            }
            pool.has_content(*leaf, *version)
        })
    }

    /// Notes that all keys from `low` up to and including `high` (`None`: to the end) were seen, the last part of them in that leaf.
    pub fn range(
        &mut self,
        tree: Tree,
        low: &[u8],
        high: Option<&[u8]>,
        leaf: PageId,
        version: u64,
    ) {
        self.leaf(leaf, version);
        // A scan that goes on extends the range it made before.
        if let Some(last) = self.ranges.last_mut()
            && last.tree == tree
        {
            let is_past = |high: Option<&[u8]>, end: Option<&[u8]>| {
                end.is_some_and(|end| high.is_none_or(|high| compare_keys(high, end).is_gt()))
            };
            let end = last.high.key();
            let starts = compare_keys(low, &last.low);
            if starts.is_ge() && end.is_some_and(|end| compare_keys(low, end).is_le()) {
                if is_past(high, end) {
                    last.high.set(high);
                }
                return;
            }
            if starts.is_le() && high.is_some_and(|high| compare_keys(high, &last.low).is_ge()) {
                // What the transaction has deleted itself no longer stops a scan where the one before ended.
                if high.is_some() && is_past(high, end) {
                    last.high.set(high);
                }
                low.clone_into(&mut last.low);
                return;
            }
        }
        let empty = || Range { tree, low: Vec::new(), high: High::default() };
        let mut range = self.spare.pop().unwrap_or_else(empty);
        range.tree = tree;
        low.clone_into(&mut range.low);
        range.high.set(high);
        self.ranges.push(range);
    }
}

impl Validated {
    /// The check inside the critical section.
    pub fn holds(&self, pool: &Pool) -> bool {
        self.leaves.iter().all(|&(leaf, version)| pool.has_content(leaf, version))
            && !self.unfinished.iter().any(|w| matches!(w.state(), WriterState::Committed(_)))
    }
}

impl Transaction {
    /// Looks at what was read; an error when something of it has changed since the snapshot (TXN-4).
    pub(super) fn validate(&self, state: &mut State, attempts: usize) -> Result<Validated> {
        let mut validated = Validated::default();
        if !self.tracks_reads() && state.reads.is_empty() || planted(Canary::NotValidated) {
            return Ok(validated);
        }
        let pool = &self.inner().pool;
        if attempts == 0 && !state.reads.contested && state.reads.is_unchanged(pool) {
            validated.leaves = std::mem::take(&mut state.reads.leaves);
            return Ok(validated);
        }
        if attempts > ATTEMPTS {
            return Err(Error::SerializationFailure);
        }
        let reads = std::mem::take(&mut state.reads);
        for &(tree, start, length) in &reads.points {
            let key = reads.keys.get(start..start + length).unwrap_or_default();
            self.validate_point(state, tree, key, &mut validated)?;
        }
        for range in &reads.ranges {
            self.validate_range(state, range, &mut validated)?;
        }
        state.reads = reads;
        Ok(validated)
    }

    /// Whether the newest version of the record at `position` was to be seen, or is our own.
    fn validate_record(
        &self,
        state: &State,
        page: Page<'_>,
        position: usize,
        validated: &mut Validated,
    ) -> Result<()> {
        let registry = &self.inner().registry;
        // Read committed moves its snapshot: what was read is as old as the first read remembered, at most.
        let since = state.tracked_since.unwrap_or(state.snapshot);
        let mut version = page.record(position).version;
        let mut value = Vec::new();
        while !registry.is_plain(version) {
            let Some((writer, base)) = registry.lookup(writer_of(version)) else { break };
            if state.own() == Some(writer.id()) {
                break;
            }
            match writer.state() {
                WriterState::Committed(timestamp) if timestamp > since => {
                    return Err(Error::SerializationFailure);
                }
                WriterState::Committed(_) => break,
                WriterState::Active | WriterState::Aborted => {}
            }
            // What an unfinished transaction replaced may itself be newer than what was read.
            let before = writer.before(base + entry_of(version), &mut value);
            validated.unfinished.push(writer);
            let Some(before) = before.filter(|before| before.present) else { break };
            version = before.version;
            value.clear();
        }
        Ok(())
    }

    fn validate_point(
        &self,
        state: &State,
        tree: Tree,
        key: &[u8],
        validated: &mut Validated,
    ) -> Result<()> {
        let mut finger = Finger::default();
        loop {
            let (guard, found) = tree.locate(&self.inner().pool, key, &mut finger)?;
            let unfinished = validated.unfinished.len();
            let checked = match found {
                Ok(position) => self.validate_record(state, guard.page, position, validated),
                Err(_) => Ok(()),
            };
            if !guard.validate() {
                validated.unfinished.truncate(unfinished);
                continue;
            }
            validated.leaves.push((guard.id, guard.content_version()));
            return checked;
        }
    }

    fn validate_range(
        &self,
        state: &State,
        range: &Range,
        validated: &mut Validated,
    ) -> Result<()> {
        let mut low = range.low.clone();
        loop {
            let guard = range.tree.leaf(&self.inner().pool, &low)?;
            let page = guard.page;
            let unfinished = validated.unfinished.len();
            let start = page.search(&low).unwrap_or_else(|at| at);
            let end = match range.high.key() {
                Some(high) if page.covers(high) => {
                    page.search(high).map_or_else(|at| at, |at| at + 1)
                }
                _ => page.count(),
            };
            let last = page.is_open_end() || range.high.key().is_some_and(|high| page.covers(high));
            let next = page.upper_fence_bytes();
            // All of them, also where the leaf is as it was when something in it was read: a split may have brought a record here
            // that was read, and changed since, in another leaf.
            let checked =
                (start..end).try_for_each(|at| self.validate_record(state, page, at, validated));
            if !guard.validate() {
                validated.unfinished.truncate(unfinished);
                continue;
            }
            checked?;
            validated.leaves.push((guard.id, guard.content_version()));
            match next {
                Some(fence) if !last => low = range.tree.onward(guard.id, &low, fence)?,
                _ => return Ok(()),
            }
        }
    }
}
