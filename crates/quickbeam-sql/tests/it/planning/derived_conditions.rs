//! What the planner derives from the conditions of a query: equalities that follow from others,
//! subqueries that are joined like tables; and that a subquery is not evaluated again for rows with
//! the same values.

use quickbeam_sql::Connection;

use super::{filled_by, lines, plan};

fn filled() -> Connection {
    filled_by(
        "CREATE TABLE a (id INTEGER PRIMARY KEY, k INTEGER, x NUMERIC(10,2));
         CREATE TABLE b (id INTEGER PRIMARY KEY, k INTEGER NOT NULL, j INTEGER);
         CREATE TABLE c (id INTEGER PRIMARY KEY, k BIGINT, day DATE NOT NULL);
         CREATE INDEX a_k ON a (k);
         CREATE INDEX c_k ON c (k);
         INSERT INTO a SELECT g, CASE WHEN g % 7 > 0 THEN g % 1000 END, g % 10
           FROM generate_series(1, 5000) AS g;
         INSERT INTO b SELECT g, g % 1200, g % 30 FROM generate_series(1, 3000) AS g;
         INSERT INTO c SELECT g, g % 900, DATE '1990-01-01' + g FROM generate_series(1, 4000) AS g",
    )
}

#[test]
fn equalities_that_follow_from_others_join_tables() {
    let c = filled();
    // Nothing but the derived `a.k = c.k` joins the few rows of a with c.
    let text = "SELECT count(*), sum(c.id) FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.id < 4";
    let first = lines(&c, text);
    let by_hand = "SELECT count(*), sum(c.id) FROM a, b, c WHERE a.k + 0 = b.k \
                   AND b.k = c.k + 0 AND a.id < 4";
    assert_eq!(first, lines(&c, by_hand));
    for off in ["enable_hashjoin", "enable_nestloop", "enable_indexscan"] {
        c.execute(&format!("SET {off} = off"), &[]).unwrap();
        assert_eq!(first, lines(&c, text), "{off}");
        c.execute(&format!("RESET {off}"), &[]).unwrap();
    }
    // Two columns of one table, and a table that joins both ways.
    let text = "SELECT count(*) FROM a, b, c WHERE a.k = b.k AND b.k = b.j AND c.k = b.j";
    let by_hand = "SELECT count(*) FROM a, b, c WHERE a.k + 0 = b.k AND b.k + 0 = b.j \
                   AND c.k + 0 = b.j";
    assert_eq!(lines(&c, text), lines(&c, by_hand));
    let explained = plan(&c, text);
    assert_eq!(explained.matches("Hash Cond").count() + explained.matches("Range:").count(), 2);
    assert!(!explained.contains(" AND a.k"), "an implied key: {explained}");
}

#[test]
fn few_values_of_a_subquery_are_joined() {
    let c = filled();
    let text = "SELECT count(*), sum(a.id) FROM a, b WHERE a.k = b.k \
                AND a.id IN (SELECT j FROM b GROUP BY j HAVING sum(id) > 150000)";
    let explained = plan(&c, text);
    assert!(explained.contains("Distinct") && !explained.contains("Hashed"), "{explained}");
    let by_hand = "SELECT count(*), sum(a.id) FROM a, b WHERE a.k = b.k \
                   AND EXISTS (SELECT FROM b y WHERE y.j = a.id \
                   AND (SELECT sum(id) FROM b z WHERE z.j = y.j) > 150000)";
    assert_eq!(lines(&c, text), lines(&c, by_hand));
    // NULLs among the values, and none at all.
    for (values, rows) in [("NULLIF(j, 3)", "29"), ("NULL::integer", "0")] {
        let text = format!(
            "SELECT count(*) FROM a, c WHERE a.id = c.id AND a.id IN (SELECT {values} FROM b)"
        );
        let kept = lines(&c, &text);
        let text = text.replace("a.id IN", "a.id = ANY");
        assert_eq!(kept, lines(&c, &text));
        let less = if rows == "29" { "28" } else { "0" };
        assert_eq!(kept, [less], "{text}");
    }
    // The same in the outputs keeps its value.
    let text = "SELECT id, id IN (SELECT j FROM b WHERE j < 3) FROM a \
                WHERE id IN (SELECT j FROM b WHERE j < 3) ORDER BY id";
    assert_eq!(lines(&c, text), ["1 t", "2 t"]);
}

#[test]
fn answers_are_kept_for_the_same_outer_values() {
    let c = filled();
    c.execute_script(
        "CREATE TABLE n (id INTEGER PRIMARY KEY, x NUMERIC, t TEXT);
         INSERT INTO n VALUES (1, 1.0, 'a'), (2, 1.00, 'a'), (3, 1.00, 'a '), (4, NULL, 'a '),
           (5, NULL, NULL), (6, NULL, NULL)",
    )
    .unwrap();
    let text = "SELECT id, (SELECT n.x FROM b WHERE b.id = 1), \
                (SELECT n.t || '.' FROM b WHERE b.id = 1) FROM n ORDER BY id";
    let expected =
        ["1 1.0 a.", "2 1.00 a.", "3 1.00 a .", "4 NULL a .", "5 NULL NULL", "6 NULL NULL"];
    assert_eq!(lines(&c, text), expected);
    // A second execution sees what has changed.
    let text = "SELECT b.k, (SELECT count(*) FROM a WHERE a.k = b.k AND a.id < 2000) FROM b \
                WHERE b.k = 5 ORDER BY 2";
    assert_eq!(lines(&c, text), ["5 2", "5 2", "5 2"]);
    c.execute("DELETE FROM a WHERE id = 5", &[]).unwrap();
    assert_eq!(lines(&c, text), ["5 1", "5 1", "5 1"]);
    // A value for each call is no value for all.
    let text = "SELECT count(DISTINCT r) FROM (SELECT (SELECT random() FROM a \
                WHERE a.k = b.k LIMIT 1) AS r FROM b WHERE b.k = 6) AS x";
    assert_eq!(lines(&c, text), ["3"]);
}

#[test]
fn functions_of_columns_give_the_same_by_rows() {
    let c = filled();
    for text in [
        "SELECT extract(year FROM day), extract(month FROM day), count(*) FROM c GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT extract(dow FROM day), extract(epoch FROM day), sum(id) FROM c GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT y, sum(id) FROM (SELECT extract(year FROM day) AS y, c.id FROM c, b WHERE c.k = b.k) AS s GROUP BY y ORDER BY y",
        "SELECT substring(day::text, 1, 4), count(*) FROM c GROUP BY 1 ORDER BY 1",
        "SELECT count(*) FROM (SELECT id::text || 'x' AS t FROM c) AS s WHERE substring(t, 1, 1) IN ('1', '3') AND length(t) > 2",
    ] {
        let answer = |mode: &str| {
            c.execute(&format!("SET execution_mode = '{mode}'"), &[]).unwrap();
            lines(&c, text)
        };
        let rows = answer("row");
        assert!(!rows.is_empty() && rows == answer("vectorized"), "{text}");
        assert_eq!(rows, answer("auto"), "{text}");
    }
    // The year of a day without end is infinite, which row execution computes.
    let text = "SELECT extract(year FROM day), count(*) FROM c GROUP BY 1 ORDER BY 1 DESC";
    assert!(plan(&c, text).contains("vectorized"), "{}", plan(&c, text));
    c.execute("INSERT INTO c VALUES (10000, 1, 'infinity')", &[]).unwrap();
    let answers = ["row", "vectorized"].map(|mode| {
        c.execute(&format!("SET execution_mode = '{mode}'"), &[]).unwrap();
        lines(&c, text)
    });
    assert_eq!(answers[0][0], "Infinity 1");
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn filters_of_scans_find_the_same_rows() {
    let c = filled();
    c.execute_script(
        "CREATE TABLE w (id INTEGER PRIMARY KEY, kind CHAR(6), size INTEGER, name VARCHAR(20));
         INSERT INTO w SELECT g, CASE g % 5 WHEN 0 THEN NULL WHEN 1 THEN 'ab' WHEN 2 THEN 'ab x'
           ELSE 'c' || g % 4 END, g % 50, 'n' || g % 13 FROM generate_series(1, 3000) AS g;
         ALTER TABLE w ADD COLUMN more INTEGER DEFAULT 7;
         INSERT INTO w VALUES (5000, 'ab', NULL, 'n1', NULL)",
    )
    .unwrap();
    for condition in [
        "kind = 'ab'",
        "kind <> 'ab '",
        "kind IN ('ab', 'c1')",
        "name IN ('n1', 'n2', 'n3', 'n4', 'n5', 'n6')",
        "name NOT IN ('n1', 'n2', 'n3', 'n4', 'n5', 'n6')",
        "(kind = 'ab' AND size < 10 AND name = 'n1') OR (kind = 'c2' AND size BETWEEN 5 AND 40)",
        "size >= 10 AND size < 20 AND size > 12 AND name LIKE 'n1%'",
        "size >= 10 AND size < 5",
        "more = 7 AND kind IS NULL",
        "NOT (kind = 'ab' OR more = 7)",
        "substring(name, 2, 1) = '1' AND kind = name",
    ] {
        let sum = format!("SELECT count(*), sum(id) FROM w WHERE {condition}");
        c.execute("SET execution_mode = 'vectorized'", &[]).unwrap();
        let by_columns = lines(&c, &sum);
        c.execute("SET execution_mode = 'row'", &[]).unwrap();
        assert_eq!(lines(&c, &sum), by_columns, "{condition}");
        // Evaluated for each row of a join, where no column is built.
        let one_by_one = format!(
            "SELECT count(*), sum(id) FROM (SELECT id, random() AS r, ({condition}) AS h FROM w) AS s WHERE h"
        );
        assert_eq!(lines(&c, &one_by_one), by_columns, "{condition}");
    }
}
