//! What crashes, failing devices and damaged files leave.

mod backup;
mod crash;
mod damage;
mod format;
mod full_device;
mod io_failures;
mod log_fragments;
mod log_mapped;
mod log_tail;
mod recovery;
mod salvage;
