//! The write-ahead log: what committed transactions did, in commit order.
//!
//! Above: commit and recovery. Below: segment files, through the seam.
//!
//! A commit is appended to the log buffer in the same short critical section that gives it its timestamp, so log order
//! is commit order. Whoever needs the log written or flushed first takes the *turn*, swaps the buffer out and writes
//! for everybody who has appended: group commit. The others wait for a turn's end ([`turns`]).
//!
//! - LOG-1: a log sequence number (LSN) is a byte position: segment number times segment size, plus offset. It only grows.
//! - LOG-2: records are written in LSN order; `written` and `durable` are LSNs up to which every byte is.
//! - LOG-3: after a failed write or flush nothing is acknowledged any more: [`Log::check`] fails for good.
//! - LOG-4: a record names the LSN that was durable when it was appended: a reader that finds a gap before that LSN
//!   knows it for damage, not for the end.
//!
//! Sources: Johnson et al., "Aether: A Scalable Approach to Logging" (2010) for the separation of append and flush.

mod buffer;
mod failure;
mod group_commit;
mod operations;
mod reader;
mod record;
mod redo;
mod segment;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sync::locks::{Mutex, MutexGuard};
use crossbeam_utils::CachePadded;

use crate::error::{Error, Result};
use crate::failpoints::{Canary, planted};
use crate::latency::Latencies;
use crate::vfs::{Event, Vfs};

pub use buffer::{Appended, LogBuffer};
use buffer::{Taken, runs_of};
use failure::Failure;
use group_commit::GroupCommit;
pub use operations::{Operation, decode_operations};
pub use reader::{LogReader, ReadRecord};
#[cfg(any(test, feature = "fuzzing"))]
pub use record::seal_record;
pub use record::{HEADER, RecordKind, decode, places};
pub use redo::Redo;
use segment::SegmentWriter;
pub use segment::{SEGMENT_HEADER, SegmentIdentity, number_of};

/// A position in the log.
pub type Lsn = u64;

/// Numbers for statistics.
#[derive(Default)]
pub struct LogCounters {
    /// Bytes that write calls wrote.
    pub bytes: AtomicU64,
    /// Write calls.
    pub writes: AtomicU64,
    /// Flushes to the device.
    pub flushes: AtomicU64,
    /// How long turns took that flushed.
    pub flush_latency: Latencies,
}

/// Bytes waiting from which on they are written in the background: enough for writes to be long, and so little that the
/// memory they pass through stays in the processor's cache.
const BACKGROUND_WRITE: usize = 256 << 10;

/// Where and how the log is kept.
#[derive(Clone)]
pub struct LogSettings {
    /// The folder of the segments.
    pub directory: PathBuf,
    /// Bytes in a segment.
    pub segment_size: u64,
    /// What every segment says of the environment it belongs to.
    pub environment: u64,
    /// Grows with every opening of the environment: tells records from older ones that were cut off.
    pub incarnation: u32,
    /// Bytes that may wait in memory.
    pub buffer: usize,
    /// Most commits will ask for a flush: write straight to the device where it can be done.
    pub write_through: bool,
}

/// The log of an environment.
pub struct Log {
    settings: LogSettings,
    vfs: Arc<dyn Vfs>,
    buffer: CachePadded<Mutex<LogBuffer>>,
    written: CachePadded<AtomicU64>,
    durable: CachePadded<AtomicU64>,
    turns: GroupCommit,
    writer: Mutex<SegmentWriter>,
    /// Everything before this LSN has its segment, with room on the device.
    prepared_end: Arc<AtomicU64>,
    /// Emptied memory of an earlier turn.
    spare: Mutex<Taken>,
    failure: Arc<Failure>,
    /// Something was written since the last discarding, and the segment is half full.
    next_wanted: AtomicBool,
    /// Woken when a segment should be prepared or the buffer written in the background.
    pub background: Arc<dyn Event>,
    /// Numbers for statistics.
    pub counters: LogCounters,
}

impl Log {
    /// A log that goes on at `end`; everything before is durable.
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
            turns: GroupCommit::new(&*vfs),
            spare: Mutex::default(),
            failure,
            next_wanted: AtomicBool::new(false),
            background: vfs.event(),
            counters: LogCounters::default(),
            settings,
            vfs,
        })
    }

    /// The buffer, locked: the critical section of commits.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, LogBuffer> {
        self.buffer.lock()
    }

    /// Everything before this LSN is durable.
    pub fn durable(&self) -> Lsn {
        self.durable.load(Ordering::Acquire)
    }

    /// Everything before this LSN has been given to the operating system.
    pub fn written(&self) -> Lsn {
        self.written.load(Ordering::Acquire)
    }

    /// Whether everything before `lsn` has been written, or with `flush` is durable.
    #[inline]
    pub fn has_reached(&self, lsn: Lsn, flush: bool) -> bool {
        lsn <= if flush { self.durable() } else { self.written() }
    }

    /// Largest payload of one record; more is written in pieces.
    pub fn piece_limit(&self) -> usize {
        (self.settings.segment_size as usize / 4).min(self.settings.buffer / 2).min(1 << 20)
    }

    /// An error once a write or flush has failed (LOG-3).
    #[inline]
    pub fn check(&self) -> Result<()> {
        if planted(Canary::FailureForgotten) { Ok(()) } else { self.failure.check() }
    }

    /// Refuses everything from now on; the first reason stays.
    pub fn fail(&self, reason: &Error) {
        self.failure.set(reason);
    }

    /// Appends a record and returns the LSN after it; [`Log::has_room_for`] has said that it can be. Where its segment is
    /// mapped it is written with that, and durable where there is no device below; else it waits for a turn.
    pub fn append(&self, buffer: &mut LogBuffer, record: &Appended, payload: &[u8]) -> Lsn {
        // What is on its way to its segment with a turn comes there first: everything before `written` has to be there.
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
        buffer.end
    }

    /// Has the next segment prepared in the background.
    fn want_next(&self) {
        self.next_wanted.store(true, Ordering::Release);
        self.background.notify();
    }

    /// Whether a record with `bytes` of payload has room in the buffer, and its segment. Asked with the buffer locked: a
    /// commit whose record could not be written for want of room must not become visible.
    #[inline]
    pub fn has_room_for(&self, buffer: &LogBuffer, bytes: usize) -> bool {
        buffer.waiting() + bytes <= self.settings.buffer
            && self.last_byte(buffer.end, bytes) < self.prepared_end.load(Ordering::Acquire)
    }

    /// Makes room and segments ready for a record with `bytes` of payload. A full device is an error here, and changes
    /// nothing.
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

    /// Where a record appended at `end` will have its last byte, or a little behind.
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

    /// Returns when everything before `lsn` has been given to the operating system.
    pub fn write_to(&self, lsn: Lsn) -> Result<()> {
        self.serve(lsn, false)
    }

    /// Returns when everything before `lsn` is durable.
    pub fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.serve(lsn, true)
    }

    fn serve(&self, lsn: Lsn, flush: bool) -> Result<()> {
        let served = || self.has_reached(lsn, flush);
        while !served() {
            self.check()?;
            if let Some(flush) = self.turns.enter(flush, served) {
                let done = self.flush_as_leader(flush);
                self.turns.leave();
                done?;
            }
        }
        Ok(())
    }

    /// Writes what is in the buffer, for everybody; the caller has the turn.
    fn flush_as_leader(&self, flush: bool) -> Result<()> {
        self.check()?;
        let mut writer = self.writer.lock();
        let mut taken = std::mem::take(&mut *self.spare.lock());
        let end = {
            let mut buffer = self.buffer.lock();
            buffer.take(&mut taken);
            buffer.end
        };
        // Only flushes are timed.
        let started = (flush || writer.is_write_through()).then(|| self.vfs.now());
        let done = self.write_taken(&mut writer, &taken, flush.then_some(end));
        let wrote = taken.0.len() as u64;
        taken.0.clear();
        taken.1.clear();
        *self.spare.lock() = taken;
        match done {
            Ok(durable) => {
                self.counters.bytes.fetch_add(wrote, Ordering::Relaxed);
                // What was appended since may be stored already.
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
                Err(error)
            }
        }
    }

    /// Writes what was taken, and flushes everything before `flush`. Whether what was written is durable now.
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
                writer.probe(end)?;
            }
            writer.flush()?;
        }
        Ok(flush.is_some() || through)
    }

    /// Prepares the next segment if the current one is half full; for the background thread.
    pub fn prepare_next(&self) -> Result<()> {
        if !self.next_wanted.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let done = self.prepare_successor();
        if done.is_err() {
            // Wanted as much as before: the next round tries again.
            self.next_wanted.store(true, Ordering::Release);
        }
        done
    }

    fn prepare_successor(&self) -> Result<()> {
        let (wanted, preparing, through) = {
            let mut writer = self.writer.lock();
            writer.probe(self.written())?;
            (writer.take_next_to_prepare(), writer.preparing.clone(), writer.is_write_through())
        };
        let Some(wanted) = wanted else { return Ok(()) };
        let held = preparing.lock();
        if wanted.number <= self.lock().end / self.settings.segment_size {
            // Commits could not wait for it and made it ready themselves. By now it may even have been let go of.
            drop(held);
            self.writer.lock().put_back(wanted);
            return Ok(());
        }
        let (vfs, settings) = (&*self.vfs, &self.settings);
        segment::prepare(vfs, settings, &self.failure, wanted.number, wanted.old)?;
        drop(held);
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

    /// Makes the segment that `lsn` lies in ready, if it is not. False, and no error, if the device is full.
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

    /// Lets go of segments that hold nothing from `keep` on; some stay for reuse where the log is `busy`.
    pub fn discard_before(&self, keep: Lsn, busy: bool) -> Result<()> {
        let mut writer = self.writer.lock();
        if busy {
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

    /// Reads every record back, from `from` to the end; how many there are. No checkpoint may complete meanwhile.
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
                return Err(Error::Corruption {
                    file: settings.directory.display().to_string(),
                    place: format!("log position {}", reader.position()),
                    detail: format!("no whole record, though the log goes on to {end}"),
                });
            }
            records += 1;
        }
        Ok(records)
    }

    /// Bytes that went to segments, and in how many calls or stores.
    pub fn traffic(&self) -> (u64, u64) {
        let (bytes, stores) = self.lock().stored;
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (bytes + counted(&self.counters.bytes), stores + counted(&self.counters.writes))
    }

    /// Bytes of segment files there are.
    pub fn file_bytes(&self) -> u64 {
        self.writer.lock().segments() * self.settings.segment_size
    }
}
