//! Columns of values in memory, as Arrow arrays.
//!
//! There are five kinds: 64-bit integers (which also hold dates and timestamps), 128-bit integers,
//! doubles, booleans and texts. The user of a column knows its SQL type. A NUMERIC is an integer
//! without its point: all values of a column have the scale of its type. One of at most 18 digits
//! has 64 bits.

use arrow_array::builder::{
    BooleanBuilder, Decimal128Builder, Float64Builder, Int64Builder, StringBuilder,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, StringArray,
};
use std::sync::Arc;

use super::evaluate::failed;
use crate::error::{Result, SqlError};
use crate::types::{DataType, Numeric, SHORT_PRECISION, Value, ValueRef, decimal_power};

/// A column.
#[derive(Clone, Debug)]
pub enum Vector {
    Numbers(Int64Array),
    /// NUMERIC beyond 64 bits. Arrow's own precision and scale mean nothing here.
    Wide(Decimal128Array),
    Doubles(Float64Array),
    Truths(BooleanArray),
    Texts(StringArray),
}

/// The kind of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorType {
    Numbers,
    /// NUMERIC of that scale in 64 bits.
    Decimals(u8),
    /// NUMERIC of that scale in 128 bits.
    WideDecimals(u8),
    Doubles,
    Truths,
    Texts,
}

/// Returns the kind of column for a type, or `None` if its values stay in rows.
pub fn kind_of(data_type: DataType) -> Option<VectorType> {
    Some(match data_type {
        DataType::SmallInt
        | DataType::Integer
        | DataType::BigInt
        | DataType::Date
        | DataType::Time
        | DataType::Timestamp
        | DataType::TimestampTz => VectorType::Numbers,
        DataType::Real | DataType::Double => VectorType::Doubles,
        DataType::Boolean => VectorType::Truths,
        DataType::Text | DataType::Varchar(_) | DataType::Char(_) => VectorType::Texts,
        DataType::Numeric(Some((precision, scale))) if precision <= SHORT_PRECISION => {
            VectorType::Decimals(scale)
        }
        DataType::Numeric(Some((_, scale))) => VectorType::WideDecimals(scale),
        DataType::Precise(precise) => return kind_of(precise.plain()),
        DataType::Numeric(None)
        | DataType::WideNumeric(_)
        | DataType::Bytea
        | DataType::Uuid
        | DataType::Interval
        | DataType::Json
        | DataType::Jsonb
        | DataType::System(_)
        | DataType::Encoded(_)
        | DataType::Array(_) => return None,
    })
}

/// Returns an integer as a value of its SQL type.
pub fn number_value(number: i64, data_type: DataType) -> ValueRef<'static> {
    match data_type {
        DataType::SmallInt => ValueRef::SmallInt(number as i16),
        DataType::Integer => ValueRef::Integer(number as i32),
        DataType::Date => ValueRef::Date(number as i32),
        DataType::Time => ValueRef::Time(number),
        DataType::Timestamp => ValueRef::Timestamp(number),
        DataType::TimestampTz => ValueRef::TimestampTz(number),
        DataType::Numeric(Some((_, scale))) => decimal_value(number.into(), scale),
        DataType::Precise(precise) => number_value(number, precise.plain()),
        _ => ValueRef::BigInt(number),
    }
}

/// Returns an integer without its point as a NUMERIC. A column holds no number of more digits.
fn decimal_value(number: i128, scale: u8) -> ValueRef<'static> {
    Numeric::new(number, scale).map_or(ValueRef::Null, ValueRef::Numeric)
}

/// Returns a NUMERIC without its point at a scale that the number does not exceed.
fn without_point(number: Numeric, scale: u8) -> Result<i128> {
    let missing = scale.checked_sub(number.scale()).ok_or_else(misfit)?;
    number.mantissa().checked_mul(decimal_power(missing)).ok_or_else(misfit)
}

impl Vector {
    /// The array.
    pub fn array(&self) -> &dyn Array {
        match self {
            Vector::Numbers(array) => array,
            Vector::Wide(array) => array,
            Vector::Doubles(array) => array,
            Vector::Truths(array) => array,
            Vector::Texts(array) => array,
        }
    }

    /// Returns whether it is a column of that kind.
    pub fn is_of(&self, kind: VectorType) -> bool {
        match self {
            Vector::Numbers(_) => matches!(kind, VectorType::Numbers | VectorType::Decimals(_)),
            Vector::Wide(_) => matches!(kind, VectorType::WideDecimals(_)),
            Vector::Doubles(_) => kind == VectorType::Doubles,
            Vector::Truths(_) => kind == VectorType::Truths,
            Vector::Texts(_) => kind == VectorType::Texts,
        }
    }

    /// The array, shared.
    pub fn to_array(&self) -> ArrayRef {
        match self {
            Vector::Numbers(array) => Arc::new(array.clone()),
            Vector::Wide(array) => Arc::new(array.clone()),
            Vector::Doubles(array) => Arc::new(array.clone()),
            Vector::Truths(array) => Arc::new(array.clone()),
            Vector::Texts(array) => Arc::new(array.clone()),
        }
    }

    /// The column that an array is, as kernels return it.
    pub fn of(array: &dyn Array) -> Result<Vector> {
        let any = array.as_any();
        if let Some(array) = any.downcast_ref::<Int64Array>() {
            return Ok(Vector::Numbers(array.clone()));
        }
        if let Some(array) = any.downcast_ref::<Decimal128Array>() {
            return Ok(Vector::Wide(array.clone()));
        }
        if let Some(array) = any.downcast_ref::<Float64Array>() {
            return Ok(Vector::Doubles(array.clone()));
        }
        if let Some(array) = any.downcast_ref::<BooleanArray>() {
            return Ok(Vector::Truths(array.clone()));
        }
        if let Some(array) = any.downcast_ref::<StringArray>() {
            return Ok(Vector::Texts(array.clone()));
        }
        Err(SqlError::internal("a column of a kind that does not exist"))
    }

    /// The value in a row.
    #[inline]
    pub fn value(&self, row: usize, data_type: DataType) -> ValueRef<'_> {
        if self.array().is_null(row) {
            return ValueRef::Null;
        }
        match self {
            Vector::Numbers(array) => number_value(array.value(row), data_type),
            Vector::Wide(array) => match data_type {
                DataType::Numeric(Some((_, scale))) => decimal_value(array.value(row), scale),
                _ => ValueRef::Null,
            },
            Vector::Doubles(array) if data_type == DataType::Real => {
                ValueRef::Real(array.value(row) as f32)
            }
            Vector::Doubles(array) => ValueRef::Double(array.value(row)),
            Vector::Truths(array) => ValueRef::Boolean(array.value(row)),
            Vector::Texts(array) => ValueRef::Text(array.value(row)),
        }
    }

    /// A column of that value, once.
    pub fn once(value: &Value, kind: VectorType) -> Result<Vector> {
        let mut builder = ColumnBuilder::new(kind);
        builder.push(value.as_ref())?;
        Ok(builder.finish())
    }

    /// Concatenates columns. There is at least one.
    pub fn joined(parts: &[Vector]) -> Result<Vector> {
        let arrays: Vec<&dyn Array> = parts.iter().map(Vector::array).collect();
        let whole = arrow_select::concat::concat(&arrays).map_err(|error| failed(&error))?;
        Vector::of(&*whole)
    }

    /// Returns the rows for which a condition is true.
    pub fn filtered(&self, truths: &BooleanArray) -> Result<Vector> {
        let array = arrow_select::filter::filter(self.array(), truths);
        Vector::of(&*array.map_err(|error| failed(&error))?)
    }

    /// Frees memory that the array does not use, as long as the array is not shared.
    pub fn shrink(&mut self) {
        match self {
            Vector::Numbers(array) => array.shrink_to_fit(),
            Vector::Wide(array) => array.shrink_to_fit(),
            Vector::Doubles(array) => array.shrink_to_fit(),
            Vector::Truths(array) => array.shrink_to_fit(),
            Vector::Texts(array) => array.shrink_to_fit(),
        }
    }

    /// Returns its memory in bytes.
    pub fn bytes(&self) -> usize {
        self.array().get_buffer_memory_size()
    }
}

/// A column being filled.
#[derive(Debug)]
pub enum ColumnBuilder {
    Numbers(Int64Builder),
    Decimals(Int64Builder, u8),
    Wide(Decimal128Builder, u8),
    Doubles(Float64Builder),
    Truths(BooleanBuilder),
    Texts(StringBuilder),
}

impl ColumnBuilder {
    pub fn new(kind: VectorType) -> ColumnBuilder {
        match kind {
            VectorType::Numbers => ColumnBuilder::Numbers(Int64Builder::new()),
            VectorType::Decimals(scale) => ColumnBuilder::Decimals(Int64Builder::new(), scale),
            VectorType::WideDecimals(scale) => ColumnBuilder::Wide(Decimal128Builder::new(), scale),
            VectorType::Doubles => ColumnBuilder::Doubles(Float64Builder::new()),
            VectorType::Truths => ColumnBuilder::Truths(BooleanBuilder::new()),
            VectorType::Texts => ColumnBuilder::Texts(StringBuilder::new()),
        }
    }

    /// Adds a value.
    pub fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        match (self, value) {
            (ColumnBuilder::Numbers(builder), ValueRef::Null)
            | (ColumnBuilder::Decimals(builder, _), ValueRef::Null) => builder.append_null(),
            (ColumnBuilder::Wide(builder, _), ValueRef::Null) => builder.append_null(),
            (ColumnBuilder::Decimals(builder, scale), ValueRef::Numeric(number)) => {
                let number = without_point(number, *scale)?;
                builder.append_value(i64::try_from(number).map_err(|_| misfit())?);
            }
            (ColumnBuilder::Wide(builder, scale), ValueRef::Numeric(number)) => {
                builder.append_value(without_point(number, *scale)?);
            }
            (ColumnBuilder::Doubles(builder), ValueRef::Null) => builder.append_null(),
            (ColumnBuilder::Truths(builder), ValueRef::Null) => builder.append_null(),
            (ColumnBuilder::Texts(builder), ValueRef::Null) => builder.append_null(),
            (ColumnBuilder::Numbers(builder), ValueRef::Date(days)) => {
                builder.append_value(days.into())
            }
            (
                ColumnBuilder::Numbers(builder),
                ValueRef::Time(moment)
                | ValueRef::Timestamp(moment)
                | ValueRef::TimestampTz(moment),
            ) => builder.append_value(moment),
            (ColumnBuilder::Numbers(builder), value) => match value.as_i64() {
                Some(number) => builder.append_value(number),
                None => return Err(misfit()),
            },
            (ColumnBuilder::Doubles(builder), ValueRef::Real(value)) => {
                builder.append_value(value.into())
            }
            (ColumnBuilder::Doubles(builder), ValueRef::Double(value)) => {
                builder.append_value(value)
            }
            (ColumnBuilder::Truths(builder), ValueRef::Boolean(value)) => {
                builder.append_value(value)
            }
            (ColumnBuilder::Texts(builder), ValueRef::Text(text)) => builder.append_value(text),
            _ => return Err(misfit()),
        }
        Ok(())
    }

    /// Returns the column and leaves the builder empty.
    pub fn finish(&mut self) -> Vector {
        match self {
            ColumnBuilder::Numbers(builder) | ColumnBuilder::Decimals(builder, _) => {
                Vector::Numbers(builder.finish())
            }
            ColumnBuilder::Wide(builder, _) => Vector::Wide(builder.finish()),
            ColumnBuilder::Doubles(builder) => Vector::Doubles(builder.finish()),
            ColumnBuilder::Truths(builder) => Vector::Truths(builder.finish()),
            ColumnBuilder::Texts(builder) => Vector::Texts(builder.finish()),
        }
    }
}

#[cold]
fn misfit() -> SqlError {
    SqlError::internal("a value that its column does not hold")
}
