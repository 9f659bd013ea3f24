//! SQLite 3, and Berkeley DB SQL, which has the same interface.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::slice;
use std::sync::Arc;

use anyhow::{Result, bail};

use super::{Handle, Source, functions};
use crate::engine::{OpError, OpResult};
use crate::sql::{SqlRow, Value, VisitRow};

const SOURCE: Source = Source {
    variable: "QUICKBEAM_BENCH_SQLITE",
    newest: Some("libsqlite3.so"),
    files: &["libsqlite3.so.0"],
    package: "libsqlite3-0",
};

const BERKELEY_DB: Source = Source {
    variable: "QUICKBEAM_BENCH_BDB_SQL",
    newest: None,
    files: &["libdb_sql-5.3.so"],
    package: "libdb5.3-sql",
};

const OK: c_int = 0;
const BUSY: c_int = 5;
const LOCKED: c_int = 6;
const ROW: c_int = 100;
const DONE: c_int = 101;
const OPEN_READWRITE: c_int = 0x2;
const OPEN_CREATE: c_int = 0x4;
const OPEN_URI: c_int = 0x40;
const OPEN_NOMUTEX: c_int = 0x8000;
const NULL: c_int = 5;
const PREPARE_PERSISTENT: u32 = 1;

type Destructor = *const c_void;

functions! {
    struct Functions {
        sqlite3_libversion: fn() -> *const c_char;
        sqlite3_open_v2: fn(*const c_char, *mut Handle, c_int, *const c_char) -> c_int;
        sqlite3_close: fn(Handle) -> c_int;
        sqlite3_errmsg: fn(Handle) -> *const c_char;
        sqlite3_prepare_v2: fn(Handle, *const c_char, c_int, *mut Handle, *mut *const c_char) -> c_int;
        sqlite3_bind_blob: fn(Handle, c_int, *const c_void, c_int, Destructor) -> c_int;
        sqlite3_bind_int64: fn(Handle, c_int, i64) -> c_int;
        sqlite3_bind_text: fn(Handle, c_int, *const c_char, c_int, Destructor) -> c_int;
        sqlite3_step: fn(Handle) -> c_int;
        sqlite3_reset: fn(Handle) -> c_int;
        sqlite3_finalize: fn(Handle) -> c_int;
        sqlite3_column_blob: fn(Handle, c_int) -> *const c_void;
        sqlite3_column_bytes: fn(Handle, c_int) -> c_int;
        sqlite3_column_int64: fn(Handle, c_int) -> i64;
        sqlite3_column_text: fn(Handle, c_int) -> *const u8;
        sqlite3_column_type: fn(Handle, c_int) -> c_int;
        sqlite3_changes: fn(Handle) -> c_int;
    }
}

functions! {
    /// What SQLite has learned since Berkeley DB took its interface over.
    struct Newer {
        sqlite3_prepare_v3: fn(Handle, *const c_char, c_int, u32, *mut Handle, *mut *const c_char) -> c_int;
    }
}

/// The loaded library.
pub struct SqliteLibrary {
    functions: Functions,
    newer: Option<Newer>,
    version: String,
}

impl SqliteLibrary {
    /// Loads SQLite 3.
    pub fn load() -> Result<Arc<SqliteLibrary>> {
        SqliteLibrary::load_from(&SOURCE)
    }

    /// Loads Berkeley DB SQL.
    pub fn load_berkeley_db() -> Result<Arc<SqliteLibrary>> {
        SqliteLibrary::load_from(&BERKELEY_DB)
    }

    fn load_from(source: &Source) -> Result<Arc<SqliteLibrary>> {
        let functions = Functions::load(source.load()?)?;
        // A second handle of the same library: an old one lacks the function, which is no error.
        let newer = Newer::load(source.load()?).ok();
        // SAFETY: returns a static C string.
        let version = unsafe { CStr::from_ptr((functions.sqlite3_libversion)()) };
        let version = version.to_string_lossy().into_owned();
        Ok(Arc::new(SqliteLibrary { functions, newer, version }))
    }

    /// The release, as in `3.40.1`.
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// `sqlite3` with its prepared statements, used by one thread at a time.
pub struct SqliteConnection {
    library: Arc<SqliteLibrary>,
    raw: Handle,
    statements: Vec<Handle>,
}

// SAFETY: opened without a mutex, a connection may move between threads as long as one at a time
// uses it and its statements. It owns them all, hands none out, and is not Sync.
unsafe impl Send for SqliteConnection {}

/// Names a prepared statement of the connection that made it.
#[derive(Clone, Copy)]
pub struct Statement(usize);

/// The current row of a statement.
pub struct SqliteRow<'c> {
    connection: &'c SqliteConnection,
    statement: Handle,
}

impl SqliteConnection {
    /// Opens or creates the database `name`: a path, `:memory:`, or a URI that starts with `file:`.
    pub fn open(library: &Arc<SqliteLibrary>, name: &str) -> Result<SqliteConnection> {
        let mut raw = ptr::null_mut();
        let path = CString::new(name)?;
        let uri = if name.starts_with("file:") { OPEN_URI } else { 0 };
        let flags = OPEN_READWRITE | OPEN_CREATE | OPEN_NOMUTEX | uri;
        // SAFETY: a C string that outlives the call, a valid out pointer, the default VFS.
        let code = unsafe {
            (library.functions.sqlite3_open_v2)(path.as_ptr(), &mut raw, flags, ptr::null())
        };
        // Made before the check because the handle must be closed even when opening failed.
        let connection =
            SqliteConnection { library: Arc::clone(library), raw, statements: Vec::new() };
        connection.check(code, name)?;
        Ok(connection)
    }

    /// Prepares a statement that will be used many times.
    pub fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let mut raw = ptr::null_mut();
        let text = CString::new(sql)?;
        let f = &self.library.functions;
        // SAFETY: a live connection, a C string that outlives the call, valid out pointers.
        let code = unsafe {
            let (from, to, rest) = (text.as_ptr(), &mut raw, ptr::null_mut());
            match &self.library.newer {
                Some(newer) => {
                    (newer.sqlite3_prepare_v3)(self.raw, from, -1, PREPARE_PERSISTENT, to, rest)
                }
                None => (f.sqlite3_prepare_v2)(self.raw, from, -1, to, rest),
            }
        };
        self.check(code, sql)?;
        self.statements.push(raw);
        Ok(Statement(self.statements.len() - 1))
    }

    /// Runs statements once.
    pub fn execute(&mut self, sql: &str) -> Result<()> {
        let statement = self.prepare(sql)?;
        let outcome = self.rows(statement, &[], |_| {});
        let raw = self.statements.pop().expect("prepared above");
        // SAFETY: not used again.
        unsafe { (self.library.functions.sqlite3_finalize)(raw) };
        match outcome {
            Ok(()) => Ok(()),
            Err(OpError::Failed(error)) => Err(error.context(sql.to_owned())),
            Err(OpError::Retry) => bail!("SQLite: {sql}: the database is locked"),
        }
    }

    /// Runs a statement that returns no rows.
    pub fn run(&self, statement: Statement, parameters: &[&[u8]]) -> OpResult {
        self.rows(statement, parameters, |_| {})
    }

    /// Binds blobs to the parameters, runs the statement and hands each row to `visit`.
    pub fn rows(
        &self,
        statement: Statement,
        parameters: &[&[u8]],
        visit: impl FnMut(SqliteRow<'_>),
    ) -> OpResult {
        let f = &self.library.functions;
        let statement = self.statements[statement.0];
        for (i, bytes) in parameters.iter().enumerate() {
            // SAFETY: SQLITE_STATIC (a null destructor) promises that the bytes outlive the run of
            // the statement: it is reset before this function returns, and every parameter is
            // bound again before its next run.
            let code = unsafe {
                let (data, size) = (bytes.as_ptr().cast(), bytes.len() as c_int);
                (f.sqlite3_bind_blob)(statement, i as c_int + 1, data, size, ptr::null())
            };
            self.check(code, "bind")?;
        }
        self.step(statement, visit)
    }

    /// As [`rows`](Self::rows), with a number as the second of two parameters.
    pub fn rows_limited(
        &self,
        statement: Statement,
        key: &[u8],
        limit: usize,
        visit: impl FnMut(SqliteRow<'_>),
    ) -> OpResult {
        let raw = self.statements[statement.0];
        // SAFETY: a live statement.
        let code = unsafe { (self.library.functions.sqlite3_bind_int64)(raw, 2, limit as i64) };
        self.check(code, "bind")?;
        self.rows(statement, &[key], visit)
    }

    /// Binds values to the parameters, runs the statement and hands each row to `visit`.
    pub fn query(
        &self,
        statement: Statement,
        parameters: &[Value<'_>],
        visit: &mut VisitRow<'_>,
    ) -> OpResult {
        let f = &self.library.functions;
        let statement = self.statements[statement.0];
        for (place, value) in (1..).zip(parameters) {
            // SAFETY: as in `rows`: texts outlive the run of the statement.
            let code = unsafe {
                match *value {
                    Value::Integer(number) => {
                        (f.sqlite3_bind_int64)(statement, place, number.into())
                    }
                    Value::Bigint(number) => (f.sqlite3_bind_int64)(statement, place, number),
                    Value::Text(text) => {
                        let (data, size) = (text.as_ptr().cast(), text.len() as c_int);
                        (f.sqlite3_bind_text)(statement, place, data, size, ptr::null())
                    }
                }
            };
            self.check(code, "bind")?;
        }
        self.step(statement, |row| visit(&row))
    }

    /// Runs a statement whose parameters are bound.
    fn step(&self, statement: Handle, mut visit: impl FnMut(SqliteRow<'_>)) -> OpResult {
        let f = &self.library.functions;
        let outcome = loop {
            // SAFETY: a live statement of this connection.
            match unsafe { (f.sqlite3_step)(statement) } {
                ROW => visit(SqliteRow { connection: self, statement }),
                DONE => break Ok(()),
                BUSY | LOCKED => break Err(OpError::Retry),
                code => break self.check(code, "step").map_err(OpError::Failed),
            }
        };
        // SAFETY: a live statement. The code repeats the error of `step`.
        unsafe { (f.sqlite3_reset)(statement) };
        outcome
    }

    /// Rows changed by the last statement.
    pub fn changes(&self) -> i32 {
        // SAFETY: a live connection.
        unsafe { (self.library.functions.sqlite3_changes)(self.raw) }
    }

    fn check(&self, code: c_int, what: &str) -> Result<()> {
        if code == OK {
            return Ok(());
        }
        // SAFETY: returns a C string, also for a connection that failed to open.
        let text = unsafe { CStr::from_ptr((self.library.functions.sqlite3_errmsg)(self.raw)) };
        bail!("SQLite: {what}: {} (code {code})", text.to_string_lossy())
    }
}

impl Drop for SqliteConnection {
    fn drop(&mut self) {
        // SAFETY: neither the statements nor the connection are used again.
        unsafe {
            for &statement in &self.statements {
                (self.library.functions.sqlite3_finalize)(statement);
            }
            (self.library.functions.sqlite3_close)(self.raw);
        }
    }
}

impl SqliteRow<'_> {
    /// The blob in `column`.
    pub fn blob(&self, column: c_int) -> &[u8] {
        let f = &self.connection.library.functions;
        // SAFETY: the pointer is valid until the statement moves on, which cannot happen while
        // `visit` runs, and the row does not outlive that call. Null means an empty blob.
        unsafe {
            let data = (f.sqlite3_column_blob)(self.statement, column);
            let size = (f.sqlite3_column_bytes)(self.statement, column);
            if data.is_null() {
                return &[];
            }
            slice::from_raw_parts(data.cast(), size as usize)
        }
    }
}

impl SqlRow for SqliteRow<'_> {
    fn integer(&self, column: usize) -> Option<i64> {
        let f = &self.connection.library.functions;
        let column = column as c_int;
        // SAFETY: the statement has a current row; another column is NULL.
        unsafe {
            let null = (f.sqlite3_column_type)(self.statement, column) == NULL;
            (!null).then(|| (f.sqlite3_column_int64)(self.statement, column))
        }
    }

    fn text(&self, column: usize) -> Option<&[u8]> {
        let f = &self.connection.library.functions;
        let column = column as c_int;
        // SAFETY: as in `blob`; null means NULL. The text is asked for before its size, as the
        // manual says.
        unsafe {
            let data = (f.sqlite3_column_text)(self.statement, column);
            let size = (f.sqlite3_column_bytes)(self.statement, column);
            (!data.is_null()).then(|| slice::from_raw_parts(data, size as usize))
        }
    }
}
