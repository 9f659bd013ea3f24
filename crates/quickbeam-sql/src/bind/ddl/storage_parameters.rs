//! Storage parameters: `WITH (fillfactor = 70)` of tables and indexes.
//!
//! Their names and ranges are PostgreSQL's. They have no effect: the engine fills its pages by
//! itself, and removes old versions without a vacuum.

use sqlparser::ast::{self, BinaryOperator, CreateTableOptions, SqlOption};

use crate::catalog::Method;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DataType, TextSettings, parse_value};

/// The parameters of tables besides `fillfactor`.
const OF_TABLES: [&str; 21] = [
    "autovacuum_analyze_scale_factor",
    "autovacuum_analyze_threshold",
    "autovacuum_enabled",
    "autovacuum_freeze_max_age",
    "autovacuum_freeze_min_age",
    "autovacuum_freeze_table_age",
    "autovacuum_multixact_freeze_max_age",
    "autovacuum_multixact_freeze_min_age",
    "autovacuum_multixact_freeze_table_age",
    "autovacuum_vacuum_cost_delay",
    "autovacuum_vacuum_cost_limit",
    "autovacuum_vacuum_insert_scale_factor",
    "autovacuum_vacuum_insert_threshold",
    "autovacuum_vacuum_scale_factor",
    "autovacuum_vacuum_threshold",
    "log_autovacuum_min_duration",
    "parallel_workers",
    "toast_tuple_target",
    "user_catalog_table",
    "vacuum_index_cleanup",
    "vacuum_truncate",
];

/// Checks the parameter `fillfactor`: a percentage from 10 to 100.
fn check_fill_factor(value: &str) -> Result<()> {
    let invalid = |message: String| SqlError::new(SqlState::InvalidParameterValue, message);
    let value = value.trim_matches('\'');
    let percentage: i64 = value.parse().map_err(|_| {
        invalid(format!("invalid value for integer option \"fillfactor\": {value}"))
    })?;
    if !(10..=100).contains(&percentage) {
        let message = format!("value {value} out of bounds for option \"fillfactor\"");
        return Err(invalid(message).with_detail("Valid values are between \"10\" and \"100\"."));
    }
    Ok(())
}

#[cold]
fn unrecognized(name: &str) -> SqlError {
    let message = format!("unrecognized parameter \"{name}\"");
    SqlError::new(SqlState::InvalidParameterValue, message)
}

/// Checks the parameters of a table.
pub(super) fn check_parameters(options: &[SqlOption]) -> Result<()> {
    for option in options {
        match option {
            SqlOption::KeyValue { key, value } => {
                let name = key.value.to_lowercase();
                match &name[..] {
                    "fillfactor" => check_fill_factor(&value.to_string())?,
                    // Dumps of older releases of PostgreSQL have it.
                    "oids"
                        if value.to_string().trim_matches('\'').eq_ignore_ascii_case("false") => {}
                    "oids" => {
                        let message = "tables declared WITH OIDS are not supported";
                        return Err(SqlError::new(SqlState::FeatureNotSupported, message));
                    }
                    name if OF_TABLES.contains(&name) => {}
                    name => return Err(unrecognized(name)),
                }
            }
            SqlOption::Ident(name) if OF_TABLES.contains(&&name.value.to_lowercase()[..]) => {}
            SqlOption::Ident(name) => return Err(unrecognized(&name.value.to_lowercase())),
            other => return Err(SqlError::unsupported(format!("the table option {other}"))),
        }
    }
    Ok(())
}

/// Checks the options of CREATE TABLE.
pub(super) fn check_table_parameters(options: &CreateTableOptions) -> Result<()> {
    match options {
        CreateTableOptions::None => Ok(()),
        CreateTableOptions::With(options) => check_parameters(options),
        _ => Err(SqlError::unsupported("this form of CREATE TABLE")),
    }
}

/// Returns the name and the value of a parameter of an index.
fn parameter(option: &ast::Expr) -> (String, Option<String>) {
    match option {
        ast::Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
            (left.to_string(), Some(right.to_string()))
        }
        other => (other.to_string(), None),
    }
}

/// Checks the parameters of an inverted index.
pub(super) fn check_inverted_parameters(options: &[ast::Expr]) -> Result<()> {
    let invalid = |message: String| SqlError::new(SqlState::InvalidParameterValue, message);
    for option in options {
        let (name, value) = parameter(option);
        let value = value.as_deref().unwrap_or("true").trim_matches('\'');
        match &name.to_lowercase()[..] {
            "fastupdate" => {
                parse_value(value, DataType::Boolean, &TextSettings::DEFAULT).map_err(|_| {
                    let what = "invalid value for boolean option \"fastupdate\"";
                    invalid(format!("{what}: {value}"))
                })?;
            }
            name @ "gin_pending_list_limit" => {
                let number: i64 = value.parse().map_err(|_| {
                    invalid(format!("invalid value for integer option \"{name}\": {value}"))
                })?;
                if !(64..=i64::from(i32::MAX)).contains(&number) {
                    let message = format!("value {value} out of bounds for option \"{name}\"");
                    let detail = "Valid values are between \"64\" and \"2147483647\".";
                    return Err(invalid(message).with_detail(detail));
                }
            }
            name => return Err(unrecognized(name)),
        }
    }
    Ok(())
}

/// Checks the parameters of an index.
pub(super) fn check_index_parameters(options: &[ast::Expr], method: Method) -> Result<()> {
    for option in options {
        let (name, value) = parameter(option);
        match (&name.to_lowercase()[..], method) {
            ("fillfactor", _) => check_fill_factor(value.as_deref().unwrap_or("true"))?,
            ("deduplicate_items", Method::Range) => {}
            (name, _) => return Err(unrecognized(name)),
        }
    }
    Ok(())
}
