//! `bench logwrite`: every variant, interleaved, repetition by repetition.

use std::fs;

use anyhow::{Context, Result};

use super::Variant;
use crate::args::LogwriteArgs;
use crate::kv::finish;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::report::{Measurement, NotSupported, Report, Run};
use crate::statistics::{Latencies, Summary};

/// Runs the command and writes its report.
pub fn run(args: &LogwriteArgs) -> Result<()> {
    let directory = &args.places.dir;
    fs::create_dir_all(directory).with_context(|| format!("directory {}", directory.display()))?;
    let workload = format!(
        "{} times {} bytes, each flushed, {} repetitions",
        args.operations, args.bytes, args.reps
    );
    let mut report =
        Report::new(Machine::describe(directory, Machine::FLUSHES)?, Run::now(0, workload));
    measure(args, &mut report)?;
    finish(&report, &args.outputs, "logwrite")
}

fn measure(args: &LogwriteArgs, report: &mut Report) -> Result<()> {
    let variants: Vec<Variant> = Variant::all().collect();
    let progress = Progress::new(variants.len() as u64 * u64::from(args.reps));
    let mut samples: Vec<(Vec<f64>, Latencies, usize, Option<String>)> =
        variants.iter().map(|_| Default::default()).collect();
    for _ in 0..args.reps {
        for (variant, (rates, latencies, bytes, refused)) in variants.iter().zip(&mut samples) {
            let label = variant.to_string();
            progress.message(&label);
            let outcome = super::run(&args.places.dir, *variant, args.bytes, args.operations);
            let summary =
                |o: &super::LogWriteOutcome| format!("{:.2} ops per second", o.ops_per_second);
            progress.done(&label, outcome.as_ref().map(summary));
            match outcome {
                Ok(outcome) => {
                    rates.push(outcome.ops_per_second);
                    latencies.merge(&outcome.latencies);
                    *bytes = outcome.bytes;
                }
                Err(error) => *refused = Some(format!("{error:#}")),
            }
        }
    }
    progress.finish();
    for (variant, (rates, latencies, bytes, refused)) in variants.iter().zip(samples) {
        if let Some(reason) = refused {
            report.not_supported.push(NotSupported {
                engine: "device".to_owned(),
                mode: variant.to_string(),
                threads: 1,
                reason,
            });
            continue;
        }
        let median = Summary::of(&rates).median;
        let elapsed = args.operations as f64 / median;
        // As the manual's program prints it.
        println!(
            "{variant}: {} ops of {bytes} bytes: elapsed time: {elapsed:.6} seconds: {median:.2} \
             ops per second",
            args.operations
        );
        let measurement = Measurement {
            benchmark: "logwrite".to_owned(),
            engine: "device".to_owned(),
            mode: "sync".to_owned(),
            threads: 1,
            ops_per_txn: 1,
            step: format!("{bytes} bytes, {variant}"),
            unit: "ops/s".to_owned(),
            verified: true,
            ..Measurement::default()
        };
        report.results.push(measurement.with_runs(rates).with_latencies(&latencies));
    }
    Ok(())
}
