//! Scans by rows whose filter is evaluated by columns.

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase};
use quickbeam_testing::Random;

use super::lines;

fn open() -> SqlDatabase {
    let options = Options::new().durability(Durability::InMemory).cache_size(16 << 20);
    SqlDatabase::open_in_memory(options).unwrap()
}

fn connect(database: &SqlDatabase, mode: &str) -> Connection {
    let connection = database.connect();
    connection.execute(&format!("SET execution_mode = {mode}"), &[]).unwrap();
    connection
}

/// 12,000 rows under keys of a text and a number, with NULLs, and a small table.
fn filled() -> SqlDatabase {
    let database = open();
    let connection = database.connect();
    for text in [
        "CREATE TABLE t (b TEXT, a INTEGER, c INTEGER, d TEXT, n NUMERIC(9, 2), PRIMARY KEY (b, a))",
        "INSERT INTO t SELECT 'k' || i % 700, i, NULLIF(i % 100, 7), 'text ' || i, i * 0.25
         FROM generate_series(1, 12000) i",
        "CREATE TABLE w (f INTEGER NOT NULL, x TEXT, k INTEGER PRIMARY KEY)",
        "INSERT INTO w SELECT i % 500, repeat('x', 90), i FROM generate_series(1, 6000) i",
        "CREATE TABLE u (id INTEGER PRIMARY KEY, c INTEGER)",
        "INSERT INTO u SELECT i, i % 100 FROM generate_series(1, 40) i",
        "ANALYZE",
    ] {
        connection.execute(text, &[]).unwrap();
    }
    database
}

const QUERIES: [&str; 12] = [
    "SELECT * FROM t WHERE d LIKE '%999%'",
    "SELECT a, d FROM t WHERE d LIKE '%99%' AND c <> 5 AND n > 100.5",
    "SELECT * FROM t WHERE c IS NULL AND b = 'k7'",
    "SELECT * FROM t WHERE d LIKE '%11%' AND c IN (11, 12) OR d = 'text 5' LIMIT 4",
    "SELECT u.id, t.a FROM t JOIN u ON u.id = t.c + 1 WHERE t.d LIKE '%77%'",
    "SELECT u.id, t.a FROM u LEFT JOIN t ON u.c = t.c AND t.d LIKE '%23%' ORDER BY 1, 2",
    "SELECT b, count(*) FROM t WHERE d LIKE '%44%' GROUP BY b ORDER BY b LIMIT 9",
    "SELECT a FROM t WHERE d LIKE '%5%5%5%' ORDER BY n DESC LIMIT 5",
    // Most rows pass: the scan goes on by rows.
    "SELECT a, c FROM t WHERE d LIKE 'text%' AND c > 3",
    "SELECT k, x FROM w WHERE f > 5 AND k <> 70",
    // Only a column before those of the key is read.
    "SELECT f FROM w WHERE f = 5",
    "SELECT a FROM t WHERE d LIKE '%321%' UNION SELECT id FROM u WHERE c = 3 ORDER BY 1",
];

#[test]
fn filtered_rows_are_those_of_execution_by_rows() {
    let database = filled();
    let modes = ["auto", "vectorized", "row"].map(|mode| connect(&database, mode));
    let [auto, vectorized, by_rows] = &modes;
    let mut random = Random::new(5);
    for round in 0..12 {
        for text in QUERIES {
            let expected = lines(by_rows, text);
            assert!(!expected.is_empty(), "{text}");
            assert_eq!(lines(auto, text), expected, "{text}, round {round}");
            assert_eq!(lines(vectorized, text), expected, "{text}, round {round}");
        }
        // Columns are kept while nothing changes.
        if round % 4 == 3 {
            let a = random.below(12_000);
            let text =
                format!("UPDATE t SET d = d || '999', c = 23 WHERE a BETWEEN {a} AND {a} + 9");
            by_rows.execute(&text, &[]).unwrap();
            by_rows.execute(&format!("DELETE FROM t WHERE a = {a} + 10"), &[]).unwrap();
        }
    }
}

#[test]
fn a_filtered_scan_sees_changes_of_its_own_transaction() {
    let database = filled();
    let connection = connect(&database, "vectorized");
    let text = "SELECT a FROM t WHERE d LIKE '%new%'";
    (0..3).for_each(|_| assert!(lines(&connection, text).is_empty()));
    let other = connect(&database, "vectorized");
    connection.execute("BEGIN", &[]).unwrap();
    connection.execute("UPDATE t SET d = 'new' WHERE a IN (3, 11000)", &[]).unwrap();
    connection.execute("INSERT INTO t VALUES ('k', 0, 1, 'newer', 0)", &[]).unwrap();
    assert_eq!(lines(&connection, text).len(), 3);
    assert!(lines(&other, text).is_empty());
    connection.execute("ROLLBACK", &[]).unwrap();
    assert!(lines(&connection, text).is_empty());
}

#[test]
fn filters_go_by_columns_where_few_rows_pass() {
    let database = filled();
    let connection = connect(&database, "auto");
    let is_vectorized = |text: &str| {
        let plan = lines(&connection, &format!("EXPLAIN {text}"));
        plan.iter().any(|line| line.contains("Scan on t") && line.contains("(vectorized)"))
    };
    let few = "SELECT * FROM t WHERE c = 99 AND d LIKE '%999%'";
    assert!(is_vectorized(few));
    assert!(is_vectorized(&format!("{few} ORDER BY d LIMIT 1")));
    // The scan stops at the limit, or a row after it may fail.
    assert!(!is_vectorized(&format!("{few} LIMIT 1")));
    assert!(!is_vectorized("SELECT * FROM t WHERE c = 99 AND 1 / (c - 98) = 1"));
    // Most rows pass.
    assert!(!is_vectorized("SELECT * FROM t WHERE c > 3"));
    // Rows that are locked or changed are those of the scan.
    assert!(!is_vectorized(&format!("{few} FOR UPDATE")));
    assert!(!is_vectorized("DELETE FROM t WHERE c = 99 AND d LIKE '%999%'"));
    connection.execute("CREATE SEQUENCE s", &[]).unwrap();
    assert!(!is_vectorized("SELECT nextval('s') FROM t WHERE c = 99 AND d LIKE '%999%'"));
}
