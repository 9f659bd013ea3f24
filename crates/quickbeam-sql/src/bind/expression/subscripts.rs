//! Subscripts and slices of arrays, subscripts of JSONB, and the fields after them.

use sqlparser::ast::{self, AccessExpr, Expr as Ast, Subscript};

use super::arrays::name_of;
use crate::bind::{Binder, Scope, Typed, fold, types};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Expr, Function, TextPosition, overloads};
use crate::types::{CastContext, DataType, ElementType, MAX_DIMENSIONS, Value, cast_context};

impl Binder<'_> {
    /// Binds subscripts and slices.
    pub(in crate::bind) fn subscripts(
        &mut self,
        root: &Ast,
        chain: &[AccessExpr],
        scope: &Scope,
    ) -> Result<Typed> {
        self.check_root(root, chain)?;
        // The parser takes the dot of a qualified column before a subscript for a field.
        let fields = chain.iter().map_while(|access| match access {
            AccessExpr::Dot(Ast::Identifier(field)) => Some(field.clone()),
            _ => None,
        });
        let fields: Vec<ast::Ident> = fields.collect();
        let (qualified, mut chain) = (&chain[..fields.len()], &chain[fields.len()..]);
        let mut root = match root {
            Ast::Identifier(name) if !qualified.is_empty() => {
                let names = std::iter::once(name.clone()).chain(fields).collect();
                self.expression(&Ast::CompoundIdentifier(names), scope)?.without_vector()
            }
            root => {
                let mut value = self.expression(root, scope)?;
                for field in &fields {
                    value = self.field(value, &fold(field))?;
                }
                value.without_vector()
            }
        };
        while let Some(first) = chain.first() {
            if let AccessExpr::Dot(Ast::Identifier(field)) = first {
                root = self.field(root, &fold(field))?.without_vector();
                chain = &chain[1..];
                continue;
            }
            let is_field = |access: &AccessExpr| matches!(access, AccessExpr::Dot(_));
            let length = chain.iter().position(is_field).unwrap_or(chain.len());
            let (subscripts, behind) = chain.split_at(length.max(1));
            root = match root.data_type {
                Some(DataType::Jsonb) => self.json_subscripts(root, subscripts, scope)?,
                _ => self.array_subscripts(root, subscripts, scope)?,
            };
            chain = behind;
        }
        Ok(root)
    }

    /// Refuses a subscript of a literal, a constructor or a call that is not in parentheses.
    fn check_root(&self, root: &Ast, chain: &[AccessExpr]) -> Result<()> {
        let is_bare = match root {
            Ast::Value(value) => !matches!(value.value, ast::Value::Placeholder(_)),
            root => matches!(root, Ast::Array(_) | Ast::Function(_)),
        };
        let index = chain.iter().find_map(|access| match access {
            AccessExpr::Subscript(Subscript::Index { index }) => Some(self.position(index)),
            AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, .. }) => {
                let bound = lower_bound.as_ref().or(upper_bound.as_ref());
                Some(bound.map_or(0, |bound| self.position(bound)))
            }
            _ => None,
        });
        match index.filter(|_| is_bare) {
            None => Ok(()),
            Some(index) => {
                let message = "syntax error at or near \"[\"";
                let place = (index as usize).saturating_sub(1);
                Err(SqlError::new(SqlState::SyntaxError, message).at(place))
            }
        }
    }

    /// Binds subscripts of a JSONB value, which are the steps of a path.
    fn json_subscripts(
        &mut self,
        root: Typed,
        chain: &[AccessExpr],
        scope: &Scope,
    ) -> Result<Typed> {
        let position = root.position;
        let steps = self.json_steps(chain, scope)?;
        let path = Expr::Array(ElementType::TEXT, steps, TextPosition(position));
        let wanted = [DataType::Jsonb, DataType::Array(ElementType::TEXT)];
        let found = overloads("#>").iter().find(|it| it.arguments == wanted);
        let builtin = found.ok_or_else(|| SqlError::internal("no function of paths of JSON"))?;
        let call = Expr::Call(Function(builtin), vec![root.expr, path], TextPosition(position));
        Ok(self.folded(Typed::new(call, DataType::Jsonb, position)))
    }

    /// Binds the subscripts of a JSONB value as texts.
    pub(in crate::bind) fn json_steps(
        &mut self,
        chain: &[AccessExpr],
        scope: &Scope,
    ) -> Result<Vec<Expr>> {
        let mut steps = Vec::with_capacity(chain.len());
        for access in chain {
            let AccessExpr::Subscript(Subscript::Index { index }) = access else {
                let message = "jsonb subscript does not support slices";
                return Err(SqlError::new(SqlState::DatatypeMismatch, message));
            };
            let step = self.expression(index, scope)?;
            let place = step.position as usize;
            let is_taken = |known: DataType| {
                known.is_text()
                    || cast_context(known, DataType::Integer) == Some(CastContext::Implicit)
            };
            if let Some(known) = step.data_type.filter(|known| !is_taken(*known)) {
                let message = format!("subscript type {known} is not supported");
                return Err(SqlError::new(SqlState::DatatypeMismatch, message)
                    .with_hint("jsonb subscript must be coercible to either integer or text.")
                    .at(place));
            }
            steps.push(self.cast_or_read(step, DataType::Text)?.expr);
        }
        Ok(steps)
    }

    fn array_subscripts(
        &mut self,
        root: Typed,
        chain: &[AccessExpr],
        scope: &Scope,
    ) -> Result<Typed> {
        let position = root.position;
        let at = |error: SqlError| error.at(position as usize);
        let Some(DataType::Array(element)) = root.data_type else {
            let name = name_of(root.data_type);
            let message =
                format!("cannot subscript type {name} because it does not support subscripting");
            return Err(at(SqlError::new(SqlState::DatatypeMismatch, message)));
        };
        let (is_slice, bounds) = self.subscript_bounds(chain, position, scope)?;
        let mut list = vec![Expr::Constant(Value::Boolean(is_slice)), root.expr];
        list.extend(bounds);
        let expr = Expr::Call(Function::SUBSCRIPTS, list, TextPosition(position));
        let result = if is_slice { DataType::Array(element) } else { element.data_type() };
        Ok(self.folded(Typed::new(expr, result, position)))
    }

    /// Binds the subscripts of an array. Returns whether they are those of a slice, and a subscript
    /// for each dimension, or two bounds for each. FALSE is a bound that is not written.
    pub(in crate::bind) fn subscript_bounds(
        &mut self,
        chain: &[AccessExpr],
        position: u32,
        scope: &Scope,
    ) -> Result<(bool, Vec<Expr>)> {
        let at = |error: SqlError| error.at(position as usize);
        if chain.len() > MAX_DIMENSIONS {
            return Err(at(crate::types::too_many_dimensions(chain.len())));
        }
        let is_slice = chain
            .iter()
            .any(|access| matches!(access, AccessExpr::Subscript(Subscript::Slice { .. })));
        let missing = || Expr::Constant(Value::Boolean(false));
        let mut list = Vec::with_capacity(chain.len() * 2);
        for access in chain {
            match access {
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    let index = self.subscript(index, scope)?;
                    // Beside a slice, a single subscript is an upper bound.
                    if is_slice {
                        list.push(Expr::Constant(Value::Integer(1)));
                    }
                    list.push(index);
                }
                AccessExpr::Subscript(Subscript::Slice {
                    lower_bound,
                    upper_bound,
                    stride: None,
                }) => {
                    for bound in [lower_bound, upper_bound] {
                        list.push(match bound {
                            Some(bound) => self.subscript(bound, scope)?,
                            None => missing(),
                        });
                    }
                }
                _ => return Err(at(SqlError::unsupported("this form of a subscript"))),
            }
        }
        Ok((is_slice, list))
    }

    pub(in crate::bind) fn subscript(&mut self, ast: &Ast, scope: &Scope) -> Result<Expr> {
        let bound = self.expression(ast, scope)?;
        match bound.data_type {
            Some(known) if !types::is_assignable(known, DataType::Integer) => {
                let message = "array subscript must have type integer";
                Err(SqlError::new(SqlState::DatatypeMismatch, message).at(bound.position as usize))
            }
            _ => self.coerce(bound, DataType::Integer),
        }
    }
}
