//! The cache of prepared statements by text, and the loan of a statement for an execution.
//!
//! Above: connections, which look a text up before they compile it. Below: prepared statements.

use std::cell::RefCell;
use std::sync::Arc;

use lru::LruCache;
use smol_str::SmolStr;

use super::named::NamedStatements;
use super::prepared_statement::PreparedStatement;
use crate::compile::Prepared;
use crate::error::{Result, SqlError};

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
