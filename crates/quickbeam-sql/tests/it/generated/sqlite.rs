//! SQLite, whose answers ours are compared with.

use proptest::prelude::ProptestConfig;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// Rows as texts, or the error's message.
pub type Answer = Result<Vec<String>, String>;

/// What is said of a statement that was given up for being too much work: by the progress handler,
/// or for its rows.
pub const TOO_MUCH: &str = "interrupted";

/// `cases` cases, or PROPTEST_CASES of them. What differs is shrunk for a minute: a test that fails
/// has to end, too.
pub fn config(cases: u32) -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: wanted.unwrap_or(cases),
        max_shrink_time: 60_000,
        max_shrink_iters: u32::MAX,
        ..ProptestConfig::default()
    }
}

/// A database in memory, with LIKE that tells letters by their case, as Quickbeam's does.
pub fn memory() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch("PRAGMA case_sensitive_like = ON").unwrap();
    connection
}

/// The answer of a statement, as long as it has no more than `most_rows`; `show` says what a value
/// looks like.
pub fn answer(
    connection: &Connection,
    text: &str,
    most_rows: usize,
    show: impl Fn(ValueRef<'_>) -> String,
) -> Answer {
    let run = || -> rusqlite::Result<Option<Vec<String>>> {
        let mut statement = connection.prepare(text)?;
        let width = statement.column_count();
        let mut rows = statement.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            if all.len() == most_rows {
                return Ok(None);
            }
            let values: rusqlite::Result<Vec<String>> =
                (0..width).map(|column| row.get_ref(column).map(&show)).collect();
            all.push(values?.join("|"));
        }
        Ok(Some(all))
    };
    run().map_err(|error| error.to_string())?.ok_or_else(|| TOO_MUCH.to_owned())
}
