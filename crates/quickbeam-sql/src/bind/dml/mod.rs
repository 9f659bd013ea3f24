//! Statements that change rows: INSERT, UPDATE, DELETE and COPY.

mod conflict_target;
pub(super) mod copy;
pub(super) mod insert;
pub(super) mod update;
