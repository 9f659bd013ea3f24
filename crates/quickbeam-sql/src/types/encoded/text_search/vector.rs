//! `tsvector`: words with the places where they stand in a document.
//!
//! The bytes are the size of PostgreSQL's value, the number of words, and the words in the order
//! of their bytes. A word has a byte that is 0 if it has positions and otherwise 1, its text, and a
//! byte 0. With positions, their number and the positions follow, all of them as two bytes with
//! inverted bits. A position is the place times four and the weight. Numbers are big-endian. So
//! values sort as in PostgreSQL: by size first, and words with later positions before others.

use super::words::{LiteralReader, WordSource};
use super::{MAX_BYTES, check_word, quote, take, take_text, take_u16, take_u32, too_large};
use crate::error::Result;
use crate::types::{EncodedKind, Value};

/// The last place that a position has; those beyond it have this one.
pub const MAX_PLACE: u16 = (1 << 14) - 1;

/// Positions that a word may have.
const MAX_POSITIONS: usize = 255;

const WITH_POSITIONS: u8 = 0;
const WITHOUT_POSITIONS: u8 = 1;

/// A place of a word in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The place, from 1 to [`MAX_PLACE`].
    pub place: u16,
    /// The weight: 0 for D to 3 for A.
    pub weight: u8,
}

/// Returns the place that a number names.
pub(super) fn place_of(number: u64) -> u16 {
    u16::try_from(number).unwrap_or(MAX_PLACE).min(MAX_PLACE)
}

/// Returns the weight of a letter.
#[must_use]
pub fn weight_named(letter: char) -> Option<u8> {
    Some(match letter.to_ascii_uppercase() {
        'A' => 3,
        'B' => 2,
        'C' => 1,
        'D' => 0,
        _ => return None,
    })
}

impl Position {
    fn code(self) -> u16 {
        !(self.place << 2 | u16::from(self.weight & 3))
    }

    fn of_code(code: u16) -> Position {
        Position { place: !code >> 2, weight: (!code & 3) as u8 }
    }

    /// Returns the letter of the weight.
    #[must_use]
    pub fn letter(self) -> char {
        ['D', 'C', 'B', 'A'][usize::from(self.weight & 3)]
    }

    /// Returns the position at a later place.
    #[must_use]
    pub fn moved(self, by: u16) -> Position {
        Position { place: place_of(u64::from(self.place) + u64::from(by)), ..self }
    }
}

/// A word of a vector.
#[derive(Clone, Debug, PartialEq)]
pub struct TextLexeme {
    /// The word.
    pub word: String,
    /// Its positions, by place.
    pub positions: Vec<Position>,
}

/// A word in the bytes of a vector.
#[derive(Clone, Copy, Debug)]
pub struct TextLexemeRef<'a> {
    /// The word.
    pub word: &'a str,
    positions: &'a [u8],
}

impl<'a> TextLexemeRef<'a> {
    /// Returns whether the word has positions.
    #[must_use]
    pub fn has_positions(self) -> bool {
        !self.positions.is_empty()
    }

    /// Returns the positions, by place.
    pub fn positions(self) -> impl ExactSizeIterator<Item = Position> + use<'a> {
        let pairs = self.positions.chunks_exact(2);
        pairs.map(|pair| Position::of_code(u16::from_be_bytes([pair[0], pair[1]])))
    }

    /// Returns the word and its positions.
    #[must_use]
    pub fn to_lexeme(self) -> TextLexeme {
        TextLexeme { word: self.word.to_owned(), positions: self.positions().collect() }
    }
}

/// The words in the bytes of a vector.
#[derive(Debug, Default)]
pub struct TextVectorRef<'a> {
    /// The words, in the order of their bytes.
    pub lexemes: Vec<TextLexemeRef<'a>>,
}

impl<'a> TextVectorRef<'a> {
    /// Returns the value with these bytes.
    #[must_use]
    pub fn read(mut bytes: &'a [u8]) -> Option<TextVectorRef<'a>> {
        take_u32(&mut bytes)?;
        let count = usize::try_from(take_u32(&mut bytes)?).ok()?;
        let mut lexemes = Vec::with_capacity(count.min(bytes.len()));
        for _ in 0..count {
            let kind = take(&mut bytes, 1)?[0];
            let word = take_text(&mut bytes)?;
            let positions = match kind {
                WITH_POSITIONS => {
                    let count = usize::from(!take_u16(&mut bytes)?);
                    take(&mut bytes, 2 * count)?
                }
                WITHOUT_POSITIONS => &[],
                _ => return None,
            };
            lexemes.push(TextLexemeRef { word, positions });
        }
        bytes.is_empty().then_some(TextVectorRef { lexemes })
    }

    /// Returns the number of the word, or the number that it would have.
    pub fn search(&self, word: &str) -> std::result::Result<usize, usize> {
        self.lexemes.binary_search_by(|lexeme| lexeme.word.as_bytes().cmp(word.as_bytes()))
    }

    /// Returns the words and their positions.
    #[must_use]
    pub fn to_vector(&self) -> TextVector {
        TextVector { lexemes: self.lexemes.iter().map(|it| it.to_lexeme()).collect() }
    }

    /// Appends the words in quotes, with their positions.
    pub(in crate::types::encoded) fn format(&self, out: &mut String) {
        use std::fmt::Write;
        for (at, lexeme) in self.lexemes.iter().enumerate() {
            if at > 0 {
                out.push(' ');
            }
            quote(out, lexeme.word);
            for (at, position) in lexeme.positions().enumerate() {
                out.push(if at == 0 { ':' } else { ',' });
                // Writing to a String does not fail.
                let _ = write!(out, "{}", position.place);
                if position.weight > 0 {
                    out.push(position.letter());
                }
            }
        }
    }
}

/// Words with their positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextVector {
    /// The words, in the order of their bytes.
    pub lexemes: Vec<TextLexeme>,
}

/// Sorts positions and leaves one for each place, with the highest weight.
fn settle(positions: &mut Vec<Position>) {
    positions.sort_by_key(|position| position.place);
    positions.dedup_by(|later, kept| {
        let is_same = later.place == kept.place;
        if is_same {
            kept.weight = kept.weight.max(later.weight);
        }
        is_same
    });
    positions.truncate(MAX_POSITIONS);
}

impl TextVector {
    /// Returns the vector of some words, in any order.
    #[must_use]
    pub fn of(mut lexemes: Vec<TextLexeme>) -> TextVector {
        lexemes.sort_by(|a, b| a.word.as_bytes().cmp(b.word.as_bytes()));
        lexemes.dedup_by(|later, kept| {
            let is_same = later.word == kept.word;
            if is_same {
                kept.positions.append(&mut later.positions);
            }
            is_same
        });
        lexemes.iter_mut().for_each(|lexeme| settle(&mut lexeme.positions));
        TextVector { lexemes }
    }

    /// Reads words in quotes or without, with positions.
    pub fn parse(text: &str) -> Result<TextVector> {
        let mut reader = LiteralReader::new(text, WordSource::Vector);
        let (mut lexemes, mut bytes) = (Vec::new(), 0);
        while let Some(read) = reader.next_word()? {
            check_word(&read.word)?;
            check_bytes(bytes)?;
            bytes += read.word.len();
            lexemes.push(TextLexeme { word: read.word, positions: read.positions });
        }
        let vector = TextVector::of(lexemes);
        check_bytes(vector.content_size())?;
        Ok(vector)
    }

    /// Returns the bytes of words and positions in PostgreSQL.
    fn content_size(&self) -> usize {
        self.lexemes.iter().fold(0, |size, lexeme| {
            let size = size + lexeme.word.len();
            match lexeme.positions.len() {
                0 => size,
                count => size.next_multiple_of(2) + 2 + 2 * count,
            }
        })
    }

    /// Returns the words as a value.
    #[must_use]
    pub fn value(&self) -> Value {
        let size = 8 + 4 * self.lexemes.len() + self.content_size();
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&(size as u32).to_be_bytes());
        bytes.extend_from_slice(&(self.lexemes.len() as u32).to_be_bytes());
        for lexeme in &self.lexemes {
            let is_plain = lexeme.positions.is_empty();
            bytes.push(if is_plain { WITHOUT_POSITIONS } else { WITH_POSITIONS });
            bytes.extend_from_slice(lexeme.word.as_bytes());
            bytes.push(0);
            if !is_plain {
                bytes.extend_from_slice(&(!(lexeme.positions.len() as u16)).to_be_bytes());
            }
            for position in &lexeme.positions {
                bytes.extend_from_slice(&position.code().to_be_bytes());
            }
        }
        Value::encoded(EncodedKind::TsVector, &bytes)
    }

    /// Returns the words as a value, unless they are too long.
    pub fn checked_value(&self) -> Result<Value> {
        check_bytes(self.content_size())?;
        Ok(self.value())
    }

    /// Returns the words of both. The places of the other's words follow those of this one.
    #[must_use]
    pub fn followed_by(mut self, other: TextVector) -> TextVector {
        let places = self.lexemes.iter().flat_map(|lexeme| &lexeme.positions);
        let last = places.map(|position| position.place).max().unwrap_or(0);
        for lexeme in other.lexemes {
            let moved = lexeme.positions.iter().map(|position| position.moved(last));
            let found = self
                .lexemes
                .binary_search_by(|known| known.word.as_bytes().cmp(lexeme.word.as_bytes()));
            let positions = match found {
                Ok(at) => &mut self.lexemes[at].positions,
                Err(at) => {
                    let new = TextLexeme { word: lexeme.word, positions: Vec::new() };
                    self.lexemes.insert(at, new);
                    &mut self.lexemes[at].positions
                }
            };
            for position in moved {
                let is_full = positions.len() > MAX_POSITIONS
                    || positions.last().is_some_and(|last| last.place == MAX_PLACE);
                if is_full {
                    break;
                }
                positions.push(position);
            }
        }
        self
    }
}

fn check_bytes(bytes: usize) -> Result<()> {
    if bytes > MAX_BYTES {
        return Err(too_large(format!(
            "string is too long for tsvector ({bytes} bytes, max {MAX_BYTES} bytes)"
        )));
    }
    Ok(())
}
