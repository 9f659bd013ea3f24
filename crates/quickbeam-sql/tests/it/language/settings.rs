//! Settings, named statements, cursors and advisory locks of a session.

use quickbeam_sql::{Connection, SqlDatabase};

fn database() -> SqlDatabase {
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
    let connection = database.connect();
    connection.execute_script("CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT)").unwrap();
    connection
        .execute_script("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
        .unwrap();
    database
}

/// Returns the rows of a statement, their values with commas between them.
fn rows(connection: &Connection, text: &str) -> Vec<String> {
    let rows = connection.query(text, &[]).unwrap().collect().unwrap();
    let line = |row: &Vec<_>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    rows.iter().map(line).collect()
}

fn one(connection: &Connection, text: &str) -> String {
    rows(connection, text).remove(0)
}

fn code(connection: &Connection, text: &str) -> String {
    let result = connection.query(text, &[]).and_then(|rows| rows.collect().map(|_| ()));
    result.unwrap_err().code().to_owned()
}

fn run(connection: &Connection, text: &str) {
    connection.execute_script(text).unwrap();
}

#[test]
fn setting_lasts_for_the_session_unless_rolled_back() {
    let connection = database().connect();
    run(&connection, "SET application_name = 'One'; SET work_mem = '8MB'");
    assert_eq!(one(&connection, "SHOW application_name"), "One");
    assert_eq!(one(&connection, "SHOW work_mem"), "8MB");
    run(&connection, "BEGIN; SET application_name = 'Two'; SET work_mem = '9MB'; ROLLBACK");
    assert_eq!(one(&connection, "SHOW application_name"), "One");
    assert_eq!(one(&connection, "SHOW work_mem"), "8MB");
    run(&connection, "BEGIN; SET application_name = 'Two'; SET work_mem = '9MB'; COMMIT");
    assert_eq!(one(&connection, "SHOW application_name"), "Two");
    assert_eq!(one(&connection, "SHOW work_mem"), "9MB");
    run(&connection, "BEGIN; SET LOCAL application_name = 'Three'");
    assert_eq!(one(&connection, "SHOW application_name"), "Three");
    assert_eq!(one(&connection, "SELECT set_config('application_name', 'Four', true)"), "Four");
    run(&connection, "COMMIT");
    assert_eq!(one(&connection, "SELECT current_setting('application_name')"), "Two");
    run(&connection, "RESET application_name; RESET work_mem");
    assert_eq!(one(&connection, "SHOW application_name"), "");
    assert_eq!(one(&connection, "SHOW work_mem"), "256MB");
    run(&connection, "SET search_path TO \"$user\", public, 'My Schema'");
    assert_eq!(one(&connection, "SHOW search_path"), "\"$user\", public, \"My Schema\"");
    run(&connection, "SET my.tenant = 'Seven'");
    assert_eq!(one(&connection, "SELECT current_setting('my.tenant')"), "Seven");
    run(&connection, "DISCARD ALL");
    assert_eq!(code(&connection, "SHOW my.tenant"), "42704");
    assert_eq!(one(&connection, "SHOW search_path"), "\"$user\", public");
}

#[test]
fn rolling_back_to_a_savepoint_undoes_settings() {
    let connection = database().connect();
    let shown =
        || ["application_name", "work_mem"].map(|name| one(&connection, &format!("SHOW {name}")));
    run(&connection, "SET application_name = 'before'; SET work_mem = '8MB'");
    run(&connection, "BEGIN; SAVEPOINT a; SET application_name = 'a'; SAVEPOINT b");
    run(&connection, "SET LOCAL application_name = 'b'; SET work_mem = '9MB'");
    assert_eq!(shown(), ["b", "9MB"]);
    run(&connection, "ROLLBACK TO b");
    assert_eq!(shown(), ["a", "8MB"]);
    run(&connection, "SET work_mem = '10MB'; COMMIT");
    assert_eq!(shown(), ["a", "10MB"]);
    run(&connection, "BEGIN; SAVEPOINT a; SET application_name = 'c'; RESET work_mem");
    run(&connection, "ROLLBACK TO a; COMMIT");
    assert_eq!(shown(), ["a", "10MB"]);
    run(
        &connection,
        "BEGIN; SET LOCAL work_mem = '11MB'; SAVEPOINT a; SET LOCAL work_mem = '12MB'",
    );
    run(&connection, "ROLLBACK TO a");
    assert_eq!(shown(), ["a", "11MB"]);
    run(&connection, "COMMIT");
    assert_eq!(shown(), ["a", "10MB"]);
}

#[test]
fn the_settings_of_transactions_are_shown() {
    let connection = database().connect();
    assert_eq!(one(&connection, "SHOW transaction_isolation"), "serializable");
    run(&connection, "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED");
    assert_eq!(one(&connection, "SHOW TRANSACTION ISOLATION LEVEL"), "read committed");
    run(&connection, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    assert_eq!(one(&connection, "SHOW transaction_isolation"), "repeatable read");
    assert_eq!(one(&connection, "SHOW default_transaction_isolation"), "read committed");
    assert_eq!(one(&connection, "SHOW transaction_read_only"), "on");
    // SHOW is no statement of the transaction: its settings can still change.
    run(&connection, "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE; COMMIT");
    assert_eq!(one(&connection, "SHOW lock_timeout"), "10s");
    run(&connection, "SET lock_timeout = '90s'");
    assert_eq!(one(&connection, "SHOW lock_timeout"), "90s");
    let all = rows(&connection, "SHOW ALL");
    assert!(all.iter().any(|row| row.starts_with("lock_timeout,90s,")), "{all:?}");
    let show = connection.prepare("SHOW datestyle").unwrap();
    assert_eq!(show.columns()[0].name, "DateStyle");
}

#[test]
fn a_statement_that_exceeds_its_timeout_is_canceled() {
    let connection = database().connect();
    run(&connection, "SET statement_timeout = 1");
    let endless = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b";
    assert_eq!(code(&connection, endless), "57014");
    run(&connection, "SET statement_timeout = 0");
    assert_eq!(one(&connection, "SELECT count(*) FROM t"), "4");
}

#[test]
fn named_statements_are_executed_until_they_are_deallocated() {
    let connection = database().connect();
    run(&connection, "PREPARE p (int) AS SELECT s, $1 + 1 FROM t WHERE id = $1");
    assert_eq!(rows(&connection, "EXECUTE p(2)"), ["b,3"]);
    assert_eq!(rows(&connection, "EXECUTE p(1 + 2)"), ["c,4"]);
    assert_eq!(rows(&connection, "EXECUTE p('1')"), ["a,2"]);
    assert_eq!(code(&connection, "EXECUTE p"), "42601");
    assert_eq!(code(&connection, "PREPARE p AS SELECT 1"), "42P05");
    run(&connection, "PREPARE i AS INSERT INTO t VALUES ($1, $2)");
    assert_eq!(connection.execute("EXECUTE i(5, 'e;f')", &[]).unwrap(), 1);
    assert_eq!(rows(&connection, "EXECUTE p(5)"), ["e;f,6"]);
    // Rows of one execution are read while another runs.
    let mut first = connection.query("EXECUTE p(1)", &[]).unwrap();
    assert_eq!(rows(&connection, "EXECUTE p(2)"), ["b,3"]);
    assert_eq!(first.next().unwrap().unwrap().get::<&str>(0).unwrap(), "a");
    drop(first);
    run(&connection, "ALTER TABLE t ADD COLUMN n INTEGER DEFAULT 9");
    assert_eq!(rows(&connection, "EXECUTE p(1)"), ["a,2"]);
    run(&connection, "DEALLOCATE p");
    assert_eq!(code(&connection, "EXECUTE p(1)"), "26000");
    assert_eq!(code(&connection, "DEALLOCATE p"), "26000");
    let error = connection.execute("PREPARE q AS SELECT nosuch FROM t", &[]).unwrap_err();
    assert_eq!((error.code(), error.position()), ("42703", Some(20)));
}

#[test]
fn a_cursor_moves_over_the_rows_of_its_query() {
    let connection = database().connect();
    assert_eq!(code(&connection, "DECLARE c CURSOR FOR SELECT 1"), "25P01");
    run(&connection, "BEGIN; DECLARE c SCROLL CURSOR FOR SELECT id FROM t ORDER BY id");
    assert_eq!(code(&connection, "DECLARE c CURSOR FOR SELECT 1"), "42P03");
    run(&connection, "DELETE FROM t WHERE id = 3");
    assert_eq!(rows(&connection, "FETCH 2 FROM c"), ["1", "2"]);
    assert_eq!(rows(&connection, "FETCH c"), ["3"]);
    assert_eq!(connection.execute("MOVE BACKWARD ALL IN c", &[]).unwrap(), 2);
    assert_eq!(rows(&connection, "FETCH ALL FROM c"), ["1", "2", "3", "4"]);
    assert_eq!(rows(&connection, "FETCH ABSOLUTE -2 FROM c"), ["3"]);
    run(&connection, "DECLARE h CURSOR WITH HOLD FOR SELECT id FROM t ORDER BY id; COMMIT");
    assert_eq!(code(&connection, "FETCH c"), "34000");
    assert_eq!(rows(&connection, "FETCH FORWARD ALL FROM h"), ["1", "2", "4"]);
    run(&connection, "CLOSE h");
    assert_eq!(code(&connection, "FETCH h"), "34000");
    run(&connection, "SET work_mem = '1kB'");
    let large = "DECLARE h CURSOR WITH HOLD FOR SELECT g FROM generate_series(1, 1000) g";
    assert_eq!(code(&connection, large), "53200");
}

#[test]
fn advisory_lock_excludes_other_sessions_until_released() {
    let database = database();
    let (first, second) = (database.connect(), database.connect());
    let taken = |connection: &Connection, text: &str| one(connection, text) == "t";
    assert!(taken(&first, "SELECT pg_try_advisory_lock(1)"));
    assert!(!taken(&second, "SELECT pg_try_advisory_lock(1)"));
    assert!(!taken(&second, "SELECT pg_advisory_unlock(1)"));
    assert!(taken(&first, "SELECT pg_advisory_unlock(1)"));
    assert!(taken(&second, "SELECT pg_try_advisory_lock(1)"));
    // A lock of a transaction ends with it.
    run(&first, "BEGIN; SELECT pg_advisory_xact_lock(2, 3)");
    assert!(!taken(&second, "SELECT pg_try_advisory_xact_lock(2, 3)"));
    run(&first, "COMMIT");
    assert!(taken(&second, "SELECT pg_try_advisory_xact_lock(2, 3)"));
    assert!(taken(&first, "SELECT pg_try_advisory_lock(2, 3)"));
    // A wait ends when the holder's connection does, or at the statement's timeout.
    run(&first, "SET statement_timeout = 20");
    assert_eq!(code(&first, "SELECT pg_advisory_lock(1)"), "57014");
    drop(second);
    run(&first, "SET statement_timeout = 0; SELECT pg_advisory_lock(1)");
}

#[test]
fn commands_check_their_transaction() {
    let connection = database().connect();
    assert_eq!(code(&connection, "LOCK TABLE t"), "25P01");
    run(&connection, "BEGIN; LOCK TABLE public.t IN ROW EXCLUSIVE MODE");
    assert_eq!(code(&connection, "LOCK TABLE t IN SOME MODE"), "42601");
    assert_eq!(code(&connection, "VACUUM"), "25001");
    assert_eq!(code(&connection, "DISCARD ALL"), "25001");
    run(&connection, "ROLLBACK");
    run(&connection, "GRANT SELECT ON t TO PUBLIC; REVOKE ALL ON t FROM PUBLIC");
}

#[test]
fn notifications_beyond_the_mailbox_fail_the_commit() {
    let database = database();
    let (listener, sender) = (database.connect(), database.connect());
    run(&listener, "LISTEN news");
    let payload = "x".repeat(7_990);
    let notify = |n: u32| sender.execute(&format!("NOTIFY news, '{n}{payload}'"), &[]);
    let sent = (0..9_999).take_while(|n| notify(*n).is_ok()).count();
    assert!((8_000..9_000).contains(&sent), "64 MiB of some 8 KB are {sent}");
    assert_eq!(notify(0).unwrap_err().code(), "54000");
    assert_eq!(listener.take_notifications().len(), sent);
    assert_eq!(notify(0).unwrap(), 0);
    assert_eq!(listener.take_notifications().len(), 1);
}

#[test]
fn session_begins_with_the_settings_of_its_role() {
    let database = database();
    let owner = database.connect();
    for text in [
        "CREATE ROLE anna",
        "ALTER ROLE ALL SET application_name = 'all'",
        "ALTER ROLE ALL SET work_mem = '5MB'",
        "ALTER ROLE ALL SET statement_timeout = '50s'",
        "ALTER ROLE ALL SET lock_timeout = '9s'",
        "ALTER DATABASE quickbeam SET work_mem = '6MB'",
        "ALTER DATABASE quickbeam SET statement_timeout = '60s'",
        "ALTER DATABASE quickbeam SET lock_timeout = '8s'",
        "ALTER ROLE anna SET statement_timeout = '70s'",
        "ALTER ROLE anna SET lock_timeout = '7s'",
        "ALTER ROLE anna SET search_path = private, public",
        "ALTER ROLE anna SET default_transaction_isolation = 'read committed'",
        "ALTER ROLE anna IN DATABASE quickbeam SET lock_timeout = '6s'",
    ] {
        run(&owner, text);
    }
    let names = [
        "application_name",
        "work_mem",
        "statement_timeout",
        "lock_timeout",
        "search_path",
        "transaction_isolation",
    ];
    let shown = |connection: &Connection| {
        let show = |name: &str| connection.setting(name).unwrap().unwrap();
        names.iter().map(|name| show(name)).collect::<Vec<_>>()
    };
    let anna = database.connect_as("anna").unwrap();
    let first = ["all", "6MB", "70s", "6s", "private, public", "read committed"];
    assert_eq!(shown(&anna), first);
    for name in &names[..5] {
        run(&anna, &format!("SET {name} TO '2s'").replace("work_mem TO '2s'", "work_mem TO '9MB'"));
    }
    assert_eq!(shown(&anna)[..4], ["2s", "9MB", "2s", "2s"]);
    // RESET and DISCARD go back to what the session began with.
    run(&anna, "RESET lock_timeout");
    run(&anna, "RESET work_mem");
    assert_eq!(shown(&anna)[..4], ["2s", "6MB", "2s", "6s"]);
    run(&anna, "SET default_transaction_isolation = 'serializable'");
    run(&anna, "RESET ALL");
    assert_eq!(shown(&anna), first);
    // Sessions that have begun keep their settings, and a program's own connections have none.
    run(&owner, "ALTER ROLE anna RESET ALL");
    run(&owner, "ALTER DATABASE quickbeam RESET lock_timeout");
    assert_eq!(shown(&anna), first);
    let later = database.connect_as("anna").unwrap();
    let path = "\"$user\", public";
    assert_eq!(shown(&later), ["all", "6MB", "1min", "6s", path, "serializable"]);
    assert_eq!(one(&owner, "SHOW work_mem"), "256MB");
    let of_database =
        "SELECT setconfig FROM pg_db_role_setting WHERE setrole = 0 AND setdatabase = 5";
    assert_eq!(one(&owner, of_database), "{work_mem=6MB,statement_timeout=60s}");
    run(&owner, "DROP ROLE anna");
    assert_eq!(one(&owner, "SELECT count(*) FROM pg_db_role_setting WHERE setrole <> 0"), "0");
}

#[test]
fn stored_setting_that_fails_leaves_a_warning() {
    let database = database();
    let owner = database.connect();
    for text in [
        "CREATE ROLE anna",
        "CREATE ROLE berta",
        "GRANT berta TO anna",
        "ALTER ROLE anna SET role = 'berta'",
        "ALTER ROLE anna SET work_mem = '7MB'",
    ] {
        run(&owner, text);
    }
    let anna = database.connect_as("anna").unwrap();
    assert_eq!(one(&anna, "SELECT current_user"), "berta");
    run(&owner, "DROP ROLE berta");
    let anna = database.connect();
    anna.keep_notices();
    anna.log_in("anna").unwrap();
    let notices = anna.take_notices();
    let texts: Vec<_> = notices.iter().map(|it| (it.severity, &it.message[..])).collect();
    assert_eq!(texts, [("WARNING", "role \"berta\" does not exist")]);
    assert_eq!(one(&anna, "SELECT current_user"), "anna");
    assert_eq!(one(&anna, "SHOW work_mem"), "7MB");
}
