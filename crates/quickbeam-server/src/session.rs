//! One connection: requests of the simple and the extended protocol, and the state of its
//! transaction.
//!
//! Above: the server's threads. Below: statements and the wire.
//!
//! - SESSION-1: after an error in a transaction block every statement but its end fails with 25P02.
//! - SESSION-2: after an error in the extended protocol messages are skipped up to Sync.
//! - SESSION-3: statements up to a Sync, and those of one simple query, are one transaction unless
//!   the client begins and ends its own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, CloseComplete, MESSAGE_TYPE_BYTE_SYNC, Parse, ParseComplete,
    PortalSuspended, TARGET_TYPE_BYTE_STATEMENT,
};
use pgwire::messages::response::{
    CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus,
};
use pgwire::messages::{PgWireBackendMessage as Backend, PgWireFrontendMessage as Frontend};
use quickbeam_sql::{Connection, split_statements};

use crate::failure::Failure;
use crate::rows::Formats;
use crate::server::Shared;
use crate::startup::{Opening, read_opening, refuse, welcome};
use crate::statement::{Done, Ended, Portal, Prepared, SharedPrepared, Stop, io};
use crate::types::wire_type;
use crate::wire::{Stream, Wire};

/// Serves a client until it leaves. An error of the socket ends the session silently: there is no
/// way left to report it.
pub fn serve(shared: &Shared, stream: Stream) {
    let handle = stream.try_clone();
    run_session(shared, Wire::new(stream));
    // The server has a handle to the socket as well: only this tells the client.
    if let Ok(handle) = handle {
        handle.shut_down();
    }
}

fn run_session(shared: &Shared, mut wire: Wire) {
    let user = match read_opening(&mut wire) {
        Ok(Opening::Session { user }) => user,
        Ok(Opening::Cancel { number, key }) => return shared.cancel(number, &key),
        Ok(Opening::Nothing) | Err(_) => return,
    };
    let connection = shared.database.connect();
    connection.set_isolation(shared.options.isolation);
    let Some((number, key)) = shared.enter(connection.cancel_handle()) else {
        let _ = refuse(&mut wire, "53300", "sorry, too many clients already");
        return;
    };
    let mut session = Session {
        connection,
        wire,
        statements: HashMap::new(),
        portals: HashMap::new(),
        has_failed: false,
        is_implicit: false,
        is_skipping: false,
    };
    let _ = session.run(&user, number, key);
    shared.leave(number);
}

struct Session {
    connection: Connection,
    wire: Wire,
    statements: HashMap<String, SharedPrepared>,
    portals: HashMap<String, Portal>,
    /// A statement of the transaction block failed.
    has_failed: bool,
    /// The open transaction was not begun by the client; it ends with the request.
    is_implicit: bool,
    /// An error came in the extended protocol: everything up to Sync is skipped.
    is_skipping: bool,
}

impl Session {
    fn run(&mut self, user: &str, number: i32, key: i32) -> io::Result<()> {
        welcome(&mut self.wire, user, number, key)?;
        self.ready()?;
        loop {
            let message = match self.wire.read() {
                Ok(Some(Frontend::Terminate(_)) | None) => return Ok(()),
                Ok(Some(message)) => message,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return refuse(&mut self.wire, "08P01", &error.to_string());
                }
                Err(error) => return Err(error),
            };
            self.handle(message)?;
        }
    }

    fn handle(&mut self, message: Frontend) -> io::Result<()> {
        match message {
            Frontend::Sync(_) => {
                self.is_skipping = false;
                let ended = self.end_implicit();
                self.report(ended, "", 0)?;
                if !self.connection.in_transaction() {
                    self.portals.clear();
                }
                self.ready()
            }
            Frontend::Query(query) => {
                self.is_skipping = false;
                self.simple_query(&query.query)?;
                self.ready()
            }
            _ if self.is_skipping => Ok(()),
            Frontend::Flush(_) => self.wire.flush(),
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
        let status = match (self.has_failed, self.connection.in_transaction()) {
            (true, _) => TransactionStatus::Error,
            (false, true) => TransactionStatus::Transaction,
            (false, false) => TransactionStatus::Idle,
        };
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
                self.has_failed |= self.connection.in_transaction();
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
        let prepared = Rc::new(RefCell::new(self.prepare(text)?));
        if prepared.borrow().returns_rows() {
            let description = prepared.borrow().description(&Formats::default());
            io(self.wire.send(&description))?;
        }
        let mut portal = Portal::new(prepared, Vec::new(), Formats::default());
        self.execute(&mut portal, 0, is_one_of_several)
    }

    /// Prepares a statement; in a failed transaction block only one that ends it (SESSION-1).
    fn prepare(&mut self, text: &str) -> Result<Prepared, Failure> {
        if self.has_failed {
            let tag = crate::tag::Tag::of(text, false);
            if !tag.ends_transaction() && !tag.is_rollback_to() && !tag.is_empty() {
                return Err(in_failed_transaction());
            }
        }
        Prepared::new(&self.connection, text)
    }

    fn extended(&mut self, message: Frontend, text: &mut String) -> Done<()> {
        match message {
            Frontend::Parse(parse) => {
                text.clone_from(&parse.query);
                self.parse(parse)
            }
            Frontend::Bind(bind) => self.bind(bind),
            Frontend::Describe(describe) => {
                let name = describe.name.unwrap_or_default();
                self.describe(&name, describe.target_type == TARGET_TYPE_BYTE_STATEMENT)
            }
            Frontend::Execute(execute) => {
                let name = execute.name.unwrap_or_default();
                let mut portal = self.portals.remove(&name).ok_or_else(|| no_portal(&name))?;
                text.clone_from(&portal.prepared.borrow().text);
                let limit = usize::try_from(execute.max_rows).unwrap_or(0);
                let is_followed = self.wire.peek() != Some(MESSAGE_TYPE_BYTE_SYNC);
                let done = self.execute(&mut portal, limit, is_followed);
                self.portals.insert(name, portal);
                done
            }
            Frontend::Close(close) => {
                let name = close.name.unwrap_or_default();
                if close.target_type == TARGET_TYPE_BYTE_STATEMENT {
                    self.statements.remove(&name);
                } else {
                    self.portals.remove(&name);
                }
                io(self.wire.send(&Backend::CloseComplete(CloseComplete::new())))
            }
            _ => Err(Failure::new("08P01", "a message that was not expected here").into()),
        }
    }

    fn parse(&mut self, parse: Parse) -> Done<()> {
        let name = parse.name.unwrap_or_default();
        if !name.is_empty() && self.statements.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Failure::new("42P05", message).into());
        }
        let prepared = self.prepare(&parse.query)?;
        self.statements.insert(name, Rc::new(RefCell::new(prepared)));
        io(self.wire.send(&Backend::ParseComplete(ParseComplete::new())))
    }

    fn bind(&mut self, bind: Bind) -> Done<()> {
        let prepared = self.statement(&bind.statement_name.unwrap_or_default())?;
        let formats = Formats(bind.parameter_format_codes);
        let parameters = prepared.borrow().read_parameters(&bind.parameters, &formats)?;
        let name = bind.portal_name.unwrap_or_default();
        if !name.is_empty() && self.portals.contains_key(&name) {
            let message = format!("portal \"{name}\" already exists");
            return Err(Failure::new("42P03", message).into());
        }
        let formats = Formats(bind.result_column_format_codes);
        self.portals.insert(name, Portal::new(prepared, parameters, formats));
        io(self.wire.send(&Backend::BindComplete(BindComplete::new())))
    }

    fn statement(&self, name: &str) -> Result<SharedPrepared, Failure> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = format!("prepared statement \"{name}\" does not exist");
            Failure::new("26000", message)
        })
    }

    fn describe(&mut self, name: &str, is_statement: bool) -> Done<()> {
        let (prepared, formats) = if is_statement {
            (self.statement(name)?, Formats::default())
        } else {
            let portal = self.portals.get(name).ok_or_else(|| no_portal(name))?;
            (portal.prepared.clone(), portal.formats.clone())
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

    /// Executes a portal and says what was done. A statement that others follow begins a
    /// transaction that ends with the request (SESSION-3).
    fn execute(&mut self, portal: &mut Portal, limit: usize, is_followed: bool) -> Done<()> {
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
        let may_begin = !tag.is_begin() && !tag.ends_transaction();
        if is_followed && may_begin && !self.connection.in_transaction() {
            self.connection.begin()?;
            self.is_implicit = true;
        }
        let ended = portal.execute(&self.connection, &mut self.wire, limit)?;
        if tag.ends_transaction() {
            self.is_implicit = false;
        }
        self.has_failed &= !tag.is_rollback_to();
        match ended {
            Ended::Complete(count) => self.complete(tag.with(count)),
            Ended::Suspended => {
                io(self.wire.send(&Backend::PortalSuspended(PortalSuspended::new())))
            }
        }
    }

    fn complete(&mut self, tag: String) -> Done<()> {
        io(self.wire.send(&Backend::CommandComplete(CommandComplete::new(tag))))
    }

    /// Ends the transaction that the client did not begin: by a commit unless it has failed.
    fn end_implicit(&mut self) -> Done<()> {
        if !std::mem::take(&mut self.is_implicit) {
            return Ok(());
        }
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
