//! Random histories of transactions, checked for what their isolation level forbids.
//!
//! Two ways of making them. Several transactions taken step by step in a random order by one thread: every history
//! can be made again from its seed. And the same transactions on several threads: all else can happen.
//! `QUICKBEAM_SEED` repeats a failure, `QUICKBEAM_HISTORIES` makes that many times as many.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod common;
#[path = "common/history.rs"]
mod history;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::Random;
use history::{Record, check};
use quickbeam::{
    Database, Environment, Error, Isolation, Options, Savepoint, Transaction, TransactionOptions,
};

/// What the transactions of one history share.
struct Stage {
    environment: Environment,
    database: Database,
    isolation: Isolation,
    keys: usize,
    /// Bytes of value beyond the version number.
    padding: usize,
    /// Deletions may happen. Without them no transaction writes anything but the key it means to.
    deletions: bool,
    lock_timeout: Duration,
    clock: AtomicU64,
    versions: AtomicU64,
}

/// What a key holds, as one transaction left it: version, and whether there is a record.
type Own = BTreeMap<usize, (u64, bool)>;

/// One transaction under way.
struct Actor<'s> {
    stage: &'s Stage,
    transaction: Option<Transaction>,
    read_only: bool,
    record: Record,
    own: Own,
    saved: Vec<(Savepoint, Own)>,
}

type Step<T> = Result<T, Error>;

fn key_of(key: usize) -> Vec<u8> {
    format!("key {key:04}").into_bytes()
}

/// Where a deletion leaves its version number.
fn grave_of(key: usize) -> Vec<u8> {
    format!("grave {key:04}").into_bytes()
}

impl<'s> Actor<'s> {
    fn begin(stage: &'s Stage, name: String, read_only: bool) -> Actor<'s> {
        let begun = stage.clock.fetch_add(1, Ordering::SeqCst);
        let options = TransactionOptions {
            isolation: Some(stage.isolation),
            lock_timeout: Some(stage.lock_timeout),
            read_only,
            ..TransactionOptions::default()
        };
        let transaction = Some(stage.environment.begin_with(options).unwrap());
        let record = Record { name, begun, ..Record::default() };
        Actor { stage, transaction, read_only, record, own: Own::new(), saved: Vec::new() }
    }

    fn transaction(&self) -> &Transaction {
        self.transaction.as_ref().unwrap()
    }

    fn note(&mut self, what: String) {
        let at = self.stage.clock.load(Ordering::SeqCst);
        self.record.did.push(format!("{at}: {what}"));
    }

    /// Ends the transaction; what it did goes into the history.
    fn end(mut self, commit: bool) -> Record {
        let transaction = self.transaction.take().unwrap();
        let ended = if commit { transaction.commit() } else { transaction.abort() };
        match &ended {
            Ok(()) => self.record.committed = commit,
            Err(error) => {
                assert!(error.is_retryable(), "{}: {error}", self.record.name);
                assert!(!self.read_only, "a read-only transaction failed: {error}");
                assert!(
                    self.stage.isolation == Isolation::Serializable || !self.record.made.is_empty(),
                    "nothing was written, yet: {error}"
                );
            }
        }
        self.record.ended = self.stage.clock.fetch_add(1, Ordering::SeqCst);
        let mut record = self.record;
        for (&key, &(version, _)) in &self.own {
            record.writes.entry(key).and_modify(|write| write.0 = version);
        }
        record.writes.retain(|key, _| self.own.contains_key(key));
        record
    }

    fn value_of(&self, key: usize, version: u64) -> Vec<u8> {
        let mut value = version.to_le_bytes().to_vec();
        value.extend((key as u64).to_le_bytes());
        // The length differs from version to version, so that records are moved about in their page.
        value.resize(16 + self.stage.padding * (version % 4) as usize / 3, version as u8);
        value
    }

    fn version_in(&self, key: usize, value: &[u8]) -> u64 {
        let version = u64::from_le_bytes(*value.first_chunk().unwrap());
        assert_eq!(value, self.value_of(key, version), "key {key}: a value that nobody wrote");
        version
    }

    /// Notes what was seen of a key: `None` when there was no record. The version.
    fn seen(&mut self, key: usize, found: Option<&[u8]>) -> Step<u64> {
        let own = self.own.get(&key).copied();
        let version = match (found, own) {
            (Some(value), _) => self.version_in(key, value),
            (None, Some((version, present))) => {
                assert!(!present, "{}: key {key}: own write not seen", self.record.name);
                return Ok(version);
            }
            // A read committed transaction would see a later state of the grave than of the record.
            (None, None) if self.stage.isolation == Isolation::ReadCommitted => 0,
            (None, None) => {
                let grave = self.stage.database.get(self.transaction(), &grave_of(key))?;
                grave.map_or(0, |value| self.version_in(key, &value))
            }
        };
        match own {
            Some(own) => assert_eq!(own, (version, true), "key {key}: own write not seen"),
            None => self.record.reads.push((key, version)),
        }
        Ok(version)
    }

    fn get(&mut self, key: usize) -> Step<u64> {
        self.note(format!("get {key}"));
        let found = self.stage.database.get(self.transaction(), &key_of(key))?;
        self.seen(key, found.as_deref())
    }

    /// Notes a write that succeeded; `after` is the version it follows, if that was read.
    fn wrote(&mut self, key: usize, version: u64, present: bool, after: Option<u64>) {
        if !self.own.contains_key(&key) {
            self.record.writes.insert(key, (version, after));
        }
        self.own.insert(key, (version, present));
    }

    fn new_version(&mut self) -> u64 {
        let version = self.stage.versions.fetch_add(1, Ordering::SeqCst);
        self.record.made.push(version);
        version
    }

    fn put(&mut self, key: usize, read_first: bool) -> Step<()> {
        self.note(format!("put {key}"));
        let after = if read_first { Some(self.get(key)?) } else { None };
        let version = self.new_version();
        let value = self.value_of(key, version);
        self.stage.database.put(self.transaction(), &key_of(key), &value)?;
        self.wrote(key, version, true, after);
        Ok(())
    }

    fn put_if_absent(&mut self, key: usize) -> Step<()> {
        self.note(format!("put if absent {key}"));
        let version = self.new_version();
        let value = self.value_of(key, version);
        let database = &self.stage.database;
        if !database.put_if_absent(self.transaction(), &key_of(key), &value)? {
            let found = database.get(self.transaction(), &key_of(key))?;
            let steady = self.stage.isolation != Isolation::ReadCommitted;
            assert!(found.is_some() || !steady, "key {key} was there and is not");
            return self.seen(key, found.as_deref()).map(|_| ());
        }
        if let Some((_, present)) = self.own.get(&key) {
            assert!(!present, "key {key}: own write not seen by put_if_absent");
            self.wrote(key, version, true, None);
            return Ok(());
        }
        // There was no record; which absence it was, the grave tells. What was written must not hide that.
        let absent = self.seen(key, None);
        self.wrote(key, version, true, absent.as_ref().ok().copied());
        absent.map(|_| ())
    }

    fn delete(&mut self, key: usize) -> Step<()> {
        self.note(format!("delete {key}"));
        let after = self.get(key)?;
        let version = self.new_version();
        let savepoint = self.transaction().savepoint()?;
        let (database, transaction) = (&self.stage.database, self.transaction());
        let deleted = database.delete(transaction, &key_of(key))?;
        let grave = self.value_of(key, version);
        if !deleted {
            return Ok(());
        }
        if let Err(error) = database.put(transaction, &grave_of(key), &grave) {
            transaction.rollback_to(savepoint)?;
            return Err(error);
        }
        self.wrote(key, version, false, Some(after));
        Ok(())
    }

    /// A scan from one key towards another, both included; ends early at times. Writes at the cursor at times.
    fn scan(&mut self, random: &mut Random) -> Step<()> {
        let (a, b) = (random.below(self.stage.keys), random.below(self.stage.keys));
        let (low, high) = (a.min(b), a.max(b));
        let backwards = random.chance(50);
        let mut steps = if random.chance(50) { usize::MAX } else { random.below(3) };
        let found = {
            let mut cursor = self.stage.database.cursor(self.transaction())?;
            let start = if backwards { high } else { low };
            let mut found = BTreeMap::new();
            let mut more =
                if backwards { cursor.seek_le(&key_of(high)) } else { cursor.seek(&key_of(low)) }?;
            let (mut first, mut last) = (start, if backwards { low } else { high });
            while more {
                let text = std::str::from_utf8(cursor.key()).unwrap();
                let Some(key) = text.strip_prefix("key ").map(|n| n.parse::<usize>().unwrap())
                else {
                    break;
                };
                if key < low || key > high {
                    break;
                }
                found.insert(key, cursor.value().to_vec());
                if steps == 0 {
                    last = key;
                    break;
                }
                steps -= 1;
                more = if backwards { cursor.prev() } else { cursor.next() }?;
            }
            if backwards {
                (first, last) = (last, first);
            }
            (first..=last).map(|key| (key, found.remove(&key))).collect::<Vec<_>>()
        };
        let way = if backwards { "back from" } else { "on to" };
        self.note(format!("scan {low} {way} {high}, found {}", found.len()));
        for (key, value) in &found {
            self.seen(*key, value.as_deref())?;
        }
        let present: Vec<usize> =
            found.iter().filter(|(_, value)| value.is_some()).map(|(key, _)| *key).collect();
        if self.read_only || present.is_empty() || random.chance(70) {
            return Ok(());
        }
        let key = present[random.below(present.len())];
        self.note(format!("put {key} at cursor"));
        let after = self.own.get(&key).map_or_else(|| self.last_read(key), |own| own.0);
        let version = self.new_version();
        let value = self.value_of(key, version);
        let mut cursor = self.stage.database.cursor(self.transaction())?;
        if cursor.seek(&key_of(key))? && cursor.key() == key_of(key) {
            let steady = self.stage.isolation != Isolation::ReadCommitted;
            assert!(!steady || self.version_in(key, cursor.value()) == after, "another version");
            cursor.put(&value)?;
            drop(cursor);
            self.wrote(key, version, true, Some(after));
        }
        Ok(())
    }

    fn last_read(&self, key: usize) -> u64 {
        self.record.reads.iter().rev().find(|(read, _)| *read == key).unwrap().1
    }

    /// One random step. An error means that the transaction has to end.
    fn step(&mut self, random: &mut Random) -> Step<()> {
        let key = random.below(self.stage.keys);
        if self.read_only {
            return if random.chance(60) { self.get(key).map(|_| ()) } else { self.scan(random) };
        }
        match random.below(20) {
            0..5 => self.get(key).map(|_| ()),
            5..9 => self.put(key, true),
            9..11 => self.put(key, false),
            11..13 => self.put_if_absent(key),
            13..15 if self.stage.deletions => self.delete(key),
            13..18 => self.scan(random),
            18 => {
                self.note(format!("savepoint {}", self.saved.len()));
                let savepoint = self.transaction().savepoint()?;
                self.saved.push((savepoint, self.own.clone()));
                Ok(())
            }
            _ => {
                // Back to any savepoint; the later ones are gone.
                let at = random.below(self.saved.len() + 1);
                if let Some((savepoint, own)) = self.saved.get(at).cloned() {
                    self.note(format!("roll back to {at}"));
                    self.transaction().rollback_to(savepoint)?;
                    self.saved.truncate(at + 1);
                    self.own = own;
                    self.record.writes.retain(|key, _| self.own.contains_key(key));
                }
                Ok(())
            }
        }
    }

    /// Whether the transaction goes on after that; failing calls are survived at times.
    fn goes_on(&self, result: Step<()>, random: &mut Random) -> bool {
        let Err(error) = result else { return true };
        assert!(error.is_retryable(), "{}: {error}", self.record.name);
        assert!(!self.read_only, "a read-only transaction failed: {error}");
        random.chance(40)
    }
}

fn stage(random: &mut Random, isolation: Isolation, lock_timeout: Duration) -> Stage {
    let options = Options { page_size: 4096, cache_size: 64 * 4096, ..Options::default() };
    let environment = Environment::memory(options).unwrap();
    let database = environment.create_database("history").unwrap();
    Stage {
        database,
        environment,
        isolation,
        keys: 1 + random.below(12),
        padding: [0, 60, 700, 900, 3000][random.below(5)],
        deletions: random.chance(60),
        lock_timeout,
        clock: AtomicU64::new(0),
        versions: AtomicU64::new(1),
    }
}

/// Reads every key at the end, and has the history checked.
fn judge(stage: &Stage, mut history: Vec<Record>, seed: u64) -> usize {
    let mut last = Actor::begin(stage, "last".into(), true);
    for key in 0..stage.keys {
        last.get(key).unwrap();
    }
    history.push(last.end(true));
    let report = stage.environment.verify().unwrap();
    assert_eq!(report.complaints, Vec::<String>::new(), "seed {seed}, {:?}", stage.isolation);
    if let Err(complaint) = check(&history, stage.isolation) {
        panic!("seed {seed}, {:?}: {complaint}", stage.isolation);
    }
    history.iter().filter(|record| record.committed).count()
}

/// Several transactions at once, taken step by step by one thread. Nobody waits: who would fails at once.
fn interleaved(seed: u64, isolation: Isolation) -> usize {
    let mut random = Random::new(seed);
    let stage = stage(&mut random, isolation, Duration::ZERO);
    let sessions = 2 + random.below(3);
    let eagerness = 5 + random.below(25);
    let mut actors: Vec<Option<Actor<'_>>> = (0..sessions).map(|_| None).collect();
    let mut history = Vec::new();
    for count in 0..120 {
        let at = random.below(sessions);
        let name = format!("T{count}");
        let mut actor =
            actors[at].take().unwrap_or_else(|| Actor::begin(&stage, name, random.chance(15)));
        let result = actor.step(&mut random);
        if !actor.goes_on(result, &mut random) {
            history.push(actor.end(false));
        } else if random.chance(eagerness) {
            history.push(actor.end(random.chance(90)));
        } else {
            actors[at] = Some(actor);
        }
    }
    for actor in actors.into_iter().flatten() {
        history.push(actor.end(random.chance(80)));
    }
    judge(&stage, history, seed)
}

/// The same on threads of their own, with real waiting.
fn parallel(seed: u64, isolation: Isolation) -> usize {
    let mut random = Random::new(seed);
    let stage = stage(&mut random, isolation, Duration::from_millis(500));
    let threads = 2 + random.below(3);
    let work = |thread: usize| {
        let mut random = Random::new(seed ^ (thread as u64 + 1) << 48);
        let mut history = Vec::new();
        for count in 0..25 {
            let name = format!("T{thread}.{count}");
            let mut actor = Actor::begin(&stage, name, random.chance(15));
            let mut goes_on = true;
            for _ in 0..1 + random.below(8) {
                let result = actor.step(&mut random);
                goes_on = actor.goes_on(result, &mut random);
                if !goes_on {
                    break;
                }
                if random.chance(30) {
                    std::thread::yield_now();
                }
            }
            history.push(actor.end(goes_on && random.chance(90)));
        }
        history
    };
    let work = &work;
    let history = std::thread::scope(|scope| {
        let handles: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    judge(&stage, history, seed)
}

/// Many histories, each with its own seed.
fn many(count: usize, isolation: Isolation, history: fn(u64, Isolation) -> usize) {
    let first = common::first_seed();
    println!("first seed {first}");
    let factor = common::rounds("QUICKBEAM_HISTORIES", 1);
    let committed: usize =
        (first..first + (count * factor) as u64).map(|seed| history(seed, isolation)).sum();
    assert!(committed > count * 5, "hardly anything was committed: {committed}");
}

#[test]
fn interleaved_serializable_histories_have_no_cycle() {
    many(1000, Isolation::Serializable, interleaved);
}

#[test]
fn interleaved_snapshot_histories_have_no_forbidden_cycle() {
    many(600, Isolation::Snapshot, interleaved);
}

#[test]
fn interleaved_read_committed_histories_read_nothing_dirty() {
    many(400, Isolation::ReadCommitted, interleaved);
}

#[test]
fn parallel_serializable_histories_have_no_cycle() {
    many(300, Isolation::Serializable, parallel);
}

#[test]
fn parallel_snapshot_histories_have_no_forbidden_cycle() {
    many(200, Isolation::Snapshot, parallel);
}

#[test]
fn parallel_read_committed_histories_read_nothing_dirty() {
    many(100, Isolation::ReadCommitted, parallel);
}
