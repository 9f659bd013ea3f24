//! The transaction of a connection: BEGIN to COMMIT or ROLLBACK, its settings and savepoints, and the statements that steer it.

use quickbeam::{Durability, Savepoint, Transaction, TransactionOptions};
use smol_str::SmolStr;

use super::connection::Session;
use super::session_command::{Control, Settings};
use crate::error::{Result, SqlError, SqlState};

/// A transaction under way.
pub(super) struct Open {
    settings: Settings,
    /// Begun with the first statement, so that SET TRANSACTION can still say how.
    pub transaction: Option<Transaction>,
    savepoints: Vec<(SmolStr, Savepoint)>,
    /// Settings of the session to come back at the end.
    before: Settings,
    memory_before: usize,
}

impl Session {
    pub fn options(&self, settings: Settings) -> TransactionOptions {
        let settings = settings.or(self.settings);
        TransactionOptions::new()
            .isolation(settings.isolation)
            .durability(settings.durability)
            .lock_timeout(settings.lock_timeout)
            .read_only(settings.read_only.unwrap_or(false))
    }

    /// Begins the transaction under way, if that was not done yet.
    #[inline]
    pub fn make_begun(&mut self) -> Result<()> {
        if self.open.as_ref().is_some_and(|open| open.transaction.is_none()) {
            self.begin_now()?;
        }
        Ok(())
    }

    #[inline(never)]
    fn begin_now(&mut self) -> Result<()> {
        let Some(settings) = self.open.as_ref().map(|open| open.settings) else { return Ok(()) };
        let transaction = self.database.environment.begin_with(self.options(settings))?;
        if let Some(open) = &mut self.open {
            open.transaction = Some(transaction);
        }
        Ok(())
    }

    /// The transaction under way, which was begun.
    #[inline]
    pub fn begun(&self) -> Result<&Transaction> {
        let transaction = self.open.as_ref().and_then(|open| open.transaction.as_ref());
        transaction.ok_or_else(|| SqlError::internal("a transaction that was not begun"))
    }

    pub fn begin(&mut self, settings: Settings) -> Result<()> {
        if self.open.is_some() {
            let message = "there is already a transaction in progress";
            return Err(SqlError::new(SqlState::ActiveSqlTransaction, message));
        }
        self.clock.reset();
        self.open = Some(Open {
            settings,
            transaction: None,
            savepoints: Vec::new(),
            before: self.settings,
            memory_before: self.limits.memory,
        });
        Ok(())
    }

    fn take_open(&mut self) -> Result<Open> {
        let open = self.open.take().ok_or_else(|| {
            let message = "there is no transaction in progress";
            SqlError::new(SqlState::NoActiveSqlTransaction, message)
        })?;
        self.settings = open.before;
        self.limits.memory = open.memory_before;
        Ok(open)
    }

    pub fn commit(&mut self) -> Result<()> {
        match self.take_open()?.transaction {
            Some(transaction) => Ok(transaction.commit()?),
            None => Ok(()),
        }
    }

    pub fn rollback(&mut self) -> Result<()> {
        match self.take_open()?.transaction {
            Some(transaction) => Ok(transaction.abort()?),
            None => Ok(()),
        }
    }

    pub fn control(&mut self, control: &Control) -> Result<()> {
        match control {
            Control::Begin(settings) => self.begin(*settings),
            Control::Commit => self.commit(),
            Control::Rollback => self.rollback(),
            Control::AsItIs => Ok(()),
            Control::Set(settings, local) => {
                self.check_durability(settings)?;
                if *local && self.open.is_none() {
                    let message = "SET LOCAL can only be used in transaction blocks";
                    return Err(SqlError::new(SqlState::NoActiveSqlTransaction, message));
                }
                if let Some(memory) = settings.memory {
                    self.limits.memory = memory;
                }
                if *local {
                    return self.set_transaction(*settings);
                }
                self.settings = settings.or(self.settings);
                if let Some(open) = &mut self.open {
                    open.before = settings.or(open.before);
                    open.memory_before = self.limits.memory;
                }
                Ok(())
            }
            Control::Transaction(settings) => self.set_transaction(*settings),
            Control::Savepoint(name) => self.with_savepoints(|transaction, savepoints| {
                savepoints.push((name.clone(), transaction.savepoint()?));
                Ok(())
            }),
            Control::RollbackTo(name) => self.with_savepoints(|transaction, savepoints| {
                let at = find(savepoints, name)?;
                savepoints.truncate(at + 1);
                let savepoint = savepoints.get(at).map(|(_, savepoint)| *savepoint);
                Ok(savepoint.map_or(Ok(()), |savepoint| transaction.rollback_to(savepoint))?)
            }),
            Control::Release(name) => self.with_savepoints(|transaction, savepoints| {
                let at = find(savepoints, name)?;
                if let Some((_, savepoint)) = savepoints.get(at) {
                    transaction.release(*savepoint);
                }
                savepoints.truncate(at);
                Ok(())
            }),
        }
    }

    /// Without a log every transaction is in memory, with one none is.
    fn check_durability(&self, settings: &Settings) -> Result<()> {
        let environment = self.database.environment.durability();
        let is_without = |durability| durability == Durability::InMemory;
        match settings.durability {
            Some(asked) if is_without(asked) != is_without(environment) => {
                let message = format!(
                    "invalid value for parameter \"durability\": \"{asked}\" in an environment of durability {environment}"
                );
                Err(SqlError::new(SqlState::InvalidParameterValue, message).with_hint(
                    "Without a log everything stays in memory, with one everything is logged.",
                ))
            }
            _ => Ok(()),
        }
    }

    fn set_transaction(&mut self, settings: Settings) -> Result<()> {
        let asks = settings.isolation.is_some()
            || settings.durability.is_some()
            || settings.lock_timeout.is_some()
            || settings.read_only.is_some();
        match &mut self.open {
            None => {
                let message = "SET TRANSACTION can only be used in transaction blocks";
                Err(SqlError::new(SqlState::NoActiveSqlTransaction, message))
            }
            Some(open) if open.transaction.is_some() && asks => {
                let message =
                    "the settings of a transaction must be set before any of its statements";
                Err(SqlError::new(SqlState::ActiveSqlTransaction, message))
            }
            Some(open) => {
                open.settings = settings.or(open.settings);
                Ok(())
            }
        }
    }

    fn with_savepoints(
        &mut self,
        work: impl FnOnce(&Transaction, &mut Vec<(SmolStr, Savepoint)>) -> Result<()>,
    ) -> Result<()> {
        self.make_begun()?;
        match &mut self.open {
            Some(Open { transaction: Some(transaction), savepoints, .. }) => {
                work(transaction, savepoints)
            }
            _ => {
                let message = "SAVEPOINT can only be used in transaction blocks";
                Err(SqlError::new(SqlState::NoActiveSqlTransaction, message))
            }
        }
    }
}

fn find(savepoints: &[(SmolStr, Savepoint)], name: &str) -> Result<usize> {
    savepoints.iter().rposition(|(known, _)| known == name).ok_or_else(|| {
        SqlError::new(
            SqlState::InvalidSavepointSpecification,
            format!("savepoint \"{name}\" does not exist"),
        )
    })
}
