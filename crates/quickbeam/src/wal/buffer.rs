//! What was appended to the log and is not written yet, and the memory of the segments it goes to.
//!
//! Above: [`Log`](super::Log), which keeps it under one lock: the commit's critical section. Where the segment that a
//! record belongs to is mapped, the record is stored there before the lock is given back: then it is written, and no
//! call of the operating system was needed. Where it is not, bytes wait here for a turn.
//!
//! - BUFFER-1: what is before `start` is written, or on its way with a turn; what is from there to `end` is stored or waits.
//! - BUFFER-2: the memory kept for a segment is that of the file which has the segment's name.

use super::record::{RecordHeader, encode_header};
use super::segment::{MappedSegment, SegmentWriter};
use super::{HEADER, LogSettings, Lsn, RecordKind, SEGMENT_HEADER};

/// Bytes taken to be written, and the runs that they are of (see [`LogBuffer`]).
pub type Taken = (Vec<u8>, Vec<(Lsn, usize)>);

/// The bytes of each run that has some, and where it goes.
pub fn runs_of<'b>(
    bytes: &'b [u8],
    runs: &'b [(Lsn, usize)],
) -> impl Iterator<Item = (Lsn, &'b [u8])> {
    let ends = runs.iter().skip(1).map(|&(_, start)| start).chain([bytes.len()]);
    let run = |(&(lsn, start), end)| (lsn, bytes.get(start..end).unwrap_or_default());
    runs.iter().zip(ends).map(run).filter(|(_, run)| !run.is_empty())
}

/// What was appended and not yet taken to be written. Holding it locked is the commit's critical section.
pub struct LogBuffer {
    bytes: Vec<u8>,
    /// Where runs of `bytes` go: LSN and start in `bytes`. A new run begins with each segment.
    runs: Vec<(Lsn, usize)>,
    /// Where `bytes` begins.
    pub start: Lsn,
    /// Where the next record goes.
    pub end: Lsn,
    segment_size: u64,
    incarnation: u32,
    /// Memory of segments made ready.
    mapped: Vec<MappedSegment>,
    /// The segment whose successor was asked for.
    asked_behind: u64,
    /// Bytes stored, and how often, for statistics.
    pub stored: (u64, u64),
}

/// What a record says besides its payload, its place and its length.
pub struct Appended {
    pub kind: RecordKind,
    pub timestamp: u64,
    pub transaction: u64,
    pub payload_checksum: u32,
    pub durable: Lsn,
}

impl LogBuffer {
    pub fn new(settings: &LogSettings, end: Lsn) -> LogBuffer {
        LogBuffer {
            bytes: Vec::new(),
            runs: Vec::new(),
            start: end,
            end,
            segment_size: settings.segment_size,
            incarnation: settings.incarnation,
            mapped: Vec::new(),
            asked_behind: 0,
            stored: (0, 0),
        }
    }

    /// Bytes waiting.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Takes what waits, for a turn, and leaves empty memory in its place.
    pub fn take(&mut self, taken: &mut Taken) {
        std::mem::swap(&mut self.bytes, &mut taken.0);
        std::mem::swap(&mut self.runs, &mut taken.1);
        self.start = self.end;
    }

    /// Lays a record out behind the others: in its segment's memory, if it may be `stored` there and that is mapped; else it waits.
    /// Whether nothing waits now.
    pub fn append(&mut self, record: &Appended, payload: &[u8], stored: bool) -> bool {
        let total = (HEADER + payload.len()).next_multiple_of(8) as u64;
        let mut stored = stored && (self.bytes.is_empty() || self.store_waiting());
        if self.end.is_multiple_of(self.segment_size) {
            // The record before filled its segment to the last byte.
            self.begin_segment(0);
        }
        let left = self.segment_size - self.end % self.segment_size;
        if total > left {
            if left >= HEADER as u64 {
                let skip = Appended {
                    kind: RecordKind::Skip,
                    timestamp: 0,
                    transaction: 0,
                    payload_checksum: 0,
                    ..*record
                };
                stored = self.lay_out(&skip, (left - HEADER as u64) as u32, &[], stored);
            }
            self.begin_segment(left);
        }
        stored = self.lay_out(record, payload.len() as u32, payload, stored);
        self.end += total;
        if stored {
            self.start = self.end;
            self.runs.clear();
            self.stored.0 += total;
            self.stored.1 += 1;
        }
        stored
    }

    /// Goes on behind the header of the next segment, `left` bytes on.
    fn begin_segment(&mut self, left: u64) {
        self.end += left + SEGMENT_HEADER;
        self.runs.push((self.end, self.bytes.len()));
    }

    /// Puts a record where the log ends; whether it was stored.
    fn lay_out(&mut self, record: &Appended, length: u32, payload: &[u8], stored: bool) -> bool {
        let header = encode_header(&RecordHeader {
            kind: record.kind,
            incarnation: self.incarnation,
            length,
            payload_checksum: record.payload_checksum,
            lsn: self.end,
            timestamp: record.timestamp,
            transaction: record.transaction,
            durable: record.durable,
        });
        let (words, rest) = payload.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let last = if rest.is_empty() { &[][..] } else { &last[..] };
        if stored && self.store(self.end, [&header, words.as_flattened(), last]) {
            return true;
        }
        if self.runs.is_empty() {
            self.runs.push((self.end, self.bytes.len()));
        }
        for part in [&header, words.as_flattened(), last] {
            self.bytes.extend_from_slice(part);
        }
        false
    }

    /// Stores parts, one behind the other, in the memory of the segment; false if that is not there.
    fn store(&mut self, lsn: Lsn, parts: [&[u8]; 3]) -> bool {
        let (number, mut offset) = (lsn / self.segment_size, lsn % self.segment_size);
        let of_number = |segment: &&mut MappedSegment| segment.number == number;
        let Some(segment) = self.mapped.iter_mut().find(of_number) else { return false };
        parts.iter().all(|part| {
            let at = offset;
            offset += part.len() as u64;
            part.is_empty() || segment.memory.store(part, at)
        })
    }

    /// Stores what waits in its segments' memory; false, and all of it waits on, if that is not there.
    fn store_waiting(&mut self) -> bool {
        let (bytes, runs) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.runs));
        let is_stored = runs_of(&bytes, &runs).all(|(lsn, run)| self.store(lsn, [run, &[], &[]]));
        (self.bytes, self.runs) = (bytes, runs);
        if is_stored {
            self.stored.0 += self.bytes.len() as u64;
            self.stored.1 += 1;
            self.bytes.clear();
            self.runs.clear();
        }
        is_stored
    }

    /// Whether the segment is half full for the first time that this is asked.
    pub fn is_successor_wanted(&mut self) -> bool {
        let (number, inside) = (self.end / self.segment_size, self.end % self.segment_size);
        let wanted = inside > self.segment_size / 2 && self.asked_behind != number;
        if wanted {
            self.asked_behind = number;
        }
        wanted
    }

    /// Whether what is stored is durable with that. Segments are all on one medium.
    pub fn stores_durably(&self) -> bool {
        self.mapped.first().is_some_and(|segment| segment.memory.is_durable_as_stored())
    }

    /// Takes over what memory `writer` has of segments made ready, and gives back what is needed no more: letting go of it
    /// takes time, and is not for who holds the lock.
    #[must_use]
    pub fn exchange_mapped(&mut self, writer: &mut SegmentWriter) -> Vec<MappedSegment> {
        let current = self.end / self.segment_size;
        for segment in writer.take_mapped() {
            if self.mapped.iter().all(|other| other.number != segment.number) {
                self.mapped.push(segment);
            }
        }
        self.mapped.extract_if(.., |segment| segment.number < current).collect()
    }

    /// Gives back the memory of segments from `number` on: they have lost their files.
    #[must_use]
    pub fn forget_mapped(&mut self, number: u64) -> Vec<MappedSegment> {
        self.mapped.extract_if(.., |segment| segment.number >= number).collect()
    }
}
