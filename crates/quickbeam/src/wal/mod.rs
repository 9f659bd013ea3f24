//! The write-ahead log: the operations of committed transactions, in commit order.
//!
//! Above: commit and recovery. Below: segment files, through the VFS.
//!
//! A commit is appended to the log buffer in the same short critical section that assigns its
//! timestamp, so log order is commit order. The first thread that needs the log written or flushed
//! becomes the leader of a group commit: it swaps the buffer out and writes it for all threads that
//! have appended. The others wait for the end of its round (`group_commit`).
//!
//! - LOG-1: a log sequence number (LSN) is a byte position: segment number times segment size, plus
//!   the offset in the segment. LSNs only grow.
//! - LOG-2: records are written in LSN order. Every byte before `written` is written; every byte
//!   before `durable` is durable.
//! - LOG-3: after a failed write or flush, no commit is acknowledged: [`Log::check`] fails
//!   permanently.
//! - LOG-4: a record names the LSN that was durable when it was appended. A reader that finds a gap
//!   before that LSN reports damage instead of the end of the log.
//!
//! Sources: Johnson et al., "Aether: A Scalable Approach to Logging" (2010) for the separation of
//! append and flush.

mod buffer;
mod copy;
mod failure;
mod group_commit;
mod operations;
mod reader;
mod record;
mod redo_buffer;
mod segment;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::locks::{Mutex, MutexGuard};
use crossbeam_utils::CachePadded;

use crate::error::{Damage, DamagedPlace, Error, Result};
use crate::failpoints::{Canary, planted};
use crate::latency::Latencies;
use crate::vfs::{Event, Vfs};

pub use buffer::{Appended, LogBuffer};
use buffer::{Taken, runs_of};
use failure::Failure;
use group_commit::GroupCommit;
pub use operations::{Operation, decode_operations, decode_parts};
pub use reader::{LogReader, ReadRecord};
#[cfg(any(test, feature = "fuzzing"))]
pub use record::seal_record;
pub use record::{HEADER, RecordKind, decode, places};
pub use redo_buffer::Redo;
use segment::SegmentWriter;
pub use segment::{SEGMENT_HEADER, SegmentIdentity, number_of, path_of};

/// What a wait for the log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogWait {
    /// It flushes the log.
    Flush,
    /// Nothing: other threads flush it.
    Others,
}

/// A log sequence number: a position in the log.
pub type Lsn = u64;

/// What happens to segments that recovery does not need any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusedSegments {
    /// Some of them stay for reuse.
    Keep,
    /// They are removed.
    Remove,
}

/// Counters for statistics.
#[derive(Default)]
pub struct LogCounters {
    /// Bytes written by write calls.
    pub bytes: AtomicU64,
    /// Write calls.
    pub writes: AtomicU64,
    /// Flushes to the device.
    pub flushes: AtomicU64,
    /// Duration of the group-commit rounds that flushed.
    pub flush_latency: Latencies,
}

/// Number of waiting bytes that wakes the background writer. Large enough for long writes, and
/// small enough that the buffer stays in the processor's cache.
const BACKGROUND_WRITE: usize = 256 << 10;

/// Location and parameters of the log.
#[derive(Clone)]
pub struct LogSettings {
    /// The directory of the segments.
    pub directory: PathBuf,
    /// Bytes in a segment.
    pub segment_size: u64,
    /// Identifier of the environment, stored in every segment.
    pub environment: u64,
    /// Number of this opening of the environment. It separates records from older records that
    /// recovery cut off.
    pub incarnation: u32,
    /// Bytes that may wait in memory.
    pub buffer: usize,
    /// Use direct, synchronous writes where the file system supports them, because most commits ask
    /// for a flush.
    pub write_through: bool,
}

/// The log of an environment.
pub struct Log {
    settings: LogSettings,
    vfs: Arc<dyn Vfs>,
    buffer: CachePadded<Mutex<LogBuffer>>,
    written: CachePadded<AtomicU64>,
    durable: CachePadded<AtomicU64>,
    group_commit: GroupCommit,
    writer: Mutex<SegmentWriter>,
    /// Every segment that begins before this LSN exists, with its space allocated.
    prepared_end: Arc<AtomicU64>,
    /// Empty memory of an earlier round, for reuse.
    spare: Mutex<Taken>,
    failure: Arc<Failure>,
    /// The segment is half full and its successor is to be prepared.
    next_wanted: AtomicBool,
    /// Wakes the background thread to prepare a segment or to write the buffer.
    pub background: Arc<dyn Event>,
    /// Counters for statistics.
    pub counters: LogCounters,
}

impl Log {
    /// Opens a log that continues at `end`; every byte before `end` is durable.
    pub fn open(vfs: Arc<dyn Vfs>, settings: LogSettings, end: Lsn) -> Result<Log> {
        let end = end.next_multiple_of(8).max(settings.segment_size + SEGMENT_HEADER);
        let buffer = LogBuffer::new(&settings, end);
        let failure = Arc::new(Failure::default());
        let writer = SegmentWriter::open(vfs.clone(), &settings, end, failure.clone())?;
        Ok(Log {
            prepared_end: writer.prepared_end.clone(),
            writer: Mutex::new(writer),
            buffer: CachePadded::new(Mutex::new(buffer)),
            written: CachePadded::new(AtomicU64::new(end)),
            durable: CachePadded::new(AtomicU64::new(end)),
            group_commit: GroupCommit::new(&*vfs),
            spare: Mutex::default(),
            failure,
            next_wanted: AtomicBool::new(false),
            background: vfs.event(),
            counters: LogCounters::default(),
            settings,
            vfs,
        })
    }

    /// Locks the buffer: the critical section of commits.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, LogBuffer> {
        self.buffer.lock()
    }

    /// Returns the LSN before which every byte is durable.
    pub fn durable(&self) -> Lsn {
        self.durable.load(Ordering::Acquire)
    }

    /// Returns the LSN before which every byte was given to the operating system.
    pub fn written(&self) -> Lsn {
        self.written.load(Ordering::Acquire)
    }

    /// Returns whether every byte before `lsn` is written, or durable if `flush` is set.
    #[inline]
    pub fn has_reached(&self, lsn: Lsn, flush: bool) -> bool {
        lsn <= if flush { self.durable() } else { self.written() }
    }

    /// Largest payload of one record in bytes. Larger transactions are written in fragments.
    pub fn fragment_limit(&self) -> usize {
        (self.settings.segment_size as usize / 4).min(self.settings.buffer / 2).min(1 << 20)
    }

    /// Fails if a write or a flush has failed (LOG-3).
    #[inline]
    pub fn check(&self) -> Result<()> {
        if planted(Canary::FailureForgotten) { Ok(()) } else { self.failure.check() }
    }

    /// Makes the log fail permanently. The first reason is kept.
    pub fn fail(&self, reason: &Error) {
        self.failure.set(reason);
    }

    /// Appends a record and returns the LSN after it. [`Log::has_room_for`] must have returned
    /// true. If the record's segment is mapped, the record is written at once, and durable if the
    /// medium is memory; otherwise it waits for a leader.
    pub fn append(&self, buffer: &mut LogBuffer, record: &Appended, payload: &[u8]) -> Lsn {
        // A record must not be stored while a leader still writes earlier bytes: every byte before
        // `written` must be in its segment.
        let before = buffer.start;
        let none_on_its_way = self.written() == before;
        if buffer.append(record, payload, none_on_its_way) {
            self.written.store(buffer.end, Ordering::Release);
            if buffer.stores_durably() && self.durable() == before {
                self.durable.store(buffer.end, Ordering::Release);
            }
            if buffer.is_successor_wanted() {
                self.want_next();
            }
        } else if buffer.waiting() > BACKGROUND_WRITE.min(self.settings.buffer / 2) {
            self.background.notify();
        }
        invariant!(
            LOG_2,
            self.is_in_order(),
            "the log is durable up to {} and written up to {}",
            self.durable(),
            self.written()
        );
        buffer.end
    }

    /// Returns whether no byte is durable that is not written.
    fn is_in_order(&self) -> bool {
        // In this order: both only grow.
        let durable = self.durable();
        durable <= self.written()
    }

    /// Requests the next segment from the background thread.
    fn want_next(&self) {
        self.next_wanted.store(true, Ordering::Release);
        self.background.notify();
    }

    /// Returns whether the buffer and the segments have space for a record with `bytes` of payload.
    /// The caller holds the buffer's lock: a commit must not become visible if its record cannot be
    /// written.
    #[inline]
    pub fn has_room_for(&self, buffer: &LogBuffer, bytes: usize) -> bool {
        buffer.waiting() + bytes <= self.settings.buffer
            && self.last_byte(buffer.end, bytes) < self.prepared_end.load(Ordering::Acquire)
    }

    /// Prepares buffer space and segments for a record with `bytes` of payload. Fails, changing
    /// nothing, if the device is full.
    #[cold]
    pub fn make_room_for(&self, bytes: usize) -> Result<()> {
        let (waiting, end) = {
            let buffer = self.buffer.lock();
            (buffer.waiting(), buffer.end)
        };
        if waiting + bytes > self.settings.buffer {
            self.write_to(end)?;
        }
        let mut writer = self.writer.lock();
        writer.prepare_through(self.last_byte(end, bytes))?;
        let unneeded = self.buffer.lock().exchange_mapped(&mut writer);
        drop((writer, unneeded));
        Ok(())
    }

    /// Returns an LSN at or slightly after the last byte of a record appended at `end`.
    fn last_byte(&self, end: Lsn, bytes: usize) -> Lsn {
        let size = self.settings.segment_size;
        let total = (HEADER + bytes).next_multiple_of(8) as u64;
        let end = if end.is_multiple_of(size) { end + SEGMENT_HEADER } else { end };
        if end % size + total > size {
            (end / size + 1) * size + SEGMENT_HEADER + total
        } else {
            end + total - 1
        }
    }

    /// Waits until every byte before `lsn` was given to the operating system.
    pub fn write_to(&self, lsn: Lsn) -> Result<()> {
        self.wait_until_reached(lsn, LogWait::Others)
    }

    /// Waits until every byte before `lsn` is durable.
    pub fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.wait_until_reached(lsn, LogWait::Flush)
    }

    fn wait_until_reached(&self, lsn: Lsn, wait: LogWait) -> Result<()> {
        let flush = wait == LogWait::Flush;
        let served = || self.has_reached(lsn, flush);
        while !served() {
            self.check()?;
            if let Some(flush) = self.group_commit.enter(flush, served) {
                let done = self.flush_as_leader(flush);
                self.group_commit.leave();
                done?;
            }
        }
        Ok(())
    }

    /// Writes the buffer for all threads. The caller is the leader.
    fn flush_as_leader(&self, flush: bool) -> Result<()> {
        self.check()?;
        let mut writer = self.writer.lock();
        let mut taken = std::mem::take(&mut *self.spare.lock());
        let end = {
            let mut buffer = self.buffer.lock();
            buffer.take(&mut taken);
            buffer.end
        };
        // Only rounds that flush are timed.
        let started = (flush || writer.is_write_through()).then(|| self.vfs.now());
        let done = self.write_taken(&mut writer, &taken, flush.then_some(end));
        let wrote = taken.0.len() as u64;
        taken.0.clear();
        taken.1.clear();
        *self.spare.lock() = taken;
        match done {
            Ok(durable) => {
                self.counters.bytes.fetch_add(wrote, Ordering::Relaxed);
                // Later records may be stored in mappings already.
                self.written.fetch_max(end, Ordering::AcqRel);
                if durable {
                    if let Some(started) = started {
                        let took = self.vfs.now().saturating_sub(started);
                        self.counters.flush_latency.add(took);
                    }
                    self.durable.fetch_max(end, Ordering::AcqRel);
                }
                if wrote > 0 && writer.wants_next() {
                    self.want_next();
                }
                Ok(())
            }
            Err(error) => {
                self.fail(&error);
                invariant!(LOG_3, self.failure.check().is_err(), "a failed write is forgotten");
                Err(error)
            }
        }
    }

    /// Writes the taken bytes, and flushes every byte before `flush`. Returns whether the written
    /// bytes are durable.
    fn write_taken(
        &self,
        writer: &mut SegmentWriter,
        (bytes, runs): &Taken,
        flush: Option<Lsn>,
    ) -> Result<bool> {
        for (lsn, run) in runs_of(bytes, runs) {
            writer.write(lsn, run)?;
            self.counters.writes.fetch_add(1, Ordering::Relaxed);
        }
        let through = writer.is_write_through();
        if flush.is_some() || through {
            self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(end) = flush {
            if !planted(Canary::StoredNotFlushed) {
                writer.note_stored(end)?;
            }
            writer.flush()?;
        }
        Ok(flush.is_some() || through)
    }

    /// Prepares the next segment if the current one is half full. Called by the background thread.
    pub fn prepare_next(&self) -> Result<()> {
        if !self.next_wanted.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let done = self.prepare_successor();
        if done.is_err() {
            // The request stays: the next round tries again.
            self.next_wanted.store(true, Ordering::Release);
        }
        done
    }

    fn prepare_successor(&self) -> Result<()> {
        let (wanted, preparing, through) = {
            let mut writer = self.writer.lock();
            writer.note_stored(self.written())?;
            (writer.take_next_to_prepare(), writer.preparing.clone(), writer.is_write_through())
        };
        let Some(wanted) = wanted else { return Ok(()) };
        let preparing_lock = preparing.lock();
        if wanted.number <= self.lock().end / self.settings.segment_size {
            // Commits needed the segment earlier and prepared it themselves. A checkpoint may even
            // have released it since.
            drop(preparing_lock);
            self.writer.lock().put_back(wanted);
            return Ok(());
        }
        let (vfs, settings) = (&*self.vfs, &self.settings);
        segment::prepare(vfs, settings, &self.failure, wanted.number, wanted.old)?;
        drop(preparing_lock);
        let mapped = match through {
            true => None,
            false => segment::map(vfs, settings, wanted.number)?,
        };
        let mut writer = self.writer.lock();
        writer.prepared_aside(wanted.number, mapped, wanted.withdrawals);
        let unneeded = self.lock().exchange_mapped(&mut writer);
        drop((writer, unneeded));
        Ok(())
    }

    /// Prepares the segment of `lsn` if it does not exist. Returns false if the device is full.
    pub fn ensure_segment(&self, lsn: Lsn) -> Result<bool> {
        let mut writer = self.writer.lock();
        let ensured = match writer.ensure(lsn) {
            Err(Error::DiskFull { .. }) => false,
            ensured => ensured.map(|()| true)?,
        };
        let unneeded = self.buffer.lock().exchange_mapped(&mut writer);
        drop((writer, unneeded));
        Ok(ensured)
    }

    /// Releases the segments that end before `keep`.
    pub fn discard_before(&self, keep: Lsn, unused: UnusedSegments) -> Result<()> {
        let mut writer = self.writer.lock();
        if unused == UnusedSegments::Keep {
            return writer.discard_before(keep, segment::SPARE_SEGMENTS);
        }
        let forgotten = {
            let mut buffer = self.lock();
            let current = writer.withdraw_prepared(buffer.end);
            buffer.forget_mapped(current + 1)
        };
        drop(forgotten);
        writer.discard_before(keep, 0)
    }

    /// Reads every record from `from` to the end and returns their number. No checkpoint may
    /// complete meanwhile.
    pub fn read_back(&self, from: Lsn) -> Result<u64> {
        let end = self.lock().end;
        self.write_to(end)?;
        let settings = &self.settings;
        let mut reader = LogReader::new(
            self.vfs.clone(),
            settings.directory.clone(),
            settings.environment,
            settings.segment_size,
            from,
            settings.incarnation,
        );
        let mut records = 0;
        while reader.position() < end {
            if reader.next()?.is_none() {
                let position = reader.position();
                let detail = format!("no whole record, though the log goes on to {end}");
                let place = DamagedPlace::LogPosition(position);
                return Err(Damage::mismatch(end, position, detail)
                    .at(settings.directory.display().to_string(), place));
            }
            records += 1;
        }
        Ok(records)
    }

    /// Returns the bytes that went to segments, and the number of write calls and stores.
    pub fn traffic(&self) -> (u64, u64) {
        let (bytes, stores) = self.lock().stored;
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (bytes + counted(&self.counters.bytes), stores + counted(&self.counters.writes))
    }

    /// Returns the total size of the segment files in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.writer.lock().segments() * self.settings.segment_size
    }
}
