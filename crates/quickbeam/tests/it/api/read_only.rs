//! Opening to read: whatever state a directory is in, everything committed is shown, and nothing in
//! it is written.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::common::faulty::{Call, FaultyVfs};
use crate::common::scene::{Mounted, Scene, options};
use crate::common::{Files, Random, assert_same, contents, place, world_with};
use quickbeam::vfs::OpenMode;
use quickbeam::{DataStore, Durability, Environment, Error, Result};

/// A world with these files, in which every call that could change something fails.
fn unwritable(files: &Files) -> (Arc<FaultyVfs>, Arc<FaultyVfs>) {
    let memory = world_with(files, place());
    let vfs = FaultyVfs::new(memory.clone());
    vfs.set_rule(|call, _| {
        let changes = call.changes() || call == Call::Open(OpenMode::Write);
        changes.then(|| io::ErrorKind::ReadOnlyFilesystem.into())
    });
    (memory, vfs)
}

fn assert_refused<T>(result: Result<T>) {
    assert!(matches!(result.map(drop), Err(Error::ReadOnlyEnvironment)));
}

/// Every way to change an environment says that it is open for reading only.
fn assert_unchangeable(environment: &Environment) {
    let database = environment.open_database("data").unwrap();
    assert_refused(environment.transact(|t| database.put(t, b"key", b"value")));
    assert_refused(environment.transact(|t| database.put_if_absent(t, b"absent", b"value")));
    assert_refused(environment.transact(|t| database.delete(t, b"key")));
    assert_refused(environment.create_database("new"));
    assert_refused(environment.open_or_create_database("new"));
    assert_refused(environment.drop_database("data"));
    assert_refused(environment.rename_database("data", "other"));
    assert_refused(environment.clear_database("data"));
    assert_refused(environment.checkpoint());
}

/// Directories closed, crashed, and crashed beside a transaction whose pieces are in the log.
#[test]
fn read_only_open_reads_all_and_writes_nothing() {
    for durability in [Durability::Sync, Durability::WriteNoSync, Durability::InMemory] {
        for ending in ["closed", "crashed", "crashed beside a large transaction"] {
            let what = format!("{durability}, {ending}");
            let options = options().durability(durability).cache_size(4096 * 2000);
            let mut random = Random::new(7);
            let scene = Scene::new(&options);
            for _ in 0..60 {
                scene.change(&mut random).unwrap();
            }
            let large = scene.environment.begin().unwrap();
            if ending.ends_with("transaction") {
                for n in 0..60usize {
                    scene
                        .database
                        .put(&large, format!("large {n}").as_bytes(), &[1; 9000])
                        .unwrap();
                }
            }
            if durability == Durability::InMemory {
                scene.environment.checkpoint().unwrap();
            }
            let crashed = scene.memory.files(place());
            large.abort().unwrap();
            scene.environment.close().unwrap();
            let files = if ending == "closed" { scene.memory.files(place()) } else { crashed };
            let (memory, vfs) = unwritable(&files);
            for _ in 0..2 {
                let opened = Environment::open_read_only_in(vfs.clone(), place(), options.clone());
                let environment = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_same(&contents(&environment).unwrap()["data"], &scene.model.borrow(), &what);
                crate::common::assert_sound(&environment);
                assert_unchangeable(&environment);
                let other = environment.clone();
                environment.close().unwrap();
                crate::common::assert_misuse(other.begin_read(), "closed");
            }
            assert!(memory.files(place()) == files, "{what}: something was written");
        }
    }
}

/// Recovery has to fit in memory, twice the cache; where it does not, the error says what would
/// help.
#[test]
fn read_only_recovery_beyond_the_cache_is_refused() {
    let options = options().checkpoint_bytes(1 << 30).cache_size(4096 * 2000);
    let scene = Scene::new(&options);
    crate::common::fill(&scene.environment, &scene.database, 2000, 900);
    let files = scene.memory.files(place());
    let (memory, vfs) = unwritable(&files);
    let small = options.clone().cache_size(4096 * 80);
    match Environment::open_read_only_in(vfs.clone(), place(), small) {
        Err(Error::Limit { what }) => assert!(what.contains("cache_size"), "{what}"),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was opened"),
    }
    let opened = Environment::open_read_only_in(vfs, place(), options).unwrap();
    assert_eq!(contents(&opened).unwrap()["data"].len(), 2000);
    assert!(memory.files(place()) == files, "something was written");
}

/// Closing finds no room, and opening for writing neither: reading goes on, and so does everything
/// once there is room.
#[test]
fn read_only_open_works_on_a_full_device() {
    let options = options().cache_size(4096 * 2000);
    let mut random = Random::new(11);
    let scene = Scene::new(&options);
    for _ in 0..200 {
        if scene.vfs.used() > 1 << 20 {
            scene.vfs.set_limit(scene.vfs.used());
        }
        match scene.change(&mut random) {
            Ok(()) => {}
            Err(Error::DiskFull { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let Scene { memory, vfs, environment, model, .. } = scene;
    let closed = environment.close();
    assert!(matches!(closed, Err(Error::DiskFull { .. })), "{closed:?}");
    let refused = Environment::open_in(vfs.clone(), Some(place()), options.clone());
    assert!(matches!(refused, Err(Error::DiskFull { .. })), "the device is full");
    let files = memory.files(place());
    let reader = Environment::open_read_only_in(vfs.clone(), place(), options.clone()).unwrap();
    assert_same(&contents(&reader).unwrap()["data"], &model.borrow(), "full");
    reader.close().unwrap();
    assert!(memory.files(place()) == files, "something was written");
    vfs.set_limit(u64::MAX);
    let writer = Environment::open_in(vfs, Some(place()), options).unwrap();
    assert_same(&contents(&writer).unwrap()["data"], &model.borrow(), "there is room");
    let database = writer.open_database("data").unwrap();
    writer.transact(|t| database.put(t, b"after", b"")).unwrap();
    writer.close().unwrap();
}

#[test]
fn read_only_open_creates_no_files() {
    let (memory, vfs) = unwritable(&Files::new());
    let refused = Environment::open_read_only_in(vfs.clone(), place(), options());
    assert!(matches!(refused, Err(Error::NotAnEnvironment { .. })));
    let refused = DataStore::open_read_only_in(vfs, place(), options());
    assert!(matches!(refused, Err(Error::NotAnEnvironment { .. })));
    assert!(memory.files(place()).is_empty());
}

#[test]
fn data_store_opens_read_only() {
    let vfs = FaultyVfs::in_memory();
    let mut store = DataStore::open_in(vfs.clone(), Some(place()), options()).unwrap();
    let database = store.create_database("data").unwrap();
    store.put(database, b"key", b"value").unwrap();
    store.sync().unwrap();
    store.put(database, b"key", b"not synced").unwrap();
    let files = vfs.files(place());
    let (memory, vfs) = unwritable(&files);
    let mut reader = DataStore::open_read_only_in(vfs, place(), options()).unwrap();
    let database = reader.open_database("data").unwrap();
    assert_eq!(reader.get(database, b"key").unwrap().as_deref(), Some(&b"value"[..]));
    assert_refused(reader.put(database, b"key", b"other"));
    assert_refused(reader.delete(database, b"key"));
    assert_refused(reader.create_database("new"));
    assert_refused(reader.drop_database("data"));
    assert_refused(reader.sync());
    assert_eq!(reader.verify().unwrap().complaints, Vec::<String>::new());
    reader.close().unwrap();
    assert!(memory.files(place()) == files, "something was written");
}

#[test]
fn real_read_only_file_system_opens_read_only() {
    let Some(mounted) = Mounted::new("size=20m") else { return };
    let path = mounted.path().join("environment");
    let environment = Environment::open(&path, options()).unwrap();
    let database = environment.create_database("data").unwrap();
    environment.transact(|t| database.put(t, b"key", b"value")).unwrap();
    // A copy as a crash would leave it, with a log to be replayed; and the same place closed.
    let copy = mounted.path().join("copy");
    std::fs::create_dir_all(copy.join("log")).unwrap();
    copy_files(&path, &copy);
    copy_files(&path.join("log"), &copy.join("log"));
    environment.close().unwrap();
    mounted.remount("remount,ro");
    for path in [&path, &copy] {
        let reader = Environment::open_read_only(path, options()).unwrap();
        let found = contents(&reader).unwrap();
        assert_eq!(found["data"][&b"key"[..]], b"value");
        reader.close().unwrap();
    }
}

fn copy_files(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
}
