//! The tokens of a regular expression.

use super::character_set::CharacterSet;
use super::classes::NamedClass;
use super::invalid;
use super::options::{RegexGrammar, RegexOptions};
use super::pieces::{Lookaround, PreferredLength, RegexQuantifier};
use crate::error::Result;

/// The largest number in braces.
const MOST_REPETITIONS: u32 = 255;

/// A token; a bracket expression is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternToken {
    End,
    Character(char),
    Set(CharacterSet),
    Bar,
    Open { captures: bool },
    Look(Lookaround),
    Close,
    Quantifier(RegexQuantifier),
    Caret,
    Dollar,
    TextStart,
    TextEnd,
    WordStart,
    WordEnd,
    WordBoundary,
    NoWordBoundary,
    BackReference(usize),
}

/// The lexer.
pub(super) struct PatternLexer {
    pub characters: Vec<char>,
    pub at: usize,
    pub options: RegexOptions,
    /// The token before the next one; `None` at the start.
    previous: Option<PatternToken>,
    /// Groups that were opened so far.
    pub groups: usize,
    /// Ranges of bracket expressions so far.
    pub ranges: usize,
}

pub(super) fn bad_escape() -> crate::error::SqlError {
    invalid("invalid escape \\ sequence")
}

fn bad_operand() -> crate::error::SqlError {
    invalid("quantifier operand invalid")
}

/// What an escape stands for.
pub(super) enum PatternEscape {
    Character(char),
    Class { class: NamedClass, is_negated: bool },
    Other(PatternToken),
}

impl PatternLexer {
    /// Begins with the prefixes: a director (`***`) and embedded options.
    pub fn new(pattern: &str, options: RegexOptions) -> Result<PatternLexer> {
        if options.has_conflict() {
            return Err(invalid("invalid argument to regex function"));
        }
        let characters = pattern.chars().collect();
        let mut lexer =
            PatternLexer { characters, at: 0, options, previous: None, groups: 0, ranges: 0 };
        lexer.prefixes()?;
        Ok(lexer)
    }

    fn prefixes(&mut self) -> Result<()> {
        let options = &mut self.options;
        if options.grammar == RegexGrammar::Literal {
            return Ok(());
        }
        match &self.characters[..] {
            ['*', '*', '*', '=', ..] => {
                options.grammar = RegexGrammar::Literal;
                options.is_expanded = false;
                (options.stops_at_newline, options.anchors_at_lines) = (false, false);
                self.at = 4;
                return Ok(());
            }
            ['*', '*', '*', ':', ..] => {
                options.grammar = RegexGrammar::Advanced;
                self.at = 4;
            }
            ['*', '*', '*', '?', ..] => return Err(invalid("invalid regexp (reg version 0.8)")),
            ['*', '*', '*', _, ..] => return Err(bad_operand()),
            _ => {}
        }
        if options.grammar != RegexGrammar::Advanced {
            return Ok(());
        }
        if let ['(', '?', letters @ ..] = &self.characters[self.at..]
            && letters.first().is_some_and(char::is_ascii_alphabetic)
        {
            let count = letters.iter().take_while(|letter| letter.is_ascii_alphabetic()).count();
            let are_known = letters[..count].iter().all(|letter| options.accept(*letter));
            if !are_known || letters.get(count) != Some(&')') {
                return Err(invalid("invalid embedded option"));
            }
            self.at += count + 3;
            if options.grammar == RegexGrammar::Literal {
                options.is_expanded = false;
                (options.stops_at_newline, options.anchors_at_lines) = (false, false);
            }
        }
        Ok(())
    }

    pub fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    pub fn bump(&mut self) -> Option<char> {
        let character = self.peek();
        self.at += usize::from(character.is_some());
        character
    }

    pub fn accept(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        self.at += usize::from(is_next);
        is_next
    }

    /// Skips white space and comments of the expanded syntax.
    fn skip(&mut self) {
        if !self.options.is_expanded {
            return;
        }
        while let Some(character) = self.peek() {
            if character == '#' {
                while self.peek().is_some_and(|next| next != '\n') {
                    self.at += 1;
                }
            } else if matches!(character, ' ' | '\t'..='\r') {
                self.at += 1;
            } else {
                break;
            }
        }
    }

    /// Returns the next token.
    pub fn next(&mut self) -> Result<PatternToken> {
        let token = self.token()?;
        self.previous = Some(token.clone());
        Ok(token)
    }

    fn token(&mut self) -> Result<PatternToken> {
        self.skip();
        let Some(character) = self.bump() else { return Ok(PatternToken::End) };
        match self.options.grammar {
            RegexGrammar::Literal => Ok(PatternToken::Character(character)),
            RegexGrammar::Basic => self.basic(character),
            RegexGrammar::Advanced | RegexGrammar::Extended => self.extended(character),
        }
    }

    fn quantifier(&mut self, least: u32, most: Option<u32>) -> PatternToken {
        let is_advanced = self.options.grammar == RegexGrammar::Advanced;
        let prefers = if is_advanced && self.accept('?') {
            PreferredLength::Shortest
        } else {
            PreferredLength::Longest
        };
        PatternToken::Quantifier(RegexQuantifier { least, most, prefers: Some(prefers) })
    }

    fn extended(&mut self, character: char) -> Result<PatternToken> {
        Ok(match character {
            '|' => PatternToken::Bar,
            '*' => self.quantifier(0, None),
            '+' => self.quantifier(1, None),
            '?' => self.quantifier(0, Some(1)),
            '{' => {
                self.skip();
                if !self.peek().is_some_and(|next| next.is_ascii_digit()) {
                    return Ok(PatternToken::Character('{'));
                }
                self.bounds()?
            }
            '(' if self.options.grammar == RegexGrammar::Advanced && self.accept('?') => {
                return self.parenthesis();
            }
            '(' => PatternToken::Open { captures: true },
            ')' => PatternToken::Close,
            '[' => self.bracket()?,
            '.' => PatternToken::Set(self.any()),
            '^' => PatternToken::Caret,
            '$' => PatternToken::Dollar,
            '\\' if self.options.grammar == RegexGrammar::Extended => {
                PatternToken::Character(self.bump().ok_or_else(bad_escape)?)
            }
            '\\' => match self.escape()? {
                PatternEscape::Character(character) => PatternToken::Character(character),
                PatternEscape::Class { class, is_negated } => {
                    let set = class.characters(self.options.ignores_case);
                    PatternToken::Set(if is_negated { set.complement() } else { set })
                }
                PatternEscape::Other(token) => token,
            },
            other => PatternToken::Character(other),
        })
    }

    fn any(&self) -> CharacterSet {
        let all = CharacterSet::all();
        if self.options.stops_at_newline { all.without(&CharacterSet::of('\n')) } else { all }
    }

    /// Reads what follows `(?`.
    fn parenthesis(&mut self) -> Result<PatternToken> {
        let look =
            |is_behind, is_negative| Ok(PatternToken::Look(Lookaround { is_behind, is_negative }));
        match self.bump() {
            Some(':') => Ok(PatternToken::Open { captures: false }),
            Some('#') => {
                while self.bump().is_some_and(|next| next != ')') {}
                self.token()
            }
            Some('=') => look(false, false),
            Some('!') => look(false, true),
            Some('<') => match self.bump() {
                Some('=') => look(true, false),
                Some('!') => look(true, true),
                _ => Err(bad_operand()),
            },
            _ => Err(bad_operand()),
        }
    }

    fn number(&mut self) -> Result<u32> {
        let mut number = 0;
        loop {
            self.skip();
            let Some(digit) = self.peek().and_then(|next| next.to_digit(10)) else {
                return Ok(number);
            };
            number = number * 10 + digit;
            if number > MOST_REPETITIONS {
                return Err(invalid("invalid repetition count(s)"));
            }
            self.at += 1;
        }
    }

    /// Reads the numbers of a quantifier in braces and the brace that closes it.
    fn bounds(&mut self) -> Result<PatternToken> {
        let unbalanced = || invalid("braces {} not balanced");
        let bad = || invalid("invalid repetition count(s)");
        let least = self.number()?;
        let has_comma = self.accept(',');
        let mut most = Some(least);
        if has_comma {
            self.skip();
            let is_digit = self.peek().is_some_and(|next| next.is_ascii_digit());
            most = if is_digit { Some(self.number()?) } else { None };
        }
        self.skip();
        let is_basic = self.options.grammar == RegexGrammar::Basic;
        let closes = match self.bump() {
            None => return Err(unbalanced()),
            Some('\\') if is_basic => self.accept('}'),
            Some('}') => !is_basic,
            Some(_) => false,
        };
        if !closes || most.is_some_and(|most| least > most) {
            return Err(bad());
        }
        let token = self.quantifier(least, most);
        Ok(match token {
            // `{m}` has the preference of what it repeats.
            PatternToken::Quantifier(quantifier) if !has_comma => {
                PatternToken::Quantifier(RegexQuantifier { prefers: None, ..quantifier })
            }
            other => other,
        })
    }

    fn basic(&mut self, character: char) -> Result<PatternToken> {
        let is_start = matches!(self.previous, None | Some(PatternToken::Open { .. }));
        Ok(match character {
            '*' if is_start || self.previous == Some(PatternToken::Caret) => {
                PatternToken::Character('*')
            }
            '*' => self.quantifier(0, None),
            '[' => self.bracket()?,
            '.' => PatternToken::Set(self.any()),
            '^' if is_start => PatternToken::Caret,
            '$' => {
                self.skip();
                match &self.characters[self.at..] {
                    [] | ['\\', ')', ..] => PatternToken::Dollar,
                    _ => PatternToken::Character('$'),
                }
            }
            '\\' => match self.bump().ok_or_else(bad_escape)? {
                '{' => self.bounds()?,
                '(' => PatternToken::Open { captures: true },
                ')' => PatternToken::Close,
                '<' => PatternToken::WordStart,
                '>' => PatternToken::WordEnd,
                digit @ '1'..='9' => {
                    PatternToken::BackReference(digit.to_digit(10).unwrap_or(0) as usize)
                }
                other => PatternToken::Character(other),
            },
            other => PatternToken::Character(other),
        })
    }

    fn digits(&mut self, radix: u32, least: usize, most: usize) -> Result<u32> {
        let (mut number, mut count) = (0_u32, 0);
        while count < most
            && let Some(digit) = self.peek().and_then(|next| next.to_digit(radix))
        {
            number = number.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
            count += 1;
        }
        if count < least { Err(bad_escape()) } else { Ok(number) }
    }

    /// Reads an escape of the advanced syntax, after the backslash.
    pub fn escape(&mut self) -> Result<PatternEscape> {
        let escape = self.bump().ok_or_else(bad_escape)?;
        let class = |class, is_negated| Ok(PatternEscape::Class { class, is_negated });
        let character = |code: u32| char::from_u32(code).ok_or_else(bad_escape);
        let token = match escape {
            'd' => return class(NamedClass::Digit, false),
            'D' => return class(NamedClass::Digit, true),
            's' => return class(NamedClass::Space, false),
            'S' => return class(NamedClass::Space, true),
            'w' => return class(NamedClass::Word, false),
            'W' => return class(NamedClass::Word, true),
            'A' => PatternToken::TextStart,
            'Z' => PatternToken::TextEnd,
            'm' => PatternToken::WordStart,
            'M' => PatternToken::WordEnd,
            'y' => PatternToken::WordBoundary,
            'Y' => PatternToken::NoWordBoundary,
            'a' => PatternToken::Character('\u{7}'),
            'b' => PatternToken::Character('\u{8}'),
            'B' => PatternToken::Character('\\'),
            'c' => {
                let control = self.bump().ok_or_else(bad_escape)?;
                PatternToken::Character(character(u32::from(control) & 0o37)?)
            }
            'e' => PatternToken::Character('\u{1b}'),
            'f' => PatternToken::Character('\u{c}'),
            'n' => PatternToken::Character('\n'),
            'r' => PatternToken::Character('\r'),
            't' => PatternToken::Character('\t'),
            'v' => PatternToken::Character('\u{b}'),
            'u' => PatternToken::Character(character(self.digits(16, 4, 4)?)?),
            'U' => PatternToken::Character(character(self.digits(16, 8, 8)?)?),
            'x' => PatternToken::Character(character(self.digits(16, 1, 255)?)?),
            '0'..='9' => return self.digit_escape(escape),
            other if other.is_ascii_alphanumeric() => return Err(bad_escape()),
            other => PatternToken::Character(other),
        };
        Ok(match token {
            PatternToken::Character(character) => PatternEscape::Character(character),
            other => PatternEscape::Other(other),
        })
    }

    /// Reads a back reference or an octal number. Several digits are a back reference only if
    /// there is such a group.
    fn digit_escape(&mut self, first: char) -> Result<PatternEscape> {
        let start = self.at - 1;
        if first != '0' {
            self.at = start;
            let number = self.digits(10, 1, 255)? as usize;
            if self.at == start + 1 || (number > 0 && number <= self.groups) {
                return Ok(PatternEscape::Other(PatternToken::BackReference(number)));
            }
        }
        self.at = start;
        let mut number = self.digits(8, 1, 3)?;
        if number > 0xff {
            self.at -= 1;
            number >>= 3;
        }
        Ok(PatternEscape::Character(char::from_u32(number).ok_or_else(bad_escape)?))
    }
}
