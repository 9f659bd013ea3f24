//! `bench tpcb`: Table 6 and Figure 2 of the white paper, a TPC-B-like load.

pub mod data;
pub mod worker;

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::args::parse_threads;
use crate::engine::Mode;
use crate::kv::{Scratch, finish};
use crate::logwrite::{self, Flush, Growth, Variant};
use crate::progress::Progress;
use crate::report::{Measurement, Report};
use crate::sql::plan::{Configuration, SqlOptions, measurable, together};
use crate::sql::{SqlInstance, SqlSetup, engines};
use crate::statistics::{Latencies, Summary};
use crate::workload::random::mix;
use data::{Bank, Tally};
use worker::Limit;

/// Options of `bench tpcb`.
#[derive(Clone, Debug, Args)]
pub struct TpcbArgs {
    /// Numbers of threads [default: 1,4,10, with --full 1,2,3,4,5,10]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = parse_threads)]
    pub threads: Vec<usize>,
    /// Seconds of one run [default: 1, with --full 10]
    #[arg(long, value_name = "N")]
    pub seconds: Option<f64>,
    /// Transactions of each thread, instead of a time
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: Option<u64>,
    /// Branches
    #[arg(long, default_value_t = Bank::PAPERS.branches, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub branches: u32,
    /// Tellers of each branch
    #[arg(long, default_value_t = Bank::PAPERS.tellers, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub tellers: u32,
    /// Accounts of each branch
    #[arg(long, default_value_t = Bank::PAPERS.accounts, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub accounts: u32,
    /// What all SQL benchmarks have
    #[command(flatten)]
    pub options: SqlOptions,
}

/// Transactions before the timer starts: statements are planned, connections are warm.
const WARM_UP: Limit = Limit::Time(Duration::from_millis(100));

/// What the ceiling of durable commits is measured with: about what the rows of a transaction
/// take in a log.
const LOG_BYTES: usize = 512;
const LOG_WRITES: u64 = 1000;

impl TpcbArgs {
    /// How often each configuration is run.
    fn repetitions(&self) -> u32 {
        self.options.reps.unwrap_or(if self.options.full { 5 } else { 3 })
    }

    fn threads(&self) -> &[usize] {
        match (self.threads.is_empty(), self.options.full) {
            (false, _) => &self.threads,
            (true, true) => &[1, 2, 3, 4, 5, 10],
            (true, false) => &[1, 4, 10],
        }
    }

    fn bank(&self) -> Bank {
        Bank { branches: self.branches, tellers: self.tellers, accounts: self.accounts }
    }

    fn limit(&self) -> Limit {
        let seconds = self.seconds.unwrap_or(if self.options.full { 10.0 } else { 1.0 });
        match self.transactions {
            Some(count) => Limit::Count(count),
            None => Limit::Time(Duration::from_secs_f64(seconds.clamp(0.001, 86_400.0))),
        }
    }

    /// The workload in words.
    pub fn describe(&self) -> String {
        let bank = self.bank();
        let limit = match self.limit() {
            Limit::Time(time) => format!("{} s", time.as_secs_f64()),
            Limit::Count(count) => format!("{count} transactions a thread"),
        };
        format!(
            "TPC-B: {} branches, {} tellers, {} accounts, {} MiB cache, {limit}, {} repetitions",
            bank.branches,
            bank.branches * bank.tellers,
            bank.all_accounts(),
            self.options.cache >> 20,
            self.repetitions()
        )
    }
}

/// Runs the command and writes its report.
pub fn run(args: &TpcbArgs) -> Result<()> {
    let mut report = args.options.report(args.describe())?;
    measure(args, &mut report)?;
    finish(&report, &args.options.outputs, "tpcb")
}

/// Runs every configuration on every engine, interleaved, and adds the results to the report.
pub fn measure(args: &TpcbArgs, report: &mut Report) -> Result<()> {
    let engines = args.options.engines_of(engines::all_ways(), report)?;
    let mut plan = Vec::new();
    for mode in args.options.modes_or(&[Mode::Sync, Mode::Wns, Mode::Ns, Mode::InMem]) {
        for &threads in args.threads() {
            plan.push(measurable(&engines, mode, threads, report));
        }
    }
    let runs: usize = plan.iter().map(Vec::len).sum();
    let progress = Progress::new(runs as u64 * u64::from(args.repetitions()));
    for configurations in plan {
        let mut samples: Vec<TpcbSamples> =
            configurations.iter().map(|_| TpcbSamples::default()).collect();
        for repetition in 0..args.repetitions() {
            for (configuration, samples) in configurations.iter().zip(&mut samples) {
                let label = configuration.label("tpcb", repetition);
                progress.message(&label);
                let outcome = trial(args, configuration, repetition);
                progress.done(&label, outcome.as_ref().map(TpcbOutcome::summary));
                match outcome {
                    Ok(outcome) => samples.add(outcome),
                    Err(error) => report.failures.push(configuration.failure("tpcb", &error)),
                }
            }
        }
        for (configuration, samples) in configurations.iter().zip(samples) {
            if !samples.rates.is_empty() {
                report.results.push(samples.result(args, configuration)?);
            }
        }
    }
    progress.finish();
    Ok(())
}

/// What one run measured. It has been verified, or it would have been an error.
struct TpcbOutcome {
    settings: String,
    rate: f64,
    latencies: Latencies,
    retries: u64,
    ceiling_share: Option<f64>,
}

impl TpcbOutcome {
    fn summary(&self) -> String {
        let p90 = self.latencies.percentile_us(90.0);
        format!("{:.0} transactions a second, 90 % within {p90:.0} µs", self.rate)
    }
}

/// The repetitions of one configuration.
#[derive(Default)]
struct TpcbSamples {
    rates: Vec<f64>,
    latencies: Latencies,
    retries: u64,
    shares: Vec<f64>,
    settings: String,
}

impl TpcbSamples {
    fn add(&mut self, outcome: TpcbOutcome) {
        self.rates.push(outcome.rate);
        self.latencies.merge(&outcome.latencies);
        self.retries += outcome.retries;
        self.shares.extend(outcome.ceiling_share);
        self.settings = outcome.settings;
    }

    fn result(self, args: &TpcbArgs, configuration: &Configuration) -> Result<Measurement> {
        let mut result = configuration
            .blank("tpcb", "transaction", "tps")?
            .with_runs(self.rates)
            .with_latencies(&self.latencies)
            .with_distribution(&self.latencies);
        result.ops_per_txn = 5;
        result.records = args.bank().all_accounts().into();
        result.retries = self.retries;
        result.settings = self.settings;
        if !self.shares.is_empty() {
            result.ceiling_share = Some(Summary::of(&self.shares).median);
        }
        Ok(result)
    }
}

fn trial(args: &TpcbArgs, configuration: &Configuration, repetition: u32) -> Result<TpcbOutcome> {
    let options = &args.options;
    let bank = args.bank();
    let scratch = Scratch::new(&options.places, configuration.mode, configuration.engine.name())?;
    let setup = configuration.setup(options, scratch.path(), bank.all_accounts().into());
    let ceiling = match (configuration.mode, configuration.threads) {
        (Mode::Sync, 1) => Some(ceiling(scratch.path())?),
        _ => None,
    };
    let instance = build(configuration, &setup, &bank).context("build")?;
    let seed = |thread: usize, part: u64| {
        mix(options.seed ^ mix(u64::from(repetition)) ^ mix(thread as u64 + 1) ^ part)
    };
    let mut tally = Tally::default();
    let warm = together(1, |thread, start| {
        worker::run(&*instance, &bank, WARM_UP, seed(thread, 1), start)
    })?;
    warm.iter().for_each(|outcome| tally.merge(outcome.tally));
    let outcomes = together(configuration.threads, |thread, start| {
        worker::run(&*instance, &bank, args.limit(), seed(thread, 2), start)
    })?;
    let mut total = TpcbOutcome {
        settings: instance.settings(),
        rate: 0.0,
        latencies: Latencies::default(),
        retries: 0,
        ceiling_share: None,
    };
    for outcome in outcomes {
        tally.merge(outcome.tally);
        total.rate += outcome.tally.count as f64 / outcome.elapsed.as_secs_f64();
        total.latencies.merge(&outcome.latencies);
        total.retries += outcome.retries;
    }
    bank.verify(&mut *instance.connect()?, tally).context("verify")?;
    instance.close().context("close")?;
    total.ceiling_share = ceiling.map(|ceiling| total.rate / ceiling);
    Ok(total)
}

/// Opens a database and fills it.
fn build(
    configuration: &Configuration,
    setup: &SqlSetup,
    bank: &Bank,
) -> Result<Box<dyn SqlInstance>> {
    let instance = configuration.engine.open(setup)?;
    let mut connection = instance.connect()?;
    for definition in data::TABLES {
        connection.run(definition)?;
    }
    bank.load(&mut *connection)?;
    drop(connection);
    instance.settle()?;
    Ok(instance)
}

/// Flushes a second, measured right before a run that waits for each.
fn ceiling(directory: &std::path::Path) -> Result<f64> {
    let variant = Variant { growth: Growth::Preallocated, flush: Flush::Fdatasync };
    Ok(logwrite::run(directory, variant, LOG_BYTES, LOG_WRITES)?.ops_per_second)
}
