//! Unique keys under a nondeterministic collation while several threads change rows, under every
//! isolation.

use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};

use super::{memory, number, transact};
use crate::common::LEVELS;
use quickbeam_sql::params;

const TABLES: &str = "
    CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE t (id BIGINT, name TEXT COLLATE ci PRIMARY KEY, other TEXT COLLATE ci UNIQUE);
    CREATE TABLE child (name TEXT REFERENCES t ON DELETE CASCADE)";

/// The same word for each thread, with other letters.
fn written(thread: i64, round: i64) -> String {
    let word = format!("wörd{round}");
    if thread == 0 { word } else { word.to_uppercase() }
}

#[test]
fn of_two_texts_that_are_equal_one_is_a_key() {
    for isolation in LEVELS {
        let database = memory(isolation, TABLES);
        let (start, winners, rounds) = (Barrier::new(2), AtomicI64::new(0), 40);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (start, winners, database) = (&start, &winners, &database);
                scope.spawn(move || {
                    let connection = database.connect();
                    for round in 0..rounds {
                        start.wait();
                        // One key or the other is in the way.
                        let text = match round % 2 {
                            0 => "INSERT INTO t VALUES ($1, $2, NULL)",
                            _ => "INSERT INTO t VALUES ($1, $1 || 'x', $2)",
                        };
                        let values = params![thread * 1000 + round, written(thread, round)];
                        let done = transact(&connection, |connection| {
                            connection.execute(text, values).map(drop)
                        });
                        match done {
                            Ok(()) => _ = winners.fetch_add(1, Ordering::Relaxed),
                            Err(error) => assert_eq!(error.code(), "23505", "{error}"),
                        }
                    }
                });
            }
        });
        assert_eq!(winners.load(Ordering::Relaxed), rounds, "{isolation:?}");
        let connection = database.connect();
        assert_eq!(number(&connection, "SELECT count(*) FROM t"), rounds, "{isolation:?}");
        let one = "SELECT count(*) FROM t WHERE name = 'WÖRD2' OR other = 'Wörd3'";
        assert_eq!(number(&connection, one), 2, "{isolation:?}");
        assert!(database.verify().unwrap().complaints.is_empty());
    }
}

#[test]
fn no_row_refers_to_a_key_that_went() {
    for isolation in LEVELS {
        let database = memory(isolation, TABLES);
        let script = "INSERT INTO t SELECT g, 'key' || g FROM generate_series(0, 9) AS g";
        database.connect().execute_script(script).unwrap();
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            for thread in 0..2_i64 {
                let (start, database) = (&start, &database);
                scope.spawn(move || {
                    let connection = database.connect();
                    for round in 0..40_i64 {
                        start.wait();
                        let texts = match thread {
                            0 => ["DELETE FROM t WHERE name = $1", "INSERT INTO t VALUES (1, $1)"],
                            _ => ["INSERT INTO child VALUES ($1)", "DELETE FROM child"],
                        };
                        let key = written(thread, round % 10).replace("wörd", "key");
                        let text = texts[usize::from(round % 4 == 3)];
                        let key = if thread == 0 { key } else { key.replace("WÖRD", "KEY") };
                        let done = transact(&connection, |connection| match text.contains("$1") {
                            true => connection.execute(text, params![key.clone()]).map(drop),
                            false => connection.execute(text, &[]).map(drop),
                        });
                        if let Err(error) = done {
                            assert!(error.code().starts_with("23"), "{error}");
                        }
                    }
                });
            }
        });
        let complaints = database.verify().unwrap().complaints;
        assert!(complaints.is_empty(), "{isolation:?}: {complaints:?}");
    }
}
