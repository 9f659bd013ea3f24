//! Rows as values and in comparisons.

pub(super) mod fields;
pub(super) mod row_markers;
pub(super) mod row_values;
pub(super) mod whole_rows;
