//! Accepting connections, and the list of those that are open.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use quickbeam::{Isolation, SOCKET_FILE};
use quickbeam_sql::{
    Cancel, SessionActivity, SessionDirectory, SessionSignal, SqlDatabase, StatementStatistics,
};
use subtle::ConstantTimeEq;

use crate::authentication::Access;
use crate::connection::socket::Socket;
use crate::monitor::audit::AuditLog;
use crate::monitor::log::LogSettings;
use crate::monitor::statements::StatementTable;
use crate::monitor::{Activity, Counters, Watched, http};
use crate::options::ServerOptions;
use crate::session;

/// Connections beyond twice the sessions: cancel requests come when there are many.
const SPARE_CONNECTIONS: usize = 8;

/// How long sessions have to tell their clients that the server stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// A session as other threads see it.
pub(crate) struct Peer {
    pub key: Vec<u8>,
    pub user: String,
    pub cancel: Cancel,
    pub activity: Arc<Activity>,
    /// Another session has asked it to end.
    pub is_terminated: Arc<AtomicBool>,
    /// A second handle to its socket.
    pub socket: Socket,
}

impl Peer {
    /// Ends the session. One that still does not hear it, because its client reads nothing, loses
    /// its socket when it is asked again.
    fn terminate(&self) {
        let is_asked_again = self.is_terminated.swap(true, Ordering::SeqCst);
        self.cancel.cancel();
        if is_asked_again {
            self.socket.shut_down();
        } else {
            self.socket.shut_down_reads();
        }
    }
}

/// The sessions of a server, by their numbers, and what is counted of their statements.
pub(crate) struct Peers {
    sessions: Mutex<HashMap<i32, Peer>>,
    pub statements: StatementTable,
}

impl SessionDirectory for Peers {
    fn activities(&self) -> Vec<SessionActivity> {
        let mut all: Vec<SessionActivity> =
            self.sessions.lock().values().map(|peer| peer.activity.get()).collect();
        all.sort_by_key(|activity| activity.number);
        all
    }

    fn signal(&self, number: i32, signal: SessionSignal) -> bool {
        let peers = self.sessions.lock();
        let Some(peer) = peers.get(&number) else { return false };
        match signal {
            SessionSignal::Cancel => peer.cancel.cancel(),
            SessionSignal::Terminate => peer.terminate(),
        }
        true
    }

    fn statements(&self) -> Vec<StatementStatistics> {
        self.statements.all()
    }
}

/// What the threads of a server share.
pub(crate) struct Shared {
    pub database: SqlDatabase,
    pub isolation: Isolation,
    pub authentication_timeout: Duration,
    pub max_message_bytes: usize,
    pub log: LogSettings,
    pub counters: Counters,
    pub audit: Option<AuditLog>,
    max_connections: usize,
    max_connections_per_user: Option<usize>,
    access: Mutex<Arc<Access>>,
    stopping: AtomicBool,
    /// Connections that have a thread, with those that are not authenticated yet.
    open: AtomicUsize,
    pub peers: Arc<Peers>,
    /// The thread of each connection, with a handle to the socket that it reads.
    threads: Mutex<Vec<Running>>,
}

/// The thread of a connection.
struct Running {
    thread: JoinHandle<()>,
    /// A second handle to its socket.
    socket: Socket,
    /// Whether it waits for its client.
    is_idle: Arc<AtomicBool>,
}

/// A session's place in the list, which it leaves however it ends.
pub(crate) struct Place<'s> {
    shared: &'s Shared,
    number: i32,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.peers.sessions.lock().remove(&self.number);
    }
}

impl Shared {
    /// Returns who may connect, as of now.
    pub fn access(&self) -> Arc<Access> {
        self.access.lock().clone()
    }

    /// Enters a session into the list, or returns why it cannot be.
    pub fn enter(&self, peer: Peer, role_limit: Option<usize>) -> Result<Place<'_>, String> {
        let (number, user) = (peer.activity.get().number, &peer.user);
        let mut peers = self.peers.sessions.lock();
        if peers.len() >= self.max_connections {
            return Err("sorry, too many clients already".to_owned());
        }
        let limits = [self.max_connections_per_user, role_limit];
        if let Some(most) = limits.into_iter().flatten().min()
            && peers.values().filter(|other| other.user == *user).count() >= most
        {
            return Err(format!("too many connections for role \"{user}\""));
        }
        peers.insert(number, peer);
        self.counters.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(Place { shared: self, number })
    }

    /// Cancels the running statement of a session, if the key is its own.
    pub fn cancel(&self, number: i32, key: &[u8]) {
        if let Some(peer) = self.peers.sessions.lock().get(&number)
            && bool::from(peer.key.ct_eq(key))
        {
            peer.cancel.cancel();
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }
}

impl Watched for Shared {
    fn database(&self) -> &SqlDatabase {
        &self.database
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn activities(&self) -> Vec<SessionActivity> {
        self.peers.activities()
    }

    fn is_stopping(&self) -> bool {
        Shared::is_stopping(self)
    }

    fn statements(&self) -> Vec<StatementStatistics> {
        self.peers.statements()
    }

    fn audit_failures(&self) -> u64 {
        self.audit.as_ref().map_or(0, AuditLog::failures)
    }
}

/// A running server. Dropping it stops it.
pub struct Server {
    shared: Arc<Shared>,
    address: Option<SocketAddr>,
    monitor: Option<SocketAddr>,
    sockets: Vec<PathBuf>,
    listeners: Vec<JoinHandle<()>>,
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Refuses to listen for other machines that no rule admits (SERVER-1).
fn check_access(listen: Option<SocketAddr>, access: &Access) -> io::Result<()> {
    let is_near = listen.is_none_or(|address| address.ip().is_loopback());
    if is_near || access.effective_rules().admits_other_machines() {
        return Ok(());
    }
    Err(invalid("beyond loopback addresses the server listens only with users or access rules"))
}

impl Server {
    /// Starts to listen. The database stays open to the caller.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if there is nothing to listen on, or if it would listen for
    /// other machines without authentication (SERVER-1); errors of the operating system.
    pub fn start(database: &SqlDatabase, options: ServerOptions) -> io::Result<Server> {
        let folders = (&options.socket_directory, &options.environment_directory);
        if options.listen.is_none() && matches!(folders, (None, None)) {
            return Err(invalid(
                "there is nothing to listen on: give an address or a socket directory",
            ));
        }
        check_access(options.listen, &options.access)?;
        let tcp = options.listen.map(TcpListener::bind).transpose()?;
        let address = tcp.as_ref().map(TcpListener::local_addr).transpose()?;
        let http = options.monitor.map(TcpListener::bind).transpose()?;
        let monitor = http.as_ref().map(TcpListener::local_addr).transpose()?;
        let audit = options.audit.as_ref().map(|(level, file)| AuditLog::open(*level, file));
        let audit = audit.transpose()?;
        let port = options.port;
        let public = folders.0.as_ref().map(|folder| folder.join(format!(".s.PGSQL.{port}")));
        let own = folders.1.as_ref().map(|directory| directory.join(SOCKET_FILE));
        let unix = public.as_ref().map(bind_socket).transpose()?;
        let in_directory = own.as_ref().map(bind_own_socket).transpose();
        // A socket without a listener would look like a server that has crashed.
        let in_directory = in_directory.inspect_err(|_| remove_sockets(public.as_slice()))?;
        let sockets = public.into_iter().chain(own).collect();
        if options.backup_directory.is_some() {
            database.set_backup_directory(options.backup_directory);
        }
        let peers = Arc::new(Peers {
            sessions: Mutex::default(),
            statements: StatementTable::new(options.track_statements),
        });
        database.set_session_directory(peers.clone());
        let shared = Arc::new(Shared {
            database: database.clone(),
            isolation: options.isolation,
            authentication_timeout: options.authentication_timeout,
            max_message_bytes: options.max_message_bytes,
            max_connections: options.max_connections,
            max_connections_per_user: options.max_connections_per_user,
            access: Mutex::new(Arc::new(options.access)),
            stopping: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            peers,
            log: options.log,
            counters: Counters::default(),
            audit,
            threads: Mutex::default(),
        });
        let mut listeners = Vec::new();
        if let Some(listener) = tcp {
            let shared = shared.clone();
            listeners.push(spawn("quickbeam-tcp", move || {
                accept_all(&shared, || Socket::tcp(listener.accept()?.0));
            })?);
        }
        if let Some(listener) = unix {
            let shared = shared.clone();
            listeners.push(spawn("quickbeam-unix", move || {
                accept_all(&shared, || listener.accept().map(|(stream, _)| Socket::unix(stream)));
            })?);
        }
        if let Some(listener) = in_directory {
            let shared = shared.clone();
            listeners.push(spawn("quickbeam-directory", move || {
                accept_all(&shared, || Socket::of_owner(listener.accept()?.0));
            })?);
        }
        if let (Some(listener), Some(monitor)) = (http, monitor) {
            let shared = shared.clone();
            let is_near = monitor.ip().is_loopback();
            listeners.push(spawn("quickbeam-monitor", move || {
                http::serve(&*shared, &listener, is_near);
            })?);
        }
        Ok(Server { shared, address, monitor, sockets, listeners })
    }

    /// Returns the TCP address, with the port that was taken.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns the address of the status page and the metrics, with the port that was taken.
    #[must_use]
    pub fn monitor(&self) -> Option<SocketAddr> {
        self.monitor
    }

    /// Returns the number of open sessions.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.shared.peers.sessions.lock().len()
    }

    /// Changes who may connect and how, for connections from now on: new users, rules, certificate.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] as for [`Server::start`]; then nothing changes.
    pub fn set_access(&self, access: Access) -> io::Result<()> {
        check_access(self.address, &access)?;
        *self.shared.access.lock() = Arc::new(access);
        Ok(())
    }

    /// Opens the file of the audit log by its name again, after another program has renamed it.
    ///
    /// # Errors
    /// Those of the operating system; then the log goes on in the old file.
    pub fn reopen_audit_log(&self) -> io::Result<()> {
        self.shared.audit.as_ref().map_or(Ok(()), AuditLog::reopen)
    }

    /// Stops listening, cancels running statements, ends every session and waits for its thread.
    /// Transactions that have not committed are rolled back.
    pub fn stop(self) {
        drop(self);
    }

    /// Stops like [`stop`](Self::stop), but lets running statements go on for so long. Sessions
    /// that are idle, or in a transaction without a statement, end at once; all of them hear why
    /// (SQLSTATE 57P01).
    pub fn drain(mut self, patience: Duration) {
        self.end(patience);
    }

    fn end(&mut self, patience: Duration) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // A listener looks at the flag when the next client comes.
        for address in self.address.into_iter().chain(self.monitor) {
            drop(std::net::TcpStream::connect(reachable(address)));
        }
        for socket in &self.sockets {
            drop(std::os::unix::net::UnixStream::connect(socket));
        }
        for listener in self.listeners.drain(..) {
            // A listener that panicked has ended as well.
            let _ = listener.join();
        }
        let threads = std::mem::take(&mut *self.shared.threads.lock());
        let idle = threads.iter().filter(|one| one.is_idle.load(Ordering::SeqCst));
        idle.for_each(|one| one.socket.shut_down_reads());
        wait_for(&threads, patience);
        self.shared.peers.sessions.lock().values().for_each(|peer| peer.cancel.cancel());
        threads.iter().for_each(|one| one.socket.shut_down_reads());
        wait_for(&threads, FAREWELL);
        threads.iter().for_each(|one| one.socket.shut_down());
        for one in threads {
            // A thread that panicked has ended as well.
            let _ = one.thread.join();
        }
        remove_sockets(&self.sockets);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

/// Waits until the threads have ended, at most for so long.
fn wait_for(threads: &[Running], patience: Duration) {
    let deadline = Instant::now().checked_add(patience);
    while threads.iter().any(|one| !one.thread.is_finished()) {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the address by which this machine reaches a listener.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
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

/// Makes a UNIX socket that only this user can open.
fn bind_own_socket(path: &PathBuf) -> io::Result<UnixListener> {
    let listener = bind_socket(path)?;
    // Until then, and on systems that ignore the mode of a socket, LOCAL-1 holds by the check of
    // each client.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

fn remove_sockets(sockets: &[PathBuf]) {
    for socket in sockets {
        // It may have been removed meanwhile.
        let _ = std::fs::remove_file(socket);
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}

/// Counts a connection for as long as it has a thread.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves each client on a thread of its own until the server stops.
fn accept_all(shared: &Arc<Shared>, mut accept: impl FnMut() -> io::Result<Socket>) {
    while !shared.is_stopping() {
        // An error concerns one client, or passes when descriptors are free again.
        let Ok(socket) = accept() else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        if shared.is_stopping() {
            return;
        }
        let open = shared.open.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(shared.clone());
        if open >= 2 * shared.max_connections + SPARE_CONNECTIONS {
            shared.counters.refused.fetch_add(1, Ordering::Relaxed);
            session::turn_away(socket);
            continue;
        }
        let Ok(handle) = socket.try_clone() else { continue };
        let is_idle = Arc::new(AtomicBool::new(true));
        let idle = is_idle.clone();
        let thread = spawn("quickbeam-session", move || session::serve(&counted.0, socket, &idle));
        let mut threads = shared.threads.lock();
        threads.retain(|one| !one.thread.is_finished());
        // Without a thread the client sees the connection close.
        threads.extend(thread.ok().map(|thread| Running { thread, socket: handle, is_idle }));
    }
}
