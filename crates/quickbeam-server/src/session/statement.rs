//! Prepared statements and portals, and their execution.
//!
//! - PORTAL-1: a portal that is fetched in parts computes its rows when they are fetched. Only if
//!   its transaction changes something meanwhile, the rest waits in memory, within its limit.

use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use quickbeam_sql::types::TextSettings;
use quickbeam_sql::{Connection, DataType, PreparedStatement, Rows, Value};

use super::copy::{SharedLent, with_wire};
use crate::monitor::audit::executed_name;
use crate::monitor::statements::StatementTable;
use crate::protocol::failure::Failure;
use crate::protocol::rows::{Formats, ResultColumn, description, put_row, result_columns};
use crate::protocol::tag::Tag;
use crate::protocol::types::WireFormat;
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
    pub text: Arc<str>,
    /// The text under which its executions are counted, once one was.
    counted: OnceCell<Arc<str>>,
    /// How it is named when it is done.
    pub tag: Tag,
    /// Whether it changes nothing and locks nothing.
    pub reads_only: bool,
    /// The types that the client declared.
    declared: Vec<Option<DataType>>,
    columns: Vec<ResultColumn>,
    parameters: Vec<DataType>,
    /// `None` while a portal has it.
    statement: Option<PreparedStatement>,
}

/// A prepared statement, shared by the portals bound from it.
pub type SharedPrepared = Rc<RefCell<Prepared>>;

impl Prepared {
    /// Prepares a statement whose first parameters have the declared types.
    pub fn new(
        connection: &Connection,
        text: &str,
        declared: Vec<Option<DataType>>,
    ) -> Result<Prepared, Failure> {
        let statement = prepare(connection, text, &declared)?;
        let origins = statement.origins();
        let columns = result_columns(statement.columns(), &origins);
        let executed = executed_name(text).and_then(|name| connection.named_statement(&name));
        let executed: Option<Arc<str>> = executed.map(|(text, _)| text);
        Ok(Prepared {
            text: text.into(),
            counted: OnceCell::new(),
            // EXECUTE has the tag of what it executes.
            tag: Tag::of(executed.as_deref().unwrap_or(text), columns.len()),
            reads_only: statement.reads_only(),
            declared,
            columns,
            parameters: statement.parameters().to_vec(),
            statement: Some(statement),
        })
    }

    /// Returns the text under which its executions are counted.
    pub fn counted_text(&self) -> Arc<str> {
        self.counted.get_or_init(|| StatementTable::counted_text(&self.text)).clone()
    }

    /// Whether it returns rows.
    pub fn returns_rows(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Returns the types of its parameters.
    pub fn parameters(&self) -> &[DataType] {
        &self.parameters
    }

    /// Returns its columns.
    pub fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// Gives FETCH the columns of the portal that it reads.
    pub fn set_columns(&mut self, columns: Vec<ResultColumn>) {
        self.columns = columns;
    }

    /// Returns the message that describes its rows.
    pub fn description(&self, formats: &Formats) -> PgWireBackendMessage {
        description(&self.columns, formats)
    }

    /// Reads the parameters of a Bind message.
    pub fn read_parameters(
        &self,
        given: &[Option<Bytes>],
        formats: &Formats,
        settings: &TextSettings,
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
            let format = WireFormat::from(formats.is_binary(number));
            parameter(bytes.as_deref(), *data_type, format, settings)
        };
        given.iter().zip(types).enumerate().map(read).collect()
    }

    /// Takes the statement; another is prepared if a portal has it.
    fn take(&mut self, connection: &Connection) -> Result<PreparedStatement, Failure> {
        if let Some(statement) = self.statement.take() {
            return Ok(statement);
        }
        let statement = prepare(connection, &self.text, &self.declared)?;
        let is_same = statement.columns().len() == self.columns.len()
            && statement
                .columns()
                .iter()
                .zip(&self.columns)
                .all(|(one, other)| one.name == other.name && one.data_type == other.data_type);
        if !is_same {
            return Err(Failure::new("0A000", "cached plan must not change result type"));
        }
        Ok(statement)
    }
}

fn prepare(
    connection: &Connection,
    text: &str,
    declared: &[Option<DataType>],
) -> Result<PreparedStatement, Failure> {
    let mut statement = connection.prepare_typed(text, declared)?.into_prepared();
    statement.keep_columns();
    Ok(statement)
}

/// A statement with its parameters, ready to be executed.
pub struct Portal<'c> {
    /// The statement.
    pub prepared: SharedPrepared,
    /// The formats of the result columns.
    pub formats: Formats,
    parameters: Vec<Value>,
    progress: Progress<'c>,
}

/// How far the rows of a portal have been fetched.
enum Progress<'c> {
    New,
    /// The rest is computed when it is fetched.
    Reading(Rows<'c>),
    /// The rest, encoded.
    Kept(VecDeque<BytesMut>),
}

/// How an execution ended.
pub enum Ended {
    /// All rows were sent: their number, or that of the rows changed.
    Complete(u64),
    /// As many rows were sent as the client wanted; there may be more.
    Suspended,
}

impl<'c> Portal<'c> {
    /// Makes a portal.
    pub fn new(prepared: SharedPrepared, parameters: Vec<Value>, formats: Formats) -> Portal<'c> {
        Portal { prepared, formats, parameters, progress: Progress::New }
    }

    /// Whether no row was fetched yet.
    pub fn is_new(&self) -> bool {
        matches!(self.progress, Progress::New)
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &[Value] {
        &self.parameters
    }

    /// Executes the statement, or continues it, and sends up to `limit` rows; 0 is no limit.
    pub fn execute(
        &mut self,
        connection: &'c Connection,
        wire: &mut Wire,
        lent: &SharedLent,
        limit: usize,
    ) -> Done<Ended> {
        if matches!(self.progress, Progress::New) {
            if limit == 0 || !self.prepared.borrow().returns_rows() {
                return self.execute_whole(connection, wire, lent);
            }
            let statement = self.prepared.borrow_mut().take(connection)?;
            self.progress = Progress::Reading(statement.into_rows(connection, &self.parameters)?);
        }
        match &mut self.progress {
            Progress::New => Ok(Ended::Complete(0)),
            Progress::Kept(rest) => send_rest(rest, wire, limit),
            Progress::Reading(rows) => {
                let settings = connection.text_settings();
                let ended = send_rows(rows, wire, limit, &settings, &self.formats);
                if !matches!(ended, Ok(Ended::Suspended)) {
                    // It is at its end from now on.
                    self.give_back();
                }
                ended
            }
        }
    }

    /// Passes up to `limit` rows for FETCH or MOVE, 0 for all, and sends them in these formats, if
    /// there are any. Returns the number of rows passed.
    pub fn pass(
        &mut self,
        connection: &'c Connection,
        wire: &mut Wire,
        limit: usize,
        formats: Option<&Formats>,
    ) -> Done<u64> {
        if matches!(self.progress, Progress::New) {
            let statement = self.prepared.borrow_mut().take(connection)?;
            self.progress = Progress::Reading(statement.into_rows(connection, &self.parameters)?);
        }
        let (mut passed, settings) = (0, connection.text_settings());
        while limit == 0 || passed < limit as u64 {
            match &mut self.progress {
                Progress::New => break,
                Progress::Reading(rows) => {
                    let width = rows.columns().len();
                    let Some(row) = rows.next()? else { break };
                    if let Some(formats) = formats {
                        put_row(&mut wire.output, &row, width, formats, &settings)?;
                    }
                }
                Progress::Kept(rest) => {
                    // They are encoded as the portal's client wants them.
                    if formats.is_some_and(|formats| formats.0 != self.formats.0) {
                        let message = "FETCH of a portal in another format after a change";
                        return Err(Failure::new("0A000", message).into());
                    }
                    let Some(row) = rest.pop_front() else { break };
                    if formats.is_some() {
                        wire.output.extend_from_slice(&row);
                    }
                }
            }
            io(wire.write_when_large())?;
            passed += 1;
        }
        Ok(passed)
    }

    fn execute_whole(
        &mut self,
        connection: &Connection,
        wire: &mut Wire,
        lent: &SharedLent,
    ) -> Done<Ended> {
        let prepared = &mut *self.prepared.borrow_mut();
        if prepared.statement.is_none() {
            prepared.statement = Some(prepared.take(connection)?);
        }
        let Some(statement) = &mut prepared.statement else { return Ok(Ended::Complete(0)) };
        if prepared.columns.is_empty() {
            let count = if prepared.tag.is_copy() {
                let run = || statement.execute(connection, &self.parameters);
                io(with_wire(lent, wire, run))??
            } else {
                statement.execute(connection, &self.parameters)?
            };
            return Ok(Ended::Complete(count));
        }
        let mut rows = statement.query(connection, &self.parameters)?;
        send_rows(&mut rows, wire, 0, &connection.text_settings(), &self.formats)
    }

    /// Ends the reading of rows, and lets others have the statement.
    fn give_back(&mut self) {
        let ended = std::mem::replace(&mut self.progress, Progress::Kept(VecDeque::new()));
        if let Progress::Reading(rows) = ended
            && let Some(statement) = rows.into_statement()
        {
            self.prepared.borrow_mut().statement = Some(statement);
        }
    }

    /// Computes the rows that are left, because what comes could change them (PORTAL-1).
    pub fn keep_rest(&mut self, limit: usize, settings: &TextSettings) -> Result<(), Failure> {
        let Progress::Reading(rows) = &mut self.progress else { return Ok(()) };
        if rows.is_stable() {
            return Ok(());
        }
        let (width, mut rest, mut bytes) = (rows.columns().len(), VecDeque::new(), 0);
        while let Some(row) = rows.next()? {
            let mut encoded = BytesMut::new();
            put_row(&mut encoded, &row, width, &self.formats, settings)?;
            bytes += encoded.len();
            if bytes > limit {
                let message = "the rows left in an open portal exceed the memory of a statement";
                return Err(Failure::new("53200", message));
            }
            rest.push_back(encoded);
        }
        self.give_back();
        self.progress = Progress::Kept(rest);
        Ok(())
    }
}

fn send_rows(
    rows: &mut Rows<'_>,
    wire: &mut Wire,
    limit: usize,
    settings: &TextSettings,
    formats: &Formats,
) -> Done<Ended> {
    let (mut sent, width) = (0, rows.columns().len());
    while limit == 0 || sent < limit {
        let Some(row) = rows.next()? else { return Ok(Ended::Complete(sent as u64)) };
        put_row(&mut wire.output, &row, width, formats, settings)?;
        io(wire.write_when_large())?;
        sent += 1;
    }
    Ok(Ended::Suspended)
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
