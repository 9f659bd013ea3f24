//! What each isolation level promises, one small scene after the other. `serializable.rs` has what
//! only that level promises; `histories.rs` looks for what both miss.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use crate::common::{Random, begin, memory_environment, put};
use quickbeam::query_layer::TransactionExt;
use quickbeam::{Database, Environment, Error, Isolation, Result, Transaction, TransactionOptions};

const LEVELS: [Isolation; 3] =
    [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];

/// A transaction that waits for a lock only so long.
fn begin_waiting(
    environment: &Environment,
    isolation: Isolation,
    lock_timeout: Duration,
) -> Transaction {
    let (isolation, lock_timeout) = (Some(isolation), Some(lock_timeout));
    let options = TransactionOptions::new().isolation(isolation).lock_timeout(lock_timeout);
    environment.begin_with(options).unwrap()
}

fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
}

#[test]
fn lost_update_never_happens() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let (environment, database) = memory_environment();
        let (threads, each) = (4, 300);
        let add = || -> Result<()> {
            let transaction = begin(&environment, isolation);
            let old = number(database.get(&transaction, b"sum")?);
            database.put(&transaction, b"sum", &(old + 1).to_le_bytes())?;
            transaction.commit()
        };
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut done = 0;
                    while done < each {
                        match add() {
                            Ok(()) => done += 1,
                            Err(error) => assert!(error.is_retryable(), "{error}"),
                        }
                    }
                });
            }
        });
        let sum = number(database.get(&environment.begin_read().unwrap(), b"sum").unwrap());
        assert_eq!(sum, threads * each, "{isolation:?}");
    }
}

#[test]
fn uncommitted_changes_are_invisible() {
    for isolation in LEVELS {
        let (environment, database) = memory_environment();
        put(&environment, &database, b"changed", b"old");
        put(&environment, &database, b"deleted", b"old");
        let writer = begin(&environment, isolation);
        database.put(&writer, b"changed", b"new").unwrap();
        database.put(&writer, b"inserted", b"new").unwrap();
        database.delete(&writer, b"deleted").unwrap();
        let reader = begin(&environment, isolation);
        let before = crate::common::records(&database, &reader).unwrap();
        let expected = [(&b"changed"[..], b"old"), (b"deleted", b"old")];
        let expected = expected.map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert!(
            before.iter().eq(expected.iter().map(|(k, v)| (k, v))),
            "{isolation:?}: {before:?}"
        );
        assert!(!database.exists(&reader, b"inserted").unwrap());
        writer.abort().unwrap();
        assert_eq!(crate::common::records(&database, &reader).unwrap(), before);
    }
}

#[test]
fn snapshot_is_stable_and_read_committed_advances() {
    for isolation in LEVELS {
        let (environment, database) = memory_environment();
        put(&environment, &database, b"changed", b"old");
        put(&environment, &database, b"deleted", b"old");
        let reader = begin(&environment, isolation);
        let before = crate::common::records(&database, &reader).unwrap();
        put(&environment, &database, b"changed", b"new");
        put(&environment, &database, b"inserted", b"new");
        environment.transact(|writer| database.delete(writer, b"deleted").map(|_| ())).unwrap();
        let after = crate::common::records(&database, &reader).unwrap();
        if isolation == Isolation::ReadCommitted {
            assert_eq!(after.keys().collect::<Vec<_>>(), [&b"changed"[..], b"inserted"]);
            assert_eq!(after.values().collect::<Vec<_>>(), [b"new", b"new"]);
        } else {
            assert_eq!(after, before);
            assert_eq!(database.get(&reader, b"deleted").unwrap().as_deref(), Some(&b"old"[..]));
        }
    }
}

/// Two transactions that each read what the other writes; the errors of their commits.
fn skew(environment: &Environment, database: &Database, isolation: Isolation) -> [Result<()>; 2] {
    let one = begin(environment, isolation);
    let other = begin(environment, isolation);
    database.get(&one, b"b").unwrap();
    database.get(&other, b"a").unwrap();
    database.put(&one, b"a", b"1").unwrap();
    database.put(&other, b"b", b"1").unwrap();
    [one.commit(), other.commit()]
}

#[test]
fn write_skew_happens_under_snapshot_only() {
    let (environment, database) = memory_environment();
    assert!(matches!(skew(&environment, &database, Isolation::Snapshot), [Ok(()), Ok(())]));
    let serializable = skew(&environment, &database, Isolation::Serializable);
    assert!(matches!(serializable, [Ok(()), Err(Error::SerializationFailure)]));
}

#[test]
fn first_updater_wins_and_the_second_can_continue() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let (environment, database) = memory_environment();
        let late = begin(&environment, isolation);
        database.put(&late, b"mine", b"1").unwrap();
        put(&environment, &database, b"contested", b"first");
        for _ in 0..2 {
            let refused = database.put(&late, b"contested", b"second");
            assert!(matches!(refused, Err(Error::WriteConflict)), "{refused:?}");
            assert!(matches!(database.delete(&late, b"contested"), Err(Error::WriteConflict)));
        }
        assert_eq!(database.get(&late, b"contested").unwrap(), None, "its snapshot is older");
        database.put(&late, b"mine", b"2").unwrap();
        let committed = late.commit();
        // The serializable one has read, just now, what had been changed.
        assert_eq!(committed.is_ok(), isolation == Isolation::Snapshot);
        let reader = environment.begin_read().unwrap();
        let mine = database.get(&reader, b"mine").unwrap();
        assert_eq!(mine.as_deref(), committed.is_ok().then_some(&b"2"[..]));
        assert_eq!(database.get(&reader, b"contested").unwrap().as_deref(), Some(&b"first"[..]));
    }
}

#[test]
fn read_committed_waits_and_updates_the_committed_value() {
    let (environment, database) = memory_environment();
    put(&environment, &database, b"sum", &0u64.to_le_bytes());
    let first = begin(&environment, Isolation::ReadCommitted);
    database.put(&first, b"sum", &5u64.to_le_bytes()).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let second = begin(&environment, Isolation::ReadCommitted);
            assert_eq!(number(database.get(&second, b"sum").unwrap()), 0);
            database.put(&second, b"other", b"").unwrap();
            database.put(&second, b"sum", &7u64.to_le_bytes()).unwrap();
            second.commit()
        });
        std::thread::sleep(Duration::from_millis(50));
        first.commit().unwrap();
        waiting.join().unwrap().unwrap();
    });
    let reader = environment.begin_read().unwrap();
    assert_eq!(number(database.get(&reader, b"sum").unwrap()), 7);
}

#[test]
fn opposite_lock_orders_are_a_deadlock_at_once() {
    for isolation in LEVELS {
        let (environment, database) = memory_environment();
        let barrier = Barrier::new(2);
        let work = |first: &[u8], second: &[u8]| -> Result<()> {
            let transaction = begin(&environment, isolation);
            database.put(&transaction, first, b"")?;
            barrier.wait();
            database.put(&transaction, second, b"")?;
            transaction.commit()
        };
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| work(b"b", b"a"));
            (work(b"a", b"b"), other.join().unwrap())
        });
        // The lock timeout is a minute: a transaction that failed with it would have waited that
        // long.
        let (victim, winner) = if one.is_err() { (one, other) } else { (other, one) };
        assert!(matches!(victim, Err(Error::Deadlock)), "{isolation:?}: {victim:?}");
        assert_eq!(environment.statistics().deadlocks, 1);
        // The winner waited for one that aborted: nothing it wrote was changed.
        winner.unwrap();
    }
}

#[test]
fn transaction_continues_after_a_lock_timeout() {
    for isolation in LEVELS {
        let (environment, database) = memory_environment();
        let holder = begin(&environment, isolation);
        database.put(&holder, b"held", b"1").unwrap();
        let timeout = Duration::from_millis(250);
        let waiting = begin_waiting(&environment, isolation, timeout);
        let started = Instant::now();
        match database.put(&waiting, b"held", b"2") {
            Err(Error::LockTimeout { waited_ms }) => assert!(waited_ms >= 250, "{waited_ms} ms"),
            other => panic!("{other:?}"),
        }
        assert!(started.elapsed() >= timeout);
        assert_eq!(environment.statistics().lock_timeouts, 1);
        database.put(&waiting, b"free", b"2").unwrap();
        waiting.commit().unwrap();
        holder.commit().unwrap();
        assert_eq!(
            database.get(&environment.begin_read().unwrap(), b"free").unwrap().unwrap(),
            b"2"
        );
    }
}

/// Writers change pairs of records together. Readers find both records of a pair equal at any time,
/// and never fail.
#[test]
fn read_only_transactions_see_whole_commits() {
    let (environment, database) = memory_environment();
    let pair =
        |n: usize| (format!("left {n:03}").into_bytes(), format!("right {n:03}").into_bytes());
    let stop = AtomicBool::new(false);
    let commits = AtomicU64::new(0);
    let seed = crate::common::first_seed();
    println!("seed {seed}");
    let write = |seed: u64| {
        let mut random = Random::new(seed);
        while !stop.load(Ordering::Relaxed) {
            let (left, right) = pair(random.below(40));
            let value = vec![random.next() as u8; 1 + random.below(2000)];
            let result = environment.transact(|transaction| {
                if value.len().is_multiple_of(5) {
                    database.delete(transaction, &left)?;
                    database.delete(transaction, &right)?;
                } else {
                    database.put(transaction, &left, &value)?;
                    database.put(transaction, &right, &value)?;
                }
                Ok(())
            });
            commits.fetch_add(u64::from(result.is_ok()), Ordering::Relaxed);
        }
    };
    let read = |seed: u64| {
        let mut random = Random::new(seed);
        while commits.load(Ordering::Relaxed) < 2000 {
            let reader = environment.begin_read().unwrap();
            for _ in 0..5 {
                let (left, right) = pair(random.below(40));
                let left = database.get(&reader, &left).unwrap();
                assert_eq!(left, database.get(&reader, &right).unwrap());
            }
            let all = crate::common::records(&database, &reader).unwrap();
            let (lefts, rights): (Vec<_>, Vec<_>) = all.iter().partition(|(key, _)| key[0] == b'l');
            assert!(lefts.iter().map(|pair| pair.1).eq(rights.iter().map(|pair| pair.1)));
        }
        stop.store(true, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| write(seed));
        scope.spawn(|| write(seed + 1));
        scope.spawn(|| read(seed + 2));
        scope.spawn(|| read(seed + 3));
    });
    crate::common::assert_sound(&environment);
}

#[test]
fn statistics_count_each_kind_of_conflict() {
    let (environment, database) = memory_environment();
    let counted = || {
        let numbers = environment.statistics();
        (numbers.write_conflicts, numbers.serialization_failures, numbers.retries)
    };
    put(&environment, &database, b"read", b"0");
    assert_eq!(counted(), (0, 0, 0));
    let late = begin(&environment, Isolation::Serializable);
    assert!(database.exists(&late, b"read").unwrap());
    put(&environment, &database, b"read", b"1");
    // Two calls fail, and so does the commit of the write that succeeds.
    assert!(matches!(database.put(&late, b"read", b"2"), Err(Error::WriteConflict)));
    assert!(matches!(database.delete(&late, b"read"), Err(Error::WriteConflict)));
    database.put(&late, b"other", b"2").unwrap();
    assert!(matches!(late.commit(), Err(Error::SerializationFailure)));
    assert_eq!(counted(), (2, 1, 0));
    let mut runs = 0;
    environment
        .transact(|transaction| {
            runs += 1;
            database.get(transaction, b"read")?;
            if runs < 4 {
                put(&environment, &database, b"read", &[runs]);
            }
            database.put(transaction, b"read", b"own")
        })
        .unwrap();
    assert_eq!(counted(), (5, 1, 3));
    // An error that is not retryable counts as none of these.
    let refused: Result<()> =
        environment.transact(|transaction| database.put(transaction, &[0; 5000], b""));
    assert!(matches!(refused, Err(Error::KeyTooLong { .. })));
    assert_eq!(counted(), (5, 1, 3));
}

#[test]
fn transaction_continues_after_an_interrupted_wait() {
    for isolation in LEVELS {
        let (environment, database) = memory_environment();
        let holder = begin(&environment, isolation);
        database.put(&holder, b"held", b"1").unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let waiting = begin_waiting(&environment, isolation, Duration::from_secs(3_600));
        waiting.interrupt_on(&flag);
        std::thread::scope(|scope| {
            scope.spawn(|| flag.store(true, Ordering::SeqCst));
            let outcome = database.put(&waiting, b"held", b"2");
            assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
        });
        database.put(&waiting, b"free", b"2").unwrap();
        waiting.commit().unwrap();
        // The flag was that transaction's; the thread's next one has none, although it is given the
        // same memory.
        let next = begin_waiting(&environment, isolation, Duration::from_millis(20));
        let outcome = database.put(&next, b"held", b"3");
        assert!(matches!(outcome, Err(Error::LockTimeout { .. })), "{outcome:?}");
        holder.commit().unwrap();
    }
}
