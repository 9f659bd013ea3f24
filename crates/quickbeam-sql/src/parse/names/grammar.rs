//! What PostgreSQL's grammar says of words.

use std::sync::LazyLock;

use sqlparser::keywords::{ALL_KEYWORDS_INDEX, Keyword};
use sqlparser::tokenizer::{Location, Word};

use crate::error::{SqlError, SqlState};
use crate::keywords::{KeywordCategory, keyword_category};
use crate::parse::offset_of;

/// What the grammar says of a word of the parser crate.
static CATEGORIES: LazyLock<Vec<Option<KeywordCategory>>> = LazyLock::new(|| {
    let category = |keyword: &Keyword| keyword_category(&format!("{keyword:?}").to_lowercase());
    let length = ALL_KEYWORDS_INDEX.iter().map(|keyword| *keyword as usize + 1).max();
    let mut categories = vec![None; length.unwrap_or_default()];
    for keyword in ALL_KEYWORDS_INDEX {
        if let Some(place) = categories.get_mut(*keyword as usize) {
            *place = category(keyword);
        }
    }
    categories
});

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::parse) enum TextKind {
    /// Statements.
    Statement,
    /// An expression.
    Expression,
    /// The name of a table.
    Name,
    /// Names of types.
    Types,
}

/// Returns the category of a word without quotes; `None` if it is no key word.
pub(super) fn category_of(word: &Word) -> Option<KeywordCategory> {
    if word.keyword == Keyword::NoKeyword {
        // The key words of names that the parser crate does not know.
        let is = |known: &str| word.value.eq_ignore_ascii_case(known);
        return match word.value.len() {
            6 if is("isnull") => Some(KeywordCategory::FunctionName),
            7 if is("analyse") => Some(KeywordCategory::Reserved),
            _ => None,
        };
    }
    CATEGORIES.get(word.keyword as usize).copied().flatten()
}

/// Returns the error of a word at its place.
#[cold]
pub(super) fn near(text: &str, word: &str, place: Location) -> SqlError {
    let message = format!("syntax error at or near \"{word}\"");
    SqlError::new(SqlState::SyntaxError, message).at(offset_of(text, place))
}
