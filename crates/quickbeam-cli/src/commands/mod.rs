//! The commands that read or create an environment: create, list, recover, stat and verify.

pub(super) mod create;
pub(super) mod list;
pub(super) mod recover;
pub(super) mod stat;
pub(super) mod verify;
