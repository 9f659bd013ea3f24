//! Conditions that follow from equal columns.

use crate::expression::{ColumnRef, Comparison, Expr, Slots};

/// Returns the columns of an equality of two columns.
fn equal_columns(conjunct: &Expr) -> Option<[ColumnRef; 2]> {
    let Expr::Compare(Comparison::Equal, pair) = conjunct else { return None };
    let [Expr::Column(left), Expr::Column(right)] = &**pair else { return None };
    (left != right).then_some([*left, *right])
}

/// Adds the equalities of columns that follow from others: `a = c` from `a = b` and `b = c`. With
/// them any two of the tables can be joined first. `alike` tells whether equality of two columns is
/// transitive.
pub fn close_equalities(conjuncts: &mut Vec<Expr>, alike: &dyn Fn(&Expr, &Expr) -> bool) {
    let column = |at: ColumnRef| Expr::column(at.slot, at.column);
    let mut known: Vec<[ColumnRef; 2]> = Vec::new();
    let mut classes: Vec<Vec<ColumnRef>> = Vec::new();
    for [a, b] in conjuncts.iter().filter_map(equal_columns) {
        if !alike(&column(a), &column(b)) {
            continue;
        }
        known.push([a, b]);
        let with = |class: &Vec<ColumnRef>| class.contains(&a) || class.contains(&b);
        let mut class: Vec<ColumnRef> =
            classes.extract_if(.., |class| with(class)).flatten().collect();
        class.extend([a, b].into_iter().filter(|at| !class.contains(at)).collect::<Vec<_>>());
        classes.push(class);
    }
    for class in classes.iter().filter(|class| (3..=MOST_EQUAL).contains(&class.len())) {
        for (nth, a) in class.iter().enumerate() {
            for b in class.iter().skip(nth + 1) {
                if !known.contains(&[*a, *b]) && !known.contains(&[*b, *a]) {
                    let pair = Box::new([column(*a), column(*b)]);
                    conjuncts.push(Expr::Compare(Comparison::Equal, pair));
                }
            }
        }
    }
}

/// The most equal columns whose pairs are all added.
const MOST_EQUAL: usize = 12;

/// Equalities of columns, to tell conditions that other conditions imply.
pub struct KnownEqualities(Vec<[ColumnRef; 2]>);

impl KnownEqualities {
    pub fn of(conjuncts: &[Expr]) -> KnownEqualities {
        KnownEqualities(conjuncts.iter().filter_map(equal_columns).collect())
    }

    fn are_equal(&self, a: ColumnRef, b: ColumnRef) -> bool {
        a == b || self.0.contains(&[a, b]) || self.0.contains(&[b, a])
    }

    /// Whether a condition follows from conditions before it, for rows that satisfy the conditions
    /// that do not read the slots `own`: of `a = x` and `b = x`, where `x` is of those slots, the
    /// second follows if `a = b` is known.
    pub fn implies(&self, earlier: &[&Expr], conjunct: &Expr, own: &Slots) -> bool {
        let sides = |conjunct: &Expr| {
            let [a, b] = equal_columns(conjunct)?;
            match (own.contains(a.slot), own.contains(b.slot)) {
                (true, false) => Some([a, b]),
                (false, true) => Some([b, a]),
                _ => None,
            }
        };
        // Three equalities are needed.
        if self.0.len() < 3 {
            return false;
        }
        let Some([inner, outer]) = sides(conjunct) else { return false };
        earlier
            .iter()
            .filter_map(|known| sides(known))
            .any(|[other, known]| other == inner && self.are_equal(known, outer))
    }

    /// Removes conditions that others imply.
    pub fn without_implied(&self, conjuncts: Vec<Expr>, own: &Slots) -> Vec<Expr> {
        let mut kept: Vec<&Expr> = Vec::with_capacity(conjuncts.len());
        for conjunct in &conjuncts {
            if !self.implies(&kept, conjunct, own) {
                kept.push(conjunct);
            }
        }
        if kept.len() == conjuncts.len() {
            return conjuncts;
        }
        kept.into_iter().cloned().collect()
    }
}

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
                for nth in 0..conjuncts.len() + more.len() {
                    let later = || more.get(nth - conjuncts.len());
                    let conjunct = conjuncts.get(nth).or_else(later);
                    let Some(Expr::Compare(comparison, pair)) = conjunct else { continue };
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
