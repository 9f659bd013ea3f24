//! Quickbeam itself: Data Store in mode `ds`, Transactional Data Store at the four durability
//! levels in the others.

use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Result, anyhow};
use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
use quickbeam::{
    DataStore, Database, Durability, Environment, Options, ReadTransaction, StoreDatabase,
    Transaction,
};

use crate::engine::{
    Engine, Instance, Mode, OpError, OpResult, ReadWork, Reader, Session, Setup, Span, Support,
    Visit, WriteWork, Writer,
};

const DATABASE: &str = "kv";

/// The adapter.
pub struct QuickbeamStore {
    /// How ranges are read.
    pub ranges: RangeBy,
}

/// The ways to read a range. A Data Store has only its cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeBy {
    /// A [`Scan`], a batch at a time.
    Scan,
    /// A cursor, record by record.
    Cursor,
    /// The iterator of [`Database::range`].
    Iterator,
}

impl Engine for QuickbeamStore {
    fn name(&self) -> &'static str {
        match self.ranges {
            RangeBy::Scan => "quickbeam",
            RangeBy::Cursor => "quickbeam-cursor",
            RangeBy::Iterator => "quickbeam-iterator",
        }
    }

    fn version(&self) -> Result<String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn supports(&self, mode: Mode, threads: usize) -> Support {
        match mode {
            Mode::Ds if threads > 1 => Support::No("Data Store has one owner"),
            Mode::Ds if self.ranges != RangeBy::Scan => Support::No("the same as quickbeam"),
            _ => Support::Yes,
        }
    }

    fn replays_log(&self) -> bool {
        true
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Instance>> {
        let durability = match setup.mode {
            Mode::Ds | Mode::Sync | Mode::Ramdisk => Durability::Sync,
            Mode::Wns => Durability::WriteNoSync,
            Mode::Ns => Durability::NoSync,
            Mode::InMem => Durability::InMemory,
        };
        let mut options = Options::new()
            .cache_size(usize::try_from(setup.cache_bytes)?)
            .log_buffer(usize::try_from(setup.log_buffer_bytes)?)
            .durability(durability);
        if !setup.automatic_checkpoints {
            options.checkpoint_bytes = u64::MAX;
            options.checkpoint_interval = Duration::MAX;
        }
        let page_size = options.page_size;
        if setup.mode == Mode::Ds {
            let mut store = DataStore::open(&setup.directory, options)?;
            let database = store.open_or_create_database(DATABASE)?;
            let settings = format!("Data Store, {page_size}-byte pages");
            return Ok(Box::new(Store { store: Mutex::new(store), database, settings }));
        }
        let environment = Environment::open(&setup.directory, options)?;
        let database = environment.open_or_create_database(DATABASE)?;
        let settings = format!("serializable, {durability}, {page_size}-byte pages");
        Ok(Box::new(OpenQuickbeamStore { environment, database, ranges: self.ranges, settings }))
    }
}

/// What the caller can do about an error of the engine.
fn classify(error: quickbeam::Error) -> OpError {
    if error.is_retryable() { OpError::Retry } else { OpError::Failed(error.into()) }
}

/// An open Transactional Data Store.
struct OpenQuickbeamStore {
    environment: Environment,
    database: Database,
    ranges: RangeBy,
    settings: String,
}

impl Instance for OpenQuickbeamStore {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(QuickbeamSession {
            environment: &self.environment,
            database: self.database.clone(),
            ranges: self.ranges,
            upward: Scan::new(Bound::Unbounded, Bound::Unbounded),
            downward: Scan::new(Bound::Unbounded, Bound::Unbounded).backward(),
            batch: ScanBatch::default(),
        }))
    }

    fn checkpoint(&self) -> Result<()> {
        Ok(self.environment.checkpoint()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        drop(self.database);
        Ok(self.environment.close()?)
    }
}

/// One thread's database handle.
struct QuickbeamSession<'e> {
    environment: &'e Environment,
    database: Database,
    ranges: RangeBy,
    upward: Scan,
    downward: Scan,
    batch: ScanBatch,
}

/// The handle inside a transaction.
struct Inside<'a, T> {
    database: &'a Database,
    transaction: T,
}

/// The handle inside a transaction that only reads.
struct Reading<'a, T> {
    inside: Inside<'a, T>,
    ranges: RangeBy,
    upward: &'a mut Scan,
    downward: &'a mut Scan,
    batch: &'a mut ScanBatch,
}

impl Session for QuickbeamSession<'_> {
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        let transaction = self.environment.begin_read().map_err(classify)?;
        work(&mut Reading {
            inside: Inside { database: &self.database, transaction },
            ranges: self.ranges,
            upward: &mut self.upward,
            downward: &mut self.downward,
            batch: &mut self.batch,
        })
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        let transaction = self.environment.begin().map_err(classify)?;
        let mut inside = Inside { database: &self.database, transaction };
        work(&mut inside)?;
        inside.transaction.commit().map_err(classify)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let transaction = self.environment.begin_read()?;
        let mut cursor = self.database.cursor(&transaction)?;
        let mut found = cursor.first()?;
        while found {
            visit(cursor.key(), cursor.value());
            found = cursor.next()?;
        }
        Ok(())
    }
}

impl<T: ReadTransaction> Reading<'_, T> {
    fn scan(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> quickbeam::Result<()> {
        let Inside { database, transaction } = &self.inside;
        let from = Bound::Included(span.from);
        let scan = if span.backward { &mut *self.downward } else { &mut *self.upward };
        match span.backward {
            false => scan.restart(from, Bound::Unbounded),
            true => scan.restart(Bound::Unbounded, from),
        }
        let mut left = span.count;
        while left > 0 {
            scan.set_record_limit(left);
            if !database.scan(transaction, scan, self.batch)? {
                break;
            }
            left -= self.batch.len();
            for record in 0..self.batch.len() {
                visit(self.batch.key(record), self.batch.value(record));
            }
        }
        Ok(())
    }

    fn walk(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> quickbeam::Result<()> {
        let mut cursor = self.inside.database.cursor(&self.inside.transaction)?;
        let mut found = if span.backward {
            cursor.seek_at_or_before(span.from)?
        } else {
            cursor.seek(span.from)?
        };
        for left in (0..span.count).rev() {
            if !found {
                break;
            }
            visit(cursor.key(), cursor.value());
            if left > 0 {
                found = if span.backward { cursor.prev()? } else { cursor.next()? };
            }
        }
        Ok(())
    }

    fn iterate(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> quickbeam::Result<()> {
        let Inside { database, transaction } = &self.inside;
        let mut records = match span.backward {
            false => database.range(transaction, span.from..),
            true => database.range(transaction, ..=span.from),
        };
        for _ in 0..span.count {
            let record = match span.backward {
                false => records.next_borrowed()?,
                true => records.next_back_borrowed()?,
            };
            let Some((key, value)) = record else { break };
            visit(key, value);
        }
        Ok(())
    }
}

impl<T: ReadTransaction> Reader for Reading<'_, T> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        self.inside.database.get_into(&self.inside.transaction, key, value).map_err(classify)
    }

    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        let outcome = match self.ranges {
            RangeBy::Scan => self.scan(span, visit),
            RangeBy::Cursor => self.walk(span, visit),
            RangeBy::Iterator => self.iterate(span, visit),
        };
        outcome.map_err(classify)
    }
}

impl Writer for Inside<'_, Transaction> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.database.put(&self.transaction, key, value).map_err(classify)
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.database.put(&self.transaction, key, value).map_err(classify)
    }

    fn delete(&mut self, key: &[u8]) -> OpResult {
        match self.database.delete(&self.transaction, key).map_err(classify)? {
            true => Ok(()),
            false => Err(anyhow!("no record to delete").into()),
        }
    }
}

/// An open Data Store.
struct Store {
    store: Mutex<DataStore>,
    database: StoreDatabase,
    settings: String,
}

impl Store {
    fn owner(&self) -> Result<MutexGuard<'_, DataStore>> {
        self.store.try_lock().map_err(|_| anyhow!("the Data Store is in use"))
    }
}

impl Instance for Store {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        // The lock is held as long as the session lives: nothing is locked for an operation.
        Ok(Box::new(Owner { store: self.owner()?, database: self.database }))
    }

    fn checkpoint(&self) -> Result<()> {
        Ok(self.owner()?.sync()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        let store = self.store.into_inner().map_err(|_| anyhow!("the Data Store has failed"))?;
        Ok(store.close()?)
    }
}

struct Owner<'e> {
    store: MutexGuard<'e, DataStore>,
    database: StoreDatabase,
}

impl Session for Owner<'_> {
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        work(self)
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        work(self)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut cursor = self.store.cursor(self.database)?;
        let mut found = cursor.first()?;
        while found {
            visit(cursor.key(), cursor.value());
            found = cursor.next()?;
        }
        Ok(())
    }
}

impl Reader for Owner<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        self.store.get_into(self.database, key, value).map_err(classify)
    }

    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        let mut walk = || {
            let mut cursor = self.store.cursor(self.database)?;
            let mut found = if span.backward {
                cursor.seek_at_or_before(span.from)?
            } else {
                cursor.seek(span.from)?
            };
            for left in (0..span.count).rev() {
                if !found {
                    break;
                }
                visit(cursor.key(), cursor.value());
                if left > 0 {
                    found = if span.backward { cursor.prev()? } else { cursor.next()? };
                }
            }
            Ok(())
        };
        walk().map_err(classify)
    }
}

impl Writer for Owner<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.store.put(self.database, key, value).map_err(classify)
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.store.put(self.database, key, value).map_err(classify)
    }

    fn delete(&mut self, key: &[u8]) -> OpResult {
        match self.store.delete(self.database, key).map_err(classify)? {
            true => Ok(()),
            false => Err(anyhow!("no record to delete").into()),
        }
    }
}
