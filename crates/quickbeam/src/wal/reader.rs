//! Reading the log back: from a position on, record by record, to its end; and telling its end from damage.
//!
//! The log ends at the first place where no whole record of the expected position and incarnation stands. If some
//! record behind that place says that everything up to beyond it was durable (LOG-4), the place is damage.

use std::path::PathBuf;
use std::sync::Arc;

use super::Lsn;
use super::record::{HEADER, RecordKind, decode, places};
use super::segment::{SEGMENT_HEADER, SegmentIdentity, number_of, path_of};
use crate::error::{Error, Result};
use crate::vfs::{OpenMode, Vfs};

/// A record as recovery sees it.
pub struct ReadRecord {
    /// Its position.
    pub lsn: Lsn,
    /// What it is.
    pub kind: RecordKind,
    /// Its commit timestamp.
    pub timestamp: u64,
    /// The writer that pieces belong to.
    pub transaction: u64,
    /// The incarnation that wrote it.
    pub incarnation: u32,
    /// Operations.
    pub payload: Vec<u8>,
}

/// Reads records in order.
pub struct LogReader {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    environment: u64,
    segment_size: u64,
    /// The segment in memory, and its number.
    segment: Option<(u64, Vec<u8>)>,
    /// Where the next record is.
    at: Lsn,
    /// The segment in which reading begins, if it is known to have been there.
    expected: Option<u64>,
    /// The highest incarnation seen.
    incarnation: u32,
}

impl LogReader {
    /// Reads from `start` on. Records of incarnations before `incarnation` are left-overs, not part of the log.
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

    /// The segment in which reading begins is known to have been there: the log does not end before it.
    pub fn expect_first(&mut self) {
        self.expected = Some(self.at / self.segment_size);
    }

    /// Where reading has come to: after the last whole record.
    pub fn position(&self) -> Lsn {
        self.at
    }

    /// The highest incarnation that a record carried.
    pub fn incarnation(&self) -> u32 {
        self.incarnation
    }

    /// Brings a segment into memory; false when there is none of that number.
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
        let damage = |place: &str, detail: String| Error::Corruption {
            file: path.display().to_string(),
            place: place.into(),
            detail,
        };
        // A segment has its whole length, durably, before it has its name.
        let length = file.length().map_err(on)?;
        if length < self.segment_size {
            let detail =
                format!("{length} of {} bytes of the segment are there", self.segment_size);
            return Err(damage("end of the segment", detail));
        }
        let mut bytes = vec![0; self.segment_size as usize];
        file.read_at(&mut bytes, 0).map_err(on)?;
        let expected =
            SegmentIdentity { environment: self.environment, number, size: self.segment_size };
        if SegmentIdentity::decode(&bytes) != Some(expected) {
            let detail = "it is not the header of this environment's segment of that number";
            return Err(damage("segment header", detail.into()));
        }
        self.segment = Some((number, bytes));
        Ok(true)
    }

    /// The next record; `None` at the log's end. Corruption when the log is damaged before its end.
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
                    // Something was written there once, or it was made ready for that.
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
            if header.kind == RecordKind::Skip {
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

    /// Decides whether reading came to the log's end or to damage. A segment missing here does not end the search.
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
                    return Err(self.damage(stop, format!("{what} {}", header.durable)));
                }
            }
        }
        Ok(None)
    }

    fn damage(&self, position: Lsn, detail: String) -> Error {
        let path = path_of(&self.directory, position / self.segment_size);
        let place = format!("log position {position}");
        Error::Corruption { file: path.display().to_string(), place, detail }
    }
}
