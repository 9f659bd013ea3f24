//! Whether a cursor scrolls that is declared without SCROLL and NO SCROLL: in PostgreSQL, if the
//! plan of its query can run backward. Plans of joins, groups, windows and functions that return
//! rows cannot, unless they are sorted at last.

use sqlparser::ast::{self, GroupByExpr, SetExpr, SetOperator, SetQuantifier, TableFactor};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::bind::AggregateKind;

/// Functions that return rows and stand in lists of SELECT.
const ROW_FUNCTIONS: [&str; 8] = [
    "generate_series",
    "unnest",
    "generate_subscripts",
    "regexp_matches",
    "regexp_split_to_table",
    "string_to_table",
    "jsonb_array_elements",
    "json_array_elements",
];

/// Returns whether the plan of a query can run backward in PostgreSQL.
pub(in crate::session) fn runs_backward(text: &str) -> bool {
    crate::parse::query(text).map_or(true, |query| is_backward(&query))
}

fn is_backward(query: &ast::Query) -> bool {
    // Equal rows are left out after the rows are sorted.
    let is_distinct = matches!(&*query.body, SetExpr::Select(select) if select.distinct.is_some());
    query.order_by.is_some() && !is_distinct || is_body_backward(&query.body)
}

fn is_body_backward(body: &SetExpr) -> bool {
    match body {
        SetExpr::Query(query) => is_backward(query),
        SetExpr::SetOperation { op, set_quantifier, left, right } => {
            *op == SetOperator::Union
                && *set_quantifier == SetQuantifier::All
                && is_body_backward(left)
                && is_body_backward(right)
        }
        SetExpr::Select(select) => is_select_backward(select),
        _ => true,
    }
}

fn is_select_backward(select: &ast::Select) -> bool {
    let has_groups = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    if has_groups || select.having.is_some() || select.distinct.is_some() {
        return false;
    }
    let is_joined = match &select.from[..] {
        [] => false,
        [only] => !only.joins.is_empty() || !is_factor_backward(&only.relation),
        _ => true,
    };
    !is_joined
        && !select.projection.iter().any(|item| computes_rows(&item.to_string()))
        && !select.selection.as_ref().is_some_and(is_semi_join)
}

fn is_factor_backward(factor: &TableFactor) -> bool {
    match factor {
        TableFactor::Derived { subquery, .. } => is_backward(subquery),
        TableFactor::NestedJoin { .. } => false,
        _ => true,
    }
}

/// Returns whether an item of the list is an aggregate, a window function, or one that returns
/// rows.
fn computes_rows(item: &str) -> bool {
    let Ok(tokens) = Tokenizer::new(&PostgreSqlDialect {}, item).tokenize() else { return false };
    let (mut depth, mut selects) = (0_usize, Vec::new());
    tokens.windows(2).any(|pair| {
        let [token, next] = pair else { return false };
        match token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.saturating_sub(1);
                selects.retain(|at| *at <= depth);
            }
            Token::Word(word) => {
                let name = word.value.to_ascii_lowercase();
                if name == "select" {
                    selects.push(depth);
                }
                let is_call = *next == Token::LParen;
                return selects.is_empty()
                    && is_call
                    && (name == "over"
                        || AggregateKind::named(&name).is_some()
                        || ROW_FUNCTIONS.contains(&&*name));
            }
            _ => {}
        }
        false
    })
}

/// Returns whether a condition is a join with a subquery.
fn is_semi_join(condition: &ast::Expr) -> bool {
    match condition {
        ast::Expr::InSubquery { negated, .. } => !negated,
        ast::Expr::Exists { .. } => true,
        ast::Expr::Nested(inner) => is_semi_join(inner),
        ast::Expr::BinaryOp { left, op: ast::BinaryOperator::And, right } => {
            is_semi_join(left) || is_semi_join(right)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::runs_backward;

    #[test]
    fn plans_of_one_table_run_backward() {
        for (text, runs) in [
            ("SELECT a FROM t WHERE a > (SELECT max(b) FROM u)", true),
            ("SELECT count(*) FROM t", false),
            ("SELECT count(*) FROM t ORDER BY 1", true),
            ("SELECT a, (SELECT count(*) FROM u) FROM t", true),
            ("SELECT * FROM t, u", false),
            ("SELECT * FROM t JOIN u USING (a) ORDER BY a", true),
            ("SELECT DISTINCT a FROM t", false),
            ("SELECT DISTINCT a FROM t ORDER BY a", false),
            ("SELECT rank() OVER (ORDER BY a) FROM t", false),
            ("SELECT unnest(a) FROM t", false),
            ("SELECT * FROM unnest('{1}'::int[])", true),
            ("SELECT a FROM t WHERE a IN (SELECT a FROM u)", false),
            ("SELECT a FROM t UNION ALL SELECT a FROM u", true),
            ("SELECT a FROM t UNION SELECT a FROM u", false),
            ("VALUES (1), (2)", true),
            ("SELECT * FROM (SELECT DISTINCT a FROM t) s LIMIT 2", false),
        ] {
            assert_eq!(runs_backward(text), runs, "{text}");
        }
    }
}
