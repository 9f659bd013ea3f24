//! `ts_headline`, and the list of its options.

use super::parsing::{CONFIGURATION, configuration, current};
use super::{QUERY, query};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Frame;
use crate::expression::builtin::json::json_functions::{jsonb, read};
use crate::expression::builtin::{Builtin, check_size, invalid, stable, strict, text};
use crate::expression::text_search::{Configuration, HeadlineOptions, headline_of};
use crate::types::encoded::text_search::TextQuery;
use crate::types::json::{Json, JsonKind, write_string};
use crate::types::{DataType, TextSettings, Value, ValueRef, parse_value};
use DataType::{Json as JsonText, Jsonb, Text};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("ts_headline", &[CONFIGURATION, Text, QUERY, Text], Text, |v| of_text(None, v)),
    strict("ts_headline", &[CONFIGURATION, Text, QUERY], Text, |v| of_text(None, v)),
    stable("ts_headline", &[Text, QUERY, Text], Text, |frame, v| of_text(Some(frame), v)),
    stable("ts_headline", &[Text, QUERY], Text, |frame, v| of_text(Some(frame), v)),
    strict("ts_headline", &[CONFIGURATION, Jsonb, QUERY, Text], Jsonb, |v| of_json(None, v)),
    strict("ts_headline", &[CONFIGURATION, Jsonb, QUERY], Jsonb, |v| of_json(None, v)),
    stable("ts_headline", &[Jsonb, QUERY, Text], Jsonb, |frame, v| of_json(Some(frame), v)),
    stable("ts_headline", &[Jsonb, QUERY], Jsonb, |frame, v| of_json(Some(frame), v)),
    strict("ts_headline", &[CONFIGURATION, JsonText, QUERY, Text], JsonText, |v| of_json(None, v)),
    strict("ts_headline", &[CONFIGURATION, JsonText, QUERY], JsonText, |v| of_json(None, v)),
    stable("ts_headline", &[JsonText, QUERY, Text], JsonText, |frame, v| of_json(Some(frame), v)),
    stable("ts_headline", &[JsonText, QUERY], JsonText, |frame, v| of_json(Some(frame), v)),
];

/// A call, without its document.
struct Request<'v> {
    configuration: Configuration,
    query: TextQuery<'v>,
    options: Vec<(String, String)>,
    /// The place of the document among the arguments.
    document: usize,
}

impl<'v> Request<'v> {
    /// Reads the arguments. Without a session the first one is the configuration.
    fn read(session: Option<&Frame<'_>>, arguments: &[ValueRef<'v>]) -> Result<Request<'v>> {
        let (configuration, document) = match session {
            Some(frame) => (current(frame)?, 0),
            None => (configuration(arguments.first())?, 1),
        };
        let query = query(arguments, document + 1)?;
        let options = match arguments.len() > document + 2 {
            true => option_list(text(arguments, document + 2)?)?,
            false => Vec::new(),
        };
        Ok(Request { configuration, query, options, document })
    }

    fn headline(&self, text: &str) -> Result<String> {
        let options = headline_options(&self.options)?;
        let headline = headline_of(self.configuration, text, &self.query, &options);
        check_size(headline.len())?;
        Ok(headline)
    }

    /// Writes a JSON value whose strings are headlines.
    fn write(&self, value: &Json<'_>, out: &mut String) -> Result<()> {
        match &value.kind {
            JsonKind::Null | JsonKind::Boolean(_) | JsonKind::Number => out.push_str(value.text),
            JsonKind::String(text) => write_string(out, &self.headline(text)?),
            JsonKind::Array(list) => {
                out.push('[');
                for (number, element) in list.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    self.write(element, out)?;
                }
                out.push(']');
            }
            JsonKind::Object(members) => {
                out.push('{');
                for (number, (name, member)) in members.iter().enumerate() {
                    out.push_str(if number > 0 { "," } else { "" });
                    write_string(out, name);
                    out.push(':');
                    self.write(member, out)?;
                }
                out.push('}');
            }
        }
        check_size(out.len())
    }
}

fn of_text(session: Option<&Frame<'_>>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let request = Request::read(session, arguments)?;
    Ok(Value::text(request.headline(text(arguments, request.document)?)?))
}

fn of_json(session: Option<&Frame<'_>>, arguments: &[ValueRef<'_>]) -> Result<Value> {
    let request = Request::read(session, arguments)?;
    let mut out = String::new();
    request.write(&read(arguments, request.document)?, &mut out)?;
    match arguments.get(request.document) {
        Some(ValueRef::Jsonb(_)) => jsonb(&out),
        _ => Ok(Value::json(out)),
    }
}

/// Bytes of a mark, as in PostgreSQL.
const MAX_MARK: usize = 32767;

/// Returns the options that a list of names and values sets.
fn headline_options(list: &[(String, String)]) -> Result<HeadlineOptions> {
    let mut options = HeadlineOptions::default();
    let number = |value: &str| match parse_value(value, DataType::Integer, &TextSettings::DEFAULT)?
    {
        Value::Integer(number) => Ok(number),
        _ => Err(SqlError::internal("an integer of another type")),
    };
    for (name, value) in list {
        match &name.to_ascii_lowercase()[..] {
            "maxwords" => options.max_words = number(value)?,
            "minwords" => options.min_words = number(value)?,
            "shortword" => options.short_word = number(value)?,
            "maxfragments" => options.max_fragments = number(value)?,
            "startsel" => options.start.clone_from(value),
            "stopsel" => options.stop.clone_from(value),
            "fragmentdelimiter" => options.delimiter.clone_from(value),
            "highlightall" => {
                let truths = ["1", "on", "true", "t", "y", "yes"];
                options.highlights_all = truths.contains(&&value.to_ascii_lowercase()[..]);
            }
            _ => return Err(invalid(format!("unrecognized headline parameter: \"{name}\""))),
        }
    }
    let marks = [
        ("StartSel", &options.start),
        ("StopSel", &options.stop),
        ("FragmentDelimiter", &options.delimiter),
    ];
    if let Some((name, _)) = marks.into_iter().find(|(_, mark)| mark.len() > MAX_MARK) {
        return Err(invalid(format!("value for \"{name}\" is too long")));
    }
    // The numbers do not matter to a headline of the whole text.
    let problem = match &options {
        HeadlineOptions { highlights_all: true, .. } => return Ok(options),
        it if it.min_words >= it.max_words => "MinWords should be less than MaxWords",
        it if it.min_words <= 0 => "MinWords should be positive",
        it if it.short_word < 0 => "ShortWord should be >= 0",
        it if it.max_fragments < 0 => "MaxFragments should be >= 0",
        _ => return Ok(options),
    };
    Err(invalid(problem))
}

/// Reads a list of names and values, `StartSel = <b>, MaxWords = 10`.
fn option_list(list: &str) -> Result<Vec<(String, String)>> {
    let malformed = || {
        let message = format!("invalid parameter list format: \"{list}\"");
        SqlError::new(SqlState::SyntaxError, message)
    };
    let mut options = Vec::new();
    let mut rest = list.trim_start_matches(is_between);
    while !rest.is_empty() {
        let name = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (name, after) = unquoted(quoted, '"').ok_or_else(malformed)?;
                rest = after;
                name
            }
            None => {
                // The first character is part of the name, whatever it is.
                let first = rest.chars().next().map_or(0, char::len_utf8);
                let (_, others) = rest.split_at(first);
                let is_end = |c: char| c == '=' || is_space(c);
                let end = others.find(is_end).ok_or_else(malformed)? + first;
                let (name, after) = rest.split_at(end);
                rest = after;
                name.to_owned()
            }
        };
        rest = rest.trim_start_matches(is_space).strip_prefix('=').ok_or_else(malformed)?;
        rest = rest.trim_start_matches(is_space);
        let quote = match rest.as_bytes() {
            [b'\'', ..] => Some(('\'', 1)),
            [b'E', b'\'', ..] => Some(('\'', 2)),
            [b'"', ..] => Some(('"', 1)),
            [] => return Err(malformed()),
            _ => None,
        };
        let value = match quote {
            Some((quote, length)) => {
                let after = rest.get(length..).unwrap_or_default();
                let (value, after) = unquoted(after, quote).ok_or_else(malformed)?;
                rest = after;
                value
            }
            None => {
                let first = rest.chars().next().map_or(0, char::len_utf8);
                let others = rest.get(first..).unwrap_or_default();
                let end = others.find(is_between).map_or(rest.len(), |end| end + first);
                let (value, after) = rest.split_at(end);
                rest = after;
                // An integer is read as one.
                value.parse::<i32>().map_or_else(|_| value.to_owned(), |it| it.to_string())
            }
        };
        options.push((name, value));
        rest = rest.trim_start_matches(is_between);
    }
    Ok(options)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}

fn is_between(c: char) -> bool {
    c == ',' || is_space(c)
}

/// Reads up to a quote. Returns the text before it, in which two quotes are one, and what follows.
/// In single quotes two backslashes are one, too.
fn unquoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let is_twice = letters.peek().is_some_and(|(_, next)| *next == letter);
        if letter == quote && !is_twice {
            return Some((out, text.get(at + letter.len_utf8()..).unwrap_or_default()));
        }
        out.push(letter);
        if is_twice && (letter == quote || letter == '\\' && quote == '\'') {
            letters.next();
        }
    }
    None
}
