//! Scans by leaf: the same records as a map holds, in both directions, whatever happens between two
//! batches.

use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;
use quickbeam::query_layer::{DatabaseExt, IntField, IntRange, Scan, ScanBatch, TransactionExt};
use quickbeam::{
    AccessMethod, Database, Environment, Isolation, Options, ReadTransaction, TransactionOptions,
};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn environment() -> Environment {
    let options = Options::new().durability(quickbeam::Durability::InMemory).page_size(4096);
    Environment::open_in_memory(options).unwrap()
}

fn read_all(
    database: &Database,
    transaction: &impl ReadTransaction,
    scan: &mut Scan,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut batch = ScanBatch::default();
    let mut found = Vec::new();
    while database.scan(transaction, scan, &mut batch).unwrap() {
        assert!(!batch.is_empty());
        found.extend((0..batch.len()).map(|i| (batch.key(i).to_vec(), batch.value(i).to_vec())));
    }
    assert!(
        !database.scan(transaction, scan, &mut batch).unwrap(),
        "a finished scan stays finished"
    );
    found
}

fn bound() -> impl Strategy<Value = Bound<Vec<u8>>> {
    let key = prop_oneof![
        (0u32..1200).prop_map(|n| format!("{n:04}").into_bytes()),
        prop::collection::vec(any::<u8>(), 0..3),
    ];
    prop_oneof![
        Just(Bound::Unbounded),
        key.clone().prop_map(Bound::Included),
        key.prop_map(Bound::Excluded),
    ]
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(|bytes| &bytes[..])
}

fn in_range(key: &[u8], low: &Bound<Vec<u8>>, high: &Bound<Vec<u8>>) -> bool {
    let above = match low {
        Bound::Included(low) => key >= &low[..],
        Bound::Excluded(low) => key > &low[..],
        Bound::Unbounded => true,
    };
    above
        && match high {
            Bound::Included(high) => key <= &high[..],
            Bound::Excluded(high) => key < &high[..],
            Bound::Unbounded => true,
        }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn scan_equals_a_map(
        count in 0u32..900, gone in prop::collection::vec(0u32..900, 0..60), long in prop::collection::vec(0u32..900, 0..6),
        ranges in prop::collection::vec((bound(), bound(), any::<bool>(), prop_oneof![Just(usize::MAX), 1usize..50]), 1..12),
        serializable in any::<bool>(),
    ) {
        let environment = environment();
        let database = environment.create_database("d").unwrap();
        let mut model = Model::new();
        let transaction = environment.begin().unwrap();
        for n in 0..count {
            let key = format!("{n:04}").into_bytes();
            let value = vec![n as u8; if long.contains(&n) { 9000 } else { 20 + (n % 50) as usize }];
            database.put(&transaction, &key, &value).unwrap();
            model.insert(key, value);
        }
        transaction.commit().unwrap();
        // Some records are gone, or are changed in the transaction that scans.
        let isolation = Some(if serializable { Isolation::Serializable } else { Isolation::ReadCommitted });
        let transaction = environment.begin_with(TransactionOptions::new().isolation(isolation)).unwrap();
        for n in &gone {
            let key = format!("{n:04}").into_bytes();
            if n % 2 == 0 {
                database.delete(&transaction, &key).unwrap();
                model.remove(&key);
            } else {
                database.put(&transaction, &key, b"changed").unwrap();
                model.insert(key, b"changed".to_vec());
            }
        }
        for (low, high, backward, limit) in &ranges {
            let mut expected: Vec<_> = model.iter().filter(|(key, _)| in_range(key, low, high))
                .map(|(key, value)| (key.clone(), value.clone())).collect();
            let mut scan = Scan::new(as_slice(low), as_slice(high)).record_limit(*limit);
            if *backward {
                scan = scan.backward();
                expected.reverse();
            }
            prop_assert_eq!(read_all(&database, &transaction, &mut scan), expected);
        }
        transaction.commit().unwrap();
    }
}

/// Keys of several lengths, in the order of their numbers.
fn long_key(n: usize) -> Vec<u8> {
    let mut key = (n as u32).to_be_bytes().to_vec();
    key.resize(4 + n % 7 / 2 * 3, 7);
    key
}

/// A value of that form with a number of four bytes and one of two in it.
fn row(form: u16, number: i32, small: i16, rest: usize) -> Vec<u8> {
    let mut value = form.to_le_bytes().to_vec();
    value.push(0);
    value.extend_from_slice(&number.to_le_bytes());
    value.extend_from_slice(&small.to_le_bytes());
    value.resize(value.len() + rest, 9);
    value
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn filtered_scan_never_drops_a_matching_record(
        rows in prop::collection::vec((1u16..3, -50i32..50, -9i16..9, prop_oneof![Just(0usize), 10usize..90, Just(9000usize)]), 1..300),
        changed in prop::collection::vec((0usize..300, -50i32..50), 0..20),
        windows in prop::collection::vec((-60i64..60, 0i64..40, -10i64..10, 0i64..9), 1..6),
        backward in any::<bool>(), odd in any::<bool>(),
    ) {
        let environment = environment();
        let database = environment.create_database("d").unwrap();
        let mut model = Model::new();
        environment.transact(|transaction| {
            for (n, (form, number, small, rest)) in rows.iter().enumerate() {
                database.put(transaction, &long_key(n), &row(*form, *number, *small, *rest))?;
            }
            Ok(())
        }).unwrap();
        for (n, (form, number, small, rest)) in rows.iter().enumerate() {
            model.insert(long_key(n), row(*form, *number, *small, *rest));
        }
        let before = environment.begin_read().unwrap();
        let old = model.clone();
        let transaction = environment.begin().unwrap();
        for (n, number) in &changed {
            let key = long_key(*n);
            database.put(&transaction, &key, &row(1, *number, 0, 5)).unwrap();
            model.insert(key, row(1, *number, 0, 5));
        }
        for (low, more, low_small, more_small) in &windows {
            for (transaction, model) in [(&transaction, &model), (before.as_transaction(), &old)] {
                let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded);
                if backward {
                    scan = scan.backward();
                }
                scan.filter_ints(1, [
                    IntRange { at: 3, width: 4, low: *low, high: low + more, members: None },
                    IntRange {
                        at: 7, width: 2, low: *low_small, high: low_small + more_small,
                        members: odd.then(|| vec![0xaaaa_aaaa_aaaa_aaaa].into()),
                    },
                ]);
                let wanted = |value: &[u8]| {
                    let number = i64::from(i32::from_le_bytes(*value[3..].first_chunk().unwrap()));
                    let small = i64::from(i16::from_le_bytes(*value[7..].first_chunk().unwrap()));
                    value[0] != 1 || ((*low..=low + more).contains(&number)
                        && (*low_small..=low_small + more_small).contains(&small)
                        && (!odd || (small - low_small) % 2 == 1))
                };
                let mut found = Vec::new();
                let mut batch = ScanBatch::default();
                while database.scan(transaction, &mut scan, &mut batch).unwrap() {
                    let first = found.len();
                    found.extend((0..batch.len()).map(|i| (batch.key(i).to_vec(), batch.value(i).to_vec())));
                    let inside = |(_, value): &(Vec<u8>, Vec<u8>)| value[0] == 1 && wanted(value);
                    prop_assert!(!batch.is_exact() || found[first..].iter().all(inside));
                }
                let numbers_of = |value: &[u8]| {
                    let number = i32::from_le_bytes(*value[3..].first_chunk().unwrap());
                    (i64::from(number), i64::from(i16::from_le_bytes(*value[7..].first_chunk().unwrap())))
                };
                // The same, with numbers where the scan delivers them. Values of another form come
                // as records.
                let mut as_numbers = Vec::new();
                scan.restart(Bound::Unbounded, Bound::Unbounded);
                scan.project_ints(1, [IntField { at: 3, width: 4 }, IntField { at: 7, width: 2 }]);
                while database.scan(transaction, &mut scan, &mut batch).unwrap() {
                    prop_assert_eq!(batch.rows().min(batch.len()), 0);
                    prop_assert_eq!((batch.column(0).len(), batch.column(1).len()), (batch.rows(), batch.rows()));
                    as_numbers.extend(batch.column(0).iter().copied().zip(batch.column(1).iter().copied()));
                    let wanted = (0..batch.len()).map(|i| batch.value(i)).filter(|value| wanted(value));
                    as_numbers.extend(wanted.map(numbers_of));
                }
                let told: Vec<_> =
                    found.iter().filter(|(_, value)| wanted(value)).map(|(_, value)| numbers_of(value)).collect();
                prop_assert_eq!(as_numbers, told);
                if backward {
                    found.reverse();
                }
                let is_changed = |key: &[u8]| changed.iter().any(|(n, _)| long_key(*n) == key);
                for (key, value) in &found {
                    prop_assert_eq!(Some(value), model.get(key));
                    prop_assert!(wanted(value) || is_changed(key) || value.len() > 2000, "{:?}", key);
                }
                found.retain(|(_, value)| wanted(value));
                let expected: Vec<_> =
                    model.iter().filter(|(_, value)| wanted(value)).map(|(k, v)| (k.clone(), v.clone())).collect();
                prop_assert_eq!(found, expected);
            }
        }
        transaction.abort().unwrap();
    }

    #[test]
    fn get_each_finds_what_get_finds(
        count in 0u32..900, gone in prop::collection::vec(0u32..900, 0..60),
        long in prop::collection::vec(0u32..900, 0..4), asked in prop::collection::vec(0u32..1000, 0..90),
        method in prop::sample::select(vec![AccessMethod::BTree, AccessMethod::Hash]),
    ) {
        let environment = environment();
        let database = environment.create_database_with("d", method).unwrap();
        let key = |n: u32| format!("{n:04}").into_bytes();
        let transaction = environment.begin().unwrap();
        for n in 0..count {
            let length = if long.contains(&n) { 9_000 } else { n as usize % 50 };
            database.put(&transaction, &key(n), &vec![n as u8; length]).unwrap();
        }
        transaction.commit().unwrap();
        let before = environment.begin_read().unwrap();
        let transaction = environment.begin().unwrap();
        for n in &gone {
            database.delete(&transaction, &key(*n)).unwrap();
        }
        let asked: Vec<Vec<u8>> = asked.into_iter().map(key).collect();
        let keys: Vec<&[u8]> = asked.iter().map(|key| &key[..]).collect();
        let mut found = Vec::new();
        let mut visit = |nth: usize, value: Option<&[u8]>| found.push((nth, value.map(<[u8]>::to_vec)));
        database.get_each(&transaction, &keys, &mut Vec::new(), &mut visit).unwrap();
        let own = |key: &Vec<u8>| database.get(&transaction, key).unwrap();
        prop_assert_eq!(&found, &asked.iter().map(own).enumerate().collect::<Vec<_>>());
        transaction.commit().unwrap();
        let mut found = Vec::new();
        let mut visit = |nth: usize, value: Option<&[u8]>| found.push((nth, value.map(<[u8]>::to_vec)));
        database.get_each(&before, &keys, &mut Vec::new(), &mut visit).unwrap();
        let old = |key: &Vec<u8>| database.get(&before, key).unwrap();
        prop_assert_eq!(&found, &asked.iter().map(old).enumerate().collect::<Vec<_>>());
    }

    #[test]
    fn append_stops_at_the_first_existing_key(
        here in prop::collection::btree_map(prop::collection::vec(any::<u8>(), 0..6), 0usize..200, 0..60),
        more in prop::collection::btree_map(prop::collection::vec(any::<u8>(), 0..9), prop_oneof![0usize..300, Just(9000usize)], 0..200),
        behind in any::<bool>(), savepoint in any::<bool>(), commit in any::<bool>(),
    ) {
        let environment = environment();
        let database = environment.create_database("d").unwrap();
        let mut model = Model::new();
        let transaction = environment.begin().unwrap();
        for (key, length) in &here {
            database.put(&transaction, key, &vec![1; *length]).unwrap();
            model.insert(key.clone(), vec![1; *length]);
        }
        transaction.commit().unwrap();
        let transaction = environment.begin().unwrap();
        let point = transaction.savepoint().unwrap();
        let records: Vec<(Vec<u8>, Vec<u8>)> = more.iter().map(|(key, length)| {
            let prefix: &[u8] = if behind { &[255; 7] } else { &[] };
            ([prefix, key].concat(), vec![2; *length])
        }).collect();
        let borrowed: Vec<(&[u8], &[u8])> = records.iter().map(|(k, v)| (&k[..], &v[..])).collect();
        let before = model.clone();
        let expected = records.iter().take_while(|(key, _)| !before.contains_key(key)).count();
        prop_assert_eq!(database.append(&transaction, &borrowed).unwrap(), expected);
        model.extend(records.into_iter().take(expected));
        let mut everything = Scan::new(Bound::Unbounded, Bound::Unbounded);
        prop_assert_eq!(read_all(&database, &transaction, &mut everything), model.clone().into_iter().collect::<Vec<_>>());
        if savepoint {
            transaction.rollback_to(point).unwrap();
            model = before.clone();
        }
        if commit {
            transaction.commit().unwrap();
        } else {
            transaction.abort().unwrap();
            model = before;
        }
        let reader = environment.begin_read().unwrap();
        let mut everything = Scan::new(Bound::Unbounded, Bound::Unbounded);
        prop_assert_eq!(read_all(&database, &reader, &mut everything), model.into_iter().collect::<Vec<_>>());
        drop(reader);
        environment.checkpoint().unwrap();
        prop_assert!(environment.verify().is_ok());
    }
}

#[test]
fn value_limit_cuts_inline_values_only() {
    let environment = environment();
    let database = environment.create_database("d").unwrap();
    let transaction = environment.begin().unwrap();
    database.put(&transaction, b"a", &[1; 100]).unwrap();
    database.put(&transaction, b"b", &[2; 20_000]).unwrap();
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded).value_limit(10).without_keys();
    let mut batch = ScanBatch::default();
    assert!(database.scan(&transaction, &mut scan, &mut batch).unwrap());
    assert_eq!((batch.value(0), batch.value(1)), (&[1u8; 10][..], &[2u8; 20_000][..]));
    assert!(batch.key(0).is_empty());
}

#[test]
fn change_of_a_scanned_record_fails_the_commit() {
    let environment = environment();
    let database = environment.create_database("d").unwrap();
    environment.transact(|t| database.put(t, b"k3", b"x")).unwrap();
    for (key, fails) in [(&b"k2"[..], true), (b"k9", false)] {
        let transaction = environment.begin().unwrap();
        let mut scan = Scan::new(Bound::Included(b"k1"), Bound::Excluded(b"k5"));
        read_all(&database, &transaction, &mut scan);
        database.put(&transaction, b"mine", key).unwrap();
        environment.transact(|t| database.put(t, key, b"y")).unwrap();
        assert_eq!(transaction.commit().is_err(), fails);
    }
}

#[test]
fn own_changes_do_not_hide_a_conflict_in_an_old_leaf() {
    let environment = environment();
    let database = environment.create_database("d").unwrap();
    let key = |n: u32| n.to_be_bytes();
    environment
        .transact(|t| (0..4000).try_for_each(|n| database.put(t, &key(n), &[1; 50])))
        .unwrap();
    // Another transaction changes that record, before or after this one changes its own ones, each
    // twice and in turns.
    for (other, before, fails) in [
        (None, true, false),
        (Some(7), true, true),
        (Some(7), false, true),
        (Some(2001), false, true),
    ] {
        let transaction = environment.begin().unwrap();
        let mut everything = Scan::new(Bound::Unbounded, Bound::Unbounded);
        assert_eq!(read_all(&database, &transaction, &mut everything).len(), 4000);
        let contradict = || {
            if let Some(other) = other {
                environment.transact(|t| database.put(t, &key(other), &[2; 50])).unwrap();
            }
        };
        if before {
            contradict();
        }
        for number in [3, 2003, 4, 2004, 3] {
            database.put(&transaction, &key(number), &[3; 50]).unwrap();
            assert!(database.get(&transaction, &key(number + 1)).unwrap().is_some());
        }
        if !before {
            contradict();
        }
        assert_eq!(transaction.commit().is_err(), fails, "{other:?}");
    }
}

#[test]
fn read_committed_statement_reads_one_snapshot() {
    let environment = environment();
    let database = environment.create_database("d").unwrap();
    environment.transact(|t| database.put(t, b"k", b"old")).unwrap();
    let options = TransactionOptions::new().isolation(Isolation::ReadCommitted);
    let transaction = environment.begin_with(options).unwrap();
    transaction.begin_statement();
    assert_eq!(database.get(&transaction, b"k").unwrap().unwrap(), b"old");
    environment.transact(|t| database.put(t, b"k", b"new")).unwrap();
    assert_eq!(database.get(&transaction, b"k").unwrap().unwrap(), b"old");
    let mut value = Vec::new();
    assert!(database.get_for_update(&transaction, b"k", &mut value).unwrap());
    assert_eq!(value, b"new", "who is about to change a record is shown its newest version");
    transaction.end_statement();
    assert_eq!(database.get(&transaction, b"k").unwrap().unwrap(), b"new");
}

#[test]
fn locked_record_excludes_writers_and_stays_unchanged() {
    let environment = environment();
    let database = environment.create_database("d").unwrap();
    let long = vec![7u8; 30_000];
    environment
        .transact(|t| database.put(t, b"long", &long).and_then(|()| database.put(t, b"k", b"v")))
        .unwrap();
    for commit in [true, false, true] {
        let transaction = environment.begin().unwrap();
        let mut value = Vec::new();
        assert!(database.get_for_update(&transaction, b"long", &mut value).unwrap());
        assert_eq!(value, long);
        assert!(database.get_for_update(&transaction, b"k", &mut value).unwrap());
        assert!(!database.get_for_update(&transaction, b"none", &mut value).unwrap());
        let timeout = Some(std::time::Duration::from_millis(20));
        let other =
            environment.begin_with(TransactionOptions::new().lock_timeout(timeout)).unwrap();
        assert!(matches!(
            database.put(&other, b"k", b"w"),
            Err(quickbeam::Error::LockTimeout { .. })
        ));
        other.abort().unwrap();
        if commit {
            transaction.commit().unwrap();
        } else {
            transaction.abort().unwrap();
        }
        let reader = environment.begin_read().unwrap();
        assert_eq!(database.get(&reader, b"long").unwrap().unwrap(), long);
    }
    let transaction = environment.begin().unwrap();
    database.get_for_update(&transaction, b"long", &mut Vec::new()).unwrap();
    database.put(&transaction, b"long", b"short").unwrap();
    transaction.commit().unwrap();
    environment.checkpoint().unwrap();
    assert!(environment.verify().is_ok());
}

#[test]
fn released_savepoint_is_refused() {
    let environment = environment();
    let database = environment.create_database("d").unwrap();
    let transaction = environment.begin().unwrap();
    let outer = transaction.savepoint().unwrap();
    database.put(&transaction, b"a", b"1").unwrap();
    let inner = transaction.savepoint().unwrap();
    database.put(&transaction, b"a", b"2").unwrap();
    transaction.release_savepoint(inner);
    assert!(transaction.rollback_to(inner).is_err());
    assert_eq!(database.get(&transaction, b"a").unwrap().unwrap(), b"2");
    transaction.rollback_to(outer).unwrap();
    assert!(database.get(&transaction, b"a").unwrap().is_none());
}

/// A checkpoint writes a leaf without its dead records. When the leaf is evicted and read back, the
/// records after them have other positions.
#[test]
fn cursor_skips_no_record_of_a_purged_leaf() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::new().page_size(4096).cache_size(64 * 4096);
    let environment = Environment::open(directory.path(), options).unwrap();
    let records = environment.create_database("records").unwrap();
    let other = environment.create_database("other").unwrap();
    let put = |database: &Database, key: u32, value: &[u8]| {
        environment.transact(|t| database.put(t, &key.to_be_bytes(), value)).unwrap();
    };
    (0..20).for_each(|key| put(&records, key, b"value"));
    (0..400).for_each(|key| put(&other, key, &[7; 1500]));
    environment.transact(|t| records.delete(t, &5u32.to_be_bytes())).unwrap();

    let reader = environment.begin_read().unwrap();
    let mut cursor = records.cursor(&reader).unwrap();
    assert!(cursor.seek(&10u32.to_be_bytes()).unwrap());
    environment.checkpoint().unwrap();
    let scanned = other.iter(&reader).map(Result::unwrap).count();
    assert_eq!(scanned, 400);
    assert!(cursor.next().unwrap());
    assert_eq!(cursor.key(), 11u32.to_be_bytes());
}
