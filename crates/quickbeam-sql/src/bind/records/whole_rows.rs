//! Whole rows: the name of an item of FROM as a value, and row constructors.

use std::sync::Arc;

use smol_str::{SmolStr, format_smolstr};
use sqlparser::ast::{self, Expr as Ast, FunctionArg, FunctionArgExpr, ObjectName};

use crate::bind::{
    Binder, OutputColumn, RowOf, Scope, ScopeColumn, ScopeRelation, Source, Typed, fold,
    object_name,
};
use crate::catalog::row_type_name;
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, record_function};
use crate::expression::{Function, TextPosition};
use crate::parse::ALL_FIELDS;
use crate::types::encoded::row_types::{RowField, RowType};
use crate::types::encoded::{EncodedType, MAX_FIELDS, RowShape};
use crate::types::{DataType, Value};

impl Typed {
    /// Returns a row of these values.
    pub(in crate::bind) fn row(
        row_type: EncodedType,
        fields: &[RowField],
        values: Vec<Expr>,
        position: u32,
    ) -> Typed {
        let shape = RowShape::new(row_type, fields);
        Typed::new(Expr::Row(Arc::new(shape), values), DataType::Encoded(row_type), position)
    }
}

impl Binder<'_> {
    /// Returns the item of FROM whose row a name means that is no column.
    pub(in crate::bind) fn relation_named<'s>(
        names: &[SmolStr],
        scope: &'s Scope,
    ) -> Option<&'s ScopeRelation> {
        let [name] = names else { return None };
        let scopes = std::iter::successors(Some(scope), |scope| scope.outer.as_deref());
        scopes.into_iter().find_map(|scope| scope.relation(name))
    }

    /// Binds the row of an item of FROM, or the value of one that is a function of one value.
    pub(in crate::bind) fn whole_row(
        &mut self,
        relation: &ScopeRelation,
        position: u32,
    ) -> Result<Typed> {
        let read = self.check_read(relation.columns.iter().map(|column| column.at));
        read.map_err(|error| error.at(position as usize))?;
        for column in &relation.columns {
            self.note_named(column.at, position);
        }
        if let (RowOf::Value, [column]) = (&relation.row, &relation.columns[..]) {
            return Ok(Typed::new(column.value(), column.data_type, position));
        }
        let first = relation.columns.first().map(|column| column.at.slot);
        let slot = relation.origin.as_ref().map(|origin| origin.slot).or(first);
        let source = slot.and_then(|slot| self.slots.get(slot)).map(|shape| &shape.source);
        let mut fields: Vec<RowField> = Vec::with_capacity(relation.columns.len());
        fields.extend(relation.columns.iter().map(|it| (it.name.clone(), it.data_type)));
        // The fields of a type with a name have their own names.
        let name = match (&relation.row, source) {
            (RowOf::View(view), _) => {
                fields.iter_mut().zip(&view.columns).for_each(|(field, own)| field.0 = own.clone());
                Some(row_type_name(view.id, &view.schema, &view.name))
            }
            (RowOf::Join, _) => None,
            (RowOf::Composite(own), _) => own.row_type().and_then(|known| {
                fields
                    .iter_mut()
                    .zip(&known.fields)
                    .for_each(|(field, own)| field.0 = own.0.clone());
                known.name.clone()
            }),
            (_, Some(Source::Table(table))) if !table.is_database() => {
                for (field, column) in fields.iter_mut().zip(&relation.columns) {
                    if let Some(own) = table.columns.get(column.at.column) {
                        field.0 = own.name.clone();
                    }
                }
                Some(row_type_name(table.id, &table.schema, &table.name))
            }
            _ => None,
        };
        let row_type = RowType { name, fields: fields.clone() }.intern();
        let mut shape = RowShape::new(row_type, &fields);
        let mut columns: Vec<Expr> = relation.columns.iter().map(ScopeColumn::value).collect();
        // The row of a join consists of its columns and is never NULL.
        if relation.is_nullable && !matches!(relation.row, RowOf::Join) {
            match self.row_marker(relation) {
                Some(marker) => columns.push(marker),
                None => shape.is_nullable = true,
            }
        }
        let expr = Expr::Row(Arc::new(shape), columns);
        Ok(Typed::new(expr, DataType::Encoded(row_type), position))
    }

    /// Binds `name.*` as one value.
    pub(in crate::bind) fn whole_row_named(
        &mut self,
        name: &ObjectName,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = self.position(name);
        let folded = object_name(name).map_err(|error| error.at(position as usize))?;
        let relation = Self::relation_named(std::slice::from_ref(&folded), scope);
        let relation = relation.ok_or_else(|| {
            let message = format!("missing FROM-clause entry for table \"{folded}\"");
            SqlError::new(SqlState::UndefinedTable, message).at(position as usize)
        })?;
        self.whole_row(relation, position)
    }

    /// Binds an argument of a function.
    pub(in crate::bind) fn argument(
        &mut self,
        argument: &FunctionArg,
        scope: &Scope,
    ) -> Result<Option<Typed>> {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                self.expression(expr, scope).map(Some)
            }
            FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                self.whole_row_named(name, scope).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Binds `ROW(…)`, in which `name.*` means the columns of the item.
    pub(in crate::bind) fn row_call_constructor(
        &mut self,
        list: &[FunctionArg],
        position: u32,
        scope: &Scope,
    ) -> Result<Typed> {
        let mut values = Vec::with_capacity(list.len());
        for argument in list {
            let is_star =
                matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(_)));
            let bound = self.argument(argument, scope)?.ok_or_else(|| {
                SqlError::unsupported("this form of an argument").at(position as usize)
            })?;
            match (is_star, self.fields_of(&bound)) {
                (true, Some(fields)) => values.extend(fields.into_iter().map(|(_, value)| value)),
                _ => values.push(bound),
            }
        }
        self.row_constructor(values, position)
    }

    /// Binds `(a, b)` as one value.
    pub(in crate::bind) fn tuple(
        &mut self,
        list: &[Ast],
        position: u32,
        scope: &Scope,
    ) -> Result<Typed> {
        let values: Result<Vec<Typed>> =
            list.iter().map(|value| self.expression(value, scope)).collect();
        self.row_constructor(values?, position)
    }

    fn row_constructor(&mut self, values: Vec<Typed>, position: u32) -> Result<Typed> {
        if values.len() > MAX_FIELDS {
            let message = format!("ROW expressions can have at most {MAX_FIELDS} entries");
            let error = SqlError::new(SqlState::TooManyColumns, message);
            return Err(error.at(position as usize));
        }
        let mut fields: Vec<RowField> = Vec::with_capacity(values.len());
        let mut exprs = Vec::with_capacity(values.len());
        for (value, number) in values.into_iter().zip(1..) {
            let value = self.settle(value)?;
            fields.push((format_smolstr!("f{number}"), value.data_type.unwrap_or(DataType::Text)));
            exprs.push(value.expr);
        }
        let row_type = RowType { name: None, fields: fields.clone() }.intern();
        Ok(self.folded(Typed::row(row_type, &fields, exprs, position)))
    }

    /// Binds `IS NULL` or, with `negated`, `IS NOT NULL` of a row: a test of all its fields.
    pub(in crate::bind) fn is_null_record(value: Typed, negated: bool) -> Typed {
        let position = value.position;
        if let Expr::Row(shape, mut fields) = value.expr {
            fields.truncate(shape.width());
            let tests = fields.into_iter().map(|field| Expr::IsNull(Box::new(field), negated));
            return Typed::condition(Expr::And(tests.collect()), position);
        }
        let name = if negated { "is not null" } else { "is null" };
        let expr = match record_function(name) {
            Some(test) => Expr::Call(Function(test), vec![value.expr], TextPosition(position)),
            None => Expr::IsNull(Box::new(value.expr), negated),
        };
        Typed::condition(expr, position)
    }
}

/// Refuses columns whose types are rows without a name, which neither tables nor views have.
pub fn refuse_records(columns: &[OutputColumn]) -> Result<()> {
    for column in columns {
        let row = column.data_type.element_or_self().record();
        if row.is_some_and(|row| row.row_type_name().is_none()) {
            let message =
                format!("column \"{}\" has pseudo-type {}", column.name, column.data_type);
            return Err(SqlError::new(SqlState::InvalidTableDefinition, message));
        }
    }
    Ok(())
}

/// Returns the row of `(row).*`.
pub(in crate::bind) fn row_of_star(ast: &Ast) -> Option<Ast> {
    let Ast::CompoundFieldAccess { root, access_chain } = ast else { return None };
    let (star, chain) = access_chain.split_last()?;
    if field_name(star)? != ALL_FIELDS {
        return None;
    }
    let (root, access_chain) = (root.clone(), chain.to_vec());
    Some(match access_chain.is_empty() {
        true => *root,
        false => Ast::CompoundFieldAccess { root, access_chain },
    })
}

/// Returns the name of a field, if an access to a value is one.
pub(in crate::bind) fn field_name(access: &ast::AccessExpr) -> Option<SmolStr> {
    match access {
        ast::AccessExpr::Dot(Ast::Identifier(field)) => Some(fold(field)),
        _ => None,
    }
}

/// Returns a constant of a number.
pub(in crate::bind) fn number(at: usize) -> Expr {
    Expr::Constant(Value::Integer(at as i32))
}
