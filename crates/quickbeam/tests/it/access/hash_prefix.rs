//! Hash databases of groups ([`AccessMethod::HashPrefix`]): records found by the hash value of the
//! first part of their keys. Everything is compared with a map.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use crate::common::{
    Random, assert_misuse, assert_sound, begin, contents, environment_in_world, open_files, place,
    put, small_options, world_with,
};
use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
use quickbeam::{
    AccessMethod, DataStore, Database, Environment, Error, Isolation, ReadTransaction, salvage_in,
};

/// Keys and values by group.
type Groups = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>;

/// A key: its bucket prefix, then the bytes that distinguish the record from others.
fn key(group: &[u8], rest: &[u8]) -> Vec<u8> {
    [&(group.len() as u16).to_be_bytes()[..], group, rest].concat()
}

fn group_of(n: usize) -> Vec<u8> {
    vec![n as u8; n % 40]
}

/// Group 3 is so large that it fills many leaves.
fn draw(random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    let group = if random.chance(50) { 3 } else { random.below(200) };
    (group_of(group), (random.below(2000) as u32).to_be_bytes()[..1 + random.below(4)].to_vec())
}

fn read_group(
    database: &Database,
    transaction: &impl ReadTransaction,
    scan: &mut Scan,
    group: &[u8],
) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (mut found, mut batch, mut last) = (BTreeMap::new(), ScanBatch::default(), None);
    scan.restart_hash_prefix(&key(group, b""));
    while database.scan(transaction, scan, &mut batch).unwrap() {
        for record in 0..batch.len() {
            let rest = batch.key(record).strip_prefix(&key(group, b"")[..]).unwrap().to_vec();
            assert!(last.as_ref().is_none_or(|last| *last < rest), "in order");
            last = Some(rest.clone());
            found.insert(rest, batch.value(record).to_vec());
        }
    }
    found
}

fn change(database: &Database, environment: &Environment, random: &mut Random, model: &mut Groups) {
    let transaction = environment.begin().unwrap();
    for _ in 0..100 {
        let (group, rest) = draw(random);
        let records = model.entry(group.clone()).or_default();
        let stored = key(&group, &rest);
        if random.chance(70) {
            let value = vec![random.next() as u8; random.below(60)];
            database.put(&transaction, &stored, &value).unwrap();
            records.insert(rest, value);
        } else {
            let was = database.delete(&transaction, &stored).unwrap();
            assert_eq!(was, records.remove(&rest).is_some());
        }
    }
    transaction.commit().unwrap();
}

fn assert_all(database: &Database, environment: &Environment, model: &Groups) {
    let reader = environment.begin_read().unwrap();
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded);
    for n in 0..200 {
        let group = group_of(n);
        let expected = model.get(&group).cloned().unwrap_or_default();
        assert_eq!(read_group(database, &reader, &mut scan, &group), expected, "{n}");
        for (rest, value) in expected.iter().take(5) {
            assert_eq!(database.get(&reader, &key(&group, rest)).unwrap().as_ref(), Some(value));
        }
    }
    let total: usize = model.values().map(BTreeMap::len).sum();
    assert_eq!(contents(environment).unwrap()[database.name()].len(), total);
}

#[test]
fn hash_prefix_records_survive_crashes_and_salvage() {
    let (vfs, environment) = environment_in_world();
    let database = environment.create_database_with("groups", AccessMethod::HashPrefix).unwrap();
    let (mut random, mut model) = (Random::new(crate::common::first_seed()), Groups::new());
    for round in 0..60 {
        change(&database, &environment, &mut random, &mut model);
        if round % 20 == 10 {
            assert_all(&database, &environment, &model);
            environment.checkpoint().unwrap();
        }
    }
    assert_all(&database, &environment, &model);
    assert_sound(&environment);
    let reader = environment.begin_read().unwrap();
    let total: usize = model.values().map(BTreeMap::len).sum();
    let part = database.estimate_hash_prefix(&reader, &key(&group_of(3), b"")).unwrap();
    let expected = model[&group_of(3)].len() as f64 / total as f64;
    assert!((expected / 2.0..expected * 2.0).contains(&part), "{part}, expected {expected}");
    assert!(database.estimate_hash_prefix(&reader, &key(b"nothing", b"")).unwrap() < 0.01);
    drop(reader);
    let crashed = vfs.files(place());
    environment.close().unwrap();
    for files in [crashed, vfs.files(place())] {
        let environment = open_files(&files, &small_options()).unwrap();
        let database = environment.open_database("groups").unwrap();
        assert_eq!(database.access_method(), AccessMethod::HashPrefix);
        assert_all(&database, &environment, &model);
        assert_sound(&environment);
        let (vfs, new) = (world_with(&files, place()), Path::new("new"));
        let report = salvage_in(vfs.clone(), place(), new, &small_options()).unwrap();
        assert!(report.is_complete(), "{report:?}");
        let salvaged = Environment::open_in(vfs, Some(new), small_options()).unwrap();
        let database = salvaged.open_database("groups").unwrap();
        assert_all(&database, &salvaged, &model);
        assert_sound(&salvaged);
    }
}

#[test]
fn hash_prefix_scan_of_any_batch_size_is_complete() {
    let options = small_options().cache_size(64 * 4096);
    let environment = Environment::open_in_memory(options).unwrap();
    let database = environment.create_database_with("groups", AccessMethod::HashPrefix).unwrap();
    let (mut random, mut model) = (Random::new(7), Groups::new());
    (0..30).for_each(|_| change(&database, &environment, &mut random, &mut model));
    let reader = environment.begin_read().unwrap();
    let (old, three) = (model.clone(), group_of(3));
    (0..30).for_each(|_| change(&database, &environment, &mut random, &mut model));
    for scan in [
        Scan::new(Bound::Unbounded, Bound::Unbounded),
        Scan::new(Bound::Unbounded, Bound::Unbounded).record_limit(1),
        Scan::new(Bound::Unbounded, Bound::Unbounded).record_limit(7),
    ] {
        let mut scan = scan;
        assert_eq!(read_group(&database, &reader, &mut scan, &three), old[&three]);
        assert_eq!(read_group(&database, &reader, &mut scan, b"nobody's"), BTreeMap::new());
    }
}

#[test]
fn insert_into_a_scanned_prefix_conflicts() {
    for (other, conflicts) in [(key(b"ulm", b"2"), true), (key(b"bonn", b"2"), false)] {
        let environment = Environment::open_in_memory(small_options()).unwrap();
        let database =
            environment.create_database_with("groups", AccessMethod::HashPrefix).unwrap();
        for n in 0..200u32 {
            put(&environment, &database, &key(b"many", &n.to_be_bytes()), &[0; 80]);
        }
        let transaction = begin(&environment, Isolation::Serializable);
        let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded);
        assert!(read_group(&database, &transaction, &mut scan, b"ulm").is_empty());
        database.put(&transaction, &key(b"mine", b""), b"value").unwrap();
        put(&environment, &database, &other, b"value");
        match transaction.commit() {
            Err(Error::SerializationFailure) => assert!(conflicts),
            committed => assert!(committed.is_ok() && !conflicts, "{committed:?}"),
        }
    }
}

#[test]
fn prefix_access_without_a_hash_prefix_is_refused() {
    let environment = Environment::open_in_memory(small_options()).unwrap();
    let transaction = environment.begin().unwrap();
    let (mut scan, mut batch) =
        (Scan::new(Bound::Unbounded, Bound::Unbounded), ScanBatch::default());
    for method in [AccessMethod::BTree, AccessMethod::Hash] {
        let database = transaction.create_database_with(&method.to_string(), method).unwrap();
        scan.restart_hash_prefix(b"\0\x01a");
        assert_misuse(database.scan(&transaction, &mut scan, &mut batch), "bucket prefixes");
        assert_misuse(database.estimate_hash_prefix(&transaction, b"\0\x01a"), "bucket prefixes");
    }
    let groups = transaction.create_database_with("groups", AccessMethod::HashPrefix).unwrap();
    assert_misuse(groups.cursor(&transaction).unwrap().seek(b"\0\x01a"), "hash");
    let mut scan = Scan::new(Bound::Included(b"a"), Bound::Unbounded);
    assert_misuse(groups.scan(&transaction, &mut scan, &mut batch), "hash");
    // Keys that do not say what their group is are keys like any other.
    for short in [&b""[..], b"\0", b"\0\x05a", b"\xff\xff\xff"] {
        groups.put(&transaction, short, short).unwrap();
        assert_eq!(groups.get(&transaction, short).unwrap().as_deref(), Some(short));
    }
    transaction.commit().unwrap();
    assert_sound(&environment);
}

#[test]
fn data_store_supports_hash_prefixes() {
    let mut store = DataStore::open_in_memory(small_options()).unwrap();
    let database = store.create_database_with("groups", AccessMethod::HashPrefix).unwrap();
    for n in 0..2000u32 {
        let stored = key(&group_of(n as usize % 7), &n.to_be_bytes());
        store.put(database, &stored, &n.to_le_bytes()).unwrap();
    }
    let mut cursor = store.cursor(database).unwrap();
    let (mut last, mut runs, mut count) = (Vec::new(), 0, 0);
    while cursor.next().unwrap() {
        let length = usize::from(cursor.key()[1]) + 2;
        runs += usize::from(cursor.key()[..length] != last);
        last = cursor.key()[..length].to_vec();
        count += 1;
    }
    assert_eq!((runs, count), (7, 2000), "each group is in one piece");
    assert!(store.verify().unwrap().complaints.is_empty());
}
