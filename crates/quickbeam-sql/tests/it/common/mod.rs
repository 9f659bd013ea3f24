//! What the tests of the lower half share: a catalog in memory, tables made in one line, rows as
//! values.

#![allow(dead_code)]

use std::sync::Arc;

use quickbeam::{
    Environment, Isolation, Options, ReadTransaction, Transaction, TransactionOptions,
};
use quickbeam_sql::catalog::{
    Catalog, ForeignKeyAction, NewColumn, NewForeignKey, NewKey, NewTable, Table,
};
use quickbeam_sql::table::{Expressions, StoredRow, TableHandle, TableWriter};
use quickbeam_sql::{DataType, Result, Value};

pub const LEVELS: [Isolation; 3] =
    [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];

/// CHECKs hold, DEFAULTs are what is given.
pub struct Defaults(pub Value);

impl Expressions for Defaults {
    fn check_domains(&self, _: &Table, _: &[usize], _: StoredRow<'_>) -> Result<()> {
        Ok(())
    }

    fn generated(&self, _: &Table, _: &[usize], _: StoredRow<'_>) -> Result<Vec<(usize, Value)>> {
        Ok(Vec::new())
    }

    fn check(&self, _: &Table, _: usize, _: StoredRow<'_>) -> Result<Option<bool>> {
        Ok(Some(true))
    }

    fn default(&self, _: &Table, _: usize) -> Result<Value> {
        Ok(self.0.clone())
    }
}

pub fn memory() -> (Environment, Arc<Catalog>) {
    let environment = Environment::open_in_memory(Options::default()).unwrap();
    let catalog = Catalog::open(&environment).unwrap();
    (environment, catalog)
}

pub fn begin(environment: &Environment, isolation: Isolation) -> Transaction {
    let options = TransactionOptions::new().isolation(isolation);
    environment.begin_with(options).unwrap()
}

pub fn column(name: &str, data_type: DataType) -> NewColumn {
    NewColumn {
        name: name.into(),
        data_type,
        domain: None,
        collation: None,
        not_null: false,
        default: None,
        identity: None,
        generated: None,
    }
}

pub fn key(columns: &[&str]) -> NewKey {
    let columns = columns.iter().map(|name| (*name).into()).collect();
    NewKey { columns, ..NewKey::default() }
}

pub fn integers(name: &str, columns: &[&str], primary_key: &[&str]) -> NewTable {
    NewTable {
        name: name.into(),
        columns: columns.iter().map(|name| column(name, DataType::Integer)).collect(),
        primary_key: (!primary_key.is_empty()).then(|| key(primary_key)),
        ..NewTable::default()
    }
}

pub fn foreign(columns: &[&str], parent: &str, on: ForeignKeyAction) -> NewForeignKey {
    NewForeignKey {
        name: None,
        columns: columns.iter().map(|name| (*name).into()).collect(),
        parent: parent.into(),
        parent_columns: Vec::new(),
        on_delete: on,
        on_update: on,
        not_valid: false,
        timing: Default::default(),
        is_full: false,
        delete_columns: Vec::new(),
    }
}

/// Runs one statement in the transaction: all of it or nothing.
pub fn statement<T>(
    catalog: &Catalog,
    transaction: &Transaction,
    table: &str,
    work: impl FnOnce(&mut TableWriter<'_>, &Arc<TableHandle>) -> Result<T>,
) -> Result<T> {
    let snapshot = catalog.snapshot(transaction)?;
    let handle = snapshot.handle(transaction, snapshot.table_named(table)?.id)?;
    let defaults = Defaults(Value::Integer(0));
    let mut statement = TableWriter::new(catalog, transaction, &snapshot, &defaults);
    statement.set_savepoint()?;
    let done = work(&mut statement, &handle).and_then(|value| {
        statement.finish()?;
        Ok(value)
    });
    if done.is_err() {
        statement.rollback()?;
    }
    done
}

pub fn encode(handle: &TableHandle, values: &[Value]) -> Vec<u8> {
    let mut row = Vec::new();
    handle.table().encode_values(&mut row, values).unwrap();
    row
}

pub fn insert(
    catalog: &Catalog,
    transaction: &Transaction,
    table: &str,
    rows: &[&[Value]],
) -> Result<()> {
    statement(catalog, transaction, table, |statement, handle| {
        rows.iter().try_for_each(|row| statement.insert(handle, &encode(handle, row)))
    })
}

/// The row's key, by its primary key.
pub fn key_of(handle: &TableHandle, values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    handle.key().encode(&mut out, values.iter().map(Value::as_ref)).unwrap();
    out
}

pub fn delete(catalog: &Catalog, transaction: &Transaction, table: &str, id: i32) -> Result<bool> {
    statement(catalog, transaction, table, |statement, handle| {
        let (key, mut row) = (key_of(handle, &[Value::Integer(id)]), Vec::new());
        if !handle.get(transaction, &key, &mut row)? {
            return Ok(false);
        }
        statement.delete(handle, &key, &row)
    })
}

/// Gives one column of the row with that key another value.
pub fn update(
    catalog: &Catalog,
    transaction: &Transaction,
    table: &str,
    id: i32,
    position: usize,
    value: Value,
) -> Result<bool> {
    statement(catalog, transaction, table, |statement, handle| {
        let (key, mut row) = (key_of(handle, &[Value::Integer(id)]), Vec::new());
        if !handle.get(transaction, &key, &mut row)? {
            return Ok(false);
        }
        let mut values = StoredRow::new(handle.table(), &row)?.to_values()?;
        values[position] = value;
        statement.update(handle, &key, &row, &encode(handle, &values), &[position])?;
        Ok(true)
    })
}

/// All rows, in the order of their keys.
pub fn rows(catalog: &Catalog, transaction: &impl ReadTransaction, table: &str) -> Vec<Vec<Value>> {
    let transaction = transaction.as_transaction();
    let snapshot = catalog.snapshot(transaction).unwrap();
    let id = snapshot.table_named(table).unwrap().id;
    let handle = snapshot.handle(transaction, id).unwrap();
    let mut cursor = handle.database().cursor(transaction).unwrap();
    let mut found = Vec::new();
    let mut more = cursor.first().unwrap();
    while more {
        found.push(StoredRow::new(handle.table(), cursor.value()).unwrap().to_values().unwrap());
        more = cursor.next().unwrap();
    }
    check_indexes(&handle, transaction);
    found
}

/// Every row has its entry in every index, and there are no others (TABLE-1).
fn check_indexes(handle: &TableHandle, transaction: &Transaction) {
    let count = |database: &quickbeam::Database| {
        let mut cursor = database.cursor(transaction).unwrap();
        let mut keys = Vec::new();
        let mut more = cursor.first().unwrap();
        while more {
            keys.push((cursor.key().to_vec(), cursor.value().to_vec()));
            more = cursor.next().unwrap();
        }
        keys
    };
    let rows = count(handle.database());
    for index in handle.indexes() {
        let entries = count(&index.entries);
        assert_eq!(entries.len(), rows.len(), "index {}", index.index.name);
        for (key, value) in &entries {
            let row_key = index.row_key(key, value).unwrap();
            let row = rows.binary_search_by(|row| row.0.as_slice().cmp(row_key));
            let row = &rows[row.expect("an entry belongs to a row")].1;
            let row = StoredRow::new(handle.table(), row).unwrap();
            let mut expected = Vec::new();
            index.key.encode_with(&mut expected, |position| row.get(position)).unwrap();
            assert!(key.starts_with(&expected), "index {}", index.index.name);
        }
    }
}

pub fn int(value: i32) -> Value {
    Value::Integer(value)
}

pub fn numbers(rows: &[Vec<Value>]) -> Vec<Vec<Option<i64>>> {
    rows.iter().map(|row| row.iter().map(|v| v.as_ref().as_i64()).collect()).collect()
}
