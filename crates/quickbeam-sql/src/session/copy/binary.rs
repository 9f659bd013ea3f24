//! PostgreSQL's binary format of COPY: a header, records of fields with their lengths, a trailer.
//!
//! - COPYBINARY-1: a record is in memory once; what its lengths announce takes no memory before it
//!   arrives.

use quickbeam::invariant;
use std::io::{BufReader, ErrorKind, Read};
use std::ops::Range;

use crate::bind::OutputColumn;
use crate::csv::RECORD_LIMIT;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DataType, TextSettings, Value, ValueRef, fit_assigned};

/// The first bytes of a file.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// The field count of the trailer.
const TRAILER: i16 = -1;

/// The flag of files with OIDs, which PostgreSQL does not write any more.
const WITH_OIDS: u32 = 1 << 16;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// How values are written in binary form.
#[derive(Clone, Copy, Debug)]
pub struct BinaryCodec {
    /// Appends the form of a value that is not NULL.
    pub put: fn(&mut Vec<u8>, ValueRef<'_>),
    /// Reads a value of that type.
    pub read: fn(&[u8], DataType) -> Result<Value>,
}

impl BinaryCodec {
    /// Appends a field with its length; NULL has the length -1.
    pub fn write_field(self, record: &mut Vec<u8>, value: ValueRef<'_>) {
        if value.is_null() {
            record.extend_from_slice(&(-1_i32).to_be_bytes());
            return;
        }
        let at = record.len();
        record.extend_from_slice(&[0; 4]);
        (self.put)(record, value);
        let length = u32::try_from(record.len() - at - 4).unwrap_or(u32::MAX);
        if let Some(place) = record.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// Returns the header of a file.
pub(crate) fn header() -> Vec<u8> {
    [SIGNATURE, &[0; 8]].concat()
}

/// Returns the trailer of a file.
pub(crate) fn trailer() -> [u8; 2] {
    TRAILER.to_be_bytes()
}

#[cold]
fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BadCopyFileFormat, message)
}

/// Reads records of the binary format.
pub(crate) struct BinaryReader<R> {
    input: BufReader<R>,
    codec: BinaryCodec,
    record: Vec<u8>,
    /// Where each field is; `None` is NULL.
    fields: Vec<Option<Range<usize>>>,
    records: u64,
    has_begun: bool,
    is_at_end: bool,
}

impl<R: Read> BinaryReader<R> {
    pub fn new(input: R, codec: BinaryCodec) -> BinaryReader<R> {
        let input = BufReader::with_capacity(PIECE, input);
        let (record, fields) = (Vec::new(), Vec::new());
        BinaryReader {
            input,
            codec,
            record,
            fields,
            records: 0,
            has_begun: false,
            is_at_end: false,
        }
    }

    /// Goes to the next record; false when there are no more.
    pub fn read(&mut self) -> Result<bool> {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.read_header()?;
        }
        if self.is_at_end {
            return Ok(false);
        }
        self.records += 1;
        self.record.clear();
        self.fields.clear();
        let Some(count) = self.number::<2>()? else {
            // A client may end the data without a trailer.
            self.is_at_end = true;
            return Ok(false);
        };
        let count = i16::from_be_bytes(count);
        if count == TRAILER {
            self.is_at_end = true;
            if self.number::<1>()?.is_some() {
                return Err(bad("received copy data after EOF marker"));
            }
            return Ok(false);
        }
        for _ in 0..count {
            let length = self.number::<4>()?.ok_or_else(|| bad("unexpected EOF in COPY data"))?;
            let field = match i32::from_be_bytes(length) {
                -1 => None,
                length => Some(self.take(length)?),
            };
            self.fields.push(field);
        }
        Ok(true)
    }

    fn read_header(&mut self) -> Result<()> {
        let signature = self.number::<11>()?;
        if signature.is_none_or(|signature| signature != SIGNATURE) {
            return Err(bad("COPY file signature not recognized"));
        }
        let missing = || bad("invalid COPY file header (missing flags)");
        let flags = u32::from_be_bytes(self.number::<4>()?.ok_or_else(missing)?);
        if flags & WITH_OIDS != 0 {
            return Err(bad("invalid COPY file header (WITH OIDS)"));
        }
        if flags >> 16 != 0 {
            return Err(bad("unrecognized critical flags in COPY file header"));
        }
        let missing = || bad("invalid COPY file header (missing length)");
        let length = i32::from_be_bytes(self.number::<4>()?.ok_or_else(missing)?);
        self.take(length).map(|_| ())
    }

    /// Reads a number of bytes; `None` at the end of the input.
    fn number<const N: usize>(&mut self) -> Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(bad("unexpected EOF in COPY data")),
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(not_read(error)),
            }
        }
        Ok(Some(bytes))
    }

    /// Reads bytes into the record (COPYBINARY-1).
    fn take(&mut self, length: i32) -> Result<Range<usize>> {
        let start = self.record.len();
        let length = usize::try_from(length).map_err(|_| bad("invalid field size"))?;
        if start.saturating_add(length) > RECORD_LIMIT {
            return Err(bad(format!("a record has more than {RECORD_LIMIT} bytes")));
        }
        let limit = u64::try_from(length).unwrap_or(u64::MAX);
        let capacity = self.record.capacity();
        let read = (&mut self.input).take(limit).read_to_end(&mut self.record);
        let (taken, arrived) = (self.record.capacity(), self.record.len());
        invariant!(
            COPYBINARY_1,
            taken <= capacity.max(4 * arrived + PIECE),
            "{taken} bytes for {arrived}"
        );
        if read.map_err(not_read)? < length {
            return Err(bad("unexpected EOF in COPY data"));
        }
        Ok(start..start + length)
    }

    /// Returns the number of the record, from 1.
    pub fn line(&self) -> u64 {
        self.records
    }

    /// Reads the values of the current record.
    pub fn values(
        &self,
        columns: &[OutputColumn],
        values: &mut Vec<Value>,
        settings: &TextSettings,
    ) -> Result<()> {
        if self.fields.len() != columns.len() {
            let (found, expected) = (self.fields.len(), columns.len());
            return Err(bad(format!("row field count is {found}, expected {expected}")));
        }
        for (field, column) in self.fields.iter().zip(columns) {
            values.push(match field {
                None => Value::Null,
                Some(field) => {
                    let bytes = self.record.get(field.clone()).unwrap_or_default();
                    let value = (self.codec.read)(bytes, column.data_type)?;
                    fit_assigned(value, column.data_type, settings)?
                }
            });
        }
        Ok(())
    }
}

/// Returns the error of the statement for one of the input.
fn not_read(error: std::io::Error) -> SqlError {
    match error.downcast::<SqlError>() {
        Ok(error) => error,
        Err(error) => {
            SqlError::new(SqlState::IoError, format!("could not read from COPY file: {error}"))
        }
    }
}
