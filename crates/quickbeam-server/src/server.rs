//! Accepting connections, and the list of those that are open.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use pgwire::messages::startup::SecretKey;
use quickbeam::Isolation;
use quickbeam_sql::{Cancel, SqlDatabase};

use crate::session;
use crate::wire::Stream;

/// How a server listens and what its sessions begin with.
///
/// ```
/// let options = quickbeam_server::ServerOptions::default();
/// assert_eq!(options.max_connections, 100);
/// ```
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The address to listen on by TCP; a loopback address. Port 0 takes a free one. None: no TCP.
    pub listen: Option<SocketAddr>,
    /// The folder to make a UNIX socket in, `.s.PGSQL.PORT`. None: no UNIX socket.
    pub socket_directory: Option<PathBuf>,
    /// The port in the UNIX socket's name.
    pub port: u16,
    /// Connections at a time. Clients beyond it are refused with SQLSTATE 53300.
    pub max_connections: usize,
    /// The isolation of transactions that do not name one.
    pub isolation: Isolation,
}

impl Default for ServerOptions {
    /// No listener, port 5432, 100 connections, read committed as in PostgreSQL.
    fn default() -> Self {
        ServerOptions {
            listen: None,
            socket_directory: None,
            port: 5432,
            max_connections: 100,
            isolation: Isolation::ReadCommitted,
        }
    }
}

/// A connection as other threads see it.
struct Peer {
    key: i32,
    cancel: Cancel,
}

/// What the threads of a server share.
pub(crate) struct Shared {
    pub database: SqlDatabase,
    pub options: ServerOptions,
    stopping: AtomicBool,
    next_number: AtomicI32,
    peers: Mutex<HashMap<i32, Peer>>,
    /// The thread of each connection, with a handle to the socket that it reads.
    threads: Mutex<Vec<(JoinHandle<()>, Stream)>>,
}

impl Shared {
    /// Enters a session into the list. Returns its number and cancel key, or `None` if there are as
    /// many sessions as there may be.
    pub fn enter(&self, cancel: Cancel) -> Option<(i32, i32)> {
        let mut peers = self.peers.lock();
        if peers.len() >= self.options.max_connections || self.is_stopping() {
            return None;
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let key = random_key();
        peers.insert(number, Peer { key, cancel });
        Some((number, key))
    }

    /// Takes a session out of the list.
    pub fn leave(&self, number: i32) {
        self.peers.lock().remove(&number);
    }

    /// Cancels the running statement of a session, if the key is its own.
    pub fn cancel(&self, number: i32, key: &SecretKey) {
        if let Some(peer) = self.peers.lock().get(&number)
            && key.eq_value(&SecretKey::I32(peer.key))
        {
            peer.cancel.cancel();
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

/// A number that other clients cannot guess: the standard library's hash keys come from the
/// operating system's random source.
fn random_key() -> i32 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0) as i32
}

/// A running server. Dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    address: Option<SocketAddr>,
    socket: Option<PathBuf>,
    listeners: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts to listen. The database stays open to the caller.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if `listen` is not a loopback address (SERVER-1) or there is
    /// nothing to listen on; errors of the operating system.
    pub fn start(database: &SqlDatabase, options: ServerOptions) -> io::Result<Server> {
        let invalid = |message: &str| io::Error::new(io::ErrorKind::InvalidInput, message);
        if options.listen.is_some_and(|address| !address.ip().is_loopback()) {
            return Err(invalid(
                "without authentication the server listens on loopback addresses only",
            ));
        }
        if options.listen.is_none() && options.socket_directory.is_none() {
            return Err(invalid(
                "there is nothing to listen on: give an address or a socket directory",
            ));
        }
        let tcp = options.listen.map(TcpListener::bind).transpose()?;
        let address = tcp.as_ref().map(TcpListener::local_addr).transpose()?;
        let port = options.port;
        let socket =
            options.socket_directory.as_ref().map(|folder| folder.join(format!(".s.PGSQL.{port}")));
        let unix = socket.as_ref().map(bind_socket).transpose()?;
        let shared = Arc::new(Shared {
            database: database.clone(),
            options,
            stopping: AtomicBool::new(false),
            next_number: AtomicI32::new(1),
            peers: Mutex::default(),
            threads: Mutex::default(),
        });
        let mut listeners = Vec::new();
        if let Some(listener) = tcp {
            let shared = shared.clone();
            listeners.push(spawn("quickbeam-tcp", move || {
                accept_all(&shared, || {
                    let (stream, _) = listener.accept()?;
                    stream.set_nodelay(true)?;
                    Ok(Stream::Tcp(stream))
                });
            })?);
        }
        if let Some(listener) = unix {
            let shared = shared.clone();
            listeners.push(spawn("quickbeam-unix", move || {
                accept_all(&shared, || listener.accept().map(|(stream, _)| Stream::Unix(stream)));
            })?);
        }
        Ok(Server { shared, address, socket, listeners })
    }

    /// Returns the TCP address, with the port that was taken.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns the number of open sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.shared.peers.lock().len()
    }

    /// Stops listening, cancels running statements, ends every session and waits for its thread.
    /// Transactions that have not committed are rolled back.
    pub fn stop(self) {
        drop(self);
    }

    fn end(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // A listener looks at the flag when the next client comes.
        if let Some(address) = self.address {
            drop(std::net::TcpStream::connect(address));
        }
        if let Some(socket) = &self.socket {
            drop(std::os::unix::net::UnixStream::connect(socket));
        }
        for listener in self.listeners.drain(..) {
            // A listener that panicked has ended as well.
            let _ = listener.join();
        }
        self.shared.peers.lock().values().for_each(|peer| peer.cancel.cancel());
        let threads = std::mem::take(&mut *self.shared.threads.lock());
        threads.iter().for_each(|(_, stream)| stream.shut_down());
        for (thread, _) in threads {
            let _ = thread.join();
        }
        if let Some(socket) = &self.socket {
            // It may have been removed meanwhile.
            let _ = std::fs::remove_file(socket);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Makes the UNIX socket. One that a server left which has ended is replaced.
fn bind_socket(path: &PathBuf) -> io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}

/// Serves each client on a thread of its own until the server stops.
fn accept_all(shared: &Arc<Shared>, mut accept: impl FnMut() -> io::Result<Stream>) {
    while !shared.is_stopping() {
        // An error concerns one client, or passes when descriptors are free again.
        let Ok(stream) = accept() else {
            std::thread::sleep(std::time::Duration::from_millis(10));
            continue;
        };
        if shared.is_stopping() {
            return;
        }
        let Ok(handle) = stream.try_clone() else { continue };
        let of_thread = shared.clone();
        let thread = spawn("quickbeam-session", move || session::serve(&of_thread, stream));
        let mut threads = shared.threads.lock();
        threads.retain(|(thread, _)| !thread.is_finished());
        // Without a thread the client sees the connection close.
        threads.extend(thread.ok().map(|thread| (thread, handle)));
    }
}
