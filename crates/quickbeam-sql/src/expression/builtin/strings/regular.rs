//! Regular expressions: the operators, the `regexp_` functions and SIMILAR TO.

use std::cell::RefCell;
use std::rc::Rc;

use regex::{Captures, Regex, RegexBuilder};

use super::regular_syntax::{
    EscapedQuote, Options, invalid as invalid_expression, translate, translate_similar,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::LetterCase;
use crate::expression::builtin::{Builtin, check_size, count, integer, invalid, strict, text};
use crate::types::{DataType, Value, ValueRef};
use DataType::{Boolean, Char, Integer, Text};

/// What an operator wants of a text and a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedAnswer {
    /// `~`
    Match,
    /// `!~`
    NoMatch,
}

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("~", &[Text, Text], Boolean, |v| operator(v, LetterCase::Kept, WantedAnswer::Match)),
    strict("~*", &[Text, Text], Boolean, |v| operator(v, LetterCase::Ignored, WantedAnswer::Match)),
    strict("!~", &[Text, Text], Boolean, |v| operator(v, LetterCase::Kept, WantedAnswer::NoMatch)),
    strict("!~*", &[Text, Text], Boolean, |v| {
        operator(v, LetterCase::Ignored, WantedAnswer::NoMatch)
    }),
    // The trailing blanks of a CHAR are matched.
    strict("~", &[Char(1), Text], Boolean, |v| operator(v, LetterCase::Kept, WantedAnswer::Match)),
    strict("~*", &[Char(1), Text], Boolean, |v| {
        operator(v, LetterCase::Ignored, WantedAnswer::Match)
    }),
    strict("!~", &[Char(1), Text], Boolean, |v| {
        operator(v, LetterCase::Kept, WantedAnswer::NoMatch)
    }),
    strict("!~*", &[Char(1), Text], Boolean, |v| {
        operator(v, LetterCase::Ignored, WantedAnswer::NoMatch)
    }),
    strict("similar to", &[Text, Text, Text], Boolean, similar),
    strict("regexp_like", &[Text, Text], Boolean, like),
    strict("regexp_like", &[Text, Text, Text], Boolean, like),
    strict("regexp_replace", &[Text, Text, Text], Text, replace),
    strict("regexp_replace", &[Text, Text, Text, Text], Text, replace),
    strict("regexp_replace", &[Text, Text, Text, Integer], Text, replace_from),
    strict("regexp_replace", &[Text, Text, Text, Integer, Integer], Text, replace_from),
    strict("regexp_replace", &[Text, Text, Text, Integer, Integer, Text], Text, replace_from),
    strict("regexp_count", &[Text, Text], Integer, count_of),
    strict("regexp_count", &[Text, Text, Integer], Integer, count_of),
    strict("regexp_count", &[Text, Text, Integer, Text], Integer, count_of),
    strict("regexp_substr", &[Text, Text], Text, part),
    strict("regexp_substr", &[Text, Text, Integer], Text, part),
    strict("regexp_substr", &[Text, Text, Integer, Integer], Text, part),
    strict("regexp_substr", &[Text, Text, Integer, Integer, Text], Text, part),
    strict("regexp_substr", &[Text, Text, Integer, Integer, Text, Integer], Text, part),
    strict("regexp_instr", &[Text, Text], Integer, place),
    strict("regexp_instr", &[Text, Text, Integer], Integer, place),
    strict("regexp_instr", &[Text, Text, Integer, Integer], Integer, place),
    strict("regexp_instr", &[Text, Text, Integer, Integer, Integer], Integer, place),
    strict("regexp_instr", &[Text, Text, Integer, Integer, Integer, Text], Integer, place),
    strict("regexp_instr", &[Text, Text, Integer, Integer, Integer, Text, Integer], Integer, place),
    strict("substring", &[Text, Text], Text, substring),
    strict("substring", &[Text, Text, Text], Text, substring_similar),
];

/// Compiled expressions that a thread keeps.
const KEPT: usize = 32;

/// Maximum bytes of a compiled expression.
const COMPILED_LIMIT: usize = 4 << 20;

#[derive(PartialEq)]
enum PatternSource {
    Regular(Options),
    Similar(Option<char>),
    SimilarParts(Option<char>),
}

struct Compiled {
    source: PatternSource,
    pattern: Box<str>,
    regex: Rc<Regex>,
}

thread_local! {
    /// The expressions compiled last, the most recent one first.
    static COMPILED: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

fn build(pattern: &str, source: &PatternSource) -> Result<Regex> {
    let (translated, options) = match source {
        PatternSource::Regular(options) => translate(pattern, *options)?,
        PatternSource::Similar(escape) => {
            (translate_similar(pattern, *escape, EscapedQuote::Literal)?, Options::default())
        }
        PatternSource::SimilarParts(escape) => {
            (translate_similar(pattern, *escape, EscapedQuote::Separator)?, Options::default())
        }
    };
    let built = RegexBuilder::new(&translated)
        .case_insensitive(options.ignores_case)
        .dot_matches_new_line(!options.stops_at_newline)
        .multi_line(options.anchors_at_lines)
        .size_limit(COMPILED_LIMIT)
        .nest_limit(100)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => invalid_expression("regular expression is too complex"),
        other => {
            let text = other.to_string();
            let reason = text.lines().last().unwrap_or_default();
            invalid_expression(reason.trim_start_matches("error: "))
        }
    })
}

/// Returns the compiled expression, from the thread's cache if it is there.
fn compiled(pattern: &str, source: PatternSource) -> Result<Rc<Regex>> {
    COMPILED.with_borrow_mut(|kept| {
        let known = kept.iter().position(|it| *it.pattern == *pattern && it.source == source);
        if let Some(at) = known {
            kept[..=at].rotate_right(1);
        } else {
            let regex = Rc::new(build(pattern, &source)?);
            kept.truncate(KEPT - 1);
            kept.insert(0, Compiled { source, pattern: pattern.into(), regex });
        }
        kept.first().map(|it| it.regex.clone()).ok_or_else(crate::expression::builtin::mismatch)
    })
}

/// Returns the compiled expression of the second argument, with the options of the argument at
/// `at`, if there is one. `name` is a function without the option `g`.
pub(in crate::expression::builtin) fn expression(
    arguments: &[ValueRef<'_>],
    at: usize,
    name: &str,
) -> Result<Rc<Regex>> {
    let options = match arguments.get(at) {
        Some(_) => Options::parse(text(arguments, at)?)?,
        None => Options::default(),
    };
    if options.is_global {
        let message = format!("{name}() does not support the \"global\" option");
        return Err(invalid(message));
    }
    compiled(text(arguments, 1)?, PatternSource::Regular(options))
}

/// Returns the compiled expression with these options.
pub(in crate::expression::builtin) fn compile(
    pattern: &str,
    options: Options,
) -> Result<Rc<Regex>> {
    compiled(pattern, PatternSource::Regular(options))
}

pub(super) fn operator(
    arguments: &[ValueRef<'_>],
    case: LetterCase,
    wants: WantedAnswer,
) -> Result<Value> {
    let ignores_case = case == LetterCase::Ignored;
    let wanted = wants == WantedAnswer::Match;
    let options = Options { ignores_case, ..Options::default() };
    let regex = compiled(text(arguments, 1)?, PatternSource::Regular(options))?;
    Ok(Value::Boolean(regex.is_match(text(arguments, 0)?) == wanted))
}

fn escape_of(text: &str) -> Result<Option<char>> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (first, None) => Ok(first),
        _ => Err(SqlError::new(SqlState::InvalidEscapeSequence, "invalid escape string")
            .with_hint("Escape string must be empty or one character.")),
    }
}

fn similar(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let escape = escape_of(text(arguments, 2)?)?;
    let regex = compiled(text(arguments, 1)?, PatternSource::Similar(escape))?;
    Ok(Value::Boolean(regex.is_match(text(arguments, 0)?)))
}

fn like(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let regex = expression(arguments, 2, "regexp_like")?;
    Ok(Value::Boolean(regex.is_match(text(arguments, 0)?)))
}

/// Appends a replacement: `\1` to `\9` and `\&` stand for groups and the whole match.
fn append(out: &mut String, replacement: &str, found: &Captures<'_>) -> Result<()> {
    let mut rest = replacement;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let group = |number: usize| found.get(number).map_or("", |group| group.as_str());
        let mut characters = after.chars();
        rest = match characters.next() {
            Some('&') => {
                out.push_str(group(0));
                characters.as_str()
            }
            Some(digit @ '1'..='9') => {
                out.push_str(group(digit.to_digit(10).unwrap_or(0) as usize));
                characters.as_str()
            }
            Some('\\') => {
                out.push('\\');
                characters.as_str()
            }
            // Any other backslash is literal.
            _ => {
                out.push('\\');
                after
            }
        };
    }
    out.push_str(rest);
    check_size(out.len())
}

/// Replaces the `nth` match from byte `start` on, or all matches if `nth` is 0.
fn replaced(
    text: &str,
    regex: &Regex,
    replacement: &str,
    start: usize,
    nth: usize,
) -> Result<Value> {
    let (mut out, mut done, mut number) = (String::new(), 0, 0);
    let mut at = start;
    while at <= text.len()
        && let Some(found) = regex.captures_at(text, at)
    {
        let Some(whole) = found.get(0) else { break };
        number += 1;
        if nth == 0 || number == nth {
            out.push_str(&text[done..whole.start()]);
            append(&mut out, replacement, &found)?;
            done = whole.end();
        }
        if nth == number {
            break;
        }
        at = after(text, whole.start(), whole.end());
    }
    out.push_str(&text[done..]);
    Ok(Value::text(out))
}

/// Returns where the search goes on: an empty match is followed by at least one character.
pub(in crate::expression::builtin) fn after(text: &str, start: usize, end: usize) -> usize {
    if end > start {
        return end;
    }
    end + text[end..].chars().next().map_or(1, char::len_utf8)
}

fn replace(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let options = match arguments.get(3) {
        Some(_) => {
            let letters = text(arguments, 3)?;
            if letters.starts_with(|first: char| first.is_ascii_digit()) {
                let first = letters.chars().next().unwrap_or_default();
                let message = format!("invalid regular expression option: \"{first}\"");
                return Err(invalid(message).with_hint(
                    "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
                ));
            }
            Options::parse(letters)?
        }
        None => Options::default(),
    };
    let nth = usize::from(!options.is_global);
    let options = Options { is_global: false, ..options };
    let regex = compiled(text(arguments, 1)?, PatternSource::Regular(options))?;
    replaced(text(arguments, 0)?, &regex, text(arguments, 2)?, 0, nth)
}

fn replace_from(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let start = byte_of(arguments, 3)?;
    let given = if arguments.len() > 4 { integer(arguments, 4)? } else { 1 };
    let nth = usize::try_from(given).map_err(|_| bad_parameter("n", given))?;
    let options = match arguments.get(5) {
        Some(_) => Options::parse(text(arguments, 5)?)?,
        None => Options::default(),
    };
    // An explicit count overrides the option `g`.
    let nth = if options.is_global && arguments.len() < 5 { 0 } else { nth };
    let options = Options { is_global: false, ..options };
    let regex = compiled(text(arguments, 1)?, PatternSource::Regular(options))?;
    replaced(text(arguments, 0)?, &regex, text(arguments, 2)?, start, nth)
}

#[cold]
fn bad_parameter(name: &str, value: i64) -> SqlError {
    invalid(format!("invalid value for parameter \"{name}\": {value}"))
}

/// Returns the byte at which the character position in argument `at` begins, or 0 without it.
fn byte_of(arguments: &[ValueRef<'_>], at: usize) -> Result<usize> {
    if arguments.len() <= at {
        return Ok(0);
    }
    let (text, start) = (text(arguments, 0)?, integer(arguments, at)?);
    let skipped = usize::try_from(start - 1).map_err(|_| bad_parameter("start", start))?;
    let mut places = text.char_indices().map(|(place, _)| place).chain([text.len()]);
    Ok(places.nth(skipped).unwrap_or(text.len() + 1))
}

/// Returns a positive argument, or 1 without it.
fn positive(arguments: &[ValueRef<'_>], at: usize, name: &str) -> Result<usize> {
    if arguments.len() <= at {
        return Ok(1);
    }
    let given = integer(arguments, at)?;
    usize::try_from(given).ok().filter(|n| *n > 0).ok_or_else(|| bad_parameter(name, given))
}

fn count_of(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (text, start) = (text(arguments, 0)?, byte_of(arguments, 2)?);
    let regex = expression(arguments, 3, "regexp_count")?;
    let (mut at, mut number) = (start, 0);
    while at <= text.len()
        && let Some(found) = regex.find_at(text, at)
    {
        number += 1;
        at = after(text, found.start(), found.end());
    }
    count(number)
}

/// Returns the range of a group of the nth match.
fn nth_match(
    text: &str,
    regex: &Regex,
    start: usize,
    nth: usize,
    group: usize,
) -> Option<std::ops::Range<usize>> {
    let (mut at, mut number) = (start, 0);
    while at <= text.len() {
        let found = regex.captures_at(text, at)?;
        let whole = found.get(0)?;
        number += 1;
        if number == nth {
            return found.get(group).map(|group| group.range());
        }
        at = after(text, whole.start(), whole.end());
    }
    None
}

/// Returns the number of the group that is asked for; 0 is the whole match.
fn group(arguments: &[ValueRef<'_>], at: usize) -> Result<usize> {
    if arguments.len() <= at {
        return Ok(0);
    }
    let given = integer(arguments, at)?;
    usize::try_from(given).map_err(|_| bad_parameter("subexpr", given))
}

fn part(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (start, nth) = (byte_of(arguments, 2)?, positive(arguments, 3, "n")?);
    let (regex, group) = (expression(arguments, 4, "regexp_substr")?, group(arguments, 5)?);
    let text = text(arguments, 0)?;
    let found = nth_match(text, &regex, start, nth, group);
    Ok(found.map_or(Value::Null, |range| Value::text(&text[range])))
}

fn place(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let (start, nth) = (byte_of(arguments, 2)?, positive(arguments, 3, "n")?);
    let at_end = match arguments.get(4) {
        None => 0,
        Some(_) => integer(arguments, 4)?,
    };
    if !(0..=1).contains(&at_end) {
        return Err(bad_parameter("endoption", at_end));
    }
    let (regex, group) = (expression(arguments, 5, "regexp_instr")?, group(arguments, 6)?);
    let text = text(arguments, 0)?;
    let Some(range) = nth_match(text, &regex, start, nth, group) else { return count(0) };
    let place = if at_end == 1 { range.end } else { range.start };
    count(text[..place].chars().count() + 1)
}

/// Returns the first group of the first match, or the whole match of an expression without groups.
fn first_part(text: &str, regex: &Regex) -> Value {
    let group = usize::from(regex.captures_len() > 1);
    let found = nth_match(text, regex, 0, 1, group);
    found.map_or(Value::Null, |range| Value::text(&text[range]))
}

fn substring(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let regex = compiled(text(arguments, 1)?, PatternSource::Regular(Options::default()))?;
    Ok(first_part(text(arguments, 0)?, &regex))
}

fn substring_similar(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let escape = escape_of(text(arguments, 2)?)?;
    let regex = compiled(text(arguments, 1)?, PatternSource::SimilarParts(escape))?;
    Ok(first_part(text(arguments, 0)?, &regex))
}
