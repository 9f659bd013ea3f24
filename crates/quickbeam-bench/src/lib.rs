//! The benchmark suite of Quickbeam: the key/value tables of the Berkeley DB white paper and the
//! log-write test of its reference manual, on Quickbeam and on the engines a user would take
//! instead, in one run on one machine.
//!
//! [`run`] executes a [`BenchCommand`], the command-line arguments of `quickbeam bench`. The layers,
//! from the work to its report: [`workload`] defines keys, values and orders; [`engine`] is what an
//! engine must offer and [`engines`] holds the adapters; [`kv`] and [`logwrite`] measure;
//! [`report`] renders.

pub mod args;
pub mod engine;
pub mod engines;
pub mod kv;
pub mod logwrite;
pub mod machine;
mod progress;
pub mod published;
pub mod report;
pub mod sql;
pub mod statistics;
pub mod tpcb;
pub mod tptbm;
pub mod wisconsin;
pub mod workload;

pub use args::BenchCommand;

/// Runs a benchmark and writes its report.
pub fn run(command: BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Kv(args) => kv::run(&args),
        BenchCommand::Logwrite(args) => logwrite::command::run(&args),
        BenchCommand::Tpcb(args) => tpcb::run(&args),
        BenchCommand::Wisconsin(args) => wisconsin::run(&args),
        BenchCommand::Tptbm(args) => tptbm::run(&args),
        BenchCommand::Child { task } => kv::child::run(&task),
    }
}
