//! Positions in a log: `pg_lsn`.

use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, NUMERIC, decimal, invalid, mismatch, strict};
use crate::types::encoded::tuple_id;
use crate::types::{DataType, Decimal, EncodedKind, Value, ValueRef};

const LSN: DataType = EncodedKind::PgLsn.data_type();

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("-", &[LSN, LSN], NUMERIC, distance),
    strict("pg_wal_lsn_diff", &[LSN, LSN], NUMERIC, distance),
    strict("+", &[LSN, NUMERIC], LSN, |v| moved(v, 0, &step(v, 1, "add NaN to")?)),
    strict("+", &[NUMERIC, LSN], LSN, |v| moved(v, 1, &step(v, 0, "add NaN to")?)),
    strict("-", &[LSN, NUMERIC], LSN, |v| moved(v, 0, &step(v, 1, "subtract NaN from")?.negate())),
    strict("pg_lsn", &[NUMERIC], LSN, |v| position(&step(v, 0, "convert NaN to")?)),
];

fn number(arguments: &[ValueRef<'_>], at: usize) -> Result<Decimal> {
    match arguments.get(at) {
        Some(ValueRef::Encoded(_, bytes)) => {
            let number = tuple_id::number(bytes).ok_or_else(mismatch)?;
            Decimal::of_integer(number.into(), 0)
        }
        _ => Err(mismatch()),
    }
}

/// Returns a number that is not NaN.
fn step(arguments: &[ValueRef<'_>], at: usize, what: &str) -> Result<Decimal> {
    let number = decimal(arguments, at)?;
    if number.is_nan() {
        let message = format!("cannot {what} pg_lsn");
        return Err(SqlError::new(SqlState::FeatureNotSupported, message));
    }
    Ok(number)
}

fn position(number: &Decimal) -> Result<Value> {
    let whole = number.round(0)?;
    let number = match whole.is_finite() && whole.signum() >= 0 {
        true => whole.to_string().parse::<u64>().ok(),
        false => None,
    };
    number.map(tuple_id::of_log_position).ok_or_else(|| invalid("pg_lsn out of range"))
}

fn moved(arguments: &[ValueRef<'_>], at: usize, step: &Decimal) -> Result<Value> {
    position(&number(arguments, at)?.checked_add(step)?)
}

fn distance(arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(number(arguments, 0)?.checked_sub(&number(arguments, 1)?)?.into())
}
