//! LMDB 0.9.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::slice;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};

use super::{Handle, Source, functions};
use crate::engine::{Span, Visit};

const SOURCE: Source = Source {
    variable: "QUICKBEAM_BENCH_LMDB",
    newest: Some("liblmdb.so"),
    files: &["liblmdb.so.0"],
    package: "liblmdb0",
};

pub const NOSYNC: c_uint = 0x10000;
pub const WRITEMAP: c_uint = 0x80000;
const RDONLY: c_uint = 0x20000;
const NOTFOUND: c_int = -30798;
const FIRST: c_int = 0;
const LAST: c_int = 6;
const NEXT: c_int = 8;
const PREVIOUS: c_int = 12;
const SET: c_int = 15;
const SET_KEY: c_int = 16;
const SET_RANGE: c_int = 17;

/// `MDB_val`.
#[repr(C)]
struct LmdbValue {
    size: usize,
    data: *mut c_void,
}

impl LmdbValue {
    fn input(bytes: &[u8]) -> LmdbValue {
        LmdbValue { size: bytes.len(), data: bytes.as_ptr() as *mut c_void }
    }

    fn empty() -> LmdbValue {
        LmdbValue { size: 0, data: ptr::null_mut() }
    }

    /// # Safety
    /// The value must have been filled in by LMDB in a transaction that is still open.
    unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: LMDB hands out a pointer into its map, valid to the end of the transaction.
        unsafe { slice::from_raw_parts(self.data.cast(), self.size) }
    }
}

functions! {
    struct Functions {
        mdb_version: fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
        mdb_strerror: fn(c_int) -> *const c_char;
        mdb_env_create: fn(*mut Handle) -> c_int;
        mdb_env_set_mapsize: fn(Handle, usize) -> c_int;
        mdb_env_open: fn(Handle, *const c_char, c_uint, libc::mode_t) -> c_int;
        mdb_env_sync: fn(Handle, c_int) -> c_int;
        mdb_env_close: fn(Handle);
        mdb_txn_begin: fn(Handle, Handle, c_uint, *mut Handle) -> c_int;
        mdb_txn_commit: fn(Handle) -> c_int;
        mdb_txn_abort: fn(Handle);
        mdb_txn_reset: fn(Handle);
        mdb_txn_renew: fn(Handle) -> c_int;
        mdb_dbi_open: fn(Handle, *const c_char, c_uint, *mut c_uint) -> c_int;
        mdb_cursor_open: fn(Handle, c_uint, *mut Handle) -> c_int;
        mdb_cursor_renew: fn(Handle, Handle) -> c_int;
        mdb_cursor_close: fn(Handle);
        mdb_cursor_get: fn(Handle, *mut LmdbValue, *mut LmdbValue, c_int) -> c_int;
        mdb_cursor_put: fn(Handle, *mut LmdbValue, *mut LmdbValue, c_uint) -> c_int;
        mdb_cursor_del: fn(Handle, c_uint) -> c_int;
    }
}

/// The loaded library.
pub struct LmdbLibrary {
    functions: Functions,
    version: String,
}

impl LmdbLibrary {
    /// Loads LMDB 0.9.
    pub fn load() -> Result<Arc<LmdbLibrary>> {
        let functions = Functions::load(SOURCE.load()?)?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: three valid out pointers.
        unsafe { (functions.mdb_version)(&mut major, &mut minor, &mut patch) };
        ensure!((major, minor) == (0, 9), "LMDB 0.9 is needed, {major}.{minor} was found");
        Ok(Arc::new(LmdbLibrary { functions, version: format!("{major}.{minor}.{patch}") }))
    }

    /// The release, as in `0.9.24`.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn check(&self, code: c_int, what: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: mdb_strerror returns a C string for every code.
        let text = unsafe { CStr::from_ptr((self.functions.mdb_strerror)(code)) };
        bail!("LMDB: {what}: {}", text.to_string_lossy())
    }
}

/// `MDB_env` with its one database.
pub struct LmdbEnvironment {
    library: Arc<LmdbLibrary>,
    raw: Handle,
    database: c_uint,
}

// SAFETY: an MDB_env may be shared between threads; transactions and cursors stay in theirs.
unsafe impl Send for LmdbEnvironment {}
// SAFETY: as above.
unsafe impl Sync for LmdbEnvironment {}

impl LmdbEnvironment {
    /// Opens the environment in `directory` with a map of `map_size` bytes.
    pub fn open(
        library: &Arc<LmdbLibrary>,
        directory: &Path,
        map_size: usize,
        flags: c_uint,
    ) -> Result<LmdbEnvironment> {
        let f = &library.functions;
        let mut raw = ptr::null_mut();
        // SAFETY: a valid out pointer.
        library.check(unsafe { (f.mdb_env_create)(&mut raw) }, "create environment")?;
        let mut environment = LmdbEnvironment { library: Arc::clone(library), raw, database: 0 };
        let path = CString::new(directory.as_os_str().as_encoded_bytes())?;
        // SAFETY: a live environment and a C string that outlives the calls.
        unsafe {
            library.check((f.mdb_env_set_mapsize)(raw, map_size), "set map size")?;
            library
                .check((f.mdb_env_open)(raw, path.as_ptr(), flags, 0o600), "open environment")?;
        }
        let transaction = environment.begin_raw(0)?;
        let mut database = 0;
        // SAFETY: a live transaction; a null name is the unnamed database.
        unsafe {
            let opened = (f.mdb_dbi_open)(transaction, ptr::null(), 0, &mut database);
            // Committing also publishes the handle to other transactions.
            let committed = (f.mdb_txn_commit)(transaction);
            library.check(opened, "open database")?;
            library.check(committed, "open database")?;
        }
        environment.database = database;
        Ok(environment)
    }

    fn begin_raw(&self, flags: c_uint) -> Result<Handle> {
        let mut raw = ptr::null_mut();
        // SAFETY: a live environment, no parent, a valid out pointer.
        let code = unsafe {
            (self.library.functions.mdb_txn_begin)(self.raw, ptr::null_mut(), flags, &mut raw)
        };
        self.library.check(code, "begin")?;
        Ok(raw)
    }

    fn open_cursor(&self, transaction: Handle) -> Result<Handle> {
        let mut raw = ptr::null_mut();
        // SAFETY: a live transaction and a valid out pointer.
        let code = unsafe {
            (self.library.functions.mdb_cursor_open)(transaction, self.database, &mut raw)
        };
        self.library.check(code, "open cursor")?;
        Ok(raw)
    }

    /// A read-only transaction that is used over and over.
    pub fn reader(&self) -> Result<ReadTransaction<'_>> {
        let transaction = self.begin_raw(RDONLY)?;
        let cursor = match self.open_cursor(transaction) {
            Ok(cursor) => cursor,
            Err(error) => {
                // SAFETY: the transaction is not used again.
                unsafe { (self.library.functions.mdb_txn_abort)(transaction) };
                return Err(error);
            }
        };
        // SAFETY: a live read-only transaction.
        unsafe { (self.library.functions.mdb_txn_reset)(transaction) };
        Ok(ReadTransaction { environment: self, transaction, cursor })
    }

    /// Begins the write transaction; waits while another thread has one.
    pub fn writer(&self) -> Result<WriteTransaction<'_>> {
        let transaction = self.begin_raw(0)?;
        match self.open_cursor(transaction) {
            Ok(cursor) => Ok(WriteTransaction {
                environment: self,
                transaction,
                cursor,
                _not_send: PhantomData,
            }),
            Err(error) => {
                // SAFETY: the transaction is not used again.
                unsafe { (self.library.functions.mdb_txn_abort)(transaction) };
                Err(error)
            }
        }
    }

    /// Flushes the map to the device.
    pub fn sync(&self) -> Result<()> {
        // SAFETY: a live environment.
        let code = unsafe { (self.library.functions.mdb_env_sync)(self.raw, 1) };
        self.library.check(code, "sync")
    }
}

impl Drop for LmdbEnvironment {
    fn drop(&mut self) {
        // SAFETY: transactions borrow the environment, so none is left; not used again.
        unsafe { (self.library.functions.mdb_env_close)(self.raw) };
    }
}

/// A read-only transaction and its cursor, renewed for each use: LMDB's advice for readers.
pub struct ReadTransaction<'e> {
    environment: &'e LmdbEnvironment,
    transaction: Handle,
    cursor: Handle,
}

impl ReadTransaction<'_> {
    /// Takes the newest snapshot.
    pub fn renew(&mut self) -> Result<()> {
        let f = &self.environment.library.functions;
        // SAFETY: the transaction was reset before (see `reader` and `reset`).
        unsafe {
            self.environment.library.check((f.mdb_txn_renew)(self.transaction), "renew")?;
            let code = (f.mdb_cursor_renew)(self.transaction, self.cursor);
            self.environment.library.check(code, "renew cursor")
        }
    }

    /// Gives the snapshot back.
    pub fn reset(&mut self) {
        // SAFETY: a live read-only transaction.
        unsafe { (self.environment.library.functions.mdb_txn_reset)(self.transaction) };
    }

    /// Copies the value of `key` into `value`; between `renew` and `reset`.
    pub fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (mut key, mut data) = (LmdbValue::input(key), LmdbValue::empty());
        let library = &self.environment.library;
        // SAFETY: a live cursor; LMDB only reads through the key.
        let code = unsafe {
            (library.functions.mdb_cursor_get)(self.cursor, &mut key, &mut data, SET_KEY)
        };
        value.clear();
        if code == NOTFOUND {
            return Ok(false);
        }
        library.check(code, "get")?;
        // SAFETY: filled in by LMDB just now.
        value.extend_from_slice(unsafe { data.bytes() });
        Ok(true)
    }

    /// Visits the records of a span; between `renew` and `reset`.
    pub fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> Result<()> {
        let library = &self.environment.library;
        let onward = if span.backward { PREVIOUS } else { NEXT };
        let mut visited = 0;
        let mut operation = SET_RANGE;
        while visited < span.count {
            let (mut key, mut data) = (LmdbValue::input(span.from), LmdbValue::empty());
            // SAFETY: a live cursor and valid out pointers; LMDB only reads through the key.
            let code = unsafe {
                (library.functions.mdb_cursor_get)(self.cursor, &mut key, &mut data, operation)
            };
            if code == NOTFOUND {
                if operation != SET_RANGE || !span.backward {
                    return Ok(());
                }
                operation = LAST;
                continue;
            }
            library.check(code, "range")?;
            // SAFETY: both filled in by LMDB just now.
            let (key, data) = unsafe { (key.bytes(), data.bytes()) };
            // A backward read begins at the record after its key, if there is none with it.
            if !span.backward || key <= span.from {
                visit(key, data);
                visited += 1;
            }
            operation = onward;
        }
        Ok(())
    }

    /// Visits every record in key order; between `renew` and `reset`.
    pub fn scan(&mut self, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let library = &self.environment.library;
        let mut direction = FIRST;
        loop {
            let (mut key, mut data) = (LmdbValue::empty(), LmdbValue::empty());
            // SAFETY: a live cursor and valid out pointers.
            let code = unsafe {
                (library.functions.mdb_cursor_get)(self.cursor, &mut key, &mut data, direction)
            };
            if code == NOTFOUND {
                return Ok(());
            }
            library.check(code, "scan")?;
            // SAFETY: both filled in by LMDB just now.
            unsafe { visit(key.bytes(), data.bytes()) };
            direction = NEXT;
        }
    }
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        let f = &self.environment.library.functions;
        // SAFETY: neither is used again; a cursor of a read-only transaction is closed by hand.
        unsafe {
            (f.mdb_cursor_close)(self.cursor);
            (f.mdb_txn_abort)(self.transaction);
        }
    }
}

/// The write transaction and its cursor; dropping it aborts it.
pub struct WriteTransaction<'e> {
    environment: &'e LmdbEnvironment,
    transaction: Handle,
    cursor: Handle,
    _not_send: PhantomData<*mut ()>,
}

impl WriteTransaction<'_> {
    /// Inserts or replaces.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (mut key, mut value) = (LmdbValue::input(key), LmdbValue::input(value));
        let library = &self.environment.library;
        // SAFETY: a live cursor; LMDB only reads through both values.
        let code =
            unsafe { (library.functions.mdb_cursor_put)(self.cursor, &mut key, &mut value, 0) };
        library.check(code, "put")
    }

    /// Deletes; an error when there is no such record.
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        let (mut key, mut data) = (LmdbValue::input(key), LmdbValue::empty());
        let library = &self.environment.library;
        // SAFETY: a live cursor; LMDB only reads through the key.
        unsafe {
            let found = (library.functions.mdb_cursor_get)(self.cursor, &mut key, &mut data, SET);
            library.check(found, "delete")?;
            library.check((library.functions.mdb_cursor_del)(self.cursor, 0), "delete")
        }
    }

    /// Commits with the durability of the environment.
    pub fn commit(mut self) -> Result<()> {
        let f = &self.environment.library.functions;
        let transaction = std::mem::replace(&mut self.transaction, ptr::null_mut());
        // SAFETY: neither handle is used again, whatever commit returns.
        let code = unsafe {
            (f.mdb_cursor_close)(self.cursor);
            (f.mdb_txn_commit)(transaction)
        };
        self.environment.library.check(code, "commit")
    }
}

impl Drop for WriteTransaction<'_> {
    fn drop(&mut self) {
        if !self.transaction.is_null() {
            let f = &self.environment.library.functions;
            // SAFETY: neither handle is used again.
            unsafe {
                (f.mdb_cursor_close)(self.cursor);
                (f.mdb_txn_abort)(self.transaction);
            }
        }
    }
}
