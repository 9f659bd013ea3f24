//! `bench statements`: statements of the kinds in sections 7.1 and 7.2 of the TimesTen report,
//! simple and complex queries and small and large writes, at several sizes of the tables.

pub mod data;
pub mod list;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::engine::Mode;
use crate::kv::finish;
use crate::progress::Progress;
use crate::report::{Measurement, Report};
use crate::sql::plan::{SqlOptions, measurable};
use crate::sql::retry::settled;
use crate::sql::subjects::{Databases, Subject, take_turns};
use crate::sql::{Prepared, SqlConnection, SqlRow, answers, engines};
use data::Sizes;
use list::{BenchStatement, STATEMENTS, StatementKind, step};

/// Options of `bench statements`.
#[derive(Clone, Debug, Args)]
pub struct StatementsArgs {
    /// Sizes of the tables: 1 is the report's, 1.3 million rows [default: 0.1, with --full 1,4,16]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = parse_scale)]
    pub scale: Vec<f64>,
    /// Statements to run, by number [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = clap::value_parser!(u8).range(1..=21))]
    pub statements: Vec<u8>,
    /// What all SQL benchmarks have
    #[command(flatten)]
    pub options: SqlOptions,
}

fn parse_scale(text: &str) -> Result<f64> {
    let scale: f64 = text.parse()?;
    ensure!((0.01..=100.0).contains(&scale), "a scale is 0.01 to 100");
    Ok(scale)
}

impl StatementsArgs {
    fn scales(&self) -> Vec<f64> {
        match (self.scale.is_empty(), self.options.full) {
            (false, _) => self.scale.clone(),
            (true, true) => vec![1.0, 4.0, 16.0],
            (true, false) => vec![0.1],
        }
    }

    fn repetitions(&self) -> u32 {
        self.options.reps.unwrap_or(3)
    }

    fn wants(&self, statement: &BenchStatement) -> bool {
        self.statements.is_empty() || self.statements.contains(&statement.number)
    }

    /// The workload in words.
    pub fn describe(&self) -> String {
        let scales: Vec<String> = self.scales().iter().map(f64::to_string).collect();
        format!(
            "statements: scale {}, one thread, {} MiB cache, {} repetitions",
            scales.join(", "),
            self.options.cache >> 20,
            self.repetitions()
        )
    }
}

/// Runs the command and writes its report.
pub fn run(args: &StatementsArgs) -> Result<()> {
    let mut report = args.options.report(args.describe())?;
    measure(args, &mut report)?;
    finish(&report, &args.options.outputs, "statements")
}

/// Runs every statement on every engine, interleaved, and adds the results to the report.
pub fn measure(args: &StatementsArgs, report: &mut Report) -> Result<()> {
    // The SQL of Berkeley DB's SQLite has neither window functions nor UPDATE … FROM.
    let usual = engines::all().into_iter().filter(|engine| engine.name() != "bdb-sql");
    let engines = args.options.engines_of(usual.collect(), report)?;
    let statements: Vec<&BenchStatement> = STATEMENTS.iter().filter(|s| args.wants(s)).collect();
    for mode in args.options.modes_or(&[Mode::Sync]) {
        let configurations = measurable(&engines, mode, 1, report);
        for scale in args.scales() {
            let steps = configurations.len() * statements.len();
            let progress = Progress::new(steps as u64);
            let sizes = Sizes::new(scale);
            let fill = |connection: &mut dyn SqlConnection, name: &str| {
                data::definitions().iter().try_for_each(|table| connection.run(table))?;
                data::load(connection, sizes, args.options.seed)?;
                // DuckDB looks rows up by zone maps; its indexes serve keys and single values.
                let is_indexed = name != "duckdb";
                let mut indexes = data::INDEXES.iter().filter(|_| is_indexed);
                indexes.try_for_each(|index| connection.run(index))
            };
            let databases = Databases {
                benchmark: "statements",
                options: &args.options,
                fill: &fill,
                progress: &progress,
            };
            let bench = StatementsBench { args, sizes, scale, progress: &progress };
            databases.with_subjects(&configurations, report, |subjects, report| {
                let mut statements = statements.iter();
                statements.try_for_each(|statement| bench.statement(statement, subjects, report))
            })?;
            progress.finish();
        }
    }
    Ok(())
}

/// What does not change from one statement to the next.
struct StatementsBench<'a> {
    args: &'a StatementsArgs,
    sizes: Sizes,
    scale: f64,
    progress: &'a Progress,
}

/// What a statement answered, or what it left: rows, and a checksum of them in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    rows: u64,
    checksum: u64,
}

impl StatementsBench<'_> {
    /// One statement: the engines take turns. The first turn is not timed; an engine whose outcome
    /// differs in it from that of most others fails.
    fn statement(
        &self,
        statement: &BenchStatement,
        subjects: &mut [Subject<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let what = format!("statement {}", statement.number);
        let mut prepared = Vec::new();
        for subject in &mut *subjects {
            self.progress.message(&subject.configuration.label(&what, 0));
            prepared.push(self.first(statement, &mut *subject.connection));
        }
        compare_all(&mut prepared);
        let turns = (&what[..], self.args.repetitions());
        let taken =
            take_turns(subjects, prepared, turns, self.progress, |subject, (prepared, _)| {
                self.timed(statement, *prepared, &mut *subject.connection)
            });
        for (subject, taken) in subjects.iter().zip(taken) {
            let result = |times: &[Duration]| self.result(statement, subject, times);
            let shown = (self.progress, &mut *report);
            subject.configuration.conclude(&what, taken, result, shown)?;
        }
        Ok(())
    }

    fn result(
        &self,
        statement: &BenchStatement,
        subject: &Subject<'_>,
        times: &[Duration],
    ) -> Result<Measurement> {
        let name = step(statement.number, self.scale);
        let mut result = subject.configuration.timed("statements", &name, times)?;
        result.records = statement.work(self.sizes);
        result.settings = subject.settings();
        Ok(result)
    }

    /// Prepares a statement and runs it once, untimed, for its outcome.
    fn first(
        &self,
        statement: &BenchStatement,
        connection: &mut dyn SqlConnection,
    ) -> Result<(Prepared, Outcome)> {
        let text = statement.text(self.sizes);
        restore(statement, connection)?;
        let prepared = connection.prepare(&text).with_context(|| text.clone())?;
        let mut outcome = Outcome { rows: 0, checksum: 0 };
        match statement.kind {
            StatementKind::Query(columns) => {
                settled(connection.query(prepared, &[], &mut |row| {
                    let mut hasher = DefaultHasher::new();
                    read(row, columns, |number, text| (number, text).hash(&mut hasher));
                    outcome.rows += 1;
                    outcome.checksum = outcome.checksum.wrapping_add(hasher.finish());
                }))?;
                self.check_rows(statement, outcome.rows)?;
            }
            StatementKind::Write { check: (query, columns), .. } => {
                let rows = settled(connection.execute(prepared, &[]))?;
                self.check_rows(statement, rows)?;
                let mut hasher = DefaultHasher::new();
                answers::for_each_integers(connection, query, columns, |values| {
                    values.hash(&mut hasher);
                })?;
                outcome.checksum = hasher.finish();
            }
        }
        Ok((prepared, outcome))
    }

    /// Runs a statement and returns how long it took.
    fn timed(
        &self,
        statement: &BenchStatement,
        prepared: Prepared,
        connection: &mut dyn SqlConnection,
    ) -> Result<Duration> {
        restore(statement, connection)?;
        let begin = Instant::now();
        let rows = match statement.kind {
            StatementKind::Query(columns) => {
                let (mut rows, mut bytes) = (0, 0);
                settled(connection.query(prepared, &[], &mut |row| {
                    rows += 1;
                    read(row, columns, |number, text| {
                        bytes += number.unwrap_or_default() as usize + text.map_or(0, <[u8]>::len);
                    });
                }))?;
                std::hint::black_box(bytes);
                rows
            }
            StatementKind::Write { .. } => settled(connection.execute(prepared, &[]))?,
        };
        let time = begin.elapsed();
        self.check_rows(statement, rows)?;
        Ok(time)
    }

    fn check_rows(&self, statement: &BenchStatement, rows: u64) -> Result<()> {
        if let Some(expected) = statement.rows(self.sizes) {
            ensure!(rows == expected, "{rows} rows instead of {expected}");
        }
        Ok(())
    }
}

/// Restores the state before a statement.
fn restore(statement: &BenchStatement, connection: &mut dyn SqlConnection) -> Result<()> {
    let StatementKind::Write { before, .. } = statement.kind else { return Ok(()) };
    before.iter().try_for_each(|text| connection.run(text))
}

/// Reads every column of a row.
fn read(row: &dyn SqlRow, columns: &str, mut take: impl FnMut(Option<i64>, Option<&[u8]>)) {
    for (column, kind) in columns.bytes().enumerate() {
        match kind {
            b'i' => take(row.integer(column), None),
            _ => take(None, row.text(column)),
        }
    }
}

/// Marks the engines whose outcome differs from that of most others; of two, both.
fn compare_all(prepared: &mut [Result<(Prepared, Outcome)>]) {
    let outcomes: Vec<Outcome> =
        prepared.iter().filter_map(|first| Some(first.as_ref().ok()?.1)).collect();
    for first in prepared {
        let Ok((_, outcome)) = first else { continue };
        let equal = outcomes.iter().filter(|other| *other == outcome).count() - 1;
        if equal < outcomes.len() - 1 - equal {
            *first = Err(anyhow::anyhow!("the outcome is not that of the other engines"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: StatementsArgs,
    }

    /// Every engine that this machine has gives the same outcomes, with the numbers of rows that
    /// the list says.
    #[test]
    fn every_engine_answers_every_statement() {
        let name = format!("bench-statements-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let path = directory.to_str().unwrap();
        let line = ["bench", "--scale", "0.01", "--reps", "1", "--dir", path, "--ramdisk", path];
        let args = Program::try_parse_from(line).unwrap().args;
        let mut report = args.options.report(args.describe()).unwrap();
        measure(&args, &mut report).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        let failures: Vec<&String> = report.failures.iter().map(|f| &f.error).collect();
        assert_eq!(failures, Vec::<&String>::new());
        let ours = report.of("statements").filter(|result| result.engine == "quickbeam");
        assert_eq!(ours.count(), if cfg!(feature = "sql") { STATEMENTS.len() } else { 0 });
    }
}
