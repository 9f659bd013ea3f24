//! A client for the socket in an environment's directory: the wire protocol, values as text.
//!
//! Above: [`SharedDatabase`](super::SharedDatabase) and the `quickbeam` program. Below: the socket.
//!
//! - CLIENT-1: between two calls the connection is at a ReadyForQuery, so that each answer belongs
//!   to its request: an [`Answer`] that is dropped reads its rest. (by test
//!   `dropped_answer_leaves_the_connection_usable`)

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quickbeam::SOCKET_FILE;
use quickbeam_sql::types::{TextSettings, format_value, parse_value};
use quickbeam_sql::{
    CopyAccess, CopyPlace, DataType, OutputColumn, Result, SqlError, SqlState, Value, ValueRef,
};

use super::connection_failed;
use crate::protocol::types::declared_type;

/// The user of the socket in the directory.
const USER: &str = "quickbeam";

/// Protocol 3.0, and the number of a cancel request.
const PROTOCOL: i32 = 3 << 16;
const CANCEL_REQUEST: i32 = 80_877_102;

/// Bytes of COPY data in a message.
const COPY_BYTES: usize = 32 << 10;

/// A session with the process that has an environment open.
pub struct Client {
    stream: BufReader<UnixStream>,
    socket: PathBuf,
    /// The number of the session and the key that cancels its statements.
    number: i32,
    key: Vec<u8>,
    /// The state of the transaction as of the last ReadyForQuery: idle, in one, failed.
    status: u8,
    copy_access: Option<Box<dyn CopyAccess>>,
    /// Messages of notices that were not taken yet.
    notices: Vec<String>,
    /// The settings of the session with which the server writes texts.
    settings: TextSettings,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("socket", &self.socket)
            .field("number", &self.number)
            .finish()
    }
}

/// Cancels what a client's session is doing, from another thread.
#[derive(Clone, Debug)]
pub struct CancelRemote {
    socket: PathBuf,
    number: i32,
    key: Vec<u8>,
}

impl CancelRemote {
    /// Asks the server to cancel the statement that runs now.
    pub fn cancel(&self) -> io::Result<()> {
        let mut packet = BytesMut::new();
        packet.put_i32(12 + self.key.len() as i32);
        packet.put_i32(CANCEL_REQUEST);
        packet.put_i32(self.number);
        packet.put_slice(&self.key);
        UnixStream::connect(&self.socket)?.write_all(&packet)
    }
}

/// What comes next in the answer to a request.
enum Event {
    Columns(Arc<[OutputColumn]>),
    Row(Vec<Value>),
    Complete(u64),
    Ready,
}

impl Client {
    /// Connects to the process that serves the environment of a directory.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`] if there is none.
    pub fn connect(directory: impl AsRef<Path>) -> io::Result<Client> {
        let socket = directory.as_ref().join(SOCKET_FILE);
        let stream = BufReader::new(UnixStream::connect(&socket)?);
        let mut client = Client {
            stream,
            socket,
            number: 0,
            key: Vec::new(),
            status: b'I',
            copy_access: None,
            notices: Vec::new(),
            settings: TextSettings::DEFAULT,
        };
        let mut packet = BytesMut::new();
        packet.put_i32(0);
        packet.put_i32(PROTOCOL);
        for text in ["user", USER, "database", USER, ""] {
            put_text(&mut packet, text);
        }
        let length = packet.len() as i32;
        packet[..4].copy_from_slice(&length.to_be_bytes());
        client.stream.get_mut().write_all(&packet)?;
        loop {
            let (kind, mut body) = client.read_message()?;
            match kind {
                b'K' if body.len() >= 4 => {
                    client.number = body.get_i32();
                    client.key = body.to_vec();
                }
                b'S' => client.note_setting(&mut body)?,
                b'Z' => return Ok(client),
                b'E' => return Err(io::Error::other(error_of(&body, "").to_string())),
                _ => {}
            }
        }
    }

    /// Returns a handle that cancels the running statement.
    #[must_use]
    pub fn cancel_handle(&self) -> CancelRemote {
        CancelRemote { socket: self.socket.clone(), number: self.number, key: self.key.clone() }
    }

    /// Returns the settings with which the server writes the texts of values.
    #[must_use]
    pub fn text_settings(&self) -> TextSettings {
        self.settings
    }

    /// Takes over a setting that the server reports.
    fn note_setting(&mut self, body: &mut Bytes) -> io::Result<()> {
        let mut text = || take_text(body).map_err(io::Error::other);
        let (name, value) = (text()?, text()?);
        self.settings = self.settings.with(&name, &value);
        Ok(())
    }

    /// Returns the number of the session.
    #[must_use]
    pub fn session_id(&self) -> i32 {
        self.number
    }

    /// Returns whether a transaction is open.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.status != b'I'
    }

    /// Sets what COPY reads and writes here. Without it the rows of COPY are refused.
    pub fn set_copy_access(&mut self, access: impl CopyAccess + 'static) {
        self.copy_access = Some(Box::new(access));
    }

    /// Returns the messages of notices since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// Executes a statement and returns the number of rows that it inserted, changed or removed.
    pub fn execute(&mut self, text: &str, parameters: &[Value]) -> Result<u64> {
        let mut answer = self.query(text, parameters)?;
        while answer.next()?.is_some() {}
        Ok(answer.count)
    }

    /// Executes one statement and returns its rows as they arrive.
    pub fn query<'c>(&'c mut self, text: &str, parameters: &[Value]) -> Result<Answer<'c>> {
        let request = if parameters.is_empty() {
            let mut request = BytesMut::new();
            put_message(&mut request, b'Q', |body| put_text(body, text));
            request
        } else {
            extended_request(text, parameters, &self.settings)
        };
        if let Err(error) = self.stream.get_mut().write_all(&request) {
            return Err(self.farewell(&error));
        }
        let mut answer = Answer {
            client: self,
            text: text.to_owned(),
            columns: Arc::new([]),
            first: None,
            count: 0,
            is_at_end: false,
        };
        // The columns are known before the first row is asked for.
        answer.first = answer.advance()?;
        Ok(answer)
    }

    /// Runs a command of [`control`](super::control) and returns its answer.
    pub fn control(&mut self, command: &str, argument: &str) -> Result<String> {
        let parameters = [Value::text(command), Value::text(argument)];
        let mut answer = self.query("SELECT quickbeam_control($1, $2)", &parameters)?;
        let row = answer.next()?.unwrap_or_default();
        match row.into_iter().next() {
            Some(Value::Text(text)) => Ok(text.to_string()),
            _ => Err(SqlError::internal("the server returned no report")),
        }
    }

    /// Returns why the server has closed the connection: what it said before, if it did.
    fn farewell(&mut self, error: &io::Error) -> SqlError {
        while let Ok((kind, body)) = self.read_message() {
            if kind == b'E' {
                return error_of(&body, "");
            }
        }
        connection_failed(error)
    }

    fn read_message(&mut self) -> io::Result<(u8, Bytes)> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header)?;
        let [kind, length @ ..] = header;
        let length = u32::from_be_bytes(length).saturating_sub(4);
        let mut body = Vec::new();
        let read = (&mut self.stream).take(length.into()).read_to_end(&mut body)?;
        if read < length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((kind, body.into()))
    }

    /// Reads up to what the caller has to know.
    fn next_event(&mut self, text: &str, columns: &[OutputColumn]) -> Result<Event> {
        loop {
            let (kind, mut body) =
                self.read_message().map_err(|error| connection_failed(&error))?;
            match kind {
                b'T' => return columns_of(&mut body).map(Event::Columns),
                b'D' => return row_of(&mut body, columns, &self.settings).map(Event::Row),
                b'S' => self.note_setting(&mut body).map_err(|error| connection_failed(&error))?,
                b'C' => return Ok(Event::Complete(count_of(&body))),
                b'E' => return Err(error_of(&body, text)),
                b'Z' => {
                    self.status = body.first().copied().unwrap_or(b'I');
                    return Ok(Event::Ready);
                }
                b'N' => self.notices.push(error_of(&body, text).message().to_owned()),
                b'G' => self.send_copy(&body).map_err(|error| connection_failed(&error))?,
                b'H' => self.receive_copy(&body)?,
                _ => {}
            }
        }
    }

    /// Sends the rows of COPY … FROM STDIN.
    fn send_copy(&mut self, body: &[u8]) -> io::Result<()> {
        let stream = self.stream.get_mut();
        let mut out = BytesMut::new();
        let columns = copy_columns(body);
        let sent = match self.copy_access.as_mut() {
            None => Err(io::Error::other("COPY has no input here")),
            Some(access) => access.reader(&CopyPlace::Standard, columns).and_then(|mut reader| {
                let mut buffer = vec![0; COPY_BYTES];
                loop {
                    let read = reader.read(&mut buffer)?;
                    if read == 0 {
                        return Ok(());
                    }
                    out.clear();
                    put_message(&mut out, b'd', |body| body.put_slice(&buffer[..read]));
                    stream.write_all(&out)?;
                }
            }),
        };
        out.clear();
        match sent {
            Ok(()) => put_message(&mut out, b'c', |_| {}),
            Err(error) => put_message(&mut out, b'f', |body| put_text(body, &error.to_string())),
        }
        stream.write_all(&out)
    }

    /// Receives the rows of COPY … TO STDOUT, to their end even if they cannot be written.
    fn receive_copy(&mut self, body: &[u8]) -> Result<()> {
        let mut access = self.copy_access.take().unwrap_or_else(|| Box::new(NoCopy));
        let mut writer = access.writer(&CopyPlace::Standard, copy_columns(body));
        let mut written = Ok(());
        let ended = loop {
            match self.read_message() {
                Ok((b'd', data)) => match &mut writer {
                    Ok(writer) if written.is_ok() => written = writer.write_all(&data),
                    _ => {}
                },
                Ok((b'c', _)) => break Ok(()),
                // The error of the statement comes in place of the end.
                Ok((b'E', body)) => break Err(error_of(&body, "")),
                Ok(_) => {}
                Err(error) => break Err(connection_failed(&error)),
            }
        };
        let written = written.and_then(|()| writer?.flush());
        self.copy_access = Some(access);
        ended?;
        written.map_err(|error| SqlError::new(SqlState::IoError, error.to_string()))
    }
}

/// Refuses the rows of COPY.
struct NoCopy;

impl CopyAccess for NoCopy {
    fn reader(&mut self, _: &CopyPlace, _: usize) -> io::Result<Box<dyn Read + '_>> {
        Err(io::Error::other("COPY has no input here"))
    }

    fn writer(&mut self, _: &CopyPlace, _: usize) -> io::Result<Box<dyn Write + '_>> {
        Err(io::Error::other("COPY has no output here"))
    }
}

/// The answer to a statement.
pub struct Answer<'c> {
    client: &'c mut Client,
    text: String,
    columns: Arc<[OutputColumn]>,
    /// The first row, which was read with the columns.
    first: Option<Vec<Value>>,
    count: u64,
    /// ReadyForQuery has been read.
    is_at_end: bool,
}

impl Answer<'_> {
    /// Returns the columns; none for a statement that returns no rows.
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    /// Returns the number of rows that were returned or changed, once all rows are read.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the next row.
    #[allow(clippy::should_implement_trait)] // An iterator could not end with the error.
    pub fn next(&mut self) -> Result<Option<Vec<Value>>> {
        match self.first.take() {
            Some(row) => Ok(Some(row)),
            None => self.advance(),
        }
    }

    /// Returns all rows that are left.
    pub fn collect(mut self) -> Result<Vec<Vec<Value>>> {
        let mut rows = Vec::new();
        while let Some(row) = self.next()? {
            rows.push(row);
        }
        Ok(rows)
    }

    fn advance(&mut self) -> Result<Option<Vec<Value>>> {
        while !self.is_at_end {
            match self.client.next_event(&self.text, &self.columns) {
                Ok(Event::Columns(columns)) => self.columns = columns,
                Ok(Event::Row(row)) => return Ok(Some(row)),
                Ok(Event::Complete(count)) => self.count = count,
                Ok(Event::Ready) => self.is_at_end = true,
                Err(error) => {
                    // After a lost connection nothing follows.
                    if error.state() != SqlState::ConnectionFailure {
                        self.read_rest();
                    }
                    self.is_at_end = true;
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    /// Reads up to ReadyForQuery (CLIENT-1).
    fn read_rest(&mut self) {
        while !self.is_at_end {
            match self.client.next_event("", &[]) {
                Ok(Event::Ready) => self.is_at_end = true,
                Err(error) if error.state() == SqlState::ConnectionFailure => self.is_at_end = true,
                // The first error is the one to report.
                Ok(_) | Err(_) => {}
            }
        }
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        self.read_rest();
    }
}

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_slice(text.as_bytes());
    out.put_u8(0);
}

fn put_message(out: &mut BytesMut, kind: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(kind);
    let start = out.len();
    out.put_i32(0);
    body(out);
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Returns the messages that execute a statement with parameters.
fn extended_request(text: &str, parameters: &[Value], settings: &TextSettings) -> BytesMut {
    let mut request = BytesMut::new();
    put_message(&mut request, b'P', |body| {
        put_text(body, "");
        put_text(body, text);
        body.put_i16(0);
    });
    put_message(&mut request, b'B', |body| {
        put_text(body, "");
        put_text(body, "");
        body.put_i16(0);
        body.put_i16(parameters.len() as i16);
        for value in parameters {
            let mut text = String::new();
            match value.as_ref() {
                ValueRef::Null => {
                    body.put_i32(-1);
                    continue;
                }
                ValueRef::Text(own) => text.push_str(own),
                other => format_value(&mut text, other, settings),
            }
            body.put_i32(text.len() as i32);
            body.put_slice(text.as_bytes());
        }
        body.put_i16(0);
    });
    put_message(&mut request, b'D', |body| {
        body.put_u8(b'P');
        put_text(body, "");
    });
    put_message(&mut request, b'E', |body| {
        put_text(body, "");
        body.put_i32(0);
    });
    put_message(&mut request, b'S', |_| {});
    request
}

fn malformed() -> SqlError {
    SqlError::new(SqlState::ProtocolViolation, "the server sent a malformed message")
}

fn take_text(body: &mut Bytes) -> Result<String> {
    let end = body.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
    let text = body.split_to(end);
    body.advance(1);
    String::from_utf8(text.to_vec()).map_err(|_| malformed())
}

fn columns_of(body: &mut Bytes) -> Result<Arc<[OutputColumn]>> {
    let count = body.try_get_u16().map_err(|_| malformed())?;
    let mut columns = Vec::new();
    for _ in 0..count {
        let name = take_text(body)?;
        if body.len() < 18 {
            return Err(malformed());
        }
        body.advance(6);
        let oid = body.get_u32();
        body.advance(8);
        // What is known of other types is how they are written.
        let data_type = declared_type(oid).unwrap_or(DataType::Text);
        columns.push(OutputColumn::new(name, data_type));
    }
    Ok(columns.into())
}

fn row_of(
    body: &mut Bytes,
    columns: &[OutputColumn],
    settings: &TextSettings,
) -> Result<Vec<Value>> {
    let count = body.try_get_u16().map_err(|_| malformed())?;
    let mut row = Vec::new();
    for column in 0..usize::from(count) {
        let length = body.try_get_i32().map_err(|_| malformed())?;
        let Ok(length) = usize::try_from(length) else {
            row.push(Value::Null);
            continue;
        };
        if body.len() < length {
            return Err(malformed());
        }
        let text = body.split_to(length);
        let text = std::str::from_utf8(&text).map_err(|_| malformed())?;
        let data_type = columns.get(column).map_or(DataType::Text, |column| column.data_type);
        row.push(parse_value(text, data_type, settings)?);
    }
    Ok(row)
}

/// Returns the number at the end of a command tag.
fn count_of(body: &[u8]) -> u64 {
    let tag = String::from_utf8_lossy(body);
    let last = tag.trim_end_matches('\0').rsplit(' ').next();
    last.and_then(|last| last.parse().ok()).unwrap_or(0)
}

/// Returns the number of columns that a COPY message names.
fn copy_columns(body: &[u8]) -> usize {
    body.get(1..3).map_or(0, |count| count.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
}

/// Returns the error of an error message about the statement `text`.
fn error_of(body: &[u8], text: &str) -> SqlError {
    let field = |kind: u8| {
        let mut fields = body.split(|byte| *byte == 0).filter_map(|field| field.split_first());
        let (_, content) = fields.find(|(found, _)| **found == kind)?;
        Some(String::from_utf8_lossy(content).into_owned())
    };
    let state = field(b'C').and_then(|code| SqlState::of_code(&code));
    let message = field(b'M').unwrap_or_default();
    let mut error = SqlError::new(state.unwrap_or(SqlState::InternalError), message);
    if let Some(detail) = field(b'D') {
        error = error.with_detail(detail);
    }
    if let Some(hint) = field(b'H') {
        error = error.with_hint(hint);
    }
    if let Some(context) = field(b'W') {
        error = error.in_context(context);
    }
    if let (Some(schema), Some(table)) = (field(b's'), field(b't')) {
        error = error.of_table(&schema, &table);
    }
    if let Some(column) = field(b'c') {
        error = error.of_column(column);
    }
    if let Some(name) = field(b'n') {
        error = error.of_constraint(name);
    }
    let position = field(b'P').and_then(|position| position.parse::<usize>().ok());
    match position.and_then(|at| text.char_indices().nth(at.checked_sub(1)?)) {
        Some((at, _)) => error.at(at),
        None => error,
    }
}
