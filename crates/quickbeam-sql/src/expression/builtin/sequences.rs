//! Functions of sequences whose names a statement computes. The binder resolves names in literals.

use super::super::Frame;
use super::{Builtin, integer, mismatch, volatile};
use crate::catalog::describe::Described;
use crate::catalog::rights::denied;
use crate::catalog::system::system_tables;
use crate::catalog::{AclKind, Privileges};
use crate::error::{Result, SqlError, SqlState};
use crate::schema::errors::is_not;
use crate::types::DataType::{BigInt, Boolean};
use crate::types::{DataType, SystemType, Value, ValueRef};

const REGCLASS: DataType = DataType::System(SystemType::Regclass);

/// A value that `setval` sets was given out already, unless it says otherwise.
const CALLED: bool = true;

pub(super) static TABLE: &[Builtin] = &[
    volatile("nextval", &[REGCLASS], BigInt, |frame, v| {
        let sequence = sequence(frame, v, Privileges::USAGE.and(Privileges::UPDATE))?;
        frame.host()?.next_value(sequence).map(Value::BigInt)
    }),
    volatile("currval", &[REGCLASS], BigInt, |frame, v| {
        let sequence = sequence(frame, v, Privileges::USAGE.and(Privileges::SELECT))?;
        frame.host()?.current_value(Some(sequence)).map(Value::BigInt)
    }),
    volatile("setval", &[REGCLASS, BigInt], BigInt, |frame, v| set(frame, v, CALLED)),
    volatile("setval", &[REGCLASS, BigInt, Boolean], BigInt, |frame, v| match v.get(2) {
        Some(ValueRef::Boolean(is_called)) => set(frame, v, *is_called),
        _ => Err(mismatch()),
    }),
    volatile("pg_sequence_last_value", &[REGCLASS], BigInt, |frame, v| {
        let sequence = sequence(frame, v, Privileges::USAGE.and(Privileges::SELECT))?;
        let state = frame.host()?.sequence_state(sequence)?;
        Ok(if state.is_called { Value::BigInt(state.last) } else { Value::Null })
    }),
];

fn set(frame: &Frame<'_>, arguments: &[ValueRef<'_>], is_called: bool) -> Result<Value> {
    let sequence = sequence(frame, arguments, Privileges::UPDATE)?;
    let value = integer(arguments, 1)?;
    frame.host()?.set_value(sequence, value, is_called)?;
    Ok(Value::BigInt(value))
}

/// Returns the number of the sequence that the first argument names, on which the role has one of
/// these privileges.
fn sequence(frame: &Frame<'_>, arguments: &[ValueRef<'_>], wanted: Privileges) -> Result<u32> {
    let oid = integer(arguments, 0)?;
    let host = frame.host()?;
    let snapshot = host.snapshot();
    let found = match snapshot.relation_of(oid) {
        Some(Described::Sequence(found)) => found,
        Some(other) => return Err(is_not(other.name(), "a sequence")),
        None => {
            if let Some(table) = system_tables().find(|table| table.oid == oid) {
                return Err(is_not(table.name, "a sequence"));
            }
            let message = format!("could not open relation with OID {oid}");
            return Err(SqlError::new(SqlState::UndefinedTable, message));
        }
    };
    let rights = snapshot.rights(host.session().role(), found.id, AclKind::Sequence);
    match rights.within(wanted).is_empty() {
        true => Err(denied("sequence", &found.name)),
        false => Ok(found.id.0),
    }
}
