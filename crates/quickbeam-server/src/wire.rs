//! Messages to and from one client.
//!
//! Above: the session. Below: the socket and the message codec. Messages to the client collect in a
//! buffer, which is written when it is large and when the client waits for an answer.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::BytesMut;
use pgwire::messages::{DecodeContext, PgWireBackendMessage, PgWireFrontendMessage};

/// Bytes that collect before they are written.
const WRITE_AT: usize = 8 << 10;

/// Bytes that are read at once.
const READ_BYTES: usize = 8 << 10;

/// A client's socket.
#[derive(Debug)]
pub enum Stream {
    /// A connection by TCP.
    Tcp(TcpStream),
    /// A connection by a UNIX socket.
    Unix(UnixStream),
}

impl Stream {
    /// Returns a second handle to the same socket.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(match self {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        })
    }

    /// Ends the connection; a thread that waits for the client returns.
    pub fn shut_down(&self) {
        // The client may be gone already.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(std::net::Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(std::net::Shutdown::Both),
        };
    }

    /// Sets how long a read waits; `None` for ever.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(timeout),
            Stream::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        }
    }
}

/// The messages of one connection.
pub struct Wire {
    stream: Stream,
    input: BytesMut,
    /// Messages that have not been written yet.
    pub output: BytesMut,
    /// What the codec has to know to read the next message.
    pub context: DecodeContext,
}

impl Wire {
    /// Takes a connection that a client has just opened.
    pub fn new(stream: Stream) -> Wire {
        Wire {
            stream,
            input: BytesMut::new(),
            output: BytesMut::new(),
            context: DecodeContext::default(),
        }
    }

    /// Returns the socket.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Reads the next message, writing what the client waits for first. `None` when the client has
    /// closed the connection.
    pub fn read(&mut self) -> io::Result<Option<PgWireFrontendMessage>> {
        loop {
            let decoded = PgWireFrontendMessage::decode(&mut self.input, &self.context);
            match decoded {
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
                Err(error) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error.to_string()));
                }
            }
            self.flush()?;
            let mut buffer = [0; READ_BYTES];
            match self.stream.read(&mut buffer)? {
                0 => return Ok(None),
                count => self.input.extend_from_slice(&buffer[..count]),
            }
        }
    }

    /// Returns the type byte of the next message, if it has arrived.
    pub fn peek(&self) -> Option<u8> {
        self.input.first().copied()
    }

    /// Adds a message to the output.
    pub fn send(&mut self, message: &PgWireBackendMessage) -> io::Result<()> {
        message.encode(&mut self.output).map_err(|error| io::Error::other(error.to_string()))?;
        self.write_when_large()
    }

    /// Writes the output if much has collected.
    pub fn write_when_large(&mut self) -> io::Result<()> {
        if self.output.len() >= WRITE_AT { self.flush() } else { Ok(()) }
    }

    /// Writes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            self.stream.write_all(&self.output)?;
            self.output.clear();
        }
        Ok(())
    }
}
