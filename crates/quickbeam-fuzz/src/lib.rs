//! Fuzz targets: everything that Quickbeam reads from outside its process.
//!
//! Above: the tests of this crate, which read the kept inputs (`corpus/`) and random ones made from them in every run of
//! the tests; and `fuzz/`, where libFuzzer makes inputs, led by what code they reach. Below: the engine's `fuzzing`
//! module, and the reader of the program's dumps. `cargo run -p quickbeam-fuzz` makes the kept inputs anew.
//!
//! - FUZZ-1: a target panics if what it was given is not dealt with as it must be, and never else: no panic of the
//!   engine, in no thread; no call without an end; what is refused is refused with the place; what was not sealed
//!   anew is read as it was written, or refused.
//! - FUZZ-2: most inputs are read twice, as they are and with right checksums over what they hold: otherwise checksums
//!   would keep everything out that lies behind them.
#![allow(clippy::unwrap_used)] // A panic is how a failure is told here.

pub mod corpus;
#[allow(dead_code)] // Only reading is fuzzed.
#[path = "../../quickbeam-cli/src/dump_format.rs"]
mod dump_format;
pub mod environment;
pub mod random;
pub mod targets;

/// One kind of input.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name: also that of its folder of kept inputs.
    pub name: &'static str,
    /// Reads one input.
    pub run: fn(&[u8]),
    /// How many random inputs two seconds are enough for, without optimization.
    pub quick: u64,
}

/// Every target.
pub const TARGETS: [Target; 5] = [
    Target { name: "page", run: targets::page, quick: 10_000 },
    Target { name: "log", run: targets::log, quick: 4000 },
    Target { name: "roots", run: targets::roots, quick: 20_000 },
    Target { name: "dump", run: targets::dump, quick: 20_000 },
    Target { name: "environment", run: environment::read_edited, quick: 500 },
];
