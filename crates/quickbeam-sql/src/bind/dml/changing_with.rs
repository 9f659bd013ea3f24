//! Statements whose WITH changes rows.

use smol_str::SmolStr;
use sqlparser::ast::{self, SetExpr, Statement as Ast};

use crate::bind::query::common_tables::{CteSource, NON_RECURSIVE, changes_rows};
use crate::bind::query::syntax::traversals::in_order_of_reading;
use crate::bind::{Binder, BoundStatement, ChangingWith, OutputColumn, Source, WithPart, fold};
use crate::error::{Result, SqlError, SqlState};
use crate::parse::count_table_names;

/// Returns whether the WITH of a statement changes rows, or is read by ON CONFLICT or RETURNING.
pub fn has_changing_with(query: &ast::Query) -> bool {
    let Some(with) = &query.with else { return false };
    let is_read = || reads_after_rows(query, with);
    with.cte_tables.iter().any(changes_rows) || is_read()
}

/// Returns whether ON CONFLICT or RETURNING of an INSERT may name a query of the WITH before it.
fn reads_after_rows(query: &ast::Query, with: &ast::With) -> bool {
    let SetExpr::Insert(Ast::Insert(insert)) = &*query.body else { return false };
    let on = insert.on.iter().map(ToString::to_string);
    let returning = insert.returning.iter().flatten().map(ToString::to_string);
    let texts: Vec<String> = on.chain(returning).collect();
    let is_read = |it: &ast::Cte| {
        let name = fold(&it.alias.name);
        texts.iter().any(|text| count_table_names(text, &name) > 0)
    };
    with.cte_tables.iter().any(is_read)
}

impl Binder<'_> {
    /// Binds a statement whose WITH changes rows. Returns `None` for any other statement.
    pub fn changing_with(&mut self, query: &ast::Query) -> Result<Option<ChangingWith>> {
        let Some(with) = query.with.as_ref().filter(|_| has_changing_with(query)) else {
            return Ok(None);
        };
        let known = self.ctes.len();
        let mut parts = Vec::new();
        let bound = self.with_parts(with, &mut parts).and_then(|()| self.statement_of(query));
        self.ctes.truncate(known);
        Ok(Some(ChangingWith { parts, main: Box::new(bound?) }))
    }

    /// Binds the queries and changes of WITH. Their names stay until the caller truncates `ctes`.
    fn with_parts(&mut self, with: &ast::With, parts: &mut Vec<WithPart>) -> Result<()> {
        let ordered = in_order_of_reading(with);
        self.refuse_mutual_recursion(with);
        let known = self.ctes.len();
        let mut tables = ordered.iter().peekable();
        while let Some(common) = self.next_common(&mut tables, None)? {
            let common = &*common;
            let name = fold(&common.alias.name);
            if self.ctes.iter().skip(known).any(|(other, _)| *other == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                let position = self.place_of(&common.alias.name);
                return Err(SqlError::new(SqlState::DuplicateAlias, message).at(position));
            }
            if changes_rows(common) {
                self.changing_part(common, name, with.recursive, parts)?;
                continue;
            }
            let is_read = self.references(&name) > 0;
            if let Some(stored) = self.common_table_of(common, name, with.recursive, None)? {
                let (slot, statement) = (stored.slot, BoundStatement::Query(stored.query));
                parts.push(WithPart { slot, statement, is_read });
            }
        }
        Ok(())
    }

    /// Binds a query of WITH that changes rows.
    fn changing_part(
        &mut self,
        common: &ast::Cte,
        name: SmolStr,
        is_recursive: bool,
        parts: &mut Vec<WithPart>,
    ) -> Result<()> {
        let position = self.place_of(&common.alias.name);
        if matches!(*common.query.body, SetExpr::Merge(_)) {
            let message = "MERGE not supported in WITH query";
            return Err(SqlError::new(SqlState::FeatureNotSupported, message).at(position));
        }
        let known = self.ctes.len();
        if is_recursive {
            self.ctes.push((name.clone(), CteSource::Forbidden(NON_RECURSIVE)));
        }
        let inner = match &common.query.with {
            Some(with) => self.common_tables(with, None)?,
            None => Vec::new(),
        };
        for stored in inner {
            let (slot, statement) = (stored.slot, BoundStatement::Query(stored.query));
            parts.push(WithPart { slot, statement, is_read: true });
        }
        let statement = self.nested(|binder| binder.statement_of(&common.query));
        self.ctes.truncate(known);
        let statement = statement?;
        let mut columns: Vec<OutputColumn> = statement.columns().to_vec();
        self.name_columns(&mut columns, common, &name, position)?;
        let slot = self.add_slot(name.clone(), Source::Query(columns.clone().into()));
        // A name that the text does not have is that of a part that was made to be read.
        let is_made = !self.text.as_str().to_lowercase().contains(&name.to_lowercase());
        let is_read = is_made || self.references(&name) > 0;
        let source = match columns.is_empty() {
            true => CteSource::WithoutRows,
            false => CteSource::Stored(slot, columns),
        };
        self.ctes.push((name, source));
        parts.push(WithPart { slot, statement, is_read });
        Ok(())
    }

    /// Binds what follows WITH, whose names are known.
    fn statement_of(&mut self, query: &ast::Query) -> Result<BoundStatement> {
        match &*query.body {
            SetExpr::Insert(Ast::Insert(insert)) => {
                Ok(BoundStatement::Insert(self.insert(insert)?))
            }
            SetExpr::Update(Ast::Update(update)) => {
                Ok(BoundStatement::Change(self.update(update)?))
            }
            SetExpr::Delete(Ast::Delete(delete)) => {
                Ok(BoundStatement::Change(self.delete(delete)?))
            }
            SetExpr::Merge(Ast::Merge(merge)) => Ok(BoundStatement::Merge(self.merge(merge)?)),
            _ => {
                let without = ast::Query { with: None, ..query.clone() };
                Ok(BoundStatement::Query(self.query_statement(&without)?))
            }
        }
    }
}
