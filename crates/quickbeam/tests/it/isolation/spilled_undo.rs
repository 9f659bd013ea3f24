//! Undo entries beyond their memory go to temporary files: rollbacks and old snapshots read them
//! there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quickbeam::vfs::Vfs;
use quickbeam::{
    Database, Durability, Environment, Error, Isolation, Options, ReadTransaction, Statistics,
    Transaction, TransactionOptions,
};

use crate::common::faulty::{Call, FaultyVfs};
use crate::common::{place, wait_until};

const UNDO_MEMORY: u64 = 1 << 20;
const RECORDS: u32 = 8000;

struct Scene {
    vfs: Arc<FaultyVfs>,
    environment: Environment,
    database: Database,
}

impl Scene {
    fn new() -> Scene {
        let vfs = FaultyVfs::in_memory();
        let options = Options::new()
            .cache_size(16 << 20)
            .durability(Durability::InMemory)
            .isolation(Isolation::Snapshot)
            .undo_memory(UNDO_MEMORY);
        let environment = Environment::open_in(vfs.clone(), Some(place()), options).unwrap();
        let database = environment.create_database("data").unwrap();
        let scene = Scene { vfs, environment, database };
        scene.environment.transact(|transaction| scene.set_all(transaction, 0)).unwrap();
        scene
    }

    fn set_all(&self, transaction: &Transaction, round: u8) -> quickbeam::Result<()> {
        for n in 0..RECORDS {
            self.database.put(transaction, &n.to_be_bytes(), &value(n, round))?;
        }
        Ok(())
    }

    /// Checks some records one by one, then all in a scan and some backwards.
    fn assert_all(&self, transaction: &impl ReadTransaction, round: u8) {
        for n in (0..RECORDS).step_by(997) {
            let found = self.database.get(transaction, &n.to_be_bytes()).unwrap();
            assert_eq!(found, Some(value(n, round)), "record {n}");
        }
        let mut count = 0;
        for record in self.database.iter(transaction) {
            let (key, found) = record.unwrap();
            let n = u32::from_be_bytes(key.try_into().unwrap());
            assert_eq!((n, &found), (count, &value(n, round)));
            count += 1;
        }
        assert_eq!(count, RECORDS);
        for record in self.database.iter(transaction).rev().take(300) {
            count -= 1;
            assert_eq!(record.unwrap().1, value(count, round));
        }
    }

    fn statistics(&self) -> Statistics {
        self.environment.statistics()
    }

    fn temporary_files(&self) -> usize {
        let names = self.vfs.list_directory(place()).unwrap();
        names.iter().filter(|name| name.to_str().unwrap().contains("temporary-")).count()
    }

    /// Waits until committed entries exceed their memory no more.
    fn wait_until_spilled(&self) {
        wait_until("undo entries are in files", || {
            let numbers = self.statistics();
            numbers.undo_file_bytes > 0 && (numbers.undo_bytes as u64) < 2 * UNDO_MEMORY
        });
    }
}

/// Values of 100 to 299 bytes.
fn value(n: u32, round: u8) -> Vec<u8> {
    let mut value = vec![round; 100 + (n as usize * 7 + usize::from(round)) % 200];
    value[..4].copy_from_slice(&n.to_le_bytes());
    value
}

#[test]
fn large_transaction_rolls_back_from_its_file() {
    let scene = Scene::new();
    let reader = scene.environment.begin_read().unwrap();
    let transaction = scene.environment.begin().unwrap();
    let savepoints = [1, 2, 3].map(|round| {
        scene.set_all(&transaction, round).unwrap();
        transaction.savepoint().unwrap()
    });
    scene.set_all(&transaction, 4).unwrap();
    let numbers = scene.statistics();
    assert!(numbers.undo_file_bytes > 5 << 20, "{} bytes", numbers.undo_file_bytes);
    assert!((numbers.undo_bytes as u64) < 3 * UNDO_MEMORY, "{} bytes", numbers.undo_bytes);
    assert_eq!(numbers.undo_file_failures, 0);
    scene.assert_all(&transaction, 4);
    scene.assert_all(&reader, 0);
    scene.assert_all(&scene.environment.begin_read().unwrap(), 0);
    // The checkpoint has none of the changes.
    scene.environment.checkpoint().unwrap();
    transaction.rollback_to(savepoints[1]).unwrap();
    scene.assert_all(&transaction, 2);
    // New entries follow those that are left.
    scene.set_all(&transaction, 5).unwrap();
    scene.assert_all(&reader, 0);
    transaction.rollback_to(savepoints[0]).unwrap();
    scene.assert_all(&transaction, 1);
    assert_eq!(scene.temporary_files(), 1);
    transaction.abort().unwrap();
    scene.assert_all(&reader, 0);
    drop(reader);
    scene.assert_all(&scene.environment.begin_read().unwrap(), 0);
    wait_until("the file is removed", || scene.temporary_files() == 0);
    assert_eq!(scene.statistics().undo_file_bytes, 0);
    assert_eq!(scene.environment.verify().unwrap().complaints, [] as [String; 0]);
}

/// A serializable commit keeps the writers that may still change what it read.
#[test]
fn idle_thread_keeps_no_file_of_another_transaction() {
    let scene = Scene::new();
    let writer = scene.environment.begin().unwrap();
    scene.set_all(&writer, 1).unwrap();
    assert_eq!(scene.temporary_files(), 1);
    let options = TransactionOptions::new().isolation(Isolation::Serializable);
    let other = scene.environment.begin_with(options).unwrap();
    assert_eq!(scene.database.get(&other, &0_u32.to_be_bytes()).unwrap(), Some(value(0, 0)));
    scene.database.put(&other, b"another key", b"").unwrap();
    other.commit().unwrap();
    writer.abort().unwrap();
    wait_until("the file is removed", || scene.temporary_files() == 0);
}

#[test]
fn old_snapshots_read_what_large_commits_replaced() {
    let scene = Scene::new();
    let mut readers = Vec::new();
    for round in 0..4 {
        readers.push(scene.environment.begin_read().unwrap());
        scene.environment.transact(|transaction| scene.set_all(transaction, round + 1)).unwrap();
    }
    for n in 0..200_u32 {
        let put = |transaction: &Transaction| {
            scene.database.put(transaction, &n.to_be_bytes(), &value(n, 9))
        };
        scene.environment.transact(put).unwrap();
    }
    scene.wait_until_spilled();
    for (round, reader) in (0..).zip(&readers) {
        scene.assert_all(reader, round);
    }
    // The versions between the other two go when no snapshot sees them, those in files with them.
    readers.drain(1..3);
    scene.assert_all(&readers[0], 0);
    scene.assert_all(&readers[1], 3);
    readers.clear();
    wait_until("the files are removed", || scene.temporary_files() == 0);
    assert_eq!((scene.statistics().undo_file_bytes, scene.statistics().undo_bytes), (0, 0));
}

#[test]
fn reader_of_many_small_commits_costs_bounded_memory() {
    let scene = Scene::new();
    let reader = scene.environment.begin_read().unwrap();
    for n in 0..RECORDS {
        // Every record once, and one of them all the time.
        let put = |transaction: &Transaction| {
            scene.database.put(transaction, &0_u32.to_be_bytes(), &value(0, n as u8))?;
            scene.database.put(transaction, &n.to_be_bytes(), &value(n, 7))
        };
        scene.environment.transact(put).unwrap();
    }
    scene.wait_until_spilled();
    let numbers = scene.statistics();
    assert!(numbers.undo_file_bytes > 200_000, "{} bytes", numbers.undo_file_bytes);
    scene.assert_all(&reader, 0);
    drop(reader);
    wait_until("the files are removed", || scene.temporary_files() == 0);
}

#[test]
fn files_that_cannot_be_written_leave_undo_in_memory() {
    let scene = Scene::new();
    let is_temporary = |path: &std::path::Path| path.to_str().unwrap().contains("temporary-");
    scene.vfs.set_rule(move |call, path| {
        let fails = matches!(call, Call::Write { .. }) && is_temporary(path);
        fails.then(|| io::ErrorKind::StorageFull.into())
    });
    let reader = scene.environment.begin_read().unwrap();
    let transaction = scene.environment.begin().unwrap();
    scene.set_all(&transaction, 1).unwrap();
    let savepoint = transaction.savepoint().unwrap();
    scene.set_all(&transaction, 2).unwrap();
    assert!(scene.statistics().undo_file_failures > 0);
    scene.assert_all(&reader, 0);
    transaction.rollback_to(savepoint).unwrap();
    scene.assert_all(&transaction, 1);
    transaction.commit().unwrap();
    scene.assert_all(&reader, 0);
    // Once there is space, the entries go to a file.
    scene.vfs.clear_rule();
    scene.environment.transact(|transaction| scene.set_all(transaction, 3)).unwrap();
    (0..200)
        .for_each(|_| scene.environment.transact(|t| scene.database.put(t, b"x", b"")).unwrap());
    scene.wait_until_spilled();
    scene.environment.transact(|t| scene.database.delete(t, b"x")).unwrap();
    scene.assert_all(&reader, 0);
}

#[test]
fn file_that_cannot_be_read_is_an_error_of_who_reads_it() {
    let scene = Scene::new();
    let transaction = scene.environment.begin().unwrap();
    let savepoint = transaction.savepoint().unwrap();
    scene.set_all(&transaction, 1).unwrap();
    let is_broken = Arc::new(AtomicBool::new(true));
    let broken = is_broken.clone();
    scene.vfs.set_rule(move |call, path| {
        let fails = call == Call::Read && path.to_str().unwrap().contains("temporary-");
        let fails = fails && broken.load(Ordering::SeqCst);
        fails.then(|| io::Error::other("the device is broken"))
    });
    let reader = scene.environment.begin_read().unwrap();
    let first = 0_u32.to_be_bytes();
    assert!(matches!(scene.database.get(&reader, &first), Err(Error::Io { .. })));
    let scanned: quickbeam::Result<Vec<_>> = scene.database.iter(&reader).collect();
    assert!(matches!(scanned, Err(Error::Io { .. })));
    assert!(matches!(scene.database.iter(&reader).next_back(), Some(Ok(_))));
    assert!(matches!(transaction.rollback_to(savepoint), Err(Error::Io { .. })));
    let refused = scene.database.put(&transaction, &first, b"");
    assert!(matches!(refused, Err(Error::Misuse { .. })));
    is_broken.store(false, Ordering::SeqCst);
    scene.assert_all(&reader, 0);
    transaction.rollback_to(savepoint).unwrap();
    scene.assert_all(&transaction, 0);
    transaction.commit().unwrap();
    scene.assert_all(&reader, 0);
}
