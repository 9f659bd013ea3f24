//! What the SQL benchmarks have in common: options, the choice of engines, threads that start
//! together, and results without their numbers.

use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;

use super::{SqlEngine, SqlSetup, engines};
use crate::args::{Places, parse_size};
use crate::engine::{Mode, Support};
use crate::machine::Machine;
use crate::progress::Progress;
use crate::report::{Failure, Measurement, NotSupported, Outputs, Report, Run};
use crate::statistics::Latencies;

/// Options that all SQL benchmarks have.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("json", |json| json.short('o')))]
pub struct SqlOptions {
    /// Engines to run [default: all that can be had]
    #[arg(long, visible_alias = "dbms", value_delimiter = ',', value_name = "LIST")]
    pub engines: Vec<String>,
    /// Durability classes: sync, ramdisk, wns, ns, inmem
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub modes: Vec<Mode>,
    /// The paper's size
    #[arg(long)]
    pub full: bool,
    /// Repetitions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub reps: Option<u32>,
    /// Cache size
    #[arg(long, default_value = "256M", value_name = "SIZE", value_parser = parse_size)]
    pub cache: u64,
    /// Seed of every random order
    #[arg(long, default_value_t = 20_100_701, value_name = "N")]
    pub seed: u64,
    /// Directories
    #[command(flatten)]
    pub places: Places,
    /// Report files
    #[command(flatten)]
    pub outputs: Outputs,
}

impl SqlOptions {
    /// The durability classes asked for, or these.
    pub fn modes_or(&self, default: &[Mode]) -> Vec<Mode> {
        if self.modes.is_empty() { default.to_vec() } else { self.modes.clone() }
    }

    /// An empty report that describes the machine.
    pub fn report(&self, workload: String) -> Result<Report> {
        std::fs::create_dir_all(&self.places.dir)
            .with_context(|| format!("directory {}", self.places.dir.display()))?;
        let machine = Machine::describe(&self.places.dir, Machine::FLUSHES)?;
        Ok(Report::new(machine, Run::now(self.seed, workload)))
    }

    /// The engines asked for, all of which must be there; or every engine that is there.
    pub fn engines(&self, report: &mut Report) -> Result<Vec<&'static dyn SqlEngine>> {
        self.engines_of(engines::all(), report)
    }

    /// The engines asked for, all of which must be there; or those of `usual` that are there.
    pub fn engines_of(
        &self,
        usual: Vec<&'static dyn SqlEngine>,
        report: &mut Report,
    ) -> Result<Vec<&'static dyn SqlEngine>> {
        if !self.engines.is_empty() {
            let engines: Result<Vec<_>> =
                self.engines.iter().map(|name| engines::find(name)).collect();
            for engine in engines.as_ref().map_or(&[][..], Vec::as_slice) {
                engine.version().with_context(|| engine.name())?;
            }
            return engines;
        }
        let mut found = Vec::new();
        for engine in usual {
            match engine.version() {
                Ok(_) => found.push(engine),
                Err(error) => {
                    let reason = format!("{error:#}");
                    report.not_supported.push(missing(engine, "every mode", 0, reason));
                }
            }
        }
        Ok(found)
    }
}

/// An engine that lacks something, for the report.
pub fn missing(
    engine: &dyn SqlEngine,
    mode: &str,
    threads: usize,
    reason: impl Into<String>,
) -> NotSupported {
    let (engine, mode) = (engine.name().to_owned(), mode.to_owned());
    NotSupported { engine, mode, threads, reason: reason.into() }
}

/// One engine in one configuration.
#[derive(Clone, Copy)]
pub struct Configuration {
    /// The engine.
    pub engine: &'static dyn SqlEngine,
    /// Durability class.
    pub mode: Mode,
    /// Connections at work.
    pub threads: usize,
}

/// The engines that can be measured in a configuration; the others go into the report.
pub fn measurable(
    engines: &[&'static dyn SqlEngine],
    mode: Mode,
    threads: usize,
    report: &mut Report,
) -> Vec<Configuration> {
    let mut kept = Vec::new();
    for &engine in engines {
        match engine.supports(mode, threads) {
            Support::Yes => kept.push(Configuration { engine, mode, threads }),
            Support::No(reason) => {
                report.not_supported.push(missing(engine, mode.name(), threads, reason));
            }
        }
    }
    kept
}

impl Configuration {
    /// In the words of the progress display.
    pub fn label(&self, what: &str, repetition: u32) -> String {
        let s = if self.threads == 1 { "" } else { "s" };
        format!(
            "{what}: {} {} {} thread{s}, repetition {}",
            self.engine.name(),
            self.mode,
            self.threads,
            repetition + 1
        )
    }

    /// How the engine is to be opened.
    pub fn setup(&self, options: &SqlOptions, directory: &std::path::Path, rows: u64) -> SqlSetup {
        SqlSetup {
            directory: directory.to_owned(),
            mode: self.mode,
            cache_bytes: options.cache,
            threads: self.threads,
            rows,
            url: None,
        }
    }

    /// A result without its numbers.
    pub fn blank(&self, benchmark: &str, step: &str, unit: &str) -> Result<Measurement> {
        Ok(Measurement {
            benchmark: benchmark.to_owned(),
            engine: self.engine.name().to_owned(),
            engine_version: self.engine.version()?,
            mode: self.mode.name().to_owned(),
            threads: self.threads,
            step: step.to_owned(),
            unit: unit.to_owned(),
            // Content that was wrong would have made the run a failure, not a result.
            verified: true,
            ..Measurement::default()
        })
    }

    /// A result of a step that was run once for each of `times`.
    pub fn timed(&self, benchmark: &str, step: &str, times: &[Duration]) -> Result<Measurement> {
        let mut latencies = Latencies::default();
        times.iter().for_each(|time| latencies.record(*time));
        let milliseconds = times.iter().map(|time| time.as_secs_f64() * 1000.0).collect();
        let blank = self.blank(benchmark, step, "ms")?;
        let mut result = blank.with_runs(milliseconds).with_latencies(&latencies);
        result.ops_per_txn = 1;
        Ok(result)
    }

    /// Shows how the runs of a step ended, and adds their result or their error to the report.
    pub fn conclude(
        &self,
        what: &str,
        times: Result<Vec<Duration>>,
        result: impl FnOnce(&[Duration]) -> Result<Measurement>,
        (progress, report): (&Progress, &mut Report),
    ) -> Result<()> {
        let shortest = |times: &Vec<Duration>| {
            format!("{:?} at best", times.iter().min().copied().unwrap_or_default())
        };
        progress.done(&self.label(what, 0), times.as_ref().map(shortest));
        match times {
            Ok(times) => report.results.push(result(&times)?),
            Err(error) => report.failures.push(self.failure(what, &error)),
        }
        Ok(())
    }

    /// A run that went wrong.
    pub fn failure(&self, what: &str, error: &anyhow::Error) -> Failure {
        Failure {
            engine: self.engine.name().to_owned(),
            mode: self.mode.name().to_owned(),
            threads: self.threads,
            error: format!("{what}: {error:#}"),
        }
    }
}

/// Where the threads of a run begin together.
pub struct Start {
    barrier: Barrier,
    instant: OnceLock<Instant>,
}

impl Start {
    /// Waits for the others. All get the same instant: a thread that has to wait for a processor
    /// is at work all the same, and its timer runs.
    pub fn wait(&self) -> Instant {
        self.barrier.wait();
        *self.instant.get_or_init(Instant::now)
    }
}

/// Runs `work` on `threads` threads. Each must call [`Start::wait`] once, whatever happens.
pub fn together<T: Send>(
    threads: usize,
    work: impl Fn(usize, &Start) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let start = Start { barrier: Barrier::new(threads), instant: OnceLock::new() };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|number| {
                let (start, work) = (&start, &work);
                scope.spawn(move || work(number, start))
            })
            .collect();
        let outcomes: Vec<Result<T>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked"))))
            .collect();
        outcomes.into_iter().collect()
    })
}
