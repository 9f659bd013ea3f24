//! Names the tables, indexes and keys of a salvage report.
//!
//! The engine reports its own databases and key bytes. This module adds the fields `table`,
//! `index`, `from_key` and `to_key`, which it reads in the catalog of the salvaged environment.

use quickbeam_sql::catalog::{CatalogSnapshot, ObjectId, shown_name};
use quickbeam_sql::table::KeySpec;
use serde_json::Value;

use crate::place::TABLES;

/// What a database of the engine stores.
struct Stored {
    table: String,
    index: Option<String>,
    keys: KeySpec,
}

/// The lists of a report that name databases.
const LISTS: [&str; 3] = ["databases", "lost_ranges", "lost_values"];

/// Returns whether the report of a salvage names a table.
pub fn has_tables(report: &Value) -> bool {
    let is_of_tables = |item: &Value| {
        let name = item["database"].as_str().or_else(|| item["name"].as_str());
        name.is_some_and(|name| name.starts_with(TABLES))
    };
    LISTS.iter().filter_map(|list| report[list].as_array()).flatten().any(is_of_tables)
}

/// Adds names to the report of a salvage of tables.
pub fn name(catalog: &CatalogSnapshot, report: &mut Value) {
    for list in LISTS {
        for item in report[list].as_array_mut().into_iter().flatten() {
            describe(catalog, item);
        }
    }
}

/// Adds names to an item of the report.
fn describe(catalog: &CatalogSnapshot, item: &mut Value) {
    let name = item["database"].as_str().or_else(|| item["name"].as_str());
    let Some(stored) = name.and_then(|name| stored(catalog, name)) else { return };
    let keys = [("from", "from_key"), ("to", "to_key"), ("key", "row_key")].map(|(field, new)| {
        (new, item[field].as_str().and_then(|key| shown_key(&stored.keys, key)))
    });
    let Some(fields) = item.as_object_mut() else { return };
    fields.insert("table".to_owned(), stored.table.into());
    if let Some(index) = stored.index {
        fields.insert("index".to_owned(), index.into());
    }
    for (name, key) in keys {
        fields.extend(key.map(|key| (name.to_owned(), key.into())));
    }
}

/// Finds the table or the index that a database stores: `sql.TABLE.GENERATION` or `sql.INDEX`.
fn stored(catalog: &CatalogSnapshot, name: &str) -> Option<Stored> {
    let numbers = name.strip_prefix(TABLES)?;
    if let Some((table, _)) = numbers.split_once('.') {
        let table = catalog.table(ObjectId(table.parse().ok()?))?;
        let keys = KeySpec::of_rows(table);
        return Some(Stored { table: shown_name(&table.lookup_name()), index: None, keys });
    }
    let id = ObjectId(numbers.parse().ok()?);
    catalog.tables().find_map(|table| {
        let index = table.indexes.iter().find(|index| index.id == id)?;
        let keys = KeySpec::of_index(table, index);
        let table_name = shown_name(&table.lookup_name());
        Some(Stored { table: table_name, index: Some(index.name.to_string()), keys })
    })
}

/// Returns the values of a printable key. A key may be cut off after some of its bytes: then the
/// values before the cut are followed by `…`.
fn shown_key(keys: &KeySpec, printable: &str) -> Option<String> {
    if keys.parts.is_empty() || keys.grouped || printable.starts_with("hash value ") {
        return None;
    }
    let bytes = unescaped(printable)?;
    let (mut rest, mut values) = (&bytes[..], Vec::new());
    for part in &keys.parts {
        match part.decode(&mut rest) {
            Ok(value) => values.push(value.to_string()),
            Err(_) => {
                values.push("…".to_owned());
                break;
            }
        }
    }
    Some(format!("({})", values.join(", ")))
}

/// Returns the bytes that `escape_ascii` wrote.
fn unescaped(printable: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), printable.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, length) = match (byte, after) {
            (b'\\', [b'x', digits @ ..]) => {
                let digits = std::str::from_utf8(digits.get(..2)?).ok()?;
                (u8::from_str_radix(digits, 16).ok()?, 4)
            }
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [other, ..]) => (*other, 2),
            _ => (byte, 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_bytes_come_back() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(unescaped(&all.escape_ascii().to_string()), Some(all));
        assert_eq!(unescaped("\\x1"), None);
    }
}
