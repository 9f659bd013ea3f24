//! Builds the indexes of salvaged tables again.
//!
//! A salvage copies rows and the entries of indexes separately. Where some of either are lost, an
//! index has entries without rows, or rows have no entries. The rows are what counts.

use std::path::Path;

use quickbeam::Environment;
use quickbeam_sql::SqlDatabase;
use quickbeam_sql::catalog::shown_name;
use serde_json::{Value, json};

use crate::place::existing;

/// Builds the indexes of all tables in `directory` again. Adds to the report the indexes that were
/// built, and those that were not with the reason: two rows with one key, for one.
pub fn rebuild_indexes(directory: &Path, report: &mut Value) -> anyhow::Result<()> {
    let environment = Environment::open(directory, existing())?;
    let database = SqlDatabase::attach(&environment)?;
    let snapshot = environment.begin_read()?;
    let catalog = database.catalog().snapshot(&snapshot)?;
    drop(snapshot);
    let connection = database.connect();
    let (mut rebuilt, mut problems) = (Vec::new(), Vec::new());
    for table in catalog.tables() {
        let table_name = shown_name(&table.lookup_name());
        for index in &table.indexes {
            let name = format!("{}.{}", quoted(&table.schema), quoted(&index.name));
            match connection.execute(&format!("REINDEX INDEX {name}"), &[]) {
                Ok(_) => rebuilt.push(index.name.to_string()),
                Err(error) => problems.push(json!({
                    "table": table_name,
                    "index": index.name.as_str(),
                    "problem": error.to_string(),
                })),
            }
        }
    }
    drop((connection, catalog, database));
    environment.close()?;
    report["rebuilt_indexes"] = rebuilt.into();
    if !problems.is_empty() {
        report["indexes_with_problems"] = problems.into();
    }
    Ok(())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
