//! The parts of the protocol that drivers lean on: declared types, portals in parts, origins of
//! columns, notices, notifications, the end of the server.

use std::time::Duration;

use crate::common::{Raw, code, connect, field, message, serve};
use postgres::types::Type;
use quickbeam_server::ServerOptions;

fn kinds(messages: &[(u8, Vec<u8>)]) -> String {
    messages.iter().map(|(kind, _)| char::from(*kind)).collect()
}

#[test]
fn declared_types_of_parameters_are_honoured() {
    let (_, server) = serve(ServerOptions::new());
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n NUMERIC(8,2))").unwrap();
    let statement = client.prepare_typed("SELECT $1, $2", &[Type::DATE]).unwrap();
    assert_eq!(statement.params(), [Type::DATE, Type::TEXT]);
    assert_eq!(statement.columns()[0].type_(), &Type::DATE);
    let insert =
        client.prepare_typed("INSERT INTO t VALUES ($1, $2)", &[Type::INT2, Type::INT4]).unwrap();
    assert_eq!(insert.params(), [Type::INT2, Type::INT4]);
    client.execute(&insert, &[&7i16, &12i32]).unwrap();
    let select = "SELECT id, n::text FROM t WHERE id = $1";
    let select = client.prepare_typed(select, &[Type::INT4]).unwrap();
    let row = client.query_one(&select, &[&7i32]).unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, &str>(1)), (7, "12.00"));
    let error = client.prepare_typed("SELECT $1 + 1", &[Type::BOOL]).err().unwrap();
    assert_eq!(error.code().unwrap().code(), "42883");
    // A type that is not there is found as if none had been declared.
    let statement = client.prepare_typed("SELECT 1 = $1", &[Type::UNKNOWN]).unwrap();
    assert_eq!(statement.params(), [Type::INT4]);
}

#[test]
fn a_portal_computes_only_what_is_fetched() {
    let (_, server) = serve(ServerOptions::new());
    let mut client = connect(&server);
    let mut transaction = client.transaction().unwrap();
    let query = "SELECT g FROM generate_series(1, 1000000000000) g";
    let portal = transaction.bind(query, &[]).unwrap();
    for part in 0..3i64 {
        let rows = transaction.query_portal(&portal, 2).unwrap();
        let rows: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(rows, [2 * part + 1, 2 * part + 2]);
    }
    // The same statement can be executed meanwhile.
    let statement = transaction.prepare("SELECT g FROM generate_series(1, $1) g").unwrap();
    let first = transaction.bind(&statement, &[&3i32]).unwrap();
    let second = transaction.bind(&statement, &[&3i32]).unwrap();
    assert_eq!(transaction.query_portal(&first, 1).unwrap().len(), 1);
    assert_eq!(transaction.query_portal(&second, 2).unwrap().len(), 2);
    assert_eq!(transaction.query_portal(&first, 0).unwrap().len(), 2);
    assert_eq!(transaction.query(&statement, &[&4i32]).unwrap().len(), 4);
    transaction.commit().unwrap();
}

#[test]
fn rows_left_in_a_portal_stay_as_they_were() {
    for (begin, changes_before) in [
        ("BEGIN", false),
        ("BEGIN", true),
        ("BEGIN ISOLATION LEVEL REPEATABLE READ", false),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", true),
    ] {
        let (_, server) = serve(ServerOptions::new());
        let mut raw = Raw::open(&server, "test");
        raw.query("CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1), (2), (3), (4)");
        raw.query(begin);
        if changes_before {
            raw.query("DELETE FROM t WHERE id = 4; INSERT INTO t VALUES (4)");
        }
        raw.send(&message(b'P', b"s\0SELECT id FROM t ORDER BY id\0\0\0"));
        raw.send(&message(b'B', b"p\0s\0\0\0\0\0\0\0"));
        raw.send(&message(b'E', b"p\0\0\0\0\x02"));
        raw.send(&message(b'S', b""));
        assert_eq!(kinds(&raw.until(b'Z')), "12DDsZ", "{begin}");
        for change in [
            "SAVEPOINT a",
            "DELETE FROM t WHERE id > 2",
            "INSERT INTO t VALUES (5)",
            "ROLLBACK TO a",
            "ALTER TABLE t ADD COLUMN x INT",
        ] {
            assert_eq!(kinds(&raw.query(change)), "CZ", "{begin}: {change}");
        }
        raw.send(&message(b'E', b"p\0\0\0\0\x02"));
        raw.send(&message(b'E', b"p\0\0\0\0\x02"));
        raw.send(&message(b'S', b""));
        let rest = raw.until(b'Z');
        assert_eq!(kinds(&rest), "DDsCZ", "{begin}");
        assert_eq!(rest[1].1, b"\0\x01\0\0\0\x014", "{begin}");
        assert_eq!(kinds(&raw.query("COMMIT")), "CZ");
        raw.send(&message(b'E', b"p\0\0\0\0\x02"));
        raw.send(&message(b'S', b""));
        assert_eq!(code(&raw.until(b'Z')[0].1), "34000", "{begin}");
    }
}

#[test]
fn columns_name_their_table() {
    let (_, server) = serve(ServerOptions::new());
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(7))").unwrap();
    let oid = "SELECT oid::int8 FROM pg_class WHERE relname = 't'";
    let oid = client.query_one(oid, &[]).unwrap().get::<_, i64>(0);
    let statement = client.prepare("SELECT name, id + 1, id AS other FROM t").unwrap();
    let origins: Vec<_> = statement
        .columns()
        .iter()
        .map(|column| {
            (column.table_oid().map(i64::from), column.column_id(), column.type_modifier())
        })
        .collect();
    assert_eq!(origins, [(Some(oid), Some(2), 11), (None, None, -1), (Some(oid), Some(1), -1)]);
}

#[test]
fn a_cursor_is_described_as_a_portal() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    raw.query("BEGIN; DECLARE c CURSOR FOR SELECT 1 AS one");
    raw.send(&message(b'D', b"Pc\0"));
    raw.send(&message(b'C', b"Pc\0"));
    raw.send(&message(b'D', b"Pc\0"));
    raw.send(&message(b'S', b""));
    let answer = raw.until(b'Z');
    assert_eq!(kinds(&answer), "T3EZ");
    assert!(answer[0].1.starts_with(b"\0\x01one\0"));
    assert_eq!(code(&answer[2].1), "34000");
}

#[test]
fn prepared_statements_of_both_kinds_share_their_names() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    let answer = |raw: &mut Raw, messages: &[Vec<u8>]| {
        messages.iter().for_each(|message| raw.send(message));
        raw.send(&message(b'S', b""));
        raw.until(b'Z')
    };
    let parse = message(b'P', b"Name\0SELECT 1\0\0\0");
    let run = [message(b'B', b"\0Name\0\0\0\0\0\0\0"), message(b'E', b"\0\0\0\0\0")];
    assert_eq!(kinds(&answer(&mut raw, std::slice::from_ref(&parse))), "1Z");
    assert_eq!(code(&answer(&mut raw, std::slice::from_ref(&parse))[0].1), "42P05");
    assert_eq!(kinds(&raw.query("EXECUTE \"Name\"")), "TDCZ");
    assert_eq!(code(&raw.query("PREPARE \"Name\" AS SELECT 2")[0].1), "42P05");
    assert_eq!(kinds(&answer(&mut raw, &run)), "2DCZ");
    assert_eq!(raw.query("DEALLOCATE \"Name\"")[0].1, b"DEALLOCATE\0");
    assert_eq!(code(&answer(&mut raw, &run)[0].1), "26000");
    raw.query("PREPARE \"Name\" AS SELECT 22");
    assert_eq!(answer(&mut raw, &run)[1].1, b"\0\x01\0\0\0\x0222");
    raw.query("DISCARD ALL");
    assert_eq!(kinds(&answer(&mut raw, std::slice::from_ref(&parse))), "1Z");
}

#[test]
fn a_prepared_result_does_not_change_its_columns() {
    let (_, server) = serve(ServerOptions::new());
    let mut client = connect(&server);
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    let statement = client.prepare("SELECT * FROM t").unwrap();
    client.batch_execute("CREATE INDEX i ON t (id); ALTER TABLE t ADD COLUMN x TEXT").unwrap();
    for _ in 0..2 {
        let error = client.query(&statement, &[]).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "0A000");
        assert_eq!(error.message(), "cached plan must not change result type");
    }
    client.batch_execute("ALTER TABLE t DROP COLUMN x").unwrap();
    assert!(client.query(&statement, &[]).unwrap().is_empty());
}

#[test]
fn notices_come_before_the_end_of_their_statement() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    let heard = |answer: &[(u8, Vec<u8>)]| {
        assert_eq!(kinds(answer), "NCZ");
        let field = |kind| field(&answer[0].1, kind);
        (field(b'S'), code(&answer[0].1), field(b'M'))
    };
    for (statement, severity, state, text) in [
        ("DROP TABLE IF EXISTS t", "NOTICE", "00000", "table \"t\" does not exist, skipping"),
        ("COMMIT", "WARNING", "25P01", "there is no transaction in progress"),
    ] {
        let expected = (severity.to_owned(), state.to_owned(), text.to_owned());
        assert_eq!(heard(&raw.query(statement)), expected);
    }
    raw.query("CREATE TABLE t (id INT)");
    let notice = heard(&raw.query("CREATE TABLE IF NOT EXISTS t (id INT)"));
    assert_eq!(
        (&notice.1[..], &notice.2[..]),
        ("42P07", "relation \"t\" already exists, skipping")
    );
    raw.query("BEGIN");
    assert_eq!(heard(&raw.query("BEGIN")).1, "25001");
    raw.query("ROLLBACK");
    raw.query("SET client_min_messages = warning");
    assert_eq!(kinds(&raw.query("DROP TABLE IF EXISTS u")), "CZ");
    assert_eq!(kinds(&raw.query("ROLLBACK")), "NCZ");
}

#[test]
fn notifications_reach_those_who_listen() {
    let (database, server) = serve(ServerOptions::new());
    let (mut listener, mut other) = (Raw::open(&server, "a"), Raw::open(&server, "b"));
    listener.query("LISTEN news; LISTEN more");
    let heard = |raw: &mut Raw| {
        let (kind, body) = raw.read().unwrap();
        assert_eq!(kind, b'A');
        let texts: Vec<_> = body[4..].split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        texts[..2].iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect::<Vec<_>>()
    };
    // What is rolled back is not heard, and what is said twice is heard once.
    other.query("BEGIN; NOTIFY news, 'lost'; ROLLBACK");
    other.query("BEGIN; NOTIFY news, 'b'; SAVEPOINT s; NOTIFY news, 'lost'; ROLLBACK TO s");
    other.query("SELECT pg_notify('news', 'c'), pg_notify('news', 'b'); NOTIFY nobody; COMMIT");
    assert_eq!(heard(&mut listener), ["news", "b"]);
    assert_eq!(heard(&mut listener), ["news", "c"]);
    // Not within a transaction.
    listener.query("BEGIN");
    database.connect().execute("NOTIFY more", &[]).unwrap();
    assert_eq!(kinds(&listener.query("SELECT 1")), "TDCZ");
    assert_eq!(kinds(&listener.query("COMMIT")), "CAZ");
    // A session hears itself; the statement ends first.
    assert_eq!(kinds(&listener.query("NOTIFY news")), "CAZ");
    listener.query("UNLISTEN *");
    assert_eq!(kinds(&listener.query("NOTIFY news")), "CZ");
    let long = format!("NOTIFY news, '{}'", "x".repeat(8000));
    assert_eq!(code(&other.query(&long)[0].1), "22023");
}

#[test]
fn draining_lets_statements_end_and_says_farewell() {
    let (database, server) = serve(ServerOptions::new());
    let direct = database.connect();
    direct.query("SELECT pg_advisory_lock(1)", &[]).unwrap().collect().unwrap();
    let (mut busy, mut idle) = (Raw::open(&server, "busy"), Raw::open(&server, "idle"));
    idle.query("BEGIN");
    let query = b"SELECT pg_advisory_lock(2); SELECT pg_advisory_lock(1)\0";
    busy.send(&message(b'Q', query));
    // The request has begun once it holds the second lock.
    loop {
        let free = "SELECT pg_try_advisory_lock(2)";
        if !direct.query_row(free, &[], |row| row.get::<bool>(0)).unwrap() {
            break;
        }
        direct.query("SELECT pg_advisory_unlock(2)", &[]).unwrap().collect().unwrap();
        std::thread::yield_now();
    }
    let draining = std::thread::spawn(move || server.drain(Duration::from_secs(600)));
    let (kind, body) = idle.read().unwrap();
    assert_eq!((kind, code(&body)), (b'E', "57P01".into()));
    assert!(idle.read().is_none());
    direct.query("SELECT pg_advisory_unlock(1)", &[]).unwrap().collect().unwrap();
    assert_eq!(kinds(&busy.until(b'Z')), "TDCTDCZ");
    let (kind, body) = busy.read().unwrap();
    assert_eq!((kind, code(&body)), (b'E', "57P01".into()));
    draining.join().unwrap();
}
