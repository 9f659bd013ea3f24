//! Statements that steer: BEGIN, COMMIT, ROLLBACK, SAVEPOINT, SET, SHOW.

use std::sync::Arc;
use std::time::Duration;

use quickbeam::{Durability, Isolation};
use smol_str::SmolStr;
use sqlparser::ast::{
    ContextModifier, Expr, Interval, Set, SetSessionAuthorizationParamKind, Statement as Ast,
    TransactionAccessMode, TransactionIsolationLevel, TransactionMode, Value as Literal,
};

use crate::bind::fold;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::Command;
use crate::plan::ExecutionMode;
use crate::types::{IntervalFields, IntervalStyle, SECOND, SessionZone, parse_interval};

/// A statement that steers.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    Begin(Settings),
    /// COMMIT; true: AND CHAIN.
    Commit(bool),
    /// ROLLBACK; true: AND CHAIN.
    Rollback(bool),
    Savepoint(SmolStr),
    RollbackTo(SmolStr),
    Release(SmolStr),
    /// SET TRANSACTION: for the transaction under way.
    Transaction(Settings),
    /// SET, of the session; true: LOCAL.
    Set(Settings, bool),
    /// SET of a setting; `None`: to its default; true: LOCAL.
    Assign(SmolStr, Option<String>, bool),
    /// A session or maintenance command.
    Command(Arc<Command>),
}

/// Settings; `None`: as they were.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Settings {
    pub isolation: Option<Isolation>,
    pub durability: Option<Durability>,
    pub lock_timeout: Option<Duration>,
    pub read_only: Option<bool>,
    pub memory: Option<usize>,
    pub way: Option<ExecutionMode>,
}

impl Settings {
    /// These, and where they say nothing the others.
    pub fn or(self, others: Settings) -> Settings {
        Settings {
            isolation: self.isolation.or(others.isolation),
            durability: self.durability.or(others.durability),
            lock_timeout: self.lock_timeout.or(others.lock_timeout),
            read_only: self.read_only.or(others.read_only),
            memory: self.memory.or(others.memory),
            way: self.way.or(others.way),
        }
    }

    fn set_modes(&mut self, modes: &[TransactionMode]) {
        for mode in modes {
            match mode {
                TransactionMode::AccessMode(TransactionAccessMode::ReadOnly) => {
                    self.read_only = Some(true)
                }
                TransactionMode::AccessMode(TransactionAccessMode::ReadWrite) => {
                    self.read_only = Some(false)
                }
                TransactionMode::IsolationLevel(level) => {
                    self.isolation = Some(match level {
                        TransactionIsolationLevel::ReadUncommitted
                        | TransactionIsolationLevel::ReadCommitted => Isolation::ReadCommitted,
                        TransactionIsolationLevel::RepeatableRead
                        | TransactionIsolationLevel::Snapshot => Isolation::Snapshot,
                        TransactionIsolationLevel::Serializable => Isolation::Serializable,
                    });
                }
            }
        }
    }

    /// Gives the engine's setting of that name the value that it has in `first`.
    pub fn reset(&mut self, name: &str, first: Settings) {
        match name {
            "durability" => self.durability = first.durability,
            "transaction_isolation" | "default_transaction_isolation" => {
                self.isolation = first.isolation;
            }
            "transaction_read_only" | "default_transaction_read_only" => {
                self.read_only = first.read_only;
            }
            "lock_timeout" => self.lock_timeout = first.lock_timeout,
            "execution_mode" => self.way = first.way,
            _ => self.memory = first.memory,
        }
    }

    /// Sets what is known by that name; false when nothing is.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool> {
        let invalid = || {
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
            SqlError::new(SqlState::InvalidParameterValue, message)
        };
        match name {
            "durability" => self.durability = Some(value.parse().map_err(|_| invalid())?),
            "transaction_isolation" | "default_transaction_isolation" => {
                self.isolation = Some(match value {
                    "serializable" => Isolation::Serializable,
                    "repeatable read" | "snapshot" => Isolation::Snapshot,
                    "read committed" | "read uncommitted" => Isolation::ReadCommitted,
                    _ => return Err(invalid()),
                });
            }
            "transaction_read_only" | "default_transaction_read_only" => {
                self.read_only = Some(match value {
                    "on" | "true" | "1" => true,
                    "off" | "false" | "0" => false,
                    _ => return Err(invalid()),
                });
            }
            "lock_timeout" => self.lock_timeout = Some(duration(value).ok_or_else(invalid)?),
            "execution_mode" => {
                self.way = Some(match value {
                    "auto" => ExecutionMode::Auto,
                    "row" => ExecutionMode::Row,
                    "vectorized" => ExecutionMode::Vectorized,
                    _ => return Err(invalid()),
                });
            }
            "work_mem" => self.memory = Some(bytes(value).ok_or_else(invalid)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A number of milliseconds, or with a unit.
fn duration(value: &str) -> Option<Duration> {
    let (number, unit) = split_unit(value)?;
    let millis = match unit {
        "" | "ms" => number,
        "s" => number.checked_mul(1_000)?,
        "min" => number.checked_mul(60_000)?,
        _ => return None,
    };
    Some(Duration::from_millis(millis))
}

/// A number of kilobytes, or with a unit.
fn bytes(value: &str) -> Option<usize> {
    let (number, unit) = split_unit(value)?;
    let factor = match unit {
        "" | "kb" => 1 << 10,
        "b" => 1,
        "mb" => 1 << 20,
        "gb" => 1 << 30,
        _ => return None,
    };
    usize::try_from(number.checked_mul(factor)?).ok()
}

fn split_unit(value: &str) -> Option<(u64, &str)> {
    let end = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    Some((value[..end].parse().ok()?, value[end..].trim()))
}

/// Returns the value that SET gives a setting; `None` for DEFAULT.
fn value_of(name: &str, values: &[Expr]) -> Option<String> {
    if let [Expr::Identifier(only)] = values
        && only.quote_style.is_none()
        && (only.value.eq_ignore_ascii_case("default")
            || name == "timezone" && only.value.eq_ignore_ascii_case("local"))
    {
        return None;
    }
    // The names of schemas are quoted where it is needed.
    let is_path = name.eq_ignore_ascii_case("search_path");
    let text = |value: &Expr| {
        let text = text_of(value);
        if is_path { quoted(&text) } else { text }
    };
    Some(values.iter().map(text).collect::<Vec<_>>().join(", "))
}

fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if begins && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn text_of(value: &Expr) -> String {
    match value {
        Expr::Value(value) => match &value.value {
            Literal::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        Expr::Identifier(name) => fold(name).to_string(),
        other => other.to_string(),
    }
}

/// The steering that a statement does, if it does any.
pub(crate) fn control_of(parsed: &Ast) -> Result<Option<Control>> {
    Ok(Some(match parsed {
        Ast::StartTransaction { modes, statements, .. } => {
            if !statements.is_empty() {
                return Err(SqlError::unsupported("a block of statements"));
            }
            let mut settings = Settings::default();
            settings.set_modes(modes);
            Control::Begin(settings)
        }
        Ast::Commit { chain, .. } => Control::Commit(*chain),
        Ast::Rollback { chain, savepoint: None } => Control::Rollback(*chain),
        Ast::Rollback { savepoint: Some(name), .. } => Control::RollbackTo(fold(name)),
        Ast::Savepoint { name } => Control::Savepoint(fold(name)),
        Ast::ReleaseSavepoint { name } => Control::Release(fold(name)),
        Ast::Set(set) => set_of(set)?,
        _ => return Ok(None),
    }))
}

/// Returns the name of the zone at an interval from UTC.
fn zone_at(offset: &Interval) -> Result<String> {
    let text = text_of(&offset.value);
    let last = offset.last_field.as_ref().map(ToString::to_string);
    let first = offset.leading_field.as_ref().map(ToString::to_string);
    let fields = first.and_then(|first| IntervalFields::between(&first, last.as_deref()));
    let fields = fields.unwrap_or(IntervalFields::All);
    let read = parse_interval(&text, fields, IntervalStyle::Postgres)?;
    let invalid = |what: &str| {
        let message = format!("invalid value for parameter \"TimeZone\": \"{offset}\"");
        SqlError::new(SqlState::InvalidParameterValue, message).with_detail(what)
    };
    if read.months != 0 || read.days != 0 {
        return Err(invalid("Cannot specify months or days in time zone interval."));
    }
    let east = i32::try_from(read.micros / SECOND).ok().filter(|east| east.abs() < 168 * 3600);
    let east = east.ok_or_else(|| invalid("UTC timezone offset is out of range."))?;
    Ok(SessionZone::of_offset(east).1.to_string())
}

fn set_of(set: &Set) -> Result<Control> {
    let mut settings = Settings::default();
    match set {
        Set::SetTransaction { modes, session, snapshot: None } => {
            settings.set_modes(modes);
            Ok(if *session {
                Control::Set(settings, false)
            } else {
                Control::Transaction(settings)
            })
        }
        Set::SingleAssignment { scope, variable, values, .. } => {
            let parts: Vec<_> = variable.0.iter().filter_map(|part| part.as_ident()).collect();
            let name =
                SmolStr::from(parts.iter().map(|part| fold(part)).collect::<Vec<_>>().join("."));
            let is_local = matches!(scope, Some(ContextModifier::Local));
            Ok(Control::Assign(name.clone(), value_of(&name, values), is_local))
        }
        Set::SetNames { charset_name, collation_name: None } => {
            let value = Some(charset_name.value.clone());
            Ok(Control::Assign("client_encoding".into(), value, false))
        }
        Set::SetNamesDefault {} => Ok(Control::Assign("client_encoding".into(), None, false)),
        Set::SetTimeZone { local, value: Expr::Interval(offset) } => {
            Ok(Control::Assign("timezone".into(), Some(zone_at(offset)?), *local))
        }
        Set::SetTimeZone { local, value } => {
            let values = std::slice::from_ref(value);
            Ok(Control::Assign("timezone".into(), value_of("timezone", values), *local))
        }
        Set::SetRole { context_modifier, role_name } => {
            let name = role_name.as_ref().map(|name| fold(name).to_string());
            let is_local = matches!(context_modifier, Some(ContextModifier::Local));
            Ok(Control::Assign("role".into(), name.or_else(|| Some("none".to_owned())), is_local))
        }
        Set::SetSessionAuthorization(authorization) => {
            let name = match &authorization.kind {
                SetSessionAuthorizationParamKind::Default => None,
                SetSessionAuthorizationParamKind::User(name) => Some(fold(name).to_string()),
            };
            let is_local = authorization.scope == ContextModifier::Local;
            Ok(Control::Assign("session_authorization".into(), name, is_local))
        }
        other => Err(SqlError::unsupported(format!("{other}"))),
    }
}
