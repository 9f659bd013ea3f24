//! The target of a statement that changes rows: a table, or a view of one.
//!
//! A change of a view is a change of its table. The binder replaces the columns of the view by what
//! its query computes of a row of the table. The query's conditions restrict UPDATE and DELETE.
//!
//! - TARGET-1: the rights of a statement on a view are checked for its role, those on what the view
//!   selects from for the owner of the view.

use std::sync::Arc;

use quickbeam::invariant;
use smol_str::SmolStr;
use sqlparser::ast;

use super::instead_of::has_instead_of;
use super::view_rows::{RowOfView, row_of, selected_relation};
use crate::bind::relation_names::qualified_parts;
use crate::bind::rights::Right;
use crate::bind::scope::{relation_of, relation_with};
use crate::bind::{
    Binder, Change, Insert, Names, OutputColumn, Query, Returning, ScopeRelation, Source, Subquery,
};
use crate::catalog::{ObjectId, Privileges, Relation, Table, TriggerEvent, View, lookup_name};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;

/// What a statement does with the rows of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bind) enum ChangeKind {
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

impl ChangeKind {
    pub(super) fn right(self) -> Right {
        match self {
            ChangeKind::Insert => Right::Has(Privileges::INSERT),
            ChangeKind::Update => Right::Has(Privileges::UPDATE),
            ChangeKind::Delete => Right::Whole(Privileges::DELETE),
        }
    }

    pub(super) fn event(self) -> TriggerEvent {
        match self {
            ChangeKind::Insert => TriggerEvent::Insert,
            ChangeKind::Update => TriggerEvent::Update,
            ChangeKind::Delete => TriggerEvent::Delete,
        }
    }

    fn privilege(self) -> Privileges {
        match self {
            ChangeKind::Insert => Privileges::INSERT,
            ChangeKind::Update => Privileges::UPDATE,
            ChangeKind::Delete => Privileges::DELETE,
        }
    }

    fn verb(self) -> &'static str {
        match self {
            ChangeKind::Insert => "insert into",
            ChangeKind::Update => "update",
            ChangeKind::Delete => "delete from",
        }
    }

    /// Returns the error of a view that cannot be changed, for this reason.
    #[cold]
    fn refused(self, view: &View, reason: &str) -> SqlError {
        let (doing, event) = match self {
            ChangeKind::Insert => ("inserting into", "INSERT"),
            ChangeKind::Update => ("updating", "UPDATE"),
            ChangeKind::Delete => ("deleting from", "DELETE"),
        };
        let message = format!("cannot {} view \"{}\"", self.verb(), view.name);
        let hint = format!(
            "To enable {doing} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule."
        );
        SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
            .with_detail(format!("{reason} are not automatically updatable."))
            .with_hint(hint)
    }
}

/// The target of a statement that changes rows.
pub(in crate::bind) struct ChangeTarget {
    /// The table whose rows change.
    pub table: Arc<Table>,
    /// The view that the statement names, if it names one.
    pub view: Option<Box<TargetView>>,
    /// The view that the statement names if INSTEAD OF triggers change it: `table` stands for it.
    pub instead: Option<Arc<View>>,
}

/// A view whose table is changed.
pub(in crate::bind) struct TargetView {
    /// The view that the statement names, then the view that it selects from, and so on.
    pub(super) layers: Vec<ViewLayer>,
    /// What the statement does.
    kind: ChangeKind,
    /// The role whose rights on the table count.
    table_role: Option<ObjectId>,
    /// What the views compute of a row of the table.
    pub(super) row: RowOfView,
    columns: Arc<[OutputColumn]>,
}

/// A view between the statement and the table.
pub(super) struct ViewLayer {
    pub(super) view: Arc<View>,
    /// The role whose rights on the view count.
    role: Option<ObjectId>,
    /// For each column the position of the column that it is, in what the view selects from.
    pub(super) places: Vec<Option<usize>>,
}

/// The columns of a view in a slot that no operator fills, and what stands for them.
pub(in crate::bind) struct ViewColumns {
    slot: usize,
    outputs: Vec<Expr>,
}

impl ChangeTarget {
    /// Makes a target of a table.
    pub fn of_table(table: Arc<Table>) -> ChangeTarget {
        ChangeTarget { table, view: None, instead: None }
    }

    /// Returns the name of what the statement names.
    pub fn name(&self) -> &SmolStr {
        self.view.as_ref().map_or(&self.table.name, |view| &view.layers[0].view.name)
    }

    /// Returns the number of columns of what the statement names.
    pub fn width(&self) -> usize {
        self.view.as_ref().map_or(self.table.columns.len(), |view| view.columns.len())
    }

    /// Returns the position of a column in what the statement names.
    pub fn own_position(&self, name: &str) -> Option<usize> {
        match &self.view {
            None => self.table.column(name),
            Some(view) => view.columns.iter().position(|column| column.name == name),
        }
    }

    /// Returns the position in the table of a column of what the statement names.
    pub fn place(&self, own: usize) -> Result<usize> {
        let Some(view) = &self.view else { return Ok(own) };
        let mut at = own;
        for layer in &view.layers {
            at = match layer.places.get(at).copied().flatten() {
                Some(below) => below,
                None => return Err(not_updatable(&layer.view, at, view.kind)),
            };
        }
        Ok(at)
    }

    /// Returns the slot of the row of the table that the conditions of the view read.
    pub fn slot(&self) -> Option<usize> {
        self.view.as_ref().map(|view| view.row.slot)
    }

    /// Refuses an expression that reads a subquery of a view where none is computed.
    fn check_subqueries<'e>(&self, mut exprs: impl Iterator<Item = &'e Expr>) -> Result<()> {
        let Some(view) = &self.view else { return Ok(()) };
        let answers = Subquery::answers(&view.row.subqueries);
        if !answers.is_empty() && exprs.any(|expr| expr.slots().meets(&answers)) {
            let what = "a column of a view with a subquery in RETURNING or ON CONFLICT";
            return Err(SqlError::unsupported(what));
        }
        Ok(())
    }

    /// Puts what stands for the columns of views in their place.
    pub fn expand_insert(&self, insert: &mut Insert, rows: &[ViewColumns]) -> Result<()> {
        if let Some(conflict) = &mut insert.conflict {
            let values = conflict.assignments.iter_mut().flatten().map(|(_, value)| value);
            values.chain(&mut conflict.filter).for_each(|expr| expand(expr, rows));
            for row in rows {
                let subqueries = conflict.subqueries.iter_mut();
                subqueries.for_each(|it| it.replace_outer_columns(row.slot, &row.outputs));
            }
            let values = conflict.assignments.iter().flatten().map(|(_, value)| value);
            self.check_subqueries(values.chain(&conflict.filter))?;
        }
        self.expand_returning(insert.returning.as_mut(), rows)
    }

    /// Puts what stands for the columns of a view in their place, and its conditions before those
    /// of the statement.
    pub fn expand_change(&self, change: &mut Change, rows: &[ViewColumns]) -> Result<()> {
        let values = change.assignments.iter_mut().flatten().map(|(_, value)| value);
        values.chain(&mut change.filter).for_each(|expr| expand(expr, rows));
        for row in rows {
            let (slot, outputs) = (row.slot, &row.outputs);
            change.from.each_part_mut(&mut |part| part.replace_columns(slot, outputs));
            let subqueries = change.subqueries.iter_mut();
            subqueries.for_each(|subquery| subquery.replace_outer_columns(slot, outputs));
        }
        if let Some(view) = &self.view {
            let conditions = view.row.conditions.iter().rev().flatten().cloned();
            change.filter.splice(0..0, conditions);
            change.subqueries.splice(0..0, view.row.subqueries.iter().cloned());
        }
        self.expand_returning(change.returning.as_mut(), rows)
    }

    fn expand_returning(
        &self,
        returning: Option<&mut Returning>,
        rows: &[ViewColumns],
    ) -> Result<()> {
        let Some(returning) = returning else { return Ok(()) };
        returning.outputs.iter_mut().for_each(|expr| expand(expr, rows));
        self.check_subqueries(returning.outputs.iter())
    }
}

/// Puts what stands for the columns of views in their place.
pub(in crate::bind) fn expand(expr: &mut Expr, rows: &[ViewColumns]) {
    rows.iter().for_each(|row| expr.replace_columns(row.slot, &row.outputs));
}

/// The error of a column of a view that is no column of what the view selects from.
#[cold]
fn not_updatable(view: &View, at: usize, kind: ChangeKind) -> SqlError {
    let column = view.columns.get(at).map_or("", SmolStr::as_str);
    let verb = if kind == ChangeKind::Insert { "insert into" } else { "update" };
    let message = format!("cannot {verb} column \"{column}\" of view \"{}\"", view.name);
    SqlError::new(SqlState::FeatureNotSupported, message)
        .with_detail("View columns that are not columns of their base relation are not updatable.")
}

/// Returns why a view of that query cannot be changed, or `None` if it can. What it selects from
/// may still be a view that cannot.
pub(in crate::bind) fn reason_not_updatable(
    written: &ast::Query,
    bound: &Query,
) -> Option<&'static str> {
    if let Err(reason) = selected_relation(written) {
        return Some(reason);
    }
    match row_of(bound, 0) {
        Err((0, reason)) => Some(reason),
        Err(_) => None,
        Ok(row) => {
            let has_none = row.places.first().is_none_or(|it| it.iter().all(Option::is_none));
            has_none.then_some("Views that have no updatable columns")
        }
    }
}

/// Returns the changes that a view allows, as bits by PostgreSQL's numbers of commands, and for
/// each of its columns whether it can be changed.
pub fn updatability(names: &dyn Names, view: &View) -> (i32, Vec<bool>) {
    const DELETE: i32 = 1 << 4;
    const ALL: i32 = DELETE | 1 << 3 | 1 << 2;
    let view = Arc::new(view.clone());
    let target = |kind| Binder::of_stored(names).view_target(view.clone(), kind);
    match target(ChangeKind::Update) {
        Ok(target) => {
            let columns = (0..target.width()).map(|own| target.place(own).is_ok());
            (ALL, columns.collect())
        }
        Err(_) if target(ChangeKind::Delete).is_ok() => (DELETE, vec![false; view.columns.len()]),
        Err(_) => (0, vec![false; view.columns.len()]),
    }
}

impl Binder<'_> {
    /// Whether a name is that of a view.
    pub(super) fn is_view(&self, name: &ast::ObjectName) -> Result<bool> {
        let position = self.position(name) as usize;
        let folded = self.relation_name(name).map_err(|error| error.at(position))?;
        Ok(matches!(self.names.relation(&folded)?, Some(Relation::View(_))))
    }

    /// Returns the target of a statement, whose role has the right to change it.
    pub(in crate::bind) fn change_target(
        &mut self,
        name: &ast::ObjectName,
        kind: ChangeKind,
    ) -> Result<ChangeTarget> {
        let position = self.position(name) as usize;
        let folded = self.relation_name(name).map_err(|error| error.at(position))?;
        match self.names.relation(&folded)? {
            Some(Relation::View(view)) => match self.instead_target(&view, kind)? {
                Some(target) => Ok(target),
                None => self.view_target(view, kind),
            },
            Some(Relation::Sequence(sequence)) => {
                let message = format!("cannot change sequence \"{}\"", sequence.name);
                Err(SqlError::new(SqlState::WrongObjectType, message))
            }
            found => {
                let table = self.checked_table(found, &folded, kind.right());
                let table = table.map_err(|error| error.at(position))?;
                if table.materialized.is_some() && !self.names.populates() {
                    let message = format!("cannot change materialized view \"{}\"", table.name);
                    return Err(SqlError::new(SqlState::WrongObjectType, message));
                }
                Ok(ChangeTarget::of_table(table))
            }
        }
    }

    /// Returns the target of a statement that names a view.
    pub(in crate::bind) fn view_target(
        &mut self,
        view: Arc<View>,
        kind: ChangeKind,
    ) -> Result<ChangeTarget> {
        self.check_view_right(&view, kind.right())?;
        let query = self.view(&view)?;
        let (views, table) = self.views_of(view, kind)?;
        let mut row = row_of(&query, 0).map_err(|(depth, reason)| {
            kind.refused(views.get(depth).unwrap_or(&views[0]), reason)
        })?;
        let mut role = self.role;
        let mut layers = Vec::with_capacity(views.len());
        for (view, places) in views.into_iter().zip(row.places.drain(..)) {
            if kind != ChangeKind::Delete && places.iter().all(Option::is_none) {
                return Err(kind.refused(&view, "Views that have no updatable columns"));
            }
            let owner = self.role_within(&view);
            layers.push(ViewLayer { view, role, places });
            role = owner;
        }
        let columns = query.columns.into();
        let view = Some(Box::new(TargetView { layers, kind, table_role: role, row, columns }));
        let target = ChangeTarget { table, view, instead: None };
        self.check_target(&target, kind)?;
        Ok(target)
    }

    /// Returns a view and the views below it, and the table that they are views of.
    fn views_of(&self, view: Arc<View>, kind: ChangeKind) -> Result<(Vec<Arc<View>>, Arc<Table>)> {
        let mut views = vec![view];
        while let Some(view) = views.last() {
            if views.len() > crate::bind::VIEW_DEPTH {
                let message = format!("view \"{}\" is nested too deep", view.name);
                return Err(SqlError::new(SqlState::StatementTooComplex, message));
            }
            let query = crate::parse::query(&view.query)?;
            let refused = |reason| kind.refused(view, reason);
            let (schema, own) = qualified_parts(selected_relation(&query).map_err(refused)?)?;
            let lookup = schema.map_or_else(|| own.clone(), |schema| lookup_name(&schema, &own));
            match self.names.relation(&lookup)? {
                Some(Relation::View(below)) if has_instead_of(self.names, &below, kind) => {
                    let what = "a change of a view that selects from one with INSTEAD OF triggers";
                    return Err(SqlError::unsupported(what));
                }
                Some(Relation::View(below)) => views.push(below),
                Some(Relation::Table(table)) => return Ok((views, table)),
                _ => return Err(refused("Views that do not select from a single table or view")),
            }
        }
        Err(SqlError::internal("a view without a relation"))
    }

    /// Checks something with the rights of a role.
    fn as_role(
        &mut self,
        role: Option<ObjectId>,
        check: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let own = std::mem::replace(&mut self.role, role);
        let checked = check(self);
        self.role = own;
        checked
    }

    /// Checks the right to change what the statement names.
    pub(in crate::bind) fn check_target(
        &mut self,
        target: &ChangeTarget,
        kind: ChangeKind,
    ) -> Result<()> {
        let Some(view) = &target.view else {
            return self.check_table(&target.table, kind.right());
        };
        for layer in &view.layers {
            self.as_role(layer.role, |it| it.check_view_right(&layer.view, kind.right()))?;
        }
        self.as_role(view.table_role, |it| it.check_table(&target.table, kind.right()))
    }

    /// Checks the right to change columns, by their positions in what the statement names.
    pub(in crate::bind) fn check_target_columns(
        &mut self,
        target: &ChangeTarget,
        own: &[usize],
        kind: ChangeKind,
    ) -> Result<()> {
        let wanted = kind.privilege();
        if let Some(view) = &target.instead {
            return self.check_columns_of_view(view, own, wanted);
        }
        let Some(view) = &target.view else {
            return self.check_columns(&target.table, own.iter().copied(), wanted);
        };
        let mut own = own.to_vec();
        for layer in &view.layers {
            let columns = own.iter().copied();
            self.as_role(layer.role, |it| it.check_view_columns(&layer.view, columns, wanted))?;
            let below = own.iter().map(|&at| layer.places.get(at).copied().flatten());
            own = below.flatten().collect();
        }
        let is_owner = || {
            let last = view.layers.last().map(|layer| &layer.view);
            last.is_none_or(|last| self.role_within(last) == view.table_role)
        };
        invariant!(TARGET_1, is_owner(), "table {} of a view", target.table.name);
        self.as_role(view.table_role, |it| it.check_columns(&target.table, own.into_iter(), wanted))
    }

    /// Returns the columns of the target under a name, for a row of the table in that slot. The
    /// columns of a view are in a slot of their own.
    pub(in crate::bind) fn target_row(
        &mut self,
        target: &ChangeTarget,
        slot: usize,
        name: SmolStr,
    ) -> (ScopeRelation, Option<ViewColumns>) {
        let Some(view) = &target.view else {
            return (relation_of(&target.table, slot, name), None);
        };
        let own = self.add_slot(name.clone(), Source::Query(view.columns.clone()));
        let columns = view.columns.iter();
        let columns = columns.map(|it| (it.name.clone(), it.data_type, it.collation));
        let relation = relation_with(name, own, columns);
        let mut outputs = view.row.outputs.clone();
        if slot != view.row.slot {
            let width = target.table.columns.len();
            let row: Vec<Expr> = (0..width).map(|column| Expr::column(slot, column)).collect();
            outputs.iter_mut().for_each(|output| output.replace_columns(view.row.slot, &row));
        }
        (relation, Some(ViewColumns { slot: own, outputs }))
    }

    /// Notes which columns of the target may be read in a relation of it.
    pub(in crate::bind) fn restrict_target(&mut self, target: &ChangeTarget, row: &ScopeRelation) {
        let Some(slot) = row.columns.first().map(|column| column.at.slot) else { return };
        if let Some(view) = &target.instead {
            return self.restrict_view(view, slot);
        }
        match &target.view {
            None => self.restrict_table(&target.table, slot),
            Some(view) => self.restrict_view(&view.layers[0].view, slot),
        }
    }
}
