//! `quickbeam sql` from outside: scripts, pipes, formats, errors, COPY, Ctrl-C.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output};

use common::{command, done, finish, folder, path, text};

/// Returns a command that runs the SQL shell with these arguments.
fn shell(arguments: &[&str]) -> Command {
    command(&[&["sql"], arguments].concat())
}

fn run(arguments: &[&str], input: impl AsRef<[u8]>) -> Output {
    finish(shell(arguments), input)
}

/// Returns standard output and standard error of a run that must fail with exit code 1.
#[track_caller]
fn failed(output: &Output) -> (String, String) {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    (text(&output.stdout), text(&output.stderr))
}

const FRUIT: &str =
    "CREATE TABLE fruit (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price NUMERIC(8,2));
INSERT INTO fruit VALUES (1, 'apple', 1.50),
    (2, 'semi;colon', NULL);\n";

#[test]
fn a_pipe_of_statements_is_answered() {
    let input = format!(
        "{FRUIT}-- a comment; no statement\nSELECT * FROM fruit ORDER BY id; DELETE FROM fruit\nWHERE id = 1"
    );
    let expected = "\
CREATE TABLE
INSERT 0 2
 id | name       | price
----+------------+-------
  1 | apple      |  1.50
  2 | semi;colon |
(2 rows)
DELETE 1
";
    assert_eq!(done(&run(&["--memory"], &input)), expected);
}

#[test]
fn answers_come_as_csv_and_json() {
    let query = "SELECT * FROM fruit ORDER BY id;";
    let input = format!("{FRUIT}{query}");
    let found = done(&run(&["--memory", "--format", "csv"], &input));
    assert_eq!(found, "id,name,price\n1,apple,1.50\n2,semi;colon,\n");
    let found = done(&run(&["--memory", "--format", "json"], &input));
    let found: serde_json::Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!(found[0], serde_json::json!({"id": 1, "name": "apple", "price": 1.5}));
    assert_eq!(found[1]["price"], serde_json::Value::Null);
    let input = format!(
        "{FRUIT}\\format json\nSELECT id FROM fruit;\n\\format csv\nSELECT id FROM fruit;\n"
    );
    let found = done(&run(&["--memory", "--quiet"], &input));
    assert_eq!(found, "[\n{\"id\":1},\n{\"id\":2}\n]\nid\n1\n2\n");
}

#[test]
fn an_answer_that_ends_in_an_error_stays_what_it_is() {
    let late = "SELECT 6 / (3 - n) AS q FROM (VALUES (1), (2), (3), (4)) AS t (n);";
    let (output, said) = failed(&run(&["--memory", "--format=json", "-c", late], ""));
    let found: serde_json::Value = serde_json::from_str(&output).expect("JSON");
    assert_eq!(found, serde_json::json!([{"q": 3}, {"q": 6}]));
    assert!(said.contains("ERROR 22012"), "{said}");
    let (output, _) = failed(&run(&["--memory", "--format=csv", "-c", late], ""));
    assert_eq!(output, "q\n3\n6\n");
    // A query that fails before its first row writes nothing.
    for format in ["--format=json", "--format=csv", "--format=table"] {
        let script = "SELECT 1/0 AS q; SELECT 7 AS n WHERE false;";
        let (output, said) = failed(&run(&["--memory", format, "--keep-going"], script));
        let expected = match format {
            "--format=json" => "[]\n",
            "--format=csv" => "n\n",
            _ => " n\n---\n(0 rows)\n",
        };
        assert_eq!(output, expected, "{said}");
    }
}

#[test]
fn an_error_ends_a_script_and_tells_where() {
    let folder = folder();
    let file = folder.path().join("script.sql");
    let script =
        format!("{FRUIT}\nSELECT 1;\nSELECT id,\n  nothing FROM fruit;\nSELECT 'not reached';\n");
    std::fs::write(&file, script).expect("it can be written");
    let file = path(&file);
    let (output, said) = failed(&run(&["--memory", "-f", &file], ""));
    assert!(output.contains("(1 row)") && !output.contains("not reached"), "{output}");
    assert!(said.starts_with(&format!("quickbeam: {file}:6: ERROR 42703: ")), "{said}");
    assert!(said.contains("LINE 2:   nothing FROM fruit\n          ^\n"), "{said}");

    let (output, said) = failed(&run(&["--memory", "--keep-going", "-f", &file], ""));
    assert!(output.contains("not reached") && said.contains("42703"), "{output}{said}");
    let (_, said) = failed(&run(&["--memory"], "\n\nSELECT 1/0;"));
    assert!(said.contains("standard input:3: ERROR 22012"), "{said}");
    let (_, said) = failed(&run(&["--memory", "-c", "SELECT 'open"], ""));
    assert!(said.contains("ERROR 42601"), "{said}");
    let (_, said) = failed(&run(&["--memory", "-f", "/nowhere/at/all"], ""));
    assert!(said.contains("cannot open /nowhere/at/all"), "{said}");
    let (_, said) = failed(&run(&["--memory"], "\\nonsense\n"));
    assert!(said.contains("standard input:1: there is no command \\nonsense"), "{said}");
    assert_eq!(run(&[], "").status.code(), Some(2), "neither a directory nor --memory");
}

#[test]
fn a_mark_before_a_script_is_no_part_of_it() {
    let folder = folder();
    let file = folder.path().join("script.sql");
    for script in [
        "\u{feff}SELECT 1 AS a;",
        "\u{feff}\\format csv\nSELECT 1 AS a;",
        "\u{feff}\nSELECT 1 AS a",
    ] {
        std::fs::write(&file, script).expect("it can be written");
        for (arguments, input) in [(&["-f", &path(&file)][..], ""), (&[], script)] {
            let arguments = [&["--memory", "--format=csv"], arguments].concat();
            assert_eq!(done(&run(&arguments, input)), "a\n1\n", "{script}");
        }
    }
}

#[test]
fn commands_come_before_files_and_share_the_environment() {
    let folder = folder();
    let directory = path(&folder.path().join("environment"));
    let (_, said) = failed(&run(&[&directory, "-c", "SELECT 1"], ""));
    assert!(said.contains("cannot open") && !Path::new(&directory).exists(), "{said}");
    let (inner, outer) = (folder.path().join("inner.sql"), folder.path().join("outer.sql"));
    std::fs::write(&inner, "INSERT INTO fruit VALUES (3, 'cherry', 3);")
        .expect("it can be written");
    std::fs::write(&outer, format!("\\i {}\nSELECT count(*) AS n FROM fruit;", path(&inner)))
        .expect("it can be written");
    let arguments =
        [&directory, "--create", "-q", "--format=csv", "-f", &path(&outer), "-c", FRUIT];
    assert_eq!(done(&run(&arguments, "")), "n\n3\n");
    // The rows are visible to the next process.
    assert_eq!(
        done(&run(&[&directory, "--format=csv", "-c", "SELECT max(id) FROM fruit"], "")),
        "max\n3\n"
    );
    let (_, said) = failed(&run(&["--memory"], "\\i /nowhere/at/all\nSELECT 1;"));
    assert!(said.contains("standard input:1: cannot open /nowhere/at/all"), "{said}");
    std::fs::write(&inner, format!("\\i {}\n", path(&inner))).expect("it can be written");
    let (_, said) = failed(&run(&["--memory", "-f", &path(&inner)], ""));
    assert!(said.contains("files within each other"), "{said}");
}

#[test]
fn what_was_not_committed_goes_but_not_silently() {
    let folder = folder();
    let directory = path(&folder.path().join("environment"));
    let input = format!("{FRUIT}BEGIN;\nDELETE FROM fruit;\n");
    let (_, said) = failed(&run(&[&directory, "--create"], &input));
    assert!(said.contains("it is rolled back"), "{said}");
    let input = "BEGIN; DELETE FROM fruit WHERE id = 1; SAVEPOINT s; DELETE FROM fruit; ROLLBACK TO s; COMMIT; \\q\nnot reached;";
    done(&run(&[&directory], input.replace("; ", ";\n")));
    assert_eq!(
        done(&run(&[&directory, "--format=csv", "-c", "SELECT id FROM fruit"], "")),
        "id\n2\n"
    );
}

#[test]
fn what_there_is_is_listed_and_described() {
    let folder = folder();
    let directory = path(&folder.path().join("environment"));
    let definitions = "CREATE TABLE parent (a INTEGER, b TEXT, PRIMARY KEY (a, b));
        CREATE TABLE child (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a INTEGER DEFAULT 7, b VARCHAR(9),
            CONSTRAINT small CHECK (a < 10), UNIQUE (b), FOREIGN KEY (a, b) REFERENCES parent ON DELETE CASCADE);
        CREATE INDEX child_ab ON child (a DESC, b);
        CREATE INDEX child_words ON child USING gin (to_tsvector('simple', b));
        CREATE VIEW pair AS SELECT child.id FROM child JOIN parent USING (a);
        CREATE SEQUENCE counter INCREMENT BY 2;";
    done(&run(&[&directory, "--create"], definitions));
    let list = done(&run(&[&directory], "\\d\n\\dt\n\\di\n\\dv\n\\ds\n"));
    for line in
        [" pair         | view     |", " counter      | sequence |", " child_ab    | index | child"]
    {
        assert!(list.contains(line), "{line}\n{list}");
    }
    let table = done(&run(&[&directory], "\\d child"));
    for part in [
        "Table \"child\"\n",
        "id     | bigint ",
        "| not null | generated always as identity\n",
        "| 7\n",
        "\"child_pkey\" PRIMARY KEY, btree (id)",
        "\"child_ab\" btree (a DESC, b)",
        "\"child_b_key\" UNIQUE CONSTRAINT, btree (b)",
        "\"child_words\" gin (to_tsvector('simple', b))",
        "\"small\" CHECK (a < 10)",
        "FOREIGN KEY (a, b) REFERENCES parent (a, b) ON DELETE CASCADE",
    ] {
        assert!(table.contains(part), "{part}\n{table}");
    }
    assert!(
        done(&run(&[&directory], "\\d parent;")).contains("Referenced by:\n    TABLE \"child\"")
    );
    assert!(done(&run(&[&directory], "\\d pair")).contains("SELECT child.id FROM child"));
    assert!(done(&run(&[&directory], "\\d counter")).contains("bigint |     1 |       1 |"));
    assert!(done(&run(&[&directory], "\\d child_ab")).contains("of the table \"child\""));
    let (_, said) = failed(&run(&[&directory], "\\d nobody"));
    assert!(said.contains("there is nothing of the name \"nobody\""), "{said}");
    assert!(done(&run(&[&directory], "\\?")).contains("\\timing"));
    // Definitions of the open transaction are listed.
    let found =
        done(&run(&["--memory"], "BEGIN;\nCREATE TABLE fresh (a INTEGER);\n\\dt\nROLLBACK;\n"));
    assert!(found.contains("fresh"), "{found}");
}

#[test]
fn times_are_told_when_they_are_asked_for() {
    let found =
        done(&run(&["--memory"], "\\timing on\nSELECT 1 AS a;\n\\timing off\nSELECT 1 AS a;\n"));
    assert_eq!(found.matches("Time: ").count(), 1, "{found}");
}

#[test]
fn output_settings_change_how_results_are_written() {
    let query = "SELECT NULL AS a, 'x' AS long_name";
    let script = format!(
        "\\pset null (null)\n{query};\n\\x\n{query};\n\\x off\n\\t on\n{query};\n\\t\n\\pset footer off\n{query}\n\\g\n\\gx\n"
    );
    let expected = " a      | long_name\n--------+-----------\n (null) | x\n(1 row)\n\
        -[ RECORD 1 ]------\na         | (null)\nlong_name | x\n \
        (null) | x\n a      | long_name\n--------+-----------\n (null) | x\n\
        -[ RECORD 1 ]------\na         | (null)\nlong_name | x\n";
    assert_eq!(done(&run(&["--memory"], script)), expected);
    let found = done(&run(&["--memory"], "\\x\nSELECT E'a\\nb' AS c;\nSELECT 1 AS c WHERE false;"));
    assert_eq!(found, "-[ RECORD 1 ]\nc | a\n  | b\n(0 rows)\n");
    let (_, said) = failed(&run(&["--memory"], "\\pset colour red\n"));
    assert!(said.contains("standard input:1: \\pset \"colour\" is unknown"), "{said}");
    assert!(done(&run(&["--memory"], "\\pset\n")).contains("expanded     off\n"));
}

#[test]
fn a_command_may_follow_a_statement_on_its_line() {
    let script = "SELECT 1 AS a \\g\nSELECT 2 AS a\n\\format csv\n;\nSELECT 'a\\g' AS a; SELECT 3\n\\r\nSELECT 4 AS a \\p\n;";
    let found = done(&run(&["--memory"], script));
    assert_eq!(found, " a\n---\n 1\n(1 row)\na\n2\na\na\\g\nSELECT 4 AS a\na\n4\n");
    let found = done(&run(&["--memory", "--format=csv"], "SELECT 1 AS a \\watch 0 c=3\n"));
    assert_eq!(found, "a\n1\na\n1\na\n1\n");
    let (_, said) = failed(&run(&["--memory"], "SELECT 1/0 \\watch 0\n"));
    assert_eq!(said.matches("22012").count(), 1, "{said}");
}

#[test]
fn results_go_to_files_and_statements_through_the_editor() {
    let folder = folder();
    let (all, one) = (path(&folder.path().join("all")), path(&folder.path().join("one")));
    let script = format!(
        "\\o {all}\nSELECT 1 AS a;\nSELECT 2 AS a \\g {one}\n\\qecho end\n\\o\n\\echo here\n\\! echo there\nSELECT 3 AS a;\n"
    );
    let found = done(&run(&["--memory", "--format=csv"], script));
    assert_eq!(found, "here\nthere\na\n3\n");
    assert_eq!(std::fs::read_to_string(all).expect("it was written"), "a\n1\nend\n");
    assert_eq!(std::fs::read_to_string(one).expect("it was written"), "a\n2\n");
    let (_, said) = failed(&run(&["--memory"], "\\o /nowhere/at/all\n"));
    assert!(said.contains("cannot open /nowhere/at/all"), "{said}");

    let mut program = shell(&["--memory", "--format=csv"]);
    program.env("EDITOR", "sed -i s/1/5/").env_remove("VISUAL").env("TMPDIR", folder.path());
    assert_eq!(done(&finish(program, "SELECT 1 AS a\n\\e\n;\n")), "a\n5\n");
}

#[test]
fn commands_of_sqlite3_get_a_hint() {
    let (_, said) = failed(&run(&["--memory"], ".tables\n"));
    assert!(said.contains("use \\dt here"), "{said}");
}

/// Types into the shell in a terminal, each text after its prompt appeared. Returns the terminal's
/// content, or `None` if `script` is not installed.
fn typed(turns: &[(&str, &str)]) -> Option<String> {
    let mut terminal = Command::new("script");
    let program = format!("{} sql --memory", env!("CARGO_BIN_EXE_quickbeam"));
    terminal.args(["-qec", &program, "/dev/null"]).env("TERM", "xterm");
    terminal.env("QUICKBEAM_HISTORY", "").env("QUICKBEAM_PAGER", "sed s/^/paged:/");
    terminal.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut terminal = terminal.spawn().ok()?;
    let mut input = terminal.stdin.take().expect("it has an input");
    let mut output = terminal.stdout.take().expect("it has an output");
    let (mut shown, mut from) = (Vec::new(), 0);
    for (prompt, text) in turns {
        while !String::from_utf8_lossy(&shown[from..]).contains(prompt) {
            let mut byte = [0];
            let is_open = output.read(&mut byte).expect("it writes") == 1;
            assert!(is_open, "no {prompt:?}: {}", String::from_utf8_lossy(&shown));
            shown.push(byte[0]);
        }
        from = shown.len();
        input.write_all(text.as_bytes()).expect("it reads");
    }
    output.read_to_end(&mut shown).expect("it writes");
    assert!(terminal.wait().expect("it ends").success());
    Some(String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn a_terminal_shows_open_statements_and_knows_help_and_quit() {
    // The last characters of the prompt are written after the terminal is ready for input.
    let shown = typed(&[
        ("quickbeam=> \r\x1b[12C", "help\r"),
        ("quickbeam=> \r\x1b[12C", "BEGIN;\r"),
        ("quickbeam=*> \r\x1b[13C", "SELECT 'a\r"),
        ("quickbeam'*> \r\x1b[13C", "b' AS c\r"),
        ("quickbeam-*> \r\x1b[13C", ";\r"),
        ("quickbeam=*> \r\x1b[13C", "ROLLBACK;\r"),
        ("quickbeam=> \r\x1b[12C", "quit\r"),
    ]);
    match shown {
        None => println!("skipped: script is not installed"),
        Some(shown) => {
            assert!(shown.contains("\\timing") && shown.contains("paged:(1 row)"), "{shown}")
        }
    }
}

#[test]
fn rows_are_copied_from_scripts_files_and_pipes() {
    let folder = folder();
    let directory = path(&folder.path().join("environment"));
    let file = path(&folder.path().join("fruit.csv"));
    let script = format!(
        "{FRUIT}COPY fruit FROM STDIN WITH (FORMAT csv);\n3,\"a;\n\\. b\",1\n4,\"\",\n\\.\nSELECT count(*) AS n FROM fruit;\n\
         \\copy fruit to {file} with (format csv, header)\n"
    );
    let found = done(&run(&[&directory, "--create"], &script));
    assert_eq!(found, "CREATE TABLE\nINSERT 0 2\nCOPY 2\n n\n---\n 4\n(1 row)\nCOPY 4\n");
    let written = std::fs::read_to_string(&file).expect("it was written");
    assert_eq!(
        written,
        "id,name,price\n1,apple,1.50\n2,semi;colon,\n3,\"a;\n\\. b\",1.00\n4,\"\",\n"
    );

    done(&run(&[&directory, "-c", "DELETE FROM fruit"], ""));
    let copy = "COPY fruit FROM STDIN WITH (FORMAT csv, HEADER)";
    assert_eq!(done(&run(&[&directory, "-c", copy], &written)), "COPY 4\n");
    let found = done(&run(
        &[&directory, "-c", "COPY (SELECT name FROM fruit WHERE id > 2 ORDER BY id) TO STDOUT CSV"],
        "",
    ));
    assert_eq!(found, "\"a;\n\\. b\"\n\"\"\n");

    // A failed COPY changes nothing, and its rows are not executed.
    let script = "COPY fruit FROM STDIN CSV;\n10,ten,1\n11,eleven,x\n12,twelve,1\n\\.\nSELECT count(*) AS n FROM fruit;\n";
    let (output, said) = failed(&run(&[&directory, "--keep-going"], script));
    assert_eq!(output, " n\n---\n 4\n(1 row)\n");
    assert!(
        said.contains("standard input:1: ERROR 22P02")
            && said.contains("CONTEXT: COPY fruit, line 2, column price: \"x\""),
        "{said}"
    );
    assert_eq!(said.matches("ERROR").count(), 1, "{said}");
    let (_, said) = failed(&run(
        &[&directory, "--keep-going"],
        "COPY fruit FROM STDIN CSV;\n1,x,1\n\\.\nSELECT 1/0;\n",
    ));
    assert!(said.contains("23505") && said.contains("standard input:4: ERROR 22012"), "{said}");
    // The same holds if the COPY fails before it reads a row. Line numbers stay correct, and the
    // rows end at the end of the script at the latest.
    for copy in [
        "COPY nosuch FROM STDIN CSV;",
        "copy fruit (id, nosuch) from stdin csv;",
        "\\copy nosuch from stdin csv",
        "COPY fruit FROM STDIN WITH (FORMAT nonsense);",
    ] {
        let script = format!(
            "{copy}\nDELETE FROM fruit;\n\\.\nSELECT 1/0;\nSELECT count(*) AS n FROM fruit;\n{copy}\nDELETE FROM fruit;\n"
        );
        let (output, said) = failed(&run(&[&directory, "--keep-going", "--format=csv"], &script));
        assert_eq!(output, "n\n4\n", "{copy}\n{said}");
        assert!(said.contains("standard input:4: ERROR 22012"), "{copy}\n{said}");
        assert!(said.contains("standard input:6: ERROR "), "{copy}\n{said}");
        assert_eq!(said.matches("ERROR").count(), 3, "{copy}\n{said}");
    }
    // A COPY that read its rows skips no more; one of the command line reads standard input.
    let script = "COPY fruit FROM STDIN CSV;\n20,x\n\\.\nSELECT count(*) AS n FROM fruit;\n";
    let (output, _) = failed(&run(&[&directory, "--keep-going", "--format=csv"], script));
    assert_eq!(output, "n\n4\n");
    let command = "COPY nosuch FROM STDIN CSV;\nSELECT count(*) AS n FROM fruit;";
    let arguments = [&directory, "--keep-going", "--format=csv", "-c", command];
    assert_eq!(failed(&run(&arguments, "")).0, "n\n4\n");
    let (_, said) = failed(&run(&[&directory, "-c", "COPY fruit FROM '/nowhere/at/all' CSV"], ""));
    assert!(said.contains("ERROR 58P01"), "{said}");
}

#[test]
fn an_interrupt_cancels_the_statement_and_not_the_shell() {
    let mut program = shell(&["--memory", "--keep-going", "-q", "--format=csv"])
        .spawn()
        .expect("the program starts");
    let mut input = program.stdin.take().expect("it has an input");
    let mut output = BufReader::new(program.stdout.take().expect("it has an output"));
    let digits = "(VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9))";
    let joined = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]
        .map(|name| format!("{digits} {name}"));
    let endless = format!("SELECT count(*) FROM {};\n", joined.join(", "));
    input
        .write_all(format!("SELECT 'begun' AS x;\n{endless}SELECT 'after' AS x;\n").as_bytes())
        .expect("it reads");
    let mut line = String::new();
    while !line.contains("begun") {
        line.clear();
        assert!(output.read_line(&mut line).expect("it writes") > 0);
    }
    // A signal before the statement starts would end the program.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let status = Command::new("kill").args(["-INT", &program.id().to_string()]).status();
    assert!(status.expect("there is a kill").success());
    let mut rest = String::new();
    drop(input);
    output.read_to_string(&mut rest).expect("it writes text");
    assert_eq!(rest, "x\nafter\n");
    let ended = program.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        text(&ended.stderr).contains("standard input:2: ERROR 57014"),
        "{}",
        text(&ended.stderr)
    );
}

/// A dump of sqlite3's `.dump`.
const SQLITE: &str = "PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;
CREATE TABLE a(id integer primary key autoincrement, b blob, t text, r real, d datetime);
INSERT INTO a VALUES(5000000000,X'0102',replace('it''s\\n2','\\n',char(10)),1.5,'2026-11-23 15:56:56');
CREATE TABLE untyped(x, k TEXT COLLATE NOCASE PRIMARY KEY) WITHOUT ROWID;
INSERT INTO untyped VALUES(1,'a');
DELETE FROM sqlite_sequence;\nINSERT INTO sqlite_sequence VALUES('a',5000000000);
CREATE INDEX ai on a(t COLLATE NOCASE);
CREATE TRIGGER r AFTER INSERT ON a BEGIN\n  DELETE FROM untyped;\nEND;\nCREATE VIEW v as select t from a;\nCOMMIT;\n";

/// A dump of `pg_dump`.
const POSTGRESQL: &str =
    "--\n-- PostgreSQL database dump\n--\n\n\\restrict abc\n\nSET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
SET xmloption = content;
CREATE SCHEMA app;
CREATE TABLE app.u (\n    id integer\n);
CREATE POLICY p ON app.u USING (true);
CREATE TABLE public.t (\n    id integer NOT NULL,\n    name character varying(20)\n);
ALTER TABLE public.t OWNER TO postgres;\nCOMMENT ON TABLE public.t IS 'a; table';
COPY public.t (id, name) FROM stdin;\n1\tone\\ttab\n2\t\\N\n3\t\n\\.\n
ALTER TABLE ONLY public.t\n    ADD CONSTRAINT t_pkey PRIMARY KEY (id);\n\\unrestrict abc\n";

#[test]
fn lenient_reads_a_dump_of_sqlite3() {
    let more = "INSERT INTO a (t) VALUES ('next') RETURNING id;\nSELECT * FROM untyped;\n";
    let script = format!("{SQLITE}SELECT id, b, t, r, d FROM a;\n{more}SELECT nothing;\n");
    let output = run(&["--memory", "--lenient", "-q", "--format=csv"], &script);
    let (found, said) = failed(&output);
    let row = "5000000000,\\x0102,\"it's\n2\",1.5,2026-11-23 15:56:56";
    let expected = format!("setval\n5000000000\nid,b,t,r,d\n{row}\nid\n5000000001\nx,k\n1,a\n");
    assert_eq!(found, expected, "{said}");
    assert!(said.contains("standard input:1: skipped: PRAGMA foreign_keys=OFF\n"), "{said}");
    assert!(said.ends_with("quickbeam: 4 skipped, 1 failed\n"), "{said}");
}

#[test]
fn lenient_reads_a_dump_of_pg_dump() {
    let script = format!("{POSTGRESQL}SELECT * FROM public.t ORDER BY id;\n");
    let output = run(&["--memory", "--lenient", "-q", "--format=csv"], &script);
    let said = text(&output.stderr);
    assert_eq!(text(&output.stdout), "id,name\n1,one\ttab\n2,\n3,\"\"\n", "{said}");
    assert!(said.ends_with("quickbeam: 4 skipped, 0 failed\n"), "{said}");
    assert_eq!(output.status.code(), Some(0));
    assert!(said.contains("OWNER TO postgres (role \"postgres\" does not exist)"), "{said}");
    assert!(said.contains("skipped: CREATE POLICY p ON app.u USING (true) ("), "{said}");
    let (_, said) = failed(&run(&["--memory"], POSTGRESQL));
    assert!(said.contains("which the option --lenient reads"), "{said}");
}

#[test]
fn variables_are_set_and_replaced() {
    let script = "\\set n 5\n\\set t 'it''s'\nSELECT :n + :m AS n, :'t' AS t;\n\\echo :n :none\n\
                  \\unset n\n\\set\nSELECT :n;\n";
    let output = run(&["--memory", "-q", "--format=csv", "-v", "m=2"], script);
    let (found, said) = failed(&output);
    assert_eq!(found, "n,t\n7,it's\n5 :none\nm = '2'\nt = 'it's'\n");
    assert!(said.contains("there is no parameter :n"), "{said}");
    let keep = "\\set ON_ERROR_STOP off\nSELECT none;\n\\echo on\n\\set ON_ERROR_STOP on\n\
                SELECT none;\n\\echo never\n";
    let (found, _) = failed(&run(&["--memory", "-q"], keep));
    assert_eq!(found, "on\n");
}

#[test]
fn the_environment_and_the_syntax_are_shown() {
    let script = "\\conninfo\n\\l\n\\dn+\n\\h savepoint\n\\h nothing\n";
    let (found, said) = failed(&run(&["--memory", "--keep-going"], script));
    for expected in
        ["connected to the environment in memory", "quickbeam", "public", "SAVEPOINT name"]
    {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    assert!(said.contains("no statement begins with nothing"), "{said}");
}
