//! Limits on old snapshots: readers expire by age or by undo, and writers are delayed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::wait_until;
use quickbeam::query_layer::{DatabaseExt, TransactionExt};
use quickbeam::{
    AccessMethod, Database, Environment, Error, Isolation, Options, Result, Snapshot, Transaction,
    TransactionOptions, UndoPolicy,
};

const UNDO_LIMIT: u64 = 1 << 20;

#[track_caller]
fn assert_too_old<T>(result: Result<T>) {
    match result {
        Err(error @ Error::SnapshotTooOld) => assert!(error.is_retryable()),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("no error"),
    }
}

fn fill(environment: &Environment, name: &str, method: AccessMethod) -> Database {
    let database = environment.create_database_with(name, method).unwrap();
    change_all(environment, &database, 0);
    database
}

/// Gives each of 3,000 records another value of 1,000 bytes, every twentieth one a long one.
fn change_all(environment: &Environment, database: &Database, round: u8) {
    for first in (0..3000_u32).step_by(100) {
        environment
            .transact(|transaction| {
                for number in first..first + 100 {
                    let length = if number % 20 == 0 { 9000 } else { 1000 };
                    database.put(transaction, &number.to_be_bytes(), &vec![round; length])?;
                }
                Ok(())
            })
            .unwrap();
    }
}

fn aging(milliseconds: u64) -> Environment {
    let options = Options::new()
        .reader_max_age(Duration::from_millis(milliseconds))
        .cache_size(256 << 13)
        .isolation(Isolation::Snapshot);
    Environment::open_in_memory(options).unwrap()
}

fn limited(policy: UndoPolicy) -> Environment {
    let options = Options::new()
        .undo_limit(UNDO_LIMIT)
        .undo_policy(policy)
        .isolation(Isolation::Snapshot)
        .lock_timeout(Duration::from_millis(50))
        .retry_timeout(Duration::ZERO);
    Environment::open_in_memory(options).unwrap()
}

fn wait_for_expiry(environment: &Environment, count: u64) {
    wait_until("snapshots have expired", || environment.statistics().expired_snapshots >= count);
}

/// Makes every kind of call that reads; each fails.
fn assert_all_calls_fail(reader: &Snapshot, database: &Database) {
    let key = 7_u32.to_be_bytes();
    assert_too_old(database.get(reader, &key));
    assert_too_old(database.get(reader, &[1; 40]));
    assert_too_old(database.cursor(reader).and_then(|mut cursor| cursor.first()));
    assert_too_old(database.iter(reader).next().unwrap());
    assert_too_old(database.estimate(reader));
    assert_too_old(database.sample_key(reader, 0.5));
    assert_too_old(reader.databases());
    assert_too_old(reader.open_database("never made"));
    if database.access_method().is_ordered() {
        assert_too_old(
            database.cursor(reader).and_then(|mut cursor| cursor.seek_at_or_before(&key)),
        );
        assert_too_old(database.estimate_before(reader, &key));
    }
}

#[test]
fn expired_reader_fails_with_snapshot_too_old() {
    let environment = aging(1);
    let methods = [AccessMethod::BTree, AccessMethod::Hash];
    let databases = methods.map(|method| fill(&environment, &method.to_string(), method));
    let before = environment.statistics().expired_snapshots;
    let reader = environment.begin_read().unwrap();
    wait_for_expiry(&environment, before + 1);
    databases.iter().for_each(|database| assert_all_calls_fail(&reader, database));
    // What it read is changed, moved and freed.
    for (round, database) in (1..).zip(&databases) {
        change_all(&environment, database, round);
        assert_all_calls_fail(&reader, database);
        environment.transact(|transaction| transaction.drop_database(database.name())).unwrap();
        fill(&environment, "other", AccessMethod::BTree);
        environment.transact(|transaction| transaction.drop_database("other")).unwrap();
        assert_all_calls_fail(&reader, database);
    }
    drop(reader);
    assert!(environment.verify().unwrap().complaints.is_empty());
}

#[test]
fn cursor_of_an_expired_reader_moves_no_further() {
    let environment = aging(500);
    let database = fill(&environment, "data", AccessMethod::BTree);
    let before = environment.statistics().expired_snapshots;
    let reader = environment.begin_read().unwrap();
    let mut cursor = database.cursor(&reader).unwrap();
    let begun = cursor.first();
    wait_for_expiry(&environment, before + 1);
    assert!(matches!(begun, Ok(true) | Err(Error::SnapshotTooOld)));
    assert_too_old(cursor.next());
    assert_too_old(cursor.prev());
}

#[test]
fn transaction_with_changes_never_expires() {
    let environment = aging(1);
    let database = fill(&environment, "data", AccessMethod::BTree);
    let mut pinned = None;
    // The transaction may expire before its first change.
    while pinned.is_none() {
        let transaction = environment.begin().unwrap();
        match database.put(&transaction, b"own", b"1") {
            Ok(()) => pinned = Some(transaction),
            Err(error) => assert!(matches!(error, Error::SnapshotTooOld)),
        }
    }
    let pinned = pinned.unwrap();
    let key = 7_u32.to_be_bytes();
    assert_eq!(database.get(&pinned, &key).unwrap().unwrap()[0], 0);
    change_all(&environment, &database, 1);
    let before = environment.statistics().expired_snapshots;
    let reader = environment.begin_read().unwrap();
    wait_for_expiry(&environment, before + 1);
    drop(reader);
    assert_eq!(database.get(&pinned, &key).unwrap().unwrap()[0], 0);
    pinned.commit().unwrap();
}

#[test]
fn transaction_that_never_expires_keeps_its_snapshot() {
    let environment = aging(1);
    let database = fill(&environment, "data", AccessMethod::BTree);
    let options = TransactionOptions::new().read_only(true).never_expires(true);
    let backup = environment.begin_with(options).unwrap();
    change_all(&environment, &database, 1);
    let before = environment.statistics().expired_snapshots;
    let reader = environment.begin_read().unwrap();
    wait_for_expiry(&environment, before + 1);
    drop(reader);
    assert!(database.iter(&backup).all(|record| record.unwrap().1[0] == 0));
}

#[test]
fn first_change_of_an_expired_transaction_fails() {
    let environment = aging(1);
    let database = fill(&environment, "data", AccessMethod::BTree);
    let before = environment.statistics().expired_snapshots;
    let transaction = environment.begin().unwrap();
    wait_for_expiry(&environment, before + 1);
    assert_too_old(database.put(&transaction, b"own", b"1"));
    assert_too_old(transaction.create_database("more"));
    transaction.commit().unwrap();
    assert!(environment.open_database("more").is_err());
    assert_eq!(environment.statistics().writers_held, 0);
}

#[test]
fn read_committed_continues_with_a_new_snapshot() {
    let environment = aging(200);
    let database = fill(&environment, "data", AccessMethod::BTree);
    let options = TransactionOptions::new().isolation(Isolation::ReadCommitted);
    let before = environment.statistics().expired_snapshots;
    let transaction = environment.begin_with(options).unwrap();
    wait_for_expiry(&environment, before + 1);
    let key = 7_u32.to_be_bytes();
    wait_until("a call ends in time", || database.get(&transaction, &key).is_ok());
}

#[test]
fn undo_limit_expires_the_oldest_reader() {
    let environment = limited(UndoPolicy::ExpireReaders);
    let database = fill(&environment, "data", AccessMethod::BTree);
    let reader = environment.begin_read().unwrap();
    change_all(&environment, &database, 1);
    let young = environment.begin_read().unwrap();
    let key = 7_u32.to_be_bytes();
    wait_for_expiry(&environment, 1);
    assert_too_old(database.get(&reader, &key));
    wait_until("undo is within its limit", || {
        environment.statistics().undo_bytes as u64 <= UNDO_LIMIT
    });
    assert_eq!(database.get(&young, &key).unwrap().unwrap()[0], 1);
    assert_eq!(environment.statistics().expired_snapshots, 1);
}

#[test]
fn undo_limit_delays_writers_until_readers_end() {
    let environment = limited(UndoPolicy::DelayWriters);
    let database = fill(&environment, "data", AccessMethod::BTree);
    let reader = environment.begin_read().unwrap();
    let key = 7_u32.to_be_bytes();
    let put = |transaction: &Transaction| database.put(transaction, &key, b"");
    wait_until("a writer is refused", || {
        let done = environment.transact(|transaction| {
            (0..500_u32).try_for_each(|n| database.put(transaction, &n.to_be_bytes(), &[1; 1000]))
        });
        done.is_err_and(|error| matches!(error, Error::UndoLimit { .. }))
    });
    assert!(environment.statistics().delayed_writers > 0);
    assert!(environment.statistics().undo_bytes as u64 > UNDO_LIMIT / 2);
    // An interrupted wait ends at once.
    let transaction = environment.begin().unwrap();
    transaction.set_lock_timeout(Duration::from_secs(60));
    transaction.interrupt_on(&Arc::new(AtomicBool::new(true)));
    assert!(matches!(put(&transaction), Err(Error::Interrupted)));
    drop(transaction);
    // A delayed writer continues when the reader ends.
    let is_done = AtomicBool::new(false);
    let delayed = environment.statistics().delayed_writers;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let options = TransactionOptions::new().lock_timeout(Duration::from_secs(60));
            let transaction = environment.begin_with(options).unwrap();
            put(&transaction).unwrap();
            transaction.commit().unwrap();
            is_done.store(true, Ordering::SeqCst);
        });
        wait_until("it waits", || {
            environment.statistics().delayed_writers > delayed || is_done.load(Ordering::SeqCst)
        });
        drop(reader);
    });
    assert_eq!(database.get(&environment.begin_read().unwrap(), &key).unwrap().unwrap(), b"");
}
