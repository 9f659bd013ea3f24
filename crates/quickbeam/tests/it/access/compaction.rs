//! Compaction: how much space comes back, and that records, readers and writers do not notice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Random, Records, assert_same, assert_sound, contents, records};
use quickbeam::{AccessMethod, DataStore, Database, Durability, Environment, Options, Transaction};

/// Records in the environments that are measured.
const RECORDS: usize = 12_000;

fn options() -> Options {
    Options::new()
        .page_size(4096)
        .cache_size(4096 * 512)
        .log_segment_size(1 << 20)
        .durability(Durability::NoSync)
}

/// A key, in order of `number`, or in random order.
fn key(number: usize, in_order: bool) -> Vec<u8> {
    let number = number as u64;
    let spread = if in_order { number } else { number.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
    let mut key = spread.to_be_bytes().to_vec();
    key.extend(b"tail");
    key
}

fn transact(environment: &Environment, work: impl Fn(&Transaction) -> quickbeam::Result<()>) {
    environment.transact(work).unwrap();
}

/// Puts all records, in transactions of a thousand.
fn fill(environment: &Environment, database: &Database, in_order: bool) {
    for first in (0..RECORDS).step_by(1000) {
        transact(environment, |transaction| {
            (first..first + 1000).try_for_each(|number| {
                database.put(transaction, &key(number, in_order), &[number as u8; 90])
            })
        });
    }
}

/// Deletes each record with a chance of a half.
fn delete_half(environment: &Environment, database: &Database, in_order: bool) {
    for first in (0..RECORDS).step_by(1000) {
        transact(environment, |transaction| {
            let mut random = Random::new(first as u64 + 1);
            for number in (first..first + 1000).filter(|_| random.below(2) == 0) {
                database.delete(transaction, &key(number, in_order))?;
            }
            Ok(())
        });
    }
}

fn all(environment: &Environment, database: &Database) -> Records {
    records(database, &environment.begin_read().unwrap()).unwrap()
}

/// The share of the file that compaction leaves after half of all records were deleted.
fn share_left(method: AccessMethod, in_order: bool) -> f64 {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::open(directory.path(), options()).unwrap();
    let database = environment.create_database_with("data", method).unwrap();
    fill(&environment, &database, in_order);
    // What use there is without any deletion, as compact as after a load.
    environment.checkpoint().unwrap();
    environment.checkpoint().unwrap();
    let before = environment.statistics();
    delete_half(&environment, &database, in_order);
    let expected = all(&environment, &database);
    let report = environment.compact().unwrap();
    let after = environment.statistics();
    assert_eq!(report.bytes_after, after.data_file_bytes);
    assert_same(&all(&environment, &database), &expected, "after compaction");
    assert_sound(&environment);
    let used = after.data_used_bytes as f64 / before.data_used_bytes as f64;
    println!("{method}, in order {in_order}: {used:.3} of the blocks, {report:?}");
    assert!(used < 0.65, "{used}");
    environment.close().unwrap();
    let again = Environment::open(directory.path(), options()).unwrap();
    let database = again.open_database("data").unwrap();
    assert_same(&all(&again, &database), &expected, "after opening again");
    after.data_file_bytes as f64 / before.data_file_bytes as f64
}

#[test]
fn compaction_returns_space_of_half_the_records() {
    for (method, in_order) in
        [(AccessMethod::BTree, true), (AccessMethod::BTree, false), (AccessMethod::Hash, false)]
    {
        let share = share_left(method, in_order);
        assert!(share < 0.65, "{method}, in order {in_order}: {share} of the file is left");
    }
}

#[test]
fn second_compaction_finds_nothing_to_do() {
    let environment = Environment::open_in_memory(options()).unwrap();
    let database = environment.create_database("data").unwrap();
    fill(&environment, &database, false);
    delete_half(&environment, &database, false);
    let first = environment.compact().unwrap();
    assert!(first.merged_pages > 100, "{first:?}");
    assert!(first.moved_pages > 100, "{first:?}");
    let second = environment.compact().unwrap();
    assert!(second.merged_pages <= first.merged_pages / 20, "{second:?}");
    assert!(second.bytes_after <= first.bytes_after, "{first:?} {second:?}");
}

#[test]
fn long_values_move_and_stay_whole() {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::open(directory.path(), options()).unwrap();
    let database = environment.create_database("data").unwrap();
    let value = |number: usize| vec![number as u8; 3000 + number * 37 % 40_000];
    for number in 0..400 {
        transact(&environment, |t| database.put(t, &key(number, true), &value(number)));
    }
    environment.checkpoint().unwrap();
    for number in (0..400).filter(|number| number % 3 != 0) {
        transact(&environment, |t| database.delete(t, &key(number, true)).map(|_| ()));
    }
    let report = environment.compact().unwrap();
    assert!(report.moved_pages > 100, "{report:?}");
    assert!(report.bytes_after * 2 < report.bytes_before, "{report:?}");
    let expected: Records =
        (0..400).step_by(3).map(|number| (key(number, true), value(number))).collect();
    assert_same(&all(&environment, &database), &expected, "long values");
    assert_sound(&environment);
}

/// A snapshot taken before the deletion reads all records during and after the compaction.
#[test]
fn old_snapshot_reads_through_a_compaction() {
    let environment = Environment::open_in_memory(options()).unwrap();
    let database = environment.create_database("data").unwrap();
    fill(&environment, &database, false);
    let snapshot = environment.begin_read().unwrap();
    let before = records(&database, &snapshot).unwrap();
    delete_half(&environment, &database, false);
    environment.compact().unwrap();
    assert_same(&records(&database, &snapshot).unwrap(), &before, "the old snapshot");
    drop(snapshot);
    environment.compact().unwrap();
    assert!(all(&environment, &database).len() < before.len() * 6 / 10);
    assert_sound(&environment);
}

/// Writers add to counters and scans sum them up while the environment is compacted repeatedly.
#[test]
fn compaction_disturbs_neither_readers_nor_writers() {
    const COUNTERS: usize = 2000;
    let environment = Environment::open_in_memory(options().cache_size(4096 * 128)).unwrap();
    let database = environment.create_database("data").unwrap();
    let counter = |value: &[u8]| u64::from_be_bytes(*value.first_chunk().unwrap());
    let put = |t: &Transaction, number: usize, count: u64| {
        let mut value = count.to_be_bytes().to_vec();
        value.resize(8 + number * 13 % 300, 0);
        database.put(t, &key(number, true), &value)
    };
    transact(&environment, |t| (0..COUNTERS).try_for_each(|number| put(t, number, 0)));
    let stop = AtomicBool::new(false);
    let added = std::thread::scope(|scope| {
        let write = |seed: u64| {
            let (environment, database, stop) = (&environment, &database, &stop);
            move || {
                let mut random = Random::new(seed);
                let mut added = 0;
                while !stop.load(Ordering::Relaxed) {
                    let (number, gap) = (random.below(COUNTERS), random.below(COUNTERS));
                    transact(environment, |t| {
                        let old = database.get(t, &key(number, true))?.unwrap();
                        put(t, number, counter(&old) + 1)?;
                        // Makes leaves sparse and full in turn.
                        database.put(t, &key(COUNTERS + gap, true), &[7; 200])?;
                        database.delete(t, &key(COUNTERS + (gap * 7) % COUNTERS, true)).map(|_| ())
                    });
                    added += 1;
                }
                added
            }
        };
        let writers = [scope.spawn(write(1)), scope.spawn(write(2))];
        let reader = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let snapshot = environment.begin_read().unwrap();
                let found = database.range(&snapshot, ..key(COUNTERS, true)).count();
                assert_eq!(found, COUNTERS);
            }
        });
        for _ in 0..20 {
            environment.compact().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum::<u64>()
    });
    let counters = all(&environment, &database);
    let sum: u64 = (0..COUNTERS).map(|number| counter(&counters[&key(number, true)])).sum();
    assert_eq!(sum, added);
    assert_sound(&environment);
}

/// The file is large beside the free mebibyte that checkpoints leave at its end, and half of the
/// records are gone before background compaction begins.
#[test]
fn background_compaction_returns_space() {
    const LARGE: [u8; 360] = [3; 360];
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::open(directory.path(), options()).unwrap();
    let database = environment.create_database("data").unwrap();
    for first in (0..RECORDS * 2).step_by(1000) {
        transact(&environment, |t| {
            (first..first + 1000)
                .try_for_each(|number| database.put(t, &key(number, false), &LARGE))
        });
    }
    environment.checkpoint().unwrap();
    let before = environment.statistics().data_file_bytes;
    for first in (1..RECORDS * 2).step_by(1000) {
        transact(&environment, |t| {
            (first..first + 1000)
                .step_by(2)
                .try_for_each(|number| database.delete(t, &key(number, false)).map(|_| ()))
        });
    }
    let expected = all(&environment, &database);
    environment.close().unwrap();

    let options = options()
        .compaction_rate(1 << 30)
        .checkpoint_bytes(u64::MAX)
        .checkpoint_interval(Duration::from_millis(20));
    let environment = Environment::open(directory.path(), options).unwrap();
    let database = environment.open_database("data").unwrap();
    let mut rounds = 0;
    while environment.statistics().data_file_bytes * 100 > before * 85 {
        rounds += 1;
        assert!(rounds < 10_000, "nothing was compacted: {before}, {:?}", environment.statistics());
        transact(&environment, |t| database.put(t, &key(0, false), &LARGE));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_same(&all(&environment, &database), &expected, "after background compaction");
    assert_sound(&environment);
    environment.close().unwrap();
}

#[test]
fn closing_ends_a_compaction() {
    let directory = tempfile::tempdir().unwrap();
    for turn in 0..5 {
        let environment = Environment::open(directory.path(), options()).unwrap();
        let database = environment.open_or_create_database("data").unwrap();
        fill(&environment, &database, false);
        delete_half(&environment, &database, false);
        let other = environment.clone();
        let compaction = std::thread::spawn(move || other.compact());
        std::thread::sleep(Duration::from_millis(turn * 30));
        environment.close().unwrap();
        // The directory is free: nothing of the compaction follows.
        let again = Environment::open(directory.path(), options()).unwrap();
        if let Err(error) = compaction.join().unwrap() {
            assert!(error.to_string().contains("closed"), "{error}");
        }
        assert_sound(&again);
        assert_eq!(contents(&again).unwrap().len(), 1);
        again.close().unwrap();
    }
}

#[test]
fn data_store_gives_space_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = DataStore::open(directory.path(), options()).unwrap();
    let data = store.create_database("data").unwrap();
    for number in 0..RECORDS {
        store.put(data, &key(number, false), &[number as u8; 90]).unwrap();
    }
    store.sync().unwrap();
    store.sync().unwrap();
    let before = store.statistics();
    for number in (0..RECORDS).filter(|number| number * number % 7 % 2 == 0) {
        store.delete(data, &key(number, false)).unwrap();
    }
    let report = store.compact().unwrap();
    let after = store.statistics();
    assert_eq!(report.bytes_after, after.data_file_bytes);
    let expected: Vec<usize> = (0..RECORDS).filter(|number| number * number % 7 % 2 != 0).collect();
    let share = expected.len() as f64 / RECORDS as f64;
    let left = after.data_file_bytes as f64 / before.data_file_bytes as f64;
    assert!(left < share + 0.15, "{share} of the records, {left} of the file");
    for number in expected {
        let value = store.get(data, &key(number, false)).unwrap();
        assert_eq!(value.as_deref(), Some(&[number as u8; 90][..]));
    }
    assert_eq!(store.verify().unwrap().complaints, Vec::<String>::new());
    store.close().unwrap();
}
