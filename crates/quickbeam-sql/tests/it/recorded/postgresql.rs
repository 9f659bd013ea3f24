//! Statements with the answers of PostgreSQL 15, `tests/postgresql/*.test`, each run in row and in
//! vectorized execution.
//!
//! A file is a list of records with empty lines between them. A record is a statement, a line
//! `-> types` with the types of its columns, and its rows, whose values have `|` between them and
//! NULL as `NULL`. Other results are `-> ok` and `-> error SQLSTATE`. A statement that begins with
//! the comment `-- rowsort` returns its rows in any order. `tests/postgresql/record` writes the
//! answers of a running PostgreSQL into the files.

use std::fs;
use std::path::Path;

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value};

use super::text_of;

/// A statement and the lines of its answer.
struct Record {
    line: usize,
    text: String,
    answer: Vec<String>,
}

fn records(text: &str) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut record = Record { line: number + 1, text: line.to_owned(), answer: Vec::new() };
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.is_empty()) {
            if record.answer.is_empty() && !line.starts_with("-> ") {
                record.text.push('\n');
                record.text.push_str(line);
            } else {
                record.answer.push(line.to_owned());
            }
        }
        records.push(record);
    }
    records
}

fn answer(connection: &Connection, text: &str) -> Vec<String> {
    let rows = match connection.query(text, &[]) {
        Ok(rows) => rows,
        Err(error) => return vec![format!("-> error {}", error.code())],
    };
    let types: Vec<String> =
        rows.columns().iter().map(|column| column.data_type.to_string()).collect();
    let rows = match rows.collect() {
        Ok(rows) => rows,
        Err(error) => return vec![format!("-> error {}", error.code())],
    };
    if types.is_empty() {
        return vec!["-> ok".to_owned()];
    }
    let settings = connection.text_settings();
    let shown = |value: &Value| text_of(value, &settings);
    let mut lines: Vec<String> =
        rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join("|")).collect();
    if text.starts_with("-- rowsort") {
        lines.sort();
    }
    lines.insert(0, format!("-> {}", types.join(", ")));
    lines
}

fn run(path: &Path, mode: &str) -> Vec<String> {
    let options = Options::new().durability(Durability::InMemory);
    let database = SqlDatabase::open_in_memory(options).unwrap();
    let connection = database.connect();
    connection.execute_script(&format!("SET execution_mode = {mode}")).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let mut wrong = Vec::new();
    for record in records(&fs::read_to_string(path).unwrap()) {
        let found = answer(&connection, &record.text);
        if found != record.answer {
            wrong.push(format!(
                "{name}:{} ({mode})\n{}\nexpected\n{}\nfound\n{}\n",
                record.line,
                record.text,
                record.answer.join("\n"),
                found.join("\n")
            ));
        }
    }
    wrong
}

#[test]
fn statements_answer_as_in_postgresql() {
    let files = super::files("postgresql", "test");
    let wrong: Vec<String> = files
        .iter()
        .flat_map(|path| ["row", "vectorized", "auto"].into_iter().flat_map(|mode| run(path, mode)))
        .collect();
    assert!(wrong.is_empty(), "{} wrong answers\n{}", wrong.len(), wrong.join("\n"));
}
