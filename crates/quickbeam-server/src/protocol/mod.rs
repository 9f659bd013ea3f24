//! Messages of PostgreSQL's protocol, version 3.0: their bytes, types, rows, tags and errors.

pub(super) mod encoded;
pub(super) mod failure;
pub(super) mod frontend;
pub(super) mod rows;
pub(super) mod tag;
mod text_search;
pub(super) mod types;
pub(super) mod wire;
