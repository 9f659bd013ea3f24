//! Regular languages: what the parts of an expression match, without groups and preferences.
//!
//! Each step of the plan has one, and an automaton is built of it.

use std::fmt::Write;
use std::rc::Rc;

use super::syntax::character_set::CharacterSet;
use super::syntax::pieces::{PreferredLength, RegexAnchor};

/// A regular language.
#[derive(Debug)]
pub(super) enum RegularLanguage {
    Empty,
    /// One character of a set, by the number of the set.
    Set(usize),
    Anchor(RegexAnchor),
    /// The lookaround constraint of that number.
    Look(usize),
    Concat(Vec<Rc<RegularLanguage>>),
    Alternate(Vec<Rc<RegularLanguage>>),
    /// Between `least` and `most` repetitions.
    Repeat {
        inner: Rc<RegularLanguage>,
        least: u32,
        most: Option<u32>,
        is_greedy: bool,
    },
}

/// How a part of a language matches texts of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchWidth {
    Fixed(u64),
    /// Fixed, and then a repetition of a set.
    Tail {
        is_greedy: bool,
    },
    Other,
}

impl RegularLanguage {
    pub fn repeat(
        inner: &Rc<RegularLanguage>,
        least: u32,
        most: Option<u32>,
        prefers: PreferredLength,
    ) -> Rc<RegularLanguage> {
        let is_greedy = prefers == PreferredLength::Longest;
        match (least, most) {
            (1, Some(1)) => inner.clone(),
            (0, Some(0)) => Rc::new(RegularLanguage::Empty),
            _ => Rc::new(RegularLanguage::Repeat { inner: inner.clone(), least, most, is_greedy }),
        }
    }

    pub fn concat(mut parts: Vec<Rc<RegularLanguage>>) -> Rc<RegularLanguage> {
        match (parts.len(), parts.pop()) {
            (1, Some(only)) => only,
            (_, None) => Rc::new(RegularLanguage::Empty),
            (_, Some(last)) => {
                parts.push(last);
                Rc::new(RegularLanguage::Concat(parts))
            }
        }
    }

    /// Returns the number of states of an automaton, or more.
    pub fn size(&self) -> u64 {
        let sum = |parts: &[Rc<RegularLanguage>]| {
            parts.iter().fold(1_u64, |sum, part| sum.saturating_add(part.size()))
        };
        match self {
            RegularLanguage::Empty
            | RegularLanguage::Set(_)
            | RegularLanguage::Anchor(_)
            | RegularLanguage::Look(_) => 1,
            RegularLanguage::Concat(parts) | RegularLanguage::Alternate(parts) => sum(parts),
            RegularLanguage::Repeat { inner, least, most, .. } => {
                let copies = most.unwrap_or(least.saturating_add(1)).max(1);
                inner.size().saturating_add(1).saturating_mul(u64::from(copies))
            }
        }
    }

    /// Returns the language without its constraints.
    pub fn unconstrained(self: &Rc<RegularLanguage>) -> Rc<RegularLanguage> {
        let all = |parts: &[Rc<RegularLanguage>]| {
            parts.iter().map(RegularLanguage::unconstrained).collect()
        };
        match &**self {
            RegularLanguage::Empty | RegularLanguage::Set(_) => self.clone(),
            RegularLanguage::Anchor(_) | RegularLanguage::Look(_) => {
                Rc::new(RegularLanguage::Empty)
            }
            RegularLanguage::Concat(parts) => Rc::new(RegularLanguage::Concat(all(parts))),
            RegularLanguage::Alternate(parts) => Rc::new(RegularLanguage::Alternate(all(parts))),
            RegularLanguage::Repeat { inner, least, most, is_greedy } => {
                Rc::new(RegularLanguage::Repeat {
                    inner: inner.unconstrained(),
                    least: *least,
                    most: *most,
                    is_greedy: *is_greedy,
                })
            }
        }
    }

    /// Returns whether a match can begin at the start of the text only.
    pub fn is_anchored(&self) -> bool {
        match self {
            RegularLanguage::Anchor(anchor) => *anchor == RegexAnchor::TextStart,
            RegularLanguage::Concat(parts) => {
                parts.first().is_some_and(|first| first.is_anchored())
            }
            RegularLanguage::Alternate(parts) => parts.iter().all(|part| part.is_anchored()),
            RegularLanguage::Repeat { inner, least, .. } => *least > 0 && inner.is_anchored(),
            RegularLanguage::Empty | RegularLanguage::Set(_) | RegularLanguage::Look(_) => false,
        }
    }

    /// Calls `visit` for this language and all its parts.
    pub fn walk(&self, visit: &mut impl FnMut(&RegularLanguage)) {
        visit(self);
        match self {
            RegularLanguage::Concat(parts) | RegularLanguage::Alternate(parts) => {
                parts.iter().for_each(|part| part.walk(visit));
            }
            RegularLanguage::Repeat { inner, .. } => inner.walk(visit),
            RegularLanguage::Empty
            | RegularLanguage::Set(_)
            | RegularLanguage::Anchor(_)
            | RegularLanguage::Look(_) => {}
        }
    }

    /// Returns whether each start has one end only, or ends that differ by a repetition of one set
    /// at the end. The leftmost match by priorities is then the match of that preference.
    pub fn has_one_end(&self, prefers_shortest: bool) -> bool {
        match self.width() {
            MatchWidth::Fixed(_) => true,
            MatchWidth::Tail { is_greedy } => is_greedy != prefers_shortest,
            MatchWidth::Other => false,
        }
    }

    fn width(&self) -> MatchWidth {
        match self {
            RegularLanguage::Empty | RegularLanguage::Anchor(_) => MatchWidth::Fixed(0),
            RegularLanguage::Set(_) => MatchWidth::Fixed(1),
            RegularLanguage::Look(_) => MatchWidth::Other,
            RegularLanguage::Concat(parts) => {
                let mut sum = 0;
                for (at, part) in parts.iter().enumerate() {
                    match part.width() {
                        MatchWidth::Fixed(count) => sum += count,
                        tail if at + 1 == parts.len() => return tail,
                        _ => return MatchWidth::Other,
                    }
                }
                MatchWidth::Fixed(sum)
            }
            RegularLanguage::Alternate(parts) => {
                let mut widths = parts.iter().map(|part| part.width());
                match widths.next() {
                    Some(MatchWidth::Fixed(first))
                        if widths.all(|it| it == MatchWidth::Fixed(first)) =>
                    {
                        MatchWidth::Fixed(first)
                    }
                    _ => MatchWidth::Other,
                }
            }
            RegularLanguage::Repeat { inner, least, most, is_greedy } => {
                match (inner.width(), &**inner) {
                    (MatchWidth::Fixed(count), _) if Some(*least) == *most => {
                        MatchWidth::Fixed(count.saturating_mul(u64::from(*least)))
                    }
                    (_, RegularLanguage::Set(_)) => MatchWidth::Tail { is_greedy: *is_greedy },
                    _ => MatchWidth::Other,
                }
            }
        }
    }

    /// Returns whether the crate `regex` can search for this language: it has no lookaround, and
    /// its words are other words.
    pub fn is_searchable(&self) -> bool {
        let mut is_searchable = true;
        self.walk(&mut |part| {
            is_searchable &= match part {
                RegularLanguage::Look(_) => false,
                RegularLanguage::Anchor(anchor) => matches!(
                    anchor,
                    RegexAnchor::TextStart
                        | RegexAnchor::TextEnd
                        | RegexAnchor::LineStart
                        | RegexAnchor::LineEnd
                ),
                _ => true,
            };
        });
        is_searchable
    }

    /// Appends the language in the syntax of the crate `regex`.
    pub fn write_pattern(&self, sets: &[CharacterSet], out: &mut String) {
        match self {
            RegularLanguage::Empty | RegularLanguage::Look(_) => out.push_str("(?:)"),
            RegularLanguage::Set(number) => write_set(&sets[*number], out),
            RegularLanguage::Anchor(anchor) => out.push_str(match anchor {
                RegexAnchor::TextStart => "\\A",
                RegexAnchor::TextEnd => "\\z",
                RegexAnchor::LineStart => "(?m:^)",
                RegexAnchor::LineEnd => "(?m:$)",
                _ => "",
            }),
            RegularLanguage::Concat(parts) => {
                out.push_str("(?:");
                parts.iter().for_each(|part| part.write_pattern(sets, out));
                out.push(')');
            }
            RegularLanguage::Alternate(parts) => {
                out.push_str("(?:");
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        out.push('|');
                    }
                    part.write_pattern(sets, out);
                }
                out.push(')');
            }
            RegularLanguage::Repeat { inner, least, most, is_greedy } => {
                out.push_str("(?:");
                inner.write_pattern(sets, out);
                // Writing to a text does not fail.
                let _ = match most {
                    Some(most) => write!(out, "){{{least},{most}}}"),
                    None => write!(out, "){{{least},}}"),
                };
                if !is_greedy {
                    out.push('?');
                }
            }
        }
    }
}

fn write_set(set: &CharacterSet, out: &mut String) {
    let ranges = set.ranges();
    match ranges {
        // A literal character lets the crate search for literal texts.
        [(first, last)] if first == last => {
            let _ = write!(out, "\\x{{{first:x}}}");
        }
        [] => out.push_str("[^\\x{0}-\\x{10FFFF}]"),
        _ => {
            out.push('[');
            for &(first, last) in ranges {
                // The crate has no ranges with ends among the surrogates.
                let (below, above) = ((first, last.min(0xd7ff)), (first.max(0xe000), last));
                for (first, last) in [below, above] {
                    if first <= last {
                        let _ = write!(out, "\\x{{{first:x}}}-\\x{{{last:x}}}");
                    }
                }
            }
            out.push(']');
        }
    }
}
