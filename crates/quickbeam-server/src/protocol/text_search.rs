//! Binary formats of vectors and queries of full-text search.
//!
//! A vector is the number of its words and, for each, the text, a byte 0, the number of its
//! positions, and the positions with their weights in the upper two bits. A query is the number of
//! its items and the items, each operator before its right and its left operand.

use std::borrow::Cow;

use bytes::{BufMut, BytesMut};
use quickbeam_sql::Value;
use quickbeam_sql::types::encoded::text_search::{
    MAX_DISTANCE, MAX_PLACE, MAX_WORD, Position, QueryItem, QueryWord, TextLexeme, TextQuery,
    TextVector, TextVectorRef,
};

const WORD: u8 = 1;
const OPERATOR: u8 = 2;

/// Positions that a word may have.
const MAX_POSITIONS: usize = 256;

fn put_text(out: &mut BytesMut, text: &str) {
    out.put_slice(text.as_bytes());
    out.put_u8(0);
}

/// Appends a vector.
pub fn put_vector(out: &mut BytesMut, bytes: &[u8]) {
    let vector = TextVectorRef::read(bytes).unwrap_or_default();
    out.put_u32(vector.lexemes.len() as u32);
    for lexeme in vector.lexemes {
        put_text(out, lexeme.word);
        let positions = lexeme.positions();
        out.put_u16(positions.len() as u16);
        for position in positions {
            out.put_u16(u16::from(position.weight) << 14 | position.place);
        }
    }
}

/// Appends a query.
pub fn put_query(out: &mut BytesMut, bytes: &[u8]) {
    let query = TextQuery::read(bytes).unwrap_or_default();
    out.put_u32(query.items.len() as u32);
    for item in query.items.iter().rev() {
        match item {
            QueryItem::Word(word) => {
                out.put_slice(&[WORD, word.weights, word.is_prefix.into()]);
                put_text(out, &word.word);
            }
            operator => out.put_slice(&[OPERATOR, operator.number()]),
        }
        if let QueryItem::Phrase(distance) = item {
            out.put_u16(*distance);
        }
    }
}

/// Takes bytes from the front.
pub(super) fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

pub(super) fn take_number(bytes: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(bytes, 4)?.try_into().ok()?))
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    Some(take(bytes, 1)?[0])
}

fn take_short(bytes: &mut &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(take(bytes, 2)?.try_into().ok()?))
}

/// Takes a text that ends with a byte 0.
fn take_word(bytes: &mut &[u8]) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let word = std::str::from_utf8(take(bytes, end)?).ok()?.to_owned();
    take(bytes, 1)?;
    (word.len() <= MAX_WORD).then_some(word)
}

/// Reads a vector; `None` if the bytes are none.
pub fn read_vector(mut bytes: &[u8]) -> Option<Value> {
    let mut lexemes = Vec::new();
    for _ in 0..take_number(&mut bytes)? {
        let word = take_word(&mut bytes)?;
        let count = usize::from(take_short(&mut bytes)?);
        let mut positions: Vec<Position> = Vec::new();
        for _ in 0..count.min(MAX_POSITIONS + 1) {
            let code = take_short(&mut bytes)?;
            let position = Position { place: code & MAX_PLACE, weight: (code >> 14) as u8 };
            if positions.last().is_some_and(|last| last.place >= position.place) {
                return None;
            }
            positions.push(position);
        }
        if count > MAX_POSITIONS {
            return None;
        }
        lexemes.push(TextLexeme { word, positions });
    }
    if !bytes.is_empty() {
        return None;
    }
    TextVector::of(lexemes).checked_value().ok()
}

/// Reads a query; `None` if the bytes are none.
pub fn read_query(mut bytes: &[u8]) -> Option<Value> {
    let mut items = Vec::new();
    for _ in 0..take_number(&mut bytes)? {
        items.push(match take_byte(&mut bytes)? {
            WORD => {
                let weights = take_byte(&mut bytes).filter(|weights| *weights < 16)?;
                let is_prefix = take_byte(&mut bytes)? != 0;
                let word = Cow::Owned(take_word(&mut bytes)?);
                QueryItem::Word(QueryWord { word, weights, is_prefix })
            }
            OPERATOR => {
                let operator = QueryItem::numbered(take_byte(&mut bytes)?, 0)?;
                match operator {
                    QueryItem::Phrase(_) => {
                        let distance = take_short(&mut bytes)?;
                        QueryItem::Phrase(Some(distance).filter(|it| *it <= MAX_DISTANCE)?)
                    }
                    other => other,
                }
            }
            _ => return None,
        });
    }
    items.reverse();
    let query = TextQuery { items };
    (bytes.is_empty() && query.is_complete()).then(|| query.value())
}
