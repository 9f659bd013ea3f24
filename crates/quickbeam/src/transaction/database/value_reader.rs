//! Long values in parts.
//!
//! Above: applications. Below: point reads and overflow chains. A chain never changes, and it is
//! not freed while a snapshot sees its record (CHAIN-1). So a reader keeps a position in it between
//! calls, but no latch and no page.

use std::io::{self, Read, Seek, SeekFrom};

use super::{Database, ReadTransaction, Snapshot};
use crate::AccessMethod;
use crate::access::btree::Tree;
use crate::access::overflow::{ChainReader, copy_part};
use crate::error::Result;
use crate::page::OVERFLOW;
use crate::transaction::{DatabaseUse, Transaction};

/// The value of a record in a snapshot, read in parts: [`Database::value_reader`].
///
/// Reading on from where the last read ended, or from a later position, follows the value's pages
/// from there. Seeking back starts at its first page. An error of the engine is the
/// source of the [`io::Error`], as an [`Error`](crate::Error).
pub struct ValueReader<'s> {
    transaction: &'s Transaction,
    stored: StoredValue,
    position: u64,
}

/// Where a value is.
enum StoredValue {
    Inline(Vec<u8>),
    Chain(ChainReader),
}

impl StoredValue {
    fn length(&self) -> u64 {
        match self {
            StoredValue::Inline(value) => value.len() as u64,
            StoredValue::Chain(chain) => chain.length(),
        }
    }

    fn read_at(&mut self, transaction: &Transaction, offset: u64, out: &mut [u8]) -> Result<usize> {
        match self {
            StoredValue::Chain(chain) => transaction.read_chain_part(chain, offset, out),
            StoredValue::Inline(value) => Ok(copy_part(value, offset, out)),
        }
    }
}

impl Database {
    /// Reads a part of the value of `key`: the bytes from `offset` on, into `out`. Returns how many
    /// there were, fewer than `out` holds only at the value's end, or `None` if there is no record.
    ///
    /// A long value is not read whole, but its pages up to the part are visited; several parts of
    /// one value are faster with a [`value_reader`](Self::value_reader).
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let files = environment.create_database("files")?;
    /// # let transaction = environment.begin()?;
    /// files.put(&transaction, b"scan.png", &[7; 1_000_000])?;
    /// let mut part = [0; 16];
    /// assert_eq!(files.get_part(&transaction, b"scan.png", 999_990, &mut part)?, Some(10));
    /// assert_eq!(part[..10], [7; 10]);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn get_part(
        &self,
        transaction: &impl ReadTransaction,
        key: &[u8],
        offset: u64,
        out: &mut [u8],
    ) -> Result<Option<usize>> {
        let transaction = transaction.as_transaction();
        let Some(mut stored) = self.stored_value(transaction, key)? else { return Ok(None) };
        stored.read_at(transaction, offset, out).map(Some)
    }

    /// Opens the value of `key` for reading in parts. Returns `None` if there is no record. A value
    /// of gigabytes needs no memory of its size.
    ///
    /// ```
    /// use std::io::{Read, Seek, SeekFrom};
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let files = environment.create_database("files")?;
    /// environment.transact(|transaction| files.put(transaction, b"log", &[b'a'; 100_000]))?;
    /// let snapshot = environment.begin_read()?;
    /// let mut reader = files.value_reader(&snapshot, b"log")?.expect("the record is there");
    /// assert_eq!(reader.length(), 100_000);
    /// let mut part = [0; 4];
    /// reader.seek(SeekFrom::End(-4))?;
    /// reader.read_exact(&mut part)?;
    /// assert_eq!(&part, b"aaaa");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn value_reader<'s>(
        &self,
        snapshot: &'s Snapshot,
        key: &[u8],
    ) -> Result<Option<ValueReader<'s>>> {
        let transaction = snapshot.as_transaction();
        let stored = self.stored_value(transaction, key)?;
        Ok(stored.map(|stored| ValueReader { transaction, stored, position: 0 }))
    }

    fn stored_value(&self, transaction: &Transaction, key: &[u8]) -> Result<Option<StoredValue>> {
        let tree = self.tree(transaction, DatabaseUse::Read)?;
        let mut value = Vec::new();
        let Some(flags) = self.read_stored(transaction, tree, key, &mut value)? else {
            return Ok(None);
        };
        if flags & OVERFLOW == 0 {
            return Ok(Some(StoredValue::Inline(value)));
        }
        let chain = ChainReader::new(&transaction.engine().pool, &value)?;
        Ok(Some(StoredValue::Chain(chain)))
    }

    fn read_stored(
        &self,
        transaction: &Transaction,
        tree: Tree,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<u8>> {
        match tree.method {
            AccessMethod::BTree => transaction.read_stored(tree, key, value),
            AccessMethod::Hash | AccessMethod::HashPrefix => {
                self.with_leaf_hint(transaction, tree, key, |stored| {
                    transaction.read_stored(tree, stored, value)
                })
            }
        }
    }
}

impl ValueReader<'_> {
    /// Returns the length of the value in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.stored.length()
    }

    /// Returns the offset at which the next read begins.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl Read for ValueReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.stored.read_at(self.transaction, self.position, out);
        let read = read.map_err(io::Error::other)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for ValueReader<'_> {
    /// Moves to a position, which may be past the end, where nothing is read.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(offset) => self.length().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the position is before the value's start")
        })?;
        Ok(self.position)
    }
}
