//! Mistakes in calls: each a clear error of its own kind, nothing changed. Places that are no
//! environment, or are in use, are in `places.rs`; devices that are full or fail in `devices.rs`
//! and `failures.rs`.

use std::sync::Mutex;
use std::time::Duration;

use crate::common::faulty::FaultyVfs;
use crate::common::{
    assert_misuse, assert_same, contents, memory_environment, records, refused, small_options,
};
use quickbeam::{DataStore, Durability, Environment, Error, Result, TooLong, TransactionOptions};

#[test]
fn invalid_options_are_refused() {
    let base = small_options();
    let cases = [
        ("page_size", base.clone().page_size(5000)),
        ("page_size", base.clone().page_size(2048)),
        ("page_size", base.clone().page_size(131_072).cache_size(1 << 30)),
        ("cache_size", base.clone().cache_size(4096 * 10)),
        ("log_buffer", base.clone().log_buffer(10)),
        ("log_segment_size", base.clone().log_segment_size(1000)),
        ("log_segment_size", base.log_segment_size((256 << 10) + 1)),
    ];
    for (word, options) in cases {
        assert_misuse(Environment::open_in_memory(options.clone()), word);
        assert_misuse(DataStore::open_in_memory(options), word);
    }
    assert_misuse("sink".parse::<Durability>(), "sink");
    // The page size is the environment's; a cache too small for it is found when it is known.
    let directory = tempfile::tempdir().unwrap();
    let large = small_options().page_size(65536).cache_size(64 << 20);
    Environment::open(directory.path(), large).unwrap().close().unwrap();
    assert_misuse(Environment::open(directory.path(), small_options()), "cache_size");
}

#[test]
fn durability_that_needs_a_missing_log_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let logged = Environment::open(directory.path(), small_options()).unwrap();
    let (unlogged, _) = memory_environment();
    let with = |durability| TransactionOptions::new().durability(durability);
    assert_misuse(logged.begin_with(with(Durability::InMemory)), "durability");
    assert_misuse(unlogged.begin_with(with(Durability::Sync)), "durability");
    logged.begin_with(with(Durability::NoSync)).unwrap().commit().unwrap();
    unlogged.begin_read().unwrap();
}

#[test]
fn keys_and_values_beyond_the_limits_are_refused() {
    let (environment, database) = memory_environment();
    let mut store = DataStore::open_in_memory(small_options()).unwrap();
    let in_store = store.create_database("data").unwrap();
    let longest = vec![7; 1024];
    let too_long = vec![7; 1025];
    let transaction = environment.begin().unwrap();
    database.put(&transaction, &longest, b"fits").unwrap();
    database.put(&transaction, b"", b"the empty key is one").unwrap();
    let before = records(&database, &transaction).unwrap();
    let error = refused(database.put(&transaction, &too_long, b""));
    let expected = TooLong { length: 1025, limit: 1024 };
    assert!(matches!(&error, Error::KeyTooLong(told) if **told == expected), "{error:?}");
    for error in [
        refused(database.put_if_absent(&transaction, &too_long, b"")),
        refused(store.put(in_store, &too_long, b"")),
    ] {
        assert!(matches!(error, Error::KeyTooLong { .. }), "{error:?}");
    }
    // Looking for a key that cannot be there finds nothing; it is no mistake.
    assert_eq!(database.get(&transaction, &too_long).unwrap(), None);
    assert!(!database.cursor(&transaction).unwrap().seek(&too_long).unwrap());
    // Zeroed memory that is never accessed takes no space.
    let huge = vec![0; (4 << 30) - (64 << 10) + 1];
    for error in [
        refused(database.put(&transaction, b"key", &huge)),
        refused(database.put_if_absent(&transaction, b"key", &huge)),
        refused(store.put(in_store, b"key", &huge)),
    ] {
        assert!(matches!(error, Error::ValueTooLong { .. }), "{error:?}");
    }
    assert_same(&records(&database, &transaction).unwrap(), &before, "after the refusals");
    transaction.commit().unwrap();
    store.put(in_store, &longest, b"fits").unwrap();
    assert_eq!(store.get(in_store, &longest).unwrap().unwrap(), b"fits");
    crate::common::assert_sound(&environment);
}

#[test]
fn calls_on_a_closed_environment_fail() {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::open(directory.path(), small_options()).unwrap();
    let database = environment.create_database("data").unwrap();
    let handle = environment.clone();
    let transaction = environment.begin().unwrap();
    database.put(&transaction, b"key", b"value").unwrap();
    assert_misuse(environment.clone().close(), "open");
    database.put(&transaction, b"other", b"still going").unwrap();
    transaction.commit().unwrap();
    environment.close().unwrap();
    assert_misuse(handle.begin(), "closed");
    assert_misuse(handle.begin_read(), "closed");
    assert_misuse(handle.databases(), "closed");
    assert_misuse(handle.create_database("more"), "closed");
    assert_misuse(handle.checkpoint(), "closed");
    assert_misuse(handle.verify(), "closed");
    assert_misuse(handle.transact(|_| Ok(())), "closed");
    let _ = handle.statistics();
    handle.clone().close().unwrap();
    // A handle that outlives the environment is no handle of the next one.
    let again = Environment::open(directory.path(), small_options()).unwrap();
    let transaction = again.begin().unwrap();
    assert_misuse(database.get(&transaction, b"key"), "another environment");
    let database = transaction.open_database("data").unwrap();
    assert_eq!(records(&database, &transaction).unwrap().len(), 2);
}

#[test]
fn handles_of_another_environment_are_refused() {
    let (one, database) = memory_environment();
    let (other, _) = memory_environment();
    let transaction = other.begin().unwrap();
    assert_misuse(database.get(&transaction, b"key"), "another environment");
    assert_misuse(database.put(&transaction, b"key", b""), "another environment");
    assert_misuse(database.delete(&transaction, b"key"), "another environment");
    assert_misuse(database.cursor(&transaction).map(|_| ()), "another environment");
    transaction.commit().unwrap();
    assert!(contents(&one).unwrap()["data"].is_empty());
    let mut stores = [(); 2].map(|()| DataStore::open_in_memory(small_options()).unwrap());
    let handle = stores[0].create_database("data").unwrap();
    stores[1].create_database("data").unwrap();
    assert_misuse(stores[1].put(handle, b"key", b""), "another data store");
    stores[0].drop_database("data").unwrap();
    assert_misuse(stores[0].get(handle, b"key"), "dropped");
    stores[0].create_database("data").unwrap();
    assert_misuse(stores[0].get(handle, b"key"), "dropped");
}

#[test]
fn write_in_a_read_only_transaction_fails() {
    let (environment, database) = memory_environment();
    environment.transact(|t| database.put(t, b"key", b"value")).unwrap();
    let reader = environment.begin_with(TransactionOptions::new().read_only(true)).unwrap();
    assert!(matches!(database.put(&reader, b"key", b""), Err(Error::ReadOnly)));
    assert!(matches!(database.put_if_absent(&reader, b"new", b""), Err(Error::ReadOnly)));
    assert!(matches!(database.delete(&reader, b"key"), Err(Error::ReadOnly)));
    assert!(matches!(database.bulk_load(&reader, [(b"a", b"b")]), Err(Error::ReadOnly)));
    let mut cursor = database.cursor(&reader).unwrap();
    assert!(cursor.first().unwrap());
    assert!(matches!(cursor.put(b""), Err(Error::ReadOnly)));
    assert!(matches!(cursor.delete(), Err(Error::ReadOnly)));
    drop(cursor);
    assert!(matches!(reader.create_database("new"), Err(Error::ReadOnly)));
    assert!(matches!(reader.drop_database("data"), Err(Error::ReadOnly)));
    assert!(matches!(reader.clear_database("data"), Err(Error::ReadOnly)));
    assert!(matches!(reader.rename_database("data", "other"), Err(Error::ReadOnly)));
    let savepoint = reader.savepoint().unwrap();
    reader.rollback_to(savepoint).unwrap();
    reader.commit().unwrap();
    assert_eq!(contents(&environment).unwrap()["data"].len(), 1);
    crate::common::assert_sound(&environment);
}

#[test]
fn invalid_database_names_are_refused() {
    let (environment, _) = memory_environment();
    let mut store = DataStore::open_in_memory(small_options()).unwrap();
    store.create_database("data").unwrap();
    for name in [String::new(), "n".repeat(256)] {
        assert_misuse(environment.create_database(&name), "255");
        assert_misuse(environment.rename_database("data", &name), "255");
        assert_misuse(store.create_database(&name), "255");
        assert!(matches!(environment.open_database(&name), Err(Error::NoSuchDatabase { .. })));
    }
    environment.create_database(&"n".repeat(255)).unwrap();
    assert_eq!(environment.databases().unwrap().len(), 2);
    assert_eq!(store.databases().unwrap(), ["data"]);
}

#[test]
fn bulk_load_out_of_order_keeps_the_records_before() {
    let (environment, database) = memory_environment();
    for wrong in [b"b", b"a"] {
        let transaction = environment.begin().unwrap();
        let pairs: [(&[u8], &[u8]); 4] = [(b"a", b"1"), (b"b", b"2"), (wrong, b"3"), (b"c", b"4")];
        assert_misuse(database.bulk_load(&transaction, pairs), "record 2");
        let found = records(&database, &transaction).unwrap();
        assert_eq!(found.values().collect::<Vec<_>>(), [b"1", b"2"]);
        transaction.abort().unwrap();
    }
    let transaction = environment.begin().unwrap();
    let sorted = (0..5000u32).map(|n| (n.to_be_bytes(), vec![n as u8; n as usize % 100]));
    assert_eq!(database.bulk_load(&transaction, sorted).unwrap(), 5000);
    transaction.commit().unwrap();
    assert_eq!(contents(&environment).unwrap()["data"].len(), 5000);
}

#[test]
fn write_at_an_unpositioned_cursor_is_refused() {
    let (environment, database) = memory_environment();
    let transaction = environment.begin().unwrap();
    let mut cursor = database.cursor(&transaction).unwrap();
    for _ in 0..2 {
        assert_misuse(cursor.put(b"value"), "has no current record");
        assert_misuse(cursor.delete(), "has no current record");
        assert_eq!((cursor.key(), cursor.value()), (&b""[..], &b""[..]));
        assert!(!cursor.first().unwrap() && !cursor.last().unwrap());
        assert!(!cursor.next().unwrap() && !cursor.prev().unwrap());
    }
    for key in [b"a", b"b", b"c"] {
        database.put(&transaction, key, key).unwrap();
    }
    assert!(cursor.seek(b"b").unwrap());
    assert!(cursor.delete().unwrap() && !cursor.delete().unwrap());
    assert!(cursor.next().unwrap() && cursor.key() == b"c");
    assert!(!cursor.next().unwrap() && cursor.key() == b"c", "it stands where it stood");
    assert!(cursor.prev().unwrap() && cursor.key() == b"a");
    assert!(!cursor.prev().unwrap() && cursor.key() == b"a");
    assert!(!cursor.seek(b"d").unwrap());
    assert_misuse(cursor.put(b"value"), "has no current record");
}

#[test]
fn invalid_savepoints_are_refused() {
    let vfs = FaultyVfs::in_memory();
    let environment =
        Environment::open_in(vfs.clone(), Some(crate::common::place()), small_options()).unwrap();
    let database = environment.create_database("data").unwrap();
    let put = |transaction: &quickbeam::Transaction, key: &[u8]| {
        database.put(transaction, key, key).unwrap();
    };
    // Of a transaction open beside, and of one that has ended.
    let (one, other) = (environment.begin().unwrap(), environment.begin().unwrap());
    put(&one, b"one");
    let savepoint = one.savepoint().unwrap();
    put(&other, b"other");
    assert_misuse(other.rollback_to(savepoint), "savepoint");
    one.commit().unwrap();
    other.commit().unwrap();
    let later = environment.begin().unwrap();
    for key in [b"later 1", b"later 2"] {
        put(&later, key);
    }
    assert_misuse(later.rollback_to(savepoint), "savepoint");
    later.commit().unwrap();
    // Of another environment, whose count of savepoints may be the same.
    let elsewhere = memory_environment().0;
    let there = elsewhere.begin().unwrap();
    let here = environment.begin().unwrap();
    put(&here, b"here");
    for _ in 0..5 {
        let savepoint = there.savepoint().unwrap();
        let _ = here.savepoint().unwrap();
        assert_misuse(here.rollback_to(savepoint), "savepoint");
    }
    here.abort().unwrap();
    // Undone by going back to an earlier one; as many changes later it does not come to life again.
    let transaction = environment.begin().unwrap();
    put(&transaction, b"a");
    let early = transaction.savepoint().unwrap();
    put(&transaction, b"a much longer key");
    put(&transaction, b"b");
    let undone = transaction.savepoint().unwrap();
    transaction.rollback_to(early).unwrap();
    assert_misuse(transaction.rollback_to(undone), "savepoint");
    for key in [b"c", b"d", b"e", b"f"] {
        put(&transaction, key);
    }
    assert_misuse(transaction.rollback_to(undone), "savepoint");
    let fresh = transaction.savepoint().unwrap();
    put(&transaction, b"g");
    transaction.rollback_to(fresh).unwrap();
    transaction.rollback_to(fresh).unwrap();
    transaction.commit().unwrap();
    // What the log says of it is what it did.
    let all = contents(&environment).unwrap();
    let files = vfs.files(crate::common::place());
    let copy = crate::common::open_files(&files, &small_options()).unwrap();
    assert_eq!(contents(&copy).unwrap(), all);
    let keys: Vec<_> = all["data"].keys().map(|key| String::from_utf8_lossy(key)).collect();
    assert_eq!(keys, ["a", "c", "d", "e", "f", "later 1", "later 2", "one", "other"]);
}

#[test]
fn transaction_limit_is_reported() {
    let (environment, database) = memory_environment();
    let mut open = Vec::new();
    let error = loop {
        match environment.begin() {
            Ok(transaction) => open.push(transaction),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Limit { .. }), "{error:?}");
    assert!(open.len() >= 1000, "{}", open.len());
    open.pop();
    let transaction = environment.begin().unwrap();
    database.put(&transaction, b"key", b"value").unwrap();
    transaction.commit().unwrap();
}

#[test]
fn transact_retries_only_retryable_errors() {
    let (environment, database) = memory_environment();
    let tries = Mutex::new(0);
    let result: Result<()> = environment.transact(|transaction| {
        *tries.lock().unwrap() += 1;
        database.put(transaction, b"key", b"value")?;
        Err(Error::Misuse { what: "it is enough".into() })
    });
    assert_misuse(result, "enough");
    assert_eq!(*tries.lock().unwrap(), 1);
    let result = environment.transact(|transaction| {
        *tries.lock().unwrap() += 1;
        database.put(transaction, b"other", b"value")?;
        if *tries.lock().unwrap() < 5 { Err(Error::WriteConflict) } else { Ok("done") }
    });
    assert_eq!(result.unwrap(), "done");
    let keys: Vec<_> = contents(&environment).unwrap()["data"].keys().cloned().collect();
    assert_eq!(keys, [b"other"]);
    assert_eq!(environment.statistics().open_transactions, 0);
    assert_eq!(environment.statistics().retries, 3);
}

/// An application's error that hides what the engine said.
#[derive(Debug, PartialEq)]
enum OwnError {
    Refused,
    Database,
}

impl From<Error> for OwnError {
    fn from(_: Error) -> OwnError {
        OwnError::Database
    }
}

#[test]
fn transact_with_returns_the_callers_error_and_aborts() {
    let (environment, database) = memory_environment();
    let mut calls = 0;
    let done: std::result::Result<(), OwnError> = environment.transact_with(|transaction| {
        calls += 1;
        database.put(transaction, b"key", b"value")?;
        Err(OwnError::Refused)
    });
    assert_eq!((done, calls), (Err(OwnError::Refused), 1));
    let reader = environment.begin_read().unwrap();
    assert_eq!(database.get(&reader, b"key").unwrap(), None);
}

#[test]
fn transact_with_retries_a_conflict_under_a_callers_error() {
    let (environment, database) = memory_environment();
    let mut calls = 0;
    let done: std::result::Result<usize, OwnError> = environment.transact_with(|transaction| {
        calls += 1;
        database.get(transaction, b"key")?;
        if calls < 8 {
            environment.transact(|other| database.put(other, b"key", &[calls])).unwrap();
        }
        database.put(transaction, b"key", b"mine")?;
        Ok(usize::from(calls))
    });
    assert_eq!(done, Ok(8));
}

#[test]
fn transact_returns_a_conflict_after_its_timeout() {
    let options = small_options().retry_timeout(Duration::ZERO);
    let environment = Environment::open_in_memory(options).unwrap();
    let database = environment.create_database("data").unwrap();
    let mut calls = 0;
    let done = environment.transact(|transaction| {
        calls += 1;
        database.get(transaction, b"key")?;
        environment.begin().and_then(|other| {
            database.put(&other, b"key", &[calls])?;
            other.commit()
        })?;
        database.put(transaction, b"key", b"mine")
    });
    assert!(matches!(done, Err(Error::WriteConflict)), "{done:?}");
    assert_eq!(calls, 1);
}
