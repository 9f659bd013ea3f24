//! FROM: tables, views, subqueries, joins.

use std::sync::Arc;

use quickbeam::invariant;
use smol_str::SmolStr;
use sqlparser::ast::{
    self, Expr as Ast, JoinOperator, ObjectName, TableAlias, TableFactor, TableWithJoins,
};

use super::catalogs::named_catalog;
use super::json_records::defines_columns;
use super::named_joins::natural_names;
use crate::bind::rights::Right;
use crate::bind::{
    Binder, Derivation, From, JoinKind, Query, QueryPart, RowOf, RowOrigin, Scope, ScopeColumn,
    ScopeRelation, Source, VIEW_DEPTH, VIEW_SLOTS, fold, object_name,
};
use crate::catalog::system::system_table;
use crate::catalog::{Privileges, Relation, Table, View};
use crate::error::{Result, SqlError, SqlState};
use crate::expression::{ColumnRef, Expr, Slots};
use crate::schema::errors::no_relation;
use crate::types::{DataType, Value};

/// Error message for more joins in one FROM than `MAX_DEPTH` allows.
const TOO_MANY_JOINS: &str = "too many tables are joined in one FROM";

impl Binder<'_> {
    /// Binds FROM and adds its relations to the scope.
    pub(in crate::bind) fn from(
        &mut self,
        list: &[TableWithJoins],
        scope: &mut Scope,
    ) -> Result<Option<From>> {
        // Joins nest to the left, so every walk over them recurses as deep.
        self.deeper(list.len().saturating_sub(1), TOO_MANY_JOINS, |binder| {
            binder.products(list, scope)
        })
    }

    /// The product of all in the list.
    fn products(&mut self, list: &[TableWithJoins], scope: &mut Scope) -> Result<Option<From>> {
        let mut whole: Option<From> = None;
        for item in list {
            let from = self.joined(item, scope)?;
            whole = Some(match whole {
                None => from,
                Some(left) => From::Join {
                    kind: JoinKind::Inner,
                    left: Box::new(left),
                    right: Box::new(from),
                    on: Vec::new(),
                },
            });
        }
        Ok(whole)
    }

    /// Joins what FROM has with functions that return rows for each row of it.
    pub(in crate::bind) fn and_rows_of(
        &mut self,
        from: Option<From>,
        list: &[TableWithJoins],
        scope: &mut Scope,
    ) -> Result<Option<From>> {
        // `*` does not mean their columns.
        let star = scope.star.clone();
        let right = self.products(list, scope)?;
        scope.star = star;
        Ok(match (from, right) {
            (Some(left), Some(right)) => Some(From::Join {
                kind: JoinKind::Inner,
                left: Box::new(left),
                right: Box::new(right),
                on: Vec::new(),
            }),
            (left, right) => left.or(right),
        })
    }

    pub(in crate::bind) fn joined(
        &mut self,
        item: &TableWithJoins,
        scope: &mut Scope,
    ) -> Result<From> {
        self.deeper(item.joins.len(), TOO_MANY_JOINS, |binder| binder.joins(item, scope))
    }

    fn joins(&mut self, item: &TableWithJoins, scope: &mut Scope) -> Result<From> {
        // Conditions of a join see the relations of the join only.
        let mut inside = Scope { outer: scope.outer.clone(), ..Scope::default() };
        if has_lateral(item) && !scope.relations.is_empty() {
            inside.before = Some(Arc::new(scope.clone()));
        }
        let without_left = self.recursive_references();
        let mut left = self.factor(&item.relation, &mut inside)?;
        for join in &item.joins {
            if join.global {
                return Err(SqlError::unsupported("this kind of join"));
            }
            let first_right = inside.relations.len();
            let without_right = self.recursive_references();
            let right = self.factor(&join.relation, &mut inside)?;
            let (kind, constraint, flipped) = match &join.join_operator {
                JoinOperator::Join(c) | JoinOperator::Inner(c) => (JoinKind::Inner, c, false),
                JoinOperator::CrossJoin(c) => (JoinKind::Inner, c, false),
                JoinOperator::Left(c) | JoinOperator::LeftOuter(c) => (JoinKind::Left, c, false),
                JoinOperator::Right(c) | JoinOperator::RightOuter(c) => (JoinKind::Left, c, true),
                JoinOperator::FullOuter(c) => (JoinKind::Full, c, false),
                _ => return Err(SqlError::unsupported("this kind of join")),
            };
            let with_both = self.recursive_references();
            let in_nullable = match (kind, flipped) {
                (JoinKind::Left, false) => without_right..with_both,
                (JoinKind::Left, true) => without_left..without_right,
                (JoinKind::Full, _) => without_left..with_both,
                (JoinKind::Inner, _) => 0..0,
            };
            let position = self.position(&join.relation) as usize;
            self.check_no_recursion(in_nullable, "an outer join", position)?;
            let using = Self::using_of(constraint);
            if self.expands() && *constraint == ast::JoinConstraint::Natural {
                self.note_natural(&join.relation, &natural_names(&inside, first_right));
            }
            let (on, pairs) =
                self.constraint(&using.constraint, kind, flipped, first_right, &mut inside)?;
            let must_not_read = flipped || kind == JoinKind::Full;
            if must_not_read && reads_of(&right).meets(&left.slots()) {
                let message = "invalid reference to FROM-clause entry: the combining JOIN type must be INNER or LEFT for a LATERAL reference";
                let position = self.position(&join.relation) as usize;
                return Err(SqlError::new(SqlState::InvalidColumnReference, message).at(position));
            }
            let (a, b) = if flipped { (right, left) } else { (left, right) };
            left = From::Join { kind, left: Box::new(a), right: Box::new(b), on };
            for (number, relation) in inside.relations.iter_mut().enumerate() {
                let is_right = number >= first_right;
                relation.is_nullable |= match kind {
                    JoinKind::Inner => false,
                    JoinKind::Left => is_right != flipped,
                    JoinKind::Full => true,
                };
            }
            if !pairs.is_empty() {
                left = self.full_using(left, pairs, &mut inside)?;
            }
            if let Some(alias) = using.alias {
                self.name_merged(alias, &using.constraint, &mut inside)?;
            }
        }
        let star: Vec<ColumnRef> = scope.star.iter().chain(&inside.star).copied().collect();
        for relation in inside.relations {
            let position = self.position(&item.relation) as usize;
            scope.add(relation).map_err(|error| error.at(position))?;
        }
        scope.hidden.extend(inside.hidden);
        scope.star = star;
        Ok(left)
    }

    /// Binds a condition and splits it at AND.
    pub(in crate::bind) fn conjuncts(
        &mut self,
        condition: &Ast,
        clause: &'static str,
        scope: &Scope,
    ) -> Result<Vec<Expr>> {
        let mut conjuncts = Vec::new();
        let around = self.levels.last_mut().map(|it| std::mem::replace(&mut it.clause, clause));
        let bound = self.condition(condition, clause, scope);
        if let (Some(level), Some(around)) = (self.levels.last_mut(), around) {
            level.clause = around;
        }
        bound?.into_conjuncts(&mut conjuncts);
        conjuncts.retain(|part| part.as_constant() != Some(&crate::types::Value::Boolean(true)));
        Ok(conjuncts)
    }

    fn factor(&mut self, factor: &TableFactor, scope: &mut Scope) -> Result<From> {
        self.check_factor(factor)?;
        match factor {
            TableFactor::Table { name, alias, args: None, sample: Some(sample), .. } => {
                let rows = self.sampled(name, alias.as_ref(), sample)?;
                self.factor(&rows, scope)
            }
            TableFactor::Table { name, alias, args: None, .. } => {
                self.named(name, alias.as_ref(), scope)
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                // A LATERAL subquery sees the items to its left. Any other subquery sees only the
                // enclosing query.
                let outer = if *lateral { lateral_scope(scope) } else { scope.outer.clone() };
                // A view may be older than this rule.
                if alias.is_none() && self.view_depth == 0 {
                    let message = "syntax error: a query in FROM must have an alias";
                    let position = self.position(&**subquery) as usize;
                    return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
                }
                let query = self.nested(|binder| binder.query(subquery, outer))?;
                self.derived(Arc::new(query), alias.as_ref(), None, scope)
            }
            TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
                let args = &args.args;
                self.table_function(name, args, *with_ordinality, alias.as_ref(), scope)
            }
            TableFactor::Function { name, args, with_ordinality, alias, .. } => {
                self.table_function(name, args, *with_ordinality, alias.as_ref(), scope)
            }
            TableFactor::UNNEST {
                alias, array_exprs, with_offset: false, with_ordinality, ..
            } => {
                let arguments: Vec<&Ast> = array_exprs.iter().collect();
                let ordinality = *with_ordinality;
                self.rows_of("unnest".into(), 0, &arguments, ordinality, alias.as_ref(), scope)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.nested(|binder| binder.joined(table_with_joins, scope))
            }
            TableFactor::NestedJoin { table_with_joins, alias: Some(alias) } => {
                self.named_join(table_with_joins, alias, scope)
            }
            other => Err(SqlError::unsupported(format!("{other} in FROM"))),
        }
    }

    /// Refuses clauses after a table that would have no effect here.
    pub(in crate::bind) fn check_factor(&self, factor: &TableFactor) -> Result<()> {
        let (is_plain, alias) = match factor {
            TableFactor::Table {
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions,
                json_path,
                sample,
                index_hints,
                ..
            } => {
                let is_plain = with_hints.is_empty()
                    && version.is_none()
                    && (!with_ordinality || args.is_some())
                    && partitions.is_empty()
                    && json_path.is_none()
                    && (sample.is_none() || args.is_none())
                    && index_hints.is_empty();
                (is_plain, alias.as_ref())
            }
            TableFactor::Derived { alias, sample, .. } => (sample.is_none(), alias.as_ref()),
            _ => return Ok(()),
        };
        let is_call = matches!(factor, TableFactor::Table { args: Some(_), .. });
        let is_name =
            |alias: &TableAlias| alias.at.is_none() && (is_call || !defines_columns(Some(alias)));
        if is_plain && alias.is_none_or(is_name) {
            return Ok(());
        }
        let position = self.position(factor) as usize;
        Err(SqlError::unsupported(format!("{factor} in FROM")).at(position))
    }

    fn named(
        &mut self,
        name: &ObjectName,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<From> {
        let position = self.position(name) as usize;
        if let Some(table) = named_catalog(name).map_err(|error| error.at(position))? {
            return self.catalog(table, alias, scope);
        }
        let own = object_name(name).map_err(|error| error.at(position))?;
        if name.0.len() == 1 {
            if let Some(query) = self.common_table(&own, position)? {
                return self.derived(query, alias, Some(own), scope);
            }
            if self.view_depth == 0
                && let Some((side, table)) = self.names.transition_table(&own)
            {
                return self.transition_rows((side, &table), own, alias, scope);
            }
            // Unless the path names it, pg_catalog comes first.
            if (own.starts_with("pg_") || own.starts_with("quickbeam_stat_"))
                && let Some(table) = system_table(None, &own)
            {
                return self.catalog(table, alias, scope);
            }
        }
        let folded = self.relation_name(name).map_err(|error| error.at(position))?;
        self.note_relation(name, &folded);
        let found = self.names.relation(&folded)?;
        if let Some(relation) = &found {
            self.note_place(name, relation, alias);
        }
        match found {
            Some(Relation::Table(table)) => {
                let right = Right::Has(Privileges::SELECT);
                self.check_table(&table, right).map_err(|error| error.at(position))?;
                invariant!(RIGHTS_1, self.knows_columns(table.id), "table {}", table.name);
                let slot = self.stored(table.clone(), alias, scope);
                let slot = slot.map_err(|error| error.at(position))?;
                self.restrict_table(&table, slot);
                Ok(From::Table(slot))
            }
            Some(Relation::View(view)) => {
                self.check_view(&view).map_err(|error| error.at(position))?;
                invariant!(RIGHTS_1, self.knows_columns(view.id), "view {}", view.name);
                let query = self.view(&view).map_err(|error| error.at(position))?;
                let from = self.derived(Arc::new(query), alias, Some(own), scope)?;
                if let From::Query(derived) = &from {
                    self.restrict_view(&view, derived.slot);
                }
                if let Some(relation) = scope.relations.last_mut() {
                    relation.row = RowOf::View(view);
                }
                Ok(from)
            }
            Some(Relation::Sequence(sequence)) => {
                self.check_sequence(sequence.id, &sequence.name, Privileges::SELECT)
                    .map_err(|error| error.at(position))?;
                self.views.push(sequence.id);
                self.sequence_row(&sequence, alias, scope)
            }
            Some(Relation::Index(..)) => {
                let message = format!("\"{own}\" is an index");
                Err(SqlError::new(SqlState::WrongObjectType, message).at(position))
            }
            None => Err(no_relation(&folded).at(position)),
        }
    }

    /// A table in FROM.
    pub(in crate::bind) fn stored(
        &mut self,
        table: Arc<Table>,
        alias: Option<&TableAlias>,
        scope: &mut Scope,
    ) -> Result<usize> {
        let name = alias.map_or_else(|| table.name.clone(), |alias| fold(&alias.name));
        let slot = self.add_slot(name.clone(), Source::Table(table.clone()));
        let columns = table.columns.iter().map(|column| {
            let collation = Derivation::of_column(column.collation);
            (column.name.clone(), column.data_type, collation)
        });
        let columns = named_columns(slot, columns, alias)?;
        let has_value = table.is_database() || table.columns.iter().any(|column| column.not_null);
        let origin = Some(RowOrigin::new(slot, has_value));
        scope.add(ScopeRelation { name, columns, origin, ..ScopeRelation::default() })?;
        Ok(slot)
    }

    pub(in crate::bind) fn derived(
        &mut self,
        query: Arc<Query>,
        alias: Option<&TableAlias>,
        name: Option<SmolStr>,
        scope: &mut Scope,
    ) -> Result<From> {
        let name = alias.map(|alias| fold(&alias.name)).or(name).unwrap_or_default();
        let source = Source::Query(query.columns.clone().into());
        let slot = self.add_slot(name.clone(), source);
        let columns = query.columns.iter();
        let columns = columns.map(|it| (it.name.clone(), it.data_type, it.collation));
        let columns = named_columns(slot, columns, alias)?;
        let origin = Some(RowOrigin::new(slot, self.never_null(&query).any(|it| it)));
        scope.add(ScopeRelation { name, columns, origin, ..ScopeRelation::default() })?;
        Ok(From::query(slot, query))
    }

    /// Binds the query of a view. Positions in its text do not belong to the statement's text.
    pub(in crate::bind) fn view(&mut self, view: &View) -> Result<Query> {
        if self.view_depth >= VIEW_DEPTH {
            let message = format!("view \"{}\" is nested too deep", view.name);
            return Err(SqlError::new(SqlState::StatementTooComplex, message));
        }
        if self.slots.len() >= VIEW_SLOTS {
            let message = format!("views are made of more than {VIEW_SLOTS} tables and queries");
            return Err(SqlError::new(SqlState::StatementTooComplex, message));
        }
        let parsed = crate::parse::query(&view.query)?;
        let text = std::mem::take(&mut self.text);
        let ctes = std::mem::take(&mut self.ctes);
        let path = self.path.take();
        let settings = std::mem::take(&mut self.settings);
        self.views.push(view.id);
        let owner = self.role_within(view);
        let role = std::mem::replace(&mut self.role, owner);
        self.view_depth += 1;
        let bound = self.nested(|binder| {
            invariant!(SCHEMA_NAME_2, binder.path.is_none(), "view {}", view.name);
            binder.query(&parsed, None)
        });
        self.view_depth -= 1;
        invariant!(RIGHTS_2, self.role == owner, "view {} read as {:?}", view.name, self.role);
        self.role = role;
        self.ctes = ctes;
        self.path = path;
        self.settings = settings;
        self.text = text;
        let mut query = bound?;
        for (column, name) in query.columns.iter_mut().zip(&view.columns) {
            column.name = name.clone();
        }
        if view.options.is_security_barrier() && query.offset.is_none() {
            // The planner moves no condition into a query with OFFSET.
            query.offset = Some(Expr::Constant(Value::BigInt(0)));
        }
        Ok(query)
    }
}

/// Returns the scope of a LATERAL item: the items to its left, before those around the query.
pub(in crate::bind) fn lateral_scope(scope: &Scope) -> Option<Arc<Scope>> {
    let outer = scope.before.clone().or_else(|| scope.outer.clone());
    Some(Arc::new(Scope { outer, before: None, ..scope.clone() }))
}

/// Whether an item of FROM has a part that may read the items to its left.
fn has_lateral(item: &TableWithJoins) -> bool {
    let is_lateral = |factor: &TableFactor| match factor {
        TableFactor::Derived { lateral, .. } => *lateral,
        TableFactor::Table { args, .. } => args.is_some(),
        TableFactor::Function { .. } | TableFactor::UNNEST { .. } => true,
        TableFactor::NestedJoin { table_with_joins, .. } => has_lateral(table_with_joins),
        _ => false,
    };
    is_lateral(&item.relation) || item.joins.iter().any(|join| is_lateral(&join.relation))
}

/// Returns the slots outside an item of FROM that the queries in it read.
fn reads_of(from: &From) -> Slots {
    let mut read = Slots::default();
    from.each_part(&mut |part| {
        if let QueryPart::Derived(derived) = part {
            read.extend(&derived.reads);
        }
    });
    read
}

fn named_columns(
    slot: usize,
    columns: impl ExactSizeIterator<Item = (SmolStr, DataType, Derivation)>,
    alias: Option<&TableAlias>,
) -> Result<Vec<ScopeColumn>> {
    let given = alias.map_or(&[][..], |alias| &alias.columns);
    if given.len() > columns.len() {
        let name = alias.map(|alias| fold(&alias.name)).unwrap_or_default();
        let (has, asked) = (columns.len(), given.len());
        let message =
            format!("table \"{name}\" has {has} columns available but {asked} columns specified");
        return Err(SqlError::new(SqlState::InvalidColumnReference, message));
    }
    let named = columns.enumerate().map(|(column, (name, data_type, collation))| ScopeColumn {
        name: given.get(column).map_or(name, |given| fold(&given.name)),
        data_type,
        at: ColumnRef { slot, column },
        collation,
        stored: None,
    });
    Ok(named.collect())
}
