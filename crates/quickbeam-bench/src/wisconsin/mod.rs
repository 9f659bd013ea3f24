//! `bench wisconsin`: Table 7 of the white paper.

pub mod answers;
pub mod queries;
pub mod relations;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::engine::{Mode, OpError};
use crate::kv::{Scratch, finish};
use crate::progress::Progress;
use crate::report::Report;
use crate::sql::plan::{Configuration, SqlOptions, measurable};
use crate::sql::retry::{again, settled};
use crate::sql::{Clustering, Prepared, SqlConnection, SqlInstance};
use answers::{Shape, WisconsinAnswer};
use queries::{Indexes, Query, Relations, Target};

/// Before a run is timed the query was run untimed for so long, its checks included, or so often.
const WARM_UP_TIME: Duration = Duration::from_millis(1);
const WARM_UP_RUNS: u32 = 8;

/// Options of `bench wisconsin`.
#[derive(Clone, Debug, Args)]
pub struct WisconsinArgs {
    /// Tuples of TENKTUP1 and TENKTUP2; ONEKTUP and BPRIME have a tenth
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1000..=10_000_000))]
    pub tuples: u32,
    /// Queries to run, by number [default: all]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = clap::value_parser!(u8).range(1..=32))]
    pub queries: Vec<u8>,
    /// What all SQL benchmarks have
    #[command(flatten)]
    pub options: SqlOptions,
}

impl WisconsinArgs {
    fn repetitions(&self) -> u32 {
        self.options.reps.unwrap_or(10)
    }

    /// The workload in words.
    pub fn describe(&self) -> String {
        format!(
            "Wisconsin: {} tuples, {} MiB cache, {} repetitions",
            self.tuples,
            self.options.cache >> 20,
            self.repetitions()
        )
    }

    fn wants(&self, query: &Query) -> bool {
        self.queries.is_empty() || self.queries.contains(&query.number)
    }
}

/// Runs the command and writes its report.
pub fn run(args: &WisconsinArgs) -> Result<()> {
    let mut report = args.options.report(args.describe())?;
    measure(args, &mut report)?;
    finish(&report, &args.options.outputs, "wisconsin")
}

/// Runs every query on every engine, interleaved, and adds the results to the report.
pub fn measure(args: &WisconsinArgs, report: &mut Report) -> Result<()> {
    let engines = args.options.engines(report)?;
    let relations = Relations {
        large: relations::relation(args.tuples),
        small: relations::relation(args.tuples / 10),
    };
    let queries: Vec<Query> = relations.queries().into_iter().filter(|q| args.wants(q)).collect();
    let plan: Vec<Vec<Configuration>> = args
        .options
        .modes_or(&[Mode::Wns, Mode::InMem])
        .into_iter()
        .map(|mode| measurable(&engines, mode, 1, report))
        .collect();
    let runs: usize = plan.iter().map(|configurations| configurations.len() * queries.len()).sum();
    let progress = Progress::new(runs as u64);
    let bench =
        WisconsinBench { args, relations: &relations, queries: &queries, progress: &progress };
    for configurations in plan {
        bench.run(&configurations, report)?;
    }
    progress.finish();
    Ok(())
}

/// What does not change from one durability class to the next.
struct WisconsinBench<'a> {
    args: &'a WisconsinArgs,
    relations: &'a Relations,
    queries: &'a [Query],
    progress: &'a Progress,
}

/// An engine that is open.
struct WisconsinSubject<'i> {
    configuration: Configuration,
    instance: &'i dyn SqlInstance,
    connection: Box<dyn SqlConnection + 'i>,
}

impl WisconsinBench<'_> {
    /// All queries on all engines in one durability class.
    fn run(&self, configurations: &[Configuration], report: &mut Report) -> Result<()> {
        for indexes in [Indexes::None, Indexes::Both] {
            let queries: Vec<&Query> =
                self.queries.iter().filter(|query| query.indexes == indexes).collect();
            if queries.is_empty() {
                continue;
            }
            let mut open = Vec::new();
            for configuration in configurations {
                let label = configuration.label("wisconsin: build", 0);
                self.progress.message(&label);
                match self.build(configuration, indexes) {
                    Ok((scratch, instance)) => open.push((*configuration, instance, scratch)),
                    Err(error) => report.failures.push(configuration.failure("build", &error)),
                }
            }
            let mut subjects = Vec::new();
            for (configuration, instance, _) in &open {
                let instance = &**instance;
                let connection = instance.connect()?;
                subjects.push(WisconsinSubject {
                    configuration: *configuration,
                    instance,
                    connection,
                });
            }
            for query in queries {
                self.query(query, &mut subjects, report)?;
            }
            drop(subjects);
            for (configuration, instance, scratch) in open {
                instance.close().with_context(|| configuration.engine.name())?;
                drop(scratch);
            }
        }
        Ok(())
    }

    /// A database with the relations, and with these indexes.
    fn build(
        &self,
        configuration: &Configuration,
        indexes: Indexes,
    ) -> Result<(Scratch, Box<dyn SqlInstance>)> {
        let options = &self.args.options;
        let name = configuration.engine.name();
        let scratch = Scratch::new(&options.places, configuration.mode, name)?;
        let setup = configuration.setup(options, scratch.path(), self.args.tuples.into());
        let instance = configuration.engine.open(&setup)?;
        let mut connection = instance.connect()?;
        let clustering = instance.dialect().clustering;
        let key = match (indexes, clustering) {
            (Indexes::Both, Clustering::PrimaryKey) => " PRIMARY KEY",
            _ => "",
        };
        let (large, small) = (&self.relations.large, &self.relations.small);
        for (name, tuples) in [("TENKTUP1", large), ("TENKTUP2", large), ("ONEKTUP", small)] {
            connection.run(&relations::definition(name, key))?;
            relations::load(&mut *connection, name, tuples)?;
            if indexes == Indexes::Both {
                self.index(&mut *connection, name, clustering)?;
            }
        }
        connection.run(&relations::definition("BPRIME", ""))?;
        let tenth = self.args.tuples / 10;
        connection.run(&format!(
            "INSERT INTO BPRIME SELECT * FROM TENKTUP2 WHERE TENKTUP2.unique2 < {tenth}"
        ))?;
        for (name, columns) in queries::result_relations() {
            connection.run(&format!("CREATE TABLE {name} ({columns})"))?;
        }
        drop(connection);
        instance.settle()?;
        Ok((scratch, instance))
    }

    fn index(
        &self,
        connection: &mut dyn SqlConnection,
        name: &str,
        clustering: Clustering,
    ) -> Result<()> {
        if clustering != Clustering::PrimaryKey {
            connection.run(&format!("CREATE UNIQUE INDEX {name}_u2 ON {name} (unique2)"))?;
        }
        if clustering == Clustering::Command {
            connection.run(&format!("CLUSTER {name} USING {name}_u2"))?;
        }
        connection.run(&format!("CREATE UNIQUE INDEX {name}_u1 ON {name} (unique1)"))
    }

    /// One query: the engines take turns, as often as there are repetitions.
    fn query(
        &self,
        query: &Query,
        subjects: &mut [WisconsinSubject<'_>],
        report: &mut Report,
    ) -> Result<()> {
        let what = format!("query {}", query.number);
        let mut times: Vec<Result<Vec<Duration>>> =
            subjects.iter().map(|_| Ok(Vec::new())).collect();
        let mut statements: Vec<Option<WisconsinStatements>> =
            subjects.iter().map(|_| None).collect();
        for _ in 0..self.args.repetitions() {
            for ((subject, times), statements) in
                subjects.iter_mut().zip(&mut times).zip(&mut statements)
            {
                let Ok(done) = times else { continue };
                self.progress.message(&subject.configuration.label(&what, done.len() as u32));
                match subject.measure(query, statements) {
                    Ok(time) => done.push(time),
                    Err(error) => *times = Err(error),
                }
            }
        }
        for (subject, times) in subjects.iter().zip(times) {
            let result = |times: &[Duration]| self.result(query, subject, times);
            let shown = (self.progress, &mut *report);
            subject.configuration.conclude(&what, times, result, shown)?;
        }
        Ok(())
    }

    fn result(
        &self,
        query: &Query,
        subject: &WisconsinSubject<'_>,
        times: &[Duration],
    ) -> Result<crate::report::Measurement> {
        let step = query.number.to_string();
        let mut result = subject.configuration.timed("wisconsin", &step, times)?;
        result.records = self.args.tuples.into();
        result.settings = subject.instance.settings();
        Ok(result)
    }
}

/// The statements of a query, prepared.
struct WisconsinStatements {
    query: Prepared,
    before: Option<Prepared>,
    after: Option<Prepared>,
    /// Reads the answer back.
    answer: Option<Prepared>,
    /// Empties the result relation.
    empty: Option<Prepared>,
}

impl WisconsinSubject<'_> {
    fn prepare(&mut self, query: &Query) -> Result<WisconsinStatements> {
        let (answer, empty) = match query.target {
            Target::Screen(_) => (None, None),
            Target::Relation(name, _) => {
                let empty = match self.instance.dialect().truncate {
                    true => format!("TRUNCATE TABLE {name}"),
                    false => format!("DELETE FROM {name}"),
                };
                (Some(format!("SELECT * FROM {name}")), Some(empty))
            }
            Target::Change => (Some("SELECT * FROM TENKTUP1".to_owned()), None),
        };
        let connection = &mut self.connection;
        let mut prepare = |text: Option<&String>| -> Result<Option<Prepared>> {
            text.map(|text| connection.prepare(text).with_context(|| text.clone())).transpose()
        };
        Ok(WisconsinStatements {
            before: prepare(query.before.as_ref())?,
            after: prepare(query.after.as_ref())?,
            answer: prepare(answer.as_ref())?,
            empty: prepare(empty.as_ref())?,
            query: self.connection.prepare(&query.text)?,
        })
    }

    /// Runs the query untimed until the processor knows it, then once more, checks every answer and
    /// returns the time of the last run: the engines before this one have emptied the processor's
    /// caches and taught it other jumps, which is not this one's time. One run is enough for a
    /// query of milliseconds; one of a microsecond would be timed as it comes in from memory.
    fn measure(
        &mut self,
        query: &Query,
        kept: &mut Option<WisconsinStatements>,
    ) -> Result<Duration> {
        let statements = match kept {
            Some(statements) => statements,
            None => kept.insert(self.prepare(query)?),
        };
        let begin = Instant::now();
        for _ in 0..WARM_UP_RUNS {
            self.once(query, statements)?;
            if begin.elapsed() >= WARM_UP_TIME {
                break;
            }
        }
        self.once(query, statements)
    }

    fn once(&mut self, query: &Query, statements: &WisconsinStatements) -> Result<Duration> {
        if let Some(before) = statements.before {
            self.change(before)?;
        }
        let mut answer = WisconsinAnswer::default();
        let begin = Instant::now();
        let changed = match query.target {
            Target::Screen(shape) => {
                let visit = &mut |row: &dyn crate::sql::SqlRow| answer.read(shape, row);
                settled(self.connection.query(statements.query, &[], visit))?;
                answer.rows
            }
            _ => self.change(statements.query)?,
        };
        let time = begin.elapsed();
        let expected = if query.target == Target::Change { 1 } else { query.answer.rows };
        ensure!(changed == expected, "{changed} rows instead of {expected}");
        let shape = match query.target {
            Target::Relation(_, shape) => shape,
            Target::Screen(_) | Target::Change => queries::WHOLE,
        };
        if let Some(statement) = statements.answer {
            answer = self.read(statement, shape)?;
        }
        ensure!(
            answer == query.answer,
            "the answer of {} rows is not the one of {} rows that it must be",
            answer.rows,
            query.answer.rows
        );
        for statement in [statements.after, statements.empty].into_iter().flatten() {
            self.change(statement)?;
        }
        Ok(time)
    }

    fn change(&mut self, statement: Prepared) -> Result<u64> {
        let mut changed = 0;
        again(|| {
            changed = self.connection.execute(statement, &[])?;
            Ok::<_, OpError>(())
        })?;
        Ok(changed)
    }

    fn read(&mut self, statement: Prepared, shape: Shape) -> Result<WisconsinAnswer> {
        let mut answer = WisconsinAnswer::default();
        settled(self.connection.query(statement, &[], &mut |row| answer.read(shape, row)))?;
        Ok(answer)
    }
}
