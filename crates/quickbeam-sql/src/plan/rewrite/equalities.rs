//! Conditions that follow from equal columns.

use crate::expression::{Comparison, Expr};

/// Infers conditions from equal columns: a comparison of one with a constant holds for the other.
pub fn infer_equalities(conjuncts: &mut Vec<Expr>) {
    let mut equal = Vec::new();
    for conjunct in conjuncts.iter() {
        if let Expr::Compare(Comparison::Equal, pair) = conjunct
            && let [a @ Expr::Column(x), b @ Expr::Column(y)] = &**pair
            && x.slot != y.slot
        {
            equal.push((a.clone(), b.clone()));
        }
    }
    let mut more = Vec::new();
    for _ in 0..equal.len().min(8) {
        let before = more.len();
        for (a, b) in &equal {
            for (from, to) in [(a, b), (b, a)] {
                for conjunct in conjuncts.iter().chain(&more).cloned().collect::<Vec<_>>() {
                    let Expr::Compare(comparison, pair) = &conjunct else { continue };
                    let [left, right] = &**pair;
                    let inferred = if left == from && is_given(right) {
                        [to.clone(), right.clone()]
                    } else if right == from && is_given(left) {
                        [left.clone(), to.clone()]
                    } else {
                        continue;
                    };
                    let inferred = Expr::Compare(*comparison, Box::new(inferred));
                    if !conjuncts.contains(&inferred) && !more.contains(&inferred) {
                        more.push(inferred);
                    }
                }
            }
        }
        if more.len() == before {
            break;
        }
    }
    conjuncts.extend(more);
}

fn is_given(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(_) | Expr::Parameter(_))
}
