//! The key words of PostgreSQL 15, in alphabetical order, with their categories.

use std::sync::LazyLock;

/// What a key word can be without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeywordCategory {
    /// Any name.
    Unreserved,
    /// A name of anything but a function or type.
    ColumnName,
    /// A name of a function or type only.
    FunctionName,
    /// No name.
    Reserved,
}

/// A key word.
#[derive(Debug)]
pub struct KeywordRow {
    /// The word, in lower case.
    pub word: &'static str,
    /// What it can be.
    pub category: KeywordCategory,
    /// Whether it can be the name of an output without AS.
    pub is_label: bool,
}

static KEYWORDS: LazyLock<Vec<KeywordRow>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let mut fields = line.split('\t');
        let word = fields.next()?;
        let category = match fields.next()? {
            "U" => KeywordCategory::Unreserved,
            "C" => KeywordCategory::ColumnName,
            "T" => KeywordCategory::FunctionName,
            _ => KeywordCategory::Reserved,
        };
        Some(KeywordRow { word, category, is_label: fields.next()? == "t" })
    };
    include_str!("keywords.tsv").lines().filter_map(row).collect()
});

/// Returns all key words.
pub fn keywords() -> &'static [KeywordRow] {
    &KEYWORDS
}

/// Returns the category of a word in lower case; `None` if it is no key word.
pub fn keyword_category(word: &str) -> Option<KeywordCategory> {
    let at = KEYWORDS.binary_search_by(|known| known.word.cmp(word)).ok()?;
    KEYWORDS.get(at).map(|known| known.category)
}

/// Returns whether a word in lower case is a name in quotes only.
pub fn is_reserved(word: &str) -> bool {
    // PostgreSQL 16 reserves one more.
    keyword_category(word) == Some(KeywordCategory::Reserved) || word == "system_user"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found() {
        assert!(keywords().iter().all(|it| keyword_category(it.word) == Some(it.category)));
        assert!(is_reserved("user") && !is_reserved("name") && !is_reserved("nosuch"));
    }
}
