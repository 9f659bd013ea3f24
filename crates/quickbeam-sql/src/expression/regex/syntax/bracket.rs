//! Bracket expressions.

use super::character_set::CharacterSet;
use super::classes::{NamedClass, cased, collating_element, lower_case, upper_case};
use super::lexer::{PatternEscape, PatternLexer, PatternToken, bad_escape};
use super::options::RegexGrammar;
use super::{RANGES_LIMIT, invalid, too_complex};
use crate::error::{Result, SqlError};

/// An element of a bracket expression.
enum BracketToken {
    Character(char),
    /// A hyphen between two elements.
    Range,
    Element(char),
    Set(CharacterSet),
    Close,
}

fn unbalanced() -> SqlError {
    invalid("brackets [] not balanced")
}

fn bad_range() -> SqlError {
    invalid("invalid character range")
}

/// Returns what a character outside of brackets matches.
pub(super) fn literal(character: char, ignores_case: bool) -> CharacterSet {
    if !ignores_case {
        return CharacterSet::of(character);
    }
    let mut set = CharacterSet::of(lower_case(character));
    set.add(upper_case(character));
    set
}

impl PatternLexer {
    /// Reads a bracket expression after its first bracket.
    pub(super) fn bracket(&mut self) -> Result<PatternToken> {
        match &self.characters[self.at..] {
            ['[', ':', '<', ':', ']', ']', ..] => {
                self.at += 6;
                return Ok(PatternToken::WordStart);
            }
            ['[', ':', '>', ':', ']', ']', ..] => {
                self.at += 6;
                return Ok(PatternToken::WordEnd);
            }
            _ => {}
        }
        let is_negated = self.accept('^');
        let start = self.at;
        let mut ranges = Vec::new();
        let mut token = self.bracket_token(start)?;
        loop {
            let first = match token {
                BracketToken::Close => break,
                BracketToken::Range => return Err(bad_range()),
                BracketToken::Set(members) => {
                    ranges.extend_from_slice(members.ranges());
                    token = self.bracket_token(start)?;
                    continue;
                }
                BracketToken::Character(character) | BracketToken::Element(character) => character,
            };
            token = self.bracket_token(start)?;
            if !matches!(token, BracketToken::Range) {
                ranges.extend_from_slice(literal(first, self.options.ignores_case).ranges());
                continue;
            }
            let last = match self.bracket_token(start)? {
                BracketToken::Character(character) | BracketToken::Element(character) => character,
                BracketToken::Range => '-',
                BracketToken::Set(_) | BracketToken::Close => return Err(bad_range()),
            };
            if last < first {
                return Err(bad_range());
            }
            self.add_range(&mut ranges, first, last);
            token = self.bracket_token(start)?;
        }
        self.ranges += ranges.len();
        if self.ranges > RANGES_LIMIT {
            return Err(too_complex());
        }
        let mut set = CharacterSet::of_ranges(ranges);
        if is_negated {
            set = set.complement();
            if self.options.stops_at_newline {
                set = set.without(&CharacterSet::of('\n'));
            }
        }
        Ok(PatternToken::Set(set))
    }

    fn add_range(&self, ranges: &mut Vec<(u32, u32)>, first: char, last: char) {
        let range = CharacterSet::of_ranges([(u32::from(first), u32::from(last))]);
        if self.options.ignores_case {
            let members = cased().without(&range.complement());
            let both =
                members.characters().flat_map(|member| [lower_case(member), upper_case(member)]);
            ranges.extend(both.map(|member| (u32::from(member), u32::from(member))));
        }
        ranges.extend_from_slice(range.ranges());
    }

    /// Returns the next element; the expression begins at `start`.
    fn bracket_token(&mut self, start: usize) -> Result<BracketToken> {
        let is_first = self.at == start;
        let character = self.bump().ok_or_else(unbalanced)?;
        Ok(match character {
            ']' if !is_first => BracketToken::Close,
            '\\' if self.options.grammar == RegexGrammar::Advanced => match self.escape()? {
                PatternEscape::Character(character) => BracketToken::Character(character),
                PatternEscape::Class { class, is_negated } => {
                    let set = class.characters(self.options.ignores_case);
                    BracketToken::Set(if is_negated { set.complement() } else { set })
                }
                PatternEscape::Other(_) => return Err(bad_escape()),
            },
            '-' if !is_first && self.peek() != Some(']') => BracketToken::Range,
            '[' => match self.peek() {
                None => return Err(unbalanced()),
                Some(kind @ ('.' | '=' | ':')) => {
                    self.at += 1;
                    self.named(kind)?
                }
                Some(_) => BracketToken::Character('['),
            },
            other => BracketToken::Character(other),
        })
    }

    /// Reads `[.element.]`, `[=equivalence=]` or `[:class:]` after its start.
    fn named(&mut self, kind: char) -> Result<BracketToken> {
        let mut name = String::new();
        loop {
            let character = self.bump().ok_or_else(unbalanced)?;
            if character == kind && self.accept(']') {
                break;
            }
            name.push(character);
        }
        let ignores_case = self.options.ignores_case;
        if kind == ':' {
            let class = NamedClass::of_name(&name);
            let class = class.ok_or_else(|| invalid("invalid character class"))?;
            return Ok(BracketToken::Set(class.characters(ignores_case)));
        }
        let element = collating_element(&name);
        let element = element.ok_or_else(|| invalid("invalid collating element"))?;
        Ok(match kind {
            '=' => BracketToken::Set(literal(element, ignores_case)),
            _ => BracketToken::Element(element),
        })
    }
}
