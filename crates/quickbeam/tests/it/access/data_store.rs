//! The Data Store: what was synced last is there after a crash at any moment, whole; what came
//! after it is not, or is whole too. Its own life beside a plain map is in `model.rs`, damage in
//! `damage.rs`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::faulty::{Call, FaultyVfs};
use crate::common::{Random, Records, assert_same, place, small_options, world_with};
use quickbeam::vfs::Vfs;
use quickbeam::{DataStore, Error, Result};

type All = BTreeMap<String, Records>;

fn open(vfs: Arc<dyn Vfs>) -> Result<DataStore> {
    DataStore::open_in(vfs, Some(place()), small_options())
}

fn contents(store: &mut DataStore) -> All {
    let mut all = All::new();
    for name in store.databases().unwrap() {
        let database = store.open_database(&name).unwrap();
        let mut cursor = store.cursor(database).unwrap();
        let mut records = Records::new();
        while cursor.next().unwrap() {
            records.insert(cursor.key().to_vec(), cursor.value().to_vec());
        }
        all.insert(name, records);
    }
    all
}

/// One random change, made in the model as well.
fn change(random: &mut Random, store: &mut DataStore, all: &mut All) -> Result<()> {
    let name = format!("database {}", random.below(3));
    if random.chance(4) && all.contains_key(&name) {
        store.drop_database(&name)?;
        all.remove(&name);
        return Ok(());
    }
    let database = store.open_or_create_database(&name)?;
    let records = all.entry(name).or_default();
    let key = format!("{:03}", random.below(80)).into_bytes();
    if random.chance(25) {
        let deleted = store.delete(database, &key)?;
        assert_eq!(deleted, records.remove(&key).is_some());
    } else {
        let longest = [40, 700, 12_000][random.below(3)];
        let value = vec![random.next() as u8; random.below(longest)];
        store.put(database, &key, &value)?;
        records.insert(key, value);
    }
    Ok(())
}

fn assert_all(found: &All, expected: &All, what: &str) {
    assert!(found.keys().eq(expected.keys()), "{what}: {:?}", found.keys());
    for (name, records) in found {
        assert_same(records, &expected[name], &format!("{what}, {name}"));
    }
}

#[test]
fn crash_between_syncs_leaves_the_last_sync() {
    let first = crate::common::first_seed();
    println!("first seed {first}");
    for seed in first..first + 20 {
        let mut random = Random::new(seed);
        let mut vfs = FaultyVfs::in_memory();
        let mut store = open(vfs.clone()).unwrap();
        let mut synced = All::new();
        for round in 0..12 {
            let mut state = synced.clone();
            for _ in 0..random.below(120) {
                change(&mut random, &mut store, &mut state).unwrap();
            }
            let what = format!("seed {seed}, round {round}");
            match random.below(4) {
                0 => {
                    // Without a sync: what was put out to the file meanwhile is of no account.
                    vfs = world_with(&vfs.files(place()), place());
                    std::mem::forget(store);
                }
                1 => {
                    store.sync().unwrap();
                    vfs = world_with(&vfs.files(place()), place());
                    std::mem::forget(store);
                    synced = state;
                }
                2 => {
                    store.close().unwrap();
                    synced = state;
                }
                _ => {
                    drop(store);
                    synced = state;
                }
            }
            store = open(vfs.clone()).unwrap();
            assert_all(&contents(&mut store), &synced, &what);
            assert_eq!(store.verify().unwrap().complaints, Vec::<String>::new(), "{what}");
        }
    }
}

/// The world stops at each of its changes in turn: opening and what is there are right every time.
#[test]
fn crash_at_any_write_leaves_the_last_or_current_sync() {
    for steps in 0.. {
        let inner = FaultyVfs::in_memory();
        let vfs = FaultyVfs::new(inner.clone());
        vfs.stop_after(steps);
        // What was synced, and what the sync under way, if any, would make of it.
        let states = RefCell::new((All::new(), All::new()));
        let mut random = Random::new(77);
        let mut live = || -> Result<()> {
            let mut store = open(vfs.clone())?;
            for _ in 0..4 {
                let mut state = states.borrow().0.clone();
                for _ in 0..25 {
                    change(&mut random, &mut store, &mut state)?;
                }
                states.borrow_mut().1 = state.clone();
                store.sync()?;
                states.borrow_mut().0 = state;
            }
            store.close()
        };
        let lived = live();
        if let Err(error) = &lived {
            assert!(matches!(error, Error::Io { .. }), "after {steps} steps: {error}");
        }
        let mut store = open(world_with(&inner.files(place()), place())).unwrap();
        let found = contents(&mut store);
        let (synced, under_way) = states.into_inner();
        let expected = if found == under_way { &under_way } else { &synced };
        assert_all(&found, expected, &format!("after {steps} steps"));
        assert_eq!(store.verify().unwrap().complaints, Vec::<String>::new());
        if lived.is_ok() {
            assert!(steps > 20, "a life took {steps} steps");
            return;
        }
    }
}

/// After a failed sync nothing more is taken; the last synced state is there when the store is
/// opened again.
#[test]
fn failed_sync_stops_changes() {
    let vfs = FaultyVfs::in_memory();
    let mut store = open(vfs.clone()).unwrap();
    let database = store.create_database("data").unwrap();
    store.put(database, b"key", b"synced").unwrap();
    store.sync().unwrap();
    store.put(database, b"key", b"lost").unwrap();
    vfs.set_rule(|call, _| {
        (call == crate::common::faulty::Call::Sync)
            .then(|| std::io::Error::other("the device is broken"))
    });
    assert!(matches!(store.sync(), Err(Error::Io { .. })));
    vfs.clear_rule();
    assert!(matches!(store.put(database, b"key", b"later"), Err(Error::Failed { .. })));
    assert!(matches!(store.sync(), Err(Error::Failed { .. })));
    assert_eq!(store.get(database, b"key").unwrap().unwrap(), b"lost");
    drop(store);
    let mut store = open(vfs).unwrap();
    let found = contents(&mut store).remove("data").unwrap();
    assert!([&b"synced"[..], b"lost"].contains(&&found[&b"key"[..]][..]));
}

/// Each read and write of a run of changes fails once. The change that fails has no effect: it
/// leaves no part of a long value and no tree without a name, and later calls succeed.
#[test]
fn failed_change_has_no_effect() {
    let options = small_options().cache_size(64 * 4096);
    let mut refused = 0;
    for number in 0.. {
        let vfs = FaultyVfs::in_memory();
        let opened = DataStore::open_in(vfs.clone(), Some(place()), options.clone());
        let mut store = opened.unwrap();
        let mut all = All::new();
        let mut random = Random::new(5);
        // More than the cache holds, so that changes read and write.
        for name in ["database 0", "database 1", "database 2"] {
            let database = store.create_database(name).unwrap();
            for key in 0..30 {
                let (key, value) = (format!("{key:03}").into_bytes(), vec![key as u8; 9000]);
                store.put(database, &key, &value).unwrap();
                all.entry(name.to_owned()).or_default().insert(key, value);
            }
        }
        store.sync().unwrap();
        let left = Arc::new(AtomicUsize::new(number));
        let count = left.clone();
        vfs.set_rule(move |call, _| {
            let counts = matches!(call, Call::Read | Call::Write { .. });
            let fails = counts && count.fetch_sub(1, Ordering::SeqCst) == 0;
            fails.then(|| std::io::Error::other("the device is broken"))
        });
        for _ in 0..150 {
            let mut after = all.clone();
            match change(&mut random, &mut store, &mut after) {
                Ok(()) => all = after,
                Err(Error::Io { .. }) => {
                    refused += 1;
                    // A database that was to be made first may have been.
                    for name in store.databases().unwrap() {
                        all.entry(name).or_default();
                    }
                }
                Err(error) => panic!("call {number}: {error}"),
            }
        }
        vfs.clear_rule();
        let what = format!("after call {number} failed");
        assert_all(&contents(&mut store), &all, &what);
        assert_eq!(store.verify().unwrap().complaints, Vec::<String>::new(), "{what}");
        store.close().unwrap();
        let mut store = DataStore::open_in(vfs, Some(place()), options.clone()).unwrap();
        assert_all(&contents(&mut store), &all, &what);
        assert_eq!(store.verify().unwrap().complaints, Vec::<String>::new(), "{what}");
        if left.load(Ordering::SeqCst) < usize::MAX / 2 {
            break;
        }
    }
    assert!(refused > 10, "only {refused} changes met a call that failed");
}
