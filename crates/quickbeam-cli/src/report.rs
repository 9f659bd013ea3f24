//! Writes the engine's statistics and reports as text or JSON.
//!
//! The text form follows the structure: a field is a line, a nested structure a heading with its
//! fields indented below. A new counter of the engine needs no change here. The last part of a
//! field's name is its unit: `log_bytes`, `write_us`.

use std::io::{self, Write};

use serde_json::{Map, Value};

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// As JSON.
    Json,
    /// As lines of text.
    Text,
}

impl From<bool> for ReportFormat {
    fn from(as_json: bool) -> ReportFormat {
        if as_json { ReportFormat::Json } else { ReportFormat::Text }
    }
}

/// Suffixes of field names and the units they mean.
const UNITS: [(&str, &str); 8] = [
    ("_bytes", "bytes"),
    ("_size", "bytes"),
    ("_used", "bytes"),
    ("_ns", "ns"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_s", "s"),
    ("_seconds", "s"),
];
/// The column at which values begin.
const COLUMN: usize = 40;

/// Writes a structure as text or as indented JSON.
pub fn write(output: &mut impl Write, value: &Value, format: ReportFormat) -> io::Result<()> {
    let as_json = format == ReportFormat::Json;
    if as_json {
        writeln!(output, "{:#}", with_seconds(value))
    } else {
        match value {
            Value::Object(fields) => write_fields(output, fields, 0),
            other => writeln!(output, "{}", scalar(other, "")),
        }
    }
}

fn write_fields(
    output: &mut impl Write,
    fields: &Map<String, Value>,
    indent: usize,
) -> io::Result<()> {
    for (name, value) in fields {
        write_field(output, name, value, indent)?;
    }
    Ok(())
}

fn write_field(
    output: &mut impl Write,
    name: &str,
    value: &Value,
    indent: usize,
) -> io::Result<()> {
    let margin = " ".repeat(indent);
    let (label, unit) = label_and_unit(name);
    match value {
        Value::Object(fields) if duration(fields).is_none() => {
            writeln!(output, "{margin}{label}")?;
            write_fields(output, fields, indent + 2)
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_string()) => {
            writeln!(output, "{margin}{label}")?;
            for (number, item) in items.iter().enumerate() {
                write_item(output, number, item, indent + 2)?;
            }
            Ok(())
        }
        other => {
            let width = COLUMN.saturating_sub(indent);
            writeln!(output, "{margin}{label:<width$} {}", scalar(other, unit))
        }
    }
}

/// Writes an item of a list below its name, or below its number if it has no name.
fn write_item(
    output: &mut impl Write,
    number: usize,
    item: &Value,
    indent: usize,
) -> io::Result<()> {
    let margin = " ".repeat(indent);
    let Value::Object(fields) = item else {
        return writeln!(output, "{margin}{}", scalar(item, ""));
    };
    match fields.get("name").and_then(Value::as_str) {
        Some(name) => writeln!(output, "{margin}{name}")?,
        None => writeln!(output, "{margin}{}", number + 1)?,
    }
    for (name, value) in fields.iter().filter(|(name, value)| *name != "name" || !value.is_string())
    {
        write_field(output, name, value, indent + 2)?;
    }
    Ok(())
}

fn label_and_unit(name: &str) -> (String, &'static str) {
    let found =
        UNITS.iter().find(|(ending, _)| name.len() > ending.len() && name.ends_with(ending));
    let (stem, unit) = match found {
        // The label keeps "bytes", because a size in larger units follows the number.
        Some((_, "bytes")) => (name, "bytes"),
        Some((ending, unit)) => (name.trim_end_matches(ending), *unit),
        None => (name, ""),
    };
    (stem.replace('_', " "), unit)
}

fn scalar(value: &Value, unit: &str) -> String {
    let number = match value {
        Value::Null => return "none".to_owned(),
        Value::Bool(yes) => return if *yes { "yes" } else { "no" }.to_owned(),
        Value::String(text) => return text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| scalar(item, unit)).collect();
            return if items.is_empty() { "none".to_owned() } else { items.join(", ") };
        }
        Value::Object(fields) => {
            return duration(fields).map_or_else(String::new, |seconds| format!("{seconds:.3} s"));
        }
        Value::Number(number) => match number.as_u64() {
            Some(whole) => grouped(whole),
            None => number.as_f64().map_or_else(|| number.to_string(), |real| format!("{real:.3}")),
        },
    };
    match (unit, value.as_u64()) {
        ("bytes", Some(bytes)) if bytes >= 1 << 10 => format!("{number} ({})", size(bytes)),
        ("" | "bytes", _) => number,
        (unit, _) => format!("{number} {unit}"),
    }
}

/// Replaces each duration by a number of seconds, in a field whose name ends in `_seconds`.
fn with_seconds(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| match value.as_object().map(duration) {
                Some(Some(seconds)) => (format!("{name}_seconds"), seconds.into()),
                _ => (name.clone(), with_seconds(value)),
            };
            Value::Object(fields.iter().map(field).collect())
        }
        Value::Array(items) => items.iter().map(with_seconds).collect(),
        other => other.clone(),
    }
}

/// Returns the seconds of a `std::time::Duration`, which serde writes as two fields.
fn duration(fields: &Map<String, Value>) -> Option<f64> {
    let seconds = fields.get("secs")?.as_f64()?;
    let nanoseconds = fields.get("nanos")?.as_f64()?;
    (fields.len() == 2).then_some(seconds + nanoseconds / 1e9)
}

/// Formats a number with its digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a size in the largest binary unit of which there is at least one.
#[allow(clippy::cast_precision_loss)] // One digit after the point is shown.
fn size(bytes: u64) -> String {
    let mut amount = bytes as f64;
    let mut unit = "bytes";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = larger;
    }
    format!("{amount:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &Value) -> String {
        let mut output = Vec::new();
        write(&mut output, value, ReportFormat::Text).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn a_structure_is_shown_field_by_field() {
        let value = serde_json::json!({
            "cache": {"hits": 1_234_567, "size_bytes": 67_108_864, "clean": true},
            "log": {"write_us": 12.5, "oldest_reader": null, "age": {"secs": 1, "nanos": 500_000_000}},
            "trees": [{"name": "people", "depth": 2, "levels": [1, 20]}, {"depth": 1}],
            "files": [],
            "complaints": ["page 3, key 1", "page 4"],
        });
        let expected = "\
cache
  hits                                   1,234,567
  size bytes                             67,108,864 (64.0 MiB)
  clean                                  yes
log
  write                                  12.500 µs
  oldest reader                          none
  age                                    1.500 s
trees
  people
    depth                                2
    levels                               1, 20
  2
    depth                                1
files                                    none
complaints
  page 3, key 1
  page 4
";
        assert_eq!(text(&value), expected);
    }

    #[test]
    fn json_is_json() {
        let value = serde_json::json!({"b": 1, "a": [true]});
        let mut output = Vec::new();
        write(&mut output, &value, ReportFormat::Json).unwrap();
        let back: Value = serde_json::from_slice(&output).unwrap();
        assert_eq!(back, value);
        assert!(output.starts_with(b"{\n  \"b\""), "fields keep their order");
        let value = serde_json::json!({"log": [{"age": {"secs": 1, "nanos": 500_000_000}}]});
        output.clear();
        write(&mut output, &value, ReportFormat::Json).unwrap();
        let back: Value = serde_json::from_slice(&output).unwrap();
        assert_eq!(back, serde_json::json!({"log": [{"age_seconds": 1.5}]}));
    }

    #[test]
    fn numbers_are_grouped() {
        let cases =
            [(0, "0"), (999, "999"), (1000, "1,000"), (u64::MAX, "18,446,744,073,709,551,615")];
        for (number, shown) in cases {
            assert_eq!(grouped(number), shown);
        }
    }
}
