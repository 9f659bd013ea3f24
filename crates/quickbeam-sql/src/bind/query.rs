//! Queries: SELECT, VALUES, set operations, and subqueries in expressions.

use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{
    self, Distinct, Expr as Ast, GroupByExpr, LimitClause, LockType, OrderByKind, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Spanned,
};

use super::aggregates::AGGREGATES;
use super::group::Regroup;
use super::names::implied_name;
use super::{
    Binder, Body, Group, Level, LockWait, OrderKey, OutputColumn, Query, RowLock, Scope, Select,
    Source, Subquery, Typed, fold, object_name,
};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::Expr;
use crate::types::{DataType, Value};

/// What is selected, before groups are taken into account.
struct Selected {
    name: SmolStr,
    value: Typed,
    /// NULL, or a literal in quotes: it takes another type if one is needed.
    is_unknown: bool,
}

impl Binder<'_> {
    /// A query that is a statement.
    pub fn query_statement(&mut self, query: &ast::Query) -> Result<Query> {
        self.query(query, None)
    }

    /// A query; `outer` is what the query around it can name.
    pub(super) fn query(&mut self, query: &ast::Query, outer: Option<Arc<Scope>>) -> Result<Query> {
        let has_limit = matches!(
            &query.limit_clause,
            Some(
                LimitClause::LimitOffset { limit: Some(_), .. }
                    | LimitClause::OffsetCommaLimit { .. }
            )
        );
        if query.fetch.is_some() && has_limit || query.for_clause.is_some() {
            return Err(SqlError::unsupported("this form of a query"));
        }
        let known = self.ctes.len();
        if let Some(with) = &query.with {
            if with.recursive {
                return Err(SqlError::unsupported("WITH RECURSIVE"));
            }
            for common in &with.cte_tables {
                let mut bound = self.nested(|binder| binder.query(&common.query, outer.clone()))?;
                let (given, present) = (common.alias.columns.len(), bound.columns.len());
                if given > present {
                    let message = format!(
                        "WITH query \"{}\" has {present} columns available but {given} columns specified",
                        fold(&common.alias.name)
                    );
                    let position = self.place_of(&common.alias.name);
                    let state = SqlState::InvalidColumnReference;
                    return Err(SqlError::new(state, message).at(position));
                }
                for (column, name) in bound.columns.iter_mut().zip(&common.alias.columns) {
                    column.name = fold(&name.name);
                }
                self.ctes.push((fold(&common.alias.name), Arc::new(bound)));
            }
        }
        let bound = self.query_body(query, outer);
        self.ctes.truncate(known);
        bound
    }

    pub(super) fn query_body(
        &mut self,
        query: &ast::Query,
        outer: Option<Arc<Scope>>,
    ) -> Result<Query> {
        let order: &[ast::OrderByExpr] = match &query.order_by {
            None => &[],
            Some(order) => match &order.kind {
                OrderByKind::Expressions(list) => list,
                OrderByKind::All(_) => return Err(SqlError::unsupported("ORDER BY ALL")),
            },
        };
        let for_update = match &query.locks[..] {
            [] => None,
            [lock] if lock.lock_type == LockType::Update => Some(lock),
            _ => return Err(SqlError::unsupported("this form of a row lock")),
        };
        let mut bound = match &*query.body {
            SetExpr::Select(select) => self.select(select, order, for_update, outer)?,
            SetExpr::Query(inner) => {
                let mut inner = self.nested(|binder| binder.query(inner, outer))?;
                if !order.is_empty() || inner.limit.is_some() || inner.offset.is_some() {
                    return Err(SqlError::unsupported(
                        "ORDER BY or LIMIT around a query in parentheses",
                    ));
                }
                inner.limit = None;
                inner
            }
            SetExpr::Values(values) => {
                let bound = self.values(&values.rows, order, outer)?;
                self.unknown.clear();
                bound
            }
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                self.combination(left, *op, *set_quantifier, right, order, outer)?
            }
            other => return Err(SqlError::unsupported(format!("{other} as a query"))),
        };
        let scope = Scope::default();
        let (limit, offset) = match &query.limit_clause {
            None => (None, None),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                (limit.as_ref(), offset.as_ref().map(|offset| &offset.value))
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(limit), Some(offset)),
            Some(_) => return Err(SqlError::unsupported("LIMIT BY")),
        };
        let limit = match (&query.fetch, limit) {
            (Some(fetch), _) if fetch.percent || fetch.with_ties => {
                return Err(SqlError::unsupported("FETCH with PERCENT or TIES"));
            }
            (Some(fetch), _) => fetch.quantity.as_ref(),
            (None, limit) => limit,
        };
        if let Some(limit) = limit {
            let limit = self.expression(limit, &scope)?;
            bound.limit = Some(self.coerce(limit, DataType::BigInt)?);
        } else if query.fetch.is_some() {
            bound.limit = Some(Expr::Constant(Value::BigInt(1)));
        }
        if let Some(offset) = offset {
            let offset = self.expression(offset, &scope)?;
            bound.offset = Some(self.coerce(offset, DataType::BigInt)?);
        }
        Ok(bound)
    }

    /// Runs `work` at a new level: a query with aggregates and subqueries of its own.
    pub(super) fn level<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, super::Level)> {
        self.levels.push(Level::default());
        let result = work(self);
        let level = self.levels.pop().unwrap_or_default();
        Ok((result?, level))
    }

    /// The slot of this level's groups.
    pub(super) fn group_slot(&mut self) -> usize {
        if let Some(slot) = self.levels.last().and_then(|level| level.group_slot) {
            return slot;
        }
        let slot = self.add_slot("group".into(), Source::Computed);
        if let Some(level) = self.levels.last_mut() {
            level.group_slot = Some(slot);
        }
        slot
    }

    fn allow_aggregates(&mut self, allowed: bool) {
        if let Some(level) = self.levels.last_mut() {
            level.allows_aggregates = allowed;
        }
    }

    fn select(
        &mut self,
        select: &ast::Select,
        order_items: &[ast::OrderByExpr],
        lock: Option<&ast::LockClause>,
        outer: Option<Arc<Scope>>,
    ) -> Result<Query> {
        check_form(select)?;
        let first_slot = self.slots.len();
        let (parts, level) = self.level(|binder| {
            let mut scope = Scope { outer, ..Scope::default() };
            let from = binder.from(&select.from, &mut scope)?;
            let filter = match &select.selection {
                Some(condition) => binder.conjuncts(condition, &scope)?,
                None => Vec::new(),
            };
            let of_rows = binder.levels.last().map_or(0, |level| level.subqueries.len());
            binder.allow_aggregates(true);
            let selected = binder.projection(&select.projection, &scope)?;
            binder.allow_aggregates(false);
            let keys = binder.group_keys(&select.group_by, &selected, &scope)?;
            binder.allow_aggregates(true);
            let having = match &select.having {
                Some(condition) => binder.conjuncts(condition, &scope)?,
                None => Vec::new(),
            };
            let order = binder.order(order_items, &selected, Some(&scope))?;
            let lock = lock.map(|lock| binder.row_lock(lock, &scope)).transpose()?;
            if keys.is_some() || select.having.is_some() {
                binder.group_slot();
            }
            Ok((from, filter, selected, keys.unwrap_or_default(), having, order, of_rows, lock))
        })?;
        let (from, filter, selected, keys, mut having, mut order, of_rows, for_update) = parts;
        let unknown = selected.iter().map(|one| one.is_unknown).collect();
        let places: Vec<u32> = selected.iter().map(|one| one.value.position).collect();
        let order_places = order_items.iter().map(|item| self.position(&item.expr));
        let order_places: Vec<u32> = order_places.collect();
        let (outputs, columns): (Vec<Expr>, Vec<OutputColumn>) = selected
            .into_iter()
            .map(|selected| {
                let data_type = selected.value.data_type.unwrap_or(DataType::Text);
                (selected.value.expr, OutputColumn { name: selected.name, data_type })
            })
            .unzip();
        let mut outputs = outputs;
        let mut subqueries = level.subqueries;
        let group = match level.group_slot {
            None => None,
            Some(slot) => {
                let own = first_slot..self.slots.len();
                let regroup = Regroup { slot, keys: &keys, own, named: &level.named };
                let having_from = select.having.as_ref().map_or(0, |having| self.position(having));
                let of_outputs = outputs.iter_mut().zip(places);
                let of_having = having.iter_mut().map(|expr| (expr, having_from));
                let of_order = order.iter_mut().map(|key| &mut key.expr).zip(order_places.clone());
                for (expr, from) in of_outputs.chain(of_having).chain(of_order) {
                    regroup.apply(expr, from, self)?;
                }
                // Answers of these would be wanted for each group, but are found for each row.
                let own: crate::expression::Slots = (first_slot..self.slots.len())
                    .map(crate::expression::slot_bit)
                    .fold(0, |all, bit| all | bit);
                if subqueries.iter().skip(of_rows).any(|subquery| subquery.reads & own != 0) {
                    let what = "a subquery that reads rows of a query with groups";
                    return Err(SqlError::unsupported(what));
                }
                let in_keys = keys.iter().fold(0, |bits, key| bits | key.slots());
                let later = subqueries.split_off(of_rows.min(subqueries.len()));
                let (of_keys, of_groups): (Vec<Subquery>, _) = later
                    .into_iter()
                    .partition(|one| in_keys & crate::expression::slot_bit(one.slot) != 0);
                subqueries.extend(of_keys);
                let aggregates = level.aggregates;
                Some(Group { slot, keys, aggregates, having, subqueries: of_groups })
            }
        };
        let distinct = match &select.distinct {
            None | Some(Distinct::All) => false,
            Some(Distinct::Distinct) => true,
            Some(Distinct::On(_)) => return Err(SqlError::unsupported("DISTINCT ON")),
        };
        let unlisted = |key: &OrderKey| key.output.is_none() && !key.expr.is_constant();
        if let Some(unlisted) = order.iter().position(unlisted).filter(|_| distinct) {
            let message = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
            let position = order_places.get(unlisted).map_or(0, |position| *position as usize);
            return Err(SqlError::new(SqlState::InvalidColumnReference, message).at(position));
        }
        if for_update.is_some() && (group.is_some() || distinct) {
            return Err(SqlError::unsupported("FOR UPDATE with DISTINCT, GROUP BY or aggregates"));
        }
        let select = Select { from, filter, subqueries, group, outputs, distinct, for_update };
        self.unknown = unknown;
        Ok(Query {
            body: Body::Select(Box::new(select)),
            columns,
            order,
            limit: None,
            offset: None,
        })
    }

    /// What is selected, with `*` written out.
    fn projection(&mut self, items: &[SelectItem], scope: &Scope) -> Result<Vec<Selected>> {
        let mut selected = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let value = self.expression(expr, scope)?;
                    selected.push(self.selected(implied_name(expr), value)?);
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    if alias.quote_style == Some('\'') {
                        // The parser leaves out where it stands.
                        let behind = crate::parse::offset_of(self.text, expr.span().end);
                        let quote = self.text.get(behind..).and_then(|rest| rest.find('\''));
                        let position = behind + quote.unwrap_or_default();
                        let message = format!("syntax error: {alias} is a text, not a name");
                        return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
                    }
                    let value = self.expression(expr, scope)?;
                    selected.push(self.selected(fold(alias), value)?);
                }
                SelectItem::Wildcard(options) => {
                    let position = self.span_start(options.wildcard_token.0.span);
                    let columns = scope.all_columns();
                    if columns.is_empty() {
                        let message = "SELECT * with no tables specified is not valid";
                        let error = SqlError::new(SqlState::SyntaxError, message);
                        return Err(error.at(position as usize));
                    }
                    selected.extend(columns.into_iter().map(|column| all_of(column, position)));
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => {
                    let place = self.position(name);
                    let position = place as usize;
                    let folded = object_name(name)?;
                    let relation = scope.relation(&folded).ok_or_else(|| {
                        let message = format!("missing FROM-clause entry for table \"{folded}\"");
                        SqlError::new(SqlState::UndefinedTable, message).at(position)
                    })?;
                    selected.extend(relation.columns.iter().map(|column| all_of(column, place)));
                }
                other => return Err(SqlError::unsupported(format!("{other} in SELECT"))),
            }
        }
        Ok(selected)
    }

    fn selected(&mut self, name: SmolStr, value: Typed) -> Result<Selected> {
        let is_unknown = value.data_type.is_none() && value.expr.as_constant().is_some();
        Ok(Selected { name, value: self.settle(value)?, is_unknown })
    }

    /// RETURNING.
    pub(super) fn returning(
        &mut self,
        items: &[SelectItem],
        scope: &Scope,
    ) -> Result<super::Returning> {
        let (selected, level) = self.level(|binder| binder.projection(items, scope))?;
        if !level.subqueries.is_empty() {
            return Err(SqlError::unsupported("a subquery in RETURNING"));
        }
        let columns = selected.iter().map(|selected| OutputColumn {
            name: selected.name.clone(),
            data_type: selected.value.data_type.unwrap_or(DataType::Text),
        });
        let columns = columns.collect();
        Ok(super::Returning {
            outputs: selected.into_iter().map(|one| one.value.expr).collect(),
            columns,
        })
    }

    fn group_keys(
        &mut self,
        group_by: &GroupByExpr,
        selected: &[Selected],
        scope: &Scope,
    ) -> Result<Option<Vec<Expr>>> {
        let GroupByExpr::Expressions(list, modifiers) = group_by else {
            return Err(SqlError::unsupported("GROUP BY ALL"));
        };
        if !modifiers.is_empty() {
            return Err(SqlError::unsupported("this form of GROUP BY"));
        }
        if list.is_empty() {
            return Ok(None);
        }
        let mut keys: Vec<Expr> = Vec::new();
        for item in list {
            let position = self.position(item) as usize;
            let key = match self.output_named(item, selected, scope)? {
                Some(output) => selected[output].value.expr.clone(),
                None => {
                    let value = self.expression(item, scope)?;
                    self.settle(value)?.expr
                }
            };
            let mut aggregate = false;
            key.each_column(&mut |column| aggregate |= column.column >= AGGREGATES);
            if aggregate {
                let message = "aggregate functions are not allowed in GROUP BY";
                return Err(SqlError::new(SqlState::GroupingError, message).at(position));
            }
            keys.push(key);
        }
        Ok(Some(keys))
    }

    /// The output that a key of ORDER BY or GROUP BY is: by its number, or by a name that is no column's.
    fn output_named(
        &self,
        item: &Ast,
        selected: &[Selected],
        scope: &Scope,
    ) -> Result<Option<usize>> {
        match item {
            Ast::Value(value) => match &value.value {
                ast::Value::Number(digits, _) => {
                    let number =
                        digits.parse::<usize>().ok().filter(|n| (1..=selected.len()).contains(n));
                    let position = self.position(item) as usize;
                    number.map(|number| Some(number - 1)).ok_or_else(|| {
                        let message = format!("position {digits} is not in select list");
                        SqlError::new(SqlState::InvalidColumnReference, message).at(position)
                    })
                }
                _ => Ok(None),
            },
            Ast::Identifier(ident) => {
                let name = fold(ident);
                if scope.resolve(None, &name).is_ok() {
                    return Ok(None);
                }
                Ok(selected.iter().position(|one| one.name == name))
            }
            _ => Ok(None),
        }
    }

    fn order(
        &mut self,
        order: &[ast::OrderByExpr],
        selected: &[Selected],
        scope: Option<&Scope>,
    ) -> Result<Vec<OrderKey>> {
        let nowhere = Scope::default();
        let mut keys = Vec::with_capacity(order.len());
        for item in order {
            let descending = match &item.options.sort {
                None | Some(ast::OrderBySort::Asc) => false,
                Some(ast::OrderBySort::Desc) => true,
                Some(_) => return Err(SqlError::unsupported("ORDER BY USING")),
            };
            let nulls_first = item.options.nulls_first.unwrap_or(descending);
            // Other than in GROUP BY, the name of an output counts before that of a column.
            let output = match &item.expr {
                Ast::Identifier(ident) => {
                    let name = fold(ident);
                    selected.iter().position(|one| one.name == name)
                }
                other => self.output_named(other, selected, scope.unwrap_or(&nowhere))?,
            };
            let expr = match (output, scope) {
                (Some(output), _) => selected[output].value.expr.clone(),
                (None, Some(scope)) => {
                    let value = self.expression(&item.expr, scope)?;
                    self.settle(value)?.expr
                }
                (None, None) => {
                    let position = self.position(&item.expr) as usize;
                    let error = match &item.expr {
                        Ast::Identifier(name) => {
                            let message = format!("column \"{}\" does not exist", fold(name));
                            SqlError::new(SqlState::UndefinedColumn, message)
                        }
                        _ => SqlError::unsupported(
                            "ORDER BY of a set operation or VALUES by what is no output column",
                        ),
                    };
                    return Err(error.at(position));
                }
            };
            let output = output.or_else(|| selected.iter().position(|one| one.value.expr == expr));
            keys.push(OrderKey { expr, output, descending, nulls_first });
        }
        Ok(keys)
    }

    /// Which rows FOR UPDATE is about, and what becomes of those that others keep.
    fn row_lock(&self, lock: &ast::LockClause, scope: &Scope) -> Result<RowLock> {
        let wait = match &lock.nonblock {
            None => LockWait::Wait,
            Some(ast::NonBlock::Nowait) => LockWait::Fail,
            Some(ast::NonBlock::SkipLocked) => LockWait::Skip,
        };
        let Some(name) = &lock.of else { return Ok(RowLock { of: None, wait }) };
        let position = self.position(name) as usize;
        let name = super::object_name(name).map_err(|error| error.at(position))?;
        let relation = scope.relations.iter().find(|relation| relation.name == name);
        let slot =
            relation.and_then(|relation| relation.columns.first()).map(|column| column.at.slot);
        if slot.is_none() {
            let message =
                format!("relation \"{name}\" in FOR UPDATE clause not found in FROM clause");
            return Err(SqlError::new(SqlState::UndefinedTable, message).at(position));
        }
        Ok(RowLock { of: slot, wait })
    }

    fn values(
        &mut self,
        rows: &[ast::Parens<Vec<Ast>>],
        order: &[ast::OrderByExpr],
        outer: Option<Arc<Scope>>,
    ) -> Result<Query> {
        let scope = Scope { outer, ..Scope::default() };
        let width = rows.first().map_or(0, |row| row.content.len());
        let (columns, level) = self.level(|binder| {
            let mut columns: Vec<Vec<Typed>> = (0..width).map(|_| Vec::new()).collect();
            for row in rows {
                if row.content.len() != width {
                    let message = "VALUES lists must all be the same length";
                    let position = row.content.first().map_or(0, |value| binder.position(value));
                    let error = SqlError::new(SqlState::SyntaxError, message);
                    return Err(error.at(position as usize));
                }
                for (column, value) in columns.iter_mut().zip(&row.content) {
                    column.push(binder.expression(value, &scope)?);
                }
            }
            Ok(columns)
        })?;
        if !level.subqueries.is_empty() {
            return Err(SqlError::unsupported("a subquery in VALUES"));
        }
        let mut table: Vec<Vec<Expr>> = rows.iter().map(|_| Vec::with_capacity(width)).collect();
        let mut outputs = Vec::with_capacity(width);
        for (number, column) in columns.into_iter().enumerate() {
            let (exprs, data_type) = self.unify(column, "VALUES")?;
            for (row, expr) in table.iter_mut().zip(exprs) {
                row.push(expr);
            }
            outputs.push(OutputColumn {
                name: SmolStr::new(format!("column{}", number + 1)),
                data_type,
            });
        }
        let order = self.order_of_outputs(order, &outputs, usize::MAX)?;
        Ok(Query { body: Body::Values(table), columns: outputs, order, limit: None, offset: None })
    }

    /// ORDER BY of what has no rows of its own to read, but only an answer, which stands in that slot.
    pub(super) fn order_of_outputs(
        &mut self,
        order: &[ast::OrderByExpr],
        columns: &[OutputColumn],
        slot: usize,
    ) -> Result<Vec<OrderKey>> {
        let selected: Vec<Selected> = columns
            .iter()
            .enumerate()
            .map(|(column, output)| Selected {
                name: output.name.clone(),
                value: Typed::new(Expr::column(slot, column), output.data_type, 0),
                is_unknown: false,
            })
            .collect();
        self.order(order, &selected, None)
    }
}

fn all_of(column: &super::ScopeColumn, position: u32) -> Selected {
    let value = Typed::new(Expr::Column(column.at), column.data_type, position);
    Selected { name: column.name.clone(), value, is_unknown: false }
}

fn check_form(select: &ast::Select) -> Result<()> {
    let plain = select.top.is_none()
        && select.lateral_views.is_empty()
        && select.prewhere.is_none()
        && select.connect_by.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
        && select.named_window.is_empty()
        && select.qualify.is_none()
        && select.exclude.is_none();
    if plain { Ok(()) } else { Err(SqlError::unsupported("this form of SELECT")) }
}
