//! Frames to and from one client.
//!
//! Above: the start of a connection and the session. Below: the socket, TLS and the encoding of
//! messages. Messages to the client collect in a buffer, which is written when it is large and when
//! the server waits for the client.
//!
//! - WIRE-1: a frame longer than the limit ends the connection before its body is read; a shorter
//!   one takes memory as its bytes arrive, not as its length announces.
//! - WIRE-2: nothing that arrived in clear is taken for a part of the encrypted connection.

use std::io::{self, Read, Write};
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use rustls::ServerConnection;

use crate::connection::socket::Socket;

/// Bytes that collect before they are written.
const WRITE_AT: usize = 8 << 10;

/// Bytes that are read at once.
const READ_BYTES: usize = 8 << 10;

/// Bytes of the type and the length of a frame.
const HEADER: usize = 5;

/// Capacity of an empty output buffer that is given back.
const KEEP_OUTPUT: usize = 64 << 10;

/// A message as it arrived.
#[derive(Debug)]
pub struct Frame {
    /// The type of the message.
    pub kind: u8,
    /// Its content.
    pub body: Bytes,
}

/// The frames of one connection.
pub struct Wire {
    /// `None` while the frames are lent.
    socket: Option<Socket>,
    tls: Option<Box<ServerConnection>>,
    input: BytesMut,
    /// Messages that have not been written yet.
    pub output: BytesMut,
    /// The most bytes of a frame's body.
    pub max_frame: usize,
    /// Nothing more is read.
    is_at_end: bool,
}

fn too_long(length: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("invalid message length {length}"))
}

impl Wire {
    /// Takes a connection that a client has just opened.
    pub fn new(socket: Socket, max_frame: usize) -> Wire {
        let (input, output) = (BytesMut::new(), BytesMut::new());
        Wire { socket: Some(socket), tls: None, input, output, max_frame, is_at_end: false }
    }

    /// Hands the connection over, leaving one that is closed.
    pub fn lend(&mut self) -> Wire {
        let closed = Wire {
            socket: None,
            tls: None,
            input: BytesMut::new(),
            output: BytesMut::new(),
            max_frame: self.max_frame,
            is_at_end: true,
        };
        std::mem::replace(self, closed)
    }

    /// Ends the connection for reads; what was answered so far can still be written.
    pub fn close(&mut self) {
        self.input.clear();
        self.is_at_end = true;
    }

    /// Returns the socket.
    pub fn socket(&self) -> io::Result<&Socket> {
        self.socket.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn socket_mut(socket: &mut Option<Socket>) -> io::Result<&mut Socket> {
        socket.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Sets the moment from which on reads and writes fail; `None` for no limit.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        Self::socket_mut(&mut self.socket)?.set_deadline(deadline)
    }

    /// Encrypts the connection from here on.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if the client has sent data in clear already (WIRE-2), or if
    /// the handshake fails.
    pub fn start_tls(&mut self, mut tls: ServerConnection) -> io::Result<()> {
        self.flush()?;
        if !self.input.is_empty() {
            let message = "received unencrypted data after SSL request";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        while tls.is_handshaking() {
            tls.complete_io(Self::socket_mut(&mut self.socket)?)?;
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Returns the TLS connection, if there is one.
    pub fn tls(&self) -> Option<&ServerConnection> {
        self.tls.as_deref()
    }

    /// Reads the next frame, writing what the client waits for first. `None` when the client has
    /// closed the connection.
    pub fn read_frame(&mut self) -> io::Result<Option<Frame>> {
        if !self.fill(HEADER)? {
            return Ok(None);
        }
        let (kind, length) = (self.input[0], self.length_at(1));
        if length < 4 || length - 4 > self.max_frame {
            return Err(too_long(length));
        }
        if !self.fill(1 + length)? {
            return Ok(None);
        }
        self.input.advance(HEADER);
        Ok(Some(Frame { kind, body: self.input.split_to(length - 4).freeze() }))
    }

    /// Reads a packet of the start of a connection, which has no type, of at most `limit` bytes.
    pub fn read_packet(&mut self, limit: usize) -> io::Result<Option<Bytes>> {
        if !self.fill(4)? {
            return Ok(None);
        }
        let length = self.length_at(0);
        if !(8..=limit).contains(&length) {
            return Err(too_long(length));
        }
        if !self.fill(length)? {
            return Ok(None);
        }
        self.input.advance(4);
        Ok(Some(self.input.split_to(length - 4).freeze()))
    }

    fn length_at(&self, at: usize) -> usize {
        let bytes = self.input.get(at..).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes) as usize)
    }

    /// Reads until `length` bytes have arrived. False if the connection ends before.
    fn fill(&mut self, length: usize) -> io::Result<bool> {
        while self.input.len() < length {
            self.flush()?;
            let mut buffer = [0; READ_BYTES];
            match self.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A client that leaves without TLS's farewell has left.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_at_end {
            return Ok(0);
        }
        let socket = Self::socket_mut(&mut self.socket)?;
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(&mut **tls, socket).read(buffer),
            None => socket.read(buffer),
        }
    }

    /// Returns whether something of the client has been read and not been taken yet.
    pub fn has_input(&mut self) -> io::Result<bool> {
        if !self.input.is_empty() {
            return Ok(true);
        }
        let Some(tls) = &mut self.tls else { return Ok(false) };
        let state = tls.process_new_packets().map_err(io::Error::other)?;
        Ok(state.plaintext_bytes_to_read() > 0)
    }

    /// Returns the type of the next frame, if it has arrived.
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
        if self.output.is_empty() {
            return Ok(());
        }
        let socket = Self::socket_mut(&mut self.socket)?;
        match &mut self.tls {
            Some(tls) => {
                let mut stream = rustls::Stream::new(&mut **tls, socket);
                stream.write_all(&self.output)?;
                stream.flush()?;
            }
            None => socket.write_all(&self.output)?,
        }
        if self.output.capacity() > KEEP_OUTPUT {
            self.output = BytesMut::new();
        }
        self.output.clear();
        Ok(())
    }
}

impl Drop for Wire {
    /// Says farewell in TLS's way and ends the connection.
    fn drop(&mut self) {
        let Some(socket) = &mut self.socket else { return };
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // The client may be gone already.
            let _ = tls.write_tls(socket);
        }
        socket.shut_down();
    }
}
