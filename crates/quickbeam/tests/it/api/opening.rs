//! Where an environment is opened: in use by another, not an environment, of the other product or
//! of another version. Each is refused by name and left as it was.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::common::faulty::{Call, FaultyVfs};
use crate::common::{assert_misuse, contents, refused, small_options};
use quickbeam::vfs::{OpenMode, OsVfs};
use quickbeam::{DATA_FILE, DataStore, Environment, Error, LOCK_FILE, LOG_DIRECTORY, Result};

/// Set in a process that was started to open the directory it names.
const OPENER: &str = "QUICKBEAM_TEST_OPENER";

#[test]
fn second_opener_gets_locked() {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::open(directory.path(), small_options()).unwrap();
    let database = environment.create_database("data").unwrap();
    environment.transact(|t| database.put(t, b"key", b"value")).unwrap();
    for _ in 0..2 {
        let error = refused(Environment::open(directory.path(), small_options()));
        let expected = format!("process {} (", std::process::id());
        let Error::Locked(locked) = &error else { panic!("{error}") };
        assert!(locked.path == directory.path() && locked.socket.is_none(), "{error}");
        let holder = locked.holder.as_deref().unwrap_or_default();
        assert!(holder.starts_with(&expected), "{error}");
    }
    assert_eq!(open_in_another_process(directory.path()), "locked");
    // Refusing changed nothing; once it is closed the next one may come.
    environment.transact(|t| database.put(t, b"key", b"again")).unwrap();
    let handle = environment.clone();
    environment.close().unwrap();
    assert_eq!(open_in_another_process(directory.path()), "opened");
    let again = Environment::open(directory.path(), small_options()).unwrap();
    assert_eq!(contents(&again).unwrap()["data"][&b"key"[..]], b"again");
    drop(handle);
    assert_eq!(open_in_another_process(directory.path()), "locked", "the old handle holds no lock");
}

#[test]
fn holder_of_the_lock_is_named_only_while_it_writes() {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::open(directory.path(), small_options()).unwrap();
    std::fs::write(directory.path().join(quickbeam::SOCKET_FILE), "").unwrap();
    let error = refused(Environment::open(directory.path(), small_options()));
    let expected = directory.path().join(quickbeam::SOCKET_FILE);
    assert!(
        matches!(&error, Error::Locked(locked) if locked.socket.as_ref() == Some(&expected)),
        "{error}"
    );
    assert!(error.to_string().contains("psql -h"), "{error}");
    environment.close().unwrap();
    // A reader writes nothing, so the text in the file is not about the holder of the lock.
    let reader = Environment::open_read_only(directory.path(), small_options()).unwrap();
    let error = refused(Environment::open(directory.path(), small_options()));
    let Error::Locked(locked) = &error else { panic!("{error}") };
    assert!(locked.holder.is_none() && locked.socket.is_none(), "{error}");
    reader.close().unwrap();
    Environment::open(directory.path(), small_options()).unwrap();
}

fn open_in_another_process(directory: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["api::opening::opener_process", "--exact", "--nocapture", "--test-threads=1"])
        .env(OPENER, directory)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = text.lines().find_map(|line| line.split_once("the opener says: "));
    said.unwrap_or_else(|| panic!("{text}")).1.to_owned()
}

/// Not a test by itself: what the process does that `open_in_another_process` starts.
#[test]
fn opener_process() {
    let Some(directory) = std::env::var_os(OPENER) else { return };
    match Environment::open(directory, small_options()) {
        Ok(_) => println!("the opener says: opened"),
        Err(Error::Locked { .. }) => println!("the opener says: locked"),
        Err(error) => println!("the opener says: {error}"),
    }
}

/// Another opener makes the environment, and goes, after this one has seen an empty directory and
/// before it has the lock.
#[test]
fn concurrent_creation_does_not_overwrite() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let vfs = FaultyVfs::new(Arc::new(OsVfs::new()));
    let mut first = true;
    let other = path.clone();
    vfs.set_rule(move |call, path| {
        if call == Call::Open(OpenMode::Create) && path.ends_with(LOCK_FILE) && first {
            first = false;
            let environment = Environment::open(&other, small_options()).unwrap();
            let database = environment.create_database("data").unwrap();
            environment.transact(|t| database.put(t, b"key", b"value")).unwrap();
            environment.close().unwrap();
        }
        None
    });
    let environment = Environment::open_in(vfs, Some(&path), small_options()).unwrap();
    let all = contents(&environment).unwrap();
    assert_eq!(
        all.get("data").map(|records| records.len()),
        Some(1),
        "what the other made is gone"
    );
}

#[test]
fn foreign_directories_are_refused_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let no_create = small_options().create(false);
    let not = |result: Result<Environment>, path: &Path| {
        let error = refused(result);
        let told = matches!(&error, Error::NotAnEnvironment(missing) if missing.path == path);
        assert!(told, "{error:?}");
    };
    not(Environment::open(path, no_create.clone()), path);
    let absent = path.join("absent");
    not(Environment::open(&absent, no_create), &absent);
    assert!(!absent.exists());
    std::fs::write(path.join("letter.txt"), b"dear").unwrap();
    not(Environment::open(path, small_options()), path);
    let names: Vec<_> = std::fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["letter.txt"], "nothing was made beside other files");

    // A file where the directory should be, and one on the way to it.
    let file = path.join("letter.txt");
    for place in [file.clone(), file.join("below")] {
        let error = refused(Environment::open(&place, small_options()));
        assert!(matches!(error, Error::NotAnEnvironment { .. } | Error::Io { .. }), "{error:?}");
        assert!(error.to_string().contains("letter.txt"), "{error}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"dear");

    // A log without its data file is not made into an empty environment.
    let lost = path.join("lost");
    Environment::open(&lost, small_options()).unwrap().create_database("data").unwrap();
    std::fs::remove_file(lost.join(DATA_FILE)).unwrap();
    not(Environment::open(&lost, small_options()), &lost);
    assert!(std::fs::read_dir(lost.join(LOG_DIRECTORY)).unwrap().count() > 0);
}

#[test]
fn invalid_data_file_is_refused() {
    for bytes in [vec![], b"short".to_vec(), vec![0; 100_000], vec![0xff; 100_000]] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(DATA_FILE);
        std::fs::write(&file, &bytes).unwrap();
        let error = refused(Environment::open(directory.path(), small_options()));
        assert!(
            matches!(error, Error::Corruption { .. } | Error::NotAnEnvironment { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains(DATA_FILE), "{error}");
        assert!(std::fs::read(&file).unwrap() == bytes, "it was changed");
        refused(DataStore::open(directory.path(), small_options()));
    }
}

/// The checksum of the file format, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

#[test]
fn other_format_version_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::open(directory.path(), small_options()).unwrap();
    environment.create_database("data").unwrap();
    environment.close().unwrap();
    let path = directory.path().join(DATA_FILE);
    let good = std::fs::read(&path).unwrap();
    let mut bytes = good.clone();
    for slot in [0, 8192] {
        bytes[slot + 8..slot + 12].copy_from_slice(&77u32.to_le_bytes());
        let checksum = crc32c(&bytes[slot..slot + 124]);
        bytes[slot + 124..slot + 128].copy_from_slice(&checksum.to_le_bytes());
    }
    std::fs::write(&path, &bytes).unwrap();
    let error = refused(Environment::open(directory.path(), small_options()));
    let Error::FormatVersion(format) = &error else { panic!("{error:?}") };
    assert_eq!((format.found, format.supported), (77, 2));
    assert!(std::fs::read(&path).unwrap() == bytes, "it was changed");
    std::fs::write(&path, &good).unwrap();
    let environment = Environment::open(directory.path(), small_options()).unwrap();
    assert_eq!(environment.databases().unwrap(), ["data"]);
}

#[test]
fn environment_and_data_store_refuse_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (directory.path().join("one"), directory.path().join("other"));
    Environment::open(&one, small_options()).unwrap().create_database("data").unwrap();
    let mut store = DataStore::open(&other, small_options()).unwrap();
    store.create_database("data").unwrap();
    assert!(matches!(refused(DataStore::open(&other, small_options())), Error::Locked { .. }));
    store.close().unwrap();
    assert_misuse(DataStore::open(&one, small_options()), "Environment");
    assert_misuse(Environment::open(&other, small_options()), "DataStore");
    assert_eq!(Environment::open(&one, small_options()).unwrap().databases().unwrap(), ["data"]);
    assert_eq!(DataStore::open(&other, small_options()).unwrap().databases().unwrap(), ["data"]);
}
