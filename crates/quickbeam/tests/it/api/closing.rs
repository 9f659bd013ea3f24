//! Closing: a close that succeeds has kept everything, and one that fails says so to every handle.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::faulty::{Call, FaultyVfs};
use crate::common::scene::{Scene, options};
use crate::common::{Random, assert_same, contents, place};
use quickbeam::vfs::OpenMode;
use quickbeam::{DataStore, Durability, Environment, Error, Options, Result};

/// Calls on files that fail one after the other in each of these tests.
const CALLS: usize = 60;

fn opened(vfs: &Arc<FaultyVfs>, options: &Options) -> Environment {
    Environment::open_in(vfs.clone(), Some(place()), options.clone()).unwrap()
}

/// Makes the call number `at` that changes something fail, and no other. Whether it happened.
fn fail_call(vfs: &FaultyVfs, at: usize, kind: io::ErrorKind) -> Arc<AtomicBool> {
    let happened = Arc::new(AtomicBool::new(false));
    let (count, told) = (AtomicUsize::new(0), happened.clone());
    vfs.set_rule(move |call, _| {
        let hit = call.changes() && count.fetch_add(1, Ordering::SeqCst) == at;
        hit.then(|| {
            told.store(true, Ordering::SeqCst);
            kind.into()
        })
    });
    happened
}

/// Waits for something that a background thread does; the number of tries is bounded.
fn wait_for(what: &str, done: impl Fn() -> bool) {
    for _ in 0..2000 {
        if done() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{what} did not happen");
}

/// Whichever call fails, with whatever durability and in whichever thread: either some call reports
/// it, or nothing that was committed is missing.
#[test]
fn failed_call_is_reported_by_close() {
    for durability in
        [Durability::Sync, Durability::WriteNoSync, Durability::NoSync, Durability::InMemory]
    {
        let options = options()
            .durability(durability)
            .log_write_interval(Duration::from_millis(1))
            .checkpoint_interval(Duration::from_millis(1));
        let (mut reported, mut kept) = (0, 0);
        for at in 0..CALLS {
            let kind = [io::ErrorKind::Other, io::ErrorKind::StorageFull][at % 2];
            let mut random = Random::new(at as u64);
            let scene = Scene::new(&options);
            let happened = fail_call(&scene.vfs, at, kind);
            let mut told = false;
            for _ in 0..12 {
                told |= scene.change(&mut random).is_err();
            }
            let Scene { vfs, environment, model, .. } = scene;
            told |= environment.close().is_err();
            vfs.clear_rule();
            if told {
                assert!(happened.load(Ordering::SeqCst), "{durability}: an error without a cause");
                reported += 1;
                continue;
            }
            kept += 1;
            let again = opened(&vfs, &options);
            let found = contents(&again).unwrap().remove("data").unwrap_or_default();
            assert_same(&found, &model.borrow(), &format!("{durability}, call {at} failed"));
        }
        assert!(reported > 0, "{durability}: {reported} reported, {kept} kept");
    }
}

/// Only the log's thread writes `NoSync` commits, and only the checkpoint's thread writes
/// `InMemory` ones.
#[test]
fn close_reports_background_failures() {
    for durability in [Durability::NoSync, Durability::InMemory] {
        let options = options()
            .durability(durability)
            .log_write_interval(Duration::from_millis(1))
            .checkpoint_interval(Duration::from_millis(1));
        let scene = Scene::new(&options);
        scene.environment.checkpoint().unwrap();
        let failed = Arc::new(AtomicBool::new(false));
        let told = failed.clone();
        scene.vfs.set_rule(move |call, _| {
            let hit = matches!(call, Call::Write { .. } | Call::Sync);
            told.fetch_or(hit, Ordering::SeqCst);
            hit.then(|| io::Error::other("the device is broken"))
        });
        scene.environment.transact(|t| scene.database.put(t, b"key", b"value")).unwrap();
        wait_for("the background write", || failed.load(Ordering::SeqCst));
        scene.vfs.clear_rule();
        let other = scene.environment.clone();
        match scene.environment.close() {
            Err(Error::Failed { reason }) => assert!(reason.contains("broken"), "{reason}"),
            closed => panic!("{durability}: {closed:?}"),
        }
        // The other handle gets the same error, not just that the environment is closed.
        assert!(matches!(other.begin_read().map(drop), Err(Error::Failed { .. })), "{durability}");
        assert!(matches!(other.close(), Err(Error::Failed { .. })), "{durability}");
        opened(&scene.vfs, &options);
    }
}

/// A full device keeps an environment from being closed, and the other handles go on with it.
#[test]
fn close_on_a_full_device_leaves_the_environment_open() {
    for durability in [Durability::Sync, Durability::NoSync, Durability::InMemory] {
        let options = options().durability(durability);
        let mut random = Random::new(4);
        let scene = Scene::new(&options);
        for _ in 0..20 {
            scene.change(&mut random).unwrap();
        }
        scene.vfs.set_rule(|call, _| {
            let grows = matches!(call, Call::Write { .. } | Call::SetLength(_));
            grows.then(|| io::ErrorKind::StorageFull.into())
        });
        let closed = scene.environment.clone().close();
        if durability == Durability::NoSync {
            // What was to be written to the log may have found no room, which stops commits.
            assert!(matches!(closed, Err(Error::DiskFull { .. } | Error::Failed { .. })));
            continue;
        }
        assert!(matches!(closed, Err(Error::DiskFull { .. })), "{durability}: {closed:?}");
        scene.check_reads("the device is full");
        scene.vfs.clear_rule();
        for _ in 0..20 {
            scene.change(&mut random).unwrap();
        }
        scene.check_reads("there is room");
        let Scene { vfs, environment, model, .. } = scene;
        environment.close().unwrap();
        let again = opened(&vfs, &options);
        assert_same(&contents(&again).unwrap()["data"], &model.borrow(), "opened again");
    }
}

/// A handle that closes while others work: a transaction that is open keeps the environment open,
/// for everybody.
#[test]
fn refused_close_does_not_affect_other_handles() {
    let scene = Scene::new(&options());
    let environment = &scene.environment;
    let open = environment.begin_read().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let beginner = scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                drop(environment.begin_read().unwrap());
            }
        });
        for _ in 0..2000 {
            let refused = environment.clone().close();
            assert!(matches!(refused, Err(Error::Misuse { .. })), "{refused:?}");
        }
        stop.store(true, Ordering::SeqCst);
        beginner.join().unwrap();
    });
    drop(open);
}

#[test]
fn data_store_close_reports_lost_changes() {
    for at in 0..CALLS {
        let vfs = FaultyVfs::in_memory();
        let open = || DataStore::open_in(vfs.clone(), Some(place()), options());
        let mut store = open().unwrap();
        let database = store.create_database("data").unwrap();
        store.sync().unwrap();
        let kind = [io::ErrorKind::Other, io::ErrorKind::StorageFull][at % 2];
        fail_call(&vfs, at, kind);
        let mut told = false;
        for n in 0..30u8 {
            told |= store.put(database, &[n], &[n; 900]).is_err();
            // The error of a sync is reported once; that is not enough to close without one.
            let _ = (n % 10 == 9).then(|| store.sync());
        }
        told |= store.close().is_err();
        vfs.clear_rule();
        if !told {
            let mut again = open().unwrap();
            let database = again.open_database("data").unwrap();
            for n in 0..30u8 {
                let found = again.get(database, &[n]).unwrap();
                assert_eq!(found.as_deref(), Some(&[n; 900][..]), "call {at} failed");
            }
        }
    }
}

/// The log's thread makes a segment ready. Before it is done, commits have filled that segment, and
/// a checkpoint has let go of it. That is no failure.
#[test]
fn checkpoint_beside_segment_preparation_succeeds() {
    let options = options().durability(Durability::WriteNoSync).checkpoint_bytes(1 << 30);
    let scene = Scene::new(&options);
    let (reached, released) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (reach, release) = (reached.clone(), released.clone());
    scene.vfs.set_pause(move |call, path| {
        let is_mapped = call == Call::Open(OpenMode::Write) && path.ends_with("000000000002.log");
        let is_background = std::thread::current().name() == Some("quickbeam-log");
        if is_mapped && is_background && !reach.swap(true, Ordering::SeqCst) {
            wait_for("the checkpoint", || release.load(Ordering::SeqCst));
        }
    });
    let put = |n: usize| {
        let key = n.to_string().into_bytes();
        scene.environment.transact(|t| scene.database.put(t, &key, &[n as u8; 9000])).unwrap();
    };
    (0..17).for_each(put);
    wait_for("the preparation", || reached.load(Ordering::SeqCst));
    (17..80).for_each(put);
    scene.environment.checkpoint().unwrap();
    let segments = scene.memory.files(place());
    assert!(segments.keys().all(|path| !path.ends_with("000000000002.log")), "it is still there");
    released.store(true, Ordering::SeqCst);
    (80..200).for_each(put);
    scene.environment.checkpoint().unwrap();
    scene.environment.close().unwrap();
}

/// Readers are there together; a writer is alone.
#[test]
fn directory_lock_admits_readers_or_one_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let locked = |result: Result<Environment>| matches!(result, Err(Error::Locked { .. }));
    let writer = Environment::open(path, options()).unwrap();
    writer.create_database("data").unwrap();
    assert!(locked(Environment::open_read_only(path, options())));
    writer.close().unwrap();
    let one = Environment::open_read_only(path, options()).unwrap();
    let other = Environment::open_read_only(path, options()).unwrap();
    assert!(locked(Environment::open(path, options())));
    one.close().unwrap();
    assert!(locked(Environment::open(path, options())));
    other.close().unwrap();
    Environment::open(path, options()).unwrap();
}
