//! The mutable state of a transaction, recycled between the transactions of a thread.
//!
//! Above: beginning and ending a transaction, and every call of one. Below: the read set, the
//! changes and the names of a transaction. Each thread keeps a few states for reuse in any
//! environment, so threads that begin and end transactions do not contend here.
//!
//! - STATE-1: a transaction begins with an empty state. Only buffers, and what [`State::begin`]
//!   names, are left of the previous transaction.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::catalog::Used;
use super::read_set::ReadSet;
use crate::access::btree::{LeafHint, LeafHints, Tree};
use crate::mvcc::{Timestamp, TransactionId, TransactionRecord, writer_of};
use crate::wal::Redo;

/// A state with more memory than this is not recycled. The read set of some 10,000 random reads
/// fits.
const MAX_POOLED_BYTES: usize = 2 << 20;

/// Number of states kept: a thread seldom has more transactions open at once.
const MAX_POOLED: usize = 4;

thread_local! {
    // Boxed: they are large, and transactions are handed on and kept with other things.
    #[allow(clippy::vec_box)]
    static SPARE: RefCell<Vec<Box<StateParts>>> = const { RefCell::new(Vec::new()) };
}

/// The recycled parts of a transaction.
#[derive(Default)]
struct StateParts {
    state: RefCell<State>,
    interrupt: RefCell<Interrupt>,
}

/// A flag that ends the transaction's waits. It is kept while inactive: the next transaction often
/// gets the same flag, and then counts no reference.
#[derive(Default)]
struct Interrupt {
    flag: Option<Arc<AtomicBool>>,
    is_active: bool,
}

/// The mutable state of a transaction.
#[derive(Default)]
pub struct State {
    pub(super) snapshot: Timestamp,
    /// The timestamp of the newest change to the catalog, if the snapshot includes it.
    pub(super) catalog_version: Option<u64>,
    pub(super) writer: Option<Arc<TransactionRecord>>,
    pub(super) leaf_hints: LeafHints,
    /// The position of the last append to the end of a leaf, where the next one often goes.
    pub(super) append_hint: LeafHint,
    /// The environment of `append_hint`.
    environment: u64,
    /// Operations that are not in the log yet.
    pub(super) redo: Redo,
    pub(super) reads: ReadSet,
    /// Below serializable: the snapshot of the first call with tracked reads.
    pub(super) tracked_since: Option<Timestamp>,
    /// Undo entries before this one belong to an older savepoint: a record changed before it needs
    /// a new entry.
    pub(super) newest_savepoint: usize,
    /// A rollback to a savepoint failed halfway and left the transaction inconsistent.
    pub(super) inconsistent: bool,
    /// Savepoints that can be rolled back to.
    pub(super) savepoints: Vec<u64>,
    /// Databases resolved by name, with the tree each is.
    pub(super) resolved: HashMap<Box<str>, Tree>,
    /// Databases whose meaning must not have changed when the transaction commits.
    pub(super) used: Used,
    /// Trees made here, in the order of their numbers: they are freed if the transaction aborts.
    pub(super) created: Vec<Tree>,
    /// Names given to trees that had another, with the numbers of these trees.
    pub(super) renamed: HashSet<(Box<str>, u32)>,
    /// The catalog may have changed since a database was used: read committed, a later call has
    /// moved up.
    pub(super) names_moved: bool,
    /// The catalog was changed here.
    pub(super) changed_catalog: bool,
    /// Statements begun and not ended. Within one, calls read one snapshot under read committed.
    pub(super) statement_depth: u32,
    /// Memory for the old and the new value of a record that is modified.
    pub(super) values: (Vec<u8>, Vec<u8>),
    /// Tree and leaf of the newest purge to be done after commit.
    pub(super) last_purge: (u32, u64),
    pub(super) finished: bool,
}

impl State {
    /// Whether the tree was made in this transaction.
    pub(super) fn has_created(&self, tree: &Tree) -> bool {
        self.created.binary_search_by_key(&tree.id, |created| created.id).is_ok()
    }

    pub(super) fn own(&self) -> Option<TransactionId> {
        self.writer.as_ref().map(|writer| writer.id())
    }

    /// Returns whether this transaction wrote the version, and therefore sees it. A transaction
    /// with several ids recognizes only versions of the first one here.
    #[inline]
    pub(super) fn is_own(&self, version: u64) -> bool {
        self.own() == Some(writer_of(version))
    }

    /// Resets the state for a transaction that begins. Keeps the names used before, for reuse, and
    /// the hint of the thread's last append, if it is of this environment.
    #[inline]
    fn begin(&mut self, snapshot: Timestamp, catalog_version: Option<u64>, environment: u64) {
        // Named one by one, so that none is forgotten.
        let State {
            snapshot: own_snapshot,
            catalog_version: own_catalog_version,
            // Released when the transaction ended.
            writer: _,
            leaf_hints,
            append_hint,
            environment: own_environment,
            redo,
            reads: _,
            tracked_since,
            newest_savepoint,
            inconsistent,
            savepoints,
            resolved,
            used,
            created,
            renamed,
            names_moved,
            changed_catalog,
            statement_depth,
            values: _,
            last_purge,
            finished,
        } = self;
        *own_snapshot = snapshot;
        *own_catalog_version = catalog_version;
        *leaf_hints = LeafHints::default();
        if *own_environment != environment {
            (*own_environment, *append_hint) = (environment, LeafHint::default());
        }
        redo.clear();
        used.restart();
        savepoints.clear();
        resolved.clear();
        created.clear();
        renamed.clear();
        (*newest_savepoint, *tracked_since, *last_purge) = (0, None, (0, 0));
        (*inconsistent, *names_moved, *changed_catalog) = (false, false, false);
        (*statement_depth, *finished) = (0, false);
    }

    /// Bytes of memory that it keeps.
    fn capacity(&self) -> usize {
        self.redo.capacity()
            + self.reads.capacity()
            + (self.values.0.capacity() + self.values.1.capacity())
            + self.used.capacity()
            + self.resolved.capacity() * size_of::<(Box<str>, Tree)>()
            + (self.created.capacity() + self.renamed.capacity() + self.savepoints.capacity()) * 32
    }
}

/// The state of one transaction, from the pool of the thread. Dropping it returns it to the pool.
pub struct PooledState(Option<Box<StateParts>>);

impl PooledState {
    /// Takes a state out of the pool for a transaction that begins.
    #[inline]
    pub(super) fn begin(
        snapshot: Timestamp,
        catalog_version: Option<u64>,
        environment: u64,
    ) -> PooledState {
        // The pool of a thread that ends is gone.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        let mut parts = spare.unwrap_or_default();
        let state = parts.state.get_mut();
        state.begin(snapshot, catalog_version, environment);
        invariant!(
            STATE_1,
            state.redo.position() == 0
                && state.writer.is_none()
                && state.reads.is_empty()
                && state.used.databases().is_empty()
                && state.savepoints.is_empty()
                && state.created.is_empty(),
            "a transaction begins with the state of another one"
        );
        parts.interrupt.get_mut().is_active = false;
        PooledState(Some(parts))
    }

    #[inline(always)]
    fn parts(&self) -> &StateParts {
        match &self.0 {
            Some(parts) => parts,
            None => unreachable!("a transaction has its state until it is dropped"),
        }
    }

    /// Makes waits end when that flag is set.
    #[inline]
    pub(super) fn interrupt_on(&self, flag: &Arc<AtomicBool>) {
        let interrupt = &mut *self.parts().interrupt.borrow_mut();
        if !interrupt.flag.as_ref().is_some_and(|known| Arc::ptr_eq(known, flag)) {
            interrupt.flag = Some(flag.clone());
        }
        interrupt.is_active = true;
    }

    /// Makes waits ignore the flag, which is kept for the next statement.
    #[inline]
    pub(super) fn clear_interrupt(&self) {
        self.parts().interrupt.borrow_mut().is_active = false;
    }

    /// Returns the flag that ends waits, if one is active.
    pub(super) fn interrupt(&self) -> Option<Arc<AtomicBool>> {
        let interrupt = self.parts().interrupt.borrow();
        interrupt.flag.clone().filter(|_| interrupt.is_active)
    }
}

impl Deref for PooledState {
    type Target = RefCell<State>;

    #[inline(always)]
    fn deref(&self) -> &RefCell<State> {
        &self.parts().state
    }
}

impl Drop for PooledState {
    #[inline]
    fn drop(&mut self) {
        let Some(mut parts) = self.0.take() else { return };
        // An idle thread must not keep records of writers, whose undo entries may be in a file.
        let state = parts.state.get_mut();
        state.writer = None;
        state.reads.clear();
        if state.capacity() > MAX_POOLED_BYTES {
            return;
        }
        // The pool of a thread that ends is gone.
        let _ended = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < MAX_POOLED {
                spare.push(parts);
            }
        });
    }
}
