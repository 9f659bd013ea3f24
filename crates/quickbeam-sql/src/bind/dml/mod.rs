//! Statements that change rows: INSERT, UPDATE, DELETE and COPY.

pub(super) mod changing_with;
mod conflict_target;
pub(super) mod copy;
mod field_assignments;
pub(super) mod insert;
mod instead_of;
mod merge;
pub(in crate::bind) mod target;
pub(super) mod update;
mod view_checks;
mod view_rows;
