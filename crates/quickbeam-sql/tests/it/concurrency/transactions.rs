//! Constraints and rollbacks while several connections are at work: statements of SQL, under every
//! isolation.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{memory, number, transact};
use crate::common::LEVELS;
use quickbeam::{Durability, Error, Isolation, Options, TransactionOptions};
use quickbeam_sql::{Connection, Result, SqlDatabase, SqlState, params};

const FAMILY: &str = "CREATE TABLE parent (id INTEGER PRIMARY KEY, a INTEGER);
    CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL REFERENCES parent);
    CREATE INDEX child_parent ON child (parent);
    INSERT INTO parent VALUES (1, 0), (2, 0);";

#[test]
fn children_of_one_parent_do_not_get_in_each_others_way() {
    for isolation in LEVELS {
        let database = memory(isolation, FAMILY);
        let (one, two) = (database.connect(), database.connect());
        one.begin().unwrap();
        two.begin().unwrap();
        one.execute("INSERT INTO child VALUES (1, 1)", &[]).unwrap();
        two.execute("INSERT INTO child VALUES (2, 1)", &[]).unwrap();
        one.execute("INSERT INTO child VALUES (3, 1)", &[]).unwrap();
        two.commit().unwrap_or_else(|error| panic!("{isolation:?}: {error}"));
        one.commit().unwrap_or_else(|error| panic!("{isolation:?}: {error}"));
        assert_eq!(number(&one, "SELECT count(*) FROM child"), 3);
    }
}

#[test]
fn a_child_and_the_end_of_its_parent_exclude_each_other() {
    for isolation in LEVELS {
        for child_first in [true, false] {
            let database = memory(isolation, FAMILY);
            let (one, two) = (database.connect(), database.connect());
            one.begin().unwrap();
            two.begin().unwrap();
            one.execute("INSERT INTO child VALUES (1, 1)", &[]).unwrap();
            two.execute("DELETE FROM parent WHERE id = 1", &[]).unwrap();
            let (first, second) = if child_first { (one, two) } else { (two, one) };
            let connections = [first, second];
            connections[0].commit().unwrap();
            let error = connections[1].commit().unwrap_err();
            assert_eq!(error.code(), "40001", "{isolation:?}, child first: {child_first}");
            let third = database.connect();
            let orphans = "SELECT count(*) FROM child WHERE parent NOT IN (SELECT id FROM parent)";
            assert_eq!(number(&third, orphans), 0, "{isolation:?}");
        }
    }
}

/// What a thread does over and over: parents come, and go with their children; children come by a
/// transaction of which half is undone.
fn family_life(connection: &Connection, thread: i32, round: i32) -> Option<Result<()>> {
    let parent = (round * 7 + thread * 3) % 5;
    let place = (round + thread) % 6;
    match (round + thread) % 4 {
        0 => {
            let insert = "INSERT INTO parent VALUES ($1, $2) ON CONFLICT DO NOTHING";
            let row = params![parent, round];
            assert_known(transact(connection, |it| it.execute(insert, row).map(drop)));
            None
        }
        1 if thread == 0 => {
            let delete = "DELETE FROM parent WHERE id = $1";
            assert_known(transact(connection, |it| it.execute(delete, params![parent]).map(drop)));
            None
        }
        _ => Some(transact(connection, |connection| {
            let insert = "INSERT INTO child (parent, place) VALUES ($1, $2)";
            connection.execute(insert, params![parent, place])?;
            connection.execute("SAVEPOINT s", &[])?;
            connection.execute("DELETE FROM child WHERE parent = $1", params![parent])?;
            connection.execute("ROLLBACK TO s", &[])?;
            Ok(())
        })),
    }
}

/// A transaction that broke a constraint is well; any other failure is not.
fn assert_known(done: Result<()>) -> bool {
    if let Err(error) = &done {
        assert!(["23503", "23505", "23514"].contains(&error.code()), "{error}");
    }
    done.is_ok()
}

#[test]
fn constraints_hold_whatever_threads_do() {
    for (isolation, method) in LEVELS.into_iter().flat_map(|it| [(it, ""), (it, " USING HASH")]) {
        let database = memory(
            isolation,
            &format!(
                "CREATE TABLE parent (id INTEGER, a INTEGER, PRIMARY KEY (id){method});
                 CREATE TABLE child (id BIGINT GENERATED ALWAYS AS IDENTITY, parent INTEGER NOT NULL REFERENCES parent ON DELETE CASCADE,
                     place INTEGER NOT NULL CHECK (place BETWEEN 0 AND 4), PRIMARY KEY (id){method}, UNIQUE (parent, place){method});"
            ),
        );
        let (start, children) = (Barrier::new(4), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4_i32 {
                let (database, start, children) = (&database, &start, &children);
                scope.spawn(move || {
                    let connection = database.connect();
                    start.wait();
                    for round in 0..1_500_i32 {
                        let child = family_life(&connection, thread, round);
                        if child.is_some_and(assert_known) {
                            children.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let connection = database.connect();
        for (what, query) in [
            (
                "orphans",
                "SELECT count(*) FROM child c LEFT JOIN parent p ON p.id = c.parent WHERE p.id IS NULL",
            ),
            ("places", "SELECT count(*) FROM child WHERE place NOT BETWEEN 0 AND 4"),
            (
                "doubles",
                "SELECT count(*) FROM (SELECT parent, place FROM child GROUP BY parent, place HAVING count(*) > 1) d",
            ),
        ] {
            assert_eq!(number(&connection, query), 0, "{isolation:?}{method}: {what}");
        }
        // By the index, a place after the other, and by the rows.
        let by_index: i64 = (0..25)
            .map(|pair| {
                let (parent, place) = (pair / 5, pair % 5);
                let one = format!(
                    "SELECT count(*) FROM child WHERE parent = {parent} AND place = {place}"
                );
                number(&connection, &one)
            })
            .sum();
        let by_rows = number(&connection, "SELECT count(*) FROM child");
        assert_eq!(by_index, by_rows, "{isolation:?}{method}");
        assert!(children.into_inner() > 0, "{isolation:?}{method}: nothing was done");
        let report = database.environment().verify().unwrap();
        assert_eq!(report.complaints, Vec::<String>::new(), "{isolation:?}{method}");
    }
}

#[test]
fn what_is_rolled_back_was_never_seen() {
    for isolation in LEVELS {
        let database = memory(
            isolation,
            "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, CHECK (balance >= 0));
             INSERT INTO account VALUES (1, 100), (2, 100), (3, 100);",
        );
        std::thread::scope(|scope| {
            for thread in 0..3_i32 {
                let database = &database;
                scope.spawn(move || {
                    let connection = database.connect();
                    for round in 0..2_000_i32 {
                        let (from, to) = (1 + (thread + round) % 3, 1 + (thread + round + 1) % 3);
                        let amount = 1 + (round * 37) % 90;
                        let done = transact(&connection, |connection| {
                            let add = "UPDATE account SET balance = balance + $2 WHERE id = $1";
                            connection.execute(add, params![to, amount])?;
                            // An error ends the transaction: the first half must go, too.
                            connection.execute(add, params![from, -amount])?;
                            Ok(())
                        });
                        if let Err(error) = done {
                            assert_eq!(error.code(), "23514", "{isolation:?}: {error}");
                        }
                        // Under read committed this is one statement, so one snapshot.
                        let sum = number(&connection, "SELECT sum(balance)::BIGINT FROM account");
                        assert_eq!(sum, 300, "{isolation:?}");
                    }
                });
            }
        });
    }
}

#[test]
fn rows_that_are_skipped_are_left_to_who_has_them() {
    let database = memory(
        Isolation::ReadCommitted,
        "CREATE TABLE job (id INTEGER PRIMARY KEY, done_by INTEGER);",
    );
    let connection = database.connect();
    for id in 0..90_i32 {
        connection.execute("INSERT INTO job VALUES ($1, NULL)", params![id]).unwrap();
    }
    std::thread::scope(|scope| {
        for thread in 0..3_i32 {
            let database = &database;
            scope.spawn(move || {
                let connection = database.connect();
                loop {
                    let mut found = None;
                    transact(&connection, |connection| {
                        let next = "SELECT id FROM job WHERE done_by IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
                        let rows = connection.query(next, &[])?.collect()?;
                        found = rows.first().and_then(|row| row[0].as_ref().as_i64());
                        if let Some(id) = found {
                            let take = "UPDATE job SET done_by = $2 WHERE id = $1 AND done_by IS NULL";
                            assert_eq!(connection.execute(take, params![id, thread])?, 1);
                        }
                        Ok(())
                    })
                    .unwrap();
                    if found.is_none() {
                        break;
                    }
                }
            });
        }
    });
    // A row that was skipped may have been put back by an abort; there was none here.
    assert_eq!(number(&connection, "SELECT count(*) FROM job WHERE done_by IS NULL"), 0);
}

/// Waiting for a row is part of a statement: who cancels the statement need not wait for the lock
/// timeout.
#[test]
fn waiting_for_a_row_can_be_cancelled() {
    for isolation in LEVELS {
        let options = Options::new().isolation(isolation).lock_timeout(Duration::from_secs(3_600));
        let database = SqlDatabase::open_in_memory(options).unwrap();
        let (holder, waiting) = (database.connect(), database.connect());
        holder
            .execute_script(
                "CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER); INSERT INTO t VALUES (1, 1)",
            )
            .unwrap();
        holder.begin().unwrap();
        holder.execute("UPDATE t SET b = 2", &[]).unwrap();
        for statement in [
            "UPDATE t SET b = b + 1 WHERE a = 1",
            "UPDATE t SET b = 7",
            "INSERT INTO t VALUES (1, 3)",
        ] {
            for begun in [false, true] {
                if begun {
                    waiting.begin().unwrap();
                    waiting.execute("INSERT INTO t VALUES (5, 5)", &[]).unwrap();
                }
                let cancel = waiting.cancel_handle();
                // Until it is noticed: what is cancelled before the statement begins does not
                // count.
                let noticed = AtomicUsize::new(0);
                let error = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        while noticed.load(Ordering::SeqCst) == 0 {
                            cancel.cancel();
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    });
                    let error = waiting.execute(statement, &[]).unwrap_err();
                    noticed.store(1, Ordering::SeqCst);
                    error
                });
                assert_eq!(error.state().code(), "57014", "{error}");
                if begun {
                    // The transaction goes on without the statement.
                    assert_eq!(number(&waiting, "SELECT sum(b) FROM t"), 6);
                    waiting.rollback().unwrap();
                }
            }
        }
        holder.commit().unwrap();
        assert_eq!(waiting.execute("UPDATE t SET b = b + 1 WHERE a = 1", &[]).unwrap(), 1);
        assert_eq!(number(&holder, "SELECT b FROM t"), 3);
    }
}

#[test]
fn cancel_leaves_engine_calls_of_a_lent_transaction_alone() {
    for isolation in LEVELS {
        let database = memory(isolation, "CREATE TABLE t (a INTEGER)");
        let environment = database.environment();
        let pairs = environment.create_database("pairs").unwrap();
        let connection = database.connect();
        let mut insert = connection.prepare("INSERT INTO t VALUES (1)").unwrap();
        let mut count = connection.prepare("SELECT count(*) FROM t").unwrap();
        let holder = environment.begin().unwrap();
        pairs.put(&holder, b"held", b"1").unwrap();
        let options =
            TransactionOptions::new().isolation(isolation).lock_timeout(Duration::from_millis(20));
        let lent = environment.begin_with(options).unwrap();
        insert.execute_in(&lent, &[]).unwrap();
        count.query_in(&lent, &[]).unwrap().collect().unwrap();
        connection.cancel_handle().cancel();
        let outcome = pairs.put(&lent, b"held", b"2");
        assert!(matches!(outcome, Err(Error::LockTimeout { .. })), "{isolation:?}: {outcome:?}");
    }
}

/// What the environment cannot do is refused when it is asked for, and the session goes on.
#[test]
fn a_durability_that_the_environment_does_not_have_is_refused() {
    let database = memory(Isolation::Serializable, "CREATE TABLE t (a INTEGER)");
    let connection = database.connect();
    for ask in ["SET durability = 'sync'", "BEGIN; SET LOCAL durability = 'nosync'"] {
        let error = connection.execute_script(ask).unwrap_err();
        assert_eq!(error.state().code(), "22023", "{error}");
        if ask.starts_with("BEGIN") {
            connection.rollback().unwrap();
        }
    }
    connection.execute("SET durability = 'inmemory'", &[]).unwrap();
    connection.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
    connection.execute_script("BEGIN READ ONLY").unwrap();
    let error = connection.execute("INSERT INTO t VALUES (2)", &[]).unwrap_err();
    assert_eq!(error.state().code(), "25006", "{error}");
    connection.rollback().unwrap();
    assert_eq!(number(&connection, "SELECT count(*) FROM t"), 1);
}

#[test]
fn a_dropped_transaction_guard_rolls_back() {
    let mut connection = memory(Isolation::Serializable, "CREATE TABLE t (a INT)").connect();
    let insert = |connection: &Connection| connection.execute("INSERT INTO t VALUES (1)", &[]);
    let fails_early = |connection: &mut Connection| -> quickbeam_sql::Result<()> {
        let transaction = connection.transaction()?;
        insert(&transaction)?;
        transaction.execute("INSERT INTO missing VALUES (1)", &[])?;
        transaction.commit()
    };
    assert!(fails_early(&mut connection).is_err());
    assert!(!connection.in_transaction());

    let transaction = connection.transaction().unwrap();
    insert(&transaction).unwrap();
    transaction.commit().unwrap();
    let count = connection.query_row("SELECT count(*) FROM t", &[], |row| row.get::<u32>("count"));
    assert_eq!(count.unwrap(), 1);
}

#[test]
fn statements_run_while_rows_are_read() {
    for isolation in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
        let database = memory(
            isolation,
            "CREATE TABLE t (a INT PRIMARY KEY, b INT);
             INSERT INTO t SELECT n, 0 FROM generate_series(1, 1000) g(n)",
        );
        let connection = database.connect();
        connection.set_isolation(isolation);
        for begins in [false, true] {
            if begins {
                connection.begin().unwrap();
            }
            // The same text runs while its own rows are read: two executions of one statement.
            let all = "SELECT a, b FROM t ORDER BY a";
            let mut rows = connection.query(all, &[]).unwrap();
            let mut read = 0;
            while let Some(row) = rows.next().unwrap() {
                let a = row.get::<i32>("a").unwrap();
                read += 1;
                assert_eq!(a, read);
                if a % 100 == 0 {
                    let update = "UPDATE t SET b = b + 1 WHERE a = $1";
                    assert_eq!(connection.execute(update, params![a]).unwrap(), 1);
                    assert_eq!(connection.query(all, &[]).unwrap().collect().unwrap().len(), 1000);
                }
            }
            assert_eq!(read, 1000);
            drop(rows);
            if begins {
                connection.commit().unwrap();
            }
        }
        let sum = connection.query_row("SELECT sum(b) FROM t", &[], |row| row.get::<i64>(0));
        assert_eq!(sum.unwrap(), 20);
    }
}

#[test]
fn a_transaction_does_not_end_under_open_rows() {
    let database = memory(
        Isolation::Serializable,
        "CREATE TABLE t (a INT PRIMARY KEY); INSERT INTO t VALUES (1), (2)",
    );
    let connection = database.connect();
    connection.begin().unwrap();
    connection.execute("SAVEPOINT s", &[]).unwrap();
    let mut rows = connection.query("SELECT a FROM t ORDER BY a", &[]).unwrap();
    assert_eq!(rows.next().unwrap().unwrap().get::<i32>(0).unwrap(), 1);
    for statement in ["COMMIT", "ROLLBACK", "ROLLBACK TO s", "DROP TABLE t", "TRUNCATE t"] {
        let error = connection.execute(statement, &[]).unwrap_err();
        assert_eq!(error.state(), SqlState::ObjectInUse, "{statement}");
    }
    assert_eq!(rows.next().unwrap().unwrap().get::<i32>(0).unwrap(), 2);
    drop(rows);
    connection.commit().unwrap();
    assert!(!connection.in_transaction());
}

#[test]
fn a_result_column_is_read_by_name() {
    let database = memory(Isolation::Serializable, "CREATE TABLE t (a INT PRIMARY KEY, b TEXT)");
    let connection = database.connect();
    connection.execute("INSERT INTO t VALUES (1, NULL)", &[]).unwrap();
    let mut rows = connection.query("SELECT a, b AS \"Name\", 7 FROM t", &[]).unwrap();
    let row = rows.next().unwrap().unwrap();
    assert_eq!(row.get::<u8>("a").unwrap(), 1);
    assert_eq!(row.get::<Option<String>>("Name").unwrap(), None);
    assert_eq!(row.get::<usize>("?column?").unwrap(), 7);
    assert_eq!(row.get::<i32>("name").unwrap_err().state(), SqlState::UndefinedColumn);
    assert_eq!(row.get::<i32>(3).unwrap_err().state(), SqlState::UndefinedColumn);
    let null = row.get::<String>("Name").unwrap_err();
    assert_eq!(null.state(), SqlState::NullValueNotAllowed);
    assert!(null.hint().unwrap_or_default().contains("Option"), "{null:?}");
    assert_eq!(row.get::<String>("a").unwrap_err().state(), SqlState::DatatypeMismatch);
}

/// What a commit waits for, as the statistics of the log show it.
#[test]
fn synchronous_commit_decides_what_a_commit_waits_for() {
    let directory = tempfile::tempdir().unwrap();
    // The log is written by commits alone.
    let options =
        Options::new().durability(Durability::Sync).log_write_interval(Duration::from_secs(3600));
    let database = SqlDatabase::open(directory.path().join("db"), options).unwrap();
    let connection = database.connect();
    let run = |text: &str| connection.execute_script(text).unwrap();
    let waits = |text: &str| {
        let count = || database.environment().statistics().commit_wait.count;
        let before = count();
        run(text);
        count() > before
    };
    run("CREATE TABLE t (a INT)");
    assert!(waits("INSERT INTO t VALUES (1)"));
    run("SET synchronous_commit = off");
    assert!(!waits("INSERT INTO t VALUES (1)"));
    assert!(!waits("BEGIN; INSERT INTO t VALUES (1); COMMIT"));
    // It counts at the commit.
    assert!(waits("BEGIN; INSERT INTO t VALUES (1); SET LOCAL synchronous_commit = on; COMMIT"));
    let local = "BEGIN; INSERT INTO t VALUES (1); SET LOCAL synchronous_commit TO DEFAULT; COMMIT";
    assert!(waits(local));
    assert!(!waits("INSERT INTO t VALUES (1)"));
    assert!(waits("BEGIN; INSERT INTO t VALUES (1); RESET synchronous_commit; COMMIT"));
    assert!(waits("INSERT INTO t VALUES (1)"));
    assert!(!waits("BEGIN; SET LOCAL synchronous_commit = off; INSERT INTO t VALUES (1); COMMIT"));
    // The setting that is more exact has precedence.
    run("SET durability = 'sync'; SET synchronous_commit = off");
    assert!(waits("INSERT INTO t VALUES (1)"));
    let refused = connection.execute("SET synchronous_commit = 'sometimes'", &[]);
    assert_eq!(refused.unwrap_err().code(), "22023");
}
