//! What the planner does with joins of several tables, correlated subqueries with aggregates and an
//! OR over several tables, and what the settings `enable_…` turn off.

use quickbeam::Options;
use quickbeam_sql::{Connection, SqlDatabase};

use super::{filled_by, lines, plan};

fn filled() -> Connection {
    filled_by(
        "CREATE TABLE item (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, price INTEGER);
         CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER, shop INTEGER, amount INTEGER);
         CREATE TABLE shop (id INTEGER PRIMARY KEY, town INTEGER NOT NULL, name TEXT);
         CREATE TABLE town (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
         INSERT INTO town SELECT g, 'town ' || g FROM generate_series(1, 20) AS g;
         INSERT INTO shop SELECT g, g % 20 + 1, 'shop ' || g FROM generate_series(1, 200) AS g;
         INSERT INTO item SELECT g, g % 10, g % 100 FROM generate_series(1, 2000) AS g;
         INSERT INTO sale SELECT g, g % 2500, g % 200 + 1, g % 50 FROM generate_series(1, 10000) AS g",
    )
}

#[test]
fn a_correlated_aggregate_is_computed_once_for_all_keys() {
    let c = filled();
    let text = "SELECT count(*) FROM item WHERE price < \
                (SELECT avg(amount) FROM sale WHERE sale.item = item.id)";
    let explained = plan(&c, text);
    for expected in ["Hashed Subquery (scalar)", "Hash Cond: item.id = ", "Group"] {
        assert!(explained.contains(expected), "{expected}\n{explained}");
    }
    let hashed = lines(&c, text);
    c.execute("SET enable_hashjoin = off", &[]).unwrap();
    let explained = plan(&c, text);
    assert!(!explained.contains("Hashed Subquery"), "{explained}");
    assert_eq!(lines(&c, text), hashed);
    // A value for each call is no value for all.
    c.execute("RESET enable_hashjoin", &[]).unwrap();
    let text =
        "SELECT (SELECT max(amount + random()) FROM sale WHERE sale.item = item.id) FROM item";
    let explained = plan(&c, text);
    assert!(!explained.contains("Hashed Subquery"), "{explained}");
}

#[test]
fn joins_below_a_vectorized_aggregation_are_vectorized() {
    let c = filled();
    let text = "SELECT item.kind, count(*), sum(sale.amount) FROM item JOIN sale ON sale.id = item.id \
                GROUP BY item.kind";
    let explained = plan(&c, text);
    assert!(explained.contains("Hash Join (vectorized)"), "{explained}");
    // A limit of groups is none of rows.
    let first = plan(&c, &format!("{text} ORDER BY 3 LIMIT 2"));
    assert!(first.contains("Hash Join (vectorized)"), "{first}");
    let answer = lines(&c, &format!("{text} ORDER BY 1"));
    assert_eq!(answer.len(), 10);
    c.execute("SET execution_mode = 'row'", &[]).unwrap();
    let explained = plan(&c, text);
    assert!(explained.contains("Primary Key Lookup on sale"), "{explained}");
    assert_eq!(lines(&c, &format!("{text} ORDER BY 1")), answer);
    c.execute("SET execution_mode = 'auto'", &[]).unwrap();
    // A few lookups cost less than a scan by columns, and arrays have no columns.
    for few in [
        text.replace("GROUP", "WHERE item.price < 2 GROUP"),
        text.replace("GROUP BY item.kind", "GROUP BY item.kind, ARRAY[item.price]"),
    ] {
        let explained = plan(&c, &few);
        assert!(explained.contains("Primary Key Lookup on sale"), "{explained}");
    }
}

#[test]
fn a_condition_is_checked_before_further_subqueries() {
    let c = filled();
    let text = "SELECT id FROM sale WHERE amount > (SELECT sum(price) FROM item \
                WHERE item.id = sale.item) AND shop IN (SELECT id FROM shop WHERE town = 3)";
    let explained = plan(&c, text);
    let at = |text: &str| explained.find(text).unwrap_or_else(|| panic!("{text}\n{explained}"));
    // Of a plan the lower lines run first.
    assert!(at("(scalar)") < at("(ANY)"), "{explained}");
    let between = &explained[at("(scalar)")..at("(ANY)")];
    assert!(between.contains("Filter"), "{explained}");
}

#[test]
fn an_or_over_several_tables_restricts_each_of_them() {
    let c = filled();
    let text = "SELECT count(*) FROM shop JOIN town ON shop.town = town.id JOIN sale ON sale.shop = shop.id \
                WHERE (town.name = 'town 3' AND sale.amount = 7) OR (town.name = 'town 4' AND sale.amount = 8)";
    let explained = plan(&c, text);
    let restriction = "((town.name = 'town 3') OR (town.name = 'town 4'))";
    assert!(explained.contains(restriction), "{explained}");
    let rows = lines(&c, text);
    let expected = "SELECT count(*) FROM sale WHERE (shop % 20 = 2 AND amount = 7) OR (shop % 20 = 3 AND amount = 8)";
    assert_eq!(rows, lines(&c, expected));
}

/// Twelve tables in a chain, a star and without any condition: the order is found, and the answer
/// is that of the definition.
#[test]
fn joins_of_many_tables_are_ordered() {
    let c = filled();
    for count in [3, 8, 12, 14] {
        let tables: Vec<String> = (0..count).map(|n| format!("town t{n}")).collect();
        let chain: Vec<String> = (1..count).map(|n| format!("t{}.id = t{n}.id", n - 1)).collect();
        let star: Vec<String> = (1..count).map(|n| format!("t0.id = t{n}.id")).collect();
        for conditions in [chain, star] {
            let text = format!(
                "SELECT count(*), min(t0.id) FROM {} WHERE t{}.name <> 'town 5' AND {}",
                tables.join(", "),
                count - 1,
                conditions.join(" AND ")
            );
            assert_eq!(lines(&c, &text), ["19 1"], "{text}");
        }
    }
    assert_eq!(lines(&c, "SELECT count(*) FROM town a, town b, town c"), ["8000"]);
}

#[test]
fn settings_turn_join_methods_and_access_paths_off() {
    let c = filled();
    let join = "SELECT count(*) FROM sale JOIN item ON sale.item = item.id";
    let read = "SELECT price FROM item WHERE id = 7";
    let all = "SELECT count(*) FROM item WHERE id >= 0";
    for (setting, text, with, without) in [
        ("enable_hashjoin", join, "Hash Join", "Nested Loop"),
        ("enable_indexscan", read, "Primary Key Lookup", "Seq Scan"),
        ("enable_seqscan", all, "Seq Scan", "Primary Key Scan"),
    ] {
        let (before, rows) = (plan(&c, text), lines(&c, text));
        assert!(before.contains(with) && !before.contains(without), "{before}");
        c.execute(&format!("SET {setting} = off"), &[]).unwrap();
        let after = plan(&c, text);
        assert!(after.contains(without) && !after.contains(with), "{setting}: {after}");
        assert_eq!(lines(&c, text), rows);
        c.execute(&format!("RESET {setting}"), &[]).unwrap();
        assert_eq!(plan(&c, text), before);
    }
    // A rollback brings a plan back as well.
    let looked = "SELECT count(*) FROM sale JOIN item ON sale.item = item.id WHERE sale.id < 3";
    assert!(plan(&c, looked).contains("Nested Loop"), "{}", plan(&c, looked));
    c.execute_script("BEGIN; SET enable_nestloop = off").unwrap();
    assert!(plan(&c, looked).contains("Hash Join"), "{}", plan(&c, looked));
    c.execute("ROLLBACK", &[]).unwrap();
    assert!(plan(&c, looked).contains("Nested Loop"), "{}", plan(&c, looked));
}

#[test]
fn a_day_compared_with_a_moment_bounds_an_index() {
    let c = filled();
    c.execute("CREATE TABLE days (k INTEGER PRIMARY KEY, d DATE NOT NULL)", &[]).unwrap();
    let days = "SELECT n, DATE '2020-01-01' + n FROM generate_series(0, 3999) g(n)";
    c.execute(&format!("INSERT INTO days {days}"), &[]).unwrap();
    c.execute("CREATE INDEX days_d ON days (d)", &[]).unwrap();
    let month = "d >= DATE '2021-03-01' AND d < DATE '2021-03-01' + INTERVAL '1 month'";
    let found = plan(&c, &format!("SELECT k FROM days WHERE {month}"));
    assert!(found.contains("Range: d >= '2021-03-01' AND d < '2021-04-01'"), "{found}");
    for (condition, count) in [
        (month, "31"),
        ("d <= TIMESTAMP '2020-01-02 12:00'", "2"),
        ("TIMESTAMP '2020-01-02 12:00' > d", "2"),
        ("d > TIMESTAMP '2030-12-11 23:59'", "2"),
        ("d = TIMESTAMP '2020-01-02 12:00'", "0"),
        ("d < TIMESTAMP 'infinity'", "4000"),
    ] {
        let text = format!("SELECT count(*) FROM days WHERE {condition}");
        assert_eq!(lines(&c, &text), [count], "{condition}");
    }
}

#[test]
fn explain_writes_plans_in_every_format() {
    let connection = SqlDatabase::open_in_memory(Options::new()).unwrap().connect();
    connection.execute_script("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)").unwrap();
    connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y')", &[]).unwrap();
    let explained = |options: &str| {
        let text = format!("EXPLAIN ({options}) SELECT b FROM t WHERE b > 'x' ORDER BY b LIMIT 5");
        let rows = connection.query(&text, &[]).and_then(|rows| rows.collect()).unwrap();
        assert_eq!(rows.len(), 1, "{options}: one text");
        rows[0][0].to_string()
    };
    let json = explained("ANALYZE, FORMAT JSON, BUFFERS, TIMING off, COSTS off, SUMMARY");
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut step = &read[0]["Plan"];
    while step["Plans"].is_array() {
        step = &step["Plans"][0];
    }
    assert_eq!(step["Node Type"], "Seq Scan", "{json}");
    assert_eq!(step["Relation Name"], "t", "{json}");
    assert_eq!(step["Actual Rows"], 1, "{json}");
    assert!(step["Filter"].is_string(), "{json}");
    assert!(explained("FORMAT YAML").starts_with("- Plan: \n    Node Type: "));
    let xml = explained("FORMAT xml, VERBOSE");
    assert!(xml.starts_with("<explain xmlns=") && xml.ends_with("</explain>"), "{xml}");
}

#[test]
fn existence_tests_below_an_aggregation_are_semi_joins() {
    let c = filled_by(
        "CREATE TABLE item (id INTEGER PRIMARY KEY, code TEXT, least INTEGER);
         CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER, code TEXT, amount INTEGER);
         INSERT INTO item SELECT g, CASE WHEN g % 7 > 0 THEN 'c' || g % 3000 END, g % 60
         FROM generate_series(1, 6000) AS g;
         INSERT INTO sale SELECT g, CASE WHEN g % 5 > 0 THEN g % 2500 END,
         CASE WHEN g % 11 > 0 THEN 'c' || g % 900 END, g % 50 FROM generate_series(1, 20000) AS g;
         CREATE INDEX sale_item ON sale (item);
         CREATE INDEX sale_code ON sale (code, amount)",
    );
    let of = |condition: &str| {
        format!("SELECT count(*), sum(id), min(code) FROM item WHERE {condition}")
    };
    let sold = "SELECT 1 FROM sale WHERE sale.item = item.id";
    let coded = "SELECT * FROM sale WHERE sale.code = item.code";
    for (condition, steps) in [
        (format!("EXISTS ({sold})"), &["Semi"][..]),
        (format!("NOT EXISTS ({sold})"), &["Anti"]),
        (format!("NOT EXISTS ({coded})"), &["Anti"]),
        (
            "EXISTS (SELECT 1 FROM sale WHERE sale.item = item.id + 900 AND sale.code = item.code)"
                .to_owned(),
            &["Semi"],
        ),
        (format!("EXISTS ({sold} AND amount < item.least AND amount > 10)"), &["Semi"]),
        (format!("NOT EXISTS ({coded} AND amount <= item.least)"), &["Anti"]),
        (format!("EXISTS ({sold}) AND NOT EXISTS ({sold} AND amount > 30)"), &["Semi", "Anti"]),
        (format!("id > 3000 AND NOT EXISTS ({sold} AND amount > 90)"), &["Anti"]),
        (format!("id < 0 AND NOT EXISTS ({sold})"), &[]),
    ] {
        let text = of(&condition);
        let explained = plan(&c, &text);
        for step in steps {
            let step = format!("Hash Right {step} Join (vectorized)");
            assert!(explained.contains(&step), "{text}: no {step} in\n{explained}");
        }
        if steps.is_empty() {
            assert!(!explained.contains("Hash Right"), "{text}\n{explained}");
        }
        let found = lines(&c, &text);
        c.execute("SET enable_hashjoin = off", &[]).unwrap();
        let explained = plan(&c, &text);
        assert!(!explained.contains("Hash Right"), "{text}\n{explained}");
        assert_eq!(lines(&c, &text), found, "{text}");
        c.execute("RESET enable_hashjoin", &[]).unwrap();
    }
}

#[test]
fn existence_tests_with_inequalities_read_their_rows_once() {
    let c = filled();
    let later = "SELECT 1 FROM sale l WHERE l.item = s.item AND l.shop > s.shop";
    for (text, step, first) in [
        (format!("SELECT s.id FROM sale s WHERE NOT EXISTS ({later}) ORDER BY 1"), "Anti", "100"),
        (format!("SELECT s.id FROM sale s WHERE EXISTS ({later}) ORDER BY 1"), "Semi", "1"),
        (
            format!(
                "SELECT s.id FROM sale s JOIN item ON item.id = s.item WHERE EXISTS ({later}) AND NOT EXISTS ({later} AND l.id > 9000) ORDER BY 1"
            ),
            "Anti",
            "1",
        ),
    ] {
        let explained = plan(&c, &text);
        assert!(explained.contains(&format!("Hash Right {step} Join")), "{text}\n{explained}");
        let found = lines(&c, &text);
        assert_eq!(found.first().map(String::as_str), Some(first), "{text}");
        c.execute_script("SET enable_hashjoin = off; CREATE INDEX sale_item ON sale (item)")
            .unwrap();
        assert!(!plan(&c, &text).contains("Hash Right"), "{text}");
        assert_eq!(lines(&c, &text), found, "{text}");
        c.execute_script("RESET enable_hashjoin; DROP INDEX sale_item").unwrap();
    }
    // The first row may be found sooner, and a row that is locked stays the current one.
    for end in ["LIMIT 1", "FOR UPDATE"] {
        let text = format!("SELECT s.id FROM sale s WHERE EXISTS ({later}) {end}");
        let explained = plan(&c, &text);
        assert!(!explained.contains("Hash Right"), "{explained}");
    }
}

#[test]
fn a_semi_join_is_executed_by_rows_if_a_product_is_too_long() {
    let c = filled_by(
        "CREATE TABLE item (id INTEGER PRIMARY KEY, width NUMERIC(16, 12) NOT NULL);
         CREATE TABLE sale (id INTEGER PRIMARY KEY, item INTEGER, amount INTEGER);
         INSERT INTO item SELECT g, g + 0.123456789012 FROM generate_series(1, 6000) AS g;
         INSERT INTO sale SELECT g, g % 2500, g % 50 FROM generate_series(1, 20000) AS g;
         CREATE INDEX sale_item ON sale (item)",
    );
    for condition in ["", "NOT"] {
        let text = format!(
            "SELECT count(*), sum(width * width * width) FROM item WHERE {condition} EXISTS \
             (SELECT 1 FROM sale WHERE sale.item = item.id AND amount < item.id)"
        );
        assert!(plan(&c, &text).contains("Join (vectorized)"), "{text}");
        let found = lines(&c, &text);
        c.execute("SET enable_hashjoin = off", &[]).unwrap();
        assert_eq!(lines(&c, &text), found, "{text}");
        c.execute("RESET enable_hashjoin", &[]).unwrap();
    }
}

#[test]
fn twelve_tables_are_joined_without_cross_products() {
    let tables: Vec<String> = (0..12)
        .map(|nth| {
            format!(
                "CREATE TABLE t{nth} (id INT PRIMARY KEY, next INT NOT NULL, of INT NOT NULL);
                 INSERT INTO t{nth} SELECT i, i % 60 + 1, i % 4 FROM generate_series(1, 60) i;"
            )
        })
        .collect();
    let c = filled_by(&tables.join("\n"));
    // A chain, named in an order in which neighbors are far apart, and a star.
    let from: Vec<String> = (0..12).map(|nth| format!("t{}", nth * 5 % 12)).collect();
    let from = from.join(", ");
    let chain: Vec<String> = (0..11).map(|nth| format!("t{nth}.next = t{}.id", nth + 1)).collect();
    let star: Vec<String> = (1..12).map(|nth| format!("t0.next = t{nth}.id")).collect();
    for conditions in [chain.join(" AND "), star.join(" AND ")] {
        let text = format!("SELECT count(*), sum(t11.id) FROM {from} WHERE {conditions}");
        assert_eq!(lines(&c, &text), ["60 1830"], "{text}");
        let plan = plan(&c, &text);
        let by_key = ["Hash Cond: ", "Key: ", "Range: "].map(|what| plan.matches(what).count());
        assert!(by_key.iter().sum::<usize>() >= 11, "{plan}");
    }
    // Conditions that connect three tables, or not all.
    for (text, expected) in [
        (
            "SELECT count(*) FROM t0, t1, t2, t3 WHERE t0.id + t1.id = t2.id AND t2.of = t3.id",
            "1305",
        ),
        ("SELECT count(*) FROM t0, t1, t2, t3 WHERE t0.id = t1.id AND t2.id = t3.next", "3600"),
        ("SELECT count(*) FROM t0, t1, t2 WHERE t0.id = 5 AND t1.id = 7 AND t2.id < 4", "3"),
    ] {
        assert_eq!(lines(&c, text), [expected], "{text}");
    }
}
