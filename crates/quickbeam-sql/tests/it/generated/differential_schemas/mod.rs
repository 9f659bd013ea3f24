//! As `differential.rs`, on generated schemas: tables with keys, constraints and indexes of all
//! kinds, views, queries and changes of them. What Quickbeam answers directly (vectorized), and
//! what SQLite answers must be the same; after each change, so must be every table.
//!
//! Statements are trees of choices that are made against the schema as the text is written: what
//! differs is shrunk in both, each by itself.

mod change;
mod from;
mod query;
mod schema;
mod select;

use std::fmt;

use super::differential::{WAYS, set_way};
use super::sqlite::{self, Answer};
use change::{Statement, Step, Writer, statement};
use proptest::prelude::*;
use query::{Relation, TRAP};
use quickbeam::{Durability, Isolation, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value};
use rusqlite::types::ValueRef;
use schema::{Table, table};
use select::{Query, Written};

#[derive(Clone)]
struct Case {
    tables: Vec<Table>,
    view: Option<Query>,
    statements: Vec<Statement>,
    isolation: Isolation,
}

/// What is executed: definitions and rows for either side, then the statements.
struct Script {
    definitions: Vec<[String; 2]>,
    tables: Vec<String>,
    steps: Vec<(String, Step)>,
}

impl Case {
    fn script(&self) -> Script {
        let traps = (-3..9).map(|k| format!("({k}, 1)")).collect::<Vec<_>>().join(", ");
        let trap = [
            format!("CREATE TABLE {TRAP} (k INTEGER PRIMARY KEY, n INTEGER)"),
            format!("INSERT INTO {TRAP} VALUES {traps}"),
        ];
        let mut definitions: Vec<[String; 2]> = trap.map(|text| [text.clone(), text]).into();
        for table in &self.tables {
            let both = table.definition(true).into_iter().zip(table.definition(false));
            definitions.extend(both.map(|(ours, theirs)| [ours, theirs]));
        }
        let mut writer = Writer::new(&self.tables);
        if let Some(view) = &self.view {
            let Written { text, columns, .. } = view.written(&writer.relations);
            let is_one = |name: &String| columns.iter().filter(|it| it.0 == *name).count() == 1;
            if columns.iter().all(|it| is_one(&it.0)) {
                let text = format!("CREATE VIEW v0 AS {text}");
                definitions.push([text.clone(), text]);
                writer.relations.push(Relation { name: "v0".to_owned(), columns });
            }
        }
        let mut steps = Vec::new();
        self.statements.iter().for_each(|statement| writer.write(statement, &mut steps));
        let tables = self.tables.iter().map(|table| table.name.clone()).collect();
        Script { definitions, tables, steps }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Script { definitions, steps, .. } = self.script();
        writeln!(f, "{:?}", self.isolation)?;
        definitions.iter().try_for_each(|[ours, _]| writeln!(f, "{ours};"))?;
        steps.iter().try_for_each(|(text, _)| writeln!(f, "{text};"))
    }
}

fn case() -> impl Strategy<Value = Case> {
    let isolation = prop::sample::select(vec![
        Isolation::Serializable,
        Isolation::Snapshot,
        Isolation::ReadCommitted,
    ]);
    let third = prop::option::of(table(2));
    let view = prop::option::weighted(0.3, select::query(0));
    let statements = prop::collection::vec(statement(), 1..=12);
    (table(0), table(1), third, view, statements, isolation).prop_map(
        |(first, second, third, view, statements, isolation)| {
            let tables = [first, second].into_iter().chain(third).collect();
            Case { tables, view, statements, isolation }
        },
    )
}

/// A value as it is compared: 1.00 is 1, as truth is.
fn shown(value: &Value) -> String {
    match value {
        Value::Boolean(truth) => i32::from(*truth).to_string(),
        // -0 is 0.
        Value::Double(number) => (number + 0.0).to_string(),
        Value::Numeric(number) => {
            let text = number.to_string();
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            }
        }
        other => other.to_string(),
    }
}

fn ours(connection: &Connection, text: &str) -> Answer {
    let rows = connection
        .query(text, &[])
        .and_then(|rows| rows.collect())
        .map_err(|error| error.to_string())?;
    Ok(rows.iter().map(|row| row.iter().map(shown).collect::<Vec<_>>().join("|")).collect())
}

fn theirs(connection: &rusqlite::Connection, text: &str) -> Answer {
    sqlite::answer(connection, text, MOST_ROWS, |value| match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => (number + 0.0).to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Blob(bytes) => format!("{bytes:?}"),
    })
}

/// Bytes that a statement may keep.
const MEMORY: usize = 64 << 20;

/// An execution of a query that ends with an error in the middle, without memory, or early: the
/// next one answers as if it had not been. There is one of them before each answer: what it leaves
/// must not be used up by another.
fn disturb(connection: &Connection, text: &str, turn: usize) {
    if text.contains(TRAP) && !turn.is_multiple_of(3) {
        let spring = format!("UPDATE {TRAP} SET n = 0 WHERE k = {}", turn % 7);
        connection.execute(&spring, &[]).unwrap();
        let _ = ours(connection, text);
        connection.execute(&format!("UPDATE {TRAP} SET n = 1"), &[]).unwrap();
    } else if turn.is_multiple_of(2) {
        connection.set_memory_limit(64 << (turn % 9));
        let _ = ours(connection, text);
        connection.set_memory_limit(MEMORY);
    } else if let Ok(mut rows) = connection.query(text, &[]) {
        let _ = rows.next();
    }
}

/// Whether SQLite gave a statement up for being too much work: views of joins, joined, can be. It
/// has changed nothing then.
fn is_too_much(answer: &Answer) -> bool {
    answer.as_ref().is_err_and(|error| error == sqlite::TOO_MUCH)
}

/// Steps of SQLite's machine that a statement may take, and rows that it may deliver.
const MOST_STEPS: i32 = 2_000_000;
const MOST_ROWS: usize = 20_000;

/// What fails has to fail in both.
fn compare(text: &str, left: Answer, right: Answer, ordered: bool) -> Result<(), TestCaseError> {
    match (left, right) {
        (Ok(mut left), Ok(mut right)) => {
            if !ordered {
                left.sort();
                right.sort();
            }
            prop_assert_eq!(left, right, "{}", text);
        }
        (Err(_), Err(_)) => {}
        (left, right) => prop_assert!(false, "{}\n{:?}\n{:?}", text, left, right),
    }
    Ok(())
}

proptest! {
    #![proptest_config(sqlite::config(1_000))]

    #[test]
    fn generated_schemas_mean_what_they_mean_in_sqlite(case in case()) {
        let options = Options::new()
            .durability(Durability::InMemory)
            .cache_size(4 << 20)
            .isolation(case.isolation);
        let connection = SqlDatabase::open_in_memory(options).unwrap().connect();
        let mut sqlite = sqlite::memory();
        sqlite.progress_handler(MOST_STEPS, Some(|| true)).unwrap();
        let Script { definitions, tables, steps } = case.script();
        for [here, there] in &definitions {
            compare(here, ours(&connection, here), theirs(&sqlite, there), false)?;
        }
        let contents: Vec<String> = tables.iter().map(|table| format!("SELECT * FROM {table}")).collect();
        for (turn, (text, step)) in steps.iter().enumerate() {
            match step {
                Step::Query { ordered } => {
                    let sqlite = theirs(&sqlite, text);
                    if is_too_much(&sqlite) {
                        continue;
                    }
                    for (nth, way) in WAYS.into_iter().enumerate() {
                        set_way(&connection, way);
                        disturb(&connection, text, turn + nth);
                        let answer = ours(&connection, text);
                        compare(&format!("{way:?}: {text}"), answer, sqlite.clone(), *ordered)?;
                    }
                }
                Step::Change | Step::Control => {
                    // SQLite lets DO UPDATE change a row twice, which PostgreSQL refuses.
                    let may_repeat = text.contains("DO UPDATE") && text.contains("), (");
                    if may_repeat {
                        sqlite.execute_batch("SAVEPOINT once").unwrap();
                    }
                    let right = theirs(&sqlite, text);
                    let is_given_up = is_too_much(&right);
                    let left = if is_given_up { right.clone() } else { ours(&connection, text) };
                    let is_repeated = may_repeat
                        && left.as_ref().is_err_and(|error| error.contains("a second time"));
                    if may_repeat {
                        let undo = if is_repeated { "ROLLBACK TO once; " } else { "" };
                        sqlite.execute_batch(&format!("{undo}RELEASE once")).unwrap();
                    }
                    if is_given_up {
                        continue;
                    }
                    if !is_repeated {
                        compare(text, left, right, false)?;
                    }
                    for content in &contents {
                        let (left, right) = (ours(&connection, content), theirs(&sqlite, content));
                        compare(&format!("{content}, after {text}"), left, right, false)?;
                    }
                }
            }
        }
    }
}
