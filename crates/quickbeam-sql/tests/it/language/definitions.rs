//! Statements that define: what of them is refused rather than left out, and that all they say is
//! done.

use quickbeam::Options;
use quickbeam_sql::{Connection, SqlDatabase};

fn connect(setup: &str) -> Connection {
    let connection = SqlDatabase::open_in_memory(Options::default()).unwrap().connect();
    connection.execute_script(setup).unwrap();
    connection
}

/// The code of a statement's error; nothing if it has none.
fn code(connection: &Connection, text: &str) -> &'static str {
    let result = connection.query(text, &[]).and_then(|rows| rows.collect());
    result.err().map_or("", |error| error.code())
}

fn ask(connection: &Connection, text: &str) -> String {
    let rows = connection.query(text, &[]).unwrap().collect().unwrap();
    let rows =
        rows.iter().map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    rows.collect::<Vec<_>>().join("; ")
}

/// Clauses of PostgreSQL or of others that the parser takes. An author means something by
/// them.
#[test]
fn clauses_that_would_be_without_effect_are_refused() {
    let connection = connect(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER);
         CREATE TABLE u (a INTEGER, b INTEGER, UNIQUE (a, b))",
    );
    for text in [
        "CREATE TABLE n (a INTEGER) PARTITION BY RANGE (a)",
        "CREATE TABLE n PARTITION OF t FOR VALUES FROM (1) TO (2)",
        "CREATE TABLE n (a INTEGER) INHERITS (t)",
        "CREATE TABLE n (a INTEGER) USING heap",
        "CREATE TABLE n (a INTEGER) WITHOUT ROWID",
        "CREATE TABLE n (a INTEGER) STRICT",
        "CREATE TABLE n (a INTEGER) AS SELECT 1 AS a",
        "CREATE TABLE n (a INTEGER, PRIMARY KEY (a) USING HASH DEFERRABLE)",
        "CREATE TABLE n (a INTEGER, UNIQUE (a) USING HASH INITIALLY DEFERRED)",
        "CREATE TABLE n (a INTEGER, UNIQUE (a DESC))",
        "CREATE TABLE n (a INTEGER, CHECK (a > 0) NOT ENFORCED)",
        "CREATE INDEX n ON t (a int8_ops)",
        "CREATE INDEX n ON t (a) USING HASH",
        "CREATE VIEW IF NOT EXISTS n AS SELECT 1 AS a",
        "ALTER TABLE t ADD CHECK (a > 0) NOT ENFORCED",
        "TRUNCATE IF EXISTS t",
    ] {
        let found = code(&connection, text);
        assert!(["0A000", "42601"].contains(&found), "{text}: {found}");
        assert_eq!(code(&connection, "SELECT * FROM n"), "42P01", "{text}");
    }
    for text in [
        "CREATE TABLE n (a INTEGER NULL PRIMARY KEY NOT DEFERRABLE INITIALLY IMMEDIATE)",
        "CREATE TABLE n (a INTEGER, b INTEGER, UNIQUE NULLS DISTINCT (a, b))",
        "CREATE TABLE n (a INTEGER REFERENCES t MATCH FULL, b INTEGER REFERENCES t MATCH SIMPLE)",
        "CREATE TABLE n (a INTEGER, UNIQUE (a) USING HASH)",
        "ALTER TABLE ONLY t ADD COLUMN c INTEGER",
    ] {
        let found = code(&connection, text);
        assert!(["", "42601"].contains(&found), "{text}: {found}");
        connection.execute("DROP TABLE IF EXISTS n", &[]).unwrap();
    }
}

#[test]
fn operations_of_one_alter_table_see_what_those_before_them_did() {
    let connection = connect(
        "CREATE TABLE p (id INTEGER PRIMARY KEY);
         CREATE TABLE t (id INTEGER CONSTRAINT t_pkey PRIMARY KEY, a INTEGER, b INTEGER UNIQUE);
         INSERT INTO p VALUES (1);
         INSERT INTO t VALUES (1, 10, 100)",
    );
    for text in [
        "ALTER TABLE t DROP CONSTRAINT t_pkey, ADD CONSTRAINT t_pkey PRIMARY KEY (a)",
        "ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 1, ADD UNIQUE (c), ADD CHECK (c > 0), ADD FOREIGN KEY (c) REFERENCES p",
        "ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 100 CHECK (d > c) REFERENCES t (b) ON DELETE CASCADE, ALTER COLUMN d SET DEFAULT 4",
        "ALTER TABLE t DROP COLUMN d, ADD COLUMN d TEXT, ALTER COLUMN d SET DEFAULT 'x'",
        "ALTER TABLE t RENAME COLUMN d TO e",
        "ALTER TABLE t DROP CONSTRAINT t_b_key, ADD CONSTRAINT t_b_key UNIQUE (b), DROP CONSTRAINT t_b_key",
        "ALTER TABLE t ADD UNIQUE (b), DROP CONSTRAINT t_b_key",
        "ALTER TABLE t DROP COLUMN IF EXISTS nothing, DROP CONSTRAINT IF EXISTS nothing",
        "ALTER TABLE IF EXISTS nowhere ADD COLUMN a INTEGER REFERENCES elsewhere",
    ] {
        assert_eq!(code(&connection, text), "", "{text}");
    }
    connection.execute("INSERT INTO t (id, a, b, c) VALUES (2, 20, 200, NULL)", &[]).unwrap();
    assert_eq!(ask(&connection, "SELECT * FROM t"), "1 10 100 1 NULL; 2 20 200 NULL x");
}

/// It was not known which columns such a CHECK reads: it kept the old name, and nothing could be
/// inserted any more.
#[test]
fn the_check_of_an_added_column_follows_its_name() {
    let connection = connect(
        "CREATE TABLE t (a INTEGER);
         ALTER TABLE t ADD COLUMN b INTEGER CHECK (b > a);
         ALTER TABLE t RENAME COLUMN b TO c;
         INSERT INTO t VALUES (1, 2)",
    );
    assert_eq!(code(&connection, "INSERT INTO t VALUES (2, 1)"), "23514");
    connection.execute("ALTER TABLE t DROP COLUMN c", &[]).unwrap();
    assert_eq!(code(&connection, "INSERT INTO t VALUES (2)"), "");
}

#[test]
fn what_is_there_is_left_alone_if_so_asked() {
    let connection = connect(
        "CREATE TABLE p (id INTEGER PRIMARY KEY);
         CREATE TABLE t (id INTEGER CONSTRAINT k PRIMARY KEY REFERENCES p, a INTEGER CONSTRAINT c CHECK (a > 0));
         CREATE INDEX i ON t (a);
         ALTER TABLE p RENAME TO q",
    );
    for text in [
        "CREATE TABLE IF NOT EXISTS t (id INTEGER CONSTRAINT k PRIMARY KEY REFERENCES p, a INTEGER CONSTRAINT c CHECK (a > 0))",
        "CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS id, 1 AS a",
        "CREATE INDEX IF NOT EXISTS i ON t (a)",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS a INTEGER UNIQUE CHECK (a > 5)",
        "DROP TABLE IF EXISTS nothing",
    ] {
        assert_eq!(code(&connection, text), "", "{text}");
    }
    assert_eq!(ask(&connection, "SELECT count(*) FROM t"), "0");
    connection
        .execute_script("INSERT INTO q VALUES (1), (2); INSERT INTO t VALUES (1, 1), (2, 1)")
        .unwrap();
}

#[test]
fn with_names_each_query_once() {
    let connection = connect("CREATE TABLE c (a INTEGER)");
    for (text, expected) in [
        ("WITH c AS (SELECT 1), c AS (SELECT 2) SELECT * FROM c", "42712"),
        ("WITH c AS (SELECT 1), \"C\" AS (SELECT 2) SELECT * FROM c", ""),
        ("WITH c AS (SELECT 1) SELECT * FROM (WITH c AS (SELECT 2) SELECT * FROM c) AS d", ""),
        (
            "WITH d AS (WITH c AS (SELECT 1) SELECT * FROM c), c AS (SELECT 2) SELECT * FROM d, c",
            "",
        ),
        ("INSERT INTO c WITH d AS (SELECT 1), d AS (SELECT 2) SELECT * FROM d", "42712"),
    ] {
        assert_eq!(code(&connection, text), expected, "{text}");
    }
}

#[test]
fn added_foreign_key_to_the_own_table_checks_its_rows() {
    let connection = connect(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, boss INTEGER);
         INSERT INTO t VALUES (1, 2), (2, 9)",
    );
    let added = "ALTER TABLE t ADD FOREIGN KEY (boss) REFERENCES t";
    assert_eq!(code(&connection, added), "23503");
    connection.execute("UPDATE t SET boss = 1 WHERE id = 2", &[]).unwrap();
    assert_eq!(code(&connection, added), "");
    assert_eq!(code(&connection, "UPDATE t SET boss = 9 WHERE id = 2"), "23503");
}

#[test]
fn temporary_tables_belong_to_their_session() {
    let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
    let (one, two) = (database.connect(), database.connect());
    for connection in [&one, &two] {
        connection.execute("CREATE TEMP TABLE t (a INT PRIMARY KEY)", &[]).unwrap();
    }
    one.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
    two.execute("INSERT INTO t VALUES (1), (2)", &[]).unwrap();
    assert_eq!(ask(&one, "SELECT count(*) FROM t"), "1");
    assert_eq!(ask(&two, "SELECT count(*) FROM t"), "2");
    let own = "SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 't'::regclass";
    let schema = ask(&two, own);
    assert_eq!(code(&one, &format!("SELECT * FROM {schema}.t")), "0A000");
    let shown = "SELECT count(*) FROM information_schema.tables WHERE table_name = 't'";
    assert_eq!(ask(&one, shown), "1");
    drop(two);
    let left = "SELECT count(*) FROM pg_class WHERE relname = 't'";
    assert_eq!(ask(&one, left), "1");
    // A session that ends within a transaction.
    let three = database.connect();
    three.execute("CREATE TEMP TABLE t (a INT)", &[]).unwrap();
    three.execute_script("BEGIN; INSERT INTO t VALUES (1); CREATE TEMP TABLE u (a INT)").unwrap();
    drop(three);
    assert_eq!(ask(&one, left), "1");
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pg\\_temp\\_%'";
    assert_eq!(ask(&one, schemas), "1");
}

#[test]
fn temporary_tables_that_a_crash_left_go_at_the_next_opening() {
    let folder = tempfile::tempdir().unwrap();
    let (place, copy) = (folder.path().join("place"), folder.path().join("copy"));
    let database = SqlDatabase::open(&place, Options::default()).unwrap();
    let connection = database.connect();
    let made = "CREATE TABLE kept (a INT); CREATE TEMP TABLE t (a SERIAL UNIQUE);
        CREATE TEMP VIEW v AS SELECT a FROM t; INSERT INTO t DEFAULT VALUES";
    connection.execute_script(made).unwrap();
    // The copy has what a crash would leave.
    database.environment().backup_to(&copy).unwrap();
    drop(connection);
    drop(database);
    let connection = SqlDatabase::open(&copy, Options::default()).unwrap().connect();
    assert_eq!(ask(&connection, "SELECT count(*) FROM pg_class WHERE relpersistence = 't'"), "0");
    assert_eq!(ask(&connection, "SELECT count(*) FROM kept"), "0");
    assert_eq!(code(&connection, "SELECT * FROM pg_temp.t"), "42P01");
}

#[test]
fn temporary_tables_need_the_right_to_them() {
    let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
    let owner = database.connect();
    owner.execute("CREATE ROLE guest LOGIN", &[]).unwrap();
    let guest = database.connect_as("guest").unwrap();
    assert_eq!(code(&guest, "CREATE TEMP TABLE t (a INT)"), "");
    assert_eq!(code(&guest, "INSERT INTO t VALUES (1)"), "");
    owner.execute("REVOKE TEMPORARY ON DATABASE quickbeam FROM PUBLIC", &[]).unwrap();
    assert_eq!(code(&guest, "CREATE TEMP TABLE u (a INT)"), "42501");
    assert_eq!(ask(&guest, "SELECT a FROM t"), "1");
}
