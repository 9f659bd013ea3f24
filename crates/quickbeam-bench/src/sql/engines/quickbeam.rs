//! Quickbeam itself, in process: SQL on a Transactional Data Store at one of its durability levels.

use anyhow::{Result, anyhow};
use quickbeam::{Durability, Options};
use quickbeam_sql::{
    Connection, PreparedStatement, Row, SqlDatabase, SqlError, Value as SqlValue, ValueRef,
};

use crate::engine::{Mode, OpError, OpResult, Support};
use crate::sql::{
    Access, Dialect, Prepared, SqlConnection, SqlEngine, SqlInstance, SqlRow, SqlSetup, Value,
    VisitRow,
};

/// The adapter.
pub struct Quickbeam;

impl SqlEngine for Quickbeam {
    fn name(&self) -> &'static str {
        "quickbeam"
    }

    fn version(&self) -> Result<String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn supports(&self, mode: Mode, _threads: usize) -> Support {
        match mode {
            Mode::Ds => Support::No("SQL has transactions"),
            _ => Support::Yes,
        }
    }

    fn open(&self, setup: &SqlSetup) -> Result<Box<dyn SqlInstance>> {
        let durability = durability(setup.mode);
        let options =
            Options::new().cache_size(usize::try_from(setup.cache_bytes)?).durability(durability);
        let settings = format!(
            "serializable, {durability}, {}-byte pages, prepared statements",
            options.page_size
        );
        let database = match setup.mode {
            Mode::InMem => SqlDatabase::open_in_memory(options)?,
            _ => SqlDatabase::open(&setup.directory, options)?,
        };
        Ok(Box::new(OpenQuickbeam { database, settings }))
    }
}

/// The durability level of a class.
pub(super) fn durability(mode: Mode) -> Durability {
    match mode {
        Mode::Wns => Durability::WriteNoSync,
        Mode::Ns => Durability::NoSync,
        Mode::InMem => Durability::InMemory,
        Mode::Ds | Mode::Sync | Mode::Ramdisk => Durability::Sync,
    }
}

struct OpenQuickbeam {
    database: SqlDatabase,
    settings: String,
}

impl SqlInstance for OpenQuickbeam {
    fn settings(&self) -> String {
        self.settings.clone()
    }

    fn dialect(&self) -> Dialect {
        Dialect { hash_key: Some(" USING HASH"), ..Dialect::default() }
    }

    fn connect(&self) -> Result<Box<dyn SqlConnection + '_>> {
        Ok(Box::new(QuickbeamSqlSession {
            connection: self.database.connect(),
            statements: Vec::new(),
            values: Vec::new(),
        }))
    }

    fn settle(&self) -> Result<()> {
        Ok(self.database.environment().checkpoint()?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.database.environment().clone().close()?)
    }
}

/// What the caller can do about an error of the engine.
fn classify(error: SqlError) -> OpError {
    if error.is_retryable() { OpError::Retry } else { OpError::Failed(error.into()) }
}

struct QuickbeamSqlSession {
    connection: Connection,
    statements: Vec<PreparedStatement>,
    /// The parameters of the statement being executed.
    values: Vec<SqlValue>,
}

/// Makes `values` the engine's values of these parameters.
fn convert(parameters: &[Value<'_>], values: &mut Vec<SqlValue>) {
    values.clear();
    values.extend(parameters.iter().map(|value| match *value {
        Value::Integer(number) => SqlValue::Integer(number),
        Value::Bigint(number) => SqlValue::BigInt(number),
        Value::Text(text) => SqlValue::from(text),
    }));
}

impl SqlConnection for QuickbeamSqlSession {
    fn run(&mut self, sql: &str) -> Result<()> {
        self.connection.execute(sql, &[]).map_err(|error| anyhow!("{sql}: {error}"))?;
        Ok(())
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        let statement = self.connection.prepare(sql).map_err(|error| anyhow!("{sql}: {error}"))?;
        self.statements.push(statement.into_prepared());
        Ok(Prepared(self.statements.len() - 1))
    }

    fn execute(&mut self, statement: Prepared, parameters: &[Value<'_>]) -> OpResult<u64> {
        let statement = &mut self.statements[statement.0];
        convert(parameters, &mut self.values);
        statement.execute(&self.connection, &self.values).map_err(classify)
    }

    fn query(
        &mut self,
        statement: Prepared,
        parameters: &[Value<'_>],
        visit: &mut VisitRow<'_>,
    ) -> OpResult {
        let statement = &mut self.statements[statement.0];
        convert(parameters, &mut self.values);
        let mut visit_all = || {
            let mut rows = statement.query(&self.connection, &self.values)?;
            while let Some(row) = rows.next()? {
                visit(&Standing(row));
            }
            Ok(())
        };
        visit_all().map_err(classify)
    }

    fn begin(&mut self, _access: Access) -> OpResult {
        self.connection.begin().map_err(classify)
    }

    fn commit(&mut self) -> OpResult {
        self.connection.commit().map_err(classify)
    }

    fn rollback(&mut self) {
        // The error before it is the one to report; this one only says that nothing is open.
        self.connection.rollback().ok();
    }
}

/// The current row of a query.
struct Standing<'r>(Row<'r>);

impl SqlRow for Standing<'_> {
    fn integer(&self, column: usize) -> Option<i64> {
        match self.0.value(column).ok()? {
            ValueRef::SmallInt(number) => Some(number.into()),
            ValueRef::Integer(number) => Some(number.into()),
            ValueRef::BigInt(number) => Some(number),
            _ => None,
        }
    }

    fn text(&self, column: usize) -> Option<&[u8]> {
        match self.0.value(column).ok()? {
            ValueRef::Text(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    fn shown(&self, column: usize) -> Option<String> {
        match self.0.value(column).ok()? {
            ValueRef::Null => None,
            value => Some(value.to_string()),
        }
    }
}
