//! Hashed rows of a subquery that a row is compared with, as in `(a, b) IN (SELECT …)`.
//!
//! - ANSWERS-2: the answer is the same as comparing with the subquery's rows one by one. It is NULL
//!   if no row is equal, and one is equal in all columns in which neither has a NULL.

use std::collections::BTreeMap;

use quickbeam::invariant;

use crate::error::Result;
use crate::execute::hash::key_table::{KeyTable, append};
use crate::execute::row::query::QueryProgram;
use crate::execute::row::{Context, MemoryCharge};
use crate::expression::Expr;
use crate::types::Value;

/// Memory of a key besides its own bytes.
const KEY_BYTES: usize = 56;

/// The length that marks a NULL.
const NULL: u32 = u32::MAX;

/// The rows of a subquery, as far as comparisons with them need them.
#[derive(Debug)]
pub struct HashedRows {
    /// The values of the outer row.
    row: Vec<Expr>,
    built: bool,
    /// The distinct rows: for each column its length and its bytes.
    rows: KeyTable,
    /// The sets of columns in which a row has NULLs, as bits.
    masks: Vec<u64>,
    /// For each set of NULLs of an outer row: the subquery's rows without the columns in which one
    /// of both has a NULL.
    partial: BTreeMap<u64, KeyTable>,
    key: Vec<u8>,
    account: MemoryCharge,
}

impl HashedRows {
    pub fn new(row: Vec<Expr>) -> HashedRows {
        HashedRows {
            row,
            built: false,
            rows: KeyTable::default(),
            masks: Vec::new(),
            partial: BTreeMap::new(),
            key: Vec::new(),
            account: MemoryCharge::default(),
        }
    }

    /// Discards the rows, so that the next answer reads the subquery again.
    pub fn rewind(&mut self) {
        self.built = false;
    }

    /// Returns whether the current outer row is one of the subquery's rows, or NULL.
    pub fn answer(&mut self, query: &mut QueryProgram, context: &mut Context<'_>) -> Result<Value> {
        if !self.built {
            self.build(query, context)?;
        }
        let outer = encode(&self.row, &mut self.key, context)?;
        if self.rows.len() == 0 {
            return Ok(Value::Boolean(false));
        }
        if outer == 0 && self.rows.find(&self.key).is_some() {
            return Ok(Value::Boolean(true));
        }
        if outer == 0 && self.masks == [0] {
            return Ok(Value::Boolean(false));
        }
        if !self.partial.contains_key(&outer) {
            self.add_partial(outer, context)?;
        }
        let Some(partial) = self.partial.get(&outer) else { return Ok(Value::Null) };
        let mut without = Vec::with_capacity(self.key.len() + size_of::<u64>());
        let mut nulls = self.masks.iter().map(|mask| mask | outer).filter(|nulls| *nulls != 0);
        let is_unknown = nulls.any(|nulls| {
            without.clear();
            project(&self.key, nulls, &mut without);
            partial.find(&without).is_some()
        });
        Ok(if is_unknown { Value::Null } else { Value::Boolean(false) })
    }

    /// Reads the subquery's rows.
    fn build(&mut self, query: &mut QueryProgram, context: &mut Context<'_>) -> Result<()> {
        self.account.clear(context);
        self.rows.clear();
        self.masks.clear();
        self.partial.clear();
        query.root.rewind();
        while query.root.next(context)? {
            context.check_cancelled()?;
            let nulls = encode(&query.outputs, &mut self.key, context)?;
            if self.rows.insert(&self.key).1 {
                self.account.keep(self.key.len() + KEY_BYTES, context)?;
            }
            if !self.masks.contains(&nulls) {
                self.masks.push(nulls);
            }
        }
        self.built = true;
        let (rows, masks) = (self.rows.len(), self.masks.len());
        invariant!(ANSWERS_2, masks <= rows, "{masks} sets of NULLs in {rows} rows");
        Ok(())
    }

    /// Adds the rows without the columns in which they or an outer row have NULLs.
    fn add_partial(&mut self, outer: u64, context: &Context<'_>) -> Result<()> {
        let (mut partial, mut without) = (KeyTable::default(), Vec::new());
        for number in 0..self.rows.len() {
            let row = self.rows.key(number).unwrap_or_default();
            let nulls = nulls_of(row) | outer;
            if nulls == 0 {
                continue;
            }
            without.clear();
            project(row, nulls, &mut without);
            if partial.insert(&without).1 {
                self.account.keep(without.len() + KEY_BYTES, context)?;
            }
        }
        self.partial.insert(outer, partial);
        Ok(())
    }
}

/// Writes values, each with its length. Returns the set of those that are NULL.
fn encode(values: &[Expr], out: &mut Vec<u8>, context: &Context<'_>) -> Result<u64> {
    out.clear();
    let frame = context.frame();
    let mut nulls = 0;
    for (column, value) in values.iter().enumerate() {
        let value = value.evaluate(&frame)?;
        let start = out.len();
        out.extend_from_slice(&NULL.to_le_bytes());
        if value.is_null() {
            nulls |= 1 << column;
            continue;
        }
        append(value.as_ref(), out);
        let length = (out.len() - start - size_of::<u32>()) as u32;
        out[start..start + size_of::<u32>()].copy_from_slice(&length.to_le_bytes());
    }
    Ok(nulls)
}

/// Returns the columns of an encoded row with their lengths; a NULL has the length alone.
fn columns(mut row: &[u8]) -> impl Iterator<Item = (bool, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_le_bytes(*row.first_chunk()?);
        let is_null = length == NULL;
        let own = size_of::<u32>() + if is_null { 0 } else { length as usize };
        let (column, rest) = row.split_at_checked(own)?;
        row = rest;
        Some((is_null, column))
    })
}

fn nulls_of(row: &[u8]) -> u64 {
    let nulls = columns(row).enumerate().filter(|(_, (is_null, _))| *is_null);
    nulls.fold(0, |nulls, (column, _)| nulls | 1 << column)
}

/// Appends a set of columns, and the columns of a row that are not in it.
fn project(row: &[u8], without: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&without.to_le_bytes());
    for (number, (_, column)) in columns(row).enumerate() {
        if without >> number & 1 == 0 {
            out.extend_from_slice(column);
        }
    }
}
