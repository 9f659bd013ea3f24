//! `bench tpch`: the 22 queries of TPC-H on data generated here.

pub mod answers;
pub mod data;
pub mod queries;
pub mod words;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::engine::Mode;
use crate::kv::{Scratch, finish};
use crate::progress::Progress;
use crate::report::{Measurement, Report};
use crate::sql::plan::{Configuration, SqlOptions, measurable};
use crate::sql::retry::settled;
use crate::sql::{Prepared, SqlConnection, SqlInstance};
use answers::TpchAnswer;
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
    for mode in args.options.modes_or(&[Mode::Sync]) {
        let configurations = measurable(&engines, mode, 1, report);
        let queries: Vec<u8> = (1..=22).filter(|query| args.wants(*query)).collect();
        let progress = Progress::new((configurations.len() * queries.len()) as u64);
        let bench = TpchBench { args, data: &data, progress: &progress };
        bench.run(&configurations, &queries, report)?;
        progress.finish();
    }
    Ok(())
}

/// What does not change from one durability class to the next.
struct TpchBench<'a> {
    args: &'a TpchArgs,
    data: &'a Data,
    progress: &'a Progress,
}

/// An engine that is open.
struct TpchSubject<'i> {
    configuration: Configuration,
    instance: &'i dyn SqlInstance,
    connection: Box<dyn SqlConnection + 'i>,
}

impl TpchBench<'_> {
    fn run(
        &self,
        configurations: &[Configuration],
        queries: &[u8],
        report: &mut Report,
    ) -> Result<()> {
        let mut open = Vec::new();
        for configuration in configurations {
            self.progress.message(&configuration.label("tpch: build", 0));
            match self.build(configuration) {
                Ok((scratch, instance)) => open.push((*configuration, instance, scratch)),
                Err(error) => report.failures.push(configuration.failure("build", &error)),
            }
        }
        let mut subjects = Vec::new();
        for (configuration, instance, _) in &open {
            let instance = &**instance;
            let mut connection = instance.connect()?;
            if let Some(setting) = instance.dialect().one_thread {
                connection.run(setting)?;
            }
            subjects.push(TpchSubject { configuration: *configuration, instance, connection });
        }
        for query in queries {
            self.query(*query, &mut subjects, report)?;
        }
        drop(subjects);
        for (configuration, instance, scratch) in open {
            instance.close().with_context(|| configuration.engine.name())?;
            drop(scratch);
        }
        Ok(())
    }

    /// A database with the tables and their indexes.
    fn build(&self, configuration: &Configuration) -> Result<(Scratch, Box<dyn SqlInstance>)> {
        let options = &self.args.options;
        let name = configuration.engine.name();
        let scratch = Scratch::new(&options.places, configuration.mode, name)?;
        let setup = configuration.setup(options, scratch.path(), 1);
        let instance = configuration.engine.open(&setup)?;
        let mut connection = instance.connect()?;
        for table in TABLES {
            connection.run(table)?;
        }
        self.data.load(&mut *connection)?;
        // DuckDB looks rows up by zone maps; its indexes serve keys and single values.
        let is_indexed = !self.args.keys_only && name != "duckdb";
        for index in INDEXES.iter().filter(|_| is_indexed) {
            connection.run(index)?;
        }
        drop(connection);
        instance.settle()?;
        Ok((scratch, instance))
    }

    /// One query: the engines take turns, as often as there are repetitions. An engine
    /// whose first answer differs from most others fails.
    fn query(
        &self,
        query: u8,
        subjects: &mut [TpchSubject<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let what = format!("query {query}");
        let scale = self.args.scale();
        let mut taken: Vec<Result<Vec<Duration>>> = Vec::new();
        let mut answers: Vec<Option<TpchAnswer>> = Vec::new();
        let mut prepared = Vec::new();
        for subject in &mut *subjects {
            self.progress.message(&subject.configuration.label(&what, 0));
            match subject.prepare(query, scale) {
                Ok((statement, answer)) => {
                    prepared.push(Some(statement));
                    answers.push(Some(answer));
                    taken.push(Ok(Vec::new()));
                }
                Err(error) => {
                    prepared.push(None);
                    answers.push(None);
                    taken.push(Err(error));
                }
            }
        }
        compare_all(&answers, &mut taken);
        for _ in 0..self.args.repetitions() {
            for (((subject, taken), statement), answer) in
                subjects.iter_mut().zip(&mut taken).zip(&prepared).zip(&answers)
            {
                let (Ok(done), Some(statement), Some(answer)) = (&mut *taken, statement, answer)
                else {
                    continue;
                };
                self.progress.message(&subject.configuration.label(&what, done.len() as u32));
                match subject.measure(*statement, answer.len()) {
                    Ok(time) => done.push(time),
                    Err(error) => *taken = Err(error),
                }
            }
        }
        for (subject, taken) in subjects.iter().zip(taken) {
            let result = |times: &[Duration]| self.result(query, subject, times);
            let shown = (self.progress, &mut *report);
            subject.configuration.conclude(&what, taken, result, shown)?;
        }
        Ok(())
    }

    fn result(
        &self,
        query: u8,
        subject: &TpchSubject<'_>,
        times: &[Duration],
    ) -> Result<Measurement> {
        let mut result = subject.configuration.timed("tpch", &query.to_string(), times)?;
        result.records = (self.args.scale() * 6_000_000.0) as u64;
        result.settings = subject.instance.settings();
        if let Some(setting) = subject.instance.dialect().one_thread {
            result.settings = format!("{}; {setting}", result.settings);
        }
        Ok(result)
    }
}

/// Marks the engines whose answer differs from that of most others; of two, both.
fn compare_all(answers: &[Option<TpchAnswer>], taken: &mut [Result<Vec<Duration>>]) {
    for (number, answer) in answers.iter().enumerate() {
        let Some(answer) = answer else { continue };
        let others = answers.iter().enumerate().filter(|(other, _)| *other != number);
        let (mut equal, mut differences) = (0, Vec::new());
        for other in others.filter_map(|(_, other)| other.as_ref()) {
            match answers::compare(answer, other) {
                Ok(()) => equal += 1,
                Err(error) => differences.push(error),
            }
        }
        let count = differences.len();
        if count > equal
            && let Some(error) = differences.pop()
            && let Some(taken) = taken.get_mut(number)
        {
            *taken = Err(error.context("the answer is not that of the other engines"));
        }
    }
}

impl TpchSubject<'_> {
    /// Prepares a query and runs it once for its answer.
    fn prepare(&mut self, query: u8, scale: f64) -> Result<(Prepared, TpchAnswer)> {
        let dialect = self.instance.dialect();
        let query = QUERIES.get(usize::from(query) - 1).context("there are 22 queries")?;
        let text = spelled(query, scale, dialect.date_functions);
        let statement = self.connection.prepare(&text).with_context(|| text.clone())?;
        let shown = match dialect.as_texts {
            Some((before, after)) => self.connection.prepare(&format!("{before}{text}{after}"))?,
            None => statement,
        };
        let mut answer = Vec::new();
        let visit =
            &mut |row: &dyn crate::sql::SqlRow| answer.push(answers::read(row, columns(query)));
        settled(self.connection.query(shown, &[], visit))?;
        let is_large = scale >= LARGE;
        ensure!(
            !answer.is_empty() || !is_large,
            "the answer is empty, which the data do not allow"
        );
        Ok((statement, answer))
    }

    fn measure(&mut self, statement: Prepared, expected: usize) -> Result<Duration> {
        let mut rows = 0;
        let begin = Instant::now();
        settled(self.connection.query(statement, &[], &mut |_| rows += 1))?;
        let time = begin.elapsed();
        ensure!(rows == expected, "{rows} rows instead of {expected}");
        Ok(time)
    }
}

/// The number of outputs of a query: the commas of the select list of its last query outside of
/// parentheses, and one.
fn columns(query: &str) -> usize {
    let (mut depth, mut commas, mut count) = (0, 0, 0);
    let mut word = String::new();
    for letter in query.chars().chain([' ']) {
        if letter.is_alphanumeric() || letter == '_' {
            word.push(letter);
            continue;
        }
        match (&word[..], depth) {
            ("select", 0) => commas = 1,
            ("from", 0) => count = commas,
            _ => {}
        }
        word.clear();
        match letter {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            ',' if depth == 0 => commas += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outputs_of_each_query_are_counted() {
        let counts: Vec<usize> = QUERIES.iter().map(|query| columns(query)).collect();
        let expected = [10, 8, 4, 2, 2, 1, 4, 2, 3, 8, 2, 3, 2, 1, 5, 4, 1, 6, 1, 2, 2, 3];
        assert_eq!(counts, expected);
    }
}
