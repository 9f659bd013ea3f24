//! The plan of a match: a tree of the parts whose spans a match determines.
//!
//! A part without groups, back references and mixed preferences is one step, whatever its
//! structure. The preference of a sequence is that of its first part with one; an alternation
//! prefers the longest match.

use std::collections::HashMap;
use std::rc::Rc;

use super::language::RegularLanguage;
use super::syntax::character_set::CharacterSet;
use super::syntax::classes::word;
use super::syntax::pieces::{
    Lookaround, PreferredLength, RegexAlternation, RegexAnchor, RegexAtom, RegexPiece,
    RegexQuantifier,
};
use super::syntax::too_complex;
use crate::error::Result;

/// Most states of the automata of one expression.
const SIZE_LIMIT: u64 = 1_000_000;
/// Most states of one automaton.
const AUTOMATON_LIMIT: u64 = 200_000;
/// Most steps that enclose a step.
const DEPTH_LIMIT: usize = 1_000;

/// Most lookaround constraints: each one has a bit of a word.
const LOOK_LIMIT: usize = 64;

/// What a step does with its span.
#[derive(Debug)]
pub(super) enum MatchStepKind {
    /// Nothing: the span is all there is.
    Span,
    BackReference {
        group: usize,
        least: u32,
        most: Option<u32>,
    },
    /// Divides the span between two steps.
    Concat(usize, usize),
    Alternate(Vec<usize>),
    /// Divides the span between repetitions of a step.
    Iterate {
        inner: usize,
        least: u32,
        most: Option<u32>,
    },
    /// A group that is another group as a whole.
    Wrap(usize),
}

/// Properties of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StepTraits {
    pub prefers: Option<PreferredLength>,
    /// Whether there are both preferences below.
    is_mixed: bool,
    has_groups: bool,
    pub has_back_references: bool,
}

impl StepTraits {
    fn is_structured(self) -> bool {
        self.is_mixed || self.has_groups || self.has_back_references
    }

    /// Returns the traits of a step with these parts, with the preference of the first part.
    fn with(self, second: StepTraits) -> StepTraits {
        let clash = match (self.prefers, second.prefers) {
            (Some(first), Some(second)) => first != second,
            _ => false,
        };
        StepTraits {
            prefers: self.prefers.or(second.prefers),
            is_mixed: self.is_mixed || second.is_mixed || clash,
            has_groups: self.has_groups || second.has_groups,
            has_back_references: self.has_back_references || second.has_back_references,
        }
    }
}

/// A step.
#[derive(Debug)]
pub(super) struct MatchStep {
    pub kind: MatchStepKind,
    pub language: Rc<RegularLanguage>,
    pub traits: StepTraits,
    /// The group that the step captures.
    pub group: Option<usize>,
    /// The groups at and below the step.
    pub groups: std::ops::Range<usize>,
}

/// A lookaround constraint. The constraints that it contains have lower numbers.
#[derive(Debug)]
pub(super) struct LookaroundPlan {
    pub look: Lookaround,
    pub language: Rc<RegularLanguage>,
}

/// The plan of an expression.
#[derive(Debug, Default)]
pub(super) struct MatchPlan {
    pub steps: Vec<MatchStep>,
    pub root: usize,
    pub sets: Vec<CharacterSet>,
    pub looks: Vec<LookaroundPlan>,
    /// The numbers of the sets of newlines and of words, if anchors need them.
    pub newline: Option<usize>,
    pub words: Option<usize>,
    numbers: HashMap<CharacterSet, usize>,
    /// The language of each group that was read.
    captured: HashMap<usize, Rc<RegularLanguage>>,
    size: u64,
}

const ONCE: RegexQuantifier = RegexQuantifier { least: 1, most: Some(1), prefers: None };

impl MatchPlan {
    pub fn of(tree: &RegexAlternation) -> Result<MatchPlan> {
        let mut plan = MatchPlan::default();
        plan.root = plan.alternation(tree, 0)?;
        Ok(plan)
    }

    fn number(&mut self, set: &CharacterSet) -> usize {
        let next = self.sets.len();
        let number = *self.numbers.entry(set.clone()).or_insert(next);
        if number == next {
            self.sets.push(set.clone());
        }
        number
    }

    fn push(
        &mut self,
        kind: MatchStepKind,
        language: Rc<RegularLanguage>,
        traits: StepTraits,
    ) -> Result<usize> {
        let size = language.size();
        self.size = self.size.saturating_add(size);
        if size > AUTOMATON_LIMIT || self.size > SIZE_LIMIT {
            return Err(too_complex());
        }
        let groups = match &kind {
            MatchStepKind::Span | MatchStepKind::BackReference { .. } => 0..0,
            MatchStepKind::Concat(first, second) => self.groups_of(&[*first, *second]),
            MatchStepKind::Alternate(parts) => self.groups_of(parts),
            MatchStepKind::Iterate { inner, .. } | MatchStepKind::Wrap(inner) => {
                self.groups_of(&[*inner])
            }
        };
        self.steps.push(MatchStep { kind, language, traits, group: None, groups });
        Ok(self.steps.len() - 1)
    }

    fn groups_of(&self, parts: &[usize]) -> std::ops::Range<usize> {
        let ranges = parts.iter().map(|part| &self.steps[*part].groups);
        ranges.filter(|range| !range.is_empty()).fold(0..0, |all, range| {
            if all.is_empty() {
                range.clone()
            } else {
                all.start.min(range.start)..all.end.max(range.end)
            }
        })
    }

    fn alternation(&mut self, tree: &RegexAlternation, depth: usize) -> Result<usize> {
        let mut parts = Vec::with_capacity(tree.branches.len());
        for branch in &tree.branches {
            parts.push(self.branch(branch, depth + 1)?);
        }
        if let [only] = parts[..] {
            return Ok(only);
        }
        let longest = Some(PreferredLength::Longest);
        let mut traits = StepTraits { prefers: longest, ..StepTraits::default() };
        for part in &parts {
            traits = traits.with(self.steps[*part].traits);
        }
        let languages = parts.iter().map(|part| self.steps[*part].language.clone()).collect();
        let language = Rc::new(RegularLanguage::Alternate(languages));
        let kind = if traits.is_structured() {
            MatchStepKind::Alternate(parts)
        } else {
            MatchStepKind::Span
        };
        self.push(kind, language, traits)
    }

    /// Plans a branch. Its first pieces without structure are one step; a piece with structure is
    /// a step of its own, and the rest of the branch another one.
    fn branch(&mut self, pieces: &[RegexPiece], depth: usize) -> Result<usize> {
        if depth > DEPTH_LIMIT {
            return Err(too_complex());
        }
        let (mut prefix, mut traits) = (Vec::new(), StepTraits::default());
        for (at, piece) in pieces.iter().enumerate() {
            let (atom, quantifier) = match piece {
                RegexPiece::Anchor(anchor) => {
                    prefix.push(self.anchor(*anchor));
                    continue;
                }
                RegexPiece::Look(look, inner) => {
                    prefix.push(self.lookaround(*look, inner, depth)?);
                    continue;
                }
                RegexPiece::Atom(atom, quantifier) => (atom, *quantifier),
            };
            let step = self.atom(atom, depth)?;
            if quantifier.most == Some(0) {
                prefix.push(Rc::new(RegularLanguage::Empty));
                continue;
            }
            let own = StepTraits { prefers: quantifier.prefers, ..StepTraits::default() };
            let joined = traits.with(own).with(self.steps[step].traits);
            if !joined.is_structured() {
                traits = joined;
                prefix.push(self.repeated(step, quantifier));
                continue;
            }
            let own = own.with(self.steps[step].traits);
            let is_reference = matches!(atom, RegexAtom::BackReference(_));
            let step = self.quantified(step, quantifier, is_reference)?;
            let rest = pieces.get(at + 1..).filter(|rest| !rest.is_empty());
            let rest = match rest {
                Some(rest) => Some(self.branch(rest, depth + 1)?),
                None => None,
            };
            return self.structured((prefix, traits), (step, own), rest);
        }
        self.push(MatchStepKind::Span, RegularLanguage::concat(prefix), traits)
    }

    /// Joins the first part of a branch, a step with structure, and the rest.
    fn structured(
        &mut self,
        (prefix, traits): (Vec<Rc<RegularLanguage>>, StepTraits),
        (step, own): (usize, StepTraits),
        rest: Option<usize>,
    ) -> Result<usize> {
        let tail = match rest {
            None => step,
            Some(rest) => {
                let is_span = |at: usize| matches!(self.steps[at].kind, MatchStepKind::Span);
                let joined = self.steps[step].traits.with(self.steps[rest].traits);
                // Two plain steps join if they differ from what precedes them only.
                let joins =
                    !prefix.is_empty() && is_span(step) && is_span(rest) && !joined.is_structured();
                let (kind, joined) = if joins {
                    (MatchStepKind::Span, joined)
                } else {
                    let all = own.with(self.steps[rest].traits);
                    (MatchStepKind::Concat(step, rest), all)
                };
                let parts = [step, rest].map(|part| self.steps[part].language.clone());
                self.push(kind, RegularLanguage::concat(parts.to_vec()), joined)?
            }
        };
        if prefix.is_empty() {
            return Ok(tail);
        }
        let first = self.push(MatchStepKind::Span, RegularLanguage::concat(prefix), traits)?;
        let joined = traits.with(self.steps[tail].traits);
        let parts = [first, tail].map(|part| self.steps[part].language.clone());
        self.push(
            MatchStepKind::Concat(first, tail),
            RegularLanguage::concat(parts.to_vec()),
            joined,
        )
    }

    fn repeated(&self, step: usize, quantifier: RegexQuantifier) -> Rc<RegularLanguage> {
        let prefers = quantifier.prefers.unwrap_or(PreferredLength::Longest);
        let language = &self.steps[step].language;
        RegularLanguage::repeat(language, quantifier.least, quantifier.most, prefers)
    }

    fn atom(&mut self, atom: &RegexAtom, depth: usize) -> Result<usize> {
        match atom {
            RegexAtom::Set(set) => {
                let language = Rc::new(RegularLanguage::Set(self.number(set)));
                self.push(MatchStepKind::Span, language, StepTraits::default())
            }
            RegexAtom::Group(None, inner) => self.alternation(inner, depth),
            RegexAtom::Group(Some(number), inner) => {
                let mut step = self.alternation(inner, depth)?;
                if self.steps[step].group.is_some() {
                    let (language, traits) =
                        (self.steps[step].language.clone(), self.steps[step].traits);
                    step = self.push(MatchStepKind::Wrap(step), language, traits)?;
                }
                let own = &mut self.steps[step];
                own.group = Some(*number);
                own.traits.has_groups = true;
                let below = if own.groups.is_empty() { *number + 1 } else { own.groups.end };
                own.groups = *number..below;
                self.captured.insert(*number, own.language.clone());
                Ok(step)
            }
            RegexAtom::BackReference(group) => {
                let language = self.captured.get(group).ok_or_else(too_complex)?.unconstrained();
                let traits = StepTraits { has_back_references: true, ..StepTraits::default() };
                let kind = MatchStepKind::BackReference { group: *group, least: 1, most: Some(1) };
                self.push(kind, language, traits)
            }
        }
    }

    /// Applies a quantifier to a step with structure, or to one that clashes with others.
    fn quantified(
        &mut self,
        step: usize,
        quantifier: RegexQuantifier,
        is_reference: bool,
    ) -> Result<usize> {
        let RegexQuantifier { least, most, prefers } = quantifier;
        let inner = self.steps[step].traits;
        let own = StepTraits { prefers, ..StepTraits::default() };
        let traits = own.with(inner);
        let language = self.repeated(step, quantifier);
        if let MatchStepKind::BackReference { group, .. } = self.steps[step].kind
            && is_reference
        {
            let kind = MatchStepKind::BackReference { group, least, most };
            return self.push(kind, language, traits);
        }
        let agrees = prefers.is_none()
            || (inner.prefers.is_none() && !inner.is_mixed)
            || (inner.prefers == prefers && !inner.is_mixed);
        if (least, most) == (ONCE.least, ONCE.most) && agrees {
            return Ok(step);
        }
        if !inner.has_groups && !inner.has_back_references {
            return self.push(MatchStepKind::Span, language, traits);
        }
        if least > 0 && !inner.has_back_references {
            // Only the last repetition determines the groups.
            let before =
                RegexQuantifier { least: least - 1, most: most.map(|most| most - 1), prefers };
            let before = self.repeated(step, before);
            let plain = StepTraits { prefers: traits.prefers, ..StepTraits::default() };
            let first = self.push(MatchStepKind::Span, before, plain)?;
            return self.push(MatchStepKind::Concat(first, step), language, traits);
        }
        self.push(MatchStepKind::Iterate { inner: step, least, most }, language, traits)
    }

    fn anchor(&mut self, anchor: RegexAnchor) -> Rc<RegularLanguage> {
        match anchor {
            RegexAnchor::TextStart | RegexAnchor::TextEnd => {}
            RegexAnchor::LineStart | RegexAnchor::LineEnd => {
                self.newline = Some(self.number(&CharacterSet::of('\n')));
            }
            _ => self.words = Some(self.number(word())),
        }
        Rc::new(RegularLanguage::Anchor(anchor))
    }

    fn lookaround(
        &mut self,
        look: Lookaround,
        inner: &RegexAlternation,
        depth: usize,
    ) -> Result<Rc<RegularLanguage>> {
        let step = self.alternation(inner, depth)?;
        let language = self.steps[step].language.clone();
        self.looks.push(LookaroundPlan { look, language });
        if self.looks.len() > LOOK_LIMIT {
            return Err(too_complex());
        }
        Ok(Rc::new(RegularLanguage::Look(self.looks.len() - 1)))
    }
}
