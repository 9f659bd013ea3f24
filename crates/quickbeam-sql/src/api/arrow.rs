//! Answers as Arrow's record batches.
//!
//! | SQL | Arrow |
//! |---|---|
//! | BOOLEAN | Boolean |
//! | SMALLINT, INTEGER, BIGINT | Int16, Int32, Int64 |
//! | REAL, DOUBLE PRECISION | Float32, Float64 |
//! | NUMERIC(p, s) | Decimal128(p, s) |
//! | NUMERIC | Utf8, the number as it is written |
//! | TEXT, VARCHAR, CHAR | Utf8 |
//! | BYTEA | Binary |
//! | DATE | Date32 |
//! | TIME | Time64 in microseconds |
//! | TIMESTAMP, with time zone | Timestamp in microseconds, with the zone UTC |
//! | UUID | FixedSizeBinary(16) |
//! | INTERVAL | Interval of months, days and nanoseconds |

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder,
    FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder,
    Int64Builder, IntervalMonthDayNanoBuilder, StringBuilder, Time64MicrosecondBuilder,
    TimestampMicrosecondBuilder, UInt32Builder,
};
use arrow_array::types::IntervalMonthDayNano;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{
    ArrowError, DataType as ArrowType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit,
};

use super::connection::Connection;
use crate::error::{Result, SqlError};
use crate::session::rows::Rows;
use crate::types::{DataType, Numeric, Value, ValueRef};

/// Default number of rows in a batch.
const ROWS: usize = 8192;

/// The type of Arrow for values of a type.
fn arrow_type(data_type: DataType) -> ArrowType {
    match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::SmallInt => ArrowType::Int16,
        DataType::Integer => ArrowType::Int32,
        DataType::OID => ArrowType::UInt32,
        DataType::BigInt => ArrowType::Int64,
        DataType::Real => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Numeric(Some((precision, scale))) => {
            ArrowType::Decimal128(precision, scale as i8)
        }
        DataType::Numeric(None)
        | DataType::WideNumeric(_)
        | DataType::Text
        | DataType::Varchar(_)
        | DataType::Char(_)
        | DataType::Json
        | DataType::Jsonb
        | DataType::System(_)
        | DataType::Encoded(_)
        | DataType::Array(_) => ArrowType::Utf8,
        DataType::Bytea => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Uuid => ArrowType::FixedSizeBinary(16),
        DataType::Interval => ArrowType::Interval(IntervalUnit::MonthDayNano),
        DataType::Precise(precise) => arrow_type(precise.plain()),
    }
}

/// A column being filled.
enum ArrowBuilder {
    Boolean(BooleanBuilder),
    SmallInt(Int16Builder),
    Integer(Int32Builder),
    BigInt(Int64Builder),
    Oid(UInt32Builder),
    Real(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, u8),
    Text(StringBuilder),
    Bytea(BinaryBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Uuid(FixedSizeBinaryBuilder),
    Interval(IntervalMonthDayNanoBuilder),
}

#[cold]
fn failed(error: &ArrowError) -> SqlError {
    SqlError::internal(format!("a record batch cannot be made: {error}"))
}

#[cold]
fn misfit(value: ValueRef<'_>) -> SqlError {
    SqlError::internal(format!("a value of type {:?} in another column", value.data_type()))
}

/// Returns the number's digits with `scale` of them after the point.
fn digits(number: Numeric, scale: u8) -> Option<i128> {
    // A number without digits has a greater scale.
    let more = scale.checked_sub(number.scale())?;
    number.mantissa().checked_mul(10i128.checked_pow(more.into())?)
}

impl ArrowBuilder {
    fn new(data_type: DataType) -> Result<ArrowBuilder> {
        Ok(match data_type {
            DataType::Boolean => ArrowBuilder::Boolean(BooleanBuilder::new()),
            DataType::SmallInt => ArrowBuilder::SmallInt(Int16Builder::new()),
            DataType::Integer => ArrowBuilder::Integer(Int32Builder::new()),
            DataType::BigInt => ArrowBuilder::BigInt(Int64Builder::new()),
            DataType::OID => ArrowBuilder::Oid(UInt32Builder::new()),
            DataType::Real => ArrowBuilder::Real(Float32Builder::new()),
            DataType::Double => ArrowBuilder::Double(Float64Builder::new()),
            DataType::Numeric(Some((precision, scale))) => {
                let builder = Decimal128Builder::new();
                let builder = builder.with_precision_and_scale(precision, scale as i8);
                ArrowBuilder::Decimal(builder.map_err(|error| failed(&error))?, scale)
            }
            DataType::Numeric(None)
            | DataType::WideNumeric(_)
            | DataType::Text
            | DataType::Varchar(_)
            | DataType::Char(_)
            | DataType::Json
            | DataType::Jsonb
            | DataType::System(_)
            | DataType::Encoded(_)
            | DataType::Array(_) => ArrowBuilder::Text(StringBuilder::new()),
            DataType::Bytea => ArrowBuilder::Bytea(BinaryBuilder::new()),
            DataType::Date => ArrowBuilder::Date(Date32Builder::new()),
            DataType::Time => ArrowBuilder::Time(Time64MicrosecondBuilder::new()),
            DataType::Timestamp | DataType::TimestampTz => ArrowBuilder::Timestamp(
                TimestampMicrosecondBuilder::new().with_data_type(arrow_type(data_type)),
            ),
            DataType::Uuid => ArrowBuilder::Uuid(FixedSizeBinaryBuilder::new(16)),
            DataType::Interval => ArrowBuilder::Interval(IntervalMonthDayNanoBuilder::new()),
            DataType::Precise(precise) => return ArrowBuilder::new(precise.plain()),
        })
    }

    fn push_null(&mut self) {
        match self {
            ArrowBuilder::Boolean(builder) => builder.append_null(),
            ArrowBuilder::SmallInt(builder) => builder.append_null(),
            ArrowBuilder::Integer(builder) => builder.append_null(),
            ArrowBuilder::BigInt(builder) => builder.append_null(),
            ArrowBuilder::Oid(builder) => builder.append_null(),
            ArrowBuilder::Real(builder) => builder.append_null(),
            ArrowBuilder::Double(builder) => builder.append_null(),
            ArrowBuilder::Decimal(builder, _) => builder.append_null(),
            ArrowBuilder::Text(builder) => builder.append_null(),
            ArrowBuilder::Bytea(builder) => builder.append_null(),
            ArrowBuilder::Date(builder) => builder.append_null(),
            ArrowBuilder::Time(builder) => builder.append_null(),
            ArrowBuilder::Timestamp(builder) => builder.append_null(),
            ArrowBuilder::Uuid(builder) => builder.append_null(),
            ArrowBuilder::Interval(builder) => builder.append_null(),
        }
    }

    fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        match (self, value) {
            (builder, ValueRef::Null) => builder.push_null(),
            (ArrowBuilder::Boolean(builder), ValueRef::Boolean(value)) => {
                builder.append_value(value)
            }
            (ArrowBuilder::SmallInt(builder), ValueRef::SmallInt(value)) => {
                builder.append_value(value)
            }
            (ArrowBuilder::Integer(builder), ValueRef::Integer(value)) => {
                builder.append_value(value)
            }
            (ArrowBuilder::BigInt(builder), ValueRef::BigInt(value)) => builder.append_value(value),
            (ArrowBuilder::Oid(builder), ValueRef::Oid(value)) => builder.append_value(value),
            (ArrowBuilder::Real(builder), ValueRef::Real(value)) => builder.append_value(value),
            (ArrowBuilder::Double(builder), ValueRef::Double(value)) => builder.append_value(value),
            (ArrowBuilder::Decimal(builder, scale), ValueRef::Numeric(number)) => {
                let digits = digits(number, *scale).ok_or_else(|| misfit(value))?;
                builder.append_value(digits);
            }
            (
                ArrowBuilder::Text(builder),
                ValueRef::Text(text) | ValueRef::Json(text) | ValueRef::Jsonb(text),
            ) => builder.append_value(text),
            (
                ArrowBuilder::Text(builder),
                ValueRef::Numeric(_)
                | ValueRef::LongNumeric(_)
                | ValueRef::Array(_)
                | ValueRef::Oid(_)
                | ValueRef::Encoded(..),
            ) => {
                builder.append_value(value.to_string());
            }
            (ArrowBuilder::Bytea(builder), ValueRef::Bytea(bytes)) => builder.append_value(bytes),
            (ArrowBuilder::Date(builder), ValueRef::Date(days)) => builder.append_value(days),
            (ArrowBuilder::Time(builder), ValueRef::Time(time)) => builder.append_value(time),
            (
                ArrowBuilder::Timestamp(builder),
                ValueRef::Timestamp(moment) | ValueRef::TimestampTz(moment),
            ) => builder.append_value(moment),
            (ArrowBuilder::Uuid(builder), ValueRef::Uuid(bytes)) => {
                builder.append_value(bytes).map_err(|error| failed(&error))?;
            }
            (ArrowBuilder::Interval(builder), ValueRef::Interval(interval)) => {
                let nanos = interval.micros.checked_mul(1000).ok_or_else(|| misfit(value))?;
                let parts = IntervalMonthDayNano::new(interval.months, interval.days, nanos);
                builder.append_value(parts);
            }
            (_, value) => return Err(misfit(value)),
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let builder: &mut dyn ArrayBuilder = match self {
            ArrowBuilder::Boolean(builder) => builder,
            ArrowBuilder::SmallInt(builder) => builder,
            ArrowBuilder::Integer(builder) => builder,
            ArrowBuilder::BigInt(builder) => builder,
            ArrowBuilder::Oid(builder) => builder,
            ArrowBuilder::Real(builder) => builder,
            ArrowBuilder::Double(builder) => builder,
            ArrowBuilder::Decimal(builder, _) => builder,
            ArrowBuilder::Text(builder) => builder,
            ArrowBuilder::Bytea(builder) => builder,
            ArrowBuilder::Interval(builder) => builder,
            ArrowBuilder::Date(builder) => builder,
            ArrowBuilder::Time(builder) => builder,
            ArrowBuilder::Timestamp(builder) => builder,
            ArrowBuilder::Uuid(builder) => builder,
        };
        builder.finish()
    }
}

impl Rows<'_> {
    /// Returns the names and types of the columns as an Arrow schema. Every column may hold NULL.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        let field = |column: &crate::bind::OutputColumn| {
            Field::new(column.name.as_str(), arrow_type(column.data_type), true)
        };
        Arc::new(Schema::new(self.columns().iter().map(field).collect::<Vec<_>>()))
    }

    /// Returns up to `most` of the next rows as a record batch, or `None` at the end.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let mut rows = connection.query("SELECT id FROM fruit", &[])?;
    /// while let Some(batch) = rows.next_batch(1024)? {
    ///     assert_eq!((batch.num_rows(), batch.num_columns()), (2, 1));
    /// }
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn next_batch(&mut self, most: usize) -> Result<Option<RecordBatch>> {
        let builders: Result<Vec<ArrowBuilder>> =
            self.columns().iter().map(|column| ArrowBuilder::new(column.data_type)).collect();
        let mut builders = builders?;
        let mut count = 0;
        while count < most {
            let Some(row) = self.next()? else { break };
            for (number, builder) in builders.iter_mut().enumerate() {
                builder.push(row.value(number)?)?;
            }
            count += 1;
        }
        if count == 0 {
            return Ok(None);
        }
        let columns = builders.iter_mut().map(ArrowBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.schema(), columns, &options);
        batch.map(Some).map_err(|error| failed(&error))
    }
}

impl Connection {
    /// Executes a query and returns its whole result as record batches of some thousand rows.
    ///
    /// ```
    /// # use quickbeam_sql::{SqlDatabase, params};
    /// # let database = SqlDatabase::open_in_memory(Default::default())?;
    /// # let mut connection = database.connect();
    /// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
    /// # connection.execute("INSERT INTO fruit VALUES (1, 'apple'), (2, NULL)", &[])?;
    /// let batches = connection.query_batches("SELECT id, name FROM fruit", &[])?;
    /// assert_eq!(batches[0].num_rows(), 2);
    /// # Ok::<(), quickbeam_sql::SqlError>(())
    /// ```
    pub fn query_batches(&mut self, text: &str, parameters: &[Value]) -> Result<Vec<RecordBatch>> {
        let mut rows = self.query(text, parameters)?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.next_batch(ROWS)? {
            batches.push(batch);
        }
        Ok(batches)
    }
}
