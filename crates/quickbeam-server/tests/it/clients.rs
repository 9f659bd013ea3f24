//! Sessions as clients see them: the `postgres` crate for the extended protocol with binary values,
//! and psql for the simple protocol.

use std::process::Command;

use crate::common::connect;
use postgres::{Client, NoTls, SimpleQueryMessage};
use quickbeam_server::{Server, ServerOptions};
use quickbeam_sql::SqlDatabase;

/// A server over a database in memory.
fn server() -> (SqlDatabase, Server) {
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
    let options = ServerOptions::new().listen("127.0.0.1:0".parse().unwrap()).max_connections(8);
    let server = Server::start(&database, options).unwrap();
    (database, server)
}

fn code(error: &postgres::Error) -> &str {
    error.code().unwrap().code()
}

#[test]
fn typed_values_survive_the_binary_format() {
    let (_, server) = server();
    let mut client = connect(&server);
    client
        .batch_execute(
            "CREATE TABLE t (id INT PRIMARY KEY, b BOOLEAN, s SMALLINT, l BIGINT, r REAL, \
             d DOUBLE PRECISION, x TEXT, y BYTEA)",
        )
        .unwrap();
    let insert = client.prepare("INSERT INTO t VALUES ($1, $2, $3, $4, $5, $6, $7, $8)").unwrap();
    for id in 0..3i32 {
        let bytes = vec![id as u8; 4];
        let count = client
            .execute(&insert, &[&id, &true, &7i16, &(1i64 << 40), &1.5f32, &2.5f64, &"é", &bytes])
            .unwrap();
        assert_eq!(count, 1);
    }
    let rows = client.query("SELECT * FROM t WHERE id > $1 ORDER BY id", &[&0i32]).unwrap();
    assert_eq!(rows.len(), 2);
    let row = &rows[0];
    assert_eq!(row.get::<_, i32>("id"), 1);
    assert_eq!(
        (row.get::<_, bool>(1), row.get::<_, i16>(2), row.get::<_, i64>(3)),
        (true, 7, 1 << 40)
    );
    assert_eq!((row.get::<_, f32>(4), row.get::<_, f64>(5)), (1.5, 2.5));
    assert_eq!((row.get::<_, &str>(6), row.get::<_, Vec<u8>>(7)), ("é", vec![1; 4]));
}

#[test]
fn null_parameters_and_columns_are_null() {
    let (_, server) = server();
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY, x TEXT)").unwrap();
    client.execute("INSERT INTO t VALUES (1, $1)", &[&None::<String>]).unwrap();
    let row = client.query_one("SELECT x FROM t", &[]).unwrap();
    assert_eq!(row.get::<_, Option<String>>(0), None);
}

#[test]
fn a_program_and_its_clients_share_the_data() {
    let (database, server) = server();
    let mut direct = database.connect();
    direct.execute("CREATE TABLE t (id INT PRIMARY KEY)", &[]).unwrap();
    let mut client = connect(&server);
    let mut transaction = client.transaction().unwrap();
    transaction.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
    let count = |direct: &quickbeam_sql::Connection| {
        direct.query("SELECT count(*) FROM t", &[]).unwrap().collect().unwrap()[0][0].clone()
    };
    assert_eq!(count(&mut direct), 0i64.into());
    transaction.commit().unwrap();
    assert_eq!(count(&mut direct), 1i64.into());
}

#[test]
fn an_error_fails_the_transaction_block_until_its_end() {
    let (_, server) = server();
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").unwrap();
    let error = client.batch_execute("SELECT * FROM missing").unwrap_err();
    assert_eq!(code(&error), "42P01");
    let error = client.batch_execute("SELECT 1").unwrap_err();
    assert_eq!(code(&error), "25P02");
    client.batch_execute("COMMIT").unwrap();
    let row = client.query_one("SELECT count(*) FROM t", &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 0, "COMMIT of a failed block rolls back");
}

#[test]
fn rollback_to_savepoint_revives_a_failed_transaction_block() {
    let (_, server) = server();
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1); SAVEPOINT s").unwrap();
    client.batch_execute("INSERT INTO t VALUES (1)").unwrap_err();
    client.batch_execute("ROLLBACK TO SAVEPOINT s; INSERT INTO t VALUES (2); COMMIT").unwrap();
    let row = client.query_one("SELECT count(*) FROM t", &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 2);
}

#[test]
fn several_statements_of_one_query_commit_or_fail_together() {
    let (_, server) = server();
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    let error =
        client.batch_execute("INSERT INTO t VALUES (1); INSERT INTO t VALUES (1)").unwrap_err();
    assert_eq!(code(&error), "23505");
    client.batch_execute("INSERT INTO t VALUES (2); INSERT INTO t VALUES (3)").unwrap();
    let row = client.query_one("SELECT min(id) FROM t", &[]).unwrap();
    assert_eq!(row.get::<_, i32>(0), 2);
}

#[test]
fn a_portal_is_fetched_in_parts_of_any_size() {
    let (_, server) = server();
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    for id in 0..10i32 {
        client.execute("INSERT INTO t VALUES ($1)", &[&id]).unwrap();
    }
    for part in [1, 3, 9, 10, 11] {
        let mut transaction = client.transaction().unwrap();
        let portal = transaction.bind("SELECT id FROM t ORDER BY id", &[]).unwrap();
        let mut ids = Vec::new();
        loop {
            let rows = transaction.query_portal(&portal, part).unwrap();
            ids.extend(rows.iter().map(|row| row.get::<_, i32>(0)));
            if rows.len() < part as usize {
                break;
            }
        }
        assert_eq!(ids, (0..10).collect::<Vec<_>>(), "{part} rows at a time");
    }
}

#[test]
fn prepared_statement_survives_errors_and_schema_changes() {
    let (_, server) = server();
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY, x TEXT)").unwrap();
    let insert = client.prepare("INSERT INTO t VALUES ($1, 'a')").unwrap();
    client.execute(&insert, &[&1i32]).unwrap();
    assert_eq!(code(&client.execute(&insert, &[&1i32]).unwrap_err()), "23505");
    client.batch_execute("CREATE INDEX i ON t (x)").unwrap();
    assert_eq!(client.execute(&insert, &[&2i32]).unwrap(), 1);
}

#[test]
fn a_running_statement_is_cancelled_by_another_connection() {
    let (_, server) = server();
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    let insert = client.prepare("INSERT INTO t VALUES ($1)").unwrap();
    for id in 0..3000i32 {
        client.execute(&insert, &[&id]).unwrap();
    }
    let cancel = client.cancel_token();
    let query = "SELECT count(*) FROM t a, t b, t c WHERE a.id + b.id + c.id < 0";
    let running = std::thread::spawn(move || client.query_one(query, &[]).map(|_| ()));
    // The request may come before the statement has begun: then it has no effect.
    while !running.is_finished() {
        cancel.cancel_query(NoTls).unwrap();
        std::thread::yield_now();
    }
    assert_eq!(code(&running.join().unwrap().unwrap_err()), "57014");
}

#[test]
fn too_many_clients_are_refused_and_leaving_makes_room() {
    let (_, server) = server();
    let mut clients: Vec<Client> = (0..8).map(|_| connect(&server)).collect();
    let port = server.address().unwrap().port();
    let text = format!("host=127.0.0.1 port={port} user=test");
    let error = Client::connect(&text, NoTls).err().unwrap();
    assert_eq!(code(&error), "53300");
    clients.pop().unwrap().close().unwrap();
    // The session's thread leaves a moment after its client.
    assert!((0..100_000).any(|_| Client::connect(&text, NoTls).is_ok()));
}

#[test]
fn stopping_ends_sessions_and_rolls_back() {
    let (database, server) = server();
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    client.batch_execute("BEGIN; INSERT INTO t VALUES (1)").unwrap();
    server.stop();
    assert!(client.batch_execute("COMMIT").is_err());
    let direct = database.connect();
    let rows = direct.query("SELECT count(*) FROM t", &[]).unwrap().collect().unwrap();
    assert_eq!(rows[0][0], 0i64.into());
}

#[test]
fn a_server_without_authentication_listens_on_loopback_only() {
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
    let options = ServerOptions::new().listen("0.0.0.0:0".parse().unwrap());
    assert!(Server::start(&database, options).is_err());
    assert!(Server::start(&database, ServerOptions::default()).is_err());
}

#[test]
fn simple_queries_give_text_and_command_tags() {
    let (_, server) = server();
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY, n NUMERIC(6,2))").unwrap();
    let answers = client
        .simple_query("INSERT INTO t VALUES (1, 1.5), (2, NULL); SELECT * FROM t ORDER BY id")
        .unwrap();
    let rows: Vec<_> = answers
        .iter()
        .filter_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => Some((row.get(0).unwrap(), row.get(1))),
            _ => None,
        })
        .collect();
    assert_eq!(rows, [("1", Some("1.50")), ("2", None)]);
    // The tag of EXECUTE has the count of what it executes.
    let changed = client.simple_query("PREPARE p AS UPDATE t SET n = n; EXECUTE p").unwrap();
    assert!(matches!(changed.last(), Some(SimpleQueryMessage::CommandComplete(2))));
}

/// psql where it is installed: the README's third quick start.
#[test]
fn psql_runs_statements_over_a_unix_socket() {
    if Command::new("psql").arg("--version").output().is_err() {
        println!("psql is not installed");
        return;
    }
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let options = ServerOptions::new().socket_directory(folder.path()).port(6543);
    let server = Server::start(&database, options).unwrap();
    let script = "CREATE TABLE t (id INT PRIMARY KEY, name TEXT); INSERT INTO t VALUES (1, 'a'), (2, NULL); \
                  SELECT * FROM t ORDER BY id";
    let output = Command::new("psql")
        .args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-p", "6543", "-U", "test", "-d", "any"])
        .arg("-h")
        .arg(folder.path())
        .args(["-c", script])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.ends_with("1|a\n2|\n"), "{text}");
    server.stop();
}
