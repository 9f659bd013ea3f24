//! The distinct values of an IN list, for lookups.

use super::Context;
use crate::error::Result;
use crate::expression::Expr;
use crate::types::Value;

/// The values that some expressions have, in ascending order, each once, and no NULL.
#[derive(Debug)]
pub struct InListScan {
    slot: usize,
    exprs: Vec<Expr>,
    values: Vec<Value>,
    next: Option<usize>,
}

impl InListScan {
    pub fn new(slot: usize, rows: &[Vec<Expr>]) -> InListScan {
        let exprs = rows.iter().flatten().cloned().collect();
        InListScan { slot, exprs, values: Vec::new(), next: None }
    }

    pub fn rewind(&mut self) {
        self.next = None;
    }

    pub fn next(&mut self, context: &mut Context<'_>) -> Result<bool> {
        let next = match self.next {
            Some(next) => next,
            None => {
                self.values.clear();
                for expr in &self.exprs {
                    let value = context.value(expr)?;
                    if !value.is_null() {
                        self.values.push(value);
                    }
                }
                self.values.sort();
                self.values.dedup();
                0
            }
        };
        self.next = Some(next + 1);
        let Some(value) = self.values.get(next) else { return Ok(false) };
        context.put_values(self.slot, std::iter::once(value.clone()));
        Ok(true)
    }
}
