//! `DB` and `DB_TXN`: databases and transactions of Berkeley DB.

use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;

use anyhow::Result;

use super::layout::*;
use super::{BdbEnvironment, EnvU32, method};
use crate::engine::{OpResult, Span, Visit};

/// `DB`.
pub struct BdbDatabase {
    pub(super) environment: Arc<BdbEnvironment>,
    pub(super) raw: Handle,
}

// SAFETY: opened with DB_THREAD whenever more than one thread uses it.
unsafe impl Send for BdbDatabase {}
// SAFETY: as above.
unsafe impl Sync for BdbDatabase {}

type AccessFunction = unsafe extern "C" fn(Handle, Handle, *mut Dbt, *mut Dbt, u32) -> c_int;

impl BdbDatabase {
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
                method::<AccessFunction>(self.raw, db::GET)(self.raw, txn, &mut key, &mut data, 0)
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
            method::<AccessFunction>(self.raw, db::PUT)(
                self.raw,
                raw_of(txn),
                &mut key,
                &mut value,
                0,
            )
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
    pub fn scan(&self, txn: Option<&Transaction<'_>>, visit: &mut Visit<'_>) -> Result<()> {
        self.walk(txn, None, visit)
    }

    /// Visits the records of a span.
    pub fn range(
        &self,
        txn: Option<&Transaction<'_>>,
        span: Span<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.walk(txn, Some(span), visit)
    }

    fn walk(
        &self,
        txn: Option<&Transaction<'_>>,
        span: Option<Span<'_>>,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        type OpenCursor = unsafe extern "C" fn(Handle, Handle, *mut Handle, u32) -> c_int;
        type GetAtCursor = unsafe extern "C" fn(Handle, *mut Dbt, *mut Dbt, u32) -> c_int;
        type Close = unsafe extern "C" fn(Handle) -> c_int;
        let library = &self.environment.library;
        // Without this flag the locks of all pages would be held to the end of the transaction.
        let flags = if txn.is_some() { READ_COMMITTED } else { 0 };
        let mut raw = ptr::null_mut();
        // SAFETY: cursor of this release, a valid out pointer.
        let code = unsafe {
            method::<OpenCursor>(self.raw, db::CURSOR)(self.raw, raw_of(txn), &mut raw, flags)
        };
        library.check(code, "cursor")?;
        let (mut key, mut value) = (Vec::with_capacity(4096), Vec::with_capacity(1 << 20));
        let mut direction = FIRST;
        if let Some(span) = span {
            key.extend_from_slice(span.from);
            direction = SET_RANGE;
        }
        let backward = span.is_some_and(|span| span.backward);
        let mut left = span.map_or(usize::MAX, |span| span.count);
        let outcome = loop {
            if left == 0 {
                break Ok(());
            }
            let (mut k, mut v) = (Dbt::output(&mut key), Dbt::output(&mut value));
            k.size = span.map_or(0, |span| span.from.len() as u32);
            // SAFETY: get of DBC; both buffers have the room that they declare, and exactly
            // `size` bytes of each are read afterwards.
            let code =
                unsafe { method::<GetAtCursor>(raw, cursor::GET)(raw, &mut k, &mut v, direction) };
            match code {
                0 => {
                    // SAFETY: as above.
                    unsafe {
                        key.set_len(k.size as usize);
                        value.set_len(v.size as usize);
                    }
                    // A backward read begins at the record after its key, if there is none with it.
                    if !backward || span.is_none_or(|span| key[..] <= *span.from) {
                        visit(&key, &value);
                        left -= 1;
                    }
                }
                NOTFOUND if backward && direction == SET_RANGE => {
                    direction = LAST;
                    continue;
                }
                NOTFOUND => break Ok(()),
                other => break library.check(other, "cursor get"),
            }
            direction = if backward { PREVIOUS } else { NEXT };
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

impl Drop for BdbDatabase {
    fn drop(&mut self) {
        // Changed pages stay in the cache of the environment: a checkpoint or `sync` writes them.
        // SAFETY: close of this release; the handle is not used again.
        unsafe { method::<EnvU32>(self.raw, db::CLOSE)(self.raw, NOSYNC) };
    }
}

/// `DB_TXN`; dropping it aborts it.
pub struct Transaction<'e> {
    pub(super) environment: &'e BdbEnvironment,
    pub(super) raw: Handle,
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
