//! A device that is full: nothing acknowledged is lost, reading goes on, and so does everything
//! once there is room. Devices that fail are in `failures.rs`.

use crate::common::faulty::FaultyVfs;
use crate::common::scene::{Mounted, Scene, options};
use crate::common::{Random, Records, assert_same, contents, place};
use quickbeam::vfs::{OpenMode, Vfs};
use quickbeam::{DataStore, Environment, Error, Options};
use std::sync::Arc;

/// Loads the scene until the device is full, three times, and frees space in between. Returns how
/// many calls were refused. The only error is a full device.
fn fill_the_device(seed: u64, options: &Options) -> usize {
    let mut random = Random::new(seed);
    let scene = Scene::new(options);
    for _ in 0..random.below(60) {
        scene.change(&mut random).unwrap();
    }
    let mut refusals = 0;
    for round in 0..3 {
        let what = format!("seed {seed}, round {round}");
        let room = [0, 5000, 100_000, 400_000][random.below(4)];
        scene.vfs.set_limit(scene.vfs.used() + room);
        let mut full = 0;
        for _ in 0..300 {
            let checkpoint = random.chance(3);
            let done =
                if checkpoint { scene.environment.checkpoint() } else { scene.change(&mut random) };
            match done {
                Ok(()) => {}
                Err(Error::DiskFull { .. }) => full += usize::from(!checkpoint),
                Err(error) => panic!("{what}: {error}"),
            }
            if full > 10 {
                break;
            }
        }
        refusals += full;
        scene.vfs.set_limit(u64::MAX);
        scene.environment.checkpoint().unwrap();
        scene.check_reads(&what);
        scene.check_crash(&format!("{what}, crash"));
        for _ in 0..10 {
            scene.change(&mut random).unwrap_or_else(|error| panic!("{what}, after: {error}"));
        }
        scene.check_reads(&what);
        let report = scene.environment.verify().unwrap();
        assert_eq!(report.complaints, Vec::<String>::new(), "{what}");
    }
    scene.environment.checkpoint().unwrap();
    scene.check_crash(&format!("seed {seed}, checkpoint"));
    scene.environment.close().unwrap();
    refusals
}

#[test]
fn full_device_loses_nothing_and_recovers_with_space() {
    let first = crate::common::first_seed();
    println!("first seed {first}");
    // One cache holds everything, in the other nothing can be undone without putting pages out.
    for options in [options().cache_size(4096 * 2000), options()] {
        let refusals: usize = (first..first + 25).map(|seed| fill_the_device(seed, &options)).sum();
        assert!(refusals > 100, "the device was hardly ever full: {refusals}");
    }
}

/// The data is larger than the cache, and every page put out is one that need not be written.
#[test]
fn reads_succeed_on_a_full_device() {
    let options = options().cache_size(4096 * 160);
    let mut random = Random::new(5);
    let scene = Scene::new(&options);
    for _ in 0..200 {
        scene.change(&mut random).unwrap();
    }
    scene.environment.checkpoint().unwrap();
    scene.vfs.set_limit(scene.vfs.used());
    for round in 0..50u8 {
        let changed = scene.environment.transact(|t| scene.database.put(t, b"0001", &[round]));
        match changed {
            Ok(()) => drop(scene.model.borrow_mut().insert(b"0001".to_vec(), vec![round])),
            Err(error) => assert!(matches!(error, Error::DiskFull { .. }), "{error}"),
        }
        scene.check_reads("full");
    }
    assert!(scene.environment.statistics().evictions > 100);
}

/// A call that is refused has changed nothing, and the transaction goes on; also one so large that
/// it leaves for the log.
#[test]
fn change_refused_on_a_full_device_has_no_effect() {
    let first = crate::common::first_seed();
    println!("first seed {first}");
    let mut refused = 0;
    for seed in first..first + 20 {
        let mut random = Random::new(seed);
        let options = options().cache_size(4096 * 600).log_buffer(64 << 10);
        let scene = Scene::new(&options);
        for _ in 0..40 {
            scene.change(&mut random).unwrap();
        }
        let database = &scene.database;
        let mut model = scene.model.borrow().clone();
        let transaction = scene.environment.begin().unwrap();
        scene.vfs.set_limit(scene.vfs.used() + random.below(300_000) as u64);
        for step in 0..400 {
            let what = format!("seed {seed}, step {step}");
            let key = format!("{:04}", random.below(300)).into_bytes();
            let longest = [50, 800, 20_000][random.below(3)];
            let value = vec![random.next() as u8; random.below(longest)];
            let delete = random.chance(10);
            let done = if delete {
                database.delete(&transaction, &key).map(|_| ())
            } else {
                database.put(&transaction, &key, &value)
            };
            match done {
                Ok(()) if delete => drop(model.remove(&key)),
                Ok(()) => drop(model.insert(key.clone(), value)),
                Err(Error::DiskFull { .. }) => refused += 1,
                Err(error) => panic!("{what}: {error}"),
            }
            if let Ok(found) = database.get(&transaction, &key) {
                assert!(found.as_ref() == model.get(&key), "{what}: not what it was");
            }
        }
        scene.vfs.set_limit(u64::MAX);
        let found = crate::common::records(database, &transaction).unwrap();
        assert_same(&found, &model, &format!("seed {seed}"));
        transaction.commit().unwrap();
        *scene.model.borrow_mut() = model;
        scene.check_reads(&format!("seed {seed}, committed"));
        scene.check_crash(&format!("seed {seed}, crash"));
        crate::common::assert_sound(&scene.environment);
    }
    assert!(refused > 50, "{refused}");
}

/// Rolling back to a savepoint needs pages that have been put out, in a cache full of changed ones:
/// there is always room for that (POOL-5).
#[test]
fn savepoint_rollback_succeeds_on_a_full_device() {
    let first = crate::common::first_seed();
    println!("first seed {first}");
    for seed in first..first + 20 {
        let mut random = Random::new(seed);
        let scene = Scene::new(&options());
        for _ in 0..60 {
            scene.change(&mut random).unwrap();
        }
        let what = format!("seed {seed}");
        let database = scene.database.clone();
        let transaction = scene.environment.begin().unwrap();
        let put = |random: &mut Random, byte: u8| {
            for _ in 0..150 {
                let key = format!("{:04}", random.below(300)).into_bytes();
                let value = vec![byte; 100 + random.below(800)];
                if database.put(&transaction, &key, &value).is_err() {
                    return;
                }
            }
        };
        put(&mut random, 1);
        let savepoint = transaction.savepoint().unwrap();
        let before = crate::common::records(&database, &transaction).unwrap();
        put(&mut random, 2);
        scene.vfs.set_limit(scene.vfs.used());
        put(&mut random, 3);
        transaction.rollback_to(savepoint).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = crate::common::records(&database, &transaction).unwrap();
        assert_same(&found, &before, &what);
        scene.vfs.set_limit(u64::MAX);
        transaction.commit().unwrap();
        *scene.model.borrow_mut() = before;
        scene.environment.checkpoint().unwrap();
        scene.check_reads(&what);
        scene.check_crash(&what);
    }
}

#[test]
fn concurrent_writers_survive_a_full_device() {
    let seed = crate::common::first_seed();
    println!("seed {seed}");
    let scene = Scene::new(&options().cache_size(4096 * 2000));
    let (environment, database) = (&scene.environment, &scene.database);
    scene.vfs.set_limit(scene.vfs.used() + 500_000);
    let work = |thread: u8| {
        let mut random = Random::new(seed + u64::from(thread));
        let mut own = Records::new();
        let mut full = 0;
        for _ in 0..150 {
            let key = vec![thread, random.below(40) as u8];
            let value = vec![random.next() as u8; random.below(9000)];
            match environment.transact(|t| database.put(t, &key, &value)) {
                Ok(()) => drop(own.insert(key, value)),
                Err(Error::DiskFull { .. }) => full += 1,
                Err(error) => panic!("{error}"),
            }
        }
        (own, full)
    };
    let work = &work;
    let results: Vec<(Records, usize)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    assert!(results.iter().any(|(_, full)| *full > 0));
    scene.vfs.set_limit(u64::MAX);
    *scene.model.borrow_mut() = results.into_iter().flat_map(|(own, _)| own).collect();
    scene.check_reads("full");
    scene.check_crash("full, crash");
    environment.transact(|t| database.put(t, b"after", b"")).unwrap();
    crate::common::assert_sound(environment);
}

#[test]
fn open_and_close_on_a_full_device_lose_nothing() {
    // Creating: the rest of a failed attempt does not stop the next one.
    for room in [0, 100, 70_000, 100_000, 300_000, 600_000] {
        let vfs = FaultyVfs::in_memory();
        vfs.set_limit(room);
        match Environment::open_in(vfs.clone(), Some(place()), options()) {
            Ok(environment) => {
                // There was room for an empty one, not for closing it perhaps.
                let _ = environment.create_database("data");
            }
            Err(error) => assert!(matches!(error, Error::DiskFull { .. }), "{room}: {error}"),
        }
        vfs.set_limit(u64::MAX);
        let again = Environment::open_in(vfs, Some(place()), options()).unwrap();
        again.open_or_create_database("data").unwrap();
    }
    // Recovering, then closing.
    let mut random = Random::new(3);
    let scene = Scene::new(&options());
    for _ in 0..80 {
        scene.change(&mut random).unwrap();
    }
    let files = scene.memory.files(place());
    let mut refused = [0, 0];
    for room in (0..1_500_000).step_by(50_000) {
        let memory = crate::common::world_with(&files, place());
        let vfs = FaultyVfs::new(memory.clone());
        let have: u64 = files.values().map(|bytes| bytes.len() as u64).sum();
        for path in files.keys() {
            drop(vfs.open(&place().join(path), OpenMode::Write).unwrap());
        }
        vfs.set_limit(have + room);
        match Environment::open_in(vfs.clone(), Some(place()), options()) {
            Ok(environment) => {
                vfs.set_limit(vfs.used());
                if let Err(error) = environment.close() {
                    assert!(matches!(error, Error::DiskFull { .. }), "{room}: {error}");
                    refused[1] += 1;
                }
            }
            Err(error) => {
                assert!(matches!(error, Error::DiskFull { .. }), "{room}: {error}");
                refused[0] += 1;
            }
        }
        vfs.set_limit(u64::MAX);
        let again = Environment::open_in(vfs, Some(place()), options()).unwrap();
        assert_same(&contents(&again).unwrap()["data"], &scene.model.borrow(), &format!("{room}"));
        crate::common::assert_sound(&again);
    }
    assert!(refused[0] > 0, "{refused:?}");
}

#[test]
fn data_store_survives_a_full_device() {
    let memory = FaultyVfs::in_memory();
    let vfs = FaultyVfs::new(memory.clone());
    let open = |vfs: Arc<dyn Vfs>| DataStore::open_in(vfs, Some(place()), options());
    let mut store = open(vfs.clone()).unwrap();
    let database = store.create_database("data").unwrap();
    let mut synced = Records::new();
    let mut state = Records::new();
    let mut random = Random::new(9);
    let mut full = 0;
    for round in 0..400 {
        if round % 100 == 50 {
            vfs.set_limit(vfs.used() + 30_000);
        } else if round % 100 == 90 {
            vfs.set_limit(u64::MAX);
        }
        let key = vec![random.below(100) as u8];
        let value = vec![random.next() as u8; random.below(9000)];
        match store.put(database, &key, &value) {
            Ok(()) => drop(state.insert(key, value)),
            Err(Error::DiskFull { .. }) => full += 1,
            Err(error) => panic!("round {round}: {error}"),
        }
        if round % 20 == 19 {
            match store.sync() {
                Ok(()) => synced = state.clone(),
                Err(Error::DiskFull { .. }) => full += 1,
                Err(error) => panic!("round {round}: sync: {error}"),
            }
            let mut copy =
                open(crate::common::world_with(&memory.files(place()), place())).unwrap();
            let in_copy = copy.open_database("data");
            for (key, value) in &synced {
                let found = copy.get(*in_copy.as_ref().unwrap(), key).unwrap();
                assert!(found.as_ref() == Some(value), "round {round}: {key:?}");
            }
        }
    }
    assert!(full > 0);
    for (key, value) in &state {
        assert!(store.get(database, key).unwrap().as_ref() == Some(value), "{key:?}");
    }
    assert_eq!(store.verify().unwrap().complaints, Vec::<String>::new());
    store.close().unwrap();
}

#[test]
fn real_file_system_that_is_full_loses_nothing() {
    let Some(mounted) = Mounted::new("size=3m") else { return };
    let path = mounted.path().join("environment");
    let environment = Environment::open(&path, options()).unwrap();
    let database = environment.create_database("data").unwrap();
    let mut model = Records::new();
    let mut random = Random::new(21);
    let mut full = 0;
    for round in 0..600 {
        let key = vec![random.below(250) as u8];
        let value = vec![round as u8; random.below(40_000)];
        match environment.transact(|t| database.put(t, &key, &value)) {
            Ok(()) => drop(model.insert(key, value)),
            Err(Error::DiskFull { .. }) => full += 1,
            Err(error) => panic!("round {round}: {error}"),
        }
    }
    assert!(full > 0);
    mounted.remount("remount,size=60m");
    assert_same(&contents(&environment).unwrap()["data"], &model, "after the device grew");
    environment.transact(|t| database.put(t, b"after", b"")).unwrap();
    model.insert(b"after".to_vec(), Vec::new());
    crate::common::assert_sound(&environment);
    environment.close().unwrap();
    let again = Environment::open(&path, options()).unwrap();
    assert_same(&contents(&again).unwrap()["data"], &model, "opened again");
}
