//! Whole environments with changed bytes, with and without new checksums over them, are opened, read and written to.
//!
//! Without new checksums everything read is right, or an error. With them content may be wrong; but no thread panics, and
//! no call goes on for ever. `QUICKBEAM_MUTATIONS` sets how many environments, `QUICKBEAM_SEED` where it begins.
//! Single images are changed in far greater number by the unit tests of `fuzzing`.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::faulty::FaultyWorld;
use common::{Files, Random, Records, contents, open_files, place, small_options};
use quickbeam::{DATA_FILE, Environment, Error, LOG_DIRECTORY, Options, Result, Transaction};

const PAGE: usize = 4096;
/// How long one environment may take before it counts as going on for ever.
const PATIENCE: Duration = Duration::from_secs(60);

type All = BTreeMap<String, Records>;

/// An environment with a checkpoint and a log behind it, as a crash leaves it.
fn crashed(options: &Options) -> (Files, All) {
    let world = FaultyWorld::in_memory();
    let environment = Environment::open_in(world.clone(), Some(place()), options.clone()).unwrap();
    for name in ["one", "two"] {
        let database = common::open_or_create(&environment, name);
        let fill = |from: usize| {
            environment
                .transact(|transaction| {
                    (from..from + 120).try_for_each(|n| {
                        let length = if n % 30 == 3 { 9000 } else { n % 250 };
                        let key = format!("{name} {:05}", n * 7 % 1000);
                        database.put(transaction, key.as_bytes(), &vec![n as u8; length])
                    })
                })
                .unwrap();
        };
        fill(0);
        environment.checkpoint().unwrap();
        fill(60);
        common::put(&environment, &database, b"after", b"the checkpoint");
        common::put(&environment, &database, b"last", b"of all");
    }
    let all = contents(&environment).unwrap();
    (world.files(place()), all)
}

/// A part of a file that has a checksum of its own.
struct Part {
    file: PathBuf,
    range: Range<usize>,
    seal: fn(&mut [u8]),
}

fn seal_page(part: &mut [u8]) {
    let checksum = crc32c::crc32c(&part[4..]);
    part[..4].copy_from_slice(&checksum.to_le_bytes());
}

fn seal_root(part: &mut [u8]) {
    let checksum = crc32c::crc32c(&part[..124]);
    part[124..128].copy_from_slice(&checksum.to_le_bytes());
}

fn seal_segment(part: &mut [u8]) {
    let checksum = crc32c::crc32c(&part[..40]);
    part[40..44].copy_from_slice(&checksum.to_le_bytes());
}

fn seal_record(part: &mut [u8]) {
    let length = u32::from_le_bytes(*part[8..].first_chunk().unwrap()) as usize;
    let length = length.min(part.len() - 48);
    let payload = crc32c::crc32c(&part[48..48 + length]);
    let checksum = crc32c::crc32c_append(payload, &part[4..48]);
    part[..4].copy_from_slice(&checksum.to_le_bytes());
}

/// Where whole blocks begin.
fn blocks(data: &[u8]) -> impl Iterator<Item = usize> + use<> {
    (65_536..data.len() / PAGE * PAGE).step_by(PAGE)
}

/// Everything in the files that is in use.
fn parts(files: &Files) -> Vec<Part> {
    let data = PathBuf::from(DATA_FILE);
    let slot = |at: usize| Part { file: data.clone(), range: at..at + 128, seal: seal_root };
    let mut parts = vec![slot(0), slot(8192)];
    for at in blocks(&files[&data]) {
        parts.push(Part { file: data.clone(), range: at..at + PAGE, seal: seal_page });
    }
    let mut log: Vec<_> =
        files.iter().filter(|(file, _)| file.starts_with(LOG_DIRECTORY)).collect();
    log.sort();
    // A segment that was just being made ready is none yet.
    let is_segment = |file: &Path| file.extension().is_some_and(|name| name == "log");
    for (file, bytes) in log.into_iter().filter(|(file, _)| is_segment(file)) {
        parts.push(Part { file: file.clone(), range: 0..44, seal: seal_segment });
        let mut at = 4096;
        while at + 48 <= bytes.len() && bytes[at + 4] != 0 {
            let length = u32::from_le_bytes(*bytes[at + 8..].first_chunk().unwrap()) as usize;
            let end = at + (48 + length).next_multiple_of(8);
            parts.push(Part { file: file.clone(), range: at..end, seal: seal_record });
            at = end;
        }
    }
    // Nothing says that the last record of a log was whole once: without it, this is a crash a moment before.
    // (Behind it there may be a segment made ready ahead, which has a header only.)
    let is_record = |part: &Part| part.file.starts_with(LOG_DIRECTORY) && part.range.start > 0;
    let last = parts.iter().rposition(is_record).expect("the log has records");
    parts.remove(last);
    parts
}

/// Changes a few bytes of some parts; more often the first ones of each.
fn mutate(files: &mut Files, parts: &[Part], sealed: bool, random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let part = &parts[random.below(parts.len())];
        let bytes = &mut files.get_mut(&part.file).unwrap()[part.range.clone()];
        for _ in 0..1 + random.below(3) {
            let end = if random.chance(50) { bytes.len() } else { 96 };
            let at = random.below(end.min(bytes.len()));
            match random.below(4) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                2 => bytes[at] = random.next() as u8,
                _ => {
                    let length = random.below(12).min(bytes.len() - at);
                    let value = [0, 0xff][random.below(2)];
                    bytes[at..at + length].fill(value);
                }
            }
        }
        if sealed {
            (part.seal)(bytes);
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// Brings every location in `bytes` up to date: it has bits of the checksum of the image it leads to.
fn follow(data: &mut [u8], range: Range<usize>) {
    for at in range.step_by(8) {
        let location = word(data, at);
        let block = (location & ((1 << 40) - 1)) as usize;
        if location >> 40 != 0 && (block + 1) * PAGE <= data.len() {
            let checksum = u32::from_le_bytes(*data[block * PAGE..].first_chunk().unwrap());
            let location = block as u64 | u64::from(checksum & 0xff_ffff) << 40;
            data[at..at + 8].copy_from_slice(&location.to_le_bytes());
        }
    }
}

/// After pages were sealed: mapping, directory and root slots, each sealed again, lead to what there is now.
fn settle(files: &mut Files) {
    let data = files.get_mut(Path::new(DATA_FILE)).unwrap();
    for kind in [4, 5] {
        // The directory's pages lead from the first to the last, written the other way round: twice will do.
        for at in blocks(data).chain(blocks(data)) {
            if data[at + 4] == kind {
                follow(data, at + 48..at + PAGE);
                seal_page(&mut data[at..at + PAGE]);
            }
        }
    }
    for slot in [0, 8192] {
        follow(data, slot + 72..slot + 80);
        seal_root(&mut data[slot..slot + 128]);
    }
}

/// Reads everything, both ways, and compares it with what is right, if that is known.
fn read(environment: &Environment, all: &All, must_be_right: bool) -> Result<()> {
    let reader = environment.begin_read()?;
    for (name, records) in all {
        let Ok(database) = reader.open_database(name) else { continue };
        for (key, value) in records {
            let found = database.get(&reader, key);
            let right = found.as_ref().is_ok_and(|found| found.as_ref() == Some(value));
            assert!(!must_be_right || found.is_err() || right, "{name}: {key:?} is {found:?}");
        }
        let mut cursor = database.cursor(&reader)?;
        let mut forward = Records::new();
        let whole = (|| {
            while cursor.next()? {
                forward.insert(cursor.key().to_vec(), cursor.value().to_vec());
            }
            Ok::<_, Error>(())
        })();
        assert!(!must_be_right || whole.is_err() || forward == *records);
        let mut cursor = database.cursor(&reader)?;
        while matches!(cursor.prev(), Ok(true)) {}
    }
    Ok(())
}

/// Uses an environment in every way. What fails, fails.
fn use_it(files: &Files, all: &All, options: &Options, sealed: bool) -> bool {
    let Ok(environment) = open_files(files, options) else { return false };
    let read_all = read(&environment, all, !sealed);
    let change = |transaction: &Transaction| {
        for name in ["one", "two"] {
            let database = transaction.open_database(name)?;
            for n in 0..40usize {
                let key = format!("{name} {:05}", n * 31 % 1000);
                match n % 3 {
                    0 => drop(database.delete(transaction, key.as_bytes())?),
                    _ => database.put(transaction, key.as_bytes(), &vec![1; n * 37 % 5000])?,
                }
            }
        }
        Ok(())
    };
    let changed = environment.transact(change);
    let dropped = environment.drop_database("two");
    let verified = environment.verify();
    let closed = environment.checkpoint().and_then(|()| environment.close());
    read_all.is_ok() && changed.is_ok() && dropped.is_ok() && verified.is_ok() && closed.is_ok()
}

fn run(sealed: bool, default: usize) {
    let seed = common::first_seed();
    println!("seed {seed}");
    let options = Options { checkpoint_bytes: 1 << 30, ..small_options() };
    let (files, all) = crashed(&options);
    let parts = parts(&files);
    assert!(use_it(&files, &all, &options, false), "what is not changed can be used");
    // A panic anywhere, in a thread of the engine too, ends the run with its seed; so does a call that does not end.
    let round = Arc::new(AtomicU64::new(0));
    let hook = std::panic::take_hook();
    let at = round.clone();
    std::panic::set_hook(Box::new(move |panic| {
        hook(panic);
        eprintln!("QUICKBEAM_SEED={} repeats it", at.load(Ordering::SeqCst));
        std::process::abort();
    }));
    let at = round.clone();
    std::thread::spawn(move || {
        let mut last = u64::MAX;
        while last != at.load(Ordering::SeqCst) {
            last = at.load(Ordering::SeqCst);
            std::thread::sleep(PATIENCE);
        }
        eprintln!("QUICKBEAM_SEED={last}: a call does not end");
        std::process::abort();
    });
    let count = common::rounds("QUICKBEAM_MUTATIONS", default);
    let mut used = 0;
    for number in 0..count as u64 {
        round.store(seed + number, Ordering::SeqCst);
        let mut random = Random::new(seed + number);
        let mut changed = files.clone();
        mutate(&mut changed, &parts, sealed, &mut random);
        if sealed {
            settle(&mut changed);
        }
        used += usize::from(use_it(&changed, &all, &options, sealed));
    }
    println!("{count} environments, {used} of them usable in every way");
    let _ = std::panic::take_hook();
}

#[test]
fn changed_environments_are_read_right_or_refused() {
    run(false, 150);
}

#[test]
fn sealed_environments_do_no_harm() {
    run(true, 300);
}

/// The parts of the files are known to this test as the engine knows them.
#[test]
fn every_part_is_sealed_as_the_engine_seals_it() {
    let (files, _) = crashed(&small_options());
    let mut sealed = 0;
    for part in parts(&files) {
        let bytes = &files[Path::new(&part.file)][part.range.clone()];
        let mut again = bytes.to_vec();
        (part.seal)(&mut again);
        sealed += usize::from(again == bytes);
    }
    // Blocks that are free may hold anything.
    assert!(sealed > 40, "only {sealed} parts have the checksum that this test would give them");
}
