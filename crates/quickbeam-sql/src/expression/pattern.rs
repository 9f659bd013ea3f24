//! LIKE patterns with `%` and `_`.

use std::fmt::{self, Write};

use memchr::memmem::Finder;

use crate::error::{Result, SqlError, SqlState};

/// Whether a pattern tells upper case from lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterCase {
    /// `a` matches `A`.
    Ignored,
    /// `a` matches `a` only.
    Kept,
}

impl From<bool> for LetterCase {
    fn from(it: bool) -> LetterCase {
        if it { LetterCase::Ignored } else { LetterCase::Kept }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternPart {
    /// Literal characters.
    Text(Box<Literal>),
    /// `_`: one character.
    One,
    /// `%`: any characters.
    Any,
    /// An escape character at the end of the pattern.
    Unfinished,
}

/// Literal characters of a pattern, ready to be searched for.
#[derive(Clone, Debug)]
struct Literal {
    text: String,
    finder: Finder<'static>,
}

impl Literal {
    fn new(text: String) -> Literal {
        let finder = Finder::new(&text).into_owned();
        Literal { text, finder }
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        self.text == other.text
    }
}

impl Eq for Literal {}

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<PatternPart>,
    insensitive: bool,
}

/// The pattern, with backslash as the escape character.
impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                PatternPart::Text(literal) => {
                    for character in literal.text.chars() {
                        if matches!(character, '%' | '_' | '\\') {
                            out.write_char('\\')?;
                        }
                        out.write_char(character)?;
                    }
                }
                PatternPart::One => out.write_char('_')?,
                PatternPart::Any => out.write_char('%')?,
                PatternPart::Unfinished => out.write_char('\\')?,
            }
        }
        Ok(())
    }
}

impl Pattern {
    /// Parses a pattern; `escape` makes the following character literal.
    pub fn new(pattern: &str, escape: Option<char>, case: LetterCase) -> Pattern {
        let insensitive = case == LetterCase::Ignored;
        let mut parts: Vec<PatternPart> = Vec::new();
        let mut text = String::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let part = match character {
                _ if Some(character) == escape => match characters.next() {
                    Some(next) => {
                        text.push(next);
                        continue;
                    }
                    None => PatternPart::Unfinished,
                },
                '%' => PatternPart::Any,
                '_' => PatternPart::One,
                _ => {
                    text.push(character);
                    continue;
                }
            };
            if !text.is_empty() {
                parts.push(PatternPart::Text(Box::new(Literal::new(std::mem::take(&mut text)))));
            }
            if part != PatternPart::Any || parts.last() != Some(&PatternPart::Any) {
                parts.push(part);
            }
        }
        if !text.is_empty() {
            parts.push(PatternPart::Text(Box::new(Literal::new(text))));
        }
        if insensitive {
            for part in &mut parts {
                if let PatternPart::Text(literal) = part {
                    **literal = Literal::new(literal.text.to_lowercase());
                }
            }
        }
        Pattern { parts, insensitive }
    }

    /// Returns whether upper case counts as lower case.
    pub fn is_insensitive(&self) -> bool {
        self.insensitive
    }

    /// Returns whether the pattern ends with the escape character. That is an error only for texts
    /// that match up to there.
    pub fn is_unfinished(&self) -> bool {
        self.parts.last() == Some(&PatternPart::Unfinished)
    }

    /// Returns whether the whole text matches; false for a text that reaches an unfinished escape.
    pub fn matches(&self, text: &str) -> bool {
        self.result(text) == Some(true)
    }

    /// Returns whether the whole text matches.
    pub fn try_matches(&self, text: &str) -> Result<bool> {
        self.result(text).ok_or_else(|| {
            let message = "LIKE pattern must not end with escape character";
            SqlError::new(SqlState::InvalidEscapeSequence, message)
        })
    }

    fn result(&self, text: &str) -> Option<bool> {
        if self.insensitive { self.run(&text.to_lowercase()) } else { self.run(text) }
    }

    /// Matches text and pattern from the left. A mismatch returns to the last `%`, which then takes
    /// one more character; an earlier `%` need not be retried. Literal characters after `%` are
    /// searched for. Returns `None` if the text reaches an unfinished escape.
    fn run(&self, text: &str) -> Option<bool> {
        let (mut rest, mut part) = (text, 0);
        let mut retry: Option<(&str, usize)> = None;
        loop {
            let stepped = match self.parts.get(part) {
                None if rest.is_empty() => return Some(true),
                None => None,
                Some(PatternPart::Any) => {
                    if part + 1 == self.parts.len() {
                        return Some(true);
                    }
                    if let Some(PatternPart::Text(wanted)) = self.parts.get(part + 1) {
                        match wanted.finder.find(rest.as_bytes()) {
                            Some(at) => rest = rest.get(at..).unwrap_or_default(),
                            None => return Some(false),
                        }
                    }
                    retry = Some((rest, part));
                    Some(rest)
                }
                Some(PatternPart::One) => {
                    let mut characters = rest.chars();
                    characters.next().map(|_| characters.as_str())
                }
                Some(PatternPart::Unfinished) if rest.is_empty() => None,
                Some(PatternPart::Unfinished) => return None,
                Some(PatternPart::Text(wanted)) => rest.strip_prefix(wanted.text.as_str()),
            };
            match (stepped, &mut retry) {
                (Some(after), _) => {
                    rest = after;
                    part += 1;
                }
                (None, Some((from, at))) => {
                    let mut characters = from.chars();
                    if characters.next().is_none() {
                        return Some(false);
                    }
                    *from = characters.as_str();
                    (rest, part) = (*from, *at);
                }
                (None, None) => return Some(false),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        Pattern::new(pattern, Some('\\'), LetterCase::Kept).matches(text)
    }

    #[test]
    fn patterns_are_read_as_they_are_shown() {
        for (text, escape, shown) in [
            ("a%%b_", Some('\\'), "a%b_"),
            ("50#%#_\\", Some('#'), "50\\%\\_\\\\"),
            ("a\\", Some('\\'), "a\\"),
            ("", None, ""),
        ] {
            let pattern = Pattern::new(text, escape, LetterCase::Kept);
            assert_eq!(pattern.to_string(), shown);
            assert_eq!(Pattern::new(shown, Some('\\'), LetterCase::Kept), pattern, "{text}");
        }
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("abc", "abc", true),
            ("abc", "a%", true),
            ("abc", "%c", true),
            ("abc", "%b%", true),
            ("abc", "_b_", true),
            ("abc", "_", false),
            ("abcbc", "a%bc", true),
            ("aab", "%ab", true),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("größe", "gr__e", true),
            ("größe", "%ß_", true),
            ("mississippi", "%iss%ip%", true),
            ("mississippi", "%iss%ix%", false),
            ("ab", "a%_b", false),
            ("axb", "a%_b", true),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} LIKE {pattern}");
        }
        assert!(Pattern::new("AbC%", None, LetterCase::Ignored).matches("aBcd"));
    }

    #[test]
    fn an_escape_at_the_end_is_an_error_for_texts_that_get_there() {
        for (text, pattern, expected) in [
            ("ab", "a\\", Err("22025")),
            ("a", "a\\", Ok(false)),
            ("b", "a\\", Ok(false)),
            ("abc", "%b\\", Err("22025")),
            ("abc", "%c\\", Ok(false)),
        ] {
            let result = Pattern::new(pattern, Some('\\'), LetterCase::Kept).try_matches(text);
            assert_eq!(result.map_err(|error| error.code()), expected, "{text} LIKE {pattern}");
        }
    }

    #[test]
    fn a_pattern_made_to_take_long_does_not() {
        let text = "a".repeat(5_000);
        assert!(!like(&text, &format!("{}b", "%a".repeat(500))));
    }
}
