//! Queries: joins, groups, order, subqueries, set operations, NULLs; and that the plan is the one
//! meant.

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value, params};

fn connect() -> Connection {
    let options = Options::new().durability(Durability::InMemory);
    SqlDatabase::open_in_memory(options).unwrap().connect()
}

fn ask(connection: &Connection, text: &str) -> String {
    let rows = match connection.query(text, &[]).and_then(|rows| rows.collect()) {
        Ok(rows) => rows,
        Err(error) => return format!("error {} {}", error.code(), error.message()),
    };
    let rows =
        rows.iter().map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    rows.collect::<Vec<_>>().join("; ")
}

fn plan(connection: &Connection, text: &str) -> String {
    let lines = connection.query(&format!("EXPLAIN {text}"), &[]).unwrap().collect().unwrap();
    lines.iter().map(|line| line[0].to_string()).collect::<Vec<_>>().join("\n")
}

/// People and what they ordered; some ordered nothing, one order has no customer.
fn shop() -> Connection {
    let c = connect();
    c.execute_script(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city CHAR(6), boss INTEGER);
         CREATE TABLE orders (id INTEGER PRIMARY KEY, person INTEGER, amount NUMERIC(8,2), day DATE);
         CREATE INDEX orders_person ON orders (person);
         CREATE UNIQUE INDEX person_name ON person (name);
         INSERT INTO person VALUES (1, 'ann', 'Rome', NULL), (2, 'bob', 'Oslo', 1), (3, 'cat', 'Rome', 1), (4, 'dan', NULL, 2);
         INSERT INTO orders VALUES (10, 1, 5.50, '2026-01-01'), (11, 1, 7, '2026-01-02'), (12, 2, 1.25, '2026-01-03'),
           (13, NULL, 100, '2026-01-04'), (14, 3, NULL, '2026-01-05');",
    )
    .unwrap();
    c
}

#[test]
fn queries_answer() {
    let c = shop();
    for (text, expected) in [
        (
            "SELECT p.name, o.amount FROM person p JOIN orders o ON o.person = p.id ORDER BY o.id",
            "ann 5.50; ann 7.00; bob 1.25; cat NULL",
        ),
        (
            "SELECT p.name, count(o.id), sum(o.amount) FROM person p LEFT JOIN orders o ON o.person = p.id GROUP BY p.name ORDER BY 1",
            "ann 2 12.50; bob 1 1.25; cat 1 NULL; dan 0 NULL",
        ),
        (
            "SELECT o.id, p.name FROM person p RIGHT JOIN orders o ON o.person = p.id ORDER BY o.id DESC LIMIT 2",
            "14 cat; 13 NULL",
        ),
        (
            "SELECT p.id, o.id FROM person p FULL JOIN orders o ON o.person = p.id WHERE p.id IS NULL OR o.id IS NULL ORDER BY 1",
            "4 NULL; NULL 13",
        ),
        (
            "SELECT a.name, b.name FROM person a, person b WHERE a.boss = b.id ORDER BY a.id",
            "bob ann; cat ann; dan bob",
        ),
        ("SELECT name FROM person WHERE city = 'Rome' ORDER BY name DESC", "cat; ann"),
        ("SELECT name FROM person WHERE city = 'Rome  '", "ann; cat"),
        ("SELECT name FROM person WHERE city <> 'Rome' OR city IS NULL ORDER BY id", "bob; dan"),
        ("SELECT city, count(*) FROM person GROUP BY city HAVING count(*) > 1", "Rome   2"),
        ("SELECT DISTINCT city FROM person ORDER BY city", "Oslo  ; Rome  ; NULL"),
        ("SELECT DISTINCT city FROM person ORDER BY city DESC NULLS LAST", "Rome  ; Oslo  ; NULL"),
        ("SELECT name FROM person ORDER BY boss NULLS FIRST, id DESC OFFSET 1", "cat; bob; dan"),
        ("SELECT name FROM person WHERE id IN (SELECT person FROM orders)", "ann; bob; cat"),
        ("SELECT name FROM person WHERE id NOT IN (SELECT person FROM orders)", ""),
        (
            "SELECT name FROM person p WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.person = p.id)",
            "dan",
        ),
        (
            "SELECT name, (SELECT max(amount) FROM orders o WHERE o.person = p.id) FROM person p ORDER BY id",
            "ann 7.00; bob 1.25; cat NULL; dan NULL",
        ),
        (
            "SELECT (SELECT id FROM orders)",
            "error 21000 more than one row returned by a subquery used as an expression",
        ),
        (
            "SELECT name FROM person WHERE id > ALL (SELECT person FROM orders WHERE person IS NOT NULL)",
            "dan",
        ),
        (
            "SELECT x.city, x.n FROM (SELECT city, count(*) AS n FROM person GROUP BY city) x WHERE x.n = 1 ORDER BY 1",
            "Oslo   1; NULL 1",
        ),
        ("WITH big AS (SELECT * FROM orders WHERE amount > 5) SELECT count(*) FROM big", "3"),
        ("SELECT 1 UNION SELECT 2 UNION SELECT 1 ORDER BY 1", "1; 2"),
        ("SELECT 1 UNION ALL SELECT 1.5", "1; 1.5"),
        ("SELECT id FROM person EXCEPT SELECT person FROM orders", "4"),
        ("SELECT id FROM person INTERSECT SELECT person FROM orders ORDER BY 1 DESC", "3; 2; 1"),
        ("VALUES (1, 'a'), (2, NULL) ORDER BY 1 DESC", "2 NULL; 1 a"),
        (
            "SELECT count(*), count(person), count(DISTINCT person), avg(amount), min(day), max(day) FROM orders",
            "5 4 3 28.4375000000000000 2026-01-01 2026-01-05",
        ),
        ("SELECT sum(amount) FROM orders WHERE id > 100", "NULL"),
        ("SELECT count(*) FILTER (WHERE amount > 5) FROM orders", "3"),
        (
            "SELECT CASE WHEN amount > 5 THEN 'big' WHEN amount IS NULL THEN 'none' ELSE 'small' END FROM orders ORDER BY id",
            "big; big; small; big; none",
        ),
        (
            "SELECT COALESCE(boss, -1), NULLIF(id, 2) FROM person ORDER BY id LIMIT 2",
            "-1 1; 1 NULL",
        ),
        ("SELECT day + 1, day - DATE '2025-12-31' FROM orders WHERE id = 10", "2026-01-02 1"),
        ("SELECT 7 / 2, -7 / 2, 7 % 3, 7.0 / 2, 2 * 1.5", "3 -3 1 3.5000000000000000 3.0"),
        (
            "SELECT NULL = NULL, NULL IS NULL, 1 IS DISTINCT FROM NULL, NOT NULL::BOOLEAN",
            "NULL t t NULL",
        ),
        ("SELECT name FROM person WHERE id = 2.0", "bob"),
        ("SELECT name FROM person WHERE id < 2.5 ORDER BY id", "ann; bob"),
        ("SELECT name FROM person WHERE id = 99999999999", ""),
        ("SELECT count(*) FROM person WHERE id < 99999999999", "4"),
        ("SELECT min(id), max(id) FROM person", "1 4"),
        ("SELECT max(id) FROM orders", "14"),
        ("SELECT min(person) FROM orders", "1"),
        ("SELECT name FROM person JOIN orders USING (id)", ""),
        ("SELECT name FROM person LIMIT 0", ""),
        ("SELECT name FROM person LIMIT -1", "error 2201W LIMIT must not be negative"),
        (
            "SELECT upper(substr(name, 1, 1)) || substring(name FROM 2) FROM person WHERE name LIKE '_o%'",
            "Bob",
        ),
    ] {
        assert_eq!(ask(&c, text), expected, "{text}\n{}", plan(&c, "SELECT 1"));
    }
}

#[test]
fn changes_of_many_rows() {
    let c = shop();
    for (text, expected) in [
        ("UPDATE person SET id = id + 1 RETURNING id", "error 23505"),
        ("UPDATE person SET id = id + 10 WHERE id > 2 RETURNING id, name", "13 cat; 14 dan"),
        (
            "UPDATE orders SET amount = amount + 1 FROM person p WHERE p.id = orders.person AND p.name = 'ann'",
            "",
        ),
        ("SELECT id, amount FROM orders WHERE person = 1", "10 6.50; 11 8.00"),
        (
            "DELETE FROM orders USING person p WHERE p.id = person AND p.name = 'bob' RETURNING orders.id",
            "12",
        ),
        ("INSERT INTO orders SELECT id + 100, person, amount, day FROM orders", ""),
        ("SELECT count(*) FROM orders", "8"),
        ("INSERT INTO person VALUES (1, 'x', 'y', 1) ON CONFLICT DO NOTHING", ""),
        (
            "INSERT INTO person VALUES (1, 'eve', 'y', 1), (5, 'fay', 'z', 1) ON CONFLICT (id) DO UPDATE SET name = excluded.name, boss = person.id + 6 RETURNING id, name, boss",
            "1 eve 7; 5 fay 1",
        ),
        ("INSERT INTO person VALUES (6, 'eve', 'y', 1) ON CONFLICT (id) DO NOTHING", "error 23505"),
        ("UPDATE orders SET id = id + 1000", ""),
        ("SELECT min(id), max(id), count(*) FROM orders", "1010 1114 8"),
    ] {
        let answer = ask(&c, text);
        let answer = if answer.starts_with("error") { answer[..11].to_owned() } else { answer };
        assert_eq!(answer, expected, "{text}");
    }
    c.execute("CREATE TABLE copy AS SELECT name, count(*) AS n FROM person GROUP BY name", &[])
        .unwrap();
    assert_eq!(ask(&c, "SELECT count(*), sum(n) FROM copy"), "5 5");
    c.execute("SELECT id INTO ids FROM person", &[]).unwrap();
    assert_eq!(ask(&c, "SELECT max(id) FROM ids"), "14");
}

#[test]
fn definitions() {
    let c = shop();
    c.execute_script(
        "CREATE VIEW rich AS SELECT person, sum(amount) AS total FROM orders GROUP BY person;
         CREATE SEQUENCE s START WITH 5;
         CREATE TABLE d (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a INTEGER DEFAULT 1 + 1, b TEXT CHECK (length(b) > 1), n BIGSERIAL);
         INSERT INTO d (b) VALUES ('xx'), ('yy');
         ALTER TABLE d ADD COLUMN e INTEGER DEFAULT 9, DROP COLUMN a;
         ALTER TABLE d RENAME COLUMN b TO bb;
         INSERT INTO d (bb, e) VALUES ('zz', nextval('s'));",
    )
    .unwrap();
    for (text, expected) in [
        ("SELECT total FROM rich WHERE person = 1", "12.50"),
        ("SELECT * FROM d ORDER BY id", "1 xx 1 9; 2 yy 2 9; 3 zz 3 5"),
        ("INSERT INTO d (bb) VALUES ('x')", "error 23514"),
        ("UPDATE d SET bb = ''", "error 23514"),
        ("DROP TABLE orders", "error 2BP01"),
        ("CREATE TABLE person (x INTEGER)", "error 42P07"),
        ("CREATE TABLE IF NOT EXISTS person (x INTEGER)", ""),
        ("DROP TABLE IF EXISTS nothing", ""),
        ("TRUNCATE d", ""),
        ("SELECT count(*) FROM d", "0"),
    ] {
        let answer = ask(&c, text);
        let answer = if answer.starts_with("error") { answer[..11].to_owned() } else { answer };
        assert_eq!(answer, expected, "{text}");
    }
}

#[test]
fn plans_use_keys_and_indexes() {
    let c = shop();
    for (text, expected) in [
        ("SELECT * FROM person WHERE id = 1", "Primary Key Lookup on person"),
        ("SELECT * FROM person WHERE id = $1", "Primary Key Lookup on person"),
        ("SELECT * FROM person WHERE id BETWEEN 1 AND 2", "Primary Key Scan on person"),
        ("SELECT * FROM person WHERE name = 'ann'", "Index Scan using person_name on person"),
        ("SELECT * FROM orders WHERE person = 3", "Index Scan using orders_person on orders"),
        ("SELECT * FROM person WHERE boss = 1", "Seq Scan on person"),
        ("SELECT * FROM person ORDER BY id DESC LIMIT 1", "Seq Scan backward on person"),
        ("SELECT max(name) FROM person", "Index Scan backward using person_name on person"),
        ("SELECT * FROM person a JOIN person b ON a.boss = b.boss", "Hash Join"),
        (
            "SELECT * FROM orders o JOIN person p ON p.id = o.person WHERE o.id = 10",
            "Primary Key Lookup on person p",
        ),
        ("UPDATE person SET boss = 1 WHERE id = 3", "Primary Key Lookup on person"),
    ] {
        let plan = plan(&c, text.replace("$1", "1").as_str());
        assert!(plan.contains(expected), "{text}\n{plan}");
        assert!(!text.contains("LIMIT") || !plan.contains("Sort"), "{text}\n{plan}");
    }
    let rows = c
        .query("EXPLAIN ANALYZE SELECT * FROM person WHERE boss = 1", &[])
        .unwrap()
        .collect()
        .unwrap();
    assert!(rows[0][0].to_string().contains("actual rows=2"), "{rows:?}");
}

#[test]
fn plans_use_hash_keys_for_equality_of_all_columns_alone() {
    let c = shop();
    let table = "CREATE TABLE h (a INTEGER, b INTEGER, c TEXT, d INTEGER, PRIMARY KEY (a, b) USING HASH, UNIQUE (c) USING HASH)";
    c.execute(table, &[]).unwrap();
    c.execute("CREATE INDEX h_d ON h USING HASH (d)", &[]).unwrap();
    for (text, expected) in [
        ("SELECT * FROM h WHERE b = 1 AND a = 2", "Primary Key Hash Lookup on h"),
        ("SELECT * FROM h WHERE c = 'x'", "Index Hash Lookup using h_c_key on h"),
        ("SELECT * FROM h WHERE d = 1", "Index Hash Lookup using h_d on h"),
        ("SELECT * FROM h WHERE d = 1 ORDER BY d, a", "Sort"),
        (
            "SELECT a.c FROM h a JOIN h b ON a.d = b.a WHERE b.a = 1 AND b.b = 1",
            "Index Hash Lookup using h_d on h a",
        ),
        ("SELECT * FROM h WHERE a = 2", "Seq Scan on h"),
        ("SELECT * FROM h WHERE a = 2 AND b > 1", "Seq Scan on h"),
        ("SELECT * FROM h WHERE c > 'x'", "Seq Scan on h"),
        ("SELECT * FROM h WHERE d > 1", "Seq Scan on h"),
        ("SELECT * FROM h ORDER BY a, b", "Sort"),
        ("DELETE FROM h WHERE a = 1 AND b = 2", "Primary Key Hash Lookup on h"),
    ] {
        let plan = plan(&c, text);
        assert!(plan.contains(expected), "{text}\n{plan}");
    }
}

#[test]
fn a_statement_stays_within_its_memory_and_can_be_cancelled() {
    let c = connect();
    c.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)", &[]).unwrap();
    let mut insert = c.prepare("INSERT INTO t VALUES ($1, $2)").unwrap();
    for n in 0..2_000 {
        insert.execute(params![n, "x".repeat(50)]).unwrap();
    }
    c.set_memory_limit(20_000);
    assert!(ask(&c, "SELECT * FROM t ORDER BY v").starts_with("error 53200"));
    assert!(ask(&c, "SELECT count(*) FROM t a JOIN t b ON a.v = b.v").starts_with("error 53200"));
    assert_eq!(ask(&c, "SELECT id FROM t ORDER BY v, id DESC LIMIT 1"), "1999");
    c.set_memory_limit(1 << 30);
    let cancel = c.cancel_handle();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        cancel.cancel();
    });
    let answer = ask(&c, "SELECT count(*) FROM t a, t b, t c WHERE a.id + b.id + c.id = -1");
    thread.join().unwrap();
    assert!(answer.starts_with("error 57014"), "{answer}");
    assert_eq!(ask(&c, "SELECT count(*) FROM t"), "2000");
}

/// A table of many rows, and the answers of a query in each way.
fn many() -> Connection {
    let options = Options::new().durability(Durability::InMemory);
    let connection = SqlDatabase::open_in_memory(options).unwrap().connect();
    connection
        .execute_script(
            "CREATE TABLE n (a INTEGER NOT NULL, b BIGINT, c CHAR(4), d DATE, e BOOLEAN, f DOUBLE PRECISION, g NUMERIC);
             INSERT INTO n VALUES (0, 0, 'x', '2020-01-01', true, 1.5, 2.25), (1, NULL, NULL, NULL, NULL, NULL, NULL)",
        )
        .unwrap();
    for _ in 0..12 {
        let text = "INSERT INTO n SELECT a + (SELECT count(*) FROM n)::INTEGER, b + a, c, d + 1, a % 3 = 1, f + a, g FROM n";
        connection.execute(text, &[]).unwrap();
    }
    connection
}

#[test]
fn both_ways_give_the_same() {
    let connection = many();
    connection.execute("ALTER TABLE n ADD COLUMN h INTEGER DEFAULT 7", &[]).unwrap();
    connection
        .execute("INSERT INTO n VALUES (-1, 5, 'ab  ', '1999-12-31', false, -0.0, 1, NULL)", &[])
        .unwrap();
    connection.execute("DELETE FROM n WHERE a % 11 = 3", &[]).unwrap();
    for (text, by_columns) in [
        (
            "SELECT count(*), count(b), sum(a), sum(b), avg(a), min(a), max(b), min(c), max(d), max(f) FROM n",
            true,
        ),
        ("SELECT a % 7, count(*) FROM n GROUP BY a % 7", false),
        ("SELECT c, e, count(*), sum(h), bool_or(e) FROM n GROUP BY c, e", true),
        (
            "SELECT b, count(*), max(a) FROM n WHERE a > 100 AND a * 2 < 9000 AND b IS NOT NULL GROUP BY b HAVING count(*) > 1",
            true,
        ),
        (
            "SELECT h, count(DISTINCT c), sum(a) FILTER (WHERE a > 50) FROM n WHERE c = 'x' OR a IN (1, 2, 3) GROUP BY h",
            true,
        ),
        (
            "SELECT d, sum(a) FROM n WHERE c LIKE 'x%' GROUP BY d ORDER BY d DESC NULLS FIRST LIMIT 5",
            true,
        ),
        ("SELECT a, c FROM n ORDER BY c, b DESC, a LIMIT 20 OFFSET 3", true),
        ("SELECT a, d FROM n WHERE NOT e ORDER BY d NULLS FIRST, a DESC", true),
        ("SELECT sum(g), count(*) FROM n", false),
        ("SELECT DISTINCT b, c, e FROM n", true),
        ("SELECT DISTINCT f, h, 5 FROM n ORDER BY h DESC, f LIMIT 3", true),
        ("SELECT DISTINCT b FROM n LIMIT 1000", false),
        ("SELECT DISTINCT g, b FROM n", false),
        ("SELECT count(*), max(x.c) FROM (SELECT DISTINCT c, b FROM n) x", true),
        (
            "SELECT CASE WHEN b > 3 THEN 'b' WHEN e THEN 'e' END, count(*), sum(CASE WHEN d IS NULL THEN 1 ELSE b END) FROM n GROUP BY 1",
            true,
        ),
        ("SELECT sum(CASE WHEN b > 3 THEN a + 1 END) FROM n", false),
        ("SELECT count(*) FROM n WHERE a = $1 + 1", true),
        ("SELECT sum(a + 2147483000) FROM n", true),
        ("SELECT count(*) FROM n WHERE a > 5 AND a + 2147483000 > 0", true),
        ("SELECT a FROM n ORDER BY b * 1000000000000 * a", true),
        ("SELECT x.a, count(*) FROM n x JOIN n y ON x.a = y.b GROUP BY x.a ORDER BY x.a", true),
        (
            "SELECT (SELECT count(*) FROM n y WHERE y.a < x.a) FROM n x WHERE x.a < 4 ORDER BY x.a",
            false,
        ),
    ] {
        let parameters = if text.contains("$1") { vec![Value::Integer(5)] } else { Vec::new() };
        let answer = |way: &str| {
            connection.execute(&format!("SET execution_mode = '{way}'"), &[]).unwrap();
            let plan = connection
                .query(&format!("EXPLAIN {text}"), &parameters)
                .unwrap()
                .collect()
                .unwrap();
            let way = plan.last().unwrap()[0].to_string();
            let rows = connection.query(text, &parameters).and_then(|rows| rows.collect());
            let rows = rows.map(|mut rows| {
                if !text.contains("ORDER BY") {
                    rows.sort_by_key(|row| format!("{row:?}"));
                }
                rows
            });
            (rows.map_err(|error| error.code()), way)
        };
        let (direct, batch, auto) = (answer("row"), answer("vectorized"), answer("auto"));
        assert_eq!(direct.0, batch.0, "{text}");
        assert_eq!(direct.0, auto.0, "{text}");
        assert!(direct.1.starts_with("Execution: row"), "{text}: {}", direct.1);
        assert_eq!(batch.1.starts_with("Execution: vectorized"), by_columns, "{text}: {}", batch.1);
    }
}

#[test]
fn vectorized_statement_keeps_its_budget_and_is_analyzed() {
    let connection = many();
    let rows = |text: &str| connection.query(text, &[]).and_then(|rows| rows.collect());
    let text = "SELECT a, count(*) FROM n GROUP BY a";
    connection.execute("SET work_mem = '64kB'", &[]).unwrap();
    let error = rows(text).unwrap_err();
    assert_eq!(error.code(), "53200");
    let error = rows("SELECT c FROM n ORDER BY c, a").unwrap_err();
    assert_eq!(error.code(), "53200");
    connection.execute("SET work_mem = '64MB'", &[]).unwrap();
    assert_eq!(rows(text).unwrap().len(), 8192);
    let plan = connection.query(&format!("EXPLAIN ANALYZE {text} HAVING a < 10"), &[]).unwrap();
    let lines: Vec<String> = plan.collect().unwrap().iter().map(|row| row[0].to_string()).collect();
    assert!(lines.iter().any(|line| line.contains("(vectorized) (actual rows=8192)")), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains("Seq Scan") && line.contains("(actual rows=8192)")),
        "{lines:?}"
    );
    assert!(lines.last().unwrap().starts_with("Execution: vectorized"), "{lines:?}");
}

/// Of the 8,192 rows half have a text of 1,800 bytes.
#[test]
fn texts_that_are_computed_count_against_the_budget() {
    for way in ["row", "vectorized"] {
        let c = many();
        c.execute(&format!("SET execution_mode = '{way}'"), &[]).unwrap();
        c.execute("SET work_mem = '4MB'", &[]).unwrap();
        for text in [
            "SELECT repeat(c || 'x', 900) FROM n ORDER BY 1, a",
            "SELECT count(*) FROM (SELECT repeat(c || 'x', 900) AS r FROM n ORDER BY 1 LIMIT 8000) s",
            "INSERT INTO n (a, b, c) SELECT a + 9000, b, c FROM n RETURNING repeat(c || 'x', 900)",
        ] {
            assert!(ask(&c, text).starts_with("error 53200"), "{way}: {text}");
        }
        // What need not be kept does not count.
        let few = "SELECT left(r, 1) FROM (SELECT repeat(c || 'x', 900) AS r FROM n) s ORDER BY r LIMIT 1";
        assert_eq!(ask(&c, few), "x", "{way}");
    }
}

#[test]
fn joins_by_columns_give_the_same() {
    let c = many();
    c.execute_script(
        "CREATE TABLE small (k SMALLINT NOT NULL, s TEXT, d DATE, f REAL); INSERT INTO small SELECT x.a::SMALLINT, x.c, x.d, x.f::REAL FROM n x WHERE x.a % 3 = 1;
         INSERT INTO small SELECT * FROM small WHERE k < 50; INSERT INTO small VALUES (7, NULL, NULL, NULL), (-5, 'y', 'infinity', 'NaN'); CREATE TABLE empty (k INTEGER, s TEXT)",
    )
    .unwrap();
    // How many joins go by columns.
    for (text, joins) in [
        (
            "SELECT s.s, count(*), sum(n.b), max(s.k), sum(s.f) FROM n JOIN small s ON n.a = s.k GROUP BY s.s",
            1,
        ),
        (
            "SELECT n.a, count(*), sum(s.k), min(s.s) FROM n LEFT JOIN small s ON n.b = s.k GROUP BY n.a",
            1,
        ),
        (
            "SELECT count(*), sum(n.b), sum(s.k), sum(n.f) FROM n LEFT JOIN small s ON n.a = s.k AND s.k < n.b AND s.d > '2020-01-01'",
            1,
        ),
        // Few keys, each with many rows: more pairs than are gathered at a time.
        (
            "SELECT x.c, count(*), sum(x.a), sum(y.b) FROM n x JOIN n y ON x.c = y.c WHERE x.a < 300 AND y.a < 500 GROUP BY x.c",
            1,
        ),
        (
            "SELECT x.a, count(*), count(y.a) FROM n x LEFT JOIN n y ON x.e = y.e AND y.b > x.b + 4 WHERE x.a < 300 GROUP BY x.a",
            1,
        ),
        (
            "SELECT n.d, s.d, n.a, s.k FROM n JOIN small s ON n.d = s.d AND n.a <= s.k ORDER BY n.d, s.k DESC, n.a",
            1,
        ),
        ("SELECT n.a, s.s FROM n LEFT JOIN small s ON s.k = n.a + 1 ORDER BY s.s DESC, n.a", 1),
        (
            "SELECT s.k, count(*), count(e.k) FROM small s LEFT JOIN empty e ON e.s = s.s GROUP BY s.k",
            1,
        ),
        ("SELECT count(*), max(s.s) FROM small s JOIN empty e ON e.k = s.k", 1),
        (
            "SELECT x.b, count(*), sum(y.k), max(z.a) FROM n x JOIN small y ON x.a = y.k JOIN n z ON z.a = y.k AND z.b >= x.b GROUP BY x.b",
            2,
        ),
        (
            "SELECT count(*), sum(q.n) FROM (SELECT a, count(*) AS n FROM n GROUP BY a) q JOIN small s ON s.k = q.a",
            1,
        ),
        (
            "SELECT s.k, (SELECT sum(x.b) FROM n x JOIN small y ON x.a = y.k WHERE y.k < s.k AND x.a > 2) FROM small s WHERE s.k BETWEEN 5 AND 20 ORDER BY s.k",
            1,
        ),
        ("SELECT count(*) FROM n JOIN small s ON n.a = s.k AND n.a < $1", 1),
        ("SELECT count(*) FROM n JOIN small s ON n.a = s.k AND ($1 = 5 OR $1 = 6)", 1),
        ("SELECT sum(n.a) FROM n JOIN small s ON n.a + 2147483000 = s.k", 1),
        ("SELECT sum(n.a) FROM n JOIN small s ON n.a = s.k AND n.a * 300000 > s.k", 1),
        ("SELECT count(*) FROM n JOIN small s ON n.a = s.k AND length(s.s) = 1", 1),
        (
            "SELECT count(*), sum(n.a) FROM n JOIN small s ON n.a = s.k WHERE n.g > 5 AND s.s = 'x'",
            1,
        ),
        // Conditions on the rows of an outer join.
        (
            "SELECT count(*), min(n.a), max(n.c) FROM n LEFT JOIN small s ON n.a = s.k WHERE s.k IS NULL",
            1,
        ),
        (
            "SELECT n.a, s.d FROM n LEFT JOIN small s ON n.a = s.k WHERE s.k IS NULL OR s.s = 'x' ORDER BY s.d, n.a",
            1,
        ),
        (
            "SELECT y.s, count(*), sum(x.b) FROM n x LEFT JOIN small y ON x.a = y.k LEFT JOIN n z ON z.b = y.k AND z.a < $1 WHERE coalesce(y.k, 0) = 0 AND x.a > 7 GROUP BY y.s",
            1,
        ),
        (
            "SELECT y.s, count(*), sum(x.b) FROM n x LEFT JOIN small y ON x.a = y.k JOIN n z ON z.a = x.a WHERE y.k IS NULL AND x.a > $1 GROUP BY y.s",
            2,
        ),
        ("SELECT count(*) FROM n LEFT JOIN small s ON n.a = s.k WHERE s.k * 2000 > n.b", 1),
        // What only the row-by-row way can do, or does no worse: a second part that may fail, what
        // has no column, full joins.
        ("SELECT sum(n.a) FROM n JOIN small s ON n.b = s.k AND n.a + 2147483000 = s.k", 0),
        (
            "SELECT sum(n.a) FROM n JOIN small s ON n.a = s.k AND n.b > s.k AND n.a * 300000 > s.k + n.b",
            0,
        ),
        ("SELECT count(*) FROM n JOIN small s ON n.a = s.k AND n.g > s.k", 0),
        ("SELECT count(*) FROM n JOIN small s ON n.g = s.k", 0),
        ("SELECT count(*), count(s.k) FROM n FULL JOIN small s ON n.a = s.k", 0),
        ("SELECT count(*) FROM n JOIN small s ON n.a = s.k AND length(s.s) = n.b", 0),
    ] {
        let parameters = if text.contains("$1") { vec![Value::Integer(5)] } else { Vec::new() };
        let answer = |way: &str| {
            c.execute(&format!("SET execution_mode = '{way}'"), &[]).unwrap();
            let plan = c.query(&format!("EXPLAIN {text}"), &parameters).unwrap().collect().unwrap();
            let is_join = |row: &&Vec<Value>| row[0].to_string().contains("Join (vectorized)");
            let rows = c.query(text, &parameters).and_then(|rows| rows.collect());
            // Groups and rows of equal order come as they do row by row.
            (rows.map_err(|error| error.code()), plan.iter().filter(is_join).count())
        };
        let (direct, batch, auto) = (answer("row"), answer("vectorized"), answer("auto"));
        assert_eq!(direct.0, batch.0, "{text}");
        assert_eq!(direct.0, auto.0, "{text}");
        assert_eq!((direct.1, batch.1), (0, joins), "{text}");
    }
}

#[test]
fn vectorized_join_keeps_its_budget_and_can_be_cancelled() {
    let c = many();
    c.execute("SET execution_mode = 'vectorized'", &[]).unwrap();
    let text = "SELECT count(*), min(y.c) FROM n x JOIN n y ON x.a = y.a AND x.b <= y.b";
    c.execute("SET work_mem = '256kB'", &[]).unwrap();
    assert!(ask(&c, text).starts_with("error 53200"));
    assert!(ask(&c, &text.replace("x.a = y.a", "x.c = y.c")).starts_with("error 53200"));
    // Only the side that is collected counts.
    assert_eq!(ask(&c, &format!("{text} WHERE y.a < 100 AND x.a > 96")), "1 x   ");
    c.execute("SET work_mem = '64MB'", &[]).unwrap();
    let rows = c.query(&format!("EXPLAIN ANALYZE {text} WHERE y.a < 100"), &[]).unwrap();
    let lines: Vec<String> = rows.collect().unwrap().iter().map(|row| row[0].to_string()).collect();
    let plan = lines.join("\n");
    assert!(plan.contains("Aggregate (vectorized) (actual rows=1)"), "{plan}");
    assert!(plan.contains("Hash Join (vectorized) (actual rows=50)"), "{plan}");
    assert!(
        plan.contains("Seq Scan on n y (rows=") && plan.contains("(actual rows=100)"),
        "{plan}"
    );
    let cancel = c.cancel_handle();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        cancel.cancel();
    });
    let text = "SELECT count(*) FROM n x JOIN n y ON x.c = y.c JOIN n z ON y.c = z.c AND x.a > z.a + y.a + 9000";
    assert_eq!(joins_by_columns(&c, text), 2);
    let answer = ask(&c, text);
    thread.join().unwrap();
    assert!(answer.starts_with("error 57014"), "{answer}");
}

/// How many joins of a query go by columns.
fn joins_by_columns(connection: &Connection, text: &str) -> usize {
    plan(connection, text).matches("Join (vectorized)").count()
}

#[test]
fn answers_come_as_record_batches() {
    use quickbeam_sql::arrow_array::cast::AsArray;
    use quickbeam_sql::arrow_array::types::{Decimal128Type, Int32Type, TimestampMicrosecondType};
    use quickbeam_sql::arrow_schema::{DataType as ArrowType, TimeUnit};
    let mut connection = many();
    connection
        .execute_script(
            "CREATE TABLE m (i SMALLINT, n NUMERIC(9,2), t TIMESTAMP WITH TIME ZONE, u UUID, b BYTEA, r REAL, h TIME, k INTEGER);
             INSERT INTO m VALUES (1, 12.5, '2020-02-03 04:05:06+00', '00112233-4455-6677-8899-aabbccddeeff', '\\x00ff', 0.5, '01:02:03', 7),
                                  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, 8)",
        )
        .unwrap();
    let batches = connection.query_batches("SELECT * FROM m ORDER BY k", &[]).unwrap();
    let [batch] = &batches[..] else { panic!("{} batches", batches.len()) };
    assert_eq!((batch.num_rows(), batch.num_columns()), (2, 8));
    assert_eq!(batch.schema().field(1).data_type(), &ArrowType::Decimal128(9, 2));
    let zone = ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    assert_eq!(batch.schema().field(2).data_type(), &zone);
    assert_eq!(batch.column(1).as_primitive::<Decimal128Type>().value(0), 1250);
    let moment = batch.column(2).as_primitive::<TimestampMicrosecondType>().value(0);
    assert_eq!(moment, 1_580_702_706_000_000);
    assert_eq!(batch.column(4).as_binary::<i32>().value(0), [0, 255]);
    assert!((0..7).all(|column| batch.column(column).is_null(1)));
    let batches =
        connection.query_batches("SELECT a, c FROM n WHERE a >= 10 ORDER BY a", &[]).unwrap();
    let sizes: Vec<usize> = batches.iter().map(|batch| batch.num_rows()).collect();
    assert_eq!(sizes, [8182]);
    assert_eq!(batches[0].column(0).as_primitive::<Int32Type>().value(5), 15);
    assert!(connection.query_batches("SELECT a FROM n WHERE a < 0", &[]).unwrap().is_empty());
    let mut rows = connection.query("SELECT a FROM n", &[]).unwrap();
    let mut sizes = Vec::new();
    while let Some(batch) = rows.next_batch(5000).unwrap() {
        sizes.push(batch.num_rows());
    }
    assert_eq!(sizes, [5000, 3192]);
}

#[test]
fn hash_joins_find_keys_of_every_kind_of_number() {
    let c = connect();
    c.execute_script(
        "CREATE TABLE a (k SMALLINT, n INTEGER); CREATE TABLE b (k BIGINT, d NUMERIC(20,2));",
    )
    .unwrap();
    let numbers = [-32_768, -700, -1, 0, 1, 700, 1_023, 1_024, 1_025, 32_767];
    for n in 0..400 {
        let small = numbers[n % 10];
        let (a, b) = (n % 7 == 0, n % 5 == 0);
        let text = |null: bool, value: String| if null { "NULL".to_owned() } else { value };
        let rows = format!(
            "INSERT INTO a VALUES ({}, {n}); INSERT INTO b VALUES ({}, {small}.00)",
            text(a, small.to_string()),
            text(b, small.to_string())
        );
        c.execute_script(&rows).unwrap();
    }
    c.execute("INSERT INTO b VALUES (9223372036854775807, 1), (-9223372036854775808, 0.5)", &[])
        .unwrap();
    assert!(plan(&c, "SELECT * FROM a JOIN b ON a.k = b.k").contains("Hash Join"));
    let expected = |on_b: bool| {
        let count = |wanted: i32, b: bool| {
            (0..400)
                .filter(|n| {
                    numbers[n % 10] == wanted && (b || n % 7 != 0) && !(b && on_b && n % 5 == 0)
                })
                .count()
        };
        numbers.iter().map(|&number| count(number, false) * count(number, true)).sum::<usize>()
    };
    let check = |text: &str, count: usize| assert_eq!(ask(&c, text), count.to_string(), "{text}");
    check("SELECT count(*) FROM a JOIN b ON a.k = b.k", expected(true));
    check("SELECT count(*) FROM b JOIN a ON a.k = b.k AND a.k + 0 = b.k", expected(true));
    check("SELECT count(*) FROM a JOIN b ON a.k = b.d", expected(false) + count_of_one(&numbers));
    check("SELECT count(*) FROM a LEFT JOIN b ON a.k = b.k WHERE a.k IS NULL", 58);
}

/// How many rows of `a` have the number one, which a last row of `b` has as well.
fn count_of_one(numbers: &[i32]) -> usize {
    (0..400).filter(|n| numbers[n % 10] == 1 && n % 7 != 0).count()
}

/// Rows are known by their place in the statement, which may have any number of them.
#[test]
fn statements_of_many_parts_mean_what_they_mean_alone() {
    let c = connect();
    c.execute_script(
        "CREATE TABLE t (a INTEGER, b INTEGER);
         CREATE TABLE u (a INTEGER PRIMARY KEY, b INTEGER);
         INSERT INTO t VALUES (1, 1), (1, 2), (2, 3), (3, NULL), (4, 1);
         INSERT INTO u VALUES (1, 10), (2, 20), (3, 30), (10, 4);",
    )
    .unwrap();
    let queries = [
        "SELECT count(*) FROM t x JOIN t y ON x.a = y.b JOIN u z ON z.a = y.a WHERE x.b > 0",
        "SELECT count(*) FROM t x, t y, u z WHERE x.a = y.b AND z.a = x.b AND y.a + z.a > 2",
        "SELECT count(*) FROM t x LEFT JOIN u y ON x.a = y.a LEFT JOIN u z ON z.a = x.b AND y.b = 10",
        "SELECT count(*) FROM t x LEFT JOIN u y ON x.a = y.a WHERE x.b = (SELECT max(z.b) FROM t z)",
        "SELECT max(m) FROM (SELECT (SELECT max(y.b) FROM u y WHERE y.a = x.a) AS m FROM t x) s",
        "SELECT count(*) FROM t x WHERE EXISTS (SELECT 1 FROM u z WHERE z.b = x.b * 10)",
        "SELECT count(*) FROM t x GROUP BY x.a HAVING count(*) = (SELECT max(z.a) / 5 FROM u z)",
    ];
    for query in queries {
        let alone = ask(&c, query);
        for more in [30, 31, 32, 33, 60, 61, 62, 63, 64, 65, 80, 900] {
            let empty = "SELECT a FROM t WHERE a > 99 UNION ALL ".repeat(more);
            assert_eq!(ask(&c, &format!("{empty}{query}")), alone, "{more} and {query}");
        }
    }
    // Each by itself they are simple.
    let simple = "SELECT a FROM t WHERE a = 4 UNION ALL ".repeat(80);
    let expected = "4; ".repeat(80);
    assert_eq!(ask(&c, &format!("{simple}SELECT a FROM t WHERE a = 3")), format!("{expected}3"));
    // Joined they are nested in each other, which has an end.
    let chain = |kind: &str, on: &str, count: usize| -> String {
        let join = |n: usize| {
            format!(
                " {kind} t{n}{}",
                on.replace('<', &format!("t{}", n - 1)).replace('>', &format!("t{n}"))
            )
        };
        (1..count).map(join).collect()
    };
    for (kind, on, expected) in [
        ("JOIN u", " ON >.a = <.a", "4 4"),
        ("LEFT JOIN t", " ON >.a = <.b + 10", "4 0"),
        ("RIGHT JOIN u", " ON >.b = <.b", "4 4"),
        ("FULL JOIN u", " ON >.b = <.b", "4 4"),
        ("FULL JOIN u", " USING (a, b)", "4 4"),
        ("NATURAL JOIN u", "", "4 4"),
        ("JOIN u", " USING (a)", "4 4"),
        (", u", "", ""),
    ] {
        let query = |count: usize| {
            format!("SELECT count(*), count(t{}.a) FROM u t0{}", count - 1, chain(kind, on, count))
        };
        if !expected.is_empty() {
            assert_eq!(ask(&c, &query(100)), expected, "{kind}{on}");
        }
        assert!(ask(&c, &query(122)).starts_with("error 54001 too many tables are joined"));
    }
    // Each side may have its own type, and be asked as rows of an INSERT.
    let mixed: String = (0..500).map(|n| format!("SELECT {n}, NULL::integer UNION ALL ")).collect();
    let query = format!("SELECT sum(n), count(x), max(x) FROM ({mixed}SELECT 0.5, 7) s(n, x)");
    assert_eq!(ask(&c, &query), "124750.5 1 7");
    let inserted = format!("INSERT INTO t {mixed}SELECT 1, 2");
    assert_eq!(c.execute(&inserted, &[]).unwrap(), 501);
    assert_eq!(ask(&c, "SELECT count(*), sum(b) FROM t"), "506 9");
    let distinct = "SELECT a FROM u UNION ".repeat(700);
    assert_eq!(ask(&c, &format!("{distinct}SELECT 10 ORDER BY 1")), "1; 2; 3; 10");
}
