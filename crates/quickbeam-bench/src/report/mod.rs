//! Results, and the forms in which they are given out: JSON, CSV, terminal tables, and one HTML
//! page with plots.

pub mod csv;
pub mod grid;
pub mod html;
pub mod numbers;
pub mod plot;
pub mod servers;
pub mod sql;
mod statements;
pub mod terminal;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::engine::Mode;
use crate::engines;
use crate::machine::Machine;
use crate::sql::engines as sql_engines;
use crate::statistics::{Latencies, Summary};

/// Version of the JSON schema.
pub const SCHEMA: u32 = 1;

/// Everything one invocation measured.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// What was asked for.
    pub run: Run,
    /// What was measured.
    pub results: Vec<Measurement>,
    /// What could not be measured, and why.
    pub not_supported: Vec<NotSupported>,
    /// Runs that went wrong: their numbers are not among the results.
    pub failures: Vec<Failure>,
}

/// What was asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Run {
    /// Source revision of the measuring program.
    pub git_revision: String,
    /// Seed of every random order.
    pub seed: u64,
    /// Start, in seconds since 1970.
    pub started: u64,
    /// The workload in words.
    pub workload: String,
    /// The command line.
    #[serde(default)]
    pub command: String,
    /// Seconds from the start to the report.
    #[serde(default)]
    pub seconds: f64,
}

impl Run {
    /// A run that starts now.
    pub fn now(seed: u64, workload: String) -> Run {
        let words: Vec<String> = std::env::args().skip(1).collect();
        Run {
            git_revision: env!("QUICKBEAM_GIT_REVISION").to_owned(),
            seed,
            started: now(),
            workload,
            command: format!("quickbeam {}", words.join(" ")),
            seconds: 0.0,
        }
    }

    /// The start as date and time in UTC.
    pub fn date(&self) -> String {
        let started = i64::try_from(self.started).ok().map(jiff::Timestamp::from_second);
        let text = started.and_then(Result::ok).map(|at| at.strftime("%Y-%m-%d %H:%M UTC"));
        text.map_or_else(String::new, |text| text.to_string())
    }
}

/// The time in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// One number with its repetitions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Measurement {
    /// `kv`, `kv-space`, `kv-recovery`, `kv-interference`, `kv-larger`, `logwrite`, `tpcb`,
    /// `wisconsin`, `tptbm`, `tpch`, `clicks`, `statements`, `tpcc` or `pgbench`.
    pub benchmark: String,
    /// Engine, or `device`.
    pub engine: String,
    /// Its version.
    pub engine_version: String,
    /// Durability class.
    pub mode: String,
    /// Threads.
    pub threads: usize,
    /// Operations in a transaction.
    pub ops_per_txn: usize,
    /// Records in the database.
    pub records: u64,
    /// What was timed.
    pub step: String,
    /// Unit of the numbers below.
    pub unit: String,
    /// One number for each repetition.
    pub runs: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub stddev: f64,
    /// Their median.
    pub median: f64,
    /// Latency percentiles of a transaction over all repetitions, in microseconds.
    pub p50_us: Option<f64>,
    /// See `p50_us`.
    #[serde(default)]
    pub p90_us: Option<f64>,
    /// See `p50_us`.
    pub p95_us: Option<f64>,
    /// See `p50_us`.
    pub p99_us: Option<f64>,
    /// See `p50_us`.
    pub p999_us: Option<f64>,
    /// See `p50_us`.
    pub max_us: Option<f64>,
    /// The distribution of latencies where it was asked for: percentile and microseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub distribution: Vec<(f64, f64)>,
    /// Whether the content of the database was checked after every repetition.
    pub verified: bool,
    /// Settings of the engine.
    pub settings: String,
    /// Transactions run again because the engine gave them up.
    pub retries: u64,
    /// Commits a second as a share of the device's ceiling, where commits wait for the device.
    pub ceiling_share: Option<f64>,
}

impl Measurement {
    /// Fills in the numbers.
    pub fn with_runs(mut self, runs: Vec<f64>) -> Self {
        let Summary { mean, stddev, median } = Summary::of(&runs);
        (self.runs, self.mean, self.stddev, self.median) = (runs, mean, stddev, median);
        self
    }

    /// Fills in the latencies.
    pub fn with_latencies(mut self, latencies: &Latencies) -> Self {
        self.p50_us = Some(latencies.percentile_us(50.0));
        self.p90_us = Some(latencies.percentile_us(90.0));
        self.p95_us = Some(latencies.percentile_us(95.0));
        self.p99_us = Some(latencies.percentile_us(99.0));
        self.p999_us = Some(latencies.percentile_us(99.9));
        self.max_us = Some(latencies.max_us());
        self
    }

    /// Fills in the distribution of latencies.
    pub fn with_distribution(mut self, latencies: &Latencies) -> Self {
        const PERCENTILES: [f64; 14] =
            [1.0, 5.0, 10.0, 25.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.9, 99.99];
        self.distribution = PERCENTILES.iter().map(|&p| (p, latencies.percentile_us(p))).collect();
        self
    }
}

/// A configuration that an engine does not have.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct NotSupported {
    /// Engine.
    pub engine: String,
    /// Durability class.
    pub mode: String,
    /// Threads.
    pub threads: usize,
    /// Why not.
    pub reason: String,
}

/// A run that went wrong.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Failure {
    /// Engine.
    pub engine: String,
    /// Durability class.
    pub mode: String,
    /// Threads.
    pub threads: usize,
    /// What happened.
    pub error: String,
}

impl Report {
    /// An empty report.
    pub fn new(machine: Machine, run: Run) -> Report {
        Report {
            schema: SCHEMA,
            machine,
            run,
            results: Vec::new(),
            not_supported: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// An error if a run of Quickbeam has failed, or if nothing was measured. That another engine
    /// loses a row of its own under load is in the report, and no failure of the benchmark.
    pub fn verdict(&self) -> Result<()> {
        let is_own = |failure: &&Failure| failure.engine.starts_with("quickbeam");
        let own = self.failures.iter().filter(is_own).count();
        let count = self.failures.len();
        if own > 0 || (count > 0 && self.results.is_empty()) {
            bail!("{count} runs failed, {own} of them Quickbeam's; see the end of the report");
        }
        Ok(())
    }

    /// The results of one benchmark.
    pub fn of<'r>(&'r self, benchmark: &str) -> impl Iterator<Item = &'r Measurement> + use<'r> {
        let benchmark = benchmark.to_owned();
        self.results.iter().filter(move |result| result.benchmark == benchmark)
    }

    /// Configurations of a benchmark in the order in which they were measured.
    pub fn configurations(&self, benchmark: &str) -> Vec<(Mode, usize)> {
        let mut list = Vec::new();
        for result in self.of(benchmark) {
            if let Ok(mode) = result.mode.parse()
                && !list.contains(&(mode, result.threads))
            {
                list.push((mode, result.threads));
            }
        }
        list
    }

    /// Engines of a benchmark, Quickbeam first and the others in their usual order.
    pub fn engines(&self, benchmark: &str) -> Vec<&str> {
        let mut list: Vec<&str> = Vec::new();
        for result in self.of(benchmark) {
            if !list.contains(&result.engine.as_str()) {
                list.push(&result.engine);
            }
        }
        let usual = engines::all().into_iter().map(|engine| engine.name());
        let sql = sql_engines::all_ways().into_iter().map(|engine| engine.name());
        let usual: Vec<&str> =
            if sql::BENCHMARKS.contains(&benchmark) { sql.collect() } else { usual.collect() };
        list.sort_by_key(|name| usual.iter().position(|engine| engine == name));
        list
    }

    /// What could not be measured, one line for each engine and reason.
    pub fn not_supported_lines(&self) -> Vec<String> {
        let mut lines: Vec<(&str, &str, Vec<String>)> = Vec::new();
        for missing in &self.not_supported {
            let (engine, reason) = (missing.engine.as_str(), missing.reason.as_str());
            let what = match missing.threads {
                0 => missing.mode.clone(),
                threads => format!("{}/{threads}", missing.mode),
            };
            match lines.iter_mut().find(|line| (line.0, line.1) == (engine, reason)) {
                Some(line) => line.2.push(what),
                None => lines.push((engine, reason, vec![what])),
            }
        }
        lines
            .into_iter()
            .map(|(engine, reason, what)| format!("{engine}, {}: {reason}", what.join(" ")))
            .collect()
    }

    /// One result.
    pub fn find(
        &self,
        benchmark: &str,
        engine: &str,
        mode: Mode,
        threads: usize,
        step: &str,
    ) -> Option<&Measurement> {
        self.of(benchmark).find(|result| {
            result.engine == engine
                && result.mode == mode.name()
                && result.threads == threads
                && result.step == step
        })
    }
}

/// Where the forms of a report go.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Outputs {
    /// Write the results as JSON to this file [default: in results/]
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the results as CSV to this file [default: in results/]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the report with its plots as HTML to this file [default: in results/]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl Outputs {
    /// Writes all three forms and returns their paths: JSON, CSV, HTML.
    pub fn write(&self, report: &Report, name: &str) -> Result<[PathBuf; 3]> {
        let started = report.run.started;
        let mut report = report.clone();
        report.run.seconds = now().saturating_sub(started) as f64;
        let report = &report;
        let place = |path: &Option<PathBuf>, extension: &str| {
            path.clone().unwrap_or_else(|| {
                Path::new("results").join(format!("{name}-{started}.{extension}"))
            })
        };
        let paths = [place(&self.json, "json"), place(&self.csv, "csv"), place(&self.html, "html")];
        let texts =
            [serde_json::to_string_pretty(report)?, csv::render(report), html::render(report)?];
        for (path, text) in paths.iter().zip(texts) {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
            }
            fs::write(path, text).with_context(|| path.display().to_string())?;
        }
        Ok(paths)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample() -> Report {
        let machine = Machine {
            cpu: "a processor".to_owned(),
            cores: 2,
            memory_bytes: 1 << 30,
            system: "a system".to_owned(),
            kernel: "6.1".to_owned(),
            file_system: "ext4 (rw)".to_owned(),
            flushes_per_second: 10_000.0,
        };
        let mut report = Report::new(machine, Run::now(42, "576 records".to_owned()));
        for (engine, factor) in [("quickbeam", 3.0), ("bdb", 1.0)] {
            for (mode, threads) in [("ds", 1), ("sync", 1), ("sync", 2)] {
                for step in ["insert", "fetch", "delete", "update"] {
                    let mut latencies = Latencies::default();
                    latencies.record(std::time::Duration::from_micros(20));
                    let mut result = Measurement {
                        benchmark: "kv".to_owned(),
                        engine: engine.to_owned(),
                        engine_version: "1".to_owned(),
                        mode: mode.to_owned(),
                        threads,
                        ops_per_txn: 10,
                        step: step.to_owned(),
                        unit: "ops/s".to_owned(),
                        verified: true,
                        ..Measurement::default()
                    }
                    .with_runs(vec![100_000.0 * factor, 120_000.0 * factor])
                    .with_latencies(&latencies);
                    if mode == "sync" && step != "fetch" {
                        result.ceiling_share = Some(0.9);
                    }
                    report.results.push(result);
                }
            }
        }
        report.not_supported.push(NotSupported {
            engine: "redb".to_owned(),
            mode: "wns".to_owned(),
            threads: 1,
            reason: "no such <class>".to_owned(),
        });
        report
    }

    #[test]
    fn who_measures_fails_with_quickbeam_and_not_with_its_peers() {
        let mut report = sample();
        let failure = |engine: &str| Failure {
            engine: engine.to_owned(),
            mode: "wns".to_owned(),
            threads: 4,
            error: "a row is missing".to_owned(),
        };
        report.failures.push(failure("bdb-sql"));
        assert!(report.verdict().is_ok());
        let none_measured = Report { results: Vec::new(), ..report.clone() };
        assert!(none_measured.verdict().is_err());
        report.failures.push(failure("quickbeam"));
        assert!(report.verdict().unwrap_err().to_string().contains("1 of them Quickbeam's"));
    }

    #[test]
    fn json_comes_back_as_it_was() {
        let report = sample();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn json_has_the_fields_of_the_schema() {
        let value = serde_json::to_value(sample()).unwrap();
        assert_eq!(value["schema"], 1);
        assert!(value["machine"].is_object());
        let result = &value["results"][0];
        for field in [
            "benchmark",
            "engine",
            "engine_version",
            "mode",
            "threads",
            "ops_per_txn",
            "step",
            "unit",
            "runs",
            "mean",
            "stddev",
            "median",
            "p99_us",
            "verified",
        ] {
            assert!(!result[field].is_null(), "{field} is missing");
        }
    }
}
