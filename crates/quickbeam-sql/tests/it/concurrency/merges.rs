//! MERGE and WITH that changes rows while several connections are at work, under every isolation.

use std::sync::Barrier;

use quickbeam_sql::{Connection, Result, SqlDatabase};

use super::{memory, number};
use crate::common::LEVELS;

/// Executes a statement until it is done. A key that another connection inserts meanwhile is an
/// error that can be tried again, as in PostgreSQL.
fn insist(connection: &Connection, statement: &str) -> Result<u64> {
    loop {
        match connection.execute(statement, &[]) {
            Err(error) if error.is_retryable() || error.code() == "23505" => {
                std::thread::yield_now();
            }
            done => return done,
        }
    }
}

/// Runs `work` in two threads, which begin at the same time.
fn in_two_threads(database: &SqlDatabase, work: impl Fn(&Connection, usize) + Sync) {
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                let connection = database.connect();
                start.wait();
                work(&connection, thread);
            });
        }
    });
}

#[test]
fn merges_of_two_connections_count_each_row_once() {
    for isolation in LEVELS {
        let database = memory(isolation, "CREATE TABLE t (k INTEGER PRIMARY KEY, n INTEGER)");
        in_two_threads(&database, |connection, thread| {
            for round in 0..60 {
                let (a, b) = ((round + thread) % 7, 7 + round % 3);
                let done = insist(
                    connection,
                    &format!(
                        "MERGE INTO t USING (VALUES ({a}), ({b})) s (k) ON t.k = s.k
                         WHEN MATCHED AND t.n >= 20 THEN DELETE
                         WHEN MATCHED THEN UPDATE SET n = t.n + 1
                         WHEN NOT MATCHED THEN INSERT VALUES (s.k, 1)"
                    ),
                );
                assert_eq!(done.unwrap(), 2, "{isolation:?}");
            }
        });
        // A row counts to 20 and goes with the next merge, so a key's merges modulo 21 are left.
        let connection = database.connect();
        for key in 0..10 {
            let merges = (0..2).flat_map(|thread| (0..60).map(move |round| (round, thread)));
            let merges = merges
                .filter(|(round, thread)| (round + thread) % 7 == key || 7 + round % 3 == key);
            let query = format!("SELECT coalesce(sum(n), 0) FROM t WHERE k = {key}");
            let expected = i64::try_from(merges.count() % 21).unwrap();
            assert_eq!(number(&connection, &query), expected, "{isolation:?}, key {key}");
        }
    }
}

#[test]
fn rows_that_move_between_tables_are_never_lost() {
    for isolation in LEVELS {
        let database = memory(
            isolation,
            "CREATE TABLE a (k INTEGER PRIMARY KEY, n INTEGER);
             CREATE TABLE b (k INTEGER PRIMARY KEY, n INTEGER);
             INSERT INTO a SELECT k, 0 FROM generate_series(1, 20) AS s (k)",
        );
        in_two_threads(&database, |connection, thread| {
            for round in 0..60 {
                let (from, to) = if (round + thread) % 2 == 0 { ("a", "b") } else { ("b", "a") };
                let first = 1 + round * 3 % 20;
                insist(
                    connection,
                    &format!(
                        "WITH moved AS (DELETE FROM {from} WHERE k BETWEEN {first} AND {first} + 4
                             RETURNING k, n)
                         INSERT INTO {to} SELECT k, n + 1 FROM moved"
                    ),
                )
                .unwrap();
            }
        });
        let connection = database.connect();
        let keys = "SELECT count(DISTINCT k) FROM (SELECT k FROM a UNION ALL SELECT k FROM b) s";
        let rows = "SELECT count(*) FROM (SELECT k FROM a UNION ALL SELECT k FROM b) s";
        assert_eq!((number(&connection, keys), number(&connection, rows)), (20, 20));
    }
}
