//! `ts_stat`: in how many documents each word is, and how often.

use std::collections::BTreeMap;

use super::{VECTOR, vector};
use crate::error::Result;
use crate::expression::builtin::{invalid, text};
use crate::expression::{Frame, QueryRows};
use crate::types::encoded::text_search::{TextLexemeRef, weight_named};
use crate::types::{Value, ValueRef};

/// The weights whose positions count; `None` for all words.
type CountedWeights = Option<[bool; 4]>;

/// Returns the weights that letters name. Other letters, and none at all, leave all words.
fn weights_of(letters: &str) -> CountedWeights {
    let mut counted = [false; 4];
    for weight in letters.chars().filter_map(weight_named) {
        counted[usize::from(weight & 3)] = true;
    }
    counted.contains(&true).then_some(counted)
}

/// Returns how often a word of a document counts.
fn entries(lexeme: TextLexemeRef<'_>, weights: CountedWeights) -> i32 {
    let count = match weights {
        Some(counted) => {
            lexeme.positions().filter(|it| counted[usize::from(it.weight & 3)]).count()
        }
        None => lexeme.positions().len().max(1),
    };
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Counts the words in the vectors that a query returns, in the order of their bytes.
pub(in crate::expression::builtin) fn counted_words(
    frame: &Frame<'_>,
    arguments: &[ValueRef<'_>],
) -> Result<Vec<Vec<Value>>> {
    let weights = if arguments.len() > 1 { weights_of(text(arguments, 1)?) } else { None };
    let QueryRows { types, rows } = frame.host()?.run_query(text(arguments, 0)?)?;
    if types != [VECTOR] {
        return Err(invalid("ts_stat query must return one tsvector column"));
    }
    let mut words: BTreeMap<&str, (i32, i32)> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.iter().any(Value::is_null)) {
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        for lexeme in vector(&values, 0)?.lexemes {
            let count = entries(lexeme, weights);
            if count > 0 {
                let (documents, all) = words.entry(lexeme.word).or_default();
                *documents = documents.saturating_add(1);
                *all = all.saturating_add(count);
            }
        }
    }
    let row = |(word, (documents, all)): (&str, (i32, i32))| {
        vec![Value::text(word), Value::Integer(documents), Value::Integer(all)]
    };
    Ok(words.into_iter().map(row).collect())
}
