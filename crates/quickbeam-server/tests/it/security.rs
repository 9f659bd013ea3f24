//! Who may connect, how connections are encrypted, and what clients cannot do to the server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Raw, anna, code, connect_as, field, message, serve, startup, with_anna};
use postgres::{Client, NoTls};
use quickbeam_server::{Access, AccessRules, Server, ServerOptions, Tls};
use quickbeam_sql::SqlDatabase;

fn refusal(server: &Server, user: &str, password: &str) -> String {
    let error = connect_as(server, user, password).err().unwrap();
    let error = error.as_db_error().unwrap();
    format!("{}: {}", error.code().code(), error.message().replace(user, "USER"))
}

#[test]
fn a_password_admits_its_user_alone() {
    let (_, server) = serve(ServerOptions::new().access(with_anna()));
    let mut client = connect_as(&server, "anna", "secret").unwrap();
    assert_eq!(client.query_one("SELECT 7", &[]).unwrap().get::<_, i32>(0), 7);
    let expected = "28P01: password authentication failed for user \"USER\"";
    for (user, password) in
        [("anna", "Secret"), ("anna", ""), ("bert", "secret"), ("Anna", "secret")]
    {
        assert_eq!(refusal(&server, user, password), expected, "{user} {password}");
    }
}

#[test]
fn an_unknown_user_is_asked_as_a_known_one() {
    let (_, server) = serve(ServerOptions::new().access(with_anna()));
    let salt = |user: &str| {
        let mut raw = Raw::connect(&server);
        raw.send(&startup(0, &[("user", user)]));
        assert_eq!(raw.read().unwrap(), (b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0".to_vec()));
        let first = b"n,,n=,r=abc";
        let length = (first.len() as u32).to_be_bytes();
        raw.send(&message(b'p', &[&b"SCRAM-SHA-256\0"[..], &length, first].concat()));
        let (kind, body) = raw.read().unwrap();
        assert_eq!(kind, b'R');
        let text = String::from_utf8(body[4..].to_vec()).unwrap();
        assert!(text.starts_with("r=abc") && text.ends_with(",i=4096"), "{text}");
        text.split(',').nth(1).unwrap().to_owned()
    };
    assert_eq!(salt("nobody"), salt("nobody"), "a mock salt stays the same");
    assert_ne!(salt("nobody"), salt("somebody"));
    assert_eq!(salt("nobody").len(), salt("anna").len());
}

#[test]
fn access_rules_decide_by_user_and_database() {
    let rules = "host books anna 127.0.0.0/8 scram-sha-256\nhost all bert all reject\n\
                 host all carl 127.0.0.1 trust\nlocal all all peer";
    let access = with_anna().rules(AccessRules::parse(rules).unwrap());
    let (_, server) = serve(ServerOptions::new().access(access));
    assert!(connect_as(&server, "carl", "").is_ok());
    let message = refusal(&server, "bert", "");
    assert_eq!(message, "28000: an access rule rejects user \"USER\" from this host");
    let message = refusal(&server, "anna", "secret");
    assert!(message.starts_with("28000: no access rule for host \"127.0.0.1\""), "{message}");
    let port = server.address().unwrap().port();
    let text = format!("host=127.0.0.1 port={port} user=anna password=secret dbname=books");
    assert!(Client::connect(&text, NoTls).is_ok());
}

#[test]
fn a_peer_is_the_user_of_the_operating_system() {
    let folder = tempfile::tempdir().unwrap();
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
    let access = Access::default().rules(AccessRules::parse("local all all peer").unwrap());
    let options = ServerOptions::new().socket_directory(folder.path()).access(access);
    let _server = Server::start(&database, options).unwrap();
    let connect = |user: &str| {
        let host = folder.path().display();
        Client::connect(&format!("host={host} port=5432 user={user}"), NoTls)
    };
    let output = Command::new("id").arg("-un").output().unwrap();
    assert!(connect(String::from_utf8(output.stdout).unwrap().trim()).is_ok());
    let error = connect("someone_else").err().unwrap();
    assert_eq!(error.code().unwrap().code(), "28000");
}

#[test]
fn access_changes_for_new_connections() {
    let (_, server) = serve(ServerOptions::new());
    let mut early = connect_as(&server, "bert", "").unwrap();
    server.set_access(with_anna()).unwrap();
    assert!(refusal(&server, "bert", "x").starts_with("28P01"));
    assert!(connect_as(&server, "anna", "secret").is_ok());
    assert_eq!(early.query_one("SELECT 1", &[]).unwrap().get::<_, i32>(0), 1);
}

#[test]
fn a_server_for_other_machines_needs_users_or_rules() {
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
    let start = |access: Access| {
        let options = ServerOptions::new().listen("0.0.0.0:0".parse().unwrap()).access(access);
        Server::start(&database, options)
    };
    assert!(start(Access::default()).is_err());
    let rules = |text| AccessRules::parse(text).unwrap();
    assert!(start(with_anna().rules(rules("host all all 127.0.0.1 scram-sha-256"))).is_err());
    let server = start(with_anna()).unwrap();
    assert!(server.set_access(Access::default()).is_err());
    assert!(refusal(&server, "anna", "wrong").starts_with("28P01"));
    server.stop();
}

/// An authority, with a certificate for the server and one for the client anna.
struct Certificates {
    folder: tempfile::TempDir,
    tls: Tls,
    authority: Vec<u8>,
}

fn certificates() -> Certificates {
    let folder = tempfile::tempdir().unwrap();
    let authority_key = rcgen::KeyPair::generate().unwrap();
    let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority_certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    let signed = |names: &[&str], common_name: &str| {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut parameters = rcgen::CertificateParams::new(names).unwrap();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, common_name);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let (certificate, key) = signed(&["127.0.0.1", "localhost"], "server");
    let (client, client_key) = signed(&[], "anna");
    let write = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    write("ca.pem", &authority_certificate.pem());
    write("client.pem", &client);
    write("client.key", &client_key);
    let pem = authority_certificate.pem();
    let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes(), Some(pem.as_bytes())).unwrap();
    Certificates { folder, tls, authority: authority_certificate.der().to_vec() }
}

/// Runs psql; `None` if it is not installed.
fn psql(server: &Server, folder: &Path, settings: &str) -> Option<Result<String, String>> {
    if Command::new("psql").arg("--version").output().is_err() {
        println!("psql is not installed");
        return None;
    }
    let port = server.address().unwrap().port();
    let folder = folder.display();
    let target = format!(
        "host=127.0.0.1 port={port} dbname=books sslrootcert={folder}/ca.pem {}",
        settings.replace("FOLDER", &folder.to_string())
    );
    let output =
        Command::new("psql").args(["-X", "-A", "-t", &target, "-c", "SELECT 7"]).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    Some(match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    })
}

#[test]
fn psql_connects_by_tls_with_channel_binding_and_certificates() {
    let Certificates { folder, tls, .. } = certificates();
    let rules = "hostnossl all all all reject\nhostssl all bert all cert\n\
                 hostssl books all all scram-sha-256";
    let users = anna();
    let access = Access::default().users(users).tls(tls).rules(AccessRules::parse(rules).unwrap());
    let (_, server) = serve(ServerOptions::new().access(access.clone()));
    let password = "user=anna password=secret sslmode=verify-full";
    let Some(found) = psql(&server, folder.path(), password) else { return };
    assert_eq!(found.as_deref(), Ok("7"));
    let bound = format!("{password} channel_binding=require");
    assert_eq!(psql(&server, folder.path(), &bound).unwrap().as_deref(), Ok("7"));
    let wrong = "user=anna password=wrong sslmode=require";
    let error = psql(&server, folder.path(), wrong).unwrap().unwrap_err();
    assert!(error.contains("password authentication failed"), "{error}");
    let clear = "user=anna password=secret sslmode=disable";
    let error = psql(&server, folder.path(), clear).unwrap().unwrap_err();
    assert!(error.contains("an access rule rejects"), "{error}");

    let certificate = "sslmode=verify-full sslcert=FOLDER/client.pem sslkey=FOLDER/client.key";
    let error = psql(&server, folder.path(), &format!("user=bert {certificate}")).unwrap();
    let error = error.unwrap_err();
    assert!(error.contains("certificate authentication failed"), "{error}");
    let rules = AccessRules::parse("hostssl all all all cert").unwrap();
    server.set_access(access.rules(rules)).unwrap();
    let found = psql(&server, folder.path(), &format!("user=anna {certificate}")).unwrap();
    assert_eq!(found.as_deref(), Ok("7"));
    let error = psql(&server, folder.path(), "user=anna sslmode=require sslcert=/none").unwrap();
    assert!(error.unwrap_err().contains("certificate authentication failed"));
}

/// Connects by TLS from the first byte.
fn direct_tls(
    server: &Server,
    authority: &[u8],
    protocol: Option<&[u8]>,
) -> Raw<rustls::StreamOwned<rustls::ClientConnection, TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.to_vec().into()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocol.into_iter().map(<[u8]>::to_vec).collect();
    let name = "127.0.0.1".try_into().unwrap();
    let client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(server.address().unwrap()).unwrap();
    Raw(rustls::StreamOwned::new(client, socket))
}

#[test]
fn direct_tls_needs_the_name_of_the_protocol() {
    let Certificates { tls, authority, .. } = certificates();
    let (_, server) = serve(ServerOptions::new().access(Access::default().tls(tls)));
    let mut raw = direct_tls(&server, &authority, Some(b"postgresql"));
    raw.send(&startup(0, &[("user", "anna")]));
    raw.until(b'Z');
    let answer = raw.query("SELECT 'encrypted'");
    assert!(answer.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(b"encrypted")));
    for protocol in [None, Some(&b"http/1.1"[..])] {
        let mut raw = direct_tls(&server, &authority, protocol);
        // The handshake fails, or the server closes after it.
        let _ = raw.0.write_all(&startup(0, &[("user", "anna")]));
        assert_eq!(raw.read(), None);
    }
}

#[test]
fn data_in_clear_is_not_taken_into_the_encrypted_connection() {
    let Certificates { tls, .. } = certificates();
    let (_, server) = serve(ServerOptions::new().access(Access::default().tls(tls)));
    let mut raw = Raw::connect(&server);
    let request = b"\0\0\0\x08\x04\xd2\x16\x2f";
    raw.send(&[&request[..], &startup(0, &[("user", "anna")])].concat());
    let mut answer = Vec::new();
    // A reset of the connection is an answer as well.
    let _ = raw.0.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer == b"S", "{answer:?}");
}

#[test]
fn encryption_is_refused_without_a_certificate() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::connect(&server);
    for request in [b"\0\0\0\x08\x04\xd2\x16\x30", b"\0\0\0\x08\x04\xd2\x16\x2f"] {
        raw.send(request);
        let mut answer = [0];
        raw.0.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"N");
    }
    raw.send(&startup(0, &[("user", "anna")]));
    raw.until(b'Z');
}

#[test]
fn slow_client_is_disconnected_before_it_is_authenticated() {
    let options = ServerOptions::new().access(with_anna());
    let (_, server) = serve(options.authentication_timeout(Duration::from_millis(200)));
    for known in [&b""[..], &startup(0, &[("user", "anna")])] {
        let mut raw = Raw::connect(&server);
        raw.send(known);
        let mut writer = raw.0.try_clone().unwrap();
        // A byte now and then does not help: the loop ends as the connection does.
        let dawdler = std::thread::spawn(move || {
            while writer.write_all(b"\0").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let _ = raw.0.read_to_end(&mut Vec::new());
        drop(raw);
        dawdler.join().unwrap();
    }
}

#[test]
fn an_idle_session_ends_as_its_settings_say() {
    let (database, server) = serve(ServerOptions::new());
    let mut raw = Raw::open(&server, "anna");
    raw.query("SET idle_session_timeout = '50ms'");
    let (kind, body) = raw.read().unwrap();
    assert_eq!((kind, code(&body).as_str(), field(&body, b'S').as_str()), (b'E', "57P05", "FATAL"));
    assert_eq!(raw.read(), None);

    let mut raw = Raw::open(&server, "anna");
    raw.query("CREATE TABLE t (id INT PRIMARY KEY)");
    raw.query("SET idle_in_transaction_session_timeout = '50ms'");
    raw.query("BEGIN; INSERT INTO t VALUES (1)");
    let (kind, body) = raw.read().unwrap();
    assert_eq!((kind, code(&body).as_str()), (b'E', "25P03"));
    assert_eq!(raw.read(), None);
    // What it held is free.
    database.connect().execute("INSERT INTO t VALUES (1)", &[]).unwrap();
}

#[test]
fn message_beyond_the_limit_ends_the_session_unread() {
    let (_, server) = serve(ServerOptions::new().max_message_bytes(1000));
    let mut raw = Raw::open(&server, "anna");
    assert_eq!(raw.query(&format!("SELECT '{}'", "x".repeat(900))).len(), 4);
    raw.send(b"Q\0\0\x10\0");
    let (kind, body) = raw.read().unwrap();
    assert_eq!((kind, code(&body).as_str()), (b'E', "08P01"));
    assert_eq!(raw.read(), None);
    // Before authentication the limit is lower.
    let mut raw = Raw::connect(&server);
    raw.send(b"\0\x01\0\0");
    assert_eq!(raw.read(), None);
}

#[test]
fn a_user_has_a_number_of_sessions_of_its_own() {
    let (_, server) = serve(ServerOptions::new().max_connections_per_user(2));
    let clients: Vec<Client> = (0..2).map(|_| connect_as(&server, "anna", "").unwrap()).collect();
    assert_eq!(refusal(&server, "anna", ""), "53300: too many connections for role \"USER\"");
    assert!(connect_as(&server, "bert", "").is_ok());
    drop(clients);
}

#[test]
fn connections_beyond_all_limits_are_turned_away() {
    let (_, server) = serve(ServerOptions::new().max_connections(1));
    // None of them says anything, so that each keeps its thread.
    let silent: Vec<Raw> = (0..10).map(|_| Raw::connect(&server)).collect();
    let mut raw = Raw::connect(&server);
    let (kind, body) = raw.read().unwrap();
    assert_eq!((kind, code(&body).as_str()), (b'E', "53300"));
    drop(silent);
}

#[test]
fn newer_protocols_are_negotiated() {
    let (_, server) = serve(ServerOptions::new());
    let open = |minor: u8, settings: &[(&str, &str)]| {
        let mut raw = Raw::connect(&server);
        raw.send(&startup(minor, settings));
        raw.until(b'Z')
    };
    let key_bytes = |messages: &[(u8, Vec<u8>)]| {
        messages.iter().find(|(kind, _)| *kind == b'K').unwrap().1.len() - 4
    };
    let user = ("user", "anna");
    let messages = open(0, &[user]);
    assert_eq!((messages[0].0, key_bytes(&messages)), (b'R', 4));
    let messages = open(2, &[user]);
    assert_eq!((messages[0].0, key_bytes(&messages)), (b'R', 32));
    let messages = open(9, &[user, ("_pq_.odd", "1")]);
    assert_eq!(messages[0], (b'v', b"\0\x03\0\x02\0\0\0\x01_pq_.odd\0".to_vec()));
    assert_eq!(key_bytes(&messages), 32);
    let messages = open(0, &[user, ("_pq_.odd", "1")]);
    assert_eq!(messages[0], (b'v', b"\0\x03\0\0\0\0\0\x01_pq_.odd\0".to_vec()));
}

#[test]
fn settings_of_the_start_hold_and_changes_are_reported() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::connect(&server);
    let options = "-c work_mem=3MB --application-name=two\\ words";
    raw.send(&startup(0, &[("user", "anna"), ("options", options), ("TimeZone", "UTC")]));
    let status = |messages: &[(u8, Vec<u8>)], name: &str| {
        let bodies = messages.iter().filter(|(kind, _)| *kind == b'S').map(|(_, body)| body);
        let texts = bodies.map(|body| String::from_utf8_lossy(body).into_owned());
        let mut found = texts.filter_map(|text| {
            let mut parts = text.split('\0');
            (parts.next() == Some(name)).then(|| parts.next().unwrap_or_default().to_owned())
        });
        found.next_back()
    };
    let messages = raw.until(b'Z');
    assert_eq!(status(&messages, "application_name").as_deref(), Some("two words"));
    assert_eq!(status(&messages, "session_authorization").as_deref(), Some("anna"));
    assert!(status(&messages, "server_version").unwrap().starts_with("15"));
    let messages = raw.query("SET application_name = 'other'; SELECT 1");
    assert_eq!(status(&messages, "application_name").as_deref(), Some("other"));
    let messages = raw.query("SET TimeZone = 'europe/berlin'; SELECT timestamptz 'epoch'");
    assert_eq!(status(&messages, "TimeZone").as_deref(), Some("Europe/Berlin"));
    let row = messages.iter().find(|(kind, _)| *kind == b'D').map(|(_, body)| &body[6..]);
    assert_eq!(row, Some(&b"1970-01-01 01:00:00+01"[..]));
    let messages =
        raw.query("SET DateStyle = german; SET IntervalStyle = iso_8601; RESET TimeZone");
    assert_eq!(status(&messages, "DateStyle").as_deref(), Some("German, DMY"));
    assert_eq!(status(&messages, "IntervalStyle").as_deref(), Some("iso_8601"));
    assert_eq!(status(&messages, "TimeZone").as_deref(), Some("UTC"));
    let messages = raw.query("BEGIN; SET application_name = 'inner'");
    assert_eq!(status(&messages, "application_name").as_deref(), Some("inner"));
    let messages = raw.query("ROLLBACK");
    assert_eq!(status(&messages, "application_name").as_deref(), Some("other"));
    assert_eq!(status(&raw.query("SELECT 1"), "application_name"), None);
    let shown = raw.query("SHOW work_mem");
    assert!(shown.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(b"3MB")));

    let mut raw = Raw::connect(&server);
    raw.send(&startup(0, &[("user", "anna"), ("no_such_setting", "1")]));
    let (_, body) = raw.until(b'E').pop().unwrap();
    assert_eq!(code(&body), "42704");
}

#[test]
fn the_number_of_a_session_is_that_of_its_process() {
    let (_, server) = serve(ServerOptions::new());
    let mut raw = Raw::connect(&server);
    raw.send(&startup(0, &[("user", "anna")]));
    let messages = raw.until(b'Z');
    let key = &messages.iter().find(|(kind, _)| *kind == b'K').unwrap().1;
    let number = u32::from_be_bytes(key[..4].try_into().unwrap()).to_string();
    let answer = raw.query("SELECT pg_backend_pid()");
    assert!(answer.iter().any(|(kind, body)| *kind == b'D' && body.ends_with(number.as_bytes())));
}
