//! Files of statements with the results that are expected of them.

mod answers;
mod keyword_places;
mod logic;
mod postgresql;

use std::fs;
use std::path::{Path, PathBuf};

use quickbeam_sql::Value;
use quickbeam_sql::types::{TextSettings, format_value};

/// Returns the text of a value with the settings of its session, `NULL` for NULL.
fn text_of(value: &Value, settings: &TextSettings) -> String {
    if value.as_ref().is_null() {
        return "NULL".to_owned();
    }
    let mut text = String::new();
    format_value(&mut text, value.as_ref(), settings);
    text
}

/// The files with that ending below a folder of `tests`, in the order of their paths.
pub fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "tests/{folder} has no file that ends in .{ending}");
    found
}
