//! Disk space: after populating and a checkpoint, and after every record has been rewritten ten
//! times and another checkpoint.

use anyhow::Result;

use super::trial::Trial;
use super::{Scratch, one_trial_each};
use crate::args::KvArgs;
use crate::engine::{Engine, Mode};
use crate::machine;
use crate::progress::Progress;
use crate::report::Report;
use crate::workload::content::Content;
use crate::workload::{Step, Workload};

const PREFERRED: [Mode; 3] = [Mode::Wns, Mode::Ns, Mode::Sync];

const REWRITES: u32 = 10;

struct SpaceOutcome {
    settings: String,
    /// Bytes on disk as a multiple of the bytes of all keys and values.
    populated: f64,
    rewritten: f64,
}

/// Runs the benchmark on every engine.
pub fn run(
    args: &KvArgs,
    workload: &Workload,
    engines: &[&'static dyn Engine],
    report: &mut Report,
) -> Result<()> {
    let trials = one_trial_each(args, workload, engines, &PREFERRED, 1, report);
    let progress = Progress::new(trials.len() as u64);
    // Space does not vary from run to run as time does: one run is enough.
    for trial in trials {
        let scratch = Scratch::new(&args.places, trial.mode, &trial.engine)?;
        let trial = Trial { directory: scratch.path().to_owned(), ..trial };
        let label = super::label(&trial);
        progress.message(&label);
        let outcome = measure(&trial);
        progress.done(&label, outcome.as_ref().map(|o| format!("{:.2}", o.rewritten)));
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                report.failures.push(super::failure(&trial, &error));
                continue;
            }
        };
        for (step, value) in [
            ("disk space after populate and checkpoint", outcome.populated),
            ("disk space after ten rewrites and checkpoint", outcome.rewritten),
        ] {
            let mut result = super::blank("kv-space", &trial, step, "× raw bytes")?;
            result.settings = outcome.settings.clone();
            report.results.push(result.with_runs(vec![value]));
        }
    }
    progress.finish();
    Ok(())
}

fn measure(trial: &Trial) -> Result<SpaceOutcome> {
    let raw = trial.workload.records * (trial.workload.key_size + trial.workload.value_size) as u64;
    let instance = trial.open()?;
    let mut content = Content::empty(&trial.workload);
    let space = || -> Result<f64> {
        instance.checkpoint()?;
        Ok(machine::disk_bytes(&trial.directory)? as f64 / raw as f64)
    };
    trial.run_step(&*instance, Step::Populate, &mut content)?;
    let populated = space()?;
    for pass in 0..REWRITES {
        trial.rewrite(&*instance, pass, &mut content)?;
    }
    let rewritten = space()?;
    trial.verify(&*instance, &content)?;
    let settings = instance.settings();
    instance.close()?;
    Ok(SpaceOutcome { settings, populated, rewritten })
}
