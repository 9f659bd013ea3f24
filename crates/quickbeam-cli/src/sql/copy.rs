//! The endpoints of COPY: files, standard output, and the lines that follow the statement.
//!
//! Above: the shell. Below: files. Rows in a script follow their COPY … FROM STDIN and end at a
//! line `\.` or at the end of the script.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use quickbeam_sql::{CopyAccess, CopyPlace};

use super::say;
use super::script::{Lines, read_line};

/// The current source of lines, and the state of a COPY that reads from it.
#[derive(Default)]
pub struct Input {
    pub lines: Option<Lines>,
    /// True from the first row of a COPY until the end of its rows.
    in_rows: bool,
    /// True if the statement opened its rows, even if there were none.
    pub has_read: bool,
    /// The rows are in PostgreSQL's text format.
    pub is_text: bool,
    /// Number of lines read as rows since the last statement.
    pub rows: u64,
}

/// The input state, shared by the shell and its connection.
pub type SharedInput = Arc<Mutex<Input>>;

/// COPY's access to files, standard input and standard output.
pub struct Files {
    pub input: SharedInput,
    pub is_interactive: bool,
}

impl CopyAccess for Files {
    fn reader(&mut self, place: &CopyPlace) -> io::Result<Box<dyn Read + '_>> {
        match place {
            CopyPlace::File(name) => Ok(Box::new(File::open(name)?)),
            CopyPlace::Standard => {
                if self.is_interactive {
                    say("Rows follow, one a line; \\. on a line of its own ends them.");
                }
                let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
                (input.in_rows, input.has_read) = (true, true);
                drop(input);
                Ok(Box::new(Rows { input: self.input.clone(), line: Vec::new(), at: 0 }))
            }
        }
    }

    fn writer(&mut self, place: &CopyPlace) -> io::Result<Box<dyn Write + '_>> {
        match place {
            CopyPlace::File(name) => Ok(Box::new(File::create(name)?)),
            CopyPlace::Standard => Ok(Box::new(io::stdout())),
        }
    }
}

/// Reads lines up to the end of the rows.
struct Rows {
    input: SharedInput,
    line: Vec<u8>,
    at: usize,
}

impl Read for Rows {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.line.len() {
            self.at = 0;
            if !next_row(&self.input, &mut self.line)? {
                return Ok(0);
            }
            if self.input.lock().unwrap_or_else(PoisonError::into_inner).is_text {
                self.line = csv_of_text(&self.line);
            }
        }
        let rest = &self.line[self.at..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Converts a row of PostgreSQL's text format to CSV.
fn csv_of_text(line: &[u8]) -> Vec<u8> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
    let mut record = Vec::with_capacity(line.len() + 3 * fields.len());
    for (number, field) in fields.iter().enumerate() {
        if number > 0 {
            record.push(b',');
        }
        if *field == b"\\N" {
            continue;
        }
        record.push(b'"');
        unescape(field, &mut record);
        record.push(b'"');
    }
    record.push(b'\n');
    record
}

/// Appends a field of the text format without its escapes, with doubled quotes.
fn unescape(field: &[u8], record: &mut Vec<u8>) {
    let mut rest = field;
    while let [first, after @ ..] = rest {
        let (byte, after) = match (first, after) {
            (b'\\', [letter, after @ ..]) => escaped(*letter, after),
            (plain, after) => (*plain, after),
        };
        if byte == b'"' {
            record.push(b'"');
        }
        record.push(byte);
        rest = after;
    }
}

/// Returns the byte of an escape sequence and the text after it.
fn escaped(letter: u8, after: &[u8]) -> (u8, &[u8]) {
    let number = |digits: &[u8], radix: u32| {
        let value =
            |total: u32, byte: &u8| Some(total * radix + char::from(*byte).to_digit(radix)?);
        digits.iter().try_fold(0, value).and_then(|value| u8::try_from(value & 0xff).ok())
    };
    let count = |limit: usize, radix: u32| {
        let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        after.iter().take(limit).take_while(is_digit).count()
    };
    match letter {
        b'b' => (8, after),
        b'f' => (12, after),
        b'n' => (b'\n', after),
        b'r' => (b'\r', after),
        b't' => (b'\t', after),
        b'v' => (11, after),
        b'0'..=b'7' => {
            let digits = count(2, 8);
            let first = (letter - b'0') & 7;
            let rest = number(&after[..digits], 8).unwrap_or(0);
            let shift = u32::try_from(3 * digits).unwrap_or(0);
            (first.wrapping_shl(shift) | rest, &after[digits..])
        }
        b'x' if count(2, 16) > 0 => {
            let digits = count(2, 16);
            (number(&after[..digits], 16).unwrap_or(0), &after[digits..])
        }
        other => (other, after),
    }
}

/// Reads the next row. Returns false at the end of the rows.
fn next_row(input: &SharedInput, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
    if !input.in_rows {
        return Ok(false);
    }
    let Some(lines) = input.lines.clone() else { return Ok(false) };
    let is_there = read_line(&lines, line)?;
    input.rows += u64::from(is_there);
    let is_end = !is_there || matches!(&line[..], b"\\.\n" | b"\\.\r\n" | b"\\.");
    if is_end {
        input.in_rows = false;
        line.clear();
    }
    Ok(!is_end)
}

/// Skips the rows of a COPY that failed before it read any.
pub fn skip_unread_rows(input: &SharedInput) -> io::Result<()> {
    input.lock().unwrap_or_else(PoisonError::into_inner).in_rows = true;
    skip_rows(input)
}

/// Skips the rows that a failed COPY left unread, so that they are not executed as statements.
pub fn skip_rows(input: &SharedInput) -> io::Result<()> {
    let mut line = Vec::new();
    while next_row(input, &mut line)? {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_text_format_become_csv() {
        let cases: [(&[u8], &[u8]); 6] = [
            (b"1\tone\n", b"\"1\",\"one\"\n"),
            (b"\\N\t\\\\N\t\r\n", b",\"\\N\",\"\"\n"),
            (b"a\\tb\\nc\\\\d\n", b"\"a\tb\nc\\d\"\n"),
            (b"say \"x\", y", b"\"say \"\"x\"\", y\"\n"),
            (b"\\101\\x42\\7z\\x", b"\"AB\x07zx\"\n"),
            (b"\n", b"\"\"\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(
                csv_of_text(text).escape_ascii().to_string(),
                expected.escape_ascii().to_string()
            );
        }
    }
}
