//! Backups that clients ask for while others change tables.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{connect, serve};
use postgres::Client;
use quickbeam_server::{Server, ServerOptions};
use quickbeam_sql::SqlDatabase;

const WRITERS: i32 = 3;

const TABLES: &str = "
    CREATE TABLE branches (id INT PRIMARY KEY, balance BIGINT NOT NULL);
    CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL);
    CREATE TABLE history (writer INT, number INT, amount BIGINT NOT NULL,
                          PRIMARY KEY (writer, number));
    CREATE INDEX by_amount ON history (amount);
    INSERT INTO branches SELECT i, 0 FROM generate_series(1, 3) AS g(i);
    INSERT INTO accounts SELECT i, 0 FROM generate_series(1, 300) AS g(i);
";

/// A TPC-B-like transaction: an account, a branch and the history change by one amount.
fn transfer(client: &mut Client, writer: i32, number: i32) {
    let amount = i64::from((number * 7919 + writer) % 1000 - 500);
    let mut transaction = client.transaction().unwrap();
    let account = (number * 31 + writer * 100) % 300 + 1;
    // Each writer has a branch of its own, and a range of accounts.
    let account = (account - 1) % 100 + 1 + writer * 100;
    for (statement, id) in [
        ("UPDATE accounts SET balance = balance + $1 WHERE id = $2", account),
        ("UPDATE branches SET balance = balance + $1 WHERE id = $2", writer + 1),
    ] {
        assert_eq!(transaction.execute(statement, &[&amount, &id]).unwrap(), 1);
    }
    let insert = "INSERT INTO history VALUES ($1, $2, $3)";
    transaction.execute(insert, &[&writer, &number, &amount]).unwrap();
    transaction.commit().unwrap();
}

/// Checks a backup's pages, rows, indexes and sums. Returns the newest number of each writer.
fn check(directory: &Path) -> Vec<i32> {
    let database = SqlDatabase::open(directory, Default::default()).unwrap();
    assert_eq!(database.environment().verify().unwrap().complaints, Vec::<String>::new());
    assert_eq!(database.verify().unwrap().complaints, Vec::<String>::new());
    let server =
        Server::start(&database, ServerOptions::new().listen("127.0.0.1:0".parse().unwrap()));
    let mut client = connect(server.as_ref().unwrap());
    let sums = "SELECT (SELECT sum(balance) FROM accounts)::bigint,
                       (SELECT sum(balance) FROM branches)::bigint,
                       (SELECT coalesce(sum(amount), 0) FROM history)::bigint";
    let row = client.query_one(sums, &[]).unwrap();
    let [accounts, branches, history] = [0, 1, 2].map(|at| row.get::<_, i64>(at));
    assert_eq!((accounts, branches), (history, history));
    let newest = "SELECT coalesce(max(number), 0), count(*)::int FROM history WHERE writer = $1";
    let of_writer = |writer: i32| {
        let row = client.query_one(newest, &[&writer]).unwrap();
        // None is missing before the newest one.
        assert_eq!(row.get::<_, i32>(0), row.get::<_, i32>(1));
        row.get(0)
    };
    (0..WRITERS).map(of_writer).collect()
}

#[test]
fn clients_back_up_a_server_under_load() {
    let folder = tempfile::tempdir().unwrap();
    let database = SqlDatabase::open(folder.path().join("data"), Default::default()).unwrap();
    let options = ServerOptions::new().listen("127.0.0.1:0".parse().unwrap());
    let server =
        Server::start(&database, options.backup_directory(folder.path().join("backups"))).unwrap();
    connect(&server).batch_execute(TABLES).unwrap();
    let done = [const { std::sync::atomic::AtomicI32::new(0) }; WRITERS as usize];
    let stop = AtomicBool::new(false);
    struct StopAtEnd<'a>(&'a AtomicBool);
    impl Drop for StopAtEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop);
        for (writer, done) in (0..WRITERS).zip(&done) {
            let (server, stop) = (&server, &stop);
            scope.spawn(move || {
                let mut client = connect(server);
                while !stop.load(Ordering::SeqCst) {
                    let number = done.load(Ordering::SeqCst) + 1;
                    transfer(&mut client, writer, number);
                    done.store(number, Ordering::SeqCst);
                }
            });
        }
        let mut client = connect(&server);
        for round in 0..6 {
            let goal = done[0].load(Ordering::SeqCst) + 5;
            while done[0].load(Ordering::SeqCst) < goal {
                std::thread::yield_now();
            }
            let before = done.each_ref().map(|done| done.load(Ordering::SeqCst));
            let name = format!("backup {round}");
            let row = client.query_one("SELECT quickbeam_backup($1)", &[&name]).unwrap();
            assert!(row.get::<_, i64>(0) > 0);
            let after = done.each_ref().map(|done| done.load(Ordering::SeqCst));
            let kept = check(&folder.path().join("backups").join(&name));
            for (writer, kept) in kept.into_iter().enumerate() {
                // A commit may be in the backup before its client has heard of it.
                let range = before[writer]..=after[writer] + 1;
                assert!(range.contains(&kept), "writer {writer}: {kept} of {range:?}");
            }
        }
    });
}

#[test]
fn backups_stay_in_their_directory() {
    let (_, server) = serve(ServerOptions::new());
    let refused = connect(&server).query_one("SELECT quickbeam_backup('one')", &[]).unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
    drop(server);

    let folder = tempfile::tempdir().unwrap();
    let (_database, server) = serve(ServerOptions::new().backup_directory(folder.path()));
    let mut client = connect(&server);
    for name in ["", ".", "..", "/tmp/x", "a/b", "a/", "./a", "../a"] {
        let refused = client.query_one("SELECT quickbeam_backup($1)", &[&name]).unwrap_err();
        assert_eq!(refused.code().unwrap().code(), "22023", "{name:?}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    client.query_one("SELECT quickbeam_backup('one')", &[]).unwrap();
    let refused = client.query_one("SELECT quickbeam_backup('one')", &[]).unwrap_err();
    assert!(refused.as_db_error().unwrap().message().contains("not empty"), "{refused}");
    // No row, no backup.
    let nothing = client.query("SELECT quickbeam_backup(NULL)", &[]).unwrap();
    assert_eq!(nothing[0].get::<_, Option<i64>>(0), None);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
