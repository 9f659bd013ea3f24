//! Tables 3, 4 and 5: every configuration on every engine, interleaved, repetition by repetition.

use std::collections::HashMap;

use anyhow::Result;

use super::trial::{StepOutcome, Trial, TrialOutcome};
use super::{Scratch, measurable};
use crate::args::KvArgs;
use crate::engine::{Engine, Mode};
use crate::logwrite::{self, Ceiling};
use crate::progress::Progress;
use crate::report::{Measurement, Report};
use crate::statistics::{Latencies, Summary};
use crate::workload::{Step, Workload};

/// Writes in one measurement of the ceiling between two runs.
const CEILING_OPERATIONS: u64 = 1000;

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
        Configuration { args, workload, mode, threads }.run(&engines, &progress, report)?;
    }
    progress.finish();
    Ok(())
}

/// One row of a table: a durability class and a number of threads.
struct Configuration<'a> {
    args: &'a KvArgs,
    workload: &'a Workload,
    mode: Mode,
    threads: usize,
}

/// The repetitions of one step of one engine.
#[derive(Default)]
struct Samples {
    rates: Vec<f64>,
    latencies: Latencies,
    retries: u64,
}

impl Configuration<'_> {
    fn run(&self, engines: &[&dyn Engine], progress: &Progress, report: &mut Report) -> Result<()> {
        let mut samples: HashMap<(&str, Step), Samples> = HashMap::new();
        let mut settings: HashMap<&str, String> = HashMap::new();
        let mut ceilings = Ceilings::default();
        for repetition in 0..self.args.repetitions() {
            if self.mode == Mode::Sync {
                ceilings.measure(self)?;
            }
            for &engine in engines {
                match self.trial(engine, repetition, progress) {
                    Ok(outcome) => {
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
                    result.ceiling_share = ceilings.share(step, result.mean, self.workload);
                    report.results.push(result);
                }
            }
        }
        ceilings.report(self.mode, report);
        Ok(())
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

fn add(samples: &mut Samples, outcome: &StepOutcome) {
    samples.rates.push(outcome.ops_per_second);
    samples.latencies.merge(&outcome.latencies);
    samples.retries += outcome.retries;
}

/// The device's ceiling at the sizes of the workload's transactions, measured between the runs.
#[derive(Default)]
struct Ceilings {
    /// For transactions that insert or update, and for those that delete.
    measured: [Vec<Ceiling>; 2],
}

impl Ceilings {
    fn measure(&mut self, configuration: &Configuration<'_>) -> Result<()> {
        let w = configuration.workload;
        let place = Scratch::new(&configuration.args.places, configuration.mode, "logwrite")?;
        // The bytes that the transaction is about, without what a log adds: no log writes less.
        let sizes = [w.ops_per_txn * (w.key_size + w.value_size), w.ops_per_txn * w.key_size];
        for (measured, bytes) in self.measured.iter_mut().zip(sizes) {
            measured.push(logwrite::ceiling(place.path(), bytes, CEILING_OPERATIONS)?);
        }
        Ok(())
    }

    fn share(&self, step: Step, ops_per_second: f64, workload: &Workload) -> Option<f64> {
        let measured = match step {
            Step::Insert | Step::Update | Step::Rewrite => &self.measured[0],
            Step::Delete => &self.measured[1],
            Step::Populate | Step::Fetch | Step::Mixed => return None,
        };
        let rates: Vec<f64> = measured.iter().map(|ceiling| ceiling.fdatasync).collect();
        let commits = ops_per_second / workload.ops_per_txn as f64;
        (!rates.is_empty()).then(|| commits / Summary::of(&rates).mean)
    }

    fn report(&self, mode: Mode, report: &mut Report) {
        for measured in &self.measured {
            let Some(last) = measured.last() else { continue };
            let rows = [
                ("preallocated, fdatasync", measured.iter().map(|c| c.fdatasync).collect()),
                (last.best_name, measured.iter().map(|c| c.best).collect()),
            ];
            for (name, runs) in rows {
                let measurement = Measurement {
                    benchmark: "logwrite".to_owned(),
                    engine: "device".to_owned(),
                    mode: mode.name().to_owned(),
                    threads: 1,
                    step: format!("{} bytes, {name}", last.bytes),
                    unit: "ops/s".to_owned(),
                    verified: true,
                    ..Measurement::default()
                };
                report.results.push(measurement.with_runs(runs));
            }
        }
    }
}
