//! Character classes and case pairs, as the C library has them for Unicode, and the names of
//! collating elements.

use std::sync::OnceLock;

use regex_syntax::hir::{Class, HirKind};

use super::character_set::CharacterSet;

/// A character class with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamedClass {
    Alnum,
    Alpha,
    Ascii,
    Blank,
    Cntrl,
    Digit,
    Graph,
    Lower,
    Print,
    Punct,
    Space,
    Upper,
    Xdigit,
    Word,
}

impl NamedClass {
    pub fn of_name(name: &str) -> Option<NamedClass> {
        Some(match name {
            "alnum" => NamedClass::Alnum,
            "alpha" => NamedClass::Alpha,
            "ascii" => NamedClass::Ascii,
            "blank" => NamedClass::Blank,
            "cntrl" => NamedClass::Cntrl,
            "digit" => NamedClass::Digit,
            "graph" => NamedClass::Graph,
            "lower" => NamedClass::Lower,
            "print" => NamedClass::Print,
            "punct" => NamedClass::Punct,
            "space" => NamedClass::Space,
            "upper" => NamedClass::Upper,
            "xdigit" => NamedClass::Xdigit,
            "word" => NamedClass::Word,
            _ => return None,
        })
    }

    /// Returns the characters of the class. `ignores_case` makes letters of both cases of `lower`
    /// and `upper`.
    pub fn characters(self, ignores_case: bool) -> CharacterSet {
        let is_case = matches!(self, NamedClass::Lower | NamedClass::Upper);
        let class = if ignores_case && is_case { NamedClass::Alpha } else { self };
        let range = |first: char, last: char| (u32::from(first), u32::from(last));
        match class {
            NamedClass::Ascii => CharacterSet::of_ranges([(0, 0x7f)]),
            NamedClass::Digit => CharacterSet::of_ranges([range('0', '9')]),
            NamedClass::Xdigit => {
                CharacterSet::of_ranges([range('0', '9'), range('a', 'f'), range('A', 'F')])
            }
            NamedClass::Alnum => {
                let mut set = tables().alpha.clone();
                set.add_all(&CharacterSet::of_ranges([range('0', '9')]));
                set
            }
            NamedClass::Word => word().clone(),
            NamedClass::Alpha => tables().alpha.clone(),
            NamedClass::Blank => CharacterSet::of_ranges([(9, 9), (0x20, 0x20)]),
            NamedClass::Cntrl => tables().cntrl.clone(),
            NamedClass::Graph => tables().graph.clone(),
            NamedClass::Lower => tables().lower.clone(),
            NamedClass::Print => tables().print.clone(),
            NamedClass::Punct => tables().punct.clone(),
            NamedClass::Space => tables().space.clone(),
            NamedClass::Upper => tables().upper.clone(),
        }
    }
}

struct ClassTables {
    alpha: CharacterSet,
    /// The characters with another case.
    cased: CharacterSet,
    cntrl: CharacterSet,
    graph: CharacterSet,
    lower: CharacterSet,
    print: CharacterSet,
    punct: CharacterSet,
    space: CharacterSet,
    upper: CharacterSet,
}

/// Returns the characters with a property of Unicode.
fn property(name: &str) -> CharacterSet {
    let parsed = regex_syntax::parse(&format!("\\p{{{name}}}"));
    match parsed.as_ref().map(regex_syntax::hir::Hir::kind) {
        Ok(HirKind::Class(Class::Unicode(class))) => CharacterSet::of_ranges(
            class.ranges().iter().map(|range| (u32::from(range.start()), u32::from(range.end()))),
        ),
        _ => CharacterSet::default(),
    }
}

/// Returns the characters of a set with another counterpart.
fn with_case(change: fn(char) -> char) -> CharacterSet {
    let all = CharacterSet::all();
    let cased = all.characters().filter(|character| change(*character) != *character);
    CharacterSet::of_ranges(cased.map(|character| (u32::from(character), u32::from(character))))
}

fn tables() -> &'static ClassTables {
    static TABLES: OnceLock<ClassTables> = OnceLock::new();
    TABLES.get_or_init(|| {
        let digits = CharacterSet::of_ranges([(0x30, 0x39)]);
        // Digits of other scripts are letters, because `digit` is ASCII's ten.
        let mut alpha = property("Alphabetic");
        alpha.add_all(&property("Nd"));
        let alpha = alpha.without(&digits);
        let common = |name: &str| alpha.without(&alpha.without(&property(name)));
        let (mut lower, mut upper) = (with_case(upper_case), with_case(lower_case));
        let mut cased = lower.clone();
        cased.add_all(&upper);
        lower.add_all(&common("Lowercase"));
        upper.add_all(&common("Uppercase"));
        // Spaces that do not break a line are no spaces.
        let joined = CharacterSet::of_ranges([(0xa0, 0xa0), (0x2007, 0x2007), (0x202f, 0x202f)]);
        let breaking = property("Zs").without(&joined);
        // The separators of lines and of paragraphs.
        let lines = CharacterSet::of_ranges([(0x2028, 0x2029)]);
        let mut space = breaking;
        space.add_all(&lines);
        space.add_all(&CharacterSet::of_ranges([(9, 13)]));
        let mut cntrl = property("Cc");
        cntrl.add_all(&lines);
        let mut absent = property("Cn");
        absent.add_all(&cntrl);
        absent.add_all(&CharacterSet::of_ranges([(0xd800, 0xdfff)]));
        let print = absent.complement();
        let graph = print.without(&space);
        let punct = graph.without(&alpha).without(&digits);
        ClassTables { alpha, cased, cntrl, graph, lower, print, punct, space, upper }
    })
}

/// Returns the characters with another case.
pub(super) fn cased() -> &'static CharacterSet {
    &tables().cased
}

/// Returns the characters of words: letters, digits and the underscore.
pub(in crate::expression::regex) fn word() -> &'static CharacterSet {
    static WORD: OnceLock<CharacterSet> = OnceLock::new();
    WORD.get_or_init(|| {
        let mut set = tables().alpha.clone();
        set.add_all(&CharacterSet::of_ranges([(0x30, 0x39), (0x5f, 0x5f)]));
        set
    })
}

/// Returns the lower case of a character, if it is one character.
pub(in crate::expression::regex) fn lower_case(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(one), None) => one,
        // The dot of `İ` is lost.
        (Some(one), _) if character == 'İ' => one,
        _ => character,
    }
}

/// Returns the upper case of a character, if it is one character.
pub(in crate::expression::regex) fn upper_case(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_uppercase();
    }
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) => one,
        // Greek letters with an iota below have a title case of one character.
        _ => match character {
            '\u{1f80}'..='\u{1f87}' | '\u{1f90}'..='\u{1f97}' | '\u{1fa0}'..='\u{1fa7}' => {
                char::from_u32(u32::from(character) + 8).unwrap_or(character)
            }
            '\u{1fb3}' => '\u{1fbc}',
            '\u{1fc3}' => '\u{1fcc}',
            '\u{1ff3}' => '\u{1ffc}',
            _ => character,
        },
    }
}

/// The names of collating elements of ASCII.
const ELEMENTS: [(&str, u8); 95] = [
    ("NUL", 0),
    ("SOH", 1),
    ("STX", 2),
    ("ETX", 3),
    ("EOT", 4),
    ("ENQ", 5),
    ("ACK", 6),
    ("BEL", 7),
    ("alert", 7),
    ("BS", 8),
    ("backspace", 8),
    ("HT", 9),
    ("tab", 9),
    ("LF", 10),
    ("newline", 10),
    ("VT", 11),
    ("vertical-tab", 11),
    ("FF", 12),
    ("form-feed", 12),
    ("CR", 13),
    ("carriage-return", 13),
    ("SO", 14),
    ("SI", 15),
    ("DLE", 16),
    ("DC1", 17),
    ("DC2", 18),
    ("DC3", 19),
    ("DC4", 20),
    ("NAK", 21),
    ("SYN", 22),
    ("ETB", 23),
    ("CAN", 24),
    ("EM", 25),
    ("SUB", 26),
    ("ESC", 27),
    ("IS4", 28),
    ("FS", 28),
    ("IS3", 29),
    ("GS", 29),
    ("IS2", 30),
    ("RS", 30),
    ("IS1", 31),
    ("US", 31),
    ("space", b' '),
    ("exclamation-mark", b'!'),
    ("quotation-mark", b'"'),
    ("number-sign", b'#'),
    ("dollar-sign", b'$'),
    ("percent-sign", b'%'),
    ("ampersand", b'&'),
    ("apostrophe", b'\''),
    ("left-parenthesis", b'('),
    ("right-parenthesis", b')'),
    ("asterisk", b'*'),
    ("plus-sign", b'+'),
    ("comma", b','),
    ("hyphen", b'-'),
    ("hyphen-minus", b'-'),
    ("period", b'.'),
    ("full-stop", b'.'),
    ("slash", b'/'),
    ("solidus", b'/'),
    ("zero", b'0'),
    ("one", b'1'),
    ("two", b'2'),
    ("three", b'3'),
    ("four", b'4'),
    ("five", b'5'),
    ("six", b'6'),
    ("seven", b'7'),
    ("eight", b'8'),
    ("nine", b'9'),
    ("colon", b':'),
    ("semicolon", b';'),
    ("less-than-sign", b'<'),
    ("equals-sign", b'='),
    ("greater-than-sign", b'>'),
    ("question-mark", b'?'),
    ("commercial-at", b'@'),
    ("left-square-bracket", b'['),
    ("backslash", b'\\'),
    ("reverse-solidus", b'\\'),
    ("right-square-bracket", b']'),
    ("circumflex", b'^'),
    ("circumflex-accent", b'^'),
    ("underscore", b'_'),
    ("low-line", b'_'),
    ("grave-accent", b'`'),
    ("left-brace", b'{'),
    ("left-curly-bracket", b'{'),
    ("vertical-line", b'|'),
    ("right-brace", b'}'),
    ("right-curly-bracket", b'}'),
    ("tilde", b'~'),
    ("DEL", 127),
];

/// Returns the character that a collating element names: itself, or a character of ASCII.
pub(super) fn collating_element(name: &str) -> Option<char> {
    let mut characters = name.chars();
    if let (Some(one), None) = (characters.next(), characters.next()) {
        return Some(one);
    }
    let known = ELEMENTS.iter().find(|(known, _)| *known == name);
    known.map(|(_, code)| char::from(*code))
}
