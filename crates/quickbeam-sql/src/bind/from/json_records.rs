//! Calls of functions that make rows of JSON objects. Their columns are those of the row that is
//! their first argument, or of the column definition list after them.

use smol_str::SmolStr;
use sqlparser::ast::TableAlias;

use crate::bind::records::whole_rows::number;
use crate::bind::types::undefined::no_function;
use crate::bind::{Binder, Derivation, FunctionCall, OutputColumn, TableFunctionKind, Typed, fold};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, Function, JsonRecords, POPULATE, TextPosition};
use crate::types::encoded::row_types::RowType;
use crate::types::{DataType, EncodedType, Value};

/// The columns that a definition list after a function names.
pub(in crate::bind) type DefinedColumns = Vec<(SmolStr, DataType)>;

/// Returns whether an alias has a column definition list.
pub(in crate::bind) fn defines_columns(alias: Option<&TableAlias>) -> bool {
    alias.is_some_and(|alias| alias.columns.iter().any(|column| column.data_type.is_some()))
}

impl Binder<'_> {
    /// Returns the columns that a definition list names.
    pub(in crate::bind) fn defined_columns(
        &self,
        alias: Option<&TableAlias>,
    ) -> Result<Option<DefinedColumns>> {
        let Some(alias) = alias.filter(|alias| defines_columns(Some(alias))) else {
            return Ok(None);
        };
        let mut columns = Vec::with_capacity(alias.columns.len());
        for column in &alias.columns {
            let written = column.data_type.as_ref();
            let written = written.ok_or_else(|| SqlError::unsupported("this form of an alias"))?;
            columns.push((fold(&column.name), self.declared_type(written)?.data_type));
        }
        Ok(Some(columns))
    }

    /// Binds the arguments of a function that makes rows of JSON. Returns them with the type of the
    /// rows.
    fn json_record_arguments(
        &mut self,
        function: &'static JsonRecords,
        arguments: Vec<Typed>,
        defined: Option<DefinedColumns>,
        position: u32,
    ) -> Result<(Vec<Expr>, EncodedType)> {
        let at = |error: SqlError| error.at(position as usize);
        let types: Vec<_> = arguments.iter().map(|it| it.data_type).collect();
        let missing = || no_function(function.name, types.iter().copied(), position);
        let mut given = arguments.into_iter();
        let base = if function.has_base { given.next() } else { None };
        let json = given.next().ok_or_else(missing)?;
        if given.next().is_some() || json.data_type.is_some_and(|it| it != function.data_type) {
            return Err(missing());
        }
        let json = self.coerce(json, function.data_type)?;
        let (base, of_base) = match base {
            None => (Expr::Constant(Value::Null), None),
            Some(base) => {
                let record = match base.data_type {
                    None => {
                        let message =
                            "could not determine polymorphic type because input has type unknown";
                        return Err(at(SqlError::new(SqlState::DatatypeMismatch, message)));
                    }
                    Some(known) => known.record(),
                };
                let Some(record) = record else {
                    let message = format!("first argument of {} must be a row type", function.name);
                    return Err(at(SqlError::new(SqlState::DatatypeMismatch, message)));
                };
                (base.expr, Some(record))
            }
        };
        let is_named = of_base.is_some_and(|it| it.row_type_name().is_some());
        let row_type = match (defined, of_base) {
            (Some(_), _) if is_named => {
                let message = "a column definition list is redundant for a function returning a named composite type";
                return Err(at(SqlError::new(SqlState::SyntaxError, message)));
            }
            (Some(fields), _) => RowType { name: None, fields }.intern(),
            (None, Some(known)) if is_named => known,
            (None, _) => {
                let message =
                    "a column definition list is required for functions returning \"record\"";
                return Err(at(SqlError::new(SqlState::SyntaxError, message)));
            }
        };
        let place = row_type.length() as usize;
        Ok((vec![base, json, number(place)], row_type))
    }

    /// Binds a call that stands for rows.
    pub(in crate::bind) fn json_records(
        &mut self,
        function: &'static JsonRecords,
        arguments: Vec<Typed>,
        defined: Option<DefinedColumns>,
        position: u32,
    ) -> Result<(FunctionCall, Vec<OutputColumn>)> {
        let (arguments, row_type) =
            self.json_record_arguments(function, arguments, defined, position)?;
        let fields = row_type.row_type().map(|it| &it.fields[..]).unwrap_or_default();
        let table = row_type.row_type_name().and_then(|known| {
            self.names.snapshot()?.table(crate::catalog::ObjectId(known.id)).cloned()
        });
        let collation = |name: &str| {
            let table = table.as_ref()?;
            table.columns.iter().find(|it| it.name == name)?.collation
        };
        let column = |(name, data_type): &(SmolStr, DataType)| OutputColumn {
            collation: Derivation::of_column(collation(name)),
            ..OutputColumn::new(name.clone(), *data_type)
        };
        let columns: Vec<OutputColumn> = fields.iter().map(column).collect();
        let kind = TableFunctionKind::JsonRecords(function);
        Ok((FunctionCall { kind, arguments, width: columns.len() }, columns))
    }

    /// Binds a call of `json_populate_record` or `jsonb_populate_record` that stands for a value.
    pub(in crate::bind) fn json_record_value(
        &mut self,
        function: &'static JsonRecords,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        let (arguments, row_type) =
            self.json_record_arguments(function, arguments, None, position)?;
        let call = Expr::Call(Function(&POPULATE), arguments, TextPosition(position));
        Ok(Typed::new(call, DataType::Encoded(row_type), position))
    }
}
