//! Nondeterministic automata.

use std::rc::Rc;

use super::super::language::RegularLanguage;
use super::super::syntax::pieces::RegexAnchor;
use super::alphabet::{EDGE, NEWLINE, WORD};

/// The direction in which an automaton reads a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::expression::regex) enum ReadDirection {
    Forward,
    Backward,
}

/// A state.
#[derive(Clone, Copy, Debug)]
pub(super) enum NfaState {
    /// Reads a character of the set.
    Set {
        set: usize,
        next: u32,
    },
    Split(u32, u32),
    Jump(u32),
    Anchor(RegexAnchor, u32),
    /// Passes where the lookaround constraint holds.
    Look(usize, u32),
    Accept,
}

/// An automaton of a language.
#[derive(Debug)]
pub(super) struct Nfa {
    pub states: Vec<NfaState>,
    pub start: u32,
    pub direction: ReadDirection,
    /// The lookaround constraints that it has, sorted.
    pub looks: Vec<usize>,
    pub has_anchors: bool,
}

impl RegexAnchor {
    /// Returns whether the anchor holds between characters of these kinds.
    pub(super) fn holds(self, before: u8, after: u8) -> bool {
        let is_word = |kind: u8| kind & WORD != 0;
        match self {
            RegexAnchor::TextStart => before & EDGE != 0,
            RegexAnchor::TextEnd => after & EDGE != 0,
            RegexAnchor::LineStart => before & (EDGE | NEWLINE) != 0,
            RegexAnchor::LineEnd => after & (EDGE | NEWLINE) != 0,
            RegexAnchor::WordStart => !is_word(before) && is_word(after),
            RegexAnchor::WordEnd => is_word(before) && !is_word(after),
            RegexAnchor::WordBoundary => is_word(before) != is_word(after),
            RegexAnchor::NoWordBoundary => is_word(before) == is_word(after),
        }
    }
}

impl Nfa {
    pub fn new(language: &RegularLanguage, direction: ReadDirection) -> Nfa {
        let mut nfa = Nfa {
            states: vec![NfaState::Accept],
            start: 0,
            direction,
            looks: Vec::new(),
            has_anchors: false,
        };
        nfa.start = nfa.add(language, 0);
        nfa.looks.sort_unstable();
        nfa.looks.dedup();
        nfa
    }

    fn push(&mut self, state: NfaState) -> u32 {
        self.states.push(state);
        // A plan has fewer states than a number of 32 bits has values.
        u32::try_from(self.states.len() - 1).unwrap_or(0)
    }

    /// Adds the states of a language that end in the state `next`; returns the first one.
    fn add(&mut self, language: &RegularLanguage, next: u32) -> u32 {
        match language {
            RegularLanguage::Empty => next,
            RegularLanguage::Set(set) => self.push(NfaState::Set { set: *set, next }),
            RegularLanguage::Anchor(anchor) => {
                self.has_anchors = true;
                self.push(NfaState::Anchor(*anchor, next))
            }
            RegularLanguage::Look(number) => {
                self.looks.push(*number);
                self.push(NfaState::Look(*number, next))
            }
            RegularLanguage::Concat(parts) => {
                let direction = self.direction;
                let add = |next, part: &Rc<RegularLanguage>| self.add(part, next);
                match direction {
                    ReadDirection::Forward => parts.iter().rev().fold(next, add),
                    ReadDirection::Backward => parts.iter().fold(next, add),
                }
            }
            RegularLanguage::Alternate(parts) => {
                let mut first = None;
                for part in parts.iter().rev() {
                    let start = self.add(part, next);
                    first = Some(match first {
                        Some(others) => self.push(NfaState::Split(start, others)),
                        None => start,
                    });
                }
                first.unwrap_or(next)
            }
            RegularLanguage::Repeat { inner, least, most, .. } => {
                let mut next = next;
                match most {
                    None => {
                        let again = self.push(NfaState::Jump(next));
                        let start = self.add(inner, again);
                        self.states[again as usize] = NfaState::Split(start, next);
                        next = again;
                    }
                    Some(most) => {
                        let end = next;
                        for _ in *least..*most {
                            let start = self.add(inner, next);
                            next = self.push(NfaState::Split(start, end));
                        }
                    }
                }
                for _ in 0..*least {
                    next = self.add(inner, next);
                }
                next
            }
        }
    }
}
