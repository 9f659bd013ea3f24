//! Triggers: their conditions and functions, run for a row or a statement.

use std::sync::Arc;

use quickbeam::Transaction;
use smol_str::SmolStr;

use super::call::{CallTransaction, Invocation, TransactionEnd};
use super::types::row_shape;
use super::variables::{Cell, HeldRow, assigned};
use super::{CompiledRoutine, block_routine};
use crate::bind::{CatalogChange, ObjectKind};
use crate::catalog::system::object_oid;
use crate::catalog::{
    BuiltinTrigger, CatalogSnapshot, FiredTriggers, Relation, Table, TriggerEvent, TriggerTiming,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::call_builtin;
use crate::parse::plpgsql::{
    Block, BlockBody, BlockVariable, Fragment, GivenVariable, Namespace, RecordFields,
    VariableConflict, VariableKind,
};
use crate::session::Session;
use crate::table::{TriggerCall, TriggerCaller};
use crate::types::{ArrayBuilder, DataType, Dimension, ElementType, SystemType, Value};

/// The variables of the rows.
pub(super) const NEW: usize = 0;
pub(super) const OLD: usize = 1;

const NAME: DataType = DataType::System(SystemType::Name);

/// The other variables of a trigger function, after those of the rows.
fn settings() -> Vec<(&'static str, DataType)> {
    let texts = ElementType::new(DataType::Text).map_or(DataType::Text, DataType::Array);
    vec![
        ("tg_name", NAME),
        ("tg_when", DataType::Text),
        ("tg_level", DataType::Text),
        ("tg_op", DataType::Text),
        ("tg_relid", DataType::OID),
        ("tg_relname", NAME),
        ("tg_table_name", NAME),
        ("tg_table_schema", NAME),
        ("tg_nargs", DataType::Integer),
        ("tg_argv", texts),
    ]
}

/// The variables that a trigger function has before its own. `shape`: the columns of its table; a
/// function that is only checked has no table.
pub(super) fn trigger_variables(shape: &RecordFields) -> Vec<GivenVariable> {
    let record = |name: &'static str| GivenVariable {
        names: vec![SmolStr::new_static(name)],
        kind: VariableKind::Record(shape.clone()),
    };
    let scalar = |(name, data_type)| GivenVariable {
        names: vec![SmolStr::new_static(name)],
        kind: VariableKind::Scalar(data_type),
    };
    [record("new"), record("old")].into_iter().chain(settings().into_iter().map(scalar)).collect()
}

/// The values of those variables, without the rows.
fn values_of(call: &TriggerCall<'_>) -> Result<Vec<Value>> {
    let (trigger, table) = (call.trigger, call.table);
    let arguments: Vec<Value> = trigger.arguments.iter().map(|it| Value::text(&**it)).collect();
    let count = i32::try_from(arguments.len()).unwrap_or(i32::MAX);
    let text = Value::text;
    Ok(vec![
        text(trigger.name.as_str()),
        text(trigger.timing.words()),
        text(trigger.level.word()),
        text(call.event.word()),
        Value::Oid(u32::try_from(object_oid(table.id)).unwrap_or_default()),
        text(table.name.as_str()),
        text(table.name.as_str()),
        text(table.schema.as_str()),
        Value::Integer(count),
        argument_array(&arguments)?,
    ])
}

/// Returns the array of a trigger's arguments, which counts from 0; NULL for none.
fn argument_array(arguments: &[Value]) -> Result<Value> {
    if arguments.is_empty() {
        return Ok(Value::Null);
    }
    let element = ElementType::new(DataType::Text);
    let element = element.ok_or_else(|| SqlError::internal("texts without arrays"))?;
    let mut array = ArrayBuilder::new(element);
    for argument in arguments {
        array.push(argument.as_ref())?;
    }
    let dimension = Dimension { lower: 0, ..Dimension::of(arguments.len()) };
    Ok(Value::Array(array.finish(&[dimension])?))
}

/// A block that has the rows as its only variables, and one statement.
fn condition_block(table: &Table, condition: &str) -> BlockBody {
    let mut names = Namespace::default();
    let mut variables = Vec::new();
    for (number, name) in ["new", "old"].into_iter().enumerate() {
        let name = SmolStr::new_static(name);
        names.names.push((name.clone(), number));
        let kind = VariableKind::Record(row_shape(table));
        let (not_null, constant, initial) = (false, false, None);
        variables.push(BlockVariable {
            name,
            kind,
            not_null,
            constant,
            initial,
            cursor: None,
            line: 0,
        });
    }
    BlockBody {
        block: Block::default(),
        variables,
        namespaces: vec![names],
        fragments: vec![Fragment { text: format!("SELECT {condition}").into(), namespace: 0 }],
        found: usize::MAX,
        conflict: VariableConflict::default(),
    }
}

#[cold]
fn wrong_row() -> SqlError {
    let message = "returned row structure does not match the structure of the triggering table";
    SqlError::new(SqlState::DatatypeMismatch, message)
}

impl CompiledRoutine {
    /// Compiles the condition of a trigger.
    pub(super) fn of_condition(table: &Table, condition: &str, version: u64) -> CompiledRoutine {
        let body = condition_block(table, condition);
        CompiledRoutine::of_body(Arc::new(block_routine("".into())), body, version)
    }
}

impl Session {
    /// Returns the compiled condition of a trigger.
    fn compiled_condition(
        &self,
        call: &TriggerCall<'_>,
        condition: &str,
    ) -> Result<Arc<CompiledRoutine>> {
        let version = self.database.catalog.version(call.transaction)?;
        let key = (call.trigger.id, None, None);
        if let Some(known) = self.routines.known(key, version) {
            return Ok(known);
        }
        let made = Arc::new(CompiledRoutine::of_condition(call.table, condition, version));
        self.routines.keep(key, made.clone());
        Ok(made)
    }

    /// Returns the compiled function of a trigger.
    fn compiled_trigger(&self, call: &TriggerCall<'_>) -> Result<Arc<CompiledRoutine>> {
        // Transition tables have names of the trigger.
        let of = if call.trigger.has_transitions() { call.trigger.id } else { call.table.id };
        let key = (call.trigger.routine, Some(of), None);
        self.compiled_for(call.transaction, key, || trigger_variables(&row_shape(call.table)))
    }

    fn lent<'t>(&self, transaction: &'t Transaction) -> CallTransaction<'t> {
        CallTransaction::Lent(transaction)
    }
}

impl Session {
    /// Returns the tables with triggers that a TRUNCATE empties.
    pub(in crate::session) fn truncated(
        &self,
        change: &CatalogChange,
        snapshot: &CatalogSnapshot,
    ) -> Result<Vec<Arc<Table>>> {
        let CatalogChange::Truncate(names, cascade, _) = change else { return Ok(Vec::new()) };
        let tables = names.iter().map(|name| Ok(snapshot.table_named(name)?.id));
        let all = snapshot.truncated(tables.collect::<Result<_>>()?, *cascade)?;
        let tables = all.into_iter().filter_map(|id| snapshot.table(id));
        Ok(tables.filter(|table| !table.triggers.is_empty()).cloned().collect())
    }

    /// Fires the triggers of TRUNCATE.
    pub(in crate::session) fn fire_truncate(
        &self,
        tables: &[Arc<Table>],
        transaction: &Transaction,
        timing: TriggerTiming,
    ) -> Result<()> {
        let event = TriggerEvent::Truncate;
        for table in tables {
            let Some(fired) = FiredTriggers::of(table, event, None) else { continue };
            let triggers = match timing {
                TriggerTiming::Before => &fired.before_statement,
                _ => &fired.after_statement,
            };
            for trigger in triggers {
                let (old, new, set, transitions) = (None, None, &[], None);
                let call =
                    TriggerCall { transaction, trigger, table, event, old, new, set, transitions };
                if self.condition_holds(&call)? {
                    self.call_trigger(&call)?;
                }
            }
        }
        Ok(())
    }
}

impl Session {
    /// Refuses a change of the definition of a table whose trigger makes the change.
    pub(in crate::session) fn check_not_changing(
        &self,
        change: &CatalogChange,
        snapshot: &CatalogSnapshot,
    ) -> Result<()> {
        let changing = self.routines.changing.borrow();
        if changing.is_empty() {
            return Ok(());
        }
        let (what, names) = match change {
            CatalogChange::Alter(name, ..) => ("ALTER TABLE", std::slice::from_ref(name)),
            CatalogChange::CreateIndex(index, _) => {
                ("CREATE INDEX", std::slice::from_ref(&index.table))
            }
            CatalogChange::Drop(ObjectKind::Table, names, ..) => ("DROP TABLE", &names[..]),
            CatalogChange::Drop(ObjectKind::Index, names, ..) => ("DROP INDEX", &names[..]),
            CatalogChange::Truncate(names, ..) => ("TRUNCATE", &names[..]),
            _ => return Ok(()),
        };
        for name in names {
            let (table, shown) = match snapshot.relation(name) {
                Some(Relation::Table(table)) => (table.clone(), table.name.clone()),
                Some(Relation::Index(table, index)) => (table.clone(), index.name.clone()),
                _ => continue,
            };
            if changing.contains(&table.id) {
                let message = format!(
                    "cannot {what} \"{shown}\" because it is being used by active queries in this \
                     session"
                );
                return Err(SqlError::new(SqlState::ObjectInUse, message));
            }
        }
        Ok(())
    }
}

impl<'s> Invocation<'s> {
    /// Says that NEW and OLD have columns.
    pub(super) fn has_rows(&mut self) {
        for cell in self.cells.iter_mut().take(2) {
            if let Cell::Record(_, _, held) = cell {
                *held = HeldRow::Null;
            }
        }
    }

    /// Sets the rows of a trigger.
    fn take_rows(&mut self, call: &TriggerCall<'_>) {
        for (variable, row) in [(NEW, call.new), (OLD, call.old)] {
            if let Some(Cell::Record(_, values, held)) = self.cells.get_mut(variable) {
                match row {
                    Some(row) => {
                        values.clone_from_slice(row);
                        *held = HeldRow::Row;
                    }
                    None => {
                        *held = HeldRow::Null;
                        self.absent[variable] = true;
                    }
                }
            }
        }
    }

    /// Runs a trigger function. Returns its row, `None` for NULL.
    fn run_trigger(mut self, call: &TriggerCall<'_>) -> Result<Option<Vec<Value>>> {
        self.take_rows(call);
        for (at, value) in values_of(call)?.into_iter().enumerate() {
            self.set(OLD + 1 + at, value)?;
        }
        self.execute_body()?;
        let Some(row) = self.result.take() else { return Ok(None) };
        // A row without values is NULL.
        if row.is_empty() || call.old.is_none() && call.new.is_none() {
            return Ok(None);
        }
        let columns = &call.table.columns;
        if row.len() != columns.len() {
            return Err(wrong_row());
        }
        let values = row.into_iter().zip(columns);
        values
            .map(|(value, column)| assigned(value, column.data_type, &self.session.clock))
            .collect::<Result<_>>()
            .map(Some)
    }
}

impl TriggerCaller for Session {
    fn is_replica(&self) -> bool {
        self.is_replica.get()
    }

    fn condition_holds(&self, call: &TriggerCall<'_>) -> Result<bool> {
        if !call.trigger.state.fires(self.is_replica.get()) {
            return Ok(false);
        }
        let Some(condition) = &call.trigger.condition else { return Ok(true) };
        let compiled = self.compiled_condition(call, condition)?;
        let place = self.lent(call.transaction);
        let mut invocation = Invocation::new(self, compiled, place, TransactionEnd::Refused);
        invocation.take_rows(call);
        invocation.holds(0)
    }

    fn call_trigger(&self, call: &TriggerCall<'_>) -> Result<Option<Vec<Value>>> {
        if let Some(function) = BuiltinTrigger::of(call.trigger.routine) {
            return call_builtin(function, call);
        }
        let compiled = self.compiled_trigger(call)?;
        let place = self.lent(call.transaction);
        let _guards = self.enter(&compiled, place)?;
        let mut invocation = Invocation::new(self, compiled, place, TransactionEnd::Refused);
        let transitions = call.transitions.filter(|_| call.trigger.has_transitions());
        if let Some(rows) = transitions {
            invocation.fired = Some((call.trigger.clone(), call.table.clone()));
            self.routines.transitions.borrow_mut().push(rows.clone());
        }
        self.routines.changing.borrow_mut().push(call.table.id);
        let row = invocation.run_trigger(call).map_err(SqlError::inner);
        self.routines.changing.borrow_mut().pop();
        if transitions.is_some() {
            self.routines.transitions.borrow_mut().pop();
        }
        // A statement of the body has ended the interruption of this one.
        quickbeam::query_layer::TransactionExt::interrupt_on(
            call.transaction,
            &self.limits.cancelled,
        );
        row
    }
}
