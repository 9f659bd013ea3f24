//! Recovery itself: again and again, stopped at any of its steps, after lives that were stopped at
//! any of theirs, and with another durability at each opening. A world that stands still after so
//! many changes plays the crash.

use super::long_scene;
use crate::common::faulty::FaultyVfs;
use crate::common::{
    Files, Random, Records, contents, open_files, place, small_options, world_with,
};
use quickbeam::{Durability, Environment, Result};

/// Recoveries that are never followed by a clean close: each finds what the one before found.
#[test]
fn repeated_recovery_is_idempotent() {
    for durability in [Durability::Sync, Durability::NoSync] {
        let options = small_options().durability(durability);
        let mut files = Files::new();
        let mut state = Records::new();
        for round in 0..8u8 {
            let vfs = world_with(&files, place());
            let open = || Environment::open_in(vfs.clone(), Some(place()), options.clone());
            let environment = open().unwrap();
            environment.open_or_create_database("data").unwrap();
            let all = contents(&environment).unwrap();
            crate::common::assert_same(&all["data"], &state, &format!("round {round}"));
            crate::common::assert_sound(&environment);
            if round % 3 == 2 {
                let database = environment.open_database("data").unwrap();
                environment.transact(|t| database.put(t, &[round], b"more")).unwrap();
                environment.checkpoint().unwrap();
                environment.transact(|t| database.put(t, b"round", &[round])).unwrap();
                state.insert(vec![round], b"more".to_vec());
                state.insert(b"round".to_vec(), vec![round]);
                std::thread::sleep(std::time::Duration::from_millis(250));
            }
            files = vfs.files(place());
        }
        // Then closed and opened, twice in a row.
        let vfs = world_with(&files, place());
        for _ in 0..2 {
            let opened = Environment::open_in(vfs.clone(), Some(place()), options.clone());
            let environment = opened.unwrap();
            crate::common::assert_same(&contents(&environment).unwrap()["data"], &state, "closed");
            environment.close().unwrap();
        }
    }
}

/// A crash at any of recovery's own writes, flushes and renamings.
#[test]
fn crash_during_recovery_loses_nothing() {
    let (files, options, last) = long_scene();
    let mut steps = 0;
    loop {
        let inner = world_with(&files, place());
        let vfs = FaultyVfs::new(inner.clone());
        vfs.stop_after(steps);
        let opened = Environment::open_in(vfs, Some(place()), options.clone());
        let done = opened.is_ok();
        drop(opened);
        let again = open_files(&inner.files(place()), &options);
        let again = again.unwrap_or_else(|error| panic!("after {steps} steps: {error}"));
        let all = contents(&again).unwrap();
        crate::common::assert_same(&all["data"], &last, &format!("after {steps} steps"));
        crate::common::assert_sound(&again);
        if done {
            break;
        }
        steps += 1;
    }
    assert!(steps > 5, "recovery took {steps} steps");
}

/// A crash at any step of a life: opening, making a database, commits, a checkpoint, closing.
#[test]
fn crash_at_any_write_keeps_acknowledged_commits() {
    let options = small_options();
    for steps in 0.. {
        let inner = FaultyVfs::in_memory();
        let vfs = FaultyVfs::new(inner.clone());
        vfs.stop_after(steps);
        let acknowledged = std::cell::RefCell::new(Records::new());
        let live = || -> Result<()> {
            let environment = Environment::open_in(vfs.clone(), Some(place()), options.clone())?;
            let database = environment.create_database("data")?;
            for round in 0..6u8 {
                let key = vec![round % 4];
                let value = vec![round; 100 + 3000 * usize::from(round % 2)];
                environment.transact(|t| database.put(t, &key, &value))?;
                acknowledged.borrow_mut().insert(key, value);
                if round % 2 == 1 {
                    environment.checkpoint()?;
                }
            }
            environment.close()
        };
        let lived = live();
        let environment = open_files(&inner.files(place()), &options)
            .unwrap_or_else(|error| panic!("after {steps} steps: {error}"));
        let found = contents(&environment).unwrap().remove("data").unwrap_or_default();
        for (key, value) in acknowledged.borrow().iter() {
            // The commit under way, which was not acknowledged, may have replaced it.
            let newer = found.get(key).is_some_and(|found| found[0] > value[0]);
            assert!(newer || found.get(key) == Some(value), "after {steps} steps: {key:?}");
        }
        crate::common::assert_sound(&environment);
        if lived.is_ok() {
            assert!(steps > 30, "a life took {steps} steps");
            return;
        }
    }
}

/// Durability may be another one at each opening: the log's positions and what it holds stay in
/// order.
#[test]
fn changed_durability_at_reopening_loses_nothing() {
    let first = crate::common::first_seed();
    println!("first seed {first}");
    let levels =
        [Durability::Sync, Durability::InMemory, Durability::WriteNoSync, Durability::NoSync];
    for seed in first..first + 60 {
        let mut random = Random::new(seed);
        let mut files = Files::new();
        let mut durable = Records::new();
        for round in 0..10 {
            let durability = levels[random.below(4)];
            let options = small_options().durability(durability);
            let vfs = world_with(&files, place());
            let open = Environment::open_in(vfs.clone(), Some(place()), options);
            let environment = open.unwrap_or_else(|e| panic!("seed {seed}, round {round}: {e}"));
            let database = environment.open_or_create_database("data").unwrap();
            let found = contents(&environment).unwrap().remove("data").unwrap();
            crate::common::assert_same(
                &found,
                &durable,
                &format!("seed {seed}, round {round}, {durability}"),
            );
            let mut state = durable.clone();
            let mut at_checkpoint = durable.clone();
            for _ in 0..random.below(6) {
                let (key, value) = (vec![random.below(5) as u8], vec![round; random.below(200)]);
                environment.transact(|t| database.put(t, &key, &value)).unwrap();
                state.insert(key, value);
                if random.chance(20) {
                    environment.checkpoint().unwrap();
                    at_checkpoint = state.clone();
                }
            }
            let survives = [Durability::Sync, Durability::WriteNoSync].contains(&durability);
            if random.chance(50) {
                environment.close().unwrap();
                durable = state;
                files = vfs.files(place());
            } else if survives {
                durable = state;
                files = vfs.files(place());
            } else {
                // The crash may come before the last commits are written: take the checkpoint's
                // state as sure.
                if durability == Durability::NoSync {
                    environment.checkpoint().unwrap();
                    at_checkpoint = state;
                }
                durable = at_checkpoint;
                files = vfs.files(place());
            }
        }
    }
}
