//! `bench` with no subcommand: every table of the documents, in one run and one report.

use std::ffi::OsString;

use anyhow::Result;
use clap::{Args, Parser};

use crate::args::Places;
use crate::command::BenchCommand;
use crate::kv::finish;
use crate::machine::Machine;
use crate::progress;
use crate::report::{Outputs, Report, Run};
use crate::{clicks, kv, statements, tpcb, tpcc, tpch, tptbm, wisconsin};

/// Options of `bench` with no subcommand.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("json", |json| json.short('o')))]
pub struct AllArgs {
    /// The documents' sizes instead of quick ones: hours
    #[arg(long)]
    pub full: bool,
    /// Directories
    #[command(flatten)]
    pub places: Places,
    /// Report files
    #[command(flatten)]
    pub outputs: Outputs,
}

/// What is run, with the options that make it quick.
const PARTS: [(&str, &str); 4] = [
    ("kv", ""),
    ("tpcb", "--threads 1,4,10 --seconds 0.7 --reps 2"),
    ("wisconsin", "--reps 5"),
    (
        "tptbm",
        "--preset queries,threads,mixed,multiop --key 100 --xacts 2000 --reps 1 --modes wns,inmem",
    ),
];
/// The same where time does not count.
const FULL: [(&str, &str); 4] = [
    ("kv", "--full"),
    ("tpcb", "--full"),
    ("wisconsin", "--full"),
    ("tptbm", "--preset report --full"),
];

/// A command line, read again for each part.
#[derive(Parser)]
struct Line {
    #[command(subcommand)]
    command: BenchCommand,
}

/// Runs everything and writes one report.
pub fn run(args: &AllArgs) -> Result<()> {
    std::fs::create_dir_all(&args.places.dir)?;
    let machine = Machine::describe(&args.places.dir, Machine::FLUSHES)?;
    let mut report = Report::new(machine, Run::default());
    let mut workloads = Vec::new();
    for (name, options) in if args.full { FULL } else { PARTS } {
        progress::say(&format!("{name} {options}"));
        let mut words: Vec<OsString> = ["bench", name].map(OsString::from).into();
        words.extend(options.split_whitespace().map(OsString::from));
        words.extend(["--dir".into(), args.places.dir.clone().into_os_string()]);
        words.extend(["--ramdisk".into(), args.places.ramdisk.clone().into_os_string()]);
        match Line::try_parse_from(words)?.command {
            BenchCommand::Kv(args) => {
                (report.run.seed, report.run.started) =
                    (args.seed, Run::now(0, String::new()).started);
                workloads.push(kv::describe(&args, &args.workload()?));
                kv::measure(&args, &mut report)?;
            }
            BenchCommand::Tpcb(args) => {
                workloads.push(args.describe());
                tpcb::measure(&args, &mut report)?;
            }
            BenchCommand::Wisconsin(args) => {
                workloads.push(args.describe());
                wisconsin::measure(&args, &mut report)?;
            }
            BenchCommand::Tptbm(args) => {
                workloads.push(args.describe());
                tptbm::measure(&args, &mut report)?;
            }
            BenchCommand::Tpch(args) => {
                workloads.push(args.describe());
                tpch::measure(&args, &mut report)?;
            }
            BenchCommand::Clicks(args) => {
                workloads.push(args.describe());
                clicks::measure(&args, &mut report)?;
            }
            BenchCommand::Statements(args) => {
                workloads.push(args.describe());
                statements::measure(&args, &mut report)?;
            }
            BenchCommand::Tpcc(args) => {
                workloads.push(args.describe());
                tpcc::measure(&args, &mut report)?;
            }
            BenchCommand::Logwrite(_) | BenchCommand::Pgbench(_) | BenchCommand::Child { .. } => {}
        }
    }
    let started = report.run.started;
    report.run = Run { started, ..Run::now(report.run.seed, workloads.join("; ")) };
    finish(&report, &args.outputs, "bench")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_a_command_line() {
        for (name, options) in PARTS.into_iter().chain(FULL) {
            let words = ["bench", name].into_iter().chain(options.split_whitespace());
            assert!(Line::try_parse_from(words).is_ok(), "{name} {options}");
        }
    }
}
