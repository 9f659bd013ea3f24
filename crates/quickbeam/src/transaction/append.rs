//! Inserting many records behind all others.
//!
//! Above: whoever fills a tree in the order of its keys. Below: the same leaves, versions and redo as every other change. The first
//! record of each leaf goes the way of any other; those that follow it into the same leaf need no search, no
//! judgement and no latch of their own, because there is nothing where they go.

use super::write::{Change, fits_inline};
use super::{Database, Transaction};
use crate::access::btree::Tree;
use crate::error::Result;
use crate::options::AccessMethod;
use crate::page::key_limit;
use crate::versions::Before;

impl Database {
    /// Inserts records whose keys ascend: how many. Fewer than were given: there is a record already with the key of the next one, which
    /// was not inserted. On an error some of them may have been inserted.
    pub fn append(&self, transaction: &Transaction, records: &[(&[u8], &[u8])]) -> Result<usize> {
        let tree = self.tree(transaction, true)?;
        let mut done = 0;
        while let Some((key, value)) = records.get(done) {
            if !self.change_in(transaction, tree, key, Change::PutIfAbsent(value))? {
                break;
            }
            done += 1;
            if tree.method == AccessMethod::BTree {
                done += transaction.fill(tree, &records[done - 1..])?;
            }
        }
        Ok(done)
    }
}

impl Transaction {
    /// Inserts what comes behind the first of the records, the last one of its tree, into the same leaf; how many.
    fn fill(&self, tree: Tree, records: &[(&[u8], &[u8])]) -> Result<usize> {
        let inner = self.inner();
        let pool = &inner.pool;
        let state = &mut *self.state.borrow_mut();
        let (Some(writer), Some((first, _))) = (state.writer.clone(), records.first()) else {
            return Ok(0);
        };
        let pass = pool.enter(self.slot);
        let (guard, found) = tree.locate(pool, first, &mut state.finger)?;
        let is_last = found.is_ok_and(|at| at + 1 == guard.page.count());
        if !is_last || !guard.page.is_open_end() {
            return Ok(0);
        }
        let Some(latched) = guard.upgrade() else { return Ok(0) };
        let page = latched.write(&pass)?;
        let mut before = *first;
        let mut count = 0;
        for (key, value) in &records[1..] {
            let fits = key.len() <= key_limit(pool.page_size)
                && fits_inline(pool.page_size, key, value)
                && page.free_bytes() >= page.leaf_need(key.len(), value.len());
            if !fits || *key <= before {
                break;
            }
            let nothing = Before { present: false, flags: 0, version: 0 };
            let version = loop {
                match writer.push(tree.id, key, nothing, |_| {}) {
                    Some(version) => break version,
                    None => inner.registry.extend_writer(&writer),
                }
            };
            page.insert_record(page.count(), key, version, 0, value);
            if inner.log.is_some() {
                state.redo.put(tree.id, key, value);
            }
            before = key;
            count += 1;
        }
        Ok(count)
    }
}
