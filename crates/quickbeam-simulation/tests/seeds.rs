//! The regular simulation test: a few hundred seeds, each run twice. `QUICKBEAM_SEEDS` sets another
//! number.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use quickbeam_simulation::seeds::run_many;

#[test]
fn three_hundred_seeds_keep_the_promises() {
    let count = std::env::var("QUICKBEAM_SEEDS").map_or(300, |text| text.parse().unwrap());
    let summary = run_many(0, count, 2, |seed, violations| {
        println!("seed {seed}: {violations:?}; ./x simulate --seed {seed}");
    });
    assert_eq!(summary.failed, Vec::new());
    let share = summary.cut_inside as f64 / summary.seeds as f64;
    assert!(share >= 0.6, "only {share:.2} of the seeds were cut inside something");
    for probe in [
        "evictions",
        "segments used again",
        "rounds with group commits",
        "rounds with trees of more than one level",
        "failed flushes",
        "failed writes",
        "refused for want of room",
        "room came back",
        "reopened after a failure",
        "rounds with bit rot",
        "openings of a store",
        "rests checked",
        "process deaths",
        "power losses",
        "rollbacks to savepoints",
        "cleared ranges",
        "databases locked against writes",
        "commits of open fate",
        "commits written in the background",
        "calls of a store that failed",
        "stores",
        "records changed in one visit",
        "closed in haste",
        "newest roots lost",
        "lost roots that the log made up for",
    ] {
        assert!(summary.probes.contains_key(probe), "no seed came to: {probe}");
    }
}

/// Seeds that once failed, each for another reason.
#[test]
fn seeds_that_once_failed_pass() {
    let seeds = [
        120, 207, 228, 305, 513, 564, 1747, 4214, 5372, 5447, 10_316, 12_271, 14_958, 16_292,
        16_646, 3790, 4436, 7822, 9457, 13_198, 18_147, 18_408, 18_581, 19_032, 9995, 18_760,
        705_672, 705_831, 708_065, 708_278, 709_229, 900_716, 118, 4569, 504_944,
    ];
    for seed in seeds {
        let outcome = quickbeam_simulation::seeds::run_twice(seed);
        assert_eq!(outcome.violations, Vec::<String>::new(), "seed {seed}");
    }
}
