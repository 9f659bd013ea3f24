//! FULL JOIN with USING: a merged name stands for the side that has a row.
//!
//! In an inner or outer join, the merged name always means one side's column. In a full join its
//! value is computed. The join therefore becomes a subquery in FROM. That subquery returns the
//! computed columns, followed by all columns of the join.

use std::sync::Arc;

use smol_str::SmolStr;

use crate::bind::tree::{Body, OutputColumn, Select};
use crate::bind::{
    Binder, Derivation, From, Query, Scope, ScopeColumn, ScopeRelation, Source, Typed,
};
use crate::error::Result;
use crate::expression::{ColumnRef, Expr, Function, TextPosition};
use crate::types::DataType;

/// A name of USING, and the column of either side.
pub(in crate::bind) type Pair = (SmolStr, ScopeColumn, ScopeColumn);

impl Binder<'_> {
    /// Makes a full join a query in FROM. `inside` is the scope of the join.
    pub(in crate::bind) fn full_using(
        &mut self,
        join: From,
        pairs: Vec<Pair>,
        scope: &mut Scope,
    ) -> Result<From> {
        let (mut outputs, mut columns) = (Vec::new(), Vec::new());
        let mut deliver =
            |expr: Expr, name: &SmolStr, data_type: DataType, collation: Derivation| {
                outputs.push(expr);
                columns.push(OutputColumn { name: name.clone(), data_type, collation });
            };
        for (name, left, right) in &pairs {
            let sides = [left, right].map(|c| Typed::new(c.value(), c.data_type, 0));
            let collation = self.common_collation(&sides)?;
            let (sides, data_type) = self.unify(sides.into(), "JOIN/USING")?;
            let call = Expr::Call(Function::COALESCE, sides, TextPosition(0));
            deliver(call, name, data_type, collation);
        }
        let inside = scope.relations.iter().flat_map(|relation| &relation.columns);
        for column in inside.filter(|column| column.stored.is_none()) {
            deliver(Expr::Column(column.at), &column.name, column.data_type, column.collation);
        }
        let sources: Vec<Option<ColumnRef>> = outputs.iter().map(Expr::as_column).collect();
        let slot = self.add_slot(SmolStr::default(), Source::Query(columns.clone().into()));
        let query = Arc::new(of(join, outputs, &columns));
        let moved = |at: ColumnRef| {
            let column = sources.iter().position(|source| *source == Some(at));
            column.map_or(at, |column| ColumnRef { slot, column })
        };
        for relation in &mut scope.relations {
            relation.columns.iter_mut().for_each(|column| column.at = moved(column.at));
            relation.origin.iter_mut().for_each(|origin| origin.joined.push(slot));
        }
        scope.hidden.iter_mut().for_each(|(at, _)| *at = moved(*at));
        scope.star.iter_mut().for_each(|at| *at = moved(*at));
        let mut named = Vec::with_capacity(pairs.len());
        for (column, (name, left, right)) in pairs.into_iter().enumerate() {
            let at = ColumnRef { slot, column };
            let known = columns.get(column);
            let data_type = known.map_or(left.data_type, |known| known.data_type);
            let collation = known.map_or(left.collation, |known| known.collation);
            scope.hidden.push((moved(left.at), left.data_type));
            scope.hidden.push((moved(right.at), right.data_type));
            scope.star.retain(|at| *at != moved(left.at) && *at != moved(right.at));
            named.push(ScopeColumn { name, data_type, at, collation, stored: None });
        }
        let rest = std::mem::take(&mut scope.star);
        scope.add(ScopeRelation { columns: named, ..ScopeRelation::default() })?;
        scope.star.extend(rest);
        Ok(From::query(slot, query))
    }
}

/// A query of nothing but a join.
fn of(join: From, outputs: Vec<Expr>, columns: &[OutputColumn]) -> Query {
    let select = Select::plain(Some(join), outputs, Vec::new());
    Query::plain(Body::Select(Box::new(select)), columns.to_vec())
}
