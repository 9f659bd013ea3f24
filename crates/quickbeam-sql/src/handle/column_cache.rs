//! The column cache: columns of table rows that vectorized scans have decoded, kept for the next
//! scan.
//!
//! Above: vectorized scans. Below: leaves of tables by content version ([`LeafVersions`]). A table
//! is kept in *parts* of some thousand rows: consecutive leaves, whose rows are one array for each
//! column. A scan that finds the leaves of a part unchanged takes its arrays and does not read the
//! leaves. So rows stay in one place, in the format for transactions, and tables that rarely change
//! are scanned as in a column store. The cache is memory only, and nothing depends on it.
//!
//! A scan that reads leaves for the first time only notes them. The next one that finds them
//! unchanged decodes all their rows into a part. So leaves that change between two scans are never
//! decoded for the cache, nor are those of a table that is scanned once.
//!
//! - COLUMNS-1: a part is used only while its leaves have the content versions with which they
//!   were decoded, and only if every row was visible to all (SKIP-2 of the engine).
//! - COLUMNS-2: a part belongs to one layout of the table's columns. (by type)
//! - COLUMNS-3: the parts of all tables have at most the bytes of the cache's limit. A scan makes
//!   place by dropping tables, and then columns of its own table, that no scan has used since. It
//!   never drops its own columns: a scan of more than the cache holds would otherwise drop each
//!   part before it is used again.
//!
//! Sources: columns decoded into memory beside rows as in Oracle Database In-Memory (Lahiri et al.,
//! "Oracle Database In-Memory: A Dual Format In-Memory Database", ICDE 2015).

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use arrow_array::{Array, ArrayRef};
use parking_lot::Mutex;
use quickbeam::invariant;
use quickbeam::query_layer::LeafVersions;

use crate::schema::{ObjectId, Table};

/// The most scans that pass over a part before its rows are decoded again.
const MOST_WAITS: u32 = 64;

/// The columns kept of all tables.
#[derive(Debug)]
pub struct ColumnCache {
    /// The most bytes of all parts.
    limit: AtomicUsize,
    used: Arc<AtomicUsize>,
    clock: AtomicU64,
    tables: Mutex<HashMap<ObjectId, Arc<TableColumns>>>,
}

/// The columns kept of a table.
#[derive(Debug)]
pub struct TableColumns {
    table: Arc<Table>,
    /// When a scan began last, by the clock of the cache.
    used_at: AtomicU64,
    /// The bytes of all tables.
    used: Arc<AtomicUsize>,
    /// When a scan that reads the column began last, by the position of the column.
    columns_used_at: Mutex<HashMap<usize, u64>>,
    /// By the key at which their leaves begin.
    parts: Mutex<BTreeMap<Vec<u8>, Arc<TablePart>>>,
}

/// The columns of consecutive leaves.
#[derive(Debug)]
pub struct TablePart {
    pub leaves: LeafVersions,
    /// The number of rows, if they were decoded.
    pub rows: Option<usize>,
    /// Positions of columns in the table, with their values. Empty if the leaves were only noted.
    columns: Vec<(usize, ArrayRef)>,
    /// How many scans are still to pass before the rows are decoded, and how many there were.
    waits: AtomicU32,
    waited: u32,
}

impl TablePart {
    /// Leaves that were noted.
    pub fn noted(leaves: LeafVersions) -> TablePart {
        TablePart { leaves, rows: None, columns: Vec::new(), waits: AtomicU32::new(0), waited: 0 }
    }

    /// The same leaves, not to be decoded for twice as many scans as before: not all rows were
    /// visible to all.
    pub fn postponed(&self, leaves: LeafVersions) -> TablePart {
        let waited = (self.waited * 2 + 1).min(MOST_WAITS);
        TablePart { waits: AtomicU32::new(waited), waited, ..TablePart::noted(leaves) }
    }

    /// Leaves with these columns of all their rows. The other columns of `known` are taken over, if
    /// it is of the same leaves.
    pub fn decoded(
        leaves: LeafVersions,
        rows: usize,
        mut columns: Vec<(usize, ArrayRef)>,
        known: &TablePart,
    ) -> TablePart {
        invariant!(
            COLUMNS_1,
            columns.iter().all(|(_, array)| array.len() == rows),
            "a column of a part has not {rows} values"
        );
        if known.leaves == leaves {
            for (position, array) in &known.columns {
                if !columns.iter().any(|(own, _)| own == position) {
                    columns.push((*position, array.clone()));
                }
            }
        }
        TablePart { rows: Some(rows), columns, ..TablePart::noted(leaves) }
    }

    /// Returns the values of a column.
    pub fn column(&self, position: usize) -> Option<&ArrayRef> {
        self.columns.iter().find(|(own, _)| *own == position).map(|(_, array)| array)
    }

    /// Returns the part with those of its columns that `is_kept` holds for.
    fn with_columns(&self, is_kept: impl Fn(usize) -> bool) -> TablePart {
        let kept = self.columns.iter().filter(|(position, _)| is_kept(*position));
        let waits = AtomicU32::new(self.waits.load(Ordering::Relaxed));
        let (leaves, columns) = (self.leaves.clone(), kept.cloned().collect());
        TablePart { leaves, rows: self.rows, columns, waits, waited: self.waited }
    }

    /// Returns whether a scan is to decode the rows, of which there are not all columns yet.
    pub fn is_due(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        self.waits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err()
    }

    fn bytes(&self) -> usize {
        let arrays: usize =
            self.columns.iter().map(|(_, array)| array.get_buffer_memory_size()).sum();
        arrays + 2 * self.leaves.low().len() + self.leaves.bytes() + size_of::<TablePart>()
    }
}

impl ColumnCache {
    /// An empty cache of at most `limit` bytes.
    pub fn new(limit: usize) -> ColumnCache {
        ColumnCache {
            limit: AtomicUsize::new(limit),
            used: Arc::default(),
            clock: AtomicU64::new(0),
            tables: Mutex::default(),
        }
    }

    /// Sets the most bytes; 0 turns the cache off. Drops all parts.
    pub fn set_limit(&self, bytes: usize) {
        let mut tables = self.tables.lock();
        self.limit.store(bytes, Ordering::Relaxed);
        tables.drain().for_each(|(_, columns)| columns.clear());
    }

    /// Returns what is kept of a table, for a scan of columns that begins. Returns `None` if the
    /// cache is off.
    pub fn table(
        &self,
        table: &Arc<Table>,
        columns: impl Iterator<Item = usize>,
    ) -> Option<Arc<TableColumns>> {
        if self.limit.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut tables = self.tables.lock();
        if let Some(kept) = tables.get(&table.id)
            && have_equal_rows(&kept.table, table)
        {
            kept.used_at.store(now, Ordering::Relaxed);
            kept.columns_used_at.lock().extend(columns.map(|position| (position, now)));
            return Some(kept.clone());
        }
        let kept = Arc::new(TableColumns {
            table: table.clone(),
            used_at: AtomicU64::new(now),
            used: self.used.clone(),
            columns_used_at: Mutex::new(columns.map(|position| (position, now)).collect()),
            parts: Mutex::default(),
        });
        tables.insert(table.id, kept.clone());
        Some(kept)
    }

    /// Drops what is kept of tables that `is_known` does not know.
    pub fn retain(&self, is_known: impl Fn(ObjectId) -> bool) {
        self.tables.lock().retain(|id, _| is_known(*id));
    }

    /// Returns the number of a table's rows whose values of a column are kept.
    pub fn cached_rows(&self, table: ObjectId, column: usize) -> usize {
        let Some(kept) = self.tables.lock().get(&table).cloned() else { return 0 };
        let parts = kept.parts.lock();
        let has_column = |part: &&Arc<TablePart>| part.column(column).is_some();
        parts.values().filter(has_column).filter_map(|part| part.rows).sum()
    }

    /// Returns the number of a table's rows of which some columns are kept.
    pub fn decoded_rows(&self, table: ObjectId) -> usize {
        let Some(kept) = self.tables.lock().get(&table).cloned() else { return 0 };
        kept.parts.lock().values().filter_map(|part| part.rows).sum()
    }

    /// Returns the bytes of all parts.
    pub fn bytes(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Keeps a part of a table, in place of one that begins at the same key. Without place for it
    /// (COLUMNS-3) its leaves are noted only, and are not decoded by the next scans.
    pub fn keep(&self, columns: &TableColumns, mut part: TablePart) {
        let low = part.leaves.low().to_vec();
        columns.forget(&low);
        if self.bytes() + part.bytes() > self.limit.load(Ordering::Relaxed) {
            part = part.with_columns(|position| columns.is_in_use(position));
        }
        let mut bytes = part.bytes();
        if !self.reserve(columns, bytes) {
            part = part.postponed(part.leaves.clone());
            bytes = part.bytes();
            if !self.reserve(columns, bytes) {
                return;
            }
        }
        if let Some(other) = columns.parts.lock().insert(low, Arc::new(part)) {
            self.used.fetch_sub(other.bytes(), Ordering::Relaxed);
        }
    }

    /// Drops tables that were scanned before `columns`, and columns that were, until `bytes` bytes
    /// are free, and takes them. Returns whether there were enough.
    fn reserve(&self, columns: &TableColumns, bytes: usize) -> bool {
        let mut tables = self.tables.lock();
        let limit = self.limit.load(Ordering::Relaxed);
        let has_place = || self.bytes().saturating_add(bytes) <= limit;
        while !has_place() {
            let used_at = |kept: &TableColumns| kept.used_at.load(Ordering::Relaxed);
            let older = tables.iter().filter(|(_, kept)| used_at(kept) < used_at(columns));
            let Some((id, oldest)) = older.min_by_key(|(_, kept)| used_at(kept)) else {
                if columns.drop_oldest_column() {
                    continue;
                }
                return false;
            };
            let id = *id;
            oldest.clear();
            tables.remove(&id);
        }
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        invariant!(COLUMNS_3, used <= limit, "{used} bytes, at most {limit}");
        true
    }
}

impl TableColumns {
    /// Returns the part that begins at a key.
    pub fn part(&self, low: &[u8]) -> Option<Arc<TablePart>> {
        self.parts.lock().get(low).cloned()
    }

    /// Returns whether a part begins at a key.
    pub fn has_part(&self, low: &[u8]) -> bool {
        self.parts.lock().contains_key(low)
    }

    /// Returns the key at which the part begins that covers a key, or at which the part ends after
    /// which there are leaves with that key until the next part.
    pub fn cut(&self, key: &[u8]) -> Option<Vec<u8>> {
        let parts = self.parts.lock();
        let (until, after) = (Bound::Included(key), Bound::Excluded(key));
        let (low, part) = parts.range::<[u8], _>((Bound::Unbounded, until)).next_back()?;
        if part.leaves.covers(key) {
            return Some(low.clone());
        }
        let has_next = parts.range::<[u8], _>((after, Bound::Unbounded)).next().is_some();
        part.leaves.end().filter(|_| has_next).map(<[u8]>::to_vec)
    }

    /// Drops the part that begins at a key.
    pub fn forget(&self, low: &[u8]) {
        if let Some(part) = self.parts.lock().remove(low) {
            self.used.fetch_sub(part.bytes(), Ordering::Relaxed);
        }
    }

    /// Returns whether the newest scan reads the column.
    fn is_in_use(&self, position: usize) -> bool {
        let used_at = self.columns_used_at.lock().get(&position).copied();
        used_at.is_some_and(|at| at >= self.used_at.load(Ordering::Relaxed))
    }

    /// Drops the column that was not read for longest from all parts, unless the newest scan reads
    /// it. Returns whether there was one.
    fn drop_oldest_column(&self) -> bool {
        let mut parts = self.parts.lock();
        let newest = self.used_at.load(Ordering::Relaxed);
        let mut used_at = self.columns_used_at.lock();
        let oldest = used_at.iter().filter(|(_, at)| **at < newest).min_by_key(|(_, at)| **at);
        let Some(oldest) = oldest.map(|(position, _)| *position) else { return false };
        used_at.remove(&oldest);
        for part in parts.values_mut().filter(|part| part.column(oldest).is_some()) {
            let rest = Arc::new(part.with_columns(|position| position != oldest));
            self.used.fetch_add(rest.bytes(), Ordering::Relaxed);
            self.used.fetch_sub(part.bytes(), Ordering::Relaxed);
            *part = rest;
        }
        true
    }

    /// Drops all parts.
    fn clear(&self) {
        let parts = std::mem::take(&mut *self.parts.lock());
        let bytes: usize = parts.values().map(|part| part.bytes()).sum();
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for TableColumns {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether rows of both definitions are decoded to the same columns (COLUMNS-2).
fn have_equal_rows(one: &Arc<Table>, other: &Arc<Table>) -> bool {
    let columns = || one.columns.iter().zip(&other.columns);
    Arc::ptr_eq(one, other)
        || one.generation == other.generation
            && one.form() == other.form()
            && one.columns.len() == other.columns.len()
            && columns().all(|(one, other)| {
                one.id == other.id
                    && one.data_type == other.data_type
                    && one.not_null == other.not_null
                    && one.missing == other.missing
            })
}
