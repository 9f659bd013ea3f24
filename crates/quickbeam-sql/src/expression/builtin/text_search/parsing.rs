//! Functions that make vectors and queries of texts, by a configuration.

use super::{QUERY, VECTOR, query, vector};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Frame;
use crate::expression::builtin::{Builtin, invalid, mismatch, stable, strict, text};
use crate::expression::text_search::{Configuration, DocumentWords, MorphJoin, query_sink};
use crate::types::encoded::text_search::{TextQuery, is_match};
use crate::types::json::{Json, JsonKind};
use crate::types::{DataType, SystemType, Value, ValueRef};
use DataType::{Boolean, Json as JsonText, Jsonb, Text};

pub(in crate::expression::builtin) const CONFIGURATION: DataType =
    DataType::System(SystemType::Regconfig);

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    stable("get_current_ts_config", &[], CONFIGURATION, |frame, _| {
        Ok(Value::Oid(current(frame)?.oid()))
    }),
    strict("to_tsvector", &[CONFIGURATION, Text], VECTOR, |v| document(given(v)?, text(v, 1)?)),
    stable("to_tsvector", &[Text], VECTOR, |frame, v| document(current(frame)?, text(v, 0)?)),
    strict("to_tsvector", &[CONFIGURATION, JsonText], VECTOR, |v| strings(given(v)?, v, 1)),
    strict("to_tsvector", &[CONFIGURATION, Jsonb], VECTOR, |v| strings(given(v)?, v, 1)),
    stable("to_tsvector", &[JsonText], VECTOR, |frame, v| strings(current(frame)?, v, 0)),
    stable("to_tsvector", &[Jsonb], VECTOR, |frame, v| strings(current(frame)?, v, 0)),
    strict("json_to_tsvector", &[CONFIGURATION, JsonText, Jsonb], VECTOR, |v| {
        chosen(given(v)?, v, 1)
    }),
    strict("jsonb_to_tsvector", &[CONFIGURATION, Jsonb, Jsonb], VECTOR, |v| {
        chosen(given(v)?, v, 1)
    }),
    stable("json_to_tsvector", &[JsonText, Jsonb], VECTOR, |frame, v| {
        chosen(current(frame)?, v, 0)
    }),
    stable("jsonb_to_tsvector", &[Jsonb, Jsonb], VECTOR, |frame, v| chosen(current(frame)?, v, 0)),
    strict("to_tsquery", &[CONFIGURATION, Text], QUERY, |v| request(given(v)?, text(v, 1)?)),
    stable("to_tsquery", &[Text], QUERY, |frame, v| request(current(frame)?, text(v, 0)?)),
    strict("plainto_tsquery", &[CONFIGURATION, Text], QUERY, |v| {
        plain(given(v)?, text(v, 1)?, MorphJoin::All)
    }),
    stable("plainto_tsquery", &[Text], QUERY, |frame, v| {
        plain(current(frame)?, text(v, 0)?, MorphJoin::All)
    }),
    strict("phraseto_tsquery", &[CONFIGURATION, Text], QUERY, |v| {
        plain(given(v)?, text(v, 1)?, MorphJoin::Phrase)
    }),
    stable("phraseto_tsquery", &[Text], QUERY, |frame, v| {
        plain(current(frame)?, text(v, 0)?, MorphJoin::Phrase)
    }),
    strict("websearch_to_tsquery", &[CONFIGURATION, Text], QUERY, |v| web(given(v)?, text(v, 1)?)),
    stable("websearch_to_tsquery", &[Text], QUERY, |frame, v| web(current(frame)?, text(v, 0)?)),
    stable("@@", &[Text, Text], Boolean, |frame, v| {
        let configuration = current(frame)?;
        let query = plain(configuration, text(v, 1)?, MorphJoin::All)?;
        found(configuration, text(v, 0)?, &[query.as_ref()])
    }),
    stable("@@", &[Text, QUERY], Boolean, |frame, v| {
        found(current(frame)?, text(v, 0)?, v.get(1..).unwrap_or_default())
    }),
];

/// Returns the configuration with that number.
pub(super) fn configuration(value: Option<&ValueRef<'_>>) -> Result<Configuration> {
    let Some(ValueRef::Oid(number)) = value else { return Err(mismatch()) };
    Configuration::numbered(*number).ok_or_else(|| {
        let message = format!("cache lookup failed for text search configuration {number}");
        SqlError::internal(message)
    })
}

/// Returns the configuration of the first argument.
fn given(arguments: &[ValueRef<'_>]) -> Result<Configuration> {
    configuration(arguments.first())
}

/// Returns the configuration of the session.
pub(super) fn current(frame: &Frame<'_>) -> Result<Configuration> {
    let name = frame.host()?.session().setting("default_text_search_config")?.unwrap_or_default();
    crate::expression::text_search::configuration_named(&name).ok_or_else(|| {
        let message = format!("text search configuration \"{name}\" does not exist");
        SqlError::new(SqlState::UndefinedObject, message)
    })
}

fn document(configuration: Configuration, text: &str) -> Result<Value> {
    let mut words = DocumentWords::new(configuration);
    words.add(text);
    words.vector().checked_value()
}

fn found(configuration: Configuration, text: &str, query_at: &[ValueRef<'_>]) -> Result<Value> {
    let document = document(configuration, text)?;
    Ok(Value::Boolean(is_match(&vector(&[document.as_ref()], 0)?, &query(query_at, 0)?)))
}

fn request(configuration: Configuration, text: &str) -> Result<Value> {
    let mut sink = query_sink(configuration, MorphJoin::Phrase);
    Ok(TextQuery::parse_with(text, &mut sink)?.value())
}

fn plain(configuration: Configuration, text: &str, join: MorphJoin) -> Result<Value> {
    Ok(TextQuery::of_operand(text, &mut query_sink(configuration, join))?.value())
}

fn web(configuration: Configuration, text: &str) -> Result<Value> {
    let mut sink = query_sink(configuration, MorphJoin::Phrase);
    Ok(TextQuery::parse_web_with(text, &mut sink)?.value())
}

/// The parts of a JSON value that become words.
#[derive(Clone, Copy, Default)]
struct JsonWords {
    strings: bool,
    numbers: bool,
    booleans: bool,
    keys: bool,
}

impl JsonWords {
    /// Reads the parts that a JSON value names.
    fn named(filter: &Json<'_>) -> Result<JsonWords> {
        let mut wanted = JsonWords::default();
        let names = match &filter.kind {
            JsonKind::Array(names) => &names[..],
            JsonKind::Object(_) => {
                let message = "wrong flag type, only arrays and scalars are allowed";
                return Err(invalid(message));
            }
            _ => std::slice::from_ref(filter),
        };
        let hint =
            "Possible values are: \"string\", \"numeric\", \"boolean\", \"key\", and \"all\".";
        for name in names {
            let JsonKind::String(name) = &name.kind else {
                return Err(invalid("flag array element is not a string").with_hint(hint));
            };
            match &name.to_ascii_lowercase()[..] {
                "all" => {
                    let all = true;
                    wanted = JsonWords { strings: all, numbers: all, booleans: all, keys: all };
                }
                "key" => wanted.keys = true,
                "string" => wanted.strings = true,
                "numeric" => wanted.numbers = true,
                "boolean" => wanted.booleans = true,
                _ => {
                    let error = invalid(format!("wrong flag in flag array: \"{name}\""));
                    return Err(error.with_hint(hint));
                }
            }
        }
        Ok(wanted)
    }

    fn collect(self, value: &Json<'_>, words: &mut DocumentWords) {
        match &value.kind {
            JsonKind::String(text) if self.strings => words.add_part(text),
            JsonKind::Number if self.numbers => words.add_part(value.text),
            JsonKind::Boolean(value) if self.booleans => {
                words.add_part(if *value { "true" } else { "false" });
            }
            JsonKind::Array(values) => values.iter().for_each(|it| self.collect(it, words)),
            JsonKind::Object(members) => {
                for (key, value) in members {
                    if self.keys {
                        words.add_part(key);
                    }
                    self.collect(value, words);
                }
            }
            _ => {}
        }
    }
}

fn json<'v>(arguments: &[ValueRef<'v>], at: usize) -> Result<Json<'v>> {
    match arguments.get(at) {
        Some(ValueRef::Json(text) | ValueRef::Jsonb(text)) => Json::read(text),
        _ => Err(mismatch()),
    }
}

fn parts(configuration: Configuration, value: &Json<'_>, wanted: JsonWords) -> Result<Value> {
    let mut words = DocumentWords::new(configuration);
    wanted.collect(value, &mut words);
    words.vector().checked_value()
}

/// Makes a vector of the strings of a JSON value.
fn strings(configuration: Configuration, arguments: &[ValueRef<'_>], at: usize) -> Result<Value> {
    let wanted = JsonWords { strings: true, ..JsonWords::default() };
    parts(configuration, &json(arguments, at)?, wanted)
}

/// Makes a vector of the parts of a JSON value that the argument after it names.
fn chosen(configuration: Configuration, arguments: &[ValueRef<'_>], at: usize) -> Result<Value> {
    let wanted = JsonWords::named(&json(arguments, at + 1)?)?;
    parts(configuration, &json(arguments, at)?, wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(value: &Value) -> Vec<String> {
        let arguments = [value.as_ref()];
        let words = vector(&arguments, 0).unwrap().lexemes;
        words.iter().map(|it| it.word.to_owned()).collect()
    }

    #[test]
    fn words_are_stemmed_in_their_language() {
        for (configuration, text, expected) in [
            ("english", "The running Cats", &["cat", "run"][..]),
            ("simple", "The running Cats", &["cats", "running", "the"]),
            ("german", "Die Häuser und Gärten", &["gart", "haus"]),
            ("russian", "the большие дома", &["больш", "дом"]),
        ] {
            let configuration =
                crate::expression::text_search::configuration_named(configuration).unwrap();
            assert_eq!(words_of(&document(configuration, text).unwrap()), expected, "{text}");
        }
    }
}
