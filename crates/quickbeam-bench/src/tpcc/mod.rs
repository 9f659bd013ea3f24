//! `bench tpcc`: a TPC-C-like load, in process and by client and server. It is no TPC result:
//! terminals do not think, and the rules of the specification's reports are not followed.

pub mod check;
pub mod data;
pub mod inputs;
pub mod terminal;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;

use crate::args::parse_threads;
use crate::engine::Mode;
use crate::kv::{Scratch, finish};
use crate::progress::Progress;
use crate::report::{Measurement, Report};
use crate::sql::plan::{Configuration, SqlOptions, Start, measurable, together};
use crate::sql::{SqlInstance, engines};
use crate::statistics::Latencies;
use crate::workload::random::mix;
use data::TpccSizes;
use inputs::{HEADLINE, NAMES, TpccDraw};
use terminal::{Terminal, TpccDone};

/// The engines that run unless others are named.
const ENGINES: [&str; 4] = ["quickbeam", "quickbeam-server", "sqlite", "postgresql"];

/// Options of `bench tpcc`.
#[derive(Clone, Debug, Args)]
pub struct TpccArgs {
    /// Numbers of terminals [default: 1,4]
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = parse_threads)]
    pub terminals: Vec<usize>,
    /// Warehouses [default: 2, with --full 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub warehouses: Option<u32>,
    /// Items [default: 10000, with --full 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=100_000))]
    pub items: Option<u32>,
    /// Customers of each district [default: 300, with --full 3000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=3000))]
    pub customers: Option<u32>,
    /// Seconds of one run [default: 2, with --full 30]
    #[arg(long, value_name = "N")]
    pub seconds: Option<f64>,
    /// Transactions of each terminal, instead of a time
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: Option<u64>,
    /// What all SQL benchmarks have
    #[command(flatten)]
    pub options: SqlOptions,
}

/// When a terminal stops.
#[derive(Clone, Copy, Debug)]
enum TpccLimit {
    Time(Duration),
    Count(u64),
}

/// Transactions before the timer starts.
const WARM_UP: TpccLimit = TpccLimit::Count(100);

impl TpccArgs {
    fn repetitions(&self) -> u32 {
        self.options.reps.unwrap_or(if self.options.full { 5 } else { 3 })
    }

    fn terminals(&self) -> &[usize] {
        if self.terminals.is_empty() { &[1, 4] } else { &self.terminals }
    }

    fn sizes(&self) -> TpccSizes {
        let full = self.options.full;
        let whole = TpccSizes::full(self.warehouses.unwrap_or(if full { 4 } else { 2 }));
        TpccSizes {
            warehouses: whole.warehouses,
            items: self.items.unwrap_or(if full { whole.items } else { 10_000 }),
            customers: self.customers.unwrap_or(if full { whole.customers } else { 300 }),
        }
    }

    fn limit(&self) -> TpccLimit {
        let seconds = self.seconds.unwrap_or(if self.options.full { 30.0 } else { 2.0 });
        match self.transactions {
            Some(count) => TpccLimit::Count(count),
            None => TpccLimit::Time(Duration::from_secs_f64(seconds.clamp(0.001, 86_400.0))),
        }
    }

    /// The workload in words.
    pub fn describe(&self) -> String {
        let TpccSizes { warehouses, items, customers } = self.sizes();
        let limit = match self.limit() {
            TpccLimit::Time(time) => format!("{} s", time.as_secs_f64()),
            TpccLimit::Count(count) => format!("{count} transactions a terminal"),
        };
        format!(
            "TPC-C-like: {warehouses} warehouses, {items} items, {customers} customers a district, \
             {} MiB cache, {limit}, {} repetitions",
            self.options.cache >> 20,
            self.repetitions()
        )
    }
}

/// Runs the command and writes its report.
pub fn run(args: &TpccArgs) -> Result<()> {
    let mut report = args.options.report(args.describe())?;
    measure(args, &mut report)?;
    finish(&report, &args.options.outputs, "tpcc")
}

/// Runs every configuration on every engine, interleaved, and adds the results to the report.
pub fn measure(args: &TpccArgs, report: &mut Report) -> Result<()> {
    let all = engines::all_ways().into_iter();
    let usual = all.filter(|engine| ENGINES.contains(&engine.name())).collect();
    let engines = args.options.engines_of(usual, report)?;
    let mut plan = Vec::new();
    for mode in args.options.modes_or(&[Mode::Sync, Mode::Ns]) {
        for &terminals in args.terminals() {
            plan.push(measurable(&engines, mode, terminals, report));
        }
    }
    let runs: usize = plan.iter().map(Vec::len).sum();
    let progress = Progress::new(runs as u64 * u64::from(args.repetitions()));
    for configurations in plan {
        let mut samples: Vec<Vec<TpccOutcome>> =
            configurations.iter().map(|_| Vec::new()).collect();
        for repetition in 0..args.repetitions() {
            for (configuration, samples) in configurations.iter().zip(&mut samples) {
                let label = configuration.label("tpcc", repetition);
                progress.message(&label);
                let outcome = trial(args, configuration, repetition);
                progress.done(&label, outcome.as_ref().map(TpccOutcome::summary));
                match outcome {
                    Ok(outcome) => samples.push(outcome),
                    Err(error) => report.failures.push(configuration.failure("tpcc", &error)),
                }
            }
        }
        for (configuration, samples) in configurations.iter().zip(samples) {
            report.results.extend(results(args, configuration, &samples)?);
        }
    }
    progress.finish();
    Ok(())
}

/// What one run measured. Its tables were consistent, or it would have been an error.
struct TpccOutcome {
    settings: String,
    seconds: f64,
    done: TpccDone,
    latencies: [Latencies; NAMES.len()],
    counts: [u64; NAMES.len()],
}

impl TpccOutcome {
    fn summary(&self) -> String {
        let (rate, retries) = (self.orders_a_minute(), self.done.retries);
        format!("{rate:.0} new orders a minute, {retries} retries")
    }

    fn orders_a_minute(&self) -> f64 {
        self.done.orders as f64 * 60.0 / self.seconds
    }
}

/// The headline, and a result for each kind of transaction.
fn results(
    args: &TpccArgs,
    configuration: &Configuration,
    samples: &[TpccOutcome],
) -> Result<Vec<Measurement>> {
    let Some(last) = samples.last() else { return Ok(Vec::new()) };
    let mut blank = configuration.blank("tpcc", HEADLINE, "tpm")?;
    blank.settings = last.settings.clone();
    blank.records = args.sizes().warehouses.into();
    let rates = samples.iter().map(TpccOutcome::orders_a_minute).collect();
    let mut headline = blank.clone().with_runs(rates);
    headline.retries = samples.iter().map(|outcome| outcome.done.retries).sum();
    let mut results = vec![headline];
    for (kind, name) in NAMES.into_iter().enumerate() {
        let mut latencies = Latencies::default();
        samples.iter().for_each(|outcome| latencies.merge(&outcome.latencies[kind]));
        let rate = |outcome: &TpccOutcome| outcome.counts[kind] as f64 / outcome.seconds;
        let mut result = blank.clone();
        (result.step, result.unit) = (name.to_owned(), "tps".to_owned());
        let result = result.with_runs(samples.iter().map(rate).collect());
        results.push(result.with_latencies(&latencies));
    }
    Ok(results)
}

fn trial(args: &TpccArgs, configuration: &Configuration, repetition: u32) -> Result<TpccOutcome> {
    let options = &args.options;
    let sizes = args.sizes();
    let scratch = Scratch::new(&options.places, configuration.mode, configuration.engine.name())?;
    let rows = u64::from(sizes.warehouses) * u64::from(sizes.customers) * 100;
    let setup = configuration.setup(options, scratch.path(), rows);
    let instance = configuration.engine.open(&setup)?;
    let mut connection = instance.connect()?;
    let keyed_table = instance.dialect().keyed_table;
    sizes.build(&mut *connection, keyed_table, options.seed).context("build")?;
    drop(connection);
    instance.settle()?;
    let seed = |thread: usize, part: u64| {
        mix(options.seed ^ mix(u64::from(repetition)) ^ mix(thread as u64 + 1) ^ part)
    };
    let mut done = TpccDone::default();
    let warm = together(1, |thread, start| {
        terminal_run(&*instance, TpccDraw::new(sizes, 1, seed(thread, 1)), WARM_UP, start)
    })?;
    warm.iter().for_each(|outcome| done.merge(outcome.done));
    let terminals = together(configuration.threads, |thread, start| {
        let warehouse = thread as i32 % sizes.warehouses as i32 + 1;
        let draw = TpccDraw::new(sizes, warehouse, seed(thread, 2));
        terminal_run(&*instance, draw, args.limit(), start)
    })?;
    let mut total = TpccOutcome { settings: instance.settings(), ..TpccOutcome::empty() };
    for outcome in terminals {
        total.seconds = total.seconds.max(outcome.seconds);
        total.done.merge(outcome.done);
        for kind in 0..NAMES.len() {
            total.latencies[kind].merge(&outcome.latencies[kind]);
            total.counts[kind] += outcome.counts[kind];
        }
    }
    done.merge(total.done);
    check::verify(sizes, &mut *instance.connect()?, done).context("verify")?;
    instance.close().context("close")?;
    Ok(total)
}

impl TpccOutcome {
    fn empty() -> TpccOutcome {
        TpccOutcome {
            settings: String::new(),
            seconds: 0.0,
            done: TpccDone::default(),
            latencies: std::array::from_fn(|_| Latencies::default()),
            counts: [0; NAMES.len()],
        }
    }
}

/// Connects, waits until every terminal has, and runs transactions up to the limit.
fn terminal_run(
    instance: &dyn SqlInstance,
    mut draw: TpccDraw,
    limit: TpccLimit,
    start: &Start,
) -> Result<TpccOutcome> {
    let terminal = Terminal::connect(instance);
    // Waited for even after an error: the other threads would wait for ever.
    let begin = start.wait();
    let mut terminal = terminal?;
    let mut outcome = TpccOutcome::empty();
    let mut last = begin;
    loop {
        let (kind, inputs) = draw.draw_transaction();
        outcome.done.merge(terminal.run(&inputs).with_context(|| format!("{inputs:?}"))?);
        let now = Instant::now();
        outcome.latencies[kind].record(now - last);
        outcome.counts[kind] += 1;
        last = now;
        let is_enough = match limit {
            TpccLimit::Time(time) => now - begin >= time,
            TpccLimit::Count(count) => outcome.counts.iter().sum::<u64>() >= count,
        };
        if is_enough {
            outcome.seconds = (now - begin).as_secs_f64();
            return Ok(outcome);
        }
    }
}
