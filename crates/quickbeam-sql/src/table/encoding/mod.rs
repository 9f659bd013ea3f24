//! Rows and keys as bytes.

pub(super) mod int_column;
pub(super) mod key_encoding;
pub(super) mod row_copy;
pub(super) mod row_format;
