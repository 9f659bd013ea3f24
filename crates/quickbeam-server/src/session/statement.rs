//! Prepared statements and portals, and their execution.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use quickbeam_sql::{Connection, DataType, PreparedStatement, Value};

use super::copy::{SharedLent, with_wire};
use crate::protocol::failure::Failure;
use crate::protocol::rows::{Formats, description, put_row};
use crate::protocol::tag::Tag;
use crate::protocol::types::parameter;
use crate::protocol::wire::Wire;

/// Why a request ended early.
pub enum Stop {
    /// The request failed; the connection goes on.
    Failed(Failure),
    /// The socket failed; the connection ends.
    Broken(io::Error),
}

impl<F: Into<Failure>> From<F> for Stop {
    fn from(failure: F) -> Stop {
        Stop::Failed(failure.into())
    }
}

/// The result of a request.
pub type Done<T> = Result<T, Stop>;

/// Turns an error of the socket into the end of the connection.
pub fn io<T>(result: io::Result<T>) -> Done<T> {
    result.map_err(Stop::Broken)
}

/// A statement that a client has prepared.
pub struct Prepared {
    /// Its text.
    pub text: String,
    /// How it is named when it is done.
    pub tag: Tag,
    statement: PreparedStatement,
}

/// A prepared statement, shared by the portals bound from it.
pub type SharedPrepared = Rc<RefCell<Prepared>>;

impl Prepared {
    /// Prepares a statement.
    pub fn new(connection: &Connection, text: &str) -> Result<Prepared, Failure> {
        let statement = connection.prepare(text)?.into_prepared();
        let tag = Tag::of(text, !statement.columns().is_empty());
        Ok(Prepared { text: text.to_owned(), tag, statement })
    }

    /// Whether it returns rows.
    pub fn returns_rows(&self) -> bool {
        !self.statement.columns().is_empty()
    }

    /// Returns the types of its parameters.
    pub fn parameters(&self) -> &[DataType] {
        self.statement.parameters()
    }

    /// Returns the message that describes its rows.
    pub fn description(&self, formats: &Formats) -> PgWireBackendMessage {
        let columns = self.statement.columns().iter();
        description(columns.map(|column| (column.name.as_str(), column.data_type)), formats)
    }

    /// Reads the parameters of a Bind message.
    pub fn read_parameters(
        &self,
        given: &[Option<Bytes>],
        formats: &Formats,
    ) -> Result<Vec<Value>, Failure> {
        let types = self.parameters();
        if types.len() != given.len() {
            let message = format!(
                "bind message supplies {} parameters, but the prepared statement requires {}",
                given.len(),
                types.len()
            );
            return Err(Failure::new("08P01", message));
        }
        let read = |(number, (bytes, data_type)): (usize, (&Option<Bytes>, &DataType))| {
            parameter(bytes.as_deref(), *data_type, formats.is_binary(number))
        };
        given.iter().zip(types).enumerate().map(read).collect()
    }
}

/// A statement with its parameters, ready to be executed.
pub struct Portal {
    /// The statement.
    pub prepared: SharedPrepared,
    /// The formats of the result columns.
    pub formats: Formats,
    parameters: Vec<Value>,
    /// The encoded rows that are left, once the client has fetched some of them.
    rest: Option<VecDeque<BytesMut>>,
}

/// How an execution ended.
pub enum Ended {
    /// All rows were sent: their number, or that of the rows changed.
    Complete(u64),
    /// As many rows were sent as the client wanted; there may be more.
    Suspended,
}

impl Portal {
    /// Makes a portal.
    pub fn new(prepared: SharedPrepared, parameters: Vec<Value>, formats: Formats) -> Portal {
        Portal { prepared, formats, parameters, rest: None }
    }

    /// Executes the statement, or continues it, and sends up to `limit` rows; 0 is no limit.
    pub fn execute(
        &mut self,
        connection: &Connection,
        wire: &mut Wire,
        lent: &SharedLent,
        limit: usize,
    ) -> Done<Ended> {
        if let Some(rest) = &mut self.rest {
            return send_rest(rest, wire, limit);
        }
        let prepared = &mut *self.prepared.borrow_mut();
        if !prepared.returns_rows() {
            let statement = &mut prepared.statement;
            let count = if prepared.tag.is_copy() {
                let run = || statement.execute(connection, &self.parameters);
                io(with_wire(lent, wire, run))??
            } else {
                statement.execute(connection, &self.parameters)?
            };
            return Ok(Ended::Complete(count));
        }
        let mut rows = prepared.statement.query(connection, &self.parameters)?;
        let width = rows.columns().len();
        let mut sent = 0;
        while limit == 0 || sent < limit {
            let Some(row) = rows.next()? else {
                // A portal that was fetched in parts is at its end from now on.
                self.rest = (limit > 0).then(VecDeque::new);
                return Ok(Ended::Complete(sent as u64));
            };
            put_row(&mut wire.output, &row, width, &self.formats)?;
            io(wire.write_when_large())?;
            sent += 1;
        }
        let mut rest = VecDeque::new();
        while let Some(row) = rows.next()? {
            let mut encoded = BytesMut::new();
            put_row(&mut encoded, &row, width, &self.formats)?;
            rest.push_back(encoded);
        }
        self.rest = Some(rest);
        Ok(Ended::Suspended)
    }
}

fn send_rest(rest: &mut VecDeque<BytesMut>, wire: &mut Wire, limit: usize) -> Done<Ended> {
    let mut sent = 0;
    while limit == 0 || sent < limit {
        let Some(row) = rest.pop_front() else { return Ok(Ended::Complete(sent as u64)) };
        wire.output.extend_from_slice(&row);
        io(wire.write_when_large())?;
        sent += 1;
    }
    Ok(Ended::Suspended)
}
