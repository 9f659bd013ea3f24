//! LIKE of CREATE TABLE: columns, and what else is taken of another table.
//!
//! Names of keys and indexes are made again, those of CHECK constraints are kept, as in PostgreSQL.

use smol_str::SmolStr;

use super::super::{Binder, Derivation};
use super::table_outline::Outline;
use crate::bind::rights::Right;
use crate::catalog::{
    Column, Index, NewCheck, NewColumn, NewGenerated, NewIdentity, NewIndex, NewIndexExpression,
    NewIndexPredicate, NewKey, NewTable, Privileges, Relation, SequenceOptions, Table, View,
};
use crate::error::Result;
use crate::parse::LikeClause;
use crate::schema::errors::named_twice;

/// Returns the names of columns of these numbers.
fn names_of(table: &Table, numbers: &[u16]) -> Vec<SmolStr> {
    let columns = table.columns.iter().filter(|column| numbers.contains(&column.id));
    columns.map(|column| column.name.clone()).collect()
}

fn names_at(table: &Table, positions: impl Iterator<Item = usize>) -> Vec<SmolStr> {
    positions.filter_map(|at| table.columns.get(at)).map(|column| column.name.clone()).collect()
}

impl Binder<'_> {
    /// Adds the columns of another table to the outline and returns them. `new` gets what else the
    /// options include.
    pub(super) fn columns_like(
        &mut self,
        like: &LikeClause,
        outline: &mut Outline,
        new: &mut NewTable,
    ) -> Result<Vec<NewColumn>> {
        let name = self.relation_name(&like.table)?;
        if let Some(Relation::View(view)) = self.names.relation(&name)? {
            return self.columns_of_view(&view, outline);
        }
        let table = self.defined_table(&like.table, Right::Whole(Privileges::SELECT))?;
        let mut columns = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            if outline.column(&column.name).is_some() {
                return Err(named_twice(&column.name));
            }
            let collation = Derivation::of_column(column.collation);
            outline.columns.push((column.name.clone(), column.data_type, collation));
            let copied = self.column_like(&table, column, like)?;
            if copied.generated.is_some() {
                outline.generated.push(column.name.clone());
            }
            columns.push(copied);
        }
        if like.including.constraints {
            new.checks.extend(table.checks.iter().map(|check| NewCheck {
                name: Some(check.name.clone()),
                expression: check.expression.clone(),
                columns: names_of(&table, &check.columns),
                not_valid: false,
                no_inherit: false,
            }));
        }
        if like.including.indexes {
            if let Some(key) = &table.primary_key {
                outline.take_primary_key()?;
                let columns = names_at(&table, key.columns.iter().copied());
                new.primary_key = Some(NewKey { columns, method: key.method, ..NewKey::default() });
            }
            for index in &table.indexes {
                match index.is_constraint {
                    true if index.is_primary => {
                        outline.take_primary_key()?;
                        new.primary_key = Some(key_like(&table, index));
                    }
                    true => new.uniques.push(key_like(&table, index)),
                    false => new.indexes.push(index_like(&table, index, new.name.clone())),
                }
            }
        }
        if like.including.comments {
            let comment = |column: &Column| {
                Some((column.name.clone(), table.comments.get(&column.id)?.clone()))
            };
            new.comments.extend(table.columns.iter().filter_map(comment));
        }
        Ok(columns)
    }

    /// As [`columns_like`](Self::columns_like), of a view.
    fn columns_of_view(&mut self, view: &View, outline: &mut Outline) -> Result<Vec<NewColumn>> {
        self.check_view_right(view, Right::Whole(Privileges::SELECT))?;
        let found = Binder::new(self.names, "").view(view)?.columns;
        let mut columns = Vec::with_capacity(found.len());
        for column in found {
            if outline.column(&column.name).is_some() {
                return Err(named_twice(&column.name));
            }
            outline.columns.push((column.name.clone(), column.data_type, column.collation));
            columns.push(column.to_new_column());
        }
        Ok(columns)
    }

    fn column_like(&self, table: &Table, column: &Column, like: &LikeClause) -> Result<NewColumn> {
        let mut new = NewColumn {
            name: column.name.clone(),
            data_type: column.data_type,
            domain: column.domain,
            collation: column.collation,
            not_null: column.not_null,
            default: None,
            identity: None,
            generated: None,
        };
        match (&column.generated, &column.default) {
            (Some(reads), Some(expression)) if like.including.generated => {
                let (expression, columns) = (expression.clone(), names_of(table, reads));
                new.generated = Some(NewGenerated { expression, columns });
            }
            (None, Some(default)) if like.including.defaults => new.default = Some(default.clone()),
            _ => {}
        }
        if let Some(identity) = column.identity.filter(|_| like.including.identity) {
            let name = self.names.sequence_name(identity.sequence);
            let sequence = name.map(|name| self.names.relation(&name)).transpose()?.flatten();
            let mut options = SequenceOptions::default();
            if let Some(Relation::Sequence(sequence)) = sequence {
                options = SequenceOptions {
                    data_type: Some(sequence.data_type),
                    start: Some(sequence.start),
                    increment: Some(sequence.increment),
                    minimum: Some(sequence.minimum),
                    maximum: Some(sequence.maximum),
                    cycle: sequence.cycle,
                    ..SequenceOptions::default()
                };
            }
            new.identity = Some(NewIdentity { always: identity.always, is_serial: false, options });
        }
        Ok(new)
    }
}

fn key_like(table: &Table, index: &Index) -> NewKey {
    NewKey {
        name: None,
        columns: names_at(table, index.columns.iter().map(|column| column.position)),
        method: index.method,
        include: names_at(table, index.include.iter().copied()),
        nulls_not_distinct: index.nulls_not_distinct,
        timing: index.timing,
    }
}

fn index_like(table: &Table, index: &Index, of: SmolStr) -> NewIndex {
    let mut new = NewIndex {
        table: of,
        unique: index.unique,
        method: index.method,
        include: names_at(table, index.include.iter().copied()),
        nulls_not_distinct: index.nulls_not_distinct,
        ..NewIndex::default()
    };
    for (place, column) in index.columns.iter().enumerate() {
        let name = match index.expression(column.position) {
            Some(expression) => {
                let copied = NewIndexExpression {
                    text: expression.text.clone(),
                    data_type: expression.data_type,
                    collation: column.collation,
                    columns: names_of(table, &expression.columns),
                };
                new.expressions.push((place, copied));
                expression.name.clone()
            }
            None => table.columns.get(column.position).map_or("".into(), |it| it.name.clone()),
        };
        new.collations.push((place, column.collation));
        let is_default = column.nulls_first == column.descending;
        let nulls_first = (!is_default).then_some(column.nulls_first);
        new.columns.push((name, column.descending, nulls_first));
    }
    new.predicate = index.predicate.as_ref().map(|predicate| NewIndexPredicate {
        text: predicate.text.clone(),
        columns: names_of(table, &predicate.columns),
    });
    new
}
