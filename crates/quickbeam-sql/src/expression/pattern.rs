//! LIKE: patterns with `%` and `_`.

use crate::error::{Result, SqlError, SqlState};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// These characters.
    Text(String),
    /// One character.
    One,
    /// Any characters.
    Any,
}

/// A pattern, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
    insensitive: bool,
}

impl Pattern {
    /// Takes a pattern apart; `escape` makes the character after it stand for itself.
    pub fn new(pattern: &str, escape: Option<char>, insensitive: bool) -> Result<Pattern> {
        let mut parts: Vec<Part> = Vec::new();
        let mut text = String::new();
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let part = match character {
                _ if Some(character) == escape => {
                    let next = characters.next().ok_or_else(|| {
                        let message = "LIKE pattern must not end with escape character";
                        SqlError::new(SqlState::InvalidEscapeSequence, message)
                    })?;
                    text.push(next);
                    continue;
                }
                '%' => Part::Any,
                '_' => Part::One,
                _ => {
                    text.push(character);
                    continue;
                }
            };
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            if part != Part::Any || parts.last() != Some(&Part::Any) {
                parts.push(part);
            }
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        if insensitive {
            for part in &mut parts {
                if let Part::Text(text) = part {
                    *text = text.to_lowercase();
                }
            }
        }
        Ok(Pattern { parts, insensitive })
    }

    /// What every text that matches begins with.
    pub fn prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) if !self.insensitive => text,
            _ => "",
        }
    }

    /// Whether the text as a whole is like the pattern.
    pub fn matches(&self, text: &str) -> bool {
        if self.insensitive { self.run(&text.to_lowercase()) } else { self.run(text) }
    }

    /// Goes forward through text and pattern. When it fails it goes back to the last `%`, which then covers one character more:
    /// an earlier `%` need never be tried again.
    fn run(&self, text: &str) -> bool {
        let (mut rest, mut part) = (text, 0);
        let mut retry: Option<(&str, usize)> = None;
        loop {
            let stepped = match self.parts.get(part) {
                None if rest.is_empty() => return true,
                None => None,
                Some(Part::Any) => {
                    if part + 1 == self.parts.len() {
                        return true;
                    }
                    retry = Some((rest, part));
                    Some(rest)
                }
                Some(Part::One) => {
                    let mut characters = rest.chars();
                    characters.next().map(|_| characters.as_str())
                }
                Some(Part::Text(wanted)) => rest.strip_prefix(wanted.as_str()),
            };
            match (stepped, &mut retry) {
                (Some(after), _) => {
                    rest = after;
                    part += 1;
                }
                (None, Some((from, at))) => {
                    let mut characters = from.chars();
                    if characters.next().is_none() {
                        return false;
                    }
                    *from = characters.as_str();
                    (rest, part) = (*from, *at + 1);
                }
                (None, None) => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(text: &str, pattern: &str) -> bool {
        Pattern::new(pattern, Some('\\'), false).unwrap().matches(text)
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
        assert!(Pattern::new("AbC%", None, true).unwrap().matches("aBcd"));
        assert_eq!(Pattern::new("a\\", Some('\\'), false).unwrap_err().code(), "22025");
    }

    #[test]
    fn a_pattern_made_to_take_long_does_not() {
        let text = "a".repeat(5_000);
        assert!(!like(&text, &format!("{}b", "%a".repeat(500))));
    }
}
