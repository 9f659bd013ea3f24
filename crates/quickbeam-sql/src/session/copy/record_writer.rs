//! Records that COPY TO writes, in one of the formats.
//!
//! Above: COPY TO, which has the rows. Below: the formats of fields.

use std::io::Write;

use super::binary::{BinaryCodec, header, trailer};
use super::not_written;
use crate::bind::{CopyForm, CopyHeader, OutputColumn};
use crate::error::Result;
use crate::types::{TextSettings, ValueRef, format_value};

/// Makes records of values. A record is written as a whole.
pub(super) struct RecordWriter<'f> {
    form: &'f CopyForm,
    /// How values are written in the binary format.
    codec: Option<BinaryCodec>,
    /// The columns whose values are quoted in any case.
    quoted: Vec<bool>,
    settings: TextSettings,
    text: String,
    /// What is not written yet. Clients expect a binary header and the first record in one piece.
    record: Vec<u8>,
}

impl<'f> RecordWriter<'f> {
    pub fn new(
        form: &'f CopyForm,
        codec: Option<BinaryCodec>,
        columns: &[OutputColumn],
        settings: TextSettings,
    ) -> RecordWriter<'f> {
        let quoted = columns.iter().map(|column| form.force_quote.has(&column.name)).collect();
        let record = if codec.is_some() { header() } else { Vec::new() };
        RecordWriter { form, codec, quoted, settings, text: String::new(), record }
    }

    /// Writes the names of the columns if the form has a header line.
    pub fn write_names(&mut self, output: &mut dyn Write, columns: &[OutputColumn]) -> Result<()> {
        if self.form.header == CopyHeader::Absent {
            return Ok(());
        }
        let names = columns.iter().map(|column| Some(column.name.as_str()));
        self.form.format.write_record(&mut self.record, names);
        self.flush(output)
    }

    /// Begins a record.
    pub fn begin(&mut self) {
        if self.codec.is_some() {
            let width = i16::try_from(self.quoted.len()).unwrap_or(-1);
            self.record.extend_from_slice(&width.to_be_bytes());
        }
    }

    /// Appends a field to the record.
    pub fn put(&mut self, number: usize, value: ValueRef<'_>) {
        if let Some(codec) = self.codec {
            return codec.write_field(&mut self.record, value);
        }
        let field = match value {
            ValueRef::Null => None,
            ValueRef::Text(text) => Some(text),
            other => {
                self.text.clear();
                format_value(&mut self.text, other, &self.settings);
                Some(self.text.as_str())
            }
        };
        let (format, record) = (&self.form.format, &mut self.record);
        match field {
            Some(text) if self.quoted[number] => format.write_quoted(record, number, text),
            field => format.write_field(record, number, field, self.quoted.len() == 1),
        }
    }

    /// Ends the record and writes it.
    pub fn end(&mut self, output: &mut dyn Write) -> Result<()> {
        if self.codec.is_none() {
            self.record.push(b'\n');
        }
        self.flush(output)
    }

    /// Ends the output instead of the record that has begun.
    pub fn finish(&mut self, output: &mut dyn Write) -> Result<()> {
        if self.codec.is_some() {
            // The number of fields of a row that is not there.
            self.record.truncate(self.record.len().saturating_sub(2));
            self.record.extend_from_slice(&trailer());
            self.flush(output)?;
        }
        output.flush().map_err(|error| not_written(&error))
    }

    fn flush(&mut self, output: &mut dyn Write) -> Result<()> {
        output.write_all(&self.record).map_err(|error| not_written(&error))?;
        self.record.clear();
        Ok(())
    }
}
