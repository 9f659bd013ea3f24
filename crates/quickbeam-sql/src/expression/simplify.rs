//! Constant folding: evaluates before any row is read all that constants determine.
//!
//! The rules are those of PostgreSQL's planner, because they are observable: a folded expression is
//! not evaluated, so it raises no error and advances no sequence.

use super::{Expr, Frame, Function};
use crate::types::Value;

const NULL: Expr = Expr::Constant(Value::Null);

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(Value::Null))
}

fn truth(value: bool) -> Expr {
    Expr::Constant(Value::Boolean(value))
}

/// Returns the truth value of a constant, or `None` if the expression is not a constant.
fn known(expr: &Expr) -> Option<Option<bool>> {
    match expr {
        Expr::Constant(Value::Boolean(value)) => Some(Some(*value)),
        Expr::Constant(Value::Null) => Some(None),
        _ => None,
    }
}

impl Expr {
    /// Simplifies an expression whose value is needed.
    pub fn simplify(&mut self) {
        self.each_child_mut(&mut Expr::simplify);
        let simpler = match &mut *self {
            Expr::And(list) => connected(list, Connective::And),
            Expr::Or(list) => connected(list, Connective::Or),
            Expr::Not(inner) => match &mut **inner {
                Expr::Not(inner) => Some(std::mem::replace(&mut **inner, NULL)),
                inner => known(inner).map(|value| value.map_or(NULL, |value| truth(!value))),
            },
            Expr::Case(branches, otherwise) => {
                reach(branches, otherwise);
                branches.is_empty().then(|| std::mem::replace(&mut **otherwise, NULL))
            }
            Expr::Call(function, list, _) if *function == Function::COALESCE => {
                list.retain(|value| !is_null(value));
                match &list[..] {
                    [] => Some(NULL),
                    [first, ..] if list.len() == 1 || first.as_constant().is_some() => {
                        Some(list.swap_remove(0))
                    }
                    _ => None,
                }
            }
            other => other.of_null().or_else(|| other.of_constants()),
        };
        if let Some(simpler) = simpler {
            *self = simpler;
        }
    }

    /// Simplifies a condition for which NULL is equivalent to false.
    pub fn simplify_condition(&mut self) {
        self.simplify();
        self.qualify();
    }

    fn qualify(&mut self) {
        if let Expr::Not(inner) = self {
            let negated = |list: &mut Vec<Expr>| {
                let parts = std::mem::take(list).into_iter();
                parts.map(|part| Expr::Not(Box::new(part))).collect::<Vec<_>>()
            };
            let moved = match &mut **inner {
                Expr::And(list) => Some(Expr::Or(negated(list))),
                Expr::Or(list) => Some(Expr::And(negated(list))),
                _ => None,
            };
            if let Some(mut moved) = moved {
                moved.simplify();
                *self = moved;
            }
        }
        match self {
            Expr::And(list) | Expr::Or(list) => list.iter_mut().for_each(Expr::qualify),
            _ => {}
        }
        match self {
            Expr::And(list) => {
                *self = connected(list, Connective::And).unwrap_or_else(|| taken(self));
            }
            Expr::Or(list) => {
                *self = connected(list, Connective::Or).unwrap_or_else(|| taken(self));
            }
            _ if is_null(self) => *self = truth(false),
            _ => {}
        }
    }

    /// Returns NULL if a strict operator has a NULL operand.
    fn of_null(&self) -> Option<Expr> {
        let null = match self {
            Expr::Cast(a, ..)
            | Expr::Assign(a, ..)
            | Expr::Trimmed(a)
            | Expr::Collate(a, _)
            | Expr::Negate(a, _)
            | Expr::InSet(a, ..)
            | Expr::Like(a, ..) => is_null(a),
            // PostgreSQL treats a list of one member as a comparison.
            Expr::InList(a, list, _) => is_null(a) || matches!(&list[..], [one] if is_null(one)),
            // A NULL on the left side decides only if the array has elements.
            Expr::CompareElements(_, pair, _) => is_null(&pair[1]),
            Expr::Compare(_, pair) | Expr::Arithmetic(_, _, pair, _) | Expr::LikeAny(pair, ..) => {
                pair.iter().any(is_null)
            }
            Expr::Call(function, list, _) => function.is_strict() && list.iter().any(is_null),
            _ => false,
        };
        null.then_some(NULL)
    }

    /// Returns the value of a constant expression. One that fails is kept, because it may never be
    /// evaluated.
    fn of_constants(&self) -> Option<Expr> {
        if matches!(self, Expr::Constant(_)) {
            return None;
        }
        let mut constants = self.is_constant();
        self.each_child(&mut |child| constants &= child.as_constant().is_some());
        if !constants {
            return None;
        }
        let value = self.evaluate(&Frame::of_parameters(&[])).ok()?;
        Some(Expr::Constant(value.into_value()))
    }
}

fn taken(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, NULL)
}

/// What connects conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connective {
    And,
    Or,
}

/// Simplifies the operands of AND or OR.
fn connected(list: &mut Vec<Expr>, connective: Connective) -> Option<Expr> {
    // The truth value that determines the result by itself.
    let decisive = connective == Connective::Or;
    if list.iter().any(|part| known(part) == Some(Some(decisive))) {
        return Some(truth(decisive));
    }
    list.retain(|part| known(part) != Some(Some(!decisive)));
    let mut seen = false;
    list.retain(|part| !is_null(part) || !std::mem::replace(&mut seen, true));
    match list.len() {
        0 => Some(truth(!decisive)),
        1 => list.pop(),
        _ => None,
    }
}

/// Removes the branches of a CASE that are never reached.
fn reach(branches: &mut Vec<(Expr, Expr)>, otherwise: &mut Expr) {
    branches.retain(|(condition, _)| !matches!(known(condition), Some(Some(false) | None)));
    let always = branches.iter().position(|(condition, _)| known(condition) == Some(Some(true)));
    if let Some(always) = always {
        let rest = branches.split_off(always);
        if let Some((_, result)) = rest.into_iter().next() {
            *otherwise = result;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::{Arithmetic, Comparison, NumberKind, TextPosition};

    fn number(value: i32) -> Expr {
        Expr::Constant(Value::Integer(value))
    }

    /// `1 / column`, which fails where the column is 0.
    fn risky() -> Expr {
        let pair = Box::new([number(1), Expr::column(0, 0)]);
        Expr::Arithmetic(Arithmetic::Divide, NumberKind::Integer, pair, TextPosition(0))
    }

    fn greater(left: Expr, right: Expr) -> Expr {
        Expr::Compare(Comparison::Greater, Box::new([left, right]))
    }

    fn simplified(mut expr: Expr) -> Expr {
        expr.simplify();
        expr
    }

    fn condition(mut expr: Expr) -> Expr {
        expr.simplify_condition();
        expr
    }

    #[test]
    fn a_null_operand_makes_a_strict_operator_null() {
        assert_eq!(simplified(greater(risky(), NULL)), NULL);
        assert_eq!(simplified(Expr::Negate(Box::new(NULL), TextPosition(0))), NULL);
        let call = |function| Expr::Call(function, vec![risky(), NULL], TextPosition(0));
        let power = crate::expression::overloads("power")[0];
        assert_eq!(simplified(call(Function(power))), NULL);
        assert_eq!(simplified(call(Function::GREATEST)), call(Function::GREATEST));
        assert_eq!(simplified(call(Function::COALESCE)), risky());
        let fails = greater(risky(), number(1));
        assert_eq!(simplified(fails.clone()), fails);
    }

    #[test]
    fn a_condition_that_is_null_is_false() {
        let (open, null) = (greater(risky(), number(1)), greater(risky(), NULL));
        let both = Expr::And(vec![open.clone(), null.clone()]);
        assert_eq!(condition(both.clone()), truth(false));
        assert_eq!(simplified(both.clone()), Expr::And(vec![open.clone(), NULL]));
        assert_eq!(condition(Expr::Or(vec![null, open.clone()])), open);
        let not = |expr| Expr::Not(Box::new(expr));
        assert_eq!(condition(not(both.clone())), not(open.clone()));
        assert_eq!(condition(not(not(both))), truth(false));
        assert_eq!(condition(Expr::Or(vec![open, truth(true)])), truth(true));
    }

    #[test]
    fn branches_that_are_not_reached_go() {
        let case = |condition: Expr| Expr::Case(vec![(condition, risky())], Box::new(number(2)));
        assert_eq!(simplified(case(truth(false))), number(2));
        assert_eq!(simplified(case(NULL)), number(2));
        assert_eq!(simplified(case(truth(true))), risky());
    }
}
