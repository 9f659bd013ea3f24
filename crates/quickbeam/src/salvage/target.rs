//! The salvage target: a new environment or data store, of the same kind as the damaged one.
//!
//! Above: salvage. Below: the public interface of environments and data stores.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::{SalvagedDatabase, Shape, Trees, user_key};
use crate::checkpoint::StoreKind;
use crate::environment::Environment;
use crate::error::Result;
use crate::options::{Durability, Isolation, Options, TransactionOptions};
use crate::store::{DataStore, StoreDatabase};
use crate::transaction::{Database, Transaction};
use crate::vfs::Vfs;
use crate::wal::Operation;

/// Maximum number of operations and of bytes in one transaction.
const BATCH: usize = 10_000;
const BATCH_BYTES: usize = 8 << 20;

enum SalvageStore {
    Environment {
        environment: Environment,
        databases: HashMap<u32, Database>,
        transaction: Box<Option<Transaction>>,
        /// Operations and bytes in the transaction.
        filled: (usize, usize),
    },
    Store {
        store: Box<DataStore>,
        databases: HashMap<u32, StoreDatabase>,
    },
}

/// The salvage target, with a database for every copied tree.
pub struct SalvageTarget {
    place: SalvageStore,
    trees: Trees,
}

impl SalvageTarget {
    pub fn create(
        vfs: Arc<dyn Vfs>,
        into: &Path,
        options: &Options,
        shape: &Shape,
        trees: &Trees,
    ) -> Result<SalvageTarget> {
        let options = Options {
            page_size: shape.page_size,
            cache_size: options.cache_size.max(shape.page_size * 256),
            log_segment_size: shape.log_segment_size.unwrap_or(options.log_segment_size),
            durability: Durability::NoSync,
            create: true,
            ..options.clone()
        };
        let place = match shape.kind {
            StoreKind::Transactional => {
                let environment = Environment::open_in(vfs, Some(into), options)?;
                let made = trees.iter().map(|(&tree, (name, method))| {
                    let made = environment.create_database_with(name, *method);
                    made.map(|database| (tree, database))
                });
                let databases = made.collect::<Result<_>>()?;
                SalvageStore::Environment {
                    environment,
                    databases,
                    transaction: Box::default(),
                    filled: (0, 0),
                }
            }
            StoreKind::Plain => {
                let mut store = Box::new(DataStore::open_in(vfs, Some(into), options)?);
                let made = trees.iter().map(|(&tree, (name, method))| {
                    store.create_database_with(name, *method).map(|made| (tree, made))
                });
                let databases = made.collect::<Result<_>>()?;
                SalvageStore::Store { store, databases }
            }
        };
        Ok(SalvageTarget { place, trees: trees.clone() })
    }

    /// Inserts or replaces a record.
    pub fn put(&mut self, tree: u32, key: &[u8], value: &[u8]) -> Result<()> {
        self.apply(Operation::Put { tree, key, value })
    }

    /// Applies one operation, unless its tree is not copied. Keys are stored keys.
    pub fn apply(&mut self, operation: Operation<'_>) -> Result<()> {
        let (Operation::Put { tree, key, .. } | Operation::Delete { tree, key }) = operation;
        let Some((_, method)) = self.trees.get(&tree) else { return Ok(()) };
        let key = user_key(*method, key);
        match &mut self.place {
            SalvageStore::Environment { environment, databases, transaction, filled } => {
                let Some(database) = databases.get(&tree) else { return Ok(()) };
                if filled.0 >= BATCH || filled.1 >= BATCH_BYTES {
                    commit(transaction)?;
                    *filled = (0, 0);
                }
                let within = begin(environment, transaction)?;
                filled.0 += 1;
                match operation {
                    Operation::Put { value, .. } => {
                        filled.1 += key.len() + value.len();
                        database.put(within, key, value)
                    }
                    Operation::Delete { .. } => database.delete(within, key).map(|_| ()),
                }
            }
            SalvageStore::Store { store, databases } => {
                let Some(&database) = databases.get(&tree) else { return Ok(()) };
                match operation {
                    Operation::Put { value, .. } => store.put(database, key, value),
                    Operation::Delete { .. } => store.delete(database, key).map(|_| ()),
                }
            }
        }
    }

    /// Removes the records of older images from a range that a newer image covers.
    pub fn clear(&mut self, tree: u32, lower: &[u8], upper: Option<&[u8]>) -> Result<()> {
        for key in self.keys(tree, lower, upper)? {
            self.apply(Operation::Delete { tree, key: &key })?;
        }
        Ok(())
    }

    fn keys(&mut self, tree: u32, lower: &[u8], upper: Option<&[u8]>) -> Result<Vec<Vec<u8>>> {
        let is_inside = |key: &[u8]| upper.is_none_or(|upper| key < upper);
        let mut keys = Vec::new();
        match &mut self.place {
            SalvageStore::Environment { environment, databases, transaction, .. } => {
                let Some(database) = databases.get(&tree) else { return Ok(keys) };
                let mut cursor = database.cursor(begin(environment, transaction)?)?;
                let mut found = cursor.seek_stored(lower)?;
                while found && is_inside(cursor.stored_key()) {
                    keys.push(cursor.stored_key().to_vec());
                    found = cursor.next()?;
                }
            }
            SalvageStore::Store { store, databases } => {
                let Some(&database) = databases.get(&tree) else { return Ok(keys) };
                let mut cursor = store.cursor(database)?;
                let mut found = cursor.seek_stored(lower)?;
                while found && is_inside(cursor.stored_key()) {
                    keys.push(cursor.stored_key().to_vec());
                    found = cursor.next()?;
                }
            }
        }
        Ok(keys)
    }

    /// Makes the target durable and closes it. Returns its databases.
    pub fn finish(mut self) -> Result<Vec<SalvagedDatabase>> {
        let mut databases = Vec::new();
        for (tree, (name, _)) in self.trees.clone() {
            let records = self.keys(tree, b"", None)?.len() as u64;
            databases.push(SalvagedDatabase { name, records });
        }
        databases.sort_by(|one, other| one.name.cmp(&other.name));
        match self.place {
            SalvageStore::Environment { environment, mut transaction, .. } => {
                commit(&mut transaction)?;
                environment.close()?;
            }
            SalvageStore::Store { store, .. } => store.close()?,
        }
        Ok(databases)
    }
}

fn begin<'t>(
    environment: &Environment,
    transaction: &'t mut Option<Transaction>,
) -> Result<&'t Transaction> {
    // No other transaction is running, so nothing has to be validated at commit.
    let options = TransactionOptions { isolation: Some(Isolation::Snapshot), ..Default::default() };
    match transaction {
        Some(transaction) => Ok(transaction),
        none => Ok(none.insert(environment.begin_with(options)?)),
    }
}

fn commit(transaction: &mut Option<Transaction>) -> Result<()> {
    transaction.take().map_or(Ok(()), Transaction::commit)
}
