//! The endpoints of COPY: files, standard output, and the lines that follow the statement.
//!
//! Above: the shell. Below: files. Rows in a script follow their COPY … FROM STDIN and end at a
//! line `\.` or at the end of the script.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use quickbeam_sql::{CopyAccess, CopyPlace};

use super::say;
use crate::sql::input::lines::{Lines, read_line};

/// The current source of lines, and the state of a COPY that reads from it.
#[derive(Default)]
pub struct Input {
    pub lines: Option<Lines>,
    /// True from the first row of a COPY until the end of its rows.
    in_rows: bool,
    /// True if the statement opened its rows, even if there were none.
    pub has_read: bool,
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
    fn reader(&mut self, place: &CopyPlace, _: usize) -> io::Result<Box<dyn Read + '_>> {
        match place {
            CopyPlace::File(name) => Ok(Box::new(File::open(name)?)),
            CopyPlace::Standard => {
                if self.is_interactive {
                    say("Rows follow, one a line; \\. on a line of its own ends them.");
                }
                let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
                (input.in_rows, input.has_read) = (true, true);
                drop(input);
                Ok(Box::new(CopiedRows { input: self.input.clone(), line: Vec::new(), at: 0 }))
            }
        }
    }

    fn writer(&mut self, place: &CopyPlace, _: usize) -> io::Result<Box<dyn Write + '_>> {
        match place {
            CopyPlace::File(name) => Ok(Box::new(BufWriter::new(File::create(name)?))),
            CopyPlace::Standard => Ok(Box::new(BufWriter::new(io::stdout()))),
        }
    }
}

/// Reads lines up to the end of the rows.
struct CopiedRows {
    input: SharedInput,
    line: Vec<u8>,
    at: usize,
}

impl Read for CopiedRows {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.line.len() {
            self.at = 0;
            if !next_row(&self.input, &mut self.line)? {
                return Ok(0);
            }
        }
        let rest = &self.line[self.at..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
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
