//! MERGE.

use sqlparser::ast::{
    self, MergeAction as AstAction, MergeClauseKind, MergeInsertKind, MergeUpdateKind, TableFactor,
    TableWithJoins,
};

use super::target::ChangeTarget;
use crate::bind::query::check_values;
use crate::bind::rights::Right;
use crate::bind::{
    Binder, From, JoinKind, MergeAction, MergeClause, MergeStatement, Scope, Source, object_name,
};
use crate::catalog::Privileges;
use crate::error::{Result, SqlError, SqlState};
use crate::parse::overriding_of;

impl Binder<'_> {
    /// MERGE.
    pub fn merge(&mut self, merge: &ast::Merge) -> Result<MergeStatement> {
        let TableFactor::Table { name, alias, args: None, .. } = &merge.table else {
            return Err(SqlError::unsupported("MERGE into what is no table"));
        };
        self.check_factor(&merge.table)?;
        if !merge.into || merge.output.is_some() {
            let message = "syntax error: this form of MERGE does not exist";
            let error = SqlError::new(SqlState::SyntaxError, message);
            return Err(error.at(self.position(name) as usize));
        }
        check_clauses(&merge.clauses, self.position(name) as usize)?;
        if self.is_view(name)? {
            let message = format!("cannot execute MERGE on relation \"{}\"", object_name(name)?);
            return Err(SqlError::new(SqlState::FeatureNotSupported, message)
                .with_detail("This operation is not supported for views."));
        }
        let table =
            self.table(name, right_of(&merge.clauses)).map_err(|error| match error.position() {
                Some(position) if error.code() == SqlState::WrongObjectType.code() => {
                    SqlError::unsupported(format!("MERGE on relation {name}")).at(position)
                }
                _ => error,
            })?;
        if table.materialized.is_some() {
            let message = format!("cannot execute MERGE on relation \"{}\"", table.name);
            return Err(SqlError::new(SqlState::FeatureNotSupported, message)
                .with_detail("This operation is not supported for materialized views."));
        }
        let target = ChangeTarget::of_table(table.clone());
        let (parts, level) = self.level(|binder| {
            let mut sources = Scope::default();
            let source = TableWithJoins { relation: merge.source.clone(), joins: Vec::new() };
            let source = binder.from(std::slice::from_ref(&source), &mut sources)?;
            let Some(source) = source else {
                return Err(SqlError::internal("MERGE without a source"));
            };
            let mut both = sources.clone();
            let slot = binder.stored(table.clone(), alias.as_ref(), &mut both)?;
            binder.restrict_table(&table, slot);
            let on = binder.conjuncts(&merge.on, "JOIN/ON", &both)?;
            let inserts = |clause: &ast::MergeClause| {
                clause.clause_kind != MergeClauseKind::Matched
                    && !matches!(clause.action, AstAction::DoNothing { .. })
            };
            let (left, right) = (Box::new(source), Box::new(From::Table(slot)));
            let (from, filter) = if merge.clauses.iter().any(inserts) {
                (From::Join { kind: JoinKind::Left, left, right, on }, Vec::new())
            } else {
                (From::Join { kind: JoinKind::Inner, left, right, on: Vec::new() }, on)
            };
            let mut clauses = Vec::with_capacity(merge.clauses.len());
            for clause in &merge.clauses {
                clauses.push(binder.merge_clause(&target, clause, (&sources, &both))?);
            }
            Ok((slot, from, filter, clauses))
        })?;
        let (slot, mut from, filter, clauses) = parts;
        self.mark_rows(&mut from);
        if self.reads_row_ids && self.reads_system_columns {
            return Err(SqlError::unsupported("ctid in MERGE"));
        }
        let new_slot = self.add_slot("new".into(), Source::Table(table.clone()));
        let subqueries = level.subqueries;
        Ok(MergeStatement {
            with: Vec::new(),
            table,
            slot,
            new_slot,
            from,
            filter,
            subqueries,
            clauses,
        })
    }

    /// Binds a WHEN clause. One for rows without a match reads the source only.
    fn merge_clause(
        &mut self,
        target: &ChangeTarget,
        clause: &ast::MergeClause,
        (sources, both): (&Scope, &Scope),
    ) -> Result<MergeClause> {
        if !matches!(clause.action, AstAction::DoNothing { .. }) {
            self.check_table(&target.table, right_of(std::slice::from_ref(clause)))?;
        }
        let is_matched = clause.clause_kind == MergeClauseKind::Matched;
        let scope = if is_matched { both } else { sources };
        let condition = match &clause.predicate {
            Some(condition) => Some(self.condition(condition, "WHEN", scope)?),
            None => None,
        };
        let action = match &clause.action {
            AstAction::DoNothing { .. } => MergeAction::Nothing,
            AstAction::Delete { .. } => MergeAction::Delete,
            AstAction::Update(ast::MergeUpdateExpr {
                kind: MergeUpdateKind::Set(list),
                update_predicate: None,
                delete_predicate: None,
                ..
            }) => {
                // SET of a field reads the target as the first relation.
                let mut scope = scope.clone();
                scope.relations.rotate_right(1);
                MergeAction::Update(self.assignments(target, list, &scope)?)
            }
            AstAction::Insert(insert) => self.merge_insert(target, insert, scope)?,
            AstAction::Update(_) => return Err(SqlError::unsupported("this form of MERGE")),
        };
        Ok(MergeClause { is_matched, condition, action })
    }

    fn merge_insert(
        &mut self,
        target: &ChangeTarget,
        insert: &ast::MergeInsertExpr,
        scope: &Scope,
    ) -> Result<MergeAction> {
        let (MergeInsertKind::Values(values), None) = (&insert.kind, &insert.insert_predicate)
        else {
            return Err(SqlError::unsupported("this form of MERGE"));
        };
        check_values(values)?;
        let [row] = &values.rows[..] else {
            let message = "syntax error: MERGE inserts one row for a row of the source";
            let error = SqlError::new(SqlState::SyntaxError, message);
            return Err(error.at(self.position(values) as usize));
        };
        let (columns, overriding) = overriding_of(&insert.columns);
        let table = &*target.table;
        let targets = self.targets(target, columns)?;
        let place = |number: usize| {
            row.content.get(number).map_or(0, |value| self.position(value) as usize)
        };
        self.check_count(target, row.content.len(), &targets, columns, place)?;
        let mut defaults = Vec::with_capacity(table.columns.len());
        for column in 0..table.columns.len() {
            defaults.push(self.default_of(target, column)?);
        }
        let values =
            self.insert_row(table, (&targets, overriding), &defaults, &row.content, scope)?;
        Ok(MergeAction::Insert(values))
    }
}

/// Refuses clauses that MERGE of PostgreSQL 15 does not have, and those that nothing reaches.
/// Clauses have no position of their own: their syntax errors stand at `target`.
fn check_clauses(clauses: &[ast::MergeClause], target: usize) -> Result<()> {
    if clauses.is_empty() {
        let message = "syntax error: MERGE without a WHEN clause";
        return Err(SqlError::new(SqlState::SyntaxError, message).at(target));
    }
    let mut is_decided = [false; 2];
    for clause in clauses {
        let is_matched = match clause.clause_kind {
            MergeClauseKind::Matched => true,
            MergeClauseKind::NotMatched => false,
            _ => {
                let message = "syntax error: WHEN NOT MATCHED BY is not supported";
                return Err(SqlError::new(SqlState::SyntaxError, message).at(target));
            }
        };
        let decided = &mut is_decided[usize::from(is_matched)];
        if *decided {
            let message = "unreachable WHEN clause specified after unconditional WHEN clause";
            return Err(SqlError::new(SqlState::SyntaxError, message));
        }
        *decided = clause.predicate.is_none();
    }
    Ok(())
}

/// Returns the right on the target that the first clause with an action needs.
fn right_of(clauses: &[ast::MergeClause]) -> Right {
    let right = |clause: &ast::MergeClause| match &clause.action {
        AstAction::DoNothing { .. } => None,
        AstAction::Delete { .. } => Some(Right::Whole(Privileges::DELETE)),
        AstAction::Update(_) => Some(Right::Has(Privileges::UPDATE)),
        AstAction::Insert(_) => Some(Right::Has(Privileges::INSERT)),
    };
    clauses.iter().find_map(right).unwrap_or(Right::Has(Privileges::SELECT))
}
