//! Views that INSTEAD OF triggers change, as the target of a statement.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast;

use super::target::{ChangeKind, ChangeTarget};
use crate::bind::rights::Right;
use crate::bind::scope::RowOf;
use crate::bind::{Binder, From, Names, Scope};
use crate::catalog::{Privileges, Table, TriggerTiming, View};
use crate::error::{Result, SqlError};

/// Whether a view has an INSTEAD OF trigger for what a statement does.
pub(super) fn has_instead_of(names: &dyn Names, view: &View, kind: ChangeKind) -> bool {
    let triggers = names.snapshot().map(|snapshot| snapshot.triggers_of(view.id));
    let event = kind.event();
    let is_such =
        |timing, events: &[_]| timing == TriggerTiming::InsteadOf && events.contains(&event);
    triggers.iter().flatten().any(|it| is_such(it.timing, &it.events))
}

impl Binder<'_> {
    /// Returns the target of a statement that names a view with an INSTEAD OF trigger for it.
    pub(super) fn instead_target(
        &mut self,
        view: &Arc<View>,
        kind: ChangeKind,
    ) -> Result<Option<ChangeTarget>> {
        if !has_instead_of(self.names, view, kind) {
            return Ok(None);
        }
        self.check_view_right(view, kind.right())?;
        let query = self.view(view)?;
        let columns = query.columns.iter();
        let types = columns.map(|it| (it.data_type, it.collation.for_table().unwrap_or_default()));
        let snapshot = self.names.snapshot();
        let triggers = snapshot.map_or_else(Vec::new, |it| it.triggers_of(view.id));
        let table = Arc::new(Table::of_view(view, types, triggers));
        Ok(Some(ChangeTarget { table, view: None, instead: Some(view.clone()) }))
    }

    /// Adds the rows of a view to the scope of a statement that changes them by triggers.
    pub(super) fn rows_of_view(
        &mut self,
        view: &Arc<View>,
        alias: Option<&ast::TableAlias>,
        scope: &mut Scope,
    ) -> Result<(usize, From)> {
        let query = self.view(view)?;
        let name: SmolStr = view.name.clone();
        let from = self.derived(Arc::new(query), alias, Some(name), scope)?;
        let From::Query(derived) = &from else {
            return Err(SqlError::internal("a view that is no query"));
        };
        let slot = derived.slot;
        self.restrict_view(view, slot);
        if let Some(relation) = scope.relations.last_mut() {
            relation.row = RowOf::View(view.clone());
        }
        Ok((slot, from))
    }

    /// Checks the right to change columns of a view.
    pub(super) fn check_columns_of_view(
        &self,
        view: &View,
        own: &[usize],
        wanted: Privileges,
    ) -> Result<()> {
        self.check_view_right(view, Right::Has(wanted))?;
        self.check_view_columns(view, own.iter().copied(), wanted)
    }
}
