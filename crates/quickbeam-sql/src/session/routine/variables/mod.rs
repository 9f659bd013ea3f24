//! The values of variables.

mod domains;
mod parts;

use std::sync::Arc;

use smol_str::SmolStr;

pub(super) use self::domains::{DomainCast, domains_of};
use super::call::Invocation;
use crate::bind::OutputColumn;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Clock, Datum, cast};
use crate::parse::plpgsql::{AssignmentTarget, BlockBody, RecordFields, VariableKind};
use crate::types::encoded::row_types::RowType;
use crate::types::encoded::{EncodedType, RowShape};
use crate::types::{
    CastContext, DataType, FieldRef, Value, cast_context, format_value, parse_value,
};

/// The columns of a record.
pub(super) type RecordShape = Arc<RecordFields>;

/// What a variable holds now.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Scalar(Value),
    /// The columns, their values, and what they are.
    Record(RecordShape, Vec<Value>, HeldRow),
}

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeldRow {
    /// Nothing: its columns are not known.
    Unassigned,
    /// NULL.
    Null,
    /// A row, perhaps of NULLs alone.
    Row,
}

impl Cell {
    /// The value of a new variable.
    pub fn new(kind: &VariableKind) -> Cell {
        match kind {
            VariableKind::Scalar(_) | VariableKind::Domain(..) | VariableKind::Collated(..) => {
                Cell::Scalar(Value::Null)
            }
            VariableKind::Record(shape) => {
                let values = vec![Value::Null; shape.len()];
                let held = if shape.is_empty() { HeldRow::Unassigned } else { HeldRow::Null };
                Cell::Record(Arc::new(shape.clone()), values, held)
            }
        }
    }
}

/// Returns the type of the rows of a record.
pub(super) fn row_type_of(shape: &RecordShape) -> EncodedType {
    RowType { name: None, fields: shape.to_vec() }.intern()
}

/// Returns a record as a value.
pub(super) fn row_of(shape: &RecordShape, values: &[Value], held: HeldRow) -> Result<Value> {
    match held {
        HeldRow::Row => row_with_nulls(shape, values),
        HeldRow::Null | HeldRow::Unassigned => Ok(Value::Null),
    }
}

/// Returns the row, also if it is one of NULLs alone.
pub(super) fn row_with_nulls(shape: &RecordShape, values: &[Value]) -> Result<Value> {
    let shape = RowShape::new(row_type_of(shape), shape);
    let mut row = shape.begin();
    values.iter().try_for_each(|value| row.push(value.as_ref()))?;
    row.finish()
}

/// Returns a value as one of a type: by an assignment cast, or by its text if there is no cast.
pub(super) fn assigned(value: Value, data_type: DataType, clock: &Clock) -> Result<Value> {
    if value.is_null() || value.is_of(data_type) {
        return Ok(value);
    }
    let from = value.data_type();
    if from.is_none_or(|from| cast_context(from, data_type).is_some()) {
        return Ok(
            cast(Datum::Own(value), data_type, CastContext::Assignment, Some(clock))?.into_value()
        );
    }
    let mut text = String::new();
    format_value(&mut text, value.as_ref(), &clock.settings());
    let parsed = parse_value(&text, data_type.unconstrained(), &clock.settings())?;
    Ok(cast(Datum::Own(parsed), data_type, CastContext::Assignment, Some(clock))?.into_value())
}

/// A value, and its type if that is a `reg…` type, whose values are numbers of objects.
#[derive(Clone, Debug)]
pub(super) struct TypedValue {
    pub value: Value,
    pub reference: Option<DataType>,
}

impl TypedValue {
    /// Returns a value with the type of its column.
    pub fn new(value: Value, data_type: Option<DataType>) -> TypedValue {
        TypedValue { value, reference: data_type.filter(|it| it.reference().is_some()) }
    }

    pub fn data_type(&self) -> Option<DataType> {
        self.reference.or_else(|| self.value.data_type())
    }
}

impl From<Value> for TypedValue {
    fn from(value: Value) -> TypedValue {
        TypedValue { value, reference: None }
    }
}

/// Returns the values of a row with the types of its columns.
fn typed_values(
    columns: &[OutputColumn],
    row: Option<Vec<Value>>,
) -> impl Iterator<Item = TypedValue> {
    let values = row.unwrap_or_default().into_iter().zip(columns);
    values.map(|(value, column)| TypedValue::new(value, Some(column.data_type)))
}

#[cold]
fn no_field(record: &str, field: &str) -> SqlError {
    let message = format!("record \"{record}\" has no field \"{field}\"");
    SqlError::new(SqlState::UndefinedColumn, message)
}

#[cold]
pub(super) fn not_assigned(record: &str) -> SqlError {
    let message = format!("record \"{record}\" is not assigned yet");
    SqlError::new(SqlState::ObjectNotInPrerequisiteState, message)
        .with_detail("The tuple structure of a not-yet-assigned record is indeterminate.")
}

/// Finds a field of a record.
pub(super) fn field_of(name: &str, cell: &Cell, field: &str) -> Result<usize> {
    let Cell::Record(shape, _, held) = cell else {
        return Err(SqlError::internal("a field of a variable that is no record"));
    };
    if *held == HeldRow::Unassigned {
        return Err(not_assigned(name));
    }
    shape.iter().position(|(known, _)| known == field).ok_or_else(|| no_field(name, field))
}

impl Invocation<'_> {
    fn variable_name(&self, variable: usize) -> SmolStr {
        self.compiled.body.variables[variable].name.clone()
    }

    /// Returns a value that a domain accepts.
    pub fn accepted(&self, domain: &DomainCast, value: Value) -> Result<Value> {
        self.place.with(self.session, |it| domain.accept(self.session, it, value))
    }

    /// Returns a value as one of a type: as `assigned` does, or as the name of an object for its
    /// number, or the number for the name.
    pub fn converted(&self, typed: TypedValue, to: DataType) -> Result<Value> {
        let wanted = match (&typed.value, typed.reference) {
            (Value::Text(_), _) if to.reference().is_some() => to,
            (Value::Oid(_), Some(_)) if to.is_text() => DataType::Text,
            _ => return assigned(typed.value, to, &self.session.clock),
        };
        let text = format!("SELECT CAST($1 AS {wanted})");
        let rows = self.run_text(&text, &[typed])?.rows;
        let value = rows.into_iter().flatten().next().unwrap_or(Value::Null);
        assigned(value, to, &self.session.clock)
    }

    /// Sets a variable, without regard to CONSTANT.
    pub fn set(&mut self, variable: usize, value: impl Into<TypedValue>) -> Result<()> {
        let value = value.into();
        let Some(domain) = self.compiled.domains.get(&variable) else {
            return self.set_checked(variable, value);
        };
        let value = match self.compiled.body.variables[variable].kind {
            VariableKind::Domain(data_type, _) => self.converted(value, data_type)?,
            _ => value.value,
        };
        let value = self.accepted(domain, value)?;
        self.set_checked(variable, value)
    }

    /// As [`set`](Self::set), with a value that the domain of the variable accepts.
    pub fn set_checked(&mut self, variable: usize, value: impl Into<TypedValue>) -> Result<()> {
        let typed = value.into();
        let declared = &self.compiled.body.variables[variable];
        match &declared.kind {
            VariableKind::Scalar(data_type)
            | VariableKind::Domain(data_type, _)
            | VariableKind::Collated(data_type, _) => {
                let value = self.converted(typed, *data_type)?;
                if value.is_null() && declared.not_null {
                    let message = format!(
                        "null value cannot be assigned to variable \"{}\" declared NOT NULL",
                        declared.name
                    );
                    return Err(SqlError::new(SqlState::NullValueNotAllowed, message));
                }
                self.cells[variable] = Cell::Scalar(value);
                Ok(())
            }
            VariableKind::Record(_) if typed.value.is_null() => {
                if let Cell::Record(_, values, held) = &mut self.cells[variable] {
                    values.fill(Value::Null);
                    if *held == HeldRow::Row {
                        *held = HeldRow::Null;
                    }
                }
                Ok(())
            }
            VariableKind::Record(_) if let Some(row) = typed.value.as_ref().row() => {
                let column = |it: &FieldRef<'_>| OutputColumn::new(it.name, it.data_type());
                let columns: Vec<OutputColumn> = row.fields().map(|it| column(&it)).collect();
                let values = row.fields().map(|field| field.value.to_value()).collect();
                self.set_record(variable, &columns, Some(values))
            }
            VariableKind::Record(_) => {
                let message = "cannot assign non-composite value to a record variable";
                Err(SqlError::new(SqlState::DatatypeMismatch, message))
            }
        }
    }

    /// Refuses an assignment to a CONSTANT.
    fn check_variable(&self, variable: usize) -> Result<()> {
        if self.compiled.body.variables[variable].constant {
            let name = self.variable_name(variable);
            let message = format!("variable \"{name}\" is declared CONSTANT");
            return Err(SqlError::new(SqlState::ErrorInAssignment, message));
        }
        Ok(())
    }

    /// Assigns a value to a variable or a field.
    pub fn assign(
        &mut self,
        target: &AssignmentTarget,
        value: impl Into<TypedValue>,
    ) -> Result<()> {
        let value = value.into();
        self.check_variable(target.variable)?;
        let Some(field) = &target.field else { return self.set(target.variable, value) };
        let name = self.variable_name(target.variable);
        let at = field_of(&name, &self.cells[target.variable], field)?;
        let Cell::Record(shape, ..) = &self.cells[target.variable] else { return Ok(()) };
        let value = self.converted(value, shape[at].1)?;
        if let Cell::Record(_, values, held) = &mut self.cells[target.variable] {
            values[at] = value;
            *held = HeldRow::Row;
        }
        Ok(())
    }

    /// Assigns a row to a record.
    pub fn set_record(
        &mut self,
        variable: usize,
        columns: &[OutputColumn],
        row: Option<Vec<Value>>,
    ) -> Result<()> {
        let VariableKind::Record(declared) = &self.compiled.body.variables[variable].kind else {
            return Err(SqlError::internal("a row for a variable that is no record"));
        };
        if declared.is_empty() {
            let fields = columns.iter();
            let fields = fields.map(|it| (it.name.clone(), it.data_type, it.collation.as_column()));
            let shape = Arc::new(RecordFields::new(fields));
            let values = row.unwrap_or_else(|| vec![Value::Null; shape.len()]);
            // The same columns keep what was compiled for them.
            let shape = match &self.cells[variable] {
                Cell::Record(known, ..) if *known == shape => known.clone(),
                _ => shape,
            };
            self.cells[variable] = Cell::Record(shape, values, HeldRow::Row);
            return Ok(());
        }
        let mut given = typed_values(columns, row);
        let mut values = Vec::with_capacity(declared.len());
        for (_, data_type) in declared.iter() {
            let value = given.next().unwrap_or_else(|| Value::Null.into());
            values.push(self.converted(value, *data_type)?);
        }
        if let Cell::Record(_, row, held) = &mut self.cells[variable] {
            *row = values;
            *held = HeldRow::Row;
        }
        Ok(())
    }

    /// Assigns the values of a row, or NULLs, to variables.
    pub fn assign_row(
        &mut self,
        targets: &[AssignmentTarget],
        columns: &[OutputColumn],
        row: Option<Vec<Value>>,
    ) -> Result<()> {
        if let [AssignmentTarget { variable, field: None }] = targets
            && matches!(self.cells[*variable], Cell::Record(..))
        {
            return self.set_record(*variable, columns, row);
        }
        let mut values = typed_values(columns, row);
        for target in targets {
            self.assign(target, values.next().unwrap_or_else(|| Value::Null.into()))?;
        }
        Ok(())
    }

    /// Copies a record if that is all that the expression of an assignment is.
    pub fn copy_record(&mut self, target: &AssignmentTarget, fragment: usize) -> Result<bool> {
        let body = &self.compiled.body;
        let fragment = &body.fragments[fragment];
        let name = fragment.text.strip_prefix("SELECT ").unwrap_or_default().trim();
        let names: Vec<SmolStr> =
            name.split('.').map(|part| SmolStr::new(part.to_lowercase())).collect();
        let found = BlockBody::lookup(&body.namespaces, fragment.namespace, &names);
        let Some((source, [])) = found else { return Ok(false) };
        let source = self.cells[source].clone();
        let Cell::Record(..) = source else { return Ok(false) };
        if target.field.is_some() || !matches!(self.cells[target.variable], Cell::Record(..)) {
            return Ok(false);
        }
        let Cell::Record(shape, values, held @ (HeldRow::Null | HeldRow::Row)) = &source else {
            self.cells[target.variable] = source;
            return Ok(true);
        };
        let column = |(at, (name, data_type)): (usize, &(SmolStr, DataType))| OutputColumn {
            collation: shape.collation(at),
            ..OutputColumn::new(name.clone(), *data_type)
        };
        let columns: Vec<OutputColumn> = shape.iter().enumerate().map(column).collect();
        self.set_record(target.variable, &columns, Some(values.clone()))?;
        if let Cell::Record(_, _, now) = &mut self.cells[target.variable] {
            *now = *held;
        }
        Ok(true)
    }
}
