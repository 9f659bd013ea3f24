//! Temporary tables, views and sequences.
//!
//! They are objects of the environment in a schema of the session, whose name is the first of the
//! search path. The session drops the schema when it ends. After a crash the next opening does
//! (docs/adr/0008-temporary-tables.md).
//!
//! - TEMPORARY-1: the schema of a session that is open has its name in [`LIVE`], so that no opening
//!   drops it.

mod read_only;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use quickbeam::{Environment, ReadTransaction, Transaction, invariant};
use smol_str::{SmolStr, format_smolstr};

use crate::bind::{CatalogChange, SearchPath};
use crate::catalog::{
    Catalog, DropBehavior, ObjectId, OnCommit, PUBLIC, Relation, TEMPORARY_SCHEMA,
    is_temporary_schema, split_lookup_name,
};
use crate::compile::CompileContext;
use crate::error::Result;
use crate::session::Session;

/// The schemas of open sessions, of all environments of the process.
static LIVE: LazyLock<Mutex<HashSet<SmolStr>>> = LazyLock::new(Mutex::default);

/// Times that the objects of a session are dropped when others are in the way.
const ATTEMPTS: usize = 20;

/// The temporary objects of a session.
pub(crate) struct TemporaryObjects {
    /// The name of their schema.
    pub name: SmolStr,
    /// Whether there may be any.
    is_used: Cell<bool>,
    /// The tables that a commit changes.
    on_commit: RefCell<Vec<(ObjectId, OnCommit)>>,
    /// A read-only transaction is changing temporary tables.
    pub is_changing: Cell<bool>,
}

impl Default for TemporaryObjects {
    fn default() -> TemporaryObjects {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        TemporaryObjects {
            name: format_smolstr!("{TEMPORARY_SCHEMA}_{number}"),
            is_used: Cell::new(false),
            on_commit: RefCell::default(),
            is_changing: Cell::new(false),
        }
    }
}

impl TemporaryObjects {
    /// Returns a search path with the schema of the session.
    pub fn path(&self, path: SearchPath) -> SearchPath {
        if !self.is_used.get() {
            return path;
        }
        let mut names: Vec<SmolStr> = path.map_or_else(|| vec![PUBLIC], |path| path.to_vec());
        match names.iter_mut().find(|name| *name == TEMPORARY_SCHEMA) {
            Some(name) => name.clone_from(&self.name),
            None => names.insert(0, self.name.clone()),
        }
        Some(names.into())
    }
}

/// Returns the lookup name of the relation that a change makes, if it makes one.
fn made_by(change: &CatalogChange) -> Option<&SmolStr> {
    match change {
        CatalogChange::CreateTable(table, _) => Some(&table.name),
        CatalogChange::CreateView(view) => Some(&view.name),
        CatalogChange::CreateSequence(name, ..) => Some(name),
        _ => None,
    }
}

/// Does something in a transaction of its own, again if others are in the way.
fn transact(environment: &Environment, work: impl Fn(&Transaction) -> Result<()>) -> Result<()> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let transaction = environment.begin()?;
        let done = work(&transaction).and_then(|()| Ok(transaction.commit()?));
        match done {
            Err(error) if error.is_retryable() && attempt < ATTEMPTS => {}
            done => return done,
        }
    }
}

/// Drops the temporary objects of sessions that a crash has ended.
pub(crate) fn sweep(catalog: &Catalog) -> Result<()> {
    let environment = catalog.environment();
    if environment.is_read_only() {
        return Ok(());
    }
    let snapshot = catalog.snapshot(environment.begin_read()?.as_transaction())?;
    let left = |name: &&SmolStr| is_temporary_schema(name) && !LIVE.lock().contains(*name);
    let names: Vec<SmolStr> =
        snapshot.schemas().map(|schema| &schema.name).filter(left).cloned().collect();
    for name in names {
        transact(environment, |transaction| catalog.drop_temporary(transaction, &name))?;
    }
    Ok(())
}

impl Session {
    /// Makes the schema of the session, if a change makes a temporary object.
    pub(in crate::session) fn begin_temporary(
        &self,
        change: &CatalogChange,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let own = &self.temporary.name;
        if made_by(change).is_none_or(|name| split_lookup_name(name).0 != *own) {
            return Ok(());
        }
        LIVE.lock().insert(own.clone());
        let snapshot = look.catalog.snapshot(look.transaction)?;
        if snapshot.has_schema(own) {
            return Ok(());
        }
        look.catalog.create_temporary_schema(look.transaction, own)
    }

    /// Notes a temporary object that a change has made.
    pub(in crate::session) fn note_temporary(
        &self,
        change: &CatalogChange,
        look: &CompileContext<'_>,
    ) -> Result<()> {
        let own = &self.temporary.name;
        let Some(name) = made_by(change).filter(|name| split_lookup_name(name).0 == *own) else {
            return Ok(());
        };
        invariant!(TEMPORARY_1, LIVE.lock().contains(own), "schema {own}");
        if !self.temporary.is_used.replace(true) {
            self.note_temporary_path();
        }
        let CatalogChange::CreateTable(table, _) = change else { return Ok(()) };
        if table.on_commit != OnCommit::Preserve {
            let snapshot = look.catalog.snapshot(look.transaction)?;
            if let Some(Relation::Table(made)) = snapshot.relation(name) {
                self.temporary.on_commit.borrow_mut().push((made.id, table.on_commit));
            }
        }
        Ok(())
    }

    fn note_temporary_path(&self) {
        self.note_search_path();
        self.note_plan_key();
    }

    /// Does what ON COMMIT says, before a commit.
    #[inline]
    pub(in crate::session) fn end_temporary(&self, transaction: &Transaction) -> Result<()> {
        if !self.temporary.is_used.get() {
            return Ok(());
        }
        if transaction.is_read_only() {
            let _access = self.allow_temporary(transaction);
            return match transaction.is_read_only() {
                true => Ok(()),
                false => self.apply_on_commit(transaction),
            };
        }
        self.apply_on_commit(transaction)
    }

    fn apply_on_commit(&self, transaction: &Transaction) -> Result<()> {
        let catalog = &self.database.catalog;
        let snapshot = catalog.snapshot(transaction)?;
        let mut list = self.temporary.on_commit.take();
        list.retain(|(id, _)| snapshot.table(*id).is_some());
        let work = || -> Result<()> {
            for (id, action) in &list {
                let Some(table) = snapshot.table(*id) else { continue };
                if *action == OnCommit::Drop {
                    let names = [table.lookup_name()];
                    catalog.drop_tables(transaction, &names, DropBehavior::Cascade)?;
                    continue;
                }
                let handle = snapshot.handle(transaction, *id)?;
                handle.database().clear_range::<&[u8]>(transaction, ..)?;
                for index in handle.indexes() {
                    index.entries.clear_range::<&[u8]>(transaction, ..)?;
                }
            }
            Ok(())
        };
        let done = work();
        self.temporary.on_commit.replace(list);
        done
    }

    /// Drops the temporary objects: DISCARD TEMP, and the end of the session.
    pub(in crate::session) fn drop_temporary(&self) -> Result<()> {
        if !self.temporary.is_used.get() {
            return Ok(());
        }
        let (catalog, name) = (&self.database.catalog, &self.temporary.name);
        if self.in_transaction() {
            self.check_no_rows_read()?;
            self.make_begun()?;
            return catalog.drop_temporary(&*self.begun()?, name);
        }
        transact(&self.database.environment, |it| catalog.drop_temporary(it, name))?;
        self.temporary.on_commit.borrow_mut().clear();
        self.temporary.is_used.set(false);
        self.note_temporary_path();
        Ok(())
    }

    /// Ends the temporary objects with the session. Those that cannot be dropped now are dropped by
    /// the next opening of the environment.
    pub(in crate::session) fn leave_temporary(&self) {
        if !self.temporary.is_used.get() {
            return;
        }
        if let Ok(mut open) = self.open.try_borrow_mut() {
            *open = None;
        }
        let dropped = self.drop_temporary();
        LIVE.lock().remove(&self.temporary.name);
        // An error has no reader here, and the next opening does the same again.
        drop(dropped);
    }
}
