//! Functions and operators of types whose values are bytes.

pub(super) mod bit_strings;
pub(super) mod log_positions;
pub(super) mod multiranges;
pub(super) mod network;
pub(super) mod ranges;
pub(super) mod zoned_times;

use super::mismatch;
use crate::error::Result;
use crate::types::{EncodedKind, ValueRef};

/// Returns the kind and the bytes of an argument.
fn encoded<'v>(arguments: &[ValueRef<'v>], at: usize) -> Result<(EncodedKind, &'v [u8])> {
    match arguments.get(at) {
        Some(ValueRef::Encoded(encoded, bytes)) => Ok((encoded.kind(), bytes)),
        _ => Err(mismatch()),
    }
}
