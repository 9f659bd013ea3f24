//! The entries of a row in an inverted index: one for each key of the indexed value.
//!
//! Above: changes of rows, the filling of indexes, verification. Below: the index's tree. The key
//! of an entry is the key of the value and then that of the row. In an index of several columns the
//! number of the column comes first. The value of an entry says where the row's key begins, as in a
//! range index that is not unique.

use quickbeam::query_layer::DatabaseExt;
use quickbeam::{Transaction, invariant};

use super::index_evaluator::EntryForm;
use super::table_handle::IndexHandle;
use crate::error::Result;
use crate::schema::encoding::inverted::keys_of;
use crate::schema::encoding::key_encoding::KeyRange;
use crate::schema::encoding::row_format::StoredRow;
use crate::schema::{EXPRESSIONS, OperatorClasses};
use crate::types::Value;

/// The entries of a row in an inverted index, in their order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct InvertedEntries(Vec<(Vec<u8>, Vec<u8>)>);

impl InvertedEntries {
    /// Returns the keys and values of the entries.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(key, value)| (&key[..], &value[..]))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is an entry of that key and value.
    pub fn contains(&self, key: &[u8], value: &[u8]) -> bool {
        let found = self.0.binary_search_by(|entry| entry.0[..].cmp(key));
        found.is_ok_and(|at| self.0.get(at).is_some_and(|entry| entry.1 == value))
    }

    /// Calls `each` with the keys and values that `other` does not have.
    fn each_missing_in(
        &self,
        other: &InvertedEntries,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let missing = self.iter().filter(|(key, value)| !other.contains(key, value));
        for (key, value) in missing {
            each(key, value)?;
        }
        Ok(())
    }
}

impl IndexHandle {
    /// Returns the entries of a row in this inverted index.
    pub(crate) fn inverted_entries(
        &self,
        classes: OperatorClasses,
        row: StoredRow<'_>,
        row_key: &[u8],
    ) -> Result<InvertedEntries> {
        let Some(computed) = self.computed(row)? else { return Ok(InvertedEntries::default()) };
        let mut entries = Vec::new();
        for (column, (number, class)) in self.index.columns.iter().zip(classes.iter().enumerate()) {
            let value = match column.position.checked_sub(EXPRESSIONS) {
                None => row.get(column.position)?,
                Some(number) => computed.get(number).map(Value::as_ref).unwrap_or_default(),
            };
            for mut key in keys_of(class, value)? {
                if let Some(prefix) = classes.prefix(number) {
                    key.insert(0, prefix);
                }
                key.extend_from_slice(row_key);
                let mut place = Vec::new();
                self.encode_place(&key, row_key, EntryForm::Inverted, &mut place)?;
                entries.push((key, place));
            }
        }
        Ok(InvertedEntries(entries))
    }

    /// Returns about how many entries there are in a range of keys.
    pub(crate) fn estimated_entries(
        &self,
        transaction: &Transaction,
        range: &KeyRange,
    ) -> Result<f64> {
        let before = |key: &[u8]| self.entries.estimate_before(transaction, key);
        let end = range.high.as_deref().map_or(Ok(1.0), before)?;
        let part = (end - before(&range.low)?).clamp(0.0, 1.0);
        Ok(self.entries.estimate(transaction)? * part)
    }

    /// Adds the entries of a row.
    pub(crate) fn add_inverted(
        &self,
        transaction: &Transaction,
        entries: &InvertedEntries,
    ) -> Result<()> {
        let mut all = entries.iter();
        all.try_for_each(|(key, value)| Ok(self.entries.put(transaction, key, value)?))
    }

    /// Removes the entries of a row.
    pub(crate) fn remove_inverted(
        &self,
        transaction: &Transaction,
        entries: &InvertedEntries,
    ) -> Result<()> {
        entries.iter().try_for_each(|(key, _)| self.remove_key(transaction, key))
    }

    fn remove_key(&self, transaction: &Transaction, key: &[u8]) -> Result<()> {
        let was_there = self.entries.delete(transaction, key)?;
        invariant!(TABLE_1, was_there, "no entry of a row in index {}", self.index.name);
        Ok(())
    }

    /// Replaces the entries of a row by those of its new values. Entries of both stay.
    pub(crate) fn replace_inverted(
        &self,
        transaction: &Transaction,
        old: &InvertedEntries,
        new: &InvertedEntries,
    ) -> Result<()> {
        old.each_missing_in(new, |key, _| self.remove_key(transaction, key))?;
        new.each_missing_in(old, |key, value| Ok(self.entries.put(transaction, key, value)?))
    }
}
