//! The keys of the rows of a cursor's query, for WHERE CURRENT OF.

use super::{Context, Operator};
use crate::catalog::ObjectId;
use crate::error::Result;

/// A table whose rows a query returns, each unchanged by an operator above the scan.
#[derive(Clone, Copy, Debug)]
struct KeptTable {
    slot: usize,
    table: ObjectId,
}

/// The keys of the rows that a query has returned.
#[derive(Debug, Default)]
pub struct KeptKeys {
    tables: Vec<KeptTable>,
    /// Whether the query locks the rows of these tables.
    locks: bool,
    /// For each row, the key of each table.
    keys: Vec<Option<Box<[u8]>>>,
}

/// What is known of the row of a table at a place of a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptRow<'k> {
    /// The query does not lock rows of the table.
    NotLocked,
    /// The query locks rows of the table in several places.
    LockedTwice,
    /// The query does more than to read the table.
    NotSimple,
    /// There is no row at that place.
    Absent,
    /// Its key.
    Key(&'k [u8]),
}

impl KeptKeys {
    /// Finds the tables whose rows a query returns, and lets its sorts keep the keys of those that
    /// it locks.
    pub fn of(root: &mut Operator) -> KeptKeys {
        let mut found = KeptKeys::default();
        found.add_tables(root);
        found
    }

    fn add_tables(&mut self, root: &mut Operator) {
        match root {
            Operator::Scan(scan) => {
                self.tables.push(KeptTable { slot: scan.slot(), table: scan.table().id });
            }
            Operator::Lock(lock) => {
                self.locks = true;
                let tables = lock.tables();
                self.tables.extend(tables.map(|(slot, table)| KeptTable { slot, table }));
            }
            Operator::Filter(input, _) | Operator::Counted(input, _) => self.add_tables(input),
            Operator::Apply(apply) => self.add_tables(&mut apply.input),
            Operator::Limit(limit) => self.add_tables(&mut limit.input),
            Operator::With(with) => self.add_tables(&mut with.input),
            // A sort above a scan is not simple, as in PostgreSQL, unless it locks the rows.
            Operator::Sort(sort) => {
                self.add_tables(&mut sort.input);
                if !self.locks {
                    self.tables.clear();
                }
                sort.keep_row_keys(self.tables.iter().map(|it| it.slot).collect());
            }
            // The rows of a list of keys.
            Operator::NestedLoop(join) => {
                if let Some(scan) = join.scan_of_list() {
                    self.add_tables(scan);
                }
            }
            _ => {}
        }
    }

    /// Whether the query locks rows.
    pub fn locks(&self) -> bool {
        self.locks
    }

    /// Forgets the rows of an earlier run.
    pub fn restart(&mut self) {
        self.keys.clear();
    }

    /// Adds the keys of the current rows.
    pub fn push(&mut self, root: &Operator, context: &Context<'_>) -> Result<()> {
        for table in &self.tables {
            let key = root.row_key(table.slot, context);
            context.keep(key.map_or(0, <[u8]>::len))?;
            self.keys.push(key.map(Box::from));
        }
        Ok(())
    }

    /// Returns the row of a table at a place, counted from 0.
    pub fn row(&self, table: ObjectId, place: usize) -> KeptRow<'_> {
        let mut own = self.tables.iter().enumerate().filter(|(_, it)| it.table == table);
        let (Some((at, _)), None) = (own.next(), own.next()) else {
            let is_read = self.tables.iter().any(|it| it.table == table);
            return match (self.locks && !self.tables.is_empty(), is_read) {
                (true, true) => KeptRow::LockedTwice,
                (true, false) => KeptRow::NotLocked,
                _ => KeptRow::NotSimple,
            };
        };
        match self.keys.get(place * self.tables.len() + at) {
            None => KeptRow::Absent,
            Some(key) => key.as_deref().map_or(KeptRow::NotSimple, KeptRow::Key),
        }
    }
}
