//! Row descriptions and data rows.

use crate::protocol::types::WireFormat;
use bytes::{BufMut, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{FieldDescription, RowDescription};
use quickbeam_sql::types::TextSettings;
use quickbeam_sql::{DataType, OutputColumn, Row, SqlError};

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

/// A column of a result.
#[derive(Clone, Debug)]
pub struct ResultColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// The OID of the table that it is read from and its number there; 0 for what is computed.
    pub origin: (u32, i16),
}

/// Returns the columns of a result, with what is known of the tables that they come from.
pub fn result_columns(
    columns: &[OutputColumn],
    origins: &[Option<(u32, i16)>],
) -> Vec<ResultColumn> {
    let column = |(number, column): (usize, &OutputColumn)| ResultColumn {
        name: column.name.to_string(),
        data_type: column.data_type,
        origin: origins.get(number).copied().flatten().unwrap_or_default(),
    };
    columns.iter().enumerate().map(column).collect()
}

/// Describes result columns.
pub fn description(columns: &[ResultColumn], formats: &Formats) -> PgWireBackendMessage {
    let field = |(number, column): (usize, &ResultColumn)| {
        let wire = wire_type(column.data_type);
        let format = i16::from(formats.is_binary(number));
        let (table, of_table) = (column.origin.0 as i32, column.origin.1);
        let name = column.name.clone();
        FieldDescription::new(name, table, of_table, wire.oid, wire.size, wire.modifier, format)
    };
    let fields = columns.iter().enumerate().map(field).collect();
    PgWireBackendMessage::RowDescription(RowDescription::new(fields))
}

/// Appends a data row, texts with the settings of the session.
pub fn put_row(
    out: &mut BytesMut,
    row: &Row<'_>,
    columns: usize,
    formats: &Formats,
    settings: &TextSettings,
) -> Result<(), SqlError> {
    let start = out.len();
    out.put_u8(b'D');
    out.put_i32(0);
    out.put_i16(columns as i16);
    for column in 0..columns {
        let value = row.value(column).inspect_err(|_| out.truncate(start))?;
        put_value(out, value, WireFormat::from(formats.is_binary(column)), settings);
    }
    let length = (out.len() - start - 1) as i32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
