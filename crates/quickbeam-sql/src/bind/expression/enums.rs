//! `enum_first`, `enum_last` and `enum_range`. Their results follow from the type of the argument,
//! and from bounds that are constants.

use crate::bind::types::undefined::no_function;
use crate::bind::{Binder, Typed};
use crate::error::{Result, SqlError};
use crate::expression::Expr;
use crate::types::{ArrayBuilder, DataType, Dimension, ElementType, EncodedKind, Value};

impl Binder<'_> {
    /// Binds a function of the labels of an enumerated type.
    pub(super) fn enum_function(
        &mut self,
        name: &str,
        mut arguments: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        let known = arguments.iter().find_map(|argument| argument.data_type);
        let encoded = known.filter(|it| it.element().is_none()).and_then(DataType::enumerated);
        let definition = encoded.and_then(|encoded| encoded.definition());
        let count = arguments.len();
        let is_call = count == 1 || count == 2 && name == "enum_range";
        let (Some(known), Some(definition), true) = (known, definition, is_call) else {
            return Err(no_function(name, arguments.iter().map(|it| it.data_type), position));
        };
        let value = |bytes: Vec<u8>| Value::encoded(EncodedKind::Enum, &bytes);
        let mut values: Vec<Value> = definition.values().map(value).collect();
        if count == 2 {
            let mut bounds = Vec::with_capacity(2);
            for argument in arguments.drain(..) {
                match self.coerce(argument, known)? {
                    Expr::Constant(value) => bounds.push(value),
                    Expr::Cast(inner, ..) if inner.as_constant().is_some_and(Value::is_null) => {
                        bounds.push(Value::Null);
                    }
                    _ => {
                        let what = "enum_range with bounds that are no constants";
                        return Err(SqlError::unsupported(what).at(position as usize));
                    }
                }
            }
            let is_before = |a: &Value, b: &Value| a.compare(b).is_some_and(|it| it.is_lt());
            values.retain(|value| !is_before(value, &bounds[0]) && !is_before(&bounds[1], value));
        }
        let (value, data_type) = match (name, ElementType::new(known)) {
            ("enum_first", _) => (values.first().cloned().unwrap_or(Value::Null), known),
            ("enum_last", _) => (values.last().cloned().unwrap_or(Value::Null), known),
            (_, Some(element)) => {
                let mut array = ArrayBuilder::new(element);
                values.iter().try_for_each(|value| array.push(value.as_ref()))?;
                let dimension = (!values.is_empty()).then(|| Dimension::of(values.len()));
                (Value::Array(array.finish(dimension.as_slice())?), DataType::Array(element))
            }
            (_, None) => return Err(SqlError::internal("an array of an enumerated type")),
        };
        Ok(Typed::new(Expr::Constant(value), data_type, position))
    }
}
