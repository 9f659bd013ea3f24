//! The commands that read, maintain or create an environment: backup, checkpoint, compact, create,
//! list, recover, stat and verify.

pub(super) mod backup;
pub(super) mod checkpoint;
pub(super) mod compact;
pub(super) mod create;
pub(super) mod list;
pub(super) mod recover;
pub(super) mod stat;
pub(super) mod verify;
