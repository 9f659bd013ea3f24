//! Constants and structure layout of Berkeley DB 5.3.28 on a 64-bit system, from its `db.h`.

use std::ffi::{c_int, c_void};
use std::ptr;

pub const CREATE: u32 = 0x1;
pub const RECOVER: u32 = 0x2;
pub const THREAD: u32 = 0x20;
pub const INIT_LOCK: u32 = 0x100;
pub const INIT_LOG: u32 = 0x200;
pub const INIT_MPOOL: u32 = 0x400;
pub const INIT_TXN: u32 = 0x2000;
pub const PRIVATE: u32 = 0x10000;
pub const AUTO_COMMIT: u32 = 0x100;
pub const TXN_NOSYNC: u32 = 0x1;
pub const TXN_WRITE_NOSYNC: u32 = 0x20;
pub const LOG_AUTO_REMOVE: u32 = 0x1;
pub const LOG_IN_MEMORY: u32 = 0x8;
pub const LOCK_DEFAULT: u32 = 0x1;
pub const READ_COMMITTED: u32 = 0x400;
pub const FORCE: u32 = 0x1;
pub const FIRST: u32 = 0x7;
pub const NOSYNC: u32 = 1;
pub const LAST: u32 = 0xf;
pub const NEXT: u32 = 0x10;
pub const PREVIOUS: u32 = 0x17;
pub const SET_RANGE: u32 = 0x1b;
pub const BTREE: c_int = 1;
pub const DBT_USERMEM: u32 = 0x800;
pub const NOTFOUND: c_int = -30988;
pub const BUFFER_SMALL: c_int = -30999;
pub const LOCK_DEADLOCK: c_int = -30993;
pub const LOCK_NOTGRANTED: c_int = -30992;

/// Offsets of the methods in `DB_ENV`.
pub mod env {
    pub const CLOSE: usize = 488;
    pub const GET_CACHESIZE: usize = 576;
    pub const LOG_SET_CONFIG: usize = 1112;
    pub const OPEN: usize = 1328;
    pub const SET_CACHESIZE: usize = 1632;
    pub const SET_FLAGS: usize = 1728;
    pub const SET_LG_BSIZE: usize = 1752;
    pub const SET_LG_MAX: usize = 1776;
    pub const SET_LK_DETECT: usize = 1800;
    pub const SET_LK_MAX_LOCKERS: usize = 1808;
    pub const SET_LK_MAX_LOCKS: usize = 1816;
    pub const SET_LK_MAX_OBJECTS: usize = 1824;
    pub const TXN_BEGIN: usize = 2040;
    pub const TXN_CHECKPOINT: usize = 2048;
}

/// Offsets of the methods in `DB`.
pub mod db {
    pub const CLOSE: usize = 568;
    pub const CURSOR: usize = 584;
    pub const DEL: usize = 592;
    pub const GET: usize = 632;
    pub const OPEN: usize = 1008;
    pub const PUT: usize = 1024;
    pub const SET_PAGESIZE: usize = 1248;
    pub const SYNC: usize = 1352;
}

/// Offsets of the methods in `DB_TXN` and `DBC`.
pub mod txn {
    pub const ABORT: usize = 232;
    pub const COMMIT: usize = 240;
}
pub mod cursor {
    pub const CLOSE: usize = 352;
    pub const GET: usize = 392;
}

pub use super::super::Handle;

/// `DBT`: a key or a value.
#[repr(C)]
pub struct Dbt {
    pub data: *mut c_void,
    pub size: u32,
    pub ulen: u32,
    dlen: u32,
    doff: u32,
    app_data: *mut c_void,
    flags: u32,
}

impl Dbt {
    pub fn input(bytes: &[u8]) -> Dbt {
        Dbt { data: bytes.as_ptr() as *mut c_void, size: bytes.len() as u32, ..Dbt::empty() }
    }

    /// Room for a value in the spare capacity of `buffer`.
    pub fn output(buffer: &mut Vec<u8>) -> Dbt {
        Dbt {
            data: buffer.as_mut_ptr().cast(),
            ulen: buffer.capacity() as u32,
            flags: DBT_USERMEM,
            ..Dbt::empty()
        }
    }

    fn empty() -> Dbt {
        Dbt {
            data: ptr::null_mut(),
            size: 0,
            ulen: 0,
            dlen: 0,
            doff: 0,
            app_data: ptr::null_mut(),
            flags: 0,
        }
    }
}
