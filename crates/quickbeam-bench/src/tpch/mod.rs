//! `bench tpch`: the 22 queries of TPC-H on data generated here.

pub mod data;
pub mod queries;
pub mod words;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::engine::Mode;
use crate::kv::finish;
use crate::progress::Progress;
use crate::report::Report;
use crate::sql::plan::{SqlOptions, measurable};
use crate::sql::query_list::QueryList;
use crate::sql::{Dialect, SqlConnection};
use data::Data;
use queries::{INDEXES, QUERIES, TABLES, spelled};

/// From this scale factor on every query has an answer.
const LARGE: f64 = 0.05;

/// Options of `bench tpch`.
#[derive(Clone, Debug, Args)]
pub struct TpchArgs {
    /// Scale factor: 1 is 6 million rows of lineitem, some 1 GB [default: 0.1, with --full 1]
    #[arg(long, value_name = "FACTOR", value_parser = parse_scale)]
    pub scale: Option<f64>,
    /// Queries to run, by number [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = clap::value_parser!(u8).range(1..=22))]
    pub queries: Vec<u8>,
    /// Make no indexes but those of the primary keys
    #[arg(long)]
    pub keys_only: bool,
    /// What all SQL benchmarks have
    #[command(flatten)]
    pub options: SqlOptions,
}

fn parse_scale(text: &str) -> Result<f64> {
    let scale: f64 = text.parse()?;
    ensure!((0.001..=100.0).contains(&scale), "a scale factor is 0.001 to 100");
    Ok(scale)
}

impl TpchArgs {
    fn scale(&self) -> f64 {
        self.scale.unwrap_or(if self.options.full { 1.0 } else { 0.1 })
    }

    fn repetitions(&self) -> u32 {
        self.options.reps.unwrap_or(3)
    }

    /// The workload in words.
    pub fn describe(&self) -> String {
        format!(
            "TPC-H: scale factor {}, {}, one thread, {} MiB cache, {} repetitions",
            self.scale(),
            if self.keys_only { "primary keys" } else { "primary keys and 9 indexes" },
            self.options.cache >> 20,
            self.repetitions()
        )
    }

    fn wants(&self, query: u8) -> bool {
        self.queries.is_empty() || self.queries.contains(&query)
    }
}

/// Runs the command and writes its report.
pub fn run(args: &TpchArgs) -> Result<()> {
    let mut report = args.options.report(args.describe())?;
    measure(args, &mut report)?;
    finish(&report, &args.options.outputs, "tpch")
}

/// Runs every query on every engine, interleaved, and adds the results to the report.
pub fn measure(args: &TpchArgs, report: &mut Report) -> Result<()> {
    let engines = args.options.engines(report)?;
    let data = Data::new(args.scale(), args.options.seed);
    let scale = args.scale();
    let text = |query: u8, dialect: &Dialect| {
        let query = QUERIES.get(usize::from(query) - 1).context("there are 22 queries")?;
        Ok(spelled(query, scale, dialect.date_functions))
    };
    let fill = |connection: &mut dyn SqlConnection, name: &str| {
        for table in TABLES {
            connection.run(table)?;
        }
        data.load(connection)?;
        // DuckDB looks rows up by zone maps; its indexes serve keys and single values.
        let is_indexed = !args.keys_only && name != "duckdb";
        for index in INDEXES.iter().filter(|_| is_indexed) {
            connection.run(index)?;
        }
        Ok(())
    };
    for mode in args.options.modes_or(&[Mode::Sync]) {
        let configurations = measurable(&engines, mode, 1, report);
        let queries: Vec<u8> = (1..=22).filter(|query| args.wants(*query)).collect();
        let progress = Progress::new((configurations.len() * queries.len()) as u64);
        let list = QueryList {
            benchmark: "tpch",
            options: &args.options,
            repetitions: args.repetitions(),
            records: (scale * 6_000_000.0) as u64,
            may_be_empty: scale < LARGE,
            text: &text,
            fill: &fill,
            progress: &progress,
        };
        list.run(&configurations, &queries, report)?;
        progress.finish();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::query_list::columns;

    #[test]
    fn the_outputs_of_each_query_are_counted() {
        let counts: Vec<usize> = QUERIES.iter().map(|query| columns(query)).collect();
        let expected = [10, 8, 4, 2, 2, 1, 4, 2, 3, 8, 2, 3, 2, 1, 5, 4, 1, 6, 1, 2, 2, 3];
        assert_eq!(counts, expected);
    }
}
