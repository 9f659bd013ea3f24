//! Tables and indexes ready for use: their definition, their trees, and how their keys are encoded.
//! Made once for each version of the catalog.
//!
//! | tree | key | value |
//! |---|---|---|
//! | table with a primary key | the primary key's columns | the row, all columns |
//! | table without one | hidden row id, big-endian | the row |
//! | unique index, no column NULL | the index's columns | 1, the row's key |
//! | hash index that is not unique | the length of the columns, the index's columns, the row's key | nothing |
//! | inverted index, an entry for each key of a value | the key, the row's key | 0, and where in the key the row's key begins, u16 |
//! | other index, DEFERRABLE key, or a column NULL without NULLS NOT DISTINCT | the index's columns, the row's key | 0, and where in the key the row's key begins, u16 |
//!
//! - TABLE-1: a row has one entry in each index of its table, or none in a partial index whose
//!   predicate is not true of it. In an inverted index it has one for each key of its value. Every
//!   entry belongs to a row.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use quickbeam::{Database, ReadTransaction, Transaction};

use super::index_evaluator::{EntryForm, IndexEvaluator};
use super::row_sample::NewestSample;
use super::sampling::Samples;
use crate::error::TREE_PREFIX;
use crate::error::{Result, SqlError};
use crate::schema::encoding::key_encoding::KeySpec;
use crate::schema::encoding::row_format::StoredRow;
use crate::schema::{EXPRESSIONS, Index, ObjectId, Table};
use crate::types::{Value, ValueRef};

/// A table and what is needed to read and change it.
#[derive(Debug)]
pub struct TableHandle {
    table: Arc<Table>,
    rows: Database,
    key: KeySpec,
    indexes: Vec<IndexHandle>,
    has_deferrable_keys: bool,
    /// By position: whether a change of the column touches more than the row itself.
    structural: Vec<bool>,
    pub(crate) next_row: OnceLock<Arc<AtomicU64>>,
    pub(crate) samples: Samples,
    pub(crate) newest_sample: NewestSample,
}

/// An index and what is needed to read and change it.
#[derive(Debug)]
pub struct IndexHandle {
    /// The definition.
    pub index: Arc<Index>,
    /// The tree.
    pub entries: Database,
    /// How its keys are encoded.
    pub key: KeySpec,
    /// What evaluates its expressions and its predicate, if it has any.
    pub(crate) evaluator: Option<Arc<dyn IndexEvaluator>>,
}

/// The name of the tree of a table's rows.
pub(crate) fn rows_tree(table: &Table) -> String {
    format!("{TREE_PREFIX}{}.{}", table.id.0, table.generation)
}

/// The name of the tree of an index's entries.
pub(crate) fn index_tree(index: ObjectId) -> String {
    format!("{TREE_PREFIX}{}", index.0)
}

impl TableHandle {
    /// Opens the table's trees.
    /// [`CatalogSnapshot::handle`](crate::catalog::CatalogSnapshot::handle) keeps what this
    /// returns.
    /// `compile` is called for each index that is computed.
    pub(crate) fn open(
        transaction: &Transaction,
        table: &Arc<Table>,
        compile: &dyn Fn(&Index) -> Result<Arc<dyn IndexEvaluator>>,
    ) -> Result<TableHandle> {
        let mut handle = TableHandle::open_rows(transaction, table)?;
        for index in &table.indexes {
            let entries = transaction.open_database(&index_tree(index.id))?;
            let key = KeySpec::of_index(table, index);
            let evaluator = index.is_computed().then(|| compile(index)).transpose()?;
            handle.indexes.push(IndexHandle { index: index.clone(), entries, key, evaluator });
        }
        Ok(handle)
    }

    /// As [`open`](Self::open), without its indexes.
    pub(crate) fn open_rows(transaction: &Transaction, table: &Arc<Table>) -> Result<TableHandle> {
        Ok(TableHandle::of_database(table.clone(), transaction.open_database(&rows_tree(table))?))
    }

    /// A table without indexes, of which these are the rows.
    pub(crate) fn of_database(table: Arc<Table>, rows: Database) -> TableHandle {
        let mut structural = vec![false; table.columns.len()];
        let keys = table.primary_key.iter().flat_map(|key| key.columns.iter().copied());
        let indexes = table.indexes.iter().flat_map(|i| i.columns.iter().map(|c| c.position));
        let computed = table.indexes.iter().flat_map(|index| index.computed_from());
        let computed = computed.filter_map(|id| table.position_of(id));
        let children = table.foreign_keys.iter().flat_map(|key| key.columns.iter().copied());
        for position in keys.chain(indexes).chain(computed).chain(children) {
            if let Some(column) = structural.get_mut(position) {
                *column = true;
            }
        }
        // Foreign keys point to primary keys and unique indexes: the columns referred to are among
        // these.
        if table.is_database() {
            structural.fill(true);
        }
        let key = KeySpec::of_rows(&table);
        let has_deferrable_keys = table.indexes.iter().any(|it| it.timing.is_deferrable());
        let (indexes, next_row) = (Vec::new(), OnceLock::new());
        let (samples, newest_sample) = (Samples::default(), NewestSample::default());
        TableHandle {
            table,
            rows,
            key,
            indexes,
            has_deferrable_keys,
            structural,
            next_row,
            samples,
            newest_sample,
        }
    }

    /// The definition.
    #[must_use]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The tree of its rows.
    #[must_use]
    pub fn database(&self) -> &Database {
        &self.rows
    }

    /// How its rows' keys are encoded; without parts, they are hidden row ids.
    #[must_use]
    pub fn key(&self) -> &KeySpec {
        &self.key
    }

    /// Its indexes, in the order of [`Table::indexes`].
    #[must_use]
    pub fn indexes(&self) -> &[IndexHandle] {
        &self.indexes
    }

    /// Returns whether one of its keys is DEFERRABLE.
    #[inline]
    pub(crate) fn has_deferrable_keys(&self) -> bool {
        self.has_deferrable_keys
    }

    /// Whether a change of one of these columns touches more than the row itself.
    #[inline]
    pub fn touches_more(&self, changed: &[usize]) -> bool {
        changed.iter().any(|&column| self.structural.get(column).is_none_or(|touches| *touches))
    }

    /// The row as [`StoredRow`] reads it, from a record of the table's tree. `scratch` is used for
    /// key/value databases only.
    #[inline]
    pub fn row<'a>(
        &'a self,
        key: &[u8],
        value: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> Result<StoredRow<'a>> {
        if !self.table.is_database() {
            return StoredRow::new(&self.table, value);
        }
        scratch.clear();
        self.encode_record(key, value, scratch)?;
        StoredRow::new(&self.table, scratch)
    }

    fn encode_record(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let columns = [ValueRef::Bytea(key), ValueRef::Bytea(value)];
        self.table.encode_row(out, |position| columns.get(position).copied().unwrap_or_default())
    }

    /// The row with that key: its bytes replace what is in `row`. False when there is none.
    #[inline]
    pub fn get(&self, transaction: &Transaction, key: &[u8], row: &mut Vec<u8>) -> Result<bool> {
        let found = self.rows.get_into(transaction, key, row).map_err(|e| self.failed(e))?;
        if found && self.table.is_database() {
            let value = std::mem::take(row);
            self.encode_record(key, &value, row)?;
        }
        Ok(found)
    }

    /// Returns the error of a read in the table's tree. Damage is reported with the table's name.
    #[cold]
    pub(crate) fn failed(&self, error: quickbeam::Error) -> SqlError {
        damaged_in(error, "table", &self.table.name)
    }

    /// What stands in the table's tree for a row of these bytes.
    pub(crate) fn stored<'r>(&self, row: &'r [u8]) -> Result<std::borrow::Cow<'r, [u8]>> {
        if !self.table.is_database() {
            return Ok(row.into());
        }
        match StoredRow::new(&self.table, row)?.get(1)? {
            ValueRef::Bytea(value) => Ok(value.to_vec().into()),
            _ => Err(SqlError::internal("a record without a value")),
        }
    }
}

impl IndexHandle {
    /// Returns the error of a read in the index's tree. Damage is reported with the index's name.
    #[cold]
    pub(crate) fn failed(&self, error: quickbeam::Error) -> SqlError {
        damaged_in(error, "index", &self.index.name)
    }

    /// Appends the key of a row's entry. Returns its form. An inverted index has
    /// [several](Self::inverted_entries), and nothing is appended.
    pub(crate) fn encode_entry(
        &self,
        row: StoredRow<'_>,
        row_key: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<EntryForm> {
        if self.index.inverted().is_some() {
            return Ok(EntryForm::Inverted);
        }
        self.index.check_current()?;
        let mut has_null = false;
        let computed = match &self.evaluator {
            None => Vec::new(),
            Some(evaluator) => match evaluator.evaluate(row)? {
                Some(values) => values,
                None => return Ok(EntryForm::Absent),
            },
        };
        self.key.encode_with(out, |position| {
            let value = match position.checked_sub(EXPRESSIONS) {
                None => row.get(position)?,
                Some(number) => computed.get(number).map(Value::as_ref).unwrap_or_default(),
            };
            has_null |= value.is_null();
            Ok(value)
        })?;
        let is_exempt = has_null && !self.index.nulls_not_distinct;
        let holds_row_key = !self.index.unique || is_exempt;
        if holds_row_key {
            out.extend_from_slice(row_key);
            return Ok(match self.index.timing.is_deferrable() && !is_exempt {
                true => EntryForm::Checked,
                false => EntryForm::WithRowKey,
            });
        }
        Ok(EntryForm::Unique)
    }

    /// The value of an entry, of which [`encode_entry`](Self::encode_entry) made the key.
    pub(crate) fn encode_place(
        &self,
        entry: &[u8],
        row_key: &[u8],
        form: EntryForm,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        value.clear();
        if self.key.grouped {
            return Ok(());
        }
        if matches!(form, EntryForm::WithRowKey | EntryForm::Checked | EntryForm::Inverted) {
            let place = u16::try_from(entry.len() - row_key.len());
            let place = place.map_err(|_| crate::schema::encoding::key_encoding::key_too_long())?;
            value.push(0);
            value.extend_from_slice(&place.to_le_bytes());
        } else {
            value.push(1);
            value.extend_from_slice(row_key);
        }
        Ok(())
    }

    /// The key of the row that an entry of this index belongs to.
    #[inline]
    pub fn row_key<'e>(&self, entry_key: &'e [u8], entry_value: &'e [u8]) -> Result<&'e [u8]> {
        // The lead byte distinguishes a position in the key from the row's key itself.
        match entry_value {
            [] => {
                let (length, rest) = entry_key.split_first_chunk().ok_or_else(damaged)?;
                rest.get(usize::from(u16::from_be_bytes(*length))..).ok_or_else(damaged)
            }
            [0, low, high] => {
                let at = usize::from(u16::from_le_bytes([*low, *high]));
                entry_key.get(at..).ok_or_else(damaged)
            }
            [1, key @ ..] => Ok(key),
            _ => Err(damaged()),
        }
    }
}

impl IndexHandle {
    /// Returns the values of the index's expressions; `None` if it has no entry of the row.
    pub(crate) fn computed(&self, row: StoredRow<'_>) -> Result<Option<Vec<Value>>> {
        match &self.evaluator {
            Some(evaluator) => evaluator.evaluate(row),
            None => Ok(Some(Vec::new())),
        }
    }

    /// Returns `(a, lower(b))=(1, two)` of the index's key of a row.
    pub(crate) fn describe(&self, table: &TableHandle, row: StoredRow<'_>) -> String {
        let columns = self.index.columns.iter().map(|column| column.position);
        if self.evaluator.is_none() {
            return describe(table.table(), &columns.collect::<Vec<_>>(), row);
        }
        let computed = self.computed(row).ok().flatten().unwrap_or_default();
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for position in columns {
            names.push(self.index.key_name(table.table(), position));
            let value = match position.checked_sub(EXPRESSIONS) {
                Some(number) => computed.get(number).map(|value| shown_value(value.as_ref())),
                None => row.get(position).map(shown_value).ok(),
            };
            values.push(value.unwrap_or_else(|| "?".into()));
        }
        format!("({})=({})", names.join(", "), values.join(", "))
    }
}

/// Adds what the damaged bytes belong to.
#[cold]
fn damaged_in(error: quickbeam::Error, kind: &str, name: &str) -> SqlError {
    let is_damage = matches!(error, quickbeam::Error::Corruption { .. });
    let error = SqlError::from(error);
    if !is_damage {
        return error;
    }
    error.with_detail(format!("The damaged bytes are read for {kind} \"{name}\"."))
}

#[cold]
fn damaged() -> SqlError {
    SqlError::corrupted("an entry of an index cannot be read")
}

/// The hidden row ids given out, for each table.
#[derive(Debug, Default)]
pub(crate) struct RowIds {
    next: Mutex<HashMap<ObjectId, Arc<AtomicU64>>>,
}

impl RowIds {
    /// A row id that the table has not had since the environment was opened, and that no row of it
    /// has.
    pub fn next(
        &self,
        environment: &quickbeam::Environment,
        transaction: &Transaction,
        handle: &TableHandle,
    ) -> Result<u64> {
        self.next_of(environment, transaction, handle, 1)
    }

    /// The first of `count` such row ids.
    pub fn next_of(
        &self,
        environment: &quickbeam::Environment,
        transaction: &Transaction,
        handle: &TableHandle,
        count: u64,
    ) -> Result<u64> {
        if let Some(next) = handle.next_row.get() {
            return Ok(next.fetch_add(count, Ordering::Relaxed));
        }
        let mut tables = self.next.lock();
        let next = match tables.get(&handle.table.id) {
            Some(next) => next.clone(),
            None => {
                // No id of this table has been given out since it was opened: all its rows are
                // older. A separate transaction reads them, so that the insert does not depend on
                // what it finds.
                let reader = environment.begin_read()?;
                let last = match last_row(&handle.rows, reader.as_transaction()) {
                    Err(quickbeam::Error::NoSuchDatabase { .. }) => {
                        last_row(&handle.rows, transaction)
                    }
                    found => found,
                }?;
                let next = Arc::new(AtomicU64::new(last + 1));
                tables.insert(handle.table.id, next.clone());
                next
            }
        };
        Ok(handle.next_row.get_or_init(|| next).fetch_add(count, Ordering::Relaxed))
    }
}

impl RowIds {
    /// Moves after the last row that the transaction sees.
    #[cold]
    pub fn catch_up(&self, transaction: &Transaction, handle: &TableHandle) -> Result<()> {
        let last = last_row(&handle.rows, transaction)?;
        if let Some(next) = handle.next_row.get() {
            next.fetch_max(last + 1, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn last_row(rows: &Database, transaction: &Transaction) -> quickbeam::Result<u64> {
    let mut cursor = rows.cursor(transaction)?;
    if !cursor.last()? {
        return Ok(0);
    }
    Ok(cursor.key().first_chunk().map_or(0, |key| u64::from_be_bytes(*key)))
}

/// Returns a value of a key as messages show it.
fn shown_value(value: ValueRef<'_>) -> String {
    if value.is_null() { "null".to_owned() } else { value.to_string() }
}

/// `(a, b)=(1, 2)` of these columns of a row.
pub(crate) fn describe(table: &Table, positions: &[usize], row: StoredRow<'_>) -> String {
    let names: Vec<&str> =
        positions.iter().filter_map(|&p| Some(table.columns.get(p)?.name.as_str())).collect();
    let show = |&p: &usize| row.get(p).map_or_else(|_| "?".into(), shown_value);
    let values: Vec<String> = positions.iter().map(show).collect();
    format!("({})=({})", names.join(", "), values.join(", "))
}

/// `(a, b)=(1, 2)` of a key of a table's rows, if its values can be decoded.
pub(crate) fn describe_key(table: &TableHandle, key: &[u8]) -> Option<String> {
    let spec = table.key();
    if spec.grouped {
        return None;
    }
    let (mut rest, mut values) = (key, Vec::new());
    for part in &spec.parts {
        values.push(shown_value(part.decode(&mut rest).ok()?.as_ref()));
    }
    let columns = &table.table().primary_key.as_ref()?.columns;
    let names = columns.iter().map(|&at| Some(table.table().columns.get(at)?.name.as_str()));
    let names = names.collect::<Option<Vec<_>>>()?;
    rest.is_empty().then(|| format!("({})=({})", names.join(", "), values.join(", ")))
}
