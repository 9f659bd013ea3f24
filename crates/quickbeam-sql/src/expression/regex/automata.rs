//! The automata of an expression, and how they read a text.

use super::automaton::alphabet::Alphabet;
use super::automaton::dfa::{DEAD, Dfa, MatchStart};
use super::automaton::nfa::ReadDirection;
use super::language::RegularLanguage;
use super::places::PlaceSet;
use super::plan::MatchPlan;
use super::syntax::pieces::PreferredLength;
use super::syntax::too_complex;
use crate::error::Result;

/// Steps of automata that the matches of a text may take, whatever its length: some seconds.
const WORK_LIMIT: u64 = if cfg!(test) { 1 << 20 } else { 1 << 27 };
/// Steps of automata that they may take for each byte of the text.
const WORK_PER_BYTE: u64 = 1 << 10;

/// What an automaton of a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AutomatonUse {
    /// The ends of the step that begins at a place.
    Ends,
    /// The starts of the step that ends at a place.
    Starts,
    /// The starts of repetitions of an iterated step that end at a place.
    Repetitions,
    /// The ends of a step that begins anywhere.
    Found,
    /// The starts of a step that ends anywhere.
    Candidates,
}

const USES: usize = 5;

/// The automata that texts have needed so far.
#[derive(Debug, Default)]
pub(super) struct Automata {
    steps: Vec<Option<Box<Dfa>>>,
    looks: Vec<Option<Box<Dfa>>>,
}

/// A text that automata read, with the places where the lookaround constraints hold.
#[derive(Debug)]
pub(super) struct ReadText<'t> {
    pub text: &'t str,
    looks: Vec<PlaceSet>,
    /// Steps of automata that are left.
    work: u64,
}

impl<'t> ReadText<'t> {
    pub fn new(text: &'t str) -> ReadText<'t> {
        let work = WORK_LIMIT.saturating_add(WORK_PER_BYTE.saturating_mul(text.len() as u64));
        ReadText { text, looks: Vec::new(), work }
    }

    /// Takes steps from those that are left.
    pub fn spend(&mut self, steps: u64) -> Result<()> {
        match self.work.checked_sub(steps) {
            Some(left) => {
                self.work = left;
                Ok(())
            }
            None => Err(too_complex()),
        }
    }

    /// Ends the reading of an automaton that takes more steps than are left.
    fn check(&self, steps: u64) -> Result<()> {
        if steps > self.work { Err(too_complex()) } else { Ok(()) }
    }

    fn truth_of_looks(&self, dfa: &Dfa, at: usize) -> u64 {
        let numbers = dfa.looks().iter().enumerate();
        numbers.fold(0, |bits, (bit, number)| {
            let holds = self.looks.get(*number).is_some_and(|places| places.contains(at));
            bits | u64::from(holds) << bit
        })
    }

    /// Reads forward from `start` to `limit`. Calls `accept` with each end of a match; it returns
    /// whether the reading goes on.
    fn read_forward(
        &mut self,
        dfa: &mut Dfa,
        alphabet: &Alphabet,
        (start, limit): (usize, usize),
        mut accept: impl FnMut(usize) -> bool,
    ) -> Result<()> {
        let (text, work) = (self.text, dfa.work);
        let mut state = dfa.first_state(alphabet.kind(alphabet.before(text, start).0));
        let mut at = start;
        let has_looks = !dfa.looks().is_empty();
        while state != DEAD {
            let (color, next) = alphabet.after(text, at);
            let known = if has_looks { None } else { dfa.known(state, color) };
            let transition = match known {
                Some(known) => known,
                None => {
                    let looks = if has_looks { self.truth_of_looks(dfa, at) } else { 0 };
                    let transition = dfa.step(state, color, looks, alphabet);
                    self.check(dfa.work - work)?;
                    transition
                }
            };
            if (transition.accepts && !accept(at)) || at >= limit {
                break;
            }
            (state, at) = (transition.next, next);
        }
        self.spend((at - start) as u64 + 1 + (dfa.work - work))
    }

    /// Reads backward from `start` to `limit`. Calls `accept` with each start of a match.
    fn read_backward(
        &mut self,
        dfa: &mut Dfa,
        alphabet: &Alphabet,
        (start, limit): (usize, usize),
        mut accept: impl FnMut(usize),
    ) -> Result<()> {
        let (text, work) = (self.text, dfa.work);
        let mut state = dfa.first_state(alphabet.kind(alphabet.after(text, start).0));
        let mut at = start;
        while state != DEAD {
            let (color, next) = alphabet.before(text, at);
            let looks = self.truth_of_looks(dfa, at);
            let transition = dfa.step(state, color, looks, alphabet);
            self.check(dfa.work - work)?;
            if transition.accepts {
                accept(at);
            }
            if at <= limit {
                break;
            }
            (state, at) = (transition.next, next);
        }
        self.spend((start - at) as u64 + 1 + (dfa.work - work))
    }
}

impl Automata {
    fn of_step(
        &mut self,
        plan: &MatchPlan,
        alphabet: &Alphabet,
        step: usize,
        wanted: AutomatonUse,
    ) -> &mut Dfa {
        let index = step * USES + wanted as usize;
        if self.steps.len() <= index {
            self.steps.resize_with(plan.steps.len() * USES, || None);
        }
        let around = (alphabet, plan.steps.len() + plan.looks.len());
        self.steps[index].get_or_insert_with(|| {
            let language = &plan.steps[step].language;
            Box::new(match wanted {
                AutomatonUse::Ends => {
                    Dfa::new(language, ReadDirection::Forward, MatchStart::Here, around)
                }
                AutomatonUse::Starts => {
                    Dfa::new(language, ReadDirection::Backward, MatchStart::Here, around)
                }
                AutomatonUse::Repetitions => {
                    let all = RegularLanguage::repeat(language, 0, None, PreferredLength::Longest);
                    Dfa::new(&all, ReadDirection::Backward, MatchStart::Here, around)
                }
                AutomatonUse::Found => {
                    Dfa::new(language, ReadDirection::Forward, MatchStart::Anywhere, around)
                }
                AutomatonUse::Candidates => {
                    Dfa::new(language, ReadDirection::Backward, MatchStart::Anywhere, around)
                }
            })
        })
    }

    /// Finds the places where the lookaround constraints of the plan hold.
    pub fn find_looks(
        &mut self,
        plan: &MatchPlan,
        alphabet: &Alphabet,
        text: &mut ReadText<'_>,
    ) -> Result<()> {
        self.looks.resize_with(plan.looks.len(), || None);
        let around = (alphabet, plan.steps.len() + plan.looks.len());
        let length = text.text.len();
        for (number, it) in plan.looks.iter().enumerate() {
            let direction =
                if it.look.is_behind { ReadDirection::Forward } else { ReadDirection::Backward };
            let dfa = self.looks[number].get_or_insert_with(|| {
                Box::new(Dfa::new(&it.language, direction, MatchStart::Anywhere, around))
            });
            let mut places = PlaceSet::new(length);
            if it.look.is_behind {
                text.read_forward(dfa, alphabet, (0, length), |at| {
                    places.insert(at);
                    true
                })?;
            } else {
                text.read_backward(dfa, alphabet, (length, 0), |at| places.insert(at))?;
            }
            if it.look.is_negative {
                places.invert();
            }
            text.looks.push(places);
        }
        Ok(())
    }

    /// Returns the places where the step can begin, if it ends at `end`, or anywhere without it.
    pub fn starts(
        &mut self,
        (plan, alphabet): (&MatchPlan, &Alphabet),
        text: &mut ReadText<'_>,
        (step, wanted): (usize, AutomatonUse),
        (start, end): (usize, usize),
    ) -> Result<PlaceSet> {
        let dfa = self.of_step(plan, alphabet, step, wanted);
        let mut places = PlaceSet::new(text.text.len());
        text.read_backward(dfa, alphabet, (end, start), |at| places.insert(at))?;
        Ok(places)
    }

    /// Returns whether the text has a match of the plan without back references.
    pub fn finds(
        &mut self,
        plan: &MatchPlan,
        alphabet: &Alphabet,
        text: &mut ReadText<'_>,
    ) -> Result<bool> {
        let dfa = self.of_step(plan, alphabet, plan.root, AutomatonUse::Found);
        let mut is_found = false;
        text.read_forward(dfa, alphabet, (0, text.text.len()), |_| {
            is_found = true;
            false
        })?;
        Ok(is_found)
    }

    /// Returns the first end of the step from `least` to `limit` among `ends`, or the last one up
    /// to `limit`.
    pub fn end(
        &mut self,
        (plan, alphabet): (&MatchPlan, &Alphabet),
        text: &mut ReadText<'_>,
        step: usize,
        wanted: &WantedEnd<'_>,
    ) -> Result<Option<usize>> {
        let dfa = self.of_step(plan, alphabet, step, AutomatonUse::Ends);
        let mut found = None;
        text.read_forward(dfa, alphabet, (wanted.start, wanted.limit), |at| {
            let fits = at >= wanted.least && wanted.ends.is_none_or(|ends| ends.contains(at));
            if fits {
                found = Some(at);
            }
            !(fits && wanted.is_first)
        })?;
        Ok(found)
    }
}

/// The end of a step that is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedEnd<'p> {
    pub start: usize,
    pub least: usize,
    pub limit: usize,
    /// Whether the first end is wanted, not the last one.
    pub is_first: bool,
    /// Where the step may end.
    pub ends: Option<&'p PlaceSet>,
}
