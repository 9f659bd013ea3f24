//! Whole small environments, from opening to salvage, in memory: little enough work that an
//! interpreter which looks for undefined behaviour (`./x miri`) and sanitizers come to the end of
//! it, and yet every module takes part.

use std::path::Path;
use std::sync::Arc;

use crate::common::faulty::FaultyVfs;
use crate::common::{Records, assert_sound, contents, open_files, place, records};
use quickbeam::vfs::{MemoryVfs, OpenMode, Vfs};
use quickbeam::{
    DATA_FILE, DataStore, Durability, Environment, Error, Isolation, Options, Transaction,
    TransactionOptions, salvage_in,
};

/// How often each kind of work is done.
const TIMES: usize = if cfg!(miri) { 4 } else { 60 };

fn options(durability: Durability) -> Options {
    Options::new()
        .page_size(4096)
        .cache_size(4096 * 64)
        .log_segment_size(256 << 10)
        .log_buffer(64 << 10)
        .durability(durability)
}

/// The value of a record: every few are too long for a page.
fn value(number: usize) -> Vec<u8> {
    vec![number as u8; if number % 5 == 4 { 9000 } else { number * 7 % 300 }]
}

/// Puts, deletes and rolls back, in transactions of every isolation.
fn work(environment: &Environment, thread: usize) {
    let database = environment.open_or_create_database("data").unwrap();
    for turn in 0..TIMES {
        let isolation = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];
        let isolation = Some(isolation[turn % 3]);
        let attempt = || -> quickbeam::Result<()> {
            let options = TransactionOptions::new().isolation(isolation);
            let transaction = environment.begin_with(options)?;
            let key = format!("key {thread} {turn:03}");
            database.put(&transaction, key.as_bytes(), &value(turn))?;
            let savepoint = transaction.savepoint()?;
            database.put(&transaction, b"shared", &value(turn + 4))?;
            database.delete(&transaction, key.as_bytes())?;
            if turn % 2 == 0 {
                transaction.rollback_to(savepoint)?;
            }
            database.put(&transaction, b"shared", &turn.to_be_bytes())?;
            transaction.commit()
        };
        loop {
            match attempt() {
                Ok(()) => break,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
        }
    }
}

/// The records after [`work`], without the shared one.
fn left(threads: usize) -> Records {
    let turns = (0..threads).flat_map(|thread| (0..TIMES).map(move |turn| (thread, turn)));
    let kept = turns.filter(|(_, turn)| turn % 2 == 0);
    kept.map(|(thread, turn)| (format!("key {thread} {turn:03}").into_bytes(), value(turn)))
        .collect()
}

fn check(environment: &Environment, threads: usize) {
    let reader = environment.begin_read().unwrap();
    let database = reader.open_database("data").unwrap();
    let mut found = records(&database, &reader).unwrap();
    assert_eq!(found.remove(&b"shared"[..]), Some((TIMES - 1).to_be_bytes().to_vec()));
    assert_eq!(found.len(), left(threads).len());
    crate::common::assert_same(&found, &left(threads), "after the work");
    let mut cursor = database.cursor(&reader).unwrap();
    let mut back = 0;
    while cursor.prev().unwrap() {
        back += 1;
    }
    assert_eq!(back, found.len() + 1);
    drop(cursor);
    drop(reader);
    assert_sound(environment);
}

#[test]
fn two_threads_with_a_checkpoint_recover_from_a_crash() {
    for durability in [Durability::Sync, Durability::NoSync] {
        let vfs = FaultyVfs::in_memory();
        let opened = Environment::open_in(vfs.clone(), Some(place()), options(durability));
        let environment = opened.unwrap();
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let environment = environment.clone();
                scope.spawn(move || work(&environment, thread));
            }
            environment.checkpoint().unwrap();
        });
        check(&environment, 2);
        environment.create_database("dropped").unwrap();
        environment.rename_database("dropped", "renamed").unwrap();
        environment.drop_database("renamed").unwrap();
        // A commit that is flushed brings all before it along.
        let last = |transaction: &Transaction| {
            transaction.open_database("data")?.put(transaction, b"last", b"one")?;
            transaction.open_database("data")?.delete(transaction, b"last").map(drop)
        };
        let sync = TransactionOptions::new().durability(Durability::Sync);
        let transaction = environment.begin_with(sync).unwrap();
        last(&transaction).unwrap();
        transaction.commit().unwrap();
        let files = vfs.files(place());
        environment.close().unwrap();
        let recovered = open_files(&files, &options(durability)).unwrap();
        check(&recovered, 2);
        recovered.close().unwrap();
    }
}

#[test]
fn environments_without_log_or_files_work() {
    let environment = Environment::open_in_memory(options(Durability::InMemory)).unwrap();
    work(&environment, 0);
    check(&environment, 1);
    environment.close().unwrap();
    let vfs = Arc::new(MemoryVfs::new());
    for _ in 0..2 {
        let options = options(Durability::InMemory);
        let opened = Environment::open_in(vfs.clone(), Some(place()), options);
        let environment = opened.unwrap();
        work(&environment, 0);
        check(&environment, 1);
        environment.close().unwrap();
    }
}

#[test]
fn data_store_reopens_at_its_last_sync() {
    let vfs = Arc::new(MemoryVfs::new());
    let open =
        || DataStore::open_in(vfs.clone(), Some(place()), options(Durability::Sync)).unwrap();
    let mut store = open();
    let database = store.open_or_create_database("data").unwrap();
    for number in 0..TIMES * 3 {
        store.put(database, format!("{number:04}").as_bytes(), &value(number)).unwrap();
    }
    for number in (0..TIMES * 3).step_by(2) {
        assert!(store.delete(database, format!("{number:04}").as_bytes()).unwrap());
    }
    store.sync().unwrap();
    store.close().unwrap();
    let mut store = open();
    let database = store.open_database("data").unwrap();
    let mut cursor = store.cursor(database).unwrap();
    let mut more = cursor.first().unwrap();
    let mut number = 1;
    while more {
        assert_eq!(cursor.key(), format!("{number:04}").as_bytes());
        assert!(cursor.value() == value(number));
        number += 2;
        more = cursor.next().unwrap();
    }
    assert_eq!(number, TIMES * 3 + 1);
    assert_eq!(store.verify().unwrap().complaints, Vec::<String>::new());
    store.close().unwrap();
}

/// An environment with those meta pages damaged, all that was in it, and what salvage makes of it.
fn salvage_without(slots: &[u64]) {
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    let environment =
        Environment::open_in(vfs.clone(), Some(place()), options(Durability::Sync)).unwrap();
    work(&environment, 0);
    let all = contents(&environment).unwrap();
    environment.close().unwrap();
    let file = vfs.open(&place().join(DATA_FILE), OpenMode::Write).unwrap();
    for at in slots.iter().flat_map(|slot| [slot + 100, slot + 4096 + 100]) {
        file.write_at(&[0xff; 8], at).unwrap();
    }
    if slots.len() == 2 {
        let refused = Environment::open_in(vfs.clone(), Some(place()), options(Durability::Sync));
        assert!(matches!(refused, Err(Error::Corruption { .. })));
    }
    let (into, kept) = (Path::new("salvaged"), options(Durability::Sync));
    let report = salvage_in(vfs.clone(), place(), into, &kept).unwrap();
    assert_eq!(report.databases.len(), 1);
    let salvaged = Environment::open_in(vfs, Some(into), options(Durability::Sync)).unwrap();
    let found = contents(&salvaged).unwrap();
    crate::common::assert_same(&found["data"], &all["data"], "salvaged");
    salvaged.close().unwrap();
}

/// Of the two roots one is left, which may be the older one.
#[test]
fn environment_with_one_meta_page_is_salvaged() {
    salvage_without(&[8192]);
}

/// What comes back is found by looking at every block.
#[test]
#[cfg_attr(
    miri,
    ignore = "every block is looked at for every size that a page may have: too much for an interpreter"
)]
fn environment_without_meta_pages_is_salvaged() {
    salvage_without(&[0, 8192]);
}
