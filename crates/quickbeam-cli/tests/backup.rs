//! `quickbeam backup` from outside: its reports, what a killed one leaves, and its check.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::time::Duration;

use common::{command, done, finish, folder, path, text};
use quickbeam::{DATA_FILE, Environment, Options};

fn run(arguments: &[&str]) -> std::process::Output {
    finish(command(arguments), "")
}

/// Creates an environment with a table and a database of a few thousand records.
fn filled(place: &Path) -> String {
    let directory = path(place);
    let rows = "CREATE TABLE t (id INT PRIMARY KEY, x TEXT UNIQUE); \
                INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 500) AS g(i)";
    done(&run(&["sql", "--create", &directory, "-c", rows]));
    let environment = Environment::open(place, Options::new()).expect("it was just created");
    let database = environment.create_database("data").expect("there is none yet");
    let fill = |transaction: &quickbeam::Transaction| {
        (0..4000_u32).try_for_each(|n| database.put(transaction, &n.to_be_bytes(), &[7; 1000]))
    };
    environment.transact(fill).expect("there is room");
    environment.close().expect("no transaction is open");
    directory
}

#[test]
fn a_backup_is_written_and_checked() {
    let folder = folder();
    let directory = filled(&folder.path().join("data"));
    let backup = path(&folder.path().join("backup"));
    let report = done(&run(&["backup", &directory, "--into", &backup]));
    assert!(report.starts_with("pages ") && report.contains("log bytes "), "{report}");
    let checked = done(&run(&["backup", &backup, "--check", "--json"]));
    let verified: serde_json::Value = serde_json::from_str(&checked).expect("it is JSON");
    assert_eq!(verified["sql"]["rows"], 500);
    assert_eq!(verified["complaints"], serde_json::json!([]));
    assert_eq!(
        done(&run(&["sql", &backup, "--format", "csv", "-c", "SELECT count(*) FROM t"])),
        "count\n500\n"
    );
    let both = path(&folder.path().join("both"));
    let report = done(&run(&["backup", &directory, "--into", &both, "--check"]));
    assert!(report.contains("complaints"), "{report}");

    let refused = run(&["backup", &directory, "--into", &both]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("not empty"), "{}", text(&refused.stderr));
    assert_eq!(run(&["backup", &directory]).status.code(), Some(2));
}

#[test]
fn a_damaged_backup_does_not_pass_the_check() {
    let folder = folder();
    let directory = filled(&folder.path().join("data"));
    let backup = folder.path().join("backup");
    done(&run(&["backup", &directory, "--into", &path(&backup)]));
    let data = backup.join(DATA_FILE);
    let mut bytes = std::fs::read(&data).expect("the backup has a data file");
    let middle = bytes.len() / 2;
    bytes[middle..middle + 100_000].fill(1);
    std::fs::write(&data, bytes).expect("it can be written");
    let checked = run(&["backup", &path(&backup), "--check"]);
    assert_eq!(checked.status.code(), Some(1), "{}", text(&checked.stdout));
}

/// The program is killed at 25 moments. It leaves a whole backup or none, and the next backup into
/// the same directory succeeds.
#[test]
fn a_killed_backup_is_whole_or_absent() {
    let folder = folder();
    let directory = filled(&folder.path().join("data"));
    let mut whole = 0;
    for round in 0..25_u64 {
        let backup = folder.path().join(format!("backup {round}"));
        let target = path(&backup);
        let mut killed = command(&["backup", &directory, "--into", &target]);
        let mut killed = killed.spawn().expect("the program starts");
        std::thread::sleep(Duration::from_millis(round * 2));
        killed.kill().expect("it can be killed");
        killed.wait().expect("it has ended");
        if backup.join(DATA_FILE).exists() {
            whole += 1;
        } else {
            let refused = run(&["backup", &target, "--check"]);
            assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stdout));
            done(&run(&["backup", &directory, "--into", &target]));
        }
        done(&run(&["backup", &target, "--check"]));
        std::fs::remove_dir_all(&backup).expect("it can be removed");
    }
    // Without an early kill the test would show nothing.
    assert!(whole < 25, "no kill came before the end");
}

#[test]
fn compact_gives_space_of_deleted_records_back() {
    let folder = folder();
    let place = folder.path().join("data");
    let directory = filled(&place);
    let environment = Environment::open(&place, Options::new()).expect("it was closed");
    let database = environment.open_database("data").expect("it is there");
    let clear = |transaction: &quickbeam::Transaction| {
        database.clear_range(transaction, ..&3000_u32.to_be_bytes()[..])
    };
    environment.transact(clear).expect("nothing else runs");
    environment.close().expect("no transaction is open");
    let report = done(&run(&["compact", &directory, "--json"]));
    let report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
    let bytes = |name: &str| report[name].as_u64().expect("it is a number");
    assert!(bytes("bytes_after") * 2 < bytes("bytes_before"), "{report}");
    let length = std::fs::metadata(place.join(DATA_FILE)).expect("it is there").len();
    assert!(length * 2 < bytes("bytes_before"), "{length} of {report}");
    let verified = done(&run(&["verify", &directory]));
    assert!(verified.contains("complaints"), "{verified}");
}
