//! The program that `./x simulate` runs: runs seeds, reduces failing plans, replays one seed
//! verbosely.

#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used))]

use std::process::ExitCode;

use quickbeam_simulation::run::run;
use quickbeam_simulation::seeds::{Summary, run_many};
use quickbeam_simulation::{exhaustive, shrink};

const USAGE: &str = "\
usage: ./x simulate --seeds N [--from S] [--workers W]   run N seeds, each twice
       ./x simulate --seed S [--with CHANGES]            replay one in words
       ./x simulate --exhaustive                         every crash point and failing call of short workloads";

#[derive(Default)]
struct Arguments {
    seeds: u64,
    from: u64,
    workers: Option<usize>,
    seed: Option<u64>,
    with: Vec<String>,
    exhaustive: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seeds" => arguments.seeds = words.next()?.parse().ok()?,
            "--from" => arguments.from = words.next()?.parse().ok()?,
            "--workers" => arguments.workers = Some(words.next()?.parse().ok()?),
            "--seed" => arguments.seed = Some(words.next()?.parse().ok()?),
            "--with" => arguments.with = words.next()?.split(',').map(str::to_owned).collect(),
            "--exhaustive" => arguments.exhaustive = true,
            _ => return None,
        }
    }
    let asked = arguments.seeds > 0 || arguments.seed.is_some() || arguments.exhaustive;
    asked.then_some(arguments)
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let done = if let Some(seed) = arguments.seed {
        replay(seed, &arguments.with)
    } else if arguments.exhaustive {
        all_cases()
    } else {
        many(&arguments)
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn replay(seed: u64, changes: &[String]) -> bool {
    let plan = match shrink::plan_with(seed, changes) {
        Ok(plan) => plan,
        Err(what) => {
            eprintln!("{what}");
            return false;
        }
    };
    let outcome = run(&plan, true);
    outcome.words.iter().for_each(|line| println!("{line}"));
    println!("hash {:016x}", outcome.hash);
    outcome.violations.iter().for_each(|what| println!("violation: {what}"));
    outcome.violations.is_empty()
}

fn all_cases() -> bool {
    let report = exhaustive::run_all();
    println!("{}", report.counts());
    report.violations.iter().for_each(|what| println!("violation: {what}"));
    report.violations.is_empty()
}

fn many(arguments: &Arguments) -> bool {
    let workers = arguments
        .workers
        .or_else(|| std::thread::available_parallelism().ok().map(usize::from))
        .unwrap_or(1);
    let summary = run_many(arguments.from, arguments.seeds, workers, |seed, violations| {
        println!("seed {seed} failed: {}", violations.join("; "));
    });
    tell(&summary);
    for (seed, _) in summary.failed.iter().take(5) {
        let changes = shrink::shrink(*seed, &[], 200);
        let with = if changes.is_empty() {
            String::new()
        } else {
            format!(" --with {}", changes.join(","))
        };
        println!("smaller: ./x simulate --seed {seed}{with}");
    }
    summary.failed.is_empty()
}

fn tell(summary: &Summary) {
    println!("what came to pass              times      in seeds");
    for (what, count) in &summary.probes {
        let seeds = summary.in_seeds.get(what).copied().unwrap_or(0);
        println!("  {what:<42} {count:>10} {seeds:>8}");
    }
    let share = summary.cut_inside as f64 * 100.0 / summary.seeds.max(1) as f64;
    println!(
        "{} seeds, each run twice, {} failed; {share:.1} % with a cut in a commit, a checkpoint or a recovery; hash {:016x}",
        summary.seeds,
        summary.failed.len(),
        summary.hash
    );
}
