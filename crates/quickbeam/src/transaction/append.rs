//! Bulk insertion of records in key order after all others.
//!
//! Above: callers that fill a tree in key order. Below: the same leaves, versions and redo as other
//! writes. The first record of each leaf is an ordinary insertion. Later records of the same leaf
//! need no search, conflict check or latch of their own, because no record is in their place.
//!
//! The tree's last leaf is split before it is full, at the key where the coming records will fill
//! it. So its fences and key prefix are final before the records arrive, and no record moves again.

use super::write::WriteOp;
use super::{Database, Transaction};
use crate::access::btree::Tree;
use crate::access::limits::fits_inline;
use crate::error::Result;
use crate::mvcc::Before;
use crate::options::AccessMethod;
use crate::page::{Page, key_limit, shortest_separator};
use crate::transaction::DatabaseUse;

impl Database {
    /// Inserts records with ascending keys and returns how many. Stops at the first key that exists
    /// already. After an error some records may have been inserted.
    ///
    /// ```
    /// # let environment = quickbeam::Environment::open_in_memory(Default::default())?;
    /// # let fruit = environment.create_database("fruit")?;
    /// # let transaction = environment.begin()?;
    /// let records: [(&[u8], &[u8]); 2] = [(b"apple", b"red"), (b"pear", b"green")];
    /// assert_eq!(fruit.append(&transaction, &records)?, 2);
    /// # Ok::<(), quickbeam::Error>(())
    /// ```
    pub fn append(&self, transaction: &Transaction, records: &[(&[u8], &[u8])]) -> Result<usize> {
        let tree = self.tree(transaction, DatabaseUse::Write)?;
        let (mut done, mut next_attempt, mut wait) = (0, 1, 1);
        while let Some((key, value)) = records.get(done) {
            if !self.write_key(transaction, tree, key, WriteOp::PutIfAbsent(value))? {
                break;
            }
            done += 1;
            if tree.method == AccessMethod::BTree && done >= next_attempt && done < records.len() {
                transaction.split_for_append(tree, &records[done - 1..])?;
                let appended = transaction.append_to_leaf(tree, &records[done - 1..])?;
                // Between other records few attempts append, so they become rare.
                wait = if appended > 0 { 1 } else { MOST_WAIT.min(2 * wait) };
                done += appended;
                next_attempt = done + wait;
            }
        }
        Ok(done)
    }
}

/// Most ordinary insertions before the next attempt to append.
const MOST_WAIT: usize = 64;

/// Returns how many records after the first fit into the leaf together with a fence of key length.
fn count_fitting(page: Page<'_>, records: &[(&[u8], &[u8])]) -> usize {
    let (mut used, mut longest) = (0, 0);
    let fits = |(key, value): &&(&[u8], &[u8])| {
        used += page.leaf_need(key.len(), value.len());
        longest = longest.max(key.len());
        used + longest.next_multiple_of(8) <= page.free_bytes()
    };
    records.iter().skip(1).take_while(fits).count()
}

impl Transaction {
    /// Splits the tree's last leaf, whose last record is the first of `records`, where the other
    /// records will have filled it. Does nothing if they all fit, or if an ordinary split is
    /// better.
    fn split_for_append(&self, tree: Tree, records: &[(&[u8], &[u8])]) -> Result<()> {
        let pool = &self.engine().pool;
        let state = &mut *self.state.borrow_mut();
        let Some((first, _)) = records.first() else { return Ok(()) };
        let (guard, found) = tree.locate(pool, first, state.leaf_hints.of(tree))?;
        let is_last = found.is_ok_and(|at| at + 1 == guard.page.count());
        if !is_last || !guard.page.is_open_end() {
            return Ok(());
        }
        let fitting = count_fitting(guard.page, records);
        if fitting == 0 || !guard.validate() {
            return Ok(());
        }
        let [Some((before, _)), Some((after, _))] =
            [records.get(fitting), records.get(fitting + 1)]
        else {
            return Ok(());
        };
        if before < after {
            let separator = shortest_separator(before, after);
            tree.split_after_last(pool, &pool.enter(self.slot), &separator)?;
        }
        Ok(())
    }

    /// Inserts records after the first, which is the last one of its leaf, into the same leaf.
    /// Returns how many.
    fn append_to_leaf(&self, tree: Tree, records: &[(&[u8], &[u8])]) -> Result<usize> {
        let engine = self.engine();
        let pool = &engine.pool;
        let state = &mut *self.state.borrow_mut();
        let (Some(writer), Some((first, _))) = (state.writer.clone(), records.first()) else {
            return Ok(0);
        };
        let change_guard = pool.enter(self.slot);
        let (guard, found) = tree.locate(pool, first, state.leaf_hints.of(tree))?;
        let is_last = found.is_ok_and(|at| at + 1 == guard.page.count());
        if !is_last {
            return Ok(0);
        }
        let Some(latched) = guard.upgrade() else { return Ok(0) };
        let page = latched.write(&change_guard)?;
        let fence = page.upper_fence_bytes();
        let mut before = *first;
        let mut count = 0;
        for (key, value) in &records[1..] {
            let fits = key.len() <= key_limit(pool.page_size)
                && fits_inline(pool.page_size, key, value.len())
                && page.free_bytes() >= page.leaf_need(key.len(), value.len());
            // No record lies between the last record and the fence, in this leaf or another
            // (BTREE-1).
            if !fits || *key <= before || fence.as_ref().is_some_and(|fence| **key >= fence[..]) {
                break;
            }
            let nothing = Before { present: false, flags: 0, version: 0 };
            let version = loop {
                match writer.push(tree.id, key, nothing, |_| {}) {
                    Some(version) => break version,
                    None => engine.transactions.make_room_for_undo(&writer),
                }
            };
            page.insert_record(page.count(), key, version, 0, value);
            if engine.log.is_some() {
                state.redo.put(tree.id, key, value);
            }
            before = key;
            count += 1;
        }
        Ok(count)
    }
}
