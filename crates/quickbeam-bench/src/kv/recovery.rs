//! Time to open a database: after a clean close, and after a crash that left a long log.
//!
//! The crash is a child process that rewrites all records without a checkpoint until the files
//! have grown by the bytes asked for, and then ends without closing anything. Only engines that
//! replay a log have something to recover; the others are opened after a clean close only.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::child::{self, Task};
use super::trial::Trial;
use super::{measure_in_turns, one_trial_each};
use crate::args::KvArgs;
use crate::engine::{Engine, Instance, Mode, OpError};
use crate::engines;
use crate::machine;
use crate::report::Report;
use crate::workload::content::Content;
use crate::workload::{Step, Workload};

const PREFERRED: [Mode; 3] = [Mode::Wns, Mode::Ns, Mode::Sync];

/// What a process leaves to the next opening.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Passes {
    /// How often every record has been rewritten after populating.
    pub count: u32,
    /// Bytes by which the files have grown since the checkpoint.
    pub bytes: u64,
}

impl Passes {
    fn content(&self, workload: &Workload) -> Content {
        let mut content = Content::empty(workload);
        content.apply(Step::Populate, 0..workload.sets());
        if let Some(last) = self.count.checked_sub(1) {
            let step = if last.is_multiple_of(2) { Step::Update } else { Step::Rewrite };
            content.apply(step, 0..workload.sets());
        }
        content
    }
}

/// Seconds from the call that opens to the first record read.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Opened {
    /// After the crash.
    first: f64,
    /// After a clean close.
    clean: f64,
}

/// Runs the benchmark on every engine.
pub fn run(
    args: &KvArgs,
    workload: &Workload,
    engines: &[&'static dyn Engine],
    report: &mut Report,
) -> Result<()> {
    let trials: Vec<Trial> = one_trial_each(args, workload, engines, &PREFERRED, 1, report)
        .into_iter()
        .map(|trial| Trial { automatic_checkpoints: false, ..trial })
        .collect();
    let measure = |trial: &Trial| measure(trial, args.log_tail);
    let summary = |(passes, opened): &(Passes, Opened)| {
        let mebibytes = passes.bytes >> 20;
        format!("{:.3} s after {mebibytes} MiB, {:.3} s", opened.first, opened.clean)
    };
    let outcomes = measure_in_turns(args, &trials, report, measure, summary)?;
    for (trial, outcomes) in trials.iter().zip(&outcomes) {
        if let Some((passes, _)) = outcomes.first() {
            if engines::find(&trial.engine)?.replays_log() {
                let step = format!("open after a crash, {} MiB of log", passes.bytes >> 20);
                let result = super::blank("kv-recovery", trial, &step, "s")?;
                let runs = outcomes.iter().map(|(_, opened)| opened.first).collect();
                report.results.push(result.with_runs(runs));
            }
            let result = super::blank("kv-recovery", trial, "open after a clean close", "ms")?;
            let runs = outcomes.iter().map(|(_, opened)| opened.clean * 1000.0).collect();
            report.results.push(result.with_runs(runs));
        }
    }
    Ok(())
}

fn measure(trial: &Trial, log_tail: u64) -> Result<(Passes, Opened)> {
    let passes = if engines::find(&trial.engine)?.replays_log() {
        child::spawn(&Task::WriteTail(trial.clone(), log_tail))?
    } else {
        let instance = populate(trial)?.0;
        instance.close()?;
        Passes::default()
    };
    let opened = child::spawn(&Task::OpenTimed(trial.clone(), passes.clone()))?;
    Ok((passes, opened))
}

fn populate(trial: &Trial) -> Result<(Box<dyn Instance>, Content)> {
    let instance = trial.open()?;
    let mut content = Content::empty(&trial.workload);
    trial.run_step(&*instance, Step::Populate, &mut content)?;
    instance.checkpoint()?;
    Ok((instance, content))
}

/// Rewrites all records until the files have grown by `bytes`; the caller must not close.
pub fn write_tail(trial: &Trial, bytes: u64) -> Result<(Passes, Box<dyn Instance>)> {
    let (instance, mut content) = populate(trial)?;
    let before = machine::disk_bytes(&trial.directory)?;
    let mut passes = Passes::default();
    while passes.bytes < bytes {
        ensure!(passes.count < 10_000, "the log does not grow");
        trial.rewrite(&*instance, passes.count, &mut content)?;
        passes.count += 1;
        passes.bytes = machine::disk_bytes(&trial.directory)?.saturating_sub(before);
    }
    Ok((passes, instance))
}

/// Opens the database, checks it, closes it cleanly, and opens it again.
pub fn open_timed(trial: &Trial, passes: &Passes) -> Result<Opened> {
    let content = passes.content(&trial.workload);
    let (instance, first) = open_and_read(trial)?;
    trial.verify(&*instance, &content).context("after recovery")?;
    instance.close()?;
    let (instance, clean) = open_and_read(trial)?;
    trial.verify(&*instance, &content).context("after a clean close")?;
    instance.close()?;
    Ok(Opened { first, clean })
}

/// Reads one record as well: some engines leave their recovery to the first use.
fn open_and_read(trial: &Trial) -> Result<(Box<dyn Instance>, f64)> {
    let (mut key, mut value) = (Vec::new(), Vec::new());
    trial.workload.encode_key(0, &mut key);
    let start = Instant::now();
    let instance = trial.open()?;
    let mut found = false;
    let outcome = instance.session()?.read(&mut |reader| {
        found = reader.get(&key, &mut value)?;
        Ok(())
    });
    let elapsed = start.elapsed().as_secs_f64();
    if let Err(OpError::Failed(error)) = outcome {
        return Err(error);
    }
    ensure!(found, "the first record is not there");
    Ok((instance, elapsed))
}
