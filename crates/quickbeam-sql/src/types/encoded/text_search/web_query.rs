//! Queries as for a search engine: `-` before what must not be there, quotes around a phrase, `or`.
//!
//! No text is an error here.

use std::borrow::Cow;

use super::query_text::{OperandSink, QueryParts, push_waiting};
use super::words::{LiteralReader, WordSource, is_operator, is_space};
use super::{QueryItem, QueryWord, TextQuery};
use crate::error::Result;

/// Returns what follows the word `or`, if it stands between operands.
fn after_or(rest: &str) -> Option<&str> {
    let word = rest.get(..2).filter(|word| word.eq_ignore_ascii_case("or"))?;
    let after = &rest[word.len()..];
    let next = after.chars().next()?;
    if matches!(next, '-' | '_') || next.is_alphanumeric() {
        return None;
    }
    let operand = after[next.len_utf8()..].trim_start_matches(is_space);
    (!operand.is_empty()).then_some(after)
}

fn word_of(word: &str) -> QueryWord<'_> {
    QueryWord { word: Cow::Borrowed(word), weights: 0, is_prefix: false }
}

impl TextQuery<'_> {
    /// Reads a query as for a search engine. `sink` appends what becomes of each operand.
    pub fn parse_web_with(text: &str, sink: OperandSink<'_>) -> Result<TextQuery<'static>> {
        let mut words = LiteralReader::new(text, WordSource::Web);
        let mut parts = QueryParts::of(text);
        let mut waiting: Vec<QueryItem<'static>> = Vec::new();
        let (mut is_first, mut is_operand) = (true, true);
        loop {
            let rest = words.rest().trim_start_matches(is_space);
            words.move_to(rest);
            let next = rest.chars().next();
            if !is_operand {
                let Some(next) = next else { break };
                if is_operator(next) {
                    words.move_to(&rest[1..]);
                    continue;
                }
                let operator = match after_or(rest) {
                    Some(after) => {
                        words.move_to(after);
                        QueryItem::Or
                    }
                    None => QueryItem::And,
                };
                push_waiting(&mut parts, &mut waiting, operator)?;
                is_operand = true;
                continue;
            }
            match next {
                None => {
                    if !is_first {
                        parts.push_stop();
                    }
                    break;
                }
                Some('-') => {
                    words.move_to(&rest[1..]);
                    push_waiting(&mut parts, &mut waiting, QueryItem::Not)?;
                    is_first = false;
                    continue;
                }
                Some('"') => {
                    let rest = &rest[1..];
                    let (phrase, after) = rest.split_once('"').unwrap_or((rest, ""));
                    words.move_to(after);
                    sink(&mut parts, word_of(phrase))?;
                }
                Some(letter) if is_operator(letter) => {
                    words.move_to(&rest[1..]);
                    is_first = false;
                    continue;
                }
                Some(_) => match words.next_word()? {
                    Some(read) => sink(&mut parts, word_of(&read.word))?,
                    None => break,
                },
            }
            (is_first, is_operand) = (false, false);
        }
        parts.push_all(&mut waiting);
        Ok(parts.finish())
    }
}
