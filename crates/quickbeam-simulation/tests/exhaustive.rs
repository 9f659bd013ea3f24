//! Every crash point and every failing call of the short workloads.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use quickbeam_simulation::exhaustive::run_all;

#[test]
fn every_crash_point_and_failing_call_keeps_the_promises() {
    let report = run_all();
    println!("{}", report.counts());
    assert_eq!(report.violations, Vec::<String>::new());
    assert!(report.cuts + report.failures >= 5000, "{}", report.counts());
}
