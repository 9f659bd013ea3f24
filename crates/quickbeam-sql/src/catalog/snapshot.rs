//! What a transaction sees of the catalog: all objects, by name and by number, at one version.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use quickbeam::{Database, Transaction, invariant};
use smol_str::SmolStr;

use super::records::Record;
use super::{ACCESS, COMMENTS, DEFAULT_RIGHTS, OBJECT, SETTINGS};
use crate::error::{Result, SqlError};
use crate::handle::{IndexCompiler, IndexEvaluator, NoEvaluator, TableHandle};
use crate::schema::errors::{is_not, no_index, no_relation};
use crate::schema::names::lookup_name;
use crate::schema::role_defaults::{DefaultRights, RoleSettings};
use crate::schema::roles::{ObjectAccess, Role};
use crate::schema::{
    BuiltinTrigger, Comments, CompositeType, Domain, EnumType, Index, MadeCollation, ObjectId,
    Reference, Relation, Routine, Schema, Sequence, Table, Trigger, View,
};
use crate::types::{Collation, EncodedType};

/// Who may use a snapshot of the catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SnapshotVisibility {
    /// Every transaction that sees its version.
    #[default]
    Shared,
    /// The transaction whose uncommitted changes it has.
    Private,
}

/// The catalog at one version. Two snapshots of the same version hold the same.
#[derive(Debug, Default)]
pub struct CatalogSnapshot {
    pub(crate) version: u64,
    /// Who may use it.
    pub(crate) visibility: SnapshotVisibility,
    pub(crate) tables: BTreeMap<ObjectId, Arc<Table>>,
    pub(crate) views: BTreeMap<ObjectId, Arc<View>>,
    pub(crate) sequences: BTreeMap<ObjectId, Arc<Sequence>>,
    pub(crate) schemas: BTreeMap<SmolStr, Schema>,
    pub(crate) roles: BTreeMap<ObjectId, Arc<Role>>,
    /// The owners and rights, by the number of the object.
    pub(crate) access: BTreeMap<ObjectId, Arc<ObjectAccess>>,
    /// The comments on objects that are no tables, by the number of the object.
    pub(crate) comments: BTreeMap<ObjectId, Comments>,
    /// The settings of roles, by the number of the role.
    pub(crate) settings: BTreeMap<ObjectId, RoleSettings>,
    /// The rights with which new objects begin, by the number of their owner.
    pub(crate) default_rights: BTreeMap<ObjectId, DefaultRights>,
    pub(crate) routines: BTreeMap<ObjectId, Arc<Routine>>,
    pub(crate) triggers: BTreeMap<ObjectId, Arc<Trigger>>,
    pub(crate) domains: BTreeMap<ObjectId, Arc<Domain>>,
    pub(crate) enums: BTreeMap<ObjectId, Arc<EnumType>>,
    pub(crate) composites: BTreeMap<ObjectId, Arc<CompositeType>>,
    /// The row types of composite types, and of the tables whose row types definitions name.
    pub(crate) row_types: HashMap<ObjectId, EncodedType>,
    /// The collations that statements made.
    pub(crate) collations: BTreeMap<ObjectId, Arc<MadeCollation>>,
    /// Those by lookup name.
    pub(crate) collation_names: HashMap<SmolStr, Collation>,
    /// The data types of the enumerated types.
    pub(crate) enum_types: HashMap<ObjectId, EncodedType>,
    /// The domains, enumerated types and composite types by lookup name.
    pub(crate) type_names: HashMap<SmolStr, ObjectId>,
    /// The routines of each lookup name.
    routine_names: HashMap<SmolStr, Vec<ObjectId>>,
    /// By lookup name.
    pub(crate) names: HashMap<SmolStr, ObjectId>,
    /// The table of each index.
    indexes: HashMap<ObjectId, ObjectId>,
    handles: HashMap<ObjectId, OnceLock<Arc<TableHandle>>>,
    /// What binds the expressions of indexes.
    compiler: Option<&'static dyn IndexCompiler>,
}

#[cold]
fn misplaced() -> SqlError {
    SqlError::corrupted("a record of the catalog has the key of another kind")
}

impl CatalogSnapshot {
    /// Reads every object.
    pub(crate) fn load(
        objects: &Database,
        transaction: &Transaction,
        version: u64,
        visibility: SnapshotVisibility,
        compiler: Option<&'static dyn IndexCompiler>,
    ) -> Result<CatalogSnapshot> {
        let mut tables = BTreeMap::new();
        // Their types may be types of users, which need not come before them.
        let (mut records, mut routines) = (Vec::new(), Vec::new());
        let (mut domains, mut composites) = (Vec::new(), Vec::new());
        let mut snapshot =
            CatalogSnapshot { version, visibility, compiler, ..CatalogSnapshot::default() };
        let mut cursor = objects.cursor(transaction)?;
        let mut more = cursor.seek(&[OBJECT])?;
        while more && cursor.key().first() == Some(&OBJECT) {
            match Record::decode(cursor.value())? {
                Record::Table(record) => records.push(record),
                Record::View(view) => {
                    snapshot.add_name(view.lookup_name(), view.id);
                    snapshot.views.insert(view.id, Arc::new(view));
                }
                Record::Sequence(sequence) => {
                    snapshot.add_name(sequence.lookup_name(), sequence.id);
                    snapshot.sequences.insert(sequence.id, Arc::new(sequence));
                }
                Record::Schema(schema) => {
                    snapshot.schemas.insert(schema.name.clone(), schema);
                }
                Record::Role(role) => {
                    snapshot.roles.insert(role.id, Arc::new(role));
                }
                Record::Routine(routine) => routines.push(routine),
                Record::Trigger(trigger) => {
                    snapshot.triggers.insert(trigger.id, Arc::new(trigger));
                }
                Record::Domain(domain) => domains.push(domain),
                Record::Enum(known) => snapshot.add_enum(known)?,
                Record::Collation(made) => snapshot.add_collation(made)?,
                Record::Composite(known) => composites.push(known),
                Record::Access(_)
                | Record::Comments(_)
                | Record::Settings(_)
                | Record::DefaultRights(_) => return Err(misplaced()),
            }
            more = cursor.next()?;
        }
        let named = routines.iter().flat_map(Routine::types);
        let named = named.chain(domains.iter().map(|it: &Domain| it.data_type));
        let named: Vec<_> = named.collect();
        snapshot.add_composites(composites, &records, named.into_iter())?;
        for mut record in records {
            record.resolve_types(&snapshot)?;
            let table = record.into_table()?;
            tables.insert(table.id, table);
        }
        for mut domain in domains {
            snapshot.resolve_type(&mut domain.data_type)?;
            snapshot.type_names.insert(domain.lookup_name(), domain.id);
            snapshot.domains.insert(domain.id, Arc::new(domain));
        }
        for mut routine in routines {
            routine.resolve_types(&|data_type| snapshot.resolve_type(data_type))?;
            routine.name_domains(&|used| snapshot.domain_shown(used).into());
            snapshot.add_routine(routine);
        }
        for kind in [ACCESS, COMMENTS, SETTINGS, DEFAULT_RIGHTS] {
            more = cursor.seek(&[kind])?;
            while more && cursor.key().first() == Some(&kind) {
                snapshot.add_record_about(kind, cursor.key(), cursor.value())?;
                more = cursor.next()?;
            }
        }
        snapshot.add_tables(tables);
        Ok(snapshot)
    }

    /// Adds a record that goes with an object.
    fn add_record_about(&mut self, kind: u8, key: &[u8], record: &[u8]) -> Result<()> {
        let number = key.get(1..).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        let id = ObjectId(u32::from_be_bytes(number.ok_or_else(misplaced)?));
        match (kind, Record::decode(record)?) {
            (ACCESS, Record::Access(access)) => {
                self.access.insert(id, Arc::new(access));
            }
            (COMMENTS, Record::Comments(comments)) => {
                self.comments.insert(id, comments);
            }
            (SETTINGS, Record::Settings(settings)) => {
                self.settings.insert(id, settings);
            }
            (DEFAULT_RIGHTS, Record::DefaultRights(rights)) => {
                self.default_rights.insert(id, rights);
            }
            _ => return Err(misplaced()),
        }
        Ok(())
    }

    fn add_name(&mut self, name: SmolStr, id: ObjectId) {
        invariant!(
            SCHEMA_2,
            !self.names.contains_key(&name),
            "{name:?} is the name of two objects"
        );
        self.names.insert(name, id);
    }

    fn add_routine(&mut self, routine: Routine) {
        let name = lookup_name(&routine.schema, &routine.name);
        self.routine_names.entry(name).or_default().push(routine.id);
        self.routines.insert(routine.id, Arc::new(routine));
    }

    /// Returns the triggers of a table or view, by name.
    #[must_use]
    pub fn triggers_of(&self, relation: ObjectId) -> Vec<Arc<Trigger>> {
        let own = self.triggers.values().filter(|trigger| trigger.relation == relation);
        let mut own: Vec<Arc<Trigger>> = own.cloned().collect();
        own.sort_by(|a, b| a.name.cmp(&b.name));
        own
    }

    /// Returns the trigger of that name of a table or view.
    #[must_use]
    pub fn trigger_named(&self, relation: ObjectId, name: &str) -> Option<&Arc<Trigger>> {
        self.triggers.values().find(|it| it.relation == relation && it.name == name)
    }

    /// All triggers, in the order in which they were made.
    pub fn triggers(&self) -> impl Iterator<Item = &Arc<Trigger>> {
        self.triggers.values()
    }

    /// The functions and procedures of a lookup name.
    pub fn routines_named(&self, name: &str) -> impl Iterator<Item = &Arc<Routine>> {
        let ids = self.routine_names.get(name).into_iter().flatten();
        ids.filter_map(|id| self.routines.get(id))
    }

    /// The function or procedure of that number.
    #[must_use]
    pub fn routine(&self, id: ObjectId) -> Option<&Arc<Routine>> {
        let builtin = || BuiltinTrigger::of(id).map(BuiltinTrigger::routine);
        self.routines.get(&id).or_else(builtin)
    }

    /// All functions and procedures, in the order in which they were made.
    pub fn routines(&self) -> impl Iterator<Item = &Arc<Routine>> {
        self.routines.values()
    }

    fn add_tables(&mut self, mut tables: BTreeMap<ObjectId, Table>) {
        let references: Vec<(ObjectId, Reference)> = tables
            .values()
            .flat_map(|table| {
                let keys = table.foreign_keys.iter().enumerate();
                keys.map(|(at, key)| (key.parent, Reference { child: table.id, foreign_key: at }))
            })
            .collect();
        for (parent, reference) in references {
            if let Some(table) = tables.get_mut(&parent) {
                table.referenced_by.push(reference);
            }
        }
        for trigger in self.triggers.values() {
            if let Some(table) = tables.get_mut(&trigger.relation) {
                table.triggers.push(trigger.clone());
            }
        }
        for (id, mut table) in tables {
            table.triggers.sort_by(|a, b| a.name.cmp(&b.name));
            self.add_name(table.lookup_name(), id);
            for index in &table.indexes {
                self.add_name(lookup_name(&table.schema, &index.name), index.id);
                self.indexes.insert(index.id, id);
            }
            self.handles.insert(id, OnceLock::new());
            self.tables.insert(id, Arc::new(table));
        }
    }

    /// The number of what the catalog holds here; never used for anything else. A plan made at this
    /// version is good for as long as [`Catalog::version`](super::Catalog::version) says the same.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What a lookup name means.
    #[must_use]
    pub fn relation(&self, name: &str) -> Option<Relation> {
        self.relation_by_id(*self.names.get(name)?)
    }

    /// The table, view, sequence or index of that number.
    pub(crate) fn relation_by_id(&self, id: ObjectId) -> Option<Relation> {
        if let Some(table) = self.tables.get(&id) {
            return Some(Relation::Table(table.clone()));
        }
        if let Some(view) = self.views.get(&id) {
            return Some(Relation::View(view.clone()));
        }
        if let Some(sequence) = self.sequences.get(&id) {
            return Some(Relation::Sequence(sequence.clone()));
        }
        let table = self.tables.get(self.indexes.get(&id)?)?;
        let index = table.indexes.iter().find(|index| index.id == id)?;
        Some(Relation::Index(table.clone(), index.clone()))
    }

    /// All tables, views, sequences and indexes, by lookup name.
    #[must_use]
    pub fn relations(&self) -> Vec<(SmolStr, Relation)> {
        let named =
            |(name, id): (&SmolStr, &ObjectId)| Some((name.clone(), self.relation_by_id(*id)?));
        let mut all: Vec<_> = self.names.iter().filter_map(named).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// All tables, in the order in which they were made.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }

    /// The table of that number.
    #[must_use]
    pub fn table(&self, id: ObjectId) -> Option<&Arc<Table>> {
        self.tables.get(&id)
    }

    /// The sequence of that number.
    #[must_use]
    pub fn sequence(&self, id: ObjectId) -> Option<&Arc<Sequence>> {
        self.sequences.get(&id)
    }

    /// The table of that number, which is known to be there.
    pub(crate) fn known_table(&self, id: ObjectId) -> Result<&Arc<Table>> {
        self.tables
            .get(&id)
            .ok_or_else(|| SqlError::internal(format!("there is no table of number {}", id.0)))
    }

    /// The table of that lookup name, or an error that says what is wrong.
    pub fn table_named(&self, name: &str) -> Result<Arc<Table>> {
        match self.relation(name) {
            Some(Relation::Table(table)) => Ok(table),
            None => Err(no_relation(name)),
            Some(_) => Err(is_not(name, "a table")),
        }
    }

    /// The index of that name, and its table.
    pub fn index_named(&self, name: &str) -> Result<(Arc<Table>, Arc<Index>)> {
        match self.relation(name) {
            Some(Relation::Index(table, index)) => Ok((table, index)),
            Some(_) => Err(is_not(name, "an index")),
            None => Err(no_index(name)),
        }
    }

    /// Binds the expressions and the predicate of an index.
    pub(crate) fn compile(
        &self,
        table: &Arc<Table>,
        index: &Index,
    ) -> Result<Arc<dyn IndexEvaluator>> {
        match self.compiler {
            Some(compiler) => compiler.compile(table, index),
            None => Ok(Arc::new(NoEvaluator)),
        }
    }

    /// Returns what binds the expressions of indexes.
    pub(crate) fn index_compiler(&self) -> Result<&'static dyn IndexCompiler> {
        let missing = "expressions of indexes need a catalog that a SQL database has opened";
        self.compiler.ok_or_else(|| SqlError::internal(missing))
    }

    /// What is needed to read and change a table: kept with the snapshot, so that it is made once.
    pub fn handle(&self, transaction: &Transaction, id: ObjectId) -> Result<Arc<TableHandle>> {
        let place = self.handles.get(&id);
        if let Some(handle) = place.and_then(OnceLock::get) {
            return Ok(handle.clone());
        }
        let table = self.known_table(id)?;
        let compile = |index: &Index| self.compile(table, index);
        let handle = Arc::new(TableHandle::open(transaction, table, &compile)?);
        Ok(match place {
            Some(place) => place.get_or_init(|| handle).clone(),
            None => handle,
        })
    }
}
