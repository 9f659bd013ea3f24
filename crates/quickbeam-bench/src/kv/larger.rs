//! A database several times larger than the cache: rates of fetch and update on a random sample of
//! sets, and the memory that the process takes. Each engine runs in a process of its own, so that
//! memory is its own.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::child::{self, Task};
use super::trial::Trial;
use super::{measure_in_turns, one_trial_each};
use crate::args::KvArgs;
use crate::engine::{Engine, Instance, Mode};
use crate::machine;
use crate::report::Report;
use crate::workload::content::Content;
use crate::workload::{Step, Workload};

const PREFERRED: [Mode; 3] = [Mode::Wns, Mode::Ns, Mode::Sync];

/// Checkpoints while populating: without them the logs would take more space than the data.
const PARTS: usize = 40;

/// What one child measured.
#[derive(Debug, Serialize, Deserialize)]
pub struct LargerOutcome {
    settings: String,
    /// Rate, p50, p99 and p99.9 in microseconds.
    fetch: [f64; 4],
    update: [f64; 4],
    /// Resident memory at its peak, less what the process took before the database was opened.
    peak_bytes: u64,
    /// Disk space after populating.
    disk_bytes: u64,
}

/// Runs the benchmark on every engine.
pub fn run(
    args: &KvArgs,
    workload: &Workload,
    engines: &[&'static dyn Engine],
    report: &mut Report,
) -> Result<()> {
    let threads = args.threads.first().copied().unwrap_or(1);
    let trials = one_trial_each(args, workload, engines, &PREFERRED, threads, report);
    let measure = |trial: &Trial| child::spawn(&Task::Larger(trial.clone()));
    let outcomes: Vec<Vec<LargerOutcome>> =
        measure_in_turns(args, &trials, report, measure, summary)?;
    for (trial, outcomes) in trials.iter().zip(&outcomes) {
        if !outcomes.is_empty() {
            add_results(trial, outcomes, report)?;
        }
    }
    Ok(())
}

fn summary(outcome: &LargerOutcome) -> String {
    let LargerOutcome { fetch, update, peak_bytes, .. } = outcome;
    format!("fetch {:.0}, update {:.0}, memory {} MiB", fetch[0], update[0], peak_bytes >> 20)
}

fn add_results(trial: &Trial, outcomes: &[LargerOutcome], report: &mut Report) -> Result<()> {
    let raw = trial.workload.records * (trial.workload.key_size + trial.workload.value_size) as u64;
    let settings = &outcomes[0].settings;
    let mut add = |step: &str, unit: &str, runs: Vec<f64>, latency: Option<[f64; 4]>| {
        let mut result = super::blank("kv-larger", trial, step, unit)?.with_runs(runs);
        result.settings = settings.clone();
        if let Some([_, p50, p99, p999]) = latency {
            (result.p50_us, result.p99_us, result.p999_us) = (Some(p50), Some(p99), Some(p999));
        }
        report.results.push(result);
        anyhow::Ok(())
    };
    let last = &outcomes[outcomes.len() - 1];
    add("fetch", "ops/s", outcomes.iter().map(|o| o.fetch[0]).collect(), Some(last.fetch))?;
    add("update", "ops/s", outcomes.iter().map(|o| o.update[0]).collect(), Some(last.update))?;
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let peaks = outcomes.iter().map(|o| mebibytes(o.peak_bytes)).collect();
    add("peak memory over baseline", "MiB", peaks, None)?;
    let space = outcomes.iter().map(|o| o.disk_bytes as f64 / raw as f64).collect();
    add("disk space after populate", "× raw bytes", space, None)
}

/// What a child does.
pub fn measure(trial: &Trial) -> Result<LargerOutcome> {
    let (baseline, _) = machine::resident_bytes();
    let instance = trial.open()?;
    let mut content = Content::empty(&trial.workload);
    populate(trial, &*instance, &mut content)?;
    let disk_bytes = machine::disk_bytes(&trial.directory)?;
    // Warms the cache with another sample than the one that is timed.
    let warm = Trial { repetition: trial.repetition + 1000, ..trial.clone() };
    warm.run_step(&*instance, Step::Fetch, &mut content)?;
    let mut step = |step| {
        let outcome = trial.run_step(&*instance, step, &mut content)?;
        let percentile = |percent| outcome.latencies.percentile_us(percent);
        let [p50, p99, p999] = [50.0, 99.0, 99.9].map(percentile);
        anyhow::Ok([outcome.ops_per_second, p50, p99, p999])
    };
    let (fetch, update) = (step(Step::Fetch)?, step(Step::Update)?);
    let (_, peak) = machine::resident_bytes();
    let peak_bytes = peak.saturating_sub(baseline);
    trial.verify(&*instance, &content)?;
    let settings = instance.settings();
    instance.close()?;
    Ok(LargerOutcome { settings, fetch, update, peak_bytes, disk_bytes })
}

/// Fills the database in key order: in random order it would take hours on some engines.
fn populate(trial: &Trial, instance: &dyn Instance, content: &mut Content) -> Result<()> {
    let order: Vec<u64> = (0..trial.workload.sets()).collect();
    for part in order.chunks(order.len().div_ceil(PARTS)) {
        trial.run_sets(instance, Step::Populate, part, content)?;
        instance.checkpoint()?;
    }
    Ok(())
}
