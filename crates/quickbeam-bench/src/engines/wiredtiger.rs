//! WiredTiger: a B+tree with update chains in memory, by authors of Berkeley DB.
//!
//! A session and a cursor are kept for each thread and used over and over; transactions are at
//! snapshot isolation. No checkpoints run by themselves.

use std::sync::{Arc, OnceLock};

use anyhow::Result;

use super::ffi::wiredtiger::{self as ffi, WtConnection, WtLibrary};
use super::library;
use crate::engine::{
    Engine, Instance, Mode, OpResult, ReadWork, Reader, Session, Setup, Span, Support, Visit,
    WriteWork, Writer,
};

static LIBRARY: OnceLock<Result<Arc<WtLibrary>, String>> = OnceLock::new();

const TABLE: &str = "table:kv";
const TABLE_CONFIG: &str = "key_format=u,value_format=u";
const SESSION_CONFIG: &str = "isolation=snapshot";

/// The adapter.
pub struct Wiredtiger;

impl Engine for Wiredtiger {
    fn name(&self) -> &'static str {
        "wiredtiger"
    }

    fn version(&self) -> Result<String> {
        Ok(library(&LIBRARY, WtLibrary::load)?.version().to_owned())
    }

    fn supports(&self, _mode: Mode, _threads: usize) -> Support {
        Support::Yes
    }

    fn replays_log(&self) -> bool {
        true
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Instance>> {
        let durability = match setup.mode {
            Mode::Ds => "log=(enabled=false)",
            Mode::InMem => "in_memory=true",
            Mode::Sync | Mode::Ramdisk => {
                "log=(enabled=true),transaction_sync=(enabled=true,method=fsync)"
            }
            Mode::Wns => "log=(enabled=true),transaction_sync=(enabled=true,method=none)",
            Mode::Ns => "log=(enabled=true),transaction_sync=(enabled=false)",
        };
        let config = format!(
            "create,cache_size={},session_max={},{durability}",
            setup.cache_bytes,
            setup.threads + 20
        );
        let library = library(&LIBRARY, WtLibrary::load)?;
        let connection = WtConnection::open(&library, &setup.directory, &config)?;
        connection.session(SESSION_CONFIG)?.create(TABLE, TABLE_CONFIG)?;
        let in_memory = setup.mode == Mode::InMem;
        Ok(Box::new(OpenWiredTiger {
            connection,
            in_memory,
            settings: format!("{config},{TABLE_CONFIG}"),
        }))
    }
}

struct OpenWiredTiger {
    connection: WtConnection,
    in_memory: bool,
    settings: String,
}

impl Instance for OpenWiredTiger {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let mut session = self.connection.session(SESSION_CONFIG)?;
        session.open_table(TABLE)?;
        Ok(Box::new(WtHandle(session)))
    }

    fn checkpoint(&self) -> Result<()> {
        if self.in_memory {
            return Ok(());
        }
        self.connection.session(SESSION_CONFIG)?.checkpoint()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.connection.close()
    }
}

struct WtHandle<'e>(ffi::WtSession<'e>);

impl WtHandle<'_> {
    fn transaction(&mut self, work: impl FnOnce(&mut Self) -> OpResult) -> OpResult {
        self.0.begin()?;
        match work(self) {
            Ok(()) => self.0.commit(),
            Err(error) => {
                self.0.rollback()?;
                Err(error)
            }
        }
    }
}

impl Session for WtHandle<'_> {
    fn read(&mut self, work: &mut ReadWork<'_>) -> OpResult {
        self.transaction(|handle| work(handle))
    }

    fn write(&mut self, work: &mut WriteWork<'_>) -> OpResult {
        self.transaction(|handle| work(handle))
    }

    fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        self.0.scan(visit)
    }
}

impl Reader for WtHandle<'_> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        self.0.get(key, value)
    }

    fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        self.0.range(span, visit)
    }
}

impl Writer for WtHandle<'_> {
    fn insert(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.0.put(key, value)
    }

    fn update(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        self.0.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> OpResult {
        self.0.delete(key)
    }
}
