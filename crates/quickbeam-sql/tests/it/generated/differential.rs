//! The same statements on the same rows as SQLite, and both ways, row by row and by columns,
//! generated; what differs is shrunk to the smallest case.
//!
//! Statements keep to what both dialects agree on: no division, hardly any overflow (which ends a
//! case), no truth values in an answer. Answers are compared as sets, and in order where the order
//! is total.

use super::from_queries::from_query;
use super::sqlite::{self, Answer};
use proptest::prelude::*;
use quickbeam::{Durability, Isolation, Options};
use quickbeam_sql::{Connection, SqlDatabase};
use rusqlite::types::ValueRef;

/// A schema, its rows, and statements.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub schema: Vec<String>,
    pub rows: Vec<String>,
    pub statements: Vec<(String, bool)>,
    pub isolation: Isolation,
    /// Primary keys are hash keys, and indexes hash indexes.
    pub hashed: bool,
}

pub(super) fn number() -> impl Strategy<Value = String> {
    prop_oneof![6 => (-3i32..8).prop_map(|n| n.to_string()), 1 => Just("CAST(NULL AS INTEGER)".to_owned())]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![5 => "'[abX]{0,2}'".prop_map(|t| t), 1 => Just("NULL".to_owned())]
}

/// An expression of numbers over columns of both tables, or of the first only.
fn numeric(both: bool) -> BoxedStrategy<String> {
    let columns = if both {
        vec!["t.a", "t.b", "t.k", "u.a", "u.b", "u.k"]
    } else {
        vec!["t.a", "t.b", "t.k"]
    };
    let leaf = prop_oneof![
        3 => prop::sample::select(columns).prop_map(str::to_owned),
        1 => number(),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), prop::sample::select(vec!["+", "-", "*"]), inner.clone())
                .prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("COALESCE({a}, {b}, 0)")),
            (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("(CASE WHEN {a} > {b} THEN {c} ELSE {a} END)")),
        ]
    })
    .boxed()
}

fn condition(both: bool) -> BoxedStrategy<String> {
    conditions(both, true)
}

/// Without subqueries.
fn plain_condition(both: bool) -> BoxedStrategy<String> {
    conditions(both, false)
}

fn conditions(both: bool, subqueries: bool) -> BoxedStrategy<String> {
    let weight = u32::from(subqueries);
    let comparison = prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let texts = if both { vec!["t.s", "u.s"] } else { vec!["t.s"] };
    let columns = if both { vec!["t.a", "u.a", "t.k", "u.k"] } else { vec!["t.a", "t.b", "t.k"] };
    let leaf = prop_oneof![
        4 => (numeric(both), comparison.clone(), numeric(both)).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        3 => (prop::sample::select(columns.clone()), comparison.clone(), number()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (prop::sample::select(texts.clone()), comparison, text()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        1 => (prop::sample::select(texts), "'[ab_%]{1,3}'").prop_map(|(a, pattern)| format!("{a} LIKE {pattern}")),
        1 => (numeric(both), any::<bool>()).prop_map(|(a, not)| format!("{a} IS {}NULL", if not { "NOT " } else { "" })),
        1 => (prop::sample::select(columns.clone()), number(), number()).prop_map(|(a, b, c)| format!("{a} BETWEEN {b} AND {c}")),
        1 => (prop::sample::select(columns.clone()), prop::collection::vec(number(), 1..8), any::<bool>())
            .prop_map(|(a, list, not)| format!("{a} {}IN ({})", if not { "NOT " } else { "" }, list.join(", "))),
        weight => (prop::sample::select(columns.clone()), any::<bool>(), number())
            .prop_map(|(a, not, n)| format!("{a} {}IN (SELECT w.a FROM u w WHERE w.b > {n})", if not { "NOT " } else { "" })),
        weight => (prop::sample::select(columns), any::<bool>())
            .prop_map(|(a, not)| format!("{}EXISTS (SELECT 1 FROM u w WHERE w.b = {a})", if not { "NOT " } else { "" })),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} AND {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} OR {b})")),
            inner.prop_map(|a| format!("(NOT {a})")),
        ]
    })
    .boxed()
}

/// Joins by equal columns under groups or an order, which can go by columns; and whether the order
/// of the answer is total.
fn equal_join() -> BoxedStrategy<(String, bool)> {
    let keys = prop::sample::select(vec![
        "t.a = u.a",
        "t.k = u.k",
        "t.a = u.b",
        "t.b = u.a",
        "t.s = u.s",
        "t.a + 1 = u.b",
        "t.a = u.a AND t.b = u.b",
        "u.s = t.s AND u.a = t.a",
    ]);
    let more = prop_oneof![
        3 => Just(String::new()),
        1 => Just(" AND t.k < u.k".to_owned()),
        1 => Just(" AND (t.a > u.b OR u.s > 'a')".to_owned()),
        1 => number().prop_map(|n| format!(" AND t.b * u.b > {n}")),
        1 => number().prop_map(|n| format!(" AND u.a <> {n} AND t.k > {n}")),
        1 => plain_condition(true).prop_map(|c| format!(" AND {c}")),
    ];
    let third = prop_oneof![
        4 => Just(""),
        1 => Just(" JOIN u v ON v.a = t.a"),
        1 => Just(" JOIN t v ON v.k = u.k AND v.b > t.b"),
        1 => Just(" LEFT JOIN u v ON v.b = u.b AND v.k <> u.k"),
    ];
    let condition = prop_oneof![
        2 => Just(String::new()),
        2 => (number(), number()).prop_map(|(m, n)| format!(" WHERE t.a > {m} AND u.b <> {n}")),
        1 => number().prop_map(|n| format!(" WHERE u.k < {n} OR u.k IS NULL")),
        1 => condition(true).prop_map(|c| format!(" WHERE {c}")),
    ];
    let kind = prop::sample::select(vec!["JOIN", "LEFT JOIN"]);
    let answers = prop::sample::select(vec![
        ("t.a, count(*), count(u.b), sum(t.b + u.b), min(u.s), max(u.k)", " GROUP BY t.a"),
        ("u.s, count(*), sum(u.a * t.k), count(DISTINCT u.b)", " GROUP BY u.s"),
        ("t.k, u.a, count(*), min(t.s)", " GROUP BY t.k, u.a"),
        ("count(*), sum(u.k), max(t.s)", ""),
        ("t.k, u.k, t.s, u.b + t.b", " ORDER BY u.s DESC NULLS LAST, t.k, u.k NULLS FIRST"),
    ]);
    (keys, more, third, condition, kind, answers)
        .prop_map(|(keys, more, third, condition, kind, (outputs, end))| {
            let from = format!("t {kind} u ON {keys}{more}{third}");
            let ordered = third.is_empty() && end.starts_with(" ORDER BY");
            (format!("SELECT {outputs} FROM {from}{condition}{end}"), ordered)
        })
        .boxed()
}

/// A query, and whether the order of its answer is total.
fn query() -> BoxedStrategy<(String, bool)> {
    let joins = prop_oneof![
        condition(true).prop_map(|on| format!("t JOIN u ON {on}")),
        plain_condition(true).prop_map(|on| format!("t LEFT JOIN u ON {on}")),
        Just("t JOIN u ON t.k = u.k".to_owned()),
        Just("t LEFT JOIN u ON t.a = u.b".to_owned()),
        Just("t JOIN u ON t.a = u.a AND t.k > 2".to_owned()),
        Just("t, u".to_owned()),
    ];
    let limit = prop_oneof![
        Just(String::new()),
        (0..6).prop_map(|n| format!(" LIMIT {n}")),
        (0..5, 0..5).prop_map(|(n, m)| format!(" LIMIT {n} OFFSET {m}"))
    ];
    let distinct = prop::sample::select(vec!["", "DISTINCT "]);
    let direction = prop::sample::select(vec![
        "ASC NULLS LAST",
        "DESC NULLS FIRST",
        "ASC NULLS FIRST",
        "DESC NULLS LAST",
    ]);
    prop_oneof![
        4 => equal_join(),
        2 => window().prop_map(|text| (text, false)),
        1 => (number(), 2i32..6, condition(false))
            .prop_map(|(n, step, c)| (format!("WITH RECURSIVE r(n) AS (SELECT {n} UNION ALL SELECT n + {step} FROM r WHERE n < 9), q AS (SELECT t.k, t.a FROM t WHERE {c}) SELECT r.n, q.k, p.a FROM r JOIN q ON q.k <= r.n LEFT JOIN q p ON p.a = r.n"), false)),
        1 => (prop::sample::select(vec!["t.a", "t.b", "t.k"]), condition(false))
            .prop_map(|(from, c)| (format!("WITH RECURSIVE r(n) AS (SELECT {from} FROM t WHERE {c} UNION SELECT w.a FROM u w JOIN r ON w.b = r.n) SELECT n FROM r"), false)),
        1 => (prop::sample::select(vec!["<", "<=", ">", ">=", "=", "<>"]), number(), number(), condition(false))
            .prop_map(|(op, a, b, c)| (format!("SELECT t.k FROM t WHERE (t.a, t.k) {op} ({a}, {b}) AND {c}"), false)),
        1 => (any::<bool>(), condition(false))
            .prop_map(|(not, c)| (format!("SELECT t.k FROM t WHERE (t.a, t.b) {}IN (SELECT w.a, w.b FROM u w) AND {c}", if not { "NOT " } else { "" }), false)),
        1 => (condition(false), limit.clone(), direction.clone())
            .prop_map(|(c, limit, d)| (format!("SELECT t.k, t.a, t.s FROM t WHERE {c} ORDER BY t.a {d}, t.k{limit}"), true)),
        1 => (condition(false), direction.clone(), limit.clone())
            .prop_map(|(c, d, limit)| (format!("SELECT t.k FROM t WHERE {c} ORDER BY t.k {d}{limit}"), true)),
        1 => (numeric(true), numeric(true), joins.clone(), condition(true), distinct.clone())
            .prop_map(|(a, b, j, c, d)| (format!("SELECT {d}{a}, {b}, u.s FROM {j} WHERE {c}"), false)),
        1 => (joins.clone(), condition(true), numeric(true), prop::sample::select(vec!["", " HAVING count(*) > 1"]))
            .prop_map(|(j, c, e, h)| (format!("SELECT t.a, count(*), count(u.b), sum({e}), min(u.s), max({e}) FROM {j} WHERE {c} GROUP BY t.a{h}"), false)),
        1 => (joins, condition(true), numeric(true))
            .prop_map(|(j, c, e)| (format!("SELECT count(*), count(DISTINCT {e}), min({e}), max(t.s) FROM {j} WHERE {c}"), false)),
        1 => (prop::sample::select(vec!["min", "max"]), prop::sample::select(vec!["k", "a", "b", "s"]))
            .prop_map(|(f, column)| (format!("SELECT {f}({column}) FROM t"), false)),
        // Columns that are never NULL, which are read as numbers off the page.
        1 => (-2i32..9, -2i32..9, condition(false), any::<bool>())
            .prop_map(|(a, b, c, more)| (format!("SELECT count(*), sum(t.k), min(t.k), max(t.k * 2) FROM t WHERE t.k BETWEEN {a} AND {b}{}", if more { format!(" AND {c}") } else { String::new() }), false)),
        1 => (-2i32..9, -2i32..9)
            .prop_map(|(a, b)| (format!("SELECT CASE WHEN t.k > {a} THEN 1 ELSE 0 END, count(*), sum(t.k) FROM t WHERE t.k <> {b} GROUP BY CASE WHEN t.k > {a} THEN 1 ELSE 0 END"), false)),
        // DISTINCT by columns: alone, with an order and its first rows.
        1 => (condition(false), direction.clone(), limit.clone())
            .prop_map(|(c, d, limit)| (format!("SELECT DISTINCT t.s, t.a FROM t WHERE {c} ORDER BY t.a {d}, t.s NULLS LAST{limit}"), true)),
        1 => (numeric(false), plain_condition(false))
            .prop_map(|(e, c)| (format!("SELECT x.e, count(*) FROM (SELECT DISTINCT t.b, {e} AS e FROM t WHERE {c}) x GROUP BY x.e"), false)),
        // CASE by columns: of numbers and texts, with and without ELSE.
        1 => (plain_condition(false), plain_condition(false), prop::sample::select(vec!["t.a", "t.k", "7", "NULL"]), prop::sample::select(vec![" ELSE t.b", " ELSE -1", ""]))
            .prop_map(|(c, d, value, otherwise)| (format!("SELECT t.b, count(*), sum(CASE WHEN {c} THEN t.k WHEN {d} THEN {value}{otherwise} END), min(CASE WHEN {d} THEN t.s ELSE 'none' END) FROM t GROUP BY t.b"), false)),
        1 => (prop::sample::select(vec!["u.k", "t.k"]), -2i32..9, -2i32..9)
            .prop_map(|(k, a, b)| (format!("SELECT u.k, u.a, u.s FROM u JOIN t ON u.k = t.k WHERE {k} > {a} AND {k} < {b}"), false)),
        1 => (condition(false), condition(false), prop::sample::select(vec!["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]))
            .prop_map(|(a, b, op)| (format!("SELECT t.a, t.s FROM t WHERE {a} {op} SELECT t.b, t.s FROM t WHERE {b}"), false)),
        1 => (numeric(false), condition(false), distinct)
            .prop_map(|(e, c, d)| (format!("SELECT {d}x.e, x.s FROM (SELECT {e} AS e, t.s FROM t WHERE {c}) x WHERE x.e > 0"), false)),
        2 => (aggregated(), aggregated(), prop::sample::select(vec!["=", "<", ">=", "<>"]), condition(false))
            .prop_map(|(a, b, op, c)| (format!("SELECT t.k, {a} FROM t WHERE {b} {op} t.b AND {c}"), false)),
        2 => chain().prop_map(|text| (text, false)),
        4 => from_query().prop_map(|text| (text, false)),
        1 => (correlated(), condition(false))
            .prop_map(|(from, c)| (format!("SELECT t.k, (SELECT max(x.v) FROM {from}), (SELECT count(*) FROM u w JOIN {from} ON x.v = w.a) FROM t WHERE {c}"), false)),
        1 => (correlated(), any::<bool>())
            .prop_map(|(from, not)| (format!("SELECT t.k FROM t WHERE {}EXISTS (SELECT 1 FROM {from} WHERE x.v > 2)", if not { "NOT " } else { "" }), false)),
        1 => (correlated(), any::<bool>())
            .prop_map(|(from, not)| (format!("SELECT t.k FROM t WHERE t.a {}IN (SELECT x.v FROM {from})", if not { "NOT " } else { "" }), false)),
        1 => (numeric(false), direction, limit)
            .prop_map(|(e, d, limit)| (format!("SELECT t.k, (SELECT max(w.b) FROM u w WHERE w.a = t.a) FROM t ORDER BY {e} + 0 {d}, t.k{limit}"), true)),
    ]
    .boxed()
}

/// A scalar subquery with an aggregate over the rows of u that equal those of t around it.
fn aggregated() -> BoxedStrategy<String> {
    let output = prop::sample::select(vec![
        "count(*)",
        "count(w.b) + 2",
        "sum(w.b)",
        "1 - max(w.k)",
        "COALESCE(min(w.b), -1)",
        "CASE WHEN count(*) > 1 THEN sum(w.a) ELSE 7 END",
        "count(DISTINCT w.b)",
    ]);
    let keys = prop::sample::select(vec![
        "w.a = t.a",
        "w.b = t.b",
        "t.a + 1 = w.b",
        "w.a = t.a AND w.b = t.b",
        "w.s = t.s",
        "w.k = t.k",
        "w.a = t.a AND w.k < t.k",
    ]);
    let more = prop_oneof![
        2 => Just(String::new()),
        1 => number().prop_map(|n| format!(" AND w.k > {n}")),
        1 => Just(" AND w.b IS NOT NULL".to_owned()),
        1 => Just(" AND w.a IN (SELECT x.a FROM t x WHERE x.k > 2)".to_owned()),
    ];
    (output, keys, more)
        .prop_map(|(output, keys, more)| format!("(SELECT {output} FROM u w WHERE {keys}{more})"))
        .boxed()
}

/// A join of four or five tables, whose order the planner searches for.
fn chain() -> BoxedStrategy<String> {
    let first = prop::sample::select(vec!["t.a = u.a", "t.k = u.k", "t.b = u.b", "t.s = u.s"]);
    let second = prop::sample::select(vec!["u.b = v.b", "u.k = v.k", "v.a = t.a", "v.a < u.a"]);
    let third = prop::sample::select(vec!["v.k = z.k", "z.a = t.a", "z.b = u.b AND z.k = v.k"]);
    let or = prop_oneof![
        2 => Just(String::new()),
        1 => (number(), number(), number(), number()).prop_map(|(a, b, c, d)| format!(
            " AND (t.a = {a} AND z.b > {b} OR t.a > {c} AND z.b = {d})"
        )),
        1 => (number(), number()).prop_map(|(a, b)| format!(
            " AND (u.k = {a} AND v.b < 5 OR u.k < {b} AND v.s > 'a' AND t.k = 3)"
        )),
    ];
    let tail = prop::sample::select(vec!["", " AND y.k = z.k", " AND y.a = t.a AND y.b > u.b"]);
    (first, second, third, or, tail, condition(true))
        .prop_map(|(first, second, third, or, tail, c)| {
            let fifth = if tail.is_empty() { "" } else { ", t y" };
            format!(
                "SELECT t.k, u.k, v.k, z.k, z.s FROM t, u, t v, u z{fifth} \
                 WHERE {first} AND {second} AND {third}{tail}{or} AND {c}"
            )
        })
        .boxed()
}

/// A query with window functions, of which every row has one answer.
fn window() -> BoxedStrategy<String> {
    let function = prop::sample::select(vec![
        "sum(t.a)",
        "count(*)",
        "count(t.b)",
        "min(t.b)",
        "max(t.s)",
        "first_value(t.a)",
        "last_value(t.k)",
        "nth_value(t.a, 2)",
        "count(*) FILTER (WHERE t.a > 2)",
    ]);
    let bounds = prop::sample::select(vec![
        "UNBOUNDED PRECEDING AND CURRENT ROW",
        "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        "2 PRECEDING AND 1 FOLLOWING",
        "1 FOLLOWING AND 3 FOLLOWING",
        "3 PRECEDING AND 1 PRECEDING",
        "CURRENT ROW AND UNBOUNDED FOLLOWING",
    ]);
    let exclude =
        prop::sample::select(vec!["", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES"]);
    let units = prop::sample::select(vec!["ROWS", "RANGE", "GROUPS"]);
    let partition = prop::sample::select(vec!["", "PARTITION BY t.b ", "PARTITION BY t.s, t.b "]);
    let nulls = prop::sample::select(vec![
        "ASC NULLS FIRST",
        "ASC NULLS LAST",
        "DESC NULLS FIRST",
        "DESC NULLS LAST",
    ]);
    (function, partition, nulls, units, bounds, exclude, condition(false))
        .prop_map(|(function, partition, nulls, units, bounds, exclude, c)| {
            // Rows with equal keys have one order only where the key is unique.
            let order = if units == "RANGE" { format!("t.k {nulls}") } else { format!("t.a {nulls}, t.k") };
            format!(
                "SELECT t.k, {function} OVER ({partition}ORDER BY {order} {units} BETWEEN {bounds}{exclude}), rank() OVER w, dense_rank() OVER w, lag(t.a) OVER (PARTITION BY t.b ORDER BY t.k ROWS 1 PRECEDING), lead(t.b, 2, -1) OVER (PARTITION BY t.a ORDER BY t.k), row_number() OVER (ORDER BY t.k), ntile(3) OVER (ORDER BY t.k DESC), sum(t.k) OVER (PARTITION BY t.a) FROM t WHERE {c} WINDOW w AS ({partition}ORDER BY t.k % 3)"
            )
        })
        .boxed()
}

/// A query in FROM, of the name x with a column v, that reads a row of t around the subquery it
/// stands in.
fn correlated() -> BoxedStrategy<String> {
    let outer = prop::sample::select(vec!["t.a", "t.b", "t.k", "t.a + t.b"]);
    let form = prop::sample::select(vec![
        "SELECT {o} AS v",
        "SELECT w.b AS v FROM u w WHERE w.a = {o}",
        "SELECT w.b AS v FROM u w UNION ALL SELECT {o}",
        "SELECT {o} AS v UNION SELECT w.a FROM u w WHERE w.k > 4",
        "SELECT w.a AS v FROM u w WHERE w.b < {o} GROUP BY w.a HAVING count(*) > 0",
        "SELECT sum(w.a) AS v FROM u w WHERE w.k <> {o}",
        "SELECT w.k AS v FROM u w WHERE w.k <= {o} ORDER BY w.k DESC LIMIT 1",
        "SELECT DISTINCT {o} AS v FROM u w",
        "WITH c AS (SELECT {o} AS v) SELECT v FROM c",
        "WITH c(v) AS (VALUES ({o}), (3)) SELECT v FROM c",
        "SELECT y.v FROM (SELECT {o} AS v) y WHERE EXISTS (SELECT 1 FROM u w WHERE w.b = y.v)",
    ]);
    (form, outer).prop_map(|(form, outer)| format!("({}) x", form.replace("{o}", outer))).boxed()
}

fn change() -> BoxedStrategy<(String, bool)> {
    prop_oneof![
        correlated().prop_map(|from| format!("UPDATE t SET a = (SELECT max(x.v) FROM {from})")),
        (numeric(false), condition(false)).prop_map(|(e, c)| format!("UPDATE t SET a = {e}, b = t.a WHERE {c}")),
        (condition(false), text()).prop_map(|(c, s)| format!("UPDATE t SET s = {s} WHERE {c}")),
        (condition(false),).prop_map(|(c,)| format!("UPDATE t SET k = k + 1000 WHERE {c}")),
        condition(false).prop_map(|c| format!("DELETE FROM t WHERE {c}")),
        condition(false).prop_map(|c| format!("INSERT INTO t SELECT t.k + 5000, t.b, t.a, t.s FROM t WHERE {c}")),
        (number(), text()).prop_map(|(n, s)| format!("INSERT INTO t VALUES (3, {n}, {n}, {s}) ON CONFLICT (k) DO UPDATE SET a = excluded.a + t.k")),
        (number(), text()).prop_map(|(n, s)| format!("INSERT INTO t VALUES (2, {n}, {n}, {s}) ON CONFLICT DO NOTHING")),
    ]
    .prop_map(|text| (text, false))
    .boxed()
}

pub(super) fn case() -> impl Strategy<Value = Case> {
    let index = prop::sample::subsequence(
        vec![
            "CREATE INDEX t_a ON t (a)",
            "CREATE INDEX t_ba ON t (b, a)",
            "CREATE INDEX u_a ON u (a)",
            "CREATE INDEX u_b ON u (b)",
            "CREATE INDEX t_s ON t (s)",
        ],
        0..=5,
    );
    let row = |table: &'static str, first: i32| {
        prop::collection::vec((number(), number(), text()), 0..14).prop_map(move |rows| {
            rows.into_iter()
                .enumerate()
                .map(|(k, (a, b, s))| {
                    format!("INSERT INTO {table} VALUES ({}, {a}, {b}, {s})", k as i32 + first)
                })
                .collect::<Vec<_>>()
        })
    };
    let keyed = prop::bool::weighted(0.7);
    let statement = prop_oneof![4 => query(), 1 => change()];
    let isolation = prop::sample::select(vec![
        Isolation::Serializable,
        Isolation::Snapshot,
        Isolation::ReadCommitted,
    ]);
    let hashed = prop::bool::weighted(0.4);
    let keys = (keyed, hashed);
    (index, keys, row("t", 1), row("u", 3), prop::collection::vec(statement, 1..12), isolation)
        .prop_map(|(index, (keyed, hashed), t, u, statements, isolation)| {
            let key = if keyed { "PRIMARY KEY" } else { "NOT NULL" };
            let mut schema = vec![
                "CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, b INTEGER, s TEXT)".to_owned(),
                // Numbers of other widths than their like in the first table.
                format!("CREATE TABLE u (k INTEGER {key}, a SMALLINT, b BIGINT, s TEXT)"),
            ];
            schema.extend(index.into_iter().map(str::to_owned));
            let rows = t.into_iter().chain(u).collect();
            Case { schema, rows, statements, isolation, hashed }
        })
}

/// The definition of the same table with a hash key, or of the same index as a hash index, which
/// SQLite does not have.
pub(super) fn with_hash_key(definition: &str) -> String {
    if definition.starts_with("CREATE INDEX") {
        return definition.replace(" (", " USING HASH (");
    }
    if !definition.contains("k INTEGER PRIMARY KEY") {
        return definition.to_owned();
    }
    let plain = definition.replace(" PRIMARY KEY", "");
    format!("{}, PRIMARY KEY (k) USING HASH)", plain.trim_end_matches(')'))
}

/// The statement number `turn`, so that its outcome does not depend on the order of the rows, which
/// a hash key does not determine: a key that is moved must not meet a row that has not been moved
/// yet. So each statement moves keys further than all earlier ones together.
fn in_any_order(text: &str, turn: usize, hashed: bool) -> String {
    if !hashed {
        return text.to_owned();
    }
    text.replace("k = k + 1000", &format!("k = k + {}", 100_000_u64 << turn))
}

pub(super) fn ours(connection: &Connection, text: &str) -> Answer {
    let rows = connection
        .query(text, &[])
        .and_then(|rows| rows.collect())
        .map_err(|error| error.to_string())?;
    Ok(rows
        .iter()
        .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join("|"))
        .collect())
}

fn theirs(connection: &rusqlite::Connection, text: &str) -> Answer {
    sqlite::answer(connection, text, usize::MAX, |value| match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    })
}

/// Ways to execute a query: `execution_mode`, and the workers that may help with any table.
pub const WAYS: [(&str, usize); 3] = [("row", 0), ("vectorized", 0), ("vectorized", 3)];

/// Makes the connection execute its queries in one way.
pub fn set_way(connection: &Connection, (mode, workers): (&str, usize)) {
    let script = format!(
        "SET execution_mode = '{mode}'; SET max_parallel_workers_per_gather = {workers};
         SET min_parallel_table_scan_size = 0"
    );
    connection.execute_script(&script).unwrap();
}

/// The answer of a query in one way. An execution of the same statement that had little memory, or
/// ended early, comes before.
fn by_way(connection: &Connection, way: (&str, usize), text: &str, turn: usize) -> Answer {
    set_way(connection, way);
    if turn.is_multiple_of(2) {
        connection.set_memory_limit(64 << (turn % 9));
        let _ = ours(connection, text);
        connection.set_memory_limit(64 << 20);
    } else if let Ok(mut rows) = connection.query(text, &[]) {
        let _ = rows.next();
    }
    ours(connection, text)
}

proptest! {
    #![proptest_config(sqlite::config(250))]

    #[test]
    fn statements_mean_what_they_mean_in_sqlite(case in case()) {
        let options = Options::new()
            .durability(Durability::InMemory)
            .cache_size(4 << 20)
            .isolation(case.isolation);
        let connection = SqlDatabase::open_in_memory(options).unwrap().connect();
        let sqlite = sqlite::memory();
        for text in case.schema.iter().chain(&case.rows) {
            let ours = if case.hashed { with_hash_key(text) } else { text.clone() };
            connection.execute(&ours, &[]).unwrap();
            sqlite.execute_batch(text).unwrap();
        }
        for (turn, (text, ordered)) in case.statements.iter().enumerate() {
            let text = &in_any_order(text, turn, case.hashed);
            if text.starts_with("SELECT") {
                let mut answers = WAYS.map(|way| by_way(&connection, way, text, turn));
                prop_assert_eq!(&answers[1], &answers[2], "with workers: {}", text);
                if !ordered {
                    answers.iter_mut().flatten().for_each(|answer| answer.sort());
                }
                prop_assert_eq!(&answers[0], &answers[1], "{}", text);
            }
            set_way(&connection, ("auto", 0));
            let (mut left, mut right) = (ours(&connection, text), theirs(&sqlite, text));
            if let (Ok(left), Ok(right), false) = (&mut left, &mut right, ordered) {
                left.sort();
                right.sort();
            }
            if right.is_ok() && left.as_ref().is_err_and(|error| error.contains("(22003)")) {
                // Some products of products are no INTEGER any more. In SQLite every integer has 64
                // bits.
                return Ok(());
            }
            match (&left, &right) {
                (Ok(_), Ok(_)) => prop_assert_eq!(left, right, "{}", text),
                // What fails has to fail in both, and leaves nothing.
                (left, right) => prop_assert!(left.is_err() == right.is_err(), "{}\n{:?}\n{:?}", text, left, right),
            }
            let content = "SELECT k, a, b, s FROM t ORDER BY k";
            prop_assert_eq!(ours(&connection, content), theirs(&sqlite, content), "after {}", text);
        }
    }
}
