//! Roles of the database as users of the server.

use crate::common::{Raw, code, connect_as, field, message, serve, startup};
use postgres::{Client, NoTls};
use quickbeam_server::{Access, AccessRules, Server, ServerOptions};

fn refusal(server: &Server, user: &str, password: &str) -> String {
    let error = connect_as(server, user, password).err().unwrap();
    let error = error.as_db_error().unwrap();
    format!("{}: {}", error.code().code(), error.message())
}

fn with_passwords() -> ServerOptions {
    let rules = AccessRules::parse("host all all 127.0.0.1 scram-sha-256").unwrap();
    ServerOptions::new().access(Access::default().rules(rules))
}

#[test]
fn a_role_logs_in_with_its_stored_password() {
    let (database, server) = serve(with_passwords());
    let owner = database.connect();
    for text in [
        "CREATE TABLE t (id INT)",
        "CREATE USER anna PASSWORD 'secret' CONNECTION LIMIT 1",
        "CREATE ROLE berta PASSWORD 'secret'",
        "CREATE USER carla PASSWORD 'secret' VALID UNTIL '2020-01-01'",
        "CREATE USER dora",
    ] {
        owner.execute(text, &[]).unwrap();
    }
    let wrong = |user: &str| format!("28P01: password authentication failed for user \"{user}\"");
    assert_eq!(refusal(&server, "anna", "Secret"), wrong("anna"));
    assert_eq!(refusal(&server, "carla", "secret"), wrong("carla"));
    assert_eq!(refusal(&server, "dora", "secret"), wrong("dora"));
    let message = refusal(&server, "berta", "secret");
    assert_eq!(message, "28000: role \"berta\" is not permitted to log in");
    let mut anna = connect_as(&server, "anna", "secret").unwrap();
    assert_eq!(anna.query_one("SELECT current_user", &[]).unwrap().get::<_, &str>(0), "anna");
    let error = anna.simple_query("SELECT * FROM t").unwrap_err();
    assert_eq!(error.code().unwrap().code(), "42501");
    assert_eq!(refusal(&server, "anna", "secret"), "53300: too many connections for role \"anna\"");
    drop(anna);
    owner.execute("REVOKE CONNECT ON DATABASE quickbeam FROM PUBLIC", &[]).unwrap();
    let message = refusal(&server, "anna", "secret");
    assert_eq!(message, "42501: permission denied for database \"quickbeam\"");
}

#[test]
fn a_client_hears_of_its_role() {
    let (database, server) = serve(ServerOptions::new());
    database.connect().execute("CREATE USER anna", &[]).unwrap();
    let reported = |raw: &mut Raw, name: &str, until| -> String {
        let found = raw.until(until).into_iter().rev().find_map(|(kind, body)| {
            let mut parts = body.split(|byte| *byte == 0).map(|it| it.to_vec());
            (kind == b'S' && parts.next()? == name.as_bytes()).then(|| parts.next())?
        });
        String::from_utf8(found.unwrap_or_default()).unwrap()
    };
    for (user, is_superuser) in [("anna", "off"), ("anyone", "on")] {
        let mut raw = Raw::connect(&server);
        raw.send(&startup(0, &[("user", user)]));
        assert_eq!(reported(&mut raw, "is_superuser", b'Z'), is_superuser, "{user}");
    }
    let mut raw = Raw::open(&server, "anyone");
    raw.send(&message(b'Q', b"SET ROLE anna\0"));
    assert_eq!(reported(&mut raw, "is_superuser", b'Z'), "off");
    let answer = raw.query("CREATE TABLE t (id INT)");
    assert_eq!(code(&answer[0].1), "42501");
    assert_eq!(field(&answer[0].1, b'M'), "permission denied for schema public");
}

#[test]
fn statements_are_shown_to_their_role_without_passwords() {
    let (database, server) = serve(ServerOptions::new());
    database.connect().execute("CREATE USER anna", &[]).unwrap();
    let mut first = Raw::open(&server, "owner");
    first.query("CREATE USER berta PASSWORD 'geheim'");
    let mut watcher = connect_as(&server, "owner", "").unwrap();
    let text = "SELECT query FROM pg_stat_activity WHERE query LIKE 'CREATE USER%'";
    let shown: String = watcher.query_one(text, &[]).unwrap().get(0);
    assert_eq!(shown, "CREATE USER berta PASSWORD '***'");
    let mut anna = connect_as(&server, "anna", "").unwrap();
    let text = "SELECT count(*) FROM pg_stat_activity WHERE query = '<insufficient privilege>'";
    assert_eq!(anna.query_one(text, &[]).unwrap().get::<_, i64>(0), 2);
}

#[test]
fn session_begins_with_the_settings_of_its_user() {
    let (database, server) = serve(ServerOptions::new());
    let owner = database.connect();
    for text in [
        "CREATE USER anna",
        "ALTER ROLE anna SET default_transaction_isolation = 'serializable'",
        "ALTER ROLE anna SET application_name = 'of anna'",
        "ALTER DATABASE quickbeam SET application_name = 'of all'",
        "ALTER DATABASE quickbeam SET work_mem = '7MB'",
    ] {
        owner.execute(text, &[]).unwrap();
    }
    let shown = |config: &str, name: &str| -> String {
        let address = server.address().unwrap();
        let config = format!("host=127.0.0.1 port={} {config}", address.port());
        let mut client = Client::connect(&config, NoTls).unwrap();
        client.query_one(&format!("SHOW {name}"), &[]).unwrap().get(0)
    };
    assert_eq!(shown("user=anna", "application_name"), "of anna");
    assert_eq!(shown("user=anna application_name=own", "application_name"), "own");
    assert_eq!(shown("user=anna", "default_transaction_isolation"), "serializable");
    assert_eq!(shown("user=anyone", "default_transaction_isolation"), "read committed");
    for user in ["anna", "anyone"] {
        assert_eq!(shown(&format!("user={user}"), "work_mem"), "7MB");
    }
    assert_eq!(shown("user=anyone", "application_name"), "of all");
}
