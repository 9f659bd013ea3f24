//! Words of the literals of `tsvector` and `tsquery`: plain, or in quotes, with escapes.

use super::vector::{Position, place_of};
use super::{syntax, weight_named};
use crate::error::Result;

/// The kind of text that words stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordSource {
    /// A vector: positions may follow a word.
    Vector,
    /// A query: operators end a word.
    Query,
    /// A query as for a search engine: quotes and backslashes are ordinary.
    Web,
}

/// A word with its positions.
#[derive(Debug, PartialEq)]
pub(super) struct ReadWord {
    pub(super) word: String,
    pub(super) positions: Vec<Position>,
}

/// A reader of words.
pub(super) struct LiteralReader<'t> {
    whole: &'t str,
    rest: &'t str,
    source: WordSource,
}

/// Returns whether a character is white space, as the C library says.
pub(crate) fn is_space(letter: char) -> bool {
    letter.is_whitespace() && !matches!(letter, '\u{85}' | '\u{a0}' | '\u{2007}' | '\u{202f}')
}

pub(super) fn is_operator(letter: char) -> bool {
    matches!(letter, '!' | '&' | '|' | '(' | ')' | '<')
}

impl<'t> LiteralReader<'t> {
    pub(super) fn new(text: &'t str, source: WordSource) -> LiteralReader<'t> {
        LiteralReader { whole: text, rest: text, source }
    }

    /// Returns the text that is not read yet.
    pub(super) fn rest(&self) -> &'t str {
        self.rest
    }

    /// Goes on with another part of the text.
    pub(super) fn move_to(&mut self, rest: &'t str) {
        self.rest = rest;
    }

    #[cold]
    pub(super) fn fault(&self) -> crate::error::SqlError {
        let name = if self.source == WordSource::Vector { "tsvector" } else { "tsquery" };
        syntax(format!("syntax error in {name}: \"{}\"", self.whole))
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn step(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.rest = &self.rest[letter.len_utf8()..];
        Some(letter)
    }

    /// Reads the next word; `None` at the end.
    pub(super) fn next_word(&mut self) -> Result<Option<ReadWord>> {
        self.rest = self.rest.trim_start_matches(is_space);
        let is_query = self.source != WordSource::Vector;
        let word = match self.peek() {
            None => return Ok(None),
            Some('\'') if self.source != WordSource::Web => {
                self.step();
                self.quoted()?
            }
            Some(letter) if is_query && is_operator(letter) => return Err(self.fault()),
            Some(_) => self.plain()?,
        };
        if word.is_empty() {
            return Err(self.fault());
        }
        let mut positions = Vec::new();
        if !is_query && self.peek() == Some(':') {
            self.step();
            positions = self.positions()?;
        }
        Ok(Some(ReadWord { word, positions }))
    }

    fn escaped(&mut self, word: &mut String) -> Result<()> {
        let Some(letter) = self.step() else {
            return Err(syntax(format!("there is no escaped character: \"{}\"", self.whole)));
        };
        word.push(letter);
        Ok(())
    }

    /// Reads a word without quotes.
    fn plain(&mut self) -> Result<String> {
        let mut word = String::new();
        let (is_query, is_web) =
            (self.source != WordSource::Vector, self.source == WordSource::Web);
        let mut is_first = true;
        while let Some(letter) = self.peek() {
            // A colon begins no positions at the beginning of a word.
            let is_end = is_space(letter)
                || is_query && is_operator(letter)
                || letter == ':' && !is_first
                || is_web && letter == '"' && !is_first;
            if is_end {
                break;
            }
            self.step();
            if letter == '\\' && !is_web {
                self.escaped(&mut word)?;
            } else {
                word.push(letter);
            }
            is_first = false;
        }
        Ok(word)
    }

    /// Reads the rest of a word in quotes.
    fn quoted(&mut self) -> Result<String> {
        let mut word = String::new();
        loop {
            match self.step() {
                None => return Err(self.fault()),
                Some('\\') => self.escaped(&mut word)?,
                Some('\'') if self.peek() == Some('\'') => {
                    self.step();
                    word.push('\'');
                }
                Some('\'') => return Ok(word),
                Some(letter) => word.push(letter),
            }
        }
    }

    /// Reads the positions of a word, with their weights.
    fn positions(&mut self) -> Result<Vec<Position>> {
        let mut positions = Vec::new();
        loop {
            let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return Err(self.fault());
            }
            let (number, rest) = self.rest.split_at(digits);
            self.rest = rest;
            let place = place_of(number.parse().unwrap_or(u64::MAX));
            if place == 0 {
                let message = format!("wrong position info in tsvector: \"{}\"", self.whole);
                return Err(syntax(message));
            }
            let mut weight = 0;
            loop {
                match self.peek() {
                    Some(',') => break,
                    None => {
                        positions.push(Position { place, weight });
                        return Ok(positions);
                    }
                    Some(letter) if is_space(letter) => {
                        positions.push(Position { place, weight });
                        return Ok(positions);
                    }
                    // Digits after a weight have no effect.
                    Some('0'..='9') => {}
                    Some(letter) => {
                        let named = if letter == '*' { Some(3) } else { weight_named(letter) };
                        weight = named.filter(|_| weight == 0).ok_or_else(|| self.fault())?;
                    }
                }
                self.step();
            }
            self.step();
            positions.push(Position { place, weight });
        }
    }
}
