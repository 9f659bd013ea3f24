//! Sources of lines, which statements and the rows of COPY share.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// A source of lines. It is shared, because COPY … FROM STDIN reads its rows from the script that
/// contains the statement.
pub type Lines = Arc<Mutex<Box<dyn BufRead + Send>>>;

/// Returns a reader as a source of lines.
pub fn lines(reader: impl Read + Send + 'static) -> Lines {
    Arc::new(Mutex::new(Box::new(BufReader::with_capacity(1 << 16, reader))))
}

/// Returns standard input as a source of lines.
pub fn standard_lines() -> Lines {
    lines(std::io::stdin())
}

/// Reads a line including its terminator. Returns false at the end of the input.
pub fn read_line(lines: &Lines, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let mut reader = lines.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(reader.read_until(b'\n', line)? > 0)
}
