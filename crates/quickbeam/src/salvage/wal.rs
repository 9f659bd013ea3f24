//! The readable records of a damaged log, across gaps.
//!
//! Above: salvage. Below: segment files, the format of log records.
//!
//! As in recovery (LOG-4), a position without a whole record is a gap if a later record says that
//! the log was durable beyond it. Otherwise it is the end of the log.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{LostLog, SalvageReport};
use crate::vfs::{OpenMode, Vfs};
use crate::wal::{
    HEADER, Lsn, Operation, RecordKind, SEGMENT_HEADER, SegmentIdentity, decode, decode_parts,
    number_of, places as record_places,
};

/// Position and header fields of a whole record.
struct RecordPosition {
    lsn: Lsn,
    /// Position of the next record.
    next: Lsn,
    kind: RecordKind,
    transaction: u64,
    incarnation: u32,
    durable: Lsn,
}

/// A damaged log, read-only.
pub struct SalvagedLog {
    vfs: Arc<dyn Vfs>,
    segment_size: u64,
    /// Segments in order, with their files.
    segments: Vec<(u64, PathBuf)>,
}

fn bytes_of(vfs: &dyn Vfs, path: &Path) -> std::io::Result<Vec<u8>> {
    let file = vfs.open(path, OpenMode::Read)?;
    let mut bytes = vec![0; usize::try_from(file.length()?).unwrap_or(usize::MAX)];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}

impl SalvagedLog {
    /// Opens the segments in `directory`. Without a root, `identity` is `None` and the segments'
    /// headers supply it.
    pub fn open(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        identity: Option<(u64, u64)>,
        report: &mut SalvageReport,
    ) -> Option<SalvagedLog> {
        let names = vfs.list_directory(directory).ok()?;
        let mut segments: Vec<(u64, PathBuf)> =
            names.into_iter().filter_map(|path| Some((number_of(&path)?, path))).collect();
        segments.sort();
        let mut identity = identity;
        segments.retain(|(number, path)| {
            let bytes = bytes_of(&*vfs, path).unwrap_or_default();
            let found = SegmentIdentity::decode(&bytes).filter(|found| found.number == *number);
            let mut lose = |detail: &str| {
                let file = path.display().to_string();
                report.lost_log.push(LostLog { file, from: 0, to: 0, detail: detail.into() });
            };
            match (found, &mut identity) {
                (Some(found), Some((environment, _))) if found.environment != *environment => {
                    lose("the segment belongs to another environment");
                    false
                }
                (Some(found), identity) => {
                    identity.get_or_insert((found.environment, found.size));
                    true
                }
                // Records contain their own positions, so they can be read without the header.
                (None, Some(_)) => {
                    lose("the segment's header is damaged; its records were looked at");
                    true
                }
                (None, None) => false,
            }
        });
        let (_, segment_size) = identity?;
        Some(SalvagedLog { vfs, segment_size, segments })
    }

    /// Returns every whole record from `start` on with a valid incarnation.
    fn places(&self, start: Lsn, incarnation: u32) -> Vec<RecordPosition> {
        let mut places: Vec<RecordPosition> = Vec::new();
        let mut incarnation = incarnation;
        for (number, path) in &self.segments {
            let base = number * self.segment_size;
            if base + self.segment_size <= start {
                continue;
            }
            let bytes = bytes_of(&*self.vfs, path).unwrap_or_default();
            let mut end = start.saturating_sub(base).max(SEGMENT_HEADER) as usize;
            for offset in record_places(&bytes, end) {
                // No record begins within a whole record.
                if offset < end {
                    continue;
                }
                let lsn = base + offset as u64;
                let record = decode(&bytes[offset..], lsn);
                let Some((header, payload)) = record.filter(|(h, _)| h.incarnation >= incarnation)
                else {
                    continue;
                };
                incarnation = header.incarnation;
                end = offset + (HEADER + payload.len()).next_multiple_of(8);
                let full = header.kind == RecordKind::Padding
                    || self.segment_size.saturating_sub(end as u64) < HEADER as u64;
                let next = base + if full { self.segment_size } else { end as u64 };
                places.push(RecordPosition {
                    lsn,
                    next: if full { next + SEGMENT_HEADER } else { next },
                    kind: header.kind,
                    transaction: header.transaction,
                    incarnation,
                    durable: header.durable,
                });
            }
        }
        places
    }

    fn payload(&self, place: &RecordPosition, loaded: &mut (u64, Vec<u8>)) -> Vec<u8> {
        let number = place.lsn / self.segment_size;
        if loaded.0 != number {
            let path = self.segments.iter().find(|(other, _)| *other == number);
            let bytes = path.and_then(|(_, path)| bytes_of(&*self.vfs, path).ok());
            *loaded = (number, bytes.unwrap_or_default());
        }
        let offset = (place.lsn % self.segment_size) as usize;
        let record = loaded.1.get(offset..).and_then(|bytes| decode(bytes, place.lsn));
        record.map(|(_, payload)| payload.to_vec()).unwrap_or_default()
    }

    /// Describes a part of the log that is lost.
    fn lost(&self, from: Lsn, to: Lsn, detail: &str) -> LostLog {
        let file = format!("{:012}.log", from / self.segment_size);
        LostLog { file, from, to, detail: detail.into() }
    }

    /// Calls `apply` with every operation of every whole commit from `position` on. Reading begins
    /// at `start`.
    pub fn replay<E>(
        &self,
        (start, position): (Lsn, Lsn),
        incarnation: u32,
        report: &mut SalvageReport,
        mut apply: impl FnMut(Operation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let places = self.places(start, incarnation);
        let first = self.segments.first().map_or(0, |(number, _)| number * self.segment_size);
        if start > 0 && first > start {
            report.lost_log.push(self.lost(start, first, "the segments are missing"));
        }
        let mut expected = places.first().map_or(start, |place| match start {
            0 => place.lsn,
            start => start,
        });
        let mut fragments: HashMap<(u32, u64), Vec<&RecordPosition>> = HashMap::new();
        let mut loaded = (u64::MAX, Vec::new());
        let mut gap = false;
        for (place, durable) in places.iter().zip(durable_from(&places)) {
            if place.lsn != expected {
                if durable <= expected {
                    break;
                }
                gap = true;
                let detail = "no whole record, though this part of the log was durable";
                report.lost_log.push(self.lost(expected, place.lsn, detail));
                // Transactions whose fragments began before the gap may have lost fragments in it.
                fragments.clear();
            }
            expected = place.next;
            let key = (place.incarnation, place.transaction);
            match place.kind {
                RecordKind::Padding => {}
                RecordKind::Fragment => fragments.entry(key).or_default().push(place),
                RecordKind::Commit => {
                    let mut parts = fragments.remove(&key).unwrap_or_default();
                    parts.push(place);
                    if place.lsn < position {
                        continue;
                    }
                    let read = |number: usize| {
                        let part = parts.get(number);
                        Ok(part.map_or_else(Vec::new, |part| self.payload(part, &mut loaded)))
                    };
                    // All or nothing: a commit that lost a fragment most likely cannot be decoded
                    // as a whole.
                    match decode_parts(parts.len(), read, &mut apply) {
                        Err(Some(error)) => return Err(error),
                        Err(None) => {
                            let detail = "a commit whose beginning is lost";
                            report.lost_log.push(self.lost(place.lsn, place.next, detail));
                        }
                        Ok(()) => report.commits += 1,
                    }
                }
            }
        }
        if gap {
            report.doubts.push(
                "a part of the log is lost: the commits behind it were applied without those in it"
                    .into(),
            );
        }
        Ok(())
    }
}

/// Returns, for each record, the highest durable LSN that it or a later one names.
fn durable_from(places: &[RecordPosition]) -> Vec<Lsn> {
    let mut durable: Vec<Lsn> = places.iter().map(|place| place.durable).collect();
    for at in (1..durable.len()).rev() {
        durable[at - 1] = durable[at - 1].max(durable[at]);
    }
    durable
}
