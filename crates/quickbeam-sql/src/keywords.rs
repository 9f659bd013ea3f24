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

/// What a word is the name of. PostgreSQL's grammar has a symbol for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// A table, a column, or anything but those below: ColId.
    Object,
    /// A function, a type or a parameter: type_function_name.
    Function,
    /// A role, a language or an option: NonReservedWord.
    Role,
}

/// Returns whether a word in lower case is such a name without quotes.
pub fn is_name(word: &str, kind: NameKind) -> bool {
    use KeywordCategory::{ColumnName, FunctionName, Reserved, Unreserved};
    match keyword_category(word) {
        None | Some(Unreserved) => true,
        Some(ColumnName) => kind != NameKind::Function,
        Some(FunctionName) => kind != NameKind::Object,
        Some(Reserved) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_is_found() {
        assert!(keywords().iter().all(|it| keyword_category(it.word) == Some(it.category)));
        let kinds = [NameKind::Object, NameKind::Function, NameKind::Role];
        let taken = |word: &str| kinds.map(|kind| is_name(word, kind));
        assert_eq!(taken("user"), [false, false, false]);
        assert_eq!(taken("left"), [false, true, true]);
        assert_eq!(taken("between"), [true, false, true]);
        assert_eq!([taken("name"), taken("nosuch")], [[true; 3]; 2]);
    }
}
