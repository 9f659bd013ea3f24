//! Scans that pass over unchanged leaves: what was kept of the leaves is what a transaction sees.

use std::collections::HashMap;
use std::ops::Bound;

use quickbeam::query_layer::{DatabaseExt, LeafVersions, Scan, ScanBatch};
use quickbeam::{Database, Durability, Environment, Isolation, Options, Transaction};
use quickbeam::{ReadTransaction, TransactionOptions};
use quickbeam_testing::Random;

type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// Records kept of leaves, by the key at which the leaves begin.
#[derive(Default)]
struct Kept {
    parts: HashMap<Vec<u8>, (LeafVersions, Records)>,
    skipped: usize,
}

fn environment() -> Environment {
    let options = Options::new().durability(Durability::InMemory).page_size(4096);
    Environment::open_in_memory(options.cache_size(64 << 12)).unwrap()
}

fn key(number: usize) -> Vec<u8> {
    format!("{number:05}").into_bytes()
}

fn append(batch: &ScanBatch, records: &mut Records) {
    records.extend((0..batch.len()).map(|i| (batch.key(i).to_vec(), batch.value(i).to_vec())));
}

fn plain(database: &Database, transaction: &impl ReadTransaction) -> Records {
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded);
    let (mut batch, mut found) = (ScanBatch::default(), Vec::new());
    while database.scan(transaction, &mut scan, &mut batch).unwrap() {
        append(&batch, &mut found);
    }
    found
}

impl Kept {
    /// Scans all records, and takes those of unchanged leaves from what was kept.
    fn scan(&mut self, database: &Database, transaction: &impl ReadTransaction) -> Records {
        self.scan_between(database, transaction, (Bound::Unbounded, Bound::Unbounded))
    }

    /// Scans the records before and after a key, as two scans.
    fn scan_halves(
        &mut self,
        database: &Database,
        transaction: &impl ReadTransaction,
        cut: &[u8],
    ) -> Records {
        let covers = |(leaves, _): &&(LeafVersions, Records)| leaves.covers(cut);
        let part = self.parts.values().find(covers);
        let cut = part.map_or(cut, |(leaves, _)| leaves.low()).to_vec();
        let (before, after) = (Bound::Excluded(&cut[..]), Bound::Included(&cut[..]));
        let mut found = self.scan_between(database, transaction, (Bound::Unbounded, before));
        found.extend(self.scan_between(database, transaction, (after, Bound::Unbounded)));
        found
    }

    fn scan_between(
        &mut self,
        database: &Database,
        transaction: &impl ReadTransaction,
        (low, high): (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Records {
        let mut scan = Scan::new(low, high).leaf_by_leaf();
        let (mut batch, mut found) = (ScanBatch::default(), Vec::new());
        loop {
            let Some(low) = scan.position().map(<[u8]>::to_vec) else { return found };
            if let Some((leaves, records)) = self.parts.get(&low)
                && database.skip_unchanged(transaction, &mut scan, leaves).unwrap()
            {
                assert!(database.are_unchanged(transaction, leaves).unwrap());
                found.extend_from_slice(records);
                self.skipped += 1;
                continue;
            }
            let (mut leaves, mut records) = (LeafVersions::default(), Vec::new());
            assert!(leaves.begin(&scan));
            let (mut is_whole, mut goes_on) = (true, true);
            while leaves.len() < 3 && goes_on {
                goes_on = database.scan(transaction, &mut scan, &mut batch).unwrap();
                if goes_on {
                    is_whole &= leaves.add(&scan, &batch) && batch.is_settled();
                    append(&batch, &mut records);
                }
            }
            found.extend_from_slice(&records);
            if is_whole && !leaves.is_empty() {
                assert_eq!(leaves.low(), low);
                assert!(leaves.records() >= records.len());
                self.parts.insert(low, (leaves, records));
            }
            if !goes_on {
                return found;
            }
        }
    }
}

fn change(database: &Database, transaction: &Transaction, random: &mut Random) {
    for _ in 0..random.below(12) {
        let key = key(random.below(3000));
        match random.below(5) {
            0 | 1 => drop(database.delete(transaction, &key)),
            2 => database.put(transaction, &key, &[7; 900]).unwrap(),
            _ => database.put(transaction, &key, &key[1..]).unwrap(),
        }
    }
}

#[test]
fn kept_records_are_those_that_a_scan_sees() {
    let environment = environment();
    let database = environment.create_database("a").unwrap();
    let mut random = Random::new(5);
    let all = environment.begin().unwrap();
    (0..3000).for_each(|number| database.put(&all, &key(number), &key(number)).unwrap());
    all.commit().unwrap();
    let (mut kept, mut skipped_halves) = (Kept::default(), 0);
    let mut old = environment.begin_read().unwrap();
    for round in 0..300 {
        let transaction = environment.begin().unwrap();
        change(&database, &transaction, &mut random);
        assert_eq!(kept.scan(&database, &transaction), plain(&database, &transaction));
        assert_eq!(kept.scan(&database, &old), plain(&database, &old));
        match random.below(3) {
            0 => transaction.abort().unwrap(),
            _ => transaction.commit().unwrap(),
        }
        if round % 20 == 0 {
            old = environment.begin_read().unwrap();
        }
        assert_eq!(kept.scan(&database, &old), plain(&database, &old));
        let (cut, skipped) = (key(random.below(3000)), kept.skipped);
        assert_eq!(kept.scan_halves(&database, &old, &cut), plain(&database, &old));
        skipped_halves += kept.skipped - skipped;
    }
    assert!(skipped_halves > 50, "{skipped_halves} parts were skipped in halves");
    assert!(kept.skipped > 50, "{} parts were skipped", kept.skipped);
}

#[test]
fn serializable_transaction_depends_on_the_leaves_it_skips() {
    let environment = environment();
    let database = environment.create_database("a").unwrap();
    let all = environment.begin().unwrap();
    (0..3000).for_each(|number| database.put(&all, &key(number), b"").unwrap());
    all.commit().unwrap();
    let mut kept = Kept::default();
    for (changes, is_serial) in [(vec![1500], false), (vec![], true), (vec![2999], false)] {
        kept.scan(&database, &environment.begin_read().unwrap());
        let options = TransactionOptions::new().isolation(Isolation::Serializable);
        let reader = environment.begin_with(options).unwrap();
        kept.skipped = 0;
        kept.scan(&database, &reader);
        assert!(kept.skipped > 3);
        let writer = environment.begin().unwrap();
        changes.iter().for_each(|number| database.put(&writer, &key(*number), b"new").unwrap());
        writer.commit().unwrap();
        database.put(&reader, b"sum", b"3000").unwrap();
        assert_eq!(reader.commit().is_ok(), is_serial, "{changes:?}");
        let cleanup = environment.begin().unwrap();
        database.delete(&cleanup, b"sum").unwrap();
        cleanup.commit().unwrap();
    }
}

#[test]
fn leaves_are_not_skipped_from_another_place() {
    let environment = environment();
    let database = environment.create_database("a").unwrap();
    let transaction = environment.begin().unwrap();
    (0..1000).for_each(|number| database.put(&transaction, &key(number), b"").unwrap());
    let (mut batch, mut leaves) = (ScanBatch::default(), LeafVersions::default());
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded).leaf_by_leaf();
    assert!(leaves.begin(&scan));
    assert!(database.scan(&transaction, &mut scan, &mut batch).unwrap());
    assert!(leaves.add(&scan, &batch));
    assert!(!batch.is_settled(), "nobody else sees the records");
    let skips = |scan: &mut Scan| database.skip_unchanged(&transaction, scan, &leaves).unwrap();
    assert!(!skips(&mut scan), "the scan has passed the leaf");
    let end = scan.position().unwrap().to_vec();
    let until = |high: &[u8]| Scan::new(Bound::Unbounded, Bound::Excluded(high)).leaf_by_leaf();
    let mut bounded = until(b"00001");
    assert!(!skips(&mut bounded), "the scan ends within the leaf");
    let mut cut = LeafVersions::default();
    assert!(cut.begin(&bounded));
    assert!(database.scan(&transaction, &mut bounded, &mut batch).unwrap());
    assert!(!cut.add(&bounded, &batch), "the scan has ended within the leaf");
    let mut bounded = until(&end);
    assert!(skips(&mut bounded));
    assert!(!database.scan(&transaction, &mut bounded, &mut batch).unwrap());
    assert!(skips(&mut until(b"00999")));
    assert!(!skips(&mut Scan::new(Bound::Unbounded, Bound::Unbounded).backward()));
    assert!(skips(&mut Scan::new(Bound::Unbounded, Bound::Unbounded)));
}

#[test]
fn leaves_of_an_emptied_database_are_not_skipped() {
    let environment = environment();
    let database = environment.create_database("a").unwrap();
    let all = environment.begin().unwrap();
    (0..1000).for_each(|number| database.put(&all, &key(number), b"").unwrap());
    all.commit().unwrap();
    let old = environment.begin_read().unwrap();
    let mut kept = Kept::default();
    kept.scan(&database, &environment.begin_read().unwrap());
    assert!(kept.parts.len() >= 2);
    environment.transact(|transaction| transaction.drop_database("a")).unwrap();
    let database = environment.create_database("a").unwrap();
    environment.transact(|transaction| database.put(transaction, b"1", b"")).unwrap();
    assert_eq!(kept.scan(&database, &environment.begin_read().unwrap()).len(), 1);
    drop(old);
}
