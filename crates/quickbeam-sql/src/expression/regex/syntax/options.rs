//! The options of a regular expression.

use crate::error::{Result, SqlError, SqlState};

/// The grammar of a regular expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::expression) enum RegexGrammar {
    /// PostgreSQL's own.
    #[default]
    Advanced,
    /// POSIX's extended expressions: no escapes, no non-greedy quantifiers, no `(?`.
    Extended,
    /// POSIX's basic expressions.
    Basic,
    /// A text that is matched as it is.
    Literal,
}

/// The options of a regular expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::expression) struct RegexOptions {
    pub grammar: RegexGrammar,
    pub is_global: bool,
    pub ignores_case: bool,
    /// `.` and negated classes exclude newlines.
    pub stops_at_newline: bool,
    /// `^` and `$` match at line ends.
    pub anchors_at_lines: bool,
    pub is_expanded: bool,
}

impl RegexOptions {
    /// Reads option letters.
    pub fn parse(letters: &str) -> Result<RegexOptions> {
        let mut options = RegexOptions::default();
        for letter in letters.chars() {
            if letter == 'g' {
                options.is_global = true;
            } else if letter == 'e' {
                // The option of the functions, unlike the embedded one, is that of `b`.
                options.grammar = RegexGrammar::Basic;
            } else if !options.accept(letter) {
                let message = format!("invalid regular expression option: \"{letter}\"");
                return Err(SqlError::new(SqlState::InvalidParameterValue, message));
            }
        }
        Ok(options)
    }

    /// Sets the option of a letter; returns whether there is one.
    pub(super) fn accept(&mut self, letter: char) -> bool {
        match letter {
            'b' => self.grammar = RegexGrammar::Basic,
            'e' => self.grammar = RegexGrammar::Extended,
            'q' => self.grammar = RegexGrammar::Literal,
            'i' => self.ignores_case = true,
            'c' => self.ignores_case = false,
            'x' => self.is_expanded = true,
            't' => self.is_expanded = false,
            'm' | 'n' => (self.stops_at_newline, self.anchors_at_lines) = (true, true),
            'p' => (self.stops_at_newline, self.anchors_at_lines) = (true, false),
            's' => (self.stops_at_newline, self.anchors_at_lines) = (false, false),
            'w' => (self.stops_at_newline, self.anchors_at_lines) = (false, true),
            _ => return false,
        }
        true
    }

    /// Returns whether a literal text has options of patterns.
    pub(super) fn has_conflict(&self) -> bool {
        self.grammar == RegexGrammar::Literal
            && (self.is_expanded || self.stops_at_newline || self.anchors_at_lines)
    }
}
