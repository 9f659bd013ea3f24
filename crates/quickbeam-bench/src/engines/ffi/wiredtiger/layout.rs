//! Structure layout of the two releases of WiredTiger that are supported.

use std::ffi::c_void;
use std::ptr;
use std::slice;

/// Offsets of the methods that are used.
pub struct Layout {
    pub connection_close: usize,
    pub open_session: usize,
    pub session_close: usize,
    pub open_cursor: usize,
    pub create: usize,
    pub begin: usize,
    pub commit: usize,
    pub rollback: usize,
    pub checkpoint: usize,
    pub get_key: usize,
    pub get_value: usize,
    pub set_key: usize,
    pub set_value: usize,
    pub next: usize,
    pub previous: usize,
    pub reset: usize,
    pub search: usize,
    pub search_near: usize,
    pub insert: usize,
    pub remove: usize,
}

/// Release 3.2.1, from its `wiredtiger.h`, on a 64-bit system.
pub const LAYOUT_3_2: Layout = Layout {
    connection_close: 16,
    open_session: 64,
    session_close: 16,
    open_cursor: 40,
    create: 56,
    begin: 168,
    commit: 176,
    rollback: 192,
    checkpoint: 216,
    get_key: 32,
    get_value: 40,
    set_key: 48,
    set_value: 56,
    next: 80,
    previous: 88,
    reset: 96,
    search: 104,
    search_near: 112,
    insert: 120,
    remove: 144,
};

/// Release 11.3.1, likewise.
pub const LAYOUT_11_3: Layout = Layout {
    connection_close: 0,
    open_session: 56,
    session_close: 16,
    open_cursor: 40,
    create: 64,
    begin: 152,
    commit: 160,
    rollback: 176,
    checkpoint: 208,
    get_key: 32,
    get_value: 40,
    set_key: 56,
    set_value: 64,
    next: 88,
    previous: 96,
    reset: 104,
    search: 112,
    search_near: 120,
    insert: 128,
    remove: 152,
};

/// `WT_ITEM`: a key or a value. The three members after `size` belong to WiredTiger.
#[repr(C)]
pub struct Item {
    pub data: *const c_void,
    pub size: usize,
    internal: [usize; 3],
}

impl Item {
    pub fn input(bytes: &[u8]) -> Item {
        Item { data: bytes.as_ptr().cast(), size: bytes.len(), internal: [0; 3] }
    }

    pub fn empty() -> Item {
        Item { data: ptr::null(), size: 0, internal: [0; 3] }
    }

    /// # Safety
    /// The item must have been filled in by a cursor that has not moved since.
    pub unsafe fn bytes(&self) -> &[u8] {
        if self.size == 0 {
            return &[];
        }
        // SAFETY: by the contract above.
        unsafe { slice::from_raw_parts(self.data.cast(), self.size) }
    }
}
