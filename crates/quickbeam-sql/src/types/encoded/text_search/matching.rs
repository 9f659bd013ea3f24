//! Whether a query matches a vector.
//!
//! Inside a phrase an operand has the places where it matches, or those where it does not. A word
//! without positions makes the answer uncertain there.

use super::{QueryItem, QueryWord, TextQuery, TextVectorRef};

/// The answer to a part of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    No,
    Yes,
    Maybe,
}

use Answer::{Maybe, No, Yes};

/// The places of a part of a phrase.
#[derive(Clone, Debug)]
pub(super) struct MatchPlaces {
    answer: Answer,
    /// The last places of the matches.
    places: Vec<i32>,
    /// Whether it matches at all other places instead.
    is_negated: bool,
    /// The places of a match before its last.
    width: i32,
}

impl MatchPlaces {
    /// Returns the places of a word that stands there.
    pub(super) fn at(places: Vec<i32>) -> MatchPlaces {
        MatchPlaces { places, ..MatchPlaces::of(No) }.answered()
    }

    fn of(answer: Answer) -> MatchPlaces {
        MatchPlaces { answer, places: Vec::new(), is_negated: false, width: 0 }
    }
}

/// Which places of two lists are in their result.
#[derive(Clone, Copy)]
struct Emitted {
    both: bool,
    left: bool,
    right: bool,
}

const BOTH: Emitted = Emitted { both: true, left: false, right: false };
const LEFT: Emitted = Emitted { both: false, left: true, right: false };
const RIGHT: Emitted = Emitted { both: false, left: false, right: true };
const ANY: Emitted = Emitted { both: true, left: true, right: true };

/// Returns whether a query matches the words of a document.
#[must_use]
pub fn is_match(vector: &TextVectorRef<'_>, query: &TextQuery<'_>) -> bool {
    is_satisfied(query, |_, word, need| match need {
        PlacesNeed::Answer => {
            MatchPlaces::of(if has_word(vector, word) { Answer::Yes } else { Answer::No })
        }
        PlacesNeed::Places => places_of(vector, word),
    })
}

/// Returns whether a query matches words of which `places` returns the places, by the number of the
/// item that they are.
#[must_use]
pub fn is_match_of_items(query: &TextQuery<'_>, places: impl Fn(usize) -> Vec<i32>) -> bool {
    is_satisfied(query, |item, _, _| MatchPlaces::at(places(item)))
}

/// What an operator needs to know of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlacesNeed {
    /// Whether it matches.
    Answer,
    /// Where it matches.
    Places,
}

/// Returns whether a query is satisfied. `operand` answers for a word, by the number of its item.
pub(super) fn is_satisfied(
    query: &TextQuery<'_>,
    mut operand: impl FnMut(usize, &QueryWord<'_>, PlacesNeed) -> MatchPlaces,
) -> bool {
    let is_in_phrase = items_in_phrases(query);
    let mut stack: Vec<MatchPlaces> = Vec::new();
    for (at, (item, is_in_phrase)) in query.items.iter().zip(is_in_phrase).enumerate() {
        if let QueryItem::Word(word) = item {
            let need = if is_in_phrase { PlacesNeed::Places } else { PlacesNeed::Answer };
            stack.push(operand(at, word, need));
            continue;
        }
        let Some(right) = stack.pop() else { return false };
        if *item == QueryItem::Not {
            let answer = || MatchPlaces::of(not(right.answer));
            stack.push(if is_in_phrase { negated(right) } else { answer() });
            continue;
        }
        let Some(left) = stack.pop() else { return false };
        stack.push(match item {
            QueryItem::Phrase(_) if !is_in_phrase => {
                // An uncertain match is none.
                let found = combined(item, left, right).answer == Yes;
                MatchPlaces::of(if found { Yes } else { No })
            }
            _ if is_in_phrase => combined(item, left, right),
            QueryItem::And => MatchPlaces::of(and(left.answer, right.answer)),
            _ => MatchPlaces::of(not(and(not(left.answer), not(right.answer)))),
        });
    }
    stack.pop().is_some_and(|result| result.answer != No)
}

/// Returns of each item whether it is an operand of a phrase, or within one.
fn items_in_phrases(query: &TextQuery<'_>) -> Vec<bool> {
    let mut flags = vec![false; query.items.len()];
    let mut pending = vec![false];
    for (at, item) in query.items.iter().enumerate().rev() {
        let is_in_phrase = pending.pop().unwrap_or(false);
        flags[at] = is_in_phrase;
        let is_within = is_in_phrase || matches!(item, QueryItem::Phrase(_));
        pending.extend(std::iter::repeat_n(is_within, item.operands()));
    }
    flags
}

fn not(answer: Answer) -> Answer {
    match answer {
        No => Yes,
        Yes => No,
        Maybe => Maybe,
    }
}

fn and(left: Answer, right: Answer) -> Answer {
    match (left, right) {
        (No, _) | (_, No) => No,
        (Yes, Yes) => Yes,
        _ => Maybe,
    }
}

/// Returns the words of the vector that a word of a query means.
pub(super) fn candidates<'v, 'a>(
    vector: &'v TextVectorRef<'a>,
    word: &'v QueryWord<'_>,
) -> impl Iterator<Item = &'v super::TextLexemeRef<'a>> {
    let (start, is_found) = match vector.search(&word.word) {
        Ok(at) => (at, true),
        Err(at) => (at, false),
    };
    let is_meant = move |at: usize, found: &str| {
        at == 0 && is_found || word.is_prefix && found.starts_with(&*word.word)
    };
    let rest = vector.lexemes.get(start..).unwrap_or_default().iter().enumerate();
    rest.take_while(move |(at, found)| is_meant(*at, found.word)).map(|(_, found)| found)
}

pub(super) fn has_weight(word: &QueryWord<'_>, weight: u8) -> bool {
    word.weights == 0 || word.weights >> weight & 1 == 1
}

fn has_word(vector: &TextVectorRef<'_>, word: &QueryWord<'_>) -> bool {
    candidates(vector, word).any(|found| {
        // The weights of a word without positions are not known.
        !found.has_positions() || found.positions().any(|it| has_weight(word, it.weight))
    })
}

fn places_of(vector: &TextVectorRef<'_>, word: &QueryWord<'_>) -> MatchPlaces {
    let mut places = Vec::new();
    for found in candidates(vector, word) {
        if !found.has_positions() {
            return MatchPlaces::of(Maybe);
        }
        let wanted = found.positions().filter(|it| has_weight(word, it.weight));
        places.extend(wanted.map(|position| i32::from(position.place)));
    }
    places.sort_unstable();
    places.dedup();
    MatchPlaces::at(places)
}

impl MatchPlaces {
    /// Sets the answer of places.
    fn answered(mut self) -> MatchPlaces {
        self.answer = if self.places.is_empty() && !self.is_negated { No } else { Yes };
        self
    }
}

fn negated(operand: MatchPlaces) -> MatchPlaces {
    match operand.answer {
        No => MatchPlaces { is_negated: true, ..MatchPlaces::of(Yes) },
        Maybe => MatchPlaces::of(Maybe),
        Yes if !operand.places.is_empty() => {
            MatchPlaces { is_negated: !operand.is_negated, ..operand }
        }
        Yes => MatchPlaces { is_negated: false, answer: No, ..operand },
    }
}

/// Combines the operands of an operator in a phrase.
fn combined(item: &QueryItem<'_>, mut left: MatchPlaces, mut right: MatchPlaces) -> MatchPlaces {
    let is_or = *item == QueryItem::Or;
    let is_none = |side: &MatchPlaces| side.answer == No;
    if is_or && is_none(&left) && is_none(&right) || !is_or && (is_none(&left) || is_none(&right)) {
        return MatchPlaces::of(No);
    }
    if left.answer == Maybe || right.answer == Maybe {
        return MatchPlaces::of(Maybe);
    }
    for side in [&mut left, &mut right].into_iter().filter(|side| side.answer == No) {
        side.width = 0;
    }
    let (left_shift, right_shift, width) = match item {
        QueryItem::Phrase(distance) => {
            let distance = i32::from(*distance);
            (distance + right.width, 0, distance + left.width + right.width)
        }
        _ => {
            let width = left.width.max(right.width);
            (width - left.width, width - right.width, width)
        }
    };
    let shifted = |side: &MatchPlaces, by: i32| -> Vec<i32> {
        side.places.iter().map(|place| place + by).collect()
    };
    let (a, b) = (shifted(&left, left_shift), shifted(&right, right_shift));
    let (emitted, is_negated) = match (is_or, left.is_negated, right.is_negated) {
        (false, true, true) => (ANY, true),
        (false, true, false) => (RIGHT, false),
        (false, false, true) => (LEFT, false),
        (false, false, false) => (BOTH, false),
        (true, true, true) => (BOTH, true),
        (true, true, false) => (LEFT, true),
        (true, false, true) => (RIGHT, true),
        (true, false, false) => (ANY, false),
    };
    let places = merged(&a, &b, emitted);
    MatchPlaces { answer: No, places, is_negated, width }.answered()
}

/// Merges two sorted lists of places.
fn merged(left: &[i32], right: &[i32], emitted: Emitted) -> Vec<i32> {
    let mut out = Vec::new();
    let (mut at_left, mut at_right) = (0, 0);
    loop {
        let (place, is_emitted) = match (left.get(at_left), right.get(at_right)) {
            (None, None) => return out,
            (Some(a), Some(b)) if a == b => (*a, emitted.both),
            (Some(a), Some(b)) if a < b => (*a, emitted.left),
            (Some(a), None) => (*a, emitted.left),
            (_, Some(b)) => (*b, emitted.right),
        };
        if is_emitted && place > 0 {
            out.push(place);
        }
        at_left += usize::from(left.get(at_left) == Some(&place));
        at_right += usize::from(right.get(at_right) == Some(&place));
    }
}
