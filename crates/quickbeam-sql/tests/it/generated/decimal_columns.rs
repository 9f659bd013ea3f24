//! Queries of NUMERIC and DATE columns by rows and by columns: the answers are the same, to the
//! last digit that is written. Values reach from nothing to the limits of their types, so that
//! results need 64 bits, 128 bits, or more digits than a NUMERIC has.

use super::differential::set_way;
use super::sqlite;
use proptest::prelude::*;
use quickbeam::{Durability, Options};
use quickbeam_sql::{Connection, SqlDatabase, Value};

const TABLE: &str = "CREATE TABLE n (k INTEGER PRIMARY KEY, g CHAR(1) NOT NULL, \
     a NUMERIC(15,2) NOT NULL, b NUMERIC(6,4), w NUMERIC(30,3), i INTEGER, h BIGINT, d DATE NOT NULL)";

/// A number of at most `digits` digits, `scale` of them after the point.
fn number(digits: usize, scale: usize) -> impl Strategy<Value = String> {
    let written = move |(digits, is_negative): (String, bool)| {
        let padded = format!("{digits:0>width$}", width = scale + 1);
        let (whole, rest) = padded.split_at(padded.len() - scale);
        format!("{}{whole}.{rest}", if is_negative { "-" } else { "" })
    };
    let digits = prop_oneof![
        4 => prop::string::string_regex("[0-9]{1,3}").unwrap(),
        2 => prop::string::string_regex(&format!("[0-9]{{1,{digits}}}")).unwrap(),
        1 => Just("9".repeat(digits)),
    ];
    (digits, any::<bool>()).prop_map(written)
}

fn or_null(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop_oneof![5 => value, 1 => Just("NULL".to_owned())]
}

fn row() -> impl Strategy<Value = String> {
    let whole = (-3_i64..4).prop_map(|n| n.to_string());
    let large = prop_oneof![4 => whole.clone(), 1 => Just(i64::MAX.to_string())];
    let group = prop::sample::select(vec!["a", "b", "c"]);
    let day = (0..6_u32).prop_map(|day| format!("DATE '2020-02-2{}'", day + 4));
    (
        group,
        number(15, 2),
        or_null(number(6, 4)),
        or_null(number(30, 3)),
        or_null(whole),
        large,
        day,
    )
        .prop_map(|(g, a, b, w, i, h, d)| format!("'{g}', {a}, {b}, {w}, {i}, {h}, {d}"))
}

fn expression() -> impl Strategy<Value = String> {
    let leaves = ["a", "b", "w", "i", "h", "1", "0.05", "24", "a::numeric", "3.14159265358979"];
    let leaf = prop::sample::select(leaves.to_vec()).prop_map(str::to_owned);
    leaf.prop_recursive(3, 6, 2, |inner| {
        let operator = prop::sample::select(vec!["+", "-", "*"]);
        prop_oneof![
            6 => (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("({left}::numeric {operator} {right})")),
            1 => (inner.clone(), inner)
                .prop_map(|(left, right)| format!("(CASE WHEN k > 3 THEN {left} ELSE {right} END)")),
        ]
    })
}

fn condition() -> impl Strategy<Value = String> {
    let comparison = prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let moments = [
        "DATE '2020-02-26'",
        "TIMESTAMP '2020-02-26'",
        "TIMESTAMP '2020-02-26 00:00:01'",
        "(DATE '2020-01-26' + INTERVAL '1 month')",
        "TIMESTAMP 'infinity'",
    ];
    let moment = prop::sample::select(moments.to_vec());
    let constant =
        prop::sample::select(vec!["0", "0.01", "0.005", "24", "-1.5", "1e20", "-9999999999999.99"]);
    let column = prop::sample::select(vec!["a", "b", "w", "i"]);
    prop_oneof![
        2 => (comparison.clone(), moment.clone()).prop_map(|(c, m)| format!("d {c} {m}")),
        1 => (comparison.clone(), moment).prop_map(|(c, m)| format!("{m} {c} d")),
        3 => (column, comparison.clone(), constant).prop_map(|(x, c, y)| format!("{x} {c} {y}")),
        2 => (expression(), comparison, expression()).prop_map(|(x, c, y)| format!("{x} {c} {y}")),
    ]
}

fn query() -> impl Strategy<Value = String> {
    let aggregate = prop::sample::select(vec!["sum", "avg", "min", "max", "count"]);
    let parts = prop::collection::vec((aggregate, expression()), 1..4);
    let grouped = (parts, prop::sample::select(vec!["", "g", "g, d", "a"]), condition()).prop_map(
        |(parts, keys, condition)| {
            let parts: Vec<String> =
                parts.into_iter().map(|(name, argument)| format!("{name}({argument})")).collect();
            let parts = parts.join(", ");
            match keys {
                "" => format!("SELECT {parts} FROM n WHERE {condition}"),
                keys => format!("SELECT {keys}, {parts} FROM n WHERE {condition} GROUP BY {keys}"),
            }
        },
    );
    let sorted = (expression(), condition(), condition()).prop_map(|(key, first, second)| {
        format!("SELECT k, {key} FROM n WHERE {first} AND {second} ORDER BY {key}, k")
    });
    let keys = prop::sample::select(vec!["x.a = y.a", "x.b = y.b AND x.g = y.g", "x.w = y.w"]);
    let joined = (keys, number(15, 2)).prop_map(|(keys, least)| {
        format!(
            "SELECT x.g, count(*), sum(x.a * y.b * x.w) FROM n x JOIN n y ON {keys} AND x.a > {least} \
             GROUP BY x.g"
        )
    });
    prop_oneof![4 => grouped, 2 => sorted, 1 => joined]
}

fn answer(connection: &Connection, text: &str) -> Result<Vec<String>, String> {
    let rows = connection.query(text, &[]).and_then(|rows| rows.collect());
    let rows = rows.map_err(|error| error.state().code().to_owned())?;
    let line = |row: &Vec<Value>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    let mut rows: Vec<String> = rows.iter().map(line).collect();
    if !text.contains("ORDER BY") {
        rows.sort();
    }
    Ok(rows)
}

proptest! {
    #![proptest_config(sqlite::config(100))]

    #[test]
    fn numbers_by_columns_are_those_by_rows(
        rows in prop::collection::vec(row(), 0..12),
        queries in prop::collection::vec(query(), 1..12),
    ) {
        let options = Options::new().durability(Durability::InMemory).cache_size(4 << 20);
        let connection = SqlDatabase::open_in_memory(options).unwrap().connect();
        connection.execute(TABLE, &[]).unwrap();
        for (key, row) in rows.iter().enumerate() {
            let text = format!("INSERT INTO n VALUES ({key}, {row})");
            connection.execute(&text, &[]).unwrap();
        }
        for text in &queries {
            connection.execute("SET execution_mode = 'row'", &[]).unwrap();
            let by_rows = answer(&connection, text);
            connection.execute("SET execution_mode = 'vectorized'", &[]).unwrap();
            let by_columns = answer(&connection, text);
            prop_assert_eq!(&by_rows, &by_columns, "{}", text);
            set_way(&connection, ("vectorized", 2));
            prop_assert_eq!(by_columns, answer(&connection, text), "with workers: {}", text);
            set_way(&connection, ("vectorized", 0));
        }
    }
}

/// Without this the property above would hold of queries that are all executed by rows.
#[test]
fn numbers_are_computed_by_columns() {
    let options = Options::new().durability(Durability::InMemory).cache_size(4 << 20);
    let connection = SqlDatabase::open_in_memory(options).unwrap().connect();
    connection.execute(TABLE, &[]).unwrap();
    connection.execute("SET execution_mode = 'vectorized'", &[]).unwrap();
    let rows = ["'a', 1.50, 0.25, 7, 1, 2", "'a', 2.50, 0.75, NULL, 1, 2"];
    for (key, row) in rows.iter().enumerate() {
        let row = format!("INSERT INTO n VALUES ({key}, {row}, DATE '2020-02-26')");
        connection.execute(&row, &[]).unwrap();
    }
    for (query, expected) in [
        (
            "SELECT sum(a * (1 - b) * (1 + b)), avg(a), min(b), max(w) FROM n",
            "2.5000000000|2.0000000000000000|0.2500|7.000",
        ),
        (
            "SELECT g, sum(CASE WHEN b > 0.5 THEN a ELSE a * 2 END) FROM n \
             WHERE d < TIMESTAMP '2020-02-26 12:00:00' GROUP BY g",
            "a|5.50",
        ),
        ("SELECT sum(a) FROM n WHERE b BETWEEN 0.2 AND 0.3 AND w < 7.5", "1.50"),
    ] {
        let plan = answer(&connection, &format!("EXPLAIN {query}")).unwrap().join("\n");
        assert!(plan.contains("(vectorized)"), "{query}: {plan}");
        assert_eq!(answer(&connection, query).unwrap(), [expected], "{query}");
    }
}
