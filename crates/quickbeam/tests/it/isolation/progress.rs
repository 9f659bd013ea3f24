//! Reads end whatever writers do: a leaf that is changed all the time, and long version chains.
//!
//! Each test has a writer that changes records next to those read until the reader is done. The
//! writer gives up after a number of commits that no reader needs, and then the test fails.

use std::ops::Bound;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::common::{begin, put};
use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
use quickbeam::{
    Database, Durability, Environment, Isolation, Options, ReadTransaction, Transaction,
};

/// Commits after which a writer gives up.
const PATIENCE: u32 = 400_000;

fn environment() -> (Environment, Database) {
    let options = Options::new().durability(Durability::InMemory);
    let environment = Environment::open_in_memory(options).unwrap();
    let database = environment.create_database("data").unwrap();
    (environment, database)
}

/// Puts records under the numbers below `count`.
fn fill(environment: &Environment, database: &Database, count: u32) {
    let put =
        |t: &Transaction| (0..count).try_for_each(|n| database.put(t, &n.to_be_bytes(), &[7; 60]));
    environment.transact(put).unwrap();
}

/// Runs `read` beside a thread that commits `change` again and again and counts its commits;
/// whether `read` ended first.
fn read_beside(
    environment: &Environment,
    change: impl Fn(&Transaction, u32) -> quickbeam::Result<()> + Sync,
    read: impl FnOnce(&AtomicU32),
) -> bool {
    let done = AtomicBool::new(false);
    let commits = AtomicU32::new(0);
    let begun = Barrier::new(2);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            begun.wait();
            for round in 0..PATIENCE {
                if done.load(Ordering::Relaxed) {
                    return true;
                }
                environment.transact(|transaction| change(transaction, round)).unwrap();
                commits.fetch_add(1, Ordering::Relaxed);
            }
            false
        });
        begun.wait();
        read(&commits);
        done.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    })
}

fn scan(database: &Database, transaction: &impl ReadTransaction, backward: bool) -> Vec<Vec<u8>> {
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded);
    if backward {
        scan = scan.backward();
    }
    let (mut batch, mut keys) = (ScanBatch::default(), Vec::new());
    while database.scan(transaction, &mut scan, &mut batch).unwrap() {
        keys.extend((0..batch.len()).map(|record| batch.key(record).to_vec()));
    }
    keys
}

fn walk(database: &Database, transaction: &impl ReadTransaction, backward: bool) -> Vec<Vec<u8>> {
    let (mut cursor, mut keys) = (database.cursor(transaction).unwrap(), Vec::new());
    while if backward { cursor.prev() } else { cursor.next() }.unwrap() {
        keys.push(cursor.key().to_vec());
    }
    keys
}

/// A snapshot older than 20,000 versions of a counter, and a neighbour of the counter that changes
/// more often than these versions can be followed: the read started over with each change.
#[test]
fn old_snapshot_reads_long_chains_beside_a_busy_writer() {
    let (environment, database) = environment();
    put(&environment, &database, b"counter", b"old");
    put(&environment, &database, b"deleted", b"old");
    put(&environment, &database, b"neighbour", b"old");
    let old = environment.begin_read().unwrap();
    put(&environment, &database, b"counted since", b"");
    for round in 0..20_000u32 {
        let change = |t: &Transaction| {
            database.put(t, b"counted since", &round.to_be_bytes())?;
            database.put(t, b"counter", &round.to_be_bytes())
        };
        environment.transact(change).unwrap();
    }
    environment.transact(|t| database.delete(t, b"deleted").map(drop)).unwrap();
    let change = |t: &Transaction, round: u32| database.put(t, b"neighbour", &round.to_be_bytes());
    let keys = [&b"counter"[..], b"deleted", b"neighbour"];
    let read = |_: &AtomicU32| {
        assert_eq!(database.get(&old, b"counter").unwrap().as_deref(), Some(&b"old"[..]));
        assert_eq!(database.get(&old, b"counted since").unwrap(), None);
        assert_eq!(scan(&database, &old, false), keys);
        assert_eq!(walk(&database, &old, false), keys);
        let backward: Vec<_> = keys.iter().rev().map(|key| key.to_vec()).collect();
        assert_eq!(scan(&database, &old, true), backward);
        assert_eq!(walk(&database, &old, true), backward);
    };
    assert!(read_beside(&environment, change, read), "the reads did not end beside the writer");
}

/// One leaf whose records are changed by one thread all the time: a scan of it could start over for
/// ever, while the versions that its snapshot keeps took more and more memory.
#[test]
fn scan_of_a_busy_leaf_ends() {
    let (environment, database) = environment();
    let key = |n: u32| format!("record {n:02}").into_bytes();
    for n in 0..60 {
        put(&environment, &database, &key(n), b"old");
    }
    let change = |t: &Transaction, round: u32| {
        let n = round.wrapping_mul(37);
        database.put(t, &key(n % 60), &round.to_be_bytes())?;
        database.put(t, &key((n / 7) % 60), &round.to_be_bytes())
    };
    let read = |commits: &AtomicU32| {
        for round in 0..40 {
            let isolation =
                if round % 2 == 0 { Isolation::Snapshot } else { Isolation::Serializable };
            let reader = begin(&environment, isolation);
            // Every other time on a snapshot that is already some thousand changes old.
            let from = commits.load(Ordering::Relaxed);
            let age = if round % 4 < 2 { 0 } else { 2000 };
            while commits.load(Ordering::Relaxed) < (from + age).min(PATIENCE) {
                std::thread::yield_now();
            }
            assert_eq!(scan(&database, &reader, round % 8 < 4).len(), 60);
            assert_eq!(walk(&database, &reader, round % 8 < 4).len(), 60);
            assert!(database.get(&reader, &key(30)).unwrap().is_some());
            // Nothing was written: there is nothing to validate.
            reader.commit().unwrap();
        }
    };
    assert!(read_beside(&environment, change, read), "the scans did not end beside the writer");
}

/// A batch with a limit goes on after the last record it looked at, seen or not.
#[test]
fn limited_batch_skips_invisible_records() {
    let (environment, database) = environment();
    for n in (0..100u8).step_by(2) {
        put(&environment, &database, &[n], &[n; 40]);
    }
    let reader = environment.begin_read().unwrap();
    for n in 0..100u8 {
        put(&environment, &database, &[n], b"new");
    }
    for n in (0..100u8).step_by(10) {
        environment.transact(|t| database.delete(t, &[n]).map(drop)).unwrap();
    }
    for limit in [1, 2, 3, 7, 60] {
        for backward in [false, true] {
            let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded).record_limit(limit);
            if backward {
                scan = scan.backward();
            }
            let (mut batch, mut found) = (ScanBatch::default(), Vec::new());
            while database.scan(&reader, &mut scan, &mut batch).unwrap() {
                assert!(batch.len() <= limit && !batch.is_empty());
                for record in 0..batch.len() {
                    assert_eq!(batch.value(record), [batch.key(record)[0]; 40]);
                    found.push(batch.key(record)[0]);
                }
            }
            if backward {
                found.reverse();
            }
            assert_eq!(found, (0..100).step_by(2).collect::<Vec<u8>>(), "limit {limit}");
        }
    }
}

/// Regression test. A transaction reads 50,000 records that no transaction changes, while a writer
/// changes others in the same leaves. Some leaf differed each time the commit compared them, so the
/// transaction failed although it had no conflict.
#[test]
fn transaction_without_conflicts_commits_at_once() {
    let (environment, database) = environment();
    let count = 100_000;
    fill(&environment, &database, count);
    let change = |t: &Transaction, round: u32| {
        let n = round.wrapping_mul(7919) % (count / 2);
        database.put(t, &(2 * n + 1).to_be_bytes(), &round.to_be_bytes())
    };
    let read = |_: &AtomicU32| {
        let mut value = Vec::new();
        for round in 0..5u32 {
            let transaction = begin(&environment, Isolation::Serializable);
            for n in 0..count / 2 {
                // Neighbours are read far from each other.
                let n = n * 1013 % (count / 2) * 2;
                assert!(database.get_into(&transaction, &n.to_be_bytes(), &mut value).unwrap());
            }
            database.put(&transaction, &(2 * round).to_be_bytes(), b"changed").unwrap();
            transaction.commit().unwrap();
        }
    };
    read_beside(&environment, change, read);
}

/// Each transaction reads many records and puts a number above all that it found into one of them,
/// while others change the records between them. Serial transactions find each number once.
#[test]
fn next_numbers_are_unique_beside_other_writers() {
    const THREADS: u32 = 3;
    const EACH: u32 = 60;
    let (environment, database) = environment();
    let count = 2_000u32;
    fill(&environment, &database, count);
    for n in (0..count).step_by(2) {
        put(&environment, &database, &n.to_be_bytes(), &0u32.to_be_bytes());
    }
    let change = |t: &Transaction, round: u32| {
        let n = round.wrapping_mul(7919) % (count / 2);
        database.put(t, &(2 * n + 1).to_be_bytes(), &round.to_be_bytes())
    };
    let number = |transaction: &Transaction, key: u32| {
        let value = database.get(transaction, &key.to_be_bytes()).unwrap().unwrap();
        u32::from_be_bytes(value.try_into().unwrap())
    };
    let give = |place: u32| loop {
        let transaction = begin(&environment, Isolation::Serializable);
        let keys = (0..count).step_by(2);
        let highest = keys.map(|key| number(&transaction, key)).max().unwrap();
        let key = (place * 2 % count).to_be_bytes();
        let put = database.put(&transaction, &key, &(highest + 1).to_be_bytes());
        match put.and_then(|()| transaction.commit()) {
            Ok(()) => return highest + 1,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    };
    let read = |_: &AtomicU32| {
        let mut given: Vec<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let give = &give;
                    let places = (0..EACH).map(move |n| thread * 331 + n * 17);
                    scope.spawn(move || places.map(give).collect::<Vec<_>>())
                })
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        given.sort_unstable();
        assert_eq!(given, (1..=THREADS * EACH).collect::<Vec<_>>());
    };
    read_beside(&environment, change, read);
}
