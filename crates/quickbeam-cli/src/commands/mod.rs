//! The commands that read or create an environment: backup, create, list, recover,
//! stat and verify.

pub(super) mod backup;
pub(super) mod create;
pub(super) mod list;
pub(super) mod recover;
pub(super) mod stat;
pub(super) mod verify;
