//! A simulated world for Quickbeam: the engine runs in it as it does in the real one, and one number decides all that
//! is left to chance outside.
//!
//! From below: [`random`], [`disk`] (what a disk may do), [`scheduler`] (which thread runs), [`vfs`] (the two behind
//! the engine's seam), [`faults`] and [`plan`] (what is to go wrong), [`model`] and [`client`] (what must hold),
//! [`run`] and [`store`] (one seed), [`shrink`], [`exhaustive`], [`seeds`] (many of them). `docs/reliability.md` says what
//! is shown by it.

pub mod client;
pub mod disk;
pub mod exhaustive;
pub mod faults;
pub mod model;
pub mod plan;
pub mod random;
pub mod run;
pub mod scheduler;
pub mod seeds;
pub mod shrink;
pub mod store;
pub mod trace;
pub mod vfs;
