//! Segment files: preparation, writing, reuse and removal.
//!
//! Above: [`Log`](super::Log). Below: files, through the VFS.
//!
//! A segment is filled with zeros and flushed, with its length and name, before its first record,
//! so a commit's flush changes no metadata. A segment that no checkpoint needs any longer is
//! renamed and reused.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::failure::Failure;
use super::{LogSettings, Lsn};
use crate::sync::locks::Mutex;

use crate::error::{Damage, DamagedPlace, Error, IoFailure, Result};
use crate::failpoints::{Canary, planted};
use crate::vfs::{DIRECT_ALIGNMENT, File, MappedFile, OpenMode, Vfs};

/// Bytes at a segment's start that hold no records.
pub const SEGMENT_HEADER: u64 = 4096;
/// Bytes of the header that identify the segment.
const IDENTITY: usize = 44;
const MAGIC: &[u8; 8] = b"QBEAMLOG";
/// Format version of new segments, and the oldest version that is read.
const VERSION: u32 = 2;
const OLDEST_VERSION: u32 = 1;
/// Number of unneeded segments that a busy log keeps for reuse.
pub const SPARE_SEGMENTS: usize = 4;
/// More segments than a log has between two checkpoints.
const MANY_SEGMENTS: u64 = 1 << 16;

/// The content of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentIdentity {
    /// Identifier of the environment.
    pub environment: u64,
    /// The segment's number.
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

    /// Decodes a segment's header. Returns `None` if the bytes are not a valid header.
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

/// Returns the path of a segment.
pub fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:012}.log"))
}

/// Returns the number in a segment's file name.
pub fn number_of(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".log")?.parse().ok()
}

/// Makes the names in the log directory durable. A failure leaves their durability unknown, so the
/// log fails permanently.
fn flush_folder(vfs: &dyn Vfs, settings: &LogSettings, failure: &Failure) -> Result<()> {
    failure.check()?;
    vfs.sync_directory(&settings.directory).map_err(|source| {
        // Never `DiskFull`: a later flush would not make up for this one.
        let action = format!("flushing the folder {}", settings.directory.display());
        let error = Error::Io(Box::new(IoFailure { action, source }));
        failure.set(&error);
        error
    })
}

/// Prepares segment `number` for its first record, from the file `old` or from a new file.
pub fn prepare(
    vfs: &dyn Vfs,
    settings: &LogSettings,
    failure: &Failure,
    number: u64,
    old: Option<PathBuf>,
) -> Result<()> {
    let path = path_of(&settings.directory, number);
    if vfs.exists(&path) {
        // An earlier opening may have failed before it flushed the directory.
        return flush_folder(vfs, settings, failure);
    }
    let new = settings.directory.join(format!("{number:012}.new"));
    let on = |action: &'static str| {
        let new = new.clone();
        move |error| Error::on_file(action, &new, error)
    };
    if vfs.exists(&new) {
        // Left by an earlier attempt: its content after a failed flush is unknown.
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
        // After this write, a commit's flush changes no metadata.
        fill(&*file, settings.segment_size, 1 << 20).map_err(on("filling"))?;
    }
    let identity =
        SegmentIdentity { environment: settings.environment, number, size: settings.segment_size };
    file.write_at(&identity.encode(), 0).map_err(on("writing the header of"))?;
    file.sync_all().map_err(on("flushing"))?;
    if !reused && !settings.write_through {
        // Filling makes the operating system allocate its page cache here, in the background,
        // instead of at commits, where it takes half of a small write's time. The part size
        // matters: the page cache is slower when it was allocated in larger parts.
        fill(&*file, settings.segment_size, 64 << 10).map_err(on("filling"))?;
    }
    vfs.rename(&new, &path).map_err(on("renaming"))?;
    if planted(Canary::FolderNotFlushed) {
        return Ok(());
    }
    flush_folder(vfs, settings, failure)
}

/// The mapping of a prepared segment.
pub struct MappedSegment {
    /// The segment's number.
    pub number: u64,
    /// The mapped bytes of its file.
    pub memory: Box<dyn MappedFile>,
}

/// Maps segment `number`. Returns `None` if the medium cannot be mapped, or if a checkpoint has
/// released the segment since it was prepared.
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

/// A segment to prepare in the background.
pub struct Wanted {
    /// The segment's number.
    pub number: u64,
    /// A file to reuse for it.
    pub old: Option<PathBuf>,
    /// Number of withdrawals of prepared segments when the request was made.
    pub withdrawals: u64,
}

/// Writes zeros after a segment's header, `part` bytes at a time.
fn fill(file: &dyn File, size: u64, part: usize) -> std::io::Result<()> {
    let zeros = vec![0; part];
    let mut at = SEGMENT_HEADER;
    while at < size {
        // Every part except the first begins at a multiple of its size.
        let length = (part as u64 - at % part as u64).min(size - at);
        file.write_at(&zeros[..length as usize], at)?;
        at += length;
    }
    Ok(())
}

/// Writes records to segments in order.
pub struct SegmentWriter {
    vfs: Arc<dyn Vfs>,
    settings: LogSettings,
    failure: Arc<Failure>,
    /// The segment being written, if one is open.
    current: Option<(u64, Arc<dyn File>)>,
    /// Segments, with their numbers, that were written and left since the last flush.
    unflushed: Vec<(u64, Arc<dyn File>)>,
    write_through: bool,
    /// Aligned staging memory for direct writes, and the first bytes of the current block.
    staging: Vec<u8>,
    tail: Vec<u8>,
    /// Position of the next write.
    end: Lsn,
    /// A segment of an earlier opening that is known to exist durably.
    ensured: Option<u64>,
    /// The lowest and the highest number of an existing segment.
    first: u64,
    last: u64,
    /// Files of unneeded segments.
    unneeded: Vec<PathBuf>,
    /// Mappings of prepared segments, for the log buffer.
    mapped: Vec<MappedSegment>,
    /// How often prepared segments were withdrawn.
    withdrawals: u64,
    /// Every segment that begins before this LSN exists.
    pub prepared_end: Arc<AtomicU64>,
    /// Held while a segment is prepared, by a commit or in the background.
    pub preparing: Arc<Mutex<()>>,
}

impl SegmentWriter {
    /// Opens a writer that continues at `end`.
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

    /// Fails if the existing segments have another size or environment than the data file says:
    /// then the data file and the log do not belong together. No file is created with the wrong
    /// size.
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
        let detail = format!(
            "it is of environment {:016x} with segments of {} bytes; the data file says {environment:016x} and {size}",
            found.environment, found.size
        );
        let damage = match found.size == size {
            true => Damage::mismatch(environment, found.environment, detail),
            false => Damage::mismatch(size, found.size, detail),
        };
        Err(damage.at(path.display().to_string(), DamagedPlace::SegmentHeader))
    }

    /// Reads the first part of the block that the end lies in, because direct writes rewrite that
    /// block.
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
                // A truncated file ends within the padding of its last record.
                let there = file.length()?.saturating_sub(start).min(inside as u64) as usize;
                file.read_at(&mut tail[..there], start)?;
                Ok(tail)
            };
            self.tail = read().map_err(|error| Error::on_file("reading", &path, error))?;
        }
        Ok(())
    }

    /// Returns whether every write is durable when it returns.
    pub fn is_write_through(&self) -> bool {
        self.write_through
    }

    /// Returns the number of segment files.
    pub fn segments(&self) -> u64 {
        self.last + 1 - self.first + self.unneeded.len() as u64
    }

    /// Returns whether the next segment should be prepared.
    pub fn wants_next(&self) -> bool {
        self.next_to_prepare().is_some()
    }

    /// Returns the number of the segment to prepare in the background.
    fn next_to_prepare(&self) -> Option<u64> {
        let size = self.settings.segment_size;
        let (number, half) = (self.end / size, self.end % size > size / 2);
        (half && self.last <= number).then_some(number + 1)
    }

    /// Returns the segment to prepare in the background, with a file to reuse.
    pub fn take_next_to_prepare(&mut self) -> Option<Wanted> {
        let number = self.next_to_prepare()?;
        Some(Wanted { number, old: self.unneeded.pop(), withdrawals: self.withdrawals })
    }

    /// Returns the file of an unused request to the unneeded files.
    pub fn put_back(&mut self, wanted: Wanted) {
        self.unneeded.extend(wanted.old);
    }

    /// Records that segment `number` was prepared, if it still exists. Its mapping is used only if
    /// no prepared segment was withdrawn meanwhile: otherwise another file may have its name now.
    pub fn prepared_aside(&mut self, number: u64, mapped: Option<MappedSegment>, withdrawals: u64) {
        if self.vfs.exists(&path_of(&self.settings.directory, number)) {
            self.mapped.extend(mapped.filter(|_| withdrawals == self.withdrawals));
            self.prepared(number);
        }
    }

    /// Returns whether segment `number` exists and was not withdrawn.
    pub fn has_prepared(&self, number: u64) -> bool {
        number * self.settings.segment_size < self.prepared_end.load(Ordering::Acquire)
    }

    /// Takes the mappings of segments prepared since the last call.
    pub fn take_mapped(&mut self) -> Vec<MappedSegment> {
        std::mem::take(&mut self.mapped)
    }

    /// Records that segment `number` exists.
    fn prepared(&mut self, number: u64) {
        self.last = self.last.max(number);
        self.prepared_end.fetch_max((self.last + 1) * self.settings.segment_size, Ordering::AcqRel);
    }

    /// Makes sure that the segment of `lsn` exists durably.
    pub fn ensure(&mut self, lsn: Lsn) -> Result<()> {
        let number = lsn / self.settings.segment_size;
        if lsn < self.prepared_end.load(Ordering::Acquire) || Some(number) == self.ensured {
            return Ok(());
        }
        let path = path_of(&self.settings.directory, number);
        if self.vfs.exists(&path) {
            // Made in an earlier opening. It is not mapped before the first write.
            self.restore_length(&path)?;
            flush_folder(&*self.vfs, &self.settings, &self.failure)?;
        } else {
            self.prepare_through(lsn)?;
        }
        self.ensured = Some(number);
        Ok(())
    }

    /// Restores the length of a segment that was truncated after the log's end, perhaps by a copy.
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

    /// Prepares all segments up to the one that contains `lsn`.
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

    /// Prepares segment `number`, reusing an unneeded file if there is one.
    fn prepare(&mut self, number: u64) -> Result<()> {
        let there = self.vfs.exists(&path_of(&self.settings.directory, number));
        let old = if there { None } else { self.unneeded.pop() };
        prepare(&*self.vfs, &self.settings, &self.failure, number, old)?;
        let path = path_of(&self.settings.directory, number);
        // The first open finds out whether the medium supports direct writes.
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
                // Some file systems do not support it; a flush after each write has the same
                // effect.
                Err(_) => self.write_through = false,
            }
        }
        self.vfs.open(path, OpenMode::Write).map_err(|e| Error::on_file("opening", path, e))
    }

    /// Writes `bytes` at `lsn`, which follows the last write or begins a segment.
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

    /// Keeps the bytes of the block that the end now lies in.
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

    /// Records that every byte before `end` is in its segment, including bytes stored through
    /// mappings: the next flush must include their segments.
    pub fn note_stored(&mut self, end: Lsn) -> Result<()> {
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

    /// Makes all written bytes durable.
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

    /// Withdraws the prepared segments after the one that contains `end`, and returns the number of
    /// that one. The caller holds the lock of the buffer that ends there, so every record in it
    /// keeps its segment.
    pub fn withdraw_prepared(&mut self, end: Lsn) -> u64 {
        let current = self.end.max(end) / self.settings.segment_size;
        self.prepared_end.fetch_min((current + 1) * self.settings.segment_size, Ordering::AcqRel);
        self.mapped.retain(|segment| segment.number <= current);
        self.withdrawals += 1;
        current
    }

    /// Removes the withdrawn segments, since an idle log needs none. A segment that is needed later
    /// is prepared again.
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

    /// Releases the segments that end before `keep`, except `spare` of them.
    pub fn discard_before(&mut self, keep: Lsn, spare: usize) -> Result<()> {
        let keep = keep / self.settings.segment_size;
        if keep.saturating_sub(self.first) > MANY_SEGMENTS {
            // Writing alone cannot reach a position this far ahead: only existing files are
            // examined.
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
        // Released segments are never read, so no later flush needs to include them.
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
