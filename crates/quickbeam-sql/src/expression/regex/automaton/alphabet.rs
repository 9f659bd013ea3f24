//! The alphabet of an automaton: characters that no set of the expression distinguishes are one
//! color.

use std::collections::{BTreeMap, HashMap};

use super::super::syntax::character_set::CharacterSet;

/// No character: the start or the end of the text.
pub(in crate::expression::regex) const EDGE: u8 = 1;
pub(in crate::expression::regex) const NEWLINE: u8 = 2;
pub(in crate::expression::regex) const WORD: u8 = 4;

/// Most pairs of a color and a set that has it.
const MEMBERS_LIMIT: usize = 4 << 20;

/// Code points below have their colors in an array.
const LOW: usize = 0x800;

/// The colors of all characters.
#[derive(Debug)]
pub(in crate::expression::regex) struct Alphabet {
    low: Box<[u16; LOW]>,
    /// The first code point of each range, and its color.
    starts: Vec<u32>,
    colors: Vec<u16>,
    /// Whether characters of a color are newlines or parts of words. The last one is the color of
    /// the ends of the text.
    kinds: Vec<u8>,
    /// The colors of each set, sorted.
    members: Vec<Vec<u16>>,
}

impl Alphabet {
    /// Makes the alphabet of the sets; two of them may have the newline and the words. Returns
    /// `None` if there would be too many colors.
    pub fn new(
        sets: &[CharacterSet],
        newline: Option<usize>,
        words: Option<usize>,
    ) -> Option<Alphabet> {
        let mut changes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        changes.insert(0, Vec::new());
        for (number, set) in sets.iter().enumerate() {
            for &(first, last) in set.ranges() {
                changes.entry(first).or_default().push(number);
                changes.entry(last + 1).or_default().push(number);
            }
        }
        let mut alphabet = Alphabet {
            low: Box::new([0; LOW]),
            starts: Vec::new(),
            colors: Vec::new(),
            kinds: Vec::new(),
            members: vec![Vec::new(); sets.len()],
        };
        let (mut current, mut known, mut pairs) = (Vec::new(), HashMap::new(), 0);
        for (start, toggled) in changes {
            for number in toggled {
                match current.binary_search(&number) {
                    Ok(at) => drop(current.remove(at)),
                    Err(at) => current.insert(at, number),
                }
            }
            let color = match known.get(&current) {
                Some(color) => *color,
                None => {
                    let color = u16::try_from(known.len()).ok()?;
                    pairs += current.len();
                    if pairs > MEMBERS_LIMIT {
                        return None;
                    }
                    current.iter().for_each(|set: &usize| alphabet.members[*set].push(color));
                    let has = |set: Option<usize>| set.is_some_and(|set| current.contains(&set));
                    let newline = if has(newline) { NEWLINE } else { 0 };
                    alphabet.kinds.push(newline | if has(words) { WORD } else { 0 });
                    known.insert(current.clone(), color);
                    color
                }
            };
            alphabet.starts.push(start);
            alphabet.colors.push(color);
        }
        u16::try_from(known.len()).ok()?;
        alphabet.kinds.push(EDGE);
        for code in 0..LOW {
            alphabet.low[code] = alphabet.search(code as u32);
        }
        Some(alphabet)
    }

    /// Returns the number of colors with that of the ends of the text, which is the last one.
    pub fn count(&self) -> usize {
        self.kinds.len()
    }

    /// Returns the color of the ends of the text.
    pub fn edge(&self) -> usize {
        self.kinds.len() - 1
    }

    pub fn kind(&self, color: usize) -> u8 {
        self.kinds[color]
    }

    pub fn has(&self, set: usize, color: usize) -> bool {
        u16::try_from(color).is_ok_and(|color| self.members[set].binary_search(&color).is_ok())
    }

    fn search(&self, code: u32) -> u16 {
        self.colors[self.starts.partition_point(|start| *start <= code) - 1]
    }

    #[inline]
    pub fn color_of_byte(&self, byte: u8) -> usize {
        usize::from(self.low[usize::from(byte)])
    }

    pub fn color(&self, character: char) -> usize {
        let code = u32::from(character);
        usize::from(match self.low.get(code as usize) {
            Some(color) => *color,
            None => self.search(code),
        })
    }

    /// Returns the color after a place in the text and the next place.
    #[inline]
    pub fn after(&self, text: &str, at: usize) -> (usize, usize) {
        match text.as_bytes().get(at) {
            Some(byte) if byte.is_ascii() => (self.color_of_byte(*byte), at + 1),
            Some(_) => self.decoded(text[at..].chars().next(), at),
            None => (self.edge(), at),
        }
    }

    #[inline(never)]
    fn decoded(&self, character: Option<char>, at: usize) -> (usize, usize) {
        character.map_or((self.edge(), at), |it| (self.color(it), at + it.len_utf8()))
    }

    /// Returns the color before a place in the text and the place before.
    #[inline]
    pub fn before(&self, text: &str, at: usize) -> (usize, usize) {
        match at.checked_sub(1).and_then(|before| text.as_bytes().get(before)) {
            Some(byte) if byte.is_ascii() => (self.color_of_byte(*byte), at - 1),
            Some(_) => match text[..at].chars().next_back() {
                Some(character) => (self.color(character), at - character.len_utf8()),
                None => (self.edge(), at),
            },
            None => (self.edge(), at),
        }
    }
}
