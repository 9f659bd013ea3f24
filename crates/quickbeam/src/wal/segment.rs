//! Segment files: preparing, writing, reusing and removing them.
//!
//! A segment is filled with zeros and flushed, with its length and name, before its first record, so that a commit's
//! flush changes no metadata. Segments whose records a checkpoint has made unnecessary are renamed and used again.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::failure::Failure;
use super::{LogSettings, Lsn};
use crate::sync::locks::Mutex;

use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::vfs::{DIRECT_ALIGNMENT, File, MappedFile, OpenMode, Vfs};

/// Bytes at a segment's start that hold no records.
pub const SEGMENT_HEADER: u64 = 4096;
/// Bytes of them that say which segment it is.
const IDENTITY: usize = 44;
const MAGIC: &[u8; 8] = b"QBEAMLOG";
/// Version of the file format that segments are written in, and the oldest that is read.
const VERSION: u32 = 2;
const OLDEST_VERSION: u32 = 1;
/// Unneeded segments that a busy log keeps for reuse.
pub const SPARE_SEGMENTS: usize = 4;
/// More segments than a log has between two checkpoints.
const MANY_SEGMENTS: u64 = 1 << 16;

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentIdentity {
    /// The environment it belongs to.
    pub environment: u64,
    /// Its number.
    pub number: u64,
    /// Bytes in a segment.
    pub size: u64,
}

impl SegmentIdentity {
    fn encode(self) -> Vec<u8> {
        let mut bytes = vec![0; SEGMENT_HEADER as usize];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.environment.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.number.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.size.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..40]);
        bytes[40..44].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a segment's header; `None` when it is none.
    pub fn decode(bytes: &[u8]) -> Option<SegmentIdentity> {
        let bytes = bytes.get(..IDENTITY)?;
        let number = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let half = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let sound = bytes.starts_with(MAGIC)
            && (OLDEST_VERSION..=VERSION).contains(&half(8)?)
            && half(40)? == crc32c::crc32c(&bytes[..40]);
        sound.then_some(SegmentIdentity {
            environment: number(16)?,
            number: number(24)?,
            size: number(32)?,
        })
    }
}

/// The file of a segment.
pub fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:012}.log"))
}

/// The number in a segment's file name.
pub fn number_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".log")?.parse().ok()
}

/// Makes the names in the folder of segments durable. After a failure nobody knows which are: the log fails for good.
fn flush_folder(vfs: &dyn Vfs, settings: &LogSettings, failure: &Failure) -> Result<()> {
    failure.check()?;
    vfs.sync_directory(&settings.directory).map_err(|source| {
        // Never `DiskFull`, whatever the reason: another flush would not make up for this one.
        let action = format!("flushing the folder {}", settings.directory.display());
        let error = Error::Io { action, source };
        failure.set(&error);
        error
    })
}

/// Makes segment `number` ready for its first record, from the file `old` or a new one.
pub fn prepare(
    vfs: &dyn Vfs,
    settings: &LogSettings,
    failure: &Failure,
    number: u64,
    old: Option<PathBuf>,
) -> Result<()> {
    let path = path_of(&settings.directory, number);
    if vfs.exists(&path) {
        // Whoever made it, in an earlier opening, may not have come to this.
        return flush_folder(vfs, settings, failure);
    }
    let new = settings.directory.join(format!("{number:012}.new"));
    let on = |action: &'static str| {
        let new = new.clone();
        move |error| Error::on_file(action, &new, error)
    };
    if vfs.exists(&new) {
        // Of an earlier attempt: what a failed flush left of it is unknown.
        vfs.remove(&new).map_err(on("removing"))?;
    }
    let reused = match &old {
        Some(old) => vfs.rename(old, &new).is_ok(),
        None => false,
    };
    let file = vfs.open(&new, OpenMode::Create).map_err(on("creating"))?;
    if !reused {
        file.allocate(settings.segment_size).map_err(on("allocating"))?;
    }
    if !reused && settings.write_through {
        // Written once, the room needs no change of metadata at the flush of a commit.
        fill(&*file, settings.segment_size, 1 << 20).map_err(on("filling"))?;
    }
    let identity =
        SegmentIdentity { environment: settings.environment, number, size: settings.segment_size };
    file.write_at(&identity.encode(), 0).map_err(on("writing the header of"))?;
    file.sync_all().map_err(on("flushing"))?;
    if !reused && !settings.write_through {
        // The operating system's memory for the segment is made here, in the background, and not when commits are written:
        // half of a small write's time. In parts of this size; it handles memory that was made in larger ones more slowly.
        fill(&*file, settings.segment_size, 64 << 10).map_err(on("filling"))?;
    }
    vfs.rename(&new, &path).map_err(on("renaming"))?;
    if planted(Canary::FolderNotFlushed) {
        return Ok(());
    }
    flush_folder(vfs, settings, failure)
}

/// The memory of a segment that is made ready.
pub struct MappedSegment {
    /// The segment's number.
    pub number: u64,
    /// Its file's bytes.
    pub memory: Box<dyn MappedFile>,
}

/// Maps segment `number`, where its medium can. None, too, if a checkpoint has let go of it since it was made ready.
pub fn map(vfs: &dyn Vfs, settings: &LogSettings, number: u64) -> Result<Option<MappedSegment>> {
    let path = path_of(&settings.directory, number);
    let file = match vfs.open(&path, OpenMode::Write) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| Error::on_file("opening", &path, error))?,
    };
    map_file(&*file, &path, settings, number)
}

fn map_file(
    file: &dyn File,
    path: &Path,
    settings: &LogSettings,
    number: u64,
) -> Result<Option<MappedSegment>> {
    let memory =
        file.map(settings.segment_size).map_err(|error| Error::on_file("mapping", path, error))?;
    Ok(memory.map(|memory| MappedSegment { number, memory }))
}

/// A segment to make ready while there is time.
pub struct Wanted {
    /// Its number.
    pub number: u64,
    /// A file to make it from.
    pub old: Option<PathBuf>,
    /// How often prepared segments had been withdrawn.
    pub withdrawals: u64,
}

/// Writes zeros behind a segment's header, `part` bytes at a time.
fn fill(file: &dyn File, size: u64, part: usize) -> std::io::Result<()> {
    let zeros = vec![0; part];
    let mut at = SEGMENT_HEADER;
    while at < size {
        // Whole parts but the first: they begin at multiples of their size.
        let length = (part as u64 - at % part as u64).min(size - at);
        file.write_at(&zeros[..length as usize], at)?;
        at += length;
    }
    Ok(())
}

/// Writes records to segments, one after the other.
pub struct SegmentWriter {
    vfs: Arc<dyn Vfs>,
    settings: LogSettings,
    failure: Arc<Failure>,
    /// The segment being written, once there is one.
    current: Option<(u64, Arc<dyn File>)>,
    /// Segments written to and left since the last flush, with their numbers.
    unflushed: Vec<(u64, Arc<dyn File>)>,
    write_through: bool,
    /// Staging memory for writes through to the device, aligned as they ask, with the start of the current block.
    staging: Vec<u8>,
    tail: Vec<u8>,
    /// Where writing goes on.
    end: Lsn,
    /// The segment of an earlier opening that is known to be there durably.
    ensured: Option<u64>,
    /// Lowest segment there is a file of, and highest.
    first: u64,
    last: u64,
    /// Files of segments that nobody needs.
    unneeded: Vec<PathBuf>,
    /// Memory of segments made ready, for the log's buffer.
    mapped: Vec<MappedSegment>,
    /// How often prepared segments lost their files.
    withdrawals: u64,
    /// Everything before this LSN has its segment.
    pub prepared_end: Arc<AtomicU64>,
    /// Held while a segment is made ready, here or in the background.
    pub preparing: Arc<Mutex<()>>,
}

impl SegmentWriter {
    /// Goes on at `end`.
    pub fn open(
        vfs: Arc<dyn Vfs>,
        settings: &LogSettings,
        end: Lsn,
        failure: Arc<Failure>,
    ) -> Result<SegmentWriter> {
        let directory = &settings.directory;
        let names = vfs
            .list_directory(directory)
            .map_err(|error| Error::on_file("listing", directory, error))?;
        let current = end / settings.segment_size;
        let numbers = names.iter().filter_map(|path| number_of(path));
        let last = numbers.clone().filter(|&n| n >= current).max().unwrap_or(current);
        let first = numbers.min().unwrap_or(current).min(current);
        for path in names.iter().filter(|path| path.extension().is_some_and(|e| e == "new")) {
            vfs.remove(path).map_err(|error| Error::on_file("removing", path, error))?;
        }
        let mut writer = SegmentWriter {
            vfs,
            settings: settings.clone(),
            failure,
            current: None,
            unflushed: Vec::new(),
            write_through: settings.write_through,
            staging: Vec::new(),
            tail: Vec::new(),
            end,
            ensured: None,
            first,
            last,
            unneeded: Vec::new(),
            mapped: Vec::new(),
            withdrawals: 0,
            prepared_end: Arc::default(),
            preparing: Arc::default(),
        };
        writer.check_size()?;
        writer.load_tail()?;
        Ok(writer)
    }

    /// Refuses to go on with segments of another size than those that are there: the data file is not the one they
    /// belong to, and no file is made as long as it says.
    fn check_size(&self) -> Result<()> {
        let path = path_of(&self.settings.directory, self.last.max(self.first));
        if !self.vfs.exists(&path) {
            return Ok(());
        }
        let on = |error| Error::on_file("reading", &path, error);
        let file = self.vfs.open(&path, OpenMode::Read).map_err(on)?;
        let mut header = [0; IDENTITY];
        if file.length().map_err(on)? < header.len() as u64 {
            return Ok(());
        }
        file.read_at(&mut header, 0).map_err(on)?;
        let Some(found) = SegmentIdentity::decode(&header) else { return Ok(()) };
        let (size, environment) = (self.settings.segment_size, self.settings.environment);
        if found.size == size && found.environment == environment {
            return Ok(());
        }
        Err(Error::Corruption {
            file: path.display().to_string(),
            place: "segment header".into(),
            detail: format!(
                "it is of environment {:016x} with segments of {} bytes; the data file says {environment:016x} and {size}",
                found.environment, found.size
            ),
        })
    }

    /// Writing through rewrites the block that the end lies in: its first part has to be known.
    fn load_tail(&mut self) -> Result<()> {
        let inside = (self.end % self.settings.segment_size) as usize % DIRECT_ALIGNMENT;
        let number = self.end / self.settings.segment_size;
        let path = path_of(&self.settings.directory, number);
        self.tail = vec![0; inside];
        if inside > 0 && self.vfs.exists(&path) {
            let read = || -> std::io::Result<Vec<u8>> {
                let file = self.vfs.open(&path, OpenMode::Read)?;
                let mut tail = vec![0; inside];
                let start = self.end % self.settings.segment_size - inside as u64;
                // A file that was cut ends within the padding of its last record.
                let there = file.length()?.saturating_sub(start).min(inside as u64) as usize;
                file.read_at(&mut tail[..there], start)?;
                Ok(tail)
            };
            self.tail = read().map_err(|error| Error::on_file("reading", &path, error))?;
        }
        Ok(())
    }

    /// Whether every write is durable when it returns.
    pub fn is_write_through(&self) -> bool {
        self.write_through
    }

    /// Segment files there are.
    pub fn segments(&self) -> u64 {
        self.last + 1 - self.first + self.unneeded.len() as u64
    }

    /// Whether the next segment should be prepared.
    pub fn wants_next(&self) -> bool {
        self.next_to_prepare().is_some()
    }

    /// The segment to prepare while there is time.
    fn next_to_prepare(&self) -> Option<u64> {
        let size = self.settings.segment_size;
        let (number, half) = (self.end / size, self.end % size > size / 2);
        (half && self.last <= number).then_some(number + 1)
    }

    /// The segment to prepare while there is time, and a file to make it from.
    pub fn take_next_to_prepare(&mut self) -> Option<Wanted> {
        let number = self.next_to_prepare()?;
        Some(Wanted { number, old: self.unneeded.pop(), withdrawals: self.withdrawals })
    }

    /// A segment is not wanted after all: the file that it was to be made from is there for another one.
    pub fn put_back(&mut self, wanted: Wanted) {
        self.unneeded.extend(wanted.old);
    }

    /// Notes that segment `number` was made ready, if it is still there. Its memory counts only if no prepared segment was
    /// withdrawn meanwhile: another file may have its name now.
    pub fn prepared_aside(&mut self, number: u64, mapped: Option<MappedSegment>, withdrawals: u64) {
        if self.vfs.exists(&path_of(&self.settings.directory, number)) {
            self.mapped.extend(mapped.filter(|_| withdrawals == self.withdrawals));
            self.prepared(number);
        }
    }

    /// Memory of segments made ready since this was last asked.
    pub fn take_mapped(&mut self) -> Vec<MappedSegment> {
        std::mem::take(&mut self.mapped)
    }

    /// Notes that segment `number` is there.
    fn prepared(&mut self, number: u64) {
        self.last = self.last.max(number);
        self.prepared_end.fetch_max((self.last + 1) * self.settings.segment_size, Ordering::AcqRel);
    }

    /// Sees to it that the segment which `lsn` lies in is there, durably.
    pub fn ensure(&mut self, lsn: Lsn) -> Result<()> {
        let number = lsn / self.settings.segment_size;
        if lsn < self.prepared_end.load(Ordering::Acquire) || Some(number) == self.ensured {
            return Ok(());
        }
        let path = path_of(&self.settings.directory, number);
        if self.vfs.exists(&path) {
            // Made in an earlier opening. Its memory is not wanted before something is written.
            self.restore_length(&path)?;
            flush_folder(&*self.vfs, &self.settings, &self.failure)?;
        } else {
            self.prepare_through(lsn)?;
        }
        self.ensured = Some(number);
        Ok(())
    }

    /// A segment that was cut behind the log's end, perhaps as it was copied, gets its length back.
    fn restore_length(&self, path: &Path) -> Result<()> {
        let size = self.settings.segment_size;
        let restore = || -> std::io::Result<()> {
            let file = self.vfs.open(path, OpenMode::Write)?;
            if file.length()? < size {
                file.allocate(size)?;
                file.sync_all()?;
            }
            Ok(())
        };
        restore().map_err(|error| Error::on_file("restoring the length of", path, error))
    }

    /// Makes segments ready up to the one that `lsn` lies in.
    pub fn prepare_through(&mut self, lsn: Lsn) -> Result<()> {
        let preparing = self.preparing.clone();
        let _held = preparing.lock();
        let current = self.end / self.settings.segment_size;
        let first =
            (self.prepared_end.load(Ordering::Acquire) / self.settings.segment_size).max(current);
        for number in first..=lsn / self.settings.segment_size {
            self.prepare(number)?;
        }
        Ok(())
    }

    /// Makes segment `number` ready, from a file that nobody needs if there is one.
    fn prepare(&mut self, number: u64) -> Result<()> {
        let there = self.vfs.exists(&path_of(&self.settings.directory, number));
        let old = if there { None } else { self.unneeded.pop() };
        prepare(&*self.vfs, &self.settings, &self.failure, number, old)?;
        let path = path_of(&self.settings.directory, number);
        // Only now is it known whether the medium can be written through to.
        let file = self.open_segment(&path)?;
        if !self.write_through {
            self.mapped.extend(map_file(&*file, &path, &self.settings, number)?);
        }
        self.prepared(number);
        Ok(())
    }

    fn file_for(&mut self, number: u64) -> Result<Arc<dyn File>> {
        if let Some((current, file)) = &self.current
            && *current == number
        {
            return Ok(file.clone());
        }
        let path = path_of(&self.settings.directory, number);
        let preparing = self.preparing.clone();
        let _held = preparing.lock();
        if self.prepared_end.load(Ordering::Acquire) <= number * self.settings.segment_size {
            self.prepare(number)?;
        }
        self.unflushed.extend(self.current.take());
        let file = self.open_segment(&path)?;
        self.current = Some((number, file.clone()));
        Ok(file)
    }

    fn open_segment(&mut self, path: &Path) -> Result<Arc<dyn File>> {
        if self.write_through {
            match self.vfs.open(path, OpenMode::WriteThrough) {
                Ok(file) => return Ok(file),
                // Not every file system can; a flush after each write does the same.
                Err(_) => self.write_through = false,
            }
        }
        self.vfs.open(path, OpenMode::Write).map_err(|e| Error::on_file("opening", path, e))
    }

    /// Writes `bytes` at `lsn`, which follows what was written before or begins a segment.
    pub fn write(&mut self, lsn: Lsn, bytes: &[u8]) -> Result<()> {
        let size = self.settings.segment_size;
        let number = lsn / size;
        let file = self.file_for(number)?;
        let offset = lsn % size;
        if lsn != self.end {
            self.tail.clear();
        }
        let written = if self.write_through {
            self.write_aligned(&*file, offset, bytes)
        } else {
            file.write_at(bytes, offset)
        };
        let path = || path_of(&self.settings.directory, number);
        written.map_err(|error| Error::on_file("writing", &path(), error))?;
        self.keep_tail(offset, bytes);
        self.end = lsn + bytes.len() as u64;
        Ok(())
    }

    /// Remembers the bytes of the block that the end now lies in.
    fn keep_tail(&mut self, offset: u64, bytes: &[u8]) {
        let inside = (offset as usize + bytes.len()) % DIRECT_ALIGNMENT;
        if inside <= bytes.len() {
            self.tail.clear();
            self.tail.extend_from_slice(&bytes[bytes.len() - inside..]);
        } else {
            self.tail.extend_from_slice(bytes);
        }
    }

    fn write_aligned(&mut self, file: &dyn File, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        let start = offset - self.tail.len() as u64;
        let length = (self.tail.len() + bytes.len()).next_multiple_of(DIRECT_ALIGNMENT);
        if self.staging.len() < length + DIRECT_ALIGNMENT {
            self.staging = vec![0; length + DIRECT_ALIGNMENT];
        }
        let skew = self.staging.as_ptr().align_offset(DIRECT_ALIGNMENT);
        let block = &mut self.staging[skew..skew + length];
        let (tail, rest) = block.split_at_mut(self.tail.len());
        tail.copy_from_slice(&self.tail);
        rest[..bytes.len()].copy_from_slice(bytes);
        rest[bytes.len()..].fill(0);
        file.write_at(block, start)
    }

    /// Notes that everything before `end` is in its segments, also what was stored there past this writer: the next flush
    /// has to flush them.
    pub fn probe(&mut self, end: Lsn) -> Result<()> {
        if end <= self.end {
            return Ok(());
        }
        let size = self.settings.segment_size;
        for number in (self.end / size).max(self.first)..=(end - 1) / size {
            self.file_for(number)?;
        }
        self.tail.clear();
        self.end = end;
        Ok(())
    }

    /// Makes everything written durable.
    pub fn flush(&mut self) -> Result<()> {
        if planted(Canary::LogNotFlushed) {
            return Ok(());
        }
        let flushed = self.unflushed.iter().try_for_each(|(_, file)| file.sync_data());
        let result = flushed.and_then(|()| match &self.current {
            Some((_, file)) if !self.write_through => file.sync_data(),
            _ => Ok(()),
        });
        self.unflushed.clear();
        result.map_err(|error| Error::io("flushing the log", error))
    }

    /// No segment behind the one that `end` lies in counts as made ready any more. Called with the buffer locked that
    /// ends there, so that every record in it keeps its segment. The number of that segment.
    pub fn withdraw_prepared(&mut self, end: Lsn) -> u64 {
        let current = self.end.max(end) / self.settings.segment_size;
        self.prepared_end.fetch_min((current + 1) * self.settings.segment_size, Ordering::AcqRel);
        self.mapped.retain(|segment| segment.number <= current);
        self.withdrawals += 1;
        current
    }

    /// Removes segments made ready ahead that do not count as such any more: a log that rests needs none. One that is
    /// wanted after all is made again.
    fn discard_prepared(&mut self) -> Result<()> {
        let preparing = self.preparing.clone();
        let _held = preparing.lock();
        let prepared = self.prepared_end.load(Ordering::Acquire) / self.settings.segment_size;
        let current = (self.end / self.settings.segment_size).max(prepared.saturating_sub(1));
        for number in current + 1..=self.last {
            let path = path_of(&self.settings.directory, number);
            if self.vfs.exists(&path) {
                self.vfs.remove(&path).map_err(|e| Error::on_file("removing", &path, e))?;
            }
        }
        self.last = current;
        Ok(())
    }

    /// Lets go of segments that end before `keep`, but for `spare` of them.
    pub fn discard_before(&mut self, keep: Lsn, spare: usize) -> Result<()> {
        let keep = keep / self.settings.segment_size;
        if keep.saturating_sub(self.first) > MANY_SEGMENTS {
            // A position so far on was not come to by writing: only names that are there are looked at.
            let directory = &self.settings.directory;
            let names = self.vfs.list_directory(directory);
            let names = names.map_err(|error| Error::on_file("listing", directory, error))?;
            let is_old = |path: &PathBuf| number_of(path).is_some_and(|number| number < keep);
            self.unneeded.extend(names.into_iter().filter(is_old));
            self.first = keep;
        }
        for number in self.first..keep {
            let path = path_of(&self.settings.directory, number);
            if self.vfs.exists(&path) {
                self.unneeded.push(path);
            }
        }
        self.first = self.first.max(keep);
        // Nobody will read them: a later flush need not wait for them.
        self.unflushed.retain(|(number, _)| *number >= keep);
        if spare == 0 {
            self.discard_prepared()?;
        }
        while self.unneeded.len() > spare {
            if let Some(path) = self.unneeded.pop() {
                self.vfs.remove(&path).map_err(|e| Error::on_file("removing", &path, e))?;
            }
        }
        Ok(())
    }
}
