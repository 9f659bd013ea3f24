//! Environments of every version of the file format, as an earlier release wrote them. Every
//! release opens them and finds the same records. A file of a later version is refused with advice.
//! The fixtures are files in `tests/fixtures`, packed: runs of equal bytes are counted. A version
//! that has fixtures never gets others.
//! `QUICKBEAM_MAKE_FIXTURES=1 cargo test -p quickbeam --test it -- --test-threads 1 format` makes
//! those that are not there, which is for the first release of a later version.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use crate::common::faulty::FaultyVfs;
use crate::common::{Files, Records, contents, open_files, place, small_options, world_with};
use quickbeam::query_layer::{DatabaseExt, Scan, ScanBatch};
use quickbeam::{AccessMethod, DATA_FILE, DataStore, Environment, Error, Options};

/// The version that this release writes.
const VERSION: u32 = 2;

fn options() -> Options {
    small_options().checkpoint_bytes(1 << 30)
}

/// What every fixture holds.
fn expected() -> Records {
    let mut records = Records::new();
    for n in 0..40usize {
        let value = vec![n as u8; if n == 7 { 9000 } else { n * 3 }];
        records.insert(format!("key {n:03}").into_bytes(), value);
    }
    records
}

/// An environment with a tree and, beside it, the same in a hash database; `crashed`: with half of
/// its records in the log alone, and a hash database of which the checkpoint does not know.
fn environment(crashed: bool) -> Files {
    let vfs = FaultyVfs::in_memory();
    let environment = Environment::open_in(vfs.clone(), Some(place()), options()).unwrap();
    let database = environment.create_database("data").unwrap();
    let hashed = environment.create_database_with("hashed", AccessMethod::Hash).unwrap();
    for (number, (key, value)) in expected().iter().enumerate() {
        crate::common::put(&environment, &database, key, value);
        crate::common::put(&environment, &hashed, key, value);
        if number == 20 {
            environment.checkpoint().unwrap();
        }
    }
    if crashed {
        let late = environment.create_database_with("late", AccessMethod::Hash).unwrap();
        crate::common::put(&environment, &late, b"key", b"value");
        return vfs.files(place());
    }
    environment.close().unwrap();
    vfs.files(place())
}

fn store() -> Files {
    let vfs = FaultyVfs::in_memory();
    let mut store = DataStore::open_in(vfs.clone(), Some(place()), options()).unwrap();
    let database = store.create_database("data").unwrap();
    let hashed = store.create_database_with("hashed", AccessMethod::Hash).unwrap();
    for (key, value) in expected() {
        store.put(database, &key, &value).unwrap();
        store.put(hashed, &key, &value).unwrap();
    }
    store.close().unwrap();
    vfs.files(place())
}

/// An environment with a hash database of groups.
fn groups() -> Files {
    let vfs = FaultyVfs::in_memory();
    let environment = Environment::open_in(vfs.clone(), Some(place()), options()).unwrap();
    let made = environment.create_database_with("groups", AccessMethod::HashPrefix).unwrap();
    for (key, value) in &grouped() {
        crate::common::put(&environment, &made, key, value);
    }
    environment.close().unwrap();
    vfs.files(place())
}

/// What it holds: groups of ten records.
fn grouped() -> Records {
    let grouped = |(key, value): (Vec<u8>, Vec<u8>)| ([&b"\0\x06"[..], &key].concat(), value);
    expected().into_iter().map(grouped).collect()
}

/// Files as one: for each its name's length, name, length, then runs: how often, and which byte.
fn pack(files: &Files) -> Vec<u8> {
    let mut packed = Vec::new();
    let number = |packed: &mut Vec<u8>, mut number: usize| {
        while number >= 0x80 {
            packed.push(number as u8 | 0x80);
            number >>= 7;
        }
        packed.push(number as u8);
    };
    for (path, bytes) in files {
        let name = path.to_str().unwrap();
        number(&mut packed, name.len());
        packed.extend_from_slice(name.as_bytes());
        number(&mut packed, bytes.len());
        for run in bytes.chunk_by(|one, other| one == other) {
            number(&mut packed, run.len());
            packed.push(run[0]);
        }
    }
    packed
}

fn unpack(packed: &[u8]) -> Files {
    let mut at = 0;
    let byte = |at: &mut usize| {
        *at += 1;
        packed[*at - 1]
    };
    let number = |at: &mut usize| {
        let (mut number, mut shift) = (0usize, 0);
        loop {
            let part = byte(at);
            number |= usize::from(part & 0x7f) << shift;
            shift += 7;
            if part & 0x80 == 0 {
                return number;
            }
        }
    };
    let mut files = Files::new();
    while at < packed.len() {
        let length = number(&mut at);
        let name = std::str::from_utf8(&packed[at..at + length]).unwrap();
        at += length;
        let length = number(&mut at);
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let run = number(&mut at);
            let value = byte(&mut at);
            bytes.resize(bytes.len() + run, value);
        }
        files.insert(PathBuf::from(name), bytes);
    }
    files
}

/// The fixture of that name and version.
fn fixture(version: u32, name: &str, make: impl FnOnce() -> Files) -> Files {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let path = folder.join(format!("version-{version}-{name}.packed"));
    if version == VERSION && !path.exists() && std::env::var_os("QUICKBEAM_MAKE_FIXTURES").is_some()
    {
        std::fs::write(&path, pack(&make())).unwrap();
    }
    unpack(&std::fs::read(&path).unwrap())
}

fn assert_environment(version: u32, name: &str, crashed: bool) {
    let files = fixture(version, name, || environment(crashed));
    let environment = open_files(&files, &options()).unwrap();
    let mut databases = BTreeMap::from([("data".into(), expected())]);
    if version >= 2 {
        databases.insert("hashed".into(), expected());
    }
    if version >= 2 && crashed {
        databases.insert("late".into(), BTreeMap::from([(b"key".into(), b"value".into())]));
    }
    assert!(contents(&environment).unwrap() == databases);
    for name in databases.keys() {
        let method = environment.open_database(name).unwrap().access_method();
        assert_eq!(method == AccessMethod::Hash, name != "data");
    }
    crate::common::assert_sound(&environment);
    // It can be written to, too.
    let database = environment.open_database("data").unwrap();
    crate::common::put(&environment, &database, b"new", b"record");
    environment.close().unwrap();
}

#[test]
fn version_1_environment_closed_cleanly_opens() {
    assert_environment(1, "closed", false);
}

#[test]
fn version_1_environment_after_a_crash_recovers() {
    assert_environment(1, "crashed", true);
}

#[test]
fn version_2_environment_closed_cleanly_opens() {
    assert_environment(2, "closed", false);
}

#[test]
fn version_2_environment_after_a_crash_recovers() {
    assert_environment(2, "crashed", true);
}

#[test]
fn version_1_data_store_opens() {
    assert_store(1, &["data"]);
}

#[test]
fn version_2_data_store_opens() {
    assert_store(2, &["data", "hashed"]);
}

#[test]
fn version_2_hash_prefix_environment_opens() {
    let files = fixture(2, "groups", groups);
    let environment = open_files(&files, &options()).unwrap();
    assert!(contents(&environment).unwrap() == BTreeMap::from([("groups".into(), grouped())]));
    let database = environment.open_database("groups").unwrap();
    assert_eq!(database.access_method(), AccessMethod::HashPrefix);
    let reader = environment.begin_read().unwrap();
    let mut scan = Scan::new(Bound::Unbounded, Bound::Unbounded);
    scan.restart_hash_prefix(b"\0\x06key 01");
    let (mut batch, mut count) = (ScanBatch::default(), 0);
    while database.scan(&reader, &mut scan, &mut batch).unwrap() {
        count += batch.len();
    }
    assert_eq!(count, 10);
    drop(reader);
    crate::common::assert_sound(&environment);
    crate::common::put(&environment, &database, b"\0\x06key 01new", b"record");
    environment.close().unwrap();
}

fn assert_store(version: u32, names: &[&str]) {
    let files = fixture(version, "store", store);
    let vfs = world_with(&files, place());
    let mut store = DataStore::open_in(vfs, Some(place()), options()).unwrap();
    assert_eq!(store.databases().unwrap(), names);
    for name in names {
        let database = store.open_database(name).unwrap();
        assert_eq!(database.access_method() == AccessMethod::Hash, *name == "hashed");
        for (key, value) in expected() {
            assert_eq!(store.get(database, &key).unwrap(), Some(value));
        }
    }
    assert!(store.verify().unwrap().complaints.is_empty());
}

#[test]
fn later_format_version_is_refused_with_advice() {
    let mut files = fixture(VERSION, "closed", || environment(false));
    let data = files.get_mut(Path::new(DATA_FILE)).unwrap();
    // Two slots with two copies each.
    for slot in [0, 4096, 8192, 12_288] {
        data[slot + 8..slot + 12].copy_from_slice(&(VERSION + 1).to_le_bytes());
        let checksum = crc32c::crc32c(&data[slot..slot + 124]);
        data[slot + 124..slot + 128].copy_from_slice(&checksum.to_le_bytes());
    }
    let error = open_files(&files, &options()).err().unwrap();
    let Error::FormatVersion(format) = &error else { panic!("{error:?}") };
    assert_eq!((format.found, format.supported), (3, VERSION));
    let text = error.to_string();
    assert!(text.contains("dump it there and load it here"), "{text}");
}

#[test]
fn packed_fixture_unpacks_to_the_same_bytes() {
    let files = store();
    assert!(unpack(&pack(&files)) == files);
}
