//! Indexes in the order of collations over generated texts: a query answers the same by the index
//! as by a scan, after any changes, and equal texts are one key.
//!
//! `QUICKBEAM_SEED` sets the first seed.

use super::compare_with_scan;
use quickbeam::Options;
use quickbeam_sql::{Connection, SqlDatabase};
use quickbeam_testing::{Random, number_in};

const TABLE: &str = "
    CREATE COLLATION ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    CREATE COLLATION ai (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
    CREATE COLLATION num (provider = icu, locale = 'de-u-kn-true');
    CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT COLLATE ci UNIQUE, b TEXT COLLATE num,
        c VARCHAR(9) COLLATE ai, d TEXT);
    CREATE INDEX t_b ON t (b DESC, id);
    CREATE INDEX t_c ON t (c NULLS FIRST, id);
    CREATE INDEX t_d ON t (d COLLATE ai, id);
    CREATE INDEX t_e ON t (upper(b)) WHERE id % 3 > 0;
    CREATE INDEX t_h ON t USING hash (c)";

fn text(random: &mut Random) -> String {
    let letters = ["a", "A", "ä", "Ä", "b", "B", "é", "e", "ß", "ss", "1", "9", "10", "-", " "];
    let count = 1 + random.below(3);
    (0..count).map(|_| letters[random.below(letters.len())]).collect()
}

fn literal(random: &mut Random) -> String {
    if random.chance(8) { "NULL".into() } else { format!("'{}'", text(random)) }
}

/// A condition with an order, which an index may answer.
fn tail(random: &mut Random) -> String {
    let side = ["a", "b", "c", "d COLLATE ai", "upper(b)"][random.below(5)];
    let comparison = ["=", "<", "<=", ">", ">=", "<>"][random.below(6)];
    let condition = match random.below(4) {
        0 => format!("{side} IN ('{}', '{}')", text(random), text(random)),
        1 => format!("{side} BETWEEN '{}' AND '{}'", text(random), text(random)),
        _ => format!("{side} {comparison} '{}'", text(random)),
    };
    let condition =
        if side == "upper(b)" { format!("{condition} AND id % 3 > 0") } else { condition };
    let order = ["", " DESC", " NULLS FIRST", " DESC NULLS LAST"][random.below(4)];
    match random.below(3) {
        0 => format!("WHERE {condition} ORDER BY id"),
        1 => format!("ORDER BY {side}{order}, id LIMIT {}", 1 + random.below(9)),
        _ => format!("WHERE {condition} ORDER BY {side}{order}, id"),
    }
}

fn change(random: &mut Random, c: &Connection, next: &mut usize) {
    let of = random.below(*next + 1);
    let [a, b, col, d] = [(); 4].map(|()| literal(random));
    let statement = match random.below(6) {
        0..=2 => {
            *next += 1;
            format!(
                "INSERT INTO t VALUES ({next}, {a}, {b}, {col}, {d}) ON CONFLICT (a) DO UPDATE SET a = excluded.a, d = excluded.d"
            )
        }
        3 => format!("UPDATE t SET b = {b}, c = {col}, d = {d} WHERE id = {of}"),
        4 => format!("UPDATE t SET a = lower(a) WHERE id > {of}"),
        _ => format!("DELETE FROM t WHERE a = {a} OR id = {of}"),
    };
    c.execute(&statement, &[]).unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// Compares answers by indexes with those of scans. Returns how many plans use an index.
fn compare(random: &mut Random, c: &Connection, seed: u64) -> usize {
    let mut used = 0;
    for _ in 0..12 {
        let query = format!("SELECT id FROM t {}", tail(random));
        let words = "Index Scan using t_";
        used += usize::from(compare_with_scan(c, &query, "enable_indexscan", words, seed));
    }
    used
}

#[test]
fn answers_by_collated_indexes_are_those_of_scans() {
    let first = number_in("QUICKBEAM_SEED").unwrap_or(1);
    let mut used = 0;
    for seed in first..first + 20 {
        let mut random = Random::new(seed);
        let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
        let c = database.connect();
        c.execute_script(TABLE).unwrap();
        let mut next = 0;
        for _ in 0..4 {
            c.execute_script("BEGIN").unwrap();
            for _ in 0..random.below(14) {
                change(&mut random, &c, &mut next);
            }
            used += compare(&mut random, &c, seed);
            c.execute_script(if random.chance(30) { "ROLLBACK" } else { "COMMIT" }).unwrap();
            used += compare(&mut random, &c, seed);
            let twice = "SELECT a FROM t GROUP BY a HAVING count(a) > 1";
            assert!(c.query(twice, &[]).unwrap().collect().unwrap().is_empty(), "seed {seed}");
            let complaints = database.verify().unwrap().complaints;
            assert!(complaints.is_empty(), "seed {seed}: {complaints:?}");
        }
    }
    assert!(used > 600, "{used} plans use an index");
}
