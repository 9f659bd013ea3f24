//! The simulation sees: each planted fault is found within a few hundred seeds, and the seed that finds it passes
//! without the fault. One test, since a fault is planted in the whole process.

use quickbeam::world::hooks::{Canary, plant};
use quickbeam_simulation::plan::Plan;
use quickbeam_simulation::run::run;

/// Seeds tried for each fault.
const BUDGET: u64 = 600;

#[test]
fn every_canary_is_found() {
    let mut missed = Vec::new();
    for canary in Canary::ALL {
        plant(Some(canary));
        let found = (0..BUDGET).find_map(|seed| {
            let outcome = run(&Plan::new(seed), false);
            outcome.violations.first().map(|what| (seed, what.clone()))
        });
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
