//! The distinct values of an IN list or of an array, for lookups.

use super::Context;
use crate::error::Result;
use crate::expression::Expr;
use crate::types::{Value, ValueRef};

/// The values of expressions, and the elements of those that are arrays, in ascending order, each
/// once, and no NULL.
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
                    match context.value(expr)? {
                        Value::Null => {}
                        // No key holds an array, so an array lists the keys.
                        Value::Array(array) => {
                            let elements = array.as_ref().iter().filter(|it| !it.is_null());
                            self.values.extend(elements.map(ValueRef::to_value));
                        }
                        value => self.values.push(value),
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
