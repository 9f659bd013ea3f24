//! The benchmarks that need the program itself: it serves, and PostgreSQL's clients measure.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]
#![cfg(feature = "sql")]

mod common;

use std::path::Path;
use std::process::Output;

use common::{command, finish, folder, path, text};
use serde_json::Value;
use tempfile::TempDir;

/// Runs a benchmark; returns what it wrote and its report. `peer` is the directory of PostgreSQL's
/// programs, if it is not where it usually is.
fn bench(folder: &TempDir, arguments: &str, peer: Option<&str>) -> (Output, Value) {
    let place = |name: &str| path(&folder.path().join(name));
    let mut words: Vec<String> = ["bench".to_owned()].into();
    words.extend(arguments.split_whitespace().map(str::to_owned));
    let names = ["dir", "json", "csv", "html"];
    words.extend(names.map(|name| format!("--{name}={}", place(name))));
    words.extend(["--cache".to_owned(), "32M".to_owned(), "--reps".to_owned(), "2".to_owned()]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = command(&words);
    if let Some(peer) = peer {
        command.env("QUICKBEAM_BENCH_POSTGRESQL", peer);
    }
    let output = finish(command, "");
    let json = std::fs::read_to_string(folder.path().join("json"));
    let report = json.map_err(|error| format!("{error}: {}", text(&output.stderr)));
    let report = serde_json::from_str(&report.expect("a report is written"));
    (output, report.expect("the report is JSON"))
}

/// Where Debian puts PostgreSQL's programs.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";

fn is_there(program: &str) -> bool {
    let found = Path::new(PROGRAMS).join(program).exists();
    if !found {
        println!("{program} is not installed");
    }
    found
}

const PGBENCH: &str =
    "pgbench --scale 1 --rows 1000 --transactions 20 --clients 2 --transport socket,tcp";

#[test]
fn pgbench_measures_both_servers_in_every_workload() {
    if !is_there("pgbench") || !is_there("postgres") {
        return;
    }
    let (output, report) = bench(&folder(), PGBENCH, None);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let results = report["results"].as_array().expect("there are results");
    // Six workloads by two transports on two servers.
    assert_eq!(results.len(), 6 * 2 * 2, "{report:#}");
    for result in results {
        assert_eq!(result["runs"].as_array().map(Vec::len), Some(2), "{result:#}");
        assert!(result["median"].as_f64() > Some(0.0), "{result:#}");
    }
    let shown = text(&output.stdout);
    for expected in ["COPY FROM, tcp; 1 client; rows/s", "connect with SCRAM and select, socket"] {
        assert!(shown.contains(expected), "{expected} is not in\n{shown}");
    }
}

#[test]
fn pgbench_without_its_programs_says_so_and_fails_nothing() {
    let folder = folder();
    let none = path(folder.path());
    let (output, report) = bench(&folder, PGBENCH, Some(&none));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(report["failures"], serde_json::json!([]));
    assert!(text(&output.stdout).contains("pgbench is not installed"), "{output:?}");
}

#[test]
fn pgbench_without_postgresql_measures_quickbeam() {
    if !is_there("pgbench") {
        return;
    }
    let folder = folder();
    let only = folder.path().join("programs");
    std::fs::create_dir(&only).expect("a folder");
    std::os::unix::fs::symlink(Path::new(PROGRAMS).join("pgbench"), only.join("pgbench"))
        .expect("a link");
    let line = "pgbench --scale 1 --work select --transactions 20 --clients 1";
    let (output, report) = bench(&folder, line, Some(&path(&only)));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert_eq!(report["results"].as_array().map(Vec::len), Some(1), "{report:#}");
    let shown = text(&output.stdout);
    assert!(shown.contains("missing") && shown.contains("initdb is not installed"), "{shown}");
}

/// The engines of Quickbeam, direct and by client and server.
const OURS: &str = "--engines quickbeam,quickbeam-server,quickbeam-server-tcp";

#[test]
fn sql_benchmarks_run_by_client_and_server() {
    // Its package brings the client library.
    if !is_there("psql") {
        return;
    }
    for (line, results) in [
        ("tpcb --branches 5 --threads 2 --transactions 20 --modes sync,inmem", 2),
        (
            "tptbm --key 10 --xacts 20 --threads 2 --reads 40 --inserts 20 --deletes 20 --modes wns",
            1,
        ),
        ("tpcc --items 100 --customers 10 --transactions 20 --terminals 2 --modes ns", 6),
    ] {
        let (output, report) = bench(&folder(), &format!("{line} {OURS}"), None);
        assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
        assert_eq!(report["results"].as_array().map(Vec::len), Some(3 * results), "{report:#}");
    }
}
