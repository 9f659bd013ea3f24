//! Queries within statements: outputs, LIMIT, subqueries.

use super::subquery::{HashedAnswers, LastAnswer};
use super::{Context, KeptKeys, MemoryCharge, Operator, bound_of};
use crate::bind::SubqueryKind;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, accumulate_arrays};
use crate::plan::SubqueryHash;
use crate::types::{Array, Value};

/// The operators of a query, and its outputs.
#[derive(Debug)]
pub struct QueryProgram {
    /// The rows.
    pub root: Operator,
    /// The outputs.
    pub outputs: Vec<Expr>,
    /// The keys of the rows, if it is the query of a cursor.
    pub kept_keys: Option<Box<KeptKeys>>,
}

impl QueryProgram {
    /// Appends all rows. Returns their number.
    pub fn collect(
        &mut self,
        context: &mut Context<'_>,
        rows: &mut Vec<Vec<Value>>,
    ) -> Result<u64> {
        let mut count = 0;
        self.root.rewind();
        self.kept_keys.iter_mut().for_each(|keys| keys.restart());
        while self.root.next(context)? {
            count += 1;
            let row: Result<Vec<Value>> =
                self.outputs.iter().map(|output| context.value(output)).collect();
            let row = row?;
            context.keep_values(&row)?;
            rows.push(row);
            self.keep_keys(context)?;
        }
        Ok(count)
    }

    /// Keeps the keys of the current rows, if it is the query of a cursor.
    #[inline(always)]
    pub fn keep_keys(&mut self, context: &Context<'_>) -> Result<()> {
        match &mut self.kept_keys {
            Some(keys) => keys.push(&self.root, context),
            None => Ok(()),
        }
    }

    /// Moves to the next row and puts the outputs into a slot.
    pub fn next_into(&mut self, context: &mut Context<'_>, slot: usize) -> Result<bool> {
        if !self.root.next(context)? {
            return Ok(false);
        }
        let mut values = std::mem::take(&mut context.slot(slot)?.values);
        values.clear();
        for output in &self.outputs {
            values.push(context.value(output)?);
        }
        let slot = context.slot(slot)?;
        slot.values = values;
        slot.current = crate::expression::Current::Values;
        Ok(true)
    }
}

/// Part of the rows.
#[derive(Debug)]
pub struct Limit {
    pub input: Operator,
    limit: Option<Expr>,
    offset: Option<Expr>,
    /// WITH TIES: the sort keys.
    ties: Vec<Expr>,
    /// The sort keys of the last row of the limit.
    last: Vec<Value>,
    left: Option<u64>,
    fresh: bool,
}

impl Limit {
    pub fn new(
        input: Operator,
        limit: Option<Expr>,
        offset: Option<Expr>,
        ties: Vec<Expr>,
    ) -> Limit {
        Limit { input, limit, offset, ties, last: Vec::new(), left: None, fresh: true }
    }

    pub fn rewind(&mut self) {
        self.input.rewind();
        self.fresh = true;
    }

    fn start(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.last.clear();
        self.left =
            bound_of(context, self.limit.as_ref(), SqlState::InvalidRowCountInLimit, "LIMIT")?;
        let offset = self.offset.as_ref();
        let offset = bound_of(context, offset, SqlState::InvalidRowCountInOffset, "OFFSET")?;
        if self.left != Some(0) {
            for _ in 0..offset.unwrap_or(0) {
                if !self.input.next(context)? {
                    self.left = Some(0);
                    break;
                }
            }
        }
        Ok(())
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if std::mem::take(&mut self.fresh) {
            self.start(context)?;
        }
        match &mut self.left {
            Some(0) if self.last.is_empty() => return Ok(false),
            Some(0) => return self.next_tie(context),
            Some(left) => *left -= 1,
            None => {}
        }
        if !self.input.next(context)? {
            return Ok(false);
        }
        if self.left == Some(0) && !self.ties.is_empty() {
            self.last = self.ties.iter().map(|key| context.value(key)).collect::<Result<_>>()?;
        }
        Ok(true)
    }

    /// Moves to the next row if it has the sort keys of the last row of the limit.
    fn next_tie(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let mut is_tie = self.input.next(context)?;
        for (key, last) in self.ties.iter().zip(&self.last) {
            is_tie = is_tie && context.value(key)?.as_ref().order(last.as_ref()).is_eq();
        }
        if !is_tie {
            self.last.clear();
        }
        Ok(is_tie)
    }
}

/// For each row the answer of a subquery.
#[derive(Debug)]
pub struct Apply {
    pub input: Operator,
    query: QueryProgram,
    slot: usize,
    kind: SubqueryKind,
    once: bool,
    /// The answer holds for all rows.
    answered: bool,
    /// The hashed rows of the subquery, if the plan chose so.
    hashed: Option<HashedAnswers>,
    /// The answer for the last row, if it may be that of the next.
    last: Option<LastAnswer>,
    /// The conditions of which one must be true for a row that needs the answer, if not all do.
    needed: Vec<Expr>,
}

impl Apply {
    pub fn new(
        input: Operator,
        query: QueryProgram,
        slot: usize,
        kind: SubqueryKind,
        once: bool,
        (hash, last): (Option<Box<SubqueryHash>>, Option<LastAnswer>),
    ) -> Apply {
        // The value compared differs from row to row.
        let once = once && !matches!(kind, SubqueryKind::Any(..) | SubqueryKind::All(..));
        Apply {
            input,
            query,
            slot,
            once,
            answered: false,
            last: last.filter(|_| {
                hash.is_none()
                    && !once
                    && matches!(kind, SubqueryKind::Scalar | SubqueryKind::Exists)
            }),
            kind,
            hashed: hash.map(|hash| HashedAnswers::new(*hash)),
            needed: Vec::new(),
        }
    }

    /// Sets the conditions of which one must be true for a row that needs the answer.
    pub fn needed_if(mut self, conditions: &[Expr]) -> Apply {
        self.needed = conditions.to_vec();
        self
    }

    pub fn rewind(&mut self) {
        self.input.rewind();
        self.answered = false;
        self.last.iter_mut().for_each(LastAnswer::clear);
        self.hashed.iter_mut().for_each(HashedAnswers::rewind);
    }

    /// See [`Operator::again`].
    pub fn again(&mut self) {
        self.input.again();
        self.last.iter_mut().for_each(LastAnswer::clear);
    }

    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.input.counts(counts);
        self.query.root.counts(counts);
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        if !self.input.next(context)? {
            return Ok(false);
        }
        if !(self.once && self.answered) {
            context.check_cancelled()?;
            if !self.needed.is_empty() && !self.is_needed(context) {
                context.put_values(self.slot, self.query.outputs.iter().map(|_| Value::Null));
                return Ok(true);
            }
            if let SubqueryKind::Row = self.kind {
                self.answer_row(context)?;
            } else {
                let answer = self.answer_or_last(context)?;
                context.put_values(self.slot, std::iter::once(answer));
            }
            self.answered = true;
        }
        Ok(true)
    }

    /// Returns whether the current row needs the answer. An expression whose conditions fail does
    /// so itself, before it reads the answer.
    fn is_needed(&self, context: &Context<'_>) -> bool {
        self.needed.iter().any(|condition| context.holds(Some(condition)).unwrap_or(false))
    }

    fn answer_or_last(&mut self, context: &mut Context<'_>) -> Result<Value> {
        if let Some(last) = &mut self.last
            && let Some(answer) = last.get(context)?
        {
            return Ok(answer);
        }
        let answer = self.answer(context)?;
        if let Some(last) = &mut self.last {
            last.put(&answer, context)?;
        }
        Ok(answer)
    }

    /// Puts the only row of the subquery into the slot, or NULLs.
    fn answer_row(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.query.root.rewind();
        if !self.query.next_into(context, self.slot)? {
            context.put_values(self.slot, self.query.outputs.iter().map(|_| Value::Null));
            return Ok(());
        }
        let values = std::mem::take(&mut context.slot(self.slot)?.values);
        if self.query.root.next(context)? {
            return Err(several_rows());
        }
        context.put_values(self.slot, values.into_iter());
        Ok(())
    }

    fn answer(&mut self, context: &mut Context<'_>) -> Result<Value> {
        if let Some(hashed) = &mut self.hashed {
            return hashed.answer(&self.kind, &mut self.query, context);
        }
        self.query.root.rewind();
        let query = &mut self.query;
        let mut next = |context: &mut Context<'_>| -> Result<Option<Value>> {
            if !query.root.next(context)? {
                return Ok(None);
            }
            match query.outputs.first() {
                Some(output) => context.value(output).map(Some),
                None => Ok(Some(Value::Null)),
            }
        };
        match &self.kind {
            SubqueryKind::Exists => Ok(Value::Boolean(next(context)?.is_some())),
            SubqueryKind::Row => Err(SqlError::internal("a row as one value")),
            SubqueryKind::Array(element) => {
                let mut charge = MemoryCharge::default();
                charge.clear(context);
                let mut values = Vec::new();
                while let Some(value) = next(context)? {
                    charge.keep(value.memory(), context)?;
                    values.push(value);
                }
                let array = match values.is_empty() {
                    true => Value::Array(Array::empty(*element)),
                    false => accumulate_arrays(*element, &values)?,
                };
                charge.clear(context);
                Ok(array)
            }
            SubqueryKind::Scalar => {
                let Some(value) = next(context)? else { return Ok(Value::Null) };
                if next(context)?.is_some() {
                    return Err(several_rows());
                }
                Ok(value)
            }
            SubqueryKind::Any(expr, comparison) | SubqueryKind::All(expr, comparison) => {
                let any = matches!(self.kind, SubqueryKind::Any(..));
                let value = context.value(expr)?;
                let mut unknown = false;
                while let Some(other) = next(context)? {
                    match compare(&value, &other) {
                        Some(order) if comparison.holds(order) == any => {
                            return Ok(Value::Boolean(any));
                        }
                        Some(_) => {}
                        None => unknown = true,
                    }
                }
                Ok(if unknown { Value::Null } else { Value::Boolean(!any) })
            }
        }
    }
}

#[cold]
fn several_rows() -> SqlError {
    let message = "more than one row returned by a subquery used as an expression";
    SqlError::new(SqlState::CardinalityViolation, message)
}

/// Compares values. The binder made both comparable: if one side is a CHAR, trailing blanks are
/// removed from both.
fn compare(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    a.compare(b)
}
