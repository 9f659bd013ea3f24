//! Expressions: names, predicates, casts, CASE.

pub(super) mod argument_forms;
pub(super) mod arrays;
pub(super) mod enums;
pub(super) mod function_calls;
pub(super) mod intervals;
pub(super) mod literals;
pub(super) mod operators;
pub(super) mod overloads;
pub(super) mod pattern_quantifiers;
pub(super) mod subscripts;
pub(super) mod system_columns;
pub(super) mod system_types;

use std::sync::Arc;

use quickbeam::invariant;
use smol_str::SmolStr;
use sqlparser::ast::{
    self, BinaryOperator, CastKind, Expr as Ast, UnaryOperator, Value as Literal,
};

use self::literals::quoted;
use self::operators::{comparison, regrouped, trimmed};
use self::pattern_quantifiers::quantified_like;
use self::system_columns::SystemColumn;
use super::{Binder, Scope, Typed, fold, types};
use crate::bind::dml::insert::is_default;
use crate::bind::from::catalogs::plain_operator;
use crate::bind::query::row_calls::{RowFunctions, RowsRefused};
use crate::bind::query::subqueries::Quantifier;
use crate::bind::types::undefined::{many_operators, no_operator};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::LetterCase;
use crate::expression::{ColumnRef, Comparison, Expr, MAX_DEPTH, Pattern, TextPosition, Truth};
use crate::parse::{ALL_FIELDS, symmetric_bound};
use crate::types::{DataType, Value};

/// Whether a test is written with NOT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bind) enum Negation {
    /// `x IS NOT NULL`
    Not,
    /// `x IS NULL`
    Plain,
}

impl From<bool> for Negation {
    fn from(negated: bool) -> Negation {
        if negated { Negation::Not } else { Negation::Plain }
    }
}

/// Returns the sign, the place and the digits of a number in a statement.
fn signed_number(ast: &Ast) -> Option<(&'static str, &ast::ValueWithSpan, &str)> {
    match ast {
        Ast::Nested(inner) => signed_number(inner),
        Ast::Value(value) => match &value.value {
            Literal::Number(digits, _) => Some(("", value, digits)),
            _ => None,
        },
        Ast::UnaryOp { op: UnaryOperator::Minus, expr } => match signed_number(expr)? {
            ("", value, digits) => Some(("-", value, digits)),
            (_, value, digits) => Some(("", value, digits)),
        },
        _ => None,
    }
}

/// Returns what an operator such as `~~*` means as LIKE.
fn like_operator(op: &BinaryOperator) -> Option<(Negation, LetterCase)> {
    Some(match op {
        BinaryOperator::PGLikeMatch => (Negation::Plain, LetterCase::Kept),
        BinaryOperator::PGILikeMatch => (Negation::Plain, LetterCase::Ignored),
        BinaryOperator::PGNotLikeMatch => (Negation::Not, LetterCase::Kept),
        BinaryOperator::PGNotILikeMatch => (Negation::Not, LetterCase::Ignored),
        _ => return None,
    })
}

impl Typed {
    pub(super) fn new(expr: Expr, data_type: DataType, position: u32) -> Typed {
        Typed { expr, data_type: Some(data_type), position }
    }

    /// Casts a TIME to the INTERVAL since midnight, as PostgreSQL does for operators and aggregates
    /// that TIME does not have. Returns other values as they are.
    pub(super) fn time_as_interval(self) -> Typed {
        if self.data_type != Some(DataType::Time) {
            return self;
        }
        let place = TextPosition(self.position);
        let expr = self.expr.cast(self.data_type, DataType::Interval, place);
        Typed::new(expr, DataType::Interval, self.position)
    }

    pub(super) fn condition(expr: Expr, position: u32) -> Typed {
        Typed::new(expr, DataType::Boolean, position)
    }
}

impl Binder<'_> {
    /// Binds an expression. Its type has no precision of times: operators and functions take
    /// values of any precision.
    pub(super) fn expression(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed> {
        let bound = self.output_expression(ast, scope)?;
        let data_type = bound.data_type.map(DataType::without_time_precision);
        Ok(Typed { data_type, ..bound })
    }

    /// Binds an expression of an output column.
    pub(super) fn output_expression(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed> {
        // Parentheses do not count as nesting.
        let mut ast = ast;
        while let Ast::Nested(inner) = ast {
            ast = inner;
        }
        self.nested(|binder| binder.step(ast, scope))
    }

    fn step(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed> {
        invariant!(BIND_3, self.depth <= MAX_DEPTH, "{} levels", self.depth);
        if let Some(bound) = self.row_operation(ast, scope) {
            return bound.map_err(|error| self.at_operator(ast, error));
        }
        if self.is_of_key(ast) {
            return self.subquery_of_key(ast, scope);
        }
        self.step_alone(ast, scope).map_err(|error| self.at_operator(ast, error))
    }

    pub(super) fn step_alone(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed> {
        match ast {
            Ast::Value(value) => self.literal(&value.value, self.position(value)),
            Ast::Identifier(_) | Ast::CompoundIdentifier(_) => self.column(ast, scope),
            Ast::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
                self.connective(left, op, right, scope)
            }
            Ast::BinaryOp { left, op: op @ BinaryOperator::PGCustomBinaryOperator(_), right } => {
                let (op, left, right) = (plain_operator(op)?, left.clone(), right.clone());
                self.nested(|binder| binder.expression(&Ast::BinaryOp { left, op, right }, scope))
            }
            Ast::Collate { expr, collation } => self.collate(expr, collation, scope),
            Ast::BinaryOp { left, op, right } => {
                if let Some(regrouped) = regrouped(left, op, right) {
                    return self.nested(|binder| binder.expression(&regrouped, scope));
                }
                let position = self.position(&**left);
                if *op == BinaryOperator::Overlaps {
                    return self.overlaps(left, right, position, scope);
                }
                if let Some((negation, case)) = like_operator(op) {
                    return self.like(left, right, None, negation, case, scope);
                }
                if comparison(op).is_some()
                    && matches!(&**left, Ast::BinaryOp { op, .. } if comparison(op).is_some())
                {
                    return Err(self.in_a_row(op, right));
                }
                let left = self.expression(left, scope)?;
                let right = self.expression(right, scope)?;
                self.binary(left, op, right, position)
            }
            Ast::UnaryOp { op, expr } => self.unary(*op, expr, scope),
            Ast::IsNull(inner) => self.is_null(inner, Negation::Plain, scope),
            Ast::IsNotNull(inner) => self.is_null(inner, Negation::Not, scope),
            Ast::IsTrue(inner) => self.is_truth(inner, Truth::True, Negation::Plain, scope),
            Ast::IsNotTrue(inner) => self.is_truth(inner, Truth::True, Negation::Not, scope),
            Ast::IsFalse(inner) => self.is_truth(inner, Truth::False, Negation::Plain, scope),
            Ast::IsNotFalse(inner) => self.is_truth(inner, Truth::False, Negation::Not, scope),
            Ast::IsUnknown(inner) => self.is_truth(inner, Truth::Unknown, Negation::Plain, scope),
            Ast::IsNotUnknown(inner) => self.is_truth(inner, Truth::Unknown, Negation::Not, scope),
            Ast::IsDistinctFrom(a, b) => self.distinct(a, b, Negation::Plain, scope),
            Ast::IsNotDistinctFrom(a, b) => self.distinct(a, b, Negation::Not, scope),
            Ast::Between { expr, negated, low, high } => {
                self.between(expr, low, high, *negated, scope)
            }
            Ast::InList { expr, list, negated } => self.in_list(expr, list, *negated, scope),
            Ast::Like { .. } | Ast::ILike { .. } if let Some(call) = quantified_like(ast) => {
                self.quantified_pattern(&call, scope)
            }
            Ast::Like { negated, expr, pattern, escape_char, any: false } => self.like(
                expr,
                pattern,
                escape_char.as_deref(),
                Negation::from(*negated),
                LetterCase::Kept,
                scope,
            ),
            Ast::ILike { negated, expr, pattern, escape_char, any: false } => self.like(
                expr,
                pattern,
                escape_char.as_deref(),
                Negation::from(*negated),
                LetterCase::Ignored,
                scope,
            ),
            Ast::SimilarTo { negated, expr, pattern, escape_char } => {
                self.similar(expr, pattern, escape_char.as_deref(), *negated, scope)
            }
            Ast::Cast {
                expr,
                data_type,
                kind: CastKind::Cast | CastKind::DoubleColon,
                format: None,
            } => self.written_cast(expr, data_type, ast, scope),
            Ast::TypedString(typed) => {
                let target = self.data_type(&typed.data_type, ast)?;
                let inner = self.literal(&typed.value.value, self.position(&typed.value))?;
                self.cast_to_declared(inner, target)
            }
            Ast::Interval(interval) => self.interval(interval, scope),
            Ast::Array(array) => self.array(array, ast, scope),
            Ast::CompoundFieldAccess { root, access_chain } => {
                self.subscripts(root, access_chain, scope)
            }
            Ast::Case { operand, conditions, else_result, .. } => self
                .with_row_functions(RowFunctions::Refused(RowsRefused::Case), |binder| {
                    binder.case(operand.as_deref(), conditions, else_result.as_deref(), scope)
                }),
            Ast::Function(call) => self.call(call, scope),
            Ast::Tuple(list) => self.tuple(list, self.position(ast), scope),
            Ast::QualifiedWildcard(name, _) => self.whole_row_named(name, scope),
            Ast::Exists { subquery, negated } => self.exists(subquery, *negated, scope),
            Ast::Subquery(query) => self.scalar_subquery(query, scope),
            Ast::InSubquery { expr, subquery, negated } => {
                self.in_subquery(expr, subquery, *negated, scope)
            }
            Ast::AnyOp { left, compare_op, right, .. } => {
                self.quantified(left, compare_op, right, Quantifier::Any, scope)
            }
            Ast::AllOp { left, compare_op, right } => {
                self.quantified(left, compare_op, right, Quantifier::All, scope)
            }
            other => self.named_syntax(other, scope),
        }
    }

    /// Binds `CAST(expr AS type)` and `expr::type`. An array takes the type of its elements from
    /// the cast.
    fn written_cast(
        &mut self,
        expr: &Ast,
        data_type: &ast::DataType,
        ast: &Ast,
        scope: &Scope,
    ) -> Result<Typed> {
        let target = self.data_type(data_type, ast)?;
        if let (Ast::Array(array), DataType::Array(element)) = (expr, target.data_type) {
            let array = self.typed_array(array, element, ast, scope)?;
            return self.checked(array, target);
        }
        let inner = self.expression(expr, scope)?;
        self.cast_to_declared(inner, target)
    }

    /// Binds a cast. A quoted literal is read at once as the target type, even if it is never
    /// evaluated.
    pub(super) fn cast_or_read(&mut self, value: Typed, target: DataType) -> Result<Typed> {
        if value.data_type.is_none() && matches!(value.expr, Expr::Constant(_)) {
            let position = value.position;
            return Ok(Typed::new(self.coerce(value, target)?, target, position));
        }
        self.cast(value, target)
    }

    fn column(&mut self, ast: &Ast, scope: &Scope) -> Result<Typed> {
        let position = self.position(ast);
        if is_default(ast) {
            let message = "syntax error: DEFAULT is not allowed in this context";
            return Err(SqlError::new(SqlState::SyntaxError, message).at(position as usize));
        }
        let names: Vec<SmolStr> = match ast {
            Ast::Identifier(ident) => vec![fold(ident)],
            Ast::CompoundIdentifier(idents) => idents.iter().map(fold).collect(),
            _ => Vec::new(),
        };
        let found = match &names[..] {
            [name] => scope.resolve(None, name),
            [relation, name] => scope.resolve(Some(relation), name),
            [schema, relation, name] if self.names.has_schema(schema) => {
                scope.resolve(Some(relation), name)
            }
            _ => Err(SqlError::unsupported(format!("the name {ast}"))),
        };
        let is_missing = |error: &SqlError| {
            matches!(error.state(), SqlState::UndefinedColumn | SqlState::UndefinedTable)
        };
        let relation = match &found {
            Err(error) if is_missing(error) => match &names[..] {
                [before @ .., last] if last == ALL_FIELDS => Self::relation_named(
                    before.get(before.len().saturating_sub(1)..).unwrap_or_default(),
                    scope,
                ),
                names => Self::relation_named(names, scope),
            },
            _ => None,
        };
        let is_known = found.is_ok() || relation.is_some();
        if let Some(variable) = self.variable(&names, is_known, position)? {
            return Ok(variable);
        }
        if let Some(relation) = relation {
            return self.whole_row(relation, position);
        }
        if let (Err(error), Some((last, before))) = (&found, names.split_last())
            && error.state() == SqlState::UndefinedColumn
            && let Some(kind) = SystemColumn::named(last)
            && let Some(value) = self.system_column(kind, before.last(), scope, position)?
        {
            return Ok(value);
        }
        if let (Err(_), Ast::Identifier(ident)) = (&found, ast)
            && ident.quote_style.is_none()
            && let [name @ ("current_schema" | "current_role")] =
                names.iter().map(SmolStr::as_str).collect::<Vec<_>>()[..]
        {
            return self.function(name, Vec::new(), position);
        }
        if let (Err(error), Some((last, before))) = (&found, names.split_last())
            && error.state() == SqlState::UndefinedColumn
            && !before.is_empty()
            && let Some(relation) = Self::relation_named(before, scope)
        {
            let row = self.whole_row(relation, position)?;
            if let Some(called) = self.call_of_row(last, row, position)? {
                return Ok(called);
            }
        }
        let column = found.map_err(|error| error.at(position as usize))?;
        self.check_column(column.at).map_err(|error| error.at(position as usize))?;
        if let Ast::Identifier(name) = ast {
            self.note_column(name, column, scope);
        }
        self.note_named(column.at, position);
        self.note_collation(column);
        Ok(Typed::new(column.value(), column.data_type, position))
    }

    /// Notes a column that is named where aggregates are allowed.
    pub(super) fn note_named(&mut self, at: ColumnRef, position: u32) {
        let level = self.level_of(at.slot);
        if let Some(level) = self.levels.get_mut(level)
            && level.allows_aggregates
            && !level.in_aggregate
        {
            level.named.push((at, position));
        }
    }

    /// Binds AND and OR: a chain of one operator is one node, bound in a loop.
    fn connective(
        &mut self,
        left: &Ast,
        op: &BinaryOperator,
        right: &Ast,
        scope: &Scope,
    ) -> Result<Typed> {
        let mut parts = vec![right];
        let mut rest = left;
        loop {
            match rest {
                Ast::BinaryOp { left, op: inner, right } if inner == op => {
                    parts.push(right);
                    rest = left;
                }
                other => {
                    parts.push(other);
                    break;
                }
            }
        }
        let position = self.position(rest);
        let word = if *op == BinaryOperator::And { "AND" } else { "OR" };
        let mut bound = Vec::with_capacity(parts.len());
        for part in parts.into_iter().rev() {
            bound.push(self.condition(part, word, scope)?);
        }
        let whole = if *op == BinaryOperator::And { Expr::And(bound) } else { Expr::Or(bound) };
        Ok(Typed::condition(whole, position))
    }

    /// Binds a condition: an operand of that word, or the condition of that clause.
    pub(super) fn condition(&mut self, ast: &Ast, word: &str, scope: &Scope) -> Result<Expr> {
        let bound = self.expression(ast, scope)?;
        let (data_type, position) = (bound.data_type, bound.position as usize);
        match data_type {
            None | Some(DataType::Boolean) => self.coerce(bound, DataType::Boolean),
            Some(other) => {
                let message = format!("argument of {word} must be type boolean, not type {other}");
                Err(SqlError::new(SqlState::DatatypeMismatch, message).at(position))
            }
        }
    }

    fn unary(&mut self, op: UnaryOperator, inner: &Ast, scope: &Scope) -> Result<Typed> {
        if op == UnaryOperator::Not {
            let position = self.position(inner);
            let condition = self.condition(inner, "NOT", scope)?;
            return Ok(Typed::condition(Expr::Not(Box::new(condition)), position));
        }
        // Unary minus binds tighter than `^`; the parser has read it the other way round.
        if let (UnaryOperator::Minus, Ast::BinaryOp { left, op: BinaryOperator::PGExp, right }) =
            (op, inner)
        {
            let position = self.position(&**left);
            let base = self.nested(|binder| binder.unary(op, left, scope))?;
            let exponent = self.expression(right, scope)?;
            return self.binary(base, &BinaryOperator::PGExp, exponent, position);
        }
        // The least number of a type has no positive counterpart to negate.
        if op == UnaryOperator::Minus
            && let Some((sign, value, digits)) = signed_number(inner)
        {
            let sign = if sign == "-" { "" } else { "-" };
            let negated = Literal::Number(format!("{sign}{digits}"), false);
            return self.literal(&negated, self.position(value));
        }
        let bound = self.expression(inner, scope)?;
        let position = bound.position;
        if !matches!(op, UnaryOperator::Plus | UnaryOperator::Minus) {
            return self.operator(&op.to_string(), vec![bound], position);
        }
        let bound = match bound.data_type {
            None if matches!(bound.expr, Expr::Constant(_)) => {
                return Err(many_operators(&op.to_string(), &[None], position));
            }
            None => {
                let expr = self.coerce(bound, DataType::Double)?;
                Typed::new(expr, DataType::Double, position)
            }
            Some(_) => bound,
        };
        match (op, bound.data_type) {
            (UnaryOperator::Minus, Some(DataType::Interval | DataType::Time)) => {
                let span = bound.time_as_interval();
                self.operator("-", vec![span], position)
            }
            (UnaryOperator::Plus, Some(data_type)) if data_type.is_numeric() => Ok(bound),
            (UnaryOperator::Minus, Some(data_type)) if data_type.is_numeric() => {
                let expr = Expr::Negate(Box::new(bound.expr), TextPosition(position));
                Ok(self.folded(Typed::new(expr, data_type.unconstrained(), position)))
            }
            (op, data_type) => Err(no_operator(&op.to_string(), &[data_type], position)),
        }
    }

    fn is_null(&mut self, inner: &Ast, negation: Negation, scope: &Scope) -> Result<Typed> {
        if let Ast::Exists { subquery, negated: true } = inner {
            // NOT binds less than IS.
            let exists = Ast::Exists { subquery: subquery.clone(), negated: false };
            let tested = self.is_null(&exists, negation, scope)?;
            return Ok(Typed { expr: Expr::Not(Box::new(tested.expr)), ..tested });
        }
        let negated = negation == Negation::Not;
        let bound = self.expression(inner, scope)?;
        let position = bound.position;
        let inner = self.settle(bound)?;
        if inner.data_type.is_some_and(|known| known.record().is_some()) {
            return Ok(Self::is_null_record(inner, negated));
        }
        Ok(Typed::condition(Expr::IsNull(Box::new(inner.expr), negated), position))
    }

    fn is_truth(
        &mut self,
        inner: &Ast,
        truth: Truth,
        negation: Negation,
        scope: &Scope,
    ) -> Result<Typed> {
        let negated = negation == Negation::Not;
        let position = self.position(inner);
        let word = match (truth, negated) {
            (Truth::True, false) => "IS TRUE",
            (Truth::True, true) => "IS NOT TRUE",
            (Truth::False, false) => "IS FALSE",
            (Truth::False, true) => "IS NOT FALSE",
            (Truth::Unknown, false) => "IS UNKNOWN",
            (Truth::Unknown, true) => "IS NOT UNKNOWN",
        };
        let condition = self.condition(inner, word, scope)?;
        Ok(Typed::condition(Expr::IsTruth(Box::new(condition), truth, negated), position))
    }

    fn distinct(&mut self, a: &Ast, b: &Ast, negation: Negation, scope: &Scope) -> Result<Typed> {
        let negated = negation == Negation::Not;
        let (a, b) = (self.expression(a, scope)?, self.expression(b, scope)?);
        let position = a.position;
        let pair = self.comparable(a, b, "=", position)?;
        Ok(Typed::condition(Expr::Distinct(Box::new(pair), negated), position))
    }

    fn between(
        &mut self,
        inner: &Ast,
        low: &Ast,
        high: &Ast,
        negated: bool,
        scope: &Scope,
    ) -> Result<Typed> {
        let value = self.expression(inner, scope)?;
        let symmetric = symmetric_bound(low);
        let low = self.expression(symmetric.unwrap_or(low), scope)?;
        let high = self.expression(high, scope)?;
        let turned = symmetric.map(|_| (value.clone(), high.clone(), low.clone()));
        let position = value.position;
        let above = self.compare(Comparison::GreaterOrEqual, value.clone(), low, position)?;
        let below = self.compare(Comparison::LessOrEqual, value, high, position)?;
        let mut both = Expr::And(vec![above.expr, below.expr]);
        if let Some((value, low, high)) = turned {
            let above = self.compare(Comparison::GreaterOrEqual, value.clone(), low, position)?;
            let below = self.compare(Comparison::LessOrEqual, value, high, position)?;
            both = Expr::Or(vec![both, Expr::And(vec![above.expr, below.expr])]);
        }
        let expr = if negated { Expr::Not(Box::new(both)) } else { both };
        Ok(Typed::condition(expr, position))
    }

    fn in_list(
        &mut self,
        inner: &Ast,
        list: &[Ast],
        negated: bool,
        scope: &Scope,
    ) -> Result<Typed> {
        let value = self.expression(inner, scope)?;
        let position = value.position;
        let mut members = Vec::with_capacity(list.len());
        let reference = value.data_type.filter(|it| it.reference().is_some() && list.len() > 1);
        for member in list {
            let member = self.expression(member, scope)?;
            // Several names are those of objects, as the elements of an array are.
            members.push(match (reference, member.data_type) {
                (Some(to), None) => self.through_name(member, to)?,
                _ => member,
            });
        }
        let symbol = if negated { "<>" } else { "=" };
        // The common type of the list.
        let mut common = value.data_type;
        for member in &members {
            common = match (common, member.data_type) {
                (Some(a), Some(b)) if a.is_numeric() && b.is_numeric() => Some(a),
                (Some(a), Some(b)) => Some(
                    types::comparable(a, b)
                        .ok_or_else(|| no_operator(symbol, &[Some(a), Some(b)], position))?,
                ),
                (known, None) | (None, known) => known,
            };
        }
        // An untyped literal or parameter takes the list's type.
        let value = match (value.data_type, common) {
            (None, Some(common)) => {
                // Trailing blanks are not significant in comparison with a CHAR.
                let (common, expr) = match common {
                    DataType::Char(_) => {
                        let text = DataType::Varchar(None);
                        (text, Expr::Trimmed(Box::new(self.coerce(value, text)?)))
                    }
                    other => (other.unconstrained(), self.coerce(value, other.unconstrained())?),
                };
                self.folded(Typed::new(expr, common, position))
            }
            _ => value,
        };
        self.meet_in_floating_point(&value, &mut members)?;
        let value = self.under_common(value, &mut members)?;
        let mut left: Option<Expr> = None;
        let mut right = Vec::with_capacity(members.len());
        let is_mixed = members.windows(2).any(|pair| pair[0].data_type != pair[1].data_type);
        let kept = if is_mixed { members.clone() } else { Vec::new() };
        let mut is_uniform = true;
        for member in members {
            let [first, second] = self.comparable(value.clone(), member, "=", position)?;
            is_uniform &= left.as_ref().is_none_or(|left| *left == first);
            left = Some(first);
            right.push(second);
        }
        let Some(left) = left else {
            return Ok(Typed::condition(Expr::Constant(Value::Boolean(negated)), position));
        };
        if !is_uniform {
            return self.in_mixed_list(value, kept, negated);
        }
        let constants: Option<Vec<Value>> = right
            .iter()
            .map(|member| member.as_constant().filter(|value| !value.is_null()).cloned())
            .collect();
        let expr = match constants {
            Some(mut constants) if constants.len() > 4 => {
                constants.sort();
                constants.dedup();
                Expr::InSet(Box::new(left), Arc::new(constants), negated)
            }
            _ => Expr::InList(Box::new(left), right, negated),
        };
        Ok(Typed::condition(expr, position))
    }

    /// Binds IN of a list whose members compare with the value in different types.
    fn in_mixed_list(&mut self, value: Typed, members: Vec<Typed>, negated: bool) -> Result<Typed> {
        let position = value.position;
        let mut each = Vec::with_capacity(members.len());
        for member in members {
            let equal = self.compare(Comparison::Equal, value.clone(), member, position)?;
            each.push(equal.expr);
        }
        let any = Expr::Or(each);
        let expr = if negated { Expr::Not(Box::new(any)) } else { any };
        Ok(Typed::condition(expr, position))
    }

    /// Casts several members that read no column, and the value, to one floating-point type. Exact
    /// numbers compare equally in every exact type, so only floating point changes a result. A
    /// single such member is compared as it is.
    fn meet_in_floating_point(&mut self, value: &Typed, members: &mut [Typed]) -> Result<()> {
        let is_alone = |member: &Typed| member.expr.slots().is_empty();
        if members.iter().filter(|member| is_alone(member)).count() < 2 {
            return Ok(());
        }
        let types = members.iter().filter(|member| is_alone(member)).map(|member| member.data_type);
        let known = types.chain([value.data_type]).flatten().filter(|known| known.is_numeric());
        let common = known.map(Some).reduce(|a, b| types::common(a?, b?)).flatten();
        let Some(common @ (DataType::Real | DataType::Double)) = common else { return Ok(()) };
        let others = |member: &&mut Typed| {
            member.data_type.is_some_and(|own| own.is_numeric() && own != common)
                && is_alone(member)
        };
        for member in members.iter_mut().filter(others) {
            let position = member.position;
            let taken = std::mem::replace(
                member,
                Typed::new(Expr::Constant(Value::Null), common, position),
            );
            member.expr = self.coerce(taken, common)?;
        }
        Ok(())
    }

    fn like(
        &mut self,
        text: &Ast,
        pattern: &Ast,
        escape: Option<&Ast>,
        negation: Negation,
        case: LetterCase,
        scope: &Scope,
    ) -> Result<Typed> {
        let negated = negation == Negation::Not;
        let insensitive = case == LetterCase::Ignored;
        let text = self.expression(text, scope)?;
        let position = text.position;
        let mut pattern = self.expression(pattern, scope)?;
        let is_bytes = [&text, &pattern].iter().any(|it| it.data_type == Some(DataType::Bytea));
        let escape = match escape {
            None => Some('\\'),
            Some(Ast::Value(value)) if !is_bytes && value.value != Literal::Null => {
                let text = quoted(&value.value).unwrap_or_default();
                let mut characters = text.chars();
                match (characters.next(), characters.next()) {
                    (first, None) => first,
                    _ => {
                        let message = "invalid escape string: it must be empty or one character";
                        return Err(SqlError::new(SqlState::InvalidEscapeSequence, message));
                    }
                }
            }
            Some(computed) => {
                let escape = self.expression(computed, scope)?;
                pattern = self.builtin("like_escape", vec![pattern, escape], position)?;
                Some('\\')
            }
        };
        if is_bytes && !insensitive {
            let symbol = if negated { "not like of bytes" } else { "like of bytes" };
            return self.operator(symbol, vec![text, pattern], position);
        }
        let symbol = match (case, negation) {
            (LetterCase::Kept, Negation::Plain) => "~~",
            (LetterCase::Kept, Negation::Not) => "!~~",
            (LetterCase::Ignored, Negation::Plain) => "~~*",
            (LetterCase::Ignored, Negation::Not) => "!~~*",
        };
        let [text, pattern] = self.text_operands(symbol, text, pattern)?;
        let operands = [text, pattern];
        self.check_collation(symbol, &operands)?;
        let [text, pattern] = operands;
        let pattern = trimmed(pattern.expr, pattern.data_type, DataType::Text);
        let known = match &pattern {
            Expr::Constant(Value::Text(known)) => Some(Pattern::new(known, escape, case)),
            _ => None,
        };
        let expr = match known.filter(|pattern| !pattern.is_unfinished()) {
            Some(pattern) => Expr::Like(Box::new(text.expr), Arc::new(pattern), negated),
            None => Expr::LikeAny(Box::new([text.expr, pattern]), escape, insensitive, negated),
        };
        Ok(Typed::condition(expr, position))
    }

    /// Binds SIMILAR TO; the escape character is a backslash unless ESCAPE names another.
    fn similar(
        &mut self,
        value: &Ast,
        pattern: &Ast,
        escape: Option<&Ast>,
        negated: bool,
        scope: &Scope,
    ) -> Result<Typed> {
        let value = self.expression(value, scope)?;
        let position = value.position;
        let pattern = self.expression(pattern, scope)?;
        let escape = match escape {
            Some(escape) => self.expression(escape, scope)?,
            None => Typed::new(Expr::Constant(Value::text("\\")), DataType::Text, position),
        };
        let is = self.operator("similar to", vec![value, pattern, escape], position)?;
        let expr = if negated { Expr::Not(Box::new(is.expr)) } else { is.expr };
        Ok(self.folded(Typed::condition(expr, position)))
    }

    /// Binds the operands of a pattern operator, which must be texts. A CHAR keeps its trailing
    /// blanks.
    fn text_operands(&mut self, symbol: &str, text: Typed, pattern: Typed) -> Result<[Typed; 2]> {
        let types = [text.data_type, pattern.data_type];
        if types.iter().flatten().any(|known| !known.is_text()) {
            return Err(no_operator(symbol, &types, text.position));
        }
        Ok([self.settle(text)?, self.settle(pattern)?])
    }

    fn case(
        &mut self,
        operand: Option<&Ast>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&Ast>,
        scope: &Scope,
    ) -> Result<Typed> {
        let mut operand = operand.map(|operand| self.expression(operand, scope)).transpose()?;
        // An untyped literal is a text, even beside numbers.
        if let Some(Typed { expr: Expr::Constant(_), data_type: data_type @ None, .. }) =
            &mut operand
        {
            *data_type = Some(DataType::Text);
        }
        let (mut tests, mut results) = (Vec::new(), Vec::new());
        for branch in conditions {
            tests.push(match &operand {
                None => self.condition(&branch.condition, "CASE/WHEN", scope)?,
                Some(operand) => {
                    let value = self.expression(&branch.condition, scope)?;
                    let position = value.position;
                    self.compare(Comparison::Equal, operand.clone(), value, position)?.expr
                }
            });
            results.push(self.expression(&branch.result, scope)?);
        }
        match otherwise {
            Some(otherwise) => results.push(self.expression(otherwise, scope)?),
            None => {
                results.push(Typed {
                    expr: Expr::Constant(Value::Null),
                    data_type: None,
                    position: 0,
                });
            }
        }
        let position = results.first().map_or(0, |first| first.position);
        // The type of ELSE comes first.
        results.rotate_right(1);
        let (mut results, data_type) = self.unify(results, "CASE")?;
        results.rotate_left(1);
        let otherwise = results.pop().unwrap_or(Expr::Constant(Value::Null));
        let branches = tests.into_iter().zip(results).collect();
        Ok(Typed::new(Expr::Case(branches, Box::new(otherwise)), data_type, position))
    }
}
