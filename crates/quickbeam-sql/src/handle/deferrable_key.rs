//! The index of a key that is DEFERRABLE. Rows may have equal values until they are checked, so
//! each row has an entry of its own, as in an index that is not unique.

use std::ops::Bound;

use quickbeam::Transaction;
use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};

use super::index_evaluator::EntryForm;
use super::table_handle::{IndexHandle, TableHandle};
use crate::error::{Result, SqlError};
use crate::schema::encoding::StoredRow;
use crate::schema::encoding::key_encoding::prefix_end;

impl IndexHandle {
    /// Returns whether two rows have these encoded values.
    pub(crate) fn has_two(&self, transaction: &Transaction, values: &[u8]) -> Result<bool> {
        // The end of the range lies before other values: a row of those is no reason to validate
        // the read again.
        let mut end = values.to_vec();
        let high = if prefix_end(&mut end) { Bound::Excluded(&end[..]) } else { Bound::Unbounded };
        let mut scan = Scan::new(Bound::Included(values), high).without_keys().record_limit(2);
        let (mut entries, mut found) = (ScanBatch::default(), 0);
        while found < 2 && self.entries.scan(transaction, &mut scan, &mut entries)? {
            found += entries.len();
        }
        Ok(found > 1)
    }

    /// Calls `each` with the key and value of every entry that has the values of the one before it,
    /// until it returns false.
    pub(crate) fn each_duplicate(
        &self,
        transaction: &Transaction,
        table: &TableHandle,
        mut each: impl FnMut(&[u8], &[u8]) -> Result<bool>,
    ) -> Result<()> {
        let mut cursor = self.entries.cursor(transaction)?;
        let (mut more, mut before) = (cursor.first()?, Vec::new());
        while more {
            let (key, value) = (cursor.key(), cursor.value());
            let row_key = self.row_key(key, value)?;
            let values = &key[..key.len().saturating_sub(row_key.len())];
            if before == values
                && self.is_checked(transaction, table, row_key)?
                && !each(key, value)?
            {
                return Ok(());
            }
            before.clear();
            before.extend_from_slice(values);
            more = cursor.next()?;
        }
        Ok(())
    }

    /// Returns whether the values of a row are those of no other row: none of them is NULL.
    fn is_checked(
        &self,
        transaction: &Transaction,
        table: &TableHandle,
        row_key: &[u8],
    ) -> Result<bool> {
        let (mut row, mut entry) = (Vec::new(), Vec::new());
        if !table.get(transaction, row_key, &mut row)? {
            return Err(SqlError::corrupted("an entry of an index without its row"));
        }
        let row = StoredRow::new(table.table(), &row)?;
        Ok(self.encode_entry(row, &[], &mut entry)? == EntryForm::Checked)
    }
}
