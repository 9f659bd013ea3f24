//! What checkpoints cost the commits beside them: the same updates without checkpoints and with
//! one after the other in a second thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::trial::Trial;
use super::{Scratch, one_trial_each};
use crate::args::KvArgs;
use crate::engine::{Engine, Instance, Mode};
use crate::progress::Progress;
use crate::report::Report;
use crate::statistics::Latencies;
use crate::workload::content::Content;
use crate::workload::{Step, Workload};

const PREFERRED: [Mode; 3] = [Mode::Ns, Mode::Wns, Mode::Sync];

/// How long updates run in each of the two conditions of a repetition.
const DURATION: Duration = Duration::from_secs(4);

/// The runs in one condition.
#[derive(Default)]
struct Condition {
    rates: Vec<f64>,
    latencies: Latencies,
}

/// Everything measured on one engine.
#[derive(Default)]
struct InterferenceOutcome {
    settings: String,
    without: Condition,
    with: Condition,
    checkpoints: Vec<f64>,
}

/// Runs the benchmark on every engine.
pub fn run(
    args: &KvArgs,
    workload: &Workload,
    engines: &[&'static dyn Engine],
    report: &mut Report,
) -> Result<()> {
    // The second thread is the one that starts the checkpoints.
    let trials = one_trial_each(args, workload, engines, &PREFERRED, 2, report);
    let progress = Progress::new(trials.len() as u64 * u64::from(args.repetitions()));
    let mut outcomes: Vec<InterferenceOutcome> =
        trials.iter().map(|_| InterferenceOutcome::default()).collect();
    let pause = Duration::from_millis(args.checkpoint_pause);
    for repetition in 0..args.repetitions() {
        for (trial, outcome) in trials.iter().zip(&mut outcomes) {
            let scratch = Scratch::new(&args.places, trial.mode, &trial.engine)?;
            let directory = scratch.path().to_owned();
            let trial =
                Trial { directory, repetition, automatic_checkpoints: false, ..trial.clone() };
            let label = super::label(&trial);
            progress.message(&label);
            let done = measure(&trial, pause, outcome);
            progress.done(&label, done.as_ref().map(|()| summary(outcome)));
            if let Err(error) = done {
                report.failures.push(super::failure(&trial, &error));
            }
        }
    }
    for (trial, outcome) in trials.iter().zip(outcomes) {
        if !outcome.with.rates.is_empty() {
            add_results(trial, outcome, report)?;
        }
    }
    progress.finish();
    Ok(())
}

fn summary(outcome: &InterferenceOutcome) -> String {
    let last = |condition: &Condition| condition.rates.last().copied().unwrap_or_default();
    format!("update {:.0}, with checkpoints {:.0}", last(&outcome.without), last(&outcome.with))
}

fn add_results(trial: &Trial, outcome: InterferenceOutcome, report: &mut Report) -> Result<()> {
    // One thread commits; the other only starts checkpoints.
    let trial = Trial { threads: 1, ..trial.clone() };
    let kept: Vec<f64> =
        outcome.with.rates.iter().zip(&outcome.without.rates).map(|(w, o)| w / o).collect();
    for (step, condition) in [
        ("update without checkpoints", outcome.without),
        ("update beside checkpoints", outcome.with),
    ] {
        let mut result = super::blank("kv-interference", &trial, step, "ops/s")?
            .with_runs(condition.rates)
            .with_latencies(&condition.latencies);
        result.settings = outcome.settings.clone();
        report.results.push(result);
    }
    let kept_result = super::blank("kv-interference", &trial, "share of throughput kept", "ratio")?;
    report.results.push(kept_result.with_runs(kept));
    let count = super::blank("kv-interference", &trial, "checkpoints completed", "checkpoints")?;
    report.results.push(count.with_runs(outcome.checkpoints));
    Ok(())
}

fn measure(trial: &Trial, pause: Duration, outcome: &mut InterferenceOutcome) -> Result<()> {
    let instance = trial.open()?;
    let mut content = Content::empty(&trial.workload);
    trial.run_step(&*instance, Step::Populate, &mut content)?;
    instance.checkpoint()?;
    let mut pass = 0;
    let without = updates(trial, &*instance, &mut pass, &mut content)?;
    // Both conditions start from the same state.
    instance.checkpoint()?;
    let (with, count) = beside_checkpoints(&*instance, pause, || {
        updates(trial, &*instance, &mut pass, &mut content)
    })?;
    trial.verify(&*instance, &content)?;
    outcome.settings = instance.settings();
    instance.close()?;
    for (condition, (rate, latencies)) in
        [(&mut outcome.without, without), (&mut outcome.with, with)]
    {
        condition.rates.push(rate);
        condition.latencies.merge(&latencies);
    }
    outcome.checkpoints.push(count as f64);
    Ok(())
}

/// Rewrites all records, over and over, for [`DURATION`]; the rate over all passes.
fn updates(
    trial: &Trial,
    instance: &dyn Instance,
    pass: &mut u32,
    content: &mut Content,
) -> Result<(f64, Latencies)> {
    let single = Trial { threads: 1, ..trial.clone() };
    let (begin, mut busy) = (Instant::now(), 0.0);
    let (mut operations, mut latencies) = (0.0, Latencies::default());
    while begin.elapsed() < DURATION {
        let outcome = single.rewrite(instance, *pass, content)?;
        let records = trial.workload.records as f64;
        operations += records;
        busy += records / outcome.ops_per_second;
        latencies.merge(&outcome.latencies);
        *pass += 1;
    }
    Ok((operations / busy, latencies))
}

/// Runs `work` while another thread makes one checkpoint after another; returns how many.
fn beside_checkpoints<T>(
    instance: &dyn Instance,
    pause: Duration,
    work: impl FnOnce() -> Result<T>,
) -> Result<(T, u32)> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let checkpoints = scope.spawn(|| {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                instance.checkpoint()?;
                count += 1;
                thread::sleep(pause);
            }
            anyhow::Ok(count)
        });
        let result = work();
        stop.store(true, Ordering::Relaxed);
        let count = checkpoints.join().map_err(|_| anyhow!("the checkpoint thread panicked"))?;
        Ok((result?, count?))
    })
}
