//! Arrays: constructors, subscripts, ANY and ALL, and functions of arrays of any type.

use std::sync::Arc;

use sqlparser::ast::{self, Expr as Ast};

use crate::bind::collations::keys::{key_of, unmarked};
use crate::bind::collations::not_under;
use crate::bind::expression::operators::is_padded_array;
use crate::bind::types::undefined::{no_function, no_operator};
use crate::bind::{Binder, Scope, SubqueryKind, Typed, types};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{
    ColumnRef, Comparison, Expr, Function, Polymorphic, Shape, TextPosition, polymorphic,
};
use crate::types::{Array, ArrayBuilder, DataType, ElementType, Value};

/// A function of arrays, with the type of the elements.
pub(in crate::bind) type OfElements = (&'static Polymorphic, ElementType);

fn element_of(data_type: DataType) -> Option<ElementType> {
    ElementType::new(data_type.unconstrained())
}

pub(super) fn name_of(data_type: Option<DataType>) -> String {
    data_type.map_or_else(|| "unknown".to_owned(), |known| known.unconstrained().to_string())
}

/// Returns the members of a constructor, if they are constructors too.
fn rows_of(array: &ast::Array) -> Option<Vec<&ast::Array>> {
    let row = |member: &Ast| matches!(member, Ast::Array(_));
    if array.elem.is_empty() || !array.elem.iter().all(row) {
        return None;
    }
    let rows = array.elem.iter().filter_map(|member| match member {
        Ast::Array(inner) => Some(inner),
        _ => None,
    });
    Some(rows.collect())
}

/// Finds how a polymorphic function takes arguments of these types.
enum ArgumentFit {
    No,
    /// No argument tells the type.
    Unknown,
    Of(ElementType),
}

fn fit(known: &Polymorphic, types: &[Option<DataType>]) -> ArgumentFit {
    if known.arguments.len() != types.len() {
        return ArgumentFit::No;
    }
    let mut element: Option<DataType> = None;
    for (shape, data_type) in known.arguments.iter().zip(types) {
        let vector = match data_type {
            Some(DataType::System(known)) => known.vector_array(),
            _ => None,
        };
        let own = match (shape, &vector.or(*data_type)) {
            (_, None) => continue,
            (Shape::Is(to), Some(from)) => {
                let is_implicit = crate::types::cast_context(*from, *to)
                    == Some(crate::types::CastContext::Implicit);
                if !is_implicit {
                    return ArgumentFit::No;
                }
                continue;
            }
            (Shape::Array, Some(DataType::Array(own))) => own.data_type(),
            (Shape::Array, Some(_)) | (Shape::Element, Some(DataType::Array(_))) => {
                return ArgumentFit::No;
            }
            (Shape::Element, Some(own)) => *own,
        };
        element = match element {
            None => Some(own.unconstrained()),
            Some(before) if known.is_exact && !before.is_same_kind(own) => return ArgumentFit::No,
            Some(before) => match types::common(before, own.unconstrained()) {
                None => return ArgumentFit::No,
                common => common,
            },
        };
    }
    match element.map(element_of) {
        None => ArgumentFit::Unknown,
        Some(None) => ArgumentFit::No,
        Some(Some(element)) => ArgumentFit::Of(element),
    }
}

impl Binder<'_> {
    /// Binds `ARRAY[…]`.
    pub(in crate::bind) fn array(
        &mut self,
        array: &ast::Array,
        whole: &Ast,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = self.position(whole);
        if !array.named {
            return Err(SqlError::new(SqlState::SyntaxError, "syntax error at or near \"[\"")
                .at(position as usize));
        }
        if array.elem.is_empty() {
            let message = "cannot determine type of empty array";
            return Err(SqlError::new(SqlState::IndeterminateDatatype, message)
                .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
                .at(position as usize));
        }
        let mut members = Vec::with_capacity(array.elem.len());
        for member in &array.elem {
            members.push(self.array_member(member, scope)?);
        }
        let (members, common) = self.unify(members, "ARRAY")?;
        let element = match common {
            DataType::Array(element) => Some(element.unconstrained()),
            common => element_of(common),
        };
        let element = element.ok_or_else(|| self.no_array(common, position))?;
        let expr = Expr::Array(element, members, TextPosition(position));
        Ok(self.folded(Typed::new(expr, DataType::Array(element), position)))
    }

    /// Binds a member of a constructor; the word ARRAY may be left out of an inner one.
    fn array_member(&mut self, member: &Ast, scope: &Scope) -> Result<Typed> {
        match member {
            Ast::Array(inner) if !inner.named => {
                let named = ast::Array { named: true, ..inner.clone() };
                self.nested(|binder| binder.array(&named, member, scope))
            }
            _ => self.expression(member, scope),
        }
    }

    #[cold]
    fn no_array(&self, of: DataType, position: u32) -> SqlError {
        let message = format!("could not find array type for data type {of}");
        SqlError::new(SqlState::UndefinedObject, message).at(position as usize)
    }

    /// Binds `ARRAY[…]::type[]`: each member is cast to the type.
    pub(in crate::bind) fn typed_array(
        &mut self,
        array: &ast::Array,
        element: ElementType,
        whole: &Ast,
        scope: &Scope,
    ) -> Result<Typed> {
        let position = self.position(whole);
        let data_type = DataType::Array(element);
        if array.elem.is_empty() {
            let empty = Expr::Constant(Value::Array(Array::empty(element)));
            return Ok(Typed::new(empty, data_type, position));
        }
        let mut members = Vec::with_capacity(array.elem.len());
        if let Some(rows) = rows_of(array) {
            for row in rows {
                let bound = self.nested(|binder| binder.typed_array(row, element, whole, scope))?;
                members.push(bound.expr);
            }
        } else {
            for member in &array.elem {
                let bound = self.expression(member, scope)?;
                let to = match bound.data_type {
                    Some(DataType::Array(_)) => data_type,
                    _ => element.data_type(),
                };
                members.push(self.cast_or_read(bound, to)?.expr);
            }
        }
        let expr = Expr::Array(element, members, TextPosition(position));
        Ok(self.folded(Typed::new(expr, data_type, position)))
    }

    /// Binds `ARRAY(SELECT …)`.
    pub(in crate::bind) fn array_of_query(
        &mut self,
        query: &ast::Query,
        position: u32,
        scope: &Scope,
    ) -> Result<Typed> {
        let mut data_type = DataType::Text;
        let (slot, query) = self.subquery(query, scope, |binder, query| {
            let [column] = &query.columns[..] else {
                let message = "subquery must return only one column";
                return Err(SqlError::new(SqlState::SyntaxError, message).at(position as usize));
            };
            let element = match column.data_type {
                DataType::Array(element) => Some(element.unconstrained()),
                other => element_of(other),
            };
            let element = element.ok_or_else(|| binder.no_array(column.data_type, position))?;
            data_type = DataType::Array(element);
            Ok(SubqueryKind::Array(element))
        })?;
        let collation = query.columns.first().map(|it| it.collation).unwrap_or_default();
        self.set_collation(ColumnRef { slot, column: 0 }, collation);
        Ok(Typed::new(Expr::column(slot, 0), data_type, position))
    }

    /// Binds ANY or ALL of an array.
    pub(in crate::bind) fn any_element(
        &mut self,
        value: &Ast,
        comparison: Comparison,
        array: &Ast,
        is_any: bool,
        scope: &Scope,
    ) -> Result<Typed> {
        let value = self.expression(value, scope)?;
        let position = value.position;
        let array = self.expression(array, scope)?.without_vector();
        let element = match (array.data_type, value.data_type) {
            (Some(DataType::Array(element)), _) => element.data_type(),
            (Some(_), _) => {
                let message = "op ANY/ALL (array) requires array on right side";
                let error = SqlError::new(SqlState::WrongObjectType, message);
                return Err(error.at(position as usize));
            }
            (None, Some(DataType::Char(_)) | None) => DataType::Text,
            (None, Some(known)) => known.unconstrained(),
        };
        let element_type =
            ElementType::new(element).ok_or_else(|| self.no_array(element, position))?;
        let array = self.coerce(array, DataType::Array(element_type))?;
        // The element stands for itself as a NULL of its type: both sides then take the types of a
        // comparison.
        let own = Typed::new(Expr::Parameter(usize::MAX), element, position);
        let given = [value, Typed::new(array, DataType::Array(element_type), position)];
        let collation = self.key_collation(&given, "string comparison")?;
        let [value, Typed { expr: array, .. }] = given;
        let [value, made] = self.comparable_types(value, own, comparison.symbol(), position)?;
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let collation = collation.filter(|it| !(is_equality && it.is_deterministic()));
        if let Some(collation) = collation {
            if !element.is_text() || !matches!(made, Expr::Parameter(_)) {
                return Err(not_under("this comparison with the elements of an array", collation));
            }
            let (value, array) = (key_of(value, collation)?, key_of(array, collation)?);
            let made = self.elements(comparison, value, array, is_any);
            return Ok(Typed::condition(made, position));
        }
        let (value, array) = (unmarked(value), unmarked(array));
        let array = match made {
            Expr::Cast(_, to, _) => {
                let to = ElementType::new(to).ok_or_else(|| self.no_array(to, position))?;
                let array = Typed::new(array, DataType::Array(element_type), position);
                self.coerce(array, DataType::Array(to))?
            }
            Expr::Trimmed(_) => {
                let trimmed = Expr::Trimmed(Box::new(array));
                self.folded(Typed::new(trimmed, DataType::Array(element_type), position)).expr
            }
            _ => array,
        };
        Ok(self.folded(Typed::condition(self.elements(comparison, value, array, is_any), position)))
    }

    /// Compares with an array. Constants without NULL become an IN list, which lookups can use.
    fn elements(&self, comparison: Comparison, value: Expr, array: Expr, is_any: bool) -> Expr {
        let in_list = match (comparison, is_any) {
            (Comparison::Equal, true) => Some(false),
            (Comparison::NotEqual, false) => Some(true),
            _ => None,
        };
        if let (Some(negated), Expr::Constant(Value::Array(constant))) = (in_list, &array) {
            let members = constant.as_ref().iter();
            let mut members: Vec<Value> = members.map(|member| member.to_value()).collect();
            if !members.is_empty() && !members.iter().any(Value::is_null) {
                members.sort();
                members.dedup();
                return Expr::InSet(Box::new(value), Arc::new(members), negated);
            }
        }
        Expr::CompareElements(comparison, Box::new([value, array]), is_any)
    }

    /// Finds the function of arrays of that name for these types. Returns `None` if there is none
    /// of that name.
    pub(in crate::bind) fn array_function(
        &self,
        name: &str,
        types: &[Option<DataType>],
        position: u32,
    ) -> Option<Result<OfElements>> {
        let mut is_known = false;
        let mut is_unknown = false;
        for known in polymorphic(name).filter(|known| known.arguments.len() == types.len()) {
            is_known = true;
            match fit(known, types) {
                ArgumentFit::Of(element) => return Some(Ok((known, element))),
                ArgumentFit::Unknown => is_unknown = true,
                ArgumentFit::No => {}
            }
        }
        let error = if is_unknown {
            let message = "could not determine polymorphic type because input has type unknown";
            SqlError::new(SqlState::DatatypeMismatch, message)
        } else {
            no_function(name, types.iter().copied(), position)
        };
        is_known.then(|| Err(error.at(position as usize)))
    }

    /// Binds a call of a function of arrays.
    pub(in crate::bind) fn call_array(
        &mut self,
        (known, element): OfElements,
        arguments: Vec<Typed>,
        position: u32,
    ) -> Result<Typed> {
        let of = |shape: Shape| match shape {
            Shape::Array => DataType::Array(element),
            Shape::Element => element.data_type(),
            Shape::Is(data_type) => data_type,
        };
        self.check_collation(known.builtin.name, &arguments)?;
        let mut list = Vec::with_capacity(arguments.len() + 1);
        for (argument, shape) in arguments.into_iter().zip(known.arguments) {
            list.push(self.coerce(argument, of(*shape))?);
        }
        if known.takes_type {
            list.push(Expr::Constant(Value::Array(ArrayBuilder::new(element).finish(&[])?)));
        }
        let call = Expr::Call(Function(&known.builtin), list, TextPosition(position));
        Ok(self.folded(Typed::new(call, of(known.result), position)))
    }

    /// Binds an operator with an array on at least one side.
    pub(in crate::bind) fn array_operator(
        &mut self,
        symbol: &str,
        left: Typed,
        right: Typed,
        position: u32,
    ) -> Result<Typed> {
        let types = [left.data_type, right.data_type];
        match self.array_function(symbol, &types, position) {
            Some(Ok(found)) if matches!(symbol, "@>" | "<@" | "&&") => {
                let sides = vec![significant(left), significant(right)];
                self.call_array(found, sides, position)
            }
            Some(Ok(found)) => self.call_array(found, vec![left, right], position),
            _ => Err(no_operator(symbol, &types, position)),
        }
    }
}

/// Returns an array of CHAR without the blanks at the end of its elements.
fn significant(value: Typed) -> Typed {
    match value.data_type {
        Some(known) if is_padded_array(known) => {
            Typed { expr: Expr::Trimmed(Box::new(value.expr)), ..value }
        }
        _ => value,
    }
}
