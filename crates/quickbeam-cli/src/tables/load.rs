//! Loads the tables of a dump's section.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, anyhow};
use quickbeam::{Environment, Transaction};
use quickbeam_sql::{CopyAccess, CopyPlace, SqlDatabase, SqlError};

use super::END_OF_ROWS;
use crate::dump::dump_format::ItemFormat;
use crate::dump::load::DumpInput;

/// A loaded table and its number of rows.
pub struct Loaded {
    pub table: String,
    pub rows: u64,
}

/// Executes the statements of a section in a transaction. Returns the input, positioned after the
/// section.
pub fn load(
    environment: &Environment,
    transaction: &Transaction,
    input: DumpInput,
    format: ItemFormat,
) -> anyhow::Result<(Vec<Loaded>, DumpInput)> {
    let database = SqlDatabase::attach(environment).context("cannot open the tables")?;
    let connection = database.connect();
    let input = Arc::new(Mutex::new(input));
    // Bodies may name objects that follow.
    connection.execute("SET check_function_bodies = off", &[])?;
    connection.set_copy_access(DumpedRows { input: input.clone(), format });
    let mut loaded = Vec::new();
    let mut item = Vec::new();
    loop {
        let line = {
            let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
            if !input.item(format, &mut item)? {
                break;
            }
            input.line()
        };
        let at = || format!("line {line}");
        let text = std::str::from_utf8(&item).context("the statement is not UTF-8");
        let text = text.with_context(at)?;
        let executed = || {
            let mut statement = connection.prepare_in(transaction, text)?;
            if statement.columns().is_empty() {
                return statement.execute_in(transaction, &[]);
            }
            // setval() of a sequence, for example.
            Ok(statement.query_in(transaction, &[])?.collect()?.len() as u64)
        };
        let rows = executed().map_err(|error| told(&error));
        let rows = rows.with_context(|| shown(text)).with_context(at)?;
        if let Some(table) = copied(text) {
            loaded.push(Loaded { table, rows });
        }
    }
    // The connection holds a reference to the input.
    drop(connection);
    let input = Arc::into_inner(input).ok_or_else(|| anyhow!("a COPY still reads the input"))?;
    Ok((loaded, input.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// Formats an SQL error as one line.
fn told(error: &SqlError) -> anyhow::Error {
    let more = error.detail().into_iter().chain(error.context());
    let more: String = more.map(|text| format!("; {text}")).collect();
    anyhow!("{error}{more}")
}

/// Returns the beginning of a statement for a message.
fn shown(text: &str) -> String {
    let cut: String = text.chars().take(80).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

/// Returns the name of the table that a COPY fills.
fn copied(text: &str) -> Option<String> {
    let rest = text.strip_prefix("COPY \"")?;
    let (name, _) = rest.split_once("\" (")?;
    // A point between quotes parts the schema from the name.
    Some(name.replace("\".\"", ".").replace("\"\"", "\""))
}

/// The rows that follow a COPY: the items up to the terminator.
struct DumpedRows {
    input: Arc<Mutex<DumpInput>>,
    format: ItemFormat,
}

impl CopyAccess for DumpedRows {
    fn reader(&mut self, place: &CopyPlace, _: usize) -> io::Result<Box<dyn Read + '_>> {
        match place {
            CopyPlace::Standard => {
                let (input, format) = (self.input.clone(), self.format);
                Ok(Box::new(Records { input, format, record: Vec::new(), at: 0, is_end: false }))
            }
            CopyPlace::File(_) => Err(no_file()),
        }
    }

    fn writer(&mut self, _: &CopyPlace, _: usize) -> io::Result<Box<dyn Write + '_>> {
        Err(no_file())
    }
}

/// The error for a COPY with a file, which a dump must not access.
fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "a dump has its rows in itself")
}

struct Records {
    input: Arc<Mutex<DumpInput>>,
    format: ItemFormat,
    record: Vec<u8>,
    at: usize,
    is_end: bool,
}

impl Read for Records {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.record.len() {
            if self.is_end {
                return Ok(0);
            }
            self.at = 0;
            let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
            let found = input.item(self.format, &mut self.record);
            let is_there = found.map_err(|error| io::Error::other(format!("{error:#}")))?;
            if !is_there {
                let message = format!("line {}: the section ends within rows", input.line());
                return Err(io::Error::other(message));
            }
            if self.record == END_OF_ROWS {
                (self.is_end, self.at) = (true, self.record.len());
                return Ok(0);
            }
            self.record.push(b'\n');
        }
        let rest = &self.record[self.at..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}
