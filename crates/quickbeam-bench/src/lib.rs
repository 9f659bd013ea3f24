//! The benchmark suite of Quickbeam, run on it and on the engines that a user would take instead.
//!
//! - the key/value and SQL tables of the Berkeley DB white paper
//! - the log-write test of its reference manual
//! - the experiments of the TimesTen report
//!
//! [`run`] executes [`BenchArguments`], the command-line arguments of `quickbeam bench`. The
//! layers, from the work to its report: [`workload`] defines keys, values and orders; [`engine`] is
//! what a key/value engine must offer and [`engines`] holds the adapters, [`sql`] both for SQL
//! engines; [`kv`], [`logwrite`], [`tpcb`], [`wisconsin`], [`tptbm`], [`tpch`], [`clicks`],
//! [`statements`], [`tpcc`] and [`pgbench`] measure, [`all`] runs them; [`report`] renders.

#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used))]

pub mod all;
pub mod args;
pub mod clicks;
pub mod command;
pub mod engine;
pub mod engines;
pub mod kv;
pub mod logwrite;
pub mod machine;
pub mod pgbench;
mod progress;
pub mod published;
pub mod report;
pub mod sql;
pub mod statements;
pub mod statistics;
pub mod tpcb;
pub mod tpcc;
pub mod tpch;
pub mod tptbm;
pub mod wisconsin;
pub mod workload;

pub use command::{BenchArguments, BenchCommand};
pub use tptbm::spelling::with_long_options;

/// How a benchmark has ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchOutcome {
    /// Everything was measured that can be.
    Whole,
    /// An engine that a comparison needs was not there.
    PeerMissing,
}

/// Runs a benchmark, or all of them, and writes its report.
pub fn run(arguments: BenchArguments) -> anyhow::Result<BenchOutcome> {
    let ran = match arguments.command {
        None => all::run(&arguments.all),
        Some(BenchCommand::Kv(args)) => kv::run(&args),
        Some(BenchCommand::Logwrite(args)) => logwrite::command::run(&args),
        Some(BenchCommand::Tpcb(args)) => tpcb::run(&args),
        Some(BenchCommand::Wisconsin(args)) => wisconsin::run(&args),
        Some(BenchCommand::Tptbm(args)) => tptbm::run(&args),
        Some(BenchCommand::Tpch(args)) => tpch::run(&args),
        Some(BenchCommand::Clicks(args)) => clicks::run(&args),
        Some(BenchCommand::Statements(args)) => statements::run(&args),
        Some(BenchCommand::Tpcc(args)) => tpcc::run(&args),
        Some(BenchCommand::Pgbench(args)) => return pgbench::run(&args),
        Some(BenchCommand::Child { task }) => kv::run_child(&task),
    };
    ran.map(|()| BenchOutcome::Whole)
}
