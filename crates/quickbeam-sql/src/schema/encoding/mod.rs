//! Rows and keys as bytes.

pub(crate) mod int_column;
pub(crate) mod inverted;
pub(crate) mod key_encoding;
mod nested_key;
pub(crate) mod row_copy;
pub(crate) mod row_format;

pub use int_column::{NumberAt, NumberCell};
pub use key_encoding::{KeyBound, KeyPart, KeyRange, KeySpec, prefix_end};
pub use row_copy::{Origin, Splice};
pub use row_format::StoredRow;
pub(crate) use row_format::{Layout, Layouts, ROW_ID_BYTES, append_row_id};
