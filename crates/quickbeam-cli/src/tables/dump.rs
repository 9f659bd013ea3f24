//! Writes tables as text: as a section of a dump, or as an SQL script.

use std::io::Write;

use anyhow::{Context, bail};
use quickbeam::{Environment, Snapshot};
use quickbeam_sql::CsvDialect as Dialect;
use quickbeam_sql::catalog::access_text::{create_roles, grant_rights};
use quickbeam_sql::catalog::programs::RoutineKind;
use quickbeam_sql::catalog::text::{
    Wording, add_foreign_keys, create_indexes, create_materialized_view, create_schemas,
    create_sequence, create_table, create_view, quoted, quoted_relation, refresh_materialized_view,
    set_sequence, view_defaults,
};
use quickbeam_sql::catalog::{Table, is_temporary_schema};
use quickbeam_sql::types::{TextSettings, format_value};
use quickbeam_sql::{Connection, Row, SqlDatabase, ValueRef};

use super::END_OF_ROWS;
use crate::dump::dump_format;
use crate::dump::dump_format::{Content, ItemFormat};
use crate::output::Output;

/// A destination of statements and rows.
pub trait Sink {
    /// Returns the SQL dialect of the statements.
    fn wording(&self) -> Wording;
    fn begin(&mut self) -> anyhow::Result<()>;
    /// Precedes functions, whose bodies may name objects that follow.
    fn begin_routines(&mut self) -> anyhow::Result<()>;
    fn statement(&mut self, text: &str) -> anyhow::Result<()>;
    /// Writes a COPY statement. Its rows follow.
    fn copy(&mut self, table: &Table, text: &str) -> anyhow::Result<()>;
    /// Writes a row of the current COPY.
    fn row(&mut self, row: &Row<'_>) -> anyhow::Result<()>;
    fn end_of_rows(&mut self) -> anyhow::Result<()>;
    fn end(&mut self) -> anyhow::Result<()>;
}

/// Writes all tables, views, sequences, functions and triggers of an environment. Writes nothing if
/// there are none.
pub fn write(environment: &Environment, sink: &mut impl Sink) -> anyhow::Result<()> {
    let database = SqlDatabase::attach(environment).context("cannot open the tables")?;
    let connection = database.connect();
    let transaction = environment.begin_read()?;
    let catalog = database.catalog().snapshot(&transaction)?;
    let has_routines = catalog.routines().next().is_some();
    let is_temporary = |schema: &str| is_temporary_schema(schema);
    let tables = || catalog.tables().filter(|table| !is_temporary(&table.schema));
    let is_empty = catalog.relations().is_empty()
        && catalog.schemas().next().is_none()
        && catalog.domains().next().is_none()
        && catalog.enums().next().is_none()
        && catalog.composites().next().is_none();
    let wording = sink.wording();
    let has_roles = wording == Wording::Portable && catalog.roles().next().is_some();
    if is_empty && !has_routines && !has_roles {
        return Ok(());
    }
    sink.begin()?;
    if wording == Wording::Portable {
        create_roles(&catalog).iter().try_for_each(|text| sink.statement(text))?;
    }
    create_schemas(&catalog).try_for_each(|text| sink.statement(&text))?;
    for sequence in catalog.free_sequences().filter(|it| !is_temporary(&it.schema)) {
        sink.statement(&create_sequence(sequence))?;
    }
    if has_routines {
        sink.begin_routines()?;
    }
    catalog.create_collations().try_for_each(|text| sink.statement(&text))?;
    catalog.create_enums().try_for_each(|text| sink.statement(&text))?;
    catalog.create_composites().iter().try_for_each(|text| sink.statement(text))?;
    catalog.create_routines(RoutineKind::Other).try_for_each(|text| sink.statement(&text))?;
    catalog.create_domains().try_for_each(|text| sink.statement(&text))?;
    catalog.create_routines(RoutineKind::OfDomains).try_for_each(|text| sink.statement(&text))?;
    let plain = || tables().filter(|table| table.materialized.is_none());
    for table in plain() {
        sink.statement(&create_table(&catalog, table, wording))?;
    }
    catalog.own_sequences().try_for_each(|text| sink.statement(&text))?;
    catalog
        .create_routines(RoutineKind::RowsOfTables)
        .try_for_each(|text| sink.statement(&text))?;
    for table in plain() {
        rows(&connection, &transaction, table, sink)
            .with_context(|| format!("cannot dump the table {:?} to its end", table.name))?;
    }
    for table in plain() {
        create_indexes(table, wording).try_for_each(|text| sink.statement(&text))?;
    }
    for table in tables() {
        add_foreign_keys(&catalog, table).try_for_each(|text| sink.statement(&text))?;
    }
    let views = catalog.views_in_order();
    for view in views.iter().filter(|it| !is_temporary(&it.schema)) {
        match catalog.table(view.id) {
            Some(table) => {
                sink.statement(&create_materialized_view(view))?;
                create_indexes(table, wording).try_for_each(|text| sink.statement(&text))?;
            }
            None => sink.statement(&create_view(view))?,
        }
        view_defaults(view).try_for_each(|text| sink.statement(&text))?;
    }
    for trigger in catalog.triggers() {
        catalog.create_trigger(trigger).try_for_each(|text| sink.statement(&text))?;
    }
    let comments = catalog.all_comments();
    let texts = comments.iter().filter_map(|comment| catalog.comment_statement(comment));
    texts.into_iter().try_for_each(|text| sink.statement(&text))?;
    for view in &views {
        if catalog.table(view.id).is_some_and(|table| !table.is_unpopulated()) {
            sink.statement(&refresh_materialized_view(view))?;
        }
    }
    // In the order in which a load creates them, so that a dump of what was loaded is the same.
    let permanent = catalog.sequences().filter(|sequence| !is_temporary(&sequence.schema));
    let (owned, free): (Vec<_>, Vec<_>) =
        permanent.partition(|sequence| catalog.identity_of(sequence).is_some());
    for sequence in free.into_iter().chain(owned) {
        let next = database.catalog().next_unreserved(&transaction, sequence)?;
        sink.statement(&set_sequence(&catalog, sequence, next))?;
    }
    if wording == Wording::Portable {
        grant_rights(&catalog).iter().try_for_each(|text| sink.statement(text))?;
    }
    sink.end()
}

fn rows(
    connection: &Connection,
    transaction: &Snapshot,
    table: &Table,
    sink: &mut impl Sink,
) -> anyhow::Result<()> {
    let name = quoted_relation(&table.schema, &table.name);
    let stored = table.columns.iter().filter(|column| column.generated.is_none());
    let columns: Vec<String> = stored.map(|column| quoted(&column.name)).collect();
    let columns = columns.join(", ");
    let mut all = connection.prepare_in(transaction, &format!("SELECT {columns} FROM {name}"))?;
    let mut rows = all.query_in(transaction, &[])?;
    let copy = format!("COPY {name} ({columns}) FROM STDIN WITH (FORMAT csv)");
    let mut any = false;
    while let Some(row) = rows.next()? {
        if !any {
            sink.copy(table, &copy)?;
            any = true;
        }
        sink.row(&row)?;
    }
    if any { sink.end_of_rows() } else { Ok(()) }
}

/// Formats a row as the CSV record that COPY reads, without its terminator.
fn make_record(row: &Row<'_>, record: &mut Vec<u8>, text: &mut String) -> anyhow::Result<()> {
    let dialect = Dialect::default();
    record.clear();
    for column in 0..row.len() {
        if column > 0 {
            record.push(dialect.delimiter);
        }
        let field = match row.value(column)? {
            ValueRef::Null => None,
            ValueRef::Text(text) => Some(text),
            other => {
                text.clear();
                format_value(text, other, &TextSettings::DEFAULT);
                Some(text.as_str())
            }
        };
        dialect.write(record, field, row.len() == 1);
    }
    Ok(())
}

/// A section of a dump, in which each statement and each row is an item.
pub struct Section<'o> {
    output: &'o mut Output,
    format: ItemFormat,
    record: Vec<u8>,
    text: String,
}

impl<'o> Section<'o> {
    pub fn new(output: &'o mut Output, format: ItemFormat) -> Section<'o> {
        Section { output, format, record: Vec::new(), text: String::new() }
    }

    fn item(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        Ok(dump_format::write_item(self.output, self.format, bytes)?)
    }
}

impl Sink for Section<'_> {
    fn wording(&self) -> Wording {
        Wording::Quickbeam
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        Ok(dump_format::write_header(self.output, self.format, None, Content::Tables)?)
    }

    fn begin_routines(&mut self) -> anyhow::Result<()> {
        // The load does not check bodies.
        Ok(())
    }

    fn statement(&mut self, text: &str) -> anyhow::Result<()> {
        self.item(text.as_bytes())
    }

    fn copy(&mut self, _: &Table, text: &str) -> anyhow::Result<()> {
        self.statement(text)
    }

    fn row(&mut self, row: &Row<'_>) -> anyhow::Result<()> {
        make_record(row, &mut self.record, &mut self.text)?;
        Ok(dump_format::write_item(self.output, self.format, &self.record)?)
    }

    fn end_of_rows(&mut self) -> anyhow::Result<()> {
        self.item(END_OF_ROWS)
    }

    fn end(&mut self) -> anyhow::Result<()> {
        Ok(dump_format::write_end(self.output)?)
    }
}

/// An SQL script for `quickbeam sql` and PostgreSQL's `psql`.
pub struct Script<'o> {
    output: &'o mut Output,
    record: Vec<u8>,
    text: String,
    /// The head of an INSERT into the current COPY's table; `None` if INSERT cannot set its
    /// identity column.
    insert: Option<String>,
    /// The text of the current COPY.
    copy: String,
}

impl<'o> Script<'o> {
    pub fn new(output: &'o mut Output) -> Script<'o> {
        let (record, text, copy) = (Vec::new(), String::new(), String::new());
        Script { output, record, text, insert: None, copy }
    }
}

impl Sink for Script<'_> {
    fn wording(&self) -> Wording {
        Wording::Portable
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        Ok(writeln!(self.output, "BEGIN;")?)
    }

    fn begin_routines(&mut self) -> anyhow::Result<()> {
        self.statement("SET LOCAL check_function_bodies = off")
    }

    fn statement(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(writeln!(self.output, "{text};")?)
    }

    fn copy(&mut self, table: &Table, text: &str) -> anyhow::Result<()> {
        let is_always = table.columns.iter().any(|it| it.identity.is_some_and(|it| it.always));
        let stored = table.columns.iter().filter(|column| column.generated.is_none());
        let columns: Vec<String> = stored.map(|it| quoted(&it.name)).collect();
        let insert = format!("INSERT INTO {} ({}) VALUES", quoted(&table.name), columns.join(", "));
        self.insert = (!is_always).then_some(insert);
        text.clone_into(&mut self.copy);
        self.statement(text)
    }

    fn row(&mut self, row: &Row<'_>) -> anyhow::Result<()> {
        make_record(row, &mut self.record, &mut self.text)?;
        // Readers take a line `\.` for the end of the rows even within quotes.
        if self.record.split(|byte| *byte == b'\n').any(|line| line.trim_ascii() == END_OF_ROWS) {
            let Some(insert) = &self.insert else {
                bail!("a text with a line \\. in a table with an identity column GENERATED ALWAYS");
            };
            let mut values = Vec::with_capacity(row.len());
            for column in 0..row.len() {
                values.push(match row.value(column)? {
                    ValueRef::Null => "NULL".to_owned(),
                    value => format!("'{}'", value.to_string().replace('\'', "''")),
                });
            }
            let insert = format!("{insert} ({})", values.join(", "));
            self.end_of_rows()?;
            self.statement(&insert)?;
            return writeln!(self.output, "{};", self.copy).map_err(Into::into);
        }
        self.output.write_all(&self.record)?;
        Ok(self.output.write_all(b"\n")?)
    }

    fn end_of_rows(&mut self) -> anyhow::Result<()> {
        self.output.write_all(END_OF_ROWS)?;
        Ok(self.output.write_all(b"\n")?)
    }

    fn end(&mut self) -> anyhow::Result<()> {
        Ok(writeln!(self.output, "COMMIT;")?)
    }
}
