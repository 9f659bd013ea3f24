//! Compares Quickbeam with PostgreSQL 15 statement by statement: `./x compare`.
//!
//! The corpus is `tests/corpus/*/*.sql`, one statement a line, a file for each chapter of
//! PostgreSQL's manual. `⟨a¦b⟩` in a line stands for one statement with each alternative, and
//! `⟨$name⟩` for the alternatives of the line `:= name a ¦ b`. Each file runs in a new database,
//! on one connection. An answer is the types of the columns and the rows (sorted, without ORDER
//! BY), or the SQLSTATE.
//!
//! - COMPARE-1: with `QUICKBEAM_COMPARE` the test asks the server that `PGHOST` names. It prints
//!   the share of equal answers for each file and writes all differences to the file
//!   `QUICKBEAM_COMPARE_REPORT`.
//! - COMPARE-2: with `QUICKBEAM_COMPARE_RECORD` it also writes `tests/corpus/recorded`: the
//!   statements that prepare a file, and each fourth of the others, of those that answer equally.
//!   Without `QUICKBEAM_COMPARE` the test runs these, and needs no PostgreSQL.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

#[path = "corpus/reader.rs"]
mod reader;
#[path = "corpus/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use quickbeam::{Durability, Options};
use quickbeam_sql::types::{TextSettings, format_value};
use quickbeam_sql::{Connection, SqlDatabase, Value};
use reader::{expand, is_preparation};

/// Each of this many statements that prepare nothing is recorded.
const RECORDED: usize = 4;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// Returns the files in the folders of `folder`, in order.
fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    files.retain(|path| path.extension().is_some_and(|end| end == extension));
    files.sort();
    files
}

/// Returns the lines of an answer's rows; sorted, unless the statement orders them.
fn sorted(text: &str, mut rows: Vec<String>) -> Vec<String> {
    if !text.to_uppercase().contains("ORDER BY") {
        rows.sort();
    }
    rows
}

fn ask(connection: &Connection, text: &str) -> (String, String) {
    let rows = match connection.query(text, &[]) {
        Ok(rows) => rows,
        Err(error) => return (format!("-> error {}", error.code()), error.message().to_owned()),
    };
    let types: Vec<String> =
        rows.columns().iter().map(|column| column.data_type.to_string()).collect();
    let rows = match rows.collect() {
        Ok(rows) => rows,
        Err(error) => return (format!("-> error {}", error.code()), error.message().to_owned()),
    };
    if types.is_empty() {
        return ("-> ok".to_owned(), String::new());
    }
    let settings = connection.text_settings();
    let rows = rows.iter().map(|row| {
        let row = row.iter().map(|value| text_of(value, &settings)).collect::<Vec<_>>().join("|");
        row.replace('\n', "␤")
    });
    let mut lines = vec![format!("-> {}", types.join(", "))];
    lines.extend(sorted(text, rows.collect()));
    (lines.join("\n"), String::new())
}

/// Returns the text of a value with the settings of its session.
fn text_of(value: &Value, settings: &TextSettings) -> String {
    let mut text = String::new();
    format_value(&mut text, value.as_ref(), settings);
    if value.as_ref().is_null() { "NULL".to_owned() } else { text }
}

fn connection() -> Connection {
    let options = Options::new().durability(Durability::InMemory);
    let connection = SqlDatabase::open_in_memory(options).unwrap().connect();
    connection.execute("SET statement_timeout = '10s'", &[]).unwrap();
    connection
}

/// Returns what the answers say that differ: the first words of the message of a refusal, so that
/// causes can be counted.
fn cause(wanted: &str, found: &str, message: &str) -> String {
    match (wanted.strip_prefix("-> error "), found.strip_prefix("-> error ")) {
        (Some(wanted), Some(found)) => format!("error {found} for {wanted}"),
        (Some(wanted), None) => format!("no error, for {wanted}"),
        (None, Some(found)) => format!("refused {found}: {message}"),
        (None, None) if wanted.lines().next() == found.lines().next() => "WRONG ROWS".to_owned(),
        (None, None) => "wrong types".to_owned(),
    }
}

#[test]
fn answers_are_those_of_postgresql() {
    match std::env::var_os("QUICKBEAM_COMPARE") {
        Some(_) => compare_with_server(),
        None => compare_with_record(),
    }
}

fn compare_with_server() {
    let record = std::env::var_os("QUICKBEAM_COMPARE_RECORD").is_some();
    let mut report = String::new();
    let mut causes: BTreeMap<String, usize> = BTreeMap::new();
    let (mut all, mut all_equal) = (0, 0);
    let only = std::env::var("QUICKBEAM_COMPARE_FILES").unwrap_or_default();
    for path in
        files_below(&folder(), "sql").iter().filter(|path| path.to_string_lossy().contains(&only))
    {
        let name = path.strip_prefix(folder()).unwrap().display().to_string();
        let statements = expand(&fs::read_to_string(path).unwrap());
        let wanted = server::answers(&statements);
        assert_eq!(wanted.len(), statements.len(), "{name}: PostgreSQL did not answer all");
        let connection = connection();
        let (mut equal, mut recorded) = (0, format!("# {name}\n"));
        for (number, (text, wanted)) in statements.iter().zip(&wanted).enumerate() {
            let (found, message) = ask(&connection, text);
            if &found == wanted {
                equal += 1;
                if is_preparation(text) || number % RECORDED == 0 {
                    recorded.push_str(&reader::record(text, &found));
                }
                continue;
            }
            let cause = cause(wanted, &found, &message);
            writeln!(
                report,
                "{name}: {cause}\n{text}\nPostgreSQL\n{wanted}\nQuickbeam\n{found} {message}\n"
            )
            .unwrap();
            *causes.entry(cause).or_default() += 1;
        }
        println!(
            "{name:<40} {equal:>5} of {:>5} {:>6.2} %",
            statements.len(),
            equal as f64 * 100.0 / statements.len() as f64
        );
        (all, all_equal) = (all + statements.len(), all_equal + equal);
        if record {
            let target = folder().join("recorded").join(&name).with_extension("test");
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            fs::write(target, recorded).unwrap();
        }
    }
    println!("all {all_equal} of {all}: {:.2} %", all_equal as f64 * 100.0 / all as f64);
    let mut causes: Vec<_> = causes.into_iter().collect();
    causes.sort_by_key(|(cause, count)| (usize::MAX - count, cause.clone()));
    for (cause, count) in causes.iter().take(60) {
        println!("{count:>5} {cause}");
    }
    if let Some(path) = std::env::var_os("QUICKBEAM_COMPARE_REPORT") {
        fs::write(path, report).unwrap();
    }
    assert!(all > 0, "the corpus is empty");
}

fn compare_with_record() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for path in files_below(&folder().join("recorded"), "test") {
        let connection = connection();
        for (text, wanted) in reader::records(&fs::read_to_string(&path).unwrap()) {
            count += 1;
            let (found, message) = ask(&connection, &text);
            if found != wanted {
                let name = path.display();
                wrong.push(format!("{name}\n{text}\nexpected\n{wanted}\nfound\n{found} {message}"));
            }
        }
    }
    assert!(count > 100, "the recorded answers are missing");
    assert!(wrong.is_empty(), "{} wrong answers\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_corpus_expands_and_a_difference_is_noticed() {
    let statements = expand("# head\n:= n 1 ¦ 2\nSELECT ⟨$n⟩ ⟨+¦-⟩ ⟨$n⟩\nSELECT 'x'\n");
    assert_eq!(statements.len(), 9);
    assert_eq!((&statements[0][..], &statements[8][..]), ("SELECT 1 + 1", "SELECT 'x'"));
    let (found, _) = ask(&connection(), "VALUES (2), (1)");
    assert_eq!(found, "-> integer\n1\n2");
    assert_eq!(ask(&connection(), "SELECT 1/0").0, "-> error 22012");
    assert_ne!(ask(&connection(), "SELECT 1::bigint").0, ask(&connection(), "SELECT 1").0);
}
