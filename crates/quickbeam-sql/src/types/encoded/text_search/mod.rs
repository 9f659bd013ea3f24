//! Full-text search: the types `tsvector` and `tsquery`, and whether a query matches a vector.
//!
//! `vector` and `query` describe the bytes of the values. `words` reads the words of both literals.

mod matching;
mod query;
mod query_text;
mod ranking;
mod rewriting;
mod vector;
mod web_query;
mod words;

pub use matching::{is_match, is_match_of_items};
pub use query::{MAX_DISTANCE, QueryItem, QueryWord, TextQuery};
pub use query_text::{OperandSink, QueryParts};
pub use ranking::{DEFAULT_WEIGHTS, RankWeights, cover_rank, word_rank};
pub use rewriting::{in_order, rewritten};
pub use vector::{
    MAX_PLACE, Position, TextLexeme, TextLexemeRef, TextVector, TextVectorRef, weight_named,
};

pub(crate) use words::is_space;

use crate::error::{Result, SqlError, SqlState};

/// Bytes that a word may have.
pub const MAX_WORD: usize = 2046;

/// Bytes that all words of a value may have, as PostgreSQL stores them.
pub const MAX_BYTES: usize = (1 << 20) - 1;

#[cold]
fn syntax(message: String) -> SqlError {
    SqlError::new(SqlState::SyntaxError, message)
}

#[cold]
fn too_large(message: String) -> SqlError {
    SqlError::new(SqlState::ProgramLimitExceeded, message)
}

/// Takes bytes from the front.
fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn take_u16(bytes: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(take(bytes, 2)?.try_into().ok()?))
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(bytes, 4)?.try_into().ok()?))
}

/// Takes a text up to a byte 0.
fn take_text<'b>(bytes: &mut &'b [u8]) -> Option<&'b str> {
    let end = memchr::memchr(0, bytes)?;
    let text = std::str::from_utf8(take(bytes, end)?).ok()?;
    take(bytes, 1)?;
    Some(text)
}

/// Appends a word in quotes.
fn quote(out: &mut String, word: &str) {
    out.push('\'');
    for letter in word.chars() {
        if matches!(letter, '\'' | '\\') {
            out.push(letter);
        }
        out.push(letter);
    }
    out.push('\'');
}

/// Checks the length of a word.
fn check_word(word: &str) -> Result<()> {
    if word.len() > MAX_WORD {
        let length = word.len();
        return Err(too_large(format!("word is too long ({length} bytes, max {MAX_WORD} bytes)")));
    }
    Ok(())
}
