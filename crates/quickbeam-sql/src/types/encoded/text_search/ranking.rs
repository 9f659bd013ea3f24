//! How well a query fits a document: by the weights of its words (`ts_rank`), or by how close they
//! stand to each other (`ts_rank_cd`).
//!
//! The numbers are computed in the order and the precision in which PostgreSQL computes them.

use super::matching::{MatchPlaces, candidates, has_weight, is_satisfied};
use super::{MAX_PLACE, Position, QueryItem, QueryWord, TextLexemeRef, TextQuery, TextVectorRef};

/// The weights of the letters D, C, B and A.
pub type RankWeights = [f32; 4];

/// The weights that a call without weights has.
pub const DEFAULT_WEIGHTS: RankWeights = [0.1, 0.2, 0.4, 1.0];

/// Bits of what a rank is divided by.
const LOG_LENGTH: i32 = 1;
const LENGTH: i32 = 2;
const DISTANCE: i32 = 4;
const UNIQUE: i32 = 8;
const LOG_UNIQUE: i32 = 16;
const ITSELF: i32 = 32;

/// The sum of 1/n² for all n.
const LIMIT: f64 = 1.644_934_066_85;

/// Returns the number of positions of all words; a word without positions has one.
fn length_of(vector: &TextVectorRef<'_>) -> usize {
    vector.lexemes.iter().map(|lexeme| lexeme.positions().len().max(1)).sum()
}

/// Returns the weight of two words at a distance.
fn distance_weight(distance: i32) -> f32 {
    if distance > 100 {
        return 1e-30;
    }
    (1.0 / (1.005 + 0.05 * (f64::from(distance as f32) / 1.5 - 2.0).exp())) as f32
}

/// Returns the words of a query in order, each once.
fn unique_words<'q, 'a>(query: &'q TextQuery<'a>) -> Vec<&'q QueryWord<'a>> {
    let mut words: Vec<&QueryWord<'_>> = query.words().collect();
    // Of equal words, the last one of the text is kept.
    words.reverse();
    words.sort_by(|a, b| a.word.as_bytes().cmp(b.word.as_bytes()));
    words.dedup_by(|later, kept| later.word == kept.word);
    words
}

/// The positions of a word. A word without positions stands at the end.
struct RankedPositions {
    positions: Vec<Position>,
    is_unknown: bool,
}

/// Returns the positions of each word of the vector that a word of the query means.
fn positions_of(vector: &TextVectorRef<'_>, word: &QueryWord<'_>) -> Vec<RankedPositions> {
    let ranked = |lexeme: &TextLexemeRef<'_>| RankedPositions {
        is_unknown: !lexeme.has_positions(),
        positions: match lexeme.has_positions() {
            true => lexeme.positions().collect(),
            false => vec![Position { place: MAX_PLACE, weight: 0 }],
        },
    };
    candidates(vector, word).map(ranked).collect()
}

fn weight(weights: &RankWeights, position: Position) -> f32 {
    weights[usize::from(position.weight & 3)]
}

/// Returns the rank of words that all have to be there, by their distances.
fn rank_of_all(weights: &RankWeights, vector: &TextVectorRef<'_>, query: &TextQuery<'_>) -> f32 {
    let words = unique_words(query);
    if words.len() < 2 {
        return rank_of_any(weights, vector, query);
    }
    let mut rank: f32 = -1.0;
    let mut earlier: Vec<RankedPositions> = Vec::new();
    for word in words {
        let mut last = None;
        for found in positions_of(vector, word) {
            for other in &earlier {
                for own in &found.positions {
                    for its in &other.positions {
                        let distance = i32::from(own.place.abs_diff(its.place));
                        let is_unknown = found.is_unknown || other.is_unknown;
                        if distance == 0 && !is_unknown {
                            continue;
                        }
                        let distance = if distance == 0 { 1 << 14 } else { distance };
                        let both = weight(weights, *own) * weight(weights, *its);
                        let current = f64::from(both * distance_weight(distance)).sqrt() as f32;
                        rank = if rank < 0.0 {
                            current
                        } else {
                            (1.0 - (1.0 - f64::from(rank)) * (1.0 - f64::from(current))) as f32
                        };
                    }
                }
            }
            last = Some(found);
        }
        earlier.extend(last);
    }
    rank
}

/// Returns the rank of words of which any is enough.
fn rank_of_any(weights: &RankWeights, vector: &TextVectorRef<'_>, query: &TextQuery<'_>) -> f32 {
    let words = unique_words(query);
    let mut rank: f32 = 0.0;
    for word in &words {
        for found in positions_of(vector, word) {
            let (mut sum, mut most, mut place): (f32, f32, usize) = (0.0, -1.0, 0);
            for (at, position) in found.positions.iter().enumerate() {
                let own = weight(weights, *position);
                sum += own / ((at + 1) * (at + 1)) as f32;
                if own > most {
                    (most, place) = (own, at);
                }
            }
            let part = most + sum - most / ((place + 1) * (place + 1)) as f32;
            rank = (f64::from(rank) + f64::from(part) / LIMIT) as f32;
        }
    }
    if words.is_empty() { rank } else { rank / words.len() as f32 }
}

/// Returns the rank of a document by the weights of the words that it has (`ts_rank`).
#[must_use]
pub fn word_rank(
    weights: &RankWeights,
    vector: &TextVectorRef<'_>,
    query: &TextQuery<'_>,
    method: i32,
) -> f32 {
    if vector.lexemes.is_empty() || query.items.is_empty() {
        return 0.0;
    }
    let is_of_all = matches!(query.items.last(), Some(QueryItem::And | QueryItem::Phrase(_)));
    let mut rank = match is_of_all {
        true => rank_of_all(weights, vector, query),
        false => rank_of_any(weights, vector, query),
    };
    if rank < 0.0 {
        rank = 1e-20;
    }
    let (length, count) = (length_of(vector), vector.lexemes.len());
    let logarithm = |number: usize| ((number + 1) as f64).ln() / 2.0_f64.ln();
    if method & LOG_LENGTH != 0 {
        rank = (f64::from(rank) / logarithm(length)) as f32;
    }
    if method & LENGTH != 0 && length > 0 {
        rank /= length as f32;
    }
    if method & UNIQUE != 0 {
        rank /= count as f32;
    }
    if method & LOG_UNIQUE != 0 {
        rank = (f64::from(rank) / logarithm(count)) as f32;
    }
    if method & ITSELF != 0 {
        rank /= rank + 1.0;
    }
    rank
}

/// A place of a document where words of the query stand.
struct DocumentPlace {
    position: Position,
    /// The numbers of the query's items that mean the word there.
    items: Vec<usize>,
}

/// Returns the places where words of the query stand, in order.
fn document_places(vector: &TextVectorRef<'_>, query: &TextQuery<'_>) -> Vec<DocumentPlace> {
    let mut found: Vec<(u16, u8, &str, usize)> = Vec::new();
    for (at, item) in query.items.iter().enumerate().rev() {
        let QueryItem::Word(word) = item else { continue };
        for lexeme in candidates(vector, word) {
            let wanted = lexeme.positions().filter(|it| has_weight(word, it.weight));
            found.extend(wanted.map(|it| (it.place, it.weight, lexeme.word, at)));
        }
    }
    found.sort_by(|a, b| (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2)));
    let mut places: Vec<(DocumentPlace, &str)> = Vec::new();
    for (place, weight, word, at) in found {
        let position = Position { place, weight };
        match places.last_mut() {
            Some((last, of)) if last.position == position && *of == word => last.items.push(at),
            _ => places.push((DocumentPlace { position, items: vec![at] }, word)),
        }
    }
    places.into_iter().map(|(place, _)| place).collect()
}

/// The words of a query at the places read so far.
struct ReadWords<'q, 'a> {
    query: &'q TextQuery<'a>,
    places: Vec<Vec<i32>>,
}

impl ReadWords<'_, '_> {
    fn clear(&mut self) {
        self.places.iter_mut().for_each(Vec::clear);
    }

    /// Adds the words of a place. Returns whether the query is satisfied.
    fn add(&mut self, place: &DocumentPlace) -> bool {
        let number = i32::from(place.position.place);
        for at in &place.items {
            if self.places[*at].last() != Some(&number) {
                self.places[*at].push(number);
            }
        }
        is_satisfied(self.query, |at, _, _| {
            let mut places = self.places[at].clone();
            // They are read from either end.
            places.sort_unstable();
            MatchPlaces::at(places)
        })
    }
}

/// A part of a document that satisfies the query, by its first and last place.
struct DocumentCover {
    begin: usize,
    end: usize,
}

/// Finds the next cover from a place on; sets the place from which the one after it is looked for.
fn next_cover(
    places: &[DocumentPlace],
    read: &mut ReadWords<'_, '_>,
    from: &mut usize,
) -> Option<DocumentCover> {
    loop {
        read.clear();
        let end = (*from..places.len()).find(|at| read.add(&places[*at]))?;
        if places[end].position.place == 0 {
            return None;
        }
        read.clear();
        let begin = (*from..=end).rev().find(|at| read.add(&places[*at]));
        match begin {
            Some(begin) => {
                *from = begin + 1;
                return Some(DocumentCover { begin, end });
            }
            None => *from += 1,
        }
    }
}

/// Returns the rank of a document by how close the words stand to each other (`ts_rank_cd`).
#[must_use]
pub fn cover_rank(
    weights: &RankWeights,
    vector: &TextVectorRef<'_>,
    query: &TextQuery<'_>,
    method: i32,
) -> f32 {
    let places = document_places(vector, query);
    let mut read = ReadWords { query, places: vec![Vec::new(); query.items.len()] };
    let (mut rank, mut distances, mut before) = (0.0_f64, 0.0_f64, 0.0_f64);
    let (mut covers, mut from) = (0_usize, 0);
    while let Some(DocumentCover { begin, end }) = next_cover(&places, &mut read, &mut from) {
        let within = places.get(begin..=end).unwrap_or_default();
        let inverse = |place: &DocumentPlace| 1.0 / f64::from(weight(weights, place.position));
        let sum = within.iter().map(inverse).fold(0.0, |sum, inverse| sum + inverse);
        let first = i32::from(places[begin].position.place);
        let last = i32::from(places[end].position.place);
        let others = (end - begin) as i32;
        let noise = match last - first - others {
            noise @ 0.. => noise,
            _ => others / 2,
        };
        rank += within.len() as f64 / sum / f64::from(1 + noise);
        let middle = f64::from(first + last) / 2.0;
        if covers > 0 && middle > before {
            distances += 1.0 / (middle - before);
        }
        before = middle;
        covers += 1;
    }
    if places.is_empty() {
        return 0.0;
    }
    let (length, count) = (length_of(vector), vector.lexemes.len());
    if method & LOG_LENGTH != 0 {
        rank /= ((length + 1) as f64).ln();
    }
    if method & LENGTH != 0 && length > 0 {
        rank /= length as f64;
    }
    if method & DISTANCE != 0 && covers > 0 && distances > 0.0 {
        rank /= covers as f64 / distances;
    }
    if method & UNIQUE != 0 {
        rank /= count as f64;
    }
    if method & LOG_UNIQUE != 0 {
        rank /= ((count + 1) as f64).ln() / 2.0_f64.ln();
    }
    if method & ITSELF != 0 {
        rank /= rank + 1.0;
    }
    rank as f32
}
