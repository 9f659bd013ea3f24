//! Queries in FROM and common table expressions, with conditions around them that the planner may
//! move into them.

use proptest::prelude::*;

use super::differential::number;

/// A query with the columns v and w.
fn columns_of_two() -> BoxedStrategy<String> {
    let leaf = prop::sample::select(vec![
        "SELECT t.k AS v, t.a AS w FROM t",
        "SELECT t.k AS v, t.a AS w FROM t WHERE t.b > 1 OR t.s = 'a'",
        "SELECT t.a + 1 AS v, t.b * t.k AS w FROM t",
        "SELECT t.a AS v, 2 AS w FROM t WHERE t.k <> 3",
        "SELECT t.k AS v, u.b AS w FROM t JOIN u ON t.a = u.a",
        "SELECT u.k AS v, t.b AS w FROM t LEFT JOIN u ON t.a = u.b",
        "SELECT DISTINCT t.a AS v, t.b AS w FROM t",
        "SELECT t.a AS v, count(*) AS w FROM t GROUP BY t.a",
        "SELECT t.a AS v, sum(t.k) AS w FROM t GROUP BY t.a, t.b HAVING count(*) > 1",
        "SELECT t.a + t.b AS v, min(t.k) AS w FROM t GROUP BY t.a + t.b",
        "SELECT max(t.a) AS v, count(*) AS w FROM t WHERE t.k < 5",
        "SELECT t.a AS v, t.k AS w FROM t UNION ALL SELECT u.a, u.k FROM u",
        "SELECT t.a AS v, t.b AS w FROM t UNION SELECT u.a, u.b FROM u",
        "SELECT t.a AS v, t.b AS w FROM t EXCEPT SELECT u.a, u.b FROM u",
        "SELECT t.a AS v, t.b AS w FROM t INTERSECT SELECT u.a, u.b FROM u",
        "SELECT t.a AS v, count(*) OVER (PARTITION BY t.a) AS w FROM t",
        "SELECT t.a AS v, row_number() OVER (PARTITION BY t.a ORDER BY t.k) AS w FROM t",
        "SELECT t.k AS v, sum(t.k) OVER (PARTITION BY t.b ORDER BY t.k) AS w FROM t",
        "SELECT t.k AS v, t.a AS w FROM t ORDER BY t.k LIMIT 3",
        "SELECT t.k AS v, t.a AS w FROM t ORDER BY t.k DESC LIMIT 4 OFFSET 1",
        "SELECT t.k AS v, (SELECT count(*) FROM u WHERE u.a = t.a) AS w FROM t",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(2, 3, 1, |inner| {
            let around = prop::sample::select(vec![
                "SELECT y.v, y.w FROM ({q}) y",
                "SELECT y.v, y.w FROM ({q}) y WHERE y.v > {n}",
                "SELECT y.w AS v, y.v AS w FROM ({q}) y WHERE y.w < 4 OR y.v = {n}",
                "SELECT y.v, count(*) AS w FROM ({q}) y GROUP BY y.v",
                "SELECT y.v, t.b AS w FROM t LEFT JOIN ({q}) y ON y.v = t.a",
            ]);
            (inner, around, number()).prop_map(|(q, around, n)| filled(around, &q, &n, &n))
        })
        .boxed()
}

fn filled(form: &str, query: &str, first: &str, second: &str) -> String {
    form.replace("{q}", query).replace("{n}", first).replace("{m}", second)
}

/// A query that reads the rows of another one in FROM.
pub fn from_query() -> BoxedStrategy<String> {
    let form = prop::sample::select(vec![
        "SELECT x.v, x.w FROM ({q}) x WHERE x.v = {n}",
        "SELECT x.v, x.w FROM ({q}) x WHERE x.v > {n} AND x.w <= {m}",
        "SELECT x.w FROM ({q}) x WHERE x.v IS NULL OR x.v IN ({n}, {m})",
        "SELECT x.w, count(*) FROM ({q}) x WHERE x.v + x.w > {n} GROUP BY x.w",
        "SELECT t.k, x.v, x.w FROM t JOIN ({q}) x ON x.v = t.a WHERE t.a = {n}",
        "SELECT t.k, x.w FROM t, ({q}) x WHERE x.v = t.k AND t.b < {n} AND x.w <> {m}",
        "SELECT t.k, x.v, x.w FROM t LEFT JOIN ({q}) x ON x.v = t.a AND x.w > {n}",
        "SELECT t.k, x.v, x.w FROM t LEFT JOIN ({q}) x ON x.v = t.a WHERE x.w IS NULL AND t.b > {n}",
        "SELECT x.v, t.s FROM ({q}) x LEFT JOIN t ON t.k = x.w WHERE x.v < {n}",
        "SELECT t.k FROM t WHERE EXISTS (SELECT 1 FROM ({q}) x WHERE x.v = t.a AND x.w > {n})",
        "SELECT t.k, (SELECT sum(x.w) FROM ({q}) x WHERE x.v = t.a) FROM t WHERE t.b <> {n}",
        "SELECT t.k FROM t WHERE t.a IN (SELECT x.v FROM ({q}) x WHERE x.w > {n})",
        "WITH x AS ({q}) SELECT x.v, x.w FROM x WHERE x.v >= {n}",
        "WITH x AS MATERIALIZED ({q}) SELECT x.v, t.k FROM x JOIN t ON t.a = x.v WHERE x.w < {n}",
        "WITH x AS ({q}) SELECT x.v, y.w FROM x JOIN x y ON y.v = x.w WHERE x.v > {n}",
        "WITH x AS NOT MATERIALIZED ({q}) SELECT x.v, y.w FROM x JOIN x y ON y.v = x.w WHERE y.v > {n}",
        "WITH x AS NOT MATERIALIZED ({q}) SELECT x.v FROM x WHERE EXISTS (SELECT 1 FROM x y WHERE y.w = x.v)",
    ]);
    (form, columns_of_two(), number(), number())
        .prop_map(|(form, query, first, second)| filled(form, &query, &first, &second))
        .boxed()
}
