//! Rows found by inverted indexes.
//!
//! Above: the table scan, which fetches the rows and checks their conditions. Below: the entries of
//! the index. All entries with a key of the index lie together, in the order of the keys of their
//! rows. So conditions on keys become operations on sorted lists of row keys.

use std::collections::BTreeMap;
use std::ops::Bound;

use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};

use crate::error::{Result, SqlError};
use crate::execute::row::Context;
use crate::execute::row::memory::MemoryCharge;
use crate::plan::{InvertedCondition, InvertedPath};
use crate::schema::encoding::inverted::{KeyCondition, condition_on_keys};
use crate::table::IndexHandle;

/// How many times more entries than rows found so far a condition has before each row's entry is
/// looked up instead of reading all entries.
const LOOKUP_RATIO: f64 = 8.0;

/// The state of a scan by inverted indexes.
#[derive(Debug)]
pub(super) struct InvertedScan {
    path: InvertedPath,
    rows: RowKeys,
    next: usize,
    charge: MemoryCharge,
    /// The conditions say nothing about the keys: every row is read.
    pub reads_all: bool,
}

/// Distinct keys of rows, in order.
#[derive(Debug, Default, PartialEq, Eq)]
struct RowKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl RowKeys {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before));
        self.bytes.get(start.copied().unwrap_or(0)..end)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Returns the keys of all of these lists, which need not be sorted.
    fn merged(lists: &[RowKeys]) -> RowKeys {
        let mut all: Vec<&[u8]> = lists.iter().flat_map(RowKeys::iter).collect();
        all.sort_unstable();
        all.dedup();
        let mut merged = RowKeys::default();
        all.into_iter().for_each(|key| merged.push(key));
        merged
    }

    /// Returns the keys that are in both lists.
    fn common(&self, other: &RowKeys) -> RowKeys {
        let (mut common, mut others) = (RowKeys::default(), other.iter().peekable());
        for key in self.iter() {
            while others.next_if(|other| *other < key).is_some() {}
            if others.peek() == Some(&key) {
                common.push(key);
            }
        }
        common
    }

    fn memory(&self) -> usize {
        self.bytes.len() + size_of_val(&self.ends[..])
    }
}

impl InvertedScan {
    pub fn new(path: InvertedPath) -> InvertedScan {
        let (rows, charge) = (RowKeys::default(), MemoryCharge::default());
        InvertedScan { path, rows, next: 0, charge, reads_all: false }
    }

    /// Finds the rows. Returns false if there are none.
    pub fn start(&mut self, indexes: &[IndexHandle], context: &Context<'_>) -> Result<bool> {
        self.next = 0;
        self.rows = RowKeys::default();
        self.charge.clear(context);
        // Conditions on one index are joined: rows that one has found are looked up for the others.
        let mut by_index: BTreeMap<usize, Vec<KeyCondition>> = BTreeMap::new();
        let mut by_several = Vec::new();
        for condition in &self.path.conditions {
            let Some(parts) = keys_of(condition, indexes, context)? else { continue };
            if parts.len() < 2 {
                parts.into_iter().for_each(|(index, keys)| {
                    by_index.entry(index).or_default().push(keys);
                });
            } else {
                by_several.push(parts);
            }
        }
        self.reads_all = by_index.is_empty() && by_several.is_empty();
        let joined = by_index.into_iter().filter_map(|(index, conditions)| {
            Some(BTreeMap::from([(index, KeyCondition::all_of(conditions)?)]))
        });
        let mut rows: Option<RowKeys> = None;
        for parts in joined.chain(by_several) {
            let mut lists = Vec::with_capacity(parts.len());
            for (index, keys) in &parts {
                let index = indexes.get(*index).ok_or_else(no_index)?;
                let charge = &mut self.charge;
                let mut finder = RowFinder { index, context, charge, batch: ScanBatch::default() };
                lists.push(finder.find(keys)?);
            }
            let found = match lists.len() {
                1 => lists.remove(0),
                _ => RowKeys::merged(&lists),
            };
            rows = Some(match rows {
                Some(before) => before.common(&found),
                None => found,
            });
        }
        self.rows = rows.unwrap_or_default();
        Ok(self.reads_all || self.rows.len() > 0)
    }

    /// Returns the key of the next row.
    pub fn next_key(&mut self) -> Option<&[u8]> {
        let key = self.rows.get(self.next)?;
        self.next += 1;
        Some(key)
    }
}

#[cold]
fn no_index() -> SqlError {
    SqlError::internal("a scan by an index that is not there")
}

/// Returns what a condition asks of the keys of each index, of which one has to hold. Returns
/// `None` if a part of it says nothing about keys.
fn keys_of(
    condition: &InvertedCondition,
    indexes: &[IndexHandle],
    context: &Context<'_>,
) -> Result<Option<BTreeMap<usize, KeyCondition>>> {
    let mut lists: BTreeMap<usize, Vec<KeyCondition>> = BTreeMap::new();
    for part in &condition.parts {
        let index = indexes.get(part.index).ok_or_else(no_index)?;
        let classes = index.index.inverted().ok_or_else(no_index)?;
        let class = classes.get(part.key).ok_or_else(no_index)?;
        let operand = part.operand.evaluate(&context.frame())?;
        match condition_on_keys(class, part.operator, operand.as_ref())? {
            Some(keys) => {
                let keys = keys.after(classes.prefix(part.key));
                lists.entry(part.index).or_default().push(keys);
            }
            None => return Ok(None),
        }
    }
    Ok(Some(lists.into_iter().map(|(index, list)| (index, KeyCondition::any_of(list))).collect()))
}

/// Finds rows by the keys that the index has of them.
struct RowFinder<'f, 'c> {
    index: &'f IndexHandle,
    context: &'f Context<'c>,
    charge: &'f mut MemoryCharge,
    batch: ScanBatch,
}

impl RowFinder<'_, '_> {
    fn find(&mut self, condition: &KeyCondition) -> Result<RowKeys> {
        match condition {
            KeyCondition::Key(key) => self.read(key),
            KeyCondition::Prefix(key) => {
                let found = self.read(key)?;
                self.charged(RowKeys::merged(&[found]))
            }
            KeyCondition::Any(list) => {
                let found = list.iter().map(|part| self.find(part)).collect::<Result<Vec<_>>>()?;
                self.charged(RowKeys::merged(&found))
            }
            KeyCondition::All(list) => self.find_all(list),
        }
    }

    fn charged(&mut self, rows: RowKeys) -> Result<RowKeys> {
        self.charge.keep(rows.memory(), self.context)?;
        Ok(rows)
    }

    /// Reads the entries whose keys begin so.
    fn read(&mut self, beginning: &[u8]) -> Result<RowKeys> {
        let range = KeyCondition::range_of(beginning);
        let high = range.high.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut scan = Scan::new(Bound::Included(&range.low), high);
        let mut found = RowKeys::default();
        let (index, batch) = (self.index, &mut self.batch);
        loop {
            let more = index.entries.scan(self.context.transaction, &mut scan, batch);
            if !more.map_err(|error| index.failed(error))? {
                return Ok(found);
            }
            let before = found.memory();
            for number in 0..batch.len() {
                found.push(index.row_key(batch.key(number), batch.value(number))?);
            }
            self.charge.keep(found.memory() - before, self.context)?;
            self.context.check_cancelled()?;
        }
    }

    /// Finds the rows of which all conditions hold: those of the condition with the fewest entries
    /// first.
    fn find_all(&mut self, list: &[KeyCondition]) -> Result<RowKeys> {
        let (index, transaction) = (self.index, self.context.transaction);
        let mut ordered = Vec::with_capacity(list.len());
        for condition in list {
            let count =
                condition.estimate(&mut |range| index.estimated_entries(transaction, range))?;
            ordered.push((count, condition));
        }
        ordered.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut ordered = ordered.into_iter();
        let Some((_, first)) = ordered.next() else { return Ok(RowKeys::default()) };
        let mut found = self.find(first)?;
        for (count, condition) in ordered {
            if found.len() == 0 {
                break;
            }
            found = match count > found.len() as f64 * LOOKUP_RATIO {
                true => self.looked_up(&found, condition)?,
                false => found.common(&self.find(condition)?),
            };
        }
        Ok(found)
    }

    /// Returns the rows that have the entries that a condition asks for.
    fn looked_up(&self, rows: &RowKeys, condition: &KeyCondition) -> Result<RowKeys> {
        let mut found = RowKeys::default();
        for row in rows.iter() {
            self.context.check_cancelled()?;
            if self.holds(condition, row)? {
                found.push(row);
            }
        }
        Ok(found)
    }

    /// Returns whether a condition may hold for a row. Keys that begin so are not looked for.
    fn holds(&self, condition: &KeyCondition, row: &[u8]) -> Result<bool> {
        let mut outcomes = match condition {
            KeyCondition::Key(key) => {
                let entry = [&key[..], row].concat();
                let found = self.index.entries.exists(self.context.transaction, &entry);
                return found.map_err(|error| self.index.failed(error));
            }
            KeyCondition::Prefix(_) => return Ok(true),
            KeyCondition::All(list) | KeyCondition::Any(list) => {
                list.iter().map(|part| self.holds(part, row))
            }
        };
        let is_all = matches!(condition, KeyCondition::All(_));
        let decided = outcomes.find(|outcome| outcome.as_ref().map_or(true, |it| *it != is_all));
        decided.unwrap_or(Ok(is_all))
    }
}
