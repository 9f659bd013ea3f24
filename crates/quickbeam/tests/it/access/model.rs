//! The engine against a plain ordered map: random operations, sizes, page sizes, cache sizes,
//! durability levels, access methods and re-openings must leave both with the same records.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;
use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
use quickbeam::{
    AccessMethod, Cursor, DataStore, Database, Durability, Environment, Error, Options,
    ReadTransaction,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    PutIfAbsent(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Clear(Vec<u8>, Vec<u8>),
    Get(Vec<u8>),
    Savepoint,
    RollBack,
    Commit,
    Abort,
    Checkpoint,
    Reopen,
    Scan(Vec<u8>),
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0u32..400).prop_map(|n| format!("{n:08}").into_bytes()),
        2 => (0u32..2000).prop_map(|n| { let mut key = vec![0; 60]; key.extend(n.to_be_bytes()); key }),
        1 => prop::collection::vec(0u8..3, 0..6),
        1 => (0u8..4, 0usize..=1020).prop_map(|(byte, length)| vec![byte; length]),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (any::<u8>(), 0usize..120).prop_map(|(byte, length)| vec![byte; length]),
        2 => (any::<u8>(), 0usize..2100).prop_map(|(byte, length)| vec![byte; length]),
        1 => (any::<u8>(), 1900usize..4100).prop_map(|(byte, length)| vec![byte; length]),
        1 => (any::<u8>(), 0usize..60_000).prop_map(|(byte, length)| vec![byte; length]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (key(), value()).prop_map(|(key, value)| Step::Put(key, value)),
        3 => (key(), value()).prop_map(|(key, value)| Step::PutIfAbsent(key, value)),
        10 => key().prop_map(Step::Delete),
        1 => (key(), key()).prop_map(|(low, high)| Step::Clear(low, high)),
        5 => key().prop_map(Step::Get),
        1 => Just(Step::Savepoint),
        1 => Just(Step::RollBack),
        2 => Just(Step::Commit),
        1 => Just(Step::Abort),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Reopen),
        2 => key().prop_map(Step::Scan),
    ]
}

fn options(page_size: usize, pages: usize, durability: Durability) -> Options {
    Options::new()
        .page_size(page_size)
        .cache_size(page_size * pages)
        .log_segment_size(256 << 10)
        .log_buffer(64 << 10)
        .durability(durability)
}

fn forwards(cursor: &mut Cursor<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = Vec::new();
    let mut more = cursor.first().unwrap();
    while more {
        records.push((cursor.key().to_vec(), cursor.value().to_vec()));
        more = cursor.next().unwrap();
    }
    records
}

fn check_all(database: &Database, transaction: &impl ReadTransaction, model: &Map) {
    let mut cursor = database.cursor(transaction).unwrap();
    let mut records = forwards(&mut cursor);
    let in_order = |mut records: Vec<_>| {
        if !database.access_method().is_ordered() {
            records.sort();
        }
        records
    };
    let expected: Vec<_> = model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    assert!(in_order(records.clone()) == expected, "forward scan differs");
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded);
    let (mut batch, mut scanned) = (ScanBatch::default(), Vec::new());
    while database.scan(transaction, &mut scan, &mut batch).unwrap() {
        scanned.extend((0..batch.len()).map(|n| (batch.key(n).to_vec(), batch.value(n).to_vec())));
    }
    assert!(scanned == records, "scan by leaves differs");
    let mut range = database.iter(transaction);
    for record in &records {
        let (key, value) = range.next_borrowed().unwrap().unwrap();
        assert_eq!((key, value), (&record.0[..], &record.1[..]));
    }
    assert!(range.next_borrowed().unwrap().is_none());
    let mut backwards = Vec::new();
    let mut more = cursor.last().unwrap();
    while more {
        backwards.push((cursor.key().to_vec(), cursor.value().to_vec()));
        more = cursor.prev().unwrap();
    }
    records.reverse();
    assert!(backwards == records, "backward scan differs");
}

fn check_scan(database: &Database, transaction: &impl ReadTransaction, model: &Map, at: &[u8]) {
    let mut cursor = database.cursor(transaction).unwrap();
    if !database.access_method().is_ordered() {
        for refused in [cursor.seek(at), cursor.seek_at_or_before(at)] {
            assert!(matches!(refused, Err(Error::Misuse { .. })), "{refused:?}");
        }
        assert_eq!(database.get(transaction, at).unwrap().as_ref(), model.get(at));
        return;
    }
    let after = model.range(at.to_vec()..).next();
    assert_eq!(cursor.seek(at).unwrap(), after.is_some());
    if let Some((key, value)) = after {
        assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
        let before = model.range(..key.clone()).next_back();
        assert_eq!(cursor.prev().unwrap(), before.is_some());
        assert_eq!(cursor.key(), before.map_or(key, |(key, _)| key));
    }
    let before = model.range(..=at.to_vec()).next_back();
    assert_eq!(cursor.seek_at_or_before(at).unwrap(), before.is_some());
    if let Some((key, _)) = before {
        assert_eq!(cursor.key(), key);
        let next = model
            .range::<[u8], _>((std::ops::Bound::Excluded(&key[..]), std::ops::Bound::Unbounded))
            .next();
        assert_eq!(cursor.next().unwrap(), next.is_some());
    }
}

/// Runs the steps on an environment; everything is checked at the end of each transaction.
fn run(steps: &[Step], options: &Options, method: AccessMethod, in_directory: bool) {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        if in_directory {
            Environment::open(directory.path(), options.clone()).unwrap()
        } else {
            Environment::open_in_memory(options.clone()).unwrap()
        }
    };
    let mut environment = open();
    let mut database = environment.create_database_with("records", method).unwrap();
    let mut committed = Map::new();
    let mut model = Map::new();
    let mut saved: Vec<(quickbeam::Savepoint, Map)> = Vec::new();
    let mut transaction = environment.begin().unwrap();
    for step in steps {
        match step {
            Step::Put(key, value) => {
                database.put(&transaction, key, value).unwrap();
                model.insert(key.clone(), value.clone());
            }
            Step::PutIfAbsent(key, value) => {
                let new = !model.contains_key(key);
                assert_eq!(database.put_if_absent(&transaction, key, value).unwrap(), new);
                model.entry(key.clone()).or_insert_with(|| value.clone());
            }
            Step::Delete(key) => {
                let had = model.remove(key).is_some();
                assert_eq!(database.delete(&transaction, key).unwrap(), had);
            }
            Step::Clear(low, high) if method.is_ordered() => {
                let cleared = database.clear_range(&transaction, &low[..]..&high[..]).unwrap();
                let before = model.len();
                model.retain(|key, _| key < low || key >= high);
                assert_eq!(cleared, (before - model.len()) as u64);
            }
            Step::Clear(low, high) => {
                let refused = database.clear_range(&transaction, &low[..]..&high[..]);
                assert!(matches!(refused, Err(Error::Misuse { .. })), "{refused:?}");
                let cleared = database.clear_range::<&[u8]>(&transaction, ..).unwrap();
                assert_eq!(cleared, model.len() as u64);
                model.clear();
            }
            Step::Get(key) => {
                assert_eq!(database.get(&transaction, key).unwrap().as_ref(), model.get(key));
            }
            Step::Savepoint => saved.push((transaction.savepoint().unwrap(), model.clone())),
            Step::RollBack => {
                if let Some((savepoint, then)) = saved.pop() {
                    transaction.rollback_to(savepoint).unwrap();
                    model = then;
                    check_all(&database, &transaction, &model);
                }
            }
            Step::Commit | Step::Abort | Step::Reopen => {
                check_all(&database, &transaction, &model);
                saved.clear();
                if matches!(step, Step::Abort) {
                    transaction.abort().unwrap();
                    model = committed.clone();
                } else {
                    transaction.commit().unwrap();
                    committed = model.clone();
                }
                if matches!(step, Step::Reopen) && in_directory {
                    environment.close().unwrap();
                    environment = open();
                    database = environment.open_database("records").unwrap();
                }
                let report = environment.verify().unwrap();
                assert_eq!(report.complaints, Vec::<String>::new());
                transaction = environment.begin().unwrap();
                check_all(&database, &transaction, &model);
                // Cursors of a transaction that only reads read ahead.
                check_all(&database, &environment.begin_read().unwrap(), &model);
            }
            Step::Checkpoint => environment.checkpoint().unwrap(),
            Step::Scan(key) => {
                check_scan(&database, &transaction, &model, key);
                check_scan(&database, &environment.begin_read().unwrap(), &committed, key);
            }
        }
    }
    check_all(&database, &transaction, &model);
    transaction.commit().unwrap();
    assert_eq!(environment.verify().unwrap().complaints, Vec::<String>::new());
}

fn run_store(steps: &[Step], options: &Options, method: AccessMethod) {
    let directory = tempfile::tempdir().unwrap();
    let mut store = DataStore::open(directory.path(), options.clone()).unwrap();
    let mut database = store.create_database_with("records", method).unwrap();
    let mut model = Map::new();
    for step in steps {
        match step {
            Step::Put(key, value) => {
                store.put(database, key, value).unwrap();
                model.insert(key.clone(), value.clone());
            }
            Step::PutIfAbsent(key, value) => {
                let new = !model.contains_key(key);
                assert_eq!(store.put_if_absent(database, key, value).unwrap(), new);
                model.entry(key.clone()).or_insert_with(|| value.clone());
            }
            Step::Delete(key) => {
                assert_eq!(store.delete(database, key).unwrap(), model.remove(key).is_some());
            }
            Step::Get(key) | Step::Scan(key) => {
                assert_eq!(store.get(database, key).unwrap().as_ref(), model.get(key));
            }
            Step::Reopen => {
                store.close().unwrap();
                store = DataStore::open(directory.path(), options.clone()).unwrap();
                database = store.open_database("records").unwrap();
            }
            Step::Checkpoint | Step::Commit => store.sync().unwrap(),
            _ => assert_eq!(store.verify().unwrap().complaints, Vec::<String>::new()),
        }
    }
    let mut cursor = store.cursor(database).unwrap();
    let mut records = Vec::new();
    let mut more = cursor.first().unwrap();
    while more {
        records.push((cursor.key().to_vec(), cursor.value().to_vec()));
        more = cursor.next().unwrap();
    }
    let mut backwards = Vec::new();
    let mut more = cursor.last().unwrap();
    while more {
        backwards.push((cursor.key().to_vec(), cursor.value().to_vec()));
        more = cursor.prev().unwrap();
    }
    backwards.reverse();
    assert!(backwards == records, "backward scan differs");
    assert!(records.len() == model.len() && records.into_iter().collect::<Map>() == model);
    // To and fro, with changes at the cursor: the records that it has read ahead stay right.
    let mut cursor = store.cursor(database).unwrap();
    let mut more = cursor.first().unwrap();
    while more {
        let key = cursor.key().to_vec();
        if key.len().is_multiple_of(3) {
            cursor.put(b"changed").unwrap();
            assert_eq!(cursor.value(), b"changed");
            model.insert(key.clone(), b"changed".to_vec());
        } else if key.len().is_multiple_of(7) {
            assert!(cursor.delete().unwrap());
            model.remove(&key);
        }
        if key.last().is_some_and(|byte| byte % 5 == 0) && cursor.prev().unwrap() {
            assert_eq!(model.get(cursor.key()).map(Vec::as_slice), Some(cursor.value()));
            assert!(cursor.next().unwrap() || !model.contains_key(&key));
        }
        more = cursor.next().unwrap();
    }
    let mut cursor = store.cursor(database).unwrap();
    let mut records = Map::new();
    let mut more = cursor.first().unwrap();
    while more {
        records.insert(cursor.key().to_vec(), cursor.value().to_vec());
        more = cursor.next().unwrap();
    }
    assert!(records == model);
    assert_eq!(store.verify().unwrap().complaints, Vec::<String>::new());
}

fn method() -> impl Strategy<Value = AccessMethod> {
    prop::sample::select(vec![AccessMethod::BTree, AccessMethod::Hash, AccessMethod::HashPrefix])
}

fn durability() -> impl Strategy<Value = Durability> {
    prop::sample::select(vec![
        Durability::Sync,
        Durability::WriteNoSync,
        Durability::NoSync,
        Durability::InMemory,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn environment_equals_a_map(
        steps in prop::collection::vec(step(), 1..300),
        page_size in prop::sample::select(vec![4096usize, 8192, 16384, 65536]),
        pages in prop::sample::select(vec![64usize, 80, 1000]),
        durability in durability(),
        method in method(),
        in_directory in any::<bool>(),
    ) {
        run(&steps, &options(page_size, pages, durability), method, in_directory);
    }

    #[test]
    fn data_store_equals_a_map(
        steps in prop::collection::vec(step(), 1..400),
        page_size in prop::sample::select(vec![4096usize, 8192, 16384, 65536]),
        pages in prop::sample::select(vec![64usize, 1000]),
        method in method(),
    ) {
        run_store(&steps, &options(page_size, pages, Durability::Sync), method);
    }
}
