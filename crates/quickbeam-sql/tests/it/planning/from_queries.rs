//! Queries in FROM: which of them become part of the query around them, and which conditions move
//! into the others.

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase};

fn filled() -> Connection {
    let options = Options::new().durability(Durability::InMemory);
    let c = SqlDatabase::open_in_memory(options).unwrap().connect();
    c.execute_script(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, s TEXT);
         CREATE INDEX t_a ON t (a);
         CREATE TABLE u (id INTEGER PRIMARY KEY, a INTEGER NOT NULL);
         CREATE VIEW joined AS SELECT t.id, t.b, u.a FROM t JOIN u ON u.id = t.a;
         INSERT INTO t SELECT g, g % 400, g % 7, 'text ' || g FROM generate_series(1, 4000) AS g;
         INSERT INTO u SELECT g, g % 10 FROM generate_series(1, 400) AS g",
    )
    .unwrap();
    c
}

fn plan(c: &Connection, text: &str) -> String {
    let rows = c.query(&format!("EXPLAIN {text}"), &[]).unwrap().collect().unwrap();
    rows.iter().map(|row| row[0].to_string()).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn expect(c: &Connection, text: &str, with: &[&str], without: &[&str]) {
    let explained = plan(c, text);
    for part in with {
        assert!(explained.contains(part), "{part} is missing\n{text}\n{explained}");
    }
    for part in without {
        assert!(!explained.contains(part), "{part} is there\n{text}\n{explained}");
    }
}

#[test]
fn a_plain_query_becomes_part_of_the_query_around_it() {
    let c = filled();
    let scan = &["Subquery Scan"];
    let key = &["Primary Key Lookup on t"];
    expect(&c, "SELECT * FROM (SELECT id, a FROM t) x WHERE x.id = 7", key, scan);
    expect(&c, "SELECT a FROM joined WHERE id = 7", key, scan);
    expect(&c, "WITH x AS (SELECT id + 0 AS i, id FROM t) SELECT i FROM x WHERE id = 7", key, scan);
    let text = "SELECT u.a, x.b FROM u LEFT JOIN (SELECT id, b FROM t WHERE b > 2) x ON x.id = u.a WHERE u.id = 1";
    expect(&c, text, key, scan);
    // A value that is not NULL where no row matches.
    let text = "SELECT x.b FROM u LEFT JOIN (SELECT id, 1 AS b FROM t) x ON x.id = u.a";
    expect(&c, text, scan, &[]);
    // A value for each row, not for each use.
    let text = "SELECT x.r, x.r FROM (SELECT id, random() AS r FROM t) x WHERE x.r > 0";
    expect(&c, text, scan, &[]);
    expect(&c, "SELECT * FROM (SELECT id FROM t ORDER BY id LIMIT 5) x", scan, &[]);
}

#[test]
fn a_condition_moves_to_where_the_rows_are_read() {
    let c = filled();
    let lookup = &["Index Scan using t_a on t", "Range: a = 5"];
    let none: &[&str] = &[];
    for text in [
        "SELECT * FROM (SELECT a, count(*) AS n FROM t GROUP BY a) x WHERE x.a = 5",
        "SELECT * FROM (SELECT DISTINCT a, b FROM t) x WHERE x.a = 5",
        "SELECT * FROM (SELECT a, sum(b) OVER (PARTITION BY a ORDER BY id) FROM t) x WHERE x.a = 5",
        "SELECT * FROM (SELECT a FROM t UNION ALL SELECT a FROM u) x WHERE x.a = 5",
        "SELECT * FROM (SELECT a FROM t EXCEPT SELECT a FROM u) x WHERE x.a = 5",
        "SELECT * FROM u JOIN (SELECT a, count(*) AS n FROM t GROUP BY a) x ON x.a = u.id WHERE u.id = 5",
        "SELECT * FROM u LEFT JOIN (SELECT a, count(*) AS n FROM t GROUP BY a) x ON x.a = u.id AND x.a = 5",
    ] {
        expect(&c, text, lookup, none);
    }
    let having = &["Filter: (group[1] > 20)"];
    let text = "SELECT * FROM (SELECT a, count(*) AS n FROM t GROUP BY a) x WHERE x.n > 20";
    expect(&c, text, having, none);
    for text in [
        "SELECT * FROM (SELECT a, id FROM t ORDER BY id LIMIT 50) x WHERE x.a = 5",
        "SELECT * FROM (SELECT a, row_number() OVER (ORDER BY id) AS n FROM t) x WHERE x.a = 5",
        "SELECT * FROM (SELECT DISTINCT ON (b) a, b FROM t ORDER BY b, id) x WHERE x.a = 5",
        "SELECT * FROM (SELECT a, count(*) AS n FROM t GROUP BY ROLLUP (a)) x WHERE x.a = 5",
        "SELECT * FROM u LEFT JOIN (SELECT a, count(*) AS n FROM t GROUP BY a) x ON x.a = u.id WHERE x.a = 5",
    ] {
        expect(&c, text, none, lookup);
    }
}

#[test]
fn a_volatile_common_table_is_computed_once() {
    let c = filled();
    let text = "WITH x AS (SELECT random() AS r) SELECT count(DISTINCT (SELECT r FROM x)) FROM u";
    let rows = c.query(text, &[]).unwrap().collect().unwrap();
    assert_eq!(rows[0][0].to_string(), "1");
    expect(&c, text, &["CTE x"], &[]);
}

#[test]
fn rows_in_a_subquery_are_joined_by_hash() {
    let c = filled();
    let pairs = "(id, a) IN (SELECT b, a FROM t WHERE b > 2)";
    let loops = &["Subquery (ANY)"];
    let semi = &["Hash"];
    expect(&c, &format!("SELECT count(*) FROM u WHERE {pairs}"), semi, loops);
    let text = format!("SELECT a, count(*) FROM u WHERE {pairs} GROUP BY a HAVING count(*) > 1");
    expect(&c, &text, semi, loops);
    let text = format!("SELECT id, rank() OVER (ORDER BY a) FROM u WHERE {pairs}");
    expect(&c, &text, semi, loops);
    expect(&c, &format!("DELETE FROM u WHERE {pairs}"), semi, loops);
    expect(&c, &format!("UPDATE u SET a = 0 WHERE {pairs}"), semi, loops);
    let text = "SELECT count(*) FROM t WHERE (b, a) IN (SELECT id, a FROM u WHERE u.a = t.b)";
    expect(&c, text, semi, loops);
    // Unknown is as good as false in an operand of OR, and not in one of NOT.
    expect(&c, &format!("SELECT id FROM u WHERE a > 7 OR {pairs}"), &["Hashed"], loops);
    expect(&c, &format!("SELECT id FROM u WHERE NOT (a > 7 OR {pairs})"), loops, &[]);
    // Without NULLs the answer is never unknown.
    let text = "SELECT count(*) FROM u WHERE (id, a) NOT IN (SELECT a, id FROM u WHERE a > 2)";
    expect(&c, text, &["Subquery (EXISTS)"], loops);
    let text = "SELECT count(*) FROM u WHERE (id, a) NOT IN (SELECT id, a FROM t)";
    expect(&c, text, loops, &[]);
}

#[test]
fn conditions_on_one_side_are_keys_of_outer_joins() {
    let c = filled();
    let loops = &["Nested Loop"];
    for (on, cond) in [
        ("t.id < 0", "Hash Cond: (t.id < 0) = t"),
        ("u.id = 5 AND t.id = 6", "t = (u.id = 5) AND (t.id = 6) = t"),
        ("false", "Hash Cond: f = t"),
    ] {
        let text = format!("SELECT count(*) FROM t FULL JOIN u ON {on}");
        expect(&c, &text, &["Hash Full Join", cond], loops);
    }
    let text = "SELECT count(*) FROM t LEFT JOIN u ON t.a < 0";
    expect(&c, text, &["Hash Left Join", "Hash Cond: (t.a < 0) = t"], loops);
    let text = "SELECT count(*) FROM t LEFT JOIN u ON t.a < u.a AND false";
    expect(&c, text, &["Hash Left Join", "Hash Cond: t = t"], loops);
    let rows = c.query(text, &[]).unwrap().collect().unwrap();
    assert_eq!(rows[0][0].to_string(), "4000");
}
