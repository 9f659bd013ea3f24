//! Functions of regular expressions that return arrays or rows.

use super::regular::{after, compile, expression};
use crate::error::Result;
use crate::expression::builtin::{Builtin, Implementation, strict, text};
use crate::expression::regex::{RegexOptions, RegularExpression, TextSpan};
use crate::types::{Array, DataType, ElementType, Value, ValueRef};
use DataType::Text;

/// How many matches are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchCount {
    /// All of them.
    All,
    /// The first one.
    First,
}

impl From<bool> for MatchCount {
    fn from(is_global: bool) -> MatchCount {
        if is_global { MatchCount::All } else { MatchCount::First }
    }
}

const TEXTS: DataType = DataType::Array(ElementType::TEXT);

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("regexp_match", &[Text, Text], TEXTS, first),
    strict("regexp_match", &[Text, Text, Text], TEXTS, first),
    strict("regexp_split_to_array", &[Text, Text], TEXTS, split),
    Builtin::new(
        "regexp_split_to_array",
        &[Text, Text, Text],
        TEXTS,
        Implementation::Strict(split),
    ),
];

fn texts(values: Vec<ValueRef<'_>>) -> Result<Value> {
    Ok(Value::Array(Array::new(ElementType::TEXT, values)?))
}

/// Returns the groups of each match, or the whole match of an expression without groups.
fn groups<'t>(
    text: &'t str,
    regex: &RegularExpression,
    count: MatchCount,
) -> Result<Vec<Vec<ValueRef<'t>>>> {
    let (mut rows, mut at) = (Vec::new(), 0);
    let first = usize::from(regex.groups() > 0);
    let mut matches = regex.matches(text);
    while at <= text.len()
        && let Some(spans) = matches.captures_at(at)?
    {
        let group = |span: &Option<TextSpan>| {
            span.map_or(ValueRef::Null, |(start, end)| ValueRef::Text(&text[start..end]))
        };
        rows.push(spans[first..].iter().map(group).collect());
        let Some((start, end)) = spans[0] else { break };
        if count == MatchCount::First {
            break;
        }
        at = after(text, start, end);
    }
    Ok(rows)
}

fn first(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let regex = expression(arguments, 2, "regexp_match")?;
    let found = groups(text(arguments, 0)?, &regex, MatchCount::First)?.into_iter().next();
    found.map_or(Ok(Value::Null), texts)
}

/// Returns the groups of the matches of `regexp_matches`.
pub(in crate::expression::builtin) fn captures_of<'v>(
    arguments: &[ValueRef<'v>],
) -> Result<Vec<Vec<ValueRef<'v>>>> {
    let options = match arguments.get(2) {
        Some(_) => RegexOptions::parse(text(arguments, 2)?)?,
        None => RegexOptions::default(),
    };
    let is_global = options.is_global;
    let regex = compile(text(arguments, 1)?, RegexOptions { is_global: false, ..options })?;
    groups(text(arguments, 0)?, &regex, MatchCount::from(is_global))
}

/// Returns the parts of a text between matches. An empty match at the end of the text or of the
/// match before it does not separate.
pub(in crate::expression::builtin) fn split_regular<'v>(
    arguments: &[ValueRef<'v>],
    name: &str,
) -> Result<Vec<&'v str>> {
    let regex = expression(arguments, 2, name)?;
    let text = text(arguments, 0)?;
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    let mut matches = regex.matches(text);
    while at <= text.len()
        && let Some((found, end)) = matches.find_at(at)?
    {
        if found < text.len() && end > start {
            parts.push(&text[start..found]);
            start = end;
        }
        at = after(text, found, end);
    }
    parts.push(&text[start..]);
    Ok(parts)
}

fn split(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let parts = split_regular(arguments, "regexp_split_to_array")?;
    texts(parts.into_iter().map(ValueRef::Text).collect())
}
