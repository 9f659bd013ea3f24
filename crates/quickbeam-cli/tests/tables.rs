//! Tables through `dump` and `load`: round trips, refused input, and atomic loads.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]
#![cfg(feature = "sql")]

mod common;

use common::{command, done, finish, folder, path, text};
use tempfile::TempDir;

/// Objects of every kind, with names, strings and values that are hard to encode.
const OBJECTS: &str = r#"
CREATE SEQUENCE plain;
CREATE SEQUENCE "Od""d" AS smallint INCREMENT BY -2 MINVALUE -9 MAXVALUE 9 START WITH 5 CYCLE;
CREATE SEQUENCE done AS integer MAXVALUE 2;
CREATE TABLE parent (a INT, b TEXT, v VARCHAR(5) DEFAULT 'ab''c', PRIMARY KEY (b, a), CONSTRAINT "once upon" UNIQUE (v, a));
CREATE TABLE "My ""Table""" (
  id INT GENERATED ALWAYS AS IDENTITY (INCREMENT BY 5 START WITH 100),
  "Col,umn" TEXT NOT NULL DEFAULT 'x', n NUMERIC(9,3) CHECK (n > 0 AND n <> 7), d DOUBLE PRECISION, r REAL,
  yes BOOLEAN, c CHAR(4), bytes BYTEA, day DATE, moment TIMESTAMP WITH TIME ZONE, clock TIME, stamp TIMESTAMP, u UUID,
  parent_a INT, parent_b TEXT, CONSTRAINT "up" FOREIGN KEY (parent_b, parent_a) REFERENCES parent (b, a) ON DELETE SET NULL ON UPDATE CASCADE);
CREATE INDEX "an index" ON "My ""Table""" (n DESC NULLS LAST, "Col,umn" NULLS FIRST);
CREATE UNIQUE INDEX ON "My ""Table""" (u);
CREATE INDEX hashed ON "My ""Table""" USING HASH (c, yes);
CREATE INDEX words ON "My ""Table""" USING gin (to_tsvector('english', "Col,umn")) WHERE id > 0;
CREATE TABLE keyed (k BIGINT, v TEXT, PRIMARY KEY (k) USING HASH, UNIQUE (v) USING HASH);
CREATE TABLE tree (id SERIAL PRIMARY KEY, up INT REFERENCES tree ON DELETE CASCADE);
CREATE TABLE hen (id INT PRIMARY KEY, egg INT);
CREATE TABLE egg (id INT PRIMARY KEY, hen INT REFERENCES hen DEFERRABLE INITIALLY DEFERRED);
ALTER TABLE hen ADD FOREIGN KEY (egg) REFERENCES egg;
CREATE TABLE waits (id INT PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, u TEXT UNIQUE DEFERRABLE, v INT, UNIQUE NULLS NOT DISTINCT (v) INCLUDE (u) DEFERRABLE);
INSERT INTO waits VALUES (2, 'b', NULL), (1, NULL, 1);
CREATE TABLE counted (n BIGINT DEFAULT nextval('plain'), t TEXT);
CREATE TABLE single (t TEXT);
CREATE TABLE nothing (a INT);
CREATE TABLE parts (j JSONB); CREATE INDEX ON parts USING gin (j jsonb_path_ops); INSERT INTO parts VALUES ('{"a": [1]}');
CREATE VIEW v2 (x, y) AS SELECT t, n FROM counted WHERE n > 1;
CREATE VIEW v1 AS SELECT x AS z FROM v2 WHERE x <> 'it''s';
CREATE OR REPLACE VIEW v2 (x, y) AS SELECT t, n FROM counted WHERE n > 0;
INSERT INTO parent VALUES (1, 'p', 'one'), (2, 'q', DEFAULT), (3, '', NULL);
INSERT INTO "My ""Table""" ("Col,umn", n, d, r, yes, c, bytes, day, moment, clock, stamp, u, parent_a, parent_b) VALUES
  ('a "quoted", text', 1.5, 0.1, 1e30, true, 'ab', '\x00ff5c', '2020-02-29', '2020-01-01 12:00:00.123456+02', '23:59:59.999999', 'infinity', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 1, 'p'),
  (E'two\nlines\r\n\\.\n', 12345.678, 'NaN', '-Infinity', false, '', '', '-infinity', NULL, '00:00', '2020-01-01 00:00:00', NULL, 2, 'q'),
  ('', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (E'\\.', 3, -0.0, 0, NULL, 'ä ö', 'x', '0001-01-01 BC', 'infinity', '24:00', '1999-12-31 23:59:59', NULL, NULL, 'nobody');
INSERT INTO keyed VALUES (-5, 'five'), (7, NULL), (8, NULL);
INSERT INTO tree (up) VALUES (NULL), (1), (1), (2);
INSERT INTO hen VALUES (1, NULL); INSERT INTO egg VALUES (1, 1); UPDATE hen SET egg = 1;
INSERT INTO counted (t) VALUES ('it''s'), (NULL), ('other');
INSERT INTO single VALUES (NULL), (''), (E'\\.'), (E'a\n\\.\nb'), (' ');
CREATE TABLE altered (a INT, b INT); INSERT INTO altered VALUES (1, 2);
ALTER TABLE altered ADD COLUMN late INT DEFAULT 42; INSERT INTO altered VALUES (3, 4, 5); ALTER TABLE altered DROP COLUMN a;
CREATE TABLE strict (a INT, b INT, c TEXT, UNIQUE NULLS NOT DISTINCT (a) INCLUDE (b)); CREATE UNIQUE INDEX ON strict (b) INCLUDE (c) NULLS NOT DISTINCT; CREATE UNIQUE INDEX strict_sum ON strict ((a + b) DESC, abs(b)) WHERE b > 0 AND c IS NOT NULL;
INSERT INTO strict VALUES (1, 2, '3'), (NULL, 4, '5'); ALTER TABLE strict ADD CONSTRAINT late CHECK (a > 1) NOT VALID, ALTER c TYPE INT USING c::INT;
CREATE TABLE computed (a INT, twice BIGINT GENERATED ALWAYS AS (a * 2) STORED UNIQUE, b TEXT); INSERT INTO computed (a, b) VALUES (1, 'x'), (NULL, NULL);
CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE texts (a TEXT COLLATE ci PRIMARY KEY, b TEXT COLLATE "de-x-icu" UNIQUE, c TEXT REFERENCES texts);
CREATE INDEX ON texts (b COLLATE "C", a); CREATE UNIQUE INDEX ON texts (c COLLATE ci DESC);
INSERT INTO texts VALUES ('A', 'ä', NULL), ('b', 'z', 'a'), ('Ü', 'B', 'B');
CREATE TABLE found (t TEXT, v TSVECTOR); CREATE TRIGGER words BEFORE INSERT OR UPDATE ON found FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger(v, 'pg_catalog.english', t);
INSERT INTO found (t) VALUES ('some words'), (NULL);
CREATE VIEW v3 AS SELECT late FROM altered;
CREATE OR REPLACE VIEW v2 (x, y) AS SELECT t, n FROM counted JOIN v3 ON n < late;
CREATE VIEW v4 AS SELECT key, value FROM "key value";
CREATE MATERIALIZED VIEW kept (z, n) AS SELECT z, length(z) FROM v1; CREATE INDEX kept_z ON kept (z);
CREATE VIEW v5 AS SELECT n FROM kept;
CREATE MATERIALIZED VIEW later AS SELECT n FROM v5 WITH NO DATA; COMMENT ON MATERIALIZED VIEW kept IS 'kept rows';
CREATE SCHEMA app;
CREATE SCHEMA "Empty one";
CREATE SEQUENCE app.plain START WITH 7;
CREATE TABLE app.counted (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, t TEXT UNIQUE);
CREATE TABLE app."Child" (c INTEGER REFERENCES app.counted, v BIGINT DEFAULT nextval('app.plain'));
CREATE INDEX child_c ON app."Child" (c);
INSERT INTO app.counted (t) VALUES ('a'), ('b');
INSERT INTO app."Child" VALUES (2), (NULL);
CREATE VIEW app.pair AS SELECT t, v FROM app.counted JOIN app."Child" ON c = id;
CREATE VIEW app.checked WITH (security_barrier) AS SELECT id, t FROM app.counted WHERE id > 0 WITH LOCAL CHECK OPTION;
ALTER VIEW app.checked ALTER COLUMN t SET DEFAULT 'it''s';
CREATE FUNCTION app.marks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.t := NEW.t || TG_ARGV[0]; RETURN NEW; END $$;
CREATE DOMAIN few AS INT CHECK (VALUE < 10); CREATE TABLE lists (l few[]); INSERT INTO lists VALUES ('{1,2}');
CREATE FUNCTION of_few(a few, b few[]) RETURNS few LANGUAGE sql AS 'SELECT a';
CREATE FUNCTION with_few(a INT) RETURNS INT LANGUAGE plpgsql AS $$ DECLARE c few := a; BEGIN RETURN c; END $$;
CREATE FUNCTION all_single() RETURNS SETOF single LANGUAGE sql AS 'SELECT * FROM single';
CREATE FUNCTION late_of(n INT, OUT found INT) LANGUAGE sql STABLE AS 'SELECT late FROM v3 WHERE late > n LIMIT 1';
CREATE TRIGGER marks BEFORE INSERT OR UPDATE OF t ON single FOR EACH ROW WHEN (NEW.t <> '') EXECUTE FUNCTION app.marks('it''s', 2);
CREATE TRIGGER instead INSTEAD OF INSERT ON app.checked FOR EACH ROW EXECUTE FUNCTION app.marks('');
CREATE TRIGGER off AFTER DELETE ON app.counted EXECUTE FUNCTION app.marks();
ALTER TABLE app.counted DISABLE TRIGGER off;
SELECT nextval('"Od""d"'), nextval('done'), nextval('done');
"#;

fn sql(directory: &str, statements: &str) -> String {
    done(&finish(command(&["sql", directory, "-q", "--format=csv"]), statements))
}

fn create(folder: &TempDir, name: &str) -> String {
    let directory = path(&folder.path().join(name));
    done(&finish(command(&["create", &directory]), ""));
    directory
}

/// Runs `load` and returns its messages.
#[track_caller]
fn load(directory: &str, dump: &str) -> String {
    let output = finish(command(&["load", directory]), dump);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stderr)
}

#[track_caller]
fn refused(arguments: &[&str], input: &str) -> String {
    let output = finish(command(arguments), input);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    text(&output.stderr)
}

fn dump(directory: &str) -> String {
    done(&finish(command(&["dump", "-p", directory]), ""))
}

#[track_caller]
fn is_sound(directory: &str) {
    let report = done(&finish(command(&["verify", directory]), ""));
    assert!(report.contains("complaints                               none"), "{report}");
}

/// Creates an environment with objects of every kind and a key/value database.
fn with_objects(folder: &TempDir) -> String {
    let directory = create(folder, "first");
    let section = "VERSION=3\nformat=print\ndatabase=key value\ntype=hash\nHEADER=END\n k\n v\\00\nDATA=END\n";
    load(&directory, section);
    sql(&directory, OBJECTS);
    directory
}

#[test]
fn tables_move_with_everything_that_belongs_to_them() {
    let folder = folder();
    let first = with_objects(&folder);
    let whole = dump(&first);
    let second = create(&folder, "second");
    let said = load(&second, &whole);
    assert!(said.starts_with("key value: 1 records\ntable parent: 3 rows\n"), "{said}");
    assert!(said.contains("table My \"Table\": 4 rows\n"), "{said}");
    assert!(said.contains("table app.counted: 2 rows\ntable app.Child: 2 rows\n"), "{said}");
    assert_eq!(dump(&second), whole, "a dump of what was loaded is the dump");
    // Both formats have the same content.
    let hexadecimal = done(&finish(command(&["dump", &first]), ""));
    assert!(hexadecimal.contains("type=sql"), "{hexadecimal}");
    let third = create(&folder, "third");
    load(&third, &hexadecimal);
    assert_eq!(dump(&third), whole);
    let questions = "SELECT * FROM \"My \"\"Table\"\"\"; SELECT * FROM single; SELECT * FROM app.pair; SELECT * FROM v4; SELECT * FROM v3; SELECT * FROM v1; SELECT * FROM counted; SELECT * FROM altered;
        SELECT k FROM keyed ORDER BY k; EXPLAIN SELECT * FROM keyed WHERE k = 7;
        INSERT INTO \"My \"\"Table\"\"\" (n) VALUES (2) RETURNING \"Col,umn\";
        INSERT INTO tree (up) VALUES (4) RETURNING up; DELETE FROM parent WHERE a = 1; SELECT parent_a FROM \"My \"\"Table\"\"\"";
    assert_eq!(sql(&second, questions), sql(&first, questions));
    let questions =
        "SELECT indexdef FROM pg_indexes WHERE indexdef LIKE '% USING gin %' ORDER BY 1";
    let definitions = sql(&first, questions);
    assert!(definitions.contains("jsonb_path_ops") && definitions.contains("english"));
    assert_eq!(sql(&second, questions), definitions);
    is_sound(&second);
    // Sequences continue after the values that were reserved.
    let next = sql(
        &second,
        "SELECT nextval('plain') > 3; INSERT INTO tree (up) VALUES (NULL) RETURNING id > 4",
    );
    assert_eq!(next.matches("\nt\n").count(), 2, "{next}");
    for failing in [
        "SELECT nextval('done')",
        "INSERT INTO \"My \"\"Table\"\"\" (n) VALUES (7)",
        "INSERT INTO \"My \"\"Table\"\"\" (id) VALUES (7)",
        "INSERT INTO keyed VALUES (9, 'five')",
        "INSERT INTO parent VALUES (4, 'p', 'toolong')",
        "UPDATE egg SET hen = 2",
    ] {
        refused(&["sql", &second, "-q", "-c", failing], "");
    }
}

#[test]
fn a_script_makes_the_same_tables() {
    let folder = folder();
    let first = create(&folder, "first");
    // A script cannot hold a key/value database, nor a line `\.` where INSERT cannot set the
    // identity column.
    let refusing = create(&folder, "refusing");
    sql(
        &refusing,
        "CREATE TABLE t (id INT GENERATED ALWAYS AS IDENTITY, t TEXT); INSERT INTO t (t) VALUES (E'\\n\\\\.\\n')",
    );
    assert!(refused(&["dump", "--sql", &refusing], "").contains("GENERATED ALWAYS"));
    let portable =
        OBJECTS.replace("GENERATED ALWAYS AS IDENTITY", "GENERATED BY DEFAULT AS IDENTITY");
    let portable = portable.replace("CREATE VIEW v4 AS SELECT key, value FROM \"key value\";", "");
    sql(&first, &portable);
    let script = done(&finish(command(&["dump", "--sql", &first]), ""));
    assert!(!script.contains("USING HASH (\"c\""), "an index that PostgreSQL refuses: {script}");
    let second = create(&folder, "second");
    let output = finish(
        command(&["sql", &second, "-q"]),
        script.replace("GENERATED ALWAYS AS IDENTITY", "GENERATED BY DEFAULT AS IDENTITY"),
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let questions = "SELECT * FROM \"My \"\"Table\"\"\"; SELECT * FROM single; SELECT * FROM v3; SELECT k FROM keyed ORDER BY k";
    assert_eq!(sql(&second, questions), sql(&first, questions));
    is_sound(&second);
    assert!(refused(&["dump", "--sql", &create(&folder, "empty")], "").contains("no tables"));
}

#[test]
fn a_load_that_collides_says_so_and_changes_nothing() {
    let folder = folder();
    let first = with_objects(&folder);
    let whole = dump(&first);
    let sections = |wanted: &str| {
        let is_wanted = |section: &&str| section.contains(wanted);
        let parts = whole.split_inclusive("DATA=END\n").filter(is_wanted);
        parts.collect::<String>()
    };
    let (records, tables) = (sections("database="), sections("type=sql"));
    let second = create(&folder, "second");
    sql(&second, "CREATE TABLE egg (a INT); INSERT INTO egg VALUES (4)");
    load(
        &second,
        "VERSION=3\nformat=print\ndatabase=single\ntype=btree\nHEADER=END\n k\n v\nDATA=END\n",
    );
    let before = dump(&second);
    let databases = done(&finish(command(&["list", &second]), ""));
    let unchanged = |said: &str| {
        assert!(said.contains("nothing of it was loaded"), "{said}");
        assert_eq!(dump(&second), before, "{said}");
        assert_eq!(done(&finish(command(&["list", &second]), "")), databases, "{said}");
    };
    // An existing table; a table with the name of a database.
    let said = refused(&["load", &second], &whole);
    assert!(said.contains("42P07") && said.contains("egg"), "{said}");
    unchanged(&said);
    let said = refused(&["load", &second], &tables.replace("\"egg\"", "\"ovum\""));
    assert!(said.contains("42P07") && said.contains("single"), "{said}");
    unchanged(&said);
    // An existing database; a database with the name of a table.
    let known = records.replace("key value", "single");
    let said = refused(&["load", &second], &known);
    assert!(said.contains("there is a database \"single\" already"), "{said}");
    unchanged(&said);
    let said = refused(&["load", &second, "egg"], &records);
    assert!(said.contains("a table, view, index or sequence \"egg\""), "{said}");
    unchanged(&said);
    // SQL's databases, named by an old dump or on the command line.
    for name in ["sql.catalog", "sql.1.0", "quickbeam.load.1"] {
        let said = refused(&["load", &second], &records.replace("key value", name));
        assert!(said.contains(name), "{said}");
        unchanged(&said);
        let said = refused(&["load", &second, name], &records);
        unchanged(&said);
    }
    // Sections before a failing one, and a truncated section.
    let said = refused(&["load", &second], &format!("{records}{known}"));
    unchanged(&said);
    for (at, _) in tables.match_indices('\n').step_by(3) {
        let said = refused(&["load", &second], &format!("{records}{}", &tables[..=at]));
        unchanged(&said);
    }
    let said = refused(&["load", &second, "x"], &tables);
    assert!(said.contains("leave out DATABASE"), "{said}");
    unchanged(&said);
    // --add replaces existing records, also atomically.
    let more = format!("{}{}", known.replace(" v\\00", " w"), known.replace("single", "new"));
    let output = finish(command(&["load", "--add", &second]), &more);
    assert_eq!(text(&output.stderr), "single: 1 records\nnew: 1 records\n");
    assert!(dump(&second).contains("database=single\ntype=btree\nHEADER=END\n k\n w\nDATA=END"));
    // A failed load adds no SQL databases to an environment without tables.
    let empty = create(&folder, "empty");
    refused(&["load", &empty], &tables[..tables.len() / 2]);
    assert_eq!(done(&finish(command(&["list", &empty]), "")), "");
}

#[test]
fn a_dump_has_errors_named_by_line_and_reads_no_other_files() {
    let folder = folder();
    let directory = create(&folder, "first");
    let head = "VERSION=3\nformat=print\ntype=sql\nHEADER=END\n";
    let file = path(&folder.path().join("file"));
    let cases = [
        (" CREATE TABLE t (a INT)\n SELEC\nDATA=END\n".to_owned(), "line 6: SELEC: syntax error"),
        (" CREATE TABLE t (a INT)\n COPY \"t\" (\"a\") FROM STDIN WITH (FORMAT csv)\n 1\n x\n \\\\.\nDATA=END\n".to_owned(), "COPY t, line 2, column a: \"x\""),
        (" CREATE TABLE t (a INT)\n COPY \"t\" (\"a\") FROM STDIN WITH (FORMAT csv)\n 1\nDATA=END\n".to_owned(), "line 8: the section ends within rows"),
        (format!(" CREATE TABLE t (a INT)\n COPY t TO '{file}' WITH (FORMAT csv)\nDATA=END\n"), "a dump has its rows in itself"),
        (" COMMIT\nDATA=END\n".to_owned(), "a transaction of the engine is steered through the engine"),
        (" SELECT '\\ff'\nDATA=END\n".to_owned(), "line 5: the statement is not UTF-8"),
    ];
    for (section, expected) in cases {
        let said = refused(&["load", &directory], &format!("{head}{section}"));
        assert!(said.contains(expected), "{expected:?} in {said}");
        assert_eq!(done(&finish(command(&["list", &directory]), "")), "");
    }
    assert!(!folder.path().join("file").exists());
}

#[test]
fn tables_that_do_not_fit_their_indexes_are_found_by_verify() {
    let folder = folder();
    let directory = create(&folder, "first");
    sql(
        &directory,
        "CREATE TABLE t (id INT PRIMARY KEY, n INT); CREATE INDEX t_n ON t (n); INSERT INTO t VALUES (1, 5), (2, 6)",
    );
    is_sound(&directory);
    let environment =
        quickbeam::Environment::open(&directory, quickbeam::Options::default()).expect("it opens");
    let names = environment.databases().expect("there are some");
    let rows = names.iter().find(|name| name.matches('.').count() == 2).expect("the rows");
    let transaction = environment.begin().expect("a transaction");
    let database = transaction.open_database(rows).expect("the rows");
    database.delete(&transaction, &[0x80, 0, 0, 2]).expect("it was there");
    transaction.commit().expect("it commits");
    environment.close().expect("it closes");
    let output = finish(command(&["verify", &directory]), "");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    assert!(
        report.contains("table \"t\", index \"t_n\", (id)=(2): an entry without its row"),
        "{report}"
    );
    let output = finish(command(&["verify", "--json", &directory]), "");
    let report: serde_json::Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
    assert_eq!((&report["sql"]["tables"], &report["sql"]["rows"]), (&1.into(), &1.into()));
}

#[test]
fn salvage_names_the_table_and_the_keys_that_are_lost() {
    let folder = folder();
    let directory = create(&folder, "damaged");
    sql(
        &directory,
        "CREATE TABLE t (id INT PRIMARY KEY, n TEXT);
         CREATE INDEX t_hash ON t USING hash (id);
         CREATE UNIQUE INDEX \"T half\" ON t ((id * 2));
         INSERT INTO t SELECT g, repeat('x', 200) FROM generate_series(1, 2000) g",
    );
    let data = std::path::Path::new(&directory).join("data.quickbeam");
    let mut bytes = std::fs::read(&data).expect("the data file");
    // A leaf in the middle of the table, found by a run of its values.
    let row = bytes.windows(200).enumerate().filter(|(_, w)| w.iter().all(|byte| *byte == b'x'));
    let places: Vec<usize> = row.map(|(at, _)| at).collect();
    bytes[places[places.len() / 2]] = b'y';
    std::fs::write(&data, &bytes).expect("the data file");
    let new = path(&folder.path().join("new"));
    let output =
        finish(command(&["recover", &directory, "--salvage", "--json", "--into", &new]), "");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
    let lost = &report["lost_ranges"][0];
    assert_eq!(lost["table"], "t", "{report}");
    let number = |field: &str| {
        let text = lost[field].as_str().unwrap_or_default();
        text.trim_matches(['(', ')']).parse::<i32>()
    };
    let (from, to) = (number("from_key").expect("a key"), number("to_key").expect("a key"));
    assert!(1 < from && from < to && to < 2000, "{report}");
    let left = sql(&new, "SELECT count(*) FROM t WHERE id < 1 OR id > 0");
    assert!(left.contains(&(2000 - (to - from)).to_string()), "{left}: {report}");
    assert_eq!(report["rebuilt_indexes"].as_array().map(Vec::len), Some(2), "{report}");
    is_sound(&new);
}

#[test]
fn a_script_has_roles_owners_and_rights() {
    const ROLES: &str = r#"
CREATE ROLE readers;
CREATE ROLE "An""na" LOGIN NOINHERIT CONNECTION LIMIT 3 PASSWORD 'secret' VALID UNTIL '2030-01-01 00:00:00+00';
GRANT readers TO "An""na" WITH ADMIN OPTION;
ALTER ROLE "An""na" SET search_path = "Odd one", public;
ALTER ROLE "An""na" SET my.own = '100%, it''s';
ALTER ROLE ALL IN DATABASE quickbeam SET application_name = '100%';
CREATE SCHEMA app AUTHORIZATION "An""na";
CREATE TABLE app.t (id SERIAL PRIMARY KEY, "B b" TEXT);
ALTER TABLE app.t OWNER TO "An""na";
GRANT USAGE ON SCHEMA app TO readers;
GRANT SELECT ON app.t TO readers WITH GRANT OPTION;
GRANT INSERT ON app.t TO readers;
GRANT UPDATE ("B b") ON app.t TO PUBLIC;
SET SESSION AUTHORIZATION readers;
GRANT SELECT ON app.t TO PUBLIC;
RESET SESSION AUTHORIZATION;
CREATE VIEW mine AS SELECT 1 AS one;
REVOKE ALL ON mine FROM quickbeam;
CREATE FUNCTION f(n INT) RETURNS INT LANGUAGE sql AS 'SELECT n';
REVOKE ALL ON FUNCTION f(INT) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION f(INT) TO readers;
GRANT CREATE ON DATABASE quickbeam TO readers;
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO readers;
ALTER DEFAULT PRIVILEGES FOR ROLE "An""na" IN SCHEMA app GRANT USAGE ON SEQUENCES TO readers WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES FOR ROLE "An""na" REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
"#;
    let folder = folder();
    let (first, second) = (create(&folder, "first"), create(&folder, "second"));
    sql(&first, ROLES);
    let script = done(&finish(command(&["dump", "--sql", &first]), ""));
    // A role that is there stays as it is.
    sql(&second, "CREATE ROLE readers");
    sql(&second, &script);
    for questions in [
        "SELECT rolname, rolinherit, rolcanlogin, rolconnlimit, rolvaliduntil, rolpassword FROM pg_authid ORDER BY 1",
        "SELECT member::regrole, roleid::regrole, admin_option FROM pg_auth_members",
        "SELECT setrole <> 0, setdatabase, setconfig FROM pg_db_role_setting ORDER BY 1",
        "SELECT nspname, nspowner::regrole, nspacl FROM pg_namespace ORDER BY 1",
        "SELECT relname, relowner::regrole, relacl FROM pg_class WHERE relkind IN ('r', 'v', 'S') AND relnamespace <> 11 ORDER BY 1",
        "SELECT attname, attacl FROM pg_attribute WHERE attrelid = 'app.t'::regclass ORDER BY 1",
        "SELECT proacl FROM pg_proc WHERE proname = 'f'",
        "SELECT datacl FROM pg_database",
        "SELECT defaclrole::regrole, defaclnamespace <> 0, defaclobjtype, defaclacl FROM pg_default_acl ORDER BY 3",
    ] {
        let answer = sql(&first, questions);
        assert!(answer.lines().count() > 1, "{questions}");
        assert_eq!(sql(&second, questions), answer, "{questions}\n{script}");
    }
    // A dump of what was loaded is the same.
    assert_eq!(done(&finish(command(&["dump", "--sql", &second]), "")), script);
    let third = create(&folder, "third");
    sql(&third, "CREATE ROLE \"only\"");
    let script = done(&finish(command(&["dump", "--sql", &third]), ""));
    assert!(script.contains("CREATE ROLE \"only\""), "{script}");
}
