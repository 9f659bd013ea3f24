//! Dissection: which parts of a match belong to which steps of the plan.
//!
//! The caller has made sure that the automaton of a step matches its span. Without back references
//! a dissection then succeeds, and each decision is final.

use std::collections::HashSet;

use super::automata::{Automata, AutomatonUse, ReadText, WantedEnd};
use super::automaton::alphabet::Alphabet;
use super::plan::{MatchPlan, MatchStepKind};
use super::syntax::classes::lower_case;
use super::syntax::pieces::PreferredLength;
use crate::error::Result;

/// A span of a text, in bytes.
pub(in crate::expression) type TextSpan = (usize, usize);

/// A dissection of one match.
pub(super) struct Dissection<'m, 't> {
    pub plan: &'m MatchPlan,
    pub alphabet: &'m Alphabet,
    pub automata: &'m mut Automata,
    pub text: &'m mut ReadText<'t>,
    /// The spans of the groups.
    pub groups: &'m mut [Option<TextSpan>],
    pub ignores_case: bool,
}

impl Dissection<'_, '_> {
    fn has_back_references(&self, step: usize) -> bool {
        self.plan.steps[step].traits.has_back_references
    }

    fn prefers_shortest(&self, step: usize) -> bool {
        self.plan.steps[step].traits.prefers == Some(PreferredLength::Shortest)
    }

    fn clear(&mut self, step: usize) {
        let groups = self.plan.steps[step].groups.clone();
        if let Some(groups) = self.groups.get_mut(groups) {
            groups.fill(None);
        }
    }

    fn next(&self, at: usize) -> usize {
        at + self.text.text[at..].chars().next().map_or(1, char::len_utf8)
    }

    fn previous(&self, at: usize) -> usize {
        at - self.text.text[..at].chars().next_back().map_or(1, char::len_utf8)
    }

    fn end(&mut self, step: usize, wanted: &WantedEnd<'_>) -> Result<Option<usize>> {
        self.automata.end((self.plan, self.alphabet), self.text, step, wanted)
    }

    /// Returns whether the automaton of a step matches a span.
    fn matches(&mut self, step: usize, (start, end): TextSpan) -> Result<bool> {
        let wanted = WantedEnd { start, least: end, limit: end, is_first: true, ends: None };
        Ok(self.end(step, &wanted)?.is_some())
    }

    /// Dissects the span of a step; returns whether it succeeds.
    pub fn dissect(&mut self, step: usize, span: TextSpan) -> Result<bool> {
        let plan = self.plan;
        let mut step = step;
        let mut span = span;
        loop {
            self.text.spend(1)?;
            let own = &plan.steps[step];
            let succeeds = match &own.kind {
                MatchStepKind::Span => true,
                MatchStepKind::BackReference { group, least, most } => {
                    self.repeats(*group, (*least, *most), span)?
                }
                MatchStepKind::Concat(first, second) if own.traits.has_back_references => {
                    self.concat((*first, *second), span)?
                }
                MatchStepKind::Concat(first, second) => {
                    let Some(middle) = self.middle((*first, *second), span)? else {
                        return Ok(false);
                    };
                    if !self.dissect(*first, (span.0, middle))? {
                        return Ok(false);
                    }
                    if let Some(group) = own.group {
                        self.groups[group] = Some(span);
                    }
                    // The second part is the rest of a branch; a loop spares the stack.
                    (step, span) = (*second, (middle, span.1));
                    continue;
                }
                MatchStepKind::Alternate(parts) => {
                    let mut succeeds = false;
                    for part in parts {
                        if self.matches(*part, span)? && self.dissect(*part, span)? {
                            succeeds = true;
                            break;
                        }
                        self.clear(*part);
                    }
                    succeeds
                }
                MatchStepKind::Iterate { inner, least, most } => {
                    self.iterate(*inner, (*least, *most), span)?
                }
                MatchStepKind::Wrap(inner) => self.dissect(*inner, span)?,
            };
            if succeeds && let Some(group) = own.group {
                self.groups[group] = Some(span);
            }
            return Ok(succeeds);
        }
    }

    /// Returns whether a span is a number of repetitions of what a group captured.
    fn repeats(
        &mut self,
        group: usize,
        (least, most): (u32, Option<u32>),
        (start, end): TextSpan,
    ) -> Result<bool> {
        let Some((from, to)) = self.groups.get(group).copied().flatten() else {
            return Ok(false);
        };
        if from == to {
            return Ok(start == end);
        }
        if start == end {
            return Ok(least == 0);
        }
        self.text.spend((end - start) as u64)?;
        let text = self.text.text;
        let (captured, mut rest) = (&text[from..to], &text[start..end]);
        let mut count = 0;
        while !rest.is_empty() {
            let Some(after) = self.without_prefix(rest, captured) else { return Ok(false) };
            rest = after;
            count += 1;
        }
        Ok(count >= u64::from(least) && most.is_none_or(|most| count <= u64::from(most)))
    }

    fn without_prefix<'s>(&self, text: &'s str, prefix: &str) -> Option<&'s str> {
        if !self.ignores_case {
            return text.strip_prefix(prefix);
        }
        let mut rest = text.chars();
        for wanted in prefix.chars() {
            if lower_case(rest.next()?) != lower_case(wanted) {
                return None;
            }
        }
        Some(rest.as_str())
    }

    /// Returns where the first of two steps ends. It takes the longest part of the span that the
    /// other step can complete, or the shortest one, as the first step prefers.
    fn middle(
        &mut self,
        (first, second): (usize, usize),
        (start, end): TextSpan,
    ) -> Result<Option<usize>> {
        let is_first = self.prefers_shortest(first);
        let mut wanted = WantedEnd { start, least: start, limit: end, is_first, ends: None };
        let Some(middle) = self.end(first, &wanted)? else { return Ok(None) };
        if self.matches(second, (middle, end))? {
            return Ok(Some(middle));
        }
        // The first one seldom fails; then one pass back finds all places to choose from.
        let around = (self.plan, self.alphabet);
        let wanted_starts = (second, AutomatonUse::Starts);
        let starts = self.automata.starts(around, self.text, wanted_starts, (start, end))?;
        wanted.ends = Some(&starts);
        self.end(first, &wanted)
    }

    /// Dissects two steps with back references: another end of the first one may succeed.
    fn concat(&mut self, (first, second): (usize, usize), (start, end): TextSpan) -> Result<bool> {
        let around = (self.plan, self.alphabet);
        let wanted_starts = (second, AutomatonUse::Starts);
        let starts = self.automata.starts(around, self.text, wanted_starts, (start, end))?;
        let is_first = self.prefers_shortest(first);
        let (mut least, mut limit) = (start, end);
        loop {
            let wanted = WantedEnd { start, least, limit, is_first, ends: Some(&starts) };
            let Some(middle) = self.end(first, &wanted)? else { return Ok(false) };
            if self.dissect(first, (start, middle))? && self.dissect(second, (middle, end))? {
                return Ok(true);
            }
            if middle == if is_first { end } else { start } {
                return Ok(false);
            }
            if is_first {
                least = self.next(middle);
            } else {
                limit = self.previous(middle);
            }
            self.clear(first);
            self.clear(second);
        }
    }

    /// Returns whether a number of repetitions is as large as the characters of a span.
    fn covers(&self, (start, end): TextSpan, number: usize) -> bool {
        self.text.text[start..end].chars().nth(number).is_none()
    }

    /// Divides a span between repetitions of a step. Each repetition takes the longest or the
    /// shortest part, as the step prefers; if the rest fails, the last repetition tries another
    /// end, then the one before.
    fn iterate(
        &mut self,
        inner: usize,
        (least, most): (u32, Option<u32>),
        (start, end): TextSpan,
    ) -> Result<bool> {
        if least == 0 && start == end && self.prefers_shortest(inner) {
            return Ok(true);
        }
        // An empty span is rather one empty repetition than none.
        if self.divide(inner, ((least as usize).max(1), most), (start, end))? {
            return Ok(true);
        }
        self.clear(inner);
        Ok(least == 0 && start == end)
    }

    fn divide(
        &mut self,
        inner: usize,
        (least, most): (usize, Option<u32>),
        (start, end): TextSpan,
    ) -> Result<bool> {
        let around = (self.plan, self.alphabet);
        let wanted = (inner, AutomatonUse::Repetitions);
        let ends = self.automata.starts(around, self.text, wanted, (start, end))?;
        let is_first = self.prefers_shortest(inner);
        let mut repetitions = Repetitions {
            least,
            most: most.map_or(usize::MAX, |most| most as usize).max(least),
            places: vec![start],
            bound: if is_first { start } else { end },
            verified: 0,
            failed: HashSet::new(),
            keeps_failed: most.is_some() && !self.has_back_references(inner),
        };
        loop {
            self.text.spend(1)?;
            let number = repetitions.places.len();
            let from = repetitions.places[number - 1];
            let (mut from_least, mut limit) = (from, repetitions.bound);
            if is_first {
                (from_least, limit) = (repetitions.bound, end);
                let is_needed = number < least && self.covers((from, end), least - number);
                if from_least == from && from != end && !is_needed {
                    from_least = self.next(from);
                }
                if number >= repetitions.most {
                    from_least = end;
                }
            }
            let wanted =
                WantedEnd { start: from, least: from_least, limit, is_first, ends: Some(&ends) };
            let found = if repetitions.failed.contains(&(number, from)) {
                None
            } else {
                self.end(inner, &wanted)?
            };
            if let Some(place) = found {
                repetitions.verified = repetitions.verified.min(number - 1);
                let is_needed = number < least && self.covers((place, end), least - number);
                if place != end && number < repetitions.most {
                    repetitions.places.push(place);
                    if is_first || place > from || is_needed {
                        repetitions.bound = if is_first { place } else { end };
                        continue;
                    }
                } else if place == end {
                    repetitions.places.push(place);
                    if number >= least && self.verify(inner, &mut repetitions)? {
                        return Ok(true);
                    }
                }
            } else if repetitions.keeps_failed {
                repetitions.failed.insert((number, from));
            }
            if !self.retry(&mut repetitions, is_first, end) {
                return Ok(false);
            }
        }
    }

    /// Dissects the repetitions that were not dissected yet. If one fails, it is the last one.
    fn verify(&mut self, inner: usize, repetitions: &mut Repetitions) -> Result<bool> {
        let number = repetitions.places.len() - 1;
        if !self.has_back_references(inner) {
            repetitions.verified = number - 1;
        }
        while repetitions.verified < number {
            let next = repetitions.verified + 1;
            self.clear(inner);
            let span = (repetitions.places[next - 1], repetitions.places[next]);
            if !self.dissect(inner, span)? {
                repetitions.places.truncate(next + 1);
                return Ok(false);
            }
            repetitions.verified = next;
        }
        Ok(true)
    }

    /// Bounds the last repetition that can have another end, and removes those after it. Returns
    /// whether there is one.
    fn retry(&self, repetitions: &mut Repetitions, is_first: bool, end: usize) -> bool {
        while repetitions.places.len() > 1
            && let Some(place) = repetitions.places.pop()
        {
            let number = repetitions.places.len();
            let from = repetitions.places[number - 1];
            if is_first && place < end {
                repetitions.bound = self.next(place);
                return true;
            }
            if !is_first && place > from {
                let limit = self.previous(place);
                let least = repetitions.least;
                if limit > from || (number < least && self.covers((from, end), least - number)) {
                    repetitions.bound = limit;
                    return true;
                }
            }
            if repetitions.keeps_failed {
                repetitions.failed.insert((number, from));
            }
        }
        false
    }
}

/// Repetitions of a step that are being found.
struct Repetitions {
    least: usize,
    most: usize,
    /// The start of the first repetition, and the end of each one.
    places: Vec<usize>,
    /// The last end that the next repetition may have; the first one of a step that prefers the
    /// shortest.
    bound: usize,
    /// Repetitions that were dissected.
    verified: usize,
    /// Repetitions, by their number and their start, after which the rest failed.
    failed: HashSet<(usize, usize)>,
    keeps_failed: bool,
}
