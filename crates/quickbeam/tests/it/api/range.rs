//! Ranges as iterators: every order of taking records from both ends gives what a plain map gives.

use std::ops::Bound;

use crate::common::{Random, Records, memory_environment, small_options};
use quickbeam::{AccessMethod, Environment, Error};

/// An environment with records in it, some of them with long values and some that the reader may
/// not see.
fn filled(random: &mut Random) -> (Environment, quickbeam::Database, Records) {
    let (environment, database) = memory_environment();
    let mut records = Records::new();
    for _ in 0..random.below(400) {
        let key = format!("{:03}", random.below(300)).into_bytes();
        let longest = if random.chance(5) { 9000 } else { 60 };
        let value = vec![random.next() as u8; random.below(longest)];
        crate::common::put(&environment, &database, &key, &value);
        records.insert(key, value);
    }
    (environment, database, records)
}

fn draw_bound(random: &mut Random) -> Bound<Vec<u8>> {
    let key = format!("{:03}", random.below(310)).into_bytes();
    match random.below(4) {
        0 => Bound::Unbounded,
        1 => Bound::Excluded(key),
        _ => Bound::Included(key),
    }
}

#[test]
fn range_equals_a_map_whichever_end_records_are_taken_from() {
    for seed in 0..120 {
        let mut random = Random::new(seed);
        let (environment, database, records) = filled(&mut random);
        let reader = environment.begin_read().unwrap();
        let later = environment.begin().unwrap();
        database.put(&later, b"0505", b"not visible").unwrap();
        later.commit().unwrap();
        for round in 0..5 {
            let (low, high) = (draw_bound(&mut random), draw_bound(&mut random));
            let inside = |key: &Vec<u8>| {
                (match &low {
                    Bound::Unbounded => true,
                    Bound::Included(low) => key >= low,
                    Bound::Excluded(low) => key > low,
                }) && match &high {
                    Bound::Unbounded => true,
                    Bound::Included(high) => key <= high,
                    Bound::Excluded(high) => key < high,
                }
            };
            let mut expected = records.iter().filter(|(key, _)| inside(key));
            let mut range = database.range::<Vec<u8>>(&reader, (low.clone(), high.clone()));
            let share = [0, 100, 50, 90][random.below(4)];
            loop {
                let backward = random.chance(share);
                let (found, wanted) = match backward {
                    true => (range.next_back(), expected.next_back()),
                    false => (range.next(), expected.next()),
                };
                let found = found.transpose().unwrap();
                let wanted = wanted.map(|(key, value)| (key.clone(), value.clone()));
                assert_eq!(found, wanted, "seed {seed}, round {round}, {low:?} to {high:?}");
                if found.is_none() {
                    break;
                }
            }
            assert!(range.next().is_none() && range.next_back().is_none());
        }
    }
}

#[test]
fn prefix_delivers_the_keys_that_begin_with_it() {
    let (environment, database) = memory_environment();
    let keys: [&[u8]; 8] =
        [b"", b"a", b"a\xff", b"a\xff\xff", b"a\xffz", b"b", b"\xff", b"\xff\xff1"];
    for key in keys {
        crate::common::put(&environment, &database, key, b"value");
    }
    let reader = environment.begin_read().unwrap();
    for prefix in keys {
        let found: Vec<Vec<u8>> =
            database.prefix(&reader, prefix).map(|record| record.unwrap().0).collect();
        let mut expected: Vec<Vec<u8>> =
            keys.iter().filter(|key| key.starts_with(prefix)).map(|key| key.to_vec()).collect();
        expected.sort();
        assert_eq!(found, expected, "{}", prefix.escape_ascii());
        let mut reversed: Vec<Vec<u8>> =
            database.prefix(&reader, prefix).rev().map(|record| record.unwrap().0).collect();
        reversed.reverse();
        assert_eq!(reversed, expected);
    }
}

#[test]
fn hash_database_is_read_whole_and_from_the_front_only() {
    let environment = Environment::open_in_memory(small_options()).unwrap();
    let database = environment.create_database_with("hash", AccessMethod::Hash).unwrap();
    for number in 0..500u32 {
        crate::common::put(&environment, &database, &number.to_be_bytes(), b"value");
    }
    let reader = environment.begin_read().unwrap();
    let mut keys: Vec<Vec<u8>> = database.iter(&reader).map(|record| record.unwrap().0).collect();
    keys.sort();
    assert!(
        keys.iter().map(Vec::as_slice).eq((0..500u32)
            .map(|n| n.to_be_bytes())
            .collect::<Vec<_>>()
            .iter()
            .map(|k| &k[..]))
    );
    let misuse = |record: Option<quickbeam::Result<quickbeam::Record>>| {
        assert!(matches!(record, Some(Err(Error::Misuse { .. }))), "{record:?}");
    };
    misuse(database.iter(&reader).next_back());
    misuse(database.range(&reader, &b"a"[..]..).next());
    let mut range = database.prefix(&reader, b"a");
    misuse(range.next());
    assert!(range.next().is_none());
}
