//! Devices that are full, that fail, or that nobody may write to. Nothing acknowledged is lost; after a full device there
//! is room again and work goes on; after a failed flush nothing is acknowledged until the environment is opened again.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

mod common;

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use common::faulty::{Call, FaultyWorld};
use common::{Random, Records, assert_same, contents, open_files, place, small_options};
use quickbeam::world::{OpenMode, RealWorld, World};
use quickbeam::{DATA_FILE, DataStore, Database, Durability, Environment, Error, Options, Result};

/// An environment in a world that can be made to fail, what it must hold, and the world under it.
struct Scene {
    memory: Arc<FaultyWorld>,
    world: Arc<FaultyWorld>,
    environment: Environment,
    database: Database,
    model: RefCell<Records>,
}

/// Room for few pages, so that most of what is written has to leave memory soon.
fn options() -> Options {
    Options { cache_size: 4096 * 80, checkpoint_bytes: 1 << 20, ..small_options() }
}

impl Scene {
    fn new(options: &Options) -> Scene {
        let memory = FaultyWorld::in_memory();
        let world = FaultyWorld::new(memory.clone());
        let environment =
            Environment::open_in(world.clone(), Some(place()), options.clone()).unwrap();
        let database = environment.create_database("data").unwrap();
        Scene { memory, world, environment, database, model: RefCell::default() }
    }

    fn open_again(&mut self, options: &Options) {
        let elsewhere = Environment::memory(options.clone()).unwrap();
        std::mem::replace(&mut self.environment, elsewhere).close().unwrap();
        let opened = Environment::open_in(self.world.clone(), Some(place()), options.clone());
        self.environment = opened.unwrap();
        self.database = self.environment.open_database("data").unwrap();
    }

    /// A transaction of a few changes; they are in the model if it was committed.
    fn change(&self, random: &mut Random) -> Result<()> {
        let mut model = self.model.borrow().clone();
        let transaction = self.environment.begin()?;
        for _ in 0..1 + random.below(6) {
            let key = format!("{:04}", random.below(300)).into_bytes();
            if random.chance(15) {
                self.database.delete(&transaction, &key)?;
                model.remove(&key);
            } else {
                let longest = [50, 800, 20_000][random.below(3)];
                let value = vec![random.next() as u8; random.below(longest)];
                self.database.put(&transaction, &key, &value)?;
                model.insert(key, value);
            }
        }
        transaction.commit()?;
        *self.model.borrow_mut() = model;
        Ok(())
    }

    /// What is read is what was committed.
    fn check_reads(&self, what: &str) {
        let reader = self.environment.begin_read().unwrap();
        let model = self.model.borrow();
        assert_same(&common::records(&self.database, &reader).unwrap(), &model, what);
    }

    /// What a crash now would leave behind is what was committed.
    fn check_crash(&self, what: &str) {
        let files = self.memory.files(place());
        let copy = open_files(&files, &options());
        let copy = copy.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_same(&contents(&copy).unwrap()["data"], &self.model.borrow(), what);
        common::assert_sound(&copy);
    }
}

/// Loads the scene until the device is full, three times, with room given back in between; how often a call was refused.
/// `strict`: nothing but a full device may be told, ever. Otherwise, in a cache so small that not even rolling back
/// finds a page to put out, the environment may have to be opened again.
fn fill_the_device(seed: u64, options: &Options, strict: bool) -> usize {
    let mut random = Random::new(seed);
    let mut scene = Scene::new(options);
    for _ in 0..random.below(60) {
        scene.change(&mut random).unwrap();
    }
    let mut refusals = 0;
    for round in 0..3 {
        let what = format!("seed {seed}, round {round}");
        let room = [0, 5000, 100_000, 400_000][random.below(4)];
        scene.world.set_limit(scene.world.used() + room);
        let mut full = 0;
        let mut failed = false;
        for _ in 0..300 {
            let checkpoint = random.chance(3);
            let done =
                if checkpoint { scene.environment.checkpoint() } else { scene.change(&mut random) };
            match done {
                Ok(()) => {}
                Err(Error::DiskFull { .. }) => full += usize::from(!checkpoint),
                Err(Error::Failed { .. }) if !strict => failed = true,
                Err(error) => panic!("{what}: {error}"),
            }
            if full > 10 || failed {
                break;
            }
        }
        refusals += full;
        scene.world.set_limit(u64::MAX);
        // The last transaction's rolling back may have been the one that failed.
        failed |= !strict && matches!(scene.environment.checkpoint(), Err(Error::Failed { .. }));
        if failed {
            scene.open_again(options);
        }
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
fn a_full_device_loses_nothing_and_work_goes_on_when_there_is_room() {
    let first = common::first_seed();
    println!("first seed {first}");
    let strict = Options { cache_size: 4096 * 2000, ..options() };
    let refusals: usize =
        (first..first + 25).map(|seed| fill_the_device(seed, &strict, true)).sum();
    assert!(refusals > 100, "the device was hardly ever full: {refusals}");
    let refusals: usize =
        (first..first + 25).map(|seed| fill_the_device(seed, &options(), false)).sum();
    assert!(refusals > 100, "the device was hardly ever full: {refusals}");
}

/// The data is larger than the cache, and every page put out is one that need not be written.
#[test]
fn reading_goes_on_while_the_device_is_full() {
    let options = Options { cache_size: 4096 * 160, ..options() };
    let mut random = Random::new(5);
    let scene = Scene::new(&options);
    for _ in 0..200 {
        scene.change(&mut random).unwrap();
    }
    scene.environment.checkpoint().unwrap();
    scene.world.set_limit(scene.world.used());
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

#[test]
fn threads_beside_each_other_survive_a_full_device() {
    let seed = common::first_seed();
    println!("seed {seed}");
    let scene = Scene::new(&options());
    let (environment, database) = (&scene.environment, &scene.database);
    scene.world.set_limit(scene.world.used() + 500_000);
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
    scene.world.set_limit(u64::MAX);
    *scene.model.borrow_mut() = results.into_iter().flat_map(|(own, _)| own).collect();
    scene.check_reads("full");
    scene.check_crash("full, crash");
    environment.transact(|t| database.put(t, b"after", b"")).unwrap();
    common::assert_sound(environment);
}

#[test]
fn opening_and_closing_on_a_full_device_lose_nothing() {
    // Creating: the rest of a failed attempt does not stop the next one.
    for room in [0, 100, 70_000, 100_000, 300_000, 600_000] {
        let world = FaultyWorld::in_memory();
        world.set_limit(room);
        match Environment::open_in(world.clone(), Some(place()), options()) {
            Ok(environment) => {
                // There was room for an empty one, not for closing it perhaps.
                let _ = environment.create_database("data");
            }
            Err(error) => assert!(matches!(error, Error::DiskFull { .. }), "{room}: {error}"),
        }
        world.set_limit(u64::MAX);
        let again = Environment::open_in(world, Some(place()), options()).unwrap();
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
        let memory = common::world_with(&files, place());
        let world = FaultyWorld::new(memory.clone());
        let have: u64 = files.values().map(|bytes| bytes.len() as u64).sum();
        for path in files.keys() {
            drop(world.open(&place().join(path), OpenMode::Write).unwrap());
        }
        world.set_limit(have + room);
        match Environment::open_in(world.clone(), Some(place()), options()) {
            Ok(environment) => {
                world.set_limit(world.used());
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
        world.set_limit(u64::MAX);
        let again = Environment::open_in(world, Some(place()), options()).unwrap();
        assert_same(&contents(&again).unwrap()["data"], &scene.model.borrow(), &format!("{room}"));
        common::assert_sound(&again);
    }
    assert!(refused[0] > 0, "{refused:?}");
}

#[test]
fn a_data_store_survives_a_full_device() {
    let memory = FaultyWorld::in_memory();
    let world = FaultyWorld::new(memory.clone());
    let open = |world: Arc<dyn World>| DataStore::open_in(world, Some(place()), options());
    let mut store = open(world.clone()).unwrap();
    let database = store.create_database("data").unwrap();
    let mut synced = Records::new();
    let mut state = Records::new();
    let mut random = Random::new(9);
    let mut full = 0;
    for round in 0..400 {
        if round % 100 == 50 {
            world.set_limit(world.used() + 30_000);
        } else if round % 100 == 90 {
            world.set_limit(u64::MAX);
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
            let mut copy = open(common::world_with(&memory.files(place()), place())).unwrap();
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

/// The first call of some kind fails, once: from then on nothing is acknowledged, everything is still read, and what had
/// been acknowledged is there after opening again.
fn fails_for_good(
    durability: Durability,
    through: bool,
    which: impl Fn(Call, &Path) -> bool + Send + Clone + 'static,
) {
    let options = Options { durability, ..options() };
    for quiet in [0, 1, 7] {
        let mut random = Random::new(quiet as u64);
        let scene = Scene::new(&options);
        for _ in 0..20 {
            scene.change(&mut random).unwrap();
        }
        let (mut left, which) = (quiet, which.clone());
        let mut happened = false;
        scene.world.set_rule(move |call, path| {
            if !through && call == Call::Open(OpenMode::WriteThrough) {
                return Some(io::ErrorKind::Unsupported.into());
            }
            if happened || !which(call, path) {
                return None;
            }
            happened = left == 0;
            left -= usize::from(!happened);
            happened.then(|| io::Error::other("the device is broken"))
        });
        let mut error = None;
        for round in 0..200 {
            let mut result = scene.change(&mut random);
            if result.is_ok() && round % 10 == 9 {
                result = scene.environment.checkpoint();
            }
            if let Err(first) = result {
                error = Some(first);
                break;
            }
        }
        let error = error.expect("nothing failed");
        assert!(matches!(error, Error::Io { .. } | Error::Failed { .. }), "{error}");
        // The failed commit may have come to the log or not; what follows is refused.
        for _ in 0..5 {
            let refused = scene.environment.transact(|t| scene.database.put(t, b"later", b""));
            assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
            let refused = scene.environment.checkpoint();
            assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
            let told = refused.unwrap_err().to_string();
            assert!(told.contains("broken") && told.contains("open it again"), "{told}");
        }
        let reader = scene.environment.begin_read().unwrap();
        let seen = common::records(&scene.database, &reader).unwrap();
        drop(reader);
        scene.environment.close().unwrap();
        let again =
            Environment::open_in(scene.world.clone(), Some(place()), options.clone()).unwrap();
        let found = contents(&again).unwrap().remove("data").unwrap();
        let acknowledged = scene.model.borrow();
        assert!(found == *acknowledged || found == seen, "{} records, quiet {quiet}", found.len());
        common::assert_sound(&again);
        let database = again.open_database("data").unwrap();
        again.transact(|t| database.put(t, b"later", b"")).unwrap();
    }
}

/// A log segment in use, not one that is being made ready.
fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

#[test]
fn a_failed_flush_of_the_log_stops_commits() {
    fails_for_good(Durability::Sync, false, |call, path| call == Call::Sync && is_segment(path));
}

#[test]
fn a_failed_write_through_to_the_log_stops_commits() {
    fails_for_good(Durability::Sync, true, |call, path| {
        matches!(call, Call::Write { .. }) && is_segment(path)
    });
}

#[test]
fn a_failed_write_to_the_log_stops_commits() {
    fails_for_good(Durability::WriteNoSync, false, |call, path| {
        matches!(call, Call::Write { .. }) && is_segment(path)
    });
}

#[test]
fn a_failed_flush_of_the_data_file_stops_commits() {
    fails_for_good(Durability::Sync, true, |call, path| {
        call == Call::Sync && path.ends_with(DATA_FILE)
    });
}

#[test]
fn a_failed_write_of_a_root_stops_commits() {
    fails_for_good(Durability::Sync, true, |call, path| {
        matches!(call, Call::Write { offset: 0 | 8192, .. }) && path.ends_with(DATA_FILE)
    });
}

/// A read that fails is that reader's error and nobody else's.
#[test]
fn a_failed_read_is_told_and_forgotten() {
    let mut random = Random::new(11);
    let scene = Scene::new(&options());
    for _ in 0..150 {
        scene.change(&mut random).unwrap();
    }
    scene.environment.checkpoint().unwrap();
    let mut count = 0;
    scene.world.set_rule(move |call, path| {
        count += usize::from(call == Call::Read && path.ends_with(DATA_FILE));
        (call == Call::Read && count % 5 == 0).then(|| io::Error::other("unreadable"))
    });
    let mut failed = 0;
    for _ in 0..30 {
        let reader = scene.environment.begin_read().unwrap();
        match common::records(&scene.database, &reader) {
            Ok(found) => assert_same(&found, &scene.model.borrow(), "read"),
            Err(Error::Io { action, .. }) => {
                assert!(action.contains("page"), "{action}");
                failed += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(failed > 0);
    scene.world.clear_rule();
    scene.check_reads("afterwards");
    scene.change(&mut random).unwrap();
    scene.check_reads("afterwards");
    common::assert_sound(&scene.environment);
}

/// Nothing can be changed: opening says so and changes nothing.
#[test]
fn a_place_that_cannot_be_written_is_refused() {
    let scene = Scene::new(&options());
    scene.environment.transact(|t| scene.database.put(t, b"key", b"value")).unwrap();
    let files = scene.memory.files(place());
    let memory = common::world_with(&files, place());
    let world = FaultyWorld::new(memory.clone());
    world.set_rule(|call, _| {
        let changes = call.changes() || call == Call::Open(OpenMode::Write);
        changes.then(|| io::ErrorKind::PermissionDenied.into())
    });
    for path in [place(), Path::new("elsewhere")] {
        match Environment::open_in(world.clone(), Some(path), options()) {
            Err(Error::Io { source, .. }) => {
                assert_eq!(source.kind(), io::ErrorKind::PermissionDenied)
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it was opened"),
        }
    }
    assert!(memory.files(place()) == files, "something was changed");
}

/// A file system in memory, mounted for a test; `None` where that is not permitted.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(options: &str) -> Option<Mounted> {
        let directory = tempfile::tempdir().unwrap();
        let mount = ["-t", "tmpfs", "-o", options, "tmpfs"];
        let mounted = Command::new("mount").args(mount).arg(directory.path()).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Mounted(directory));
        }
        println!("skipped: mounting is not permitted");
        None
    }

    fn remount(&self, options: &str) {
        let status = Command::new("mount").args(["-o", options]).arg(self.0.path()).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_file_system_of_the_operating_system() {
    let Some(mounted) = Mounted::new("size=3m") else { return };
    let path = mounted.0.path().join("environment");
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
    common::assert_sound(&environment);
    environment.close().unwrap();
    let again = Environment::open(&path, options()).unwrap();
    assert_same(&contents(&again).unwrap()["data"], &model, "opened again");
}

#[test]
fn a_read_only_file_system_and_directory_of_the_operating_system() {
    let refused = |path: &Path| match Environment::open(path, options()) {
        Err(Error::Io { action, .. }) => {
            assert!(action.contains(path.to_str().unwrap()), "{action}")
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{} was opened", path.display()),
    };
    if let Some(mounted) = Mounted::new("size=20m") {
        let path = mounted.0.path().join("environment");
        Environment::open(&path, options()).unwrap().create_database("data").unwrap();
        mounted.remount("remount,ro");
        refused(&path);
        refused(&mounted.0.path().join("new"));
        mounted.remount("remount,rw");
        assert_eq!(Environment::open(&path, options()).unwrap().databases().unwrap(), ["data"]);
    }
    let directory = tempfile::tempdir().unwrap();
    let mut permissions = std::fs::metadata(directory.path()).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(directory.path(), permissions).unwrap();
    if std::fs::write(directory.path().join("try"), b"").is_ok() {
        println!("skipped: this user may write everywhere");
        return;
    }
    refused(directory.path());
    let real = FaultyWorld::new(Arc::new(RealWorld::new()));
    assert!(Environment::open_in(real, Some(&directory.path().join("new")), options()).is_err());
}
