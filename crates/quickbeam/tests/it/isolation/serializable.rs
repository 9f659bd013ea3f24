//! What only the serializable level promises: what was read, also that something was not there, is
//! still so at commit.

use std::ops::Bound;
use std::sync::Barrier;

use crate::common::{Random, begin, memory_environment, put};
use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
use quickbeam::{Database, Environment, Error, Isolation, ReadTransaction, Result, Transaction};

/// Each of two threads takes itself off duty if it sees the other on duty: under serializable one
/// stays.
#[test]
fn serializable_threads_never_write_skew() {
    let seed = crate::common::first_seed();
    println!("seed {seed}");
    let (environment, database) = memory_environment();
    let barrier = Barrier::new(2);
    let leave = |me: &[u8], other: &[u8], wait: bool| -> Result<()> {
        let transaction = begin(&environment, Isolation::Serializable);
        let on_duty = database.exists(&transaction, other)?;
        if wait {
            std::thread::yield_now();
        }
        if on_duty {
            database.delete(&transaction, me)?;
        }
        transaction.commit()
    };
    let work = |me: &[u8], other: &[u8], seed: u64| {
        let mut random = Random::new(seed);
        for round in 0..500 {
            if me == b"a" {
                put(&environment, &database, b"a", b"");
                put(&environment, &database, b"b", b"");
            }
            barrier.wait();
            match leave(me, other, random.chance(50)) {
                Ok(()) => {}
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            barrier.wait();
            let reader = environment.begin_read().unwrap();
            let left = crate::common::records(&database, &reader).unwrap();
            assert!(!left.is_empty(), "round {round}: nobody is on duty");
            barrier.wait();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| work(b"a", b"b", seed));
        scope.spawn(|| work(b"b", b"a", seed + 1));
    });
}

/// Makes `look` in a serializable transaction, then lets another one put `key`; whether the first
/// then fails.
fn phantom(records: &[&[u8]], look: impl Fn(&Database, &Transaction), key: &[u8]) -> bool {
    let (environment, database) = memory_environment();
    for record in records {
        put(&environment, &database, record, b"");
    }
    let transaction = begin(&environment, Isolation::Serializable);
    look(&database, &transaction);
    // Something to commit: only then order matters.
    database.put(&transaction, b"zz result", b"").unwrap();
    put(&environment, &database, key, b"phantom");
    match transaction.commit() {
        Ok(()) => false,
        Err(Error::SerializationFailure) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn absent_keys_are_validated_under_serializable() {
    let records: [&[u8]; 3] = [b"d", b"k", b"p"];
    let seek = |database: &Database, t: &Transaction| {
        assert!(database.cursor(t).unwrap().seek(b"e").unwrap());
    };
    let seek_at_or_before = |database: &Database, t: &Transaction| {
        assert!(database.cursor(t).unwrap().seek_at_or_before(b"j").unwrap());
    };
    let forwards = |database: &Database, t: &Transaction| {
        assert_eq!(crate::common::records(database, t).unwrap().len(), 3);
    };
    let backwards = |database: &Database, t: &Transaction| {
        let mut cursor = database.cursor(t).unwrap();
        while cursor.prev().unwrap() {}
    };
    let past_the_end = |database: &Database, t: &Transaction| {
        assert!(!database.cursor(t).unwrap().seek(b"q").unwrap());
    };
    let absent = |database: &Database, t: &Transaction| {
        assert!(database.get(t, b"g").unwrap().is_none());
        assert!(!database.exists(t, b"h").unwrap());
        assert!(!database.delete(t, b"i").unwrap());
    };
    type Look<'a> = &'a dyn Fn(&Database, &Transaction);
    type Case<'a> = (&'a str, Look<'a>, &'a [&'a [u8]], &'a [&'a [u8]]);
    let cases: [Case<'_>; 6] = [
        ("seek", &seek, &[b"e", b"g", b"jj"], &[b"c", b"dd", b"l"]),
        ("seek_at_or_before", &seek_at_or_before, &[b"dd", b"g", b"j"], &[b"c", b"jj", b"l"]),
        ("forwards", &forwards, &[b"a", b"g", b"q", b"zzzz"], &[]),
        ("backwards", &backwards, &[b"", b"g", b"q", b"zz"], &[]),
        ("past the end", &past_the_end, &[b"q", b"zzzz"], &[b"o", b"d"]),
        ("absent keys", &absent, &[b"g", b"h", b"i"], &[b"f", b"gg", b"j"]),
    ];
    for (name, look, inside, outside) in cases {
        for key in inside {
            assert!(phantom(&records, look, key), "{name}: {key:?} was not noticed");
        }
        for key in outside {
            assert!(!phantom(&records, look, key), "{name}: {key:?} has nothing to do with it");
        }
    }
}

/// A scan over many leaves, with the phantom in any of them, while the tree splits and merges under
/// it.
#[test]
fn phantom_in_any_leaf_is_detected() {
    let seed = crate::common::first_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    for _ in 0..60 {
        let (environment, database) = memory_environment();
        let key = |n: usize| format!("{n:06}").into_bytes();
        let fill = |from: usize, step: usize| {
            let fill = |transaction: &Transaction| {
                let keys = (from..2000).step_by(step);
                keys.into_iter().try_for_each(|n| database.put(transaction, &key(n), &[7; 60]))
            };
            environment.transact(fill).unwrap();
        };
        fill(0, 10);
        // Below the last key: a scan that reaches the end of the tree has read the range after it,
        // too.
        let (low, high) = (random.below(1000), 1000 + random.below(980));
        let transaction = begin(&environment, Isolation::Serializable);
        let mut cursor = database.cursor(&transaction).unwrap();
        let mut found = 0;
        let mut more = cursor.seek(&key(low)).unwrap();
        while more && cursor.key() <= &key(high)[..] {
            found += 1;
            more = cursor.next().unwrap();
        }
        assert_eq!(found, high / 10 + 1 - low.div_ceil(10));
        database.put(&transaction, b"result", b"").unwrap();
        let inside = random.chance(70);
        let at = if inside { low + random.below(high - low) } else { random.below(low.max(1)) };
        let at = at / 10 * 10 + 1;
        if random.chance(50) {
            // Far from what was read, so that pages split but nothing read changes.
            for n in 0..400 {
                put(&environment, &database, format!("other {n}").as_bytes(), &[1; 60]);
            }
        }
        put(&environment, &database, &key(at), b"phantom");
        let failed = matches!(transaction.commit(), Err(Error::SerializationFailure));
        assert_eq!(failed, low <= at && at <= high, "{low}..={high}, phantom at {at}");
    }
}

#[test]
fn wider_second_range_is_validated_whole() {
    for backwards in [false, true] {
        let (environment, database) = memory_environment();
        for key in [b"n", b"z"] {
            put(&environment, &database, key, b"");
        }
        let transaction = begin(&environment, Isolation::Serializable);
        let mut cursor = database.cursor(&transaction).unwrap();
        assert!(
            if backwards { cursor.seek_at_or_before(b"o") } else { cursor.seek(b"m") }.unwrap()
        );
        assert_eq!(cursor.key(), b"n");
        cursor.delete().unwrap();
        assert!(if backwards { cursor.last() } else { cursor.seek(b"a") }.unwrap());
        if backwards {
            assert!(!cursor.prev().unwrap());
        }
        put(&environment, &database, if backwards { b"b" } else { b"y" }, b"phantom");
        assert!(matches!(transaction.commit(), Err(Error::SerializationFailure)));
    }
}

#[test]
fn result_of_an_undone_call_stays_a_read() {
    for delete in [false, true] {
        let (environment, database) = memory_environment();
        put(&environment, &database, b"there", b"");
        let transaction = begin(&environment, Isolation::Serializable);
        let savepoint = transaction.savepoint().unwrap();
        let told = if delete {
            database.delete(&transaction, b"there")
        } else {
            database.put_if_absent(&transaction, b"absent", b"")
        };
        assert!(told.unwrap());
        transaction.rollback_to(savepoint).unwrap();
        database.put(&transaction, b"result", b"").unwrap();
        let other = |other: &Transaction| {
            database.put(other, if delete { b"there" } else { b"absent" }, b"changed")
        };
        environment.transact(other).unwrap();
        assert!(
            matches!(transaction.commit(), Err(Error::SerializationFailure)),
            "delete {delete}"
        );
    }
}

#[test]
fn changed_read_under_an_uncommitted_change_is_detected() {
    let (environment, database) = memory_environment();
    put(&environment, &database, b"read", b"old");
    let reader = begin(&environment, Isolation::Serializable);
    database.get(&reader, b"read").unwrap();
    database.put(&reader, b"result", b"").unwrap();
    put(&environment, &database, b"read", b"new");
    let unfinished = begin(&environment, Isolation::Serializable);
    database.put(&unfinished, b"read", b"newer").unwrap();
    assert!(matches!(reader.commit(), Err(Error::SerializationFailure)));
    unfinished.commit().unwrap();
}

/// Puts records under the numbers below `count`, each with a value of 100 bytes.
fn fill(environment: &Environment, database: &Database, count: u32) {
    for first in (0..count).step_by(1000) {
        let put = |t: &Transaction| {
            let numbers = first..count.min(first + 1000);
            numbers.into_iter().try_for_each(|n| database.put(t, &n.to_be_bytes(), &[7; 100]))
        };
        environment.transact(put).unwrap();
    }
}

/// Reads all records by a scan; how many.
fn scan_all(database: &Database, transaction: &impl ReadTransaction) -> usize {
    let (mut scan, mut batch) =
        (Scan::new(Bound::Unbounded, Bound::Unbounded), ScanBatch::default());
    let mut count = 0;
    while database.scan(transaction, &mut scan, &mut batch).unwrap() {
        count += batch.len();
    }
    count
}

/// Eviction and reloading raise a page's latch version. Validation compared that version, so a
/// transaction that read more than the cache holds could not commit.
#[test]
fn scan_of_four_times_the_cache_commits() {
    let (environment, database) = memory_environment();
    let count = 10_000;
    fill(&environment, &database, count);
    assert!(environment.statistics().evictions > 0, "the records fit in the cache");
    for round in 0..3u32 {
        let transaction = begin(&environment, Isolation::Serializable);
        assert_eq!(scan_all(&database, &transaction), count as usize);
        database.put(&transaction, &(round * 1000).to_be_bytes(), b"changed").unwrap();
        transaction.commit().unwrap();
    }
}

/// The content version survives eviction; a change made before the eviction must still be noticed.
#[test]
fn change_of_an_evicted_page_is_detected() {
    let (environment, database) = memory_environment();
    let count = 10_000;
    fill(&environment, &database, count);
    for changed in [0u32, 17, 5_000, count - 1] {
        let transaction = begin(&environment, Isolation::Serializable);
        assert_eq!(scan_all(&database, &transaction), count as usize);
        database.put(&transaction, b"result", b"").unwrap();
        put(&environment, &database, &changed.to_be_bytes(), b"changed");
        let reader = environment.begin_read().unwrap();
        scan_all(&database, &reader);
        drop(reader);
        assert!(matches!(transaction.commit(), Err(Error::SerializationFailure)), "{changed}");
    }
}

/// A change that was rolled back to a savepoint is none, whether or not its transaction commits
/// first.
#[test]
fn rolled_back_change_is_no_conflict() {
    for commits_first in [false, true] {
        let (environment, database) = memory_environment();
        put(&environment, &database, b"read", b"old");
        let reader = begin(&environment, Isolation::Serializable);
        let other = begin(&environment, Isolation::Serializable);
        let savepoint = other.savepoint().unwrap();
        database.put(&other, b"read", b"new").unwrap();
        assert_eq!(database.get(&reader, b"read").unwrap().as_deref(), Some(&b"old"[..]));
        database.put(&reader, b"result", b"").unwrap();
        other.rollback_to(savepoint).unwrap();
        database.put(&other, b"other", b"").unwrap();
        if commits_first {
            other.commit().unwrap();
        }
        reader.commit().unwrap();
    }
}

/// What was read in a leaf is found again where splits and merges have brought it.
#[test]
fn changed_read_is_detected_after_splits_and_merges() {
    for merges in [false, true] {
        for changed in [None, Some(20u32), Some(1_000)] {
            let (environment, database) = memory_environment();
            fill(&environment, &database, 2_000);
            let transaction = begin(&environment, Isolation::Serializable);
            for n in (0..2_000u32).step_by(20) {
                database.get(&transaction, &n.to_be_bytes()).unwrap();
            }
            assert!(database.cursor(&transaction).unwrap().seek(&995u32.to_be_bytes()).unwrap());
            database.put(&transaction, b"result", b"").unwrap();
            // None of these is read: the keys with a number appended are between the others.
            let change = |t: &Transaction| {
                for n in (0..2_000u32).filter(|n| n % 20 != 0 && *n != 995) {
                    if merges {
                        database.delete(t, &n.to_be_bytes())?;
                    } else {
                        database.put(t, &[&n.to_be_bytes()[..], b"more"].concat(), &[1; 100])?;
                    }
                }
                Ok(())
            };
            environment.transact(change).unwrap();
            if let Some(n) = changed {
                put(&environment, &database, &n.to_be_bytes(), b"changed");
            }
            match transaction.commit() {
                Ok(()) => assert_eq!(changed, None),
                Err(Error::SerializationFailure) => assert!(changed.is_some()),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// A range whose ends are the wrong way round holds no key, and hides none of what is read after
/// it.
#[test]
fn read_after_an_empty_range_is_validated() {
    for changed in [&b"d"[..], b"f", b"n"] {
        let (environment, database) = memory_environment();
        for key in [b"c", b"p"] {
            put(&environment, &database, key, b"");
        }
        let transaction = begin(&environment, Isolation::Serializable);
        let (low, high) = (Bound::Included(&b"p"[..]), Bound::Included(&b"c"[..]));
        let (mut scan, mut batch) = (Scan::new(low, high), ScanBatch::default());
        assert!(!database.scan(&transaction, &mut scan, &mut batch).unwrap());
        let mut scan = Scan::new(high, low);
        assert!(database.scan(&transaction, &mut scan, &mut batch).unwrap());
        assert_eq!(batch.len(), 2);
        database.put(&transaction, b"result", b"").unwrap();
        put(&environment, &database, changed, b"phantom");
        assert!(matches!(transaction.commit(), Err(Error::SerializationFailure)));
    }
}
