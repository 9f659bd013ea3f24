//! What views add to the rows that a statement makes: WITH CHECK OPTION, and DEFAULTs.

use super::target::{ChangeTarget, ViewLayer};
use crate::bind::ddl::view_default;
use crate::bind::{Binder, Subquery, ViewCheck};
use crate::catalog::{AclKind, CheckOption, Privileges};
use crate::error::{Result, SqlError};
use crate::expression::Expr;

impl Binder<'_> {
    /// Returns the conditions that WITH CHECK OPTION has a new row in that slot satisfy, those of
    /// the innermost view first.
    pub(super) fn view_checks(&self, target: &ChangeTarget, slot: usize) -> Result<Vec<ViewCheck>> {
        let Some(view) = &target.view else { return Ok(Vec::new()) };
        let answers = Subquery::answers(&view.row.subqueries);
        let may_see_row = self.acting().is_none_or(|(role, snapshot)| {
            let rights = snapshot.rights(role, target.table.id, AclKind::Table);
            rights.has(Privileges::SELECT)
        });
        let width = target.table.columns.len();
        let row: Vec<Expr> = (0..width).map(|column| Expr::column(slot, column)).collect();
        let (mut checks, mut is_cascaded) = (Vec::new(), false);
        for (layer, conditions) in view.layers.iter().zip(&view.row.conditions) {
            let option = layer.view.options.check_option();
            is_cascaded |= option == Some(CheckOption::Cascaded);
            let Some(mut condition) = Expr::all(conditions.clone()) else { continue };
            if !is_cascaded && option.is_none() {
                continue;
            }
            if !answers.is_empty() && condition.slots().meets(&answers) {
                let what = "WITH CHECK OPTION of a condition with a subquery";
                return Err(SqlError::unsupported(what));
            }
            if slot != view.row.slot {
                condition.replace_columns(view.row.slot, &row);
            }
            condition.simplify_condition();
            checks.push(ViewCheck { view: layer.view.name.clone(), condition, may_see_row });
        }
        checks.reverse();
        Ok(checks)
    }

    /// Returns the DEFAULT that views have for a column of the table: that of the outermost view
    /// that has one.
    pub(super) fn default_of_views(
        &self,
        target: &ChangeTarget,
        column: usize,
    ) -> Result<Option<Expr>> {
        let layers = target.view.as_ref().map_or(&[][..], |view| &view.layers);
        for depth in 0..layers.len() {
            let found = self.default_of_layers(target, &layers[depth..], column)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the DEFAULT that the view which the statement names has for a column of the table.
    pub(super) fn default_of_view(
        &self,
        target: &ChangeTarget,
        column: usize,
    ) -> Result<Option<Expr>> {
        let layers = target.view.as_ref().map_or(&[][..], |view| &view.layers);
        self.default_of_layers(target, layers, column)
    }

    /// Returns the DEFAULT that the first of these views has for a column of the table.
    fn default_of_layers(
        &self,
        target: &ChangeTarget,
        layers: &[ViewLayer],
        column: usize,
    ) -> Result<Option<Expr>> {
        let (Some(first), Some(to)) = (layers.first(), target.table.columns.get(column)) else {
            return Ok(None);
        };
        let place = |own: usize| {
            let below = |at: usize, layer: &ViewLayer| layer.places.get(at).copied().flatten();
            layers.iter().try_fold(own, below)
        };
        let mut own = 0..first.view.columns.len();
        let text =
            own.find_map(|own| first.view.default(own).filter(|_| place(own) == Some(column)));
        text.map(|text| view_default(self.names, text, to.data_type, &to.name)).transpose()
    }
}
