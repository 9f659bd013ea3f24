//! COPY over the connection.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Raw, code, connect, field, message, serve};
use quickbeam_server::ServerOptions;

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, x TEXT, n NUMERIC(6,2))";

#[test]
fn text_and_csv_go_in_and_come_out() {
    let (_, server) = serve(ServerOptions::new());
    let mut client = connect(&server);
    client.batch_execute(TABLE).unwrap();
    let mut writer = client.copy_in("COPY t FROM STDIN").unwrap();
    writer.write_all(b"1\ta\\tb\t1.5\n2\t\\N\t\\N\n").unwrap();
    writer.write_all(b"3\t\\\\N\t-2\n").unwrap();
    assert_eq!(writer.finish().unwrap(), 3);
    let mut writer = client.copy_in("COPY t (x, id) FROM STDIN WITH (FORMAT csv)").unwrap();
    writer.write_all(b"\"say \"\"x\"\"\",4\n,5\n\"\",6\n").unwrap();
    assert_eq!(writer.finish().unwrap(), 3);

    let mut read = |statement: &str| {
        let mut text = String::new();
        client.copy_out(statement).unwrap().read_to_string(&mut text).unwrap();
        text
    };
    let text =
        "1\ta\\tb\t1.50\n2\t\\N\t\\N\n3\t\\\\N\t-2.00\n4\tsay \"x\"\t\\N\n5\t\\N\t\\N\n6\t\t\\N\n";
    assert_eq!(read("COPY t TO STDOUT"), text);
    assert_eq!(
        read(
            "COPY (SELECT id, x FROM t WHERE id > 3 ORDER BY id DESC) TO STDOUT (FORMAT csv, HEADER)"
        ),
        "id,x\n6,\"\"\n5,\n4,\"say \"\"x\"\"\"\n"
    );
    assert_eq!(
        read("COPY (SELECT 1, 'a|b', NULL) TO STDOUT WITH (DELIMITER '|', NULL 'none')"),
        "1|a\\|b|none\n"
    );
    assert_eq!(client.query_one("SELECT count(*) FROM t", &[]).unwrap().get::<_, i64>(0), 6);
}

#[test]
fn each_row_is_a_message() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    let answer =
        raw.query("COPY (SELECT g, repeat('x', 3000) FROM generate_series(1, 50) g) TO STDOUT");
    let kinds: String = answer.iter().map(|(kind, _)| char::from(*kind)).collect();
    assert_eq!(kinds, format!("H{}cCZ", "d".repeat(50)));
    assert_eq!(answer[0].1, b"\0\0\x02\0\0\0\0");
    assert_eq!(answer[52].1, b"COPY 50\0");
    assert!(answer[7].1.starts_with(b"7\tx") && answer[7].1.ends_with(b"x\n"));
}

#[test]
fn a_bad_row_changes_nothing_and_is_named() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    raw.query(TABLE);
    for (rows, state, context) in [
        ("1\ta\t1\n2\tb\tmany\n", "22P02", "COPY t, line 2, column n: \"many\""),
        ("1\ta\t1\n2\tb\n", "22P04", "COPY t, line 2"),
        ("1\ta\t1\n1\tb\t2\n", "23505", "COPY t, line 2"),
        ("1\ta\t1\t2\n", "22P04", "COPY t, line 1"),
    ] {
        raw.send(&message(b'Q', b"COPY t FROM STDIN\0"));
        assert_eq!(raw.until(b'G').last().unwrap().1, b"\0\0\x03\0\0\0\0\0\0");
        raw.send(&message(b'd', rows.as_bytes()));
        // More than the server has to read before it reports.
        raw.send(&message(b'd', b"7\tlate\t7\n"));
        raw.send(&message(b'c', b""));
        let error = raw.until(b'E').pop().unwrap().1;
        assert_eq!(code(&error), state, "{rows:?}");
        assert!(field(&error, b'W').starts_with(context), "{}", field(&error, b'W'));
        raw.until(b'Z');
        let answer = raw.query("SELECT count(*) FROM t");
        assert_eq!(answer[1].1, b"\0\x01\0\0\0\x010", "{rows:?}");
    }
}

#[test]
fn a_client_gives_copy_up_or_breaks_it_off() {
    let (database, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    raw.query(TABLE);
    raw.send(&message(b'Q', b"COPY t FROM STDIN\0"));
    raw.until(b'G');
    raw.send(&message(b'd', b"1\ta\t1\n"));
    raw.send(&message(b'f', b"enough\0"));
    let error = raw.until(b'E').pop().unwrap().1;
    assert_eq!(
        (code(&error), field(&error, b'M')),
        ("57014".into(), "COPY from stdin failed: enough".into())
    );
    raw.until(b'Z');

    raw.send(&message(b'Q', b"COPY t FROM STDIN\0"));
    raw.until(b'G');
    raw.send(&message(b'd', b"1\ta\t1\n"));
    raw.send(&message(b'Q', b"SELECT 1\0"));
    let error = raw.until(b'E').pop().unwrap().1;
    assert_eq!(code(&error), "08P01");
    while raw.read().is_some() {}

    let mut raw = Raw::open(&server, "test");
    raw.send(&message(b'Q', b"COPY t FROM STDIN\0"));
    raw.until(b'G');
    raw.send(&message(b'd', b"1\ta\t1\n"));
    drop(raw);
    assert!((0..100_000).any(|_| {
        std::thread::yield_now();
        server.sessions() == 0
    }));
    let count =
        database.connect().query_row("SELECT count(*) FROM t", &[], |row| row.get::<i64>(0));
    assert_eq!(count.unwrap(), 0);
}

#[test]
fn a_prepared_copy_ignores_the_sync_before_its_data() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    raw.query(TABLE);
    raw.send(&message(b'P', b"\0COPY t FROM STDIN\0\0\0"));
    raw.send(&message(b'B', b"\0\0\0\0\0\0\0\0"));
    raw.send(&message(b'E', b"\0\0\0\0\0"));
    raw.send(&message(b'S', b""));
    raw.until(b'G');
    raw.send(&message(b'd', b"1\ta\t1\n2\tb"));
    raw.send(&message(b'd', b"\t2\n"));
    raw.send(&message(b'c', b""));
    raw.send(&message(b'S', b""));
    assert_eq!(raw.until(b'C').pop().unwrap().1, b"COPY 2\0");
    raw.until(b'Z');
}

#[test]
fn files_of_the_server_stay_untouched() {
    let (_, server) = serve(ServerOptions::new());
    let mut client = connect(&server);
    client.batch_execute(TABLE).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for statement in [format!("COPY t TO '{}'", path.display()), "COPY t FROM '/etc/passwd'".into()]
    {
        let error = client.batch_execute(&statement).unwrap_err();
        assert_eq!(error.code().unwrap().code(), "42501");
    }
    assert!(!path.exists());
}

#[test]
fn binary_goes_in_and_comes_out() {
    let (_, server) = serve(ServerOptions::new());
    let mut client = connect(&server);
    client
        .batch_execute(
            "CREATE TABLE v (id INT PRIMARY KEY, x TEXT, n NUMERIC(8,3), d DATE, a INT[], b BYTEA); \
             INSERT INTO v VALUES (1, 'a', 1.5, '2024-02-29', '{1,NULL,3}', '\\x00ff'); \
             INSERT INTO v VALUES (2, NULL, NULL, NULL, NULL, NULL), (3, '', -12345.678, 'infinity', '{}', '')",
        )
        .unwrap();
    let mut bytes = Vec::new();
    client.copy_out("COPY v TO STDOUT (FORMAT binary)").unwrap().read_to_end(&mut bytes).unwrap();
    assert!(bytes.starts_with(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x06\0\0\0\x04\0\0\0\x01"));
    assert!(bytes.ends_with(b"\xff\xff"));
    client.batch_execute("CREATE TABLE w AS SELECT * FROM v LIMIT 0").unwrap();
    for pieces in [1, 7, 8192] {
        client.batch_execute("DELETE FROM w").unwrap();
        let mut writer = client.copy_in("COPY w FROM STDIN BINARY").unwrap();
        bytes.chunks(pieces).for_each(|piece| writer.write_all(piece).unwrap());
        assert_eq!(writer.finish().unwrap(), 3);
        let query = "SELECT count(*) FROM v JOIN w USING (id) WHERE (v.x, v.n, v.d, v.a, v.b) \
                     IS NOT DISTINCT FROM (w.x, w.n, w.d, w.a, w.b)";
        assert_eq!(client.query_one(query, &[]).unwrap().get::<_, i64>(0), 3);
    }
    // Every cut, but for one before the trailer, is an error that changes nothing.
    client.batch_execute("DELETE FROM w").unwrap();
    for length in 0..bytes.len() - 1 {
        if length == bytes.len() - 2 {
            continue;
        }
        let mut writer = client.copy_in("COPY w FROM STDIN (FORMAT binary)").unwrap();
        writer.write_all(&bytes[..length]).unwrap();
        match writer.finish() {
            Err(error) => assert_eq!(error.code().unwrap().code(), "22P04", "{length}"),
            // Whole records.
            Ok(_) => client.batch_execute("DELETE FROM w").unwrap(),
        }
    }
    let error =
        client.batch_execute("COPY v TO STDOUT (FORMAT binary, DELIMITER ',')").unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42601");
}

#[test]
fn the_formats_of_copy_are_announced() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "test");
    let answer = raw.query("COPY (SELECT 1, 'a') TO STDOUT (FORMAT binary)");
    assert_eq!(answer[0].1, b"\x01\0\x02\0\x01\0\x01");
    // The header comes with the first record: psycopg reads it off there.
    let kinds: String = answer.iter().map(|(kind, _)| char::from(*kind)).collect();
    assert_eq!(kinds, "HddcCZ");
    assert!(answer[1].1.starts_with(b"PGCOPY") && answer[1].1.ends_with(b"\0\0\0\x01a"));
    assert_eq!(answer[2].1, b"\xff\xff");
    let empty = raw.query("COPY (SELECT 1 LIMIT 0) TO STDOUT BINARY");
    assert!(empty[1].1.starts_with(b"PGCOPY") && empty[1].1.ends_with(b"\xff\xff"));
    raw.query("COPY (SELECT 1) TO '/tmp/none' (FORMAT binary)");
    assert_eq!(raw.query("COPY (SELECT 1) TO STDOUT")[0].1, b"\0\0\x01\0\0");
}

/// Finds a program of PostgreSQL; Debian keeps most of them out of the path.
fn program(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/lib/postgresql/15/bin", "/usr/bin", "/usr/local/bin"];
    let found =
        folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists());
    if found.is_none() {
        println!("{name} is not installed");
    }
    found
}

#[test]
fn pgbench_loads_its_tables_and_runs_its_scripts() {
    let Some(pgbench) = program("pgbench") else { return };
    let (database, server) = serve(ServerOptions::new());
    let run = |arguments: &[&str]| {
        let port = server.address().unwrap().port().to_string();
        let connection = ["-h", "127.0.0.1", "-p", &port, "-U", "test"];
        let output = Command::new(&pgbench).args(connection).args(arguments).arg("any").output();
        let output = output.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run(&["-i", "-s", "1", "-q"]);
    let count = |table: &str| {
        let query = format!("SELECT count(*) FROM {table}");
        database.connect().query_row(&query, &[], |row| row.get::<i64>(0)).unwrap()
    };
    assert_eq!(count("pgbench_accounts"), 100_000);
    for (number, mode) in (1..).zip(["simple", "extended", "prepared"]) {
        for script in ["tpcb-like", "simple-update", "select-only"] {
            let text = run(&["-n", "-c", "2", "-t", "20", "-M", mode, "-b", script]);
            assert!(text.contains("processed: 40/40"), "{mode} {script}: {text}");
            assert!(text.contains("failed transactions: 0 "), "{mode} {script}: {text}");
        }
        assert_eq!(count("pgbench_history"), 80 * number);
    }
    let sums = "SELECT (SELECT sum(abalance) FROM pgbench_accounts) = \
                (SELECT sum(delta) FROM pgbench_history)";
    assert!(database.connect().query_row(sums, &[], |row| row.get::<bool>(0)).unwrap());
}
