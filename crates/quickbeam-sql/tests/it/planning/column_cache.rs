//! The column cache: its answers are those of rows, whatever changes between two queries.

use std::cell::Cell;
use std::time::Duration;

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase};
use quickbeam_testing::Random;

use super::lines;

const ROWS: usize = 12_000;

const QUERIES: [&str; 9] = [
    "SELECT count(*) FROM t",
    "SELECT count(*), count(a), sum(a), min(n), max(n), sum(n), min(s), max(d) FROM t",
    "SELECT s, count(*), sum(a), avg(n) FROM t WHERE a < 400 AND d >= '2020-06-01' GROUP BY s",
    "SELECT sum(n * a) FROM t WHERE n BETWEEN 10 AND 60 AND s <> 's3' AND f < 2000",
    "SELECT count(*), sum(f) FROM t WHERE b OR a IS NULL",
    "SELECT name, count(*), sum(t.a) FROM t JOIN k ON k.id = t.k WHERE k.id > 5 GROUP BY name",
    "SELECT sum(1000 / v) FROM t WHERE v <> 0 AND 1000 / v > 3",
    "SELECT id, a, s FROM t WHERE a > 990 ORDER BY a, id LIMIT 20",
    "SELECT count(x), sum(x) FROM (SELECT a AS x FROM t WHERE id > 6000) y",
];

/// A database with a table of many leaves.
fn filled() -> SqlDatabase {
    let options = Options::new().durability(Durability::InMemory);
    let database = SqlDatabase::open_in_memory(options).unwrap();
    let script = format!(
        "CREATE TABLE k (id INTEGER PRIMARY KEY, name TEXT);
         INSERT INTO k SELECT i, 'k' || i % 4 FROM generate_series(0, 19) i;
         CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER NOT NULL, a INTEGER, v INTEGER NOT NULL,
             n NUMERIC(12, 2) NOT NULL, s TEXT, d DATE NOT NULL, f DOUBLE PRECISION, b BOOLEAN);
         INSERT INTO t SELECT i, i * 7 % 20, nullif(i * 31 % 1009, 7), i % 5, i % 977 / 4.0,
             's' || i % 9, DATE '2020-01-01' + i % 500, i / 3.0, i % 3 = 0
         FROM generate_series(1, {ROWS}) i"
    );
    database.connect().execute_script(&script).unwrap();
    database
}

fn connect(database: &SqlDatabase, mode: &str) -> Connection {
    let connection = database.connect();
    connection.execute_script(&format!("SET execution_mode = '{mode}'")).unwrap();
    connection
}

/// Makes every version in the tables visible to all: then leaves may be kept.
fn settle(database: &SqlDatabase) {
    for _ in 0..200 {
        connect(database, "row").execute("DELETE FROM k WHERE id = -1", &[]).unwrap();
        ask_three_times(database, "SELECT sum(v) FROM t");
        // The numbers of all rows.
        if database.column_cache_bytes() > 8 * ROWS {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{} bytes are kept", database.column_cache_bytes());
}

fn ask_three_times(database: &SqlDatabase, text: &str) {
    let connection = connect(database, "vectorized");
    (0..3).for_each(|_| drop(lines(&connection, text)));
}

fn change(connection: &Connection, random: &mut Random) {
    let (id, other) = (random.below(ROWS), random.below(1000));
    let text = match random.below(6) {
        0 => format!("DELETE FROM t WHERE id BETWEEN {id} AND {id} + {other} / 10"),
        1 => format!("UPDATE t SET s = repeat('x', {other}) WHERE id BETWEEN {id} AND {id} + 9"),
        2 => format!("UPDATE t SET a = NULL, v = 0 WHERE id = {id}"),
        3 => format!(
            "INSERT INTO t SELECT {ROWS} + {id} * 10 + i, i, i, 1, i, NULL, '2021-01-01', 0.5, true
             FROM generate_series(0, 9) i ON CONFLICT (id) DO NOTHING"
        ),
        _ => format!("UPDATE t SET a = a + 1, n = n + 0.25, v = v + 1 WHERE id = {id}"),
    };
    connection.execute(&text, &[]).unwrap();
}

#[test]
fn answers_are_those_of_rows_after_every_change() {
    let database = filled();
    settle(&database);
    let (cached, rows) = (connect(&database, "vectorized"), connect(&database, "row"));
    let old = connect(&database, "vectorized");
    let mut random = Random::new(11);
    let mut most = 0;
    old.execute_script("BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
    let mut expected: Vec<_> = QUERIES.iter().map(|text| lines(&old, text)).collect();
    for round in 0..30 {
        if random.below(4) == 0 {
            cached.execute_script("BEGIN").unwrap();
            change(&cached, &mut random);
            QUERIES.iter().for_each(|text| drop(lines(&cached, text)));
            cached
                .execute_script(if random.below(2) == 0 { "ROLLBACK" } else { "COMMIT" })
                .unwrap();
        } else {
            change(&rows, &mut random);
        }
        for (text, expected) in QUERIES.iter().zip(&expected) {
            assert_eq!(lines(&cached, text), lines(&rows, text), "round {round}: {text}");
            assert_eq!(&lines(&old, text), expected, "round {round}, old snapshot: {text}");
        }
        most = most.max(database.column_cache_bytes());
        if round % 10 == 0 {
            old.execute_script("COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ").unwrap();
            expected = QUERIES.iter().map(|text| lines(&old, text)).collect();
        }
    }
    assert!(most > 256 << 10, "at most {most} bytes were kept");
}

#[test]
fn columns_follow_the_definition_of_the_table() {
    let database = filled();
    settle(&database);
    let (cached, other) = (connect(&database, "vectorized"), connect(&database, "vectorized"));
    let ask = |connection: &Connection, text: &str| {
        (0..4).map(|_| lines(connection, text)).collect::<Vec<_>>().dedup();
        lines(connection, text)
    };
    let before = ask(&cached, "SELECT sum(v), count(*) FROM t");
    cached.execute_script("BEGIN; ALTER TABLE t ADD COLUMN w INTEGER NOT NULL DEFAULT 3").unwrap();
    assert_eq!(ask(&cached, "SELECT sum(w) FROM t"), ["36000"]);
    assert_eq!(ask(&other, "SELECT sum(v), count(*) FROM t"), before);
    cached
        .execute_script("ROLLBACK; ALTER TABLE t ADD COLUMN w INTEGER NOT NULL DEFAULT 4")
        .unwrap();
    assert_eq!(ask(&cached, "SELECT sum(w) FROM t"), ["48000"]);
    cached.execute_script("ALTER TABLE t DROP COLUMN v").unwrap();
    assert_eq!(ask(&cached, "SELECT sum(w), max(a) FROM t"), ["48000 1008"]);
    cached.execute_script("TRUNCATE t").unwrap();
    assert_eq!(ask(&cached, "SELECT count(w), max(a) FROM t"), ["0 NULL"]);
}

#[test]
fn cache_keeps_its_size() {
    let database = filled();
    settle(&database);
    let all = "SELECT sum(k), sum(a), sum(v), sum(n), max(s), max(d), sum(f), count(b) FROM t";
    ask_three_times(&database, all);
    let whole = database.column_cache_bytes();
    assert!(whole > 400_000, "{whole} bytes");
    let expected = lines(&connect(&database, "row"), all);
    database.set_column_cache_size(whole / 2);
    assert_eq!(database.column_cache_bytes(), 0);
    ask_three_times(&database, all);
    let half = database.column_cache_bytes();
    assert!(half > whole / 8 && half <= whole / 2, "{half} of {whole} bytes");
    assert_eq!(lines(&connect(&database, "vectorized"), all), expected);
    // Another table takes the place of one that was not scanned since.
    let script = "CREATE TABLE u AS SELECT i, 'u' || i AS s FROM generate_series(1, 9000) i";
    database.connect().execute_script(script).unwrap();
    for _ in 0..200 {
        connect(&database, "row").execute("DELETE FROM k WHERE id = -1", &[]).unwrap();
        ask_three_times(&database, "SELECT sum(i), max(s) FROM u");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(database.column_cache_bytes() <= whole / 2);
    assert_eq!(lines(&connect(&database, "vectorized"), all), expected);
    // Columns of a table take the place of those that were not read since.
    database.set_column_cache_size(whole);
    let texts = "SELECT max(s), max(d), sum(f), count(b) FROM t";
    let numbers = "SELECT sum(k), sum(a), sum(v), sum(n), sum(id) FROM t";
    ask_three_times(&database, texts);
    let kept = database.column_cache_bytes();
    database.set_column_cache_size(kept * 5 / 4);
    for text in [texts, numbers, texts] {
        ask_three_times(&database, text);
        let bytes = database.column_cache_bytes();
        assert!(bytes > kept / 2 && bytes <= kept * 5 / 4, "{bytes} bytes, {kept} of texts");
    }
    assert_eq!(lines(&connect(&database, "vectorized"), all), expected);
    database.set_column_cache_size(0);
    ask_three_times(&database, all);
    assert_eq!(database.column_cache_bytes(), 0);
}

#[test]
fn an_error_leaves_the_cache_usable() {
    let database = filled();
    settle(&database);
    let (cached, rows) = (connect(&database, "vectorized"), connect(&database, "row"));
    let text = "SELECT sum(1000 / v) FROM t";
    for _ in 0..4 {
        let failed = cached.query(text, &[]).and_then(|rows| rows.collect()).unwrap_err();
        assert_eq!(failed.state().code(), "22012");
    }
    for text in QUERIES {
        (0..3).for_each(|_| assert_eq!(lines(&cached, text), lines(&rows, text), "{text}"));
    }
}

/// Waits until the plan of a new text has `wanted`. Each round runs `query`, which reads columns
/// into the cache: leaves are kept once their versions are visible to all.
fn wait_for_plan(database: &SqlDatabase, query: &str, mut has_wanted: impl FnMut() -> bool) {
    for _ in 0..200 {
        ask_three_times(database, query);
        if has_wanted() {
            return;
        }
        connect(database, "row").execute("DELETE FROM k WHERE id = -1", &[]).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{query} does not change the plan");
}

#[test]
fn ranges_of_cached_columns_are_scanned() {
    let database = filled();
    let connection = connect(&database, "auto");
    let script = "CREATE TABLE r (id INTEGER PRIMARY KEY, d INTEGER NOT NULL, v INTEGER NOT NULL);
        INSERT INTO r SELECT i, i, i % 5 FROM generate_series(1, 40000) i;
        CREATE INDEX r_d ON r (d)";
    connection.execute_script(script).unwrap();
    // A new text each time, because the plan of a text is kept.
    let mut number = 0;
    let mut path = |connection: &Connection| {
        number += 1;
        let range = "d BETWEEN 20000 AND 23000";
        let text = format!("EXPLAIN SELECT v, sum(id) + {number} FROM r WHERE {range} GROUP BY v");
        let plan = lines(connection, &text).join("\n");
        if plan.contains("Seq Scan") { "scan" } else { "index" }
    };
    assert_eq!(path(&connection), "index", "the column is not in the cache");
    wait_for_plan(&database, "SELECT max(d), sum(v) FROM r", || path(&connection) == "scan");
    assert_eq!(path(&connect(&database, "row")), "index", "rows do not come from the cache");
    database.set_column_cache_size(0);
    assert_eq!(path(&connection), "index", "the cache is empty");
}

#[test]
fn joins_of_cached_columns_are_vectorized() {
    let database = filled();
    let connection = connect(&database, "auto");
    let script = "CREATE TABLE r (id INTEGER PRIMARY KEY, d INTEGER NOT NULL, v INTEGER NOT NULL);
        INSERT INTO r SELECT i, i, i % 5 FROM generate_series(1, 40000) i;
        CREATE INDEX r_d ON r (d);
        CREATE TABLE u (id INTEGER PRIMARY KEY, r INTEGER NOT NULL, n INTEGER NOT NULL);
        INSERT INTO u SELECT i, 40001 - i, i % 7 FROM generate_series(1, 40000) i;
        CREATE INDEX u_r ON u (r)";
    connection.execute_script(script).unwrap();
    let number = Cell::new(0);
    let text = |days: usize| {
        number.set(number.get() + 1);
        let (number, last) = (number.get(), 20_000 + days);
        format!(
            "SELECT v, sum(n) + 0 * {number} FROM r JOIN u ON u.r = r.id
             WHERE d BETWEEN 20001 AND {last} GROUP BY v ORDER BY v"
        )
    };
    let by_lookups = lines(&connection, &text(500));
    let steps = |days: usize| {
        let plan = lines(&connection, &format!("EXPLAIN {}", text(days))).join("\n");
        let has = |step: &str| plan.contains(step);
        (has("Nested Loop"), has("Hash Join (vectorized)"), has("Index Scan using r_d"))
    };
    assert_eq!(steps(500), (true, false, true), "nothing is in the cache");
    assert_eq!(steps(4000), (false, true, true), "nothing is in the cache");
    wait_for_plan(&database, "SELECT max(r), sum(n) FROM u", || steps(500) == (false, true, true));
    wait_for_plan(&database, "SELECT max(id), max(d), sum(v) FROM r", || {
        steps(4000) == (false, true, false)
    });
    assert_eq!(steps(500), (false, true, false), "rows of an index are fetched one by one");
    assert_eq!(lines(&connection, &text(500)), by_lookups);
    database.set_column_cache_size(0);
    assert_eq!(steps(500), (true, false, true), "the cache is empty");
}

#[test]
fn other_columns_of_a_quiet_table_are_scanned() {
    let database = filled();
    let connection = connect(&database, "auto");
    let script = "CREATE TABLE r (id INTEGER PRIMARY KEY, v INTEGER NOT NULL);
        INSERT INTO r SELECT i, i % 5 FROM generate_series(1, 4000) i;
        CREATE TABLE u (id INTEGER PRIMARY KEY, r INTEGER NOT NULL, n INTEGER NOT NULL);
        INSERT INTO u SELECT i, i, i % 7 FROM generate_series(1, 80000) i;
        CREATE INDEX u_r ON u (r)";
    connection.execute_script(script).unwrap();
    let number = Cell::new(0);
    let text = || {
        number.set(number.get() + 1);
        let zero = format!("0 * {}", number.get());
        format!(
            "SELECT v, count(*) + {zero} FROM r WHERE id < 900 AND EXISTS
             (SELECT 1 FROM u WHERE u.r = r.id AND u.n > 3) GROUP BY v ORDER BY v"
        )
    };
    let is_scanned = || {
        let plan = lines(&connection, &format!("EXPLAIN {}", text())).join("\n");
        plan.contains("Hash Right Semi Join (vectorized)")
    };
    let by_lookups = lines(&connection, &text());
    assert!(!is_scanned(), "nothing is in the cache");
    wait_for_plan(&database, "SELECT sum(r) FROM u", is_scanned);
    assert_eq!(lines(&connection, &text()), by_lookups);
    database.set_column_cache_size(0);
    assert!(!is_scanned(), "the cache is empty");
}
