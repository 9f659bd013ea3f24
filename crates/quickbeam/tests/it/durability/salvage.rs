//! Salvage: whatever is damaged, everything else comes back, and the report names what does not.
//! The damaged files stay as they are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::faulty::FaultyVfs;
use crate::common::{Files, Records, contents, place, small_options, world_with};
use quickbeam::{
    AccessMethod, DATA_FILE, DataStore, Environment, LOG_DIRECTORY, Options, SalvageReport,
    salvage_in,
};

const PAGE: usize = 4096;
const SLOTS: [usize; 2] = [0, 8192];

type All = BTreeMap<String, Records>;

fn options() -> Options {
    small_options().checkpoint_bytes(1 << 30)
}

fn fill(environment: &Environment, name: &str, from: usize, count: usize) {
    let database = crate::common::open_or_create(environment, name);
    let work = |transaction: &quickbeam::Transaction| {
        (from..from + count).try_for_each(|n| {
            let length = if n % 40 == 3 { 9000 } else { n % 300 };
            let key = format!("{name} {:05}", n * 7 % 1000);
            database.put(transaction, key.as_bytes(), &vec![n as u8; length])
        })
    };
    environment.transact(work).unwrap();
}

/// An environment closed cleanly, with a database that was dropped.
fn closed() -> (Files, All) {
    let vfs = FaultyVfs::in_memory();
    let environment = Environment::open_in(vfs.clone(), Some(place()), options()).unwrap();
    for name in ["one", "two", "gone"] {
        fill(&environment, name, 0, 400);
    }
    environment.drop_database("gone").unwrap();
    let all = contents(&environment).unwrap();
    environment.close().unwrap();
    (vfs.files(place()), all)
}

/// An environment that crashed many commits after its last checkpoint, and the content after each
/// of them.
fn crashed() -> (Files, Vec<All>) {
    let vfs = FaultyVfs::in_memory();
    let environment = Environment::open_in(vfs.clone(), Some(place()), options()).unwrap();
    for name in ["one", "two"] {
        fill(&environment, name, 0, 200);
    }
    environment.checkpoint().unwrap();
    let mut states = vec![contents(&environment).unwrap()];
    for round in 0..12 {
        match round {
            5 => environment.rename_database("two", "renamed").unwrap(),
            7 => drop(environment.create_database("new").unwrap()),
            _ => fill(&environment, "one", 300 + round * 10, 10),
        }
        states.push(contents(&environment).unwrap());
    }
    (vfs.files(place()), states)
}

/// Salvages the files, and makes sure that nothing happened to them.
fn salvaged(files: &Files, what: &str) -> (SalvageReport, Arc<FaultyVfs>) {
    let vfs = world_with(files, place());
    let report = salvage_in(vfs.clone(), place(), Path::new("new"), &options());
    let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(vfs.files(place()) == *files, "{what}: the damaged files were changed");
    (report, vfs)
}

fn salvaged_environment(files: &Files, what: &str) -> (SalvageReport, All) {
    let (report, vfs) = salvaged(files, what);
    let environment = Environment::open_in(vfs, Some(Path::new("new")), options()).unwrap();
    crate::common::assert_sound(&environment);
    let found = contents(&environment).unwrap();
    let counted: BTreeMap<&str, u64> =
        report.databases.iter().map(|database| (&database.name[..], database.records)).collect();
    assert!(
        found.iter().all(|(name, records)| counted[&name[..]] == records.len() as u64)
            && counted.len() == found.len(),
        "{what}: the report counts {counted:?}"
    );
    (report, found)
}

/// Whether the report says of a record that it is lost.
fn is_named(report: &SalvageReport, database: &str, key: &[u8]) -> bool {
    let place = match crate::common::method_of(database) {
        AccessMethod::BTree => key.escape_ascii().to_string(),
        AccessMethod::Hash | AccessMethod::HashPrefix => {
            format!("hash value {:08x}", crate::common::hash_of(key))
        }
    };
    let key = key.escape_ascii().to_string();
    let in_range = report.lost_ranges.iter().any(|range| {
        range.database == database
            && range.from <= place
            && range.to.as_ref().is_none_or(|to| place < *to)
    });
    in_range
        || report.lost_values.iter().any(|value| value.database == database && value.key == key)
}

/// What is there is right; what is not there is named.
fn assert_accounted(report: &SalvageReport, found: &All, all: &All, what: &str) -> usize {
    let mut missing = 0;
    for (name, records) in all {
        let Some(there) = found.get(name) else {
            let names_lost =
                report.lost_ranges.iter().any(|range| range.database.contains("names"));
            assert!(names_lost, "{what}: database {name} is missing and not named: {report:?}");
            // Its records are there under another name.
            let same = found.values().any(|other| other == records);
            assert!(same, "{what}: the records of {name} are nowhere");
            continue;
        };
        assert!(there.iter().all(|(key, value)| records.get(key) == Some(value)), "{what}: {name}");
        for key in records.keys().filter(|key| !there.contains_key(*key)) {
            missing += 1;
            assert!(is_named(report, name, key), "{what}: {key:?} of {name}: {report:?}");
        }
    }
    missing
}

#[test]
fn salvage_of_undamaged_files_is_complete() {
    let (files, all) = closed();
    let (report, found) = salvaged_environment(&files, "closed");
    assert!(report.is_complete(), "{report:?}");
    assert!(found == all);
    let (files, states) = crashed();
    let (report, found) = salvaged_environment(&files, "crashed");
    assert!(report.is_complete() && report.commits > 10, "{report:?}");
    assert!(found == *states.last().unwrap());
}

#[test]
fn salvage_loses_only_records_of_damaged_blocks() {
    let (files, all) = closed();
    let data = Path::new(DATA_FILE);
    let most = all["one"].len() / 4;
    let (mut harmless, mut costly, mut free) = (0, 0, 0);
    for at in (65_536..files[data].len() / PAGE * PAGE).step_by(PAGE) {
        let mut damaged = files.clone();
        damaged.get_mut(data).unwrap()[at + 100] ^= 0x40;
        let what = format!("block {}", at / PAGE);
        let (report, found) = salvaged_environment(&damaged, &what);
        let missing = assert_accounted(&report, &found, &all, &what);
        assert!(missing <= most, "{what}: {missing} records are missing");
        if report.is_complete() {
            free += 1;
            continue;
        }
        assert!(!report.lost_pages.is_empty(), "{what}: {report:?}");
        let of_block = report.lost_pages.iter().any(|page| page.block == (at / PAGE) as u64);
        assert!(of_block, "{what}: {report:?}");
        if missing == 0 { harmless += 1 } else { costly += 1 }
    }
    println!("{costly} blocks cost records, {harmless} none, {free} were free");
    assert!(costly > 10 && harmless > 2);
}

#[test]
fn salvage_without_meta_pages_finds_all_records() {
    let (files, all) = closed();
    let data = Path::new(DATA_FILE);
    for slots in [&SLOTS[..1], &SLOTS[1..], &SLOTS[..]] {
        let mut damaged = files.clone();
        for at in slots.iter().flat_map(|slot| [slot + 40, slot + 4096 + 40]) {
            damaged.get_mut(data).unwrap()[at] ^= 1;
        }
        let what = format!("slots {slots:?}");
        let (report, found) = salvaged_environment(&damaged, &what);
        assert!(!report.is_complete() && !report.doubts.is_empty(), "{what}");
        for (name, records) in &all {
            crate::common::assert_same(&found[name], records, &format!("{what}, {name}"));
        }
    }
}

#[test]
fn salvage_loses_only_the_commit_of_a_damaged_log_record() {
    let (files, states) = crashed();
    let (before, after) = (&states[0], states.last().unwrap());
    let segment = PathBuf::from(LOG_DIRECTORY).join("000000000001.log");
    let bytes = &files[&segment];
    let mut records = Vec::new();
    let mut at = 4096;
    while bytes[at + 4] != 0 {
        records.push(at);
        let length = u32::from_le_bytes(*bytes[at + 8..].first_chunk().unwrap()) as usize;
        at += (48 + length).next_multiple_of(8);
    }
    // The last record cannot be distinguished from one that was never whole. Records before the
    // checkpoint are not needed.
    let (_, needed) = records.split_last().unwrap();
    let mut told = 0;
    for &at in needed {
        let mut damaged = files.clone();
        damaged.get_mut(&segment).unwrap()[at + 30] ^= 4;
        let what = format!("record at {at}");
        let (report, found) = salvaged_environment(&damaged, &what);
        if report.is_complete() {
            assert!(found == *after, "{what}");
            continue;
        }
        told += 1;
        assert_eq!(report.lost_log.len(), 1, "{what}: {report:?}");
        assert_eq!(report.lost_log[0].from, at as u64 + (256 << 10), "{what}");
        // Every record is as it was before the lost commit or as it is after all of them.
        for (name, records) in &found {
            for (key, value) in records {
                let known = [before, after].into_iter().any(|state| {
                    let names = [name.as_str(), "two", "renamed"];
                    names.iter().any(|name| {
                        state.get(*name).is_some_and(|records| records.get(key) == Some(value))
                    })
                });
                assert!(known, "{what}: {name}");
            }
        }
        let missing = after["one"].keys().filter(|key| !found["one"].contains_key(*key)).count();
        assert!(missing <= 10, "{what}: {missing} records of other commits are missing");
    }
    assert!(told >= 10, "{told} of {} damaged records were told", needed.len());
}

#[test]
fn salvage_of_a_data_store_makes_a_data_store() {
    let vfs = FaultyVfs::in_memory();
    let mut store = DataStore::open_in(vfs.clone(), Some(place()), options()).unwrap();
    for (name, method) in [("data", AccessMethod::BTree), ("hashed", AccessMethod::Hash)] {
        let database = store.create_database_with(name, method).unwrap();
        for n in 0..500usize {
            store.put(database, format!("{n:05}").as_bytes(), &vec![n as u8; n % 400]).unwrap();
        }
    }
    store.close().unwrap();
    let files = vfs.files(place());
    let mut damaged = files.clone();
    // Both roots: what there is has to be found by looking.
    for at in SLOTS.iter().flat_map(|slot| [slot + 40, slot + 4096 + 40]) {
        damaged.get_mut(Path::new(DATA_FILE)).unwrap()[at] ^= 1;
    }
    for (files, complete) in [(files, true), (damaged, false)] {
        let (report, vfs) = salvaged(&files, "data store");
        assert_eq!(report.is_complete(), complete, "{report:?}");
        let mut store = DataStore::open_in(vfs, Some(Path::new("new")), options()).unwrap();
        for (at, name) in ["data", "hashed"].into_iter().enumerate() {
            let database = store.open_database(name).unwrap();
            assert_eq!(database.access_method() == AccessMethod::Hash, name == "hashed");
            for n in 0..500usize {
                let value = store.get(database, format!("{n:05}").as_bytes()).unwrap();
                assert!(value == Some(vec![n as u8; n % 400]), "record {n}");
            }
            assert_eq!(report.databases[at].records, 500);
        }
        assert!(store.verify().unwrap().complaints.is_empty());
    }
}

/// Nothing is left of the data file: what the log has comes back, and where there is none nothing
/// is made up.
#[test]
fn salvage_of_an_empty_data_file_reads_the_log() {
    let (files, states) = crashed();
    for content in [vec![], vec![0; 100_000], vec![7; 100_000]] {
        let mut emptied = files.clone();
        emptied.insert(DATA_FILE.into(), content.clone());
        let (report, vfs) = salvaged(&emptied, "the log alone");
        assert!(report.commits > 0 && !report.is_complete(), "{report:?}");
        let path = Path::new("new");
        let environment = Environment::open_in(vfs, Some(path), options()).unwrap();
        assert_eq!(environment.statistics().page_size, Options::default().page_size);
        let found = contents(&environment).unwrap();
        let last = states.last().unwrap();
        let known = |(name, records): (&String, &Records)| {
            last.contains_key(name) || records.is_empty() || name.starts_with("salvaged")
        };
        assert!(found.iter().all(known), "{:?}", found.keys());
        let alone = Files::from([(PathBuf::from(DATA_FILE), content)]);
        let vfs = world_with(&alone, place());
        let nothing = salvage_in(vfs, place(), Path::new("new"), &options());
        match nothing {
            Err(quickbeam::Error::NotAnEnvironment(missing)) => {
                assert!(missing.detail.contains("nothing to salvage"), "{missing}")
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn salvage_into_an_invalid_directory_is_refused() {
    let (files, _) = closed();
    let vfs = world_with(&files, place());
    let onto_itself = salvage_in(vfs.clone(), place(), place(), &options());
    crate::common::assert_misuse(onto_itself, "new directory");
    let nothing = salvage_in(vfs, Path::new("nowhere"), Path::new("new"), &options());
    assert!(matches!(nothing, Err(quickbeam::Error::NotAnEnvironment { .. })));
}
