//! Vectorized filters on joined rows: WHERE above outer joins.
//!
//! Above: vectorized steps. Below: the vector source.

use super::super::row::{Context, OperatorBuilder};
use super::evaluate::VectorExpr;
use super::source::{ColumnBatch, VectorSource};
use super::{conjuncts_of, known_columns, no_formula};
use crate::error::Result;
use crate::expression::{ColumnRef, Expr};
use crate::plan::PlanNode;
use crate::types::DataType;

/// The rows of a source that satisfy conditions.
#[derive(Debug)]
pub struct Filter {
    pub source: VectorSource,
    conditions: Vec<VectorExpr>,
    /// The columns read that are returned.
    outputs: Vec<usize>,
    begun: bool,
    /// Rows returned, if they are counted.
    delivered: Option<u64>,
}

impl Filter {
    /// Makes the filter. `columns` are those that it reads and returns, `wanted` those that it
    /// returns.
    pub fn new(
        input: &PlanNode,
        condition: &Expr,
        columns: &[(ColumnRef, DataType)],
        wanted: &[(ColumnRef, DataType)],
        builder: &OperatorBuilder<'_>,
    ) -> Result<Filter> {
        let known = known_columns(columns, builder.parameters());
        let conditions = conjuncts_of(Some(condition));
        let conditions = conditions.iter().map(|part| known.formula(part).ok_or_else(no_formula));
        let place = |column: &(ColumnRef, DataType)| {
            columns.iter().position(|known| known == column).ok_or_else(no_formula)
        };
        Ok(Filter {
            source: VectorSource::of(input, columns, builder)?,
            conditions: conditions.collect::<Result<Vec<VectorExpr>>>()?,
            outputs: wanted.iter().map(place).collect::<Result<Vec<usize>>>()?,
            begun: false,
            delivered: builder.is_counted().then_some(0),
        })
    }

    pub fn rewind(&mut self) {
        self.source.rewind();
        self.begun = false;
    }

    /// Collects the row counts here and below, for EXPLAIN ANALYZE.
    pub fn counts(&self, counts: &mut Vec<u64>) {
        counts.extend(self.delivered);
        self.source.counts(counts);
    }

    /// See [`VectorSource::prepare`].
    pub fn prepare(&mut self, context: &mut Context<'_>) -> Result<bool> {
        self.begin(context)?;
        self.source.prepare(context)
    }

    /// See [`VectorSource::fork`].
    pub fn fork(&self) -> Option<Filter> {
        Some(Filter {
            source: self.source.fork()?,
            conditions: self.conditions.clone(),
            outputs: self.outputs.clone(),
            begun: true,
            delivered: self.delivered.map(|_| 0),
        })
    }

    /// See [`VectorSource::add_counts`].
    pub fn add_counts(&mut self, fork: &Filter) {
        self.delivered = self.delivered.zip(fork.delivered).map(|(own, more)| own + more);
        self.source.add_counts(&fork.source);
    }

    fn begin(&mut self, context: &Context<'_>) -> Result<()> {
        if !self.begun {
            self.begun = true;
            self.conditions.iter_mut().try_for_each(|condition| condition.begin(context))?;
        }
        Ok(())
    }

    /// Returns the next rows, or `None` at the end.
    pub fn next(&mut self, context: &mut Context<'_>) -> Result<Option<ColumnBatch>> {
        self.begin(context)?;
        while let Some(mut columns) = self.source.next(context)? {
            columns.narrow(&self.conditions)?;
            if columns.rows == 0 {
                continue;
            }
            if let Some(delivered) = &mut self.delivered {
                *delivered += columns.rows as u64;
            }
            let column = |nth: &usize| columns.vectors.get(*nth).cloned().ok_or_else(no_formula);
            columns.vectors = self.outputs.iter().map(column).collect::<Result<_>>()?;
            return Ok(Some(columns));
        }
        Ok(None)
    }
}
