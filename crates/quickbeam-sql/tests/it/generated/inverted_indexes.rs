//! Inverted indexes over generated documents, arrays and JSONB values: a query answers the same by
//! the index as by a scan, after any changes.
//!
//! `QUICKBEAM_SEED` sets the first seed.

use super::compare_with_scan;
use quickbeam::Options;
use quickbeam_sql::{Connection, SqlDatabase};
use quickbeam_testing::{Random, number_in};

const TABLE: &str = "
    CREATE TABLE t (id INTEGER{KEY}, v tsvector, a INTEGER[], s TEXT[], n NUMERIC[], j JSONB, b TEXT);
    CREATE INDEX t_v ON t USING gin (v);
    CREATE INDEX t_a ON t USING gin (a);
    CREATE INDEX t_s ON t USING gin (s);
    CREATE INDEX t_n ON t USING gin (n);
    CREATE INDEX t_j ON t USING gin (j);
    CREATE INDEX t_b ON t USING gin (to_tsvector('simple', b)) WHERE id % 3 > 0";

fn list(random: &mut Random, most: usize, mut item: impl FnMut(&mut Random) -> String) -> String {
    let count = random.below(most + 1);
    (0..count).map(|_| item(random)).collect::<Vec<_>>().join(",")
}

/// A word; some are longer than the bytes that an entry has of a key.
fn word(random: &mut Random) -> String {
    match random.below(12) {
        0 => format!("{}{}", "long".repeat(40), random.below(3)),
        1 => "é".into(),
        _ => ["ab", "abc", "abd", "b", "bc", "c", "cd"][random.below(7)].into(),
    }
}

fn vector(random: &mut Random) -> String {
    let words = list(random, 6, |random| match random.chance(50) {
        true => format!("{}:{}A", word(random), random.below(5) + 1),
        false => word(random),
    });
    words.replace(',', " ")
}

fn query(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.chance(30) {
        let suffix = ["", "", "", ":*", ":A", ":B*"][random.below(6)];
        return format!("{}{suffix}", word(random));
    }
    let mut part = || query(random, depth - 1);
    let (left, right) = (part(), part());
    match random.below(7) {
        0..=2 => format!("({left} & {right})"),
        3..=4 => format!("({left} | {right})"),
        5 => format!("({left} <-> {right})"),
        _ => format!("!({left})"),
    }
}

fn array(random: &mut Random, items: &[&str]) -> String {
    format!("{{{}}}", list(random, 4, |random| items[random.below(items.len())].into()))
}

const INTEGERS: &[&str] = &["NULL", "0", "1", "2", "3", "-7"];
const TEXTS: &[&str] = &["NULL", "a", "b", "\"\"", "ab"];
const NUMBERS: &[&str] = &["NULL", "1", "1.0", "1.50", "1.5", "NaN", "1e40"];

fn json(random: &mut Random, depth: usize) -> String {
    let scalars =
        ["null", "true", "false", "1", "1.0", "2.50", "\"a\"", "\"b\"", "\"\"", "[]", "{}"];
    match random.below(if depth == 0 { 2 } else { 5 }) {
        0 => scalars[random.below(scalars.len())].into(),
        1 if random.chance(10) => format!("\"{}\"", "x".repeat(150 + random.below(2))),
        1 => scalars[random.below(scalars.len())].into(),
        2 => format!("[{}]", list(random, 3, |random| json(random, depth - 1))),
        _ => {
            let member = |random: &mut Random| {
                let name = ["a", "b", "c", ""][random.below(4)];
                format!("\"{name}\":{}", json(random, depth - 1))
            };
            format!("{{{}}}", list(random, 3, member))
        }
    }
}

/// The values of a row, as literals.
fn values(random: &mut Random) -> [String; 6] {
    let made = [
        vector(random),
        array(random, INTEGERS),
        array(random, TEXTS),
        array(random, NUMBERS),
        json(random, 3),
        vector(random).replace(":", " "),
    ];
    made.map(|text| match random.chance(8) {
        true => "NULL".to_owned(),
        false => format!("'{text}'"),
    })
}

/// A condition that an index answers, and the index.
fn condition(random: &mut Random) -> (String, &'static str) {
    let arrays = [("a", INTEGERS, "integer"), ("s", TEXTS, "text"), ("n", NUMBERS, "numeric")];
    match random.below(8) {
        0 | 1 => (format!("v @@ '{}'::tsquery", query(random, 3)), "t_v"),
        2 => (format!("to_tsvector('simple', b) @@ '{}' AND id % 3 > 0", query(random, 2)), "t_b"),
        3 | 4 => {
            let (column, items, of) = arrays[random.below(3)];
            let value = format!("'{}'::{of}[]", array(random, items));
            let index = ["t_a", "t_s", "t_n"][arrays.iter().position(|it| it.0 == column).unwrap()];
            let condition = match random.below(6) {
                4 => format!("{column} = {value}"),
                5 => format!("{value} = {column}"),
                0 => format!("{value} <@ {column}"),
                1 => format!("{column} @> {value}"),
                2 => format!("{column} && {value}"),
                _ => format!("{value} && {column}"),
            };
            (condition, index)
        }
        5 => {
            let names = array(random, &["a", "b", "c", "NULL", "\"\""]);
            let operator = ["?|", "?&"][random.below(2)];
            (format!("j {operator} '{names}'"), "t_j")
        }
        6 => (format!("j ? '{}'", ["a", "b", "", "x"][random.below(4)]), "t_j"),
        _ => (format!("j @> '{}'", json(random, 2)), "t_j"),
    }
}

/// A condition that an index answers, or several of which one has to hold.
fn alternatives(random: &mut Random) -> (String, &'static str) {
    let (mut text, index) = condition(random);
    if random.chance(70) {
        return (text, index);
    }
    for _ in 0..1 + random.below(2) {
        let other = condition(random).0;
        text = match random.chance(30) {
            true => format!("{text} OR ({other} AND id > 2)"),
            false => format!("{text} OR {other}"),
        };
    }
    (format!("({text})"), "t_")
}

fn change(random: &mut Random, c: &Connection, next: &mut usize) {
    let condition = match random.chance(40) {
        true => condition(random).0,
        false => format!("id = {}", random.below(*next + 1)),
    };
    let [v, a, s, n, j, b] = values(random);
    let text = match random.below(6) {
        0..=2 => {
            *next += 1;
            format!("INSERT INTO t VALUES ({next}, {v}, {a}, {s}, {n}, {j}, {b})")
        }
        3 => format!("UPDATE t SET v = {v}, j = {j}, b = {b} WHERE {condition}"),
        4 => format!("UPDATE t SET a = a || {a}, s = {s}, n = {n} WHERE {condition}"),
        _ => format!("DELETE FROM t WHERE {condition}"),
    };
    c.execute(&text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
}

/// Compares answers by the index with those of scans. Returns how many plans use the index.
fn compare(random: &mut Random, c: &Connection, seed: u64) -> usize {
    let mut used = 0;
    for _ in 0..12 {
        let (condition, index) = alternatives(random);
        let query = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        let words = format!("Index Scan on {index}");
        used += usize::from(compare_with_scan(c, &query, "enable_bitmapscan", &words, seed));
    }
    used
}

#[test]
fn answers_by_inverted_indexes_are_those_of_scans() {
    let first = number_in("QUICKBEAM_SEED").unwrap_or(1);
    let mut used = 0;
    for seed in first..first + 20 {
        let mut random = Random::new(seed);
        let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
        let c = database.connect();
        let key = if random.chance(50) { " PRIMARY KEY" } else { "" };
        c.execute_script(&TABLE.replace("{KEY}", key)).unwrap();
        if random.chance(50) {
            c.execute_script("DROP INDEX t_j; CREATE INDEX t_j ON t USING gin (j jsonb_path_ops)")
                .unwrap();
        }
        if random.chance(30) {
            let class = if random.chance(50) { " jsonb_path_ops" } else { "" };
            c.execute_script(&format!(
                "DROP INDEX t_v, t_a, t_j; CREATE INDEX t_v ON t USING gin (v, j{class}, a)"
            ))
            .unwrap();
        }
        let mut next = 0;
        for _ in 0..4 {
            c.execute_script("BEGIN").unwrap();
            for _ in 0..random.below(12) {
                change(&mut random, &c, &mut next);
            }
            used += compare(&mut random, &c, seed);
            c.execute_script(if random.chance(30) { "ROLLBACK" } else { "COMMIT" }).unwrap();
            if random.chance(20) {
                c.execute_script("REINDEX TABLE t").unwrap();
            }
            used += compare(&mut random, &c, seed);
            let complaints = database.verify().unwrap().complaints;
            assert!(complaints.is_empty(), "seed {seed}: {complaints:?}");
        }
    }
    assert!(used > 500, "{used} plans use an index");
}
