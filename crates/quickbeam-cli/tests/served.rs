//! Commands on a directory that `quickbeam serve` has open: they reach it by the socket there.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]
#![cfg(feature = "sql")]

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Output};

use common::{command, done, finish, folder, path, text};

fn run(arguments: &[&str]) -> Output {
    finish(command(arguments), "")
}

/// A server on a free port, stopped at the end.
struct Served(Child);

impl Served {
    fn start(directory: &str) -> Served {
        Served::start_with(directory, &[])
    }

    fn start_with(directory: &str, more: &[&str]) -> Served {
        let arguments = ["serve", directory, "--create", "--listen", "127.0.0.1:0"];
        let mut server =
            command(&[&arguments[..], more].concat()).spawn().expect("the program starts");
        let mut line = String::new();
        let output = server.stdout.as_mut().expect("it has an output");
        BufReader::new(output).read_line(&mut line).expect("it says where it listens");
        assert!(line.starts_with("listening on 127.0.0.1:"), "{line}");
        Served(server)
    }

    fn stop(mut self) {
        let number = self.0.id().to_string();
        let asked = std::process::Command::new("kill").args(["-TERM", &number]).status();
        assert!(asked.expect("kill starts").success());
        assert!(self.0.wait().expect("it ends").success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It has ended already where the test stopped it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, x TEXT, n NUMERIC(9, 2)); \
    INSERT INTO t SELECT i, 'row ' || i, i / 4.0 FROM generate_series(1, 3) AS g(i)";

/// Waits until a file has that text.
fn until_it_has(file: &std::path::Path, wanted: &str) {
    for _ in 0..1_000 {
        if std::fs::read_to_string(file).is_ok_and(|text| text.contains(wanted)) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{wanted} in {:?}", std::fs::read_to_string(file));
}

#[test]
fn hangup_lets_the_audit_log_begin_a_new_file() {
    let folder = folder();
    let directory = path(&folder.path().join("data"));
    let (file, old) = (folder.path().join("audit"), folder.path().join("audit.1"));
    let settings = folder.path().join("settings.toml");
    let text = format!("audit_log = \"ddl\"\naudit_file = \"{}\"\n", file.display());
    std::fs::write(&settings, text).expect("it is written");
    let served = Served::start_with(&directory, &["--config", &path(&settings)]);
    done(&run(&["sql", &directory, "-c", "CREATE TABLE before (id INT)"]));
    std::fs::rename(&file, &old).expect("it is there");
    let number = served.0.id().to_string();
    let asked = std::process::Command::new("kill").args(["-HUP", &number]).status();
    assert!(asked.expect("kill starts").success());
    for _ in 0..1_000 {
        if file.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    done(&run(&["sql", &directory, "-c", "CREATE TABLE after (id INT)"]));
    until_it_has(&old, "CREATE TABLE before");
    until_it_has(&file, "CREATE TABLE after");
    served.stop();
    assert!(!text_of(&old).contains("CREATE TABLE after"));
    let refused = run(&["serve", &directory, "--audit-log", "ddl"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--audit-log takes --audit-file"));
}

fn text_of(file: &std::path::Path) -> String {
    std::fs::read_to_string(file).expect("it is readable")
}

#[test]
fn commands_reach_a_served_environment() {
    let folder = folder();
    let directory = path(&folder.path().join("data"));
    let served = Served::start(&directory);
    assert_eq!(done(&run(&["sql", &directory, "-c", TABLE])), "CREATE TABLE\nINSERT 0 3\n");
    let statistics = done(&run(&["stat", &directory, "--json"]));
    let statistics: serde_json::Value = serde_json::from_str(&statistics).expect("it is JSON");
    assert!(statistics["commits"].as_u64() > Some(0), "{statistics}");
    let verified = done(&run(&["verify", &directory, "--json"]));
    let verified: serde_json::Value = serde_json::from_str(&verified).expect("it is JSON");
    assert_eq!(verified["sql"]["rows"], 3);
    assert_eq!(verified["complaints"], serde_json::json!([]));
    assert_eq!(done(&run(&["checkpoint", &directory])), "");
    assert!(done(&run(&["list", "--long", &directory])).contains("\tbtree\n"));
    let backup = path(&folder.path().join("backup"));
    assert!(done(&run(&["backup", &directory, "--into", &backup, "--check"])).contains("sql"));
    let dump = done(&run(&["dump", "--sql", &directory]));
    assert!(dump.contains("COPY \"t\"") && dump.contains("3,row 3,0.75\n"), "{dump}");
    served.stop();
    // What was read from the other process is what is in the files.
    assert_eq!(done(&run(&["dump", "--sql", &directory])), dump);
    assert_eq!(done(&run(&["dump", "--sql", &backup])), dump);
    let files = std::fs::read_dir(&directory).expect("it is a directory");
    let left = files.filter_map(Result::ok).any(|file| file.file_name() == quickbeam::SOCKET_FILE);
    assert!(!left, "the socket is removed");
}

/// The compaction that the command line asks for gives back the space of deleted rows.
#[test]
fn served_environment_is_compacted_in_the_background() {
    let folder = folder();
    let directory = path(&folder.path().join("data"));
    let served = Served::start_with(&directory, &["--compaction-rate", "1000000000"]);
    let sql = |text: &str| done(&run(&["sql", &directory, "-c", text]));
    let file_bytes = || {
        done(&run(&["checkpoint", &directory]));
        let statistics = done(&run(&["stat", &directory, "--json"]));
        let statistics: serde_json::Value = serde_json::from_str(&statistics).expect("it is JSON");
        statistics["data_file_bytes"].as_u64().expect("it is a number")
    };
    sql("CREATE TABLE t (id INT PRIMARY KEY, x TEXT); \
         INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 8000) AS g(i)");
    let before = file_bytes();
    sql("DELETE FROM t WHERE id % 4 <> 0");
    let mut rounds = 0;
    while file_bytes() * 100 > before * 85 {
        rounds += 1;
        assert!(rounds < 1000, "nothing was compacted");
        sql("UPDATE t SET x = x WHERE id = 4");
    }
    assert!(sql("SELECT count(*) FROM t").contains("2000"));
    served.stop();
}

#[test]
fn shell_over_the_socket_answers_as_a_direct_one() {
    let folder = folder();
    let directory = path(&folder.path().join("data"));
    let served = Served::start(&directory);
    done(&run(&["sql", &directory, "-c", TABLE]));
    let script = "SELECT id, x, n, n > 0.3 AS more, NULL AS nothing FROM t ORDER BY id;\n\
        \\d\nBEGIN;\nDELETE FROM t;\nROLLBACK;\n\
        COPY t FROM STDIN WITH (FORMAT csv);\n4,\"four, or so\",1\n\\.\n\
        COPY t TO STDOUT WITH (FORMAT csv);\nSELECT count(*) FROM t;\n";
    let remote = done(&finish(command(&["sql", &directory]), script));
    assert!(remote.contains("4,\"four, or so\",1.00\n"), "{remote}");
    for format in ["table", "csv", "json"] {
        let query = "SELECT id, x, n, n > 0.3 AS more, NULL AS nothing, ARRAY[id, 7] AS both, \
            '{\"a\": 1}'::jsonb AS object, DATE '2026-11-24' AS day FROM t WHERE id < 4 ORDER BY id";
        let arguments = ["sql", &directory, "--format", format, "-c", query];
        let remote = done(&run(&arguments));
        let copy = path(&folder.path().join(format));
        done(&run(&["backup", &directory, "--into", &copy]));
        let direct = done(&run(&["sql", &copy, "--format", format, "-c", query]));
        assert_eq!(remote, direct);
    }
    let failed = run(&["sql", &directory, "-c", "SELECT missing FROM t"]);
    assert_eq!(failed.status.code(), Some(1));
    let message = text(&failed.stderr);
    assert!(message.contains("ERROR 42703") && message.contains("       ^"), "{message}");
    served.stop();
}

#[test]
fn refused_opener_hears_who_has_the_directory_open() {
    let folder = folder();
    let directory = path(&folder.path().join("data"));
    let served = Served::start(&directory);
    let number = served.0.id();
    let refused = run(&["load", &directory]);
    let message = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(message.contains(&format!("is open in process {number} (quickbeam)")), "{message}");
    assert!(message.contains(&format!("psql -h {directory}")), "{message}");
    served.stop();
}
