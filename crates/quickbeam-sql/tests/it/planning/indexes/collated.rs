//! Which conditions and orders use an index whose keys a collation orders.

use super::super::{filled_by, lines, plan};

const TABLE: &str = r#"
    CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT COLLATE ci, b TEXT COLLATE "de-x-icu", c TEXT);
    INSERT INTO t SELECT g, 'Name' || g, 'Wort' || g, 'Text' || g
        FROM generate_series(1, 2000) AS g;
    CREATE INDEX by_a ON t (a);
    CREATE INDEX by_b ON t (b, id);
    CREATE INDEX by_c ON t (c COLLATE ci);
    CREATE INDEX by_both ON t ((a || 'x'))"#;

#[test]
fn conditions_under_the_collation_use_the_index() {
    let c = filled_by(TABLE);
    for (condition, index) in [
        ("a = 'name7'", "by_a"),
        ("'NAME7' = a", "by_a"),
        ("a IN ('name7', 'name8')", "by_a"),
        ("a = ANY ('{name7,name8}')", "by_a"),
        ("a > 'name998' AND a < 'NAME9990'", "by_a"),
        ("a || 'x' = 'name7X'", "by_both"),
        ("b = 'Wort7'", "by_b"),
        ("b IN ('Wort7', 'Wort8')", "by_b"),
        ("b >= 'wort998' AND b < 'Wort999'", "by_b"),
        ("c = 'text7' COLLATE ci", "by_c"),
    ] {
        let query = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        let plan = plan(&c, &query);
        assert!(plan.contains(&format!("Index Scan using {index}")), "{condition}: {plan}");
        let found = lines(&c, &query);
        assert!(!found.is_empty(), "{condition}");
        c.execute_script("SET enable_indexscan = off").unwrap();
        assert_eq!(lines(&c, &query), found, "{condition}");
        c.execute_script("RESET enable_indexscan").unwrap();
    }
}

#[test]
fn orders_of_the_collation_are_those_of_the_index() {
    let c = filled_by(TABLE);
    for (query, index) in [
        ("SELECT a FROM t ORDER BY a LIMIT 3", "by_a"),
        ("SELECT a FROM t ORDER BY a DESC LIMIT 3", "by_a"),
        ("SELECT b FROM t ORDER BY b, id LIMIT 3", "by_b"),
        ("SELECT c FROM t ORDER BY c COLLATE ci LIMIT 3", "by_c"),
        ("SELECT min(a) FROM t", "by_a"),
        ("SELECT min(b) FROM t", "by_b"),
    ] {
        let plan = plan(&c, query);
        assert!(plan.contains(&format!("using {index}")) && !plan.contains("Sort"), "{plan}");
        let found = lines(&c, query);
        c.execute_script("SET enable_indexscan = off").unwrap();
        assert_eq!(lines(&c, query), found, "{query}");
        c.execute_script("RESET enable_indexscan").unwrap();
    }
}

#[test]
fn other_collations_do_not_use_the_index() {
    let c = filled_by(TABLE);
    for query in [
        "SELECT id FROM t WHERE a = 'Name7' COLLATE \"C\"",
        "SELECT id FROM t WHERE b > 'Wort998' COLLATE \"C\"",
        "SELECT id FROM t WHERE b > 'Wort998' COLLATE \"sv-x-icu\"",
        "SELECT id FROM t WHERE b = 'Wort7' COLLATE ci",
        "SELECT id FROM t WHERE c = 'Text7'",
        "SELECT id FROM t WHERE b LIKE 'Wort99%'",
        "SELECT c FROM t ORDER BY c LIMIT 3",
    ] {
        let plan = plan(&c, query);
        assert!(!plan.contains("Index"), "{query}: {plan}");
        assert!(!lines(&c, query).is_empty(), "{query}");
    }
}
