//! Roles: what a role without rights can do with each kind of statement, who owns what, and plans.

use quickbeam_sql::{Connection, SqlDatabase, SqlError};

fn database(setup: &[&str]) -> (SqlDatabase, Connection) {
    let database = SqlDatabase::open_in_memory(Default::default()).unwrap();
    let owner = database.connect();
    for text in setup {
        owner.execute(text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    (database, owner)
}

fn run(connection: &Connection, text: &str) -> Result<Vec<String>, SqlError> {
    let rows = connection.query(text, &[])?.collect()?;
    let line = |row: &Vec<_>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    Ok(rows.iter().map(line).collect())
}

fn refused(connection: &Connection, text: &str) -> String {
    match run(connection, text) {
        Ok(rows) => panic!("{text}: {rows:?}"),
        Err(error) => format!("{}: {}", error.code(), error.message()),
    }
}

#[test]
fn rights_are_checked_for_each_statement() {
    let (database, _owner) = database(&[
        "CREATE TABLE secret (id INT PRIMARY KEY, word TEXT)",
        "INSERT INTO secret VALUES (1, 'x')",
        "CREATE VIEW shown AS SELECT word FROM secret",
        "CREATE SEQUENCE numbers",
        "CREATE SCHEMA hidden",
        "CREATE TABLE hidden.h (id INT)",
        "CREATE INDEX words ON secret (word)",
        "CREATE ROLE anna LOGIN",
    ]);
    database.environment().create_database("photos").unwrap();
    let anna = database.connect_as("anna").unwrap();
    let denied = "42501: permission denied for table secret";
    for text in [
        "SELECT * FROM secret",
        // The check comes before the columns: their names cannot be tried out.
        "SELECT nosuch FROM secret",
        "SELECT count(*) FROM secret",
        "SELECT 1 FROM secret s JOIN secret t ON s.id = t.id",
        "SELECT (SELECT word FROM secret)",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM secret)",
        "WITH s AS (SELECT nosuch FROM secret) SELECT 1 FROM s",
        "SELECT 1 UNION SELECT id FROM secret",
        "VALUES ((SELECT word FROM secret))",
        "SELECT id FROM secret FOR UPDATE",
        "INSERT INTO secret VALUES (2, 'y')",
        "INSERT INTO secret (nosuch) VALUES (2)",
        "INSERT INTO secret DEFAULT VALUES",
        "UPDATE secret SET word = 'y'",
        "UPDATE secret SET nosuch = 1",
        "DELETE FROM secret",
        "DELETE FROM secret WHERE nosuch = 1",
        "WITH s AS (SELECT 1) DELETE FROM secret",
        "MERGE INTO secret USING (VALUES (1)) AS n (id) ON true WHEN MATCHED THEN DELETE",
        "MERGE INTO secret USING (VALUES (1)) AS n (id) ON true WHEN MATCHED THEN UPDATE SET nosuch = 1",
        "MERGE INTO secret USING (VALUES (1)) AS n (id) ON true WHEN NOT MATCHED THEN INSERT VALUES (1)",
        "WITH gone AS (DELETE FROM secret RETURNING *) SELECT * FROM gone",
        "TRUNCATE secret",
        "COPY secret TO STDOUT",
        "COPY secret (nosuch) TO STDOUT",
        "COPY secret FROM STDIN",
        "COPY (SELECT * FROM secret) TO STDOUT",
        "EXPLAIN SELECT * FROM secret",
        "EXPLAIN ANALYZE DELETE FROM secret",
        "PREPARE p AS SELECT * FROM secret",
        "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM secret",
        "GRANT SELECT ON secret TO PUBLIC",
        "REVOKE SELECT ON secret FROM quickbeam",
    ] {
        assert_eq!(refused(&anna, text), denied, "{text}");
    }
    let owner = "42501: must be owner of table secret";
    for text in [
        "ALTER TABLE secret ADD COLUMN c INT",
        "ALTER TABLE secret DROP COLUMN nosuch",
        "ALTER TABLE secret RENAME TO known",
        "ALTER TABLE secret OWNER TO anna",
        "DROP TABLE secret",
        "CREATE INDEX i ON secret (nosuch)",
        "COMMENT ON TABLE secret IS 'x'",
        "COMMENT ON COLUMN secret.nosuch IS 'x'",
        "REINDEX TABLE secret",
        "CLUSTER secret",
    ] {
        assert_eq!(refused(&anna, text), owner, "{text}");
    }
    for (text, message) in [
        ("SELECT * FROM shown", "permission denied for view shown"),
        ("DROP VIEW shown", "must be owner of view shown"),
        ("DROP INDEX words", "must be owner of index words"),
        ("ALTER INDEX words RENAME TO w", "must be owner of index words"),
        ("DROP SEQUENCE numbers", "must be owner of sequence numbers"),
        ("ALTER SEQUENCE numbers RESTART", "must be owner of sequence numbers"),
        ("SELECT nextval('numbers')", "permission denied for sequence numbers"),
        ("SELECT setval('numbers', 7)", "permission denied for sequence numbers"),
        ("SELECT currval('numbers')", "permission denied for sequence numbers"),
        ("SELECT * FROM hidden.h", "permission denied for schema hidden"),
        ("SELECT * FROM hidden.nosuch", "permission denied for schema hidden"),
        ("CREATE TABLE hidden.t (id INT)", "permission denied for schema hidden"),
        ("DROP SCHEMA hidden CASCADE", "must be owner of schema hidden"),
        ("CREATE TABLE t (id INT)", "permission denied for schema public"),
        ("CREATE TABLE t AS SELECT 1", "permission denied for schema public"),
        ("SELECT 1 INTO t", "permission denied for schema public"),
        ("CREATE VIEW t AS SELECT 1", "permission denied for schema public"),
        ("CREATE SEQUENCE t", "permission denied for schema public"),
        ("CREATE SCHEMA t", "permission denied for database quickbeam"),
        ("SELECT * FROM photos", "permission denied for table photos"),
        ("INSERT INTO photos VALUES ('a', 'b')", "permission denied for table photos"),
        ("DELETE FROM photos", "permission denied for table photos"),
        ("SELECT * FROM pg_authid", "permission denied for table pg_authid"),
        ("SELECT * FROM pg_shadow", "permission denied for view pg_shadow"),
        ("SELECT quickbeam_backup('x')", "permission denied for function quickbeam_backup"),
        ("SELECT quickbeam_control('x', '')", "permission denied for function quickbeam_control"),
        ("CREATE ROLE berta", "permission denied to create role"),
        ("SET ROLE quickbeam", "permission denied to set role \"quickbeam\""),
        ("SET SESSION AUTHORIZATION quickbeam", "permission denied to set session authorization"),
        (
            "SELECT set_config('role', 'quickbeam', false)",
            "permission denied to set role \"quickbeam\"",
        ),
    ] {
        assert_eq!(refused(&anna, text), format!("42501: {message}"), "{text}");
    }
    anna.execute("BEGIN", &[]).unwrap();
    assert_eq!(refused(&anna, "LOCK TABLE secret IN ACCESS SHARE MODE"), denied);
    assert_eq!(refused(&anna, "LOCK TABLE secret"), denied);
    anna.execute("ROLLBACK", &[]).unwrap();
    for catalog in ["tables", "columns", "views", "sequences", "table_constraints"] {
        let text = format!("SELECT count(*) FROM information_schema.{catalog}");
        assert_eq!(run(&anna, &text).unwrap(), ["0"], "{catalog}");
    }
}

#[test]
fn objects_belong_to_who_makes_them() {
    let (database, owner) = database(&[
        "CREATE ROLE anna LOGIN",
        "CREATE SCHEMA app AUTHORIZATION anna",
        "CREATE TABLE old (id INT)",
    ]);
    let anna = database.connect_as("anna").unwrap();
    for text in [
        "CREATE TABLE app.t (id SERIAL PRIMARY KEY, a INT)",
        "CREATE TABLE app.copied AS SELECT 1 AS one",
        "CREATE VIEW app.v AS SELECT id FROM app.t",
        "INSERT INTO app.t (a) VALUES (1)",
    ] {
        anna.execute(text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let owners = "SELECT relname, relowner::regrole FROM pg_class WHERE relkind IN ('r', 'v', 'S') \
                  AND relnamespace IN ('app'::regnamespace, 'public'::regnamespace) ORDER BY 1";
    assert_eq!(
        run(&owner, owners).unwrap(),
        ["copied|anna", "old|quickbeam", "t|anna", "t_id_seq|anna", "v|anna"]
    );
    assert!(refused(&owner, "DROP ROLE anna").starts_with("2BP01"));
    anna.execute("DROP SCHEMA app CASCADE", &[]).unwrap();
    owner.execute("DROP ROLE anna", &[]).unwrap();
    // The session of a role that is gone has no rights at all.
    assert!(refused(&anna, "SELECT * FROM old").starts_with("42501"));
}

#[test]
fn a_view_reads_with_the_rights_of_its_owner() {
    let (database, owner) = database(&[
        "CREATE TABLE t (id INT, secret TEXT)",
        "INSERT INTO t VALUES (1, 'x')",
        "CREATE ROLE anna",
        "CREATE ROLE berta",
        "CREATE SCHEMA app AUTHORIZATION anna",
        "GRANT USAGE ON SCHEMA app TO berta",
        "GRANT SELECT ON t TO anna",
        "CREATE VIEW v AS SELECT id FROM t",
        "GRANT SELECT ON v TO berta",
    ]);
    let [anna, berta] = ["anna", "berta"].map(|role| database.connect_as(role).unwrap());
    assert_eq!(run(&berta, "SELECT * FROM v").unwrap(), ["1"]);
    anna.execute("CREATE VIEW app.w AS SELECT id, secret FROM t", &[]).unwrap();
    anna.execute("GRANT SELECT (id) ON app.w TO berta", &[]).unwrap();
    assert_eq!(run(&berta, "SELECT id FROM app.w").unwrap(), ["1"]);
    assert_eq!(refused(&berta, "SELECT * FROM app.w"), "42501: permission denied for view w");
    owner.execute("REVOKE SELECT ON t FROM anna", &[]).unwrap();
    assert_eq!(refused(&berta, "SELECT id FROM app.w"), "42501: permission denied for table t");
    assert_eq!(run(&owner, "SELECT id FROM v").unwrap(), ["1"]);
}

#[test]
fn plans_of_one_role_do_not_serve_another() {
    let (database, owner) = database(&[
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1)",
        "CREATE ROLE anna",
    ]);
    let text = "SELECT id FROM t";
    assert_eq!(run(&owner, text).unwrap(), ["1"]);
    owner.execute("SET ROLE anna", &[]).unwrap();
    assert!(refused(&owner, text).starts_with("42501"));
    assert_eq!(run(&owner, "SELECT current_user").unwrap(), ["anna"]);
    owner.execute("RESET ROLE", &[]).unwrap();
    assert_eq!(run(&owner, "SELECT current_user").unwrap(), ["quickbeam"]);
    assert_eq!(run(&owner, text).unwrap(), ["1"]);
    // A rollback takes SET ROLE back.
    for text in ["BEGIN", "SET ROLE anna", "ROLLBACK"] {
        owner.execute(text, &[]).unwrap();
    }
    assert_eq!(run(&owner, text).unwrap(), ["1"]);
    // A right that is granted or revoked counts from the next statement on.
    let anna = database.connect_as("anna").unwrap();
    for _ in 0..2 {
        assert!(refused(&anna, text).starts_with("42501"));
        owner.execute("GRANT SELECT ON t TO anna", &[]).unwrap();
        assert_eq!(run(&anna, text).unwrap(), ["1"]);
        owner.execute("REVOKE SELECT ON t FROM anna", &[]).unwrap();
    }
    assert_eq!(database.connect_as("nobody").err().unwrap().code(), "42704");
}

#[test]
fn roles_and_rights_outlive_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let open = || SqlDatabase::open(directory.path(), Default::default()).unwrap();
    let owner = open().connect();
    for text in [
        "CREATE TABLE t (a INT, b INT)",
        "CREATE ROLE anna",
        "GRANT SELECT (a) ON t TO anna",
        "ALTER SCHEMA public OWNER TO anna",
    ] {
        owner.execute(text, &[]).unwrap();
    }
    let database = owner.database().clone();
    drop(owner);
    drop(database);
    let anna = open().connect_as("anna").unwrap();
    assert!(run(&anna, "SELECT a FROM t").unwrap().is_empty());
    assert!(refused(&anna, "SELECT b FROM t").starts_with("42501"));
    let acl = "SELECT attacl[1] FROM pg_attribute WHERE attname = 'a' AND attrelid = 't'::regclass";
    assert_eq!(run(&anna, acl).unwrap(), ["anna=r/quickbeam"]);
    anna.execute("CREATE TABLE mine (id INT)", &[]).unwrap();
}

#[test]
fn errors_of_constraints_show_rows_to_who_may_read_them() {
    let (database, owner) = database(&[
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT NOT NULL, c INT CHECK (c > 0))",
        "INSERT INTO t VALUES (1, 'secret', 1)",
        "CREATE ROLE anna LOGIN",
        "GRANT INSERT, UPDATE ON t TO anna",
    ]);
    let anna = database.connect_as("anna").unwrap();
    let fields = |connection: &Connection, text: &str| {
        let error = run(connection, text).unwrap_err();
        let parts = [error.schema(), error.table(), error.column(), error.constraint()];
        let parts = parts.map(|part| part.unwrap_or("-")).join(" ");
        format!("{} {parts}: {}", error.code(), error.detail().unwrap_or("-"))
    };
    for (text, expected, detail) in [
        (
            "UPDATE t SET c = -5",
            "23514 public t - t_c_check",
            "Failing row contains (1, secret, -5).",
        ),
        ("UPDATE t SET b = NULL", "23502 public t b -", "Failing row contains (1, null, 1)."),
        ("INSERT INTO t VALUES (1, 'x')", "23505 public t - t_pkey", "Key (a)=(1) already exists."),
    ] {
        assert_eq!(fields(&owner, text), format!("{expected}: {detail}"));
        assert_eq!(fields(&anna, text), format!("{expected}: -"));
    }
}

#[test]
fn privilege_functions_know_rights_on_routines_and_columns() {
    let (_database, owner) = database(&[
        "CREATE ROLE anna",
        "CREATE SCHEMA s",
        "CREATE FUNCTION s.f(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE PROCEDURE s.p(int) LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE t (a INT, b INT)",
        "ALTER TABLE t DROP COLUMN b",
    ]);
    let has = "SELECT has_function_privilege('anna', 's.f(int)', 'EXECUTE'),
        has_function_privilege('anna', 's.p(int)'::regprocedure, 'EXECUTE')";
    for (change, expected) in [
        ("REVOKE ALL ON ALL FUNCTIONS IN SCHEMA s FROM PUBLIC", "f|t"),
        ("REVOKE ALL ON ALL PROCEDURES IN SCHEMA s FROM PUBLIC", "f|f"),
        ("GRANT EXECUTE ON ALL ROUTINES IN SCHEMA s TO PUBLIC", "t|t"),
        ("REVOKE ALL ON ALL ROUTINES IN SCHEMA s FROM PUBLIC", "f|f"),
        ("GRANT EXECUTE ON FUNCTION s.f TO anna", "t|f"),
    ] {
        owner.execute(change, &[]).unwrap();
        assert_eq!(run(&owner, has).unwrap(), [expected], "{change}");
    }
    let built_in = "SELECT has_function_privilege('anna', 'abs(int)', 'EXECUTE'),
        has_function_privilege('anna', 0::oid, 'EXECUTE') IS NULL";
    assert_eq!(run(&owner, built_in).unwrap(), ["t|t"]);
    let unknown = "SELECT has_function_privilege('anna', 's.nosuch(int)', 'EXECUTE')";
    assert!(refused(&owner, unknown).starts_with("42883"));
    let columns = "SELECT has_column_privilege('t', 1::int2, 'select'),
        has_column_privilege('t', 2::int2, 'select') IS NULL,
        has_column_privilege('t', 99::int2, 'select') IS NULL";
    assert_eq!(run(&owner, columns).unwrap(), ["t|t|t"]);
}
