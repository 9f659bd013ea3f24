//! Lookups of several keys whose waits for memory overlap.
//!
//! Above: point reads of many keys. Below: descents, pages. A lookup in a leaf that is in no cache
//! of the processor waits for memory several times, because each address depends on what was read
//! before. The leaves of a group of keys do not depend on each other. So each step is done for all
//! of them before the next step: the processor waits for all at once. What is read here only leads
//! to hints, which each lookup checks (HASH-2).

use super::{LeafHint, Tree};
use crate::buffer::Pool;
use crate::error::Result;
use crate::page::{Page, PageId};

/// Keys that are looked up together.
pub const LOOKUP_GROUP: usize = 16;

impl Tree {
    /// Finds the likely positions of keys of an ordered tree, and loads their records into the
    /// processor's cache.
    pub fn load_records(
        &self,
        pool: &Pool,
        keys: &[&[u8]],
        hints: &mut [LeafHint; LOOKUP_GROUP],
    ) -> Result<()> {
        for (key, hint) in keys.iter().zip(&mut *hints) {
            *hint = LeafHint { tree: self.id, leaf: self.leaf_of(pool, key)?, hint: 0 };
        }
        let mut pages: [Option<Page<'_>>; LOOKUP_GROUP] = [None; LOOKUP_GROUP];
        for (page, hint) in pages.iter_mut().zip(&*hints).take(keys.len()) {
            *page = pool.read_resident(hint.leaf).map(|guard| guard.page);
        }
        pages.iter().flatten().for_each(|page| page.fetch_slots());
        for (page, key) in pages.iter_mut().zip(keys) {
            *page = page.filter(|page| page.is_leaf() && page.has_prefix_of(key));
        }
        for (page, key) in pages.iter().zip(keys) {
            if let Some(page) = page {
                page.fetch_alike(key);
            }
        }
        for ((page, key), hint) in pages.iter().zip(keys).zip(&mut *hints) {
            if let Some(page) = page {
                hint.hint = page.search(key).unwrap_or_else(|at| at);
            }
        }
        for (page, hint) in pages.iter().zip(&*hints) {
            if let Some(page) = page {
                page.fetch_record(hint.hint);
            }
        }
        Ok(())
    }

    /// Returns the leaf for `key` without reading it.
    fn leaf_of(&self, pool: &Pool, key: &[u8]) -> Result<PageId> {
        loop {
            let (_, node) = self.descend(pool, 1, |node| node.page.child_for(key))?;
            let leaf = if node.page.level() == 0 { node.id } else { node.page.child_for(key) };
            if node.validate() {
                return Ok(leaf);
            }
        }
    }
}
