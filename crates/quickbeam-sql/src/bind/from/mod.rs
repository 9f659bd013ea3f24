//! The FROM clause: tables, joins, functions, and system catalogs.

pub(super) mod catalogs;
pub(super) mod from_clause;
pub(super) mod full_join_using;
pub(super) mod json_records;
mod named_joins;
pub(super) mod table_functions;
mod table_samples;
mod values;
