//! Fields of rows as values: `(row).field` and `(row).*`, and comparisons of such rows.

use std::cmp::Ordering;

use smol_str::SmolStr;
use sqlparser::ast;

use super::whole_rows::number;
use crate::bind::{Binder, Typed, fold};
use crate::catalog::{DeclaredType, ObjectId, Relation, Table};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Comparison, Expr, Function, TextPosition, record_function};
use crate::parse::ALL_FIELDS;
use crate::types::encoded::row_types::RowType;
use crate::types::{
    CastContext, CollateStep, DataType, ElementType, EncodedKind, EncodedType, cast_context,
};

#[cold]
fn no_field(name: &str, data_type: DataType, position: u32) -> SqlError {
    let row_type = data_type.record().and_then(EncodedType::row_type);
    let (state, message) = match (data_type.record(), row_type) {
        (None, _) => (
            SqlState::WrongObjectType,
            format!(
                "column notation .{name} applied to type {data_type}, which is not a composite type"
            ),
        ),
        (Some(_), Some(RowType { name: Some(known), .. })) => (
            SqlState::UndefinedColumn,
            format!("column \"{name}\" not found in data type {}", known.shown),
        ),
        (Some(_), _) => (
            SqlState::UndefinedColumn,
            format!("could not identify column \"{name}\" in record data type"),
        ),
    };
    SqlError::new(state, message).at(position as usize)
}

impl Binder<'_> {
    /// Returns the fields of a row with their names; `None` if they are not known.
    pub(in crate::bind) fn fields_of(&self, row: &Typed) -> Option<Vec<(SmolStr, Typed)>> {
        let known = row.data_type?.record()?.row_type()?;
        let position = row.position;
        let test = record_function("field of")?;
        let value = |at: usize| match &row.expr {
            Expr::Row(_, values) => values.get(at).cloned().unwrap_or(number(0)),
            other => {
                let list = vec![other.clone(), number(at)];
                Expr::Call(Function(test), list, TextPosition(position))
            }
        };
        let table = self.table_of_rows(row);
        let collation = |name: &str| table?.columns.iter().find(|it| it.name == name)?.collation;
        let fields = known.fields.iter().enumerate();
        let fields = fields.map(|(at, (name, data_type))| {
            let value = match collation(name) {
                Some(own) => Expr::Collate(Box::new(value(at)), CollateStep::Named(own)),
                None => value(at),
            };
            (name.clone(), Typed::new(value, *data_type, position))
        });
        Some(fields.collect())
    }

    /// Returns the table whose columns give the fields of a row their collations: those of an
    /// expression of columns have them anyway.
    fn table_of_rows(&self, row: &Typed) -> Option<&Table> {
        if matches!(row.expr, Expr::Row(..)) {
            return None;
        }
        let id = row.data_type?.row_object()?;
        self.names.snapshot()?.table(ObjectId(id)).map(|table| &**table)
    }

    /// Binds a field of a row.
    pub(in crate::bind) fn field(&mut self, row: Typed, name: &str) -> Result<Typed> {
        if name == ALL_FIELDS {
            let message = "row expansion via \"*\" is not supported here";
            let error = SqlError::new(SqlState::FeatureNotSupported, message);
            return Err(error.at(row.position as usize));
        }
        let Some(data_type) = row.data_type else {
            let message = format!(
                "column notation .{name} applied to type unknown, which is not a composite type"
            );
            let error = SqlError::new(SqlState::WrongObjectType, message);
            return Err(error.at(row.position as usize));
        };
        let fields = self.fields_of(&row).unwrap_or_default();
        let found = fields.into_iter().find(|(field, _)| field == name);
        if let Some((_, value)) = found {
            return Ok(value);
        }
        let missing = no_field(name, data_type, row.position);
        if data_type.record().is_none() {
            return Err(missing);
        }
        let position = row.position;
        self.call_of_row(name, row, position)?.ok_or(missing)
    }

    /// Returns the row type of a table, or of arrays of its rows, that a cast names; `missing` if
    /// there is none.
    pub(in crate::bind) fn row_type_named(
        &self,
        written: &ast::DataType,
        missing: SqlError,
    ) -> Result<DeclaredType> {
        if missing.state() != SqlState::UndefinedObject {
            return Err(missing);
        }
        let (name, is_array) = match written {
            ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => (name, false),
            ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _)) => {
                match &**element {
                    ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => (name, true),
                    _ => return Err(missing),
                }
            }
            _ => return Err(missing),
        };
        let is_record = matches!(&name.0[..], [ast::ObjectNamePart::Identifier(only)]
            if fold(only) == EncodedKind::Record.name());
        let data_type = if is_record {
            DataType::RECORD
        } else {
            let folded = self.relation_name(name)?;
            match self.names.relation(&folded)? {
                Some(Relation::Table(table)) if !table.is_database() => table.row_data_type(),
                _ => return Err(missing),
            }
        };
        // The name would depend on the path, and the text on the table.
        if self.is_stored || self.expands() {
            return Err(SqlError::unsupported(format!("a cast to the row type {data_type} here")));
        }
        let array = || ElementType::new(data_type).map(DataType::Array);
        let data_type = if is_array { array() } else { Some(data_type) };
        data_type.map(DeclaredType::from).ok_or(missing)
    }

    /// Checks that rows of both types compare.
    pub(in crate::bind) fn check_comparable_rows(
        &self,
        left: EncodedType,
        right: EncodedType,
        operator: &str,
        position: u32,
    ) -> Result<()> {
        let (Some(left), Some(right)) = (left.row_type(), right.row_type()) else {
            return Ok(());
        };
        let refuse = |state: SqlState, message: String| {
            Err(SqlError::new(state, message).at(position as usize))
        };
        for (number, (a, b)) in left.fields.iter().zip(&right.fields).enumerate() {
            let (a, b) = (a.1.unconstrained(), b.1.unconstrained());
            if a != b && !(a.record().is_some() && b.record().is_some()) {
                let message = format!(
                    "cannot compare dissimilar column types {a} and {b} at record column {}",
                    number + 1
                );
                return refuse(SqlState::DatatypeMismatch, message);
            }
            if !a.has_order() {
                let is_equality = [Comparison::Equal, Comparison::NotEqual]
                    .into_iter()
                    .any(|it| it.symbol() == operator);
                let what =
                    if is_equality { "an equality operator" } else { "a comparison function" };
                let message = format!("could not identify {what} for type {a}");
                return refuse(SqlState::UndefinedFunction, message);
            }
        }
        if left.fields.len() != right.fields.len() {
            let message = "cannot compare record types with different numbers of columns";
            return refuse(SqlState::DatatypeMismatch, message.into());
        }
        Ok(())
    }
}

/// Checks that the fields of a row without a type's name make a row of a type with one.
pub(in crate::bind) fn check_row_cast(
    value: &Typed,
    to: DataType,
    context: CastContext,
) -> Result<()> {
    let fields = |data_type: DataType| data_type.record().and_then(EncodedType::row_type);
    let (Some(from), Some(target)) = (value.data_type.and_then(fields), fields(to)) else {
        return Ok(());
    };
    if from.name.is_some() || target.name.is_none() {
        return Ok(());
    }
    let fault = |detail: String| {
        let message = format!("cannot cast type record to {to}");
        let error = SqlError::new(SqlState::CannotCoerce, message).with_detail(detail);
        Err(error.at(value.position as usize))
    };
    match from.fields.len().cmp(&target.fields.len()) {
        Ordering::Less => return fault("Input has too few columns.".into()),
        Ordering::Greater => return fault("Input has too many columns.".into()),
        Ordering::Equal => {}
    }
    for (number, ((_, a), (_, b))) in (1..).zip(from.fields.iter().zip(&target.fields)) {
        // A quoted literal is a TEXT in a row.
        let is_castable = |known: CastContext| known <= context || *a == DataType::Text;
        if !cast_context(*a, *b).is_some_and(is_castable) {
            return fault(format!("Cannot cast type {a} to {b} in column {number}."));
        }
    }
    Ok(())
}
