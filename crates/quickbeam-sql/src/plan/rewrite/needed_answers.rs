//! The conditions under which answers of subqueries are needed.
//!
//! As in PostgreSQL, a subquery is evaluated for the rows alone whose expression reads its answer.
//! In branches of CASE, later arguments of COALESCE, and later operands of AND and OR, the
//! conditions before it decide that.
//!
//! - NEED-1: an answer without a condition is computed for every row (by type)

use std::cell::RefCell;
use std::collections::HashMap;

use crate::bind::{Query, QueryPart, Subquery};
use crate::expression::{Expr, Function, Slots, Truth};
use crate::types::Value;

/// What decides whether an operand is evaluated.
#[derive(Clone, Copy)]
enum Guard<'e> {
    /// A result of CASE: the conditions of the branches but the last are not true, the last is.
    Taken(&'e [(Expr, Expr)]),
    /// A later condition of CASE or its ELSE: the conditions of the branches are not true.
    Passed(&'e [(Expr, Expr)]),
    /// An argument of COALESCE: those before it are NULL.
    Null(&'e [Expr]),
    /// An operand of AND: those before it are not false.
    NotFalse(&'e [Expr]),
    /// An operand of OR: those before it are not true.
    NotTrue(&'e [Expr]),
}

/// When an answer is needed.
#[derive(Clone, Debug)]
enum Need {
    /// For every row.
    Always,
    /// If one of the conditions is true. One that fails is not true: the expression that it is
    /// taken from fails before it reads the answer.
    If(Vec<Expr>),
}

impl Need {
    fn reads(&self, slot: usize) -> bool {
        match self {
            Need::Always => false,
            Need::If(conditions) => conditions.iter().any(|it| it.slots().contains(slot)),
        }
    }
}

/// The conditions under which answers are needed, by the slot of the answer.
#[derive(Debug, Default)]
pub struct NeededAnswers(RefCell<HashMap<usize, Vec<Expr>>>);

impl NeededAnswers {
    /// Notes the conditions of the subqueries of a query.
    pub fn note_query(&self, query: &Query, subqueries: &[&Subquery]) {
        let mut expressions = Vec::new();
        let is_value = |expr: &Expr| {
            let values = subqueries.iter().filter_map(|subquery| subquery.kind.value());
            values.into_iter().any(|value| std::ptr::eq(value, expr))
        };
        query.each_part(&mut |part| match part {
            QueryPart::Expr(expr) if !is_value(expr) => expressions.push(expr),
            _ => {}
        });
        self.note(subqueries, expressions.into_iter());
    }

    /// Notes the conditions of subqueries whose answers are read by `expressions` and by one
    /// another alone.
    pub fn note<'e>(&self, subqueries: &[&Subquery], expressions: impl Iterator<Item = &'e Expr>) {
        let answers: Slots = subqueries.iter().map(|subquery| subquery.slot).collect();
        let mut walk = Walk { answers: &answers, path: Vec::new(), needs: HashMap::new() };
        expressions.for_each(|expr| walk.visit(expr));
        let mut needs = walk.needs;
        for subquery in subqueries.iter().rev() {
            let need = needs.get(&subquery.slot).cloned().unwrap_or(Need::Always);
            for read in subquery.reads.iter().filter(|slot| answers.contains(*slot)) {
                join(&mut needs, read, need.clone());
            }
        }
        let mut noted = self.0.borrow_mut();
        for subquery in subqueries {
            match needs.remove(&subquery.slot) {
                Some(Need::If(conditions)) => noted.insert(subquery.slot, conditions),
                Some(Need::Always) | None => noted.remove(&subquery.slot),
            };
        }
    }

    /// Returns the conditions of an answer, of which one must be true. Returns none if it is needed
    /// for every row, or if one of the conditions reads other slots than those in `known`.
    pub fn of(&self, slot: usize, known: &Slots) -> Vec<Expr> {
        let noted = self.0.borrow();
        let conditions = noted.get(&slot).map_or(&[][..], |conditions| &conditions[..]);
        match conditions.iter().all(|condition| condition.slots().is_within(known)) {
            true => conditions.to_vec(),
            false => Vec::new(),
        }
    }

    /// Returns whether a condition of an answer reads one of the slots.
    pub fn reads(&self, slot: usize, slots: &Slots) -> bool {
        let noted = self.0.borrow();
        let mut conditions = noted.get(&slot).into_iter().flatten();
        conditions.any(|condition| condition.slots().meets(slots))
    }
}

/// A walk over expressions that finds the answers they read.
struct Walk<'w, 'e> {
    answers: &'w Slots,
    /// The guards of the present operand.
    path: Vec<Guard<'e>>,
    needs: HashMap<usize, Need>,
}

impl<'e> Walk<'_, 'e> {
    fn visit(&mut self, expr: &'e Expr) {
        match expr {
            Expr::Column(column) if self.answers.contains(column.slot) => {
                let need = need_of(&self.path);
                // A condition that reads the answer itself was visited before.
                if !need.reads(column.slot) {
                    join(&mut self.needs, column.slot, need);
                }
            }
            Expr::Case(branches, otherwise) => {
                for (number, (condition, result)) in branches.iter().enumerate() {
                    self.after(Guard::Passed(&branches[..number]), condition);
                    self.after(Guard::Taken(&branches[..=number]), result);
                }
                self.after(Guard::Passed(branches), otherwise);
            }
            Expr::And(list) => self.list(list, Guard::NotFalse),
            Expr::Or(list) => self.list(list, Guard::NotTrue),
            Expr::Call(function, list, _) if *function == Function::COALESCE => {
                self.list(list, Guard::Null);
            }
            other => other.each_child(&mut |child| self.visit(child)),
        }
    }

    fn list(&mut self, list: &'e [Expr], guard: impl Fn(&'e [Expr]) -> Guard<'e>) {
        for (number, operand) in list.iter().enumerate() {
            self.after(guard(&list[..number]), operand);
        }
    }

    fn after(&mut self, guard: Guard<'e>, operand: &'e Expr) {
        self.path.push(guard);
        self.visit(operand);
        self.path.pop();
    }
}

/// Adds a need to that of an answer.
fn join(needs: &mut HashMap<usize, Need>, slot: usize, need: Need) {
    match (needs.get_mut(&slot), need) {
        (None, need) => {
            needs.insert(slot, need);
        }
        (Some(Need::Always), _) => {}
        (Some(known), Need::Always) => *known = Need::Always,
        (Some(Need::If(known)), Need::If(more)) => {
            for condition in more {
                if !known.contains(&condition) {
                    known.push(condition);
                }
            }
        }
    }
}

/// Returns the need of an operand at the end of a path. Volatile conditions cannot be evaluated
/// twice.
fn need_of(path: &[Guard<'_>]) -> Need {
    let mut conjuncts = Vec::new();
    path.iter().for_each(|guard| guard.push_conditions(&mut conjuncts));
    if conjuncts.iter().any(Expr::is_volatile) {
        return Need::Always;
    }
    Expr::all(conjuncts).map_or(Need::Always, |condition| Need::If(vec![condition]))
}

impl Guard<'_> {
    fn push_conditions(self, conjuncts: &mut Vec<Expr>) {
        let is_not = |truth: Truth| move |it: &Expr| Expr::IsTruth(it.clone().into(), truth, true);
        match self {
            Guard::Taken(branches) => {
                conjuncts.push(choice(branches, |number| number + 1 == branches.len()));
            }
            Guard::Passed([]) => {}
            Guard::Passed(branches) => {
                conjuncts.push(choice(branches, |number| number == branches.len()));
            }
            Guard::Null(list) => {
                let is_null = |it: &Expr| Expr::IsNull(it.clone().into(), false);
                conjuncts.extend(list.iter().map(is_null));
            }
            Guard::NotFalse(list) => conjuncts.extend(list.iter().map(is_not(Truth::False))),
            Guard::NotTrue(list) => conjuncts.extend(list.iter().map(is_not(Truth::True))),
        }
    }
}

/// Makes a CASE that is true if it takes the branch whose number has the property. ELSE has the
/// number after those of the branches.
fn choice(branches: &[(Expr, Expr)], is_meant: impl Fn(usize) -> bool) -> Expr {
    let truth = |number: usize| Expr::Constant(Value::Boolean(is_meant(number)));
    let otherwise = Box::new(truth(branches.len()));
    let conditions = branches.iter().map(|(condition, _)| condition.clone()).enumerate();
    let branches = conditions.map(|(number, condition)| (condition, truth(number)));
    Expr::Case(branches.collect(), otherwise)
}
