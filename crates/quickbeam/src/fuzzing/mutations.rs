//! Mutation tests: read page images, log segments and meta pages of real environments after random
//! changes.
//!
//! A change without a new checksum must be detected, or have no effect. With a new checksum the
//! content may be invalid; reading and changing it must neither panic nor loop forever.
//! `QUICKBEAM_MUTATIONS` sets the number of images per test and `QUICKBEAM_SEED` the seed. Both
//! have defaults, so that a run can be repeated.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quickbeam_testing::{Random, number_in};

use super::{page_number, read_log, read_page, read_roots, seal_page, seal_record, seal_root};
use crate::vfs::{MemoryVfs, OpenMode, Vfs};
use crate::wal::SEGMENT_HEADER;
use crate::{DATA_FILE, DataStore, Durability, Environment, LOG_DIRECTORY, Options};

const SEGMENT: u64 = 256 << 10;

/// Returns the number of images to read, and the random generator.
fn run(default: u64) -> (u64, Random) {
    let seed = number_in("QUICKBEAM_SEED").unwrap_or(20_261_122);
    println!("seed {seed}");
    (number_in("QUICKBEAM_MUTATIONS").unwrap_or(default), Random::new(seed))
}

/// Changes bytes at one to three positions, mostly slightly, and more often near the start. Returns
/// the positions.
fn mutate(bytes: &mut [u8], random: &mut Random) -> Vec<usize> {
    let mut places = Vec::new();
    for _ in 0..1 + random.below(3) {
        let end = if random.below(2) == 0 { bytes.len() } else { 128 };
        let at = random.below(end.min(bytes.len()));
        places.push(at);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            2 => bytes[at] = random.next() as u8,
            3 => {
                let length = random.below(16).min(bytes.len() - at);
                bytes[at..at + length].fill([0, 0xff][random.below(2)]);
            }
            4 => {
                let from = random.below(bytes.len());
                let length = random.below(64).min(bytes.len() - from.max(at));
                bytes.copy_within(from..from + length, at);
            }
            _ => {
                let at = at & !7;
                let word = bytes.get(at..at + 8).and_then(|word| word.first_chunk());
                let word = word.map_or(0, |word| u64::from_le_bytes(*word));
                let more = [1, 8, 1 << 16, 1 << 18, 1 << 32, 1 << 48, u64::MAX][random.below(7)];
                if let Some(place) = bytes.get_mut(at..at + 8) {
                    place.copy_from_slice(&word.wrapping_add(more).to_le_bytes());
                }
            }
        }
    }
    places
}

fn options(page_size: usize) -> Options {
    Options {
        page_size,
        cache_size: page_size * 128,
        log_segment_size: SEGMENT,
        log_buffer: 128 << 10,
        durability: Durability::Sync,
        ..Options::default()
    }
}

/// Calls `put` with records of every kind.
fn records(mut put: impl FnMut(&[u8], &[u8])) {
    for n in 0..260usize {
        let key = match n % 4 {
            0 => format!("{n:05}").into_bytes(),
            1 => format!("a long prefix that many keys begin with {:03}", n * 7 % 260).into_bytes(),
            2 => vec![n as u8; n % 7],
            _ => [&[n as u8; 300][..], &n.to_be_bytes()].concat(),
        };
        put(&key, &vec![n as u8; if n % 50 == 3 { 9000 } else { n * 3 % 400 }]);
    }
}

fn bytes_of(vfs: &dyn Vfs, path: &Path) -> Vec<u8> {
    let file = vfs.open(path, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.length().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// Returns the page sizes and data files of environments and data stores, for two page sizes.
fn data_files() -> Vec<(usize, Vec<u8>)> {
    let mut files = Vec::new();
    for page_size in [4096, 16384] {
        let vfs = Arc::new(MemoryVfs::new());
        let (one, two) = (Path::new("one"), Path::new("two"));
        let opened = Environment::open_in(vfs.clone(), Some(one), options(page_size));
        let environment = opened.unwrap();
        let database = environment.create_database("data").unwrap();
        records(|key, value| environment.transact(|t| database.put(t, key, value)).unwrap());
        environment.close().unwrap();
        files.push((page_size, bytes_of(&*vfs, &one.join(DATA_FILE))));
        let mut store = DataStore::open_in(vfs.clone(), Some(two), options(page_size)).unwrap();
        let database = store.create_database("data").unwrap();
        records(|key, value| store.put(database, key, value).unwrap());
        store.close().unwrap();
        files.push((page_size, bytes_of(&*vfs, &two.join(DATA_FILE))));
    }
    files
}

fn pages() -> Vec<Vec<u8>> {
    let mut pages = Vec::new();
    for (page_size, file) in data_files() {
        for block in file[64 << 10..].chunks_exact(page_size) {
            if read_page(block, page_number(block), 0).is_ok() {
                pages.push(block.to_vec());
            }
        }
    }
    assert!(pages.len() > 100, "only {} pages", pages.len());
    pages
}

#[test]
fn a_changed_page_is_refused_or_the_same() {
    let (count, mut random) = run(30_000);
    let pages = pages();
    let mut accepted = 0;
    for _ in 0..count {
        let original = &pages[random.below(pages.len())];
        let mut image = original.clone();
        mutate(&mut image, &mut random);
        if let Ok(read) = read_page(&image, page_number(original), random.next()) {
            assert!(read == *original, "a changed page was accepted");
            accepted += 1;
        }
    }
    println!("{count} images, {accepted} of them unchanged");
    assert!(accepted < count / 4, "{accepted} of {count} were accepted");
}

#[test]
fn a_sealed_page_is_refused_or_usable() {
    let (count, mut random) = run(30_000);
    let pages = pages();
    let mut accepted = 0;
    for round in 0..count {
        let mut image = pages[random.below(pages.len())].clone();
        mutate(&mut image, &mut random);
        seal_page(&mut image);
        let used = || read_page(&image, page_number(&image), random.next()).is_ok();
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(used)) {
            Ok(usable) => accepted += u64::from(usable),
            Err(_) => panic!("image {round} of the run: {:?}", &image[..64]),
        }
    }
    println!("{count} images, {accepted} of them accepted");
    assert!(accepted > count / 50, "only {accepted} of {count} were accepted: nothing was tried");
}

/// Creates the log of an environment that crashed. Returns a VFS with it, the environment's
/// identifier, the segment's bytes and its records.
fn log() -> (Arc<dyn Vfs>, u64, Vec<u8>, super::Records) {
    let vfs = Arc::new(MemoryVfs::new());
    let place = Path::new("one");
    let options = Options { checkpoint_bytes: 1 << 30, ..options(4096) };
    let environment = Environment::open_in(vfs.clone(), Some(place), options).unwrap();
    let database = environment.create_database("data").unwrap();
    records(|key, value| environment.transact(|t| database.put(t, key, value)).unwrap());
    let segment = bytes_of(&*vfs, &place.join(LOG_DIRECTORY).join("000000000001.log"));
    let owner = u64::from_le_bytes(*segment[16..].first_chunk().unwrap());
    let copy: Arc<dyn Vfs> = Arc::new(MemoryVfs::new());
    copy.open(&path(), OpenMode::Create).unwrap().write_at(&segment, 0).unwrap();
    let (records, end) = read_log(&copy, owner, SEGMENT, SEGMENT + SEGMENT_HEADER);
    end.unwrap();
    assert!(records.len() > 200, "only {} records", records.len());
    (copy, owner, segment, records)
}

fn path() -> PathBuf {
    Path::new("log").join("000000000001.log")
}

/// Reads the log with one part of it changed, then restores the original.
fn read_changed(
    vfs: &Arc<dyn Vfs>,
    owner: u64,
    (at, changed, original): (usize, &[u8], &[u8]),
    start: u64,
) -> (super::Records, crate::Result<()>) {
    let file = vfs.open(&path(), OpenMode::Write).unwrap();
    file.write_at(changed, at as u64).unwrap();
    let read = read_log(vfs, owner, SEGMENT, start);
    file.write_at(original, at as u64).unwrap();
    read
}

#[test]
fn a_changed_log_is_refused_or_ends_where_it_may() {
    let (count, mut random) = run(4_000);
    let (vfs, owner, segment, records) = log();
    let offset = |record: usize| (records[record].0 - SEGMENT) as usize;
    let mut refused = 0;
    for _ in 0..count {
        // Reading begins near the change, because earlier records are unaffected.
        let first = random.below(records.len() - 1);
        let last = (first + 8).min(records.len() - 1);
        let (from, to) = (offset(first), offset(last));
        let mut part = segment[from..to].to_vec();
        mutate(&mut part, &mut random);
        let (read, end) =
            read_changed(&vfs, owner, (from, &part, &segment[from..to]), records[first].0);
        let expected = &records[first..];
        assert!(read.len() <= expected.len() && read == expected[..read.len()], "a wrong record");
        if end.is_ok() {
            // Every record was written when the earlier ones were durable: only the last record can
            // be missing.
            let missing = expected.len() - read.len();
            assert!(missing <= 1, "{missing} durable records are missing, and nothing is said");
        } else {
            refused += 1;
        }
    }
    println!("{count} logs, {refused} of them refused");
    assert!(refused > count / 2, "{refused} of {count} were refused");
}

#[test]
fn a_sealed_log_is_refused_or_read_to_an_end() {
    let (count, mut random) = run(4_000);
    let (vfs, owner, segment, records) = log();
    let mut more = 0;
    for _ in 0..count {
        let first = random.below(records.len() - 1);
        let (from, to) =
            ((records[first].0 - SEGMENT) as usize, (records[first + 1].0 - SEGMENT) as usize);
        let mut part = segment[from..].to_vec();
        let length = to - from;
        mutate(&mut part[..length], &mut random);
        seal_record(&mut part);
        let (read, _) =
            read_changed(&vfs, owner, (from, &part, &segment[from..]), records[first].0);
        more += u64::from(!read.is_empty());
    }
    println!("{count} logs, {more} of them read on");
    assert!(more > count / 50, "only {more} of {count} were read on");
}

#[test]
fn a_changed_root_is_refused_or_the_other_one_serves() {
    let (count, mut random) = run(10_000);
    let files = data_files();
    let mut served = 0;
    for _ in 0..count {
        let mut file = files[random.below(files.len())].1[..16384].to_vec();
        let sequence = read_roots(&file).unwrap();
        let slot = [0, 8192][random.below(2)];
        mutate(&mut file[slot..slot + 128], &mut random);
        let sealed = random.below(2) == 0;
        if sealed {
            seal_root(&mut file[slot..slot + 128]);
        }
        if let Ok(found) = read_roots(&file) {
            assert!(
                sealed || found == sequence || found + 1 == sequence,
                "root {found}, not {sequence}"
            );
            served += 1;
        }
    }
    println!("{count} pairs of slots, {served} of them with a root");
    assert!(served > count / 2);
}
