//! Named databases: a tree of names, changed like any other record, so that creating and dropping
//! roll back.
//!
//! A record of the catalog is name → number of the tree, and its access method. Where a tree's root
//! is, is not logged: it is part of each checkpoint, and recovery makes a new root for a tree that
//! it does not know.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::write::WriteOp;
use super::{Database, DatabaseUse, State, Transaction};
use crate::access::btree::Tree;
use crate::catalog::{check_name, decode_catalog_record, encode_catalog_record};
use crate::error::{Error, Result};
use crate::mvcc::DeferredTask;
use crate::options::{AccessMethod, Isolation};

/// Up to this many databases used by a transaction are compared one by one with the next; more are
/// found by hash.
const COMPARED: usize = 16;

/// The databases that a transaction has used, by name, each once. Names are kept from one
/// transaction of a thread to the next, which mostly uses the same ones in the same order: threads
/// that do so do not meet at the names' reference counts.
#[derive(Default)]
pub struct Used {
    /// The names used by this transaction, then those kept from earlier ones.
    known: Vec<(Arc<str>, Tree)>,
    count: usize,
    /// Those of this transaction, by tree number and name, once there are more than [`COMPARED`].
    many: HashSet<(u32, Arc<str>)>,
    /// Databases compared with one that was to be noted.
    #[cfg(test)]
    compared: usize,
}

impl Used {
    #[inline]
    fn note(&mut self, name: &Arc<str>, tree: Tree) {
        // A tree that was renamed meanwhile is noted under both names.
        if let Some((known, last)) = self.databases().last()
            && *last == tree
            && Arc::ptr_eq(known, name)
        {
            return;
        }
        // An earlier transaction used it at this point of the same sequence, in which each name
        // occurs once.
        if self.count < COMPARED
            && let Some((known, meant)) = self.known.get(self.count)
            && Arc::ptr_eq(known, name)
            && *meant == tree
        {
            self.count += 1;
            return;
        }
        if self.count > 0 && !self.is_new(name, tree) {
            return;
        }
        match self.known.get_mut(self.count) {
            Some((known, meant)) if Arc::ptr_eq(known, name) => {
                *meant = tree;
                self.known.truncate(self.count + 1);
            }
            _ => {
                self.known.truncate(self.count);
                self.known.push((name.clone(), tree));
            }
        }
        self.count += 1;
    }

    /// Whether that database has not been noted under that name.
    fn is_new(&mut self, name: &Arc<str>, tree: Tree) -> bool {
        if self.count > COMPARED {
            return self.many.insert((tree.id, name.clone()));
        }
        let is_same = |known: &Arc<str>| Arc::ptr_eq(known, name) || known == name;
        #[cfg(test)]
        {
            self.compared += self.count;
        }
        let used = self.databases();
        let is_it = |(known, other): &(Arc<str>, Tree)| {
            // Most are other trees, which the number alone tells.
            other.id == tree.id && *other == tree && is_same(known)
        };
        if used.iter().any(is_it) {
            return false;
        }
        if self.count == COMPARED {
            let all = self.known.iter().take(COMPARED).map(|(name, tree)| (tree.id, name.clone()));
            self.many.extend(all.chain([(tree.id, name.clone())]));
        }
        true
    }

    /// Names, and what each meant.
    #[inline]
    pub fn databases(&self) -> &[(Arc<str>, Tree)] {
        self.known.get(..self.count).unwrap_or_default()
    }

    /// Another transaction begins.
    #[inline]
    pub fn restart(&mut self) {
        self.count = 0;
        self.many.clear();
    }

    /// Bytes of memory kept.
    pub fn capacity(&self) -> usize {
        self.known.capacity() * size_of::<(Arc<str>, Tree)>()
            + self.many.capacity() * size_of::<(u32, Arc<str>)>()
    }
}

impl Transaction {
    fn catalog(&self) -> Tree {
        self.engine().catalog
    }

    /// Whether what was known at that catalog version, that `name` is `tree`, holds for this
    /// transaction; then it is noted as used.
    #[inline]
    pub(super) fn uses(
        &self,
        name: &Arc<str>,
        tree: Tree,
        version: u64,
        usage: DatabaseUse,
    ) -> bool {
        let state = &mut *self.state.borrow_mut();
        if state.catalog_version != Some(version) || state.changed_catalog {
            return false;
        }
        if self.notes_use(usage) {
            state.used.note(name, tree);
        }
        true
    }

    /// See `query_layer::TransactionExt::catalog_version`.
    #[inline]
    pub(crate) fn catalog_version(&self) -> Option<u64> {
        self.begin_call();
        let state = self.state.borrow();
        state.catalog_version.filter(|_| !state.changed_catalog)
    }

    /// See `query_layer::TransactionExt::touch_catalog`.
    pub(crate) fn touch_catalog(&self) {
        self.state.borrow_mut().changed_catalog = true;
    }

    fn look_up(&self, name: &str) -> Result<Option<Tree>> {
        let mut record = Vec::new();
        if !self.read(self.catalog(), name.as_bytes(), &mut record)? {
            return Ok(None);
        }
        let tree = decode_catalog_record(&record).and_then(|(number, method)| {
            self.engine().tree(number).filter(|tree| tree.method == method)
        });
        match tree {
            Some(tree) => Ok(Some(tree)),
            // The snapshot may have expired after the read, and the tree been freed since.
            None => self.unless_expired(Err(Error::page(
                self.catalog().root,
                format!("the catalog's record of database {name:?} names no tree"),
            ))),
        }
    }

    /// The tree of a database, and the catalog version for which that holds in every transaction
    /// (`None`: only in this one).
    pub(super) fn resolve_database(&self, name: &str) -> Result<(Tree, Option<u64>)> {
        let known = self.state.borrow().resolved.get(name).copied();
        if let Some(tree) = known {
            return Ok((tree, None));
        }
        let tree =
            self.look_up(name)?.ok_or_else(|| Error::NoSuchDatabase { name: name.into() })?;
        let state = &mut *self.state.borrow_mut();
        state.resolved.insert(name.into(), tree);
        Ok((tree, state.catalog_version.filter(|_| !state.changed_catalog)))
    }

    /// Whether a use of a database is to be noted: below serializable only writing to it is.
    #[inline]
    pub(super) fn notes_use(&self, usage: DatabaseUse) -> bool {
        usage == DatabaseUse::Write || self.tracks_reads()
    }

    /// Notes that a database was used: if its name means something else at commit, the commit
    /// fails.
    pub(super) fn note_used(&self, name: &Arc<str>, tree: Tree) {
        self.state.borrow_mut().used.note(name, tree);
    }

    /// Makes sure that the databases used are still the ones of those names; the catalog version
    /// that this holds for.
    pub(super) fn validate_names(&self, state: &State) -> Result<u64> {
        let engine = self.engine();
        let version = engine.catalog_version.load(Ordering::SeqCst);
        if state.catalog_version == Some(version) && !state.names_moved {
            return Ok(version);
        }
        for (name, tree) in state.used.databases() {
            if state.has_created(tree) {
                continue;
            }
            if !state.renamed.is_empty() && state.renamed.contains(&((**name).into(), tree.id)) {
                continue;
            }
            // The committed value below this transaction's own change counts, too: another
            // transaction may have changed the name between its use and that change. After the
            // change no other transaction can have written it (TXN-2).
            let now = self.read_newest_committed(self.catalog(), name.as_bytes())?;
            if now.as_deref().and_then(decode_catalog_record).map(|(id, _)| id) != Some(tree.id) {
                return Err(match self.isolation {
                    Isolation::ReadCommitted => {
                        Error::NoSuchDatabase { name: name.to_string().into() }
                    }
                    _ => Error::SerializationFailure,
                });
            }
        }
        Ok(version)
    }

    /// Opens a database.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// let fruit = transaction.open_database("fruit")?;
    /// assert!(transaction.open_database("nuts").is_err());
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn open_database(&self, name: &str) -> Result<Database> {
        self.begin_call();
        let (tree, version) = self.resolve_database(name)?;
        Ok(self.handle(name, tree, version.unwrap_or(u64::MAX)))
    }

    /// Creates a B+tree database. Other transactions see it once this one has committed.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// let nuts = transaction.create_database("nuts")?;
    /// nuts.put(&transaction, b"hazel", b"brown")?;
    /// transaction.commit()?; // the database and its first record
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn create_database(&self, name: &str) -> Result<Database> {
        self.create_database_with(name, AccessMethod::BTree)
    }

    /// Like [`create_database`](Self::create_database), with an access method.
    pub fn create_database_with(&self, name: &str, method: AccessMethod) -> Result<Database> {
        self.begin_call();
        check_name(name)?;
        if self.look_up(name)?.is_some() {
            return Err(Error::DatabaseExists { name: name.into() });
        }
        let tree = self.atomically(|| {
            let tree = self.new_tree(method)?;
            self.name_tree(name, tree)?;
            Ok(tree)
        })?;
        self.catalog_was_changed(None);
        Ok(self.handle(name, tree, u64::MAX))
    }

    fn handle(&self, name: &str, tree: Tree, known_at: u64) -> Database {
        let directory = self.engine().directory(tree);
        Database::new(name, self.environment_id(), tree, directory, known_at)
    }

    /// Gives the tree a name that no other has.
    fn name_tree(&self, name: &str, tree: Tree) -> Result<()> {
        let record = encode_catalog_record(tree.id, tree.method);
        if self.write(self.catalog(), name.as_bytes(), WriteOp::PutIfAbsent(&record))? {
            Ok(())
        } else {
            Err(Error::DatabaseExists { name: name.into() })
        }
    }

    /// Makes several changes, or none of them (TXN-5).
    fn atomically<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let before = self.savepoint()?;
        let done = work();
        if done.is_err() {
            self.rollback_to(before)?;
        }
        self.release_savepoint(before);
        done
    }

    fn new_tree(&self, method: AccessMethod) -> Result<Tree> {
        self.check_writable()?;
        let tree = self.engine().make_tree(self.slot, method)?;
        self.state.borrow_mut().created.push(tree);
        Ok(tree)
    }

    fn catalog_was_changed(&self, dropped: Option<Tree>) {
        let state = &mut *self.state.borrow_mut();
        state.changed_catalog = true;
        state.resolved.clear();
        if let (Some(tree), Some(writer)) = (dropped, &state.writer) {
            writer.deferred.push(DeferredTask::FreeTree(tree.id));
        }
    }

    /// Removes a database and everything in it.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// transaction.drop_database("fruit")?;
    /// transaction.abort()?;
    /// assert_eq!(environment.databases()?, ["fruit"]);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn drop_database(&self, name: &str) -> Result<()> {
        self.begin_call();
        let tree = self.lock_name(name)?;
        self.write(self.catalog(), name.as_bytes(), WriteOp::Delete)?;
        self.catalog_was_changed(Some(tree));
        Ok(())
    }

    /// Renames a database.
    pub fn rename_database(&self, from: &str, to: &str) -> Result<()> {
        self.begin_call();
        check_name(to)?;
        let tree = self.lock_name(from)?;
        self.atomically(|| {
            self.name_tree(to, tree)?;
            self.write(self.catalog(), from.as_bytes(), WriteOp::Delete)
        })?;
        self.state.borrow_mut().renamed.insert((to.into(), tree.id));
        self.catalog_was_changed(None);
        Ok(())
    }

    /// Removes every record of a database at once.
    pub fn clear_database(&self, name: &str) -> Result<()> {
        self.begin_call();
        let old = self.lock_name(name)?;
        self.atomically(|| {
            let record = encode_catalog_record(self.new_tree(old.method)?.id, old.method);
            self.write(self.catalog(), name.as_bytes(), WriteOp::Put(&record))
        })?;
        self.catalog_was_changed(Some(old));
        Ok(())
    }

    /// The tree of a database whose name is from now on this transaction's to change. Under read
    /// committed another one may just have changed it: what it means counts from here on, not what
    /// a snapshot says.
    fn lock_name(&self, name: &str) -> Result<Tree> {
        let locked = self.write(self.catalog(), name.as_bytes(), WriteOp::Lock)?;
        let tree = if locked { self.look_up(name)? } else { None };
        tree.ok_or_else(|| Error::NoSuchDatabase { name: name.into() })
    }

    /// Returns the names of all databases in order.
    pub fn databases(&self) -> Result<Vec<String>> {
        self.begin_call();
        let mut names = Vec::new();
        let mut cursor = super::Cursor::over(self, self.catalog());
        let mut more = cursor.first()?;
        while more {
            names.push(String::from_utf8_lossy(cursor.key()).into_owned());
            more = cursor.next()?;
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noting_a_database_compares_few_others() {
        let mut used = Used::default();
        let names: Vec<Arc<str>> = (0..10_000).map(|n: u32| n.to_string().into()).collect();
        let tree = |id: usize| Tree { id: id as u32, root: 0, method: AccessMethod::BTree };
        for _ in 0..2 {
            for (id, name) in names.iter().enumerate() {
                used.note(name, tree(id));
            }
        }
        assert_eq!(used.databases().len(), names.len());
        assert!(used.compared <= COMPARED * COMPARED, "{} comparisons", used.compared);
        used.note(&names[3], tree(4));
        assert_eq!(used.databases().len(), names.len() + 1);
        used.restart();
        used.note(&names[5], tree(5));
        assert_eq!(used.databases(), [(names[5].clone(), tree(5))]);
    }
}
