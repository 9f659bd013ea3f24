//! CREATE and DROP of functions and procedures.

use std::sync::Arc;

use quickbeam::Transaction;

use super::change::{CatalogChange, check_name};
use super::depended;
use crate::catalog::Catalog;
use crate::error::{Result, SqlError, SqlState};
use crate::schema::names::lookup_name;
use crate::schema::{Routine, RoutineResult, Table};

impl Catalog {
    /// CREATE FUNCTION or CREATE PROCEDURE. `replace`: one of that name and arguments gets the new
    /// body; its kind and the type of its result stay.
    pub fn create_routine(
        &self,
        transaction: &Transaction,
        mut routine: Routine,
        replace: bool,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        check_name(&routine.name)?;
        let types = routine.signature_types();
        let name = lookup_name(&routine.schema, &routine.name);
        let known =
            change.before.routines_named(&name).find(|it| it.signature_types() == types).cloned();
        let Some(known) = known else {
            routine.id = change.new_id()?;
            return change.put_routine(routine);
        };
        if !replace {
            let message =
                format!("function \"{}\" already exists with same argument types", routine.name);
            return Err(SqlError::new(SqlState::DuplicateFunction, message));
        }
        if known.is_procedure() != routine.is_procedure() {
            let message = "cannot change routine kind";
            let detail = format!("\"{}\" is a {}.", known.name, known.word());
            return Err(SqlError::new(SqlState::WrongObjectType, message).with_detail(detail));
        }
        check_replacement(&known, &routine)?;
        routine.id = known.id;
        change.put_routine(routine)
    }

    /// DROP of functions and procedures.
    pub fn drop_routines(
        &self,
        transaction: &Transaction,
        routines: &[Arc<Routine>],
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        routines.iter().try_for_each(|routine| change.remove(routine.id))
    }
}

impl CatalogChange<'_> {
    /// Drops the functions that return rows of a table, if `cascade`; otherwise there must be none.
    pub fn drop_functions_of(&self, table: &Table, cascade: bool) -> Result<()> {
        for routine in self.before.routines() {
            if routine.result != RoutineResult::Row(table.id) {
                continue;
            }
            if !cascade {
                let by = format!("function {}", routine.signature());
                return Err(depended(&format!("table {}", table.name), &by));
            }
            self.remove(routine.id)?;
        }
        Ok(())
    }
}

/// Checks that a definition may replace another of the same arguments.
fn check_replacement(known: &Routine, new: &Routine) -> Result<()> {
    let refused = |message: &str| {
        Err(SqlError::new(SqlState::InvalidFunctionDefinition, message).with_hint(format!(
            "Use DROP {} {} first.",
            known.word().to_uppercase(),
            known.signature()
        )))
    };
    let outputs = |routine: &Routine| -> Vec<_> {
        routine.outputs().map(|it| (it.name.clone(), it.data_type)).collect()
    };
    if known.result != new.result || known.returns_set != new.returns_set {
        return refused("cannot change return type of existing function");
    }
    if known.result == RoutineResult::Columns && outputs(known) != outputs(new) {
        return refused("cannot change return type of existing function");
    }
    for (old, new) in known.inputs().zip(new.inputs()) {
        if let Some(name) = &old.name
            && new.name.as_ref() != Some(name)
        {
            return refused(&format!("cannot change name of input parameter \"{name}\""));
        }
        if old.default.is_some() && new.default.is_none() {
            return refused("cannot remove parameter defaults from existing function");
        }
    }
    Ok(())
}
