//! Implication: whether a condition that is true makes another one true.
//!
//! The proof is a sufficient one. What it does not know is not implied.

use super::{Comparison, Expr, Truth};
use crate::types::Value;

/// Returns whether a predicate, as conjuncts, is true of every row of which all of `known` are
/// true.
pub fn implies(known: &[Expr], predicate: &[Expr]) -> bool {
    let implied = |wanted: &Expr| known.iter().any(|known| implies_one(known, wanted));
    predicate.iter().all(|wanted| match wanted {
        Expr::Or(list) => list.iter().any(implied) || implied(wanted),
        wanted => implied(wanted),
    })
}

fn implies_one(known: &Expr, wanted: &Expr) -> bool {
    if known == wanted {
        return true;
    }
    match known {
        Expr::And(list) => return list.iter().any(|part| implies_one(part, wanted)),
        Expr::Or(list) => return list.iter().all(|part| implies_one(part, wanted)),
        Expr::InList(side, list, false) if list.iter().all(|it| it.as_constant().is_some()) => {
            return list.iter().all(|value| implies_one(&equal(side, value.clone()), wanted));
        }
        Expr::InSet(side, set, false) => {
            let mut values = set.iter().map(|value| Expr::Constant(value.clone()));
            return values.all(|value| implies_one(&equal(side, value), wanted));
        }
        _ => {}
    }
    match wanted {
        Expr::And(list) => list.iter().all(|part| implies_one(known, part)),
        Expr::Or(list) => list.iter().any(|part| implies_one(known, part)),
        Expr::IsNull(side, true) => is_null_rejecting(known, side),
        Expr::Compare(..) => {
            implies_comparison(known, wanted)
                || truth(known).is_some_and(|it| truth(wanted) == Some(it))
        }
        Expr::InList(side, list, false) => {
            list.iter().any(|value| implies_one(known, &equal(side, value.clone())))
        }
        Expr::InSet(side, set, false) => {
            let mut values = set.iter().map(|value| Expr::Constant(value.clone()));
            values.any(|value| implies_one(known, &equal(side, value)))
        }
        wanted => truth(wanted).is_some_and(|it| truth(known) == Some(it)),
    }
}

fn equal(side: &Expr, value: Expr) -> Expr {
    Expr::Compare(Comparison::Equal, Box::new([side.clone(), value]))
}

/// Returns the boolean expression that a condition asks for, and whether for true. `a`, `a = true`
/// and `a IS TRUE` ask for the same.
fn truth(condition: &Expr) -> Option<(&Expr, bool)> {
    match condition {
        Expr::Compare(Comparison::Equal, pair) => match &**pair {
            [side, Expr::Constant(Value::Boolean(value))]
            | [Expr::Constant(Value::Boolean(value)), side] => Some((side, *value)),
            _ => None,
        },
        Expr::IsTruth(side, Truth::True, false) => Some((side, true)),
        Expr::IsTruth(side, Truth::False, false) => Some((side, false)),
        Expr::Not(side) => Some((side, false)),
        Expr::Column(_) | Expr::Call(..) | Expr::Case(..) => Some((condition, true)),
        _ => None,
    }
}

/// Returns whether a condition is never true where `side` is NULL.
fn is_null_rejecting(condition: &Expr, side: &Expr) -> bool {
    if condition == side {
        return true;
    }
    match condition {
        Expr::Compare(_, pair) | Expr::Arithmetic(_, _, pair, _) => {
            pair.iter().any(|part| is_null_rejecting(part, side))
        }
        Expr::Like(part, ..)
        | Expr::InList(part, ..)
        | Expr::InSet(part, ..)
        | Expr::Cast(part, ..)
        | Expr::Trimmed(part)
        | Expr::Collate(part, _)
        | Expr::Negate(part, _)
        | Expr::Not(part)
        | Expr::IsTruth(part, Truth::True | Truth::False, false) => is_null_rejecting(part, side),
        Expr::CompareElements(_, pair, true) => is_null_rejecting(&pair[0], side),
        Expr::LikeAny(pair, ..) => pair.iter().any(|part| is_null_rejecting(part, side)),
        _ => false,
    }
}

/// Returns a comparison with a constant on the right.
fn with_constant(condition: &Expr) -> Option<(&Expr, Comparison, &Value)> {
    let Expr::Compare(comparison, pair) = condition else { return None };
    match &**pair {
        [side, Expr::Constant(value)] => Some((side, *comparison, value)),
        [Expr::Constant(value), side] => Some((side, comparison.flipped(), value)),
        _ => None,
    }
}

/// Returns whether one comparison with a constant implies another of the same side.
fn implies_comparison(known: &Expr, wanted: &Expr) -> bool {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    let Some((side, known, value)) = with_constant(known) else { return false };
    let Some((wanted_side, wanted, bound)) = with_constant(wanted) else { return false };
    if side != wanted_side || value.is_null() || bound.is_null() {
        return false;
    }
    let Some(order) = value.compare(bound) else { return false };
    match (known, wanted) {
        (Equal, wanted) => wanted.holds(order),
        (Less, Less | LessOrEqual) | (LessOrEqual, LessOrEqual) => order.is_le(),
        (LessOrEqual, Less) | (LessOrEqual, NotEqual) => order.is_lt(),
        (Less, NotEqual) => order.is_le(),
        (Greater, Greater | GreaterOrEqual) | (GreaterOrEqual, GreaterOrEqual) => order.is_ge(),
        (GreaterOrEqual, Greater) | (GreaterOrEqual, NotEqual) => order.is_gt(),
        (Greater, NotEqual) => order.is_ge(),
        (NotEqual, NotEqual) => order.is_eq(),
        _ => false,
    }
}
