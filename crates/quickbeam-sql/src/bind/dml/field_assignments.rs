//! SET of fields of columns: `SET column.field = value` makes a row with another field.

use smol_str::SmolStr;
use sqlparser::ast;

use super::insert::is_default;
use super::target::{ChangeKind, ChangeTarget};
use crate::bind::{Binder, Scope, Typed, fold};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::DataType;

impl Binder<'_> {
    /// Returns the column and the fields that a target of SET names, if it names fields.
    pub(super) fn field_path(
        &self,
        changed: &ChangeTarget,
        name: &ast::ObjectName,
    ) -> Option<Vec<SmolStr>> {
        let parts = name.0.iter().map(|part| part.as_ident().map(fold));
        let parts = parts.collect::<Option<Vec<SmolStr>>>()?;
        let [column, _, ..] = &parts[..] else { return None };
        changed.own_position(column)?;
        Some(parts)
    }

    /// Binds `SET column.field = value`. An assignment to another field of the column goes on.
    pub(super) fn field_assignment(
        &mut self,
        changed: &ChangeTarget,
        name: &ast::ObjectName,
        (path, value): (&[SmolStr], &ast::Expr),
        (assignments, scope): (&mut Vec<(usize, Expr)>, &Scope),
    ) -> Result<()> {
        let position = self.position(name);
        let at = |error: SqlError| error.at(position as usize);
        let Some((column, fields)) = path.split_first() else { return Ok(()) };
        let missing = || crate::schema::errors::no_column(changed.name(), column);
        let own = changed.own_position(column).ok_or_else(|| at(missing()))?;
        let target = changed.place(own)?;
        self.check_target_columns(changed, &[own], ChangeKind::Update).map_err(at)?;
        if is_default(value) {
            let message = "cannot set a subfield to DEFAULT";
            return Err(at(SqlError::new(SqlState::FeatureNotSupported, message)));
        }
        let table = changed.table.clone();
        self.check_generated(&table, target, name)?;
        let data_type = table.columns[target].data_type;
        let known = assignments.iter().position(|(known, _)| *known == target);
        let current = match known.map(|known| assignments.remove(known).1) {
            Some(row @ Expr::Row(..)) => row,
            Some(_) => {
                let message = format!("multiple assignments to same column \"{column}\"");
                return Err(at(SqlError::new(SqlState::SyntaxError, message)));
            }
            None => {
                let first = scope.relations.first().and_then(|it| it.columns.get(own));
                let first = first.filter(|_| changed.view.is_none());
                let first = first.ok_or_else(|| at(SqlError::unsupported("this form of SET")))?;
                Expr::Column(first.at)
            }
        };
        let value = self.expression(value, scope)?;
        let current = Typed::new(current, data_type, position);
        let row = self.with_field(current, column, fields, value)?;
        assignments.push((target, row.expr));
        Ok(())
    }

    /// Returns a row with another value of a field, which may be within a field.
    fn with_field(
        &mut self,
        row: Typed,
        of: &str,
        path: &[SmolStr],
        value: Typed,
    ) -> Result<Typed> {
        let position = row.position;
        let data_type = row.data_type.unwrap_or(DataType::Text);
        let Some((name, rest)) = path.split_first() else {
            let expr = self.assign(value, data_type, of)?;
            return Ok(Typed::new(expr, data_type, position));
        };
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
                Some(value) if number == at => self.with_field(field, name, rest, value)?.expr,
                kept => {
                    value = kept;
                    field.expr
                }
            });
        }
        Ok(Typed::row(row_type, data_type.row_fields(), values, position))
    }
}
