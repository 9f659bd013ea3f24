//! Statements compiled once and executed many times, and the cache of them by text.

use std::cell::RefCell;
use std::sync::Arc;

use lru::LruCache;
use quickbeam::invariant;
use smol_str::SmolStr;
use sqlparser::ast::Statement as Ast;

use super::Session;
use super::named::NamedStatements;
use crate::bind::OutputColumn;
use crate::catalog::{BOOTSTRAP, CatalogSnapshot, ObjectId};
use crate::compile::session_command::Control;
use crate::compile::{CompileContext, Prepared, Program};
use crate::error::{Result, SqlError, SqlState};
use crate::types::DataType;

/// A prepared statement that works with any connection to its database.
/// [`Statement`](crate::Statement) is the same with a connection.
pub struct PreparedStatement {
    pub(crate) text: Arc<str>,
    pub(crate) prepared: Option<Prepared>,
    /// The version of the catalog that it was prepared for.
    pub(crate) version: u64,
    /// The session's [`plan_key`](Session::plan_key) then.
    pub(crate) plan_key: u64,
    /// The role that it was prepared for.
    pub(crate) role: ObjectId,
    /// The session command that it is; the outer `None` before the text is parsed.
    pub(crate) control: Option<Option<Control>>,
    /// The syntax tree, from parsing the text until compiling it.
    pub(crate) parsed: Option<Box<Ast>>,
    /// The types of its first parameters, if they were declared.
    pub(crate) types: Arc<[Option<DataType>]>,
    /// The columns that executions must keep, if they were promised.
    pub(crate) kept_columns: Option<Arc<[OutputColumn]>>,
    /// The columns of a command's result.
    pub(crate) columns: Arc<[OutputColumn]>,
    /// The types of a command's parameters: those of the query of DECLARE.
    pub(crate) command_parameters: Arc<[DataType]>,
    /// Whether it is the query of a cursor.
    pub(crate) is_of_cursor: bool,
}

impl PreparedStatement {
    pub(crate) fn new(text: &str) -> PreparedStatement {
        PreparedStatement {
            text: text.into(),
            prepared: None,
            version: 0,
            plan_key: 0,
            role: BOOTSTRAP,
            control: None,
            parsed: None,
            types: Arc::new([]),
            kept_columns: None,
            columns: Arc::new([]),
            command_parameters: Arc::new([]),
            is_of_cursor: false,
        }
    }

    /// Declares the types of the first parameters.
    pub(crate) fn with_types(self, types: Arc<[Option<DataType>]>) -> PreparedStatement {
        PreparedStatement { types, ..self }
    }

    /// Says that it is the query of a cursor.
    pub(crate) fn of_cursor(self) -> PreparedStatement {
        PreparedStatement { is_of_cursor: true, ..self }
    }

    /// Makes a later execution fail (0A000) if the columns of the result are not the same any more.
    pub fn keep_columns(&mut self) {
        if let Some(prepared) = &self.prepared {
            self.kept_columns = Some(prepared.columns.clone());
        }
    }

    /// Refuses new columns where the old ones have been promised.
    pub(crate) fn check_columns(&self) -> Result<()> {
        let (Some(kept), Some(prepared)) = (&self.kept_columns, &self.prepared) else {
            return Ok(());
        };
        let is_same = kept.len() == prepared.columns.len()
            && kept
                .iter()
                .zip(prepared.columns.iter())
                .all(|(one, other)| one.name == other.name && one.data_type == other.data_type);
        if is_same {
            return Ok(());
        }
        let message = "cached plan must not change result type";
        Err(SqlError::new(SqlState::FeatureNotSupported, message))
    }

    /// Whether it is a COPY, which is not tried again by itself (COPY-2).
    pub(crate) fn is_copy(&self) -> bool {
        let work = self.prepared.as_ref().map(|prepared| &prepared.work);
        matches!(work, Some(Program::CopyFrom(_) | Program::CopyTo(..)))
    }

    /// Returns the text of the statement.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names and types of the result columns; empty without a result.
    #[must_use]
    pub fn columns(&self) -> &[OutputColumn] {
        self.prepared.as_ref().map_or(&self.columns, |prepared| &prepared.columns)
    }

    /// Returns the types of the parameters.
    #[must_use]
    pub fn parameters(&self) -> &[DataType] {
        let of_command = &self.command_parameters;
        self.prepared.as_ref().map_or(of_command, |prepared| &prepared.parameters)
    }
}

/// Statements by text, the least recently used one dropped first. `None` stands for a statement
/// that is in use.
pub(crate) type StatementCache = RefCell<LruCache<Arc<str>, Option<Box<PreparedStatement>>>>;

/// A statement in use: the caller's, or the cache's.
pub(crate) enum Lease<'c> {
    Borrowed(&'c mut PreparedStatement),
    Cached(CachedStatement<'c>),
    Owned(Box<PreparedStatement>),
}

impl Lease<'_> {
    pub fn statement(&mut self) -> Result<&mut PreparedStatement> {
        match self {
            Lease::Borrowed(statement) => Ok(statement),
            Lease::Cached(cached) => cached.statement(),
            Lease::Owned(statement) => Ok(statement),
        }
    }

    #[inline]
    pub fn prepared(&self) -> Option<&Prepared> {
        match self {
            Lease::Borrowed(statement) => statement.prepared.as_ref(),
            Lease::Cached(cached) => cached.statement.as_ref()?.prepared.as_ref(),
            Lease::Owned(statement) => statement.prepared.as_ref(),
        }
    }

    #[inline]
    pub fn prepared_mut(&mut self) -> Option<&mut Prepared> {
        match self {
            Lease::Borrowed(statement) => statement.prepared.as_mut(),
            Lease::Cached(cached) => cached.statement.as_mut()?.prepared.as_mut(),
            Lease::Owned(statement) => statement.prepared.as_mut(),
        }
    }
}

/// The place that a statement goes back to.
enum Home<'c> {
    Cache(&'c StatementCache),
    Named(&'c NamedStatements, SmolStr),
}

/// A statement taken from the cache, or a named one. It goes back when it is dropped.
pub(crate) struct CachedStatement<'c> {
    home: Home<'c>,
    statement: Option<Box<PreparedStatement>>,
}

impl<'c> CachedStatement<'c> {
    /// Takes the cached statement of a text. While it is in use, another one of the same text is
    /// compiled separately.
    pub fn take(cache: &'c StatementCache, text: &str) -> CachedStatement<'c> {
        let kept = cache.borrow_mut().get_mut(text).and_then(Option::take);
        let statement = kept.unwrap_or_else(|| Box::new(PreparedStatement::new(text)));
        CachedStatement { home: Home::Cache(cache), statement: Some(statement) }
    }

    /// Wraps a statement that PREPARE named.
    pub fn of_named(
        named: &'c NamedStatements,
        name: SmolStr,
        statement: Box<PreparedStatement>,
    ) -> CachedStatement<'c> {
        CachedStatement { home: Home::Named(named, name), statement: Some(statement) }
    }

    pub fn statement(&mut self) -> Result<&mut PreparedStatement> {
        let statement = self.statement.as_deref_mut();
        statement.ok_or_else(|| SqlError::internal("a statement that went back to the cache"))
    }
}

impl Drop for CachedStatement<'_> {
    fn drop(&mut self) {
        // A text that did not compile is not worth a place.
        let Some(statement) = self.statement.take().filter(|it| it.control.is_some()) else {
            return;
        };
        match &self.home {
            Home::Cache(cache) => {
                cache.borrow_mut().put(statement.text.clone(), Some(statement));
            }
            Home::Named(named, name) => {
                if let Some(named) = named.borrow_mut().get_mut(name)
                    && Arc::ptr_eq(&named.text, &statement.text)
                {
                    named.statement = Some(statement);
                }
            }
        }
    }
}

impl Session {
    /// Makes sure that a statement is prepared for what the transaction sees (SESSION-2).
    #[inline]
    pub(crate) fn ensure_compiled<'s>(
        &self,
        statement: &'s mut PreparedStatement,
        transaction: &quickbeam::Transaction,
    ) -> Result<&'s mut Prepared> {
        let version = self.database.catalog.version(transaction)?;
        let is_kept = statement.version == version && statement.plan_key == self.plan_key.get();
        let is_own = !is_kept || statement.role == self.role.get();
        invariant!(ACCESS_2, is_own, "role {:?} has a plan of {:?}", self.role, statement.role);
        if !is_kept || !self.is_current(statement.prepared.as_mut(), transaction) {
            self.recompile(statement, transaction)?;
        }
        statement.prepared.as_mut().ok_or_else(|| SqlError::internal("not prepared"))
    }

    /// Whether it is prepared, for about as much as there is.
    #[inline]
    pub(crate) fn is_current(
        &self,
        prepared: Option<&mut Prepared>,
        transaction: &quickbeam::Transaction,
    ) -> bool {
        let Some(prepared) = prepared else { return false };
        // EXPLAIN shows the plan that the statement would get now, with fresh row counts.
        if matches!(prepared.work, Program::Explain(..)) {
            return false;
        }
        let (Some(planned), Some(snapshot)) = (&mut prepared.planned_for, &prepared.snapshot)
        else {
            return true;
        };
        !planned.is_due() || !self.look(transaction, snapshot).plan_is_stale(planned)
    }

    /// The database as the transaction sees it, for the binder and the planner.
    pub(crate) fn look<'l>(
        &'l self,
        transaction: &'l quickbeam::Transaction,
        snapshot: &'l Arc<CatalogSnapshot>,
    ) -> CompileContext<'l> {
        let (way, turned_off, parallelism) =
            (self.way(), self.turned_off.get(), self.parallelism.get());
        let path = self.search_path.borrow().clone();
        let catalog = &self.database.catalog;
        let functions = &self.database.shared.functions;
        let user = self.role.get();
        CompileContext {
            catalog,
            transaction,
            snapshot,
            way,
            user,
            session_user: self.session_user.get(),
            role: (!snapshot.is_superuser(user)).then_some(user),
            path,
            temporary: Some(&self.temporary.name),
            turned_off,
            parallelism,
            functions,
            clock: &self.clock,
            variables: None,
            types: &[],
            refreshed: None,
            keeps_keys: false,
            noted: None,
        }
    }

    #[cold]
    fn recompile(
        &self,
        statement: &mut PreparedStatement,
        transaction: &quickbeam::Transaction,
    ) -> Result<()> {
        let snapshot = self.database.catalog.snapshot(transaction)?;
        statement.prepared = None;
        let parsed = statement.parsed.take();
        let look = CompileContext {
            types: &statement.types,
            keeps_keys: statement.is_of_cursor,
            ..self.look(transaction, &snapshot)
        };
        statement.prepared = Some(look.prepare(&statement.text, parsed)?);
        statement.version = snapshot.version();
        statement.plan_key = self.plan_key.get();
        statement.role = self.role.get();
        statement.check_columns().inspect_err(|_| statement.prepared = None)
    }
}

/// Declared types of parameters, each known.
pub(crate) fn known_types(types: &[DataType]) -> Arc<[Option<DataType>]> {
    types.iter().copied().map(Some).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::num::NonZeroUsize;

    use super::*;

    fn execute(cache: &StatementCache, text: &str) {
        let mut cached = CachedStatement::take(cache, text);
        cached.statement().unwrap().control = Some(None);
    }

    #[test]
    fn the_least_recently_used_statement_leaves_the_cache() {
        let cache = RefCell::new(LruCache::new(NonZeroUsize::new(2).unwrap()));
        for text in ["a", "b", "a", "c"] {
            execute(&cache, text);
        }
        let is_kept = |text: &str| cache.borrow().contains(text);
        assert_eq!(["a", "b", "c"].map(is_kept), [true, false, true]);
    }

    #[test]
    fn a_text_that_did_not_compile_is_not_kept() {
        let cache = RefCell::new(LruCache::new(NonZeroUsize::new(2).unwrap()));
        drop(CachedStatement::take(&cache, "a"));
        assert!(cache.borrow().is_empty());
    }

    #[test]
    fn a_statement_in_use_is_compiled_again() {
        let cache = RefCell::new(LruCache::new(NonZeroUsize::new(2).unwrap()));
        execute(&cache, "a");
        let mut first = CachedStatement::take(&cache, "a");
        let mut second = CachedStatement::take(&cache, "a");
        assert!(first.statement().unwrap().control.is_some());
        assert!(second.statement().unwrap().control.is_none());
    }
}
