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

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder,
    FixedSizeBinaryBuilder, Float32Builder, Float64Builder, Int16Builder, Int32Builder,
    Int64Builder, StringBuilder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType as ArrowType, Field, Schema, SchemaRef, TimeUnit};

use super::connection::Connection;
use super::rows::Rows;
use crate::error::{Result, SqlError};
use crate::types::{DataType, Numeric, Value, ValueRef};

/// Rows of a batch, when nobody says how many.
const ROWS: usize = 8192;

/// The type of Arrow for values of a type.
fn arrow_type(data_type: DataType) -> ArrowType {
    match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::SmallInt => ArrowType::Int16,
        DataType::Integer => ArrowType::Int32,
        DataType::BigInt => ArrowType::Int64,
        DataType::Real => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Numeric(Some((precision, scale))) => {
            ArrowType::Decimal128(precision, scale as i8)
        }
        DataType::Numeric(None) | DataType::Text | DataType::Varchar(_) | DataType::Char(_) => {
            ArrowType::Utf8
        }
        DataType::Bytea => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Time => ArrowType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, None),
        DataType::TimestampTz => ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Uuid => ArrowType::FixedSizeBinary(16),
    }
}

/// A column being filled.
enum Builder {
    Boolean(BooleanBuilder),
    SmallInt(Int16Builder),
    Integer(Int32Builder),
    BigInt(Int64Builder),
    Real(Float32Builder),
    Double(Float64Builder),
    Decimal(Decimal128Builder, u8),
    Text(StringBuilder),
    Bytea(BinaryBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Uuid(FixedSizeBinaryBuilder),
}

#[cold]
fn failed(error: &ArrowError) -> SqlError {
    SqlError::internal(format!("a record batch cannot be made: {error}"))
}

#[cold]
fn misfit(value: ValueRef<'_>) -> SqlError {
    SqlError::internal(format!("a value of type {:?} in another column", value.data_type()))
}

/// The number's digits with `scale` of them behind the point.
fn digits(number: Numeric, scale: u8) -> Option<i128> {
    let more = scale.checked_sub(number.scale())?;
    number.mantissa().checked_mul(10i128.checked_pow(more.into())?)
}

impl Builder {
    fn new(data_type: DataType) -> Result<Builder> {
        Ok(match data_type {
            DataType::Boolean => Builder::Boolean(BooleanBuilder::new()),
            DataType::SmallInt => Builder::SmallInt(Int16Builder::new()),
            DataType::Integer => Builder::Integer(Int32Builder::new()),
            DataType::BigInt => Builder::BigInt(Int64Builder::new()),
            DataType::Real => Builder::Real(Float32Builder::new()),
            DataType::Double => Builder::Double(Float64Builder::new()),
            DataType::Numeric(Some((precision, scale))) => {
                let builder = Decimal128Builder::new();
                let builder = builder.with_precision_and_scale(precision, scale as i8);
                Builder::Decimal(builder.map_err(|error| failed(&error))?, scale)
            }
            DataType::Numeric(None) | DataType::Text | DataType::Varchar(_) | DataType::Char(_) => {
                Builder::Text(StringBuilder::new())
            }
            DataType::Bytea => Builder::Bytea(BinaryBuilder::new()),
            DataType::Date => Builder::Date(Date32Builder::new()),
            DataType::Time => Builder::Time(Time64MicrosecondBuilder::new()),
            DataType::Timestamp | DataType::TimestampTz => Builder::Timestamp(
                TimestampMicrosecondBuilder::new().with_data_type(arrow_type(data_type)),
            ),
            DataType::Uuid => Builder::Uuid(FixedSizeBinaryBuilder::new(16)),
        })
    }

    fn push_null(&mut self) {
        match self {
            Builder::Boolean(builder) => builder.append_null(),
            Builder::SmallInt(builder) => builder.append_null(),
            Builder::Integer(builder) => builder.append_null(),
            Builder::BigInt(builder) => builder.append_null(),
            Builder::Real(builder) => builder.append_null(),
            Builder::Double(builder) => builder.append_null(),
            Builder::Decimal(builder, _) => builder.append_null(),
            Builder::Text(builder) => builder.append_null(),
            Builder::Bytea(builder) => builder.append_null(),
            Builder::Date(builder) => builder.append_null(),
            Builder::Time(builder) => builder.append_null(),
            Builder::Timestamp(builder) => builder.append_null(),
            Builder::Uuid(builder) => builder.append_null(),
        }
    }

    fn push(&mut self, value: ValueRef<'_>) -> Result<()> {
        match (self, value) {
            (builder, ValueRef::Null) => builder.push_null(),
            (Builder::Boolean(builder), ValueRef::Boolean(value)) => builder.append_value(value),
            (Builder::SmallInt(builder), ValueRef::SmallInt(value)) => builder.append_value(value),
            (Builder::Integer(builder), ValueRef::Integer(value)) => builder.append_value(value),
            (Builder::BigInt(builder), ValueRef::BigInt(value)) => builder.append_value(value),
            (Builder::Real(builder), ValueRef::Real(value)) => builder.append_value(value),
            (Builder::Double(builder), ValueRef::Double(value)) => builder.append_value(value),
            (Builder::Decimal(builder, scale), ValueRef::Numeric(number)) => {
                let digits = digits(number, *scale).ok_or_else(|| misfit(value))?;
                builder.append_value(digits);
            }
            (Builder::Text(builder), ValueRef::Text(text)) => builder.append_value(text),
            (Builder::Text(builder), ValueRef::Numeric(number)) => {
                builder.append_value(number.to_string());
            }
            (Builder::Bytea(builder), ValueRef::Bytea(bytes)) => builder.append_value(bytes),
            (Builder::Date(builder), ValueRef::Date(days)) => builder.append_value(days),
            (Builder::Time(builder), ValueRef::Time(time)) => builder.append_value(time),
            (
                Builder::Timestamp(builder),
                ValueRef::Timestamp(moment) | ValueRef::TimestampTz(moment),
            ) => builder.append_value(moment),
            (Builder::Uuid(builder), ValueRef::Uuid(bytes)) => {
                builder.append_value(bytes).map_err(|error| failed(&error))?;
            }
            (_, value) => return Err(misfit(value)),
        }
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let builder: &mut dyn ArrayBuilder = match self {
            Builder::Boolean(builder) => builder,
            Builder::SmallInt(builder) => builder,
            Builder::Integer(builder) => builder,
            Builder::BigInt(builder) => builder,
            Builder::Real(builder) => builder,
            Builder::Double(builder) => builder,
            Builder::Decimal(builder, _) => builder,
            Builder::Text(builder) => builder,
            Builder::Bytea(builder) => builder,
            Builder::Date(builder) => builder,
            Builder::Time(builder) => builder,
            Builder::Timestamp(builder) => builder,
            Builder::Uuid(builder) => builder,
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
    /// # use quickbeam_sql::{Database, params};
    /// # let database = Database::memory(Default::default())?;
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
        let builders: Result<Vec<Builder>> =
            self.columns().iter().map(|column| Builder::new(column.data_type)).collect();
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
        let columns = builders.iter_mut().map(Builder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.schema(), columns, &options);
        batch.map(Some).map_err(|error| failed(&error))
    }
}

impl Connection {
    /// Executes a query and returns its whole result as record batches of some thousand rows.
    ///
    /// ```
    /// # use quickbeam_sql::{Database, params};
    /// # let database = Database::memory(Default::default())?;
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
