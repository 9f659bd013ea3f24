//! Row descriptions and data rows.

use bytes::{BufMut, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{FieldDescription, RowDescription};
use quickbeam_sql::{DataType, Row, SqlError};

use super::types::{put_value, wire_type};

/// The format of each result column, as Bind gives it: none for text, one for all, or one each.
#[derive(Clone, Debug, Default)]
pub struct Formats(pub Vec<i16>);

impl Formats {
    /// Whether a column goes in binary.
    pub fn is_binary(&self, column: usize) -> bool {
        let code = match &self.0[..] {
            [] => 0,
            [all] => *all,
            each => each.get(column).copied().unwrap_or(0),
        };
        code == 1
    }
}

/// Describes result columns by name and type.
pub fn description<'c>(
    columns: impl Iterator<Item = (&'c str, DataType)>,
    formats: &Formats,
) -> PgWireBackendMessage {
    let field = |(number, (name, data_type)): (usize, (&str, DataType))| {
        let wire = wire_type(data_type);
        let format = i16::from(formats.is_binary(number));
        FieldDescription::new(name.to_owned(), 0, 0, wire.oid, wire.size, wire.modifier, format)
    };
    let fields = columns.enumerate().map(field).collect();
    PgWireBackendMessage::RowDescription(RowDescription::new(fields))
}

/// Appends a data row.
pub fn put_row(
    out: &mut BytesMut,
    row: &Row<'_>,
    columns: usize,
    formats: &Formats,
) -> Result<(), SqlError> {
    let start = out.len();
    out.put_u8(b'D');
    out.put_i32(0);
    out.put_i16(columns as i16);
    for column in 0..columns {
        let value = row.value(column).inspect_err(|_| out.truncate(start))?;
        put_value(out, value, formats.is_binary(column));
    }
    let length = (out.len() - start - 1) as i32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
