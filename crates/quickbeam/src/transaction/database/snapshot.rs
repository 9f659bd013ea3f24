//! Read-only snapshots, and the trait of everything that records can be read in.
//!
//! Above: applications. Below: [`Transaction`]. A [`Snapshot`] is a transaction that cannot write,
//! by its type: the methods that write take a [`Transaction`].

use super::Database;
use crate::error::Result;
use crate::transaction::Transaction;

/// A read-only view of the environment, as it was when
/// [`begin_read`](crate::Environment::begin_read) was called. It never waits for a transaction and
/// never fails with a conflict. Old versions of records are kept for it until it is dropped.
///
/// ```
/// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
/// # let fruit = environment.create_database("fruit")?;
/// environment.transact(|transaction| fruit.put(transaction, b"apple", b"red"))?;
/// let snapshot = environment.begin_read()?;
/// environment.transact(|transaction| fruit.put(transaction, b"apple", b"green"))?;
/// assert_eq!(fruit.get(&snapshot, b"apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok::<(), quickbeam::Error>(())
/// ```
///
/// A change in a snapshot does not compile:
///
/// ```compile_fail,E0308
/// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
/// # let fruit = environment.create_database("fruit")?;
/// let snapshot = environment.begin_read()?;
/// fruit.put(&snapshot, b"apple", b"red")?;
/// # Ok::<(), quickbeam::Error>(())
/// ```
pub struct Snapshot {
    transaction: Transaction,
}

impl Snapshot {
    pub(crate) fn new(transaction: Transaction) -> Snapshot {
        Snapshot { transaction }
    }

    /// Opens a database that the snapshot sees.
    pub fn open_database(&self, name: &str) -> Result<Database> {
        self.transaction.open_database(name)
    }

    /// Returns the names of all databases that the snapshot sees, in ascending order.
    pub fn databases(&self) -> Result<Vec<String>> {
        self.transaction.databases()
    }
}

/// A [`Snapshot`] or a [`Transaction`]: records can be read in both.
pub trait ReadTransaction: sealed::Sealed {
    /// Returns the transaction that reads. That of a snapshot refuses changes when it is asked for
    /// them; query layers use it.
    fn as_transaction(&self) -> &Transaction;
}

impl ReadTransaction for Transaction {
    #[inline]
    fn as_transaction(&self) -> &Transaction {
        self
    }
}

impl ReadTransaction for Snapshot {
    #[inline]
    fn as_transaction(&self) -> &Transaction {
        &self.transaction
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Transaction {}
    impl Sealed for super::Snapshot {}
}
