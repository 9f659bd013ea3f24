//! Page splits and merges: choosing a split point, and filling a new page with records of another.

use std::ops::Range;

use super::header::common_prefix;
use super::search::head_of;
use super::words::{Page, big_endian};
use super::{HEADER_BYTES, PageId};

/// Returns the shortest key that is greater than `left` and not greater than `right` (suffix
/// truncation).
pub fn shortest_separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let length = (common_prefix(left, right) + 1).min(right.len());
    right[..length].to_vec()
}

impl Page<'_> {
    /// Returns the key at `position`.
    pub fn key(self, position: usize) -> Vec<u8> {
        let mut out = Vec::new();
        self.append_key(position, &mut out);
        out
    }

    /// Returns the split point of a leaf that has no space for `key` at `position`: the first
    /// record of the right page, and the separator. Records appended in order at the tree's end
    /// leave full pages.
    pub fn leaf_split_point(self, position: usize, key: &[u8]) -> (usize, Vec<u8>) {
        let count = self.count();
        if count == 0 {
            return (0, key.to_vec());
        }
        if self.is_hashed()
            && let Some(cut) = self.hashed_split_point(position == count && self.is_open_end())
        {
            return cut;
        }
        if position == count && (self.is_open_end() || count == 1) {
            let ahead = self.separator_ahead(key);
            return (count, ahead.unwrap_or_else(|| shortest_separator(&self.key(count - 1), key)));
        }
        if count == 1 {
            return (0, self.key(0));
        }
        let at = self.middle();
        (at, shortest_separator(&self.key(at - 1), &self.key(at)))
    }

    /// Returns a separator far enough after `key`, the new last key of the tree, that future
    /// records fill this leaf. It assumes that they are as far apart as the present ones. With an
    /// upper fence the leaf has a prefix, and so more free space. Returns `None` if the distances
    /// are not numeric or no space would be gained.
    fn separator_ahead(self, key: &[u8]) -> Option<Vec<u8>> {
        let count = self.count();
        let (first, last) = (self.key(0), self.key(count - 1));
        let alike = common_prefix(&first, &last);
        let number = |key: &[u8]| big_endian(&key[alike..]);
        let gap = number(&last).saturating_sub(number(&first)).checked_div(count as u64 - 1)?;
        let lowest = gap.checked_ilog2()?;
        // The prefix will be about the part that the keys share; the head of the rest is in the
        // slot.
        let rest = |prefix: usize| last.len().saturating_sub(prefix + 4);
        let saved = rest(self.prefix_length()).saturating_sub(rest(alike)) & !7;
        let each = (self.used_bytes() / count).saturating_sub(saved);
        let fences = 2 * last.len().next_multiple_of(8);
        let room = self.size().checked_sub(HEADER_BYTES + fences + each * count)?;
        // Slightly less than the free space: a leaf that fills up earlier is split in the middle.
        let more = (room / each.max(1) * 7 / 8) as u64;
        let ahead = number(&last).checked_add(gap.checked_mul(more)?)? >> lowest << lowest;
        let mut separator = last[..alike].to_vec();
        separator.extend(ahead.to_be_bytes());
        while separator.len() > alike && separator.last() == Some(&0) {
            separator.pop();
        }
        (*separator > *key).then_some(separator)
    }

    /// Returns the split point of a leaf whose keys begin with hash values: the roundest hash value
    /// between its first and its last quarter. This is the middle of the leaf's hash range, unless
    /// records are long or few. So nearly every leaf covers a number of hash values that is a power
    /// of two, and a directory with one entry for each such range is exact. If records arrive in
    /// order at the tree's end, the split point is within the last quarter, which leaves full
    /// pages. Returns `None` if all hash values there are equal.
    fn hashed_split_point(self, in_order: bool) -> Option<(usize, Vec<u8>)> {
        let count = self.count();
        let hash_at = |position| {
            let key = self.key(position);
            key.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
        };
        let quarter = (count / 4).min(count.saturating_sub(2));
        let (from, to) = match in_order {
            true => (count - 1 - quarter, count - 1),
            false => (quarter, count - 1 - quarter),
        };
        let (low, high) = (hash_at(from), hash_at(to));
        let differing = (low ^ high).checked_ilog2().filter(|_| low < high)?;
        let round = high >> differing << differing;
        let first = (from + 1..=to).find(|&at| hash_at(at) >= round)?;
        let mut separator = round.to_be_bytes().to_vec();
        while separator.last() == Some(&0) {
            separator.pop();
        }
        Some((first, separator))
    }

    /// Returns the first position of the right half by bytes; at least one record stays on each
    /// side.
    fn middle(self) -> usize {
        let count = self.count();
        let half = self.live_bytes() / 2;
        let mut bytes = 0;
        for position in 0..count {
            bytes += self.record_bytes(position);
            if bytes >= half {
                return (position + 1).clamp(1, count - 1);
            }
        }
        count / 2
    }

    /// Returns the separator for splitting the page before `position`, which is not zero.
    pub fn separator_at(self, position: usize) -> Vec<u8> {
        if self.is_leaf() {
            shortest_separator(&self.key(position - 1), &self.key(position))
        } else {
            self.key(position)
        }
    }

    /// Returns the bytes of slots and records.
    pub fn used_bytes(self) -> usize {
        self.live_bytes() + self.count() * 8
    }

    /// Returns the bytes to keep free for insertions: one part in `parts` of the page, or none if
    /// the records are longer on average.
    pub fn space_to_keep(self, parts: usize) -> usize {
        let space = self.size() / parts;
        if self.used_bytes() > self.count() * space { 0 } else { space }
    }

    /// Returns the split point of an inner page: the position of the separator that moves up, and
    /// that separator.
    pub fn inner_split_point(self, position: usize) -> (usize, Vec<u8>) {
        let count = self.count();
        let at = if position == count && self.is_open_end() && count > 2 {
            count - 1
        } else if count > 1 {
            self.middle().min(count - 1)
        } else {
            0
        };
        (at, self.key(at))
    }

    /// Appends records `range` of `source`. Their keys lie within this page's fences and after its
    /// present keys. Returns false if they do not fit; the page is then of no use.
    pub fn append_range(self, source: Page<'_>, range: Range<usize>) -> bool {
        let more = self.prefix_length().checked_sub(source.prefix_length());
        if self.is_leaf()
            && let Some(more) = more
        {
            return self.append_records(source, range, more);
        }
        let mut key = Vec::new();
        for position in range {
            key.clear();
            source.append_key(position, &mut key);
            let fits = if self.is_leaf() {
                self.append_record_of(source, position, &key)
            } else {
                self.place_separator(self.count(), &key, source.child_at(position + 1))
            };
            if !fits {
                return false;
            }
        }
        if !self.is_leaf() {
            self.share_among();
        }
        true
    }

    /// Sets the fences of an inner page if they are short; prefix truncation is not worth long
    /// fences.
    pub fn set_inner_fences(self, lower: Option<&[u8]>, upper: Option<Option<&[u8]>>) {
        let limit = self.size() / 16;
        if let (Some(lower), Some(upper)) = (lower, upper)
            && lower.len() <= limit
            && upper.is_none_or(|upper| upper.len() <= limit)
        {
            self.set_fences(lower, upper);
        }
    }

    /// Returns the index of the child `page` in this inner page; index 0 is left of the first
    /// separator.
    pub fn index_of_child(self, page: PageId) -> Option<usize> {
        (0..=self.count()).find(|&index| self.child_at(index) == page)
    }

    /// Returns the first position whose key is out of order, outside the fences, or does not match
    /// its key head.
    pub fn first_disorder(self) -> Option<usize> {
        let mut before = Vec::new();
        let mut key = Vec::new();
        for position in 0..self.count() {
            key.clear();
            self.append_key(position, &mut key);
            let outside = self.is_fenced() && !self.covers(&key);
            let head = head_of(key.get(self.prefix_length()..).unwrap_or_default());
            if (position > 0 && key <= before) || outside || head != self.slot(position).head() {
                return Some(position);
            }
            std::mem::swap(&mut before, &mut key);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::Scratch;
    use super::super::{PageKind, TOMBSTONE};
    use super::*;
    use proptest::prelude::*;

    /// Creates a versioned leaf with these fences.
    fn leaf<'a>(scratch: &'a Scratch, lower: &[u8], upper: &[u8]) -> Page<'a> {
        let page = scratch.page();
        page.initialize(1, PageKind::Leaf, 1, 0);
        page.set_versioned(true);
        page.set_fences(lower, Some(upper));
        page
    }

    proptest! {
        /// Copies records from a leaf with a prefix of `common` bytes to one with a prefix of
        /// `alike` bytes: longer, equal or shorter.
        #[test]
        fn records_are_unchanged_under_another_prefix(
            prefix in prop::collection::vec(0u8..2, 14),
            common in 0usize..14,
            alike in 0usize..14,
            records in prop::collection::btree_map(
                prop::collection::vec(0u8..3, 0..12),
                (prop::collection::vec(any::<u8>(), 0..20), 0usize..20, 0u8..4),
                0..30,
            ),
        ) {
            let (one, other) = (Scratch::new(8192), Scratch::new(8192));
            let fences = |alike: usize| (prefix[..alike].to_vec(), [&prefix[..alike], &[9]].concat());
            let (lower, upper) = fences(common);
            let source = leaf(&one, &lower, &upper);
            for (at, (tail, (value, shorter, flags))) in records.iter().enumerate() {
                let key = [&prefix[..], tail].concat();
                prop_assert!(source.insert_record(at, &key, 7 + at as u64, *flags, value));
                // The shortened value keeps its reserved space.
                let left = &value[..value.len().min(*shorter)];
                prop_assert!(source.replace_record(at, 7 + at as u64, *flags, left));
            }
            let (lower, upper) = fences(alike);
            let target = leaf(&other, &lower, &upper);
            prop_assert!(target.append_range(source, 0..records.len()));
            prop_assert!(target.is_ordered());
            for (at, (tail, (value, shorter, flags))) in records.iter().enumerate() {
                let record = target.record(at);
                let mut found = Vec::new();
                target.append_to(record.value_offset, record.value_length, &mut found);
                prop_assert_eq!(target.key(at), [&prefix[..], tail].concat());
                prop_assert_eq!(&found[..], &value[..value.len().min(*shorter)]);
                prop_assert_eq!((record.version, record.flags), (7 + at as u64, *flags));
                prop_assert_eq!(target.value_room(at), source.value_room(at));
                prop_assert_eq!(target.search(&target.key(at)), Ok(at));
            }
            let dead = records.values().filter(|(_, _, flags)| flags & TOMBSTONE != 0).count();
            prop_assert_eq!(target.has_tombstones(), dead > 0);
        }
    }
}
