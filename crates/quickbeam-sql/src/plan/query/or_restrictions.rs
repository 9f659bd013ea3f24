//! Restrictions that follow from an OR over several items of FROM.
//!
//! `(a.x = 1 AND b.y = 2) OR (a.x = 3 AND b.y = 4)` can be checked on joined rows only. It implies
//! `a.x = 1 OR a.x = 3` and `b.y = 2 OR b.y = 4`, which restrict each item before the join.

use crate::expression::{Expr, Slots};

/// Returns the restrictions of an item that the conditions imply. The conditions stay as they are.
pub(super) fn implied_by_or(conjuncts: &[Expr], own: &Slots, outside: &Slots) -> Vec<Expr> {
    let mut found = Vec::new();
    let known = own | outside;
    for conjunct in conjuncts {
        let Expr::Or(branches) = conjunct else { continue };
        let slots = conjunct.slots();
        if slots.is_within(&known) || !slots.meets(own) || conjunct.is_volatile() {
            continue;
        }
        let restrictions: Option<Vec<Expr>> =
            branches.iter().map(|branch| restriction(branch, own, &known)).collect();
        if let Some(restriction) = restrictions.map(Expr::Or)
            && !found.contains(&restriction)
        {
            found.push(restriction);
        }
    }
    found
}

/// Returns what a branch says about the item alone.
fn restriction(branch: &Expr, own: &Slots, known: &Slots) -> Option<Expr> {
    let mut parts = Vec::new();
    branch.clone().into_conjuncts(&mut parts);
    parts.retain(|part| {
        let slots = part.slots();
        slots.meets(own) && slots.is_within(known)
    });
    Expr::all(parts)
}
