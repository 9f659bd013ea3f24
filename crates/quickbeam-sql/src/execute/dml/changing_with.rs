//! Statements whose WITH changes rows, and INSERTs whose ON CONFLICT reads the table.
//!
//! - WITH-1: all parts find their rows before the first change is made, so each reads what was
//!   there before the statement, and rows of other parts by RETURNING alone.

use quickbeam::invariant;

use super::insert::{InsertExec, Returned};
use super::instead_of::InsteadExec;
use super::merge::MergeExec;
use super::update::UpdateExec;
use crate::error::Result;
use crate::execute::row::stored::store;
use crate::execute::row::{Context, OperatorBuilder, QueryProgram};
use crate::plan::{Action, ChangingWithPlan};
use crate::table::TableWriter;
use crate::types::Value;

/// The operators of a statement whose WITH changes rows.
#[derive(Debug)]
pub struct ChangingWithExec {
    parts: Vec<WithPartExec>,
    main: PartExec,
    /// The parts in the order in which their changes are made; the main statement has the number
    /// after the last.
    order: Vec<usize>,
}

#[derive(Debug)]
struct WithPartExec {
    slot: usize,
    exec: PartExec,
}

/// The operators of one part.
#[derive(Debug)]
enum PartExec {
    Query(QueryProgram),
    Insert(Box<InsertExec>),
    Change(Box<UpdateExec>),
    Merge(Box<MergeExec>),
    Instead(Box<InsteadExec>),
    Nested(Box<ChangingWithExec>),
}

impl PartExec {
    fn new(action: &Action, builder: &OperatorBuilder<'_>) -> Result<PartExec> {
        Ok(match action {
            Action::Query(query) => PartExec::Query(builder.query(query)?),
            Action::Insert(insert) => PartExec::Insert(Box::new(InsertExec::new(insert, builder)?)),
            Action::Change(change) => PartExec::Change(Box::new(UpdateExec::new(change, builder)?)),
            Action::Merge(merge) => PartExec::Merge(Box::new(MergeExec::new(merge, builder)?)),
            Action::Instead(instead) => {
                PartExec::Instead(Box::new(InsteadExec::new(instead, builder)?))
            }
            Action::ChangingWith(with) => {
                PartExec::Nested(Box::new(ChangingWithExec::new(with, builder)?))
            }
        })
    }

    fn run(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<u64> {
        match self {
            PartExec::Query(query) => query.collect(context, returned),
            PartExec::Insert(insert) => insert.run(context, statement, returned),
            PartExec::Change(change) => change.run(context, statement, returned),
            PartExec::Merge(merge) => merge.run(context, statement),
            PartExec::Instead(instead) => instead.run(context, statement, returned),
            PartExec::Nested(with) => with.run(context, statement, returned),
        }
    }

    fn counts(&self, counts: &mut Vec<u64>) {
        match self {
            PartExec::Query(query) => query.root.counts(counts),
            PartExec::Insert(insert) => insert.counts(counts),
            PartExec::Change(change) => change.counts(counts),
            PartExec::Merge(merge) => merge.counts(counts),
            PartExec::Instead(instead) => instead.counts(counts),
            PartExec::Nested(with) => with.counts(counts),
        }
    }
}

impl ChangingWithExec {
    pub fn new(plan: &ChangingWithPlan, builder: &OperatorBuilder<'_>) -> Result<ChangingWithExec> {
        let part = |slot: usize, action: &Action| {
            Ok(WithPartExec { slot, exec: PartExec::new(action, builder)? })
        };
        let parts = plan.parts.iter().map(|planned| part(planned.slot, &planned.action));
        let parts = parts.collect::<Result<Vec<_>>>()?;
        // As in PostgreSQL, parts that nothing reads come last, the last of them first.
        let numbered = || plan.parts.iter().enumerate();
        let read = numbered().filter(|(_, part)| part.is_read).map(|(number, _)| number);
        let unread = numbered().rev().filter(|(_, part)| !part.is_read).map(|(number, _)| number);
        let order = read.chain([parts.len()]).chain(unread).collect();
        Ok(ChangingWithExec { parts, main: PartExec::new(&plan.main, builder)?, order })
    }

    /// Whether the statement has a WITH. Without one it is an INSERT whose ON CONFLICT reads the
    /// table.
    pub fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Collects the row counts of the parts, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        self.parts.iter().for_each(|part| part.exec.counts(counts));
        self.main.counts(counts);
    }

    /// Executes all parts. Returns the row count of the main statement.
    pub fn run(
        &mut self,
        context: &mut Context<'_>,
        statement: &mut TableWriter<'_>,
        returned: &mut Returned,
    ) -> Result<u64> {
        let before = statement.changes_made();
        let mut count = 0;
        // The first part that finds a row changes it.
        for &number in &self.order {
            statement.record_part(number);
            let Some(part) = self.parts.get_mut(number) else {
                count = self.main.run(context, statement, returned)?;
                continue;
            };
            let mut rows = Returned::new();
            part.exec.run(context, statement, &mut rows)?;
            let flat = rows.into_iter().flat_map(|mut row| {
                // A row without columns is counted too.
                if row.is_empty() {
                    row.push(Value::Null);
                }
                row
            });
            store(part.slot, flat.collect(), context)?;
        }
        let made = statement.changes_made() - before;
        invariant!(WITH_1, made == 0, "{made} changes before all rows are found");
        statement.make_recorded(&self.order)?;
        Ok(count)
    }
}
