//! Execution of INSERT, UPDATE and DELETE.

pub(crate) mod assignments;
pub(crate) mod insert;
pub(crate) mod update;
