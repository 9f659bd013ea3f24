//! Where errors are: statements of every kind, each with the code of its error and the place that
//! must be named.

use quickbeam::Options;
use quickbeam_sql::{Connection, SqlDatabase, SqlError};

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
const CASES: [(&str, &str); 121] = [
    ("SELECT «nothing FROM t", "42703"),
    ("CREATE FUNCTION f(a INT DEFAULT 3 + «) RETURNS INT LANGUAGE sql AS 'SELECT 1'", "42601"),
    ("CREATE FUNCTION f(a INT DEFAULT 3 «4) RETURNS INT LANGUAGE sql AS 'SELECT 1'", "42601"),
    ("SELECT «t.nothing FROM t", "42703"),
    ("SELECT «q.id FROM t", "42P01"),
    ("SELECT «id FROM t JOIN p ON p.id = t.p", "42702"),
    ("SELECT * FROM «nowhere", "42P01"),
    ("SELECT * FROM «public2.t", "42P01"),
    ("SELECT «q.* FROM t", "42P01"),
    ("SELECT «nofunction(id) FROM t", "42883"),
    ("SELECT «abs() FROM t", "42883"),
    ("SELECT «abs('a', 'b') FROM t", "42883"),
    ("SELECT id «+ b FROM t", "42883"),
    ("SELECT (id) /* + */ «+ (b) FROM t", "42883"),
    ("SELECT id * (id «+ b) + 1 FROM t", "42883"),
    ("SELECT id «IN (1, b) FROM t", "42883"),
    ("SELECT id «NOT IN (b) FROM t", "42883"),
    ("SELECT id «BETWEEN b AND 3 FROM t", "42883"),
    ("SELECT id «NOT LIKE b FROM t", "42883"),
    ("SELECT id «IS DISTINCT FROM b FROM t", "42883"),
    ("SELECT id «= ANY (ARRAY[b]) FROM t", "42883"),
    ("SELECT id «IN (SELECT b FROM t) FROM t", "42883"),
    ("SELECT (id + 1)«::DATE FROM t", "42846"),
    ("SELECT NOT «id FROM t", "42804"),
    ("SELECT «-b FROM t", "42883"),
    ("SELECT id FROM t WHERE «id", "42804"),
    ("SELECT id FROM t WHERE b «= 1", "42883"),
    ("SELECT count(*) FROM t WHERE «count(*) > 1", "42803"),
    ("SELECT count(«count(*)) FROM t", "42803"),
    ("SELECT «sum(b) FROM t", "42883"),
    ("SELECT id FROM t GROUP BY «9", "42P10"),
    ("SELECT id FROM t ORDER BY «9", "42P10"),
    ("SELECT id FROM t ORDER BY «nothing", "42703"),
    ("SELECT id FROM t LIMIT «'x'", "22P02"),
    ("SELECT id FROM t LIMIT «id", "42P10"),
    ("SELECT CAST(id AS «nothing) FROM t", "42704"),
    ("SELECT «CAST(true AS DATE)", "42846"),
    ("SELECT «'x'::INTEGER", "22P02"),
    ("SELECT «'2020-13-01'::DATE", "22008"),
    ("SELECT DATE «'2020-02-30'", "22008"),
    ("SELECT «1/0", "22012"),
    ("SELECT «1/(id-1) FROM t", "22012"),
    ("SELECT «99999999999999999999999999999999999999999999::BIGINT", "22003"),
    ("SELECT «2147483647 + 1", "22003"),
    ("SELECT «32768::SMALLINT", "22003"),
    ("SELECT «sqrt(-1)", "2201F"),
    ("SELECT «ln(0)", "2201E"),
    ("SELECT («SELECT id, a FROM t)", "42601"),
    ("SELECT id «IN (SELECT id, a FROM t) FROM t", "42601"),
    ("SELECT substring(«'a' FROM 1 FOR -1)", "22011"),
    ("SELECT * FROM t, «t", "42712"),
    ("SELECT * FROM t AS x, «p AS x", "42712"),
    ("SELECT * FROM t JOIN p ON «t.id", "42804"),
    ("SELECT «rank() FROM t", "42809"),
    ("SELECT id FROM t WHERE «rank() OVER (ORDER BY id) = 1", "42P20"),
    ("SELECT sum(id) OVER «w FROM t", "42704"),
    ("SELECT lag(id, «'x') OVER (ORDER BY id) FROM t", "22P02"),
    ("SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN «1 FOLLOWING AND CURRENT ROW) FROM t", "42P20"),
    ("SELECT (id, a) «= (1, 2, 3) FROM t", "42601"),
    ("SELECT «grouping(a) FROM t GROUP BY id", "42803"),
    ("SELECT DISTINCT ON («id) id FROM t ORDER BY a", "42P10"),
    ("WITH RECURSIVE r AS (SELECT * FROM «r UNION ALL SELECT 1) SELECT 1", "42P19"),
    ("SELECT * FROM «nothing(1)", "42883"),
    ("SELECT CASE WHEN «id THEN 1 END FROM t", "42804"),
    ("SELECT CASE WHEN true THEN 1 ELSE «'x' END", "22P02"),
    ("SELECT coalesce(1, «true)", "42804"),
    ("VALUES (1), («'x')", "22P02"),
    ("INSERT INTO «nowhere VALUES (1)", "42P01"),
    ("INSERT INTO t («nothing) VALUES (1)", "42703"),
    ("INSERT INTO t (id, «id) VALUES (1, 2)", "42701"),
    ("INSERT INTO t VALUES («'x', 1, 1, 'a')", "22P02"),
    ("INSERT INTO t VALUES («true, 1, 1, 'a')", "42804"),
    ("INSERT INTO p VALUES (79, «'toolong', 1)", "22001"),
    ("INSERT INTO p VALUES (79, 'a', «100000)", "22003"),
    ("INSERT INTO t SELECT id, p, a FROM t RETURNING «nothing", "42703"),
    ("INSERT INTO p VALUES (1, 'a', 1) ON CONFLICT (id) DO UPDATE SET «nothing = 1", "42703"),
    ("UPDATE «nowhere SET a = 1", "42P01"),
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
    ("DO «'x'", "42601"),
    ("SELECT «nextval('nowhere')", "42P01"),
    ("SELECT «nextval('t')", "42809"),
    ("«SELEC 1", "42601"),
    ("SELECT FROM «WHERE", "42601"),
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
    ("SELECT 1 «ON; DROP TABLE t", "42601"),
    ("SELECT «\"größe\", 'ä' FROM t", "42703"),
    ("SELECT 'ä',\n  «größe FROM t", "42703"),
];

/// The same of definitions.
#[rustfmt::skip]
const DEFINITIONS: &[(&str, &str)] = &[
    // Names of what is made.
    ("CREATE TABLE «t (a INTEGER)", "42P07"),
    ("CREATE TABLE «v (a INTEGER)", "42P07"),
    ("CREATE TABLE «t_a (a INTEGER)", "42P07"),
    ("CREATE TABLE «other.n (a INTEGER)", "3F000"),
    ("CREATE TABLE IF NOT EXISTS «a123456789a123456789a123456789a123456789a123456789a123456789abcd (a INTEGER)", "42602"),
    ("CREATE TABLE n (a INTEGER, «a123456789a123456789a123456789a123456789a123456789a123456789abcd INTEGER)", "42602"),
    ("CREATE TABLE «t AS SELECT 1 AS a", "42P07"),
    ("SELECT 1 AS a INTO «t", "42P07"),
    ("CREATE INDEX «t_a ON t (b)", "42P07"),
    ("CREATE INDEX «t ON t (b)", "42P07"),
    ("CREATE VIEW «v AS SELECT 1 AS a", "42P07"),
    ("CREATE OR REPLACE VIEW «t AS SELECT 1 AS a", "42P07"),
    ("CREATE VIEW w (a, «a) AS SELECT 1, 2", "42701"),
    ("CREATE SEQUENCE «p_seq", "42P07"),
    // Columns and their types.
    ("CREATE TABLE n (a INTEGER, b «nothing)", "42704"),
    ("CREATE TABLE n (a INTEGER, b «CLOB)", "0A000"),
    ("CREATE TABLE n (a /* CLOB[] */ «CLOB[])", "0A000"),
    ("CREATE TABLE n (a «VARCHAR(0))", "22023"),
    ("CREATE TABLE n (a «NUMERIC(1001))", "22023"),
    ("CREATE TABLE n (a «POINT)", "42704"),
    ("CREATE TABLE n (a INTEGER, b TEXT, «a TEXT)", "42701"),
    ("CREATE TABLE n («a INTEGER NULL NOT NULL)", "42601"),
    ("CREATE TABLE n («a INTEGER DEFAULT 1 DEFAULT 2)", "42601"),
    ("CREATE TABLE n («a INTEGER DEFAULT 1 GENERATED ALWAYS AS IDENTITY)", "42601"),
    ("CREATE TABLE n (a INTEGER GENERATED ALWAYS AS («a) STORED)", "42P17"),
    ("CREATE TABLE n (a «TEXT GENERATED ALWAYS AS IDENTITY)", "22023"),
    ("CREATE SEQUENCE s AS «nothing", "42704"),
    ("CREATE SEQUENCE s INCREMENT 2 AS «TEXT", "22023"),
    ("CREATE SEQUENCE s START «1.5", "22023"),
    // Keys.
    ("CREATE TABLE n (a INTEGER, PRIMARY KEY (a, «b))", "42703"),
    ("CREATE TABLE n (a INTEGER, PRIMARY KEY (a, «a))", "42701"),
    ("CREATE TABLE n (a INTEGER, UNIQUE («b, a))", "42703"),
    ("CREATE TABLE n (a INTEGER, UNIQUE (a, «a))", "42701"),
    ("CREATE TABLE n (a INTEGER, UNIQUE («a DESC))", "0A000"),
    ("CREATE TABLE n (primary_a INTEGER PRIMARY KEY, primary_b INTEGER /* PRIMARY */ «PRIMARY KEY)", "42P16"),
    ("CREATE TABLE n (a INTEGER PRIMARY KEY, b INTEGER, «PRIMARY KEY (b))", "42P16"),
    ("CREATE TABLE n (a INTEGER PRIMARY KEY, b INTEGER, CONSTRAINT k «PRIMARY /* ( */ KEY -- (\n (b))", "42P16"),
    ("CREATE TABLE n (a INTEGER CONSTRAINT «t_a PRIMARY KEY)", "42P07"),
    ("CREATE TABLE n (a INTEGER CONSTRAINT k PRIMARY KEY, CONSTRAINT «k UNIQUE (a))", "42P07"),
    ("CREATE TABLE n (a INTEGER CONSTRAINT k CHECK (a > 0), CONSTRAINT «k UNIQUE (a))", "42710"),
    ("CREATE TABLE n (a INTEGER, CONSTRAINT k CHECK (a > 0), CONSTRAINT «k CHECK (a > 1))", "42710"),
    ("CREATE INDEX ON t (a, «nothing)", "42703"),
    ("CREATE INDEX ON t (lower(«nothing))", "42703"),
    ("CREATE UNIQUE INDEX u ON t («nothing DESC)", "42703"),
    ("CREATE INDEX ON «p_seq (a)", "42809"),
    // Foreign keys.
    ("CREATE TABLE n (a INTEGER REFERENCES «nowhere)", "42P01"),
    ("CREATE TABLE n (a INTEGER REFERENCES «v)", "42809"),
    ("CREATE TABLE n (a INTEGER REFERENCES «d)", "42809"),
    ("CREATE TABLE n (a INTEGER REFERENCES p («nothing))", "42703"),
    ("CREATE TABLE n (a INTEGER REFERENCES n («nothing))", "42703"),
    ("CREATE TABLE n (a INTEGER, FOREIGN KEY («b) REFERENCES p)", "42703"),
    ("CREATE TABLE n (a INTEGER, b INTEGER, FOREIGN KEY (a, «a) REFERENCES p)", "42701"),
    ("CREATE TABLE n (a INTEGER, b INTEGER, FOREIGN KEY (a, b) REFERENCES p (id, «id))", "42701"),
    ("CREATE TABLE n (a INTEGER, FOREIGN KEY (a) REFERENCES «other.p)", "42P01"),
    // CHECK and DEFAULT.
    ("CREATE TABLE n (a INTEGER CHECK (a > 0 AND «b > 1))", "42703"),
    ("CREATE TABLE n (a INTEGER, CHECK (a > 0 OR «t.a = 1))", "42P01"),
    ("CREATE TABLE n (a INTEGER, CHECK («a))", "42804"),
    ("CREATE TABLE n (a INTEGER, CHECK (a = «'x'))", "22P02"),
    ("CREATE TABLE n (a DATE, CHECK (a > DATE «'2020-02-30'))", "22008"),
    ("CREATE TABLE n (a INTEGER, CHECK (a > «nofunction(a)))", "42883"),
    ("CREATE TABLE n (a INTEGER, CHECK («count(*) > 0))", "42803"),
    ("CREATE TABLE n (a INTEGER, CHECK (a > CAST('1' AS «nothing)))", "42704"),
    ("CREATE TABLE n (a INTEGER, CHECK (1 = a «= true))", "42601"),
    ("CREATE TABLE n (a INTEGER, CHECK («a IN (SELECT 1)))", "0A000"),
    ("CREATE TABLE n (a INTEGER, b INTEGER DEFAULT «nothing)", "0A000"),
    ("CREATE TABLE n (a INTEGER, b INTEGER DEFAULT «a)", "0A000"),
    ("CREATE TABLE n (a INTEGER, b INTEGER DEFAULT «'x')", "22P02"),
    ("CREATE TABLE n (a INTEGER, b INTEGER DEFAULT «true)", "42804"),
    ("CREATE TABLE n (a VARCHAR(3) DEFAULT «'toolong')", "22001"),
    ("CREATE TABLE n (a INTEGER DEFAULT («SELECT 1))", "0A000"),
    ("CREATE TABLE n (a INTEGER DEFAULT «$1)", "42P02"),
    ("CREATE TABLE n (a INTEGER DEFAULT «nextval('nowhere'))", "42P01"),
    // ALTER TABLE.
    ("ALTER TABLE «nowhere ADD COLUMN c INTEGER", "42P01"),
    ("ALTER TABLE «v ADD COLUMN c INTEGER", "42809"),
    ("ALTER TABLE IF EXISTS «v ADD COLUMN c INTEGER", "42809"),
    ("ALTER TABLE «d ADD COLUMN c INTEGER", "42809"),
    ("ALTER TABLE t ADD COLUMN «a INTEGER", "42701"),
    ("ALTER TABLE t ADD COLUMN c INTEGER, ADD COLUMN «c INTEGER", "42701"),
    ("ALTER TABLE t ADD COLUMN c «nothing", "42704"),
    ("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT «'x'", "22P02"),
    ("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 5 + «1/0", "22012"),
    ("ALTER TABLE t ADD COLUMN c INTEGER CHECK («nothing > 0)", "42703"),
    ("ALTER TABLE t ADD COLUMN c INTEGER REFERENCES «nowhere", "42P01"),
    ("ALTER TABLE t ADD COLUMN c INTEGER «PRIMARY KEY", "42P16"),
    ("ALTER TABLE t DROP COLUMN «nothing", "42703"),
    ("ALTER TABLE t DROP COLUMN b, DROP COLUMN «b", "42703"),
    ("ALTER TABLE t ALTER COLUMN «nothing SET NOT NULL", "42703"),
    ("ALTER TABLE t ALTER COLUMN «nothing DROP DEFAULT", "42703"),
    ("ALTER TABLE t ALTER COLUMN a SET DEFAULT «'x'", "22P02"),
    ("ALTER TABLE t ALTER COLUMN a SET DEFAULT «nothing", "0A000"),
    ("ALTER TABLE t ALTER COLUMN «nowhere TYPE BIGINT", "42703"),
    ("ALTER TABLE t ADD CHECK (a > «nothing)", "42703"),
    ("ALTER TABLE t ADD CHECK («a)", "42804"),
    ("ALTER TABLE t ADD «PRIMARY KEY (a)", "42P16"),
    ("ALTER TABLE t ADD CONSTRAINT c «PRIMARY KEY (a)", "42P16"),
    ("ALTER TABLE i ADD UNIQUE (x, «nothing)", "42703"),
    ("ALTER TABLE i ADD CONSTRAINT «t_a UNIQUE (x)", "42P07"),
    ("ALTER TABLE t ADD CONSTRAINT «t_p_fkey CHECK (a > 0)", "42710"),
    ("ALTER TABLE t ADD FOREIGN KEY («nothing) REFERENCES p", "42703"),
    ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES «nowhere", "42P01"),
    ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p («nothing)", "42703"),
    ("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES t («nothing)", "42703"),
    ("ALTER TABLE t DROP CONSTRAINT «nothing", "42704"),
    // Names of what is dropped, emptied or begun again.
    ("DROP TABLE p, «nowhere", "42P01"),
    ("DROP TABLE «v", "42809"),
    ("DROP TABLE IF EXISTS «v", "42809"),
    ("DROP TABLE «d", "42809"),
    ("DROP VIEW «nowhere", "42P01"),
    ("DROP VIEW v, «t", "42809"),
    ("DROP INDEX «nowhere", "42704"),
    ("DROP INDEX «t", "42809"),
    ("DROP SEQUENCE «nowhere", "42P01"),
    ("DROP SEQUENCE «t", "42809"),
    ("TRUNCATE t, «nowhere", "42P01"),
    ("TRUNCATE «v", "42809"),
    ("TRUNCATE «d", "42809"),
    ("ALTER SEQUENCE «nowhere RESTART", "42P01"),
    ("ALTER SEQUENCE «t RESTART WITH 5", "42809"),
    // Queries in definitions.
    ("CREATE VIEW w AS SELECT id FROM t JOIN «nowhere ON true", "42P01"),
    ("CREATE VIEW w AS SELECT id FROM t WHERE a = «$1", "42P02"),
    ("CREATE VIEW w (a, «b) AS SELECT 1", "42601"),
    ("CREATE VIEW w AS WITH c AS (SELECT 1), «c AS (SELECT 2) SELECT 3", "42712"),
    ("CREATE TABLE n AS SELECT id, «'x'::DATE FROM t", "22007"),
    ("CREATE TABLE n AS SELECT id, «1/(id-1) FROM t", "22012"),
    ("WITH c AS (SELECT 1), d AS (SELECT 2), «C AS (SELECT 3) SELECT 4", "42712"),
    // Types and operators without a place of their own in the parser's tree.
    ("SELECT CAST(now() AS «CLOB)", "0A000"),
    ("SELECT id::TEXT::«CLOB FROM t", "0A000"),
    ("SELECT CAST(CAST(id AS TEXT) AS -- AS CLOB\n «CLOB) FROM t", "0A000"),
    ("SELECT 1 = 2 /* = */ «= - /* = */ 3", "42601"),
    ("SELECT a <= 2 «<> (3) FROM t", "42601"),
];

fn connect() -> Connection {
    let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
    database.environment().create_database("d").unwrap();
    let connection = database.connect();
    connection.execute_script(SETUP).unwrap();
    connection
}

fn found(error: &SqlError) -> (&'static str, Option<usize>) {
    (error.code(), error.position())
}

#[test]
fn every_kind_of_statement_says_where_its_error_is() {
    let connection = connect();
    for &(marked, code) in CASES.iter().chain(DEFINITIONS) {
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
