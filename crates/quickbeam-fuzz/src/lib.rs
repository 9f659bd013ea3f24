//! Fuzz targets for everything that Quickbeam reads from outside its process.
//!
//! Above: the tests of this crate, which run the kept inputs (`corpus/`) and random mutations of
//! them; and `fuzz/`, where libFuzzer generates inputs guided by code coverage. Below: the engine's
//! `fuzzing` module, and the reader of the program's dumps. `cargo run -p quickbeam-fuzz` generates
//! the kept inputs again.
//!
//! - FUZZ-1: a target panics only if an input is handled incorrectly. Correct handling means: no
//!   panic of the engine in any thread, and no endless call. An error names the place. Content that
//!   was not sealed is read unchanged or refused.
//! - FUZZ-2: most inputs are read twice, unchanged and with valid checksums: otherwise checksums
//!   would shield all later code.

#![allow(clippy::unwrap_used)] // A panic reports a failure.

pub mod corpus;
#[allow(dead_code)] // Only reading is fuzzed.
#[path = "../../quickbeam-cli/src/dump/dump_format.rs"]
mod dump_format;
pub mod environment;
pub mod random;
pub mod targets;

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, which is also the name of its directory of kept inputs.
    pub name: &'static str,
    /// Runs one input.
    pub run: fn(&[u8]),
    /// Number of random inputs that run in two seconds without optimization.
    pub quick: u64,
}

/// All targets.
pub const TARGETS: [Target; 5] = [
    Target { name: "page", run: targets::page, quick: 10_000 },
    Target { name: "log", run: targets::log, quick: 4000 },
    Target { name: "roots", run: targets::roots, quick: 20_000 },
    Target { name: "dump", run: targets::dump, quick: 20_000 },
    Target { name: "environment", run: environment::read_edited, quick: 500 },
];
