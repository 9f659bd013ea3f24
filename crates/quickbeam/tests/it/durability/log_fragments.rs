//! Large transactions, whose operations go to the log in pieces before they commit: a crash beside
//! one, checkpoints while one is open, rolling back what has left for the log, damage among the
//! pieces.

use std::sync::Arc;

use crate::common::faulty::FaultyVfs;
use crate::common::{
    Files, Random, Records, assert_same, contents, open_files, place, small_options,
};
use quickbeam::{
    Database, Environment, Error, Isolation, LOG_DIRECTORY, Options, Savepoint, Transaction,
    TransactionOptions,
};

struct Scene {
    vfs: Arc<FaultyVfs>,
    environment: Environment,
    database: Database,
}

fn options() -> Options {
    small_options().log_buffer(64 << 10)
}

fn scene() -> Scene {
    scene_with(options())
}

fn scene_with(options: Options) -> Scene {
    let vfs = FaultyVfs::in_memory();
    let environment = Environment::open_in(vfs.clone(), Some(place()), options).unwrap();
    let database = environment.create_database("data").unwrap();
    Scene { vfs, environment, database }
}

impl Scene {
    fn files(&self) -> Files {
        self.vfs.files(place())
    }

    fn put(&self, key: &str, value: &[u8]) {
        self.environment.transact(|t| self.database.put(t, key.as_bytes(), value)).unwrap();
    }

    /// Puts records of some hundred kilobytes in all, so that several pieces leave for the log.
    fn put_much(&self, transaction: &Transaction, name: &str, byte: u8) -> Records {
        let mut records = Records::new();
        for n in 0..60 {
            let (key, value) = (format!("{name} {n:03}").into_bytes(), vec![byte; 1 + n * 199]);
            self.database.put(transaction, &key, &value).unwrap();
            records.insert(key, value);
        }
        records
    }
}

fn data_in(files: &Files) -> Records {
    let environment = open_files(files, &options()).unwrap();
    crate::common::assert_sound(&environment);
    contents(&environment).unwrap().remove("data").unwrap()
}

#[test]
fn large_transaction_is_atomic_across_a_crash() {
    let scene = scene();
    let transaction = scene.environment.begin().unwrap();
    let records = scene.put_much(&transaction, "large", 1);
    assert!(scene.environment.statistics().log_bytes > 100_000, "pieces have left");
    scene.put("beside", b"1");
    let open = data_in(&scene.files());
    assert_eq!(open.keys().collect::<Vec<_>>(), [b"beside"]);
    transaction.commit().unwrap();
    let committed = data_in(&scene.files());
    assert_eq!(committed.len(), 61);
    assert!(records.iter().all(|(key, value)| committed.get(key) == Some(value)));
}

#[test]
fn large_transaction_is_atomic_beside_checkpoints() {
    for ends in ["commits", "aborts", "crashes"] {
        let scene = scene();
        let transaction = scene.environment.begin().unwrap();
        let mut expected = scene.put_much(&transaction, "first", 1);
        scene.put("beside", b"1");
        scene.environment.checkpoint().unwrap();
        expected.extend(scene.put_much(&transaction, "second", 2));
        scene.put("beside", b"2");
        scene.environment.checkpoint().unwrap();
        let small = Records::from([(b"beside".to_vec(), b"2".to_vec())]);
        assert_same(&data_in(&scene.files()), &small, "open");
        expected.extend(small.clone());
        match ends {
            "commits" => transaction.commit().unwrap(),
            "aborts" => transaction.abort().unwrap(),
            _ => std::mem::forget(transaction),
        }
        let expected = if ends == "commits" { expected } else { small };
        assert_same(&data_in(&scene.files()), &expected, ends);
        if ends != "crashes" {
            // The next one takes another writer's number or the same: old pieces are not its own.
            let again = scene.environment.begin().unwrap();
            let mut more = scene.put_much(&again, "third", 3);
            again.commit().unwrap();
            more.extend(expected);
            assert_same(&data_in(&scene.files()), &more, ends);
        }
    }
}

#[test]
fn rolled_back_fragments_are_not_replayed() {
    let first = crate::common::first_seed();
    println!("first seed {first}");
    for seed in first..first + 15 {
        let mut random = Random::new(seed);
        let scene = scene();
        let mut committed = Records::new();
        for n in 0..20 {
            let (key, value) = (format!("key {n:03}"), vec![n; random.below(3000)]);
            scene.put(&key, &value);
            committed.insert(key.into_bytes(), value);
        }
        let transaction = scene.environment.begin().unwrap();
        let mut state = committed.clone();
        let mut saved: Vec<(Savepoint, Records)> = Vec::new();
        for _ in 0..300 {
            let key = format!("key {:03}", random.below(60)).into_bytes();
            match random.below(12) {
                0 => saved.push((transaction.savepoint().unwrap(), state.clone())),
                1 if !saved.is_empty() => {
                    let at = random.below(saved.len());
                    saved.truncate(at + 1);
                    transaction.rollback_to(saved[at].0).unwrap();
                    state = saved[at].1.clone();
                }
                2..5 => {
                    scene.database.delete(&transaction, &key).unwrap();
                    state.remove(&key);
                }
                _ => {
                    let longest = [100, 3000, 9000][random.below(3)];
                    let value = vec![random.next() as u8; random.below(longest)];
                    scene.database.put(&transaction, &key, &value).unwrap();
                    state.insert(key, value);
                }
            }
            if random.chance(3) {
                scene.environment.checkpoint().unwrap();
            }
        }
        assert_same(&data_in(&scene.files()), &committed, &format!("seed {seed}, open"));
        transaction.commit().unwrap();
        assert_same(&data_in(&scene.files()), &state, &format!("seed {seed}, committed"));
        crate::common::assert_sound(&scene.environment);
    }
}

/// More changes than one writer number can name, all of long values: their old chains are named
/// once by a checkpoint.
#[test]
fn fragments_before_a_checkpoint_are_replayed() {
    let options = options().cache_size(64 << 20);
    let vfs = FaultyVfs::in_memory();
    let environment = Environment::open_in(vfs.clone(), Some(place()), options.clone()).unwrap();
    let database = environment.create_database("data").unwrap();
    let put = |transaction: &Transaction, byte: u8| {
        for n in 0..70_000u32 {
            let length = if n % 1000 == 0 { 5000 } else { 1 };
            database.put(transaction, &n.to_be_bytes(), &vec![byte; length]).unwrap();
        }
    };
    let transaction = environment.begin().unwrap();
    put(&transaction, 1);
    transaction.commit().unwrap();
    // The reader keeps the replaced values from being freed.
    let reader = environment.begin_read().unwrap();
    assert!(database.exists(&reader, &0u32.to_be_bytes()).unwrap());
    let transaction = environment.begin().unwrap();
    put(&transaction, 2);
    transaction.commit().unwrap();
    environment.checkpoint().unwrap();
    crate::common::assert_sound(&environment);
    let copy = open_files(&vfs.files(place()), &options).unwrap();
    crate::common::assert_sound(&copy);
    let data = contents(&copy).unwrap().remove("data").unwrap();
    assert!(data.len() == 70_000 && data.values().all(|value| value[0] == 2));
    let seen = database.get(&reader, &0u32.to_be_bytes()).unwrap().unwrap();
    assert_eq!(seen, vec![1; 5000]);
}

#[test]
fn damaged_fragment_is_refused() {
    let scene = scene();
    let transaction = scene.environment.begin().unwrap();
    scene.put_much(&transaction, "large", 1);
    scene.environment.checkpoint().unwrap();
    transaction.commit().unwrap();
    let files = scene.files();
    let logs = files.iter().filter(|(path, _)| path.starts_with(LOG_DIRECTORY));
    let mut damaged = 0;
    for (path, bytes) in logs {
        // Well within records: the values are runs of ones, and no other part of the file is.
        let inside = (4096..bytes.len() - 8).filter(|&at| bytes[at - 8..at + 8] == [1; 16]);
        for at in inside.step_by(9973) {
            let mut files = files.clone();
            files.get_mut(path).unwrap()[at] = 77;
            let opened = open_files(&files, &options());
            match opened {
                Err(Error::Corruption(damage)) => assert!(damage.place.log_position().is_some()),
                Err(error) => panic!("{error}"),
                // The last record of the log, which no other one vouches for.
                Ok(environment) => {
                    let data = contents(&environment).unwrap().remove("data").unwrap();
                    assert!(data.is_empty(), "byte {at}: {} records", data.len());
                    continue;
                }
            }
            damaged += 1;
        }
    }
    assert!(damaged > 10);
}

/// Transaction numbers begin again with each opening. Where the newest root is lost, recovery reads
/// the log of two openings: pieces that the first one left unfinished are not part of the second
/// one's commits.
#[test]
fn old_fragments_do_not_join_a_later_commit() {
    const SLOTS: [usize; 2] = [0, 8192];
    // Both openings write to the same segment, so that no checkpoint releases the first one's
    // fragments.
    let scene = scene_with(options().log_segment_size(4 << 20));
    let transaction = scene.environment.begin().unwrap();
    scene.put_much(&transaction, "unfinished", 1);
    let first_crash = scene.files();
    let vfs = crate::common::world_with(&first_crash, place());
    let environment = Environment::open_in(vfs.clone(), Some(place()), options()).unwrap();
    let database = environment.open_database("data").unwrap();
    // One of them has the number of the unfinished one.
    for n in 0..20u8 {
        environment.transact(|t| database.put(t, &[n], &[n])).unwrap();
    }
    let large = environment.begin().unwrap();
    for n in 0..60usize {
        database.put(&large, format!("large {n:03}").as_bytes(), &vec![2; 5000]).unwrap();
    }
    large.commit().unwrap();
    let expected = contents(&environment).unwrap().remove("data").unwrap();
    let mut second_crash = vfs.files(place());
    let data = second_crash.get_mut(std::path::Path::new(quickbeam::DATA_FILE)).unwrap();
    let sequence = |at: usize| u64::from_le_bytes(*data[at + 40..].first_chunk().unwrap());
    let newest = SLOTS[usize::from(sequence(SLOTS[1]) > sequence(SLOTS[0]))];
    [newest, newest + 4096].iter().for_each(|at| data[at + 60] ^= 1);
    assert_same(&data_in(&second_crash), &expected, "the older root and the log of two openings");
}

/// Rolling back to a savepoint gives the records back to others, also where the log has the changes
/// already. What others commit to them before this transaction commits is the newer state, after a
/// crash as well.
#[test]
fn rolled_back_fragments_do_not_undo_a_later_commit() {
    for reverse in [false, true] {
        let scene = scene();
        for key in ["kept", "removed"] {
            scene.put(key, &[1; 9000]);
        }
        // A serializable one would not commit: it deleted, so it knew of a record that was changed.
        let isolation = Some(Isolation::Snapshot);
        let own = TransactionOptions::new().isolation(isolation);
        let transaction = scene.environment.begin_with(own).unwrap();
        scene.database.put(&transaction, b"own", b"before").unwrap();
        let savepoint = transaction.savepoint().unwrap();
        scene.database.put(&transaction, b"kept", b"rolled back").unwrap();
        scene.database.delete(&transaction, b"removed").unwrap();
        scene.database.put(&transaction, b"new", b"rolled back").unwrap();
        scene.put_much(&transaction, "much", 1);
        transaction.rollback_to(savepoint).unwrap();
        for key in ["kept", "removed", "new"] {
            scene.put(key, b"of another transaction");
        }
        let mut expected = Records::from(
            ["kept", "removed", "new"]
                .map(|key| (key.as_bytes().to_vec(), b"of another transaction".to_vec())),
        );
        expected.insert(b"own".to_vec(), b"before".to_vec());
        if reverse {
            expected.extend(scene.put_much(&transaction, "more", 2));
        }
        transaction.commit().unwrap();
        assert_same(&contents(&scene.environment).unwrap()["data"], &expected, "open");
        assert_same(&data_in(&scene.files()), &expected, "after a crash");
    }
}

/// A source that fails after some bytes.
struct FailingSource {
    left: usize,
}

impl std::io::Read for FailingSource {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            return Err(std::io::Error::other("the source is broken"));
        }
        let read = out.len().min(self.left);
        out[..read].fill(9);
        self.left -= read;
        Ok(read)
    }
}

#[test]
fn a_value_put_from_a_source_is_recovered() {
    let scene = scene();
    let value: Vec<u8> = (0..700_000u32).map(|at| (at % 253) as u8).collect();
    let mut expected = Records::new();
    for length in [0, 10, 5000, 700_000] {
        let key = length.to_string().into_bytes();
        let put =
            |t: &Transaction| scene.database.put_from(t, &key, length as u64, &value[..length]);
        scene.environment.transact(put).unwrap();
        expected.insert(key, value[..length].to_vec());
    }
    assert_same(&data_in(&scene.files()), &expected, "after a crash");
    scene.environment.checkpoint().unwrap();
    assert_same(&data_in(&scene.files()), &expected, "after a crash");
}

#[test]
fn a_source_that_fails_changes_nothing() {
    let scene = scene();
    scene.put("kept", &[1; 20_000]);
    let transaction = scene.environment.begin().unwrap();
    scene.database.put(&transaction, b"before", &[2; 30_000]).unwrap();
    for left in [0, 100, 4096, 300_000] {
        let source = FailingSource { left };
        let error = scene.database.put_from(&transaction, b"kept", 400_000, source).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        let short = &[3; 400_000][..left];
        let error = scene.database.put_from(&transaction, b"kept", 400_000, short).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }
    scene.database.put(&transaction, b"after", &[4; 30_000]).unwrap();
    transaction.commit().unwrap();
    let expected = Records::from([
        (b"kept".to_vec(), vec![1; 20_000]),
        (b"before".to_vec(), vec![2; 30_000]),
        (b"after".to_vec(), vec![4; 30_000]),
    ]);
    assert_same(&data_in(&scene.files()), &expected, "after a crash");
    assert_same(&contents(&scene.environment).unwrap()["data"], &expected, "open");
    crate::common::assert_sound(&scene.environment);
}

#[test]
fn a_conflict_of_put_from_changes_nothing() {
    let scene = scene();
    scene.put("key", b"old");
    let transaction = scene.environment.begin().unwrap();
    assert!(scene.database.get(&transaction, b"key").unwrap().is_some());
    scene.put("key", b"new");
    let put = scene.database.put_from(&transaction, b"key", 300_000, std::io::repeat(1));
    assert!(matches!(put, Err(Error::WriteConflict)), "{put:?}");
    drop(transaction);
    let expected = Records::from([(b"key".to_vec(), b"new".to_vec())]);
    assert_same(&data_in(&scene.files()), &expected, "after a crash");
    crate::common::assert_sound(&scene.environment);
}
