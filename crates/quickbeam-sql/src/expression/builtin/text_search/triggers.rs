//! `tsvector_update_trigger`, `tsvector_update_trigger_column` and
//! `suppress_redundant_updates_trigger`.

use super::parsing::configuration;
use crate::catalog::{BuiltinTrigger, Column, Table, TriggerEvent, TriggerLevel, TriggerTiming};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::text_search::{Configuration, DocumentWords, configuration_named};
use crate::table::TriggerCall;
use crate::types::{DataType, EncodedKind, Value, ValueRef};

#[cold]
fn no_column(message: String) -> SqlError {
    SqlError::new(SqlState::UndefinedColumn, message)
}

#[cold]
fn wrong_type(message: String) -> SqlError {
    SqlError::new(SqlState::DatatypeMismatch, message)
}

fn column<'t>(table: &'t Table, name: &str) -> Option<(usize, &'t Column)> {
    table.columns.iter().enumerate().find(|(_, column)| column.name == name)
}

/// Checks how the function is called. Returns the values of the new row.
fn called_row<'c>(call: &TriggerCall<'c>) -> Result<&'c [Value]> {
    let refuse = |what: &str| Err(SqlError::internal(format!("tsvector_update_trigger: {what}")));
    let trigger = call.trigger;
    if trigger.level != TriggerLevel::Row {
        return refuse("must be fired for row");
    }
    if trigger.timing != TriggerTiming::Before {
        return refuse("must be fired BEFORE event");
    }
    let is_known = matches!(call.event, TriggerEvent::Insert | TriggerEvent::Update);
    let Some(new) = call.new.filter(|_| is_known) else {
        return refuse("must be fired for INSERT or UPDATE");
    };
    if trigger.arguments.len() < 3 {
        return refuse("arguments must be tsvector_field, ts_config, text_field1, ...)");
    }
    Ok(new)
}

/// Returns the configuration that an argument names.
fn named_configuration(name: &str) -> Result<Configuration> {
    if !name.contains('.') {
        let message = format!("text search configuration name \"{name}\" must be schema-qualified");
        return Err(SqlError::new(SqlState::InvalidParameterValue, message));
    }
    configuration_named(name).ok_or_else(|| {
        let message = format!("text search configuration \"{name}\" does not exist");
        SqlError::new(SqlState::UndefinedObject, message)
    })
}

/// Returns the configuration in a column of a row.
fn configuration_in(table: &Table, name: &str, row: &[Value]) -> Result<Configuration> {
    let found = column(table, name);
    let (at, known) = found
        .ok_or_else(|| no_column(format!("configuration column \"{name}\" does not exist")))?;
    // Integers are numbers of objects without a conversion.
    let is_number = match known.data_type {
        DataType::System(of_object) => of_object.is_number(),
        other => other == DataType::Integer,
    };
    if !is_number {
        return Err(wrong_type(format!("column \"{name}\" is not of regconfig type")));
    }
    match row.get(at) {
        None | Some(Value::Null) => {
            let message = format!("configuration column \"{name}\" must not be null");
            Err(SqlError::new(SqlState::NullValueNotAllowed, message))
        }
        Some(Value::Integer(number)) => configuration(Some(&ValueRef::Oid(number.cast_unsigned()))),
        Some(value) => configuration(Some(&value.as_ref())),
    }
}

/// Runs a trigger function for a row. Returns the row to store, `None` if the row is to stay as it
/// is.
pub(crate) fn call_builtin(
    function: BuiltinTrigger,
    call: &TriggerCall<'_>,
) -> Result<Option<Vec<Value>>> {
    let by_column = match function {
        BuiltinTrigger::NamedConfiguration => false,
        BuiltinTrigger::ConfigurationColumn => true,
        BuiltinTrigger::SuppressUpdates => return changed_row(call),
    };
    update_vector(by_column, call).map(Some)
}

/// Returns the new row of an UPDATE if its bytes differ from those of the old one.
fn changed_row(call: &TriggerCall<'_>) -> Result<Option<Vec<Value>>> {
    let refuse = |what: &str| {
        let message = format!("suppress_redundant_updates_trigger: must be called {what}");
        Err(SqlError::new(SqlState::TriggerProtocolViolated, message))
    };
    let (Some(old), Some(new)) = (call.old, call.new) else { return refuse("for update") };
    if call.event != TriggerEvent::Update {
        return refuse("for update");
    }
    if call.trigger.timing != TriggerTiming::Before {
        return refuse("before update");
    }
    if call.trigger.level != TriggerLevel::Row {
        return refuse("for each row");
    }
    // Equal values may have other digits, and -0 equals 0.
    let is_same = old == new && format!("{old:?}") == format!("{new:?}");
    Ok((!is_same).then(|| new.to_vec()))
}

/// Returns the row with the vector of its texts. As in PostgreSQL, the vector stays as it is where
/// UPDATE sets none of the texts.
fn update_vector(by_column: bool, call: &TriggerCall<'_>) -> Result<Vec<Value>> {
    let (new, table) = (called_row(call)?, call.table);
    let arguments = &call.trigger.arguments;
    let [target, by, texts @ ..] = &arguments[..] else {
        return Err(SqlError::internal("a trigger without arguments"));
    };
    let (at, known) = column(table, target)
        .ok_or_else(|| no_column(format!("tsvector column \"{target}\" does not exist")))?;
    if known.data_type.encoded() != Some(EncodedKind::TsVector) {
        return Err(wrong_type(format!("column \"{target}\" is not of tsvector type")));
    }
    let configuration = match by_column {
        false => named_configuration(by)?,
        true => configuration_in(table, by, new)?,
    };
    let mut is_needed = call.event == TriggerEvent::Insert;
    let mut words = DocumentWords::new(configuration);
    for name in texts {
        let (position, known) = column(table, name)
            .ok_or_else(|| no_column(format!("column \"{name}\" does not exist")))?;
        if !matches!(known.data_type, DataType::Text | DataType::Varchar(_)) {
            return Err(wrong_type(format!("column \"{name}\" is not of a character type")));
        }
        is_needed |= call.set.contains(&position);
        if let Some(Value::Text(text)) = new.get(position) {
            words.add(text);
        }
    }
    let mut row = new.to_vec();
    if is_needed && let Some(place) = row.get_mut(at) {
        *place = words.vector().checked_value()?;
    }
    Ok(row)
}
