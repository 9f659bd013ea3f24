//! The triggers that wait for the end of a statement, and what calls them.

use std::collections::VecDeque;
use std::sync::Arc;

use quickbeam::Transaction;

use super::leftovers::deferred::DeferredTrigger;
use crate::catalog::{FiredTriggers, ObjectId, Table, TransitionSide, Trigger, TriggerEvent};
use crate::error::{Result, SqlError};
use crate::schema::encoding::row_format::StoredRow;
use crate::types::Value;

/// The rows that a statement has changed of a table: those of transition tables.
#[derive(Clone)]
pub struct Transitions {
    table: Arc<Table>,
    old: Vec<Vec<u8>>,
    new: Vec<Vec<u8>>,
}

impl Transitions {
    /// Returns the rows before the changes, or after them.
    pub fn rows(&self, side: TransitionSide) -> Result<Vec<Vec<Value>>> {
        let rows = match side {
            TransitionSide::Old => &self.old,
            TransitionSide::New => &self.new,
        };
        rows.iter().map(|row| StoredRow::new(&self.table, row)?.to_values()).collect()
    }
}

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
    /// The rows that the statement has changed, if a trigger reads them.
    pub transitions: Option<&'t Arc<Transitions>>,
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
    /// Whether a trigger reads transition tables.
    pub keeps_rows: bool,
}

/// The triggers of a statement under way.
#[derive(Default)]
pub(super) struct TriggerQueue<'a> {
    pub caller: Option<&'a dyn TriggerCaller>,
    pub events: VecDeque<QueuedEvent>,
    /// The changes whose BEFORE … FOR EACH STATEMENT triggers have fired, and whose AFTER ones have
    /// not.
    pub begun: Vec<(ObjectId, TriggerEvent)>,
    /// Deferred constraint triggers of a statement that is a transaction of its own.
    pub last: VecDeque<DeferredTrigger>,
    /// The rows of transition tables.
    transitions: Vec<(TriggerEvent, Arc<Transitions>)>,
}

impl TriggerQueue<'_> {
    /// Queues a change of a row.
    pub fn push_row(&mut self, event: RowEvent) {
        if event.keeps_rows {
            let found = self.place(event.table.id, event.event).unwrap_or_else(|| {
                let (old, new, table) = (Vec::new(), Vec::new(), event.table.clone());
                self.transitions.push((event.event, Arc::new(Transitions { table, old, new })));
                self.transitions.len() - 1
            });
            let rows = Arc::make_mut(&mut self.transitions[found].1);
            rows.old.extend(event.old.clone());
            rows.new.extend(event.new.clone());
        }
        if !event.triggers.is_empty() {
            self.events.push_back(QueuedEvent::Row(event));
        }
    }

    fn place(&self, table: ObjectId, event: TriggerEvent) -> Option<usize> {
        self.transitions.iter().position(|(of, rows)| *of == event && rows.table.id == table)
    }

    /// Returns the rows of the transition tables of a change.
    pub fn transitions(&self, table: &Arc<Table>, event: TriggerEvent) -> Arc<Transitions> {
        match self.place(table.id, event) {
            Some(place) => self.transitions[place].1.clone(),
            None => {
                Arc::new(Transitions { table: table.clone(), old: Vec::new(), new: Vec::new() })
            }
        }
    }

    /// Forgets the rows of the transition tables of a change.
    pub fn end_transitions(&mut self, table: ObjectId, event: TriggerEvent) {
        if let Some(place) = self.place(table, event) {
            self.transitions.remove(place);
        }
    }

    /// Forgets everything that waits.
    pub fn clear(&mut self) {
        self.events.clear();
        self.last.clear();
        self.transitions.clear();
    }

    pub fn caller(&self) -> Result<&dyn TriggerCaller> {
        self.caller.ok_or_else(|| SqlError::unsupported("a table with triggers here"))
    }
}
