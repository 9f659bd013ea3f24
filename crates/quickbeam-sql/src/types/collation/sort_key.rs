//! Texts with their sort keys: the key, the text, and the length of the key, u32 big-endian.

use crate::error::{Result, SqlError, SqlState};
use crate::utf8::text_from_utf8;

/// Bytes of the length of the key.
const LENGTH_SIZE: usize = 4;

/// Returns the bytes of a value.
pub(super) fn join(mut key: Vec<u8>, text: &str) -> Result<Vec<u8>> {
    let length = u32::try_from(key.len()).map_err(|_| {
        SqlError::new(SqlState::ProgramLimitExceeded, "a text is too long for its collation")
    })?;
    key.extend_from_slice(text.as_bytes());
    key.extend_from_slice(&length.to_be_bytes());
    Ok(key)
}

/// Returns the sort key and the text of a value.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (content, length) = bytes.split_last_chunk::<LENGTH_SIZE>()?;
    content.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Returns the sort key of a value.
pub(in crate::types) fn key(bytes: &[u8]) -> &[u8] {
    split(bytes).map_or(bytes, |(key, _)| key)
}

/// Returns the text of a value.
#[must_use]
pub(in crate::types) fn text(bytes: &[u8]) -> Option<&str> {
    text_from_utf8(split(bytes)?.1)
}
