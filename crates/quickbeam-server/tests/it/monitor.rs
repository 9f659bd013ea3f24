//! What can be seen of a running server: its sessions, metrics, status page and log.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::serve;
use postgres::{Client, NoTls};
use quickbeam_server::{LogOutput, Server, ServerOptions};

fn connect(server: &Server, application: &str) -> Client {
    let port = server.address().unwrap().port();
    let parameters = format!("host=127.0.0.1 port={port} user=anna application_name={application}");
    Client::connect(&parameters, NoTls).unwrap()
}

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Requests a page and returns the status line and the body.
fn get(server: &Server, request: &str) -> (String, String) {
    let port = server.monitor().unwrap().port();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

fn page(server: &Server, path: &str, host: &str) -> (String, String) {
    get(server, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

#[test]
fn sessions_are_shown_with_what_they_do() {
    let (database, server) = serve(ServerOptions::new());
    let mut waiting = connect(&server, "waiting");
    waiting.batch_execute("BEGIN; SELECT pg_advisory_lock(7)").unwrap();
    let mut failed = connect(&server, "failed");
    assert!(failed.batch_execute("BEGIN; SELECT 1 / 0").is_err());
    let mut own = connect(&server, "own");
    let query = "SELECT application_name, usename::text, state, query, client_addr::text, \
        xact_start IS NOT NULL, backend_start <= state_change, pid = pg_backend_pid() \
        FROM pg_stat_activity ORDER BY pid";
    let rows = own.query(query, &[]).unwrap();
    let row = |at: usize| -> (String, String, String, String, bool, bool) {
        let row = &rows[at];
        assert_eq!((row.get::<_, &str>(1), row.get::<_, bool>(6)), ("anna", true));
        (row.get(0), row.get(2), row.get(3), row.get(4), row.get(5), row.get(7))
    };
    let text = str::to_owned;
    let address = text("127.0.0.1");
    assert_eq!(rows.len(), 3);
    let locks = text("SELECT pg_advisory_lock(7)");
    let idle = text("idle in transaction");
    assert_eq!(row(0), (text("waiting"), idle, locks, address.clone(), true, false));
    let aborted = text("idle in transaction (aborted)");
    let divides = text("SELECT 1 / 0");
    assert_eq!(row(1), (text("failed"), aborted, divides, address.clone(), true, false));
    assert_eq!(row(2), (text("own"), text("active"), text(query), address, true, true));
    let locks = "SELECT locktype, objid::int, mode, granted, l.pid = a.pid FROM pg_locks l \
        JOIN pg_stat_activity a ON a.application_name = 'waiting'";
    let rows = own.query(locks, &[]).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get::<_, &str>(0), "advisory");
    assert_eq!((rows[0].get::<_, i32>(1), rows[0].get::<_, &str>(2)), (7, "ExclusiveLock"));
    assert!(rows[0].get::<_, bool>(3) && rows[0].get::<_, bool>(4));
    // The program that embeds the server sees them, too, and a session that ends leaves.
    drop(failed);
    drop(waiting);
    let direct = database.connect();
    let count = "SELECT count(*) FROM pg_stat_activity WHERE application_name <> 'own'";
    while direct.query_row(count, &[], |row| row.get::<i64>(0)).unwrap() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn metrics_count_statements_and_errors() {
    let (_, server) = serve(ServerOptions::new().monitor(loopback()));
    let mut client = connect(&server, "metrics");
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    for id in 0..5i32 {
        client.execute("INSERT INTO t VALUES ($1)", &[&id]).unwrap();
    }
    assert!(client.batch_execute("SELECT 1 / 0").is_err());
    let (status, body) = page(&server, "/metrics", "127.0.0.1");
    assert_eq!(status, "HTTP/1.1 200 OK");
    let value = |name: &str| -> f64 {
        let line = body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} in {body}")).parse().unwrap()
    };
    assert!((value("quickbeam_server_statement_seconds_count") - 7.0).abs() < f64::EPSILON);
    assert!((value("quickbeam_server_failures_total{sqlstate=\"22012\"}") - 1.0).abs() < 1e-9);
    assert!((value("quickbeam_server_sessions{state=\"idle\"}") - 1.0).abs() < 1e-9);
    assert!(value("quickbeam_engine_commits_total") >= 6.0);
    assert!(value("quickbeam_engine_cache_size") > 0.0);
    // Every line is a type or a sample, each metric is there once, and buckets only grow.
    let mut types: Vec<&str> = Vec::new();
    let mut bucket = 0.0;
    for line in body.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            types.push(declared.split(' ').next().unwrap());
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap();
        assert!(name.starts_with(types.last().unwrap()), "{line}");
        if name.contains("_bucket{") {
            assert!(value >= bucket, "{body}");
            bucket = value;
        }
    }
    let count = types.len();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types.len(), count);
    assert_eq!(page(&server, "/nothing", "127.0.0.1").0, "HTTP/1.1 404 Not Found");
    let posted = get(&server, "POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(posted.0, "HTTP/1.1 405 Method Not Allowed");
    server.stop();
}

#[test]
fn status_page_is_for_this_machine() {
    let (_, server) = serve(ServerOptions::new().monitor(loopback()));
    let mut client = connect(&server, "shown");
    client.batch_execute("SELECT 'a statement'").unwrap();
    for host in ["localhost", "127.0.0.1:8080", "[::1]:80"] {
        let (status, body) = page(&server, "/", host);
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert!(body.contains("<title>Quickbeam</title>") && !body.contains("http"), "{body}");
        let (status, body) = page(&server, "/status.json", host);
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert!(body.contains("SELECT 'a statement'") && body.contains("\"shown\""), "{body}");
        assert!(body.contains("\"log_tail_bytes\""), "{body}");
    }
    for path in ["/", "/status.json"] {
        assert_eq!(page(&server, path, "quickbeam.example").0, "HTTP/1.1 403 Forbidden");
        let nameless = get(&server, &format!("GET {path} HTTP/1.0\r\n\r\n"));
        assert_eq!(nameless.0, "HTTP/1.1 403 Forbidden");
    }
    // Beyond this machine only figures are shown.
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let (_, server) = serve(ServerOptions::new().monitor(everywhere));
    assert_eq!(page(&server, "/status.json", "127.0.0.1").0, "HTTP/1.1 403 Forbidden");
    assert_eq!(page(&server, "/metrics", "127.0.0.1").0, "HTTP/1.1 200 OK");
}

#[test]
fn status_has_transactions_locks_and_durations() {
    let (database, server) = serve(ServerOptions::new().monitor(loopback()).track_statements(9));
    let mut client = connect(&server, "shown");
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    client.batch_execute("BEGIN").unwrap();
    client.batch_execute("INSERT INTO t VALUES (1), (2)").unwrap();
    let direct = database.environment().begin().unwrap();
    let (_, body) = page(&server, "/status.json", "localhost");
    let status: serde_json::Value = serde_json::from_str(&body).unwrap();
    let open = status["transactions"].as_array().unwrap();
    assert_eq!(open.len(), 2);
    let number = &status["sessions"][0]["session"];
    let own = open.iter().find(|one| one["session"] == *number).unwrap();
    assert_eq!(own["changes"], 2);
    assert!(open.iter().any(|one| one["session"].is_null() && one["changes"] == 0), "{body}");
    let locks = status["locks"].as_array().unwrap();
    assert_eq!(locks.len(), 1);
    assert_eq!((&locks[0]["session"], &locks[0]["granted"]), (number, &true.into()));
    let durations = status["server"]["durations"].as_array().unwrap();
    let counted: u64 = durations.iter().filter_map(serde_json::Value::as_u64).sum();
    assert_eq!(status["server"]["statements"], counted);
    assert_eq!(durations.len(), status["server"]["duration_bounds"].as_array().unwrap().len() + 1);
    let statements = status["statements"].as_array().unwrap();
    assert!(statements.iter().any(|one| one["statement"] == "INSERT INTO t VALUES ($1), ($2)"));
    drop(direct);
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn slow_statements_are_logged_with_their_plan() {
    let lines = Lines::default();
    let options = ServerOptions::new().log(LogOutput::new(lines.clone())).log_connections(true);
    let (_, server) = serve(options.log_slow_statements(Duration::ZERO));
    let mut client = connect(&server, "log");
    client.batch_execute("CREATE TABLE t (id INT PRIMARY KEY, x TEXT)").unwrap();
    client.query("SELECT x FROM t WHERE id = 1 AND x <> $1", &[&"hidden word"]).unwrap();
    assert!(client.batch_execute("BEGIN; SELECT 1 / 0").is_err());
    client.batch_execute("ROLLBACK").unwrap();
    drop(client);
    server.stop();
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let events: Vec<&str> = text.lines().collect();
    assert!(events[0].contains("\"event\":\"session began\""), "{text}");
    assert!(events.last().unwrap().contains("\"event\":\"session ended\""), "{text}");
    assert!(events.iter().all(|line| line.starts_with('{') && line.contains("\"user\":\"anna\"")));
    let of = |statement: &str| {
        let found = events.iter().find(|line| line.contains(statement));
        *found.unwrap_or_else(|| panic!("{statement} in {text}"))
    };
    let query = of("SELECT x FROM t");
    assert!(query.contains("\"plan\":[") && query.contains("\"duration_ms\":"), "{query}");
    assert!(query.contains("\"Primary Key Lookup on t"), "{query}");
    assert!(!text.contains("hidden word"), "{text}");
    let failed = of("SELECT 1 / 0");
    assert!(failed.contains("\"failed\":true") && !failed.contains("\"plan\""), "{failed}");
}

#[test]
fn sessions_are_canceled_and_terminated() {
    let (database, server) = serve(ServerOptions::new());
    let mut own = connect(&server, "own");
    let mut other = connect(&server, "other");
    let number: i32 = other.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    other.batch_execute("CREATE TABLE t (a INTEGER)").unwrap();
    other.batch_execute("BEGIN; INSERT INTO t VALUES (1)").unwrap();
    let holds = |client: &mut Client, call: &str| -> bool {
        client.query_one(&format!("SELECT {call}"), &[]).unwrap().get(0)
    };
    let statement = std::thread::spawn(move || {
        let error = other.batch_execute("SELECT count(*) FROM generate_series(1, 1000000000000)");
        (error.unwrap_err(), other)
    });
    let running = format!(
        "EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = {number} \
         AND state = 'active' AND query LIKE '%generate_series%')"
    );
    while !holds(&mut own, &running) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(holds(&mut own, &format!("pg_cancel_backend({number})")));
    let (error, mut other) = statement.join().unwrap();
    assert_eq!(error.code().unwrap().code(), "57014");
    assert!(holds(&mut own, &format!("pg_terminate_backend({number}, 10000)")));
    assert!(other.batch_execute("SELECT 1").is_err());
    assert!(other.is_closed());
    let rows: i64 = own.query_one("SELECT count(*) FROM t", &[]).unwrap().get(0);
    assert_eq!(rows, 0);
    // The session is not there any more.
    assert!(!holds(&mut own, &format!("pg_terminate_backend({number})")));
    database
        .connect()
        .execute_script("CREATE ROLE keeper SUPERUSER LOGIN; CREATE ROLE visitor LOGIN")
        .unwrap();
    let own_number: i32 = own.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    let refused = database.connect_as("visitor").unwrap().query_row(
        &format!("SELECT pg_cancel_backend({own_number})"),
        &[],
        |row| row.get::<bool>(0),
    );
    assert_eq!(refused.unwrap_err().code(), "42501");
    drop(server);
}
