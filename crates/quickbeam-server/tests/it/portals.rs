//! FETCH, MOVE and CLOSE of portals that the protocol has made, and parameters of DECLARE: what
//! server-side cursors of drivers do.

use crate::common::{Raw, code, connect, message, serve};
use quickbeam_server::ServerOptions;

const COUNTING: &str = "SELECT i FROM generate_series(1, 10) g(i)";

/// Binds the portal `p` to a query, in a transaction.
fn bind(raw: &mut Raw, query: &str) {
    raw.query("BEGIN");
    raw.send(&message(b'P', &[b"\0", query.as_bytes(), b"\0\0\0"].concat()));
    raw.send(&message(b'B', b"p\0\0\0\0\0\0\0\0"));
    raw.send(&message(b'S', b""));
    let answer = raw.until(b'Z');
    assert!(answer.iter().all(|(kind, _)| *kind != b'E'), "{answer:?}");
}

/// Executes the portal for some rows and returns their first columns.
fn execute(raw: &mut Raw, rows: u8) -> Vec<String> {
    raw.send(&message(b'E', &[b'p', 0, 0, 0, 0, rows]));
    raw.send(&message(b'S', b""));
    values(&raw.until(b'Z'))
}

/// The values of rows of one column, and the command tag or the error.
fn values(answer: &[(u8, Vec<u8>)]) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
    let value = |(kind, body): &(u8, Vec<u8>)| match kind {
        b'D' => Some(text(&body[6..])),
        b'C' => Some(text(body)),
        b'E' => Some(code(body)),
        _ => None,
    };
    answer.iter().filter_map(value).collect()
}

#[test]
fn portals_of_the_protocol_are_moved_and_fetched() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    bind(&mut raw, COUNTING);
    assert_eq!(execute(&mut raw, 2), ["1", "2"]);
    assert_eq!(values(&raw.query("MOVE FORWARD 3 IN p")), ["MOVE 3"]);
    let fetched = raw.query("FETCH 2 FROM p");
    assert_eq!(fetched[0].0, b'T');
    assert_eq!(values(&fetched), ["6", "7", "FETCH 2"]);
    assert_eq!(execute(&mut raw, 1), ["8"]);
    assert_eq!(values(&raw.query("MOVE p")), ["MOVE 1"]);
    assert_eq!(values(&raw.query("FETCH ALL FROM \"p\"")), ["10", "FETCH 1"]);
    assert_eq!(values(&raw.query("FETCH p")), ["FETCH 0"]);
    assert_eq!(values(&raw.query("CLOSE p")), ["CLOSE CURSOR"]);
    assert_eq!(values(&raw.query("FETCH p")), ["34000"]);
}

#[test]
fn portal_that_has_not_begun_is_moved() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    bind(&mut raw, COUNTING);
    assert_eq!(values(&raw.query("MOVE 8 FROM p")), ["MOVE 8"]);
    assert_eq!(execute(&mut raw, 0), ["9", "10", "SELECT 2"]);
    assert_eq!(values(&raw.query("MOVE 1 FROM p")), ["MOVE 0"]);
}

#[test]
fn portals_are_passed_forward_only_and_not_after_an_error() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    bind(&mut raw, COUNTING);
    assert_eq!(values(&raw.query("MOVE BACKWARD 1 IN p")), ["55000"]);
    assert_eq!(values(&raw.query("FETCH p")), ["25P02"]);
    assert_eq!(values(&raw.query("ROLLBACK")), ["ROLLBACK"]);
    assert_eq!(values(&raw.query("FETCH p")), ["34000"]);
}

#[test]
fn rows_kept_over_a_change_are_fetched() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    raw.query("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3), (4)");
    bind(&mut raw, "SELECT id FROM t ORDER BY id");
    assert_eq!(execute(&mut raw, 1), ["1"]);
    raw.query("DELETE FROM t WHERE id > 2");
    assert_eq!(values(&raw.query("MOVE 1 FROM p")), ["MOVE 1"]);
    assert_eq!(values(&raw.query("FETCH 5 FROM p")), ["3", "4", "FETCH 2"]);
}

#[test]
fn declare_takes_parameters() {
    let (_, server) = serve(ServerOptions::new());
    let mut client = connect(&server);
    let mut transaction = client.transaction().unwrap();
    let declare = "DECLARE c CURSOR FOR SELECT i, $2::text FROM generate_series(1, $1) g(i)";
    let statement = transaction.prepare(declare).unwrap();
    assert_eq!(statement.params().len(), 2);
    transaction.execute(&statement, &[&5i32, &"x"]).unwrap();
    let rows = transaction.query("FETCH ALL FROM c", &[]).unwrap();
    let rows: Vec<(i32, &str)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [(1, "x"), (2, "x"), (3, "x"), (4, "x"), (5, "x")]);
    let error = transaction.prepare("DECLARE d CURSOR FOR SELECT missing + $1").err().unwrap();
    assert_eq!(error.code().unwrap().code(), "42703");
    let position = error.as_db_error().unwrap().position().cloned();
    assert_eq!(position, Some(postgres::error::ErrorPosition::Original(29)));
}

#[test]
fn prepared_statement_of_the_protocol_is_shown() {
    let (_, server) = serve(ServerOptions::new());
    let mut client = connect(&server);
    let text = "SELECT $1::int + 1, $2::date";
    let statement = client.prepare(text).unwrap();
    let query = "SELECT statement, parameter_types::text FROM pg_prepared_statements \
                 WHERE NOT from_sql AND prepare_time <= now() AND statement = $1";
    let rows = client.query(query, &[&text]).unwrap();
    let shown: Vec<(&str, &str)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(shown, [(text, "{integer,date}")]);
    drop(statement);
    // The driver closes the statement before its next query.
    assert!(client.query(query, &[&text]).unwrap().is_empty());
}
