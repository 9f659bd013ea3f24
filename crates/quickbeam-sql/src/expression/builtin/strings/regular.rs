//! Regular expressions: the operators, the `regexp_` functions and SIMILAR TO.

use std::cell::RefCell;
use std::rc::Rc;

use super::similar::{EscapedQuote, translate_similar};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::LetterCase;
use crate::expression::builtin::{Builtin, check_size, count, integer, invalid, strict, text};
use crate::expression::regex::{RegexOptions, RegularExpression, TextSpan};
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

#[derive(PartialEq)]
enum PatternSource {
    Regular(RegexOptions),
    Similar(Option<char>),
    SimilarParts(Option<char>),
}

struct Compiled {
    source: PatternSource,
    pattern: Box<str>,
    regex: Rc<RegularExpression>,
}

thread_local! {
    /// The expressions compiled last, the most recent one first.
    static COMPILED: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

fn build(pattern: &str, source: &PatternSource) -> Result<RegularExpression> {
    let (escape, quote) = match source {
        PatternSource::Regular(options) => return RegularExpression::new(pattern, *options),
        PatternSource::Similar(escape) => (escape, EscapedQuote::Literal),
        PatternSource::SimilarParts(escape) => (escape, EscapedQuote::Separator),
    };
    let translated = translate_similar(pattern, *escape, quote)?;
    RegularExpression::new(&translated, RegexOptions::default())
}

/// Returns the compiled expression, from the thread's cache if it is there.
fn compiled(pattern: &str, source: PatternSource) -> Result<Rc<RegularExpression>> {
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
) -> Result<Rc<RegularExpression>> {
    let options = match arguments.get(at) {
        Some(_) => RegexOptions::parse(text(arguments, at)?)?,
        None => RegexOptions::default(),
    };
    if options.is_global {
        let error = invalid(format!("{name}() does not support the \"global\" option"));
        return Err(match name {
            "regexp_match" => error.with_hint("Use the regexp_matches function instead."),
            _ => error,
        });
    }
    compiled(text(arguments, 1)?, PatternSource::Regular(options))
}

/// Returns the compiled expression with these options.
pub(in crate::expression::builtin) fn compile(
    pattern: &str,
    options: RegexOptions,
) -> Result<Rc<RegularExpression>> {
    compiled(pattern, PatternSource::Regular(options))
}

pub(super) fn operator(
    arguments: &[ValueRef<'_>],
    case: LetterCase,
    wants: WantedAnswer,
) -> Result<Value> {
    let ignores_case = case == LetterCase::Ignored;
    let wanted = wants == WantedAnswer::Match;
    let options = RegexOptions { ignores_case, ..RegexOptions::default() };
    let regex = compiled(text(arguments, 1)?, PatternSource::Regular(options))?;
    Ok(Value::Boolean(regex.is_match(text(arguments, 0)?)? == wanted))
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
    Ok(Value::Boolean(regex.is_match(text(arguments, 0)?)?))
}

fn like(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let regex = expression(arguments, 2, "regexp_like")?;
    Ok(Value::Boolean(regex.is_match(text(arguments, 0)?)?))
}

/// Appends a replacement: `\1` to `\9` and `\&` stand for groups and the whole match.
fn append(
    out: &mut String,
    replacement: &str,
    (text, spans): (&str, &[Option<TextSpan>]),
) -> Result<()> {
    let mut rest = replacement;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let span = |number: usize| spans.get(number).copied().flatten();
        let group = |number: usize| span(number).map_or("", |(start, end)| &text[start..end]);
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

/// Returns whether a replacement has parts of groups.
fn has_groups(replacement: &str) -> bool {
    let bytes = replacement.as_bytes();
    bytes.windows(2).any(|pair| pair[0] == b'\\' && pair[1].is_ascii_digit())
}

/// Replaces the `nth` match from byte `start` on, or all matches if `nth` is 0.
fn replaced(
    text: &str,
    regex: &RegularExpression,
    replacement: &str,
    start: usize,
    nth: usize,
) -> Result<Value> {
    let (mut out, mut done, mut number) = (String::new(), 0, 0);
    let has_groups = has_groups(replacement);
    let mut matches = regex.matches(text);
    let mut at = start;
    while at <= text.len() {
        let whole;
        let spans = if has_groups {
            matches.captures_at(at)?
        } else {
            whole = matches.find_at(at)?.map(|span| [Some(span)]);
            whole.as_ref().map(|span| &span[..])
        };
        let Some((spans, (found, end))) = spans.and_then(|it| it[0].map(|whole| (it, whole)))
        else {
            break;
        };
        number += 1;
        if nth == 0 || number == nth {
            out.push_str(&text[done..found]);
            append(&mut out, replacement, (text, spans))?;
            done = end;
        }
        if nth == number {
            break;
        }
        at = after(text, found, end);
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
            RegexOptions::parse(letters)?
        }
        None => RegexOptions::default(),
    };
    let nth = usize::from(!options.is_global);
    let options = RegexOptions { is_global: false, ..options };
    let regex = compiled(text(arguments, 1)?, PatternSource::Regular(options))?;
    replaced(text(arguments, 0)?, &regex, text(arguments, 2)?, 0, nth)
}

fn replace_from(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let start = byte_of(arguments, 3)?;
    let given = if arguments.len() > 4 { integer(arguments, 4)? } else { 1 };
    let nth = usize::try_from(given).map_err(|_| bad_parameter("n", given))?;
    let options = match arguments.get(5) {
        Some(_) => RegexOptions::parse(text(arguments, 5)?)?,
        None => RegexOptions::default(),
    };
    // An explicit count overrides the option `g`.
    let nth = if options.is_global && arguments.len() < 5 { 0 } else { nth };
    let options = RegexOptions { is_global: false, ..options };
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
    let mut matches = regex.matches(text);
    while at <= text.len()
        && let Some((found, end)) = matches.find_at(at)?
    {
        number += 1;
        at = after(text, found, end);
    }
    count(number)
}

/// Returns the span of a group of the nth match.
fn nth_match(
    text: &str,
    regex: &RegularExpression,
    start: usize,
    nth: usize,
    group: usize,
) -> Result<Option<TextSpan>> {
    let (mut at, mut number) = (start, 0);
    let mut matches = regex.matches(text);
    while at <= text.len() {
        number += 1;
        if number == nth && group > 0 {
            let spans = matches.captures_at(at)?;
            return Ok(spans.and_then(|spans| spans.get(group).copied().flatten()));
        }
        let Some((found, end)) = matches.find_at(at)? else { break };
        if number == nth {
            return Ok(Some((found, end)));
        }
        at = after(text, found, end);
    }
    Ok(None)
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
    let found = nth_match(text, &regex, start, nth, group)?;
    Ok(found.map_or(Value::Null, |(start, end)| Value::text(&text[start..end])))
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
    let found = nth_match(text, &regex, start, nth, group)?;
    let Some((start, end)) = found else { return count(0) };
    let place = if at_end == 1 { end } else { start };
    count(text[..place].chars().count() + 1)
}

/// Returns the first group of the first match, or the whole match of an expression without groups.
fn first_part(text: &str, regex: &RegularExpression) -> Result<Value> {
    let group = usize::from(regex.groups() > 0);
    let found = nth_match(text, regex, 0, 1, group)?;
    Ok(found.map_or(Value::Null, |(start, end)| Value::text(&text[start..end])))
}

fn substring(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let regex = compiled(text(arguments, 1)?, PatternSource::Regular(RegexOptions::default()))?;
    first_part(text(arguments, 0)?, &regex)
}

fn substring_similar(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let escape = escape_of(text(arguments, 2)?)?;
    let regex = compiled(text(arguments, 1)?, PatternSource::SimilarParts(escape))?;
    first_part(text(arguments, 0)?, &regex)
}
