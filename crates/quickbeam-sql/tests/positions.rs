//! Where errors are: statements of every kind, each with the code of its error and the place that must be named.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use quickbeam::Options;
use quickbeam_sql::{Connection, Database, SqlError};

const SETUP: &str = "
    CREATE TABLE p (id INTEGER PRIMARY KEY, name VARCHAR(4) UNIQUE, n NUMERIC(6,2) CHECK (n < 1000));
    CREATE TABLE t (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p ON UPDATE CASCADE, a SMALLINT NOT NULL, b TEXT);
    CREATE INDEX t_a ON t (a, b DESC);
    CREATE VIEW v AS SELECT t.id, p.name FROM t JOIN p ON p.id = t.p;
    CREATE SEQUENCE p_seq;
    CREATE TABLE i (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x INTEGER);
    INSERT INTO p VALUES (1, 'one', 1), (2, 'two', 2.5), (3, NULL, NULL);
    INSERT INTO t VALUES (1, 1, 10, 'x'), (2, 1, 20, NULL), (3, 2, 30, 'y'), (4, NULL, 40, 'z')";

/// Statements with the place of their error marked by «, and its code.
#[rustfmt::skip]
const CASES: [(&str, &str); 104] = [
    ("SELECT «nothing FROM t", "42703"),
    ("SELECT «t.nothing FROM t", "42703"),
    ("SELECT «q.id FROM t", "42P01"),
    ("SELECT «id FROM t JOIN p ON p.id = t.p", "42702"),
    ("SELECT * FROM «nowhere", "42P01"),
    ("SELECT * FROM «public2.t", "42P01"),
    ("SELECT * FROM «p_seq", "42809"),
    ("SELECT «q.* FROM t", "42P01"),
    ("SELECT «nofunction(id) FROM t", "42883"),
    ("SELECT «abs() FROM t", "42883"),
    ("SELECT «abs('a', 'b') FROM t", "42883"),
    ("SELECT «id + b FROM t", "42883"),
    ("SELECT NOT «id FROM t", "42804"),
    ("SELECT -«b FROM t", "42883"),
    ("SELECT id FROM t WHERE «id", "42804"),
    ("SELECT id FROM t WHERE «b = 1", "42883"),
    ("SELECT count(*) FROM t WHERE «count(*) > 1", "42803"),
    ("SELECT count(«count(*)) FROM t", "42803"),
    ("SELECT «sum(b) FROM t", "42883"),
    ("SELECT id FROM t GROUP BY «9", "42P10"),
    ("SELECT id FROM t ORDER BY «9", "42P10"),
    ("SELECT id FROM t ORDER BY «nothing", "42703"),
    ("SELECT id FROM t LIMIT «'x'", "22P02"),
    ("SELECT id FROM t LIMIT «id", "42703"),
    ("SELECT CAST(id AS «nothing) FROM t", "42704"),
    ("SELECT CAST(«true AS DATE)", "42846"),
    ("SELECT «'x'::INTEGER", "22P02"),
    ("SELECT «'2020-13-01'::DATE", "22008"),
    ("SELECT DATE «'2020-02-30'", "22008"),
    ("SELECT «1/0", "22012"),
    ("SELECT «1/(id-1) FROM t", "22012"),
    ("SELECT «99999999999999999999999999999999999999999999::BIGINT", "22003"),
    ("SELECT «2147483647 + 1", "22003"),
    ("SELECT «32768::SMALLINT", "22003"),
    ("SELECT «sqrt(-1)", "2201F"),
    ("SELECT «ln(0)", "42883"),
    ("SELECT («SELECT id, a FROM t)", "42601"),
    ("SELECT «id IN (SELECT id, a FROM t) FROM t", "42601"),
    ("SELECT substring(«'a' FROM 1 FOR -1)", "22011"),
    ("SELECT * FROM t, «t", "42712"),
    ("SELECT * FROM t AS x, «p AS x", "42712"),
    ("SELECT * FROM t JOIN p ON «t.id", "42804"),
    ("SELECT «rank() OVER (ORDER BY id) FROM t", "0A000"),
    ("SELECT CASE WHEN «id THEN 1 END FROM t", "42804"),
    ("SELECT CASE WHEN true THEN 1 ELSE «'x' END", "22P02"),
    ("SELECT coalesce(1, «true)", "42804"),
    ("VALUES (1), («'x')", "22P02"),
    ("INSERT INTO «nowhere VALUES (1)", "42P01"),
    ("INSERT INTO «v VALUES (1)", "42809"),
    ("INSERT INTO t («nothing) VALUES (1)", "42703"),
    ("INSERT INTO t (id, «id) VALUES (1, 2)", "42701"),
    ("INSERT INTO t VALUES («'x', 1, 1, 'a')", "22P02"),
    ("INSERT INTO t VALUES («true, 1, 1, 'a')", "42804"),
    ("INSERT INTO p VALUES (79, «'toolong', 1)", "22001"),
    ("INSERT INTO p VALUES (79, 'a', «100000)", "22003"),
    ("INSERT INTO t SELECT id, p, a FROM t RETURNING «nothing", "42703"),
    ("INSERT INTO p VALUES (1, 'a', 1) ON CONFLICT (id) DO UPDATE SET «nothing = 1", "42703"),
    ("UPDATE «nowhere SET a = 1", "42P01"),
    ("UPDATE «v SET id = 1", "42809"),
    ("UPDATE t SET «nothing = 1", "42703"),
    ("UPDATE t SET a = «nothing", "42703"),
    ("UPDATE t SET a = «'x'", "22P02"),
    ("UPDATE t SET a = «true", "42804"),
    ("UPDATE t SET a = 1, «a = 2", "42601"),
    ("UPDATE t SET a = «count(*)", "42803"),
    ("UPDATE t SET a = «99999", "22003"),
    ("UPDATE t SET a = 1 WHERE «nothing = 1", "42703"),
    ("UPDATE t SET a = 1 RETURNING «nothing", "42703"),
    ("UPDATE i SET «id = 1", "428C9"),
    ("DELETE FROM «nowhere", "42P01"),
    ("DELETE FROM «v", "42809"),
    ("DELETE FROM t WHERE «nothing = 1", "42703"),
    ("DELETE FROM t WHERE «id", "42804"),
    ("DELETE FROM t RETURNING «nothing", "42703"),
    ("CREATE TABLE n AS SELECT «nothing FROM t", "42703"),
    ("CREATE INDEX ON «nowhere (a)", "42P01"),
    ("CREATE INDEX ON «v (id)", "42809"),
    ("CREATE VIEW w AS SELECT «nothing FROM t", "42703"),
    ("BEGIN ISOLATION LEVEL «READ UNCOMMITTED2", "42601"),
    ("COPY t («nothing) FROM STDIN CSV", "42703"),
    ("COPY t FROM STDIN WITH («nonsense)", "42601"),
    ("COPY t FROM STDIN WITH (DELIMITER «'ab', FORMAT csv)", "42601"),
    ("COPY «v FROM STDIN CSV", "42809"),
    ("EXPLAIN SELECT «nothing FROM t", "42703"),
    ("EXPLAIN ANALYZE SELECT «nothing FROM t", "42703"),
    ("EXPLAIN VERBOSE2 «SELECT 1", "42601"),
    ("«DO 'x'", "42601"),
    ("SELECT «nextval('nowhere')", "42P01"),
    ("SELECT «nextval('t')", "42P01"),
    ("«SELEC 1", "42601"),
    ("SELECT FROM «WHERE", "42P01"),
    ("SELECT (1«", "42601"),
    ("INSERT t«", "42601"),
    ("UPDATE SET«", "42601"),
    ("DELETE t «WHERE", "42601"),
    ("CREATE TABLE«", "42601"),
    ("CREATE«", "42601"),
    ("DROP«", "42601"),
    ("ALTER TABLE t«", "42601"),
    ("SELECT «'a", "42601"),
    ("SELECT 1; «SELECT 2", "42601"),
    ("SELECT 1 «END; DROP TABLE t", "42601"),
    ("SELECT «\"größe\", 'ä' FROM t", "42703"),
    ("SELECT 'ä',\n  «größe FROM t", "42703"),
];

fn connect() -> Connection {
    let mut connection = Database::memory(Options::default()).unwrap().connect();
    connection.execute_script(SETUP).unwrap();
    connection
}

fn found(error: &SqlError) -> (&'static str, Option<usize>) {
    (error.code(), error.position())
}

#[test]
fn every_kind_of_statement_says_where_its_error_is() {
    let mut connection = connect();
    for (marked, code) in CASES {
        let statement = marked.replace('«', "");
        // What comes before moves the place, however it is written.
        for before in ["", "\n\t", "/* größe;\n */ -- ö\n"] {
            let text = format!("{before}{statement}");
            let place = before.len() + marked.find('«').unwrap();
            let result = connection.query(&text, &[]).and_then(|rows| rows.collect());
            let error = result.err().unwrap_or_else(|| panic!("{text} is no error"));
            assert_eq!(found(&error), (code, Some(place)), "{text}: {error}");
        }
        if statement.contains(';') {
            continue;
        }
        let before = "SELECT 'ö;' ; /* ; */ ";
        let script = format!("{before}{statement}");
        let error = connection.execute_script(&script).unwrap_err();
        let place = before.len() + marked.find('«').unwrap();
        assert_eq!(found(&error), (code, Some(place)), "{script}: {error}");
        let characters = script[..place].chars().count();
        assert_eq!(error.character_position(&script), Some(characters + 1), "{script}");
    }
}
