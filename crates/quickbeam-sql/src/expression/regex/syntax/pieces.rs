//! The syntax tree of a regular expression.

use super::character_set::CharacterSet;

/// A condition on the characters beside a place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::expression::regex) enum RegexAnchor {
    TextStart,
    TextEnd,
    /// The start of the text or of a line.
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    /// The start or the end of a word.
    WordBoundary,
    NoWordBoundary,
}

/// Where a lookaround constraint looks, and what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::expression::regex) struct Lookaround {
    pub is_behind: bool,
    pub is_negative: bool,
}

/// The length that a match prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::expression::regex) enum PreferredLength {
    Longest,
    Shortest,
}

/// What a quantifier repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::expression::regex) enum RegexAtom {
    Set(CharacterSet),
    /// Parentheses, with the number of the group if they capture.
    Group(Option<usize>, RegexAlternation),
    BackReference(usize),
}

/// A quantifier; no quantifier is one repetition without a preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::expression::regex) struct RegexQuantifier {
    pub least: u32,
    /// `None` has no limit.
    pub most: Option<u32>,
    pub prefers: Option<PreferredLength>,
}

/// A part of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::expression::regex) enum RegexPiece {
    Anchor(RegexAnchor),
    Look(Lookaround, RegexAlternation),
    Atom(RegexAtom, RegexQuantifier),
}

/// The branches of an expression, at least one; each one is a sequence of pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::expression::regex) struct RegexAlternation {
    pub branches: Vec<Vec<RegexPiece>>,
}
