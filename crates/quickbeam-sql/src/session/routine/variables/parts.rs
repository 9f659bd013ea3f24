//! Assignments to parts of variables: `a[1] := 2`, `r.f[1].g := 3`.

use super::{Cell, HeldRow, assigned, field_of};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Clock, JsonStep, array_element, assigned_array, assigned_json};
use crate::parse::plpgsql::{BlockStep, BlockSubscript, FragmentId, VariableKind};
use crate::session::routine::call::Invocation;
use crate::types::encoded::RowShape;
use crate::types::{Array, DataType, Value};

/// A step to a part of a value, with the values of its subscripts.
enum EvaluatedStep {
    Field(smol_str::SmolStr),
    /// The subscripts, `None` for a bound that is not written; whether they are those of a slice.
    Subscripts(Vec<Option<Value>>, bool),
}

#[cold]
fn null_subscript(of: &str) -> SqlError {
    let message = format!("{of} subscript in assignment must not be null");
    SqlError::new(SqlState::NullValueNotAllowed, message)
}

/// Returns a value of a type with another value of a part. `of`: the name of what has the type.
fn with_part(
    whole: &Value,
    (data_type, of): (DataType, &str),
    steps: &[EvaluatedStep],
    value: Value,
    clock: &Clock,
) -> Result<Value> {
    let Some((step, rest)) = steps.split_first() else { return assigned(value, data_type, clock) };
    match (step, data_type) {
        (EvaluatedStep::Field(name), _) => {
            let Some(row_type) = data_type.record() else {
                let message = format!(
                    "cannot assign to field \"{name}\" of column \"{of}\" because its type {data_type} is not a composite type"
                );
                return Err(SqlError::new(SqlState::DatatypeMismatch, message));
            };
            let fields = data_type.row_fields();
            let Some(at) = fields.iter().position(|(known, _)| known == name) else {
                let message = format!(
                    "cannot assign to field \"{name}\" of column \"{of}\" because there is no such column in data type {data_type}"
                );
                return Err(SqlError::new(SqlState::UndefinedColumn, message));
            };
            let row = whole.as_ref().row();
            let field = |number: usize| row.map_or(Value::Null, |row| row.get(number).to_value());
            let made = with_part(&field(at), (fields[at].1, name), rest, value, clock)?;
            let shape = RowShape::new(row_type, fields);
            let mut row = shape.begin();
            for number in 0..fields.len() {
                match number == at {
                    true => row.push(made.as_ref())?,
                    false => row.push(field(number).as_ref())?,
                }
            }
            row.finish()
        }
        (EvaluatedStep::Subscripts(subscripts, is_slice), DataType::Array(element)) => {
            let mut places = Vec::with_capacity(subscripts.len());
            for subscript in subscripts {
                let number = subscript.clone().map(|it| assigned(it, DataType::Integer, clock));
                places.push(match number.transpose()? {
                    None => None,
                    Some(Value::Null) => return Err(null_subscript("array")),
                    Some(number) => number.as_ref().as_i64(),
                });
            }
            let empty = Array::empty(element);
            let array = match whole {
                Value::Array(array) => array,
                _ => &empty,
            };
            let part = if *is_slice { data_type } else { element.data_type() };
            let current = match rest {
                [] => Value::Null,
                _ => array_element(array.as_ref(), &places).to_value(),
            };
            let made = with_part(&current, (part, of), rest, value, clock)?;
            assigned_array(array.as_ref(), (&places, *is_slice), made.as_ref())
        }
        (EvaluatedStep::Subscripts(subscripts, false), DataType::Jsonb) if rest.is_empty() => {
            let mut steps = Vec::with_capacity(subscripts.len());
            for subscript in subscripts.iter().flatten() {
                let is_number = subscript.as_ref().as_i64().is_some();
                match assigned(subscript.clone(), DataType::Text, clock)? {
                    Value::Null => return Err(null_subscript("jsonb")),
                    text => steps.push(JsonStep { text: text.to_string(), is_number }),
                }
            }
            let value = assigned(value, DataType::Jsonb, clock)?;
            assigned_json(whole.as_ref(), &steps, value.as_ref())
        }
        (EvaluatedStep::Subscripts(_, true), DataType::Jsonb) => {
            let message = "jsonb subscript does not support slices";
            Err(SqlError::new(SqlState::DatatypeMismatch, message))
        }
        (EvaluatedStep::Subscripts(..), _) => {
            let message = format!(
                "cannot subscript type {data_type} because it does not support subscripting"
            );
            Err(SqlError::new(SqlState::DatatypeMismatch, message))
        }
    }
}

impl Invocation<'_> {
    /// Evaluates the subscripts of a step.
    fn evaluated_step(&self, step: &BlockStep) -> Result<EvaluatedStep> {
        let subscripts = match step {
            BlockStep::Field(name) => return Ok(EvaluatedStep::Field(name.clone())),
            BlockStep::Subscripts(subscripts) => subscripts,
        };
        let is_slice = subscripts.iter().any(|it| matches!(it, BlockSubscript::Slice(..)));
        let bound = |it: &Option<FragmentId>| it.map(|it| self.value(it)).transpose();
        let mut values = Vec::with_capacity(subscripts.len());
        for subscript in subscripts {
            match subscript {
                BlockSubscript::Index(index) => {
                    // Beside a slice, a single subscript is an upper bound.
                    values.extend(is_slice.then_some(Some(Value::Integer(1))));
                    values.push(Some(self.value(*index)?));
                }
                BlockSubscript::Slice(low, high) => values.extend([bound(low)?, bound(high)?]),
            }
        }
        Ok(EvaluatedStep::Subscripts(values, is_slice))
    }

    /// Assigns a value to a part of a variable.
    pub fn assign_part(
        &mut self,
        variable: usize,
        steps: &[BlockStep],
        value: FragmentId,
    ) -> Result<()> {
        self.check_variable(variable)?;
        let name = self.variable_name(variable);
        let evaluated: Result<Vec<EvaluatedStep>> =
            steps.iter().map(|step| self.evaluated_step(step)).collect();
        let (steps, value) = (evaluated?, self.value(value)?);
        let clock = &self.session.clock;
        let kind = &self.compiled.body.variables[variable].kind;
        match (&self.cells[variable], kind, &steps[..]) {
            (
                Cell::Scalar(whole),
                VariableKind::Scalar(data_type)
                | VariableKind::Domain(data_type, _)
                | VariableKind::Collated(data_type, _),
                steps,
            ) => {
                let made = with_part(whole, (*data_type, &name), steps, value, clock)?;
                self.set(variable, made)
            }
            (
                cell @ Cell::Record(shape, values, _),
                _,
                [EvaluatedStep::Field(field), rest @ ..],
            ) => {
                let at = field_of(&name, cell, field)?;
                let made = with_part(&values[at], (shape[at].1, field), rest, value, clock)?;
                if let Cell::Record(_, values, held) = &mut self.cells[variable] {
                    values[at] = made;
                    *held = HeldRow::Row;
                }
                Ok(())
            }
            _ => {
                let message =
                    "cannot subscript type record because it does not support subscripting";
                Err(SqlError::new(SqlState::DatatypeMismatch, message))
            }
        }
    }
}
