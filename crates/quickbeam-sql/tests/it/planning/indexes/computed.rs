//! Which conditions and orders use an index on an expression, or a partial index.

use quickbeam::Options;
use quickbeam_sql::{Connection, SqlDatabase};

fn filled() -> (SqlDatabase, Connection) {
    let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
    let c = database.connect();
    c.execute_script(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT, age INTEGER, live BOOLEAN);
         INSERT INTO person SELECT g, 'Name ' || g, g % 90, g % 50 = 0
             FROM generate_series(1, 5000) AS g;
         CREATE INDEX by_name ON person (lower(name));
         CREATE INDEX by_age ON person (age) WHERE live;
         CREATE INDEX old ON person (id) WHERE age > 80 AND name IS NOT NULL",
    )
    .unwrap();
    (database, c)
}

fn plan(c: &Connection, text: &str) -> String {
    let rows = c.query(&format!("EXPLAIN {text}"), &[]).unwrap().collect().unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row[0].to_string()).collect();
    lines.join("\n")
}

#[test]
fn equal_expressions_are_looked_up() {
    let (_database, c) = filled();
    for condition in [
        "lower(name) = 'name 7'",
        "'name 7' = lower(name)",
        "lower(name) IN ('name 7', 'name 8')",
        "lower(name) > 'name 99' AND lower(name) < 'name 991'",
    ] {
        let plan = plan(&c, &format!("SELECT id FROM person WHERE {condition}"));
        assert!(plan.contains("using by_name"), "{condition}: {plan}");
    }
    let joined = "SELECT p.id FROM (VALUES ('name 7'), ('name 9')) v(n)
        JOIN person p ON lower(p.name) = v.n";
    assert!(plan(&c, joined).contains("using by_name"), "{}", plan(&c, joined));
    for condition in ["upper(name) = 'NAME 7'", "name = 'Name 7'"] {
        let plan = plan(&c, &format!("SELECT id FROM person WHERE {condition}"));
        assert!(!plan.contains("by_name"), "{condition}: {plan}");
    }
}

#[test]
fn an_order_by_an_expression_needs_no_sort() {
    let (_database, c) = filled();
    let ordered = plan(&c, "SELECT id FROM person ORDER BY lower(name) LIMIT 3");
    assert!(ordered.contains("by_name") && !ordered.contains("Sort"), "{ordered}");
}

#[test]
fn a_partial_index_is_used_where_its_predicate_is_implied() {
    let (_database, c) = filled();
    for (condition, index) in [
        ("live AND age = 7", Some("by_age")),
        ("live IS TRUE AND age = 7", Some("by_age")),
        ("live = true AND age > 85", Some("by_age")),
        ("live", Some("by_age")),
        ("age = 85 AND name LIKE 'Name 1%'", Some("old")),
        ("age IN (85, 86) AND name > 'N'", Some("old")),
        ("age >= 82 AND name = 'Name 85'", Some("old")),
        ("age = 7", None),
        ("NOT live AND age = 7", None),
        ("(live OR age = 7) AND age = 7", None),
        ("age >= 80 AND name = 'Name 85'", None),
        ("age = 85", None),
        ("age IN (85, 20) AND name = 'Name 85'", None),
    ] {
        let plan = plan(&c, &format!("SELECT id FROM person WHERE {condition}"));
        for name in ["by_age", "old"] {
            assert_eq!(plan.contains(name), index == Some(name), "{condition}: {plan}");
        }
    }
}

#[test]
fn a_partial_index_has_the_entries_of_its_rows_alone() {
    let (database, _c) = filled();
    assert_eq!(database.verify().unwrap().complaints, Vec::<String>::new());
    let verified = database.verify().unwrap();
    // One entry of each row in by_name, and of those that satisfy the predicates.
    assert_eq!(verified.entries, 5000 + 100 + 495);
}
