//! Comma-separated values, as PostgreSQL's COPY reads and writes them.
//!
//! Above: COPY, and programs that write answers. Below: a reader of bytes. An empty field without
//! quotes is NULL and one with quotes is an empty text, and a line without anything is a record of
//! one NULL: what is written reads back the same. Readers that hide where quotes stood, and pass
//! over empty lines, cannot tell these apart.
//!
//! - CSV-1: a record is in memory once; so is a piece of the input, of fixed size.
//! - CSV-2: what a reader delivers does not depend on how the input is cut into pieces.

use std::io::{ErrorKind, Read};
use std::ops::Range;

use quickbeam::invariant;

use crate::error::{Result, SqlError, SqlState};
use crate::utf8::text_from_utf8;

/// Bytes of the input that are in memory.
pub(crate) const PIECE: usize = 128 << 10;

/// Bytes that a record may have.
pub(crate) const RECORD_LIMIT: usize = 256 << 20;

/// The characters that steer, each of one byte, and what stands for NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// Between fields.
    pub delimiter: u8,
    /// Around fields.
    pub quote: u8,
    /// Within quotes before a quote.
    pub escape: u8,
    /// A field that is NULL; without quotes.
    pub null: String,
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect { delimiter: b',', quote: b'"', escape: b'"', null: String::new() }
    }
}

impl Dialect {
    /// Appends a field with quotes.
    pub fn write_quoted(&self, record: &mut Vec<u8>, text: &str) {
        record.push(self.quote);
        for byte in text.bytes() {
            if byte == self.quote || byte == self.escape {
                record.push(self.escape);
            }
            record.push(byte);
        }
        record.push(self.quote);
    }

    /// Appends a field; `None` is NULL. `is_only`: it is the only one of its record.
    pub fn write(&self, record: &mut Vec<u8>, field: Option<&str>, is_only: bool) {
        let Some(text) = field else {
            record.extend_from_slice(self.null.as_bytes());
            return;
        };
        let bytes = text.as_bytes();
        let steers = |byte: &u8| {
            *byte == self.delimiter || *byte == self.quote || matches!(byte, b'\n' | b'\r')
        };
        // The end of the data is such a line.
        let is_end = is_only && text == "\\.";
        if text != self.null && !is_end && !bytes.iter().any(steers) {
            record.extend_from_slice(bytes);
            return;
        }
        self.write_quoted(record, text);
    }
}

/// Where the reader stands within a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CsvState {
    Plain,
    Quoted,
    /// After a quote within quotes, which closes them unless another quote follows.
    MaybeEnd,
    /// After the escape character within quotes.
    Escaped,
}

/// Reads records.
pub struct CsvReader<R> {
    input: R,
    dialect: Dialect,
    piece: Vec<u8>,
    at: usize,
    filled: usize,
    /// A line feed that comes now belongs to the line end before it.
    after_return: bool,
    record: Vec<u8>,
    /// Of each field: where it ends, and whether it had quotes.
    fields: Vec<(usize, bool)>,
    has_quotes: bool,
    /// A line of the two characters `\.` has ended the records.
    is_ended: bool,
    /// Lines read, and the line in which the record begins.
    lines: u64,
    begun: u64,
}

impl<R: Read> CsvReader<R> {
    /// A reader of that input.
    pub fn new(input: R, dialect: Dialect) -> CsvReader<R> {
        CsvReader {
            input,
            dialect,
            piece: vec![0; PIECE],
            at: 0,
            filled: 0,
            after_return: false,
            record: Vec::new(),
            fields: Vec::new(),
            has_quotes: false,
            is_ended: false,
            lines: 0,
            begun: 0,
        }
    }

    /// The line in which the record begins, counted from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.begun
    }

    /// The number of fields of the record.
    pub fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// A field of the record; `None` is NULL.
    pub fn field(&self, number: usize) -> Result<Option<&str>> {
        let (end, had_quotes) = self.fields.get(number).copied().unwrap_or_default();
        let start = number.checked_sub(1).and_then(|before| self.fields.get(before));
        let range: Range<usize> = start.map_or(0, |(end, _)| *end)..end;
        let bytes = self.record.get(range).unwrap_or_default();
        if !had_quotes && bytes == self.dialect.null.as_bytes() {
            return Ok(None);
        }
        text_from_utf8(bytes).map(Some).ok_or_else(|| {
            let message = "invalid byte sequence for encoding \"UTF8\"";
            SqlError::new(SqlState::CharacterNotInRepertoire, message)
        })
    }

    /// Goes to the next record; false when there are no more.
    pub fn read(&mut self) -> Result<bool> {
        if self.is_ended {
            return Ok(false);
        }
        let has_record = self.read_record()?;
        self.is_ended = self.fields[..] == [(2, false)] && self.record == b"\\.";
        Ok(has_record && !self.is_ended)
    }

    fn read_record(&mut self) -> Result<bool> {
        self.record.clear();
        self.fields.clear();
        self.has_quotes = false;
        self.begun = self.lines + 1;
        let mut state = CsvState::Plain;
        let mut is_begun = false;
        loop {
            if self.at >= self.filled && !self.fill()? {
                return self.end(state, is_begun);
            }
            if std::mem::take(&mut self.after_return) && self.byte() == b'\n' {
                self.at += 1;
                continue;
            }
            is_begun = true;
            let byte = self.byte();
            state = match state {
                CsvState::Plain => {
                    self.plain_run();
                    if self.at >= self.filled {
                        continue;
                    }
                    let byte = self.byte();
                    self.at += 1;
                    if byte == self.dialect.delimiter {
                        self.end_field();
                        CsvState::Plain
                    } else if byte == self.dialect.quote {
                        self.has_quotes = true;
                        CsvState::Quoted
                    } else {
                        self.after_return = byte == b'\r';
                        self.lines += 1;
                        self.end_field();
                        return Ok(true);
                    }
                }
                CsvState::Quoted => self.quoted_run(),
                CsvState::MaybeEnd if byte == self.dialect.quote => {
                    self.at += 1;
                    self.record.push(byte);
                    CsvState::Quoted
                }
                CsvState::MaybeEnd => CsvState::Plain,
                CsvState::Escaped => {
                    if byte == self.dialect.quote || byte == self.dialect.escape {
                        self.at += 1;
                        self.record.push(byte);
                    } else {
                        self.record.push(self.dialect.escape);
                    }
                    CsvState::Quoted
                }
            };
            if self.record.len() > RECORD_LIMIT {
                let message = format!("a record of CSV has more than {RECORD_LIMIT} bytes");
                return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
            }
        }
    }

    /// The byte at the reader's place, which is known to be there.
    fn byte(&self) -> u8 {
        self.piece.get(self.at).copied().unwrap_or_default()
    }

    /// Takes bytes that mean themselves, up to one that steers.
    fn plain_run(&mut self) {
        let rest = self.piece.get(self.at..self.filled).unwrap_or_default();
        let (delimiter, quote) = (self.dialect.delimiter, self.dialect.quote);
        let steers =
            |byte: &u8| *byte == delimiter || *byte == quote || *byte == b'\n' || *byte == b'\r';
        let length = rest.iter().position(steers).unwrap_or(rest.len());
        self.record.extend_from_slice(rest.get(..length).unwrap_or_default());
        self.at += length;
    }

    /// Consumes bytes within quotes, and the quote or escape character that follows them, if any.
    fn quoted_run(&mut self) -> CsvState {
        let rest = self.piece.get(self.at..self.filled).unwrap_or_default();
        let Dialect { quote, escape, .. } = self.dialect;
        let steers = |byte: &u8| *byte == quote || *byte == escape;
        let length = rest.iter().position(steers);
        let run = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
        self.record.extend_from_slice(run);
        self.lines += run.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.at += run.len();
        let Some(length) = length else { return CsvState::Quoted };
        self.at += 1;
        match rest.get(length) {
            Some(byte) if *byte == quote && quote == escape => CsvState::MaybeEnd,
            Some(byte) if *byte == quote => CsvState::Plain,
            _ => CsvState::Escaped,
        }
    }

    fn end_field(&mut self) {
        self.fields.push((self.record.len(), self.has_quotes));
        self.has_quotes = false;
    }

    /// The input is at its end.
    fn end(&mut self, state: CsvState, is_begun: bool) -> Result<bool> {
        if matches!(state, CsvState::Quoted | CsvState::Escaped) {
            let message = "unterminated CSV quoted field";
            return Err(SqlError::new(SqlState::BadCopyFileFormat, message));
        }
        if is_begun {
            self.lines += 1;
            self.end_field();
        }
        Ok(is_begun)
    }

    /// Reads the next piece; false at the end.
    fn fill(&mut self) -> Result<bool> {
        invariant!(CSV_2, self.at == self.filled, "{} of {} bytes", self.at, self.filled);
        (self.at, self.filled) = (0, fill(&mut self.input, &mut self.piece)?);
        invariant!(CSV_1, self.piece.len() == PIECE, "{} bytes", self.piece.len());
        Ok(self.filled > 0)
    }
}

/// Reads a piece of COPY's input. Returns its length, 0 at the end. A [`SqlError`] that an input
/// wraps in its error is the error.
pub(crate) fn fill(input: &mut impl Read, piece: &mut [u8]) -> Result<usize> {
    loop {
        match input.read(piece) {
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(error.downcast::<SqlError>().unwrap_or_else(|error| {
                    let message = format!("could not read from COPY file: {error}");
                    SqlError::new(SqlState::IoError, message)
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that comes in pieces of that size.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(out.len());
            let (head, tail) = self.0.split_at(count);
            out[..count].copy_from_slice(head);
            self.0 = tail;
            Ok(count)
        }
    }

    type Records = Vec<(u64, Vec<Option<String>>)>;

    fn read(text: &[u8], dialect: &Dialect, piece: usize) -> Result<Records> {
        let mut reader = CsvReader::new(Pieces(text, piece), dialect.clone());
        let mut records = Vec::new();
        while reader.read()? {
            let fields = (0..reader.field_count()).map(|n| Ok(reader.field(n)?.map(str::to_owned)));
            records.push((reader.line(), fields.collect::<Result<_>>()?));
        }
        Ok(records)
    }

    fn shown(text: &str, dialect: &Dialect) -> String {
        let whole = read(text.as_bytes(), dialect, usize::MAX).map_err(|error| error.code());
        for piece in [1, 2, 3, 7] {
            let cut = read(text.as_bytes(), dialect, piece).map_err(|error| error.code());
            assert_eq!(cut, whole, "{text:?} in pieces of {piece}");
        }
        let record = |(line, fields): (u64, Vec<Option<String>>)| {
            let fields: Vec<String> = fields
                .into_iter()
                .map(|field| field.map_or("NULL".into(), |f| format!("<{f}>")))
                .collect();
            format!("{line}:{}", fields.join(""))
        };
        match whole {
            Ok(records) => records.into_iter().map(record).collect::<Vec<_>>().join(" "),
            Err(code) => code.to_owned(),
        }
    }

    #[test]
    fn records_are_read_as_postgresql_reads_them() {
        let usual = Dialect::default();
        let cases = [
            ("", ""),
            ("a,b\nc,d\n", "1:<a><b> 2:<c><d>"),
            ("a,b\r\nc,d", "1:<a><b> 2:<c><d>"),
            ("a\rb\r\rc", "1:<a> 2:<b> 3:NULL 4:<c>"),
            (",\"\",x", "1:NULL<><x>"),
            ("\n\na\n", "1:NULL 2:NULL 3:<a>"),
            ("\"a\"\"b\",\"c,\nd\"\ne", "1:<a\"b><c,\nd> 3:<e>"),
            ("a\"b,c\"d,e", "1:<ab,cd><e>"),
            ("\"a\nb", "22P04"),
            ("\"a\"", "1:<a>"),
            ("größe,ß\n", "1:<größe><ß>"),
            ("a,\n", "1:<a>NULL"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text, &usual), expected, "{text:?}");
        }
        let other = Dialect { delimiter: b';', quote: b'\'', escape: b'\\', null: "\\N".into() };
        let cases = [
            ("a,b;'c;d';\\N;'\\N';\n", "1:<a,b><c;d>NULL<\\N><>"),
            ("'it\\'s';'a\\\\b';'a\\b'", "1:<it's><a\\b><a\\b>"),
            ("'a''b'", "1:<ab>"),
        ];
        for (text, expected) in cases {
            assert_eq!(shown(text, &other), expected, "{text:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        for text in [&b"a,\xff\n"[..], b"\xc3,\xa4\n"] {
            assert_eq!(read(text, &Dialect::default(), 1).unwrap_err().code(), "22021");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let fields = [
            None,
            Some(""),
            Some("a"),
            Some("\\N"),
            Some("\\."),
            Some("a\"b"),
            Some(" x,;'y\\z "),
            Some("a\r\nb"),
        ];
        let dialects = [
            Dialect::default(),
            Dialect { null: "\\N".into(), ..Dialect::default() },
            Dialect { delimiter: b';', quote: b'\'', escape: b'\\', null: "a".into() },
        ];
        for dialect in dialects {
            let mut text = Vec::new();
            for field in fields {
                dialect.write(&mut text, field, true);
                text.push(b'\n');
            }
            for (number, field) in fields.into_iter().enumerate() {
                if number > 0 {
                    text.push(dialect.delimiter);
                }
                dialect.write(&mut text, field, false);
            }
            let records = read(&text, &dialect, 5).unwrap();
            let found: Vec<Option<&str>> = records
                .iter()
                .flat_map(|(_, fields)| fields.iter().map(Option::as_deref))
                .collect();
            assert_eq!(found, [fields, fields].concat(), "{dialect:?}");
        }
    }
}
