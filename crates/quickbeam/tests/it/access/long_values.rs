//! Long values in parts, compared with the same bytes in memory.

use std::io::{Cursor, ErrorKind, Read, Seek, SeekFrom};
use std::time::Duration;

use proptest::prelude::*;
use quickbeam::{AccessMethod, DataStore, Environment, Error, Options};

fn small_options() -> Options {
    Options::default().page_size(4096).cache_size(64 * 4096)
}

fn bytes(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 ^ seed).collect()
}

/// The bytes that a read of `length` bytes from `offset` on finds.
fn expected(value: &[u8], offset: usize, length: usize) -> &[u8] {
    let start = offset.min(value.len());
    &value[start..value.len().min(start + length)]
}

proptest! {
    #[test]
    fn a_part_is_the_slice_of_the_value(
        length in prop_oneof![0usize..100, 900usize..5000, 0usize..200_000],
        parts in prop::collection::vec((0usize..220_000, 0usize..10_000), 1..20),
        is_hashed: bool,
    ) {
        let environment = Environment::open_in_memory(small_options()).unwrap();
        let method = if is_hashed { AccessMethod::Hash } else { AccessMethod::BTree };
        let database = environment.create_database_with("values", method).unwrap();
        let value = bytes(length, 1);
        let mut store = DataStore::open_in_memory(small_options()).unwrap();
        let in_store = store.create_database_with("values", method).unwrap();
        store.put(in_store, b"key", &value).unwrap();
        let transaction = environment.begin().unwrap();
        database.put(&transaction, b"key", &value).unwrap();
        for (offset, length) in parts {
            let wanted = expected(&value, offset, length);
            let mut out = vec![0xee; length];
            let read = database.get_part(&transaction, b"key", offset as u64, &mut out).unwrap();
            prop_assert_eq!(read, Some(wanted.len()));
            prop_assert_eq!(&out[..wanted.len()], wanted);
            prop_assert!(out[wanted.len()..].iter().all(|&byte| byte == 0xee));
            let mut out = vec![0xee; length];
            let read = store.get_part(in_store, b"key", offset as u64, &mut out).unwrap();
            prop_assert_eq!(read, Some(wanted.len()));
            prop_assert_eq!(&out[..wanted.len()], wanted);
        }
        prop_assert_eq!(database.get_part(&transaction, b"none", 0, &mut [0]).unwrap(), None);
        prop_assert_eq!(store.get_part(in_store, b"none", 0, &mut [0]).unwrap(), None);
    }

    #[test]
    fn a_reader_reads_and_seeks_as_a_cursor_over_the_value(
        length in 0usize..100_000,
        steps in prop::collection::vec((0u8..4, -120_000i64..120_000), 1..40),
    ) {
        let environment = Environment::open_in_memory(small_options()).unwrap();
        let database = environment.create_database("values").unwrap();
        let value = bytes(length, 2);
        environment.transact(|transaction| database.put(transaction, b"key", &value)).unwrap();
        let snapshot = environment.begin_read().unwrap();
        let mut reader = database.value_reader(&snapshot, b"key").unwrap().unwrap();
        prop_assert_eq!(reader.length(), length as u64);
        let mut model = Cursor::new(&value);
        for (step, number) in steps {
            let to = match step {
                0 => SeekFrom::Start(number.unsigned_abs()),
                1 => SeekFrom::End(number),
                2 => SeekFrom::Current(number),
                _ => {
                    let mut out = vec![0; number.unsigned_abs() as usize / 8];
                    let mut wanted = vec![0; out.len()];
                    prop_assert_eq!(reader.read(&mut out).unwrap(), model.read(&mut wanted).unwrap());
                    prop_assert_eq!(out, wanted);
                    continue;
                }
            };
            match (reader.seek(to), model.seek(to)) {
                (Ok(position), Ok(wanted)) => prop_assert_eq!(position, wanted),
                (found, wanted) => prop_assert_eq!(found.unwrap_err().kind(), wanted.unwrap_err().kind()),
            }
            prop_assert_eq!(reader.position(), model.position());
        }
    }
}

#[test]
fn a_reader_keeps_the_value_of_its_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let environment = Environment::open(directory.path(), small_options()).unwrap();
    let database = environment.create_database("values").unwrap();
    let put = |seed| environment.transact(|t| database.put(t, b"key", &bytes(300_000, seed)));
    put(1).unwrap();
    let snapshot = environment.begin_read().unwrap();
    let mut reader = database.value_reader(&snapshot, b"key").unwrap().unwrap();
    let mut value = vec![0; 150_000];
    reader.read_exact(&mut value).unwrap();
    // Other values are written over whatever was freed, and the cache is too small for them.
    for seed in 2..6 {
        put(seed).unwrap();
        environment.checkpoint().unwrap();
    }
    reader.read_to_end(&mut value).unwrap();
    assert!(value == bytes(300_000, 1));
    assert!(
        database.get(&environment.begin_read().unwrap(), b"key").unwrap().unwrap()
            == bytes(300_000, 5)
    );
}

#[test]
fn a_reader_of_an_expired_snapshot_says_so() {
    let options = small_options().reader_max_age(Duration::from_millis(50));
    let environment = Environment::open_in_memory(options).unwrap();
    let database = environment.create_database("values").unwrap();
    let put = |seed| environment.transact(|t| database.put(t, b"key", &bytes(100_000, seed)));
    put(1).unwrap();
    let snapshot = environment.begin_read().unwrap();
    let mut reader = database.value_reader(&snapshot, b"key").unwrap().unwrap();
    let mut part = [0; 100];
    reader.read_exact(&mut part).unwrap();
    assert_eq!(part[..], bytes(100, 1));
    for _ in 0..6000 {
        if environment.statistics().expired_snapshots > 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    put(2).unwrap();
    let error = reader.read(&mut part).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Other);
    let source = error.get_ref().and_then(|source| source.downcast_ref::<Error>());
    assert!(matches!(source, Some(Error::SnapshotTooOld)), "{error}");
}
