//! A deterministic simulation of files, time, threads and faults, in which the engine runs
//! unchanged. One seed determines everything.
//!
//! From below: [`vfs`] (the engine's VFS: the fault model of disks, injected faults and thread
//! scheduling). Then [`plan`] (the faults of a run), [`model`] and [`client`] (the
//! expected answers), [`run`] and [`store`] (one seed), [`shrink`], [`exhaustive`] and [`seeds`]
//! (many seeds). `docs/reliability.md` describes the guarantees that the simulation checks.

#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used))]

pub mod client;
pub mod exhaustive;
pub mod model;
pub mod plan;
pub mod run;
pub mod seeds;
pub mod shrink;
pub mod store;
pub mod trace;
pub mod vfs;
