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

mod operations;
mod reader;
mod record;
mod redo;
mod segment;
mod turns;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::world::locks::{Mutex, MutexGuard};
use crossbeam_utils::CachePadded;

use crate::error::{Error, Result};
use crate::latency::Latencies;
use crate::world::hooks::{Canary, planted};
use crate::world::{Event, World};

pub use operations::{Operation, decode_operations};
pub use reader::{LogReader, ReadRecord};
#[cfg(any(test, feature = "fuzzing"))]
pub use record::seal_record;
pub use record::{HEADER, RecordKind, decode, places};
use record::{RecordHeader, encode_header};
pub use redo::Redo;
use segment::SegmentWriter;
pub use segment::{SEGMENT_HEADER, SegmentIdentity, number_of};
use turns::Turns;

/// A position in the log.
pub type Lsn = u64;

/// Numbers for statistics.
#[derive(Default)]
pub struct LogCounters {
    /// Bytes written to segments.
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

/// Bytes taken to be written, and the runs that they are of (see [`LogBuffer`]).
type Taken = (Vec<u8>, Vec<(Lsn, usize)>);

/// What was appended and not yet taken to be written. Holding it locked is the commit's critical section.
pub struct LogBuffer {
    bytes: Vec<u8>,
    /// Where runs of `bytes` go: LSN and start in `bytes`. A new run begins with each segment.
    runs: Vec<(Lsn, usize)>,
    /// Where the next record goes.
    pub end: Lsn,
    segment_size: u64,
    incarnation: u32,
}

/// The log of an environment.
pub struct Log {
    settings: LogSettings,
    world: Arc<dyn World>,
    buffer: CachePadded<Mutex<LogBuffer>>,
    written: CachePadded<AtomicU64>,
    durable: CachePadded<AtomicU64>,
    turns: Turns,
    writer: Mutex<SegmentWriter>,
    /// Everything before this LSN has its segment, with room on the device.
    prepared_end: Arc<AtomicU64>,
    /// Emptied memory of an earlier turn.
    spare: Mutex<Taken>,
    failure: Mutex<Option<String>>,
    failed: AtomicBool,
    /// Something was written since the last discarding, and the segment is half full.
    next_wanted: AtomicBool,
    /// Woken when a segment should be prepared or the buffer written in the background.
    pub background: Arc<dyn Event>,
    /// Numbers for statistics.
    pub counters: LogCounters,
}

impl LogBuffer {
    /// Bytes waiting.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a record and returns the LSN after it. `durable` is what [`Log::durable`] said before.
    pub fn append(
        &mut self,
        kind: RecordKind,
        timestamp: u64,
        transaction: u64,
        payload: &[u8],
        payload_checksum: u32,
        durable: Lsn,
    ) -> Lsn {
        let total = (HEADER + payload.len()).next_multiple_of(8) as u64;
        if self.end.is_multiple_of(self.segment_size) {
            // The record before filled its segment to the last byte.
            self.end += SEGMENT_HEADER;
            self.runs.push((self.end, self.bytes.len()));
        }
        let left = self.segment_size - self.end % self.segment_size;
        if total > left {
            if left >= HEADER as u64 {
                let length = (left - HEADER as u64) as u32;
                self.push_header(RecordKind::Skip, length, 0, 0, 0, durable);
            }
            self.end += left + SEGMENT_HEADER;
            self.runs.push((self.end, self.bytes.len()));
        } else if self.runs.is_empty() {
            self.runs.push((self.end, self.bytes.len()));
        }
        let length = payload.len() as u32;
        self.push_header(kind, length, timestamp, transaction, payload_checksum, durable);
        self.bytes.extend_from_slice(payload);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.end += total;
        self.end
    }

    fn push_header(
        &mut self,
        kind: RecordKind,
        length: u32,
        timestamp: u64,
        transaction: u64,
        payload_checksum: u32,
        durable: Lsn,
    ) {
        if self.runs.is_empty() {
            self.runs.push((self.end, self.bytes.len()));
        }
        let header = RecordHeader {
            kind,
            incarnation: self.incarnation,
            length,
            payload_checksum,
            lsn: self.end,
            timestamp,
            transaction,
            durable,
        };
        self.bytes.extend_from_slice(&encode_header(&header));
    }
}

impl Log {
    /// A log that goes on at `end`; everything before is durable.
    pub fn open(world: Arc<dyn World>, settings: LogSettings, end: Lsn) -> Result<Log> {
        let end = end.next_multiple_of(8).max(settings.segment_size + SEGMENT_HEADER);
        let buffer = LogBuffer {
            bytes: Vec::new(),
            runs: Vec::new(),
            end,
            segment_size: settings.segment_size,
            incarnation: settings.incarnation,
        };
        let writer = SegmentWriter::open(world.clone(), &settings, end)?;
        Ok(Log {
            prepared_end: writer.prepared_end.clone(),
            writer: Mutex::new(writer),
            buffer: CachePadded::new(Mutex::new(buffer)),
            written: CachePadded::new(AtomicU64::new(end)),
            durable: CachePadded::new(AtomicU64::new(end)),
            turns: Turns::new(&*world),
            spare: Mutex::default(),
            failure: Mutex::default(),
            failed: AtomicBool::new(false),
            next_wanted: AtomicBool::new(false),
            background: world.event(),
            counters: LogCounters::default(),
            settings,
            world,
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

    /// Largest payload of one record; more is written in pieces.
    pub fn piece_limit(&self) -> usize {
        (self.settings.segment_size as usize / 4).min(self.settings.buffer / 2).min(1 << 20)
    }

    /// An error once a write or flush has failed (LOG-3).
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Acquire) && !planted(Canary::FailureForgotten) {
            return Err(self.failure());
        }
        Ok(())
    }

    #[cold]
    fn failure(&self) -> Error {
        let reason = self.failure.lock().clone().unwrap_or_default();
        Error::Failed { reason }
    }

    /// Refuses everything from now on; the first reason stays.
    pub fn fail(&self, reason: &Error) {
        self.failure.lock().get_or_insert_with(|| reason.to_string());
        self.failed.store(true, Ordering::Release);
    }

    /// Makes room in the buffer for `bytes`, writing it out when it is full.
    #[inline]
    pub fn make_room(&self, bytes: usize) -> Result<()> {
        let waiting = self.buffer.lock().waiting();
        if waiting > BACKGROUND_WRITE.min(self.settings.buffer / 2) {
            self.background.notify();
        }
        if waiting + bytes <= self.settings.buffer {
            return Ok(());
        }
        let end = self.buffer.lock().end;
        self.write_to(end)
    }

    /// Whether a record with `bytes` of payload has its segment. Asked with the buffer locked: a commit whose record
    /// could not be written for want of room must not become visible.
    #[inline]
    pub fn has_segment_for(&self, buffer: &LogBuffer, bytes: usize) -> bool {
        self.last_byte(buffer.end, bytes) < self.prepared_end.load(Ordering::Acquire)
    }

    /// Makes segments ready for a record with `bytes` of payload. A full device is an error here, and changes nothing.
    #[cold]
    pub fn prepare_for(&self, bytes: usize) -> Result<()> {
        let end = self.buffer.lock().end;
        self.writer.lock().prepare_through(self.last_byte(end, bytes))
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
        let served = || {
            let reached = if flush { self.durable() } else { self.written() };
            reached >= lsn
        };
        while !served() {
            self.check()?;
            if let Some(flush) = self.turns.enter(flush, served) {
                let done = self.take_turn(flush);
                self.turns.leave();
                done?;
            }
        }
        Ok(())
    }

    /// Writes what is in the buffer, for everybody; the caller has the turn.
    fn take_turn(&self, flush: bool) -> Result<()> {
        self.check()?;
        let mut writer = self.writer.lock();
        let (mut bytes, mut runs) = std::mem::take(&mut *self.spare.lock());
        let end = {
            let mut buffer = self.buffer.lock();
            std::mem::swap(&mut buffer.bytes, &mut bytes);
            std::mem::swap(&mut buffer.runs, &mut runs);
            buffer.end
        };
        // Only flushes are timed.
        let started = (flush || writer.is_write_through()).then(|| self.world.now());
        let done = self.write_runs(&mut writer, &bytes, &runs, flush);
        let wrote = bytes.len() as u64;
        bytes.clear();
        runs.clear();
        *self.spare.lock() = (bytes, runs);
        match done {
            Ok(durable) => {
                self.counters.bytes.fetch_add(wrote, Ordering::Relaxed);
                self.written.store(end, Ordering::Release);
                if durable {
                    if let Some(started) = started {
                        let took = self.world.now().saturating_sub(started);
                        self.counters.flush_latency.add(took);
                    }
                    self.durable.store(end, Ordering::Release);
                }
                if wrote > 0 && writer.wants_next() {
                    self.next_wanted.store(true, Ordering::Release);
                    self.background.notify();
                }
                Ok(())
            }
            Err(error) => {
                self.fail(&error);
                Err(error)
            }
        }
    }

    fn write_runs(
        &self,
        writer: &mut SegmentWriter,
        bytes: &[u8],
        runs: &[(Lsn, usize)],
        flush: bool,
    ) -> Result<bool> {
        for (i, &(lsn, start)) in runs.iter().enumerate() {
            let end = runs.get(i + 1).map_or(bytes.len(), |&(_, start)| start);
            if let Some(run) = bytes.get(start..end).filter(|run| !run.is_empty()) {
                writer.write(lsn, run)?;
                self.counters.writes.fetch_add(1, Ordering::Relaxed);
            }
        }
        let through = writer.is_write_through();
        if flush || through {
            self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        }
        if flush {
            writer.flush()?;
        }
        Ok(flush || through)
    }

    /// Prepares the next segment if the current one is half full; for the background thread.
    pub fn prepare_next(&self) -> Result<()> {
        if !self.next_wanted.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let (wanted, preparing) = {
            let mut writer = self.writer.lock();
            (writer.take_next_to_prepare(), writer.preparing.clone())
        };
        let Some((number, old)) = wanted else { return Ok(()) };
        let held = preparing.lock();
        segment::prepare(&*self.world, &self.settings, number, old)?;
        drop(held);
        self.writer.lock().prepared_aside(number);
        Ok(())
    }

    /// Lets go of segments that hold nothing from `keep` on; some stay for reuse where the log is `busy`.
    pub fn discard_before(&self, keep: Lsn, busy: bool) -> Result<()> {
        let mut writer = self.writer.lock();
        if busy {
            return writer.discard_before(keep, segment::SPARE_SEGMENTS);
        }
        writer.withdraw_prepared(self.lock().end);
        writer.discard_before(keep, 0)
    }

    /// Reads every record back, from `from` to the end; how many there are. No checkpoint may complete meanwhile.
    pub fn read_back(&self, from: Lsn) -> Result<u64> {
        let end = self.lock().end;
        self.write_to(end)?;
        let settings = &self.settings;
        let mut reader = LogReader::new(
            self.world.clone(),
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

    /// Bytes of segment files there are.
    pub fn file_bytes(&self) -> u64 {
        self.writer.lock().segments() * self.settings.segment_size
    }
}
