//! Buffered output: standard output, a file or a pager. Its errors name it.

use std::io::{self, BufWriter, Write};
use std::process::Child;

/// Buffered output. Callers must call `finish`: dropping it would discard the last error.
pub struct Output {
    inner: BufWriter<Box<dyn Write>>,
    name: String,
    /// The process that reads the output.
    pager: Option<Child>,
}

impl Output {
    /// Returns an output to standard output.
    pub fn new() -> Output {
        Output::to(Box::new(io::stdout()), "standard output".to_owned(), None)
    }

    /// Returns an output to a writer, which errors call `name`.
    pub fn to(writer: Box<dyn Write>, name: String, pager: Option<Child>) -> Output {
        Output { inner: BufWriter::with_capacity(1 << 16, writer), name, pager }
    }

    /// Returns true if a pager reads the output. The user may quit it before the end.
    pub fn is_paged(&self) -> bool {
        self.pager.is_some()
    }

    /// Flushes the buffer, closes the output and waits for the pager.
    pub fn finish(mut self) -> io::Result<()> {
        let flushed = self.flush();
        let Some(mut pager) = self.pager.take() else { return flushed };
        drop(self);
        pager.wait()?;
        match flushed {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }

    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("cannot write {}: {error}", self.name))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes).map_err(|error| self.named(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush().map_err(|error| self.named(error))
    }
}

/// Returns an error with its causes. An error whose text includes its cause's is not followed by
/// that cause.
pub fn chain(error: &anyhow::Error) -> String {
    let mut shown = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if shown.is_empty() {
            shown = cause;
        } else if !shown.contains(&cause) {
            shown = format!("{shown}: {cause}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::chain;

    #[test]
    fn cause_is_shown_once() {
        let inner = anyhow!("disk full").context("cannot write: disk full").context("no commit");
        assert_eq!(chain(&inner), "no commit: cannot write: disk full");
    }
}
