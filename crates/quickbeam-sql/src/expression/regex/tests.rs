//! Tests: PostgreSQL's answers, and a matcher that follows the rules by exhaustive search.

use std::collections::BTreeSet;

use quickbeam_testing::Random;

use super::language::RegularLanguage;
use super::plan::{MatchPlan, MatchStepKind};
use super::syntax::classes::word;
use super::syntax::pieces::{PreferredLength, RegexAnchor};
use super::{RegexOptions, RegularExpression, TextSpan, syntax};

/// Matches by trying everything: the reference.
struct Reference<'t> {
    plan: MatchPlan,
    text: &'t str,
    ignores_case: bool,
    groups: Vec<Option<TextSpan>>,
}

impl<'t> Reference<'t> {
    fn new(pattern: &str, options: RegexOptions, text: &'t str) -> Option<Reference<'t>> {
        let parsed = syntax::parser::parse(pattern, options).ok()?;
        let plan = MatchPlan::of(&parsed.tree).ok()?;
        let groups = vec![None; parsed.groups + 1];
        Some(Reference { plan, text, ignores_case: parsed.ignores_case, groups })
    }

    fn anchor_holds(&self, anchor: RegexAnchor, at: usize) -> bool {
        let before = self.text[..at].chars().next_back();
        let after = self.text[at..].chars().next();
        let is_word = |c: Option<char>| c.is_some_and(|c| word().contains(c));
        let ends_line = |c: Option<char>| c.is_none_or(|c| c == '\n');
        match anchor {
            RegexAnchor::TextStart => before.is_none(),
            RegexAnchor::TextEnd => after.is_none(),
            RegexAnchor::LineStart => ends_line(before),
            RegexAnchor::LineEnd => ends_line(after),
            RegexAnchor::WordStart => !is_word(before) && is_word(after),
            RegexAnchor::WordEnd => is_word(before) && !is_word(after),
            RegexAnchor::WordBoundary => is_word(before) != is_word(after),
            RegexAnchor::NoWordBoundary => is_word(before) == is_word(after),
        }
    }

    /// Returns all ends of a language that begins at a place.
    fn ends(&self, language: &RegularLanguage, start: usize) -> BTreeSet<usize> {
        let at = |holds: bool| if holds { BTreeSet::from([start]) } else { BTreeSet::new() };
        match language {
            RegularLanguage::Empty => at(true),
            RegularLanguage::Set(set) => match self.text[start..].chars().next() {
                Some(c) if self.plan.sets[*set].contains(c) => {
                    BTreeSet::from([start + c.len_utf8()])
                }
                _ => BTreeSet::new(),
            },
            RegularLanguage::Anchor(anchor) => at(self.anchor_holds(*anchor, start)),
            RegularLanguage::Look(number) => {
                let it = &self.plan.looks[*number];
                let is_found = if it.look.is_behind {
                    let mut starts = (0..=start).filter(|from| self.text.is_char_boundary(*from));
                    starts.any(|from| self.ends(&it.language, from).contains(&start))
                } else {
                    !self.ends(&it.language, start).is_empty()
                };
                at(is_found != it.look.is_negative)
            }
            RegularLanguage::Concat(parts) => parts.iter().fold(at(true), |starts, part| {
                starts.into_iter().flat_map(|from| self.ends(part, from)).collect()
            }),
            RegularLanguage::Alternate(parts) => {
                parts.iter().flat_map(|part| self.ends(part, start)).collect()
            }
            RegularLanguage::Repeat { inner, least, most, .. } => {
                // More repetitions than characters reach no further ends.
                let bound = least + self.text.len() as u32 + 1;
                let (mut all, mut current) = (BTreeSet::new(), at(true));
                for count in 0..=most.map_or(bound, |most| most.min(bound)) {
                    if count >= *least {
                        all.extend(current.iter().copied());
                    }
                    current = current.into_iter().flat_map(|from| self.ends(inner, from)).collect();
                }
                all
            }
        }
    }

    fn matches(&self, step: usize, (start, end): TextSpan) -> bool {
        self.ends(&self.plan.steps[step].language, start).contains(&end)
    }

    /// Returns the ends of a step in the order of its preference.
    fn preferred_ends(&self, step: usize, start: usize, limit: usize) -> Vec<usize> {
        let step = &self.plan.steps[step];
        let ends = self.ends(&step.language, start).into_iter().filter(|end| *end <= limit);
        match step.traits.prefers {
            Some(PreferredLength::Shortest) => ends.collect(),
            _ => ends.rev().collect(),
        }
    }

    fn clear(&mut self, step: usize) {
        let groups = self.plan.steps[step].groups.clone();
        self.groups[groups].fill(None);
    }

    fn dissect(&mut self, step: usize, span: TextSpan) -> bool {
        let (start, end) = span;
        let prefers_shortest = |plan: &MatchPlan, step: usize| {
            plan.steps[step].traits.prefers == Some(PreferredLength::Shortest)
        };
        let succeeds = match &self.plan.steps[step].kind {
            MatchStepKind::Span => true,
            MatchStepKind::BackReference { group, least, most } => {
                self.repeats(*group, (*least, *most), span)
            }
            MatchStepKind::Concat(first, second) => {
                let (first, second) = (*first, *second);
                self.preferred_ends(first, start, end).into_iter().any(|middle| {
                    self.clear(first);
                    self.clear(second);
                    self.matches(second, (middle, end))
                        && self.dissect(first, (start, middle))
                        && self.dissect(second, (middle, end))
                })
            }
            MatchStepKind::Alternate(parts) => parts.clone().into_iter().any(|part| {
                let succeeds = self.matches(part, span) && self.dissect(part, span);
                if !succeeds {
                    self.clear(part);
                }
                succeeds
            }),
            MatchStepKind::Iterate { inner, least, most } => {
                let (inner, least) = (*inner, *least as usize);
                let most = most.map_or(usize::MAX, |most| most as usize).max(1);
                let is_lazy = prefers_shortest(&self.plan, inner);
                let may_be_empty = least == 0 && start == end;
                if may_be_empty && is_lazy
                    || self.repeat(inner, (least.max(1), most), &mut vec![start], end)
                {
                    true
                } else {
                    self.clear(inner);
                    may_be_empty
                }
            }
            MatchStepKind::Wrap(inner) => self.dissect(*inner, span),
        };
        if succeeds && let Some(group) = self.plan.steps[step].group {
            self.groups[group] = Some(span);
        }
        succeeds
    }

    fn repeat(
        &mut self,
        inner: usize,
        (least, most): (usize, usize),
        places: &mut Vec<usize>,
        end: usize,
    ) -> bool {
        let number = places.len();
        let start = places[number - 1];
        if number > most {
            return false;
        }
        let is_lazy = self.plan.steps[inner].traits.prefers == Some(PreferredLength::Shortest);
        for place in self.preferred_ends(inner, start, end) {
            // Empty repetitions only where the number of repetitions needs them.
            let characters = self.text[start..end].chars().count();
            let is_needed = number < least && least - number >= characters;
            if place == start && place != end && !is_needed {
                continue;
            }
            if is_lazy && number >= most && place != end {
                continue;
            }
            places.push(place);
            let succeeds = if place == end {
                number >= least
                    && (1..places.len()).all(|at| {
                        self.clear(inner);
                        self.dissect(inner, (places[at - 1], places[at]))
                    })
            } else {
                self.repeat(inner, (least, most), places, end)
            };
            if succeeds {
                return true;
            }
            places.pop();
        }
        false
    }

    fn repeats(
        &self,
        group: usize,
        (least, most): (u32, Option<u32>),
        (start, end): TextSpan,
    ) -> bool {
        let Some((from, to)) = self.groups[group] else { return false };
        if from == to || start == end {
            return start == end && (from == to || least == 0);
        }
        let same = |text: &str| if self.ignores_case { text.to_lowercase() } else { text.into() };
        let (captured, span) = (same(&self.text[from..to]), same(&self.text[start..end]));
        let count = span.len() / captured.len();
        captured.repeat(count) == span
            && count >= least as usize
            && most.is_none_or(|most| count <= most as usize)
    }

    fn find(&mut self, from: usize) -> Option<Vec<Option<TextSpan>>> {
        let root = self.plan.root;
        for start in (from..=self.text.len()).filter(|at| self.text.is_char_boundary(*at)) {
            for end in self.preferred_ends(root, start, self.text.len()) {
                self.groups.fill(None);
                if self.dissect(root, (start, end)) {
                    self.groups[0] = Some((start, end));
                    return Some(self.groups.clone());
                }
            }
        }
        None
    }
}

/// Whether a part of an expression is in a lookaround constraint, where no group captures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Placing {
    Outside,
    Lookaround,
}

/// Draws an expression over three letters.
struct Draw<'r> {
    random: &'r mut Random,
    groups: usize,
    closed: Vec<usize>,
}

impl Draw<'_> {
    fn quantifier(&mut self) -> String {
        if self.random.chance(55) {
            return String::new();
        }
        let all =
            ["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{2,}", "{0}", "{1,1}", "{0,3}", "{1,3}"];
        let lazy = if self.random.chance(35) { "?" } else { "" };
        format!("{}{lazy}", self.random.pick(&all))
    }

    fn alternation(&mut self, depth: usize, place: Placing) -> String {
        let branches = if self.random.chance(60) { 1 } else { 2 };
        let branches: Vec<String> = (0..branches)
            .map(|_| (0..self.random.below(4)).map(|_| self.piece(depth, place)).collect())
            .collect();
        branches.join("|")
    }

    fn piece(&mut self, depth: usize, place: Placing) -> String {
        match self.random.below(100) {
            0..4 => self.random.pick(&["^", "$", r"\m", r"\M", r"\y", r"\Y"]).to_owned(),
            4..10 if depth > 0 => {
                let look = self.random.pick(&["(?=", "(?!", "(?<=", "(?<!"]);
                format!("{look}{})", self.alternation(depth - 1, Placing::Lookaround))
            }
            10..22 if place == Placing::Outside && !self.closed.is_empty() => {
                format!("\\{}{}", self.random.pick(&self.closed), self.quantifier())
            }
            22..55 if depth > 0 => {
                let captures = place == Placing::Outside && self.random.chance(70);
                self.groups += usize::from(captures);
                let number = self.groups;
                let inner = self.alternation(depth - 1, place);
                let open = if captures { "(" } else { "(?:" };
                if captures {
                    self.closed.push(number);
                }
                format!("{open}{inner}){}", self.quantifier())
            }
            _ => {
                let atom = self.random.pick(&["a", "b", "c", "a", "b", ".", "[ab]", "[^a]", "é"]);
                format!("{atom}{}", self.quantifier())
            }
        }
    }
}

#[test]
fn matches_are_those_of_the_rules() {
    let rounds = quickbeam_testing::number_in("QUICKBEAM_REGEX_ROUNDS").unwrap_or(400);
    let mut compared = 0;
    for round in 0..rounds {
        let mut random = Random::part(11, round);
        let text: String =
            (0..random.below(7)).map(|_| random.pick(&['a', 'b', 'c', 'A', ' ', 'é'])).collect();
        let options = RegexOptions { ignores_case: random.chance(30), ..RegexOptions::default() };
        let mut draw = Draw { random: &mut random, groups: 0, closed: Vec::new() };
        let pattern = draw.alternation(2, Placing::Outside);
        let context = format!("round {round}: {pattern} on {text:?}, {options:?}");
        let Some(mut reference) = Reference::new(&pattern, options, &text) else {
            assert!(RegularExpression::new(&pattern, options).is_err(), "{context}");
            continue;
        };
        let regex = RegularExpression::new(&pattern, options).expect(&context);
        let mut matches = regex.matches(&text);
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let expected = reference.find(at);
            if at == 0 {
                let is_match = regex.is_match(&text).expect(&context);
                assert_eq!(is_match, expected.is_some(), "{context}");
            }
            let span = matches.find_at(at).expect(&context);
            assert_eq!(span, expected.as_ref().and_then(|spans| spans[0]), "{context}, from {at}");
            let found = matches.captures_at(at).expect(&context);
            assert_eq!(found, expected.as_deref(), "{context}, from {at}");
            compared += 1;
        }
    }
    assert!(compared > rounds, "only {compared} comparisons");
}

/// Returns all matches of a text, as `regexp_matches` with the option `g` returns them.
fn all_matches(pattern: &str, flags: &str, text: &str) -> String {
    let run = || {
        let regex = RegularExpression::new(pattern, RegexOptions::parse(flags)?)?;
        let mut matches = regex.matches(text);
        let (mut out, mut at) = (String::new(), 0);
        while at <= text.len()
            && let Some(spans) = matches.captures_at(at)?
        {
            let first = usize::from(regex.groups() > 0);
            let groups = spans[first..].iter().map(|span| match span {
                Some((start, end)) => format!("<{}>", &text[*start..*end]),
                None => String::from("NULL"),
            });
            out.push_str(&groups.collect::<Vec<_>>().join(","));
            out.push(';');
            let (start, end) = spans[0].unwrap_or_default();
            let next = text[end..].chars().next().map_or(1, char::len_utf8);
            at = if end > start { end } else { end + next };
        }
        Ok(out)
    };
    run().unwrap_or_else(|error: crate::error::SqlError| format!("ERR {}", error.message()))
}

#[test]
fn answers_are_those_of_postgresql() {
    let answers = include_str!("../../../tests/answers/regular_expressions.tsv");
    for line in answers.lines() {
        let fields: Vec<String> =
            line.split('\t').map(|field| field.replace("\\n", "\n")).collect();
        let [pattern, flags, text, expected] = &fields[..] else { panic!("four fields: {line}") };
        let pattern = pattern.replace('\n', "\\n");
        assert_eq!(all_matches(&pattern, flags, text), *expected, "{line}");
    }
}

#[test]
fn hostile_patterns_end() {
    let long = "a".repeat(20_000);
    // Linear for a finite automaton, exponential for a backtracking matcher.
    for pattern in ["(a*)*b", "(a|aa)+$", "(a?){50}a{50}b", "(a|a)*?b", "((a*)*)*c"] {
        let regex = RegularExpression::new(pattern, RegexOptions::default()).expect(pattern);
        let mut matches = regex.matches(&long);
        matches.captures_at(0).expect(pattern);
    }
    // Back references have a bound on their work.
    let half = "a".repeat(301);
    let text = format!("{half}c{half}b");
    for pattern in [r"(a+)+\1+c\1\1b", r"^(a*)(a*)(a*)\1\2\3c.*b$", r"^((a*)\2)*c"] {
        let regex = RegularExpression::new(pattern, RegexOptions::default()).expect(pattern);
        let error = regex.matches(&text).captures_at(0).expect_err(pattern);
        assert_eq!(error.code(), "2201B", "{pattern}");
    }
    // Expressions that would take too much memory or stack are refused.
    let nested = format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000));
    let many = r"(a)\1".repeat(2_000);
    let sets = r"\w".repeat(20_000);
    for pattern in ["((a{255}){255}){255}", &nested, &many, &sets, &r"(\y.)".repeat(3_000)] {
        let result = RegularExpression::new(pattern, RegexOptions::default());
        let error = result.err().expect("an error");
        assert_eq!(error.code(), "2201B");
    }
}
