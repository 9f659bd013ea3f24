//! The text form of queries: words, operators and parentheses become items in postfix order.

use std::borrow::Cow;

use super::words::{LiteralReader, WordSource, is_space};
use super::{MAX_BYTES, MAX_DISTANCE, MAX_WORD, QueryItem, QueryWord, TextQuery};
use super::{syntax, too_large, weight_named};
use crate::error::{Result, SqlError, SqlState};

/// Operators of one level of parentheses that may wait for operands.
const WAITING: usize = 32;

/// What becomes of the words of a query.
pub type OperandSink<'s> = &'s mut dyn FnMut(&mut QueryParts<'_>, QueryWord<'_>) -> Result<()>;

/// The items of a query that is being read. A word that a query does not search for is `None`.
#[derive(Debug)]
pub struct QueryParts<'t> {
    text: &'t str,
    items: Vec<Option<QueryItem<'static>>>,
    bytes: usize,
}

impl<'t> QueryParts<'t> {
    /// Begins the items of a text.
    #[must_use]
    pub fn of(text: &'t str) -> QueryParts<'t> {
        QueryParts { text, items: Vec::new(), bytes: 0 }
    }

    /// Appends a word.
    pub fn push_word(&mut self, word: QueryWord<'_>) -> Result<()> {
        if word.word.len() > MAX_WORD {
            return Err(too_large(format!("word is too long in tsquery: \"{}\"", self.text)));
        }
        if self.bytes >= MAX_BYTES {
            return Err(too_large(format!("value is too big in tsquery: \"{}\"", self.text)));
        }
        self.bytes += word.word.len() + 1;
        self.items.push(Some(QueryItem::Word(word).to_owned()));
        Ok(())
    }

    /// Appends a word that is not searched for.
    pub fn push_stop(&mut self) {
        self.items.push(None);
    }

    /// Appends an operator.
    pub fn push_operator(&mut self, operator: QueryItem<'static>) {
        self.items.push(Some(operator));
    }

    /// Appends the operators that wait.
    pub(super) fn push_all(&mut self, waiting: &mut Vec<QueryItem<'static>>) {
        flush(self, waiting, &QueryItem::Or);
    }

    /// Returns the query, without the words that are not searched for.
    #[must_use]
    pub fn finish(self) -> TextQuery<'static> {
        if self.items.iter().all(Option::is_some) {
            return TextQuery { items: self.items.into_iter().flatten().collect() };
        }
        TextQuery { items: without_stops(self.items) }
    }
}

/// Where an operand begins, whether anything is left of it, and how many places the words that were
/// left out had before and after it.
#[derive(Clone, Copy)]
struct CleanOperand {
    start: usize,
    is_left: bool,
    before: u16,
    after: u16,
}

/// Leaves out words that are not searched for. The distances of phrases grow by their places.
fn without_stops(all: Vec<Option<QueryItem<'static>>>) -> Vec<QueryItem<'static>> {
    let mut items: Vec<QueryItem<'static>> = Vec::new();
    let mut operands: Vec<CleanOperand> = Vec::new();
    for item in all {
        let start = items.len();
        let plain = CleanOperand { start, is_left: true, before: 0, after: 0 };
        match item {
            None => operands.push(CleanOperand { is_left: false, ..plain }),
            Some(word @ QueryItem::Word(_)) => {
                items.push(word);
                operands.push(plain);
            }
            Some(QueryItem::Not) => {
                let Some(operand) = operands.last() else { return Vec::new() };
                if operand.is_left {
                    items.push(QueryItem::Not);
                }
            }
            Some(operator) => {
                let (Some(right), Some(left)) = (operands.pop(), operands.pop()) else {
                    return Vec::new();
                };
                operands.push(joined(&mut items, left, right, operator));
            }
        }
    }
    items
}

/// Appends an operator whose operands may be missing.
fn joined(
    items: &mut Vec<QueryItem<'static>>,
    left: CleanOperand,
    right: CleanOperand,
    operator: QueryItem<'static>,
) -> CleanOperand {
    let phrase = match operator {
        QueryItem::Phrase(distance) => Some(distance),
        _ => None,
    };
    let distance = phrase.unwrap_or(0);
    let start = left.start;
    match (left.is_left, right.is_left) {
        (false, false) => {
            // The places that both had are those of the greater one, or their sum in a phrase.
            let places = match phrase {
                Some(distance) => left.before.saturating_add(distance).saturating_add(right.before),
                None => left.before.max(right.before),
            };
            CleanOperand { start, is_left: false, before: places, after: places }
        }
        (false, true) => {
            let before = left.before.saturating_add(distance).saturating_add(right.before);
            let before = if phrase.is_some() { before } else { right.before };
            CleanOperand { start, before, ..right }
        }
        (true, false) => {
            let after = left.after.saturating_add(distance).saturating_add(right.after);
            CleanOperand { after: if phrase.is_some() { after } else { left.after }, ..left }
        }
        (true, true) => {
            items.push(match phrase {
                Some(distance) => QueryItem::Phrase(
                    distance.saturating_add(left.after).saturating_add(right.before),
                ),
                None => operator,
            });
            let (before, after) = match phrase {
                Some(_) => (left.before, right.after),
                None => (0, 0),
            };
            CleanOperand { start, is_left: true, before, after }
        }
    }
}

/// A token after an operand.
enum QueryToken {
    Operator(QueryItem<'static>),
    Close,
    End,
}

/// A reader of a query.
struct QueryReader<'t> {
    words: LiteralReader<'t>,
}

impl<'t> QueryReader<'t> {
    #[cold]
    fn fault(&self) -> SqlError {
        self.words.fault()
    }

    /// Skips white space and returns the next character.
    fn peek(&mut self) -> Option<char> {
        let rest = self.words.rest().trim_start_matches(is_space);
        self.words.move_to(rest);
        rest.chars().next()
    }

    fn skip(&mut self, bytes: usize) {
        self.words.move_to(self.words.rest().get(bytes..).unwrap_or_default());
    }

    /// Reads the weights and the prefix mark of a word.
    fn marks(&mut self) -> (u8, bool) {
        let (mut weights, mut is_prefix) = (0, false);
        let Some(rest) = self.words.rest().strip_prefix(':') else { return (weights, is_prefix) };
        let mut end = rest.len();
        for (at, letter) in rest.char_indices() {
            match (letter, weight_named(letter)) {
                ('*', _) => is_prefix = true,
                (_, Some(weight)) => weights |= 1 << weight,
                _ => {
                    end = at;
                    break;
                }
            }
        }
        self.words.move_to(&rest[end..]);
        (weights, is_prefix)
    }

    /// Reads an operator, the end of a parenthesis or the end of the text.
    fn token(&mut self) -> Result<QueryToken> {
        let token = match self.peek() {
            None => return Ok(QueryToken::End),
            Some('&') => QueryToken::Operator(QueryItem::And),
            Some('|') => QueryToken::Operator(QueryItem::Or),
            Some(')') => QueryToken::Close,
            Some('<') => return self.phrase().map(QueryToken::Operator),
            Some(_) => return Err(self.fault()),
        };
        self.skip(1);
        Ok(token)
    }

    /// Reads `<->` or `<N>`, which something has to follow.
    fn phrase(&mut self) -> Result<QueryItem<'static>> {
        let rest = self.words.rest().get(1..).unwrap_or_default();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (distance, rest) = match (rest.strip_prefix('-'), digits) {
            (Some(rest), _) => (1, rest),
            (None, 0) => return Err(self.fault()),
            (None, digits) => (checked_distance(rest[..digits].parse().ok())?, &rest[digits..]),
        };
        match rest.strip_prefix('>') {
            Some(rest) if !rest.is_empty() => {
                self.words.move_to(rest);
                Ok(QueryItem::Phrase(distance))
            }
            _ => Err(self.fault()),
        }
    }
}

/// Returns a distance of a phrase, unless it is too large.
fn checked_distance(distance: Option<i64>) -> Result<u16> {
    let fits = |distance: &u16| *distance <= MAX_DISTANCE;
    let distance = distance.and_then(|distance| u16::try_from(distance).ok()).filter(fits);
    distance.ok_or_else(|| {
        let message = format!(
            "distance in phrase operator must be an integer value between zero and {MAX_DISTANCE} inclusive"
        );
        SqlError::new(SqlState::InvalidParameterValue, message)
    })
}

/// Appends the waiting operators that bind at least as strongly as one that follows.
fn flush(parts: &mut QueryParts<'_>, waiting: &mut Vec<QueryItem<'static>>, next: &QueryItem<'_>) {
    while let Some(last) = waiting.last() {
        let is_weaker = match next {
            // NOT is right-associative.
            QueryItem::Not => last.priority() <= next.priority(),
            _ => last.priority() < next.priority(),
        };
        if is_weaker {
            return;
        }
        parts.items.extend(waiting.pop().map(Some));
    }
}

impl TextQuery<'_> {
    /// Makes a query of a text that is one operand. `sink` appends what becomes of it.
    pub fn of_operand(text: &str, sink: OperandSink<'_>) -> Result<TextQuery<'static>> {
        let mut parts = QueryParts::of(text);
        if !text.is_empty() {
            let word = Cow::Borrowed(text);
            sink(&mut parts, QueryWord { word, weights: 0, is_prefix: false })?;
        }
        Ok(parts.finish())
    }

    /// Reads a query whose words are searched for as they are.
    pub fn parse(text: &str) -> Result<TextQuery<'static>> {
        TextQuery::parse_with(text, &mut |parts, word| parts.push_word(word))
    }

    /// Reads a query. `sink` appends what becomes of each word.
    pub fn parse_with(text: &str, sink: OperandSink<'_>) -> Result<TextQuery<'static>> {
        let mut reader = QueryReader { words: LiteralReader::new(text, WordSource::Query) };
        let mut parts = QueryParts::of(text);
        // The waiting operators of each level of parentheses.
        let mut levels: Vec<Vec<QueryItem<'static>>> = vec![Vec::new()];
        let mut is_first = true;
        loop {
            let waiting = levels.last_mut().ok_or_else(|| reader.fault())?;
            match reader.peek() {
                None if is_first => break,
                None => return Err(syntax(format!("no operand in tsquery: \"{text}\""))),
                Some('!') => {
                    reader.skip(1);
                    push_waiting(&mut parts, waiting, QueryItem::Not)?;
                    is_first = false;
                    continue;
                }
                Some('(') => {
                    reader.skip(1);
                    levels.push(Vec::new());
                    is_first = false;
                    continue;
                }
                Some(':') => return Err(reader.fault()),
                Some(_) => {}
            }
            let Some(read) = reader.words.next_word()? else { break };
            let (weights, is_prefix) = reader.marks();
            sink(&mut parts, QueryWord { word: Cow::Owned(read.word), weights, is_prefix })?;
            is_first = false;
            if reader.after_operand(&mut parts, &mut levels)? {
                break;
            }
        }
        Ok(parts.finish())
    }
}

/// Keeps an operator until its operands are read.
pub(super) fn push_waiting(
    parts: &mut QueryParts<'_>,
    waiting: &mut Vec<QueryItem<'static>>,
    operator: QueryItem<'static>,
) -> Result<()> {
    flush(parts, waiting, &operator);
    if waiting.len() == WAITING {
        return Err(SqlError::internal("tsquery stack too small"));
    }
    waiting.push(operator);
    Ok(())
}

impl QueryReader<'_> {
    /// Reads what follows an operand, up to the next operand. Returns whether the text ends.
    fn after_operand(
        &mut self,
        parts: &mut QueryParts<'_>,
        levels: &mut Vec<Vec<QueryItem<'static>>>,
    ) -> Result<bool> {
        loop {
            match self.token()? {
                QueryToken::Operator(operator) => {
                    let waiting = levels.last_mut().ok_or_else(|| self.fault())?;
                    push_waiting(parts, waiting, operator)?;
                    return Ok(false);
                }
                QueryToken::Close if levels.len() == 1 => return Err(self.fault()),
                QueryToken::Close => {
                    flush(parts, &mut levels.pop().unwrap_or_default(), &QueryItem::Or);
                }
                QueryToken::End if levels.len() > 1 => return Err(self.fault()),
                QueryToken::End => {
                    let waiting = levels.last_mut().ok_or_else(|| self.fault())?;
                    flush(parts, waiting, &QueryItem::Or);
                    return Ok(true);
                }
            }
        }
    }
}
