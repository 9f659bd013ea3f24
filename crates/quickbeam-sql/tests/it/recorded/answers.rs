//! Answers of PostgreSQL: files of statements with the types, rows and errors that PostgreSQL 15
//! returns for them, `tests/answers/*.txt`.
//!
//! ```text
//! # A file begins with its subject.
//! > CREATE TABLE t (a INTEGER)       a statement without an answer
//! SELECT 7 % 3, NULL || 'a'          a query, followed by
//! : integer, text                    the types of its columns and
//! = 1|NULL                           its rows, or
//! SELECT 1 / 0
//! ! 22012                            the SQLSTATE of its error
//! ```
//!
//! The answers are recorded with `psql -At -F '|' -P null=NULL`, the types with its `\gdesc`, under
//! `TimeZone` UTC and the locale C.UTF-8.

use std::fs;

use quickbeam::Options;
use quickbeam_sql::{Connection, SqlDatabase, SqlError, Value};

#[derive(Debug, PartialEq)]
enum Answer {
    Rows { types: String, rows: Vec<String> },
    Error(String),
}

struct Record {
    line: usize,
    text: String,
    answer: Option<Answer>,
}

fn parse(text: &str) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let last = records.last_mut();
        match (line.split_at_checked(2), last) {
            (Some(("> ", text)), _) => {
                records.push(Record { line: number + 1, text: text.to_owned(), answer: None });
            }
            (Some((": ", types)), Some(record)) => {
                let answer = Answer::Rows { types: types.to_owned(), rows: Vec::new() };
                record.answer = Some(answer);
            }
            (Some(("! ", code)), Some(record)) => {
                record.answer = Some(Answer::Error(code.to_owned()));
            }
            (Some(("= ", row)), Some(Record { answer: Some(Answer::Rows { rows, .. }), .. })) => {
                rows.push(row.to_owned());
            }
            _ if line.is_empty() || line.starts_with('#') => {}
            _ => records.push(Record { line: number + 1, text: line.to_owned(), answer: None }),
        }
    }
    records
}

fn shown(value: &Value) -> String {
    match value {
        // `psql` writes one letter.
        Value::Boolean(value) => if *value { "t" } else { "f" }.to_owned(),
        value => value.to_string(),
    }
}

fn ask(connection: &Connection, text: &str) -> Result<Answer, SqlError> {
    let rows = connection.query(text, &[])?;
    let types: Vec<String> =
        rows.columns().iter().map(|column| column.data_type.to_string()).collect();
    let rows = rows.collect()?;
    let line = |row: &Vec<Value>| row.iter().map(shown).collect::<Vec<_>>().join("|");
    Ok(Answer::Rows { types: types.join(", "), rows: rows.iter().map(line).collect() })
}

/// Runs a file; returns one line for each answer that differs.
fn run(file: &str, records: &[Record]) -> Vec<String> {
    let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
    let connection = database.connect();
    let mut problems = Vec::new();
    for record in records {
        let found = match &record.answer {
            None => connection.execute(&record.text, &[]).map(|_| None),
            Some(_) => ask(&connection, &record.text).map(Some),
        };
        let message = found.as_ref().err().map(|error| error.message().to_owned());
        let found = found.unwrap_or_else(|error| Some(Answer::Error(error.code().to_owned())));
        if found != record.answer {
            let (text, wanted) = (&record.text, &record.answer);
            problems.push(format!(
                "{file}:{}: {text}\n    wanted {wanted:?}\n    found  {found:?} {message:?}",
                record.line
            ));
        }
    }
    problems
}

#[test]
fn answers_are_those_of_postgresql() {
    let mut problems = Vec::new();
    for path in &super::files("answers", "txt") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let records = parse(&fs::read_to_string(path).unwrap());
        assert!(records.len() > 5, "{name}: no statements");
        problems.extend(run(&name, &records));
    }
    assert!(problems.is_empty(), "{} problem(s):\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn a_wrong_answer_is_noticed() {
    let text = "# sample\n> CREATE TABLE t (a INTEGER)\nSELECT 1\n: integer\n= 2\nSELECT 1\n: text\n\
                = 1\nSELECT 1/0\n! 22012\nSELECT 1\n! 22012\nSELECT 1, NULL::text\n: integer, text\n\
                = 1|NULL\nSELECT a FROM t\n: integer\n";
    let problems = run("sample", &parse(text));
    let lines: Vec<&str> = problems.iter().filter_map(|p| p.split(' ').next()).collect();
    assert_eq!(lines, ["sample:3:", "sample:6:", "sample:11:"], "{problems:?}");
}
