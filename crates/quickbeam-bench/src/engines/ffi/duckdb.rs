//! DuckDB, through its C interface.
//!
//! No Debian package brings it. The library is looked for as `libduckdb.so`, and else as the
//! extension module in the wheel `duckdb` of the Python Package Index, which has the same
//! functions: it needs the symbols of Python's library to be loaded, and never calls them here.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::slice;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use libloading::os::unix::{Library as UnixLibrary, RTLD_GLOBAL, RTLD_LAZY};

use super::{Handle, functions};
use crate::engine::{OpError, OpResult};
use crate::sql::{SqlRow, Value, VisitRow};

const VARIABLE: &str = "QUICKBEAM_BENCH_DUCKDB";

const ERROR_TRANSACTION: c_int = 10;
const TYPE_INTEGER: c_int = 4;
const TYPE_BIGINT: c_int = 5;
const TYPE_VARCHAR: c_int = 17;

/// `duckdb_result`: what is in it is read with functions.
#[repr(C)]
#[derive(Clone, Copy)]
struct DuckDbResult {
    deprecated: [u64; 3],
    pointers: [*mut c_void; 3],
}

/// `duckdb_string_t`: up to twelve bytes are in it, of longer texts a prefix and a pointer.
#[repr(C)]
#[derive(Clone, Copy)]
struct Text {
    length: u32,
    prefix: [u8; 4],
    rest: [u8; 8],
}

functions! {
    struct Functions {
        duckdb_library_version: fn() -> *const c_char;
        duckdb_open_ext: fn(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> c_int;
        duckdb_close: fn(*mut Handle);
        duckdb_connect: fn(Handle, *mut Handle) -> c_int;
        duckdb_disconnect: fn(*mut Handle);
        duckdb_free: fn(*mut c_void);
        duckdb_query: fn(Handle, *const c_char, *mut DuckDbResult) -> c_int;
        duckdb_destroy_result: fn(*mut DuckDbResult);
        duckdb_rows_changed: fn(*mut DuckDbResult) -> u64;
        duckdb_result_error: fn(*mut DuckDbResult) -> *const c_char;
        duckdb_result_error_type: fn(*mut DuckDbResult) -> c_int;
        duckdb_column_count: fn(*mut DuckDbResult) -> u64;
        duckdb_column_type: fn(*mut DuckDbResult, u64) -> c_int;
        duckdb_fetch_chunk: fn(DuckDbResult) -> Handle;
        duckdb_data_chunk_get_size: fn(Handle) -> u64;
        duckdb_data_chunk_get_vector: fn(Handle, u64) -> Handle;
        duckdb_destroy_data_chunk: fn(*mut Handle);
        duckdb_vector_get_data: fn(Handle) -> *const c_void;
        duckdb_vector_get_validity: fn(Handle) -> *const u64;
        duckdb_prepare: fn(Handle, *const c_char, *mut Handle) -> c_int;
        duckdb_prepare_error: fn(Handle) -> *const c_char;
        duckdb_destroy_prepare: fn(*mut Handle);
        duckdb_bind_int32: fn(Handle, u64, i32) -> c_int;
        duckdb_bind_int64: fn(Handle, u64, i64) -> c_int;
        duckdb_bind_varchar_length: fn(Handle, u64, *const c_char, u64) -> c_int;
        duckdb_execute_prepared: fn(Handle, *mut DuckDbResult) -> c_int;
        duckdb_appender_create: fn(Handle, *const c_char, *const c_char, *mut Handle) -> c_int;
        duckdb_appender_error: fn(Handle) -> *const c_char;
        duckdb_appender_end_row: fn(Handle) -> c_int;
        duckdb_appender_flush: fn(Handle) -> c_int;
        duckdb_appender_destroy: fn(*mut Handle) -> c_int;
        duckdb_append_int32: fn(Handle, i32) -> c_int;
        duckdb_append_int64: fn(Handle, i64) -> c_int;
        duckdb_append_varchar_length: fn(Handle, *const c_char, u64) -> c_int;
    }
}

/// The loaded library.
pub struct DuckDbLibrary {
    functions: Functions,
    version: String,
}

impl DuckDbLibrary {
    /// Loads DuckDB.
    pub fn load() -> Result<Arc<DuckDbLibrary>> {
        let functions = Functions::load(find()?)?;
        // SAFETY: returns a static C string.
        let version = unsafe { CStr::from_ptr((functions.duckdb_library_version)()) };
        let version = version.to_string_lossy().trim_start_matches('v').to_owned();
        Ok(Arc::new(DuckDbLibrary { functions, version }))
    }

    /// The release, as in `2.0.0`.
    pub fn version(&self) -> &str {
        &self.version
    }
}

fn find() -> Result<libloading::Library> {
    if let Ok(file) = std::env::var(VARIABLE) {
        return open(Path::new(&file)).with_context(|| format!("{VARIABLE}={file}"));
    }
    if let Ok(library) = super::open("libduckdb.so") {
        return Ok(library);
    }
    let wheel = module_of_wheel().ok_or_else(|| {
        anyhow!(
            "libduckdb.so is not installed (the module in PyPI's wheel `duckdb` will do, unpacked in {}; or name the \
             file in {VARIABLE})",
            place().display()
        )
    })?;
    open(&wheel).with_context(|| wheel.display().to_string())
}

/// Where `x` puts the wheel's module.
fn place() -> PathBuf {
    super::cache("duckdb")
}

fn module_of_wheel() -> Option<PathBuf> {
    let entries = std::fs::read_dir(place()).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.filter(|path| python_of(path).is_some()).max()
}

/// The Python library that a module is made for: `libpython3.11.so.1.0` of
/// `_duckdb.cpython-311-x86_64-linux-gnu.so`.
fn python_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (version, _) = name.strip_prefix("_duckdb.cpython-3")?.split_once('-')?;
    Some(format!("libpython3.{version}.so.1.0"))
}

fn open(path: &Path) -> Result<libloading::Library> {
    if let Some(python) = python_of(path) {
        // SAFETY: loading runs the library's initializers; Python's set up nothing before
        // `Py_Initialize`, which is never called.
        let loaded = unsafe { UnixLibrary::open(Some(&python), RTLD_LAZY | RTLD_GLOBAL) };
        let loaded = loaded.with_context(|| {
            format!("{python}, for its symbols (Debian package libpython3.11 or the like)")
        })?;
        // Stays loaded: the module refers to its symbols.
        std::mem::forget(loaded);
    }
    Ok(super::open(path.to_str().context("the path is not UTF-8")?)?)
}

/// An open database.
pub struct DuckDbDatabase {
    library: Arc<DuckDbLibrary>,
    raw: Handle,
}

// SAFETY: the manual allows connecting from any thread; nothing else is done with the handle.
unsafe impl Send for DuckDbDatabase {}
// SAFETY: as above.
unsafe impl Sync for DuckDbDatabase {}

impl DuckDbDatabase {
    /// Opens or creates the database in a file, or a new one in memory.
    pub fn open(library: &Arc<DuckDbLibrary>, path: Option<&str>) -> Result<DuckDbDatabase> {
        let path = path.map(CString::new).transpose()?;
        let path = path.as_ref().map_or(ptr::null(), |path| path.as_ptr());
        let (mut raw, mut error) = (ptr::null_mut(), ptr::null_mut());
        let f = &library.functions;
        // SAFETY: a C string or null for memory, no configuration, valid out pointers. The error
        // is ours to free.
        unsafe {
            if (f.duckdb_open_ext)(path, &mut raw, ptr::null_mut(), &mut error) != 0 {
                let text = text_of(error);
                (f.duckdb_free)(error.cast());
                bail!("DuckDB: open: {text}");
            }
        }
        Ok(DuckDbDatabase { library: Arc::clone(library), raw })
    }

    /// A connection for one thread.
    pub fn connect(&self) -> Result<DuckDbConnection<'_>> {
        let mut raw = ptr::null_mut();
        // SAFETY: an open database, a valid out pointer.
        if unsafe { (self.library.functions.duckdb_connect)(self.raw, &mut raw) } != 0 {
            bail!("DuckDB: cannot connect");
        }
        Ok(DuckDbConnection { database: self, raw, statements: Vec::new() })
    }
}

impl Drop for DuckDbDatabase {
    fn drop(&mut self) {
        // SAFETY: every connection borrows the database, so none is left.
        unsafe { (self.library.functions.duckdb_close)(&mut self.raw) };
    }
}

/// A text of the library, which may be null.
///
/// # Safety
///
/// `text` is null or a C string.
unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return "an error without a message".to_owned();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A connection with its prepared statements.
pub struct DuckDbConnection<'d> {
    database: &'d DuckDbDatabase,
    raw: Handle,
    statements: Vec<Handle>,
}

impl DuckDbConnection<'_> {
    fn f(&self) -> &Functions {
        &self.database.library.functions
    }

    /// Runs statements that are not prepared.
    pub fn run(&self, sql: &str) -> OpResult {
        let text = CString::new(sql)?;
        let mut answer = DuckDbResult::empty();
        // SAFETY: a live connection, a C string, a valid out pointer.
        let state = unsafe { (self.f().duckdb_query)(self.raw, text.as_ptr(), &mut answer) };
        let outcome = self.outcome(state, &mut answer);
        // SAFETY: filled by the call above, also after an error.
        unsafe { (self.f().duckdb_destroy_result)(&mut answer) };
        outcome
    }

    /// Prepares a statement; its number.
    pub fn prepare(&mut self, sql: &str) -> Result<usize> {
        let text = CString::new(sql)?;
        let mut raw = ptr::null_mut();
        // SAFETY: a live connection, a C string, a valid out pointer. The statement is made and
        // must be destroyed even when it is wrong; the error belongs to it.
        unsafe {
            if (self.f().duckdb_prepare)(self.raw, text.as_ptr(), &mut raw) != 0 {
                let error = text_of((self.f().duckdb_prepare_error)(raw));
                (self.f().duckdb_destroy_prepare)(&mut raw);
                bail!("DuckDB: {sql}: {error}");
            }
        }
        self.statements.push(raw);
        Ok(self.statements.len() - 1)
    }

    /// Runs a prepared statement, hands over the rows of its answer, and returns how many rows
    /// it changed.
    pub fn query(
        &self,
        statement: usize,
        parameters: &[Value<'_>],
        visit: &mut VisitRow<'_>,
    ) -> OpResult<u64> {
        let (f, statement) = (self.f(), self.statements[statement]);
        for (place, value) in (1..).zip(parameters) {
            // SAFETY: a live statement; texts are copied.
            let state = unsafe {
                match *value {
                    Value::Integer(number) => (f.duckdb_bind_int32)(statement, place, number),
                    Value::Bigint(number) => (f.duckdb_bind_int64)(statement, place, number),
                    Value::Text(text) => {
                        let (data, length) = (text.as_ptr().cast(), text.len() as u64);
                        (f.duckdb_bind_varchar_length)(statement, place, data, length)
                    }
                }
            };
            if state != 0 {
                return Err(anyhow!("DuckDB: parameter {place} cannot be bound").into());
            }
        }
        let mut answer = DuckDbResult::empty();
        // SAFETY: a live statement, a valid out pointer.
        let state = unsafe { (f.duckdb_execute_prepared)(statement, &mut answer) };
        let outcome = self.outcome(state, &mut answer).map(|()| self.read(&mut answer, visit));
        // SAFETY: filled by the call above, also after an error.
        unsafe { (f.duckdb_destroy_result)(&mut answer) };
        outcome
    }

    fn outcome(&self, state: c_int, answer: &mut DuckDbResult) -> OpResult {
        if state == 0 {
            return Ok(());
        }
        // SAFETY: an answer that has failed; its error belongs to it.
        let (kind, text) = unsafe {
            let kind = (self.f().duckdb_result_error_type)(answer);
            (kind, text_of((self.f().duckdb_result_error)(answer)))
        };
        match kind {
            ERROR_TRANSACTION => Err(OpError::Retry),
            _ => Err(anyhow!("DuckDB: {text}").into()),
        }
    }

    fn read(&self, answer: &mut DuckDbResult, visit: &mut VisitRow<'_>) -> u64 {
        let f = self.f();
        // SAFETY: a successful answer. Its chunks are destroyed here, and rows do not outlive the
        // call of `visit`.
        unsafe {
            let changed = (f.duckdb_rows_changed)(answer);
            let columns: Vec<c_int> = (0..(f.duckdb_column_count)(answer))
                .map(|column| (f.duckdb_column_type)(answer, column))
                .collect();
            loop {
                let mut chunk = (f.duckdb_fetch_chunk)(*answer);
                if chunk.is_null() {
                    return changed;
                }
                let rows = (f.duckdb_data_chunk_get_size)(chunk) as usize;
                let vectors: Vec<Column> = (0..)
                    .zip(&columns)
                    .map(|(number, &kind)| {
                        let vector = (f.duckdb_data_chunk_get_vector)(chunk, number);
                        Column {
                            kind,
                            data: (f.duckdb_vector_get_data)(vector),
                            validity: (f.duckdb_vector_get_validity)(vector),
                        }
                    })
                    .collect();
                (0..rows).for_each(|row| visit(&DuckDbRow { columns: &vectors, row }));
                (f.duckdb_destroy_data_chunk)(&mut chunk);
                if rows == 0 {
                    return changed;
                }
            }
        }
    }

    /// An appender for a table.
    pub fn appender(&self, table: &str) -> Result<Appender<'_>> {
        let table = CString::new(table)?;
        let mut raw = ptr::null_mut();
        // SAFETY: a live connection, C strings, a valid out pointer; made also after an error.
        let state = unsafe {
            (self.f().duckdb_appender_create)(self.raw, ptr::null(), table.as_ptr(), &mut raw)
        };
        let appender = Appender { connection: self, raw };
        appender.check(state)?;
        Ok(appender)
    }
}

impl Drop for DuckDbConnection<'_> {
    fn drop(&mut self) {
        // SAFETY: neither the statements nor the connection are used again.
        unsafe {
            for statement in &mut self.statements {
                (self.database.library.functions.duckdb_destroy_prepare)(statement);
            }
            (self.database.library.functions.duckdb_disconnect)(&mut self.raw);
        }
    }
}

impl DuckDbResult {
    fn empty() -> DuckDbResult {
        DuckDbResult { deprecated: [0; 3], pointers: [ptr::null_mut(); 3] }
    }
}

/// Fills a table.
pub struct Appender<'c> {
    connection: &'c DuckDbConnection<'c>,
    raw: Handle,
}

impl Appender<'_> {
    fn check(&self, state: c_int) -> Result<()> {
        if state == 0 {
            return Ok(());
        }
        // SAFETY: an appender; its error belongs to it.
        let text = unsafe { text_of((self.connection.f().duckdb_appender_error)(self.raw)) };
        bail!("DuckDB: append: {text}")
    }

    /// Adds a row.
    pub fn row(&mut self, row: &[Value<'_>]) -> Result<()> {
        let f = self.connection.f();
        for value in row {
            // SAFETY: a live appender; texts are copied.
            let state = unsafe {
                match *value {
                    Value::Integer(number) => (f.duckdb_append_int32)(self.raw, number),
                    Value::Bigint(number) => (f.duckdb_append_int64)(self.raw, number),
                    Value::Text(text) => {
                        let (data, length) = (text.as_ptr().cast(), text.len() as u64);
                        (f.duckdb_append_varchar_length)(self.raw, data, length)
                    }
                }
            };
            self.check(state)?;
        }
        // SAFETY: a live appender.
        self.check(unsafe { (f.duckdb_appender_end_row)(self.raw) })
    }

    /// Hands everything to the table.
    pub fn finish(self) -> Result<()> {
        // SAFETY: a live appender.
        self.check(unsafe { (self.connection.f().duckdb_appender_flush)(self.raw) })
    }
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        // SAFETY: not used again.
        unsafe { (self.connection.f().duckdb_appender_destroy)(&mut self.raw) };
    }
}

/// A column of a chunk.
struct Column {
    kind: c_int,
    data: *const c_void,
    validity: *const u64,
}

struct DuckDbRow<'c> {
    columns: &'c [Column],
    row: usize,
}

impl DuckDbRow<'_> {
    /// A value that is not NULL.
    fn valid(&self, column: usize) -> Option<&Column> {
        let column = self.columns.get(column)?;
        // SAFETY: null, or a bit for each row of the chunk.
        let valid = column.validity.is_null()
            || unsafe { *column.validity.add(self.row / 64) } >> (self.row % 64) & 1 == 1;
        valid.then_some(column)
    }
}

impl SqlRow for DuckDbRow<'_> {
    fn integer(&self, column: usize) -> Option<i64> {
        let column = self.valid(column)?;
        // SAFETY: the vector of a column of this type has a value of this size for each row.
        unsafe {
            match column.kind {
                TYPE_INTEGER => Some((*column.data.cast::<i32>().add(self.row)).into()),
                TYPE_BIGINT => Some(*column.data.cast::<i64>().add(self.row)),
                _ => None,
            }
        }
    }

    fn text(&self, column: usize) -> Option<&[u8]> {
        let column = self.valid(column)?;
        if column.kind != TYPE_VARCHAR {
            return None;
        }
        // SAFETY: as above; a text lives as long as its chunk, which outlives the row. Up to
        // twelve bytes follow the length, of longer ones a pointer follows the prefix.
        unsafe {
            let text = column.data.cast::<Text>().add(self.row);
            let length = (*text).length as usize;
            if length <= 12 {
                return Some(slice::from_raw_parts((&raw const (*text).prefix).cast(), length));
            }
            let data = usize::from_ne_bytes((*text).rest) as *const u8;
            Some(slice::from_raw_parts(data, length))
        }
    }
}
