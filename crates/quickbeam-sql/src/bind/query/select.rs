//! SELECT and RETURNING: the select list, grouping and row locks.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{self, Distinct, SelectItem, SelectItemQualifiedWildcardKind, Spanned};

use super::implied_names::implied_name;
use super::row_calls::{RowCalls, RowFunctions, RowsRefused};
use crate::bind::collations::keys::unmarked;
use crate::bind::grouping::grouped_expressions::Regroup;
use crate::bind::grouping::grouping_sets::{GroupKeys, read_named_keys};
use crate::bind::records::whole_rows::row_of_star;
use crate::bind::types::undefined::refuse_unequal;
use crate::bind::{
    Binder, Body, From, Group, OrderKey, OutputColumn, Query, Scope, ScopeColumn, Select, Typed,
    Window, fold, object_name,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::DataType;

/// An output of the select list, before grouping.
pub(in crate::bind) struct Selected {
    pub name: SmolStr,
    pub value: Typed,
    /// Whether the output is NULL, a quoted literal or an untyped parameter, which takes another
    /// type if the context needs one.
    pub is_unknown: bool,
}

/// What becomes of a parameter in a select list whose type nothing determines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Untyped {
    /// It is a text.
    Text,
    /// The other side of a set operation determines it.
    Deferred,
}

impl Binder<'_> {
    fn allow_aggregates(&mut self, allowed: bool) {
        if let Some(level) = self.levels.last_mut() {
            level.allows_aggregates = allowed;
        }
    }

    fn allow_windows(&mut self, allowed: bool) {
        if let Some(level) = self.levels.last_mut() {
            level.allows_windows = allowed;
        }
    }

    /// Binds a select list, where aggregates, window functions and functions that return rows are
    /// allowed.
    fn select_list(
        &mut self,
        items: &[SelectItem],
        scope: &Scope,
        untyped: Untyped,
    ) -> Result<Vec<Selected>> {
        self.allow_aggregates(true);
        self.allow_windows(true);
        let selected = self.with_row_functions(RowFunctions::Allowed, |binder| {
            binder.projection(items, scope, untyped)
        })?;
        self.allow_aggregates(false);
        self.allow_windows(false);
        Ok(selected)
    }

    /// Binds WHERE or HAVING.
    fn clause(
        &mut self,
        condition: Option<&ast::Expr>,
        refused: RowsRefused,
        scope: &Scope,
    ) -> Result<Vec<Expr>> {
        let Some(condition) = condition else { return Ok(Vec::new()) };
        let word = if refused == RowsRefused::Having { "HAVING" } else { "WHERE" };
        self.with_row_functions(RowFunctions::Refused(refused), |binder| {
            binder.conjuncts(condition, word, scope)
        })
    }

    pub(in crate::bind) fn select(
        &mut self,
        written: &ast::Select,
        order_items: &[ast::OrderByExpr],
        locks: &[ast::LockClause],
        outer: Option<Arc<Scope>>,
    ) -> Result<Query> {
        check_form(written)?;
        let untyped = match std::mem::take(&mut self.defers) {
            true => Untyped::Deferred,
            false => Untyped::Text,
        };
        let (parts, level) = self.level(|binder| {
            let mut scope = Scope { outer, ..Scope::default() };
            let (from, items) = binder.items_and_from(written, &mut scope)?;
            let filter = binder.clause(written.selection.as_ref(), RowsRefused::Where, &scope)?;
            let of_rows = binder.levels.last().map_or(0, |level| level.subqueries.len());
            binder.name_windows(&written.named_window)?;
            binder.note_group_text(&written.group_by);
            let mut selected = binder.select_list(&items, &scope, untyped)?;
            let keys = binder.group_keys(written, &selected, &scope)?;
            binder.allow_aggregates(true);
            let having = binder.clause(written.having.as_ref(), RowsRefused::Having, &scope)?;
            binder.allow_windows(true);
            let order = binder.order(order_items, &selected, Some(&scope))?;
            let distinct_on = match &written.distinct {
                Some(Distinct::On(list)) => binder.distinct_on(list, &order, &selected, &scope)?,
                _ => Vec::new(),
            };
            let grouped = keys.iter().flat_map(|keys| &keys.keys).chain(&distinct_on);
            settle_compared(&mut selected, written.distinct.as_ref(), grouped, &order);
            binder.check_named_windows(&scope)?;
            let lock = binder.row_locks(locks, from.as_ref(), &scope)?;
            if keys.is_some() || written.having.is_some() {
                binder.group_slot();
            }
            let (mut from, later) =
                binder.join_row_calls(from, keys.as_ref().map(|keys| &keys.keys[..]))?;
            from.iter_mut().for_each(|from| binder.mark_rows(from));
            let GroupKeys { keys, sets, outputs } = keys.unwrap_or_default();
            let parts = (from, filter, selected, having, order, of_rows, lock);
            Ok((parts, keys, (sets, outputs), (distinct_on, later)))
        })?;
        let (parts, mut keys, (mut sets, named_outputs), (mut distinct_on, mut later)) = parts;
        let (from, filter, selected, mut having, mut order, of_rows, for_update) = parts;
        let unknown = selected.iter().map(|one| one.is_unknown).collect();
        let places: Vec<u32> = selected.iter().map(|one| one.value.position).collect();
        let order_places = order_items.iter().map(|item| self.position(&item.expr));
        let order_places: Vec<u32> = order_places.collect();
        check_distinct(written, &selected)?;
        let (mut outputs, columns) = self.outputs_of(selected)?;
        let mut subqueries = level.subqueries;
        let mut windows = level.windows;
        let group = match level.group_slot {
            None => None,
            Some(slot) => {
                let own = from.as_ref().map(From::slots).unwrap_or_default();
                let written_keys = keys.len();
                self.add_dependent_keys(&mut keys, &mut sets, &level.named);
                let regroup = Regroup {
                    slot,
                    keys: &keys,
                    written: written_keys,
                    sets: &sets,
                    aggregates: level.aggregates.len(),
                    groupings: &level.groupings,
                    own,
                    named: &level.named,
                };
                let having_from = written.having.as_ref().map_or(0, |having| self.position(having));
                if !sets.is_empty() {
                    read_named_keys(slot, &named_outputs, &mut outputs, &mut order);
                }
                let of_outputs = outputs.iter_mut().zip(places);
                let of_having = having.iter_mut().map(|expr| (expr, having_from));
                let of_order = order.iter_mut().map(|key| &mut key.expr).zip(order_places.clone());
                let of_calls = later.iter_mut().flat_map(RowCalls::arguments_mut);
                for (expr, from) in of_outputs.chain(of_having).chain(of_order).chain(of_calls) {
                    regroup.apply(expr, from, self)?;
                }
                for query in later.iter_mut().flat_map(RowCalls::answers_mut) {
                    regroup.query(query, self)?;
                }
                let of_windows = windows.iter_mut().flat_map(|windows| &mut windows.windows);
                for expr in of_windows.flat_map(Window::exprs_mut).chain(&mut distinct_on) {
                    regroup.apply(expr, 0, self)?;
                }
                let aggregates = level.aggregates;
                let later = subqueries.split_off(of_rows.min(subqueries.len()));
                let [of_keys, of_groups] = regroup.divide(later, &aggregates, self)?;
                subqueries.extend(of_keys);
                Some(Group { slot, keys, sets, aggregates, having, subqueries: of_groups })
            }
        };
        let distinct = matches!(written.distinct, Some(Distinct::Distinct));
        let select = Select {
            from,
            filter,
            subqueries,
            group,
            windows,
            outputs,
            distinct,
            distinct_on,
            for_update,
        };
        self.unknown = unknown;
        let is_by_keys = self.is_distinct_by_keys(&select, &columns, &order)?;
        let checked = if is_by_keys { &[][..] } else { &order[..] };
        check_select(&select, written.distinct.is_some(), checked, &order_places)?;
        let body = Body::Select(Box::new(select));
        let mut query = Query { order, ..Query::plain(body, columns) };
        if is_by_keys {
            query = self.distinct_by_keys(query, later.as_ref())?;
        }
        match later {
            None => Ok(query),
            Some(later) => self.rows_of_groups(query, later, level.first_slot),
        }
    }

    /// Binds the select list and expands `*`.
    fn projection(
        &mut self,
        items: &[SelectItem],
        scope: &Scope,
        untyped: Untyped,
    ) -> Result<Vec<Selected>> {
        let mut selected = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) if let Some(row) = row_of_star(expr) => {
                    selected.extend(self.selected_fields(&row, scope)?);
                }
                SelectItem::UnnamedExpr(expr) => {
                    let value = self.output_expression(expr, scope)?;
                    selected.push(self.selected(implied_name(expr), value, untyped)?);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    if alias.quote_style == Some('\'') {
                        // The parser does not give the position of the alias.
                        let behind = self.text.offset_of(expr.span().end);
                        let quote =
                            self.text.as_str().get(behind..).and_then(|rest| rest.find('\''));
                        let position = behind + quote.unwrap_or_default();
                        let message = format!("syntax error: {alias} is a text, not a name");
                        return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
                    }
                    let value = self.output_expression(expr, scope)?;
                    selected.push(self.selected(fold(alias), value, untyped)?);
                }
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)
                    if has_more(options) =>
                {
                    return Err(SqlError::unsupported(format!("{item} in SELECT")));
                }
                SelectItem::Wildcard(options) => {
                    let position = self.span_start(options.wildcard_token.0.span);
                    let columns = scope.all_columns();
                    if scope.relations.is_empty() {
                        let message = "SELECT * with no tables specified is not valid";
                        let error = SqlError::new(SqlState::SyntaxError, message);
                        return Err(error.at(position as usize));
                    }
                    let read = self.check_read(columns.iter().map(|column| column.at));
                    read.map_err(|error| error.at(position as usize))?;
                    self.note_star(options, None, &columns, scope);
                    self.note_all_named(&columns, position);
                    selected.extend(columns.into_iter().map(|column| all_of(column, position)));
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let place = self.position(name);
                    let position = place as usize;
                    let folded = object_name(name)?;
                    let relation = Self::relation_named(std::slice::from_ref(&folded), scope);
                    let relation = relation.ok_or_else(|| {
                        let message = format!("missing FROM-clause entry for table \"{folded}\"");
                        SqlError::new(SqlState::UndefinedTable, message).at(position)
                    })?;
                    let columns: Vec<&ScopeColumn> = relation.columns.iter().collect();
                    let read = self.check_read(columns.iter().map(|column| column.at));
                    read.map_err(|error| error.at(position))?;
                    self.note_star(options, Some(name), &columns, scope);
                    match scope.relation(&folded) {
                        Some(_) => self.note_all_named(&columns, place),
                        None => columns.iter().for_each(|it| self.note_named(it.at, place)),
                    }
                    selected.extend(columns.into_iter().map(|column| all_of(column, place)));
                }
                other => return Err(SqlError::unsupported(format!("{other} in SELECT"))),
            }
        }
        Ok(selected)
    }

    /// Records that `*` names columns, for a GROUP BY that they may depend on.
    fn note_all_named(&mut self, columns: &[&ScopeColumn], position: u32) {
        if let Some(level) = self.levels.last_mut() {
            level.named.extend(columns.iter().map(|column| (column.at, position)));
        }
    }

    /// Binds the fields of `(row).*`.
    fn selected_fields(&mut self, row: &ast::Expr, scope: &Scope) -> Result<Vec<Selected>> {
        let row = self.output_expression(row, scope)?;
        let fields = self.fields_of(&row).ok_or_else(|| {
            let message = match row.data_type {
                Some(known) if known.record().is_some() => {
                    "record type has not been registered".to_owned()
                }
                known => {
                    let known = known.map_or("unknown".to_owned(), |known| known.to_string());
                    format!("type {known} is not composite")
                }
            };
            let error = SqlError::new(SqlState::WrongObjectType, message);
            error.at(row.position as usize)
        })?;
        let one = |(name, value)| Selected { name, value, is_unknown: false };
        Ok(fields.into_iter().map(one).collect())
    }

    fn selected(&mut self, name: SmolStr, value: Typed, untyped: Untyped) -> Result<Selected> {
        if untyped == Untyped::Deferred
            && value.data_type.is_none()
            && matches!(value.expr, Expr::Parameter(_))
        {
            return Ok(Selected { name, value, is_unknown: true });
        }
        let is_unknown = value.data_type.is_none() && value.expr.as_constant().is_some();
        Ok(Selected { name, value: self.settle(value)?, is_unknown })
    }

    /// RETURNING.
    pub(in crate::bind) fn returning(
        &mut self,
        items: &[SelectItem],
        scope: &Scope,
    ) -> Result<crate::bind::Returning> {
        let (selected, level) =
            self.level(|binder| binder.projection(items, scope, Untyped::Text))?;
        if !level.subqueries.is_empty() {
            return Err(SqlError::unsupported("a subquery in RETURNING"));
        }
        let (outputs, columns) = self.outputs_of(selected)?;
        Ok(crate::bind::Returning { outputs, columns })
    }

    /// Returns the expressions of a select list, and their names, types and collations.
    fn outputs_of(&self, selected: Vec<Selected>) -> Result<(Vec<Expr>, Vec<OutputColumn>)> {
        let output = |selected: Selected| {
            let data_type = selected.value.data_type.unwrap_or(DataType::Text);
            let collation = self.collation_of(&selected.value)?.as_column();
            let column = OutputColumn { name: selected.name, data_type, collation };
            Ok((unmarked(selected.value.expr), column))
        };
        selected.into_iter().map(output).collect()
    }
}

/// Checks what a SELECT with DISTINCT, row locks or window functions may not do.
fn check_select(
    select: &Select,
    is_distinct: bool,
    order: &[OrderKey],
    places: &[u32],
) -> Result<()> {
    let unlisted = |key: &OrderKey| key.output.is_none() && !key.expr.is_constant();
    if let Some(unlisted) = order.iter().position(unlisted).filter(|_| select.distinct) {
        let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
        let position = places.get(unlisted).map_or(0, |position| *position as usize);
        return Err(SqlError::new(SqlState::InvalidColumnReference, message).at(position));
    }
    let Select { group, windows, subqueries, .. } = select;
    if select.for_update.is_some() && (group.is_some() || is_distinct || windows.is_some()) {
        let what = "FOR UPDATE with DISTINCT, GROUP BY, aggregates or window functions";
        return Err(SqlError::unsupported(what));
    }
    if let Some(windows) = windows {
        let of_groups = group.iter().flat_map(|group| &group.subqueries);
        if subqueries.iter().chain(of_groups).any(|one| one.reads.contains(windows.slot)) {
            return Err(SqlError::unsupported("a subquery over a window function"));
        }
    }
    Ok(())
}

/// Checks that DISTINCT can compare the rows.
fn check_distinct(written: &ast::Select, selected: &[Selected]) -> Result<()> {
    if !matches!(written.distinct, Some(Distinct::Distinct)) {
        return Ok(());
    }
    let each = |one: &Selected| refuse_unequal(one.value.data_type, one.value.position as usize);
    selected.iter().try_for_each(each)
}

/// Makes texts of the literals that DISTINCT, GROUP BY and ORDER BY compare, whatever the context
/// needs.
fn settle_compared<'k>(
    selected: &mut [Selected],
    distinct: Option<&Distinct>,
    grouped: impl Iterator<Item = &'k Expr>,
    order: &[OrderKey],
) {
    if !selected.iter().any(|one| one.is_unknown) {
        return;
    }
    let grouped: Vec<&Expr> = grouped.collect();
    for (number, one) in selected.iter_mut().enumerate() {
        let is_compared = matches!(distinct, Some(Distinct::Distinct))
            || grouped.iter().any(|key| **key == one.value.expr)
            || order.iter().any(|key| key.output == Some(number));
        one.is_unknown &= !is_compared;
    }
}

fn all_of(column: &ScopeColumn, position: u32) -> Selected {
    let value = Typed::new(column.value(), column.data_type, position);
    Selected { name: column.name.clone(), value, is_unknown: false }
}

/// Whether more is said of `*` than that it is all columns.
fn has_more(options: &ast::WildcardAdditionalOptions) -> bool {
    let wildcard_token = options.wildcard_token.clone();
    *options != ast::WildcardAdditionalOptions { wildcard_token, ..Default::default() }
}

/// Refuses clauses of other dialects that would have no effect.
fn check_form(select: &ast::Select) -> Result<()> {
    if select.into.is_some() {
        return Err(SqlError::unsupported("SELECT … INTO inside of a statement"));
    }
    let plain = select.top.is_none()
        && select.lateral_views.is_empty()
        && select.prewhere.is_none()
        && select.connect_by.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
        && select.qualify.is_none()
        && select.exclude.is_none()
        && select.select_modifiers.is_none()
        && select.value_table_mode.is_none()
        && select.flavor == ast::SelectFlavor::Standard;
    if plain { Ok(()) } else { Err(SqlError::unsupported("this form of SELECT")) }
}
