//! CREATE and DROP of functions, procedures and triggers.

use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::change::{CatalogChange, check_name};
use super::depended;
use crate::catalog::{Catalog, DropBehavior};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::names::lookup_name;
use crate::schema::{
    AggregateDefinition, ObjectId, Routine, RoutineResult, Table, Trigger, TriggerState,
};

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
        let types = routine.signature_key();
        let name = lookup_name(&routine.schema, &routine.name);
        let known =
            change.before.routines_named(&name).find(|it| it.signature_key() == types).cloned();
        let Some(known) = known else {
            routine.id = change.new_id()?;
            return change.put_routine(routine);
        };
        if !replace {
            let message =
                format!("function \"{}\" already exists with same argument types", routine.name);
            return Err(SqlError::new(SqlState::DuplicateFunction, message));
        }
        if known.word() != routine.word() {
            let message = "cannot change routine kind";
            let shown = match &known.aggregate {
                Some(_) => "an ordinary aggregate function",
                None if known.is_procedure() => "a procedure",
                None => "a function",
            };
            let detail = format!("\"{}\" is {shown}.", known.name);
            return Err(SqlError::new(SqlState::WrongObjectType, message).with_detail(detail));
        }
        check_replacement(&known, &routine)?;
        routine.id = known.id;
        change.put_routine(routine)
    }

    /// ALTER of a function or procedure, which has its new definition already.
    pub fn alter_routine(&self, transaction: &Transaction, routine: Routine) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        check_name(&routine.name)?;
        let types = routine.signature_key();
        let lookup = lookup_name(&routine.schema, &routine.name);
        let mut same = change.before.routines_named(&lookup).filter(|it| it.id != routine.id);
        if same.any(|it| it.signature_key() == types) {
            let types = routine.signature_names();
            let message = format!(
                "function {}({}) already exists in schema \"{}\"",
                routine.name,
                types.join(", "),
                routine.schema
            );
            return Err(SqlError::new(SqlState::DuplicateFunction, message));
        }
        change.put_routine(routine)
    }

    /// DROP of functions and procedures. `cascade`: triggers that call them go, too.
    pub fn drop_routines(
        &self,
        transaction: &Transaction,
        routines: &[Arc<Routine>],
        behavior: DropBehavior,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        for routine in routines {
            for trigger in change.before.triggers().filter(|it| it.routine == routine.id) {
                if behavior == DropBehavior::Restrict {
                    let what = format!("{} {}", routine.word(), routine.signature());
                    return Err(depended(&what, &change.shown_trigger(trigger)));
                }
                change.remove_trigger(trigger)?;
            }
            change.drop_aggregates_of(routine, routines, behavior)?;
            change.remove(routine.id)?;
        }
        Ok(())
    }

    /// CREATE TRIGGER. `replace`: the trigger of that name gets the new definition.
    pub fn create_trigger(
        &self,
        transaction: &Transaction,
        mut trigger: Trigger,
        replace: bool,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        check_name(&trigger.name)?;
        trigger.id = match change.before.trigger_named(trigger.relation, &trigger.name) {
            Some(known) if replace => known.id,
            Some(known) => return Err(change.trigger_exists(known.relation, &known.name)),
            None => change.new_id()?,
        };
        change.regenerate_of(&trigger)?;
        change.put_trigger(trigger)
    }

    /// DROP TRIGGER.
    pub fn drop_trigger(&self, transaction: &Transaction, trigger: &Trigger) -> Result<()> {
        CatalogChange::begin(self, transaction)?.remove_trigger(trigger)
    }

    /// ALTER TRIGGER … RENAME TO.
    pub fn rename_trigger(
        &self,
        transaction: &Transaction,
        trigger: &Trigger,
        to: &SmolStr,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        check_name(to)?;
        if change.before.trigger_named(trigger.relation, to).is_some() {
            return Err(change.trigger_exists(trigger.relation, to));
        }
        change.regenerate_of(trigger)?;
        change.put_trigger(Trigger { name: to.clone(), ..trigger.clone() })
    }

    /// ALTER TABLE … ENABLE or DISABLE TRIGGER of a name, or of all.
    pub fn set_trigger_state(
        &self,
        transaction: &Transaction,
        table: &str,
        name: Option<&str>,
        state: TriggerState,
    ) -> Result<()> {
        let change = CatalogChange::begin(self, transaction)?;
        let table = change.table_named(table)?;
        let is_named = |it: &&Arc<Trigger>| name.is_none_or(|name| it.name == name);
        let chosen: Vec<_> = table.triggers.iter().filter(is_named).collect();
        if let (Some(name), true) = (name, chosen.is_empty()) {
            return Err(no_trigger(&table.name, name));
        }
        for trigger in chosen {
            change.put_trigger(Trigger { state, ..(**trigger).clone() })?;
        }
        change.regenerate_other(table.id)
    }
}

/// The error for a trigger that does not exist.
#[cold]
pub(crate) fn no_trigger(table: &str, name: &str) -> SqlError {
    let message = format!("trigger \"{name}\" for table \"{table}\" does not exist");
    SqlError::new(SqlState::UndefinedObject, message)
}

impl CatalogChange<'_> {
    fn relation_name(&self, id: ObjectId) -> SmolStr {
        let table = self.before.table(id).map(|table| &table.name);
        let view = || self.before.views.get(&id).map(|view| &view.name);
        table.or_else(view).cloned().unwrap_or_default()
    }

    #[cold]
    fn trigger_exists(&self, relation: ObjectId, name: &str) -> SqlError {
        let table = self.relation_name(relation);
        let message = format!("trigger \"{name}\" for relation \"{table}\" already exists");
        SqlError::new(SqlState::DuplicateObject, message)
    }

    /// A trigger as messages name it.
    pub fn shown_trigger(&self, trigger: &Trigger) -> String {
        let relation = self.relation_name(trigger.relation);
        let kind = if self.before.is_view(trigger.relation) { "view" } else { "table" };
        format!("trigger {} on {kind} {relation}", trigger.name)
    }

    /// Writers that do not know the triggers of the table cannot commit (CATALOG-3).
    fn regenerate_of(&self, trigger: &Trigger) -> Result<()> {
        match self.before.table(trigger.relation) {
            Some(table) => self.regenerate_other(table.id),
            None => Ok(()),
        }
    }

    /// Drops the aggregates that call a function, if `behavior` says so; otherwise there must be
    /// none but those that are dropped, too.
    fn drop_aggregates_of(
        &self,
        function: &Routine,
        dropped: &[Arc<Routine>],
        behavior: DropBehavior,
    ) -> Result<()> {
        let lookup = lookup_name(&function.schema, &function.name);
        let named: Vec<_> = self.before.routines_named(&lookup).cloned().collect();
        for routine in self.before.routines() {
            let calls =
                |it: &AggregateDefinition| it.calls(&routine.signature_key(), function, &named);
            if !routine.aggregate.as_deref().is_some_and(calls)
                || dropped.iter().any(|it| it.id == routine.id)
            {
                continue;
            }
            if behavior == DropBehavior::Restrict {
                let what = format!("{} {}", function.word(), function.signature());
                return Err(depended(&what, &format!("function {}", routine.signature())));
            }
            self.remove(routine.id)?;
        }
        Ok(())
    }

    fn remove_trigger(&self, trigger: &Trigger) -> Result<()> {
        self.regenerate_of(trigger)?;
        self.remove(trigger.id)
    }

    /// Drops the triggers that depend on a column, if `cascade`; otherwise there must be none.
    pub fn drop_triggers_of_column(
        &self,
        table: &Table,
        (id, what): (u16, &str),
        cascade: bool,
    ) -> Result<()> {
        for trigger in table.triggers.iter().filter(|it| it.depends_on(id)) {
            if !cascade {
                return Err(depended(what, &self.shown_trigger(trigger)));
            }
            self.remove(trigger.id)?;
        }
        Ok(())
    }
    /// Drops the functions that return rows of a table, if `cascade`; otherwise there must be none.
    pub fn drop_functions_of(&self, table: &Table, cascade: bool) -> Result<()> {
        for routine in self.before.routines() {
            let takes_rows = routine.has_type(&|data_type| data_type.is_of_rows(table.id.0));
            if routine.result != RoutineResult::Row(table.id) && !takes_rows {
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
