//! `ts_rewrite`: parts of a query that equal another query are replaced.
//!
//! Operands of AND and OR stand in one list, in the order of PostgreSQL, so that some operands of a
//! list may be replaced.

use std::cmp::Ordering;

use super::query::word_hash;
use super::{QueryItem, QueryWord, TextQuery};
use crate::error::{Result, SqlError, SqlState};

/// Levels of operators that a query has at most here.
const MAX_DEPTH: usize = 500;

/// What becomes of a list in a list with the same operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NestedLists {
    /// Its operands belong to the outer list.
    Flat,
    /// It stays.
    Kept,
}

/// A part of a query.
#[derive(Clone, Debug)]
struct QueryTree {
    /// The word or the operator.
    item: QueryItem<'static>,
    /// The operands, the right one first.
    operands: Vec<QueryTree>,
    /// Whether it has replaced something.
    is_new: bool,
    depth: usize,
}

fn is_list(item: &QueryItem<'_>) -> bool {
    matches!(item, QueryItem::And | QueryItem::Or)
}

/// Returns the tree of a query.
fn tree_of(query: &TextQuery<'_>, nested: NestedLists) -> Result<Option<QueryTree>> {
    let mut stack: Vec<QueryTree> = Vec::new();
    for item in &query.items {
        let mut operands = Vec::new();
        for _ in 0..item.operands() {
            let Some(operand) = stack.pop() else { return Ok(None) };
            if nested == NestedLists::Flat && is_list(item) && operand.item == *item {
                operands.extend(operand.operands);
            } else {
                operands.push(operand);
            }
        }
        let depth = 1 + operands.iter().map(|operand| operand.depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            let message = "the tsquery is nested too deep to rewrite it";
            return Err(SqlError::new(SqlState::StatementTooComplex, message));
        }
        stack.push(QueryTree { item: item.to_owned(), operands, is_new: false, depth });
    }
    Ok(stack.pop())
}

fn compare_words(a: &QueryWord<'_>, b: &QueryWord<'_>) -> Ordering {
    let hashes = word_hash(&b.word).cmp(&word_hash(&a.word));
    hashes.then_with(|| a.word.as_bytes().cmp(b.word.as_bytes()))
}

/// Compares as PostgreSQL does: weights do not count.
fn compare(a: &QueryTree, b: &QueryTree) -> Ordering {
    match (&a.item, &b.item) {
        (QueryItem::Word(a), QueryItem::Word(b)) => compare_words(a, b),
        (QueryItem::Word(_), _) => Ordering::Greater,
        (_, QueryItem::Word(_)) => Ordering::Less,
        (of_a, of_b) => of_b
            .number()
            .cmp(&of_a.number())
            .then_with(|| compare_operands(a, b.operands.iter(), b.operands.len()))
            .then_with(|| match (of_a, of_b) {
                (QueryItem::Phrase(a), QueryItem::Phrase(b)) => b.cmp(a),
                _ => Ordering::Equal,
            }),
    }
}

fn compare_operands<'n>(
    a: &QueryTree,
    others: impl Iterator<Item = &'n QueryTree>,
    count: usize,
) -> Ordering {
    let counts = count.cmp(&a.operands.len());
    let mut pairs = a.operands.iter().zip(others);
    counts.then_with(|| {
        pairs
            .find_map(|(a, b)| Some(compare(a, b)).filter(|it| it.is_ne()))
            .unwrap_or(Ordering::Equal)
    })
}

fn sort(node: &mut QueryTree) {
    node.operands.iter_mut().for_each(sort);
    if is_list(&node.item) {
        node.operands.sort_by(compare);
    }
}

/// What is replaced, and by what.
struct Replacement<'r> {
    wanted: &'r QueryTree,
    by: Option<&'r QueryTree>,
}

impl Replacement<'_> {
    fn new_node(&self) -> Option<QueryTree> {
        self.by.map(|by| QueryTree { is_new: true, ..by.clone() })
    }

    /// Replaces the node, or some of its operands.
    fn at_node(&self, mut node: QueryTree) -> Option<QueryTree> {
        let (own, wanted) = (node.operands.len(), self.wanted.operands.len());
        if node.is_new || node.item.number() != self.wanted.item.number() || own < wanted {
            return Some(node);
        }
        if own == wanted {
            let is_equal = compare(&node, self.wanted).is_eq();
            return if is_equal { self.new_node() } else { Some(node) };
        }
        if !is_list(&node.item) {
            return Some(node);
        }
        // Both lists are sorted, so the operands that are wanted follow each other in this order.
        let mut chosen = Vec::with_capacity(wanted);
        let mut at = 0;
        for operand in &self.wanted.operands {
            loop {
                match node.operands.get(at) {
                    None => return Some(node),
                    Some(found) if compare(found, operand).is_eq() => break,
                    Some(_) => at += 1,
                }
            }
            chosen.push(at);
            at += 1;
        }
        let replaced = self.new_node();
        for at in chosen.iter().skip(1).rev() {
            node.operands.remove(*at);
        }
        let first = chosen.first().copied().unwrap_or(0);
        match replaced {
            Some(new) => node.operands[first] = new,
            None => {
                node.operands.remove(first);
            }
        }
        sort(&mut node);
        Some(node)
    }

    fn within(&self, node: QueryTree) -> Option<QueryTree> {
        let mut node = self.at_node(node)?;
        if !node.is_new {
            let operands = std::mem::take(&mut node.operands);
            for operand in operands {
                node.operands.extend(self.within(operand));
            }
            let missing = usize::from(!matches!(node.item, QueryItem::Word(_)));
            if node.operands.len() < missing {
                return None;
            }
        }
        let is_alone = node.operands.len() == 1 && node.item.operands() == 2;
        if is_alone { node.operands.pop() } else { Some(node) }
    }
}

/// Appends the items of a node; lists become operators of two operands.
fn write(node: &QueryTree, items: &mut Vec<QueryItem<'static>>) {
    // PostgreSQL joins the first two operands, then the last one with them, and so on backwards.
    match &node.operands[..] {
        [] => {}
        [one] => write(one, items),
        [first, second, rest @ ..] => {
            rest.iter().for_each(|operand| write(operand, items));
            write(second, items);
            write(first, items);
        }
    }
    let operators = node.operands.len().saturating_sub(1).max(1);
    items.extend(std::iter::repeat_n(node.item.clone(), operators));
}

/// Returns the query with another part in the place of each part that equals `wanted`.
pub fn rewritten(
    query: &TextQuery<'_>,
    wanted: &TextQuery<'_>,
    by: &TextQuery<'_>,
) -> Result<TextQuery<'static>> {
    let unchanged = || TextQuery { items: query.items.iter().map(QueryItem::to_owned).collect() };
    let (Some(mut tree), Some(mut wanted)) =
        (tree_of(query, NestedLists::Flat)?, tree_of(wanted, NestedLists::Flat)?)
    else {
        return Ok(unchanged());
    };
    sort(&mut tree);
    sort(&mut wanted);
    let by = tree_of(by, NestedLists::Kept)?;
    let replacement = Replacement { wanted: &wanted, by: by.as_ref() };
    let mut items = Vec::new();
    if let Some(tree) = replacement.within(tree) {
        write(&tree, &mut items);
    }
    Ok(TextQuery { items })
}

/// Returns the query with the operands of AND and OR in PostgreSQL's order.
pub fn in_order(query: &TextQuery<'_>) -> Result<TextQuery<'static>> {
    let mut items = Vec::new();
    if let Some(mut tree) = tree_of(query, NestedLists::Flat)? {
        sort(&mut tree);
        write(&tree, &mut items);
    }
    Ok(TextQuery { items })
}
