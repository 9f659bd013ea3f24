//! Faults that were found once. Each test says what went wrong.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use quickbeam::{
    Durability, Environment, Error, Isolation, Options, Transaction, TransactionOptions,
};
use quickbeam_testing::Random;

fn small_segments(durability: Durability) -> Options {
    Options::new().log_segment_size(256 << 10).durability(durability)
}

/// A record that filled its segment to the last byte was followed by one that overwrote the next
/// segment's header.
#[test]
fn record_that_ends_at_a_segment_end_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let copy = tempfile::tempdir().unwrap();
    // No checkpoint is made while the files are copied.
    let options = small_segments(Durability::WriteNoSync)
        .checkpoint_bytes(u64::MAX)
        .checkpoint_interval(Duration::MAX);
    let environment = Environment::open(directory.path(), options).unwrap();
    let database = environment.create_database("records").unwrap();
    // Records of 8-byte multiples of every size: many segments end exactly with one.
    let count = 20_000u32;
    for i in 0..count {
        environment
            .transact(|t| database.put(t, &(i % 50).to_be_bytes(), &i.to_be_bytes()))
            .unwrap();
    }
    crate::common::files::copy_environment(directory.path(), copy.path()).unwrap();
    let copied = Environment::open(copy.path(), small_segments(Durability::WriteNoSync)).unwrap();
    let database = copied.open_database("records").unwrap();
    let last = database.get(&copied.begin_read().unwrap(), &((count - 1) % 50).to_be_bytes());
    assert_eq!(last.unwrap().as_deref(), Some(&(count - 1).to_be_bytes()[..]));
}

/// The longest key in the largest pages was stored with length zero.
#[test]
fn longest_key_is_found() {
    for page_size in [4096, 8192, 16384, 32768, 65536] {
        let options = Options::new().page_size(page_size);
        let environment = Environment::open_in_memory(options).unwrap();
        let database = environment.create_database("records").unwrap();
        let transaction = environment.begin().unwrap();
        let limit = match database.put(&transaction, &vec![1; 65536], b"") {
            Err(Error::KeyTooLong(told)) => told.limit,
            other => panic!("{other:?}"),
        };
        assert!(limit + 1 >= page_size / 4, "a quarter of the page, or all that a slot can say");
        for last in 0..9 {
            let mut key = vec![7; limit];
            key[limit - 1] = last;
            database.put(&transaction, &key, &[last]).unwrap();
        }
        for last in 0..9 {
            let mut key = vec![7; limit];
            key[limit - 1] = last;
            assert_eq!(database.get(&transaction, &key).unwrap(), Some(vec![last]));
        }
        transaction.commit().unwrap();
        assert_eq!(environment.verify().unwrap().complaints, Vec::<String>::new());
    }
}

/// A savepoint that had been undone, or was another transaction's, was accepted and cut the log
/// record in half.
#[test]
fn stale_savepoint_is_refused() {
    let environment = Environment::open_in_memory(Options::default()).unwrap();
    let database = environment.create_database("records").unwrap();
    let transaction = environment.begin().unwrap();
    let first = transaction.savepoint().unwrap();
    database.put(&transaction, b"a", b"1").unwrap();
    let second = transaction.savepoint().unwrap();
    transaction.rollback_to(first).unwrap();
    database.put(&transaction, b"a", b"a longer value").unwrap();
    assert!(matches!(transaction.rollback_to(second), Err(Error::Misuse { .. })));
    assert_eq!(database.get(&transaction, b"a").unwrap().as_deref(), Some(&b"a longer value"[..]));
    transaction.rollback_to(first).unwrap();
    transaction.commit().unwrap();
    let transaction = environment.begin().unwrap();
    assert!(matches!(transaction.rollback_to(first), Err(Error::Misuse { .. })));
}

/// A transaction that began while the environment closed could commit after the last checkpoint and
/// be lost.
#[test]
fn commit_beside_close_is_kept_or_refused() {
    for _ in 0..60 {
        let directory = tempfile::tempdir().unwrap();
        let options = small_segments(Durability::WriteNoSync);
        let environment = Environment::open(directory.path(), options.clone()).unwrap();
        let database = environment.create_database("records").unwrap();
        let (acknowledged, started) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (other, database) = (environment.clone(), database.clone());
            let (acknowledged, started) = (&acknowledged, &started);
            scope.spawn(move || {
                for i in 1u64.. {
                    let done = other.transact(|t| database.put(t, b"last", &i.to_be_bytes()));
                    started.store(true, Ordering::SeqCst);
                    if done.is_err() {
                        return;
                    }
                    acknowledged.store(i, Ordering::SeqCst);
                }
            });
            while !started.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            while environment.clone().close().is_err() {}
        });
        drop(environment);
        let environment = Environment::open(directory.path(), options).unwrap();
        let database = environment.open_database("records").unwrap();
        let last = database.get(&environment.begin_read().unwrap(), b"last").unwrap();
        let last = last.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
        assert!(last >= acknowledged.load(Ordering::SeqCst), "an acknowledged commit is lost");
    }
}

/// A full leaf without space for the fence that a split adds was split after its first record,
/// repeatedly.
#[test]
fn ordered_inserts_leave_full_leaves() {
    for length in 0..48 {
        let environment = Environment::open_in_memory(Options::new().page_size(4096)).unwrap();
        let database = environment.create_database("data").unwrap();
        let fill = |transaction: &Transaction| {
            (0..1500u32).try_for_each(|n| {
                database.put(transaction, &(n | 1 << 31).to_be_bytes(), &vec![1; length])
            })
        };
        environment.transact(fill).unwrap();
        let report = environment.verify().unwrap();
        assert_eq!(report.complaints, Vec::<String>::new());
        assert!(report.leaf_fill > 0.8, "values of {length} bytes: {}", report.leaf_fill);
    }
}

/// The last leaf has no upper fence, so no prefix: what was cut off it with keys at full length was
/// half empty from then on.
#[test]
fn ordered_inserts_of_long_keys_leave_full_leaves() {
    for (gaps, least) in [([1, 1, 1], 0.85), ([3, 3, 3], 0.85), ([1, 20, 400], 0.6)] {
        let environment = Environment::open_in_memory(Options::default()).unwrap();
        let database = environment.create_database("records").unwrap();
        let mut number = 0u64;
        for batch in 0..300 {
            environment
                .transact(|t| {
                    (0..30).try_for_each(|n| {
                        number += gaps[(batch * 30 + n) * 7 % 11 % 3];
                        let mut key = [0; 64];
                        key[56..].copy_from_slice(&number.to_be_bytes());
                        database.put(t, &key, &[1; 64])
                    })
                })
                .unwrap();
        }
        let report = environment.verify().unwrap();
        assert!(report.complaints.is_empty(), "{:?}", report.complaints);
        assert!(report.leaf_fill > least, "{gaps:?} apart: {}", report.leaf_fill);
    }
}

/// Opens an environment whose cache of `pages` pages of 4096 bytes was full once.
fn open_with_full_cache(directory: &Path, pages: usize) -> Environment {
    let options = Options::new().page_size(4096).cache_size(pages * 4096);
    let environment = Environment::open(directory, options.durability(Durability::NoSync)).unwrap();
    let ballast = environment.create_database("ballast").unwrap();
    for batch in 0..pages.div_ceil(16) as u32 {
        let fill = |transaction: &Transaction| {
            (batch * 64..batch * 64 + 64)
                .try_for_each(|n| ballast.put(transaction, &n.to_be_bytes(), &[0; 1000]))
        };
        environment.transact(fill).unwrap();
    }
    environment
}

/// Splits alone leave leaves 69 % full if keys arrive in random order.
#[test]
fn random_inserts_share_records_with_neighbors() {
    for (length, descending) in [(8, false), (8, true), (100, false), (400, false)] {
        let directory = tempfile::tempdir().unwrap();
        let environment = open_with_full_cache(directory.path(), 2048);
        environment.drop_database("ballast").unwrap();
        let database = environment.create_database("data").unwrap();
        let key = |n: u32| {
            let mixed = n.wrapping_mul(0x9e37_79b1).rotate_left(11).wrapping_mul(0x85eb_ca6b);
            // Groups of keys that arrive in descending order, between those of other groups.
            let place = if descending { (mixed >> 20) << 20 | (!n & 0xf_ffff) } else { mixed };
            place.to_be_bytes()
        };
        for batch in 0..100 {
            let fill = |transaction: &Transaction| {
                (batch * 100..batch * 100 + 100)
                    .try_for_each(|n| database.put(transaction, &key(n), &vec![1; length]))
            };
            environment.transact(fill).unwrap();
        }
        let report = environment.verify().unwrap();
        assert_eq!(report.complaints, Vec::<String>::new());
        assert!(report.leaf_fill > 0.72, "values of {length} bytes: {}", report.leaf_fill);
    }
}

/// When a record after a full leaf was inserted and deleted repeatedly, the leaf was merged with
/// the empty one after it and split again each time.
#[test]
fn inserts_and_deletes_at_the_end_move_no_other_records() {
    let environment = Environment::open_in_memory(Options::new().page_size(4096)).unwrap();
    let database = environment.create_database("data").unwrap();
    let put = |number: u64| {
        environment.transact(|t| database.put(t, &number.to_be_bytes(), &[7; 100])).unwrap();
    };
    let delete = |number: u64| {
        assert!(environment.transact(|t| database.delete(t, &number.to_be_bytes())).unwrap());
    };
    let pages = || environment.statistics().cache_used;
    let mut leaves = 0;
    for number in 0..600 {
        let before = pages();
        put(number);
        leaves += usize::from(pages() > before);
        let with_it = pages();
        for _ in 0..3 {
            delete(number);
            assert_eq!(pages(), with_it, "without record {number}");
            put(number);
            assert_eq!(pages(), with_it, "with record {number}");
        }
    }
    assert!(leaves > 8, "the tree became {leaves} pages larger");
    // Pages are given back all the same where records go and do not come again.
    let full = pages();
    (0..600).rev().for_each(delete);
    assert!(pages() * 4 < full, "{} of {full} bytes are in use", pages());
}

/// A dropped tree was freed together with the chain of a read committed transaction that had not
/// ended. At the end of that transaction its chains were freed a second time, when their pages
/// could already hold another live value.
#[test]
fn dropped_tree_is_freed_after_its_writers_end() {
    for (empty, savepoint) in [(false, false), (true, false), (false, true), (true, true)] {
        let environment = Environment::open_in_memory(Options::new().page_size(4096)).unwrap();
        let dropped = environment.create_database("dropped").unwrap();
        let kept = environment.create_database("kept").unwrap();
        let put = |key: &[u8], value: &[u8]| {
            environment.transact(|t| kept.put(t, key, value)).unwrap();
        };
        environment.transact(|t| dropped.put(t, b"old", &[1; 40_000])).unwrap();
        put(b"a", b"1");

        let dropper = environment.begin().unwrap();
        if empty {
            dropper.clear_database("dropped").unwrap();
        } else {
            dropper.drop_database("dropped").unwrap();
        }
        let isolation = Some(Isolation::ReadCommitted);
        let writer =
            environment.begin_with(TransactionOptions::new().isolation(isolation)).unwrap();
        dropped.put(&writer, b"key", &[7; 40_000]).unwrap();
        if savepoint {
            let before = writer.savepoint().unwrap();
            dropped.put(&writer, b"undone", &[8; 40_000]).unwrap();
            writer.rollback_to(before).unwrap();
        }
        dropper.commit().unwrap();
        // The call moves the writer's snapshot past the drop, the checkpoint frees whatever may be
        // freed.
        assert_eq!(kept.get(&writer, b"a").unwrap().as_deref(), Some(&b"1"[..]));
        put(b"b", b"2");
        environment.checkpoint().unwrap();
        put(b"long", &[9; 40_000]);

        assert!(writer.commit().is_err(), "the database was dropped meanwhile");
        put(b"more", &[5; 40_000]);
        let reader = environment.begin_read().unwrap();
        assert_eq!(kept.get(&reader, b"long").unwrap().as_deref(), Some(&[9; 40_000][..]));
        drop(reader);
        // Ten pages for each of two long values, and leaves: the tree goes. The background thread
        // may be freeing it just now.
        let is_freed = (0..1000).any(|_| {
            environment.checkpoint().unwrap();
            let report = environment.verify().unwrap();
            assert_eq!(report.complaints, Vec::<String>::new());
            report.pages < 30
        });
        assert!(is_freed, "the dropped tree's pages are still in use");
    }
}

/// A full leaf gave the records of the next prefix to its neighbor. Its own records then were
/// shorter, and those of the neighbor, which became full, were to go back: an endless exchange.
#[test]
fn leaves_between_two_prefixes_keep_their_records() {
    for seed in 0..100 {
        let directory = tempfile::tempdir().unwrap();
        let environment = open_with_full_cache(directory.path(), 64);
        let database = environment.create_database("records").unwrap();
        let mut random = Random::new(seed);
        let (prefix_length, prefixes, longer) =
            (4 + 8 * random.below(3), 2 + random.below(6), random.below(3) * 8);
        let transaction = environment.begin().unwrap();
        let mut count = 0;
        for _ in 0..2000 {
            let mut key = vec![0; prefix_length];
            key[prefix_length - 1] = random.below(prefixes) as u8;
            key.extend(random.next().to_be_bytes());
            let value = vec![0; 8 + random.below(2) * longer];
            count += usize::from(database.put_if_absent(&transaction, &key, &value).unwrap());
        }
        transaction.commit().unwrap();
        let reader = environment.begin_read().unwrap();
        assert_eq!(crate::common::records(&database, &reader).unwrap().len(), count);
    }
}
