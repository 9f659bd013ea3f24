//! `bench kv`: the white paper's key/value tables, and what goes beyond them.

mod ceiling;
pub mod child;
mod interference;
mod larger;
mod operations;
mod recovery;
mod space;
mod tables;
pub mod trial;
mod worker;
mod ycsb;

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result};

use crate::args::{KvArgs, Places};
use crate::engine::{Engine, Mode};
use crate::engines;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::report::{Failure, Measurement, NotSupported, Outputs, Report, Run, terminal};
use crate::workload::Workload;
use trial::Trial;

/// Runs the command and writes its report.
pub fn run(args: &KvArgs) -> Result<()> {
    let workload = args.workload()?;
    fs::create_dir_all(&args.places.dir)
        .with_context(|| format!("directory {}", args.places.dir.display()))?;
    let machine = Machine::describe(&args.places.dir, Machine::FLUSHES)?;
    let run = Run::now(args.seed, describe(args, &workload));
    let mut report = Report::new(machine, run);
    measure(args, &mut report)?;
    finish(&report, &args.outputs, "kv")
}

/// Runs what the options ask for and adds the results to the report.
pub fn measure(args: &KvArgs, report: &mut Report) -> Result<()> {
    let workload = args.workload()?;
    let engines = engines_of(args, report)?;
    if args.larger_than_cache {
        larger::run(args, &workload, &engines, report)
    } else if args.ycsb {
        ycsb::run(args, &workload, &engines, report)
    } else if args.space {
        space::run(args, &workload, &engines, report)
    } else if args.recovery {
        recovery::run(args, &workload, &engines, report)
    } else if args.checkpoint_interference {
        interference::run(args, &workload, &engines, report)
    } else {
        tables::run(args, &workload, &engines, report)
    }
}

/// A trial with everything but its engine, directory and repetition.
fn base_trial(args: &KvArgs, workload: &Workload, mode: Mode, threads: usize) -> Trial {
    Trial {
        engine: String::new(),
        mode,
        threads,
        workload: workload.clone(),
        cache_bytes: args.cache,
        log_buffer_bytes: args.log_buffer,
        directory: PathBuf::new(),
        repetition: 0,
        automatic_checkpoints: true,
    }
}

/// A trial in the words of the progress display.
fn label(trial: &Trial) -> String {
    let s = if trial.threads == 1 { "" } else { "s" };
    let number = trial.repetition + 1;
    format!("{} {} {} thread{s}, repetition {number}", trial.engine, trial.mode, trial.threads)
}

/// A result of one engine without its numbers.
fn blank(benchmark: &str, trial: &Trial, step: &str, unit: &str) -> Result<Measurement> {
    Ok(Measurement {
        benchmark: benchmark.to_owned(),
        engine: trial.engine.clone(),
        engine_version: engines::find(&trial.engine)?.version()?,
        mode: trial.mode.name().to_owned(),
        threads: trial.threads,
        ops_per_txn: trial.workload.ops_per_txn,
        records: trial.workload.records,
        step: step.to_owned(),
        unit: unit.to_owned(),
        // Content that was wrong would have made the run a failure, not a result.
        verified: true,
        ..Measurement::default()
    })
}

fn failure(trial: &Trial, error: &anyhow::Error) -> Failure {
    Failure {
        engine: trial.engine.clone(),
        mode: trial.mode.name().to_owned(),
        threads: trial.threads,
        error: format!("{error:#}"),
    }
}

/// Measures every trial as often as asked for, the engines in turns. Returns the outcomes of each
/// trial; failures go to the report.
fn measure_in_turns<T>(
    args: &KvArgs,
    trials: &[Trial],
    report: &mut Report,
    measure: impl Fn(&Trial) -> Result<T>,
    summary: impl Fn(&T) -> String,
) -> Result<Vec<Vec<T>>> {
    let progress = Progress::new(trials.len() as u64 * u64::from(args.repetitions()));
    let mut all: Vec<Vec<T>> = trials.iter().map(|_| Vec::new()).collect();
    for repetition in 0..args.repetitions() {
        for (trial, outcomes) in trials.iter().zip(&mut all) {
            let scratch = Scratch::new(&args.places, trial.mode, &trial.engine)?;
            let directory = scratch.path().to_owned();
            let trial = Trial { directory, repetition, ..trial.clone() };
            let label = label(&trial);
            progress.message(&label);
            let outcome = measure(&trial);
            progress.done(&label, outcome.as_ref().map(&summary));
            match outcome {
                Ok(outcome) => outcomes.push(outcome),
                Err(error) => report.failures.push(failure(&trial, &error)),
            }
        }
    }
    progress.finish();
    Ok(all)
}

/// The class in which an engine is measured where a benchmark needs only one: the one asked for,
/// or else the first that the engine has.
fn one_mode(
    args: &KvArgs,
    engine: &dyn Engine,
    preferred: &[Mode],
    threads: usize,
) -> Option<Mode> {
    let candidates = if args.modes.is_empty() { preferred } else { &args.modes };
    candidates.iter().copied().find(|&mode| trial::unsupported(engine, mode, threads).is_none())
}

/// One trial for each engine, each in the class that [`one_mode`] chooses.
fn one_trial_each(
    args: &KvArgs,
    workload: &Workload,
    engines: &[&'static dyn Engine],
    preferred: &[Mode],
    threads: usize,
    report: &mut Report,
) -> Vec<Trial> {
    let mut trials = Vec::new();
    for &engine in engines {
        match one_mode(args, engine, preferred, threads) {
            Some(mode) => trials.push(Trial {
                engine: engine.name().to_owned(),
                ..base_trial(args, workload, mode, threads)
            }),
            None => {
                measurable(&[engine], preferred[0], threads, report);
            }
        }
    }
    trials
}

/// Prints the tables, writes the report files, and fails if Quickbeam has, or no engine has come to
/// an end.
pub fn finish(report: &Report, outputs: &Outputs, name: &str) -> Result<()> {
    println!("{}", terminal::render(report));
    let [json, csv, html] = outputs.write(report, name)?;
    println!("results: {}, {}", json.display(), csv.display());
    println!("report:  {}", html.display());
    report.verdict()
}

/// The workload in words.
pub fn describe(args: &KvArgs, workload: &Workload) -> String {
    let mixed = workload.read_ratio.map(|r| format!(", mixed with {r} reads")).unwrap_or_default();
    format!(
        "{} records of {}+{} bytes, {} operations a transaction, {} distribution{mixed}, {} MiB \
         cache, {} MiB log buffer, {} repetitions",
        workload.records,
        workload.key_size,
        workload.value_size,
        workload.ops_per_txn,
        workload.distribution,
        args.cache >> 20,
        args.log_buffer >> 20,
        args.repetitions(),
    )
}

/// The engines asked for, all of which must be there; or every engine that is there.
fn engines_of(args: &KvArgs, report: &mut Report) -> Result<Vec<&'static dyn Engine>> {
    if !args.engines.is_empty() {
        let engines: Result<Vec<_>> = args.engines.iter().map(|name| engines::find(name)).collect();
        for engine in engines.as_ref().map_or(&[][..], Vec::as_slice) {
            engine.version().with_context(|| engine.name())?;
        }
        return engines;
    }
    let mut found = Vec::new();
    for engine in engines::all() {
        match engine.version() {
            Ok(_) => found.push(engine),
            Err(error) => report.not_supported.push(NotSupported {
                engine: engine.name().to_owned(),
                mode: "every mode".to_owned(),
                threads: 0,
                reason: format!("{error:#}"),
            }),
        }
    }
    Ok(found)
}

/// Keeps the engines that can be measured in a configuration; the others go into the report.
fn measurable<'e>(
    engines: &[&'e dyn Engine],
    mode: Mode,
    threads: usize,
    report: &mut Report,
) -> Vec<&'e dyn Engine> {
    let mut kept = Vec::new();
    for &engine in engines {
        match trial::unsupported(engine, mode, threads) {
            None => kept.push(engine),
            Some(reason) => report.not_supported.push(NotSupported {
                engine: engine.name().to_owned(),
                mode: mode.name().to_owned(),
                threads,
                reason: reason.to_owned(),
            }),
        }
    }
    kept
}

/// A directory for one database, removed with everything in it when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty directory in the place that `mode` asks for.
    pub fn new(places: &Places, mode: Mode, name: &str) -> Result<Scratch> {
        let parent = if mode == Mode::Ramdisk { &places.ramdisk } else { &places.dir };
        let path = parent.join(format!("quickbeam-bench-{}-{name}", process::id()));
        // Left over only if an earlier process with this number was killed.
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
        }
        fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Scratch(path))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A directory that remains wastes space but does not falsify anything.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Runs the task of a child process, and writes its answer to standard output.
pub fn run_child(task: &str) -> Result<()> {
    let answer = match serde_json::from_str(task)? {
        child::Task::Larger(trial) => serde_json::to_string(&larger::measure(&trial)?)?,
        child::Task::WriteTail(trial, bytes) => {
            let (passes, instance) = recovery::write_tail(&trial, bytes)?;
            println!("{}", serde_json::to_string(&passes)?);
            // As if the process had crashed: nothing is closed or flushed.
            std::mem::forget(instance);
            std::process::exit(0);
        }
        child::Task::OpenTimed(trial, passes) => {
            serde_json::to_string(&recovery::open_timed(&trial, &passes)?)?
        }
        child::Task::Ycsb(trial, seconds) => {
            return ycsb::measure(&trial, seconds, |result| {
                println!("{}", serde_json::to_string(result)?);
                Ok(())
            });
        }
    };
    println!("{answer}");
    Ok(())
}
