//! What exceeds `work_mem` goes to temporary files: the answers are those of a statement with
//! enough memory, and no way to end a statement leaves a file.

#[allow(dead_code)]
#[path = "../../../../quickbeam/tests/common/faulty.rs"]
mod faulty;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use faulty::{Call, FaultyVfs};
use quickbeam::vfs::Vfs;
use quickbeam::{Environment, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value};

const DIRECTORY: &str = "/spilling";

/// Counts of calls on temporary files.
#[derive(Default)]
struct Calls {
    /// Calls that may still be made before all fail.
    left: AtomicU64,
    /// Temporary files that were created.
    created: AtomicUsize,
}

impl Calls {
    /// Returns the error of a call that may not be made any more.
    fn check(&self, call: Call, path: &Path, kind: io::ErrorKind) -> Option<io::Error> {
        let counts = matches!(call, Call::Open(_) | Call::Read | Call::Write { .. });
        if !counts || !is_temporary(path) {
            return None;
        }
        let left = self.left.load(Ordering::SeqCst);
        if left == 0 {
            return Some(kind.into());
        }
        self.left.store(left - 1, Ordering::SeqCst);
        self.created.fetch_add(usize::from(matches!(call, Call::Open(_))), Ordering::SeqCst);
        None
    }
}

fn is_temporary(path: &Path) -> bool {
    path.file_name().unwrap().to_str().unwrap().starts_with("temporary-")
}

/// A database with a table of `rows` rows, many of whose values are equal or NULL.
struct World {
    vfs: Arc<FaultyVfs>,
    calls: Arc<Calls>,
    database: SqlDatabase,
}

impl World {
    fn new(kind: io::ErrorKind, rows: usize) -> World {
        let calls = Arc::new(Calls { left: u64::MAX.into(), ..Calls::default() });
        let vfs = FaultyVfs::in_memory();
        let rule = calls.clone();
        vfs.set_rule(move |call, path| rule.check(call, path, kind));
        let path = Some(Path::new(DIRECTORY));
        let environment = Environment::open_in(vfs.clone(), path, Options::new()).unwrap();
        let database = SqlDatabase::attach(&environment).unwrap();
        let world = World { vfs, calls, database };
        let insert = format!(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, k INTEGER, s TEXT, n NUMERIC(9, 2), d DATE, f DOUBLE PRECISION NOT NULL);
             INSERT INTO t SELECT i, nullif(i * 7919 % 101, 7), repeat(chr(97 + i * 31 % 26), i % 40), i * 37 % 977 / 4.0,
               DATE '2020-01-01' + i * 13 % 500, i * 3 % 17 FROM generate_series(1, {rows}) AS g(i)"
        );
        world.database.connect().execute_script(&insert).unwrap();
        world
    }

    fn connect(&self, mode: &str, memory: usize) -> Connection {
        let connection = self.database.connect();
        connection.execute(&format!("SET execution_mode = '{mode}'"), &[]).unwrap();
        connection.set_memory_limit(memory);
        connection
    }

    /// The names of the temporary files that exist.
    fn files(&self) -> Vec<PathBuf> {
        let mut names = self.vfs.list_directory(Path::new(DIRECTORY)).unwrap();
        names.retain(|path| is_temporary(path));
        names
    }

    fn created(&self) -> usize {
        self.calls.created.load(Ordering::SeqCst)
    }

    fn fail_after(&self, calls: u64) {
        self.calls.left.store(calls, Ordering::SeqCst);
    }
}

fn ask(connection: &Connection, text: &str) -> Result<Vec<Vec<Value>>, String> {
    let rows = connection.query(text, &[]).and_then(|rows| rows.collect());
    rows.map_err(|error| error.code().to_owned())
}

/// Checks an answer without printing all of it.
fn check(connection: &Connection, text: &str, expected: &[Vec<Value>], mode: &str) {
    let rows = match ask(connection, text) {
        Ok(rows) => rows,
        Err(code) => panic!("{mode}: {text}: error {code}"),
    };
    let differs = rows.iter().zip(expected).position(|(found, expected)| found != expected);
    assert!(differs.is_none(), "{mode}: {text}: row {differs:?} is another");
    assert_eq!(rows.len(), expected.len(), "{mode}: {text}");
}

const MODES: [&str; 2] = ["row", "vectorized"];
const LARGE: usize = 64 << 20;

/// Sorts: every direction, order of NULLs and type; with rows of equal keys; of computed values;
/// with LIMIT; in subqueries and below joins.
const SORTS: [&str; 9] = [
    "SELECT id, k, s, n, d, f FROM t ORDER BY k, s DESC, id",
    "SELECT s, k FROM t ORDER BY k DESC NULLS LAST, s",
    "SELECT id FROM t ORDER BY k NULLS FIRST, d",
    "SELECT n, id FROM t ORDER BY n DESC, id DESC",
    "SELECT f, id FROM t ORDER BY f, d, id",
    "SELECT id FROM t ORDER BY k + id % 3, s LIMIT 700 OFFSET 1500",
    "SELECT upper(s), id FROM t ORDER BY 1 DESC, d, k, id",
    "SELECT count(*), sum(id) FROM (SELECT id, k FROM t ORDER BY d, id OFFSET 10) x",
    "SELECT a.id, b.s FROM (SELECT id, k FROM t ORDER BY s, id) a JOIN (SELECT id, s FROM t WHERE id < 40) b ON b.id = a.k ORDER BY b.s, a.id",
];

#[test]
fn sorts_beyond_the_memory_answer_as_those_within_it() {
    let world = World::new(io::ErrorKind::Other, 3_000);
    for mode in MODES {
        let (much, little) = (world.connect(mode, LARGE), world.connect(mode, 40 << 10));
        for text in SORTS {
            let (expected, before) = (ask(&much, text).unwrap(), world.created());
            // The second execution finds the operators of the first.
            for _ in 0..2 {
                check(&little, text, &expected, mode);
            }
            assert!(world.created() > before, "{mode}: {text} did not spill");
            assert_eq!(world.files(), Vec::<PathBuf>::new());
        }
    }
}

/// Groups and distinct rows, ordered so that answers can be compared: of every kind of key, with
/// all kinds of states, over joins, with GROUPING SETS and FILTER, in subqueries run again.
const GROUPS: [&str; 11] = [
    "SELECT id, count(*), sum(k), min(s), avg(n) FROM t GROUP BY id ORDER BY id",
    "SELECT id % 2000 AS g, count(k), max(d), min(k) FROM t GROUP BY id % 2000 ORDER BY 1",
    "SELECT s, k, count(*), sum(f), max(n) FROM t GROUP BY s, k ORDER BY s, k",
    "SELECT d, s, n, count(*) FROM t GROUP BY d, s, n ORDER BY d, s, n",
    "SELECT nullif(id % 1500, 3) AS g, count(*) FILTER (WHERE k > 50), sum(id) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT id % 700 AS a, k, grouping(k), count(*), sum(f) FROM t GROUP BY GROUPING SETS ((id % 700, k), (k), ()) ORDER BY 1, 2, 3",
    "SELECT a.s, b.id, count(*) FROM t a JOIN (SELECT id FROM t WHERE id < 40) b ON b.id = a.k GROUP BY a.s, b.id ORDER BY 1, 2",
    "SELECT DISTINCT k, s FROM t ORDER BY k, s",
    "SELECT DISTINCT id FROM t ORDER BY id",
    "SELECT count(*), sum(x.g) FROM (SELECT DISTINCT id * 2 AS g, n FROM t) x",
    "SELECT v.i, (SELECT sum(q.c * q.g) FROM (SELECT id % 2500 AS g, count(*) AS c FROM t WHERE id > v.i GROUP BY 1) q) FROM (VALUES (1), (500)) v(i) ORDER BY 1",
];

#[test]
fn groups_beyond_the_memory_answer_as_those_within_it() {
    let world = World::new(io::ErrorKind::Other, 3_000);
    for mode in MODES {
        let (much, little) = (world.connect(mode, LARGE), world.connect(mode, 36 << 10));
        for text in GROUPS {
            let (expected, before) = (ask(&much, text).unwrap(), world.created());
            for _ in 0..2 {
                check(&little, text, &expected, mode);
            }
            assert!(world.created() > before, "{mode}: {text} did not spill");
            assert_eq!(world.files(), Vec::<PathBuf>::new());
        }
    }
}

/// Joins, ordered so that answers can be compared: of each kind, by numbers and by several keys,
/// with conditions besides the keys, with many rows of one key, below aggregations and each other,
/// in subqueries run again.
const JOINS: [&str; 11] = [
    "SELECT a.id, a.s, b.k FROM t a JOIN t b ON b.id = a.id + 1 ORDER BY a.id",
    "SELECT a.id, b.s FROM t a LEFT JOIN t b ON b.id = a.id * 2 AND b.k > 20 ORDER BY a.id",
    "SELECT a.id, b.id, b.s FROM t a FULL JOIN t b ON b.id = a.id * 2 AND a.k > b.k ORDER BY 1, 2",
    "SELECT a.id, b.id FROM t a FULL JOIN t b ON b.k = a.k AND b.s = a.s AND b.id = a.id + 1 ORDER BY 1, 2",
    "SELECT a.id, b.id FROM t a JOIN t b ON b.s = a.s AND b.k = a.k WHERE a.id % 50 = 1 OR b.id % 50 = 1 ORDER BY 1, 2",
    "SELECT a.k, count(*), sum(b.id), min(b.s) FROM t a JOIN t b ON b.id = a.id + 5 GROUP BY a.k ORDER BY 1",
    "SELECT a.k, count(*), count(b.s), sum(b.f) FROM t a LEFT JOIN t b ON b.id = a.id * 2 AND b.f > 3 GROUP BY a.k ORDER BY 1",
    "SELECT a.s, count(*), count(b.s) FROM t a LEFT JOIN t b ON b.s = a.s AND b.d = a.d AND b.id > a.id GROUP BY a.s ORDER BY 1",
    "SELECT count(*), sum(a.id + b.id) FROM t a JOIN (SELECT id, k, f FROM t WHERE k < 60) b ON b.k = a.k AND b.f < a.f",
    "SELECT count(*), sum(c.id), sum(a.k) FROM t a JOIN t b ON b.id = a.id + 1 LEFT JOIN t c ON c.id = b.id * 2",
    "SELECT v.i, (SELECT count(*) + sum(b.id) FROM t a JOIN t b ON b.id = a.id + v.i) FROM (VALUES (1), (500)) v(i) ORDER BY 1",
];

#[test]
fn joins_beyond_the_memory_answer_as_those_within_it() {
    let world = World::new(io::ErrorKind::Other, 3_000);
    for mode in MODES {
        let all = [LARGE, 40 << 10, 4 << 10].map(|memory| {
            let connection = world.connect(mode, memory);
            connection.execute("SET enable_nestloop = off", &[]).unwrap();
            connection
        });
        let [much, little, least] = &all;
        for text in JOINS {
            let (expected, before) = (ask(much, text).unwrap(), world.created());
            for _ in 0..2 {
                check(little, text, &expected, mode);
            }
            assert!(world.created() > before, "{mode}: {text} did not spill");
            check(least, text, &expected, mode);
            assert_eq!(world.files(), Vec::<PathBuf>::new());
        }
    }
}

/// Existence tests as semi-joins and anti-joins: by numbers and by several keys, some of them NULL,
/// with conditions on both rows; the last two with products that only row execution computes.
const EXISTENCE_TESTS: [&str; 6] = [
    "SELECT a.s, count(*), sum(a.id) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.id = a.id * 2 AND b.k > a.k) GROUP BY a.s ORDER BY 1",
    "SELECT count(*), sum(a.id), min(a.s) FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.id = a.k * 29)",
    "SELECT a.k, count(*), min(a.s) FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.k = a.k AND b.s = a.s AND b.f > a.f) GROUP BY a.k ORDER BY 1",
    "SELECT count(*), sum(a.id) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.id = a.id + 5) AND NOT EXISTS (SELECT 1 FROM t c WHERE c.id = a.id * 2 AND c.f > 3)",
    "SELECT count(*), sum(a.n * 1.00000000000001 * 1.00000000000001 * 1.00000000000001) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.id = a.id * 2 AND b.k > a.k)",
    "SELECT count(*), sum(a.n * 1.00000000000001 * 1.00000000000001 * 1.00000000000001) FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.k = a.k AND b.s = a.s AND b.f > a.f)",
];

#[test]
fn semi_joins_beyond_the_memory_answer_as_those_within_it() {
    let world = World::new(io::ErrorKind::Other, 3_000);
    let [much, little, least] =
        [LARGE, 40 << 10, 4 << 10].map(|memory| world.connect("vectorized", memory));
    for text in EXISTENCE_TESTS {
        let explained = ask(&much, &format!("EXPLAIN {text}")).unwrap();
        assert!(format!("{explained:?}").contains("Hash Right "), "{text}: {explained:?}");
        let (expected, before) = (ask(&much, text).unwrap(), world.created());
        for _ in 0..2 {
            check(&little, text, &expected, "vectorized");
        }
        assert!(world.created() > before, "{text} did not spill");
        check(&least, text, &expected, "vectorized");
        assert_eq!(world.files(), Vec::<PathBuf>::new());
        much.execute("SET enable_hashjoin = off", &[]).unwrap();
        check(&much, text, &expected, "without hash joins");
        much.execute("RESET enable_hashjoin", &[]).unwrap();
    }
}

#[test]
fn rows_joined_beyond_the_memory_can_be_changed() {
    let world = World::new(io::ErrorKind::Other, 3_000);
    let connection = world.connect("row", LARGE);
    connection.execute("SET enable_nestloop = off", &[]).unwrap();
    let change = "UPDATE t SET k = b.id FROM (SELECT id, s FROM t) b
        WHERE b.id = t.id + 7 AND (t.id + b.id) % 97 = 0";
    let mut sums = Vec::new();
    for memory in [LARGE, 40 << 10] {
        let before = world.created();
        connection.execute("BEGIN", &[]).unwrap();
        connection.set_memory_limit(memory);
        connection.execute(change, &[]).unwrap();
        assert_eq!(world.created() > before, memory != LARGE);
        connection.set_memory_limit(LARGE);
        let text = "SELECT count(*), sum(k), sum(k * id) FROM t";
        sums.push(ask(&connection, text).unwrap());
        connection.execute("ROLLBACK", &[]).unwrap();
    }
    assert_eq!(sums[0], sums[1]);
}

/// Set operations, ordered so that answers can be compared.
const SETS: [&str; 8] = [
    "SELECT id, s FROM t UNION SELECT id + 1, s FROM t ORDER BY 1, 2",
    "SELECT k, n FROM t UNION SELECT k, n FROM t UNION SELECT id, n FROM t ORDER BY 1, 2",
    "SELECT id, k FROM t WHERE id % 3 > 0 INTERSECT SELECT id, k FROM t WHERE id % 2 = 0 ORDER BY 1",
    "SELECT id % 1500, s FROM t INTERSECT ALL SELECT id % 1500, s FROM t WHERE id % 5 > 0 ORDER BY 1, 2",
    "SELECT id % 1500, k FROM t EXCEPT SELECT id, k FROM t WHERE id % 7 = 0 ORDER BY 1, 2",
    "SELECT id % 1500, k FROM t EXCEPT ALL SELECT id, k FROM t WHERE id % 7 > 0 ORDER BY 1, 2",
    "SELECT id, s, k FROM t EXCEPT SELECT 1, s, k FROM t WHERE id < 3 ORDER BY 1",
    "SELECT v.i, (SELECT sum(q.id) FROM (SELECT id FROM t INTERSECT SELECT id + v.i FROM t) q) FROM (VALUES (1), (500)) v(i) ORDER BY 1",
];

#[test]
fn set_operations_beyond_the_memory_answer_as_within_it() {
    let world = World::new(io::ErrorKind::Other, 3_000);
    let all = [LARGE, 40 << 10, 4 << 10].map(|memory| world.connect("row", memory));
    let [much, little, least] = &all;
    for text in SETS {
        let (expected, before) = (ask(much, text).unwrap(), world.created());
        for _ in 0..2 {
            check(little, text, &expected, "row");
        }
        assert!(world.created() > before, "{text} did not spill");
        check(least, text, &expected, "row");
        assert_eq!(world.files(), Vec::<PathBuf>::new());
    }
}

/// Window functions over partitions that do not fit into memory, ordered so that answers can be
/// compared: of the whole partition, up to the row and up to its peers.
const WINDOWS: [&str; 6] = [
    "SELECT id, row_number() OVER w, rank() OVER w, dense_rank() OVER w, percent_rank() OVER w, cume_dist() OVER w, ntile(7) OVER w FROM t WINDOW w AS (ORDER BY k, d) ORDER BY id",
    "SELECT id, sum(k) OVER (ORDER BY d), count(s) OVER (ORDER BY d RANGE UNBOUNDED PRECEDING), sum(id) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) FROM t ORDER BY id",
    "SELECT id, sum(n) OVER (), max(s) OVER (), count(*) FILTER (WHERE k > 50) OVER (), first_value(id) OVER (ORDER BY n, id), last_value(s) OVER (ORDER BY n, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM t ORDER BY id",
    "SELECT id, lag(s) OVER (ORDER BY k, id), lag(k, 3, -1) OVER (ORDER BY d, id), last_value(k) OVER (ORDER BY n), min(id) OVER (ORDER BY n GROUPS UNBOUNDED PRECEDING) FROM t ORDER BY id",
    "SELECT id, id % 2 AS p, row_number() OVER (PARTITION BY id % 2 ORDER BY s, id), sum(k) OVER (PARTITION BY id % 2 ORDER BY s, id), avg(n) OVER (PARTITION BY id % 2) FROM t ORDER BY id",
    "SELECT v.i, (SELECT sum(q.r) FROM (SELECT rank() OVER (ORDER BY s, id) AS r FROM t WHERE id > v.i) q) FROM (VALUES (1), (500)) v(i) ORDER BY 1",
];

#[test]
fn windows_beyond_the_memory_answer_as_those_within_it() {
    let world = World::new(io::ErrorKind::Other, 3_000);
    let (much, little) = (world.connect("row", LARGE), world.connect("row", 100 << 10));
    for text in WINDOWS {
        let (expected, before) = (ask(&much, text).unwrap(), world.created());
        for _ in 0..2 {
            check(&little, text, &expected, "row");
        }
        assert!(world.created() > before + 2, "{text} did not spill");
        assert_eq!(world.files(), Vec::<PathBuf>::new());
    }
    // A frame that begins elsewhere needs its partition in memory.
    let text = "SELECT sum(k) OVER (ORDER BY id ROWS 2 PRECEDING) FROM t";
    assert_eq!(ask(&little, text), Err("53200".to_owned()));
}

#[test]
fn partitions_that_do_not_fit_either_are_split_again() {
    let world = World::new(io::ErrorKind::Other, 20_000);
    for mode in MODES {
        for text in [
            "SELECT count(*), sum(q.c), sum(q.m) FROM (SELECT id, count(*) AS c, max(k) AS m FROM t GROUP BY id) q",
            "SELECT count(*), sum(q.c) FROM (SELECT id, s, count(*) AS c FROM t GROUP BY id, s) q",
            "SELECT count(*), sum(q.id) FROM (SELECT DISTINCT id, s FROM t) q",
        ] {
            let expected = ask(&world.connect(mode, LARGE), text).unwrap();
            check(&world.connect(mode, 4 << 10), text, &expected, mode);
        }
    }
}

#[test]
fn runs_that_are_too_many_for_one_merge_are_merged_in_passes() {
    let world = World::new(io::ErrorKind::Other, 20_000);
    for mode in MODES {
        let text = "SELECT k, id, s FROM t ORDER BY k, s";
        let expected = ask(&world.connect(mode, LARGE), text).unwrap();
        let before = world.created();
        check(&world.connect(mode, 4 << 10), text, &expected, mode);
        assert_eq!(world.created(), before + 1);
    }
}

#[test]
fn a_failed_call_ends_the_statement_and_leaves_no_file() {
    for (kind, code) in [(io::ErrorKind::StorageFull, "53100"), (io::ErrorKind::Other, "58030")] {
        let world = World::new(kind, 3_000);
        for mode in MODES {
            let connection = world.connect(mode, 40 << 10);
            let text = SORTS[0];
            let expected = ask(&world.connect(mode, LARGE), text).unwrap();
            let (mut failures, mut calls) = (0, 0);
            loop {
                world.fail_after(calls);
                let answer = ask(&connection, text);
                world.fail_after(u64::MAX);
                assert_eq!(world.files(), Vec::<PathBuf>::new());
                if answer.is_ok() {
                    assert_eq!(answer, Ok(expected));
                    break;
                }
                assert_eq!(answer, Err(code.to_owned()), "{mode}: after {calls} calls");
                failures += 1;
                calls += 1 + calls / 4;
            }
            assert!(failures > 10, "{mode}: only {failures} calls could fail");
        }
    }
}

#[test]
fn a_statement_that_ends_early_or_is_cancelled_leaves_no_file() {
    let world = World::new(io::ErrorKind::Other, 3_000);
    for mode in MODES {
        let connection = world.connect(mode, 40 << 10);
        for text in [
            "SELECT id, s FROM t ORDER BY k, s",
            "SELECT (SELECT max(x.id) FROM (SELECT id FROM t ORDER BY s, id OFFSET 0) x), id FROM t",
        ] {
            let mut rows = connection.query(text, &[]).unwrap();
            assert!(rows.next().unwrap().is_some());
            assert_eq!(world.files().len(), 1, "{mode}: {text}");
            drop(rows);
            assert_eq!(world.files(), Vec::<PathBuf>::new());
        }
        let mut rows = connection.query(SORTS[0], &[]).unwrap();
        connection.cancel_handle().cancel();
        assert_eq!(rows.next().map(|_| ()).unwrap_err().code(), "57014");
        drop(rows);
        assert_eq!(world.files(), Vec::<PathBuf>::new());
        // The rows of several queries are read at a time, each from its own file.
        let other = world.connect(mode, 40 << 10);
        let (mut one, mut two) =
            (connection.query(SORTS[0], &[]).unwrap(), other.query(SORTS[0], &[]).unwrap());
        while let Some(row) = one.next().unwrap() {
            let row = row.to_values().unwrap();
            assert_eq!(two.next().unwrap().unwrap().to_values().unwrap(), row);
        }
        assert_eq!(world.files().len(), 2);
    }
}

#[test]
fn in_memory_and_read_only_there_is_no_file() {
    let memory = SqlDatabase::open_in_memory(Options::new()).unwrap().connect();
    let text =
        "CREATE TABLE t AS SELECT i, repeat('x', 50) AS s FROM generate_series(1, 2000) AS g(i)";
    memory.execute(text, &[]).unwrap();
    memory.set_memory_limit(40 << 10);
    for mode in MODES {
        memory.execute(&format!("SET execution_mode = '{mode}'"), &[]).unwrap();
        assert_eq!(ask(&memory, "SELECT * FROM t ORDER BY s, i"), Err("53200".to_owned()));
    }
}
