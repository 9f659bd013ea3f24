//! Buffered standard output whose errors name standard output.

use std::io::{self, BufWriter, Stdout, Write};

/// Buffered standard output. Callers must call `finish`: dropping it would discard the last error.
pub struct Output {
    inner: BufWriter<Stdout>,
}

impl Output {
    pub fn new() -> Output {
        Output { inner: BufWriter::with_capacity(1 << 16, io::stdout()) }
    }

    /// Flushes the buffer.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush().map_err(named)
    }
}

fn named(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write standard output to its end: {error}"))
}
