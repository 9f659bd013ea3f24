//! Filling an index from the rows that are there.
//!
//! Entries are gathered, sorted as the index's tree keeps them, by hash value if it does so, and
//! put in place one run after the other: so each leaf is visited once for a run, and what the first
//! run makes is full leaves.

use quickbeam::Transaction;
use quickbeam::query_layer::DatabaseExt;

use super::index_evaluator::EntryForm;
use super::table_handle::{IndexHandle, TableHandle};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::encoding::row_format::StoredRow;

/// Bytes of keys and values after which a run is put in place.
const RUN_BYTES: usize = 32 << 20;

/// Entries that are to be put in place.
pub(crate) struct Filling<'f> {
    transaction: &'f Transaction,
    table: &'f TableHandle,
    index: &'f IndexHandle,
    bytes: Vec<u8>,
    entries: Vec<IndexEntry>,
    key: Vec<u8>,
    value: Vec<u8>,
}

/// Where an entry lies among the bytes, and its place in a hash database.
struct IndexEntry {
    hash: u32,
    key: usize,
    value: usize,
    end: usize,
}

impl<'f> Filling<'f> {
    /// Nothing yet for an index of the rows of `table`.
    pub fn new(
        transaction: &'f Transaction,
        table: &'f TableHandle,
        index: &'f IndexHandle,
    ) -> Filling<'f> {
        let (bytes, entries, key, value) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Filling { transaction, table, index, bytes, entries, key, value }
    }

    /// Takes the entries of a row.
    pub fn add(&mut self, row: StoredRow<'_>, row_key: &[u8]) -> Result<()> {
        if let Some(class) = self.index.index.inverted() {
            let entries = self.index.inverted_entries(class, row, row_key)?;
            return entries.iter().try_for_each(|(key, value)| {
                self.key.clear();
                self.key.extend_from_slice(key);
                self.value.clear();
                self.value.extend_from_slice(value);
                self.take()
            });
        }
        self.key.clear();
        let form = self.index.encode_entry(row, row_key, &mut self.key)?;
        if form == EntryForm::Absent {
            return Ok(());
        }
        self.index.encode_place(&self.key, row_key, form, &mut self.value)?;
        self.take()
    }

    /// Takes the entry of the present key and value.
    fn take(&mut self) -> Result<()> {
        if self.bytes.len() + self.key.len() + self.value.len() > RUN_BYTES {
            self.put()?;
        }
        let key = self.bytes.len();
        self.bytes.extend_from_slice(&self.key);
        let value = self.bytes.len();
        self.bytes.extend_from_slice(&self.value);
        let hash = self.index.entries.hash_of(&self.key);
        self.entries.push(IndexEntry { hash, key, value, end: self.bytes.len() });
        Ok(())
    }

    /// Puts what was taken in place. An error (`23505`) when there are two rows of the same unique
    /// key.
    pub fn put(&mut self) -> Result<()> {
        let bytes = &self.bytes;
        let key = |entry: &IndexEntry| &bytes[entry.key..entry.value];
        self.entries.sort_unstable_by(|a, b| (a.hash, key(a)).cmp(&(b.hash, key(b))));
        let records: Vec<(&[u8], &[u8])> =
            self.entries.iter().map(|entry| (key(entry), &bytes[entry.value..entry.end])).collect();
        let done = self.index.entries.append(self.transaction, &records)?;
        if let Some((key, value)) = records.get(done) {
            return Err(self.duplicated(key, value)?);
        }
        self.entries.clear();
        self.bytes.clear();
        Ok(())
    }

    /// Checks the values of a key that is DEFERRABLE: each row has an entry of its own.
    pub fn check(&self) -> Result<()> {
        if !self.index.index.timing.is_deferrable() {
            return Ok(());
        }
        let mut found = Ok(());
        self.index.each_duplicate(self.transaction, self.table, |key, value| {
            found = Err(self.duplicated(key, value)?);
            Ok(false)
        })?;
        found
    }

    #[cold]
    fn duplicated(&self, key: &[u8], value: &[u8]) -> Result<SqlError> {
        let mut row = Vec::new();
        self.table.get(self.transaction, self.index.row_key(key, value)?, &mut row)?;
        let (table, index) = (self.table.table(), &self.index.index);
        let key = self.index.describe(self.table, StoredRow::new(table, &row)?);
        let message = format!("could not create unique index \"{}\"", index.name);
        let error = SqlError::new(SqlState::UniqueViolation, message);
        let error = error.with_detail(format!("Key {key} is duplicated."));
        Ok(error.of_table(&table.schema, &table.name).of_constraint(index.name.as_str()))
    }
}
