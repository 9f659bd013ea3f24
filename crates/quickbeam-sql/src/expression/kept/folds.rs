//! Aggregates that statements have made, over the values that `array_agg` collects.

use crate::error::Result;
use crate::expression::{Expr, Frame};
use crate::types::{DataType, Value, ValueRef};

/// What the elements of the array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoldedRows {
    /// They only count: the aggregate has no argument.
    Empty,
    /// The values of the only argument.
    Values,
    /// Rows of all arguments.
    Rows,
}

/// How the value of an aggregate is computed. In its expressions parameter 0 is the state, and the
/// others are the arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Fold {
    /// The name of the aggregate.
    pub name: String,
    /// What the elements of the array are.
    pub rows: FoldedRows,
    /// How many arguments there are.
    pub width: usize,
    /// The state before the first row.
    pub initial: Value,
    /// The state after a row.
    pub step: Expr,
    /// The state after the first row, if the function of the state is strict and there was none
    /// before. Rows with NULLs are then left out.
    pub first: Option<Expr>,
    /// Whether the function of the state is strict.
    pub is_strict: bool,
    /// The value of the last state, if that is another one.
    pub finish: Option<Expr>,
    /// The type of the value.
    pub data_type: DataType,
}

impl Fold {
    /// Returns whether one of the expressions has a property.
    pub(in crate::expression) fn any(&self, has: impl Fn(&Expr) -> bool) -> bool {
        self.first.iter().chain(&self.finish).chain([&self.step]).any(has)
    }

    /// Takes the arguments of a row.
    fn take(&self, element: ValueRef<'_>, parameters: &mut [Value]) {
        let arguments = parameters.iter_mut().skip(1);
        match (self.rows, element.row()) {
            (FoldedRows::Empty, _) => {}
            (FoldedRows::Rows, Some(row)) => {
                for (argument, field) in arguments.zip(row.fields()) {
                    *argument = field.value.to_value();
                }
            }
            (FoldedRows::Rows, None) => arguments.for_each(|argument| *argument = Value::Null),
            (FoldedRows::Values, _) => {
                arguments.for_each(|argument| *argument = element.to_value());
            }
        }
    }

    /// Computes the value of the aggregate for the rows in an array; NULL stands for no rows.
    pub(in crate::expression) fn value_of(&self, rows: &Expr, frame: &Frame<'_>) -> Result<Value> {
        let rows = rows.evaluate(frame)?;
        let mut parameters = vec![Value::Null; self.width + 1];
        parameters[0].clone_from(&self.initial);
        let evaluate = |expr: &Expr, parameters: &[Value]| {
            let (clock, host) = (frame.clock, frame.host);
            let frame = Frame { slots: &[], parameters, clock, host };
            expr.evaluate(&frame).map(|value| value.into_value())
        };
        let mut has_state = !self.initial.is_null();
        if let ValueRef::Array(array) = rows.as_ref() {
            for element in array.iter() {
                self.take(element, &mut parameters);
                let has_null = || parameters.iter().skip(1).any(Value::is_null);
                if self.is_strict && has_null() {
                    continue;
                }
                let next = match &self.first {
                    Some(first) if self.is_strict && !has_state => first,
                    // A strict function is not called for NULL, and NULL it stays.
                    _ if self.is_strict && parameters[0].is_null() => break,
                    _ => &self.step,
                };
                parameters[0] = evaluate(next, &parameters)?;
                has_state = true;
            }
        }
        match &self.finish {
            Some(finish) => evaluate(finish, &parameters),
            None => Ok(parameters.swap_remove(0)),
        }
    }
}
