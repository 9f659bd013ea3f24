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
        let database = SqlDatabase::over(&environment).unwrap();
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
    let memory = SqlDatabase::memory(Options::new()).unwrap().connect();
    let text =
        "CREATE TABLE t AS SELECT i, repeat('x', 50) AS s FROM generate_series(1, 2000) AS g(i)";
    memory.execute(text, &[]).unwrap();
    memory.set_memory_limit(40 << 10);
    for mode in MODES {
        memory.execute(&format!("SET execution_mode = '{mode}'"), &[]).unwrap();
        assert_eq!(ask(&memory, "SELECT * FROM t ORDER BY s, i"), Err("53200".to_owned()));
    }
}
