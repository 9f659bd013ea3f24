//! Functions that make rows of JSON objects: `json_populate_record`, `json_to_recordset` and their
//! kin. Their arguments are a row, or NULL, the JSON value and the number of the row's type.

use super::json_functions::read;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::row_functions::FunctionRow;
use crate::expression::builtin::{Builtin, Implementation, invalid, mismatch};
use crate::expression::{Datum, Frame, cast};
use crate::types::encoded::RowShape;
use crate::types::encoded::row_types::RowField;
use crate::types::json::{Json, JsonKind};
use crate::types::{
    ArrayBuilder, CastContext, DataType, Dimension, ElementType, EncodedType, MAX_DIMENSIONS,
    RowRef, Value, ValueRef, too_many_dimensions,
};

/// A function that makes rows of JSON.
#[derive(Debug, PartialEq, Eq)]
pub struct JsonRecords {
    /// Its name.
    pub name: &'static str,
    /// The type of its JSON argument.
    pub data_type: DataType,
    /// Whether a row with the values of missing members is its first argument.
    pub has_base: bool,
    /// Whether it returns a row for each element of an array.
    pub is_set: bool,
}

const fn populates(name: &'static str, data_type: DataType) -> JsonRecords {
    JsonRecords { name, data_type, has_base: true, is_set: false }
}

const fn defines(name: &'static str, data_type: DataType) -> JsonRecords {
    JsonRecords { has_base: false, ..populates(name, data_type) }
}

const fn set(of: JsonRecords) -> JsonRecords {
    JsonRecords { is_set: true, ..of }
}

static TABLE: [JsonRecords; 8] = [
    populates("json_populate_record", DataType::Json),
    populates("jsonb_populate_record", DataType::Jsonb),
    set(populates("json_populate_recordset", DataType::Json)),
    set(populates("jsonb_populate_recordset", DataType::Jsonb)),
    defines("json_to_record", DataType::Json),
    defines("jsonb_to_record", DataType::Jsonb),
    set(defines("json_to_recordset", DataType::Json)),
    set(defines("jsonb_to_recordset", DataType::Jsonb)),
];

impl JsonRecords {
    /// Returns the function of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static JsonRecords> {
        TABLE.iter().find(|known| known.name == name)
    }

    /// Returns the rows as values of their fields.
    pub fn rows(&self, frame: &Frame<'_>, arguments: &[ValueRef<'_>]) -> Result<Vec<FunctionRow>> {
        let (base, fields) = (arguments.first().and_then(|base| base.row()), fields(arguments)?);
        let reader = JsonRowReader { frame };
        if is_null(arguments, 1) {
            let row = (0..fields.len()).map(|at| base_field(base, at)).collect();
            return Ok(if self.is_set { Vec::new() } else { vec![row] });
        }
        let json = read(arguments, 1)?;
        if !self.is_set {
            return Ok(vec![reader.row(&json, base, fields)?]);
        }
        let name = self.name;
        let list = match (json.kind, self.data_type) {
            (JsonKind::Array(list), _) => list,
            (JsonKind::Object(_), DataType::Json) => {
                return Err(invalid(format!("cannot call {name} on an object")));
            }
            (_, DataType::Json) => return Err(invalid(format!("cannot call {name} on a scalar"))),
            _ => return Err(invalid(format!("cannot call {name} on a non-array"))),
        };
        let row = |element: &Json<'_>| match element.kind {
            JsonKind::Object(_) => reader.row(element, base, fields),
            _ => Err(invalid(format!("argument of {name} must be an array of objects"))),
        };
        list.iter().map(row).collect()
    }
}

/// `json_populate_record` and `jsonb_populate_record` as functions of a value.
pub static POPULATE: Builtin = Builtin::new(
    "populate_record",
    &[],
    DataType::RECORD,
    Implementation::StableNullTolerant(|frame, arguments| {
        let fields = fields(arguments)?;
        if is_null(arguments, 0) && is_null(arguments, 1) {
            return Ok(Value::Null);
        }
        let function = &TABLE[0];
        let rows = function.rows(frame, arguments)?;
        let row = rows.first().map(Vec::as_slice).unwrap_or_default();
        row_value(row_type(arguments)?, fields, row)
    }),
);

fn is_null(arguments: &[ValueRef<'_>], at: usize) -> bool {
    arguments.get(at).is_none_or(|value| value.is_null())
}

fn row_type(arguments: &[ValueRef<'_>]) -> Result<EncodedType> {
    let number = arguments.get(2).and_then(|number| number.as_i64());
    let number = number.and_then(|number| u32::try_from(number).ok());
    number.map(EncodedType::of_rows).ok_or_else(mismatch)
}

fn fields(arguments: &[ValueRef<'_>]) -> Result<&'static [RowField]> {
    row_type(arguments)?.row_type().map(|it| &it.fields[..]).ok_or_else(mismatch)
}

fn base_field(base: Option<RowRef<'_>>, at: usize) -> Value {
    base.map_or(Value::Null, |base| base.get(at).to_value())
}

fn row_value(row_type: EncodedType, fields: &[RowField], values: &[Value]) -> Result<Value> {
    let shape = RowShape::new(row_type, fields);
    let mut row = shape.begin();
    values.iter().try_for_each(|value| row.push(value.as_ref()))?;
    row.finish()
}

#[cold]
fn not_an_array(hint: String) -> SqlError {
    SqlError::new(SqlState::InvalidTextRepresentation, "expected JSON array").with_hint(hint)
}

/// Reads values of types from JSON.
struct JsonRowReader<'f, 'a> {
    frame: &'f Frame<'a>,
}

impl JsonRowReader<'_, '_> {
    /// Returns the fields of a row, from the members of an object.
    fn row(
        &self,
        json: &Json<'_>,
        base: Option<RowRef<'_>>,
        fields: &[RowField],
    ) -> Result<FunctionRow> {
        match json.kind {
            JsonKind::Object(_) => {}
            JsonKind::Array(_) => {
                return Err(invalid("cannot call populate_composite on an array"));
            }
            _ => return Err(invalid("cannot call populate_composite on a scalar")),
        }
        let mut row = Vec::with_capacity(fields.len());
        for (at, (name, data_type)) in fields.iter().enumerate() {
            row.push(match json.member(name) {
                Some(member) => self.value(member, *data_type, name)?,
                None => base_field(base, at),
            });
        }
        Ok(row)
    }

    /// Returns the value of a member as one of a type.
    fn value(&self, json: &Json<'_>, data_type: DataType, name: &str) -> Result<Value> {
        match (&json.kind, data_type) {
            (JsonKind::Null, _) => Ok(Value::Null),
            (_, DataType::Json) => Ok(Value::json(json.text)),
            (JsonKind::String(text), DataType::Array(_)) => self.of_text(text, data_type),
            (JsonKind::Array(list), DataType::Array(element)) => self.array(list, element, name),
            (_, DataType::Array(_)) => {
                Err(not_an_array(format!("See the value of key \"{name}\".")))
            }
            (JsonKind::Object(_) | JsonKind::Array(_), _) if let Some(row) = data_type.record() => {
                let fields = data_type.row_fields();
                row_value(row, fields, &self.row(json, None, fields)?)
            }
            (JsonKind::String(text), _) if data_type != DataType::Jsonb => {
                self.of_text(text, data_type)
            }
            _ => self.of_text(json.text, data_type),
        }
    }

    fn of_text(&self, text: &str, data_type: DataType) -> Result<Value> {
        let clock = self.frame.clock;
        let text = Datum::Own(Value::text(text));
        let parsed = cast(text, data_type.unconstrained(), CastContext::Explicit, clock)?;
        Ok(cast(parsed, data_type, CastContext::Assignment, clock)?.into_value())
    }

    fn array(&self, list: &[Json<'_>], element: ElementType, name: &str) -> Result<Value> {
        let mut lengths = vec![list.len()];
        let mut first = list.first();
        while let Some(JsonKind::Array(inner)) = first.map(|it| &it.kind) {
            lengths.push(inner.len());
            first = inner.first();
        }
        if lengths.len() > MAX_DIMENSIONS {
            return Err(too_many_dimensions(lengths.len()));
        }
        let mut builder = ArrayBuilder::new(element);
        self.elements(list, (&lengths, element), &mut builder, (name, &mut Vec::new()))?;
        if builder.is_empty() {
            return Ok(Value::Array(crate::types::Array::empty(element)));
        }
        let dimensions: Vec<Dimension> = lengths.into_iter().map(Dimension::of).collect();
        Ok(Value::Array(builder.finish(&dimensions)?))
    }

    /// Adds the elements of an array, and of the arrays in it.
    fn elements(
        &self,
        list: &[Json<'_>],
        (lengths, element): (&[usize], ElementType),
        builder: &mut ArrayBuilder,
        (name, place): (&str, &mut Vec<usize>),
    ) -> Result<()> {
        if lengths.first() != Some(&list.len()) {
            let message = "malformed JSON array";
            return Err(SqlError::new(SqlState::InvalidTextRepresentation, message).with_detail(
                "Multidimensional arrays must have sub-arrays with matching dimensions.",
            ));
        }
        let inner = lengths.get(1..).unwrap_or_default();
        for (number, json) in list.iter().enumerate() {
            place.push(number);
            match &json.kind {
                _ if inner.is_empty() => {
                    let value = self.value(json, element.data_type(), name)?;
                    builder.push(value.as_ref())?;
                }
                JsonKind::Array(list) => {
                    self.elements(list, (inner, element), builder, (name, place))?;
                }
                _ => {
                    let at: String = place.iter().map(|at| format!("[{at}]")).collect();
                    let hint = format!("See the array element {at} of key \"{name}\".");
                    return Err(not_an_array(hint));
                }
            }
            place.pop();
        }
        Ok(())
    }
}
