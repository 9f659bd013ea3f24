//! Tokens of a text, as PostgreSQL's default parser finds them.
//!
//! `token_states.txt` has the states of an automaton that tries readings of a text. It comes back
//! to the place of a try if that fails. Tries stand on a stack of their own, so a long text does
//! not use up that of the thread.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::char::is_combining_mark;

macro_rules! token_kinds {
    ($($name:ident = $alias:literal, $description:literal;)*) => {
        /// The kind of a token. Its number is that of PostgreSQL.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TokenKind {
            $(#[doc = $description] $name,)*
        }

        impl TokenKind {
            /// All kinds, in the order of their numbers.
            pub const ALL: &'static [TokenKind] = &[$(TokenKind::$name,)*];

            /// Returns the name.
            pub fn alias(self) -> &'static str {
                match self { $(TokenKind::$name => $alias,)* }
            }

            /// Returns what it is.
            pub fn description(self) -> &'static str {
                match self { $(TokenKind::$name => $description,)* }
            }
        }
    };
}

token_kinds! {
    AsciiWord = "asciiword", "Word, all ASCII";
    Word = "word", "Word, all letters";
    NumWord = "numword", "Word, letters and digits";
    Email = "email", "Email address";
    Url = "url", "URL";
    Host = "host", "Host";
    Scientific = "sfloat", "Scientific notation";
    Version = "version", "Version number";
    HyphenatedNumPart = "hword_numpart", "Hyphenated word part, letters and digits";
    HyphenatedPart = "hword_part", "Hyphenated word part, all letters";
    HyphenatedAsciiPart = "hword_asciipart", "Hyphenated word part, all ASCII";
    Blank = "blank", "Space symbols";
    Tag = "tag", "XML tag";
    Protocol = "protocol", "Protocol head";
    HyphenatedNum = "numhword", "Hyphenated word, letters and digits";
    HyphenatedAscii = "asciihword", "Hyphenated word, all ASCII";
    Hyphenated = "hword", "Hyphenated word, all letters";
    UrlPath = "url_path", "URL path";
    File = "file", "File or path name";
    Float = "float", "Decimal notation";
    Int = "int", "Signed integer";
    UnsignedInt = "uint", "Unsigned integer";
    Entity = "entity", "XML entity";
}

impl TokenKind {
    /// Returns the number, from 1 on.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Returns whether a headline does not count it as a word.
    pub fn is_no_word(self) -> bool {
        matches!(self, TokenKind::Blank | TokenKind::Tag) || self.has_parts()
    }

    /// Returns whether its parts follow as tokens of their own.
    pub fn has_parts(self) -> bool {
        use TokenKind::{Hyphenated, HyphenatedAscii, HyphenatedNum, Url};
        matches!(self, Url | HyphenatedNum | HyphenatedAscii | Hyphenated)
    }

    /// Returns whether a headline should not end with it.
    pub fn is_no_end(self) -> bool {
        use TokenKind::{Entity, Float, Int, Protocol, Scientific, UnsignedInt, Version};
        let is_rare = matches!(self, Protocol | Entity);
        let is_number = matches!(self, Scientific | Version | Float | Int | UnsignedInt);
        is_rare || is_number || self.is_no_word()
    }

    fn named(alias: &str) -> Option<TokenKind> {
        TokenKind::ALL.iter().copied().find(|kind| kind.alias() == alias)
    }
}

/// What a rule asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Test {
    Always,
    End,
    Letter(char),
    AsciiLetter,
    Alpha,
    Digit,
    Alnum,
    NotAlnum,
    Mark,
    Space,
    HexDigit,
    UrlChar,
    /// The text is within a script or style.
    Ignored,
    /// A host is wanted alone.
    StopHost,
    /// A host follows.
    Host,
    /// The path of a URL follows.
    UrlPath,
}

/// Which tries an action forgets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Forget {
    None,
    Last,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TokenAction {
    Go,
    Try,
    Commit,
    Rerun,
    Fail,
    Merge,
    Token(TokenKind, Forget),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Effect {
    None,
    /// Scripts and styles begin or end.
    Tag,
    /// The token is read again, as a host and a path.
    Url,
    /// The token is read again, part by part.
    Hyphen,
    /// The number is read again, as a version.
    Version,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    test: Test,
    action: TokenAction,
    next: Option<usize>,
    effect: Effect,
}

/// The states, the first of which begins a token.
#[derive(Default)]
struct Automaton {
    states: Vec<Vec<Rule>>,
    /// The state in which the path of a URL begins.
    path_first: usize,
}

static AUTOMATON: LazyLock<Automaton> = LazyLock::new(|| read_states().unwrap_or_default());

const BASE: usize = 0;

fn class(name: &str) -> Option<Test> {
    Some(match name {
        "else" => Test::Always,
        "end" => Test::End,
        "letter" => Test::AsciiLetter,
        "alpha" => Test::Alpha,
        "digit" => Test::Digit,
        "alnum" => Test::Alnum,
        "notalnum" => Test::NotAlnum,
        "mark" => Test::Mark,
        "space" => Test::Space,
        "xdigit" => Test::HexDigit,
        "urlchar" => Test::UrlChar,
        "ignored" => Test::Ignored,
        "stophost" => Test::StopHost,
        "host" => Test::Host,
        "urlpath" => Test::UrlPath,
        _ => return None,
    })
}

/// Reads the states; `None` if a line is not one.
fn read_states() -> Option<Automaton> {
    let lines = include_str!("token_states.txt").lines();
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
    let names: HashMap<&str, usize> = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((line.split(' ').next()?, at)))
        .collect();
    let state = |line: &&str| {
        let rules = line.split(' ').skip(1).map(|rule| read_rule(rule, &names));
        let mut rules: Vec<Rule> = rules.collect::<Option<_>>()?;
        let last = *rules.last().filter(|last| last.test == Test::Always)?;
        if !matches!(rules.first()?.test, Test::End | Test::StopHost) {
            rules.insert(0, Rule { test: Test::End, ..last });
        }
        Some(rules)
    };
    let states = lines.iter().map(state).collect::<Option<_>>()?;
    Some(Automaton { states, path_first: *names.get("UrlPathFirst")? })
}

fn read_rule(rule: &str, names: &HashMap<&str, usize>) -> Option<Rule> {
    let mut letters = rule.chars();
    let (first, second) = (letters.next()?, letters.next()?);
    let (test, rest) = if first.is_ascii_alphabetic() && second.is_ascii_alphabetic() {
        let end = rule.find(|letter: char| !letter.is_ascii_alphabetic())?;
        (class(&rule[..end])?, &rule[end..])
    } else {
        (Test::Letter(first), &rule[first.len_utf8()..])
    };
    let (rest, effect) = match rest.split_once('@') {
        None => (rest, Effect::None),
        Some((rest, "tag")) => (rest, Effect::Tag),
        Some((rest, "url")) => (rest, Effect::Url),
        Some((rest, "hyphen")) => (rest, Effect::Hyphen),
        Some((rest, "version")) => (rest, Effect::Version),
        Some(_) => return None,
    };
    let state = |name: &str| match name {
        "" => Some(None),
        name => names.get(name).map(|at| Some(*at)),
    };
    if let Some(token) = rest.strip_prefix('=') {
        let (forget, token) = match token.strip_prefix('!') {
            Some(token) => (Forget::All, token),
            None => match token.strip_prefix('*') {
                Some(token) => (Forget::Last, token),
                None => (Forget::None, token),
            },
        };
        let (kind, next) = token.split_once('/').unwrap_or((token, "Base"));
        let action = TokenAction::Token(TokenKind::named(kind)?, forget);
        return Some(Rule { test, action, next: state(next)?, effect });
    }
    let action = match rest.chars().next()? {
        '>' => TokenAction::Go,
        '+' => TokenAction::Try,
        '*' => TokenAction::Commit,
        '^' => TokenAction::Rerun,
        '!' => TokenAction::Fail,
        '&' => TokenAction::Merge,
        _ => return None,
    };
    Some(Rule { test, action, next: state(&rest[1..])?, effect })
}

/// A place of the automaton.
#[derive(Clone, Copy, Debug)]
struct TokenPlace {
    /// The next byte.
    at: usize,
    /// The bytes of the token so far.
    length: usize,
    state: usize,
    /// The rule of the try that is above this place.
    tried: Option<usize>,
}

/// An iterator over the tokens of a text.
#[derive(Debug)]
pub struct Tokens<'t> {
    text: &'t str,
    places: Vec<TokenPlace>,
    is_ignored: bool,
    wants_host: bool,
}

/// Decimal digits of all scripts.
static DIGITS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\p{Nd}").ok());

/// Returns whether a character is a letter. Digits of other scripts are letters, too.
fn is_alpha(letter: char) -> bool {
    let is_digit = |letter: char| {
        let mut bytes = [0; 4];
        DIGITS.as_ref().is_some_and(|digits| digits.is_match(letter.encode_utf8(&mut bytes)))
    };
    letter.is_alphabetic() || !letter.is_ascii() && letter.is_numeric() && is_digit(letter)
}

/// Returns whether a character has no width, or belongs to the letter before it.
fn is_mark(letter: char) -> bool {
    is_combining_mark(letter)
        || matches!(letter, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{2063}' | '\u{feff}')
}

fn is_url_char(letter: char) -> bool {
    letter.is_ascii_graphic()
        && !matches!(letter, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
}

impl<'t> Tokens<'t> {
    /// Begins at the start of a text.
    pub fn new(text: &'t str) -> Tokens<'t> {
        let start = TokenPlace { at: 0, length: 0, state: BASE, tried: None };
        Tokens { text, places: vec![start], is_ignored: false, wants_host: false }
    }

    /// Returns the rest of the text as one token of its own, if it begins with one.
    fn ahead(&self, at: usize, state: usize, wants_host: bool) -> Option<(TokenKind, usize)> {
        let mut tokens = Tokens { wants_host, ..Tokens::new(self.text.get(at..)?) };
        if state != BASE {
            let start = *tokens.places.last()?;
            tokens.places.push(TokenPlace { state, ..start });
        }
        let (kind, token) = tokens.next()?;
        Some((kind, token.len()))
    }

    /// Moves beyond a token that is part of this one.
    fn includes(&mut self, found: Option<(TokenKind, usize)>, wanted: TokenKind) -> bool {
        let (Some((kind, length)), Some(place)) = (found, self.places.last_mut()) else {
            return false;
        };
        if kind != wanted {
            return false;
        }
        place.at += length;
        place.length += length;
        true
    }

    fn passes(&mut self, test: Test, letter: Option<char>, at: usize) -> bool {
        let is = |class: fn(char) -> bool| letter.is_some_and(class);
        match test {
            Test::Always => true,
            Test::End => letter.is_none(),
            Test::Letter(wanted) => letter == Some(wanted),
            Test::AsciiLetter => is(|letter| letter.is_ascii_alphabetic()),
            Test::Alpha => is(is_alpha),
            Test::Digit => is(|letter| letter.is_ascii_digit()),
            Test::Alnum => is(|letter| is_alpha(letter) || letter.is_ascii_digit()),
            Test::NotAlnum => !is(|letter| is_alpha(letter) || letter.is_ascii_digit()),
            Test::Mark => is(is_mark),
            Test::Space => is(crate::types::encoded::text_search::is_space),
            Test::HexDigit => is(|letter| letter.is_ascii_hexdigit()),
            Test::UrlChar => is(is_url_char),
            Test::Ignored => self.is_ignored,
            Test::StopHost => std::mem::take(&mut self.wants_host),
            Test::Host => {
                let wants_host = true;
                let found = self.ahead(at, BASE, wants_host);
                self.includes(found, TokenKind::Host)
            }
            Test::UrlPath => {
                let wants_host = false;
                let found = self.ahead(at, AUTOMATON.path_first, wants_host);
                self.includes(found, TokenKind::UrlPath)
            }
        }
    }

    fn apply(&mut self, effect: Effect, token: &str) {
        let Some(place) = self.places.last_mut() else { return };
        match effect {
            Effect::None => {}
            Effect::Tag => match &token.to_ascii_lowercase()[..] {
                "<script" | "<style" => self.is_ignored = true,
                "</script" | "</style" => self.is_ignored = false,
                _ => {}
            },
            Effect::Url => {
                self.wants_host = true;
                place.at -= place.length;
            }
            Effect::Hyphen => place.at -= place.length,
            Effect::Version => {
                place.at -= place.length;
                place.length = 0;
            }
        }
    }

    /// Changes the stack of tries.
    fn change_tries(&mut self, action: TokenAction, rule: usize) -> Option<()> {
        let below = self.places.len().checked_sub(2);
        match action {
            TokenAction::Fail => {
                self.places.pop();
                self.places.last()?;
            }
            TokenAction::Try => {
                let place = self.places.last_mut()?;
                place.tried = Some(rule);
                let place = TokenPlace { tried: None, ..*place };
                self.places.push(place);
            }
            TokenAction::Commit | TokenAction::Token(_, Forget::Last) => {
                self.places.remove(below?);
            }
            TokenAction::Token(_, Forget::All) => {
                let place = self.places.pop()?;
                self.places.clear();
                self.places.push(place);
            }
            TokenAction::Merge => {
                let merged = self.places.pop()?;
                let place = self.places.last_mut()?;
                (place.at, place.length) = (merged.at, merged.length);
            }
            TokenAction::Go | TokenAction::Rerun | TokenAction::Token(_, Forget::None) => {}
        }
        Some(())
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = (TokenKind, &'t str);

    fn next(&mut self) -> Option<(TokenKind, &'t str)> {
        let first = self.places.last_mut()?;
        let start = first.at;
        first.tried = None;
        if start >= self.text.len() {
            return None;
        }
        loop {
            let place = self.places.last_mut()?;
            let (at, state) = (place.at, place.state);
            let letter = self.text.get(at..)?.chars().next();
            let from = place.tried.take().map_or(0, |tried| tried + 1);
            let rules = AUTOMATON.states.get(state)?.iter().enumerate().skip(from);
            let (number, rule) =
                rules.into_iter().find(|(_, rule)| self.passes(rule.test, letter, at))?;
            let token = self.places.last().map_or("", |place| {
                let end = place.at.max(start);
                self.text.get(end - place.length.min(end)..end).unwrap_or_default()
            });
            self.apply(rule.effect, token);
            let mut found = None;
            if let TokenAction::Token(kind, _) = rule.action {
                let place = self.places.last_mut()?;
                found = Some((kind, self.text.get(start..start + place.length)?));
                place.length = 0;
            }
            self.change_tries(rule.action, number)?;
            let place = self.places.last_mut()?;
            if let Some(next) = rule.next {
                place.state = next;
            }
            if found.is_some() {
                return found;
            }
            let is_rerun = rule.action == TokenAction::Rerun;
            if place.at >= self.text.len() && !is_rerun {
                return None;
            }
            if is_rerun || rule.action == TokenAction::Fail {
                continue;
            }
            let width = letter.map_or(0, char::len_utf8);
            place.at += width;
            place.length += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_states_are_read() {
        assert!(read_states().unwrap().states.len() > 70);
        assert_eq!(TokenKind::Entity.number(), 23);
    }
}
