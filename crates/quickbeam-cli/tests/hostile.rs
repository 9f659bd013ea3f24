//! `quickbeam sql` with malformed scripts: a statement is refused whole, and the next one is found.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]
#![cfg(unix)]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Output;

use common::{command, finish, folder, path, text};

const ROWS: &str =
    "CREATE TABLE t (a INTEGER, b TEXT);\nINSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z');\n";
const COUNT: &str = "SELECT count(*) AS rows FROM t;\n";

/// Runs a script in memory. Returns standard output and standard error, which must be UTF-8.
#[track_caller]
fn run(arguments: &[&str], script: &[u8]) -> (String, String) {
    let arguments = [&["sql", "--memory", "-q", "--format=csv"], arguments].concat();
    failed(&finish(command(&arguments), script))
}

#[track_caller]
fn failed(output: &Output) -> (String, String) {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    (text(&output.stdout), text(&output.stderr))
}

/// Returns a script with the table, these bytes, and a count of the rows.
fn around(bytes: &[u8]) -> Vec<u8> {
    [ROWS.as_bytes(), bytes, b"\n", COUNT.as_bytes()].concat()
}

#[test]
fn a_statement_with_malformed_utf8_is_refused_whole() {
    // Each would change the table if a part of it were executed or its end were misplaced.
    let statements: [&[u8]; 12] = [
        b"delete from t\nwhere b = '\xff'\n;",
        b"delete from t where b <> '\xc3';",
        b"delete from t -- \xff\n;",
        b"delete from t /* \xf0\x9f */ ;",
        b"\xfe\ndelete from t;",
        b"delete from t\n\xe2\x82;",
        b"insert into t values (4, '\xc0\xaf');",
        b"insert into t values (4,\n'surrogate \xed\xa0\x80');",
        b"update t set a = NULL where \"\xff;\" = 1;",
        b"delete from t where b <> $\xff$;$\xff$;",
        b"delete from t where b <> E'\\\xff\\';';",
        b"begin \xff; ",
    ];
    for statement in statements {
        let shown = statement.escape_ascii();
        let (output, said) = run(&["--keep-going"], &around(statement));
        assert_eq!(output, "rows\n3\n", "{shown}\n{said}");
        assert_eq!(said.matches("ERROR").count(), 1, "{shown}\n{said}");
        assert!(said.starts_with("quickbeam: standard input:3: ERROR 22021: "), "{shown}\n{said}");
        assert!(said.contains("\nLINE "), "{shown}\n{said}");
        let (output, said) = run(&[], &around(statement));
        assert!(output.is_empty() && said.contains("ERROR 22021"), "{shown}\n{said}");
    }
}

#[test]
fn a_bad_byte_anywhere_in_a_statement_refuses_it() {
    let statement = b"delete from t -- or\nwhere b <> 'q''s' /* ; /* */ */ or \"b\" = E'\\'' ;";
    // A byte within one of these changes the quoting and so the statement's end.
    let pairs: [&[u8]; 7] = [b"--", b" E", b"/*", b"*/", b"E'", b"''", b"\\'"];
    let mut script = ROWS.as_bytes().to_vec();
    // After the first letter, so that the byte belongs to the statement.
    let mut expected = 0;
    for at in (1..statement.len()).filter(|at| !pairs.contains(&&statement[at - 1..=*at])) {
        for bad in [&b"\xff"[..], b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98"] {
            script.extend([&statement[..at], bad, &statement[at..], b"\n"].concat());
            expected += 1;
        }
    }
    script.extend(COUNT.bytes());
    let (output, said) = run(&["--keep-going"], &script);
    assert_eq!(output, "rows\n3\n", "{said}");
    let errors = said.matches("ERROR").count();
    assert_eq!((errors, said.matches("ERROR 22021").count()), (expected, expected), "{said}");
}

#[test]
fn the_place_of_malformed_utf8_is_shown() {
    let (_, said) = run(&[], b"\nSELECT 'gr\xc3\xbcn',\n  'gr\xfcn'\n;");
    let expected = "quickbeam: standard input:2: ERROR 22021: invalid byte sequence for encoding \"UTF8\": 0xfc\n\
        LINE 2:   'gr\u{fffd}n'\n             ^\n";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn malformed_utf8_in_files_and_statements_is_refused() {
    let folder = folder();
    let file = folder.path().join("script.sql");
    // The last statement has no semicolon.
    let script = [around(b"delete from t\nwhere b = '\xff'\n;"), b"delete from t\n\xff".to_vec()];
    std::fs::write(&file, script.concat()).expect("it can be written");
    let (output, said) = run(&["--keep-going", "-f", &path(&file)], b"");
    assert_eq!(output, "rows\n3\n", "{said}");
    assert!(said.contains("script.sql:3: ERROR 22021: ") && said.contains(":7: ERROR 22021: "));

    let (output, said) = run(&["--keep-going"], &around(b"\\d \xff"));
    assert_eq!(output, "rows\n3\n", "{said}");
    assert!(said.contains("standard input:3: ERROR 22021: "), "{said}");

    let mut program = command(&["sql", "--memory", "-q", "--format=csv", "--keep-going", "-c"]);
    program.arg(OsStr::from_bytes(&around(b"delete from t where b = '\xff';")));
    let (output, said) = failed(&finish(program, ""));
    assert_eq!(output, "rows\n3\n", "{said}");
    assert!(said.starts_with("quickbeam: ERROR 22021: "), "{said}");
}

#[test]
fn rows_of_a_malformed_copy_are_not_run_as_statements() {
    for copy in [
        &b"COPY t FROM STDIN CSV /* \xff */;\ndelete from t;\n\\."[..],
        b"COPY t FROM STDIN CSV;\n4,v\n5,\xff\ndelete from t;\n\\.",
    ] {
        let shown = copy.escape_ascii();
        let (output, said) = run(&["--keep-going"], &around(copy));
        assert_eq!(output, "rows\n3\n", "{shown}\n{said}");
        assert!(said.starts_with("quickbeam: standard input:3: ERROR 22021: "), "{shown}\n{said}");
        assert_eq!(said.matches("ERROR").count(), 1, "{shown}\n{said}");
    }
}

#[test]
fn bytes_in_comments_between_statements_are_nobodys() {
    let script = [around(b"-- gr\xfcn\n/* gr\xfcn */"), b"SELECT 1/0;".to_vec()].concat();
    let (output, said) = run(&["--keep-going"], &script);
    assert!(output.starts_with("rows\n3\n"), "{output}");
    assert!(said.starts_with("quickbeam: standard input:6: ERROR 22012"), "{said}");
}
