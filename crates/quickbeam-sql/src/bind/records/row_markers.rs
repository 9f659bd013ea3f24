//! Markers of rows: what tells a row of NULLs from the NULLs of an outer join.
//!
//! A row that has a value in each case needs no marker. A table without such a column has the ids
//! of its rows; a query in FROM returns `true` beside its columns. Markers are added when the row
//! is read as a whole, so that other queries do not have them.

use std::sync::Arc;

use crate::bind::{
    Binder, Body, Derivation, Derived, From, JoinKind, OutputColumn, Query, ScopeRelation, Select,
    Source,
};
use crate::expression::{ColumnRef, Expr, Slots};
use crate::types::{DataType, Value};

/// An output that marks the rows of a query in FROM.
pub(in crate::bind) struct RowMarker {
    slot: usize,
    output: Expr,
    column: usize,
}

impl Binder<'_> {
    /// Returns of each column of a query whether it is known to be never NULL.
    pub(in crate::bind) fn never_null(&self, query: &Query) -> impl Iterator<Item = bool> {
        let select = match &query.body {
            Body::Select(select) if select.group.is_none() => Some(select),
            _ => None,
        };
        let from = select.and_then(|select| select.from.as_ref());
        let kept = from.map(kept_slots).unwrap_or_default();
        let has_value = move |output: &Expr| match output {
            Expr::Constant(value) => !matches!(value, Value::Null),
            Expr::Column(at) => match self.slots.get(at.slot).map(|shape| &shape.source) {
                Some(Source::Table(table)) if kept.contains(at.slot) => {
                    table.columns.get(at.column).is_some_and(|column| column.not_null)
                }
                _ => false,
            },
            _ => false,
        };
        let outputs = select.map_or(&[][..], |select| &select.outputs);
        let unknown = query.columns.len() - outputs.len().min(query.columns.len());
        outputs.iter().map(has_value).chain(std::iter::repeat_n(false, unknown))
    }

    /// Returns what is NULL where an outer join has no row of an item; `None` if a field tells.
    pub(in crate::bind) fn row_marker(&mut self, relation: &ScopeRelation) -> Option<Expr> {
        let origin = relation.origin.as_ref().filter(|origin| !origin.has_value)?;
        let mut marker = match &self.slots.get(origin.slot)?.source {
            Source::Table(table) => {
                let column = table.columns.len();
                self.reads_row_ids = true;
                ColumnRef { slot: origin.slot, column }
            }
            Source::Query(_) => {
                self.add_marker(origin.slot, Expr::Constant(Value::Boolean(true)))?
            }
            Source::Computed => return None,
        };
        for slot in &origin.joined {
            marker = self.add_marker(*slot, Expr::Column(marker))?;
        }
        Some(Expr::Column(marker))
    }

    /// Adds an output to the query in a slot.
    fn add_marker(&mut self, slot: usize, output: Expr) -> Option<ColumnRef> {
        let known = self.row_markers.iter().find(|it| it.slot == slot && it.output == output);
        if let Some(known) = known {
            return Some(ColumnRef { slot, column: known.column });
        }
        let Source::Query(columns) = &mut self.slots.get_mut(slot)?.source else { return None };
        let column = columns.len();
        *columns = columns.iter().cloned().chain([column_of_marker()]).collect();
        self.row_markers.push(RowMarker { slot, output, column });
        Some(ColumnRef { slot, column })
    }

    /// Adds the markers to the queries in FROM, once everything that reads their rows is bound.
    pub(in crate::bind) fn mark_rows(&mut self, from: &mut From) {
        if self.row_markers.is_empty() {
            return;
        }
        match from {
            From::Table(_) => {}
            From::Query(derived) => self.mark_query(derived),
            From::Join { left, right, .. } => {
                self.mark_rows(left);
                self.mark_rows(right);
            }
        }
    }

    fn mark_query(&mut self, derived: &mut Derived) {
        let (own, others): (Vec<RowMarker>, Vec<RowMarker>) =
            self.row_markers.drain(..).partition(|marker| marker.slot == derived.slot);
        self.row_markers = others;
        let query = Arc::make_mut(&mut derived.query);
        if own.is_empty() && self.row_markers.is_empty() {
            return;
        }
        if !own.is_empty() && !matches!(query.body, Body::Select(_)) {
            self.select_from(query);
        }
        let Body::Select(select) = &mut query.body else { return };
        for marker in own {
            select.outputs.push(marker.output);
            query.columns.push(column_of_marker());
        }
        // The items of a FULL JOIN with USING are in the query that it has become.
        if let Some(from) = &mut select.from {
            self.mark_rows(from);
        }
    }

    /// Makes a query an item of FROM of a SELECT of its columns.
    fn select_from(&mut self, query: &mut Query) {
        let columns = query.columns.clone();
        let slot = self.add_slot("rows".into(), Source::Query(columns.clone().into()));
        let outputs = (0..columns.len()).map(|column| Expr::column(slot, column)).collect();
        let empty =
            Query::plain(Body::Select(Box::new(Select::plain(None, vec![], vec![]))), vec![]);
        let inner = std::mem::replace(query, empty);
        let select = Select::plain(Some(From::query(slot, Arc::new(inner))), outputs, Vec::new());
        *query = Query::plain(Body::Select(Box::new(select)), columns);
    }
}

fn column_of_marker() -> OutputColumn {
    OutputColumn { collation: Derivation::Default, ..OutputColumn::new("*", DataType::Boolean) }
}

/// Returns the items of FROM whose rows are returned as they are.
fn kept_slots(from: &From) -> Slots {
    match from {
        From::Table(slot) | From::Query(Derived { slot, .. }) => Slots::one(*slot),
        From::Join { kind: JoinKind::Inner, left, right, .. } => {
            &kept_slots(left) | &kept_slots(right)
        }
        From::Join { kind: JoinKind::Left, left, .. } => kept_slots(left),
        From::Join { kind: JoinKind::Full, .. } => Slots::default(),
    }
}
