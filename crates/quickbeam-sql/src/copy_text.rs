//! PostgreSQL's text format of COPY: a line for each record, delimiters between fields, escapes
//! with backslashes.
//!
//! Above: COPY. Below: a reader of bytes. `\N` is NULL, and `\.` at the end of a line ends it and
//! the records. In a file, `\.` after other data ends the line alone.
//!
//! - COPYTEXT-1: a record is in memory once; so is a piece of the input, of fixed size.
//! - COPYTEXT-2: what a reader delivers does not depend on how the input is cut into pieces.

use std::io::Read;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2};
use quickbeam::invariant;

use crate::csv::{PIECE, RECORD_LIMIT, fill};
use crate::error::{Result, SqlError, SqlState};
use crate::utf8::text_from_utf8;

/// The character between fields and the text that stands for NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextDialect {
    /// Between fields.
    pub delimiter: u8,
    /// A field that is NULL, before its escapes are read.
    pub null: String,
}

impl Default for TextDialect {
    fn default() -> TextDialect {
        TextDialect { delimiter: b'\t', null: "\\N".into() }
    }
}

impl TextDialect {
    /// Appends a field; `None` is NULL.
    pub fn write(&self, record: &mut Vec<u8>, field: Option<&str>) {
        let Some(text) = field else {
            record.extend_from_slice(self.null.as_bytes());
            return;
        };
        let mut rest = text.as_bytes();
        let is_special = |byte: &u8| *byte < 0x20 || *byte == b'\\' || *byte == self.delimiter;
        while let Some(at) = rest.iter().position(is_special) {
            let (plain, special) = rest.split_at(at);
            record.extend_from_slice(plain);
            let Some((byte, after)) = special.split_first() else { return };
            match escape_letter(*byte) {
                Some(letter) => record.extend_from_slice(&[b'\\', letter]),
                None if *byte == self.delimiter => record.extend_from_slice(&[b'\\', *byte]),
                None => record.push(*byte),
            }
            rest = after;
        }
        record.extend_from_slice(rest);
    }
}

/// Returns the letter that stands for a byte after a backslash.
fn escape_letter(byte: u8) -> Option<u8> {
    Some(match byte {
        8 => b'b',
        9 => b't',
        10 => b'n',
        11 => b'v',
        12 => b'f',
        13 => b'r',
        b'\\' => b'\\',
        _ => return None,
    })
}

/// Where the input of COPY comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOrigin {
    /// A file.
    File,
    /// What a client sends.
    Stream,
}

/// Reads records of the text format.
pub struct TextReader<R> {
    input: R,
    origin: TextOrigin,
    dialect: TextDialect,
    piece: Vec<u8>,
    at: usize,
    filled: usize,
    /// The line as it came, whether it has a backslash, and where it has the first `\.`.
    line: Vec<u8>,
    has_escapes: bool,
    marker: Option<usize>,
    /// The fields without their escapes.
    record: Vec<u8>,
    /// Of each field: where it is in the record, or that it is NULL.
    fields: Vec<Option<Range<usize>>>,
    lines: u64,
    is_at_end: bool,
}

impl<R: Read> TextReader<R> {
    /// Returns a reader of that input.
    pub fn new(input: R, origin: TextOrigin, dialect: TextDialect) -> TextReader<R> {
        TextReader {
            input,
            origin,
            dialect,
            piece: vec![0; PIECE],
            at: 0,
            filled: 0,
            line: Vec::new(),
            has_escapes: false,
            marker: None,
            record: Vec::new(),
            fields: Vec::new(),
            lines: 0,
            is_at_end: false,
        }
    }

    /// Returns the number of the record's line, from 1.
    pub fn line(&self) -> u64 {
        self.lines
    }

    /// Returns the number of fields of the record.
    pub fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// Returns a field of the record; `None` is NULL.
    pub fn field(&self, number: usize) -> Result<Option<&str>> {
        let Some(Some(place)) = self.fields.get(number) else { return Ok(None) };
        let bytes = self.record.get(place.clone()).unwrap_or_default();
        text_from_utf8(bytes).map(Some).ok_or_else(|| {
            let message = "invalid byte sequence for encoding \"UTF8\"";
            SqlError::new(SqlState::CharacterNotInRepertoire, message)
        })
    }

    /// Goes to the next record; false when there are no more. After the mark that ends the records
    /// the input is read to its end and ignored.
    pub fn read(&mut self) -> Result<bool> {
        if self.is_at_end || !self.read_line()? {
            return Ok(false);
        }
        self.lines += 1;
        if let Some(marker) = self.marker {
            self.end_at(marker)?;
            if self.line.is_empty() {
                return Ok(false);
            }
        }
        self.split();
        Ok(true)
    }

    /// Ends the line, and the records unless data are before the mark in a file.
    #[cold]
    fn end_at(&mut self, marker: usize) -> Result<()> {
        if self.line.len() != marker + 2 {
            return Err(corrupt_marker());
        }
        self.line.truncate(marker);
        if self.line.is_empty() || self.origin == TextOrigin::Stream {
            self.is_at_end = true;
            while fill(&mut self.input, &mut self.piece)? > 0 {}
        }
        Ok(())
    }

    /// Reads a line without its end; false if there is none.
    fn read_line(&mut self) -> Result<bool> {
        self.line.clear();
        self.has_escapes = false;
        self.marker = None;
        let mut is_escaped = false;
        loop {
            if self.at >= self.filled {
                let (at, filled) = (self.at, self.filled);
                invariant!(COPYTEXT_2, at == filled, "{at} of {filled} bytes");
                (self.at, self.filled) = (0, fill(&mut self.input, &mut self.piece)?);
                invariant!(COPYTEXT_1, self.piece.len() == PIECE, "{} bytes", self.piece.len());
                if self.filled == 0 {
                    if self.marker.is_some() {
                        self.lines += 1;
                        return Err(corrupt_marker());
                    }
                    return Ok(!self.line.is_empty());
                }
            }
            let rest = self.piece.get(self.at..self.filled).unwrap_or_default();
            if std::mem::take(&mut is_escaped) {
                if rest.first() == Some(&b'.') && self.marker.is_none() {
                    self.marker = self.line.len().checked_sub(1);
                }
                self.line.extend(rest.first());
                self.at += 1;
                continue;
            }
            let steers = memchr2(b'\n', b'\\', rest);
            let (run, steering) = rest.split_at(steers.unwrap_or(rest.len()));
            self.line.extend_from_slice(run);
            self.at += run.len();
            match steering.first() {
                Some(b'\n') => {
                    self.at += 1;
                    if self.line.last() == Some(&b'\r') {
                        self.line.pop();
                    }
                    return Ok(true);
                }
                Some(backslash) => {
                    self.line.push(*backslash);
                    self.at += 1;
                    self.has_escapes = true;
                    is_escaped = true;
                }
                None => {}
            }
            if self.line.len() > RECORD_LIMIT {
                let message = format!("a record of COPY has more than {RECORD_LIMIT} bytes");
                return Err(SqlError::new(SqlState::ProgramLimitExceeded, message));
            }
        }
    }

    /// Splits the line into fields and reads their escapes.
    fn split(&mut self) {
        self.record.clear();
        self.fields.clear();
        let null = self.dialect.null.as_bytes();
        if !self.has_escapes {
            let mut start = 0;
            for end in memchr_iter(self.dialect.delimiter, &self.line).chain([self.line.len()]) {
                let field = start..end;
                let is_null = self.line.get(field.clone()) == Some(null);
                self.fields.push((!is_null).then_some(field));
                start = end + 1;
            }
            std::mem::swap(&mut self.line, &mut self.record);
            return;
        }
        let mut rest = &self.line[..];
        loop {
            let length = field_length(rest, self.dialect.delimiter);
            let (field, after) = rest.split_at(length);
            let start = self.record.len();
            let is_null = field == null;
            if !is_null {
                unescape(field, &mut self.record);
            }
            self.fields.push((!is_null).then_some(start..self.record.len()));
            match after.split_first() {
                Some((_, after)) => rest = after,
                None => return,
            }
        }
    }
}

#[cold]
fn corrupt_marker() -> SqlError {
    SqlError::new(SqlState::BadCopyFileFormat, "end-of-copy marker corrupt")
}

/// Returns the length of the field that a text begins with.
fn field_length(text: &[u8], delimiter: u8) -> usize {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| memchr2(delimiter, b'\\', rest)) {
        if text.get(from + at) == Some(&delimiter) {
            return from + at;
        }
        from += at + 2;
    }
    text.len()
}

/// Appends a field without its escapes.
fn unescape(field: &[u8], out: &mut Vec<u8>) {
    let mut rest = field;
    while let Some(at) = memchr(b'\\', rest) {
        let (plain, escape) = rest.split_at(at);
        out.extend_from_slice(plain);
        match escape.get(1..).and_then(<[u8]>::split_first) {
            Some((letter, after)) => rest = push_escaped(*letter, after, out),
            // A backslash at the end stands for itself.
            None => {
                out.push(b'\\');
                rest = &[];
            }
        }
    }
    out.extend_from_slice(rest);
}

/// Appends the byte of an escape. Returns the text after it.
fn push_escaped<'a>(letter: u8, after: &'a [u8], out: &mut Vec<u8>) -> &'a [u8] {
    let digits = |text: &'a [u8], limit: usize, radix: u32| {
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let count = text.iter().take(limit).take_while(is_digit).count();
        let (digits, after) = text.split_at(count);
        let value = digits.iter().filter_map(|byte| char::from(*byte).to_digit(radix));
        (count > 0, value.fold(0, |total, digit| total * radix + digit) as u8, after)
    };
    let (byte, after) = match letter {
        b'b' => (8, after),
        b't' => (9, after),
        b'n' => (10, after),
        b'v' => (11, after),
        b'f' => (12, after),
        b'r' => (13, after),
        b'0'..=b'7' => {
            let (_, low, rest) = digits(after, 2, 8);
            let shift = 3 * (after.len() - rest.len()) as u32;
            ((letter - b'0').wrapping_shl(shift) | low, rest)
        }
        b'x' => match digits(after, 2, 16) {
            (true, byte, rest) => (byte, rest),
            _ => (b'x', after),
        },
        other => (other, after),
    };
    out.push(byte);
    after
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

    fn read(text: &str, piece: usize) -> String {
        read_from(TextOrigin::Stream, text, piece)
    }

    fn read_from(origin: TextOrigin, text: &str, piece: usize) -> String {
        let dialect = TextDialect::default();
        let mut reader = TextReader::new(Pieces(text.as_bytes(), piece), origin, dialect);
        let mut shown = String::new();
        loop {
            match reader.read() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    shown += &format!("{}:{}", reader.line(), error.code());
                    break;
                }
            }
            shown += &format!("{}:", reader.line());
            for number in 0..reader.field_count() {
                match reader.field(number).unwrap() {
                    None => shown += "NULL",
                    Some(text) => shown += &format!("<{text}>"),
                }
            }
            shown.push(' ');
        }
        shown.trim_end().to_owned()
    }

    #[test]
    fn records_are_read_as_postgresql_reads_them() {
        let cases = [
            ("", ""),
            ("\n", "1:<>"),
            ("a\tb\nc\td", "1:<a><b> 2:<c><d>"),
            ("a\t\\N\r\n\\N\t\r\n", "1:<a>NULL 2:NULL<>"),
            ("\\\\N\t\\n\\t\\\\\n", "1:<\\N><\n\t\\>"),
            ("a\\\tb\tc\\\nd\n", "1:<a\tb><c\nd>"),
            ("\\101\\x42\\x4zz\\7\\q\\xg\n", "1:<AB\u{4}zz\u{7}qxg>"),
            ("\\303\\251\n", "1:<é>"),
            ("a\n\\.\nb\n", "1:<a>"),
            ("a\\", "1:<a\\>"),
        ];
        for (text, expected) in cases {
            for piece in [1, 2, 3, usize::MAX] {
                assert_eq!(read(text, piece), expected, "{text:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn a_mark_after_data_ends_the_line_or_the_records() {
        use TextOrigin::{File, Stream};
        let cases = [
            (File, "a\tb\\.\nc\td\n", "1:<a><b> 2:<c><d>"),
            (Stream, "a\tb\\.\nc\td\n", "1:<a><b>"),
            (Stream, "a\tb\\.\r\nc\td\r\n", "1:<a><b>"),
            (File, "a\tb\\.\n\\.\nc\n", "1:<a><b>"),
            (File, "a\\\\.b\n", "1:<a\\.b>"),
            (File, "a\tb\\\\\\.\n", "1:<a><b\\>"),
            (File, "a\n\\.x\nb\n", "1:<a> 2:22P04"),
            (File, "a\n\\.\\.\nb\n", "1:<a> 2:22P04"),
            (File, "a\\.b\tx\n", "1:22P04"),
            (Stream, "a\n\\.", "1:<a> 2:22P04"),
            (Stream, "a\\.", "1:22P04"),
        ];
        for (origin, text, expected) in cases {
            for piece in [1, 2, 3, usize::MAX] {
                let read = read_from(origin, text, piece);
                assert_eq!(read, expected, "{text:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        let input = Pieces(b"\\377\n", 10);
        let mut reader = TextReader::new(input, TextOrigin::File, TextDialect::default());
        assert!(reader.read().unwrap());
        assert_eq!(reader.field(0).unwrap_err().code(), "22021");
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_reads_back(
            fields in proptest::collection::vec(proptest::option::of(".{0,6}|[\\\\N.\n\r\t\u{8}|x0-9]{0,6}"), 1..4),
            delimiter in proptest::sample::select(vec![b'\t', b'|', b',']),
        ) {
            let dialect = TextDialect { delimiter, ..TextDialect::default() };
            let mut record = Vec::new();
            for (number, field) in fields.iter().enumerate() {
                if number > 0 {
                    record.push(delimiter);
                }
                dialect.write(&mut record, field.as_deref());
            }
            record.push(b'\n');
            let mut reader = TextReader::new(&record[..], TextOrigin::File, dialect);
            assert!(reader.read().unwrap());
            let read: Vec<Option<String>> = (0..reader.field_count())
                .map(|number| reader.field(number).unwrap().map(str::to_owned))
                .collect();
            assert_eq!(read, fields);
            assert!(!reader.read().unwrap());
        }
    }
}
