//! Devices that fail, and directories without write permission. After a failed flush or write no
//! commit is acknowledged until the environment is reopened, and reads succeed. A failed read is
//! one reader's error.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::faulty::{Call, FaultyVfs};
use crate::common::scene::{Mounted, Scene, options};
use crate::common::{Random, assert_same, contents, place, small_options};
use quickbeam::vfs::OpenMode;
use quickbeam::{DATA_FILE, Durability, Environment, Error};

/// The first call of some kind fails, once: from then on nothing is acknowledged, everything is
/// still read, and what had been acknowledged is there after opening again.
fn fails_for_good(
    durability: Durability,
    through: bool,
    which: impl Fn(Call, &Path) -> bool + Send + Clone + 'static,
) {
    let options = options().durability(durability);
    for quiet in [0, 1, 7] {
        let mut random = Random::new(quiet as u64);
        let scene = Scene::new(&options);
        for _ in 0..20 {
            scene.change(&mut random).unwrap();
        }
        let (mut left, which) = (quiet, which.clone());
        let mut happened = false;
        scene.vfs.set_rule(move |call, path| {
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
        let seen = crate::common::records(&scene.database, &reader).unwrap();
        drop(reader);
        let closed = scene.environment.close();
        assert!(matches!(closed, Err(Error::Failed { .. })), "{closed:?}");
        let again =
            Environment::open_in(scene.vfs.clone(), Some(place()), options.clone()).unwrap();
        let found = contents(&again).unwrap().remove("data").unwrap();
        let acknowledged = scene.model.borrow();
        assert!(found == *acknowledged || found == seen, "{} records, quiet {quiet}", found.len());
        crate::common::assert_sound(&again);
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

/// A read that fails is the error of that reader only.
#[test]
fn failed_read_is_reported_once() {
    let mut random = Random::new(11);
    let scene = Scene::new(&options());
    for _ in 0..150 {
        scene.change(&mut random).unwrap();
    }
    scene.environment.checkpoint().unwrap();
    let mut count = 0;
    scene.vfs.set_rule(move |call, path| {
        count += usize::from(call == Call::Read && path.ends_with(DATA_FILE));
        (call == Call::Read && count % 5 == 0).then(|| io::Error::other("unreadable"))
    });
    let mut failed = 0;
    for _ in 0..30 {
        let reader = scene.environment.begin_read().unwrap();
        match crate::common::records(&scene.database, &reader) {
            Ok(found) => assert_same(&found, &scene.model.borrow(), "read"),
            Err(Error::Io(failure)) => {
                assert!(failure.action.contains("page"), "{failure}");
                failed += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(failed > 0);
    scene.vfs.clear_rule();
    scene.check_reads("afterwards");
    scene.change(&mut random).unwrap();
    scene.check_reads("afterwards");
    crate::common::assert_sound(&scene.environment);
}

/// Nothing can be changed: opening says so and changes nothing.
#[test]
fn unwritable_directory_is_refused() {
    let scene = Scene::new(&options());
    scene.environment.transact(|t| scene.database.put(t, b"key", b"value")).unwrap();
    let files = scene.memory.files(place());
    let memory = crate::common::world_with(&files, place());
    let vfs = FaultyVfs::new(memory.clone());
    vfs.set_rule(|call, _| {
        let changes = call.changes() || call == Call::Open(OpenMode::Write);
        changes.then(|| io::ErrorKind::PermissionDenied.into())
    });
    for path in [place(), Path::new("elsewhere")] {
        match Environment::open_in(vfs.clone(), Some(path), options()) {
            Err(Error::Io(failure)) => {
                assert_eq!(failure.source.kind(), io::ErrorKind::PermissionDenied)
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it was opened"),
        }
    }
    assert!(memory.files(place()) == files, "something was changed");
}

#[test]
fn real_read_only_file_system_is_refused() {
    let refused = |path: &Path| match Environment::open(path, options()) {
        Err(Error::Io(failure)) => {
            assert!(failure.action.contains(path.to_str().unwrap()), "{failure}")
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{} was opened", path.display()),
    };
    if let Some(mounted) = Mounted::new("size=20m") {
        let path = mounted.path().join("environment");
        Environment::open(&path, options()).unwrap().create_database("data").unwrap();
        mounted.remount("remount,ro");
        refused(&path);
        refused(&mounted.path().join("new"));
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
    refused(&directory.path().join("new"));
}

/// While a chain is freed, its pages are read from the device with no pass held: a checkpoint that
/// begins meanwhile, and so every writer that comes after it, need not wait for the device.
#[test]
fn freeing_a_long_value_reads_before_it_blocks_a_checkpoint() {
    let options = small_options().cache_size(64 * 4096).durability(Durability::NoSync);
    let vfs = FaultyVfs::in_memory();
    let environment = Environment::open_in(vfs.clone(), Some(place()), options).unwrap();
    let database = environment.create_database("data").unwrap();
    environment.transact(|t| database.put(t, b"long", &vec![7; 2_000_000])).unwrap();
    let reader = environment.begin_read().unwrap();
    environment.transact(|t| database.put(t, b"long", b"short")).unwrap();
    // A checkpoint has nothing to do with pages that it has, so it does not wait for their latches.
    environment.checkpoint().unwrap();
    // What is read from now on is the chain: its pages do not fit in the cache.
    let (tell, told) = std::sync::mpsc::channel();
    let (armed, other) = (AtomicBool::new(true), environment.clone());
    vfs.set_pause(move |call, path| {
        if call == Call::Read && path.ends_with(DATA_FILE) && armed.swap(false, Ordering::SeqCst) {
            let (done, wait) = std::sync::mpsc::channel();
            let other = other.clone();
            std::thread::spawn(move || done.send(other.checkpoint()));
            let _ = tell.send(wait.recv_timeout(Duration::from_secs(10)).is_ok());
        }
    });
    drop(reader);
    environment.checkpoint().unwrap();
    let finished = told.recv_timeout(Duration::from_secs(60)).expect("the chain is read");
    assert!(finished, "a checkpoint waited for a read of the chain");
    vfs.set_pause(|_, _| {});
    let report = environment.verify().unwrap();
    assert_eq!(report.complaints, Vec::<String>::new());
    assert!(report.pages < 20, "{} pages are in use", report.pages);
}
