//! Hashed subqueries: the subquery's rows are read once, and each outer row looks up its answer.
//!
//! - ANSWERS-1: the answer is the same as comparing with the subquery's rows one by one, including
//!   NULLs.

use quickbeam::invariant;
use std::cmp::Ordering;

use crate::bind::SubqueryKind;
use crate::error::Result;
use crate::execute::hash::key_table::{KeyTable, append};
use crate::execute::row::query::QueryProgram;
use crate::execute::row::{Context, MemoryCharge};
use crate::expression::{Comparison, Expr};
use crate::plan::SubqueryHash;
use crate::types::{Value, ValueRef};

/// Memory of a key besides its own bytes.
const KEY_BYTES: usize = 56;

/// What is kept of a subquery's rows, besides their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keep {
    /// Nothing: EXISTS.
    Groups,
    /// Each value.
    Members,
    /// The minimum and the maximum.
    Ends,
    /// The only value of each key: a scalar subquery.
    Answers,
}

/// The rows of a subquery, as far as its answers need them.
#[derive(Debug)]
pub struct HashedSubquery {
    /// The correlation keys of the outer row. The subquery returns its keys as its last columns.
    keys: Vec<Expr>,
    /// The answers of a scalar subquery, by the number of their group; of keys without rows.
    answers: Vec<Value>,
    missing: Value,
    built: bool,
    /// The distinct keys of the rows; those of rows whose value is NULL; keys with values.
    groups: KeyTable,
    nulls: KeyTable,
    members: KeyTable,
    any_null: bool,
    any_exact: bool,
    /// One of the values. A value that does not compare with it compares with none.
    sample: Option<Value>,
    /// Values are compared as double precision.
    doubles: bool,
    /// The minimum and maximum, if the other values do not matter.
    ends: Option<[Value; 2]>,
    key: Vec<u8>,
    account: MemoryCharge,
}

impl HashedSubquery {
    pub fn new(hash: SubqueryHash) -> HashedSubquery {
        HashedSubquery {
            keys: hash.keys,
            answers: Vec::new(),
            missing: hash.missing,
            built: false,
            groups: KeyTable::default(),
            nulls: KeyTable::default(),
            members: KeyTable::default(),
            any_null: false,
            any_exact: false,
            sample: None,
            doubles: false,
            ends: None,
            key: Vec::new(),
            account: MemoryCharge::default(),
        }
    }

    /// Discards the hash, so that the next answer reads the subquery's rows again.
    pub fn rewind(&mut self) {
        self.built = false;
    }

    /// Returns the answer for the current rows.
    pub fn answer(
        &mut self,
        kind: &SubqueryKind,
        query: &mut QueryProgram,
        context: &mut Context<'_>,
    ) -> Result<Value> {
        let (expr, comparison, any) = match kind {
            SubqueryKind::Any(expr, comparison) => (Some(expr), *comparison, true),
            SubqueryKind::All(expr, comparison) => (Some(expr), *comparison, false),
            SubqueryKind::Exists
            | SubqueryKind::Scalar
            | SubqueryKind::Row
            | SubqueryKind::Array(_) => (None, Comparison::Equal, true),
        };
        let value = expr.map(|expr| context.value(expr)).transpose()?;
        let float = value.as_ref().is_some_and(|value| is_float(value.as_ref()));
        if !self.built || (float && !self.doubles) {
            self.doubles = float;
            let keep = match kind {
                SubqueryKind::Scalar => Keep::Answers,
                SubqueryKind::Any(..) | SubqueryKind::All(..) if is_set(kind) => Keep::Members,
                SubqueryKind::Any(..) | SubqueryKind::All(..) => Keep::Ends,
                _ => Keep::Groups,
            };
            self.build(keep, query, context)?;
        }
        if matches!(kind, SubqueryKind::Scalar) {
            let group = self.find_group(context)?;
            let answer = group.and_then(|group| self.answers.get(group));
            return Ok(answer.unwrap_or(&self.missing).clone());
        }
        let has_rows = self.find_group(context)?.is_some();
        let Some(value) = value else { return Ok(Value::Boolean(has_rows)) };
        if !has_rows {
            return Ok(Value::Boolean(!any));
        }
        let comparable = self.sample.as_ref().is_some_and(|one| value.compare(one).is_some());
        if !comparable {
            // Nothing compares with it, or with NULLs alone.
            return Ok(Value::Null);
        }
        if is_set(kind) {
            let group = self.key.len();
            append_comparable(value.as_ref(), self.doubles, &mut self.key);
            if self.members.find(&self.key).is_some() {
                return Ok(Value::Boolean(any));
            }
            self.key.truncate(group);
            let unknown = self.any_null && self.nulls.find(&self.key).is_some();
            return Ok(if unknown { Value::Null } else { Value::Boolean(!any) });
        }
        let holds = |end: &Value| value.compare(end).map(|order| comparison.holds(order) == any);
        let decided = self.ends.iter().flatten().any(|end| holds(end) == Some(true));
        Ok(match decided {
            true => Value::Boolean(any),
            false if self.any_null => Value::Null,
            false => Value::Boolean(!any),
        })
    }

    /// Makes the key of the current rows. Returns its number, if the subquery has rows with it.
    fn find_group(&mut self, context: &Context<'_>) -> Result<Option<usize>> {
        self.key.clear();
        let frame = context.frame();
        for key in &self.keys {
            let value = key.evaluate(&frame)?;
            // NULL equals nothing.
            if value.is_null() {
                return Ok(None);
            }
            append(value.as_ref(), &mut self.key);
        }
        Ok(self.groups.find(&self.key))
    }

    fn clear(&mut self, context: &Context<'_>) {
        self.account.clear(context);
        self.any_exact = false;
        self.groups.clear();
        self.answers.clear();
        self.nulls.clear();
        self.members.clear();
        self.any_null = false;
        self.sample = None;
        self.ends = None;
    }

    /// Returns whether nothing of a run is kept.
    fn is_clear(&self) -> bool {
        let keys = self.groups.len() + self.nulls.len() + self.members.len();
        let values = self.answers.len() + usize::from(self.sample.is_some() || self.ends.is_some());
        keys + values == 0 && !self.any_null && !self.any_exact
    }

    /// Reads the subquery's rows.
    fn build(
        &mut self,
        keep: Keep,
        query: &mut QueryProgram,
        context: &mut Context<'_>,
    ) -> Result<()> {
        loop {
            let doubles = self.doubles;
            self.clear(context);
            invariant!(DIRECT_2, self.is_clear(), "{} keys of an earlier run", self.groups.len());
            query.root.rewind();
            while query.root.next(context)? {
                context.check_cancelled()?;
                self.add(keep, &query.outputs, context)?;
            }
            // Exact numbers before the first inexact one were stored as exact.
            if self.doubles == doubles || !self.any_exact {
                break;
            }
        }
        self.built = true;
        let keys = self.groups.len() + self.nulls.len() + self.members.len();
        let kept = self.account.kept();
        invariant!(DIRECT_3, kept >= keys * KEY_BYTES, "{kept} bytes for {keys} keys");
        // Each key of a scalar subquery has one answer, at its number.
        let answers = self.answers.len();
        let is_complete = match keep {
            Keep::Answers => answers == self.groups.len(),
            Keep::Groups | Keep::Members | Keep::Ends => answers == 0,
        };
        let knows_nulls = !self.any_null || self.nulls.len() > 0;
        invariant!(ANSWERS_1, is_complete && knows_nulls, "{answers} answers, {keys} keys");
        Ok(())
    }

    /// Adds the current row of the subquery.
    fn add(&mut self, keep: Keep, outputs: &[Expr], context: &Context<'_>) -> Result<()> {
        self.key.clear();
        let frame = context.frame();
        let (values, keys) = outputs.split_at(outputs.len().saturating_sub(self.keys.len()));
        for key in keys {
            let value = key.evaluate(&frame)?;
            if value.is_null() {
                return Ok(());
            }
            append(value.as_ref(), &mut self.key);
        }
        let mut kept = 0;
        let mut insert = |table: &mut KeyTable, key: &[u8]| {
            if table.insert(key).1 {
                kept += key.len() + KEY_BYTES;
            }
        };
        if keep == Keep::Answers {
            // The query groups by the keys: each comes once.
            let answer = values.first().map(|value| value.evaluate(&frame)).transpose()?;
            let answer = answer.map_or(Value::Null, |answer| answer.as_ref().to_value());
            insert(&mut self.groups, &self.key);
            self.answers.push(answer);
            return self.account.keep(kept + size_of::<Value>(), context);
        }
        insert(&mut self.groups, &self.key);
        if let (Some(value), true) = (values.first(), keep != Keep::Groups) {
            let value = value.evaluate(&frame)?;
            if value.is_null() {
                self.any_null = true;
                insert(&mut self.nulls, &self.key);
            } else {
                let float = is_float(value.as_ref());
                self.doubles |= float;
                self.any_exact |= !float;
                if self.sample.is_none() {
                    self.sample = Some(value.as_ref().to_value());
                }
                if keep == Keep::Members {
                    append_comparable(value.as_ref(), self.doubles, &mut self.key);
                    insert(&mut self.members, &self.key);
                } else {
                    self.widen(value.as_ref());
                }
            }
        }
        self.account.keep(kept, context)
    }

    fn widen(&mut self, value: ValueRef<'_>) {
        match &mut self.ends {
            None => self.ends = Some([value.to_value(), value.to_value()]),
            Some([least, greatest]) => {
                if value.compare(least.as_ref()) == Some(Ordering::Less) {
                    *least = value.to_value();
                }
                if value.compare(greatest.as_ref()) == Some(Ordering::Greater) {
                    *greatest = value.to_value();
                }
            }
        }
    }
}

/// Whether membership of each value matters. The other comparisons need only the minimum and the
/// maximum.
fn is_set(kind: &SubqueryKind) -> bool {
    matches!(
        kind,
        SubqueryKind::Any(_, Comparison::Equal) | SubqueryKind::All(_, Comparison::NotEqual)
    )
}

fn is_float(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Real(_) | ValueRef::Double(_))
}

/// Appends key bytes that are the same for all equal values of all types. With `doubles`, numbers
/// are compared in double precision.
fn append_comparable(value: ValueRef<'_>, doubles: bool, out: &mut Vec<u8>) {
    if doubles && let Some(number) = value.as_f64() {
        return append(ValueRef::Double(number), out);
    }
    if let ValueRef::Numeric(number) = value {
        let number = number.stripped();
        if number.scale() == 0
            && let Ok(number) = i64::try_from(number.mantissa())
        {
            return append(ValueRef::BigInt(number), out);
        }
    }
    if let ValueRef::LongNumeric(number) = value
        && let Some(number) = number.decimal().stripped().short()
    {
        return append_comparable(ValueRef::Numeric(number), doubles, out);
    }
    append(value, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Numeric;

    #[test]
    fn values_have_the_same_bytes_exactly_if_they_are_equal() {
        let numeric = |text| ValueRef::Numeric(Numeric::parse(text).unwrap());
        let exact = [
            ValueRef::SmallInt(5),
            ValueRef::Integer(5),
            ValueRef::BigInt(5),
            numeric("5.00"),
            numeric("5.01"),
            numeric("0"),
            ValueRef::Integer(0),
            numeric("-0.5"),
            numeric("12345678901234567890123"),
            ValueRef::BigInt(i64::MIN),
            numeric("-9223372036854775808.0"),
        ];
        let floats = [ValueRef::Double(5.0), ValueRef::Real(-0.5), ValueRef::Double(-0.0)];
        let bytes = |value, doubles| {
            let mut out = Vec::new();
            append_comparable(value, doubles, &mut out);
            out
        };
        for a in exact {
            for b in exact {
                let equal = a.compare(b) == Some(Ordering::Equal);
                assert_eq!(bytes(a, false) == bytes(b, false), equal, "{a:?} {b:?}");
            }
            for b in floats {
                let equal = a.compare(b) == Some(Ordering::Equal);
                assert_eq!(bytes(a, true) == bytes(b, true), equal, "{a:?} {b:?}");
            }
        }
    }
}
