//! Builds the indexes of salvaged tables again.
//!
//! A salvage copies rows and the entries of indexes separately. Where some of either are lost, an
//! index has entries without rows, or rows have no entries. The rows are what counts.

use quickbeam::Environment;
use quickbeam_sql::Result;
use quickbeam_sql::catalog::{Catalog, CatalogSnapshot, shown_name};
use serde_json::{Value, json};

/// Builds the indexes of all tables again. Adds to the report the indexes that were built, and
/// those that were not with the reason: two rows with one key, for one.
pub fn rebuild_indexes(
    environment: &Environment,
    catalog: &Catalog,
    tables: &CatalogSnapshot,
    report: &mut Value,
) {
    let (mut rebuilt, mut problems) = (Vec::new(), Vec::new());
    for table in tables.tables() {
        for index in &table.indexes {
            let done: Result<()> = environment.transact_with(|transaction| {
                catalog.rebuild_indexes(transaction, table.id, Some(index.id))
            });
            match done {
                Ok(()) => rebuilt.push(index.name.to_string()),
                Err(error) => problems.push(json!({
                    "table": shown_name(&table.lookup_name()),
                    "index": index.name.as_str(),
                    "problem": error.to_string(),
                })),
            }
        }
    }
    report["rebuilt_indexes"] = rebuilt.into();
    if !problems.is_empty() {
        report["indexes_with_problems"] = problems.into();
    }
}
