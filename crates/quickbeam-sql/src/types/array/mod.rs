//! Arrays: the value, and its text.

mod array_faults;
pub(super) mod array_text;
pub(super) mod array_value;
pub(super) mod assigned;
pub(super) mod element_type;
