//! What several test files use: random numbers from a printed seed, copies of environments taken
//! without closing them, and a world that fails by rule.

#![allow(
    dead_code,
    unused_imports,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used
)]

pub mod actor;
pub mod churn;
pub mod faulty;
pub mod files;
pub mod history;
pub mod kill;
pub mod scene;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use faulty::FaultyVfs;
pub use faulty::Files;
use quickbeam::vfs::{OpenMode, Vfs};
use quickbeam::{
    AccessMethod, Database, Durability, Environment, Error, Isolation, LOCK_FILE, LOG_DIRECTORY,
    Options, ReadTransaction, Result, Transaction, TransactionOptions,
};
pub use quickbeam_testing::{Random, first_seed, rounds};

/// Records of one database.
pub type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// Small everything, so that splits, evictions, segment changes and checkpoints come soon.
pub fn small_options() -> Options {
    Options::new()
        .page_size(4096)
        .cache_size(4096 * 256)
        .log_segment_size(256 << 10)
        .log_buffer(128 << 10)
        .durability(Durability::Sync)
}

/// An environment in memory with a small cache, and a database in it.
pub fn memory_environment() -> (Environment, Database) {
    let options = small_options().cache_size(64 * 4096);
    let environment = Environment::open_in_memory(options).unwrap();
    let database = environment.create_database("data").unwrap();
    (environment, database)
}

/// A transaction that waits a minute for a record: who fails sooner has another reason.
pub fn begin(environment: &Environment, isolation: Isolation) -> Transaction {
    let isolation = Some(isolation);
    let lock_timeout = Some(Duration::from_secs(60));
    environment
        .begin_with(TransactionOptions::new().isolation(isolation).lock_timeout(lock_timeout))
        .unwrap()
}

/// Puts one record, in a transaction of its own.
pub fn put(environment: &Environment, database: &Database, key: &[u8], value: &[u8]) {
    environment.transact(|transaction| database.put(transaction, key, value)).unwrap();
}

/// How the records of databases are found in tests that have some of each: those whose name begins
/// with "t" by hash.
pub fn method_of(name: &str) -> AccessMethod {
    if name.starts_with('t') { AccessMethod::Hash } else { AccessMethod::BTree }
}

/// The database of that name, made if there is none.
pub fn open_or_create(environment: &Environment, name: &str) -> Database {
    environment
        .open_database(name)
        .or_else(|_| environment.create_database_with(name, method_of(name)))
        .unwrap()
}

/// The hash value of a key, as `docs/format.md` has it.
pub fn hash_of(key: &[u8]) -> u32 {
    let mut hash = (key.len() as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
    for part in key.chunks(8) {
        let mut word = part.to_vec();
        word.resize(8, 0);
        hash ^= u64::from_le_bytes(word.try_into().unwrap());
        hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    }
    (hash.wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as u32
}

/// All records of a database, by a forward scan.
pub fn records(
    database: &Database,
    transaction: &impl ReadTransaction,
) -> quickbeam::Result<Records> {
    let mut records = Records::new();
    let mut cursor = database.cursor(transaction)?;
    let mut more = cursor.first()?;
    while more {
        records.insert(cursor.key().to_vec(), cursor.value().to_vec());
        more = cursor.next()?;
    }
    Ok(records)
}

/// All databases and their records.
pub fn contents(environment: &Environment) -> quickbeam::Result<BTreeMap<String, Records>> {
    let transaction = environment.begin_read()?;
    let mut all = BTreeMap::new();
    for name in transaction.databases()? {
        let database = transaction.open_database(&name)?;
        all.insert(name, records(&database, &transaction)?);
    }
    Ok(all)
}

/// Fails with the first difference; values may be too long to print.
#[track_caller]
pub fn assert_same(found: &Records, expected: &Records, what: &str) {
    if found == expected {
        return;
    }
    let differs = |key: &&Vec<u8>| found.get(*key) != expected.get(*key);
    let key = found.keys().chain(expected.keys()).filter(differs).min().unwrap();
    let show = |records: &Records| {
        records
            .get(key)
            .map(|value| format!("{} bytes {:?}", value.len(), &value[..value.len().min(20)]))
    };
    panic!(
        "{what}: {} records, expected {}; the first difference is at {:?}: {:?}, expected {:?}",
        found.len(),
        expected.len(),
        String::from_utf8_lossy(key),
        show(found),
        show(expected)
    );
}

/// The error of a call that must fail, and not invite to try again.
pub fn refused<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("it was accepted"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() > 10 && !error.is_retryable(), "{text}");
            error
        }
    }
}

/// It must fail as a mistake of the caller, and say that word.
#[track_caller]
pub fn assert_misuse<T>(result: Result<T>, word: &str) {
    let error = refused(result);
    let text = error.to_string();
    assert!(matches!(error, Error::Misuse { .. }), "{error:?}");
    assert!(text.contains(word), "{text:?} does not say {word:?}");
}

/// The environment must have nothing to complain about.
pub fn assert_sound(environment: &Environment) {
    let report = environment.verify().unwrap();
    assert_eq!(report.complaints, Vec::<String>::new());
}

/// A world in memory that holds these files below `directory`.
pub fn world_with(files: &Files, directory: &Path) -> Arc<FaultyVfs> {
    let vfs = FaultyVfs::in_memory();
    for (path, bytes) in files {
        let file = vfs.open(&directory.join(path), OpenMode::Create).unwrap();
        file.write_at(bytes, 0).unwrap();
        file.set_length(bytes.len() as u64).unwrap();
    }
    vfs
}

/// Where environments in a memory world live.
pub fn place() -> &'static Path {
    Path::new("environment")
}

/// Opens the environment that these files are.
pub fn open_files(files: &Files, options: &Options) -> quickbeam::Result<Environment> {
    Environment::open_in(world_with(files, place()), Some(place()), options.clone())
}

/// An environment in a world in memory, with nothing in it.
pub fn environment_in_world() -> (Arc<FaultyVfs>, Environment) {
    let vfs = FaultyVfs::in_memory();
    let opened = Environment::open_in(vfs.clone(), Some(place()), small_options());
    (vfs, opened.unwrap())
}

/// Puts `records` records of `length` bytes in one transaction.
pub fn fill(environment: &Environment, database: &Database, records: usize, length: usize) {
    let fill = |transaction: &Transaction| {
        (0..records).try_for_each(|n| {
            database.put(transaction, format!("{n:06}").as_bytes(), &vec![n as u8; length])
        })
    };
    environment.transact(fill).unwrap();
}

/// Waits until `is_true`, for at most a minute.
#[track_caller]
pub fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_true() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("waited a minute until {what}");
}
