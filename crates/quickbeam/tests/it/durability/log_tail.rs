//! The end of the log: cut, zeroed, damaged, missing. What recovery makes of it must be the state
//! after one of the commits, the last one that is whole; damage before commits that were durable
//! must be refused, not cut off (LOG-4).
//!
//! Everything happens to copies in memory, so that each byte can have its turn.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::long_scene;
use crate::common::faulty::{Call, FaultyVfs};
use crate::common::{
    Files, Random, Records, contents, open_files, place, small_options, world_with,
};
use quickbeam::{Corruption, Durability, Environment, Error, LOG_DIRECTORY, Options, Result};

/// Bytes before a segment's first record, and in a record's header; `docs/format.md`.
const SEGMENT_HEADER: usize = 4096;

const HEADER: usize = 48;

const COMMIT: u8 = 1;

const PIECE: u8 = 2;

const SKIP: u8 = 3;

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// A record of a segment: its bytes without padding, its kind.
#[derive(Clone, Debug)]
struct Found {
    range: Range<usize>,
    kind: u8,
}

/// Whether that is a segment, and not one that is being made ready.
fn is_segment(path: &Path) -> bool {
    path.starts_with(LOG_DIRECTORY) && path.extension().is_some_and(|extension| extension == "log")
}

/// The records of a segment, in order.
fn records_in(segment: &[u8]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut at = SEGMENT_HEADER;
    // A segment made ready and not yet written to has zeros here.
    let Some(first) = number(segment, SEGMENT_HEADER + 16).checked_sub(SEGMENT_HEADER as u64)
    else {
        return found;
    };
    while at + HEADER <= segment.len() && number(segment, at + 16) == first + at as u64 {
        let kind = segment[at + 4];
        let length = u32::from_le_bytes(*segment[at + 8..].first_chunk().unwrap()) as usize;
        if kind == SKIP {
            found.push(Found { range: at..at + HEADER, kind });
            break;
        }
        assert!([COMMIT, PIECE].contains(&kind), "an unknown kind of record");
        found.push(Found { range: at..at + HEADER + length, kind });
        at = (at + HEADER + length).next_multiple_of(8);
    }
    found
}

/// An environment copied while it was open, and what it held after each commit.
struct Scene {
    files: Files,
    options: Options,
    /// States, the first one after the last checkpoint, then one after each commit.
    states: Vec<Records>,
}

impl Scene {
    fn new(commits: usize, durability: Durability, seed: u64) -> Scene {
        let options = small_options().durability(durability);
        let vfs = FaultyVfs::in_memory();
        let environment =
            Environment::open_in(vfs.clone(), Some(place()), options.clone()).unwrap();
        let database = environment.create_database("data").unwrap();
        environment.checkpoint().unwrap();
        let mut random = Random::new(seed);
        let mut states = vec![Records::new()];
        for commit in 0..commits {
            let mut state = states.last().unwrap().clone();
            let transaction = environment.begin().unwrap();
            for _ in 0..1 + random.below(2) {
                let key = format!("{}", random.below(6)).into_bytes();
                let value = vec![commit as u8; random.below(40)];
                database.put(&transaction, &key, &value).unwrap();
                state.insert(key, value);
            }
            transaction.commit().unwrap();
            states.push(state);
        }
        if durability == Durability::NoSync {
            // Appended one after the other and written together: none of them knows another one
            // durable.
            environment.transact(|t| database.put(t, b"last", b"")).unwrap();
            let mut state = states.last().unwrap().clone();
            state.insert(b"last".to_vec(), Vec::new());
            states.push(state);
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        let files = vfs.files(place());
        Scene { files, options, states }
    }

    /// The one segment that has the records, and they.
    fn log(&self) -> (PathBuf, &[u8], Vec<Found>) {
        let mut logs = self
            .files
            .iter()
            .filter(|(path, bytes)| is_segment(path) && !records_in(bytes).is_empty());
        let (path, bytes) = logs.next().expect("a segment with records");
        assert!(logs.next().is_none());
        let mut found = records_in(bytes);
        // Those before the checkpoint are not read.
        let old = found.len() + 1 - self.states.len();
        found.drain(..old);
        (path.clone(), bytes, found)
    }

    /// Opens the files with that segment instead.
    fn open_with(&self, path: &Path, segment: Vec<u8>) -> Result<Environment> {
        let mut files = self.files.clone();
        files.insert(path.to_owned(), segment);
        open_files(&files, &self.options)
    }

    fn expect(&self, opened: Result<Environment>, state: usize, what: &str) {
        let environment = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
        let all = contents(&environment).unwrap();
        crate::common::assert_same(&all["data"], &self.states[state], what);
        crate::common::assert_sound(&environment);
        // It must be possible to go on, and to find that again.
        let database = environment.open_database("data").unwrap();
        environment.transact(|t| database.put(t, b"afterwards", b"")).unwrap();
    }
}

/// Corruption that names a segment and a position in the log.
fn assert_names_place(opened: Result<Environment>, what: &str) {
    match opened {
        Err(Error::Corruption(damage)) => {
            let Corruption { file, place, .. } = *damage;
            assert!(file.contains(LOG_DIRECTORY), "{what}: {file}");
            assert!(
                place.log_position().is_some() || place.to_string().contains("segment"),
                "{what}: {place}"
            );
        }
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: opened"),
    }
}

/// A segment has its whole length before its first record: one that is shorter has lost what it may
/// have held.
#[test]
fn truncated_log_is_refused() {
    let scene = Scene::new(8, Durability::Sync, 1);
    let (path, bytes, found) = scene.log();
    assert_eq!(found.len(), 8);
    let end = found[7].range.end.next_multiple_of(8);
    let last = bytes.len() - 1;
    for at in (found[4].range.start..=end).chain([0, 1, SEGMENT_HEADER - 1, last - 5000, last]) {
        assert_names_place(scene.open_with(&path, bytes[..at].to_vec()), &format!("cut at {at}"));
    }
    scene.expect(scene.open_with(&path, bytes.to_vec()), 8, "whole");
}

/// The segment in which recovery begins is missing, and no other tells of it: that is not an empty
/// log.
#[test]
fn a_missing_first_segment_is_refused() {
    for durability in [Durability::Sync, Durability::WriteNoSync, Durability::NoSync] {
        let options = small_options().durability(durability);
        let vfs = FaultyVfs::in_memory();
        let opened = Environment::open_in(vfs.clone(), Some(place()), options.clone());
        let environment = opened.unwrap();
        environment.create_database("data").unwrap();
        let mut files = vfs.files(place());
        let segments: Vec<PathBuf> =
            files.keys().filter(|path| is_segment(path)).cloned().collect();
        assert!(!segments.is_empty(), "{durability}");
        segments.iter().for_each(|path| drop(files.remove(path)));
        assert_names_place(open_files(&files, &options), &format!("{durability}: no log"));
    }
}

/// After a failed flush of the folder it is unknown which segments have their names, so commits are
/// refused.
#[test]
fn failed_flush_of_the_log_folder_stops_commits() {
    for kind in [std::io::ErrorKind::Other, std::io::ErrorKind::StorageFull] {
        let options = small_options().durability(Durability::Sync);
        let vfs = FaultyVfs::in_memory();
        let opened = Environment::open_in(vfs.clone(), Some(place()), options.clone());
        let environment = opened.unwrap();
        let database = environment.create_database("data").unwrap();
        let mut failed = false;
        vfs.set_rule(move |call, _| {
            let hit = call == Call::SyncDirectory && !failed;
            failed |= hit;
            hit.then(|| kind.into())
        });
        // No commit comes to another segment with success.
        let length = options.log_segment_size as usize / 20;
        let mut commits = 0;
        let refused = (0..100u8).find_map(|n| {
            let done = environment.transact(|t| database.put(t, &[n], &vec![n; length]));
            commits += usize::from(done.is_ok());
            done.err()
        });
        let refused = refused.unwrap_or_else(|| panic!("{commits} commits after a failed flush"));
        assert!(matches!(refused, Error::Io { .. } | Error::Failed { .. }), "{refused}");
        for _ in 0..3 {
            let refused = environment.transact(|t| database.put(t, b"later", b""));
            assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
        }
        assert!(matches!(environment.close(), Err(Error::Failed { .. })));
        vfs.clear_rule();
        let again = Environment::open_in(vfs, Some(place()), options).unwrap();
        assert_eq!(contents(&again).unwrap()["data"].len(), commits);
    }
}

#[test]
fn zeroed_log_tail_leaves_the_commits_before() {
    let scene = Scene::new(8, Durability::Sync, 2);
    let (path, bytes, found) = scene.log();
    let end = found[7].range.end.next_multiple_of(8);
    for at in found[4].range.start..=end {
        let mut segment = bytes.to_vec();
        segment[at..].fill(0);
        // A record whose last bytes were zeros anyway is still whole.
        let whole = |record: &&Found| segment[record.range.clone()] == bytes[record.range.clone()];
        let whole = found.iter().take_while(whole).count();
        scene.expect(scene.open_with(&path, segment), whole, &format!("zeroed from {at}"));
    }
}

/// The bytes after the end are what the medium held before: garbage there ends the log, too.
#[test]
fn garbage_after_the_log_end_is_ignored() {
    let mut random = Random::new(crate::common::first_seed());
    let scene = Scene::new(4, Durability::Sync, 3);
    let (path, bytes, found) = scene.log();
    let end = found[3].range.end.next_multiple_of(8);
    for _ in 0..50 {
        let mut segment = bytes.to_vec();
        for byte in &mut segment[end..end + 5000] {
            *byte = random.next() as u8;
        }
        scene.expect(scene.open_with(&path, segment), 4, "garbage");
    }
    // Even a copy of a record that is one of this log: it is not of that place.
    let mut segment = bytes.to_vec();
    segment.copy_within(found[1].range.clone(), end);
    scene.expect(scene.open_with(&path, segment), 4, "a record again");
}

#[test]
fn damage_in_the_last_record_loses_only_that_record() {
    let scene = Scene::new(6, Durability::Sync, 4);
    let (path, bytes, found) = scene.log();
    let last = &found[5];
    for at in last.range.start..last.range.end.next_multiple_of(8) {
        for flip in [0xff, 1, 0x80] {
            let mut segment = bytes.to_vec();
            segment[at] ^= flip;
            let whole = if last.range.contains(&at) { 5 } else { 6 };
            scene.expect(scene.open_with(&path, segment), whole, &format!("byte {at}"));
        }
    }
}

#[test]
fn damage_before_durable_records_is_refused() {
    let scene = Scene::new(6, Durability::Sync, 5);
    let (path, bytes, found) = scene.log();
    for record in &found[..5] {
        for at in record.range.clone() {
            for flip in [0xff, 1 << (at % 8)] {
                let mut segment = bytes.to_vec();
                segment[at] ^= flip;
                assert_names_place(scene.open_with(&path, segment), &format!("byte {at}"));
            }
        }
    }
    // Whole records gone, too.
    let mut segment = bytes.to_vec();
    segment[found[1].range.start..found[4].range.end].fill(0);
    assert_names_place(scene.open_with(&path, segment), "zeroed in the middle");
}

/// These commits were not acknowledged as durable: a prefix of them survives the crash.
#[test]
fn damage_before_volatile_records_ends_the_log() {
    let scene = Scene::new(6, Durability::NoSync, 6);
    let (path, bytes, found) = scene.log();
    for (number, record) in found.iter().enumerate() {
        for at in record.range.clone().step_by(3) {
            let mut segment = bytes.to_vec();
            segment[at] ^= 0x20;
            scene.expect(scene.open_with(&path, segment), number, &format!("byte {at}"));
        }
    }
}

fn segments(files: &Files) -> Vec<PathBuf> {
    let used = |(path, bytes): (&PathBuf, &Vec<u8>)| {
        (is_segment(path) && !records_in(bytes).is_empty()).then(|| path.clone())
    };
    files.iter().filter_map(used).collect()
}

#[test]
fn damage_in_an_earlier_segment_is_refused() {
    let (files, options, last) = long_scene();
    let logs = segments(&files);
    assert!(logs.len() >= 4, "{logs:?}");
    let intact = open_files(&files, &options).unwrap();
    crate::common::assert_same(&contents(&intact).unwrap()["data"], &last, "intact");
    drop(intact);
    for path in &logs[..logs.len() - 1] {
        let what = path.display();
        let mut damaged = files.clone();
        damaged.remove(path);
        assert_names_place(open_files(&damaged, &options), &format!("{what} missing"));
        for at in [0, 8, 16, 24, 40] {
            let mut damaged = files.clone();
            damaged.get_mut(path).unwrap()[at] ^= 1;
            assert_names_place(open_files(&damaged, &options), &format!("{what}, byte {at}"));
        }
        let found = records_in(&files[path]);
        assert_eq!(found.last().unwrap().kind, SKIP);
        for record in [&found[0], &found[found.len() / 2], found.last().unwrap()] {
            for at in [record.range.start, record.range.start + 20, record.range.end - 1] {
                let mut damaged = files.clone();
                damaged.get_mut(path).unwrap()[at] ^= 1;
                assert_names_place(open_files(&damaged, &options), &format!("{what}, byte {at}"));
            }
        }
        for length in [0, 20, 4096, 10_000] {
            let mut damaged = files.clone();
            damaged.get_mut(path).unwrap().truncate(length);
            assert_names_place(open_files(&damaged, &options), &format!("{what} cut to {length}"));
        }
    }
}

#[test]
fn foreign_log_segment_is_refused() {
    let (files, options, _) = long_scene();
    let (others, _, _) = long_scene();
    for path in segments(&files) {
        let mut mixed = files.clone();
        mixed.insert(path.clone(), others[&path].clone());
        assert_names_place(open_files(&mixed, &options), &path.display().to_string());
    }
}

#[test]
fn empty_log_ends_recovery() {
    let scene = Scene::new(3, Durability::Sync, 7);
    let (path, bytes, _) = scene.log();
    // A segment made ready and never written to.
    let mut segment = bytes.to_vec();
    let (_, _, found) = scene.log();
    segment[found[0].range.start..].fill(0);
    scene.expect(scene.open_with(&path, segment), 0, "no record");
    // An environment just made, crashed at once, and again.
    let vfs = FaultyVfs::in_memory();
    let environment = Environment::open_in(vfs.clone(), Some(place()), small_options()).unwrap();
    let mut files = vfs.files(place());
    drop(environment);
    for _ in 0..3 {
        let vfs = world_with(&files, place());
        let again = Environment::open_in(vfs.clone(), Some(place()), small_options()).unwrap();
        assert!(contents(&again).unwrap().is_empty());
        files = vfs.files(place());
    }
}

/// Where a checkpoint's position leaves no room for another record in its segment, the next segment
/// need not be there.
#[test]
fn checkpoint_at_a_segment_end_needs_no_next_segment() {
    let mut left_over = Vec::new();
    for less in (0..120).step_by(8) {
        let options = small_options().checkpoint_bytes(1 << 30);
        let vfs = FaultyVfs::in_memory();
        let opened = Environment::open_in(vfs.clone(), Some(place()), options.clone());
        let environment = opened.unwrap();
        let database = environment.create_database("data").unwrap();
        let put = |n: u8, length: usize| {
            environment.transact(|t| database.put(t, &[n], &vec![n; length])).unwrap();
        };
        (0..12).for_each(|n| put(n, 20_000));
        let end = |files: &Files| {
            let (path, bytes) = files.iter().find(|(path, _)| is_segment(path)).unwrap();
            (path.clone(), records_in(bytes).last().unwrap().range.end.next_multiple_of(8))
        };
        let (first, used) = end(&vfs.files(place()));
        let room = options.log_segment_size as usize - used;
        put(12, room - HEADER - 8 - less);
        let (path, used) = end(&vfs.files(place()));
        if path == first {
            left_over.push(options.log_segment_size as usize - used);
        }
        environment.checkpoint().unwrap();
        let all = contents(&environment).unwrap();
        let crashed = open_files(&vfs.files(place()), &options).unwrap();
        crate::common::assert_same(&contents(&crashed).unwrap()["data"], &all["data"], "crashed");
    }
    assert!(left_over.contains(&8) && left_over.contains(&40), "{left_over:?}");
}
