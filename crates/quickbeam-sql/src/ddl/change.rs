//! What all changes of the catalog have in common.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use quickbeam::query_layer::{ReadTracking, TransactionExt};
use quickbeam::{CHECKS_INVARIANTS, Database, Error, Transaction, invariant};
use smol_str::{SmolStr, format_smolstr};

use crate::catalog::records::{Record, TableRecord};
use crate::catalog::{
    ACCESS, COMMENTS, Catalog, CatalogSnapshot, DEFAULT_RIGHTS, OBJECT, SETTINGS,
    SnapshotVisibility, VERSION,
};
use crate::error::{Result, SqlError, SqlState};
use crate::handle::{Filling, IndexHandle, TableHandle, index_tree, rows_tree};
use crate::schema::encoding::{KeySpec, StoredRow};
use crate::schema::errors::{
    constraint_exists, named_twice, no_column, no_definition, no_schema, relation_exists,
};
use crate::schema::names::{is_system_schema, lookup_name, split_lookup_name};
use crate::schema::{
    Comments, CompositeType, DefaultRights, Domain, EnumType, Index, MadeCollation, ObjectAccess,
    ObjectId, Role, RoleSettings, Routine, Schema, Sequence, SequenceOptions, Table, Trigger, View,
};
use crate::types::DataType;

/// Most columns of a table.
const COLUMN_LIMIT: usize = 1600;
/// Most bytes of a name.
const NAME_LIMIT: usize = 63;

/// A change of the catalog under way: one statement.
pub(crate) struct CatalogChange<'a> {
    pub catalog: &'a Catalog,
    pub transaction: &'a Transaction,
    /// The catalog before the change.
    pub before: CatalogSnapshot,
    /// Tables changed so far.
    changed: RefCell<BTreeMap<ObjectId, Table>>,
    regenerated: RefCell<BTreeSet<ObjectId>>,
}

thread_local! {
    static CHANGES: Cell<u64> = const { Cell::new(0) };
}

/// Returns how many changes of definitions, roles and rights statements of the calling thread have
/// begun. So a program finds out whether a statement did more than its text says.
#[must_use]
pub fn definition_changes() -> u64 {
    CHANGES.get()
}

fn key_of(id: ObjectId) -> [u8; 5] {
    let [a, b, c, d] = id.0.to_be_bytes();
    [OBJECT, a, b, c, d]
}

impl<'a> CatalogChange<'a> {
    /// Begins a change: from here to the transaction's end no other transaction changes the catalog
    /// (CATALOG-1).
    pub fn begin(catalog: &'a Catalog, transaction: &'a Transaction) -> Result<CatalogChange<'a>> {
        let version = Catalog::new_version();
        invariant!(
            CATALOG_1,
            catalog.version(transaction)? < version,
            "version {version} was given out before"
        );
        transaction.touch_catalog();
        CHANGES.set(CHANGES.get() + 1);
        catalog.objects.put(transaction, VERSION, &version.to_le_bytes())?;
        let before = CatalogSnapshot::load(
            &catalog.objects,
            transaction,
            version,
            SnapshotVisibility::Private,
            catalog.index_compiler.get().copied(),
        )?;
        Ok(CatalogChange {
            catalog,
            transaction,
            before,
            changed: RefCell::default(),
            regenerated: RefCell::default(),
        })
    }

    /// Begins a change of a column. Returns also the table and the column's position in it.
    pub fn of_column(
        catalog: &'a Catalog,
        transaction: &'a Transaction,
        table: &str,
        column: &str,
    ) -> Result<(CatalogChange<'a>, Table, usize)> {
        let change = CatalogChange::begin(catalog, transaction)?;
        let table = change.table(table)?;
        let position = table.known_column(column)?;
        Ok((change, table, position))
    }

    pub fn new_id(&self) -> Result<ObjectId> {
        self.catalog.new_object(self.transaction)
    }

    fn put(&self, id: ObjectId, record: &Record) -> Result<()> {
        Ok(self.catalog.objects.put(self.transaction, &key_of(id), &record.encode()?)?)
    }

    pub fn put_table(&self, table: &Table) -> Result<()> {
        if CHECKS_INVARIANTS {
            self.check_definition(table);
        }
        self.check_row_type_uses(table)?;
        for index in self.before.table(table.id).iter().flat_map(|before| &before.indexes) {
            let is_kept = table.indexes.iter().any(|other| other.id == index.id);
            if !is_kept && self.before.comments.contains_key(&index.id) {
                self.put_comments(index.id, Comments::default())?;
            }
        }
        self.changed.borrow_mut().insert(table.id, table.clone());
        self.put(table.id, &Record::Table(TableRecord::of(table)))
    }

    /// Checks what a definition must satisfy before it is written.
    fn check_definition(&self, table: &Table) {
        let mut ids: Vec<u16> = table.columns.iter().map(|column| column.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let are_unique = ids.len() == table.columns.len();
        let are_old = ids.last().is_none_or(|last| *last < table.next_column);
        invariant!(SCHEMA_1, are_unique && are_old, "columns {ids:?} of {}", table.name);
        let layouts = std::iter::once(&table.layouts.current).chain(&table.layouts.older);
        let mut numbers: Vec<u16> = layouts.map(|layout| layout.number).collect();
        numbers.sort_unstable();
        let is_twice = numbers.windows(2).any(|pair| pair[0] == pair[1]);
        invariant!(ROW_1, !is_twice, "layouts {numbers:?} of {}", table.name);
        let Some(old) = self.before.table(table.id) else { return };
        let is_written_alike = old.layouts.current.number == table.layouts.current.number
            && old.indexes.len() == table.indexes.len()
            && old.foreign_keys.len() == table.foreign_keys.len();
        invariant!(
            CATALOG_3,
            is_written_alike || table.generation != old.generation,
            "generation {} of {}",
            old.generation,
            table.name
        );
    }

    /// The table of that number as it is now.
    pub fn latest(&self, id: ObjectId) -> Result<Table> {
        match self.changed.borrow().get(&id) {
            Some(table) => Ok(table.clone()),
            None => Ok((**self.before.known_table(id)?).clone()),
        }
    }

    pub fn put_view(&self, view: View) -> Result<()> {
        self.put(view.id, &Record::View(view))
    }

    /// A sequence that this change has made.
    pub fn made_sequence(&self, id: ObjectId) -> Result<Sequence> {
        let record = self.catalog.objects.get(self.transaction, &key_of(id))?;
        match record.map(|bytes| Record::decode(&bytes)).transpose()? {
            Some(Record::Sequence(sequence)) => Ok(sequence),
            _ => Err(SqlError::internal("a sequence was not made")),
        }
    }

    pub fn put_sequence(&self, sequence: Sequence) -> Result<()> {
        self.put(sequence.id, &Record::Sequence(sequence))
    }

    pub fn put_schema(&self, schema: Schema) -> Result<()> {
        self.put(schema.id, &Record::Schema(schema))
    }

    /// Sets the comments on an object that is no table.
    pub fn put_comments(&self, id: ObjectId, comments: Comments) -> Result<()> {
        let record = (!comments.0.is_empty()).then_some(Record::Comments(comments));
        self.put_beside(COMMENTS, id, record)
    }

    /// Stores a record that goes with an object, under the prefix of its kind; `None` removes it.
    fn put_beside(&self, prefix: u8, id: ObjectId, record: Option<Record>) -> Result<()> {
        let mut key = key_of(id);
        key[0] = prefix;
        let objects = &self.catalog.objects;
        match record {
            Some(record) => objects.put(self.transaction, &key, &record.encode()?)?,
            None => {
                objects.delete(self.transaction, &key)?;
            }
        }
        Ok(())
    }

    /// Removes an object, with the rights and comments on it, its triggers and its indexes.
    pub fn remove(&self, id: ObjectId) -> Result<()> {
        for trigger in self.before.triggers.values().filter(|it| it.relation == id) {
            self.catalog.objects.delete(self.transaction, &key_of(trigger.id))?;
            self.put_comments(trigger.id, Comments::default())?;
        }
        for index in self.before.table(id).iter().flat_map(|table| &table.indexes) {
            self.put_comments(index.id, Comments::default())?;
        }
        self.put_comments(id, Comments::default())?;
        self.catalog.objects.delete(self.transaction, &key_of(id))?;
        if self.before.settings.contains_key(&id) {
            self.put_settings(id, RoleSettings::default())?;
        }
        for (owner, rights) in &self.before.default_rights {
            if rights.entries.iter().any(|it| it.schema == Some(id)) {
                let mut rights = self.latest_default_rights(*owner)?;
                rights.entries.retain(|it| it.schema != Some(id));
                self.put_default_rights(*owner, rights)?;
            }
        }
        self.put_access(id, None)
    }

    /// The rights with which new objects of a role begin, as they are now.
    pub fn latest_default_rights(&self, role: ObjectId) -> Result<DefaultRights> {
        let mut key = key_of(role);
        key[0] = DEFAULT_RIGHTS;
        let record = self.catalog.objects.get(self.transaction, &key)?;
        match record.map(|bytes| Record::decode(&bytes)).transpose()? {
            Some(Record::DefaultRights(rights)) => Ok(rights),
            _ => Ok(DefaultRights::default()),
        }
    }

    /// Sets the rights with which new objects of a role begin.
    pub fn put_default_rights(&self, role: ObjectId, rights: DefaultRights) -> Result<()> {
        let record = (!rights.entries.is_empty()).then_some(Record::DefaultRights(rights));
        self.put_beside(DEFAULT_RIGHTS, role, record)
    }

    /// Sets the settings of a role.
    pub fn put_settings(&self, role: ObjectId, settings: RoleSettings) -> Result<()> {
        let record = (!settings.is_empty()).then_some(Record::Settings(settings));
        self.put_beside(SETTINGS, role, record)
    }

    /// The role of that number as it is now.
    pub fn latest_role(&self, id: ObjectId) -> Result<Option<Role>> {
        let record = self.catalog.objects.get(self.transaction, &key_of(id))?;
        match record.map(|bytes| Record::decode(&bytes)).transpose()? {
            Some(Record::Role(role)) => Ok(Some(role)),
            _ => Ok(None),
        }
    }

    /// The owner and the rights of an object as they are now.
    pub fn latest_access(&self, id: ObjectId) -> Result<ObjectAccess> {
        let mut key = key_of(id);
        key[0] = ACCESS;
        let record = self.catalog.objects.get(self.transaction, &key)?;
        match record.map(|bytes| Record::decode(&bytes)).transpose()? {
            Some(Record::Access(access)) => Ok(access),
            _ => Ok(ObjectAccess::default()),
        }
    }

    pub fn put_routine(&self, routine: Routine) -> Result<()> {
        self.put(routine.id, &Record::Routine(routine))
    }

    pub fn put_trigger(&self, trigger: Trigger) -> Result<()> {
        self.put(trigger.id, &Record::Trigger(trigger))
    }

    pub fn put_enum(&self, known: EnumType) -> Result<()> {
        self.put(known.id, &Record::Enum(known))
    }

    pub fn put_collation(&self, made: MadeCollation) -> Result<()> {
        self.put(made.id, &Record::Collation(made))
    }

    pub fn put_composite(&self, known: CompositeType) -> Result<()> {
        self.put(known.id, &Record::Composite(known))
    }

    pub fn put_domain(&self, domain: Domain) -> Result<()> {
        self.put(domain.id, &Record::Domain(domain))
    }

    pub fn put_role(&self, role: Role) -> Result<()> {
        self.put(role.id, &Record::Role(role))
    }

    /// Sets the owner and the rights of an object.
    pub fn put_access(&self, id: ObjectId, access: Option<ObjectAccess>) -> Result<()> {
        self.put_beside(ACCESS, id, access.map(Record::Access))
    }

    /// Refuses a lookup name that is no name, or whose schema does not exist.
    pub fn check_place(&self, name: &str) -> Result<()> {
        let (schema, own) = split_lookup_name(name);
        check_name(own)?;
        if !self.before.has_schema(&schema) || is_system_schema(&schema) {
            return Err(no_schema(&schema));
        }
        Ok(())
    }

    /// Refuses a lookup name that is no name, whose schema does not exist, or that something has.
    pub fn check_free(&self, name: &str) -> Result<()> {
        self.check_place(name)?;
        let is_database = || self.catalog.key_value_database(self.transaction, name);
        if self.before.relation(name).is_some() || is_database()?.is_some() {
            return Err(relation_exists(name));
        }
        Ok(())
    }

    /// Returns the lookup name of the sequence of an identity column.
    pub fn identity_name(
        &self,
        schema: &str,
        options: &SequenceOptions,
        parts: &[&str],
        taken: &[SmolStr],
    ) -> Result<SmolStr> {
        if let Some(name) = &options.name {
            self.check_free(name)?;
            return Ok(name.clone());
        }
        Ok(lookup_name(schema, &self.name_or_made(schema, None, parts, "seq", taken)?))
    }

    /// Returns the name of an index or sequence in a schema: the given name, which must be free, or
    /// a generated one.
    pub fn name_or_made(
        &self,
        schema: &str,
        given: Option<&SmolStr>,
        parts: &[&str],
        suffix: &str,
        taken: &[SmolStr],
    ) -> Result<SmolStr> {
        if let Some(name) = given {
            check_name(name)?;
            self.check_free(&lookup_name(schema, name))?;
            if taken.contains(name) {
                return Err(relation_exists(name));
            }
            return Ok(name.clone());
        }
        let is_taken = |name: &SmolStr| {
            self.before.relation(&lookup_name(schema, name)).is_some() || taken.contains(name)
        };
        Ok(make_name(parts, suffix, is_taken))
    }

    /// A table's definition, to be changed.
    pub fn table(&self, name: &str) -> Result<Table> {
        Ok((*self.table_named(name)?).clone())
    }

    /// The table of that name before the change; a key/value database is none that has a definition
    /// to be changed.
    pub fn table_named(&self, name: &str) -> Result<Arc<Table>> {
        let found = self.before.table_named(name);
        let is_missing = |e: &SqlError| e.state() == SqlState::UndefinedTable;
        if found.as_ref().is_err_and(is_missing)
            && self.catalog.key_value_database(self.transaction, name)?.is_some()
        {
            return Err(no_definition(name));
        }
        found
    }

    /// The table as it is before the change.
    pub fn handle(&self, id: ObjectId) -> Result<Arc<TableHandle>> {
        self.before.handle(self.transaction, id)
    }

    /// Gives the table's tree the name of its next generation, once (CATALOG-3).
    pub fn regenerate(&self, table: &mut Table) -> Result<()> {
        if self.regenerated.borrow_mut().insert(table.id) {
            let old = rows_tree(table);
            table.generation += 1;
            self.transaction.rename_database(&old, &rows_tree(table))?;
        }
        Ok(())
    }

    /// The table has another tree already.
    pub fn is_regenerated(&self, id: ObjectId) {
        self.regenerated.borrow_mut().insert(id);
    }

    /// As [`regenerate`](Self::regenerate), of another table than the one being changed.
    pub fn regenerate_other(&self, id: ObjectId) -> Result<()> {
        let mut table = self.latest(id)?;
        self.regenerate(&mut table)?;
        self.put_table(&table)
    }

    /// Calls `each` with the key and the row of every row of a table, as of before the change. What
    /// it read must hold at commit (CATALOG-3).
    pub fn for_each_row(
        &self,
        handle: &TableHandle,
        mut each: impl FnMut(&[u8], StoredRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let before = self.transaction.track_reads(ReadTracking::On);
        let mut scan = || -> Result<()> {
            let mut cursor = handle.database().cursor(self.transaction)?;
            let mut more = cursor.first()?;
            while more {
                each(cursor.key(), StoredRow::new(handle.table(), cursor.value())?)?;
                more = cursor.next()?;
            }
            Ok(())
        };
        let result = scan();
        self.transaction.track_reads(before);
        result
    }

    /// Makes an index's tree and fills it from the table's rows. The table's tree is the one of
    /// `handle`.
    pub fn fill_index(&self, handle: &TableHandle, index: &Arc<Index>) -> Result<()> {
        let (name, method) = (index_tree(index.id), index.access_method());
        let entries = self.transaction.create_database_with(&name, method)?;
        self.fill_entries(handle, index, entries)
    }

    /// Removes the entries of an index and adds those of the table's rows.
    pub fn refill_index(&self, handle: &TableHandle, index: &Arc<Index>) -> Result<()> {
        let name = index_tree(index.id);
        match self.transaction.clear_database(&name) {
            Ok(()) => self.fill_entries(handle, index, self.transaction.open_database(&name)?),
            // A salvage has lost the whole tree.
            Err(Error::NoSuchDatabase { .. }) => self.fill_index(handle, index),
            Err(error) => Err(error.into()),
        }
    }

    /// Adds the entries of the table's rows to the empty tree of an index.
    fn fill_entries(
        &self,
        handle: &TableHandle,
        index: &Arc<Index>,
        entries: Database,
    ) -> Result<()> {
        let table = handle.table();
        let compile = || self.before.compile(table, index);
        let evaluator = index.is_computed().then(compile).transpose()?;
        let key = KeySpec::of_index(table, index);
        let index = IndexHandle { key, index: index.clone(), entries, evaluator };
        let mut filling = Filling::new(self.transaction, handle, &index);
        self.for_each_row(handle, |key, row| filling.add(row, key))?;
        filling.put()?;
        filling.check()
    }
}

/// Refuses what is no name.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_LIMIT || name.contains('\0') {
        let message = format!("\"{name}\" is no name: names have 1 to {NAME_LIMIT} bytes");
        return Err(SqlError::new(SqlState::InvalidName, message));
    }
    Ok(())
}

/// Refuses columns that could not be those of a table.
pub(crate) fn check_columns(names: &[&str]) -> Result<()> {
    if names.len() > COLUMN_LIMIT {
        let message = format!("tables can have at most {COLUMN_LIMIT} columns");
        return Err(SqlError::new(SqlState::TooManyColumns, message));
    }
    for (at, name) in names.iter().enumerate() {
        check_name(name)?;
        if names[..at].contains(name) {
            return Err(named_twice(name));
        }
    }
    Ok(())
}

/// Generates a name such as `account_branch_idx`, within the length limit and with a number if the
/// name is taken.
pub(crate) fn make_name(
    parts: &[&str],
    suffix: &str,
    is_taken: impl Fn(&SmolStr) -> bool,
) -> SmolStr {
    let joined = parts.join("_");
    let mut number = 0_u32;
    loop {
        let tail = match number {
            0 => format!("_{suffix}"),
            number => format!("_{suffix}{number}"),
        };
        let mut end = joined.len().min(NAME_LIMIT.saturating_sub(tail.len()));
        while !joined.is_char_boundary(end) {
            end -= 1;
        }
        let name = format_smolstr!("{}{tail}", &joined[..end]);
        if !is_taken(&name) {
            return name;
        }
        number += 1;
    }
}

impl Table {
    /// The position of a column that has to be there.
    pub(crate) fn known_column(&self, name: &str) -> Result<usize> {
        self.column(name).ok_or_else(|| no_column(&self.name, name))
    }

    /// Checks that the values of a column have an order in keys.
    pub(crate) fn check_key_type(&self, position: usize) -> Result<()> {
        match self.columns.get(position) {
            Some(column) => check_key_type(&column.name, column.data_type),
            None => Ok(()),
        }
    }

    /// The positions of columns that have to be there, each named once.
    pub(crate) fn known_columns(&self, names: &[SmolStr]) -> Result<Vec<usize>> {
        let mut positions = Vec::with_capacity(names.len());
        for name in names {
            let position = self.known_column(name)?;
            if positions.contains(&position) {
                return Err(named_twice(name));
            }
            positions.push(position);
        }
        Ok(positions)
    }

    /// Whether a constraint of the table has that name.
    pub(crate) fn has_constraint(&self, name: &str) -> bool {
        self.primary_key.as_ref().is_some_and(|key| key.name == name)
            || self.indexes.iter().any(|index| index.is_constraint && index.name == name)
            || self.checks.iter().any(|check| check.name == name)
            || self.foreign_keys.iter().any(|key| key.name == name)
    }

    /// The name of a constraint that is no index: the one given, or one made up.
    pub(crate) fn constraint_name(
        &self,
        given: Option<&SmolStr>,
        columns: &[SmolStr],
        suffix: &str,
    ) -> Result<SmolStr> {
        if let Some(name) = given {
            check_name(name)?;
            if self.has_constraint(name) {
                return Err(constraint_exists(&self.name, name));
            }
            return Ok(name.clone());
        }
        let mut parts = vec![self.name.as_str()];
        parts.extend(columns.iter().map(SmolStr::as_str));
        Ok(make_name(&parts, suffix, |name| self.has_constraint(name)))
    }
}

/// Checks that values of a type have an order in keys.
pub(crate) fn check_key_type(name: &str, data_type: DataType) -> Result<()> {
    match data_type {
        DataType::Json => {
            let message =
                "data type json has no default operator class for access method \"btree\"";
            Err(SqlError::new(SqlState::UndefinedObject, message))
        }
        _ if data_type.record().is_some_and(|row| row.row_type_name().is_none()) => {
            let message = format!("column \"{name}\" has pseudo-type {data_type}");
            Err(SqlError::new(SqlState::InvalidTableDefinition, message))
        }
        _ if !data_type.has_order() => Err(SqlError::unsupported(format!(
            "column \"{name}\" of type {data_type}, which has parts of type json, in a key or index"
        ))),
        _ => Ok(()),
    }
}
