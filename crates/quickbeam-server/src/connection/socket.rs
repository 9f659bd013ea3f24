//! A client's socket.
//!
//! Above: the wire. Below: the operating system.
//!
//! - SOCKET-1: with a deadline, a client that sends a byte now and then does not keep its thread
//!   longer than one that sends nothing.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::{Uid, User};

/// How long a TCP connection is silent before the operating system asks whether the client is
/// there, and how long it waits between the times that it asks.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(10));

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection by TCP or by a UNIX socket.
#[derive(Debug)]
pub struct Socket {
    stream: Stream,
    /// The moment from which on reads and writes fail.
    deadline: Option<Instant>,
    /// Whether the client came by the socket in the environment's directory.
    is_of_owner: bool,
}

impl Socket {
    /// Takes a connection by TCP.
    pub fn tcp(stream: TcpStream) -> io::Result<Socket> {
        stream.set_nodelay(true)?;
        let (idle, interval) = KEEPALIVE;
        let keepalive = socket2::TcpKeepalive::new().with_time(idle).with_interval(interval);
        socket2::SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
        Ok(Socket { stream: Stream::Tcp(stream), deadline: None, is_of_owner: false })
    }

    /// Takes a connection by a UNIX socket.
    pub fn unix(stream: UnixStream) -> Socket {
        Socket { stream: Stream::Unix(stream), deadline: None, is_of_owner: false }
    }

    /// Takes a connection by the socket in the environment's directory. Another user than this
    /// process's, or root, is an error (LOCAL-1).
    pub fn of_owner(stream: UnixStream) -> io::Result<Socket> {
        let peer = Uid::from_raw(getsockopt(&stream, sockopt::PeerCredentials)?.uid());
        if peer != Uid::effective() && !peer.is_root() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Socket { is_of_owner: true, ..Socket::unix(stream) })
    }

    /// Returns whether the client came by the socket in the environment's directory.
    pub fn is_of_owner(&self) -> bool {
        self.is_of_owner
    }

    /// Returns a second handle to the same socket.
    pub fn try_clone(&self) -> io::Result<Socket> {
        let stream = match &self.stream {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
        };
        Ok(Socket { stream, deadline: None, is_of_owner: self.is_of_owner })
    }

    /// Returns the client's address; `None` for a UNIX socket.
    pub fn address(&self) -> io::Result<Option<IpAddr>> {
        match &self.stream {
            Stream::Tcp(stream) => stream.peer_addr().map(|address| Some(address.ip())),
            Stream::Unix(_) => Ok(None),
        }
    }

    /// Returns the name of the operating system's user at the other end of a UNIX socket.
    pub fn peer_user(&self) -> io::Result<Option<String>> {
        let Stream::Unix(stream) = &self.stream else { return Ok(None) };
        let credentials = getsockopt(stream, sockopt::PeerCredentials)?;
        let user = User::from_uid(Uid::from_raw(credentials.uid()))?;
        Ok(user.map(|user| user.name))
    }

    /// Returns the first byte that the client sends, which stays to be read; `None` at the end of
    /// the connection and for UNIX sockets.
    pub fn peek(&self) -> io::Result<Option<u8>> {
        let Stream::Tcp(stream) = &self.stream else { return Ok(None) };
        self.await_deadline()?;
        let mut byte = [0];
        let count = stream.peek(&mut byte)?;
        Ok((count > 0).then_some(byte[0]))
    }

    /// Waits until the client sends something, or until `bell` can be read: then false.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when the deadline has passed.
    pub fn wait_beside(&self, bell: &UnixStream, deadline: Option<Instant>) -> io::Result<bool> {
        loop {
            let timeout = match deadline {
                None => PollTimeout::NONE,
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    // At least a millisecond, and rounded up, so that the loop does not spin.
                    let left = left.as_millis().saturating_add(1);
                    PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
                }
            };
            let mut descriptors = [
                PollFd::new(self.descriptor(), PollFlags::POLLIN),
                PollFd::new(bell.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut descriptors, timeout) {
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => return Ok(descriptors[0].any().unwrap_or(true)),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }

    /// Ends what the client can send; what the server sends still arrives.
    pub fn shut_down_reads(&self) {
        // The client may be gone already.
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Read),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Read),
        };
    }

    /// Ends the connection; a thread that waits for the client returns.
    pub fn shut_down(&self) {
        // The client may be gone already.
        let _ = match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Sets the moment from which on reads and writes fail; `None` for no limit.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let had_deadline = self.deadline.is_some();
        self.deadline = deadline;
        if had_deadline && deadline.is_none() { self.set_timeouts(None) } else { Ok(()) }
    }

    fn set_timeouts(&self, timeout: Option<Duration>) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
        }
    }

    /// Lets the next call wait until the deadline, if there is one (SOCKET-1).
    fn await_deadline(&self) -> io::Result<()> {
        let Some(deadline) = self.deadline else { return Ok(()) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.set_timeouts(Some(left))
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.await_deadline()?;
        match &mut self.stream {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.await_deadline()?;
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether an error says that a deadline has passed.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}
