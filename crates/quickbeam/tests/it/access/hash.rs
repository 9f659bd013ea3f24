//! Hash databases: what sets them apart from trees. What both must do is in the tests of models,
//! histories, crashes and damage, which run on either.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;

use crate::common::{
    Random, assert_misuse, assert_sound, begin, contents, environment_in_world, open_files, place,
    put, refused, small_options, world_with,
};
use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
use quickbeam::{
    AccessMethod, DataStore, Database, Environment, Error, Isolation, Result, TooLong, Transaction,
    salvage_in,
};

fn memory() -> (Environment, Database) {
    let options = small_options().cache_size(64 * 4096);
    let environment = Environment::open_in_memory(options).unwrap();
    let database = environment.create_database_with("data", AccessMethod::Hash).unwrap();
    (environment, database)
}

fn fill(environment: &Environment, database: &Database, records: std::ops::Range<u32>) {
    let fill = |transaction: &Transaction| {
        records.clone().try_for_each(|n| database.put(transaction, &n.to_be_bytes(), &[7; 90]))
    };
    environment.transact(fill).unwrap();
}

#[test]
fn buckets_split_evenly_under_random_inserts() {
    // More than the cache holds, too.
    let (environment, database) = memory();
    for part in 0..20 {
        fill(&environment, &database, part * 1000..(part + 1) * 1000);
        let report = environment.verify().unwrap();
        assert_eq!(report.complaints, Vec::<String>::new());
        assert!(report.leaf_fill > 0.45, "after part {part}: {}", report.leaf_fill);
    }
    let reader = environment.begin_read().unwrap();
    let mut value = Vec::new();
    for n in 0..21_000u32 {
        let found = database.get_into(&reader, &n.to_be_bytes(), &mut value).unwrap();
        assert_eq!((found, value.len()), if n < 20_000 { (true, 90) } else { (false, 0) }, "{n}");
    }
    let estimate = database.estimate(&reader).unwrap();
    assert!((5_000.0..80_000.0).contains(&estimate), "{estimate}");
    drop(reader);
    // Buckets that become empty are given back.
    let before = environment.verify().unwrap().pages;
    let empty = |transaction: &Transaction| {
        (0..20_000u32).try_for_each(|n| database.delete(transaction, &n.to_be_bytes()).map(|_| ()))
    };
    environment.transact(empty).unwrap();
    let after = environment.verify().unwrap();
    assert_eq!((after.complaints.len(), after.records), (0, 0));
    assert!(after.pages < before / 4, "{} pages of {before} are left", after.pages);
}

#[test]
fn inserts_in_hash_order_leave_full_buckets() {
    for method in [AccessMethod::Hash, AccessMethod::HashPrefix] {
        let (environment, database) = memory();
        let sorted = environment.create_database_with("sorted", method).unwrap();
        fill(&environment, &database, 0..10_000);
        let reader = environment.begin_read().unwrap();
        let writer = environment.begin().unwrap();
        let mut keys: Vec<[u8; 4]> = (0..10_000u32).map(u32::to_be_bytes).collect();
        keys.sort_by_key(|key| sorted.hash_of(key));
        for key in &keys {
            sorted.put(&writer, key, &database.get(&reader, key).unwrap().unwrap()).unwrap();
        }
        writer.commit().unwrap();
        drop(reader);
        environment.drop_database("data").unwrap();
        let report = environment.verify().unwrap();
        assert_eq!(report.complaints, Vec::<String>::new());
        assert!(report.leaf_fill > 0.75, "{method}: {}", report.leaf_fill);
        // More of them go where there is room, and what is full is halved.
        fill(&environment, &sorted, 10_000..20_000);
        let report = environment.verify().unwrap();
        assert_eq!((report.complaints.len(), report.records), (0, 20_000));
        assert!(report.leaf_fill > 0.45, "{method}: {}", report.leaf_fill);
    }
}

#[test]
fn ordered_access_to_a_hash_database_is_refused() {
    let (environment, database) = memory();
    fill(&environment, &database, 0..300);
    let transaction = environment.begin().unwrap();
    let mut cursor = database.cursor(&transaction).unwrap();
    assert_misuse(cursor.seek(b"key"), "hash");
    assert_misuse(cursor.seek_at_or_before(b"key"), "hash");
    let mut batch = ScanBatch::default();
    let key: &[u8] = b"key";
    for (low, high) in
        [(Bound::Included(key), Bound::Unbounded), (Bound::Unbounded, Bound::Excluded(key))]
    {
        let mut scan = Scan::new(low, high);
        assert_misuse(database.scan(&transaction, &mut scan, &mut batch), "hash");
    }
    // A scan keeps to the database in which it was begun.
    let tree = transaction.create_database("tree").unwrap();
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded).record_limit(10);
    assert!(database.scan(&transaction, &mut scan, &mut batch).unwrap());
    assert_misuse(tree.scan(&transaction, &mut scan, &mut batch), "restart");
    scan.restart(Bound::Unbounded, Bound::Unbounded);
    assert!(!tree.scan(&transaction, &mut scan, &mut batch).unwrap());

    let mut store = DataStore::open_in_memory(small_options()).unwrap();
    let database = store.create_database_with("data", AccessMethod::Hash).unwrap();
    store.put(database, b"key", b"value").unwrap();
    let mut cursor = store.cursor(database).unwrap();
    assert_misuse(cursor.seek(b"key"), "hash");
    assert_misuse(cursor.seek_at_or_before(b"key"), "hash");
    assert!(cursor.next().unwrap());
    assert_eq!((cursor.key(), cursor.value()), (&b"key"[..], &b"value"[..]));
    cursor.put(b"new").unwrap();
    assert!(!cursor.next().unwrap() && cursor.key() == b"key" && cursor.delete().unwrap());
    assert_eq!(store.get(database, b"key").unwrap(), None);
}

#[test]
fn hash_scan_of_any_batch_size_finds_every_record_once() {
    let (environment, database) = memory();
    fill(&environment, &database, 0..2000);
    let transaction = environment.begin_read().unwrap();
    let all = || Scan::new(Bound::Unbounded, Bound::Unbounded);
    for scan in [
        all(),
        all().backward(),
        all().record_limit(1),
        all().record_limit(7).backward(),
        all().value_limit(3).record_limit(50),
    ] {
        let (mut scan, mut batch, mut seen) = (scan, ScanBatch::default(), BTreeSet::new());
        while database.scan(&transaction, &mut scan, &mut batch).unwrap() {
            for n in 0..batch.len() {
                assert!(batch.value(n).starts_with(&[7; 3]));
                assert!(seen.insert(u32::from_be_bytes(batch.key(n).try_into().unwrap())));
            }
        }
        assert!(seen.iter().copied().eq(0..2000), "{scan:?}");
    }
    let (mut scan, mut batch, mut count) = (all().without_keys(), ScanBatch::default(), 0);
    while database.scan(&transaction, &mut scan, &mut batch).unwrap() {
        assert!((0..batch.len()).all(|n| batch.key(n).is_empty() && batch.value(n) == [7; 90]));
        count += batch.len();
    }
    assert_eq!(count, 2000);
}

#[test]
fn hash_keys_up_to_the_limit_are_accepted() {
    let (environment, database) = memory();
    let mut store = DataStore::open_in_memory(small_options()).unwrap();
    let stored = store.create_database_with("data", AccessMethod::Hash).unwrap();
    let transaction = environment.begin().unwrap();
    for length in [0, 1020] {
        let key = vec![1; length];
        database.put(&transaction, &key, &key).unwrap();
        assert_eq!(database.get(&transaction, &key).unwrap().as_ref(), Some(&key));
        store.put(stored, &key, &key).unwrap();
        assert_eq!(store.get(stored, &key).unwrap().as_ref(), Some(&key));
    }
    let key = vec![1; 1021];
    for refusal in [
        refused(database.put(&transaction, &key, b"")),
        refused(database.delete(&transaction, &key)),
        refused(store.put(stored, &key, b"")),
    ] {
        let expected = TooLong { length: 1021, limit: 1020 };
        assert!(matches!(&refusal, Error::KeyTooLong(told) if **told == expected), "{refusal:?}");
    }
    assert_eq!(database.get(&transaction, &key).unwrap(), None);
    assert!(!store.delete(stored, &key).unwrap());
}

#[test]
fn access_method_survives_reopening() {
    let (vfs, environment) = environment_in_world();
    let methods = |environment: &Environment| -> BTreeMap<String, AccessMethod> {
        let method = |name: &String| environment.open_database(name).unwrap().access_method();
        environment
            .databases()
            .unwrap()
            .into_iter()
            .map(|name| {
                let method = method(&name);
                (name, method)
            })
            .collect()
    };
    let handle = environment.create_database_with("emptied", AccessMethod::Hash).unwrap();
    for name in ["renamed before", "dropped"] {
        environment.create_database_with(name, AccessMethod::Hash).unwrap();
    }
    environment.create_database("tree").unwrap();
    fill(&environment, &handle, 0..500);
    environment.rename_database("renamed before", "renamed").unwrap();
    environment.clear_database("emptied").unwrap();
    environment.drop_database("dropped").unwrap();
    // The handle goes on, though its tree is another one now.
    put(&environment, &handle, b"key", b"value");
    fill(&environment, &handle, 0..100);
    let transaction = environment.begin().unwrap();
    assert_eq!(handle.get(&transaction, b"key").unwrap().unwrap(), b"value");
    transaction.commit().unwrap();
    let expected = BTreeMap::from([
        ("emptied".to_owned(), AccessMethod::Hash),
        ("renamed".to_owned(), AccessMethod::Hash),
        ("tree".to_owned(), AccessMethod::BTree),
    ]);
    assert_eq!(methods(&environment), expected);
    let before = contents(&environment).unwrap();
    assert_eq!(before["emptied"].len(), 101);
    let crashed = vfs.files(place());
    environment.close().unwrap();
    for files in [crashed, vfs.files(place())] {
        let environment = open_files(&files, &small_options()).unwrap();
        assert_eq!(methods(&environment), expected);
        assert!(contents(&environment).unwrap() == before);
        assert_sound(&environment);
        // Salvage makes the same of it.
        let vfs = world_with(&files, place());
        let new = Path::new("new");
        let report = salvage_in(vfs.clone(), place(), new, &small_options()).unwrap();
        assert!(report.is_complete(), "{report:?}");
        let salvaged = Environment::open_in(vfs, Some(new), small_options()).unwrap();
        assert_eq!(methods(&salvaged), expected);
        assert!(contents(&salvaged).unwrap() == before);
        assert_sound(&salvaged);
    }
}

#[test]
fn insert_of_a_key_read_as_absent_conflicts() {
    // Serializable: who read that there is no record, or every record, cannot commit once there is
    // another.
    let read = |database: &Database, transaction: &Transaction| {
        assert_eq!(database.get(transaction, b"new").unwrap(), None);
    };
    let pass = |database: &Database, transaction: &Transaction| {
        let mut cursor = database.cursor(transaction).unwrap();
        while cursor.next().unwrap() {}
    };
    // A pass has read everything.
    type Way<'w> = &'w dyn Fn(&Database, &Transaction);
    let ways: [(Way<'_>, bool); 2] = [(&read, false), (&pass, true)];
    for (way, reads_all) in ways {
        for (other, conflicts) in [(&b"new"[..], true), (&b"another"[..], false)] {
            let (environment, database) = memory();
            fill(&environment, &database, 0..200);
            let transaction = begin(&environment, Isolation::Serializable);
            way(&database, &transaction);
            database.put(&transaction, b"mine", b"value").unwrap();
            put(&environment, &database, other, b"value");
            match transaction.commit() {
                Err(Error::SerializationFailure) => assert!(conflicts || reads_all),
                committed => {
                    assert!(committed.is_ok() && !conflicts && !reads_all, "{committed:?}");
                }
            }
        }
    }
}

/// Threads that put, delete and look up while buckets split and merge under them: each has keys of
/// its own, and knows what they hold.
#[test]
fn threads_find_records_while_buckets_split_and_merge() {
    let (environment, database) = memory();
    let work = |thread: u32| -> Result<()> {
        let mut random = Random::new(crate::common::first_seed() ^ u64::from(thread));
        let mut own = BTreeMap::new();
        for round in 0..300 {
            // Many come, then many go.
            let puts = if (round / 50) % 2 == 0 { 80 } else { 20 };
            let changes: Vec<(u32, Option<Vec<u8>>)> = (0..20)
                .map(|_| {
                    let key = thread << 16 | random.below(3000) as u32;
                    let value = vec![random.next() as u8; random.below(200)];
                    (key, random.chance(puts).then_some(value))
                })
                .collect();
            environment.transact(|transaction| {
                for (key, value) in &changes {
                    match value {
                        Some(value) => database.put(transaction, &key.to_be_bytes(), value)?,
                        None => drop(database.delete(transaction, &key.to_be_bytes())?),
                    }
                }
                Ok(())
            })?;
            own.extend(changes);
            let reader = environment.begin_read()?;
            for _ in 0..20 {
                let key = thread << 16 | random.below(3000) as u32;
                let found = database.get(&reader, &key.to_be_bytes())?;
                assert_eq!(found.as_ref(), own.get(&key).and_then(Option::as_ref), "{key}");
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    });
    assert_sound(&environment);
}
