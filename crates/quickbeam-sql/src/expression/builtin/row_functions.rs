//! Functions that return rows: their arguments are values, their result is a list of rows.

use super::arrays::{array, split_values};
use super::integer;
use crate::error::Result;
use crate::expression::Frame;
use crate::expression::builtin::encoded::multiranges::ranges_of;
use crate::expression::builtin::json::json_changes::{each, elements, keys};
use crate::expression::builtin::json::json_functions::JsonPart;
use crate::expression::builtin::json::path::{query, query_in_utc};
use crate::expression::builtin::strings::regular_arrays::{captures_of, split_regular};
use crate::expression::builtin::text_search::dictionaries::{
    DICTIONARIES, DICTIONARY, described_tokens, token_types, tokens,
};
use crate::expression::builtin::text_search::parsing::CONFIGURATION;
use crate::expression::builtin::text_search::word_counts::counted_words;
use crate::keywords::{KeywordCategory, KeywordRow, keywords};
use crate::types::{Array, ArrayRef, DataType, ElementType, SystemType, Value, ValueRef};

/// A row.
pub type FunctionRow = Vec<Value>;

/// A function that returns rows.
pub struct RowFunction {
    /// Its name.
    pub name: &'static str,
    /// The types of its arguments; `None` for an array of any type.
    pub arguments: &'static [Option<DataType>],
    /// The names and types of its columns.
    pub columns: &'static [(&'static str, DataType)],
    /// Whether a NULL argument makes the result empty.
    pub is_strict: bool,
    /// Its rows.
    pub run: RowWork,
}

/// How a function computes its rows.
#[derive(Clone, Copy)]
pub enum RowWork {
    /// From its arguments alone.
    OfValues(fn(&[ValueRef<'_>]) -> Result<Vec<FunctionRow>>),
    /// In the session that calls it.
    InFrame(fn(&Frame<'_>, &[ValueRef<'_>]) -> Result<Vec<FunctionRow>>),
}

impl std::fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &RowFunction) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for RowFunction {}

/// `unnest`, whose columns have the types of its arguments.
pub static UNNEST: RowFunction = RowFunction {
    name: "unnest",
    arguments: &[],
    columns: &[],
    is_strict: false,
    run: RowWork::OfValues(unnest),
};

const TEXT: Option<DataType> = Some(DataType::Text);
const INTEGER: Option<DataType> = Some(DataType::Integer);
const BOOLEAN: Option<DataType> = Some(DataType::Boolean);
const JSON: Option<DataType> = Some(DataType::Json);
const JSONB: Option<DataType> = Some(DataType::Jsonb);
const PAIRS: &[(&str, DataType)] = &[("key", DataType::Text), ("value", DataType::Text)];
const TEXTS: DataType = DataType::Array(ElementType::TEXT);

const fn strict(
    name: &'static str,
    arguments: &'static [Option<DataType>],
    columns: &'static [(&'static str, DataType)],
    run: fn(&[ValueRef<'_>]) -> Result<Vec<FunctionRow>>,
) -> RowFunction {
    RowFunction { name, arguments, columns, is_strict: true, run: RowWork::OfValues(run) }
}

const fn in_frame(
    name: &'static str,
    arguments: &'static [Option<DataType>],
    columns: &'static [(&'static str, DataType)],
    run: fn(&Frame<'_>, &[ValueRef<'_>]) -> Result<Vec<FunctionRow>>,
) -> RowFunction {
    RowFunction { name, arguments, columns, is_strict: true, run: RowWork::InFrame(run) }
}

static TABLE: &[RowFunction] = &[
    strict("pg_get_keywords", &[], KEYWORDS, |_| Ok(keyword_rows())),
    strict("generate_subscripts", &[None, INTEGER], SUBSCRIPTS, subscripts),
    strict("generate_subscripts", &[None, INTEGER, BOOLEAN], SUBSCRIPTS, subscripts),
    RowFunction { is_strict: false, ..strict("string_to_table", &[TEXT, TEXT], PARTS, parts) },
    RowFunction {
        is_strict: false,
        ..strict("string_to_table", &[TEXT, TEXT, TEXT], PARTS, parts)
    },
    strict("regexp_split_to_table", &[TEXT, TEXT], SPLIT, split),
    strict("regexp_split_to_table", &[TEXT, TEXT, TEXT], SPLIT, split),
    strict("pg_partition_ancestors", &[Some(DataType::OID)], ANCESTORS, |_| Ok(Vec::new())),
    strict("json_each", &[JSON], &[("key", DataType::Text), ("value", DataType::Json)], |v| {
        each(v, JsonPart::Json)
    }),
    strict("jsonb_each", &[JSONB], &[("key", DataType::Text), ("value", DataType::Jsonb)], |v| {
        each(v, JsonPart::Json)
    }),
    strict("json_each_text", &[JSON], PAIRS, |v| each(v, JsonPart::Text)),
    strict("jsonb_each_text", &[JSONB], PAIRS, |v| each(v, JsonPart::Text)),
    strict("json_object_keys", &[JSON], &[("json_object_keys", DataType::Text)], keys),
    strict("jsonb_object_keys", &[JSONB], &[("jsonb_object_keys", DataType::Text)], keys),
    strict("json_array_elements", &[JSON], &[("value", DataType::Json)], |v| {
        elements(v, JsonPart::Json)
    }),
    strict("jsonb_array_elements", &[JSONB], &[("value", DataType::Jsonb)], |v| {
        elements(v, JsonPart::Json)
    }),
    strict("json_array_elements_text", &[JSON], &[("value", DataType::Text)], |v| {
        elements(v, JsonPart::Text)
    }),
    strict("jsonb_array_elements_text", &[JSONB], &[("value", DataType::Text)], |v| {
        elements(v, JsonPart::Text)
    }),
    strict("jsonb_path_query", &[JSONB, TEXT], FOUND, query),
    strict("jsonb_path_query", &[JSONB, TEXT, JSONB], FOUND, query),
    strict("jsonb_path_query", &[JSONB, TEXT, JSONB, BOOLEAN], FOUND, query),
    strict("jsonb_path_query_tz", &[JSONB, TEXT], FOUND_TZ, query_in_utc),
    strict("jsonb_path_query_tz", &[JSONB, TEXT, JSONB], FOUND_TZ, query_in_utc),
    strict("jsonb_path_query_tz", &[JSONB, TEXT, JSONB, BOOLEAN], FOUND_TZ, query_in_utc),
    strict("ts_token_type", &[TEXT], TOKEN_TYPES, token_types),
    strict("ts_parse", &[TEXT, TEXT], TOKENS, tokens),
    in_frame("ts_stat", &[TEXT], WORD_COUNTS, counted_words),
    in_frame("ts_stat", &[TEXT, TEXT], WORD_COUNTS, counted_words),
    strict("ts_debug", &[Some(CONFIGURATION), TEXT], DESCRIBED_TOKENS, described_tokens),
    strict("regexp_matches", &[TEXT, TEXT], MATCHES, matches),
    strict("regexp_matches", &[TEXT, TEXT, TEXT], MATCHES, matches),
];

const KEYWORDS: &[(&str, DataType)] = &[
    ("word", DataType::Text),
    ("catcode", DataType::System(SystemType::SingleChar)),
    ("barelabel", DataType::Boolean),
    ("catdesc", DataType::Text),
    ("baredesc", DataType::Text),
];

/// Returns the key words of PostgreSQL 15 with their categories.
fn keyword_rows() -> Vec<FunctionRow> {
    let row = |known: &KeywordRow| {
        let (code, description) = match known.category {
            KeywordCategory::Unreserved => ("U", "unreserved"),
            KeywordCategory::ColumnName => ("C", "unreserved (cannot be function or type name)"),
            KeywordCategory::FunctionName => ("T", "reserved (can be function or type name)"),
            KeywordCategory::Reserved => ("R", "reserved"),
        };
        let label = if known.is_label { "can be bare label" } else { "requires AS" };
        let text = |text: &str| Value::text(text);
        let bare = Value::Boolean(known.is_label);
        vec![text(known.word), text(code), bare, text(description), text(label)]
    };
    keywords().iter().map(row).collect()
}

const TOKEN_TYPES: &[(&str, DataType)] =
    &[("tokid", DataType::Integer), ("alias", DataType::Text), ("description", DataType::Text)];
const TOKENS: &[(&str, DataType)] = &[("tokid", DataType::Integer), ("token", DataType::Text)];
const DESCRIBED_TOKENS: &[(&str, DataType)] = &[
    ("alias", DataType::Text),
    ("description", DataType::Text),
    ("token", DataType::Text),
    ("dictionaries", DICTIONARIES),
    ("dictionary", DICTIONARY),
    ("lexemes", TEXTS),
];
const WORD_COUNTS: &[(&str, DataType)] =
    &[("word", DataType::Text), ("ndoc", DataType::Integer), ("nentry", DataType::Integer)];
const SUBSCRIPTS: &[(&str, DataType)] = &[("generate_subscripts", DataType::Integer)];
/// No table is a partition of another one.
const ANCESTORS: &[(&str, DataType)] = &[("relid", DataType::BigInt)];
const PARTS: &[(&str, DataType)] = &[("string_to_table", DataType::Text)];
const SPLIT: &[(&str, DataType)] = &[("regexp_split_to_table", DataType::Text)];
const FOUND: &[(&str, DataType)] = &[("jsonb_path_query", DataType::Jsonb)];
const FOUND_TZ: &[(&str, DataType)] = &[("jsonb_path_query_tz", DataType::Jsonb)];
const MATCHES: &[(&str, DataType)] = &[("regexp_matches", TEXTS)];

/// Returns the function `name` that takes `count` arguments.
pub fn row_function(name: &str, count: usize) -> Option<&'static RowFunction> {
    if name == UNNEST.name {
        return Some(&UNNEST);
    }
    if name == EXPANSION.name && count == 1 {
        return Some(&EXPANSION);
    }
    TABLE.iter().find(|known| known.name == name && known.arguments.len() == count)
}

/// `information_schema._pg_expandarray`: the elements of an array with their numbers. The first
/// column has the type of the elements.
pub static EXPANSION: RowFunction = strict(
    "_pg_expandarray",
    &[None],
    &[("x", DataType::Text), ("n", DataType::Integer)],
    |arguments| {
        let number = |at: usize| Value::Integer(i32::try_from(at + 1).unwrap_or(i32::MAX));
        let elements = array(arguments, 0)?.iter().enumerate();
        Ok(elements.map(|(at, element)| vec![element.to_value(), number(at)]).collect())
    },
);

fn rows_of<'v>(values: impl IntoIterator<Item = ValueRef<'v>>) -> Vec<FunctionRow> {
    values.into_iter().map(|value| vec![value.to_value()]).collect()
}

/// Returns a row for each element. Shorter arrays are filled with NULLs.
/// What one argument of `unnest` consists of.
enum Elements<'v> {
    None,
    Array(ArrayRef<'v>),
    Ranges(Vec<Value>),
}

impl Elements<'_> {
    fn len(&self) -> usize {
        match self {
            Elements::None => 0,
            Elements::Array(array) => array.len(),
            Elements::Ranges(ranges) => ranges.len(),
        }
    }

    fn get(&self, number: usize) -> Value {
        match self {
            Elements::None => Value::Null,
            Elements::Array(array) => array.get(number).to_value(),
            Elements::Ranges(ranges) => ranges.get(number).cloned().unwrap_or_default(),
        }
    }
}

fn unnest(arguments: &[ValueRef<'_>]) -> Result<Vec<FunctionRow>> {
    let mut columns = Vec::with_capacity(arguments.len());
    for (at, argument) in arguments.iter().enumerate() {
        columns.push(match argument {
            ValueRef::Null => Elements::None,
            ValueRef::Encoded(..) => Elements::Ranges(ranges_of(arguments, at)?),
            _ => Elements::Array(array(arguments, at)?),
        });
    }
    let count = columns.iter().map(Elements::len).max().unwrap_or(0);
    Ok((0..count).map(|number| columns.iter().map(|it| it.get(number)).collect()).collect())
}

fn subscripts(arguments: &[ValueRef<'_>]) -> Result<Vec<FunctionRow>> {
    let (array, number) = (array(arguments, 0)?, integer(arguments, 1)?);
    let number = usize::try_from(number - 1).ok();
    let Some(dimension) = number.and_then(|number| array.dimension(number)) else {
        return Ok(Vec::new());
    };
    let places = i64::from(dimension.lower)..=dimension.upper();
    let places = places.map(|place| ValueRef::Integer(place as i32));
    Ok(match arguments.get(2) {
        Some(ValueRef::Boolean(true)) => rows_of(places.rev()),
        _ => rows_of(places),
    })
}

fn parts(arguments: &[ValueRef<'_>]) -> Result<Vec<FunctionRow>> {
    match arguments.first() {
        Some(ValueRef::Null) | None => Ok(Vec::new()),
        _ => Ok(rows_of(split_values(arguments)?)),
    }
}

fn split(arguments: &[ValueRef<'_>]) -> Result<Vec<FunctionRow>> {
    let parts = split_regular(arguments, "regexp_split_to_table")?;
    Ok(rows_of(parts.into_iter().map(ValueRef::Text)))
}

fn matches(arguments: &[ValueRef<'_>]) -> Result<Vec<FunctionRow>> {
    let found = captures_of(arguments)?;
    let row =
        |groups: Vec<ValueRef<'_>>| Ok(vec![Value::Array(Array::new(ElementType::TEXT, groups)?)]);
    found.into_iter().map(row).collect()
}
