//! Types by their names in `pg_type`: `int4`, `"varchar"(10)`, `pg_catalog.numeric(5, 2)`, `_text`.
//!
//! The parser knows the keywords of SQL (`INTEGER`, `CHARACTER VARYING`). A quoted or qualified
//! name, or the name of an array type, reaches the binder as the name of any type.

use sqlparser::ast::{CharacterLength, ExactNumberInfo, Ident, ObjectName, ObjectNamePart};

use super::{bits, interval, invalid, length, numeric, time};
use crate::bind::fold;
use crate::error::{Result, SqlError, SqlState};
use crate::types::{DataType, ElementType, EncodedKind, EncodedType, SystemType, TimeKind};

/// Returns the name of a type in `pg_catalog`, if a name may mean one.
fn catalog_part(name: &ObjectName) -> Option<&Ident> {
    match &name.0[..] {
        [ObjectNamePart::Identifier(only)] => Some(only),
        [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(last)]
            if fold(schema) == "pg_catalog" =>
        {
            Some(last)
        }
        _ => None,
    }
}

/// Resolves the name of a type of the catalog, with its modifiers.
pub(super) fn named(name: &ObjectName, modifiers: &[String]) -> Result<DataType> {
    let undefined = || {
        let parts: Vec<String> = name.0.iter().filter_map(|it| it.as_ident()).map(shown).collect();
        let message = format!("type \"{}\" does not exist", parts.join("."));
        SqlError::new(SqlState::UndefinedObject, message)
    };
    let Some(ident) = catalog_part(name) else { return Err(undefined()) };
    let name = fold(ident);
    let known = match &*name {
        "serial" | "serial4" => DataType::Integer,
        "bigserial" | "serial8" => DataType::BigInt,
        "smallserial" | "serial2" => DataType::SmallInt,
        // The name of a cursor is a text.
        "refcursor" => DataType::Text,
        "nchar" if ident.quote_style.is_none() => return blank_padded(modifiers, Some(1)),
        name => match name.strip_prefix('_') {
            Some(element) => array_of(element).ok_or_else(undefined)?,
            None => return with_modifiers(name, modifiers).unwrap_or_else(|| Err(undefined())),
        },
    };
    if !modifiers.is_empty() {
        return Err(no_modifiers(&name));
    }
    Ok(known)
}

fn shown(ident: &Ident) -> String {
    fold(ident).to_string()
}

fn array_of(element: &str) -> Option<DataType> {
    let element = with_modifiers(element, &[])?.ok()?;
    ElementType::new(element).map(DataType::Array)
}

#[cold]
fn no_modifiers(name: &str) -> SqlError {
    let message = format!("type modifier is not allowed for type \"{name}\"");
    SqlError::new(SqlState::SyntaxError, message)
}

/// Returns the first modifier of a type as a number.
fn first(modifiers: &[String]) -> Result<Option<u64>> {
    let number = |text: &String| {
        text.parse().map_err(|_| invalid("type modifiers must be simple constants".into()))
    };
    modifiers.first().map(number).transpose()
}

fn blank_padded(modifiers: &[String], default: Option<u32>) -> Result<DataType> {
    let length = length(characters(modifiers)?, "char")?.or(default);
    Ok(length.map_or(DataType::BPCHAR, DataType::Char))
}

fn characters(modifiers: &[String]) -> Result<Option<CharacterLength>> {
    let length = first(modifiers)?;
    Ok(length.map(|length| CharacterLength::IntegerLength { length, unit: None }))
}

fn digits(modifiers: &[String]) -> Result<ExactNumberInfo> {
    let Some(precision) = first(modifiers)? else { return Ok(ExactNumberInfo::None) };
    let scale = modifiers.get(1).map(|text| text.parse());
    match scale {
        None => Ok(ExactNumberInfo::Precision(precision)),
        Some(Ok(scale)) => Ok(ExactNumberInfo::PrecisionAndScale(precision, scale)),
        Some(Err(_)) => Err(invalid("type modifiers must be simple constants".into())),
    }
}

/// Returns the type of that name in `pg_type`; `None` if there is none.
fn with_modifiers(name: &str, modifiers: &[String]) -> Option<Result<DataType>> {
    let known = match name {
        "varchar" => characters(modifiers).and_then(|it| length(it, name)).map(DataType::Varchar),
        "bpchar" => blank_padded(modifiers, None),
        "numeric" => digits(modifiers).and_then(numeric),
        "time" => first(modifiers).map(|digits| time(TimeKind::Time, digits)),
        "timestamp" => first(modifiers).map(|digits| time(TimeKind::Timestamp, digits)),
        "timestamptz" => first(modifiers).map(|digits| time(TimeKind::TimestampTz, digits)),
        "interval" => first(modifiers).and_then(|digits| interval(None, digits)),
        "timetz" => first(modifiers).map(|digits| {
            let length = digits.map_or(0, |digits| u32::from(super::at_most_all(digits)) + 1);
            DataType::Encoded(EncodedType::new(EncodedKind::TimeTz, length))
        }),
        // BIT without a length has one bit; the literal of a BIT has any number.
        "bit" => first(modifiers).and_then(|length| bits(EncodedKind::Bit, length)),
        "varbit" => first(modifiers).and_then(|length| bits(EncodedKind::Varbit, length)),
        name => {
            let known = unmodified(name)?;
            if modifiers.is_empty() { Ok(known) } else { Err(no_modifiers(name)) }
        }
    };
    Some(known)
}

/// Returns the type of that name, of those that have no modifiers.
fn unmodified(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" => DataType::Boolean,
        "int2" => DataType::SmallInt,
        "int4" => DataType::Integer,
        "int8" => DataType::BigInt,
        "float4" => DataType::Real,
        "float8" => DataType::Double,
        "text" => DataType::Text,
        "bytea" => DataType::Bytea,
        "date" => DataType::Date,
        "uuid" => DataType::Uuid,
        "json" => DataType::Json,
        "jsonb" => DataType::Jsonb,
        name => match SystemType::named(name) {
            Some(known) => DataType::System(known),
            None => EncodedKind::named(name)?.data_type(),
        },
    })
}

/// Returns the type of that name in `pg_type`, without modifiers.
pub fn catalog_type(name: &str) -> Option<DataType> {
    with_modifiers(name, &[])?.ok()
}
