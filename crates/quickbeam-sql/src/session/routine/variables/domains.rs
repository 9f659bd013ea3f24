//! Values of domains in variables and results.

use std::collections::HashMap;

use parking_lot::Mutex;
use quickbeam::Transaction;

use crate::catalog::{CatalogSnapshot, DomainUse};
use crate::error::{Result, SqlError};
use crate::parse::plpgsql::{BlockVariable, VariableKind};
use crate::session::Session;
use crate::session::executor::ResultRows;
use crate::session::prepared_statement::PreparedStatement;
use crate::types::{DataType, Value};

/// A cast to a domain, or to arrays of one, as a statement: a CHECK may call functions.
pub(in crate::session::routine) struct DomainCast {
    data_type: DataType,
    text: String,
    /// The compiled statement, unless it is in use.
    statement: Mutex<Option<Box<PreparedStatement>>>,
}

impl DomainCast {
    /// The cast of values of that type.
    pub fn new(snapshot: &CatalogSnapshot, used: DomainUse, data_type: DataType) -> DomainCast {
        let text = format!("SELECT CAST($1 AS {})", snapshot.domain_type(used));
        DomainCast { data_type: data_type.unconstrained(), text, statement: Mutex::new(None) }
    }

    /// Returns a value that the domain accepts.
    pub fn accept(
        &self,
        session: &Session,
        transaction: &Transaction,
        value: Value,
    ) -> Result<Value> {
        let kept = self.statement.lock().take();
        let mut statement = kept.unwrap_or_else(|| {
            let types = [Some(self.data_type)].into();
            Box::new(PreparedStatement::new(&self.text).with_types(types))
        });
        let given = [value];
        let done = session.run(&mut statement, transaction, &given, ResultRows::Kept);
        *self.statement.lock() = Some(statement);
        let row = done.map_err(SqlError::without_place)?.returned.into_iter().next();
        Ok(row.and_then(|row| row.into_iter().next()).unwrap_or(Value::Null))
    }
}

/// Returns the casts of the variables of domains, by their numbers.
pub(in crate::session::routine) fn domains_of(
    variables: &[BlockVariable],
    snapshot: &CatalogSnapshot,
) -> HashMap<usize, DomainCast> {
    let variables = variables.iter().enumerate().filter_map(|(number, it)| match it.kind {
        VariableKind::Domain(data_type, used) => {
            Some((number, DomainCast::new(snapshot, used, data_type)))
        }
        _ => None,
    });
    variables.collect()
}
