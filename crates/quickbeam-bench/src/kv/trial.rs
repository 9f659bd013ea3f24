//! One run of the key/value workload on one engine: populate, fetch, update, delete, insert.

use std::path::PathBuf;
use std::thread;

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use super::worker::{StartGate, ThreadOutcome, Worker};
use crate::engine::{Engine, Instance, Mode, Setup, Support};
use crate::engines;
use crate::statistics::Latencies;
use crate::workload::content::Content;
use crate::workload::{Step, Workload};

/// Operations in a transaction that populates.
const POPULATE_OPS: usize = 1000;

/// What to run, and where. It can be handed to another process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// Name of the engine under test.
    pub engine: String,
    /// Durability class.
    pub mode: Mode,
    /// Working threads.
    pub threads: usize,
    /// The work.
    pub workload: Workload,
    /// Cache size in bytes.
    pub cache_bytes: u64,
    /// Log buffer size in bytes.
    pub log_buffer_bytes: u64,
    /// An existing directory for the database.
    pub directory: PathBuf,
    /// Which repetition this is: it chooses the order.
    pub repetition: u32,
    /// Whether the engine may start checkpoints by itself.
    pub automatic_checkpoints: bool,
}

/// What one step measured.
pub struct StepOutcome {
    /// The step.
    pub step: Step,
    /// The rates of all threads, each by its own timer, summed.
    pub ops_per_second: f64,
    /// Latencies of transactions, with their retries.
    pub latencies: Latencies,
    /// How often a transaction was run again because the engine gave it up.
    pub retries: u64,
}

/// What a run measured. It has been verified, or it would have been an error.
pub struct TrialOutcome {
    /// The engine's settings.
    pub settings: String,
    /// One entry for each timed step.
    pub steps: Vec<StepOutcome>,
}

impl TrialOutcome {
    /// The rates in one line.
    pub fn summary(&self) -> String {
        let rates = self.steps.iter().map(|s| format!("{} {:.0}", s.step, s.ops_per_second));
        rates.collect::<Vec<_>>().join(", ")
    }
}

impl Trial {
    /// How the engine is to be opened.
    fn setup(&self) -> Setup {
        Setup {
            directory: self.directory.clone(),
            mode: self.mode,
            cache_bytes: self.cache_bytes,
            log_buffer_bytes: self.log_buffer_bytes,
            threads: self.threads,
            records: self.workload.records,
            key_size: self.workload.key_size,
            value_size: self.workload.value_size,
            automatic_checkpoints: self.automatic_checkpoints,
        }
    }

    /// Opens the database.
    pub fn open(&self) -> Result<Box<dyn Instance>> {
        engines::find(&self.engine)?.open(&self.setup()).context("open")
    }

    /// The timed steps in order.
    fn steps(&self) -> Vec<Step> {
        let mut steps = vec![Step::Fetch, Step::Update, Step::Delete, Step::Insert];
        if self.workload.read_ratio.is_some() {
            steps.insert(2, Step::Mixed);
        }
        steps
    }

    /// Runs every step and checks the content of the database after each one that changes it.
    pub fn run(&self, mut progress: impl FnMut(Step)) -> Result<TrialOutcome> {
        let instance = self.open()?;
        let mut content = Content::empty(&self.workload);
        progress(Step::Populate);
        self.run_step(&*instance, Step::Populate, &mut content)?;
        let mut steps = Vec::new();
        for step in self.steps() {
            progress(step);
            steps.push(self.run_step(&*instance, step, &mut content)?);
            if step != Step::Fetch {
                self.verify(&*instance, &content).with_context(|| format!("after {step}"))?;
            }
        }
        let settings = instance.settings();
        instance.close().context("close")?;
        Ok(TrialOutcome { settings, steps })
    }

    /// Compares what is in the database with what must be.
    pub fn verify(&self, instance: &dyn Instance, content: &Content) -> Result<()> {
        let mut session = instance.session()?;
        content.verify(&self.workload, |visit| session.scan(visit))
    }

    /// Replaces every value, each time by another than in the pass before.
    pub fn rewrite(
        &self,
        instance: &dyn Instance,
        pass: u32,
        content: &mut Content,
    ) -> Result<StepOutcome> {
        let step = if pass.is_multiple_of(2) { Step::Update } else { Step::Rewrite };
        let order = self.workload.order(step, self.repetition.wrapping_add(pass));
        self.run_sets(instance, step, &order, content)
    }

    /// Runs one step over the whole order that the workload gives it.
    pub fn run_step(
        &self,
        instance: &dyn Instance,
        step: Step,
        content: &mut Content,
    ) -> Result<StepOutcome> {
        let order = self.workload.order(step, self.repetition);
        self.run_sets(instance, step, &order, content)
    }

    /// Runs one step over `order`, shared out among the threads.
    pub fn run_sets(
        &self,
        instance: &dyn Instance,
        step: Step,
        order: &[u64],
        content: &mut Content,
    ) -> Result<StepOutcome> {
        // Populating is not timed: one thread and few commits, each of which may wait for a flush.
        let populate = Workload { ops_per_txn: POPULATE_OPS, ..self.workload.clone() };
        let (threads, workload) = match step {
            Step::Populate => (1, &populate),
            _ => (self.threads, &self.workload),
        };
        let start = StartGate::new(threads);
        let outcomes: Vec<Result<ThreadOutcome>> = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|number| {
                    let worker = Worker { workload, step, content, order, number, threads };
                    let start = &start;
                    scope.spawn(move || worker.run(instance, start))
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked"))))
                .collect()
        });
        let mut total =
            StepOutcome { step, ops_per_second: 0.0, latencies: Latencies::default(), retries: 0 };
        for outcome in outcomes {
            let outcome = outcome.with_context(|| step.to_string())?;
            total.ops_per_second += outcome.operations as f64 / outcome.elapsed.as_secs_f64();
            total.latencies.merge(&outcome.latencies);
            total.retries += outcome.retries;
        }
        let changed = (0..)
            .zip(order)
            .filter(|&(position, _)| step != Step::Mixed || !self.workload.fetches(position));
        content.apply(step, changed.map(|(_, &set)| set));
        Ok(total)
    }
}

/// Why an engine cannot be measured in this mode with this number of threads, if it cannot.
pub fn unsupported(engine: &dyn Engine, mode: Mode, threads: usize) -> Option<&'static str> {
    match engine.supports(mode, threads) {
        Support::Yes => None,
        Support::No(reason) => Some(reason),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::workload::Distribution;

    fn tiny(engine: &str, mode: Mode, threads: usize, directory: PathBuf) -> Trial {
        let workload = Workload {
            records: 100,
            key_size: 64,
            value_size: 64,
            ops_per_txn: 10,
            distribution: Distribution::Uniform,
            read_ratio: Some(0.5),
            sample: None,
            seed: 1,
        };
        Trial {
            engine: engine.to_owned(),
            mode,
            threads,
            workload,
            cache_bytes: 32 << 20,
            log_buffer_bytes: 1 << 20,
            directory,
            repetition: 0,
            automatic_checkpoints: true,
        }
    }

    /// Every engine that this machine has runs the whole workload in every mode that it has, and
    /// the content is right after each step. Proves the adapters, not their speed.
    #[test]
    fn every_engine_that_can_be_had_does_the_same_work() {
        let root = std::env::temp_dir().join(format!("bench-trial-{}", std::process::id()));
        for engine in engines::all() {
            for mode in Mode::ALL {
                for threads in [1, 3] {
                    let absent = engine.version().is_err();
                    if absent || unsupported(engine, mode, threads).is_some() {
                        continue;
                    }
                    let name = format!("{}-{mode}-{threads}", engine.name());
                    let directory = root.join(&name);
                    fs::create_dir_all(&directory).unwrap();
                    let outcome = tiny(engine.name(), mode, threads, directory).run(|_| ());
                    let outcome = outcome.unwrap_or_else(|error| panic!("{name}: {error:#}"));
                    assert_eq!(outcome.steps.len(), 5, "{name}");
                    assert!(outcome.steps.iter().all(|s| s.ops_per_second > 0.0), "{name}");
                }
            }
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
