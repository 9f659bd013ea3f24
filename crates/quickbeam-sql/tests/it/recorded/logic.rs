//! SQL logic tests: files of statements with what must come of them, `tests/logic/*.test`, each run
//! under every isolation, under every durability and in memory.
//!
//! A file is a head of comments (`#`: its name and purpose), then records, with empty lines between
//! them:
//!
//! ```text
//! statement ok                   connection b                  query [rowsort]
//! CREATE TABLE t (id INTEGER)    (what follows is of           SELECT id, name FROM t
//!                                another connection)           ----
//! statement count 2                                            1 apple
//! DELETE FROM t                  statement error 23505         2 NULL
//!                                INSERT INTO …
//! ```
//!
//! Values of a row stand one blank apart, NULL as `NULL`, an empty text as `(empty)`. `rowsort`:
//! the rows come in any order. `query error CODE` is a query that fails. `skipif NAME` and
//! `onlyif NAME` before a record name what a run is of: an isolation, a durability or `memory`.

use std::collections::HashMap;
use std::fs;

use quickbeam::{Durability, Isolation, Options};
use quickbeam_sql::types::TextSettings;
use quickbeam_sql::{Connection, SqlDatabase, SqlError, Value};

use super::text_of;

/// What a record expects.
#[derive(Debug, PartialEq)]
enum Expected {
    Done,
    Count(u64),
    Error(String),
    Rows { sorted: bool, rows: Vec<String> },
}

#[derive(Debug)]
struct Record {
    line: usize,
    connection: String,
    text: String,
    expected: Expected,
    skipped: Vec<String>,
    only: Vec<String>,
}

/// A way to run a file.
struct Run {
    names: Vec<&'static str>,
    isolation: Isolation,
    durability: Durability,
    in_directory: bool,
    /// Which way statements go: `execution_mode`.
    way: &'static str,
}

fn parse(file: &str, text: &str) -> Vec<Record> {
    let mut records = Vec::new();
    let mut connection = "first".to_owned();
    let (mut skipped, mut only) = (Vec::new(), Vec::new());
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let line_number = number + 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        let expected = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            ["connection", name] => {
                connection = name.to_owned();
                continue;
            }
            ["skipif", name] => {
                skipped.push(name.to_owned());
                continue;
            }
            ["onlyif", name] => {
                only.push(name.to_owned());
                continue;
            }
            ["statement", "ok"] => Expected::Done,
            ["statement", "count", count] => Expected::Count(count.parse().unwrap()),
            ["statement" | "query", "error", code] => Expected::Error(code.to_owned()),
            ["query"] => Expected::Rows { sorted: false, rows: Vec::new() },
            ["query", "rowsort"] => Expected::Rows { sorted: true, rows: Vec::new() },
            _ => panic!("{file}:{line_number}: what is {line:?}?"),
        };
        let mut statement = String::new();
        let mut rows = Vec::new();
        let mut in_rows = false;
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
            if in_rows {
                rows.push(line.trim_end().to_owned());
            } else if line.trim() == "----" {
                in_rows = true;
            } else {
                statement.push_str(line);
                statement.push('\n');
            }
        }
        let expected = match expected {
            Expected::Rows { sorted, .. } => {
                assert!(in_rows, "{file}:{line_number}: a query without ----");
                if sorted {
                    rows.sort();
                }
                Expected::Rows { sorted, rows }
            }
            other => {
                assert!(!in_rows, "{file}:{line_number}: rows of what is no query");
                other
            }
        };
        records.push(Record {
            line: line_number,
            connection: connection.clone(),
            text: statement,
            expected,
            skipped: std::mem::take(&mut skipped),
            only: std::mem::take(&mut only),
        });
    }
    records
}

fn shown(value: &Value, settings: &TextSettings) -> String {
    match text_of(value, settings) {
        text if text.is_empty() => "(empty)".to_owned(),
        text => text,
    }
}

fn run_record(connection: &Connection, record: &Record) -> Expected {
    let failed =
        |error: SqlError| Expected::Error(format!("{} ({})", error.code(), error.message()));
    match &record.expected {
        Expected::Rows { sorted, .. } => {
            let rows = connection.query(&record.text, &[]).and_then(|rows| rows.collect());
            let rows = match rows {
                Ok(rows) => rows,
                Err(error) => return failed(error),
            };
            let settings = connection.text_settings();
            let line = |row: &Vec<Value>| {
                row.iter()
                    .map(|value| shown(value, &settings))
                    .collect::<Vec<_>>()
                    .join(" ")
                    .trim_end()
                    .to_owned()
            };
            let mut rows: Vec<String> = rows.iter().map(line).collect();
            if *sorted {
                rows.sort();
            }
            Expected::Rows { sorted: *sorted, rows }
        }
        Expected::Error(wanted) => {
            let rows = connection.query(&record.text, &[]).and_then(|rows| rows.collect());
            match rows {
                Ok(_) => Expected::Done,
                // What an error expects is its code alone.
                Err(error) if error.code() == wanted => Expected::Error(wanted.clone()),
                Err(error) => failed(error),
            }
        }
        Expected::Done => match connection.execute(&record.text, &[]) {
            Ok(_) => Expected::Done,
            Err(error) => failed(error),
        },
        Expected::Count(_) => match connection.execute(&record.text, &[]) {
            Ok(count) => Expected::Count(count),
            Err(error) => failed(error),
        },
    }
}

/// Runs a file; what did not come as expected.
fn run_file(file: &str, records: &[Record], run: &Run) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let options = Options::new()
        .isolation(run.isolation)
        .durability(run.durability)
        .log_segment_size(256 << 10)
        .cache_size(8 << 20);
    let database = if run.in_directory {
        SqlDatabase::open(directory.path(), options).unwrap()
    } else {
        SqlDatabase::open_in_memory(options).unwrap()
    };
    let mut connections: HashMap<&str, Connection> = HashMap::new();
    let mut problems = Vec::new();
    for record in records {
        let named = |names: &[String]| names.iter().any(|name| run.names.contains(&name.as_str()));
        if named(&record.skipped) || !record.only.is_empty() && !named(&record.only) {
            continue;
        }
        let connection = connections.entry(&record.connection).or_insert_with(|| {
            let connection = database.connect();
            connection.execute(&format!("SET execution_mode = '{}'", run.way), &[]).unwrap();
            connection
        });
        let found = run_record(connection, record);
        if found != record.expected {
            problems.push(format!(
                "{file}:{} ({}): {}\n    wanted {:?}\n    found  {found:?}",
                record.line,
                [&run.names[..], &[run.way]].concat().join(", "),
                record.text.trim(),
                record.expected
            ));
        }
    }
    problems
}

fn runs() -> Vec<Run> {
    let in_memory = |name, isolation| Run {
        names: vec![name, "inmemory", "memory"],
        isolation,
        durability: Durability::InMemory,
        in_directory: false,
        way: "auto",
    };
    let in_directory = |name, durability| Run {
        names: vec!["serializable", name],
        isolation: Isolation::Serializable,
        durability,
        in_directory: true,
        way: "auto",
    };
    vec![
        in_memory("serializable", Isolation::Serializable),
        Run { way: "row", ..in_memory("serializable", Isolation::Serializable) },
        Run { way: "vectorized", ..in_memory("serializable", Isolation::Serializable) },
        in_memory("snapshot", Isolation::Snapshot),
        in_memory("read_committed", Isolation::ReadCommitted),
        in_directory("sync", Durability::Sync),
        in_directory("write_nosync", Durability::WriteNoSync),
        in_directory("nosync", Durability::NoSync),
        in_directory("inmemory", Durability::InMemory),
    ]
}

#[test]
fn every_file_under_every_setting() {
    let files = super::files("logic", "test");
    assert!(files.len() > 10, "the files are not there");
    let mut problems = Vec::new();
    // While working on one file, its name in this variable leaves the others out.
    let only = std::env::var("QUICKBEAM_LOGIC_FILE").unwrap_or_default();
    for path in &files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.contains(&only) {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("# "), "{name}: no head that says what it is for");
        let records = parse(&name, &text);
        assert!(!records.is_empty(), "{name}: no records");
        for run in runs() {
            problems.extend(run_file(&name, &records, &run));
        }
    }
    assert!(problems.is_empty(), "{} problem(s):\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn a_wrong_answer_is_noticed() {
    let text = "# sample\nstatement ok\nCREATE TABLE t (a INTEGER)\n\nstatement count 2\nINSERT INTO t VALUES (1)\n\n\
                query\nSELECT a FROM t\n----\n2\n\nstatement error 42P01\nSELECT * FROM t\n\n\
                query\nSELECT * FROM nothing\n----\n\nonlyif sync\nstatement ok\nNONSENSE\n\n\
                query rowsort\nSELECT a FROM t\n----\n1\n";
    let problems = run_file("sample", &parse("sample", text), &runs()[0]);
    let lines: Vec<&str> = problems.iter().filter_map(|p| p.split(' ').next()).collect();
    assert_eq!(lines, ["sample:5", "sample:8", "sample:13", "sample:16"], "{problems:?}");
}
