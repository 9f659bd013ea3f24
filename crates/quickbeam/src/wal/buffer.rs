//! The log buffer: records that were appended but not yet written, and the mapped segments.
//!
//! Above: [`Log`](super::Log), which keeps the buffer under one lock: the critical section of
//! commits. Below: mapped segment files. A record whose segment is mapped is stored in the mapping
//! before the lock is released; this needs no system call. Other records wait in memory for the
//! group-commit leader.
//!
//! - BUFFER-1: bytes before `start` are written, or a leader is writing them. Bytes from `start` to
//!   `end` are stored or wait in memory.
//! - BUFFER-2: the mapping kept for a segment is a mapping of the file that has the segment's name.
//!   So no mapping of a withdrawn segment is kept.

use super::record::{RecordHeader, encode_header};
use super::segment::{MappedSegment, SegmentWriter};
use super::{HEADER, LogSettings, Lsn, RecordKind, SEGMENT_HEADER};

/// Bytes taken for writing, and the runs that they consist of (see [`LogBuffer`]).
pub type Taken = (Vec<u8>, Vec<(Lsn, usize)>);

/// Returns each non-empty run's LSN and bytes.
pub fn runs_of<'b>(
    bytes: &'b [u8],
    runs: &'b [(Lsn, usize)],
) -> impl Iterator<Item = (Lsn, &'b [u8])> {
    let ends = runs.iter().skip(1).map(|&(_, start)| start).chain([bytes.len()]);
    let run = |(&(lsn, start), end)| (lsn, bytes.get(start..end).unwrap_or_default());
    runs.iter().zip(ends).map(run).filter(|(_, run)| !run.is_empty())
}

/// Records that were appended and not yet taken for writing. Its lock is the critical section of
/// commits.
pub struct LogBuffer {
    bytes: Vec<u8>,
    /// LSN of each run, and its start in `bytes`. Each segment begins a new run.
    runs: Vec<(Lsn, usize)>,
    /// LSN of the first byte of `bytes`.
    pub start: Lsn,
    /// LSN of the next record.
    pub end: Lsn,
    segment_size: u64,
    incarnation: u32,
    /// Mappings of prepared segments.
    mapped: Vec<MappedSegment>,
    /// The segment whose successor was requested last.
    asked_behind: u64,
    /// Bytes stored in mappings and number of stores, for statistics.
    pub stored: (u64, u64),
}

/// The header fields of a record except its position and length.
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

    /// Bytes that wait in memory.
    pub fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the waiting bytes for a leader and leaves the leader's empty memory in their place.
    pub fn take(&mut self, taken: &mut Taken) {
        std::mem::swap(&mut self.bytes, &mut taken.0);
        std::mem::swap(&mut self.runs, &mut taken.1);
        self.start = self.end;
    }

    /// Appends a record. It goes to its segment's mapping if `stored` allows that and the segment
    /// is mapped; otherwise it waits in memory. Returns whether no bytes wait.
    pub fn append(&mut self, record: &Appended, payload: &[u8], stored: bool) -> bool {
        let total = (HEADER + payload.len()).next_multiple_of(8) as u64;
        invariant!(
            LOG_4,
            record.durable <= self.start,
            "a record at {} says that the log is durable up to {}",
            self.end,
            record.durable
        );
        let mut stored = stored && (self.bytes.is_empty() || self.store_waiting());
        if self.end.is_multiple_of(self.segment_size) {
            // The last record filled its segment to the last byte.
            self.begin_segment(0);
        }
        let left = self.segment_size - self.end % self.segment_size;
        if total > left {
            if left >= HEADER as u64 {
                let skip = Appended {
                    kind: RecordKind::Padding,
                    timestamp: 0,
                    transaction: 0,
                    payload_checksum: 0,
                    ..*record
                };
                stored = self.write_record(&skip, (left - HEADER as u64) as u32, &[], stored);
            }
            self.begin_segment(left);
        }
        stored = self.write_record(record, payload.len() as u32, payload, stored);
        self.end += total;
        if stored {
            self.start = self.end;
            self.runs.clear();
            self.stored.0 += total;
            self.stored.1 += 1;
        }
        let inside = self.end % self.segment_size;
        invariant!(
            LOG_1,
            inside.is_multiple_of(8) && (inside == 0 || inside > SEGMENT_HEADER),
            "the log ends at offset {inside} of a segment"
        );
        invariant!(
            BUFFER_1,
            (self.start == self.end) == self.bytes.is_empty() && self.start <= self.end,
            "{} bytes wait between {} and {}",
            self.bytes.len(),
            self.start,
            self.end
        );
        stored
    }

    /// Continues after the header of the next segment; `left` bytes of the current one stay unused.
    fn begin_segment(&mut self, left: u64) {
        self.end += left + SEGMENT_HEADER;
        self.runs.push((self.end, self.bytes.len()));
    }

    /// Encodes a record at the end of the log. Returns whether it was stored in the mapping.
    fn write_record(
        &mut self,
        record: &Appended,
        length: u32,
        payload: &[u8],
        stored: bool,
    ) -> bool {
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

    /// Stores the parts one after another in the segment's mapping. Returns false if the segment is
    /// not mapped or a store fails.
    fn store(&self, lsn: Lsn, parts: [&[u8]; 3]) -> bool {
        let (number, mut offset) = (lsn / self.segment_size, lsn % self.segment_size);
        let of_number = |segment: &&MappedSegment| segment.number == number;
        let Some(segment) = self.mapped.iter().find(of_number) else { return false };
        parts.iter().all(|part| {
            let at = offset;
            offset += part.len() as u64;
            part.is_empty() || segment.memory.store(part, at)
        })
    }

    /// Stores the waiting bytes in their segments' mappings. Returns false if a mapping is missing;
    /// then all of them keep waiting.
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

    /// Returns true once per segment, when it is half full.
    pub fn is_successor_wanted(&mut self) -> bool {
        let (number, inside) = (self.end / self.segment_size, self.end % self.segment_size);
        let wanted = inside > self.segment_size / 2 && self.asked_behind != number;
        if wanted {
            self.asked_behind = number;
        }
        wanted
    }

    /// Returns whether a store to a mapping is durable at once. All segments are on one medium.
    pub fn stores_durably(&self) -> bool {
        self.mapped.first().is_some_and(|segment| segment.memory.is_durable_as_stored())
    }

    /// Takes over the mappings of prepared segments from `writer`, and returns the mappings that
    /// are no longer needed. The caller drops these after releasing the lock, because unmapping
    /// takes time.
    #[must_use]
    pub fn exchange_mapped(&mut self, writer: &mut SegmentWriter) -> Vec<MappedSegment> {
        let current = self.end / self.segment_size;
        for segment in writer.take_mapped() {
            if self.mapped.iter().all(|other| other.number != segment.number) {
                self.mapped.push(segment);
            }
        }
        invariant!(
            BUFFER_2,
            self.mapped.iter().all(|segment| writer.has_prepared(segment.number)),
            "a mapping of a withdrawn segment is kept"
        );
        self.mapped.extract_if(.., |segment| segment.number < current).collect()
    }

    /// Returns the mappings of segments from `number` on, whose files are about to be removed.
    #[must_use]
    pub fn forget_mapped(&mut self, number: u64) -> Vec<MappedSegment> {
        self.mapped.extract_if(.., |segment| segment.number >= number).collect()
    }
}
