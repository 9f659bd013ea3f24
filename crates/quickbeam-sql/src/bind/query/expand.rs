//! The text of a view with every column written out. A view keeps the columns that it had when it
//! was created, even if its tables get more columns later.

use std::ops::Range;

use smol_str::SmolStr;
use sqlparser::ast::{self, Ident, Spanned};
use sqlparser::tokenizer::Span;

use crate::bind::{Binder, Scope, ScopeColumn};
use crate::catalog::split_lookup_name;
use crate::error::Result;
use crate::parse::{natural_join, restore_exclusions, restore_query_markers, restore_row_stars};

/// A `*` or an unqualified column in a text, and its replacement.
pub(in crate::bind) struct Expansion {
    place: Range<usize>,
    text: String,
}

impl Binder<'_> {
    /// Returns the text of a query with each `*` replaced by its columns, and each column qualified
    /// with its relation.
    pub(in crate::bind) fn expanded(&self, query: &ast::Query) -> Result<String> {
        let mut text = query.to_string();
        let expansions = {
            let parsed = crate::parse::query(&text)?;
            let mut binder = Binder::new(self.names, &text);
            binder.expansions = Some(Vec::new());
            binder.query(&parsed, None)?;
            binder.expansions.unwrap_or_default()
        };
        for expansion in expansions.iter().rev() {
            text.replace_range(expansion.place.clone(), &expansion.text);
        }
        restore_exclusions(&mut text);
        restore_row_stars(&mut text);
        restore_query_markers(&mut text);
        Ok(text)
    }

    /// Whether names in the text that is bound now are to be noted.
    pub(in crate::bind) fn expands(&self) -> bool {
        self.expansions.is_some() && self.view_depth == 0
    }

    fn note(&mut self, place: Range<usize>, text: String) {
        let Some(expansions) = &mut self.expansions else { return };
        // A part of the tree may be bound twice.
        let at = expansions.partition_point(|known| known.place.start < place.start);
        if expansions.get(at).is_none_or(|known| known.place.start != place.start) {
            expansions.insert(at, Expansion { place, text });
        }
    }

    /// Records the expansion of a `*`. `name` is its qualifier.
    pub(in crate::bind) fn note_star(
        &mut self,
        star: &ast::WildcardAdditionalOptions,
        name: Option<&ast::ObjectName>,
        columns: &[&ScopeColumn],
        scope: &Scope,
    ) {
        let is_generated = star.wildcard_token.0.span == Span::empty();
        if !self.expands() || is_generated {
            return;
        }
        let (start, from) = match name {
            Some(name) => (self.position(name) as usize, self.text.offset_of(name.span().end)),
            None => {
                let start = self.span_start(star.wildcard_token.0.span) as usize;
                (start, start)
            }
        };
        let rest = self.text.as_str().get(from..).and_then(|rest| rest.find('*'));
        let place = start..from + rest.unwrap_or_default() + 1;
        let columns: Vec<String> = columns.iter().map(|column| written(column, scope)).collect();
        self.note(place, columns.join(", "));
    }

    /// Records the schema of a relation that is named without one, unless that is `public`.
    pub(in crate::bind) fn note_relation(&mut self, name: &ast::ObjectName, lookup: &str) {
        if !self.expands() || name.0.len() != 1 || !lookup.contains('\0') {
            return;
        }
        let place = self.position(name) as usize..self.text.offset_of(name.span().end);
        let (schema, own) = split_lookup_name(lookup);
        self.note(place, format!("{}.{}", quoted(&schema), quoted(&own.into())));
    }

    /// Records the columns of a NATURAL JOIN, which tables may get more of.
    pub(in crate::bind) fn note_natural(&mut self, right: &ast::TableFactor, names: &[SmolStr]) {
        let span = right.span();
        if !self.expands() || span == Span::empty() {
            return;
        }
        let Some((word, end)) = natural_join(self.text.as_str(), span.start) else { return };
        let names: Vec<String> = names.iter().map(quoted).collect();
        let condition = match names.is_empty() {
            true => " ON true".to_owned(),
            false => format!(" USING ({})", names.join(", ")),
        };
        self.note(word, String::new());
        self.note(end..end, condition);
    }

    /// Records the expansion of an unqualified column.
    pub(in crate::bind) fn note_column(
        &mut self,
        name: &Ident,
        column: &ScopeColumn,
        scope: &Scope,
    ) {
        if !self.expands() {
            return;
        }
        let place = self.place_of(name)..self.text.offset_of(name.span.end);
        // A name that the parser generated has no position.
        if self.text.as_str().get(place.clone()) == Some(&name.to_string()) {
            let text = written(column, scope);
            self.note(place, text);
        }
    }
}

/// Returns a column as written in that scope, qualified by its relation if that has a name.
fn written(column: &ScopeColumn, scope: &Scope) -> String {
    let mut here = Some(scope).filter(|_| column.stored.is_none());
    while let Some(scope) = here {
        let of = scope.relations.iter().find(|relation| {
            !relation.name.is_empty() && relation.columns.iter().any(|known| known.at == column.at)
        });
        if let Some(relation) = of {
            return format!("{}.{}", quoted(&relation.name), quoted(&column.name));
        }
        here = scope.outer.as_deref();
    }
    quoted(&column.name)
}

fn quoted(name: &SmolStr) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
