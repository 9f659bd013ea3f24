//! Answers of different engines compared: rows in any order, numbers within a small tolerance.

use anyhow::{Result, ensure};

use crate::sql::retry::settled;
use crate::sql::{SqlConnection, SqlRow};

/// Relative difference of numbers that are taken for equal: SQLite computes in floating point.
const TOLERANCE: f64 = 1e-7;

/// The rows of an answer as text. NULL has none.
pub type Answer = Vec<Vec<Option<String>>>;

/// Reads a row, of `columns` columns, of which each is a text.
pub fn read(row: &dyn SqlRow, columns: usize) -> Vec<Option<String>> {
    let text = |column| {
        let text = row.shown(column)?;
        // CHAR is filled up with blanks by some engines.
        Some(text.trim_end().to_owned())
    };
    (0..columns).map(text).collect()
}

/// Visits each row of a query of whole numbers, none of which is NULL.
pub fn for_each_integers(
    connection: &mut dyn SqlConnection,
    query: &str,
    columns: usize,
    mut visit: impl FnMut(&[i64]),
) -> Result<()> {
    let statement = connection.prepare(query)?;
    let (mut values, mut null) = (Vec::with_capacity(columns), false);
    settled(connection.query(statement, &[], &mut |row| {
        values.clear();
        values.extend((0..columns).filter_map(|column| row.integer(column)));
        if values.len() == columns { visit(&values) } else { null = true }
    }))?;
    ensure!(!null, "{query}: a column is null");
    Ok(())
}

fn is_equal(a: Option<&String>, b: Option<&String>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return a.is_none() && b.is_none() };
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => (x - y).abs() <= TOLERANCE * x.abs().max(y.abs()).max(1e-9),
        _ => a == b,
    }
}

/// What rows are sorted by: numbers rounded to where engines agree.
fn key(row: &[Option<String>]) -> Vec<String> {
    let short = |value: &Option<String>| match value {
        None => String::new(),
        Some(text) => match text.parse::<f64>() {
            Ok(number) => format!("{number:.3e}"),
            Err(_) => text.clone(),
        },
    };
    row.iter().map(short).collect()
}

/// Whether two answers are equal; the error says where they are not.
pub fn compare(first: &Answer, second: &Answer) -> Result<()> {
    ensure!(first.len() == second.len(), "{} rows, and {}", first.len(), second.len());
    let sorted = |answer: &Answer| {
        let mut rows = answer.clone();
        rows.sort_by_cached_key(|row| key(row));
        rows
    };
    for (a, b) in sorted(first).iter().zip(&sorted(second)) {
        let same =
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a.as_ref(), b.as_ref()));
        ensure!(same, "{a:?}, and {b:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: &[&[&str]]) -> Answer {
        let row = |row: &&[&str]| row.iter().map(|text| Some((*text).to_owned())).collect();
        rows.iter().map(row).collect()
    }

    #[test]
    fn equal_answers_differ_in_order_and_last_digits_only() {
        let one = answer(&[&["a", "1.50"], &["b", "2"]]);
        assert!(compare(&one, &answer(&[&["b", "2.00000000001"], &["a", "1.5"]])).is_ok());
        assert!(compare(&one, &answer(&[&["b", "2"], &["a", "1.6"]])).is_err());
        assert!(compare(&one, &answer(&[&["b", "2"]])).is_err());
        assert!(compare(&one, &answer(&[&["a", "1.5"], &["c", "2"]])).is_err());
        let null: Answer = vec![vec![None]];
        assert!(compare(&null, &null).is_ok());
        assert!(compare(&null, &answer(&[&["0"]])).is_err());
    }
}
