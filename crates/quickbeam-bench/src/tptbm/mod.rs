//! `bench tptbm`: the TimesTen report's program and its experiments.

pub mod presets;
pub mod spelling;
pub mod subscribers;
pub mod worker;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::args::parse_positive;
use crate::engine::Mode;
use crate::kv::{Scratch, finish};
use crate::progress::Progress;
use crate::report::Report;
use crate::sql::plan::{Configuration, SqlOptions, measurable, missing, together};
use crate::sql::{SqlEngine, SqlInstance, SqlSetup, engines};
use crate::statistics::Latencies;
use presets::{Experiment, Preset, experiments};
use subscribers::SubscriberContent;
use worker::{Mix, TptbmWorker};

/// Options of `bench tptbm`, with the report's names and defaults.
#[derive(Clone, Debug, Args)]
pub struct TptbmArgs {
    /// The report's experiments instead of one run: insert, queries, threads, mixed, multiop,
    /// example, report
    #[arg(long, value_delimiter = ',', value_name = "LIST", conflicts_with_all = ["build", "nobuild", "url"])]
    pub preset: Vec<Preset>,
    /// Where the database is: a directory, or for a server its connection string; its table
    /// vpn_users is created again [default: a new one, removed afterwards]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Concurrent threads
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = parse_positive)]
    pub threads: usize,
    /// Percent of operations that read
    #[arg(long, default_value_t = 80, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub reads: u8,
    /// Percent of operations that insert
    #[arg(long, default_value_t = 0, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub inserts: u8,
    /// Percent of operations that delete; what is left updates
    #[arg(long, default_value_t = 0, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    pub deletes: u8,
    /// Records (squared) in the table at the beginning [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=9999))]
    pub key: Option<u32>,
    /// Transactions of each thread
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub xacts: u64,
    /// Least operations of a transaction; how many is chosen at random
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub min: u32,
    /// Most operations of a transaction
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub max: u32,
    /// One insertion, three reads and one update in each transaction
    #[arg(long)]
    pub multiop: bool,
    /// For client and server: close cursors at commit with no message of their own
    #[arg(long = "CSCommit")]
    pub cs_commit: bool,
    /// Commit transactions that only read as well; without it they are not committed
    #[arg(long = "commitReads")]
    pub commit_reads: bool,
    /// A range index rather than a hash index
    #[arg(long)]
    pub range: bool,
    /// A stored procedure for --multiop
    #[arg(long, requires = "multiop")]
    pub plsql: bool,
    /// Say every statement on standard error
    #[arg(long)]
    pub trace: bool,
    /// Build the database at --url and do no more
    #[arg(long, requires = "url", conflicts_with = "nobuild")]
    pub build: bool,
    /// Use the table at --url as it is; rows inserted and deleted by a run are undone after it
    #[arg(long, requires = "url")]
    pub nobuild: bool,
    /// Longest time of an experiment that inserts: slow engines get as many rows as they manage
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    pub patience: u64,
    /// What all SQL benchmarks have
    #[command(flatten)]
    pub options: SqlOptions,
}

impl TptbmArgs {
    fn repetitions(&self) -> u32 {
        self.options.reps.unwrap_or(match (self.preset.is_empty(), self.options.full) {
            (true, _) => 1,
            (false, false) => 3,
            (false, true) => 20,
        })
    }

    fn experiments(&self) -> Result<Vec<Experiment>> {
        if !self.preset.is_empty() {
            let all = |&preset| experiments(preset, self.key, self.threads, self.xacts);
            let mut list: Vec<Experiment> = self.preset.iter().flat_map(all).collect();
            for mix in list.iter_mut().filter_map(|experiment| experiment.mix.as_mut()) {
                mix.commit_reads = self.commit_reads;
                mix.procedure = self.plsql && mix.multiop;
            }
            return Ok(list);
        }
        let mut mix = Mix {
            reads: self.reads,
            inserts: self.inserts,
            deletes: self.deletes,
            min: self.min,
            max: self.max,
            multiop: self.multiop,
            procedure: self.plsql,
            commit_reads: self.commit_reads,
            transactions: self.xacts,
        };
        if self.multiop {
            (mix.reads, mix.inserts, mix.deletes, mix.min, mix.max) = (60, 20, 0, 5, 5);
        }
        mix.validate()?;
        let key = self.key.unwrap_or(100);
        let name = match (self.build, self.multiop) {
            (true, _) => format!("insert {} rows", u64::from(key).pow(2)),
            (_, true) => "multiop".to_owned(),
            _ => format!(
                "{}/{}/{}/{}, {} to {} operations a transaction",
                mix.inserts,
                mix.deletes,
                mix.updates(),
                mix.reads,
                mix.min,
                mix.max
            ),
        };
        let mix = (!self.build).then_some(mix);
        let threads = if self.build { 1 } else { self.threads };
        Ok(vec![Experiment { name, key, threads, mix }])
    }

    /// The engines that can be measured. What is in memory does not stay at --url, nor is anything
    /// found there.
    fn measurable(
        &self,
        engines: &[&'static dyn SqlEngine],
        mode: Mode,
        threads: usize,
        report: &mut Report,
    ) -> Vec<Configuration> {
        if mode == Mode::InMem && (self.build || self.nobuild) {
            let option = if self.build { "--build" } else { "--nobuild" };
            let reason = format!("a database in memory is not at --url: run without {option}");
            let missing = engines.iter().map(|e| missing(*e, mode.name(), threads, reason.clone()));
            report.not_supported.extend(missing);
            return Vec::new();
        }
        measurable(engines, mode, threads, report)
    }

    /// The workload in words.
    pub fn describe(&self) -> String {
        let index = if self.range { "range" } else { "hash (range where an engine has none)" };
        format!(
            "Tptbm: {} transactions a thread, {index} index, {} MiB cache, {} repetitions",
            self.xacts,
            self.options.cache >> 20,
            self.repetitions()
        )
    }
}

/// Runs the command and writes its report.
pub fn run(args: &TptbmArgs) -> Result<()> {
    let mut report = args.options.report(args.describe())?;
    measure(args, &mut report)?;
    finish(&report, &args.options.outputs, "tptbm")
}

/// Runs every experiment on every engine, interleaved, and adds the results to the report.
pub fn measure(args: &TptbmArgs, report: &mut Report) -> Result<()> {
    let engines = args.options.engines_of(engines::all_ways(), report)?;
    ensure!(
        args.url.is_none() || engines.len() == 1,
        "--url names one database: name its engine in --engines"
    );
    if args.cs_commit {
        for &engine in &engines {
            let reason = "no connection here has this option: run without it";
            report.not_supported.push(missing(engine, "--CSCommit", 0, reason));
        }
    }
    let default: &[Mode] = match args.options.full {
        true => &[Mode::Sync, Mode::Wns, Mode::Ns, Mode::InMem],
        false => &[Mode::Wns, Mode::Ns, Mode::InMem],
    };
    let mut plan = Vec::new();
    for mode in args.options.modes_or(default) {
        for experiment in args.experiments()? {
            let configurations = args.measurable(&engines, mode, experiment.threads, report);
            plan.push((experiment, configurations));
        }
    }
    let runs: usize = plan.iter().map(|(_, configurations)| configurations.len()).sum();
    let progress = Progress::new(runs as u64 * u64::from(args.repetitions()));
    for (experiment, configurations) in plan {
        let mut samples: Vec<Vec<TptbmOutcome>> =
            configurations.iter().map(|_| Vec::new()).collect();
        for repetition in 0..args.repetitions() {
            for (configuration, samples) in configurations.iter().zip(&mut samples) {
                let label = configuration.label(&experiment.name, repetition);
                progress.message(&label);
                let trial = TptbmTrial { args, experiment: &experiment, configuration, repetition };
                let outcome = trial.run();
                progress.done(&label, outcome.as_ref().map(TptbmOutcome::summary));
                match outcome {
                    Ok(Some(outcome)) => samples.push(outcome),
                    Ok(None) => {
                        let reason = "stored procedures are written for PostgreSQL alone";
                        let missing = missing(configuration.engine, &experiment.name, 0, reason);
                        report.not_supported.push(missing);
                    }
                    Err(error) => {
                        report.failures.push(configuration.failure(&experiment.name, &error));
                    }
                }
            }
        }
        for (configuration, samples) in configurations.iter().zip(samples) {
            add_result(&experiment, configuration, samples, report)?;
        }
    }
    progress.finish();
    Ok(())
}

/// What one run measured. It has been verified, or it would have been an error.
struct TptbmOutcome {
    settings: String,
    elapsed: Duration,
    transactions: u64,
    rows: u64,
    latencies: Latencies,
    retries: u64,
}

impl TptbmOutcome {
    fn rate(&self) -> f64 {
        self.transactions as f64 / self.elapsed.as_secs_f64()
    }

    fn summary(outcome: &Option<TptbmOutcome>) -> String {
        match outcome {
            Some(outcome) => format!("{:.0} transactions a second", outcome.rate()),
            None => "not supported".to_owned(),
        }
    }
}

fn add_result(
    experiment: &Experiment,
    configuration: &Configuration,
    samples: Vec<TptbmOutcome>,
    report: &mut Report,
) -> Result<()> {
    let mut latencies = Latencies::default();
    samples.iter().for_each(|outcome| latencies.merge(&outcome.latencies));
    let Some(last) = samples.last() else { return Ok(()) };
    let mut result = configuration
        .blank("tptbm", &experiment.name, "tps")?
        .with_runs(samples.iter().map(TptbmOutcome::rate).collect());
    if experiment.mix.is_some() {
        result = result.with_latencies(&latencies);
    }
    result.ops_per_txn = experiment.mix.as_ref().map_or(1, |mix| mix.max as usize);
    result.records = last.rows;
    result.retries = samples.iter().map(|outcome| outcome.retries).sum();
    result.settings = last.settings.clone();
    report.results.push(result);
    Ok(())
}

/// One run of one experiment on one engine.
struct TptbmTrial<'a> {
    args: &'a TptbmArgs,
    experiment: &'a Experiment,
    configuration: &'a Configuration,
    repetition: u32,
}

impl TptbmTrial<'_> {
    /// Runs it; nothing when the engine cannot.
    fn run(&self) -> Result<Option<TptbmOutcome>> {
        let options = &self.args.options;
        let name = self.configuration.engine.name();
        let scratch = match &self.args.url {
            Some(_) => None,
            None => Some(Scratch::new(&options.places, self.configuration.mode, name)?),
        };
        let directory = match (&scratch, &self.args.url) {
            (Some(scratch), _) => scratch.path().to_owned(),
            (None, url) => PathBuf::from(url.as_deref().unwrap_or_default()),
        };
        let rows = u64::from(self.experiment.key).pow(2);
        let mut setup = self.configuration.setup(options, &directory, rows);
        setup.url = self.args.url.clone();
        self.say(&format!("Connected to database ({name}, {})", setup.mode));
        let instance = self.open(&setup)?;
        let procedure = self.experiment.mix.as_ref().is_some_and(|mix| mix.procedure);
        if procedure && !instance.dialect().procedures {
            instance.close()?;
            return Ok(None);
        }
        let mut content =
            SubscriberContent { key: self.experiment.key, ..SubscriberContent::default() };
        let populated = self.populate(&*instance, &mut content)?;
        let mut outcome = match &self.experiment.mix {
            Some(mix) => self.transactions(&*instance, mix, &mut content)?,
            None => populated,
        };
        outcome.rows = content.first.unwrap_or(rows);
        outcome.settings = format!("{}; {}", instance.settings(), self.index(&*instance));
        let mut connection = instance.connect()?;
        match self.args.nobuild {
            true => content.restore(&mut *connection).context("undo inserts and deletes")?,
            false => content.verify(&mut *connection).context("verify")?,
        }
        drop(connection);
        instance.close().context("close")?;
        Ok(Some(outcome))
    }

    /// Speaks as the report's program does, where there is one run as it does.
    fn say(&self, text: &str) {
        if self.args.preset.is_empty() {
            println!("{text}");
        }
    }

    fn open(&self, setup: &SqlSetup) -> Result<Box<dyn SqlInstance>> {
        let remote = self.args.url.as_deref().is_some_and(|url| url.contains("://"));
        if !remote {
            std::fs::create_dir_all(&setup.directory)
                .with_context(|| setup.directory.display().to_string())?;
        }
        self.configuration.engine.open(setup)
    }

    fn index(&self, instance: &dyn SqlInstance) -> &'static str {
        match (self.args.range, instance.dialect().hash_key) {
            (false, Some(_)) => "hash index",
            (false, None) => "range index, as it has no hash index for a primary key",
            (true, _) => "range index",
        }
    }

    /// Makes and fills the table. Where that is the experiment it is done row by row, else in the
    /// fastest way.
    fn populate(
        &self,
        instance: &dyn SqlInstance,
        content: &mut SubscriberContent,
    ) -> Result<TptbmOutcome> {
        let mut connection = instance.connect()?;
        let mut outcome = TptbmOutcome {
            settings: String::new(),
            elapsed: Duration::ZERO,
            transactions: 0,
            rows: 0,
            latencies: Latencies::default(),
            retries: 0,
        };
        if self.args.nobuild {
            content.check_there(&mut *connection)?;
            return Ok(outcome);
        }
        if self.args.url.is_some() {
            connection.run("DROP TABLE IF EXISTS vpn_users")?;
        }
        let index = match self.args.range {
            false => instance.dialect().hash_key.unwrap_or_default(),
            true => "",
        };
        let definition = subscribers::definition(index, instance.dialect().keyed_table);
        connection.run(&definition)?;
        if self.experiment.mix.as_ref().is_some_and(|mix| mix.procedure) {
            connection.run(subscribers::PROCEDURE)?;
        }
        self.say("Populating benchmark database ...");
        let begin = Instant::now();
        let rows = u64::from(self.experiment.key).pow(2);
        match self.experiment.mix {
            None => {
                let patience = Duration::from_secs(self.args.patience);
                let enough = || begin.elapsed() >= patience;
                outcome.transactions =
                    subscribers::populate(&mut *connection, self.experiment.key, enough)?;
                content.first = Some(outcome.transactions);
            }
            Some(_) => {
                subscribers::load(&mut *connection, self.experiment.key)?;
                outcome.transactions = rows;
            }
        }
        outcome.elapsed = begin.elapsed();
        self.say(&format!(
            "Database populated with {} rows in {} ms ({:.0} TPS)",
            outcome.transactions,
            outcome.elapsed.as_millis(),
            outcome.rate()
        ));
        drop(connection);
        instance.settle()?;
        Ok(outcome)
    }

    fn transactions(
        &self,
        instance: &dyn SqlInstance,
        mix: &Mix,
        content: &mut SubscriberContent,
    ) -> Result<TptbmOutcome> {
        let threads = self.experiment.threads;
        self.say(&format!(
            "Begining execution with {threads} thread(s): {}% read, {}% update, {}% insert, {}% delete",
            mix.reads,
            mix.updates(),
            mix.inserts,
            mix.deletes
        ));
        let seed = self.args.options.seed ^ crate::workload::random::mix(self.repetition.into());
        let outcomes = together(threads, |thread, start| {
            let key = self.experiment.key;
            let worker = TptbmWorker { mix, key, thread, threads, seed, trace: self.args.trace };
            worker.run(instance, start)
        })?;
        let mut total = TptbmOutcome {
            settings: String::new(),
            elapsed: Duration::ZERO,
            transactions: mix.transactions * threads as u64,
            rows: 0,
            latencies: Latencies::default(),
            retries: 0,
        };
        for outcome in outcomes {
            total.elapsed = total.elapsed.max(outcome.elapsed);
            total.latencies.merge(&outcome.latencies);
            total.retries += outcome.retries;
            outcome.changes.into_iter().for_each(|change| content.note(change));
        }
        self.say(&format!("Elapsed Time:      {:>12} ms", total.elapsed.as_millis()));
        self.say(&format!("Transactions Per Sec: {:>9.0}", total.rate()));
        let percentile = |percent| total.latencies.percentile_us(percent);
        self.say(&format!(
            "Transaction: p50 {:.1} µs, p95 {:.1} µs, p99 {:.1} µs, p99.9 {:.1} µs, max {:.1} µs",
            percentile(50.0),
            percentile(95.0),
            percentile(99.0),
            percentile(99.9),
            total.latencies.max_us()
        ));
        Ok(total)
    }
}
