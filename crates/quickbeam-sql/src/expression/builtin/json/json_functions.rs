//! JSON functions and operators that read values or build them.

use crate::error::{Result, SqlError, SqlState};
use crate::expression::Frame;
use crate::expression::builtin::{
    Builtin, Implementation, OfSession, OfValues, append, check_size, count, integer, invalid,
    mismatch, strict, text,
};
use crate::types::json::{Json, JsonKind, write_string};
use crate::types::{
    ArrayRef, DataType, ElementType, EncodedKind, EncodedType, RowRef, TextSettings, Value,
    ValueRef, parse_value, write_xsd,
};
use DataType::{Boolean, Integer, Json as J, Jsonb as B, Text};

/// Which keys of a list must exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeysWanted {
    /// One of them.
    Any,
    /// All of them.
    All,
}

/// Where a JSON value is that may contain another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonLevel {
    /// It is the whole value.
    Top,
    /// It is within an array or object.
    Nested,
}

/// The type of a JSON value that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::expression::builtin) enum JsonType {
    /// JSONB
    Binary,
    /// JSON
    Plain,
}

/// How a part of a JSON value is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::expression::builtin) enum JsonPart {
    /// As text, without quotes.
    Text,
    /// As JSON.
    Json,
}

const TEXTS: DataType = DataType::Array(ElementType::TEXT);
const RECORD: EncodedType = EncodedType::new(EncodedKind::Record, 0);

/// Declares a function of values of any type.
const fn build(name: &'static str, result: DataType, run: OfSession) -> Builtin {
    let implementation = Implementation::StableNullTolerant(run);
    Builtin { is_variadic: true, ..Builtin::new(name, &[], result, implementation) }
}

/// Declares a function of a JSON value and texts.
const fn path(
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    run: OfValues,
) -> Builtin {
    let implementation = Implementation::Strict(run);
    Builtin { is_variadic: true, ..Builtin::new(name, arguments, result, implementation) }
}

const fn one(
    name: &'static str,
    arguments: &'static [DataType],
    result: DataType,
    run: OfSession,
) -> Builtin {
    Builtin::new(name, arguments, result, Implementation::StableNullTolerant(run))
}

pub(in crate::expression::builtin) static TABLE: &[Builtin] = &[
    strict("->", &[J, Text], J, |v| part(v, JsonPart::Json)),
    strict("->", &[J, Integer], J, |v| part(v, JsonPart::Json)),
    strict("->", &[B, Text], B, |v| part(v, JsonPart::Json)),
    strict("->", &[B, Integer], B, |v| part(v, JsonPart::Json)),
    strict("->>", &[J, Text], Text, |v| part(v, JsonPart::Text)),
    strict("->>", &[J, Integer], Text, |v| part(v, JsonPart::Text)),
    strict("->>", &[B, Text], Text, |v| part(v, JsonPart::Text)),
    strict("->>", &[B, Integer], Text, |v| part(v, JsonPart::Text)),
    strict("#>", &[J, TEXTS], J, |v| at_path(v, JsonPart::Json)),
    strict("#>", &[B, TEXTS], B, |v| at_path(v, JsonPart::Json)),
    strict("#>>", &[J, TEXTS], Text, |v| at_path(v, JsonPart::Text)),
    strict("#>>", &[B, TEXTS], Text, |v| at_path(v, JsonPart::Text)),
    path("json_extract_path", &[J], J, |v| at_names(v, JsonPart::Json)),
    path("jsonb_extract_path", &[B], B, |v| at_names(v, JsonPart::Json)),
    path("json_extract_path_text", &[J], Text, |v| at_names(v, JsonPart::Text)),
    path("jsonb_extract_path_text", &[B], Text, |v| at_names(v, JsonPart::Text)),
    strict("@>", &[B, B], Boolean, |v| contains(v, 0, 1)),
    strict("<@", &[B, B], Boolean, |v| contains(v, 1, 0)),
    strict("?", &[B, Text], Boolean, |v| has_key(&read(v, 0)?, text(v, 1)?).map(Value::Boolean)),
    strict("?|", &[B, TEXTS], Boolean, |v| has_keys(v, KeysWanted::Any)),
    strict("?&", &[B, TEXTS], Boolean, |v| has_keys(v, KeysWanted::All)),
    strict("json_array_length", &[J], Integer, array_length),
    strict("jsonb_array_length", &[B], Integer, array_length),
    strict("json_typeof", &[J], Text, kind_name),
    strict("jsonb_typeof", &[B], Text, kind_name),
    strict("jsonb_pretty", &[B], Text, pretty),
    build("json_build_array", J, |f, v| build_array(f, v, JsonType::Plain)),
    build("jsonb_build_array", B, |f, v| build_array(f, v, JsonType::Binary)),
    build("json_build_object", J, |f, v| build_object(f, v, JsonType::Plain)),
    build("jsonb_build_object", B, |f, v| build_object(f, v, JsonType::Binary)),
    strict("json_build_array", &[], J, |_| Ok(Value::json("[]"))),
    strict("jsonb_build_array", &[], B, |_| jsonb("[]")),
    strict("json_build_object", &[], J, |_| Ok(Value::json("{}"))),
    strict("jsonb_build_object", &[], B, |_| jsonb("{}")),
    strict("json_object", &[TEXTS], J, |v| object_of_texts(v, JsonType::Plain)),
    strict("jsonb_object", &[TEXTS], B, |v| object_of_texts(v, JsonType::Binary)),
    strict("json_object", &[TEXTS, TEXTS], J, |v| object_of_lists(v, JsonType::Plain)),
    strict("jsonb_object", &[TEXTS, TEXTS], B, |v| object_of_lists(v, JsonType::Binary)),
];

/// `to_json` and its like take one value of any type: the binder calls them by name.
static OF_ANY: &[Builtin] = &[
    one("to_json", &[], J, |f, v| to_json(f, v, JsonType::Plain)),
    one("to_jsonb", &[], B, |f, v| to_json(f, v, JsonType::Binary)),
];

/// Returns the function of one value of any type that has that name.
pub fn json_of_any(name: &str) -> Option<&'static Builtin> {
    OF_ANY.iter().find(|known| known.name == name)
}

/// Returns a JSONB value of a text.
pub(in crate::expression::builtin) fn jsonb(text: &str) -> Result<Value> {
    parse_value(text, DataType::Jsonb, &TextSettings::DEFAULT)
}

/// Returns the text as a JSON or JSONB value.
fn made(out: String, is_binary: bool) -> Result<Value> {
    check_size(out.len())?;
    if is_binary { jsonb(&out) } else { Ok(Value::json(out)) }
}

/// Reads an argument.
pub(in crate::expression::builtin) fn read<'v>(
    arguments: &[ValueRef<'v>],
    at: usize,
) -> Result<Json<'v>> {
    match arguments.get(at) {
        Some(ValueRef::Json(text) | ValueRef::Jsonb(text)) => Json::read(text),
        _ => Err(mismatch()),
    }
}

pub(in crate::expression::builtin) fn texts<'v>(
    arguments: &[ValueRef<'v>],
    at: usize,
) -> Result<ArrayRef<'v>> {
    match arguments.get(at) {
        Some(ValueRef::Array(value)) => Ok(*value),
        _ => Err(mismatch()),
    }
}

/// Returns whether the first argument is JSONB.
pub(in crate::expression::builtin) fn is_binary(arguments: &[ValueRef<'_>]) -> bool {
    matches!(arguments.first(), Some(ValueRef::Jsonb(_)))
}

/// Returns a part as a JSON value, or as text: a string without quotes, NULL for null.
pub(in crate::expression::builtin) fn delivered(
    part: &Json<'_>,
    as_text: bool,
    is_binary: bool,
) -> Value {
    match (&part.kind, as_text) {
        (JsonKind::Null, true) => Value::Null,
        (JsonKind::String(text), true) => Value::text(text),
        (_, true) => Value::text(part.text),
        (_, false) if is_binary => Value::jsonb(part.text),
        (_, false) => Value::json(part.text),
    }
}

fn part(arguments: &[ValueRef<'_>], form: JsonPart) -> Result<Value> {
    let as_text = form == JsonPart::Text;
    let whole = read(arguments, 0)?;
    let found = match arguments.get(1) {
        Some(ValueRef::Text(name)) => whole.member(name),
        _ => match (integer(arguments, 1)?, &whole.kind) {
            (place, JsonKind::Array(_)) => whole.element(place),
            // PostgreSQL holds a primitive JSONB value as the only element of an array.
            (0 | -1, kind) if is_binary(arguments) && !matches!(kind, JsonKind::Object(_)) => {
                Some(&whole)
            }
            _ => None,
        },
    };
    Ok(found.map_or(Value::Null, |it| delivered(it, as_text, is_binary(arguments))))
}

/// Returns the part at a path.
fn follow<'j, 't>(whole: &'j Json<'t>, step: &str) -> Option<&'j Json<'t>> {
    match &whole.kind {
        JsonKind::Object(_) => whole.member(step),
        JsonKind::Array(_) => whole.element(step.trim().parse::<i32>().ok()?.into()),
        _ => None,
    }
}

fn at_steps<'v>(
    arguments: &[ValueRef<'v>],
    steps: impl Iterator<Item = ValueRef<'v>>,
    as_text: bool,
) -> Result<Value> {
    let whole = read(arguments, 0)?;
    let mut found = Some(&whole);
    for step in steps {
        found = match step {
            ValueRef::Text(step) => found.and_then(|it| follow(it, step)),
            _ => None,
        };
    }
    Ok(found.map_or(Value::Null, |it| delivered(it, as_text, is_binary(arguments))))
}

fn at_path(arguments: &[ValueRef<'_>], form: JsonPart) -> Result<Value> {
    let as_text = form == JsonPart::Text;
    at_steps(arguments, texts(arguments, 1)?.iter(), as_text)
}

fn at_names(arguments: &[ValueRef<'_>], form: JsonPart) -> Result<Value> {
    let as_text = form == JsonPart::Text;
    at_steps(arguments, arguments.iter().skip(1).copied(), as_text)
}

fn is_contained(whole: &Json<'_>, part: &Json<'_>, level: JsonLevel) -> bool {
    let is_top = level == JsonLevel::Top;
    match (&whole.kind, &part.kind) {
        (JsonKind::Object(_), JsonKind::Object(members)) => members.iter().all(|(key, value)| {
            whole.member(key).is_some_and(|known| is_contained(known, value, JsonLevel::Nested))
        }),
        (JsonKind::Array(known), JsonKind::Array(members)) => members
            .iter()
            .all(|value| known.iter().any(|known| is_contained(known, value, JsonLevel::Nested))),
        // An array contains a primitive value, at the top only.
        (JsonKind::Array(known), _) if is_top && !matches!(part.kind, JsonKind::Object(_)) => {
            known.iter().any(|known| is_contained(known, part, JsonLevel::Nested))
        }
        (JsonKind::Array(_) | JsonKind::Object(_), _)
        | (_, JsonKind::Array(_) | JsonKind::Object(_)) => false,
        _ => whole.compare(part).is_eq(),
    }
}

fn contains(arguments: &[ValueRef<'_>], whole: usize, part: usize) -> Result<Value> {
    let (whole, part) = (read(arguments, whole)?, read(arguments, part)?);
    Ok(Value::Boolean(is_contained(&whole, &part, JsonLevel::Top)))
}

fn has_key(whole: &Json<'_>, key: &str) -> Result<bool> {
    Ok(match &whole.kind {
        JsonKind::Object(_) => whole.member(key).is_some(),
        JsonKind::Array(list) => {
            list.iter().any(|it| matches!(&it.kind, JsonKind::String(text) if text == key))
        }
        JsonKind::String(text) => text == key,
        _ => false,
    })
}

fn has_keys(arguments: &[ValueRef<'_>], wanted: KeysWanted) -> Result<Value> {
    let any = wanted == KeysWanted::Any;
    let whole = read(arguments, 0)?;
    for key in texts(arguments, 1)?.iter() {
        if let ValueRef::Text(key) = key
            && has_key(&whole, key)? == any
        {
            return Ok(Value::Boolean(any));
        }
    }
    Ok(Value::Boolean(!any))
}

fn array_length(arguments: &[ValueRef<'_>]) -> Result<Value> {
    match read(arguments, 0)?.kind {
        JsonKind::Array(list) => count(list.len()),
        JsonKind::Object(_) => Err(invalid("cannot get array length of a non-array")),
        _ => Err(invalid("cannot get array length of a scalar")),
    }
}

/// Returns the name of the kind of a value.
fn name_of(kind: &JsonKind<'_>) -> &'static str {
    match kind {
        JsonKind::Number => "number",
        other => other.name(),
    }
}

fn kind_name(arguments: &[ValueRef<'_>]) -> Result<Value> {
    Ok(Value::text(name_of(&read(arguments, 0)?.kind)))
}

fn indent(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("    ", depth));
}

fn print_pretty(out: &mut String, value: &Json<'_>, depth: usize) {
    match &value.kind {
        JsonKind::Array(list) => {
            out.push('[');
            for (number, value) in list.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                indent(out, depth + 1);
                print_pretty(out, value, depth + 1);
            }
            indent(out, depth);
            out.push(']');
        }
        JsonKind::Object(list) => {
            out.push('{');
            for (number, (key, value)) in list.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                indent(out, depth + 1);
                write_string(out, key);
                out.push_str(": ");
                print_pretty(out, value, depth + 1);
            }
            indent(out, depth);
            out.push('}');
        }
        _ => out.push_str(value.text),
    }
}

fn pretty(arguments: &[ValueRef<'_>]) -> Result<Value> {
    let mut out = String::new();
    print_pretty(&mut out, &read(arguments, 0)?, 0);
    check_size(out.len())?;
    Ok(Value::text(out))
}

fn write_array(
    out: &mut String,
    array: ArrayRef<'_>,
    separator: &str,
    settings: &TextSettings,
) -> Result<()> {
    let dimensions = array.dimensions();
    if dimensions.is_empty() {
        out.push_str("[]");
    }
    for (number, element) in array.iter().enumerate() {
        let edges = |number: usize| {
            let mut size = 1;
            let lengths = dimensions.iter().rev();
            lengths
                .filter(|one| {
                    size *= one.length as usize;
                    number.is_multiple_of(size)
                })
                .count()
        };
        // Only the elements of the outermost dimension are in lines.
        let opened = edges(number);
        let between = if opened + 1 >= dimensions.len() { separator } else { "," };
        out.push_str(if number > 0 { between } else { "" });
        out.extend(std::iter::repeat_n('[', opened));
        write_value(out, element, settings)?;
        out.extend(std::iter::repeat_n(']', edges(number + 1)));
    }
    Ok(())
}

/// Appends a row as an object.
fn write_row(
    out: &mut String,
    bytes: &[u8],
    separator: &str,
    settings: &TextSettings,
) -> Result<()> {
    let row = RowRef::read(bytes).ok_or_else(mismatch)?;
    out.push('{');
    for (number, field) in row.fields().enumerate() {
        out.push_str(if number > 0 { separator } else { "" });
        write_string(out, field.name);
        out.push(':');
        write_value(out, field.value, settings)?;
    }
    out.push('}');
    Ok(())
}

/// `row_to_json`, with line feeds between the members if the second argument asks for them.
pub(in crate::expression::builtin) fn row_to_json(
    frame: &Frame<'_>,
    arguments: &[ValueRef<'_>],
) -> Result<Value> {
    let Some(ValueRef::Encoded(_, bytes)) = arguments.first() else { return Err(mismatch()) };
    let is_pretty = matches!(arguments.get(1), Some(ValueRef::Boolean(true)));
    let mut out = String::new();
    write_row(&mut out, bytes, if is_pretty { ",\n " } else { "," }, &frame.settings())?;
    check_size(out.len())?;
    Ok(Value::json(out))
}

/// `array_to_json`, with line feeds between the elements if the second argument asks for them.
pub(in crate::expression::builtin) fn array_to_json_in_lines(
    frame: &Frame<'_>,
    arguments: &[ValueRef<'_>],
) -> Result<Value> {
    let Some(ValueRef::Array(array)) = arguments.first() else { return Err(mismatch()) };
    let is_pretty = matches!(arguments.get(1), Some(ValueRef::Boolean(true)));
    let mut out = String::new();
    write_array(&mut out, *array, if is_pretty { ",\n " } else { "," }, &frame.settings())?;
    check_size(out.len())?;
    Ok(Value::json(out))
}

/// Appends a SQL value as JSON, with the settings of the session.
pub fn write_value(out: &mut String, value: ValueRef<'_>, settings: &TextSettings) -> Result<()> {
    match value {
        ValueRef::Null => out.push_str("null"),
        ValueRef::Boolean(value) => out.push_str(if value { "true" } else { "false" }),
        ValueRef::Json(text) | ValueRef::Jsonb(text) => out.push_str(text),
        ValueRef::Array(array) => write_array(out, array, ",", settings)?,
        ValueRef::Encoded(encoded, bytes) if encoded.kind() == EncodedKind::Record => {
            write_row(out, bytes, ",", settings)?;
        }
        ValueRef::SmallInt(_)
        | ValueRef::Integer(_)
        | ValueRef::BigInt(_)
        | ValueRef::LongNumeric(_) => append(out, value, settings)?,
        ValueRef::Numeric(number) if number.is_finite() => append(out, value, settings)?,
        ValueRef::Real(number) if number.is_finite() => append(out, value, settings)?,
        ValueRef::Double(number) if number.is_finite() => append(out, value, settings)?,
        other => {
            let mut text = String::new();
            // Moments have the form of ISO 8601.
            if !write_xsd(&mut text, other, settings) {
                append(&mut text, other, settings)?;
            }
            write_string(out, &text);
        }
    }
    check_size(out.len())
}

pub(in crate::expression::builtin) fn to_json(
    frame: &Frame<'_>,
    arguments: &[ValueRef<'_>],
    json: JsonType,
) -> Result<Value> {
    let is_binary = json == JsonType::Binary;
    let value = arguments.first().copied().unwrap_or_default();
    if value.is_null() {
        return Ok(Value::Null);
    }
    let mut out = String::new();
    write_value(&mut out, value, &frame.settings())?;
    made(out, is_binary)
}

fn build_array(frame: &Frame<'_>, arguments: &[ValueRef<'_>], json: JsonType) -> Result<Value> {
    let settings = frame.settings();
    let is_binary = json == JsonType::Binary;
    let mut out = String::from("[");
    for (number, value) in arguments.iter().enumerate() {
        out.push_str(if number > 0 { ", " } else { "" });
        write_value(&mut out, *value, &settings)?;
    }
    out.push(']');
    made(out, is_binary)
}

/// Appends a value as the key of a member.
pub fn write_key(out: &mut String, key: ValueRef<'_>, settings: &TextSettings) -> Result<()> {
    match key {
        ValueRef::Array(_)
        | ValueRef::Json(_)
        | ValueRef::Jsonb(_)
        | ValueRef::Encoded(RECORD, _) => {
            Err(invalid("key value must be scalar, not array, composite, or json"))
        }
        key => {
            let mut text = String::new();
            match key {
                ValueRef::Boolean(value) => text.push_str(if value { "true" } else { "false" }),
                // Moments have the form of ISO 8601, as in values.
                key if write_xsd(&mut text, key, settings) => {}
                key => append(&mut text, key, settings)?,
            }
            write_string(out, &text);
            Ok(())
        }
    }
}

fn build_object(frame: &Frame<'_>, arguments: &[ValueRef<'_>], json: JsonType) -> Result<Value> {
    let settings = frame.settings();
    let is_binary = json == JsonType::Binary;
    if !arguments.len().is_multiple_of(2) {
        return Err(invalid("argument list must have even number of elements"));
    }
    let mut out = String::from("{");
    for (number, pair) in arguments.chunks(2).enumerate() {
        let [key, value] = pair else { continue };
        if key.is_null() {
            let place = number * 2 + 1;
            return Err(invalid(format!("argument {place}: key must not be null")));
        }
        out.push_str(if number > 0 { ", " } else { "" });
        write_key(&mut out, *key, &settings)?;
        out.push_str(" : ");
        write_value(&mut out, *value, &settings)?;
    }
    out.push('}');
    made(out, is_binary)
}

#[cold]
fn null_key() -> SqlError {
    SqlError::new(SqlState::NullValueNotAllowed, "null value not allowed for object key")
}

fn object_of<'v>(
    pairs: impl Iterator<Item = (ValueRef<'v>, ValueRef<'v>)>,
    is_binary: bool,
) -> Result<Value> {
    let mut out = String::from("{");
    for (number, (key, value)) in pairs.enumerate() {
        if key.is_null() {
            return Err(null_key());
        }
        out.push_str(if number > 0 { ", " } else { "" });
        write_key(&mut out, key, &TextSettings::DEFAULT)?;
        out.push_str(" : ");
        write_value(&mut out, value, &TextSettings::DEFAULT)?;
    }
    out.push('}');
    made(out, is_binary)
}

fn wrong_subscripts(message: &str) -> SqlError {
    SqlError::new(SqlState::ArraySubscriptError, message)
}

fn object_of_texts(arguments: &[ValueRef<'_>], json: JsonType) -> Result<Value> {
    let is_binary = json == JsonType::Binary;
    let list = texts(arguments, 0)?;
    let dimensions = list.dimensions();
    match &dimensions[..] {
        [] => {}
        [one] if one.length % 2 == 0 => {}
        [_] => return Err(wrong_subscripts("array must have even number of elements")),
        [_, two] if two.length == 2 => {}
        [_, _] => return Err(wrong_subscripts("array must have two columns")),
        _ => return Err(wrong_subscripts("wrong number of array subscripts")),
    }
    let pair = |number: usize| (list.get(number * 2), list.get(number * 2 + 1));
    object_of((0..list.len() / 2).map(pair), is_binary)
}

fn object_of_lists(arguments: &[ValueRef<'_>], json: JsonType) -> Result<Value> {
    let is_binary = json == JsonType::Binary;
    let (keys, values) = (texts(arguments, 0)?, texts(arguments, 1)?);
    if keys.dimensions().len() > 1 || values.dimensions().len() > 1 {
        return Err(wrong_subscripts("wrong number of array subscripts"));
    }
    if keys.len() != values.len() {
        return Err(wrong_subscripts("mismatched array dimensions"));
    }
    object_of(keys.iter().zip(values.iter()), is_binary)
}
