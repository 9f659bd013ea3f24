//! redb: a copy-on-write B+tree in Rust, one writer at a time, no log.

use anyhow::Result;
use redb::backends::InMemoryBackend;
use redb::{Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use crate::engine::{
    Engine, Instance, Mode, OpResult, ReadWork, Reader, Session, Setup, Span, Support, Visit,
    WriteWork, Writer,
};

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("kv");

/// The adapter.
pub struct Redb;

impl Engine for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn version(&self) -> Result<String> {
        Ok(env!("QUICKBEAM_BENCH_REDB_VERSION").to_owned())
    }

    fn supports(&self, mode: Mode, _threads: usize) -> Support {
        match mode {
            Mode::Wns => Support::No("a commit is either flushed or stays in the process"),
            _ => Support::Yes,
        }
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Instance>> {
        let mut builder = Builder::new();
        builder.set_cache_size(usize::try_from(setup.cache_bytes)?);
        let database = match setup.mode {
            Mode::InMem => builder.create_with_backend(InMemoryBackend::new())?,
            _ => builder.create(setup.directory.join("kv.redb"))?,
        };
        let durability =
            if setup.mode.flushes() { Durability::Immediate } else { Durability::None };
        let transaction = database.begin_write()?;
        transaction.open_table(TABLE)?;
        transaction.commit()?;
        Ok(Box::new(OpenRedb { database, durability, in_memory: setup.mode == Mode::InMem }))
    }
}

struct OpenRedb {
    database: Database,
    durability: Durability,
    in_memory: bool,
}

impl OpenRedb {
    fn commit_durably(&self) -> Result<()> {
        self.database.begin_write()?.commit()?;
        Ok(())
    }
}

impl Instance for OpenRedb {
    fn settings(&self) -> String {
        let backend = if self.in_memory { "in-memory backend" } else { "file" };
        format!("{backend}, Durability::{:?}", self.durability)
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(RedbSession { open: self }))
    }

    fn checkpoint(&self) -> Result<()> {
        self.commit_durably()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.commit_durably()
    }
}

struct RedbSession<'e> {
    open: &'e OpenRedb,
}

struct ReadTable(redb::ReadOnlyTable<&'static [u8], &'static [u8]>);
struct WriteTable<'t>(redb::Table<'t, &'static [u8], &'static [u8]>);

impl Session for RedbSession<'_> {
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        let transaction = self.open.database.begin_read()?;
        work(&mut ReadTable(transaction.open_table(TABLE)?))
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        let mut transaction = self.open.database.begin_write()?;
        transaction.set_durability(self.open.durability)?;
        work(&mut WriteTable(transaction.open_table(TABLE)?))?;
        Ok(transaction.commit()?)
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let transaction = self.open.database.begin_read()?;
        for record in transaction.open_table(TABLE)?.iter()? {
            let (key, value) = record?;
            visit(key.value(), value.value());
        }
        Ok(())
    }
}

impl Reader for ReadTable {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        value.clear();
        let found = self.0.get(key)?;
        Ok(match found {
            Some(guard) => {
                value.extend_from_slice(guard.value());
                true
            }
            None => false,
        })
    }

    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        if span.backward {
            for record in self.0.range(..=span.from)?.rev().take(span.count) {
                let (key, value) = record?;
                visit(key.value(), value.value());
            }
        } else {
            for record in self.0.range(span.from..)?.take(span.count) {
                let (key, value) = record?;
                visit(key.value(), value.value());
            }
        }
        Ok(())
    }
}

impl Writer for WriteTable<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.0.insert(key, value)?;
        Ok(())
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.0.insert(key, value)?;
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> OpResult {
        self.0.remove(key)?;
        Ok(())
    }
}
