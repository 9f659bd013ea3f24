//! Threads that split, merge, evict, scan and checkpoint the same tree at once, in a cache far too
//! small for it.
//!
//! Each writer has keys of its own, spread among the others' so that they share leaves. It keeps a
//! sum of its records in another record, changed in the same transaction. Every scan finds the sums
//! right. At the end each writer's records are those that it expects, in the environment and in a
//! reopened copy of its files. Seeds are printed; `QUICKBEAM_LATCH` multiplies the number of
//! transactions.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::common::faulty::FaultyVfs;
use crate::common::{Random, Records, assert_same, contents, open_files, place, small_options};
use quickbeam::{
    Database, Durability, Environment, Error, Isolation, Options, Result, Transaction,
};

const WRITERS: usize = 4;

struct Stage {
    environment: Environment,
    database: Database,
    /// Writers that have not ended.
    writing: AtomicUsize,
    conflicts: AtomicU64,
    scans: AtomicU64,
}

/// How the work is mixed.
#[derive(Clone, Copy)]
struct Mix {
    transactions: usize,
    longest_key: usize,
    longest_value: usize,
    /// Transactions after which a writer removes most of its records, so that pages merge.
    clear: usize,
}

fn fingerprint(key: &[u8], value: &[u8]) -> u64 {
    let mix = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    key.iter().chain(value).fold(0xcbf2_9ce4_8422_2325, mix)
}

/// The sum over a writer's records. Its key is greater than all others.
fn sum_of(records: &Records) -> u64 {
    records.iter().fold(0, |sum, (key, value)| sum.wrapping_add(fingerprint(key, value)))
}

fn sum_key(writer: usize) -> Vec<u8> {
    vec![0xff, writer as u8]
}

/// A key of that writer: its number follows bytes that all writers share.
fn random_key(random: &mut Random, writer: usize, mix: Mix) -> Vec<u8> {
    let mut key = format!("{:05}", random.below(700)).into_bytes();
    let length = 6 + key[4] as usize * 37 % mix.longest_key;
    key.resize(length, key[3]);
    key.push(writer as u8);
    key
}

/// Whose record that is, unless it is a sum.
fn writer_of(key: &[u8]) -> Option<usize> {
    (key[0] != 0xff).then(|| usize::from(*key.last().unwrap()))
}

impl Stage {
    fn new(environment: Environment) -> Stage {
        let database = environment.create_database("data").unwrap();
        let writing = AtomicUsize::new(WRITERS);
        Stage {
            environment,
            database,
            writing,
            conflicts: AtomicU64::new(0),
            scans: AtomicU64::new(0),
        }
    }

    /// A transaction's changes, made in the records as well.
    fn change(
        &self,
        random: &mut Random,
        transaction: &Transaction,
        writer: usize,
        own: &mut Records,
        mix: Mix,
        clear: bool,
    ) -> Result<()> {
        let database = &self.database;
        if clear {
            let keys: Vec<_> = own.keys().filter(|_| random.chance(85)).cloned().collect();
            for key in keys {
                assert!(database.delete(transaction, &key)?, "own record {key:?} is gone");
                own.remove(&key);
            }
        }
        for _ in 0..random.below(16) {
            let key = random_key(random, writer, mix);
            match random.below(10) {
                0..6 => {
                    let longest = if random.chance(90) { 200 } else { mix.longest_value };
                    let value = vec![random.next() as u8; random.below(longest)];
                    database.put(transaction, &key, &value)?;
                    own.insert(key, value);
                }
                6..8 => {
                    let deleted = database.delete(transaction, &key)?;
                    assert_eq!(deleted, own.remove(&key).is_some(), "{key:?}");
                }
                8 => {
                    let found = database.get(transaction, &key)?;
                    assert!(found.as_ref() == own.get(&key), "own record {key:?} differs");
                }
                _ => {
                    // Through a cursor to the writer's next record from here, on or back.
                    let mut cursor = database.cursor(transaction)?;
                    let mut more = cursor.seek(&key)?;
                    while more && writer_of(cursor.key()).is_some_and(|other| other != writer) {
                        more = cursor.next()?;
                    }
                    let expected = own.range(key..).next();
                    let found = more && writer_of(cursor.key()).is_some();
                    assert_eq!(found, expected.is_some());
                    if let Some((key, value)) = expected {
                        assert!(cursor.key() == key && cursor.value() == value, "at {key:?}");
                    }
                }
            }
        }
        database.put(transaction, &sum_key(writer), &sum_of(own).to_le_bytes())
    }

    /// What a writer thread does; what it has at the end.
    fn write(&self, seed: u64, writer: usize, mix: Mix) -> Records {
        let mut random = Random::new(seed);
        let mut own = Records::new();
        let mut round = 0;
        while round < mix.transactions * crate::common::rounds("QUICKBEAM_LATCH", 1) {
            let mut state = own.clone();
            let clear = mix.clear > 0 && round % mix.clear == mix.clear - 1;
            let transaction = self.environment.begin().unwrap();
            let mut done = self.change(&mut random, &transaction, writer, &mut state, mix, clear);
            if done.is_ok() && random.chance(20) {
                let savepoint = transaction.savepoint().unwrap();
                let mut lost = state.clone();
                done = self.change(&mut random, &transaction, writer, &mut lost, mix, false);
                transaction.rollback_to(savepoint).unwrap();
            }
            let commits = random.chance(90);
            let done = match done {
                Ok(()) if commits => transaction.commit(),
                other => transaction.abort().and(other),
            };
            match done {
                Ok(()) if commits => own = state,
                Ok(()) => {}
                // Scans through leaves of others may have to give way.
                Err(error) if error.is_retryable() => {
                    self.conflicts.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Err(error) => panic!("seed {seed}: {error}"),
            }
            round += 1;
        }
        self.writing.fetch_sub(1, Ordering::SeqCst);
        own
    }

    /// Scans the whole tree, forwards and backwards in turn, until the writers have ended.
    fn scan(&self, seed: u64) {
        let mut random = Random::new(seed);
        while self.writing.load(Ordering::SeqCst) > 0 {
            let reader = self.environment.begin_read().unwrap();
            let mut cursor = self.database.cursor(&reader).unwrap();
            let forwards = random.chance(50);
            let mut sums = [0u64; WRITERS];
            let mut kept = [0u64; WRITERS];
            let mut before: Option<Vec<u8>> = None;
            while if forwards { cursor.next() } else { cursor.prev() }.unwrap() {
                let (key, value) = (cursor.key(), cursor.value());
                let ordered = before.as_ref().is_none_or(|before| (&before[..] < key) == forwards);
                assert!(ordered, "seed {seed}: {key:?} after {before:?}");
                match writer_of(key) {
                    Some(writer) => {
                        sums[writer] = sums[writer].wrapping_add(fingerprint(key, value));
                    }
                    None => {
                        kept[usize::from(key[1])] = u64::from_le_bytes(value.try_into().unwrap())
                    }
                }
                before = Some(key.to_vec());
            }
            assert_eq!(sums, kept, "seed {seed}: records and their sums differ");
            self.scans.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All threads at once; what the writers have in the end.
    fn run(&self, seed: u64, mix: Mix, checkpoints: bool) -> Records {
        let failed = AtomicBool::new(false);
        let all = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| scope.spawn(move || self.write(seed + writer as u64, writer, mix)))
                .collect();
            scope.spawn(|| self.scan(seed + 100));
            scope.spawn(|| self.scan(seed + 101));
            scope.spawn(|| {
                while checkpoints && self.writing.load(Ordering::SeqCst) > 0 {
                    self.environment.checkpoint().unwrap();
                    let report = self.environment.verify().unwrap();
                    assert_eq!(report.complaints, Vec::<String>::new(), "seed {seed}");
                }
            });
            let mut all = Records::new();
            for (writer, handle) in writers.into_iter().enumerate() {
                let Ok(own) = handle.join() else {
                    failed.store(true, Ordering::SeqCst);
                    self.writing.store(0, Ordering::SeqCst);
                    continue;
                };
                all.insert(sum_key(writer), sum_of(&own).to_le_bytes().to_vec());
                all.extend(own);
            }
            all
        });
        assert!(!failed.load(Ordering::SeqCst), "seed {seed}: a writer failed");
        let reader = self.environment.begin_read().unwrap();
        let found = crate::common::records(&self.database, &reader).unwrap();
        assert_same(&found, &all, &format!("seed {seed}"));
        drop(reader);
        let report = self.environment.verify().unwrap();
        assert_eq!(report.complaints, Vec::<String>::new(), "seed {seed}");
        println!(
            "seed {seed}: {} conflicts, {} scans, {} evictions, {} checkpoints",
            self.conflicts.load(Ordering::Relaxed),
            self.scans.load(Ordering::Relaxed),
            self.environment.statistics().evictions,
            self.environment.statistics().checkpoints
        );
        all
    }
}

const SHORT: Mix = Mix { transactions: 400, longest_key: 20, longest_value: 900, clear: 40 };
const LONG: Mix = Mix { transactions: 250, longest_key: 700, longest_value: 15_000, clear: 60 };

fn tiny(durability: Durability) -> Options {
    let isolation = Isolation::Snapshot;
    small_options().cache_size(4096 * 72).durability(durability).isolation(isolation)
}

#[test]
fn latch_load_in_memory_keeps_all_records() {
    let mut evictions = 0;
    for mix in [SHORT, LONG] {
        let stage = Stage::new(Environment::open_in_memory(tiny(Durability::InMemory)).unwrap());
        stage.run(crate::common::first_seed(), mix, false);
        evictions += stage.environment.statistics().evictions;
    }
    assert!(evictions > 100);
}

#[test]
fn latch_load_with_checkpoints_keeps_all_records() {
    let mut evictions = 0;
    for (mix, durability) in [(SHORT, Durability::Sync), (LONG, Durability::WriteNoSync)] {
        let options = tiny(durability);
        let vfs = FaultyVfs::in_memory();
        let opened = Environment::open_in(vfs.clone(), Some(place()), options.clone());
        let stage = Stage::new(opened.unwrap());
        let all = stage.run(crate::common::first_seed(), mix, true);
        evictions += stage.environment.statistics().evictions;
        assert!(stage.environment.statistics().checkpoints > 3);
        let copy = open_files(&vfs.files(place()), &options).unwrap();
        assert_same(&contents(&copy).unwrap()["data"], &all, "crashed");
        crate::common::assert_sound(&copy);
    }
    // Of both: how many pages short records fill depends on the seed.
    assert!(evictions > 100);
}

#[test]
fn latch_load_in_files_keeps_all_records() {
    let directory = tempfile::tempdir().unwrap();
    let options = tiny(Durability::NoSync).isolation(Isolation::Serializable);
    let stage = Stage::new(Environment::open(directory.path(), options.clone()).unwrap());
    let all = stage.run(crate::common::first_seed(), SHORT, true);
    drop(stage);
    let again = Environment::open(directory.path(), options).unwrap();
    assert_same(&contents(&again).unwrap()["data"], &all, "closed and opened");
    crate::common::assert_sound(&again);
}

/// All writers change the same few records: waiting, deadlocks and rolling back, with every change
/// accounted for.
#[test]
fn many_threads_on_few_records_lose_no_update() {
    let seed = crate::common::first_seed();
    println!("seed {seed}");
    let options = tiny(Durability::InMemory).isolation(Isolation::Serializable);
    let environment = Environment::open_in_memory(options).unwrap();
    let database = environment.create_database("data").unwrap();
    let total = AtomicU64::new(0);
    let value_of = |found: Option<Vec<u8>>| {
        found.map_or(0, |bytes| u64::from_le_bytes(*bytes.first_chunk().unwrap()))
    };
    let work = |thread: u64| {
        let mut random = Random::new(seed + thread);
        for _ in 0..500 * crate::common::rounds("QUICKBEAM_LATCH", 1) {
            let added = environment.transact(|transaction| {
                let mut added = 0;
                for _ in 0..1 + random.below(4) {
                    let key = [random.below(8) as u8];
                    let old = value_of(database.get(transaction, &key)?);
                    let amount = random.below(100) as u64;
                    let mut value = (old + amount).to_le_bytes().to_vec();
                    // Of any length, so that the record moves in its page and out of it.
                    value.resize(8 + random.below(2500), 0);
                    database.put(transaction, &key, &value)?;
                    added += amount;
                }
                Ok(added)
            });
            match added {
                Ok(added) => drop(total.fetch_add(added, Ordering::Relaxed)),
                Err(Error::WriteConflict | Error::Deadlock | Error::SerializationFailure) => {}
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || work(thread));
        }
    });
    let reader = environment.begin_read().unwrap();
    let found = crate::common::records(&database, &reader).unwrap();
    let sum: u64 = found.into_values().map(|value| value_of(Some(value))).sum();
    assert_eq!(sum, total.load(Ordering::Relaxed), "seed {seed}");
    drop(reader);
    crate::common::assert_sound(&environment);
}
