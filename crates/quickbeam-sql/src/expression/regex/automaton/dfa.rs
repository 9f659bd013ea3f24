//! Deterministic automata whose states are made when a text first needs them.
//!
//! A state of the deterministic automaton is a set of states of the nondeterministic one. A
//! transition also says whether the automaton accepts before it reads the character: an anchor at
//! that place depends on the character. The memory of each automaton is bounded; a full one
//! begins again with the current state.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::language::RegularLanguage;
use super::alphabet::{Alphabet, EDGE};
use super::nfa::{Nfa, NfaState, ReadDirection};

/// The state without a match.
pub(in crate::expression::regex) const DEAD: u32 = 0;
const ACCEPT: u32 = 1 << 31;
const UNKNOWN: u32 = ACCEPT - 1;

/// Most bytes of the transitions and sets of one automaton.
const MEMORY_LIMIT: usize = 512 << 10;
/// Bytes that all automata of an expression share.
const SHARED_MEMORY: usize = 32 << 20;
/// Known transitions that take the time of visiting one state of a set.
const WORK_OF_STATE: u64 = 8;
/// States that an automaton may have in any case.
const LEAST_STATES: usize = 8;
/// Constraints whose truth is part of the character that a transition reads.
const LOOKS_IN_TABLE: usize = 4;

/// Where a match begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::expression::regex) enum MatchStart {
    /// Where the automaton begins to read.
    Here,
    /// There or at any place that it reads afterwards.
    Anywhere,
}

/// A transition: the next state, and whether the automaton accepts before it.
#[derive(Clone, Copy, Debug)]
pub(in crate::expression::regex) struct Transition {
    pub next: u32,
    pub accepts: bool,
}

/// A set of states with the kind of the character before, if anchors need it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StateSet {
    states: Box<[u32]>,
    kind: u8,
}

/// States that a closure has visited.
#[derive(Debug, Default)]
struct VisitedStates {
    marks: Vec<u32>,
    mark: u32,
    list: Vec<u32>,
    stack: Vec<u32>,
}

impl VisitedStates {
    fn clear(&mut self, count: usize) {
        self.list.clear();
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 || self.marks.len() != count {
            self.marks.clear();
            self.marks.resize(count, 0);
            self.mark = 1;
        }
    }

    fn push(&mut self, state: u32) {
        let mark = &mut self.marks[state as usize];
        if *mark != self.mark {
            *mark = self.mark;
            self.stack.push(state);
        }
    }

    /// Adds the states that are reached without a character, and without a condition unless
    /// `holds` is given.
    fn close(&mut self, nfa: &Nfa, holds: Option<&dyn Fn(&NfaState) -> bool>) {
        while let Some(state) = self.stack.pop() {
            match &nfa.states[state as usize] {
                NfaState::Split(first, second) => {
                    let (first, second) = (*first, *second);
                    self.push(first);
                    self.push(second);
                }
                NfaState::Jump(next) => {
                    let next = *next;
                    self.push(next);
                }
                condition @ (NfaState::Anchor(_, next) | NfaState::Look(_, next)) => match holds {
                    Some(holds) if holds(condition) => {
                        let next = *next;
                        self.push(next);
                    }
                    Some(_) => {}
                    None => self.list.push(state),
                },
                NfaState::Set { .. } | NfaState::Accept => self.list.push(state),
            }
        }
    }
}

/// A deterministic automaton.
#[derive(Debug)]
pub(in crate::expression::regex) struct Dfa {
    nfa: Nfa,
    start: MatchStart,
    /// Columns of a state in the table: colors, for each truth of the constraints.
    stride: usize,
    colors: usize,
    table: Vec<u32>,
    sets: Vec<Rc<StateSet>>,
    numbers: HashMap<Rc<StateSet>, u32>,
    /// Bytes of the sets.
    set_bytes: usize,
    memory_limit: usize,
    /// The first states by the kind of the character before.
    first: [u32; 8],
    conditional: VisitedStates,
    following: VisitedStates,
    /// Steps that new states took since the automaton was made.
    pub work: u64,
}

impl Dfa {
    /// Makes one of several automata over an alphabet.
    pub fn new(
        language: &RegularLanguage,
        direction: ReadDirection,
        start: MatchStart,
        (alphabet, automata): (&Alphabet, usize),
    ) -> Dfa {
        let nfa = Nfa::new(language, direction);
        let colors = alphabet.count();
        let looks = if nfa.looks.len() > LOOKS_IN_TABLE { 0 } else { nfa.looks.len() };
        let mut dfa = Dfa {
            nfa,
            start,
            stride: colors << looks,
            colors,
            table: Vec::new(),
            sets: Vec::new(),
            numbers: HashMap::new(),
            set_bytes: 0,
            memory_limit: (SHARED_MEMORY / automata.max(1)).min(MEMORY_LIMIT),
            first: [UNKNOWN; 8],
            conditional: VisitedStates::default(),
            following: VisitedStates::default(),
            work: 0,
        };
        dfa.reset();
        dfa
    }

    /// Returns the lookaround constraints that the automaton reads.
    pub fn looks(&self) -> &[usize] {
        &self.nfa.looks
    }

    fn reset(&mut self) {
        self.table.clear();
        self.sets.clear();
        self.numbers.clear();
        self.set_bytes = 0;
        self.first = [UNKNOWN; 8];
        // The dead state reads everything.
        self.table.resize(self.stride, DEAD);
        self.sets.push(Rc::new(StateSet { states: Box::new([]), kind: EDGE }));
    }

    /// Returns the first state after a character of that kind.
    pub fn first_state(&mut self, kind: u8) -> u32 {
        let kind = if self.nfa.has_anchors { kind & 7 } else { 0 };
        let known = self.first[usize::from(kind)];
        if known != UNKNOWN {
            return known;
        }
        self.following.clear(self.nfa.states.len());
        self.following.push(self.nfa.start);
        self.following.close(&self.nfa, None);
        let state = self.intern(kind);
        self.first[usize::from(kind)] = state;
        state
    }

    /// Returns the number of the state in `following`.
    fn intern(&mut self, kind: u8) -> u32 {
        let list = &mut self.following.list;
        if list.is_empty() {
            return DEAD;
        }
        list.sort_unstable();
        let set = StateSet { states: list[..].into(), kind };
        if let Some(known) = self.numbers.get(&set) {
            return *known;
        }
        let bytes = self.set_bytes + self.table.len() * size_of::<u32>();
        if bytes > self.memory_limit && self.sets.len() > LEAST_STATES {
            self.reset();
        }
        // The memory bounds the table far below the largest number.
        let number = u32::try_from(self.table.len()).unwrap_or(DEAD);
        self.table.resize(self.table.len() + self.stride, UNKNOWN);
        self.set_bytes += set.states.len() * size_of::<u32>() + 64;
        let set = Rc::new(set);
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }

    /// Returns the transition of a state without lookaround constraints, if it is known.
    #[inline]
    pub fn known(&self, state: u32, color: usize) -> Option<Transition> {
        let entry = self.table[state as usize + color];
        if entry == UNKNOWN {
            return None;
        }
        Some(Transition { next: entry & !ACCEPT, accepts: entry & ACCEPT != 0 })
    }

    /// Returns the transition of a state for a color. `looks` has the truth of each constraint of
    /// [`Dfa::looks`], the first one in the lowest bit.
    pub fn step(
        &mut self,
        state: u32,
        color: usize,
        looks: u64,
        alphabet: &Alphabet,
    ) -> Transition {
        let column = match self.nfa.looks.len() {
            0 => color,
            1..=LOOKS_IN_TABLE => color + self.colors * looks as usize,
            _ => return self.compute(state, color, looks, alphabet),
        };
        if let Some(known) = self.known(state, column) {
            return known;
        }
        let states = self.sets.len();
        let transition = self.compute(state, color, looks, alphabet);
        // The table began again if it has fewer states.
        if self.sets.len() >= states {
            let accepts = if transition.accepts { ACCEPT } else { 0 };
            self.table[state as usize + column] = transition.next | accepts;
        }
        transition
    }

    fn compute(&mut self, state: u32, color: usize, looks: u64, alphabet: &Alphabet) -> Transition {
        let set = self.sets[state as usize / self.stride].clone();
        let next_kind = alphabet.kind(color);
        let count = self.nfa.states.len();
        let numbers = &self.nfa.looks;
        let is_forward = self.nfa.direction == ReadDirection::Forward;
        let (before, after) =
            if is_forward { (set.kind, next_kind) } else { (next_kind, set.kind) };
        let holds = |state: &NfaState| match state {
            NfaState::Anchor(anchor, _) => anchor.holds(before, after),
            NfaState::Look(number, _) => {
                numbers.binary_search(number).is_ok_and(|at| looks >> at.min(63) & 1 != 0)
            }
            _ => true,
        };
        self.conditional.clear(count);
        set.states.iter().for_each(|state| self.conditional.push(*state));
        self.conditional.close(&self.nfa, Some(&holds));
        self.following.clear(count);
        let (mut accepts, is_edge) = (false, color == alphabet.edge());
        for state in &self.conditional.list {
            match &self.nfa.states[*state as usize] {
                NfaState::Accept => accepts = true,
                NfaState::Set { set, next } if !is_edge && alphabet.has(*set, color) => {
                    self.following.push(*next);
                }
                _ => {}
            }
        }
        if self.start == MatchStart::Anywhere && !is_edge {
            self.following.push(self.nfa.start);
        }
        self.following.close(&self.nfa, None);
        let visited = self.conditional.list.len() + self.following.list.len() + 1;
        self.work += WORK_OF_STATE * visited as u64;
        let kind = if self.nfa.has_anchors { next_kind } else { 0 };
        Transition { next: self.intern(kind), accepts }
    }
}
