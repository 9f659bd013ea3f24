//! Functions and operators of `tsquery`.

use super::{QUERY, query};
use crate::error::Result;
use crate::expression::builtin::{Builtin, count, integer, invalid, strict, text, volatile};
use crate::expression::{Frame, QueryRows};
use crate::types::encoded::text_search::{MAX_DISTANCE, QueryItem, TextQuery, in_order, rewritten};
use crate::types::{DataType, Value, ValueRef};
use DataType::{Boolean, Integer, Text};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("numnode", &[QUERY], Integer, |v| count(query(v, 0)?.items.len())),
    strict("querytree", &[QUERY], Text, |v| {
        let whole = query(v, 0)?;
        let mut out = String::new();
        match whole.without_negations() {
            Some(rest) => rest.format(&mut out),
            None if whole.items.is_empty() => {}
            None => out.push('T'),
        }
        Ok(Value::text(out))
    }),
    strict("tsquery_phrase", &[QUERY, QUERY], QUERY, |v| joined(v, QueryItem::Phrase(1))),
    strict("tsquery_phrase", &[QUERY, QUERY, Integer], QUERY, |v| {
        let distance = u16::try_from(integer(v, 2)?).ok().filter(|it| *it <= MAX_DISTANCE);
        let distance = distance.ok_or_else(|| {
            invalid(format!(
                "distance in phrase operator must be an integer value between zero and {MAX_DISTANCE} inclusive"
            ))
        })?;
        joined(v, QueryItem::Phrase(distance))
    }),
    strict("ts_rewrite", &[QUERY, QUERY, QUERY], QUERY, |v| {
        let (whole, wanted) = (query(v, 0)?, query(v, 1)?);
        if whole.items.is_empty() || wanted.items.is_empty() {
            return Ok(whole.value());
        }
        Ok(rewritten(&whole, &wanted, &query(v, 2)?)?.value())
    }),
    volatile("ts_rewrite", &[QUERY, Text], QUERY, rewritten_by_query),
    strict("&&", &[QUERY, QUERY], QUERY, |v| joined(v, QueryItem::And)),
    strict("||", &[QUERY, QUERY], QUERY, |v| joined(v, QueryItem::Or)),
    strict("<->", &[QUERY, QUERY], QUERY, |v| joined(v, QueryItem::Phrase(1))),
    strict("!!", &[QUERY], QUERY, |v| Ok(query(v, 0)?.negated().value())),
    strict("@>", &[QUERY, QUERY], Boolean, |v| contains(&query(v, 0)?, &query(v, 1)?)),
    strict("<@", &[QUERY, QUERY], Boolean, |v| contains(&query(v, 1)?, &query(v, 0)?)),
];

fn joined(arguments: &[ValueRef<'_>], operator: QueryItem<'static>) -> Result<Value> {
    Ok(query(arguments, 0)?.joined(query(arguments, 1)?, operator).value())
}

/// Replaces parts of a query as the rows of a query in SQL say, one row after another.
fn rewritten_by_query(frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut whole = query(arguments, 0)?.value();
    if query(arguments, 0)?.items.is_empty() {
        return Ok(whole);
    }
    let QueryRows { types, rows } = frame.host()?.run_query(text(arguments, 1)?)?;
    if types != [QUERY, QUERY] {
        return Err(invalid("ts_rewrite query must return two tsquery columns"));
    }
    whole = in_order(&query(arguments, 0)?)?.value();
    for row in &rows {
        let [wanted, replacement] = &row[..] else { continue };
        if wanted.is_null() || replacement.is_null() {
            continue;
        }
        let given = [whole.as_ref(), wanted.as_ref(), replacement.as_ref()];
        let (now, wanted) = (query(&given, 0)?, query(&given, 1)?);
        if now.items.is_empty() {
            break;
        }
        if !wanted.items.is_empty() {
            whole = in_order(&rewritten(&now, &wanted, &query(&given, 2)?)?)?.value();
        }
    }
    Ok(whole)
}

/// Returns whether the first query has all words of the second one.
fn contains(whole: &TextQuery<'_>, part: &TextQuery<'_>) -> Result<Value> {
    let words: std::collections::HashSet<&str> = whole.words().map(|it| &*it.word).collect();
    Ok(Value::Boolean(part.words().all(|it| words.contains(&*it.word))))
}
