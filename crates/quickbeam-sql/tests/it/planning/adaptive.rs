//! Nested loops of far more rows than estimated, which a hash join takes over from.

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value};

/// Rows whose columns are all equal, which the planner does not know for parameters.
fn filled() -> Connection {
    let options = Options::new().durability(Durability::InMemory);
    let c = SqlDatabase::open_in_memory(options).unwrap().connect();
    c.execute_script(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c INTEGER, k INTEGER);
         CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER);
         INSERT INTO t SELECT g, 1, 1, 1, nullif(g % 4000, 17) FROM generate_series(1, 9000) AS g;
         INSERT INTO u SELECT g, g % 13 FROM generate_series(1, 3000) AS g",
    )
    .unwrap();
    c
}

fn answer(c: &Connection, text: &str) -> Vec<Vec<Value>> {
    let ones = [Value::Integer(1), Value::Integer(1), Value::Integer(1)];
    c.query(text, &ones).unwrap().collect().unwrap()
}

const CONDITION: &str = "t.a = $1 AND t.b = $2 AND t.c = $3";

#[test]
fn a_nested_loop_of_too_many_rows_becomes_a_hash_join() {
    let c = filled();
    for join in ["JOIN", "LEFT JOIN"] {
        for text in [
            format!(
                "SELECT count(*), count(u.v), sum(t.id), sum(u.v) FROM t {join} u ON u.id = t.k WHERE {CONDITION}"
            ),
            format!(
                "SELECT t.id, u.v FROM t {join} u ON u.id = t.k AND u.v <> 3 WHERE {CONDITION} ORDER BY t.id"
            ),
            format!(
                "SELECT x.i, (SELECT sum(u.v + x.i) FROM t {join} u ON u.id = t.k AND u.v <> x.i WHERE {CONDITION}) FROM (VALUES (1), (2), (9)) x(i) ORDER BY 1"
            ),
        ] {
            let explained = answer(&c, &format!("EXPLAIN ANALYZE {text}"));
            let lines: Vec<String> = explained.iter().map(|row| row[0].to_string()).collect();
            let told = lines.iter().find_map(|line| line.split_once("Hash Join beyond "));
            let (_, most) = told.unwrap_or_else(|| panic!("{}", lines.join("\n")));
            let most: u64 = most.split(' ').next().unwrap().parse().unwrap();
            assert!(most < 9_000, "{most}");
            let adapted = answer(&c, &text);
            if !text.contains("VALUES") {
                let lookups = lines.iter().find(|line| line.contains("Primary Key Lookup on u"));
                let lookups = lookups.unwrap().rsplit_once("actual rows=").unwrap().1;
                let lookups: u64 = lookups.trim_end_matches(')').parse().unwrap();
                assert!(lookups <= most + 1, "{lookups} of {most}: {}", lines.join("\n"));
            }
            c.execute("SET enable_hashjoin = off", &[]).unwrap();
            assert_eq!(adapted, answer(&c, &text), "{text}");
            c.execute("RESET enable_hashjoin", &[]).unwrap();
        }
    }
}

#[test]
fn rows_found_after_the_change_can_be_changed() {
    let c = filled();
    let ones = [Value::Integer(1), Value::Integer(1), Value::Integer(1)];
    let change = format!("UPDATE t SET a = u.v + 10 FROM u WHERE u.id = t.k AND {CONDITION}");
    let mut sums = Vec::new();
    for setting in ["on", "off"] {
        c.execute(&format!("SET enable_hashjoin = {setting}"), &[]).unwrap();
        c.execute("BEGIN", &[]).unwrap();
        let changed = c.execute(&change, &ones).unwrap();
        let rows = c.query("SELECT sum(a), sum(a * id) FROM t", &[]).unwrap().collect().unwrap();
        sums.push((format!("{changed:?}"), rows));
        c.execute("ROLLBACK", &[]).unwrap();
    }
    assert_eq!(sums[0], sums[1]);
}
