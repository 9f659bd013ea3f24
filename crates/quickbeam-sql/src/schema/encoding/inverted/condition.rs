//! Conditions on the keys of an inverted index.

use super::json_keys::{self, name_key};
use super::{element_keys, prefix_key, unreadable, word_key};
use crate::error::{Result, SqlError};
use crate::schema::encoding::key_encoding::{KeyRange, prefix_end};
use crate::schema::{InvertedOperator, OperatorClass};
use crate::types::encoded::text_search::{QueryItem, QueryWord, TextQuery};
use crate::types::{EncodedKind, ValueRef};

/// A condition on the keys of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCondition {
    /// There is that key.
    Key(Vec<u8>),
    /// There is a key that begins so.
    Prefix(Vec<u8>),
    /// All of them hold.
    All(Vec<KeyCondition>),
    /// One of them holds. Without any, none does.
    Any(Vec<KeyCondition>),
}

impl KeyCondition {
    /// Nothing satisfies it.
    #[must_use]
    pub fn never() -> KeyCondition {
        KeyCondition::Any(Vec::new())
    }

    /// Returns the range of entries whose keys begin so: of all rows with a whole key.
    #[must_use]
    pub fn range_of(beginning: &[u8]) -> KeyRange {
        let mut high = beginning.to_vec();
        let has_end = prefix_end(&mut high);
        KeyRange { low: beginning.to_vec(), high: has_end.then_some(high) }
    }

    /// Returns the condition on keys that begin with a byte before those of this condition.
    #[must_use]
    pub fn after(mut self, prefix: Option<u8>) -> KeyCondition {
        if let Some(prefix) = prefix {
            self.begin_with(prefix);
        }
        self
    }

    fn begin_with(&mut self, prefix: u8) {
        match self {
            KeyCondition::Key(key) | KeyCondition::Prefix(key) => key.insert(0, prefix),
            KeyCondition::All(list) | KeyCondition::Any(list) => {
                list.iter_mut().for_each(|part| part.begin_with(prefix));
            }
        }
    }

    /// Returns about how many entries rows with such keys have. `count` counts those in a range.
    pub fn estimate<E>(
        &self,
        count: &mut dyn FnMut(&KeyRange) -> std::result::Result<f64, E>,
    ) -> std::result::Result<f64, E> {
        Ok(match self {
            KeyCondition::Key(key) | KeyCondition::Prefix(key) => {
                count(&KeyCondition::range_of(key))?
            }
            KeyCondition::All(list) => {
                let mut least = f64::INFINITY;
                for part in list {
                    least = least.min(part.estimate(count)?);
                }
                least
            }
            KeyCondition::Any(list) => {
                let mut sum = 0.0;
                for part in list {
                    sum += part.estimate(count)?;
                }
                sum
            }
        })
    }

    /// Joins conditions of which one has to hold.
    #[must_use]
    pub fn any_of(mut list: Vec<KeyCondition>) -> KeyCondition {
        match list.pop() {
            Some(only) if list.is_empty() => only,
            last => {
                list.extend(last);
                KeyCondition::Any(list)
            }
        }
    }

    /// Joins conditions of which all have to hold.
    #[must_use]
    pub fn all_of(mut list: Vec<KeyCondition>) -> Option<KeyCondition> {
        match list.len() {
            0 | 1 => list.pop(),
            _ => Some(KeyCondition::All(list)),
        }
    }
}

fn keys(keys: Vec<Vec<u8>>) -> Vec<KeyCondition> {
    keys.into_iter().map(KeyCondition::Key).collect()
}

/// Returns what the keys of a value satisfy for which the condition holds, whose other operand is
/// `operand`. Returns `None` if that says nothing about the keys: each row may satisfy it.
pub(crate) fn condition_on_keys(
    class: OperatorClass,
    operator: InvertedOperator,
    operand: ValueRef<'_>,
) -> Result<Option<KeyCondition>> {
    use InvertedOperator::{Contains, Equals, HasAllKeys, HasAnyKey, HasKey, Matches, Overlaps};
    Ok(match (class, operator, operand) {
        // The operators are strict.
        (_, _, ValueRef::Null) => Some(KeyCondition::never()),
        (OperatorClass::TextVector, Matches, ValueRef::Encoded(encoded, bytes))
            if encoded.kind() == EncodedKind::TsQuery =>
        {
            of_query(&TextQuery::read(bytes).ok_or_else(|| unreadable("tsquery"))?)
        }
        // Nothing contains NULL.
        (OperatorClass::Array, Contains, ValueRef::Array(array))
            if array.iter().any(ValueRef::is_null) =>
        {
            Some(KeyCondition::never())
        }
        // Equal arrays have the same elements. An array without any has no keys.
        (OperatorClass::Array, Contains | Equals, ValueRef::Array(array)) => {
            KeyCondition::all_of(keys(element_keys(array)?))
        }
        (OperatorClass::Array, Overlaps, ValueRef::Array(array)) => {
            Some(KeyCondition::Any(keys(element_keys(array)?)))
        }
        (OperatorClass::Jsonb, Contains, ValueRef::Jsonb(text)) => {
            KeyCondition::all_of(keys(json_keys::parts(text)?))
        }
        (OperatorClass::JsonbPath, Contains, ValueRef::Jsonb(text)) => {
            KeyCondition::all_of(keys(json_keys::paths(text)?))
        }
        (OperatorClass::Jsonb, HasKey, ValueRef::Text(name)) => {
            Some(KeyCondition::Key(name_key(name)))
        }
        (OperatorClass::Jsonb, HasAnyKey | HasAllKeys, ValueRef::Array(names)) => {
            let names = names.iter().filter_map(|name| match name {
                ValueRef::Text(name) => Some(KeyCondition::Key(name_key(name))),
                _ => None,
            });
            match operator {
                HasAnyKey => Some(KeyCondition::Any(names.collect())),
                _ => KeyCondition::all_of(names.collect()),
            }
        }
        _ => return Err(SqlError::internal("an operand that an inverted index does not know")),
    })
}

/// Alternations of AND and OR in a query beyond which a part of it says nothing about keys.
const MAX_LEVELS: usize = 50;

/// What a part of a query asks of keys, and its alternations of AND and OR.
type KeyPartOfQuery = Option<(KeyCondition, usize)>;

/// Returns what the words of a document satisfy that matches a query. What a NOT stands before says
/// nothing.
fn of_query(query: &TextQuery<'_>) -> Option<KeyCondition> {
    if query.items.is_empty() {
        return Some(KeyCondition::never());
    }
    let mut operands: Vec<KeyPartOfQuery> = Vec::new();
    for item in &query.items {
        let made = match item {
            QueryItem::Word(word) => of_word(word).map(|condition| (condition, 0)),
            QueryItem::Not => {
                operands.pop()?;
                None
            }
            QueryItem::And | QueryItem::Phrase(_) => match (operands.pop()?, operands.pop()?) {
                (Some(right), Some(left)) => Some(joined(left, right, KeyCondition::All)),
                (one, other) => one.or(other),
            },
            QueryItem::Or => match (operands.pop()?, operands.pop()?) {
                (Some(right), Some(left)) => Some(joined(left, right, KeyCondition::Any)),
                _ => None,
            },
        };
        operands.push(made.filter(|(_, levels)| *levels <= MAX_LEVELS));
    }
    operands.pop()?.map(|(condition, _)| condition)
}

/// Joins two conditions into one list. One that is such a list already is continued.
fn joined(
    left: (KeyCondition, usize),
    right: (KeyCondition, usize),
    list_of: fn(Vec<KeyCondition>) -> KeyCondition,
) -> (KeyCondition, usize) {
    let is_same = |part: &KeyCondition| match part {
        KeyCondition::All(_) => matches!(list_of(Vec::new()), KeyCondition::All(_)),
        KeyCondition::Any(_) => matches!(list_of(Vec::new()), KeyCondition::Any(_)),
        KeyCondition::Key(_) | KeyCondition::Prefix(_) => false,
    };
    let (mut list, mut levels) = (Vec::new(), 0);
    for (part, inner) in [left, right] {
        let is_continued = is_same(&part);
        levels = levels.max(if is_continued { inner } else { inner + 1 });
        match part {
            KeyCondition::All(parts) | KeyCondition::Any(parts) if is_continued => {
                match list.is_empty() {
                    true => list = parts,
                    false => list.extend(parts),
                }
            }
            other => list.push(other),
        }
    }
    (list_of(list), levels)
}

fn of_word(word: &QueryWord<'_>) -> Option<KeyCondition> {
    if !word.is_prefix {
        return Some(KeyCondition::Key(word_key(&word.word)));
    }
    let key = prefix_key(&word.word);
    (!key.is_empty()).then_some(KeyCondition::Prefix(key))
}
