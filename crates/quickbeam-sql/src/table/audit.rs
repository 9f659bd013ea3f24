//! Verification of one table: its rows, the entries of its indexes, and the rows that its foreign
//! keys refer to, against each other (TABLE-1).
//!
//! Above: verification of a database, which evaluates CHECK. Below: rows, keys, the trees. What is
//! wrong is text for people; an error means that no more of the tree can be read.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;

use quickbeam::{Database, Transaction};

use super::foreign_keys::has_parent;
use crate::catalog::CatalogSnapshot;
use crate::error::{Result, SqlError};
use crate::handle::table_handle::{IndexHandle, TableHandle};
use crate::handle::{EntryForm, describe, describe_key};
use crate::schema::ObjectId;
use crate::schema::encoding::row_format::StoredRow;

/// Maximum number of complaints reported for a table or index; further ones are only counted.
const MOST: usize = 100;

/// A table being verified.
pub(crate) struct Audit<'a> {
    transaction: &'a Transaction,
    handle: &'a TableHandle,
    /// The handles of the tables that its foreign keys refer to, in their order.
    parents: Vec<Arc<TableHandle>>,
    complaints: Vec<String>,
    /// How many complaints there would be.
    found: usize,
    key: Vec<u8>,
    value: Vec<u8>,
    stored: Vec<u8>,
    /// Rows without an entry, by index: their predicates are not true.
    absent: HashMap<ObjectId, u64>,
    /// What was found of the entries of inverted indexes.
    inverted: HashMap<ObjectId, InvertedAudit>,
}

/// What rows say of the entries of an inverted index.
#[derive(Clone, Copy, Default)]
struct InvertedAudit {
    /// How many there should be.
    entries: u64,
    /// Whether one of them is not there.
    has_gaps: bool,
}

/// What is evaluated of a row by someone above: complaints about it.
pub(crate) type Conditions<'c> = dyn FnMut(StoredRow<'_>) -> Vec<String> + 'c;

/// Calls `each` with every record of a tree.
fn each_record(
    database: &Database,
    transaction: &Transaction,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<u64> {
    let mut cursor = database.cursor(transaction)?;
    let (mut more, mut count) = (cursor.first()?, 0);
    while more {
        each(cursor.key(), cursor.value())?;
        count += 1;
        more = cursor.next()?;
    }
    Ok(count)
}

/// The first bytes of a key that cannot be shown otherwise.
fn hexadecimal(key: &[u8]) -> String {
    let mut text = String::from("\\x");
    for byte in key.iter().take(40) {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    if key.len() > 40 {
        text.push('…');
    }
    text
}

impl<'a> Audit<'a> {
    /// Begins with a table; an error if a table that it refers to is not there.
    pub fn new(
        transaction: &'a Transaction,
        snapshot: &CatalogSnapshot,
        handle: &'a TableHandle,
    ) -> Result<Audit<'a>> {
        let keys = handle.table().foreign_keys.iter();
        let parents = keys.map(|key| snapshot.handle(transaction, key.parent));
        let parents = parents.collect::<Result<Vec<_>>>()?;
        let (key, value, stored) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Audit {
            transaction,
            handle,
            parents,
            complaints: Vec::new(),
            found: 0,
            key,
            value,
            stored,
            absent: HashMap::new(),
            inverted: HashMap::new(),
        })
    }

    /// What is wrong.
    pub fn complaints(mut self) -> Vec<String> {
        if self.found > self.complaints.len() {
            let more = self.found - self.complaints.len();
            self.complaints.push(format!("{}: {more} complaints more", self.name()));
        }
        self.complaints
    }

    fn name(&self) -> String {
        format!("table \"{}\"", self.handle.table().name)
    }

    fn complain(&mut self, what: &str) {
        self.found += 1;
        if self.complaints.len() < MOST {
            self.complaints.push(format!("{}{what}", self.name()));
        }
    }

    /// How a row is named: by its primary key's values, or its hidden number.
    fn shown(&self, key: &[u8], row: Option<StoredRow<'_>>) -> String {
        let table = self.handle.table();
        match (&table.primary_key, row, key.first_chunk()) {
            (Some(primary), Some(row), _) => describe(table, &primary.columns, row),
            (None, _, Some(number)) if key.len() == 8 => {
                format!("row {}", u64::from_be_bytes(*number))
            }
            _ => describe_key(self.handle, key)
                .unwrap_or_else(|| format!("key {}", hexadecimal(key))),
        }
    }

    /// Looks at all rows; how many. `last` becomes the key of the last row that was reached.
    fn rows(&mut self, conditions: &mut Conditions<'_>, last: &mut Vec<u8>) -> Result<u64> {
        let (handle, transaction) = (self.handle, self.transaction);
        each_record(handle.database(), transaction, |key, bytes| {
            last.clear();
            last.extend_from_slice(key);
            let row =
                StoredRow::new(handle.table(), bytes).and_then(|row| row.to_values().map(|_| row));
            let problems = match row {
                Ok(row) => self.problems_of(key, row, conditions)?,
                Err(error) => vec![format!("the row cannot be read: {}", error.message())],
            };
            for problem in problems {
                let readable = StoredRow::new(handle.table(), bytes).ok();
                let shown = self.shown(key, readable);
                self.complain(&format!(", {shown}: {problem}"));
            }
            Ok(())
        })
    }

    fn problems_of(
        &mut self,
        key: &[u8],
        row: StoredRow<'_>,
        conditions: &mut Conditions<'_>,
    ) -> Result<Vec<String>> {
        let handle = self.handle;
        let table = handle.table();
        let mut problems = Vec::new();
        for (position, column) in table.columns.iter().enumerate() {
            if column.not_null && row.is_null(position) {
                problems.push(format!("column \"{}\" is NULL", column.name));
            }
        }
        if table.primary_key.is_some() {
            self.key.clear();
            handle.key().encode_with(&mut self.key, |position| row.get(position))?;
            if self.key != key {
                problems.push("the row stands under another key than its own".to_owned());
            }
        } else if key.len() != 8 {
            problems.push("the key of the row is no row number".to_owned());
        }
        problems.extend(conditions(row));
        for index in handle.indexes().iter().filter(|it| !it.index.is_stale()) {
            if !self.has_entry(index, key, row)? {
                problems.push(format!("index \"{}\" has no entry of the row", index.index.name));
            }
        }
        for (foreign, parent) in table.foreign_keys.iter().zip(&self.parents) {
            // The parent's own verification tells of an index that cannot be used.
            let is_usable = parent.indexes().iter().all(|it| !it.index.is_stale());
            if is_usable
                && !foreign.not_valid
                && !has_parent(self.transaction, (table, foreign), row, parent)?
            {
                let shown = describe(table, &foreign.columns, row);
                let (name, parent) = (&foreign.name, &parent.table().name);
                problems.push(format!(
                    "foreign key \"{name}\": {shown} is not in the table \"{parent}\""
                ));
            }
        }
        Ok(problems)
    }

    /// Makes the entry of a row in an index.
    fn make_entry(
        &mut self,
        index: &IndexHandle,
        row_key: &[u8],
        row: StoredRow<'_>,
    ) -> Result<EntryForm> {
        self.key.clear();
        let form = index.encode_entry(row, row_key, &mut self.key)?;
        index.encode_place(&self.key, row_key, form, &mut self.value)?;
        Ok(form)
    }

    fn has_entry(
        &mut self,
        index: &IndexHandle,
        row_key: &[u8],
        row: StoredRow<'_>,
    ) -> Result<bool> {
        if let Some(class) = index.index.inverted() {
            let known = self.inverted.entry(index.index.id).or_default();
            let entries = index.inverted_entries(class, row, row_key)?;
            known.entries += entries.len() as u64;
            for (key, value) in entries.iter() {
                let found = index.entries.get_into(self.transaction, key, &mut self.stored)?;
                if !found || self.stored != value {
                    known.has_gaps = true;
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if self.make_entry(index, row_key, row)? == EntryForm::Absent {
            *self.absent.entry(index.index.id).or_default() += 1;
            return Ok(true);
        }
        let found = index.entries.get_into(self.transaction, &self.key, &mut self.stored)?;
        Ok(found && self.stored == self.value)
    }

    /// Looks at all entries of an index; how many. Entries whose rows cannot be read for the same
    /// reason are one complaint.
    fn entries(&mut self, index: &IndexHandle) -> Result<u64> {
        let (handle, transaction) = (self.handle, self.transaction);
        let name = &index.index.name;
        if index.index.inverted().is_some() {
            // Every row has its entries. If there are no others, each belongs to its row.
            let known = self.inverted.get(&index.index.id).copied().unwrap_or_default();
            let count = each_record(&index.entries, transaction, |_, _| Ok(()))?;
            if count == known.entries && !known.has_gaps {
                return Ok(count);
            }
        }
        let mut unread: BTreeMap<String, (String, u64)> = BTreeMap::new();
        let counted = each_record(&index.entries, transaction, |entry, value| {
            let (problem, is_of_engine) = match self.problem_of(index, entry, value) {
                Ok(None) => return Ok(()),
                Ok(Some(problem)) => (problem, false),
                Err(error) => (error.message().to_owned(), error.source().is_some()),
            };
            if let (true, Some((_, count))) = (is_of_engine, unread.get_mut(&problem)) {
                *count += 1;
                return Ok(());
            }
            let shown = match index.row_key(entry, value) {
                Ok(row_key) => {
                    let mut row = Vec::new();
                    let found = handle.get(transaction, row_key, &mut row).unwrap_or(false);
                    let row = StoredRow::new(handle.table(), &row).ok().filter(|_| found);
                    self.shown(row_key, row)
                }
                Err(_) => format!("entry {}", hexadecimal(entry)),
            };
            if is_of_engine {
                unread.insert(problem, (shown, 1));
            } else {
                self.complain(&format!(", index \"{name}\", {shown}: {problem}"));
            }
            Ok(())
        });
        for (problem, (first, count)) in unread {
            self.complain(&format!(
                ", index \"{name}\": rows of {count} entries cannot be read, first {first}: {problem}"
            ));
        }
        counted
    }

    /// Looks for rows with equal values of a key that is DEFERRABLE.
    fn duplicates(&mut self, index: &IndexHandle) -> Result<()> {
        let (handle, transaction) = (self.handle, self.transaction);
        index.each_duplicate(transaction, handle, |entry, value| {
            let row_key = index.row_key(entry, value)?;
            let shown = self.shown(row_key, None);
            let name = &index.index.name;
            self.complain(&format!(", index \"{name}\", {shown}: another row has its values"));
            Ok(true)
        })
    }

    fn problem_of(
        &mut self,
        index: &IndexHandle,
        entry: &[u8],
        value: &[u8],
    ) -> Result<Option<String>> {
        let row_key = index.row_key(entry, value)?.to_vec();
        let mut bytes = Vec::new();
        if !self.handle.get(self.transaction, &row_key, &mut bytes)? {
            return Ok(Some("an entry without its row".to_owned()));
        }
        let handle = self.handle;
        let row = StoredRow::new(handle.table(), &bytes)?;
        if let Some(class) = index.index.inverted() {
            let is_own = index.inverted_entries(class, row, &row_key)?.contains(entry, value);
            return Ok((!is_own).then(|| "an entry that is not that of its row".to_owned()));
        }
        let form = self.make_entry(index, &row_key, row)?;
        let is_own = form != EntryForm::Absent && self.key == entry && self.value == value;
        Ok((!is_own).then(|| "an entry that is not that of its row".to_owned()))
    }

    /// Looks at the rows and all entries; how many of each there are. What cannot be read is a
    /// complaint.
    pub fn run(&mut self, conditions: &mut Conditions<'_>) -> (u64, u64) {
        let mut last = Vec::new();
        let rows = self.rows(conditions, &mut last);
        let reached = match last.is_empty() {
            true => String::new(),
            false => format!(", after {}", self.shown(&last, None)),
        };
        let rows = self.or_complain(&reached, rows);
        let mut entries = 0;
        let handle = self.handle;
        for index in handle.indexes() {
            if let Err(stale) = index.index.check_current() {
                self.complain(&format!(": {stale}"));
                continue;
            }
            let count = self.entries(index);
            let count = self.or_complain(&format!(", index \"{}\"", index.index.name), count);
            let absent = self.absent.get(&index.index.id).copied().unwrap_or(0);
            let (expected, what) = match self.inverted.get(&index.index.id) {
                Some(known) => (rows.map(|_| known.entries), "keys"),
                None => (rows.map(|rows| rows - absent), "rows"),
            };
            if let (Some(expected), Some(count)) = (expected, count)
                && expected != count
            {
                let name = &index.index.name;
                self.complain(&format!(", index \"{name}\": {count} entries of {expected} {what}"));
            }
            entries += count.unwrap_or(0);
            if index.index.timing.is_deferrable() {
                let checked = self.duplicates(index).map(|()| 0);
                self.or_complain(&format!(", index \"{}\"", index.index.name), checked);
            }
        }
        (rows.unwrap_or(0), entries)
    }

    fn or_complain(&mut self, place: &str, counted: Result<u64>) -> Option<u64> {
        let unread = |error: SqlError| format!("{place}: cannot be read to the end: {error}");
        match counted {
            Ok(count) => Some(count),
            Err(error) => {
                self.complain(&unread(error));
                None
            }
        }
    }
}
