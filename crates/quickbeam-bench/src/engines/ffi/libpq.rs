//! PostgreSQL's client library.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::io::Write;
use std::ptr;
use std::slice;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};

use super::{Handle, Source, functions};
use crate::engine::{OpError, OpResult};
use crate::sql::{SqlRow, Value, VisitRow};

const SOURCE: Source = Source {
    variable: "QUICKBEAM_BENCH_LIBPQ",
    newest: None,
    files: &["libpq.so.5"],
    package: "libpq5",
};

const CONNECTION_OK: c_int = 0;
const COMMAND_OK: c_int = 1;
const TUPLES_OK: c_int = 2;
const COPY_IN: c_int = 4;
/// The field of an error that has its SQLSTATE.
const SQLSTATE: c_int = b'C' as c_int;

functions! {
    struct Functions {
        PQconnectdb: fn(*const c_char) -> Handle;
        PQstatus: fn(Handle) -> c_int;
        PQerrorMessage: fn(Handle) -> *const c_char;
        PQfinish: fn(Handle);
        PQexec: fn(Handle, *const c_char) -> Handle;
        PQprepare: fn(Handle, *const c_char, *const c_char, c_int, *const u32) -> Handle;
        PQexecPrepared: fn(Handle, *const c_char, c_int, *const *const c_char, *const c_int, *const c_int, c_int) -> Handle;
        PQresultStatus: fn(Handle) -> c_int;
        PQresultErrorField: fn(Handle, c_int) -> *const c_char;
        PQresultErrorMessage: fn(Handle) -> *const c_char;
        PQclear: fn(Handle);
        PQntuples: fn(Handle) -> c_int;
        PQgetisnull: fn(Handle, c_int, c_int) -> c_int;
        PQgetvalue: fn(Handle, c_int, c_int) -> *const c_char;
        PQgetlength: fn(Handle, c_int, c_int) -> c_int;
        PQcmdTuples: fn(Handle) -> *const c_char;
        PQputCopyData: fn(Handle, *const c_char, c_int) -> c_int;
        PQputCopyEnd: fn(Handle, *const c_char) -> c_int;
        PQgetResult: fn(Handle) -> Handle;
    }
}

/// The loaded library.
pub struct PgLibrary(Functions);

impl PgLibrary {
    /// Loads libpq.
    pub fn load() -> Result<Arc<PgLibrary>> {
        Ok(Arc::new(PgLibrary(Functions::load(SOURCE.load()?)?)))
    }
}

/// A connection with its prepared statements.
pub struct PgConnection {
    library: Arc<PgLibrary>,
    raw: Handle,
    statements: Vec<CString>,
    /// The parameters of a statement as texts, each ended by a zero.
    buffer: Vec<u8>,
    places: Vec<usize>,
}

/// An answer, freed when dropped.
struct PgResult<'c> {
    f: &'c Functions,
    raw: Handle,
}

impl PgConnection {
    /// Connects as the connection string says.
    pub fn connect(library: &Arc<PgLibrary>, how: &str) -> Result<PgConnection> {
        let text = CString::new(how)?;
        // SAFETY: a C string. The handle is never null but when memory has run out; a connection
        // that failed must be ended as well.
        let raw = unsafe { (library.0.PQconnectdb)(text.as_ptr()) };
        let connection = PgConnection {
            library: Arc::clone(library),
            raw,
            statements: Vec::new(),
            buffer: Vec::new(),
            places: Vec::new(),
        };
        // SAFETY: a connection, whatever its state.
        match unsafe { (connection.f().PQstatus)(raw) } {
            CONNECTION_OK => Ok(connection),
            _ => bail!("PostgreSQL: {}", connection.message()),
        }
    }

    fn f(&self) -> &Functions {
        &self.library.0
    }

    fn message(&self) -> String {
        // SAFETY: a connection; the text belongs to it.
        let text = unsafe { CStr::from_ptr((self.f().PQerrorMessage)(self.raw)) };
        text.to_string_lossy().trim_end().to_owned()
    }

    /// Takes an answer, or the error that it is.
    fn answer(&self, raw: Handle, good: c_int) -> OpResult<PgResult<'_>> {
        let answer = PgResult { f: self.f(), raw };
        // SAFETY: an answer, or null, which has the status of an error.
        let status = unsafe { (answer.f.PQresultStatus)(raw) };
        if status == good || (good == COMMAND_OK && status == TUPLES_OK) {
            return Ok(answer);
        }
        // SAFETY: an answer or null; the texts belong to it.
        unsafe {
            let state = (answer.f.PQresultErrorField)(raw, SQLSTATE);
            let state = if state.is_null() { c"" } else { CStr::from_ptr(state) };
            // Serialization failure, deadlock.
            if state == c"40001" || state == c"40P01" {
                return Err(OpError::Retry);
            }
            let text = CStr::from_ptr((answer.f.PQresultErrorMessage)(raw)).to_string_lossy();
            let text = if text.is_empty() { self.message() } else { text.trim_end().to_owned() };
            Err(anyhow!("PostgreSQL: {text} ({})", state.to_string_lossy()).into())
        }
    }

    /// Runs statements that are not prepared.
    pub fn run(&self, sql: &CStr) -> OpResult {
        // SAFETY: a live connection, a C string.
        let raw = unsafe { (self.f().PQexec)(self.raw, sql.as_ptr()) };
        self.answer(raw, COMMAND_OK).map(|_| ())
    }

    /// Prepares a statement; its number.
    pub fn prepare(&mut self, sql: &str) -> OpResult<usize> {
        let name = CString::new(format!("s{}", self.statements.len()))?;
        let text = CString::new(sql)?;
        // SAFETY: a live connection, C strings, no types given.
        let raw =
            unsafe { (self.f().PQprepare)(self.raw, name.as_ptr(), text.as_ptr(), 0, ptr::null()) };
        self.answer(raw, COMMAND_OK)?;
        self.statements.push(name);
        Ok(self.statements.len() - 1)
    }

    /// Runs a prepared statement, hands over the rows of its answer, and returns how many rows it
    /// found or changed.
    pub fn query(
        &mut self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: &mut VisitRow<'_>,
    ) -> OpResult<u64> {
        self.buffer.clear();
        self.places.clear();
        for value in parameters {
            self.places.push(self.buffer.len());
            match value {
                Value::Integer(number) => write!(self.buffer, "{number}")?,
                Value::Bigint(number) => write!(self.buffer, "{number}")?,
                Value::Text(text) => self.buffer.extend_from_slice(text.as_bytes()),
            }
            self.buffer.push(0);
        }
        let values: Vec<*const c_char> =
            self.places.iter().map(|&place| self.buffer[place..].as_ptr().cast()).collect();
        let count = values.len() as c_int;
        // SAFETY: a live connection, the name of a prepared statement, as many pointers to C
        // strings as are said; null lengths and formats mean texts.
        let raw = unsafe {
            (self.f().PQexecPrepared)(
                self.raw,
                self.statements[statement].as_ptr(),
                count,
                values.as_ptr(),
                ptr::null(),
                ptr::null(),
                0,
            )
        };
        let answer = self.answer(raw, COMMAND_OK)?;
        // SAFETY: a successful answer; the text belongs to it.
        let (rows, changed) = unsafe {
            let changed = CStr::from_ptr((answer.f.PQcmdTuples)(answer.raw)).to_str()?;
            ((answer.f.PQntuples)(answer.raw), changed.parse().unwrap_or(0))
        };
        (0..rows).for_each(|row| visit(&PgRow { answer: &answer, row }));
        Ok(changed)
    }

    /// Begins to copy rows into a table.
    pub fn copy_in(&self, sql: &CStr) -> OpResult {
        // SAFETY: a live connection, a C string.
        let raw = unsafe { (self.f().PQexec)(self.raw, sql.as_ptr()) };
        self.answer(raw, COPY_IN).map(|_| ())
    }

    /// Sends lines of the rows to copy.
    pub fn copy(&self, lines: &[u8]) -> Result<()> {
        let length = c_int::try_from(lines.len())?;
        // SAFETY: a live connection that copies in; as many bytes as are said.
        let state = unsafe { (self.f().PQputCopyData)(self.raw, lines.as_ptr().cast(), length) };
        if state == 1 { Ok(()) } else { bail!("PostgreSQL: copy: {}", self.message()) }
    }

    /// Ends copying.
    pub fn copy_end(&self) -> OpResult {
        // SAFETY: a live connection that copies in; answers are taken until there are no more.
        unsafe {
            (self.f().PQputCopyEnd)(self.raw, ptr::null());
            let mut outcome = Ok(());
            loop {
                let raw = (self.f().PQgetResult)(self.raw);
                if raw.is_null() {
                    return outcome;
                }
                let one = self.answer(raw, COMMAND_OK).map(|_| ());
                outcome = outcome.and(one);
            }
        }
    }
}

impl Drop for PgConnection {
    fn drop(&mut self) {
        // SAFETY: not used again.
        unsafe { (self.f().PQfinish)(self.raw) };
    }
}

impl Drop for PgResult<'_> {
    fn drop(&mut self) {
        // SAFETY: not used again; null is allowed.
        unsafe { (self.f.PQclear)(self.raw) };
    }
}

struct PgRow<'a> {
    answer: &'a PgResult<'a>,
    row: c_int,
}

impl SqlRow for PgRow<'_> {
    fn integer(&self, column: usize) -> Option<i64> {
        std::str::from_utf8(self.text(column)?).ok()?.parse().ok()
    }

    fn text(&self, column: usize) -> Option<&[u8]> {
        let (f, raw, column) = (self.answer.f, self.answer.raw, column as c_int);
        // SAFETY: a row of the answer; a column that it does not have is taken for NULL. The value
        // lives as long as the answer.
        unsafe {
            if (f.PQgetisnull)(raw, self.row, column) != 0 {
                return None;
            }
            let data = (f.PQgetvalue)(raw, self.row, column).cast();
            let length = (f.PQgetlength)(raw, self.row, column) as usize;
            Some(slice::from_raw_parts(data, length))
        }
    }
}
