//! Conditions that scans test on the bytes of rows, and rows that index scans read ahead.

use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value};

fn connect() -> Connection {
    let options = Options::new().durability(Durability::InMemory).cache_size(8 << 20);
    SqlDatabase::open_in_memory(options).unwrap().connect()
}

fn numbers(connection: &Connection, text: &str) -> Vec<i64> {
    let rows = connection.query(text, &[]).unwrap().collect().unwrap();
    rows.iter().map(|row| row[0].as_ref().as_i64().unwrap()).collect()
}

/// Rows with texts of all types, with blanks, letters of several bytes and NULLs.
fn fill(connection: &Connection) {
    connection
        .execute(
            "CREATE TABLE words (k INTEGER PRIMARY KEY, c CHAR(8), v VARCHAR(12), t TEXT NOT NULL, \
             n INTEGER, b BIGINT NOT NULL, d DATE, e DATE NOT NULL, s SMALLINT)",
            &[],
        )
        .unwrap();
    connection
        .execute(
            "INSERT INTO words SELECT g, \
             CASE g % 5 WHEN 0 THEN NULL WHEN 1 THEN 'ab' WHEN 2 THEN 'äöü' WHEN 3 THEN '' \
             ELSE 'MED BOX' END, \
             CASE g % 7 WHEN 0 THEN NULL WHEN 1 THEN 'ab' WHEN 2 THEN 'ab ' WHEN 3 THEN 'ßx' \
             ELSE 'forest ' || g % 3 END, \
             CASE g % 4 WHEN 0 THEN 'special requests' WHEN 1 THEN '' ELSE '1' || g % 9 END, \
             NULLIF(g % 11, 3), g % 13, \
             CASE WHEN g % 6 > 0 THEN DATE '2020-01-01' + g % 17 END, DATE '2020-01-08', \
             NULLIF(g % 3, 1) FROM generate_series(1, 900) g",
            &[],
        )
        .unwrap();
}

#[test]
fn tested_rows_are_those_whose_condition_is_true() {
    let connection = connect();
    fill(&connection);
    let conditions = [
        "c = 'ab'",
        "c <> 'ab  '",
        "'MED BOX' = c",
        "c IN ('ab', 'MED BOX', '')",
        "c NOT IN ('ab', 'äöü')",
        "c LIKE 'M%'",
        "c::text LIKE '%ö_'",
        "v = 'ab '",
        "v NOT IN ('ab', 'forest 1')",
        "v LIKE 'forest%'",
        "v NOT LIKE '%x'",
        "t NOT LIKE '%special%requests%'",
        "t = ''",
        "substring(t, 1, 2) IN ('11', '13', 'sp')",
        "substring(v from 2 for 1) = 'x'",
        "substring(c from 2) = 'öü'",
        "substring(t, -1, 3) = '1'",
        "substr(t, 3) <> ''",
        "d < e",
        "d <= e AND t = ''",
        "NOT (n > b)",
        "n = b OR c = 'ab'",
        "n IN (1, 2, 9) OR v LIKE 'f%' AND s <> 2",
        "NOT (c = 'ab' OR n = 4)",
        "NOT (c = 'ab' AND v = 'ab')",
        "(c = 'ab' AND n BETWEEN 1 AND 5) OR (c = 'MED BOX' AND n BETWEEN 4 AND 9 AND v <> 'ab')",
        "d = DATE '2020-01-05' OR d > DATE '2020-01-12' AND c IN ('ab', 'äöü')",
        "s < n AND t LIKE '1%' AND c <> ''",
        "1000 / (n - 4) > 100 AND c = 'ab'",
    ];
    for condition in conditions {
        let plain = condition.replace("1000 / (n - 4)", "1000 / NULLIF(n - 4, 0)");
        let all = format!("SELECT k, ({plain}) FROM words ORDER BY k");
        let all = connection.query(&all, &[]).unwrap().collect().unwrap();
        let is_true = |row: &&Vec<Value>| row[1] == Value::Boolean(true);
        let number = |row: &Vec<Value>| row[0].as_ref().as_i64().unwrap();
        let wanted: Vec<i64> = all.iter().filter(is_true).map(number).collect();
        for mode in ["row", "vectorized"] {
            connection.execute(&format!("SET execution_mode = '{mode}'"), &[]).unwrap();
            let found = numbers(&connection, &format!("SELECT k FROM words WHERE {plain}"));
            assert_eq!(found, wanted, "{mode}: {plain}");
            let counted =
                numbers(&connection, &format!("SELECT count(*) FROM words WHERE {plain}"));
            assert_eq!(counted, [wanted.len() as i64], "{mode}: {plain}");
        }
    }
}

#[test]
fn index_scan_keeps_its_order_while_it_reads_ahead() {
    let connection = connect();
    connection
        .execute("CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER NOT NULL, x TEXT)", &[])
        .unwrap();
    connection
        .execute(
            "INSERT INTO t SELECT g, g * 7919 % 5003, repeat('x', g % 40) \
             FROM generate_series(1, 5000) g",
            &[],
        )
        .unwrap();
    connection.execute("CREATE INDEX t_a ON t (a)", &[]).unwrap();
    let query = "SELECT a * 10000 + k FROM t WHERE a BETWEEN 100 AND 2600 ORDER BY a";
    connection.execute("SET enable_seqscan = off", &[]).unwrap();
    let by_index = numbers(&connection, query);
    connection.execute("SET enable_seqscan = on", &[]).unwrap();
    connection.execute("SET enable_indexscan = off", &[]).unwrap();
    assert_eq!(by_index, numbers(&connection, query));
    connection.execute("SET enable_indexscan = on", &[]).unwrap();
    assert!(by_index.len() > 2_000 && by_index.is_sorted());
    connection.execute("SET enable_seqscan = off", &[]).unwrap();
    let first = numbers(&connection, &format!("{query} LIMIT 40"));
    assert_eq!(first, by_index[..40]);
    let last = numbers(&connection, &format!("{query} DESC LIMIT 300"));
    let backward: Vec<i64> = by_index.iter().rev().take(300).copied().collect();
    assert_eq!(last, backward);
    // Each row is changed once, although the change moves its entry.
    let changed = connection.execute("UPDATE t SET a = a + 1 WHERE a BETWEEN 100 AND 2600", &[]);
    assert_eq!(changed.unwrap(), by_index.len() as u64);
    let moved = numbers(
        &connection,
        "SELECT a * 10000 + k FROM t WHERE a BETWEEN 101 AND 2601 ORDER BY a, k",
    );
    let mut wanted: Vec<i64> = by_index.iter().map(|number| number + 10_000).collect();
    wanted.retain(|number| number / 10_000 > 100);
    let others = numbers(&connection, "SELECT a * 10000 + k FROM t WHERE a = 2601 ORDER BY k");
    wanted.extend(others.iter().filter(|other| !by_index.contains(&(**other - 10_000))));
    wanted.sort_unstable();
    assert_eq!(moved, wanted);
}
