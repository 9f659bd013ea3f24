//! The command line: the benchmarks with their options.

use clap::{Args, Subcommand};

use crate::all::AllArgs;
use crate::args::{KvArgs, LogwriteArgs};
use crate::clicks::ClicksArgs;
use crate::pgbench::PgbenchArgs;
use crate::statements::StatementsArgs;
use crate::tpcb::TpcbArgs;
use crate::tpcc::TpccArgs;
use crate::tpch::TpchArgs;
use crate::tptbm::TptbmArgs;
use crate::wisconsin::WisconsinArgs;

/// `bench` and what comes after it.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArguments {
    /// One benchmark; with none, all of them
    #[command(subcommand)]
    pub command: Option<BenchCommand>,
    /// Options where there is no subcommand
    #[command(flatten)]
    pub all: AllArgs,
}

/// The benchmarks.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Key/value operations: Tables 3, 4, 5 and Figure 1 of the Berkeley DB white paper
    Kv(Box<KvArgs>),
    /// Write a few bytes and flush them, over and over: the ceiling for durable commits
    Logwrite(LogwriteArgs),
    /// Bank transactions: Table 6 and Figure 2 of the white paper, on SQL engines
    Tpcb(Box<TpcbArgs>),
    /// The 32 queries of the Wisconsin benchmark: Table 7 of the white paper, on SQL engines
    Wisconsin(Box<WisconsinArgs>),
    /// The TimesTen report's program and its experiments, on SQL engines
    Tptbm(Box<TptbmArgs>),
    /// The 22 queries of TPC-H on generated data, on SQL engines
    Tpch(Box<TpchArgs>),
    /// 43 scans and aggregations of one wide table of page views, on SQL engines
    Clicks(Box<ClicksArgs>),
    /// 21 statements of the kinds of the TimesTen report's sections 7.1 and 7.2, on SQL engines
    Statements(Box<StatementsArgs>),
    /// A TPC-C-like load: five kinds of transactions on nine tables, on SQL engines
    Tpcc(Box<TpccArgs>),
    /// PostgreSQL's pgbench on a served environment and on PostgreSQL
    Pgbench(Box<PgbenchArgs>),
    /// One run in a process of its own, started by `kv` itself
    #[command(hide = true)]
    Child {
        /// What to run, as JSON
        task: String,
    },
}
