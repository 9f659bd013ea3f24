//! Names of configurations and dictionaries, and functions that show what they do.

use super::parsing::{CONFIGURATION, configuration};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::builtin::{Builtin, mismatch, strict, text};
use crate::expression::text_search::{
    Configuration, Dictionary, TokenKind, Tokens, configuration_named, dictionary_named,
};
use crate::types::{Array, ArrayBuilder, DataType, ElementType, SystemType, Value, ValueRef};
use DataType::Text;

pub(in crate::expression::builtin) const DICTIONARY: DataType =
    DataType::System(SystemType::Regdictionary);
const OIDS: DataType = DataType::Array(ElementType::OID);
const TEXTS: DataType = DataType::Array(ElementType::TEXT);
pub(in crate::expression::builtin) const DICTIONARIES: DataType = match ElementType::new(DICTIONARY)
{
    Some(element) => DataType::Array(element),
    None => OIDS,
};

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("regconfigin", &[Text], CONFIGURATION, |v| {
        number(text(v, 0)?, "configuration", |name| configuration_named(name).map(|it| it.oid()))
    }),
    strict("regdictionaryin", &[Text], DICTIONARY, |v| {
        number(text(v, 0)?, "dictionary", |name| dictionary_named(name).map(|it| it.oid()))
    }),
    strict("regconfigout", &[DataType::OID], Text, |v| shown(v, configuration_name)),
    strict("regdictionaryout", &[DataType::OID], Text, |v| shown(v, dictionary_name)),
    strict("regconfig[]out", &[OIDS], TEXTS, |v| all_shown(v, configuration_name)),
    strict("regdictionary[]out", &[OIDS], TEXTS, |v| all_shown(v, dictionary_name)),
    strict("ts_lexize", &[DICTIONARY, Text], TEXTS, |v| {
        let Some(ValueRef::Oid(number)) = v.first() else { return Err(mismatch()) };
        let dictionary = Dictionary::numbered(*number).ok_or_else(|| {
            let message = format!("cache lookup failed for text search dictionary {number}");
            SqlError::internal(message)
        })?;
        lexemes(dictionary, text(v, 1)?)
    }),
];

/// Returns the number of a name, or the number that a text is.
fn number(name: &str, what: &str, find: impl Fn(&str) -> Option<u32>) -> Result<Value> {
    if name.trim() == "-" {
        return Ok(Value::Oid(0));
    }
    let number = name.trim().parse().ok().or_else(|| find(name));
    number.map(Value::Oid).ok_or_else(|| {
        let message = format!("text search {what} \"{}\" does not exist", name.trim());
        SqlError::new(SqlState::UndefinedObject, message)
    })
}

fn configuration_name(number: u32) -> Option<String> {
    Configuration::numbered(number).map(|known| known.name().to_owned())
}

fn dictionary_name(number: u32) -> Option<String> {
    Dictionary::numbered(number).map(Dictionary::name)
}

fn name_of(value: ValueRef<'_>, find: fn(u32) -> Option<String>) -> Result<String> {
    let ValueRef::Oid(number) = value else { return Err(mismatch()) };
    Ok(match number {
        0 => "-".to_owned(),
        number => find(number).unwrap_or_else(|| number.to_string()),
    })
}

fn shown(arguments: &[ValueRef<'_>], find: fn(u32) -> Option<String>) -> Result<Value> {
    name_of(*arguments.first().ok_or_else(mismatch)?, find).map(Value::text)
}

fn all_shown(arguments: &[ValueRef<'_>], find: fn(u32) -> Option<String>) -> Result<Value> {
    let Some(ValueRef::Array(array)) = arguments.first() else { return Err(mismatch()) };
    let mut names = ArrayBuilder::new(ElementType::TEXT);
    for element in array.iter() {
        match element {
            ValueRef::Null => names.push(ValueRef::Null)?,
            number => names.push(ValueRef::Text(&name_of(number, find)?))?,
        }
    }
    Ok(Value::Array(names.finish(&array.dimensions())?))
}

fn lexemes(dictionary: Dictionary, token: &str) -> Result<Value> {
    let word = dictionary.word(token);
    let words = word.as_deref().map(ValueRef::Text);
    Ok(Value::Array(Array::new(ElementType::TEXT, words)?))
}

/// Returns the kinds of tokens.
pub(in crate::expression::builtin) fn token_types(
    arguments: &[ValueRef<'_>],
) -> Result<Vec<Vec<Value>>> {
    check_parser(text(arguments, 0)?)?;
    let row = |kind: &TokenKind| {
        let number = Value::Integer(kind.number().into());
        vec![number, Value::text(kind.alias()), Value::text(kind.description())]
    };
    Ok(TokenKind::ALL.iter().map(row).collect())
}

/// Returns the tokens of a text.
pub(in crate::expression::builtin) fn tokens(
    arguments: &[ValueRef<'_>],
) -> Result<Vec<Vec<Value>>> {
    check_parser(text(arguments, 0)?)?;
    let row = |(kind, token): (TokenKind, &str)| {
        vec![Value::Integer(kind.number().into()), Value::text(token)]
    };
    Ok(Tokens::new(text(arguments, 1)?).map(row).collect())
}

/// Returns the tokens of a text, and what a configuration makes of them.
pub(in crate::expression::builtin) fn described_tokens(
    arguments: &[ValueRef<'_>],
) -> Result<Vec<Vec<Value>>> {
    let configuration = configuration(arguments.first())?;
    Tokens::new(text(arguments, 1)?).map(|token| debug_row(configuration, token)).collect()
}

fn debug_row(configuration: Configuration, (kind, token): (TokenKind, &str)) -> Result<Vec<Value>> {
    let dictionary = configuration.dictionary(kind);
    let number = dictionary.map(|it| ValueRef::Oid(it.oid()));
    Ok(vec![
        Value::text(kind.alias()),
        Value::text(kind.description()),
        Value::text(token),
        Value::Array(Array::new(ElementType::OID, number)?),
        number.map_or(Value::Null, |number| number.to_value()),
        dictionary.map(|it| lexemes(it, token)).transpose()?.unwrap_or(Value::Null),
    ])
}

fn check_parser(name: &str) -> Result<()> {
    if matches!(name, "default" | "pg_catalog.default") {
        return Ok(());
    }
    let message = format!("text search parser \"{name}\" does not exist");
    Err(SqlError::new(SqlState::UndefinedObject, message))
}
