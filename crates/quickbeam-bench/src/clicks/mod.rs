//! `bench clicks`: 43 scans and aggregations of one wide table of page views, generated here.

pub mod data;
pub mod queries;

use anyhow::{Context, Result};
use clap::Args;

use crate::engine::Mode;
use crate::kv::finish;
use crate::progress::Progress;
use crate::report::Report;
use crate::sql::plan::{SqlOptions, measurable};
use crate::sql::query_list::QueryList;
use crate::sql::{Dialect, SqlConnection};
use queries::{QUERIES, spelled};

/// From this number of rows on every query but the lookup of a visitor has an answer.
const MANY: u64 = 200_000;

/// Options of `bench clicks`.
#[derive(Clone, Debug, Args)]
pub struct ClicksArgs {
    /// Rows of the table [default: 1000000, with --full 10000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..))]
    pub rows: Option<u64>,
    /// Queries to run, by number [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = clap::value_parser!(u8).range(1..=43))]
    pub queries: Vec<u8>,
    /// What all SQL benchmarks have
    #[command(flatten)]
    pub options: SqlOptions,
}

impl ClicksArgs {
    fn rows(&self) -> u64 {
        self.rows.unwrap_or(if self.options.full { 10_000_000 } else { 1_000_000 })
    }

    fn repetitions(&self) -> u32 {
        self.options.reps.unwrap_or(3)
    }

    /// The workload in words.
    pub fn describe(&self) -> String {
        format!(
            "page views: {} rows, one thread, {} MiB cache, {} repetitions",
            self.rows(),
            self.options.cache >> 20,
            self.repetitions()
        )
    }
}

/// Runs the command and writes its report.
pub fn run(args: &ClicksArgs) -> Result<()> {
    let mut report = args.options.report(args.describe())?;
    measure(args, &mut report)?;
    finish(&report, &args.options.outputs, "clicks")
}

/// Runs every query on every engine, interleaved, and adds the results to the report.
pub fn measure(args: &ClicksArgs, report: &mut Report) -> Result<()> {
    let engines = args.options.engines(report)?;
    let text = |query: u8, dialect: &Dialect| {
        let query = QUERIES.get(usize::from(query) - 1).context("there are 43 queries")?;
        Ok(spelled(query, dialect.date_functions))
    };
    let fill = |connection: &mut dyn SqlConnection, _: &str| {
        connection.run(data::TABLE)?;
        data::load(connection, args.rows(), args.options.seed)
    };
    for mode in args.options.modes_or(&[Mode::Sync]) {
        let configurations = measurable(&engines, mode, 1, report);
        let is_wanted = |query: &u8| args.queries.is_empty() || args.queries.contains(query);
        let queries: Vec<u8> = (1..=43).filter(is_wanted).collect();
        let progress = Progress::new((configurations.len() * queries.len()) as u64);
        let list = QueryList {
            benchmark: "clicks",
            options: &args.options,
            repetitions: args.repetitions(),
            records: args.rows(),
            may_be_empty: args.rows() < MANY,
            text: &text,
            fill: &fill,
            progress: &progress,
        };
        list.run(&configurations, &queries, report)?;
        progress.finish();
    }
    Ok(())
}
