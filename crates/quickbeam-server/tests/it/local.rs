//! One environment for several processes, by the socket in its directory.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use quickbeam::{Environment, Options, SOCKET_FILE};
use quickbeam_server::{Client, Server, ServerOptions, SharedDatabase, open_or_connect};
use quickbeam_sql::{SqlDatabase, Value};

const CLIENT: &str = "QUICKBEAM_TEST_CLIENT";

fn options() -> Options {
    Options::default()
}

#[test]
fn first_opener_serves_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = open_or_connect(directory.path(), options()).unwrap();
    assert!(matches!(first, SharedDatabase::Opened(_)));
    first.execute("CREATE TABLE t (id INT PRIMARY KEY, x TEXT)", &[]).unwrap();
    let mut second = open_or_connect(directory.path(), options()).unwrap();
    assert!(matches!(second, SharedDatabase::Connected(_)));
    let insert = "INSERT INTO t VALUES ($1, $2)";
    assert_eq!(second.execute(insert, &[Value::Integer(1), Value::text("one")]).unwrap(), 1);
    assert_eq!(second.execute(insert, &[Value::Integer(2), Value::Null]).unwrap(), 1);
    let query = "SELECT id, x FROM t ORDER BY id";
    let expected =
        vec![vec![Value::Integer(1), Value::text("one")], vec![Value::Integer(2), Value::Null]];
    assert_eq!(first.query(query, &[]).unwrap(), expected);
    assert_eq!(second.query(query, &[]).unwrap(), expected);
    let error = second.query("SELECT 1 / id FROM t WHERE id < $1", &[Value::text("x")]);
    assert_eq!(error.unwrap_err().code(), "22P02");
    let error = second.execute(insert, &[Value::Integer(1), Value::Null]).unwrap_err();
    assert_eq!((error.code(), error.constraint()), ("23505", Some("t_pkey")));
    assert_eq!((error.schema(), error.table()), (Some("public"), Some("t")));
    // The next process takes over when the first has gone.
    drop(first);
    assert!(second.query(query, &[]).is_err());
    let mut third = open_or_connect(directory.path(), options()).unwrap();
    assert!(matches!(third, SharedDatabase::Opened(_)));
    assert_eq!(third.query(query, &[]).unwrap(), expected);
}

#[test]
fn directory_opened_without_a_server_stays_locked() {
    let directory = tempfile::tempdir().unwrap();
    let _environment = Environment::open(directory.path(), options()).unwrap();
    // A socket of a process that has ended.
    drop(std::os::unix::net::UnixListener::bind(directory.path().join(SOCKET_FILE)).unwrap());
    let error = open_or_connect(directory.path(), options()).unwrap_err();
    assert_eq!(error.code(), "57P03");
    assert!(error.message().contains(&format!("process {}", std::process::id())), "{error}");
}

fn serve(directory: &Path) -> (SqlDatabase, Server) {
    let database = SqlDatabase::open(directory, options()).unwrap();
    let options = ServerOptions::new().environment_directory(directory);
    let server = Server::start(&database, options).unwrap();
    (database, server)
}

#[test]
fn dropped_answer_leaves_the_connection_usable() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, server) = serve(directory.path());
    let mut client = Client::connect(directory.path()).unwrap();
    let mut answer = client.query("SELECT i FROM generate_series(1, 10000) g(i)", &[]).unwrap();
    assert_eq!(answer.next().unwrap().unwrap(), [Value::Integer(1)]);
    drop(answer);
    assert!(client.query("SELECT 1 / 0", &[]).is_err());
    let mut answer = client.query("SELECT 7", &[]).unwrap();
    assert_eq!(answer.next().unwrap().unwrap(), [Value::Integer(7)]);
    assert_eq!(answer.next().unwrap(), None);
    drop(answer);
    server.stop();
    assert_eq!(client.execute("SELECT 1", &[]).unwrap_err().code(), "57P01");
}

#[test]
fn statement_of_another_process_is_cancelled() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, _server) = serve(directory.path());
    let mut client = Client::connect(directory.path()).unwrap();
    let cancel = client.cancel_handle();
    let mut answer =
        client.query("SELECT count(*) OVER () FROM generate_series(1, 2) g(i)", &[]).unwrap();
    while answer.next().unwrap().is_some() {}
    drop(answer);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_done = &is_done;
        scope.spawn(move || {
            while !is_done.load(std::sync::atomic::Ordering::SeqCst) {
                cancel.cancel().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        let long = "SELECT count(*) FROM generate_series(1, 100000) a(i), \
            generate_series(1, 100000) b(i) WHERE a.i % 7 = b.i % 11";
        let error = client.execute(long, &[]).unwrap_err();
        is_done.store(true, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(error.code(), "57014");
    });
}

#[test]
fn control_is_for_the_socket_in_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let database = SqlDatabase::open(directory.path(), options()).unwrap();
    let listen = ServerOptions::new().listen("127.0.0.1:0".parse().unwrap());
    let server = Server::start(&database, listen.environment_directory(directory.path())).unwrap();
    let mut client = Client::connect(directory.path()).unwrap();
    assert!(client.control("statistics", "").unwrap().contains("\"commits\":"));
    assert_eq!(client.control("nothing", "").unwrap_err().code(), "22023");
    assert_eq!(client.control("backup", "relative").unwrap_err().code(), "22023");
    let port = server.address().unwrap().port();
    let other = format!("host=127.0.0.1 port={port} user=test");
    let mut other = postgres::Client::connect(&other, postgres::NoTls).unwrap();
    let refused = other.query_one("SELECT quickbeam_control('statistics', '')", &[]).unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "42501");
}

#[test]
fn socket_in_the_directory_belongs_to_the_server_s_user() {
    let directory = tempfile::tempdir().unwrap();
    let (_database, _server) = serve(directory.path());
    let socket = directory.path().join(SOCKET_FILE);
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Even if everybody may open the socket, another user is not served.
    for path in [directory.path(), &socket] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let outcome = |user: Option<u32>| {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["local::other_user_s_process", "--exact", "--nocapture"]);
        command.env(CLIENT, directory.path());
        user.map(|user| command.uid(user));
        let output = command.output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = text.lines().find_map(|line| line.split_once("the client says: "));
        said.map(|(_, said)| said.to_owned())
    };
    assert_eq!(outcome(None).as_deref(), Some("connected"));
    // Only root can start a process as another user, who must be able to run this program.
    assert!(outcome(Some(65_534)).is_none_or(|said| said == "refused"));
}

/// Not a test by itself: what the process does that the test above starts.
#[test]
fn other_user_s_process() {
    let Some(directory) = std::env::var_os(CLIENT) else { return };
    match Client::connect(Path::new(&directory)) {
        Ok(_) => println!("the client says: connected"),
        Err(_) => println!("the client says: refused"),
    }
}
