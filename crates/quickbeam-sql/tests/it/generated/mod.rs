//! Generated statements, compared with a model, with SQLite, between both executions and between
//! plans.

mod collated_indexes;
mod decimal_columns;
mod differential;
mod differential_schemas;
mod from_queries;
mod inverted_indexes;
mod model;
mod nested_keys;
mod planner_variants;
mod properties;
mod sqlite;

use quickbeam_sql::Connection;

/// Returns the first column of a query's rows, as text.
fn ids(c: &Connection, query: &str) -> Vec<String> {
    let rows = c.query(query, &[]).unwrap().collect().unwrap();
    rows.iter().map(|row| row[0].to_string()).collect()
}

/// Compares a query's answer by an index with that of a scan of the table. `setting` allows scans
/// by such indexes. Returns whether the plan has these words, which name the scan by the index.
fn compare_with_scan(c: &Connection, query: &str, setting: &str, words: &str, seed: u64) -> bool {
    c.execute_script(&format!("SET {setting} = off; SET enable_seqscan = on")).unwrap();
    let expected = ids(c, query);
    c.execute_script(&format!("SET {setting} = on; SET enable_seqscan = off")).unwrap();
    let plan = c.query(&format!("EXPLAIN {query}"), &[]).unwrap().collect().unwrap();
    assert_eq!(ids(c, query), expected, "seed {seed}: {query}");
    format!("{plan:?}").contains(words)
}
