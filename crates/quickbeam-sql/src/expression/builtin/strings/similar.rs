//! Translation of patterns of SIMILAR TO to regular expressions.

use crate::error::{Result, SqlError, SqlState};

/// What an escaped double quote means in a pattern of SIMILAR TO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::expression::builtin) enum EscapedQuote {
    /// Itself.
    Literal,
    /// It divides the pattern into three; the middle part becomes a group.
    Separator,
}

/// The bracket expression around a character of a pattern.
#[derive(Default)]
struct Brackets {
    depth: usize,
    /// Characters since the first bracket, up to the first one that a bracket may follow and close
    /// the expression.
    begun: u8,
}

impl Brackets {
    fn push(&mut self, character: char) {
        match character {
            // A bracket at the start of the expression is one of its characters.
            ']' if self.begun > 1 => self.depth -= 1,
            '[' => self.depth += 1,
            _ => {}
        }
        self.begun = if character == '^' { self.begun + 1 } else { 2 };
        self.begun = self.begun.min(2);
    }
}

/// Translates a pattern of SIMILAR TO.
pub(in crate::expression::builtin) fn translate_similar(
    pattern: &str,
    escape: Option<char>,
    quote: EscapedQuote,
) -> Result<String> {
    let (mut out, mut quotes) = (String::from("^(?:"), 0);
    let mut brackets = Brackets::default();
    let mut is_escaped = false;
    for character in pattern.chars() {
        if std::mem::take(&mut is_escaped) {
            let is_separator = quote == EscapedQuote::Separator && brackets.depth == 0;
            if character == '"' && is_separator {
                quotes += 1;
                out.push_str(match quotes {
                    1 => "){1,1}?(",
                    2 => "){1,1}(?:",
                    _ => return Err(too_many_separators()),
                });
            } else {
                out.push('\\');
                out.push(character);
            }
        } else if Some(character) == escape {
            is_escaped = true;
        } else if brackets.depth > 0 {
            if character == '\\' {
                out.push('\\');
            }
            out.push(character);
            brackets.push(character);
        } else {
            match character {
                '[' => {
                    brackets = Brackets { depth: 1, begun: 0 };
                    out.push('[');
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                // A group captures only when it is the middle part.
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(character);
                }
                other => out.push(other),
            }
        }
    }
    out.push_str(")$");
    Ok(out)
}

#[cold]
fn too_many_separators() -> SqlError {
    SqlError::new(
        SqlState::InvalidUseOfEscapeCharacter,
        "SQL regular expression may not contain more than two escape-double-quote separators",
    )
}

#[cfg(test)]
mod tests {
    use super::{EscapedQuote, translate_similar};

    #[test]
    fn patterns_become_regular_expressions() {
        for (pattern, expected) in [
            ("ab#", "^(?:ab)$"),
            ("a[[:alpha:]%_]b_#\"#d#\"", "^(?:a[[:alpha:]%_]b.){1,1}?(\\d){1,1}(?:)$"),
            ("a[^]%\\]%[]#\"]#a", "^(?:a[^]%\\\\].*[]\\\"]\\a)$"),
            ("a|b#\"c|d#\"e", "^(?:a|b){1,1}?(c|d){1,1}(?:e)$"),
            ("[^^]%]%", "^(?:[^^].*].*)$"),
            ("[^[.%.]]_", "^(?:[^[.%.]].)$"),
        ] {
            let translated = translate_similar(pattern, Some('#'), EscapedQuote::Separator);
            assert_eq!(translated.expect("a pattern"), expected);
        }
    }
}
