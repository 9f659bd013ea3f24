//! Regular expressions with PostgreSQL's meaning.
//!
//! `syntax` parses an expression, `plan` makes steps of it, `automaton` has the automata of the
//! steps. A match is found in three stages, each exact:
//!
//! 1. The leftmost place where a match begins: by the crate `regex` if it can express the
//!    language, otherwise by an automaton that reads backward.
//! 2. The end: the longest or the shortest match from there, as the whole expression prefers.
//! 3. The spans of the groups, by `dissection`: only if the caller wants them, or if there are
//!    back references. Their automata accept too much, so that a dissection may fail. Then the
//!    next end and the next start are tried.
//!
//! Invariants:
//! REGEX-1: A match without back references takes time in proportion to the text for each step of
//! the plan and each repetition of an iterated step. All other work ends with an error at a limit
//! (by the test `hostile_patterns_end`).
//! REGEX-2: The matches are those of the rules of PostgreSQL's manual, applied step by step (by
//! the test `matches_are_those_of_the_rules`).

mod automata;
mod automaton;
mod dissection;
mod language;
mod places;
mod plan;
mod syntax;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use automata::{Automata, AutomatonUse, ReadText, WantedEnd};
use automaton::alphabet::Alphabet;
use dissection::Dissection;
pub(in crate::expression) use dissection::TextSpan;
use places::PlaceSet;
use plan::MatchPlan;
pub(in crate::expression) use syntax::options::{RegexGrammar, RegexOptions};
use syntax::pieces::PreferredLength;
use syntax::too_complex;

use crate::error::Result;

/// Maximum bytes of a compiled search by the crate `regex`.
const SEARCH_LIMIT: usize = 4 << 20;
/// Maximum ranges of characters of an expression with such a search: it takes milliseconds to
/// compile a class of letters.
const SEARCH_RANGES: usize = 64;

/// A compiled regular expression.
pub(in crate::expression) struct RegularExpression {
    plan: MatchPlan,
    alphabet: Alphabet,
    groups: usize,
    ignores_case: bool,
    is_anchored: bool,
    has_one_end: bool,
    /// Finds the places where matches begin.
    search: Option<regex::Regex>,
    automata: RefCell<Automata>,
}

/// The matches of an expression in a text.
pub(in crate::expression) struct RegexMatches<'r, 't> {
    regex: &'r RegularExpression,
    text: ReadText<'t>,
    has_looks: bool,
    /// The places where a match may begin, if the expression has no search.
    candidates: Option<PlaceSet>,
    /// The spans of the last match: of the whole match, then of the groups.
    spans: Vec<Option<TextSpan>>,
}

impl RegularExpression {
    pub fn new(pattern: &str, options: RegexOptions) -> Result<RegularExpression> {
        let parsed = syntax::parser::parse(pattern, options)?;
        let plan = MatchPlan::of(&parsed.tree)?;
        let alphabet = Alphabet::new(&plan.sets, plan.newline, plan.words);
        let alphabet = alphabet.ok_or_else(too_complex)?;
        let root = &plan.steps[plan.root];
        let prefers_shortest = root.traits.prefers == Some(PreferredLength::Shortest);
        let is_plain = !root.traits.has_back_references && root.language.is_searchable();
        let mut search = None;
        let ranges: usize = plan.sets.iter().map(|set| set.ranges().len()).sum();
        if is_plain && ranges <= SEARCH_RANGES {
            let mut text = String::new();
            root.language.write_pattern(&plan.sets, &mut text);
            // Without a search the automata find the matches.
            search = regex::RegexBuilder::new(&text).size_limit(SEARCH_LIMIT).build().ok();
        }
        Ok(RegularExpression {
            alphabet,
            groups: parsed.groups,
            ignores_case: parsed.ignores_case,
            is_anchored: root.language.is_anchored(),
            has_one_end: search.is_some() && root.language.has_one_end(prefers_shortest),
            search,
            automata: RefCell::default(),
            plan,
        })
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Returns whether a text has a match.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        if let Some(search) = &self.search {
            return Ok(search.is_match(text));
        }
        let mut matches = self.matches(text);
        if self.plan.steps[self.plan.root].traits.has_back_references {
            return Ok(matches.find_at(0)?.is_some());
        }
        matches.find_looks()?;
        self.automata.borrow_mut().finds(&self.plan, &self.alphabet, &mut matches.text)
    }

    /// Begins to find matches in a text.
    pub fn matches<'r, 't>(&'r self, text: &'t str) -> RegexMatches<'r, 't> {
        RegexMatches {
            regex: self,
            text: ReadText::new(text),
            has_looks: false,
            candidates: None,
            spans: Vec::new(),
        }
    }
}

impl RegexMatches<'_, '_> {
    fn find_looks(&mut self) -> Result<()> {
        let RegularExpression { plan, alphabet, automata, .. } = self.regex;
        if !self.has_looks && !plan.looks.is_empty() {
            automata.borrow_mut().find_looks(plan, alphabet, &mut self.text)?;
        }
        self.has_looks = true;
        Ok(())
    }

    /// Returns the first place from `at` on where a match may begin, and the end of the match if
    /// the search knows it.
    fn candidate(&mut self, at: usize) -> Result<Option<(usize, Option<usize>)>> {
        let regex = self.regex;
        if regex.is_anchored {
            return Ok((at == 0).then_some((0, None)));
        }
        if let Some(search) = &regex.search {
            let found = search.find_at(self.text.text, at);
            let end = |end| regex.has_one_end.then_some(end);
            return Ok(found.map(|found| (found.start(), end(found.end()))));
        }
        if self.candidates.is_none() {
            let around = (&regex.plan, &regex.alphabet);
            let wanted = (regex.plan.root, AutomatonUse::Candidates);
            let all = (0, self.text.text.len());
            let mut automata = regex.automata.borrow_mut();
            self.candidates = Some(automata.starts(around, &mut self.text, wanted, all)?);
        }
        Ok(self.candidates.as_ref().and_then(|places| places.next(at)).map(|place| (place, None)))
    }

    /// Finds the first match that begins at byte `at` or after it. Returns its span.
    pub fn find_at(&mut self, at: usize) -> Result<Option<TextSpan>> {
        self.find_looks()?;
        let mut at = at;
        while at <= self.text.text.len() {
            let Some((start, end)) = self.candidate(at)? else { return Ok(None) };
            let found = match end {
                Some(end) => Some(end),
                None => self.end_of_match(start)?,
            };
            if let Some(end) = found {
                return Ok(Some((start, end)));
            }
            at = start + self.text.text[start..].chars().next().map_or(1, char::len_utf8);
        }
        Ok(None)
    }

    /// Finds the first match that begins at byte `at` or after it. Returns the spans of the whole
    /// match and of the groups.
    pub fn captures_at(&mut self, at: usize) -> Result<Option<&[Option<TextSpan>]>> {
        let Some(span) = self.find_at(at)? else { return Ok(None) };
        let root = self.regex.plan.root;
        if !self.regex.plan.steps[root].traits.has_back_references {
            self.spans.clear();
            self.spans.resize(self.regex.groups + 1, None);
            if self.regex.groups > 0 {
                self.dissect(span)?;
            }
        }
        self.spans[0] = Some(span);
        Ok(Some(&self.spans))
    }

    /// Returns the end of the match that begins at `start`.
    fn end_of_match(&mut self, start: usize) -> Result<Option<usize>> {
        let RegularExpression { plan, alphabet, automata, .. } = self.regex;
        let traits = plan.steps[plan.root].traits;
        let limit = self.text.text.len();
        let is_first = traits.prefers == Some(PreferredLength::Shortest);
        let mut wanted = WantedEnd { start, least: start, limit, is_first, ends: None };
        loop {
            let around = (plan, alphabet);
            let found = automata.borrow_mut().end(around, &mut self.text, plan.root, &wanted)?;
            let Some(end) = found else { return Ok(None) };
            if !traits.has_back_references {
                return Ok(Some(end));
            }
            self.spans.clear();
            self.spans.resize(self.regex.groups + 1, None);
            if self.dissect((start, end))? {
                return Ok(Some(end));
            }
            let text = self.text.text;
            if is_first {
                wanted.least = end + text[end..].chars().next().map_or(1, char::len_utf8);
            } else {
                wanted.limit = match text[start..end].chars().next_back() {
                    Some(last) => end - last.len_utf8(),
                    None => return Ok(None),
                };
            }
            if wanted.least > wanted.limit {
                return Ok(None);
            }
        }
    }

    fn dissect(&mut self, span: TextSpan) -> Result<bool> {
        let RegularExpression { plan, alphabet, automata, ignores_case, .. } = self.regex;
        let mut dissection = Dissection {
            plan,
            alphabet,
            automata: &mut automata.borrow_mut(),
            text: &mut self.text,
            groups: &mut self.spans,
            ignores_case: *ignores_case,
        };
        dissection.dissect(plan.root, span)
    }
}
