//! Bytes damaged in the data file: never wrong data, never a panic. What is read is right or an
//! error that names the place, and verify finds every damaged block that is in use.
//!
//! Copies in memory of environments closed cleanly, crashed, or never synced again; each damaged in
//! its own way.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::faulty::FaultyVfs;
use crate::common::{
    Files, Random, Records, contents, open_files, place, small_options, world_with,
};
use quickbeam::{
    AccessMethod, Corruption, DATA_FILE, DamagedPlace, DataStore, Durability, Environment, Error,
    LOG_DIRECTORY, Options, Result,
};

const PAGE: usize = 4096;
/// The meta pages' places and length, `docs/format.md`.
const SLOTS: [usize; 2] = [0, 8192];

/// Where in a slot the copies of its root are.
const COPIES: [usize; 2] = [0, 4096];
const SLOT: usize = 128;
/// Where in a slot its sequence number is.
const SEQUENCE: usize = 40;
/// Bytes at the file's start that belong to the slots.
const RESERVED: usize = 64 << 10;

type All = BTreeMap<String, Records>;

/// Databases with short and long values, changed and deleted in part, so that blocks are free among
/// those in use.
fn build(vfs: &Arc<FaultyVfs>, options: &Options) -> (Environment, All) {
    let environment = Environment::open_in(vfs.clone(), Some(place()), options.clone()).unwrap();
    for name in ["one", "two", "gone"] {
        let database = crate::common::open_or_create(&environment, name);
        for round in 0..3u8 {
            let fill = |transaction: &quickbeam::Transaction| {
                for n in 0..150usize {
                    let key = format!("{name} {:05}", n * 7 % 1000);
                    let length = if n % 20 == 3 { 9000 } else { n % 300 };
                    if n % 5 == usize::from(round) && round > 0 {
                        database.delete(transaction, key.as_bytes())?;
                    } else {
                        database.put(
                            transaction,
                            key.as_bytes(),
                            &vec![n as u8 ^ round; length],
                        )?;
                    }
                }
                Ok(())
            };
            environment.transact(fill).unwrap();
            environment.checkpoint().unwrap();
        }
    }
    environment.drop_database("gone").unwrap();
    let all = contents(&environment).unwrap();
    (environment, all)
}

/// An environment closed cleanly.
fn closed(options: &Options) -> (Files, All) {
    let vfs = FaultyVfs::in_memory();
    let (environment, all) = build(&vfs, options);
    environment.close().unwrap();
    (vfs.files(place()), all)
}

fn damage(files: &Files, change: impl FnOnce(&mut Vec<u8>)) -> Files {
    let mut files = files.clone();
    change(files.get_mut(Path::new(DATA_FILE)).unwrap());
    files
}

/// An error that says where.
fn assert_clear(error: &Error, what: &str) {
    let Error::Corruption(damage) = error else { panic!("{what}: {error}") };
    let Corruption { file, place, .. } = &**damage;
    if file.contains(LOG_DIRECTORY) {
        // With the older root the log is read from further back, where it may be gone.
        assert!(place.log_position().is_some() && what.contains("newest slot"), "{what}: {place}");
    } else {
        assert!(file.contains(DATA_FILE), "{what}: {file}");
        let named = place.page().is_some() || *place == DamagedPlace::MetaPages;
        assert!(named, "{what}: place {place:?}");
    }
}

/// What damage did.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// Everything is as it was.
    Unharmed,
    /// Opening was refused.
    Refused,
    /// Some reads failed, and verify complained.
    Noticed,
}

/// Opens the files and reads everything in every way. What is read must be right.
fn outcome(files: &Files, all: &All, options: &Options, what: &str) -> Outcome {
    let environment = match open_files(files, options) {
        Ok(environment) => environment,
        Err(error) => {
            assert_clear(&error, what);
            return Outcome::Refused;
        }
    };
    let mut failed = 0;
    let mut check = |result: Result<()>| {
        if let Err(error) = result {
            assert_clear(&error, what);
            failed += 1;
        }
    };
    let reader = environment.begin_read().unwrap();
    check(
        reader.databases().map(|names| assert!(names.iter().eq(all.keys()), "{what}: {names:?}")),
    );
    for (name, records) in all {
        let database = match reader.open_database(name) {
            Ok(database) => database,
            Err(error) => {
                check(Err(error));
                continue;
            }
        };
        for (key, value) in records {
            let get = database.get(&reader, key);
            check(get.map(|found| assert!(found.as_ref() == Some(value), "{what}: get")));
            let mut cursor = database.cursor(&reader).unwrap();
            if database.access_method() == AccessMethod::Hash {
                continue;
            }
            check(cursor.seek(key).map(|found| {
                assert!(found && cursor.key() == key && cursor.value() == value, "{what}: seek");
            }));
        }
        check(
            crate::common::records(&database, &reader)
                .map(|found| assert!(found == *records, "{what}: scan")),
        );
        let mut cursor = database.cursor(&reader).unwrap();
        let mut in_order: Vec<_> = records.iter().collect();
        if database.access_method() == AccessMethod::Hash {
            in_order.sort_by_key(|(key, _)| (crate::common::hash_of(key), key.to_vec()));
        }
        for (key, value) in in_order.into_iter().rev() {
            let moved = cursor.prev();
            if let Err(error) = moved {
                check(Err(error));
                break;
            }
            assert!(cursor.key() == key && cursor.value() == value, "{what}: prev");
        }
    }
    drop(reader);
    let complaints = environment.verify().unwrap().complaints;
    if failed > 0 {
        assert!(!complaints.is_empty(), "{what}: verify found nothing");
    }
    if complaints.is_empty() {
        return Outcome::Unharmed;
    }
    let named = complaints.iter().any(|text| text.contains("page") || text.contains("block"));
    assert!(named, "{what}: {complaints:?}");
    Outcome::Noticed
}

#[test]
fn damaged_byte_in_any_block_is_reported_or_harmless() {
    let seed = crate::common::first_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let options = small_options();
    let (files, all) = closed(&options);
    let intact = open_files(&files, &options).unwrap();
    assert!(contents(&intact).unwrap() == all);
    crate::common::assert_sound(&intact);
    drop(intact);
    let data = &files[Path::new(DATA_FILE)];
    let blocks = data.len() / PAGE;
    let mut unharmed = 0;
    for block in RESERVED / PAGE..blocks {
        let places = [0, 3, 4, 8, 16, 40, 64 + 8 * random.below(20), random.below(PAGE), PAGE - 1];
        let mut outcomes = Vec::new();
        for at in places {
            let flip = 1 << random.below(8);
            let files = damage(&files, |data| data[block * PAGE + at] ^= flip);
            let what = format!("block {block}, byte {at}, seed {seed}");
            outcomes.push(outcome(&files, &all, &options, &what));
        }
        for change in ["zeros", "another block", "cut off"] {
            let other = RESERVED / PAGE + random.below(blocks - RESERVED / PAGE);
            let files = damage(&files, |data| match change {
                "zeros" => data[block * PAGE..][..PAGE].fill(0),
                "another block" if other == block => data[block * PAGE..][..PAGE].fill(1),
                "another block" => data.copy_within(other * PAGE..(other + 1) * PAGE, block * PAGE),
                _ => data.truncate(block * PAGE + random.below(PAGE)),
            });
            let what = format!("block {block}, {change}, seed {seed}");
            let outcome = outcome(&files, &all, &options, &what);
            if change != "cut off" {
                outcomes.push(outcome);
            }
        }
        let first_unharmed = outcomes[0] == Outcome::Unharmed;
        unharmed += usize::from(first_unharmed);
        // A block is in use or not: all damage to it is noticed or none. (Zeros over zeros are no
        // damage.)
        for (number, outcome) in outcomes.iter().enumerate() {
            assert_eq!(
                *outcome == Outcome::Unharmed,
                first_unharmed,
                "block {block}, {number}: {outcomes:?}"
            );
        }
    }
    let open = open_files(&files, &options).unwrap();
    let used = open.statistics().data_used_bytes as usize / PAGE;
    // Opening makes a checkpoint of its own, which takes a block or two.
    assert!(
        unharmed + used >= blocks && unharmed + used <= blocks + 4,
        "{unharmed} of {blocks}, {used} used"
    );
    // The blocks after the last one in use are the reserve.
    assert!(unharmed < blocks / 2 + RESERVED / PAGE + 32, "{unharmed} of {blocks} are not in use");
}

/// Leaves no copy of that slot's root whole.
fn spoil(data: &mut [u8], slot: usize) {
    COPIES.iter().for_each(|copy| data[slot + copy + 30] ^= 1);
}

/// Which slot has the greater sequence number.
fn newest_slot(data: &[u8]) -> usize {
    let sequence = |at: usize| u64::from_le_bytes(*data[at + SEQUENCE..].first_chunk().unwrap());
    usize::from(sequence(SLOTS[1]) > sequence(SLOTS[0]))
}

/// Damages every byte of one meta page, in one of its copies or in both: nothing is lost by one. By
/// both, the other slot serves, with everything that was committed, or all is refused.
fn damage_slots(files: &Files, all: &All, options: &Options, what: &str) {
    let newest = newest_slot(&files[Path::new(DATA_FILE)]);
    for (name, slot) in [("older", SLOTS[1 - newest]), ("newest", SLOTS[newest])] {
        for at in (0..SLOT).step_by(3).chain([SLOT - 1]) {
            for copy in COPIES {
                let one = damage(files, |data| data[slot + copy + at] ^= 0x10);
                let what = format!("{what}, {name} slot, byte {at} of one copy");
                assert_eq!(outcome(&one, all, options, &what), Outcome::Unharmed, "{what}");
            }
            let files =
                damage(files, |data| COPIES.iter().for_each(|copy| data[slot + copy + at] ^= 0x10));
            let what = format!("{what}, {name} slot, byte {at}");
            let outcome = outcome(&files, all, options, &what);
            assert_ne!(outcome, Outcome::Noticed, "{what}");
            assert!(name == "newest" || outcome == Outcome::Unharmed, "{what}: {outcome:?}");
        }
    }
    let both = damage(files, |data| SLOTS.iter().for_each(|&slot| spoil(data, slot)));
    assert_eq!(outcome(&both, all, options, "both slots"), Outcome::Refused);
    let none = damage(files, |data| data[..RESERVED].fill(0));
    assert_eq!(outcome(&none, all, options, "no slots"), Outcome::Refused);
    let cut = damage(files, |data| data.truncate(100));
    assert_eq!(outcome(&cut, all, options, "a file of a hundred bytes"), Outcome::Refused);
}

#[test]
fn damaged_meta_page_loses_nothing_after_a_clean_close() {
    for segment in [256 << 10, 16 << 20] {
        let options = small_options().log_segment_size(segment);
        let (files, all) = closed(&options);
        damage_slots(&files, &all, &options, &format!("closed, segments of {segment}"));
    }
}

#[test]
fn damaged_meta_page_loses_nothing_after_a_crash() {
    for checkpoint in [false, true] {
        let options = small_options();
        let (files, _) = closed(&options);
        let vfs = world_with(&files, place());
        let environment =
            Environment::open_in(vfs.clone(), Some(place()), options.clone()).unwrap();
        let database = environment.open_database("one").unwrap();
        for round in 0..60u8 {
            environment.transact(|t| database.put(t, &[round], &[round; 9000])).unwrap();
            if checkpoint && round == 57 {
                environment.checkpoint().unwrap();
            }
        }
        let all = contents(&environment).unwrap();
        let files = vfs.files(place());
        damage_slots(&files, &all, &options, &format!("crashed, checkpoint {checkpoint}"));
    }
}

/// The data file of one environment with the log of another, or without one.
#[test]
fn data_file_with_a_foreign_log_is_refused() {
    let options = small_options().checkpoint_bytes(1 << 30);
    let crashed = || {
        let vfs = FaultyVfs::in_memory();
        let (environment, all) = build(&vfs, &options);
        let database = environment.open_database("one").unwrap();
        environment.transact(|t| database.put(t, b"last", b"")).unwrap();
        drop(all);
        vfs.files(place())
    };
    let (one, other) = (crashed(), crashed());
    let without_log = |files: &Files| -> Files {
        let keep = files.iter().filter(|(path, _)| !path.starts_with(LOG_DIRECTORY));
        keep.map(|(path, bytes)| (path.clone(), bytes.clone())).collect()
    };
    let mut mixed = other.clone();
    mixed.extend(without_log(&one));
    for (files, what) in [(mixed, "another log"), (without_log(&one), "no log")] {
        match open_files(&files, &options) {
            Err(Error::Corruption(damage)) => {
                assert!(damage.file.contains(LOG_DIRECTORY), "{damage}");
            }
            Err(error) => panic!("{what}: {error}"),
            Ok(_) => panic!("{what}: opened"),
        }
    }
}

/// What no log tells, a damaged slot takes along: that is refused, and never shown as the state
/// before.
#[test]
fn lost_meta_page_without_a_log_is_refused() {
    let options = small_options().durability(Durability::InMemory);
    let vfs = FaultyVfs::in_memory();
    let environment = Environment::open_in(vfs.clone(), Some(place()), options.clone()).unwrap();
    let database = environment.create_database("data").unwrap();
    for round in 0..4u8 {
        environment.transact(|t| database.put(t, b"key", &[round])).unwrap();
        environment.checkpoint().unwrap();
    }
    let open = |files: &Files| open_files(files, &options).map(drop);
    lost_root_is_refused(&vfs.files(place()), open);
    environment.close().unwrap();
    lost_root_is_refused(&vfs.files(place()), open);

    let vfs = FaultyVfs::in_memory();
    let mut store = DataStore::open_in(vfs.clone(), Some(place()), options.clone()).unwrap();
    let database = store.create_database("data").unwrap();
    for round in 0..4u8 {
        store.put(database, b"key", &[round]).unwrap();
        store.sync().unwrap();
    }
    let open = |files: &Files| {
        DataStore::open_in(world_with(files, place()), Some(place()), options.clone()).map(drop)
    };
    lost_root_is_refused(&vfs.files(place()), open);
}

fn lost_root_is_refused(files: &Files, open: impl Fn(&Files) -> Result<()>) {
    open(files).unwrap();
    let newest = newest_slot(&files[Path::new(DATA_FILE)]);
    let (newest, other) = (SLOTS[newest], SLOTS[1 - newest]);
    let over = |data: &mut Vec<u8>, from: usize| {
        data.copy_within(from..from + COPIES[1] + SLOT, newest);
    };
    let spoiled = damage(files, |data| spoil(data, newest));
    let zeroed = damage(files, |data| data[newest..newest + COPIES[1] + SLOT].fill(0));
    let misplaced = damage(files, |data| over(data, other));
    for (files, what) in [(spoiled, "bits"), (zeroed, "zeros"), (misplaced, "the other slot")] {
        match open(&files) {
            Err(Error::Corruption(damage)) => {
                assert_eq!(damage.place, DamagedPlace::MetaPages, "{what}")
            }
            Err(error) => panic!("{what}: {error}"),
            Ok(()) => panic!("{what}: opened as of the root before"),
        }
    }
}

/// The root beside root 1 is lost twice. The log from its beginning makes up for the first loss.
/// Recovery releases the log's first segment then, so the second loss is refused: what is left
/// looks like a new file.
#[test]
fn second_loss_of_the_root_beside_root_1_is_refused() {
    let spoiled = |files: &Files| {
        let newest = newest_slot(&files[Path::new(DATA_FILE)]);
        assert_eq!(newest, 0, "root 2 is the newest");
        damage(files, |data| spoil(data, SLOTS[newest]))
    };
    for durability in [Durability::Sync, Durability::WriteNoSync, Durability::NoSync] {
        let options = small_options().cache_size(4 << 20).durability(durability);
        let vfs = FaultyVfs::in_memory();
        let open = |vfs: &Arc<FaultyVfs>| {
            Environment::open_in(vfs.clone(), Some(place()), options.clone()).unwrap()
        };
        let environment = open(&vfs);
        let database = environment.create_database("data").unwrap();
        for round in 0..60u8 {
            environment.transact(|t| database.put(t, &[round], &[round; 9000])).unwrap();
        }
        let last = environment.begin().unwrap();
        last.set_durability(Durability::Sync).unwrap();
        database.put(&last, b"last", b"flushes the log").unwrap();
        last.commit().unwrap();
        let all = contents(&environment).unwrap();
        let files = spoiled(&vfs.files(place()));
        assert_eq!(
            outcome(&files, &all, &options, "first loss"),
            Outcome::Unharmed,
            "{durability}"
        );

        let vfs = world_with(&files, place());
        let environment = open(&vfs);
        let database = environment.open_database("data").unwrap();
        environment.transact(|t| database.put(t, b"after", b"the first loss")).unwrap();
        let files = vfs.files(place());
        let has_first = files.contains_key(&Path::new(LOG_DIRECTORY).join("000000000001.log"));
        assert!(!has_first, "{durability}: the first segment is there");
        match open_files(&spoiled(&files), &options) {
            Err(Error::Corruption(damage)) => assert_eq!(damage.place, DamagedPlace::MetaPages),
            Err(error) => panic!("{durability}: {error}"),
            Ok(_) => panic!("{durability}: opened as a new file"),
        }
    }
}

/// A root of a clean close in both slots: that the other one was lost shows, and the log is read.
#[test]
fn misplaced_meta_page_does_not_hide_the_log() {
    let options = small_options();
    let (files, _) = closed(&options);
    let vfs = world_with(&files, place());
    let environment = Environment::open_in(vfs.clone(), Some(place()), options.clone()).unwrap();
    let database = environment.open_database("one").unwrap();
    environment.transact(|t| database.put(t, b"after", b"the clean close")).unwrap();
    let all = contents(&environment).unwrap();
    let files = vfs.files(place());
    let newest = newest_slot(&files[Path::new(DATA_FILE)]);
    let files = damage(&files, |data| {
        let other = SLOTS[1 - newest];
        data.copy_within(other..other + COPIES[1] + SLOT, SLOTS[newest]);
    });
    assert_eq!(outcome(&files, &all, &options, "newest slot"), Outcome::Unharmed);
}

/// The Data Store has no log and no verify beside its own: the same rules for its pages.
#[test]
fn damaged_data_store_is_reported() {
    let seed = crate::common::first_seed();
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let options = small_options();
    let vfs = FaultyVfs::in_memory();
    let mut store = DataStore::open_in(vfs.clone(), Some(place()), options.clone()).unwrap();
    let database = store.create_database("data").unwrap();
    let mut records = Records::new();
    for n in 0..400usize {
        let key = format!("{n:05}").into_bytes();
        let value = vec![n as u8; if n % 40 == 0 { 9000 } else { n % 200 }];
        store.put(database, &key, &value).unwrap();
        records.insert(key, value);
    }
    store.close().unwrap();
    let files = vfs.files(place());
    let length = files[Path::new(DATA_FILE)].len();
    let mut noticed = 0;
    for _ in 0..300 {
        let at = random.below(length);
        let files = damage(&files, |data| data[at] ^= 1 << random.below(8));
        let what = format!("byte {at} of block {}", at / PAGE);
        let read = || -> Result<usize> {
            let vfs = world_with(&files, place());
            let mut store = DataStore::open_in(vfs, Some(place()), options.clone())?;
            let database = store.open_database("data")?;
            let mut failed = 0;
            for (key, value) in &records {
                match store.get(database, key) {
                    Ok(found) => assert!(found.as_ref() == Some(value), "{what}"),
                    Err(error) => {
                        assert_clear(&error, &what);
                        failed += 1;
                    }
                }
            }
            let complaints = store.verify()?.complaints;
            assert!(failed == 0 || !complaints.is_empty(), "{what}: verify found nothing");
            Ok(complaints.len())
        };
        match read() {
            Ok(complaints) => noticed += usize::from(complaints > 0),
            Err(error) => {
                assert_clear(&error, &what);
                noticed += 1;
            }
        }
    }
    assert!(noticed > 30, "{noticed} of 300");
}
