//! Tables 3, 4 and 5: every configuration on every engine, interleaved, repetition by repetition.

use std::collections::HashMap;

use anyhow::Result;

use super::ceiling::{Before, Ceilings, median_share};
use super::trial::{StepOutcome, Trial, TrialOutcome};
use super::{Scratch, measurable};
use crate::args::KvArgs;
use crate::engine::{Engine, Mode};
use crate::progress::Progress;
use crate::report::Report;
use crate::statistics::Latencies;
use crate::workload::{SET_SIZE, Step, Workload};

/// Runs the tables asked for.
pub fn run(
    args: &KvArgs,
    workload: &Workload,
    engines: &[&'static dyn Engine],
    report: &mut Report,
) -> Result<()> {
    let plan: Vec<(Mode, usize, Vec<&dyn Engine>)> = args
        .configurations()
        .into_iter()
        .map(|(mode, threads)| (mode, threads, measurable(engines, mode, threads, report)))
        .collect();
    let runs: usize = plan.iter().map(|(_, _, engines)| engines.len()).sum();
    let progress = Progress::new(runs as u64 * u64::from(args.repetitions()));
    for (mode, threads, engines) in plan {
        let workload = fitting(args, workload, mode, report.machine.flushes_per_second);
        let configuration = KvConfiguration { args, workload: &workload, mode, threads };
        configuration.run(&engines, &progress, report)?;
    }
    progress.finish();
    Ok(())
}

/// The workload, with fewer records where a quick run would wait minutes for a slow device.
fn fitting(args: &KvArgs, workload: &Workload, mode: Mode, flushes_per_second: f64) -> Workload {
    let mut workload = workload.clone();
    if mode == Mode::Sync && !args.full && args.records.is_none() {
        let second = (flushes_per_second * workload.ops_per_txn as f64) as u64;
        let least = 100 * SET_SIZE;
        workload.records = second.clamp(least, workload.records).next_multiple_of(SET_SIZE);
    }
    workload
}

/// One row of a table: a durability class and a number of threads.
struct KvConfiguration<'a> {
    args: &'a KvArgs,
    workload: &'a Workload,
    mode: Mode,
    threads: usize,
}

/// The repetitions of one step of one engine.
#[derive(Default)]
struct KvSamples {
    rates: Vec<f64>,
    latencies: Latencies,
    retries: u64,
    /// Commits as a share of the device's ceiling.
    shares: Vec<f64>,
}

impl KvConfiguration<'_> {
    fn run(&self, engines: &[&dyn Engine], progress: &Progress, report: &mut Report) -> Result<()> {
        let mut samples: HashMap<(&str, Step), KvSamples> = HashMap::new();
        let mut settings: HashMap<&str, String> = HashMap::new();
        let mut ceilings = Ceilings::default();
        for repetition in 0..self.args.repetitions() {
            if self.waits_for_device() {
                ceilings.measure_variants(self.args, self.workload)?;
            }
            for &engine in engines {
                let before = match self.waits_for_device() {
                    true => Some(Before::measure(self.args, self.workload)?),
                    false => None,
                };
                match self.trial(engine, repetition, progress) {
                    Ok(outcome) => {
                        for (step, share) in
                            before.iter().flat_map(|b| b.shares(&outcome, self.workload))
                        {
                            samples.entry((engine.name(), step)).or_default().shares.push(share);
                        }
                        settings.insert(engine.name(), outcome.settings);
                        for step in outcome.steps {
                            add(samples.entry((engine.name(), step.step)).or_default(), &step);
                        }
                    }
                    Err(error) => {
                        report.failures.push(super::failure(&self.base(engine), &error));
                    }
                }
            }
        }
        for &engine in engines {
            for step in [Step::Insert, Step::Fetch, Step::Delete, Step::Update, Step::Mixed] {
                if let Some(samples) = samples.remove(&(engine.name(), step)) {
                    let base = self.base(engine);
                    let mut result = super::blank("kv", &base, step.name(), "ops/s")?
                        .with_runs(samples.rates)
                        .with_latencies(&samples.latencies);
                    result.retries = samples.retries;
                    result.settings = settings.get(engine.name()).cloned().unwrap_or_default();
                    result.ceiling_share = median_share(&samples.shares);
                    report.results.push(result);
                }
            }
        }
        ceilings.report(report);
        Ok(())
    }

    /// Whether each commit of the only thread waits for a flush of its own.
    fn waits_for_device(&self) -> bool {
        self.mode == Mode::Sync && self.threads == 1
    }

    fn base(&self, engine: &dyn Engine) -> Trial {
        let base = super::base_trial(self.args, self.workload, self.mode, self.threads);
        Trial { engine: engine.name().to_owned(), ..base }
    }

    fn trial(
        &self,
        engine: &dyn Engine,
        repetition: u32,
        progress: &Progress,
    ) -> Result<TrialOutcome> {
        let scratch = Scratch::new(&self.args.places, self.mode, engine.name())?;
        let directory = scratch.path().to_owned();
        let trial = Trial { directory, repetition, ..self.base(engine) };
        let label = super::label(&trial);
        let outcome = trial.run(|step| progress.message(&format!("{label}: {step}")));
        progress.done(&label, outcome.as_ref().map(TrialOutcome::summary));
        outcome
    }
}

fn add(samples: &mut KvSamples, outcome: &StepOutcome) {
    samples.rates.push(outcome.ops_per_second);
    samples.latencies.merge(&outcome.latencies);
    samples.retries += outcome.retries;
}
