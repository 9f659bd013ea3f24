//! Writes the rows of a result as a table, as CSV or as JSON.
//!
//! Above: the shell. CSV and JSON rows are streamed. A table needs the widths of its columns before
//! its first line, so a long result is written as several tables.

use std::collections::HashSet;
use std::io::{self, Write};

use anyhow::bail;
use comfy_table::{Cell, CellAlignment, ContentLineStyle, LineStyle, Table, TableStyle};
use quickbeam_sql::CsvDialect as Dialect;
use quickbeam_sql::OutputColumn;
use quickbeam_sql::types::{TextSettings, format_value};
use quickbeam_sql::{DataType, SqlError, ValueRef};

use super::session::ResultRows;
use super::settings::OutputSettings;

/// Maximum rows of one table.
const TABLE_ROWS: usize = 10_000;

/// The rules between columns and below the header.
const LINES: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction('|'))
    .header_separator(LineStyle::none().fill('-').junction('+'))
    .content_lines(ContentLineStyle::none().junction('|'));

/// The output format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns
    Table,
    /// Comma-separated values with a header line
    Csv,
    /// An array of objects
    Json,
}

impl std::str::FromStr for Format {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> anyhow::Result<Format> {
        match name {
            "table" => Ok(Format::Table),
            "csv" => Ok(Format::Csv),
            "json" => Ok(Format::Json),
            _ => bail!("\"{name}\" is no format: table, csv and json are"),
        }
    }
}

/// The reason that writing the rows stopped early.
pub enum Failure {
    /// The statement failed.
    Statement(SqlError),
    /// The output could not be written.
    Output(io::Error),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        Failure::Statement(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

/// Writes all rows and returns their number.
pub fn rows<'r>(
    output: &mut impl Write,
    rows: impl Into<ResultRows<'r>>,
    settings: &OutputSettings,
) -> Result<u64, Failure> {
    let mut rows = rows.into();
    match settings.format {
        Format::Table if settings.is_expanded => expanded(output, &mut rows, settings),
        Format::Table => tables(output, &mut rows, settings),
        Format::Csv => csv(output, &mut rows, &settings.texts),
        Format::Json => json(output, &mut rows, &settings.texts),
    }
}

/// Writes each row as lines of a column's name and its value.
fn expanded(
    output: &mut impl Write,
    rows: &mut ResultRows<'_>,
    settings: &OutputSettings,
) -> Result<u64, Failure> {
    let names: Vec<String> = rows.columns().iter().map(|column| printable(&column.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut count = 0_u64;
    while let Some(row) = rows.next()? {
        count += 1;
        if !settings.is_tuples_only {
            writeln!(output, "-[ RECORD {count} ]{}", "-".repeat(width.saturating_sub(3)))?;
        }
        for (column, name) in names.iter().enumerate() {
            let value = shown(row.value(column)?, settings);
            let pad = " ".repeat(width - name.chars().count());
            // Further lines of a value begin in the value's column.
            let margin = format!("\n{}| ", " ".repeat(width + 1));
            writeln!(
                output,
                "{}",
                format!("{name}{pad} | {}", value.replace('\n', &margin)).trim_end()
            )?;
        }
    }
    if count == 0 {
        footer(output, count, settings)?;
    }
    Ok(count)
}

fn footer(output: &mut impl Write, count: u64, settings: &OutputSettings) -> io::Result<()> {
    if settings.has_footer && !settings.is_tuples_only {
        writeln!(output, "({count} row{})", if count == 1 { "" } else { "s" })?;
    }
    Ok(())
}

fn tables(
    output: &mut impl Write,
    rows: &mut ResultRows<'_>,
    settings: &OutputSettings,
) -> Result<u64, Failure> {
    let columns = rows.columns().to_vec();
    let mut count = 0_u64;
    loop {
        let mut lines = Vec::new();
        while lines.len() < TABLE_ROWS
            && let Some(row) = rows.next()?
        {
            let cells: Result<Vec<String>, SqlError> =
                (0..row.len()).map(|column| Ok(shown(row.value(column)?, settings))).collect();
            lines.push(cells?);
        }
        let is_last = lines.len() < TABLE_ROWS;
        if count == 0 || !lines.is_empty() {
            count += lines.len() as u64;
            table(output, &columns, lines, settings)?;
        }
        if is_last {
            footer(output, count, settings)?;
            return Ok(count);
        }
    }
}

fn table(
    output: &mut impl Write,
    columns: &[OutputColumn],
    lines: Vec<Vec<String>>,
    settings: &OutputSettings,
) -> io::Result<()> {
    let heads: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let right: Vec<bool> = columns.iter().map(|column| is_number(column.data_type)).collect();
    let heads = if settings.is_tuples_only { &[][..] } else { &heads };
    text_table(output, heads, &right, lines)
}

/// Writes a table of strings. `right` flags the right-aligned columns.
pub fn text_table(
    output: &mut impl Write,
    heads: &[&str],
    right: &[bool],
    lines: Vec<Vec<String>>,
) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(LINES);
    if !heads.is_empty() {
        table.set_header(heads.iter().map(|head| printable(head)));
    }
    for line in lines {
        table.add_row(line.into_iter().map(Cell::new));
    }
    for (column, right) in table.column_iter_mut().zip(right) {
        column.set_cell_alignment(if *right { CellAlignment::Right } else { CellAlignment::Left });
    }
    // Trailing blanks carry no information.
    for line in table.lines() {
        writeln!(output, "{}", line.trim_end())?;
    }
    Ok(())
}

fn is_number(data_type: DataType) -> bool {
    data_type.is_numeric()
}

/// Formats a value for a table. Control characters are escaped.
fn shown(value: ValueRef<'_>, settings: &OutputSettings) -> String {
    match value {
        ValueRef::Null => settings.null.clone(),
        ValueRef::Text(text) => printable(text),
        other => text_of(other, &settings.texts),
    }
}

/// Returns the text of a value with the settings of the session.
fn text_of(value: ValueRef<'_>, settings: &TextSettings) -> String {
    let mut text = String::new();
    format_value(&mut text, value, settings);
    text
}

fn printable(text: &str) -> String {
    let steers = |c: char| c.is_control() && c != '\n';
    if !text.contains(steers) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            c if steers(c) => out.push_str(&format!("\\x{:02X}", c as u32)),
            c => out.push(c),
        }
    }
    out
}

fn csv(
    output: &mut impl Write,
    rows: &mut ResultRows<'_>,
    settings: &TextSettings,
) -> Result<u64, Failure> {
    let dialect = Dialect::default();
    let width = rows.columns().len();
    let mut record = Vec::new();
    for (number, column) in rows.columns().iter().enumerate() {
        separate(&mut record, number);
        dialect.write(&mut record, Some(&column.name), width == 1);
    }
    record.push(b'\n');
    let mut count = 0;
    // The header is held back until the first row: a query that fails before it writes nothing.
    while let Some(row) = rows.next()? {
        for column in 0..row.len() {
            separate(&mut record, column);
            match row.value(column)? {
                ValueRef::Null => dialect.write(&mut record, None, width == 1),
                ValueRef::Text(text) => dialect.write(&mut record, Some(text), width == 1),
                other => {
                    dialect.write(&mut record, Some(&text_of(other, settings)), width == 1);
                }
            }
        }
        record.push(b'\n');
        output.write_all(&record)?;
        record.clear();
        count += 1;
    }
    output.write_all(&record)?;
    Ok(count)
}

fn separate(record: &mut Vec<u8>, number: usize) {
    if number > 0 {
        record.push(b',');
    }
}

fn json(
    output: &mut impl Write,
    rows: &mut ResultRows<'_>,
    settings: &TextSettings,
) -> Result<u64, Failure> {
    let names = distinct(rows.columns().iter().map(|column| column.name.to_string()).collect());
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    let mut count = 0;
    let mut object = String::new();
    loop {
        object.clear();
        object.push_str(if count == 0 { "[\n" } else { ",\n" });
        match json_object(rows, &names, &mut object, settings) {
            Ok(true) => output.write_all(object.as_bytes())?,
            Ok(false) if count == 0 => {
                output.write_all(b"[]\n")?;
                return Ok(0);
            }
            Ok(false) => {
                output.write_all(b"\n]\n")?;
                return Ok(count);
            }
            Err(error) => {
                // The output stays valid JSON. A query that fails at once writes nothing.
                if count > 0 {
                    output.write_all(b"\n]\n")?;
                }
                return Err(error.into());
            }
        }
        count += 1;
    }
}

/// Makes the names of an object's fields distinct: the second `a` becomes `a_2`.
fn distinct(names: Vec<String>) -> Vec<String> {
    let mut used: HashSet<String> = names.iter().cloned().collect();
    let mut seen = HashSet::new();
    let rename = |name: String| {
        if seen.insert(name.clone()) {
            return name;
        }
        let mut number = 2_u64;
        while !used.insert(format!("{name}_{number}")) {
            number += 1;
        }
        format!("{name}_{number}")
    };
    names.into_iter().map(rename).collect()
}

/// Appends the next row as an object. Returns false if there are no more rows.
fn json_object(
    rows: &mut ResultRows<'_>,
    names: &[String],
    object: &mut String,
    settings: &TextSettings,
) -> Result<bool, SqlError> {
    let Some(row) = rows.next()? else { return Ok(false) };
    for (column, name) in names.iter().enumerate() {
        object.push(if column == 0 { '{' } else { ',' });
        object.push_str(name);
        object.push(':');
        object.push_str(&json_value(row.value(column)?, settings));
    }
    object.push_str(if names.is_empty() { "{}" } else { "}" });
    Ok(true)
}

/// Formats a value as JSON. Numbers keep all digits; types without a JSON form become strings.
fn json_value(value: ValueRef<'_>, settings: &TextSettings) -> String {
    match value {
        ValueRef::Null => "null".to_owned(),
        ValueRef::Boolean(value) => value.to_string(),
        ValueRef::Real(value) if !value.is_finite() => quoted(&ValueRef::Real(value).to_string()),
        ValueRef::Double(value) if !value.is_finite() => {
            quoted(&ValueRef::Double(value).to_string())
        }
        ValueRef::SmallInt(_)
        | ValueRef::Integer(_)
        | ValueRef::BigInt(_)
        | ValueRef::Real(_)
        | ValueRef::Double(_)
        | ValueRef::Numeric(_)
        | ValueRef::LongNumeric(_) => value.to_string(),
        ValueRef::Text(text) => quoted(text),
        other => quoted(&text_of(other, settings)),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use quickbeam::Options;
    use quickbeam_sql::SqlDatabase;

    use super::*;

    fn written(query: &str, format: Format) -> String {
        let database = SqlDatabase::open_in_memory(Options::default()).unwrap();
        let connection = database.connect();
        let mut output = Vec::new();
        let answer = connection.query(query, &[]).unwrap();
        assert!(rows(&mut output, answer, &OutputSettings::new(format)).is_ok());
        String::from_utf8(output).unwrap()
    }

    const QUERY: &str = "SELECT * FROM (VALUES (1, 'a', 1.50, true), (20, NULL, 'NaN'::DOUBLE PRECISION, false), \
        (NULL, '', 2, NULL), (3, E'x\"y,z\\n\\x1b[2J', '1e300'::DOUBLE PRECISION, true)) AS t (n, \"a text\", d, b)";

    #[test]
    fn a_table_for_people() {
        let expected = "  n | a text     |      d | b\n----+------------+--------+---\n";
        let found = written(QUERY, Format::Table);
        assert!(found.contains("x\"y,z"), "{found}");
        assert!(found.contains("\\x1B[2J") && !found.contains('\u{1b}'), "{found}");
        assert!(found.ends_with("(4 rows)\n"), "{found}");
        assert_eq!(found.lines().count(), 8, "{expected}{found}");
        let one = written("SELECT 1 AS n, 'grün' AS c", Format::Table);
        assert_eq!(one, " n | c\n---+------\n 1 | grün\n(1 row)\n");
        assert_eq!(written("SELECT 1 AS n WHERE false", Format::Table), " n\n---\n(0 rows)\n");
    }

    #[test]
    fn csv_tells_null_from_nothing() {
        let expected =
            "n,a text,d,b\n1,a,1.5,t\n20,,NaN,f\n,\"\",2,\n3,\"x\"\"y,z\n\u{1b}[2J\",1e+300,t\n";
        assert_eq!(written(QUERY, Format::Csv), expected);
    }

    #[test]
    fn json_is_json() {
        let found: serde_json::Value = serde_json::from_str(&written(QUERY, Format::Json)).unwrap();
        let expected = serde_json::json!([
            {"n": 1, "a text": "a", "d": 1.5, "b": true},
            {"n": 20, "a text": null, "d": "NaN", "b": false},
            {"n": null, "a text": "", "d": 2, "b": null},
            {"n": 3, "a text": "x\"y,z\n\u{1b}[2J", "d": 1e300, "b": true},
        ]);
        assert_eq!(found.to_string().replace("2.0", "2"), expected.to_string().replace("2.0", "2"));
        assert_eq!(written("SELECT 1 AS n WHERE false", Format::Json), "[]\n");
        let twice = written("SELECT 1 AS a, 2 AS a, 3 AS a_2", Format::Json);
        assert_eq!(twice, "[\n{\"a\":1,\"a_3\":2,\"a_2\":3}\n]\n");
        let digits = written("SELECT 12345678901234567890123456789.5 AS n", Format::Json);
        assert_eq!(digits, "[\n{\"n\":12345678901234567890123456789.5}\n]\n");
    }

    #[test]
    fn a_long_answer_is_several_tables() {
        let query = "SELECT a.v FROM (VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)) a (v), \
            (VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)) b (v), (VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)) c (v), \
            (VALUES (1),(2),(3),(4),(5),(6),(7),(8),(9),(10)) d (v), (VALUES (1),(2)) e (v)";
        let found = written(query, Format::Table);
        assert!(found.ends_with("(20000 rows)\n"));
        assert_eq!(found.lines().count(), 20_000 + 2 * 2 + 1);
    }
}
