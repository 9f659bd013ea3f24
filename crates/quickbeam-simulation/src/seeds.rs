//! Runs many seeds, each twice, on several workers, and sums up the results.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::plan::Plan;
use crate::run::{Outcome, run};

/// The result of many seeds.
#[derive(Default)]
pub struct Summary {
    /// Seeds run.
    pub seeds: u64,
    /// Seeds with a cut in a commit, a checkpoint or a recovery.
    pub cut_inside: u64,
    /// How often each probe was reached in all seeds.
    pub probes: BTreeMap<&'static str, u64>,
    /// Number of seeds that reached each probe.
    pub in_seeds: BTreeMap<&'static str, u64>,
    /// Seeds that failed, with their violations.
    pub failed: Vec<(u64, Vec<String>)>,
    /// One number for all events of all seeds.
    pub hash: u64,
}

/// Runs a seed twice; a difference between the two is a violation.
#[must_use]
pub fn run_twice(seed: u64) -> Outcome {
    let plan = Plan::new(seed);
    let mut first = run(&plan, false);
    if first.violations.is_empty() {
        let second = run(&plan, false);
        if first.hash != second.hash {
            let what = format!("two runs differ: {:016x} and {:016x}", first.hash, second.hash);
            first.violations.push(what);
        }
    }
    first
}

const INSIDE: [&str; 3] = ["cut in a commit", "cut in a checkpoint", "cut in a recovery"];

impl Summary {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.seeds += 1;
        self.hash = self.hash.wrapping_add(outcome.hash.rotate_left((seed % 64) as u32));
        self.cut_inside += u64::from(INSIDE.iter().any(|probe| outcome.probes.contains_key(probe)));
        for (&what, &count) in outcome.probes.iter().filter(|(_, count)| **count > 0) {
            *self.probes.entry(what).or_default() += count;
            *self.in_seeds.entry(what).or_default() += 1;
        }
        if !outcome.violations.is_empty() {
            self.failed.push((seed, outcome.violations));
        }
    }
}

/// Runs `count` seeds from `first` on with `workers` workers. Calls `tell` with each failure as it
/// occurs.
pub fn run_many(
    first: u64,
    count: u64,
    workers: usize,
    tell: impl Fn(u64, &[String]) + Sync,
) -> Summary {
    let next = AtomicU64::new(first);
    let summary = Mutex::new(Summary::default());
    std::thread::scope(|scope| {
        for worker in 0..workers.max(1) {
            let (next, summary, tell) = (&next, &summary, &tell);
            scope.spawn(move || {
                stay_on(worker);
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        return;
                    }
                    let outcome = run_twice(seed);
                    if !outcome.violations.is_empty() {
                        tell(seed, &outcome.violations);
                    }
                    summary.lock().unwrap_or_else(PoisonError::into_inner).add(seed, outcome);
                }
            });
        }
    });
    summary.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Pins a worker and the threads of its simulations to one processor. Only one of them runs at a
/// time, so passing the baton is then a context switch instead of a message between processors. A
/// failure is ignored: it only costs speed.
fn stay_on(worker: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(all) = sched_getaffinity(None) else { return };
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu)).collect();
    if allowed.is_empty() {
        return;
    }
    let mut one = CpuSet::new();
    one.set(allowed[worker % allowed.len()]);
    let _ = sched_setaffinity(None, &one);
}
