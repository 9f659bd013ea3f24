//! Reads the log from a position to its end, and distinguishes the end from damage.
//!
//! Above: recovery, salvage and verification. Below: segment files, through the VFS.
//!
//! The log ends at the first position without a whole record of the expected LSN and incarnation.
//! If a later record names a durable LSN beyond that position (LOG-4), the position is damaged.

use std::path::PathBuf;
use std::sync::Arc;

use super::Lsn;
use super::record::{HEADER, RecordKind, decode, payload_length, places};
use super::segment::{SEGMENT_HEADER, SegmentIdentity, number_of, path_of};
use crate::error::{Damage, DamagedPlace, Error, Result};
use crate::vfs::{OpenMode, Vfs};

/// A record as recovery reads it.
pub struct ReadRecord {
    /// The record's position.
    pub lsn: Lsn,
    /// The record's kind.
    pub kind: RecordKind,
    /// The commit timestamp.
    pub timestamp: u64,
    /// The transaction that fragments belong to.
    pub transaction: u64,
    /// The incarnation that wrote the record.
    pub incarnation: u32,
    /// The encoded operations.
    pub payload: Vec<u8>,
}

/// Reads records in order.
pub struct LogReader {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    environment: u64,
    segment_size: u64,
    /// The number and bytes of the segment in memory.
    segment: Option<(u64, Vec<u8>)>,
    /// Position of the next record.
    at: Lsn,
    /// Number of the first segment, if it must exist.
    expected: Option<u64>,
    /// The highest incarnation seen.
    incarnation: u32,
}

impl LogReader {
    /// Creates a reader that begins at `start`. Records of incarnations before `incarnation` are
    /// not part of the log.
    pub fn new(
        vfs: Arc<dyn Vfs>,
        directory: PathBuf,
        environment: u64,
        segment_size: u64,
        start: Lsn,
        incarnation: u32,
    ) -> LogReader {
        LogReader {
            vfs,
            directory,
            environment,
            segment_size,
            segment: None,
            at: start,
            expected: None,
            incarnation,
        }
    }

    /// Requires that the first segment exists: the log cannot end before it.
    pub fn expect_first(&mut self) {
        self.expected = Some(self.at / self.segment_size);
    }

    /// Returns the position after the last whole record.
    pub fn position(&self) -> Lsn {
        self.at
    }

    /// Returns the highest incarnation of any record read.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Loads a segment into memory. Returns false if the segment does not exist.
    fn load(&mut self, number: u64) -> Result<bool> {
        if self.segment.as_ref().is_some_and(|(have, _)| *have == number) {
            return Ok(true);
        }
        let path = path_of(&self.directory, number);
        if !self.vfs.exists(&path) {
            return Ok(false);
        }
        let on = |error| Error::on_file("reading", &path, error);
        let file = self.vfs.open(&path, OpenMode::Read).map_err(on)?;
        let damage = |place, damage: Damage| damage.at(path.display().to_string(), place);
        // A segment gets its name only after its full length is durable.
        let length = file.length().map_err(on)?;
        if length < self.segment_size {
            let detail =
                format!("{length} of {} bytes of the segment are there", self.segment_size);
            let damaged = Damage::mismatch(self.segment_size, length, detail);
            return Err(damage(DamagedPlace::SegmentEnd, damaged));
        }
        let mut bytes = vec![0; self.segment_size as usize];
        file.read_at(&mut bytes, 0).map_err(on)?;
        let expected =
            SegmentIdentity { environment: self.environment, number, size: self.segment_size };
        if SegmentIdentity::decode(&bytes) != Some(expected) {
            let detail = "it is not the header of this environment's segment of that number";
            return Err(damage(DamagedPlace::SegmentHeader, detail.into()));
        }
        self.segment = Some((number, bytes));
        Ok(true)
    }

    /// Reads the payload of a record that [`next`](Self::next) has returned, without the rest of
    /// its segment.
    pub fn payload_again(&self, lsn: Lsn) -> Result<Vec<u8>> {
        let path = path_of(&self.directory, lsn / self.segment_size);
        let on = |error| Error::on_file("reading", &path, error);
        let file = self.vfs.open(&path, OpenMode::Read).map_err(on)?;
        let offset = lsn % self.segment_size;
        let mut bytes = vec![0; HEADER];
        file.read_at(&mut bytes, offset).map_err(on)?;
        let left = (self.segment_size - offset) as usize;
        let length = payload_length(&bytes).filter(|length| HEADER + length <= left);
        if let Some(length) = length {
            bytes.resize(HEADER + length, 0);
            file.read_at(&mut bytes[HEADER..], offset + HEADER as u64).map_err(on)?;
        }
        match decode(&bytes, lsn) {
            Some((_, payload)) => Ok(payload.to_vec()),
            None => Err(self.damage(lsn, "a record that was whole is damaged now".into())),
        }
    }

    /// Returns the next record, or `None` at the end of the log. Fails if the log is damaged before
    /// its end.
    pub fn next(&mut self) -> Result<Option<ReadRecord>> {
        loop {
            if self.at.is_multiple_of(self.segment_size) {
                self.at += SEGMENT_HEADER;
            }
            let number = self.at / self.segment_size;
            let offset = (self.at % self.segment_size) as usize;
            if self.segment_size as usize - offset < HEADER {
                self.at = (number + 1) * self.segment_size;
                continue;
            }
            if !self.load(number)? {
                if offset as u64 > SEGMENT_HEADER || Some(number) == self.expected {
                    // The segment held records once, or was prepared for them.
                    let what =
                        "the segment is missing, though it was there when the root was written";
                    return Err(self.damage(self.at, what.into()));
                }
                return self.end();
            }
            let bytes = self.segment.as_ref().map(|(_, bytes)| &bytes[..]).unwrap_or_default();
            let decoded = bytes.get(offset..).and_then(|bytes| decode(bytes, self.at));
            let Some((header, payload)) =
                decoded.filter(|(header, _)| header.incarnation >= self.incarnation)
            else {
                return self.end();
            };
            self.incarnation = header.incarnation;
            let lsn = self.at;
            if header.kind == RecordKind::Padding {
                self.at = (number + 1) * self.segment_size;
                continue;
            }
            self.at += (HEADER + payload.len()).next_multiple_of(8) as u64;
            return Ok(Some(ReadRecord {
                lsn,
                kind: header.kind,
                timestamp: header.timestamp,
                transaction: header.transaction,
                incarnation: header.incarnation,
                payload: payload.to_vec(),
            }));
        }
    }

    /// Decides whether the current position is the end of the log or damage. A missing segment does
    /// not end the search for later records.
    fn end(&mut self) -> Result<Option<ReadRecord>> {
        let stop = self.at;
        let first = stop / self.segment_size;
        let names = match self.vfs.list_directory(&self.directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            names => names.map_err(|error| Error::on_file("listing", &self.directory, error))?,
        };
        let numbers = names.iter().filter_map(|path| number_of(path));
        let mut numbers: Vec<u64> = numbers.filter(|&number| number >= first).collect();
        numbers.sort_unstable();
        for number in numbers {
            self.load(number)?;
            let bytes = self.segment.as_ref().map(|(_, bytes)| &bytes[..]).unwrap_or_default();
            let mut offset = SEGMENT_HEADER as usize;
            if number == first {
                offset = (stop % self.segment_size) as usize + 8;
            }
            for offset in places(bytes, offset) {
                let lsn = number * self.segment_size + offset as u64;
                if let Some((header, _)) = decode(&bytes[offset..], lsn)
                    && header.incarnation >= self.incarnation
                    && header.durable > stop
                {
                    let what = "no whole record, though the log was durable up to";
                    let detail = format!("{what} {}", header.durable);
                    let damage = Damage::mismatch(header.durable, stop, detail);
                    return Err(self.damage(stop, damage));
                }
            }
        }
        Ok(None)
    }

    fn damage(&self, position: Lsn, damage: Damage) -> Error {
        let path = path_of(&self.directory, position / self.segment_size);
        damage.at(path.display().to_string(), DamagedPlace::LogPosition(position))
    }
}
