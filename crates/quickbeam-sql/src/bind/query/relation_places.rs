//! Where a stored query names relations, so that it can be written again with other names.

use std::ops::Range;

use smol_str::SmolStr;
use sqlparser::ast::{ObjectName, Spanned, TableAlias};

use crate::bind::{Binder, Names, Source};
use crate::catalog::text::{quoted, quoted_relation};
use crate::catalog::{ObjectId, Relation};
use crate::error::Result;

/// A place in FROM that names a relation.
pub(in crate::bind) struct RelationPlace {
    relation: ObjectId,
    /// The relation's columns.
    columns: Vec<SmolStr>,
    /// The name, with its schema.
    name: Range<usize>,
    /// The end of the alias, and of its last column's name.
    alias: Option<(usize, usize)>,
    /// How many columns the alias names.
    named: usize,
}

/// Another name of a relation, or of one of its columns.
#[derive(Clone, Copy)]
pub enum NameChange<'n> {
    /// Its schema and its name.
    Relation(&'n str, &'n str),
    /// The position of a column.
    Column(usize),
}

fn columns_of(relation: &Relation) -> Option<(ObjectId, SmolStr, Vec<SmolStr>)> {
    Some(match relation {
        Relation::Table(table) => {
            let columns = table.columns.iter().map(|column| column.name.clone());
            (table.id, table.name.clone(), columns.collect())
        }
        Relation::View(view) => (view.id, view.name.clone(), view.columns.clone()),
        Relation::Sequence(sequence) => (sequence.id, sequence.name.clone(), Vec::new()),
        Relation::Index(..) => return None,
    })
}

impl Binder<'_> {
    /// Records where a relation is named.
    pub(in crate::bind) fn note_place(
        &mut self,
        name: &ObjectName,
        relation: &Relation,
        alias: Option<&TableAlias>,
    ) {
        if self.places.is_none() || self.view_depth > 0 {
            return;
        }
        let start = self.position(name) as usize;
        let name = start..self.text.offset_of(name.span().end);
        let end = |alias: &TableAlias| {
            let last = alias.columns.last().map_or(alias.name.span, |column| column.name.span);
            (self.text.offset_of(alias.name.span.end), self.text.offset_of(last.end))
        };
        let (named, alias) = (alias.map_or(0, |it| it.columns.len()), alias.map(end));
        let Some((relation, _, columns)) = columns_of(relation) else { return };
        let place = RelationPlace { relation, columns, name, alias, named };
        if let Some(places) = &mut self.places {
            // A part of the tree may be bound twice.
            let at = places.partition_point(|known| known.name.start < place.name.start);
            if places.get(at).is_none_or(|known| known.name.start != place.name.start) {
                places.insert(at, place);
            }
        }
    }
}

impl RelationPlace {
    /// Returns what is to be put where in the text for a change of names.
    fn edit(&self, old: &str, change: NameChange<'_>) -> Option<(Range<usize>, String)> {
        let list = |from: usize| {
            let names = self.columns.iter().skip(from).map(|name| quoted(name));
            names.collect::<Vec<_>>().join(", ")
        };
        match change {
            NameChange::Relation(schema, name) => {
                let mut text = quoted_relation(schema, name);
                // Columns are qualified with the name that the relation had.
                if self.alias.is_none() && name != old {
                    text.push_str(&format!(" AS {}", quoted(old)));
                }
                Some((self.name.clone(), text))
            }
            NameChange::Column(position) if position < self.named => None,
            NameChange::Column(_) => Some(match self.alias {
                None => {
                    let end = self.name.end;
                    (end..end, format!(" AS {} ({})", quoted(old), list(0)))
                }
                Some((end, _)) if self.named == 0 => (end..end, format!(" ({})", list(0))),
                Some((_, last)) => (last..last, format!(", {}", list(self.named))),
            }),
        }
    }
}

/// Returns the text of a stored query in which a relation, or one of its columns, has another name.
/// The query's own names of columns stay.
pub fn renamed_query(
    names: &dyn Names,
    text: &str,
    relation: &Relation,
    change: NameChange<'_>,
) -> Result<String> {
    let Some((id, old, _)) = columns_of(relation) else { return Ok(text.to_owned()) };
    let parsed = crate::parse::query(text)?;
    let mut binder = Binder { places: Some(Vec::new()), ..Binder::of_stored_text(names, text) };
    binder.query_statement(&parsed)?;
    let mut renamed = text.to_owned();
    for place in binder.places.unwrap_or_default().iter().rev().filter(|it| it.relation == id) {
        if let Some((range, with)) = place.edit(&old, change) {
            renamed.replace_range(range, &with);
        }
    }
    Ok(renamed)
}

/// Returns the views that do not read a column of a table, neither themselves nor through others.
pub fn views_without(names: &dyn Names, table: &str, column: &str) -> Result<Vec<ObjectId>> {
    let (Some(Relation::Table(table)), Some(snapshot)) = (names.relation(table)?, names.snapshot())
    else {
        return Ok(Vec::new());
    };
    let Some(position) = table.column(column) else { return Ok(Vec::new()) };
    let views: Vec<_> = snapshot.all_views().collect();
    let mut affected: Vec<ObjectId> = Vec::new();
    for view in views.iter().filter(|view| view.depends_on.contains(&table.id)) {
        if reads_column(names, &view.query, table.id, position)? {
            affected.push(view.id);
        }
    }
    let mut at = 0;
    while let Some(&id) = affected.get(at) {
        at += 1;
        for view in views.iter().filter(|view| view.depends_on.contains(&id)) {
            if !affected.contains(&view.id) {
                affected.push(view.id);
            }
        }
    }
    let spared = views.iter().map(|view| view.id).filter(|id| !affected.contains(id));
    Ok(spared.collect())
}

/// Returns whether a stored query reads a column of a table.
fn reads_column(names: &dyn Names, text: &str, table: ObjectId, position: usize) -> Result<bool> {
    let parsed = crate::parse::query(text)?;
    let mut binder = Binder::of_stored(names);
    let query = binder.query_statement(&parsed)?;
    let is_of = |slot: usize| match binder.slots.get(slot).map(|shape| &shape.source) {
        Some(Source::Table(of)) => of.id == table,
        _ => false,
    };
    let mut reads = false;
    query.each_expression(&mut |expr| {
        expr.each_column(&mut |at| reads |= at.column == position && is_of(at.slot));
    });
    Ok(reads)
}
