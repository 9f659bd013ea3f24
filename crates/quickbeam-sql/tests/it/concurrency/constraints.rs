//! Constraints and changes of definitions while several threads are at work, under every isolation.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{LEVELS, delete, foreign, insert, int, integers, key, memory, numbers, rows};
use quickbeam::{Environment, Isolation, Transaction, TransactionOptions};
use quickbeam_sql::catalog::{Added, Catalog, ForeignKeyAction, NewIndex};
use quickbeam_sql::{DataType, Result, SqlError, Value};

/// A transaction that does not wait long for another one.
fn begin(environment: &Environment, isolation: Isolation) -> Transaction {
    let options =
        TransactionOptions::new().isolation(isolation).lock_timeout(Duration::from_secs(5));
    environment.begin_with(options).unwrap()
}

/// Runs `work` in a transaction until it commits, or fails for good; how.
fn transact<T>(
    environment: &Environment,
    isolation: Isolation,
    mut work: impl FnMut(&Transaction) -> Result<T>,
) -> Result<T> {
    loop {
        let transaction = begin(environment, isolation);
        let done = work(&transaction);
        let done = match done {
            Ok(value) => transaction.commit().map(|()| value).map_err(SqlError::from),
            Err(error) => {
                transaction.abort().unwrap();
                Err(error)
            }
        };
        match done {
            Err(error) if error.is_retryable() => std::thread::yield_now(),
            done => return done,
        }
    }
}

fn make(catalog: &Catalog, tables: &[quickbeam_sql::catalog::NewTable]) {
    let transaction = catalog.environment().begin().unwrap();
    for table in tables {
        catalog.create_table(&transaction, table).unwrap();
    }
    transaction.commit().unwrap();
}

#[test]
fn of_two_rows_with_the_same_key_one_stays() {
    for isolation in LEVELS {
        let (environment, catalog) = memory();
        let mut by_index = integers("u", &["id", "a"], &[]);
        by_index.uniques.push(key(&["a"]));
        make(&catalog, &[integers("p", &["id", "a"], &["id"]), by_index]);
        for table in ["p", "u"] {
            let (rounds, winners) = (60, AtomicUsize::new(0));
            let start = Barrier::new(2);
            std::thread::scope(|scope| {
                for thread in 0..2 {
                    let (catalog, environment, winners, start) =
                        (&catalog, &environment, &winners, &start);
                    scope.spawn(move || {
                        for round in 0..rounds {
                            start.wait();
                            let row = match table {
                                "p" => [int(round), int(thread)],
                                _ => [int(thread), int(round)],
                            };
                            let done = transact(environment, isolation, |transaction| {
                                insert(catalog, transaction, table, &[&row])
                            });
                            match done {
                                Ok(()) => _ = winners.fetch_add(1, Ordering::Relaxed),
                                Err(error) => assert_eq!(error.code(), "23505", "{error}"),
                            }
                        }
                    });
                }
            });
            assert_eq!(winners.load(Ordering::Relaxed), rounds as usize, "{isolation:?} {table}");
            assert_eq!(
                rows(&catalog, &environment.begin_read().unwrap(), table).len(),
                rounds as usize
            );
        }
    }
}

#[test]
fn no_row_is_left_without_the_one_it_refers_to() {
    for isolation in LEVELS {
        for indexed in [false, true] {
            let (environment, catalog) = memory();
            let mut child = integers("child", &["id", "parent"], &["id"]);
            child.foreign_keys.push(foreign(&["parent"], "parent", ForeignKeyAction::NoAction));
            make(&catalog, &[integers("parent", &["id"], &["id"]), child]);
            if indexed {
                let columns = vec![("parent".into(), false, None)];
                let index = NewIndex { table: "child".into(), columns, ..NewIndex::default() };
                transact(&environment, isolation, |t| catalog.create_index(t, &index)).unwrap();
            }
            let rounds = 60;
            let (deleted, inserted) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let start = Barrier::new(2);
            for id in 0..rounds {
                transact(&environment, isolation, |t| insert(&catalog, t, "parent", &[&[int(id)]]))
                    .unwrap();
            }
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for id in 0..rounds {
                        start.wait();
                        let row = [int(id), int(id)];
                        match transact(&environment, isolation, |t| {
                            insert(&catalog, t, "child", &[&row])
                        }) {
                            Ok(()) => _ = inserted.fetch_add(1, Ordering::Relaxed),
                            Err(error) => assert_eq!(error.code(), "23503", "{error}"),
                        }
                    }
                });
                scope.spawn(|| {
                    for id in 0..rounds {
                        start.wait();
                        match transact(&environment, isolation, |t| {
                            delete(&catalog, t, "parent", id)
                        }) {
                            Ok(_) => _ = deleted.fetch_add(1, Ordering::Relaxed),
                            Err(error) => assert_eq!(error.code(), "23503", "{error}"),
                        }
                    }
                });
            });
            let reader = environment.begin_read().unwrap();
            let parents = numbers(&rows(&catalog, &reader, "parent")).concat();
            let children = numbers(&rows(&catalog, &reader, "child"));
            assert!(children.iter().all(|row| parents.contains(&row[1])), "{isolation:?}");
            // One of the two went through each time, never both, never neither.
            let (deleted, inserted) = (deleted.into_inner(), inserted.into_inner());
            assert_eq!((deleted + inserted, children.len()), (rounds as usize, inserted));
            assert_eq!(parents.len(), inserted);
        }
    }
}

#[test]
fn an_index_made_while_rows_change_has_every_row() {
    for isolation in LEVELS {
        let (environment, catalog) = memory();
        make(&catalog, &[integers("t", &["id", "a"], &["id"])]);
        let columns = vec![("a".into(), false, None)];
        let index =
            NewIndex { name: Some("i".into()), table: "t".into(), columns, ..NewIndex::default() };
        let (made, threads) = (AtomicUsize::new(0), 2);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (catalog, environment) = (&catalog, &environment);
                scope.spawn(move || {
                    for id in 0..150 {
                        let row = [int(id * threads + thread), int(id % 7)];
                        transact(environment, isolation, |t| insert(catalog, t, "t", &[&row]))
                            .unwrap();
                        if id % 3 == 0 {
                            let gone = id * threads + thread;
                            transact(environment, isolation, |t| delete(catalog, t, "t", gone))
                                .unwrap();
                        }
                    }
                });
            }
            scope.spawn(|| {
                for round in 0..20 {
                    let transaction = begin(&environment, isolation);
                    let done = catalog.create_index(&transaction, &index).map(|_| ());
                    match done.and_then(|()| Ok(transaction.commit()?)) {
                        Ok(()) => {
                            made.fetch_add(1, Ordering::Relaxed);
                            // What `rows` checks: each row has its entry, and each entry its row.
                            rows(&catalog, &begin(&environment, Isolation::Snapshot), "t");
                            transact(&environment, isolation, |t| {
                                catalog.drop_index(t, "i", false)
                            })
                            .unwrap();
                        }
                        Err(error) => assert!(error.is_retryable(), "{round}: {error}"),
                    }
                }
                transact(&environment, isolation, |t| catalog.create_index(t, &index)).unwrap();
                made.fetch_add(1, Ordering::Relaxed);
            });
        });
        assert!(made.into_inner() > 0);
        let reader = environment.begin_read().unwrap();
        assert_eq!(rows(&catalog, &reader, "t").len(), 200);
        assert!(catalog.snapshot(&reader).unwrap().relation("i").is_some());
    }
}

#[test]
fn rows_written_by_an_old_definition_do_not_get_in() {
    for isolation in LEVELS {
        let (environment, catalog) = memory();
        make(&catalog, &[integers("t", &["id", "a"], &["id"])]);
        let writer = begin(&environment, isolation);
        insert(&catalog, &writer, "t", &[&[int(1), int(1)]]).unwrap();
        let mut added = crate::common::column("b", DataType::Integer);
        added.not_null = true;
        transact(&environment, isolation, |t| {
            catalog.add_column(t, "t", &added, Added::Same(Value::Integer(7)))
        })
        .unwrap();
        let refused = SqlError::from(writer.commit().unwrap_err());
        assert_eq!(refused.code(), "40001", "{isolation:?}");
        let row = [int(2), int(2), int(2)];
        transact(&environment, isolation, |t| insert(&catalog, t, "t", &[&row])).unwrap();
        assert_eq!(rows(&catalog, &environment.begin_read().unwrap(), "t").len(), 1);
    }
}

#[test]
fn values_of_a_sequence_are_given_out_once() {
    let (environment, catalog) = memory();
    let transaction = environment.begin().unwrap();
    catalog.create_sequence(&transaction, "s", &Default::default()).unwrap();
    transaction.commit().unwrap();
    let drawn = parking_lot::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let transaction = begin(&environment, Isolation::Serializable);
                    let sequence =
                        catalog.snapshot(&transaction).unwrap().sequence_named("s").unwrap();
                    drawn.lock().push(catalog.next_value(&transaction, &sequence).unwrap());
                }
            });
        }
    });
    let mut drawn = drawn.into_inner();
    drawn.sort_unstable();
    let count = drawn.len();
    drawn.dedup();
    assert_eq!((drawn.len(), count), (900, 900));
}

/// Calls `each` with every order in which two lists of steps can be taken; false is a step of the
/// first.
fn each_interleaving(left: usize, right: usize, each: &mut dyn FnMut(&[bool])) {
    fn go(left: usize, right: usize, order: &mut Vec<bool>, each: &mut dyn FnMut(&[bool])) {
        if left + right == 0 {
            return each(order);
        }
        for (is_right, rest) in [(false, left), (true, right)] {
            if rest > 0 {
                order.push(is_right);
                go(left - usize::from(!is_right), right - usize::from(is_right), order, each);
                order.pop();
            }
        }
    }
    go(left, right, &mut Vec::new(), each);
}

#[test]
fn deferred_foreign_keys_hold_in_every_interleaving() {
    let scripts: [Scripts; 4] = [
        (
            &["INSERT INTO child VALUES (10, 1)", "COMMIT"],
            &["DELETE FROM parent WHERE id = 1", "COMMIT"],
        ),
        (
            &["DELETE FROM parent WHERE id = 2", "DELETE FROM child WHERE p = 2", "COMMIT"],
            &["INSERT INTO child VALUES (11, 2)", "COMMIT"],
        ),
        (
            &["INSERT INTO child VALUES (12, 9)", "INSERT INTO parent VALUES (9)", "COMMIT"],
            &["INSERT INTO parent VALUES (9)", "DELETE FROM parent WHERE id = 9", "COMMIT"],
        ),
        (
            &["UPDATE parent SET id = 3 WHERE id = 2", "UPDATE child SET p = 3", "COMMIT"],
            &["UPDATE child SET p = 1 WHERE id = 1", "DELETE FROM parent WHERE id = 3", "COMMIT"],
        ),
    ];
    let schema = [
        "CREATE TABLE parent (id INT PRIMARY KEY)",
        "CREATE TABLE child (id INT PRIMARY KEY, p INT REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
        "CREATE INDEX ON child (p)",
        "INSERT INTO parent VALUES (1), (2)",
        "INSERT INTO child VALUES (1, 2)",
    ];
    let orphans = "SELECT count(*) FROM child WHERE p NOT IN (SELECT id FROM parent)";
    holds_in_every_interleaving(&schema, &scripts, orphans);
}

#[test]
fn deferrable_keys_hold_in_every_interleaving() {
    let scripts: [Scripts; 5] = [
        (&["INSERT INTO k VALUES (3, 3)", "COMMIT"], &["INSERT INTO k VALUES (3, 4)", "COMMIT"]),
        (
            &["INSERT INTO k VALUES (1, 5)", "DELETE FROM k WHERE id = 1 AND u = 1", "COMMIT"],
            &["INSERT INTO k VALUES (4, 1)", "COMMIT"],
        ),
        (
            &["UPDATE k SET id = 3 - id", "COMMIT"],
            &["INSERT INTO k VALUES (2, 3)", "UPDATE k SET id = 4 WHERE u = 3", "COMMIT"],
        ),
        (
            &["UPDATE k SET u = 5 WHERE id = 1", "COMMIT"],
            &["UPDATE k SET u = 5 WHERE id = 2", "COMMIT"],
        ),
        (
            &["SET CONSTRAINTS ALL DEFERRED", "INSERT INTO k VALUES (5, 2)", "COMMIT"],
            &["DELETE FROM k WHERE u = 2", "INSERT INTO k VALUES (6, 2)", "COMMIT"],
        ),
    ];
    let schema = [
        "CREATE TABLE k (id INT PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, u INT UNIQUE DEFERRABLE)",
        "INSERT INTO k VALUES (1, 1), (2, 2)",
    ];
    let twice = "SELECT count(*) FROM k AS a, k AS b WHERE a.id = b.id AND a.u <> b.u OR a.u = b.u AND a.id <> b.id";
    holds_in_every_interleaving(&schema, &scripts, twice);
}

/// The statements of two sessions.
type Scripts<'s> = (&'s [&'s str], &'s [&'s str]);

/// Runs two scripts in every interleaving under every isolation level. `violations` counts what
/// must not be there afterwards.
fn holds_in_every_interleaving(schema: &[&str], scripts: &[Scripts<'_>], violations: &str) {
    let mut committed = 0;
    for level in ["SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED"] {
        for &(first, second) in scripts {
            each_interleaving(first.len(), second.len(), &mut |order| {
                let database =
                    quickbeam_sql::SqlDatabase::open_in_memory(quickbeam::Options::default())
                        .unwrap();
                let sessions = [database.connect(), database.connect()];
                for text in schema {
                    sessions[0].execute(text, &[]).unwrap();
                }
                for session in &sessions {
                    session.execute("SET lock_timeout = 1", &[]).unwrap();
                    session.execute(&format!("BEGIN ISOLATION LEVEL {level}"), &[]).unwrap();
                }
                let mut next = [first.iter(), second.iter()];
                let mut failed = [false; 2];
                for &is_right in order {
                    let at = usize::from(is_right);
                    let Some(text) = next[at].next().filter(|_| !failed[at]) else { continue };
                    if let Err(error) = sessions[at].execute(text, &[]) {
                        let known = ["23503", "23505", "40001", "40P01", "55P03"];
                        assert!(known.contains(&error.code()), "{level} {order:?} {text}: {error}");
                        failed[at] = true;
                        if sessions[at].in_transaction() {
                            sessions[at].execute("ROLLBACK", &[]).unwrap();
                        }
                    }
                }
                committed += failed.iter().filter(|failed| !**failed).count();
                let found =
                    sessions[0].query_row(violations, &[], |row| row.get::<i64>(0)).unwrap();
                assert_eq!(found, 0, "{level} {order:?} {first:?} {second:?} {failed:?}");
            });
        }
    }
    assert!(committed > 100, "{committed} transactions committed");
}
