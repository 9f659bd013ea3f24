//! RocksDB through its C interface.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr;
use std::slice;
use std::sync::Arc;

use anyhow::{Result, bail};

use super::{Handle, Source, functions, loaded_release};
use crate::engine::{Span, Visit};

const SOURCE: Source = Source {
    variable: "QUICKBEAM_BENCH_ROCKSDB",
    newest: Some("librocksdb.so.10.4.2"),
    files: &[
        "librocksdb.so.7.8",
        "librocksdb.so.8",
        "librocksdb.so.9",
        "librocksdb.so.10",
        "librocksdb.so",
    ],
    package: "librocksdb7.8",
};

const NO_COMPRESSION: c_int = 0;
const BINARY_SEARCH_AND_HASH: c_int = 1;

type Errors = *mut *mut c_char;

functions! {
    #[allow(non_snake_case)] // one name is not, and it is the library's
    struct Functions {
        rocksdb_options_create: fn() -> Handle;
        rocksdb_options_destroy: fn(Handle);
        rocksdb_options_set_create_if_missing: fn(Handle, c_uchar);
        rocksdb_options_set_write_buffer_size: fn(Handle, usize);
        rocksdb_options_set_max_write_buffer_number: fn(Handle, c_int);
        rocksdb_options_set_max_background_jobs: fn(Handle, c_int);
        rocksdb_options_set_compression: fn(Handle, c_int);
        rocksdb_options_set_allow_concurrent_memtable_write: fn(Handle, c_uchar);
        rocksdb_options_set_manual_wal_flush: fn(Handle, c_uchar);
        rocksdb_options_set_block_based_table_factory: fn(Handle, Handle);
        rocksdb_block_based_options_create: fn() -> Handle;
        rocksdb_block_based_options_destroy: fn(Handle);
        rocksdb_block_based_options_set_block_cache: fn(Handle, Handle);
        rocksdb_block_based_options_set_filter_policy: fn(Handle, Handle);
        rocksdb_block_based_options_set_data_block_index_type: fn(Handle, c_int);
        rocksdb_block_based_options_set_data_block_hash_ratio: fn(Handle, f64);
        rocksdb_filterpolicy_create_bloom_full: fn(f64) -> Handle;
        rocksdb_cache_create_lru: fn(usize) -> Handle;
        rocksdb_cache_destroy: fn(Handle);
        rocksdb_open: fn(Handle, *const c_char, Errors) -> Handle;
        rocksdb_close: fn(Handle);
        rocksdb_write: fn(Handle, Handle, Handle, Errors);
        rocksdb_get_pinned: fn(Handle, Handle, *const c_char, usize, Errors) -> Handle;
        rocksdb_pinnableslice_value: fn(Handle, *mut usize) -> *const c_char;
        rocksdb_pinnableslice_destroy: fn(Handle);
        rocksdb_writebatch_create: fn() -> Handle;
        rocksdb_writebatch_destroy: fn(Handle);
        rocksdb_writebatch_clear: fn(Handle);
        rocksdb_writebatch_put: fn(Handle, *const c_char, usize, *const c_char, usize);
        rocksdb_writebatch_delete: fn(Handle, *const c_char, usize);
        rocksdb_writeoptions_create: fn() -> Handle;
        rocksdb_writeoptions_destroy: fn(Handle);
        rocksdb_writeoptions_set_sync: fn(Handle, c_uchar);
        rocksdb_writeoptions_disable_WAL: fn(Handle, c_int);
        rocksdb_readoptions_create: fn() -> Handle;
        rocksdb_readoptions_destroy: fn(Handle);
        rocksdb_readoptions_set_snapshot: fn(Handle, Handle);
        rocksdb_create_snapshot: fn(Handle) -> Handle;
        rocksdb_release_snapshot: fn(Handle, Handle);
        rocksdb_create_iterator: fn(Handle, Handle) -> Handle;
        rocksdb_iter_destroy: fn(Handle);
        rocksdb_iter_seek_to_first: fn(Handle);
        rocksdb_iter_seek: fn(Handle, *const c_char, usize);
        rocksdb_iter_seek_for_prev: fn(Handle, *const c_char, usize);
        rocksdb_iter_prev: fn(Handle);
        rocksdb_iter_valid: fn(Handle) -> c_uchar;
        rocksdb_iter_next: fn(Handle);
        rocksdb_iter_key: fn(Handle, *mut usize) -> *const c_char;
        rocksdb_iter_value: fn(Handle, *mut usize) -> *const c_char;
        rocksdb_iter_get_error: fn(Handle, Errors);
        rocksdb_flushoptions_create: fn() -> Handle;
        rocksdb_flushoptions_destroy: fn(Handle);
        rocksdb_flush: fn(Handle, Handle, Errors);
        rocksdb_free: fn(*mut c_void);
    }
}

/// The loaded library.
pub struct RocksLibrary {
    functions: Functions,
    version: String,
}

impl RocksLibrary {
    /// Loads RocksDB.
    pub fn load() -> Result<Arc<RocksLibrary>> {
        let functions = Functions::load(SOURCE.load()?)?;
        // The C interface has no call for the release: it is in the name of the file.
        let version = loaded_release("librocksdb.so.");
        Ok(Arc::new(RocksLibrary { functions, version }))
    }

    /// The release, as in `7.8.3`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Calls `f` with room for an error message and turns the message into an error.
    fn check<T>(&self, f: impl FnOnce(Errors) -> T) -> Result<T> {
        let mut message = ptr::null_mut();
        let result = f(&mut message);
        if message.is_null() {
            return Ok(result);
        }
        // SAFETY: a C string allocated by RocksDB, freed once and not used again.
        let text = unsafe {
            let text = CStr::from_ptr(message).to_string_lossy().into_owned();
            (self.functions.rocksdb_free)(message.cast());
            text
        };
        bail!("RocksDB: {text}")
    }
}

/// How to open a database.
pub struct RocksConfiguration {
    pub cache_bytes: usize,
    pub memtable_bytes: usize,
    /// Several threads write at the same time.
    pub concurrent_writers: bool,
    /// Keep the log in the process until its buffer fills.
    pub manual_log_flush: bool,
    /// Write no log at all.
    pub no_log: bool,
    /// Flush the log at every commit.
    pub sync: bool,
}

/// `rocksdb_t` with the options of its writes.
pub struct RocksDatabase {
    library: Arc<RocksLibrary>,
    raw: Handle,
    write_options: Handle,
    cache: Handle,
}

// SAFETY: a rocksdb_t and its write options may be used by several threads at once.
unsafe impl Send for RocksDatabase {}
// SAFETY: as above.
unsafe impl Sync for RocksDatabase {}

impl RocksDatabase {
    /// Opens or creates the database in `directory`.
    pub fn open(
        library: &Arc<RocksLibrary>,
        directory: &Path,
        configuration: &RocksConfiguration,
    ) -> Result<RocksDatabase> {
        let f = &library.functions;
        let path = CString::new(directory.as_os_str().as_encoded_bytes())?;
        // SAFETY: each handle comes from its create function and is destroyed once; the table
        // options take over the filter policy, the database keeps references to what it needs.
        unsafe {
            let cache = (f.rocksdb_cache_create_lru)(configuration.cache_bytes);
            let table = (f.rocksdb_block_based_options_create)();
            (f.rocksdb_block_based_options_set_block_cache)(table, cache);
            let filter = (f.rocksdb_filterpolicy_create_bloom_full)(10.0);
            (f.rocksdb_block_based_options_set_filter_policy)(table, filter);
            (f.rocksdb_block_based_options_set_data_block_index_type)(
                table,
                BINARY_SEARCH_AND_HASH,
            );
            (f.rocksdb_block_based_options_set_data_block_hash_ratio)(table, 0.75);
            let options = (f.rocksdb_options_create)();
            (f.rocksdb_options_set_create_if_missing)(options, 1);
            (f.rocksdb_options_set_write_buffer_size)(options, configuration.memtable_bytes);
            (f.rocksdb_options_set_max_write_buffer_number)(options, 4);
            (f.rocksdb_options_set_max_background_jobs)(options, 2);
            (f.rocksdb_options_set_compression)(options, NO_COMPRESSION);
            (f.rocksdb_options_set_allow_concurrent_memtable_write)(
                options,
                c_uchar::from(configuration.concurrent_writers),
            );
            (f.rocksdb_options_set_manual_wal_flush)(
                options,
                c_uchar::from(configuration.manual_log_flush),
            );
            (f.rocksdb_options_set_block_based_table_factory)(options, table);
            let opened = library.check(|e| (f.rocksdb_open)(options, path.as_ptr(), e));
            (f.rocksdb_options_destroy)(options);
            (f.rocksdb_block_based_options_destroy)(table);
            let raw = match opened {
                Ok(raw) => raw,
                Err(error) => {
                    (f.rocksdb_cache_destroy)(cache);
                    return Err(error);
                }
            };
            let write_options = (f.rocksdb_writeoptions_create)();
            (f.rocksdb_writeoptions_set_sync)(write_options, c_uchar::from(configuration.sync));
            (f.rocksdb_writeoptions_disable_WAL)(write_options, c_int::from(configuration.no_log));
            Ok(RocksDatabase { library: Arc::clone(library), raw, write_options, cache })
        }
    }

    /// A thread's read options.
    pub fn reader(&self) -> RocksReader<'_> {
        // SAFETY: no arguments.
        let options = unsafe { (self.library.functions.rocksdb_readoptions_create)() };
        RocksReader { database: self, options, _not_send: PhantomData }
    }

    /// A thread's write batch, used over and over.
    pub fn batch(&self) -> RocksBatch<'_> {
        // SAFETY: no arguments.
        let raw = unsafe { (self.library.functions.rocksdb_writebatch_create)() };
        RocksBatch { database: self, raw, _not_send: PhantomData }
    }

    /// Writes what is in memory to table files.
    pub fn flush(&self) -> Result<()> {
        let f = &self.library.functions;
        // SAFETY: a live database; the options are destroyed once.
        unsafe {
            let options = (f.rocksdb_flushoptions_create)();
            let outcome = self.library.check(|e| (f.rocksdb_flush)(self.raw, options, e));
            (f.rocksdb_flushoptions_destroy)(options);
            outcome
        }
    }
}

impl Drop for RocksDatabase {
    fn drop(&mut self) {
        let f = &self.library.functions;
        // SAFETY: readers and batches borrow the database, so none is left; not used again.
        unsafe {
            (f.rocksdb_close)(self.raw);
            (f.rocksdb_writeoptions_destroy)(self.write_options);
            (f.rocksdb_cache_destroy)(self.cache);
        }
    }
}

/// Reads of one thread, each transaction on a snapshot of its own.
pub struct RocksReader<'d> {
    database: &'d RocksDatabase,
    options: Handle,
    _not_send: PhantomData<*mut ()>,
}

impl RocksReader<'_> {
    /// Runs `f` with every read on one snapshot.
    pub fn snapshot<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let functions = &self.database.library.functions;
        // SAFETY: a live database and live options.
        let snapshot = unsafe {
            let snapshot = (functions.rocksdb_create_snapshot)(self.database.raw);
            (functions.rocksdb_readoptions_set_snapshot)(self.options, snapshot);
            snapshot
        };
        let result = f(self);
        // SAFETY: the options forget the snapshot before it is released.
        unsafe {
            (functions.rocksdb_readoptions_set_snapshot)(self.options, ptr::null_mut());
            (functions.rocksdb_release_snapshot)(self.database.raw, snapshot);
        }
        result
    }

    /// Copies the value of `key` into `value`.
    pub fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (library, raw) = (&self.database.library, self.database.raw);
        let f = &library.functions;
        value.clear();
        // SAFETY: live handles; the key is only read.
        let found = library.check(|e| unsafe {
            (f.rocksdb_get_pinned)(raw, self.options, key.as_ptr().cast(), key.len(), e)
        })?;
        if found.is_null() {
            return Ok(false);
        }
        // SAFETY: the slice is valid until it is destroyed, which happens once, after the copy.
        unsafe {
            let mut size = 0;
            let data = (f.rocksdb_pinnableslice_value)(found, &mut size);
            value.extend_from_slice(slice::from_raw_parts(data.cast(), size));
            (f.rocksdb_pinnableslice_destroy)(found);
        }
        Ok(true)
    }

    /// Visits every record in key order.
    pub fn scan(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        self.walk(None, visit)
    }

    /// Visits the records of a span.
    pub fn range(&mut self, span: Span<'_>, visit: &mut Visit<'_>) -> Result<()> {
        self.walk(Some(span), visit)
    }

    fn walk(&mut self, span: Option<Span<'_>>, visit: &mut Visit<'_>) -> Result<()> {
        let library = &self.database.library;
        let f = &library.functions;
        let backward = span.is_some_and(|span| span.backward);
        let mut left = span.map_or(usize::MAX, |span| span.count);
        // SAFETY: the key of a span is only read, during the call; key and value are valid until
        // the iterator moves; it is destroyed once.
        unsafe {
            let iterator = (f.rocksdb_create_iterator)(self.database.raw, self.options);
            let onward = if backward { f.rocksdb_iter_prev } else { f.rocksdb_iter_next };
            match span {
                None => (f.rocksdb_iter_seek_to_first)(iterator),
                Some(span) => {
                    let seek =
                        if backward { f.rocksdb_iter_seek_for_prev } else { f.rocksdb_iter_seek };
                    seek(iterator, span.from.as_ptr().cast(), span.from.len());
                }
            }
            while left > 0 && (f.rocksdb_iter_valid)(iterator) != 0 {
                let (mut key_size, mut value_size) = (0, 0);
                let key = (f.rocksdb_iter_key)(iterator, &mut key_size);
                let value = (f.rocksdb_iter_value)(iterator, &mut value_size);
                visit(
                    slice::from_raw_parts(key.cast(), key_size),
                    slice::from_raw_parts(value.cast(), value_size),
                );
                left -= 1;
                if left > 0 {
                    onward(iterator);
                }
            }
            let outcome = library.check(|e| (f.rocksdb_iter_get_error)(iterator, e));
            (f.rocksdb_iter_destroy)(iterator);
            outcome
        }
    }
}

impl Drop for RocksReader<'_> {
    fn drop(&mut self) {
        // SAFETY: not used again.
        unsafe { (self.database.library.functions.rocksdb_readoptions_destroy)(self.options) };
    }
}

/// `rocksdb_writebatch_t`.
pub struct RocksBatch<'d> {
    database: &'d RocksDatabase,
    raw: Handle,
    _not_send: PhantomData<*mut ()>,
}

impl RocksBatch<'_> {
    /// Empties the batch.
    pub fn clear(&mut self) {
        // SAFETY: a live batch.
        unsafe { (self.database.library.functions.rocksdb_writebatch_clear)(self.raw) };
    }

    /// Inserts or replaces.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let f = &self.database.library.functions;
        // SAFETY: a live batch, which copies both.
        unsafe {
            (f.rocksdb_writebatch_put)(
                self.raw,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
            );
        }
    }

    /// Deletes, whether or not there is such a record.
    pub fn delete(&mut self, key: &[u8]) {
        let f = &self.database.library.functions;
        // SAFETY: a live batch, which copies the key.
        unsafe { (f.rocksdb_writebatch_delete)(self.raw, key.as_ptr().cast(), key.len()) };
    }

    /// Applies the batch atomically.
    pub fn write(&mut self) -> Result<()> {
        let database = self.database;
        let f = &database.library.functions;
        // SAFETY: live handles.
        database.library.check(|e| unsafe {
            (f.rocksdb_write)(database.raw, database.write_options, self.raw, e);
        })
    }
}

impl Drop for RocksBatch<'_> {
    fn drop(&mut self) {
        // SAFETY: not used again.
        unsafe { (self.database.library.functions.rocksdb_writebatch_destroy)(self.raw) };
    }
}
