//! Places of rows, and numbers of transactions.

use super::super::Frame;
use super::{Builtin, Implementation, mismatch, stable};
use crate::error::Result;
use crate::schema::KeyPart;
use crate::types::DataType::BigInt;
use crate::types::encoded::tuple_id;
use crate::types::{DataType, EncodedKind, Value, ValueRef};

/// The function that makes the `ctid` of a row of its key.
pub const ROW_CTID: &str = "row ctid";

const TID: DataType = EncodedKind::Tid.data_type();
const XID8: DataType = EncodedKind::Xid8.data_type();

pub(super) static TABLE: &[Builtin] = &[
    Builtin {
        is_variadic: true,
        ..Builtin::new(ROW_CTID, &[], TID, Implementation::NullTolerant(row_ctid))
    },
    stable("txid_current", &[], BigInt, |frame, _| number(frame).map(Value::BigInt)),
    stable("txid_current_if_assigned", &[], BigInt, |frame, _| {
        Ok(assigned(frame)?.map_or(Value::Null, Value::BigInt))
    }),
    stable("pg_current_xact_id", &[], XID8, |frame, _| {
        number(frame).map(|number| tuple_id::of_transaction(number.cast_unsigned()))
    }),
    stable("pg_current_xact_id_if_assigned", &[], XID8, |frame, _| {
        let assigned = assigned(frame)?.map(i64::cast_unsigned);
        Ok(assigned.map_or(Value::Null, tuple_id::of_transaction))
    }),
];

/// Returns the place of the row with a key; NULL if there is no row.
fn row_ctid(key: &[ValueRef<'_>]) -> Result<Value> {
    if key.first().is_none_or(|first| first.is_null()) {
        return Ok(Value::Null);
    }
    if let [only] = key
        && let Some(place) = only.as_i64().and_then(tuple_id::of_number)
    {
        return Ok(place);
    }
    let mut bytes = Vec::new();
    for value in key {
        let data_type = value.data_type().ok_or_else(mismatch)?;
        KeyPart::of_type(data_type).encode(&mut bytes, *value)?;
    }
    Ok(tuple_id::of_key(&bytes))
}

fn number(frame: &Frame<'_>) -> Result<i64> {
    frame.transaction_number().map(u64::cast_signed)
}

/// Returns the number of the transaction if it has one, or has changed something.
fn assigned(frame: &Frame<'_>) -> Result<Option<i64>> {
    let known = frame.clock.and_then(|clock| clock.transaction_number());
    if known.is_none() && !frame.host()?.session().has_changed() {
        return Ok(None);
    }
    number(frame).map(Some)
}
