//! COPY … FROM STDIN and TO STDOUT over the connection.
//!
//! Above: statements. Below: the wire. While a COPY runs, it has the wire; the session takes it
//! back when the statement has ended.
//!
//! - COPY-1: rows stream: neither side is held in memory beyond a message.
//! - COPY-2: files of the server are neither read nor written.

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes};
use parking_lot::{Mutex, MutexGuard};
use quickbeam_sql::{BinaryCodec, CopyAccess, CopyPlace, SqlError, SqlState};

use crate::protocol::frontend::{FrontendMessage, decode};
use crate::protocol::types::BINARY_CODEC;
use crate::protocol::wire::Wire;

/// The wire that a COPY has, and what became of it.
#[derive(Default)]
pub struct Lent {
    wire: Option<Wire>,
    /// The next COPY is in the binary format.
    is_binary: bool,
    /// Rows were sent, and the client waits for their end.
    has_written: bool,
}

/// Where a session leaves its wire for a COPY.
pub type SharedLent = Arc<Mutex<Lent>>;

/// Runs a statement that may be a COPY over the wire.
pub fn with_wire<T, E>(
    lent: &SharedLent,
    wire: &mut Wire,
    run: impl FnOnce() -> Result<T, E>,
) -> io::Result<Result<T, E>> {
    lent.lock().wire = Some(wire.lend());
    let result = run();
    let mut lent = lent.lock();
    if let Some(back) = lent.wire.take() {
        *wire = back;
    }
    if std::mem::take(&mut lent.has_written) && result.is_ok() {
        put_message(wire, b'c', &[]);
    }
    drop(lent);
    wire.write_when_large()?;
    Ok(result)
}

/// COPY's access to the connection of a session.
pub struct CopyOverWire(pub SharedLent);

fn not_on_the_server() -> io::Error {
    let message = "files of the server cannot be read or written by COPY";
    let error = SqlError::new(SqlState::InsufficientPrivilege, message);
    io::Error::new(io::ErrorKind::PermissionDenied, error)
}

fn put_message(wire: &mut Wire, kind: u8, body: &[u8]) {
    wire.output.put_u8(kind);
    wire.output.put_u32(body.len() as u32 + 4);
    wire.output.put_slice(body);
}

/// Tells the client that rows may come, or will, and in which format.
fn begin(lent: &mut Lent, kind: u8, columns: usize) -> io::Result<()> {
    let columns = u16::try_from(columns).unwrap_or(u16::MAX);
    let format = u8::from(std::mem::take(&mut lent.is_binary));
    let mut body = vec![format];
    body.put_u16(columns);
    (0..columns).for_each(|_| body.put_u16(format.into()));
    put_message(wire_of(lent)?, kind, &body);
    Ok(())
}

impl CopyAccess for CopyOverWire {
    fn binary(&mut self) -> Option<BinaryCodec> {
        self.0.lock().is_binary = true;
        Some(BINARY_CODEC)
    }

    fn reader(&mut self, place: &CopyPlace, columns: usize) -> io::Result<Box<dyn Read + '_>> {
        if *place != CopyPlace::Standard {
            self.0.lock().is_binary = false;
            return Err(not_on_the_server());
        }
        let mut lent = self.0.lock();
        begin(&mut lent, b'G', columns)?;
        Ok(Box::new(Input { lent, data: Bytes::new(), is_done: false }))
    }

    fn writer(&mut self, place: &CopyPlace, columns: usize) -> io::Result<Box<dyn Write + '_>> {
        if *place != CopyPlace::Standard {
            self.0.lock().is_binary = false;
            return Err(not_on_the_server());
        }
        let mut lent = self.0.lock();
        begin(&mut lent, b'H', columns)?;
        lent.has_written = true;
        Ok(Box::new(Output { lent }))
    }
}

/// Returns the wire. A COPY within another statement, which the session did not see, has none.
fn wire_of(lent: &mut Lent) -> io::Result<&mut Wire> {
    lent.wire.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
}

/// The data that the client sends.
struct Input<'l> {
    lent: MutexGuard<'l, Lent>,
    data: Bytes,
    is_done: bool,
}

fn failed(state: SqlState, message: String) -> io::Error {
    io::Error::other(SqlError::new(state, message))
}

impl Input<'_> {
    /// Reads the next data; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        loop {
            let wire = wire_of(&mut self.lent)?;
            let Some(frame) = wire.read_frame()? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let kind = frame.kind;
            match decode(kind, frame.body) {
                Ok(FrontendMessage::CopyData(data)) => {
                    self.data = data;
                    return Ok(true);
                }
                Ok(FrontendMessage::CopyDone) => return Ok(false),
                Ok(FrontendMessage::CopyFail(reason)) => {
                    let message = format!("COPY from stdin failed: {reason}");
                    return Err(failed(SqlState::QueryCanceled, message));
                }
                // A client that prepared the statement sends them before the data.
                Ok(FrontendMessage::Flush | FrontendMessage::Sync) => {}
                Ok(FrontendMessage::Terminate) => {
                    wire.close();
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                Ok(_) | Err(_) => {
                    // The client believes that COPY has ended, so what follows is not data.
                    wire.close();
                    let message =
                        format!("unexpected message type 0x{kind:02X} during COPY from stdin");
                    return Err(failed(SqlState::ProtocolViolation, message));
                }
            }
        }
    }
}

impl Read for Input<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.data.is_empty() && !self.is_done {
            self.is_done = !self.fill()?;
        }
        let count = self.data.len().min(out.len());
        self.data.copy_to_slice(&mut out[..count]);
        Ok(count)
    }
}

/// The rows that go to the client, each as a message.
struct Output<'l> {
    lent: MutexGuard<'l, Lent>,
}

impl Write for Output<'_> {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        let wire = wire_of(&mut self.lent)?;
        put_message(wire, b'd', record);
        wire.write_when_large()?;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
