//! Transactions of random steps that write down what they saw and did, for `history.rs` to judge.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quickbeam::query_layer::{DatabaseExt, WriteLock};
use quickbeam::{
    AccessMethod, Database, Environment, Error, Isolation, Savepoint, Transaction,
    TransactionOptions,
};

use super::Random;
use super::history::Record;

/// What the transactions of one history share.
pub struct Stage {
    pub environment: Environment,
    pub database: Database,
    pub isolation: Isolation,
    pub keys: usize,
    /// Bytes of value beyond the version number.
    pub padding: usize,
    /// Deletions may happen. Without them no transaction writes anything but the key it means to.
    pub deletions: bool,
    pub lock_timeout: Duration,
    pub clock: AtomicU64,
    pub versions: AtomicU64,
}

/// What a key holds, as one transaction left it: version, and whether there is a record.
pub type Own = BTreeMap<usize, (u64, bool)>;

/// One transaction under way.
pub struct Actor<'s> {
    pub stage: &'s Stage,
    pub transaction: Option<Transaction>,
    pub read_only: bool,
    pub record: Record,
    pub own: Own,
    pub saved: Vec<(Savepoint, Own)>,
}

pub type Step<T> = Result<T, Error>;

pub fn key_of(key: usize) -> Vec<u8> {
    format!("key {key:04}").into_bytes()
}

/// Where a deletion leaves its version number.
pub fn grave_of(key: usize) -> Vec<u8> {
    format!("grave {key:04}").into_bytes()
}

impl<'s> Actor<'s> {
    pub fn begin(stage: &'s Stage, name: String, read_only: bool) -> Actor<'s> {
        let begun = stage.clock.fetch_add(1, Ordering::SeqCst);
        let options = TransactionOptions::new()
            .isolation(stage.isolation)
            .lock_timeout(stage.lock_timeout)
            .read_only(read_only);
        let transaction = Some(stage.environment.begin_with(options).unwrap());
        let record = Record { name, begun, ..Record::default() };
        Actor { stage, transaction, read_only, record, own: Own::new(), saved: Vec::new() }
    }

    pub fn transaction(&self) -> &Transaction {
        self.transaction.as_ref().unwrap()
    }

    pub fn note(&mut self, what: String) {
        let at = self.stage.clock.load(Ordering::SeqCst);
        self.record.did.push(format!("{at}: {what}"));
    }

    /// Ends the transaction; what it did goes into the history.
    pub fn end(mut self, commit: bool) -> Record {
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

    pub fn value_of(&self, key: usize, version: u64) -> Vec<u8> {
        let mut value = version.to_le_bytes().to_vec();
        value.extend((key as u64).to_le_bytes());
        // The length differs from version to version, so that records are moved about in their
        // page.
        value.resize(16 + self.stage.padding * (version % 4) as usize / 3, version as u8);
        value
    }

    pub fn version_in(&self, key: usize, value: &[u8]) -> u64 {
        let version = u64::from_le_bytes(*value.first_chunk().unwrap());
        assert_eq!(value, self.value_of(key, version), "key {key}: a value that nobody wrote");
        version
    }

    /// Notes what was seen of a key: `None` when there was no record. The version.
    pub fn seen(&mut self, key: usize, found: Option<&[u8]>) -> Step<u64> {
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

    pub fn get(&mut self, key: usize) -> Step<u64> {
        self.note(format!("get {key}"));
        let found = self.stage.database.get(self.transaction(), &key_of(key))?;
        self.seen(key, found.as_deref())
    }

    /// Notes a write that succeeded; `after` is the version it follows, if that was read.
    pub fn wrote(&mut self, key: usize, version: u64, present: bool, after: Option<u64>) {
        if !self.own.contains_key(&key) {
            self.record.writes.insert(key, (version, after));
        }
        self.own.insert(key, (version, present));
    }

    pub fn new_version(&mut self) -> u64 {
        let version = self.stage.versions.fetch_add(1, Ordering::SeqCst);
        self.record.made.push(version);
        version
    }

    pub fn put(&mut self, key: usize, read_first: bool) -> Step<()> {
        self.note(format!("put {key}"));
        let after = if read_first { Some(self.get(key)?) } else { None };
        let version = self.new_version();
        let value = self.value_of(key, version);
        self.stage.database.put(self.transaction(), &key_of(key), &value)?;
        self.wrote(key, version, true, after);
        Ok(())
    }

    pub fn put_if_absent(&mut self, key: usize) -> Step<()> {
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
        // There was no record; which absence it was, the grave tells. What was written must not
        // hide that.
        let absent = self.seen(key, None);
        self.wrote(key, version, true, absent.as_ref().ok().copied());
        absent.map(|_| ())
    }

    pub fn delete(&mut self, key: usize) -> Step<()> {
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

    /// A scan from one key towards another, both included; ends early at times. Writes at the
    /// cursor at times.
    pub fn scan(&mut self, random: &mut Random) -> Step<()> {
        if !self.stage.database.access_method().is_ordered() {
            return self.pass(random);
        }
        let (a, b) = (random.below(self.stage.keys), random.below(self.stage.keys));
        let (low, high) = (a.min(b), a.max(b));
        let backwards = random.chance(50);
        let mut steps = if random.chance(50) { usize::MAX } else { random.below(3) };
        let found = {
            let mut cursor = self.stage.database.cursor(self.transaction())?;
            let start = if backwards { high } else { low };
            let mut found = BTreeMap::new();
            let mut more = if backwards {
                cursor.seek_at_or_before(&key_of(high))
            } else {
                cursor.seek(&key_of(low))
            }?;
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
        self.seen_at_cursor(found, random)
    }

    /// As [`scan`](Self::scan), of all keys: where they have no order, that is all there is.
    pub fn pass(&mut self, random: &mut Random) -> Step<()> {
        let backwards = random.chance(50);
        let found = {
            let mut cursor = self.stage.database.cursor(self.transaction())?;
            let mut found: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
            while if backwards { cursor.prev() } else { cursor.next() }? {
                let text = std::str::from_utf8(cursor.key()).unwrap();
                if let Some(key) = text.strip_prefix("key ") {
                    let before = found.insert(key.parse().unwrap(), cursor.value().to_vec());
                    assert!(before.is_none(), "key {key}: a cursor came to it twice");
                }
            }
            (0..self.stage.keys).map(|key| (key, found.remove(&key))).collect::<Vec<_>>()
        };
        self.note(format!("pass, found {}", found.len()));
        self.seen_at_cursor(found, random)
    }

    /// What a scan found, and a write at the cursor at times.
    fn seen_at_cursor(
        &mut self,
        found: Vec<(usize, Option<Vec<u8>>)>,
        random: &mut Random,
    ) -> Step<()> {
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
        let stands = match self.stage.database.access_method() {
            AccessMethod::BTree => cursor.seek(&key_of(key))?,
            AccessMethod::Hash | AccessMethod::HashPrefix => {
                while cursor.next()? && cursor.key() != key_of(key) {}
                true
            }
        };
        if stands && cursor.key() == key_of(key) {
            let steady = self.stage.isolation != Isolation::ReadCommitted;
            assert!(!steady || self.version_in(key, cursor.value()) == after, "another version");
            cursor.put(&value)?;
            drop(cursor);
            self.wrote(key, version, true, Some(after));
        }
        Ok(())
    }

    pub fn last_read(&self, key: usize) -> u64 {
        self.record.reads.iter().rev().find(|(read, _)| *read == key).unwrap().1
    }

    /// One random step. An error means that the transaction has to end.
    pub fn step(&mut self, random: &mut Random) -> Step<()> {
        let key = random.below(self.stage.keys);
        if self.read_only {
            return if random.chance(60) { self.get(key).map(|_| ()) } else { self.scan(random) };
        }
        match random.below(21) {
            20 => {
                let mode = [WriteLock::Shared, WriteLock::Exclusive][random.below(2)];
                self.note(format!("{mode:?} lock"));
                self.stage.database.lock_writes(self.transaction(), mode)
            }
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
    pub fn goes_on(&self, result: Step<()>, random: &mut Random) -> bool {
        let Err(error) = result else { return true };
        assert!(error.is_retryable(), "{}: {error}", self.record.name);
        assert!(!self.read_only, "a read-only transaction failed: {error}");
        random.chance(40)
    }
}
