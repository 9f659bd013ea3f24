//! Types of the system catalogs: names of objects become their numbers and the other way round.
//!
//! A value of a `reg…` type is the object's number. Names are looked up where a text becomes such a
//! type, where it becomes a text, and where a statement delivers it ([`named_outputs`]).

use std::sync::Arc;

use crate::bind::{Binder, OutputColumn, Typed};
use crate::error::Result;
use crate::expression::{Expr, Function, TextPosition, overloads};
use crate::types::encoded::RowShape;
use crate::types::encoded::row_types::RowType;
use crate::types::{DataType, ElementType, Value};

impl Typed {
    /// Returns a vector as the array that it is; any other value as it is.
    pub(in crate::bind) fn without_vector(self) -> Typed {
        match self.data_type {
            Some(DataType::System(known)) if known.vector_element().is_some() => {
                Typed { data_type: known.vector_array(), ..self }
            }
            _ => self,
        }
    }
}

/// Returns the function that shows values of the type as texts: numbers of objects as their names,
/// vectors without braces.
fn output_function(data_type: DataType) -> Option<Function> {
    let name = match data_type {
        DataType::System(known) if known.is_reference() || known.vector_element().is_some() => {
            format!("{}out", known.name())
        }
        DataType::Array(element) => format!("{}[]out", element.data_type().reference()?.name()),
        _ => return None,
    };
    overloads(&name).first().map(|builtin| Function(builtin))
}

/// Makes the fields of a row that is built here names instead of the numbers of objects.
pub(in crate::bind) fn name_fields(row: &mut Expr) {
    let Expr::Row(shape, values) = row else { return };
    let Some(known) = shape.data_type.row_type() else { return };
    if !known.fields.iter().any(|(_, of)| output_function(*of).is_some() || of.record().is_some()) {
        return;
    }
    let mut fields = known.fields.clone();
    for ((_, data_type), value) in fields.iter_mut().zip(values.iter_mut()) {
        if let Some(function) = output_function(*data_type) {
            let inner = std::mem::replace(value, Expr::Constant(Value::Null));
            *value = Expr::Call(function, vec![inner], TextPosition(0));
            *data_type = match data_type {
                DataType::Array(_) => DataType::Array(ElementType::TEXT),
                _ => DataType::Text,
            };
        } else if data_type.record().is_some() {
            name_fields(value);
        }
    }
    if fields == known.fields {
        return;
    }
    let row_type = RowType { name: None, fields: fields.clone() }.intern();
    let is_nullable = shape.is_nullable;
    let mut made = RowShape::new(row_type, &fields);
    made.is_nullable = is_nullable;
    *shape = Arc::new(made);
}

/// Makes a statement deliver names instead of the numbers of objects.
pub(crate) fn named_outputs(outputs: &mut [Expr], columns: &[OutputColumn]) {
    for (output, column) in outputs.iter_mut().zip(columns) {
        if column.data_type.record().is_some() {
            name_fields(output);
            continue;
        }
        let Some(function) = output_function(column.data_type) else { continue };
        let inner = std::mem::replace(output, Expr::Constant(Value::Null));
        *output = Expr::Call(function, vec![inner], TextPosition(0));
    }
}

impl Binder<'_> {
    /// Looks the names or numbers of objects up for a cast. The result has the wanted type or is
    /// left to the cast.
    pub(in crate::bind) fn through_name(&mut self, value: Typed, to: DataType) -> Result<Typed> {
        let position = value.position;
        if value.data_type == Some(to) || matches!(value.expr, Expr::Constant(Value::Null)) {
            return Ok(value);
        }
        let (from, wanted) = (value.data_type, to.reference());
        if let Some(kind) = wanted
            && from.is_none_or(DataType::is_text)
        {
            let text = self.coerce(value, DataType::Text)?;
            let text = Typed::new(text, DataType::Text, position);
            let number = self.builtin(&format!("{}in", kind.name()), vec![text], position)?;
            return Ok(Typed { data_type: Some(to), ..number });
        }
        let is_number = from.is_some_and(DataType::is_object_number);
        if is_number && to.is_object_number() {
            return Ok(Typed { data_type: Some(to), ..value });
        }
        if let (Some(function), true) = (from.and_then(output_function), to.is_text()) {
            let call = Expr::Call(function, vec![value.expr], TextPosition(position));
            // Names of an array's elements are left to the cast of an array of texts.
            let shown = match from {
                Some(DataType::Array(_)) => DataType::Array(ElementType::TEXT),
                _ => DataType::Text,
            };
            return Ok(Typed::new(call, shown, position));
        }
        let plain = value.clone().without_vector();
        Ok(if matches!(to, DataType::Array(_)) { plain } else { value })
    }
}
