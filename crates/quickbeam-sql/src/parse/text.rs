//! A statement's text, with fast lookup of positions: a long list has a position for each value.
//!
//! Above: the binder. The parser counts lines and characters, errors count bytes. The first lookup
//! builds an index of the lines, except for short texts.

use std::cell::OnceCell;

use sqlparser::tokenizer::{Location, Span};

use super::offset_of;

/// Texts up to this size in bytes are read through for each position.
const SHORT: usize = 256;

/// Characters from one mark to the next.
const STRIDE: usize = 64;

/// A text and, once they are needed, its lines.
#[derive(Default)]
pub struct Text<'a> {
    text: &'a str,
    index: OnceCell<LineIndex>,
}

struct LineIndex {
    /// Number of characters before each line, and before the end.
    lines: Vec<usize>,
    /// The byte of every `STRIDE`th character; empty if every character is one byte.
    marks: Vec<usize>,
}

impl LineIndex {
    fn of(text: &str) -> LineIndex {
        let (mut lines, mut marks, mut count) = (vec![0], Vec::new(), 0);
        let is_ascii = text.is_ascii();
        for (at, character) in text.char_indices() {
            if !is_ascii && count % STRIDE == 0 {
                marks.push(at);
            }
            count += 1;
            if character == '\n' {
                lines.push(count);
            }
        }
        lines.push(count);
        LineIndex { lines, marks }
    }

    fn offset_of(&self, text: &str, location: Location) -> usize {
        let Some(line) = location.line.checked_sub(1) else { return 0 };
        let line = usize::try_from(line).unwrap_or(usize::MAX);
        let (Some(start), Some(end)) =
            (self.lines.get(line), self.lines.get(line.saturating_add(1)))
        else {
            return text.len();
        };
        let column = usize::try_from(location.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let character = start.saturating_add(column).min(*end);
        if self.marks.is_empty() {
            return character;
        }
        let Some(mark) = self.marks.get(character / STRIDE) else { return text.len() };
        let rest = text.get(*mark..).unwrap_or_default();
        rest.char_indices().nth(character % STRIDE).map_or(text.len(), |(at, _)| mark + at)
    }
}

impl<'a> Text<'a> {
    /// That text.
    pub fn new(text: &'a str) -> Text<'a> {
        Text { text, index: OnceCell::new() }
    }

    /// The text itself.
    pub fn as_str(&self) -> &'a str {
        self.text
    }

    /// Bytes from the start of the text to a place in it.
    pub fn offset_of(&self, location: Location) -> usize {
        if self.text.len() <= SHORT {
            return offset_of(self.text, location);
        }
        self.index.get_or_init(|| LineIndex::of(self.text)).offset_of(self.text, location)
    }

    /// Returns the position of the start of a span.
    pub fn position_of(&self, span: Span) -> u32 {
        u32::try_from(self.offset_of(span.start)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_that_reading_the_text_through_finds() {
        let plain = "select 1,\n\n  2\nfrom t\n".repeat(20);
        let wide = "sélect '日本語',\n\n  2\nfröm t 😀".repeat(20);
        for text in [&plain[..], &wide[..], "", "\n", "é", "no end"] {
            let index = LineIndex::of(text);
            for line in 0..100 {
                for column in 0..40 {
                    let location = Location::new(line, column);
                    let found = index.offset_of(text, location);
                    assert_eq!(found, offset_of(text, location), "{text:?} {location:?}");
                    assert_eq!(found, Text::new(text).offset_of(location));
                }
            }
        }
    }
}
