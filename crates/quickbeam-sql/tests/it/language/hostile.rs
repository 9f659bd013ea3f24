//! Hostile statements: an error with a code, never a panic, never half a
//! statement.

use std::fs;

use proptest::prelude::*;
use quickbeam::Options;
use quickbeam_sql::{Connection, SqlDatabase, Value};

/// Tables with all that a change can fail at.
const SETUP: [&str; 8] = [
    "CREATE TABLE p (id INTEGER PRIMARY KEY, name VARCHAR(4) UNIQUE, n NUMERIC(6,2) CHECK (n < 1000))",
    "CREATE TABLE t (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p ON UPDATE CASCADE, a SMALLINT NOT NULL, b TEXT)",
    "CREATE INDEX t_a ON t (a, b DESC)",
    "CREATE TABLE plain (a INTEGER, d DOUBLE PRECISION, day DATE)",
    "CREATE VIEW v AS SELECT t.id, p.name FROM t JOIN p ON p.id = t.p",
    "INSERT INTO p VALUES (1, 'one', 1), (2, 'two', 2.5), (3, NULL, NULL)",
    "INSERT INTO t VALUES (1, 1, 10, 'x'), (2, 1, 20, NULL), (3, 2, 30, 'y'), (4, NULL, 40, 'z')",
    "INSERT INTO plain VALUES (1, 0.5, '2020-01-01'), (1, NULL, NULL), (NULL, 2, '1999-12-31')",
];

fn connect() -> Connection {
    let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
    let connection = database.connect();
    for text in SETUP {
        connection.execute(text, &[]).unwrap();
    }
    connection
}

/// Everything in the tables.
fn content(connection: &Connection) -> Vec<Vec<Vec<Value>>> {
    let mut ask = |table: &str| {
        let text = format!("SELECT * FROM {table}");
        let mut rows =
            connection.query(&text, &[]).and_then(|rows| rows.collect()).unwrap_or_default();
        rows.sort();
        rows
    };
    ["p", "t", "plain", "v"].map(&mut ask).to_vec()
}

/// Runs a statement; the code of its error. A fault of our own is no answer.
fn run(connection: &Connection, text: &str) -> Option<&'static str> {
    let done = connection.query(text, &[]).and_then(|rows| rows.collect());
    done.err().map(|error| {
        let code = error.code();
        assert!(!["XX000", "XX001"].contains(&code), "{text}: {error}");
        // Not every error has a place (`positions.rs` has those that do), but what does not read as
        // SQL always stands somewhere.
        assert!(error.position().is_none_or(|at| text.is_char_boundary(at)), "{text}: {error}");
        let needs_place = error.message().starts_with("syntax error");
        assert!(!needs_place || error.position().is_some(), "{text}: {error}");
        code
    })
}

/// Runs a statement on its own; after an error everything is as it was.
fn run_whole(connection: &Connection, text: &str) -> Option<&'static str> {
    let before = content(connection);
    let code = run(connection, text);
    if connection.in_transaction() {
        connection.rollback().unwrap();
    }
    if code.is_some() {
        assert_eq!(content(connection), before, "{text} left something of itself");
    }
    code
}

#[test]
fn what_fails_half_way_leaves_nothing() {
    let connection = connect();
    for (text, code) in [
        ("INSERT INTO p VALUES (10, 'ten', 1), (11, 'elev', 1), (1, 'uno', 1)", "23505"),
        ("INSERT INTO p SELECT id + 10, name, n FROM p", "23505"),
        ("INSERT INTO p SELECT id + 10, NULL, 999 + id FROM p", "23514"),
        (
            "INSERT INTO plain SELECT id, 1, CAST(NULL AS DATE) FROM t WHERE 1 / (id - 4) < 1",
            "22012",
        ),
        ("INSERT INTO t SELECT id + 10, id, 1, 'q' FROM t", "23503"),
        ("UPDATE p SET n = n * 400", "23514"),
        ("UPDATE p SET id = id * 2 WHERE id < 3", "23505"),
        ("UPDATE t SET a = a * 1000", "22003"),
        ("UPDATE t SET a = 1 / (id - 3)", "22012"),
        ("UPDATE t SET p = id", "23503"),
        ("UPDATE t SET b = NULL, a = NULLIF(a, 30)", "23502"),
        ("UPDATE p SET name = 'long' || id || 'er' WHERE id >= 1", "22001"),
        ("DELETE FROM p", "23503"),
        ("DELETE FROM t WHERE 1 / (id - 4) <= 0", "22012"),
        ("UPDATE plain SET day = CAST(a AS TEXT)::DATE", "22007"),
        ("ALTER TABLE t ADD COLUMN x INTEGER NOT NULL", "23502"),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (a < 40)", "23514"),
        ("ALTER TABLE plain ADD PRIMARY KEY (a)", "23502"),
        ("CREATE UNIQUE INDEX ON t (p)", "23505"),
        ("DROP TABLE p", "2BP01"),
    ] {
        assert_eq!(run_whole(&connection, text), Some(code), "{text}");
    }
    // The tables are whole: what was not there can be inserted, what is there is found by each
    // index.
    assert_eq!(run(&connection, "INSERT INTO p VALUES (10, 'ten', 1), (11, 'elev', 1)"), None);
    assert_eq!(run(&connection, "UPDATE t SET a = a + 1 WHERE a = 30"), None);
}

#[test]
fn giants_are_errors_or_answers() {
    let connection = connect();
    let nested = |open: &str, middle: &str, close: &str, depth: usize| {
        format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
    };
    let many = |piece: &str, count: usize| vec![piece; count].join(", ");
    for (text, must_fail) in [
        (format!("SELECT {}", nested("(", "1", ")", 100_000)), true),
        (format!("SELECT {}", nested("- ", "1", "", 100_000)), true),
        (format!("SELECT {}", nested("NOT ", "TRUE", "", 100_000)), true),
        (format!("SELECT {}", nested("abs(", "1", ")", 50_000)), true),
        (format!("SELECT {}", nested("CAST(", "1", " AS INTEGER)", 20_000)), true),
        (format!("SELECT {}", nested("CASE WHEN TRUE THEN ", "1", " END", 20_000)), true),
        (format!("SELECT {}", nested("(SELECT ", "1", ")", 20_000)), true),
        (format!("SELECT * FROM {}", nested("(SELECT * FROM ", "t", ") AS x", 10_000)), true),
        (format!("SELECT 1{}", " + 1".repeat(300_000)), true),
        (format!("SELECT 1{}", " + 1".repeat(300)), false),
        (format!("SELECT 'a'{}", " || 'a'".repeat(100_000)), true),
        (format!("SELECT {}", "1".repeat(100_000)), false),
        (format!("SELECT {}", "1".repeat(140_000)), true),
        (format!("SELECT 0.{}", "1".repeat(100_000)), true),
        ("SELECT power(10::NUMERIC, 131071) * power(10::NUMERIC, 131071)".to_owned(), true),
        ("SELECT power(power(10::NUMERIC, 131071), 131071)".to_owned(), true),
        ("SELECT power(1e131071, 1e-16383) / power(10::NUMERIC, -16000)".to_owned(), true),
        (
            "SELECT ln(power(7::NUMERIC, 150000)) + sqrt(power(7::NUMERIC, 150000))".to_owned(),
            false,
        ),
        ("SELECT exp(1e131071), exp(-1e131071)".to_owned(), true),
        ("SELECT round(1e131071, 2147483647), trunc(1e-16383, -2147483648)".to_owned(), false),
        (format!("SELECT 1e{}", "9".repeat(1_000)), true),
        (format!("SELECT '{}'::NUMERIC", "9".repeat(100_000)), false),
        (format!("SELECT '{}'::INTEGER", "9".repeat(100_000)), true),
        (format!("SELECT '{}'::DATE", "9".repeat(100_000)), true),
        (format!("SELECT length('{}')", "ä".repeat(1 << 20)), false),
        (format!("SELECT {} FROM t", many("a", 5_000)), false),
        (
            format!(
                "CREATE TABLE wide ({})",
                (0..2_000).map(|n| format!("c{n} INTEGER")).collect::<Vec<_>>().join(", ")
            ),
            true,
        ),
        (format!("CREATE TABLE {} (a INTEGER)", "n".repeat(10_000)), true),
        (format!("INSERT INTO plain (a) VALUES {}", many("(1)", 200_000)), false),
        (format!("SELECT count(*) FROM t WHERE id IN ({})", many("1", 200_000)), false),
        (format!("SELECT * FROM t WHERE {}", vec!["a = 1"; 100_000].join(" OR ")), true),
        (format!("SELECT * FROM {}", many("t", 200)), true),
        (format!("/* {}", "/*".repeat(100_000)), true),
        (format!("SELECT {}", "\"".repeat(100_001)), true),
        ("'".repeat(100_001), true),
        ("(".repeat(1 << 20), true),
        ("SELECT '\u{0}'".to_owned(), true),
        ("SELECT U&'\\+110000'".to_owned(), true),
        ("SELECT repeat('x', 2000000000)".to_owned(), true),
        ("SELECT 9223372036854775807 + 1".to_owned(), true),
        ("SELECT -9223372036854775808 / -1".to_owned(), true),
        ("SELECT (-9223372036854775808)::BIGINT % (-1)::BIGINT".to_owned(), false),
        ("SELECT abs((-9223372036854775808)::BIGINT)".to_owned(), true),
        ("SELECT 1 FROM t LIMIT 99999999999999999999".to_owned(), true),
        ("SELECT $0".to_owned(), true),
        ("SELECT $99999999999999999999".to_owned(), true),
        ("SELECT * FROM t ORDER BY 99".to_owned(), true),
        (";".to_owned(), false),
    ] {
        let code = run_whole(&connection, &text);
        let start: String = text.chars().take(60).collect();
        if must_fail {
            assert!(code.is_some(), "{start} … is no error");
        }
    }
}

/// Everything that walks a plan goes as deep as it is: joins, queries within queries, and
/// subqueries in expressions, which stand one above the other. What is a test's stack is enough for
/// the deepest that are taken.
#[test]
fn plans_are_no_deeper_than_the_stack() {
    let connection = connect();
    let asked = |count: usize| vec!["(SELECT count(*) FROM plain)"; count].join(", ");
    let joined = |count: usize| (1..count).map(|n| format!(" JOIN t t{n} ON t{n}.id = t0.id"));
    let joined = |count: usize| format!("t t0{}", joined(count).collect::<String>());
    let within = |depth: usize, asked: &str| -> String {
        let query = |inner, n| format!("SELECT s{n}.id{asked} AS id FROM ({inner}) s{n}");
        (0..depth).fold("SELECT id FROM t".to_owned(), query)
    };
    let without = |depth: usize| format!("SELECT 1{}", " EXCEPT SELECT 2".repeat(depth));
    // What nothing reads is not asked: each level reads what the one below it asks.
    let one = " + (SELECT 1)";
    for (text, is_answered) in [
        (format!("SELECT {}", asked(240)), true),
        (format!("SELECT {}", asked(300)), false),
        (format!("SELECT {}", asked(20_000)), false),
        (format!("SELECT id FROM t ORDER BY {}", asked(240)), true),
        (format!("SELECT id FROM t ORDER BY {}", asked(5_000)), false),
        (format!("SELECT count(*), {} FROM t HAVING {} = 7", asked(5_000), asked(1)), false),
        (format!("SELECT {} FROM {}", asked(240), joined(100)), true),
        (format!("SELECT count(*), {} FROM {}", asked(240), joined(100)), true),
        (format!("SELECT * FROM ({}) s", within(20, one)), true),
        (format!("SELECT * FROM ({}) s", within(20, &one.repeat(12))), true),
        (format!("SELECT * FROM ({}) s", within(20, &one.repeat(13))), false),
        (
            format!(
                "SELECT {}, (SELECT max(q.id) FROM ({}) q) FROM t",
                asked(200),
                within(15, one)
            ),
            true,
        ),
        (format!("{} UNION {}", without(50), without(50)), true),
        (without(300), false),
    ] {
        let code = run_whole(&connection, &text);
        let start: String = text.chars().take(100).collect();
        assert_eq!(code, (!is_answered).then_some("54001"), "{start}");
    }
    // Views are nested deeper than a text may be.
    assert_eq!(run(&connection, "CREATE VIEW deep0 AS SELECT 1 AS id"), None);
    let deeper = |n: usize| {
        let joined: String = (0..2).map(|m| format!(" JOIN t t{m} ON t{m}.id = s.id")).collect();
        format!("CREATE VIEW deep{} AS SELECT s.id{one}{one} AS id FROM deep{n} s{joined}", n + 1)
    };
    let ended = (0..120).find(|n| {
        let whole = format!("SELECT count(*) FROM deep{n}");
        run(&connection, &deeper(*n)).is_some() || run(&connection, &whole).is_some()
    });
    assert!(ended.is_some_and(|n| n > 10), "{ended:?}");
}

/// A statement is nested as deep as it may be in the stack of a test, which is that of a thread.
#[test]
fn nesting_up_to_the_limit_fits_the_stack() {
    let connection = connect();
    for (open, middle, close, least) in [
        ("(", "1", ")", 100),
        ("(1 < 5 AND (7 > 7 OR ", "TRUE", "))", 45),
        ("((1 + ", "1", "))", 45),
        ("abs(", "1", ")", 48),
        ("CAST(", "1", " AS INTEGER)", 48),
        ("CASE WHEN TRUE THEN ", "1", " END", 90),
        ("NOT ", "TRUE", "", 100),
        ("(SELECT ", "1", ")", 24),
        ("EXISTS (SELECT 1 FROM t WHERE id = 1 AND ", "TRUE", ")", 20),
        ("1 IN (SELECT id FROM t WHERE ", "TRUE", ")", 20),
        ("1 UNION (SELECT ", "1", ")", 20),
        ("* FROM (SELECT ", "* FROM t", ") x", 20),
    ] {
        let nested =
            |depth: usize| format!("SELECT {}{middle}{}", open.repeat(depth), close.repeat(depth));
        let refused = (1..300).find(|depth| run_whole(&connection, &nested(*depth)).is_some());
        let refused = refused.unwrap_or(300);
        assert!(refused > least, "{open} {refused}");
        assert_eq!(run_whole(&connection, &nested(refused)), Some("54001"), "{open}");
    }
}

/// Each view is made of the one before, twice.
#[test]
fn views_that_double_come_to_an_end() {
    let connection = connect();
    assert_eq!(run(&connection, "CREATE VIEW v0 AS SELECT 1 AS a"), None);
    let refused = (1..=24).find_map(|n| {
        let before = n - 1;
        let view =
            format!("CREATE VIEW v{n} AS SELECT x.a FROM v{before} x, v{before} y WHERE x.a = y.a");
        run_whole(&connection, &view)
    });
    assert_eq!(refused, Some("54001"));
}

/// The statements of the logic tests, cut into words.
fn corpus() -> Vec<Vec<String>> {
    let mut statements = Vec::new();
    for path in crate::recorded::files("logic", "test") {
        let text = fs::read_to_string(path).unwrap();
        for record in text.split("\n\n") {
            let mut lines = record.lines().skip_while(|line| {
                ["#", "skipif", "onlyif"].iter().any(|start| line.starts_with(start))
            });
            if lines
                .next()
                .is_some_and(|head| head.starts_with("statement") || head.starts_with("query"))
            {
                let text: Vec<&str> = lines.take_while(|line| *line != "----").collect();
                statements.push(words(&text.join(" ")));
            }
        }
    }
    statements.sort();
    assert!(statements.len() > 100);
    statements
}

fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last = ' ';
    for c in text.chars() {
        let joins = c.is_alphanumeric() && last.is_alphanumeric() || last == '\'' && c != ' ';
        if !joins {
            words.push(String::new());
        }
        if c != ' '
            && let Some(word) = words.last_mut()
        {
            word.push(c);
        }
        last = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Words that change what a statement means.
const ODD: [&str; 30] = [
    "NULL",
    "''",
    "0",
    "-1",
    "9223372036854775807",
    "1e308",
    "'x'",
    "DISTINCT",
    "NOT",
    "(",
    ")",
    ",",
    "*",
    "/",
    "%",
    "IN",
    "AND",
    "COUNT(*)",
    "SUM",
    "t",
    "p",
    "v",
    "id",
    "name",
    "a",
    "CASCADE",
    "DEFAULT",
    "CAST(",
    "::DATE",
    "ä",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn garbled_statements_are_errors_or_answers(
        picks in any::<[prop::sample::Index; 2]>(),
        changes in prop::collection::vec((0..5_u8, any::<[prop::sample::Index; 3]>()), 1..5),
        tables in prop::collection::vec(0..4_usize, 3),
    ) {
        thread_local! {
            static CORPUS: Vec<Vec<String>> = corpus();
        }
        let text = CORPUS.with(|corpus| {
            let mut statement = picks[0].get(corpus).clone();
            let other = picks[1].get(corpus);
            for (kind, at) in &changes {
                let place = at[0].index(statement.len() + 1);
                match kind {
                    0 if place < statement.len() => _ = statement.remove(place),
                    1 => statement.insert(place, at[1].get(&ODD).to_string()),
                    2 if place < statement.len() => statement[place] = at[1].get(&ODD).to_string(),
                    3 if !other.is_empty() => {
                        let start = at[1].index(other.len());
                        let end = start + at[2].index(other.len() - start) + 1;
                        statement.splice(place..place, other[start..end].iter().cloned());
                    }
                    _ if statement.len() > 1 => {
                        let with = at[1].index(statement.len());
                        let place = place.min(statement.len() - 1);
                        statement.swap(place, with);
                    }
                    _ => {}
                }
            }
            statement.join(" ")
        });
        // Names of the tests' tables become names of ours.
        let mut text = text;
        for (from, to) in ["fruit", "account", "country"].iter().zip(tables) {
            text = text.replace(from, ["p", "t", "plain", "v"][to]);
        }
        let connection = connect();
        run_whole(&connection, &text);
        // Whatever it was, the database goes on.
        prop_assert_eq!(run(&connection, "SELECT 1"), None);
        let report = connection.database().environment().verify().unwrap();
        prop_assert!(report.complaints.is_empty(), "{}: {:?}", text, report.complaints);
    }
}
