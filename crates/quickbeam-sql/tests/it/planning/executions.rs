//! A statement that is executed again answers as a fresh one does, however its last execution
//! ended: at its end, early, with an error in the middle of its rows, cancelled, without memory, or
//! in the way of another transaction (DIRECT-2).
//!
//! The statements are generated: every way to find rows under every way to use them. The parameter
//! `$1` chooses the row at which an execution divides by zero, so one text both fails and succeeds.

use std::collections::BTreeSet;

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value};

/// Rows of `t`, whose column `a` counts them from one.
const ROWS: i32 = 120;

/// Values of `$1` for which no row fails.
const GOOD: [i32; 2] = [-7, -1];

/// Divides by zero at the row of `t` whose `a` is `$1`.
const TRAP: &str = "1000 / (t.a - $1::int)";

/// Rows with the columns k, g, c and x, of which x may be the trap; then whether rows can be
/// locked.
const SOURCES: [(&str, bool); 24] = [
    ("SELECT t.a AS k, t.b AS g, t.c AS c, {x} AS x FROM t", true),
    ("SELECT t.a AS k, t.b AS g, t.c AS c, t.d AS x FROM t WHERE {x} > -5000", true),
    ("SELECT t.a AS k, t.b AS g, t.c AS c, {x} AS x FROM t WHERE t.a BETWEEN 5 AND 110", true),
    ("SELECT t.a AS k, t.b AS g, t.c AS c, {x} AS x FROM t WHERE t.b IN (1, 2, 3, 3, NULL)", true),
    (
        "SELECT t.a AS k, t.b AS g, t.c AS c, {x} AS x FROM t WHERE t.a IN (3, 9, $1::int, 50, 51)",
        true,
    ),
    ("SELECT t.a AS k, u.b AS g, u.c AS c, {x} AS x FROM t JOIN u ON t.b = u.b", true),
    ("SELECT t.a AS k, u.b AS g, t.c AS c, {x} AS x FROM u JOIN t ON t.a = u.k", true),
    (
        "SELECT t.a AS k, u.b AS g, t.c AS c, t.d AS x FROM t JOIN u ON t.b = u.b AND {x} <> u.k",
        true,
    ),
    ("SELECT t.a AS k, u.b AS g, u.c AS c, {x} AS x FROM t LEFT JOIN u ON t.a = u.b", false),
    ("SELECT t.a AS k, u.b AS g, u.c AS c, t.d AS x FROM u LEFT JOIN t ON {x} = u.b", false),
    ("SELECT t.a AS k, u.b AS g, t.c AS c, {x} AS x FROM t FULL JOIN u ON t.a = u.b + 60", false),
    (
        "SELECT u.k, q.g, q.c, q.x FROM u JOIN (SELECT t.b AS g, t.c AS c, {x} AS x FROM t) q ON q.g = u.b",
        false,
    ),
    ("SELECT t.a AS k, t.b AS g, t.c AS c, v.n + {x} AS x FROM t, (VALUES (1), (2)) v(n)", false),
    (
        "SELECT q.k, q.g, q.c, q.x FROM (SELECT t.a AS k, t.b AS g, t.c AS c, {x} AS x FROM t LIMIT 5000) q",
        false,
    ),
    (
        "SELECT q.k, q.g, q.c, q.x FROM (SELECT t.a AS k, t.b AS g, t.c AS c, {x} AS x FROM t ORDER BY t.c, t.a LIMIT 90 OFFSET 3) q",
        false,
    ),
    ("SELECT min(t.a) AS k, t.b AS g, max(t.c) AS c, sum({x}) AS x FROM t GROUP BY t.b", false),
    ("SELECT DISTINCT t.b AS k, t.b AS g, t.c AS c, {x} AS x FROM t", false),
    (
        "SELECT t.a AS k, t.b AS g, t.c AS c, {x} AS x FROM t UNION SELECT u.k, u.b, u.c, 7 FROM u",
        false,
    ),
    (
        "SELECT t.a AS k, t.b AS g, t.c AS c, {x} AS x FROM t UNION ALL SELECT t.b, t.a, t.c, {x} FROM t",
        false,
    ),
    (
        "SELECT t.a AS k, t.b AS g, t.c AS c, {x} AS x FROM t EXCEPT SELECT t.a, t.b, t.c, {x} FROM t WHERE t.b = 2",
        false,
    ),
    (
        "SELECT t.a AS k, t.b AS g, t.c AS c, (SELECT max(u.k) + {x} FROM u WHERE u.b = t.b) AS x FROM t",
        false,
    ),
    (
        "SELECT t.a AS k, t.b AS g, t.c AS c, t.d AS x FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.b = t.b AND u.k < 30 AND {x} <> 1)",
        false,
    ),
    ("SELECT u.k, u.b AS g, u.c, u.b AS x FROM u WHERE u.k IN (SELECT {x} + t.a FROM t)", false),
    (
        "SELECT u.k, u.b AS g, u.c, u.b AS x FROM u WHERE u.k > ALL (SELECT {x} - 2000 FROM t WHERE t.b = u.b)",
        false,
    ),
];

/// What is made of the rows of a source.
const USES: [&str; 14] = [
    "{q}",
    "SELECT sum(x), count(*), count(c), min(k), max(c) FROM ({q}) s",
    "SELECT g, count(*), sum(x), count(DISTINCT k) FROM ({q}) s GROUP BY g",
    "SELECT c, x, k FROM ({q}) s ORDER BY c DESC, k, x",
    "SELECT k, x FROM ({q}) s ORDER BY x, k LIMIT 7 OFFSET 2",
    "SELECT DISTINCT g, c FROM ({q}) s",
    "SELECT s.k, w.k, s.x FROM ({q}) s JOIN u w ON w.b = s.g WHERE w.k > 4",
    "SELECT w.k, w.c FROM u w WHERE EXISTS (SELECT 1 FROM ({q}) s WHERE s.g = w.b AND s.x < 1000)",
    "SELECT k, g FROM ({q}) s INTERSECT ALL SELECT u.k, u.b FROM u",
    "SELECT g, k, x, sum(x) OVER (PARTITION BY g ORDER BY k, x ROWS 2 PRECEDING), count(*) OVER () FROM ({q}) s ORDER BY g, k, x",
    "SELECT k, x, rank() OVER (ORDER BY x), lag(x) OVER (ORDER BY x, k) FROM ({q}) s ORDER BY x, k LIMIT 9",
    "SELECT g, c, count(*), sum(x), grouping(g, c) FROM ({q}) s GROUP BY CUBE (g, c)",
    "SELECT DISTINCT ON (g) g, k, x FROM ({q}) s ORDER BY g, k DESC, x",
    "SELECT k, x FROM ({q}) s ORDER BY x FETCH FIRST 3 ROWS WITH TIES",
];

/// Queries that are plans of their own: steps by columns below others, and those that no source
/// above has.
const QUERIES: [&str; 17] = [
    "SELECT 7 AS k, 1000 / (63 - $1::int) AS x",
    "SELECT q.g, count(*), sum(q.x), max(u.c) FROM (SELECT t.b AS g, {x} AS x FROM t LIMIT 5000) q JOIN u ON q.g = u.b GROUP BY q.g",
    "SELECT u.b, count(q.x), sum(q.x) FROM u LEFT JOIN (SELECT t.b AS g, {x} AS x FROM t LIMIT 5000) q ON q.g = u.b WHERE q.x > 3 OR q.x IS NULL GROUP BY u.b",
    "SELECT q.x, u.k FROM (SELECT t.b AS g, {x} AS x FROM t ORDER BY t.c LIMIT 80) q JOIN u ON q.g = u.b AND q.x > u.k ORDER BY q.x, u.k",
    "SELECT t.c, count(*), sum(t.a + $1::int) FROM t JOIN u ON t.b = u.b JOIN (SELECT t.b AS g, {x} AS x FROM t LIMIT 5000) q ON q.g = t.b GROUP BY t.c",
    "SELECT t.a, t.b FROM t WHERE t.a < ANY (SELECT u.k + {x} FROM u WHERE u.b > t.b)",
    "SELECT u.k, t.a, t.d FROM u LEFT JOIN t ON t.a = u.k AND {x} <> 4",
    "SELECT t.a, u.k FROM t LEFT JOIN u ON u.k < t.b AND {x} < u.k WHERE t.a < 70",
    "SELECT t.b, sum(t.a - $1::int) FROM t WHERE t.a + $1::int < 99 GROUP BY t.b",
    "SELECT t.a FROM t WHERE t.a IN (3, $1::int, 50, 50, NULL) AND {x} < 5000",
    "SELECT t.a FROM t WHERE (t.b, t.a) = (SELECT min(u.b), {x} FROM u WHERE u.k < t.b)",
    "WITH RECURSIVE r(n, x) AS (SELECT 1, 5 UNION ALL SELECT r.n + 1, {x} FROM r JOIN t ON t.a = r.n + 1) SELECT a.n, b.x FROM r a JOIN r b ON a.n = b.n + 1 WHERE a.n > 9",
    "WITH RECURSIVE r(n) AS (SELECT t.b FROM t WHERE {x} > -5000 UNION SELECT (r.n * 3) % 7 FROM r) SELECT n FROM r",
    "WITH q AS MATERIALIZED (SELECT t.a, {x} AS x FROM t) SELECT q.x, (SELECT count(*) FROM q w WHERE w.x < q.x) FROM q WHERE q.a < 30",
    "SELECT t.a, q.n FROM t, LATERAL (SELECT count(*) AS n FROM u WHERE u.k < {x}) q",
    "SELECT t.a, n, i FROM t, generate_series(t.b, 3 + {x} / 500) WITH ORDINALITY g(n, i)",
    "SELECT t.a FROM t WHERE (t.b, t.a) IN (SELECT u.b, u.k FROM u WHERE u.k <> {x})",
];

/// Statements that change or lock rows: they return what they changed, and are rolled back.
const CHANGES: [&str; 9] = [
    "SELECT t.a, u.k, {x} FROM t JOIN u ON t.b = u.b ORDER BY 1, 2 FOR UPDATE",
    "UPDATE t SET d = {x}, c = c || 'z' WHERE b > 1 RETURNING a, d, c",
    "UPDATE t SET d = u.k + {x} FROM u WHERE u.b = t.b RETURNING t.a, d, u.k",
    "DELETE FROM t WHERE {x} < 500 RETURNING a, b, c",
    "INSERT INTO w SELECT t.a, t.b, t.c, {x} FROM t RETURNING a, d",
    "INSERT INTO w SELECT t.a + 9000, t.b, t.c, {x} FROM t WHERE true ON CONFLICT (a) DO UPDATE SET d = w.d + excluded.d RETURNING a, d",
    "INSERT INTO t SELECT t.a + 5000, t.b, t.c, {x} FROM t RETURNING a, d",
    "WITH q AS (SELECT t.a, {x} AS x FROM t) UPDATE t SET d = q.x FROM q WHERE q.a = t.a AND EXISTS (SELECT 1 FROM q w WHERE w.a > t.a) RETURNING t.a, d",
    "INSERT INTO w VALUES (1, (SELECT count(*) FROM t WHERE {x} > 0), 'c', 4), (2, 3, (SELECT max(c) FROM u), $1::int) RETURNING a, b, c",
];

fn database() -> SqlDatabase {
    let options = Options::new().durability(Durability::InMemory);
    let database = SqlDatabase::open_in_memory(options).unwrap();
    let connection = database.connect();
    connection
        .execute_script(
            "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER NOT NULL, c TEXT, d INTEGER NOT NULL);
             CREATE INDEX t_b ON t (b);
             CREATE TABLE u (k INTEGER PRIMARY KEY, b BIGINT, c TEXT);
             CREATE TABLE w (a INTEGER PRIMARY KEY, b INTEGER, c TEXT, d INTEGER);
             INSERT INTO w SELECT 9000 + 3 * i, i, 'w', 5 FROM generate_series(1, 40) AS s (i)",
        )
        .unwrap();
    for a in 1..=ROWS {
        let c = if a % 11 == 0 { Value::Null } else { Value::text(format!("c{}", a * 7 % 13)) };
        let row = [Value::Integer(a), Value::Integer(a % 8), c, Value::Integer(a * a % 101)];
        connection.execute("INSERT INTO t VALUES ($1, $2, $3, $4)", &row).unwrap();
    }
    for k in 1..=25_i32 {
        let b = if k % 9 == 0 { Value::Null } else { Value::BigInt(i64::from(k % 6)) };
        let row = [Value::Integer(k), b, Value::text(format!("u{}", k % 4))];
        connection.execute("INSERT INTO u VALUES ($1, $2, $3)", &row).unwrap();
    }
    database
}

type Answer = Result<Vec<Vec<Value>>, String>;

fn parameter(text: &str, trap: i32) -> Vec<Value> {
    if text.contains("$1") { vec![Value::Integer(trap)] } else { Vec::new() }
}

/// A statement under test: its text, and whether it is undone after each execution.
struct Subject<'c> {
    connection: &'c Connection,
    text: String,
    undone: bool,
}

impl Subject<'_> {
    /// The first rows of an execution, which is then given up; `before` is called before each of
    /// them.
    fn first(&mut self, trap: i32, most: usize, mut before: impl FnMut(usize)) -> Answer {
        if self.undone {
            self.connection.begin().unwrap();
        }
        let parameters = parameter(&self.text, trap);
        let taken = self.connection.query(&self.text, &parameters).and_then(|mut rows| {
            let mut all = Vec::new();
            for nth in 0..most {
                before(nth);
                let Some(row) = rows.next()? else { break };
                all.push(row.to_values()?);
            }
            Ok(all)
        });
        if self.undone {
            self.connection.rollback().unwrap();
        }
        taken.map_err(|error| error.code().to_owned())
    }

    fn answer(&mut self, trap: i32) -> Answer {
        self.first(trap, usize::MAX, |_| {})
    }

    /// The answer of a statement that was never executed.
    fn fresh_answer(&mut self, trap: i32) -> Answer {
        if self.undone {
            self.connection.begin().unwrap();
        }
        let mut statement = self.connection.prepare(&self.text).unwrap();
        let parameters = parameter(&self.text, trap);
        let rows = statement.query(&parameters).and_then(|rows| rows.collect());
        if self.undone {
            self.connection.rollback().unwrap();
        }
        rows.map_err(|error| error.code().to_owned())
    }

    /// Ends executions in all ways, and looks after each whether the next one answers as it should.
    fn check(&mut self) -> bool {
        let expected = GOOD.map(|trap| self.fresh_answer(trap));
        assert!(expected.iter().all(Result::is_ok), "{}\n{expected:?}", self.text);
        let mut turn = 0;
        let mut look = |subject: &mut Self, after: &str| {
            turn += 1;
            let nth = turn % GOOD.len();
            let found = subject.answer(GOOD[nth]);
            assert_eq!(found, expected[nth], "after {after}: {}", subject.text);
        };
        look(self, "nothing");
        let mut failed = false;
        for trap in [1, 2, 50, 63, ROWS] {
            let answer = self.answer(trap);
            assert!(
                answer.is_ok() || answer == Err("22012".to_owned()),
                "{answer:?} {}",
                self.text
            );
            failed |= answer.is_err();
            look(self, "an error");
        }
        for most in [0, 1, 3] {
            self.first(GOOD[0], most, |_| {}).unwrap();
            look(self, "an early end");
        }
        for memory in [1, 700, 3_000, 9_000] {
            self.connection.set_memory_limit(memory);
            let answer = self.answer(GOOD[0]);
            self.connection.set_memory_limit(64 << 20);
            assert!(
                answer.is_ok() || answer == Err("53200".to_owned()),
                "{answer:?} {}",
                self.text
            );
            look(self, "too little memory");
        }
        for at in [0, 2] {
            let cancel = self.connection.cancel_handle();
            let before = |nth| {
                if nth == at {
                    cancel.cancel()
                }
            };
            let answer = self.first(GOOD[0], usize::MAX, before);
            assert!(
                answer.is_ok() || answer == Err("57014".to_owned()),
                "{answer:?} {}",
                self.text
            );
            look(self, "being cancelled");
        }
        failed
    }
}

/// The names of the steps of a plan, with the way that they go.
fn steps(connection: &Connection, text: &str) -> BTreeSet<String> {
    let plan = connection.query(&format!("EXPLAIN {text}"), &parameter(text, GOOD[0])).unwrap();
    let lines = plan.collect().unwrap();
    let step = |row: &Vec<Value>| {
        let line = row[0].to_string();
        let step = line.trim_start().trim_start_matches("-> ").to_owned();
        // Details stand under a step, further in and without an arrow.
        let is_step = line.contains("-> ") || !line.starts_with(' ');
        let name = step.split(" on ").next().unwrap().split(" (").next().unwrap();
        let name = name.split(" using ").next().unwrap().split(':').next().unwrap().to_owned();
        let is_said = |end: &str| if step.contains(end) { end.to_owned() } else { String::new() };
        let (columns, once) = (
            is_said(" (vectorized)"),
            is_said(" (ANY)") + &is_said(" (ALL)") + &is_said(" (EXISTS)") + &is_said(" (row)"),
        );
        is_step.then(|| format!("{}{columns}{once}", name.replace(" (vectorized)", "")))
    };
    lines.iter().filter_map(step).collect()
}

/// Every step of a plan that there is. A new one has to be among the plans of this test.
const STEPS: [&str; 49] = [
    "Aggregate",
    "Aggregate (vectorized)",
    "CTE Scan",
    "Delete from t",
    "Hash Distinct",
    "Except",
    "Filter",
    "Function Scan",
    "Filter (vectorized)",
    "Hash Aggregate",
    "Hash Aggregate (vectorized)",
    "Hash Full Join",
    "Hash Join",
    "Hash Join (vectorized)",
    "Hash Left Join",
    "Hash Left Join (vectorized)",
    "Index Scan",
    "Insert into t",
    "Insert into w",
    "Intersect all",
    "Limit",
    "Lock Rows",
    "Nested Loop",
    "Nested Loop Left Join",
    "Primary Key Lookup",
    "Primary Key Scan",
    "Recursive Union",
    "Recursive Union all",
    "Result",
    "Seq Scan",
    "Sort",
    "Sort (vectorized)",
    "Top-N Sort",
    "Top-N Sort (vectorized)",
    "Hashed Subquery (ANY)",
    "Hashed Subquery (EXISTS)",
    "IN-List",
    "Subquery",
    "Subquery (ALL)",
    "Subquery (ANY)",
    "Subquery (EXISTS)",
    "Subquery (row)",
    "Subquery Scan",
    "Union",
    "Union all",
    "Update t",
    "Values",
    "WindowAgg",
    "With",
];

#[test]
fn statement_answers_as_a_fresh_one_after_any_execution() {
    let database = database();
    let mut seen = BTreeSet::new();
    let mut failing = 0;
    for (way, workers) in [("row", 0), ("vectorized", 0), ("auto", 0), ("vectorized", 2)] {
        let connection = database.connect();
        connection.execute(&format!("SET execution_mode = '{way}'"), &[]).unwrap();
        let workers = format!("SET max_parallel_workers_per_gather = {workers}");
        connection.execute(&workers, &[]).unwrap();
        connection.execute("SET min_parallel_table_scan_size = 0", &[]).unwrap();
        let sources = SOURCES.iter().map(|(source, _)| source.replace("{x}", TRAP));
        let queries = sources.flat_map(|source| USES.map(|query| query.replace("{q}", &source)));
        let queries = queries.chain(QUERIES.map(|query| query.replace("{x}", TRAP)));
        let changes = CHANGES.map(|change| change.replace("{x}", TRAP));
        let subjects = queries.map(|text| (text, false)).chain(changes.map(|text| (text, true)));
        for (text, undone) in subjects {
            seen.extend(steps(&connection, &text));
            let mut subject = Subject { connection: &connection, text, undone };
            failing += usize::from(subject.check());
        }
    }
    let missing: Vec<&&str> = STEPS.iter().filter(|name| !seen.contains(**name)).collect();
    assert!(missing.is_empty(), "no plan has {missing:?}; there are {seen:?}");
    assert!(failing > 400, "only {failing} statements ever failed");
}

#[test]
fn statement_answers_as_a_fresh_one_after_a_conflict() {
    let database = database();
    let (connection, other) = (database.connect(), database.connect());
    let sources = SOURCES.iter().filter(|(_, locks)| *locks);
    let text = |source: &str| {
        format!("{} ORDER BY 1, 2, 4 FOR UPDATE OF t NOWAIT", source.replace("{x}", TRAP))
    };
    let texts: Vec<String> = sources.map(|(source, _)| text(source)).collect();
    for way in ["row", "vectorized"] {
        connection.execute(&format!("SET execution_mode = '{way}'"), &[]).unwrap();
        for text in &texts {
            let mut subject = Subject { connection: &connection, text: text.clone(), undone: true };
            let expected = subject.fresh_answer(GOOD[0]);
            assert!(expected.is_ok(), "{text} {expected:?}");
            for row in [9, 50, 57] {
                other.begin().unwrap();
                other
                    .execute("UPDATE t SET d = d + 1 WHERE a = $1", &[Value::Integer(row)])
                    .unwrap();
                let answer = subject.answer(GOOD[0]);
                assert!(answer.is_ok() || answer == Err("55P03".to_owned()), "{text} {answer:?}");
                other.rollback().unwrap();
                assert_eq!(subject.answer(GOOD[0]), expected, "{text}");
            }
        }
    }
}
