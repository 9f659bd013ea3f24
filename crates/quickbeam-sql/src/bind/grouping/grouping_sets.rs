//! GROUP BY: keys, grouping sets, GROUPING, and columns that a primary key determines.

use std::collections::BTreeSet;

use super::grouped_expressions::GROUPINGS;
use sqlparser::ast::{self, Expr as Ast, GroupByExpr};

use super::grouped_expressions::Regroup;
use super::levels::grouping_error;
use crate::bind::collations::keys::unmarked;
use crate::bind::query::select::Selected;
use crate::bind::{Binder, OrderKey, Scope, Source, Typed, fold};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Comparison, Expr};
use crate::parse::{NESTED_SETS, arguments_of, is_distinct_sets, is_no_keys};
use crate::types::{DataType, Value};

/// Grouping sets that one GROUP BY may have, as in PostgreSQL.
const MAX_SETS: usize = 4096;

/// Columns of one CUBE, as in PostgreSQL.
const MAX_CUBE: usize = 12;

/// GROUP BY: the keys, and the grouping sets by the numbers of their keys.
#[derive(Default)]
pub(in crate::bind) struct GroupKeys {
    pub keys: Vec<Expr>,
    /// Empty if there is one set with all keys.
    pub sets: Vec<Vec<usize>>,
    /// With grouping sets, the output that each key names.
    pub outputs: Vec<Option<usize>>,
}

/// The parts of a ROLLUP or CUBE, each of which has one key or several.
fn slices(parts: &[Vec<Ast>]) -> Vec<&[Ast]> {
    parts.iter().map(Vec::as_slice).collect()
}

fn rollup<'q>(parts: &[&'q [Ast]]) -> Vec<Vec<&'q Ast>> {
    let sets = (0..=parts.len()).rev();
    sets.map(|count| parts.iter().take(count).copied().flatten().collect()).collect()
}

fn cube<'q>(parts: &[&'q [Ast]]) -> Result<Vec<Vec<&'q Ast>>> {
    let keys: usize = parts.iter().map(|part| part.len()).sum();
    if parts.len() > MAX_CUBE || keys > MAX_SETS {
        let message = format!("CUBE is limited to {MAX_CUBE} elements");
        return Err(SqlError::new(SqlState::TooManyColumns, message));
    }
    let sets = (0..1_usize << parts.len()).rev().map(|mask| {
        let is_in = |nth: usize| mask >> (parts.len() - 1 - nth) & 1 == 1;
        let chosen = parts.iter().enumerate().filter(|(nth, _)| is_in(*nth));
        chosen.flat_map(|(_, part)| part.iter()).collect()
    });
    Ok(sets.collect())
}

/// Returns the sets of a ROLLUP or CUBE within GROUPING SETS, which the parser reads as a call.
fn nested_sets(call: &ast::Function) -> Option<Result<Vec<Vec<&Ast>>>> {
    let [ast::ObjectNamePart::Identifier(name)] = &call.name.0[..] else { return None };
    let folded = fold(name);
    let is_nested = name.value == NESTED_SETS;
    let is_other = name.quote_style.is_some() || !matches!(folded.as_str(), "rollup" | "cube");
    if is_other && !is_nested {
        return None;
    }
    let arguments = arguments_of(call)?;
    if is_nested {
        return Some(all_sets(arguments.into_iter()));
    }
    let parts: Vec<&[Ast]> = arguments
        .into_iter()
        .map(|argument| match argument {
            Ast::Tuple(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        })
        .collect();
    Some(match folded.as_str() {
        "cube" => cube(&parts),
        _ => Ok(rollup(&parts)),
    })
}

#[cold]
fn too_many_sets() -> SqlError {
    let message = format!("too many grouping sets present (maximum {MAX_SETS})");
    SqlError::new(SqlState::StatementTooComplex, message)
}

/// Returns the sets of the items of a GROUPING SETS within another one.
fn all_sets<'q>(items: impl Iterator<Item = &'q Ast>) -> Result<Vec<Vec<&'q Ast>>> {
    let mut all = Vec::new();
    for item in items {
        match item {
            Ast::Tuple(list) => all.push(list.iter().collect()),
            none if is_no_keys(none) => all.push(Vec::new()),
            Ast::Function(call) => match nested_sets(call) {
                Some(nested) => all.extend(nested?),
                None => all.push(vec![item]),
            },
            _ => all.push(vec![item]),
        }
        if all.len() > MAX_SETS {
            return Err(too_many_sets());
        }
    }
    Ok(all)
}

/// The grouping sets of one item of GROUP BY.
fn sets_of(item: &Ast) -> Result<Vec<Vec<&Ast>>> {
    Ok(match item {
        Ast::Tuple(list) => vec![list.iter().collect()],
        Ast::GroupingSets(sets) => {
            let mut all = Vec::with_capacity(sets.len());
            for set in sets {
                match &set[..] {
                    [Ast::Function(call)] => match nested_sets(call) {
                        Some(nested) => all.extend(nested?),
                        None => all.push(set.iter().collect()),
                    },
                    _ => all.push(set.iter().collect()),
                }
                if all.len() > MAX_SETS {
                    return Err(too_many_sets());
                }
            }
            all
        }
        Ast::Rollup(parts) => rollup(&slices(parts)),
        Ast::Cube(parts) => cube(&slices(parts))?,
        other => vec![vec![other]],
    })
}

/// Returns the first of each grouping sets that have the same keys.
fn without_repeated(sets: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut seen = BTreeSet::new();
    let keys = |set: &[usize]| set.iter().copied().collect::<BTreeSet<usize>>();
    sets.into_iter().filter(|set| seen.insert(keys(set))).collect()
}

/// Makes outputs that are keys, and ORDER BY by them, read these keys of the group: with grouping
/// sets, equal outputs may be different keys.
pub(in crate::bind) fn read_named_keys(
    slot: usize,
    named: &[Option<usize>],
    outputs: &mut [Expr],
    order: &mut [OrderKey],
) {
    let of_order = order.iter_mut().filter_map(|key| Some((key.output?, &mut key.expr)));
    for (output, expr) in outputs.iter_mut().enumerate().chain(of_order) {
        if let Some(key) = named.iter().position(|it| *it == Some(output)) {
            *expr = Expr::column(slot, key);
        }
    }
}

impl Binder<'_> {
    /// Binds GROUP BY. Returns `None` without GROUP BY.
    pub(in crate::bind) fn group_keys(
        &mut self,
        select: &ast::Select,
        selected: &[Selected],
        scope: &Scope,
    ) -> Result<Option<GroupKeys>> {
        let GroupByExpr::Expressions(list, modifiers) = &select.group_by else {
            return Err(SqlError::unsupported("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(SqlError::unsupported("this form of GROUP BY"));
        }
        let (is_distinct, list) = match &list[..] {
            [first, rest @ ..] if is_distinct_sets(first) => (true, rest),
            list => (false, list),
        };
        if list.is_empty() {
            return Ok(None);
        }
        let is_set =
            |item: &Ast| matches!(item, Ast::GroupingSets(_) | Ast::Rollup(_) | Ast::Cube(_));
        let has_sets = list.iter().any(is_set);
        let mut found = GroupKeys::default();
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        for item in list {
            let mut own: Vec<Vec<usize>> = Vec::new();
            for set in sets_of(item)? {
                let mut numbers = Vec::with_capacity(set.len());
                for key in set {
                    let (key, output) = self.group_key(key, select, selected, scope)?;
                    let mut known = found.keys.iter().zip(&found.outputs);
                    let known = known.position(|known| known == (&key, &output));
                    numbers.push(known.filter(|_| has_sets).unwrap_or_else(|| {
                        found.keys.push(key);
                        found.outputs.push(output);
                        found.keys.len() - 1
                    }));
                }
                own.push(numbers);
            }
            if sets.len().saturating_mul(own.len()) > MAX_SETS {
                return Err(too_many_sets());
            }
            let product = sets.iter().flat_map(|before| {
                own.iter().map(move |set| before.iter().chain(set).copied().collect())
            });
            sets = product.collect();
        }
        if is_distinct {
            sets = without_repeated(sets);
        }
        if has_sets {
            found.sets = sets;
        }
        Ok(Some(found))
    }

    /// Binds a call of GROUPING. Its arguments are compared with the keys when those are known.
    pub(in crate::bind) fn grouping(
        &mut self,
        list: &[ast::FunctionArg],
        position: u32,
        scope: &Scope,
    ) -> Result<Typed> {
        if !self.levels.last().is_some_and(|level| level.allows_aggregates) {
            return Err(grouping_error(&self.not_allowed("grouping operations"), position));
        }
        if list.len() > 31 {
            let message = "GROUPING must have fewer than 32 arguments";
            let error = SqlError::new(SqlState::TooManyColumns, message);
            return Err(error.at(position as usize));
        }
        let nested = self.set_in_aggregate(true);
        let mut arguments = Vec::with_capacity(list.len());
        for argument in list {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = argument else {
                return Err(SqlError::unsupported("this form of an argument"));
            };
            let bound = self.expression(expr, scope);
            arguments.push(unmarked(bound?.expr));
        }
        self.set_in_aggregate(nested);
        let slot = self.group_slot();
        let Some(level) = self.levels.last_mut() else {
            return Err(SqlError::internal("GROUPING outside a query"));
        };
        let known = level.groupings.iter().position(|(known, _)| *known == arguments);
        let number = known.unwrap_or_else(|| {
            level.groupings.push((arguments, position));
            level.groupings.len() - 1
        });
        Ok(Typed::new(Expr::column(slot, GROUPINGS + number), DataType::Integer, position))
    }

    fn set_in_aggregate(&mut self, is: bool) -> bool {
        let level = self.levels.last_mut();
        level.is_some_and(|level| std::mem::replace(&mut level.in_aggregate, is))
    }

    /// Adds the named columns of tables whose primary keys are among the keys of every set: they
    /// have one value in each group.
    pub(in crate::bind) fn add_dependent_keys(
        &self,
        keys: &mut Vec<Expr>,
        sets: &mut [Vec<usize>],
        named: &[(ColumnRef, u32)],
    ) {
        let given = keys.len();
        for (column, _) in named {
            let Some(Source::Table(table)) = self.slots.get(column.slot).map(|shape| &shape.source)
            else {
                continue;
            };
            let Some(primary) = &table.primary_key else { continue };
            let is_key = |position: &usize| {
                let key = Expr::column(column.slot, *position);
                let mut known = (0..given).filter(|number| keys.get(*number) == Some(&key));
                known.any(|number| sets.iter().all(|set| set.contains(&number)))
            };
            let expr = Expr::Column(*column);
            if primary.columns.iter().all(is_key) && !keys.contains(&expr) {
                sets.iter_mut().for_each(|set| set.push(keys.len()));
                keys.push(expr);
            }
        }
    }
}

impl Regroup<'_> {
    /// Returns the value of a call of GROUPING: a bit for each argument, which is set if the
    /// grouping set of the row does not have it.
    pub fn grouping(&self, number: usize) -> Result<Expr> {
        let Some((arguments, position)) = self.groupings.get(number) else {
            return Err(SqlError::internal("there is no such GROUPING"));
        };
        let mut numbers = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let is_it = |key: &Expr| key == argument || key.text_of_sort_key() == Some(argument);
            let known = self.keys.iter().take(self.written).position(is_it);
            numbers.push(known.ok_or_else(|| {
                let message =
                    "arguments to GROUPING must be grouping expressions of the associated query level";
                grouping_error(message, *position)
            })?);
        }
        let value = |set: &[usize]| {
            let bits =
                numbers.iter().fold(0, |bits, key| bits << 1 | i32::from(!set.contains(key)));
            Expr::Constant(Value::Integer(bits))
        };
        let [others @ .., last] = self.sets else {
            return Ok(Expr::Constant(Value::Integer(0)));
        };
        let branches = others.iter().enumerate().map(|(nth, set)| {
            let number = Expr::column(self.slot, self.keys.len() + self.aggregates);
            let pair = [number, Expr::Constant(Value::Integer(nth as i32))];
            (Expr::Compare(Comparison::Equal, Box::new(pair)), value(set))
        });
        Ok(Expr::Case(branches.collect(), Box::new(value(last))))
    }
}
