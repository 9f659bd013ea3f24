//! Berkeley DB 5.3: its handles are C structures full of function pointers.
//!
//! The structures are not declared here in full (they have some 300 members each); a method is
//! read from its offset in the handle. The offsets are those of `db.h` of release 5.3.28 on a
//! 64-bit system. [`Library::load`] refuses every other release, and [`Environment::new`] checks
//! two of the offsets against each other before it uses any other.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};

use super::bdb_layout::*;
use super::{Source, functions};
use crate::engine::{OpError, OpResult};

const SOURCE: Source =
    Source { variable: "QUICKBEAM_BENCH_BDB", files: &["libdb-5.3.so"], package: "libdb5.3" };

functions! {
    struct Functions {
        db_version: fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
        db_strerror: fn(c_int) -> *const c_char;
        db_env_create: fn(*mut Handle, u32) -> c_int;
        db_create: fn(*mut Handle, Handle, u32) -> c_int;
    }
}

/// The loaded library.
pub struct Library {
    functions: Functions,
    version: String,
}

impl Library {
    /// Loads Berkeley DB 5.3 and refuses any other release: the offsets would be wrong.
    pub fn load() -> Result<Arc<Library>> {
        let functions = Functions::load(SOURCE.load()?)?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: three valid out pointers.
        unsafe { (functions.db_version)(&mut major, &mut minor, &mut patch) };
        ensure!(
            (major, minor) == (5, 3) && cfg!(target_pointer_width = "64"),
            "Berkeley DB 5.3 for a 64-bit system is needed, {major}.{minor}.{patch} was found"
        );
        Ok(Arc::new(Library { functions, version: format!("{major}.{minor}.{patch}") }))
    }

    /// The release, as in `5.3.28`.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn check(&self, code: c_int, what: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: db_strerror returns a C string for every code.
        let text = unsafe { CStr::from_ptr((self.functions.db_strerror)(code)) };
        bail!("Berkeley DB: {what}: {}", text.to_string_lossy())
    }

    fn op(&self, code: c_int, what: &str) -> OpResult {
        match code {
            0 => Ok(()),
            LOCK_DEADLOCK | LOCK_NOTGRANTED => Err(OpError::Retry),
            other => Ok(self.check(other, what)?),
        }
    }
}

/// Reads the method at `offset` of the structure that `handle` points to.
///
/// # Safety
/// `handle` must be a live Berkeley DB 5.3 handle and `F` the type of its member at `offset`.
unsafe fn method<F: Copy>(handle: Handle, offset: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: by the contract above the member is there and has this type.
    unsafe { handle.cast::<u8>().add(offset).cast::<F>().read() }
}

type EnvU32 = unsafe extern "C" fn(Handle, u32) -> c_int;
type EnvU32Int = unsafe extern "C" fn(Handle, u32, c_int) -> c_int;

/// `DB_ENV`.
pub struct Environment {
    library: Arc<Library>,
    raw: Handle,
}

// SAFETY: environments are opened with DB_THREAD whenever more than one thread uses them (see the
// adapter), which makes the handle free-threaded.
unsafe impl Send for Environment {}
// SAFETY: as above.
unsafe impl Sync for Environment {}

impl Environment {
    /// A handle that is configured next and then opened.
    pub fn new(library: &Arc<Library>) -> Result<Environment> {
        let mut raw = ptr::null_mut();
        // SAFETY: a valid out pointer; 0 is the only flag there is.
        let code = unsafe { (library.functions.db_env_create)(&mut raw, 0) };
        library.check(code, "db_env_create")?;
        let environment = Environment { library: Arc::clone(library), raw };
        environment.check_layout()?;
        Ok(environment)
    }

    /// Sets the cache size through one offset and reads it back through another, far from it.
    fn check_layout(&self) -> Result<()> {
        self.set_cache_size(64 << 20)?;
        let (mut gigabytes, mut bytes, mut regions) = (0u32, 0u32, 0 as c_int);
        type Get = unsafe extern "C" fn(Handle, *mut u32, *mut u32, *mut c_int) -> c_int;
        // SAFETY: get_cachesize of this release, three valid out pointers.
        let code = unsafe {
            method::<Get>(self.raw, env::GET_CACHESIZE)(
                self.raw,
                &mut gigabytes,
                &mut bytes,
                &mut regions,
            )
        };
        self.library.check(code, "get_cachesize")?;
        // Berkeley DB adds a quarter to caches below 500 MB for its own structures.
        ensure!(
            gigabytes == 0 && (64 << 20..=96 << 20).contains(&bytes),
            "this build of Berkeley DB 5.3 has another layout of its handles"
        );
        Ok(())
    }

    /// `set_cachesize`, in one region.
    pub fn set_cache_size(&self, bytes: u64) -> Result<()> {
        type Set = unsafe extern "C" fn(Handle, u32, u32, c_int) -> c_int;
        let (gigabytes, rest) = ((bytes >> 30) as u32, (bytes & ((1 << 30) - 1)) as u32);
        // SAFETY: set_cachesize of this release.
        let code =
            unsafe { method::<Set>(self.raw, env::SET_CACHESIZE)(self.raw, gigabytes, rest, 1) };
        self.library.check(code, "set_cachesize")
    }

    /// `set_lg_bsize`.
    pub fn set_log_buffer(&self, bytes: u32) -> Result<()> {
        self.set(env::SET_LG_BSIZE, bytes, "set_lg_bsize")
    }

    /// `set_lg_max`, the size of a log file: at least four times the buffer.
    pub fn set_log_file(&self, bytes: u32) -> Result<()> {
        self.set(env::SET_LG_MAX, bytes, "set_lg_max")
    }

    /// Keeps the log in memory only.
    pub fn set_log_in_memory(&self) -> Result<()> {
        self.set_int(env::LOG_SET_CONFIG, LOG_IN_MEMORY, "log_set_config")
    }

    /// Removes log files that are no longer needed.
    pub fn set_log_auto_remove(&self) -> Result<()> {
        self.set_int(env::LOG_SET_CONFIG, LOG_AUTO_REMOVE, "log_set_config")
    }

    /// The default of every transaction: `TXN_NOSYNC` or `TXN_WRITE_NOSYNC`.
    pub fn set_durability(&self, flag: u32) -> Result<()> {
        self.set_int(env::SET_FLAGS, flag, "set_flags")
    }

    /// Runs the deadlock detector whenever a lock must wait, and makes room for many locks.
    pub fn set_locks(&self, maximum: u32) -> Result<()> {
        self.set(env::SET_LK_DETECT, LOCK_DEFAULT, "set_lk_detect")?;
        self.set(env::SET_LK_MAX_LOCKS, maximum, "set_lk_max_locks")?;
        self.set(env::SET_LK_MAX_OBJECTS, maximum, "set_lk_max_objects")?;
        self.set(env::SET_LK_MAX_LOCKERS, 10_000, "set_lk_max_lockers")
    }

    fn set(&self, offset: usize, value: u32, what: &str) -> Result<()> {
        // SAFETY: every caller names a method of type int (DB_ENV *, u_int32_t).
        let code = unsafe { method::<EnvU32>(self.raw, offset)(self.raw, value) };
        self.library.check(code, what)
    }

    fn set_int(&self, offset: usize, flag: u32, what: &str) -> Result<()> {
        // SAFETY: every caller names a method of type int (DB_ENV *, u_int32_t, int).
        let code = unsafe { method::<EnvU32Int>(self.raw, offset)(self.raw, flag, 1) };
        self.library.check(code, what)
    }

    /// Opens the environment in `directory`.
    pub fn open(&self, directory: &Path, flags: u32) -> Result<()> {
        type Open = unsafe extern "C" fn(Handle, *const c_char, u32, c_int) -> c_int;
        let home = CString::new(directory.as_os_str().as_encoded_bytes())?;
        // SAFETY: open of this release, a C string that outlives the call.
        let code =
            unsafe { method::<Open>(self.raw, env::OPEN)(self.raw, home.as_ptr(), flags, 0o600) };
        self.library.check(code, "open environment")
    }

    /// Opens the B+tree in file `name`.
    pub fn open_database(
        self: &Arc<Self>,
        name: &str,
        page_size: u32,
        flags: u32,
    ) -> Result<Database> {
        type Open = unsafe extern "C" fn(
            Handle,
            Handle,
            *const c_char,
            *const c_char,
            c_int,
            u32,
            c_int,
        ) -> c_int;
        let mut raw = ptr::null_mut();
        // SAFETY: a valid out pointer and a live environment.
        let code = unsafe { (self.library.functions.db_create)(&mut raw, self.raw, 0) };
        self.library.check(code, "db_create")?;
        let database = Database { environment: Arc::clone(self), raw };
        let name = CString::new(name)?;
        // SAFETY: set_pagesize and open of this release, C strings that outlive the calls.
        let code = unsafe {
            match method::<EnvU32>(raw, db::SET_PAGESIZE)(raw, page_size) {
                0 => method::<Open>(raw, db::OPEN)(
                    raw,
                    ptr::null_mut(),
                    name.as_ptr(),
                    ptr::null(),
                    BTREE,
                    flags,
                    0o600,
                ),
                failed => failed,
            }
        };
        self.library.check(code, "open database")?;
        Ok(database)
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Result<Transaction<'_>> {
        type Begin = unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int;
        let mut raw = ptr::null_mut();
        // SAFETY: txn_begin of this release, a valid out pointer, no parent.
        let code = unsafe {
            method::<Begin>(self.raw, env::TXN_BEGIN)(self.raw, ptr::null_mut(), &mut raw, 0)
        };
        self.library.check(code, "begin")?;
        Ok(Transaction { environment: self, raw })
    }

    /// `txn_checkpoint`, whether or not there is anything to do.
    pub fn checkpoint(&self) -> Result<()> {
        type Checkpoint = unsafe extern "C" fn(Handle, u32, u32, u32) -> c_int;
        // SAFETY: txn_checkpoint of this release.
        let code =
            unsafe { method::<Checkpoint>(self.raw, env::TXN_CHECKPOINT)(self.raw, 0, 0, FORCE) };
        self.library.check(code, "checkpoint")
    }

    /// Closes the environment.
    pub fn close(mut self) -> Result<()> {
        let library = Arc::clone(&self.library);
        library.check(self.close_raw(), "close environment")
    }

    fn close_raw(&mut self) -> c_int {
        let raw = std::mem::replace(&mut self.raw, ptr::null_mut());
        if raw.is_null() {
            return 0;
        }
        // SAFETY: close of this release; the handle is not used again.
        unsafe { method::<EnvU32>(raw, env::CLOSE)(raw, 0) }
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        self.close_raw();
    }
}

/// `DB`.
pub struct Database {
    environment: Arc<Environment>,
    raw: Handle,
}

// SAFETY: opened with DB_THREAD whenever more than one thread uses it.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

type Access = unsafe extern "C" fn(Handle, Handle, *mut Dbt, *mut Dbt, u32) -> c_int;

impl Database {
    /// Copies the value of `key` into `value`.
    pub fn get(
        &self,
        txn: Option<&Transaction<'_>>,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> OpResult<bool> {
        let (mut key, txn) = (Dbt::input(key), raw_of(txn));
        value.clear();
        loop {
            let mut data = Dbt::output(value);
            // SAFETY: get of this release; both structures live through the call, and at most
            // `ulen` bytes, the capacity of `value`, are written.
            let code = unsafe {
                method::<Access>(self.raw, db::GET)(self.raw, txn, &mut key, &mut data, 0)
            };
            match code {
                // SAFETY: `size` bytes were written and size <= ulen.
                0 => unsafe { value.set_len(data.size as usize) },
                BUFFER_SMALL => {
                    value.reserve(data.size as usize);
                    continue;
                }
                NOTFOUND => return Ok(false),
                other => self.environment.library.op(other, "get")?,
            }
            return Ok(true);
        }
    }

    /// Inserts or replaces.
    pub fn put(&self, txn: Option<&Transaction<'_>>, key: &[u8], value: &[u8]) -> OpResult {
        let (mut key, mut value) = (Dbt::input(key), Dbt::input(value));
        // SAFETY: put of this release; Berkeley DB only reads through both structures.
        let code = unsafe {
            method::<Access>(self.raw, db::PUT)(self.raw, raw_of(txn), &mut key, &mut value, 0)
        };
        self.environment.library.op(code, "put")
    }

    /// Deletes; an error when there is no such record.
    pub fn delete(&self, txn: Option<&Transaction<'_>>, key: &[u8]) -> OpResult {
        type Delete = unsafe extern "C" fn(Handle, Handle, *mut Dbt, u32) -> c_int;
        let mut key = Dbt::input(key);
        // SAFETY: del of this release; Berkeley DB only reads through the structure.
        let code =
            unsafe { method::<Delete>(self.raw, db::DEL)(self.raw, raw_of(txn), &mut key, 0) };
        self.environment.library.op(code, "del")
    }

    /// Visits every record in key order.
    pub fn scan(
        &self,
        txn: Option<&Transaction<'_>>,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<()> {
        type Open = unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int;
        type Get = unsafe extern "C" fn(Handle, *mut Dbt, *mut Dbt, u32) -> c_int;
        type Close = unsafe extern "C" fn(Handle) -> c_int;
        let library = &self.environment.library;
        // Without this flag the locks of all pages would be held to the end of the transaction.
        let flags = if txn.is_some() { READ_COMMITTED } else { 0 };
        let mut raw = ptr::null_mut();
        // SAFETY: cursor of this release, a valid out pointer.
        let code =
            unsafe { method::<Open>(self.raw, db::CURSOR)(self.raw, raw_of(txn), &mut raw, flags) };
        library.check(code, "cursor")?;
        let (mut key, mut value) = (Vec::with_capacity(4096), Vec::with_capacity(1 << 20));
        let mut direction = FIRST;
        let outcome = loop {
            let (mut k, mut v) = (Dbt::output(&mut key), Dbt::output(&mut value));
            // SAFETY: get of DBC; both buffers have the room that they declare, and exactly
            // `size` bytes of each are read afterwards.
            let code = unsafe { method::<Get>(raw, cursor::GET)(raw, &mut k, &mut v, direction) };
            match code {
                0 => {
                    // SAFETY: as above.
                    unsafe {
                        key.set_len(k.size as usize);
                        value.set_len(v.size as usize);
                    }
                    visit(&key, &value);
                }
                NOTFOUND => break Ok(()),
                other => break library.check(other, "cursor get"),
            }
            direction = NEXT;
        };
        // SAFETY: the cursor is not used again.
        let closed = unsafe { method::<Close>(raw, cursor::CLOSE)(raw) };
        outcome.and_then(|()| library.check(closed, "cursor close"))
    }

    /// Writes every changed page of this database to its file.
    pub fn sync(&self) -> Result<()> {
        // SAFETY: sync of this release.
        let code = unsafe { method::<EnvU32>(self.raw, db::SYNC)(self.raw, 0) };
        self.environment.library.check(code, "sync")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Changed pages stay in the cache of the environment: a checkpoint or `sync` writes them.
        // SAFETY: close of this release; the handle is not used again.
        unsafe { method::<EnvU32>(self.raw, db::CLOSE)(self.raw, NOSYNC) };
    }
}

/// `DB_TXN`; dropping it aborts it.
pub struct Transaction<'e> {
    environment: &'e Environment,
    raw: Handle,
}

fn raw_of(txn: Option<&Transaction<'_>>) -> Handle {
    txn.map_or(ptr::null_mut(), |txn| txn.raw)
}

impl Transaction<'_> {
    /// Commits with the durability of the environment.
    pub fn commit(mut self) -> OpResult {
        let raw = std::mem::replace(&mut self.raw, ptr::null_mut());
        // SAFETY: commit of this release; the handle is not used again, whatever it returns.
        let code = unsafe { method::<EnvU32>(raw, txn::COMMIT)(raw, 0) };
        self.environment.library.op(code, "commit")
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            type Abort = unsafe extern "C" fn(Handle) -> c_int;
            // SAFETY: abort of this release; the handle is not used again.
            unsafe { method::<Abort>(self.raw, txn::ABORT)(self.raw) };
        }
    }
}
