//! Plans: what EXPLAIN shows, what statistics change, and that every execution is a fresh one.

mod adaptive;
mod column_cache;
mod derived_conditions;
mod executions;
mod filtered_scans;
mod from_queries;
mod indexes;
mod lookups;
mod plan_choices;
mod row_tests;
mod statistics;
mod workers;

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase};

/// A connection to a database in memory that the script has filled.
fn filled_by(script: &str) -> Connection {
    let options = Options::new().durability(Durability::InMemory);
    let c = SqlDatabase::open_in_memory(options).unwrap().connect();
    c.execute_script(script).unwrap();
    c
}

/// The rows of a query, a line each.
fn lines(c: &Connection, text: &str) -> Vec<String> {
    let rows = c.query(text, &[]).unwrap().collect().unwrap();
    let shown = |row: &Vec<quickbeam_sql::Value>| {
        row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(shown).collect()
}

/// The plan of a query.
fn plan(c: &Connection, text: &str) -> String {
    lines(c, &format!("EXPLAIN {text}")).join("\n")
}
