//! `tsquery`: words and operators.
//!
//! The items of a query stand in postfix order: left operand, right operand, operator. The bytes
//! are a part that sorts as PostgreSQL's values do, the weights and prefix marks of the words, one
//! byte for each word, and the number of the words. The first part has the number of items, the
//! size of PostgreSQL's value, and the items in reverse order. Numbers are big-endian, and those of
//! items have inverted bits. A word has a byte 2, PostgreSQL's hash value, its text and a byte 0.
//! An operator has a byte 1 and its number. The distance of a phrase follows its operands.

use std::borrow::Cow;

use super::{quote, take, take_text, take_u16, take_u32};
use crate::types::{EncodedKind, Value};

/// The greatest distance between the words of a phrase.
pub const MAX_DISTANCE: u16 = 1 << 14;

const OPERATOR: u8 = 1;
const WORD: u8 = 2;

/// The bit of a word's mark that makes it a prefix. The lower bits are the weights.
const PREFIX: u8 = 16;

/// A word of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryWord<'a> {
    /// The word.
    pub word: Cow<'a, str>,
    /// A bit for each weight that it may have; 0 for any.
    pub weights: u8,
    /// Whether it matches words that begin with it.
    pub is_prefix: bool,
}

/// A word or an operator of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryItem<'a> {
    /// A word.
    Word(QueryWord<'a>),
    /// The operand does not match.
    Not,
    /// Both operands match.
    And,
    /// An operand matches.
    Or,
    /// The right operand matches at this distance after the left one.
    Phrase(u16),
}

impl QueryItem<'_> {
    /// Returns the number of operands.
    #[must_use]
    pub fn operands(&self) -> usize {
        match self {
            QueryItem::Word(_) => 0,
            QueryItem::Not => 1,
            QueryItem::And | QueryItem::Or | QueryItem::Phrase(_) => 2,
        }
    }

    /// Returns how strongly an operator binds.
    pub(super) fn priority(&self) -> u8 {
        match self {
            QueryItem::Or => 1,
            QueryItem::And => 2,
            QueryItem::Phrase(_) => 3,
            QueryItem::Not => 4,
            QueryItem::Word(_) => 5,
        }
    }

    /// Returns the number of an operator in PostgreSQL; 0 for a word.
    #[must_use]
    pub fn number(&self) -> u8 {
        match self {
            QueryItem::Word(_) => 0,
            QueryItem::Not => 1,
            QueryItem::And => 2,
            QueryItem::Or => 3,
            QueryItem::Phrase(_) => 4,
        }
    }

    /// Returns the operator with that number.
    #[must_use]
    pub fn numbered(number: u8, distance: u16) -> Option<QueryItem<'static>> {
        Some(match number {
            1 => QueryItem::Not,
            2 => QueryItem::And,
            3 => QueryItem::Or,
            4 => QueryItem::Phrase(distance),
            _ => return None,
        })
    }

    /// Returns the item with a word of its own.
    #[must_use]
    pub fn to_owned(&self) -> QueryItem<'static> {
        match self {
            QueryItem::Word(word) => QueryItem::Word(QueryWord {
                word: Cow::Owned(word.word.clone().into_owned()),
                ..*word
            }),
            QueryItem::Not => QueryItem::Not,
            QueryItem::And => QueryItem::And,
            QueryItem::Or => QueryItem::Or,
            QueryItem::Phrase(distance) => QueryItem::Phrase(*distance),
        }
    }
}

/// A query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextQuery<'a> {
    /// The items in postfix order; none if the query has no words.
    pub items: Vec<QueryItem<'a>>,
}

/// Returns PostgreSQL's hash value of a word, as a number that sorts.
pub(super) fn word_hash(word: &str) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            let mut value = at as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[at] = value;
            at += 1;
        }
        table
    };
    let hash = word
        .bytes()
        .fold(u32::MAX, |hash, byte| TABLE[usize::from((hash >> 24) as u8 ^ byte)] ^ hash << 8);
    // PostgreSQL compares the values as signed numbers.
    !hash ^ 1 << 31
}

/// An operator whose operands are not complete.
struct OpenOperator {
    missing: usize,
    distance: Option<u16>,
}

/// Counts an operand. Calls `close` with the distance of each phrase that is complete.
fn count_operand(
    open: &mut Vec<OpenOperator>,
    mut close: impl FnMut(u16) -> Option<u16>,
) -> Option<Vec<u16>> {
    let mut distances = Vec::new();
    while let Some(last) = open.last_mut() {
        last.missing -= 1;
        if last.missing > 0 {
            break;
        }
        if let Some(distance) = open.pop()?.distance {
            distances.push(close(distance)?);
        }
    }
    Some(distances)
}

impl<'a> TextQuery<'a> {
    /// Returns whether the items are one expression, or none.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let mut depth = 0_usize;
        for item in &self.items {
            let Some(rest) = depth.checked_sub(item.operands()) else { return false };
            depth = rest + 1;
        }
        depth == usize::from(!self.items.is_empty())
    }

    /// Returns the words.
    pub fn words(&self) -> impl Iterator<Item = &QueryWord<'a>> {
        self.items.iter().filter_map(|item| match item {
            QueryItem::Word(word) => Some(word),
            _ => None,
        })
    }

    /// Returns the query of the items of both and an operator.
    #[must_use]
    pub fn joined(mut self, other: TextQuery<'a>, operator: QueryItem<'a>) -> TextQuery<'a> {
        if self.items.is_empty() || other.items.is_empty() {
            self.items.extend(other.items);
            return self;
        }
        self.items.extend(other.items);
        self.items.push(operator);
        self
    }

    /// Returns the query that matches what this one does not.
    #[must_use]
    pub fn negated(mut self) -> TextQuery<'a> {
        if !self.items.is_empty() {
            self.items.push(QueryItem::Not);
        }
        self
    }

    /// Returns the value.
    #[must_use]
    pub fn value(&self) -> Value {
        let words: usize = self.words().map(|word| word.word.len() + 1).sum();
        let size = 8 + 12 * self.items.len() + words;
        let mut bytes = Vec::with_capacity(size + 8);
        bytes.extend_from_slice(&(self.items.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&(size as u32).to_be_bytes());
        let mut open: Vec<OpenOperator> = Vec::new();
        let mut marks = Vec::new();
        for item in self.items.iter().rev() {
            if let QueryItem::Word(word) = item {
                bytes.push(WORD);
                bytes.extend_from_slice(&(!word_hash(&word.word)).to_be_bytes());
                bytes.extend_from_slice(word.word.as_bytes());
                bytes.push(0);
                marks.push(word.weights & 15 | if word.is_prefix { PREFIX } else { 0 });
                let closed = count_operand(&mut open, Some).unwrap_or_default();
                for distance in closed {
                    bytes.extend_from_slice(&(!distance).to_be_bytes());
                }
            } else {
                bytes.extend_from_slice(&[OPERATOR, !item.number()]);
                let distance = match item {
                    QueryItem::Phrase(distance) => Some(*distance),
                    _ => None,
                };
                open.push(OpenOperator { missing: item.operands(), distance });
            }
        }
        let count = marks.len() as u32;
        bytes.append(&mut marks);
        bytes.extend_from_slice(&count.to_be_bytes());
        Value::encoded(EncodedKind::TsQuery, &bytes)
    }

    /// Returns the part of the bytes that sorts as the values, and the marks of the words.
    fn parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
        let (rest, count) = bytes.split_last_chunk::<4>()?;
        let count = usize::try_from(u32::from_be_bytes(*count)).ok()?;
        rest.split_at_checked(rest.len().checked_sub(count)?)
    }

    /// Returns the part of the bytes that sorts as the values.
    pub(in crate::types::encoded) fn ordering_key(bytes: &[u8]) -> &[u8] {
        TextQuery::parts(bytes).map_or(bytes, |(key, _)| key)
    }

    /// Returns the bytes of the value with that ordering key, without weights and prefix marks.
    pub(in crate::types::encoded) fn of_ordering_key(key: &[u8]) -> Option<Vec<u8>> {
        let words = TextQuery::read_key(key, |_| Some(0))?.words().count();
        let marks = std::iter::repeat_n(0, words);
        Some(key.iter().copied().chain(marks).chain((words as u32).to_be_bytes()).collect())
    }

    /// Returns the query with these bytes.
    #[must_use]
    pub fn read(bytes: &'a [u8]) -> Option<TextQuery<'a>> {
        let (key, marks) = TextQuery::parts(bytes)?;
        TextQuery::read_key(key, |at| marks.get(at).copied())
    }

    fn read_key(mut bytes: &'a [u8], mark: impl Fn(usize) -> Option<u8>) -> Option<TextQuery<'a>> {
        let count = usize::try_from(take_u32(&mut bytes)?).ok()?;
        take_u32(&mut bytes)?;
        let mut items = Vec::with_capacity(count.min(bytes.len()));
        let mut open: Vec<OpenOperator> = Vec::new();
        // The items of phrases, which get their distances later.
        let mut phrases: Vec<usize> = Vec::new();
        let mut words = 0;
        for _ in 0..count {
            if take(&mut bytes, 1)?[0] == OPERATOR {
                let item = QueryItem::numbered(!take(&mut bytes, 1)?[0], 0)?;
                let is_phrase = matches!(item, QueryItem::Phrase(_));
                if is_phrase {
                    phrases.push(items.len());
                }
                let distance = is_phrase.then_some(0);
                open.push(OpenOperator { missing: item.operands(), distance });
                items.push(item);
                continue;
            }
            take_u32(&mut bytes)?;
            let (word, mark) = (take_text(&mut bytes)?, mark(words)?);
            words += 1;
            items.push(QueryItem::Word(QueryWord {
                word: Cow::Borrowed(word),
                weights: mark & 15,
                is_prefix: mark & PREFIX != 0,
            }));
            let closed = count_operand(&mut open, |_| take_u16(&mut bytes))?;
            for distance in closed {
                let at = phrases.pop()?;
                items[at] = QueryItem::Phrase(!distance);
            }
        }
        items.reverse();
        let query = TextQuery { items };
        (bytes.is_empty() && query.is_complete()).then_some(query)
    }

    /// Appends the words in quotes and the operators between them.
    pub fn format(&self, out: &mut String) {
        // The texts of the operands, with the operators that they end with.
        let mut texts: Vec<(String, &QueryItem<'_>)> = Vec::new();
        let grouped = |text: &mut String, is_grouped: bool| {
            if is_grouped {
                text.insert_str(0, "( ");
                text.push_str(" )");
            }
        };
        for item in &self.items {
            if let QueryItem::Word(word) = item {
                texts.push((word_text(word), item));
                continue;
            }
            let Some((mut last, of_last)) = texts.pop() else { return };
            let is_phrase = |item: &QueryItem<'_>| matches!(item, QueryItem::Phrase(_));
            // A phrase depends on the order of its operators.
            let is_grouped =
                of_last.priority() < item.priority() || is_phrase(item) && is_phrase(of_last);
            grouped(&mut last, is_grouped);
            if *item == QueryItem::Not {
                last.insert(0, '!');
                texts.push((last, item));
                continue;
            }
            let Some((mut first, of_first)) = texts.pop() else { return };
            grouped(&mut first, of_first.priority() < item.priority());
            match item {
                QueryItem::Phrase(1) => first.push_str(" <-> "),
                QueryItem::Phrase(distance) => first.push_str(&format!(" <{distance}> ")),
                QueryItem::And => first.push_str(" & "),
                _ => first.push_str(" | "),
            }
            first.push_str(&last);
            texts.push((first, item));
        }
        out.extend(texts.pop().map(|(text, _)| text));
    }

    /// Returns the query without what a word can be missing for, in which NOT matches everything;
    /// `None` if nothing is left.
    #[must_use]
    pub fn without_negations(&self) -> Option<TextQuery<'a>> {
        let mut items: Vec<QueryItem<'a>> = Vec::new();
        // Where each operand begins, and whether it is left.
        let mut operands: Vec<(usize, bool)> = Vec::new();
        for item in &self.items {
            let start = items.len();
            if item.operands() == 0 {
                items.push(item.clone());
                operands.push((start, true));
                continue;
            }
            let (right, has_right) = operands.pop()?;
            if *item == QueryItem::Not {
                items.truncate(right);
                operands.push((right, false));
                continue;
            }
            let (left, has_left) = operands.pop()?;
            if has_left && has_right {
                items.push(item.clone());
            } else if *item == QueryItem::Or {
                items.truncate(left);
            }
            let is_left = has_left && has_right || *item != QueryItem::Or && items.len() > left;
            operands.push((left, is_left));
        }
        (!items.is_empty()).then_some(TextQuery { items })
    }
}

fn word_text(word: &QueryWord<'_>) -> String {
    let mut out = String::new();
    quote(&mut out, &word.word);
    if word.weights != 0 || word.is_prefix {
        out.push(':');
        if word.is_prefix {
            out.push('*');
        }
        let letters = ['A', 'B', 'C', 'D'].into_iter().zip([8, 4, 2, 1]);
        out.extend(letters.filter(|(_, bit)| word.weights & bit != 0).map(|(letter, _)| letter));
    }
    out
}
