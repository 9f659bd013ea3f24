//! SQL end to end: statements, transactions, errors.

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value, params};

fn connect() -> Connection {
    let options = Options::new().durability(Durability::InMemory);
    SqlDatabase::open_in_memory(options).unwrap().connect()
}

/// The answer as text: columns by blanks, rows by semicolons.
fn ask(connection: &Connection, text: &str) -> String {
    let rows = match connection.query(text, &[]).and_then(|rows| rows.collect()) {
        Ok(rows) => rows,
        Err(error) => return format!("error {}", error.code()),
    };
    let rows =
        rows.iter().map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    rows.collect::<Vec<_>>().join("; ")
}

fn run(connection: &Connection, text: &str) -> u64 {
    connection.execute(text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn rows_are_inserted_found_changed_and_removed() {
    let c = connect();
    run(
        &c,
        "CREATE TABLE fruit (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price NUMERIC(8,2), stock INTEGER DEFAULT 10)",
    );
    assert_eq!(
        run(
            &c,
            "INSERT INTO fruit (id, name, price) VALUES (1, 'apple', 1.5), (2, 'pear', 2), (3, 'plum', NULL)"
        ),
        3
    );
    assert_eq!(ask(&c, "SELECT * FROM fruit WHERE id = 2"), "2 pear 2.00 10");
    assert_eq!(
        ask(&c, "SELECT name, stock * 2 AS twice FROM fruit WHERE price IS NULL"),
        "plum 20"
    );
    assert_eq!(run(&c, "UPDATE fruit SET stock = stock + 5, name = name || '!' WHERE id >= 2"), 2);
    assert_eq!(
        ask(&c, "SELECT id, name, stock FROM fruit ORDER BY id DESC"),
        "3 plum! 15; 2 pear! 15; 1 apple 10"
    );
    assert_eq!(run(&c, "DELETE FROM fruit WHERE name LIKE 'p%'"), 2);
    assert_eq!(ask(&c, "SELECT count(*), sum(stock), min(name) FROM fruit"), "1 10 apple");
    assert_eq!(ask(&c, "INSERT INTO fruit VALUES (1, 'again', 1, 1)"), "error 23505");
    assert_eq!(ask(&c, "INSERT INTO fruit (id) VALUES (9)"), "error 23502");
    assert_eq!(
        ask(&c, "INSERT INTO fruit (id, name) VALUES (8, 'fig') RETURNING id + 1, stock"),
        "9 10"
    );
}

#[test]
fn prepared_statements_take_parameters() {
    let c = connect();
    run(&c, "CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)");
    let mut insert = c.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    for n in 0..500i64 {
        assert_eq!(insert.execute(params![n, format!("v{n}")]).unwrap(), 1);
    }
    let mut select = c.prepare("SELECT v, id FROM t WHERE id = $1").unwrap();
    for n in [0i64, 77, 499] {
        let mut rows = select.query(params![n]).unwrap();
        let row = rows.next().unwrap().unwrap();
        assert_eq!(
            (row.get::<&str>(0).unwrap(), row.get::<i64>(1).unwrap()),
            (&*format!("v{n}"), n)
        );
        assert!(rows.next().unwrap().is_none());
    }
    assert_eq!(select.query(&[]).map(|_| ()).unwrap_err().code(), "42P02");
    // A change of the catalog makes it compile itself again.
    run(&c, "ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7");
    let mut all = c.prepare("SELECT * FROM t WHERE id = $1").unwrap();
    assert_eq!(all.query(params![5]).unwrap().collect().unwrap()[0].len(), 3);
    assert_eq!(select.query(params![5]).unwrap().collect().unwrap().len(), 1);
}

#[test]
fn parameters_that_no_statement_could_write_are_refused() {
    let c = connect();
    run(&c, "CREATE TABLE t (x TEXT, v VARCHAR(9), d DATE, k TIME, m TIMESTAMP)");
    let insert = "INSERT INTO t VALUES ($1, $2, $3, $4, $5)";
    let mut insert = c.prepare(insert).unwrap();
    let good = [
        Value::text("a"),
        Value::Null,
        Value::Date(i32::MAX),
        Value::Time(86_400_000_000),
        Value::Timestamp(i64::MIN),
    ];
    assert_eq!(insert.execute(&good).unwrap(), 1);
    for (place, bad, code) in [
        (0, Value::text("a\0"), "22021"),
        (1, Value::text("\0"), "22021"),
        (2, Value::Date(i32::MAX - 1), "22008"),
        (2, Value::Date(i32::MIN + 1), "22008"),
        (3, Value::Time(-1), "22008"),
        (3, Value::Time(86_400_000_001), "22008"),
        (4, Value::Timestamp(i64::MAX - 1), "22008"),
        (2, Value::TimestampTz(i64::MIN + 1), "22008"),
        (0, Value::Date(i32::MAX - 1), "22008"),
    ] {
        let mut values = good.clone();
        values[place] = bad;
        assert_eq!(insert.execute(&values).unwrap_err().code(), code, "{values:?}");
    }
    assert_eq!(ask(&c, "SELECT count(*) FROM t"), "1");
}

#[test]
fn parameters_that_are_selected_take_the_type_that_is_needed() {
    let c = connect();
    run(&c, "CREATE TABLE t (a INTEGER, b DATE, c VARCHAR(3))");
    run(&c, "INSERT INTO t VALUES (1, '2020-01-01', 'x')");
    let mut insert = c.prepare("INSERT INTO t (a, b, c) SELECT $1, $2, $3 FROM t").unwrap();
    let values = params![2, "2020-02-02", "abc"];
    assert_eq!(insert.execute(values).unwrap(), 1);
    assert_eq!(insert.execute(params![3, "x", "abc"]).unwrap_err().code(), "22007");
    let too_long = params![3, "2020-02-02", "abcd"];
    assert_eq!(insert.execute(too_long).unwrap_err().code(), "22001");
    for (text, expected) in [
        ("SELECT $1 FROM t UNION SELECT 1 ORDER BY 1", vec![Value::Integer(1), Value::Integer(7)]),
        ("SELECT 1 UNION ALL SELECT $1", vec![Value::Integer(1), Value::Integer(7)]),
        ("SELECT $1 UNION ALL SELECT $1", vec![Value::text("7"), Value::text("7")]),
        ("SELECT x FROM (SELECT $1 AS x) v", vec![Value::text("7")]),
        ("SELECT $1 UNION ALL SELECT $1 + 1", vec![Value::Integer(7), Value::Integer(8)]),
        ("SELECT $1 GROUP BY 1", vec![Value::text("7")]),
    ] {
        let mut query = c.prepare(text).unwrap();
        let rows = query.query(params![7]).unwrap().collect().unwrap();
        let found: Vec<Value> = rows.into_iter().map(|mut row| row.remove(0)).collect();
        assert_eq!(found, expected, "{text}");
    }
    // What GROUP BY compares is a text, whatever the other branch has.
    let grouped = c.prepare("SELECT $1 GROUP BY 1 UNION ALL SELECT a FROM t");
    assert_eq!(grouped.err().unwrap().code(), "42804");
}

#[test]
fn transactions_commit_and_roll_back() {
    let c = connect();
    run(&c, "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)");
    run(&c, "BEGIN");
    run(&c, "INSERT INTO t VALUES (1, 1)");
    run(&c, "SAVEPOINT a");
    run(&c, "INSERT INTO t VALUES (2, 2)");
    run(&c, "ROLLBACK TO SAVEPOINT a");
    // A statement that fails leaves nothing of itself, and the transaction goes on.
    assert_eq!(ask(&c, "INSERT INTO t VALUES (5, 5), (6, 6), (1, 0)"), "error 23505");
    assert_eq!(ask(&c, "SELEC 1"), "error 42601");
    assert_eq!(ask(&c, "SELECT nope FROM t"), "error 42703");
    assert!(c.execute("SELEC 1", &[]).is_err() && c.in_transaction());
    run(&c, "INSERT INTO t VALUES (3, 3)");
    run(&c, "COMMIT");
    assert_eq!(ask(&c, "SELECT id FROM t"), "1; 3");
    run(&c, "BEGIN");
    run(&c, "DELETE FROM t");
    run(&c, "CREATE TABLE u (x INTEGER)");
    run(&c, "ROLLBACK");
    assert_eq!(ask(&c, "SELECT count(*) FROM t"), "2");
    assert_eq!(ask(&c, "SELECT * FROM u"), "error 42P01");
    assert_eq!(ask(&c, "COMMIT"), "error 25P01");
}

#[test]
fn sql_and_key_value_calls_share_a_transaction() {
    let c = connect();
    run(&c, "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)");
    let environment = c.database().environment().clone();
    let pairs = environment.create_database("pairs").unwrap();
    let mut insert = c.prepare("INSERT INTO t VALUES ($1, 0)").unwrap();
    for commit in [false, true] {
        let transaction = environment.begin().unwrap();
        pairs.put(&transaction, b"k", b"v").unwrap();
        insert.execute_in(&transaction, params![1]).unwrap();
        if commit {
            transaction.commit().unwrap();
        } else {
            transaction.abort().unwrap();
        }
        let expected = if commit { "1" } else { "0" };
        assert_eq!(ask(&c, "SELECT count(*) FROM t"), expected);
        assert_eq!(ask(&c, "SELECT count(*) FROM pairs"), expected);
    }
    assert_eq!(ask(&c, "SELECT * FROM pairs"), "\\x6b \\x76");
    // No table takes its name, and it has no definition that SQL could change.
    for (text, code) in [
        ("CREATE TABLE pairs (a INTEGER)", "42P07"),
        ("ALTER TABLE t RENAME TO pairs", "42P07"),
        ("CREATE VIEW pairs AS SELECT 1", "42P07"),
        ("CREATE SEQUENCE pairs", "42P07"),
        ("TRUNCATE pairs", "42809"),
        ("DROP TABLE pairs", "42809"),
        ("ALTER TABLE pairs ADD COLUMN a INTEGER", "42809"),
        ("CREATE INDEX i ON pairs (value)", "42809"),
    ] {
        assert_eq!(ask(&c, text), format!("error {code}"), "{text}");
    }
    assert_eq!(ask(&c, "SELECT * FROM pairs"), "\\x6b \\x76");
    assert_eq!(run(&c, "UPDATE pairs SET value = value || '!' || '\\x00'"), 1);
    assert_eq!(ask(&c, "SELECT * FROM pairs WHERE key = 'k'"), "\\x6b \\x762100");
}

#[test]
fn missing_functions_and_operators_have_hints() {
    let c = connect();
    let functions = "No function matches the given name and argument types. You might need to add explicit type casts.";
    let operators = "No operator matches the given name and argument types. You might need to add explicit type casts.";
    let prefix = "No operator matches the given name and argument type. You might need to add an explicit type cast.";
    for (text, hint) in [
        ("SELECT nofunction(1)", functions),
        ("SELECT nofunction(a => 1)", functions),
        ("SELECT sum('a'::text)", functions),
        ("SELECT ntile('a'::text) OVER ()", functions),
        ("SELECT * FROM unnest(1)", functions),
        ("SELECT int4('2020-01-01'::date)", functions),
        ("SELECT 1 + 'a'::text", operators),
        ("SELECT 1 LIKE 2", operators),
        ("SELECT 1 = 'a'::text", operators),
        ("SELECT ARRAY[1] || 'a'::text", operators),
        ("SELECT - 'a'::text", prefix),
    ] {
        let error = c.query(text, &[]).and_then(|rows| rows.collect()).unwrap_err();
        assert_eq!((error.code(), error.hint()), ("42883", Some(hint)), "{text}");
    }
    let error = c.query("SELECT '1' + '2'", &[]).and_then(|rows| rows.collect()).unwrap_err();
    let hint =
        "Could not choose a best candidate operator. You might need to add explicit type casts.";
    assert_eq!((error.code(), error.hint()), ("42725", Some(hint)));
}

#[test]
fn messages_name_the_clause() {
    let c = connect();
    run(&c, "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)");
    run(&c, "CREATE DOMAIN positive AS INTEGER CHECK (VALUE > 0)");
    for (text, message) in [
        ("SELECT 1 FROM t WHERE id", "argument of WHERE must be type boolean, not type integer"),
        ("SELECT id AND true FROM t", "argument of AND must be type boolean, not type integer"),
        ("SELECT NOT id FROM t", "argument of NOT must be type boolean, not type integer"),
        (
            "SELECT 1 FROM t JOIN t u ON u.id",
            "argument of JOIN/ON must be type boolean, not type integer",
        ),
        (
            "SELECT id IS NOT TRUE FROM t",
            "argument of IS NOT TRUE must be type boolean, not type integer",
        ),
        (
            "SELECT CASE WHEN id THEN 1 END FROM t",
            "argument of CASE/WHEN must be type boolean, not type integer",
        ),
        ("SELECT 1 FROM t WHERE sum(id) > 1", "aggregate functions are not allowed in WHERE"),
        (
            "SELECT 1 FROM t JOIN t u ON sum(u.id) > 1",
            "aggregate functions are not allowed in JOIN conditions",
        ),
        ("SELECT 1 FROM t WHERE rank() OVER () > 1", "window functions are not allowed in WHERE"),
        ("SELECT id FROM t GROUP BY 2", "GROUP BY position 2 is not in select list"),
        ("SELECT id FROM t ORDER BY 2", "ORDER BY position 2 is not in select list"),
        (
            "SELECT * FROM t x (a, b, c)",
            "table \"x\" has 2 columns available but 3 columns specified",
        ),
        ("SELECT id NOT IN (v) FROM t", "operator does not exist: integer <> text"),
        ("SELECT '1e-400'::float8", "\"1e-400\" is out of range for type double precision"),
        ("SELECT '99999'::int2", "value \"99999\" is out of range for type smallint"),
        ("SELECT 1::numeric(1001)", "NUMERIC precision 1001 must be between 1 and 1000"),
    ] {
        let error = c.query(text, &[]).and_then(|rows| rows.collect()).unwrap_err();
        assert_eq!(error.message(), message, "{text}");
    }
    let error = c.query("SELECT 0::positive", &[]).and_then(|rows| rows.collect()).unwrap_err();
    assert_eq!((error.schema(), error.data_type_name()), (Some("public"), Some("positive")));
}

#[test]
fn mistakes_are_named_with_their_place() {
    let c = connect();
    run(&c, "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)");
    for (text, code, position) in [
        ("SELECT nope FROM t", "42703", Some(7)),
        ("SELECT * FROM nope", "42P01", Some(14)),
        ("SELECT 1 +", "42601", Some(10)),
        ("SELECT 1 / (id - id) FROM t", "", None),
        ("SELECT v + 1 FROM t", "42883", Some(9)),
        ("SELECT 'x'::INTEGER", "22P02", Some(7)),
        ("SELECT 2147483647 + 1", "22003", Some(7)),
        ("SELECT sum(v) FROM t", "42883", Some(7)),
        ("SELECT id, count(*) FROM t", "42803", Some(7)),
        ("SELECT id + 1, id FROM t GROUP BY id + 1", "42803", Some(15)),
        ("SELECT count(*) FROM t GROUP BY v HAVING id > 1", "42803", Some(41)),
        ("SELECT v FROM t WHERE id > 1 GROUP BY v ORDER BY id", "42803", Some(49)),
        ("SELECT * FROM t GROUP BY v", "42803", Some(7)),
        ("SELECT DISTINCT v FROM t ORDER BY v, id", "42P10", Some(37)),
        ("SELECT 1 UNION SELECT 2, 3", "42601", Some(22)),
        ("SELECT 1, 2 UNION SELECT 2, 'a'::TEXT", "42804", Some(28)),
        ("SELECT 1 AS x UNION SELECT 2 ORDER BY y", "42703", Some(38)),
        ("SELECT 1 AS x UNION SELECT 2 ORDER BY x + 1", "0A000", Some(38)),
        ("VALUES (1, 2), (3)", "42601", Some(16)),
        ("INSERT INTO t VALUES (1, 'a', 3)", "42601", Some(30)),
        ("INSERT INTO t SELECT 1, 'a', 3", "42601", Some(29)),
        ("INSERT INTO t VALUES (1), (2, 'b')", "42601", Some(27)),
        ("INSERT INTO t (id, v) VALUES (1)", "42601", Some(19)),
        ("INSERT INTO t (id, v) SELECT 1", "42601", Some(19)),
        ("SELECT * FROM t FOR UPDATE OF u", "42P01", Some(30)),
        ("SELECT 1::NOSUCH", "42704", Some(10)),
        ("SELECT CAST('a' AS CHAR(0))", "22023", Some(19)),
        ("SELECT ('a')::VARCHAR(0)", "22023", Some(14)),
        ("CREATE TABLE w (a INTEGER, b nosuch)", "42704", Some(29)),
        ("CREATE TABLE w (a INTEGER, b VARCHAR(0))", "22023", Some(29)),
        ("CREATE TABLE w (a INTEGER PRIMARY KEY, b INTEGER PRIMARY KEY)", "42P16", Some(49)),
        ("CREATE TABLE w (a INTEGER PRIMARY KEY, b INTEGER, PRIMARY KEY (b))", "42P16", Some(50)),
        ("SELECT nofunction(1)", "42883", Some(7)),
        ("SELECT 'a' 'b'", "42601", Some(11)),
        ("SELECT E'å',\n 123abc", "42601", Some(15)),
        ("SELECT 1 AS 'x'", "42601", Some(12)),
        ("SELECT (1) = (2) = true", "42601", Some(17)),
        ("SELECT 1 WHERE 'å' = E'\\xff'", "22021", Some(22)),
        ("SELECT E'\\000'", "22021", Some(7)),
        ("EXPLAIN (ANALYZE, FORMAT nothing) SELECT 1", "22023", Some(18)),
        ("CREATE VIEW w (a, b) AS SELECT 1", "42601", Some(18)),
        ("WITH w (a, b) AS (SELECT 1) SELECT 1", "42P10", Some(5)),
        ("CREATE TABLE w (id INTEGER, words POINT)", "42704", Some(34)),
        ("INSERT INTO t VALUES (99999999999, 'x')", "22003", Some(22)),
        ("UPDATE t SET id = 'x' WHERE id = 1", "22P02", Some(18)),
    ] {
        match c.query(text, &[]).and_then(|rows| rows.collect()) {
            Ok(_) => assert_eq!(code, "", "{text}"),
            Err(error) => {
                assert_eq!((error.code(), error.position()), (code, position), "{text}: {error}")
            }
        }
    }
    run(&c, "INSERT INTO t VALUES (1, 'x')");
    assert_eq!(ask(&c, "SELECT 1 / (id - id) FROM t"), "error 22012");
    let error = c.query("SELECT s.id FROM t s GROUP BY s.v", &[]).map(|_| ()).unwrap_err();
    assert!(error.message().starts_with("column \"s.id\" must appear in the GROUP BY"), "{error}");
}

#[test]
fn hostile_statements_are_errors() {
    let c = connect();
    run(&c, "CREATE TABLE t (id INTEGER PRIMARY KEY)");
    let deep = |open: &str, middle: &str, close: &str, n: usize| {
        format!("{}{middle}{}", open.repeat(n), close.repeat(n))
    };
    for text in [
        format!("SELECT {}", deep("(", "1", ")", 20_000)),
        format!("SELECT {}", deep("- ", "1", "", 20_000)),
        format!("SELECT {}", deep("NOT ", "TRUE", "", 20_000)),
        format!("SELECT 1{}", " + 1".repeat(1_500)),
        format!("SELECT 1{}", " + 1".repeat(200_000)),
        format!("SELECT TRUE{}", " AND TRUE".repeat(200_000)),
        format!("SELECT {}", deep("CASE WHEN TRUE THEN ", "1", " END", 5_000)),
        format!("SELECT * FROM {}", deep("(SELECT * FROM ", "t", ") x", 2_000)),
        format!("SELECT 1 WHERE {}", deep("EXISTS (SELECT 1 WHERE ", "TRUE", ")", 2_000)),
        deep("SELECT 1 UNION (", "SELECT 1", ")", 2_000),
        "SELECT '".to_owned() + &"x".repeat(1 << 20),
        "SELECT \u{0}".to_owned(),
        "SELECT $70000".to_owned(),
        "SELECT 1e999999999".to_owned(),
        ")))((('''\"\"\"".to_owned(),
    ] {
        let error = c.query(&text, &[]).and_then(|rows| rows.collect()).map(|_| ()).unwrap_err();
        assert_eq!(error.code().len(), 5, "{error}");
    }
    let many = format!("SELECT count(*) FROM t WHERE {}", vec!["id = 5"; 600].join(" OR "));
    assert_eq!(ask(&c, &many), "0");
}

#[test]
fn series_of_numeric_name_the_value_that_is_not_finite() {
    let c = connect();
    for (arguments, message) in [
        ("'NaN'::numeric, 3", "start value cannot be NaN"),
        ("1::numeric, '-inf'", "stop value cannot be infinity"),
        ("1::numeric, 3, 'NaN'", "step size cannot be NaN"),
        ("1::numeric, 3, 0", "step size cannot equal zero"),
    ] {
        let text = format!("SELECT * FROM generate_series({arguments})");
        let error = c.query(&text, &[]).and_then(|rows| rows.collect()).unwrap_err();
        assert_eq!(error.message(), message, "{text}");
    }
}

#[test]
fn parameters_take_the_precision_of_casts_and_columns() {
    let c = connect();
    run(&c, "CREATE TABLE m (id INTEGER PRIMARY KEY, ts TIMESTAMP(2), i INTERVAL MINUTE)");
    let moment = Value::Timestamp(1_098_181_434_987_654);
    let mut insert = c.prepare("INSERT INTO m VALUES ($1, $2, $3)").unwrap();
    let interval = quickbeam_sql::Interval { months: 0, days: 1, micros: 90_500_000 };
    insert.execute(params![1, moment.clone(), Value::Interval(interval)]).unwrap();
    assert_eq!(ask(&c, "SELECT ts, i FROM m"), "2004-10-19 10:23:54.99 1 day 00:01:00");
    let mut cast = c.prepare("SELECT $1::TIMESTAMP(0), $2::NUMERIC(6,1)").unwrap();
    let row = cast.query(params![moment, Value::from(2.25)]).unwrap();
    let rows = row.collect().unwrap();
    assert_eq!(rows[0][0].to_string(), "2004-10-19 10:23:55");
    assert_eq!(rows[0][1].to_string(), "2.3");
}
