//! The triggers that wait for the end of a statement, and what calls them.

use std::collections::VecDeque;
use std::sync::Arc;

use quickbeam::Transaction;

use crate::catalog::{FiredTriggers, ObjectId, Table, Trigger, TriggerEvent};
use crate::error::{Result, SqlError};
use crate::types::Value;

/// A trigger that fires.
pub struct TriggerCall<'t> {
    /// The transaction of the statement.
    pub transaction: &'t Transaction,
    /// The trigger.
    pub trigger: &'t Arc<Trigger>,
    /// Its table.
    pub table: &'t Arc<Table>,
    /// The event.
    pub event: TriggerEvent,
    /// The row before the change.
    pub old: Option<&'t [Value]>,
    /// The row after the change.
    pub new: Option<&'t [Value]>,
}

/// Runs the functions of triggers.
pub trait TriggerCaller {
    /// Whether the condition of a trigger holds; true if it has none.
    fn condition_holds(&self, call: &TriggerCall<'_>) -> Result<bool>;

    /// Calls the function of a trigger. Returns the row that it returns, `None` for NULL.
    fn call_trigger(&self, call: &TriggerCall<'_>) -> Result<Option<Vec<Value>>>;
}

/// What BEFORE triggers made of a change of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowDecision {
    /// It is made as the statement has it.
    Same,
    /// It is made with this row.
    Changed(Vec<u8>),
    /// It is not made.
    Skipped,
}

/// What waits for the end of the statement.
pub(super) enum QueuedEvent {
    /// The next rows that follow a foreign key.
    Cascade,
    /// AFTER triggers of a row.
    Row(RowEvent),
    /// AFTER triggers of a statement.
    Statement(Arc<FiredTriggers>, Arc<Table>),
}

/// A change of a row for which AFTER triggers fire.
#[derive(Clone)]
pub(super) struct RowEvent {
    pub triggers: Arc<[Arc<Trigger>]>,
    pub table: Arc<Table>,
    pub event: TriggerEvent,
    pub old: Option<Vec<u8>>,
    pub new: Option<Vec<u8>>,
}

/// The triggers of a statement under way.
#[derive(Default)]
pub(super) struct TriggerQueue<'a> {
    pub caller: Option<&'a dyn TriggerCaller>,
    pub events: VecDeque<QueuedEvent>,
    /// The changes whose BEFORE … FOR EACH STATEMENT triggers have fired, and whose AFTER ones have
    /// not.
    pub begun: Vec<(ObjectId, TriggerEvent)>,
}

impl TriggerQueue<'_> {
    pub fn caller(&self) -> Result<&dyn TriggerCaller> {
        self.caller.ok_or_else(|| SqlError::unsupported("a table with triggers here"))
    }
}
