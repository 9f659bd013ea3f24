//! Functions of the session: settings, identity, notifications and advisory locks.

use std::time::{Duration, Instant};

use smol_str::SmolStr;

use super::super::Frame;
use super::super::frame::{AdvisoryKey, AdvisoryRequest, SessionSignal};
use super::{Builtin, integer, mismatch, stable, text, volatile};
use crate::catalog::rights::{MembershipUse, SIGNAL_BACKEND};
use crate::catalog::{BOOTSTRAP, is_temporary_schema, path_schemas};
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType::{BigInt, Boolean, Integer, Text};
use crate::types::current_moment;
use crate::types::encoded::tuple_id;
use crate::types::{
    Array, DataType, ElementType, EncodedKind, SystemType, TextSettings, Value, ValueRef,
};

/// The version of PostgreSQL that statements answer as.
pub const SERVER_VERSION: &str = "15.0 (Quickbeam)";

const LSN: DataType = EncodedKind::PgLsn.data_type();

/// Returns the position in the log: what was written is what was inserted.
fn log_position(frame: &Frame<'_>, _: &[ValueRef<'_>]) -> Result<Value> {
    Ok(tuple_id::of_log_position(frame.host()?.session().log_position()))
}

pub(super) static TABLE: &[Builtin] = &[
    stable("current_setting", &[Text], Text, |frame, v| {
        let name = text(v, 0)?;
        setting(frame, name)?.ok_or_else(|| unknown_setting(name))
    }),
    stable("current_setting", &[Text, Boolean], Text, |frame, v| {
        let (name, missing_ok) = (text(v, 0)?, boolean(v, 1)?);
        match setting(frame, name)? {
            None if !missing_ok => Err(unknown_setting(name)),
            found => Ok(found.unwrap_or(Value::Null)),
        }
    }),
    volatile("set_config", &[Text, Text, Boolean], Text, |frame, v| {
        let session = frame.host()?.session();
        session.set_setting(text(v, 0)?, text(v, 1)?, boolean(v, 2)?).map(Value::text)
    }),
    stable("current_schema", &[], NAME, |frame, _| {
        Ok(search_path(frame)?.into_iter().next().map_or(Value::Null, Value::text))
    }),
    stable("current_schemas", &[Boolean], NAMES, |frame, v| {
        let mut known = search_path(frame)?;
        if boolean(v, 0)? && !known.iter().any(|name| name == "pg_catalog") {
            known.insert(0, "pg_catalog".into());
        }
        let escaped = |name: &SmolStr| name.replace('\\', "\\\\").replace('"', "\\\"");
        let quoted: Vec<String> =
            known.iter().map(|name| format!("\"{}\"", escaped(name))).collect();
        crate::types::parse_value(
            &format!("{{{}}}", quoted.join(",")),
            NAMES,
            &TextSettings::DEFAULT,
        )
    }),
    stable("version", &[], Text, |_, _| {
        let version = SERVER_VERSION.split(' ').next().unwrap_or_default();
        let own = env!("CARGO_PKG_VERSION");
        let bits = usize::BITS;
        Ok(Value::text(format!("PostgreSQL {version} (Quickbeam {own}), {bits}-bit")))
    }),
    stable("pg_backend_pid", &[], Integer, |frame, _| {
        Ok(Value::Integer(frame.host()?.session().process_id()))
    }),
    stable("pg_my_temp_schema", &[], DataType::OID, |frame, _| {
        Ok(Value::Oid(temporary_schema(frame)?))
    }),
    stable("pg_is_other_temp_schema", &[DataType::OID], Boolean, |frame, v| {
        let Some(ValueRef::Oid(asked)) = v.first() else { return Err(mismatch()) };
        let own = temporary_schema(frame)?;
        let all = frame.host()?.snapshot().schema_oids();
        let is_temporary =
            |(name, oid): &(SmolStr, i64)| *oid == i64::from(*asked) && is_temporary_schema(name);
        Ok(Value::Boolean(*asked != own && all.iter().any(is_temporary)))
    }),
    stable("pg_trigger_depth", &[], Integer, |frame, _| {
        Ok(Value::Integer(frame.host()?.session().trigger_depth()))
    }),
    stable("pg_postmaster_start_time", &[], DataType::TimestampTz, |frame, _| {
        Ok(Value::TimestampTz(frame.host()?.session().opened()))
    }),
    stable("pg_conf_load_time", &[], DataType::TimestampTz, |frame, _| {
        Ok(Value::TimestampTz(frame.host()?.session().opened()))
    }),
    volatile("pg_current_wal_lsn", &[], LSN, log_position),
    volatile("pg_current_wal_insert_lsn", &[], LSN, log_position),
    volatile("pg_current_wal_flush_lsn", &[], LSN, log_position),
    stable("pg_last_wal_receive_lsn", &[], LSN, |_, _| Ok(Value::Null)),
    stable("pg_last_wal_replay_lsn", &[], LSN, |_, _| Ok(Value::Null)),
    stable("pg_last_xact_replay_timestamp", &[], DataType::TimestampTz, |_, _| Ok(Value::Null)),
    stable("pg_is_in_recovery", &[], Boolean, |_, _| Ok(Value::Boolean(false))),
    stable("pg_client_encoding", &[], Text, |_, _| Ok(Value::text("UTF8"))),
    stable("inet_server_addr", &[], INET, |_, _| Ok(Value::Null)),
    stable("inet_server_port", &[], Integer, |_, _| Ok(Value::Null)),
    stable("inet_client_addr", &[], INET, |_, _| Ok(Value::Null)),
    stable("inet_client_port", &[], Integer, |_, _| Ok(Value::Null)),
    volatile("pg_advisory_lock", &[BigInt], Text, |f, v| lock(f, v, SESSION)),
    volatile("pg_advisory_lock", &[Integer, Integer], Text, |f, v| lock(f, v, SESSION)),
    volatile("pg_advisory_lock_shared", &[BigInt], Text, |f, v| lock(f, v, SESSION_SHARED)),
    volatile("pg_advisory_lock_shared", &[Integer, Integer], Text, |f, v| {
        lock(f, v, SESSION_SHARED)
    }),
    volatile("pg_advisory_xact_lock", &[BigInt], Text, |f, v| lock(f, v, TRANSACTION)),
    volatile("pg_advisory_xact_lock", &[Integer, Integer], Text, |f, v| lock(f, v, TRANSACTION)),
    volatile("pg_advisory_xact_lock_shared", &[BigInt], Text, |f, v| {
        lock(f, v, TRANSACTION_SHARED)
    }),
    volatile("pg_advisory_xact_lock_shared", &[Integer, Integer], Text, |f, v| {
        lock(f, v, TRANSACTION_SHARED)
    }),
    volatile("pg_try_advisory_lock", &[BigInt], Boolean, |f, v| lock(f, v, TRY_SESSION)),
    volatile("pg_try_advisory_lock", &[Integer, Integer], Boolean, |f, v| lock(f, v, TRY_SESSION)),
    volatile("pg_try_advisory_lock_shared", &[BigInt], Boolean, |f, v| {
        lock(f, v, TRY_SESSION_SHARED)
    }),
    volatile("pg_try_advisory_lock_shared", &[Integer, Integer], Boolean, |f, v| {
        lock(f, v, TRY_SESSION_SHARED)
    }),
    volatile("pg_try_advisory_xact_lock", &[BigInt], Boolean, |f, v| lock(f, v, TRY_TRANSACTION)),
    volatile("pg_try_advisory_xact_lock", &[Integer, Integer], Boolean, |f, v| {
        lock(f, v, TRY_TRANSACTION)
    }),
    volatile("pg_try_advisory_xact_lock_shared", &[BigInt], Boolean, |f, v| {
        lock(f, v, TRY_TRANSACTION_SHARED)
    }),
    volatile("pg_try_advisory_xact_lock_shared", &[Integer, Integer], Boolean, |f, v| {
        lock(f, v, TRY_TRANSACTION_SHARED)
    }),
    volatile("pg_advisory_unlock", &[BigInt], Boolean, |f, v| unlock(f, v, EXCLUSIVE)),
    volatile("pg_advisory_unlock", &[Integer, Integer], Boolean, |f, v| unlock(f, v, EXCLUSIVE)),
    volatile("pg_advisory_unlock_shared", &[BigInt], Boolean, |f, v| unlock(f, v, SHARED)),
    volatile("pg_advisory_unlock_shared", &[Integer, Integer], Boolean, |f, v| {
        unlock(f, v, SHARED)
    }),
    volatile("pg_notify", &[Text, Text], Text, |frame, v| {
        frame.host()?.session().notify(text(v, 0)?, text(v, 1)?)?;
        Ok(Value::text(""))
    }),
    volatile("pg_blocking_pids", &[Integer], INTEGERS, |frame, v| {
        let blockers = frame.host()?.blockers(integer(v, 0)? as i32);
        let values = blockers.iter().map(|number| ValueRef::Integer(*number));
        Ok(Value::Array(Array::new(ElementType::INTEGER, values)?))
    }),
    volatile("pg_cancel_backend", &[Integer], Boolean, |f, v| {
        signal(f, integer(v, 0)?, SessionSignal::Cancel).map(Value::Boolean)
    }),
    volatile("pg_terminate_backend", &[Integer], Boolean, |f, v| {
        signal(f, integer(v, 0)?, SessionSignal::Terminate).map(Value::Boolean)
    }),
    volatile("pg_terminate_backend", &[Integer, BigInt], Boolean, |f, v| {
        terminate_and_wait(f, integer(v, 0)?, integer(v, 1)?).map(Value::Boolean)
    }),
    volatile("pg_sleep", &[DataType::Double], Text, |f, v| {
        sleep(f, v.first().and_then(|it| it.as_f64()).unwrap_or_default())
    }),
    volatile("pg_sleep_for", &[DataType::Interval], Text, |f, v| match v {
        [ValueRef::Interval(time), ..] => sleep(f, time.length() as f64 / 1e6),
        _ => Err(mismatch()),
    }),
    volatile("pg_sleep_until", &[DataType::TimestampTz], Text, |f, v| match v {
        [ValueRef::TimestampTz(moment), ..] => {
            sleep(f, moment.saturating_sub(current_moment()) as f64 / 1e6)
        }
        _ => Err(mismatch()),
    }),
    volatile("quickbeam_backup", &[Text], BigInt, |frame, v| {
        let bytes = frame.host()?.session().backup(text(v, 0)?)?;
        Ok(Value::BigInt(i64::try_from(bytes).unwrap_or(i64::MAX)))
    }),
    volatile("quickbeam_control", &[Text, Text], Text, |frame, v| {
        frame.host()?.session().control(text(v, 0)?, text(v, 1)?).map(Value::text)
    }),
    volatile("pg_advisory_unlock_all", &[], Text, |frame, _| {
        frame.host()?.session().unlock_all_advisory();
        Ok(Value::text(""))
    }),
];

/// Waits for a number of seconds; one below zero is zero.
fn sleep(frame: &Frame<'_>, seconds: f64) -> Result<Value> {
    let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
    frame.host()?.session().sleep(time)?;
    Ok(Value::text(""))
}

/// Signals a session, if the role may, and returns whether there is one.
fn signal(frame: &Frame<'_>, number: i64, signal: SessionSignal) -> Result<bool> {
    let (host, number) = (frame.host()?, number as i32);
    let (session, snapshot) = (host.session(), host.snapshot());
    let known = session.activities().into_iter().find(|one| one.number == number);
    let Some(known) = known else {
        session.warn(&format!("PID {number} is not a PostgreSQL backend process"));
        return Ok(false);
    };
    let refuse = |message: String| Err(SqlError::new(SqlState::InsufficientPrivilege, message));
    let target = snapshot.role_named(&known.user).unwrap_or(BOOTSTRAP);
    let role = session.role();
    if !snapshot.is_superuser(role) {
        let (verb, what, doing) = match signal {
            SessionSignal::Cancel => ("cancel", "query", "whose query is being canceled"),
            SessionSignal::Terminate => {
                ("terminate", "process", "whose process is being terminated")
            }
        };
        if snapshot.is_superuser(target) {
            return refuse(format!("must be a superuser to {verb} superuser {what}"));
        }
        let roles = snapshot.roles_of(role, MembershipUse::Inherited);
        if !roles.contains(&target) && !roles.contains(&SIGNAL_BACKEND) {
            return refuse(format!(
                "must be a member of the role {doing} or member of pg_signal_backend"
            ));
        }
    }
    Ok(session.signal(number, signal))
}

/// Ends a session, and waits for that as long as the time in milliseconds.
fn terminate_and_wait(frame: &Frame<'_>, number: i64, patience: i64) -> Result<bool> {
    let Ok(milliseconds) = u64::try_from(patience) else {
        let message = "\"timeout\" must not be negative";
        return Err(SqlError::new(SqlState::NumericValueOutOfRange, message));
    };
    let is_signaled = signal(frame, number, SessionSignal::Terminate)?;
    if !is_signaled || milliseconds == 0 {
        return Ok(is_signaled);
    }
    let session = frame.host()?.session();
    let patience = Duration::from_millis(milliseconds);
    let began = Instant::now();
    while session.activities().iter().any(|one| i64::from(one.number) == number) {
        if began.elapsed() >= patience {
            session.warn(&format!(
                "backend with PID {number} did not terminate within {milliseconds} milliseconds"
            ));
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(true)
}

/// Returns the schemas of the session's path that exist.
pub(super) fn search_path(frame: &Frame<'_>) -> Result<Vec<SmolStr>> {
    let host = frame.host()?;
    let path = host.session().setting("search_path")?.unwrap_or_default();
    let snapshot = host.snapshot();
    let mut known = path_schemas(&path);
    known.retain(|name| snapshot.has_schema(name));
    Ok(known)
}

/// Returns the schemas in which names are looked up: those of the path, and before them that of
/// temporary objects.
pub(super) fn lookup_path(frame: &Frame<'_>) -> Result<Vec<SmolStr>> {
    let host = frame.host()?;
    let mut path = search_path(frame)?;
    if let Some(own) = host.session().temporary_schema()
        && host.snapshot().has_schema(&own)
    {
        path.insert(0, own);
    }
    Ok(path)
}

/// Returns the number of the schema of the session's temporary objects, 0 if there is none.
fn temporary_schema(frame: &Frame<'_>) -> Result<u32> {
    let host = frame.host()?;
    let own = host.session().temporary_schema().filter(|own| host.snapshot().has_schema(own));
    Ok(own.map_or(0, |own| host.snapshot().schema_oid(&own) as u32))
}

/// The type INET.
const INET: DataType = EncodedKind::Inet.data_type();

/// The type `name`.
const NAME: DataType = DataType::System(SystemType::Name);

/// The type `integer[]`.
const INTEGERS: DataType = DataType::Array(ElementType::INTEGER);

/// The type `name[]`.
const NAMES: DataType = DataType::Array(ElementType::NAME);

const EXCLUSIVE: bool = false;
const SHARED: bool = true;

fn boolean(arguments: &[ValueRef<'_>], at: usize) -> Result<bool> {
    match arguments.get(at) {
        Some(ValueRef::Boolean(value)) => Ok(*value),
        _ => Err(mismatch()),
    }
}

/// Returns the value of a setting, or `None` if there is no such setting.
fn setting(frame: &Frame<'_>, name: &str) -> Result<Option<Value>> {
    Ok(frame.host()?.session().setting(name)?.map(Value::text))
}

#[cold]
fn unknown_setting(name: &str) -> SqlError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    SqlError::new(SqlState::UndefinedObject, message)
}

/// Returns the lock that one or two arguments name.
fn key(arguments: &[ValueRef<'_>]) -> Result<AdvisoryKey> {
    match arguments {
        [_] => Ok(AdvisoryKey::One(integer(arguments, 0)?)),
        [ValueRef::Integer(first), ValueRef::Integer(second)] => {
            Ok(AdvisoryKey::Two(*first, *second))
        }
        _ => Err(mismatch()),
    }
}

/// How an advisory lock is taken.
#[derive(Clone, Copy)]
struct LockMode {
    is_shared: bool,
    waits: bool,
    in_transaction: bool,
}

const SESSION: LockMode = LockMode { is_shared: EXCLUSIVE, waits: true, in_transaction: false };
const SESSION_SHARED: LockMode = LockMode { is_shared: SHARED, ..SESSION };
const TRANSACTION: LockMode = LockMode { in_transaction: true, ..SESSION };
const TRANSACTION_SHARED: LockMode = LockMode { is_shared: SHARED, ..TRANSACTION };
const TRY_SESSION: LockMode = LockMode { waits: false, ..SESSION };
const TRY_SESSION_SHARED: LockMode = LockMode { is_shared: SHARED, ..TRY_SESSION };
const TRY_TRANSACTION: LockMode = LockMode { waits: false, ..TRANSACTION };
const TRY_TRANSACTION_SHARED: LockMode = LockMode { is_shared: SHARED, ..TRY_TRANSACTION };

/// Takes an advisory lock. Returns an empty text if the request waits, like a function without a
/// result.
fn lock(frame: &Frame<'_>, arguments: &[ValueRef<'_>], mode: LockMode) -> Result<Value> {
    let LockMode { is_shared, waits, in_transaction } = mode;
    let request = AdvisoryRequest { key: key(arguments)?, is_shared, waits, in_transaction };
    let done = frame.host()?.session().lock_advisory(request)?;
    Ok(if waits { Value::text("") } else { Value::Boolean(done) })
}

fn unlock(frame: &Frame<'_>, arguments: &[ValueRef<'_>], is_shared: bool) -> Result<Value> {
    let session = frame.host()?.session();
    Ok(Value::Boolean(session.unlock_advisory(key(arguments)?, is_shared)))
}
