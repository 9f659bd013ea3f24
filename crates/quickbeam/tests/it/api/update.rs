//! Changing a record in one visit: the same as getting and putting it, whatever others do
//! meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{Random, begin, first_seed, memory_environment, records};
use quickbeam::{
    AccessMethod, Database, Environment, Error, Isolation, Transaction, TransactionOptions, Updated,
};

const LEVELS: [Isolation; 3] =
    [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(*value.first_chunk().unwrap())
}

fn add_one(
    database: &Database,
    transaction: &Transaction,
    key: &[u8],
) -> quickbeam::Result<Updated> {
    database.update(transaction, key, |old, new| {
        new.extend_from_slice(&(number(old) + 1).to_le_bytes());
        true
    })
}

fn databases() -> (Environment, Vec<Database>) {
    let (environment, tree) = memory_environment();
    let hashed = environment.create_database_with("hashed", AccessMethod::Hash).unwrap();
    (environment, vec![tree, hashed])
}

#[test]
fn update_equals_get_then_put() {
    let (environment, databases) = databases();
    let random = &mut Random::new(first_seed());
    for database in &databases {
        let mut model = BTreeMap::new();
        for round in 0..60 {
            let transaction = environment.begin().unwrap();
            let mut changed = model.clone();
            for _ in 0..random.below(30) {
                let key = format!("key {:02}", random.below(40)).into_bytes();
                let length = *[0, 5, 300, 2000, 9000].get(random.below(5)).unwrap();
                let value = vec![random.next() as u8; length];
                if random.below(3) == 0 {
                    database.put(&transaction, &key, &value).unwrap();
                    changed.insert(key, value);
                    continue;
                }
                let leave = random.below(4) == 0;
                let mut seen = None;
                let done = database.update(&transaction, &key, |old, new| {
                    assert!(new.is_empty());
                    seen = Some(old.to_vec());
                    new.extend_from_slice(&value);
                    !leave
                });
                let before = changed.get(&key).cloned();
                match done.unwrap() {
                    Updated::Changed => {
                        assert!(!leave && seen == before && seen.is_some());
                        changed.insert(key, value);
                    }
                    Updated::Unchanged => assert!(leave && seen == before && seen.is_some()),
                    Updated::Absent => assert_eq!(before, None),
                    Updated::NotInPlace => {
                        let long = |value: &[u8]| value.len() > 1000;
                        assert!(long(&value) || before.is_some_and(|before| long(&before)));
                    }
                }
            }
            let what = format!("{} round {round}", database.name());
            assert!(records(database, &transaction).unwrap() == changed, "{what}, inside");
            if random.below(3) > 0 {
                transaction.commit().unwrap();
                model = changed;
            } else {
                drop(transaction);
            }
            let transaction = environment.begin_read().unwrap();
            assert!(records(database, &transaction).unwrap() == model, "{what}, after");
        }
    }
}

#[test]
fn concurrent_updates_lose_no_increment() {
    let (environment, databases) = databases();
    for database in &databases {
        for isolation in LEVELS {
            let start = 0_u64.to_le_bytes();
            environment.transact(|t| database.put(t, b"counter", &start)).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..200 {
                            count_once(&environment, database, isolation);
                        }
                    });
                }
            });
            let transaction = environment.begin_read().unwrap();
            let value = database.get(&transaction, b"counter").unwrap().unwrap();
            assert_eq!(number(&value), 800, "{} {isolation:?}", database.name());
        }
    }
}

fn count_once(environment: &Environment, database: &Database, isolation: Isolation) {
    loop {
        let transaction = begin(environment, isolation);
        let done = add_one(database, &transaction, b"counter").and_then(|modified| {
            assert_eq!(modified, Updated::Changed);
            transaction.commit()
        });
        match done {
            Ok(()) => return,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}

#[test]
fn update_without_a_change_is_a_read() {
    let (environment, databases) = databases();
    for database in &databases {
        environment.transact(|t| database.put(t, b"there", &1_u64.to_le_bytes())).unwrap();
        for key in [&b"there"[..], b"absent"] {
            let skewed = begin(&environment, Isolation::Serializable);
            let left = database.update(&skewed, key, |_, _| false).unwrap();
            assert!(matches!(left, Updated::Unchanged | Updated::Absent));
            environment.transact(|t| database.put(t, key, &2_u64.to_le_bytes())).unwrap();
            database.put(&skewed, b"other", b"because of that").unwrap();
            let error = skewed.commit().unwrap_err();
            assert!(matches!(error, Error::SerializationFailure), "{error}");
        }
    }
}

#[test]
fn second_updater_waits_or_conflicts() {
    let (environment, databases) = databases();
    let database = &databases[0];
    environment.transact(|t| database.put(t, b"key", &7_u64.to_le_bytes())).unwrap();
    let late = begin(&environment, Isolation::Snapshot);
    let first = begin(&environment, Isolation::Snapshot);
    add_one(database, &first, b"key").unwrap();
    late.set_lock_timeout(Duration::from_millis(5));
    let error = add_one(database, &late, b"key").unwrap_err();
    assert!(matches!(error, Error::LockTimeout { .. }), "{error}");
    first.commit().unwrap();
    let error = add_one(database, &late, b"key").unwrap_err();
    assert!(matches!(error, Error::WriteConflict), "{error}");
    drop(late);
    let reader = environment.begin_with(TransactionOptions::new().read_only(true)).unwrap();
    assert!(matches!(add_one(database, &reader, b"key"), Err(Error::ReadOnly)));
}

#[test]
fn leaf_changed_during_update_is_detected() {
    let (environment, databases) = databases();
    let database = &databases[0];
    environment.transact(|t| database.put(t, b"key", &0_u64.to_le_bytes())).unwrap();
    let transaction = environment.begin().unwrap();
    let mut calls = 0_u64;
    let done = database.update(&transaction, b"key", |_, new| {
        calls += 1;
        database.put(&transaction, b"key", &calls.to_le_bytes()).unwrap();
        new.extend_from_slice(b"of what was before");
        true
    });
    assert_eq!(done.unwrap(), Updated::NotInPlace);
    let value = database.get(&transaction, b"key").unwrap().unwrap();
    assert_eq!(number(&value), calls);
    // Others may do so once without being in the way.
    let mut first = true;
    let done = database.update(&transaction, b"key", |old, new| {
        if std::mem::take(&mut first) {
            database.put(&transaction, b"key", &100_u64.to_le_bytes()).unwrap();
        }
        new.extend_from_slice(&(number(old) + 1).to_le_bytes());
        true
    });
    assert_eq!(done.unwrap(), Updated::Changed);
    let value = database.get(&transaction, b"key").unwrap().unwrap();
    assert_eq!(number(&value), 101);
}
