//! One connection: requests of the simple and the extended protocol, and the state of its
//! transaction.
//!
//! Above: the server's threads. Below: statements and the wire.
//!
//! - SESSION-1: after an error in a transaction block every statement but its end fails with 25P02.
//! - SESSION-2: after an error in the extended protocol messages are skipped up to Sync.
//! - SESSION-3: statements up to a Sync, and those of one simple query, are one transaction unless
//!   the client begins and ends its own.

mod audited;
pub(super) mod copy;
mod events;
mod portal_commands;
pub(super) mod statement;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgwire::messages::PgWireBackendMessage as Backend;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    BindComplete, CloseComplete, MESSAGE_TYPE_BYTE_SYNC, ParseComplete, PortalSuspended,
};
use pgwire::messages::response::{
    CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus,
};
use quickbeam::query_layer::set_thread_owner;
use quickbeam_sql::catalog::BOOTSTRAP_NAME;
use quickbeam_sql::{Connection, DataType, PortalCommand, Value, split_statements};

use self::copy::{CopyOverWire, SharedLent};
use self::statement::{Done, Ended, Portal, Prepared, SharedPrepared, Stop, io};
use crate::authentication::{Refusal, random};
use crate::connection::socket::{Socket, is_timeout};
use crate::connection::startup::{
    AdmittedClient, MAX_PACKET, Opening, read_opening, refuse, send_setting, welcome,
};
use crate::local::control;
use crate::monitor::Activity;
use crate::monitor::log::LoggedSession;
use crate::monitor::statements::Execution;
use crate::protocol::failure::Failure;
use crate::protocol::frontend::{Bind, FrontendMessage, Malformed, Target, decode};
use crate::protocol::rows::{Formats, description, result_columns};
use crate::protocol::tag::Tag;
use crate::protocol::types::{declared_type, wire_type};
use crate::protocol::wire::Wire;
use crate::server::{Peer, Shared};
use crate::session::portal_commands::Description;

/// The settings whose values a client is sent, at the start and whenever they change.
const REPORTED: [&str; 13] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// Serves a client until it leaves. An error of the socket ends the session silently: there is no
/// way left to report it.
pub fn serve(shared: &Shared, socket: Socket, is_idle: &AtomicBool) {
    let mut wire = Wire::new(socket, MAX_PACKET);
    let access = shared.access();
    match read_opening(&mut wire, &access, &shared.database, shared.authentication_timeout) {
        Ok(Opening::Session(client)) => {
            // The client has gone, or hears of the failure.
            let _ = run_session(shared, wire, &client, is_idle);
        }
        Ok(Opening::Cancel(number, key)) => shared.cancel(number, &key),
        Ok(Opening::Refused(user, Refusal(code, message))) => {
            if let Some(audit) = &shared.audit {
                let address = wire.socket().and_then(|socket| socket.address()).ok().flatten();
                let address = address.map(|address| address.to_string());
                audit.refused(&user, address.as_deref(), (code, &message));
            }
        }
        Ok(Opening::Nothing) | Err(_) => {}
    }
}

/// Refuses a client for whom there is no thread.
pub fn turn_away(socket: Socket) {
    let mut wire = Wire::new(socket, 0);
    // A new socket takes a short message without waiting for the client.
    let _ = refuse(&mut wire, "53300", "sorry, too many clients already");
}

/// Returns how many sessions of its role there may be at a time; superusers have no limit.
fn limit_of(client: &AdmittedClient) -> Option<usize> {
    client.role.as_ref().filter(|role| !role.is_superuser)?.connection_limit
}

fn run_session(
    shared: &Shared,
    mut wire: Wire,
    client: &AdmittedClient,
    is_idle: &AtomicBool,
) -> io::Result<()> {
    wire.max_frame = shared.max_message_bytes;
    let connection = shared.database.connect();
    connection.keep_notices();
    connection.set_isolation(shared.isolation);
    let role = client.role.as_ref().map_or(BOOTSTRAP_NAME, |_| &*client.user);
    if let Err(error) = connection.log_in(role) {
        return refuse(&mut wire, error.code(), error.message());
    }
    let key = random::<32>()?[..client.key_bytes].to_vec();
    let (number, cancel) = (connection.session_id(), connection.cancel_handle());
    set_thread_owner(u64::from(number.unsigned_abs()));
    let address = wire.socket()?.address()?.map(|address| address.to_string());
    let activity = Arc::new(Activity::new(number, &client.user, address.clone()));
    let is_terminated = Arc::new(AtomicBool::new(false));
    let peer = Peer {
        key: key.clone(),
        user: client.user.clone(),
        cancel,
        activity: activity.clone(),
        is_terminated: is_terminated.clone(),
        socket: wire.socket()?.try_clone()?,
    };
    let _place = match shared.enter(peer, limit_of(client)) {
        Ok(place) => place,
        Err(message) => {
            shared.counters.refused.fetch_add(1, Ordering::Relaxed);
            return refuse(&mut wire, "53300", &message);
        }
    };
    for (name, value) in &client.settings {
        if let Err(error) = connection.set_setting(name, value) {
            return refuse(&mut wire, error.code(), error.message());
        }
    }
    connection.keep_settings();
    let lent = SharedLent::default();
    connection.set_copy_access(CopyOverWire(lent.clone()));
    if wire.socket()?.is_of_owner() {
        let database = shared.database.clone();
        connection.set_control(move |command, argument| control::run(&database, command, argument));
    }
    let mut session = Session {
        shared,
        is_idle,
        connection: &connection,
        bell: None,
        wire,
        lent,
        user: client.user.clone(),
        has_role: client.role.is_some(),
        statements: HashMap::new(),
        portals: HashMap::new(),
        reported: Vec::new(),
        settings_version: 0,
        has_failed: false,
        is_implicit: false,
        is_skipping: false,
        rows: 0,
        is_terminated,
        activity,
    };
    let logged = LoggedSession { number, user: &client.user };
    log_connection(shared, "session began", logged, address.as_deref());
    let ended = session.run(number, &key);
    log_connection(shared, "session ended", logged, address.as_deref());
    ended
}

/// Logs the begin or the end of a session where it is wanted.
fn log_connection(shared: &Shared, event: &str, session: LoggedSession<'_>, address: Option<&str>) {
    shared.log.connection(event, session, address);
    if let Some(audit) = &shared.audit {
        audit.connection(event, session, address);
    }
}

struct Session<'c> {
    shared: &'c Shared,
    /// Tells the server that the session waits for its client.
    is_idle: &'c AtomicBool,
    connection: &'c Connection,
    /// What rings for notifications, once the session listens.
    bell: Option<events::Bell>,
    wire: Wire,
    user: String,
    /// Whether the user is a role of the database.
    has_role: bool,
    /// Where a COPY finds the wire.
    lent: SharedLent,
    statements: HashMap<String, SharedPrepared>,
    portals: HashMap<String, Portal<'c>>,
    /// The settings that the client knows, with their values.
    reported: Vec<(&'static str, String)>,
    /// The version of the settings that were reported.
    settings_version: u64,
    /// A statement of the transaction block failed.
    has_failed: bool,
    /// The open transaction was not begun by the client; it ends with the request.
    is_implicit: bool,
    /// An error came in the extended protocol: everything up to Sync is skipped.
    is_skipping: bool,
    /// The rows that the last statement returned or changed.
    rows: u64,
    /// Another session has asked this one to end.
    is_terminated: Arc<AtomicBool>,
    /// What other threads see of it.
    activity: Arc<Activity>,
}

impl<'c> Session<'c> {
    fn run(&mut self, number: i32, key: &[u8]) -> io::Result<()> {
        self.reported = self.settings();
        self.show_application_name();
        self.settings_version = self.connection.settings_version();
        welcome(&mut self.wire, &self.reported, number, key)?;
        self.send_notices()?;
        self.ready()?;
        loop {
            let frame = match self.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) if self.is_ending() => {
                    let message = "terminating connection due to administrator command";
                    return refuse(&mut self.wire, "57P01", message);
                }
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return refuse(&mut self.wire, "08P01", &error.to_string());
                }
                Err(error) if is_timeout(&error) => {
                    let (code, message) = self.idle_timeout().1;
                    self.wire.set_deadline(None)?;
                    return refuse(&mut self.wire, code, message);
                }
                Err(error) => return Err(error),
            };
            match decode(frame.kind, frame.body) {
                Ok(FrontendMessage::Terminate) => return Ok(()),
                Ok(message) => self.handle(message)?,
                Err(Malformed { code, message, is_fatal: true }) => {
                    return refuse(&mut self.wire, code, &message);
                }
                // The frames are whole: the session goes on at the next one.
                Err(malformed) => self.reject(frame.kind, malformed)?,
            }
        }
    }

    /// Returns whether the session is to end, with the server or alone.
    fn is_ending(&self) -> bool {
        self.shared.is_stopping() || self.is_terminated.load(Ordering::SeqCst)
    }

    /// Reads the next frame, waiting as long as the settings of the session allow.
    fn next_frame(&mut self) -> io::Result<Option<crate::protocol::wire::Frame>> {
        self.is_idle.store(true, Ordering::SeqCst);
        if self.is_ending() {
            return Ok(None);
        }
        let (patience, _) = self.idle_timeout();
        let frame = if self.wire.peek().is_some() {
            self.wire.read_frame()?
        } else {
            let deadline = patience.and_then(|patience| Instant::now().checked_add(patience));
            self.wait_for_client(deadline)?;
            self.wire.set_deadline(deadline)?;
            let frame = self.wire.read_frame()?;
            self.wire.set_deadline(None)?;
            frame
        };
        self.is_idle.store(false, Ordering::SeqCst);
        Ok(frame)
    }

    /// Returns how long the client may be idle now, and the error if it is longer.
    fn idle_timeout(&self) -> (Option<Duration>, (&'static str, &'static str)) {
        let (name, error) = if self.connection.in_transaction() {
            let message = "terminating connection due to idle-in-transaction timeout";
            ("idle_in_transaction_session_timeout", ("25P03", message))
        } else {
            let message = "terminating connection due to idle-session timeout";
            ("idle_session_timeout", ("57P05", message))
        };
        (self.connection.timeout(name), error)
    }

    /// Reports a message that cannot be decoded.
    fn reject(&mut self, kind: u8, malformed: Malformed) -> io::Result<()> {
        let failure = Failure::new(malformed.code, malformed.message);
        if kind == b'Q' {
            self.report(Err(failure.into()), "", 0)?;
            let ended = self.end_implicit();
            self.report(ended, "", 0)?;
            return self.ready();
        }
        if !self.is_skipping {
            self.is_skipping = self.report(Err(failure.into()), "", 0)?;
        }
        Ok(())
    }

    /// Returns the values of the reported settings.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let value = |name: &'static str| {
            let value = match name {
                // A user without a role acts as the bootstrap role.
                "session_authorization" if !self.has_role => Some(self.user.clone()),
                _ => self.connection.setting(name).ok().flatten(),
            };
            Some((name, value?))
        };
        REPORTED.into_iter().filter_map(value).collect()
    }

    /// Tells the client the settings that have changed.
    fn report_settings(&mut self) -> io::Result<()> {
        let version = self.connection.settings_version();
        if std::mem::replace(&mut self.settings_version, version) == version {
            return Ok(());
        }
        let settings = self.settings();
        for changed in settings.iter().filter(|setting| !self.reported.contains(setting)) {
            send_setting(&mut self.wire, changed.0, &changed.1)?;
        }
        self.reported = settings;
        self.show_application_name();
        Ok(())
    }

    fn show_application_name(&self) {
        let known = self.reported.iter().find(|(name, _)| *name == "application_name");
        self.activity.set_application_name(known.map_or("", |(_, value)| value));
    }

    fn handle(&mut self, message: FrontendMessage) -> io::Result<()> {
        match message {
            FrontendMessage::Sync => {
                self.is_skipping = false;
                let ended = self.end_implicit();
                self.report(ended, "", 0)?;
                if !self.connection.in_transaction() {
                    self.portals.clear();
                }
                self.ready()
            }
            FrontendMessage::Query(query) => {
                self.is_skipping = false;
                self.simple_query(&query)?;
                self.ready()
            }
            _ if self.is_skipping => Ok(()),
            FrontendMessage::Flush => self.wire.flush(),
            // What is left of a COPY that has failed.
            FrontendMessage::CopyData(_)
            | FrontendMessage::CopyDone
            | FrontendMessage::CopyFail(_) => Ok(()),
            other => {
                let mut text = String::new();
                let done = self.extended(other, &mut text);
                self.is_skipping = self.report(done, &text, 0)?;
                Ok(())
            }
        }
    }

    /// Says that the next request may come.
    fn ready(&mut self) -> io::Result<()> {
        let (status, state) = match (self.has_failed, self.connection.in_transaction()) {
            (true, _) => (TransactionStatus::Error, "idle in transaction (aborted)"),
            (false, true) => (TransactionStatus::Transaction, "idle in transaction"),
            (false, false) => (TransactionStatus::Idle, "idle"),
        };
        self.activity.rest(state);
        self.report_settings()?;
        self.send_notifications()?;
        self.wire.send(&Backend::ReadyForQuery(ReadyForQuery::new(status)))?;
        self.wire.flush()
    }

    /// Sends an error, if there is one, and marks the transaction block as failed. Returns whether
    /// there was one.
    fn report(&mut self, done: Done<()>, text: &str, before: usize) -> io::Result<bool> {
        match done {
            Ok(()) => Ok(false),
            Err(Stop::Broken(error)) => Err(error),
            Err(Stop::Failed(failure)) => {
                self.send_notices()?;
                self.has_failed |= self.connection.in_transaction();
                self.shared.counters.count_failure(failure.code());
                self.audit_failure(text, failure.code());
                self.wire.send(&failure.response(text, before))?;
                Ok(true)
            }
        }
    }

    fn simple_query(&mut self, text: &str) -> io::Result<()> {
        let pieces = match split_statements(text) {
            Ok(pieces) => pieces,
            Err(error) => return self.report(Err(error.into()), text, 0).map(|_| ()),
        };
        if pieces.is_empty() {
            return self.wire.send(&Backend::EmptyQueryResponse(EmptyQueryResponse::new()));
        }
        let is_several = pieces.len() > 1;
        for piece in pieces {
            let before = text.get(..piece.start).map_or(0, |before| before.chars().count());
            let statement = text.get(piece).unwrap_or_default();
            let done = self.simple_statement(statement, is_several);
            if self.report(done, statement, before)? {
                break;
            }
        }
        let ended = self.end_implicit();
        self.report(ended, "", 0).map(|_| ())
    }

    fn simple_statement(&mut self, text: &str, is_one_of_several: bool) -> Done<()> {
        if let Some(command) = self.portal_command(text)? {
            return self.run_portal_command(&command, Some(&Formats::default()), Description::Sent);
        }
        let prepared = Rc::new(RefCell::new(self.prepare(text, Vec::new())?));
        if prepared.borrow().returns_rows() {
            let description = prepared.borrow().description(&Formats::default());
            io(self.wire.send(&description))?;
        }
        let mut portal = Portal::new(prepared, Vec::new(), Formats::default());
        self.execute(&mut portal, 0, is_one_of_several)
    }

    /// Prepares a statement; in a failed transaction block only one that ends it (SESSION-1).
    fn prepare(
        &mut self,
        text: &str,
        declared: Vec<Option<DataType>>,
    ) -> Result<Prepared, Failure> {
        if self.has_failed {
            let tag = Tag::of(text, 0);
            if !tag.ends_transaction() && !tag.is_rollback_to() && !tag.is_empty() {
                return Err(in_failed_transaction());
            }
        }
        Prepared::new(self.connection, text, declared)
    }

    fn extended(&mut self, message: FrontendMessage, text: &mut String) -> Done<()> {
        match message {
            FrontendMessage::Parse { name, query, types } => {
                text.clone_from(&query);
                self.parse(name, &query, &types)
            }
            FrontendMessage::Bind(bind) => self.bind(bind),
            FrontendMessage::Describe(target) => self.describe(&target),
            FrontendMessage::Execute { portal: name, max_rows } => {
                let mut portal = self.portals.remove(&name).ok_or_else(|| no_portal(&name))?;
                text.push_str(&portal.prepared.borrow().text);
                let limit = usize::try_from(max_rows).unwrap_or(0);
                let is_followed = self.wire.peek() != Some(MESSAGE_TYPE_BYTE_SYNC);
                let done = self.execute(&mut portal, limit, is_followed);
                self.portals.insert(name, portal);
                done
            }
            FrontendMessage::Close(target) => {
                match target {
                    Target::Statement(name) => {
                        self.connection.forget_statement(&name);
                        self.statements.remove(&name);
                    }
                    Target::Portal(name) => {
                        if self.portals.remove(&name).is_none() {
                            self.connection.close_cursor(&name);
                        }
                    }
                }
                io(self.wire.send(&Backend::CloseComplete(CloseComplete::new())))
            }
            _ => Err(Failure::new("08P01", "a message that was not expected here").into()),
        }
    }

    fn parse(&mut self, name: String, query: &str, types: &[u32]) -> Done<()> {
        let declared: Vec<_> = types.iter().map(|oid| declared_type(*oid)).collect();
        if !name.is_empty() {
            // SQL's PREPARE, EXECUTE and DEALLOCATE know the same names.
            self.connection.name_statement(&name, query, &declared)?;
        }
        let prepared = self.prepare(query, declared);
        let mut prepared = prepared.inspect_err(|_| self.connection.forget_statement(&name))?;
        self.connection.note_parameters(&name, prepared.parameters());
        if let Some(PortalCommand::Fetch { name, returns_rows: true, .. }) =
            self.portal_command(query)?
            && let Some(portal) = self.portals.get(&*name)
        {
            prepared.set_columns(portal.prepared.borrow().columns().to_vec());
        }
        self.statements.insert(name, Rc::new(RefCell::new(prepared)));
        io(self.wire.send(&Backend::ParseComplete(ParseComplete::new())))
    }

    fn bind(&mut self, bind: Bind) -> Done<()> {
        let prepared = self.statement(&bind.statement)?;
        let formats = Formats(bind.formats);
        let parameters = prepared.borrow().read_parameters(
            &bind.parameters,
            &formats,
            &self.connection.text_settings(),
        )?;
        let name = bind.portal;
        if !name.is_empty() && self.portals.contains_key(&name) {
            let message = format!("portal \"{name}\" already exists");
            return Err(Failure::new("42P03", message).into());
        }
        let formats = Formats(bind.result_formats);
        self.portals.insert(name, Portal::new(prepared, parameters, formats));
        io(self.wire.send(&Backend::BindComplete(BindComplete::new())))
    }

    fn statement(&mut self, name: &str) -> Result<SharedPrepared, Failure> {
        let known = self.statements.get(name);
        let missing = || {
            let message = format!("prepared statement \"{name}\" does not exist");
            Failure::new("26000", message)
        };
        if name.is_empty() {
            return known.cloned().ok_or_else(missing);
        }
        // DEALLOCATE may have removed it, and PREPARE made another of that name.
        let Some((text, types)) = self.connection.named_statement(name) else {
            self.statements.remove(name);
            return Err(missing());
        };
        if let Some(known) = known.filter(|known| known.borrow().text == text) {
            return Ok(known.clone());
        }
        let prepared = Rc::new(RefCell::new(self.prepare(&text, types.to_vec())?));
        self.statements.insert(name.to_owned(), prepared.clone());
        Ok(prepared)
    }

    fn describe(&mut self, target: &Target) -> Done<()> {
        let is_statement = matches!(target, Target::Statement(_));
        let (prepared, formats) = match target {
            Target::Statement(name) => (self.statement(name)?, Formats::default()),
            Target::Portal(name) if !self.portals.contains_key(name) => {
                // Cursors are portals that DECLARE has made.
                let columns = self.connection.cursor_columns(name);
                let columns = result_columns(&columns.ok_or_else(|| no_portal(name))?, &[]);
                return io(self.wire.send(&description(&columns, &Formats::default())));
            }
            Target::Portal(name) => {
                let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
                (portal.prepared.clone(), portal.formats.clone())
            }
        };
        let prepared = prepared.borrow();
        if is_statement {
            let types = prepared.parameters().iter().map(|one| wire_type(*one).oid).collect();
            let message = Backend::ParameterDescription(ParameterDescription::new(types));
            io(self.wire.send(&message))?;
        }
        let message = if prepared.returns_rows() {
            prepared.description(&formats)
        } else {
            Backend::NoData(NoData::new())
        };
        io(self.wire.send(&message))
    }

    /// Executes a portal, counts it, and logs it if it is slow.
    fn execute(&mut self, portal: &mut Portal<'c>, limit: usize, is_followed: bool) -> Done<()> {
        let text = portal.prepared.borrow().text.clone();
        let began = self.activity.begin(&text);
        let started = Instant::now();
        self.rows = 0;
        let before = self.audit_mark(portal);
        let done = self.execute_counted(portal, limit, is_followed);
        let duration = started.elapsed();
        if let (Some(before), true) = (before, done.is_ok()) {
            self.audit_done(portal, before);
        }
        self.shared.counters.count(duration);
        let statements = &self.shared.peers.statements;
        if statements.is_on() {
            let execution = Execution { began, duration, rows: self.rows, is_done: done.is_ok() };
            statements.count(&self.user, &portal.prepared.borrow().counted_text(), execution);
        }
        if self.shared.log.is_slow(duration) {
            self.log_slow(portal, &text, duration, done.is_ok());
        }
        done
    }

    /// Logs a slow statement, with the plan that it gets now.
    fn log_slow(&self, portal: &Portal<'c>, text: &str, duration: Duration, is_done: bool) {
        self.shared.counters.slow.fetch_add(1, Ordering::Relaxed);
        let has_plan = portal.prepared.borrow().tag.has_plan();
        let plan = || {
            let explain = format!("EXPLAIN {text}");
            let rows = self.connection.query(&explain, portal.parameters()).ok()?.collect().ok()?;
            let line = |row: Vec<Value>| row.into_iter().next().map(|line| line.to_string());
            Some(rows.into_iter().filter_map(line).collect())
        };
        // After an error the transaction takes no statement.
        let plan = if has_plan && is_done { plan() } else { None };
        let logged = LoggedSession { number: self.connection.session_id(), user: &self.user };
        self.shared.log.slow_statement(logged, duration, text, is_done, plan);
    }

    /// Executes a portal and says what was done. A statement that others follow begins a
    /// transaction that ends with the request (SESSION-3).
    fn execute_counted(
        &mut self,
        portal: &mut Portal<'c>,
        limit: usize,
        is_followed: bool,
    ) -> Done<()> {
        let text = portal.prepared.borrow().text.clone();
        if let Some(command) = self.portal_command(&text)? {
            let formats = portal.formats.clone();
            return self.run_portal_command(&command, Some(&formats), Description::Known);
        }
        let tag = portal.prepared.borrow().tag.clone();
        if tag.is_empty() {
            return io(self.wire.send(&Backend::EmptyQueryResponse(EmptyQueryResponse::new())));
        }
        if self.has_failed && !tag.is_rollback_to() {
            if !tag.ends_transaction() {
                return Err(in_failed_transaction().into());
            }
            self.has_failed = false;
            self.is_implicit = false;
            self.portals.clear();
            if self.connection.in_transaction() {
                self.connection.rollback()?;
            }
            return self.complete("ROLLBACK".into());
        }
        if self.is_implicit && tag.is_begin() {
            // The client takes the transaction over.
            self.is_implicit = false;
            return self.complete(tag.with(0));
        }
        let in_transaction = self.connection.in_transaction();
        if tag.is_begin() && in_transaction {
            io(self.warn("25001", "there is already a transaction in progress"))?;
            return self.complete(tag.with(0));
        }
        if tag.ends_transaction() && !tag.has_chain() && !in_transaction {
            io(self.warn("25P01", "there is no transaction in progress"))?;
            return self.complete(tag.with(0));
        }
        if !self.portals.is_empty() {
            let reads_only = portal.prepared.borrow().reads_only;
            self.settle_portals(&tag, reads_only)?;
        }
        let may_begin = !tag.is_begin() && !tag.ends_transaction();
        if is_followed && may_begin && !self.connection.in_transaction() {
            self.connection.begin()?;
            self.is_implicit = true;
        }
        let ended = portal.execute(self.connection, &mut self.wire, &self.lent, limit)?;
        if tag.ends_transaction() {
            self.is_implicit = false;
        }
        self.has_failed &= !tag.is_rollback_to();
        match ended {
            Ended::Complete(count) => {
                self.rows = count;
                io(self.send_notices())?;
                self.complete(tag.with(count))
            }
            Ended::Suspended => {
                self.rows = limit as u64;
                io(self.wire.send(&Backend::PortalSuspended(PortalSuspended::new())))
            }
        }
    }

    /// Closes the portals that end with the transaction, or keeps the rows of those that a
    /// statement could change.
    fn settle_portals(&mut self, tag: &Tag, reads_only: bool) -> Result<(), Failure> {
        if tag.ends_transaction() {
            self.portals.clear();
        } else if !reads_only && !tag.leaves_rows() {
            let limit = self.connection.memory_limit();
            let settings = self.connection.text_settings();
            let mut portals = self.portals.values_mut();
            portals.try_for_each(|portal| portal.keep_rest(limit, &settings))?;
        }
        Ok(())
    }

    fn complete(&mut self, tag: String) -> Done<()> {
        io(self.wire.send(&Backend::CommandComplete(CommandComplete::new(tag))))
    }

    /// Ends the transaction that the client did not begin: by a commit unless it has failed.
    fn end_implicit(&mut self) -> Done<()> {
        if !std::mem::take(&mut self.is_implicit) {
            return Ok(());
        }
        self.portals.clear();
        if std::mem::take(&mut self.has_failed) {
            if self.connection.in_transaction() {
                self.connection.rollback()?;
            }
        } else if self.connection.in_transaction() {
            self.connection.commit()?;
        }
        Ok(())
    }
}

fn in_failed_transaction() -> Failure {
    let message = "current transaction is aborted, commands ignored until end of transaction block";
    Failure::new("25P02", message)
}

fn no_portal(name: &str) -> Failure {
    Failure::new("34000", format!("portal \"{name}\" does not exist"))
}
