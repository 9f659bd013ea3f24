//! Changes of views by INSTEAD OF triggers.
//!
//! - INSTEAD-1: all rows are found before the first trigger is called, so that no trigger changes
//!   what the statement reads.

use std::sync::Arc;

use quickbeam::invariant;

use super::insert::{Returned, give_back};
use crate::bind::Returning;
use crate::catalog::{FiredTriggers, Table, TriggerEvent};
use crate::error::Result;
use crate::execute::row::{Context, OperatorBuilder, QueryProgram};
use crate::expression::Current;
use crate::plan::InsteadPlan;
use crate::table::TableWriter;
use crate::types::Value;

/// The operator of a change of a view with INSTEAD OF triggers.
#[derive(Debug)]
pub struct InsteadExec {
    table: Arc<Table>,
    event: TriggerEvent,
    query: QueryProgram,
    triggers: Option<Arc<FiredTriggers>>,
    /// The slot of the row that RETURNING reads.
    slot: usize,
    returning: Option<Returning>,
}

impl InsteadExec {
    pub fn new(plan: &InsteadPlan, builder: &OperatorBuilder<'_>) -> Result<InsteadExec> {
        Ok(InsteadExec {
            table: plan.table.clone(),
            event: plan.event,
            query: builder.query(&plan.query)?,
            triggers: FiredTriggers::of(&plan.table, plan.event, None),
            slot: plan.slot,
            returning: plan.returning.clone(),
        })
    }

    /// Collects the row counts of the query, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.query.root.counts(counts);
    }

    /// Calls the triggers with all rows. Returns the number of rows that they changed.
    pub fn run(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<u64> {
        let triggers = self.triggers.clone();
        statement.begin_triggers(triggers.as_ref(), &self.table)?;
        let mut rows: Vec<Vec<Value>> = Vec::new();
        let found = self.query.collect(context, &mut rows)?;
        invariant!(INSTEAD_1, found == rows.len() as u64, "{found} rows of {}", rows.len());
        let mut count = 0;
        for mut row in rows {
            context.check_cancelled()?;
            let (old, new) = match self.event {
                TriggerEvent::Insert => (None, Some(row)),
                TriggerEvent::Update => {
                    let new = row.split_off(self.table.columns.len());
                    (Some(row), Some(new))
                }
                TriggerEvent::Delete | TriggerEvent::Truncate => (Some(row), None),
            };
            let Some(row) = statement.instead_of_row(triggers.as_ref(), &self.table, old, new)?
            else {
                continue;
            };
            count += 1;
            if let Some(returning) = &self.returning {
                let slot = context.slot(self.slot)?;
                (slot.values, slot.current) = (row, Current::Values);
                give_back(returning, context, returned)?;
            }
        }
        statement.end_triggers(triggers.as_ref(), &self.table);
        Ok(count)
    }
}
