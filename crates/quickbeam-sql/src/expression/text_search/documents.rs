//! The words of documents and of search requests.

use std::borrow::Cow;

use super::{Configuration, Tokens};
use crate::error::Result;
use crate::types::encoded::text_search::{
    MAX_PLACE, MAX_WORD, Position, QueryItem, QueryParts, QueryWord, TextLexeme, TextVector,
};

/// Words with their places, in the order of a text.
#[derive(Debug)]
pub struct DocumentWords {
    configuration: Configuration,
    place: usize,
    words: Vec<(usize, String)>,
}

impl DocumentWords {
    /// Begins without words.
    pub fn new(configuration: Configuration) -> DocumentWords {
        DocumentWords { configuration, place: 0, words: Vec::new() }
    }

    /// Appends the words of a text. Words that a search leaves out have places.
    pub fn add(&mut self, text: &str) {
        for (kind, token) in Tokens::new(text) {
            let Some(dictionary) = self.configuration.dictionary(kind) else { continue };
            if token.len() > MAX_WORD {
                continue;
            }
            self.place += 1;
            let place = self.place;
            self.words.extend(dictionary.word(token).map(|word| (place, word)));
        }
    }

    /// Appends the words of a text that does not go on from the one before.
    pub fn add_part(&mut self, text: &str) {
        let before = self.words.len();
        self.add(text);
        self.place += usize::from(self.words.len() > before);
    }

    /// Returns the vector of the words.
    pub fn vector(self) -> TextVector {
        let lexeme = |(place, word): (usize, String)| {
            let place = u16::try_from(place).unwrap_or(MAX_PLACE).min(MAX_PLACE);
            TextLexeme { word, positions: vec![Position { place, weight: 0 }] }
        };
        TextVector::of(self.words.into_iter().map(lexeme).collect())
    }
}

/// How the words of one operand of a query are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MorphJoin {
    /// All of them, anywhere.
    All,
    /// One after the other.
    Phrase,
}

impl MorphJoin {
    fn operator(self) -> QueryItem<'static> {
        match self {
            MorphJoin::All => QueryItem::And,
            MorphJoin::Phrase => QueryItem::Phrase(1),
        }
    }
}

/// Returns what appends the words of an operand to a query.
pub fn query_sink(
    configuration: Configuration,
    join: MorphJoin,
) -> impl FnMut(&mut QueryParts<'_>, QueryWord<'_>) -> Result<()> {
    move |parts, operand| {
        let mut words = DocumentWords::new(configuration);
        words.add(&operand.word);
        if words.words.is_empty() {
            parts.push_stop();
            return Ok(());
        }
        let mut last = None;
        for (place, word) in words.words {
            // Words that a search leaves out have places between two others.
            for _ in last.map_or(place, |last: usize| last + 1)..place {
                parts.push_stop();
                parts.push_operator(join.operator());
            }
            parts.push_word(QueryWord { word: Cow::Owned(word), ..operand })?;
            if last.is_some() {
                parts.push_operator(join.operator());
            }
            last = Some(place);
        }
        Ok(())
    }
}
