//! COPY: records of CSV or text into a table, rows of an answer out.
//!
//! Above: the execution of statements. Below: INSERT for one record after the other, queries, CSV.
//! No file is opened here: what COPY may read and write, the owner of the connection says.
//!
//! - COPY-1: a COPY FROM is one statement: if one of its records fails, nothing of it stays.
//! - COPY-2: a COPY is not tried again by itself: what it read or wrote may be gone.

pub(crate) mod binary;
mod record_writer;

use quickbeam::query_layer::TransactionExt;
use quickbeam::{CHECKS_INVARIANTS, invariant};
use std::io::{self, Read, Write};

use self::binary::{BinaryCodec, BinaryReader};
use self::record_writer::RecordWriter;
use super::executor::{Done, TransactionUse};
use crate::bind::{CopyForm, CopyFormat, CopyHeader, CopyPlace};
use crate::compile::cascades::Cascades;
use crate::compile::{CompileContext, CopyFrom, Prepared, Program};
use crate::copy_text::{TextDialect, TextOrigin, TextReader};
use crate::csv::CsvReader;
use crate::error::{Result, SqlError, SqlState};
use crate::execute::{Context, MemoryBudget, Returned};
use crate::expression::Slot;
use crate::session::Session;
use crate::table::{self, RowBatch};
use crate::types::{TextSettings, Value, parse_assigned};

/// What COPY may read and write on a connection. A connection without it refuses COPY.
///
/// ```
/// # use quickbeam_sql::{SqlDatabase, params};
/// # let database = SqlDatabase::open_in_memory(Default::default())?;
/// # let mut connection = database.connect();
/// # connection.execute("CREATE TABLE fruit (id INT PRIMARY KEY, name TEXT)", &[])?;
/// use quickbeam_sql::{CopyAccess, CopyPlace};
/// use std::io::{self, Read, Write};
///
/// /// COPY … FROM STDIN reads a text, COPY … TO is refused.
/// struct Input(&'static str);
///
/// impl CopyAccess for Input {
///     fn reader(&mut self, place: &CopyPlace, _: usize) -> io::Result<Box<dyn Read + '_>> {
///         match place {
///             CopyPlace::Standard => Ok(Box::new(self.0.as_bytes())),
///             CopyPlace::File(_) => Err(io::ErrorKind::PermissionDenied.into()),
///         }
///     }
///
///     fn writer(&mut self, _: &CopyPlace, _: usize) -> io::Result<Box<dyn Write + '_>> {
///         Err(io::ErrorKind::PermissionDenied.into())
///     }
/// }
///
/// connection.set_copy_access(Input("1,apple\n2,pear\n"));
/// assert_eq!(connection.execute("COPY fruit FROM STDIN WITH (FORMAT csv)", &[])?, 2);
/// # Ok::<(), quickbeam_sql::SqlError>(())
/// ```
pub trait CopyAccess: Send {
    /// Opens what COPY … FROM reads, records of `columns` columns. If reading fails with an error
    /// that wraps a [`SqlError`], that is the error of the statement.
    fn reader(&mut self, place: &CopyPlace, columns: usize) -> io::Result<Box<dyn Read + '_>>;

    /// Says that what is opened next is in the binary format, and returns how values are written in
    /// it. By default there is none, and the format is refused.
    fn binary(&mut self) -> Option<BinaryCodec> {
        None
    }

    /// Opens what COPY … TO writes, records of `columns` columns. Each record comes in a call of
    /// its own, so a file needs a buffer. It is flushed at the end.
    fn writer(&mut self, place: &CopyPlace, columns: usize) -> io::Result<Box<dyn Write + '_>>;
}

#[cold]
fn forbidden() -> SqlError {
    let message = "COPY is not allowed on this connection";
    SqlError::new(SqlState::InsufficientPrivilege, message)
        .with_hint("the program that made the connection says what it may read and write")
}

/// The error for a COPY in a function that another COPY calls.
#[cold]
fn nested() -> SqlError {
    SqlError::unsupported("COPY while another COPY of the connection runs")
}

#[cold]
fn not_opened(place: &CopyPlace, what: &str, error: io::Error) -> SqlError {
    let error = match error.downcast::<SqlError>() {
        Ok(error) => return error,
        Err(error) => error,
    };
    let state = match error.kind() {
        io::ErrorKind::NotFound => SqlState::UndefinedFile,
        io::ErrorKind::PermissionDenied => SqlState::InsufficientPrivilege,
        _ => SqlState::IoError,
    };
    let name = match place {
        CopyPlace::Standard => "standard input or output",
        CopyPlace::File(name) => name,
    };
    SqlError::new(state, format!("could not open file \"{name}\" for {what}: {error}"))
}

#[cold]
fn not_written(error: &io::Error) -> SqlError {
    SqlError::new(SqlState::IoError, format!("could not write to COPY file: {error}"))
}

impl Session {
    /// Inserts what the input has; how many rows.
    pub(crate) fn copy_from(
        &self,
        copy: &mut CopyFrom,
        slots: &mut Vec<Slot>,
        look: &CompileContext<'_>,
        alone: bool,
    ) -> Result<Done> {
        let mut access = self.copy_access.try_lock().ok_or_else(nested)?;
        let Some(access) = access.as_mut() else { return Err(forbidden()) };
        let codec = codec_of(&mut **access, &copy.form.format)?;
        let place = &copy.form.place;
        let input = access
            .reader(place, copy.columns.len())
            .map_err(|error| not_opened(place, "reading", error))?;
        let mut reader = RecordReader::new(input, &copy.form, codec);
        let (catalog, transaction) = (&self.database.catalog, look.transaction);
        let context = || self.look(transaction, look.snapshot);
        let cascades = Cascades { look: &context };
        let mut statement = table::TableWriter::new(catalog, transaction, look.snapshot, &cascades);
        if !alone {
            statement.set_savepoint()?;
        }
        let before = CHECKS_INVARIANTS.then(|| transaction.change_count());
        let open = self.open.borrow();
        let deferred = self.deferred_of(open.as_ref(), transaction);
        statement.set_deferred(deferred);
        statement.set_triggers(self);
        let copied = self.insert_records(copy, &mut reader, slots, look, &mut statement);
        match copied.and_then(|count| statement.finish().map(|()| count)) {
            Ok(count) => Ok(Done { count, returned: Returned::new() }),
            Err(error) => {
                statement.rollback()?;
                invariant!(COPY_1, alone || before == Some(transaction.change_count()), "{error}");
                Err(error)
            }
        }
    }

    fn insert_records(
        &self,
        copy: &mut CopyFrom,
        reader: &mut RecordReader<'_>,
        slots: &mut Vec<Slot>,
        look: &CompileContext<'_>,
        statement: &mut table::TableWriter<'_>,
    ) -> Result<u64> {
        copy.insert.begin_triggers(statement)?;
        let (mut count, mut skips) = (0, copy.form.header != CopyHeader::Absent);
        copy.form.check_columns(&copy.columns)?;
        let mut values = Vec::with_capacity(copy.columns.len());
        let mut returned = Returned::new();
        let (settings, queues_rows) = (self.clock.settings(), copy.insert.queues_rows());
        // Rows that wait to be inserted together, and their lines.
        let (mut batch, mut lines) = (RowBatch::default(), Vec::new());
        loop {
            let relation = &copy.relation;
            let at = |line: u64| format!("COPY {relation}, line {line}");
            let is_row = reader.read().map_err(|error| error.in_context(at(reader.line())))?;
            if !is_row || batch.is_full() {
                copy.insert.insert_batch(&batch, statement).map_err(|failed| {
                    let line = lines.get(failed.row).copied().unwrap_or_default();
                    failed.error.in_context(at(line))
                })?;
                batch.clear();
                lines.clear();
            }
            if !is_row {
                copy.insert.end_triggers(statement);
                return Ok(count);
            }
            if std::mem::take(&mut skips) {
                copy.check_header(reader).map_err(|error| error.in_context(at(reader.line())))?;
                continue;
            }
            copy.fields(reader, &settings, &mut values)?;
            let mut context = Context {
                transaction: look.transaction,
                catalog: &self.database.catalog,
                snapshot: look.snapshot,
                slots,
                parameters: &values,
                clock: &self.clock,
                session: self,
                given: &self.given,
                limits: &self.limits,
                budget: &MemoryBudget::new(0),
            };
            let inserted = context.check_cancelled().and_then(|()| {
                if let Some(filter) = &copy.filter
                    && filter.truth(&context.frame())? != Some(true)
                {
                    return Ok(0);
                }
                if !queues_rows {
                    return copy.insert.insert_rows(&mut context, statement, &mut returned);
                }
                lines.push(reader.line());
                copy.insert.queue_row(&mut context, &mut batch).map(|()| 1)
            });
            count += inserted.map_err(|error| error.in_context(at(reader.line())))?;
        }
    }

    /// Writes what a query delivers, or a change of rows returns; how many rows.
    pub(crate) fn copy_to(
        &self,
        query: &mut Prepared,
        form: &CopyForm,
        look: &CompileContext<'_>,
        alone: bool,
    ) -> Result<Done> {
        let mut access = self.copy_access.try_lock().ok_or_else(nested)?;
        let Some(access) = access.as_mut() else { return Err(forbidden()) };
        let codec = codec_of(&mut **access, &form.format)?;
        let place = &form.place;
        let changed = match &query.work {
            Program::Query(_) => None,
            _ => {
                let transaction_use =
                    if alone { TransactionUse::Own } else { TransactionUse::Shared };
                Some(self.run_prepared(query, look.transaction, &[], transaction_use)?.returned)
            }
        };
        let Prepared { work, slots, columns, executions, .. } = query;
        *executions += 1;
        form.check_columns(columns)?;
        let output = access.writer(place, columns.len());
        let mut output = output.map_err(|error| not_opened(place, "writing", error))?;
        let mut lines = RecordWriter::new(form, codec, columns, self.clock.settings());
        lines.write_names(&mut *output, columns)?;
        let budget = MemoryBudget::new(*executions);
        let mut context = Context {
            transaction: look.transaction,
            catalog: &self.database.catalog,
            snapshot: look.snapshot,
            slots,
            parameters: &[],
            clock: &self.clock,
            session: self,
            given: &self.given,
            limits: &self.limits,
            budget: &budget,
        };
        let mut rows = changed.unwrap_or_default().into_iter();
        let mut count = 0;
        if let Program::Query(program) = work {
            program.root.rewind();
        }
        loop {
            lines.begin();
            if let Program::Query(program) = work {
                if !program.root.next(&mut context)? {
                    break;
                }
                for (number, output) in program.outputs.iter().enumerate() {
                    lines.put(number, output.evaluate(&context.frame())?.as_ref());
                }
            } else {
                let Some(row) = rows.next() else { break };
                for (number, value) in row.iter().enumerate() {
                    lines.put(number, value.as_ref());
                }
            }
            lines.end(&mut *output)?;
            count += 1;
        }
        lines.finish(&mut *output)?;
        Ok(Done { count, returned: Returned::new() })
    }
}

/// Returns how values are written, if the format is the binary one.
fn codec_of(access: &mut dyn CopyAccess, format: &CopyFormat) -> Result<Option<BinaryCodec>> {
    if !matches!(format, CopyFormat::Binary) {
        return Ok(None);
    }
    let unsupported = || SqlError::unsupported("COPY in the binary format on this connection");
    access.binary().map(Some).ok_or_else(unsupported)
}

/// Reads records in one of the formats.
enum RecordReader<'i> {
    Csv(CsvReader<Box<dyn Read + 'i>>),
    Text(TextReader<Box<dyn Read + 'i>>),
    Binary(BinaryReader<Box<dyn Read + 'i>>),
}

impl<'i> RecordReader<'i> {
    fn new(
        input: Box<dyn Read + 'i>,
        form: &CopyForm,
        codec: Option<BinaryCodec>,
    ) -> RecordReader<'i> {
        let origin = match form.place {
            CopyPlace::Standard => TextOrigin::Stream,
            CopyPlace::File(_) => TextOrigin::File,
        };
        if let Some(codec) = codec {
            return RecordReader::Binary(BinaryReader::new(input, codec));
        }
        match &form.format {
            CopyFormat::Binary => {
                RecordReader::Text(TextReader::new(input, origin, TextDialect::default()))
            }
            CopyFormat::Csv(dialect) => RecordReader::Csv(CsvReader::new(input, dialect.clone())),
            CopyFormat::Text(dialect) => {
                RecordReader::Text(TextReader::new(input, origin, dialect.clone()))
            }
        }
    }

    /// Goes to the next record; false when there are no more.
    fn read(&mut self) -> Result<bool> {
        match self {
            RecordReader::Csv(reader) => reader.read(),
            RecordReader::Text(reader) => reader.read(),
            RecordReader::Binary(reader) => reader.read(),
        }
    }

    /// Returns the line in which the record begins, from 1.
    fn line(&self) -> u64 {
        match self {
            RecordReader::Csv(reader) => reader.line(),
            RecordReader::Text(reader) => reader.line(),
            RecordReader::Binary(reader) => reader.line(),
        }
    }

    fn field_count(&self) -> usize {
        match self {
            RecordReader::Csv(reader) => reader.field_count(),
            RecordReader::Text(reader) => reader.field_count(),
            RecordReader::Binary(_) => 0,
        }
    }

    /// Returns a field of the record; `None` is NULL.
    fn field(&self, number: usize) -> Result<Option<&str>> {
        match self {
            RecordReader::Csv(reader) => reader.field(number),
            RecordReader::Text(reader) => reader.field(number),
            RecordReader::Binary(_) => Ok(None),
        }
    }
}

impl CopyFrom {
    /// Compares the names in the first record with those of the columns, with HEADER MATCH.
    fn check_header(&self, reader: &RecordReader<'_>) -> Result<()> {
        if self.form.header != CopyHeader::Matched {
            return Ok(());
        }
        let wrong = |message: String| Err(SqlError::new(SqlState::BadCopyFileFormat, message));
        let (found, wanted) = (reader.field_count(), self.columns.len());
        if found != wanted {
            return wrong(format!(
                "wrong number of fields in header line: got {found}, expected {wanted}"
            ));
        }
        for (number, column) in self.columns.iter().enumerate() {
            let place = number + 1;
            let what = match reader.field(number)? {
                Some(name) if name == column.name => continue,
                Some(name) => format!("\"{name}\""),
                None => format!("null value (\"{}\")", self.form.null_text()),
            };
            return wrong(format!(
                "column name mismatch in header line field {place}: got {what}, expected \"{}\"",
                column.name
            ));
        }
        Ok(())
    }

    /// Returns a field, with the options that say where NULL is.
    fn forced<'r>(&'r self, field: Option<&'r str>, column: &str) -> Option<&'r str> {
        let null = self.form.null_text();
        match field {
            None if self.form.force_not_null.has(column) => Some(null),
            Some(text) if text == null && self.form.force_null.has(column) => None,
            field => field,
        }
    }

    /// Reads the values of the reader's current record.
    fn fields(
        &self,
        reader: &RecordReader<'_>,
        settings: &TextSettings,
        values: &mut Vec<Value>,
    ) -> Result<()> {
        values.clear();
        let line = || format!("COPY {}, line {}", self.relation, reader.line());
        if let RecordReader::Binary(reader) = reader {
            return reader
                .values(&self.columns, values, settings)
                .map_err(|error| error.in_context(line()));
        }
        if reader.field_count() > self.columns.len() {
            let message = "extra data after last expected column";
            return Err(SqlError::new(SqlState::BadCopyFileFormat, message).in_context(line()));
        }
        for (number, column) in self.columns.iter().enumerate() {
            if number >= reader.field_count() {
                let message = format!("missing data for column \"{}\"", column.name);
                return Err(SqlError::new(SqlState::BadCopyFileFormat, message).in_context(line()));
            }
            let at = |text: &str| {
                let shown: String = text.chars().take(100).collect();
                format!("{}, column {}: \"{shown}\"", line(), column.name)
            };
            let field = reader.field(number).map_err(|error| error.in_context(line()))?;
            values.push(match self.forced(field, &column.name) {
                None => Value::Null,
                Some(text) => parse_assigned(text, column.data_type, settings)
                    .map_err(|error| error.in_context(at(text)))?,
            });
        }
        Ok(())
    }
}
