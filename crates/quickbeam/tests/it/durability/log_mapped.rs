//! Commits whose records are stored in mapped segments: what is in the files when the process is no
//! more, across the ends of segments, checkpoints that let go of segments made ready ahead, other
//! openings, and copies that have holes.
//!
//! On a file system that is not mapped (see `vfs/os.rs`) the same is shown of write calls.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::common::files::copy_environment;
use crate::common::{Random, Records, assert_same, contents, first_seed, small_options};
use quickbeam::{Database, Durability, Environment, LOG_DIRECTORY, Options};

/// Checkpoints are made when the test says so: files are copied between them.
fn options(durability: Durability) -> Options {
    small_options()
        .durability(durability)
        .checkpoint_bytes(u64::MAX)
        .checkpoint_interval(Duration::MAX)
}

/// What a process finds that opens the files as they are now.
fn found_in_copy(directory: &Path, copy: &Path, options: Options) -> Records {
    if copy.exists() {
        fs::remove_dir_all(copy).unwrap();
    }
    copy_environment(directory, copy).unwrap();
    let environment = Environment::open(copy, options).unwrap();
    environment.verify().unwrap();
    contents(&environment).unwrap().remove("data").unwrap_or_default()
}

/// Commits until the log has gone on by about `bytes`.
fn commit(
    environment: &Environment,
    database: &Database,
    known: &mut Records,
    random: &mut Random,
    bytes: usize,
) {
    let mut done = 0;
    while done < bytes {
        let key = format!("key {:03}", random.below(200)).into_bytes();
        let value = vec![random.next() as u8; random.below(40_000)];
        done += value.len() + 64;
        environment.transact(|t| database.put(t, &key, &value)).unwrap();
        known.insert(key, value);
    }
}

/// Every commit is in the files when its call has returned, wherever in a segment it went.
fn survives(durability: Durability, folder: &Path) {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let (directory, copy) = (folder.path().join("db"), folder.path().join("copy"));
    let random = &mut Random::new(first_seed());
    let mut known = Records::new();
    for opening in 0..3 {
        let environment = Environment::open(&directory, options(durability)).unwrap();
        let database = environment.open_or_create_database("data").unwrap();
        for round in 0..6 {
            // About half a segment to three: ends of segments fall everywhere.
            let bytes = (100 << 10) + random.below(700 << 10);
            commit(&environment, &database, &mut known, random, bytes);
            let what = format!("{durability:?}, opening {opening}, round {round}");
            assert_same(&found_in_copy(&directory, &copy, options(durability)), &known, &what);
            if round % 2 == 0 {
                // At rest: segments made ready ahead are removed, and made again when they are
                // wanted.
                environment.checkpoint().unwrap();
                commit(&environment, &database, &mut known, random, 1);
                assert_same(&found_in_copy(&directory, &copy, options(durability)), &known, &what);
            }
        }
        environment.close().unwrap();
    }
}

#[test]
fn write_nosync_commits_are_in_the_files() {
    survives(Durability::WriteNoSync, &std::env::temp_dir());
}

#[test]
fn sync_commits_are_in_the_files() {
    survives(Durability::Sync, &std::env::temp_dir());
}

/// On Linux this is a memory file system: there is nothing to flush to, and no commit asks for it.
#[cfg(target_os = "linux")]
#[test]
fn sync_commits_of_a_memory_vfs_are_in_its_files() {
    let folder = Path::new("/dev/shm");
    if folder.is_dir() {
        survives(Durability::Sync, folder);
        let folder = tempfile::tempdir_in(folder).unwrap();
        let environment = Environment::open(folder.path(), options(Durability::Sync)).unwrap();
        let database = environment.create_database("data").unwrap();
        let before = environment.statistics().log_flushes;
        for n in 0..1000u32 {
            environment.transact(|t| database.put(t, &n.to_be_bytes(), b"value")).unwrap();
        }
        let flushes = environment.statistics().log_flushes - before;
        assert!(flushes < 1000, "{flushes} flushes");
    }
}

#[test]
fn sparse_and_truncated_segments_are_continued() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, copy) = (folder.path().join("db"), folder.path().join("copy"));
    let random = &mut Random::new(first_seed());
    let mut known = Records::new();
    let open = || Environment::open(&directory, options(Durability::WriteNoSync)).unwrap();
    let environment = open();
    let database = environment.open_or_create_database("data").unwrap();
    commit(&environment, &database, &mut known, random, 50 << 10);
    environment.close().unwrap();
    for cut in [true, false] {
        let segment = fs::read_dir(directory.join(LOG_DIRECTORY))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .max()
            .unwrap();
        let whole = fs::read(&segment).unwrap();
        let used = whole.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        fs::write(&segment, &whole[..used]).unwrap();
        if !cut {
            // Like a sparse copy: the same length, and no bytes after the records.
            let file = fs::OpenOptions::new().write(true).open(&segment).unwrap();
            file.set_len(whole.len() as u64).unwrap();
        }
        let environment = open();
        let database = environment.open_or_create_database("data").unwrap();
        commit(&environment, &database, &mut known, random, 600 << 10);
        let options = options(Durability::WriteNoSync);
        assert_same(&found_in_copy(&directory, &copy, options), &known, "beside");
        environment.close().unwrap();
    }
}
