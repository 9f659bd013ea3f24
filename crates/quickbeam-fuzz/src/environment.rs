//! Whole environments with edited bytes: created, edited, made consistent, opened and used in every
//! way.
//!
//! An input lists the edited bytes of the files' parts ([`edits`]). Each [`Part`] has its own
//! checksum. A sealed part gets a valid checksum, and the locations that refer to it are updated
//! ([`settle`]). So the damage is found when the content is used and not when it is read.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use quickbeam::fuzzing::{seal_page, seal_record, seal_root, seal_segment};
use quickbeam::vfs::{MemoryVfs, OpenMode, Vfs};
use quickbeam::{
    AccessMethod, DATA_FILE, Durability, Environment, Error, LOG_DIRECTORY, Options, Result,
    Transaction,
};

use crate::targets::assert_names_its_place;

const PAGE: usize = 4096;

/// Records of one database.
pub type Records = BTreeMap<Vec<u8>, Vec<u8>>;
/// All databases by name.
pub type All = BTreeMap<String, Records>;
/// The files of an environment, by their path in its directory.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

fn place() -> &'static Path {
    Path::new("environment")
}

fn options() -> Options {
    Options::new()
        .page_size(PAGE)
        .cache_size(PAGE * 256)
        .log_segment_size(256 << 10)
        .log_buffer(128 << 10)
        .durability(Durability::Sync)
        .checkpoint_bytes(1 << 30)
}

/// A part of a file with its own checksum.
pub struct Part {
    /// The file.
    pub file: PathBuf,
    /// Its range in the file.
    pub range: Range<usize>,
    /// Sets the checksum of the part.
    pub seal: fn(&mut [u8]),
}

/// A crashed environment with a checkpoint and later log records.
pub struct Crashed {
    /// Its files.
    pub files: Files,
    /// Its databases.
    pub all: All,
    /// All parts of the files that are in use.
    pub parts: Vec<Part>,
}

/// The environment that inputs edit, created once.
pub static CRASHED: LazyLock<Crashed> = LazyLock::new(crashed);

fn crashed() -> Crashed {
    let vfs = Arc::new(MemoryVfs::new());
    let environment = Environment::open_in(vfs.clone(), Some(place()), options()).unwrap();
    for name in ["one", "two"] {
        let method = if name == "two" { AccessMethod::Hash } else { AccessMethod::BTree };
        let database = environment.create_database_with(name, method).unwrap();
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
        // Small commits first: the kept inputs for the log are cut from its start.
        for n in 0..12 {
            let key = format!("{name} small {n}");
            let some = |transaction: &Transaction| {
                if n % 3 == 2 {
                    database.delete(transaction, format!("{name} small {}", n - 1).as_bytes())?;
                }
                database.put(transaction, key.as_bytes(), &vec![n as u8; n * 60])
            };
            environment.transact(some).unwrap();
        }
        fill(0);
        environment.checkpoint().unwrap();
        fill(60);
        for key in ["after", "last"] {
            let one = |t: &Transaction| database.put(t, key.as_bytes(), b"the checkpoint");
            environment.transact(one).unwrap();
        }
    }
    let all = contents(&environment).unwrap();
    let files = files_of(&*vfs);
    let parts = parts(&files);
    Crashed { files, all, parts }
}

/// Copies the files of an idle environment.
fn files_of(vfs: &dyn Vfs) -> Files {
    let mut files = Files::new();
    for folder in [place().to_owned(), place().join(LOG_DIRECTORY)] {
        for path in vfs.list_directory(&folder).unwrap() {
            let name = path.strip_prefix(place()).unwrap();
            if name == Path::new(DATA_FILE) || path.extension().is_some_and(|name| name == "log") {
                let file = vfs.open(&path, OpenMode::Read).unwrap();
                let mut bytes = vec![0; file.length().unwrap() as usize];
                file.read_at(&mut bytes, 0).unwrap();
                files.insert(name.to_owned(), bytes);
            }
        }
    }
    files
}

fn contents(environment: &Environment) -> Result<All> {
    let reader = environment.begin_read()?;
    let mut all = All::new();
    for name in reader.databases()? {
        let database = reader.open_database(&name)?;
        let mut records = Records::new();
        let mut cursor = database.cursor(&reader)?;
        while cursor.next()? {
            records.insert(cursor.key().to_vec(), cursor.value().to_vec());
        }
        drop(cursor);
        all.insert(name, records);
    }
    Ok(all)
}

/// Returns the offsets of whole blocks.
fn blocks(data: &[u8]) -> impl Iterator<Item = usize> + use<> {
    (65_536..data.len() / PAGE * PAGE).step_by(PAGE)
}

fn parts(files: &Files) -> Vec<Part> {
    let data = PathBuf::from(DATA_FILE);
    let slot = |at: usize| Part { file: data.clone(), range: at..at + 128, seal: seal_root };
    let mut parts = vec![slot(0), slot(8192)];
    for at in blocks(&files[&data]).filter(|at| files[&data][*at + 4] != 0) {
        parts.push(Part { file: data.clone(), range: at..at + PAGE, seal: seal_page });
    }
    for (file, bytes) in files.iter().filter(|(file, _)| file.starts_with(LOG_DIRECTORY)) {
        parts.push(Part { file: file.clone(), range: 0..44, seal: seal_segment });
        let mut at = 4096;
        while at + 48 <= bytes.len() && bytes[at + 4] != 0 {
            let length = u32::from_le_bytes(*bytes[at + 8..].first_chunk().unwrap()) as usize;
            let end = at + (48 + length).next_multiple_of(8);
            parts.push(Part { file: file.clone(), range: at..end, seal: seal_record });
            at = end;
        }
    }
    // The last record of a log cannot be distinguished from an unfinished one: damage to it equals
    // an earlier crash. (A prepared segment after it may exist, which has a header only.)
    let is_record = |part: &Part| part.file.starts_with(LOG_DIRECTORY) && part.range.start > 0;
    let last = parts.iter().rposition(is_record).expect("the log has records");
    parts.remove(last);
    parts
}

/// Returns the eight bytes at `at` as a number.
pub fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// Updates every location in `range`, which contains bits of the checksum of its image.
fn follow(data: &mut [u8], range: Range<usize>) {
    for at in range.step_by(8) {
        let location = word(data, at);
        let block = (location & ((1 << 40) - 1)) as usize;
        if location >> 40 != 0 && block.checked_add(1).is_some_and(|end| end * PAGE <= data.len()) {
            let checksum = u32::from_le_bytes(*data[block * PAGE..].first_chunk().unwrap());
            let location = block as u64 | u64::from(checksum & 0xff_ffff) << 40;
            data[at..at + 8].copy_from_slice(&location.to_le_bytes());
        }
    }
}

/// Updates and seals page map, directory and meta pages after pages were sealed.
pub fn settle(files: &mut Files) {
    let data = files.get_mut(Path::new(DATA_FILE)).unwrap();
    for kind in [4, 5] {
        // A directory page refers to the next one, which was written before it: two passes suffice.
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
        // The second copy would otherwise replace the first one.
        data.copy_within(slot..slot + 128, slot + 4096);
    }
}

/// Opens an environment that consists of these files.
pub fn open(files: &Files) -> Result<Environment> {
    let vfs = Arc::new(MemoryVfs::new());
    for (path, bytes) in files {
        let file = vfs.open(&place().join(path), OpenMode::Create).unwrap();
        file.write_at(bytes, 0).unwrap();
    }
    vfs.create_directory(&place().join(LOG_DIRECTORY)).unwrap();
    Environment::open_in(vfs, Some(place()), options())
}

/// Reads everything, in both directions, and compares it with `all` if `must_be_right` is set.
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

/// Uses an environment in every way. Returns whether all calls succeeded. Every error must name its
/// place.
pub fn use_it(files: &Files, all: &All, sealed: bool) -> bool {
    let environment = match open(files) {
        Ok(environment) => environment,
        Err(error) => {
            assert_names_its_place(&error);
            return false;
        }
    };
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
    let verified = verified.map(|report| report.complaints.is_empty());
    let mut all_went_well = matches!(verified, Ok(true));
    for error in [read_all, changed, dropped, closed].into_iter().filter_map(Result::err) {
        assert_names_its_place(&error);
        all_went_well = false;
    }
    all_went_well
}

/// An edit of one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Number of the part, modulo the number of parts.
    pub part: u16,
    /// Offset in the part, modulo its length.
    pub at: u16,
    /// The new bytes, up to 31 of them.
    pub bytes: Vec<u8>,
}

/// Decodes an input: whether edited parts are sealed, and the edits.
#[must_use]
pub fn edits(input: &[u8]) -> (bool, Vec<Edit>) {
    let Some((first, mut rest)) = input.split_first() else { return (false, Vec::new()) };
    let mut all = Vec::new();
    while let Some((head, after)) = rest.split_first_chunk::<5>() {
        let length = usize::from(head[4] % 32).min(after.len());
        let (bytes, after) = after.split_at(length);
        let number = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        all.push(Edit { part: number(0), at: number(2), bytes: bytes.to_vec() });
        rest = after;
    }
    (first % 2 == 1, all)
}

/// Encodes an input.
#[must_use]
pub fn input_of(sealed: bool, edits: &[Edit]) -> Vec<u8> {
    let mut input = vec![u8::from(sealed)];
    for edit in edits {
        input.extend(edit.part.to_le_bytes());
        input.extend(edit.at.to_le_bytes());
        input.push(edit.bytes.len() as u8);
        input.extend(&edit.bytes);
    }
    input
}

/// Uses a whole environment, edited as the input says.
pub fn read_edited(input: &[u8]) {
    let Crashed { files, all, parts } = &*CRASHED;
    let (sealed, edits) = edits(input);
    let mut files = files.clone();
    for edit in &edits {
        let part = &parts[usize::from(edit.part) % parts.len()];
        let bytes = &mut files.get_mut(&part.file).unwrap()[part.range.clone()];
        let at = usize::from(edit.at) % bytes.len();
        let length = edit.bytes.len().min(bytes.len() - at);
        bytes[at..at + length].copy_from_slice(&edit.bytes[..length]);
        if sealed {
            (part.seal)(bytes);
        }
    }
    if sealed {
        settle(&mut files);
    }
    use_it(&files, all, sealed);
}
