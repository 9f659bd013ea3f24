//! Old snapshots beside many commits: they see what they saw, and cost what they see.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::place;
use quickbeam::query_layer::{ReadTracking, TransactionExt};
use quickbeam::vfs::MemoryVfs;
use quickbeam::{
    Database, Durability, Environment, Isolation, Options, ReadTransaction, Snapshot, Transaction,
    TransactionOptions,
};
use quickbeam_testing::Random;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options::new()
        .page_size(4096)
        .cache_size(4096 * 64)
        .durability(Durability::InMemory)
        .isolation(Isolation::Snapshot)
}

fn all(database: &Database, transaction: &impl ReadTransaction) -> Model {
    let mut cursor = database.cursor(transaction).unwrap();
    let mut records = Model::new();
    let mut more = cursor.first().unwrap();
    while more {
        records.insert(cursor.key().to_vec(), cursor.value().to_vec());
        more = cursor.next().unwrap();
    }
    records
}

fn key(number: usize) -> Vec<u8> {
    format!("key {number:04}").into_bytes()
}

/// Changes a few records; some changes are rolled back to a savepoint, or altogether.
fn change(environment: &Environment, database: &Database, random: &mut Random, model: &mut Model) {
    let transaction = environment.begin().unwrap();
    let mut changed = model.clone();
    for _ in 0..=random.below(4) {
        let key = key(random.below(24));
        let undone = random.below(8) == 0;
        let savepoint = transaction.savepoint().unwrap();
        if random.below(5) == 0 {
            database.delete(&transaction, &key).unwrap();
        } else {
            let length = if random.below(30) == 0 { 5000 } else { random.below(200) };
            let value = vec![random.below(256) as u8; length];
            database.put(&transaction, &key, &value).unwrap();
            if !undone {
                changed.insert(key.clone(), value);
            }
        }
        if undone {
            transaction.rollback_to(savepoint).unwrap();
        } else if database.get(&transaction, &key).unwrap().is_none() {
            changed.remove(&key);
        }
    }
    if random.below(10) == 0 {
        transaction.abort().unwrap();
    } else {
        transaction.commit().unwrap();
        *model = changed;
    }
}

#[test]
fn snapshots_are_stable_while_others_commit_and_end() {
    for seed in 0..12 {
        let mut random = Random::new(seed);
        // With a directory, all committed undo entries go to files.
        let environment = if seed % 2 == 0 {
            Environment::open_in_memory(options()).unwrap()
        } else {
            let vfs = Arc::new(MemoryVfs::new());
            Environment::open_in(vfs, Some(place()), options().undo_memory(0)).unwrap()
        };
        let database = environment.create_database("data").unwrap();
        let mut model = Model::new();
        let mut readers: Vec<(Snapshot, Model)> = Vec::new();
        // A transaction that stays open keeps the horizon back for a while.
        let mut open: Option<Transaction> = None;
        for step in 0..1500 {
            change(&environment, &database, &mut random, &mut model);
            if random.below(20) == 0 && readers.len() < 6 {
                readers.push((environment.begin_read().unwrap(), model.clone()));
            }
            if random.below(10) == 0 && !readers.is_empty() {
                let at = random.below(readers.len());
                let (reader, seen) = &readers[at];
                assert_eq!(all(&database, reader), *seen, "seed {seed}, step {step}");
                if random.below(3) == 0 {
                    readers.remove(at);
                }
            }
            if random.below(200) == 0 {
                match open.take() {
                    None => {
                        let transaction = environment.begin().unwrap();
                        database.put(&transaction, b"never", b"kept").unwrap();
                        open = Some(transaction);
                    }
                    Some(transaction) => transaction.abort().unwrap(),
                }
            }
            if random.below(300) == 0 {
                environment.checkpoint().unwrap();
            }
        }
        for (reader, seen) in readers.drain(..) {
            assert_eq!(all(&database, &reader), seen, "seed {seed}");
        }
        drop(open);
        assert_eq!(all(&database, &environment.begin_read().unwrap()), model);
        environment.checkpoint().unwrap();
        let numbers = environment.statistics();
        assert_eq!((numbers.writers_held, numbers.undo_bytes, numbers.deferred_work), (0, 0, 0));
        assert_eq!(environment.verify().unwrap().complaints, [] as [String; 0]);
    }
}

#[test]
fn old_reader_keeps_only_the_versions_it_needs() {
    let environment = Environment::open_in_memory(options()).unwrap();
    let database = environment.create_database("data").unwrap();
    for n in 0..100 {
        environment.transact(|t| database.put(t, &key(n), &[0; 8])).unwrap();
    }
    let reader = environment.begin_read().unwrap();
    let before = all(&database, &reader);
    for n in 0..30_000 {
        environment.transact(|t| database.put(t, &key(n % 100), &n.to_le_bytes())).unwrap();
    }
    let numbers = environment.statistics();
    assert!(numbers.writers_held < 400, "{} writers", numbers.writers_held);
    assert!(numbers.undo_bytes < 100_000, "{} bytes", numbers.undo_bytes);
    assert_eq!(all(&database, &reader), before);
}

#[test]
fn tracked_read_committed_detects_each_commit_between() {
    let environment = Environment::open_in_memory(options()).unwrap();
    let database = environment.create_database("data").unwrap();
    let old = environment.begin_read().unwrap();
    let put = |n: u64| environment.transact(|t| database.put(t, b"key", &n.to_le_bytes())).unwrap();
    put(0);
    let isolation = Some(Isolation::ReadCommitted);
    let options = TransactionOptions::new().isolation(isolation);
    let moving = environment.begin_with(options).unwrap();
    moving.track_reads(ReadTracking::On);
    for n in 1..500 {
        put(n);
        moving.begin_statement();
        put(n + 1000);
        let seen = database.get(&moving, b"key").unwrap().unwrap();
        assert_eq!(seen, n.to_le_bytes());
        moving.end_statement();
    }
    assert_eq!(database.get(&old, b"key").unwrap(), None);
}

#[test]
fn transfers_keep_the_sum_in_every_snapshot() {
    const ACCOUNTS: usize = 40;
    let environment = Environment::open_in_memory(options()).unwrap();
    let database = environment.create_database("accounts").unwrap();
    let number = |bytes: Vec<u8>| i64::from_le_bytes(bytes.try_into().unwrap());
    for n in 0..ACCOUNTS {
        environment.transact(|t| database.put(t, &key(n), &100i64.to_le_bytes())).unwrap();
    }
    let sum = |transaction: &Snapshot| -> i64 {
        all(&database, transaction).into_values().map(number).sum()
    };
    let oldest = environment.begin_read().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|thread| {
                let (environment, database) = (&environment, &database);
                scope.spawn(move || {
                    let mut random = Random::new(thread);
                    for _ in 0..4000 {
                        let (from, to) = (random.below(ACCOUNTS), random.below(ACCOUNTS));
                        let amount = random.below(50) as i64;
                        environment
                            .transact(|t| {
                                for (account, change) in [(from, -amount), (to, amount)] {
                                    let old = database.get(t, &key(account))?.unwrap();
                                    let new = number(old) + change;
                                    database.put(t, &key(account), &new.to_le_bytes())?;
                                }
                                Ok(())
                            })
                            .unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let (long, short) =
                        (environment.begin_read().unwrap(), environment.begin_read().unwrap());
                    for _ in 0..4 {
                        assert_eq!(sum(&long), 100 * ACCOUNTS as i64);
                    }
                    assert_eq!(sum(&short), 100 * ACCOUNTS as i64);
                }
            });
        }
        let done: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(done.into_iter().all(|joined| joined.is_ok()));
    });
    assert!(all(&database, &oldest).into_values().all(|value| number(value) == 100));
    drop(oldest);
    environment.checkpoint().unwrap();
    assert_eq!(environment.statistics().writers_held, 0);
}
