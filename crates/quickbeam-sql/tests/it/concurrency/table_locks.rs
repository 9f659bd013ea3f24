//! LOCK TABLE beside connections that write.

use std::time::Duration;

use quickbeam_sql::Connection;

use super::{memory, number};
use crate::common::LEVELS;

const TABLES: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER);
    CREATE TABLE u (id INTEGER PRIMARY KEY);
    CREATE VIEW both_tables AS SELECT t.id FROM t JOIN u ON t.id = u.id;
    CREATE INDEX t_n ON t (n); CREATE SEQUENCE s;
    INSERT INTO t VALUES (1, 1), (2, 2)";

fn run(connection: &Connection, script: &str) {
    connection.execute_script(script).unwrap();
}

fn refusal(connection: &Connection, text: &str) -> (String, String) {
    let rows = connection.query(text, &[]).and_then(|rows| rows.collect().map(|_| ()));
    let error = rows.unwrap_err();
    (error.code().to_owned(), error.to_string())
}

#[test]
fn lock_keeps_other_connections_from_writing() {
    for isolation in LEVELS {
        let database = memory(isolation, TABLES);
        let (holder, other) = (database.connect(), database.connect());
        run(&other, "SET lock_timeout = 1");
        for mode in [
            "",
            "IN SHARE MODE",
            "IN SHARE ROW EXCLUSIVE MODE",
            "IN SHARE UPDATE EXCLUSIVE MODE",
            "IN EXCLUSIVE MODE",
            "IN ACCESS EXCLUSIVE MODE",
        ] {
            run(&holder, &format!("BEGIN; LOCK TABLE ONLY t {mode}"));
            for statement in [
                "INSERT INTO t VALUES (3, 3)",
                "UPDATE t SET n = n + 1 WHERE id = 1",
                "UPDATE t SET n = n + 1",
                "DELETE FROM t",
                "SELECT * FROM t WHERE id = 1 FOR UPDATE",
            ] {
                assert_eq!(refusal(&other, statement).0, "55P03", "{mode}: {statement}");
            }
            assert_eq!(number(&other, "SELECT count(*) FROM t"), 2);
            run(&other, "INSERT INTO u VALUES (1); DELETE FROM u");
            run(&holder, "UPDATE t SET n = n + 1; COMMIT");
            run(&other, "UPDATE t SET n = n - 1");
        }
        for mode in ["ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE"] {
            run(&holder, &format!("BEGIN; LOCK t IN {mode} MODE"));
            run(&other, "UPDATE t SET n = n + 1");
            run(&holder, "ROLLBACK");
        }
    }
}

#[test]
fn lock_of_a_view_locks_the_tables_that_it_reads() {
    let database = memory(LEVELS[0], TABLES);
    let (holder, other) = (database.connect(), database.connect());
    run(&holder, "BEGIN; LOCK TABLE both_tables");
    run(&other, "SET lock_timeout = 1");
    assert_eq!(refusal(&other, "DELETE FROM t").0, "55P03");
    assert_eq!(refusal(&other, "INSERT INTO u VALUES (1)").0, "55P03");
    run(&other, "BEGIN");
    let refused = refusal(&other, "LOCK u IN SHARE MODE NOWAIT");
    assert_eq!(refused.0, "55P03");
    assert!(refused.1.contains("could not obtain lock on relation \"u\""), "{}", refused.1);
    run(&other, "ROLLBACK");
    for (name, kind) in [("s", "sequences"), ("t_n", "indexes")] {
        let refused = refusal(&holder, &format!("LOCK TABLE {name}"));
        assert_eq!(refused.0, "42809", "{kind}");
        assert!(refused.1.contains(&format!("cannot lock relation \"{name}\"")), "{}", refused.1);
    }
}

/// The usual reason for a lock: the greatest number is read, and the next one inserted.
#[test]
fn locked_transactions_follow_one_another() {
    for isolation in LEVELS {
        let database = memory(isolation, TABLES);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let connection = database.connect();
                scope.spawn(move || {
                    for round in 0..40 {
                        let second = if round % 2 == 0 { "LOCK TABLE u;" } else { "" };
                        run(&connection, &format!("BEGIN; LOCK TABLE t; {second}"));
                        let last = number(&connection, "SELECT max(id) FROM t");
                        let insert = format!("INSERT INTO t VALUES ({}, 0)", last + 1);
                        assert_eq!(connection.execute(&insert, &[]).unwrap(), 1, "{isolation:?}");
                        run(&connection, "COMMIT");
                    }
                });
            }
        });
        assert_eq!(number(&database.connect(), "SELECT max(id) FROM t"), 122);
    }
}

#[test]
fn canceling_ends_the_wait_for_a_table() {
    let database = memory(LEVELS[0], TABLES);
    let (holder, other) = (database.connect(), database.connect());
    run(&holder, "BEGIN; INSERT INTO t VALUES (3, 3)");
    run(&other, "BEGIN");
    std::thread::scope(|scope| {
        let handle = other.cancel_handle();
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            handle.cancel();
        });
        assert_eq!(refusal(&other, "LOCK TABLE t").0, "57014");
    });
    run(&other, "ROLLBACK");
    run(&holder, "INSERT INTO t VALUES (4, 4); COMMIT");
}
