//! Functions, procedures and triggers: what stays after reopening, notices, rights, and changes of
//! tables.

use std::io::{self, Read, Write};

use quickbeam_sql::{CopyAccess, CopyPlace, SqlDatabase, Value};

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
    let connection = SqlDatabase::open_in_memory(Default::default()).unwrap().connect();
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
    let connection = SqlDatabase::open_in_memory(Default::default()).unwrap().connect();
    connection.keep_notices();
    let block = "DO $$ BEGIN RAISE NOTICE 'n % %%', 1; RAISE WARNING 'w'; RAISE LOG 'l'; END $$";
    connection.execute(block, &[]).unwrap();
    let notices = connection.take_notices();
    let found: Vec<_> = notices.iter().map(|it| (it.severity, &it.message[..])).collect();
    assert_eq!(found, [("NOTICE", "n 1 %"), ("WARNING", "w")]);
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
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
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
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
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
    let connection = SqlDatabase::open_in_memory(Default::default()).unwrap().connect();
    let endless = "CREATE FUNCTION endless(n INT) RETURNS INT LANGUAGE plpgsql
        AS $$ BEGIN RETURN endless(n + 1); END $$";
    connection.execute(endless, &[]).unwrap();
    let error = connection.query("SELECT endless(1)", &[]).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "54001");
    assert_eq!(text(&connection, "SELECT 'still here'"), "still here");
}

/// A table `t`, and a trigger that writes what happens to it into `log`.
const LOGGED: [&str; 4] = [
    "CREATE TABLE t (id INT PRIMARY KEY, a TEXT)",
    "CREATE TABLE log (n INT GENERATED ALWAYS AS IDENTITY, what TEXT)",
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO log (what) VALUES (TG_WHEN || ' ' || TG_LEVEL); RETURN NEW; END $$",
    "CREATE TRIGGER a_row AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()",
];

fn run_all(connection: &quickbeam_sql::Connection, statements: &[&str]) {
    for statement in statements {
        connection.execute(statement, &[]).unwrap();
    }
}

fn logged(connection: &quickbeam_sql::Connection) -> String {
    text(connection, "SELECT coalesce(string_agg(what, ', ' ORDER BY n), '') FROM log")
}

#[test]
fn triggers_stay_after_the_database_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqlDatabase::open(folder.path(), Default::default()).unwrap();
    let connection = open().connect();
    run_all(&connection, &LOGGED);
    drop(connection);
    let connection = open().connect();
    connection.execute("INSERT INTO t VALUES (1, 'x')", &[]).unwrap();
    assert_eq!(logged(&connection), "AFTER ROW");
}

#[test]
fn a_statement_that_fails_undoes_what_its_triggers_did() {
    let connection = SqlDatabase::open_in_memory(Default::default()).unwrap().connect();
    run_all(&connection, &LOGGED);
    let before = "CREATE TRIGGER b_row BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION note()";
    connection.execute(before, &[]).unwrap();
    connection.execute("BEGIN", &[]).unwrap();
    connection.execute("INSERT INTO t VALUES (1, 'x')", &[]).unwrap();
    let twice = connection.execute("INSERT INTO t VALUES (2, 'y'), (1, 'z')", &[]).unwrap_err();
    assert_eq!(twice.code(), "23505");
    assert_eq!(logged(&connection), "BEFORE ROW, AFTER ROW");
    connection.execute("COMMIT", &[]).unwrap();
    assert_eq!(logged(&connection), "BEFORE ROW, AFTER ROW");
}

/// COPY reads two rows.
struct TwoRows;

impl CopyAccess for TwoRows {
    fn reader(&mut self, _: &CopyPlace, _: usize) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(&b"1,one\n2,two\n"[..]))
    }

    fn writer(&mut self, _: &CopyPlace, _: usize) -> io::Result<Box<dyn Write + '_>> {
        Ok(Box::new(io::sink()))
    }
}

#[test]
fn copy_fires_triggers_of_rows_and_of_the_statement_once() {
    let connection = SqlDatabase::open_in_memory(Default::default()).unwrap().connect();
    run_all(&connection, &LOGGED);
    for trigger in ["b BEFORE", "c AFTER"] {
        let text = format!("CREATE TRIGGER {trigger} INSERT ON t EXECUTE FUNCTION note()");
        connection.execute(&text, &[]).unwrap();
    }
    connection.set_copy_access(TwoRows);
    assert_eq!(connection.execute("COPY t FROM STDIN WITH (FORMAT csv)", &[]).unwrap(), 2);
    assert_eq!(logged(&connection), "BEFORE STATEMENT, AFTER ROW, AFTER ROW, AFTER STATEMENT");
    // A trigger cannot use the input that feeds it.
    connection
        .execute(
            "CREATE OR REPLACE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                EXECUTE 'COPY log TO STDOUT'; RETURN NEW; END $$",
            &[],
        )
        .unwrap();
    connection.execute("DELETE FROM t", &[]).unwrap();
    let nested = connection.execute("COPY t FROM STDIN WITH (FORMAT csv)", &[]).unwrap_err();
    assert_eq!(nested.code(), "0A000");
}

#[test]
fn a_writer_that_does_not_know_a_trigger_cannot_commit() {
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
    let (writer, maker) = (database.connect(), database.connect());
    let (trigger, before) = LOGGED.split_last().unwrap();
    run_all(&maker, before);
    writer.execute("BEGIN", &[]).unwrap();
    writer.execute("INSERT INTO t VALUES (1, 'x')", &[]).unwrap();
    maker.execute(trigger, &[]).unwrap();
    let error = writer.execute("COMMIT", &[]).unwrap_err();
    assert_eq!(error.code(), "40001");
    writer.execute("INSERT INTO t VALUES (1, 'x')", &[]).unwrap();
    assert_eq!(logged(&writer), "AFTER ROW");
}

#[test]
fn errors_name_each_call_around_them() {
    let connection = SqlDatabase::open_in_memory(Default::default()).unwrap().connect();
    run_all(
        &connection,
        &[
            "CREATE TABLE t (id INT CHECK (id < 5))",
            "CREATE FUNCTION p1() RETURNS int LANGUAGE plpgsql AS 'begin return 1/0; end'",
            "CREATE FUNCTION p2(a int) RETURNS int LANGUAGE plpgsql AS 'begin return 1/a; end'",
            "CREATE FUNCTION p3(a int) RETURNS int LANGUAGE plpgsql AS 'declare x int;\nbegin\n  \
             x := p2(a);\n return x;\nend'",
            "CREATE FUNCTION nothing() RETURNS int LANGUAGE plpgsql AS 'begin null; end'",
            "CREATE FUNCTION word() RETURNS int LANGUAGE plpgsql AS 'begin return ''a''; end'",
        ],
    );
    let block = "PL/pgSQL function inline_code_block line";
    let p3 = "PL/pgSQL function p2(integer) line 1 at RETURN\n\
              PL/pgSQL function p3(integer) line 3 at assignment";
    for (statement, context) in [
        (
            "SELECT p1()",
            "SQL expression \"1/0\"\nPL/pgSQL function p1() line 1 at RETURN".to_owned(),
        ),
        ("SELECT p3(0)", p3.to_owned()),
        (
            "DO 'begin perform p3(0); end'",
            format!("{p3}\nSQL statement \"SELECT p3(0)\"\n{block} 1 at PERFORM"),
        ),
        (
            "DO 'begin execute ''select 1/0''; end'",
            format!("SQL statement \"select 1/0\"\n{block} 1 at EXECUTE"),
        ),
        (
            "DO 'declare\n x int := 1/0; begin null; end'",
            format!(
                "SQL expression \"1/0\"\n{block} 2 during statement block local variable \
                 initialization"
            ),
        ),
        (
            "DO 'declare x int; begin for x in select 1/0 loop null; end loop; end'",
            format!("SQL statement \"select 1/0\"\n{block} 1 at FOR over SELECT rows"),
        ),
        (
            "DO 'declare a int := 0; begin loop\n a := 1/a; end loop; end'",
            format!("{block} 2 at assignment"),
        ),
        (
            "DO 'begin begin perform 1/0; exception when others then null; end; perform 2/0; end'",
            format!("SQL statement \"SELECT 2/0\"\n{block} 1 at PERFORM"),
        ),
        (
            "DO 'begin insert into t values (9); end'",
            format!("SQL statement \"insert into t values (9)\"\n{block} 1 at SQL statement"),
        ),
        ("DO 'begin insert into no_such values (9); end'", format!("{block} 1 at SQL statement")),
        ("SELECT nothing()", "PL/pgSQL function nothing()".to_owned()),
        (
            "SELECT word()",
            "PL/pgSQL function word() while casting return value to function's return type"
                .to_owned(),
        ),
    ] {
        let error = connection.query(statement, &[]).and_then(|rows| rows.collect()).unwrap_err();
        assert_eq!(error.context(), Some(&*context), "{statement}: {error}");
    }
}
