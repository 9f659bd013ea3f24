//! Functions and operators of full-text search.

pub(super) mod dictionaries;
pub(super) mod headlines;
pub(super) mod parsing;
pub(super) mod queries;
pub(super) mod ranking;
pub(super) mod triggers;
pub(super) mod vectors;
pub(super) mod word_counts;

use super::mismatch;
use crate::error::Result;
use crate::types::encoded::text_search::{TextQuery, TextVectorRef};
use crate::types::{DataType, EncodedKind, ValueRef};

const VECTOR: DataType = EncodedKind::TsVector.data_type();
const QUERY: DataType = EncodedKind::TsQuery.data_type();

/// Returns the vector of an argument.
fn vector<'v>(arguments: &[ValueRef<'v>], at: usize) -> Result<TextVectorRef<'v>> {
    match arguments.get(at) {
        Some(ValueRef::Encoded(encoded, bytes)) if encoded.kind() == EncodedKind::TsVector => {
            TextVectorRef::read(bytes).ok_or_else(mismatch)
        }
        _ => Err(mismatch()),
    }
}

/// Returns the query of an argument.
fn query<'v>(arguments: &[ValueRef<'v>], at: usize) -> Result<TextQuery<'v>> {
    match arguments.get(at) {
        Some(ValueRef::Encoded(encoded, bytes)) if encoded.kind() == EncodedKind::TsQuery => {
            TextQuery::read(bytes).ok_or_else(mismatch)
        }
        _ => Err(mismatch()),
    }
}
