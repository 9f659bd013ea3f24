//! The header of a log record: 48 bytes, little-endian. `docs/format.md` has the layout.

use super::Lsn;

/// Bytes of a record before its payload.
pub const HEADER: usize = 48;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// The operations of a transaction, or its last fragment, and its commit.
    Commit = 1,
    /// A fragment of a large transaction. It takes effect with the commit record.
    Fragment = 2,
    /// Padding: the rest of the segment is unused.
    Padding = 3,
}

/// Offset of the kind in a record.
const KIND_AT: usize = 4;

impl RecordKind {
    /// Decodes a kind.
    fn of(byte: u8) -> Option<RecordKind> {
        [RecordKind::Commit, RecordKind::Fragment, RecordKind::Padding]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// A record's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    pub kind: RecordKind,
    pub incarnation: u32,
    /// Bytes of payload.
    pub length: u32,
    pub payload_checksum: u32,
    /// The record's own position.
    pub lsn: Lsn,
    /// Commit timestamp; zero in fragments.
    pub timestamp: u64,
    /// The transaction that fragments belong to.
    pub transaction: u64,
    /// The LSN that was durable when the record was appended (LOG-4).
    pub durable: Lsn,
}

/// Encodes the header with its checksum.
pub fn encode_header(header: &RecordHeader) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[KIND_AT] = header.kind as u8;
    // Bytes 5 to 7 are reserved for flags and zero.
    bytes[8..12].copy_from_slice(&header.length.to_le_bytes());
    bytes[12..16].copy_from_slice(&header.incarnation.to_le_bytes());
    bytes[16..24].copy_from_slice(&header.lsn.to_le_bytes());
    bytes[24..32].copy_from_slice(&header.timestamp.to_le_bytes());
    bytes[32..40].copy_from_slice(&header.durable.to_le_bytes());
    // The payload checksum is not stored. It is folded into the header's checksum, which thus
    // covers both.
    bytes[40..48].copy_from_slice(&header.transaction.to_le_bytes());
    let checksum = seal(&bytes, header.payload_checksum);
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Computes one checksum for header and payload.
fn seal(bytes: &[u8; HEADER], payload_checksum: u32) -> u32 {
    crc32c::crc32c_append(payload_checksum, &bytes[4..])
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b))
}

/// Returns the offsets in a segment, multiples of eight from `offset` on, where a record may begin.
/// The byte of the kind excludes most of them, so searching a whole segment for records is cheap.
pub fn places(segment: &[u8], offset: usize) -> impl Iterator<Item = usize> {
    let words = segment.as_chunks::<8>().0.iter().enumerate().skip(offset.div_ceil(8));
    words.filter(|(_, word)| RecordKind::of(word[KIND_AT]).is_some()).map(|(at, _)| at * 8)
}

/// Returns the bytes of payload that the header at the start of `bytes` names. It may be damaged.
pub fn payload_length(bytes: &[u8]) -> Option<usize> {
    Some(half(bytes.first_chunk::<HEADER>()?, 8) as usize)
}

/// Decodes the record at the start of `bytes`. Returns `None` unless it is whole, undamaged and of
/// position `lsn`.
pub fn decode(bytes: &[u8], lsn: Lsn) -> Option<(RecordHeader, &[u8])> {
    let head: &[u8; HEADER] = bytes.first_chunk()?;
    let kind = RecordKind::of(head[KIND_AT])?;
    if word(head, 16) != lsn {
        return None;
    }
    let length = half(head, 8);
    let payload = match kind {
        RecordKind::Padding => &[][..],
        _ => bytes.get(HEADER..HEADER.checked_add(length as usize)?)?,
    };
    let payload_checksum = if payload.is_empty() { 0 } else { crc32c::crc32c(payload) };
    if seal(head, payload_checksum) != half(head, 0) {
        return None;
    }
    let header = RecordHeader {
        kind,
        incarnation: half(head, 12),
        length,
        payload_checksum,
        lsn,
        timestamp: word(head, 24),
        durable: word(head, 32),
        transaction: word(head, 40),
    };
    Some((header, payload))
}

/// Recomputes the checksum of the record at the start of `bytes`, if its length fits.
#[cfg(any(test, feature = "fuzzing"))]
pub fn seal_record(bytes: &mut [u8]) {
    let length = if bytes.get(4) == Some(&3) { 0 } else { half(bytes, 8) as usize };
    let end = HEADER.saturating_add(length);
    let Some(head) = bytes.first_chunk::<HEADER>() else { return };
    let Some(payload) = bytes.get(HEADER..end) else { return };
    let checksum = seal(head, if payload.is_empty() { 0 } else { crc32c::crc32c(payload) });
    bytes[..4].copy_from_slice(&checksum.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_is_detected() {
        let payload = b"payload of a record";
        let header = RecordHeader {
            kind: RecordKind::Commit,
            incarnation: 3,
            length: payload.len() as u32,
            payload_checksum: crc32c::crc32c(payload),
            lsn: 4096,
            timestamp: 77,
            transaction: 5,
            durable: 4000,
        };
        let mut bytes = encode_header(&header).to_vec();
        bytes.extend_from_slice(payload);
        assert_eq!(decode(&bytes, 4096), Some((header, &payload[..])));
        assert_eq!(decode(&bytes, 4104), None);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&bytes, 4096), None, "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length], 4096), None);
        }
    }
}
