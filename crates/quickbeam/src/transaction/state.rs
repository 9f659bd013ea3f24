//! What changes while a transaction runs, in memory that a thread's transactions use one after the
//! other.
//!
//! Above: beginning and ending a transaction, and every call of one. Below: the read set, the
//! changes and the names of a transaction. Each thread keeps a few states for reuse in any
//! environment, so threads that begin and end transactions do not contend here.
//!
//! - STATE-1: a transaction begins with a state in which nothing is left of the one before but
//!   memory, and what [`State::begin`] says.

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
const LARGEST_KEPT: usize = 2 << 20;

/// Number of states kept: a thread seldom has more transactions open at once.
const KEPT: usize = 4;

thread_local! {
    // Boxed: they are large, and transactions are handed on and kept with other things.
    #[allow(clippy::vec_box)]
    static SPARE: RefCell<Vec<Box<Kept>>> = const { RefCell::new(Vec::new()) };
}

/// What a thread keeps.
#[derive(Default)]
struct Kept {
    state: RefCell<State>,
    interrupt: RefCell<Interrupt>,
}

/// A flag that ends the transaction's waiting. It is kept while it does not count: the next
/// transaction is often given the same one, and need not count a reference.
#[derive(Default)]
struct Interrupt {
    flag: Option<Arc<AtomicBool>>,
    counts: bool,
}

/// What changes while a transaction runs.
#[derive(Default)]
pub struct State {
    pub(super) snapshot: Timestamp,
    /// The timestamp of the newest change to the catalog, if the snapshot includes it.
    pub(super) catalog_version: Option<u64>,
    pub(super) writer: Option<Arc<TransactionRecord>>,
    pub(super) leaf_hints: LeafHints,
    /// Where a record was appended after all others of its leaf: the next one often goes there,
    /// too.
    pub(super) behind: LeafHint,
    /// The environment whose leaf that is.
    environment: u64,
    /// Operations not yet given to the log.
    pub(super) redo: Redo,
    pub(super) reads: ReadSet,
    /// Below serializable: the snapshot of the first call whose reads are remembered.
    pub(super) tracked_since: Option<Timestamp>,
    /// Undo entries before this one belong to an older savepoint: a record changed before it needs
    /// a new entry.
    pub(super) newest_savepoint: usize,
    /// Rolling back to a savepoint came to an end half-way: the transaction is between two states.
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

    /// Whether this transaction wrote the record with that version word, which is then what it
    /// sees. One that took further ids for its many changes knows those of the first.
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
            writer,
            leaf_hints,
            behind,
            environment: own_environment,
            redo,
            reads,
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
        *writer = None;
        *leaf_hints = LeafHints::default();
        if *own_environment != environment {
            (*own_environment, *behind) = (environment, LeafHint::default());
        }
        redo.clear();
        reads.clear();
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

/// The state of one transaction. With the transaction it goes back to the thread.
pub struct Held(Option<Box<Kept>>);

impl Held {
    /// The state of a transaction that begins.
    #[inline]
    pub(super) fn begin(
        snapshot: Timestamp,
        catalog_version: Option<u64>,
        environment: u64,
    ) -> Held {
        // A thread that ends has none any more.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        let mut kept = spare.unwrap_or_default();
        let state = kept.state.get_mut();
        state.begin(snapshot, catalog_version, environment);
        invariant!(
            STATE_1,
            state.redo.position() == 0
                && state.reads.is_empty()
                && state.used.databases().is_empty()
                && state.savepoints.is_empty()
                && state.created.is_empty(),
            "a transaction begins with the state of another one"
        );
        kept.interrupt.get_mut().counts = false;
        Held(Some(kept))
    }

    #[inline(always)]
    fn kept(&self) -> &Kept {
        match &self.0 {
            Some(kept) => kept,
            None => unreachable!("a transaction has its state until it is dropped"),
        }
    }

    /// From now on waiting ends when that flag is raised.
    #[inline]
    pub(super) fn interrupt_on(&self, flag: &Arc<AtomicBool>) {
        let interrupt = &mut *self.kept().interrupt.borrow_mut();
        if !interrupt.flag.as_ref().is_some_and(|known| Arc::ptr_eq(known, flag)) {
            interrupt.flag = Some(flag.clone());
        }
        interrupt.counts = true;
    }

    /// From now on no flag ends waiting. The flag is kept: the next statement probably comes with
    /// the same.
    #[inline]
    pub(super) fn interrupt_on_nothing(&self) {
        self.kept().interrupt.borrow_mut().counts = false;
    }

    /// The flag that ends waiting, if the transaction was given one.
    pub(super) fn interrupt(&self) -> Option<Arc<AtomicBool>> {
        let interrupt = self.kept().interrupt.borrow();
        interrupt.flag.clone().filter(|_| interrupt.counts)
    }
}

impl Deref for Held {
    type Target = RefCell<State>;

    #[inline(always)]
    fn deref(&self) -> &RefCell<State> {
        &self.kept().state
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        let Some(mut kept) = self.0.take() else { return };
        if kept.state.get_mut().capacity() > LARGEST_KEPT {
            return;
        }
        // A thread that ends needs none any more.
        let _ended = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(kept);
            }
        });
    }
}
