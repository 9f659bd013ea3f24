//! WiredTiger 3.2 (Debian) and 11 (current): its handles are C structures full of function
//! pointers.
//!
//! As with Berkeley DB, a method is read from its offset in the handle; the offsets of the cursor
//! and of the session differ between the two releases, and every other release is refused.
#![allow(unsafe_code)]

mod layout;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use anyhow::{Result, bail};

use super::{Handle, Source, functions};
use crate::engine::{OpError, OpResult, Span, Visit};
use layout::{Item, LAYOUT_3_2, LAYOUT_11_3, Layout};

const SOURCE: Source = Source {
    variable: "QUICKBEAM_BENCH_WIREDTIGER",
    newest: Some("libwiredtiger.so.11.3.1"),
    files: &["libwiredtiger.so.0"],
    package: "libwiredtiger0",
};

const ROLLBACK: c_int = -31800;
const NOTFOUND: c_int = -31803;

type Method = unsafe extern "C" fn(Handle) -> c_int;
type MethodText = unsafe extern "C" fn(Handle, *const c_char) -> c_int;
type SetRecord = unsafe extern "C" fn(Handle, ...);
type GetRecord = unsafe extern "C" fn(Handle, ...) -> c_int;

functions! {
    struct Functions {
        wiredtiger_version: fn(*mut c_int, *mut c_int, *mut c_int) -> *const c_char;
        wiredtiger_strerror: fn(c_int) -> *const c_char;
        wiredtiger_open: fn(*const c_char, *const c_void, *const c_char, *mut Handle) -> c_int;
    }
}

/// The loaded library.
pub struct WtLibrary {
    functions: Functions,
    layout: &'static Layout,
    version: String,
}

impl WtLibrary {
    /// Loads WiredTiger and refuses releases whose layout is not known.
    pub fn load() -> Result<Arc<WtLibrary>> {
        let functions = Functions::load(SOURCE.load()?)?;
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: three valid out pointers.
        unsafe { (functions.wiredtiger_version)(&mut major, &mut minor, &mut patch) };
        let layout = match (major, minor) {
            (3, 2) if cfg!(target_pointer_width = "64") => &LAYOUT_3_2,
            (11, 3) if cfg!(target_pointer_width = "64") => &LAYOUT_11_3,
            _ => bail!("WiredTiger 3.2 or 11.3 is needed, {major}.{minor}.{patch} was found"),
        };
        Ok(Arc::new(WtLibrary { functions, layout, version: format!("{major}.{minor}.{patch}") }))
    }

    /// The release, as in `3.2.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn check(&self, code: c_int, what: &str) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: returns a C string for every code.
        let text = unsafe { CStr::from_ptr((self.functions.wiredtiger_strerror)(code)) };
        bail!("WiredTiger: {what}: {}", text.to_string_lossy())
    }

    fn op(&self, code: c_int, what: &str) -> OpResult {
        match code {
            ROLLBACK => Err(OpError::Retry),
            other => Ok(self.check(other, what)?),
        }
    }
}

/// Reads the method at `offset` of the structure that `handle` points to.
///
/// # Safety
/// `handle` must be a live handle of the release whose layout is used and `F` the member's type.
unsafe fn method<F: Copy>(handle: Handle, offset: usize) -> F {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    // SAFETY: by the contract above the member is there and has this type.
    unsafe { handle.cast::<u8>().add(offset).cast::<F>().read() }
}

/// `WT_CONNECTION`.
pub struct WtConnection {
    library: Arc<WtLibrary>,
    raw: Handle,
}

// SAFETY: a connection may be used by several threads at once; sessions stay in theirs.
unsafe impl Send for WtConnection {}
// SAFETY: as above.
unsafe impl Sync for WtConnection {}

impl WtConnection {
    /// Opens the database in `directory`.
    pub fn open(library: &Arc<WtLibrary>, directory: &Path, config: &str) -> Result<WtConnection> {
        let home = CString::new(directory.as_os_str().as_encoded_bytes())?;
        let config = CString::new(config)?;
        let mut raw = ptr::null_mut();
        // SAFETY: C strings that outlive the call, no event handler, a valid out pointer.
        let code = unsafe {
            (library.functions.wiredtiger_open)(
                home.as_ptr(),
                ptr::null(),
                config.as_ptr(),
                &mut raw,
            )
        };
        library.check(code, "open")?;
        Ok(WtConnection { library: Arc::clone(library), raw })
    }

    /// Opens a session for the calling thread.
    pub fn session(&self, config: &str) -> Result<WtSession<'_>> {
        type OpenWtSession =
            unsafe extern "C" fn(Handle, *const c_void, *const c_char, *mut Handle) -> c_int;
        let config = CString::new(config)?;
        let mut raw = ptr::null_mut();
        // SAFETY: open_session, a C string that outlives the call, a valid out pointer.
        let code = unsafe {
            method::<OpenWtSession>(self.raw, self.library.layout.open_session)(
                self.raw,
                ptr::null(),
                config.as_ptr(),
                &mut raw,
            )
        };
        self.library.check(code, "open session")?;
        Ok(WtSession { connection: self, raw, cursor: ptr::null_mut(), _not_send: PhantomData })
    }

    /// Closes the connection.
    pub fn close(mut self) -> Result<()> {
        let library = Arc::clone(&self.library);
        library.check(self.close_raw(), "close")
    }

    fn close_raw(&mut self) -> c_int {
        let raw = std::mem::replace(&mut self.raw, ptr::null_mut());
        if raw.is_null() {
            return 0;
        }
        // SAFETY: sessions borrow the connection, so none is in use; not used again.
        unsafe { method::<MethodText>(raw, self.library.layout.connection_close)(raw, ptr::null()) }
    }
}

impl Drop for WtConnection {
    fn drop(&mut self) {
        self.close_raw();
    }
}

/// `WT_SESSION` with a cursor on its one table.
pub struct WtSession<'c> {
    connection: &'c WtConnection,
    raw: Handle,
    /// Null until [`WtSession::open_table`]; closed together with the session.
    cursor: Handle,
    _not_send: PhantomData<*mut ()>,
}

impl WtSession<'_> {
    fn library(&self) -> &WtLibrary {
        &self.connection.library
    }

    fn call(&self, offset: usize, config: Option<&CStr>) -> c_int {
        let config = config.map_or(ptr::null(), CStr::as_ptr);
        // SAFETY: every caller names a method of type int (WT_SESSION *, const char *).
        unsafe { method::<MethodText>(self.raw, offset)(self.raw, config) }
    }

    /// Creates the table `uri` unless it is there.
    pub fn create(&self, uri: &str, config: &str) -> Result<()> {
        type Create = unsafe extern "C" fn(Handle, *const c_char, *const c_char) -> c_int;
        let (uri, config) = (CString::new(uri)?, CString::new(config)?);
        // SAFETY: create, C strings that outlive the call.
        let code = unsafe {
            method::<Create>(self.raw, self.library().layout.create)(
                self.raw,
                uri.as_ptr(),
                config.as_ptr(),
            )
        };
        self.library().check(code, "create table")
    }

    /// Opens the cursor that all operations use.
    pub fn open_table(&mut self, uri: &str) -> Result<()> {
        type OpenWtCursor = unsafe extern "C" fn(
            Handle,
            *const c_char,
            Handle,
            *const c_char,
            *mut Handle,
        ) -> c_int;
        let uri = CString::new(uri)?;
        let mut cursor = ptr::null_mut();
        // SAFETY: open_cursor, a C string that outlives the call, a valid out pointer.
        let code = unsafe {
            method::<OpenWtCursor>(self.raw, self.library().layout.open_cursor)(
                self.raw,
                uri.as_ptr(),
                ptr::null_mut(),
                ptr::null(),
                &mut cursor,
            )
        };
        self.library().check(code, "open cursor")?;
        self.cursor = cursor;
        Ok(())
    }

    /// Begins a transaction at snapshot isolation.
    pub fn begin(&self) -> OpResult {
        let code = self.call(self.library().layout.begin, Some(c"isolation=snapshot"));
        self.library().op(code, "begin")
    }

    /// Commits with the durability of the connection.
    pub fn commit(&self) -> OpResult {
        self.library().op(self.call(self.library().layout.commit, None), "commit")
    }

    /// Gives the transaction up.
    pub fn rollback(&self) -> Result<()> {
        self.library().check(self.call(self.library().layout.rollback, None), "rollback")
    }

    /// Writes a checkpoint.
    pub fn checkpoint(&self) -> Result<()> {
        self.library().check(self.call(self.library().layout.checkpoint, None), "checkpoint")
    }

    /// The cursor; a panic rather than a crash when there is none.
    fn cursor(&self) -> Handle {
        assert!(!self.cursor.is_null(), "open_table comes before every operation");
        self.cursor
    }

    fn cursor_call(&self, offset: usize) -> c_int {
        // SAFETY: every caller names a method of type int (WT_CURSOR *).
        unsafe { method::<Method>(self.cursor(), offset)(self.cursor) }
    }

    fn set(&self, offset: usize, item: &Item) {
        // SAFETY: set_key or set_value; for format `u` it takes a pointer to an item, whose bytes
        // the caller keeps alive until the cursor has been used.
        unsafe { method::<SetRecord>(self.cursor(), offset)(self.cursor, ptr::from_ref(item)) }
    }

    fn take(&self, offset: usize, item: &mut Item) -> Result<()> {
        // SAFETY: get_key or get_value; for format `u` it fills in an item.
        let code =
            unsafe { method::<GetRecord>(self.cursor(), offset)(self.cursor, ptr::from_mut(item)) };
        self.library().check(code, "get")
    }

    /// Copies the value of `key` into `value`.
    pub fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> OpResult<bool> {
        let layout = self.library().layout;
        let (key, mut found) = (Item::input(key), Item::empty());
        value.clear();
        self.set(layout.set_key, &key);
        match self.cursor_call(layout.search) {
            NOTFOUND => Ok(false),
            code => {
                self.library().op(code, "search")?;
                self.take(layout.get_value, &mut found)?;
                // SAFETY: filled in just now, and the cursor has not moved.
                value.extend_from_slice(unsafe { found.bytes() });
                Ok(true)
            }
        }
    }

    /// Inserts or replaces.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> OpResult {
        let layout = self.library().layout;
        let (key, value) = (Item::input(key), Item::input(value));
        self.set(layout.set_key, &key);
        self.set(layout.set_value, &value);
        self.library().op(self.cursor_call(layout.insert), "insert")
    }

    /// Deletes.
    pub fn delete(&mut self, key: &[u8]) -> OpResult {
        let layout = self.library().layout;
        let key = Item::input(key);
        self.set(layout.set_key, &key);
        self.library().op(self.cursor_call(layout.remove), "remove")
    }

    /// Visits the records of a span.
    pub fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> OpResult {
        type SearchNear = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
        let layout = self.library().layout;
        let key = Item::input(span.from);
        self.set(layout.set_key, &key);
        let mut side = 0;
        // SAFETY: search_near, a valid out pointer.
        let code = unsafe {
            method::<SearchNear>(self.cursor(), layout.search_near)(self.cursor(), &mut side)
        };
        if code == NOTFOUND {
            return Ok(());
        }
        self.library().op(code, "search near")?;
        // The record found may be the neighbour on the other side of the key.
        let skips = if span.backward { side > 0 } else { side < 0 };
        let walk = Walk { skips_first: skips, backward: span.backward, count: span.count };
        Ok(self.visit_on(walk, visit)?)
    }

    /// Visits every record in key order.
    pub fn scan(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        let reset = self.library().layout.reset;
        self.library().check(self.cursor_call(reset), "reset")?;
        self.visit_on(Walk { skips_first: true, backward: false, count: usize::MAX }, visit)
    }

    /// Visits records from the cursor's position on.
    fn visit_on(&mut self, walk: Walk, visit: &mut Visit<'_>) -> Result<()> {
        let Walk { skips_first: mut moves, backward, count } = walk;
        let layout = self.library().layout;
        let onward = if backward { layout.previous } else { layout.next };
        for _ in 0..count {
            if moves {
                match self.cursor_call(onward) {
                    NOTFOUND => return Ok(()),
                    code => self.library().check(code, "next")?,
                }
            }
            moves = true;
            let (mut key, mut value) = (Item::empty(), Item::empty());
            self.take(layout.get_key, &mut key)?;
            self.take(layout.get_value, &mut value)?;
            // SAFETY: both filled in just now, and the cursor has not moved.
            unsafe { visit(key.bytes(), value.bytes()) };
        }
        Ok(())
    }
}

/// How a cursor walks.
#[derive(Clone, Copy)]
struct Walk {
    /// The record under the cursor is not visited.
    skips_first: bool,
    backward: bool,
    /// The most records to visit.
    count: usize,
}

impl Drop for WtSession<'_> {
    fn drop(&mut self) {
        // SAFETY: close takes the cursor with it; neither is used again.
        unsafe {
            let close = self.library().layout.session_close;
            method::<MethodText>(self.raw, close)(self.raw, ptr::null());
        }
    }
}
