//! Plans of queries: joins, subqueries, groups, windows and the order of rows.

mod cardinality;
pub(super) mod join;
mod join_order;
mod or_restrictions;
mod outer_join;
pub(super) mod select;
pub(super) mod semi_join;
pub(super) mod subquery;
pub(super) mod tail;
mod vectorized_input;
pub(super) mod windows;

use crate::types::{DataType, EncodedKind};

/// Whether values of both that are equal have the same bytes in a key.
pub(super) fn types_alike(a: DataType, b: DataType) -> bool {
    (a.is_integer() && b.is_integer())
        || a.unconstrained() == b.unconstrained()
        || (a.is_text() && b.is_text())
        || (is_sort_key(a) && is_sort_key(b))
}

/// Whether values are sort keys. A comparison has those of one collation on both sides, and the
/// type of a constant does not say which.
fn is_sort_key(data_type: DataType) -> bool {
    matches!(data_type, DataType::Encoded(encoded) if encoded.kind() == EncodedKind::Collated)
}
