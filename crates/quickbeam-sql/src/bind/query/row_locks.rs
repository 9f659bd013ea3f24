//! FOR UPDATE and its kin: the locked tables, and the wait option.

use sqlparser::ast;

use crate::bind::{Binder, From, JoinKind, LockWait, RowLock, RowOf, Scope, object_name};
use crate::error::{Result, SqlError, SqlState};

impl Binder<'_> {
    /// Binds the row locks of a query. Several clauses must agree on what to do about a row that is
    /// locked already.
    pub(super) fn row_locks(
        &self,
        locks: &[ast::LockClause],
        from: Option<&From>,
        scope: &Scope,
    ) -> Result<Option<RowLock>> {
        let mut whole: Option<RowLock> = None;
        for lock in locks {
            let next = self.row_lock(lock, from, scope)?;
            whole = Some(match whole {
                None => next,
                Some(known) if known.wait != next.wait => {
                    return Err(SqlError::unsupported("row locks with several wait options"));
                }
                // A lock of all tables has no list.
                Some(known) if known.of.is_empty() || next.of.is_empty() => {
                    RowLock { of: Vec::new(), ..known }
                }
                Some(mut known) => {
                    known.of.extend(next.of);
                    known
                }
            });
        }
        Ok(whole)
    }

    fn row_lock(
        &self,
        lock: &ast::LockClause,
        from: Option<&From>,
        scope: &Scope,
    ) -> Result<RowLock> {
        let refuse_missing = |of: Option<usize>, position: usize| {
            if from.is_some_and(|from| may_be_missing(from, of)) {
                let what = "FOR UPDATE of the side of an outer join that may be missing";
                return Err(SqlError::unsupported(what).at(position));
            }
            Ok(())
        };
        let wait = match &lock.nonblock {
            None => LockWait::Wait,
            Some(ast::NonBlock::Nowait) => LockWait::Fail,
            Some(ast::NonBlock::SkipLocked) => LockWait::Skip,
        };
        let Some(name) = &lock.of else {
            refuse_missing(None, 0)?;
            self.check_locked(from, None)?;
            return Ok(RowLock { of: Vec::new(), wait });
        };
        let position = self.position(name) as usize;
        let name = object_name(name).map_err(|error| error.at(position))?;
        let strength = strength_of(lock);
        let Some(relation) = scope.relation(&name) else {
            let message =
                format!("relation \"{name}\" in {strength} clause not found in FROM clause");
            return Err(SqlError::new(SqlState::UndefinedTable, message).at(position));
        };
        if matches!(relation.row, RowOf::Join) {
            let what = format!("{strength} cannot be applied to a join");
            return Err(SqlError::new(SqlState::FeatureNotSupported, what).at(position));
        }
        let slot = relation.columns.first().map(|column| column.at.slot);
        refuse_missing(slot, position)?;
        self.check_locked(from, slot)?;
        Ok(RowLock { of: slot.into_iter().collect(), wait })
    }
}

fn strength_of(lock: &ast::LockClause) -> &'static str {
    match lock.lock_type {
        ast::LockType::Share => "FOR SHARE",
        ast::LockType::Update => "FOR UPDATE",
    }
}

/// Returns the error for row locks of a query that selects from no tables.
#[cold]
pub(super) fn refused_lock(lock: &ast::LockClause, body: &ast::SetExpr) -> SqlError {
    let strength = strength_of(lock);
    let message = match body {
        ast::SetExpr::SetOperation { .. } => {
            format!("{strength} is not allowed with UNION/INTERSECT/EXCEPT")
        }
        _ => format!("{strength} cannot be applied to VALUES"),
    };
    SqlError::new(SqlState::FeatureNotSupported, message)
}

/// Returns whether an outer join may have no row of the table `of`, or of any table.
fn may_be_missing(from: &From, of: Option<usize>) -> bool {
    let From::Join { kind, left, right, .. } = from else { return false };
    let is_extended = |side: &From, extends: bool| {
        may_be_missing(side, of) || extends && of.is_none_or(|of| side.slots().contains(of))
    };
    is_extended(left, *kind == JoinKind::Full)
        || is_extended(right, matches!(kind, JoinKind::Left | JoinKind::Full))
}
