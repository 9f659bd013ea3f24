//! COPY: source, target and format.

use smol_str::SmolStr;
use sqlparser::ast::{self, CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopyTarget};

use super::target::ChangeTarget;
use crate::bind::rights::Right;
use crate::bind::scope::relation_of;
use crate::bind::{
    Binder, Insert, InsertSource, OutputColumn, Scope, Source, Typed, fold, object_name,
};
use crate::catalog::{Privileges, Table};
use crate::copy_text::TextDialect;
use crate::csv::Dialect;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::parse::{ALL_COLUMNS, HEADER_MATCH};
use crate::schema::errors::{named_twice, no_column};
use crate::types::DataType;

/// The file or stream of COPY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyPlace {
    /// STDIN or STDOUT. The owner of the connection decides which stream that is.
    Standard,
    /// A file.
    File(String),
}

/// How COPY reads or writes.
#[derive(Clone, Debug)]
pub struct CopyForm {
    /// The file or stream.
    pub place: CopyPlace,
    /// How records are written.
    pub format: CopyFormat,
    /// What the first record is.
    pub header: CopyHeader,
    /// The columns whose fields are quoted.
    pub force_quote: ForcedColumns,
    /// The columns in which a quoted field can be NULL.
    pub force_null: ForcedColumns,
    /// The columns in which no field is NULL.
    pub force_not_null: ForcedColumns,
}

/// What the first record of COPY is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyHeader {
    /// A row.
    #[default]
    Absent,
    /// The names of the columns, which COPY FROM skips.
    Names,
    /// The names of the columns, which COPY FROM compares.
    Matched,
}

/// Columns of CSV that an option names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ForcedColumns {
    /// None.
    #[default]
    None,
    /// Every column.
    All,
    /// Those.
    Named(Vec<SmolStr>),
}

impl ForcedColumns {
    fn new(names: &[ast::Ident]) -> ForcedColumns {
        match names {
            [all] if all.value == ALL_COLUMNS => ForcedColumns::All,
            names => ForcedColumns::Named(names.iter().map(fold).collect()),
        }
    }

    /// Returns whether a column is one of them.
    pub fn has(&self, column: &str) -> bool {
        match self {
            ForcedColumns::None => false,
            ForcedColumns::All => true,
            ForcedColumns::Named(names) => names.iter().any(|name| name == column),
        }
    }

    /// Refuses names that are none of the columns.
    fn check(&self, option: &str, columns: &[OutputColumn]) -> Result<()> {
        let ForcedColumns::Named(names) = self else { return Ok(()) };
        let is_missing = |name: &&SmolStr| columns.iter().all(|column| column.name != **name);
        match names.iter().find(is_missing) {
            None => Ok(()),
            Some(name) => {
                let message = format!("{option} column \"{name}\" not referenced by COPY");
                Err(SqlError::new(SqlState::InvalidColumnReference, message))
            }
        }
    }
}

impl CopyForm {
    /// Returns the text that stands for NULL.
    pub fn null_text(&self) -> &str {
        match &self.format {
            CopyFormat::Csv(dialect) => &dialect.null,
            CopyFormat::Text(dialect) => &dialect.null,
            CopyFormat::Binary => "",
        }
    }

    /// Refuses options that name other columns than these.
    pub fn check_columns(&self, columns: &[OutputColumn]) -> Result<()> {
        self.force_quote.check("FORCE_QUOTE", columns)?;
        self.force_not_null.check("FORCE_NOT_NULL", columns)?;
        self.force_null.check("FORCE_NULL", columns)
    }
}

/// The format of COPY's records.
#[derive(Clone, Debug)]
pub enum CopyFormat {
    /// Comma-separated values.
    Csv(Dialect),
    /// PostgreSQL's text format.
    Text(TextDialect),
    /// PostgreSQL's binary format.
    Binary,
}

impl CopyFormat {
    /// Appends a record with its line end.
    pub fn write_record<'f>(
        &self,
        record: &mut Vec<u8>,
        fields: impl ExactSizeIterator<Item = Option<&'f str>>,
    ) {
        let is_only = fields.len() == 1;
        for (number, field) in fields.enumerate() {
            self.write_field(record, number, field, is_only);
        }
        record.push(b'\n');
    }

    /// Appends a field of CSV with quotes, after a delimiter unless it is the first.
    pub fn write_quoted(&self, record: &mut Vec<u8>, number: usize, text: &str) {
        let CopyFormat::Csv(dialect) = self else { return };
        if number > 0 {
            record.push(dialect.delimiter);
        }
        dialect.write_quoted(record, text);
    }

    /// Appends a field, after a delimiter unless it is the first. `is_only`: it is the only one of
    /// its record.
    pub fn write_field(
        &self,
        record: &mut Vec<u8>,
        number: usize,
        field: Option<&str>,
        is_only: bool,
    ) {
        if number > 0 {
            record.push(match self {
                CopyFormat::Csv(dialect) => dialect.delimiter,
                CopyFormat::Text(dialect) => dialect.delimiter,
                CopyFormat::Binary => return,
            });
        }
        match self {
            CopyFormat::Csv(dialect) => dialect.write(record, field, is_only),
            CopyFormat::Text(dialect) => dialect.write(record, field),
            CopyFormat::Binary => {}
        }
    }
}

#[cold]
fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

/// A character that steers.
fn one_byte(what: &str, given: char) -> Result<u8> {
    match u8::try_from(given) {
        Ok(byte) if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => Ok(byte),
        _ => {
            let message = format!("COPY {what} must be a single one-byte character");
            Err(SqlError::new(SqlState::FeatureNotSupported, message))
        }
    }
}

/// The options of a COPY, in either of their forms.
#[derive(Default)]
struct CopyOptions {
    is_csv: bool,
    is_binary: bool,
    header: CopyHeader,
    force_quote: ForcedColumns,
    force_null: ForcedColumns,
    force_not_null: ForcedColumns,
    delimiter: Option<char>,
    null: Option<String>,
    quote: Option<char>,
    escape: Option<char>,
}

impl CopyOptions {
    fn add(&mut self, option: &CopyOption) -> Result<()> {
        match option {
            CopyOption::Format(name) => match fold(name).as_str() {
                "csv" => self.is_csv = true,
                "text" => {}
                "binary" => self.is_binary = true,
                other => return Err(invalid(format!("COPY format \"{other}\" not recognized"))),
            },
            CopyOption::Delimiter(delimiter) => self.delimiter = Some(*delimiter),
            CopyOption::Null(null) => self.null = Some(null.clone()),
            CopyOption::Header(true) => self.header = CopyHeader::Names,
            CopyOption::Header(false) => self.header = CopyHeader::Absent,
            CopyOption::ForceQuote(names) => self.force_quote = ForcedColumns::new(names),
            CopyOption::ForceNull(names) => self.force_null = ForcedColumns::new(names),
            CopyOption::ForceNotNull(names) => self.force_not_null = ForcedColumns::new(names),
            CopyOption::Encoding(name) if name == HEADER_MATCH => {
                self.header = CopyHeader::Matched;
            }
            CopyOption::Quote(quote) => self.quote = Some(*quote),
            CopyOption::Escape(escape) => self.escape = Some(*escape),
            // It would spare PostgreSQL work that does not exist here.
            CopyOption::Freeze(_) => {}
            CopyOption::Encoding(name) if ["utf8", "utf-8"].contains(&&*name.to_lowercase()) => {}
            other => return Err(SqlError::unsupported(format!("COPY with {other}"))),
        }
        Ok(())
    }

    fn add_legacy(&mut self, option: &CopyLegacyOption) -> Result<()> {
        match option {
            CopyLegacyOption::Csv(options) => {
                self.is_csv = true;
                for option in options {
                    match option {
                        CopyLegacyCsvOption::Header => self.header = CopyHeader::Names,
                        CopyLegacyCsvOption::ForceQuote(names) => {
                            self.force_quote = ForcedColumns::new(names);
                        }
                        CopyLegacyCsvOption::ForceNotNull(names) => {
                            self.force_not_null = ForcedColumns::new(names);
                        }
                        CopyLegacyCsvOption::Quote(quote) => self.quote = Some(*quote),
                        CopyLegacyCsvOption::Escape(escape) => self.escape = Some(*escape),
                    }
                }
            }
            CopyLegacyOption::Delimiter(delimiter) => self.delimiter = Some(*delimiter),
            CopyLegacyOption::Binary => self.is_binary = true,
            CopyLegacyOption::Header => self.header = CopyHeader::Names,
            CopyLegacyOption::Null(null) => self.null = Some(null.clone()),
            other => return Err(SqlError::unsupported(format!("COPY with {other}"))),
        }
        Ok(())
    }

    /// Refuses options of CSV in other formats and directions than theirs.
    fn check_forced(&self, to: bool) -> Result<()> {
        let refuse = |message: String| Err(SqlError::new(SqlState::FeatureNotSupported, message));
        let forced = [
            (&self.force_quote, "quote", true),
            (&self.force_not_null, "not null", false),
            (&self.force_null, "null", false),
        ];
        for (columns, name, of_to) in forced {
            if *columns == ForcedColumns::None {
                continue;
            }
            if !self.is_csv {
                return refuse(format!("COPY force {name} available only in CSV mode"));
            }
            if of_to != to {
                let direction = if of_to { "TO" } else { "FROM" };
                return refuse(format!("COPY force {name} only available using COPY {direction}"));
            }
        }
        if to && self.header == CopyHeader::Matched {
            return refuse("cannot use \"match\" with HEADER in COPY TO".to_owned());
        }
        Ok(())
    }

    fn format(self) -> Result<CopyFormat> {
        if self.is_binary {
            self.binary()
        } else if self.is_csv {
            self.csv().map(CopyFormat::Csv)
        } else {
            self.text().map(CopyFormat::Text)
        }
    }

    fn binary(self) -> Result<CopyFormat> {
        let given = [
            (self.delimiter.is_some(), "DELIMITER"),
            (self.null.is_some(), "NULL"),
            (self.header != CopyHeader::Absent, "HEADER"),
            (self.is_csv, "CSV"),
            (self.quote.is_some(), "QUOTE"),
            (self.escape.is_some(), "ESCAPE"),
        ];
        match given.into_iter().find(|(is_given, _)| *is_given) {
            Some((_, name)) => {
                let message = format!("cannot specify {name} in BINARY mode");
                Err(SqlError::new(SqlState::SyntaxError, message))
            }
            None => Ok(CopyFormat::Binary),
        }
    }

    fn text(self) -> Result<TextDialect> {
        for (given, name) in [(self.quote, "quote"), (self.escape, "escape")] {
            if given.is_some() {
                let message = format!("COPY {name} available only in CSV mode");
                return Err(SqlError::new(SqlState::FeatureNotSupported, message));
            }
        }
        let usual = TextDialect::default();
        let delimiter = self.delimiter.map_or(Ok(usual.delimiter), |c| one_byte("delimiter", c))?;
        if delimiter.is_ascii_lowercase()
            || delimiter.is_ascii_digit()
            || b"\\.".contains(&delimiter)
        {
            let message = format!("COPY delimiter cannot be \"{}\"", char::from(delimiter));
            return Err(invalid(message));
        }
        let null = self.null.unwrap_or(usual.null);
        if null.bytes().any(|byte| matches!(byte, b'\n' | b'\r')) {
            let message = "COPY null representation cannot use newline or carriage return";
            return Err(invalid(message));
        }
        if null.bytes().any(|byte| byte == delimiter) {
            let message = "COPY delimiter must not appear in the NULL specification";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message));
        }
        Ok(TextDialect { delimiter, null })
    }

    fn csv(self) -> Result<Dialect> {
        let usual = Dialect::default();
        let delimiter = self.delimiter.map_or(Ok(usual.delimiter), |c| one_byte("delimiter", c))?;
        let quote = self.quote.map_or(Ok(usual.quote), |c| one_byte("quote", c))?;
        let escape = self.escape.map_or(Ok(quote), |c| one_byte("escape", c))?;
        let null = self.null.unwrap_or(usual.null);
        if delimiter == quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        if null.bytes().any(|byte| matches!(byte, b'\n' | b'\r')) {
            let message = "COPY null representation cannot use newline or carriage return";
            return Err(invalid(message));
        }
        for (character, name) in [(delimiter, "COPY delimiter"), (quote, "CSV quote character")] {
            if null.bytes().any(|byte| byte == character) {
                let message = format!("{name} must not appear in the NULL specification");
                return Err(SqlError::new(SqlState::FeatureNotSupported, message));
            }
        }
        Ok(Dialect { delimiter, quote, escape, null })
    }
}

/// Binds the target and format of COPY.
pub fn copy_form(
    target: &CopyTarget,
    to: bool,
    options: &[CopyOption],
    legacy: &[CopyLegacyOption],
) -> Result<CopyForm> {
    let mut known = CopyOptions::default();
    options.iter().try_for_each(|option| known.add(option))?;
    legacy.iter().try_for_each(|option| known.add_legacy(option))?;
    let place = match (target, to) {
        (CopyTarget::Stdin, false) | (CopyTarget::Stdout, true) => CopyPlace::Standard,
        (CopyTarget::File { filename }, _) => CopyPlace::File(filename.clone()),
        (CopyTarget::Program { .. }, _) => {
            return Err(SqlError::unsupported("COPY with a program"));
        }
        (CopyTarget::Stdin, true) | (CopyTarget::Stdout, false) => {
            let message = "syntax error: COPY FROM reads STDIN, COPY TO writes STDOUT";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
    };
    known.check_forced(to)?;
    let header = known.header;
    let force_quote = std::mem::take(&mut known.force_quote);
    let force_null = std::mem::take(&mut known.force_null);
    let force_not_null = std::mem::take(&mut known.force_not_null);
    let format = known.format()?;
    Ok(CopyForm { place, format, header, force_quote, force_null, force_not_null })
}

impl Binder<'_> {
    /// Checks the names in a COPY of a table, which PostgreSQL does before it reads the options.
    pub fn check_copied_names(&mut self, source: &ast::CopySource, to: bool) -> Result<()> {
        let ast::CopySource::Table { table_name, columns } = source else { return Ok(()) };
        if self.is_view(table_name)? {
            return Ok(());
        }
        let right = if to { Privileges::SELECT } else { Privileges::INSERT };
        let table = self.table(table_name, Right::Has(right))?;
        let mut named = Vec::with_capacity(columns.len());
        for column in columns {
            let name = fold(column);
            if table.column(&name).is_none() {
                return Err(no_column(&table.name, &name).at(self.place_of(column)));
            }
            if named.contains(&name) {
                return Err(named_twice(&name).at(self.place_of(column)));
            }
            named.push(name);
        }
        Ok(())
    }

    /// Binds COPY … FROM. Returns the INSERT of one record, whose parameters are the fields, and
    /// the target columns. Identity columns may be given values.
    pub fn copy_from(
        &mut self,
        name: &ast::ObjectName,
        columns: &[ast::Ident],
    ) -> Result<(Insert, Vec<OutputColumn>)> {
        if self.is_view(name)? {
            let message = format!("cannot copy to view \"{}\"", object_name(name)?);
            let hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger.";
            let error = SqlError::new(SqlState::WrongObjectType, message).with_hint(hint);
            return Err(error.at(self.position(name) as usize));
        }
        let table = self.table(name, Right::Has(Privileges::INSERT))?;
        if table.materialized.is_some() {
            let message = format!("cannot copy to materialized view \"{}\"", table.name);
            return Err(SqlError::new(SqlState::WrongObjectType, message));
        }
        let names: Vec<ast::ObjectName> =
            columns.iter().map(|column| vec![column.clone()].into()).collect();
        let target = ChangeTarget::of_table(table.clone());
        let targets = self.targets(&target, &names)?;
        let mut targets: Vec<usize> = targets.into_iter().map(|target| target.place).collect();
        self.without_generated(&table, columns, &mut targets)?;
        let new_slot = self.add_slot("excluded".into(), Source::Table(table.clone()));
        let old_slot = self.add_slot(table.name.clone(), Source::Table(table.clone()));
        let mut values = Vec::with_capacity(table.columns.len());
        for column in 0..table.columns.len() {
            values.push(self.default_of(&target, column)?);
        }
        let mut fields = Vec::with_capacity(targets.len());
        for (number, target) in targets.iter().enumerate() {
            let Some(column) = table.columns.get(*target) else { continue };
            // COPY reads these as values of the column's type already.
            let data_type = match column.data_type {
                DataType::Varchar(None) => DataType::Text,
                limited @ (DataType::Char(_)
                | DataType::Varchar(_)
                | DataType::Numeric(_)
                | DataType::WideNumeric(_)
                | DataType::Precise(_)) => limited,
                other => other.unconstrained(),
            };
            self.parameters.push(Some(data_type));
            let field = Typed::new(Expr::Parameter(number), data_type, 0);
            let value = self.assign(field, column.data_type, &column.name)?;
            if let Some(place) = values.get_mut(*target) {
                *place = value;
            }
            fields.push(OutputColumn::new(column.name.clone(), data_type));
        }
        let insert = Insert {
            table,
            new_slot,
            old_slot,
            source: InsertSource::Rows(vec![values]),
            conflict: None,
            view_checks: Vec::new(),
            returning: None,
            xmax_slot: None,
        };
        Ok((insert, fields))
    }

    /// Binds WHERE of a COPY … FROM, over the values of the row to be inserted.
    pub fn copy_filter(&self, insert: &Insert, text: &str) -> Result<Expr> {
        let InsertSource::Rows(rows) = &insert.source else {
            return Err(SqlError::internal("a COPY without a row"));
        };
        let parsed = crate::parse::expression(text)?;
        let table = &insert.table;
        let scope = Scope::of(vec![relation_of(table, insert.new_slot, table.name.clone())]);
        let mut binder = Binder::new(self.names, text);
        let (mut condition, level) =
            binder.level(|binder| binder.condition(&parsed, "WHERE", &scope))?;
        if !level.subqueries.is_empty() {
            let message = "cannot use subquery in COPY FROM WHERE condition";
            let error = SqlError::new(SqlState::FeatureNotSupported, message);
            return Err(error.at(binder.position(&parsed) as usize));
        }
        let values = rows.first().map(Vec::as_slice).unwrap_or_default();
        let mut is_fixed = true;
        condition.each_column(&mut |column| {
            let column = column.column;
            let is_generated = table.columns.get(column).is_some_and(|it| it.generated.is_some());
            let is_volatile = values.get(column).is_some_and(Expr::is_volatile);
            is_fixed &= !is_generated && !is_volatile;
        });
        if !is_fixed {
            let what = "a column with a volatile DEFAULT, or a generated one, in WHERE of COPY";
            return Err(SqlError::unsupported(what));
        }
        condition.replace_columns(insert.new_slot, values);
        Ok(condition)
    }

    /// Removes generated columns from the columns of COPY. They are refused if they are named.
    fn without_generated(
        &self,
        table: &Table,
        columns: &[ast::Ident],
        targets: &mut Vec<usize>,
    ) -> Result<()> {
        let is_generated =
            |target: usize| table.columns.get(target).is_some_and(|it| it.generated.is_some());
        for (name, &target) in columns.iter().zip(&*targets) {
            if is_generated(target) {
                let message = format!("column \"{}\" is a generated column", fold(name));
                let error = SqlError::new(SqlState::InvalidColumnReference, message);
                return Err(error
                    .with_detail("Generated columns cannot be used in COPY.")
                    .at(self.place_of(name)));
            }
        }
        targets.retain(|&target| !is_generated(target));
        Ok(())
    }

    /// COPY … TO of a table: the query that reads it.
    pub fn copy_query(
        &mut self,
        name: &ast::ObjectName,
        columns: &[ast::Ident],
    ) -> Result<Box<ast::Query>> {
        let table = self.table(name, Right::Has(Privileges::SELECT))?;
        if table.materialized.is_some() {
            let message = format!("cannot copy from materialized view \"{}\"", table.name);
            let hint = "Try the COPY (SELECT ...) TO variant.";
            return Err(SqlError::new(SqlState::WrongObjectType, message).with_hint(hint));
        }
        let quoted = |name: &SmolStr| format!("\"{}\"", name.replace('"', "\"\""));
        let columns: Vec<String> = if columns.is_empty() {
            let stored = table.columns.iter().filter(|column| column.generated.is_none());
            stored.map(|column| quoted(&column.name)).collect()
        } else {
            let place = |name: &ast::Ident| table.column(&fold(name));
            let targets: Option<Vec<usize>> = columns.iter().map(place).collect();
            if let Some(mut targets) = targets {
                self.without_generated(&table, columns, &mut targets)?;
            }
            columns.iter().map(|column| quoted(&fold(column))).collect()
        };
        crate::parse::query(&format!("SELECT {} FROM {}", columns.join(", "), quoted(&table.name)))
    }
}
