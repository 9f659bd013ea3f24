//! Berkeley DB 5.3: its handles are C structures full of function pointers.
//!
//! The structures are not declared here in full (they have some 300 members each); a method is
//! read from its offset in the handle. The offsets are those of `db.h` of release 5.3.28 on a
//! 64-bit system. [`BdbLibrary::load`] refuses every other release, and [`BdbEnvironment::new`]
//! checks two of the offsets against each other before it uses any other.
#![allow(unsafe_code)]

mod database;
pub mod layout;

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};

use super::{Source, functions};
use crate::engine::{OpError, OpResult};
pub use database::{BdbDatabase, Transaction};
use layout::*;

const SOURCE: Source = Source {
    variable: "QUICKBEAM_BENCH_BDB",
    newest: None,
    files: &["libdb-5.3.so"],
    package: "libdb5.3",
};

functions! {
    struct Functions {
        db_version: fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
        db_strerror: fn(c_int) -> *const c_char;
        db_env_create: fn(*mut Handle, u32) -> c_int;
        db_create: fn(*mut Handle, Handle, u32) -> c_int;
    }
}

/// The loaded library.
pub struct BdbLibrary {
    functions: Functions,
    version: String,
}

impl BdbLibrary {
    /// Loads Berkeley DB 5.3 and refuses any other release: the offsets would be wrong.
    pub fn load() -> Result<Arc<BdbLibrary>> {
        let functions = Functions::load(SOURCE.load()?)?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: three valid out pointers.
        unsafe { (functions.db_version)(&mut major, &mut minor, &mut patch) };
        ensure!(
            (major, minor) == (5, 3) && cfg!(target_pointer_width = "64"),
            "Berkeley DB 5.3 for a 64-bit system is needed, {major}.{minor}.{patch} was found"
        );
        Ok(Arc::new(BdbLibrary { functions, version: format!("{major}.{minor}.{patch}") }))
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
pub struct BdbEnvironment {
    library: Arc<BdbLibrary>,
    raw: Handle,
}

// SAFETY: environments are opened with DB_THREAD whenever more than one thread uses them (see the
// adapter), which makes the handle free-threaded.
unsafe impl Send for BdbEnvironment {}
// SAFETY: as above.
unsafe impl Sync for BdbEnvironment {}

impl BdbEnvironment {
    /// A handle that is configured next and then opened.
    pub fn new(library: &Arc<BdbLibrary>) -> Result<BdbEnvironment> {
        let mut raw = ptr::null_mut();
        // SAFETY: a valid out pointer; 0 is the only flag there is.
        let code = unsafe { (library.functions.db_env_create)(&mut raw, 0) };
        library.check(code, "db_env_create")?;
        let environment = BdbEnvironment { library: Arc::clone(library), raw };
        environment.check_layout()?;
        Ok(environment)
    }

    /// Sets the cache size through one offset and reads it back through another, far from it.
    fn check_layout(&self) -> Result<()> {
        self.set_cache_size(64 << 20)?;
        let (mut gigabytes, mut bytes, mut regions) = (0u32, 0u32, 0 as c_int);
        type GetCacheSize = unsafe extern "C" fn(Handle, *mut u32, *mut u32, *mut c_int) -> c_int;
        // SAFETY: get_cachesize of this release, three valid out pointers.
        let code = unsafe {
            method::<GetCacheSize>(self.raw, env::GET_CACHESIZE)(
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
        type SetCacheSize = unsafe extern "C" fn(Handle, u32, u32, c_int) -> c_int;
        let (gigabytes, rest) = ((bytes >> 30) as u32, (bytes & ((1 << 30) - 1)) as u32);
        // SAFETY: set_cachesize of this release.
        let code = unsafe {
            method::<SetCacheSize>(self.raw, env::SET_CACHESIZE)(self.raw, gigabytes, rest, 1)
        };
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
        type OpenEnvironment = unsafe extern "C" fn(Handle, *const c_char, u32, c_int) -> c_int;
        let home = CString::new(directory.as_os_str().as_encoded_bytes())?;
        // SAFETY: open of this release, a C string that outlives the call.
        let code = unsafe {
            method::<OpenEnvironment>(self.raw, env::OPEN)(self.raw, home.as_ptr(), flags, 0o600)
        };
        self.library.check(code, "open environment")
    }

    /// Opens the B+tree in file `name`.
    pub fn open_database(
        self: &Arc<Self>,
        name: &str,
        page_size: u32,
        flags: u32,
    ) -> Result<BdbDatabase> {
        type OpenDatabase = unsafe extern "C" fn(
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
        let database = BdbDatabase { environment: Arc::clone(self), raw };
        let name = CString::new(name)?;
        // SAFETY: set_pagesize and open of this release, C strings that outlive the calls.
        let code = unsafe {
            match method::<EnvU32>(raw, db::SET_PAGESIZE)(raw, page_size) {
                0 => method::<OpenDatabase>(raw, db::OPEN)(
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

impl Drop for BdbEnvironment {
    fn drop(&mut self) {
        self.close_raw();
    }
}
