//! Translation of PostgreSQL's regular expressions, and of SIMILAR TO, to the syntax of the `regex`
//! crate.
//!
//! The syntax of character classes, escapes and options follows PostgreSQL. Two differences
//! remain, because the crate guarantees a search in linear time. Back references and lookaround
//! are refused, and an alternation matches its first matching branch, not the longest one.

use crate::error::{Result, SqlError, SqlState};

/// Maximum repetition count in braces.
const MOST_REPETITIONS: u32 = 255;

/// The options of a regular expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(in crate::expression::builtin) struct Options {
    pub is_global: bool,
    pub ignores_case: bool,
    /// `.` and negated classes exclude newlines.
    pub stops_at_newline: bool,
    /// `^` and `$` match at line ends.
    pub anchors_at_lines: bool,
    pub is_expanded: bool,
    pub is_literal: bool,
}

impl Options {
    /// Reads option letters.
    pub fn parse(letters: &str) -> Result<Options> {
        let mut options = Options::default();
        for letter in letters.chars() {
            if !options.accept(letter) {
                let message = format!("invalid regular expression option: \"{letter}\"");
                return Err(SqlError::new(SqlState::InvalidParameterValue, message));
            }
        }
        Ok(options)
    }

    fn accept(&mut self, letter: char) -> bool {
        let lines = |stops, anchors| (stops, anchors);
        (self.stops_at_newline, self.anchors_at_lines) = match letter {
            'm' | 'n' => lines(true, true),
            'p' => lines(true, false),
            's' => lines(false, false),
            'w' => lines(false, true),
            _ => (self.stops_at_newline, self.anchors_at_lines),
        };
        match letter {
            'g' => self.is_global = true,
            'i' => self.ignores_case = true,
            'c' => self.ignores_case = false,
            'x' => self.is_expanded = true,
            't' => self.is_expanded = false,
            'q' => self.is_literal = true,
            'm' | 'n' | 'p' | 's' | 'w' | 'b' | 'e' => {}
            _ => return false,
        }
        true
    }
}

#[cold]
pub(in crate::expression::builtin) fn invalid(what: &str) -> SqlError {
    let message = format!("invalid regular expression: {what}");
    SqlError::new(SqlState::InvalidRegularExpression, message)
}

#[cold]
fn unsupported(what: &str) -> SqlError {
    SqlError::unsupported(format!("{what} in a regular expression"))
}

fn push_literal(out: &mut String, character: char) {
    if character.is_ascii_punctuation() || character.is_whitespace() {
        out.push_str(&format!("\\x{{{:x}}}", u32::from(character)));
    } else {
        out.push(character);
    }
}

/// A regular expression being translated.
struct Translator<'p> {
    rest: std::iter::Peekable<std::str::Chars<'p>>,
    out: String,
    options: Options,
}

/// Translates a regular expression; options at its start are added to `options`.
pub(in crate::expression::builtin) fn translate(
    pattern: &str,
    options: Options,
) -> Result<(String, Options)> {
    let mut options = options;
    let mut pattern = pattern.strip_prefix("***:").unwrap_or(pattern);
    if let Some(literal) = pattern.strip_prefix("***=") {
        (pattern, options.is_literal) = (literal, true);
    }
    if let Some(rest) = pattern.strip_prefix("(?")
        && !options.is_literal
        && let Some((letters, rest)) = rest.split_once(')')
        && !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_lowercase())
    {
        for letter in letters.chars() {
            if !options.accept(letter) {
                return Err(invalid("invalid embedded option"));
            }
        }
        pattern = rest;
    }
    let mut translator =
        Translator { rest: pattern.chars().peekable(), out: String::new(), options };
    if options.is_literal {
        pattern.chars().for_each(|character| push_literal(&mut translator.out, character));
    } else {
        while let Some(character) = translator.rest.next() {
            translator.step(character)?;
        }
    }
    Ok((translator.out, options))
}

impl Translator<'_> {
    fn accept(&mut self, wanted: char) -> bool {
        self.rest.next_if_eq(&wanted).is_some()
    }

    fn step(&mut self, character: char) -> Result<()> {
        match character {
            '\\' => {
                let escape =
                    self.rest.next().ok_or_else(|| invalid("invalid escape \\ sequence"))?;
                self.escape(escape, EscapePlace::Pattern)
            }
            '[' => self.class(),
            '(' if self.rest.peek() == Some(&'?') => {
                self.rest.next();
                match self.rest.next() {
                    Some(':') => self.out.push_str("(?:"),
                    Some('=' | '!' | '<') => return Err(unsupported("lookaround")),
                    _ => return Err(invalid("quantifier operand invalid")),
                }
                Ok(())
            }
            '{' => self.repetition(),
            '#' if self.options.is_expanded => {
                while self.rest.next_if(|next| *next != '\n').is_some() {}
                Ok(())
            }
            other if self.options.is_expanded && other.is_whitespace() => Ok(()),
            '#' | '&' | '~' | '-' => {
                push_literal(&mut self.out, character);
                Ok(())
            }
            other => {
                self.out.push(other);
                Ok(())
            }
        }
    }

    /// Translates `{m}`, `{m,}` and `{m,n}`; a brace before anything but a digit is literal.
    fn repetition(&mut self) -> Result<()> {
        if !self.rest.peek().is_some_and(char::is_ascii_digit) {
            self.out.push_str("\\{");
            return Ok(());
        }
        let (mut bounds, mut closed) = (String::new(), false);
        for character in self.rest.by_ref() {
            if character == '}' {
                closed = true;
                break;
            }
            bounds.push(character);
        }
        let counts: Option<Vec<u32>> = bounds
            .split(',')
            .filter(|bound| !bound.is_empty())
            .map(|bound| bound.parse().ok().filter(|count| *count <= MOST_REPETITIONS))
            .collect();
        match counts.as_deref() {
            Some([_]) if closed => {}
            Some([least, most]) if closed && least <= most => {}
            _ => return Err(invalid("invalid repetition count(s)")),
        }
        self.out.push_str(&format!("{{{bounds}}}"));
        Ok(())
    }

    fn number(&mut self, radix: u32, most: usize) -> Option<char> {
        let (mut number, mut count) = (0_u32, 0);
        while count < most
            && let Some(digit) = self.rest.peek().and_then(|next| next.to_digit(radix))
        {
            number = number.checked_mul(radix)?.checked_add(digit)?;
            self.rest.next();
            count += 1;
        }
        char::from_u32(number).filter(|_| count > 0)
    }

    /// Translates the escape that begins with `escape`.
    fn escape(&mut self, escape: char, place: EscapePlace) -> Result<()> {
        let fault = || invalid("invalid escape \\ sequence");
        let literal = match escape {
            'd' | 's' | 'w' | 'D' | 'S' | 'W' => {
                self.out.push('\\');
                self.out.push(escape);
                return Ok(());
            }
            'A' | 'm' | 'M' | 'y' | 'Y' | 'Z' if place == EscapePlace::Pattern => {
                self.out.push_str(match escape {
                    'A' => "\\A",
                    'm' => "\\b{start}",
                    'M' => "\\b{end}",
                    'y' => "\\b",
                    'Y' => "\\B",
                    _ => "\\z",
                });
                return Ok(());
            }
            'a' => '\u{7}',
            'b' => '\u{8}',
            'B' => '\\',
            'c' => {
                let control = self.rest.next().ok_or_else(fault)?;
                char::from_u32(u32::from(control) & 31).ok_or_else(fault)?
            }
            'e' => '\u{1b}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'u' => self.number(16, 4).ok_or_else(fault)?,
            'U' => self.number(16, 8).ok_or_else(fault)?,
            'x' => self.number(16, 255).ok_or_else(fault)?,
            '0' => self.number(8, 2).unwrap_or('\0'),
            '1'..='9' => return Err(unsupported("a back reference")),
            other if other.is_alphanumeric() => return Err(fault()),
            other => other,
        };
        push_literal(&mut self.out, literal);
        Ok(())
    }

    /// Translates a bracket expression.
    fn class(&mut self) -> Result<()> {
        let unbalanced = || invalid("brackets [] not balanced");
        let rest: String = self.rest.clone().take(6).collect();
        for (boundary, translated) in [("[:<:]]", "\\b{start}"), ("[:>:]]", "\\b{end}")] {
            if rest == boundary {
                self.rest.nth(5);
                self.out.push_str(translated);
                return Ok(());
            }
        }
        self.out.push('[');
        if self.accept('^') {
            self.out.push('^');
            if self.options.stops_at_newline {
                self.out.push_str("\\n");
            }
        }
        let mut is_first = true;
        loop {
            let character = self.rest.next().ok_or_else(unbalanced)?;
            match character {
                ']' if !is_first => break,
                '[' if matches!(self.rest.peek(), Some(':' | '.' | '=')) => self.named()?,
                '\\' => {
                    let escape = self.rest.next().ok_or_else(unbalanced)?;
                    self.escape(escape, EscapePlace::Class)?;
                }
                '-' if !is_first && !matches!(self.rest.peek(), Some(']')) => self.out.push('-'),
                other => push_literal(&mut self.out, other),
            }
            is_first = false;
        }
        self.out.push(']');
        Ok(())
    }

    /// Translates `[:class:]`, `[.element.]` and `[=equivalence=]` within a bracket expression.
    fn named(&mut self) -> Result<()> {
        let kind = self.rest.next().unwrap_or(':');
        let mut name = String::new();
        loop {
            match self.rest.next() {
                Some(end) if end == kind && self.rest.peek() == Some(&']') => break,
                Some(character) => name.push(character),
                None => return Err(invalid("brackets [] not balanced")),
            }
        }
        self.rest.next();
        if kind != ':' {
            let mut characters = name.chars();
            let (Some(element), None) = (characters.next(), characters.next()) else {
                return Err(invalid("invalid collating element"));
            };
            push_literal(&mut self.out, element);
            return Ok(());
        }
        self.out.push_str(match &name[..] {
            "alpha" => "\\p{Alphabetic}",
            "digit" => "\\d",
            "alnum" => "\\p{Alphabetic}\\d",
            "upper" => "\\p{Uppercase}",
            "lower" => "\\p{Lowercase}",
            "space" => "\\s",
            "blank" => "[:blank:]",
            "punct" => "[:punct:]",
            "print" => "[:print:]",
            "graph" => "[:graph:]",
            "cntrl" => "[:cntrl:]",
            "xdigit" => "[:xdigit:]",
            "word" => "\\w",
            _ => return Err(invalid("invalid character class")),
        });
        Ok(())
    }
}

/// Where an escape is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EscapePlace {
    Pattern,
    Class,
}

/// What an escaped double quote means in a pattern of SIMILAR TO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::expression::builtin) enum EscapedQuote {
    /// Itself.
    Literal,
    /// It divides the pattern into three; the middle part becomes a group.
    Separator,
}

/// Translates a pattern of SIMILAR TO, without anchors.
pub(in crate::expression::builtin) fn translate_similar(
    pattern: &str,
    escape: Option<char>,
    quote: EscapedQuote,
) -> Result<String> {
    let parts = quote == EscapedQuote::Separator;
    let (mut out, mut quotes) = (String::from("^(?:"), 0);
    let mut rest = pattern.chars();
    let mut in_class = false;
    if parts {
        out = String::from("^(?U:");
    }
    while let Some(character) = rest.next() {
        if Some(character) == escape {
            match rest.next() {
                None => {
                    return Err(SqlError::new(
                        SqlState::InvalidEscapeSequence,
                        "invalid escape sequence",
                    ));
                }
                Some('"') if parts => {
                    quotes += 1;
                    match quotes {
                        1 => out.push_str(")("),
                        2 => out.push_str(")(?:"),
                        _ => {
                            return Err(SqlError::new(
                                SqlState::InvalidUseOfEscapeCharacter,
                                "SQL regular expression may not contain more than two escape-double-quote separators",
                            ));
                        }
                    }
                }
                Some(literal) => push_literal(&mut out, literal),
            }
            continue;
        }
        match character {
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '[' if in_class => out.push_str("\\["),
            '\\' | '&' | '~' if in_class => push_literal(&mut out, character),
            other if in_class => out.push(other),
            '[' => {
                in_class = true;
                out.push('[');
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            // A group captures only when it is the middle part.
            '(' => out.push_str("(?:"),
            '\\' | '.' | '^' | '$' | '#' | '-' | '&' | '~' => push_literal(&mut out, character),
            other => out.push(other),
        }
    }
    out.push_str(")$");
    Ok(out)
}
