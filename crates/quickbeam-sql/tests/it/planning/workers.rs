//! Steps that several threads share: their answers are those of one thread, whatever happens.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value};

use super::{lines, plan};

const ROWS: i32 = 8_000;

/// A table of facts, which has many leaves, and one of their kinds. Scans do not use the column
/// cache, whose parts are few here.
fn facts() -> SqlDatabase {
    let database = cached_facts();
    database.set_column_cache_size(0);
    database
}

fn cached_facts() -> SqlDatabase {
    let options = Options::new().durability(Durability::InMemory);
    let database = SqlDatabase::open_in_memory(options).unwrap();
    let script = format!(
        "CREATE TABLE kind (k INTEGER PRIMARY KEY, name TEXT NOT NULL, weight NUMERIC(9, 2));
         INSERT INTO kind SELECT i, 'kind ' || i % 7, i * 3 / 2.0 FROM generate_series(0, 39) i;
         CREATE TABLE fact (id INTEGER PRIMARY KEY, k INTEGER, v INTEGER NOT NULL, big BIGINT,
             n NUMERIC(12, 2), w NUMERIC(30, 4), s TEXT, d DATE, f DOUBLE PRECISION, b BOOLEAN);
         INSERT INTO fact SELECT i, nullif(i::BIGINT * 7919 % 53, 50), i * 31 % 1009, i * BIGINT '100003',
             i % 977 / 4.0, i * 1234567.0 / 8, chr(97 + i * 17 % 26) || i % 300,
             DATE '2020-01-01' + i % 500, i / 3.0, i % 3 = 0 FROM generate_series(1, {ROWS}) i"
    );
    database.connect().execute_script(&script).unwrap();
    database
}

fn with_workers(database: &SqlDatabase, workers: usize) -> Connection {
    let connection = database.connect();
    let script = format!(
        "SET execution_mode = 'vectorized'; SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = {workers}"
    );
    connection.execute_script(&script).unwrap();
    connection
}

/// How many workers helped with a query.
fn launched(connection: &Connection, text: &str) -> Vec<String> {
    let all = lines(connection, &format!("EXPLAIN ANALYZE {text}"));
    let of_line = |line: &String| Some(line.split_once("Workers Launched: ")?.1.to_owned());
    all.iter().filter_map(of_line).collect()
}

const SHARED: [&str; 16] = [
    "SELECT count(*), sum(v), avg(n), min(d), max(s), sum(w), count(DISTINCT v) FROM fact",
    "SELECT k, count(*), sum(v), avg(v), min(n), max(n), sum(n * v) FROM fact GROUP BY k",
    "SELECT s, count(b), bool_and(b), bool_or(b), min(w), max(w) FROM fact GROUP BY s",
    "SELECT k, d, count(DISTINCT v), bit_xor(v), bit_or(v), bit_and(v) FROM fact GROUP BY k, d",
    "SELECT id, sum(v) FROM fact GROUP BY id",
    "SELECT v * 2, count(*) FILTER (WHERE k > 5), sum(big) FROM fact WHERE n < 200 GROUP BY 1",
    "SELECT count(*), sum(v) FROM fact WHERE id BETWEEN 1000 AND 6000 AND s LIKE 'a%'",
    "SELECT count(*), max(v) FROM fact WHERE id > 50000",
    "SELECT name, count(*), sum(v * 2), sum(n * weight) FROM fact JOIN kind USING (k) GROUP BY name",
    "SELECT name, count(*), min(s) FROM fact LEFT JOIN kind USING (k) GROUP BY name",
    "SELECT count(*), sum(v) FROM fact JOIN kind USING (k) WHERE weight > 20 AND v < 900",
    "SELECT a.name, b.name, sum(v) FROM fact JOIN kind a USING (k)
       LEFT JOIN kind b ON b.k = fact.v WHERE b.k IS NULL OR b.weight > a.weight GROUP BY 1, 2",
    "SELECT max(c), sum(total) FROM (SELECT k, count(*) AS c, sum(v) AS total FROM fact
       GROUP BY k) x",
    "SELECT DISTINCT v FROM fact",
    "SELECT k, count(*) FROM fact GROUP BY k HAVING sum(v) > 1000 ORDER BY 2, 1 LIMIT 5",
    "SELECT name, (SELECT sum(v) FROM fact WHERE fact.id < kind.k * 200) FROM kind ORDER BY k",
];

#[test]
fn answers_and_their_order_are_those_of_one_thread() {
    let database = facts();
    let alone = with_workers(&database, 0);
    for workers in [1, 4] {
        let helped = with_workers(&database, workers);
        for text in SHARED {
            assert!(plan(&helped, text).contains("Workers Planned"), "{text}");
            assert!(!plan(&alone, text).contains("Workers Planned"), "{text}");
            for _ in 0..2 {
                assert_eq!(lines(&helped, text), lines(&alone, text), "{workers}: {text}");
            }
            let counts = |connection: &Connection| {
                let all = lines(connection, &format!("EXPLAIN ANALYZE {text}"));
                all.into_iter().filter(|line| !line.contains("Workers")).collect::<Vec<String>>()
            };
            assert_eq!(counts(&helped), counts(&alone), "{text}");
        }
        assert_eq!(launched(&helped, SHARED[0]), [workers.to_string()]);
        assert_eq!(launched(&helped, SHARED[8])[0], workers.to_string());
        assert_eq!(launched(&helped, SHARED[7]).len(), 1);
    }
}

/// Joins whose outer rows mark inner rows, or whose inner rows are many.
const JOINS: [&str; 7] = [
    "SELECT k, count(*) FROM kind a WHERE EXISTS
       (SELECT 1 FROM fact WHERE fact.k = a.k AND fact.v > 990) GROUP BY k",
    "SELECT b, count(*) FROM fact a WHERE NOT EXISTS
       (SELECT 1 FROM fact c WHERE c.id = a.v AND c.k > a.k) GROUP BY b",
    "SELECT a.k, count(*), min(a.id) FROM fact a WHERE EXISTS
       (SELECT 1 FROM fact b WHERE b.id = a.v AND b.k <> a.k) AND NOT EXISTS
       (SELECT 1 FROM fact c WHERE c.id = a.v AND c.k > a.k) GROUP BY a.k",
    "SELECT sum(f), count(*) FROM kind JOIN fact USING (k) WHERE v < 500",
    "SELECT k, array_agg(v) FROM kind LEFT JOIN fact USING (k) GROUP BY k",
    "SELECT x.k, sum(y.f) FROM fact x JOIN fact y ON x.id = y.v JOIN kind ON x.k = kind.k
       WHERE x.s > 'c' GROUP BY x.k",
    "SELECT name, sum(n * n * n * n * w * w) FROM kind JOIN fact USING (k) GROUP BY name",
];

#[test]
fn joins_with_workers_answer_as_one_thread() {
    let database = cached_facts();
    let alone = with_workers(&database, 0);
    for workers in [1, 3] {
        let helped = with_workers(&database, workers);
        for text in JOINS {
            assert!(!plan(&alone, text).contains("Workers Planned"), "{text}");
            // The first scans fill the column cache.
            for _ in 0..4 {
                assert_eq!(lines(&helped, text), lines(&alone, text), "{workers}: {text}");
            }
            let counts = |connection: &Connection| {
                let all = lines(connection, &format!("EXPLAIN ANALYZE {text}"));
                all.into_iter().filter(|line| !line.contains("Workers")).collect::<Vec<String>>()
            };
            assert_eq!(counts(&helped), counts(&alone), "{text}");
            let all = plan(&helped, text);
            assert!(all.contains("Workers Planned"), "{text}: {all}");
        }
        for text in SHARED {
            for _ in 0..2 {
                assert_eq!(lines(&helped, text), lines(&alone, text), "{workers}: {text}");
            }
        }
        for text in &JOINS[..3] {
            let counts = launched(&helped, text);
            assert!(counts.iter().any(|count| count != "0"), "{text}: {counts:?}");
        }
        // This one is executed by rows.
        assert!(launched(&helped, JOINS[6]).iter().all(|count| count == "0"));
    }
}

#[test]
fn workers_take_columns_from_the_cache_and_fill_it() {
    let database = cached_facts();
    let (helped, alone) = (with_workers(&database, 2), with_workers(&database, 0));
    let text = "SELECT k, count(*), sum(v), max(s) FROM fact WHERE d > '2020-03-01' GROUP BY k";
    let answer = || (lines(&helped, text), database.column_cache_bytes());
    let (answers, sizes): (Vec<Vec<String>>, Vec<usize>) = (0..8).map(|_| answer()).unzip();
    assert!(answers.iter().all(|answer| *answer == lines(&alone, text)));
    assert!(sizes[7] > sizes[0] + 150_000 && sizes[6] == sizes[7], "{sizes:?}");
    for id in [1, 4_000, ROWS] {
        let change = format!("UPDATE fact SET v = v + 1, s = 'zz' WHERE id = {id}");
        database.connect().execute(&change, &[]).unwrap();
        for _ in 0..4 {
            assert_eq!(lines(&helped, text), lines(&alone, text), "{id}");
        }
    }
}

#[test]
fn sums_that_depend_on_the_order_have_no_workers() {
    let connection = with_workers(&facts(), 2);
    for text in [
        "SELECT sum(f) FROM fact",
        "SELECT avg(f), count(*) FROM fact GROUP BY k",
        "SELECT count(DISTINCT s) FROM fact",
        "SELECT string_agg(s, ',') FROM fact",
        "SELECT array_agg(v) FROM fact",
        "SELECT min(f) FROM fact",
        "SELECT sum(v) FROM (SELECT v FROM fact ORDER BY v LIMIT 10) x",
        "SELECT sum(v + random()::integer) FROM fact",
    ] {
        assert!(!plan(&connection, text).contains("Workers"), "{text}");
    }
    connection.execute("SET min_parallel_table_scan_size = '8MB'", &[]).unwrap();
    assert!(!plan(&connection, SHARED[0]).contains("Workers"));
}

#[test]
fn an_error_in_one_part_is_that_of_one_thread() {
    let database = facts();
    database.connect().execute("UPDATE fact SET v = 2000000000 WHERE id = 6000", &[]).unwrap();
    let (helped, alone) = (with_workers(&database, 3), with_workers(&database, 0));
    let text = "SELECT k, sum(v * 2) FROM fact WHERE id <> $1 GROUP BY k";
    let mut statement = helped.prepare(text).unwrap();
    let mut ask = |spared: i32| {
        let rows = statement.query(&[Value::Integer(spared)]).and_then(|rows| rows.collect());
        rows.map_err(|error| error.to_string())
    };
    let expected = alone.query(text, &[Value::Integer(6_000)]).unwrap().collect().unwrap();
    for _ in 0..2 {
        let failed = ask(0).unwrap_err();
        assert!(failed.contains("integer out of range"), "{failed}");
        assert_eq!(ask(6_000).unwrap(), expected);
    }
    // A product beyond the digits of a column is computed by rows.
    let wide = "SELECT k, sum(w * w * w) FROM fact GROUP BY k";
    assert_eq!(lines(&helped, wide), lines(&alone, wide));
}

#[test]
fn groups_that_do_not_fit_are_left_to_one_thread() {
    let database = facts();
    let (helped, alone) = (with_workers(&database, 2), with_workers(&database, 0));
    let text = "SELECT id, min(s), sum(v) FROM fact GROUP BY id";
    let expected = lines(&alone, text);
    helped.set_memory_limit(64 << 20);
    assert_eq!(lines(&helped, text), expected);
    assert_eq!(launched(&helped, text), ["2"]);
    for limit in [2 << 20, 1 << 20] {
        helped.set_memory_limit(limit);
        let answer = helped.query(text, &[]).and_then(|rows| rows.collect());
        alone.set_memory_limit(limit);
        let other = alone.query(text, &[]).and_then(|rows| rows.collect());
        assert_eq!(answer.map_err(|e| e.to_string()), other.map_err(|e| e.to_string()));
    }
    helped.set_memory_limit(64 << 20);
    assert_eq!(launched(&helped, text), ["2"]);
}

#[test]
fn a_statement_with_workers_can_be_canceled() {
    let database = facts();
    let connection = with_workers(&database, 2);
    let joined = "SELECT count(*), sum(a.v) FROM fact a JOIN fact b ON a.k = b.k
                  JOIN fact c ON b.k = c.k WHERE a.v + c.v >= 0";
    connection.execute("SET statement_timeout = 50", &[]).unwrap();
    let failed = connection.query(joined, &[]).and_then(|rows| rows.collect()).unwrap_err();
    assert_eq!(failed.code(), "57014");
    connection.execute("RESET statement_timeout", &[]).unwrap();
    let cancel = connection.cancel_handle();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                cancel.cancel();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let failed = connection.query(joined, &[]).and_then(|rows| rows.collect()).unwrap_err();
        done.store(true, Ordering::Relaxed);
        assert_eq!(failed.code(), "57014");
    });
    assert_eq!(lines(&connection, "SELECT count(*) FROM fact"), [ROWS.to_string()]);
}

#[test]
fn workers_read_the_snapshot_of_the_statement() {
    let database = facts();
    let text = "SELECT count(*), sum(v) FROM fact";
    let expected = lines(&with_workers(&database, 0), text);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for part in 0..2 {
            let (database, done) = (&database, &done);
            scope.spawn(move || {
                let connection = database.connect();
                let mut turn = part;
                while !done.load(Ordering::Relaxed) {
                    turn += 2;
                    let (one, other) = (turn * 7 % ROWS + 1, ROWS - turn * 7 % ROWS);
                    let text = format!(
                        "UPDATE fact SET v = v + CASE WHEN id = {one} THEN 1 ELSE -1 END
                         WHERE id IN ({one}, {other}) AND {one} <> {other}"
                    );
                    // A conflict with the other writer changes nothing.
                    let _ = connection.execute(&text, &[]);
                }
            });
        }
        for (nth, level) in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"].iter().enumerate()
        {
            let connection = with_workers(&database, 2);
            connection.execute(&format!("BEGIN ISOLATION LEVEL {level}"), &[]).unwrap();
            for _ in 0..20 {
                assert_eq!(lines(&connection, text), expected, "{level}");
            }
            // The reads of a serializable transaction are validated.
            let workers = if nth == 2 { "0" } else { "2" };
            assert_eq!(launched(&connection, text), [workers], "{level}");
            connection.execute("ROLLBACK", &[]).unwrap();
        }
        let connection = with_workers(&database, 2);
        for _ in 0..20 {
            assert_eq!(lines(&connection, text), expected);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn changes_of_the_transaction_itself_are_seen() {
    let connection = with_workers(&facts(), 2);
    let text = "SELECT count(*) FROM fact";
    for level in ["READ COMMITTED", "REPEATABLE READ"] {
        connection.execute(&format!("BEGIN ISOLATION LEVEL {level}"), &[]).unwrap();
        assert_eq!(launched(&connection, text), ["2"]);
        connection.execute("DELETE FROM fact WHERE id <= 50", &[]).unwrap();
        assert_eq!(lines(&connection, text), [(ROWS - 50).to_string()]);
        assert_eq!(launched(&connection, text), ["0"]);
        connection.execute("ROLLBACK", &[]).unwrap();
        assert_eq!(lines(&connection, text), [ROWS.to_string()]);
    }
}

#[test]
fn larger_tables_have_more_workers() {
    let connection = with_workers(&facts(), 8);
    let planned = |size: &str| {
        let set = format!("SET min_parallel_table_scan_size = '{size}'");
        connection.execute(&set, &[]).unwrap();
        let plan = plan(&connection, SHARED[0]);
        plan.split_once("Workers Planned: ").map(|(_, rest)| rest[..1].to_owned())
    };
    let planned = ["0", "8kB", "64kB", "256kB", "4MB"].map(planned);
    assert_eq!(planned[0].as_deref(), Some("8"));
    assert!(planned[1] > planned[2] && planned[2] > planned[3], "{planned:?}");
    assert_eq!(planned[4], None);
}
