//! Targets of INSERT and SET that are a part of a column: a field, an element, or a member of a
//! JSONB value. A value for a part makes another value of the whole column.

use smol_str::SmolStr;
use sqlparser::ast::{self, AccessExpr, Subscript};

use crate::bind::{Binder, Scope, Typed, fold};
use crate::catalog::Column;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, Function, TextPosition};
use crate::parse::subscripts_of;
use crate::types::{Array, DataType, ElementType, Value};

/// A step from a column to the part of it that a statement sets.
#[derive(Clone, Debug)]
pub(in crate::bind) enum PartStep {
    /// A field of a row.
    Field(SmolStr),
    /// Subscripts of an array or a JSONB value.
    Subscripts(Vec<AccessExpr>),
}

/// What a statement sets.
#[derive(Clone, Debug)]
pub(in crate::bind) struct TargetPath {
    /// The name of the column.
    pub column: SmolStr,
    /// The way to the part that is set; none for the whole column.
    pub steps: Vec<PartStep>,
}

impl TargetPath {
    /// Returns what a name stands for.
    pub fn new(name: &ast::ObjectName) -> Result<TargetPath> {
        let mut idents = name.0.iter().map(|part| {
            part.as_ident().ok_or_else(|| SqlError::unsupported("a function as a name"))
        });
        let missing = || SqlError::internal("a target without a name");
        let column = fold(idents.next().ok_or_else(missing)??);
        let mut steps = Vec::new();
        for ident in idents {
            let ident = ident?;
            steps.push(match subscripts_of(ident)? {
                Some(subscripts) => PartStep::Subscripts(subscripts),
                None => PartStep::Field(fold(ident)),
            });
        }
        Ok(TargetPath { column, steps })
    }

    /// Returns the error of DEFAULT for a part of a column.
    #[cold]
    pub fn no_default(&self) -> SqlError {
        let message = match self.steps.first() {
            Some(PartStep::Subscripts(_)) => "cannot set an array element to DEFAULT",
            _ => "cannot set a subfield to DEFAULT",
        };
        SqlError::new(SqlState::FeatureNotSupported, message)
    }
}

/// What INSERT gives a value: a column of the table, or a part of one.
pub(in crate::bind) struct InsertTarget {
    /// The position of the column.
    pub place: usize,
    /// The way to the part.
    pub steps: Vec<PartStep>,
    /// Where it stands in the text.
    pub position: u32,
}

/// Returns the value of a column of which earlier targets have set parts, else NULL.
pub(super) fn known_part<'t>(
    target: &InsertTarget,
    mut earlier: impl Iterator<Item = &'t InsertTarget>,
    values: &[Expr],
) -> Expr {
    let is_set = earlier.any(|it| it.place == target.place);
    let known = values.get(target.place).filter(|_| is_set);
    known.cloned().unwrap_or(Expr::Constant(Value::Null))
}

/// Returns an error that says what a part of another type needs.
fn of_part(error: SqlError, message: String, position: u32) -> SqlError {
    if error.state() != SqlState::DatatypeMismatch {
        return error;
    }
    SqlError::new(SqlState::DatatypeMismatch, message)
        .with_hint("You will need to rewrite or cast the expression.")
        .at(position as usize)
}

impl Binder<'_> {
    /// Returns the value of a column with a given value of a part, and otherwise what is known.
    pub(super) fn part_of(
        &mut self,
        target: &InsertTarget,
        column: &Column,
        (known, value): (Expr, Typed),
        scope: &Scope,
    ) -> Result<Expr> {
        let whole = Typed::new(known, column.data_type, target.position);
        Ok(self.with_part(whole, &column.name, (&target.steps, value), scope)?.expr)
    }

    /// Returns a value of a column with another value of a part.
    pub(in crate::bind) fn with_part(
        &mut self,
        whole: Typed,
        of: &str,
        (steps, value): (&[PartStep], Typed),
        scope: &Scope,
    ) -> Result<Typed> {
        match steps.split_first() {
            None => {
                let data_type = whole.data_type.unwrap_or(DataType::Text);
                let expr = self.assign(value, data_type, of)?;
                Ok(Typed::new(expr, data_type, whole.position))
            }
            Some((PartStep::Field(name), rest)) => {
                self.with_field(whole, of, name, (rest, value), scope)
            }
            Some((PartStep::Subscripts(chain), rest)) => match whole.data_type {
                Some(DataType::Jsonb) => self.with_member(whole, of, chain, (rest, value), scope),
                Some(DataType::Array(element)) => {
                    self.with_elements(whole, of, (chain, element), (rest, value), scope)
                }
                other => {
                    let name = other.unwrap_or(DataType::Text);
                    let message = format!(
                        "cannot subscript type {name} because it does not support subscripting"
                    );
                    let error = SqlError::new(SqlState::DatatypeMismatch, message);
                    Err(error.at(whole.position as usize))
                }
            },
        }
    }

    /// Returns a row with another value of a field, or of a part of it.
    fn with_field(
        &mut self,
        row: Typed,
        of: &str,
        name: &SmolStr,
        (rest, value): (&[PartStep], Typed),
        scope: &Scope,
    ) -> Result<Typed> {
        let position = row.position;
        let data_type = row.data_type.unwrap_or(DataType::Text);
        let refuse = |state: SqlState, why: String| {
            let message =
                format!("cannot assign to field \"{name}\" of column \"{of}\" because {why}");
            Err(SqlError::new(state, message).at(position as usize))
        };
        let (Some(row_type), Some(fields)) = (data_type.record(), self.fields_of(&row)) else {
            let why = format!("its type {data_type} is not a composite type");
            return refuse(SqlState::DatatypeMismatch, why);
        };
        let Some(at) = fields.iter().position(|(known, _)| known == name) else {
            let why = format!("there is no such column in data type {data_type}");
            return refuse(SqlState::UndefinedColumn, why);
        };
        let mut values = Vec::with_capacity(fields.len());
        let mut value = Some(value);
        for (number, (_, field)) in fields.into_iter().enumerate() {
            values.push(match value.take() {
                Some(value) if number == at => {
                    self.with_typed_part(field, name, (rest, value), scope)?.expr
                }
                kept => {
                    value = kept;
                    field.expr
                }
            });
        }
        Ok(Typed::row(row_type, data_type.row_fields(), values, position))
    }

    /// As [`with_part`](Self::with_part), of a field.
    fn with_typed_part(
        &mut self,
        field: Typed,
        name: &str,
        (rest, value): (&[PartStep], Typed),
        scope: &Scope,
    ) -> Result<Typed> {
        let (wanted, found, position) = (field.data_type, value.data_type, field.position);
        let made = self.with_part(field, name, (rest, value), scope);
        match (wanted, found) {
            (Some(wanted), Some(found)) if rest.is_empty() => made.map_err(|error| {
                let message = format!(
                    "subfield \"{name}\" is of type {wanted} but expression is of type {found}"
                );
                of_part(error, message, position)
            }),
            _ => made,
        }
    }

    /// Returns an array with another element or slice, or another part of an element.
    fn with_elements(
        &mut self,
        array: Typed,
        of: &str,
        (chain, element): (&[AccessExpr], ElementType),
        (rest, value): (&[PartStep], Typed),
        scope: &Scope,
    ) -> Result<Typed> {
        let (position, data_type) = (array.position, array.data_type);
        let (is_slice, bounds) = self.subscript_bounds(chain, position, scope)?;
        let part = if is_slice { DataType::Array(element) } else { element.data_type() };
        let is_slice = Expr::Constant(Value::Boolean(is_slice));
        let value = if rest.is_empty() {
            let found = value.data_type;
            let expr = self.assign(value, part, of).map_err(|error| match found {
                Some(found) => of_part(error, subscript_mismatch(of, part, found), position),
                None => error,
            })?;
            Typed::new(expr, part, position)
        } else {
            let mut list = vec![is_slice.clone(), array.expr.clone()];
            list.extend(bounds.iter().cloned());
            let call = Expr::Call(Function::SUBSCRIPTS, list, TextPosition(position));
            let current = Typed::new(call, part, position);
            self.with_part(current, of, (rest, value), scope)?
        };
        let empty = Expr::Constant(Value::Array(Array::empty(element)));
        let mut list = vec![is_slice, array.expr, value.expr, empty];
        list.extend(bounds);
        let expr = Expr::Call(Function::ASSIGN_SUBSCRIPTS, list, TextPosition(position));
        Ok(Typed { expr, data_type, position })
    }

    /// Returns a JSONB value with another value of a member.
    fn with_member(
        &mut self,
        whole: Typed,
        of: &str,
        chain: &[AccessExpr],
        (rest, value): (&[PartStep], Typed),
        scope: &Scope,
    ) -> Result<Typed> {
        let position = whole.position;
        let steps = self.json_steps(chain, scope)?;
        let is_number = match chain.first() {
            Some(AccessExpr::Subscript(Subscript::Index { index })) => {
                let index = self.expression(index, scope)?;
                index.data_type.is_some_and(|known| !known.is_text())
            }
            _ => false,
        };
        if !rest.is_empty() {
            return self.with_part(whole, of, (rest, value), scope);
        }
        let found = value.data_type;
        let value = self.assign(value, DataType::Jsonb, of).map_err(|error| match found {
            Some(found) => of_part(error, subscript_mismatch(of, DataType::Jsonb, found), position),
            None => error,
        })?;
        let mut list = vec![Expr::Constant(Value::Boolean(is_number)), whole.expr, value];
        list.extend(steps);
        let expr = Expr::Call(Function::ASSIGN_MEMBER, list, TextPosition(position));
        Ok(Typed::new(expr, DataType::Jsonb, position))
    }
}

fn subscript_mismatch(of: &str, wanted: DataType, found: DataType) -> String {
    format!(
        "subscripted assignment to \"{of}\" requires type {wanted} but expression is of type {found}"
    )
}
