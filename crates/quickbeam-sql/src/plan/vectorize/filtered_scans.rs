//! Scans by rows whose filter is evaluated by columns.
//!
//! Above: the choice of execution modes. Such a scan reads the columns of its filter and of the
//! primary key, often from the column cache, and looks the few rows up that satisfy the filter.

use super::{Chooser, ExecutionMode, vectorize};
use crate::expression::{ColumnRef, Expr};
use crate::plan::cost::{FILTERED_ROWS, MOST_FILTERED_PART};
use crate::plan::{PlanNode, TableAccess};

impl Chooser<'_> {
    /// Vectorizes the filters of scans whose rows a row operator takes, where that pays.
    pub(super) fn filter_scans(&mut self, node: &mut PlanNode) {
        match node {
            PlanNode::Table(_) => self.filter_scan(node),
            // A locked row is read again by the key of its scan.
            PlanNode::SingleRow
            | PlanNode::Values { .. }
            | PlanNode::StoredScan(_)
            | PlanNode::FunctionScan(_)
            | PlanNode::LockRows { .. } => {}
            PlanNode::Vectorized(batch) => match &mut batch.step {
                PlanNode::Group { input, .. }
                | PlanNode::Sort { input, .. }
                | PlanNode::Filter { input, .. } => self.below_vectorized(input),
                PlanNode::HashJoin(join) => {
                    self.below_vectorized(&mut join.outer);
                    self.below_vectorized(&mut join.inner);
                }
                _ => {}
            },
            PlanNode::Limit { input, limit, .. } => {
                if !stops_early(input, limit.as_ref()) {
                    self.filter_scans(input);
                }
            }
            PlanNode::Filter { input, .. }
            | PlanNode::Distinct { input, .. }
            | PlanNode::Group { input, .. }
            | PlanNode::Sort { input, .. } => self.filter_scans(input),
            PlanNode::WindowAgg(window) => self.filter_scans(&mut window.input),
            PlanNode::Subquery { input, query, .. } => {
                self.filter_scans(input);
                self.filter_scans(&mut query.root);
            }
            PlanNode::NestedLoop { outer, inner, .. } => {
                self.filter_scans(outer);
                self.filter_scans(inner);
            }
            PlanNode::HashJoin(join) => {
                self.filter_scans(&mut join.outer);
                self.filter_scans(&mut join.inner);
            }
            PlanNode::SubqueryScan { query, .. } => self.filter_scans(&mut query.root),
            PlanNode::SetOperation { sides, .. } => {
                sides.iter_mut().for_each(|side| self.filter_scans(&mut side.root));
            }
            PlanNode::With { tables, input } => {
                tables.iter_mut().for_each(|(_, query)| self.filter_scans(&mut query.root));
                self.filter_scans(input);
            }
            PlanNode::RecursiveUnion(union) => {
                self.filter_scans(&mut union.base.root);
                self.filter_scans(&mut union.step.root);
            }
        }
    }

    /// Goes on below a vectorized step, which reads the columns of a scan itself.
    fn below_vectorized(&mut self, input: &mut PlanNode) {
        if !matches!(input, PlanNode::Table(_)) {
            self.filter_scans(input);
        }
    }

    fn filter_scan(&mut self, node: &mut PlanNode) {
        let PlanNode::Table(access) = &*node else { return };
        let (Some(filter), Some(key)) = (&access.filter, &access.table.primary_key) else { return };
        if !self.is_filter_worth_columns(access) {
            return;
        }
        let slot = access.slot;
        let mut read: Vec<ColumnRef> = Vec::new();
        filter.each_column(&mut |column| read.push(column));
        if read.iter().any(|column| column.slot != slot) {
            return;
        }
        read.extend(key.columns.iter().map(|column| ColumnRef { slot, column: *column }));
        let Some(columns) = self.typed(read) else { return };
        if !(self.can_batch)(node, &columns, self.parameters) {
            return;
        }
        self.by_columns += access.table_rows;
        if let PlanNode::Table(access) = node {
            // The columns of the key may come after the prefix.
            access.prefix = None;
        }
        vectorize(node, columns, None, None);
    }

    fn is_filter_worth_columns(&self, access: &TableAccess) -> bool {
        match self.mode {
            ExecutionMode::Row => false,
            ExecutionMode::Vectorized => true,
            ExecutionMode::Auto => {
                access.table_rows >= FILTERED_ROWS
                    && access.rows <= access.table_rows * MOST_FILTERED_PART
            }
        }
    }
}

/// Whether a scan right below a LIMIT is expected to stop before its end.
fn stops_early(input: &PlanNode, limit: Option<&Expr>) -> bool {
    let PlanNode::Table(access) = input else { return false };
    let Some(limit) = limit else { return false };
    let most = limit.as_constant().and_then(|limit| limit.as_ref().as_i64());
    most.is_none_or(|most| access.rows > most as f64)
}
