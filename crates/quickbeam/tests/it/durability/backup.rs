//! Backups of an environment in use: consistent, complete up to the call, whole or absent whatever
//! stops them, and harmless to the environment if the target fails.

use std::io;
use std::path::Path;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::faulty::{Call, FaultyVfs};
use crate::common::scene::{Scene, options};
use crate::common::{
    Random, assert_misuse, assert_same, assert_sound, contents, put, small_options,
};
use quickbeam::vfs::{OsVfs, Vfs};
use quickbeam::{DATA_FILE, Database, Durability, Environment, Error, Options, Transaction};

const ACCOUNTS: usize = 400;
const BRANCHES: usize = 4;
const WRITERS: usize = 3;

fn number(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().unwrap())
}

fn add(
    database: &Database,
    transaction: &Transaction,
    key: usize,
    amount: i64,
) -> quickbeam::Result<()> {
    let key = (key as u32).to_be_bytes();
    let mut value = Vec::new();
    let found = database.get_for_update(transaction, &key, &mut value)?;
    let old = if found { number(&value) } else { 0 };
    database.put(transaction, &key, &(old + amount).to_be_bytes())
}

fn sum(environment: &Environment, name: &str) -> i64 {
    let reader = environment.begin_read().unwrap();
    let database = reader.open_database(name).unwrap();
    crate::common::records(&database, &reader).unwrap().values().map(|value| number(value)).sum()
}

const NAMES: [&str; 4] = ["accounts", "branches", "history", "counters"];

fn open_bank(environment: &Environment) -> [Database; 4] {
    NAMES.map(|name| environment.open_database(name).unwrap())
}

/// One TPC-B-like transaction: account, branch and history change by the same amount, and the
/// writer's counter by one.
fn transfer(environment: &Environment, bank: &[Database; 4], writer: usize, random: &mut Random) {
    let [accounts, branches, history, counters] = bank;
    let amount = random.below(1000) as i64 - 500;
    let (account, branch) = (random.below(ACCOUNTS), random.below(BRANCHES));
    let entry = [&(writer as u32).to_be_bytes()[..], &random.next().to_be_bytes()].concat();
    environment
        .transact(|transaction| {
            add(accounts, transaction, account, amount)?;
            add(branches, transaction, branch, amount)?;
            history.put(transaction, &entry, &amount.to_be_bytes())?;
            add(counters, transaction, writer, 1)
        })
        .unwrap();
}

/// Checks a backup's pages and sums. Returns the counter of each writer.
fn check_bank(environment: &Environment) -> Vec<u64> {
    assert_sound(environment);
    let [accounts, branches, history] =
        ["accounts", "branches", "history"].map(|name| sum(environment, name));
    assert_eq!((accounts, branches), (history, history));
    let reader = environment.begin_read().unwrap();
    let counters = reader.open_database("counters").unwrap();
    let counter = |writer: usize| {
        let found = counters.get(&reader, &(writer as u32).to_be_bytes()).unwrap();
        found.map_or(0, |bytes| number(&bytes) as u64)
    };
    (0..WRITERS).map(counter).collect()
}

/// Ends the writers, also when the test fails.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn backups_under_load(options: &Options) {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::open(folder.path().join("bank"), options.clone()).unwrap();
    for name in NAMES {
        environment.create_database(name).unwrap();
    }
    let done = [const { AtomicU64::new(0) }; WRITERS];
    let stop = AtomicBool::new(false);
    // Held while a backup is checked, so that the next one is not larger for it.
    let checking = Mutex::new(());
    std::thread::scope(|scope| {
        for (writer, done) in done.iter().enumerate() {
            let (environment, stop, checking) = (&environment, &stop, &checking);
            scope.spawn(move || {
                let mut random = Random::new(writer as u64);
                let bank = open_bank(environment);
                while !stop.load(Ordering::SeqCst) {
                    drop(checking.lock());
                    transfer(environment, &bank, writer, &mut random);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let _stop = StopAtEnd(&stop);
        let mut earlier = vec![0; WRITERS];
        for round in 0..5 {
            // Each backup is another number of commits later than the one before.
            let goal = done[0].load(Ordering::SeqCst) + 30 + round * 7;
            while done[0].load(Ordering::SeqCst) < goal {
                std::thread::yield_now();
            }
            let acknowledged: Vec<u64> =
                done.iter().map(|done| done.load(Ordering::SeqCst)).collect();
            let target = folder.path().join(format!("backup {round}"));
            let report = environment.backup_to(&target).unwrap();
            assert!(report.pages > 0 && report.bytes >= report.pages * 4096);
            let begun: Vec<u64> = done.iter().map(|done| done.load(Ordering::SeqCst)).collect();
            let _checking = checking.lock();
            // A reader keeps in memory what recovery changes, the more the faster the load is.
            let roomy = options.clone().cache_size(64 << 20);
            let kept = check_bank(&Environment::open_read_only(&target, roomy).unwrap());
            let opened = Environment::open(&target, options.clone()).unwrap();
            assert_eq!(check_bank(&opened), kept);
            for writer in 0..WRITERS {
                let (kept, least) = (kept[writer], acknowledged[writer].max(earlier[writer]));
                // A transaction may be in the backup before its writer has counted it.
                let most = begun[writer] + 1;
                assert!((least..=most).contains(&kept), "{kept} of {least} to {most}");
            }
            // The backup is an environment of its own.
            transfer(&opened, &open_bank(&opened), 0, &mut Random::new(99));
            opened.close().unwrap();
            let again = Environment::open(&target, options.clone()).unwrap();
            assert_eq!(check_bank(&again)[0], kept[0] + 1);
            earlier = kept;
        }
    });
    check_bank(&environment);
}

#[test]
fn backups_under_load_are_consistent() {
    // With so few log bytes between checkpoints, one is due during most copies.
    for durability in [Durability::Sync, Durability::WriteNoSync, Durability::NoSync] {
        backups_under_load(&small_options().durability(durability).checkpoint_bytes(64 << 10));
    }
}

#[test]
fn backup_without_a_log_has_the_checkpoint() {
    backups_under_load(&small_options().durability(Durability::InMemory));
}

#[test]
fn environment_in_memory_is_backed_up_to_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::open_in_memory(small_options()).unwrap();
    let database = environment.create_database("data").unwrap();
    put(&environment, &database, b"apple", &[7; 20_000]);
    let target = folder.path().join("backup");
    environment.backup_to(&target).unwrap();
    let backup = Environment::open(&target, small_options()).unwrap();
    assert_sound(&backup);
    assert_eq!(contents(&backup).unwrap(), contents(&environment).unwrap());
}

/// A large transaction whose fragments are in the log when the backup begins.
#[test]
fn backup_has_no_part_of_an_open_transaction() {
    let scene = Scene::new(&options());
    let transaction = scene.environment.begin().unwrap();
    for n in 0..200_u32 {
        scene.database.put(&transaction, &n.to_be_bytes(), &[1; 3000]).unwrap();
    }
    let target = Path::new("backup");
    scene.environment.backup_to(target).unwrap();
    transaction.commit().unwrap();
    let backup = Environment::open_in(scene.vfs.clone(), Some(target), options()).unwrap();
    assert_sound(&backup);
    assert!(contents(&backup).unwrap()["data"].is_empty());
    assert_eq!(contents(&scene.environment).unwrap()["data"].len(), 200);
}

/// A commit during the copy of the pages is in the log only. The backup has it, in as many segments
/// as it takes, and recovers it.
#[test]
fn backup_has_a_commit_made_during_the_copy() {
    for records in [1, 300] {
        let scene = Scene::new(&options());
        put(&scene.environment, &scene.database, b"before", b"");
        let (environment, database) = (scene.environment.clone(), scene.database.clone());
        let is_first = AtomicBool::new(true);
        scene.vfs.set_pause(move |call, path| {
            let is_copy = path.ends_with("backup.new") && matches!(call, Call::Write { .. });
            if is_copy && is_first.swap(false, Ordering::SeqCst) {
                crate::common::fill(&environment, &database, records, 2000);
            }
        });
        let target = Path::new("backup");
        let report = scene.environment.backup_to(target).unwrap();
        assert!(report.log_bytes >= records as u64 * 2000);
        scene.vfs.set_pause(|_, _| {});
        let expected = contents(&scene.environment).unwrap();
        assert_eq!(expected["data"].len(), records + 1);
        // Recovery in memory takes room for what it changes.
        let options_of_reader = small_options().cache_size(8 << 20);
        let reader =
            Environment::open_read_only_in(scene.vfs.clone(), target, options_of_reader).unwrap();
        assert_eq!(contents(&reader).unwrap(), expected);
        drop(reader);
        let backup = Environment::open_in(scene.vfs.clone(), Some(target), options()).unwrap();
        assert_sound(&backup);
        assert_eq!(contents(&backup).unwrap(), expected);
    }
}

/// Opens the backup if there is one: then it has what was committed. Returns whether there is one.
fn check_target(scene: &Scene, target: &Path) -> bool {
    let opened = Environment::open_in(scene.vfs.clone(), Some(target), options().create(false));
    match opened {
        Ok(backup) => {
            assert_same(&contents(&backup).unwrap()["data"], &scene.model.borrow(), "backup");
            assert_sound(&backup);
            true
        }
        Err(Error::NotAnEnvironment { .. }) => {
            assert!(!scene.vfs.exists(&target.join(DATA_FILE)));
            false
        }
        Err(error) => panic!("{error}"),
    }
}

fn changed_scene(seed: u64) -> Scene {
    let scene = Scene::new(&options());
    let mut random = Random::new(seed);
    for _ in 0..30 {
        scene.change(&mut random).unwrap();
    }
    scene
}

/// The world stands still after each changing call in turn. What the target has then is a whole
/// backup or none, and the next backup into it succeeds.
#[test]
fn stopped_backup_is_whole_or_absent() {
    let target = Path::new("backup");
    let mut outcomes = [0, 0];
    for calls in 0.. {
        let scene = changed_scene(1);
        scene.vfs.stop_after(calls);
        let finished = scene.environment.backup_to(target).is_ok();
        scene.vfs.clear_rule();
        // The stopped process leaves its files; another one opens them.
        let again = FaultyVfs::new(scene.memory.clone());
        let whole = check_target(&scene, target);
        assert!(whole || !finished, "after {calls} calls");
        outcomes[usize::from(whole)] += 1;
        if !whole {
            let place = Some(crate::common::place());
            let environment = Environment::open_in(again, place, options()).unwrap();
            environment.backup_to(target).unwrap();
            assert!(check_target(&scene, target));
        }
        if finished {
            break;
        }
    }
    assert!(outcomes[0] > 10 && outcomes[1] > 0, "{outcomes:?}");
}

/// Each changing call on the target fails in turn. The environment goes on, and the next backup
/// succeeds.
#[test]
fn failed_backup_leaves_the_environment_in_use() {
    let target = Path::new("backup");
    for calls in 0.. {
        let scene = changed_scene(2);
        let mut left = calls;
        let full = calls % 2 == 0;
        scene.vfs.set_rule(move |call: Call, path| {
            let is_target = path.starts_with("backup") || path == Path::new("");
            if !is_target || !call.changes() {
                return None;
            }
            left -= 1;
            let kind = if full { io::ErrorKind::StorageFull } else { io::ErrorKind::Other };
            (left == -1).then(|| kind.into())
        });
        let failed = scene.environment.backup_to(target);
        scene.vfs.clear_rule();
        let Err(error) = failed else {
            assert!(calls > 10, "{calls} calls on the target");
            return;
        };
        match error {
            Error::DiskFull { .. } => assert!(full),
            Error::Io { .. } => assert!(!full),
            other => panic!("{other}"),
        }
        scene.change(&mut Random::new(3)).unwrap();
        scene.environment.checkpoint().unwrap();
        scene.check_reads("after a failed backup");
        if !scene.vfs.exists(&target.join(DATA_FILE)) {
            scene.environment.backup_to(target).unwrap();
            assert!(check_target(&scene, target));
        }
    }
}

#[test]
fn backup_refuses_a_directory_in_use_and_damaged_pages() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::open(folder.path().join("data"), small_options()).unwrap();
    let database = environment.create_database("data").unwrap();
    put(&environment, &database, b"apple", b"red");
    assert_misuse(environment.backup_to(folder.path()), "not empty");
    assert_misuse(environment.backup_to(folder.path().join("data")), "not empty");
    let target = folder.path().join("backup");
    // The log of an environment whose data file was lost is no unfinished backup.
    std::fs::create_dir_all(target.join("log")).unwrap();
    assert_misuse(environment.backup_to(&target), "not empty");
    std::fs::remove_dir(target.join("log")).unwrap();
    environment.backup_to(&target).unwrap();
    assert_misuse(environment.backup_to(&target), "not empty");
    let reader = Environment::open_read_only(&target, small_options()).unwrap();
    let refused = reader.backup_to(folder.path().join("other"));
    assert!(matches!(refused, Err(Error::ReadOnlyEnvironment)), "{refused:?}");

    // Every image of the last checkpoint is overwritten with zeros.
    environment.checkpoint().unwrap();
    let vfs = OsVfs::new();
    let data = folder.path().join("data").join(DATA_FILE);
    let file = vfs.open(&data, quickbeam::vfs::OpenMode::Write).unwrap();
    let length = file.length().unwrap() - (64 << 10);
    file.write_at(&vec![0; length as usize], 64 << 10).unwrap();
    let damaged = folder.path().join("damaged");
    let refused = environment.backup_to(&damaged);
    assert!(matches!(refused, Err(Error::Corruption { .. })), "{refused:?}");
    assert!(std::fs::read_dir(&damaged).unwrap().all(|entry| entry.unwrap().path().is_dir()));
}
