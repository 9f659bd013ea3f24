//! `Database::clear_range`: undo, conflicts, snapshots, replay.

use quickbeam::{
    Database, Durability, Environment, Error, Isolation, Options, ReadTransaction,
    TransactionOptions,
};

const RECORDS: u32 = 5000;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// An environment whose records take many leaves; every hundredth value is long.
fn filled(environment: &Environment) -> Database {
    let database = environment.create_database("records").unwrap();
    let fill = |transaction: &quickbeam::Transaction| {
        for number in 0..RECORDS {
            let length = if number % 100 == 0 { 20_000 } else { 50 };
            database.put(transaction, &key(number), &vec![number as u8; length])?;
        }
        Ok(())
    };
    environment.transact(fill).unwrap();
    database
}

fn numbers(database: &Database, transaction: &impl ReadTransaction) -> Vec<u32> {
    let number = |key: Vec<u8>| u32::from_be_bytes(key.try_into().unwrap());
    database.iter(transaction).map(|record| number(record.unwrap().0)).collect()
}

fn all_but(low: u32, high: u32) -> Vec<u32> {
    (0..low).chain(high..RECORDS).collect()
}

#[test]
fn clear_range_deletes_the_keys_in_its_bounds() {
    let environment = Environment::open_in_memory(Options::default()).unwrap();
    let database = filled(&environment);
    let transaction = environment.begin().unwrap();
    assert_eq!(database.clear_range(&transaction, key(10)..key(4000)).unwrap(), 3990);
    assert_eq!(database.clear_range(&transaction, key(10)..key(4000)).unwrap(), 0);
    assert_eq!(database.clear_range(&transaction, key(4000)..=key(4000)).unwrap(), 1);
    assert_eq!(database.clear_range(&transaction, key(4500)..key(4400)).unwrap(), 0);
    assert_eq!(numbers(&database, &transaction), all_but(10, 4001));
    assert_eq!(database.clear_range(&transaction, key(4990)..).unwrap(), 10);
    assert_eq!(database.clear_range(&transaction, ..key(5)).unwrap(), 5);
    transaction.commit().unwrap();
    let left: Vec<u32> = (5..10).chain(4001..4990).collect();
    assert_eq!(numbers(&database, &environment.begin_read().unwrap()), left);
    assert_eq!(environment.verify().unwrap().complaints, Vec::<String>::new());
}

#[test]
fn savepoint_rollback_restores_a_cleared_range() {
    let environment = Environment::open_in_memory(Options::default()).unwrap();
    let database = filled(&environment);
    let transaction = environment.begin().unwrap();
    database.put(&transaction, &key(7), b"own").unwrap();
    let savepoint = transaction.savepoint().unwrap();
    assert_eq!(database.clear_range::<&[u8]>(&transaction, ..).unwrap(), u64::from(RECORDS));
    transaction.rollback_to(savepoint).unwrap();
    assert_eq!(database.get(&transaction, &key(7)).unwrap().unwrap(), b"own");
    assert_eq!(numbers(&database, &transaction).len() as u32, RECORDS);
    assert_eq!(database.clear_range::<&[u8]>(&transaction, ..).unwrap(), u64::from(RECORDS));
    transaction.abort().unwrap();
    let snapshot = environment.begin_read().unwrap();
    assert_eq!(database.get(&snapshot, &key(7)).unwrap().unwrap(), [7; 50]);
    assert_eq!(database.get(&snapshot, &key(300)).unwrap().unwrap().len(), 20_000);
    assert_eq!(numbers(&database, &snapshot).len() as u32, RECORDS);
}

#[test]
fn failed_clear_range_deletes_nothing() {
    let environment = Environment::open_in_memory(Options::default()).unwrap();
    let database = filled(&environment);
    let options = TransactionOptions::new().isolation(Some(Isolation::Snapshot));
    let late = environment.begin_with(options).unwrap();
    assert!(database.exists(&late, &key(1)).unwrap());
    // A record in the middle is changed after the snapshot.
    environment.transact(|other| database.put(other, &key(2500), b"new")).unwrap();
    let outcome = database.clear_range::<&[u8]>(&late, ..);
    assert!(matches!(outcome, Err(Error::WriteConflict)), "{outcome:?}");
    assert_eq!(numbers(&database, &late).len() as u32, RECORDS);
    assert_eq!(database.clear_range(&late, ..key(2500)).unwrap(), 2500);
    late.commit().unwrap();
    let snapshot = environment.begin_read().unwrap();
    assert_eq!(numbers(&database, &snapshot), all_but(0, 2500));
}

#[test]
fn older_snapshot_sees_a_cleared_range() {
    let environment = Environment::open_in_memory(Options::default()).unwrap();
    let database = filled(&environment);
    let before = environment.begin_read().unwrap();
    let clear = |transaction: &quickbeam::Transaction| {
        database.clear_range(transaction, key(100)..key(4900))
    };
    environment.transact(clear).unwrap();
    assert_eq!(numbers(&database, &before).len() as u32, RECORDS);
    assert_eq!(database.get(&before, &key(300)).unwrap().unwrap().len(), 20_000);
    let after = environment.begin_read().unwrap();
    assert_eq!(numbers(&database, &after), all_but(100, 4900));
}

/// The range was read: a serializable transaction fails if another one inserts into it first.
#[test]
fn insert_into_a_cleared_range_conflicts() {
    for (isolation, fails) in [(Isolation::Serializable, true), (Isolation::Snapshot, false)] {
        let environment = Environment::open_in_memory(Options::default()).unwrap();
        let database = filled(&environment);
        let options = TransactionOptions::new().isolation(Some(isolation));
        let clearing = environment.begin_with(options).unwrap();
        assert_eq!(database.clear_range(&clearing, key(1000)..key(1500)).unwrap(), 500);
        let inserting = environment.begin().unwrap();
        let new = [&key(1200)[..], b"+"].concat();
        database.put(&inserting, &new, b"new").unwrap();
        inserting.commit().unwrap();
        let outcome = clearing.commit();
        assert_eq!(matches!(outcome, Err(Error::SerializationFailure)), fails, "{outcome:?}");
        assert!(database.exists(&environment.begin_read().unwrap(), &new).unwrap());
    }
}

/// Replay deletes the records that the call deleted, and keeps one that another transaction had
/// inserted into the range by then (CLEAR-2).
#[test]
fn replay_deletes_the_same_range() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::WriteNoSync);
    let environment = Environment::open(directory.path(), options.clone()).unwrap();
    let database = filled(&environment);
    environment.checkpoint().unwrap();
    let snapshot = TransactionOptions::new().isolation(Some(Isolation::Snapshot));
    let clearing = environment.begin_with(snapshot).unwrap();
    assert_eq!(database.clear_range(&clearing, key(1000)..key(4000)).unwrap(), 3000);
    let new = [&key(2000)[..], b"+"].concat();
    environment.transact(|other| database.put(other, &new, b"new")).unwrap();
    clearing.commit().unwrap();
    let expected: Vec<_> =
        database.iter(&environment.begin_read().unwrap()).map(Result::unwrap).collect();
    assert_eq!(expected.len(), 2001);
    // As if the process had ended: the files as they are, without a checkpoint.
    let copy = tempfile::tempdir().unwrap();
    copy_tree(directory.path(), copy.path());
    let replayed = Environment::open(copy.path(), options).unwrap();
    let database = replayed.open_database("records").unwrap();
    let found: Vec<_> =
        database.iter(&replayed.begin_read().unwrap()).map(Result::unwrap).collect();
    assert!(found == expected);
    assert_eq!(replayed.verify().unwrap().complaints, Vec::<String>::new());
}

fn copy_tree(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}
