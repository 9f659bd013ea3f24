//! The device's ceiling beside the SYNC runs: measured right before each run, at the sizes of the
//! workload's transactions, because devices drift too much to measure it once.

use anyhow::Result;

use super::Scratch;
use super::trial::TrialOutcome;
use crate::args::KvArgs;
use crate::engine::Mode;
use crate::logwrite::{self, Ceiling, Flush, Growth, Variant};
use crate::report::{Measurement, Report};
use crate::statistics::Summary;
use crate::workload::{Step, Workload};

/// Writes in one measurement between two runs.
const OPERATIONS: u64 = 1000;

/// Bytes that the transactions of a step are about, without what a log adds: no log writes less.
fn bytes_of(step: Step, workload: &Workload) -> Option<usize> {
    match step {
        Step::Insert | Step::Update | Step::Rewrite => {
            Some(workload.ops_per_txn * (workload.key_size + workload.value_size))
        }
        Step::Delete => Some(workload.ops_per_txn * workload.key_size),
        Step::Populate | Step::Fetch | Step::Mixed => None,
    }
}

/// The ceilings of one configuration.
#[derive(Default)]
pub struct Ceilings {
    /// All variants, once for each repetition and size.
    variants: Vec<Ceiling>,
}

/// The ceiling right before one run: flushes a second for each step that commits.
pub struct Before(Vec<(Step, f64)>);

impl Ceilings {
    /// Measures every variant, for the report.
    pub fn measure_variants(&mut self, args: &KvArgs, workload: &Workload) -> Result<()> {
        let place = Scratch::new(&args.places, Mode::Sync, "logwrite")?;
        for bytes in [Step::Insert, Step::Delete].into_iter().filter_map(|s| bytes_of(s, workload))
        {
            self.variants.push(logwrite::ceiling(place.path(), bytes, OPERATIONS)?);
        }
        Ok(())
    }

    /// Adds what was measured to the report.
    pub fn report(&self, report: &mut Report) {
        let mut sizes: Vec<usize> = self.variants.iter().map(|ceiling| ceiling.bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for bytes in sizes {
            let of_size: Vec<&Ceiling> =
                self.variants.iter().filter(|ceiling| ceiling.bytes == bytes).collect();
            let name = of_size.last().map_or("", |ceiling| ceiling.best_name);
            for (name, runs) in [
                ("preallocated, fdatasync", of_size.iter().map(|c| c.fdatasync).collect()),
                (&*format!("fastest variant ({name})"), of_size.iter().map(|c| c.best).collect()),
            ] {
                let measurement = Measurement {
                    benchmark: "logwrite".to_owned(),
                    engine: "device".to_owned(),
                    mode: Mode::Sync.name().to_owned(),
                    threads: 1,
                    step: format!("{bytes} bytes, {name}"),
                    unit: "ops/s".to_owned(),
                    verified: true,
                    ..Measurement::default()
                };
                report.results.push(measurement.with_runs(runs));
            }
        }
    }
}

impl Before {
    /// Measures the manual's procedure, a preallocated file and `fdatasync`.
    pub fn measure(args: &KvArgs, workload: &Workload) -> Result<Before> {
        let place = Scratch::new(&args.places, Mode::Sync, "logwrite")?;
        let variant = Variant { growth: Growth::Preallocated, flush: Flush::Fdatasync };
        let mut rates = Vec::new();
        for step in [Step::Insert, Step::Update, Step::Delete] {
            if let Some(bytes) = bytes_of(step, workload) {
                let outcome = logwrite::run(place.path(), variant, bytes, OPERATIONS)?;
                rates.push((step, outcome.ops_per_second));
            }
        }
        Ok(Before(rates))
    }

    /// Commits a second as a share of the ceiling, for each step that commits.
    pub fn shares(&self, outcome: &TrialOutcome, workload: &Workload) -> Vec<(Step, f64)> {
        let share = |&(step, ceiling): &(Step, f64)| {
            let rate = outcome.steps.iter().find(|s| s.step == step)?.ops_per_second;
            Some((step, rate / workload.ops_per_txn as f64 / ceiling))
        };
        self.0.iter().filter_map(share).collect()
    }
}

/// The share to report: the median, as single measurements of a device go astray.
pub fn median_share(shares: &[f64]) -> Option<f64> {
    (!shares.is_empty()).then(|| Summary::of(shares).median)
}
