//! Operators: resolves them by operand types and inserts casts.

use std::iter::successors;

use sqlparser::ast::{BinaryOperator, Expr as Ast, UnaryOperator};

use super::literals::clock_word;
use crate::bind::records::fields::check_row_cast;
use crate::bind::types::undefined::{many_operators, no_common_type, no_operator};
use crate::bind::{Binder, Typed, types};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{Arithmetic, Comparison, Expr, Frame, NumberKind, TextPosition, overloads};
use crate::types::{
    self as values, CastContext, DataType, ElementType, EncodedKind as K, SystemType, Value,
    without_blanks,
};

/// Returns the comparison of an operator.
pub(in crate::bind) fn comparison(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        // The comparisons of texts by their bytes are those of the collation that there is.
        BinaryOperator::Custom(symbol) => match &**symbol {
            "~<~" => Comparison::Less,
            "~<=~" => Comparison::LessOrEqual,
            "~>~" => Comparison::Greater,
            "~>=~" => Comparison::GreaterOrEqual,
            _ => return None,
        },
        _ => return None,
    })
}

/// Returns whether an operator matches a pattern. Such operators bind as strongly as `||`, but the
/// parser reads them as comparisons.
fn is_match(op: &BinaryOperator) -> bool {
    use BinaryOperator as Op;
    matches!(
        op,
        Op::PGRegexMatch
            | Op::PGRegexIMatch
            | Op::PGRegexNotMatch
            | Op::PGRegexNotIMatch
            | Op::PGLikeMatch
            | Op::PGILikeMatch
            | Op::PGNotLikeMatch
            | Op::PGNotILikeMatch
    )
}

/// Returns whether an operator binds as strongly as `||`.
fn is_like_concatenation(op: &BinaryOperator) -> bool {
    use BinaryOperator as Op;
    matches!(
        op,
        Op::StringConcat
            | Op::Arrow
            | Op::LongArrow
            | Op::HashArrow
            | Op::HashLongArrow
            | Op::AtArrow
            | Op::ArrowAt
            | Op::PGOverlap
            | Op::PGCustomBinaryOperator(_)
            | Op::Custom(_)
    )
}

/// Returns an operation as PostgreSQL groups it: `a ~ b || c` is `(a ~ b) || c`, `a = b ~ c` is
/// `a = (b ~ c)`, and `~ a + b` is `~ (a + b)`. Returns `None` if it is so already.
pub(in crate::bind) fn regrouped(left: &Ast, op: &BinaryOperator, right: &Ast) -> Option<Ast> {
    if matches!(op, BinaryOperator::Plus | BinaryOperator::Minus) {
        return regrouped_sum(left, op, right);
    }
    if !is_match(op) {
        return None;
    }
    let made = |left: &Ast, op: &BinaryOperator, right: Ast| Ast::BinaryOp {
        left: Box::new(left.clone()),
        op: op.clone(),
        right: Box::new(right),
    };
    match (left, right) {
        (_, Ast::BinaryOp { left: first, op: later, right: last })
            if is_like_concatenation(later) =>
        {
            let whole = regrouped(left, op, first);
            let whole = whole.unwrap_or_else(|| made(left, op, (**first).clone()));
            Some(made(&whole, later, (**last).clone()))
        }
        (Ast::BinaryOp { left: first, op: earlier, right: middle }, _)
            if comparison(earlier).is_some() =>
        {
            Some(made(first, earlier, made(middle, op, right.clone())))
        }
        _ => None,
    }
}

/// Returns whether the last operand of `ast` is one of a prefix operator `~`, `@` or `|/`. These
/// bind less than `+` and `-`.
fn ends_with_prefixed(ast: &Ast) -> bool {
    let mut rest = ast;
    loop {
        rest = match rest {
            Ast::BinaryOp { right, .. } => right,
            Ast::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => expr,
            Ast::UnaryOp { op, .. } => return *op != UnaryOperator::Not,
            _ => return false,
        };
    }
}

/// Appends `op right` to the sum `left`, below its last prefix operator.
fn append_to_sum(left: Ast, op: &BinaryOperator, right: &Ast) -> Ast {
    let has_prefix = ends_with_prefixed(&left);
    match left {
        Ast::UnaryOp { op: prefix, expr } if has_prefix => {
            Ast::UnaryOp { op: prefix, expr: Box::new(append_to_sum(*expr, op, right)) }
        }
        Ast::BinaryOp { left, op: earlier, right: last } if has_prefix => {
            let right = Box::new(append_to_sum(*last, op, right));
            Ast::BinaryOp { left, op: earlier, right }
        }
        left => {
            Ast::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right.clone()) }
        }
    }
}

/// Returns a sum with the terms after a prefix operator moved below it. Returns `None` if no term
/// follows one.
fn regrouped_sum(left: &Ast, op: &BinaryOperator, right: &Ast) -> Option<Ast> {
    /// Returns the last step of a sum.
    fn step(sum: &Ast) -> Option<(&Ast, &BinaryOperator, &Ast)> {
        match sum {
            Ast::BinaryOp {
                left,
                op: op @ (BinaryOperator::Plus | BinaryOperator::Minus),
                right,
            } => Some((left, op, right)),
            _ => None,
        }
    }
    let steps = successors(step(left), |(before, ..)| step(before));
    let first = steps.clone().last().map_or(left, |(first, ..)| first);
    if !ends_with_prefixed(first) && !steps.clone().any(|(.., term)| ends_with_prefixed(term)) {
        return None;
    }
    let mut terms = vec![(op, right)];
    terms.extend(steps.map(|(_, op, term)| (op, term)));
    let sum = first.clone();
    Some(terms.into_iter().rev().fold(sum, |sum, (op, term)| append_to_sum(sum, op, term)))
}

fn arithmetic(op: &BinaryOperator) -> Option<Arithmetic> {
    Some(match op {
        BinaryOperator::Plus => Arithmetic::Add,
        BinaryOperator::Minus => Arithmetic::Subtract,
        BinaryOperator::Multiply => Arithmetic::Multiply,
        BinaryOperator::Divide => Arithmetic::Divide,
        BinaryOperator::Modulo => Arithmetic::Remainder,
        _ => return None,
    })
}

/// Returns whether values of a type are arrays of CHAR, which compare without trailing blanks.
pub(in crate::bind) fn is_padded_array(data_type: DataType) -> bool {
    let element = |element: ElementType| matches!(element.data_type(), DataType::Char(_));
    matches!(data_type, DataType::Array(of) if element(of))
}

/// Removes the trailing blanks of a CHAR that becomes another type.
pub(in crate::bind) fn trimmed(expr: Expr, from: Option<DataType>, to: DataType) -> Expr {
    match from {
        Some(DataType::Char(_)) if !matches!(to, DataType::Char(_)) => {
            Expr::Trimmed(Box::new(expr))
        }
        _ => expr,
    }
}

impl Binder<'_> {
    /// Binds a binary operator.
    pub(in crate::bind) fn binary(
        &mut self,
        left: Typed,
        op: &BinaryOperator,
        right: Typed,
        position: u32,
    ) -> Result<Typed> {
        if let Some(comparison) = comparison(op) {
            if matches!(op, BinaryOperator::Custom(_)) {
                return self.compare_bytes(comparison, left, right, position);
            }
            return self.compare(comparison, left, right, position);
        }
        if let Some(operator) = arithmetic(op) {
            return self.calculate(operator, left, right, position);
        }
        let left = left.without_vector();
        let right = right.without_vector();
        let is_array = |side: &Typed| matches!(side.data_type, Some(DataType::Array(_)));
        let is_json =
            |side: &Typed| matches!(side.data_type, Some(DataType::Json | DataType::Jsonb));
        if (is_array(&left) || is_array(&right)) && !is_json(&left) {
            return self.array_operator(&op.to_string(), left, right, position);
        }
        if *op == BinaryOperator::StringConcat {
            return self.concatenate(left, right, position);
        }
        let symbol = op.to_string();
        if overloads(&symbol).is_empty() {
            return Err(no_operator(&symbol, &[left.data_type, right.data_type], position));
        }
        self.operator(&symbol, vec![left, right], position)
    }

    /// Binds `||`: BYTEA with BYTEA, or a text with any type. An untyped operand takes the type
    /// that the other side requires.
    pub(in crate::bind) fn concatenate(
        &mut self,
        left: Typed,
        right: Typed,
        position: u32,
    ) -> Result<Typed> {
        let types = [left.data_type, right.data_type];
        let is_json = |side: &Option<DataType>| *side == Some(DataType::Jsonb);
        if types.iter().any(is_json) && types.iter().all(|side| side.is_none() || is_json(side)) {
            return self.operator("||", vec![left, right], position);
        }
        let is_bytes = |side: &Option<DataType>| {
            matches!(side, Some(DataType::Bytea))
                || matches!(
                    side.and_then(DataType::encoded),
                    Some(K::Bit | K::Varbit | K::TsVector | K::TsQuery)
                )
        };
        if types.iter().any(is_bytes) && types.iter().all(|side| side.is_none() || is_bytes(side)) {
            return self.operator("||", vec![left, right], position);
        }
        if types.iter().any(|side| side.is_none_or(DataType::is_text)) {
            let mut side = |side: Typed| -> Result<Typed> {
                let position = side.position;
                Ok(Typed::new(self.as_text(side)?, DataType::Text, position))
            };
            let sides = vec![side(left)?, side(right)?];
            return self.operator("||", sides, position);
        }
        Err(no_operator("||", &types, position))
    }

    /// Converts a value of any type to text.
    pub(in crate::bind) fn as_text(&mut self, value: Typed) -> Result<Expr> {
        let value = self.through_name(value, DataType::Text)?;
        match value.data_type {
            Some(DataType::Char(_)) => Ok(Expr::Trimmed(Box::new(value.expr))),
            Some(data_type) if data_type.is_text() => Ok(value.expr),
            None => self.coerce(value, DataType::Text),
            Some(_) => {
                let place = TextPosition(value.position);
                Ok(value.expr.cast(value.data_type, DataType::Text, place))
            }
        }
    }

    /// Binds a comparison.
    pub(in crate::bind) fn compare(
        &mut self,
        comparison: Comparison,
        left: Typed,
        right: Typed,
        position: u32,
    ) -> Result<Typed> {
        let pair = self.comparable(left, right, comparison.symbol(), position)?;
        Ok(self.compared(comparison, pair, position))
    }

    /// Binds a comparison of texts by their bytes.
    fn compare_bytes(
        &mut self,
        comparison: Comparison,
        left: Typed,
        right: Typed,
        position: u32,
    ) -> Result<Typed> {
        let pair = self.comparable_types(left, right, comparison.symbol(), position)?;
        Ok(self.compared(comparison, pair, position))
    }

    /// Returns the comparison of two comparable values.
    fn compared(&self, comparison: Comparison, pair: [Expr; 2], position: u32) -> Typed {
        let compare = Expr::Compare(comparison, Box::new(pair));
        self.folded(Typed::condition(compare, position))
    }

    /// Casts two values to comparable types.
    pub(in crate::bind) fn comparable_types(
        &mut self,
        left: Typed,
        right: Typed,
        operator: &str,
        position: u32,
    ) -> Result<[Expr; 2]> {
        let (a, b) = match (left.data_type, right.data_type) {
            (None, None) => (DataType::Text, DataType::Text),
            // A comparison with a column does not apply the column's length limit.
            // The numbers of objects compare, and a literal is read as a number.
            (Some(known), None) | (None, Some(known)) if known.reference().is_some() => {
                (DataType::OID, DataType::OID)
            }
            // A literal beside a row is a row of any fields.
            (Some(known), None) if known.record().is_some() => (known, DataType::RECORD),
            (None, Some(known)) if known.record().is_some() => (DataType::RECORD, known),
            (Some(known), None) | (None, Some(known)) => {
                (known.unconstrained(), known.unconstrained())
            }
            (Some(a), Some(b)) => (a, b),
        };
        let blanks = |a: DataType| matches!(a, DataType::Char(_));
        // Trailing blanks are not significant beside VARCHAR, but they are beside TEXT.
        let of_blanks = [left.data_type, right.data_type]
            .iter()
            .all(|side| !matches!(side, Some(DataType::Text)));
        let unlike = || no_operator(operator, &[left.data_type, right.data_type], position);
        if a == DataType::Json || b == DataType::Json {
            return Err(unlike());
        }
        if let (Some(of_left), Some(of_right)) = (a.record(), b.record()) {
            self.check_comparable_rows(of_left, of_right, operator, position)?;
            if a != b {
                return Ok([self.coerce_unknown(left, a)?, self.coerce_unknown(right, b)?]);
            }
        }
        // The number of a transaction equals an integer, or does not.
        let is_number_of = |a, b| a == DataType::System(SystemType::Xid) && b == DataType::Integer;
        if (is_number_of(a, b) || is_number_of(b, a)) && matches!(operator, "=" | "<>") {
            return Ok([left, right].map(|side| {
                let place = TextPosition(side.position);
                match side.data_type {
                    Some(DataType::Integer) => {
                        side.expr.cast(Some(DataType::Integer), DataType::OID, place)
                    }
                    _ => side.expr,
                }
            }));
        }
        if blanks(a) || blanks(b) {
            if !(a.is_text() && b.is_text()) {
                return Err(unlike());
            }
            // Trailing blanks of a CHAR, and of a literal compared with one, are not significant.
            let mut side = |side: Typed| -> Result<Expr> {
                let trimmed = of_blanks || side.data_type.is_some_and(blanks);
                let expr = self.coerce(side, DataType::Text)?;
                Ok(match expr {
                    Expr::Constant(Value::Text(text)) if trimmed => {
                        Expr::Constant(Value::text(without_blanks(text.as_str())))
                    }
                    expr if trimmed => Expr::Trimmed(Box::new(expr)),
                    expr => expr,
                })
            };
            return Ok([side(left)?, side(right)?]);
        }
        if (a.is_numeric() && b.is_numeric()) || (a.is_text() && b.is_text()) {
            let plain = |data_type: DataType| {
                if data_type.is_text() { DataType::Text } else { data_type.unconstrained() }
            };
            let [left, right] = [left, right].map(|side| self.without_widening(side));
            return Ok([
                self.coerce_unknown(left, plain(a))?,
                self.coerce_unknown(right, plain(b))?,
            ]);
        }
        if is_padded_array(a) && is_padded_array(b) {
            let sides = [self.coerce(left, a)?, self.coerce(right, b)?];
            return Ok(sides.map(|side| Expr::Trimmed(Box::new(side))));
        }
        // Only arrays of one type compare.
        let are_arrays = matches!((a, b), (DataType::Array(_), DataType::Array(_)));
        let is_comparable = !are_arrays || a.unconstrained() == b.unconstrained();
        match types::comparable(a, b).filter(|_| is_comparable) {
            Some(common) => Ok([self.coerce(left, common)?, self.coerce(right, common)?]),
            None => Err(unlike()),
        }
    }

    /// Binds `+ - * / %`.
    pub(in crate::bind) fn calculate(
        &mut self,
        operator: Arithmetic,
        left: Typed,
        right: Typed,
        position: u32,
    ) -> Result<Typed> {
        let (a, b) = (left.data_type, right.data_type);
        let is_encoded = |side: Option<DataType>| matches!(side, Some(DataType::Encoded(_)));
        if a == Some(DataType::Jsonb) || is_encoded(a) || is_encoded(b) {
            return self.operator(operator.symbol(), vec![left, right], position);
        }
        let ambiguous = || Err(many_operators(operator.symbol(), &[a, b], position));
        let is_span = |side: Option<DataType>| side == Some(DataType::Interval);
        let is_moment = |side: Option<DataType>| {
            matches!(side, Some(DataType::Time | DataType::Timestamp | DataType::TimestampTz))
        };
        let is_date_and_time =
            [a, b].contains(&Some(DataType::Date)) && [a, b].contains(&Some(DataType::Time));
        if is_span(a) || is_span(b) || !is_date_and_time && (is_moment(a) || is_moment(b)) {
            return self.operator(operator.symbol(), vec![left, right], position);
        }
        let additive = matches!(operator, Arithmetic::Add | Arithmetic::Subtract);
        let kind = match (a, b) {
            (Some(DataType::Date), Some(DataType::Date)) if operator == Arithmetic::Subtract => {
                Some(NumberKind::DaysBetween)
            }
            (Some(DataType::Date), Some(days)) if additive && days.is_integer() => {
                Some(NumberKind::Days)
            }
            (Some(DataType::Date), Some(DataType::Time)) if additive => Some(NumberKind::DayTime),
            (Some(DataType::Time), Some(DataType::Date)) if operator == Arithmetic::Add => {
                return self.calculate(operator, right, left, position);
            }
            (Some(days), Some(DataType::Date))
                if operator == Arithmetic::Add && days.is_integer() =>
            {
                return self.calculate(operator, right, left, position);
            }
            (Some(DataType::Date), None) | (None, Some(DataType::Date))
                if operator == Arithmetic::Subtract =>
            {
                let day = DataType::Date;
                let [left, right] = [left, right].map(|side| {
                    let position = side.position;
                    self.coerce(side, day).map(|expr| Typed::new(expr, day, position))
                });
                return self.calculate(operator, left?, right?, position);
            }
            (Some(DataType::Date), None) | (None, Some(DataType::Date)) => return ambiguous(),
            (None, None) => match [&left.expr, &right.expr] {
                [Expr::Constant(_), Expr::Constant(_)] => return ambiguous(),
                // An untyped parameter is an integer here.
                _ => Some(NumberKind::Integer),
            },
            (Some(known), None) | (None, Some(known)) => NumberKind::of(known),
            (Some(a), Some(b)) => types::common_number(a, b).and_then(NumberKind::of),
        };
        // Floating point has no remainder operator.
        let kind = kind.filter(|kind| {
            operator != Arithmetic::Remainder
                || !matches!(kind, NumberKind::Real | NumberKind::Double)
        });
        let Some(kind) = kind else {
            return Err(no_operator(operator.symbol(), &[a, b], position));
        };
        let result = kind.data_type();
        let pair = match kind {
            NumberKind::Days | NumberKind::DaysBetween | NumberKind::DayTime => {
                [left.expr, right.expr]
            }
            _ => [self.coerce_unknown(left, result)?, self.coerce_unknown(right, result)?],
        };
        let expr = Expr::Arithmetic(operator, kind, Box::new(pair), TextPosition(position));
        Ok(self.folded(Typed::new(expr, result, position)))
    }

    /// Casts a value of unknown type; leaves any other value unchanged.
    fn coerce_unknown(&mut self, value: Typed, data_type: DataType) -> Result<Expr> {
        match value.data_type {
            None => self.coerce(value, data_type),
            Some(_) => Ok(value.expr),
        }
    }

    /// Casts the value to that type.
    pub(in crate::bind) fn coerce(&mut self, value: Typed, data_type: DataType) -> Result<Expr> {
        let value = self.through_name(value, data_type)?;
        let position = TextPosition(value.position);
        if let Some(moment) = clock_word(&value, data_type) {
            return Ok(moment);
        }
        match (value.data_type, value.expr) {
            (None, Expr::Parameter(number)) => {
                let known = &mut self.parameters[number];
                let taken = *known.get_or_insert(data_type.unconstrained());
                Ok(if taken.unconstrained() == data_type.unconstrained() {
                    Expr::Parameter(number)
                } else {
                    Expr::Parameter(number).cast(Some(taken), data_type, position)
                })
            }
            (None, Expr::Constant(Value::Null)) => Ok(Expr::Constant(Value::Null)),
            (None, Expr::Constant(Value::Text(text)))
                if values::has_clock_words(text.as_str(), data_type) =>
            {
                Ok(Expr::Constant(Value::Text(text)).cast(None, data_type, position))
            }
            (None, Expr::Constant(value)) => {
                let read = self.read_literal(value, data_type, CastContext::Explicit);
                read.map(Expr::Constant).map_err(|error| error.at(position.0 as usize))
            }
            (Some(from), expr) if data_type == DataType::RECORD && from.record().is_some() => {
                Ok(expr)
            }
            (Some(from), expr)
                if from.is_same_kind(data_type)
                    && (from == data_type
                        || !matches!(data_type, DataType::Char(_) | DataType::System(_))) =>
            {
                Ok(expr)
            }
            (from, expr) => {
                let expr = trimmed(expr, from, data_type);
                let typed = Typed::new(expr.cast(from, data_type, position), data_type, position.0);
                Ok(self.folded(typed).expr)
            }
        }
    }

    /// Gives the value a type: text unless it has one.
    pub(in crate::bind) fn settle(&mut self, value: Typed) -> Result<Typed> {
        match value.data_type {
            Some(_) => Ok(value),
            None => {
                let position = value.position;
                Ok(Typed::new(self.coerce(value, DataType::Text)?, DataType::Text, position))
            }
        }
    }

    /// Casts the values to their common type.
    pub(in crate::bind) fn unify(
        &mut self,
        list: Vec<Typed>,
        what: &str,
    ) -> Result<(Vec<Expr>, DataType)> {
        let mut common: Option<DataType> = None;
        for value in &list {
            common = match (common, value.data_type) {
                (Some(a), Some(b)) => Some(types::common(a, b).ok_or_else(|| {
                    let [a, b] = [a, b].map(DataType::unconstrained);
                    no_common_type(what, a, b).at(value.position as usize)
                })?),
                (known, None) | (None, known) => known,
            };
        }
        let mut common = common.unwrap_or(DataType::Text);
        let says_something = |value: &Typed| !matches!(value.expr, Expr::Constant(Value::Null));
        if list.iter().any(|value| value.data_type.is_none() && says_something(value)) {
            common = types::beside_literal(common);
        }
        let exprs: Result<Vec<Expr>> =
            list.into_iter().map(|value| self.coerce(value, common)).collect();
        Ok((exprs?, common))
    }

    /// Binds an explicit cast.
    pub(in crate::bind) fn cast(&mut self, value: Typed, data_type: DataType) -> Result<Typed> {
        let position = value.position;
        if let Some(from) = value.data_type
            && !types::is_castable(from, data_type)
        {
            let message = format!("cannot cast type {from} to {data_type}");
            return Err(SqlError::new(SqlState::CannotCoerce, message).at(position as usize));
        }
        check_row_cast(&value, data_type, CastContext::Explicit)?;
        let value = self.through_name(value, data_type)?;
        if value.data_type == Some(data_type) {
            return Ok(value);
        }
        const SINGLE: DataType = DataType::System(SystemType::SingleChar);
        match (value.data_type, data_type) {
            (Some(SINGLE), DataType::Integer) => {
                return self.builtin("ascii", vec![value], position);
            }
            (Some(DataType::Integer), SINGLE) => {
                let byte = self.builtin("chr", vec![value], position)?;
                let expr = byte.expr.cast(byte.data_type, SINGLE, TextPosition(position));
                return Ok(self.folded(Typed::new(expr, SINGLE, position)));
            }
            _ => {}
        }
        if let (None, Expr::Parameter(_)) = (value.data_type, &value.expr) {
            let mut expr = self.coerce(value, data_type)?;
            // The parameter itself has no length or precision.
            if data_type != data_type.unconstrained() && !matches!(expr, Expr::Cast(..)) {
                let from = Some(data_type.unconstrained());
                expr = expr.cast(from, data_type, TextPosition(position));
            }
            return Ok(Typed::new(expr, data_type, position));
        }
        if let Some(moment) = clock_word(&value, data_type) {
            return Ok(Typed::new(moment, data_type, position));
        }
        if let (None, Expr::Constant(literal)) = (value.data_type, &value.expr)
            && let Ok(read) = self.read_literal(literal.clone(), data_type, CastContext::Explicit)
        {
            return Ok(Typed::new(Expr::Constant(read), data_type, position));
        }
        let expr = trimmed(value.expr, value.data_type, data_type);
        let expr = expr.cast(value.data_type, data_type, TextPosition(position));
        Ok(self.folded(Typed::new(expr, data_type, position)))
    }

    /// Casts the value for assignment to a column of that type.
    pub(in crate::bind) fn assign(
        &mut self,
        value: Typed,
        data_type: DataType,
        column: &str,
    ) -> Result<Expr> {
        let position = TextPosition(value.position);
        if let Some(from) = value.data_type
            && !types::is_assignable(from, data_type)
        {
            let message = format!(
                "column \"{column}\" is of type {data_type} but expression is of type {from}"
            );
            return Err(SqlError::new(SqlState::DatatypeMismatch, message)
                .with_hint("You will need to rewrite or cast the expression.")
                .at(value.position as usize));
        }
        check_row_cast(&value, data_type, CastContext::Assignment)?;
        let value = self.through_name(value, data_type)?;
        if let Some(moment) = clock_word(&value, data_type) {
            return Ok(moment);
        }
        let unlimited = data_type.unconstrained() == data_type
            && !matches!(data_type, DataType::Char(_) | DataType::System(_));
        let from = value.data_type;
        let exact = from == Some(data_type);
        let expr = match (value.data_type, &value.expr) {
            (None, Expr::Parameter(_)) => self.coerce(value, data_type)?,
            // A literal is converted with the errors of assignment.
            _ => trimmed(value.expr, value.data_type, data_type),
        };
        if exact
            || (unlimited
                && matches!(expr, Expr::Parameter(number) if self.parameters.get(number) == Some(&Some(data_type))))
        {
            return Ok(expr);
        }
        if let (None, Expr::Constant(Value::Text(text))) = (from, &expr)
            && values::has_clock_words(text.as_str(), data_type)
        {
            return Ok(expr.assigned(None, data_type, position));
        }
        if let (None, Expr::Constant(value)) = (from, &expr) {
            let read = self.read_literal(value.clone(), data_type, CastContext::Assignment);
            return read.map(Expr::Constant).map_err(|error| error.at(position.0 as usize));
        }
        // A parameter has taken the type of the column.
        let from = from.or(Some(data_type.unconstrained()));
        let typed = Typed::new(expr.assigned(from, data_type, position), data_type, position.0);
        Ok(self.folded(typed).expr)
    }

    /// Folds an expression of constants. One that fails is kept, because it may never be evaluated.
    pub(in crate::bind) fn folded(&self, typed: Typed) -> Typed {
        let mut constants = true;
        typed.expr.each_child(&mut |child| constants &= matches!(child, Expr::Constant(_)));
        if !constants || !typed.expr.is_constant() {
            return typed;
        }
        let value = typed.expr.evaluate(&Frame::of_parameters(&[])).map(|datum| datum.into_value());
        match value {
            Ok(value) => Typed { expr: Expr::Constant(value), ..typed },
            Err(_) => typed,
        }
    }
}
