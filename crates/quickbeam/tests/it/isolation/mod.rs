//! Isolation levels, snapshots and conflicts.

mod histories;
mod levels;
mod old_snapshots;
mod progress;
mod serializable;
mod snapshot_limits;
mod spilled_undo;
mod tracked_reads;
mod write_locks;
