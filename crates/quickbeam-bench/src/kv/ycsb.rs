//! Beyond the tables: uniformly random keys, chosen uniformly and by popularity, scans both ways,
//! and the core workloads of YCSB.
//!
//! Each repetition of an engine runs in a process of its own, and each of its steps has a time
//! limit: an engine that crashes or hangs loses the steps that it has not finished, and nothing
//! else. The order of the engines moves on by one from repetition to repetition.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::child::{self, Task};
use super::operations::{MIXTURES, Measured, Records};
use super::trial::Trial;
use super::{Scratch, one_trial_each};
use crate::args::KvArgs;
use crate::engine::{Engine, Mode};
use crate::engines;
use crate::machine;
use crate::progress::Progress;
use crate::report::Report;
use crate::workload::Workload;

const PREFERRED: [Mode; 3] = [Mode::Wns, Mode::Ns, Mode::Sync];

/// Records of one transaction while loading.
const LOAD_BATCH: u64 = 1000;

/// What one step of one child measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct StepResult {
    step: String,
    unit: String,
    value: f64,
    /// p50, p99 and p99.9 of transactions in microseconds.
    latency: Option<[f64; 3]>,
    retries: u64,
    settings: String,
}

/// Runs the benchmark on every engine.
pub fn run(
    args: &KvArgs,
    workload: &Workload,
    engines: &[&'static dyn Engine],
    report: &mut Report,
) -> Result<()> {
    ensure!(workload.key_size >= 16, "--ycsb needs a --key-size of at least 16");
    ensure!(workload.value_size >= 16, "--ycsb needs a --value-size of at least 16");
    let mut engines = engines.to_vec();
    if args.engines.is_empty() {
        engines.extend(engines::range_readers());
    }
    let threads = args.threads.first().copied().unwrap_or(1);
    let trials = one_trial_each(args, workload, &engines, &PREFERRED, threads, report);
    let progress = Progress::new(trials.len() as u64 * u64::from(args.repetitions()));
    let mut results: Vec<BTreeMap<usize, Vec<StepResult>>> =
        trials.iter().map(|_| BTreeMap::new()).collect();
    for repetition in 0..args.repetitions() {
        for turn in 0..trials.len() {
            let which = (turn + repetition as usize) % trials.len();
            let scratch = Scratch::new(&args.places, trials[which].mode, &trials[which].engine)?;
            let directory = scratch.path().to_owned();
            let trial = Trial { directory, repetition, ..trials[which].clone() };
            let label = super::label(&trial);
            progress.message(&label);
            let mut done = 0;
            let task = Task::Ycsb(trial.clone(), args.step_seconds);
            let limit = Duration::from_secs(args.step_limit);
            let outcome = child::stream(&task, limit, |result: StepResult| {
                progress.message(&format!("{label}: {} {:.0}", result.step, result.value));
                results[which].entry(done).or_default().push(result);
                done += 1;
            });
            progress.done(&label, outcome.as_ref().map(|()| format!("{done} results")));
            if let Err(error) = outcome {
                report.failures.push(super::failure(&trial, &error));
            }
        }
    }
    for (trial, results) in trials.iter().zip(results) {
        for runs in results.into_values() {
            add_result(trial, &runs, report)?;
        }
    }
    progress.finish();
    Ok(())
}

fn add_result(trial: &Trial, runs: &[StepResult], report: &mut Report) -> Result<()> {
    let Some(last) = runs.last() else { return Ok(()) };
    let mut result = super::blank("kv-ycsb", trial, &last.step, &last.unit)?
        .with_runs(runs.iter().map(|run| run.value).collect());
    result.settings = last.settings.clone();
    result.retries = runs.iter().map(|run| run.retries).sum();
    if let Some([p50, p99, p999]) = last.latency {
        (result.p50_us, result.p99_us, result.p999_us) = (Some(p50), Some(p99), Some(p999));
    }
    report.results.push(result);
    Ok(())
}

/// What a child does; hands each result on as soon as it is there.
pub fn measure(
    trial: &Trial,
    seconds: u64,
    mut deliver: impl FnMut(&StepResult) -> Result<()>,
) -> Result<()> {
    let instance = trial.open()?;
    let settings = instance.settings();
    let mut tell = |step: &str, unit: &str, value: f64, measured: Option<&Measured>| {
        deliver(&StepResult {
            step: step.to_owned(),
            unit: unit.to_owned(),
            value,
            latency: measured
                .map(|m| [50.0, 99.0, 99.9].map(|percent| m.latencies.percentile_us(percent))),
            retries: measured.map_or(0, |measured| measured.retries),
            settings: settings.clone(),
        })
    };
    let workload = &trial.workload;
    let records = Records::new(&*instance, workload);
    let rate = |m: &Measured| m.operations as f64 / m.elapsed.as_secs_f64();
    let loaded = records.load(LOAD_BATCH).context("load")?;
    tell("load", "ops/s", rate(&loaded), Some(&loaded))?;
    let raw = workload.records * (workload.key_size + workload.value_size) as u64;
    let disk = machine::disk_bytes(&trial.directory)? as f64;
    tell("disk space once loaded", "× raw bytes", disk / raw as f64, None)?;
    for (number, step) in MIXTURES.iter().enumerate() {
        let seed = workload.seed ^ u64::from(trial.repetition) << 8 ^ number as u64;
        let measured = records.run(step, trial.threads, Duration::from_secs(seconds), seed)?;
        tell(step.name, "ops/s", rate(&measured), Some(&measured))?;
        if let Some(share) = worst_second(&measured.seconds) {
            tell(&format!("{}: worst second", step.name), "× median second", share, None)?;
        }
    }
    records.verify()?;
    instance.close().context("close")
}

/// The operations of the worst second as a share of the median second's, given enough of them.
fn worst_second(seconds: &[u64]) -> Option<f64> {
    let mut sorted = seconds.to_vec();
    sorted.sort_unstable();
    let (worst, median) = (sorted.first()?, sorted[sorted.len() / 2]);
    (sorted.len() >= 10 && median > 0).then(|| *worst as f64 / median as f64)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kv::trial::unsupported;
    use crate::workload::Distribution;

    /// Every engine that this machine has runs every step in the modes of the benchmark, and the
    /// records are whole and complete after it. Proves the adapters, not their speed.
    #[test]
    fn every_engine_that_can_be_had_runs_every_step() {
        let root = std::env::temp_dir().join(format!("bench-ycsb-{}", std::process::id()));
        for engine in engines::all().into_iter().chain(engines::range_readers()) {
            for (mode, threads) in [(Mode::Wns, 2), (Mode::Ns, 1), (Mode::Ds, 1)] {
                if engine.version().is_err() || unsupported(engine, mode, threads).is_some() {
                    continue;
                }
                let name = format!("{}-{mode}-{threads}", engine.name());
                let directory = root.join(&name);
                fs::create_dir_all(&directory).unwrap();
                let workload = Workload {
                    records: 500,
                    key_size: 20,
                    value_size: 99,
                    ops_per_txn: 2,
                    distribution: Distribution::Uniform,
                    read_ratio: None,
                    sample: None,
                    seed: 7,
                };
                let trial = Trial {
                    engine: engine.name().to_owned(),
                    mode,
                    threads,
                    workload,
                    cache_bytes: 32 << 20,
                    log_buffer_bytes: 1 << 20,
                    directory,
                    repetition: 0,
                    automatic_checkpoints: true,
                };
                let mut steps = Vec::new();
                let outcome = measure_briefly(&trial, |result| {
                    steps.push(result.step.clone());
                    assert!(result.value > 0.0, "{name}: {}", result.step);
                    Ok(())
                });
                outcome.unwrap_or_else(|error| panic!("{name}: {error:#}"));
                assert_eq!(steps.len(), MIXTURES.len() + 2, "{name}");
            }
        }
        fs::remove_dir_all(&root).unwrap();
    }

    fn measure_briefly(
        trial: &Trial,
        deliver: impl FnMut(&StepResult) -> Result<()>,
    ) -> Result<()> {
        // No whole second: each thread still runs one transaction of each step.
        measure(trial, 0, deliver)
    }
}
