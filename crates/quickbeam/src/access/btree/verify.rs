//! Verification of a whole tree.

use std::collections::HashSet;

use super::{DEEPEST, Tree};
use crate::access::hash::is_stored;
use crate::access::overflow::{chain_pages, chains_of};
use crate::buffer::Pool;
use crate::error::Result;
use crate::page::{Page, PageId};

/// Counts of a tree's pages and records, and the damage found.
#[derive(Clone, Debug, Default)]
pub struct TreeCensus {
    /// Levels, including the leaves.
    pub depth: usize,
    /// Number of leaves.
    pub leaf_pages: u64,
    /// Number of inner pages.
    pub inner_pages: u64,
    /// Number of overflow pages.
    pub overflow_pages: u64,
    /// Number of records, without tombstones.
    pub records: u64,
    /// Bytes of slots and records in leaves.
    pub leaf_bytes: u64,
    /// The damage found, each with its page.
    pub complaints: Vec<String>,
}

/// The properties of a page that its parent implies.
struct Expected {
    page: PageId,
    level: Option<u8>,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

impl Tree {
    /// Checks every page of the tree: kind, level, order, fences against the parent's separators,
    /// chains. Adds the pages to `seen`; a page that is already there is reached twice. The tree
    /// must not change meanwhile. `shrinks` says that the tree is being freed, from the last page
    /// to the first.
    pub fn census(&self, pool: &Pool, seen: &mut HashSet<PageId>, shrinks: bool) -> TreeCensus {
        let mut census = TreeCensus::default();
        let mut work =
            vec![Expected { page: self.root, level: None, lower: Vec::new(), upper: None }];
        while let Some(expected) = work.pop() {
            if !seen.insert(expected.page) {
                census.complaints.push(format!("page {} is reached twice", expected.page));
                continue;
            }
            let looked = pool.latch(expected.page).map(|guard| {
                self.check_page(guard.page(), &expected, shrinks, &mut census, &mut work)
            });
            // Without the latch: a damaged pointer may lead back to the page.
            let followed = looked.and_then(|chains| count_chains(pool, &chains, seen, &mut census));
            if let Err(error) = followed {
                census.complaints.push(error.to_string());
            }
        }
        census
    }

    /// Checks a page and adds its children to `work`. Returns the chains of its records.
    fn check_page(
        &self,
        page: Page<'_>,
        expected: &Expected,
        shrinks: bool,
        census: &mut TreeCensus,
        work: &mut Vec<Expected>,
    ) -> Vec<PageId> {
        let id = expected.page;
        let mut complain = |what: String| census.complaints.push(format!("page {id}: {what}"));
        if page.tree() != self.id {
            complain(format!("belongs to tree {}, found in tree {}", page.tree(), self.id));
        }
        if expected.level.is_some_and(|level| level != page.level()) {
            complain(format!(
                "is at level {}, its parent expects {:?}",
                page.level(),
                expected.level
            ));
        }
        if page.is_leaf() != (page.level() == 0) || usize::from(page.level()) > DEEPEST {
            complain(format!("kind {:?} at level {}", page.kind(), page.level()));
            return Vec::new();
        }
        if let Some(position) = page.first_disorder() {
            complain(format!("key {position} is out of order or outside the fences"));
        }
        if page.is_fenced()
            && (page.lower_fence_bytes() != expected.lower
                || (page.upper_fence_bytes() != expected.upper && !shrinks))
        {
            complain("the fences are not what the parent's separators say".into());
        }
        census.depth = census.depth.max(usize::from(page.level()) + 1);
        if page.is_leaf() {
            if page.is_hashed() == self.method.is_ordered() {
                complain(format!("is not a leaf of a {} tree", self.method));
            } else if page.is_hashed()
                && let Some(position) =
                    (0..page.count()).find(|&at| !is_stored(self.method, &page.key(at)))
            {
                complain(format!("key {position} does not begin with its hash value"));
            }
            census.leaf_pages += 1;
            census.leaf_bytes += page.used_bytes() as u64;
            let live = (0..page.count()).filter(|&at| !page.record(at).is_tombstone()).count();
            census.records += live as u64;
            return chains_of(page);
        }
        census.inner_pages += 1;
        for index in 0..=page.count() {
            if shrinks && page.child_at(index) == 0 {
                continue;
            }
            let lower = if index == 0 { expected.lower.clone() } else { page.key(index - 1) };
            let upper =
                if index == page.count() { expected.upper.clone() } else { Some(page.key(index)) };
            let level = page.level().checked_sub(1);
            work.push(Expected { page: page.child_at(index), level, lower, upper });
        }
        Vec::new()
    }
}

/// Counts the pages of chains.
fn count_chains(
    pool: &Pool,
    chains: &[PageId],
    seen: &mut HashSet<PageId>,
    census: &mut TreeCensus,
) -> Result<()> {
    for &chain in chains {
        for part in chain_pages(pool, chain)? {
            census.overflow_pages += 1;
            if !seen.insert(part) {
                census.complaints.push(format!("overflow page {part} is reached twice"));
            }
        }
    }
    Ok(())
}
