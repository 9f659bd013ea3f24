//! Execution of INSERT, UPDATE and DELETE.

pub(crate) mod assignments;
pub(crate) mod changing_with;
pub(crate) mod insert;
pub(crate) mod instead_of;
pub(crate) mod merge;
pub(crate) mod update;
