//! Indexes on expressions and partial indexes while several threads change rows, under every
//! isolation.

use std::sync::Barrier;

use super::{memory, number, transact};
use crate::common::LEVELS;
use quickbeam::Isolation;
use quickbeam_sql::{Connection, SqlDatabase, params};

fn in_threads(database: &SqlDatabase, work: impl Fn(i64, &Connection) + Sync) {
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (start, work, database) = (&start, &work, &database);
            scope.spawn(move || {
                let connection = database.connect();
                start.wait();
                work(thread, &connection);
            });
        }
    });
}

fn verify(database: &SqlDatabase) {
    let complaints = database.verify().unwrap().complaints;
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[test]
fn one_row_of_each_key_satisfies_the_predicate() {
    let script = "CREATE TABLE job (id INTEGER PRIMARY KEY, queue TEXT, live BOOLEAN);
        CREATE UNIQUE INDEX job_live ON job (lower(queue)) WHERE live;
        INSERT INTO job SELECT g, 'Q' || g % 3, false FROM generate_series(0, 11) AS g";
    for isolation in LEVELS {
        let database = memory(isolation, script);
        in_threads(&database, |thread, connection| {
            for round in 0..60_i64 {
                let (id, live) = ((round * 5 + thread) % 12, round % 3 != 0);
                let done = transact(connection, |connection| {
                    let change = "UPDATE job SET live = $2 WHERE id = $1";
                    connection.execute(change, params![id, live]).map(drop)
                });
                if let Err(error) = done {
                    assert_eq!(error.code(), "23505", "{error}");
                }
            }
        });
        let connection = database.connect();
        let twice = "SELECT count(*) FROM (SELECT lower(queue) FROM job WHERE live
            GROUP BY 1 HAVING count(*) > 1) s";
        assert_eq!(number(&connection, twice), 0, "{isolation:?}");
        let by_index = "SELECT count(*) FROM job WHERE live AND lower(queue) >= 'q'";
        let all = "SELECT count(*) FROM job WHERE live IS NOT DISTINCT FROM true";
        assert_eq!(number(&connection, by_index), number(&connection, all), "{isolation:?}");
        verify(&database);
    }
}

#[test]
fn upserts_by_an_expression_lose_no_change() {
    let script = "CREATE TABLE word (id SERIAL PRIMARY KEY, w TEXT, n INTEGER, kept BOOLEAN);
        CREATE UNIQUE INDEX word_w ON word (lower(w)) WHERE kept";
    for isolation in LEVELS {
        let database = memory(isolation, script);
        let rounds = 50_i64;
        in_threads(&database, |thread, connection| {
            for round in 0..rounds {
                let word =
                    if thread == 0 { format!("W{}", round % 4) } else { format!("w{}", round % 4) };
                let upsert = "INSERT INTO word (w, n, kept) VALUES ($1, 1, true)
                    ON CONFLICT (lower(w)) WHERE kept DO UPDATE SET n = word.n + 1";
                transact(connection, |connection| {
                    connection.execute(upsert, params![word.as_str()]).map(drop)
                })
                .unwrap();
            }
        });
        let connection = database.connect();
        assert_eq!(number(&connection, "SELECT count(*) FROM word"), 4, "{isolation:?}");
        assert_eq!(number(&connection, "SELECT sum(n) FROM word"), 2 * rounds, "{isolation:?}");
        verify(&database);
    }
}

/// Each transaction inserts where it found nothing: under serializable one of two must fail.
#[test]
fn serializable_sees_no_phantom_in_a_computed_range() {
    let script = "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, live BOOLEAN);
        CREATE INDEX t_sum ON t ((a + 1)) WHERE live;
        INSERT INTO t SELECT g, g, g % 2 = 0 FROM generate_series(1000, 1400) AS g";
    let database = memory(Isolation::Serializable, script);
    let query = "SELECT count(*) FROM t WHERE a + 1 BETWEEN $1 AND $1 + 3 AND live";
    in_threads(&database, |thread, connection| {
        for round in 0..40_i64 {
            transact(connection, |connection| {
                let mut rows = connection.query(query, params![round * 10])?;
                let found: i64 = rows.next()?.map_or(Ok(0), |row| row.get(0))?;
                drop(rows);
                if found == 0 {
                    let insert = "INSERT INTO t VALUES ($1, $2, true)";
                    connection.execute(insert, params![round * 2 + thread, round * 10 + thread])?;
                }
                Ok(())
            })
            .unwrap();
        }
    });
    let connection = database.connect();
    assert_eq!(number(&connection, "SELECT count(*) FROM t WHERE id < 1000"), 40);
    verify(&database);
}
