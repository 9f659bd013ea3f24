//! The triggers that wait for the end of a statement, and what calls them.

use std::collections::VecDeque;
use std::sync::Arc;

use quickbeam::Transaction;

use super::transaction_state::deferred_checks::DeferredTrigger;
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
    /// Positions of the columns that UPDATE sets, for a BEFORE trigger of rows.
    pub set: &'t [usize],
    /// The rows that the statement has changed, if a trigger reads them.
    pub transitions: Option<&'t Arc<Transitions>>,
}

/// Runs the functions of triggers.
pub trait TriggerCaller {
    /// Whether the changes are those of another server, as `session_replication_role` says.
    fn is_replica(&self) -> bool;

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
    /// Rows that follow a foreign key: the number of the task among those of the statement.
    Cascade(usize),
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
    /// Most statements fire no trigger and pay for no more than this.
    waiting: Option<Box<WaitingTriggers>>,
}

/// The triggers that wait, and the rows that they read.
#[derive(Default)]
struct WaitingTriggers {
    events: VecDeque<QueuedEvent>,
    /// The changes whose BEFORE … FOR EACH STATEMENT triggers have fired, and whose AFTER ones have
    /// not.
    begun: Vec<(ObjectId, TriggerEvent)>,
    /// Deferred constraint triggers of a statement that is a transaction of its own.
    last: VecDeque<DeferredTrigger>,
    /// The rows of transition tables.
    transitions: Vec<(TriggerEvent, Arc<Transitions>)>,
}

impl TriggerQueue<'_> {
    fn waiting(&mut self) -> &mut WaitingTriggers {
        self.waiting.get_or_insert_default()
    }

    /// Queues an event.
    pub fn push(&mut self, event: QueuedEvent) {
        self.waiting().events.push_back(event);
    }

    /// Queues the AFTER … FOR EACH STATEMENT triggers of a change, once, as the last event.
    pub fn push_statement(&mut self, triggers: Arc<FiredTriggers>, table: Arc<Table>) {
        let is_same = |queued: &QueuedEvent| {
            matches!(queued, QueuedEvent::Statement(known, of)
                if of.id == table.id && known.event == triggers.event)
        };
        let events = &mut self.waiting().events;
        events.retain(|queued| !is_same(queued));
        events.push_back(QueuedEvent::Statement(triggers, table));
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<QueuedEvent> {
        self.waiting.as_mut()?.events.pop_front()
    }

    /// Returns whether no event waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.as_ref().is_none_or(|waiting| waiting.events.is_empty())
    }

    /// Begins a change of a table. Returns false if it has begun before.
    pub fn begin(&mut self, table: ObjectId, event: TriggerEvent) -> bool {
        let begun = &mut self.waiting().begun;
        let is_new = !begun.contains(&(table, event));
        if is_new {
            begun.push((table, event));
        }
        is_new
    }

    /// Ends a change of a table.
    pub fn end(&mut self, table: ObjectId, event: TriggerEvent) {
        self.waiting().begun.retain(|known| *known != (table, event));
    }

    /// Keeps a trigger for the end of the transaction, which is that of the statement.
    pub fn push_last(&mut self, fired: DeferredTrigger) {
        self.waiting().last.push_back(fired);
    }

    /// Takes the next trigger that fires at the end of the transaction.
    pub fn pop_last(&mut self) -> Option<DeferredTrigger> {
        self.waiting.as_mut()?.last.pop_front()
    }

    /// Queues a change of a row.
    pub fn push_row(&mut self, event: RowEvent) {
        if event.keeps_rows {
            let found = self.place(event.table.id, event.event);
            let transitions = &mut self.waiting().transitions;
            let place = found.unwrap_or_else(|| {
                let (old, new, table) = (Vec::new(), Vec::new(), event.table.clone());
                transitions.push((event.event, Arc::new(Transitions { table, old, new })));
                transitions.len() - 1
            });
            let rows = Arc::make_mut(&mut transitions[place].1);
            rows.old.extend(event.old.clone());
            rows.new.extend(event.new.clone());
        }
        if !event.triggers.is_empty() {
            self.push(QueuedEvent::Row(event));
        }
    }

    fn kept(&self) -> &[(TriggerEvent, Arc<Transitions>)] {
        self.waiting.as_ref().map_or(&[], |waiting| &waiting.transitions)
    }

    fn place(&self, table: ObjectId, event: TriggerEvent) -> Option<usize> {
        self.kept().iter().position(|(of, rows)| *of == event && rows.table.id == table)
    }

    /// Returns the rows of the transition tables of a change.
    pub fn transitions(&self, table: &Arc<Table>, event: TriggerEvent) -> Arc<Transitions> {
        match self.place(table.id, event) {
            Some(place) => self.kept()[place].1.clone(),
            None => {
                Arc::new(Transitions { table: table.clone(), old: Vec::new(), new: Vec::new() })
            }
        }
    }

    /// Forgets the rows of the transition tables of a change.
    pub fn end_transitions(&mut self, table: ObjectId, event: TriggerEvent) {
        if let Some(place) = self.place(table, event) {
            self.waiting().transitions.remove(place);
        }
    }

    /// Forgets everything that waits.
    pub fn clear(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.events.clear();
            waiting.last.clear();
            waiting.transitions.clear();
        }
    }

    pub fn caller(&self) -> Result<&dyn TriggerCaller> {
        self.caller.ok_or_else(|| SqlError::unsupported("a table with triggers here"))
    }
}
