//! Functions and procedures: what stays after reopening, notices, rights, and changes of tables.

use quickbeam_sql::{SqlDatabase, Value};

fn text(connection: &quickbeam_sql::Connection, query: &str) -> String {
    connection.query_row(query, &[], |row| row.get::<String>(0)).unwrap()
}

#[test]
fn functions_stay_after_the_database_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqlDatabase::open(folder.path(), Default::default()).unwrap();
    {
        let connection = open().connect();
        let body = "CREATE FUNCTION twice(a text, b text DEFAULT '!') RETURNS text LANGUAGE plpgsql
            AS $$ BEGIN RETURN a || a || b; END $$";
        connection.execute(body, &[]).unwrap();
        connection.execute("BEGIN", &[]).unwrap();
        let lost = "CREATE FUNCTION lost() RETURNS text LANGUAGE sql AS 'SELECT ''x'''";
        connection.execute(lost, &[]).unwrap();
        assert_eq!(text(&connection, "SELECT lost()"), "x");
        connection.execute("ROLLBACK", &[]).unwrap();
    }
    let connection = open().connect();
    assert_eq!(text(&connection, "SELECT twice('ab')"), "abab!");
    assert_eq!(connection.execute("SELECT lost()", &[]).unwrap_err().code(), "42883");
}

#[test]
fn bodies_follow_changes_of_their_tables() {
    let connection = SqlDatabase::memory(Default::default()).unwrap().connect();
    let run = |text: &str| connection.execute(text, &[]).unwrap();
    run("CREATE TABLE t (id INT PRIMARY KEY, a TEXT)");
    run("INSERT INTO t VALUES (1, 'one')");
    run("CREATE FUNCTION a_of(n INT) RETURNS TEXT LANGUAGE plpgsql AS $$
        DECLARE r t%ROWTYPE; BEGIN SELECT * INTO r FROM t WHERE id = n; RETURN r.a; END $$");
    assert_eq!(text(&connection, "SELECT a_of(1)"), "one");
    run("ALTER TABLE t DROP COLUMN a");
    run("ALTER TABLE t ADD COLUMN b INT");
    run("ALTER TABLE t ADD COLUMN a TEXT DEFAULT 'new'");
    assert_eq!(text(&connection, "SELECT a_of(1)"), "new");
    run("DROP TABLE t");
    let error = connection.query("SELECT a_of(1)", &[]).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "42P01");
    run("CREATE TABLE t (a TEXT, id INT)");
    run("INSERT INTO t VALUES ('again', 1)");
    assert_eq!(text(&connection, "SELECT a_of(1)"), "again");
}

#[test]
fn raise_leaves_notices_and_errors_with_their_fields() {
    let connection = SqlDatabase::memory(Default::default()).unwrap().connect();
    connection.keep_notices();
    let block = "DO $$ BEGIN RAISE NOTICE 'n % %%', 1; RAISE WARNING 'w'; RAISE LOG 'l'; END $$";
    connection.execute(block, &[]).unwrap();
    let notices = connection.take_notices();
    let found: Vec<_> = notices.iter().map(|it| (it.is_warning, &it.message[..])).collect();
    assert_eq!(found, [(false, "n 1 %"), (true, "w")]);
    let block = "DO $$ BEGIN
        RAISE EXCEPTION 'no' USING ERRCODE = 'XY001', DETAIL = 'd', HINT = 'h'; END $$";
    let error = connection.execute(block, &[]).unwrap_err();
    assert_eq!((error.code(), error.message()), ("XY001", "no"));
    assert_eq!((error.detail(), error.hint(), error.position()), (Some("d"), Some("h"), None));
    let context = error.context().unwrap();
    assert_eq!(context, "PL/pgSQL function inline_code_block line 2 at RAISE");
}

#[test]
fn calls_need_the_right_and_may_use_that_of_the_owner() {
    let database = SqlDatabase::memory(Default::default()).unwrap();
    let owner = database.connect();
    for statement in [
        "CREATE TABLE secret (a INT)",
        "INSERT INTO secret VALUES (7)",
        "CREATE ROLE guest LOGIN",
        "CREATE FUNCTION invoker() RETURNS INT LANGUAGE sql AS 'SELECT a FROM secret'",
        "CREATE FUNCTION definer() RETURNS INT SECURITY DEFINER LANGUAGE sql AS 'SELECT a FROM secret'",
    ] {
        owner.execute(statement, &[]).unwrap();
    }
    let guest = database.connect_as("guest").unwrap();
    let call = |name: &str| {
        let query = format!("SELECT {name}()");
        guest.query_row(&query, &[], |row| row.get::<i32>(0)).map_err(|error| error.code())
    };
    assert_eq!((call("invoker"), call("definer")), (Err("42501"), Ok(7)));
    // Afterwards the role is the caller's again.
    assert_eq!(guest.query("SELECT a FROM secret", &[]).map(|_| ()).unwrap_err().code(), "42501");
    owner.execute("REVOKE EXECUTE ON FUNCTION definer() FROM PUBLIC", &[]).unwrap();
    assert_eq!(call("definer"), Err("42501"));
    owner.execute("GRANT EXECUTE ON FUNCTION definer() TO guest", &[]).unwrap();
    assert_eq!(call("definer"), Ok(7));
    let drop = guest.execute("DROP FUNCTION definer()", &[]).unwrap_err();
    assert_eq!(drop.code(), "42501");
    owner.execute("ALTER FUNCTION invoker() OWNER TO guest", &[]).unwrap();
    guest.execute("DROP FUNCTION invoker()", &[]).unwrap();
}

#[test]
fn procedures_end_transactions_only_outside_of_one() {
    let database = SqlDatabase::memory(Default::default()).unwrap();
    let connection = database.connect();
    let run = |text: &str| connection.execute(text, &[]);
    run("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    run("CREATE PROCEDURE fill(n INT) LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO t VALUES (n); COMMIT; INSERT INTO t VALUES (n + 1);
        RAISE EXCEPTION 'end'; END $$")
    .unwrap();
    assert_eq!(run("CALL fill(1)").unwrap_err().code(), "P0001");
    assert!(!connection.in_transaction());
    let count = || connection.query_row("SELECT count(*) FROM t", &[], |row| row.get::<i64>(0));
    assert_eq!(count().unwrap(), 1, "what was committed stays");
    run("BEGIN").unwrap();
    assert_eq!(run("CALL fill(5)").unwrap_err().code(), "2D000");
    run("ROLLBACK").unwrap();
    let statement = connection.query("CALL fill($1)", &[Value::Integer(1)]).map(|_| ());
    assert_eq!(statement.unwrap_err().code(), "23505");
}

#[test]
fn calls_within_calls_are_limited() {
    let connection = SqlDatabase::memory(Default::default()).unwrap().connect();
    let endless = "CREATE FUNCTION endless(n INT) RETURNS INT LANGUAGE plpgsql
        AS $$ BEGIN RETURN endless(n + 1); END $$";
    connection.execute(endless, &[]).unwrap();
    let error = connection.query("SELECT endless(1)", &[]).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "54001");
    assert_eq!(text(&connection, "SELECT 'still here'"), "still here");
}
