//! Common table expressions: WITH, and recursive queries.
//!
//! A common table expression with one reference is bound in its place, as a query in FROM. One with
//! several references, a volatile one, or one that is MATERIALIZED is stored: it is computed once,
//! and references scan it.

use std::ops::Range;
use std::sync::Arc;

use smol_str::SmolStr;
use sqlparser::ast::{self, CteAsMaterialized, SetExpr, SetOperator, SetQuantifier};

use super::syntax::traversals::in_order_of_reading;
use crate::bind::types::undefined::no_common_type;
use crate::bind::{
    Binder, Body, CommonTable, OutputColumn, Query, Recursive, Scope, Source, Stored, fold,
};
use crate::error::{Result, SqlError, SqlState};

/// The source of the rows of a common table expression.
#[derive(Clone)]
pub(in crate::bind) enum CteSource {
    /// Its query, in the place of the reference.
    Query(Arc<Query>),
    /// A slot that stores its rows.
    Stored(usize, Vec<OutputColumn>),
    /// The working table of the recursive query that is bound now, and its references so far.
    Working(usize, Vec<OutputColumn>, usize),
    /// A part of the query is bound now that must not read it.
    Forbidden(&'static str),
    /// A statement that changes rows and has no RETURNING.
    WithoutRows,
    /// A query of WITH RECURSIVE that reads the one that is bound now.
    Mutual(usize),
}

/// The part of a recursive query before UNION.
pub(in crate::bind) const NON_RECURSIVE: &str = "its non-recursive term";

#[cold]
fn recursion_error(message: String, position: usize) -> SqlError {
    SqlError::new(SqlState::InvalidRecursion, message).at(position)
}

/// Returns whether a query of WITH changes rows.
pub(in crate::bind) fn changes_rows(common: &ast::Cte) -> bool {
    matches!(
        &*common.query.body,
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_)
    )
}

/// Whether a query has effects, or values that differ each time, so that it is computed once.
fn is_volatile(query: &Query) -> bool {
    let mut volatile = false;
    query.each_expression(&mut |expr| volatile |= expr.is_volatile());
    volatile
}

impl Binder<'_> {
    /// Binds WITH. Its names stay until the caller truncates `ctes`. Returns the stored tables.
    pub(in crate::bind) fn common_tables(
        &mut self,
        with: &ast::With,
        outer: Option<Arc<Scope>>,
    ) -> Result<Vec<CommonTable>> {
        let mut stored = Vec::new();
        let ordered = in_order_of_reading(with);
        self.refuse_mutual_recursion(with);
        let known = self.ctes.len();
        let mut tables = ordered.iter().peekable();
        while let Some(common) = self.next_common(&mut tables, outer.as_ref())? {
            let common = &*common;
            let name = fold(&common.alias.name);
            let position = self.place_of(&common.alias.name);
            if self.ctes.iter().skip(known).any(|(other, _)| *other == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return Err(SqlError::new(SqlState::DuplicateAlias, message).at(position));
            }
            stored.extend(self.common_table_of(common, name, with.recursive, outer.clone())?);
        }
        Ok(stored)
    }

    /// Makes the names of WITH RECURSIVE mean queries that are not bound yet, and that cannot be
    /// read: those that are bound come after them.
    pub(in crate::bind) fn refuse_mutual_recursion(&mut self, with: &ast::With) {
        let Some(first) = with.cte_tables.first().filter(|_| with.recursive) else { return };
        let position = self.place_of(&first.alias.name);
        let later = with.cte_tables.iter().skip(1);
        let names = later.map(|it| (fold(&it.alias.name), CteSource::Mutual(position)));
        self.ctes.extend(names);
    }

    /// Binds one query of WITH, whose name is known from then on. Returns it if it is stored.
    pub(in crate::bind) fn common_table_of(
        &mut self,
        common: &ast::Cte,
        name: SmolStr,
        is_recursive: bool,
        outer: Option<Arc<Scope>>,
    ) -> Result<Option<CommonTable>> {
        let position = self.place_of(&common.alias.name);
        if changes_rows(common) {
            let message =
                "WITH clause containing a data-modifying statement must be at the top level";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message).at(position));
        }
        let (mut bound, own) = match is_recursive {
            true => self.maybe_recursive(common, &name, outer)?,
            false => (self.nested(|binder| binder.query(&common.query, outer))?, 0),
        };
        self.name_columns(&mut bound.columns, common, &name, position)?;
        // The rows of two references that are planned in their places would share row slots, so
        // that one overwrote the current row of the other. NOT MATERIALIZED changes no answer.
        let is_stored = common.materialized == Some(CteAsMaterialized::Materialized)
            || self.references(&name) > own + 1
            || is_volatile(&bound);
        if !is_stored {
            self.ctes.push((name, CteSource::Query(Arc::new(bound))));
            return Ok(None);
        }
        let columns = bound.columns.clone();
        let slot = self.add_slot(name.clone(), Source::Query(columns.clone().into()));
        self.ctes.push((name, CteSource::Stored(slot, columns)));
        Ok(Some(CommonTable { slot, query: bound }))
    }

    /// Gives columns the names that the alias lists.
    pub(in crate::bind) fn name_columns(
        &self,
        columns: &mut [OutputColumn],
        common: &ast::Cte,
        name: &str,
        position: usize,
    ) -> Result<()> {
        let (given, present) = (common.alias.columns.len(), columns.len());
        if given > present {
            let message = format!(
                "WITH query \"{name}\" has {present} columns available but {given} columns specified"
            );
            return Err(SqlError::new(SqlState::InvalidColumnReference, message).at(position));
        }
        for (column, name) in columns.iter_mut().zip(&common.alias.columns) {
            column.name = fold(&name.name);
        }
        Ok(())
    }

    /// Counts the references to the recursive queries that are bound now.
    pub(in crate::bind) fn recursive_references(&self) -> usize {
        let count = |(_, source): &(SmolStr, CteSource)| match source {
            CteSource::Working(_, _, references) => *references,
            _ => 0,
        };
        self.ctes.iter().map(count).sum()
    }

    /// Refuses references to a recursive query, given by their numbers, in a part of its recursive
    /// term from which rows can be missing.
    pub(in crate::bind) fn check_no_recursion(
        &self,
        references: Range<usize>,
        part: &str,
        position: usize,
    ) -> Result<()> {
        if references.is_empty() {
            return Ok(());
        }
        let is_bound = |entry: &&(SmolStr, CteSource)| match &entry.1 {
            CteSource::Working(_, _, references) => *references > 0,
            _ => false,
        };
        let name = self.ctes.iter().rfind(is_bound).map_or("", |(name, _)| name.as_str());
        let message =
            format!("recursive reference to query \"{name}\" must not appear within {part}");
        Err(recursion_error(message, position))
    }

    /// Counts the places of the text that may name a common table expression. An alias or a
    /// qualified column may be counted too: then the table is stored without need.
    pub(in crate::bind) fn references(&self, name: &str) -> usize {
        crate::parse::count_table_names(self.text.as_str(), name)
    }

    /// Binds a query of WITH RECURSIVE. Returns the query, and the number of its references to
    /// itself.
    fn maybe_recursive(
        &mut self,
        common: &ast::Cte,
        name: &SmolStr,
        outer: Option<Arc<Scope>>,
    ) -> Result<(Query, usize)> {
        let plain = |binder: &mut Self| {
            let known = binder.ctes.len();
            binder.ctes.push((name.clone(), CteSource::Forbidden(NON_RECURSIVE)));
            let bound = binder.nested(|binder| binder.query(&common.query, outer.clone()));
            binder.ctes.truncate(known);
            Ok((bound?, 0))
        };
        let SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right } =
            &*common.query.body
        else {
            return plain(self);
        };
        let all = match set_quantifier {
            SetQuantifier::All => true,
            SetQuantifier::None | SetQuantifier::Distinct => false,
            _ => return Err(SqlError::unsupported("set operations by name")),
        };
        let position = self.place_of(&common.alias.name);
        let own = self.ctes.len();
        self.ctes.push((name.clone(), CteSource::Forbidden("a subquery")));
        let with = match &common.query.with {
            Some(with) => self.common_tables(with, outer.clone())?,
            None => Vec::new(),
        };
        self.set_source(own, CteSource::Forbidden(NON_RECURSIVE));
        let mut base = self.nested(|binder| binder.term(left, outer.clone()))?;
        self.name_columns(&mut base.columns, common, name, position)?;
        let columns = base.columns.clone();
        let working = self.add_slot(name.clone(), Source::Query(columns.clone().into()));
        self.set_source(own, CteSource::Working(working, columns.clone(), 0));
        let mut step = self.nested(|binder| binder.term(right, outer.clone()))?;
        let references = match self.ctes.get(own) {
            Some((_, CteSource::Working(_, _, references))) => *references,
            _ => 0,
        };
        self.ctes.truncate(own);
        if references == 0 {
            return plain(self);
        }
        self.check_terms(common, name, &columns, &step, references)?;
        self.check_recursive_collations(name, &columns, &step.columns, all)?;
        self.convert_term(&mut step, &columns);
        let slot = self.add_slot(name.clone(), Source::Computed);
        let body = Body::Recursive(Box::new(Recursive { base, step, all, working, slot }));
        let query = Query { with, ..Query::plain(body, columns) };
        Ok((query, references))
    }

    fn set_source(&mut self, number: usize, source: CteSource) {
        if let Some((_, known)) = self.ctes.get_mut(number) {
            *known = source;
        }
    }

    fn check_terms(
        &self,
        common: &ast::Cte,
        name: &str,
        columns: &[OutputColumn],
        step: &Query,
        references: usize,
    ) -> Result<()> {
        let position = self.place_of(&common.alias.name);
        if common.query.order_by.is_some() {
            return Err(SqlError::unsupported("ORDER BY in a recursive query").at(position));
        }
        if common.query.limit_clause.is_some() || common.query.fetch.is_some() {
            return Err(SqlError::unsupported("LIMIT in a recursive query").at(position));
        }
        if !common.query.locks.is_empty() {
            let what = "FOR UPDATE/SHARE in a recursive query";
            return Err(SqlError::unsupported(what).at(position));
        }
        if references > 1 {
            let message =
                format!("recursive reference to query \"{name}\" must not appear more than once");
            return Err(recursion_error(message, position));
        }
        if let Body::Select(select) = &step.body
            && select.group.as_ref().is_some_and(|group| !group.aggregates.is_empty())
        {
            let message =
                "aggregate functions are not allowed in a recursive query's recursive term";
            return Err(recursion_error(message.to_owned(), position));
        }
        if columns.len() != step.columns.len() {
            let message = "each UNION query must have the same number of columns";
            return Err(SqlError::new(SqlState::SyntaxError, message).at(position));
        }
        for (number, (a, b)) in columns.iter().zip(&step.columns).enumerate() {
            let (a, b) = (a.data_type, b.data_type);
            let is_unknown = self.unknown.get(number) == Some(&true);
            let overall = match is_unknown {
                true => Some(a),
                false => crate::bind::types::common(a, b),
            };
            if overall == Some(a) {
                continue;
            }
            let message = match overall {
                Some(overall) => format!(
                    "recursive query \"{name}\" column {} has type {a} in non-recursive term but type {overall} overall",
                    number + 1
                ),
                None => return Err(no_common_type("UNION", a, b).at(position)),
            };
            return Err(SqlError::new(SqlState::DatatypeMismatch, message).at(position));
        }
        Ok(())
    }

    /// Returns the source of a common table expression that a name means, as a query of its own.
    pub(in crate::bind) fn common_table(
        &mut self,
        name: &str,
        position: usize,
    ) -> Result<Option<Arc<Query>>> {
        let Some(at) = self.ctes.iter().rposition(|(known, _)| known == name) else {
            return Ok(None);
        };
        let (from, columns) = match self.ctes.get_mut(at).map(|(_, source)| source) {
            Some(CteSource::Query(query)) => return Ok(Some(query.clone())),
            Some(CteSource::Stored(slot, columns)) => (*slot, columns.clone()),
            Some(CteSource::Working(slot, columns, references)) => {
                *references += 1;
                (*slot, columns.clone())
            }
            Some(CteSource::Forbidden(part)) => {
                let message = format!(
                    "recursive reference to query \"{name}\" must not appear within {part}"
                );
                return Err(recursion_error(message, position));
            }
            Some(CteSource::WithoutRows) => {
                let message = format!("WITH query \"{name}\" does not have a RETURNING clause");
                return Err(SqlError::new(SqlState::FeatureNotSupported, message).at(position));
            }
            Some(CteSource::Mutual(first)) => {
                let message = "mutual recursion between WITH items is not implemented";
                let error = SqlError::new(SqlState::FeatureNotSupported, message);
                return Err(error.at(*first));
            }
            None => return Ok(None),
        };
        let slot = self.add_slot(name.into(), Source::Query(columns.clone().into()));
        let body = Body::Stored(Stored { from, width: columns.len(), slot });
        Ok(Some(Arc::new(Query::plain(body, columns))))
    }
}
