//! Headlines: parts of a text with the words of a query marked (`ts_headline`).
//!
//! The choice of the parts follows `mark_hl_words()` and `mark_hl_fragments()` of PostgreSQL 15. A
//! *cover* is a shortest run of tokens that satisfies the query. Without fragments, the headline is
//! the best cover, made longer or shorter. With them, it is the covers with the most words of the
//! query.

use super::tokens::TokenKind;
use super::{Configuration, Tokens};
use crate::types::encoded::text_search::{
    MAX_PLACE, MAX_WORD, QueryItem, QueryWord, TextQuery, is_match_of_items,
};

/// What a headline is to be like.
#[derive(Clone, Debug)]
pub struct HeadlineOptions {
    /// `MaxWords`
    pub max_words: i32,
    /// `MinWords`
    pub min_words: i32,
    /// `ShortWord`: a headline does not end with words of at most this length in bytes.
    pub short_word: i32,
    /// `MaxFragments`; 0 for one part of the text.
    pub max_fragments: i32,
    /// `HighlightAll`: the headline is the whole text.
    pub highlights_all: bool,
    /// `StartSel`
    pub start: String,
    /// `StopSel`
    pub stop: String,
    /// `FragmentDelimiter`
    pub delimiter: String,
}

impl Default for HeadlineOptions {
    fn default() -> HeadlineOptions {
        HeadlineOptions {
            max_words: 35,
            min_words: 15,
            short_word: 3,
            max_fragments: 0,
            highlights_all: false,
            start: "<b>".into(),
            stop: "</b>".into(),
            delimiter: " ... ".into(),
        }
    }
}

/// A token of the text.
#[derive(Clone, Copy, Debug)]
struct HeadlineWord<'t> {
    kind: TokenKind,
    text: &'t str,
    place: i32,
    /// The number of an item of the query that is this word.
    item: Option<usize>,
    /// Whether it stands for the token before it, which is another item of the query, too.
    is_repeated: bool,
    /// How it is written; `None` if it is not part of the headline.
    shown: Option<TokenDisplay>,
}

/// How a token of the headline is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenDisplay {
    Plain,
    Marked,
    /// As a blank.
    Blank,
    /// Not at all: its parts follow.
    Skipped,
}

/// A cover, or a part of one.
#[derive(Clone, Copy, Debug)]
struct HeadlineFragment {
    start: usize,
    end: usize,
    words: i32,
    /// Its words of the query.
    items: i32,
    is_chosen: bool,
    is_excluded: bool,
}

/// Chooses the headline of a text.
struct Headline<'h, 't> {
    query: &'h TextQuery<'h>,
    options: &'h HeadlineOptions,
    words: Vec<HeadlineWord<'t>>,
    max_cover: usize,
}

/// Returns the headline of a text.
#[must_use]
pub fn headline_of(
    configuration: Configuration,
    text: &str,
    query: &TextQuery<'_>,
    options: &HeadlineOptions,
) -> String {
    let fragments = usize::try_from(options.max_fragments).unwrap_or(0).max(1);
    let words = usize::try_from(options.max_words).unwrap_or(0);
    let max_cover = words.saturating_mul(10).max(100).saturating_mul(fragments);
    let mut headline = Headline { query, options, words: Vec::new(), max_cover };
    headline.read(configuration, text);
    if headline.words.is_empty() {
        return String::new();
    }
    match options.max_fragments {
        0 => headline.mark_words(),
        _ => headline.mark_fragments(),
    }
    headline.text()
}

impl<'t> Headline<'_, 't> {
    /// Takes the text apart.
    fn read(&mut self, configuration: Configuration, text: &'t str) {
        let items: Vec<(usize, &QueryWord<'_>)> = self
            .query
            .items
            .iter()
            .enumerate()
            .rev()
            .filter_map(|(at, item)| match item {
                QueryItem::Word(word) => Some((at, word)),
                _ => None,
            })
            .collect();
        let mut place = 0;
        for (kind, token) in Tokens::new(text) {
            if token.len() > MAX_WORD {
                continue;
            }
            let mut word = HeadlineWord {
                kind,
                text: token,
                place,
                item: None,
                is_repeated: false,
                shown: None,
            };
            let Some(dictionary) = configuration.dictionary(kind) else {
                self.words.push(word);
                continue;
            };
            place = (place + 1).min(i32::from(MAX_PLACE));
            word.place = place;
            let lexeme = dictionary.word(token);
            let is_meant = |wanted: &QueryWord<'_>| {
                lexeme.as_deref().is_some_and(|lexeme| match wanted.is_prefix {
                    true => lexeme.starts_with(&*wanted.word),
                    false => lexeme == wanted.word,
                })
            };
            let mut found = items.iter().filter(|(_, wanted)| is_meant(wanted)).map(|(at, _)| *at);
            word.item = found.next();
            self.words.push(word);
            for item in found {
                self.words.push(HeadlineWord { item: Some(item), is_repeated: true, ..word });
            }
        }
    }

    fn word(&self, at: usize) -> Option<&HeadlineWord<'t>> {
        self.words.get(at)
    }

    fn counts(&self, at: usize) -> i32 {
        i32::from(self.word(at).is_some_and(|word| !word.kind.is_no_word()))
    }

    /// Whether it is a word of the query.
    fn is_wanted(&self, at: usize) -> bool {
        self.word(at).is_some_and(|word| word.item.is_some() && !word.is_repeated)
    }

    /// Whether a headline should not end there.
    fn is_bad_end(&self, at: usize) -> bool {
        let short = usize::try_from(self.options.short_word).unwrap_or(0);
        let is_bad = |word: &HeadlineWord<'_>| word.kind.is_no_end() || word.text.len() <= short;
        self.word(at).is_none_or(is_bad) && !self.is_wanted(at)
    }

    /// Returns the first token from there on that is an item of the query.
    fn next_item(&self, from: usize) -> Option<usize> {
        (from..self.words.len()).find(|at| self.words[*at].item.is_some())
    }

    fn is_satisfied_by(&self, start: usize, end: usize) -> bool {
        let words = self.words.get(start..=end).unwrap_or_default();
        is_match_of_items(self.query, |item| {
            let mut places: Vec<i32> = Vec::new();
            for word in words.iter().filter(|word| word.item == Some(item)) {
                if places.last().is_none_or(|last| *last < word.place) {
                    places.push(word.place);
                }
            }
            places
        })
    }

    /// Returns the first and shortest cover that begins there or later.
    fn cover(&self, from: usize) -> Option<(usize, usize)> {
        let mut first = self.next_item(from);
        while let Some(start) = first {
            let mut last = Some(start);
            while let Some(end) = last.filter(|end| end - start < self.max_cover || *end == start) {
                if self.is_satisfied_by(start, end) {
                    return Some((start, end));
                }
                last = self.next_item(end + 1);
            }
            first = self.next_item(start + 1);
        }
        None
    }

    /// Makes tokens a part of the headline.
    fn mark(&mut self, start: usize, end: usize) {
        let all = self.options.highlights_all;
        for word in self.words.iter_mut().take(end + 1).skip(start) {
            word.shown = Some(match () {
                () if !all && word.kind == TokenKind::Tag => TokenDisplay::Blank,
                () if word.kind.has_parts() => TokenDisplay::Skipped,
                () if word.item.is_some() => TokenDisplay::Marked,
                () => TokenDisplay::Plain,
            });
        }
    }

    /// Makes the first words of the text the headline.
    fn mark_beginning(&mut self) {
        let (mut words, mut end) = (0, None);
        for at in 0..self.words.len() {
            if words >= self.options.min_words {
                break;
            }
            words += self.counts(at);
            end = Some(at);
        }
        if let Some(end) = end {
            self.mark(0, end);
        }
    }

    /// One part of the text.
    fn mark_words(&mut self) {
        if self.options.highlights_all {
            return self.mark(0, self.words.len() - 1);
        }
        let mut best: Option<HeadlineCandidate> = None;
        let mut from = 0;
        while let Some((start, end)) = self.cover(from) {
            let found = self.candidate(start, end);
            let is_better = |known: &HeadlineCandidate| {
                let (one, other) = ((found.has_cover, found.items), (known.has_cover, known.items));
                one > other
                    || one == other && !self.is_bad_end(found.end) && self.is_bad_end(known.end)
            };
            if best.as_ref().is_none_or(is_better) {
                best = Some(found);
            }
            from = start + 1;
        }
        match best {
            Some(best) => self.mark(best.start, best.end),
            None => self.mark_beginning(),
        }
    }

    /// Makes a headline of a cover.
    fn candidate(&self, first: usize, last: usize) -> HeadlineCandidate {
        let HeadlineOptions { min_words, max_words, .. } = *self.options;
        let wanted = |at: usize| i32::from(self.is_wanted(at));
        let (mut words, mut items, mut start, mut end) = (0, 0, first, first);
        let mut at = first;
        while at <= last && words < max_words {
            words += self.counts(at);
            items += wanted(at);
            end = at;
            at += 1;
        }
        if words < max_words {
            // There is room for the words that follow, up to a good end.
            at = at.saturating_sub(1);
            while at < self.words.len() && words < max_words {
                if at > last {
                    words += self.counts(at);
                    items += wanted(at);
                }
                end = at;
                if !self.is_bad_end(at) && words >= min_words {
                    break;
                }
                at += 1;
            }
            if words < min_words {
                // The text has ended, so those before are taken.
                start = 0;
                for at in (0..first).rev() {
                    words += self.counts(at);
                    items += wanted(at);
                    if words >= max_words || !self.is_bad_end(at) && words >= min_words {
                        start = at;
                        break;
                    }
                }
            }
        } else {
            // Words at a bad end are taken away.
            at = at.min(last);
            while words > min_words && self.is_bad_end(at) {
                words -= self.counts(at);
                items -= wanted(at);
                end = at.saturating_sub(1);
                at = end;
            }
        }
        HeadlineCandidate { start, end, items, has_cover: start <= first && end >= last }
    }

    /// Cuts a cover to the most words. Both ends are words of the query.
    fn fragment(&self, start: usize, end: usize) -> HeadlineFragment {
        let first = (start..=end).find(|at| self.is_wanted(*at)).unwrap_or(end);
        let (mut words, mut items, mut at) = (0, 0, first);
        while at <= end && words < self.options.max_words {
            words += self.counts(at);
            items += i32::from(self.is_wanted(at));
            at += 1;
        }
        let mut last = end;
        if end > at {
            last = at;
            for at in (first..=at).rev() {
                last = at;
                if self.is_wanted(at) {
                    break;
                }
                words -= self.counts(at);
            }
        }
        HeadlineFragment {
            start: first,
            end: last,
            words,
            items,
            is_chosen: false,
            is_excluded: false,
        }
    }

    /// Returns the parts of all covers.
    fn fragments(&self) -> Vec<HeadlineFragment> {
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some((first, last)) = self.cover(from) {
            let mut start = first;
            while start <= last {
                let fragment = self.fragment(start, last);
                start = fragment.end + 1;
                found.push(fragment);
            }
            from = first + 1;
        }
        found
    }

    /// Several parts of the text.
    fn mark_fragments(&mut self) {
        let mut fragments = self.fragments();
        let mut is_marked = false;
        for _ in 0..self.options.max_fragments {
            let mut best: Option<usize> = None;
            for (number, it) in fragments.iter().enumerate() {
                let (items, words) = best.map_or((0, i32::MAX), |best| {
                    let best: &HeadlineFragment = &fragments[best];
                    (best.items, best.words)
                });
                let is_better = it.items > items || it.items == items && it.words < words;
                if !it.is_chosen && !it.is_excluded && is_better {
                    best = Some(number);
                }
            }
            let Some(best) = best else { break };
            let (start, end) = self.stretched(&fragments[best]);
            fragments[best] = HeadlineFragment { start, end, is_chosen: true, ..fragments[best] };
            self.mark(start, end);
            is_marked = true;
            for (number, it) in fragments.iter_mut().enumerate() {
                let has = |at: usize| (start..=end).contains(&at);
                let overlaps = has(it.start) || has(it.end) || it.start < start && it.end > end;
                it.is_excluded |= number != best && overlaps;
            }
        }
        if !is_marked {
            self.mark_beginning();
        }
    }

    /// Makes a fragment longer on both sides, as far as there are words left to choose.
    fn stretched(&self, fragment: &HeadlineFragment) -> (usize, usize) {
        let max_words = self.options.max_words;
        let HeadlineFragment { mut start, mut end, words: mut count, .. } = *fragment;
        if count >= max_words {
            return (start, end);
        }
        let is_free =
            |at: usize| self.word(at).is_some_and(|word| word.shown.is_none() || word.is_repeated);
        let most = (max_words - count) / 2;
        let (mut taken, mut first) = (0, start);
        while first > 0 && taken < most && is_free(first - 1) {
            first -= 1;
            count += self.counts(first);
            taken += self.counts(first);
        }
        while first < start && self.is_bad_end(first) {
            count -= self.counts(first);
            first += 1;
        }
        start = first;
        let mut last = end;
        while last + 1 < self.words.len() && count < max_words && is_free(last + 1) {
            last += 1;
            count += self.counts(last);
        }
        while last > end && self.is_bad_end(last) {
            last -= 1;
        }
        end = last;
        (start, end)
    }

    /// Returns the text of the headline.
    fn text(&self) -> String {
        let options = self.options;
        let (mut out, mut parts, mut is_inside) = (String::new(), 0, false);
        for word in self.words.iter().filter(|word| !word.is_repeated) {
            let Some(shown) = word.shown else {
                is_inside = false;
                continue;
            };
            if !is_inside {
                is_inside = true;
                parts += 1;
                out.push_str(if parts > 1 { &options.delimiter } else { "" });
            }
            match shown {
                TokenDisplay::Blank => out.push(' '),
                TokenDisplay::Skipped => {}
                TokenDisplay::Plain => out.push_str(word.text),
                TokenDisplay::Marked => {
                    out.push_str(&options.start);
                    out.push_str(word.text);
                    out.push_str(&options.stop);
                }
            }
        }
        out
    }
}

/// A headline that a cover gives.
struct HeadlineCandidate {
    start: usize,
    end: usize,
    items: i32,
    has_cover: bool,
}
