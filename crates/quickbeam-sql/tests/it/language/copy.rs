//! COPY: what is read and written, errors and what they leave, defaults and constraints, who may.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

use quickbeam::Options;
use quickbeam_sql::{Connection, CopyAccess, CopyPlace, SqlDatabase, params};

/// Files in memory; standard input and output are the one of the name "".
#[derive(Clone, Default)]
struct Files(Arc<Mutex<HashMap<String, Vec<u8>>>>);

fn name(place: &CopyPlace) -> String {
    match place {
        CopyPlace::Standard => String::new(),
        CopyPlace::File(name) => name.clone(),
    }
}

struct Writing(Files, String);

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut files = self.0.0.lock().unwrap();
        files.entry(self.1.clone()).or_default().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl CopyAccess for Files {
    fn reader(&mut self, place: &CopyPlace, _: usize) -> io::Result<Box<dyn Read + '_>> {
        let files = self.0.lock().unwrap();
        let bytes = files.get(&name(place)).cloned();
        let bytes = bytes.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Ok(Box::new(io::Cursor::new(bytes)))
    }

    fn writer(&mut self, place: &CopyPlace, _: usize) -> io::Result<Box<dyn Write + '_>> {
        self.0.lock().unwrap().remove(&name(place));
        Ok(Box::new(Writing(self.clone(), name(place))))
    }
}

impl Files {
    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        self.0.lock().unwrap().insert(name.to_owned(), text.as_ref().to_vec());
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.0.lock().unwrap()[name].clone()).unwrap()
    }
}

fn connect() -> (Connection, Files) {
    let connection = SqlDatabase::open_in_memory(Options::default()).unwrap().connect();
    let files = Files::default();
    connection.set_copy_access(files.clone());
    (connection, files)
}

fn rows(connection: &Connection, query: &str) -> Vec<String> {
    let rows = connection.query(query, &[]).unwrap().collect().unwrap();
    let line = |row: &Vec<quickbeam_sql::Value>| {
        row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|")
    };
    rows.iter().map(line).collect()
}

/// Every type, with values that need care.
const TYPES: &str = "CREATE TABLE types (id INTEGER PRIMARY KEY, b BOOLEAN, s SMALLINT, n NUMERIC(9,3), r REAL, d DOUBLE PRECISION, t TEXT,
    v VARCHAR(5), c CHAR(4), y BYTEA, da DATE, ti TIME, ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, u UUID)";

#[test]
fn what_is_written_reads_back_type_for_type() {
    let (connection, files) = connect();
    connection.execute(TYPES, &[]).unwrap();
    let values = [
        "1, true, -7, 1.5, 0.1, 1e100::DOUBLE PRECISION, 'plain', 'short', 'ab', '\\x00ff', '2026-11-22', '23:59:59.5', '2026-01-02 03:04:05', \
         '2026-01-02 03:04:05+02', '123e4567-e89b-12d3-a456-426614174000'",
        "2, false, 32767, -123456.789, 'NaN', '-Infinity', E'a\"b,c\\nd\\\\.', '', '', '', '4713-01-01 BC', '00:00', 'infinity', '-infinity', \
         '00000000-0000-0000-0000-000000000000'",
        "3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL",
        "4, true, 0, 0, 0, 0, '', ' ', NULL, NULL, NULL, NULL, NULL, NULL, NULL",
    ];
    let values = values.map(|row| row.replace("1e100::", "'1e100'::"));
    for row in &values {
        connection.execute(&format!("INSERT INTO types VALUES ({row})"), &[]).unwrap();
    }
    let before = rows(&connection, "SELECT * FROM types ORDER BY id");
    for options in [
        "FORMAT csv",
        "FORMAT csv, HEADER",
        "FORMAT csv, DELIMITER ';', QUOTE '''', NULL 'nichts'",
        "FORMAT csv, DELIMITER '|', ESCAPE '\\', HEADER true, NULL '\\N'",
    ] {
        let to = format!("COPY types TO 'file' WITH ({options})");
        assert_eq!(connection.execute(&to, &[]).unwrap(), 4, "{options}");
        connection.execute("DELETE FROM types", &[]).unwrap();
        let from = format!("COPY types FROM 'file' WITH ({options})");
        assert_eq!(connection.execute(&from, &[]).unwrap(), 4, "{options}");
        assert_eq!(rows(&connection, "SELECT * FROM types ORDER BY id"), before, "{options}");
    }
    assert!(files.text("file").starts_with("id|b|s|"), "{}", files.text("file"));
}

#[test]
fn one_column_of_nothing_keeps_what_it_is() {
    let (connection, files) = connect();
    connection.execute("CREATE TABLE one (t TEXT)", &[]).unwrap();
    connection.execute("INSERT INTO one VALUES (NULL), (''), ('\\.'), ('x')", &[]).unwrap();
    connection.execute("COPY one TO STDOUT CSV", &[]).unwrap();
    assert_eq!(files.text(""), "\n\"\"\n\"\\.\"\nx\n");
    connection.execute("TRUNCATE one", &[]).unwrap();
    assert_eq!(connection.execute("COPY one FROM STDIN CSV", &[]).unwrap(), 4);
    let found = rows(&connection, "SELECT count(*), count(t), max(t) FROM one");
    assert_eq!(found, ["4|3|x"]);
}

#[test]
fn columns_that_are_not_named_get_their_defaults() {
    let (connection, files) = connect();
    let table = "CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a INTEGER DEFAULT 7, b TEXT, CHECK (a < 100))";
    connection.execute(table, &[]).unwrap();
    files.put("f", "b,a\nx,1\n");
    assert_eq!(connection.execute("COPY t (b, a) FROM 'f' CSV HEADER", &[]).unwrap(), 1);
    files.put("f", "y\n,\n");
    let error = connection.execute("COPY t (b) FROM 'f' CSV", &[]).unwrap_err();
    assert_eq!((error.code(), error.message()), ("22P04", "extra data after last expected column"));
    files.put("f", "y\n\n");
    connection.execute("COPY t (b) FROM 'f' CSV", &[]).unwrap();
    // As in PostgreSQL, COPY may give values even for what is always generated.
    files.put("f", "50,5,z\n");
    connection.execute("COPY t FROM 'f' CSV", &[]).unwrap();
    let found = rows(&connection, "SELECT a, b FROM t ORDER BY id");
    assert_eq!(found, ["1|x", "7|y", "7|NULL", "5|z"]);
    assert_eq!(rows(&connection, "SELECT max(id) FROM t"), ["50"]);
    connection
        .execute("COPY (SELECT b, a FROM t WHERE a = 7 ORDER BY id) TO 'g' CSV", &[])
        .unwrap();
    assert_eq!(files.text("g"), "y,7\n,7\n");
    connection.execute("COPY t (a, b) TO 'g' CSV", &[]).unwrap();
    assert!(files.text("g").starts_with("1,x\n"));
}

#[test]
fn a_bad_line_is_named_and_leaves_nothing() {
    let (connection, files) = connect();
    connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)", &[]).unwrap();
    connection.execute("INSERT INTO parent VALUES (1)", &[]).unwrap();
    let table = "CREATE TABLE t (id INTEGER PRIMARY KEY, a SMALLINT CHECK (a > 0), v VARCHAR(3) NOT NULL, p INTEGER REFERENCES parent)";
    connection.execute(table, &[]).unwrap();
    connection.execute("INSERT INTO t VALUES (100, 1, 'x', NULL)", &[]).unwrap();
    let good = "1,1,a,1\n2,2,b,\n";
    let cases: [(&[u8], &str, &str); 11] = [
        (b"3,x,c,1\n", "22P02", "COPY t, line 3, column a: \"x\""),
        (b"3,40000,c,1\n", "22003", "COPY t, line 3, column a: \"40000\""),
        (b"3,1,c\n", "22P04", "COPY t, line 3"),
        (b"3,1,c,1,9\n", "22P04", "COPY t, line 3"),
        (b"3,1,\"a\nb\",1\n1,1,x,1\n", "23505", "COPY t, line 5"),
        (b"3,1,long,1\n", "22001", "COPY t, line 3, column v: \"long\""),
        (b"3,1,,1\n", "23502", "COPY t, line 3"),
        (b"3,-1,c,1\n", "23514", "COPY t, line 3"),
        // References are checked when all rows are there.
        (b"3,1,c,2\n", "23503", ""),
        (b"3,1,\"c,1\n", "22P04", "COPY t, line 3"),
        (b"3,1,\xff,1\n", "22021", "COPY t, line 3"),
    ];
    for (line, code, context) in cases {
        let context = Some(context).filter(|it| !it.is_empty());
        files.put("", [good.as_bytes(), line].concat());
        let shown = String::from_utf8_lossy(line).into_owned();
        for inside in [false, true] {
            if inside {
                connection.begin().unwrap();
                connection.execute("UPDATE t SET a = 9 WHERE id = 100", &[]).unwrap();
            }
            let error = connection.execute("COPY t FROM STDIN WITH (FORMAT csv)", &[]).unwrap_err();
            assert_eq!((error.code(), error.context()), (code, context), "{shown}: {error}");
            let expected = if inside { "100|9" } else { "100|1" };
            assert_eq!(rows(&connection, "SELECT id, a FROM t"), [expected], "{shown}");
            if inside {
                connection.rollback().unwrap();
            }
        }
    }
    files.put("", good);
    connection.begin().unwrap();
    assert_eq!(connection.execute("COPY t FROM STDIN CSV", &[]).unwrap(), 2);
    connection.rollback().unwrap();
    assert_eq!(rows(&connection, "SELECT id FROM t"), ["100"]);
}

#[test]
fn who_was_given_nothing_may_not_copy() {
    let connection = SqlDatabase::open_in_memory(Options::default()).unwrap().connect();
    connection.execute("CREATE TABLE t (a INTEGER)", &[]).unwrap();
    for copy in ["COPY t FROM '/etc/passwd' CSV", "COPY t TO '/tmp/x' CSV", "COPY t FROM STDIN CSV"]
    {
        assert_eq!(connection.execute(copy, &[]).unwrap_err().code(), "42501", "{copy}");
    }
}

#[test]
fn csv_ends_at_its_mark_and_follows_options_of_columns() {
    let (connection, files) = connect();
    connection.execute("CREATE TABLE t (a INTEGER, b TEXT, c TEXT)", &[]).unwrap();
    files.put("marked", "1,x,y\n2,\"\\.\",\n\\.\nnot a row\n");
    assert_eq!(connection.execute("COPY t FROM 'marked' CSV", &[]).unwrap(), 2);
    let forced = "COPY t FROM 'forced' WITH (FORMAT csv, HEADER MATCH, NULL 'n', FORCE_NULL (b), FORCE_NOT_NULL (c))";
    files.put("forced", "a,b,c\n3,\"n\",n\n");
    assert_eq!(connection.execute(forced, &[]).unwrap(), 1);
    let to = "COPY (SELECT * FROM t ORDER BY a) TO 'out' WITH (FORMAT csv, FORCE_QUOTE *)";
    assert_eq!(connection.execute(to, &[]).unwrap(), 3);
    let expected = "\"1\",\"x\",\"y\"\n\"2\",\"\\.\",\n\"3\",,\"n\"\n";
    assert_eq!(files.text("out"), expected);
    for (header, message) in [
        ("a,b", "wrong number of fields in header line: got 2, expected 3"),
        ("a,x,c", "column name mismatch in header line field 2: got \"x\", expected \"b\""),
        (
            "a,n,c",
            "column name mismatch in header line field 2: got null value (\"n\"), expected \"b\"",
        ),
    ] {
        files.put("forced", format!("{header}\n4,x,y\n"));
        let error = connection.execute(forced, &[]).unwrap_err();
        assert_eq!((error.code(), error.message()), ("22P04", message));
    }
    for (options, code) in [
        ("FROM 'forced' WITH (FORMAT csv, FORCE_QUOTE (a))", "0A000"),
        ("TO 'out' WITH (FORMAT csv, FORCE_NULL (a))", "0A000"),
        ("TO 'out' WITH (FORCE_QUOTE *)", "0A000"),
        ("TO 'out' WITH (FORMAT csv, HEADER MATCH)", "0A000"),
        ("TO 'out' WITH (FORMAT csv, FORCE_QUOTE (nothing))", "42P10"),
    ] {
        let error = connection.execute(&format!("COPY t {options}"), &[]).unwrap_err();
        assert_eq!(error.code(), code, "{options}");
    }
}

#[test]
fn options_of_copy_are_given_once() {
    let (connection, files) = connect();
    connection.execute("CREATE TABLE t (header INTEGER, quote TEXT)", &[]).unwrap();
    files.put("f", "");
    for (copy, repeated) in [
        ("COPY t TO 'f' (FORMAT csv, FORMAT csv)", "FORMAT csv)"),
        ("COPY t TO 'f' WITH (FORMAT csv, HEADER, HEADER false)", "HEADER false"),
        ("COPY t TO 'f' (DELIMITER ',', NULL '', DELIMITER ';')", "DELIMITER ';'"),
        ("COPY t TO 'f' (NULL '', NULL 'x')", "NULL 'x'"),
        ("COPY t TO 'f' (FORMAT csv, QUOTE '\"', ESCAPE '\"', QUOTE '|')", "QUOTE '|'"),
        ("COPY t TO 'f' (FORMAT csv, FORCE_QUOTE (quote), FORCE_QUOTE *)", "FORCE_QUOTE *"),
        ("COPY t FROM 'f' (FREEZE, FREEZE off)", "FREEZE off"),
        ("COPY t FROM 'f' (FORMAT csv, HEADER MATCH, HEADER)", "HEADER)"),
        ("COPY t FROM 'f' (ENCODING 'utf8', ENCODING 'utf8')", "ENCODING 'utf8')"),
        ("COPY (SELECT 1 FROM t) TO 'f' CSV HEADER HEADER", "HEADER"),
        ("COPY t TO 'f' BINARY CSV", "CSV"),
        ("COPY t TO 'f' DELIMITER ',' DELIMITER ';'", "DELIMITER ';'"),
        ("COPY t TO 'f' CSV FORCE QUOTE header, quote FORCE QUOTE quote", "FORCE QUOTE quote"),
        ("COPY t FROM 'f' CSV FORCE NOT NULL quote FORCE NOT NULL header", "FORCE NOT NULL header"),
    ] {
        let error = connection.execute(copy, &[]).unwrap_err();
        let found = (error.code(), error.message());
        assert_eq!(found, ("42601", "conflicting or redundant options"), "{copy}");
        assert_eq!(error.position(), copy.rfind(repeated), "{copy}");
    }
    for copy in [
        "COPY t (header, quote) FROM 'f' (FORMAT csv, HEADER MATCH, ENCODING 'utf8')",
        "COPY t FROM 'f' CSV QUOTE AS '\"' ESCAPE AS '\"' FORCE NOT NULL header, quote NULL 'x'",
        "COPY t TO 'f' (FORMAT csv, FORCE_QUOTE (header, quote), HEADER)",
        "COPY t FROM 'f' CSV HEADER WHERE header IS NULL OR header IS NOT NULL",
    ] {
        files.put("f", "header,quote\n");
        if let Err(error) = connection.execute(copy, &[]) {
            assert_ne!(error.message(), "conflicting or redundant options", "{copy}");
        }
    }
}

#[test]
fn names_in_copy_are_checked_before_its_options() {
    let (connection, _) = connect();
    connection.execute("CREATE TABLE named (id INT, name TEXT)", &[]).unwrap();
    for (statement, code) in [
        ("COPY no_such TO STDOUT (FORMAT nothing)", "42P01"),
        ("COPY named (no_such) TO STDOUT (FORMAT nothing)", "42703"),
        ("COPY named (id, id) TO STDOUT", "42701"),
        ("COPY named (no_such) FROM STDIN (FORMAT csv, FORMAT csv)", "42703"),
        ("COPY named TO STDOUT (FORMAT nothing)", "22023"),
        ("COPY BINARY no_such TO STDOUT", "42P01"),
        // This connection has no binary format.
        ("COPY BINARY named TO STDOUT", "0A000"),
        ("COPY BINARY named TO STDOUT (FORMAT csv)", "42601"),
    ] {
        let error = connection.execute(statement, &[]).unwrap_err();
        assert_eq!(error.code(), code, "{statement}: {error}");
    }
}

#[test]
fn a_mark_within_a_line_is_corrupt_as_in_postgresql() {
    let (connection, files) = connect();
    connection.execute("CREATE TABLE t (a TEXT, b TEXT)", &[]).unwrap();
    files.put("f", "a\tb\\.\nc\td\n\\.\nx\ty\n");
    assert_eq!(connection.execute("COPY t FROM 'f'", &[]).unwrap(), 2);
    files.put("", "a\tb\\.\nc\td\n");
    assert_eq!(connection.execute("COPY t FROM STDIN", &[]).unwrap(), 1);
    files.put("f", "a\tb\nc\\.c\td\n");
    let error = connection.execute("COPY t FROM 'f'", &[]).unwrap_err();
    assert_eq!((error.code(), error.message()), ("22P04", "end-of-copy marker corrupt"));
    assert_eq!(error.context(), Some("COPY t, line 2"));
}

#[test]
fn forms_that_do_not_exist_are_refused() {
    let (connection, _files) = connect();
    connection.execute("CREATE TABLE t (a INTEGER)", &[]).unwrap();
    connection.execute("CREATE VIEW v AS SELECT a FROM t", &[]).unwrap();
    for (copy, code) in [
        ("COPY t FROM 'f'", "58P01"),
        ("COPY t FROM 'f' WITH (QUOTE '|')", "0A000"),
        ("COPY t FROM 'f' WITH (DELIMITER 'n')", "22023"),
        ("COPY t FROM 'f' WITH (DELIMITER '|', NULL 'a|b')", "0A000"),
        ("COPY t FROM 'f' WITH (FORMAT binary)", "0A000"),
        ("COPY t FROM 'f' WITH (FORMAT nonsense)", "22023"),
        ("COPY t FROM 'f' WITH (FORMAT csv, DELIMITER 'ä')", "42601"),
        ("COPY t FROM 'f' WITH (FORMAT csv, QUOTE ',')", "22023"),
        ("COPY t FROM 'f' WITH (FORMAT csv, NULL 'a,b')", "0A000"),
        ("COPY t FROM PROGRAM 'ls' CSV", "0A000"),
        ("COPY t FROM STDOUT CSV", "42601"),
        ("COPY nothing FROM 'f' CSV", "42P01"),
        ("COPY t (b) FROM 'f' CSV", "42703"),
        ("COPY t (a, a) FROM 'f' CSV", "42701"),
        ("COPY v FROM 'f' CSV", "42809"),
        ("COPY v TO 'f' CSV", "42809"),
        ("COPY (SELECT $1) TO 'f' CSV", "0A000"),
        ("COPY t FROM 'f' CSV", "58P01"),
    ] {
        assert_eq!(connection.execute(copy, &[]).unwrap_err().code(), code, "{copy}");
    }
}

#[test]
fn a_copy_is_cancelled_from_another_thread() {
    let (connection, _) = connect();
    connection.execute("CREATE TABLE t (a INTEGER)", &[]).unwrap();
    /// An input without an end, which asks for the cancelling when it was read from.
    struct Endless(quickbeam_sql::Cancel);
    impl Read for Endless {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.0.cancel();
            out.fill(b'\n');
            Ok(out.len())
        }
    }
    impl CopyAccess for Endless {
        fn reader(&mut self, _: &CopyPlace, _: usize) -> io::Result<Box<dyn Read + '_>> {
            Ok(Box::new(Endless(self.0.clone())))
        }
        fn writer(&mut self, _: &CopyPlace, _: usize) -> io::Result<Box<dyn Write + '_>> {
            Err(io::Error::from(io::ErrorKind::PermissionDenied))
        }
    }
    let cancel = connection.cancel_handle();
    connection.set_copy_access(Endless(cancel));
    assert_eq!(connection.execute("COPY t FROM STDIN CSV", &[]).unwrap_err().code(), "57014");
    assert_eq!(connection.execute("COPY t TO STDOUT CSV", &[]).unwrap_err().code(), "42501");
    assert_eq!(rows(&connection, "SELECT count(*) FROM t"), ["0"]);
}

#[test]
fn databases_of_the_engine_are_copied_as_tables() {
    let (connection, files) = connect();
    connection.database().environment().create_database("kv").unwrap();
    files.put("f", "\\x61,\\x62\n\\x00,\n");
    let error = connection.execute("COPY kv FROM 'f' CSV", &[]).unwrap_err();
    assert_eq!(error.code(), "23502");
    files.put("f", "\\x61,\\x62\n\\x00,\"\"\n");
    assert_eq!(connection.execute("COPY kv FROM 'f' CSV", &[]).unwrap(), 2);
    connection.execute("COPY kv TO 'g' CSV", &[]).unwrap();
    assert_eq!(files.text("g"), "\\x00,\\x\n\\x61,\\x62\n");
    let found = connection.query("SELECT value FROM kv WHERE key = $1", params![&b"a"[..]]);
    assert_eq!(found.unwrap().collect().unwrap().len(), 1);
}

#[test]
fn generated_columns_are_neither_read_nor_written() {
    let (connection, files) = connect();
    let table = "CREATE TABLE g (a INT, twice INT GENERATED ALWAYS AS (a * 2) STORED, b TEXT)";
    connection.execute(table, &[]).unwrap();
    files.put("in", "1,x\n2,y\n");
    connection.execute("COPY g FROM 'in' WITH (FORMAT csv)", &[]).unwrap();
    connection.execute("COPY g (a, b) FROM 'in' WITH (FORMAT csv)", &[]).unwrap();
    connection.execute("COPY g TO 'out' WITH (FORMAT csv)", &[]).unwrap();
    assert_eq!(files.text("out"), "1,x\n2,y\n1,x\n2,y\n");
    let sum = connection.query_row("SELECT sum(twice) FROM g", &[], |row| row.get::<i64>(0));
    assert_eq!(sum.unwrap(), 12);
    for text in ["COPY g (a, twice) FROM 'in' WITH (FORMAT csv)", "COPY g (twice) TO 'out'"] {
        assert_eq!(connection.execute(text, &[]).unwrap_err().code(), "42P10", "{text}");
    }
}

/// Rows that are inserted together: the rows by their key, and what became of a bad one.
#[test]
fn rows_inserted_together_are_those_inserted_singly() {
    let (connection, files) = connect();
    let columns = "(id INTEGER PRIMARY KEY, n INTEGER CHECK (n >= 0), \
         twice INTEGER GENERATED ALWAYS AS (2 * n) STORED, t CHAR(3), v VARCHAR(2))";
    connection.execute(&format!("CREATE TABLE together {columns}"), &[]).unwrap();
    connection.execute(&format!("CREATE TABLE singly {columns}"), &[]).unwrap();
    connection.execute("CREATE INDEX by_n ON singly (n)", &[]).unwrap();
    // Keys that ascend, jump back, fall, and fill gaps between others.
    let ascending = 0..8_000_i32;
    let keys = ascending.map(|number| match number {
        0..2_000 => 10 * number,
        2_000..4_000 => 200_000 - number,
        4_000..6_000 => 10 * (number - 4_000) + 1 + number % 9,
        _ => -1 - number * 7_919 % 99_991,
    });
    let mut lines: Vec<String> =
        keys.map(|key| format!("{key}\t{}\té\tb\n", key.unsigned_abs() % 7)).collect();
    files.put("", lines.concat());
    for table in ["together", "singly"] {
        let copied = connection.execute(&format!("COPY {table} (id, n, t, v) FROM STDIN"), &[]);
        assert_eq!(copied.unwrap(), 8_000, "{table}");
    }
    let differing = "SELECT count(*) FROM (TABLE together EXCEPT TABLE singly) d";
    assert_eq!(rows(&connection, differing), ["0"]);
    assert_eq!(rows(&connection, "SELECT DISTINCT t, twice - 2 * n, v FROM together"), ["é  |0|b"]);

    let bad = [
        ("10\t1\ta\tb\n", "23505", "line 7501"),
        ("-1\t-1\ta\tb\n", "23514", "line 7501"),
        ("-1\t1\ta\tlong\n", "22001", "line 7501, column v: \"long\""),
        ("-1\t1\tlong\tb\n", "22001", "line 7501, column t: \"long\""),
        ("\\N\t1\ta\tb\n", "23502", "line 7501"),
    ];
    for (line, state, place) in bad {
        lines.insert(7_500, line.to_owned());
        files.put("", lines.concat());
        lines.remove(7_500);
        for table in ["together", "singly"] {
            connection.execute(&format!("TRUNCATE {table}"), &[]).unwrap();
            let copy = format!("COPY {table} (id, n, t, v) FROM STDIN");
            let error = connection.execute(&copy, &[]).unwrap_err();
            let place = format!("COPY {table}, {place}");
            assert_eq!((error.code(), error.context()), (state, Some(&*place)));
            assert_eq!(rows(&connection, &format!("SELECT count(*) FROM {table}")), ["0"]);
        }
    }
    files.put("", "1\t1\ta\tb\n");
    assert_eq!(connection.execute("COPY together (id, n, t, v) FROM STDIN", &[]).unwrap(), 1);
}

#[test]
fn copy_takes_the_rows_that_where_selects() {
    let (connection, files) = connect();
    connection
        .execute_script("CREATE TABLE w (id INT PRIMARY KEY, v TEXT, n INT DEFAULT 3)")
        .unwrap();
    files.put("in", "1\ta\n2\tb\n3\tc\n4\t\\N\n");
    let copy = |text: &str| connection.execute(text, &[]);
    let filtered = "COPY w (id, v) FROM 'in' WHERE id % 2 = 0 AND n = 3 AND v IS DISTINCT FROM 'x'";
    assert_eq!(copy(filtered).unwrap(), 2);
    copy("COPY (SELECT * FROM w ORDER BY id) TO 'out'").unwrap();
    assert_eq!(files.text("out"), "2\tb\t3\n4\t\\N\t3\n");
    for (text, code) in [
        ("COPY w FROM 'in' WHERE nothing > 1", "42703"),
        ("COPY w FROM 'in' WHERE id", "42804"),
        ("COPY w FROM 'in' WHERE count(*) > 1", "42803"),
        ("COPY w FROM 'in' WHERE id IN (SELECT 1)", "0A000"),
        ("COPY w TO 'out' WHERE id > 1", "42601"),
        ("COPY (INSERT INTO w VALUES (9)) TO 'out'", "0A000"),
        ("COPY (DELETE FROM w WHERE id = 4) TO 'out'", "0A000"),
    ] {
        assert_eq!(copy(text).unwrap_err().code(), code, "{text}");
    }
}

#[test]
fn copy_writes_what_a_change_of_rows_returns() {
    let (connection, files) = connect();
    connection
        .execute_script(
            "CREATE TABLE r (id INT PRIMARY KEY, v TEXT); INSERT INTO r VALUES (1, 'a')",
        )
        .unwrap();
    for (text, written) in [
        (
            "COPY (INSERT INTO r VALUES (2, 'b'), (3, NULL) RETURNING id, v) TO 'out'",
            "2\tb\n3\t\\N\n",
        ),
        ("COPY (UPDATE r SET v = v || '!' WHERE id < 3 RETURNING *) TO 'out' CSV", "1,a!\n2,b!\n"),
        ("COPY (DELETE FROM r WHERE id = 3 RETURNING id) TO 'out'", "3\n"),
        (
            "COPY (WITH x AS (DELETE FROM r WHERE id = 2 RETURNING v) SELECT * FROM x) TO 'out'",
            "b!\n",
        ),
        ("COPY (TABLE r) TO 'out'", "1\ta!\n"),
    ] {
        connection.execute(text, &[]).unwrap();
        assert_eq!(files.text("out"), written, "{text}");
    }
}
