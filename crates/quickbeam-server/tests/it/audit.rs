//! The audit log.

use std::path::{Path, PathBuf};

use postgres::Client;
use quickbeam_server::{AuditLevel, Server, ServerOptions};
use quickbeam_sql::SqlDatabase;
use serde_json::Value;

use crate::common::{connect_as, serve, with_anna};

struct Audited {
    database: SqlDatabase,
    server: Server,
    folder: tempfile::TempDir,
}

impl Audited {
    fn new(level: AuditLevel, options: ServerOptions) -> Audited {
        let folder = tempfile::tempdir().unwrap();
        let (database, server) = serve(options.audit_log(level, folder.path().join("audit")));
        Audited { database, server, folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("audit")
    }

    fn connect(&self) -> Client {
        connect_as(&self.server, "anna", "").unwrap()
    }

    /// Ends the server and returns the events of the file.
    fn events(self) -> Vec<Value> {
        let file = self.file();
        self.server.stop();
        lines(&file)
    }
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The statements of the log, each with its class and what came of it.
fn statements(events: &[Value]) -> Vec<String> {
    let field = |event: &Value, name: &str| match &event[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let statements = events.iter().filter(|event| event["event"] == "statement");
    statements
        .map(|event| {
            let outcome = if event["sqlstate"].is_null() { "rows" } else { "sqlstate" };
            let parts = ["class", outcome, "statement"].map(|name| field(event, name));
            parts.join(" ")
        })
        .collect()
}

const WORK: &str = "CREATE TABLE t (id INT PRIMARY KEY)";

fn work(client: &mut Client) {
    client.batch_execute(WORK).unwrap();
    client.execute("INSERT INTO t SELECT generate_series(1, $1)", &[&5i32]).unwrap();
    client.query("SELECT id FROM t WHERE id > $1", &[&3i32]).unwrap();
    assert!(client.batch_execute("INSERT INTO t VALUES (1)").is_err());
    client.batch_execute("GRANT SELECT ON t TO PUBLIC").unwrap();
}

#[test]
fn levels_have_the_statements_that_they_name() {
    let definitions = [format!("ddl 0 {WORK}"), "role 0 GRANT SELECT ON t TO PUBLIC".to_owned()];
    let changes = [
        definitions[0].clone(),
        "write 5 INSERT INTO t SELECT generate_series(1, $1)".to_owned(),
        "write 23505 INSERT INTO t VALUES (1)".to_owned(),
        definitions[1].clone(),
    ];
    let mut all = changes.to_vec();
    all.insert(2, "read 2 SELECT id FROM t WHERE id > $1".to_owned());
    for (level, shown) in [
        (AuditLevel::Definitions, &definitions[..]),
        (AuditLevel::Changes, &changes[..]),
        (AuditLevel::All, &all[..]),
    ] {
        let audited = Audited::new(level, ServerOptions::new());
        work(&mut audited.connect());
        let events = audited.events();
        assert_eq!(statements(&events), shown);
        assert_eq!(events[0]["event"], "session began");
        assert_eq!(events.last().unwrap()["event"], "session ended");
        assert!(events.iter().all(|event| event["user"] == "anna"), "{events:?}");
        assert!(events.iter().all(|event| event["address"] == "127.0.0.1"), "{events:?}");
    }
    let audited = Audited::new(AuditLevel::None, ServerOptions::new());
    work(&mut audited.connect());
    assert!(!audited.file().exists());
}

#[test]
fn nested_definitions_are_logged() {
    let audited = Audited::new(AuditLevel::Definitions, ServerOptions::new());
    let mut client = audited.connect();
    client.batch_execute("DO $$BEGIN CREATE TABLE a (x INT); END$$").unwrap();
    let make = "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$BEGIN DROP TABLE a; END$$";
    client.batch_execute(make).unwrap();
    client.batch_execute("SELECT f()").unwrap();
    client.batch_execute("DO $$BEGIN PERFORM 1; END$$; SELECT 1").unwrap();
    drop(client);
    let shown = [
        "ddl 0 DO $$BEGIN CREATE TABLE a (x INT); END$$".to_owned(),
        format!("ddl 0 {make}"),
        "ddl 1 SELECT f()".to_owned(),
    ];
    assert_eq!(statements(&audited.events()), shown);
}

#[test]
fn refusals_are_logged_and_passwords_are_not() {
    let audited = Audited::new(AuditLevel::Definitions, ServerOptions::new().access(with_anna()));
    assert!(connect_as(&audited.server, "anna", "wrong").is_err());
    let mut client = connect_as(&audited.server, "anna", "secret").unwrap();
    client
        .batch_execute("CREATE ROLE visitor LOGIN PASSWORD 'hidden word'; CREATE TABLE t ()")
        .unwrap();
    client.batch_execute("DO $$BEGIN ALTER ROLE visitor PASSWORD 'hidden word'; END$$").unwrap();
    client.batch_execute("SET ROLE visitor").unwrap();
    assert!(client.batch_execute("SELECT * FROM t").is_err());
    assert!(client.batch_execute("ALTER ROLE visitor PASSWORD 'hidden word").is_err());
    drop(client);
    let file = audited.file();
    audited.server.stop();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        !text.contains("hidden") && !text.contains("secret") && !text.contains("SCRAM"),
        "{text}"
    );
    let events = lines(&file);
    assert_eq!(
        (&events[0]["event"], &events[0]["sqlstate"]),
        (&"connection refused".into(), &"28P01".into())
    );
    let denied = events.iter().find(|event| event["sqlstate"] == "42501").unwrap();
    assert_eq!(
        (&denied["statement"], &denied["role"]),
        (&"SELECT * FROM t".into(), &"visitor".into())
    );
    assert!(
        events
            .iter()
            .any(|event| event["class"] == "role" && event["statement"] == "SET ROLE visitor")
    );
}

#[test]
fn prepared_statements_are_logged_with_their_text() {
    let audited = Audited::new(AuditLevel::Changes, ServerOptions::new());
    let mut client = audited.connect();
    client.batch_execute("CREATE TABLE t (id INT)").unwrap();
    client.batch_execute("PREPARE p AS INSERT INTO t VALUES ($1)").unwrap();
    client.batch_execute("PREPARE q AS SELECT id FROM t").unwrap();
    client.batch_execute("EXECUTE p(7); EXECUTE q").unwrap();
    drop(client);
    let events = audited.events();
    assert_eq!(statements(&events)[1..], ["write 1 EXECUTE p(7)"]);
    let executed = events.iter().find(|event| event["statement"] == "EXECUTE p(7)").unwrap();
    assert!(executed["prepared"].as_str().unwrap().contains("INSERT INTO t VALUES ($1)"));
}

#[test]
fn a_renamed_file_is_opened_again() {
    let audited = Audited::new(AuditLevel::Definitions, ServerOptions::new());
    let mut client = audited.connect();
    client.batch_execute("CREATE TABLE one ()").unwrap();
    let old = audited.folder.path().join("old");
    std::fs::rename(audited.file(), &old).unwrap();
    client.batch_execute("CREATE TABLE two ()").unwrap();
    audited.server.reopen_audit_log().unwrap();
    client.batch_execute("CREATE TABLE three ()").unwrap();
    let shown = |file: &Path| statements(&lines(file));
    assert_eq!(shown(&old), ["ddl 0 CREATE TABLE one ()", "ddl 0 CREATE TABLE two ()"]);
    assert_eq!(shown(&audited.file()), ["ddl 0 CREATE TABLE three ()"]);
    // Where the file cannot be opened, the log goes on in the old one.
    std::fs::rename(audited.file(), audited.folder.path().join("third")).unwrap();
    std::fs::create_dir(audited.file()).unwrap();
    assert!(audited.server.reopen_audit_log().is_err());
    client.batch_execute("CREATE TABLE four ()").unwrap();
    assert_eq!(shown(&audited.folder.path().join("third")).len(), 2);
    assert_eq!(
        audited
            .database
            .connect()
            .query("SELECT * FROM four", &[])
            .unwrap()
            .collect()
            .unwrap()
            .len(),
        0
    );
}
