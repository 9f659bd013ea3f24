//! Functions and operators of `tsvector`.

use super::{QUERY, VECTOR, query, vector};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::arrays::array;
use crate::expression::builtin::row_functions::{FunctionRow, RowFunction, RowWork};
use crate::expression::builtin::{Builtin, count, invalid, mismatch, strict, text};
use crate::types::encoded::text_search::{
    TextLexeme, TextLexemeRef, TextVector, is_match, weight_named,
};
use crate::types::{Array, ArrayRef, DataType, ElementType, SystemType, Value, ValueRef};
use DataType::{Boolean, Integer, Text};

const LETTER: DataType = DataType::System(SystemType::SingleChar);
const TEXTS: DataType = DataType::Array(ElementType::TEXT);
const LETTERS: DataType = match ElementType::new(LETTER) {
    Some(element) => DataType::Array(element),
    None => TEXTS,
};
const PLACES: DataType = match ElementType::new(DataType::SmallInt) {
    Some(element) => DataType::Array(element),
    None => TEXTS,
};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("length", &[VECTOR], Integer, |v| count(vector(v, 0)?.lexemes.len())),
    strict("strip", &[VECTOR], VECTOR, |v| {
        let words = vector(v, 0)?.lexemes.into_iter();
        let bare =
            |it: TextLexemeRef<'_>| TextLexeme { word: it.word.to_owned(), positions: Vec::new() };
        Ok(TextVector { lexemes: words.map(bare).collect() }.value())
    }),
    strict("setweight", &[VECTOR, LETTER], VECTOR, |v| weighted(v, |_| true)),
    strict("setweight", &[VECTOR, LETTER, TEXTS], VECTOR, |v| {
        let words = texts(array(v, 2)?);
        weighted(v, |word| words.binary_search(&word).is_ok())
    }),
    strict("ts_delete", &[VECTOR, Text], VECTOR, |v| without(v, &[text(v, 1)?])),
    strict("ts_delete", &[VECTOR, TEXTS], VECTOR, |v| without(v, &texts(array(v, 1)?))),
    strict("ts_filter", &[VECTOR, LETTERS], VECTOR, filtered),
    strict("tsvector_to_array", &[VECTOR], TEXTS, |v| {
        let vector = vector(v, 0)?;
        let words = vector.lexemes.iter().map(|it| ValueRef::Text(it.word));
        Ok(Value::Array(Array::new(ElementType::TEXT, words)?))
    }),
    strict("array_to_tsvector", &[TEXTS], VECTOR, of_array),
    strict("||", &[VECTOR, VECTOR], VECTOR, |v| {
        vector(v, 0)?.to_vector().followed_by(vector(v, 1)?.to_vector()).checked_value()
    }),
    strict("@@", &[VECTOR, QUERY], Boolean, |v| {
        Ok(Value::Boolean(is_match(&vector(v, 0)?, &query(v, 1)?)))
    }),
    strict("@@", &[QUERY, VECTOR], Boolean, |v| {
        Ok(Value::Boolean(is_match(&vector(v, 1)?, &query(v, 0)?)))
    }),
];

/// `unnest` of a vector: its words, with their places and weights.
pub static UNNEST_WORDS: RowFunction = RowFunction {
    name: "unnest",
    arguments: &[Some(VECTOR)],
    columns: &[("lexeme", Text), ("positions", PLACES), ("weights", TEXTS)],
    is_strict: true,
    run: RowWork::OfValues(words),
};

fn words(arguments: &[ValueRef<'_>]) -> Result<Vec<FunctionRow>> {
    let row = |lexeme: TextLexemeRef<'_>| {
        let places = lexeme.positions().map(|it| Value::SmallInt(it.place.cast_signed()));
        let weights = lexeme.positions().map(|it| Value::text(it.letter().to_string()));
        let word = Value::text(lexeme.word);
        if !lexeme.has_positions() {
            return Ok(vec![word, Value::Null, Value::Null]);
        }
        let (places, weights): (Vec<Value>, Vec<Value>) = (places.collect(), weights.collect());
        let small = ElementType::new(DataType::SmallInt).ok_or_else(mismatch)?;
        let places = Array::new(small, places.iter().map(Value::as_ref))?;
        let weights = Array::new(ElementType::TEXT, weights.iter().map(Value::as_ref))?;
        Ok(vec![word, Value::Array(places), Value::Array(weights)])
    };
    vector(arguments, 0)?.lexemes.into_iter().map(row).collect()
}

/// Returns the texts of an array in the order of their bytes, without NULLs.
fn texts(array: ArrayRef<'_>) -> Vec<&str> {
    let text = |element| match element {
        ValueRef::Text(text) => Some(text),
        _ => None,
    };
    let mut texts: Vec<&str> = array.iter().filter_map(text).collect();
    texts.sort_unstable();
    texts
}

/// Sets the weights of some words.
fn weighted(arguments: &[ValueRef<'_>], is_meant: impl Fn(&str) -> bool) -> Result<Value> {
    let letter = text(arguments, 1)?;
    let weight = letter.chars().next().and_then(weight_named).ok_or_else(|| {
        // PostgreSQL shows the letter in one of two ways.
        let shown = match arguments.len() {
            2 => letter.bytes().next().unwrap_or(0).to_string(),
            _ => letter.to_owned(),
        };
        SqlError::internal(format!("unrecognized weight: {shown}"))
    })?;
    let mut vector = vector(arguments, 0)?.to_vector();
    for lexeme in vector.lexemes.iter_mut().filter(|lexeme| is_meant(&lexeme.word)) {
        lexeme.positions.iter_mut().for_each(|position| position.weight = weight);
    }
    Ok(vector.value())
}

fn without(arguments: &[ValueRef<'_>], words: &[&str]) -> Result<Value> {
    let mut vector = vector(arguments, 0)?.to_vector();
    vector.lexemes.retain(|lexeme| words.binary_search(&lexeme.word.as_str()).is_err());
    Ok(vector.value())
}

#[cold]
fn has_nulls(what: &str) -> SqlError {
    let message = format!("{what} array may not contain nulls");
    SqlError::new(SqlState::NullValueNotAllowed, message)
}

/// Leaves the positions of some weights.
fn filtered(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut wanted = 0_u8;
    for letter in array(arguments, 1)?.iter() {
        let ValueRef::Text(letter) = letter else { return Err(has_nulls("weight")) };
        let weight = letter.chars().next().and_then(weight_named);
        wanted |=
            1 << weight.ok_or_else(|| invalid(format!("unrecognized weight: \"{letter}\"")))?;
    }
    let mut vector = vector(arguments, 0)?.to_vector();
    vector.lexemes.retain_mut(|lexeme| {
        lexeme.positions.retain(|position| wanted >> position.weight & 1 == 1);
        !lexeme.positions.is_empty()
    });
    Ok(vector.value())
}

fn of_array(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut lexemes = Vec::new();
    for word in array(arguments, 0)?.iter() {
        let ValueRef::Text(word) = word else { return Err(has_nulls("lexeme")) };
        if word.is_empty() {
            let message = "lexeme array may not contain empty strings";
            return Err(SqlError::new(SqlState::ZeroLengthCharacterString, message));
        }
        lexemes.push(TextLexeme { word: word.to_owned(), positions: Vec::new() });
    }
    TextVector::of(lexemes).checked_value()
}
