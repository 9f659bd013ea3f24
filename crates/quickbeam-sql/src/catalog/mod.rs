//! The catalog: what tables, indexes, constraints, views and sequences there are.
//!
//! Above: the planner, and storage where it needs to know of other tables. Below: types; storage
//! for rows. Objects are records of the tree `sql.catalog`, changed in the transaction of the
//! statement that changes them, and kept in memory by version.
//!
//! - CATALOG-1: every change of the catalog first writes the record of its version, with a number
//!   never used before. So changes of the catalog exclude each other, and what is in memory under a
//!   version is what every transaction that reads this version sees.
//! - CATALOG-2: a transaction sees the catalog of its snapshot, and its own changes. While the
//!   engine's catalog version is the one for which the version is known, that costs one comparison.
//! - CATALOG-3: what changes how a table's records are written, or which indexes and foreign keys
//!   go with them, gives the table's tree another name (`Table::generation`). A transaction that
//!   wrote to the tree by its old name cannot commit afterwards. What the change read of the table
//!   must still hold when it commits. So neither misses what the other did.

pub mod access_text;
pub mod comments;
mod composite_types;
pub mod describe;
pub mod programs;
pub(crate) mod records;
pub(crate) mod rights;
mod schemas;
mod snapshot;
pub mod system;
pub mod text;
mod user_types;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use quickbeam::query_layer::TransactionExt;
use quickbeam::{
    AccessMethod, Database, Environment, Isolation, ReadTransaction, Transaction, invariant,
};
use smol_str::SmolStr;

pub use crate::error::TREE_PREFIX;
use crate::error::{Result, SqlError};
use crate::handle::column_cache::ColumnCache;
use crate::handle::{IndexCompiler, RowIds, TableHandle};
use crate::schema::encoding::Layouts;
pub use crate::schema::{
    ALL_ROLES, AclItem, AclKind, Added, AggregateDefinition, Argument, ArgumentMode, Attribute,
    BOOTSTRAP, BOOTSTRAP_NAME, BuiltinTrigger, Check, CheckOption, Column, CompositeType,
    ConcreteTypes, ConstraintTiming, DATABASE_ID, DeclaredType, DefaultAcl, DefaultRights, Domain,
    DomainCheck, DomainUse, DropBehavior, EXPRESSIONS, EnumLabel, EnumType, FiredTriggers,
    ForeignKey, ForeignKeyAction, FunctionName, Identity, Index, IndexConstraint, KeyColumn,
    Language, MadeCollation, Materialized, Membership, Method, NamedDomain, NewCheck, NewColumn,
    NewForeignKey, NewGenerated, NewIdentity, NewIndex, NewIndexExpression, NewIndexPredicate,
    NewKey, NewMaterialized, NewTable, NewView, ObjectAccess, ObjectId, OnCommit, OperatorClass,
    PUBLIC, PUBLIC_SCHEMA_ID, PrimaryKey, Privileges, PseudoType, Reference, Relation, Role,
    RoleSettings, Routine, RoutineResult, Schema, Sequence, SequenceChanges, SequenceOptions,
    SettingList, SettingPlace, TEMPORARY_SCHEMA, Table, TransitionSide, Trigger, TriggerEvent,
    TriggerLevel, TriggerState, TriggerTiming, TypeKey, View, ViewChange, ViewOptions, Volatility,
    change_setting, is_system_schema, is_temporary_schema, lookup_name, path_schemas, shown_name,
    split_lookup_name,
};
use crate::types::{DataType, Value};
pub(crate) use composite_types::row_type_name;
pub use snapshot::CatalogSnapshot;
pub(crate) use snapshot::SnapshotVisibility;
pub(crate) use user_types::collation_oid;

/// The tree of the catalog's records.
pub(crate) const CATALOG: &str = "sql.catalog";
/// The tree of the values of sequences.
pub(crate) const SEQUENCES: &str = "sql.sequences";

/// First byte of the keys of objects' records; the object's number follows.
pub(crate) const OBJECT: u8 = b'o';
/// First byte of the keys of the records of rights; the object's number follows.
pub(crate) const ACCESS: u8 = b'a';
/// First byte of the keys of the records of comments; the object's number follows.
pub(crate) const COMMENTS: u8 = b'c';
/// First byte of the keys of the records of settings; the role's number follows.
pub(crate) const SETTINGS: u8 = b's';
/// First byte of the keys of the records of default rights; the role's number follows.
pub(crate) const DEFAULT_RIGHTS: u8 = b'd';
/// Key of the version's record.
pub(crate) const VERSION: &[u8] = b"version";
/// Key of the record of the next number for an object.
pub(crate) const NEXT_OBJECT: &[u8] = b"next object";

/// Snapshots kept in memory: the newest, and those of transactions that see older ones or changes
/// of their own.
const KEPT: usize = 8;

/// The next version and the next number of an object, of all environments of the process: so they
/// are given out once, however many catalogs there are for an environment.
static NEXT_VERSION_NUMBER: AtomicU64 = AtomicU64::new(1);
static NEXT_OBJECT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// The catalog of an environment; shared by all connections to it.
pub struct Catalog {
    pub(crate) environment: Environment,
    pub(crate) objects: Database,
    pub(crate) sequences: Database,
    /// The newest version known, and the engine's catalog version for which it is known.
    known: AtomicPair,
    pub(crate) snapshots: RwLock<Vec<Arc<CatalogSnapshot>>>,
    pub(crate) reserved: Mutex<HashMap<(ObjectId, u32), Reserved>>,
    pub(crate) row_ids: Arc<RowIds>,
    /// Columns of rows that scans have decoded.
    pub(crate) column_cache: ColumnCache,
    /// What binds the expressions of indexes.
    pub(crate) index_compiler: OnceLock<&'static dyn IndexCompiler>,
}

/// Values that may be given out without asking the tree.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reserved {
    pub next: i64,
    pub left: i64,
    pub increment: i64,
}

/// Two numbers that belong together, read without a lock.
#[derive(Default)]
struct AtomicPair {
    sequence: AtomicU64,
    first: AtomicU64,
    second: AtomicU64,
    writing: Mutex<()>,
}

impl AtomicPair {
    /// The second number, if the first is `first`.
    #[inline]
    fn get(&self, first: u64) -> Option<u64> {
        let before = self.sequence.load(Ordering::Acquire);
        if before % 2 == 1 || self.first.load(Ordering::Relaxed) != first {
            return None;
        }
        let second = self.second.load(Ordering::Relaxed);
        std::sync::atomic::fence(Ordering::Acquire);
        (self.sequence.load(Ordering::Relaxed) == before).then_some(second)
    }

    fn set(&self, first: u64, second: u64) {
        let _writing = self.writing.lock();
        self.sequence.fetch_add(1, Ordering::Relaxed);
        std::sync::atomic::fence(Ordering::Release);
        self.first.store(first, Ordering::Relaxed);
        self.second.store(second, Ordering::Relaxed);
        self.sequence.fetch_add(1, Ordering::Release);
    }
}

impl Catalog {
    /// The catalog of an environment; makes it if there is none. One for each environment is
    /// enough, and cheapest: definitions, row ids and values of sequences are kept in memory by
    /// each.
    pub fn open(environment: &Environment) -> Result<Arc<Catalog>> {
        let objects = environment.open_or_create_database(CATALOG)?;
        let sequences = environment.open_or_create_database(SEQUENCES)?;
        let reader = environment.begin_read()?;
        let number = |key| -> Result<u64> {
            let mut value = Vec::new();
            objects.get_into(&reader, key, &mut value)?;
            Ok(value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
        };
        let (version, next_object) = (number(VERSION)?, number(NEXT_OBJECT)?);
        NEXT_VERSION_NUMBER.fetch_max(version + 1, Ordering::Relaxed);
        NEXT_OBJECT_NUMBER.fetch_max(next_object, Ordering::Relaxed);
        let known = AtomicPair::default();
        known.set(u64::MAX, 0);
        let catalog = Arc::new(Catalog {
            environment: environment.clone(),
            known,
            snapshots: RwLock::default(),
            reserved: Mutex::default(),
            row_ids: Arc::default(),
            column_cache: ColumnCache::new(environment.statistics().cache_size / 2),
            index_compiler: OnceLock::new(),
            objects,
            sequences,
        });
        if !environment.is_read_only() {
            catalog.sweep_sequences()?;
        }
        Ok(catalog)
    }

    /// Sets what binds the expressions of indexes. The first call counts.
    pub(crate) fn set_index_compiler(&self, compiler: &'static dyn IndexCompiler) {
        self.index_compiler.get_or_init(|| compiler);
        // What opening the catalog has read knows of no compiler.
        self.snapshots.write().clear();
    }

    /// The environment.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The version of the catalog that the transaction sees.
    #[inline]
    pub fn version(&self, transaction: &impl ReadTransaction) -> Result<u64> {
        let transaction = transaction.as_transaction();
        let engine = transaction.catalog_version();
        match engine.and_then(|engine| self.known.get(engine)) {
            Some(version) => Ok(version),
            None => self.read_version(transaction, engine),
        }
    }

    #[cold]
    fn read_version(&self, transaction: &Transaction, engine: Option<u64>) -> Result<u64> {
        let mut value = Vec::new();
        self.objects.get_into(transaction, VERSION, &mut value)?;
        let version = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        // Under read committed the two may have been read from different snapshots.
        if let Some(engine) = engine.filter(|known| transaction.catalog_version() == Some(*known)) {
            let known = self.known.get(engine).unwrap_or(version);
            invariant!(CATALOG_2, known == version, "{version} is known as {known}");
            self.known.set(engine, version);
        }
        Ok(version)
    }

    /// What the transaction sees of the catalog.
    pub fn snapshot(&self, transaction: &impl ReadTransaction) -> Result<Arc<CatalogSnapshot>> {
        let transaction = transaction.as_transaction();
        loop {
            let version = self.version(transaction)?;
            let visibility = match transaction.catalog_version() {
                None => SnapshotVisibility::Private,
                Some(_) => SnapshotVisibility::Shared,
            };
            let usable = |snapshot: &&Arc<CatalogSnapshot>| {
                let is_usable = |kind| kind == visibility || kind == SnapshotVisibility::Shared;
                snapshot.version == version && is_usable(snapshot.visibility)
            };
            if let Some(found) = self.snapshots.read().iter().find(usable) {
                invariant!(
                    CATALOG_2,
                    transaction.isolation() != Isolation::Snapshot
                        || self.read_version(transaction, None)? == version,
                    "version {version}"
                );
                return Ok(found.clone());
            }
            let compiler = self.index_compiler.get().copied();
            let snapshot =
                CatalogSnapshot::load(&self.objects, transaction, version, visibility, compiler)?;
            // Under read committed something may have been committed while it was read.
            if self.version(transaction)? != version {
                continue;
            }
            let mut snapshots = self.snapshots.write();
            snapshots.retain(|other| other.version != version);
            if snapshots.len() >= KEPT {
                snapshots.remove(0);
            }
            if visibility == SnapshotVisibility::Shared {
                self.column_cache.retain(|id| snapshot.tables.contains_key(&id));
            }
            let snapshot = Arc::new(snapshot);
            snapshots.push(snapshot.clone());
            return Ok(snapshot);
        }
    }

    /// The key/value database of that name; none if there is none. What tables are stored in is not
    /// meant.
    pub fn key_value_database(
        &self,
        transaction: &Transaction,
        name: &str,
    ) -> Result<Option<Database>> {
        if name.starts_with(TREE_PREFIX) || name.contains('\0') {
            return Ok(None);
        }
        match transaction.open_database(name) {
            Ok(database) => Ok(Some(database)),
            Err(quickbeam::Error::NoSuchDatabase { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A key/value database of the environment as a table of two columns, `key` and `value`; none
    /// if there is no such database.
    pub fn database_as_table(
        &self,
        transaction: &Transaction,
        name: &str,
    ) -> Result<Option<Arc<TableHandle>>> {
        let Some(database) = self.key_value_database(transaction, name)? else { return Ok(None) };
        let column = |id: u16, name: &'static str| Column {
            id,
            name: SmolStr::new_static(name),
            data_type: DataType::Bytea,
            domain: None,
            collation: None,
            not_null: true,
            default: None,
            identity: None,
            generated: None,
            missing: Value::Null,
        };
        let columns = vec![column(1, "key"), column(2, "value")];
        let table = Table {
            id: ObjectId(0),
            schema: PUBLIC,
            name: name.into(),
            primary_key: Some(PrimaryKey {
                name: smol_str::format_smolstr!("{name}_pkey"),
                columns: vec![0],
                method: match database.access_method() {
                    AccessMethod::BTree => Method::Range,
                    AccessMethod::Hash | AccessMethod::HashPrefix => Method::Hash,
                },
            }),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            referenced_by: Vec::new(),
            triggers: Vec::new(),
            generation: 0,
            layouts: Layouts::first(&columns),
            next_column: 3,
            comments: BTreeMap::new(),
            constraint_comments: BTreeMap::new(),
            materialized: None,
            database: Some(name.into()),
            columns,
        };
        Ok(Some(Arc::new(TableHandle::of_database(Arc::new(table), database))))
    }

    /// Where hidden row ids come from.
    pub(crate) fn row_ids(&self) -> &Arc<RowIds> {
        &self.row_ids
    }

    pub(crate) fn new_version() -> u64 {
        NEXT_VERSION_NUMBER.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn new_object(&self, transaction: &Transaction) -> Result<ObjectId> {
        let number = NEXT_OBJECT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let id = u32::try_from(number).map_err(|_| SqlError::internal("no object numbers left"))?;
        self.objects.put(transaction, NEXT_OBJECT, &(number + 1).to_le_bytes())?;
        Ok(ObjectId(id))
    }
}
