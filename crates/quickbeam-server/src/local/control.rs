//! Commands that inspect and maintain an environment, for programs that reach it by the socket in
//! its directory. They come as calls of `quickbeam_control(COMMAND, ARGUMENT)` and answer in JSON.
//!
//! Above: sessions on that socket. Below: the environment and its tables.

use std::path::Path;

use quickbeam_sql::{Result, SqlDatabase, SqlError, SqlState};
use serde::Serialize;
use serde_json::{Value, json};

/// Runs a command.
pub fn run(database: &SqlDatabase, command: &str, argument: &str) -> Result<String> {
    let environment = database.environment();
    let answer = match command {
        "statistics" => to_json(&environment.statistics())?,
        "verify" => verify(database)?,
        "backup" => {
            let into = Path::new(argument);
            // The working directory is the server's, so a relative name would mislead.
            if !into.is_absolute() {
                return Err(invalid(format!("\"{argument}\" is not an absolute path")));
            }
            to_json(&environment.backup_to(into)?)?
        }
        "databases" => {
            let names = environment.databases()?;
            let described = names.iter().map(|name| {
                let method = environment.open_database(name)?.access_method().to_string();
                Ok(json!({ "name": name, "access_method": method }))
            });
            Value::Array(described.collect::<Result<_>>()?)
        }
        other => return Err(invalid(format!("there is no command \"{other}\""))),
    };
    Ok(answer.to_string())
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

fn to_json(report: &impl Serialize) -> Result<Value> {
    serde_json::to_value(report).map_err(|error| SqlError::internal(error.to_string()))
}

/// Verifies pages, trees and tables, as `quickbeam verify` does.
fn verify(database: &SqlDatabase) -> Result<Value> {
    let mut verified = database.environment().verify()?;
    let tables = database.verify()?;
    verified.complaints.extend(tables.complaints);
    let mut value = to_json(&verified)?;
    if let Some(fields) = value.as_object_mut() {
        // Complaints stay the last field.
        let complaints = fields.remove("complaints");
        let counts = json!({
            "tables": tables.tables,
            "rows": tables.rows,
            "index_entries": tables.entries,
        });
        fields.insert("sql".to_owned(), counts);
        fields.extend(complaints.map(|complaints| ("complaints".to_owned(), complaints)));
    }
    Ok(value)
}
