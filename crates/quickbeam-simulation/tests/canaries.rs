//! The simulation detects faults: each planted fault is found within a few hundred seeds. The plan
//! that finds it can be reduced, and the seed passes without the fault. One test, because a fault
//! is planted in the whole process.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use quickbeam::failpoints::{Canary, plant};
use quickbeam_simulation::plan::Plan;
use quickbeam_simulation::run::run;
use quickbeam_simulation::shrink::{plan_with, shrink};

/// Seeds tried for each fault.
const BUDGET: u64 = 1000;

/// Runs for reducing one plan.
const ATTEMPTS: usize = 60;

/// Checks that the reduced plan is smaller and also fails while the fault is planted.
fn assert_shrinks(seed: u64) {
    let changes = shrink(seed, &[], ATTEMPTS);
    let smaller = plan_with(seed, &changes).unwrap();
    assert!(!run(&smaller, false).violations.is_empty(), "seed {seed} with {changes:?}");
    let size = |plan: &Plan| plan.rounds.len() * plan.clients * plan.transactions;
    assert!(size(&smaller) < size(&Plan::new(seed)), "seed {seed} with {changes:?}");
    println!("  smaller: ./x simulate --seed {seed} --with {}", changes.join(","));
}

#[test]
fn every_canary_is_found() {
    let mut missed = Vec::new();
    for canary in Canary::ALL {
        plant(Some(canary));
        let found = (0..BUDGET).find_map(|seed| {
            let outcome = run(&Plan::new(seed), false);
            outcome.violations.first().map(|what| (seed, what.clone()))
        });
        if let Some((seed, _)) = found
            && canary == Canary::LogNotFlushed
        {
            assert_shrinks(seed);
        }
        plant(None);
        let Some((seed, what)) = found else {
            missed.push(canary);
            continue;
        };
        println!("{canary:?}: seed {seed}: {}", what.chars().take(120).collect::<String>());
        let without = run(&Plan::new(seed), false);
        assert_eq!(without.violations, Vec::<String>::new(), "seed {seed} without {canary:?}");
    }
    assert_eq!(missed, Vec::new(), "not found within {BUDGET} seeds each");
}
