//! Key words as names: which words PostgreSQL's grammar takes where.
//!
//! The parser crate takes any word as a name. Here each word that is no name at its place gets a
//! mark, as part of its text. A word that the parser reads as a key word leaves no trace in the
//! tree, so a mark in the tree shows a word that became a name. Words that are names, but that the
//! parser reads as key words, become quoted names.

mod grammar;
mod labels;
mod places;
mod words;

use std::fmt::{self, Display, Write};

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::positions::MARK;
use crate::error::{Result, SqlError, SqlState};
pub(super) use grammar::TextKind;
use grammar::near;

/// Returns the tokens of a text with marks at the words that are no names where they stand, and
/// whether there are any.
pub(super) fn marked(
    text: &str,
    kind: TextKind,
    mut tokens: Vec<TokenWithSpan>,
) -> Result<(Vec<TokenWithSpan>, bool)> {
    if text.contains(MARK) {
        return Ok((tokens, false));
    }
    let mut reader = places::NamePlaces::new(text, kind);
    let mut has_marks = false;
    for at in 0..tokens.len() {
        let Some(verdict) = reader.read(&tokens, at)? else { continue };
        let Some(TokenWithSpan { token: Token::Word(word), span }) = tokens.get_mut(at) else {
            continue;
        };
        match verdict {
            places::Verdict::Name => {
                word.value = word.value.to_lowercase();
                (word.quote_style, word.keyword) = (Some('"'), Keyword::NoKeyword);
            }
            places::Verdict::NoName => {
                has_marks = true;
                let Location { line, column } = span.start;
                let written = write!(word.value, "{MARK}{line}:{column}{MARK}");
                debug_assert!(written.is_ok());
            }
        }
    }
    Ok((tokens, has_marks))
}

/// Refuses a tree with a marked word as a name.
pub(super) fn check(text: &str, tree: &dyn Display) -> Result<()> {
    let mut finder = Finder { found: None };
    match write!(finder, "{tree}") {
        Ok(()) => Ok(()),
        Err(_) => Err(refused(text, finder.found)),
    }
}

#[cold]
fn refused(text: &str, found: Option<(String, Location)>) -> SqlError {
    match found {
        Some((word, place)) => near(text, &word, place),
        None => SqlError::new(SqlState::InternalError, "a syntax tree has no text"),
    }
}

/// Returns a message of the parser without marks.
pub(super) fn without_marks(message: &str) -> String {
    message.split(MARK).step_by(2).collect()
}

/// A writer that looks for the first mark.
struct Finder {
    found: Option<(String, Location)>,
}

impl Write for Finder {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if !part.contains(MARK) {
            return Ok(());
        }
        let mut parts = part.split(MARK);
        let (before, place) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
        let (line, column) = place.split_once(':').unwrap_or_default();
        let place = Location::new(line.parse().unwrap_or(1), column.parse().unwrap_or(1));
        self.found = Some((word.unwrap_or_default().to_owned(), place));
        Err(fmt::Error)
    }
}
